/* SPDX-License-Identifier: MIT */
/* scripts_test.c - the scripts by themselves, where the server is full, and where a key of theirs is another
 * program's: each answer, and the keys that it leaves. */
#include "core/protocol/scripts.h"
#include "tests/support/pair.h"
#include "tests/support/script_source.h"
#include "tests/support/takers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define LOCK   "hf:fetch:{k}"
#define QUEUE  "hf:queue:{k}:hf:fetch:{k}"
#define WAIT   "hf:wait:{k}:hf:fetch:{k}"
#define FENCE  "hf:fence"
#define DATA   "k"
#define ABSENT "hf:absent:{k}:hf:fetch:{k}"
#define TAG    "hf:tag:{t}"
#define SIX    LOCK " " QUEUE " " WAIT " " FENCE " " DATA " " ABSENT
#define ALL    "6 " SIX
#define TOKEN(digit) "hf1:0000000000000000000000000000000" digit ":1:0000000000000007:host:1"
#define OURS   TOKEN("1")
#define OTHER  TOKEN("2")
#define WAITER TOKEN("3")
#define NEVER  " 9000000000000000 "

static const struct call {
    const char *name;
    const struct hfi_script *script;
    const char *words;
} calls[] = {{"acquire", hfi_script_acquire, ALL " " OURS " 10463" NEVER "wait 77 0 1274 1200000 0"},
             {"try", hfi_script_acquire, ALL " " OURS " 10463" NEVER "try 77 0 1274 1200000 0"},
             {"re-check", hfi_script_acquire, ALL " " WAITER " 10463" NEVER "wait 77 5 1274 1200000 0"},
             {"release", hfi_script_release, ALL " " OURS},
             {"leave", hfi_script_release, ALL " " WAITER},
             {"more", hfi_script_more, ALL " " OURS " 5000 2048"},
             {"downgrade", hfi_script_downgrade, ALL " " OURS " 5000"},
             {"renew", hfi_script_renew, "1 " LOCK " " OURS " 70000 " QUEUE},
             {"recheck", hfi_script_recheck, "3 " LOCK " " QUEUE " " WAIT NEVER "1200000 77 1274 " WAITER},
             {"fill", hfi_script_fill, ALL " " OURS " value 60000 new"},
             {"fill same", hfi_script_fill, ALL " " OURS " same 60000 ."},
             {"fill tagged", hfi_script_fill, "7 " SIX " " TAG " " OURS " value 60000 new 4096"},
             {"forget_tag", hfi_script_forget_tag, "2 " TAG " " FENCE},
             {"fill absent", hfi_script_fill, ALL " " OURS " absent 60000 ."},
             {"fill nothing", hfi_script_fill, ALL " " OURS " nothing 0 ."},
             {"forget", hfi_script_forget, ALL},
             {"break", hfi_script_break, ALL " 00000000000000ff no"},
             {"break by force", hfi_script_break, ALL " 00000000000000ff force"},
             {"fence_floor", hfi_script_fence_floor, "1 " FENCE " 0 0"}};

/* "FOREIGN queue", "QUEUED", "4", "WRONGTYPE" */
static const char *run(struct fixture *f, const char *name)
{
    static char said[64];
    char format[800];
    size_t which = 0;
    while (strcmp(calls[which].name, name) != 0)
        which++;
    (void)snprintf(format, sizeof format, "EVAL %%s %s", calls[which].words);
    redisReply *reply = hft_server_ask(f->server, format, hft_script_source(calls[which].script));
    const redisReply *first = reply->type == REDIS_REPLY_ARRAY ? reply->element[0] : reply;
    const redisReply *second = reply->type == REDIS_REPLY_ARRAY && reply->elements > 1 ? reply->element[1] : reply;
    if (first->type == REDIS_REPLY_STRING && strcmp(first->str, "FOREIGN") == 0)
        (void)snprintf(said, sizeof said, "FOREIGN %s", reply->element[2]->str);
    else if (first->type != REDIS_REPLY_INTEGER)
        (void)snprintf(said, sizeof said, "%.*s", (int)strcspn(first->str, " "), first->str);
    else if (second->type == REDIS_REPLY_INTEGER && second->integer < 1000)
        (void)snprintf(said, sizeof said, "%lld", second->integer);
    else
        (void)snprintf(said, sizeof said, "%s", second->type == REDIS_REPLY_STRING ? "place" : "time");
    freeReplyObject(reply);
    return said;
}

