/* SPDX-License-Identifier: MIT */
/* stats.c - what a client has done and is doing: hf_client_stats, hf_client_metrics, hf_client_dump. */
#include "core/client.h"
#include "core/events.h"
#include "core/lock.h"
#include "core/table.h"

#include <inttypes.h>
#include <string.h>

static void collect(const hf_client *client, hf_stats *stats)
{
    struct hfi_pool_counts pool;
    memset(stats, 0, sizeof *stats);
#define X(name) stats->name = hfi_counted(client, name);
    HFI_COUNTERS(X)
#undef X
    /* After `released`, which must not be ahead of it. */
    stats->acquired = hfi_counted(client, acquired_remotely) + hfi_counted(client, acquired_locally);
    stats->held = stats->acquired > stats->released ? stats->acquired - stats->released : 0;
    hfi_pool_count(client->pool, &pool);
    stats->remote_commands = pool.commands;
    stats->remote_round_trips = pool.round_trips;
    stats->reconnects = pool.reconnects;
    stats->cl_active = pool.cl_active;
    stats->cl_waiting = pool.cl_waiting;
    stats->sv_active = pool.sv_active;
    stats->sv_idle = pool.sv_idle;
    stats->sv_used = pool.sv_used;
    stats->sv_tested = pool.sv_tested;
    stats->sv_login = pool.sv_login;
    stats->maxwait_us = pool.maxwait_us;
}

void hf_client_stats_sized(const hf_client *client, hf_stats *stats, size_t size)
{
    hf_stats all;
    if (stats == NULL)
        return;
    memset(stats, 0, size);
    if (client == NULL || hfi_client_is_forked(client))
        return;
    collect(client, &all);
    memcpy(stats, &all, size < sizeof all ? size : sizeof all);
}

/* Name, kind, help and field of every metric: one list for the Prometheus text and the dump. */
#define METRICS(X)                                                                                             \
    X(acquired, "counter", "leases granted to callers")                                                        \
    X(acquired_locally, "counter", "leases granted without a round trip")                                      \
    X(busy, "counter", "tries that found the lock held")                                                       \
    X(timeouts, "counter", "waits that ran out of time")                                                       \
    X(canceled, "counter", "waits that were canceled")                                                         \
    X(lost, "counter", "leases lost before they were released")                                                \
    X(released, "counter", "leases ended by their owners")                                                     \
    X(renewals, "counter", "renewals confirmed")                                                               \
    X(renewals_failed, "counter", "renewals without a confirmation")                                           \
    X(remote_commands, "counter", "commands sent")                                                             \
    X(remote_round_trips, "counter", "sends that carried them")                                                \
    X(reconnects, "counter", "connections made anew")                                                          \
    X(hand_offs_given, "counter", "releases that passed the lease to another process")                         \
    X(hand_offs_taken, "counter", "leases passed to this process by another")                                  \
    X(loads, "counter", "loaders run by hf_fetch")                                                             \
    X(load_failures, "counter", "loaders that failed")                                                         \
    X(hits, "counter", "values served from the cache")                                                         \
    X(hits_stale, "counter", "values served past their time")                                                  \
    X(hits_shared, "counter", "values shared from another thread's load")                                      \
    X(held, "gauge", "leases out")                                                                             \
    X(waiting, "gauge", "calls waiting for a lease or a value")                                                \
    X(at_risk, "gauge", "leases at risk")                                                                      \
    X(cl_active, "gauge", "connections lent to callers")                                                       \
    X(cl_waiting, "gauge", "callers waiting for a connection")                                                 \
    X(sv_active, "gauge", "server connections in use")                                                         \
    X(sv_idle, "gauge", "server connections idle")                                                             \
    X(sv_used, "gauge", "server connections idle for so long that they are checked first")                     \
    X(sv_tested, "gauge", "server connections being checked or reset")                                         \
    X(sv_login, "gauge", "server connections being made")                                                      \
    X(maxwait_us, "gauge", "how long the oldest waiting caller has waited, in microseconds")

hf_status hf_client_metrics(const hf_client *client, FILE *out)
{
    hf_stats stats;
    if (client == NULL || out == NULL || hfi_client_is_forked(client))
        return HF_INVALID;
    collect(client, &stats);
#define X(name, kind, help)                                                                                    \
    fprintf(out, "# HELP holdfast_%s %s\n# TYPE holdfast_%s %s\nholdfast_%s %" PRIu64 "\n", #name, help, #name, kind, \
            #name, stats.name);
    METRICS(X)
#undef X
    return ferror(out) ? HF_UNAVAILABLE : HF_OK;
}

static void dump_lock(struct hfi_lock *lock, void *arg)
{
    static const char *const doing[] = {"nothing", "asking", "queued", "held"};
    FILE *out = arg;
    char name[160];
    int64_t now = hfi_lock_enter(lock);
    const struct hfi_entry *entry = &lock->entry;
    int waiting = 0;
    for (const struct hfi_list *at = entry->waiters.next; at != &entry->waiters; at = at->next)
        waiting++;
    int remote = (int)entry->remote;
    int64_t left_ms = remote == HFI_HELD ? (entry->times.end - now) / HFI_MS : 0;
    int64_t position = remote == HFI_QUEUED ? entry->position : 0;
    bool here = entry->is_held_here, is_idle = hfi_entry_is_idle(entry);
    (void)pthread_mutex_unlock(&lock->mutex);
    if (is_idle)
        return;
    (void)hfi_quote(name, sizeof name, lock->keys.name, lock->keys.name_size);
    fprintf(out, "%s %-40s %-7s", lock->keys.use == HFI_FETCH ? "fetch" : "lock ", name, doing[remote]);
    if (remote == HFI_HELD)
        fprintf(out, " %s, %" PRId64 " ms left", here ? "by a thread here" : "lingering", left_ms);
    if (remote == HFI_QUEUED)
        fprintf(out, " at %" PRId64, position);
    fprintf(out, ", %d waiting here\n", waiting);
}

hf_status hf_client_dump(const hf_client *client, FILE *out)
{
    hf_stats stats;
    struct hfi_server server;
    if (client == NULL || out == NULL || hfi_client_is_forked(client))
        return HF_INVALID;
    collect(client, &stats);
    hfi_pool_server(client->pool, &server);
    fprintf(out, "client %s (%s) of %s, server version %d.%d.%d, run id %s\nkeyspace events %s\n", client->name,
            client->identity.id, hfi_pool_server_name(client->pool), server.version / 10000, server.version / 100 % 100,
            server.version % 100, server.run_id[0] != 0 ? server.run_id : "not told",
            hfi_events_text((enum hfi_events_state)atomic_load(&client->events_state)));
#define X(name, kind, help) fprintf(out, "%-20s %12" PRIu64 "  %s\n", #name, stats.name, help);
    METRICS(X)
#undef X
    hfi_table_each((hf_client *)(uintptr_t)client, dump_lock, out); /* references are counted, nothing else changes */
    return ferror(out) ? HF_UNAVAILABLE : HF_OK;
}
