/* SPDX-License-Identifier: MIT */
/* refusals.c - every error that a server can answer, before a script and in the middle of one, to every caller: each
 * caller is told, no client repeats a command faster than a few times a second, and nothing is left when the error
 * is over. */
#include "tests/fault/fault.h"

#include "tests/support/takers.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#define REFUSED_MS 1300 /* so long the server refuses */
#define WAIT_MS    1000
#define HELD_MS    900 /* the lease that lives by its renewals */

enum { TRIES = 3, PASSERS = 2 };

struct scene {
    struct hft_run *run;
    struct hft_server *server;
    struct hft_proxy *proxy; /* NULL: nothing stands in between */
    pthread_t thread;        /* of what takes as long as the refusal */
    _Atomic(bool) over;
};

struct refusal {
    const char *name;
    const char *config;
    void (*begin)(struct scene *scene);
    void (*end)(struct scene *scene);
    const char *reply; /* an error that no server here can be made to give: the proxy answers it to every script */
    const char *word;  /* of the message or hint of who is refused */
    hf_status tries, waits, has; /* a try of a held name, a wait for it, a wait for a free one */
    bool renews; /* a lease is renewed all the same */
    hf_status releases;
    bool at_once; /* no time will mend it */
};

/* ---- what the server is brought to say ---- */

/* On a connection of its own: the answer comes when it is over. */
static void *ask(struct scene *scene, const char *words, const char *last)
{
    struct timeval limit = {20, 0};
    redisContext *context = redisConnectUnixWithTimeout(hft_server_socket(scene->server), limit);
    redisReply *reply = context != NULL && context->err == 0 ? redisCommand(context, words, last) : NULL;
    if (reply != NULL)
        freeReplyObject(reply);
    redisFree(context);
    return NULL;
}

static void full(struct scene *scene)
{
    hft_server_say(scene->server, "CONFIG SET maxmemory 1");
}

static void not_full(struct scene *scene)
{
    hft_server_say(scene->server, "CONFIG SET maxmemory 0");
}

static void cannot_save(struct scene *scene)
{
    char path[160];
    (void)snprintf(path, sizeof path, "%s/dump.rdb", hft_server_folder(scene->server));
    (void)mkdir(path, 0700); /* no file can be renamed over it, not even by root */
    freeReplyObject(hft_server_ask(scene->server, "BGSAVE"));
    for (bool failed = false; !failed;) {
        redisReply *info = hft_server_ask(scene->server, "INFO persistence");
        failed = strstr(info->str, "rdb_last_bgsave_status:err") != NULL;
        freeReplyObject(info);
        hft_sleep_ms(1);
    }
}

static void need_not_save(struct scene *scene)
{
    hft_server_say(scene->server, "CONFIG SET stop-writes-on-bgsave-error no");
}

static void wants_replicas(struct scene *scene)
{
    hft_server_say(scene->server, "CONFIG SET min-replicas-to-write 1");
}

static void wants_none(struct scene *scene)
{
    hft_server_say(scene->server, "CONFIG SET min-replicas-to-write 0");
}

static void follows(struct scene *scene)
{
    hft_server_say(scene->server, "REPLICAOF 127.0.0.1 1");
}

static void leads(struct scene *scene)
{
    hft_server_say(scene->server, "REPLICAOF NO ONE");
}

static void no_scripts_allowed(struct scene *scene)
{
    hft_server_say(scene->server, "ACL SETUSER default -evalsha -eval -multi");
}

static void no_writes_allowed(struct scene *scene)
{
    hft_server_say(scene->server, "ACL SETUSER default -pexpire -hdel -zrem -del -set");
}

static void all_allowed(struct scene *scene)
{
    hft_server_say(scene->server, "ACL SETUSER default +@all");
}

static void *reload(void *arg)
{
    return ask(arg, "DEBUG %s", "RELOAD");
}

