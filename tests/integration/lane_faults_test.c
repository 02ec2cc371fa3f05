/* SPDX-License-Identifier: MIT */
/* lane_faults_test.c - a server that freezes, dies, closes, is demoted or answers late: every command has exactly
 * one outcome, the right one, and the lane is dialled again by itself. */
#include "pool/lane_private.h"
#include "pool/times.h"
#include "tests/support/pool_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct hft_server *server;
static struct hft_pool kit;
static struct hfi_lane *lane;

static int start(void **state)
{
    hf_error error;
    (void)state;
    server = hft_server_start("enable-debug-command yes"); /* for cut_all */
    hft_pool_init(&kit, server);
    kit.settings.connect_ms = 10000;
    if (hft_pool_open(&kit, NULL, &error) != HF_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        return -1;
    }
    lane = hfi_pool_lane(kit.pool, HFI_LOCK_LANE, 0);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    hft_pool_close(&kit);
    hft_server_stop(server);
    return 0;
}

static void assert_answers(struct hfi_lane *which)
{
    struct hft_call call;
    hft_ask(which, &call, "PING");
    assert_int_equal(call.outcome, HFI_ANSWERED);
    assert_string_equal(call.reply->str, "PONG");
    hft_call_done(&call);
}

static void ask_server(const char *words)
{
    redisReply *reply = hft_server_ask(server, words);
    freeReplyObject(reply);
}

static void a_command_without_an_answer_ends_at_its_time_and_all_that_rode_with_it(void **state)
{
    struct hft_call calls[10];
    hf_error error;
    (void)state;
    assert_answers(lane);
    hft_server_freeze(server);
    int64_t until_ns = hft_in_ms(50);
    for (int i = 0; i < 10; i++)
        hft_post(lane, &calls[i], hft_command("PING", i == 5 ? until_ns : hft_in_ms(20000)));
    for (int i = 0; i < 10; i++) {
        hft_wait(lane, &calls[i]);
        assert_true(hft_now() >= until_ns);
        assert_int_equal(calls[i].outcome, HFI_UNANSWERED);
        assert_int_equal(calls[i].dones, 1);
        hft_call_done(&calls[i]);
    }
    HFT_UNTIL(hfi_lane_is_down(lane)); /* away until it answers a dial */
    hft_post(lane, &calls[0], hft_command("PING", HFI_NEVER));
    HFT_UNTIL(hft_is_over(&calls[0])); /* by the listener, if it still has the role in which it took the lane down */
    assert_int_equal(calls[0].outcome, HFI_UNSENT);
    hft_call_done(&calls[0]);
    assert_int_equal(hfi_pool_why_down(kit.pool, &error), HF_UNAVAILABLE);
    assert_non_null(strstr(error.message, hft_server_socket(server)));
    hft_server_thaw(server);
    HFT_UNTIL(hfi_lane_is_up(lane));
    assert_answers(lane);
}

/* ---- cuts ---- */

/* Cuts all connections of the kit; right afterwards the server is busy for a while. With a frozen server: as soon as
 * it is thawed. */
static redisContext *cut_all(const char *busy_s, bool freeze)
{
    int written = 0;
    redisContext *cutter = redisConnectUnix(hft_server_socket(server));
    assert_true(cutter != NULL && cutter->err == 0);
    redisReply *clients = hft_server_ask(server, "CLIENT LIST");
    for (const char *line = clients->str; *line != 0; line = strchr(line, '\n') + 1)
        if (memmem(line, strcspn(line, "\n"), " name=pool-kit ", 15) != NULL)
            (void)redisAppendCommand(cutter, "CLIENT KILL ID %lld", strtoll(line + 3, NULL, 10));
    freeReplyObject(clients);
    (void)redisAppendCommand(cutter, "DEBUG SLEEP %s", busy_s);
    if (freeze)
        hft_server_freeze(server);
    while (!written)
        assert_int_equal(redisBufferWrite(cutter, &written), REDIS_OK);
    return cutter;
}

static void a_command_listed_while_the_lane_dials_waits_for_the_connection(void **state)
{
    struct hft_call kept, late;
    (void)state;
    assert_answers(lane);
    struct hfi_lane *renewals = hfi_pool_lane(kit.pool, HFI_RESERVED_LANE, 0);
    unsigned cuts = hfi_lane_cuts(lane), renewals_cuts = hfi_lane_cuts(renewals);
    redisContext *cutter = cut_all("1", false);
    HFT_UNTIL(hfi_lane_cuts(lane) > cuts && hfi_lane_cuts(renewals) > renewals_cuts);
    hft_post(lane, &kept, hft_command("PING", hft_in_ms(20000)));
    hft_post(lane, &late, hft_command("PING", hft_in_ms(20)));
    hft_sleep(&late);
    assert_int_equal(late.outcome, HFI_UNSENT);
    hft_wait(lane, &kept);
    assert_int_equal(kept.outcome, HFI_ANSWERED);
    hft_call_done(&kept);
    hft_call_done(&late);
    redisFree(cutter);
}