static void tell(struct fixture *f, const char *words)
{
    redisReply *reply = hft_server_ask(f->server, words);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", words, reply->str);
    freeReplyObject(reply);
}

/* A lock that is held, for a while or for ever ("" free, "theirs"), and one waiter. */
static void lay(struct fixture *f, const char *holder)
{
    char words[200];
    tell(f, "FLUSHALL");
    tell(f, "SET " FENCE " 2048");
    (void)snprintf(words, sizeof words, "SET " LOCK " %s%s", holder, strncmp(holder, "hf1:", 4) == 0 ? " PX 60000" : "");
    if (holder[0] != 0)
        tell(f, words);
    tell(f, "ZADD " QUEUE " 5 " WAITER);
    freeReplyObject(hft_server_ask(f->server, "HSET " WAIT " " WAITER " %s", "9000000000000000 1 1274"));
}

static const char *held(struct fixture *f)
{
    static char value[200];
    redisReply *reply = hft_server_ask(f->server, "GET " LOCK);
    (void)snprintf(value, sizeof value, "%s",
                   reply->type == REDIS_REPLY_STRING ? reply->str : reply->type == REDIS_REPLY_NIL ? "" : "another type");
    freeReplyObject(reply);
    return value;
}

/* ---- another program's keys ---- */

#define THEIRS "theirs"

