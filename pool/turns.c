/* SPDX-License-Identifier: MIT */
/* turns.c - see turns.h. */
#include "pool/turns.h"

#define LEAST 2 /* at once */
#define HANGS 8 /* times as long as alone: a packet was lost, or nothing answers there */

void hfi_turns_limit(struct hfi_turns *turns, int64_t alone_ns)
{
    if (turns->alone_ns == 0)
        turns->most = LEAST;
    turns->alone_ns = alone_ns;
}

int64_t hfi_turns_next_ns(struct hfi_turns *turns, int64_t now_ns)
{
    int64_t hangs_ns = turns->begun_ns + HANGS * turns->alone_ns;
    if (turns->alone_ns == 0 || turns->under_way < turns->most)
        return now_ns;
    if (now_ns >= hangs_ns)
        turns->alone_ns = 0;
    return hangs_ns;
}

void hfi_turns_begin(struct hfi_turns *turns, int64_t now_ns)
{
    turns->under_way++;
    turns->begun_ns = now_ns;
}

void hfi_turns_end(struct hfi_turns *turns, bool up, int64_t begun_ns, int64_t now_ns)
{
    turns->under_way--;
    if (!up)
        turns->alone_ns = 0;
    if (turns->alone_ns == 0)
        return;
    int64_t took_ns = now_ns - begun_ns;
    turns->alone_ns = took_ns < turns->alone_ns ? took_ns : turns->alone_ns;
    if (took_ns <= turns->alone_ns / 4 * 5)
        turns->most++;
    else if (turns->most > LEAST)
        turns->most--;
}
