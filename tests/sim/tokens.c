/* SPDX-License-Identifier: MIT */
/* tokens.c - tokens and keys as the server and the lanes handle them, told to the oracle: order of arrival, the
 * queue, grants, listed releases, lifetimes of keys. */
#include "core/policy/fence.h"
#include "core/protocol/key.h"
#include "core/protocol/scripts.h"
#include "core/protocol/token.h"
#include "tests/sim/history.h"
#include "tests/sim/hosts.h"
#include "tests/sim/near.h"
#include "tests/sim/neighbours.h"
#include "tests/sim/pool_inside.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOKENS     4096
#define WORDS_MOST 4096 /* bytes of a command about locks */
#define PERMITS    "hf:sem:{s}"
#define QUEUE_OF_PERMITS "hf:queue:{s}:hf:sem:{s}"
#define SHARED     "hf1:shared" /* the value of a lock that readers have */
#define GIVEN_MOST 4
#define LATEST     30   /* the last 30 tokens include all that are in use, or just were */

static struct {
    char token[160];
    int name;
    int64_t owned_at, queued_at;
    struct given { /* the key, by servers of one deployment: the last few times */
        int64_t at, from, to; /* the fence counter was so far then, before and after */
        int reign;
    } given[GIVEN_MOST];
    int given_count;
    int64_t owned_first; /* after a loss of data a hand-off can give it the key once more; -1: it had no key yet */
    int64_t ticket; /* SIM_NO_TICKET: it was never in the queue */
    int64_t first_ticket; /* a question that came twice, without one, may have got another */
    int64_t others[GIVEN_MOST]; /* tickets that it had, or has from other servers than the primary: the last few */
    int other_count;
    int64_t released_at;  /* when its release was listed, on its process's clock; HFI_NEVER: it was not */
    bool reads; /* it stands in the readers' key */
} arrivals[TOKENS]; /* the n-th that the server saw */
static int arrival_count;
static bool gave; /* the running command did, to some of them */
static bool is_long; /* arrivals were forgotten, perhaps with places that they have in a queue: fairness is not watched any more */
static uint64_t let_in[SIM_QUEUE_MOST]; /* readers, by the running script: to the oracle all of them at once */
static int let_in_count;
static struct { /* who came into a queue after them, by the same script */
    int name;
    uint64_t arrival;
    int64_t ticket;
    bool is_new;
} stood[SIM_QUEUE_MOST];
static int stood_count;
static struct {
    int64_t holder;       /* the arrival whose token the key holds; -1: none, or another program's */
    int64_t alone;        /* who had it before the readers */
    bool ended_by_itself; /* the key expired, the data were lost, or another program's key went */
    bool is_foreign;
} keys[SIM_LOCKS];

void sim_tokens_begin(void)
{
    arrival_count = let_in_count = stood_count = 0;
    is_long = false;
    for (int i = 0; i < SIM_LOCKS; i++) {
        keys[i].holder = keys[i].alone = -1;
        keys[i].ended_by_itself = keys[i].is_foreign = false;
    }
}

int sim_asker(bool shares)
{
    return sim.self->id + (shares ? SIM_PROCESSES + 1 : 0);
}

static uint64_t arrival_of(const char *token, int name)
{
    for (int i = arrival_count; i-- > 0;)
        if (arrivals[i].name == name && strcmp(arrivals[i].token, token) == 0)
            return (uint64_t)i;
    if (arrival_count == TOKENS) {
        arrival_count = 0;
        is_long = true;
        for (int i = 0; i < SIM_NAMES_MOST; i++)
            sim_oracle_flushed(&history.oracle, i);
    }
    (void)snprintf(arrivals[arrival_count].token, sizeof arrivals[0].token, "%s", token);
    arrivals[arrival_count].name = name;
    arrivals[arrival_count].owned_at = sim.now;
    arrivals[arrival_count].owned_first = -1;
    arrivals[arrival_count].reads = false;
    arrivals[arrival_count].given_count = 0;
    arrivals[arrival_count].ticket = arrivals[arrival_count].first_ticket = SIM_NO_TICKET;
    arrivals[arrival_count].other_count = 0;
    arrivals[arrival_count].released_at = HFI_NEVER;
    return (uint64_t)arrival_count++;
}

