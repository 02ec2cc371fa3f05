/* SPDX-License-Identifier: MIT */
/* scripts_test.c - the scripts of locks by themselves, rule by rule and at the edge of each. */
#include "tests/scene/script_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* ---- acquire ---- */

static void a_free_lock_is_granted_with_its_time_and_a_block_of_fences(void **state)
{
    (void)state;
    SAYS(acquire, LOCK "A 1316 now try 7 0 900 5000", "GRANTED now F+1");
    IS("GET K", "A");
    IS("PTTL K", "1316");
    IS("GET F", "F+1");
}

static void an_acquire_after_its_time_limit_is_late(void **state)
{
    (void)state;
    SAYS(acquire, LOCK "A 1316 now-1 wait 7 0 900 5000", "LATE now");
    IS("GET K", "-");
    IS("GET F", "F+0");
    (void)tell("SET K A PX 500");
    SAYS(acquire, LOCK "A 1316 now-1 wait 7 0 900 5000", "LATE now");
    IS("PTTL K", "500");
}

static void a_key_of_another_type_is_nobodys_lock(void **state)
{
    (void)state;
    (void)tell("HSET K a b");
    SAYS(acquire, LOCK "A 1316 now wait 7 0 900 5000", "FOREIGN now lock");
    IS("ZRANGE Q 0 -1", "");
}

static void the_holder_keeps_it_and_its_key_lives_as_long_as_it_asks(void **state)
{
    (void)state;
    (void)tell("SET K A PX 1315");
    wait_in_line("AB");
    SAYS(acquire, LOCK "A 1316 now wait 7 0 900 5000", "KEPT now F+1");
    IS("PTTL K", "1316");
    IS("ZRANGE Q 0 -1", "B");
    IS("HGET W A", "-");
    SAYS(acquire, LOCK "A 1000 now wait 7 0 900 5000", "KEPT now F+2");
    IS("PTTL K", "1316"); /* and never less */
}

static void a_try_gets_the_holder_and_the_holder_gets_a_revoke(void **state)
{
    (void)state;
    (void)tell("SET K A PX 500");
    SAYS(acquire, LOCK "B 1316 now try 7 0 900 5000", "BUSY now 500 1 1 | A< R A K");
    IS("ZRANGE Q 0 -1", "");
    (void)tell("SET K X PX 400");
    SAYS(acquire, LOCK "B 1316 now try 7 0 900 5000", "BUSY now 400 0 -1");
    (void)tell("SET K Y");
    SAYS(acquire, LOCK "B 1316 now try 7 0 900 5000", "BUSY now -1 0 -1");
}

static void a_waiter_gets_a_place_a_record_and_a_minute(void **state)
{
    (void)state;
    (void)tell("SET K A PX 500");
    SAYS(acquire, LOCK "B 1316 now wait 7 0 900 5000", "QUEUED now 500 0 now 1 1 | A< R A K");
    IS("HGET W B", "now+5000 7 900");
    IS("PTTL Q", "60000");
    IS("PTTL W", "60000");
    SAYS(acquire, LOCK "C 1316 now wait 8 0 901 5000", "QUEUED now 500 1 now+1 1 -1"); /* one behind the last */
    (void)tell("ZADD Q 5 B");
    (void)tell("ZADD Q 6 C");
    SAYS(acquire, LOCK "D 1316 now wait 8 0 901 5000", "QUEUED now 500 2 now 1 -1"); /* never before the time */
    IS("ZRANGE Q 0 -1", "B C D");
}

static void a_place_behind_another_programs_lock_tells_nobody(void **state)
{
    (void)state;
    (void)tell("SET K X PX 500");
    SAYS(acquire, LOCK "B 1316 now wait 7 0 900 5000", "QUEUED now 500 0 now 0 -1");
}

static void a_repeated_acquire_keeps_its_place(void **state)
{
    (void)state;
    (void)tell("SET K D PX 500");
    wait_in_line("ABC");
    SAYS(acquire, LOCK "B 1316 now wait 77 2 900 5000", "QUEUED now 500 1 2 1 -1");
    IS("HGET W B", "now+5000 77 900");
    SAYS(acquire, LOCK "C 1316 now wait 78 0 900 5000", "QUEUED now 500 2 3 1 -1"); /* also if it does not know it */
    SAYS(acquire, LOCK "A 1316 now wait 78 1 900 5000", "QUEUED now 500 0 1 1 1 | D< R D K");
    (void)tell("ZREM Q B");
    SAYS(acquire, LOCK "B 1316 now wait 79 2 900 5000", "QUEUED now 500 1 2 1 -1"); /* and brings it back */
}

