/* SPDX-License-Identifier: MIT */
/* exhaust.c - exhausted resources: the n-th allocation fails, the n-th system call, all descriptors are used; and
 * short reads and writes. */
#include "tests/fault/calls.h"

#include "tests/fault/crew.h"
#include "tests/support/fds.h"
#include "tests/support/takers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct scarcity {
    enum hft_call kind;
    int os_errno;
    const char *name;
};

static long tried, refused;

static bool is_definite(hf_status status)
{
    switch ((int)status) {
    case HF_OK:
    case HF_BUSY:
    case HF_TIMEOUT:
    case HF_LOST:
    case HF_NOMEM:
    case HF_UNAVAILABLE:
    case HF_UNKNOWN:
    case HF_LOAD_FAILED: /* hf_loading_set had no memory */
        return true;
    default:
        return false;
    }
}

/* False: nothing failed any more, the call has passed. */
static bool try_nth(struct hft_run *run, struct hft_place *place, const struct hft_public_call *call,
                    const struct scarcity *scarcity, int64_t n, bool persistent)
{
    struct hft_preload *preload = hft_preload();
    place->error = (hf_error){.status = HF_OK};
    if (call->before != NULL && !call->before(place)) {
        hft_broken(run, "%s: cannot prepare it: %s", call->name, place->error.message);
        hft_place_tidy(place);
        return false;
    }
    place->error = (hf_error){.status = HF_OK};
    atomic_store(&preload->os_errno, scarcity->os_errno);
    atomic_store(&preload->persistent, persistent);
    atomic_store(&preload->nth, n);
    atomic_store(&preload->count, 0);
    atomic_store(&preload->hits, 0);
    int64_t before = hft_true_ns();
    atomic_store(&preload->failing, (unsigned)scarcity->kind);
    hf_status status = call->call(place);
    atomic_store(&preload->failing, 0);
    int64_t took = hft_true_ns() - before;
    bool hit = atomic_load(&preload->hits) > 0;
    tried++;
    refused += status != HF_OK;
    bool dumb = scarcity->kind == HFT_RANDOM && status == HF_INTERNAL && /* a kernel without it is no bug of ours */
                strstr(place->error.message, "getrandom") != NULL && place->error.hint[0] != 0;
    HFT_CHECK(run, dumb || is_definite(status), "%s, %s %lld%s: %s: %s", call->name, scarcity->name,
              (long long)n, persistent ? " and on" : "", hf_status_name(status), place->error.message);
    HFT_CHECK(run,
              status == HF_OK || status == HF_BUSY || place->error.status == status ||
                  strcmp(call->name, "event_fd") == 0 || strcmp(call->name, "metrics") == 0 ||
                  strcmp(call->name, "dump") == 0,
              "%s, %s %lld: %s, but the error says %s", call->name, scarcity->name, (long long)n,
              hf_status_name(status), hf_status_name(place->error.status));
    HFT_CHECK(run, took < 3000 * HFT_NS_PER_MS, "%s, %s %lld: took %lld ms", call->name, scarcity->name,
              (long long)n, (long long)(took / HFT_NS_PER_MS));
    hft_place_tidy(place);
    return hit;
}

static void try_call(struct hft_run *run, struct hft_place *place, const struct hft_public_call *call,
                     const struct scarcity *scarcity, bool persistent)
{
    for (int64_t n = 1; n < 2000; n += run->full ? 1 : 1 + hft_roll(run, n < 12 ? 2 : 12))
        if (!try_nth(run, place, call, scarcity, n, persistent))
            return;
    hft_broken(run, "%s never passes", call->name);
}

static void check_recovery(struct hft_run *run, struct hft_place *place, const char *after)
{
    hf_lease *lease;
    hf_error error;
    hf_status status = hf_lock_acquire(place->client, "afterwards", HF_LOCK(.wait_ms = 5000, .lease_ms = 500),
                                       &lease, &error);
    HFT_CHECK(run, status == HF_OK, "after %s: %s: %s", after, hf_status_name(status), error.message);
    if (status == HF_OK)
        (void)hf_lease_release(lease, NULL);
}

