/* SPDX-License-Identifier: MIT */
/* trial.h - whether to try what sometimes pays: try, pause after misses, twice as long each time, and try again. Pure:
 * the caller does the trying, and says whether it paid. */
#ifndef HFI_TRIAL_H
#define HFI_TRIAL_H

#include <stdbool.h>

struct hfi_trial_rules {
    int score_most;        /* after many hits this many misses in a row begin a pause */
    int hits;              /* this many hits without a miss between them make the next pause the first one again */
    int pause, pause_most; /* the first pause, in calls of hfi_trial_ask; doubled up to pause_most */
    int score_again;       /* behind a pause so many misses begin the next one; 0: one does */
};

struct hfi_trial { /* initially zeroed: tries, with a score of 1 */
    int score;  /* > 0: trying has paid lately. A hit adds 1, a miss takes 1 */
    int pause;  /* > 0: the call of hfi_trial_ask, counted from now, that says true again */
    int misses; /* how often the next pause is doubled */
    int hits;   /* since the last miss, up to rules->hits */
    int again;  /* the score that the pause ends with */
};

/* Is it time to try? Counts a pause down, by as many as this call stands for. */
bool hfi_trial_ask(struct hfi_trial *trial, int calls);
bool hfi_trial_is_on(const struct hfi_trial *trial); /* no pause has begun since hfi_trial_ask said true */
/* The outcome of a try. A try without a clear outcome need not be noted. */
void hfi_trial_note(struct hfi_trial *trial, const struct hfi_trial_rules *rules, bool hit);

#endif