static void a_re_check_makes_room_where_those_in_front_are_silent(void **state)
{
    (void)state;
    (void)tell("SET K D PX 500");
    wait_in_line("ABC");
    (void)tell("HSET W A now-1_7_900");
    (void)tell("ZREM Q B");
    (void)tell("ZADD Q 2 B");
    (void)tell("HDEL W B");
    SAYS(acquire, LOCK "C 1316 now wait 7 0 900 5000", "QUEUED now 500 2 3 1 -1"); /* a first question does not */
    SAYS(acquire, LOCK "C 1316 now wait 7 3 900 5000", "QUEUED now 500 0 3 1 1 | D< R D K");
    IS("ZRANGE Q 0 -1", "C");
    wait_in_line("AB");
    (void)tell("HSET W A now_7_900"); /* the last moment of its patience */
    SAYS(acquire, LOCK "C 1316 now wait 7 3 900 5000", "QUEUED now 500 2 3 1 -1");
}

static void a_free_lock_with_a_stale_queue_goes_to_the_caller(void **state)
{
    (void)state;
    wait_in_line("A");
    (void)tell("HSET W A now-1_7_900");
    SAYS(acquire, LOCK "B 1316 now wait 7 0 900 5000", "GRANTED now F+1");
    IS("ZRANGE Q 0 -1", "");
    wait_in_line("B");
    (void)tell("DEL K");
    SAYS(acquire, LOCK "B 1316 now wait 7 1 900 5000", "GRANTED now F+2"); /* it is the first itself */
    IS("ZRANGE Q 0 -1", "");
    IS("HGET W B", "-");
}

static void a_free_lock_goes_to_the_first_waiter(void **state)
{
    (void)state;
    wait_in_line("ABC");
    SAYS(acquire, LOCK "D 1316 now wait 7 0 900 5000", "QUEUED now 900 2 now 1 -1 | A< G A 70 F+1 K | A< R A K");
    IS("GET K", "A");
    IS("PTTL K", "900");
    IS("ZRANGE Q 0 -1", "B C D");
    IS("HGET W A", "-");
}

static void a_waiter_without_a_subscription_is_passed_over_by_one_with(void **state)
{
    (void)state;
    hft_hearers = "bcd";
    wait_in_line("ABC");
    SAYS(acquire, LOCK "D 1316 now wait 7 0 900 5000", "QUEUED now 901 2 now 1 -1 | B< G B 71 F+1 K | B< R B K");
    IS("ZRANGE Q 0 -1", "A C D");
    hft_hearers = "d";
    (void)tell("DEL K");
    SAYS(acquire, LOCK "D 1316 now wait 7 4 900 5000", "GRANTED now F+2");
    IS("ZRANGE Q 0 -1", "A C");
    hft_hearers = "";
    (void)tell("DEL K");
    SAYS(acquire, LOCK "D 1316 now wait 7 4 900 5000", "QUEUED now 900 1 4 1 -1 | A< G A 70 F+3 K | A< R A K");
}

static void a_counter_less_than_two_seconds_ahead_of_the_clock_has_lost_something(void **state)
{
    (void)state;
    (void)tell("DEL F");
    SAYS(acquire, LOCK "A 1316 now wait 7 0 900 5000", "GRANTED now F+1");
    IS("GET F", "F+1");
    (void)tell("SET F F-1");
    SAYS(acquire, LOCK "A 1316 now wait 7 0 900 5000", "KEPT now F+0"); /* two seconds are enough */
    (void)tell("SET F F-2");
    SAYS(acquire, LOCK "A 1316 now wait 7 0 900 5000", "KEPT now F+1");
}

/* ---- release and what hands off ---- */

