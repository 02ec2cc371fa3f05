/* SPDX-License-Identifier: MIT */
/* hosts.c - see hosts.h. What a primary has written goes to each replica as the keys that it has changed, whole, expiries as
 * dates: that is what the replica makes of the commands that a real one gets. */
#include "tests/sim/hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT      "6379"
#define ASK_BYTES 37 /* REPLCONF GETACK, which is part of the stream */
#define ACK_NS    (1000 * HFI_MS) /* a replica says how far it is that often, whatever it is asked */

struct sim_cargo {
    struct sim_cargo *next;
    int64_t due, offset;
    bool asks;                  /* how far it has come */
    bool is_whole;              /* all keys, for one that begins to follow */
    struct sim_keyspace keys;   /* what they are now; those that are not in it are gone */
    int count;
    char **names;
};

struct sim_host sim_hosts[SIM_SERVERS];
static int runs; /* of servers, so far */
static int reigns;
static bool waits_for_all; /* WAIT: for what anybody has written, as before 7.2, or what the connection has */

bool sim_host_runs(const struct sim_host *host)
{
    return host->server->up && host->server->frozen_until <= sim.now;
}

/* ---- to a replica ---- */

static void free_cargo(struct sim_cargo *cargo)
{
    sim_keyspace_clear(&cargo->keys);
    for (int i = 0; i < cargo->count; i++)
        free(cargo->names[i]);
    free(cargo->names);
    free(cargo);
}

struct ack {
    struct sim_host *host;
    int64_t link, offset;
};

static void look_who_waits(struct sim_host *master)
{
    for (struct hfi_list *at = sim_network.wires.next, *next; at != &sim_network.wires; at = next) {
        struct sim_wire *wire = hfi_container_of(at, struct sim_wire, link);
        next = at->next;
        if (wire->server == master->server && wire->waits && wire->server_open) {
            int count = sim_host_acks(master, wire->wait_offset);
            if (count >= wire->wait_for)
                sim_server_answers_wait(wire, count);
        }
    }
}

static void acked(void *what, int64_t number)
{
    struct ack *ack = what;
    struct sim_host *host = ack->host, *master = host->master;
    (void)number;
    if (ack->link == host->link && master != NULL && master->server->up) {
        if (master->server->frozen_until > sim.now) {
            sim_at(master->server->frozen_until + 1, NULL, acked, ack, 0);
            return;
        }
        host->acked = ack->offset > host->acked ? ack->offset : host->acked;
        look_who_waits(master);
    }
    free(ack);
}

static void acknowledge(struct sim_host *host)
{
    struct ack *ack = malloc(sizeof *ack);
    if (ack == NULL)
        abort();
    *ack = (struct ack){host, host->link, host->offset};
    sim_at(sim.now + sim_delay(), NULL, acked, ack, 0);
}

static void take_over(struct sim_host *host, struct sim_cargo *cargo)
{
    if (cargo->is_whole) {
        sim_keyspace_copy(&host->server->keys, &cargo->keys);
        host->is_linked = true;
        host->acked = 0;
        sim_say("server %d has the data of server %d", host->number, host->master->number);
    }
    for (int i = 0; i < cargo->count; i++)
        sim_keyspace_copy_key(&host->server->keys, &cargo->keys, cargo->names[i]);
    host->offset = cargo->offset;
    if (cargo->asks || cargo->is_whole)
        acknowledge(host);
}

static void deliver(void *what, int64_t link)
{
    struct sim_host *host = what;
    struct sim_cargo *cargo = host->cargo;
    int64_t thawed = host->server->frozen_until, not_before = host->still_until > thawed ? host->still_until : thawed;
    if (link != host->link || cargo == NULL || cargo->due > sim.now)
        return;
    if (not_before > sim.now) {
        sim_at(not_before, NULL, deliver, host, link);
        return;
    }
    host->cargo = cargo->next;
    if (host->cargo == NULL)
        host->cargo_end = &host->cargo;
    take_over(host, cargo);
    free_cargo(cargo);
}

static struct sim_cargo *send(struct sim_host *host, int64_t offset, int64_t due)
{
    struct sim_cargo *cargo = calloc(1, sizeof *cargo);
    if (cargo == NULL)
        abort();
    cargo->offset = offset;
    cargo->due = host->last_due = due > host->last_due ? due : host->last_due + 1;
    *host->cargo_end = cargo;
    host->cargo_end = &cargo->next;
    sim_at(cargo->due, NULL, deliver, host, host->link);
    return cargo;
}

static void cut_link(struct sim_host *host)
{
    host->link++;
    host->is_fed = host->is_linked = false;
    host->last_due = 0;
    while (host->cargo != NULL) {
        struct sim_cargo *cargo = host->cargo;
        host->cargo = cargo->next;
        free_cargo(cargo);
    }
    host->cargo_end = &host->cargo;
}

