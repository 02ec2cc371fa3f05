/* SPDX-License-Identifier: MIT */
/* wire_test.c - the commands that are sent, byte by byte, and the meaning of the server's replies, parsed from their
 * bytes. */
#include "base/random.h"
#include "core/policy/fence.h"
#include "core/protocol/scripts.h"
#include "core/protocol/dialect.h"
#include "core/protocol/wire.h"
#include "tests/support/reply.h"

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NOW    "$16\r\n1800000000000000\r\n"
#define NOW_US INT64_C(1800000000000000)

/* ---- replies ---- */

#define TIME "*2\r\n$10\r\n1799999999\r\n$6\r\n000005\r\n" /* as TIME says it */

static struct hfi_answer answer_of(const char *bytes, bool native, int64_t *now_us)
{
    redisReply *reply = hft_reply(bytes);
    struct hfi_answer answer = hfi_wire_answer(reply, native, now_us);
    freeReplyObject(reply);
    assert_int_equal(answer.native, native);
    return answer;
}

#define TOKEN(grant) "hf1:ab000000000000000000000000000000:" grant ":0000000000000005:host:9"

static struct hfi_identity me;
static const struct hfi_token one = {1, 5};

static int make_me(void **state)
{
    const unsigned char random[16] = {0xab};
    (void)state;
    hfi_identity_make(&me, random, "host", 9);
    return 0;
}

static void a_native_acquire_is_granted_if_set_said_ok(void **state)
{
    (void)state;
    int64_t now_us = 7;
    struct hfi_answer answer = answer_of("*3\r\n+OK\r\n:3686400000000002048\r\n" TIME, true, &now_us);
    assert_int_equal(answer.kind, HFI_GRANTED);
    assert_int_equal(answer.fence, INT64_C(3686400000000002048));
    assert_int_equal(now_us, INT64_C(1799999999000005));
    assert_int_equal(answer_of("*3\r\n$-1\r\n:3686400000000002048\r\n" TIME, true, &now_us).kind, HFI_BUSY);
    /* Without a counter the grant has no fence: it counts as bad, so that the floor is asked for. */
    answer = answer_of("*3\r\n+OK\r\n-WRONGTYPE no integer\r\n" TIME, true, &now_us);
    assert_int_equal(answer.kind, HFI_GRANTED);
    assert_int_equal(answer.fence, 0);
    /* Nor without a time for which there are fences. */
    answer = answer_of("*3\r\n+OK\r\n:3686400000000002048\r\n*2\r\n$10\r\n4400000000\r\n$1\r\n0\r\n", true, &now_us);
    assert_int_equal(answer.kind, HFI_GRANTED);
    assert_int_equal(answer.fence, 0);
    assert_int_equal(now_us, 0);
    answer = answer_of("*2\r\n+OK\r\n:3686400000000002048\r\n", true, &now_us);
    assert_int_equal(answer.fence, INT64_C(3686400000000002048));
    assert_int_equal(now_us, 0);
    answer = answer_of("*3\r\n+OK\r\n:3686400000000002048\r\n*2\r\n$2\r\n-5\r\n$1\r\n0\r\n", true, &now_us);
    assert_int_equal(answer.fence, 0);
}

static void another_form_of_answer_is_a_protocol_error(void **state)
{
    (void)state;
    static const char *const replies[] = {"*-1\r\n",
                                          "*0\r\n",
                                          "*1\r\n+OK\r\n",
                                          ":1\r\n",
                                          "$2\r\nOK\r\n",
                                          "+QUEUED\r\n",
                                          "*3\r\n+OK\r\n:1\r\n:2\r\n"};
    int64_t now_us;
    for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
        struct hfi_answer answer = answer_of(replies[i], true, &now_us);
        assert_int_equal(answer.kind, HFI_CANNOT);
        assert_int_equal(answer.status, HF_PROTOCOL);
        answer = answer_of(replies[i], false, &now_us);
        assert_int_equal(answer.kind, HFI_CANNOT);
        assert_int_equal(answer.status, HF_PROTOCOL);
    }
}

