/* SPDX-License-Identifier: MIT */
/* fault.c - lists the faults, or runs one by its name (or all, each in a process of its own), and prints the
 * outcome. */
#include "tests/fault/fault.h"
#include "tests/support/takers.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HUNG_S 240

struct hft_preload *hft_preload_control(void) __attribute__((weak));
void hft_preload_exempt(void) __attribute__((weak));

static const struct hft_named *const tables[] = {
    hft_lease_faults,   hft_wait_faults,    hft_reply_faults,   hft_server_faults,  hft_storm_faults,
    hft_call_faults,    hft_clock_faults,   hft_process_faults, hft_thread_faults,  hft_race_faults,
    hft_ending_faults,  hft_fetch_faults,   hft_network_faults, hft_hostile_faults, hft_replica_faults,
    hft_restart_faults, hft_confined_faults, hft_rule_faults,   hft_promise_faults,
    hft_refusal_faults, hft_vain_faults,    hft_commotion_faults, hft_prefork_faults,
    hft_loader_faults};

static const char *running = "";

struct hft_preload *hft_preload(void)
{
    return hft_preload_control != NULL ? hft_preload_control() : NULL;
}

void hft_preload_exempt_me(void)
{
    if (hft_preload_exempt != NULL)
        hft_preload_exempt();
}

