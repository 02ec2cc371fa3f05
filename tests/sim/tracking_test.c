/* SPDX-License-Identifier: MIT */
/*
 * tracking_test.c - connections to the virtual server and to a real one say the same, at random: CLIENT TRACKING, CACHING and
 * GETREDIR, reads, changes, ends of connections. Answers have to be the same, and what each tracker hears.
 */
#include "base/random.h"
#include "core/protocol/scripts.h"
#include "pool/owner.h"
#include "tests/sim/history.h"
#include "tests/support/script_source.h"
#include "tests/support/server.h"

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CALLS    6000
#define READERS  3 /* and the last runs scripts: with CACHING said, a real server tracks all keys of EVAL */
#define TRACKERS 2
#define ROOM     4000

struct side { /* the virtual server, or the real one */
    long long ids[TRACKERS];   /* of who listens */
    long long ended;           /* the id of one that listens no more */
    char heard[TRACKERS][ROOM]; /* since the last call: keys, each behind a blank */
};
static struct side virtual, real;
static struct hft_server *server;
static redisContext *readers[READERS], *trackers[TRACKERS];
static uint64_t rng = 11;
static int heard_in_all, nil_in_all;

static int64_t between(int64_t least, int64_t most)
{
    return least + (int64_t)(hfi_rng_next(&rng) % (uint64_t)(most - least + 1));
}

static void note(struct side *side, int tracker, const char *key)
{
    size_t used = strlen(side->heard[tracker]);
    (void)snprintf(side->heard[tracker] + used, ROOM - used, " %s", key);
}

/* ---- the virtual one ---- */

static struct client {
    struct sim_wire *wire;
    redisReader *parser; /* of a reader */
    redisReply *got;
    int tracker; /* its number; -1: it reads */
    bool answered;
} clients[READERS + TRACKERS];

static void received(void *self, struct sim_packet *packet)
{
    struct client *client = self;
    const char *message = packet->bytes + strlen(packet->bytes) + 1;
    client->answered = true;
    if (packet->kind == SIM_MESSAGE)
        note(&virtual, client->tracker, message);
    else if (packet->kind == SIM_NIL_MESSAGE)
        note(&virtual, client->tracker, "(nil)");
    else if (client->parser != NULL) {
        void *reply = NULL;
        assert_int_equal(redisReaderFeed(client->parser, packet->bytes, packet->size), REDIS_OK);
        while (redisReaderGetReply(client->parser, &reply) == REDIS_OK && reply != NULL) {
            if (client->got != NULL)
                freeReplyObject(client->got);
            client->got = reply;
        }
    }
}

static void broken(void *self)
{
    (void)self;
}

static void send_virtual(struct client *client, const char *bytes, size_t size)
{
    client->answered = false;
    sim_wire_up(client->wire, sim_packet_new(SIM_BYTES, bytes, size));
    for (int i = 0; i < 1000 && !client->answered; i++)
        sim_run(sim.now + HFI_MS / 10);
    assert_true(client->answered);
}

static void listen_virtual(int tracker)
{
    char bytes[100];
    struct client *client = &clients[READERS + tracker];
    *client = (struct client){.tracker = tracker};
    client->wire = sim_wire_new(&sim.processes[0], sim_servers, client, received, broken);
    virtual.ids[tracker] = client->wire->id;
    int size = snprintf(bytes, sizeof bytes, "*2\r\n$9\r\nSUBSCRIBE\r\n$%zu\r\n%s\r\n", strlen(HFI_INVALIDATIONS), HFI_INVALIDATIONS);
    send_virtual(client, bytes, (size_t)size);
}

static void begin_virtual(void)
{
    sim_begin(1, false);
    sim_network_begin();
    sim_server_begin();
    sim_tokens_begin();
    (void)sim_process_new();
    for (int i = 0; i < READERS; i++) {
        clients[i].parser = redisReaderCreate();
        clients[i].tracker = -1;
        clients[i].wire = sim_wire_new(&sim.processes[0], sim_servers, &clients[i], received, broken);
    }
    for (int i = 0; i < TRACKERS; i++)
        listen_virtual(i);
}

/* ---- the real one ---- */

static void listen_real(int tracker)
{
    trackers[tracker] = redisConnectUnix(hft_server_socket(server));
    redisReply *reply = redisCommand(trackers[tracker], "CLIENT ID");
    assert_true(reply != NULL && reply->type == REDIS_REPLY_INTEGER);
    real.ids[tracker] = reply->integer;
    freeReplyObject(reply);
    reply = redisCommand(trackers[tracker], "SUBSCRIBE %s", HFI_INVALIDATIONS);
    assert_non_null(reply);
    freeReplyObject(reply);
}