int64_t sim_tokens_owned_at(const char *token, int name)
{
    return arrivals[arrival_of(token, name)].owned_at;
}

int64_t sim_tokens_given_at(const char *token, int name, int64_t fence, int *reign)
{
    uint64_t arrival = arrival_of(token, name);
    const struct given *found = NULL;
    bool fits = false;
    for (int i = 0; i < arrivals[arrival].given_count; i++) {
        const struct given *one = &arrivals[arrival].given[i];
        bool is_it = fence >= one->from && fence < one->to + HFI_FENCE_BLOCK;
        /* One for several locks moves it often; and an answer may bring another block than the message that it confirms. */
        if (is_it || (!fits && fence >= one->from - 64 * HFI_FENCE_BLOCK))
            found = one;
        fits = fits || is_it;
    }
    *reign = found != NULL ? found->reign : 0;
    return found != NULL ? found->at : arrivals[arrival].owned_at;
}

int64_t sim_tokens_owned_first(const char *token, int name)
{
    int64_t first = arrivals[arrival_of(token, name)].owned_first;
    return first >= 0 ? first : sim_tokens_owned_at(token, name);
}

const char *sim_tokens_some(int *name)
{
    if (arrival_count == 0)
        return NULL;
    int64_t last = arrival_count - 1, one = sim_between(last < LATEST ? 0 : last - LATEST, last);
    *name = arrivals[one].name;
    return arrivals[one].token;
}

int64_t sim_tokens_wanted_since(const char *token, int name)
{
    const struct sim_oracle *oracle = &history.oracle;
    uint64_t own = arrival_of(token, name);
    int64_t since = -1;
    for (int i = 0; i < oracle->queue_count[name]; i++) {
        const struct sim_queued *one = &oracle->queue[name][i];
        if (one->waiter != own && (since < 0 || arrivals[one->waiter].queued_at < since))
            since = arrivals[one->waiter].queued_at;
    }
    return since < 0 || since > arrivals[own].owned_at ? since : arrivals[own].owned_at;
}

/* The number behind a prefix: "hf:{n1}" with the prefix "hf:{n" gives 1; -1: the key has another prefix. */
static int number_behind(const char *prefix, const char *key)
{
    size_t size = strlen(prefix);
    return strncmp(key, prefix, size) == 0 && key[size] >= '0' && key[size] <= '9' ? key[size] - '0' : -1;
}

int sim_tokens_name_of(const char *key)
{
    int lock = number_behind("hf:{n", key), page = number_behind("hf:fetch:{page", key), held = number_behind("hf:held:{n", key);
    if (strcmp(key, PERMITS) == 0)
        return SIM_SEMAPHORE;
    if (sim_beside.on && sim_beside_lock(key) >= 0)
        return sim_beside_lock(key);
    return lock >= 0 ? lock : held >= 0 ? held : page >= 0 ? SIM_LOCKS + page : -1;
}

/* ---- the queue and the key of a lock ---- */

static void look_who_hears(int name)
{
    struct sim_oracle *oracle = &history.oracle;
    for (int i = 0; i < oracle->queue_count[name]; i++) {
        struct sim_queued *one = &oracle->queue[name][i];
        char channel[64];
        (void)snprintf(channel, sizeof channel, "hf:c:%.32s", arrivals[one->waiter].token + 4);
        one->heard = sim_server_is_heard(channel);
    }
}

/* An operator's break leaves the key with a token of the same client and grant, but another random number. */
static bool is_break(int lock, uint64_t arrival)
{
    if (keys[lock].holder < 0 || keys[lock].ended_by_itself || (int64_t)arrival == keys[lock].holder)
        return false;
    const char *old = arrivals[keys[lock].holder].token, *new = arrivals[arrival].token;
    size_t size = 37 + strcspn(old + 37, ":");
    return strncmp(old, new, size + 1) == 0;
}

static int64_t fence_counter(void)
{
    const char *counter = sim_keyspace_string(&sim_server->keys, HFI_FENCE_KEY);
    return counter != NULL ? strtoll(counter, NULL, 10) : 0;
}

static int reign_now(void)
{
    return sim_server->host != NULL ? sim_server->host->reign : 0;
}