static void loads(struct scene *scene)
{
    for (int i = 0; i < 500; i++)
        freeReplyObject(hft_server_ask(scene->server, "SET filler:%d x EX 60", i));
    hft_server_say(scene->server, "CONFIG SET key-load-delay %d", REFUSED_MS * 1000 / 500);
    (void)pthread_create(&scene->thread, NULL, reload, scene);
    HFT_UNTIL_TRUE(hft_server_refuses(scene->server, "LOADING"));
}

static void loaded(struct scene *scene)
{
    (void)pthread_join(scene->thread, NULL);
    for (int i = 0; i < 500; i++)
        freeReplyObject(hft_server_ask(scene->server, "DEL filler:%d", i));
}

static void *run_script(void *arg)
{
    return ask(arg, "EVAL %s 0", "while true do end");
}

static void runs_a_script(struct scene *scene)
{
    (void)pthread_create(&scene->thread, NULL, run_script, scene);
    HFT_UNTIL_TRUE(hft_server_refuses(scene->server, "BUSY"));
}

static void script_killed(struct scene *scene)
{
    (void)ask(scene, "SCRIPT %s", "KILL");
    (void)pthread_join(scene->thread, NULL);
}

static void *flush_scripts(void *arg)
{
    struct scene *scene = arg;
    while (!atomic_load(&scene->over)) {
        (void)ask(scene, "SCRIPT %s", "FLUSH");
        hft_sleep_ms(1);
    }
    return NULL;
}

static void forgets_scripts(struct scene *scene)
{
    (void)pthread_create(&scene->thread, NULL, flush_scripts, scene);
}

static void keeps_scripts(struct scene *scene)
{
    atomic_store(&scene->over, true);
    (void)pthread_join(scene->thread, NULL);
}

/* Puts another program's list under this key, for a while. */
static void spoil(struct scene *scene, const char *key)
{
    freeReplyObject(hft_server_ask(scene->server, "DEL %s", key));
    freeReplyObject(hft_server_ask(scene->server, "RPUSH %s theirs", key));
}

static void spoils_queues(struct scene *scene)
{
    spoil(scene, "hf:queue:{queue}:hf:{queue}");
    spoil(scene, "hf:queue:{free}:hf:{free}");
}

static void mends_queues(struct scene *scene)
{
    freeReplyObject(hft_server_ask(scene->server, "DEL hf:queue:{queue}:hf:{queue} hf:queue:{free}:hf:{free}"));
}

static void spoils_records(struct scene *scene)
{
    spoil(scene, "hf:wait:{queue}:hf:{queue}");
    spoil(scene, "hf:wait:{free}:hf:{free}");
}

static void mends_records(struct scene *scene)
{
    freeReplyObject(hft_server_ask(scene->server, "DEL hf:wait:{queue}:hf:{queue} hf:wait:{free}:hf:{free}"));
}

static void spoils_counter(struct scene *scene)
{
    freeReplyObject(hft_server_ask(scene->server, "SET hf:fence theirs"));
}

static void spoils_counters_type(struct scene *scene)
{
    spoil(scene, "hf:fence");
}

static void mends_counter(struct scene *scene)
{
    freeReplyObject(hft_server_ask(scene->server, "DEL hf:fence"));
}

/* ---- what it cannot be brought to say ---- */

static void refuse(const struct hft_request *request, struct hft_judgement *judgement, void *arg)
{
    const char *text = arg;
    bool script = hft_request_is(request, "EVALSHA", NULL) || hft_request_is(request, "EVAL", NULL);
    if (!script && !hft_request_is(request, "EXEC", NULL))
        return;
    judgement->sentence = script ? HFT_ANSWER : HFT_PASS;
    judgement->text = text;
}

