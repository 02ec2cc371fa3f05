/* SPDX-License-Identifier: MIT */
/* sentinel.h - what sentinels say, and whom that makes the primary. Pure: the caller asks them, and passes the time. */
#ifndef HFI_SENTINEL_H
#define HFI_SENTINEL_H

#include "pool/confirmation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HFI_SENTINELS_MOST 16

struct redisReply;

/* ---- replies ---- */

struct hfi_sentinel_says { /* of the service */
    struct hfi_named_host primary;
    uint64_t epoch; /* of the primary's configuration: the greater one is the newer one */
    int64_t down_after_ms;
    int sentinels; /* how many there are, with the one that says it */
    bool follows; /* the one it names says itself that it is a replica by now */
};

struct hfi_other_sentinel {
    struct hfi_named_host at;
    char id[48]; /* "": not told */
};

enum hfi_sentinel_answer { HFI_SENTINEL_SAYS, HFI_SENTINEL_KNOWS_IT_NOT, HFI_SENTINEL_MAKES_NO_SENSE };

/* The value behind `name` in a list of names and values; NULL: it is not there. */
const char *hfi_sentinel_field(const struct redisReply *pairs, const char *name);
bool hfi_sentinel_is(const struct redisReply *pairs, const char *name, const char *value);
bool hfi_sentinel_read_host(const struct redisReply *pairs, struct hfi_named_host *at); /* "ip" and "port"; false: not there */
bool hfi_sentinel_is_same(const struct hfi_named_host *a, const struct hfi_named_host *b);
/* Of SENTINEL MASTER. */
enum hfi_sentinel_answer hfi_sentinel_read_master(const struct redisReply *reply, struct hfi_sentinel_says *says);
/* Of SENTINEL SENTINELS: where the others are. Returns how many were written to `others`, of `most`; -1: it makes no sense. */
int hfi_sentinel_read_others(const struct redisReply *reply, struct hfi_other_sentinel *others, int most);
/* Of a message on +switch-master: is it about this service? */
bool hfi_sentinel_is_about(const char *message, size_t size, const char *service);

/* ---- the council ---- */

enum hfi_testimony { HFI_TESTIMONY_NONE, HFI_TESTIMONY_NAMED, HFI_TESTIMONY_NO_SUCH, HFI_TESTIMONY_SILENT };

struct hfi_council { /* initially zeroed, but for the count */
    int count;
    struct {
        enum hfi_testimony testimony; /* last */
        struct hfi_sentinel_says says;
        bool is_found;  /* by what another one lists, not in the URI */
        char id[48];    /* its own word; "": not told */
        uint32_t lists; /* a bit for each of the others that it lists */
    } of[HFI_SENTINELS_MOST];
    int known; /* hfi_council_known, but for those of the URI */
    int64_t first_ns; /* of the first answer that named a primary; 0: none yet */
    bool has_decided;
    struct hfi_sentinel_says decided;
};

enum hfi_verdict {
    HFI_VERDICT_WAIT,       /* for further answers, until *again_ns */
    HFI_VERDICT_KEEP,       /* the primary is the one decided for before */
    HFI_VERDICT_MOVE,       /* it is `decided`, as of now */
    HFI_VERDICT_NO_SERVICE, /* all answer, and none knows the service */
    HFI_VERDICT_NOBODY      /* some are silent, and no other names one */
};

void hfi_council_said(struct hfi_council *council, int which, const struct hfi_sentinel_says *says, int64_t now_ns);
void hfi_council_note(struct hfi_council *council, int which, enum hfi_testimony what); /* anything but HFI_TESTIMONY_NAMED */
/* False: it is silent, and a found one that no answering one lists any more, or the same as an answering one of another
 * address; or it is the same as one before it. So nobody counts twice, and nobody for ever. */
bool hfi_council_counts(const struct hfi_council *council, int which);
/* A found one that is silent, and that nobody who answers lists: another one may have its place. -1: there is none. */
int hfi_council_spare(const struct hfi_council *council);
void hfi_council_give(struct hfi_council *council, int which); /* its place to another one, found too */
/* How many sentinels there are: those of the URI at least, one of two addresses once, and as many as any of them has said; fewer
 * again only when more than half of so many say so. So one that has forgotten the others is no majority. */
int hfi_council_known(struct hfi_council *council);
/* At first the newest of what all of them say, or of what was said within 100 ms of the first answer: one that was cut off
 * names an old primary for long. Later whatever is newer, at once; and what all of them agree on, older or not: somebody
 * has configured them anew. One that falls silent changes nothing. */
enum hfi_verdict hfi_council_judge(struct hfi_council *council, int64_t now_ns, int64_t *again_ns);

#endif
