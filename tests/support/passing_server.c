/* SPDX-License-Identifier: MIT */
/* passing_server.c - see passing_server.h. */
#include "tests/support/passing_server.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

bool hft_passing_ask(const char *path, char *out, size_t room, const char *command)
{
    sigset_t pipes, before;
    (void)sigemptyset(&pipes);
    (void)sigaddset(&pipes, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &pipes, &before); /* hiredis does not ask the kernel to leave it out */
    redisContext *context = redisConnectUnixWithTimeout(path, (struct timeval){2, 0});
    redisReply *reply = context != NULL && context->err == 0 ? redisCommand(context, command) : NULL;
    bool good = reply != NULL && (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_INTEGER ||
                                  reply->type == REDIS_REPLY_STATUS);
    if (good && reply->type == REDIS_REPLY_INTEGER)
        (void)snprintf(out, room, "%lld", reply->integer);
    else if (good)
        (void)snprintf(out, room, "%s", reply->str);
    freeReplyObject(reply);
    if (context != NULL)
        redisFree(context);
    (void)sigtimedwait(&pipes, NULL, &(struct timespec){0, 0});
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return good;
}
