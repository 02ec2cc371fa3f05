/* SPDX-License-Identifier: MIT */
/* stats.c - a client's counters and state: hf_client_stats, hf_client_metrics, hf_client_dump. */
#include "core/context/context.h"
#include "core/fetch/aside.h"
#include "core/fetch/local.h"
#include "core/fetch/near.h"
#include "core/lock/key_events.h"
#include "core/lock/tracking.h"
#include "core/lock/lock_order.h"
#include "core/lock/table.h"
#include "base/thread.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static void collect(const hf_client *client, hf_stats *stats)
{
    struct hfi_pool_counts pool;
    memset(stats, 0, sizeof *stats);
#define X(name) stats->name = hfi_counted(client, name);
    HFI_COUNTERS(X)
#undef X
    /* Read after `released`, which must not be ahead of `acquired`. */
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
    stats->failovers = pool.failovers;
    stats->acks_short = pool.acks_short;
    struct hfi_local_amount amount;
    hfi_local_count(client, &amount);
    stats->near_values = amount.near_values;
    stats->near_bytes = amount.near_bytes;
    stats->loads_queued = hfi_aside_queued(client);
}

int64_t hf_client_lease_ms(const hf_client *client)
{
    return client != NULL ? client->lease_ms : 0;
}

/* A call that only looks is answered while the client is being closed too, and in callbacks and log functions. The reference is for
 * one that begins when hf_client_close has waited for calls already. */
static void look(const hf_client *client)
{
    hf_client *looked_at = (hf_client *)(uintptr_t)client;
    (void)hfi_thread_shield();
    hfi_client_ref(looked_at);
    atomic_fetch_add(&looked_at->calls, 1);
}

static void look_away(const hf_client *client)
{
    hf_client *looked_at = (hf_client *)(uintptr_t)client;
    hfi_client_leave(looked_at);
    hfi_client_unref(looked_at);
}

void hf_client_stats_sized(const hf_client *client, hf_stats *stats, size_t size)
{
    hf_stats all;
    if (stats == NULL)
        return;
    memset(stats, 0, size);
    if (client == NULL || hfi_client_is_forked(client))
        return;
    look(client);
    collect(client, &all);
    look_away(client);
    memcpy(stats, &all, size < sizeof all ? size : sizeof all);
}

/* Every number of hf_stats: field, Prometheus name, kind and help text. maxwait_us is printed in seconds. */
static const struct metric {
    const char *field, *name, *kind, *help;
    size_t at;
} metrics[] = {
#define COUNTER(field, help) {#field, #field "_total", "counter", help, offsetof(hf_stats, field)},
#define GAUGE(field, help)   {#field, #field, "gauge", help, offsetof(hf_stats, field)},
    COUNTER(acquired, "leases granted to callers")
    COUNTER(acquired_locally, "leases passed on or shared by threads of this process, without a command")
    COUNTER(busy, "tries that found the lock held")
    COUNTER(timeouts, "waits that ran out of time")
    COUNTER(canceled, "waits that were canceled")
    COUNTER(lost, "leases lost before they were released")
    COUNTER(released, "leases ended by their owners")
    COUNTER(renewals, "renewals confirmed")
    COUNTER(renewals_failed, "renewals without a confirmation")
    COUNTER(remote_commands, "commands sent")
    COUNTER(remote_round_trips, "sends that carried them")
    COUNTER(reconnects, "connections made anew")
    COUNTER(failovers, "changes to another primary")
    COUNTER(acks_short, "commands that too few replicas confirmed in time")
    COUNTER(hand_offs_given, "releases that passed the lease to another process")
    COUNTER(hand_offs_taken, "leases passed to this process by another")
    COUNTER(loads, "loaders run by hf_fetch")
    COUNTER(load_failures, "loaders that failed")
    COUNTER(loads_same, "loaders that found the old value still good")
    COUNTER(hits, "values served from the cache")
    COUNTER(hits_stale, "values served past their time")
    COUNTER(hits_shared, "values shared from another thread's load")
    COUNTER(hits_near, "values served from this process's memory")
    COUNTER(near_reads, "values read to be kept near")
    COUNTER(near_told, "changes of keys that the server told")
    COUNTER(near_lapses, "values not served from memory because the server's proof was late")
    COUNTER(loads_aside, "loaders run by loader threads")
    COUNTER(loads_refused, "loads for which no loader thread had a place")
    GAUGE(near_values, "values kept near")
    GAUGE(near_bytes, "memory of the values kept near")
    GAUGE(loads_queued, "loads that wait for a loader thread")
    GAUGE(held, "leases out")
    GAUGE(waiting, "calls waiting for a lease or a value")
    GAUGE(at_risk, "leases at risk")
    GAUGE(cl_active, "connections lent to callers")
    GAUGE(cl_waiting, "callers waiting for a connection")
    GAUGE(sv_active, "server connections in use")
    GAUGE(sv_idle, "server connections idle")
    GAUGE(sv_used, "server connections idle for so long that they are checked first")
    GAUGE(sv_tested, "server connections being checked or reset")
    GAUGE(sv_login, "server connections being made")
#undef COUNTER
#undef GAUGE
    {"maxwait_us", "maxwait_seconds", "gauge", "how long the oldest caller who waits for a connection has waited",
     offsetof(hf_stats, maxwait_us)},
};
#define METRICS (sizeof metrics / sizeof metrics[0])

