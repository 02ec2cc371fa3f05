/* SPDX-License-Identifier: MIT */
/* key_test.c - the keys of a name: those of docs/protocol.md, all in one slot, none equal to another name's. */
#include "core/protocol/key.h"

#include <holdfast/fetch.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct hfi_keys keys_of(const char *key_template, enum hfi_use use, const char *name)
{
    struct hfi_keys keys;
    struct hfi_name taken = hfi_name_of(use, name, strlen(name));
    hf_error error;
    if (hfi_keys_make(key_template, &taken, &keys, &error) != HF_OK)
        fail_msg("%s: %s", name, error.message);
    return keys;
}

/* Of the keys that were asked for last. */
static const struct hfi_side_keys *sides_of(const struct hfi_keys *keys)
{
    static struct hfi_side_keys sides;
    hfi_side_keys_done(&sides);
    assert_true(hfi_side_keys_print(keys, &sides));
    return &sides;
}

static bool is_refused(const char *key_template, enum hfi_use use, const char *name)
{
    struct hfi_keys keys;
    struct hfi_name taken = hfi_name_of(use, name, strlen(name));
    hf_error error;
    hf_status status = hfi_keys_make(key_template, &taken, &keys, &error);
    if (status == HF_OK) {
        hfi_keys_done(&keys);
        return false;
    }
    assert_int_equal(status, HF_INVALID);
    assert_int_equal(error.status, HF_INVALID);
    assert_true(error.message[0] != 0 && error.hint[0] != 0);
    return true;
}

static void assert_one_slot(const struct hfi_keys *keys)
{
    unsigned slot = hfi_key_slot(keys->lock, keys->lock_size);
    const struct hfi_side_keys *sides = sides_of(keys);
    assert_int_equal(hfi_key_slot(sides->queue, sides->queue_size), slot);
    assert_int_equal(hfi_key_slot(sides->waiters, sides->waiters_size), slot);
    if (sides->third != NULL) {
        assert_int_equal(hfi_key_slot(sides->third, sides->third_size), slot);
        assert_int_equal(hfi_key_slot(hfi_keys_name(keys), keys->name_size), slot); /* the data key */
    }
}

static void a_slot_is_the_crc16_of_the_tag_or_of_the_whole_key(void **state)
{
    (void)state;
    assert_int_equal(hfi_key_slot("123456789", 9), 0x31c3);
    assert_int_equal(hfi_key_slot("", 0), 0);
    assert_int_equal(hfi_key_slot("foo", 3), 12182);
    assert_int_equal(hfi_key_slot("bar", 3), 5061);
    assert_int_equal(hfi_key_slot("{foo}bar", 8), 12182);
    assert_int_equal(hfi_key_slot("a{foo}{bar}", 11), 12182);    /* the first tag counts */
    assert_int_equal(hfi_key_slot("x{123456789}}", 13), 0x31c3); /* up to the first } */
    assert_int_not_equal(hfi_key_slot("foo{}{bar}", 10), 5061);  /* an empty tag is none */
    assert_int_not_equal(hfi_key_slot("{bar", 4), 5061);
    assert_int_equal(hfi_key_slot("{user1000}.following", 20), hfi_key_slot("user1000", 8));
}

static void a_plain_name_stands_in_the_tag_of_its_keys(void **state)
{
    (void)state;
    struct hfi_keys keys = keys_of(NULL, HFI_MUTEX, "invoice:42");
    assert_string_equal(keys.lock, "hf:{invoice:42}");
    assert_string_equal(sides_of(&keys)->queue, "hf:queue:{invoice:42}:hf:{invoice:42}");
    assert_string_equal(sides_of(&keys)->waiters, "hf:wait:{invoice:42}:hf:{invoice:42}");
    assert_string_equal(hfi_keys_name(&keys), "invoice:42");
    assert_null(sides_of(&keys)->third);
    assert_int_equal(keys.lock_size, strlen(keys.lock));
    assert_int_equal(sides_of(&keys)->queue_size, strlen(sides_of(&keys)->queue));
    assert_int_equal(sides_of(&keys)->waiters_size, strlen(sides_of(&keys)->waiters));
    assert_int_equal(keys.name_size, strlen(hfi_keys_name(&keys)));
    assert_int_equal(hfi_key_slot(keys.lock, keys.lock_size), hfi_key_slot("invoice:42", 10));
    assert_one_slot(&keys);
    hfi_keys_done(&keys);
}

