/* SPDX-License-Identifier: MIT */
/* messages.h - messages that a test publishes to a client's control channel, composed of real tokens. */
#ifndef HFT_MESSAGES_H
#define HFT_MESSAGES_H

#include "tests/support/server.h"

/* Publishes "R hf1:..." to the client whose token follows the letter; that client must be subscribed. */
void hft_send_message(struct hft_server *server, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Another token of the same grant, as a break leaves it. In place. */
void hft_other_random(char *token);

#endif
