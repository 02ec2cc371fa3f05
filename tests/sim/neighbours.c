/* SPDX-License-Identifier: MIT */
/* neighbours.c - one to three threads of other programs, which take, hold and release by the commands of their recipe, and die with the
 * faults that it is known for; and the operator who mends what it does not get over. All of them are threads of one process of theirs;
 * one that has died goes on as another. See neighbours.h and docs/interop.md. */
#include "core/policy/fence.h"
#include "tests/sim/neighbours.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEAD_MOST   64
#define GHOST_NS    (50 * HFI_MS) /* so long the server serves a connection whose process has died */
#define MEND_NS     (1500 * HFI_MS)
#define SPINS       3

static struct neighbour {
    int number, lock;
    char word[48];       /* its own, and new with each attempt */
    int64_t lease_ms, poll_ms;
    bool holds, marked;  /* as the server sees it */
    int64_t end_us;      /* its key's, by the server's clock; 0: none */
    char token[16];      /* of a list */
    int64_t waits_since; /* true time; -1: it does not */
    struct hfi_park park;
    bool blocked, told, is_over;
    char list[64];      /* from which it waits for an element */
    int64_t place;      /* the smaller is served first */
    int64_t dead_until; /* served, though it has died, 0: it lives */
} theirs[SIM_THEIRS_MOST];
static struct dead {
    int lock;
    char token[16];
    int64_t since, tried; /* true times */
} dead[DEAD_MOST]; /* what they have left, and the recipe does not get over */
static int dead_count, tries_under_way;
static int64_t places, words, channel_told_at[SIM_LOCKS];
static bool operator_over;

/* ---- at the server ---- */

/* A command of theirs is on its way. It comes when the server is not frozen. */
static void arrive(void)
{
    sim_sleep(sim_delay());
    while (sim_server->frozen_until > sim.now)
        sim_sleep(sim_server->frozen_until - sim.now + sim_between(0, HFI_MS / 10));
    sim_server->keys.now_us = sim_server_us();
}

static void depart(void)
{
    for (int i = 0; i < SIM_THEIRS_MOST && sim_neighbours_serve(); i++)
        continue;
    sim_sleep(sim_delay());
}

static bool has_it(const struct neighbour *one)
{
    return one->holds && (one->end_us == 0 || sim_server_us() / 1000 <= one->end_us / 1000);
}

int sim_neighbours_hold(int lock)
{
    int count = 0;
    for (int i = 0; i < sim_beside.count; i++)
        count += theirs[i].lock == lock && has_it(&theirs[i]);
    return count;
}

int sim_neighbours_marks(int lock)
{
    int count = 0;
    for (int i = 0; i < sim_beside.count; i++)
        count += theirs[i].lock == lock && theirs[i].marked;
    for (int i = 0; i < dead_count; i++)
        count += dead[i].lock == lock;
    return count;
}

int64_t sim_neighbours_wait_since(int lock)
{
    int64_t since = -1;
    for (int i = 0; i < sim_beside.count; i++)
        if (theirs[i].waits_since >= 0 && theirs[i].lock == lock && (since < 0 || theirs[i].waits_since < since))
            since = theirs[i].waits_since;
    return since;
}

static void takes(struct neighbour *one, int64_t end_us)
{
    one->holds = true;
    one->end_us = end_us;
    one->waits_since = -1;
    sim_say("neighbour %d has lock %d %s", one->number, one->lock, one->token);
    sim_beside_look(one->lock);
}

static int64_t some_end(const struct neighbour *one)
{
    return sim_server->keys.now_us + one->lease_ms * 1000;
}

static void leave_mark(const struct neighbour *one)
{
    if (dead_count == DEAD_MOST)
        abort();
    dead[dead_count] = (struct dead){.lock = one->lock, .since = sim.now};
    memcpy(dead[dead_count++].token, one->token, sizeof one->token);
}

/* What it has at the server stays; its ends do too. */
static void die(struct neighbour *one, const char *where)
{
    sim_say("neighbour %d dies %s lock %d", one->number, where, one->lock);
    history.faults++;
    one->waits_since = -1;
    if (one->marked && sim_beside.recipe >= SIM_SET)
        leave_mark(one);
    one->holds = one->marked = false;
}