/* A PING's answer comes behind all that it was told. */
static void hear_real(int tracker)
{
    void *reply = NULL;
    assert_int_equal(redisAppendCommand(trackers[tracker], "PING"), REDIS_OK);
    for (bool over = false; !over;) {
        assert_int_equal(redisGetReply(trackers[tracker], &reply), REDIS_OK);
        const redisReply *said = reply;
        over = said->type != REDIS_REPLY_ARRAY || said->elements != 3;
        if (!over && said->element[2]->type == REDIS_REPLY_NIL)
            note(&real, tracker, "(nil)");
        for (size_t i = 0; !over && i < said->element[2]->elements; i++)
            note(&real, tracker, said->element[2]->element[i]->str);
        freeReplyObject(reply);
    }
}

/* ---- both ---- */

static bool is_same(const redisReply *a, const redisReply *b)
{
    bool same = a->type == b->type;
    if (same && a->type == REDIS_REPLY_ERROR)
        return strcspn(a->str, " ") == strcspn(b->str, " ") && strncmp(a->str, b->str, strcspn(a->str, " ")) == 0;
    if (same && a->type == REDIS_REPLY_INTEGER)
        return a->integer == b->integer || (a->integer > 100000 && llabs(a->integer - b->integer) < 50000); /* lifetimes */
    if (same && a->type == REDIS_REPLY_ARRAY) {
        same = a->elements == b->elements;
        for (size_t i = 0; same && i < a->elements; i++)
            same = is_same(a->element[i], b->element[i]);
        return same;
    }
    return same && (a->type == REDIS_REPLY_NIL || (a->len == b->len && memcmp(a->str, b->str, a->len) == 0));
}

/* GETREDIR has to name the same tracker, whose ids are others here and there. */
static long long name_of(const struct side *side, long long id)
{
    for (int i = 0; i < TRACKERS; i++)
        if (side->ids[i] == id)
            return i + 1;
    return id < 0 ? id : 0;
}

struct call {
    int count;
    const char *words[12];
    char ids[2][24], text[24]; /* %ID in the words becomes that of the side */
};

static const char *const id_word = "%ID";

static redisReply *say(bool is_real, int reader, const struct call *call)
{
    const char *words[12];
    for (int i = 0; i < call->count; i++)
        words[i] = call->words[i] == id_word ? call->ids[is_real] : call->words[i];
    if (is_real)
        return redisCommandArgv(readers[reader], call->count, words, NULL);
    char *bytes;
    long long size = redisFormatCommandArgv(&bytes, call->count, words, NULL);
    assert_true(size > 0);
    send_virtual(&clients[reader], bytes, (size_t)size);
    redisFreeCommand(bytes);
    redisReply *reply = clients[reader].got;
    clients[reader].got = NULL;
    assert_non_null(reply);
    return reply;
}

static void hear_and_compare(const struct call *call)
{
    sim_run(sim.now + 5 * HFI_MS);
    for (int i = 0; i < TRACKERS; i++) {
        hear_real(i);
        if (strcmp(virtual.heard[i], real.heard[i]) != 0)
            (void)printf("after %s %s tracker %d hears%s (virtual),%s (real)\n", call->words[0], call->count > 1 ? call->words[1] : "",
                         i, virtual.heard[i], real.heard[i]);
        assert_string_equal(virtual.heard[i], real.heard[i]);
        heard_in_all += real.heard[i][0] != 0;
        nil_in_all += strstr(real.heard[i], "(nil)") != NULL;
        virtual.heard[i][0] = real.heard[i][0] = 0;
    }
}

static void compare(int reader, const struct call *call)
{
    redisReply *one = say(false, reader, call), *other = say(true, reader, call);
    assert_non_null(other);
    bool asks_whom = call->count > 1 && strcmp(call->words[1], "GETREDIR") == 0 && one->type == REDIS_REPLY_INTEGER;
    bool same = asks_whom && other->type == REDIS_REPLY_INTEGER ? name_of(&virtual, one->integer) == name_of(&real, other->integer)
                                                                : strcmp(call->words[0], "EVAL") == 0 || is_same(one, other);
    if (!same)
        (void)printf("%s %s: %s %lld (virtual), %s %lld (real)\n", call->words[0], call->count > 1 ? call->words[1] : "",
                     one->str != NULL ? one->str : "", one->integer, other->str != NULL ? other->str : "", other->integer);
    assert_true(same);
    freeReplyObject(one);
    freeReplyObject(other);
    hear_and_compare(call);
}