static void a_name_with_a_tag_of_its_own_keeps_it(void **state)
{
    (void)state;
    struct hfi_keys keys = keys_of(NULL, HFI_MUTEX, "user:{7}:mail");
    assert_string_equal(keys.lock, "hf::user:{7}:mail");
    assert_string_equal(sides_of(&keys)->queue, "hf:queue:{7}:hf::user:{7}:mail");
    assert_int_equal(hfi_key_slot(keys.lock, keys.lock_size), hfi_key_slot("7", 1));
    assert_one_slot(&keys);
    hfi_keys_done(&keys);
}

static void a_name_with_braces_and_no_tag_gets_the_smallest_number_of_its_slot(void **state)
{
    (void)state;
    static const char *const names[] = {"{", "}", "{}", "a}b{c", "}{", "{}{x}", "page{"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct hfi_keys keys = keys_of(NULL, HFI_MUTEX, names[i]);
        size_t size = strlen(names[i]);
        char *end;
        assert_memory_equal(keys.lock, "hf:{", 4);
        unsigned long number = strtoul(keys.lock + 4, &end, 10);
        assert_memory_equal(end, "}:", 2);
        assert_string_equal(end + 2, names[i]);
        assert_int_equal(hfi_key_slot(keys.lock, keys.lock_size), hfi_key_slot(names[i], size));
        for (unsigned long smaller = 0; smaller < number; smaller++) {
            char text[24];
            int length = snprintf(text, sizeof text, "%lu", smaller);
            assert_int_not_equal(hfi_key_slot(text, (size_t)length), hfi_key_slot(names[i], size));
        }
        assert_one_slot(&keys);
        hfi_keys_done(&keys);
    }
}

static void a_fetch_locks_under_a_name_of_its_own_in_the_slot_of_its_data(void **state)
{
    (void)state;
    static const char *const names[] = {"page:1", "page:{1}:x", "page:}1"};
    struct hfi_keys keys = keys_of("app:%s", HFI_FETCH, "page:1"); /* templates are for locks */
    assert_string_equal(keys.lock, "hf:fetch:{page:1}");
    assert_string_equal(sides_of(&keys)->third, "hf:absent:{page:1}:hf:fetch:{page:1}");
    assert_string_equal(hfi_keys_name(&keys), "page:1");
    hfi_keys_done(&keys);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        keys = keys_of(NULL, HFI_FETCH, names[i]);
        assert_string_not_equal(keys.lock, hfi_keys_name(&keys));
        assert_one_slot(&keys);
        hfi_keys_done(&keys);
    }
}

static void a_template_makes_the_lock_key_and_the_side_keys_follow_its_slot(void **state)
{
    (void)state;
    struct hfi_keys keys = keys_of("app:%s:lock", HFI_MUTEX, "a%sb"); /* no format string */
    assert_string_equal(keys.lock, "app:a%sb:lock");
    assert_string_equal(sides_of(&keys)->queue, "hf:queue:{app:a%sb:lock}:app:a%sb:lock");
    assert_one_slot(&keys);
    hfi_keys_done(&keys);
    keys = keys_of("{app}:%s", HFI_MUTEX, "x");
    assert_string_equal(sides_of(&keys)->queue, "hf:queue:{app}:{app}:x");
    assert_one_slot(&keys);
    hfi_keys_done(&keys);
    keys = keys_of("%s", HFI_MUTEX, "un{paired");
    assert_string_equal(keys.lock, "un{paired");
    assert_one_slot(&keys);
    hfi_keys_done(&keys);
}

static void different_names_have_different_keys(void **state)
{
    (void)state;
    static const char *const names[] = {"a",  "{a}", "{a}b",    "b{a}",      ":{a}",
                                        "{a", "a}",  "queue:a", "fetch:{a}", "hf:{a}"};
    enum { COUNT = sizeof names / sizeof names[0] };
    struct hfi_keys keys[COUNT];
    struct hfi_side_keys sides[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        keys[i] = keys_of(NULL, HFI_MUTEX, names[i]);
        assert_true(hfi_side_keys_print(&keys[i], &sides[i]));
    }
    for (size_t i = 0; i < COUNT; i++)
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(keys[i].lock, keys[j].lock);
            assert_string_not_equal(sides[i].queue, sides[j].queue);
            assert_string_not_equal(keys[i].lock, sides[j].queue);
        }
    for (size_t i = 0; i < COUNT; i++)
        hfi_keys_done(&keys[i]);
}