/* The command that gives it the key also moves the counter, before or after. */
static void note_given(uint64_t arrival, int64_t from)
{
    struct given *given = arrivals[arrival].given;
    int *count = &arrivals[arrival].given_count;
    if (*count > 0 && given[*count - 1].at == sim.now)
        return;
    if (*count == GIVEN_MOST)
        memmove(given, given + 1, (size_t)--*count * sizeof *given);
    given[(*count)++] = (struct given){.at = sim.now, .from = from, .to = INT64_MAX - HFI_FENCE_BLOCK,
                                       .reign = reign_now()};
    gave = true;
}

void sim_command_over(void)
{
    for (int i = 0; i < arrival_count && gave; i++)
        for (int j = 0; j < arrivals[i].given_count; j++)
            if (arrivals[i].given[j].at == sim.now && arrivals[i].given[j].reign == reign_now())
                arrivals[i].given[j].to = fence_counter();
    gave = false;
}

static void owns(uint64_t arrival)
{
    arrivals[arrival].owned_at = sim.now;
    note_given(arrival, fence_counter());
    if (arrivals[arrival].owned_first < 0)
        arrivals[arrival].owned_first = sim.now;
}

static void passes_others(int lock, uint64_t arrival)
{
    look_who_hears(lock);
    if (!is_long)
        sim_oracle_taken(&history.oracle, lock, arrival, arrivals[arrival].ticket,
                         keys[lock].ended_by_itself && !sim_server->in_script);
}

static void lock_taken(int lock, const char *token)
{
    if (strcmp(token, SHARED) == 0) { /* by whom, the readers' key has told */
        keys[lock].is_foreign = keys[lock].ended_by_itself = false;
        keys[lock].alone = keys[lock].holder;
        keys[lock].holder = -1;
        return;
    }
    keys[lock].is_foreign = strncmp(token, "hf1:", 4) != 0;
    if (keys[lock].is_foreign) {
        keys[lock].holder = -1;
        return;
    }
    uint64_t arrival = arrival_of(token, lock);
    owns(arrival);
    if (is_break(lock, arrival))
        sim_oracle_broken(&history.oracle, lock, sim.now);
    else
        passes_others(lock, arrival);
    keys[lock].holder = (int64_t)arrival;
    keys[lock].ended_by_itself = false;
}

static bool is_revoked(const char *token)
{
    struct hfi_token_parts parts;
    return hfi_token_parse(token, strlen(token), &parts) && hfi_token_is_revoked(parts.token);
}

/* A reader is new, reads longer, or reads no more; or all of them do not. */
static void readers_changed(int lock, const char *event, const char *token)
{
    bool added = strcmp(event, "zadd") == 0;
    if (!added && strcmp(event, "zrem") != 0) {
        for (int i = 0; i < arrival_count; i++)
            arrivals[i].reads = arrivals[i].reads && arrivals[i].name != lock;
        return;
    }
    uint64_t arrival = arrival_of(token, lock);
    if (added && is_revoked(token)) {
        sim_oracle_broken(&history.oracle, lock, sim.now);
    } else if (added && !arrivals[arrival].reads && (int64_t)arrival != keys[lock].alone &&
               (int64_t)arrival != keys[lock].holder) { /* else it was downgraded, or is just being */
        owns(arrival);
        if (let_in_count == SIM_QUEUE_MOST)
            abort();
        let_in[let_in_count++] = arrival;
    }
    arrivals[arrival].reads = added;
}

/* A token has its first permit, or gives back the last; or all of them are gone. */
static void permits_changed(const char *event, const char *member)
{
    bool added = strcmp(event, "zadd") == 0;
    size_t size = strlen(member);
    char token[160];
    if (!added && strcmp(event, "zrem") != 0) {
        for (int i = 0; i < arrival_count; i++)
            arrivals[i].reads = arrivals[i].reads && arrivals[i].name != SIM_SEMAPHORE;
        return;
    }
    if (size < 2 || size >= sizeof token || strcmp(member + size - 2, "#1") != 0)
        return;
    (void)snprintf(token, sizeof token, "%.*s", (int)size - 2, member);
    uint64_t arrival = arrival_of(token, SIM_SEMAPHORE);
    if (added && is_revoked(token)) {
        sim_oracle_broken(&history.oracle, SIM_SEMAPHORE, sim.now);
    } else if (added && !arrivals[arrival].reads) {
        owns(arrival);
        look_who_hears(SIM_SEMAPHORE);
        if (!is_long)
            sim_oracle_taken(&history.oracle, SIM_SEMAPHORE, arrival, arrivals[arrival].ticket, false);
    }
    arrivals[arrival].reads = added;
}

