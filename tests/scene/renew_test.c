/* SPDX-License-Identifier: MIT */
/* renew_test.c - renewals: when they are sent, which ones in one command, and what their answers do to which lease. */
#include "tests/scene/scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TOKEN_MOST 160

/* What a holder was told last. */
struct told {
    int events;
    hf_event_kind kind;
    hf_reason reason;
};

static void note(hf_lease *lease, const hf_event *event, void *arg)
{
    struct told *told = arg;
    (void)lease;
    *told = (struct told){told->events + 1, event->kind, event->reason};
}

/* The first renewal of a lease of 3 s is due after 1 s. Its way to the server takes until the lease has been
 * released and acquired anew: the server answers "another's" about a token that is no longer used. */
static void an_answer_to_an_earlier_grants_renewal_says_nothing_of_the_current_one(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(NULL);
    hf_lease *first = hft_must_take(process, "n", HF_LOCK(.lease_ms = 3000));
    hft_stall_up(hft_reserved_wire(process), 1200);
    HFT_UNTIL(hft_listed(process, "renew") == 1);
    assert_int_equal(hft_released(process, first), HF_OK);
    hf_lease *second = hft_must_take(process, "n", HF_LOCK(.lease_ms = 3000));
    HFT_UNTIL(hft_ran("renew") == 1);
    hft_pass_ms(5);
    assert_int_equal(hft_stats(process).lost, 0);
    assert_true(hft_is_valid(process, second));
    assert_int_equal(hft_released(process, second), HF_OK);
}

/* If the server still has the earlier token's key, the answer moves the end of no other lease. */
static void an_earlier_grants_renewal_lengthens_nothing(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(NULL);
    hf_lease *first = hft_must_take(process, "n", HF_LOCK(.lease_ms = 3000));
    hft_pass_ms(950);
    hft_stall_down(hft_reserved_wire(process), 300);
    HFT_UNTIL(hft_ran("renew") == 1);
    assert_int_equal(hft_released(process, first), HF_OK);
    hf_lease *second = hft_must_take(process, "n", HF_LOCK(.lease_ms = 200));
    HFT_UNTIL(hft_stats(process).renewals == 1);
    sim.self = process;
    assert_true(hf_lease_remaining_ms(second) <= 200);
    sim.self = NULL;
}

static void a_lease_lives_by_its_renewals(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(NULL);
    hf_lease *lease = hft_must_take(process, "n", HF_LOCK(.lease_ms = 300));
    for (int i = 0; i < 300; i++) {
        hft_pass_ms(10);
        assert_true(hft_is_valid(process, lease));
        assert_string_not_equal(hft_key("hf:{n}"), "");
    }
    assert_in_range(hft_stats(process).renewals, 29, 32);
    assert_int_equal(hft_stats(process).renewals_failed, 0);
    assert_int_equal(hft_listed(process, "renew"), hft_stats(process).renewals);
}

static void the_value_at_the_server_is_the_reason_of_the_loss(void **state)
{
    (void)state;
    static const struct {
        const char *command;
        hf_reason reason;
    } cases[] = {{"DEL hf:{n}", HF_REASON_GONE}, {"SET hf:{n} theirs", HF_REASON_TAKEN}, {NULL, HF_REASON_REVOKED}};
    for (int i = 0; i < 3; i++) {
        struct told told = {0};
        (void)hft_scene_begin(NULL);
        struct sim_process *process = hft_process(NULL);
        hf_lease *lease = hft_must_take(process, "n", HF_LOCK(.lease_ms = 3000, .on_event = note, .arg = &told));
        if (cases[i].command != NULL) {
            hft_tell(cases[i].command);
        } else { /* an operator's break whose message is lost */
            char token[TOKEN_MOST], line[TOKEN_MOST + 40];
            hft_revoked(hft_key("hf:{n}"), '1', token);
            (void)snprintf(line, sizeof line, "SET hf:{n} %s KEEPTTL", token);
            hft_tell(line);
        }
        assert_true(hft_is_valid(process, lease));
        HFT_UNTIL(told.events == 1);
        assert_int_equal(told.kind, HF_EVENT_LOST);
        assert_int_equal(told.reason, cases[i].reason);
        assert_false(hft_is_valid(process, lease));
        assert_int_equal(hft_stats(process).renewals_failed, 1);
        assert_int_equal(hft_stats(process).renewals, 0);
        hft_pass_ms(2);
        assert_int_equal(hft_ran("release"), cases[i].command != NULL ? 1 : hft_ran("release"));
        hft_pass_ms(400);
        if (cases[i].command == NULL) /* the holder has had guard_ms to stop, and gives it back */
            assert_string_equal(hft_key("hf:{n}"), "");
    }
}

