/* SPDX-License-Identifier: MIT */
/* permits_test.c - a semaphore's grants in a process, in schedules that need several of them. (Linked so that hfi_perturb is
 * the one below.) */
#include "tests/scene/scene.h"

#include <holdfast/semaphore.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *stop_at; /* this mark, once; NULL: nowhere */

void __wrap_hfi_perturb(const char *place);

void __wrap_hfi_perturb(const char *place)
{
    if (stop_at == NULL || strcmp(place, stop_at) != 0)
        return;
    stop_at = NULL;
    sim_stop(50 * HFI_MS);
}

struct call { /* for permits of "s": one that waits, or a pending */
    struct sim_process *process;
    int limit, permits;
    hf_lock_options options;
    hf_lease *lease;
    hf_pending *pending;
    hf_status status;
    int dones;
};

static void acquire(void *arg)
{
    struct call *call = arg;
    call->status = hf_semaphore_acquire(call->process->client, "s", call->limit, call->permits, &call->options, &call->lease, NULL);
}

static hf_lease *must_have_to(struct sim_process *process, int limit, int permits, int64_t linger_ms)
{
    struct call call = {.process = process, .limit = limit, .permits = permits,
                        .options = *HF_LOCK(.wait_ms = 5000, .linger_ms = linger_ms)};
    hft_run(process, acquire, &call);
    assert_int_equal(call.status, HF_OK);
    return call.lease;
}

static hf_lease *must_have(struct sim_process *process, int limit, int permits)
{
    return must_have_to(process, limit, permits, 0);
}

static void note_done(hf_pending *pending, void *arg)
{
    struct call *call = arg;
    (void)pending;
    call->dones++;
}

static void start(void *arg)
{
    struct call *call = arg;
    call->status = hf_semaphore_acquire_start(call->process->client, "s", call->limit, call->permits, &call->options, note_done, call,
                                              &call->pending, NULL);
}

static void must_start(struct call *call, struct sim_process *process, int limit, int permits)
{
    *call = (struct call){.process = process, .limit = limit, .permits = permits, .options = *HF_LOCK(.wait_ms = HF_FOREVER)};
    hft_run(process, start, call);
    assert_int_equal(call->status, HF_OK);
}

static void take(void *arg)
{
    struct call *call = arg;
    call->status = hf_pending_take(call->pending, &call->lease, NULL);
}

static hf_status taken(struct call *call)
{
    hft_run(call->process, take, call);
    return call->status;
}

struct closing {
    struct sim_process *process;
    hf_status status;
    bool over;
};

static void close_client(void *arg)
{
    struct closing *closing = arg;
    closing->status = hf_client_close(closing->process->client, NULL);
    closing->over = true;
}

/* Two wait at the last of three grants. The close has visited the first one when the permit of one of them is handed over: the
 * other one must not go on waiting at the first. */
static void a_close_reaches_who_waits_at_the_last_grant(void **state)
{
    (void)state;
    static struct closing closing;
    struct call first, second;
    struct sim_process *a = hft_process(NULL), *b = hft_process(NULL);
    hf_lease *theirs = must_have(b, 4, 1);
    (void)must_have(a, 4, 1);
    hf_lease *last = must_have(a, 4, 1);
    (void)must_have(a, 4, 1);
    assert_int_equal(hft_released(a, last), HF_OK);
    (void)must_have(b, 4, 1);
    must_start(&first, a, 4, 1);
    must_start(&second, a, 4, 1);
    hft_pass_ms(10);
    stop_at = "visited-to-next";
    closing = (struct closing){.process = a};
    sim_thread_start(a, close_client, &closing);
    HFT_UNTIL(stop_at == NULL);
    assert_int_equal(hft_released(b, theirs), HF_OK);
    HFT_UNTIL(closing.over);
    a->client = NULL;
    assert_int_equal(closing.status, HF_OK);
    assert_int_equal(first.dones, 1);
    assert_int_equal(second.dones, 1);
    assert_int_equal(taken(&first), HF_CLOSED);
    assert_int_equal(taken(&second), HF_CLOSED);
    hft_pass_ms(10);
    assert_string_equal(hft_answered("ZRANGE hf:sem:{s} 1 -1"), ""); /* the other one of theirs */
}

