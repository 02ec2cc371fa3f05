/* SPDX-License-Identifier: MIT */
/* trial.c - see trial.h. */
#include "pool/trial.h"

bool hfi_trial_is_on(const struct hfi_trial *trial)
{
    return trial->pause == 0;
}

bool hfi_trial_ask(struct hfi_trial *trial, int calls)
{
    trial->pause = trial->pause > calls ? trial->pause - calls : 0;
    if (trial->pause > 0)
        return false;
    if (trial->score == 0)
        trial->score = 1;
    return true;
}

static void note_hit(struct hfi_trial *trial, const struct hfi_trial_rules *rules)
{
    if (trial->score < rules->score_most)
        trial->score++;
    if (trial->hits < rules->hits && ++trial->hits == rules->hits)
        trial->misses = 0;
}

static void note_miss(struct hfi_trial *trial, const struct hfi_trial_rules *rules)
{
    trial->hits = 0;
    trial->score -= rules->miss_takes > 0 ? rules->miss_takes : 1;
    if (trial->score > 0)
        return;
    trial->score = rules->score_again;
    trial->pause = rules->pause << trial->misses;
    if (trial->pause < rules->pause_most)
        trial->misses++;
}

void hfi_trial_note(struct hfi_trial *trial, const struct hfi_trial_rules *rules, bool hit)
{
    if (hit)
        note_hit(trial, rules);
    else
        note_miss(trial, rules);
}