static uint64_t number_of(const hf_stats *stats, const struct metric *metric)
{
    uint64_t number;
    memcpy(&number, (const char *)stats + metric->at, sizeof number);
    return number;
}

/* A label's value: a backslash, a quote and a newline are escaped. */
static void put_label(FILE *out, const char *value)
{
    for (; *value != 0; value++)
        if (*value == '\n')
            (void)fputs("\\n", out);
        else
            (void)fprintf(out, *value == '"' || *value == '\\' ? "\\%c" : "%c", *value);
}

/* Prints a sample without its end, `} VALUE`, which the caller adds. */
static void put_sample(FILE *out, const char *name, const char *part, const hf_client *client)
{
    (void)fprintf(out, "holdfast_%s%s{client=\"", name, part);
    put_label(out, client->name);
    (void)fputc('"', out);
}

static void put_head(FILE *out, const char *name, const char *kind, const char *help)
{
    (void)fprintf(out, "# HELP holdfast_%s %s\n# TYPE holdfast_%s %s\n", name, help, name, kind);
}

static void put_histogram(FILE *out, const char *name, const hf_client *client, const struct hfi_histogram *histogram)
{
    uint64_t all = 0, ns = atomic_load_explicit(&histogram->sum_ns, memory_order_relaxed);
    int64_t ms = 1;
    for (int i = 0; i <= HFI_BOUNDS; i++, ms = hfi_histogram_next(ms, i - 1)) {
        all += atomic_load_explicit(&histogram->counts[i], memory_order_relaxed);
        put_sample(out, name, "_bucket", client);
        if (i < HFI_BOUNDS)
            (void)fprintf(out, ",le=\"%" PRId64 ".%03" PRId64 "\"} %" PRIu64 "\n", ms / 1000, ms % 1000, all);
        else
            (void)fprintf(out, ",le=\"+Inf\"} %" PRIu64 "\n", all);
    }
    put_sample(out, name, "_sum", client);
    (void)fprintf(out, "} %" PRIu64 ".%09" PRIu64 "\n", ns / 1000000000, ns % 1000000000);
    put_sample(out, name, "_count", client);
    (void)fprintf(out, "} %" PRIu64 "\n", all);
}

static void tell_holds(struct hfi_lock *lock, void *arg)
{
    (void)arg;
    hfi_mutex_lock(lock->mutex);
    hfi_lock_tell_holds(lock);
    hfi_mutex_unlock(lock->mutex);
}

static void put_metrics(FILE *out, const hf_client *const *clients, const hf_stats *stats, size_t count)
{
    put_head(out, "build_info", "gauge", "1, and which version this is");
    for (size_t i = 0; i < count; i++) {
        put_sample(out, "build_info", "", clients[i]);
        (void)fprintf(out, ",version=\"%s\"} 1\n", hf_version());
    }
    for (size_t m = 0; m < METRICS; m++) {
        put_head(out, metrics[m].name, metrics[m].kind, metrics[m].help);
        for (size_t i = 0; i < count; i++) {
            uint64_t number = number_of(&stats[i], &metrics[m]);
            put_sample(out, metrics[m].name, "", clients[i]);
            if (metrics[m].at == offsetof(hf_stats, maxwait_us))
                (void)fprintf(out, "} %" PRIu64 ".%06" PRIu64 "\n", number / 1000000, number % 1000000);
            else
                (void)fprintf(out, "} %" PRIu64 "\n", number);
        }
    }
    put_head(out, "wait_seconds", "histogram", "how long leases took that were not had at once");
    for (size_t i = 0; i < count; i++)
        put_histogram(out, "wait_seconds", clients[i], &clients[i]->waits);
    put_head(out, "hold_seconds", "histogram", "how long leases were out");
    for (size_t i = 0; i < count; i++)
        put_histogram(out, "hold_seconds", clients[i], &clients[i]->holds);
}

/* INVALID: a client is NULL, or two have one name: two samples with the same labels are not a valid page. */
static hf_status check_apart(const hf_client *const *clients, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (clients[i] == NULL)
            return HF_INVALID;
        if (hfi_client_is_forked(clients[i]))
            return HF_FORKED;
        for (size_t j = 0; j < i; j++)
            if (strcmp(clients[i]->name, clients[j]->name) == 0)
                return HF_INVALID;
    }
    return HF_OK;
}

