/* SPDX-License-Identifier: MIT */
/* spelling.c - how a lock is spelled at the server, by docs/interop.md and docs/protocol.md alone. See neighbours.h. */
#include "core/protocol/scripts.h"
#include "pool/command.h"
#include "tests/sim/neighbours.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim_beside sim_beside;

/* ---- from the seed ---- */

void sim_beside_draw(void)
{
    static const struct {
        const char *dialect;
        enum sim_recipe recipe;
    } all[] = {{"warlock", SIM_STRING},       {"python-redis-lock", SIM_SIGNAL}, {"spring", SIM_SPRING}, {"setnx", SIM_SETNX},
               {"set", SIM_SET},              {"counter", SIM_COUNTER},          {"tokens", SIM_TOKENS}, {"redisson", SIM_REDISSON}};
    static const char *const strings[] = {"warlock", "redlock", "redis-semaphore", "redis-py", "shedlock", "rueidislock"};
    size_t die = (size_t)sim_between(0, (int64_t)(sizeof all / sizeof all[0]) - 1);
    sim_beside = (struct sim_beside){.on = true, .recipe = all[die].recipe, .room = 1, .count = (int)sim_between(1, SIM_THEIRS_MOST)};
    const char *name = all[die].recipe == SIM_STRING ? strings[sim_between(0, 5)] : all[die].dialect;
    if (sim_beside.recipe == SIM_TOKENS)
        sim_beside.room = (int)sim_between(1, 3);
    (void)snprintf(sim_beside.dialect, sizeof sim_beside.dialect, sim_beside.room > 1 ? "%s:%d" : "%s", name, sim_beside.room);
    sim_beside.by_call = sim_chance(30);
    sim_beside.mild = sim_chance(60);
    sim_beside.contends = sim_beside.mild && sim_chance(15) && sim_beside.room == 1;
    sim_beside.by_call = sim_beside.by_call && !sim_beside.contends;
    sim_beside.hears = sim_beside.mild && !sim_server->refuses_config && sim_chance(60);
    history.linger_ms = sim_beside.hears ? 0 : history.linger_ms;
    history.pages = 0;
    history.reads = history.counts = 0;
    history.uses_up_fences = false;
    history.command_ms = sim_beside.mild ? 1000 : history.command_ms;
    if (!sim_beside.contends)
        return;
    history.locks = 1;
    history.process_goal = (int)sim_between(1, 2);
    history.threads = (int)sim_between(3, 4);
    history.lease_ms = sim_between(300, 1000);
    history.think_most = 0;
    history.hold_most = sim_between(2, 30);
    history.linger_ms = 0;
}

bool sim_is_beside(int lock)
{
    return sim_beside.on && lock >= 0 && lock < history.locks;
}

int64_t sim_ask_server(const char **text, const char *first, ...)
{
    static struct hfi_buffer reply;
    struct sim_words words = {.count = 0};
    va_list more;
    va_start(more, first);
    for (const char *word = first; word != NULL; word = va_arg(more, const char *)) {
        words.text[words.count] = word;
        words.size[words.count++] = strlen(word);
    }
    va_end(more);
    hfi_buffer_eat(&reply, hfi_buffer_size(&reply));
    sim_server->keys.now_us = sim_server_us();
    sim_server->keys.wrote = false;
    (void)sim_keyspace_run(&sim_server->keys, &words, &reply);
    if (!hfi_buffer_append(&reply, "", 1))
        abort();
    char *said = (char *)(uintptr_t)hfi_buffer_data(&reply); /* our own */
    int64_t number = strtoll(said + 1, NULL, 10);
    if (*said == '-')
        return SIM_REFUSED;
    if (*said == '+')
        return 1;
    if (*said != '$')
        return number;
    if (number < 0)
        return SIM_NIL;
    char *body = strchr(said, '\n') + 1;
    body[number] = 0;
    if (text != NULL)
        *text = body;
    return number;
}

/* ---- keys ---- */

static const char *template_of(void)
{
    static const char *const strings[][2] = {{"warlock", "n%d:lock"},           {"redis-semaphore", "mutex:n%d"},
                                             {"shedlock", "job-lock:default:n%d"}, {"rueidislock", "rueidislock:0:n%d"}};
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++)
        if (strcmp(sim_beside.dialect, strings[i][0]) == 0)
            return strings[i][1];
    return sim_beside.recipe == SIM_SIGNAL ? "lock:n%d"
           : sim_beside.recipe == SIM_SPRING || sim_beside.recipe == SIM_SET ? "locks:n%d"
           : sim_beside.recipe == SIM_TOKENS                                 ? "SEMAPHORE:n%d:AVAILABLE"
                                                                             : "n%d";
}

