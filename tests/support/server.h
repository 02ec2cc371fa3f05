/* SPDX-License-Identifier: MIT */
/* server.h - a real redis-server of a test's own, on a unix socket in a temporary folder. Both are gone when the
 * test has ended, however it ends. A failure in here ends the test program with a message. With HFT_TLS in the
 * environment each of them is one of hft_server_start_tls. */
#ifndef HFT_SERVER_H
#define HFT_SERVER_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct hft_server;

/* Start it from the main thread: the kernel ends the server with the thread that started it. `config`: further lines
 * of redis.conf, "maxmemory 10mb\nnotify-keyspace-events KEA"; NULL: none. */
struct hft_server *hft_server_start(const char *config);
struct hft_server *hft_server_start_tcp(const char *config); /* also on a free port of 127.0.0.1; the url says so */
/* On a free port of 127.0.0.1 that speaks TLS alone, and on the socket in the clear. The files of
 * tests/support/certificates.sh are in its folder; its own certificate is `identity`, "server" or another one of them.
 * The url names the CA. */
struct hft_server *hft_server_start_tls(const char *identity, const char *config);
/* A sentinel, on a port and a socket of its own; `config` has its "sentinel ..." lines. */
struct hft_server *hft_server_start_sentinel(const char *config);

const char *hft_server_socket(const struct hft_server *server);
const char *hft_server_url(const struct hft_server *server);    /* "unix:///tmp/...", "redis://127.0.0.1:6401", "rediss://..." */
const char *hft_server_folder(const struct hft_server *server);
int         hft_server_port(const struct hft_server *server);   /* 0: unix socket only */
int         hft_free_port(void);                                /* of 127.0.0.1, a moment ago */
pid_t       hft_server_pid(const struct hft_server *server);    /* 0 while killed */

void hft_server_freeze(struct hft_server *server);  /* SIGSTOP */
void hft_server_thaw(struct hft_server *server);    /* SIGCONT */
bool hft_server_was_silent(const struct hft_server *server); /* frozen at least once */
void hft_server_kill(struct hft_server *server);    /* SIGKILL, reaped */
void hft_server_restart(struct hft_server *server); /* kills if it runs; the same addresses, nothing remembered */
/* The same, and from now on its clock of the day is so much ahead of the machine's. */
void hft_server_restart_ahead(struct hft_server *server, int64_t ms);
void hft_server_stop(struct hft_server *server);    /* kills, removes the folder, frees; NULL is a no-op */

/* Sends one command on the server's own test connection, for asserts. One thread at a time. Never NULL; the caller
 * frees it with freeReplyObject. */
redisReply *hft_server_ask(struct hft_server *server, const char *format, ...);
int64_t     hft_server_ask_integer(struct hft_server *server, const char *format, ...); /* the reply must be one */
/* A PING by a connection of its own is answered by an error that begins so. */
bool        hft_server_refuses(const struct hft_server *server, const char *word);
/* The number of times that the server ran a command ("set"; NULL: any) since its start or CONFIG RESETSTAT, by its
 * own count (INFO commandstats). Commands run by scripts are counted too. */
int64_t     hft_server_calls(struct hft_server *server, const char *command);

#endif
