/* SPDX-License-Identifier: MIT */
/* calls.h - every public call as a step that a test runs while something below it fails. */
#ifndef HFT_CALLS_H
#define HFT_CALLS_H

#include "tests/fault/fault.h"

#include <stdio.h>

struct hft_place { /* what the calls work on */
    struct hft_server *server;
    hf_client *client, *other; /* other: another process's, as it were; holds "taken" */
    hf_lease *lease;           /* made by `before`; NULL after a call that has ended the lease */
    hf_lease *taken;           /* the other's */
    hf_cancel *cancel;
    hf_client *opened;
    struct hf_conn *conn;
    FILE *out;
    int number;
    hf_error error;
};

struct hft_public_call {
    const char *name;
    bool (*before)(struct hft_place *place); /* NULL: nothing. False: it could not be prepared */
    hf_status (*call)(struct hft_place *place);
};
extern const struct hft_public_call hft_public_calls[]; /* ended by a NULL name */

void hft_place_open(struct hft_place *place);
void hft_place_tidy(struct hft_place *place); /* what a call may have left in it */
void hft_place_close(struct hft_place *place);

#endif
