/* SPDX-License-Identifier: MIT */
/* fetch_loads_test.c - whose load it is: loaders that come too late, values that cannot be stored, and who is told what. */
#include "tests/support/fds.h"
#include "tests/support/pages.h"
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void a_late_loaders_failure_is_nobodys_but_its_own(void **state)
{
    enum { WAITERS = 3 };
    struct fixture *f = *state;
    struct hft_page late = {.data = "late", .stay = true, .answer = HF_LOAD_FAILED}, living = {.data = "living", .stay = true};
    struct hft_fetcher first, second, waiters[WAITERS];
    hft_fetch(&first, f->a, "page", HF_FETCH(.load = hft_load, .arg = &late, .max_load_ms = 100, .lease_ms = 400));
    HFT_UNTIL_TRUE(late.inside == 1);
    hft_fetch(&second, f->a, "page", HF_FETCH(.load = hft_load, .arg = &living, .wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(living.inside == 1); /* the first one's lease is over */
    for (int i = 0; i < WAITERS; i++)
        hft_fetch(&waiters[i], f->a, "page", HF_FETCH(.load = hft_load, .arg = &living, .wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_waiting_here(f->a, "page") == WAITERS);
    atomic_store(&late.stay, false);
    assert_int_equal(hft_fetched(&first), HF_LOAD_FAILED);
    int still_waiting = hft_waiting_here(f->a, "page");
    atomic_store(&living.stay, false);
    assert_int_equal(still_waiting, WAITERS);
    assert_int_equal(hft_fetched(&second), HF_OK);
    assert_int_equal(second.value->source, HF_LOADED);
    assert_true(second.value->stored);
    hf_value_free(second.value);
    for (int i = 0; i < WAITERS; i++) {
        assert_int_equal(hft_fetched(&waiters[i]), HF_OK);
        assert_int_equal(waiters[i].value->source, HF_SHARED);
        assert_string_equal(waiters[i].value->data, "living");
        hf_value_free(waiters[i].value);
    }
    assert_int_equal(living.loads, 1);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_late_loaders_failure_is_nobodys_but_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
