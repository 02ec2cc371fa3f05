/* SPDX-License-Identifier: MIT */
/* connection.c - TLS on a socket of ours. OpenSSL never sees the socket: it reads from and writes to memory under the
 * connection's mutex, and the system calls are made outside it, so that a receiver that waits for nothing does not hold
 * up a sender. */
#include "pool/tls/tls_private.h"

#include <errno.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RECORD_MOST 16384 /* bytes of plaintext */
#define SEALED_MOST (RECORD_MOST + 256 + 5)
#define LEAST_TAKEN 4096 /* bytes received at once, where the caller's buffer is small */

static void lock(struct hfi_tls *tls)
{
    hfi_mutex_lock(&tls->mutex);
    ERR_clear_error(); /* SSL_get_error would take an error that the program left there for ours */
}

static void unlock(struct hfi_tls *tls)
{
    ERR_clear_error();
    hfi_mutex_unlock(&tls->mutex);
}

/* ---- the socket ---- */

/* Moves what OpenSSL wants to send behind what is left of it. False: no memory. */
static bool take_sealed_locked(struct hfi_tls *tls)
{
    size_t more = (size_t)BIO_pending(tls->out);
    if (more == 0)
        return true;
    if (tls->from > 0)
        memmove(tls->sealed, tls->sealed + tls->from, tls->size);
    tls->from = 0;
    if (tls->size + more > tls->capacity) {
        size_t capacity = tls->size + more > SEALED_MOST ? tls->size + more : SEALED_MOST;
        unsigned char *larger = realloc(tls->sealed, capacity);
        if (larger == NULL)
            return false;
        tls->sealed = larger;
        tls->capacity = capacity;
    }
    int taken = BIO_read(tls->out, tls->sealed + tls->size, (int)more);
    tls->size += taken > 0 ? (size_t)taken : 0;
    return true;
}

