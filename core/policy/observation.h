/* SPDX-License-Identifier: MIT */
/* observation.h - when an observer looks at a lock, when it asks the holder for details that only the holder has, and
 * when it tells what it has seen. Pure. */
#ifndef HFI_OBSERVATION_H
#define HFI_OBSERVATION_H

#include "base/clock.h"

#include <stdbool.h>

/* A holder that listens gets this long, and two round trips, for its answer: it may be as far from the server as we. */
#define HFI_HOLDER_ANSWERS_MS 200

struct hfi_observation {
    int64_t  look_at, ask_at, tell_at; /* when each is due; HFI_NEVER: not by itself  */
    int64_t  looked_at;                /* when the last look was sent                 */
    int64_t  ask_in;                   /* pause after the next question to the holder */
    uint64_t rng;
    bool     looking; /* a look is in flight, */
    bool     noticed; /* and a notice came meanwhile, which may be newer than its answer */
};

enum hfi_sight {
    HFI_SAW_NOTHING, /* no answer                                              */
    HFI_SAW_SAME,    /* the value of the look before                           */
    HFI_SAW_NOBODY,  /* another one: nobody's, or of one that cannot be asked  */
    HFI_SAW_HOLDER   /* another one, of a holder that can be asked             */
};

enum { HFI_OBSERVE_LOOK = 1, HFI_OBSERVE_ASK = 2, HFI_OBSERVE_TELL = 4 };

void hfi_observation_begin(struct hfi_observation *observation, uint64_t seed, int64_t now);
/* What is to be done now, a sum of them; it counts as done. */
unsigned hfi_observation_due(struct hfi_observation *observation, int64_t now);
int64_t hfi_observation_next(const struct hfi_observation *observation); /* when more is due; HFI_NEVER: nothing is */

/* The look was answered, or will not be. left_ms: until the key ends; negative: never, or there is none. */
void hfi_observation_looked(struct hfi_observation *observation, enum hfi_sight sight, int64_t left_ms, int64_t now);
/* A message says that the lock has changed hands, or messages were missed. */
void hfi_observation_notice(struct hfi_observation *observation, int64_t now);
/* The last holder seen has answered. False: no answer was expected, so this one is ignored. */
bool hfi_observation_answered(struct hfi_observation *observation, int64_t now);

#endif
