/* SPDX-License-Identifier: MIT */
/* operators_test.c - the operators' calls: holders listed, leases broken, the server checked; and the counters of a
 * client. */
#include "base/clock.h"
#include "tests/support/lock_lanes.h"
#include "tests/support/pages.h"
#include "tests/support/takers.h"

#include <ctype.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct seen {
    int count, stop_after;
    char name[64], host[128], label[160], foreign[64];
    hf_holder last;
};

struct fixture {
    struct hft_server *server;
    hf_client *a, *b;
    struct seen seen;
    hf_error error;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->server = hft_server_start(NULL);
    f->a = hft_client(f->server, HF_CLIENT(.client_name = "the-holder"));
    f->b = hft_client(f->server, NULL);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    int wrong = hf_client_close(f->a, NULL) != HF_OK;
    wrong += hf_client_close(f->b, NULL) != HF_OK;
    hft_server_stop(f->server);
    free(f);
    return -wrong;
}

static hf_lease *must_take(struct fixture *f, hf_client *client, const char *name, const hf_lock_options *options)
{
    hf_lease *lease;
    if (hf_lock_acquire(client, name, options, &lease, &f->error) != HF_OK)
        fail_msg("%s", f->error.message);
    return lease;
}

static bool note(const hf_holder *holder, void *arg)
{
    struct seen *seen = arg;
    seen->last = *holder;
    (void)snprintf(seen->name, sizeof seen->name, "%s", holder->name);
    (void)snprintf(seen->host, sizeof seen->host, "%s", holder->host);
    (void)snprintf(seen->label, sizeof seen->label, "%s", holder->label);
    (void)snprintf(seen->foreign, sizeof seen->foreign, "%s", holder->foreign_value != NULL ? holder->foreign_value : "");
    return ++seen->count != seen->stop_after;
}

static void info_tells_who_where_since_when_and_how_many_wait(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    hf_lease *lease = must_take(f, f->a, "job", HF_LOCK(.owner_label = "nightly run"));
    hft_take(&taker, f->b, "job", HF_LOCK(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_queued(f->server, "job") == 1);
    hf_client *asking[] = {f->b, f->a};
    for (int i = 0; i < 2; i++) {
        memset(&f->seen, 0, sizeof f->seen);
        assert_int_equal(hf_lock_info(asking[i], "job", note, &f->seen, &f->error), HF_OK);
        assert_int_equal(f->seen.count, 1);
        assert_int_equal(f->seen.last.size, sizeof(hf_holder));
        assert_string_equal(f->seen.name, "job");
        assert_string_equal(f->seen.label, "nightly run");
        assert_int_equal(f->seen.last.pid, getpid());
        assert_true(f->seen.host[0] != 0);
        assert_true(f->seen.last.fence == hf_lease_fence(lease));
        assert_in_range(f->seen.last.remaining_ms, 5000, 10500);
        assert_in_range(f->seen.last.held_ms, 0, 10000);
        assert_int_equal(f->seen.last.waiting, 1);
        assert_int_equal(f->seen.last.permits, 1);
        assert_null(f->seen.last.foreign_value);
    }
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    f->seen.count = 0;
    assert_int_equal(hf_lock_info(f->a, "job", note, &f->seen, &f->error), HF_OK);
    assert_int_equal(f->seen.count, 0);
    lease = must_take(f, f->a, "job", NULL);
    assert_int_equal(hf_lock_info(f->b, "job", note, &f->seen, NULL), HF_OK);
    assert_string_equal(f->seen.label, "the-holder");
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hf_lock_info(f->a, "", note, NULL, &f->error), HF_INVALID);
    assert_int_equal(hf_lock_info(f->a, "x", NULL, NULL, &f->error), HF_INVALID);
}

