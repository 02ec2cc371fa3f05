/* SPDX-License-Identifier: MIT */
/* dialects_marks_test.c - the marks of dialects where others' keys have an end, where it is the others' turn, with many tokens,
 * and with a full server. */
#include "tests/support/speaker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void an_end_of_theirs_does_not_end_what_we_hold(void **state)
{
    static const struct {
        const char *dialect, *made, *ends, *left, *queue;
    } ways[] = {
        {"counter", "SET x 0 PX 60000", "PEXPIRE x 60000", "PTTL x", "EXISTS hf:queue:count:{x}:x"},
        {"set", "SADD locks y", "PEXPIRE locks 60000", "PTTL locks", "EXISTS hf:queue:set5:{locks:x}:locks:x"},
    };
    struct hft_speaker *f = *state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct hft_taker taker;
        hf_lease *lease;
        hft_speak(f, ways[i].dialect);
        hf_client *other = hft_client(f->server, HF_CLIENT(.dialect = ways[i].dialect));
        HFT_DO(f, ways[i].made, ways[i].ends);
        assert_int_equal(hf_lock_acquire(f->client, "x", HF_LOCK(.lease_ms = 600000), &lease, NULL), HF_OK);
        assert_true(strtol(hft_says(f, ways[i].left), NULL, 10) > 500000);
        HFT_DO(f, ways[i].ends);
        hft_take(&taker, other, "x", HF_LOCK(.lease_ms = 600000, .wait_ms = 20000));
        HFT_UNTIL_TRUE(strcmp(hft_says(f, ways[i].queue), "1") == 0);
        assert_int_equal(hf_lease_release(lease, NULL), HF_OK); /* from one of us to the next one */
        assert_int_equal(hft_taken(&taker), HF_OK);
        HFT_UNTIL_TRUE(strtol(hft_says(f, ways[i].left), NULL, 10) > 500000); /* by its first renewal */
        assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
        assert_int_equal(hf_client_close(other, NULL), HF_OK);
    }
}

/* The mark of the next thread, with a shorter lease, ends when that of the one before did. */
static void nor_behind_a_thread_with_a_longer_lease(void **state)
{
    static const struct {
        const char *dialect, *ends, *left;
    } ways[] = {{"counter", "PEXPIRE x 60000", "PTTL x"}, {"set", "PEXPIRE locks 60000", "PTTL locks"}};
    struct hft_speaker *f = *state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct hft_taker taker;
        hf_lease *lease;
        hft_speak(f, ways[i].dialect);
        assert_int_equal(hf_lock_acquire(f->client, "x", HF_LOCK(.lease_ms = 600000), &lease, NULL), HF_OK);
        hft_take(&taker, f->client, "x", HF_LOCK(.lease_ms = 900, .wait_ms = 20000));
        HFT_UNTIL_TRUE(hft_waiting_here(f->client, "x") == 1);
        assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
        assert_int_equal(hft_taken(&taker), HF_OK);
        HFT_DO(f, ways[i].ends);
        HFT_UNTIL_TRUE(strtol(hft_says(f, ways[i].left), NULL, 10) > 500000);
        assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    }
}

/* Ruby's gives each key of the list one, where it has an `expiration`. */
static void nor_does_an_end_of_a_key_beside_the_list(void **state)
{
    static const char *const keys[] = {"EXISTS", "AVAILABLE", "GRABBED", "VERSION"};
    struct hft_speaker *f = *state;
    hf_lease *lease;
    char command[80];
    hft_speak(f, "tokens:2");
    assert_int_equal(hf_lock_acquire(f->client, "x", HF_LOCK(.lease_ms = 900), &lease, NULL), HF_OK);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        (void)snprintf(command, sizeof command, "PEXPIRE SEMAPHORE:x:%s 600", keys[i]);
        HFT_DO(f, command);
    }
    HFT_WHILE_RENEWED(f->client, 3, hf_lease_is_valid(lease));
    assert_string_equal(hft_says(f, "EXISTS SEMAPHORE:x:EXISTS SEMAPHORE:x:AVAILABLE SEMAPHORE:x:GRABBED SEMAPHORE:x:VERSION"), "4");
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}