hf_status hf_clients_metrics(const hf_client *const *clients, size_t count, FILE *out)
{
    if (out == NULL || clients == NULL || count == 0)
        return HF_INVALID;
    hf_status status = check_apart(clients, count);
    if (status != HF_OK)
        return status;
    hf_stats *stats = calloc(count, sizeof *stats);
    if (stats == NULL)
        return HF_NOMEM;
    for (size_t i = 0; i < count; i++) {
        look(clients[i]);
        collect(clients[i], &stats[i]);
        hfi_table_each((hf_client *)(uintptr_t)clients[i], tell_holds, NULL);
    }
    put_metrics(out, clients, stats, count);
    for (size_t i = 0; i < count; i++)
        look_away(clients[i]);
    free(stats);
    return ferror(out) ? HF_UNAVAILABLE : HF_OK;
}

hf_status hf_client_metrics(const hf_client *client, FILE *out)
{
    return hf_clients_metrics(&client, 1, out);
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
    int64_t left_ms = remote == HFI_HELD ? (hfi_lease_end(&entry->held.times) - now) / HFI_MS : 0;
    int64_t position = remote == HFI_QUEUED ? entry->ask.position : 0;
    bool here = entry->holding == HFI_BY_THREAD, is_idle = hfi_entry_is_idle(entry);
    hfi_mutex_unlock(lock->mutex);
    if (is_idle)
        return;
    (void)hfi_quote(name, sizeof name, hfi_keys_name(&lock->keys), lock->keys.name_size);
    static const char *const uses[] = {[HFI_MUTEX] = "lock ", [HFI_FETCH] = "fetch", [HFI_SHARED] = "share",
                                       [HFI_SEMAPHORE] = "permits", [HFI_DIALECT] = "lock "};
    fprintf(out, "%s %-40s %-7s", uses[lock->keys.use], name, doing[remote]);
    if (remote == HFI_HELD)
        fprintf(out, " %s, %" PRId64 " ms left", here ? "by a thread here" : "lingering", left_ms);
    if (remote == HFI_QUEUED)
        fprintf(out, " at %" PRId64, position);
    fprintf(out, ", %d waiting here\n", waiting);
}

/* What says who the primary is, and what a failover can lose. Nothing, where there is one server for ever. */
static void dump_promises(const hf_client *client, FILE *out)
{
    struct hfi_topology_report report;
    if (hfi_pool_report(client->pool, false, &report)) {
        const char *host = report.primary.host;
        fprintf(out, "primary %s:%d of epoch %" PRIu64 ", by %d of %d sentinels", host[0] != 0 ? host : "not named", report.primary.port,
                report.epoch, report.answering, report.sentinels);
        if (report.replicas >= 0)
            fprintf(out, "; %d replicas have to confirm", report.replicas);
        (void)fputc('\n', out);
    }
    if (client->replicas > 0)
        fprintf(out, "%d replicas have to confirm, whichever\n", client->replicas);
    if (client->quarantine_ms > 0)
        fprintf(out, "a new primary grants nothing for %" PRId64 " ms\n", client->quarantine_ms);
}

/* By which the library decides how a thread waits for a reply; in microseconds. */
static void dump_costs(const hf_client *client, FILE *out)
{
    struct hfi_pool_counts pool;
    hfi_pool_count(client->pool, &pool);
    fprintf(out, "a wake-up takes %.1f us here, a send %.1f, a yield %.1f, the shortest round trip of late %.1f; a sleep uses %.1f of "
                 "the CPU (0: not known); threads in a crowd now %s\n",
            (double)pool.wake_up_ns / 1000, (double)pool.send_ns / 1000, (double)pool.yield_ns / 1000, (double)pool.trip_ns / 1000,
            (double)pool.sleep_ns / 1000, pool.crowd_looks ? "look" : "sleep");
}

hf_status hf_client_dump(const hf_client *client, FILE *out)
{
    hf_stats stats;
    struct hfi_server server;
    if (client == NULL || out == NULL)
        return HF_INVALID;
    if (hfi_client_is_forked(client))
        return HF_FORKED;
    look(client);
    collect(client, &stats);
    hfi_pool_server(client->pool, &server);
    fprintf(out, "client %s (%s) of %s, server version %d.%d.%d, run id %s\nkeyspace events %s%s\n", client->name,
            client->identity.id, hfi_pool_server_name(client->pool), server.version / 10000, server.version / 100 % 100,
            server.version % 100, server.run_id[0] != 0 ? server.run_id : "not told",
            hfi_key_events_text((enum hfi_key_events_state)atomic_load(&client->events_state)), hfi_tracking_text(client));
    fprintf(out, "values kept near: %s\n", hfi_near_text(client));
    dump_promises(client, out);
    dump_costs(client, out);
    for (size_t m = 0; m < METRICS; m++)
        fprintf(out, "%-20s %12" PRIu64 "  %s\n", metrics[m].field, number_of(&stats, &metrics[m]), metrics[m].help);
    hfi_table_each((hf_client *)(uintptr_t)client, dump_lock, out); /* counts references, changes nothing else */
    hfi_aside_dump(client, out);
    if (client->order != NULL)
        hfi_lock_order_dump(client->order, out);
    look_away(client);
    return ferror(out) ? HF_UNAVAILABLE : HF_OK;
}