static void try_pair(struct hft_run *run, struct hft_place *place, const struct scarcity *scarcity,
                     const struct hft_public_call *call)
{
    hft_doing("%s while %s fails", call->name, scarcity->name);
    bool passes =
        scarcity->os_errno == EINTR || scarcity->os_errno == EAGAIN; /* no kernel says these for ever */
    for (int persistent = 0; persistent < (passes ? 1 : 2); persistent++) {
        try_call(run, place, call, scarcity, persistent != 0);
        check_recovery(run, place, call->name);
    }
}

/* No key is left but one whose token the client had no memory to remember: that key expires. */
static void check_leftovers(struct hft_run *run, struct hft_place *place)
{
    (void)hft_lock_keys_after(place->server, 3000);
    redisReply *keys = hft_server_ask(place->server, "KEYS *");
    for (size_t i = 0; i < keys->elements; i++) {
        const char *key = keys->element[i]->str;
        bool soft = strncmp(key, "hf:queue:", 9) == 0 || strncmp(key, "hf:wait:", 8) == 0;
        int64_t left = hft_server_ask_integer(place->server, "PTTL %s", key);
        HFT_CHECK(run, strcmp(key, "hf:fence") == 0 || (soft && left != -1), "%s is left, for %lld ms", key,
                  (long long)left);
    }
    freeReplyObject(keys);
}

static void try_all(struct hft_run *run, const struct scarcity *scarcities, int count)
{
    struct hft_place place;
    int calls = 1;
    hft_place_open(&place);
    while (hft_public_calls[calls].name != NULL)
        calls++;
    int tries = run->full ? run->times * calls * count : run->times; /* all, so many times; or a sample */
    for (int i = 0; i < tries; i++)
        try_pair(run, &place, &scarcities[run->full ? i / calls % count : hft_roll(run, count)],
                 &hft_public_calls[run->full ? i % calls : hft_roll(run, calls)]);
    HFT_CHECK(run, hf_lease_is_valid(place.taken), "the bystander's lease was lost");
    HFT_UNTIL_TRUE(hf_lease_verify(place.taken, NULL) == HF_OK || !hf_lease_is_valid(place.taken));
    hf_status status = hf_lease_release(place.taken, &place.error);
    HFT_CHECK(run, status == HF_OK, "the bystander's release: %s: %s", hf_status_name(status),
              place.error.message);
    place.taken = NULL;
    check_leftovers(run, &place);
    hft_place_close(&place);
    hft_note(run, "%ld calls, %ld refused", tried, refused);
}

static void allocations(struct hft_run *run)
{
    static const struct scarcity memory[] = {{HFT_MALLOC, ENOMEM, "allocation"}};
    try_all(run, memory, 1);
}

static void system_calls(struct hft_run *run)
{
    static const struct scarcity all[] = {{HFT_SOCKET, EMFILE, "socket EMFILE"},
                                          {HFT_CONNECT, ECONNREFUSED, "connect ECONNREFUSED"},
                                          {HFT_CONNECT, ETIMEDOUT, "connect ETIMEDOUT"},
                                          {HFT_SEND, EPIPE, "send EPIPE"},
                                          {HFT_SEND, ENOBUFS, "send ENOBUFS"},
                                          {HFT_SEND, EAGAIN, "send EAGAIN"},
                                          {HFT_SEND, EINTR, "send EINTR"},
                                          {HFT_RECV, ECONNRESET, "recv ECONNRESET"},
                                          {HFT_RECV, EINTR, "recv EINTR"},
                                          {HFT_RECV, EAGAIN, "recv EAGAIN"},
                                          {HFT_POLL, EINTR, "poll EINTR"},
                                          {HFT_POLL, ENOMEM, "poll ENOMEM"},
                                          {HFT_EVENTFD, EMFILE, "eventfd EMFILE"},
                                          {HFT_THREAD, EAGAIN, "pthread_create"},
                                          {HFT_RANDOM, ENOSYS, "getrandom ENOSYS"},
                                          {HFT_RANDOM, EINTR, "getrandom EINTR"},
                                          {HFT_OPTION, EINVAL, "setsockopt EINVAL"},
                                          {HFT_MAP, ENOMEM, "mmap ENOMEM"},
                                          {HFT_FCNTL, EMFILE, "fcntl EMFILE"}};
    try_all(run, all, (int)(sizeof all / sizeof all[0]));
}

