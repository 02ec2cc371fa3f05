/* SPDX-License-Identifier: MIT */
/* in_doubt.h - may a token that was given up still come to own its lock (P5), and when to release it again. Pure. */
#ifndef HFI_IN_DOUBT_H
#define HFI_IN_DOUBT_H

#include "base/clock.h"

#include <stdbool.h>

#define HFI_IN_DOUBT_RETRY_NS (400 * HFI_MS)
#define HFI_IN_DOUBT_CROSSING_MS 100 /* many round trips, but less than a re-check, with which a waiter repeats R */

/*
 * If every acquire of the token was answered, one answer to its release is enough: the release came after them on the
 * same connection. An unanswered acquire may still be executed, even after a release sent on another connection
 * (measured: 50 of 100), until the last moment at which the server obeys it.
 */
struct hfi_in_doubt {
    bool    unanswered;     /* an acquire got no answer */
    uint8_t refusals;       /* error replies to its release */
    int64_t last_chance_us; /* of its scripts: the largest not_after, server time; 0: none was sent */
    int64_t last_chance_ns; /* of its native form: stamp + TTL, our time; of an acquire sent behind its release: soon */
    int64_t ends_ns;        /* our time: no key can hold the token after this */
};

/* A release was answered at server_us, server time. True: no command of this token can be executed any more. */
bool hfi_in_doubt_is_over(const struct hfi_in_doubt *in_doubt, int64_t server_us, int64_t now_ns);
/* When to release again if it is not over. server_us 0: the answer carried no time. */
int64_t hfi_in_doubt_again_ns(const struct hfi_in_doubt *in_doubt, int64_t server_us, int64_t now_ns);
/* The pause before a release is sent again that had failed so often before it failed now: it doubles twice. */
int64_t hfi_in_doubt_pause_ns(int failed);
/* When to release again after no answer or a refusal; refusals back off. HFI_NEVER: any key that holds the token will
 * have expired by then. */
int64_t hfi_in_doubt_failed_ns(struct hfi_in_doubt *in_doubt, bool refused, int64_t now_ns);

/*
 * The mark of a token that is over and whose acquires were all answered. A message that names the token soon after has
 * crossed its release. One that comes later than messages travel means that the server has the token again: a failover
 * can lose a release. The mark (token hash and time) is one word, so that an atomic holds it.
 */
uint64_t hfi_in_doubt_over_mark(uint64_t hash, int64_t now_ns);
bool hfi_in_doubt_has_crossed(uint64_t mark, uint64_t hash, int64_t now_ns);
/* A message names the token. Its mark tells when the release that an earlier message led to has ended. Returns the
 * earliest time for the next release: HFI_PACE_NS later, however often a message, perhaps forged, is repeated. */
int64_t hfi_in_doubt_heal_ns(uint64_t mark, uint64_t hash, int64_t now_ns);

#endif
