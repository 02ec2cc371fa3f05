/* SPDX-License-Identifier: MIT */
/* borrow_sealed.c - a borrowed connection of TLS. From 1.0 on hiredis reads and writes by a table of functions, and ours
 * go through the connection's transport; before, it has no such table. */
#include "pool/borrow_private.h"
#include "base/poll.h"

#include <hiredis/hiredis.h>

#if HIREDIS_MAJOR < 1
void hfi_borrow_seal(struct hfi_borrowed *borrowed)
{
    (void)borrowed;
}
#else
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* As long as redisSetTimeout says, which sets it at the socket. */
static bool wait_ready(const struct redisContext *context, short events)
{
    struct timeval most = {0};
    socklen_t size = sizeof most;
    struct pollfd ready = {context->fd, events, 0};
    (void)getsockopt(context->fd, SOL_SOCKET, events == POLLIN ? SO_RCVTIMEO : SO_SNDTIMEO, &most, &size);
    int64_t ms = (int64_t)most.tv_sec * 1000 + (most.tv_usec + 999) / 1000;
    int64_t until_ns = ms > 0 ? hfi_after_ms(hfi_now(&hfi_boottime), ms) : HFI_NEVER;
    if (hfi_poll_until(&ready, 1, &hfi_boottime, until_ns) > 0)
        return true;
    errno = EAGAIN;
    return false;
}

/* `done`: by recv or send. True: it is to be called again. Else *done is what hiredis is to be told. */
static bool goes_on(struct redisContext *context, short events, ssize_t *done)
{
    bool blocks = (context->flags & REDIS_BLOCK) != 0, is_full = *done < 0 && errno == EAGAIN;
    if (*done > 0 || (is_full && blocks && wait_ready(context, events)))
        return *done < 0;
    if (is_full && !blocks) {
        *done = 0;
        return false;
    }
    context->err = *done == 0 ? REDIS_ERR_EOF : REDIS_ERR_IO;
    char text[sizeof context->errstr];
    const char *why = *done == 0 ? "Server closed the connection" : strerror_r(errno, text, sizeof text);
    (void)snprintf(context->errstr, sizeof context->errstr, "%s", why);
    *done = -1;
    return false;
}

static ssize_t receive(struct redisContext *context, char *bytes, size_t size)
{
    struct hfi_borrowed *borrowed = context->privctx;
    ssize_t got;
    do
        got = borrowed->connection.transport->recv(&borrowed->connection, bytes, size);
    while (goes_on(context, POLLIN, &got));
    return got;
}

static ssize_t transmit(struct redisContext *context)
{
    struct hfi_borrowed *borrowed = context->privctx;
    ssize_t sent;
    do
        sent = borrowed->connection.transport->send(&borrowed->connection, context->obuf, sdslen(context->obuf));
    while (goes_on(context, POLLOUT, &sent));
    return sent;
}

void hfi_borrow_seal(struct hfi_borrowed *borrowed)
{
    static const redisContextFuncs sealed = {.read = receive, .write = transmit}; /* we close it ourselves */
    borrowed->context->funcs = &sealed;
    borrowed->context->privctx = borrowed;
}
#endif