static void short_io(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    for (int round = 0; round < run->times; round++) {
        struct hft_crew_plan plan = {.url = hft_server_url(server),
                                     .clients = 2,
                                     .threads = 4,
                                     .locks = 3,
                                     .lease_ms = 2000,
                                     .wait_ms = 5000,
                                     .command_ms = 2000,
                                     .stay_us = 500};
        atomic_store(&hft_preload()->short_io, 1 + hft_roll(run, 7));
        struct hft_crew *crew = hft_crew_start(run, &plan);
        HFT_UNTIL_TRUE(hft_crew_acquired(crew) >= 500);
        struct hft_crew_result result = hft_crew_end(crew);
        atomic_store(&hft_preload()->short_io, 0);
        HFT_CHECK(run, result.unavailable + result.unknown + result.timeouts + result.lost == 0,
                  "short reads and writes were noticed");
    }
    hft_server_stop(server);
}

static void no_descriptors(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    hf_client *client = hft_open(hft_server_url(server), NULL);
    struct rlimit before;
    (void)getrlimit(RLIMIT_NOFILE, &before);
    for (int round = 0; round < run->times; round++) {
        hf_lease *held, *lease;
        hf_client *none;
        hf_error error;
        (void)hft_server_ask_integer(server, "DBSIZE"); /* our own connection is open */
        HFT_CHECK(run,
                  hf_lock_acquire(client, "held", HF_LOCK(.lease_ms = 600, .wait_ms = 3000), &held, NULL) ==
                      HF_OK,
                  "no lease");
        int lowest = dup(0);
        (void)close(lowest);
        struct rlimit none_left = {(rlim_t)lowest, before.rlim_max};
        (void)setrlimit(RLIMIT_NOFILE, &none_left);
        hf_status status =
            hf_client_open(hft_server_url(server), HF_CLIENT(.connect_ms = 300), &none, &error);
        HFT_CHECK(run, status == HF_NOMEM, "open without descriptors: %s: %s", hf_status_name(status),
                  error.message);
        status = hf_lock_acquire(client, "fd", HF_LOCK(.event_fd = true), &lease, &error);
        HFT_CHECK(run, status == HF_NOMEM, "event_fd without descriptors: %s: %s", hf_status_name(status),
                  error.message);
        status = hf_lock_acquire(client, "held2", HF_LOCK(.wait_ms = 1000), &lease, &error);
        HFT_CHECK(run, status == HF_OK || status == HF_NOMEM || status == HF_UNAVAILABLE, "acquire: %s: %s",
                  hf_status_name(status), error.message);
        if (status == HF_OK)
            HFT_CHECK(run, hf_lease_release(lease, NULL) == HF_OK, "release failed");
        if (round % 2 == 1) /* every connection has to be dialled anew, with the descriptors that were freed */
            (void)hft_server_ask_integer(server, "CLIENT KILL TYPE normal SKIPME yes");
        hft_await_renewals(2, &held, 1);
        (void)setrlimit(RLIMIT_NOFILE, &before);
        hft_await_return(&held, 1);
        HFT_CHECK(run, hf_lease_is_valid(held), "a lease was lost for want of descriptors (round %d)", round);
        HFT_CHECK(run, hf_lease_release(held, NULL) == HF_OK, "release failed");
    }
    hft_note(run, "%d times", run->times);
    (void)hf_client_close(client, NULL);
    hft_server_stop(server);
}

const struct hft_named hft_call_faults[] = {
    {"allocations",
     "whatever allocation fails in a public call: a definite answer, nothing leaks, all goes on", allocations,
     3, 1, HFT_PRELOADED},
    {"system-calls", "whatever system call fails in a public call: a definite answer, all goes on",
     system_calls, 8, 1, HFT_PRELOADED},
    {"short-io", "reads and writes of a few bytes change nothing", short_io, 2, 20, HFT_PRELOADED},
    {"no-descriptors", "without descriptors: NOMEM for new ones, leases live on, all is well afterwards",
     no_descriptors, 2, 20, 0},
    {.name = NULL}};