/* All messages are lost. A holder that learns from a renewal that another process waits does not keep the lease for
 * its own next thread. */
static void an_answer_tells_whether_another_process_waits(void **state)
{
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        struct hft_actor waiter;
        char token[TOKEN_MOST];
        (void)hft_scene_begin(NULL);
        struct sim_process *process = hft_process(NULL), *other = hft_process(NULL);
        sim_server->lost_percent = 100;
        hf_lease *lease = hft_must_take(process, "n", HF_LOCK(.lease_ms = 3000, .linger_ms = 5000));
        (void)snprintf(token, sizeof token, "%s", hft_key("hf:{n}"));
        if (waits)
            hft_take(&waiter, other, "n", HF_LOCK(.wait_ms = 5000));
        HFT_UNTIL(hft_stats(process).renewals == 1);
        assert_int_equal(hft_released(process, lease), HF_OK);
        hft_pass_ms(1);
        assert_int_equal(strcmp(hft_key("hf:{n}"), token) != 0, waits);
    }
}

/* An error for all names of a script, no answer, no connection: the renewal is repeated, and nothing is lost
 * meanwhile. */
static void a_renewal_that_fails_is_no_loss_and_is_tried_again(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(NULL);
    hf_lease *lease = hft_must_take(process, "n", HF_LOCK(.lease_ms = 3000));
    sim_server_refuse(SIM_NO_DISK);
    HFT_UNTIL(hft_stats(process).renewals_failed >= 3);
    assert_true(hft_is_valid(process, lease));
    sim_server_refuse(SIM_TAKES_ALL);
    HFT_UNTIL(hft_stats(process).renewals == 1);
    assert_true(hft_is_valid(process, lease));
    assert_int_equal(hft_stats(process).lost, 0);
}

static void leases_that_are_due_together_go_in_scripts_of_32(void **state)
{
    (void)state;
    char name[16];
    struct sim_process *process = hft_process(NULL);
    for (int i = 0; i < 75; i++) {
        (void)snprintf(name, sizeof name, "n%d", i);
        (void)hft_must_take(process, name, HF_LOCK(.lease_ms = 30000));
    }
    HFT_UNTIL(hft_stats(process).renewals == 75);
    print_message("75 leases in %d scripts\n", hft_listed(process, "renew"));
    assert_in_range(hft_listed(process, "renew"), 3, 6); /* three full ones, or those of some points of the grid */
    for (int i = 0; i < 75; i++) {
        (void)snprintf(name, sizeof name, "hf:{n%d}", i);
        assert_string_not_equal(hft_key(name), "");
    }
}

/* The reserved lane is silent for longer than the time between two attempts: another lane carries the renewals. */
static void a_silent_connection_keeps_no_renewal_to_itself(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(NULL);
    hf_lease *lease = hft_must_take(process, "n", HF_LOCK(.lease_ms = 3000));
    hft_stall_up(hft_reserved_wire(process), 60000);
    HFT_UNTIL(hft_stats(process).renewals == 1);
    assert_true(sim.now < 1300 * HFI_MS); /* due at 1 s; attempts are 150 ms apart */
    assert_true(hft_is_valid(process, lease));
    hft_pass_ms(10000);
    assert_true(hft_is_valid(process, lease));
}

/* All are renewed in one script. The reserved lane has been silent for 100 ms: not too long for the long leases,
 * whose attempts are 3 s apart, but for the short one. */
static void the_most_urgent_of_a_script_says_how_long_it_may_wait(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    for (int urgent = 0; urgent < 6; urgent++) { /* whichever is collected first */
        (void)hft_scene_begin(NULL);
        struct sim_process *other = hft_process(NULL), *process = hft_process(HF_CLIENT(.lanes = 1));
        (void)hft_must_take(other, "x", HF_LOCK(.lease_ms = 600000));
        (void)hft_must_take(process, "first", HF_LOCK(.lease_ms = 60000));
        hft_pass_ms(19900);
        hft_stall_up(hft_reserved_wire(process), 60000);
        HFT_UNTIL(hft_listed(process, "renew") == 1);
        hft_pass_ms(100);
        for (int i = 0; i < 6; i++)
            (void)hft_must_take(process, names[i], HF_LOCK(.lease_ms = i == urgent ? 500 : 60000));
        sim_server_step(100000);
        struct hft_actor trier; /* whose answer tells of the step */
        hft_take(&trier, process, "x", HF_LOCK(.wait_ms = 0));
        hft_pass_ms(5);
        assert_int_equal(trier.status, HF_BUSY);
        assert_int_equal(hft_stats(process).renewals, 7);
    }
}

