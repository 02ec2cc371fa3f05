/* SPDX-License-Identifier: MIT */
/* mutex.c - the order of mutexes, checked in builds for development. */
#include "base/mutex.h"

#ifdef HFI_CHECKED
#include "base/thread.h"

/* One of each rank at most, so the rank is its place. */
void hfi_mutex_note_taken(const struct hfi_mutex *mutex)
{
    struct hfi_held *held = hfi_thread_held();
    for (int rank = (int)mutex->rank; rank <= HFI_RANK_LEAF; rank++)
        HFI_CHECK(held->mutexes[rank] == NULL);
    held->mutexes[mutex->rank] = mutex;
}

/* The mutex may be another thread's already, or gone: only its address is looked at. */
void hfi_mutex_note_given(const struct hfi_mutex *mutex)
{
    struct hfi_held *held = hfi_thread_held();
    int rank = 0;
    while (rank < HFI_RANK_LEAF && held->mutexes[rank] != mutex)
        rank++;
    HFI_CHECK(held->mutexes[rank] == mutex);
    held->mutexes[rank] = NULL;
}

bool hfi_mutex_is_held(const struct hfi_mutex *mutex)
{
    return hfi_thread_held()->mutexes[mutex->rank] == mutex;
}

bool hfi_mutex_none_is_held(void)
{
    bool is_one = false;
    for (int rank = HFI_RANK_OUTER; rank <= HFI_RANK_LEAF; rank++)
        is_one = is_one || hfi_thread_held()->mutexes[rank] != NULL;
    return !is_one;
}
#endif