static const struct refusal refusals[] = {
    {"OOM", "", full, not_full, NULL, "maxmemory", HF_UNAVAILABLE, HF_TIMEOUT, HF_OK, true,
     HF_OK, false},
    {"MISCONF", "save 3600 1\n", cannot_save, need_not_save, NULL, "disk", HF_UNAVAILABLE, HF_UNAVAILABLE,
     HF_UNAVAILABLE, false, HF_UNKNOWN, false},
    {"NOREPLICAS", "", wants_replicas, wants_none, NULL, "min-replicas", HF_UNAVAILABLE, HF_UNAVAILABLE,
     HF_UNAVAILABLE, false, HF_UNKNOWN, false},
    {"READONLY", "", follows, leads, NULL, "primary", HF_UNAVAILABLE, HF_UNAVAILABLE, HF_UNAVAILABLE, false,
     HF_UNKNOWN, false},
    {"NOPERM of a script", "", no_scripts_allowed, all_allowed, NULL, "right", HF_DENIED, HF_DENIED, HF_DENIED,
     false, HF_UNKNOWN, false},
    {"NOPERM in a script", "", no_writes_allowed, all_allowed, NULL, "right", HF_DENIED, HF_DENIED, HF_DENIED,
     false, HF_UNKNOWN, false},
    {"LOADING", "enable-debug-command yes\nloading-process-events-interval-bytes 1024\n", loads, loaded, NULL,
     "loading", HF_UNAVAILABLE, HF_UNAVAILABLE, HF_UNAVAILABLE, false, HF_UNKNOWN, false},
    {"BUSY", "lua-time-limit 20\n", runs_a_script, script_killed, NULL, "script", HF_UNAVAILABLE, HF_UNAVAILABLE,
     HF_UNAVAILABLE, false, HF_UNKNOWN, false},
    {"NOSCRIPT", "", forgets_scripts, keeps_scripts, NULL, "", HF_BUSY, HF_TIMEOUT, HF_OK, true, HF_OK, false},
    {"WRONGTYPE of the queue", "", spoils_queues, mends_queues, NULL, "", HF_BUSY, HF_FOREIGN, HF_OK, true, HF_OK, false},
    {"WRONGTYPE of the records", "", spoils_records, mends_records, NULL, "", HF_BUSY, HF_FOREIGN, HF_OK, true,
     HF_OK, false},
    {"WRONGTYPE of the counter", "", spoils_counters_type, mends_counter, NULL, "", HF_BUSY, HF_TIMEOUT,
     HF_FOREIGN, true, HF_OK, true},
    {"-ERR in a script", "", spoils_counter, mends_counter, NULL, "", HF_BUSY, HF_TIMEOUT, HF_FOREIGN, true,
     HF_OK, true},
    {"-SURPRISE", "", NULL, NULL, "-SURPRISE what is this?\r\n", "SURPRISE", HF_BUSY, HF_UNAVAILABLE,
     HF_OK, false, HF_UNKNOWN, false},
    {"Redis 6 in a script", "", NULL, NULL,
     "-ERR Error running script (call to f_9a): @user_script:7: @user_script: 7: -MISCONF Redis is configured to "
     "save RDB snapshots\r\n",
     "disk", HF_BUSY, HF_UNAVAILABLE, HF_OK, false, HF_UNKNOWN, false},
    {"NOSCRIPT for ever", "", NULL, NULL, "-NOSCRIPT No matching script. Please use EVAL.\r\n", "script",
     HF_BUSY, HF_UNAVAILABLE, HF_OK, false, HF_UNKNOWN, false},
};

/* ---- who asks ---- */

enum caller { WAITER, NEWCOMER, QUEUED, TRIER, HOLDER, RELEASER, PASSER, FETCHER, SETTER, SHARER, COUNTER, CALLERS };

struct cast {
    const struct refusal *refusal;
    struct scene scene;
    hf_client *clients[CALLERS], *owner;
    int64_t sent[CALLERS];
    hf_lease *held, *released, *owned, *shared, *permits; /* the last two live by renewals too */
    struct hft_taker waiter, newcomer, queued, setter, sharer, counter; /* the setter's is a multilock */
    pthread_t passers[PASSERS], fetcher;
    _Atomic(bool) stop;
    _Atomic(long) passes, in_vain;
    hf_status fetched;
    hf_error fetch_error;
};

/* Counts the commands without the useful ones: a lease that is got from the server, released to it, and given more
 * fences meanwhile. */