/* Returns 0 if the socket has taken all, else -1 and errno. */
static int push(struct hfi_tls *tls, int fd)
{
    while (tls->size > 0) {
        ssize_t sent = send(fd, tls->sealed + tls->from, tls->size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return -1;
        tls->from += (size_t)sent;
        tls->size -= (size_t)sent;
    }
    tls->from = 0;
    return 0;
}

/* Receives at most `size` bytes into `bytes`, and hands them to OpenSSL. As recv. */
static ssize_t pull(struct hfi_tls *tls, int fd, void *bytes, size_t size)
{
    ssize_t got;
    do
        got = recv(fd, bytes, size, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return got;
    lock(tls);
    bool kept = BIO_write(tls->in, bytes, (int)got) == got;
    unlock(tls);
    if (kept)
        return got;
    errno = ENOMEM;
    return -1;
}

/* ---- the transport ---- */

static int start(struct hfi_connection *connection)
{
    struct hfi_tls *tls = connection->tls;
    for (;;) {
        char bytes[4096];
        lock(tls);
        int done = SSL_do_handshake(tls->ssl);
        int wants = done == 1 ? SSL_ERROR_NONE : SSL_get_error(tls->ssl, done);
        if (wants != SSL_ERROR_NONE && wants != SSL_ERROR_WANT_READ)
            hfi_tls_trouble_ssl(&tls->why);
        bool memory = take_sealed_locked(tls);
        unlock(tls);
        int blocked = memory && push(tls, connection->fd) != 0 ? errno : 0;
        if (!memory || (wants != SSL_ERROR_NONE && wants != SSL_ERROR_WANT_READ)) { /* the alert is on its way */
            errno = memory ? EPROTO : ENOMEM;
            return -1;
        }
        if (blocked == EAGAIN)
            return POLLOUT;
        if (blocked == 0 && wants == SSL_ERROR_NONE) {
            tls->is_full = true; /* the other side may have said more in the same breath */
            return 0;
        }
        /* A server that refuses us says why before it hangs up, so what cannot be sent does not matter yet. */
        ssize_t got = pull(tls, connection->fd, bytes, sizeof bytes);
        if (got < 0 && errno == EAGAIN && blocked == 0)
            return POLLIN;
        if (got <= 0) {
            errno = got == 0 ? ECONNRESET : errno == EAGAIN ? blocked : errno;
            return -1;
        }
    }
}

/* The socket's part of a send may end in the middle of a record, when its plaintext is gone. The last byte of it then
 * counts as not taken, so the caller sees a full socket, as it would in the clear, and comes back with that byte. */
static ssize_t send_sealed(struct hfi_connection *connection, const void *bytes, size_t size)
{
    struct hfi_tls *tls = connection->tls;
    if (push(tls, connection->fd) != 0)
        return -1;
    if (tls->held_back) {
        tls->held_back = false;
        return 1;
    }
    int part = size < RECORD_MOST ? (int)size : RECORD_MOST;
    lock(tls);
    int done = SSL_write(tls->ssl, bytes, part);
    if (done <= 0)
        hfi_tls_trouble_ssl(&tls->why);
    bool memory = take_sealed_locked(tls);
    unlock(tls);
    if (done <= 0 || !memory) {
        errno = memory ? EPROTO : ENOMEM;
        return -1;
    }
    if (push(tls, connection->fd) == 0)
        return part;
    if (errno != EAGAIN && errno != ENOBUFS) /* as our callers: either passes */
        return -1; /* half a record is none: the server cannot read it */
    tls->held_back = true;
    return part > 1 ? part - 1 : -1;
}

/* Decrypts into `bytes`. Returns how many, 0 at the end of the stream; -1 and errno: EAGAIN, or why it failed. */
static ssize_t unseal(struct hfi_tls *tls, int fd, char *bytes, size_t size)
{
    size_t got = 0;
    int wants = SSL_ERROR_NONE;
    lock(tls);
    while (got < size && wants == SSL_ERROR_NONE) {
        int more = SSL_read(tls->ssl, bytes + got, size - got > RECORD_MOST ? RECORD_MOST : (int)(size - got));
        if (more > 0)
            got += (size_t)more;
        else
            wants = SSL_get_error(tls->ssl, more);
    }
    bool is_over = wants != SSL_ERROR_NONE && wants != SSL_ERROR_WANT_READ;
    if (is_over && wants != SSL_ERROR_ZERO_RETURN)
        hfi_tls_trouble_ssl(&tls->why);
    unlock(tls);
    tls->is_full = got == size || (got > 0 && is_over); /* the end is met again by the next call, */
    if (got > 0 && is_over)
        (void)shutdown(fd, SHUT_RD); /* and poll() sees that there is one */
    if (got > 0)
        return (ssize_t)got;
    errno = wants == SSL_ERROR_WANT_READ ? EAGAIN : EPROTO;
    return wants == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

/* Receives no more than fits into `bytes` when it is decrypted, with what OpenSSL may have of a record that is not
 * complete: then nothing stays behind where poll() would not see it. A caller with a small buffer reads until EAGAIN. */
static ssize_t recv_sealed(struct hfi_connection *connection, void *bytes, size_t size)
{
    struct hfi_tls *tls = connection->tls;
    size_t room = size < LEAST_TAKEN ? size : size > SEALED_MOST + LEAST_TAKEN ? size - SEALED_MOST : LEAST_TAKEN;
    ssize_t got = -1;
    errno = EAGAIN;
    if (tls->is_full)
        got = unseal(tls, connection->fd, bytes, size);
    while (got < 0 && errno == EAGAIN) {
        got = pull(tls, connection->fd, bytes, room);
        if (got <= 0)
            return got;
        got = unseal(tls, connection->fd, bytes, size);
    }
    return got;
}

static void finish(struct hfi_connection *connection)
{
    struct hfi_tls *tls = connection->tls;
    lock(tls);
    if (SSL_in_init(tls->ssl) == 0)
        (void)SSL_shutdown(tls->ssl);
    bool memory = take_sealed_locked(tls);
    unlock(tls);
    if (memory)
        (void)push(tls, connection->fd); /* a courtesy: a full socket goes without */
    (void)shutdown(connection->fd, SHUT_WR);
}

static void explain(const struct hfi_connection *connection, struct hfi_transport_why *why)
{
    hfi_mutex_lock(&connection->tls->mutex);
    *why = connection->tls->why;
    hfi_mutex_unlock(&connection->tls->mutex);
}

static void close_sealed(struct hfi_connection *connection)
{
    struct hfi_tls *tls = connection->tls;
    int fd = connection->fd;
    connection->fd = -1; /* before close(): a child forked in between must not close a descriptor that was reused */
    if (fd >= 0)
        (void)close(fd);
    connection->tls = NULL;
    if (tls == NULL)
        return;
    SSL_free(tls->ssl);
    ERR_clear_error();
    if (tls->sealed != NULL)
        explicit_bzero(tls->sealed, tls->capacity);
    free(tls->sealed);
    hfi_mutex_destroy(&tls->mutex);
    free(tls);
}

const struct hfi_transport hfi_tls_transport = {start, send_sealed, recv_sealed, finish, explain, close_sealed};
