/* SPDX-License-Identifier: MIT */
/* thread_test.c - the library's threads have a name and block all signals; and what identifies a thread. */
#include "base/thread.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct seen {
    sigset_t blocked;
    pthread_barrier_t named;
};

static void *look_at_self(void *arg)
{
    struct seen *seen = arg;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &seen->blocked);
    (void)pthread_barrier_wait(&seen->named);
    return NULL;
}

static void our_threads_block_every_signal_and_their_makers_mask_stays(void **state)
{
    (void)state;
    struct seen seen;
    sigset_t before, after;
    pthread_t thread;
    char name[16];
    (void)pthread_barrier_init(&seen.named, NULL, 2);
    (void)pthread_sigmask(SIG_BLOCK, NULL, &before);
    assert_int_equal(hfi_thread_start(&thread, "hf-some-name", look_at_self, &seen), 0);
    (void)pthread_getname_np(thread, name, sizeof name);
    (void)pthread_barrier_wait(&seen.named);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)pthread_sigmask(SIG_BLOCK, NULL, &after);
    assert_string_equal(name, "hf-some-name");
    for (int signal = 1; signal <= SIGRTMAX; signal++) {
        if (signal == SIGKILL || signal == SIGSTOP || (signal >= 32 && signal < SIGRTMIN))
            continue;
        assert_true(sigismember(&seen.blocked, signal));
        assert_int_equal(sigismember(&before, signal), sigismember(&after, signal));
    }
}

static void *look_at_number(void *arg)
{
    uint64_t *number = arg;
    *number = hfi_thread_number();
    if (hfi_thread_number() != *number)
        *number = 0;
    return NULL;
}

static void a_threads_number_is_nobody_elses_also_after_its_end(void **state)
{
    enum { THREADS = 200, AT_ONCE = 4 };
    uint64_t numbers[THREADS];
    pthread_t threads[AT_ONCE];
    (void)state;
    for (int i = 0; i < THREADS; i += AT_ONCE) { /* the kernel's ids may come again meanwhile */
        for (int j = 0; j < AT_ONCE; j++)
            assert_int_equal(pthread_create(&threads[j], NULL, look_at_number, &numbers[i + j]), 0);
        for (int j = 0; j < AT_ONCE; j++)
            (void)pthread_join(threads[j], NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_true(numbers[i] >> 63 == 1); /* a number that a program chose lies below */
        assert_true(numbers[i] != hfi_thread_number());
        for (int j = 0; j < i; j++)
            assert_true(numbers[i] != numbers[j]);
    }
}

static void a_fork_child_knows_its_own_kernel_id(void **state)
{
    (void)state;
    int status = -1;
    assert_int_equal(hfi_thread_id(), gettid());
    pid_t child = fork();
    if (child == 0)
        _exit(hfi_thread_id() == gettid() ? 0 : 1);
    (void)waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_threads_number_is_nobody_elses_also_after_its_end),
        cmocka_unit_test(a_fork_child_knows_its_own_kernel_id),
        cmocka_unit_test(our_threads_block_every_signal_and_their_makers_mask_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