static bool dies(struct neighbour *one, int percent, const char *where)
{
    if (history.healed != 0 || sim_beside.contends || !sim_chance(percent))
        return false;
    die(one, where);
    return true;
}

/* What a full server refuses is said again until it is done. */
#define INSIST(...)                                                                                                                    \
    while (sim_ask_server(NULL, __VA_ARGS__, NULL) == SIM_REFUSED) {                                                                   \
        depart();                                                                                                                      \
        sim_sleep(20 * HFI_MS);                                                                                                        \
        arrive();                                                                                                                      \
    }

/* ---- waiting ---- */

static void wake(void *what, int64_t number)
{
    struct neighbour *one = what;
    (void)number;
    hfi_park_wake(&one->park);
}

static struct neighbour *first_blocked(const char *list)
{
    struct neighbour *first = NULL;
    for (int i = 0; i < sim_beside.count; i++) {
        struct neighbour *one = &theirs[i];
        bool waits = one->blocked && (one->dead_until == 0 || sim.now < one->dead_until) && (list == NULL || strcmp(one->list, list) == 0);
        if (waits && sim_ask_server(NULL, "LLEN", one->list, NULL) > 0 && (first == NULL || one->place < first->place))
            first = one;
    }
    return first;
}

bool sim_neighbours_serve(void)
{
    const char *element = "";
    struct neighbour *one = sim_beside.on ? first_blocked(NULL) : NULL;
    if (one == NULL)
        return false;
    (void)sim_ask_server(&element, "LPOP", one->list, NULL);
    (void)snprintf(one->token, sizeof one->token, "%s", element);
    sim_say("neighbour %d is served %s of %s", one->number, one->token, one->list);
    one->blocked = false;
    one->marked = sim_beside.recipe == SIM_TOKENS;
    if (one->dead_until != 0)
        die(one, "with an element for it, for");
    else if (one->marked)
        takes(one, 0);
    sim_at(sim.now + sim_delay(), &sim.processes[0], wake, one, 0);
    return true;
}

void sim_neighbours_hear(const char *channel, size_t size)
{
    char key[64], own[128];
    for (int lock = 0; sim_is_beside(lock); lock++) {
        sim_beside_key(key, sizeof key, lock);
        (void)snprintf(own, sizeof own, sim_beside.recipe == SIM_SPRING ? "locks-channel:%s" : "redisson_lock__channel:{%s}", key);
        if (strlen(own) != size || memcmp(own, channel, size) != 0)
            continue;
        channel_told_at[lock] = sim.now;
        for (int i = 0; i < sim_beside.count; i++)
            if (theirs[i].waits_since >= 0 && theirs[i].lock == lock) {
                theirs[i].told = true;
                sim_at(sim.now + sim_delay(), &sim.processes[0], wake, &theirs[i], 0);
            }
    }
}

bool sim_neighbours_were_told(int lock)
{
    char list[64];
    (void)snprintf(list, sizeof list, "lock-signal:n%d", lock);
    if (sim_beside.recipe == SIM_SIGNAL)
        return sim_ask_server(NULL, "LLEN", list, NULL) == 1;
    return (sim_beside.recipe != SIM_SPRING && sim_beside.recipe != SIM_REDISSON) || channel_told_at[lock] == sim.now;
}

/* By its own clock, and not before. */
static int64_t here(int64_t when)
{
    return sim_clock(sim.self, when) + HFI_MS / 1000;
}