/* One wrong digit in a server's time would raise the counter beyond what INCRBY can add to. */
static void a_time_for_which_there_are_no_fences_is_no_time(void **state)
{
    (void)state;
    int64_t now_us;
    (void)answer_of("*2\r\n$4\r\nLATE\r\n$16\r\n4400000000000000\r\n", false, &now_us);
    assert_int_equal(now_us, INT64_C(4400000000000000));
    assert_true(now_us < INT64_MAX / 2048 - 2000000);
    (void)answer_of("*2\r\n$4\r\nLATE\r\n$16\r\n8795229925469247\r\n", false, &now_us);
    assert_int_equal(now_us, 0);
}

static void the_words_of_the_acquire_script_are_understood(void **state)
{
    (void)state;
    int64_t now_us;
    struct hfi_answer answer =
        answer_of("*3\r\n$7\r\nGRANTED\r\n" NOW "$19\r\n3686400000000000000\r\n", false, &now_us);
    assert_int_equal(answer.kind, HFI_GRANTED);
    assert_int_equal(answer.fence, INT64_C(3686400000000000000));
    assert_int_equal(now_us, NOW_US);
    answer = answer_of("*5\r\n$4\r\nBUSY\r\n" NOW "$3\r\n250\r\n:1\r\n:1\r\n", false, &now_us);
    assert_int_equal(answer.kind, HFI_BUSY);
    assert_int_equal(answer.left_ms, 250);
    assert_false(answer.unheard);
    assert_true(answer_of("*5\r\n$4\r\nBUSY\r\n" NOW "$3\r\n250\r\n:1\r\n:0\r\n", false, &now_us).unheard);
    answer = answer_of("*7\r\n$6\r\nQUEUED\r\n" NOW "$2\r\n-1\r\n:2\r\n$16\r\n1799999999999999\r\n:0\r\n:-1\r\n",
                       false, &now_us);
    assert_int_equal(answer.kind, HFI_IN_QUEUE);
    assert_int_equal(answer.left_ms, -1);
    assert_int_equal(answer.position, 2);
    assert_int_equal(answer.ticket, INT64_C(1799999999999999));
    assert_false(answer.ours || answer.unheard);
    answer = answer_of("*7\r\n$6\r\nQUEUED\r\n" NOW "$1\r\n9\r\n:0\r\n$1\r\n7\r\n:1\r\n:1\r\n", false, &now_us);
    assert_true(answer.ours && !answer.unheard);
    answer = answer_of("*7\r\n$6\r\nQUEUED\r\n" NOW "$1\r\n9\r\n:0\r\n$1\r\n7\r\n:1\r\n:0\r\n", false, &now_us);
    assert_true(answer.ours && answer.unheard);
    assert_int_equal(answer_of("*2\r\n$4\r\nLATE\r\n" NOW, false, &now_us).kind, HFI_LATE);
    assert_int_equal(now_us, NOW_US);
    assert_int_equal(answer_of("*3\r\n$7\r\nFOREIGN\r\n" NOW "$4\r\nlock\r\n", false, &now_us).kind,
                     HFI_FOREIGN_TYPE);
    assert_int_equal(answer_of("*4\r\n$5\r\nVALUE\r\n" NOW "$1\r\nx\r\n$1\r\n5\r\n", false, &now_us).kind,
                     HFI_HAS_VALUE);
    assert_int_equal(answer_of("*3\r\n$6\r\nABSENT\r\n" NOW "$1\r\n5\r\n", false, &now_us).kind,
                     HFI_HAS_VALUE);
}