static void commands_that_a_blocked_socket_kept_go_out_on_the_next_connection(void **state)
{
    static char value[8 * 1024 * 1024];
    struct hft_call big, small;
    struct hfi_lane *values = hfi_pool_lane(kit.pool, HFI_VALUE_LANE, 0);
    (void)state;
    assert_answers(values);
    memset(value, 'x', sizeof value);
    const char *const argv[] = {"SET", "big", value};
    const size_t sizes[] = {3, 3, sizeof value};
    struct hfi_command *set = hfi_command_new(3, argv, sizes);
    set->until_ns = hft_in_ms(20000);
    redisContext *cutter = cut_all("0", true);
    hft_post(values, &big, set); /* the socket takes a part of it */
    hft_post(values, &small, hft_command("INCR small", hft_in_ms(20000)));
    hft_server_thaw(server);
    hft_wait(values, &big);
    assert_int_equal(big.outcome, HFI_UNANSWERED);
    hft_wait(values, &small);
    assert_int_equal(small.outcome, HFI_ANSWERED);
    assert_int_equal(small.reply->integer, 1);
    hft_call_done(&big);
    hft_call_done(&small);
    redisFree(cutter);
}

static void of_a_silent_server_the_unsent_comes_back_at_once(void **state)
{
    struct hft_call silent, behind;
    (void)state;
    assert_answers(lane);
    hft_server_freeze(server);
    hft_post(lane, &silent, hft_command("PING", hft_in_ms(20)));
    hft_wait(lane, &silent);
    assert_int_equal(silent.outcome, HFI_UNANSWERED);
    hft_post(lane, &behind, hft_command("PING", hft_in_ms(60000)));
    hft_sleep(&behind); /* UNSENT at once: the lane is known to be silent */
    assert_int_equal(behind.outcome, HFI_UNSENT);
    hft_server_thaw(server);
    HFT_UNTIL(hfi_lane_is_up(lane));
    hft_call_done(&silent);
    hft_call_done(&behind);
}

static void
a_killed_server_leaves_commands_unanswered_then_unsent_and_a_restarted_one_is_found_again(void **state)
{
    struct hft_call call, unsent;
    struct hfi_pool_counts before, after;
    (void)state;
    assert_answers(lane);
    hfi_pool_count(kit.pool, &before);
    hft_server_freeze(server);
    hft_post(lane, &call, hft_command("PING", hft_in_ms(20000)));
    hft_server_kill(server);
    hft_wait(lane, &call);
    assert_int_equal(call.outcome, HFI_UNANSWERED);
    hft_call_done(&call);
    HFT_UNTIL(hfi_lane_is_down(lane));
    hft_post(lane, &unsent, hft_command("PING", hft_in_ms(20000)));
    assert_true(hft_is_over(&unsent));
    assert_int_equal(unsent.outcome, HFI_UNSENT);
    hft_call_done(&unsent);
    hft_server_restart(server);
    HFT_UNTIL(hfi_lane_is_up(lane));
    assert_answers(lane);
    hfi_pool_count(kit.pool, &after);
    assert_true(after.reconnects > before.reconnects);
}

static bool all_up(void)
{
    return hfi_lane_is_up(lane) && hfi_lane_is_up(hfi_pool_lane(kit.pool, HFI_RESERVED_LANE, 0));
}

struct traffic {
    pthread_t thread;
    int number, answered, wrong, lost;
};
static _Atomic(bool) traffic_over;

static void *make_traffic(void *arg)
{
    struct traffic *me = arg;
    while (!atomic_load(&traffic_over)) {
        struct hft_call call;
        char words[64];
        (void)snprintf(words, sizeof words, "ECHO %d-%d", me->number, me->answered + me->lost);
        hft_ask(lane, &call, words);
        if (call.outcome != HFI_ANSWERED)
            me->lost++;
        else if (call.reply->str != NULL && strcmp(call.reply->str, words + 5) == 0)
            me->answered++;
        else
            me->wrong++;
        hft_call_done(&call);
    }
    return NULL;
}

