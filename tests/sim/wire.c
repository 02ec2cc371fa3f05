/* SPDX-License-Identifier: MIT */
/* wire.c - see wire.h. Packets wait in queues, and an event says only that one more may arrive: so packets never
 * overtake each other, whatever is stalled, paused or frozen. Each packet has at least one event, at its due time or
 * at the end of the stall that it met; where a stall ends early there are more events than packets, and the last
 * ones do nothing. */
#include "tests/sim/wire.h"

#include <stdlib.h>
#include <string.h>

struct sim_network sim_network;

void sim_network_begin(void)
{
    sim_network = (struct sim_network){.delay_least = HFI_MS / 20, .delay_most = HFI_MS / 2};
    hfi_list_init(&sim_network.wires);
}

int64_t sim_delay(void)
{
    int64_t delay = sim_between(sim_network.delay_least, sim_network.delay_most);
    if (sim_network.spike_percent > 0 && sim_chance(sim_network.spike_percent))
        delay += sim_between(0, sim_network.spike_most);
    return delay;
}

struct sim_wire *sim_wire_new(struct sim_process *process, struct sim_server *server, void *client,
                              void (*received)(void *client, struct sim_packet *packet),
                              void (*broken)(void *client))
{
    struct sim_wire *wire = calloc(1, sizeof *wire);
    if (wire == NULL)
        abort();
    *wire = (struct sim_wire){.id = sim_server_new_id(server),
                              .process = process,
                              .server = server,
                              .epoch = sim_server_epoch(server),
                              .client = client,
                              .received = received,
                              .broken = broken,
                              .client_open = true,
                              .server_open = true};
    wire->up_end = &wire->up;
    wire->down_end = &wire->down;
    wire->kept_end = &wire->kept;
    hfi_list_append(&sim_network.wires, &wire->link);
    return wire;
}

struct sim_packet *sim_packet_new(enum sim_packet_kind kind, const void *bytes, size_t size)
{
    struct sim_packet *packet = malloc(sizeof *packet + size + 1);
    if (packet == NULL)
        abort();
    packet->next = NULL;
    packet->kind = kind;
    packet->size = size;
    if (size > 0)
        memcpy(packet->bytes, bytes, size);
    packet->bytes[size] = 0;
    return packet;
}

static void arrive_up(void *what, int64_t number)
{
    struct sim_wire *wire = what;
    struct sim_packet *packet = wire->up;
    int64_t thawed = sim_server_frozen_until(wire->server);
    int64_t not_before = wire->up_stalled_until > thawed ? wire->up_stalled_until : thawed;
    (void)number;
    if (packet == NULL || packet->due > sim.now)
        return;
    if (sim.now < not_before) { /* connections are read in any order when the server wakes up */
        sim_at(not_before + sim_between(0, HFI_MS / 10), NULL, arrive_up, wire, 0);
        return;
    }
    wire->up = packet->next;
    if (wire->up == NULL)
        wire->up_end = &wire->up;
    if (wire->server_open && sim.now > (packet->due > not_before ? packet->due : not_before) + HFI_MS / 10)
        sim_violation("the network held back what nothing stalled");
    if (wire->server_open && packet->kind == SIM_END) {
        wire->server_open = false;
        sim_server_hung_up(wire);
    } else if (wire->server_open) {
        sim_server_receive(wire, packet);
    }
    free(packet);
}

void sim_wire_up(struct sim_wire *wire, struct sim_packet *packet)
{
    int64_t when = sim.now + sim_delay();
    packet->due = wire->last_up = when > wire->last_up ? when : wire->last_up + 1;
    *wire->up_end = packet;
    wire->up_end = &packet->next;
    sim_at(wire->last_up, NULL, arrive_up, wire, 0);
}

static void arrive_down(void *what, int64_t number)
{
    struct sim_wire *wire = what;
    struct sim_packet *packet = wire->down;
    (void)number;
    if (packet == NULL || packet->due > sim.now || wire->receiving)
        return;
    if (sim.now < wire->down_stalled_until) {
        sim_at(wire->down_stalled_until, wire->process, arrive_down, wire, 0);
        return;
    }
    wire->down = packet->next;
    if (wire->down == NULL)
        wire->down_end = &wire->down;
    if (wire->client_open && packet->kind == SIM_END) {
        wire->client_open = false;
        wire->broken(wire->client);
    } else if (wire->client_open) {
        int64_t began = sim.now;
        sim_hears(wire->process);
        wire->receiving = true;
        wire->received(wire->client, packet);
        wire->receiving = false;
        sim_hears(wire->process);
        for (const struct sim_packet *at = wire->down; at != NULL && at->due <= sim.now && began < sim.now; at = at->next)
            sim_at(sim.now, wire->process, arrive_down, wire, 0);
    }
    free(packet);
}

void sim_wire_down(struct sim_wire *wire, struct sim_packet *packet)
{
    int64_t when = sim.now + sim_delay();
    packet->due = wire->last_down = when > wire->last_down ? when : wire->last_down + 1;
    *wire->down_end = packet;
    wire->down_end = &packet->next;
    sim_at(wire->last_down, wire->process, arrive_down, wire, 0);
}

void sim_wire_flows(struct sim_wire *wire)
{
    if (wire->up_stalled_until > sim.now && wire->client_open)
        wire->up_stalled_until = sim.now;
    if (wire->down_stalled_until > sim.now && wire->down_stalled_until < HFI_NEVER / 2)
        wire->down_stalled_until = sim.now;
    for (const struct sim_packet *at = wire->up; at != NULL && at->due <= sim.now; at = at->next)
        sim_at(sim.now + sim_between(0, HFI_MS / 10), NULL, arrive_up, wire, 0);
    for (const struct sim_packet *at = wire->down; at != NULL && at->due <= sim.now; at = at->next)
        sim_at(sim.now, wire->process, arrive_down, wire, 0);
}

void sim_wire_close(struct sim_wire *wire)
{
    if (!wire->client_open)
        return;
    wire->client_open = false;
    sim_wire_up(wire, sim_packet_new(SIM_END, NULL, 0));
}

static void break_off(void *what, int64_t number)
{
    struct sim_wire *wire = what;
    (void)number;
    if (!wire->client_open)
        return;
    wire->client_open = false;
    wire->broken(wire->client);
}

void sim_wire_drop(struct sim_wire *wire, bool told)
{
    wire->server_open = false;
    sim_server_hung_up(wire);
    if (told)
        sim_wire_down(wire, sim_packet_new(SIM_END, NULL, 0));
}

static void forget(void *what, int64_t number)
{
    struct sim_wire *wire = what;
    (void)number;
    if (!wire->server_open)
        return;
    wire->server_open = false;
    sim_server_hung_up(wire);
}

void sim_wire_cut(struct sim_wire *wire)
{
    int64_t late = sim_between(0, 3000 * HFI_MS);
    wire->down_stalled_until = HFI_NEVER / 2;
    sim_at(sim.now + sim_between(0, 20 * HFI_MS), wire->process, break_off, wire, 0);
    if (sim_chance(50)) {
        wire->up_stalled_until = sim.now + late;
        sim_at(sim.now + late + 5 * HFI_MS, NULL, forget, wire, 0);
    } else {
        sim_at(sim.now, NULL, forget, wire, 0);
    }
}
