/* SPDX-License-Identifier: MIT */
/* near_crowd.c - see near_crowd.h. */
#include "tests/torture/near_crowd.h"
#include "tests/torture/ledger.h"
#include "tests/torture/oracle.h"

#include <holdfast/holdfast.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BURST    100 /* reads between two pauses */
#define PAUSE_NS 1000000
#define KEY      32
#define PATIENCE_MS 30 /* a reader that hears nothing goes on to pages that may be near: those are what is judged */

struct worker {
    pthread_t thread;
    struct hft_near_ledger *ledger;
    const struct hft_server *server;
    hf_client *client;
    hf_cancel *cancel;
    _Atomic(int64_t) asked_ns; /* 0: it does not wait for the server, or has begun to load */
    int process;
    unsigned rng;
    /* of the fetch under way */
    int name;
    struct hft_page_gate *page;
    int loaded, loads; /* the version that its loader made, and how often that ran */
    bool has_gate;
};

struct hft_near_ledger *hft_near_ledger_new(void)
{
    struct hft_near_ledger *ledger = mmap(NULL, sizeof *ledger, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (ledger == MAP_FAILED) {
        perror("torture near: mmap");
        exit(1);
    }
    for (int i = 0; i < HFT_PAGES; i++)
        ledger->pages[i].name = i;
    ledger->names = HFT_PAGES;
    return ledger;
}

static void complain(struct hft_near_ledger *ledger, const char *what, const char *why)
{
    if (atomic_fetch_add(&ledger->wrong, 1) < 5)
        (void)fprintf(stderr, "torture near: %s: %s\n", what, why);
}

static void nap(int64_t ns)
{
    const struct timespec length = {ns / 1000000000, ns % 1000000000};
    (void)nanosleep(&length, NULL);
}

static int roll(struct worker *self, int sides)
{
    return rand_r(&self->rng) % sides;
}

static void count(_Atomic(int64_t) *counter)
{
    (void)atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static void name_key(char key[KEY], int name)
{
    (void)snprintf(key, KEY, "near:%d", name);
}

/* ---- gates and versions ---- */

static bool take_gate(struct hft_page_gate *page)
{
    int nobody = 0;
    return atomic_compare_exchange_strong(&page->taken, &nobody, 1);
}

/* With the gate. Nothing of the old name is changed any more, whatever is still under way. */
static void rename_page(struct hft_near_ledger *ledger, struct hft_page_gate *page)
{
    int name = atomic_fetch_add(&ledger->names, 1);
    if (name >= HFT_NAMES) {
        complain(ledger, "a page", "there are no more names");
        _exit(1);
    }
    page->version = 0;
    atomic_store(&page->name, name);
}

static void leave_gate(struct hft_near_ledger *ledger, struct hft_page_gate *page)
{
    if (page->version >= HFT_VERSIONS - 4)
        rename_page(ledger, page);
    atomic_store(&page->taken, 0);
}

/* The version before this one is gone. */
static void confirm(struct hft_near_ledger *ledger, int name, int version, int64_t since_ns)
{
    atomic_store(&ledger->gone_ns[name][version - 1], since_ns);
}

static void is_ours(const struct worker *self, int name, int version)
{
    atomic_store(&self->ledger->least[self->process][name], version);
}

/* ---- readers ---- */

static hf_status load(hf_loading *loading, void *arg)
{
    struct worker *self = arg;
    char value[KEY];
    atomic_store(&self->asked_ns, 0);
    (void)atomic_fetch_add(&self->page->wanted, 1);
    while (!self->has_gate && !atomic_load(&self->ledger->stop)) {
        self->has_gate = take_gate(self->page);
        if (!self->has_gate)
            nap(200000);
    }
    (void)atomic_fetch_sub(&self->page->wanted, 1);
    if (!self->has_gate || atomic_load(&self->page->name) != self->name)
        return hf_loading_fail(loading, ECANCELED, "the page has another name now");
    self->loaded = ++self->page->version;
    self->loads++;
    (void)snprintf(value, sizeof value, "%d:%d", self->name, self->loaded);
    return hf_loading_set(loading, value, strlen(value));
}

/* Whether the server has what was loaded is known, or the page goes on under another name. */
static void end_load(struct worker *self, const hf_value *value)
{
    bool stored = value != NULL && value->source == HF_LOADED && value->stored;
    if (self->loads == 1 && stored) {
        confirm(self->ledger, self->name, self->loaded, hft_now_ns());
        is_ours(self, self->name, self->loaded);
        count(&self->ledger->loads);
    } else if (self->loads == 1 && value != NULL && value->source == HF_LOCAL) {
        self->page->version--; /* it was offered to no server */
    } else if (self->loads > 0) {
        count(&self->ledger->unsettled);
        rename_page(self->ledger, self->page);
    }
    leave_gate(self->ledger, self->page);
}

static void note_oldest(struct hft_near_ledger *ledger, int64_t age_ns)
{
    int64_t oldest = atomic_load_explicit(&ledger->oldest_ns, memory_order_relaxed);
    while (age_ns > oldest && !atomic_compare_exchange_weak(&ledger->oldest_ns, &oldest, age_ns))
        continue;
}

static void judge(const struct worker *self, const hf_value *value, int64_t began_ns, int64_t near_ms, int least)
{
    static const char *const sources[] = {"?", "CACHED", "LOADED", "SHARED", "STALE", "LOCAL", "NEAR"};
    struct hft_near_ledger *ledger = self->ledger;
    char words[200], *end;
    long name = strtol(value->data, &end, 10), version = *end == ':' ? strtol(end + 1, &end, 10) : 0;
    int64_t bound_ms = near_ms < HFT_LAG_MS ? near_ms : HFT_LAG_MS;
    const char *source = sources[value->source];
    if (name != self->name || *end != 0 || version < 1 || version >= HFT_VERSIONS) {
        complain(ledger, "another value", value->data);
        return;
    }
    int64_t gone_ns = atomic_load(&ledger->gone_ns[name][version]), late_ns = hft_oracle_too_old(began_ns, gone_ns, bound_ms * HFT_MS);
    if (gone_ns != 0)
        note_oldest(ledger, began_ns - gone_ns);
    (void)snprintf(words, sizeof words, "%s, of process %d, had been gone for %.3f ms when the call began", (const char *)value->data,
                   self->process, (double)(began_ns - gone_ns) / 1e6);
    if (late_ns > 0)
        complain(ledger, source, words);
    (void)snprintf(words, sizeof words, "%s, though process %d itself had made, or forgotten up to, version %d before the call",
                   (const char *)value->data, self->process, least);
    if (version < least)
        complain(ledger, source, words);
}

static void note_source(struct hft_near_ledger *ledger, const hf_value *value)
{
    count(&ledger->reads);
    count(value->source == HF_NEAR ? &ledger->near : value->source == HF_CACHED ? &ledger->cached : &ledger->loaded);
}

/* Of four pages one is read by calls of short patience and without it, which brings what is near up to date for all; and one is
 * loaded anew while it has a value (which is old to who wants to be given more of its life than it has). */
static hf_fetch_options options_for(struct worker *self, int number)
{
    hf_fetch_options options = *HF_FETCH(.load = load, .arg = self, .near_ms = HFT_NEAR_MS, .wait_ms = 2000, .cancel = self->cancel);
    if (number % 4 == 0)
        options.near_ms = roll(self, 20) == 0 ? 0 : HFT_SOON_MS;
    else if (number % 4 == 1 && roll(self, 100) == 0)
        options.stale_ms = 600000;
    return options;
}

static void read_page(struct worker *self)
{
    struct hft_near_ledger *ledger = self->ledger;
    int number = roll(self, HFT_PAGES);
    hf_fetch_options options = options_for(self, number);
    char key[KEY];
    hf_value *value;
    hf_error error;
    self->page = &ledger->pages[number];
    self->name = atomic_load(&self->page->name);
    self->loaded = self->loads = 0;
    self->has_gate = false;
    name_key(key, self->name);
    int least = atomic_load(&ledger->least[self->process][self->name]);
    int64_t began_ns = hft_now_ns();
    atomic_store(&self->asked_ns, began_ns);
    hf_status status = hf_fetch(self->client, key, &options, &value, &error);
    atomic_store(&self->asked_ns, 0);
    if (self->has_gate)
        end_load(self, value);
    if (status != HF_OK) {
        count(&ledger->reads);
        count(&ledger->failed);
        hf_cancel_reset(self->cancel);
        return;
    }
    note_source(ledger, value);
    if (value->stored && value->source != HF_STALE && value->source != HF_LOCAL)
        judge(self, value, began_ns, options.near_ms, least);
    else
        count(&ledger->unjudged);
    hf_value_free(value);
}

static void *read_on(void *arg)
{
    struct worker *self = arg;
    while (!atomic_load(&self->ledger->stop)) {
        for (int i = 0; i < BURST && !atomic_load_explicit(&self->ledger->stop, memory_order_relaxed); i++)
            read_page(self);
        nap(PAUSE_NS);
    }
    return NULL;
}

/* ---- the writers of a process ---- */

static void tell_server(struct worker *self, redisContext *redis, const char *format, const char *key, const char *value, int64_t ms)
{
    redisReply *reply =
        value != NULL ? redisCommand(redis, format, key, value, (long long)ms) : redisCommand(redis, format, key, (long long)ms);
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR) {
        complain(self->ledger, format, reply != NULL ? reply->str : redis->errstr);
        _exit(1);
    }
    freeReplyObject(reply);
}

static void set(struct worker *self, redisContext *redis, const char *key, int64_t ms)
{
    struct hft_page_gate *page = self->page;
    char value[KEY];
    (void)snprintf(value, sizeof value, "%d:%d", self->name, ++page->version);
    tell_server(self, redis, "SET %s %s PX %lld", key, value, ms);
    confirm(self->ledger, self->name, page->version, hft_now_ns());
    count(&self->ledger->sets);
}

/* Nobody asks, so the server need not notice. Its clock has whole milliseconds. */
static void set_until_its_end(struct worker *self, redisContext *redis, const char *key)
{
    int64_t ms = 5 + roll(self, 36);
    set(self, redis, key, ms);
    int64_t gone_ns = hft_now_ns() + (ms + 2) * HFT_MS;
    for (int64_t left; (left = gone_ns - hft_now_ns()) > 0;)
        nap(left);
    confirm(self->ledger, self->name, ++self->page->version, gone_ns);
    count(&self->ledger->ends);
}

static void expire(struct worker *self, redisContext *redis, const char *key)
{
    long long there = 1;
    tell_server(self, redis, "PEXPIRE %s %lld", key, NULL, 1);
    while (there != 0) {
        redisReply *reply = redisCommand(redis, "EXISTS %s", key);
        if (reply == NULL || reply->type != REDIS_REPLY_INTEGER)
            _exit(1);
        there = reply->integer;
        freeReplyObject(reply);
    }
    confirm(self->ledger, self->name, ++self->page->version, hft_now_ns());
    count(&self->ledger->expiries);
}

static void forget(struct worker *self, const char *key)
{
    struct hft_page_gate *page = self->page;
    int version = ++page->version;
    if (hf_fetch_forget(self->client, key, NULL) != HF_OK) { /* it may come later, or never */
        count(&self->ledger->unsettled);
        rename_page(self->ledger, page);
        return;
    }
    confirm(self->ledger, self->name, version, hft_now_ns());
    is_ours(self, self->name, version);
    count(&self->ledger->forgets);
}

/* redis NULL: forgets it. */
static void change_page(struct worker *self, redisContext *redis)
{
    char key[KEY];
    int what = roll(self, 100);
    self->page = &self->ledger->pages[roll(self, HFT_PAGES)];
    if (atomic_load(&self->page->wanted) > 0 || !take_gate(self->page))
        return;
    self->name = atomic_load(&self->page->name);
    name_key(key, self->name);
    if (redis == NULL)
        forget(self, key);
    else if (what < 65)
        set(self, redis, key, 60000);
    else if (what < 90)
        set_until_its_end(self, redis, key);
    else
        expire(self, redis, key);
    leave_gate(self->ledger, self->page);
}

static void *write_on(void *arg)
{
    struct worker *self = arg;
    redisContext *redis = redisConnectUnix(hft_server_socket(self->server));
    if (redis == NULL || redis->err != 0)
        _exit(1);
    while (!atomic_load(&self->ledger->stop)) {
        change_page(self, redis);
        nap((int64_t)roll(self, 6000) * 1000);
    }
    redisFree(redis);
    return NULL;
}

static void *forget_on(void *arg)
{
    struct worker *self = arg;
    while (!atomic_load(&self->ledger->stop)) {
        change_page(self, NULL);
        nap((int64_t)roll(self, 20000) * 1000);
    }
    return NULL;
}

static void be_impatient(struct worker *workers, int count)
{
    struct hft_near_ledger *ledger = workers[0].ledger;
    while (!atomic_load(&ledger->stop)) {
        for (int i = 0; i < count; i++) {
            int64_t asked_ns = atomic_load(&workers[i].asked_ns);
            if (asked_ns != 0 && hft_now_ns() > asked_ns + PATIENCE_MS * HFT_MS)
                hf_cancel_fire(workers[i].cancel);
        }
        nap(5 * PAUSE_NS);
    }
}

_Noreturn void hft_near_work(struct hft_near_ledger *ledger, const struct hft_server *server, int process, unsigned seed)
{
    enum { WRITER = HFT_READERS, FORGETTER, WORKERS };
    static struct worker workers[WORKERS];
    hf_client *client;
    hf_error error;
    hf_stats stats;
    while (!atomic_load(&ledger->go))
        nap(PAUSE_NS);
    if (hf_client_open(ledger->url, HF_CLIENT(.near_lag_ms = HFT_LAG_MS, .command_ms = 1000), &client, &error) != HF_OK) {
        complain(ledger, "a client", error.message);
        _exit(1);
    }
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.ledger = ledger, .server = server, .client = client, .process = process,
                                     .rng = seed * 100u + (unsigned)(process * 10 + i)};
        if (hf_cancel_open(client, &workers[i].cancel, &error) != HF_OK ||
            pthread_create(&workers[i].thread, NULL, i == WRITER ? write_on : i == FORGETTER ? forget_on : read_on, &workers[i]) != 0)
            _exit(1);
    }
    be_impatient(workers, HFT_READERS);
    for (int i = 0; i < WORKERS; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        hf_cancel_close(workers[i].cancel);
    }
    hf_client_stats(client, &stats);
    (void)atomic_fetch_add(&ledger->told, (int64_t)stats.near_told);
    (void)atomic_fetch_add(&ledger->lapses, (int64_t)stats.near_lapses);
    hf_status status = hf_client_close(client, &error);
    if (status != HF_OK && status != HF_UNKNOWN) /* what was in flight when a connection ended may be in doubt still */
        complain(ledger, "a close", error.message);
    _exit(0);
}
