/* SPDX-License-Identifier: MIT */
/* transport.h - bytes over a connected socket: as they are (transport.c), or by TLS (tls/connection.c). */
#ifndef HFI_TRANSPORT_H
#define HFI_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HFI_RECV_WHOLE 65536

struct hfi_tls;
struct hfi_transport;

struct hfi_connection {
    const struct hfi_transport *transport;
    int fd;              /* non-blocking, CLOEXEC; -1: none */
    uint32_t number;     /* hfi_descriptor_number */
    struct hfi_tls *tls; /* NULL: plain */
};

/* Why a connection failed, in words for a person; "": the errno says all there is to say. */
struct hfi_transport_why {
    bool denied; /* one side refused who the other is */
    char what[192], hint[160];
};

/* One thread may send while another receives; no two do the same. */
struct hfi_transport {
    /* For a connected socket. Returns 0 when bytes may flow; POLLIN or POLLOUT: call again when the socket is ready for
     * it; -1 and errno. */
    int (*start)(struct hfi_connection *connection);
    /* As send and recv on a non-blocking socket, but EINTR is retried. Never SIGPIPE. After -1 of recv and EAGAIN, and
     * after any recv with room for HFI_RECV_WHOLE bytes, nothing is left that poll() would not see. */
    ssize_t (*send)(struct hfi_connection *connection, const void *bytes, size_t size);
    ssize_t (*recv)(struct hfi_connection *connection, void *bytes, size_t size);
    /* Tells the other side that nothing more will be sent. For the thread that may send. */
    void (*finish)(struct hfi_connection *connection);
    /* After a failure of start, send or recv. */
    void (*explain)(const struct hfi_connection *connection, struct hfi_transport_why *why);
    void (*close)(struct hfi_connection *connection); /* also for HFI_NO_CONNECTION */
};

extern const struct hfi_transport hfi_plain_transport;

#define HFI_NO_CONNECTION ((struct hfi_connection){&hfi_plain_transport, -1, 0, NULL})

#endif
