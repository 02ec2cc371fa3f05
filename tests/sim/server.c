/* SPDX-License-Identifier: MIT */
/* server.c - see server.h. */
#include "tests/sim/server_inside.h"
#include "core/protocol/scripts.h"
#include "tests/sim/hosts.h"
#include "tests/sim/lua.h"
#include "tests/sim/near.h"
#include "tests/sim/neighbours.h"
#include "tests/support/script_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim_server sim_servers[SIM_SERVERS], *sim_server = sim_servers, *sim_server_that_counts = sim_servers;
static struct sim_keyspace before; /* what a failover goes back to */
static bool has_before;
static struct sim_wire *serving; /* whose command runs; NULL: another program's */

static const struct hfi_script *const scripts[] = {
    hfi_script_acquire,     hfi_script_recheck, hfi_script_release, hfi_script_renew,  hfi_script_more,
    hfi_script_downgrade, hfi_script_acquire_shared,
    hfi_script_fence_floor, hfi_script_fill,    hfi_script_forget, hfi_script_break,
    hfi_script_take_many,   hfi_script_acquire_permits, hfi_script_release_permits, hfi_script_renew_permits,
    hfi_script_break_permits, hfi_script_quarantine, hfi_script_forget_tag};
#define TOUCHED_MOST 64
#define SCRIPTS (sizeof scripts / sizeof scripts[0])
#define SPOKEN  ((size_t)HFI_MARK_KINDS * HFI_DIALECT_SCRIPTS)
#define ALL     (2 * (SCRIPTS + SPOKEN))
_Static_assert(ALL <= SIM_SCRIPTS_MOST, "each is known or not");

/* ---- messages ---- */

void sim_server_send_message(struct sim_wire *wire, const char *channel, size_t channel_size, const char *message,
                         size_t size)
{
    char both[1024];
    size_t total = channel_size + 1 + size;
    if (total > sizeof both)
        abort();
    memcpy(both, channel, channel_size);
    both[channel_size] = 0;
    if (message != NULL)
        memcpy(both + channel_size + 1, message, size);
    int copies = sim_chance(sim_server->twice_percent) ? 2 : 1;
    for (int i = 0; i < copies; i++) {
        struct sim_packet *packet = sim_packet_new(message != NULL ? SIM_MESSAGE : SIM_NIL_MESSAGE, both, total);
        if (sim.now >= wire->spared_until && sim_chance(sim_server->lost_percent)) {
            wire->spared_until = sim.now + sim_server->spared_ns;
            sim_say("   lost: %.*s", (int)size, message);
            free(packet);
        } else {
            sim_wire_down(wire, packet);
            if (sim_chance(sim_server->late_percent)) {
                int64_t until = sim.now + sim_between(0, sim_server->late_most);
                if (until > wire->down_stalled_until)
                    wire->down_stalled_until = until;
            }
        }
    }
}

bool sim_server_listens_to(const struct sim_wire *wire, const char *channel, size_t size)
{
    for (const struct sim_wire_channel *one = wire->channels; one != NULL; one = one->next)
        if (wire->server_open && strlen(one->name) == size && memcmp(one->name, channel, size) == 0)
            return true;
    return false;
}

static int64_t subscribers(void *self, const char *channel, size_t size)
{
    int64_t count = 0;
    (void)self;
    for (struct hfi_list *at = sim_network.wires.next; at != &sim_network.wires; at = at->next) {
        const struct sim_wire *wire = hfi_container_of(at, struct sim_wire, link);
        count += wire->server == sim_server && !wire->demoted && sim_server_listens_to(wire, channel, size);
    }
    return count;
}

bool sim_server_is_heard(const char *channel)
{
    return subscribers(NULL, channel, strlen(channel)) > 0;
}

static int64_t publish(void *self, const char *channel, size_t channel_size, const char *message, size_t size)
{
    int64_t heard = 0;
    (void)self;
    for (struct hfi_list *at = sim_network.wires.next; at != &sim_network.wires; at = at->next) {
        struct sim_wire *wire = hfi_container_of(at, struct sim_wire, link);
        if (wire->server != sim_server || !sim_server_listens_to(wire, channel, channel_size))
            continue;
        heard += !wire->demoted;
        sim_server->messages++;
        sim_server_send_message(wire, channel, channel_size, message, size);
    }
    sim_neighbours_hear(channel, channel_size);
    sim_say("   PUBLISH %.*s (%lld hear it)", (int)size, message, (long long)heard);
    return heard;
}

