/* SPDX-License-Identifier: MIT */
/* promises.c - small promises of speed: a posted release leaves, a busy process hands off, a cancel ends a wait, a
 * loss is notified. The scheduler is the only fault; each step may take ten times what is promised. */
#include "tests/fault/fault.h"
#include "tests/support/fds.h"
#include "tests/support/quantile.h"
#include "tests/support/takers.h"


#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define TIMES      10
#define POST_NS    (HFT_NS_PER_MS / 2)  /* include/holdfast/lease.h */
#define GIVE_WAY_NS (20 * HFT_NS_PER_MS) /* docs/guarantees.md, 7 */
#define TELL_NS    HFT_NS_PER_MS        /* docs/guarantees.md, "Worst waits" */

/* One in twenty may be late because the scheduler ran something else. */
static void judge(struct hft_run *run, int64_t *took_ns, int count, int64_t promised_ns, const char *what)
{
    int64_t worst = hft_quantile(took_ns, count, 0.95), median = hft_quantile(took_ns, count, 0.5);
    hft_tally(run, count, hft_quantile(took_ns, count, 1));
    hft_note(run, "%s p50 %.2f ms", what, (double)median / 1e6);
    HFT_CHECK(run, median <= TIMES * promised_ns, "half of the time %s took more than %.1f ms, %.1f are promised", what,
              (double)median / 1e6, (double)promised_ns / 1e6);
    HFT_CHECK(run, hft_in_time(worst, TIMES * promised_ns), "one in twenty times %s took %.1f ms, %.1f are promised", what,
              (double)worst / 1e6, (double)promised_ns / 1e6);
}

static hf_lease *take(struct hft_run *run, hf_client *client, const char *name, const hf_lock_options *options)
{
    hf_lease *lease;
    hf_error error;
    hf_status status = hf_lock_acquire(client, name, options, &lease, &error);
    HFT_CHECK(run, status == HF_OK, "%s: %s: %s", name, hf_status_name(status), error.message);
    return lease;
}

/* ---- a posted release leaves ---- */

struct thaw {
    struct hft_server *server;
    int caller;
    _Atomic(bool) calls;
};

static void *thaw_when_the_caller_sleeps(void *arg)
{
    struct thaw *thaw = arg;
    HFT_UNTIL_TRUE(atomic_load(&thaw->calls) && hft_is_asleep(thaw->caller));
    hft_server_thaw(thaw->server);
    return NULL;
}

/* The server was away for a moment: the listener sleeps on a reply that nobody waits for, and the next acquire takes
 * over the read role. */
static hf_lease *take_after_a_hiccup(struct hft_run *run, struct hft_server *server, hf_client *client, int listener)
{
    struct thaw thaw = {.server = server, .caller = gettid()};
    pthread_t thread;
    hf_lease *first = take(run, client, "first", HF_LOCK(.wait_ms = 5000));
    hft_server_freeze(server);
    (void)hf_lease_post_release(first, NULL);
    int64_t posted_ns = hft_true_ns();
    HFT_UNTIL_TRUE(hft_true_ns() - posted_ns > TIMES * POST_NS && hft_is_asleep(listener));
    if (pthread_create(&thread, NULL, thaw_when_the_caller_sleeps, &thaw) != 0)
        exit(1);
    atomic_store(&thaw.calls, true);
    hf_lease *lease = take(run, client, "posted", HF_LOCK(.wait_ms = 5000));
    (void)pthread_join(thread, NULL);
    return lease;
}

static void prompt_posts(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    hf_client *client = hft_open(hft_server_url(server), NULL);
    int listener = hft_thread_named("hf-listener"), count = 0;
    int64_t *took_ns = calloc((size_t)run->times, sizeof *took_ns);
    for (; count < run->times && atomic_load(&run->broken) == 0; count++) {
        hf_lease *lease = count % 4 == 0 ? take(run, client, "posted", HF_LOCK(.wait_ms = 5000))
                                         : take_after_a_hiccup(run, server, client, listener);
        int64_t before_ns = hft_true_ns();
        HFT_CHECK(run, hf_lease_post_release(lease, NULL) == HF_OK, "a release failed");
        while (hft_lock_exists(server, "posted") != 0)
            ;
        took_ns[count] = hft_true_ns() - before_ns;
    }
    judge(run, took_ns, count, POST_NS, "a posted release, seen at the server,");
    free(took_ns);
    (void)hf_client_close(client, NULL);
    hft_server_stop(server);
}

