/* SPDX-License-Identifier: MIT */
/* sentinel_test.c - what sentinels say is read, and makes the right server the primary. */
#include "base/clock.h"
#include "pool/sentinel.h"
#include "tests/support/reply.h"

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NOW (1000 * HFI_MS)

static enum hfi_sentinel_answer read_master(const char *bytes, struct hfi_sentinel_says *says)
{
    redisReply *reply = hft_reply(bytes);
    enum hfi_sentinel_answer answer = hfi_sentinel_read_master(reply, says);
    freeReplyObject(reply);
    return answer;
}

static void answers_about_the_primary_are_read(void **state)
{
    struct hfi_sentinel_says says;
    (void)state;
    assert_int_equal(read_master("*10\r\n$4\r\nname\r\n$1\r\nm\r\n$2\r\nip\r\n$8\r\n10.0.0.7\r\n$4\r\nport\r\n$4\r\n6380\r\n"
                                 "$12\r\nconfig-epoch\r\n$2\r\n12\r\n$23\r\ndown-after-milliseconds\r\n$4\r\n5000\r\n", &says),
                     HFI_SENTINEL_SAYS);
    assert_string_equal(says.primary.host, "10.0.0.7");
    assert_int_equal(says.primary.port, 6380);
    assert_int_equal(says.epoch, 12);
    assert_int_equal(says.down_after_ms, 5000);
    assert_false(says.follows);
    assert_int_equal(read_master("*8\r\n$2\r\nip\r\n$1\r\na\r\n$4\r\nport\r\n$1\r\n1\r\n$12\r\nconfig-epoch\r\n$1\r\n6\r\n"
                                 "$13\r\nrole-reported\r\n$5\r\nslave\r\n", &says), HFI_SENTINEL_SAYS);
    assert_true(says.follows); /* it names a former primary */
    assert_int_equal(read_master("*8\r\n$2\r\nip\r\n$1\r\na\r\n$4\r\nport\r\n$1\r\n1\r\n$12\r\nconfig-epoch\r\n$1\r\n6\r\n"
                                 "$13\r\nrole-reported\r\n$6\r\nmaster\r\n", &says), HFI_SENTINEL_SAYS);
    assert_false(says.follows);
    assert_int_equal(read_master("*8\r\n$2\r\nip\r\n$1\r\na\r\n$4\r\nport\r\n$1\r\n1\r\n$12\r\nconfig-epoch\r\n$1\r\n6\r\n"
                                 "$5\r\nflags\r\n$42\r\nmaster,failover_in_progress,force_failover\r\n", &says), HFI_SENTINEL_SAYS);
    assert_int_equal(says.epoch, 5); /* 6 is the next primary's */
    assert_int_equal(read_master("-ERR No such master with that name\r\n", &says), HFI_SENTINEL_KNOWS_IT_NOT);
    assert_int_equal(read_master("*-1\r\n", &says), HFI_SENTINEL_KNOWS_IT_NOT);
}

static void what_makes_no_sense_is_no_answer(void **state)
{
    static const char *const odd[] = {
        "+OK\r\n", ":1\r\n", "*0\r\n", "-NOPERM this user has no permissions\r\n", "*1\r\n$2\r\nip\r\n",
        "*4\r\n$2\r\nip\r\n$1\r\na\r\n$4\r\nport\r\n$1\r\n1\r\n", /* no epoch */
        "*6\r\n$2\r\nip\r\n$0\r\n\r\n$4\r\nport\r\n$1\r\n1\r\n$12\r\nconfig-epoch\r\n$1\r\n1\r\n",
        "*6\r\n$2\r\nip\r\n$1\r\na\r\n$4\r\nport\r\n$5\r\n65536\r\n$12\r\nconfig-epoch\r\n$1\r\n1\r\n",
        "*6\r\n$2\r\nip\r\n$1\r\na\r\n$4\r\nport\r\n$2\r\n-1\r\n$12\r\nconfig-epoch\r\n$1\r\n1\r\n",
        "*6\r\n$2\r\nip\r\n$3\r\na\nb\r\n$4\r\nport\r\n$1\r\n1\r\n$12\r\nconfig-epoch\r\n$1\r\n1\r\n",
        "*6\r\n$2\r\nip\r\n$1\r\na\r\n$4\r\nport\r\n$2\r\n1a\r\n$12\r\nconfig-epoch\r\n$1\r\n1\r\n",
        "*6\r\n$2\r\nip\r\n$1\r\na\r\n$4\r\nport\r\n$1\r\n1\r\n$12\r\nconfig-epoch\r\n$2\r\n-1\r\n",
        "*6\r\n$2\r\nip\r\n*0\r\n$4\r\nport\r\n$1\r\n1\r\n$12\r\nconfig-epoch\r\n$1\r\n1\r\n"};
    struct hfi_sentinel_says says;
    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        assert_int_equal(read_master(odd[i], &says), HFI_SENTINEL_MAKES_NO_SENSE);
}

