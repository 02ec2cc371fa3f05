/* SPDX-License-Identifier: MIT */
/* server.c - see server.h. PR_SET_PDEATHSIG ends the server with the test; a waiting shell, the keeper, removes the
 * folder when the test's end of its pipe says so or breaks. */
#include "tests/support/server.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define READY_MS 20000
#define ASK_S    20

struct hft_server {
    struct hft_server *next; /* of those to stop at exit */
    char folder[64], socket[80], config_path[80], log_path[80], url[160];
    const char *identity; /* of a server that speaks TLS at its port; else NULL */
    bool is_sentinel;
    int port;
    bool frozen, was_silent;
    int64_t ahead_ms;
    pid_t owner, pid, keeper;
    int keeper_pipe;
    redisContext *asking;
};

static struct hft_server *running;

__attribute__((format(printf, 2, 3), noreturn)) static void give_up(const struct hft_server *server,
                                                                    const char *format, ...)
{
    char line[256];
    va_list words;
    va_start(words, format);
    (void)vfprintf(stderr, format, words);
    va_end(words);
    (void)fputc('\n', stderr);
    FILE *log = server != NULL ? fopen(server->log_path, "re") : NULL;
    while (log != NULL && fgets(line, sizeof line, log) != NULL)
        (void)fputs(line, stderr);
    if (log != NULL)
        (void)fclose(log);
    exit(1);
}

static void pause_ms(long ms)
{
    struct timespec length = {ms / 1000, ms % 1000 * 1000000};
    (void)nanosleep(&length, NULL);
}

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void unblock_signals(void)
{
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static void start_keeper(struct hft_server *server)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        give_up(NULL, "pipe: %s", strerror(errno));
    server->keeper = fork();
    if (server->keeper < 0)
        give_up(NULL, "fork: %s", strerror(errno));
    if (server->keeper == 0) {
        (void)dup2(ends[0], 0);
        (void)setsid(); /* a Ctrl-C at the terminal ends the test, but not the keeper that cleans up behind it */
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC); /* or ctest would wait for our copy of its pipe */
        (void)dup2(nowhere, 1);
        (void)dup2(nowhere, 2);
        (void)close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
        (void)execl("/bin/sh", "sh", "-c", "read -r line; rm -rf -- \"$1\"", "keeper", server->folder, (char *)0);
        _exit(127);
    }
    (void)close(ends[0]);
    server->keeper_pipe = ends[1];
}

static void end_keeper(struct hft_server *server)
{
    if (write(server->keeper_pipe, "\n", 1) != 1)
        (void)fprintf(stderr, "the keeper of %s is gone\n", server->folder);
    (void)close(server->keeper_pipe);
    while (waitpid(server->keeper, NULL, 0) < 0 && errno == EINTR)
        ;
}

int hft_free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        give_up(NULL, "no free port: %s", strerror(errno));
    (void)close(fd);
    return ntohs(address.sin_port);
}

static void write_config(const struct hft_server *server, const char *config)
{
    FILE *file = fopen(server->config_path, "we");
    if (file == NULL)
        give_up(NULL, "%s: %s", server->config_path, strerror(errno));
    if (server->identity != NULL)
        (void)fprintf(file, "tls-port %d\ntls-ca-cert-file %s/of_clients.pem\ntls-cert-file %s/%s.pem\ntls-key-file %s/%s.key\n"
                      "tls-auth-clients optional\n", server->port, server->folder, server->folder, server->identity,
                      server->folder, server->identity);
    (void)fprintf(file,
                  "port %d\nbind 127.0.0.1\nunixsocket %s\nunixsocketperm 700\ndir %s\nlogfile %s\n"
                  "save \"\"\nappendonly no\ndaemonize no\n%s\n",
                  server->identity != NULL ? 0 : server->port, server->socket, server->folder, server->log_path,
                  config != NULL ? config : "");
    if (fclose(file) != 0)
        give_up(NULL, "%s: %s", server->config_path, strerror(errno));
}

static bool is_ready(const struct hft_server *server)
{
    struct timeval limit = {ASK_S, 0};
    redisContext *context = redisConnectUnixWithTimeout(server->socket, limit);
    bool ready = false;
    if (context != NULL && context->err == 0) {
        (void)redisSetTimeout(context, limit);
        redisReply *reply = redisCommand(context, "PING");
        /* An error is an answer too (NOAUTH), unless it announces a better answer later (LOADING). */
        ready = reply != NULL && !(reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "LOADING", 7) == 0);
        if (reply != NULL)
            freeReplyObject(reply);
    }
    if (context != NULL)
        redisFree(context);
    return ready;
}

