/* SPDX-License-Identifier: MIT */
/* replies.c - faults of the connection itself: replies that are late, cut, dripping, refused, or never come. */
#include "tests/fault/fault.h"

#include "core/protocol/scripts.h"
#include "tests/support/takers.h"

#include <holdfast/redis.h>

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct echoes { /* a thread that asks and looks whether the answer is its own */
    struct hft_run *run;
    hf_client *client;
    pthread_t thread;
    int number, times;
    int64_t limit_ns; /* a call takes no longer */
    int64_t longest_ns;
    int answered, mismatched, unanswered, unsent, others;
};

static void ask_once(struct echoes *me, int i)
{
    char id[32];
    struct redisReply *reply;
    hf_error error;
    (void)snprintf(id, sizeof id, "%d-%d", me->number, i);
    int64_t before = hft_true_ns();
    hf_status status = hf_command(me->client, &reply, &error, "ECHO %s", id);
    int64_t took = hft_true_ns() - before;
    me->longest_ns = took > me->longest_ns ? took : me->longest_ns;
    if (status == HF_OK) {
        bool mine = reply->type == REDIS_REPLY_STRING && strcmp(reply->str, id) == 0;
        me->answered += mine;
        me->mismatched += !mine;
        freeReplyObject(reply);
    } else if (status == HF_UNKNOWN) {
        me->unanswered++;
    } else if (status == HF_UNAVAILABLE) {
        me->unsent++;
        hft_sleep_ms(1);
    } else {
        me->others++;
        HFT_CHECK(me->run, false, "ECHO: %s: %s", hf_status_name(status), error.message);
    }
}

static void *ask_many(void *arg)
{
    struct echoes *me = arg;
    for (int i = 0; me->answered + me->mismatched + me->unanswered + me->others < me->times; i++)
        ask_once(me, i); /* what never left does not count */
    return NULL;
}

static void start_echoes(struct hft_run *run, struct echoes *all, int count, hf_client *client, int times,
                         int64_t limit_ms)
{
    for (int i = 0; i < count; i++) {
        all[i] = (struct echoes){
            .run = run, .client = client, .number = i, .times = times, .limit_ns = limit_ms * HFT_NS_PER_MS};
        if (pthread_create(&all[i].thread, NULL, ask_many, &all[i]) != 0)
            exit(1);
    }
}

static void judge_echoes(struct hft_run *run, struct echoes *all, int count)
{
    int answered = 0, unanswered = 0, unsent = 0;
    int64_t longest = 0;
    for (int i = 0; i < count; i++) {
        (void)pthread_join(all[i].thread, NULL);
        HFT_CHECK(run, all[i].mismatched == 0, "%d replies were somebody else's", all[i].mismatched);
        HFT_CHECK(run, hft_in_time(all[i].longest_ns, all[i].limit_ns), "a call took %lld ms",
                  (long long)(all[i].longest_ns / HFT_NS_PER_MS));
        answered += all[i].answered;
        unanswered += all[i].unanswered;
        unsent += all[i].unsent;
        longest = all[i].longest_ns > longest ? all[i].longest_ns : longest;
    }
    hft_tally(run, answered + unanswered, longest);
    HFT_CHECK(run, answered > 0, "nothing was answered");
    hft_note(run, "%d answered, %d unknown, %d unsent, none mixed up", answered, unanswered, unsent);
}

struct rng {
    unsigned rng;
    int one_in, least_ms, most_ms;
    _Atomic(long) hits;
};

static void delay_some(const struct hft_request *request, struct hft_judgement *judgement, void *arg)
{
    struct rng *rng = arg;
    bool grant =
        hft_request_is(request, "EXEC", NULL) || hft_request_is(request, "EVALSHA", hfi_script_acquire->sha1);
    int one_in = grant ? 20 : rng->one_in;
    if ((!grant && !hft_request_is(request, "ECHO", NULL)) || rand_r(&rng->rng) % one_in != 0)
        return;
    atomic_fetch_add(&rng->hits, 1);
    judgement->sentence = HFT_LATE_REPLY;
    judgement->delay_ns =
        (rng->least_ms + rand_r(&rng->rng) % (rng->most_ms - rng->least_ms)) * HFT_NS_PER_MS;
}

