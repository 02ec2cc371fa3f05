/* SPDX-License-Identifier: MIT */
/* pages.c - see pages.h. */
#include "tests/support/pages.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void look_at_old(const hf_loading *loading, struct hft_page *page)
{
    const void *old = hf_loading_old(loading, &page->old_size);
    (void)snprintf(page->old, sizeof page->old, "%s", old != NULL ? (const char *)old : "-");
}

static void tag(hf_loading *loading, struct hft_page *page)
{
    for (int i = 0; i <= HF_TAGS_MAX && page->tags[i] != NULL; i++) {
        hf_status status = hf_loading_tag(loading, page->tags[i]);
        page->tagged = page->tagged == HF_OK ? status : page->tagged;
    }
}

hf_status hft_load(hf_loading *loading, void *arg)
{
    struct hft_page *page = arg;
    hf_status status = HF_OK;
    if (atomic_fetch_add(&page->inside, 1) != 0)
        atomic_fetch_add(&page->overlaps, 1);
    atomic_fetch_add(&page->loads, 1);
    while (atomic_load(&page->stay)) {
        if (!hf_loading_is_wanted(loading))
            atomic_store(&page->unwanted, true);
        (void)poll(NULL, 0, 1);
    }
    if (page->forgets != NULL)
        page->forgot = hf_fetch_forget(page->forgets, hf_loading_key(loading), NULL);
    if (page->ttl_ms != 0)
        hf_loading_set_ttl(loading, page->ttl_ms);
    look_at_old(loading, page);
    tag(loading, page);
    size_t size = page->size != 0 ? page->size : strlen(page->data);
    atomic_fetch_sub(&page->inside, 1);
    if (page->answer == HF_LOAD_FAILED)
        return hf_loading_fail(loading, ENOENT, "the origin is closed");
    if (page->answer != HF_OK)
        return page->answer;
    if (page->same)
        status = hf_loading_same(loading);
    else if (page->absent)
        status = hf_loading_absent(loading);
    else if (page->give) {
        char *copy = malloc(size);
        memcpy(copy, page->data, size);
        status = hf_loading_give(loading, copy, size, free);
    } else if (!page->nothing)
        status = hf_loading_set(loading, page->data, size);
    if (page->twice)
        page->second = hf_loading_set(loading, "other", 5);
    return status;
}

static void *run(void *arg)
{
    struct hft_fetcher *me = arg;
    atomic_store(&me->tid, (int)gettid());
    me->status = hf_fetch(me->client, me->key, &me->options, &me->value, &me->error);
    atomic_store(&me->done, true);
    return NULL;
}

void hft_fetch(struct hft_fetcher *me, hf_client *client, const char *key, const hf_fetch_options *options)
{
    memset(me, 0, sizeof *me);
    me->client = client;
    me->key = key;
    me->options = *options;
    if (pthread_create(&me->thread, NULL, run, me) != 0)
        abort();
}

hf_status hft_fetched(struct hft_fetcher *me)
{
    (void)pthread_join(me->thread, NULL);
    return me->status;
}