static void a_release_without_waiters_frees_the_lock(void **state)
{
    (void)state;
    (void)tell("SET K A PX 500");
    SAYS(release, LOCK "A", "FREE");
    IS("GET K", "-");
    SAYS(release, LOCK "A", "GONE now");
    (void)tell("SET K B PX 500");
    SAYS(release, LOCK "A", "GONE now");
    IS("GET K", "B");
    (void)tell("DEL K");
    (void)tell("HSET K a b");
    SAYS(release, LOCK "A", "GONE now");
}

static void a_release_hands_the_lease_to_the_first_waiter(void **state)
{
    (void)state;
    (void)tell("SET K D PX 500");
    wait_in_line("AB");
    SAYS(release, LOCK "D", "HANDED now | A< G A 70 F+1 K | A< R A K");
    IS("GET K", "A");
    IS("PTTL K", "900");
    SAYS(release, LOCK "A", "HANDED now | B< G B 71 F+2 K"); /* nobody stands behind */
    IS("PTTL K", "901");
    SAYS(release, LOCK "B", "FREE");
    IS("GET K", "-");
}

static void a_release_of_a_waiters_token_takes_it_out_of_the_queue(void **state)
{
    (void)state;
    (void)tell("SET K D PX 500");
    wait_in_line("AB");
    SAYS(release, LOCK "A", "LEFT now");
    IS("ZRANGE Q 0 -1", "B");
    IS("HGET W A", "-");
    IS("GET K", "D");
}

/* It was granted while it stood in the queue, and gives up. */
static void a_release_does_not_hand_off_to_its_own_process(void **state)
{
    (void)state;
    (void)tell("SET K A PX 500");
    wait_in_line("A");
    SAYS(release, LOCK "A", "FREE");
    IS("GET K", "-");
    IS("ZRANGE Q 0 -1", "");
    IS("HGET W A", "-");
    (void)tell("SET K A PX 500");
    wait_in_line("AB");
    SAYS(release, LOCK "A", "HANDED now | B< G B 71 F+1 K");
    IS("ZRANGE Q 0 -1", "");
    IS("HGET W A", "-");
    (void)tell("SET K B PX 500");
    wait_in_line("AB");
    SAYS(release, LOCK "B", "HANDED now | A< G A 70 F+2 K | A< R A K"); /* it stood behind: a needless word */
    IS("ZRANGE Q 0 -1", "");
    IS("HGET W B", "-");
}

static void a_waiter_with_an_old_or_missing_record_is_dropped(void **state)
{
    (void)state;
    (void)tell("SET K D PX 500");
    wait_in_line("ABC");
    (void)tell("HSET W A now-1_7_900");
    (void)tell("HDEL W B");
    SAYS(release, LOCK "D", "HANDED now | C< G C 72 F+1 K");
    IS("ZRANGE Q 0 -1", "");
    IS("HGET W A", "-");
    (void)tell("SET K D PX 500");
    wait_in_line("A");
    (void)tell("HSET W A now_7_900"); /* fresh to the last moment */
    SAYS(release, LOCK "D", "HANDED now | A< G A 7 F+2 K");
    (void)tell("SET K D PX 500");
    wait_in_line("A");
    (void)tell("HSET W A now-1_7_900");
    SAYS(release, LOCK "D", "FREE");
    IS("GET K", "-");
}

static void a_subscribed_waiter_goes_before_one_that_is_not(void **state)
{
    (void)state;
    hft_hearers = "c";
    (void)tell("SET K E PX 500");
    wait_in_line("ABCD");
    SAYS(release, LOCK "E", "HANDED now | C< G C 72 F+1 K | C< R C K"); /* A and B wait still */
    IS("ZRANGE Q 0 -1", "A B D");
    (void)tell("SET K E PX 500");
    (void)tell("ZREM Q D");
    hft_hearers = "";
    SAYS(release, LOCK "E", "HANDED now | A< G A 70 F+2 K | A< R A K"); /* nobody: the order is all there is */
    IS("ZRANGE Q 0 -1", "B");
}

static void a_pattern_subscriber_does_not_count_for_a_waiter(void **state)
{
    (void)state;
    hft_hearers = "c";
    hft_monitors = 1;
    (void)tell("SET K E PX 500");
    wait_in_line("ABC");
    SAYS(release, LOCK "E", "HANDED now | C< G C 72 F+1 K | C< R C K");
}

