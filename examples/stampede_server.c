/* SPDX-License-Identifier: MIT */
/* stampede_server.c - a web server, a thread per connection; the whole fleet loads a page once. */
#include "demo/ask_origin.h"
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <hiredis/hiredis.h>
#include <holdfast/holdfast.h>
#include <holdfast/redis.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { FAILED = 0, STATS = HF_NEAR + 1 }; /* besides the hf_source of a page */
static const char *const sources[] = {"FAILED", "CACHED", "LOADED", "SHARED", "STALE", "LOCAL", "NEAR", "STATS"};
static atomic_ullong sent[STATS + 1];
static const char *origin[2]; /* its host and port; a loader thread gets a copy of the array, the strings are main's */
static hf_client *client;
static int ttl_ms, near, aside, no_lock;

/* Runs in one thread of one process, while all others that want the page wait for it, or (--aside) get the old one. */
static hf_status load_page(hf_loading *loading, void *arg)
{
    size_t size;
    const char *const *from = arg;
    int64_t fence = hf_lease_fence(hf_loading_lease(loading));
    char *page = ask_origin(from[0], from[1], hf_loading_key(loading), fence, &size);
    return page ? hf_loading_give(loading, page, size, free) : hf_loading_fail(loading, errno, "no answer");
}

/* Sends the data, and calls done(owner) once it is sent or never will be. */
static enum MHD_Result answer(struct MHD_Connection *to, int source, void *data, size_t size, void (*done)(void *), void *owner)
{
    struct MHD_Response *r = MHD_create_response_from_buffer_with_free_callback_cls(size, data, done, owner);
    (void)MHD_add_response_header(r, "X-Source", sources[source]);
    enum MHD_Result result = MHD_queue_response(to, source == FAILED ? 503 : 200, r);
    MHD_destroy_response(r);
    atomic_fetch_add(&sent[source], 1);
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
        char *page = ask_origin(origin[0], origin[1], path, 0, &size);
        if (page && hf_command(client, &reply, NULL, "SET %s %b PX %d", path, page, size, ttl_ms) == HF_OK)
            freeReplyObject(reply);
        return answer(to, page ? HF_LOADED : FAILED, page, page ? size : 0, free, page);
    }
    const hf_fetch_options *how =
        HF_FETCH(.load = load_page, .arg = origin, .arg_size = sizeof origin, .ttl_ms = ttl_ms, .near_ms = near ? ttl_ms : 0,
                 .stale_ms = aside ? ttl_ms : 0, .early = aside, .where = aside ? HF_REFRESH_ASIDE : HF_LOAD_HERE);
    if (hf_fetch(client, path, how, &value, &error) == HF_OK)
        return answer(to, (int)value->source, (void *)value->data, value->size, hf_value_free, value);
    char *why = strdup(error.message);
    return answer(to, FAILED, why, strlen(error.message), free, why);
}

static enum MHD_Result serve_stats(struct MHD_Connection *to)
{
    hf_stats s;
    char *text = NULL;
    hf_client_stats(client, &s);
    int size = asprintf(&text,
                        "failed %llu cached %llu loaded %llu shared %llu stale %llu local %llu near %llu "
                        "waiting %ju acquired %ju lost %ju commands %ju\n",
                        sent[0], sent[1], sent[2], sent[3], sent[4], sent[5], sent[6], s.waiting, s.acquired, s.lost, s.remote_commands);
    return answer(to, STATS, text, size > 0 ? (size_t)size : 0, free, text);
}

static enum MHD_Result serve(void *arg, struct MHD_Connection *to, const char *url, const char *method, const char *version,
                             const char *upload, size_t *upload_size, void **state)
{
    (void)arg, (void)method, (void)version, (void)upload, (void)upload_size;
    if (*state == NULL) /* only the head has come: an answer now would end the connection */
        return *state = to, MHD_YES;
    bool is_fine = url[strspn(url, "/abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0' && strlen(url) < 70;
    if (is_fine && strncmp(url, "/forget/", 8) == 0) /* a purge: /forget/page/hot */
        return answer(to, hf_fetch_forget(client, url + 7, NULL) == HF_OK ? STATS : FAILED, NULL, 0, free, NULL);
    return is_fine && strncmp(url, "/page/", 6) == 0 ? serve_page(to, url) : serve_stats(to);
}

int main(int argc, char **argv)
{
    hf_error error;
    sigset_t end;
    int flag = 0;
    const struct option flags[] = {{"near", 0, &near, 1}, {"aside", 0, &aside, 1}, {"no-lock", 0, &no_lock, 1}, {0}};
    while (flag == 0)
        flag = getopt_long(argc, argv, "+", flags, NULL);
    argv += optind - 1;
    if (flag != -1 || argc - optind != 5)
        return fputs("usage: stampede_server [--near] [--aside] [--no-lock] PORT REDIS ORIGIN_HOST ORIGIN_PORT TTL_MS\n", stderr), 64;
    origin[0] = argv[3], origin[1] = argv[4], ttl_ms = atoi(argv[5]);
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigprocmask(SIG_BLOCK, &end, NULL);
    if (hf_client_open(argv[2], NULL, &client, &error) != HF_OK)
        return fprintf(stderr, "%s\n%s\n", error.message, error.hint), 1;
    struct sockaddr_in here = {AF_INET, htons((uint16_t)atoi(argv[1])), {htonl(INADDR_LOOPBACK)}, {0}};
    struct MHD_Daemon *web =
        MHD_start_daemon(MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0, NULL, NULL, serve, NULL,
                         MHD_OPTION_SOCK_ADDR, &here, MHD_OPTION_THREAD_STACK_SIZE, (size_t)256 * 1024, MHD_OPTION_END);
    if (web == NULL)
        return perror(argv[1]), 1;
    sigwait(&end, &(int){0});
    MHD_stop_daemon(web);
    return hf_client_close(client, &error) == HF_OK ? 0 : 1;
}