/* BLPOP. False: nothing came until then, or it died. */
static bool pops(struct neighbour *one, const char *list, int64_t until)
{
    const char *element = "";
    arrive();
    int64_t size = sim_ask_server(&element, "LPOP", list, NULL);
    if (size == SIM_REFUSED) {
        depart();
        sim_sleep(20 * HFI_MS);
        return false;
    }
    if (size >= 0) {
        (void)snprintf(one->token, sizeof one->token, "%s", element);
        one->marked = sim_beside.recipe == SIM_TOKENS;
        if (one->marked)
            takes(one, 0);
        depart();
        return true;
    }
    (void)snprintf(one->list, sizeof one->list, "%s", list);
    one->blocked = true;
    one->place = places++;
    for (uint32_t epoch = hfi_park_epoch(&one->park); one->blocked && sim.now < until; epoch = hfi_park_epoch(&one->park)) {
        int64_t now = sim.now, most = now + 200 * HFI_MS;
        (void)hfi_park_wait(&one->park, epoch, here(until < most ? until : most));
        if (one->blocked && dies(one, 2, "while it waits for")) {
            one->dead_until = sim.now + sim_between(0, GHOST_NS);
            while (one->blocked && sim.now < one->dead_until)
                (void)hfi_park_wait(&one->park, hfi_park_epoch(&one->park), here(one->dead_until));
            one->blocked = false;
            return false;
        }
    }
    if (!one->blocked)
        return true;
    arrive(); /* the server's own timeout */
    bool is_served = !one->blocked;
    one->blocked = false;
    return is_served;
}

static void wait_for_message(struct neighbour *one, int64_t until)
{
    for (uint32_t epoch = hfi_park_epoch(&one->park); !one->told && sim.now < until; epoch = hfi_park_epoch(&one->park))
        (void)hfi_park_wait(&one->park, epoch, here(until));
}

/* ---- recipes ---- */

static bool sets(struct neighbour *one, const char *key)
{
    char ttl[24];
    (void)snprintf(ttl, sizeof ttl, "%lld", (long long)one->lease_ms);
    arrive();
    bool got = sim_ask_server(NULL, "SET", key, one->word, "NX", "PX", ttl, NULL) == 1;
    if (got)
        takes(one, some_end(one));
    depart();
    return got;
}

static bool sets_hash(struct neighbour *one, const char *key)
{
    char ttl[24];
    (void)snprintf(ttl, sizeof ttl, "%lld", (long long)one->lease_ms);
    arrive();
    bool got = sim_ask_server(NULL, "EXISTS", key, NULL) == 0 && sim_ask_server(NULL, "HSET", key, one->word, "1", NULL) == 1;
    if (got) {
        (void)sim_ask_server(NULL, "PEXPIRE", key, ttl, NULL);
        takes(one, some_end(one));
    }
    depart();
    return got;
}

/* Who finds a lock without an end gives it one. */
static bool setnx(struct neighbour *one, const char *key)
{
    char ttl[24];
    (void)snprintf(ttl, sizeof ttl, "%lld", (long long)one->lease_ms);
    arrive();
    bool got = sim_ask_server(NULL, "SETNX", key, one->word, NULL) == 1;
    if (got)
        takes(one, some_end(one)); /* others may give it an end before it does */
    depart();
    if (got && dies(one, 10, "between SETNX and EXPIRE of"))
        return true;
    arrive();
    if (got || sim_ask_server(NULL, "PTTL", key, NULL) == -1)
        (void)sim_ask_server(NULL, "PEXPIRE", key, ttl, NULL);
    depart();
    return got;
}

static bool adds(struct neighbour *one, const char *member)
{
    arrive();
    bool got = sim_ask_server(NULL, "SADD", "locks", member, NULL) == 1;
    one->marked = got;
    if (got)
        takes(one, 0);
    depart();
    return got;
}

static bool counts(struct neighbour *one, const char *key)
{
    for (int i = 0; i < SPINS && !one->holds; i++) {
        arrive();
        int64_t number = sim_ask_server(NULL, "INCR", key, NULL);
        one->marked = number != SIM_REFUSED;
        if (number == 1)
            takes(one, 0);
        depart();
        if (!one->marked || one->holds)
            continue;
        if (dies(one, 1, "between INCR and DECR of"))
            return false;
        arrive();
        INSIST("DECR", key);
        one->marked = false;
        depart();
    }
    return one->holds;
}

