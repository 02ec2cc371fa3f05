/* SPDX-License-Identifier: MIT */
/* oracle_test.c - does the simulator's oracle object? Each test tells it a wrong history, or a right one that looks
 * wrong. */
#include "tests/sim/objections.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define FENCE INT64_C(3666000000000000000)
#define MS    INT64_C(1000000)

static void a_right_history_is_left_alone(void **state)
{
    (void)state;
    int first = sim_oracle_granted(&oracle, 0, FENCE, 1);
    int other = sim_oracle_granted(&oracle, 1, FENCE + 2048, 2);
    sim_oracle_looked(&oracle, first, true);
    sim_oracle_told_other(&oracle, first);
    sim_oracle_releases(&oracle, first);
    sim_oracle_released(&oracle, first, true, true);
    int second = sim_oracle_granted(&oracle, 0, FENCE + 4096, 3);
    sim_oracle_looked(&oracle, second, false);
    sim_oracle_told_lost(&oracle, second, false);
    sim_oracle_released(&oracle, second, false, false);
    sim_oracle_died(&oracle, other);
    assert_false(sim_oracle_is_held(&oracle, 0));
    sim_oracle_gap(&oracle, 0, "wait-of-a-message", 0, 5 * MS, 10 * MS);
    sim_oracle_gap(&oracle, 0, "wait-of-a-message", 0, 14 * MS, 10 * MS);
    sim_oracle_gap(&oracle, 0, "wait-of-a-message", -1, 20 * MS, 10 * MS);
    sim_oracle_gap(&oracle, 0, "wait-of-a-message", 0, 30 * MS, 10 * MS);
    sim_oracle_took(&oracle, "acquire", 10, 10);
    sim_oracle_stored(&oracle, 2, FENCE, -1, 5);
    sim_oracle_stored(&oracle, 2, FENCE + 1, -1, 5);
    assert_int_equal(objections, 0);
}

static void two_holders_of_one_name_are_one_too_many(void **state)
{
    (void)state;
    (void)sim_oracle_granted(&oracle, 0, FENCE, 1);
    (void)sim_oracle_granted(&oracle, 0, FENCE + 1, 2);
    assert_objects("one-holder", "two holders");
}

static void a_loss_of_data_excuses_only_holders_from_its_two_sides(void **state)
{
    (void)state;
    (void)sim_oracle_granted(&oracle, 0, FENCE, 1);
    sim_oracle_data_lost(&oracle, 10);
    int after = sim_oracle_granted(&oracle, 0, FENCE + 2048, 11);
    assert_int_equal(objections, 0);
    assert_int_equal(oracle.overlaps_excused, 1);
    sim_oracle_looked(&oracle, 0, false);
    (void)sim_oracle_granted(&oracle, 0, FENCE + 4096, 12);
    assert_objects("one-holder", "two holders");
    (void)after;
}

static void a_fence_that_does_not_rise_is_seen(void **state)
{
    (void)state;
    int first = sim_oracle_granted(&oracle, 0, FENCE, 1);
    sim_oracle_releases(&oracle, first);
    (void)sim_oracle_granted(&oracle, 0, FENCE, 2);
    assert_objects("fences-rise", "comes after");
}

static void a_counter_that_came_back_too_low_is_seen_after_a_loss_of_data_too(void **state)
{
    (void)state;
    int first = sim_oracle_granted(&oracle, 0, FENCE, 1);
    sim_oracle_releases(&oracle, first);
    sim_oracle_data_lost(&oracle, 10);
    (void)sim_oracle_granted(&oracle, 0, FENCE - 2048, 11);
    assert_objects("fences-rise", "comes after");
}

/* The grant counts as old at any time of its server's last gift: after a loss of data a hand-off may grant a token
 * once more. */
static void an_older_holders_local_pass_after_a_loss_of_data_is_no_inversion(void **state)
{
    (void)state;
    int first = sim_oracle_granted(&oracle, 0, FENCE, 1);
    sim_oracle_data_lost(&oracle, 10);
    (void)sim_oracle_granted(&oracle, 0, FENCE + 2048, 11);
    sim_oracle_releases(&oracle, first);
    int pass = sim_oracle_granted(&oracle, 0, FENCE + 1, 1);
    sim_oracle_releases(&oracle, pass);
    (void)sim_oracle_granted(&oracle, 0, FENCE + 2, 12);
    assert_int_equal(objections, 0);
    (void)sim_oracle_granted(&oracle, 0, FENCE - 2048, 13);
    assert_true(objections > 0);
}