static void the_longest_names_have_all_their_keys(void **state)
{
    (void)state;
    static const struct {
        enum hfi_use use;
        size_t size;
    } longest[] = {{HFI_MUTEX, HF_NAME_MAX}, {HFI_FETCH, HF_NAME_MAX}, {HFI_FETCH, HF_NAME_MAX + 1}, {HFI_FETCH, HF_KEY_MAX}};
    char name[HF_KEY_MAX + 1], template[560];
    for (size_t i = 0; i < sizeof longest / sizeof longest[0]; i++) {
        memset(name, 'n', longest[i].size);
        name[longest[i].size] = 0;
        struct hfi_keys keys = keys_of(NULL, longest[i].use, name);
        const struct hfi_side_keys *sides = sides_of(&keys);
        assert_one_slot(&keys);
        assert_int_equal(sides->queue_size, strlen("hf:queue:{}:") + keys.tag_size + keys.lock_size);
        assert_int_equal(strlen(sides->waiters), sides->waiters_size);
        assert_string_equal(sides->waiters + sides->waiters_size - keys.lock_size, keys.lock);
        assert_int_equal(sides->third != NULL, longest[i].use == HFI_FETCH);
        hfi_keys_done(&keys);
    }
    memset(name, 'n', HF_NAME_MAX);
    name[HF_NAME_MAX] = 0;
    memset(template, 't', sizeof template);
    (void)snprintf(template + 500, sizeof template - 500, "%%s");
    struct hfi_keys keys = keys_of(template, HFI_MUTEX, name);
    assert_one_slot(&keys);
    hfi_keys_done(&keys);
    char none[] = "\0"; /* a key and a name */
    (void)sides_of(&(struct hfi_keys){.lock = none}); /* the last ones are given back */
}

static void an_elections_channel_names_the_whole_key(void **state)
{
    static const char *const names[][3] = {{"a", NULL, "hf:e:{a}:hf:{a}"},
                                           {"x{t}y", NULL, "hf:e:{t}:hf::x{t}y"},
                                           {"a", "lock:%s", "hf:e:{lock:a}:lock:a"}};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct hfi_name name = hfi_name_of(HFI_MUTEX, names[i][0], strlen(names[i][0]));
        struct hfi_keys keys;
        char channel[HFI_ELECTION_CHANNEL_MOST];
        assert_int_equal(hfi_keys_make(names[i][1], &name, &keys, NULL), HF_OK);
        assert_int_equal(hfi_election_channel(&keys, channel), strlen(names[i][2]));
        assert_string_equal(channel, names[i][2]);
        hfi_keys_done(&keys);
    }
}

/* The longest key, all of which is its tag. */
static void an_elections_channel_has_room(void **state)
{
    char template[513] = "", text[HF_NAME_MAX + 1] = "", channel[HFI_ELECTION_CHANNEL_MOST];
    (void)state;
    memset(template, 'a', 510);
    memcpy(template + 510, "%s", 3);
    memset(text, 'b', HF_NAME_MAX);
    struct hfi_name name = hfi_name_of(HFI_MUTEX, text, HF_NAME_MAX);
    struct hfi_keys keys;
    assert_int_equal(hfi_keys_make(template, &name, &keys, NULL), HF_OK);
    size_t size = hfi_election_channel(&keys, channel);
    assert_true(size == strlen(channel) && size < sizeof channel && size > 2000);
    hfi_keys_done(&keys);
}