static void be_ahead(int64_t ms)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%lld", (long long)ms);
    (void)setenv("HFT_AHEAD_MS", text, 1);
    (void)setenv("LD_PRELOAD", HFT_AHEAD, 1);
}

static void run(struct hft_server *server)
{
    pid_t parent = getpid();
    (void)unlink(server->socket); /* a killed server leaves its socket */
    server->pid = fork();
    if (server->pid < 0)
        give_up(NULL, "fork: %s", strerror(errno));
    if (server->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(127);
        unblock_signals();
        if (server->ahead_ms != 0)
            be_ahead(server->ahead_ms);
        (void)dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
        int log = open(server->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        (void)dup2(log, 1); /* what it says before it opens its log: mistakes in the configuration */
        (void)dup2(log, 2);
        (void)close_range(3, ~0U, CLOSE_RANGE_CLOEXEC); /* hiredis' own sockets are not CLOEXEC */
        (void)execlp("redis-server", "redis-server", server->config_path, server->is_sentinel ? "--sentinel" : (char *)0,
                     (char *)0);
        _exit(127);
    }
    for (int64_t until = now_ms() + READY_MS; !is_ready(server); pause_ms(2)) {
        int status;
        if (waitpid(server->pid, &status, WNOHANG) == server->pid)
            give_up(server, "redis-server ended at its start (status %d; is it installed?)", status);
        if (now_ms() > until)
            give_up(server, "redis-server did not answer within %d ms", READY_MS);
    }
}

static void stop_all(void)
{
    while (running != NULL && running->owner == getpid())
        hft_server_stop(running);
}

static void make_certificates(const struct hft_server *server)
{
    int status = -1;
    pid_t maker = fork();
    if (maker == 0) {
        unblock_signals();
        (void)execl("/bin/sh", "sh", HFT_SOURCE "/tests/support/certificates.sh", server->folder, (char *)0);
        _exit(127);
    }
    if (maker < 0 || waitpid(maker, &status, 0) != maker || status != 0)
        give_up(NULL, "no certificates (status %d; is openssl installed?)", status);
}

static struct hft_server *start(const char *config, bool tcp, const char *identity, bool is_sentinel)
{
    static bool registered;
    struct hft_server *server = calloc(1, sizeof *server);
    if (identity == NULL && getenv("HFT_TLS") != NULL && !is_sentinel) {
        identity = "server";
        tcp = true;
    }
    if (server == NULL)
        give_up(NULL, "no memory for a server");
    (void)strcpy(server->folder, "/tmp/holdfast-test-XXXXXX");
    if (mkdtemp(server->folder) == NULL)
        give_up(NULL, "mkdtemp %s: %s", server->folder, strerror(errno));
    (void)snprintf(server->socket, sizeof server->socket, "%s/redis.sock", server->folder);
    (void)snprintf(server->config_path, sizeof server->config_path, "%s/redis.conf", server->folder);
    (void)snprintf(server->log_path, sizeof server->log_path, "%s/redis.log", server->folder);
    server->owner = getpid();
    server->identity = identity;
    server->is_sentinel = is_sentinel;
    server->port = tcp ? hft_free_port() : 0;
    if (identity != NULL)
        (void)snprintf(server->url, sizeof server->url, "rediss://127.0.0.1:%d?tls_ca_file=%s/ca.pem", server->port,
                       server->folder);
    else if (tcp)
        (void)snprintf(server->url, sizeof server->url, "redis://127.0.0.1:%d", server->port);
    else
        (void)snprintf(server->url, sizeof server->url, "unix://%s", server->socket);
    start_keeper(server);
    server->next = running;
    running = server;
    if (!registered)
        (void)atexit(stop_all);
    registered = true;
    if (identity != NULL)
        make_certificates(server);
    write_config(server, config);
    run(server);
    return server;
}

struct hft_server *hft_server_start(const char *config)
{
    return start(config, false, NULL, false);
}

struct hft_server *hft_server_start_tcp(const char *config)
{
    return start(config, true, NULL, false);
}

struct hft_server *hft_server_start_tls(const char *identity, const char *config)
{
    return start(config, true, identity, false);
}

struct hft_server *hft_server_start_sentinel(const char *config)
{
    return start(config, true, NULL, true);
}

const char *hft_server_socket(const struct hft_server *server)
{
    return server->socket;
}

const char *hft_server_url(const struct hft_server *server)
{
    return server->url;
}

const char *hft_server_folder(const struct hft_server *server)
{
    return server->folder;
}

int hft_server_port(const struct hft_server *server)
{
    return server->port;
}

pid_t hft_server_pid(const struct hft_server *server)
{
    return server->pid;
}

void hft_server_freeze(struct hft_server *server)
{
    int status;
    if (server->pid == 0)
        give_up(NULL, "no running server to freeze");
    if (server->frozen)
        return;
    server->frozen = server->was_silent = true;
    (void)kill(server->pid, SIGSTOP);
    while (waitpid(server->pid, &status, WUNTRACED) < 0 && errno == EINTR) /* until it really stands still */
        ;
}

bool hft_server_was_silent(const struct hft_server *server)
{
    return server->was_silent;
}

void hft_server_thaw(struct hft_server *server)
{
    server->frozen = false;
    if (server->pid != 0)
        (void)kill(server->pid, SIGCONT);
}

void hft_server_kill(struct hft_server *server)
{
    if (server->asking != NULL)
        redisFree(server->asking);
    server->asking = NULL;
    if (server->pid == 0)
        return;
    (void)kill(server->pid, SIGKILL);
    while (waitpid(server->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    server->pid = 0;
    server->frozen = false;
}

void hft_server_restart(struct hft_server *server)
{
    hft_server_kill(server);
    run(server);
}

void hft_server_restart_ahead(struct hft_server *server, int64_t ms)
{
    server->ahead_ms = ms;
    hft_server_restart(server);
}

void hft_server_stop(struct hft_server *server)
{
    if (server == NULL)
        return;
    for (struct hft_server **at = &running; *at != NULL; at = &(*at)->next)
        if (*at == server) {
            *at = server->next;
            break;
        }
    hft_server_kill(server);
    end_keeper(server);
    free(server);
}

static redisReply *ask(struct hft_server *server, const char *format, va_list words)
{
    struct timeval limit = {ASK_S, 0};
    if (server->asking == NULL) {
        server->asking = redisConnectUnixWithTimeout(server->socket, limit);
        if (server->asking == NULL || server->asking->err != 0)
            give_up(server, "asking the server: %s", server->asking != NULL ? server->asking->errstr : "no memory");
        (void)redisSetTimeout(server->asking, limit);
    }
    redisReply *reply = redisvCommand(server->asking, format, words);
    if (reply == NULL)
        give_up(server, "asking the server '%s': %s", format, server->asking->errstr);
    return reply;
}

redisReply *hft_server_ask(struct hft_server *server, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    redisReply *reply = ask(server, format, words);
    va_end(words);
    return reply;
}

int64_t hft_server_ask_integer(struct hft_server *server, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    redisReply *reply = ask(server, format, words);
    va_end(words);
    if (reply->type != REDIS_REPLY_INTEGER)
        give_up(NULL, "'%s' was not answered by a number but by type %d: %s", format, reply->type,
                reply->str != NULL ? reply->str : "");
    int64_t number = reply->integer;
    freeReplyObject(reply);
    return number;
}

bool hft_server_refuses(const struct hft_server *server, const char *word)
{
    struct timeval limit = {20, 0};
    redisContext *context = redisConnectUnixWithTimeout(hft_server_socket(server), limit);
    redisReply *reply = context != NULL && context->err == 0 ? redisCommand(context, "PING") : NULL;
    bool refuses = reply != NULL && reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, word, strlen(word)) == 0;
    if (reply != NULL)
        freeReplyObject(reply);
    redisFree(context);
    return refuses;
}

int64_t hft_server_calls(struct hft_server *server, const char *command)
{
    redisReply *reply = hft_server_ask(server, "INFO commandstats");
    int64_t calls = 0;
    char *rest = NULL;
    for (char *line = strtok_r(reply->str, "\r\n", &rest); line != NULL; line = strtok_r(NULL, "\r\n", &rest)) {
        char name[64];
        long long count;
        if (sscanf(line, "cmdstat_%63[^:]:calls=%lld", name, &count) != 2)
            continue;
        if (command == NULL || strcmp(name, command) == 0)
            calls += count;
    }
    freeReplyObject(reply);
    return calls;
}