static const struct spoilt {
    const char *script, *holder, *key, *says, *after; /* after: who holds it then */
    bool gone;                                        /* what was theirs was not left alone: it stood where data go */
} spoilt[] = {
    {"acquire", "", LOCK, "FOREIGN lock", "another type", false},
    {"acquire", OTHER, QUEUE, "FOREIGN queue", OTHER, false},
    {"acquire", OTHER, WAIT, "FOREIGN wait", OTHER, false},
    {"acquire", OTHER, FENCE, "QUEUED", OTHER, false},
    {"acquire", OTHER, DATA, "FOREIGN data", OTHER, false},
    {"acquire", OTHER, ABSENT, "FOREIGN absent", OTHER, false},
    {"acquire", "", QUEUE, "GRANTED", OURS, false}, /* nobody can wait by it, and nobody has to */
    {"acquire", "", WAIT, "GRANTED", OURS, false},
    {"acquire", "", FENCE, "FOREIGN fence", "", false},
    {"acquire", "", DATA, "FOREIGN data", "", false},
    {"acquire", "", ABSENT, "FOREIGN absent", "", false},
    {"acquire", OURS, QUEUE, "KEPT", OURS, false},
    {"acquire", OURS, WAIT, "KEPT", OURS, false},
    {"acquire", OURS, FENCE, "FOREIGN fence", OURS, false}, /* its client gives it back */
    {"acquire", OURS, DATA, "KEPT", OURS, false},
    {"try", "", LOCK, "FOREIGN lock", "another type", false},
    {"try", OTHER, QUEUE, "BUSY", OTHER, false},
    {"try", OTHER, WAIT, "BUSY", OTHER, false},
    {"re-check", OTHER, QUEUE, "FOREIGN queue", OTHER, false},
    {"re-check", OTHER, WAIT, "FOREIGN wait", OTHER, false},
    {"recheck", "", LOCK, "0", "another type", false},
    {"recheck", OTHER, QUEUE, "0", OTHER, false},
    {"recheck", OTHER, WAIT, "0", OTHER, false},
    {"release", "", LOCK, "GONE", "another type", false},
    {"release", OURS, QUEUE, "FREE", "", false},
    {"release", OURS, WAIT, "FREE", "", false},
    {"release", OURS, FENCE, "FREE", "", false},
    {"leave", OTHER, QUEUE, "GONE", OTHER, false},
    {"leave", OTHER, WAIT, "LEFT", OTHER, false},
    {"more", "", LOCK, "GONE", "another type", false},
    {"more", OURS, FENCE, "FOREIGN fence", OURS, false},
    {"downgrade", "", LOCK, "FOREIGN lock", "another type", false},
    {"downgrade", OURS, QUEUE, "SHARED", "hf1:shared", false},
    {"downgrade", OURS, WAIT, "SHARED", "hf1:shared", false},
    {"downgrade", OURS, FENCE, "SHARED", "hf1:shared", false},
    {"renew", "", LOCK, "3", "another type", false},
    {"renew", OURS, QUEUE, "4", OURS, false},
    {"fill", "", LOCK, "REFUSED", "another type", false},
    {"fill", OURS, QUEUE, "FILLED", "", false},
    {"fill", OURS, WAIT, "FILLED", "", false},
    {"fill", OURS, FENCE, "FILLED", "", false},
    {"fill", OURS, DATA, "FOREIGN data", WAITER, false},
    {"fill absent", OURS, DATA, "FOREIGN data", WAITER, false},
    {"fill", OURS, ABSENT, "FILLED", "", true},
    {"fill same", OURS, DATA, "FOREIGN data", WAITER, false},
    {"fill same", OURS, ABSENT, "MISSING", OURS, false},
    {"fill tagged", OURS, TAG, "FOREIGN tag", WAITER, false},
    {"fill tagged", "", TAG, "REFUSED", "", false},
    {"forget_tag", OURS, TAG, "FOREIGN tag", OURS, false},
    {"forget_tag", OURS, FENCE, "DONE", OURS, false},
    {"fill absent", OURS, QUEUE, "FILLED", "", false},
    {"fill absent", OURS, ABSENT, "FILLED", "", true},
    {"fill nothing", OURS, QUEUE, "FREE", "", false},
    {"fill nothing", OURS, WAIT, "FREE", "", false},
    {"fill nothing", OURS, FENCE, "FREE", "", false},
    {"forget", "", LOCK, "DONE", "another type", false},
    {"forget", OURS, QUEUE, "DONE", "", false},
    {"forget", OURS, WAIT, "DONE", "", false},
    {"forget", OURS, FENCE, "DONE", "", false},
    {"forget", OURS, DATA, "DONE", WAITER, true},
    {"forget", OURS, ABSENT, "DONE", WAITER, true},
    {"break", "", LOCK, "FOREIGN lock", "another type", false},
    {"break", THEIRS, QUEUE, "BROKEN", "", false},
    {"break", THEIRS, WAIT, "BROKEN", "", false},
    {"break", THEIRS, FENCE, "BROKEN", "", false},
    {"break by force", "", LOCK, "FOREIGN lock", "another type", false},
    {"break by force", OURS, QUEUE, "BROKEN", "", false},
    {"break by force", OURS, WAIT, "BROKEN", "", false},
    {"break by force", OURS, FENCE, "BROKEN", "", false},
    {"fence_floor", "", FENCE, "WRONGTYPE", "", false}};

static void each_script_names_another_programs_key_and_leaves_it(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof spoilt / sizeof spoilt[0]; i++) {
        const struct spoilt *one = &spoilt[i];
        char words[200];
        lay(f, one->holder);
        (void)snprintf(words, sizeof words, "DEL %s", one->key);
        tell(f, words);
        (void)snprintf(words, sizeof words, "RPUSH %s a b", one->key);
        tell(f, words);
        const char *said = run(f, one->script);
        if (strcmp(said, one->says) != 0)
            fail_msg("%s, %s is a list, held by \"%s\": %s, not %s", one->script, one->key, one->holder, said, one->says);
        if (strcmp(held(f), one->after) != 0)
            fail_msg("%s, %s is a list: then held by \"%s\", not \"%s\"", one->script, one->key, held(f), one->after);
        if (!one->gone) {
            (void)snprintf(words, sizeof words, "LLEN %s", one->key);
            assert_int_equal(hft_server_ask_integer(f->server, words), 2);
            (void)snprintf(words, sizeof words, "PTTL %s", one->key);
            if (hft_server_ask_integer(f->server, words) != -1)
                fail_msg("%s: %s was given an end", one->script, one->key);
        }
    }
}

