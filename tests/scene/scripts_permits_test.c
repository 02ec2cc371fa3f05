/* SPDX-License-Identifier: MIT */
/* scripts_permits_test.c - what a semaphore's scripts do, rule by rule. A question has `900_2_5` for two permits of five. */
#include "tests/scene/script_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ASK(token, word, ticket, wants, most) LOCK token " 1000 now " word " 7 " ticket " 900_" wants " 5000 " most
#define OUT "ZRANGE K 0 -1"
#define OTHER_OF_A "hf1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:2f:0123456789abcdef:host:1"

/* Waits in the queue with a fresh record. */
static void waits(const char *ticket_and_token, const char *wants)
{
    char call[240];
    (void)snprintf(call, sizeof call, "ZADD Q %s", ticket_and_token);
    (void)tell(call);
    (void)snprintf(call, sizeof call, "HSET W %s now+5000_7_900_%s", strchr(ticket_and_token, ' ') + 1, wants);
    (void)tell(call);
}

static void as_many_as_are_of_use_if_nobody_waits(void **state)
{
    (void)state;
    SAYS(acquire_permits, ASK("A", "try", "0", "1_5", "3"), "GRANTED now F+1 3 3");
    IS("ZRANGE K 0 -1 WITHSCORES", "A#1 now+1000000 A#2 now+1000000 A#3 now+1000000");
    IS("PTTL K", "1001");
    SAYS(acquire_permits, ASK("B", "try", "0", "1_5", "9"), "GRANTED now F+2 2 5"); /* the limit */
    SAYS(acquire_permits, ASK("C", "try", "0", "1_5", "1"), "BUSY now 1000 1 1 | A< R A K | B< R B K");
    SAYS(acquire_permits, ASK("C", "wait", "0", "1_5", "1"), "QUEUED now 1000 0 now 1 1 | A< R A K | B< R B K");
    IS("HGET W C", "now+5000 7 900 1 5");
}

static void the_same_token_is_granted_again_what_it_has(void **state)
{
    (void)state;
    SAYS(acquire_permits, ASK("A", "wait", "0", "2_5", "2"), "GRANTED now F+1 2 2");
    SAYS(acquire_permits, LOCK "A 3000 now wait 7 0 900_4_5 5000 4", "GRANTED now F+2 2 2");
    IS("ZRANGE K 0 -1 WITHSCORES", "A#1 now+3000000 A#2 now+3000000");
    SAYS(acquire_permits, LOCK "A 100 now wait 7 0 900_2_5 5000 2", "GRANTED now F+3 2 2"); /* never earlier */
    IS("ZSCORE K A#2", "now+3000000");
    IS("PTTL K", "3001");
}

static void ended_permits_are_free(void **state)
{
    (void)state;
    (void)tell("ZADD K now-1 A#1 now-1 A#2 now+500000 B#1");
    SAYS(acquire_permits, ASK("C", "try", "0", "2_3", "2"), "GRANTED now F+1 2 3");
    IS(OUT, "B#1 C#1 C#2");
}

static void who_wants_many_is_not_passed(void **state)
{
    (void)state;
    (void)tell("ZADD K now+500000 A#1");
    (void)tell("PEXPIRE K 501");
    waits("1 B", "3_3");
    waits("2 C", "1_3");
    SAYS(acquire_permits, ASK("D", "try", "0", "1_3", "1"), "BUSY now 500 1 1 | A< R A K");
    SAYS(acquire_permits, LOCK "C 1000 now wait 7 2 900_1_3 5000 1", "QUEUED now 500 1 2 1 -1 | B< R B K");
    IS(OUT, "A#1");
    SAYS(release_permits, LOCK "A 0", "HANDED now | B< G B 7 F+1 K | B< R B K");
    IS(OUT, "B#1 B#2 B#3");
}

static void one_release_lets_in_all_that_fit(void **state)
{
    (void)state;
    (void)tell("ZADD K now+500000 A#1 now+500000 A#2 now+500000 A#3");
    waits("1 B", "1_3");
    waits("2 C", "1_3");
    waits("3 D", "2_3");
    SAYS(release_permits, LOCK "A 0", "HANDED now | B< G B 7 F+1 K | C< G C 7 F+2 K | B< R B K | C< R C K");
    IS(OUT, "B#1 C#1");
    IS("ZRANGE Q 0 -1", "D");
}

