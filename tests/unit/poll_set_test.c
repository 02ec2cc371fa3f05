/* SPDX-License-Identifier: MIT */
/* poll_set_test.c - what the listener does not want any more does not wake it again and again. */
#include "pool/poll_set.h"
#include "base/clock.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static int calls;

static void count(void *self, short events, int64_t now_ns)
{
    (void)self, (void)events, (void)now_ns;
    calls++;
}

/* One turn of the listener, of a tenth of a second at most. True: something was ready. */
static bool turn(struct hfi_poll_set *set, int fd)
{
    int64_t now_ns = hfi_now(&hfi_boottime);
    hfi_poll_set_begin(set, now_ns);
    if (fd >= 0)
        hfi_poll_set_add(set, (struct hfi_polled){.fd = fd, .number = 1, .events = POLLIN}, count, NULL);
    hfi_poll_set_again(set, now_ns + 100 * HFI_MS);
    hfi_poll_set_end(set);
    bool ready = hfi_poll_set_wait(set, &hfi_boottime);
    hfi_poll_set_dispatch(set, hfi_now(&hfi_boottime));
    return ready;
}

static void what_is_wanted_is_reported_and_what_is_not_wakes_once(bool out_of_descriptors)
{
    struct hfi_poll_set set;
    struct rlimit before, none;
    assert_true(hfi_poll_set_init(&set, 4));
    int fd = eventfd(1, EFD_CLOEXEC);
    calls = 0;
    assert_true(turn(&set, fd));
    assert_int_equal(calls, 1);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)fd + 1; /* it has the lowest number that was free */
    if (out_of_descriptors)
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    bool first = turn(&set, -1), second = turn(&set, -1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(first);
    assert_false(second);
    assert_int_equal(calls, 1);
    assert_true(turn(&set, fd)); /* it is wanted again */
    assert_int_equal(calls, 2);
    (void)close(fd);
    hfi_poll_set_done(&set);
}

static void what_is_not_wanted_any_more_wakes_once(void **state)
{
    (void)state;
    what_is_wanted_is_reported_and_what_is_not_wakes_once(false);
}

static void it_does_so_without_a_descriptor_to_spare(void **state)
{
    (void)state;
    what_is_wanted_is_reported_and_what_is_not_wakes_once(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_wanted_any_more_wakes_once),
        cmocka_unit_test(it_does_so_without_a_descriptor_to_spare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
