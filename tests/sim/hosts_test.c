/* SPDX-License-Identifier: MIT */
/* hosts_test.c - a primary and two replicas, virtual ones and real ones, are told the same: WAIT and ROLE have to say the same. */
#include "tests/sim/history.h"
#include "tests/sim/hosts.h"
#include "tests/support/server.h"

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROOM 120

struct side { /* the one or the other */
    redisReply *(*ask)(const char *command);
    void (*stop)(bool on); /* the second replica stands still, or goes on */
    long long noted;       /* how far the primary had written */
};

/* ---- the virtual ones ---- */

static struct sim_wire *wire;
static redisReader *reader;
static redisReply *got;

static void received(void *client, struct sim_packet *packet)
{
    void *reply = NULL;
    (void)client;
    assert_int_equal(redisReaderFeed(reader, packet->bytes, packet->size), REDIS_OK);
    assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
    got = reply;
}

static void broken(void *client)
{
    (void)client;
}

static redisReply *ask_virtual(const char *command)
{
    char *bytes;
    int size = redisFormatCommand(&bytes, command);
    assert_true(size > 0);
    got = NULL;
    sim_wire_up(wire, sim_packet_new(SIM_BYTES, bytes, (size_t)size));
    redisFreeCommand(bytes);
    for (int i = 0; i < 100000 && got == NULL; i++)
        sim_run(sim.now + HFI_MS / 10);
    assert_non_null(got);
    return got;
}

static void stop_virtual(bool on)
{
    sim_hosts[2].still_until = on ? HFI_NEVER / 2 : 0;
    if (!on)
        sim_hosts_heal(); /* what waits there arrives */
}

static void begin_virtual(void)
{
    sim_begin(1, false);
    sim_network_begin();
    sim_server_begin();
    sim_tokens_begin();
    sim_hosts_begin(0);
    sim_hosts_heal();
    reader = redisReaderCreate();
    wire = sim_wire_new(NULL, &sim_servers[0], NULL, received, broken);
    sim_run(10 * HFI_MS);
}

/* ---- the real ones ---- */

static struct hft_server *servers[SIM_SERVERS]; /* the first one is the primary */
static redisContext *real;

static redisReply *ask_real(const char *command)
{
    redisReply *reply = redisCommand(real, command);
    assert_non_null(reply);
    return reply;
}

static void stop_real(bool on)
{
    if (on)
        hft_server_freeze(servers[2]);
    else
        hft_server_thaw(servers[2]);
}

/* ---- both ---- */

/* What of ROLE confirmations rest on: who is listed, and how many of them are as far as it was noted. */
static void write_role(const redisReply *role, const struct side *side, char *text)
{
    int as_far = 0;
    assert_int_equal(role->elements, 3);
    assert_string_equal(role->element[0]->str, "master");
    assert_int_equal(role->element[1]->type, REDIS_REPLY_INTEGER);
    for (size_t i = 0; i < role->element[2]->elements; i++) {
        const redisReply *line = role->element[2]->element[i];
        assert_int_equal(line->elements, 3);
        for (int word = 0; word < 3; word++)
            assert_int_equal(line->element[word]->type, REDIS_REPLY_STRING);
        as_far += strtoll(line->element[2]->str, NULL, 10) >= side->noted;
    }
    (void)snprintf(text, ROOM, "%d replicas, %d as far", (int)role->element[2]->elements, as_far);
}

static void say(struct side *side, const char *command, char *text)
{
    redisReply *reply;
    if (strncmp(command, "stop", 4) == 0) {
        side->stop(strcmp(command, "stops") == 0);
        (void)snprintf(text, ROOM, "done");
        return;
    }
    reply = side->ask(strcmp(command, "note") == 0 ? "ROLE" : command);
    if (strcmp(command, "note") == 0) {
        side->noted = reply->element[1]->integer;
        (void)snprintf(text, ROOM, "noted");
    } else if (strcmp(command, "ROLE") == 0) {
        write_role(reply, side, text);
    } else if (reply->type == REDIS_REPLY_INTEGER) {
        (void)snprintf(text, ROOM, "%lld", reply->integer);
    } else {
        (void)snprintf(text, ROOM, "%s", reply->str != NULL ? reply->str : "nil");
    }
    freeReplyObject(reply);
}

