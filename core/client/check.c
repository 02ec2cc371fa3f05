/* SPDX-License-Identifier: MIT */
/* check.c - hf_client_check: reports what about this server will cause trouble, and the command that fixes it. */
#include "core/context/call.h"
#include "core/context/callback.h"
#include "core/fetch/near.h"
#include "core/lock/key_events.h"
#include "core/lock/lock.h"
#include "core/lock/tracking.h"
#include "core/lock/trouble.h"
#include "core/protocol/key.h"
#include "core/protocol/wire.h"
#include "base/random.h"
#include "pool/replies.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASK_AGAIN_NS   (20 * HFI_MS)
#define ROUND_MS       5000 /* so long clocks are waited for: who does not answer takes connect_ms */
#define SECOND_LIFE_MS 20000 /* so long may a former primary take writes that are lost */
#define WAYS           2

struct check {
    hf_client *client;
    hf_finding_fn *visit;
    void *arg;
    bool stopped;
    enum { UNASKED, OPEN, SHUT } ways[WAYS]; /* of remedies, in the order of the table */
    bool answered;  /* the last command was, perhaps with an error */
    hf_error error; /* of the last command */
};

static void find(struct check *check, hf_log_level level, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static redisReply *ask(struct check *check, struct hfi_command *command);

/* What remedies tell the operator to do, and a question that shows whether this server takes it from us. It changes nothing. */
static const struct way {
    const char *remedy, *question[5];
    const char *refused_well; /* an error with these words is that of a server that takes it; NULL: none is */
} ways[WAYS] = {{"ACL SETUSER <user> ", {"ACL", "SETUSER", "default", "?", NULL}, "in ACL SETUSER modifier"},
                {"CONFIG SET ", {"CONFIG", "GET", "maxmemory", NULL}, NULL}};

static bool is_open(struct check *check, int which)
{
    const char *const *words = ways[which].question;
    hf_error before = check->error;
    if (check->ways[which] == UNASKED) {
        redisReply *reply = ask(check, hfi_wire_words(words[0], words[1], words[2], words[3], NULL));
        const char *well = ways[which].refused_well;
        check->ways[which] = reply != NULL || (well != NULL && strstr(check->error.message, well) != NULL) ? OPEN : SHUT;
        if (reply != NULL)
            freeReplyObject(reply);
        check->error = before;
    }
    return check->ways[which] == OPEN;
}

/* A managed service refuses ACL or CONFIG, and has a place of its own for that. It is asked when a remedy needs it, not before:
 * each refusal is written down there. */
static const char *within_reach(struct check *check, const char *remedy, char *out, size_t capacity)
{
    for (int i = 0; i < WAYS; i++) {
        const char *at = strstr(remedy, ways[i].remedy);
        if (at == NULL || is_open(check, i))
            continue;
        (void)snprintf(out, capacity, "%.*sin the service's own settings: %s", (int)(at - remedy), remedy,
                       at + strlen(ways[i].remedy));
        return out;
    }
    return remedy;
}

static void find(struct check *check, hf_log_level level, const char *remedy, const char *format, ...)
{
    char what[256], elsewhere[256];
    struct hfi_callback callback;
    va_list words;
    if (check->stopped)
        return;
    va_start(words, format);
    (void)vsnprintf(what, sizeof what, format, words);
    va_end(words);
    hf_finding finding = {.size = sizeof finding,
                          .level = level,
                          .what = what,
                          .remedy = within_reach(check, remedy, elsewhere, sizeof elsewhere)};
    if (check->stopped) /* the client closes */
        return;
    hfi_callback_begin(&callback, check->client, NULL);
    check->stopped = !check->visit(&finding, check->arg);
    hfi_callback_end(&callback);
}

/* NULL: no answer, or an error reply; check->error says which. */
static redisReply *ask(struct check *check, struct hfi_command *command)
{
    redisReply *reply = NULL;
    hf_client *client = check->client;
    check->error = (hf_error){.status = HF_OK};
    check->answered = hfi_call(client, hfi_pool_lane(client->pool, HFI_USER_LANE, 0), command, NULL, &reply, &check->error) ==
                      HF_OK;
    check->stopped = check->stopped || check->error.status == HF_CLOSED;
    if (!check->answered || reply->type != REDIS_REPLY_ERROR)
        return reply;
    (void)hfi_reply_fail(reply, "the server refuses", hfi_pool_server_name(client->pool), &check->error);
    freeReplyObject(reply);
    return NULL;
}

static void check_version(struct check *check)
{
    struct hfi_server server;
    hfi_pool_server(check->client->pool, &server);
    if (server.version == 0)
        find(check, HF_LOG_WARNING, "ACL SETUSER <user> +info",
             "the server does not tell its version, nor its run id: each connection may be another server");
    else if (server.version < 60200)
        find(check, HF_LOG_WARNING, "update the server to 6.2 or later", "server version %d.%d.%d is old",
             server.version / 10000, server.version / 100 % 100, server.version % 100);
    else
        find(check, HF_LOG_INFO, "", "server version %d.%d.%d, up for %" PRId64 " s", server.version / 10000,
             server.version / 100 % 100, server.version % 100, server.uptime_s);
}

static void check_role(struct check *check)
{
    redisReply *reply = ask(check, hfi_wire_words("ROLE", NULL));
    if (reply == NULL && check->answered)
        find(check, HF_LOG_WARNING, "ACL SETUSER <user> +role",
             "the server does not tell its role: a demoted one is noticed only when it refuses to write");
    if (reply != NULL)
        freeReplyObject(reply);
}

static void check_clock(struct check *check)
{
    if (hfi_lane_clock_by_key(hfi_pool_lane(check->client->pool, HFI_LOCK_LANE, 0)))
        find(check, HF_LOG_INFO, "ACL SETUSER <user> +time", "scripts may not ask for TIME: their clock is the key " HFI_CLOCK_KEY);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void check_round_trip(struct check *check)
{
    int64_t took[11];
    for (size_t i = 0; i < 11; i++) {
        int64_t start = hfi_now(check->client->clock);
        redisReply *reply = ask(check, hfi_wire_words("PING", NULL));
        if (reply == NULL) {
            find(check, HF_LOG_ERROR, check->error.hint, "PING fails: %s", check->error.message);
            return;
        }
        freeReplyObject(reply);
        took[i] = hfi_now(check->client->clock) - start;
    }
    qsort(took, 11, sizeof took[0], by_size);
    double ms = (double)took[5] / (double)HFI_MS;
    find(check, ms > 20 ? HF_LOG_WARNING : HF_LOG_INFO, ms > 20 ? "use a server that is nearer; leases of 10 s or more" : "",
         "round trip %.3f ms (median of 11)", ms);
}

static bool is_granted(struct check *check, struct hfi_command *command)
{
    redisReply *reply = ask(check, command);
    if (reply != NULL)
        freeReplyObject(reply);
    return reply != NULL;
}

static void pause_for(int64_t now)
{
    struct hfi_park park;
    hfi_park_init(&park);
    (void)hfi_park_wait(&park, hfi_park_epoch(&park), now + ASK_AGAIN_NS);
}

/* The channel on which it is told may be refused, or who listens not be named. */
static bool hears_invalidations(hf_client *client)
{
    size_t size = strlen(HFI_INVALIDATIONS);
    int64_t now = hfi_now(client->clock), until = hfi_after_ms(now, client->command_ms);
    if (!hfi_pool_subscribe(client->pool, HFI_INVALIDATIONS, size))
        return false;
    for (; now < until && !atomic_load(&client->tracker_heard) && hfi_pool_tracker_id(client->pool) >= 0; now = hfi_now(client->clock))
        pause_for(now);
    bool hears = atomic_load(&client->tracker_heard) && hfi_pool_tracker_id(client->pool) > 0;
    hfi_pool_unsubscribe(client->pool, HFI_INVALIDATIONS, size);
    return hears;
}

/* On the lane that asks nothing is tracked, so there is nothing to lose. CACHING is allowed if the server says that it is out of
 * place there. */
static bool may_track(struct check *check)
{
    if (!is_granted(check, hfi_wire_words("CLIENT", "ID", NULL)) || !is_granted(check, hfi_wire_words("CLIENT", "TRACKING", "OFF", NULL)))
        return false;
    (void)is_granted(check, hfi_wire_words("CLIENT", "CACHING", "YES", NULL));
    return check->answered && check->error.status != HF_DENIED && hears_invalidations(check->client);
}

static void check_events(struct check *check)
{
    enum hfi_key_events_state state = (enum hfi_key_events_state)atomic_load(&check->client->events_state);
    bool is_replaced = hfi_tracking_is_needed(check->client) && may_track(check);
    bool fine = state == HFI_EVENTS_ON || state == HFI_EVENTS_OFF || is_replaced, may = state == HFI_EVENTS_MISSING;
    find(check, fine || may ? HF_LOG_INFO : HF_LOG_WARNING,
         fine ? "" : "CONFIG SET notify-keyspace-events Kgxe (only waits behind other libraries' locks gain by it), or the rights "
                     "that holdfast doctor --acl names for client tracking",
         "keyspace events are %s%s", hfi_key_events_text(state), is_replaced ? ": client tracking instead" : "");
}

static void check_near(struct check *check)
{
    bool may = check->client->local_bytes != HF_OFF && !hfi_near_is_refused(check->client) && may_track(check) &&
               is_granted(check, hfi_wire_words("CLIENT", "GETREDIR", NULL));
    find(check, HF_LOG_INFO, may ? "" : "it needs local_bytes, Redis 6 or 7.0.9, and the rights of holdfast doctor --acl for near_ms",
         "values of hf_fetch can%s be kept near (near_ms)", may ? "" : "not");
}

/* The end of a key is a date there: a replica that is ahead frees what is held as soon as it is promoted. */
static void check_clocks(struct check *check, int round)
{
    const hf_client *client = check->client;
    struct hfi_topology_report report;
    const struct hfi_clock_report *clocks = &report.clocks;
    int64_t now = hfi_now(client->clock), until = hfi_after_ms(now, ROUND_MS);
    for (; hfi_pool_report(client->pool, false, &report) && clocks->round == round && now < until; now = hfi_now(client->clock))
        pause_for(now);
    bool is_fine = clocks->answered == clocks->servers;
    if (clocks->round == round)
        find(check, HF_LOG_WARNING, "is one of them silent? each is waited for", "the clocks of the servers are not compared yet");
    else if (clocks->apart_ms > client->rules[HFI_MUTEX].guard_ms / 2)
        find(check, HF_LOG_WARNING, "set both by NTP", HFI_CLOCKS_APART, clocks->ahead.host, clocks->ahead.port, clocks->apart_ms,
             clocks->behind.host, clocks->behind.port);
    else if (clocks->servers > 1)
        find(check, is_fine ? HF_LOG_INFO : HF_LOG_WARNING, is_fine ? "" : "can all be reached from here? ACL SETUSER <user> +time",
             "the clocks of %d of %d servers agree", clocks->answered, clocks->servers);
}

static void check_certificate(struct check *check)
{
    if (!hfi_pool_verifies(check->client->pool))
        find(check, HF_LOG_WARNING, "tls_ca_file, and tls_verify=full", "tls_verify=none: whoever answers is believed");
}

/* What a failover can do to leases. */
static void check_failover(struct check *check)
{
    const hf_client *client = check->client;
    struct hfi_topology_report report;
    int64_t longest_ms = client->max_lease_ms > 0 ? client->max_lease_ms : client->lease_ms;
    int64_t quarantine_ms = SECOND_LIFE_MS + longest_ms + client->rules[HFI_MUTEX].guard_ms;
    hfi_pool_wait_for_replicas(client->pool, hfi_after_ms(hfi_now(client->clock), client->command_ms)); /* a lazy client has not */
    if (!hfi_pool_report(client->pool, true, &report)) /* whose clocks are to be compared is known now */
        return;
    find(check, report.answering < report.sentinels ? HF_LOG_WARNING : HF_LOG_INFO,
         report.answering < report.sentinels ? "start the others, or name those that are there" : "",
         "%d of %d sentinels answer; primary %s:%d, epoch %" PRIu64, report.answering, report.sentinels, report.primary.host,
         report.primary.port, report.epoch);
    check_clocks(check, report.clocks.round);
    if (client->replicas == HF_ALL && report.replicas == 0)
        find(check, HF_LOG_ERROR, HFI_NOBODY_CONFIRMS_HINT, HFI_NOBODY_CONFIRMS);
    else if (client->replicas == HF_ALL && report.down_after_ms > 0 && client->lease_ms < 4 * (report.down_after_ms + 2000))
        find(check, HF_LOG_WARNING, "longer leases, or a shorter down-after-milliseconds",
             "leases of %" PRId64 " ms end in a failover, which takes %" PRId64 " ms and more; those of %" PRId64 " ms do not",
             client->lease_ms, report.down_after_ms + 2000, 4 * (report.down_after_ms + 2000));
    else if (client->replicas == HF_ALL)
        find(check, HF_LOG_INFO, "", "%d replicas have to confirm: a failover loses no lease", report.replicas);
    else if (client->quarantine_ms >= quarantine_ms)
        find(check, client->max_lease_ms > 0 ? HF_LOG_INFO : HF_LOG_WARNING,
             client->max_lease_ms > 0 ? "" : "set max_lease_ms, so that no lease is longer than quarantine_ms allows for",
             "a new primary grants nothing for %" PRId64 " ms", client->quarantine_ms);
    else if (client->quarantine_ms > 0)
        find(check, HF_LOG_WARNING, "20 s, the longest lease and guard_ms, in all clients", "quarantine_ms is below %" PRId64,
             quarantine_ms);
    else
        find(check, HF_LOG_WARNING, "replicas=all, or quarantine_ms, or at least min-replicas-to-write 1 (docs/guarantees.md)",
             "a failover can lose leases: two may hold for seconds, in the order of their fences");
}

static void check_memory(struct check *check)
{
    char policy[64], limit[32], used[32];
    redisReply *reply = ask(check, hfi_wire_words("INFO", "memory", NULL));
    if (!hfi_reply_info(reply, "maxmemory_policy", policy, sizeof policy) ||
        !hfi_reply_info(reply, "maxmemory", limit, sizeof limit) ||
        !hfi_reply_info(reply, "used_memory", used, sizeof used)) {
        find(check, HF_LOG_WARNING, "ACL SETUSER <user> +info", "the server does not tell its eviction policy");
    } else if (strcmp(policy, "noeviction") != 0) {
        find(check, strcmp(limit, "0") == 0 ? HF_LOG_WARNING : HF_LOG_ERROR, "CONFIG SET maxmemory-policy noeviction",
             "eviction policy %s may evict locks that are held%s", policy,
             strcmp(limit, "0") == 0 ? " (should maxmemory be set)" : "");
    } else {
        find(check, HF_LOG_INFO, "", "eviction policy noeviction: locks are not evicted");
        if (strtoll(limit, NULL, 10) > 0 && strtod(used, NULL) > 0.9 * strtod(limit, NULL))
            find(check, HF_LOG_WARNING, "raise maxmemory, or move other data elsewhere",
                 "%s of %s bytes of memory are in use; a full server grants no locks", used, limit);
    }
    if (reply != NULL)
        freeReplyObject(reply);
}

static void check_persistence(struct check *check)
{
    char aof[8], saved[16];
    redisReply *reply = ask(check, hfi_wire_words("INFO", "persistence", NULL));
    if (!hfi_reply_info(reply, "aof_enabled", aof, sizeof aof) ||
        !hfi_reply_info(reply, "rdb_last_bgsave_status", saved, sizeof saved))
        find(check, HF_LOG_WARNING, "ACL SETUSER <user> +info", "the server does not tell how it keeps data");
    else if (strcmp(saved, "ok") != 0)
        find(check, HF_LOG_ERROR, "look at the server's log; or CONFIG SET stop-writes-on-bgsave-error no",
             "the last background save failed: writes, renewals too, may be refused");
    else if (strcmp(aof, "1") != 0)
        find(check, HF_LOG_INFO, "CONFIG SET appendonly yes",
             "no append-only file: a crash forgets who holds what (fences still order writes)");
    else
        find(check, HF_LOG_INFO, "", "append-only file is on");
    if (reply != NULL)
        freeReplyObject(reply);
}

static void check_right(struct check *check, const char *what, const char *remedy, struct hfi_command *command)
{
    redisReply *reply = ask(check, command);
    if (reply == NULL && check->error.status == HF_DENIED)
        find(check, HF_LOG_ERROR, remedy, "%s is not allowed: %s", what, check->error.message);
    if (reply != NULL)
        freeReplyObject(reply);
}

static void check_rights(struct check *check)
{
    static const char probe[] = "hf:{holdfast.doctor}";
    hf_client *client = check->client;
    check_right(check, "GET", "ACL SETUSER <user> ~hf:* +@read", hfi_wire_words("GET", probe, NULL));
    check_right(check, "PTTL", "ACL SETUSER <user> ~hf:* +@read", hfi_wire_words("PTTL", probe, NULL));
    check_right(check, "MULTI", "ACL SETUSER <user> +@transaction", hfi_wire_words("DISCARD", NULL));
    check_right(check, "a script", "ACL SETUSER <user> +@scripting", hfi_wire_words("EVAL", "return 1", "0", NULL));
    check_right(check, "SET", "ACL SETUSER <user> ~hf:* +@write", hfi_wire_words("SET", probe, "", "XX", "PX", "1", NULL));
    check_right(check, "PUBLISH", "ACL SETUSER <user> &hf:c:* +@pubsub",
                hfi_wire_words("PUBLISH", client->identity.channel, "-", NULL));
    check_right(check, "SCAN", "ACL SETUSER <user> +scan", hfi_wire_words("SCAN", "0", "COUNT", "1", NULL));
}

static bool note_answer(const hf_holder *holder, void *arg)
{
    *(bool *)arg = holder->held_ms >= 0;
    return true;
}

/* hf_lock_info sends a message to the holder, here this client itself, over the channel of a hand-off. A client that
 * was opened a moment ago may not be subscribed yet, so the question is repeated for as long as a command may take. */
static bool receives_its_own(hf_client *client, const char *name)
{
    bool answered = false;
    int64_t now = hfi_now(client->clock), until = hfi_after_ms(now, client->command_ms);
    for (; !answered && now < until; now = hfi_now(client->clock)) {
        if (hf_lock_info(client, name, note_answer, &answered, NULL) != HF_OK)
            return false;
        if (!answered)
            pause_for(now);
    }
    return answered;
}

/* The proof: acquires and releases a lock with a unique name. */
static void check_lock(struct check *check)
{
    hf_client *client = check->client;
    uint64_t random;
    char name[40];
    hf_lease *lease;
    hf_error error;
    if (!hfi_random(&random, sizeof random))
        return;
    (void)snprintf(name, sizeof name, "holdfast.doctor.%016" PRIx64, random);
    if (hf_lock_acquire(client, name, NULL, &lease, &error) != HF_OK) {
        find(check, HF_LOG_ERROR, error.hint, "no lock can be had: %s", error.message);
        return;
    }
    if (receives_its_own(client, name))
        find(check, HF_LOG_INFO, "", "hand-off messages arrive");
    else
        find(check, HF_LOG_WARNING, "ACL SETUSER <user> &hf:c:* +subscribe +publish",
             "messages do not come back: hand-offs wait for the timed re-check");
    if (hf_lease_release(lease, &error) != HF_OK)
        find(check, HF_LOG_ERROR, error.hint, "a lock cannot be given back: %s", error.message);
    else
        find(check, HF_LOG_INFO, "", "a lock was taken and given back");
}

static void check_fences(struct check *check)
{
    redisReply *reply = ask(check, hfi_wire_words("PTTL", HFI_FENCE_KEY, NULL));
    if (reply != NULL && reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0)
        find(check, HF_LOG_WARNING, "PERSIST " HFI_FENCE_KEY, "the fence counter has an expiry");
    if (reply != NULL)
        freeReplyObject(reply);
}

hf_status hf_client_check(hf_client *client, hf_finding_fn *visit, void *arg, hf_error *error)
{
    struct check check = {.client = client, .visit = visit, .arg = arg};
    hf_status status = hfi_client_enter(client, error);
    if (status != HF_OK)
        return status;
    if (visit == NULL) {
        status = hfi_fail(error, HF_INVALID, "", "visit is NULL");
    } else {
        check_round_trip(&check);
        if (!check.answered) {
            status = check.error.status;
            if (error != NULL)
                *error = check.error;
        } else {
            check_certificate(&check);
            check_version(&check);
            check_role(&check);
            check_clock(&check);
            check_failover(&check);
            check_memory(&check);
            check_persistence(&check);
            check_events(&check);
            check_near(&check);
            check_rights(&check);
            check_fences(&check);
            check_lock(&check);
        }
        if (atomic_load(&client->closing)) /* a question that close cut off is not a finding */
            status = hfi_fail(error, HF_CLOSED, "", "the client is closing");
    }
    hfi_client_leave(client);
    return status;
}
