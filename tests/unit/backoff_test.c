/* SPDX-License-Identifier: MIT */
/* backoff_test.c - when a lost connection is dialled again. */
#include "pool/backoff.h"
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define NOW (1000000 * HFI_MS)

static int64_t wait_ms(struct hfi_backoff *backoff, int64_t now_ns)
{
    return (hfi_backoff_next_ns(backoff, now_ns) - now_ns) / HFI_MS;
}

static void the_first_dial_is_at_once_and_later_ones_wait_twice_as_long_each(void **state)
{
    static const int64_t expected_ms[] = {0, 50, 100, 200, 400, 800, 1000, 1000, 1000};
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct hfi_backoff backoff;
        hfi_backoff_init(&backoff, seed);
        for (size_t i = 0; i < sizeof expected_ms / sizeof expected_ms[0]; i++) {
            int64_t ms = wait_ms(&backoff, NOW);
            assert_in_range(ms, expected_ms[i] * 8 / 10 - (i > 0), expected_ms[i] * 12 / 10);
        }
    }
}

static void waits_of_different_connections_differ(void **state)
{
    int64_t least = INT64_MAX, most = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct hfi_backoff backoff;
        hfi_backoff_init(&backoff, seed);
        (void)wait_ms(&backoff, NOW);
        int64_t ms = wait_ms(&backoff, NOW);
        least = ms < least ? ms : least;
        most = ms > most ? ms : most;
    }
    assert_true(least < 43 && most > 57);
}

static void a_connection_that_lasted_is_dialled_again_at_once(void **state)
{
    struct hfi_backoff backoff;
    (void)state;
    hfi_backoff_init(&backoff, 7);
    for (int i = 0; i < 5; i++)
        (void)wait_ms(&backoff, NOW);
    hfi_backoff_up(&backoff, NOW);
    assert_int_equal(wait_ms(&backoff, NOW + 1000 * HFI_MS), 0);
    assert_in_range(wait_ms(&backoff, NOW), 39, 60); /* and that dial failed */
}

static void a_connection_that_is_lost_at_once_again_and_again_is_not_dialled_in_a_busy_loop(void **state)
{
    struct hfi_backoff backoff;
    (void)state;
    hfi_backoff_init(&backoff, 7);
    assert_int_equal(wait_ms(&backoff, NOW), 0);
    hfi_backoff_up(&backoff, NOW);
    assert_in_range(wait_ms(&backoff, NOW + 5 * HFI_MS), 39, 60);
    hfi_backoff_up(&backoff, NOW);
    assert_in_range(wait_ms(&backoff, NOW + 999 * HFI_MS), 79, 120);
}

static void a_connection_that_served_is_dialled_again_soon_however_often_it_breaks(void **state)
{
    struct hfi_backoff backoff;
    (void)state;
    hfi_backoff_init(&backoff, 7);
    assert_int_equal(wait_ms(&backoff, NOW), 0);
    for (int i = 0; i < 20; i++) {
        hfi_backoff_up(&backoff, NOW);
        hfi_backoff_served(&backoff);
        assert_in_range(wait_ms(&backoff, NOW + 5 * HFI_MS), 39, 60);
    }
}

static void the_wait_never_outgrows_a_second(void **state)
{
    struct hfi_backoff backoff;
    (void)state;
    hfi_backoff_init(&backoff, 7);
    for (int i = 0; i < 100000; i++)
        assert_in_range(wait_ms(&backoff, NOW), 0, 1200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_dial_is_at_once_and_later_ones_wait_twice_as_long_each),
        cmocka_unit_test(waits_of_different_connections_differ),
        cmocka_unit_test(a_connection_that_lasted_is_dialled_again_at_once),
        cmocka_unit_test(a_connection_that_is_lost_at_once_again_and_again_is_not_dialled_in_a_busy_loop),
        cmocka_unit_test(a_connection_that_served_is_dialled_again_soon_however_often_it_breaks),
        cmocka_unit_test(the_wait_never_outgrows_a_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
