/* SPDX-License-Identifier: MIT */
/*
 * leases.c - many leases of one process, watched.
 *
 *   torture hold   a thousand leases for a while, with both cores busy (--load): none may be lost
 *   torture loss   a thousand threads, a lease each, when the server freezes for longer than the lease: is_valid is false
 *                from V on; how late are event, descriptor and signal? And is the next holder later than all of them?
 *
 * Times are CLOCK_BOOTTIME. V is known to the millisecond (hf_lease_remaining_ms rounds down), so what is printed as
 * lateness is at most 1 ms too much.
 */
#include "tests/torture/leases.h"
#include "tests/support/child.h"
#include "tests/support/quantile.h"
#include "tests/support/server.h"

#include <holdfast/holdfast.h>

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HEIRS 20 /* locks that somebody else waits for */

static struct {
    const char *mode;
    int leases, lease_ms, seconds, bound_ms; /* bound_ms 0: 20, with load 250 */
    bool load;
} plan = {.leases = 1000, .lease_ms = 3000, .seconds = 60};

struct watch { /* what one holder's thread saw; -1: not yet */
    pthread_t thread;
    hf_lease *lease;
    _Atomic(int64_t) end_ns, event_ns, fd_ns, signal_ns, heir_ns;
    _Atomic(bool) valid_after_end, held, failed;
};

static struct watch *watches;
static hf_client *client, *heirs_client;
static _Thread_local struct watch *mine;

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void until(int64_t at_ns)
{
    struct timespec at = {(time_t)(at_ns / 1000000000), (long)(at_ns % 1000000000)};
    while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
}

static void on_signal(int number)
{
    (void)number;
    if (mine != NULL && atomic_load(&mine->signal_ns) < 0)
        atomic_store(&mine->signal_ns, now_ns());
}

static void on_event(hf_lease *lease, const hf_event *event, void *arg)
{
    struct watch *watch = arg;
    (void)lease;
    if (event->kind == HF_EVENT_LOST)
        atomic_store(&watch->event_ns, now_ns());
}

static void burn(pid_t *pids, int count)
{
    for (int i = 0; i < count; i++) {
        pids[i] = hft_fork();
        for (volatile unsigned long spin = 0; pids[i] == 0; spin++)
            ;
    }
}

static void quench(pid_t *pids, int count)
{
    for (int i = 0; i < count; i++) {
        (void)kill(pids[i], SIGKILL);
        (void)waitpid(pids[i], NULL, 0);
    }
}

static const char *name_of(int index, char name[24])
{
    (void)snprintf(name, 24, "torture:%d", index);
    return name;
}

static int hold(void)
{
    hf_error error;
    char name[24];
    int lost = 0;
    for (int i = 0; i < plan.leases; i++) {
        if (hf_lock_acquire(client, name_of(i, name), HF_LOCK(.lease_ms = plan.lease_ms), &watches[i].lease, &error) != HF_OK) {
            (void)fprintf(stderr, "torture: %s\n", error.message);
            return 1;
        }
    }
    int64_t end = now_ns() + (int64_t)plan.seconds * 1000000000, least_ms = plan.lease_ms;
    while (now_ns() < end) {
        for (int i = 0; i < plan.leases; i++) {
            int64_t left = hf_lease_remaining_ms(watches[i].lease);
            least_ms = left < least_ms ? left : least_ms;
        }
        until(now_ns() + 10000000);
    }
    for (int i = 0; i < plan.leases; i++)
        lost += hf_lease_release(watches[i].lease, NULL) != HF_OK;
    hf_stats stats;
    hf_client_stats(client, &stats);
    (void)printf("torture hold: %d leases of %d ms for %d s%s: %d lost, least time left %lld ms, %llu renewals in %llu "
                 "commands, %llu not confirmed\n", plan.leases, plan.lease_ms, plan.seconds, plan.load ? " on busy cores" : "",
                 lost, (long long)least_ms, (unsigned long long)stats.renewals, (unsigned long long)stats.remote_commands,
                 (unsigned long long)stats.renewals_failed);
    (void)printf("summary torture-hold operations=%llu faults=0 violations=0 false_losses=%d\n",
                 (unsigned long long)stats.renewals, lost);
    return lost != 0;
}

static void *stand(void *arg)
{
    struct watch *watch = arg;
    char name[24];
    mine = watch;
    if (hf_lock_acquire(client, name_of((int)(watch - watches), name),
                        HF_LOCK(.lease_ms = plan.lease_ms, .wait_ms = 20000, .on_event = on_event, .arg = watch,
                                .signal = SIGUSR1, .event_fd = true),
                        &watch->lease, NULL) != HF_OK) {
        atomic_store(&watch->failed, true);
        return NULL;
    }
    atomic_store(&watch->held, true);
    struct pollfd lost = {.fd = hf_lease_event_fd(watch->lease), .events = POLLIN};
    while (poll(&lost, 1, -1) < 0 && errno == EINTR)
        ;
    atomic_store(&watch->fd_ns, now_ns());
    if (hf_lease_is_valid(watch->lease))
        atomic_store(&watch->valid_after_end, true);
    for (int64_t end = now_ns() + INT64_C(5000000000); atomic_load(&watch->signal_ns) < 0 && now_ns() < end;)
        (void)poll(NULL, 0, 100); /* the signal interrupts it: it is sent to this thread, so the thread must be there */
    return NULL;
}