/* The server tells a process once, for one of its tokens: that one may have been given back meanwhile. */
static void all_grants_hear_of_a_waiter_though_the_token_that_was_named_is_over(void **state)
{
    (void)state;
    struct sim_process *a = hft_process(NULL);
    char token[200] = "";
    hf_lease *over = must_have(a, 4, 1);
    (void)sscanf(hft_answered("ZRANGE hf:sem:{s} 0 -1"), "$%*d %199[^#]", token);
    hf_lease *lingering = must_have_to(a, 4, 1, 60000);
    assert_int_equal(hft_released(a, over), HF_OK);
    assert_int_equal(hft_released(a, lingering), HF_OK);
    hft_pass_ms(10);
    assert_string_not_equal(hft_answered("ZRANGE hf:sem:{s} 0 -1"), "");
    hft_publish(a, "R %s hf:sem:{s}", token);
    hft_pass_ms(10);
    assert_string_equal(hft_answered("ZRANGE hf:sem:{s} 0 -1"), "");
}

/* All permits go from b to as many calls of a: the first one has a grant, the others another. */
static void share_out(struct sim_process *b, struct sim_process *a, struct call *calls, int permits)
{
    hf_lease *all = must_have(b, permits, permits);
    for (int i = 0; i < permits; i++)
        must_start(&calls[i], a, permits, 1);
    hft_pass_ms(10);
    assert_int_equal(hft_released(b, all), HF_OK);
    hft_pass_ms(10);
    for (int i = 0; i < permits; i++)
        assert_int_equal(taken(&calls[i]), HF_OK);
}

/* The server does not know the script when the first of two releases comes, and has learned it when the second one does. Then the
 * second one is carried out first, unless that is refused. */
static void begin_to_overtake(struct sim_process *a, struct call *calls, enum sim_refusal refusal, struct hft_actor *first,
                              struct hft_actor *second)
{
    int refused = sim_server->scripts_refused;
    memset(sim_server->scripts_known, 0, sizeof sim_server->scripts_known);
    hft_give_back(first, a, calls[1].lease);
    HFT_UNTIL(sim_server->scripts_refused > refused);
    memset(sim_server->scripts_known, 1, sizeof sim_server->scripts_known);
    sim_server_refuse(refusal);
    hft_give_back(second, a, calls[2].lease);
}

/* The answers are 60 ms under way. */
static void overtake_unread(struct sim_process *a, struct call *calls, enum sim_refusal refusal, struct hft_actor *first,
                            struct hft_actor *second)
{
    hft_stall_down(hft_lock_wire(a), 60);
    begin_to_overtake(a, calls, refusal, first, second);
    hft_pass_ms(5);
}

static void overtake(struct sim_process *a, struct sim_process *b, int permits)
{
    static struct hft_actor first, second;
    struct call calls[4];
    share_out(b, a, calls, permits);
    begin_to_overtake(a, calls, SIM_TAKES_ALL, &first, &second);
    HFT_UNTIL(first.ended != 0 && second.ended != 0);
    assert_int_equal(second.status, HF_OK);
    assert_int_equal(first.status, HF_OK);
    for (int i = 0; i < permits; i++)
        if (i != 1 && i != 2)
            assert_int_equal(hft_released(a, calls[i].lease), HF_OK);
}

static void a_release_that_another_one_has_overtaken_is_no_loss(void **state)
{
    (void)state;
    struct sim_process *a = hft_process(NULL), *b = hft_process(NULL);
    overtake(a, b, 4); /* by one that keeps a permit */
    overtake(a, b, 3); /* by the last one */
}

static void break_it(void *arg)
{
    struct sim_process *operator = arg;
    assert_int_equal(hf_semaphore_break(operator->client, "s", NULL, NULL), HF_OK);
}

/* The grant is over, and a later grant of the same lock is given back before the first answer is read. It says nothing of the
 * first one's permits, neither that they are lost nor that they were given back. */
static void another_grant_tells_nothing_of_an_overtaken_release(void **state)
{
    (void)state;
    static struct hft_actor first, second, third;
    for (int gone = 0; gone < 2; gone++) {
        (void)hft_scene_begin(NULL);
        struct sim_process *a = hft_process(HF_CLIENT(.lanes = 1)), *b = hft_process(NULL);
        struct call calls[3], next;
        share_out(b, a, calls, 3);
        if (gone)
            hft_tell("DEL hf:sem:{s}");
        overtake_unread(a, calls, SIM_TAKES_ALL, &first, &second);
        hf_lease *some = must_have(b, 3, gone ? 3 : 2);
        must_start(&next, a, 3, 1);
        hft_pass_ms(5);
        assert_int_equal(hft_released(b, some), HF_OK);
        hft_pass_ms(5);
        assert_int_equal(taken(&next), HF_OK);
        hft_give_back(&third, a, next.lease);
        HFT_UNTIL(first.ended != 0 && second.ended != 0 && third.ended != 0);
        assert_int_equal(first.status, gone ? HF_LOST : HF_OK);
        assert_int_equal(second.status, gone ? HF_LOST : HF_OK);
        assert_int_equal(third.status, HF_OK);
    }
}