static void seed(struct neighbour *one)
{
    char begun[64], list[64], grabbed[64], made[64], number[16];
    (void)snprintf(begun, sizeof begun, "SEMAPHORE:n%d:EXISTS", one->lock);
    (void)snprintf(list, sizeof list, "SEMAPHORE:n%d:AVAILABLE", one->lock);
    (void)snprintf(grabbed, sizeof grabbed, "SEMAPHORE:n%d:GRABBED", one->lock);
    (void)snprintf(made, sizeof made, "SEMAPHORE:n%d:VERSION", one->lock);
    arrive();
    int64_t was = sim_ask_server(NULL, "GETSET", begun, "1", NULL);
    depart();
    if (was != SIM_NIL || dies(one, 20, "before it makes the tokens of"))
        return;
    arrive();
    (void)sim_ask_server(NULL, "PEXPIRE", begun, "10000", NULL);
    depart();
    if (dies(one, 10, "while it makes the tokens of"))
        return;
    arrive();
    INSIST("SET", made, "1");
    (void)sim_ask_server(NULL, "DEL", list, grabbed, NULL);
    for (int i = 0; i < sim_beside.room; i++) {
        (void)snprintf(number, sizeof number, "%d", i);
        INSIST("RPUSH", list, number);
    }
    (void)sim_ask_server(NULL, "PERSIST", begun, NULL);
    depart();
}

/* True: it has it, or has died. */
static bool tries(struct neighbour *one, const char *key, int64_t until)
{
    char member[16], list[64];
    (void)snprintf(member, sizeof member, "n%d", one->lock);
    (void)snprintf(list, sizeof list, "lock-signal:n%d", one->lock);
    one->told = false;
    switch (sim_beside.recipe) {
    case SIM_SETNX:
        return setnx(one, key);
    case SIM_SET:
        return adds(one, member);
    case SIM_COUNTER:
        return counts(one, key) || one->waits_since < 0;
    case SIM_REDISSON:
        return sets_hash(one, key);
    case SIM_TOKENS:
        return pops(one, key, until) || one->waits_since < 0;
    default:
        return sets(one, key);
    }
}

/* Before it asks again. */
static void pause(struct neighbour *one, int64_t until)
{
    char list[64];
    int64_t lease = sim.now + one->lease_ms * HFI_MS, soon = until < lease ? until : lease;
    (void)snprintf(list, sizeof list, "lock-signal:n%d", one->lock);
    if (sim_beside.recipe == SIM_SIGNAL)
        (void)pops(one, list, soon);
    else if (sim_beside.recipe == SIM_SPRING || sim_beside.recipe == SIM_REDISSON)
        wait_for_message(one, soon);
    else
        sim_sleep(one->poll_ms * HFI_MS);
}

static void take(struct neighbour *one)
{
    char key[64];
    int64_t until = sim.now + (sim_beside.contends ? 25000 : sim_chance(20) ? 0 : sim_between(50, 2500)) * HFI_MS;
    sim_beside_key(key, sizeof key, one->lock);
    (void)snprintf(one->word, sizeof one->word, "theirs-%d-%lld", one->number, (long long)++words);
    one->token[0] = 0;
    one->dead_until = 0;
    one->waits_since = sim.now;
    if (sim_beside.recipe == SIM_TOKENS)
        seed(one);
    while (one->waits_since >= 0 && !tries(one, key, until) && one->waits_since >= 0 && sim.now < until && sim.now < history.ops_end) {
        pause(one, until);
        if (one->waits_since >= 0)
            (void)dies(one, 1, "while it waits for");
    }
    one->waits_since = -1;
}