static void where_listeners_may_not_be_counted_a_message_counts_them(void **state)
{
    (void)state;
    hft_hearers = "c";
    hft_forbid("PUBSUB", NULL);
    (void)tell("SET K E PX 500");
    wait_in_line("ABC");
    SAYS(release, LOCK "E", "HANDED now | A< P | B< P | C< P | C< G C 72 F+1 K | C< R C K");
    SAYS(acquire, LOCK "A 1316 now wait 7 1 900 5000", "QUEUED now 902 0 1 1 1 | C< R C K | C< P");
}

static void a_message_without_receivers_is_reported_as_unheard(void **state)
{
    (void)state;
    hft_hearers = "";
    (void)tell("SET K D PX 500");
    for (hft_monitors = 0; hft_monitors < 2; hft_monitors++) {
        SAYS(acquire, LOCK "A 1316 now try 7 0 900 5000", "BUSY now 500 1 0 | D< R D K");
        SAYS(acquire, LOCK "A 1316 now wait 7 1 900 5000", "QUEUED now 500 0 1 1 0 | D< R D K");
        SAYS(acquire, LOCK "B 1316 now wait 7 2 900 5000", "QUEUED now 500 1 2 1 -1");
        SAYS(recheck, "3 K Q W now 5000 77 900 A", "now 500 0 1 0 | D< R D K");
    }
    hft_monitors = 0;
    hft_forbid("PUBSUB", NULL); /* zero receivers of the message are enough: it is not published again to count them */
    SAYS(acquire, LOCK "A 1316 now try 7 0 900 5000", "BUSY now 500 1 0 | D< R D K");
}

/* ---- renew, more, fence_floor ---- */

static void a_renewal_extends_a_held_key_and_names_another_value(void **state)
{
    (void)state;
    (void)tell("SET K A PX 500");
    SAYS(renew, "1 K A 501 Q", "now 1");
    IS("PTTL K", "501");
    SAYS(renew, "1 K A 500 Q", "now 1");
    IS("PTTL K", "501");
    SAYS(renew, "1 K B 700 Q", "now 2");
    IS("PTTL K", "501");
    SAYS(renew, "1 M A 700 Q", "now 0");
    IS("GET M", "-");
    (void)tell("HSET V a b");
    SAYS(renew, "1 V A 700 Q", "now 3");
    (void)tell("SET Q C PX 500");
    (void)tell("SET W hf1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1f:ffffffff76543210:host:1 PX 500");
    SAYS(renew, "3 K Q W A 600 M C 650 W A 700 M", "now 1 4 hf1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1f:ffffffff76543210:host:1");
    IS("PTTL K", "600");
    IS("PTTL Q", "650");
    IS("PTTL W", "500");
    (void)tell("SET W hf1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:2f:0123456789abcdef:host:1 PX 500");
    SAYS(renew, "1 W A 700 Q", "now 2"); /* of another grant */
    (void)tell("SET W X PX 500");
    SAYS(renew, "1 W A 700 Q", "now 2");
}

static void a_renewal_says_that_another_process_waits(void **state)
{
    (void)state;
    (void)tell("SET K A PX 500");
    wait_in_line("B");
    SAYS(renew, "1 K A 501 Q", "now 4");
    IS("PTTL K", "501");
    SAYS(renew, "2 K K A 501 M A 501 Q", "now 1 4");
    SAYS(renew, "1 K B 700 Q", "now 2");
    (void)tell("DEL K");
    SAYS(renew, "1 K A 501 Q", "now 0");
}

static void more_fences_are_for_the_holder_alone(void **state)
{
    (void)state;
    SAYS(more, LOCK "A 700 4096", "GONE now");
    (void)tell("SET K B PX 500");
    SAYS(more, LOCK "A 700 4096", "GONE now");
    (void)tell("SET K A PX 500");
    SAYS(more, LOCK "A 700 4096", "GRANTED now F+2");
    IS("PTTL K", "700");
    SAYS(more, LOCK "A 600 2048", "GRANTED now F+3");
    IS("PTTL K", "700");
}

