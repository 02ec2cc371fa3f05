/* SPDX-License-Identifier: MIT */
/* promotable.h - which replicas a failover could make the primary, by what sentinels say of them. Pure. */
#ifndef HFI_PROMOTABLE_H
#define HFI_PROMOTABLE_H

#include "pool/sentinel.h"

struct hfi_said_replica { /* by one sentinel */
    struct hfi_named_host at;
    bool is_out;  /* it is down, or not connected, or its priority says never: this sentinel would not choose it */
    bool follows; /* it says so itself; a sentinel lists a former primary as a replica before that */
};

struct hfi_said_replicas { /* initially zeroed */
    bool is_given;           /* there is a list, and it is the present primary's or the former one's */
    int64_t asked_ns;        /* when the sentinel was asked; 0: it is silent, or named another primary */
    int64_t named_former_ns; /* when it was asked, and still named the former primary: its list has that one too; 0: it did not */
    int64_t listed_ns;       /* when it was asked for this list, the last that it gave */
    int count;               /* -1: there are more than can be kept */
    struct hfi_said_replica list[HFI_REPLICAS_MOST + 1];
};

struct hfi_promotable { /* initially zeroed, but for needed.until_ns */
    struct hfi_named_host primary;
    struct hfi_named_host former; /* the primary before; "": there was none, or it has been seen to follow since, or may have */
    int64_t heard_ns;             /* of the former one: when most sentinels were asked last, whose answers are here */
    struct hfi_replicas needed;
    bool is_known;   /* who is needed: most have said who there is, or more than can be needed */
    bool leaves_out; /* somebody who is listed need not confirm, for as long as they say so */
};

/* Of one sentinel. `says`: what it has just named, NULL: no primary; `reply`: of SENTINEL REPLICAS behind it, NULL: none. Silence,
 * and a third primary's name, leave the list that there was. */
void hfi_promotable_heard(const struct hfi_promotable *promotable, const struct hfi_sentinel_says *says,
                          const struct redisReply *reply, int64_t asked_ns, struct hfi_said_replicas *said);
/* `said`: until now, of the former primary's. Who has not heard of that one from more than half of all a moment ago may have missed
 * that it has followed meanwhile, and is the primary again: then it is one like the others. */
void hfi_promotable_moved(struct hfi_promotable *promotable, const struct hfi_named_host *former, const struct hfi_named_host *primary,
                          const struct hfi_said_replicas *const *said, int count, int known, int64_t now_ns);
/* `said`: what each of `count` sentinels that are asked has said of the primary's replicas, NULL for nothing; `known`: how many
 * sentinels there are. True: `needed` has changed. All that any of them lists are needed, but for the former primary until it
 * follows, as long as more than half of all have answered within half a second and none has shown that it does;
 * and for those that none of the sentinels who answered within half a second would choose and more than half of all would not.
 * Both end half a second after they were asked: until_ns. Nobody is needed, so nothing confirmed, unless more than half of all
 * have said what replicas there are, and were asked within three seconds: until_ns is the end of that as well. Whom one lists and
 * another does not is needed, and who has not heard them for long has not heard of the newest one. */
bool hfi_promotable_judge(struct hfi_promotable *promotable, const struct hfi_said_replicas *const *said, int count, int known,
                          int64_t now_ns);

#endif