static void a_short_fence_is_seen(void **state)
{
    (void)state;
    (void)sim_oracle_granted(&oracle, 0, 4096, 1);
    assert_objects("fences-rise", "19 digits");
}

static void a_lease_that_rises_from_the_dead_is_seen(void **state)
{
    (void)state;
    int grant = sim_oracle_granted(&oracle, 0, FENCE, 1);
    sim_oracle_looked(&oracle, grant, false);
    sim_oracle_looked(&oracle, grant, true);
    assert_objects("over-is-over", "valid again");
}

static void a_release_that_calls_a_lost_lease_ok_is_seen(void **state)
{
    (void)state;
    int grant = sim_oracle_granted(&oracle, 0, FENCE, 1);
    sim_oracle_released(&oracle, grant, false, true);
    assert_objects("release-is-honest", "its release says OK");
}

static void lost_comes_once_and_never_after_the_release(void **state)
{
    (void)state;
    int grant = sim_oracle_granted(&oracle, 0, FENCE, 1);
    sim_oracle_told_lost(&oracle, grant, false);
    sim_oracle_told_lost(&oracle, grant, false);
    assert_objects("lost-once", "twice");
    int next = sim_oracle_granted(&oracle, 1, FENCE, 1);
    sim_oracle_released(&oracle, next, true, true);
    sim_oracle_told_lost(&oracle, next, false);
    assert_objects("lost-once", "after its release");
}

static void lost_means_not_valid(void **state)
{
    (void)state;
    int grant = sim_oracle_granted(&oracle, 0, FENCE, 1);
    sim_oracle_told_lost(&oracle, grant, true);
    assert_objects("lost-once", "LOST and is valid");
}

static void nothing_is_told_after_the_end(void **state)
{
    (void)state;
    int grant = sim_oracle_granted(&oracle, 0, FENCE, 1);
    sim_oracle_told_lost(&oracle, grant, false);
    sim_oracle_told_other(&oracle, grant);
    assert_objects("lost-once", "after its end");
}

static void a_lock_that_nobody_has_for_too_long_is_seen(void **state)
{
    (void)state;
    sim_oracle_gap(&oracle, 0, "wait-of-a-message", 0, 5 * MS, 10 * MS);
    sim_oracle_gap(&oracle, 0, "wait-of-a-message", 0, 16 * MS, 10 * MS);
    assert_objects("wait-of-a-message", "nobody has it");
}

static void whoever_is_passed_by_in_the_queue_is_seen(void **state)
{
    (void)state;
    sim_oracle_queued(&oracle, 0, 1, 10, true);
    sim_oracle_queued(&oracle, 0, 2, 20, true);
    sim_oracle_queued(&oracle, 0, 3, 30, true);
    sim_oracle_left(&oracle, 0, 1);
    sim_oracle_taken(&oracle, 0, 1, 10, false);
    assert_int_equal(objections, 0);
    sim_oracle_left(&oracle, 0, 3);
    sim_oracle_taken(&oracle, 0, 3, 30, false);
    assert_objects("fifo", "passed by");
}

static void a_newcomer_in_front_of_the_queue_is_seen(void **state)
{
    (void)state;
    sim_oracle_queued(&oracle, 0, 1, 10, true);
    sim_oracle_taken(&oracle, 0, 2, SIM_NO_TICKET, false);
    assert_objects("fifo", "passed by");
}

static void a_newcomer_after_a_death_may_come_first(void **state)
{
    (void)state;
    sim_oracle_queued(&oracle, 0, 1, 10, true);
    sim_oracle_taken(&oracle, 0, 2, SIM_NO_TICKET, true);
    assert_int_equal(objections, 0);
    assert_int_equal(oracle.passed_excused, 1);
}

static void a_waiter_whom_nobody_hears_may_be_passed_by_and_only_that_one(void **state)
{
    (void)state;
    sim_oracle_queued(&oracle, 0, 1, 10, true);
    sim_oracle_queued(&oracle, 0, 2, 20, true);
    oracle.queue[0][0].heard = false;
    sim_oracle_left(&oracle, 0, 2);
    sim_oracle_taken(&oracle, 0, 2, 20, false);
    assert_int_equal(objections, 0);
    sim_oracle_queued(&oracle, 0, 2, 20, false);
    sim_oracle_taken(&oracle, 0, 3, 30, false);
    assert_objects("fifo", "passed by");
}