static void connections_that_are_cut_under_load_never_mix_up_replies(void **state)
{
    struct traffic all[16] = {0};
    int answered = 0, ups = atomic_load(&kit.owner.ups);
    (void)state;
    assert_answers(lane);
    atomic_store(&traffic_over, false);
    for (int i = 0; i < 16; i++) {
        all[i].number = i;
        assert_int_equal(pthread_create(&all[i].thread, NULL, make_traffic, &all[i]), 0);
    }
    for (int cut = 0; cut < 8; cut++) {
        int before = atomic_load(&kit.owner.ups);
        ask_server("CLIENT KILL TYPE normal SKIPME yes");
        HFT_UNTIL(atomic_load(&kit.owner.ups) > before);
    }
    atomic_store(&traffic_over, true);
    for (int i = 0; i < 16; i++) {
        (void)pthread_join(all[i].thread, NULL);
        assert_int_equal(all[i].wrong, 0);
        answered += all[i].answered;
    }
    assert_true(atomic_load(&kit.owner.ups) >= ups + 8);
    assert_true(answered > 0);
    HFT_UNTIL(all_up()); /* the last cut may have met a handshake: that dial has failed, and the next is due later */
    assert_answers(lane);
}

static void an_idle_connection_that_is_cut_costs_no_command(void **state)
{
    (void)state;
    assert_answers(lane);
    int ups = atomic_load(&kit.owner.ups);
    ask_server("CLIENT KILL TYPE normal SKIPME yes");
    HFT_UNTIL(atomic_load(&kit.owner.ups) >= ups + 2); /* the reserved lane too */
    assert_answers(lane);
}

static void a_slow_socket_takes_a_long_command_in_pieces(void **state)
{
    static char value[8 * 1024 * 1024];
    struct hft_call big, small;
    struct hfi_lane *values = hfi_pool_lane(kit.pool, HFI_VALUE_LANE, 0);
    (void)state;
    assert_answers(values);
    const char *const argv[] = {"SET", "big", value};
    const size_t sizes[] = {3, 3, sizeof value};
    for (int reader = 0; reader < 2; reader++) {
        struct hfi_command *set = hfi_command_new(3, argv, sizes);
        hft_server_freeze(server);
        set->until_ns = hft_in_ms(20000);
        hft_post(values, &big, set);
        hft_post(values, &small, hft_command("STRLEN big", hft_in_ms(20000)));
        hft_server_thaw(server);
        if (reader)
            hft_wait(values, &small);
        hft_sleep(&small); /* the listener writes and reads what is left */
        assert_int_equal(small.outcome, HFI_ANSWERED);
        assert_int_equal(small.reply->integer, sizeof value);
        hft_sleep(&big);
        assert_int_equal(big.outcome, HFI_ANSWERED);
        hft_call_done(&big);
        hft_call_done(&small);
    }
}

static void a_read_only_reply_is_delivered_and_ends_the_connection(void **state)
{
    struct hft_call call;
    (void)state;
    assert_answers(lane);
    ask_server("REPLICAOF 127.0.0.1 1");
    hft_ask(lane, &call, "SET a 1");
    assert_int_equal(call.outcome, HFI_ANSWERED);
    assert_int_equal(call.reply->type, REDIS_REPLY_ERROR);
    assert_memory_equal(call.reply->str, "READONLY", 8);
    hft_call_done(&call);
    HFT_UNTIL(hfi_lane_is_down(lane)); /* no replica passes the handshake */
    ask_server("REPLICAOF NO ONE");
    HFT_UNTIL(hfi_lane_is_up(lane));
    assert_answers(lane);
}

static void after_idling_a_second_a_lock_lane_asks_whether_the_server_is_still_a_primary(void **state)
{
    struct hft_pool aging; /* its clock is put forward, so it has idled */
    struct hft_call call;
    (void)state;
    hft_pool_init(&aging, server);
    assert_int_equal(hft_pool_open(&aging, NULL, NULL), HF_OK);
    struct hfi_lane *own = hfi_pool_lane(aging.pool, HFI_LOCK_LANE, 0);
    assert_answers(own);
    ask_server("REPLICAOF 127.0.0.1 1");
    assert_answers(own); /* has not idled */
    (void)atomic_fetch_add(&aging.owner.ahead_ns, 2000 * HFI_MS);
    hft_post(own, &call, hft_command("PING", hft_in_ms(20000)));
    hft_wait(own, &call);
    assert_int_equal(call.outcome, HFI_UNANSWERED); /* although the replica has answered */
    hft_call_done(&call);
    HFT_UNTIL(hfi_lane_is_down(own));
    ask_server("REPLICAOF NO ONE");
    HFT_UNTIL(hfi_lane_is_up(own));
    (void)atomic_fetch_add(&aging.owner.ahead_ns, 2000 * HFI_MS);
    int64_t roles = hft_server_calls(server, "role");
    hft_post(own, &call, hft_command("PING", hft_in_ms(20000)));
    hft_wait(own, &call);
    assert_int_equal(call.outcome, HFI_ANSWERED);
    hft_call_done(&call);
    assert_true(hft_server_calls(server, "role") > roles); /* lanes that are still being dialled ask too */
    hft_pool_close(&aging);
}

