/* SPDX-License-Identifier: MIT */
/* messages.c - see messages.h. */
#include "tests/support/messages.h"
#include "tests/support/takers.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool hft_is_heard(struct hft_server *server, const char *channel)
{
    redisReply *reply = hft_server_ask(server, "PUBSUB NUMSUB %s", channel);
    bool is = reply->elements == 2 && reply->element[1]->integer > 0;
    freeReplyObject(reply);
    return is;
}

void hft_send_message(struct hft_server *server, const char *format, ...)
{
    char message[4096], channel[64];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    (void)snprintf(channel, sizeof channel, "hf:c:%.32s", message + strlen("R hf1:"));
    HFT_UNTIL_TRUE(hft_is_heard(server, channel)); /* a client is open before its subscription is */
    if (hft_server_ask_integer(server, "PUBLISH %s %b", channel, message, (size_t)size) == 1)
        return;
    (void)fprintf(stderr, "nobody hears %s: %s\n", channel, message);
    exit(1);
}

static char *random_of(char *token)
{
    return strchr(strchr(token + 4, ':') + 1, ':') + 1;
}

void hft_other_random(char *token)
{
    char *random = random_of(token);
    *random = *random == '0' ? '1' : '0';
}

void hft_revoke(char *token)
{
    memset(random_of(token), 'f', 8);
}