static void print(char *out, size_t room, const char *form, int lock)
{
    const char *at = strstr(form, "%d");
    (void)snprintf(out, room, "%.*s%d%s", (int)(at - form), form, lock, at + 2);
}

void sim_beside_key(char *out, size_t room, int lock)
{
    print(out, room, template_of(), lock);
}

void sim_beside_side(char *out, size_t room, const char *kind, int lock)
{
    char key[64];
    const char *mark = sim_beside.recipe == SIM_SET        ? "set5:"
                       : sim_beside.recipe == SIM_COUNTER  ? "count:"
                       : sim_beside.recipe == SIM_TOKENS   ? "list:"
                       : sim_beside.recipe == SIM_REDISSON ? "hash:"
                                                           : "";
    sim_beside_key(key, sizeof key, lock);
    (void)snprintf(out, room, "hf:%s:%s{%s}:%s", kind, mark, key, key);
}

int sim_beside_lock(const char *key)
{
    char own[64];
    for (int lock = 0; sim_is_beside(lock); lock++) {
        sim_beside_key(own, sizeof own, lock);
        if (strcmp(own, key) == 0)
            return lock;
    }
    return -1;
}

static void token_key(char *out, size_t room, const char *what, int lock)
{
    (void)snprintf(out, room, "SEMAPHORE:n%d:%s", lock, what);
}

/* ---- who has it ---- */

static const char *record_of(const char *token, int lock)
{
    char lease[128];
    sim_beside_side(lease, sizeof lease, "lease", lock);
    return sim_keyspace_field(&sim_server->keys, lease, token);
}

int sim_beside_records(int lock)
{
    char lease[128];
    sim_beside_side(lease, sizeof lease, "lease", lock);
    return (int)sim_ask_server(NULL, "HLEN", lease, NULL);
}

struct recorded {
    int process;
    bool found;
};

static void look_at_record(void *arg, const char *token)
{
    struct recorded *recorded = arg;
    recorded->found = recorded->found || sim_watch_owner(token) == recorded->process;
}

bool sim_beside_is_recorded(const struct sim_process *process, int lock)
{
    char lease[128];
    struct recorded recorded = {.process = process->id};
    sim_beside_side(lease, sizeof lease, "lease", lock);
    sim_keyspace_members(&sim_server->keys, lease, look_at_record, &recorded);
    return recorded.found;
}

int sim_beside_marks(int lock)
{
    char key[64], member[16];
    const char *text = "0";
    (void)snprintf(member, sizeof member, "n%d", lock);
    sim_beside_key(key, sizeof key, lock);
    if (sim_beside.recipe == SIM_SET)
        return (int)sim_ask_server(NULL, "SISMEMBER", "locks", member, NULL);
    if (sim_beside.recipe == SIM_TOKENS)
        return (int)sim_ask_server(NULL, "LLEN", key, NULL);
    (void)sim_ask_server(&text, "GET", key, NULL);
    return atoi(text);
}

static bool is_marked(const char *record, int lock)
{
    char grabbed[64], number[16];
    if (sim_beside.recipe != SIM_TOKENS)
        return sim_beside_marks(lock) > 0;
    const char *item = strchr(record, ' '), *since = item != NULL ? strchr(item + 1, ' ') : NULL;
    if (since == NULL)
        return false;
    (void)snprintf(number, sizeof number, "%.*s", (int)(since - item - 1), item + 1);
    token_key(grabbed, sizeof grabbed, "GRABBED", lock);
    const char *there = sim_keyspace_field(&sim_server->keys, grabbed, number);
    return there != NULL && strcmp(there, since + 1) == 0;
}

bool sim_beside_has(const char *token, int lock)
{
    char key[64];
    sim_beside_key(key, sizeof key, lock);
    if (sim_beside.recipe == SIM_REDISSON)
        return sim_keyspace_field(&sim_server->keys, key, token) != NULL;
    if (sim_beside.recipe < SIM_SET) {
        const char *there = sim_keyspace_string(&sim_server->keys, key);
        return there != NULL && strcmp(there, token) == 0;
    }
    const char *record = record_of(token, lock);
    return record != NULL && strtoll(record, NULL, 10) >= sim_server_us() && is_marked(record, lock);
}