/* A silence of 60 ms is short for leases whose attempts are 150 ms apart; one of 5 ms is short for every lease. */
static void a_slow_connection_is_kept(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(NULL);
    (void)hft_must_take(process, "a", HF_LOCK(.lease_ms = 3000));
    hft_pass_ms(50);
    (void)hft_must_take(process, "b", HF_LOCK(.lease_ms = 3000));
    struct sim_wire *wire = hft_reserved_wire(process);
    for (int i = 0; i < 10; i++) {
        int before = hft_listed(process, "renew");
        HFT_UNTIL(hft_listed(process, "renew") > before);
        hft_stall_up(wire, 80);
        hft_pass_ms(500);
    }
    assert_ptr_equal(hft_reserved_wire(process), wire);
    assert_true(wire->client_open);
}

/* Attempts are 5 to 10 ms apart: the connection is given up at the first attempt more than 10 ms after the
 * unanswered one. */
static void a_short_lease_gives_its_connection_10_ms(void **state)
{
    (void)state;
    int just_before = 0, just_after = 0;
    for (int64_t lease_ms = 100; lease_ms <= 200; lease_ms++) {
        (void)hft_scene_begin(NULL);
        struct sim_process *process = hft_process(NULL);
        (void)hft_must_take(process, "a", HF_LOCK(.lease_ms = lease_ms));
        struct sim_wire *wire = hft_reserved_wire(process);
        hft_stall_up(wire, 60000);
        HFT_UNTIL(hft_listed(process, "renew") == 1);
        int64_t silent = sim.now, waited = 0;
        for (int sent = 1; wire->client_open; sent++) {
            assert_true(waited <= 10 * HFI_MS);
            just_before += waited > 9 * HFI_MS;
            HFT_UNTIL(hft_listed(process, "renew") > sent);
            waited = sim.now - silent;
        }
        assert_true(waited > 99 * HFI_MS / 10); /* seen in steps of 50 us */
        just_after += waited < 11 * HFI_MS;
    }
    assert_true(just_before > 0 && just_after > 0);
}

/* The limit is three quarters of the time between two attempts, 9.5 and 10.5 ms of these leases, but at least 10 ms.
 * A forged message makes a holder send a renewal while another's has no answer yet. */
static void a_connection_is_given_up_when_its_silence_exceeds_the_limit_of_the_lease(void **state)
{
    (void)state;
    static const struct {
        int64_t lease_ms, told_us, asks_us;
    } cases[] = {{247, 9600, 9900}, {273, 10050, 10450}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char tokens[2][TOKEN_MOST];
        (void)hft_scene_begin(NULL);
        struct sim_process *process = hft_process(NULL);
        (void)hft_must_take(process, "a", HF_LOCK(.lease_ms = cases[i].lease_ms));
        (void)hft_must_take(process, "b", HF_LOCK(.lease_ms = cases[i].lease_ms));
        (void)snprintf(tokens[0], TOKEN_MOST, "%s", hft_key("hf:{a}"));
        (void)snprintf(tokens[1], TOKEN_MOST, "%s", hft_key("hf:{b}"));
        struct sim_wire *wire = hft_reserved_wire(process);
        hft_stall_up(wire, 60000);
        hft_publish(process, "B %s - hf:{a}", tokens[0]);
        HFT_UNTIL(hft_listed(process, "renew") == 1);
        int64_t silent = sim.now;
        sim_run(silent + cases[i].told_us * 1000);
        int before = hft_listed(process, "renew");
        hft_publish(process, "B %s - hf:{b}", tokens[1]);
        HFT_UNTIL(hft_listed(process, "renew") > before);
        assert_in_range((sim.now - silent) / 1000, cases[i].told_us, cases[i].asks_us);
        assert_true(wire->client_open);
        hft_pass_ms(15);
        assert_false(wire->client_open);
    }
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_scene_begin, hft_scene_end)
    const struct CMUnitTest tests[] = {
        TEST(an_answer_to_an_earlier_grants_renewal_says_nothing_of_the_current_one),
        TEST(an_earlier_grants_renewal_lengthens_nothing),
        TEST(a_lease_lives_by_its_renewals),
        TEST(the_value_at_the_server_is_the_reason_of_the_loss),
        TEST(an_answer_tells_whether_another_process_waits),
        TEST(a_renewal_that_fails_is_no_loss_and_is_tried_again),
        TEST(leases_that_are_due_together_go_in_scripts_of_32),
        TEST(a_silent_connection_keeps_no_renewal_to_itself),
        TEST(the_most_urgent_of_a_script_says_how_long_it_may_wait),
        TEST(a_slow_connection_is_kept),
        TEST(a_short_lease_gives_its_connection_10_ms),
        TEST(a_connection_is_given_up_when_its_silence_exceeds_the_limit_of_the_lease),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
