/* SPDX-License-Identifier: MIT */
/* speaker.h - a server, and a client of it that speaks a dialect; and what other programs send to that server. */
#ifndef HFT_SPEAKER_H
#define HFT_SPEAKER_H

#include "tests/support/takers.h"

struct hft_speaker {
    struct hft_server *server;
    hf_client *client; /* NULL: none yet */
};

/* Set-up and tear-down of a test. */
int hft_speaker_begin(void **state);
int hft_speaker_end(void **state);
/* Opens a client, on an empty server. */
void hft_speak(struct hft_speaker *speaker, const char *dialect);

/* A command's reply, as text; until the next call. */
const char *hft_says(struct hft_speaker *speaker, const char *command);
void hft_do_all(struct hft_speaker *speaker, const char *const *commands);
#define HFT_DO(speaker, ...) hft_do_all((speaker), (const char *const[]){__VA_ARGS__, NULL})

/* The keys whose events somebody hears. Who begins to hear asks once more. */
size_t hft_watched(struct hft_speaker *speaker);
hf_lease *hft_must_take(hf_client *client); /* the lock "x" */

#endif