int64_t hft_true_ns(void)
{
    struct timespec now;
    (void)syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void hft_broken(struct hft_run *run, const char *format, ...)
{
    char words[600];
    va_list more;
    if (atomic_fetch_add(&run->broken, 1) >= 20)
        return;
    va_start(more, format);
    (void)vsnprintf(words, sizeof words, format, more);
    va_end(more);
    (void)fprintf(stderr, "fault %s: %s\n", running, words);
}

void hft_note(struct hft_run *run, const char *format, ...)
{
    size_t used = strlen(run->note);
    va_list more;
    va_start(more, format);
    if (used + 2 < sizeof run->note) {
        if (used > 0)
            (void)strcpy(run->note + used, ", ");
        used = strlen(run->note);
        (void)vsnprintf(run->note + used, sizeof run->note - used, format, more);
    }
    va_end(more);
}

void hft_tally(struct hft_run *run, long count, int64_t worst_ns)
{
    run->count += count;
    run->worst_ns = worst_ns > run->worst_ns ? worst_ns : run->worst_ns;
}

void hft_cannot(struct hft_run *run, const char *format, ...)
{
    va_list more;
    va_start(more, format);
    (void)vsnprintf(run->note, sizeof run->note, format, more);
    va_end(more);
    run->cannot = true;
}

int hft_roll(struct hft_run *run, int sides)
{
    return rand_r(&run->rng) % sides;
}

void hft_sleep_until(int64_t at_ns)
{
    int64_t left;
    while ((left = at_ns - hft_true_ns()) > 0) {
        struct timespec length = {left / 1000000000, left % 1000000000};
        (void)nanosleep(&length, NULL);
    }
}

void hft_sleep_ms(int64_t ms)
{
    hft_sleep_until(hft_true_ns() + ms * HFT_NS_PER_MS);
}

int64_t hft_lock_keys_after(struct hft_server *server, int64_t ms)
{
    int64_t until_ns = hft_true_ns() + ms * HFT_NS_PER_MS, left = hft_lock_keys(server);
    for (; left != 0 && hft_true_ns() < until_ns; left = hft_lock_keys(server))
        hft_sleep_ms(2);
    return left;
}

void hft_note_end(const hf_lease *lease, int64_t *end_ns)
{
    int64_t now_ns = hft_true_ns(), left_ms = hf_lease_remaining_ms(lease);
    if (left_ms > 0)
        *end_ns = now_ns + (left_ms + 1) * HFT_NS_PER_MS;
}

hf_client *hft_open(const char *url, const hf_client_options *options)
{
    hf_client *client;
    hf_error error;
    if (hf_client_open(url, options, &client, &error) != HF_OK) {
        (void)fprintf(stderr, "fault %s: cannot open a client: %s\n", running, error.message);
        exit(1);
    }
    return client;
}

void hft_server_say(struct hft_server *server, const char *format, ...)
{
    char words[256];
    va_list more;
    va_start(more, format);
    (void)vsnprintf(words, sizeof words, format, more);
    va_end(more);
    redisReply *reply = hft_server_ask(server, words); /* words without formats of hiredis' own */
    if (reply->type == REDIS_REPLY_ERROR) {
        (void)fprintf(stderr, "fault %s: '%s' was answered: %s\n", running, words, reply->str);
        exit(1);
    }
    freeReplyObject(reply);
}

static _Atomic(int64_t) latest_wake_ns;

static void *keep_pulse(void *arg)
{
    (void)arg;
    hft_preload_exempt_me();
    for (;;) {
        struct timespec length = {0, 2 * HFT_NS_PER_MS};
        int64_t due = hft_true_ns() + length.tv_nsec;
        (void)nanosleep(&length, NULL);
        int64_t late = hft_true_ns() - due;
        if (late > atomic_load(&latest_wake_ns))
            atomic_store(&latest_wake_ns, late);
    }
    return NULL;
}

bool hft_in_time_of(int wakes, int64_t took_ns, int64_t limit_ns)
{
    return took_ns <= limit_ns + wakes * atomic_load(&latest_wake_ns);
}

bool hft_in_time(int64_t took_ns, int64_t limit_ns)
{
    return hft_in_time_of(4, took_ns, limit_ns);
}

/* Starts the threads that measure lateness, except for faults that count threads or fork before there may be any. One for
 * each CPU: a host can take one of them away for half a second, with the thread that was to run there, and leave the
 * others. */
static void start_pulses(const struct hft_named *fault)
{
    cpu_set_t all, one;
    CPU_ZERO(&all);
    if ((fault->needs & HFT_MEASURES) == 0 || sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        pthread_t thread;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (!CPU_ISSET(cpu, &all) || pthread_create(&thread, NULL, keep_pulse, NULL) != 0)
            continue;
        (void)pthread_setaffinity_np(thread, sizeof one, &one);
        (void)pthread_detach(thread);
    }
}

static const struct hft_named *find(const char *name)
{
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (const struct hft_named *at = tables[i]; at->name != NULL; at++)
            if (strcmp(at->name, name) == 0)
                return at;
    return NULL;
}

static void list(bool promises)
{
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (const struct hft_named *at = tables[i]; at->name != NULL; at++) {
            if (promises)
                (void)printf("%-22s %s\n", at->name, at->promise);
            else
                (void)puts(at->name);
        }
}

static char doing[200] = "nothing that it tells";

void hft_doing(const char *format, ...)
{
    va_list more;
    va_start(more, format);
    (void)vsnprintf(doing, sizeof doing, format, more);
    va_end(more);
}

static void hung(int number)
{
    static const char words[] = "fault: hangs in: ";
    (void)number;
    (void)!write(2, words, sizeof words - 1);
    (void)!write(2, doing, strlen(doing));
    (void)!write(2, "\n", 1);
    _exit(5);
}

/* Why this build cannot show it; NULL: it can. */
static const char *unfit(const struct hft_named *fault)
{
    if ((fault->needs & HFT_UNLOADS) != 0 && HFT_SANITIZER[0] != 0)
        return "a sanitizer's runtime does not unload";
    if ((fault->needs & HFT_PRELOADED) != 0 && strstr(HFT_SANITIZER, "thread") != NULL)
        return "ThreadSanitizer's own interceptors stand before any other";
    return NULL;
}

/* Executes the program again with the preload library, which has to be loaded before main. */
static void preload(char **argv)
{
    char path[512], options[512];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
    if (length < 0 || getenv("LD_PRELOAD") != NULL)
        return;
    path[length] = 0;
    char *slash = strrchr(path, '/');
    (void)strcpy(slash + 1, "libhffault.so");
    const char *before = getenv("ASAN_OPTIONS");
    (void)snprintf(options, sizeof options, "%s%sverify_asan_link_order=0:allocator_may_return_null=1",
                   before != NULL ? before : "", before != NULL ? ":" : "");
    (void)setenv("ASAN_OPTIONS", options, 1);
    (void)setenv("LD_PRELOAD", path, 1);
    (void)execv("/proc/self/exe", argv);
}

/* Prints the last line, the same for all faults (README): scripts read it. */
static void sum_up(const struct hft_named *fault, struct hft_run *run, int64_t took_ns)
{
    char worst[32] = "-";
    int broken = atomic_load(&run->broken);
    if (run->worst_ns >= 0)
        (void)snprintf(worst, sizeof worst, "%.1f", (double)run->worst_ns / 1e6);
    if ((fault->needs & HFT_MEASURES) != 0)
        hft_note(run, "threads were woken up to %.0f ms late", (double)atomic_load(&latest_wake_ns) / 1e6);
    (void)printf("fault %-22s %-6s seconds=%.1f seed=%u count=%ld violations=%d worst_ms=%s: %s\n",
                 fault->name, broken == 0 ? "ok" : "FAILED", (double)took_ns / 1e9, run->seed,
                 run->count > 0 ? run->count : run->times, broken, worst, run->note);
    if (broken != 0)
        (void)printf("      %d times not: %s\n", broken, fault->promise);
}

static int run_one(const struct hft_named *fault, struct hft_run *run)
{
    running = fault->name;
    run->rng = run->seed;
    if (run->times == 0)
        run->times = run->full ? fault->full_times : fault->times;
    if ((fault->needs & HFT_PRELOADED) != 0 && hft_preload() == NULL) {
        (void)printf("fault %-22s skipped: this build cannot be preloaded\n", fault->name);
        return 77;
    }
    if (!run->full) {
        (void)signal(SIGALRM, hung);
        (void)alarm(HUNG_S);
    }
    int64_t began = hft_true_ns();
    start_pulses(fault);
    fault->run(run);
    (void)alarm(0);
    if (run->cannot) {
        (void)printf("fault %-22s skipped: %s\n", fault->name, run->note);
        return 77;
    }
    sum_up(fault, run, hft_true_ns() - began);
    return atomic_load(&run->broken) == 0 ? 0 : 1;
}

static int run_all(char **argv, int more)
{
    int failed = 0;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (const struct hft_named *at = tables[i]; at->name != NULL; at++) {
            char *words[16] = {argv[0], (char *)(uintptr_t)at->name};
            int status;
            for (int w = 0; w < more && w < 13; w++)
                words[2 + w] = argv[2 + w];
            (void)fflush(stdout);
            pid_t pid = fork();
            if (pid == 0) {
                (void)execv("/proc/self/exe", words);
                _exit(127);
            }
            while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
            if (!WIFEXITED(status))
                (void)printf("fault %-22s FAILED by signal %d\n", at->name, WTERMSIG(status));
            failed += !WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 77);
        }
    return failed == 0 ? 0 : 1;
}

static int usage(void)
{
    (void)fprintf(stderr, "usage: fault                                   lists the faults and their promises\n"
                          "       fault --list                            their names\n"
                          "       fault NAME|all [--seed N] [--times N] [--full]\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct hft_run run = {.seed = 1, .worst_ns = -1};
    if (argc == 1) {
        list(true);
        return 0;
    }
    if (strcmp(argv[1], "--list") == 0) {
        list(false);
        return 0;
    }
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--full") == 0)
            run.full = true;
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            run.seed = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--times") == 0 && i + 1 < argc)
            run.times = (int)strtol(argv[++i], NULL, 10);
        else
            return usage();
    }
    if (strcmp(argv[1], "all") == 0)
        return run_all(argv, argc - 2);
    const struct hft_named *fault = find(argv[1]);
    if (fault == NULL)
        return usage();
    if (unfit(fault) != NULL) {
        (void)printf("fault %-22s skipped: %s\n", fault->name, unfit(fault));
        return 77;
    }
    if ((fault->needs & HFT_PRELOADED) != 0 && hft_preload() == NULL)
        preload(argv);
    (void)unsetenv("LD_PRELOAD"); /* not for the servers */
    return run_one(fault, &run);
}
