/* SPDX-License-Identifier: MIT */
/* scripts_shared_test.c - what the scripts do for those who share a lock, rule by rule. A reader asks with `900_s`. */
#include "tests/scene/script_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* These read, until 500 ms from now. */
static void read_by(const char *tokens)
{
    char line[40];
    (void)tell("SET K hf1:shared PX 501");
    for (; *tokens != 0; tokens++) {
        (void)snprintf(line, sizeof line, "ZADD H now+500000 %c", *tokens);
        (void)tell(line);
    }
    (void)tell("PEXPIRE H 501");
}

static void reader_waits(const char *line)
{
    char call[240];
    (void)snprintf(call, sizeof call, "ZADD Q %s", line);
    (void)tell(call);
    (void)snprintf(call, sizeof call, "HSET W %s now+5000_7_900_s", strchr(line, ' ') + 1);
    (void)tell(call);
}

static void a_free_lock_is_granted_to_readers_one_by_one(void **state)
{
    (void)state;
    SAYS(acquire_shared, LOCK "A 1316 now try 7 0 900_s 5000", "GRANTED now F+1");
    IS("GET K", "hf1:shared");
    IS("PTTL K", "1317");
    IS("PTTL H", "1317");
    SAYS(acquire_shared, LOCK "B 1000 now wait 7 0 900_s 5000", "GRANTED now F+2");
    IS("ZRANGE H 0 -1 WITHSCORES", "B now+1000000 A now+1316000");
    IS("PTTL K", "1317"); /* never less */
    SAYS(acquire_shared, LOCK "C 2000 now try 7 0 900_s 5000", "GRANTED now F+3");
    IS("PTTL K", "2001");
    IS("PTTL H", "2001");
}

static void a_reader_that_asks_again_is_granted_again_and_its_end_moves_forward_only(void **state)
{
    (void)state;
    read_by("A");
    wait_in_line("B");
    SAYS(acquire_shared, LOCK "A 1316 now wait 7 0 900_s 5000", "KEPT now F+1");
    IS("ZSCORE H A", "now+1316000");
    SAYS(acquire_shared, LOCK "A 100 now wait 7 0 900_s 5000", "KEPT now F+2");
    IS("ZSCORE H A", "now+1316000");
    IS("PTTL K", "1317");
}

static void one_that_has_it_alone_behind_readers_leaves_no_list_of_them(void **state)
{
    (void)state;
    read_by("A");
    wait_in_line("B");
    SAYS(release, LOCK "A", "HANDED now | B< G B 70 F+1 K");
    IS("EXISTS H", "0");
    read_by("A");
    wait_in_line("B");
    SAYS(break, LOCK "0123456789abcdef force", "BROKEN now | B< G B 70 F+2 K | A< B A A K");
    IS("EXISTS H", "0");
    read_by("A");
    SAYS(break, LOCK "0123456789abcdef force", "BROKEN now | A< B A A K");
    IS("EXISTS K H", "0");
    (void)tell("SET K hf1:shared PX 501");
    (void)tell("SET H theirs");
    SAYS(break, LOCK "0123456789abcdef force", "BROKEN now");
    IS("EXISTS H", "1");
}

/* Another program's PERSIST is no end: the others may read for longer. */
static void keys_without_an_end_keep_their_readers(void **state)
{
    (void)state;
    read_by("A");
    (void)tell("PERSIST K");
    (void)tell("PERSIST H");
    SAYS(more, LOCK "A 100 2048", "GRANTED now F+1");
    SAYS(renew, "1 K A 100 Q", "now 1");
    SAYS(acquire_shared, LOCK "B 100 now try 7 0 900_s 5000", "GRANTED now F+2");
    IS("PTTL K", "-1");
    IS("PTTL H", "-1");
}