struct late_grants { /* acquires whose answers come late, often after the call was given up */
    struct hft_run *run;
    hf_client *client;
    int number;
    pthread_t thread;
    _Atomic(bool) *stop;
    long granted, given_up;
};

static void *try_late(void *arg)
{
    struct late_grants *me = arg;
    char name[48];
    for (int i = 0; !atomic_load(me->stop); i++) {
        hf_lease *lease;
        hf_error error;
        (void)snprintf(name, sizeof name, "late:%d:%d", me->number, i);
        hf_status status = hf_lock_acquire(me->client, name,
                                           HF_LOCK(.lease_ms = 60000, .wait_ms = i % 2 * 30), &lease, &error);
        me->granted += status == HF_OK;
        me->given_up += status != HF_OK;
        HFT_CHECK(me->run, status == HF_OK || status == HF_TIMEOUT || status == HF_UNAVAILABLE, "%s: %s: %s",
                  name, hf_status_name(status), error.message);
        if (status == HF_OK)
            (void)hf_lease_release(lease, NULL);
        hft_sleep_ms(1);
    }
    return NULL;
}

static void delayed_replies(struct hft_run *run)
{
    enum { MOST = 256, SHORT = 32, TRIERS = 4 };
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start(server);
    struct rng rng = {.rng = run->seed, .one_in = run->full ? 2000 : 400, .least_ms = 5, .most_ms = 90};
    struct hft_network slow = {.to_client = {{.jitter_ns = 2 * HFT_NS_PER_MS}}};
    static struct echoes all[MOST];
    struct late_grants tries[TRIERS];
    _Atomic(bool) stop = false;
    long late = 0;
    int threads = run->full ? MOST : SHORT;
    hft_proxy_judge(proxy, delay_some, &rng);
    hf_client *client = hft_open(hft_proxy_url(proxy), HF_CLIENT(.command_ms = 40));
    hft_proxy_network(proxy, &slow);
    start_echoes(run, all, threads, client, run->times, 2000);
    for (int i = 0; i < TRIERS; i++) {
        tries[i] = (struct late_grants){.run = run, .client = client, .number = i, .stop = &stop};
        (void)pthread_create(&tries[i].thread, NULL, try_late, &tries[i]);
    }
    judge_echoes(run, all, threads);
    atomic_store(&stop, true);
    for (int i = 0; i < TRIERS; i++) {
        (void)pthread_join(tries[i].thread, NULL);
        late += tries[i].given_up;
    }
    hft_proxy_judge(proxy, NULL, NULL);
    int64_t left = hft_lock_keys_after(server, 3000);
    HFT_CHECK(run, left == 0, "%lld late grants were not given back", (long long)left);
    HFT_CHECK(run, atomic_load(&rng.hits) > 0, "no reply was delayed beyond the rest");
    hft_note(run, "%ld delayed by 5 to 90 ms, all others by up to 2; %ld acquires given up",
             atomic_load(&rng.hits), late);
    (void)hf_client_close(client, NULL);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

static void resets(struct hft_run *run)
{
    enum { THREADS = 64 };
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start_tcp(server);
    static struct echoes all[THREADS];
    hf_client *client = hft_open(hft_proxy_url(proxy), HF_CLIENT(.command_ms = 500));
    struct hft_network slow = {.to_client = {{.delay_ns = 2 * HFT_NS_PER_MS}, {.delay_ns = 0}}};
    hft_proxy_network(proxy, &slow);
    start_echoes(run, all, THREADS, client, run->times, 3000);
    for (int i = 0; i < 20; i++) {
        hft_sleep_ms(hft_roll(run, 40));
        if (i % 5 == 4)
            hft_proxy_half_close(proxy);
        else
            hft_proxy_cut(proxy, i % 2 == 0);
    }
    judge_echoes(run, all, THREADS);
    (void)hf_client_close(client, NULL);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

/* One byte every 20 ms: the deadline is for the whole reply, not for each byte. */
static void drip(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start(server);
    hf_client *client = hft_open(hft_proxy_url(proxy), HF_CLIENT(.command_ms = 200, .connect_ms = 300));
    struct hft_network dripping = {
        .to_client = {{.drip_bytes = 1, .drip_ns = 20 * HFT_NS_PER_MS}, {.delay_ns = 0}}};
    int64_t longest = 0;
    hft_proxy_network(proxy, &dripping);
    for (int i = 0; i < run->times; i++) {
        struct redisReply *reply = NULL;
        hf_lease *lease;
        int64_t before = hft_true_ns();
        hf_status status = i % 2 == 0
                               ? hf_command(client, &reply, NULL, "ECHO %s",
                                            "a reply that is far too long for a line that only drips")
                               : hf_lock_acquire(client, "drip", HF_LOCK(.lease_ms = 5000), &lease, NULL);
        int64_t took = hft_true_ns() - before;
        longest = took > longest ? took : longest;
        HFT_CHECK(run, status == HF_UNKNOWN || status == HF_UNAVAILABLE, "a dripping server: %s",
                  hf_status_name(status));
    }
    HFT_CHECK(run, hft_in_time(longest, 220 * HFT_NS_PER_MS), "a call of 200 ms took %lld ms",
              (long long)longest / HFT_NS_PER_MS);
    hft_note(run, "%d calls of 200 ms, longest %.0f ms", run->times, (double)longest / 1e6);
    hft_proxy_network(proxy, NULL);
    hft_proxy_cut(proxy, false);
    hf_lease *lease;
    HFT_CHECK(run, hf_lock_acquire(client, "drip", HF_LOCK(.wait_ms = 6000), &lease, NULL) == HF_OK,
              "it does not recover");
    (void)hf_lease_release(lease, NULL);
    (void)hf_client_close(client, NULL);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

/* The connections that exist are dead and nobody says so. */
static void half_open(struct hft_run *run)
{
    enum { HELD = 16 };
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start_tcp(server);
    hf_client *client = hft_open(hft_proxy_url(proxy), HF_CLIENT(.command_ms = 300));
    hf_lease *leases[HELD];
    int64_t longest = 0;
    for (int i = 0; i < HELD; i++) {
        char name[48];
        (void)snprintf(name, sizeof name, "kept:%d", i);
        HFT_CHECK(run, hf_lock_acquire(client, name, HF_LOCK(.lease_ms = 800), &leases[i], NULL) == HF_OK,
                  "no lease");
    }
    for (int round = 0; round < run->times; round++) {
        (void)hft_proxy_freeze_present(proxy, HFT_EVERY_CLASS);
        hf_lease *lease;
        int64_t before = hft_true_ns();
        hf_status status = hf_lock_acquire(client, "new", HF_LOCK(.wait_ms = 3000), &lease, NULL);
        int64_t took = hft_true_ns() - before;
        longest = took > longest ? took : longest;
        HFT_CHECK(run, status == HF_OK, "no way around a dead connection: %s", hf_status_name(status));
        if (status == HF_OK)
            HFT_CHECK(run, hf_lease_release(lease, NULL) == HF_OK, "release failed");
        hft_await_renewals(2, leases, HELD); /* the first may have been on its way */
        for (int i = 0; i < HELD; i++)
            HFT_CHECK(run, hf_lease_is_valid(leases[i]), "kept:%d was lost", i);
    }
    HFT_CHECK(run, hft_in_time(longest, 800 * HFT_NS_PER_MS), "an acquire took %lld ms",
              (long long)(longest / HFT_NS_PER_MS));
    for (int i = 0; i < HELD; i++)
        HFT_CHECK(run, hf_lease_release(leases[i], NULL) == HF_OK, "release failed");
    hft_note(run, "%d times dead, %d leases kept, a new one in at most %.0f ms", run->times, HELD,
             (double)longest / 1e6);
    (void)hf_client_close(client, NULL);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

/* Which connection listens, 0: none. */
static long long subscriber_id(struct hft_server *server)
{
    redisReply *reply = hft_server_ask(server, "CLIENT LIST TYPE pubsub");
    long long id = 0;
    (void)sscanf(reply->str, "id=%lld", &id);
    freeReplyObject(reply);
    return id;
}

/* A subscriber hears nothing of its dead connection either. */
static void idle_subscriber(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start(server);
    hf_client *client = hft_open(hft_proxy_url(proxy), NULL);
    int64_t worst = 0;
    for (int round = 0; round < run->times; round++) {
        HFT_UNTIL_TRUE(subscriber_id(server) != 0);
        long long before = subscriber_id(server), now;
        (void)hft_proxy_freeze_present(proxy, 1u << HFT_SUBSCRIBER);
        int64_t since = hft_true_ns(), took = 0;
        while (((now = subscriber_id(server)) == before || now == 0) && took < 10000 * HFT_NS_PER_MS) {
            hft_sleep_ms(5);
            took = hft_true_ns() - since;
        }
        worst = took > worst ? took : worst;
    }
    HFT_CHECK(run, hft_in_time(worst, 3100 * HFT_NS_PER_MS), "a dead subscriber was noticed after %lld ms",
              (long long)(worst / HFT_NS_PER_MS));
    hft_note(run, "noticed after at most %.0f ms", (double)worst / 1e6);
    (void)hf_client_close(client, NULL);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

/* The connection ends after byte n of the server's output, for every n. */
static void cuts(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start(server);
    hf_client *client = hft_open(hft_proxy_url(proxy), HF_CLIENT(.command_ms = 1000));
    int clear = 0, in_doubt = 0;
    for (int byte = 1; byte <= run->times; byte++) {
        struct hft_network cutting = {.to_client = {{.cut_after = byte}, {.delay_ns = 0}}};
        hf_lease *lease;
        hf_error error;
        /* The acquire makes a connection to cut, and shows that the cut before has left nothing that stays. */
        if (hf_lock_acquire(client, "cut", HF_LOCK(.wait_ms = 5000), &lease, &error) != HF_OK) {
            hft_broken(run, "byte %d: %s", byte, error.message);
            break;
        }
        (void)hf_lease_release(lease, NULL);
        hft_proxy_network(proxy, byte % 2 == 0 ? &cutting : NULL);
        hf_status status =
            hf_lock_acquire(client, "cut", HF_LOCK(.wait_ms = 20, .lease_ms = 20000), &lease, &error);
        hft_proxy_network(proxy, byte % 2 == 1 ? &cutting : NULL);
        HFT_CHECK(run, status == HF_OK || status == HF_TIMEOUT || status == HF_UNAVAILABLE,
                  "byte %d: acquire: %s: %s", byte, hf_status_name(status), error.message);
        clear += status == HF_OK;
        if (status == HF_OK) {
            status = hf_lease_release(lease, &error);
            in_doubt += status == HF_UNKNOWN;
            HFT_CHECK(run, status == HF_OK || status == HF_UNKNOWN, "byte %d: release: %s: %s", byte,
                      hf_status_name(status), error.message);
        }
        hft_proxy_network(proxy, NULL);
    }
    int64_t left = hft_lock_keys_after(server, 3000);
    HFT_CHECK(run, left == 0, "%lld keys are left", (long long)left);
    hft_note(run, "%d cuts, %d leases, %d releases unknown", run->times, clear, in_doubt);
    (void)hf_client_close(client, NULL);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

/* Renewals have a connection of their own, so nothing else is lost with them. */
static void keep_silent(const struct hft_request *request, struct hft_judgement *judgement, void *arg)
{
    (void)arg;
    if (hft_request_is(request, "EVALSHA", hfi_script_renew->sha1))
        judgement->sentence = HFT_SILENCE;
}

static void silent_renewals(struct hft_run *run)
{
    for (int round = 0; round < run->times; round++) {
        struct hft_server *server = hft_server_start(NULL);
        struct hft_proxy *proxy = hft_proxy_start(server);
        hf_client *client = hft_open(hft_proxy_url(proxy), HF_CLIENT(.command_ms = 5000, .close_ms = 100));
        hf_lease *lease;
        hf_error error;
        hft_proxy_judge(proxy, keep_silent, NULL);
        hf_status status = hf_lock_acquire(client, "n", HF_LOCK(.lease_ms = 1000), &lease, &error);
        HFT_CHECK(run, status == HF_OK, "%s", error.message);
        hf_stats stats;
        do
            hf_client_stats(client, &stats);
        while (status == HF_OK && stats.at_risk == 0 && hf_lease_is_valid(lease)); /* its renewal is under way */
        if (status == HF_OK)
            HFT_CHECK(run, hf_lease_release(lease, &error) == HF_OK, "%s", error.message);
        HFT_CHECK(run, hf_client_close(client, &error) == HF_OK, "%s", error.message);
        HFT_CHECK(run, hft_lock_keys(server) == 0, "keys are left");
        hft_tally(run, 1, 0);
        hft_proxy_stop(proxy);
        hft_server_stop(server);
    }
}

struct refusal {
    const char *text;
    hf_status acquire; /* what a try says; HF_OK: any refusal will do */
};

struct refuser {
    const char *text;
    bool releases; /* else everything but them */
};

/* A transaction is refused as a whole: the server must not be left in the middle of one. */
static void refuse(const struct hft_request *request, struct hft_judgement *judgement, void *arg)
{
    const struct refuser *refuser = arg;
    bool release = hft_request_is(request, "EVALSHA", hfi_script_release->sha1);
    bool lock = hft_request_is(request, "EVALSHA", NULL) || hft_request_is(request, "SET", NULL) ||
                hft_request_is(request, "INCRBY", NULL) || hft_request_is(request, "EXEC", NULL);
    if (refuser->releases ? !release : release)
        return;
    if (hft_request_is(request, "MULTI", NULL) || lock)
        judgement->sentence = HFT_ANSWER;
    judgement->text = hft_request_is(request, "MULTI", NULL) ? "+OK\r\n"
                      : hft_request_is(request, "EXEC", NULL) && refuser->text[0] == '-'
                          ? "-EXECABORT Discarded.\r\n"
                          : refuser->text;
}

/* A refused acquire, then a refused release. The caller closes the client. */
static hf_client *meet_refusal(struct hft_run *run, struct hft_proxy *proxy, const struct refusal *refusal,
                               int64_t wait_ms, int number)
{
    struct refuser refuser = {refusal->text, false};
    hf_client *client = hft_open(hft_proxy_url(proxy), HF_CLIENT(.command_ms = 500));
    hf_lease *lease;
    hf_error error = {.status = HF_OK};
    char name[48];
    (void)snprintf(name, sizeof name, "refused:%d", number);
    hft_proxy_judge(proxy, refuse, &refuser);
    hf_status status =
        hf_lock_acquire(client, name, HF_LOCK(.lease_ms = 1000, .wait_ms = wait_ms), &lease, &error);
    HFT_CHECK(run, status != HF_OK, "%.20s: held", refusal->text);
    HFT_CHECK(run, refusal->acquire == HF_OK || wait_ms > 0 || status == refusal->acquire, "%.20s: %s: %s",
              refusal->text, hf_status_name(status), error.message);
    HFT_CHECK(run, error.message[0] != 0 && error.status == status, "%.20s: no error is filled",
              refusal->text);
    hft_proxy_judge(proxy, NULL, NULL);
    int64_t until = hft_true_ns() + 5000 * HFT_NS_PER_MS;
    do /* a dial that was refused is the truth until the next one */
        status = hf_lock_acquire(client, name, HF_LOCK(.lease_ms = 5000, .wait_ms = 5000), &lease, &error);
    while ((status == HF_DENIED || status == HF_PROTOCOL) && hft_true_ns() < until);
    HFT_CHECK(run, status == HF_OK, "after %.20s: %s: %s", refusal->text, hf_status_name(status),
              error.message);
    refuser.releases = true;
    hft_proxy_judge(proxy, refuse, &refuser);
    if (status == HF_OK) {
        status = hf_lease_release(lease, &error);
        HFT_CHECK(run, status != HF_OK && status != HF_LOST, "%.20s to a release: %s", refusal->text,
                  hf_status_name(status));
    }
    hft_proxy_judge(proxy, NULL, NULL);
    return client;
}

static void error_replies(struct hft_run *run)
{
    static const struct refusal refusals[] = {
        {"-LOADING Redis is loading the dataset in memory\r\n", HF_UNAVAILABLE},
        {"-READONLY You can't write against a read only replica.\r\n", HF_UNAVAILABLE},
        {"-OOM command not allowed when used memory > 'maxmemory'.\r\n", HF_UNAVAILABLE},
        {"-MISCONF Redis is configured to save RDB snapshots\r\n", HF_UNAVAILABLE},
        {"-NOREPLICAS Not enough good replicas to write.\r\n", HF_UNAVAILABLE},
        {"-MASTERDOWN Link with MASTER is down\r\n", HF_UNAVAILABLE},
        {"-BUSY Redis is busy running a script.\r\n", HF_UNAVAILABLE},
        {"-CLUSTERDOWN The cluster is down\r\n", HF_UNAVAILABLE},
        {"-TRYAGAIN Multiple keys request during rehashing of slot\r\n", HF_UNAVAILABLE},
        {"-NOAUTH Authentication required.\r\n", HF_OK /* the lane may end before */},
        {"-NOPERM this user has no permissions to run the 'set' command\r\n", HF_DENIED},
        {"-ERR unknown command\r\n", HF_PROTOCOL},
        {"-SURPRISE what is this?\r\n", HF_UNAVAILABLE},
        /* A reply that none of the scripts can give ends the connection: it may belong to another command. */
        {"+OK\r\n", HF_UNAVAILABLE},
        {":7\r\n", HF_UNAVAILABLE},
        {"$-1\r\n", HF_UNAVAILABLE},
        {"*0\r\n", HF_UNAVAILABLE},
        {"*2\r\n$7\r\nGRANTED\r\n$1\r\nx\r\n", HF_UNAVAILABLE /* junk that looks like a grant */},
    };
    enum { COUNT = sizeof refusals / sizeof refusals[0] };
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start(server);
    for (int round = 0; round < run->times; round++) {
        hf_client *clients[COUNT];
        for (int i = 0; i < COUNT; i++)
            clients[i] = meet_refusal(run, proxy, &refusals[i], round % 2 * 100, i);
        int64_t left = hft_lock_keys_after(server, 3000);
        HFT_CHECK(run, left == 0, "%lld refused releases were not repeated", (long long)left);
        for (int i = 0; i < COUNT; i++)
            (void)hf_client_close(clients[i], NULL);
    }
    hft_note(run, "%d replies to acquire and release", run->times * COUNT);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

const struct hft_named hft_reply_faults[] = {
    {"delayed-replies", "replies that come after the timeout never become somebody else's", delayed_replies,
     1000, 3907, HFT_MEASURES},
    {"resets", "RST and FIN with many commands in flight: each has one outcome, in time", resets, 300, 20000,
     HFT_MEASURES},
    {"drip", "a server that drips bytes does not stretch a deadline", drip, 8, 100, HFT_MEASURES},
    {"half-open", "connections that are dead without a word lose no lease and are left in time", half_open, 2,
     50, HFT_MEASURES},
    {"idle-subscriber", "a dead subscriber is noticed though nobody speaks on it", idle_subscriber, 1, 10,
     HFT_MEASURES},
    {"cuts", "a connection cut after byte n leaves a clear answer and no key, for every n", cuts, 160, 600,
     0},
    {"error-replies", "every refusal has its status, grants nothing, and a refused release is repeated",
     error_replies, 1, 20, 0},
    {"silent-renewals", "a close tells of what may have been left behind, and an unanswered renewal leaves nothing",
     silent_renewals, 2, 20, 0},
    {.name = NULL}};
