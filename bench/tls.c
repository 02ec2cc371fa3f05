/* SPDX-License-Identifier: MIT */
/* tls.c - acquire + release over TLS, beside the same in the clear at the same server. Certificates are made by openssl, from the
 * project's folder. */
#include "bench/harness.h"
#include "bench/pairs.h"
#include "bench/server.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int crews[] = {1, 16};

static void make_certificates(char folder[32])
{
    char line[96];
    (void)strcpy(folder, "/tmp/bench-tls-XXXXXX");
    if (mkdtemp(folder) == NULL)
        bench_die("no temporary folder");
    (void)snprintf(line, sizeof line, "sh tests/support/certificates.sh %s", folder);
    FILE *run = popen(line, "re");
    if (run == NULL || pclose(run) != 0)
        bench_die("no certificates (is openssl installed, and this the project's folder?)");
}

static void remove_folder(const char *folder)
{
    char line[64];
    (void)snprintf(line, sizeof line, "rm -r %s", folder);
    FILE *run = popen(line, "re");
    if (run == NULL || pclose(run) != 0)
        bench_die("cannot remove %s", folder);
}

/* The server speaks TLS on another port too; returns that. */
static int add_port(const struct bench_server *server, const char *folder)
{
    int port, fd = bench_listen(&port);
    (void)close(fd);
    redisContext *context = redisConnect("127.0.0.1", server->port);
    redisReply *reply = redisCommand(context, "CONFIG SET tls-cert-file %s/server.pem tls-key-file %s/server.key "
                                     "tls-ca-cert-file %s/ca.pem tls-auth-clients no tls-port %d", folder, folder, folder, port);
    if (reply == NULL || reply->type != REDIS_REPLY_STATUS)
        bench_die("this redis-server speaks no TLS: %s", reply != NULL ? reply->str : context->errstr);
    freeReplyObject(reply);
    redisFree(context);
    return port;
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct bench_server server;
    char folder[32], url[160], row[64];
    bench_begin(&bench, argc, argv, "tls", "acquire + release over TLS, beside the same in the clear");
    bench_server_start(&server, -1);
    make_certificates(folder);
    (void)snprintf(url, sizeof url, "rediss://127.0.0.1:%d?tls_ca_file=%s/ca.pem", add_port(&server, folder), folder);
    for (size_t i = 0; i < sizeof crews / sizeof crews[0]; i++) {
        struct bench_pairs over_tls, clear;
        bench_pairs_open(&over_tls, url, server.port, crews[i]);
        bench_pairs_open(&clear, server.url, server.port, crews[i]);
        struct bench_side ours = {"over TLS", bench_pairs_ours, &over_tls}, other = {"in the clear", bench_pairs_ours, &clear};
        (void)snprintf(row, sizeof row, crews[i] == 1 ? "1 thread" : "%d threads, a lock each", crews[i]);
        (void)bench_compare(&bench, row, "pairs/s", AT_LEAST(crews[i] == 1 ? 0.5 : 0.7), &ours, &other);
        bench_pairs_close(&over_tls);
        bench_pairs_close(&clear);
    }
    bench_server_stop(&server);
    remove_folder(folder);
    return bench_end(&bench);
}