static void the_others_are_read(void **state)
{
    struct hfi_other_sentinel others[2];
    redisReply *reply = hft_reply("*3\r\n*4\r\n$2\r\nip\r\n$1\r\na\r\n$4\r\nport\r\n$1\r\n1\r\n:7\r\n"
                              "*6\r\n$2\r\nip\r\n$1\r\nb\r\n$4\r\nport\r\n$1\r\n2\r\n$5\r\nrunid\r\n$3\r\nabc\r\n");
    (void)state;
    assert_int_equal(hfi_sentinel_read_others(reply, others, 2), 2);
    assert_string_equal(others[0].id, "");
    assert_string_equal(others[1].at.host, "b");
    assert_int_equal(others[1].at.port, 2);
    assert_string_equal(others[1].id, "abc");
    assert_int_equal(hfi_sentinel_read_others(reply, others, 1), 1);
    freeReplyObject(reply);
    reply = hft_reply("-NOPERM no\r\n");
    assert_int_equal(hfi_sentinel_read_others(reply, others, 2), -1);
    freeReplyObject(reply);
}

static void a_message_is_about_one_service(void **state)
{
    static const char message[] = "mymaster 10.0.0.1 6379 10.0.0.2 6379";
    (void)state;
    assert_true(hfi_sentinel_is_about(message, sizeof message - 1, "mymaster"));
    assert_false(hfi_sentinel_is_about(message, sizeof message - 1, "my"));
    assert_false(hfi_sentinel_is_about(message, 8, "mymaster"));
    assert_false(hfi_sentinel_is_about(message, sizeof message - 1, "mymaster 10.0.0.1 6379 10.0.0.2 6379"));
}

static void say(struct hfi_council *council, int which, const char *host, uint64_t epoch, int64_t now_ns)
{
    struct hfi_sentinel_says says = {.epoch = epoch, .primary.port = 6379};
    (void)snprintf(says.primary.host, sizeof says.primary.host, "%s", host);
    hfi_council_said(council, which, &says, now_ns);
}

static void all_say_a(struct hfi_council *council)
{
    for (int i = 0; i < council->count; i++)
        say(council, i, "a", 5, NOW);
}

static void judged(struct hfi_council *council, int64_t now_ns, enum hfi_verdict verdict, const char *host)
{
    int64_t again_ns;
    assert_int_equal(hfi_council_judge(council, now_ns, &again_ns), verdict);
    if (host != NULL)
        assert_string_equal(council->decided.primary.host, host);
}

static void the_newest_of_all_answers_wins(void **state)
{
    struct hfi_council council = {.count = 3};
    (void)state;
    judged(&council, NOW, HFI_VERDICT_WAIT, NULL);
    say(&council, 0, "old", 1, NOW);
    judged(&council, NOW, HFI_VERDICT_WAIT, NULL);
    say(&council, 1, "new", 2, NOW + 1);
    judged(&council, NOW + 1, HFI_VERDICT_WAIT, NULL);
    say(&council, 2, "old", 1, NOW + 2);
    judged(&council, NOW + 2, HFI_VERDICT_MOVE, "new");
    judged(&council, NOW + 3, HFI_VERDICT_KEEP, "new");
}

