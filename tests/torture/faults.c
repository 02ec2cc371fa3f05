/* SPDX-License-Identifier: MIT */
/* faults.c - see faults.h. */
#include "tests/torture/faults.h"
#include "tests/support/child.h"
#include "tests/torture/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define END_MS 15000

static void *room_for(void *at, size_t size)
{
    at = realloc(at, size);
    if (at == NULL) {
        perror("torture");
        exit(1);
    }
    return at;
}

static pid_t wait_for(pid_t pid, int *status, int options)
{
    pid_t result;
    do
        result = waitpid(pid, status, options);
    while (result < 0 && errno == EINTR);
    return result;
}

static void spawn(struct hft_fleet *fleet, int process)
{
    unsigned seed = fleet->ledger->plan.seed * 7919u + fleet->incarnations++;
    for (int i = 0; i < fleet->ledger->plan.threads; i++) {
        hft_ledger_wants_no_more(fleet->ledger, process, i);
        atomic_store(&hft_ledger_seat(fleet->ledger, process, i)->doing, (int)HFT_WORKING);
    }
    fleet->pids[process] = hft_fork();
    if (fleet->pids[process] == 0)
        hft_work(fleet->ledger, process, seed);
}

void hft_fleet_start(struct hft_fleet *fleet, struct hft_ledger *ledger, struct hft_server *server)
{
    *fleet = (struct hft_fleet){.ledger = ledger, .server = server, .frozen = -1, .rng = ledger->plan.seed};
    fleet->pids = room_for(NULL, (size_t)ledger->plan.processes * sizeof *fleet->pids);
    fleet->ask_holders = room_for(NULL, (size_t)ledger->plan.locks * 32 + 8);
    size_t at = (size_t)sprintf(fleet->ask_holders, "MGET");
    for (int lock = 0; lock < ledger->plan.locks; lock++)
        at += (size_t)sprintf(fleet->ask_holders + at, " hf:{torture:%d}", lock);
    for (int process = 0; process < ledger->plan.processes; process++)
        spawn(fleet, process);
}

static bool seat_is_well(struct hft_ledger *ledger, int process, int thread)
{
    struct hft_seat *seat = hft_ledger_seat(ledger, process, thread);
    int doing = atomic_load(&seat->doing);
    int64_t limit = doing == HFT_ACQUIRING ? HFT_WAIT_MS + END_MS : END_MS;
    int64_t passed_ms = (hft_now_ns() - atomic_load(&seat->since_ns)) / HFT_MS;
    if (doing == HFT_WORKING || passed_ms <= limit)
        return true;
    hft_complain(ledger, "process %d thread %d hangs in %s of torture:%d for %lld ms", process, thread,
                 doing == HFT_ACQUIRING ? "acquire" : "release", atomic_load(&seat->lock), (long long)passed_ms);
    return false;
}

bool hft_fleet_is_well(struct hft_fleet *fleet)
{
    int status;
    for (int process = 0; process < fleet->ledger->plan.processes; process++) {
        if (wait_for(fleet->pids[process], &status, WNOHANG) == fleet->pids[process]) {
            fleet->pids[process] = 0;
            hft_complain(fleet->ledger, "process %d ended by itself: %s %d", process,
                         WIFSIGNALED(status) ? "signal" : "exit", WIFSIGNALED(status) ? WTERMSIG(status)
                                                                                      : WEXITSTATUS(status));
            return false;
        }
        for (int thread = 0; thread < fleet->ledger->plan.threads; thread++)
            if (!seat_is_well(fleet->ledger, process, thread))
                return false;
    }
    return true;
}

/* The lock keys as the server has them: a token ends with its process's pid. */
static redisReply *holders(struct hft_fleet *fleet)
{
    redisReply *reply = hft_server_ask(fleet->server, fleet->ask_holders);
    if (reply->type == REDIS_REPLY_ARRAY)
        return reply;
    (void)fprintf(stderr, "torture: MGET: %s\n", reply->str);
    exit(1);
}

static pid_t holder_of(const redisReply *reply, int lock)
{
    const redisReply *token = reply->element[lock];
    const char *pid = token->type == REDIS_REPLY_STRING ? strrchr(token->str, ':') : NULL;
    return pid != NULL ? (pid_t)strtol(pid + 1, NULL, 10) : 0;
}