static struct call track(void)
{
    int tracker = (int)between(0, TRACKERS); /* the last: one that is gone */
    struct call call = {6, {"CLIENT", "TRACKING", "ON", "REDIRECT", id_word, "OPTIN"}, {"", ""}, ""};
    long long there = tracker < TRACKERS ? virtual.ids[tracker] : virtual.ended, here = tracker < TRACKERS ? real.ids[tracker] : real.ended;
    (void)snprintf(call.ids[0], sizeof call.ids[0], "%lld", there);
    (void)snprintf(call.ids[1], sizeof call.ids[1], "%lld", here);
    return call;
}

static struct call change(const char *key)
{
    struct call call = {3, {"SET", key, "x"}, {"", ""}, ""};
    switch (between(0, 7)) {
    case 0:
        return (struct call){2, {"DEL", key}, {"", ""}, ""};
    case 1:
        return (struct call){3, {"PEXPIRE", key, "500000"}, {"", ""}, ""};
    case 2:
        return (struct call){3, {"PEXPIRE", key, "0"}, {"", ""}, ""};
    case 3:
        return (struct call){2, {"PERSIST", key}, {"", ""}, ""};
    case 4:
        return (struct call){5, {"SET", key, "y", "PX", "400000"}, {"", ""}, ""};
    case 5:
        return (struct call){9,
                             {"EVAL", hft_script_source(hfi_script_forget), "6", "hf:{p}", "hf:queue:{p}:hf:{p}", "hf:wait:{p}:hf:{p}",
                              "hf:fence", key, "absent"},
                             {"", ""},
                             ""};
    case 6:
        return between(0, 3) == 0 ? (struct call){1, {"FLUSHALL"}, {"", ""}, ""} : call;
    default:
        return call;
    }
}

static void read_near(int reader, const char *key)
{
    const struct call calls[] = {{1, {"MULTI"}, {"", ""}, ""},
                                 {3, {"CLIENT", "CACHING", "YES"}, {"", ""}, ""},
                                 {2, {"GET", key}, {"", ""}, ""},
                                 {2, {"PTTL", key}, {"", ""}, ""},
                                 {1, {"EXEC"}, {"", ""}, ""}};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        compare(reader, &calls[i]);
}

/* Both servers are told of the end before anything else happens. */
static void end_tracker(int tracker)
{
    virtual.ended = virtual.ids[tracker];
    real.ended = real.ids[tracker];
    sim_wire_close(clients[READERS + tracker].wire);
    sim_run(sim.now + 5 * HFI_MS);
    redisFree(trackers[tracker]);
    for (bool there = true; there;) {
        char needle[40];
        redisReply *list = redisCommand(readers[0], "CLIENT LIST ID %lld", real.ended);
        (void)snprintf(needle, sizeof needle, "id=%lld ", real.ended);
        there = list != NULL && list->str != NULL && strstr(list->str, needle) != NULL;
        freeReplyObject(list);
    }
    listen_virtual(tracker);
    listen_real(tracker);
}

static void trackers_hear_the_same(void **state)
{
    static const char *const keys[] = {"a", "b", "c"};
    (void)state;
    server = hft_server_start(NULL);
    begin_virtual();
    for (int i = 0; i < READERS; i++)
        readers[i] = redisConnectUnix(hft_server_socket(server));
    for (int i = 0; i < TRACKERS; i++)
        listen_real(i);
    virtual.ended = real.ended = 999999;
    for (int i = 0; i < CALLS; i++) {
        int reader = (int)between(0, READERS - 2), die = (int)between(0, 39);
        const char *key = keys[between(0, 2)];
        struct call call = {2, {"GET", key}, {"", ""}, ""};
        if (die == 0 && i > 100)
            end_tracker((int)between(0, TRACKERS - 1));
        else if (die < 14)
            read_near(reader, key);
        if (die < 14)
            continue;
        if (die < 17)
            call = track();
        else if (die == 17)
            call = (struct call){3, {"CLIENT", "TRACKING", "OFF"}, {"", ""}, ""};
        else if (die < 20)
            call = (struct call){3, {"CLIENT", "CACHING", "YES"}, {"", ""}, ""};
        else if (die < 23)
            call = (struct call){2, {"CLIENT", "GETREDIR"}, {"", ""}, ""};
        else if (die < 36)
            call = change(key);
        compare(strcmp(call.words[0], "EVAL") == 0 ? READERS - 1 : reader, &call);
    }
    assert_true(heard_in_all > CALLS / 40 && nil_in_all > 10);
    for (int i = 0; i < READERS; i++) {
        redisFree(readers[i]);
        redisReaderFree(clients[i].parser);
    }
    for (int i = 0; i < TRACKERS; i++)
        redisFree(trackers[i]);
    hft_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(trackers_hear_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