static int64_t sent_by(const hf_client *client)
{
    enum { OF_USE = 4 };
    hf_stats stats;
    hf_client_stats(client, &stats);
    return (int64_t)stats.remote_commands - OF_USE * (int64_t)(stats.acquired - stats.acquired_locally);
}

/* Sections of a millisecond that pass from thread to thread, until an acquire fails. */
static void *pass(void *arg)
{
    struct cast *cast = arg;
    while (!atomic_load(&cast->stop)) {
        hf_lease *lease;
        if (hf_lock_acquire(cast->clients[PASSER], "passes", HF_LOCK(.lease_ms = 20000, .wait_ms = 200), &lease, NULL) !=
            HF_OK) {
            atomic_fetch_add(&cast->in_vain, 1);
            hft_sleep_ms(100);
            continue;
        }
        hft_sleep_ms(1);
        (void)hf_lease_release(lease, NULL);
        atomic_fetch_add(&cast->passes, 1);
    }
    return NULL;
}

static hf_status load(hf_loading *loading, void *arg)
{
    (void)arg;
    return hf_loading_set(loading, "value", 5);
}

static const char *const set[] = {"one of a set", "another of it", "a third of it"};

static void *take_set(void *arg)
{
    struct hft_taker *me = arg;
    me->began_ms = hft_boottime_ms();
    me->status = hf_multilock_acquire(me->client, set, 3, HF_LOCK(.wait_ms = WAIT_MS), &me->lease, &me->error);
    me->got_ms = hft_boottime_ms();
    return NULL;
}

static void *fetch(void *arg)
{
    struct cast *cast = arg;
    hf_value *value;
    cast->fetched = hf_fetch(cast->clients[FETCHER], "page", HF_FETCH(.load = load, .ttl_ms = 60000, .wait_ms = WAIT_MS),
                             &value, &cast->fetch_error);
    if (cast->fetched == HF_OK)
        hf_value_free(value);
    return NULL;
}

static hf_lease *must_take(hf_client *client, const char *name, int64_t lease_ms)
{
    hf_lease *lease;
    hf_error error;
    if (hf_lock_acquire(client, name, HF_LOCK(.lease_ms = lease_ms, .wait_ms = 5000), &lease, &error) == HF_OK)
        return lease;
    (void)fprintf(stderr, "fault script-errors: acquire %s: %s\n", name, error.message);
    exit(1);
}

static void open_cast(struct cast *cast, struct hft_run *run, const struct refusal *refusal)
{
    struct scene *scene = &cast->scene;
    hf_lease *none;
    memset(cast, 0, sizeof *cast);
    cast->refusal = refusal;
    scene->run = run;
    scene->server = hft_server_start(refusal->config);
    scene->proxy = refusal->reply != NULL ? hft_proxy_start(scene->server) : NULL;
    const char *url = scene->proxy != NULL ? hft_proxy_url(scene->proxy) : hft_server_url(scene->server);
    for (int i = 0; i < CALLERS; i++)
        cast->clients[i] = hft_open(url, NULL);
    cast->owner = hft_open(hft_server_url(scene->server), NULL);
    cast->owned = must_take(cast->owner, "queue", 20000);
    cast->held = must_take(cast->clients[HOLDER], "held", HELD_MS);
    cast->released = must_take(cast->clients[RELEASER], "released", 20000);
    const hf_lock_options *kept = HF_LOCK(.shared = true, .lease_ms = HELD_MS, .wait_ms = 5000);
    if (hf_lock_acquire(cast->clients[SHARER], "shared", kept, &cast->shared, NULL) != HF_OK ||
        hf_semaphore_acquire(cast->clients[COUNTER], "permits", 3, 2, HF_LOCK(.lease_ms = HELD_MS, .wait_ms = 5000), &cast->permits,
                             NULL) != HF_OK)
        hft_broken(run, "%s: cannot prepare it", refusal->name);
    for (int i = 0; i < CALLERS; i++) /* what follows is no handshake's affair */
        (void)hf_lease_release(must_take(cast->clients[i], "free", 1000), NULL);
    for (int i = WAITER; i < TRIER; i++)
        HFT_CHECK(run, hf_lock_acquire(cast->clients[i], "queue", NULL, &none, NULL) == HF_BUSY, "not BUSY");
    for (int i = 0; i < PASSERS; i++)
        (void)pthread_create(&cast->passers[i], NULL, pass, cast);
    HFT_UNTIL_TRUE(atomic_load(&cast->passes) > 20);
    hft_take(&cast->queued, cast->clients[QUEUED], "queue", HF_LOCK(.wait_ms = REFUSED_MS));
    HFT_UNTIL_TRUE(hft_queued(scene->server, "queue") == 1);
    /* Last of all: once a second a try asks the script as well, and its next ones here are told what SET NX says. */
    HFT_CHECK(run, hf_lock_acquire(cast->clients[TRIER], "queue", NULL, &none, NULL) == HF_BUSY, "not BUSY");
}