static void who_is_new_stands_behind_all_and_who_was_there_gets_its_place_back(void **state)
{
    (void)state;
    sim_oracle_queued(&oracle, 0, 1, 10, true);
    sim_oracle_queued(&oracle, 0, 2, 20, true);
    sim_oracle_flushed(&oracle, 0);
    sim_oracle_queued(&oracle, 0, 2, 20, false);
    sim_oracle_queued(&oracle, 0, 1, 10, false);
    assert_int_equal(objections, 0);
    sim_oracle_queued(&oracle, 0, 3, 15, true);
    assert_objects("fifo", "stands before 2");
}

static void a_valid_lease_whose_key_is_anothers_is_seen(void **state)
{
    (void)state;
    int grant = sim_oracle_granted(&oracle, 0, FENCE, 1);
    sim_oracle_backed(&oracle, grant, true, 2);
    sim_oracle_looked(&oracle, grant, false);
    sim_oracle_backed(&oracle, grant, false, 3);
    assert_int_equal(objections, 0);
    grant = sim_oracle_granted(&oracle, 1, FENCE, 4);
    sim_oracle_backed(&oracle, grant, false, 5);
    assert_objects("valid-means-key", "not its own");
}

static void a_key_may_be_gone_after_a_loss_of_data_or_a_break_since_the_grant(void **state)
{
    (void)state;
    int lost = sim_oracle_granted(&oracle, 0, FENCE, 1), broken = sim_oracle_granted(&oracle, 1, FENCE, 1);
    sim_oracle_data_lost(&oracle, 2);
    sim_oracle_backed(&oracle, lost, false, 2);
    sim_oracle_broken(&oracle, 1, 3);
    sim_oracle_backed(&oracle, broken, false, 3);
    assert_int_equal(objections, 0);
    int later = sim_oracle_granted(&oracle, 2, FENCE, 4);
    sim_oracle_broken(&oracle, 1, 5);
    sim_oracle_backed(&oracle, later, false, 6);
    assert_objects("valid-means-key", "not its own");
}

static void a_renewal_after_the_release_was_listed_is_seen(void **state)
{
    (void)state;
    sim_oracle_renewed(&oracle, 7, false);
    assert_int_equal(objections, 0);
    sim_oracle_renewed(&oracle, 7, true);
    assert_objects("no-renewal-after-release", "token 7");
}

static void who_never_comes_back_is_seen(void **state)
{
    (void)state;
    sim_oracle_hangs(&oracle, "thread", 3);
    assert_objects("no-hang", "thread 3");
}

static void a_key_that_lives_longer_than_any_lease_is_seen(void **state)
{
    (void)state;
    sim_oracle_lifetime(&oracle, "hf:{n0}", 100, 100);
    assert_int_equal(objections, 0);
    sim_oracle_lifetime(&oracle, "hf:{n0}", 101, 100);
    assert_objects("keys-end", "more than 100");
}

static void a_call_that_takes_too_long_is_seen(void **state)
{
    (void)state;
    sim_oracle_took(&oracle, "release", 11 * MS, 10 * MS);
    assert_objects("calls-in-time", "release takes");
}

static void who_asks_again_and_again_is_seen_and_many_calls_excuse_it(void **state)
{
    (void)state;
    for (int i = 0; i < 600; i++)
        sim_oracle_asks(&oracle, 1, 0, i * 100 * MS);
    for (int i = 0; i < 100; i++) {
        sim_oracle_calls(&oracle, 2, 0);
        for (int j = 0; j < 4; j++)
            sim_oracle_asks(&oracle, 2, 0, i * MS);
    }
    for (int i = 0; i < 20; i++)
        sim_oracle_asks(&oracle, 1, 1, 7);
    assert_int_equal(objections, 0);
    sim_oracle_asks(&oracle, 1, 1, 8);
    assert_objects("few-questions", "process 1 asks for name 1");
}

static void a_late_filler_is_seen(void **state)
{
    (void)state;
    sim_oracle_stored(&oracle, 3, FENCE + 1, -1, 5);
    sim_oracle_stored(&oracle, 3, FENCE, -1, 1);
    assert_objects("no-stale-store", "overwrites");
}