static void foreign_holders_are_shown_escaped(void **state)
{
    struct fixture *f = *state;
    freeReplyObject(hft_server_ask(f->server, "SET hf:{theirs} %b", "some\nbody", (size_t)9));
    assert_int_equal(hf_lock_info(f->a, "theirs", note, &f->seen, &f->error), HF_OK);
    assert_int_equal(f->seen.count, 1);
    assert_non_null(strstr(f->seen.foreign, "some"));
    assert_null(strchr(f->seen.foreign, '\n'));
    assert_string_equal(f->seen.host, "");
    assert_string_equal(f->seen.label, "");
    freeReplyObject(hft_server_ask(f->server, "SETRANGE hf:{big} 20000000 x")); /* above max_value_bytes */
    assert_int_equal(hf_lock_info(f->a, "big", note, &f->seen, &f->error), HF_OK);
    assert_int_equal(f->seen.count, 2);
    freeReplyObject(hft_server_ask(f->server, "RPUSH hf:{list} a"));
    hf_status status = hf_lock_info(f->a, "list", note, &f->seen, &f->error);
    assert_int_equal(status, HF_FOREIGN);
    bool had;
    assert_int_equal(hf_lock_break(f->a, "list", &had, &f->error), HF_FOREIGN);
    assert_false(had);
    assert_int_equal(hft_lock_exists(f->server, "list"), 1);
}

static void list_finds_held_locks_by_glob_and_nothing_else(void **state)
{
    enum { LOCKS = 30 };
    struct fixture *f = *state;
    struct hft_page page = {.data = "x"};
    hf_lease *leases[LOCKS];
    hf_value *value;
    char name[32];
    for (int i = 0; i < LOCKS; i++) {
        (void)snprintf(name, sizeof name, i % 3 == 0 ? "a%d" : i % 3 == 1 ? "{t}b%d" : "c}%d", i);
        leases[i] = must_take(f, f->a, name, NULL);
    }
    assert_int_equal(hf_fetch(f->a, "hf:page", HF_FETCH(.load = hft_load, .arg = &page), &value, NULL), HF_OK);
    hf_value_free(value);
    freeReplyObject(hft_server_ask(f->server, "SET something else"));
    assert_int_equal(hf_lock_list(f->b, NULL, note, &f->seen, &f->error), HF_OK);
    assert_int_equal(f->seen.count, LOCKS);
    static const char *const globs[] = {"a*", "{t}b*", "c}*", "*", "nothing*", "a[0-2]"};
    static const int counts[] = {10, 10, 10, 30, 0, 1};
    for (size_t i = 0; i < 6; i++) {
        f->seen.count = 0;
        assert_int_equal(hf_lock_list(f->b, globs[i], note, &f->seen, &f->error), HF_OK);
        if (f->seen.count != counts[i])
            fail_msg("%s: %d, not %d", globs[i], f->seen.count, counts[i]);
    }
    f->seen.count = 0;
    f->seen.stop_after = 5;
    assert_int_equal(hf_lock_list(f->b, NULL, note, &f->seen, &f->error), HF_OK);
    assert_int_equal(f->seen.count, 5);
    for (int i = 0; i < LOCKS; i++)
        assert_int_equal(hf_lease_release(leases[i], NULL), HF_OK);
    assert_int_equal(hf_lock_list(f->b, NULL, NULL, NULL, &f->error), HF_INVALID);
}

