/* SPDX-License-Identifier: MIT */
/* promotable_test.c - who has to confirm, by what sentinels say of replicas, and whether ROLE and WAIT say that they do. */
#include "base/clock.h"
#include "pool/promotable.h"
#include "tests/support/reply.h"

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NOW (1000 * HFI_MS)

/* Words separated by blanks, as an array. */
static int array(char *out, size_t room, const char *words)
{
    char copy[512], *rest = copy;
    int count = 0, size = 0;
    (void)snprintf(copy, sizeof copy, "%s", words);
    for (const char *at = words; *at != 0; at++)
        count += *at == ' ';
    size = snprintf(out, room, "*%d\r\n", count + 1);
    for (char *word = strtok_r(rest, " ", &rest); word != NULL; word = strtok_r(rest, " ", &rest))
        size += snprintf(out + size, room - (size_t)size, "$%zu\r\n%s\r\n", strlen(word), word);
    return size;
}

/* By one that names 10.0.0.9. */
static void hear(struct hfi_said_replicas *said, const struct hfi_promotable *promotable, const char *const *lines, int count, bool follows)
{
    const struct hfi_sentinel_says says = {.primary = {"10.0.0.9", 9}, .follows = follows};
    char bytes[4096];
    int size = snprintf(bytes, sizeof bytes, "*%d\r\n", count);
    for (int i = 0; i < count; i++)
        size += array(bytes + size, sizeof bytes - (size_t)size, lines[i]);
    redisReply *reply = hft_reply(bytes);
    hfi_promotable_heard(promotable, &says, reply, NOW, said);
    freeReplyObject(reply);
}

static const struct hfi_promotable of_it = {.primary = {"10.0.0.9", 9}, .former = {"10.0.0.8", 8}};

static bool reads(const char *const *lines, int count, struct hfi_said_replicas *said)
{
    hear(said, &of_it, lines, count, false);
    return said->is_given;
}

static void what_a_sentinel_says_of_replicas_is_read(void **state)
{
    static const char *const lines[] = {
        "ip 10.0.0.1 port 1 flags slave role-reported slave master-host 10.0.0.9 slave-priority 100",
        "ip 10.0.0.2 port 2 flags s_down,slave,disconnected role-reported slave master-host 10.0.0.9 slave-priority 100",
        "ip 10.0.0.3 port 3 flags slave,disconnected role-reported slave master-host ? slave-priority 100",
        "ip 10.0.0.4 port 4 flags slave role-reported master master-host ? slave-priority 0",
    };
    static const bool out[] = {false, true, true, true}, follows[] = {true, true, false, false};
    struct hfi_said_replicas said = {.is_given = false};
    (void)state;
    assert_true(reads(lines, 4, &said));
    assert_int_equal(said.count, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(said.list[i].at.port, i + 1);
        assert_int_equal(said.list[i].is_out, out[i]);
        assert_int_equal(said.list[i].follows, follows[i]);
    }
    assert_true(reads(lines, 0, &said));
    assert_int_equal(said.count, 0);
    static const char *const odd[] = {"ip 10.0.0.1 flags slave"};
    assert_false(reads(odd, 1, &said));
    static const char *const of_another[] = {"ip 10.0.0.1 port 1 flags slave", "ip 10.0.0.9 port 9 flags slave"};
    assert_true(reads(of_another, 1, &said));
    assert_false(reads(of_another, 2, &said)); /* who was named a moment ago follows, and who is promoted is not listed */
    assert_true(reads(of_another, 1, &said));
    const struct hfi_sentinel_says says = {.primary = of_it.primary};
    redisReply *refusal = hft_reply("-NOPERM no\r\n");
    hfi_promotable_heard(&of_it, &says, refusal, NOW, &said);
    assert_false(said.is_given);
    freeReplyObject(refusal);
}

static const char *const one_replica[] = {"ip 10.0.0.1 port 1 flags slave role-reported slave master-host 10.0.0.9 slave-priority 100"};

