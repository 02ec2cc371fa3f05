/* SPDX-License-Identifier: MIT */
/* trackers.c - see trackers.h. */
#include "tests/support/trackers.h"
#include "tests/support/takers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A number out of INFO, or out of the line of CLIENT LIST that has `mark`; -1: there is none. */
static int64_t number_in(struct hft_server *server, const char *question, const char *mark, const char *field)
{
    redisReply *reply = hft_server_ask(server, question);
    int64_t number = -1;
    for (char *rest = NULL, *line = strtok_r(reply->str, "\r\n", &rest); line != NULL; line = strtok_r(NULL, "\r\n", &rest)) {
        const char *at = strstr(line, mark) != NULL ? strstr(line, field) : NULL;
        if (at != NULL)
            number = strtoll(at + strlen(field), NULL, 10);
    }
    freeReplyObject(reply);
    return number;
}

int64_t hft_tracked(struct hft_server *server)
{
    return number_in(server, "INFO stats", "", "tracking_total_keys:");
}

int64_t hft_trackers(struct hft_server *server)
{
    redisReply *reply = hft_server_ask(server, "PUBSUB NUMSUB __redis__:invalidate");
    int64_t count = reply->element[1]->integer;
    freeReplyObject(reply);
    return count;
}

static int64_t tracker_of(struct hft_server *server)
{
    return number_in(server, "CLIENT LIST TYPE normal", " flags=t", " redir=");
}

void hft_kill_first_redirecting(struct hft_server *server)
{
    redisReply *reply = hft_server_ask(server, "CLIENT LIST TYPE normal");
    long long first = 0;
    for (char *rest = NULL, *line = strtok_r(reply->str, "\r\n", &rest); line != NULL && first == 0; line = strtok_r(NULL, "\r\n", &rest))
        first = strstr(line, " flags=t") != NULL ? strtoll(line + strlen("id="), NULL, 10) : 0;
    freeReplyObject(reply);
    assert_int_equal(hft_server_ask_integer(server, "CLIENT KILL ID %lld", first), 1);
}

bool hft_is_redirected(struct hft_server *server)
{
    int64_t id = tracker_of(server);
    char mark[32];
    (void)snprintf(mark, sizeof mark, "id=%lld ", (long long)id);
    return id > 0 && number_in(server, "CLIENT LIST TYPE pubsub", mark, "id=") == id;
}

void hft_kill_tracker(struct hft_server *server)
{
    HFT_UNTIL_TRUE(hft_is_redirected(server)); /* after a kill a lane names the dead one until the next listens */
    assert_int_equal(hft_server_ask_integer(server, "CLIENT KILL ID %lld", (long long)tracker_of(server)), 1);
}