/* ---- what is promised ---- */

static void check_told(const struct cast *cast, const char *who, hf_status status, hf_status expected, const hf_error *error)
{
    const struct refusal *refusal = cast->refusal;
    HFT_CHECK(cast->scene.run, status == expected, "%s: %s: %s, not %s: %s", refusal->name, who, hf_status_name(status),
              hf_status_name(expected), status != HF_OK ? error->message : "");
    if (status == expected && (status == HF_UNAVAILABLE || status == HF_DENIED))
        HFT_CHECK(cast->scene.run, strstr(error->message, refusal->word) != NULL || strstr(error->hint, refusal->word) != NULL,
                  "%s: %s: no word of %s: %s (%s)", refusal->name, who, refusal->word, error->message, error->hint);
}

static void check_waited(const struct cast *cast, const char *who, const struct hft_taker *taker, hf_status expected)
{
    int64_t took_ms = taker->got_ms - taker->began_ms;
    check_told(cast, who, taker->status, expected, &taker->error);
    if (taker->status == HF_UNAVAILABLE && !cast->refusal->at_once)
        HFT_CHECK(cast->scene.run, took_ms >= WAIT_MS - 1, "%s: %s: gave up after %lld ms", cast->refusal->name, who,
                  (long long)took_ms);
}

/* `most`, and ten a second while it waits. */
static void check_few(const struct cast *cast, enum caller who, double seconds, long most)
{
    static const char *const names[] = {"the waiter", "the newcomer", "who was queued", "the tries", "the holder",
                                        "the release", "the passes", "the fetch", "the set", "the reader", "the permits"};
    long sent = (long)(sent_by(cast->clients[who]) - cast->sent[who]);
    HFT_CHECK(cast->scene.run, (double)sent <= (double)most + 10 * seconds, "%s: %s: %ld commands in %.1f s",
              cast->refusal->name, names[who], sent, seconds);
    hft_tally(cast->scene.run, sent, -1);
}

static void try_and_release(struct cast *cast)
{
    const struct refusal *refusal = cast->refusal;
    hf_error error = {.status = HF_OK};
    hf_lease *lease = NULL;
    for (int i = 0; i < TRIES; i++) {
        int64_t began = hft_true_ns();
        hf_status status = hf_lock_acquire(cast->clients[TRIER], "queue", NULL, &lease, &error);
        check_told(cast, "a try", status, refusal->tries, &error);
        HFT_CHECK(cast->scene.run, hft_true_ns() - began < 1500 * HFT_NS_PER_MS, "%s: a try took %lld ms", refusal->name,
                  (long long)((hft_true_ns() - began) / HFT_NS_PER_MS));
        hft_sleep_ms(20);
    }
    hf_status status = hf_lease_release(cast->released, &error);
    HFT_CHECK(cast->scene.run, status == refusal->releases, "%s: a release: %s: %s", refusal->name, hf_status_name(status),
              status != HF_OK ? error.message : "");
    status = hf_lock_break(cast->clients[TRIER], "nobodys", NULL, &error);
    HFT_CHECK(cast->scene.run, status != HF_INTERNAL && status != HF_TIMEOUT, "%s: a break: %s", refusal->name,
              hf_status_name(status));
    status = hf_semaphore_break(cast->clients[TRIER], "nobodys", NULL, &error);
    HFT_CHECK(cast->scene.run, status != HF_INTERNAL && status != HF_TIMEOUT, "%s: a break of permits: %s", refusal->name,
              hf_status_name(status));
    status = hf_fetch_forget(cast->clients[TRIER], "nobodys", &error);
    HFT_CHECK(cast->scene.run, status != HF_INTERNAL && status != HF_TIMEOUT, "%s: a forget: %s", refusal->name,
              hf_status_name(status));
}