static void a_list_is_of_the_primary_that_was_named(void **state)
{
    const struct hfi_promotable of_former = {.primary = {"10.0.0.1", 1}, .former = {"10.0.0.9", 9}},
                                of_others = {.primary = {"10.0.0.1", 1}, .former = {"10.0.0.2", 2}};
    const struct hfi_sentinel_says says = {.primary = of_it.primary};
    struct hfi_said_replicas said = {.is_given = false};
    (void)state;
    assert_true(reads(one_replica, 1, &said));
    assert_int_equal(said.asked_ns, NOW);
    assert_int_equal(said.named_former_ns, 0);
    hfi_promotable_heard(&of_it, &says, NULL, NOW + 1, &said); /* silence: what was said stands, and nobody has said it now */
    assert_true(said.is_given);
    assert_int_equal(said.count, 1);
    assert_int_equal(said.listed_ns, NOW);
    assert_int_equal(said.asked_ns, 0);
    said.listed_ns = 0;
    hear(&said, &of_former, one_replica, 1, false);
    assert_true(said.is_given);
    assert_int_equal(said.asked_ns, 0);
    assert_int_equal(said.named_former_ns, NOW);
    assert_int_equal(said.listed_ns, NOW);
    hear(&said, &of_others, one_replica, 0, false);
    assert_int_equal(said.named_former_ns, 0);
    assert_int_equal(said.count, 2); /* as before */
    said.asked_ns = said.named_former_ns = NOW;
    hfi_promotable_heard(&of_it, NULL, NULL, NOW, &said);
    assert_int_equal(said.asked_ns + said.named_former_ns, 0);
    const struct hfi_promotable back_again = {.primary = of_it.primary, .former = of_it.primary};
    hear(&said, &back_again, one_replica, 1, false);
    assert_int_equal(said.asked_ns, NOW);
    assert_int_equal(said.count, 1);
    static const char *const odd[] = {"ip 10.0.0.1 flags slave"};
    hear(&said, &of_former, odd, 1, false);
    assert_false(said.is_given);
}

/* It stands in no other list, where the sentinels that are heard do not speak of it. */
static void who_names_the_former_primary_knows_of_it(void **state)
{
    const struct hfi_promotable of_former = {.primary = {"10.0.0.1", 1}, .former = {"10.0.0.9", 9}};
    const char *many[HFI_REPLICAS_MOST + 1];
    struct hfi_said_replicas said = {.is_given = false};
    (void)state;
    for (int i = 0; i < 2; i++) {
        hear(&said, &of_former, one_replica, 1, i == 1);
        assert_int_equal(said.count, 2);
        assert_string_equal(said.list[1].at.host, "10.0.0.9");
        assert_int_equal(said.list[1].at.port, 9);
        assert_false(said.list[1].is_out);
        assert_int_equal(said.list[1].follows, i == 1);
    }
    for (int i = 0; i <= HFI_REPLICAS_MOST; i++)
        many[i] = one_replica[0];
    hear(&said, &of_former, many, HFI_REPLICAS_MOST, false);
    assert_int_equal(said.count, HFI_REPLICAS_MOST + 1); /* the present primary is one of them, and not needed */
    hear(&said, &of_former, many, HFI_REPLICAS_MOST + 1, false);
    assert_int_equal(said.count, -1);
    assert_true(reads(many, HFI_REPLICAS_MOST, &said));
    assert_int_equal(said.count, HFI_REPLICAS_MOST);
}

struct council { /* three sentinels */
    struct hfi_promotable promotable;
    struct hfi_said_replicas said[3];
    bool silent[3]; /* for ever; what it has said is not known */
    int64_t now_ns;
};

static struct council council_at(int64_t now_ns)
{
    struct council council = {.promotable = {.needed = {.until_ns = HFI_NEVER}}, .now_ns = now_ns};
    for (int i = 0; i < 3; i++)
        council.said[i].asked_ns = council.said[i].listed_ns = now_ns;
    return council;
}

static void list(struct council *council, int sentinel, const char *host, bool is_out, bool follows)
{
    struct hfi_said_replicas *said = &council->said[sentinel];
    struct hfi_said_replica *one = &said->list[said->count++];
    (void)snprintf(one->at.host, sizeof one->at.host, "%s", host);
    one->at.port = 6379;
    one->is_out = is_out;
    one->follows = follows;
}

