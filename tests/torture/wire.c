/* SPDX-License-Identifier: MIT */
/* wire.c - see wire.h. A line of MONITOR: 1700000000.123456 [0 127.0.0.1:5000] "SET" "key" ...; what a script runs
 * has "lua" for an address. */
#include "tests/torture/wire.h"

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SET_KEY "\"SET\" \"hf:{torture:0}\""
#define DEL_KEY "\"DEL\" \"hf:{torture:0}\""

static void give_up(const char *what)
{
    (void)fprintf(stderr, "torture: MONITOR: %s\n", what);
    exit(1);
}

static void count(struct hft_wire *wire, const char *line)
{
    const char *command = strchr(line, ']');
    if (command == NULL)
        return;
    command += 2;
    bool by_script = strncmp(command - 6, " lua]", 5) == 0;
    wire->commands += !by_script;
    if (strncasecmp(command, SET_KEY, sizeof SET_KEY - 1) == 0 && !by_script) {
        wire->acquires++;
        wire->again += wire->held;
        wire->held = 1;
    } else if (strncasecmp(command, DEL_KEY, sizeof DEL_KEY - 1) == 0) {
        wire->held = 0;
    }
}

void hft_wire_open(struct hft_wire *wire, struct hft_server *server)
{
    *wire = (struct hft_wire){.context = redisConnectUnix(hft_server_socket(server))};
    if (wire->context == NULL || wire->context->err != 0)
        give_up("no connection");
    redisReply *reply = redisCommand(wire->context, "MONITOR");
    if (reply == NULL || reply->type != REDIS_REPLY_STATUS)
        give_up("refused");
    freeReplyObject(reply);
}

void hft_wire_read(struct hft_wire *wire)
{
    struct pollfd ready = {.fd = wire->context->fd, .events = POLLIN};
    while (poll(&ready, 1, 0) == 1) {
        void *reply = NULL;
        if (redisBufferRead(wire->context) != REDIS_OK)
            give_up(wire->context->errstr);
        while (redisGetReplyFromReader(wire->context, &reply) == REDIS_OK && reply != NULL) {
            count(wire, ((redisReply *)reply)->str);
            freeReplyObject(reply);
        }
    }
}

void hft_wire_close(struct hft_wire *wire)
{
    if (wire->context != NULL)
        redisFree(wire->context);
    wire->context = NULL;
}