void sim_name_add(struct sim_wire_channel **list, const char *name)
{
    struct sim_wire_channel *one = malloc(sizeof *one + strlen(name) + 1);
    if (one == NULL)
        abort();
    one->next = *list;
    memcpy(one->name, name, strlen(name) + 1);
    *list = one;
}

struct sim_wire_channel **sim_name_find(struct sim_wire_channel **list, const char *name)
{
    while (*list != NULL && strcmp((*list)->name, name) != 0)
        list = &(*list)->next;
    return list;
}

void sim_name_drop(struct sim_wire_channel **at)
{
    struct sim_wire_channel *one = *at;
    *at = one->next;
    free(one);
}

/* ---- key events ---- */

/* Its letter in notify-keyspace-events. */
static char class_of(const char *event)
{
    static const struct {
        const char *event;
        char class;
    } classes[] = {{"expired", 'x'}, {"evicted", 'e'}, {"set", '$'},  {"incrby", '$'}, {"sadd", 's'}, {"srem", 's'},  {"lpush", 'l'},
                   {"rpush", 'l'},   {"lpop", 'l'},    {"hset", 'h'}, {"hdel", 'h'},   {"zadd", 'z'}, {"zrem", 'z'}};
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (strcmp(classes[i].event, event) == 0)
            return classes[i].class;
    return 'g';
}

/* Without a key event that anybody here listens to. */
static void moved(void *self, const char *key)
{
    (void)self;
    sim_near_look();
    sim_track_changed(key);
}

static void changed(void *self, const char *event, const char *key, const char *value)
{
    char channel[600];
    (void)self;
    sim_key_changed(event, key, value);
    sim_near_look();
    sim_track_changed(key);
    if (strchr(sim_server->notify, 'K') == NULL || strchr(sim_server->notify, class_of(event)) == NULL)
        return;
    int size = snprintf(channel, sizeof channel, "__keyspace@0__:%s", key);
    (void)publish(NULL, channel, (size_t)size, event, strlen(event));
}

/* ---- what replicas are to get ---- */

static char *touched_keys[TOUCHED_MOST]; /* by what runs */
static int touched_count;

static void touched(void *self, const char *key)
{
    (void)self;
    if (sim_server->host == NULL || serving == NULL) /* a look from outside is no command */
        return;
    for (int i = 0; i < touched_count; i++)
        if (strcmp(touched_keys[i], key) == 0)
            return;
    if (touched_count == TOUCHED_MOST)
        abort();
    touched_keys[touched_count++] = strdup(key);
}

static void pass_on(struct sim_wire *wire)
{
    if (touched_count == 0)
        return;
    sim_host_wrote(sim_server->host, touched_count, touched_keys);
    wire->written = sim_server->host->offset;
    while (touched_count > 0)
        free(touched_keys[--touched_count]);
}

/* ---- what happens to it ---- */

void sim_server_listens(struct sim_keyspace *keys)
{
    keys->publish = publish;
    keys->subscribers = subscribers;
    keys->changed = changed;
    keys->moved = moved;
    keys->touched = touched;
}

void sim_server_begin(void)
{
    sim_keyspace_clear(&sim_servers[0].keys);
    sim_server = sim_server_that_counts = sim_servers;
    *sim_server =
        (struct sim_server){.up = true, .epoch = 1, .takes_subscribers = true, .refuses_config = sim.seed % 8 == 0};
    sim_server_listens(&sim_server->keys);
    sim_server->clock_us = INT64_C(1790000000000000) + sim_between(0, INT64_C(1000000000000));
    sim_server->clock_ppm = sim_between(-9990, 9990);
    has_before = false;
}

int64_t sim_server_us(void)
{
    int64_t us = sim.now / 1000;
    return sim_server->clock_us + us + us / 1000 * sim_server->clock_ppm / 1000;
}