static void wait_and_role_say_what_real_ones_say(void **state)
{
    static const char *const commands[] = {
        "SET a 1", "note", "WAIT 2 5000", "ROLE",          /* all have it */
        "WAIT 3 60",                                       /* more than there are: it says how many, in the end */
        "stops", "SET a 2", "note", "WAIT 1 5000", "WAIT 2 300", "ROLE", /* one stands still, and stays listed */
        "stop no more", "WAIT 2 5000", "ROLE", "SET b 1 PX 60000", "INCRBY c 5", "WAIT 2 5000", "PTTL none"};
    struct side sides[] = {{ask_virtual, stop_virtual, 0}, {ask_real, stop_real, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        char texts[2][ROOM];
        for (int side = 0; side < 2; side++)
            say(&sides[side], commands[i], texts[side]);
        if (strcmp(texts[0], texts[1]) != 0)
            fail_msg("%s: the virtual one says %s, the real one %s", commands[i], texts[0], texts[1]);
    }
}

static int64_t ends[SIM_SERVERS];

static void note_end(void *arg, const char *name, int64_t expire_ms)
{
    if (strcmp(name, "b") == 0)
        *(int64_t *)arg = expire_ms;
}

/* A replica gets the date at which a key expires, whatever its own clock says. */
static void an_expiry_is_a_date(void **state)
{
    (void)state;
    for (int i = 0; i < SIM_SERVERS; i++) {
        sim_keyspace_each(&sim_servers[i].keys, note_end, &ends[i]);
        assert_true(ends[i] != 0 && ends[i] == ends[0]);
    }
    redisReply *of_primary = hft_server_ask(servers[0], "PEXPIRETIME b");
    redisReply *of_replica = hft_server_ask(servers[1], "PEXPIRETIME b");
    if (of_primary->type == REDIS_REPLY_INTEGER) /* from Redis 7.0 on */
        assert_int_equal(of_primary->integer, of_replica->integer);
    freeReplyObject(of_primary);
    freeReplyObject(of_replica);
}

/* What it has written by itself is thrown away when it begins to follow. */
static void who_follows_has_what_its_primary_has(void **state)
{
    (void)state;
    sim_host_promote(&sim_hosts[1]);
    sim_server_set("late", "x", 1000);
    sim_server = sim_server_that_counts = &sim_servers[0];
    sim_server_set("lost", "x", 1000);
    sim_host_follow(&sim_hosts[0], &sim_hosts[1]);
    sim_run(sim.now + 1000 * HFI_MS);
    assert_true(sim_hosts[0].is_linked && !wire->server_open);
    assert_null(sim_keyspace_string(&sim_servers[0].keys, "lost"));
    assert_non_null(sim_keyspace_string(&sim_servers[0].keys, "late"));
    struct hfi_buffer role = {0};
    static const char is_slave[] = "*5\r\n$5\r\nslave\r\n";
    sim_host_role(&sim_hosts[0], &role);
    assert_memory_equal(hfi_buffer_data(&role), is_slave, sizeof is_slave - 1);
    hfi_buffer_done(&role);
}

static int start(void **state)
{
    (void)state;
    begin_virtual();
    for (int i = 0; i < SIM_SERVERS; i++) {
        servers[i] = hft_server_start_tcp(NULL);
        if (i > 0)
            freeReplyObject(hft_server_ask(servers[i], "REPLICAOF 127.0.0.1 %d", hft_server_port(servers[0])));
    }
    while (hft_server_ask_integer(servers[0], "WAIT 2 100") < 2)
        continue; /* until both have all of it */
    real = redisConnectUnix(hft_server_socket(servers[0]));
    assert_true(real != NULL && real->err == 0);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    redisFree(real);
    redisReaderFree(reader);
    for (int i = 0; i < SIM_SERVERS; i++)
        hft_server_stop(servers[i]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wait_and_role_say_what_real_ones_say),
        cmocka_unit_test(an_expiry_is_a_date),
        cmocka_unit_test(who_follows_has_what_its_primary_has),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
