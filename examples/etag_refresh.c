/* SPDX-License-Identifier: MIT */
/* etag_refresh.c - a big document is asked for by its ETag when it is old. While it is unchanged the origin says 304, and its
 * bytes do not travel: neither from the origin, nor to the server of the cache. */
#include <holdfast/holdfast.h>
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BODY = 200000, ANSWER_MAX = BODY + 1000, LOADS = 6 };

/* The origin: a small HTTP server in a thread. */
static int listener;
static struct sockaddr_in address = {.sin_family = AF_INET};
static atomic_int edition = 1, bodies; /* of the document; answers that had it */

static void *serve(void *arg)
{
    char question[1000], etag[16];
    for (int peer; (peer = accept(listener, NULL, NULL)) >= 0; (void)close(peer)) {
        ssize_t got = recv(peer, question, sizeof question - 1, 0); /* short enough to come in one piece */
        question[got > 0 ? got : 0] = 0;
        (void)snprintf(etag, sizeof etag, "\"%d\"", atomic_load(&edition));
        int is_known = strstr(question, etag) != NULL;
        (void)dprintf(peer, "HTTP/1.0 %s\r\nETag: %s\r\n\r\n", is_known ? "304 Not Modified" : "200 OK", etag);
        if (!is_known && dprintf(peer, "%0*d", BODY, atomic_load(&edition)) == BODY)
            (void)atomic_fetch_add(&bodies, 1);
    }
    return arg;
}

static int start_origin(void)
{
    pthread_t thread;
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, 8) == 0 &&
           getsockname(listener, (struct sockaddr *)&address, &size) == 0 && pthread_create(&thread, NULL, serve, NULL) == 0 &&
           pthread_detach(thread) == 0;
}

/* Reads the origin's whole answer, which has to be freed. NULL: errno says why. */
static char *ask_origin(const char *condition, size_t *size)
{
    ssize_t got = -1;
    char *answer = malloc(ANSWER_MAX + 1);
    int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (answer != NULL && connect(peer, (const struct sockaddr *)&address, sizeof address) == 0 &&
        dprintf(peer, "GET /document HTTP/1.0\r\n%s\r\n", condition) > 0)
        got = recv(peer, answer, ANSWER_MAX + 1, MSG_WAITALL); /* to its end */
    int reason = got > ANSWER_MAX ? EMSGSIZE : errno;
    (void)close(peer);
    if (got >= 0 && got <= ANSWER_MAX) {
        answer[*size = (size_t)got] = 0;
        return answer;
    }
    free(answer);
    errno = reason;
    return NULL;
}

/* The value is the answer with its head: whoever loads next, on whatever machine, has the ETag to ask with. */
static hf_status load(hf_loading *loading, void *arg)
{
    size_t size;
    char condition[100] = "", etag[64];
    const char *old = hf_loading_old(loading, NULL), *line = old != NULL ? strstr(old, "\r\nETag: ") : NULL;
    (void)arg;
    if (line != NULL && sscanf(line, " ETag: %63s", etag) == 1)
        (void)snprintf(condition, sizeof condition, "If-None-Match: %s\r\n", etag);
    char *answer = ask_origin(condition, &size);
    if (answer == NULL)
        return hf_loading_fail(loading, errno, "the origin does not answer"); /* an old value goes on being given out */
    if (strncmp(answer, "HTTP/1.0 200", 12) == 0)
        return hf_loading_give(loading, answer, size, free);
    int is_unchanged = strncmp(answer, "HTTP/1.0 304", 12) == 0;
    free(answer);
    return is_unchanged ? hf_loading_same(loading) : hf_loading_fail(loading, EPROTO, "the origin has no document");
}

int main(void)
{
    hf_client *client;
    hf_error error = {.message = "no origin"};
    (void)signal(SIGPIPE, SIG_IGN);
    if (!start_origin() || hf_client_open(NULL, NULL, &client, &error) != HF_OK) {
        (void)fprintf(stderr, "%s\n%s\n", error.message, error.hint);
        return 1;
    }
    int right = 0;
    hf_status status = hf_fetch_forget(client, "page:/document", &error); /* of an earlier run */
    for (int i = 0; i < LOADS && status == HF_OK; i++) {
        hf_value *page;
        status = hf_fetch(client, "page:/document", HF_FETCH(.load = load, .ttl_ms = 100, .stale_ms = 60000), &page, &error);
        if (status != HF_OK)
            break;
        right += page->source == HF_LOADED && page->stored && atoi((const char *)page->data + page->size - 9) == atomic_load(&edition);
        int64_t ms = page->fresh_ms + 1; /* until it is old */
        hf_value_free(page);
        (void)nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
        atomic_store(&edition, i < LOADS / 2 ? 1 : 2);
    }
    if (status != HF_OK)
        (void)fprintf(stderr, "%s\n%s\n", error.message, error.hint);
    hf_stats stats;
    hf_client_stats(client, &stats);
    (void)hf_client_close(client, NULL);
    (void)printf("%d loads: %d got the document, %d got \"304\" instead\n", LOADS, atomic_load(&bodies), (int)stats.loads_same);
    return right != LOADS || atomic_load(&bodies) != 2 || stats.loads_same != LOADS - 2;
}
