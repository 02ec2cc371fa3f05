/* SPDX-License-Identifier: MIT */
/* pair.c - see pair.h. */
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

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