/* The break is told to nobody but the overtaken release: those who still are inside learn of it by the renewal that follows. */
static void an_overtaken_release_tells_the_others_of_a_break(void **state)
{
    (void)state;
    static struct hft_actor first, second;
    struct sim_process *a = hft_process(HF_CLIENT(.lanes = 1)), *b = hft_process(NULL);
    struct call calls[4];
    share_out(b, a, calls, 4);
    hft_stall_down(hft_subscriber_wire(a), 60000);
    overtake_unread(a, calls, SIM_TAKES_ALL, &first, &second);
    hft_run(b, break_it, b);
    HFT_UNTIL(first.ended != 0 && second.ended != 0);
    assert_int_equal(first.status, HF_OK);
    hft_pass_ms(50);
    assert_false(hft_is_valid(a, calls[3].lease));
}

/* Nobody knows whether the later one was carried out, so nobody knows why the earlier one finds nothing. */
static void what_one_that_has_failed_may_have_overtaken_is_unknown(void **state)
{
    (void)state;
    static struct hft_actor first, second;
    for (int round = 0; round < 4; round++) {
        int permits = round < 2 ? 4 : 3; /* the later one keeps a permit, or is the last */
        bool is_broken = round % 2 == 1;
        (void)hft_scene_begin(NULL);
        struct sim_process *a = hft_process(HF_CLIENT(.lanes = 1)), *b = hft_process(NULL);
        struct call calls[4];
        share_out(b, a, calls, permits);
        hft_stall_down(hft_subscriber_wire(a), 60000);
        overtake_unread(a, calls, SIM_NO_DISK, &first, &second);
        sim_server_refuse(SIM_TAKES_ALL);
        if (is_broken)
            hft_run(b, break_it, b);
        else
            hft_tell("DEL hf:sem:{s}");
        HFT_UNTIL(first.ended != 0 && second.ended != 0);
        assert_int_equal(second.status, HF_UNKNOWN);
        assert_int_equal(first.status, HF_UNKNOWN);
    }
}