/* Unless its token has got the key once more since: a message gave it what was lost with the data. */
static void a_filler_whose_lease_went_with_the_data_is_late(void **state)
{
    (void)state;
    (void)sim_oracle_granted(&oracle, 3, FENCE, 5);
    sim_oracle_data_lost(&oracle, 10);
    (void)sim_oracle_granted(&oracle, 3, FENCE + 4096, 15);
    sim_oracle_stored(&oracle, 3, FENCE + 4096, 15, 15);
    sim_oracle_stored(&oracle, 3, FENCE, 16, 6);
    assert_int_equal(objections, 0);
    sim_oracle_stored(&oracle, 3, FENCE + 4096, 15, 15);
    sim_oracle_stored(&oracle, 3, FENCE, 5, 6);
    assert_objects("no-stale-store", "overwrites");
}

/* The later value, and the fact that this one was thrown away, are lost with the server that failed over. */
static void a_filler_whose_lease_came_back_with_the_data_is_not_late(void **state)
{
    (void)state;
    sim_oracle_stored(&oracle, 3, FENCE, -1, 5);
    sim_oracle_remembers(&oracle);
    sim_oracle_forgotten(&oracle, 3, 10);
    sim_oracle_stored(&oracle, 3, FENCE + 2, -1, 11);
    sim_oracle_goes_back(&oracle);
    sim_oracle_stored(&oracle, 3, FENCE + 1, -1, 9);
    assert_int_equal(objections, 0);
    sim_oracle_stored(&oracle, 3, FENCE, -1, 12);
    assert_objects("no-stale-store", "overwrites");
}

static void a_value_that_was_thrown_away_before_it_was_stored_is_seen(void **state)
{
    (void)state;
    sim_oracle_forgotten(&oracle, 3, 10);
    sim_oracle_stored(&oracle, 3, FENCE, -1, 9);
    assert_objects("no-stale-store", "thrown away");
}

static void a_value_that_is_fetched_after_it_was_thrown_away_is_seen(void **state)
{
    (void)state;
    sim_oracle_fetched(&oracle, 3, 1, 20, 2);
    sim_oracle_forgotten(&oracle, 3, 10);
    sim_oracle_fetched(&oracle, 3, 9, 12, 2);
    sim_oracle_fetched(&oracle, 3, 10, 13, 2);
    assert_int_equal(objections, 0);
    sim_oracle_fetched(&oracle, 3, 9, 13, 2);
    assert_objects("no-stale-value", "thrown away");
}

static void a_value_whose_tag_was_forgotten_is_thrown_away_and_its_lease_is_not(void **state)
{
    (void)state;
    sim_oracle_purged(&oracle, 3, 10);
    sim_oracle_stored(&oracle, 3, FENCE, -1, 10);
    assert_int_equal(objections, 0);
    sim_oracle_stored(&oracle, 3, FENCE + 1, -1, 9);
    assert_objects("no-stale-store", "thrown away");
}

static void a_key_that_stays_is_seen(void **state)
{
    (void)state;
    sim_oracle_left_behind(&oracle, "hf:{n0}");
    assert_objects("keys-end", "for ever");
}

static void a_key_that_stays_though_nobody_uses_it_is_seen(void **state)
{
    (void)state;
    sim_oracle_unused(&oracle, 0, 150 * MS, 150 * MS);
    assert_int_equal(objections, 0);
    sim_oracle_unused(&oracle, 0, 150 * MS + 1, 150 * MS);
    assert_objects("nothing-stays", "name 0");
}

static void a_process_that_passes_a_lock_on_while_others_wait_is_seen(void **state)
{
    (void)state;
    sim_oracle_passed(&oracle, 1, 100 * MS, 151 * MS, 51 * MS);
    assert_int_equal(objections, 0);
    sim_oracle_passed(&oracle, 1, 100 * MS, 152 * MS, 51 * MS);
    assert_objects("passes-end", "name 1");
}

static void a_call_that_outlives_its_cancel_is_seen(void **state)
{
    (void)state;
    sim_oracle_canceled(&oracle, "fetch", 2 * MS, 2 * MS);
    assert_int_equal(objections, 0);
    sim_oracle_canceled(&oracle, "fetch", 3 * MS, 2 * MS);
    assert_objects("cancel-in-time", "fetch");
}