/* They listen, as processes do that are stopped, and say nothing. */
static void a_list_waits_for_many_holders_that_do_not_answer_together(void **state)
{
    enum { LOCKS = 32 };
    struct fixture *f = *state;
    redisContext *deaf = redisConnectUnix(hft_server_socket(f->server));
    hf_lease *lease = must_take(f, f->a, "answered", NULL);
    for (int i = 0; i < LOCKS; i++) {
        freeReplyObject(redisCommand(deaf, "SUBSCRIBE hf:c:%032x", i));
        freeReplyObject(hft_server_ask(f->server, "SET hf:{%d} hf1:%032x:1:0123456789abcdef:host:1 PX 60000", i, i));
    }
    int64_t from_ns = hfi_now(&hfi_boottime);
    assert_int_equal(hf_lock_list(f->b, "[0-9]*", note, &f->seen, &f->error), HF_OK);
    int64_t took_ms = (hfi_now(&hfi_boottime) - from_ns) / HFI_MS;
    assert_int_equal(f->seen.count, LOCKS);
    assert_string_equal(f->seen.host, "host");
    assert_int_equal(f->seen.last.held_ms, -1);
    if (took_ms >= LOCKS * 200 / 2)
        fail_msg("each of %d holders was waited for: %lld ms", LOCKS, (long long)took_ms);
    assert_int_equal(hf_lock_list(f->b, "answered", note, &f->seen, &f->error), HF_OK);
    assert_string_equal(f->seen.label, "the-holder");
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    redisFree(deaf);
}

struct line {
    int count, stop_after;
    int64_t pids[4], waits_ms[4];
};

static bool stand_in_line(const hf_waiter *waiter, void *arg)
{
    struct line *line = arg;
    line->pids[line->count % 4] = waiter->pid;
    line->waits_ms[line->count++ % 4] = waiter->waits_ms;
    assert_true(waiter->size >= sizeof *waiter);
    assert_true(waiter->host[0] != 0);
    return line->count != line->stop_after;
}