/* Nothing overtakes where the server knows the script. */
static void permits_that_are_gone_are_lost_though_others_are_given_back_meanwhile(void **state)
{
    (void)state;
    static struct hft_actor givers[3];
    struct sim_process *a = hft_process(HF_CLIENT(.lanes = 1)), *b = hft_process(NULL);
    struct call calls[3];
    share_out(b, a, calls, 3);
    hft_tell("DEL hf:sem:{s}");
    hft_stall_down(hft_lock_wire(a), 50);
    for (int i = 0; i < 3; i++) {
        hft_give_back(&givers[i], a, calls[i].lease);
        hft_pass_ms(5);
    }
    HFT_UNTIL(givers[0].ended != 0 && givers[1].ended != 0 && givers[2].ended != 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(givers[i].status, HF_LOST);
}

/* Where the server knows the script for neither of two releases, the first one is carried out first. */
static void permits_that_are_gone_or_broken_are_lost_though_the_script_is_not_known(void **state)
{
    (void)state;
    static struct hft_actor givers[2];
    for (int broken = 0; broken < 2; broken++) {
        (void)hft_scene_begin(NULL);
        struct sim_process *a = hft_process(HF_CLIENT(.lanes = 1)), *b = hft_process(NULL);
        struct call calls[4];
        share_out(b, a, calls, 4);
        hft_stall_down(hft_subscriber_wire(a), 60000);
        if (broken)
            hft_run(b, break_it, b);
        else
            hft_tell("DEL hf:sem:{s}");
        memset(sim_server->scripts_known, 0, sizeof sim_server->scripts_known);
        int refused = sim_server->scripts_refused;
        for (int i = 0; i < 2; i++)
            hft_give_back(&givers[i], a, calls[i + 1].lease);
        HFT_UNTIL(givers[0].ended != 0 && givers[1].ended != 0);
        assert_int_equal(sim_server->scripts_refused, refused + 2);
        assert_int_equal(givers[0].status, HF_LOST);
        assert_int_equal(givers[1].status, HF_LOST);
    }
}

/* The last holder gives back what the break has left as well; that does not prove that the first one's release was carried out. */
static void a_broken_permit_is_lost_though_what_the_break_left_was_released_before(void **state)
{
    (void)state;
    static struct hft_actor first, last;
    struct sim_process *a = hft_process(HF_CLIENT(.lanes = 1)), *b = hft_process(NULL);
    struct call calls[3];
    share_out(b, a, calls, 3);
    hft_stall_down(hft_reserved_wire(a), 60000); /* the renewal that the break causes has no answer */
    hft_run(b, break_it, b);
    hft_pass_ms(1);
    begin_to_overtake(a, calls, SIM_TAKES_ALL, &first, &last);
    HFT_UNTIL(first.ended != 0 && last.ended != 0);
    assert_int_equal(last.status, HF_LOST);
    assert_int_equal(first.status, HF_LOST);
}

/* Whether the message of the break came or not, and whether it gives back the last permit of the grant or not. */
static void whoever_gives_back_broken_permits_is_told_of_the_break(void **state)
{
    (void)state;
    static struct hft_actor givers[3];
    for (int hears = 0; hears < 2; hears++) {
        (void)hft_scene_begin(NULL);
        struct sim_process *a = hft_process(NULL), *b = hft_process(NULL);
        struct call calls[3];
        share_out(b, a, calls, 3);
        if (hears)
            hft_stall_down(hft_reserved_wire(a), 60000); /* the renewal that it causes has no answer */
        else
            hft_stall_down(hft_subscriber_wire(a), 60000);
        hft_run(b, break_it, b);
        hft_pass_ms(1);
        for (int i = 2; i >= 0; i--) {
            hft_give_back(&givers[i], a, calls[i].lease);
            HFT_UNTIL(givers[i].ended != 0);
            assert_int_equal(givers[i].status, HF_LOST);
            assert_non_null(strstr(givers[i].error.message, "operator"));
        }
        hft_pass_ms(300);
        assert_string_equal(hft_key("hf:sem:{s}"), "");
    }
}

/* Nobody broke anything. */
static void a_made_up_break_makes_no_release_of_permits_a_loss(void **state)
{
    (void)state;
    static struct hft_actor giver;
    struct sim_process *a = hft_process(NULL), *b = hft_process(NULL);
    struct call calls[3];
    char members[1000], revoked[200];
    share_out(b, a, calls, 3);
    (void)snprintf(members, sizeof members, "%s", hft_answered("ZRANGE hf:sem:{s} 0 -1"));
    char *second = strstr(members, "#2"), *token = members;
    assert_non_null(second);
    *second = 0;
    for (char *next = members; (next = strstr(next, "hf1:")) != NULL; next++)
        token = next;
    hft_revoked(token, '1', revoked);
    hft_stall_down(hft_reserved_wire(a), 60000); /* the renewal that it causes has no answer */
    hft_publish(a, "B %s %s hf:sem:{s}", token, revoked);
    hft_pass_ms(1);
    hft_give_back(&giver, a, calls[2].lease);
    HFT_UNTIL(giver.ended != 0);
    assert_int_equal(giver.status, HF_OK);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_scene_begin, hft_scene_end)
    const struct CMUnitTest tests[] = {
        TEST(a_close_reaches_who_waits_at_the_last_grant),
        TEST(a_release_that_another_one_has_overtaken_is_no_loss),
        TEST(another_grant_tells_nothing_of_an_overtaken_release),
        TEST(an_overtaken_release_tells_the_others_of_a_break),
        TEST(what_one_that_has_failed_may_have_overtaken_is_unknown),
        TEST(permits_that_are_gone_are_lost_though_others_are_given_back_meanwhile),
        TEST(permits_that_are_gone_or_broken_are_lost_though_the_script_is_not_known),
        TEST(a_broken_permit_is_lost_though_what_the_break_left_was_released_before),
        TEST(whoever_gives_back_broken_permits_is_told_of_the_break),
        TEST(a_made_up_break_makes_no_release_of_permits_a_loss),
        TEST(all_grants_hear_of_a_waiter_though_the_token_that_was_named_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
