/* SPDX-License-Identifier: MIT */
/* stampede_server.c - a web server, a thread per connection; the whole fleet loads a page once. */
#include "demo/ask_origin.h"
#include <arpa/inet.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <holdfast/holdfast.h>
#include <holdfast/redis.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { FAILED = 0, STATS = HF_LOCAL + 1 }; /* besides the hf_source of a page */
static const char *const sources[] = {"FAILED", "CACHED", "LOADED", "SHARED", "STALE", "LOCAL", "STATS"};
static atomic_ullong answers[STATS + 1];
static const char *host, *port; /* of the origin */
static hf_client *client;
static long long ttl_ms;
static bool no_lock;

/* Runs in one thread of one process, while all others that want the page wait for it. */
static hf_status load_page(hf_loading *loading, void *arg)
{
    (void)arg;
    size_t size;
    int64_t fence = hf_lease_fence(hf_loading_lease(loading));
    char *page = ask_origin(host, port, hf_loading_key(loading), fence, &size);
    return page ? hf_loading_give(loading, page, size, free) : hf_loading_fail(loading, errno, "no answer");
}

/* Sends the data, and calls done(owner) once it is sent or never will be. */
static enum MHD_Result answer(struct MHD_Connection *to, int source, void *data, size_t size,
                              void (*done)(void *), void *owner)
{
    struct MHD_Response *r = MHD_create_response_from_buffer_with_free_callback_cls(size, data, done, owner);
    (void)MHD_add_response_header(r, "X-Source", sources[source]);
    enum MHD_Result result = MHD_queue_response(to, source == FAILED ? 503 : 200, r);
    MHD_destroy_response(r);
    atomic_fetch_add(&answers[source], 1);
    return result;
}

/* A page's path is its key in Redis, too. */
static enum MHD_Result serve_page(struct MHD_Connection *to, const char *path)
{
    hf_value *value;
    hf_error error;
    if (no_lock) { /* what hf_fetch replaces: GET, load, SET */
        size_t size = 0;
        redisReply *reply = NULL;
        if (hf_command(client, &reply, NULL, "GET %s", path) == HF_OK && reply->type == REDIS_REPLY_STRING)
            return answer(to, HF_CACHED, reply->str, (size_t)reply->len, freeReplyObject, reply);
        freeReplyObject(reply);
        char *page = ask_origin(host, port, path, 0, &size);
        if (page && hf_command(client, &reply, NULL, "SET %s %b PX %lld", path, page, size, ttl_ms) == HF_OK)
            freeReplyObject(reply);
        return answer(to, page ? HF_LOADED : FAILED, page, page ? size : 0, free, page);
    }
    if (hf_fetch(client, path, HF_FETCH(.load = load_page, .ttl_ms = ttl_ms), &value, &error) == HF_OK)
        return answer(to, (int)value->source, (void *)value->data, value->size, hf_value_free, value);
    char *why = strdup(error.message);
    return answer(to, FAILED, why, strlen(error.message), free, why);
}

static enum MHD_Result serve_stats(struct MHD_Connection *to)
{
    hf_stats now;
    char *text = NULL;
    atomic_ullong *n = answers;
    hf_client_stats(client, &now);
    int size = asprintf(&text,
                        "failed %llu cached %llu loaded %llu shared %llu stale %llu local %llu waiting %ju "
                        "held %ju acquired %ju lost %ju commands %ju\n",
                        n[0], n[1], n[2], n[3], n[4], n[5], now.waiting, now.held, now.acquired, now.lost,
                        now.remote_commands);
    return answer(to, STATS, text, size > 0 ? (size_t)size : 0, free, text);
}

static enum MHD_Result serve(void *arg, struct MHD_Connection *to, const char *url, const char *method,
                             const char *version, const char *upload, size_t *upload_size, void **state)
{
    (void)arg, (void)method, (void)version, (void)upload, (void)upload_size;
    if (*state == NULL) { /* only the head has come: an answer now would end the connection */
        *state = to;
        return MHD_YES;
    }
    size_t fine = strspn(url, "/abcdefghijklmnopqrstuvwxyz0123456789-");
    bool is_page = strncmp(url, "/page/", 6) == 0 && url[fine] == '\0' && fine < 70;
    return is_page ? serve_page(to, url) : serve_stats(to);
}

int main(int argc, char **argv)
{
    hf_error error;
    sigset_t end;
    no_lock = argc > 1 && strcmp(argv[1], "--no-lock") == 0;
    argv += no_lock;
    if (argc - no_lock != 6)
        return fputs("usage: stampede_server [--no-lock] PORT REDIS ORIGIN_HOST ORIGIN_PORT TTL_MS\n",
                     stderr),
               64;
    host = argv[3], port = argv[4], ttl_ms = atoll(argv[5]);
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigprocmask(SIG_BLOCK, &end, NULL);
    if (hf_client_open(argv[2], NULL, &client, &error) != HF_OK)
        return fprintf(stderr, "%s\n%s\n", error.message, error.hint), 1;
    struct sockaddr_in here = {AF_INET, htons((uint16_t)atoi(argv[1])), {htonl(INADDR_LOOPBACK)}, {0}};
    struct MHD_Daemon *web = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0, NULL, NULL, serve,
        NULL, MHD_OPTION_SOCK_ADDR, &here, MHD_OPTION_THREAD_STACK_SIZE, (size_t)256 * 1024, MHD_OPTION_END);
    if (web == NULL)
        return perror(argv[1]), 1;
    sigwait(&end, &(int){0});
    MHD_stop_daemon(web);
    return hf_client_close(client, &error) == HF_OK ? 0 : 1;
}
