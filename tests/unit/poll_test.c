/* SPDX-License-Identifier: MIT */
/* poll_test.c - a wait ends when it is over, and not when the program handles a signal. */
#include "base/poll.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

static volatile sig_atomic_t signals;

static void count(int number)
{
    (void)number;
    signals++;
}

static void a_signal_ends_no_wait(void **state)
{
    const struct sigaction counts = {.sa_handler = count};
    const struct itimerval often = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};
    struct sigaction before;
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    struct pollfd ready = {ends[0], POLLIN, 0};
    assert_int_equal(sigaction(SIGALRM, &counts, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    int64_t until_ns = hfi_now(&hfi_boottime) + 50 * HFI_MS;
    int none = hfi_poll_until(&ready, 1, &hfi_boottime, until_ns);
    int64_t now_ns = hfi_now(&hfi_boottime);
    (void)setitimer(ITIMER_REAL, &never, NULL);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    assert_int_equal(none, 0);
    assert_true(now_ns >= until_ns);
    assert_true(signals > 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(hfi_poll_until(&ready, 1, &hfi_boottime, HFI_NEVER), 1);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_ends_no_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
