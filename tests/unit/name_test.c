/* SPDX-License-Identifier: MIT */
/* name_test.c - what is a name, and what is said of one that is none. */
#include "core/protocol/name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* INVALID, with a message that has `word` in it. */
#define assert_names(got, why, word)                                                                         \
    do {                                                                                                     \
        assert_int_equal(got, HF_INVALID);                                                                   \
        assert_int_equal((why).status, HF_INVALID);                                                          \
        assert_non_null(strstr((why).message, word));                                                        \
    } while (0)

static void a_name_has_one_to_512_bytes_and_no_nul(void **state)
{
    (void)state;
    char name[600];
    struct hfi_name taken;
    hf_error error;
    memset(name, 'n', sizeof name);
    name[512] = 0;
    assert_int_equal(hfi_name_take(HFI_MUTEX, name, 0, &taken, NULL), HF_OK);
    assert_int_equal(taken.size, 512);
    assert_int_equal(hfi_name_take(HFI_MUTEX, name, 3, &taken, NULL), HF_OK);
    assert_int_equal(taken.size, 3);
    name[512] = 'n';
    name[513] = 0;
    assert_names(hfi_name_take(HFI_MUTEX, name, 0, &taken, &error), error, "lock name");
    assert_names(hfi_name_take(HFI_FETCH, name, 4097, &taken, &error), error, "key");
    assert_names(hfi_name_take(HFI_MUTEX, NULL, 0, &taken, &error), error, "lock name");
    assert_names(hfi_name_take(HFI_MUTEX, NULL, 4, &taken, &error), error, "lock name");
    assert_names(hfi_name_take(HFI_MUTEX, "", 0, &taken, &error), error, "empty");
    assert_names(hfi_name_take(HFI_MUTEX, "a\0b", 3, &taken, &error), error, "NUL");
    assert_names(hfi_tag_take(name, &taken, &error), error, "tag");
    assert_names(hfi_tag_take("", &taken, &error), error, "tag");
    assert_names(hfi_tag_take(NULL, &taken, &error), error, "tag");
    name[512] = 0;
    assert_int_equal(hfi_tag_take(name, &taken, NULL), HF_OK);
    assert_int_equal(taken.size, 512);
    char *exact = malloc(4); /* unterminated: not a byte beyond it is read */
    assert_non_null(exact);
    memcpy(exact, "name", 4);
    assert_int_equal(hfi_name_take(HFI_MUTEX, exact, 4, &taken, NULL), HF_OK);
    free(exact);
}

static void a_name_is_hashed_with_its_use(void **state)
{
    (void)state;
    struct hfi_name name;
    assert_int_equal(hfi_name_take(HFI_MUTEX, "ab", 0, &name, NULL), HF_OK);
    assert_true(name.hash == hfi_name_of(HFI_MUTEX, "abc", 2).hash);
    assert_true(name.hash != hfi_name_of(HFI_FETCH, "ab", 2).hash);
    assert_true(name.hash != hfi_name_of(HFI_MUTEX, "ba", 2).hash);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_has_one_to_512_bytes_and_no_nul),
        cmocka_unit_test(a_name_is_hashed_with_its_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
