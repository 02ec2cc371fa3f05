/* SPDX-License-Identifier: MIT */
/* handshake.h - the commands sent on a new connection before it may be used, and which replies are acceptable. No I/O:
 * the caller sends and receives. */
#ifndef HFI_HANDSHAKE_H
#define HFI_HANDSHAKE_H

#include "base/buffer.h"
#include "pool/owner.h"

#include <stdbool.h>
#include <stdint.h>

#define HFI_HANDSHAKE_MOST 64 /* commands in one pipeline */

struct hfi_deployment;
struct hfi_peer;

enum hfi_dial_purpose {
    HFI_DIAL_LANE,      /* the handshake also loads scripts and sends the owner's command (ops->handshake_floor) */
    HFI_DIAL_USER_LANE, /* neither: a connection for commands that only look changes nothing at the server; or a sentinel's */
    HFI_DIAL_SUBSCRIBER,
    HFI_DIAL_TRACKER, /* a subscriber that is asked for its client id: once it is subscribed it cannot be */
    HFI_DIAL_BORROWER,
    HFI_DIAL_CLOCK /* of any server, a replica too: it is asked TIME, and that is all */
};

struct hfi_handshake {
    struct hfi_peer *peer;
    struct hfi_deployment *deployment; /* peer's */
    enum hfi_dial_purpose purpose;
    int lane;

    struct hfi_buffer out; /* bytes to send */
    bool over;             /* every stage is answered */

    int stage;
    unsigned char asked[HFI_HANDSHAKE_MOST]; /* enum question, of this stage, in order */
    int asked_count, answered;
    struct hfi_server server; /* its clock_by_key is at first what is known of the run that lanes met last */
    bool lacks_time; /* this connection was refused it in scripts */
    int64_t client_id; /* of a tracker; -1: the server does not tell it */
    uint64_t lacks; /* a bit for each of the owner's scripts that the server does not have */
    bool loads;     /* has sent scripts; counted in the peer's loading */
    struct hfi_command *handshake_floor;
    int64_t asked_ns; /* of the floor, or the time */
    int64_t ahead_ns, rtt_ns; /* of a clock: clocks.h */
};

void hfi_handshake_init(struct hfi_handshake *handshake, struct hfi_peer *peer,
                        enum hfi_dial_purpose purpose, int lane);
void hfi_handshake_done(struct hfi_handshake *handshake);  /* wipes and frees */
bool hfi_handshake_begin(struct hfi_handshake *handshake); /* puts the first stage into `out`; false: no memory */
/* Takes the next reply. Not HF_OK: the connection is refused, *error says why. */
hf_status hfi_handshake_answer(struct hfi_handshake *handshake, const struct redisReply *reply, hf_error *error);

#endif