static void who_wants_it_alone_waits_and_every_reader_hears_of_it(void **state)
{
    (void)state;
    read_by("AB");
    SAYS(acquire, LOCK "C 1316 now try 7 0 900 5000", "BUSY now 501 1 1 | A< R A K | B< R B K");
    SAYS(acquire, LOCK "C 1316 now wait 7 0 900 5000", "QUEUED now 501 0 now 1 1 | A< R A K | B< R B K");
    hft_hearers = "bcde";
    SAYS(acquire, LOCK "C 1316 now wait 7 now 900 5000", "QUEUED now 501 0 now 1 0 | A< R A K | B< R B K");
}

static void a_reader_does_not_pass_one_that_waits_to_have_it_alone(void **state)
{
    (void)state;
    read_by("A");
    wait_in_line("B");
    SAYS(acquire_shared, LOCK "C 1316 now try 7 0 900_s 5000", "BUSY now 501 1 1 | A< R A K");
    SAYS(acquire_shared, LOCK "C 1316 now wait 7 0 900_s 5000", "QUEUED now 501 1 now 1 -1");
    IS("HGET W C", "now+5000 7 900 s");
}

static void a_reader_with_a_ticket_takes_its_place_first(void **state)
{
    (void)state;
    read_by("A");
    (void)tell("ZADD Q now+5 B");
    (void)tell("HSET W B now+5000_7_900");
    /* Before B: that R is for B. */
    SAYS(acquire_shared, LOCK "C 1316 now wait 7 now 900_s 5000", "GRANTED now F+1 | A< R A K | C< R C K");
    IS("ZRANGE Q 0 -1", "B");
    SAYS(acquire_shared, LOCK "D 1316 now wait 7 now+9 900_s 5000", "QUEUED now 1317 1 now+9 1 -1");
}

static void a_release_lets_in_all_readers_up_to_one_that_wants_it_alone(void **state)
{
    (void)state;
    (void)tell("SET K A PX 500");
    reader_waits("1 B");
    reader_waits("2 C");
    (void)tell("ZADD Q 3 D");
    (void)tell("HSET W D now+5000_7_900");
    reader_waits("4 E");
    SAYS(release, LOCK "A", "HANDED now | B< G B 7 F+1 K | C< F C"); /* F: it asks, and comes in */
    IS("GET K", "hf1:shared");
    SAYS(acquire_shared, LOCK "C 1316 now wait 7 2 900_s 5000", "GRANTED now F+2 | B< R B K | C< R C K");
    IS("ZRANGE H 0 -1", "B C");
    IS("ZRANGE Q 0 -1", "D E");
    SAYS(release, LOCK "B", "OTHERS now");
    SAYS(release, LOCK "C", "HANDED now | D< G D 7 F+3 K | D< R D K");
    IS("GET K", "D");
    SAYS(release, LOCK "D", "HANDED now | E< G E 7 F+4 K");
    SAYS(release, LOCK "E", "FREE");
    IS("EXISTS K", "0");
    IS("EXISTS H", "0");
}

static void a_reader_that_nobody_hears_keeps_its_place(void **state)
{
    (void)state;
    (void)tell("SET K A PX 500");
    hft_hearers = "acde";
    reader_waits("1 B");
    reader_waits("2 C");
    reader_waits("3 D");
    SAYS(release, LOCK "A", "HANDED now | C< G C 7 F+1 K | D< F D");
    IS("ZRANGE Q 0 -1", "B D");
    SAYS(acquire_shared, LOCK "B 1316 now wait 7 1 900_s 5000", "GRANTED now F+3 | D< G D 7 F+2 K");
    IS("ZRANGE Q 0 -1", "");
}

static void a_new_batch_does_not_know_the_readers_of_before(void **state)
{
    (void)state;
    read_by("A");
    (void)tell("DEL K");
    SAYS(acquire_shared, LOCK "B 1316 now try 7 0 900_s 5000", "GRANTED now F+1");
    IS("ZRANGE H 0 -1", "B");
    SAYS(renew, "1 K A 900 Q", "now 0");
    SAYS(release, LOCK "A", "GONE now");
    IS("GET K", "hf1:shared");
}

static void the_key_ends_with_the_last_reader_that_is_left(void **state)
{
    (void)state;
    read_by("AB");
    (void)tell("ZADD H now+200000 B");
    SAYS(release, LOCK "A", "OTHERS now");
    IS("PTTL K", "201");
}