/* Whoever begins to follow takes over all that its master has, and loses what it had. */
static void begin_to_follow(void *what, int64_t link)
{
    struct sim_host *host = what, *master = host->master;
    if (link != host->link || !host->is_replica || host->is_fed || !host->server->up)
        return;
    if (!sim_host_runs(host) || !sim_host_runs(master) || master->is_replica) {
        sim_at(sim.now + sim_between(10, 60) * HFI_MS, NULL, begin_to_follow, host, link);
        return;
    }
    struct sim_cargo *cargo = send(host, master->offset, sim.now + sim_between(1, 200) * HFI_MS);
    cargo->is_whole = host->is_fed = true;
    sim_keyspace_copy(&cargo->keys, &master->server->keys);
}

/* ---- what a primary is asked ---- */

void sim_host_wrote(struct sim_host *host, int count, char *const *keys)
{
    host->offset += 100 * count;
    for (int i = 0; i < SIM_SERVERS; i++) {
        struct sim_host *replica = &sim_hosts[i];
        if (replica->master != host || !replica->is_fed)
            continue;
        struct sim_cargo *cargo = send(replica, host->offset, sim.now + sim_between(HFI_MS / 20, replica->lag_most));
        cargo->names = calloc((size_t)count, sizeof *cargo->names);
        if (cargo->names == NULL)
            abort();
        for (int key = 0; key < count; key++) {
            cargo->names[cargo->count++] = strdup(keys[key]);
            sim_keyspace_copy_key(&cargo->keys, &host->server->keys, keys[key]);
        }
    }
}

int sim_host_acks(const struct sim_host *host, int64_t offset)
{
    int count = 0;
    for (int i = 0; i < SIM_SERVERS; i++) {
        const struct sim_host *replica = &sim_hosts[i];
        count += replica->master == host && replica->is_linked && replica->acked >= offset;
    }
    return count;
}

static void wait_ends(void *what, int64_t number)
{
    struct sim_wire *wire = what;
    if (!wire->waits || wire->wait_number != number)
        return;
    if (wire->server->frozen_until > sim.now)
        sim_at(wire->server->frozen_until + 1, NULL, wait_ends, wire, number);
    else
        sim_server_answers_wait(wire, sim_host_acks(wire->server->host, wire->wait_offset));
}

bool sim_host_waits(struct sim_host *host, struct sim_wire *wire, int wanted, int64_t patience_ms, int *count)
{
    wire->wait_offset = waits_for_all ? host->offset : wire->written;
    *count = sim_host_acks(host, wire->wait_offset);
    if (*count >= wanted)
        return true;
    wire->waits = true;
    wire->wait_for = wanted;
    host->offset += ASK_BYTES;
    for (int i = 0; i < SIM_SERVERS; i++) {
        struct sim_host *replica = &sim_hosts[i];
        if (replica->master == host && replica->is_fed)
            send(replica, host->offset, sim.now + sim_between(HFI_MS / 20, replica->lag_most))->asks = true;
    }
    sim_at(sim.now + patience_ms * HFI_MS, NULL, wait_ends, wire, ++wire->wait_number);
    return false;
}

void sim_host_role(const struct sim_host *host, struct hfi_buffer *reply)
{
    int count = 0;
    char text[32];
    if (host->is_replica) {
        sim_reply_number(reply, '*', 5);
        sim_reply_bulk(reply, "slave", 5);
        sim_reply_bulk(reply, host->master->address, strlen(host->master->address));
        sim_reply_number(reply, ':', atoi(PORT));
        sim_reply_bulk(reply, host->is_linked ? "connected" : "connect", host->is_linked ? 9 : 7);
        sim_reply_number(reply, ':', host->offset);
        return;
    }
    for (int i = 0; i < SIM_SERVERS; i++)
        count += sim_hosts[i].master == host && sim_hosts[i].is_linked;
    sim_reply_number(reply, '*', 3);
    sim_reply_bulk(reply, "master", 6);
    sim_reply_number(reply, ':', host->offset);
    sim_reply_number(reply, '*', count);
    for (int i = 0; i < SIM_SERVERS; i++) {
        const struct sim_host *replica = &sim_hosts[i];
        if (replica->master != host || !replica->is_linked)
            continue;
        sim_reply_number(reply, '*', 3);
        sim_reply_bulk(reply, replica->address, strlen(replica->address));
        sim_reply_bulk(reply, PORT, sizeof PORT - 1);
        sim_reply_bulk(reply, text, sim_digits(text, replica->acked));
    }
}

/* ---- what happens to them ---- */

static void close_all_wires(const struct sim_host *host, bool told)
{
    for (struct hfi_list *at = sim_network.wires.next; at != &sim_network.wires; at = at->next) {
        struct sim_wire *wire = hfi_container_of(at, struct sim_wire, link);
        if (wire->server != host->server || !wire->server_open)
            continue;
        wire->waits = false;
        sim_wire_drop(wire, told);
    }
}

