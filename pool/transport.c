/* SPDX-License-Identifier: MIT */
/* transport.c - the plain socket. */
#include "pool/transport.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static int plain_start(struct hfi_connection *connection)
{
    (void)connection;
    return 0;
}

static ssize_t plain_send(struct hfi_connection *connection, const void *bytes, size_t size)
{
    ssize_t sent;
    do
        sent = send(connection->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent;
}

static ssize_t plain_recv(struct hfi_connection *connection, void *bytes, size_t size)
{
    ssize_t got;
    do
        got = recv(connection->fd, bytes, size, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    return got;
}

static void plain_finish(struct hfi_connection *connection)
{
    (void)shutdown(connection->fd, SHUT_WR);
}

static void plain_explain(const struct hfi_connection *connection, struct hfi_transport_why *why)
{
    (void)connection;
    *why = (struct hfi_transport_why){0};
}

static void plain_close(struct hfi_connection *connection)
{
    int fd = connection->fd;
    connection->fd = -1; /* before close(): a child forked in between must not close a descriptor that was reused */
    if (fd >= 0)
        (void)close(fd);
}

const struct hfi_transport hfi_plain_transport = {plain_start,  plain_send,    plain_recv,
                                                 plain_finish, plain_explain, plain_close};
