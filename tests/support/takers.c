/* SPDX-License-Identifier: MIT */
/* takers.c - see takers.h. */
#include "tests/support/takers.h"
#include "tests/support/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int64_t hft_boottime_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void give_up(const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

void hft_pause(int64_t until_ms, const char *what)
{
    if (hft_boottime_ms() > until_ms)
        give_up("waited 20 s in vain for", what);
    (void)poll(NULL, 0, 1);
}

uint64_t hft_renewals(const hf_client *client)
{
    hf_stats stats;
    hf_client_stats(client, &stats);
    return stats.renewals;
}

uint64_t hft_failed_renewals(const hf_client *client)
{
    hf_stats stats;
    hf_client_stats(client, &stats);
    return stats.renewals_failed;
}

bool hft_are_valid(hf_lease *const *leases, int count)
{
    int valid = 0;
    for (int i = 0; i < count; i++)
        valid += hf_lease_is_valid(leases[i]);
    return valid == count;
}

/* A lease's end, by a clock that is read before what remains, or after it: too early or too late by what lies between. */
static int64_t earliest_end_ms(const hf_lease *lease)
{
    int64_t now_ms = hft_boottime_ms();
    return now_ms + hf_lease_remaining_ms(lease);
}

static int64_t latest_end_ms(const hf_lease *lease)
{
    int64_t remaining_ms = hf_lease_remaining_ms(lease);
    return hft_boottime_ms() + remaining_ms;
}

void hft_await_renewals(int times, hf_lease *const *leases, int count)
{
    enum { ROUNDED_MS = 2 };
    int64_t *ends_ms = calloc((size_t)count, sizeof *ends_ms);
    for (int round = 0; round < times; round++) {
        for (int i = 0; i < count; i++)
            ends_ms[i] = latest_end_ms(leases[i]);
        for (int i = 0; i < count; i++)
            HFT_UNTIL_TRUE(earliest_end_ms(leases[i]) > ends_ms[i] + ROUNDED_MS || !hft_are_valid(leases, count));
    }
    free(ends_ms);
}

void hft_await_return(hf_lease *const *leases, int count)
{
    hft_await_renewals(1, leases, count);
    for (int i = 0; i < count; i++)
        HFT_UNTIL_TRUE(hf_lease_verify(leases[i], NULL) == HF_OK || !hf_lease_is_valid(leases[i]));
}

int64_t hft_await_end(const hf_lease *lease)
{
    int64_t seen_ms = 0, now_ms = hft_boottime_ms(), until_ms = now_ms + 20000;
    for (; hf_lease_is_valid(lease); now_ms = hft_boottime_ms()) {
        seen_ms = now_ms;
        hft_pause(until_ms, "a lease's end");
    }
    return seen_ms;
}

uint64_t hft_commands(const hf_client *client)
{
    hf_stats stats;
    hf_client_stats(client, &stats);
    return stats.remote_commands;
}

hf_client *hft_client_at(const char *url, const hf_client_options *options)
{
    hf_client *client;
    hf_error error;
    if (hf_client_open(url, options, &client, &error) != HF_OK)
        give_up("cannot open a client", error.message);
    return client;
}

hf_client *hft_client(const struct hft_server *server, const hf_client_options *options)
{
    return hft_client_at(hft_server_url(server), options);
}

bool hft_closes(const struct hft_server *server, hf_client *client, hf_error *error)
{
    hf_status status = hf_client_close(client, error);
    return status == HF_OK || (status == HF_UNKNOWN && hft_server_was_silent(server));
}

static void *take(void *arg)
{
    struct hft_taker *taker = arg;
    taker->began_ms = hft_boottime_ms();
    if (taker->permits > 0)
        taker->status = hf_semaphore_acquire(taker->client, taker->name, taker->limit, taker->permits, &taker->options,
                                             &taker->lease, &taker->error);
    else
        taker->status = hf_lock_acquire(taker->client, taker->name, &taker->options, &taker->lease, &taker->error);
    taker->got_ms = hft_boottime_ms();
    atomic_store(&taker->done, true);
    return NULL;
}