static void lock_changed(int lock, const char *event, const char *value)
{
    if (strcmp(event, "set") == 0) {
        lock_taken(lock, value);
    } else {
        keys[lock].ended_by_itself = keys[lock].is_foreign || strcmp(event, "del") != 0;
        keys[lock].is_foreign = false;
    }
}

static void note_other(uint64_t arrival, int64_t ticket)
{
    arrivals[arrival].others[arrivals[arrival].other_count++ % GIVEN_MOST] = ticket;
}

static bool had_other(uint64_t arrival, int64_t ticket)
{
    bool had = false;
    for (int i = 0; i < GIVEN_MOST && i < arrivals[arrival].other_count; i++)
        had = had || arrivals[arrival].others[i] == ticket;
    return had;
}

/* True: the process has had this ticket, perhaps with another token: a place in the queue belongs to the process. */
static bool had_ticket(const char *token, int name, int64_t ticket)
{
    for (int i = 0; i < arrival_count; i++)
        if (arrivals[i].name == name &&
            (arrivals[i].ticket == ticket || arrivals[i].first_ticket == ticket || had_other((uint64_t)i, ticket)) &&
            strncmp(arrivals[i].token, token, 37) == 0)
            return true;
    return false;
}

static void queue_changed(int name, const char *key, const char *event, const char *token)
{
    if (strcmp(event, "zadd") == 0) {
        uint64_t arrival = arrival_of(token, name);
        int64_t ticket = (int64_t)sim_keyspace_score(&sim_server->keys, key, token);
        bool is_new = !is_long && !had_ticket(token, name, ticket);
        if (arrivals[arrival].first_ticket == SIM_NO_TICKET) {
            arrivals[arrival].first_ticket = ticket;
            arrivals[arrival].queued_at = sim.now;
        }
        if (arrivals[arrival].ticket != ticket)
            note_other(arrival, arrivals[arrival].ticket);
        arrivals[arrival].ticket = ticket;
        if (let_in_count == 0) {
            sim_oracle_queued(&history.oracle, name, arrival, ticket, is_new);
            return;
        }
        if (stood_count == SIM_QUEUE_MOST)
            abort();
        stood[stood_count].name = name;
        stood[stood_count].arrival = arrival;
        stood[stood_count].ticket = ticket;
        stood[stood_count++].is_new = is_new;
    } else if (strcmp(event, "zrem") == 0) {
        sim_oracle_left(&history.oracle, name, arrival_of(token, name));
    } else if (strcmp(event, "expired") == 0) {
        sim_oracle_flushed(&history.oracle, name);
    }
}

struct queue {
    int name;
    char key[64];
};

static void queued_still(void *arg, const char *token)
{
    const struct queue *queue = arg;
    queue_changed(queue->name, queue->key, "zadd", token);
}

static void permits_after_loss(void);

void sim_tokens_after_loss(void)
{
    sim_oracle_data_lost(&history.oracle, sim.now);
    sim_tokens_look_anew();
}

void sim_tokens_look_anew(void)
{
    permits_after_loss();
    for (int lock = 0; lock < SIM_LOCKS; lock++) {
        struct queue queue = {.name = lock};
        sim_tokens_key(queue.key, sizeof queue.key, "queue", lock);
        for (int i = 0; i < arrival_count; i++)
            if (arrivals[i].name == lock)
                arrivals[i].reads = sim_tokens_has_end(arrivals[i].token, lock);
        const char *there = sim_tokens_value(lock);
        bool is_token = there != NULL && strncmp(there, "hf1:", 4) == 0 && strcmp(there, SHARED) != 0;
        keys[lock].holder = is_token ? (int64_t)arrival_of(there, lock) : -1;
        keys[lock].ended_by_itself = true;
        sim_oracle_flushed(&history.oracle, lock);
        sim_keyspace_members(&sim_server->keys, queue.key, queued_still, &queue);
    }
}