void sim_server_step(int64_t us)
{
    sim_say("the server's clock is stepped by %lld ms", (long long)(us / 1000));
    sim_server->clock_us += us;
}

void sim_server_freeze(int64_t until)
{
    sim_say("the server is frozen for %.0f ms", (double)(until - sim.now) / 1e6);
    sim_server->frozen_until = until;
}

void sim_server_refuse(enum sim_refusal refuses)
{
    static const char *const words[] = {"takes all commands", "is out of memory", "cannot save to disk"};
    sim_say("the server %s", words[refuses]);
    sim_server->keys.refuses = refuses;
}

static void forget_all_scripts(void)
{
    memset(sim_server->scripts_known, 0, sizeof sim_server->scripts_known);
}

/* Of both sets: behind the scripts that ask for TIME those with the other clock; then those of dialects, likewise. */
static const struct hfi_script *script_at(size_t at)
{
    if (at < 2 * SCRIPTS)
        return at < SCRIPTS ? scripts[at] : hfi_script_other(scripts[at - SCRIPTS]);
    at -= 2 * SCRIPTS;
    size_t which = at % SPOKEN;
    const struct hfi_script *script = hfi_dialect_scripts[which / HFI_DIALECT_SCRIPTS][which % HFI_DIALECT_SCRIPTS];
    return at < SPOKEN ? script : hfi_script_other(script);
}

void sim_server_forget_scripts(bool all)
{
    size_t least = sim_server->speaks ? SCRIPTS + SPOKEN : SCRIPTS, one = (size_t)sim_between(0, (int64_t)least - 1);
    one += one >= SCRIPTS ? SCRIPTS : 0;
    sim_say("the server forgets %s", all ? "all scripts" : hfi_script_name(script_at(one)));
    if (all)
        forget_all_scripts();
    else
        sim_server->scripts_known[one] = sim_server->scripts_known[one + (one < SCRIPTS ? SCRIPTS : SPOKEN)] = false;
}

int64_t sim_server_new_id(struct sim_server *server)
{
    return ++server->ids;
}

int sim_server_epoch(const struct sim_server *server)
{
    return server->epoch;
}

int64_t sim_server_frozen_until(const struct sim_server *server)
{
    return server->frozen_until;
}

static void start(void *what, int64_t number)
{
    (void)what;
    (void)number;
    sim_say("the server is up again");
    sim_server->up = true;
    sim_server->started = sim.now;
}

void sim_server_crash(int64_t until, bool keeps_data, int64_t step_us, enum sim_old_end old_end)
{
    static const char *const ends[] = {"closed", "silent", "to a replica"};
    sim_say("the server crashes for %.0f ms, %s its data, clock %+lld ms, connections %s",
            (double)(until - sim.now) / 1e6, keeps_data ? "keeps" : "loses", (long long)step_us / 1000,
            ends[old_end]);
    for (struct hfi_list *at = sim_network.wires.next; at != &sim_network.wires; at = at->next) {
        struct sim_wire *wire = hfi_container_of(at, struct sim_wire, link);
        if (wire->server_open && old_end != SIM_DEMOTED)
            sim_wire_drop(wire, old_end == SIM_CLOSED);
        wire->demoted = old_end == SIM_DEMOTED;
    }
    sim_server->epoch++;
    sim_server->ids = 0;
    sim_server->up = false;
    forget_all_scripts();
    sim_server->frozen_until = 0;
    sim_server->keys.refuses = SIM_TAKES_ALL;
    sim_server->notify[0] = 0;
    sim_near_look();
    sim_server->clock_us += step_us;
    if (!keeps_data)
        sim_keyspace_clear(&sim_server->keys);
    sim_near_look();
    sim_at(until, NULL, start, NULL, 0);
}

void sim_server_remember(void)
{
    sim_keyspace_copy(&before, &sim_server->keys);
    has_before = true;
}

bool sim_server_forget_since(void)
{
    if (has_before)
        sim_keyspace_copy(&sim_server->keys, &before);
    sim_near_look();
    return has_before;
}

