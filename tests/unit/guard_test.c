/* SPDX-License-Identifier: MIT */
/* guard_test.c - the guard of holdfast run, fed by hand with the messages that holdfast would send it. */
#include "tools/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct shared {
    struct guard_board board;
    _Atomic(int) told;   /* how often the guard let its command go */
    _Atomic(int) looked; /* ... found that there is time left */
} *shared;
static int ends[2]; /* ours, the guard's */
static pid_t guard;

/* Replaces the C library's send: a message that the guard sends to another process than this one goes to the
 * command. */
__attribute__((visibility("default"))) ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
    if (getpid() == guard && fd != ends[1])
        atomic_fetch_add(&shared->told, 1);
    return sendto(fd, bytes, size, flags, NULL, 0);
}

/* In place of the C library's. It rings too. */
__attribute__((visibility("default"))) int timerfd_settime(int fd, int flags, const struct itimerspec *at,
                                                           struct itimerspec *before)
{
    int said = (int)syscall(SYS_timerfd_settime, fd, flags, at, before);
    atomic_fetch_add(&shared->looked, 1);
    return write(ends[1], "", 1) == 1 ? said : -1;
}

static int set_up(void **state)
{
    static struct signals_before before;
    static char words[64];
    static char *command[] = {(char *)(uintptr_t)"true", NULL};
    const struct guard_job job = {.name = "g", .command = command, .cage = -1, .before = &before, .words = words,
                                  .words_size = sizeof words};
    (void)state;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    atomic_store(&shared->board.code, -1);
    if (fork() == 0) {
        guard = getpid();
        (void)close(ends[0]);
        guard_run(ends[1], &shared->board, &job);
    }
    return close(ends[1]);
}

static void wish(enum guard_wish wish, int64_t until_ms)
{
    atomic_store(&shared->board.until_ms, until_ms);
    atomic_store(&shared->board.wish, (int)wish);
    assert_int_equal(write(ends[0], "", 1), 1);
}

/* The guard rings when it has written something. */
static void wait_for(_Atomic(int) *number, int least)
{
    char byte;
    while (atomic_load(number) < least)
        assert_int_equal(read(ends[0], &byte, 1), 1);
}

static int tear_down(void **state)
{
    (void)state;
    wish(GUARD_END, 0);
    int wrong = wait(NULL) > 0 ? 0 : -1;
    (void)close(ends[0]);
    return wrong + munmap(shared, sizeof *shared);
}

static void a_command_is_let_go_in_time(void **state)
{
    (void)state;
    wish(GUARD_START, guard_clock_ms() + 60000);
    wait_for(&shared->looked, 1);
    wish(GUARD_GO, guard_clock_ms() + 60000);
    wait_for(&shared->board.code, 0);
    assert_int_equal(atomic_load(&shared->told), 1);
    assert_int_equal(atomic_load(&shared->board.runs), 1);
    assert_int_equal(atomic_load(&shared->board.code), 0);
}

static void a_command_is_never_let_go_when_its_time_is_over(void **state)
{
    (void)state;
    wish(GUARD_START, guard_clock_ms() + 60000);
    wait_for(&shared->looked, 1);
    wish(GUARD_GO, guard_clock_ms());
    wait_for(&shared->board.code, 0);
    assert_int_equal(atomic_load(&shared->told), 0);
    assert_int_equal(atomic_load(&shared->board.runs), 0);
    assert_int_equal(atomic_load(&shared->board.code), 128 + SIGKILL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_command_is_let_go_in_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_command_is_never_let_go_when_its_time_is_over, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