static void permits_after_loss(void)
{
    struct queue queue = {.name = SIM_SEMAPHORE, .key = QUEUE_OF_PERMITS};
    for (int i = 0; i < arrival_count; i++) {
        char member[sizeof arrivals[0].token + 2];
        (void)snprintf(member, sizeof member, "%.159s#1", arrivals[i].token);
        if (arrivals[i].name == SIM_SEMAPHORE)
            arrivals[i].reads = !isnan(sim_keyspace_score(&sim_server->keys, PERMITS, member));
    }
    sim_oracle_flushed(&history.oracle, SIM_SEMAPHORE);
    sim_keyspace_members(&sim_server->keys, queue.key, queued_still, &queue);
}

static void page_stored(int page, const char *value)
{
    char *end;
    long long fence = strtoll(value, &end, 10);
    const char *holder = sim_tokens_value(SIM_LOCKS + page);
    int64_t owned_at = holder != NULL ? sim_tokens_owned_at(holder, SIM_LOCKS + page) : -1;
    if (end != value && *end == ' ')
        sim_oracle_stored(&history.oracle, SIM_LOCKS + page, fence, owned_at, strtoll(end, NULL, 10));
}

/* By a server that is not the primary any more, or does not know yet that it is not: it gives to whom it likes, and in no order
 * that counts. */
static void changed_elsewhere(const char *event, const char *key, const char *value)
{
    int lock = number_behind("hf:{n", key), held = number_behind("hf:held:{n", key), queue = number_behind("hf:queue:{n", key);
    if (strcmp(key, QUEUE_OF_PERMITS) == 0)
        queue = SIM_SEMAPHORE;
    if (queue >= 0 && strcmp(event, "zadd") == 0)
        note_other(arrival_of(value, queue), (int64_t)sim_keyspace_score(&sim_server->keys, key, value));
    else if (lock >= 0 && strcmp(event, "set") == 0 && strncmp(value, "hf1:", 4) == 0 && strcmp(value, SHARED) != 0)
        owns(arrival_of(value, lock));
    else if (held >= 0 && strcmp(event, "zadd") == 0 && !is_revoked(value))
        owns(arrival_of(value, held));
}

void sim_key_changed(const char *event, const char *key, const char *value)
{
    int number;
    sim_beside_changed(event, key, value);
    if (sim_server != sim_server_that_counts)
        changed_elsewhere(event, key, value);
    else if ((number = number_behind("hf:queue:{n", key)) >= 0)
        queue_changed(number, key, event, value);
    else if (strcmp(key, QUEUE_OF_PERMITS) == 0)
        queue_changed(SIM_SEMAPHORE, key, event, value);
    else if (strcmp(key, PERMITS) == 0)
        permits_changed(event, value);
    else if ((number = number_behind("hf:held:{n", key)) >= 0)
        readers_changed(number, event, value);
    else if ((number = number_behind("hf:{n", key)) >= 0)
        lock_changed(number, event, value);
    else if (strcmp(event, "set") != 0)
        return;
    else if ((number = number_behind("hf:fetch:{page", key)) >= 0)
        arrivals[arrival_of(value, SIM_LOCKS + number)].owned_at = sim.now;
    else if ((number = number_behind("page", key)) >= 0)
        page_stored(number, value);
}

void sim_script_over(void)
{
    for (int i = 0; i < let_in_count; i++)
        passes_others(arrivals[let_in[i]].name, let_in[i]);
    for (int i = 0; i < stood_count; i++)
        sim_oracle_queued(&history.oracle, stood[i].name, stood[i].arrival, stood[i].ticket, stood[i].is_new);
    let_in_count = stood_count = 0;
}

/* Who has the key asks for it, or for more fences: the key may be another server's gift, these are this one's. */
static void note_another_block(const char *script, const struct sim_words *words)
{
    bool gives = strncmp(script, "acquire", 7) == 0 || strcmp(script, "more") == 0;
    int name = gives && sim_server->host != NULL ? sim_tokens_name_of(words->text[3]) : -1;
    const char *held = name < 0 ? NULL : sim_keyspace_string(&sim_server->keys, words->text[3]);
    const char *token = words->text[3 + atoi(words->text[2])];
    if (held != NULL && strcmp(held, token) == 0)
        note_given(arrival_of(token, name), fence_counter() - 16 * HFI_FENCE_BLOCK);
}

