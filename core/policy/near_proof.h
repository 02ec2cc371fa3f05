/* SPDX-License-Identifier: MIT */
/*
 * near_proof.h - may what was read a moment ago be given out from memory? Only while the server has proved lately that it
 * tells of every change (N3 to N5 of protocol.md). Pure; the caller serialises.
 *
 * A lane is armed when its connection tracks what it reads, and the server tells the tracker of changes. What was read from
 * then on is of one epoch, and is void when the lane has another one.
 */
#ifndef HFI_NEAR_PROOF_H
#define HFI_NEAR_PROOF_H

#include <stdbool.h>
#include <stdint.h>

struct hfi_near_lane {
    uint64_t epoch;       /* of what is read now; 0: it is not armed */
    uint32_t connection;  /* that is armed */
    int64_t  answered_ns; /* stamp of the last answer that named the tracker */
};

struct hfi_near_proof {
    int64_t  tracker;  /* the client id of the connection that is told; 0: none is known */
    uint64_t run;      /* of its server (pool/owner.h): another server may have given that id to somebody else */
    int64_t  heard_ns; /* all that the server told it before was handed up */
    uint64_t epochs;   /* so far, of all lanes */
    int      count;
    struct hfi_near_lane *lanes;
};

/* The tracker has heard of all that was told before stamp_ns. True: it is another one, for whom no lane is armed yet. */
bool hfi_near_hears(struct hfi_near_proof *proof, int64_t tracker, uint64_t run, int64_t stamp_ns);

enum hfi_near_ask { HFI_NEAR_ASK_NOTHING, HFI_NEAR_ARM, HFI_NEAR_BEAT };
enum hfi_near_ask hfi_near_next(const struct hfi_near_proof *proof, int lane); /* what the lane is to be asked */

struct hfi_near_answer { /* to one question */
    uint64_t epoch;      /* of the lane when it was listed; 0: it was to arm */
    int64_t  tracker;    /* whom it was meant for */
    int64_t  stamp_ns;   /* the clock before it was listed */
    uint32_t connection; /* on which it was answered; 0: it was not */
    uint64_t run;        /* of the server that answered */
    bool     is_good;    /* that is a primary, and names `tracker` */
};
void hfi_near_answered(struct hfi_near_proof *proof, int lane, const struct hfi_near_answer *answer);

/* An answer came on this connection of the lane: if another one was armed, that one is gone, and what it tracked. */
void hfi_near_met(struct hfi_near_proof *proof, int lane, uint32_t connection);
void hfi_near_all_changed(struct hfi_near_proof *proof); /* any key may have */
/* Every change before this was told, and what it concerned is void; 0: nothing is proved. */
int64_t hfi_near_proved_ns(const struct hfi_near_proof *proof, int lane);

struct hfi_near_mark {   /* of a value that is kept near */
    uint64_t epoch;      /* 0: it is not */
    int64_t  read_ns;    /* the clock before its read was listed */
    int64_t  end_ns;     /* of its key, no later than at the server; HFI_NEVER */
};

enum hfi_near_verdict { HFI_NEAR_GOOD, HFI_NEAR_OVER, HFI_NEAR_UNPROVED };
/* epoch: the lane's, read after the mark; proved_ns: read before it. */
enum hfi_near_verdict hfi_near_judge(const struct hfi_near_mark *mark, uint64_t epoch, int64_t proved_ns, int64_t near_ms,
                                     int64_t lag_ms, int64_t now_ns);

#endif