/* ---- a busy process gives way ---- */

#define SECTION_NS (HFT_NS_PER_MS / 5)

struct passer {
    struct hft_run *run;
    hf_client *client;
    _Atomic(bool) *over;
    _Atomic(long) *passes;
    pthread_t thread;
};

static void *pass_it_on(void *arg)
{
    struct passer *me = arg;
    while (!atomic_load(me->over)) {
        hf_lease *lease = take(me->run, me->client, "busy", HF_LOCK(.wait_ms = 10000));
        (void)atomic_fetch_add(me->passes, 1);
        if (lease == NULL)
            break;
        hft_sleep_until(hft_true_ns() + SECTION_NS); /* so that somebody always waits */
        HFT_CHECK(me->run, hf_lease_release(lease, NULL) == HF_OK, "a release failed");
    }
    return NULL;
}

/* The first revoke that reaches a process: it acquires locks already, but its subscription is only about to begin. */
static int64_t wait_for_a_busy_process(struct hft_run *run, const char *url, const char *slow_to_listen_url)
{
    enum { PASSERS = 16 };
    hf_client *other = hft_open(url, NULL), *busy = hft_open(slow_to_listen_url, NULL);
    struct passer all[PASSERS];
    _Atomic(bool) over = false;
    _Atomic(long) passes = 0;
    for (int i = 0; i < PASSERS; i++) {
        all[i] = (struct passer){.run = run, .client = busy, .over = &over, .passes = &passes};
        if (pthread_create(&all[i].thread, NULL, pass_it_on, &all[i]) != 0)
            exit(1);
    }
    while (atomic_load(&passes) == 0 && atomic_load(&run->broken) == 0)
        ;
    int64_t before_ns = hft_true_ns();
    hf_lease *lease = take(run, other, "busy", HF_LOCK(.wait_ms = 10000));
    int64_t took_ns = hft_true_ns() - before_ns;
    atomic_store(&over, true);
    if (lease != NULL)
        HFT_CHECK(run, hf_lease_release(lease, NULL) == HF_OK, "a release failed");
    for (int i = 0; i < PASSERS; i++)
        (void)pthread_join(all[i].thread, NULL);
    (void)hf_client_close(busy, NULL);
    (void)hf_client_close(other, NULL);
    return took_ns;
}