/* Which of two servers is the former one only ROLE tells: its handshake may have been under way for long. */
static void a_lane_that_meets_another_server_asks_for_its_role_again(void **state)
{
    struct hft_server *another = hft_server_start(NULL);
    struct hft_pool moving;
    struct hft_call call;
    char link[200], to[220];
    (void)state;
    (void)snprintf(link, sizeof link, "%s.link", hft_server_socket(server));
    (void)snprintf(to, sizeof to, "%s.new", link);
    assert_int_equal(symlink(hft_server_socket(server), link), 0);
    assert_int_equal(symlink(hft_server_socket(another), to), 0);
    hft_pool_init(&moving, server);
    moving.settings.endpoint.path = link;
    assert_int_equal(hft_pool_open(&moving, NULL, NULL), HF_OK);
    struct hfi_lane *own = hfi_pool_lane(moving.pool, HFI_LOCK_LANE, 0);
    hft_ask(own, &call, "CLIENT ID");
    int64_t id = call.reply->integer;
    hft_call_done(&call);
    int64_t began_ns = hft_now();
    assert_int_equal(rename(to, link), 0);
    freeReplyObject(hft_server_ask(server, "CLIENT KILL ID %lld", (long long)id));
    HFT_UNTIL(atomic_load(&own->times_up) == 2 && hfi_lane_is_up(own));
    int64_t roles = hft_server_calls(another, "role");
    assert_answers(own);
    assert_answers(own);
    int64_t asked = hft_server_calls(another, "role") - roles;
    assert_true(asked > 0);
    if (hft_now() - began_ns < HFI_FIT_NS) /* else this test was kept from the CPU for so long that the role was due anyway */
        assert_int_equal(asked, 1);
    hft_pool_close(&moving);
    (void)unlink(link);
    hft_server_stop(another);
}

static void the_question_for_the_role_has_a_time_of_its_own(void **state)
{
    struct hft_pool aging;
    struct hft_call call;
    (void)state;
    hft_pool_init(&aging, server);
    aging.settings.command_ms = 200;
    assert_int_equal(hft_pool_open(&aging, NULL, NULL), HF_OK);
    struct hfi_lane *own = hfi_pool_lane(aging.pool, HFI_LOCK_LANE, 0);
    hft_post(own, &call, hft_command("PING", hft_in_ms(60000))); /* no earlier time is left to look at the lane */
    hft_wait(own, &call);
    assert_int_equal(call.outcome, HFI_ANSWERED);
    hft_call_done(&call);
    (void)atomic_fetch_add(&aging.owner.ahead_ns, 2000 * HFI_MS);
    hft_server_freeze(server);
    int64_t posted_ns = hft_now();
    hft_post(own, &call, hft_command("PING", hft_in_ms(20000)));
    hft_sleep(&call); /* until the listener finds that ROLE, in front of it, got no answer */
    assert_in_range(hft_now() - posted_ns, 200 * HFI_MS, 10000 * HFI_MS);
    assert_int_equal(call.outcome, HFI_UNANSWERED);
    hft_call_done(&call);
    hft_server_thaw(server);
    hft_pool_close(&aging);
    HFT_UNTIL(hfi_lane_is_up(lane));
}

static void renewals_leave_a_silent_reserved_lane_for_one_that_answers(void **state)
{
    struct hft_call stuck;
    struct hfi_lane *reserved = hfi_pool_lane(kit.pool, HFI_RESERVED_LANE, 0);
    (void)state;
    HFT_UNTIL(hfi_lane_is_up(reserved));
    assert_answers(reserved);
    assert_answers(lane);
    assert_ptr_equal(hfi_pool_answering(kit.pool, hft_now(), HFI_MS), reserved);
    hft_post(reserved, &stuck, hft_command("BLPOP nothing 0", INT64_MAX / 2));
    HFT_UNTIL(hfi_lane_waits_since_ns(reserved) != HFI_NEVER);
    int64_t later_ns = hft_now() + 50 * HFI_MS;
    assert_ptr_equal(hfi_pool_answering(kit.pool, later_ns, 20 * HFI_MS), lane);
    hft_sleep(&stuck);
    assert_int_equal(stuck.outcome, HFI_UNANSWERED);
    hft_call_done(&stuck);
    HFT_UNTIL(hfi_lane_is_up(reserved));
    assert_ptr_equal(hfi_pool_answering(kit.pool, hft_now(), HFI_MS), reserved);
}