static void the_floor_puts_the_counter_ahead_of_all_that_was_seen(void **state)
{
    (void)state;
    SAYS(fence_floor, "1 F 0 0", "now F+0");
    IS("GET F", "F+0");
    IS("PTTL F", "-1");
    (void)tell("PEXPIRE F 5000");
    SAYS(fence_floor, "1 F F-1 0", "now F+0"); /* it has been there */
    IS("PTTL F", "-1");
    SAYS(fence_floor, "1 F F+1 0", "now F+1"); /* seen */
    (void)tell("SET F F+1000000");
    SAYS(fence_floor, "1 F 0 0", "now F+1000000"); /* it is ahead by itself */
}

static void the_floor_follows_a_clock_that_is_ahead_by_more_than_it_may_err(void **state)
{
    (void)state;
    (void)tell("DEL F");
    SAYS(fence_floor, "1 F 0 now+10000", "now F+0");
    (void)tell("DEL F");
    SAYS(fence_floor, "1 F 0 now+10001", "now F+510001");
}

/* ---- break ---- */

#define REVOKED "hf1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1f:fedcba9876543210:host:1"

static void a_break_leaves_the_key_under_a_token_that_the_holder_is_told(void **state)
{
    (void)state;
    const char *revoked = REVOKED;
    char message[200];
    (void)tell("SET K A PX 1");
    wait_in_line("B");
    (void)snprintf(message, sizeof message, "BROKEN now | A< B A %s K", revoked);
    SAYS(break, LOCK "fedcba9876543210", message);
    IS("GET K", revoked);
    IS("PTTL K", "1");
    IS("ZRANGE Q 0 -1", "B");
}

static void a_break_frees_a_key_without_expiry_or_of_another_program(void **state)
{
    (void)state;
    SAYS(break, LOCK "fedcba9876543210", "FREE now");
    (void)tell("SET K A");
    SAYS(break, LOCK "fedcba9876543210", "BROKEN now | A< B A " REVOKED " K");
    IS("GET K", "-");
    (void)tell("SET K X PX 500");
    wait_in_line("B");
    SAYS(break, LOCK "fedcba9876543210", "BROKEN now | B< G B 70 F+1 K");
    IS("GET K", "B");
    (void)tell("DEL K");
    (void)tell("HSET K a b");
    SAYS(break, LOCK "fedcba9876543210", "FOREIGN now lock");
}

static void a_break_by_force_hands_on_at_once_and_tells_the_holder(void **state)
{
    (void)state;
    (void)tell("SET K A PX 60000");
    SAYS(break, LOCK "fedcba9876543210 force", "BROKEN now | A< B A " REVOKED " K");
    IS("GET K", "-");
    (void)tell("SET K A PX 60000");
    wait_in_line("B");
    SAYS(break, LOCK "fedcba9876543210 force", "BROKEN now | B< G B 70 F+1 K | A< B A " REVOKED " K");
    IS("GET K", "B");
    (void)tell("SET K X PX 60000");
    SAYS(break, LOCK "fedcba9876543210 force", "BROKEN now");
    IS("GET K", "-");
    SAYS(break, LOCK "fedcba9876543210 force", "FREE now");
    (void)tell("HSET K a b");
    SAYS(break, LOCK "fedcba9876543210 force", "FOREIGN now lock");
}

/* ---- recheck ---- */

#define RECHECK "now 5000 77 900 "

static void a_batched_re_check_says_that_each_name_waits_still(void **state)
{
    (void)state;
    (void)tell("SET K D PX 500");
    wait_in_line("AB");
    SAYS(recheck, "3 K Q W " RECHECK "A", "now 500 0 1 1 | D< R D K");
    IS("HGET W A", "now+5000 77 900");
    IS("PTTL Q", "60000");
    IS("PTTL W", "60000");
    SAYS(recheck, "3 K Q W " RECHECK "B", "now 500 1 1 -1");
    (void)tell("SET K X");
    SAYS(recheck, "3 K Q W " RECHECK "A", "now -1 0 0 -1");
}

