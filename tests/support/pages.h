/* SPDX-License-Identifier: MIT */
/* pages.h - loaders for hf_fetch whose behaviour a test sets, and threads that fetch and record what they got. */
#ifndef HFT_PAGES_H
#define HFT_PAGES_H

#include <holdfast/holdfast.h>
#include <pthread.h>
#include <stdatomic.h>

struct hft_page { /* what a loader makes, and what is seen of it */
    _Atomic(int) loads, inside, overlaps;
    _Atomic(bool) stay;       /* the loader does not come back */
    hf_status answer;         /* other than HF_OK: it fails so */
    bool absent, give, nothing, twice;
    int64_t ttl_ms;           /* other than 0: hf_loading_set_ttl */
    const char *data;
    size_t size;              /* of data; 0: its length */
    _Atomic(bool) unwanted;   /* hf_loading_is_wanted said no */
    hf_status second;         /* what a second answer was told */
    hf_status forgot;
    hf_client *forgets;
    bool same;                /* it answers hf_loading_same */
    char old[16];             /* how hf_loading_old began; "-": there was none */
    size_t old_size;
    const char *tags[HF_TAGS_MAX + 1]; /* up to the first NULL */
    hf_status tagged;         /* the first error of hf_loading_tag */
};

hf_status hft_load(hf_loading *loading, void *arg); /* arg: struct hft_page */

struct hft_fetcher {
    pthread_t thread;
    _Atomic(int) tid; /* 0: it does not run yet */
    hf_client *client;
    const char *key;
    hf_fetch_options options;
    _Atomic(bool) done;
    hf_value *value;
    hf_status status;
    hf_error error;
};

/* Starts the fetch. `options` are copied. The fetcher must not move until it is joined. */
void hft_fetch(struct hft_fetcher *me, hf_client *client, const char *key, const hf_fetch_options *options);
hf_status hft_fetched(struct hft_fetcher *me); /* joins; the value is the caller's */

#endif