void sim_server_set(const char *key, const char *value, int64_t ttl_ms)
{
    char ttl[24];
    struct sim_words words = {5, {"SET", key, value, "PX", ttl}, {3, strlen(key), strlen(value), 2, 0}};
    struct hfi_buffer reply = {0};
    words.size[4] = (size_t)snprintf(ttl, sizeof ttl, "%lld", (long long)ttl_ms);
    sim_server->keys.now_us = sim_server_us();
    (void)sim_keyspace_run(&sim_server->keys, &words, &reply);
    hfi_buffer_done(&reply);
}

void sim_server_del(const char *key)
{
    struct sim_words words = {2, {"DEL", key}, {3, strlen(key)}};
    struct hfi_buffer reply = {0};
    sim_server->keys.now_us = sim_server_us();
    (void)sim_keyspace_run(&sim_server->keys, &words, &reply);
    hfi_buffer_done(&reply);
}

void sim_server_flush(void)
{
    sim_keyspace_clear(&sim_server->keys);
    sim_near_look();
    sim_track_flushed();
}

void sim_server_hung_up(struct sim_wire *wire)
{
    while (wire->channels != NULL)
        sim_name_drop(&wire->channels);
    while (wire->tracked != NULL)
        sim_name_drop(&wire->tracked);
}

/* ---- commands ---- */

static void ok(struct hfi_buffer *reply)
{
    sim_reply_line(reply, '+', "OK");
}

static void show(const struct sim_words *words, const char *name)
{
    if (!sim.verbose)
        return;
    (void)printf("%11.3f ms      %s", (double)sim.now / 1e6, name);
    for (int i = 1; i < words->count; i++)
        if (words->size[i] < 100)
            (void)printf(" %s", words->text[i]);
    (void)putchar('\n');
}

static void show_reply(const struct hfi_buffer *reply, size_t from)
{
    if (!sim.verbose)
        return;
    const char *at = hfi_buffer_data(reply) + from, *end = hfi_buffer_data(reply) + hfi_buffer_size(reply);
    (void)printf("                        ->");
    for (char before_it = ' '; at < end; before_it = *at, at++)
        if (*at != '\r')
            (void)putchar(*at == '\n' ? ' ' : *at);
        else if (before_it == '\n')
            break;
    (void)putchar('\n');
}

static bool run_script(const struct sim_words *words, struct hfi_buffer *reply)
{
    bool spelt_out = sim_is(words, "EVAL");
    if (!spelt_out && !sim_is(words, "EVALSHA"))
        return false;
    for (size_t i = 0; i < (sim_server->speaks ? ALL : 2 * SCRIPTS); i++) {
        const struct hfi_script *script = script_at(i);
        bool same = spelt_out ? strcmp(words->text[1], hft_script_source(script)) == 0
                              : strcmp(words->text[1], script->sha1) == 0;
        if (!same)
            continue;
        if (!spelt_out && !sim_server->scripts_known[i])
            break;
        sim_server->scripts_known[i] = true;
        show(words, hfi_script_name(script));
        sim_server->scripts++;
        size_t from = hfi_buffer_size(reply);
        sim_server->in_script = true;
        sim_lua_run(&sim_server->keys, hft_script_source(script), words, 2, reply);
        sim_server->in_script = false;
        sim_script_over();
        if (hfi_buffer_data(reply)[from] != '-')
            sim_script_ran(hfi_script_name(script), words, serving->process);
        return true;
    }
    sim_server->scripts_refused++;
    sim_reply_error(reply, "NOSCRIPT No matching script. Please use EVAL.");
    return true;
}

static void subscribe(struct sim_wire *wire, const char *name, bool on)
{
    struct sim_wire_channel **at = sim_name_find(&wire->channels, name);
    if (on && *at == NULL)
        sim_name_add(&wire->channels, name);
    else if (!on && *at != NULL)
        sim_name_drop(at);
}

