/* SPDX-License-Identifier: MIT */
/* pair.h - the fixture of most lock tests: a server of their own, and two independent clients. */
#ifndef HFT_PAIR_H
#define HFT_PAIR_H

#include "tests/support/server.h"

#include <holdfast/holdfast.h>

struct fixture {
    struct hft_server *server;
    hf_client *a, *b;
    hf_error error;
};

int hft_pair_set_up(void **state);
int hft_pair_tear_down(void **state);
/* The lease, or the test fails with the error's message. */
hf_lease *must_take(struct fixture *f, hf_client *client, const char *name, const hf_lock_options *options);
/* Until no connection of theirs is being made: each one costs a script, which raises the fence counter. */
void hft_until_connected(struct fixture *f);
/* Until the client's subscription is confirmed, and what was renewed because of it is. */
void hft_until_it_listens(struct fixture *f, hf_client *client);

#endif
