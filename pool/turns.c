/* SPDX-License-Identifier: MIT */
/* turns.c - see turns.h. */
#include "pool/turns.h"

#define LEAST 2 /* at once */
#define HANGS 8 /* round trips, or times as long as the best: a packet was lost, or nothing answers there */

int64_t hfi_turns_next_ns(const struct hfi_turns *turns, int64_t road_ns, int64_t now_ns)
{
    int most = turns->most > LEAST ? turns->most : LEAST;
    int64_t hangs_ns = turns->begun_ns + HANGS * (turns->best_ns > road_ns ? turns->best_ns : road_ns);
    return turns->under_way < most || now_ns > hangs_ns ? now_ns : hangs_ns;
}

void hfi_turns_begin(struct hfi_turns *turns, int64_t now_ns)
{
    bool anew = turns->under_way == 0 && now_ns - turns->ended_ns > HANGS * turns->best_ns;
    if (anew) { /* the link may be another one by now */
        turns->best_ns = 0;
        turns->most = LEAST;
    }
    turns->under_way++;
    turns->begun_ns = now_ns;
}

void hfi_turns_end(struct hfi_turns *turns, bool whole, int64_t begun_ns, int64_t now_ns)
{
    bool beside_others = turns->under_way-- > 1;
    int64_t took_ns = now_ns - begun_ns;
    turns->ended_ns = now_ns;
    if (!whole)
        return;
    if (turns->best_ns == 0 || took_ns < turns->best_ns)
        turns->best_ns = took_ns;
    if (took_ns > turns->best_ns / 4 * 5)
        turns->most -= turns->most > LEAST;
    else if (beside_others)
        turns->most++;
}