static void a_tags_key_is_in_the_slot_of_its_tag(void **state)
{
    static const char *const tags[][2] = {{"red", "hf:tag:{red}"}, {"x{t}y", "hf:tag::x{t}y"}, {"a{}b", NULL}, {"a}b", NULL}, {"{", NULL}};
    char key[HFI_TAG_KEY_MOST], longest[HF_NAME_MAX + 1];
    struct hfi_name tag;
    (void)state;
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        assert_int_equal(hfi_tag_take(tags[i][0], &tag, NULL), HF_OK);
        size_t size = hfi_tag_key(&tag, key);
        assert_int_equal(size, strlen(key));
        assert_int_equal(hfi_key_slot(key, size), hfi_key_slot(tags[i][0], strlen(tags[i][0])));
        if (tags[i][1] != NULL)
            assert_string_equal(key, tags[i][1]);
        assert_true(is_refused("%s", HFI_MUTEX, key)); /* no lock's key, and no value's */
        assert_true(is_refused(NULL, HFI_FETCH, key));
    }
    memset(longest, '}', HF_NAME_MAX);
    longest[HF_NAME_MAX] = 0;
    assert_int_equal(hfi_tag_take(longest, &tag, NULL), HF_OK);
    assert_true(hfi_tag_key(&tag, key) < sizeof key);
}

static void nothing_may_lie_where_we_keep_our_own_keys(void **state)
{
    (void)state;
    static const char *const ours[] = {"hf:queue:{a}:b", "hf:wait:{a}:b",
                                       "hf:absent:x",    "hf:fence",
                                       "hf:fetch:{a}",   "hf:c:00112233445566778899aabbccddeeff",
                                       "hf:e:{a}:b",     "hf:held:{a}:b",
                                       "hf:sem:{a}",     "hf:since",
                                       "hf:clock:{a}",   "hf:lease:a",
                                       "hf:tag:{a}"};
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        assert_true(is_refused("%s", HFI_MUTEX, ours[i]));
        assert_true(is_refused("hf:%s", HFI_MUTEX, ours[i] + 3));
        assert_true(is_refused(NULL, HFI_FETCH, ours[i])); /* the page would stand where the counter was */
        assert_false(is_refused(NULL, HFI_MUTEX, ours[i]));
    }
    assert_true(is_refused(NULL, HFI_FETCH, "hf:{invoice:42}")); /* a token would be served as a page */
    assert_true(is_refused("%s:lock", HFI_FETCH, "a:lock"));
    assert_true(is_refused("lock:%s", HFI_FETCH, "lock:lock:a"));
    assert_true(is_refused("%s", HFI_FETCH, "anything"));
    assert_true(is_refused("lock:%s", HFI_FETCH, "hf:{invoice:42}")); /* of clients without a template */
    assert_false(is_refused("%s:lock", HFI_FETCH, ":lock")); /* a name has a byte at least */
    assert_false(is_refused("lock:%s:", HFI_FETCH, "lock:a"));
    assert_false(is_refused("lock:%s", HFI_FETCH, "block:a"));
    assert_true(is_refused(NULL, HFI_FETCH, "hf::user:{7}"));
    assert_false(is_refused("%s", HFI_MUTEX, "hf:mine"));
    assert_false(is_refused(NULL, HFI_FETCH, "hf:mine"));
    assert_false(is_refused(NULL, HFI_FETCH, "page:hf:fence"));
}

static void a_template_has_one_place_for_the_name(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "lock", "%", "%d", "%s%s", "%s%", "%%s", "a%sb%dc", "%5s"};
    hf_error error;
    char longest[600];
    assert_int_equal(hfi_template_check(NULL, &error), HF_OK);
    assert_int_equal(hfi_template_check("%s", &error), HF_OK);
    assert_int_equal(hfi_template_check("app:{%s}:lock", &error), HF_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (hfi_template_check(bad[i], &error) != HF_INVALID)
            fail_msg("%s was taken", bad[i]);
        assert_non_null(strstr(error.message, "key_template"));
    }
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "%s", 2);
    longest[512] = 0;
    assert_int_equal(hfi_template_check(longest, &error), HF_OK);
    longest[512] = 'x';
    longest[513] = 0;
    assert_int_equal(hfi_template_check(longest, NULL), HF_INVALID);
}

static void a_name_may_be_any_bytes(void **state)
{
    (void)state;
    struct hfi_keys keys;
    const char name[] = {'a', '\n', (char)0xff, ' ', 'z'};
    struct hfi_name taken = hfi_name_of(HFI_MUTEX, name, sizeof name);
    assert_int_equal(hfi_keys_make(NULL, &taken, &keys, NULL), HF_OK);
    assert_int_equal(keys.name_size, sizeof name);
    assert_memory_equal(hfi_keys_name(&keys), name, sizeof name);
    assert_memory_equal(keys.lock + 4, name, sizeof name);
    hfi_keys_done(&keys);
    assert_null(keys.lock);
}

