/* SPDX-License-Identifier: MIT */
/* messages.h - messages that a test publishes to a client's control channel, composed of real tokens. */
#ifndef HFT_MESSAGES_H
#define HFT_MESSAGES_H

#include "tests/support/server.h"

#include <stdbool.h>

/* True: a client is subscribed to the channel: what is published from now on is heard. */
bool hft_is_heard(struct hft_server *server, const char *channel);
/* Publishes "R hf1:..." to the client whose token follows the letter, once it is subscribed. */
void hft_send_message(struct hft_server *server, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Another token of the same grant, which nobody can have; twice gives the first one back. In place. */
void hft_other_random(char *token);
void hft_revoke(char *token); /* the one that a break leaves */

#endif