static void who_is_not_heard_keeps_its_place_and_gets_what_is_left(void **state)
{
    (void)state;
    (void)tell("ZADD K now+500000 A#1 now+500000 A#2");
    waits("1 B", "1_2");
    waits("2 C", "1_2");
    hft_hearers = "acde";
    SAYS(release_permits, LOCK "A 1", "HANDED now | C< G C 7 F+1 K | C< R C K");
    IS("ZRANGE Q 0 -1", "B");
    SAYS(release_permits, LOCK "A 0", "HANDED now | B< G B 7 F+2 K");
}

static void of_its_permits_a_token_keeps_some(void **state)
{
    (void)state;
    (void)tell("ZADD K now+500000 A#1 now+500000 A#2 now+500000 A#3");
    SAYS(release_permits, LOCK "A 2", "FREE");
    IS(OUT, "A#1 A#2");
    SAYS(release_permits, LOCK "A 2", "GONE now"); /* late, or twice */
    SAYS(release_permits, LOCK "A 0", "FREE");
    SAYS(release_permits, LOCK "A 0", "GONE now");
    IS("EXISTS K", "0");
}

static void who_leaves_lets_in_those_behind_it(void **state)
{
    (void)state;
    (void)tell("ZADD K now+500000 A#1");
    waits("1 B", "3_3");
    waits("2 C", "2_3");
    SAYS(release_permits, LOCK "B 0", "LEFT now | C< G C 7 F+1 K");
    IS(OUT, "A#1 C#1 C#2");
}

/* As long as one of its own process was the head, nobody told it of those behind. */
static void a_process_hears_of_others_when_its_own_waiter_leaves(void **state)
{
    (void)state;
    (void)tell("ZADD K now+500000 A#1 now+500000 B#1");
    (void)tell("PEXPIRE K 501");
    waits("1 " OTHER_OF_A, "3_3");
    waits("2 C", "3_3");
    SAYS(acquire_permits, ASK(OTHER_OF_A, "wait", "1", "3_3", "3"), "QUEUED now 500 0 1 1 1 | B< R B K"); /* not itself */
    SAYS(release_permits, LOCK OTHER_OF_A " 0", "LEFT now | A< R A K");
    waits("1 " OTHER_OF_A, "3_3");
    (void)tell("ZREM Q C");
    SAYS(release_permits, LOCK OTHER_OF_A " 0", "LEFT now"); /* nobody else waits */
}

/* Who has permits and waits for more is the head of the queue all the time, and does not tell itself of others. */
static void the_second_in_the_queue_tells_the_heads_process(void **state)
{
    (void)state;
    (void)tell("ZADD K now+500000 A#1");
    (void)tell("PEXPIRE K 501");
    waits("1 " OTHER_OF_A, "1_1");
    SAYS(acquire_permits, ASK("C", "wait", "0", "1_1", "1"), "QUEUED now 500 1 now 1 -1 | A< R " OTHER_OF_A " K");
    SAYS(acquire_permits, ASK("D", "wait", "0", "1_1", "1"), "QUEUED now 500 2 now+1 1 -1");
    (void)tell("ZREM Q " OTHER_OF_A);
    SAYS(acquire_permits, ASK("D", "wait", "0", "1_1", "1"), "QUEUED now 500 1 now+1 1 -1 | C< R C K");
}

static void a_renewal_moves_ends_and_makes_no_permit(void **state)
{
    (void)state;
    (void)tell("ZADD K now+500000 A#1 now+500000 A#2 now+500000 B#1");
    SAYS(renew_permits, "1 K A 1000 Q 3", "now 0"); /* a failover has left two: who believes in three is told */
    SAYS(renew_permits, "1 K A 1000 Q 2", "now 1");
    IS("ZRANGE K 0 -1 WITHSCORES", "B#1 now+500000 A#1 now+1000000 A#2 now+1000000");
    SAYS(renew_permits, "1 K A 100 Q 2", "now 1");
    IS("ZSCORE K A#1", "now+1000000");
    (void)tell("ZREM K A#1");
    SAYS(renew_permits, "1 K A 2000 Q 2", "now 1");
    IS("ZSCORE K A#1", "-");
    waits("1 C", "1_1");
    SAYS(renew_permits, "2 K K A 1000 Q 2 D 1000 Q 1", "now 4 0");
    (void)tell("SET K X");
    SAYS(renew_permits, "1 K A 1000 Q 2", "now 3");
}

