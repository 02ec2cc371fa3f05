/* SPDX-License-Identifier: MIT */
/* events_test.c - letters are added to a server's notify-keyspace-events, and none that stood there is lost. */
#include "core/lock/key_events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void assert_merged(const char *configured, const char *expected)
{
    char out[64];
    assert_true(hfi_key_events_merge(configured, "gxe", out, sizeof out));
    assert_string_equal(out, expected);
}

static void missing_letters_are_added_behind_the_present_ones(void **state)
{
    (void)state;
    assert_merged("", "Kgxe");
    assert_merged("Ex", "ExKge");
    assert_merged("gxe", "gxeK");
    assert_merged("Kgx", "Kgxe");
    assert_merged("AE", "AEK"); /* A is all classes */
    assert_merged("KEl$", "KEl$gxe");
}

static void where_nothing_is_missing_nothing_is_changed(void **state)
{
    (void)state;
    static const char *const settings[] = {"Kgxe", "xegK", "KEA", "AK", "AKE", "gxeKE$lshztdmn"};
    char out[64];
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        if (hfi_key_events_merge(settings[i], "gxe", out, sizeof out))
            fail_msg("%s became %s", settings[i], out);
}

static void merging_twice_is_merging_once(void **state)
{
    (void)state;
    char once[64], twice[64];
    assert_true(hfi_key_events_merge("E$", "gxe", once, sizeof once));
    assert_false(hfi_key_events_merge(once, "gxe", twice, sizeof twice));
}

static void every_state_has_its_words(void **state)
{
    (void)state;
    for (int i = HFI_EVENTS_UNKNOWN; i <= HFI_EVENTS_FORBIDDEN; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(hfi_key_events_text((enum hfi_key_events_state)i),
                                    hfi_key_events_text((enum hfi_key_events_state)j));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_letters_are_added_behind_the_present_ones),
        cmocka_unit_test(where_nothing_is_missing_nothing_is_changed),
        cmocka_unit_test(merging_twice_is_merging_once),
        cmocka_unit_test(every_state_has_its_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
