/* SPDX-License-Identifier: MIT */
/* ask_origin.c - one blocking HTTP GET over a connection of its own. */
#include "ask_origin.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static FILE *dial(const char *host, const char *port)
{
    struct addrinfo *places, hints = {.ai_socktype = SOCK_STREAM};
    struct timeval patience = {.tv_sec = 10};
    FILE *stream = NULL;
    if (getaddrinfo(host, port, &hints, &places) != 0) {
        errno = EHOSTUNREACH;
        return NULL;
    }
    for (struct addrinfo *p = places; p != NULL && stream == NULL; p = p->ai_next) {
        int fd = socket(p->ai_family, p->ai_socktype | SOCK_CLOEXEC, 0);
        if (fd < 0)
            continue;
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        if (connect(fd, p->ai_addr, p->ai_addrlen) != 0 || (stream = fdopen(fd, "r")) == NULL)
            (void)close(fd);
    }
    freeaddrinfo(places);
    return stream;
}

static char *read_answer(FILE *stream, size_t *size)
{
    char line[512];
    int status = 0;
    *size = 0;
    while (fgets(line, sizeof line, stream) != NULL && line[0] != '\r') {
        (void)sscanf(line, "HTTP/1.%*d %d", &status);
        (void)sscanf(line, "Content-Length: %8zu", size);
    }
    char *body = status == 200 ? malloc(*size + 1) : NULL;
    if (body != NULL && fread(body, 1, *size, stream) == *size)
        return body;
    free(body);
    errno = EPROTO;
    return NULL;
}

char *ask_origin(const char *host, const char *port, const char *path, int64_t fence, size_t *size)
{
    char head[256], *body = NULL;
    int n = snprintf(head, sizeof head, "GET %s HTTP/1.0\r\nX-Loader: %d\r\nX-Fence: %" PRId64 "\r\n\r\n",
                     path, getpid(), fence);
    FILE *stream = dial(host, port);
    if (stream == NULL)
        return NULL;
    if (send(fileno(stream), head, (size_t)n, MSG_NOSIGNAL) == n)
        body = read_answer(stream, size);
    int why = errno;
    (void)fclose(stream);
    errno = why;
    return body;
}
