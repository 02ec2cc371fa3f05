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

static int64_t lost_us(struct hfi_backoff *backoff, struct hfi_losses *losses, enum hfi_lost lost, int64_t now_ns)
{
    return (hfi_backoff_lost_ns(backoff, losses, lost, now_ns) - now_ns) / 1000;
}

static void a_connection_that_lasted_is_dialled_again_at_once(void **state)
{
    struct hfi_backoff backoff;
    struct hfi_losses losses = {0, 0};
    (void)state;
    hfi_backoff_init(&backoff, 7);
    for (int i = 0; i < 5; i++)
        (void)wait_ms(&backoff, NOW);
    hfi_backoff_up(&backoff, NOW);
    assert_int_equal(lost_us(&backoff, &losses, HFI_LOST_UNUSED, NOW + 1000 * HFI_MS), 0);
    assert_in_range(wait_ms(&backoff, NOW), 39, 60); /* and that dial failed */
}

static void a_connection_that_is_lost_unused_again_and_again_is_not_dialled_in_a_busy_loop(void **state)
{
    struct hfi_backoff backoff;
    struct hfi_losses losses = {0, 0};
    (void)state;
    hfi_backoff_init(&backoff, 7);
    assert_int_equal(wait_ms(&backoff, NOW), 0);
    hfi_backoff_up(&backoff, NOW);
    assert_in_range(lost_us(&backoff, &losses, HFI_LOST_UNUSED, NOW + 5 * HFI_MS), 39000, 60000);
    hfi_backoff_up(&backoff, NOW);
    assert_in_range(lost_us(&backoff, &losses, HFI_LOST_UNUSED, NOW + 999 * HFI_MS), 79000, 120000);
}

/* The pause after the last of this many losses, which come evenly within a second. */
static int64_t pause_at_us(int a_second, enum hfi_lost lost)
{
    struct hfi_backoff backoff;
    struct hfi_losses losses = {0, 0};
    int64_t now_ns = NOW, us = 0;
    hfi_backoff_init(&backoff, 7);
    for (int i = 0; i < 10 * a_second; i++, now_ns += 1000 * HFI_MS / a_second) {
        hfi_backoff_up(&backoff, now_ns - 1);
        us = lost_us(&backoff, &losses, lost, now_ns);
    }
    return us;
}

static void a_loss_costs_the_more_the_more_were_lost_within_a_second(void **state)
{
    (void)state;
    assert_int_equal(pause_at_us(1, HFI_LOST_SERVED), 0);
    assert_in_range(pause_at_us(10, HFI_LOST_SERVED), 0, 20);
    assert_in_range(pause_at_us(100, HFI_LOST_SERVED), 900, 1600);
    assert_in_range(pause_at_us(200, HFI_LOST_SERVED), 3800, 6200);
    assert_in_range(pause_at_us(1000, HFI_LOST_URGENT), 95000, 160000);
    assert_in_range(pause_at_us(100000, HFI_LOST_SERVED), 790000, 1200000);
}

static void after_a_quiet_second_nothing_of_it_is_left(void **state)
{
    struct hfi_backoff backoff;
    struct hfi_losses losses = {0, 0};
    (void)state;
    hfi_backoff_init(&backoff, 7);
    for (int i = 0; i < 1000; i++)
        (void)lost_us(&backoff, &losses, HFI_LOST_SERVED, NOW);
    assert_true(lost_us(&backoff, &losses, HFI_LOST_SERVED, NOW + 1) > 90000);
    assert_int_equal(lost_us(&backoff, &losses, HFI_LOST_SERVED, NOW + 2000 * HFI_MS), 0);
}

static void losses_of_other_connections_do_not_delay_the_first_urgent_dial(void **state)
{
    struct hfi_backoff backoff;
    struct hfi_losses losses = {0, 0};
    (void)state;
    hfi_backoff_init(&backoff, 7);
    for (int i = 0; i < 1000; i++)
        (void)lost_us(&backoff, &losses, HFI_LOST_SERVED, NOW + 1000 * HFI_MS);
    hfi_backoff_up(&backoff, NOW);
    assert_int_equal(lost_us(&backoff, &losses, HFI_LOST_URGENT, NOW + 1000 * HFI_MS), 0);
    hfi_backoff_up(&backoff, NOW + 1000 * HFI_MS);
    assert_true(lost_us(&backoff, &losses, HFI_LOST_URGENT, NOW + 1001 * HFI_MS) > 90000);
}

static void the_wait_never_outgrows_a_second(void **state)
{
    struct hfi_backoff backoff;
    (void)state;
    hfi_backoff_init(&backoff, 7);
    for (int i = 0; i < 100000; i++)
        assert_in_range(wait_ms(&backoff, NOW), 0, 1200);
}

static void what_is_lost_together_can_be_dialled_apart(void **state)
{
    struct hfi_backoff backoff;
    struct hfi_losses losses = {0, 0};
    int64_t least = INT64_MAX, most = 0;
    (void)state;
    hfi_backoff_init(&backoff, 7);
    (void)lost_us(&backoff, &losses, HFI_LOST_SERVED, NOW);
    assert_int_equal(hfi_backoff_spread_ns(&backoff, &losses, 500 * HFI_MS), 0); /* one alone is not made to wait */
    (void)lost_us(&backoff, &losses, HFI_LOST_SERVED, NOW);
    for (int i = 0; i < 1000; i++) {
        int64_t spread = hfi_backoff_spread_ns(&backoff, &losses, 500 * HFI_MS);
        least = spread < least ? spread : least;
        most = spread > most ? spread : most;
    }
    assert_in_range(least, 0, 10 * HFI_MS);
    assert_in_range(most, 490 * HFI_MS, 500 * HFI_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_dial_is_at_once_and_later_ones_wait_twice_as_long_each),
        cmocka_unit_test(waits_of_different_connections_differ),
        cmocka_unit_test(a_connection_that_lasted_is_dialled_again_at_once),
        cmocka_unit_test(a_connection_that_is_lost_unused_again_and_again_is_not_dialled_in_a_busy_loop),
        cmocka_unit_test(a_loss_costs_the_more_the_more_were_lost_within_a_second),
        cmocka_unit_test(after_a_quiet_second_nothing_of_it_is_left),
        cmocka_unit_test(losses_of_other_connections_do_not_delay_the_first_urgent_dial),
        cmocka_unit_test(the_wait_never_outgrows_a_second),
        cmocka_unit_test(what_is_lost_together_can_be_dialled_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
