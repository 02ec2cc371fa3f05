/* SPDX-License-Identifier: MIT */
/* probe_test.c - a probe is read as it was printed, whatever else is not, and in a ring one wait is the youngest. */
#include "core/protocol/probe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char text[HFI_PROBE_CAPACITY];

static struct hfi_probe probe_of(int hops)
{
    struct hfi_probe probe = {.wait = {1234567, "0123456789abcdef0123456789abcdef", 7}, .nonce = INT64_MAX, .count = hops};
    for (int i = 0; i < hops; i++) {
        struct hfi_hop *hop = &probe.hops[i];
        memset(hop->token, 'a' + i, sizeof hop->token - 1);
        hop->token[sizeof hop->token - 1] = 0;
        hop->fence = INT64_MAX - i;
        hop->wait = (uint64_t)INT64_MAX - (uint64_t)i;
        hfi_hop_set_name(hop, "0123456789012345678901234567890123456789012345678901234567890123456789", 70);
    }
    return probe;
}

/* What follows letter and token. */
static const char *rest_of(const char *message)
{
    return strchr(message + 2, ' ') + 1;
}

static void assert_same(const struct hfi_probe *one, const struct hfi_probe *other)
{
    assert_int_equal(one->wait.start_us, other->wait.start_us);
    assert_string_equal(one->wait.client, other->wait.client);
    assert_int_equal(one->wait.number, other->wait.number);
    assert_int_equal(one->nonce, other->nonce);
    assert_int_equal(one->count, other->count);
    for (int i = 0; i < one->count; i++) {
        assert_string_equal(one->hops[i].token, other->hops[i].token);
        assert_int_equal(one->hops[i].fence, other->hops[i].fence);
        assert_int_equal(one->hops[i].wait, other->hops[i].wait);
        assert_string_equal(one->hops[i].name, other->hops[i].name);
    }
}

static void what_is_printed_is_read(void **state)
{
    (void)state;
    for (int hops = 0; hops <= HFI_HOPS_MOST; hops++) {
        struct hfi_probe probe = probe_of(hops), read;
        int index = 0;
        hfi_probe_print(&probe, "token", text);
        assert_true(strlen(text) < sizeof text);
        assert_memory_equal(text, "D token ", 8);
        assert_true(hfi_probe_parse(rest_of(text), strlen(rest_of(text)), false, &read, &index));
        assert_int_equal(index, -1);
        assert_same(&probe, &read);
        for (int i = 0; i < hops; i++) {
            hfi_probe_print_check(&probe, i, text);
            assert_true(strlen(text) < sizeof text);
            assert_true(hfi_probe_parse(rest_of(text), strlen(rest_of(text)), true, &read, &index));
            assert_int_equal(index, i);
            assert_same(&probe, &read);
        }
    }
}

static void what_is_malformed_is_refused(void **state)
{
    static const char *const wrong[] = {
        "", "1", "1.c", "1.c.2", "1.c.2.", "1.c.2.x", ".c.2.3", "-1.c.2.3", "1.c.2.3 t", "1.c.2.3 t,1", "1.c.2.3 t,1,2",
        "1.c.2.3 t,x,2,n", "1.c.2.3 t,1,2,n/", "1.c.2.3 t,1,99999999999999999999,n",
        "1.0123456789abcdef0123456789abcdef0.2.3"};
    struct hfi_probe probe;
    int index;
    (void)state;
    assert_true(hfi_probe_parse("1.c.2.3 t,1,2,n", 15, false, &probe, &index));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (hfi_probe_parse(wrong[i], strlen(wrong[i]), false, &probe, &index))
            fail_msg("taken for a probe: \"%s\"", wrong[i]);
    assert_true(hfi_probe_parse("1.c.2.3 0 t,1,2,n", 17, true, &probe, &index));
    assert_false(hfi_probe_parse("1.c.2.3 1 t,1,2,n", 17, true, &probe, &index));
    assert_false(hfi_probe_parse("1.c.2.3 t,1,2,n", 15, true, &probe, &index));
    struct hfi_probe many = probe_of(HFI_HOPS_MOST);
    hfi_probe_print(&many, "t", text);
    strcat(text, "/t,1,2,n");
    assert_false(hfi_probe_parse(rest_of(text), strlen(rest_of(text)), false, &probe, &index));
}

static void a_name_has_no_byte_that_parts(void **state)
{
    struct hfi_hop hop;
    (void)state;
    hfi_hop_set_name(&hop, "a,b/c d\n\0e{f}", 13);
    assert_string_equal(hop.name, "a_b_c_d__e{f}");
    hfi_hop_set_name(&hop, "", 0);
    assert_string_equal(hop.name, "");
}

static void of_two_waits_one_is_younger(void **state)
{
    static const struct hfi_wait_id waits[] = {
        {1, "a", 1}, {1, "a", 2}, {1, "b", 1}, {1, "b", 9}, {2, "a", 1}, {2, "b", 1}};
    (void)state;
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            assert_int_equal(hfi_wait_is_younger(&waits[i], &waits[j]), i > j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_printed_is_read),
        cmocka_unit_test(what_is_malformed_is_refused),
        cmocka_unit_test(a_name_has_no_byte_that_parts),
        cmocka_unit_test(of_two_waits_one_is_younger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