static void a_key_of_another_type_is_named(void **state)
{
    (void)state;
    static const char *const words[][2] = {{"queue", "queue"}, {"wait", "wait"},     {"fence", "fence"}, {"data", "data"},
                                           {"lock", "lock"},   {"absent", "absent"}, {"new", "lock"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char bytes[80];
        (void)snprintf(bytes, sizeof bytes, "*3\r\n$7\r\nFOREIGN\r\n" NOW "$%zu\r\n%s\r\n", strlen(words[i][0]),
                       words[i][0]);
        redisReply *reply = hft_reply(bytes);
        assert_string_equal(hfi_wire_foreign(reply), words[i][1]);
        freeReplyObject(reply);
    }
    redisReply *reply = hft_reply("*2\r\n$4\r\nLATE\r\n" NOW);
    assert_null(hfi_wire_foreign(reply));
    freeReplyObject(reply);
    assert_null(hfi_wire_foreign(NULL));
}

static void an_error_is_an_answer_and_in_doubt_if_it_is_unknown(void **state)
{
    (void)state;
    int64_t now_us;
    struct hfi_answer answer =
        answer_of("-OOM command not allowed when used memory > 'maxmemory'.\r\n", true, &now_us);
    assert_int_equal(answer.kind, HFI_CANNOT);
    assert_int_equal(answer.status, HF_UNAVAILABLE);
    assert_false(answer.in_doubt);
    answer = answer_of(
        "-OOM command not allowed when used memory > 'maxmemory'. script: f00, on @user_script:7.\r\n", false,
        &now_us);
    assert_int_equal(answer.kind, HFI_CANNOT); /* and comes again, whoever asks at once */
    assert_int_equal(answer.status, HF_UNAVAILABLE);
    assert_false(answer.there || answer.in_doubt); /* its first write was refused */
    answer = answer_of("-ERR The user executing the script can't run this command or subcommand\r\n", false, &now_us);
    assert_true(answer.there); /* the script may have written before, */
    assert_false(answer.in_doubt); /* but it writes nothing after its answer */
    answer = answer_of("-ERR of a kind that nobody has heard of\r\n", false, &now_us);
    assert_int_equal(answer.kind, HFI_CANNOT);
    assert_int_equal(answer.status, HF_UNAVAILABLE);
    assert_true(answer.in_doubt);
    answer = answer_of("-NOPERM this user has no permissions to run the 'set' command\r\n", true, &now_us);
    assert_int_equal(answer.kind, HFI_CANNOT);
    assert_int_equal(answer.status, HF_DENIED);
    assert_false(answer.there); /* EXEC was refused for that, and nothing was executed */
    static const char *const of_multi[] = {"-NOPERM this user has no permissions to run the 'multi' command\r\n",
                                           "-ERR unknown command 'MULTI', with args beginning with:\r\n"};
    for (int i = 0; i < 2; i++) { /* then SET was executed by itself */
        answer = answer_of(of_multi[i], true, &now_us);
        assert_true(answer.there);
        assert_false(answer.in_doubt);
        assert_false(answer_of(of_multi[i], false, &now_us).there);
    }
    answer = answer_of("-LOADING Redis is loading the dataset in memory\r\n", false, &now_us);
    assert_int_equal(answer.kind, HFI_CANNOT);
    assert_int_equal(answer.status, HF_UNAVAILABLE);
}

static void a_renewals_codes_are_read_by_index(void **state)
{
    (void)state;
    static const enum hfi_renewed expected[] = {
        HFI_RENEW_OK,    HFI_RENEW_GONE,   HFI_RENEW_TAKEN, HFI_RENEW_TAKEN, HFI_RENEW_REMOTE_WAITER,
        HFI_RENEW_REVOKED, HFI_RENEW_FAILED, HFI_RENEW_FAILED /* shorter than was asked for */
    };
    const redisReply *revoked = NULL;
    redisReply *reply = hft_reply("*8\r\n" NOW ":1\r\n:0\r\n:2\r\n:3\r\n:4\r\n$5\r\nother\r\n:9\r\n");
    assert_int_equal(hfi_wire_script_reply(reply).now_us, NOW_US);
    assert_string_equal(hfi_wire_script_reply(reply).word, "");
    for (int i = 0; i < 8; i++) {
        assert_int_equal(hfi_wire_renewed(reply, i, &revoked), expected[i]);
        assert_int_equal(revoked != NULL, i >= 5);
    }
    assert_string_equal(revoked->str, "other");
    freeReplyObject(reply);
    reply = hft_reply("-NOSCRIPT No matching script.\r\n");
    assert_int_equal(hfi_wire_renewed(reply, 0, &revoked),
                     HFI_RENEW_FAILED); /* an error says nothing about the lease */
    freeReplyObject(reply);
}

static void only_whole_decimal_numbers_are_numbers(void **state)
{
    (void)state;
    redisReply *reply =
        hft_reply("*9\r\n:12\r\n$2\r\n12\r\n$0\r\n\r\n$3\r\n12x\r\n$20\r\n99999999999999999999\r\n"
              "$19\r\n9223372036854775807\r\n$2\r\n-5\r\n$-1\r\n+12\r\n");
    static const int64_t expected[] = {12, 12, -77, -77, -77, INT64_MAX, -5, -77, -77, -77};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_int_equal(hfi_wire_number(reply, i, -77), expected[i]);
    freeReplyObject(reply);
    assert_int_equal(hfi_wire_number(NULL, 0, -77), -77);
    reply = hft_reply("$2\r\n12\r\n");
    assert_int_equal(hfi_wire_number(reply, 0, -77), -77);
    assert_int_equal(hfi_wire_script_reply(reply).now_us, 0);
    freeReplyObject(reply);
}

/* Any tree of replies: no crash, no fence and no time out of nothing. */
static void no_reply_makes_the_decoder_stumble(void **state)
{
    (void)state;
    static const char *const atoms[] = {":1\r\n",           ":-1\r\n",
                                        "+OK\r\n",          "$-1\r\n",
                                        "*-1\r\n",          "*0\r\n",
                                        "$0\r\n\r\n",       NOW,
                                        "-ERR x\r\n",       "$7\r\nGRANTED\r\n",
                                        "$6\r\nQUEUED\r\n", "$4\r\nBUSY\r\n",
                                        "$5\r\nVALUE\r\n",  "$4\r\nLATE\r\n",
                                        "*1\r\n:5\r\n"};
    uint64_t rng = 17;
    for (int i = 0; i < 20000; i++) {
        char bytes[600];
        int64_t now_us;
        unsigned count = (unsigned)(hfi_rng_next(&rng) % 8);
        size_t at = (size_t)snprintf(bytes, sizeof bytes, "*%u\r\n", count);
        for (unsigned j = 0; j < count; j++)
            at += (size_t)snprintf(bytes + at, sizeof bytes - at, "%s",
                                   atoms[hfi_rng_next(&rng) % (sizeof atoms / sizeof atoms[0])]);
        redisReply *reply = hft_reply(bytes);
        struct hfi_answer answer = hfi_wire_answer(reply, i % 2 == 0, &now_us);
        assert_true(answer.kind >= HFI_GRANTED && answer.kind <= HFI_CANNOT);
        assert_true(now_us == 0 || now_us == NOW_US || now_us == 1 || now_us == -1);
        const redisReply *revoked = NULL;
        (void)hfi_wire_renewed(reply, 3, &revoked);
        freeReplyObject(reply);
    }
}

/* ---- commands ---- */

/* The words of a command's `index`-th part, as one line. */
static const char *line_of(const struct hfi_command *command, int index)
{
    static char line[6000];
    void *reply = NULL;
    redisReader *reader = redisReaderCreate();
    assert_non_null(reader);
    assert_int_equal(redisReaderFeed(reader, command->bytes, command->size), REDIS_OK);
    for (int i = 0; i <= index; i++) {
        if (reply != NULL)
            freeReplyObject(reply);
        assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
        assert_non_null(reply);
    }
    redisReaderFree(reader);
    const redisReply *words = reply;
    line[0] = 0;
    for (size_t i = 0; i < words->elements; i++) {
        size_t at = strlen(line);
        (void)snprintf(line + at, sizeof line - at, "%s%s", i > 0 ? " " : "", words->element[i]->str);
    }
    freeReplyObject(reply);
    return line;
}

static void assert_script(struct hfi_command *command, const struct hfi_script *script, const char *expected)
{
    char whole[2000];
    assert_non_null(command);
    assert_ptr_equal(command->script, script);
    assert_int_equal(command->replies, 1);
    (void)snprintf(whole, sizeof whole, "EVALSHA %s %s", script->sha1, expected);
    assert_string_equal(line_of(command, 0), whole);
    hfi_command_unref(command);
}

#define MUTEX_KEYS "4 hf:{n} hf:queue:{n}:hf:{n} hf:wait:{n}:hf:{n} hf:fence"
#define THE_KEYS    "hf:fetch:{n} hf:queue:{n}:hf:fetch:{n} hf:wait:{n}:hf:fetch:{n} hf:fence n hf:absent:{n}:hf:fetch:{n}"
#define FETCH_KEYS  "6 " THE_KEYS
#define TAGGED_KEYS "8 " THE_KEYS

static struct hfi_keys keys_of(enum hfi_use use)
{
    struct hfi_keys keys;
    struct hfi_name name = hfi_name_of(use, "n", 1);
    assert_int_equal(hfi_keys_make(NULL, &name, &keys, NULL), HF_OK);
    return keys;
}

static void a_native_acquire_is_one_transaction(void **state)
{
    (void)state;
    struct hfi_keys keys = keys_of(HFI_MUTEX);
    for (int timed = 0; timed < 2; timed++) {
        struct hfi_command *command = hfi_wire_native(&me, &keys, one, 10463, timed);
        assert_non_null(command);
        assert_int_equal(command->replies, 4 + timed);
        assert_int_equal(command->element_count, 2 + timed);
        assert_null(command->script);
        assert_string_equal(line_of(command, 0), "MULTI");
        assert_string_equal(line_of(command, 1), "SET hf:{n} " TOKEN("1") " NX PX 10463");
        assert_string_equal(line_of(command, 2), "INCRBY hf:fence 2048");
        if (timed)
            assert_string_equal(line_of(command, 3), "TIME");
        assert_string_equal(line_of(command, 3 + timed), "EXEC");
        hfi_command_unref(command);
    }
    hfi_keys_done(&keys);
}

static void the_scripts_get_their_keys_and_arguments_in_order(void **state)
{
    (void)state;
    struct hfi_keys keys = keys_of(HFI_MUTEX);
    struct hfi_acquire_params params = {
        .lease_ms = 10000, .ttl_ms = 10463, .claim_ttl_ms = 1274, .patience_ms = 1200, .ticket = 42};
    assert_script(hfi_wire_acquire(&me, &keys, one, &params, &(struct hfi_asking){false, 99, 77, 55}), hfi_script_acquire,
                  MUTEX_KEYS " " TOKEN("1") " 10463 99 wait 77 42 1274 1200000");
    assert_script(hfi_wire_acquire(&me, &keys, one, &params, &(struct hfi_asking){true, 99, 77, 55}), hfi_script_acquire,
                  MUTEX_KEYS " " TOKEN("1") " 10463 99 try 77 42 1274 1200000");
    assert_script(hfi_wire_release(&me, &keys, one), hfi_script_release, MUTEX_KEYS " " TOKEN("1"));
    assert_script(hfi_wire_more(&me, &keys, one, 500, 32768), hfi_script_more, MUTEX_KEYS " " TOKEN("1") " 500 32768");
    assert_script(hfi_wire_downgrade(&me, &keys, one, 500), hfi_script_downgrade, MUTEX_KEYS " " TOKEN("1") " 500");
    assert_script(hfi_wire_break(&keys, "0123456789abcdef", false), hfi_script_break,
                  MUTEX_KEYS " 0123456789abcdef ");
    assert_script(hfi_wire_break(&keys, "0123456789abcdef", true), hfi_script_break,
                  MUTEX_KEYS " 0123456789abcdef force");
    hfi_keys_done(&keys);
    keys = keys_of(HFI_FETCH);
    assert_script(hfi_wire_acquire(&me, &keys, one, &params, &(struct hfi_asking){false, 99, 77, 55}), hfi_script_acquire,
                  FETCH_KEYS " " TOKEN("1") " 10463 99 wait 77 42 1274 1200000 55");
    assert_script(hfi_wire_forget(&keys), hfi_script_forget, FETCH_KEYS);
    static char first[] = "hf:tag:{red}", second[] = "hf:tag::{b}lue";
    const struct hfi_tags none = {.count = 0}, two = {2, {first, second}};
    assert_script(hfi_wire_fill(&me, &keys, one, &(struct hfi_fill){HFI_FILL_VALUE, 60000, "data", 4, &none, 2049}), hfi_script_fill,
                  FETCH_KEYS " " TOKEN("1") " value 60000 data");
    assert_script(hfi_wire_fill(&me, &keys, one, &(struct hfi_fill){HFI_FILL_SAME, 60000, NULL, 0, &none, 2049}), hfi_script_fill,
                  FETCH_KEYS " " TOKEN("1") " same 60000 ");
    assert_script(hfi_wire_fill(&me, &keys, one, &(struct hfi_fill){HFI_FILL_ABSENT, 60000, NULL, 0, &none, 2049}), hfi_script_fill,
                  FETCH_KEYS " " TOKEN("1") " absent 60000 ");
    assert_script(hfi_wire_fill(&me, &keys, one, &(struct hfi_fill){HFI_FILL_NOTHING, 0, NULL, 0, &none, 2049}), hfi_script_fill,
                  FETCH_KEYS " " TOKEN("1") " nothing 0 ");
    assert_script(hfi_wire_fill(&me, &keys, one, &(struct hfi_fill){HFI_FILL_VALUE, 60000, "data", 4, &two, 3 * 2048 + 5}),
                  hfi_script_fill,
                  TAGGED_KEYS " hf:tag:{red} hf:tag::{b}lue " TOKEN("1") " value 60000 data 6144"); /* the lease's block */
    assert_script(hfi_wire_forget_tag(first, strlen(first)), hfi_script_forget_tag, "2 hf:tag:{red} hf:fence");
    hfi_keys_done(&keys);
}

static void a_floor_is_a_multiple_of_a_block_above_what_was_seen(void **state)
{
    (void)state;
    assert_script(hfi_wire_floor(0, 0), hfi_script_fence_floor, "1 hf:fence 0 0");
    assert_script(hfi_wire_floor(1, 5), hfi_script_fence_floor, "1 hf:fence 2048 5");
    assert_script(hfi_wire_floor(2047, 5), hfi_script_fence_floor, "1 hf:fence 2048 5");
    assert_script(hfi_wire_floor(2048, 5), hfi_script_fence_floor, "1 hf:fence 4096 5");
    assert_script(hfi_wire_floor(INT64_C(3686400000000002047), 0), hfi_script_fence_floor,
                  "1 hf:fence 3686400000000002048 0");
}

static void renewals_of_many_leases_ride_one_script(void **state)
{
    (void)state;
    struct hfi_renewal renewals[HFI_RENEW_MOST];
    struct hfi_keys n = keys_of(HFI_MUTEX), fetch = keys_of(HFI_FETCH);
    for (int i = 0; i < HFI_RENEW_MOST; i++)
        renewals[i] = (struct hfi_renewal){i % 2 == 0 ? &n : &fetch, one, 1000 + i, 0};
    assert_script(hfi_wire_renew(&me, renewals, 1), hfi_script_renew, "1 hf:{n} " TOKEN("1") " 1000 hf:queue:{n}:hf:{n}");
    assert_script(hfi_wire_renew(&me, renewals, 2), hfi_script_renew,
                  "2 hf:{n} hf:fetch:{n} " TOKEN("1") " 1000 hf:queue:{n}:hf:{n} " TOKEN("1")
                  " 1001 hf:queue:{n}:hf:fetch:{n}");
    struct hfi_command *command = hfi_wire_renew(&me, renewals, HFI_RENEW_MOST);
    assert_non_null(command);
    assert_int_equal(command->element_count, HFI_RENEW_MOST + 1);
    assert_non_null(strstr(line_of(command, 0), " " TOKEN("1") " 1031 hf:queue:{n}:hf:fetch:{n}"));
    hfi_command_unref(command);
    hfi_keys_done(&n);
    hfi_keys_done(&fetch);
}

static void re_checks_of_many_names_ride_one_script(void **state)
{
    (void)state;
    struct hfi_keys k, braced;
    struct hfi_recheck rechecks[HFI_RECHECK_MOST];
    const struct hfi_recheck_params common = {17, 1200, 77, 1274};
    struct hfi_name short_name = hfi_name_of(HFI_MUTEX, "k", 1), braced_name = hfi_name_of(HFI_MUTEX, "a{b}", 4);
    assert_int_equal(hfi_keys_make(NULL, &short_name, &k, NULL), HF_OK);
    assert_int_equal(hfi_keys_make(NULL, &braced_name, &braced, NULL), HF_OK);
    for (int i = 0; i < HFI_RECHECK_MOST; i++)
        rechecks[i] = (struct hfi_recheck){i % 2 == 0 ? &k : &braced, {(uint64_t)i + 1, 5}};
    assert_script(hfi_wire_recheck(&me, &common, rechecks, 1), hfi_script_recheck,
                  "3 hf:{k} hf:queue:{k}:hf:{k} hf:wait:{k}:hf:{k} 17 1200000 77 1274 " TOKEN("1"));
    assert_script(hfi_wire_recheck(&me, &common, rechecks, 2), hfi_script_recheck,
                  "6 hf:{k} hf:queue:{k}:hf:{k} hf:wait:{k}:hf:{k} hf::a{b} hf:queue:{b}:hf::a{b} "
                  "hf:wait:{b}:hf::a{b} 17 1200000 77 1274 " TOKEN("1") " " TOKEN("2"));
    struct hfi_command *command = hfi_wire_recheck(&me, &common, rechecks, HFI_RECHECK_MOST);
    assert_non_null(command);
    assert_int_equal(command->element_count, HFI_RECHECK_MOST + 1);
    assert_memory_equal(command->bytes, "*135\r\n", 6); /* EVALSHA, sha1, count; 3 keys and a token each; 4 for all */
    assert_non_null(memmem(command->bytes, command->size, TOKEN("20"), strlen(TOKEN("20"))));
    hfi_command_unref(command);
    hfi_keys_done(&k);
    hfi_keys_done(&braced);
}

static void a_re_checked_name_waits_or_asks_alone(void **state)
{
    (void)state;
    redisReply *reply = hft_reply("*5\r\n$2\r\n17\r\n:0\r\n$14\r\n123456 62 1 -1\r\n$9\r\n-1 0 0 -1\r\n$7\r\n5 0 1 0\r\n");
    struct hfi_answer answer = hfi_wire_rechecked(reply, 0);
    assert_int_equal(answer.kind, HFI_ASK_ALONE);
    answer = hfi_wire_rechecked(reply, 1);
    assert_int_equal(answer.kind, HFI_IN_QUEUE);
    assert_int_equal(answer.left_ms, 123456);
    assert_int_equal(answer.position, 62);
    assert_true(answer.ours && !answer.unheard);
    answer = hfi_wire_rechecked(reply, 2);
    assert_int_equal(answer.kind, HFI_IN_QUEUE);
    assert_int_equal(answer.left_ms, -1);
    assert_false(answer.ours || answer.unheard);
    assert_true(hfi_wire_rechecked(reply, 3).unheard);
    assert_int_equal(hfi_wire_rechecked(reply, 4).kind, HFI_ASK_ALONE);
    freeReplyObject(reply);
}

static void a_value_and_its_end_are_read_in_one_transaction(void **state)
{
    (void)state;
    struct hfi_name key = hfi_name_of(HFI_FETCH, "two words", 9);
    struct hfi_command *get = hfi_wire_get(&key), *pttl = hfi_wire_pttl(&key), *both = hfi_wire_get_pttl(&key);
    assert_string_equal(line_of(get, 0), "GET two words");
    assert_string_equal(line_of(pttl, 0), "PTTL two words");
    static const char *const lines[] = {"MULTI", "GET two words", "PTTL two words", "EXEC"};
    for (int i = 0; i < 4; i++)
        assert_string_equal(line_of(both, i), lines[i]);
    assert_int_equal(both->replies, 4);
    hfi_command_unref(get);
    hfi_command_unref(pttl);
    hfi_command_unref(both);
}

/* CACHING is for the next command: with another one in between the wrong key would be tracked. */
static void a_key_is_tracked_in_one_transaction(void **state)
{
    static const char *const lines[] = {"MULTI", "CLIENT TRACKING ON REDIRECT 4294967297 OPTIN", "CLIENT CACHING YES",
                                        "GET hf:{n}", "EXEC"};
    struct hfi_keys keys = keys_of(HFI_MUTEX);
    (void)state;
    struct hfi_command *command = hfi_wire_track(&keys, INT64_C(4294967297));
    assert_non_null(command);
    for (int i = 0; i < 5; i++)
        assert_string_equal(line_of(command, i), lines[i]);
    assert_int_equal(command->replies, 5);
    hfi_command_unref(command);
    hfi_keys_done(&keys);
}

static void of_a_tracked_set_the_member_is_read(void **state)
{
    struct hfi_dialect *dialect;
    struct hfi_keys keys;
    (void)state;
    assert_int_equal(hfi_dialect_make("set:busy", NULL, &dialect, NULL), HF_OK);
    struct hfi_name name = hfi_name_in(dialect, hfi_name_of(HFI_MUTEX, "n", 1));
    assert_int_equal(hfi_keys_make(NULL, &name, &keys, NULL), HF_OK);
    struct hfi_command *command = hfi_wire_track(&keys, 7);
    assert_non_null(command);
    assert_string_equal(line_of(command, 3), "SISMEMBER busy n");
    hfi_command_unref(command);
    hfi_keys_done(&keys);
    free(dialect);
}

static void plain_words_make_a_plain_command(void **state)
{
    (void)state;
    struct hfi_command *command = hfi_wire_words("CONFIG", "GET", "notify-keyspace-events", NULL);
    assert_non_null(command);
    assert_string_equal(line_of(command, 0), "CONFIG GET notify-keyspace-events");
    hfi_command_unref(command);
}

/* What is kept for the next command outlives every client. */
static void a_command_that_is_over_leaves_no_words_in_memory(void **state)
{
    (void)state;
    struct hfi_keys keys = keys_of(HFI_MUTEX);
    for (int moves = 0; moves < 2; moves++) { /* another behind it may need more room */
        struct hfi_command *command = hfi_wire_release(&me, &keys, one);
        const char *kept = command->first, *const more[] = {"GET", kept};
        const size_t sizes[] = {3, HFI_COMMAND_FIRST};
        size_t size = command->size;
        assert_ptr_equal(command->bytes, kept);
        if (moves)
            assert_true(hfi_command_append(command, 2, more, sizes));
        hfi_command_unref(command);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(kept[i], 0);
    }
    hfi_keys_done(&keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_native_acquire_is_granted_if_set_said_ok),
        cmocka_unit_test(another_form_of_answer_is_a_protocol_error),
        cmocka_unit_test(the_words_of_the_acquire_script_are_understood),
        cmocka_unit_test(a_key_of_another_type_is_named),
        cmocka_unit_test(an_error_is_an_answer_and_in_doubt_if_it_is_unknown),
        cmocka_unit_test(a_renewals_codes_are_read_by_index),
        cmocka_unit_test(only_whole_decimal_numbers_are_numbers),
        cmocka_unit_test(no_reply_makes_the_decoder_stumble),
        cmocka_unit_test(a_native_acquire_is_one_transaction),
        cmocka_unit_test(the_scripts_get_their_keys_and_arguments_in_order),
        cmocka_unit_test(a_floor_is_a_multiple_of_a_block_above_what_was_seen),
        cmocka_unit_test(renewals_of_many_leases_ride_one_script),
        cmocka_unit_test(a_time_for_which_there_are_no_fences_is_no_time),
        cmocka_unit_test(re_checks_of_many_names_ride_one_script),
        cmocka_unit_test(a_re_checked_name_waits_or_asks_alone),
        cmocka_unit_test(a_value_and_its_end_are_read_in_one_transaction),
        cmocka_unit_test(a_key_is_tracked_in_one_transaction),
        cmocka_unit_test(of_a_tracked_set_the_member_is_read),
        cmocka_unit_test(plain_words_make_a_plain_command),
        cmocka_unit_test(a_command_that_is_over_leaves_no_words_in_memory),
    };
    return cmocka_run_group_tests(tests, make_me, NULL);
}
