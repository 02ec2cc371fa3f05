/* SPDX-License-Identifier: MIT */
/* race.c - see race.h. */
#include "pool/race.h"
#include "pool/times.h"

void hfi_race_init(struct hfi_race *race, int count, int64_t now_ns, int64_t until_ns)
{
    int64_t share_ns = (until_ns - now_ns) / count;
    *race = (struct hfi_race){.count = count, .pause_ns = share_ns < HFI_RACE_PAUSE_NS ? share_ns : HFI_RACE_PAUSE_NS, .next_ns = now_ns};
}

int hfi_race_begin(struct hfi_race *race, int64_t now_ns)
{
    if (race->begun == race->count || now_ns < race->next_ns)
        return -1;
    race->next_ns = now_ns + race->pause_ns;
    race->running++;
    return race->begun++;
}

void hfi_race_failed(struct hfi_race *race, int64_t now_ns)
{
    race->running--;
    race->next_ns = now_ns;
}

void hfi_race_postponed(struct hfi_race *race, int64_t at_ns)
{
    race->running--;
    race->begun--;
    race->next_ns = at_ns;
}

bool hfi_race_is_lost(const struct hfi_race *race)
{
    return race->running == 0 && race->begun == race->count;
}

int64_t hfi_race_again_ns(const struct hfi_race *race)
{
    return race->begun < race->count ? race->next_ns : HFI_NEVER;
}