static void *inherit(void *arg)
{
    struct watch *watch = arg;
    char name[24];
    hf_lease *lease;
    if (hf_lock_acquire(heirs_client, name_of((int)(watch - watches), name),
                        HF_LOCK(.lease_ms = plan.lease_ms, .wait_ms = 60000), &lease, NULL) == HF_OK) {
        atomic_store(&watch->heir_ns, now_ns());
        (void)hf_lease_release(lease, NULL);
    }
    return NULL;
}

static struct {
    double p50, p99, p999, most;
} latest; /* of event, descriptor and signal whichever was later */

static void keep_later(double *most, int64_t ns)
{
    *most = (double)ns / 1e6 > *most ? (double)ns / 1e6 : *most;
}

/* Prints the milliseconds after V: median, 99th and 99.9th percentile, worst. Returns whether p99.9 is within the
 * bound. */
static bool tell(const char *what, _Atomic(int64_t) *first, double bound_ms)
{
    int64_t *late = calloc((size_t)plan.leases, sizeof *late);
    int missing = 0;
    for (int i = 0; i < plan.leases; i++) {
        int64_t at = atomic_load((_Atomic(int64_t) *)(void *)((char *)first + (size_t)i * sizeof *watches));
        missing += at < 0;
        late[i] = at < 0 ? INT64_MAX : at - atomic_load(&watches[i].end_ns);
    }
    int64_t p50 = hft_quantile(late, plan.leases, 0.5), p99 = hft_quantile(late, plan.leases, 0.99);
    int64_t p999 = hft_quantile(late, plan.leases, 0.999), most = hft_quantile(late, plan.leases, 1);
    free(late);
    (void)printf("  %-10s p50 %7.1f  p99 %7.1f  p99.9 %7.1f  worst %7.1f ms after V%s\n", what, (double)p50 / 1e6,
                 (double)p99 / 1e6, (double)p999 / 1e6, (double)most / 1e6, missing ? "  (some never came)" : "");
    keep_later(&latest.p50, p50);
    keep_later(&latest.p99, p99);
    keep_later(&latest.p999, p999);
    keep_later(&latest.most, most);
    return missing == 0 && (double)p999 / 1e6 <= bound_ms;
}

static bool wait_for_holders(void)
{
    int64_t end = now_ns() + INT64_C(30000000000);
    for (int i = 0; i < plan.leases; i++)
        while (!atomic_load(&watches[i].held)) {
            if (atomic_load(&watches[i].failed) || now_ns() > end)
                return false;
            until(now_ns() + 1000000);
        }
    return true;
}

static void watch_the_end(int64_t end)
{
    while (now_ns() < end) {
        for (int i = 0; i < plan.leases; i++) {
            int64_t before = now_ns();
            if (hf_lease_is_valid(watches[i].lease) && before >= atomic_load(&watches[i].end_ns) + 1000000)
                atomic_store(&watches[i].valid_after_end, true);
        }
        until(now_ns() + 200000);
    }
}

static int judge(void)
{
    int still_valid = 0, overtaken = 0, heirs = 0;
    int64_t soonest = INT64_MAX;
    double bound = plan.bound_ms != 0 ? plan.bound_ms : plan.load ? 250 : 20;
    for (int i = 0; i < plan.leases; i++)
        still_valid += atomic_load(&watches[i].valid_after_end);
    for (int i = 0; i < HEIRS && i < plan.leases; i++) {
        int64_t heir = atomic_load(&watches[i].heir_ns), event = atomic_load(&watches[i].event_ns);
        heirs += heir >= 0;
        overtaken += heir >= 0 && (event < 0 || event > heir || atomic_load(&watches[i].signal_ns) > heir);
        if (heir >= 0 && heir - atomic_load(&watches[i].end_ns) < soonest)
            soonest = heir - atomic_load(&watches[i].end_ns);
    }
    (void)printf("torture loss: %d leases of %d ms, server frozen%s: valid after V: %d, heirs %d, of them before the holder was "
                 "told: %d, soonest %.1f ms after V\n", plan.leases, plan.lease_ms, plan.load ? ", cores busy" : "",
                 still_valid, heirs, overtaken, (double)soonest / 1e6);
    bool event = tell("event", &watches[0].event_ns, bound), fd = tell("descriptor", &watches[0].fd_ns, bound),
         signal_ = tell("signal", &watches[0].signal_ns, bound);
    (void)printf("  bound for p99.9: %.0f ms: %s\n", bound, event && fd && signal_ ? "held" : "BROKEN");
    int broken = still_valid + overtaken + (heirs < HEIRS) + !event + !fd + !signal_;
    (void)printf("summary torture-loss%s operations=%d faults=1 violations=%d false_losses=0 lost_p50_ms=%.1f lost_p99_ms=%.1f "
                 "lost_p999_ms=%.1f lost_ms=%.1f lost_bound_ms=%.0f\n", plan.load ? "-busy" : "", plan.leases, broken,
                 latest.p50, latest.p99, latest.p999, latest.most, bound);
    return broken != 0;
}