static void config(const struct sim_words *words, struct hfi_buffer *reply)
{
    if (sim_server->refuses_config) {
        sim_reply_error(reply, "NOPERM this user has no permissions to run the 'config' command");
        return;
    }
    if (words->count == 4 && strcmp(words->text[1], "SET") == 0) {
        (void)snprintf(sim_server->notify, sizeof sim_server->notify, "%s", words->text[3]);
        ok(reply);
        return;
    }
    sim_reply_number(reply, '*', 2);
    sim_reply_bulk(reply, words->text[2], words->size[2]);
    sim_reply_bulk(reply, sim_server->notify, strlen(sim_server->notify));
}

static void tell_role(struct hfi_buffer *reply)
{
    const char *role = serving->demoted ? "slave" : "master";
    sim_reply_number(reply, '*', 3);
    sim_reply_bulk(reply, role, strlen(role));
    sim_reply_number(reply, ':', 0);
    sim_reply_number(reply, '*', 0);
}

static void run(const struct sim_words *words, struct hfi_buffer *reply)
{
    sim_server->commands++;
    sim_track_read(serving, words);
    if (sim_is(words, "ROLE") && sim_server->host != NULL) {
        show(words, words->text[0]);
        sim_host_role(sim_server->host, reply);
    } else if (sim_is(words, "ROLE")) {
        tell_role(reply);
    } else if (sim_is(words, "SCRIPT")) {
        memset(sim_server->scripts_known, strcmp(words->text[1], "LOAD") == 0, sizeof sim_server->scripts_known); /* one stands for all */
        ok(reply);
    } else if (sim_is(words, "CONFIG")) {
        config(words, reply);
    } else if (sim_is(words, "CLIENT")) {
        show(words, words->text[1]);
        sim_track_client(serving, words, reply);
    } else if (sim_is(words, "FLUSHALL")) {
        sim_server_flush();
        ok(reply);
    } else if (!run_script(words, reply)) {
        show(words, words->text[0]);
        sim_server->keys.wrote = false;
        (void)sim_keyspace_run(&sim_server->keys, words, reply);
    }
}

/* MULTI's commands are kept as they came. */
static void execute_transaction(struct sim_wire *wire, struct hfi_buffer *reply)
{
    int count = 0;
    if (wire->aborted) {
        sim_reply_error(reply, "EXECABORT Transaction discarded because of previous errors.");
        while (wire->transaction != NULL) {
            struct sim_packet *one = wire->transaction;
            wire->transaction = one->next;
            free(one);
        }
        wire->in_multi = wire->aborted = false;
        return;
    }
    for (const struct sim_packet *one = wire->transaction; one != NULL; one = one->next)
        count++;
    sim_reply_number(reply, '*', count);
    while (wire->transaction != NULL) {
        struct sim_packet *one = wire->transaction;
        struct sim_words words;
        wire->transaction = one->next;
        (void)sim_words_parse(&words, one->bytes, one->size);
        run(&words, reply);
        free(one);
    }
    wire->in_multi = wire->caching = false;
}

/* Its data are not, as they may be old. */
static bool is_for_replicas(const struct sim_words *words)
{
    static const char *const words_of_all[] = {"SUBSCRIBE", "UNSUBSCRIBE", "PING", "MULTI", "EXEC", "CLIENT", "ROLE"};
    bool is = false;
    for (size_t i = 0; i < sizeof words_of_all / sizeof words_of_all[0]; i++)
        is = is || sim_is(words, words_of_all[i]);
    return is;
}