/* Checks that all locks can be acquired again and that the refused commands left no key. */
static void check_over(struct cast *cast)
{
    struct scene *scene = &cast->scene;
    hf_lease *lease;
    hf_error error = {.status = HF_OK};
    hf_status status;
    int64_t until = hft_true_ns() + 5000 * HFT_NS_PER_MS;
    do /* a dial that was refused is the truth until the next one */
        status = hf_lock_acquire(cast->clients[WAITER], "free", HF_LOCK(.wait_ms = 8000), &lease, &error);
    while (status == HF_DENIED && hft_true_ns() < until);
    HFT_CHECK(scene->run, status == HF_OK, "%s: afterwards an acquire: %s", cast->refusal->name, error.message);
    if (status == HF_OK)
        HFT_CHECK(scene->run, hf_lease_release(lease, NULL) == HF_OK, "%s: afterwards a release fails", cast->refusal->name);
    HFT_CHECK(scene->run, hf_lease_release(cast->owned, NULL) == HF_OK, "%s: the owner lost it", cast->refusal->name);
    (void)hf_lease_release(cast->held, NULL);
    freeReplyObject(hft_server_ask(scene->server, "DEL page hf:absent:{page}"));
    (void)hft_lock_keys_after(scene->server, 5000);
    redisReply *keys = hft_server_ask(scene->server, "KEYS *");
    for (size_t i = 0; i < keys->elements; i++)
        HFT_CHECK(scene->run, strcmp(keys->element[i]->str, "hf:fence") == 0, "%s: %s is left", cast->refusal->name,
                  keys->element[i]->str);
    freeReplyObject(keys);
}