/* Compare and delete; or what the recipe has instead. */
static void give(struct neighbour *one)
{
    char key[64], text[96], grabbed[64], list[64];
    const char *there = "";
    sim_beside_key(key, sizeof key, one->lock);
    (void)snprintf(list, sizeof list, "lock-signal:n%d", one->lock);
    arrive();
    sim_say("neighbour %d gives lock %d back", one->number, one->lock);
    bool is_its_own = sim_beside.recipe == SIM_REDISSON ? sim_keyspace_field(&sim_server->keys, key, one->word) != NULL
                      : sim_beside.recipe < SIM_SET     ? sim_ask_server(&there, "GET", key, NULL) > 0 && strcmp(there, one->word) == 0
                                                        : true;
    if (sim_beside.recipe == SIM_SET) {
        (void)snprintf(text, sizeof text, "n%d", one->lock);
        one->holds = false;
        INSIST("SREM", "locks", text);
    } else if (sim_beside.recipe == SIM_COUNTER) {
        INSIST("DECR", key);
        one->holds = false;
    } else if (sim_beside.recipe == SIM_TOKENS) {
        (void)snprintf(grabbed, sizeof grabbed, "SEMAPHORE:n%d:GRABBED", one->lock);
        INSIST("LPUSH", key, one->token);
        INSIST("HDEL", grabbed, one->token);
    } else if (is_its_own) {
        if (sim_beside.recipe == SIM_SIGNAL && sim_ask_server(NULL, "DEL", list, NULL) != SIM_REFUSED &&
            sim_ask_server(NULL, "LPUSH", list, "1", NULL) != SIM_REFUSED)
            (void)sim_ask_server(NULL, "PEXPIRE", list, "1000", NULL);
        (void)sim_ask_server(NULL, "DEL", key, NULL);
        (void)snprintf(text, sizeof text, sim_beside.recipe == SIM_SPRING ? "locks-channel:%s" : "redisson_lock__channel:{%s}", key);
        if (sim_beside.recipe == SIM_SPRING || sim_beside.recipe == SIM_REDISSON)
            (void)sim_ask_server(NULL, "PUBLISH", text, sim_beside.recipe == SIM_SPRING ? key : "0", NULL);
    }
    one->holds = one->marked = false;
    depart();
}

static void hold(struct neighbour *one)
{
    char key[64], ttl[24], grabbed[64];
    int64_t until = sim.now + sim_between(0, sim_chance(80) ? 60 : 2 * history.lease_ms) * HFI_MS;
    sim_beside_key(key, sizeof key, one->lock);
    (void)snprintf(ttl, sizeof ttl, "%lld", (long long)one->lease_ms);
    (void)snprintf(grabbed, sizeof grabbed, "SEMAPHORE:n%d:GRABBED", one->lock);
    if (sim_beside.recipe == SIM_TOKENS && !dies(one, 2, "between BLPOP and HSET of")) {
        (void)snprintf(ttl, sizeof ttl, "%.6f", (double)sim.now / 1e9);
        arrive();
        INSIST("HSET", grabbed, one->token, ttl);
        depart();
    }
    while (one->holds && sim.now < until) {
        int64_t left = until - sim.now, third = one->lease_ms * HFI_MS / 3;
        sim_sleep(left < third ? left : third);
        if (sim_beside.recipe != SIM_REDISSON || left < third)
            continue;
        arrive();
        if (sim_keyspace_field(&sim_server->keys, key, one->word) != NULL && sim_ask_server(NULL, "PEXPIRE", key, ttl, NULL) == 1) {
            one->end_us = some_end(one);
            if (sim_server->refuses_config) /* who tracks the key hears of it */
                sim_oracle_news(&history.oracle, one->lock);
        }
        depart();
    }
    if (one->holds && !dies(one, 6, "with"))
        give(one);
}

static void live(void *arg)
{
    struct neighbour *one = arg;
    sim_sleep(sim_between(0, 800) * HFI_MS);
    while (sim.now < history.ops_end) {
        sim_sleep(sim_between(0, sim_beside.contends ? 50 : sim_chance(70) ? 100 : 800) * HFI_MS);
        one->lock = (int)sim_between(0, history.locks - 1);
        one->lease_ms = sim_chance(70) ? history.lease_ms : sim_between(100, 2 * history.lease_ms);
        one->poll_ms = sim_between(5, sim_chance(80) ? 50 : 120);
        take(one);
        if (one->holds)
            hold(one);
    }
    one->is_over = true;
}

/* ---- the operator ---- */

static void is_mended(int at)
{
    sim_say("what a dead neighbour has left of lock %d is mended", dead[at].lock);
    dead[at] = dead[--dead_count];
}

/* How many marks there are too few of: one more was taken off than whoever made them knows of. */
static int missing(int lock)
{
    int known = sim_beside_records(lock) + sim_neighbours_marks(lock), there = sim_beside_marks(lock);
    return sim_beside.recipe == SIM_TOKENS ? known + there - sim_beside.room : known - there;
}