static void a_re_check_leaves_a_name_that_is_not_plainly_waiting(void **state)
{
    (void)state;
    wait_in_line("AB");
    SAYS(recheck, "3 K Q W " RECHECK "A", "now 0"); /* nobody has it */
    (void)tell("SET K A PX 500");
    SAYS(recheck, "3 K Q W " RECHECK "A", "now 0"); /* it has it */
    (void)tell("SET K D PX 500");
    SAYS(recheck, "3 K Q W " RECHECK "C", "now 0"); /* it has no place */
    SAYS(recheck, "3 K Q W now-1 5000 77 900 A", "now 0"); /* too late */
    IS("HGET W A", "now+5 70 900");
    (void)tell("HSET W A now-1_7_900");
    SAYS(recheck, "3 K Q W " RECHECK "B", "now 0"); /* there is room to be made */
    (void)tell("HSET W A now_7_900");
    SAYS(recheck, "3 K Q W " RECHECK "B", "now 500 1 1 -1");
    (void)tell("HDEL W A");
    SAYS(recheck, "3 K Q W " RECHECK "B", "now 0");
    SAYS(recheck, "3 K Q W " RECHECK "A", "now 500 0 1 1 | D< R D K"); /* the first needs none */
    (void)tell("DEL W");
    (void)tell("SET W X");
    SAYS(recheck, "3 K Q W " RECHECK "A", "now 0");
    SAYS(recheck, "3 K Q W " RECHECK "B", "now 0");
    (void)tell("DEL K");
    (void)tell("HSET K a b");
    SAYS(recheck, "3 K Q W " RECHECK "A", "now 0");
}

static void each_name_of_a_re_check_is_answered_by_itself(void **state)
{
    (void)state;
    (void)tell("SET K D PX 500");
    wait_in_line("A");
    (void)tell("SET V E PX 600");
    (void)tell("ZADD M 1 B");
    SAYS(recheck, "9 X Q W K Q W V M F2 " RECHECK "A A B", "now 0 500 0 1 1 600 0 1 1 | D< R D K | E< R E V");
    IS("HGET F2 B", "now+5000 77 900");
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup(test, hft_scripts_begin)
    const struct CMUnitTest tests[] = {
        TEST(a_free_lock_is_granted_with_its_time_and_a_block_of_fences),
        TEST(an_acquire_after_its_time_limit_is_late),
        TEST(a_key_of_another_type_is_nobodys_lock),
        TEST(the_holder_keeps_it_and_its_key_lives_as_long_as_it_asks),
        TEST(a_try_gets_the_holder_and_the_holder_gets_a_revoke),
        TEST(a_waiter_gets_a_place_a_record_and_a_minute),
        TEST(a_place_behind_another_programs_lock_tells_nobody),
        TEST(a_repeated_acquire_keeps_its_place),
        TEST(a_re_check_makes_room_where_those_in_front_are_silent),
        TEST(a_free_lock_with_a_stale_queue_goes_to_the_caller),
        TEST(a_free_lock_goes_to_the_first_waiter),
        TEST(a_waiter_without_a_subscription_is_passed_over_by_one_with),
        TEST(a_counter_less_than_two_seconds_ahead_of_the_clock_has_lost_something),
        TEST(a_release_without_waiters_frees_the_lock),
        TEST(a_release_hands_the_lease_to_the_first_waiter),
        TEST(a_release_of_a_waiters_token_takes_it_out_of_the_queue),
        TEST(a_release_does_not_hand_off_to_its_own_process),
        TEST(a_waiter_with_an_old_or_missing_record_is_dropped),
        TEST(a_subscribed_waiter_goes_before_one_that_is_not),
        TEST(a_renewal_extends_a_held_key_and_names_another_value),
        TEST(a_renewal_says_that_another_process_waits),
        TEST(more_fences_are_for_the_holder_alone),
        TEST(a_pattern_subscriber_does_not_count_for_a_waiter),
        TEST(where_listeners_may_not_be_counted_a_message_counts_them),
        TEST(a_message_without_receivers_is_reported_as_unheard),
        TEST(the_floor_puts_the_counter_ahead_of_all_that_was_seen),
        TEST(the_floor_follows_a_clock_that_is_ahead_by_more_than_it_may_err),
        TEST(a_break_leaves_the_key_under_a_token_that_the_holder_is_told),
        TEST(a_break_frees_a_key_without_expiry_or_of_another_program),
        TEST(a_break_by_force_hands_on_at_once_and_tells_the_holder),
        TEST(a_batched_re_check_says_that_each_name_waits_still),
        TEST(a_re_check_leaves_a_name_that_is_not_plainly_waiting),
        TEST(each_name_of_a_re_check_is_answered_by_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