void sim_host_promote(struct sim_host *host)
{
    cut_link(host);
    close_all_wires(host, true);
    host->is_replica = false;
    host->master = NULL;
    host->reign = ++reigns;
    sim_say("server %d is the primary now", host->number);
    sim_server = sim_server_that_counts = host->server;
}

void sim_host_follow(struct sim_host *host, struct sim_host *master)
{
    sim_say("server %d is told to follow server %d", host->number, master->number);
    cut_link(host);
    close_all_wires(host, true);
    host->is_replica = true;
    host->master = master;
    sim_at(sim.now + sim_between(0, 20) * HFI_MS, NULL, begin_to_follow, host, host->link);
}

void sim_host_crash(struct sim_host *host, bool told)
{
    sim_say("server %d is killed", host->number);
    close_all_wires(host, told);
    cut_link(host);
    host->server->up = false;
    host->server->frozen_until = 0;
    host->server->epoch = ++runs;
    memset(host->server->scripts_known, 0, sizeof host->server->scripts_known);
    host->server->notify[0] = 0;
    for (int i = 0; i < SIM_SERVERS; i++) {
        if (sim_hosts[i].master != host)
            continue;
        cut_link(&sim_hosts[i]);
        sim_at(sim.now + 10 * HFI_MS, NULL, begin_to_follow, &sim_hosts[i], sim_hosts[i].link);
    }
}

void sim_host_start(struct sim_host *host, bool keeps_data)
{
    if (host->server->up)
        return;
    sim_say("server %d is up again, %s its data", host->number, keeps_data ? "with" : "without");
    if (!keeps_data)
        sim_keyspace_clear(&host->server->keys);
    host->server->up = true;
    host->server->started = sim.now;
    if (host->is_replica)
        sim_at(sim.now, NULL, begin_to_follow, host, host->link);
}

/* ---- their weather ---- */

static void change_weather(void *what, int64_t number)
{
    struct sim_host *host = what;
    (void)number;
    host->lag_most = 2 * HFI_MS;
    if (host->is_calm)
        return;
    int die = (int)sim_between(0, 99);
    host->lag_most = die < 60 ? sim_between(1, 4) * HFI_MS : die < 85 ? sim_between(5, 60) * HFI_MS : sim_between(60, 400) * HFI_MS;
    if (sim_chance(15)) {
        host->still_until = sim.now + sim_between(20, 1500) * HFI_MS;
        sim_say("server %d stands still as a replica for %.0f ms", host->number, (double)(host->still_until - sim.now) / 1e6);
    }
    sim_at(sim.now + sim_between(50, 900) * HFI_MS, NULL, change_weather, host, 0);
}

static void say_how_far(void *what, int64_t number)
{
    struct sim_host *host = what;
    (void)number;
    if (host->is_linked && sim_host_runs(host) && host->still_until <= sim.now)
        acknowledge(host);
    sim_at(sim.now + ACK_NS, NULL, say_how_far, host, 0);
}

void sim_hosts_begin(int64_t apart_us)
{
    runs = reigns = 0;
    waits_for_all = sim_chance(50);
    for (int i = 0; i < SIM_SERVERS; i++) {
        struct sim_host *host = &sim_hosts[i];
        struct sim_server *server = &sim_servers[i];
        if (i > 0) { /* what one history leaves behind is nobody's */
            *server = sim_servers[0];
            server->keys.first = NULL;
            server->clock_us += sim_between(0, apart_us);
        }
        *host = (struct sim_host){.server = server, .number = i + 1, .priority = 100, .lag_most = HFI_MS};
        server->host = host;
        server->epoch = ++runs;
        host->cargo_end = &host->cargo;
        (void)snprintf(host->address, sizeof host->address, "10.0.0.%d", i + 1);
        if (i > 0) {
            host->is_replica = host->is_fed = host->is_linked = true;
            host->master = &sim_hosts[0];
        }
        sim_at(sim.now, NULL, change_weather, host, 0);
        sim_at(sim.now + sim_between(0, ACK_NS), NULL, say_how_far, host, 0);
    }
    if (sim_chance(20))
        sim_hosts[sim_between(1, SIM_SERVERS - 1)].priority = 0;
}

void sim_hosts_heal(void)
{
    for (int i = 0; i < SIM_SERVERS; i++) {
        struct sim_host *host = &sim_hosts[i];
        if (host->server->frozen_until > sim.now)
            host->server->frozen_until = sim.now;
        host->still_until = 0;
        host->is_calm = true;
        host->lag_most = 2 * HFI_MS;
        for (const struct sim_cargo *cargo = host->cargo; cargo != NULL; cargo = cargo->next)
            sim_at(cargo->due, NULL, deliver, host, host->link);
    }
}