static void a_dead_reader_is_none_of_the_others(void **state)
{
    (void)state;
    read_by("AB");
    (void)tell("ZADD H now-1 B");
    SAYS(release, LOCK "A", "FREE");
    IS("EXISTS K", "0");
}

/* It was called by an F, and would have told them when it came in. */
static void a_reader_that_leaves_has_the_readers_told_of_who_is_next(void **state)
{
    (void)state;
    read_by("A");
    reader_waits("1 B");
    wait_in_line("C");
    wait_in_line("D");
    SAYS(release, LOCK "B", "LEFT now | A< R A K");
    SAYS(release, LOCK "D", "LEFT now"); /* C is next as before */
}

static void who_leaves_the_queue_lets_in_the_readers_behind_it(void **state)
{
    (void)state;
    read_by("A");
    wait_in_line("B");
    reader_waits("2 C");
    reader_waits("3 D");
    SAYS(release, LOCK "B", "LEFT now | C< F C");
    SAYS(acquire_shared, LOCK "C 1316 now wait 7 2 900_s 5000", "GRANTED now F+2 | D< G D 7 F+1 K");
    IS("ZRANGE H 0 -1", "A D C");
    IS("ZRANGE Q 0 -1", "");
}

static void renewals_move_a_reader_and_both_keys(void **state)
{
    (void)state;
    read_by("AB");
    SAYS(renew, "1 K A 900 Q", "now 1");
    IS("ZSCORE H A", "now+900000");
    IS("ZSCORE H B", "now+500000");
    IS("PTTL K", "901");
    IS("PTTL H", "901");
    wait_in_line("C");
    SAYS(renew, "1 K A 100 Q", "now 4");
    IS("ZSCORE H A", "now+900000");
    IS("PTTL K", "901");
    SAYS(renew, "1 K D 900 Q", "now 0");
    (void)tell("ZADD H now-1 B");
    SAYS(renew, "1 K B 900 Q", "now 0");
}

static void a_full_server_renews_and_releases_readers(void **state)
{
    (void)state;
    read_by("AB");
    hft_fill_memory(true);
    SAYS(renew, "1 K A 900 Q", "now 1");
    IS("ZSCORE H A", "now+900000");
    SAYS(release, LOCK "A", "OTHERS now");
    SAYS(break, LOCK "00000000000000ff no", "BROKEN now | B< B B hf1:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb:1f:0000000089abcdef:host:1 K");
    hft_fill_memory(false);
}

static void a_recheck_of_a_reader_that_may_come_in_is_acquires_task(void **state)
{
    (void)state;
    read_by("A");
    reader_waits("1 B");
    SAYS(recheck, "3 K Q W now 5000 7 900_s B", "now 0");
    (void)tell("ZADD Q 0 C");
    (void)tell("HSET W C now+5000_7_900");
    SAYS(recheck, "3 K Q W now 5000 7 900_s B", "now 501 1 1 -1");
    SAYS(recheck, "3 K Q W now 5000 7 900 C", "now 501 0 1 1 | A< R A K");
    (void)tell("HSET W C now+5000_7_900_s"); /* with the reader before it */
    SAYS(recheck, "3 K Q W now 5000 7 900_s B", "now 0");
    (void)tell("SET K D PX 501");
    SAYS(recheck, "3 K Q W now 5000 7 900_s B", "now 501 1 1 -1");
}

static void a_break_revokes_every_reader_and_the_last_to_give_back_frees_the_key(void **state)
{
    (void)state;
    read_by("AB");
    wait_in_line("C");
    SAYS(break, LOCK "00000000000000ff no",
         "BROKEN now | A< B A hf1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1f:0000000089abcdef:host:1 K"
         " | B< B B hf1:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb:1f:0000000089abcdef:host:1 K");
    SAYS(renew, "1 K A 900 Q", "now 0");
    IS("PTTL H", "501");
    SAYS(release, LOCK "hf1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1f:0000000089abcdef:host:1", "OTHERS now");
    SAYS(release, LOCK "hf1:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb:1f:0000000089abcdef:host:1", "HANDED now | C< G C 70 F+1 K");
    IS("GET K", "C");
}