static void those_that_share_a_lock_may_do_so_in_any_order(void **state)
{
    (void)state;
    int alone = sim_oracle_granted(&oracle, 0, FENCE, 1);
    sim_oracle_releases(&oracle, alone);
    int reader = sim_oracle_granted_shared(&oracle, 0, FENCE + 4096, 2);
    int other = sim_oracle_granted_shared(&oracle, 0, FENCE + 2048, 3);
    int rider = sim_oracle_granted_shared(&oracle, 0, FENCE + 2048, 3);
    sim_oracle_releases(&oracle, reader);
    sim_oracle_releases(&oracle, other);
    sim_oracle_releases(&oracle, rider);
    (void)sim_oracle_granted(&oracle, 0, FENCE + 6144, 4);
    assert_int_equal(objections, 0);
}

static void who_shares_a_lock_is_not_beside_one_that_has_it_alone(void **state)
{
    (void)state;
    (void)sim_oracle_granted_shared(&oracle, 0, FENCE, 1);
    (void)sim_oracle_granted(&oracle, 0, FENCE + 2048, 2);
    assert_objects("one-holder", "two holders");
    (void)begin(state);
    (void)sim_oracle_granted(&oracle, 0, FENCE, 1);
    (void)sim_oracle_granted_shared(&oracle, 0, FENCE + 2048, 2);
    assert_objects("one-holder", "two holders");
}

static void fences_rise_between_those_that_share_a_lock_and_those_that_do_not(void **state)
{
    (void)state;
    int reader = sim_oracle_granted_shared(&oracle, 0, FENCE, 1);
    sim_oracle_releases(&oracle, reader);
    int alone = sim_oracle_granted(&oracle, 0, FENCE - 2048, 2);
    assert_objects("fences-rise", "comes after");
    sim_oracle_releases(&oracle, alone);
    (void)begin(state);
    alone = sim_oracle_granted(&oracle, 0, FENCE, 1);
    sim_oracle_releases(&oracle, alone);
    (void)sim_oracle_granted_shared(&oracle, 0, FENCE - 2048, 2);
    assert_objects("fences-rise", "comes after");
}

/* ---- servers that take over from each other ---- */

#define S INT64_C(1000000000)

static int granted_in(int reign, int64_t fence, int64_t at)
{
    return sim_oracle_granted_in(&oracle, 0, fence, at, false, reign, reign, reign);
}

static void begin_with_several(void)
{
    oracle.by_several = true;
    oracle.apart = 1 * S;
}

static void where_no_failover_loses_a_lease_none_excuses_two_holders(void **state)
{
    (void)state;
    begin_with_several();
    oracle.lossless = true;
    (void)granted_in(0, FENCE, 1);
    sim_oracle_taken_over(&oracle);
    (void)granted_in(1, FENCE + 2048, 2);
    assert_objects("one-holder", "two holders");
}

static void where_no_failover_loses_a_lease_fences_rise_at_once(void **state)
{
    (void)state;
    begin_with_several();
    oracle.lossless = true;
    int first = granted_in(0, FENCE, 1);
    sim_oracle_died(&oracle, first);
    sim_oracle_taken_over(&oracle);
    (void)granted_in(1, FENCE - 2048, 2);
    assert_objects("fences-rise", "comes after");
}

static void where_no_failover_loses_a_lease_its_key_stays(void **state)
{
    (void)state;
    begin_with_several();
    oracle.lossless = true;
    int first = granted_in(0, FENCE, 1);
    sim_oracle_taken_over(&oracle);
    sim_oracle_backed(&oracle, first, false, 2);
    assert_objects("valid-means-key", "its key is not its own");
}

static void two_may_hold_until_the_older_one_has_met_the_newer_server(void **state)
{
    (void)state;
    begin_with_several();
    int first = granted_in(0, FENCE, 1);
    sim_oracle_taken_over(&oracle);
    (void)granted_in(1, FENCE + 2048, 2);
    sim_oracle_backed(&oracle, first, false, 3);
    sim_oracle_moves(&oracle, first, 1);
    assert_int_equal(objections, 0);
    sim_oracle_heard(&oracle, first, 1);
    assert_objects("overlap-ends", "has met that server");
    sim_oracle_backed(&oracle, first, false, 4); /* and its key is to be there */
    assert_int_equal(objections, 1);
}