static void another_programs_keys_are_told(void **state)
{
    (void)state;
    (void)tell("SET K X");
    SAYS(acquire_permits, ASK("A", "wait", "0", "1_1", "1"), "FOREIGN now permits");
    SAYS(release_permits, LOCK "A 0", "GONE now");
    (void)tell("DEL K");
    (void)tell("SET Q X");
    SAYS(acquire_permits, ASK("A", "try", "0", "1_1", "1"), "GRANTED now F+1 1 1"); /* nobody can wait there */
    SAYS(acquire_permits, ASK("B", "try", "0", "1_1", "1"), "BUSY now 1000 1 1 | A< R A K");
    SAYS(acquire_permits, ASK("B", "wait", "0", "1_1", "1"), "FOREIGN now queue");
    SAYS(release_permits, LOCK "A 0", "OTHERS now");
    (void)tell("DEL Q");
    (void)tell("SET F X");
    SAYS(acquire_permits, ASK("A", "try", "0", "1_1", "1"), "FOREIGN now fence");
    IS("EXISTS K", "0");
}

static void a_full_server_grants_hands_on_and_renews(void **state)
{
    (void)state;
    hft_fill_memory(true);
    SAYS(acquire_permits, ASK("A", "try", "0", "2_3", "2"), "GRANTED now F+1 2 2");
    SAYS(acquire_permits, ASK("B", "wait", "0", "2_3", "2"), "QUEUED now 1000 0 now 1 1 | A< R A K");
    SAYS(renew_permits, "1 K A 2000 Q 2", "now 4");
    SAYS(release_permits, LOCK "A 0", "HANDED now | B< G B 7 F+2 K");
    hft_fill_memory(false);
}

/* What it says now may be more than what it stood in the queue for. */
static void a_try_has_no_place(void **state)
{
    (void)state;
    (void)tell("ZADD K now+500000 A#1");
    waits("1 B", "1_2");
    SAYS(acquire_permits, ASK("B", "try", "0", "2_2", "2"), "BUSY now 500 1 1 | A< R A K");
    IS(OUT, "A#1");
    IS("EXISTS Q", "0");
}

static void many_permits_of_one_do_not_hide_another(void **state)
{
    (void)state;
    for (int k = 1; k <= 200; k++) {
        char call[40];
        (void)snprintf(call, sizeof call, "ZADD K now+1000 A#%d", k);
        (void)tell(call);
    }
    (void)tell("ZADD K now+2000 B#1");
    SAYS(acquire_permits, ASK("C", "try", "0", "1_201", "1"), "BUSY now 1 1 1 | A< R A K | B< R B K");
    for (int k = 201; k <= 600; k++) { /* a script does not look at all of them */
        char call[40];
        (void)snprintf(call, sizeof call, "ZADD K now+1000 A#%d", k);
        (void)tell(call);
    }
    int told = 0;
    for (int k = 601; k <= 700; k++) {
        char call[40];
        (void)snprintf(call, sizeof call, "ZADD K now+3000 A#%d", k);
        (void)tell(call);
        told += strstr(hft_script(ASK("C", "try", "0", "1_1", "1"), hfi_script_acquire_permits), "B< R B K") != NULL;
    }
    assert_in_range(told, 50, 99);
}

/* It tells its other grants by itself: a crowd of grants would fill the socket of its subscriber. */
static void a_process_is_told_once_of_those_who_wait(void **state)
{
    (void)state;
    (void)tell("ZADD K now+500000 A#1 now+500001 " OTHER_OF_A "#1 now+500002 B#1");
    SAYS(acquire_permits, ASK("C", "try", "0", "1_3", "1"), "BUSY now 500 1 1 | A< R A K | B< R B K");
}

/* After a shrink that was lost, renewals move only the permits that were kept. */
static void all_permits_that_are_granted_last_as_long(void **state)
{
    (void)state;
    (void)tell("ZADD K now+3000000 A#1 now+500000 A#2");
    SAYS(acquire_permits, ASK("A", "wait", "0", "2_2", "2"), "GRANTED now F+1 2 2");
    IS("ZRANGE K 0 -1 WITHSCORES", "A#1 now+3000000 A#2 now+3000000");
}