static void a_break_by_force_gives_it_to_the_next_at_once(void **state)
{
    (void)state;
    read_by("A");
    wait_in_line("C");
    SAYS(break, LOCK "00000000000000ff force",
         "BROKEN now | C< G C 70 F+1 K | A< B A hf1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1f:0000000089abcdef:host:1 K");
    IS("GET K", "C");
}

static void only_a_reader_gets_more_fences(void **state)
{
    (void)state;
    read_by("A");
    SAYS(more, LOCK "A 500 2048", "GRANTED now F+1");
    SAYS(more, LOCK "B 500 2048", "GONE now");
}

static void a_look_names_the_readers(void **state)
{
    (void)state;
    read_by("AB");
    SAYS(look, "2 K Q", "SHARED 501 0 A B");
}

static void other_programs_keys_are_left_alone(void **state)
{
    (void)state;
    (void)tell("SET H x");
    (void)tell("SET K hf1:shared PX 500");
    SAYS(acquire_shared, LOCK "A 1316 now try 7 0 900_s 5000", "FOREIGN now held");
    SAYS(renew, "1 K A 900 Q", "now 3");
    SAYS(release, LOCK "A", "GONE now");
    IS("GET H", "x");
    (void)tell("DEL H K");
    (void)tell("SET Q x");
    SAYS(acquire_shared, LOCK "A 1316 now wait 7 0 900_s 5000", "GRANTED now F+1"); /* nobody can wait there */
    SAYS(acquire_shared, LOCK "B 1316 now try 7 0 900_s 5000", "GRANTED now F+2");
    SAYS(acquire, LOCK "C 1316 now wait 7 0 900 5000", "FOREIGN now queue");
}

#define JUNK "hf1:eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee-is-no-token"

/* What is no record is none that is fresh; a reader that is no token is one until its end, and hears nothing. */
static void garbage_in_the_side_keys_stops_nobody_for_longer_than_its_end(void **state)
{
    (void)state;
    hft_hearers = "abcd";
    read_by("A");
    (void)tell("ZADD Q 1 B");
    (void)tell("HSET W B nonsense");
    (void)tell("ZADD Q 2 " JUNK);
    (void)tell("HSET W " JUNK " now+5000_7");
    SAYS(acquire_shared, LOCK "C 900 now try 7 0 900_s 5000", "GRANTED now F+1");
    IS("EXISTS Q", "0");
    (void)tell("ZADD H now+300000 " JUNK);
    SAYS(acquire, LOCK "D 900 now try 7 0 900 5000", "BUSY now 901 1 0 | E< R " JUNK " K | A< R A K | C< R C K");
    SAYS(release, LOCK "A", "OTHERS now");
    SAYS(release, LOCK "C", "OTHERS now");
    IS("PTTL K", "301");
    (void)tell("ZADD H now-1 " JUNK);
    SAYS(acquire_shared, LOCK "A 900 now try 7 0 900_s 5000", "GRANTED now F+2");
    IS("ZRANGE H 0 -1", "A");
    SAYS(release, LOCK "A", "FREE");
}

static void a_downgraded_holder_is_the_first_reader_and_lets_in_those_at_the_head(void **state)
{
    (void)state;
    (void)tell("SET K A PX 700");
    (void)tell("ZADD H now+900000 old"); /* of a batch before A */
    reader_waits("1 B");
    wait_in_line("C");
    SAYS(downgrade, LOCK "A 300", "SHARED now | B< G B 7 F+1 K | A< R A K | B< R B K");
    IS("GET K", "hf1:shared");
    IS("ZRANGE H 0 -1 WITHSCORES", "A now+700000 B now+900000"); /* A: what was left, never less */
    IS("PTTL K", "901");
    SAYS(downgrade, LOCK "A 300", "SHARED now"); /* the same call again */
    IS("ZSCORE H A", "now+700000");
    SAYS(release, LOCK "A", "OTHERS now");
    SAYS(downgrade, LOCK "A 300", "GONE now");
}

