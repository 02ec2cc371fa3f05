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

static void spawn(struct hft_crowd *crowd, int process)
{
    unsigned seed = crowd->ledger->plan.seed * 7919u + crowd->incarnations++;
    for (int i = 0; i < crowd->ledger->plan.threads; i++) {
        hft_ledger_wants_no_more(crowd->ledger, process, i);
        atomic_store(&hft_ledger_seat(crowd->ledger, process, i)->doing, (int)HFT_WORKING);
    }
    crowd->pids[process] = hft_fork();
    if (crowd->pids[process] == 0)
        hft_work(crowd->ledger, crowd->ledger->plan.url, process, seed);
}

void hft_crowd_start(struct hft_crowd *crowd, struct hft_ledger *ledger, struct hft_server *server)
{
    *crowd = (struct hft_crowd){.ledger = ledger, .server = server, .frozen = -1, .rng = ledger->plan.seed};
    crowd->pids = room_for(NULL, (size_t)ledger->plan.processes * sizeof *crowd->pids);
    crowd->ask_holders = room_for(NULL, (size_t)ledger->plan.locks * 32 + 8);
    size_t at = (size_t)sprintf(crowd->ask_holders, "MGET");
    for (int lock = 0; lock < ledger->plan.locks; lock++)
        at += (size_t)sprintf(crowd->ask_holders + at, " hf:{torture:%d}", lock);
    for (int process = 0; process < ledger->plan.processes; process++)
        spawn(crowd, process);
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

bool hft_crowd_is_well(struct hft_crowd *crowd)
{
    int status;
    for (int process = 0; process < crowd->ledger->plan.processes; process++) {
        if (wait_for(crowd->pids[process], &status, WNOHANG) == crowd->pids[process]) {
            crowd->pids[process] = 0;
            hft_complain(crowd->ledger, "process %d ended by itself: %s %d", process,
                         WIFSIGNALED(status) ? "signal" : "exit", WIFSIGNALED(status) ? WTERMSIG(status)
                                                                                      : WEXITSTATUS(status));
            return false;
        }
        for (int thread = 0; thread < crowd->ledger->plan.threads; thread++)
            if (!seat_is_well(crowd->ledger, process, thread))
                return false;
    }
    return true;
}

/* The lock keys as the server has them: a token ends with its process's pid. */
static redisReply *holders(struct hft_crowd *crowd)
{
    redisReply *reply = hft_server_ask(crowd->server, crowd->ask_holders);
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

void hft_crowd_look_for_leftovers(struct hft_crowd *crowd, int64_t well_since_ns)
{
    struct hft_ledger *ledger = crowd->ledger;
    int64_t seen_ns = hft_now_ns(), bound_ns = ledger->plan.lease_ms * HFT_MS / 2;
    redisReply *reply = holders(crowd);
    for (int lock = 0; lock < ledger->plan.locks; lock++) {
        pid_t pid = holder_of(reply, lock);
        for (int process = 0; process < ledger->plan.processes && pid != 0; process++) {
            if (crowd->pids[process] != pid)
                continue;
            crowd->looks++;
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
static bool note_deaths(struct hft_crowd *crowd, pid_t pid, int64_t at_ns)
{
    freeReplyObject(hft_server_ask(crowd->server, "PING")); /* whatever it sent last is executed by now */
    redisReply *reply = holders(crowd);
    int64_t seen_ns = hft_now_ns();
    size_t before = crowd->death_count;
    for (int lock = 0; lock < crowd->ledger->plan.locks; lock++) {
        if (holder_of(reply, lock) != pid)
            continue;
        if (crowd->death_count == crowd->death_room) {
            crowd->death_room = crowd->death_room * 2 + 64;
            crowd->deaths = room_for(crowd->deaths, crowd->death_room * sizeof *crowd->deaths);
        }
        crowd->deaths[crowd->death_count++] = (struct hft_death){at_ns, seen_ns, lock};
    }
    freeReplyObject(reply);
    return crowd->death_count > before;
}

void hft_crowd_kill_one(struct hft_crowd *crowd)
{
    int process = rand_r(&crowd->rng) % crowd->ledger->plan.processes;
    pid_t pid = crowd->pids[process];
    int64_t at_ns = hft_now_ns();
    (void)kill(pid, SIGKILL);
    (void)wait_for(pid, NULL, 0);
    crowd->holders += note_deaths(crowd, pid, at_ns);
    crowd->kills++;
    spawn(crowd, process);
}

bool hft_crowd_freeze_holder(struct hft_crowd *crowd)
{
    redisReply *reply = holders(crowd);
    pid_t pid = holder_of(reply, rand_r(&crowd->rng) % crowd->ledger->plan.locks);
    int process = 0;
    freeReplyObject(reply);
    while (process < crowd->ledger->plan.processes && crowd->pids[process] != pid)
        process++;
    if (process == crowd->ledger->plan.processes)
        return false;
    int64_t at_ns = hft_now_ns();
    (void)kill(pid, SIGSTOP);
    (void)wait_for(pid, NULL, WUNTRACED);
    if (!note_deaths(crowd, pid, at_ns)) { /* it gave everything back in the last moment */
        (void)kill(pid, SIGCONT);
        return false;
    }
    crowd->holders++;
    crowd->kills++;
    crowd->frozen = process;
    return true;
}

void hft_crowd_thaw(struct hft_crowd *crowd)
{
    (void)kill(crowd->pids[crowd->frozen], SIGCONT);
    crowd->frozen = -1;
}

void hft_crowd_end(struct hft_crowd *crowd)
{
    struct hft_ledger *ledger = crowd->ledger;
    int64_t until = hft_now_ns() + END_MS * HFT_MS;
    struct timespec tick = {0, 5000000};
    int status;
    atomic_store(&ledger->stop, true);
    for (int process = 0; process < ledger->plan.processes; process++) {
        if (crowd->pids[process] == 0)
            continue;
        while (wait_for(crowd->pids[process], &status, WNOHANG) == 0 && hft_now_ns() < until)
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
            (void)kill(crowd->pids[process], SIGKILL);
            (void)wait_for(crowd->pids[process], &status, 0);
        } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            hft_complain(ledger, "process %d ended badly: wait status %d", process, status);
        }
    }
}