/* Another program's PERSIST is no end. */
static void a_key_without_an_end_keeps_those_in_it(void **state)
{
    (void)state;
    (void)tell("ZADD K now+9000000 A#1");
    SAYS(more, LOCK "A 1000 2048", "GRANTED now F+1");
    SAYS(renew_permits, "1 K A 1000 Q 1", "now 1");
    SAYS(acquire_permits, ASK("B", "try", "0", "1_2", "1"), "GRANTED now F+2 1 2");
    IS("PTTL K", "-1");
    IS(OUT, "B#1 A#1");
}

#define REVOKED(id) "hf1:" id ":1f:0000000089abcdef:host:1"
#define A_LEFT REVOKED("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
#define B_LEFT REVOKED("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb")

static void a_look_tells_who_has_how_many(void **state)
{
    (void)state;
    SAYS(look_permits, "2 K Q", "FREE");
    (void)tell("ZADD K now-1 D#1");
    SAYS(look_permits, "2 K Q", "FREE");
    (void)tell("ZADD K now+500000 A#1 now+500000 A#2 now+700000 B#1");
    waits("1 C", "3_3");
    SAYS(look_permits, "2 K Q", "PERMITS 1 A 500 2 B 700 1");
    (void)tell("DEL K");
    (void)tell("SET K X");
    SAYS(look_permits, "2 K Q", "FOREIGN permits");
}

static void a_break_takes_all_and_keeps_their_places_until_their_holders_have_stopped(void **state)
{
    (void)state;
    SAYS(break_permits, LOCK "00000000000000ff no", "FREE now");
    (void)tell("ZADD K now+500000 A#1 now+500000 A#2 now+700000 B#1");
    (void)tell("PEXPIRE K 701");
    waits("1 C", "1_3");
    SAYS(break_permits, LOCK "00000000000000ff no", "BROKEN now | A< B A " A_LEFT " K | B< B B " B_LEFT " K");
    IS("ZCARD K", "3");
    IS("PTTL K", "701");
    SAYS(renew_permits, "1 K A 900 Q 2", "now 0");
    SAYS(release_permits, LOCK A_LEFT " 0", "HANDED now | C< G C 7 F+1 K");
    SAYS(release_permits, LOCK B_LEFT " 0", "FREE");
    IS(OUT, "C#1");
    (void)tell("DEL K");
    (void)tell("SET K X");
    SAYS(break_permits, LOCK "00000000000000ff no", "FOREIGN now permits");
}

static void a_break_of_the_only_permit_leaves_its_key_an_end(void **state)
{
    (void)state;
    (void)tell("ZADD K now+500000 A#1");
    (void)tell("PEXPIRE K 501");
#define MARKED "hf1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1f:ffffffff89abcdef:host:1"
    SAYS(break_permits, LOCK "ffffffff000000ff no", "BROKEN now | A< B A " MARKED " K");
    IS("PTTL K", "501");
    SAYS(renew_permits, "1 K A 900 Q 1", "now " MARKED);
}

/* Who has not heard of it gives back what is left as well. */
static void who_gives_back_broken_permits_is_told_what_is_left(void **state)
{
    (void)state;
    (void)tell("ZADD K now+500000 A#1 now+500000 A#2");
    SAYS(break_permits, LOCK "ffffffff000000ff no", "BROKEN now | A< B A " MARKED " K");
    SAYS(release_permits, LOCK "A 1", "REVOKED now " MARKED);
    SAYS(release_permits, LOCK "A 0", "REVOKED now " MARKED);
    SAYS(release_permits, LOCK "B 0", "GONE now");
    SAYS(release_permits, LOCK MARKED " 0", "FREE");
    SAYS(release_permits, LOCK "A 0", "GONE now");
}

/* 0 ms left: ask again at once. */
static void more_old_records_than_a_script_drops_are_dropped_at_once(void **state)
{
    (void)state;
    (void)tell("ZADD K now+500000 C#1");
    for (int old = 1500; old >= 1024; old -= 476) {
        for (int i = 0; i < old; i++) {
            char call[160];
            (void)snprintf(call, sizeof call, "ZADD Q %d hf1:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb:%d:0123456789abcdef:host:1", i, i);
            (void)tell(call);
        }
        SAYS(acquire_permits, ASK("A", "wait", "0", "1_2", "1"), old == 1024 ? "QUEUED now 0 0 now 0 -1" : "QUEUED now 0 476 now 0 -1");
        SAYS(acquire_permits, ASK("A", "wait", "now", "1_2", "1"), old == 1024 ? "GRANTED now F+2 1 2" : "GRANTED now F+1 1 2");
        SAYS(release_permits, LOCK "A 0", "FREE");
    }
}