void sim_script_ran(const char *script, const struct sim_words *words, const struct sim_process *process)
{
    note_another_block(script, words);
    sim_beside_script_ran(script, words);
    for (int page = 0; strcmp(script, "forget_tag") == 0 && page < SIM_PAGES; page++)
        sim_oracle_purged(&history.oracle, SIM_LOCKS + page, sim.now); /* all values have that tag */
    if (strcmp(script, "forget") != 0 || words->count <= 7)
        return;
    int page = number_behind("page", words->text[7]);
    if (page < 0)
        return;
    sim_oracle_forgotten(&history.oracle, SIM_LOCKS + page, sim.now);
    sim_near_script_ran(script, page, process);
}

/* ---- what clients list ---- */

static void asks(const char *key, bool shares, bool counts)
{
    int name = sim_tokens_name_of(key);
    if (name >= 0 && counts && !(sim_is_beside(name) && sim_beside_is_noisy(name)))
        sim_oracle_asks(&history.oracle, sim_asker(shares), name, sim.now);
}

/* By the claim ttl of a question. */
static bool wants_to_share(const char *claim)
{
    return claim[strlen(claim) - 1] == 's';
}

static void renews_or_releases(bool renews, const struct hfi_command *command, const struct sim_words *words)
{
    int key_count = atoi(words->text[2]), each = command->script == hfi_script_renew_permits ? 4 : 3;
    bool one = !renews || sim_beside_is_spoken(command, HFI_DIALECT_RENEW);
    for (int i = 0; i < (one ? 1 : key_count); i++) {
        int name = sim_tokens_name_of(words->text[3 + i]);
        const char *token = words->text[3 + key_count + each * i];
        if (name < 0)
            continue;
        uint64_t arrival = arrival_of(token, name);
        if (renews) /* one that was collected before may be listed after it */
            sim_oracle_renewed(&history.oracle, arrival, command->stamp_ns > arrivals[arrival].released_at);
        else if (arrivals[arrival].released_at == HFI_NEVER)
            arrivals[arrival].released_at = hfi_now(&hfi_boottime);
    }
}

void sim_lane_lists(const struct hfi_command *command, bool counts)
{
    static const char multi[] = "*1\r\n$5\r\nMULTI\r\n"; /* before a native acquire's SET */
    char bytes[WORDS_MOST];
    struct sim_words words;
    bool renews = command->script == hfi_script_renew || command->script == hfi_script_renew_permits;
    renews = renews || sim_beside_is_spoken(command, HFI_DIALECT_RENEW);
    bool gives_all = command->script == hfi_script_release_permits;
    bool rechecks = command->script == hfi_script_recheck;
    if (command->size >= sizeof bytes)
        return;
    memcpy(bytes, command->bytes, command->size);
    bool native = strncmp(bytes, multi, sizeof multi - 1) == 0;
    size_t skipped = native ? sizeof multi - 1 : (size_t)command->ahead;
    if (sim_words_parse(&words, bytes + skipped, command->size - skipped) == 0)
        abort();
    if (native && strcmp(words.text[0], "SET") == 0)
        asks(words.text[1], false, counts);
    else if (command->script == hfi_script_acquire || command->script == hfi_script_acquire_shared)
        asks(words.text[3], wants_to_share(words.text[3 + atoi(words.text[2]) + 6]), counts);
    else if (command->script == hfi_script_acquire_permits || sim_beside_is_spoken(command, HFI_DIALECT_ACQUIRE))
        asks(words.text[3], false, counts);
    for (int i = 0; rechecks && i < atoi(words.text[2]); i += 3)
        asks(words.text[3 + i], wants_to_share(words.text[3 + atoi(words.text[2]) + 3]), counts);
    gives_all = gives_all && strcmp(words.text[words.count - 1], "0") == 0;
    if (renews || gives_all || command->script == hfi_script_release || sim_beside_is_spoken(command, HFI_DIALECT_RELEASE))
        renews_or_releases(renews, command, &words);
}