static void waiters_are_listed_in_the_order_of_their_grants(void **state)
{
    struct fixture *f = *state;
    struct line line = {.count = 0};
    struct hft_taker first, second;
    hf_lease *none;
    assert_int_equal(hf_lock_waiters(f->a, "line", stand_in_line, &line, &f->error), HF_OK);
    assert_int_equal(line.count, 0);
    freeReplyObject(hft_server_ask(f->server, "SET hf:{line} x PX 60000"));
    hft_take(&first, f->a, "line", HF_LOCK(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_queued(f->server, "line") == 1);
    int64_t began_ms = hft_boottime_ms();
    HFT_UNTIL_TRUE(hft_boottime_ms() > began_ms + 20);
    hft_take(&second, f->b, "line", HF_LOCK(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_queued(f->server, "line") == 2);
    assert_int_equal(hf_lock_waiters(f->a, "line", stand_in_line, &line, &f->error), HF_OK);
    assert_int_equal(line.count, 2);
    assert_int_equal(line.pids[0], getpid());
    assert_int_equal(line.pids[1], getpid());
    assert_in_range(line.waits_ms[0], 20, 60000);
    assert_in_range(line.waits_ms[1], 0, line.waits_ms[0]);
    line = (struct line){.stop_after = 1};
    assert_int_equal(hf_lock_waiters(f->b, "line", stand_in_line, &line, &f->error), HF_OK);
    assert_int_equal(line.count, 1);
    freeReplyObject(hft_server_ask(f->server, "ACL SETUSER timeless on >pw ~* &* +@all -time"));
    hf_client *timeless = hft_client(f->server, HF_CLIENT(.user = "timeless", .password = "pw"));
    assert_int_equal(hf_lock_acquire(timeless, "line", HF_LOCK(.wait_ms = 1), &none, NULL), HF_TIMEOUT); /* makes a clock */
    f->error = (hf_error){.status = HF_OK};
    assert_int_equal(hf_lock_waiters(timeless, "line", stand_in_line, &line, &f->error), HF_OK);
    assert_int_equal(f->error.status, HF_OK);
    (void)hf_client_close(timeless, NULL);
    freeReplyObject(hft_server_ask(f->server, "DEL hf:{line}"));
    assert_int_equal(hft_taken(&first), HF_OK);
    assert_int_equal(hf_lease_release(first.lease, NULL), HF_OK);
    assert_int_equal(hft_taken(&second), HF_OK);
    assert_int_equal(hf_lease_release(second.lease, NULL), HF_OK);
    freeReplyObject(hft_server_ask(f->server, "SET hf:queue:{line}:hf:{line} x"));
    assert_int_equal(hf_lock_waiters(f->a, "line", stand_in_line, &line, &f->error), HF_FOREIGN);
    freeReplyObject(hft_server_ask(f->server, "DEL hf:queue:{line}:hf:{line}"));
    assert_int_equal(hf_lock_waiters(f->a, "line", NULL, &line, &f->error), HF_INVALID);
    assert_int_equal(hf_lock_waiters(f->a, "", stand_in_line, &line, &f->error), HF_INVALID);
}

static void a_broken_lock_goes_to_a_waiter_once_the_holder_has_stopped(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    bool had = false;
    hf_client *operator= hft_client(f->server, NULL);
    hf_lease *lease = must_take(f, f->a, "job", NULL);
    hft_take(&taker, f->b, "job", HF_LOCK(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_queued(f->server, "job") == 1);
    int64_t began_ms = hft_boottime_ms();
    assert_int_equal(hf_lock_break(operator, "job", &had, &f->error), HF_OK);
    assert_true(had);
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_true(hft_boottime_ms() - began_ms < 5000); /* long before the lease would have ended */
    assert_false(hf_lease_is_valid(lease));
    assert_true(hf_lease_fence(taker.lease) > hf_lease_fence(lease));
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
    assert_int_equal(hf_lease_verify(taker.lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    freeReplyObject(hft_server_ask(f->server, "SET hf:{theirs} x"));
    assert_int_equal(hf_lock_break(operator, "theirs", &had, &f->error), HF_OK);
    assert_true(had);
    assert_int_equal(hf_lock_break(operator, "free", &had, &f->error), HF_OK);
    assert_false(had);
    assert_int_equal(hf_client_close(operator, NULL), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

static void a_lock_broken_by_force_is_granted_to_a_waiter_at_once(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    bool had = false;
    hf_client *operator= hft_client(f->server, NULL);
    hf_lease *lease = must_take(f, f->a, "job", HF_LOCK(.lease_ms = 60000));
    HFT_UNTIL_TRUE(hft_is_connected(f->a)); /* who does not hear finds out later, and why not */
    assert_int_equal(hf_lock_break_now(operator, "job", &had, &f->error), HF_OK);
    assert_true(had);
    hf_lease *next = must_take(f, f->b, "job", HF_LOCK(.lease_ms = 60000)); /* a try */
    HFT_UNTIL_TRUE(!hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_reason(lease), HF_REASON_REVOKED);
    assert_true(hf_lease_fence(next) > hf_lease_fence(lease));
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
    hft_take(&taker, f->a, "job", HF_LOCK(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_queued(f->server, "job") == 1);
    assert_int_equal(hf_lock_break_now(operator, "job", &had, &f->error), HF_OK);
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_int_equal(hf_lease_release(next, NULL), HF_LOST);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    assert_int_equal(hf_lock_break_now(operator, "job", &had, &f->error), HF_OK);
    assert_false(had);
    assert_int_equal(hf_client_close(operator, NULL), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

static void a_lock_of_a_server_that_is_full_is_broken_too(void **state)
{
    struct fixture *f = *state;
    bool had = false;
    hf_lease *lease = must_take(f, f->a, "job", HF_LOCK(.lease_ms = 60000));
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET maxmemory 1"));
    if (hf_lock_break(f->b, "job", &had, &f->error) != HF_OK)
        fail_msg("%s", f->error.message);
    assert_true(had);
    HFT_UNTIL_TRUE(!hf_lease_is_valid(lease));
    HFT_UNTIL_TRUE(hft_lock_exists(f->server, "job") == 0);
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
}

struct findings {
    int count, bad, stop_after;
    char text[8192];
};

static bool collect(const hf_finding *finding, void *arg)
{
    struct findings *findings = arg;
    size_t used = strlen(findings->text);
    findings->count++;
    findings->bad += finding->level <= HF_LOG_WARNING;
    if (finding->level <= HF_LOG_WARNING && finding->remedy[0] == 0)
        findings->bad += 100;
    (void)snprintf(findings->text + used, sizeof findings->text - used, "%d %s | %s\n", (int)finding->level, finding->what,
                   finding->remedy);
    return findings->count != findings->stop_after;
}

static void check_finds_nothing_wrong_with_a_good_server_and_names_what_is_bad(void **state)
{
    struct fixture *f = *state;
    struct findings findings = {.count = 0};
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "PUBLISH probe x") == 0); /* the subscribers had time to come up */
    do {
        memset(&findings, 0, sizeof findings);
        assert_int_equal(hf_client_check(f->a, collect, &findings, &f->error), HF_OK);
    } while (findings.bad != 0 && (strstr(findings.text, "control channel") != NULL ||
                                   strstr(findings.text, "events are not known yet") != NULL));
    if (findings.bad != 0)
        fail_msg("%s", findings.text);
    assert_non_null(strstr(findings.text, "round trip"));
    assert_non_null(strstr(findings.text, "keyspace events are in force"));
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET maxmemory-policy allkeys-lru"));
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET maxmemory 100mb"));
    freeReplyObject(hft_server_ask(f->server, "PEXPIRE hf:fence 100000"));
    memset(&findings, 0, sizeof findings);
    assert_int_equal(hf_client_check(f->a, collect, &findings, &f->error), HF_OK);
    assert_non_null(strstr(findings.text, "allkeys-lru"));
    assert_non_null(strstr(findings.text, "CONFIG SET maxmemory-policy noeviction"));
    findings = (struct findings){.stop_after = 2};
    assert_int_equal(hf_client_check(f->a, collect, &findings, &f->error), HF_OK);
    assert_int_equal(findings.count, 2);
    assert_int_equal(hf_client_check(f->a, NULL, NULL, &f->error), HF_INVALID);
    hft_server_kill(f->server);
    assert_int_equal(hf_client_check(f->b, collect, &findings, &f->error) == HF_OK, false);
    hft_server_restart(f->server);
}

static void rights_that_are_missing_are_found(void **state)
{
    struct fixture *f = *state;
    struct findings findings = {.count = 0};
    freeReplyObject(hft_server_ask(f->server, "ACL SETUSER part on >pw ~* &* +@all -scan -publish -info"));
    hf_client *client = hft_client(f->server, HF_CLIENT(.user = "part", .password = "pw"));
    assert_int_equal(hf_client_check(client, collect, &findings, &f->error), HF_OK);
    assert_non_null(strstr(findings.text, "SCAN is not allowed"));
    assert_non_null(strstr(findings.text, "PUBLISH is not allowed"));
    assert_true(findings.bad < 100);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static void statistics_count_what_happened(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "x"};
    hf_stats stats;
    hf_value *value;
    hf_lease *none;
    hf_client_stats(f->a, &stats);
    assert_int_equal(stats.acquired + stats.held + stats.waiting, 0);
    hf_lease *lease = must_take(f, f->a, "one", NULL);
    hf_lease *second = must_take(f, f->a, "two", HF_LOCK(.lease_ms = 2400));
    assert_int_equal(hf_lock_acquire(f->b, "one", NULL, &none, NULL), HF_BUSY);
    assert_int_equal(hf_lock_acquire(f->b, "one", HF_LOCK(.wait_ms = 20), &none, NULL), HF_TIMEOUT);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hf_fetch(f->a, "page", HF_FETCH(.load = hft_load, .arg = &page), &value, NULL), HF_OK);
        hf_value_free(value);
    }
    HFT_WHILE_RENEWED(f->a, 2, hf_lease_is_valid(second));
    hf_client_stats(f->a, &stats);
    assert_int_equal(stats.acquired, 3); /* the fetch's lease is one */
    assert_int_equal(stats.held, 2);
    assert_int_equal(stats.released, 1);
    assert_int_equal(stats.loads, 1);
    assert_int_equal(stats.hits, 2);
    assert_true(stats.remote_commands > 4 && stats.remote_round_trips > 2);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    freeReplyObject(hft_server_ask(f->server, "DEL hf:{two}"));
    assert_int_equal(hf_lease_release(second, NULL), HF_LOST);
    hf_client_stats(f->a, &stats);
    assert_int_equal(stats.held, 0);
    assert_int_equal(stats.released, 3);
    hf_client_stats(f->b, &stats);
    assert_int_equal(stats.busy, 1);
    assert_int_equal(stats.timeouts, 1);
    assert_int_equal(stats.waiting, 0);
    uint64_t short_stats[2] = {7, 7}; /* an older program's */
    hf_client_stats_sized(f->a, (hf_stats *)(void *)short_stats, sizeof short_stats[0]);
    assert_int_equal(short_stats[0], 3);
    assert_int_equal(short_stats[1], 7);
}

/* With permits 0 a mutex. */
static void one_passes_it_to_another(struct fixture *f, int permits)
{
    struct hft_taker takers[2];
    for (int i = 0; i < 2; i++) {
        if (permits > 0)
            hft_take_permits(&takers[i], f->a, "passed", permits, permits, HF_LOCK(.wait_ms = 20000));
        else
            hft_take(&takers[i], f->a, "passed", HF_LOCK(.wait_ms = 20000));
        if (i == 0)
            assert_int_equal(hft_taken(&takers[0]), HF_OK);
    }
    HFT_UNTIL_TRUE(hft_waiting_here(f->a, "passed") == 1);
    assert_int_equal(hf_lease_release(takers[0].lease, NULL), HF_OK);
    assert_int_equal(hft_taken(&takers[1]), HF_OK);
    assert_int_equal(hf_lease_release(takers[1].lease, NULL), HF_OK);
}

static void what_threads_pass_to_each_other_is_counted_as_local(void **state)
{
    struct fixture *f = *state;
    hf_stats stats;
    for (int permits = 0; permits < 2; permits++) {
        one_passes_it_to_another(f, permits);
        hf_client_stats(f->a, &stats);
        assert_int_equal(stats.acquired, 2 * (permits + 1));
        assert_int_equal(stats.acquired_locally, permits + 1);
    }
}

static void the_dump_shows_every_lock_and_no_token(void **state)
{
    struct fixture *f = *state;
    char *text = NULL, token[200];
    size_t size = 0;
    hf_lease *lease = must_take(f, f->a, "dumped", NULL);
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(hf_client_dump(f->a, out), HF_OK);
    (void)fclose(out);
    hft_held_by(f->server, "dumped", token, sizeof token);
    assert_non_null(strstr(text, "dumped"));
    assert_non_null(strstr(text, "the-holder"));
    assert_non_null(strstr(text, "a wake-up takes"));
    assert_null(strstr(text, token));
    free(text);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hf_client_dump(f->a, NULL), HF_INVALID);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(info_tells_who_where_since_when_and_how_many_wait),
        TEST(foreign_holders_are_shown_escaped),
        TEST(list_finds_held_locks_by_glob_and_nothing_else),
        TEST(a_list_waits_for_many_holders_that_do_not_answer_together),
        TEST(waiters_are_listed_in_the_order_of_their_grants),
        TEST(a_broken_lock_goes_to_a_waiter_once_the_holder_has_stopped),
        TEST(a_lock_broken_by_force_is_granted_to_a_waiter_at_once),
        TEST(a_lock_of_a_server_that_is_full_is_broken_too),
        TEST(check_finds_nothing_wrong_with_a_good_server_and_names_what_is_bad),
        TEST(rights_that_are_missing_are_found),
        TEST(statistics_count_what_happened),
        TEST(what_threads_pass_to_each_other_is_counted_as_local),
        TEST(the_dump_shows_every_lock_and_no_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