static void the_silent_are_waited_for_for_a_tenth_of_a_second(void **state)
{
    struct hfi_council council = {.count = 3};
    int64_t again_ns;
    (void)state;
    say(&council, 1, "a", 5, NOW);
    assert_int_equal(hfi_council_judge(&council, NOW + 1, &again_ns), HFI_VERDICT_WAIT);
    assert_int_equal(again_ns, NOW + 100 * HFI_MS);
    judged(&council, again_ns - 1, HFI_VERDICT_WAIT, NULL);
    judged(&council, again_ns, HFI_VERDICT_MOVE, "a");
}

static void what_is_newer_counts_at_once_and_what_is_older_never(void **state)
{
    struct hfi_council council = {.count = 3};
    (void)state;
    all_say_a(&council);
    judged(&council, NOW, HFI_VERDICT_MOVE, "a");
    say(&council, 2, "b", 4, NOW + 1);
    judged(&council, NOW + 1, HFI_VERDICT_KEEP, "a");
    say(&council, 2, "b", 6, NOW + 2);
    judged(&council, NOW + 2, HFI_VERDICT_MOVE, "b");
    judged(&council, NOW + 3, HFI_VERDICT_KEEP, "b"); /* though the two others name a still */
    say(&council, 0, "b", 7, NOW + 4);
    judged(&council, NOW + 4, HFI_VERDICT_KEEP, "b");
    assert_int_equal(council.decided.epoch, 7);
}

static void what_all_agree_on_counts_though_it_is_older(void **state)
{
    struct hfi_council council = {.count = 2};
    (void)state;
    say(&council, 0, "a", 9, NOW);
    say(&council, 1, "a", 9, NOW);
    judged(&council, NOW, HFI_VERDICT_MOVE, "a");
    say(&council, 0, "b", 0, NOW + 1); /* SENTINEL REMOVE and MONITOR: counted from 0 again */
    judged(&council, NOW + 1, HFI_VERDICT_KEEP, "a");
    say(&council, 1, "b", 0, NOW + 2);
    judged(&council, NOW + 2, HFI_VERDICT_MOVE, "b");
    hfi_council_note(&council, 0, HFI_TESTIMONY_SILENT);
    hfi_council_note(&council, 1, HFI_TESTIMONY_SILENT);
    judged(&council, NOW + 3, HFI_VERDICT_KEEP, "b");
}

/* As sentinels whose files are gone do. Or the next failover would be none to this client, while one of them is away. */
static void all_that_count_anew_are_followed_from_there(void **state)
{
    struct hfi_council council = {.count = 3};
    (void)state;
    all_say_a(&council);
    judged(&council, NOW, HFI_VERDICT_MOVE, "a");
    say(&council, 0, "a", 0, NOW + 1);
    say(&council, 1, "a", 0, NOW + 1);
    judged(&council, NOW + 1, HFI_VERDICT_KEEP, "a");
    assert_int_equal(council.decided.epoch, 5); /* one of them counts on */
    say(&council, 2, "a", 0, NOW + 2);
    judged(&council, NOW + 2, HFI_VERDICT_KEEP, "a");
    hfi_council_note(&council, 2, HFI_TESTIMONY_SILENT);
    say(&council, 0, "b", 1, NOW + 3);
    judged(&council, NOW + 3, HFI_VERDICT_MOVE, "b");
}

static void one_that_falls_silent_does_not_bring_the_old_primary_back(void **state)
{
    struct hfi_council council = {.count = 3};
    (void)state;
    all_say_a(&council);
    judged(&council, NOW, HFI_VERDICT_MOVE, "a");
    say(&council, 0, "b", 6, NOW + 1);
    judged(&council, NOW + 1, HFI_VERDICT_MOVE, "b");
    hfi_council_note(&council, 0, HFI_TESTIMONY_SILENT); /* the two others are cut off, and name a */
    judged(&council, NOW + 2, HFI_VERDICT_KEEP, "b");
    hfi_council_note(&council, 0, HFI_TESTIMONY_NO_SUCH);
    judged(&council, NOW + 3, HFI_VERDICT_KEEP, "b");
}

