/* SPDX-License-Identifier: MIT */
/* wiped.c - see wiped.h. Free words are kept in an array of pointers in ordinary memory: a list inside the pages
 * would be wiped too. */
#include "base/mutex.h"
#include "base/wiped.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PAGE_BYTES 16384
#define PAGE_WORDS (PAGE_BYTES / sizeof(int64_t))

struct hfi_wiped {
    struct hfi_mutex mutex;
    void **pages;
    size_t page_count;
    _Atomic(int64_t) **free_list; /* has capacity for every word of every page, so giving back cannot fail */
    size_t free_count;
};

struct hfi_wiped *hfi_wiped_new(void)
{
    struct hfi_wiped *words = calloc(1, sizeof *words);
    if (words != NULL)
        hfi_mutex_init(&words->mutex, HFI_RANK_LEAF);
    return words;
}

void hfi_wiped_free(struct hfi_wiped *words)
{
    if (words == NULL)
        return;
    for (size_t i = 0; i < words->page_count; i++)
        (void)munmap(words->pages[i], PAGE_BYTES);
    hfi_mutex_destroy(&words->mutex);
    free(words->pages);
    free(words->free_list);
    free(words);
}

static void grow_locked(struct hfi_wiped *words)
{
    void **pages = realloc(words->pages, (words->page_count + 1) * sizeof *pages);
    if (pages == NULL)
        return;
    words->pages = pages;
    void *free_list = realloc(words->free_list, (words->page_count + 1) * PAGE_WORDS * sizeof *words->free_list);
    if (free_list == NULL)
        return;
    words->free_list = free_list;
    char *page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, PAGE_BYTES, MADV_WIPEONFORK) != 0) {
        (void)munmap(page, PAGE_BYTES);
        return;
    }
    words->pages[words->page_count++] = page;
    for (size_t i = 0; i < PAGE_WORDS; i++)
        words->free_list[words->free_count++] = (_Atomic(int64_t) *)(void *)(page + i * sizeof(int64_t));
}

_Atomic(int64_t) *hfi_wiped_take(struct hfi_wiped *words)
{
    _Atomic(int64_t) *word = NULL;
    hfi_mutex_lock(&words->mutex);
    if (words->free_count == 0)
        grow_locked(words);
    if (words->free_count > 0)
        word = words->free_list[--words->free_count];
    hfi_mutex_unlock(&words->mutex);
    if (word != NULL)
        atomic_store(word, 0);
    return word;
}

void hfi_wiped_give(struct hfi_wiped *words, _Atomic(int64_t) *word)
{
    if (word == NULL)
        return;
    hfi_mutex_lock(&words->mutex);
    words->free_list[words->free_count++] = word;
    hfi_mutex_unlock(&words->mutex);
}