#define CROWD "hf1:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb:%d:0123456789abcdef:host:1"

static void old_waiters(int count)
{
    char line[160];
    for (int i = 0; i < count; i++) {
        (void)snprintf(line, sizeof line, "ZADD Q %d " CROWD, i, i);
        (void)tell(line);
    }
}

/* Whom nobody hears: their records are not old yet. */
static void crowd_of_readers(int count)
{
    char line[160];
    for (int i = 0; i < count; i++) {
        (void)snprintf(line, sizeof line, "%d " CROWD, i + 200, i);
        reader_waits(line);
    }
}

/* 0 ms left: ask again at once. */
static void a_newcomer_behind_a_crowd_of_old_ones_asks_again_at_once(void **state)
{
    (void)state;
    read_by("A");
    old_waiters(1100);
    SAYS(acquire_shared, LOCK "B 1316 now wait 7 0 900_s 5000", "QUEUED now 0 76 now 0 -1");
    SAYS(acquire_shared, LOCK "B 1316 now wait 7 now 900_s 5000", "GRANTED now F+1");
}

/* K is nobody's then, but the release comes again. */
static void the_last_reader_gives_back_to_whoever_waits_behind_a_crowd_of_old_ones(void **state)
{
    (void)state;
    read_by("A");
    old_waiters(1024);
    (void)tell("ZADD Q 5000 D");
    (void)tell("HSET W D now+5000_7_900");
    SAYS(release, LOCK "A", "MORE now");
    IS("ZRANGE H 0 -1", "A");
    SAYS(release, LOCK "A", "HANDED now | D< G D 7 F+1 K");
    IS("GET K", "D");
}

static void a_newcomer_does_not_pass_a_waiter_behind_old_ones_or_behind_64(void **state)
{
    (void)state;
    read_by("A");
    old_waiters(100);
    SAYS(acquire_shared, LOCK "B 400 now try 7 0 900_s 5000", "GRANTED now F+1"); /* nobody is behind them */
    SAYS(release, LOCK "B", "OTHERS now");
    old_waiters(100);
    (void)tell("ZADD Q 5000 D");
    (void)tell("HSET W D now+5000_7_900");
    SAYS(acquire_shared, LOCK "B 1316 now try 7 0 900_s 5000", "BUSY now 501 1 1 | A< R A K");
    hft_hearers = "a";
    crowd_of_readers(64);
    SAYS(acquire_shared, LOCK "B 1316 now try 7 0 900_s 5000", "BUSY now 501 1 1 | A< R A K");
}

/* It asks, and lets in the next 64. */
static void who_stands_behind_64_readers_is_called(void **state)
{
    (void)state;
    read_by("A");
    reader_waits("100 E");
    hft_hearers = "ade";
    crowd_of_readers(63);
    reader_waits("5000 D");
    /* A newcomer does not pass it. */
    SAYS(acquire_shared, LOCK "C 1316 now try 7 0 900_s 5000",
         "BUSY now 901 1 1 | E< G E 7 F+1 K | D< F D | A< R A K | E< R E K");
    reader_waits("100 E");
    SAYS(acquire_shared, LOCK "B 1316 now wait 7 6000 900_s 5000", "QUEUED now 901 64 6000 1 -1 | E< G E 7 F+2 K | D< F D");
    reader_waits("100 E");
    (void)tell("HSET W D now+5000_7_900"); /* it wants the lock alone */
    SAYS(acquire_shared, LOCK "B 1316 now wait 7 6000 900_s 5000",
         "QUEUED now 901 64 6000 1 -1 | E< G E 7 F+3 K | A< R A K | E< R E K");
}

static void dead_readers_are_taken_out_by_the_next(void **state)
{
    (void)state;
    read_by("ABC");
    (void)tell("ZADD H now-1 A");
    (void)tell("ZADD H now-1 B");
    SAYS(acquire_shared, LOCK "D 100 now try 7 0 900_s 5000", "GRANTED now F+1");
    IS("ZRANGE H 0 -1", "D C");
}

