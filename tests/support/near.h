/* SPDX-License-Identifier: MIT */
/* near.h - a client whose values are to be near, and what it gets. A failure in here fails the test. */
#ifndef HFT_NEAR_H
#define HFT_NEAR_H

#include "tests/support/pages.h"
#include "tests/support/takers.h"

struct hft_proxy;

struct fixture {
    struct hft_server *server;
    struct hft_proxy *proxy; /* NULL: the client has none before its server */
    hf_client *client;
    struct hft_page page;
    hf_error error;
};

#define HFT_NEAR_MS 60000
#define NEAR(...)   HF_FETCH(.load = hft_load, .arg = &f->page, .near_ms = HFT_NEAR_MS, __VA_ARGS__)

hf_value *hft_near_fetch(struct fixture *f, const char *key, const hf_fetch_options *options);
hf_source hft_near_source(struct fixture *f, const char *key);
void      hft_come_near(struct fixture *f, const char *key); /* fetches until it is from memory */
hf_stats  hft_near_stats(const struct fixture *f);

#endif