void hft_fleet_look_for_leftovers(struct hft_fleet *fleet, int64_t well_since_ns)
{
    struct hft_ledger *ledger = fleet->ledger;
    int64_t seen_ns = hft_now_ns(), bound_ns = ledger->plan.lease_ms * HFT_MS / 2;
    redisReply *reply = holders(fleet);
    for (int lock = 0; lock < ledger->plan.locks; lock++) {
        pid_t pid = holder_of(reply, lock);
        for (int process = 0; process < ledger->plan.processes && pid != 0; process++) {
            if (fleet->pids[process] != pid)
                continue;
            fleet->looks++;
            int64_t late = hft_oracle_left_behind(seen_ns, hft_ledger_unwanted_since(ledger, process, lock), well_since_ns,
                                                  bound_ns);
            if (late > 0)
                hft_complain(ledger, "process %d has torture:%d, which none of its threads has wanted for %lld ms: %s", process,
                             lock, (long long)((late + bound_ns) / HFT_MS), reply->element[lock]->str);
        }
    }
    freeReplyObject(reply);
}

/* Records what `pid`, which stopped running at at_ns, still holds. False: nothing. */
static bool note_deaths(struct hft_fleet *fleet, pid_t pid, int64_t at_ns)
{
    freeReplyObject(hft_server_ask(fleet->server, "PING")); /* whatever it sent last is executed by now */
    redisReply *reply = holders(fleet);
    int64_t seen_ns = hft_now_ns();
    size_t before = fleet->death_count;
    for (int lock = 0; lock < fleet->ledger->plan.locks; lock++) {
        if (holder_of(reply, lock) != pid)
            continue;
        if (fleet->death_count == fleet->death_room) {
            fleet->death_room = fleet->death_room * 2 + 64;
            fleet->deaths = room_for(fleet->deaths, fleet->death_room * sizeof *fleet->deaths);
        }
        fleet->deaths[fleet->death_count++] = (struct hft_death){at_ns, seen_ns, lock};
    }
    freeReplyObject(reply);
    return fleet->death_count > before;
}

void hft_fleet_kill_one(struct hft_fleet *fleet)
{
    int process = rand_r(&fleet->rng) % fleet->ledger->plan.processes;
    pid_t pid = fleet->pids[process];
    int64_t at_ns = hft_now_ns();
    (void)kill(pid, SIGKILL);
    (void)wait_for(pid, NULL, 0);
    fleet->holders += note_deaths(fleet, pid, at_ns);
    fleet->kills++;
    spawn(fleet, process);
}

bool hft_fleet_freeze_holder(struct hft_fleet *fleet)
{
    redisReply *reply = holders(fleet);
    pid_t pid = holder_of(reply, rand_r(&fleet->rng) % fleet->ledger->plan.locks);
    int process = 0;
    freeReplyObject(reply);
    while (process < fleet->ledger->plan.processes && fleet->pids[process] != pid)
        process++;
    if (process == fleet->ledger->plan.processes)
        return false;
    int64_t at_ns = hft_now_ns();
    (void)kill(pid, SIGSTOP);
    (void)wait_for(pid, NULL, WUNTRACED);
    if (!note_deaths(fleet, pid, at_ns)) { /* it gave everything back in the last moment */
        (void)kill(pid, SIGCONT);
        return false;
    }
    fleet->holders++;
    fleet->kills++;
    fleet->frozen = process;
    return true;
}

void hft_fleet_thaw(struct hft_fleet *fleet)
{
    (void)kill(fleet->pids[fleet->frozen], SIGCONT);
    fleet->frozen = -1;
}

void hft_fleet_end(struct hft_fleet *fleet)
{
    struct hft_ledger *ledger = fleet->ledger;
    int64_t until = hft_now_ns() + END_MS * HFT_MS;
    struct timespec tick = {0, 5000000};
    int status;
    atomic_store(&ledger->stop, true);
    for (int process = 0; process < ledger->plan.processes; process++) {
        if (fleet->pids[process] == 0)
            continue;
        while (wait_for(fleet->pids[process], &status, WNOHANG) == 0 && hft_now_ns() < until)
            (void)nanosleep(&tick, NULL);
        if (hft_now_ns() >= until) {
            for (int thread = 0; thread < ledger->plan.threads; thread++) {
                struct hft_seat *seat = hft_ledger_seat(ledger, process, thread);
                if (atomic_load(&seat->doing) != HFT_WORKING)
                    hft_complain(ledger, "process %d does not end: thread %d is in %s of torture:%d", process, thread,
                                 atomic_load(&seat->doing) == HFT_ACQUIRING ? "acquire" : "release",
                                 atomic_load(&seat->lock));
            }
            hft_complain(ledger, "process %d does not end, though no thread of it uses a lock", process);
            (void)kill(fleet->pids[process], SIGKILL);
            (void)wait_for(fleet->pids[process], &status, 0);
        } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            hft_complain(ledger, "process %d ended badly: wait status %d", process, status);
        }
    }
}
