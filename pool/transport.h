/* SPDX-License-Identifier: MIT */
/* transport.h - bytes over a connection. A plain socket today; TLS on the same socket is one more table. */
#ifndef HFI_TRANSPORT_H
#define HFI_TRANSPORT_H

#include <stddef.h>
#include <sys/types.h>

struct hfi_transport;

struct hfi_connection {
    const struct hfi_transport *transport;
    int fd; /* non-blocking, CLOEXEC; -1: none */
};

struct hfi_transport {
    /* For a connected socket. Returns 0 when bytes may flow; POLLIN or POLLOUT: call again when the socket is ready for
     * it; -1 and errno. */
    int (*start)(struct hfi_connection *connection);
    /* As send and recv on a non-blocking socket, but EINTR is retried. Never SIGPIPE. */
    ssize_t (*send)(struct hfi_connection *connection, const void *bytes, size_t size);
    ssize_t (*recv)(struct hfi_connection *connection, void *bytes, size_t size);
    void (*close)(struct hfi_connection *connection); /* also for HFI_NO_CONNECTION */
};

extern const struct hfi_transport hfi_plain_transport;

#define HFI_NO_CONNECTION ((struct hfi_connection){&hfi_plain_transport, -1})

#endif