static void a_key_of_another_type_is_left_as_it_is(void **state)
{
    struct hft_speaker *f = *state;
    hf_lease *lease;
    hft_speak(f, "redlock");
    HFT_DO(f, "SET hf:wait:{x}:x theirs");
    assert_int_equal(hf_lock_acquire(f->client, "x", HF_LOCK(.lease_ms = 900), &lease, NULL), HF_OK);
    HFT_WHILE_RENEWED(f->client, 2, hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_string_equal(hft_says(f, "PTTL hf:wait:{x}:x"), "-1");
    hft_speak(f, "tokens:2");
    HFT_DO(f, "SADD SEMAPHORE:y:VERSION theirs");
    assert_int_equal(hf_lock_acquire(f->client, "y", NULL, &lease, NULL), HF_FOREIGN);
    assert_string_equal(hft_says(f, "SCARD SEMAPHORE:y:VERSION"), "1");
}

/* Nothing is taken before it is found out that a key may not be read, or written, or is of another type. */
static void an_acquire_that_cannot_be_finished_costs_no_token(void **state)
{
    static const struct {
        const char *rights, *spoils;
        hf_status status;
    } ways[] = {
        {"~SEMAPHORE:x:EXISTS ~SEMAPHORE:x:AVAILABLE ~SEMAPHORE:x:GRABBED", "ECHO -", HF_DENIED},
        {"~SEMAPHORE:x:EXISTS ~SEMAPHORE:x:AVAILABLE ~SEMAPHORE:x:VERSION %%R~SEMAPHORE:x:GRABBED", "ECHO -", HF_DENIED},
        {"~*", "SET hf:lease:list:{SEMAPHORE:x:AVAILABLE}:SEMAPHORE:x:AVAILABLE other", HF_FOREIGN},
    };
    struct hft_speaker *f = *state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        char rights[200];
        hf_lease *lease;
        hft_speak(f, "tokens:2");
        assert_int_equal(hf_lock_acquire(f->client, "x", NULL, &lease, NULL), HF_OK); /* all is seeded */
        assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
        (void)snprintf(rights, sizeof rights, "ACL SETUSER part reset on >pw &* +@all ~hf:* %s", ways[i].rights);
        HFT_DO(f, rights, ways[i].spoils);
        hf_client *part = hft_client(f->server, HF_CLIENT(.dialect = "tokens:2", .user = "part", .password = "pw"));
        for (int tries = 0; tries < 4; tries++)
            assert_int_equal(hf_lock_acquire(part, "x", NULL, &lease, NULL), ways[i].status);
        assert_string_equal(hft_says(f, "LLEN SEMAPHORE:x:AVAILABLE"), "2");
        (void)hf_client_close(part, NULL); /* what was refused may be there */
    }
}

static void who_tries_does_not_end_the_others_turn(void **state)
{
    struct hft_speaker *f = *state;
    struct hft_taker taker;
    hf_lease *none;
    hft_speak(f, "redlock");
    hf_client *other = hft_client(f->server, HF_CLIENT(.dialect = "redlock"));
    hf_lease *lease = hft_must_take(f->client);
    hft_take(&taker, other, "x", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(strcmp(hft_says(f, "EXISTS hf:queue:{x}:x"), "1") == 0);
    HFT_DO(f, "HSET hf:wait:{x}:x turn 1"); /* begun long ago */
    int64_t released_ms = hft_boottime_ms();
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hf_lock_acquire(f->client, "x", NULL, &none, NULL), HF_BUSY);
    bool is_free = strcmp(hft_says(f, "SET x theirs NX"), "OK") == 0;
    assert_true(is_free || hft_boottime_ms() - released_ms >= 200); /* else this machine has stood still */
    HFT_DO(f, "DEL x");
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    assert_int_equal(hf_client_close(other, NULL), HF_OK);
}

static void a_try_where_nobody_waits_has_what_is_left_free(void **state)
{
    struct hft_speaker *f = *state;
    hft_speak(f, "redlock");
    hf_lease *lease = hft_must_take(f->client);
    HFT_DO(f, "HSET hf:wait:{x}:x turn 1");
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(hft_must_take(f->client), NULL), HF_OK);
}