static bool judge_of(struct council *council, int known)
{
    const struct hfi_said_replicas *said[3];
    for (int i = 0; i < 3; i++)
        said[i] = council->silent[i] ? NULL : &council->said[i];
    return hfi_promotable_judge(&council->promotable, said, 3, known, council->now_ns);
}

static bool judge(struct council *council)
{
    return judge_of(council, 3);
}

static void move(struct council *council, const char *former)
{
    const struct hfi_said_replicas *said[3] = {&council->said[0], &council->said[1], &council->said[2]};
    const struct hfi_named_host primary = {"p", 6379};
    struct hfi_named_host before = {.port = 6379};
    (void)snprintf(before.host, sizeof before.host, "%s", former);
    hfi_promotable_moved(&council->promotable, &before, &primary, said, 3, 3, council->now_ns);
}

/* The hosts that are needed, one after the other. */
static const char *needed(const struct council *council)
{
    static char text[256];
    int size = 0;
    text[0] = 0;
    for (int i = 0; i < council->promotable.needed.count; i++)
        size += snprintf(text + size, sizeof text - (size_t)size, "%s", council->promotable.needed.list[i].host);
    return text;
}

static void whom_any_sentinel_lists_is_needed_unless_most_leave_him_out(void **state)
{
    struct council council = council_at(NOW);
    (void)state;
    for (int i = 0; i < 3; i++)
        list(&council, i, "a", false, true);
    list(&council, 0, "b", true, true);
    list(&council, 1, "b", false, true);
    assert_true(judge(&council));
    assert_string_equal(needed(&council), "ab"); /* one would choose him, whatever the others say */
    assert_false(judge(&council)); /* nothing new */
    council.said[1].list[1].is_out = true;
    assert_true(judge(&council));
    assert_string_equal(needed(&council), "a"); /* and the third does not even list him */
    council.silent[2] = true;
    assert_false(judge(&council));
    council.said[1].asked_ns = 0;
    assert_true(judge(&council));
    assert_string_equal(needed(&council), "ab"); /* one of three is no majority, whoever else can be asked */
    council.silent[1] = true;
    assert_true(judge(&council));
    assert_string_equal(needed(&council), ""); /* nor does it know for all who there is */
}

/* Who was down may be back, and be promoted, before they are asked again. */
static void who_is_left_out_is_so_for_half_a_second(void **state)
{
    struct council council = council_at(NOW);
    (void)state;
    for (int i = 0; i < 3; i++) {
        list(&council, i, "a", false, true);
        list(&council, i, "b", true, true);
    }
    assert_true(judge(&council));
    assert_string_equal(needed(&council), "a");
    assert_int_equal(council.promotable.needed.until_ns, NOW + 500 * HFI_MS);
    council.now_ns = NOW + 200 * HFI_MS;
    council.said[0].asked_ns = council.now_ns;
    assert_false(judge(&council)); /* two votes are needed, and the second one is as old as before */
    council.said[2].asked_ns = council.now_ns;
    assert_true(judge(&council));
    assert_int_equal(council.promotable.needed.until_ns, NOW + 700 * HFI_MS); /* the third may be as old as it likes */
    council.now_ns = NOW + 700 * HFI_MS;
    assert_true(judge(&council));
    assert_string_equal(needed(&council), "ab");
    assert_int_equal(council.promotable.needed.until_ns, NOW + 3000 * HFI_MS); /* by their lists */
    council.said[1].asked_ns = council.said[2].asked_ns = council.now_ns;
    assert_true(judge(&council));
    assert_string_equal(needed(&council), "a");
    council.said[1].asked_ns = 0; /* it has fallen silent: its list stays, its vote does not */
    assert_true(judge(&council));
    assert_string_equal(needed(&council), "ab");
}