static void take(struct sim_wire *wire, const struct sim_words *words, const struct sim_packet *raw,
                 struct hfi_buffer *reply)
{
    sim_server->keys.wrote = false;
    if (wire->demoted && !is_for_replicas(words)) {
        sim_reply_error(reply, "READONLY You can't write against a read only replica.");
        wire->aborted = wire->aborted || wire->in_multi;
    } else if (sim_is(words, "PING") && words->count == 1) {
        sim_reply_line(reply, '+', "PONG");
    } else if (sim_is(words, "PING")) { /* with a word to know it by, which a real one tells by its order */
        show(words, words->text[0]);
        if (!hfi_buffer_print(reply, "PONG %s", words->text[1]))
            abort();
    } else if (sim_is(words, "MULTI")) {
        wire->in_multi = true;
        wire->transaction_end = &wire->transaction;
        ok(reply);
    } else if (sim_is(words, "EXEC")) {
        execute_transaction(wire, reply);
    } else if (wire->in_multi && sim_keyspace_refusal(&sim_server->keys, words) != NULL) {
        sim_reply_error(reply, sim_keyspace_refusal(&sim_server->keys, words));
        wire->aborted = true;
    } else if (wire->in_multi) {
        *wire->transaction_end = sim_packet_new(SIM_BYTES, raw->bytes, raw->size);
        wire->transaction_end = &(*wire->transaction_end)->next;
        sim_reply_line(reply, '+', "QUEUED");
    } else if (sim_is(words, "SUBSCRIBE") || sim_is(words, "UNSUBSCRIBE")) {
        subscribe(wire, words->text[1], words->text[0][0] == 'S');
        if (!hfi_buffer_append(reply, words->text[1], words->size[1]))
            abort();
    } else if (sim_is(words, "WAIT") && sim_server->host != NULL) {
        int count;
        show(words, words->text[0]);
        if (sim_host_waits(sim_server->host, wire, atoi(words->text[1]), atoll(words->text[2]), &count))
            sim_reply_number(reply, ':', count);
    } else {
        run(words, reply);
    }
    while (!wire->in_multi && sim_neighbours_serve())
        continue;
    if (!wire->in_multi && sim_server->host != NULL) {
        sim_command_over();
        pass_on(wire);
    }
}

/* How many bytes it has taken: less than all where it waits for replicas now. */
static size_t serve(struct sim_wire *wire, char *bytes, size_t all, struct hfi_buffer *reply)
{
    size_t at = 0, size, from = hfi_buffer_size(reply);
    struct sim_words words;
    while (at < all && !wire->waits) {
        /* The parser cuts the words in place, so a transaction keeps a copy made before. */
        struct sim_packet *raw = wire->in_multi ? sim_packet_new(SIM_BYTES, bytes + at, all - at) : NULL;
        size = sim_words_parse(&words, bytes + at, all - at);
        if (size == 0) {
            sim_violation("the client sends what is no command");
            return all;
        }
        if (raw != NULL)
            raw->size = size;
        take(wire, &words, raw, reply);
        free(raw);
        show_reply(reply, from);
        from = hfi_buffer_size(reply);
        at += size;
    }
    return at;
}

static void begin_to_serve(struct sim_wire *wire)
{
    sim_server = wire->server;
    sim_server->keys.now_us = sim_server_us();
    serving = wire;
}

static void send_replies(struct sim_wire *wire, struct hfi_buffer *reply)
{
    serving = NULL;
    sim_server = sim_server_that_counts;
    if (wire->waits && hfi_buffer_size(reply) == 0)
        return;
    sim_note_bytes(hfi_buffer_data(reply), hfi_buffer_size(reply));
    sim_wire_down(wire, sim_packet_new(SIM_BYTES, hfi_buffer_data(reply), hfi_buffer_size(reply)));
    hfi_buffer_eat(reply, hfi_buffer_size(reply));
}

static struct hfi_buffer replies;

void sim_server_receive(struct sim_wire *wire, struct sim_packet *packet)
{
    begin_to_serve(wire);
    size_t used = serve(wire, packet->bytes, packet->size, &replies);
    if (used < packet->size) {
        *wire->kept_end = sim_packet_new(SIM_BYTES, packet->bytes + used, packet->size - used);
        wire->kept_end = &(*wire->kept_end)->next;
    }
    send_replies(wire, &replies);
}

void sim_server_answers_wait(struct sim_wire *wire, int count)
{
    begin_to_serve(wire);
    wire->waits = false;
    sim_reply_number(&replies, ':', count);
    show_reply(&replies, 0);
    while (wire->kept != NULL && !wire->waits) {
        struct sim_packet *first = wire->kept;
        size_t used = serve(wire, first->bytes, first->size, &replies);
        memmove(first->bytes, first->bytes + used, first->size - used);
        first->size -= used;
        if (first->size > 0)
            continue;
        wire->kept = first->next;
        wire->kept_end = wire->kept == NULL ? &wire->kept : wire->kept_end;
        free(first);
    }
    send_replies(wire, &replies);
}
