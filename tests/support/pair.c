/* SPDX-License-Identifier: MIT */
/* pair.c - see pair.h. */
#include "tests/support/pair.h"
#include "tests/support/lock_lanes.h"
#include "tests/support/messages.h"
#include "tests/support/takers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

int hft_pair_set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->server = hft_server_start(NULL);
    f->a = hft_client(f->server, NULL);
    f->b = hft_client(f->server, NULL);
    *state = f;
    return 0;
}

int hft_pair_tear_down(void **state)
{
    struct fixture *f = *state;
    int wrong = !hft_closes(f->server, f->a, &f->error);
    wrong += !hft_closes(f->server, f->b, &f->error);
    hft_server_stop(f->server);
    free(f);
    return -wrong;
}

hf_lease *must_take(struct fixture *f, hf_client *client, const char *name, const hf_lock_options *options)
{
    hf_lease *lease;
    if (hf_lock_acquire(client, name, options, &lease, &f->error) != HF_OK)
        fail_msg("%s", f->error.message);
    return lease;
}

void hft_until_connected(struct fixture *f)
{
    HFT_UNTIL_TRUE(hft_is_connected(f->a) && hft_is_connected(f->b));
}

void hft_until_it_listens(struct fixture *f, hf_client *client)
{
    char token[200], channel[64];
    hf_lease *lease = must_take(f, client, "any", NULL);
    hft_held_by(f->server, "any", token, sizeof token);
    (void)snprintf(channel, sizeof channel, "hf:c:%.32s", token + strlen("hf1:"));
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    HFT_UNTIL_TRUE(hft_is_heard(f->server, channel));
    lease = must_take(f, client, "any", NULL); /* its answer comes after the confirmation */
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}