static void prompt_revokes(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start(server);
    struct hft_network slow = {.to_server = {[HFT_SUBSCRIBER] = {.delay_ns = 5 * HFT_NS_PER_MS}}};
    int64_t *took_ns = calloc((size_t)run->times, sizeof *took_ns);
    hft_proxy_network(proxy, &slow);
    for (int i = 0; i < run->times; i++)
        took_ns[i] = wait_for_a_busy_process(run, hft_server_url(server), hft_proxy_url(proxy));
    judge(run, took_ns, run->times, GIVE_WAY_NS, "a lock that another process passes on among its threads,");
    free(took_ns);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

/* ---- a cancel ends a wait ---- */

struct canceled {
    struct hft_run *run;
    hf_client *client;
    hf_cancel *cancel;
    int64_t back_ns;
    pthread_t thread;
};

static void *wait_until_canceled(void *arg)
{
    struct canceled *me = arg;
    hf_lease *lease;
    hf_status status =
        hf_lock_acquire(me->client, "held", HF_LOCK(.wait_ms = HF_FOREVER, .cancel = me->cancel), &lease, NULL);
    me->back_ns = hft_true_ns();
    HFT_CHECK(me->run, status == HF_CANCELED, "a wait ended with %s", hf_status_name(status));
    return NULL;
}

static void prompt_cancels(struct hft_run *run)
{
    enum { THREADS = 4 };
    struct hft_server *server = hft_server_start(NULL);
    hf_client *client = hft_open(hft_server_url(server), NULL), *holder = hft_open(hft_server_url(server), NULL);
    hf_lease *held = take(run, holder, "held", NULL);
    hf_cancel *cancel;
    struct canceled all[THREADS];
    int64_t *took_ns = calloc((size_t)run->times * THREADS, sizeof *took_ns);
    if (hf_cancel_open(client, &cancel, NULL) != HF_OK)
        exit(1);
    for (int round = 0; round < run->times; round++) {
        for (int i = 0; i < THREADS; i++) {
            all[i] = (struct canceled){.run = run, .client = client, .cancel = cancel};
            if (pthread_create(&all[i].thread, NULL, wait_until_canceled, &all[i]) != 0)
                exit(1);
        }
        HFT_UNTIL_TRUE(hft_waiting_here(client, "held") == THREADS && hft_queued(server, "held") == 1);
        int64_t fired_ns = hft_true_ns();
        hf_cancel_fire(cancel);
        for (int i = 0; i < THREADS; i++) {
            (void)pthread_join(all[i].thread, NULL);
            took_ns[round * THREADS + i] = all[i].back_ns - fired_ns;
        }
        hf_cancel_reset(cancel);
    }
    judge(run, took_ns, run->times * THREADS, TELL_NS, "a wait, from its cancel to its end,");
    free(took_ns);
    hf_cancel_close(cancel);
    HFT_CHECK(run, hf_lease_release(held, NULL) == HF_OK, "release failed");
    (void)hf_client_close(client, NULL);
    (void)hf_client_close(holder, NULL);
    hft_server_stop(server);
}

/* ---- a loss is told ---- */

static _Atomic(int64_t) rang_ns, called_ns;

static void ring(int number)
{
    (void)number;
    atomic_store(&rang_ns, hft_true_ns());
}

static void be_called(hf_lease *lease, const hf_event *event, void *arg)
{
    (void)lease;
    (void)arg;
    if (event->kind == HF_EVENT_LOST)
        atomic_store(&called_ns, hft_true_ns());
}

static void prompt_notices(struct hft_run *run)
{
    struct sigaction action = {.sa_handler = ring}, before;
    struct hft_server *server = hft_server_start(NULL);
    hf_client *client = hft_open(hft_server_url(server), HF_CLIENT(.close_ms = 1));
    int64_t *took_ns = calloc((size_t)run->times * 3, sizeof *took_ns);
    (void)sigaction(SIGUSR1, &action, &before);
    for (int round = 0; round < run->times; round++) {
        hf_lease *lease = take(run, client, "lost",
                               HF_LOCK(.lease_ms = 200, .wait_ms = 5000, .event_fd = true, .signal = SIGUSR1,
                                       .on_event = be_called));
        struct pollfd told = {hf_lease_event_fd(lease), POLLIN, 0};
        atomic_store(&rang_ns, 0);
        atomic_store(&called_ns, 0);
        hft_server_freeze(server);
        int64_t end_ns = 0;
        do
            hft_note_end(lease, &end_ns);
        while (poll(&told, 1, 10) <= 0);
        took_ns[round * 3] = hft_true_ns() - end_ns;
        HFT_CHECK(run, !hf_lease_is_valid(lease), "told LOST, and valid");
        HFT_UNTIL_TRUE(atomic_load(&rang_ns) != 0 && atomic_load(&called_ns) != 0);
        took_ns[round * 3 + 1] = atomic_load(&rang_ns) - end_ns;
        took_ns[round * 3 + 2] = atomic_load(&called_ns) - end_ns;
        hft_server_thaw(server);
        HFT_CHECK(run, hf_lease_release(lease, NULL) == HF_LOST, "the release of a lost lease is not LOST");
    }
    judge(run, took_ns, run->times * 3, TELL_NS, "LOST, from V to descriptor, signal and callback,");
    free(took_ns);
    (void)hf_client_close(client, NULL);
    (void)sigaction(SIGUSR1, &before, NULL);
    hft_server_stop(server);
}

const struct hft_named hft_promise_faults[] = {
    {"prompt-posts", "a posted release leaves within a millisecond (watched at five times that)", prompt_posts, 60,
     2000, HFT_MEASURES},
    {"prompt-revokes", "a busy process gives way within 20 ms of the first wish (watched at ten times that)",
     prompt_revokes, 12, 300, HFT_MEASURES},
    {"prompt-cancels", "a wait ends within a millisecond of its cancel (watched at ten times that)", prompt_cancels, 50,
     2000, HFT_MEASURES},
    {"prompt-notices", "a loss is told within a millisecond in all its ways (watched at ten times that)", prompt_notices,
     15, 300, HFT_MEASURES},
    {.name = NULL}};
