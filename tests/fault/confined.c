/* SPDX-License-Identifier: MIT */
/* confined.c - a whole process frozen by the kernel, or limited to very little CPU time, while another process waits
 * for its locks. */
#include "tests/fault/fault.h"
#include "tests/fault/cgroup.h"
#include "tests/support/child.h"
#include "tests/support/stalls.h"
#include "tests/support/takers.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HOLDERS = 64, BUSY = 4 };

/* The record of the confined process, in memory that both processes share. */
struct confined {
    char url[128];
    int64_t lease_ms, hold_ms; /* hold_ms 0: until it is lost */
    int64_t look_ms;           /* so often a holder asks whether its lease is valid */
    int rounds, holders, busy;
    _Atomic(int) holding, ended, lost, told, refused;
    _Atomic(bool) failed, go, burn;
    struct hold {
        _Atomic(int64_t) valid_ns[2]; /* by round: is_valid, called after this time, said yes */
    } hold[HOLDERS];
};

struct holder {
    struct confined *confined;
    hf_client *client;
    int number;
};

static void count_told(hf_lease *lease, const hf_event *event, void *arg)
{
    struct confined *confined = arg;
    (void)lease;
    if (event->kind == HF_EVENT_LOST)
        atomic_fetch_add(&confined->told, 1);
}

static void *hold_one(void *arg)
{
    struct holder *me = arg;
    struct confined *confined = me->confined;
    struct hold *hold = &confined->hold[me->number];
    for (int round = 0; round < confined->rounds; round++) {
        char name[48];
        hf_lease *lease;
        (void)snprintf(name, sizeof name, "confined:%d:%d", round, me->number);
        if (hf_lock_acquire(me->client, name,
                            HF_LOCK(.lease_ms = confined->lease_ms, .wait_ms = 20000, .on_event = count_told,
                                    .arg = confined),
                            &lease, NULL) != HF_OK) {
            atomic_store(&confined->failed, true);
            return NULL;
        }
        int64_t began = hft_true_ns();
        atomic_fetch_add(&confined->holding, 1);
        for (;;) {
            int64_t now = hft_true_ns();
            if (!hf_lease_is_valid(lease))
                break;
            atomic_store(&hold->valid_ns[round % 2], now);
            if (confined->hold_ms != 0 && now - began > confined->hold_ms * HFT_NS_PER_MS)
                break;
            hft_sleep_ms(confined->look_ms);
        }
        hf_status status = hf_lease_release(lease, NULL);
        atomic_fetch_add(&confined->lost, status == HF_LOST);
        atomic_fetch_add(&confined->refused, status != HF_LOST && status != HF_OK);
        atomic_fetch_add(&confined->ended, 1);
    }
    return NULL;
}

/* Not before the limit is set: threads that burn beside others that nap, in a group without one, leave the rest of the
 * machine without any CPU on some kernels (6.18: for as long as they run). */
static void *burn(void *arg)
{
    struct confined *confined = arg;
    volatile unsigned long steps = 0;
    while (!atomic_load(&confined->burn))
        hft_sleep_ms(10);
    for (;;)
        steps = steps + 1;
    return NULL;
}

static int be_confined(struct confined *confined)
{
    pthread_t threads[HOLDERS], busy;
    struct holder holders[HOLDERS];
    while (!atomic_load(&confined->go))
        hft_sleep_ms(1);
    hf_client *client = hft_open(confined->url, NULL);
    for (int i = 0; i < confined->busy; i++)
        if (pthread_create(&busy, NULL, burn, confined) != 0)
            return 1;
    for (int i = 0; i < confined->holders; i++) {
        holders[i] = (struct holder){confined, client, i};
        if (pthread_create(&threads[i], NULL, hold_one, &holders[i]) != 0)
            return 1;
    }
    for (int i = 0; i < confined->holders; i++)
        (void)pthread_join(threads[i], NULL);
    (void)hf_client_close(client, NULL);
    return 0;
}

/* Starts a child, before this process has threads; its work begins when it is told to. */
static pid_t start_confined(struct confined *confined)
{
    pid_t pid = hft_fork();
    if (pid == 0)
        _exit(be_confined(confined));
    return pid;
}