static struct sim_process *operators_process(void)
{
    for (int i = 1; i < sim.process_count; i++)
        if (sim.processes[i].alive && sim.processes[i].client != NULL && !sim_is_paused(&sim.processes[i]))
            return &sim.processes[i];
    return NULL;
}

static void break_now(void *arg)
{
    hf_error error = {.status = HF_OK};
    char name[16];
    bool had;
    (void)snprintf(name, sizeof name, "n%d", (int)(intptr_t)arg);
    hf_status status = sim.self->client != NULL ? hf_lock_break_now(sim.self->client, name, &had, &error) : HF_OK;
    sim_say("break of %s: %s", name, hf_status_name(status));
    if (status == HF_FOREIGN)
        sim_violation("[status] break says %s: %s", hf_status_name(status), error.message);
    tries_under_way--;
}

void sim_neighbours_script_over(const char *script, const char *key)
{
    int lock = strcmp(script, "break") == 0 ? sim_beside_lock(key) : -1;
    for (int i = 0; i < dead_count && lock >= 0; i++)
        if (dead[i].lock == lock && missing(lock) > 0) {
            is_mended(i);
            return;
        }
}

static void mend_by_hand(int at)
{
    char key[64], text[64];
    int lock = dead[at].lock;
    sim_beside_key(key, sizeof key, lock);
    arrive();
    if (sim_beside.recipe == SIM_SET) {
        (void)snprintf(text, sizeof text, "n%d", lock);
        INSIST("SREM", "locks", text);
    } else if (sim_beside.recipe == SIM_COUNTER) {
        INSIST("DECR", key);
    } else {
        (void)snprintf(text, sizeof text, "SEMAPHORE:n%d:GRABBED", lock);
        INSIST("LPUSH", key, dead[at].token);
        INSIST("HDEL", text, dead[at].token);
    }
    is_mended(at);
    depart();
}

static void operate(void *arg)
{
    (void)arg;
    while (sim.now < history.ops_end + 500 * HFI_MS || dead_count > 0 || tries_under_way > 0) {
        sim_sleep(100 * HFI_MS);
        if (dead_count == 0 || tries_under_way > 0)
            continue;
        int at = (int)sim_between(0, dead_count - 1);
        /* What is executed late, after an answer that was lost, would hit whoever has it then. */
        bool by_break = sim_beside.mild && !sim_beside.by_call && sim_beside.room == 1 && history.settled == 0 && sim_chance(50);
        struct sim_process *process = by_break ? operators_process() : NULL;
        if (sim.now < dead[at].since + sim_between(100 * HFI_MS, MEND_NS))
            continue;
        if (process == NULL) {
            mend_by_hand(at);
            continue;
        }
        tries_under_way = 1;
        dead[at].tried = sim.now;
        sim_thread_start(process, break_now, (void *)(intptr_t)dead[at].lock);
        for (int i = 0; i < 40 && tries_under_way > 0; i++)
            sim_sleep(100 * HFI_MS);
        tries_under_way = 0; /* its process has died */
    }
    operator_over = true;
}

void sim_neighbours_begin(void)
{
    memset(theirs, 0, sizeof theirs);
    dead_count = tries_under_way = 0;
    places = words = 0;
    sim_beside_begin();
    operator_over = !sim_beside.on;
    for (int lock = 0; lock < SIM_LOCKS; lock++)
        channel_told_at[lock] = -1;
    if (!sim_beside.on)
        return;
    sim_server->speaks = true;
    struct sim_process *process = sim_process_new();
    sim_say("beside %d neighbours: %s%s%s", sim_beside.count, sim_beside.dialect, sim_beside.by_call ? ", by call" : "",
            sim_beside.contends ? ", contends" : "");
    for (int i = 0; i < sim_beside.count; i++) {
        theirs[i].number = i;
        theirs[i].waits_since = -1;
        hfi_park_init(&theirs[i].park);
        sim_thread_start(process, live, &theirs[i]);
    }
    sim_thread_start(process, operate, NULL);
}

bool sim_neighbours_are_over(void)
{
    bool over = operator_over;
    for (int i = 0; i < sim_beside.count && sim_beside.on; i++)
        over = over && theirs[i].is_over;
    return over;
}