/* Whoever was attached since stands in no list that is older, and could be promoted without what is confirmed. */
static void a_list_counts_for_three_seconds(void **state)
{
    struct council council = council_at(NOW);
    (void)state;
    for (int i = 0; i < 3; i++)
        list(&council, i, "a", false, true);
    assert_true(judge(&council));
    assert_int_equal(council.promotable.needed.until_ns, NOW + 3000 * HFI_MS);
    assert_false(council.promotable.leaves_out);
    council.said[1].asked_ns = council.said[2].asked_ns = 0; /* silent: what they have said counts for as long */
    council.now_ns = council.said[0].listed_ns = NOW + 2000 * HFI_MS;
    assert_false(judge(&council)); /* one of three renews nothing */
    council.said[1].listed_ns = NOW + 1000 * HFI_MS;
    assert_true(judge(&council));
    assert_int_equal(council.promotable.needed.until_ns, NOW + 4000 * HFI_MS);
    council.now_ns = NOW + 3999 * HFI_MS;
    assert_false(judge(&council));
    assert_string_equal(needed(&council), "a");
    council.now_ns = NOW + 4000 * HFI_MS;
    assert_true(judge(&council));
    assert_string_equal(needed(&council), "");
    council.said[2].listed_ns = council.now_ns;
    assert_true(judge(&council));
    assert_string_equal(needed(&council), "a");
    council.said[2].asked_ns = council.said[1].asked_ns = council.said[1].listed_ns = council.now_ns;
    council.said[1].list[0].is_out = council.said[2].list[0].is_out = true;
    assert_true(judge(&council));
    assert_true(council.promotable.leaves_out);
    move(&council, "p");
    assert_false(council.promotable.leaves_out);
}

static void a_former_primary_is_needed_when_it_follows(void **state)
{
    struct council council = council_at(NOW);
    (void)state;
    list(&council, 0, "b", false, true);
    (void)judge(&council);
    move(&council, "a");
    assert_string_equal(needed(&council), "");
    list(&council, 1, "a", false, false);
    list(&council, 1, "c", false, false);
    assert_true(judge(&council));
    assert_string_equal(needed(&council), "bc"); /* one that says it is a primary may be the one just promoted */
    list(&council, 2, "a", false, true);
    assert_true(judge(&council));
    assert_string_equal(needed(&council), "bac");
    council.said[2].list[0].follows = false; /* it was seen once */
    assert_false(judge(&council));
}

/* It may have followed, and be the primary again, without that anybody has told us. */
static void a_former_primary_that_was_not_heard_of_lately_is_needed(void **state)
{
    struct council council = council_at(NOW);
    (void)state;
    council.said[0].asked_ns = NOW - 1250 * HFI_MS;
    council.said[1].asked_ns = 0;
    move(&council, "a");
    for (int i = 0; i < 3; i++) {
        council.said[i].asked_ns = NOW;
        list(&council, i, "a", false, false);
    }
    assert_true(judge(&council));
    assert_string_equal(needed(&council), "a");
    council.said[0].asked_ns = NOW - 1249 * HFI_MS;
    council.said[1].asked_ns = 0;
    move(&council, "a");
    council.said[0].asked_ns = council.said[1].asked_ns = NOW;
    (void)judge(&council);
    assert_string_equal(needed(&council), "");
}

/* A failover has one sentinel at first that knows of it. The others say who followed before, and that the former primary follows. */
static void sentinels_that_are_late_say_who_else_there_is(void **state)
{
    struct council council = council_at(NOW);
    (void)state;
    move(&council, "a");
    list(&council, 0, "b", false, true);
    list(&council, 0, "a", false, false);
    council.silent[1] = council.silent[2] = true;
    assert_false(judge(&council));
    council.silent[1] = false;
    council.said[1].asked_ns = 0;
    council.said[1].named_former_ns = NOW;
    list(&council, 1, "p", false, true);
    list(&council, 1, "c", false, true);
    list(&council, 1, "a", false, false);
    assert_true(judge(&council));
    assert_string_equal(needed(&council), "bc");
    council.said[1].list[2].follows = true; /* the other has not asked it since */
    assert_true(judge(&council));
    assert_string_equal(needed(&council), "bac");
}