/* Of ours that are in the hash of leases, the first. */
static const char *first_record(int lock)
{
    static char token[160];
    char lease[128];
    const char *at = NULL;
    sim_beside_side(lease, sizeof lease, "lease", lock);
    if (sim_beside_records(lock) == 0)
        return NULL;
    at = sim_keyspace_first(&sim_server->keys, lease);
    (void)snprintf(token, sizeof token, "%s", at);
    return token;
}

const char *sim_beside_holder(int lock)
{
    static char word[160];
    char key[64], begun[64];
    const char *there = NULL;
    sim_server->keys.now_us = sim_server_us();
    sim_beside_key(key, sizeof key, lock);
    if (sim_beside.recipe == SIM_REDISSON) {
        if (sim_ask_server(NULL, "EXISTS", key, NULL) == 1)
            there = sim_keyspace_first(&sim_server->keys, key);
    } else if (sim_beside.recipe < SIM_SET) {
        there = sim_keyspace_string(&sim_server->keys, key);
    } else if (sim_beside.recipe == SIM_TOKENS) {
        token_key(begun, sizeof begun, "EXISTS", lock);
        if (sim_beside_marks(lock) > 0 || sim_ask_server(NULL, "EXISTS", begun, NULL) == 0)
            return NULL;
        there = sim_beside.room == 1 ? first_record(lock) : NULL;
        return there != NULL && sim_beside_has(there, lock) ? there : "tokens are out";
    } else if (sim_beside_marks(lock) > 0) {
        there = first_record(lock);
        return there == NULL ? "theirs" : sim_beside_has(there, lock) || sim_beside_marks(lock) == 1 ? there : "theirs";
    }
    if (there == NULL)
        return NULL;
    (void)snprintf(word, sizeof word, "%s", there);
    return word;
}

static int64_t told(const char *field, int lock)
{
    char wait[128];
    sim_beside_side(wait, sizeof wait, "wait", lock);
    const char *text = sim_keyspace_field(&sim_server->keys, wait, field);
    return text != NULL ? strtoll(text, NULL, 10) : 0;
}

bool sim_beside_is_left(int lock)
{
    return sim_server_us() < -told("turn", lock);
}

bool sim_beside_is_noisy(int lock)
{
    return sim_server->refuses_config && sim_beside_is_left(lock);
}

int sim_beside_misses(int lock)
{
    return (int)told("misses", lock);
}

bool sim_beside_has_end(int lock)
{
    char key[64];
    sim_beside_key(key, sizeof key, lock);
    return sim_ask_server(NULL, "PTTL", key, NULL) != -1;
}

const char *sim_beside_rest(int lock)
{
    static char text[200];
    char key[64], lease[128], grabbed[64];
    sim_beside_key(key, sizeof key, lock);
    sim_beside_side(lease, sizeof lease, "lease", lock);
    token_key(grabbed, sizeof grabbed, "GRABBED", lock);
    int most = sim_beside.recipe == SIM_TOKENS ? sim_beside.room : 0;
    if (sim_ask_server(NULL, "EXISTS", lease, NULL) != 0)
        (void)snprintf(text, sizeof text, "%s is there", lease);
    else if (sim_beside.recipe < SIM_SET && sim_ask_server(NULL, "EXISTS", key, NULL) != 0)
        (void)snprintf(text, sizeof text, "%s is there", key);
    else if (sim_beside.recipe >= SIM_SET && sim_beside_marks(lock) != most)
        (void)snprintf(text, sizeof text, "%s has %d, not %d", key, sim_beside_marks(lock), most);
    else if (sim_beside.recipe == SIM_TOKENS && sim_ask_server(NULL, "EXISTS", grabbed, NULL) != 0)
        (void)snprintf(text, sizeof text, "%s is there", grabbed);
    else
        return NULL;
    return text;
}

bool sim_beside_is_spoken(const struct hfi_command *command, enum hfi_dialect_script which)
{
    bool is_it = false;
    for (int mark = 0; mark < HFI_MARK_KINDS && sim_beside.on; mark++)
        for (int clock = 0; clock < 2; clock++)
            is_it = is_it || command->script == &hfi_dialect_scripts[mark][which][clock];
    return is_it;
}