static void a_counter_that_is_no_number_is_no_counter(void **state)
{
    struct fixture *f = *state;
    static const char *const values[] = {"abc", "12x", "9223372036854775807"};
    static const char *const what[][3] = {{"acquire", "", "FOREIGN fence"}, {"more", OURS, "FOREIGN fence"},
                                          {"release", OURS, "FREE"},        {"fill nothing", OURS, "FREE"}};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        for (size_t j = 0; j < sizeof what / sizeof what[0]; j++) {
            lay(f, what[j][1]);
            freeReplyObject(hft_server_ask(f->server, "SET " FENCE " %s", values[i]));
            assert_string_equal(run(f, what[j][0]), what[j][2]);
        }
    tell(f, "SET " FENCE " abc");
    assert_string_equal(run(f, "fence_floor"), "WRONGTYPE");
}

/* ---- a server that is full ---- */

static void each_script_writes_first_what_a_full_server_allows(void **state)
{
    struct fixture *f = *state;
    static const char *const cases[][3] = { /* held by, says */
        {"acquire", OURS, "KEPT"}, {"acquire", OTHER, "QUEUED"},  {"acquire", "", "QUEUED"},
        {"try", OTHER, "BUSY"},       {"re-check", OTHER, "QUEUED"}, {"re-check", WAITER, "KEPT"},
        {"recheck", OTHER, "place"},  {"release", OURS, "HANDED"},   {"leave", OTHER, "LEFT"},
        {"more", OURS, "GRANTED"},    {"renew", OURS, "4"},          {"fill", OURS, "FREE"}, /* the value is refused */
        {"downgrade", OURS, "SHARED"}, {"fill tagged", OURS, "FREE"}, {"fill same", OURS, "MISSING"}, {"forget_tag", "", "DONE"},
        {"fill nothing", OURS, "FREE"}, {"fill absent", OURS, "FILLED"}, {"forget", OURS, "DONE"},
        {"break", OURS, "BROKEN"},    {"break", THEIRS, "BROKEN"}, {"break by force", OURS, "BROKEN"},   {"fence_floor", OURS, "time"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tell(f, "CONFIG SET maxmemory 0");
        lay(f, cases[i][1]);
        tell(f, "CONFIG SET maxmemory 1");
        const char *said = run(f, cases[i][0]);
        if (strcmp(said, cases[i][2]) != 0)
            fail_msg("%s of a full server, held by \"%s\": %s, not %s", cases[i][0], cases[i][1], said, cases[i][2]);
    }
    tell(f, "CONFIG SET maxmemory 0");
}

/* ---- old records ---- */

/* A failover lost the last 50 ms and left the new primary without a replica: its clients' floors are refused. */
static void a_floor_that_was_refused_goes_in_front_of_the_next_grant(void **state)
{
    enum { LOST_MS = 50 };
    struct fixture *f = *state;
    hf_lease *lease = must_take(f, f->b, "other", NULL); /* and the floor that comes once a second */
    int64_t seen = hf_lease_fence(lease), there_at = hft_boottime_ms() + LOST_MS;
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    freeReplyObject(hft_server_ask(f->server, "SET hf:fence %lld", (long long)(seen + INT64_C(1000) * LOST_MS * 2048)));
    lease = must_take(f, f->a, "k", NULL);
    int64_t fence = hf_lease_fence(lease);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    freeReplyObject(hft_server_ask(f->server, "SET hf:fence %lld", (long long)(seen + 2048)));
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET min-replicas-to-write 1"));
    freeReplyObject(hft_server_ask(f->server, "CLIENT KILL TYPE normal SKIPME yes"));
    do
        assert_int_equal(hf_lock_acquire(f->b, "k", NULL, &lease, &f->error), HF_UNAVAILABLE);
    while (strstr(f->error.message, "NOREPLICAS") == NULL || hft_boottime_ms() <= there_at); /* a lane is there again */
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET min-replicas-to-write 0"));
    lease = must_take(f, f->b, "k", NULL);
    assert_true(hf_lease_fence(lease) > fence);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    hf_status closed = hf_client_close(f->b, &f->error); /* an acquire may have gone into a connection that was killed already */
    f->b = NULL;
    assert_true(closed == HF_OK || closed == HF_UNKNOWN);
}

static void fill_queue(struct fixture *f, int old)
{
    freeReplyObject(hft_server_ask(f->server,
                                   "EVAL %s 2 " QUEUE " " WAIT " %d",
                                   "for i = 1, ARGV[1] do\n"
                                   "local token = string.format('hf1:%032x:1:0000000000000007:gone:1', i + 16)\n"
                                   "redis.call('ZADD', KEYS[1], 0, token)\n"
                                   "redis.call('HSET', KEYS[2], token, '1000 1 1274')\n"
                                   "end\n",
                                   old));
}

static int64_t queued(struct fixture *f)
{
    return hft_server_ask_integer(f->server, "ZCARD " QUEUE);
}

static void old_records_are_dropped_and_not_counted(void **state)
{
    struct fixture *f = *state;
    lay(f, OURS);
    fill_queue(f, 1023);
    assert_string_equal(run(f, "release"), "HANDED");
    assert_string_equal(held(f), WAITER);
    assert_int_equal(queued(f), 0);
}

/* Nobody comes in between, however many there are. */
static void with_more_of_them_nothing_is_granted_before_all_are_read(void **state)
{
    struct fixture *f = *state;
    lay(f, OURS);
    fill_queue(f, 2500);
    for (int left = 1476; left > 0; left -= 1024) {
        assert_string_equal(run(f, "release"), "MORE");
        assert_string_equal(held(f), OURS);
        assert_int_equal(queued(f), left + 1);
    }
    assert_string_equal(run(f, "release"), "HANDED");
    lay(f, "");
    fill_queue(f, 2500);
    assert_string_equal(run(f, "acquire"), "QUEUED"); /* a newcomer */
    assert_string_equal(run(f, "try"), "BUSY");
    assert_string_equal(held(f), "");
    assert_string_equal(run(f, "try"), "BUSY");
    assert_string_equal(held(f), WAITER);
    for (int i = 0; i < 2; i++) {
        lay(f, "");
        fill_queue(f, 1025);
        redisReply *reply = hft_server_ask(f->server, i == 0 ? "EVAL %s " ALL " " WAITER " 10463" NEVER "wait 77 5 1274 1200000 0"
                                                             : "EVAL %s " ALL " " OURS " 10463" NEVER "wait 77 0 1274 1200000 0",
                                           hft_script_source(hfi_script_acquire));
        assert_string_equal(reply->element[0]->str, "QUEUED");
        assert_int_equal(reply->element[2]->integer, 0); /* left: ask again at once */
        freeReplyObject(reply);
    }
}

static void a_re_check_makes_room_as_far_as_it_may(void **state)
{
    struct fixture *f = *state;
    lay(f, OTHER);
    fill_queue(f, 1500);
    for (int i = 0; i < 2; i++) {
        redisReply *reply = hft_server_ask(f->server, "EVAL %s " ALL " " WAITER " 10463" NEVER "wait 77 5 1274 1200000 0",
                                           hft_script_source(hfi_script_acquire));
        assert_string_equal(reply->element[0]->str, "QUEUED");
        assert_int_equal(reply->element[3]->integer, i == 0 ? 476 : 0);
        assert_int_equal(reply->element[2]->integer == 0, i == 0);
        freeReplyObject(reply);
    }
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(each_script_names_another_programs_key_and_leaves_it),
        TEST(a_counter_that_is_no_number_is_no_counter),
        TEST(a_floor_that_was_refused_goes_in_front_of_the_next_grant),
        TEST(each_script_writes_first_what_a_full_server_allows),
        TEST(old_records_are_dropped_and_not_counted),
        TEST(with_more_of_them_nothing_is_granted_before_all_are_read),
        TEST(a_re_check_makes_room_as_far_as_it_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