static void who_has_met_the_newer_server_is_not_beside_one_of_that(void **state)
{
    (void)state;
    begin_with_several();
    int first = granted_in(0, FENCE, 1);
    sim_oracle_taken_over(&oracle);
    sim_oracle_moves(&oracle, first, 1);
    sim_oracle_heard(&oracle, first, 1);
    int second = granted_in(1, FENCE + 2048, 2);
    assert_objects("one-holder", "two holders");
    sim_oracle_died(&oracle, second);
    (void)granted_in(0, FENCE + 4096, 3); /* by the older one, to somebody who has not heard */
    assert_int_equal(objections, 0);
}

static void two_of_one_server_are_one_too_many_after_a_takeover_too(void **state)
{
    (void)state;
    begin_with_several();
    sim_oracle_taken_over(&oracle);
    (void)granted_in(0, FENCE, 1);
    (void)granted_in(0, FENCE + 2048, 2);
    assert_objects("one-holder", "two holders");
}

static void fences_of_two_servers_are_in_order_if_they_are_a_second_apart(void **state)
{
    (void)state;
    begin_with_several();
    int first = granted_in(0, FENCE, 1 * S);
    sim_oracle_died(&oracle, first);
    sim_oracle_taken_over(&oracle);
    sim_oracle_died(&oracle, granted_in(1, FENCE - 2048, 3 * S / 2));
    sim_oracle_died(&oracle, granted_in(1, FENCE - 1000, 2 * S));
    assert_int_equal(objections, 0);
    sim_oracle_died(&oracle, granted_in(1, FENCE - 500, 2 * S + 1));
    assert_objects("fences-rise", "comes after");
}

static void a_late_grant_of_the_older_server_is_in_order_too(void **state)
{
    (void)state;
    begin_with_several();
    sim_oracle_taken_over(&oracle);
    sim_oracle_died(&oracle, granted_in(1, FENCE, 1 * S));
    sim_oracle_died(&oracle, granted_in(0, FENCE - 2048, 2 * S));
    assert_int_equal(objections, 0);
    (void)granted_in(0, FENCE - 4096, 3 * S);
    assert_true(objections > 0);
}

static void a_grant_that_is_told_of_after_its_holder_has_moved_is_as_old_as_it_is(void **state)
{
    (void)state;
    begin_with_several();
    sim_oracle_taken_over(&oracle);
    (void)granted_in(0, FENCE + 2048, 2); /* to somebody who has not heard of the newer server */
    (void)sim_oracle_granted_in(&oracle, 0, FENCE, 1, false, 0, 1, 1);
    assert_int_equal(objections, 0);
    (void)sim_oracle_granted_in(&oracle, 0, FENCE + 1024, 3, false, 0, 1, 1);
    assert_true(objections > 0);
}

static void quarantine_excuses_nobody_who_holds_beside_another(void **state)
{
    (void)state;
    begin_with_several();
    oracle.strict = 1;
    int first = granted_in(0, FENCE, 1);
    sim_oracle_taken_over(&oracle);
    sim_oracle_backed(&oracle, first, false, 2); /* its key may be gone: nobody gets it meanwhile */
    assert_int_equal(objections, 0);
    (void)granted_in(1, FENCE + 2048, 3);
    assert_objects("one-holder", "two holders");
}