static struct confined *new_confined(void)
{
    struct confined *confined =
        mmap(NULL, sizeof *confined, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (confined == MAP_FAILED)
        exit(1);
    return confined;
}

struct heir {
    struct hft_run *run;
    struct confined *confined;
    hf_client *client;
    int number, round;
    pthread_t thread;
    int64_t got_ns;
};

static void *inherit(void *arg)
{
    struct heir *me = arg;
    char name[48];
    hf_lease *lease;
    hf_error error;
    (void)snprintf(name, sizeof name, "confined:%d:%d", me->round, me->number);
    hf_status status =
        hf_lock_acquire(me->client, name, HF_LOCK(.lease_ms = 20000, .wait_ms = 60000), &lease, &error);
    me->got_ns = hft_true_ns();
    HFT_CHECK(me->run, status == HF_OK, "an heir: %s: %s", hf_status_name(status), error.message);
    if (status == HF_OK)
        (void)hf_lease_release(lease, NULL);
    return NULL;
}

/* The holder's last "valid" may not be later than the next holder's grant. The comparison is exact: both use the
 * same clock. */
static void judge_heir(struct hft_run *run, struct confined *confined, const struct heir *heir)
{
    int64_t valid = atomic_load(&confined->hold[heir->number].valid_ns[heir->round % 2]);
    HFT_CHECK(run, valid < heir->got_ns, "%d: is_valid said yes %lld us after the next holder came in",
              heir->number, (long long)((valid - heir->got_ns) / 1000));
}

struct cage { /* the confined process, and outside of it a waiter for what it holds */
    struct hft_cgroup group;
    struct confined *confined;
    pid_t pid;
    struct hft_server *server;
    hf_client *client;
    struct heir heirs[HOLDERS];
};

/* False: this machine cannot, and the run says why. `start` is the work of the confined process. */
static bool open_cage(struct hft_run *run, struct cage *cage, enum hft_controller controller,
                      const struct confined *start)
{
    char why[200];
    if (!hft_cgroup_make(&cage->group, controller, why, sizeof why)) {
        hft_cannot(run, "%s", why);
        return false;
    }
    cage->confined = new_confined();
    cage->pid = start_confined(cage->confined);
    cage->server = hft_server_start(NULL);
    cage->client = hft_open(hft_server_url(cage->server), NULL);
    *cage->confined = *start;
    (void)snprintf(cage->confined->url, sizeof cage->confined->url, "%s", hft_server_url(cage->server));
    HFT_CHECK(run, hft_cgroup_add(&cage->group, cage->pid), "the process cannot be moved");
    atomic_store(&cage->confined->go, true);
    return true;
}

static void start_heirs(struct hft_run *run, struct cage *cage, int round)
{
    for (int i = 0; i < HOLDERS; i++) {
        cage->heirs[i] = (struct heir){
            .run = run, .confined = cage->confined, .client = cage->client, .number = i, .round = round};
        (void)pthread_create(&cage->heirs[i].thread, NULL, inherit, &cage->heirs[i]);
    }
}

static void join_heirs(struct cage *cage)
{
    for (int i = 0; i < HOLDERS; i++)
        (void)pthread_join(cage->heirs[i].thread, NULL);
}

/* Once the confined process is through. */
static void close_cage(struct hft_run *run, struct cage *cage)
{
    int status;
    (void)waitpid(cage->pid, &status, 0);
    hft_cgroup_remove(&cage->group);
    HFT_CHECK(run, WIFEXITED(status) && WEXITSTATUS(status) == 0, "the confined process ended with %d",
              status);
    HFT_CHECK(run, !atomic_load(&cage->confined->failed), "the confined process cannot acquire");
    (void)hf_client_close(cage->client, NULL);
    hft_server_stop(cage->server);
}

static void freezer(struct hft_run *run)
{
    enum { LEASE_MS = 300 };
    static struct cage cage;
    const struct confined start = {.lease_ms = LEASE_MS, .look_ms = 2, .rounds = run->times, .holders = HOLDERS};
    int64_t worst = 0;
    if (!open_cage(run, &cage, HFT_FREEZER, &start))
        return;
    struct confined *confined = cage.confined;
    for (int round = 0; round < run->times; round++) {
        HFT_UNTIL_TRUE(atomic_load(&confined->holding) == (round + 1) * HOLDERS ||
                       atomic_load(&confined->failed));
        hft_sleep_ms(hft_roll(run, 200));
        HFT_CHECK(run, hft_cgroup_freeze(&cage.group, true), "it does not freeze");
        int64_t frozen = hft_true_ns();
        start_heirs(run, &cage, round);
        join_heirs(&cage); /* who have it once the frozen holders' leases are over */
        HFT_CHECK(run, hft_cgroup_freeze(&cage.group, false), "it does not thaw");
        HFT_UNTIL_TRUE(atomic_load(&confined->ended) == (round + 1) * HOLDERS ||
                       atomic_load(&confined->failed));
        for (int i = 0; i < HOLDERS; i++) {
            int64_t took = cage.heirs[i].got_ns - frozen;
            worst = took > worst ? took : worst;
            judge_heir(run, confined, &cage.heirs[i]);
        }
    }
    close_cage(run, &cage);
    int all = run->times * HOLDERS;
    /* A holder that releases before it is notified learns of the loss by the release, and is not notified again. */
    HFT_CHECK(run, atomic_load(&confined->lost) == all && atomic_load(&confined->told) <= all,
              "of %d leases %d were lost and %d told", all, atomic_load(&confined->lost),
              atomic_load(&confined->told));
    /* L + guard + 300 ms after its last executed renewal */
    HFT_CHECK(run, hft_in_time(worst, (LEASE_MS + 262 + 300) * HFT_NS_PER_MS), "an heir waited for %lld ms",
              (long long)(worst / HFT_NS_PER_MS));
    hft_tally(run, all, worst);
    hft_note(run, "%d pauses of holders, worst_ms is from the freeze to the heir", all);
}

static int64_t cpu_time_ns(pid_t pid)
{
    clockid_t clock;
    struct timespec time = {0, 0};
    if (clock_getcpuclockid(pid, &clock) == 0)
        (void)clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* The promise for a tenth of a CPU does not hold for a process that gets less because others use this machine, nor for
 * one whose scheduler leaves our thread without a turn for so long that a renewal's two wake-ups, the watchdog's and the
 * reader's, take half a lease. */
static void cpu_quota(struct hft_run *run)
{
    enum { LEASE_MS = 2000, HOLD_MS = 3 * LEASE_MS };
    static struct cage cage;
    const struct confined start = {.lease_ms = LEASE_MS, .hold_ms = HOLD_MS, .look_ms = 20, .rounds = run->times,
                                   .holders = HOLDERS, .busy = BUSY};
    if (!open_cage(run, &cage, HFT_CPU, &start))
        return;
    struct confined *confined = cage.confined;
    int starved = 0, lost = 0, least = 100;
    int64_t latest_ms = 0;
    for (int round = 0; round < run->times; round++) {
        int lost_before = atomic_load(&confined->lost);
        for (int64_t until = hft_true_ns() + 60000 * HFT_NS_PER_MS;
             atomic_load(&confined->holding) < (round + 1) * HOLDERS && hft_true_ns() < until;)
            hft_sleep_ms(2);
        if (round == 0)
            HFT_CHECK(run, hft_cgroup_limit(&cage.group, 10), "no limit can be set");
        atomic_store(&confined->burn, true);
        struct hft_stalls stalls;
        hft_stalls_begin(&stalls, cage.pid, "hf-");
        int64_t began_ns = hft_true_ns(), used_ns = -cpu_time_ns(cage.pid);
        start_heirs(run, &cage, round);
        join_heirs(&cage);
        used_ns += cpu_time_ns(cage.pid);
        for (int i = 0; i < HOLDERS; i++)
            judge_heir(run, confined, &cage.heirs[i]);
        int percent = (int)(100 * used_ns / (hft_true_ns() - began_ns));
        int64_t late_ms = hft_stalls_end(&stalls);
        bool is_starved = percent < 9 || late_ms > LEASE_MS / 4;
        least = percent < least ? percent : least;
        latest_ms = late_ms > latest_ms ? late_ms : latest_ms;
        starved += is_starved;
        if (!is_starved)
            lost += atomic_load(&confined->lost) - lost_before;
    }
    (void)hft_cgroup_limit(&cage.group, 0);
    close_cage(run, &cage);
    int all = run->times * HOLDERS;
    HFT_CHECK(run, lost * 100 <= all, "%d of %d leases were lost with %d %% of a CPU or more", lost, all, least);
    hft_tally(run, all, -1);
    hft_note(run, "%d leases of %d ms at 10 %% of a CPU (%d times less, or none for our threads for up to %lld ms) with %d busy threads, "
             "%d falsely lost", all, LEASE_MS, starved, (long long)latest_ms, BUSY, lost);
}

const struct hft_named hft_confined_faults[] = {
    {"freezer", "a process that the kernel freezes for 2 L holds nothing when it goes on, and hears of it",
     freezer, 2, 16, HFT_MEASURES},
    {"cpu-quota", "a process with a tenth of a CPU keeps its leases, and is_valid is exact", cpu_quota, 1, 10,
     0},
    {.name = NULL}};