hf_status hft_lock_once(hf_client *client, const char *name, int64_t wait_ms, hf_error *error)
{
    hf_lease *lease;
    hf_status status = hf_lock_acquire(client, name, HF_LOCK(.wait_ms = wait_ms), &lease, error);
    if (status == HF_OK)
        status = hf_lease_release(lease, error);
    return status;
}

void hft_take(struct hft_taker *taker, hf_client *client, const char *name, const hf_lock_options *options)
{
    hft_take_permits(taker, client, name, 0, 0, options);
}

void hft_take_permits(struct hft_taker *taker, hf_client *client, const char *name, int limit, int permits,
                      const hf_lock_options *options)
{
    memset(taker, 0, sizeof *taker);
    taker->client = client;
    taker->name = name;
    taker->limit = limit;
    taker->permits = permits;
    taker->options = *options;
    if (pthread_create(&taker->thread, NULL, take, taker) != 0)
        give_up("cannot start a thread", strerror(errno));
}

hf_status hft_taken(struct hft_taker *taker)
{
    (void)pthread_join(taker->thread, NULL);
    return taker->status;
}

/* The caller frees it. */
static char *dump(const hf_client *client)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL || hf_client_dump(client, out) != HF_OK || fclose(out) != 0)
        give_up("hf_client_dump", strerror(errno));
    return text;
}

bool hft_dump_says(const hf_client *client, const char *words)
{
    char *text = dump(client);
    bool says = strstr(text, words) != NULL;
    free(text);
    return says;
}

int hft_waiting_here(const hf_client *client, const char *name)
{
    char *text = dump(client), quoted[64], *rest = NULL;
    int waiting = 0;
    (void)snprintf(quoted, sizeof quoted, " \"%s\" ", name);
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        const char *comma = strrchr(line, ',');
        int here = 0; /* a semaphore has a line for each of its grants */
        if (strstr(line, quoted) != NULL && comma != NULL && sscanf(comma, ", %d waiting here", &here) == 1)
            waiting += here;
    }
    free(text);
    return waiting;
}

void hft_held_by(struct hft_server *server, const char *name, char *out, size_t room)
{
    redisReply *reply = hft_server_ask(server, "GET hf:{%s}", name);
    (void)snprintf(out, room, "%s", reply->type == REDIS_REPLY_STRING ? reply->str : "");
    freeReplyObject(reply);
}

int64_t hft_queued(struct hft_server *server, const char *name)
{
    return hft_server_ask_integer(server, "ZCARD hf:queue:{%s}:hf:{%s}", name, name);
}

int64_t hft_lock_keys(struct hft_server *server)
{
    return hft_server_ask_integer(server, "DBSIZE") - hft_server_ask_integer(server, "EXISTS hf:fence");
}

int64_t hft_lock_exists(struct hft_server *server, const char *name)
{
    return hft_server_ask_integer(server, "EXISTS hf:{%s}", name);
}

void hft_process_start(struct hft_process *process, int (*run)(int from, int to, void *arg), void *arg)
{
    int there[2], back[2];
    if (pipe2(there, O_CLOEXEC) != 0 || pipe2(back, O_CLOEXEC) != 0)
        give_up("no pipe", strerror(errno));
    process->pid = hft_fork();
    if (process->pid == 0) {
        (void)close(there[1]);
        (void)close(back[0]);
        _exit(run(there[0], back[1], arg));
    }
    (void)close(there[0]);
    (void)close(back[1]);
    process->to = there[1];
    process->from = back[0];
}

void hft_process_tell(const struct hft_process *process, char word)
{
    if (write(process->to, &word, 1) != 1)
        give_up("the other process does not listen", strerror(errno));
}

char hft_process_read(const struct hft_process *process)
{
    struct pollfd in = {process->from, POLLIN, 0};
    char word = 0;
    if (poll(&in, 1, 20000) != 1)
        give_up("the other process", "is silent");
    return read(process->from, &word, 1) == 1 ? word : 0;
}

int hft_process_end(struct hft_process *process)
{
    int status = 0;
    (void)close(process->to);
    while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR)
        ;
    (void)close(process->from);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void hft_process_kill(struct hft_process *process)
{
    (void)kill(process->pid, SIGKILL);
    (void)hft_process_end(process);
}