static void a_refused_greeting_is_why_the_lane_is_down(void **state)
{
    hf_error error;
    (void)state;
    atomic_store(&kit.owner.refuse_greeting, true);
    ask_server("CLIENT KILL TYPE normal SKIPME yes");
    HFT_UNTIL(hfi_lane_is_down(lane));
    HFT_UNTIL(hfi_pool_why_down(kit.pool, &error) == HF_UNAVAILABLE &&
              strstr(error.message, "does not like"));
    atomic_store(&kit.owner.refuse_greeting, false);
    HFT_UNTIL(hfi_lane_is_up(lane));
    assert_answers(lane);
}

static bool nothing_fits(const struct hfi_command *command, const struct redisReply *reply)
{
    (void)command;
    return reply->type == REDIS_REPLY_ERROR;
}

/* Behind a MULTI that is refused any reply may come. */
static void what_comes_behind_a_refused_ping_has_to_fit_too(void **state)
{
    (void)state;
    for (int may_ping = 0; may_ping < 2; may_ping++) {
        struct hft_call call;
        struct hfi_command *command = hft_command("ECHO word", hft_in_ms(20000));
        ask_server(may_ping ? "ACL SETUSER default +ping" : "ACL SETUSER default -ping");
        assert_true(hfi_command_ping_first(command));
        hft_post(lane, &call, command);
        hft_wait(lane, &call);
        assert_int_equal(call.outcome, HFI_ANSWERED);
        assert_string_equal(call.reply->str, "word");
        hft_call_done(&call);
        command = hft_command("ECHO word", hft_in_ms(20000));
        command->validate = nothing_fits;
        assert_true(hfi_command_ping_first(command));
        hft_post(lane, &call, command);
        hft_wait(lane, &call);
        assert_int_equal(call.outcome, HFI_UNANSWERED);
        hft_call_done(&call);
        HFT_UNTIL(hfi_lane_is_up(lane));
    }
}

static void a_close_gives_a_frozen_server_its_time_and_no_more(void **state)
{
    struct hft_pool other;
    struct hft_call call;
    (void)state;
    hft_pool_init(&other, server);
    assert_int_equal(hft_pool_open(&other, NULL, NULL), HF_OK);
    struct hfi_lane *own = hfi_pool_lane(other.pool, HFI_LOCK_LANE, 0);
    hft_server_freeze(server);
    hft_post(own, &call, hft_command("PING", hft_in_ms(20000)));
    int64_t until_ns = hft_in_ms(100);
    assert_false(hfi_pool_close(other.pool, until_ns));
    assert_true(hft_now() >= until_ns);
    assert_int_equal(call.dones, 1);
    assert_int_equal(call.outcome, HFI_UNANSWERED);
    hft_call_done(&call);
    hfi_pool_free(other.pool);
    hft_server_thaw(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_without_an_answer_ends_at_its_time_and_all_that_rode_with_it),
        cmocka_unit_test(of_a_silent_server_the_unsent_comes_back_at_once),
        cmocka_unit_test(a_command_listed_while_the_lane_dials_waits_for_the_connection),
        cmocka_unit_test(
            a_killed_server_leaves_commands_unanswered_then_unsent_and_a_restarted_one_is_found_again),
        cmocka_unit_test(connections_that_are_cut_under_load_never_mix_up_replies),
        cmocka_unit_test(an_idle_connection_that_is_cut_costs_no_command),
        cmocka_unit_test(commands_that_a_blocked_socket_kept_go_out_on_the_next_connection),
        cmocka_unit_test(a_slow_socket_takes_a_long_command_in_pieces),
        cmocka_unit_test(a_read_only_reply_is_delivered_and_ends_the_connection),
        cmocka_unit_test(after_idling_a_second_a_lock_lane_asks_whether_the_server_is_still_a_primary),
        cmocka_unit_test(a_lane_that_meets_another_server_asks_for_its_role_again),
        cmocka_unit_test(the_question_for_the_role_has_a_time_of_its_own),
        cmocka_unit_test(renewals_leave_a_silent_reserved_lane_for_one_that_answers),
        cmocka_unit_test(a_refused_greeting_is_why_the_lane_is_down),
        cmocka_unit_test(what_comes_behind_a_refused_ping_has_to_fit_too),
        cmocka_unit_test(a_close_gives_a_frozen_server_its_time_and_no_more),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