static void a_reader_behind_64_that_nobody_hears_does_not_call_itself(void **state)
{
    (void)state;
    read_by("A");
    hft_hearers = "ade";
    crowd_of_readers(70);
    reader_waits("5000 D");
    reader_waits("5001 E");
    SAYS(acquire_shared, LOCK "D 1316 now wait 7 5000 900_s 5000", "GRANTED now F+1 | E< F E");
    IS("ZSCORE Q D", "-");
    (void)tell("HSET W E now+5000_7_900"); /* it wants the lock alone */
    reader_waits("5000 D");
    SAYS(acquire_shared, LOCK "D 1316 now wait 7 5000 900_s 5000", "KEPT now F+2");
}

/* Else they are shown, and told of those who wait. */
static void dead_readers_are_taken_out_by_a_renewal(void **state)
{
    (void)state;
    read_by("AB");
    (void)tell("ZADD H now-1 A");
    SAYS(renew, "1 K B 900 Q", "now 1");
    IS("ZRANGE H 0 -1", "B");
}

static void a_renewal_tells_a_reader_what_a_break_has_left(void **state)
{
    (void)state;
#define LEFT "hf1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1f:ffffffff89abcdef:host:1"
    read_by("A");
    SAYS(break, LOCK "ffffffff000000ff no", "BROKEN now | A< B A " LEFT " K");
    SAYS(renew, "1 K A 900 Q", "now " LEFT);
    SAYS(break, LOCK "ffffffff000000ff no", "BROKEN now | A< B " LEFT " " LEFT " K"); /* it stays what it is */
    IS("ZRANGE H 0 -1", LEFT);
}

/* Its process may not have heard of the break. */
static void who_gives_back_what_was_broken_is_told_what_is_left(void **state)
{
    (void)state;
#define ALONE_LEFT "hf1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1f:ffffffff000000ff:host:1"
    (void)tell("SET K A PX 500");
    (void)hft_script(LOCK "ffffffff000000ff no", hfi_script_break);
    SAYS(downgrade, LOCK "A 300", "REVOKED now " ALONE_LEFT);
    SAYS(release, LOCK "A", "REVOKED now " ALONE_LEFT);
    SAYS(release, LOCK "B", "GONE now");
    IS("GET K", ALONE_LEFT);
    (void)tell("DEL K");
    read_by("AB");
    (void)hft_script(LOCK "ffffffff000000ff no", hfi_script_break);
    SAYS(downgrade, LOCK "A 300", "REVOKED now " LEFT);
    SAYS(release, LOCK "A", "REVOKED now " LEFT);
    SAYS(release, LOCK LEFT, "OTHERS now");
    SAYS(release, LOCK "A", "GONE now");
}

static void a_reader_that_may_not_be_looked_for_is_not_lost(void **state)
{
    (void)state;
    read_by("A");
    hft_forbid("ZSCORE", "H");
    SAYS(renew, "1 K A 900 Q", "now 5");
}

/* They were killed, and their records are not old yet. */
static void readers_that_nobody_hears_do_not_keep_those_behind_them_from_being_called(void **state)
{
    (void)state;
    hft_hearers = "abde";
    (void)tell("SET K A PX 500");
    reader_waits("1 B");
    reader_waits("2 C");
    reader_waits("3 D");
    SAYS(release, LOCK "A", "HANDED now | B< G B 7 F+1 K | D< F D");
    (void)tell("ZADD Q 1 E");
    (void)tell("HSET W E now+5000_7_900");
    SAYS(release, LOCK "E", "LEFT now | D< F D");
    (void)tell("SET K A PX 500");
    (void)tell("HSET W D now+5000_7_900");
    reader_waits("1 B");
    SAYS(release, LOCK "A", "HANDED now | B< G B 7 F+2 K | B< R B K"); /* who is next wants it alone */
}