static void play(struct hft_run *run, const struct refusal *refusal)
{
    struct cast cast;
    struct scene *scene = &cast.scene;
    hft_doing("%s", refusal->name);
    open_cast(&cast, run, refusal);
    for (int i = 0; i < CALLERS; i++)
        cast.sent[i] = sent_by(cast.clients[i]);
    if (refusal->reply != NULL)
        hft_proxy_judge(scene->proxy, refuse, (void *)(uintptr_t)refusal->reply);
    else
        refusal->begin(scene);
    int64_t began = hft_true_ns();
    hft_take(&cast.waiter, cast.clients[WAITER], "queue", HF_LOCK(.wait_ms = WAIT_MS));
    hft_take(&cast.newcomer, cast.clients[NEWCOMER], "free", HF_LOCK(.wait_ms = WAIT_MS));
    hft_take(&cast.sharer, cast.clients[SHARER], "free to share", HF_LOCK(.shared = true, .wait_ms = WAIT_MS));
    hft_take_permits(&cast.counter, cast.clients[COUNTER], "free permits", 3, 2, HF_LOCK(.wait_ms = WAIT_MS));
    (void)pthread_create(&cast.fetcher, NULL, fetch, &cast);
    cast.setter.client = cast.clients[SETTER];
    (void)pthread_create(&cast.setter.thread, NULL, take_set, &cast.setter);
    try_and_release(&cast);
    hft_sleep_until(began + REFUSED_MS * HFT_NS_PER_MS);
    check_waited(&cast, "a wait", (hft_taken(&cast.waiter), &cast.waiter), refusal->waits);
    check_waited(&cast, "a wait for what is free", (hft_taken(&cast.newcomer), &cast.newcomer), refusal->has);
    check_told(&cast, "who was queued", hft_taken(&cast.queued), refusal->waits, &cast.queued.error);
    hf_status by_script = refusal->reply != NULL ? HF_UNAVAILABLE : refusal->has; /* these have no other way */
    check_waited(&cast, "a wait to share", (hft_taken(&cast.sharer), &cast.sharer), by_script);
    check_waited(&cast, "a wait for permits", (hft_taken(&cast.counter), &cast.counter), by_script);
    (void)pthread_join(cast.setter.thread, NULL);
    check_waited(&cast, "a wait for a set", &cast.setter, refusal->has);
    (void)pthread_join(cast.fetcher, NULL);
    HFT_CHECK(run, cast.fetched != HF_INTERNAL && cast.fetched != HF_TIMEOUT, "%s: a fetch: %s: %s", refusal->name,
              hf_status_name(cast.fetched), cast.fetched != HF_OK ? cast.fetch_error.message : "");
    HFT_CHECK(run, hf_lease_is_valid(cast.held) == refusal->renews, "%s: the held lease is %s", refusal->name,
              refusal->renews ? "lost" : "valid");
    HFT_CHECK(run, hf_lease_is_valid(cast.shared) == refusal->renews && hf_lease_is_valid(cast.permits) == refusal->renews,
              "%s: the shared lease, or that on permits, is %s", refusal->name, refusal->renews ? "lost" : "valid");
    double seconds = (double)(hft_true_ns() - began) / 1e9;
    check_few(&cast, WAITER, seconds, 6);
    check_few(&cast, NEWCOMER, seconds, 12);
    check_few(&cast, QUEUED, seconds, 6);
    check_few(&cast, TRIER, seconds * TRIES, 6 * TRIES);
    check_few(&cast, HOLDER, seconds, 30); /* attempts are a thirteenth of what is left apart */
    check_few(&cast, RELEASER, seconds, 4);
    check_few(&cast, PASSER, seconds * PASSERS, 40 + 6 * atomic_load(&cast.in_vain)); /* those are tries in their own way */
    check_few(&cast, FETCHER, seconds, 10);
    check_few(&cast, SETTER, seconds * 3, 12);
    check_few(&cast, SHARER, seconds, 42); /* a wait and a lease that is held */
    check_few(&cast, COUNTER, seconds, 42);
    if (refusal->reply != NULL)
        hft_proxy_judge(scene->proxy, NULL, NULL);
    else
        refusal->end(scene);
    atomic_store(&cast.stop, true);
    for (int i = 0; i < PASSERS; i++)
        (void)pthread_join(cast.passers[i], NULL);
    if (cast.newcomer.lease != NULL)
        (void)hf_lease_release(cast.newcomer.lease, NULL);
    (void)hf_lease_release(cast.setter.lease, NULL);
    (void)hf_lease_release(cast.sharer.lease, NULL);
    (void)hf_lease_release(cast.counter.lease, NULL);
    (void)hf_lease_release(cast.shared, NULL);
    (void)hf_lease_release(cast.permits, NULL);
    check_over(&cast);
    for (int i = 0; i < CALLERS; i++)
        (void)hf_client_close(cast.clients[i], NULL);
    (void)hf_client_close(cast.owner, NULL);
    hft_proxy_stop(scene->proxy);
    hft_server_stop(scene->server);
}

static void script_errors(struct hft_run *run)
{
    size_t count = sizeof refusals / sizeof refusals[0];
    for (int round = 0; round < run->times; round++)
        for (size_t i = 0; i < count; i++)
            play(run, &refusals[i]);
    hft_note(run, "%zu refusals to %d callers", count * (size_t)run->times, CALLERS);
}

const struct hft_named hft_refusal_faults[] = {
    {"script-errors", "whatever a server refuses, in front of a script or inside: all are told, none asks again and again",
     script_errors, 1, 20, 0},
    {.name = NULL}};