/* Who reaches no sentinel, or too few, does not learn that it follows by now, and may be promoted again. */
static void a_former_primary_is_left_out_only_while_most_sentinels_answer(void **state)
{
    struct council council = council_at(NOW);
    (void)state;
    move(&council, "a");
    for (int i = 0; i < 2; i++) {
        list(&council, i, "b", false, true);
        list(&council, i, "a", false, false);
    }
    council.said[2].asked_ns = 0;
    assert_true(judge(&council));
    assert_string_equal(needed(&council), "b");
    assert_int_equal(council.promotable.needed.until_ns, NOW + 500 * HFI_MS);
    council.now_ns = council.said[0].asked_ns = NOW + 400 * HFI_MS;
    council.said[2].named_former_ns = NOW + 300 * HFI_MS; /* it cannot choose its own primary */
    assert_true(judge(&council));
    assert_int_equal(council.promotable.needed.until_ns, NOW + 800 * HFI_MS);
    council.now_ns = council.said[0].asked_ns = NOW + 800 * HFI_MS;
    assert_true(judge(&council));
    assert_string_equal(needed(&council), "ba");
    council.said[1].asked_ns = council.now_ns; /* until they are heard again */
    assert_true(judge(&council));
    assert_string_equal(needed(&council), "b");
    assert_true(judge_of(&council, 7)); /* the URI need not name all that there are: three are no majority then */
    assert_string_equal(needed(&council), "");
}

/* And if that lasted, it may have followed meanwhile, and be the primary again. */
static void a_former_primary_that_may_have_followed_unseen_is_needed(void **state)
{
    struct council council = council_at(NOW);
    (void)state;
    move(&council, "a");
    for (int i = 0; i < 3; i++)
        list(&council, i, "a", false, false);
    for (int i = 0; i < 3; i++) { /* each time a moment too soon to be in doubt */
        (void)judge(&council);
        assert_string_equal(needed(&council), "");
        council.now_ns += 1249 * HFI_MS;
        council.said[0].asked_ns = council.said[1].asked_ns = council.now_ns;
    }
    (void)judge(&council);
    council.now_ns += 1250 * HFI_MS;
    for (int i = 0; i < 3; i++)
        council.said[i].asked_ns = council.said[i].listed_ns = council.now_ns;
    assert_true(judge(&council));
    assert_string_equal(needed(&council), "a");
}

/* The others are not found, but the one that is heard says that there are three. */
static void one_of_three_is_no_majority(void **state)
{
    struct council council = council_at(NOW);
    const struct hfi_said_replicas *said[1] = {&council.said[0]};
    (void)state;
    list(&council, 0, "a", true, true);
    list(&council, 0, "b", false, true);
    (void)hfi_promotable_judge(&council.promotable, said, 1, 3, NOW);
    assert_int_equal(council.promotable.needed.count, 0);
    (void)hfi_promotable_judge(&council.promotable, said, 1, 1, NOW);
    assert_int_equal(council.promotable.needed.count, 1);
}

static void too_many_to_know_means_nobody(void **state)
{
    struct council council = council_at(NOW);
    (void)state;
    for (int i = 0; i < HFI_REPLICAS_MOST; i++) {
        char host[8];
        (void)snprintf(host, sizeof host, "%c", 'a' + i);
        list(&council, i % 2, host, false, true);
    }
    assert_true(judge(&council));
    assert_int_equal(council.promotable.needed.count, HFI_REPLICAS_MOST);
    list(&council, 2, "z", false, true);
    assert_true(judge(&council));
    assert_int_equal(council.promotable.needed.count, 0);
    council.said[2].count = -1;
    assert_false(judge(&council));
    assert_true(council.promotable.is_known); /* it is not waited for */
}

static void that_nobody_could_be_promoted_is_known_when_most_have_said_so(void **state)
{
    struct council council = council_at(NOW);
    (void)state;
    council.silent[1] = council.silent[2] = true;
    (void)judge(&council);
    assert_false(council.promotable.is_known);
    council.silent[1] = false;
    (void)judge(&council);
    assert_true(council.promotable.is_known);
    assert_int_equal(council.promotable.needed.count, 0);
    move(&council, "a");
    assert_false(council.promotable.is_known);
}

static void wait_says_how_many_lack_it(void **state)
{
    static const struct {
        const char *reply;
        int lacks;
    } cases[] = {{":2\r\n", 0}, {":3\r\n", 0}, {":1\r\n", 1}, {":0\r\n", 2}, {":-1\r\n", 2}, {"-NOPERM no\r\n", 2}, {"+OK\r\n", 2}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        redisReply *reply = hft_reply(cases[i].reply);
        assert_int_equal(hfi_confirmation_lacks(reply, 2), cases[i].lacks);
        freeReplyObject(reply);
    }
}