static bool gives_back(const char *key_template, enum hfi_use use, const char *name)
{
    struct hfi_keys keys;
    struct hfi_name taken = hfi_name_of(use, name, strlen(name)), found;
    assert_int_equal(hfi_keys_make(key_template, &taken, &keys, NULL), HF_OK);
    bool same = hfi_key_name(key_template, keys.lock, keys.lock_size, &found) && found.use == use &&
                found.size == taken.size && memcmp(found.text, name, taken.size) == 0 && found.hash == taken.hash;
    hfi_keys_done(&keys);
    return same;
}

static void a_lock_key_tells_the_name(void **state)
{
    (void)state;
    static const char *const names[] = {"a",   "two words", "{tag}x", "x{tag}", "{}", "}",   "{",
                                        "a}b", "a{b",       "}{",     ":",      "::", "fetch", "{}{t}"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!gives_back(NULL, HFI_MUTEX, names[i]) || !gives_back(NULL, HFI_FETCH, names[i]) ||
            !gives_back("app:%s", HFI_MUTEX, names[i]) || !gives_back("%s:lock", HFI_MUTEX, names[i]) ||
            !gives_back("{app}:%s:lock", HFI_MUTEX, names[i]) || !gives_back("app:%s", HFI_FETCH, names[i]))
            fail_msg("%s does not come back", names[i]);
}

static void what_is_no_lock_key_tells_no_name_that_would_give_it(void **state)
{
    (void)state;
    static const char *const keys[] = {"",        "h",         "hf:",             "hf::",      "hf:{}",     "hf:{",    "hf:}",
                                       "hf:{5}:", "hf:{5}:ab", "hf:queue:{x}:x", "somebody's", "hf:fetch:", "hf:abc}"};
    char longest[600];
    struct hfi_name name;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        struct hfi_keys made;
        if (!hfi_key_name(NULL, keys[i], strlen(keys[i]), &name))
            continue;
        assert_true(name.text > keys[i] && name.text + name.size <= keys[i] + strlen(keys[i]));
        assert_int_equal(hfi_keys_make(NULL, &name, &made, NULL), HF_OK);
        if (made.lock_size == strlen(keys[i]) && memcmp(made.lock, keys[i], made.lock_size) == 0)
            fail_msg("%s is taken for a key of %.*s", keys[i], (int)name.size, name.text);
        hfi_keys_done(&made);
    }
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "hf:{", 4);
    longest[4 + 512] = '}';
    assert_true(hfi_key_name(NULL, longest, 4 + 512 + 1, &name));
    longest[4 + 512] = 'x';
    longest[4 + 513] = '}';
    assert_false(hfi_key_name(NULL, longest, 4 + 513 + 1, &name));
    assert_false(hfi_key_name(NULL, "hf:{a\0b}", 8, &name));
    assert_false(hfi_key_name("a:%s:b", "a::b", 4, &name));
    assert_false(hfi_key_name("a:%s:b", "a:b", 3, &name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_is_the_crc16_of_the_tag_or_of_the_whole_key),
        cmocka_unit_test(a_plain_name_stands_in_the_tag_of_its_keys),
        cmocka_unit_test(a_name_with_a_tag_of_its_own_keeps_it),
        cmocka_unit_test(a_name_with_braces_and_no_tag_gets_the_smallest_number_of_its_slot),
        cmocka_unit_test(a_fetch_locks_under_a_name_of_its_own_in_the_slot_of_its_data),
        cmocka_unit_test(a_template_makes_the_lock_key_and_the_side_keys_follow_its_slot),
        cmocka_unit_test(different_names_have_different_keys),
        cmocka_unit_test(the_longest_names_have_all_their_keys),
        cmocka_unit_test(an_elections_channel_names_the_whole_key),
        cmocka_unit_test(an_elections_channel_has_room),
        cmocka_unit_test(a_tags_key_is_in_the_slot_of_its_tag),
        cmocka_unit_test(nothing_may_lie_where_we_keep_our_own_keys),
        cmocka_unit_test(a_lock_key_tells_the_name),
        cmocka_unit_test(what_is_no_lock_key_tells_no_name_that_would_give_it),
        cmocka_unit_test(a_template_has_one_place_for_the_name),
        cmocka_unit_test(a_name_may_be_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
