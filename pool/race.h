/* SPDX-License-Identifier: MIT */
/* race.h - which of a server's addresses to try, and when, so that a dead address costs little time (RFC 8305). Pure:
 * the caller has the sockets and passes the time. */
#ifndef HFI_RACE_H
#define HFI_RACE_H

#include <stdbool.h>
#include <stdint.h>

#define HFI_RACERS_MOST 8

struct hfi_race {
    int count, begun; /* addresses; how many of them have been begun, in order */
    int running;      /* how many of those may still connect */
    int64_t pause_ns, next_ns;
};

/* 1 to HFI_RACERS_MOST addresses. Each begins 250 ms after the one before, or sooner if until_ns requires it. */
void hfi_race_init(struct hfi_race *race, int count, int64_t now_ns, int64_t until_ns);
/* The index of the address to try now; -1: none is due. */
int hfi_race_begin(struct hfi_race *race, int64_t now_ns);
/* An address that was begun has failed: the next one is due at once. */
void hfi_race_failed(struct hfi_race *race, int64_t now_ns);
/* The address begun last cannot be tried before at_ns: it is begun again then. */
void hfi_race_postponed(struct hfi_race *race, int64_t at_ns);
/* No attempt is running, and no address is left. */
bool hfi_race_is_lost(const struct hfi_race *race);
int64_t hfi_race_again_ns(const struct hfi_race *race); /* when hfi_race_begin is due; or HFI_NEVER */

#endif