static void the_first_to_come_back_does_not_decide_alone(void **state)
{
    struct hfi_council council = {.count = 3};
    (void)state;
    for (int i = 0; i < 3; i++)
        hfi_council_note(&council, i, HFI_TESTIMONY_SILENT);
    judged(&council, NOW, HFI_VERDICT_NOBODY, NULL);
    say(&council, 2, "old", 1, NOW + 1);
    judged(&council, NOW + 1, HFI_VERDICT_WAIT, NULL);
    say(&council, 0, "new", 2, NOW + 2);
    judged(&council, NOW + 1 + 100 * HFI_MS, HFI_VERDICT_MOVE, "new");
}

static void found_ones_count_while_they_answer_or_are_listed(void **state)
{
    struct hfi_council council = {.count = 3, .of = {{.lists = 2}, {.is_found = true}, {.is_found = true}}};
    (void)state;
    for (int i = 0; i < 3; i++)
        hfi_council_note(&council, i, HFI_TESTIMONY_SILENT);
    assert_true(hfi_council_counts(&council, 0));  /* the URI's do in any case */
    assert_false(hfi_council_counts(&council, 1)); /* who lists it is silent itself */
    say(&council, 0, "a", 5, NOW);
    assert_true(hfi_council_counts(&council, 1));
    assert_false(hfi_council_counts(&council, 2));
    say(&council, 2, "a", 5, NOW);
    assert_true(hfi_council_counts(&council, 2));
    judged(&council, NOW, HFI_VERDICT_WAIT, NULL); /* for 1 */
    council.of[0].lists = 0;
    judged(&council, NOW, HFI_VERDICT_MOVE, "a");
    say(&council, 0, "b", 0, NOW);
    say(&council, 2, "b", 0, NOW);
    judged(&council, NOW, HFI_VERDICT_MOVE, "b"); /* all of those that are left agree */
}

static void a_found_one_that_does_not_count_any_more_gives_its_place(void **state)
{
    struct hfi_council council = {.count = 3, .of = {{.lists = 6}, {.is_found = true, .id = "x"}, {.is_found = true}}};
    (void)state;
    say(&council, 0, "a", 5, NOW);
    hfi_council_note(&council, 1, HFI_TESTIMONY_SILENT);
    say(&council, 2, "a", 5, NOW);
    assert_int_equal(hfi_council_spare(&council), -1); /* it is listed */
    council.of[0].lists = 4;
    assert_int_equal(hfi_council_spare(&council), 1);
    hfi_council_note(&council, 1, HFI_TESTIMONY_NONE);
    assert_int_equal(hfi_council_spare(&council), -1); /* it may answer yet */
    hfi_council_note(&council, 1, HFI_TESTIMONY_SILENT);
    hfi_council_note(&council, 0, HFI_TESTIMONY_SILENT);
    assert_int_equal(hfi_council_spare(&council), 1); /* and never the URI's own */
    council.of[2].lists = 3;
    hfi_council_give(&council, 1);
    assert_true(council.of[1].is_found && council.of[1].testimony == HFI_TESTIMONY_NONE && council.of[1].id[0] == 0);
    assert_int_equal(council.of[2].lists, 1); /* the other one was not listed by anybody */
}

static void one_of_two_addresses_counts_once(void **state)
{
    struct hfi_council council = {.count = 3, .of = {{.id = "x"}, {.id = "y"}, {.is_found = true, .id = "x"}}};
    (void)state;
    all_say_a(&council);
    assert_true(hfi_council_counts(&council, 0) && hfi_council_counts(&council, 1));
    assert_false(hfi_council_counts(&council, 2));
    hfi_council_note(&council, 0, HFI_TESTIMONY_SILENT); /* it has moved */
    assert_false(hfi_council_counts(&council, 0));
    assert_true(hfi_council_counts(&council, 2));
    hfi_council_note(&council, 2, HFI_TESTIMONY_SILENT);
    assert_true(hfi_council_counts(&council, 0));
    assert_false(hfi_council_counts(&council, 2));
    council.of[0].id[0] = council.of[2].id[0] = 0; /* not told: by its address alone */
    say(&council, 2, "a", 5, NOW);
    assert_true(hfi_council_counts(&council, 0) && hfi_council_counts(&council, 2));
}