/* Records when each lease ends, as it says now. True: one of them says something else than before. */
static bool note_ends(void)
{
    bool moved = false;
    for (int i = 0; i < plan.leases; i++) {
        int64_t left_ms = hf_lease_remaining_ms(watches[i].lease); /* first: whatever comes between makes `end` no earlier */
        int64_t end = now_ns() + left_ms * 1000000, before = atomic_load(&watches[i].end_ns);
        if (end <= before + 100000000)
            continue;
        atomic_store(&watches[i].end_ns, end);
        moved = true;
    }
    return moved;
}

static int loss(struct hft_server *server)
{
    pthread_attr_t small;
    pthread_t heirs[HEIRS];
    struct sigaction action = {.sa_handler = on_signal};
    (void)sigaction(SIGUSR1, &action, NULL);
    (void)pthread_attr_init(&small);
    (void)pthread_attr_setstacksize(&small, 64 << 10);
    for (int i = 0; i < plan.leases; i++) {
        struct watch *watch = &watches[i];
        watch->event_ns = watch->fd_ns = watch->signal_ns = watch->heir_ns = -1;
        if (pthread_create(&watch->thread, &small, stand, watch) != 0)
            return 1;
    }
    if (!wait_for_holders()) {
        (void)fprintf(stderr, "torture: the leases could not be had\n");
        return 1;
    }
    for (int i = 0; i < HEIRS; i++)
        (void)pthread_create(&heirs[i], &small, inherit, &watches[i]);
    until(now_ns() + 1000000000); /* the heirs stand in their queues */
    hft_server_freeze(server);
    while (note_ends()) /* answers from before the freeze may still be read */
        until(now_ns() + 50000000);
    int64_t last = 0;
    for (int i = 0; i < plan.leases; i++)
        last = atomic_load(&watches[i].end_ns) > last ? atomic_load(&watches[i].end_ns) : last;
    watch_the_end(last + 20000000); /* thawed while the keys still exist: the next holder comes when the guard is
                                     * over */
    hft_server_thaw(server);
    for (int i = 0; i < HEIRS; i++)
        (void)pthread_join(heirs[i], NULL);
    for (int i = 0; i < plan.leases; i++)
        (void)pthread_join(watches[i].thread, NULL);
    int verdict = judge();
    for (int i = 0; i < plan.leases; i++)
        (void)hf_lease_release(watches[i].lease, NULL);
    return verdict;
}

static void usage(void)
{
    (void)fprintf(stderr, "usage: torture hold|loss [--leases N] [--lease-ms N] [--seconds N] [--bound-ms N] [--load]\n");
    exit(64);
}

static void read_plan(int argc, char **argv)
{
    static const struct option names[] = {{"leases", 1, NULL, 'n'}, {"lease-ms", 1, NULL, 'L'}, {"seconds", 1, NULL, 's'},
                                          {"load", 0, NULL, 'b'},   {"bound-ms", 1, NULL, 'B'},  {NULL, 0, NULL, 0}};
    if (argc < 2 || (strcmp(argv[1], "hold") != 0 && strcmp(argv[1], "loss") != 0))
        usage();
    plan.mode = argv[1];
    optind = 2;
    for (int name; (name = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        char *end = NULL;
        long value = optarg != NULL ? strtol(optarg, &end, 10) : 1;
        if (name == '?' || value < 1 || value > 100000 || (end != NULL && *end != 0))
            usage();
        if (name == 'n')
            plan.leases = (int)value;
        else if (name == 'L')
            plan.lease_ms = (int)value;
        else if (name == 's')
            plan.seconds = (int)value;
        else if (name == 'B')
            plan.bound_ms = (int)value;
        else
            plan.load = true;
    }
    if (optind < argc || plan.leases < HEIRS)
        usage();
}

int hft_leases(int argc, char **argv)
{
    pid_t burners[16];
    hf_error error;
    read_plan(argc, argv);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int busy = plan.load ? (int)(cores > 16 ? 16 : cores) : 0;
    struct hft_server *server = hft_server_start(NULL);
    watches = calloc((size_t)plan.leases, sizeof *watches);
    burn(burners, busy);
    int verdict = 1;
    if (hf_client_open(hft_server_url(server), NULL, &client, &error) == HF_OK &&
        hf_client_open(hft_server_url(server), NULL, &heirs_client, &error) == HF_OK)
        verdict = strcmp(plan.mode, "hold") == 0 ? hold() : loss(server);
    else
        (void)fprintf(stderr, "torture: %s\n", error.message);
    quench(burners, busy);
    (void)hf_client_close(client, NULL);
    (void)hf_client_close(heirs_client, NULL);
    hft_server_stop(server);
    free(watches);
    return verdict;
}