/* WAIT counts whoever comes first: one that nobody needs may be nearer than those that are. */
static void after_a_wait_in_vain_all_that_are_connected_are_waited_for(void **state)
{
    const struct hfi_replicas none = {.count = 0}, two = {.count = 2};
    (void)state;
    assert_int_equal(hfi_confirmation_count(&two, 0), 2);
    assert_int_equal(hfi_confirmation_count(&two, 1), 2);
    assert_int_equal(hfi_confirmation_count(&two, 3), 3);
    assert_int_equal(hfi_confirmation_count(&none, 0), 1);
    assert_int_equal(hfi_confirmation_count(NULL, 0), 1);
}

#define LINE(host, port, offset) "*3\r\n$1\r\n" host "\r\n$1\r\n" port "\r\n$3\r\n" offset "\r\n"

static void role_says_who_has_come_as_far(void **state)
{
    const struct hfi_replicas replicas = {2, HFI_NEVER, {{"a", 1}, {"b", 2}}};
    redisReply *role = hft_reply("*3\r\n$6\r\nmaster\r\n:130\r\n*3\r\n" LINE("a", "1", "120") LINE("b", "3", "130") LINE("b", "2", "119"));
    redisReply *replica = hft_reply("*5\r\n$5\r\nslave\r\n$1\r\na\r\n:1\r\n$9\r\nconnected\r\n:130\r\n");
    redisReply *refusal = hft_reply("-NOPERM no\r\n");
    redisReply *odd = hft_reply("*3\r\n$6\r\nmaster\r\n:130\r\n*2\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n*3\r\n$1\r\na\r\n:1\r\n:130\r\n");
    (void)state;
    assert_int_equal(hfi_confirmation_offset(role), 130);
    assert_int_equal(hfi_confirmation_missing(role, 119, &replicas), 0);
    assert_int_equal(hfi_confirmation_missing(role, 120, &replicas), 1);
    assert_int_equal(hfi_confirmation_missing(role, 121, &replicas), 2);
    assert_int_equal(hfi_confirmation_missing(role, -1, &replicas), 2); /* it was not said what has to be reached */
    assert_int_equal(hfi_confirmation_offset(replica), -1);
    assert_int_equal(hfi_confirmation_missing(replica, 1, &replicas), 2);
    assert_int_equal(hfi_confirmation_offset(refusal), -1);
    assert_int_equal(hfi_confirmation_missing(refusal, 1, &replicas), 2);
    assert_int_equal(hfi_confirmation_missing(odd, 1, &replicas), 2);
    assert_int_equal(hfi_confirmation_connected(role), 3);
    assert_int_equal(hfi_confirmation_connected(replica), 0);
    assert_int_equal(hfi_confirmation_connected(refusal), 0);
    freeReplyObject(role);
    freeReplyObject(replica);
    freeReplyObject(refusal);
    freeReplyObject(odd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_sentinel_says_of_replicas_is_read),
        cmocka_unit_test(a_list_is_of_the_primary_that_was_named),
        cmocka_unit_test(who_names_the_former_primary_knows_of_it),
        cmocka_unit_test(whom_any_sentinel_lists_is_needed_unless_most_leave_him_out),
        cmocka_unit_test(who_is_left_out_is_so_for_half_a_second),
        cmocka_unit_test(a_list_counts_for_three_seconds),
        cmocka_unit_test(a_former_primary_is_needed_when_it_follows),
        cmocka_unit_test(a_former_primary_that_was_not_heard_of_lately_is_needed),
        cmocka_unit_test(sentinels_that_are_late_say_who_else_there_is),
        cmocka_unit_test(a_former_primary_is_left_out_only_while_most_sentinels_answer),
        cmocka_unit_test(a_former_primary_that_may_have_followed_unseen_is_needed),
        cmocka_unit_test(one_of_three_is_no_majority),
        cmocka_unit_test(too_many_to_know_means_nobody),
        cmocka_unit_test(that_nobody_could_be_promoted_is_known_when_most_have_said_so),
        cmocka_unit_test(wait_says_how_many_lack_it),
        cmocka_unit_test(after_a_wait_in_vain_all_that_are_connected_are_waited_for),
        cmocka_unit_test(role_says_who_has_come_as_far),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
