/* SPDX-License-Identifier: MIT */
/* family_test.c - the processes that the command's end finds in /proc. The family is that of this process;
 * pidfd_open, with which each kill begins, is a test's own, so that things can happen between the look at a process
 * and its kill. */
#include "tools/family.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { BIRTHS_MOST = 2000 };

static void (*before_a_blow)(pid_t pid); /* NULL: nothing happens */
static int to_hopper[2], from_children[2];
static pid_t hopper; /* the one that lives now */
static int births;

/* In place of the C library's. */
int pidfd_open(pid_t pid, unsigned flags);
__attribute__((visibility("default"))) int pidfd_open(pid_t pid, unsigned flags)
{
    if (before_a_blow != NULL)
        before_a_blow(pid);
    return (int)syscall(SYS_pidfd_open, pid, flags);
}

static void say_pid(void)
{
    pid_t own = getpid();
    if (write(from_children[1], &own, sizeof own) != (ssize_t)sizeof own)
        _exit(1);
}

static pid_t hear_pid(void)
{
    pid_t pid;
    assert_int_equal(read(from_children[0], &pid, sizeof pid), sizeof pid);
    return pid;
}

static _Noreturn void stay(void)
{
    say_pid();
    for (;;)
        (void)pause();
}

/* Leaves the work to a child, as often as it is told to; the child leaves the session too (always), or does not. */
static _Noreturn void hop(bool always)
{
    char told;
    (void)setsid();
    for (say_pid(); read(to_hopper[0], &told, 1) == 1; say_pid()) {
        if (fork() > 0)
            _exit(0);
        if (always)
            (void)setsid();
    }
    _exit(1);
}

static void start_hopper(bool always)
{
    if (fork() == 0)
        hop(always);
    hopper = hear_pid();
}

/* Neither gone nor a zombie. */
static bool lives(pid_t pid)
{
    struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    bool does = end.fd >= 0 && poll(&end, 1, 0) == 0;
    if (end.fd >= 0)
        (void)close(end.fd);
    return does;
}

/* The dead that nobody needs any more: each list of processes is as long as there are. The one that is struck stays, dead
 * or not; it is of its group that what it has left behind is known. */
static void bury_all_but(pid_t struck)
{
    siginfo_t info = {0};
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0 && info.si_pid != struck)
        (void)waitpid(info.si_pid, NULL, 0);
}

static void hops(pid_t struck)
{
    siginfo_t info;
    bury_all_but(struck);
    if (struck != hopper || !lives(struck))
        return;
    assert_int_equal(write(to_hopper[1], "", 1), 1);
    assert_int_equal(waitid(P_PID, (id_t)struck, &info, WEXITED | WNOWAIT), 0);
    if (info.si_code == CLD_EXITED) /* else it was dying already */
        hopper = hear_pid();
}

static void hops_once(pid_t struck)
{
    if (struck == hopper)
        before_a_blow = NULL;
    hops(struck);
}

static void has_another_one(pid_t struck)
{
    bury_all_but(struck);
    if (births == BIRTHS_MOST)
        return;
    births++;
    if (fork() == 0)
        stay();
    (void)hear_pid();
}

static int set_up(void **state)
{
    (void)state;
    before_a_blow = NULL;
    births = 0;
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    return pipe(to_hopper) + pipe(from_children);
}

static int tear_down(void **state)
{
    struct refusal refused;
    (void)state;
    before_a_blow = NULL;
    (void)family_kill(getpid(), 0, &refused);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        continue;
    for (int i = 0; i < 2; i++) {
        (void)close(to_hopper[i]);
        (void)close(from_children[i]);
    }
    return 0;
}

static void all_are_dead_when_it_is_said_so(void **state)
{
    struct refusal refused;
    (void)state;
    if (fork() == 0) {
        if (fork() == 0)
            stay();
        stay();
    }
    pid_t one = hear_pid(), other = hear_pid();
    assert_true(family_kill(getpid(), 0, &refused));
    assert_int_equal(refused.count, 0);
    assert_false(lives(one) || lives(other));
}

static void a_process_gone_before_its_kill_may_have_left_a_child(void **state)
{
    struct refusal refused;
    (void)state;
    start_hopper(true);
    before_a_blow = hops_once;
    assert_true(family_kill(getpid(), 0, &refused));
    assert_false(lives(hopper));
}

static void a_process_that_forks_before_each_kill_is_killed_with_its_group(void **state)
{
    struct refusal refused;
    (void)state;
    start_hopper(false);
    before_a_blow = hops;
    assert_true(family_kill(getpid(), 0, &refused));
    assert_false(lives(hopper));
}

static void a_process_that_always_escapes_is_not_reported_dead(void **state)
{
    struct refusal refused;
    (void)state;
    start_hopper(true);
    before_a_blow = hops;
    assert_false(family_kill(getpid(), 0, &refused));
    assert_true(lives(hopper));
}

static void a_family_that_grows_faster_than_it_is_struck_is_left_after_a_while(void **state)
{
    struct refusal refused;
    (void)state;
    if (fork() == 0)
        stay();
    (void)hear_pid();
    before_a_blow = has_another_one;
    assert_false(family_kill(getpid(), 0, &refused));
    assert_true(births < BIRTHS_MOST);
}

/* As of a shell that has started them and then become us. */
static void processes_from_before_the_start_are_not_of_the_family(void **state)
{
    struct refusal refused;
    (void)state;
    if (fork() == 0) {
        if (fork() == 0)
            stay();
        stay();
    }
    pid_t one = hear_pid(), other = hear_pid();
    family_begin();
    if (fork() == 0)
        stay();
    pid_t ours = hear_pid();
    assert_true(family_kill(getpid(), 0, &refused));
    assert_false(lives(ours));
    assert_true(lives(one) && lives(other));
    (void)kill(one, SIGKILL);
    (void)kill(other, SIGKILL);
}

static void without_a_look_at_proc_no_death_is_reported(void **state)
{
    struct refusal refused;
    struct rlimit before, none;
    (void)state;
    if (fork() == 0)
        stay();
    pid_t ours = hear_pid();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){0, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    bool said = family_kill(getpid(), 0, &refused);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(lives(ours));
    assert_false(said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_are_dead_when_it_is_said_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_process_gone_before_its_kill_may_have_left_a_child, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_process_that_forks_before_each_kill_is_killed_with_its_group, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_process_that_always_escapes_is_not_reported_dead, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_a_look_at_proc_no_death_is_reported, set_up, tear_down),
        cmocka_unit_test_setup_teardown(processes_from_before_the_start_are_not_of_the_family, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_family_that_grows_faster_than_it_is_struck_is_left_after_a_while, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