static void one_that_has_forgotten_the_others_is_no_majority(void **state)
{
    struct hfi_council council = {.count = 3, .of = {{.lists = 6}, {.is_found = true}, {.is_found = true}}};
    (void)state;
    all_say_a(&council);
    council.of[0].says.sentinels = 3;
    assert_int_equal(hfi_council_known(&council), 3);
    for (int i = 1; i < 3; i++)
        hfi_council_note(&council, i, HFI_TESTIMONY_SILENT);
    council.of[0].says.sentinels = 1; /* SENTINEL RESET */
    council.of[0].lists = 0;
    assert_int_equal(hfi_council_known(&council), 3);
    say(&council, 1, "a", 5, NOW); /* one of them was taken away */
    council.of[0].says.sentinels = council.of[1].says.sentinels = 2;
    assert_int_equal(hfi_council_known(&council), 2);
    council.of[0].says.sentinels = 1000; /* nonsense */
    assert_int_equal(hfi_council_known(&council), 1000);
    council.of[0].says.sentinels = 2;
    assert_int_equal(hfi_council_known(&council), 2);
}

static void one_that_the_uri_names_twice_is_one(void **state)
{
    struct hfi_council council = {.count = 2};
    (void)state;
    assert_int_equal(hfi_council_known(&council), 2); /* for all that is known */
    for (int i = 0; i < 2; i++) {
        say(&council, i, "a", 5, NOW);
        council.of[i].says.sentinels = 1;
        council.of[i].id[0] = 'x';
    }
    assert_int_equal(hfi_council_known(&council), 1);
    hfi_council_note(&council, 0, HFI_TESTIMONY_SILENT);
    assert_int_equal(hfi_council_known(&council), 1);
    hfi_council_note(&council, 1, HFI_TESTIMONY_SILENT);
    assert_int_equal(hfi_council_known(&council), 1);
    council.of[1].id[0] = 'y'; /* another one has come there */
    assert_int_equal(hfi_council_known(&council), 2);
}

static void without_an_answer_it_is_said_why(void **state)
{
    struct hfi_council council = {.count = 2};
    (void)state;
    hfi_council_note(&council, 0, HFI_TESTIMONY_SILENT);
    judged(&council, NOW, HFI_VERDICT_WAIT, NULL);
    hfi_council_note(&council, 1, HFI_TESTIMONY_SILENT);
    judged(&council, NOW, HFI_VERDICT_NOBODY, NULL);
    hfi_council_note(&council, 1, HFI_TESTIMONY_NO_SUCH);
    judged(&council, NOW, HFI_VERDICT_NOBODY, NULL); /* the silent one may know it */
    hfi_council_note(&council, 0, HFI_TESTIMONY_NO_SUCH);
    judged(&council, NOW, HFI_VERDICT_NO_SERVICE, NULL);
    say(&council, 0, "a", 1, NOW);
    judged(&council, NOW, HFI_VERDICT_MOVE, "a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_about_the_primary_are_read),
        cmocka_unit_test(what_makes_no_sense_is_no_answer),
        cmocka_unit_test(the_others_are_read),
        cmocka_unit_test(a_message_is_about_one_service),
        cmocka_unit_test(the_newest_of_all_answers_wins),
        cmocka_unit_test(the_silent_are_waited_for_for_a_tenth_of_a_second),
        cmocka_unit_test(what_is_newer_counts_at_once_and_what_is_older_never),
        cmocka_unit_test(what_all_agree_on_counts_though_it_is_older),
        cmocka_unit_test(all_that_count_anew_are_followed_from_there),
        cmocka_unit_test(one_that_falls_silent_does_not_bring_the_old_primary_back),
        cmocka_unit_test(the_first_to_come_back_does_not_decide_alone),
        cmocka_unit_test(found_ones_count_while_they_answer_or_are_listed),
        cmocka_unit_test(a_found_one_that_does_not_count_any_more_gives_its_place),
        cmocka_unit_test(one_of_two_addresses_counts_once),
        cmocka_unit_test(one_that_has_forgotten_the_others_is_no_majority),
        cmocka_unit_test(one_that_the_uri_names_twice_is_one),
        cmocka_unit_test(without_an_answer_it_is_said_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