static void a_break_by_force_gives_the_permits_on(void **state)
{
    (void)state;
    (void)tell("ZADD K now+500000 A#1 now+500000 A#2");
    waits("1 C", "2_2");
    SAYS(break_permits, LOCK "00000000000000ff force", "BROKEN now | C< G C 7 F+1 K | A< B A " A_LEFT " K");
    IS(OUT, "C#1 C#2");
}

#define JUNK "hf1:eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee-is-no-token"

/* A member that is no permit of a token is out until its end. */
static void garbage_in_the_keys_counts_until_its_end(void **state)
{
    (void)state;
    hft_hearers = "abcd";
    (void)tell("ZADD K now+500000 " JUNK " now+500001 " JUNK "#x now+500002 " JUNK "#1");
    (void)tell("ZADD Q 1 B");
    (void)tell("HSET W B nonsense");
    (void)tell("ZADD Q 2 C");
    (void)tell("HSET W C now+5000_7_900_1"); /* no limit */
    SAYS(acquire_permits, ASK("A", "try", "0", "1_3", "1"), "BUSY now 500 1 0 | E< R " JUNK " K");
    IS("EXISTS Q", "0");
    SAYS(acquire_permits, ASK("A", "try", "0", "1_4", "1"), "GRANTED now F+1 1 4");
    SAYS(look_permits, "2 K Q", "PERMITS 0 " JUNK " 501 1 A 1000 1");
    SAYS(release_permits, LOCK "A 0", "FREE");
    (void)tell("ZADD K now-1 " JUNK " now-1 " JUNK "#x now-1 " JUNK "#1");
    SAYS(acquire_permits, ASK("A", "try", "0", "1_1", "1"), "GRANTED now F+2 1 1");
}

static void old_records_are_dropped(void **state)
{
    (void)state;
    (void)tell("ZADD Q 1 B");
    (void)tell("HSET W B now-1_7_900_1_1");
    (void)tell("ZADD Q 2 C"); /* without a record */
    SAYS(acquire_permits, ASK("A", "wait", "0", "1_1", "1"), "GRANTED now F+1 1 1");
    IS("EXISTS Q", "0");
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup(test, hft_scripts_begin)
    const struct CMUnitTest tests[] = {
        TEST(as_many_as_are_of_use_if_nobody_waits),
        TEST(the_same_token_is_granted_again_what_it_has),
        TEST(ended_permits_are_free),
        TEST(who_wants_many_is_not_passed),
        TEST(one_release_lets_in_all_that_fit),
        TEST(who_is_not_heard_keeps_its_place_and_gets_what_is_left),
        TEST(of_its_permits_a_token_keeps_some),
        TEST(who_leaves_lets_in_those_behind_it),
        TEST(a_process_hears_of_others_when_its_own_waiter_leaves),
        TEST(the_second_in_the_queue_tells_the_heads_process),
        TEST(a_renewal_moves_ends_and_makes_no_permit),
        TEST(another_programs_keys_are_told),
        TEST(a_full_server_grants_hands_on_and_renews),
        TEST(a_try_has_no_place),
        TEST(many_permits_of_one_do_not_hide_another),
        TEST(a_process_is_told_once_of_those_who_wait),
        TEST(all_permits_that_are_granted_last_as_long),
        TEST(a_key_without_an_end_keeps_those_in_it),
        TEST(a_look_tells_who_has_how_many),
        TEST(a_break_takes_all_and_keeps_their_places_until_their_holders_have_stopped),
        TEST(a_break_of_the_only_permit_leaves_its_key_an_end),
        TEST(who_gives_back_broken_permits_is_told_what_is_left),
        TEST(more_old_records_than_a_script_drops_are_dropped_at_once),
        TEST(a_break_by_force_gives_the_permits_on),
        TEST(garbage_in_the_keys_counts_until_its_end),
        TEST(old_records_are_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
