/* SPDX-License-Identifier: MIT */
/* trial.h - whether to try what sometimes pays: try, pause after misses, twice as long each time, and try again. Pure:
 * the caller does the trying, and says whether it paid. */
#ifndef HFI_TRIAL_H
#define HFI_TRIAL_H

#include <stdbool.h>

struct hfi_trial_rules {
    int score_most;        /* hits raise the score up to this */
    int hits;              /* this many hits without a miss between them make the next pause the first one again */
    int pause, pause_most; /* the first pause, in calls of hfi_trial_ask; doubled up to pause_most */
    int miss_takes;        /* a miss takes so much off the score; 0: 1. At 0 a pause begins */
    int score_again;       /* the score behind a pause; 0: 1, so that one miss begins the next one */
};

struct hfi_trial { /* initially zeroed: tries, with a score of 1 */
    int score;  /* what misses may take off before a pause begins; in a pause score_again. A hit adds 1 */
    int pause;  /* > 0: the call of hfi_trial_ask, counted from now, that says true again */
    int misses; /* how often the next pause is doubled */
    int hits;   /* since the last miss, up to rules->hits */
};

/* Is it time to try? Counts a pause down, by as many as this call stands for. */
bool hfi_trial_ask(struct hfi_trial *trial, int calls);
bool hfi_trial_is_on(const struct hfi_trial *trial); /* no pause has begun since hfi_trial_ask said true */
/* The outcome of a try. A try without a clear outcome need not be noted. */
void hfi_trial_note(struct hfi_trial *trial, const struct hfi_trial_rules *rules, bool hit);

#endif
