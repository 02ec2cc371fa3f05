/* SPDX-License-Identifier: MIT */
/* race.h - which of a server's addresses to try, and when, so that a dead one costs a moment (RFC 8305). Pure: the caller
 * has the sockets and says what time it is. */
#ifndef HFI_RACE_H
#define HFI_RACE_H

#include <stdbool.h>
#include <stdint.h>

#define HFI_RACERS_MOST 8

struct hfi_race {
    int count, begun; /* addresses; those that have had their turn, in order */
    int running;      /* of these, how many may still answer */
    int64_t pause_ns, next_ns;
};

/* 1 to HFI_RACERS_MOST addresses. The next one begins 250 ms after the one before, or sooner if until_ns asks for it. */
void hfi_race_init(struct hfi_race *race, int count, int64_t now_ns, int64_t until_ns);
/* The address to try now; -1: none yet. */
int hfi_race_begin(struct hfi_race *race, int64_t now_ns);
/* One that was begun is of no use: the next one begins at once. */
void hfi_race_failed(struct hfi_race *race, int64_t now_ns);
/* The one begun last cannot be tried before at_ns. */
void hfi_race_postponed(struct hfi_race *race, int64_t at_ns);
/* Nobody runs, and nobody is left. */
bool hfi_race_is_lost(const struct hfi_race *race);
int64_t hfi_race_again_ns(const struct hfi_race *race); /* when hfi_race_begin has something to say; HFI_NEVER */

#endif
