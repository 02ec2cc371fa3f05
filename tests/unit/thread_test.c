/* SPDX-License-Identifier: MIT */
/* thread_test.c - threads of ours have a name and hear no signal. */
#include "base/thread.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_threads_block_every_signal_and_their_makers_mask_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
