/* SPDX-License-Identifier: MIT */
/* observation.c - see observation.h. */
#include "core/policy/observation.h"
#include "base/random.h"
#include "core/policy/lease.h"
#include "core/policy/pace.h"

#define LOOK_EVERY_NS (1000 * HFI_MS)
#define ASK_FIRST_NS  (10 * HFI_MS) /* doubles up to LOOK_EVERY_NS: a new holder may not be subscribed yet */
#define BEHIND_END_MS 2             /* the server has dropped a key by then */

static int64_t sooner(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

/* Two looks are HFI_PACE_NS apart at least, however many messages arrive. */
static int64_t paced(const struct hfi_observation *observation, int64_t at)
{
    int64_t least = observation->looked_at + HFI_PACE_NS;
    return at > least ? at : least;
}

void hfi_observation_begin(struct hfi_observation *observation, uint64_t seed, int64_t now)
{
    *observation = (struct hfi_observation){
        .look_at = now, .ask_at = HFI_NEVER, .tell_at = HFI_NEVER, .looked_at = now - HFI_PACE_NS, .rng = seed};
}

unsigned hfi_observation_due(struct hfi_observation *observation, int64_t now)
{
    unsigned due = 0;
    if (now >= observation->look_at) {
        observation->look_at = HFI_NEVER;
        observation->looked_at = now;
        observation->looking = true;
        observation->noticed = false;
        due |= HFI_OBSERVE_LOOK;
    }
    if (now >= observation->ask_at) {
        observation->ask_at = now + observation->ask_in;
        observation->ask_in = sooner(2 * observation->ask_in, LOOK_EVERY_NS);
        due |= HFI_OBSERVE_ASK;
    }
    if (now >= observation->tell_at) {
        observation->tell_at = HFI_NEVER;
        due |= HFI_OBSERVE_TELL;
    }
    return due;
}

int64_t hfi_observation_next(const struct hfi_observation *observation)
{
    return sooner(sooner(observation->look_at, observation->ask_at), observation->tell_at);
}

void hfi_observation_looked(struct hfi_observation *observation, enum hfi_sight sight, int64_t left_ms, int64_t now)
{
    int64_t next = observation->looked_at + hfi_jitter(&observation->rng, LOOK_EVERY_NS, 0.1);
    if (sight != HFI_SAW_NOTHING && left_ms >= 0)
        next = sooner(next, hfi_after_ms(now, left_ms + BEHIND_END_MS));
    if (observation->noticed)
        next = sooner(next, now);
    observation->look_at = paced(observation, next);
    observation->looking = observation->noticed = false;
    if (sight == HFI_SAW_NOBODY) {
        observation->ask_at = HFI_NEVER;
        observation->tell_at = now;
    } else if (sight == HFI_SAW_HOLDER) {
        observation->ask_at = now;
        observation->ask_in = ASK_FIRST_NS;
        observation->tell_at = hfi_after_ms(now, HFI_HOLDER_ANSWERS_MS) + 2 * (now - observation->looked_at);
    }
}

void hfi_observation_notice(struct hfi_observation *observation, int64_t now)
{
    if (observation->looking)
        observation->noticed = true;
    else
        observation->look_at = sooner(observation->look_at, paced(observation, now));
}

bool hfi_observation_answered(struct hfi_observation *observation, int64_t now)
{
    if (observation->ask_at == HFI_NEVER)
        return false;
    observation->ask_at = HFI_NEVER;
    observation->tell_at = now;
    return true;
}
