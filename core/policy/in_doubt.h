/* SPDX-License-Identifier: MIT */
/* in_doubt.h - whether a token that was given up may still come to own its lock (P5), and when to release it again. Pure. */
#ifndef HFI_IN_DOUBT_H
#define HFI_IN_DOUBT_H

#include "base/clock.h"

#include <stdbool.h>

#define HFI_IN_DOUBT_RETRY_NS (400 * HFI_MS)
#define HFI_IN_DOUBT_HEAL_MS 10 /* a message that is said again and again, whoever made it up, leads to a release so often */
#define HFI_IN_DOUBT_CROSSING_MS 100 /* many round trips, and less than a re-check: who waits says R again after it */

/*
 * One answer to its release is enough if every acquire of the token was answered: the release came after them on the
 * same connection. If one was not, it may still be executed, even after a release sent on another connection
 * (measured: 50 of 100), until the last moment at which the server obeys it.
 */
struct hfi_in_doubt {
    bool    unanswered;        /* an acquire got no answer */
    uint8_t refusals;       /* error replies to its release */
    int64_t last_chance_us; /* of its scripts: the largest not_after, server time */
    int64_t last_chance_ns; /* of its native form: the TTL after it was sent, our time */
    int64_t ends_ns;        /* our time: until then at most lives a key that has it */
};

/* A release was answered, at server_us by the server's clock: nothing of this token can come any more. */
bool hfi_in_doubt_is_over(const struct hfi_in_doubt *in_doubt, int64_t server_us, int64_t now_ns);
/* It is not over. server_us 0: the answer said no time. */
int64_t hfi_in_doubt_again_ns(const struct hfi_in_doubt *in_doubt, int64_t server_us, int64_t now_ns);
/* The release got no answer, or was refused: then again and again, ever more seldom where it is refused. HFI_NEVER: a key
 * that has the token will have ended by itself. */
int64_t hfi_in_doubt_failed_ns(struct hfi_in_doubt *in_doubt, bool refused, int64_t now_ns);

/*
 * A token is over, and every acquire of it was answered. A message that names it then has crossed its release, unless it
 * comes later than messages travel: then the server has it again, from before the release, which a failover can lose.
 * The mark of a token (by its hash) is one word, so that an atomic holds it.
 */
uint64_t hfi_in_doubt_over_mark(uint64_t hash, int64_t now_ns);
bool hfi_in_doubt_has_crossed(uint64_t mark, uint64_t hash, int64_t now_ns);
/* A message names the token, whose mark says when the release of it ended that another message led to: not before this is
 * the next one sent. */
int64_t hfi_in_doubt_heal_ns(uint64_t mark, uint64_t hash, int64_t now_ns);

#endif