static void a_late_question_of_a_downgraded_one_does_not_queue_behind_itself(void **state)
{
    (void)state;
    read_by("A");
    SAYS(acquire, LOCK "A 1316 now wait 7 0 900 5000", "KEPT now F+1");
    IS("PTTL K", "501");
    IS("EXISTS Q", "0");
}

static void only_the_holder_downgrades(void **state)
{
    (void)state;
    SAYS(downgrade, LOCK "A 300", "GONE now");
    (void)tell("SET K B PX 700");
    SAYS(downgrade, LOCK "A 300", "GONE now");
    IS("GET K", "B");
    (void)tell("DEL K");
    (void)tell("HSET K a b");
    SAYS(downgrade, LOCK "A 300", "FOREIGN now lock");
    (void)tell("DEL K");
    (void)tell("SET K A PX 700");
    (void)tell("SET H x");
    SAYS(downgrade, LOCK "A 300", "FOREIGN now held");
    reader_waits("1 B");
    wait_in_line("C");
    SAYS(release, LOCK "A", "HANDED now | C< G C 70 F+1 K"); /* no reader can be let in */
    IS("GET H", "x");
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup(test, hft_scripts_begin)
    const struct CMUnitTest tests[] = {
        TEST(a_free_lock_is_granted_to_readers_one_by_one),
        TEST(a_reader_that_asks_again_is_granted_again_and_its_end_moves_forward_only),
        TEST(one_that_has_it_alone_behind_readers_leaves_no_list_of_them),
        TEST(keys_without_an_end_keep_their_readers),
        TEST(who_wants_it_alone_waits_and_every_reader_hears_of_it),
        TEST(a_reader_does_not_pass_one_that_waits_to_have_it_alone),
        TEST(a_reader_with_a_ticket_takes_its_place_first),
        TEST(a_release_lets_in_all_readers_up_to_one_that_wants_it_alone),
        TEST(a_reader_that_nobody_hears_keeps_its_place),
        TEST(a_new_batch_does_not_know_the_readers_of_before),
        TEST(the_key_ends_with_the_last_reader_that_is_left),
        TEST(a_dead_reader_is_none_of_the_others),
        TEST(a_reader_that_leaves_has_the_readers_told_of_who_is_next),
        TEST(who_leaves_the_queue_lets_in_the_readers_behind_it),
        TEST(renewals_move_a_reader_and_both_keys),
        TEST(a_full_server_renews_and_releases_readers),
        TEST(a_recheck_of_a_reader_that_may_come_in_is_acquires_task),
        TEST(a_break_revokes_every_reader_and_the_last_to_give_back_frees_the_key),
        TEST(a_break_by_force_gives_it_to_the_next_at_once),
        TEST(only_a_reader_gets_more_fences),
        TEST(a_look_names_the_readers),
        TEST(a_downgraded_holder_is_the_first_reader_and_lets_in_those_at_the_head),
        TEST(only_the_holder_downgrades),
        TEST(the_last_reader_gives_back_to_whoever_waits_behind_a_crowd_of_old_ones),
        TEST(a_newcomer_does_not_pass_a_waiter_behind_old_ones_or_behind_64),
        TEST(dead_readers_are_taken_out_by_the_next),
        TEST(dead_readers_are_taken_out_by_a_renewal),
        TEST(a_newcomer_behind_a_crowd_of_old_ones_asks_again_at_once),
        TEST(a_reader_behind_64_that_nobody_hears_does_not_call_itself),
        TEST(who_gives_back_what_was_broken_is_told_what_is_left),
        TEST(a_reader_that_may_not_be_looked_for_is_not_lost),
        TEST(readers_that_nobody_hears_do_not_keep_those_behind_them_from_being_called),
        TEST(who_stands_behind_64_readers_is_called),
        TEST(a_renewal_tells_a_reader_what_a_break_has_left),
        TEST(a_late_question_of_a_downgraded_one_does_not_queue_behind_itself),
        TEST(other_programs_keys_are_left_alone),
        TEST(garbage_in_the_side_keys_stops_nobody_for_longer_than_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