/* Whoever of them lingers gives its token back. */
static void all_that_hold_a_token_hear_that_somebody_waits(void **state)
{
    struct hft_speaker *f = *state;
    struct hft_taker taker;
    hf_lease *first, *second;
    hft_speak(f, "tokens:2");
    hf_client *lingers = hft_client(f->server, HF_CLIENT(.dialect = "tokens:2"));
    hf_client *waits = hft_client(f->server, HF_CLIENT(.dialect = "tokens:2"));
    assert_int_equal(hf_lock_acquire(f->client, "x", HF_LOCK(.lease_ms = 600000), &first, NULL), HF_OK);
    assert_int_equal(hf_lock_acquire(lingers, "x", HF_LOCK(.lease_ms = 600000, .linger_ms = 500000), &second, NULL), HF_OK);
    assert_int_equal(hf_lease_release(second, NULL), HF_OK);
    hft_take(&taker, waits, "x", HF_LOCK(.wait_ms = 20000));
    assert_int_equal(hft_taken(&taker), HF_OK); /* not by a renewal: the first one is 200 s away */
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(first, NULL), HF_OK);
    assert_int_equal(hf_client_close(lingers, NULL), HF_OK);
    assert_int_equal(hf_client_close(waits, NULL), HF_OK);
}

#define MANY 60

static void a_renewal_does_not_look_at_all_tokens(void **state)
{
    struct hft_speaker *f = *state;
    hf_lease *lease;
    char command[200];
    hft_speak(f, "tokens:100");
    assert_int_equal(hf_lock_acquire(f->client, "x", HF_LOCK(.lease_ms = 1000), &lease, NULL), HF_OK);
    for (int i = 1; i <= MANY; i++) { /* of other processes of ours; HDEL of a number that is out is what theirs would do */
        (void)snprintf(command, sizeof command, "HSET SEMAPHORE:x:GRABBED %d 1.000000", i);
        HFT_DO(f, command);
        (void)snprintf(command, sizeof command, "EVAL return(redis.call('HSET',KEYS[1],ARGV[1],'9000000000000000\\032%d\\0321.000000')) 1 "
                       "hf:lease:list:{SEMAPHORE:x:AVAILABLE}:SEMAPHORE:x:AVAILABLE hf1:%d", i, i);
        HFT_DO(f, command);
    }
    int64_t looked = hft_server_calls(f->server, "hget");
    HFT_WHILE_RENEWED(f->client, 2, hf_lease_is_valid(lease));
    assert_true(hft_server_calls(f->server, "hget") - looked < MANY);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}

static void a_full_server_refuses_no_fences(void **state)
{
    static const char *const dialects[] = {"redlock", "redisson", "counter", "set", "tokens"};
    struct hft_speaker *f = *state;
    for (size_t i = 0; i < sizeof dialects / sizeof dialects[0]; i++) {
        hf_lease *lease;
        hft_speak(f, dialects[i]);
        assert_int_equal(hf_lock_acquire(f->client, "x", HF_LOCK(.lease_ms = 600000, .linger_ms = 500000), &lease, NULL), HF_OK);
        HFT_DO(f, "CONFIG RESETSTAT", "CONFIG SET maxmemory 1");
        for (int pass = 0; pass < 5000; pass++) { /* a block has 2048 */
            assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
            assert_int_equal(hf_lock_acquire(f->client, "x", HF_LOCK(.lease_ms = 600000, .linger_ms = 500000), &lease, NULL), HF_OK);
        }
        redisReply *errors = hft_server_ask(f->server, "INFO errorstats");
        assert_null(strstr(errors->str, "OOM"));
        freeReplyObject(errors);
        HFT_DO(f, "CONFIG SET maxmemory 0");
        assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_end_of_theirs_does_not_end_what_we_hold, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(nor_behind_a_thread_with_a_longer_lease, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(nor_does_an_end_of_a_key_beside_the_list, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(a_key_of_another_type_is_left_as_it_is, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(an_acquire_that_cannot_be_finished_costs_no_token, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(who_tries_does_not_end_the_others_turn, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(a_try_where_nobody_waits_has_what_is_left_free, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(all_that_hold_a_token_hear_that_somebody_waits, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(a_renewal_does_not_look_at_all_tokens, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(a_full_server_refuses_no_fences, hft_speaker_begin, hft_speaker_end),
    };
    return cmocka_run_group_tests_name("dialects_marks", tests, NULL, NULL);
}
