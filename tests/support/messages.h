/* SPDX-License-Identifier: MIT */
/* messages.h - what anybody may publish to a client's control channel: made up by tests from tokens that are real. */
#ifndef HFT_MESSAGES_H
#define HFT_MESSAGES_H

#include "tests/support/server.h"

/* "R hf1:..." to the client that the token after the letter is of; it must be listening. */
void hft_say(struct hft_server *server, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Another token of the same grant, as a break leaves it. In place. */
void hft_other_random(char *token);

#endif