static void who_stays_with_a_former_primary_is_seen(void **state)
{
    (void)state;
    sim_oracle_heard_of(&oracle, 2, 7, 2, 7);
    sim_oracle_heard_of(&oracle, 1, 6, 2, 7); /* by a sentinel that is late */
    assert_int_equal(objections, 0);
    sim_oracle_heard_of(&oracle, 3, 8, 2, 7);
    assert_objects("leaves-at-once", "stays with 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_right_history_is_left_alone, begin),
        cmocka_unit_test_setup(two_holders_of_one_name_are_one_too_many, begin),
        cmocka_unit_test_setup(a_loss_of_data_excuses_only_holders_from_its_two_sides, begin),
        cmocka_unit_test_setup(a_fence_that_does_not_rise_is_seen, begin),
        cmocka_unit_test_setup(a_counter_that_came_back_too_low_is_seen_after_a_loss_of_data_too, begin),
        cmocka_unit_test_setup(an_older_holders_local_pass_after_a_loss_of_data_is_no_inversion, begin),
        cmocka_unit_test_setup(a_short_fence_is_seen, begin),
        cmocka_unit_test_setup(a_lease_that_rises_from_the_dead_is_seen, begin),
        cmocka_unit_test_setup(a_release_that_calls_a_lost_lease_ok_is_seen, begin),
        cmocka_unit_test_setup(lost_comes_once_and_never_after_the_release, begin),
        cmocka_unit_test_setup(lost_means_not_valid, begin),
        cmocka_unit_test_setup(nothing_is_told_after_the_end, begin),
        cmocka_unit_test_setup(a_lock_that_nobody_has_for_too_long_is_seen, begin),
        cmocka_unit_test_setup(whoever_is_passed_by_in_the_queue_is_seen, begin),
        cmocka_unit_test_setup(a_newcomer_in_front_of_the_queue_is_seen, begin),
        cmocka_unit_test_setup(a_newcomer_after_a_death_may_come_first, begin),
        cmocka_unit_test_setup(a_waiter_whom_nobody_hears_may_be_passed_by_and_only_that_one, begin),
        cmocka_unit_test_setup(who_is_new_stands_behind_all_and_who_was_there_gets_its_place_back, begin),
        cmocka_unit_test_setup(a_valid_lease_whose_key_is_anothers_is_seen, begin),
        cmocka_unit_test_setup(a_key_may_be_gone_after_a_loss_of_data_or_a_break_since_the_grant, begin),
        cmocka_unit_test_setup(a_renewal_after_the_release_was_listed_is_seen, begin),
        cmocka_unit_test_setup(who_never_comes_back_is_seen, begin),
        cmocka_unit_test_setup(a_key_that_lives_longer_than_any_lease_is_seen, begin),
        cmocka_unit_test_setup(a_call_that_takes_too_long_is_seen, begin),
        cmocka_unit_test_setup(who_asks_again_and_again_is_seen_and_many_calls_excuse_it, begin),
        cmocka_unit_test_setup(a_late_filler_is_seen, begin),
        cmocka_unit_test_setup(a_filler_whose_lease_went_with_the_data_is_late, begin),
        cmocka_unit_test_setup(a_filler_whose_lease_came_back_with_the_data_is_not_late, begin),
        cmocka_unit_test_setup(a_value_that_was_thrown_away_before_it_was_stored_is_seen, begin),
        cmocka_unit_test_setup(a_value_whose_tag_was_forgotten_is_thrown_away_and_its_lease_is_not, begin),
        cmocka_unit_test_setup(a_value_that_is_fetched_after_it_was_thrown_away_is_seen, begin),
        cmocka_unit_test_setup(a_key_that_stays_is_seen, begin),
        cmocka_unit_test_setup(a_key_that_stays_though_nobody_uses_it_is_seen, begin),
        cmocka_unit_test_setup(a_process_that_passes_a_lock_on_while_others_wait_is_seen, begin),
        cmocka_unit_test_setup(a_call_that_outlives_its_cancel_is_seen, begin),
        cmocka_unit_test_setup(those_that_share_a_lock_may_do_so_in_any_order, begin),
        cmocka_unit_test_setup(who_shares_a_lock_is_not_beside_one_that_has_it_alone, begin),
        cmocka_unit_test_setup(fences_rise_between_those_that_share_a_lock_and_those_that_do_not, begin),
        cmocka_unit_test_setup(where_no_failover_loses_a_lease_none_excuses_two_holders, begin),
        cmocka_unit_test_setup(where_no_failover_loses_a_lease_fences_rise_at_once, begin),
        cmocka_unit_test_setup(where_no_failover_loses_a_lease_its_key_stays, begin),
        cmocka_unit_test_setup(two_may_hold_until_the_older_one_has_met_the_newer_server, begin),
        cmocka_unit_test_setup(who_has_met_the_newer_server_is_not_beside_one_of_that, begin),
        cmocka_unit_test_setup(two_of_one_server_are_one_too_many_after_a_takeover_too, begin),
        cmocka_unit_test_setup(fences_of_two_servers_are_in_order_if_they_are_a_second_apart, begin),
        cmocka_unit_test_setup(a_late_grant_of_the_older_server_is_in_order_too, begin),
        cmocka_unit_test_setup(a_grant_that_is_told_of_after_its_holder_has_moved_is_as_old_as_it_is, begin),
        cmocka_unit_test_setup(quarantine_excuses_nobody_who_holds_beside_another, begin),
        cmocka_unit_test_setup(who_stays_with_a_former_primary_is_seen, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
