/* SPDX-License-Identifier: MIT */
/* wiped_test.c - words that a fork child reads as 0. */
#include "base/wiped.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MANY 5000 /* more than a page holds */

static void a_new_word_is_zero_and_keeps_what_is_stored(void **state)
{
    (void)state;
    struct hfi_wiped *words = hfi_wiped_new();
    _Atomic(int64_t) *word = hfi_wiped_take(words);
    assert_non_null(word);
    assert_true(atomic_load(word) == 0);
    atomic_store(word, INT64_MAX);
    assert_true(atomic_load(word) == INT64_MAX);
    hfi_wiped_free(words);
}

static void a_word_given_back_comes_again_as_zero(void **state)
{
    (void)state;
    struct hfi_wiped *words = hfi_wiped_new();
    _Atomic(int64_t) *word = hfi_wiped_take(words);
    atomic_store(word, 7);
    hfi_wiped_give(words, word);
    for (int i = 0; i < MANY; i++)
        assert_true(atomic_load(hfi_wiped_take(words)) == 0);
    hfi_wiped_give(words, NULL);
    hfi_wiped_free(words);
    hfi_wiped_free(NULL);
}

static void many_words_are_all_different(void **state)
{
    (void)state;
    static _Atomic(int64_t) *word[MANY];
    struct hfi_wiped *words = hfi_wiped_new();
    for (int i = 0; i < MANY; i++) {
        word[i] = hfi_wiped_take(words);
        assert_non_null(word[i]);
        atomic_store(word[i], i + 1);
    }
    for (int i = 0; i < MANY; i++)
        assert_true(atomic_load(word[i]) == i + 1);
    for (int i = 0; i < MANY; i++)
        hfi_wiped_give(words, word[i]);
    hfi_wiped_free(words);
}

static void a_fork_child_reads_zero_everywhere_and_the_parent_what_was_there(void **state)
{
    (void)state;
    static _Atomic(int64_t) *word[MANY];
    struct hfi_wiped *words = hfi_wiped_new();
    int status, left = 0;
    for (int i = 0; i < MANY; i++) {
        word[i] = hfi_wiped_take(words);
        atomic_store(word[i], 42);
    }
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < MANY; i++)
            left += atomic_load(word[i]) != 0;
        _exit(left == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (int i = 0; i < MANY; i++)
        assert_true(atomic_load(word[i]) == 42);
    hfi_wiped_free(words);
}

static pthread_barrier_t together;

static void *take_and_give(void *arg)
{
    struct hfi_wiped *words = arg;
    (void)pthread_barrier_wait(&together);
    for (int i = 0; i < 200000; i++) {
        _Atomic(int64_t) *word = hfi_wiped_take(words);
        if (word == NULL || atomic_fetch_add(word, 1) != 0)
            return words; /* somebody else has it too */
        hfi_wiped_give(words, word);
    }
    return NULL;
}

static void threads_never_get_the_same_word(void **state)
{
    (void)state;
    struct hfi_wiped *words = hfi_wiped_new();
    pthread_t threads[4];
    void *wrong = NULL, *result;
    (void)pthread_barrier_init(&together, NULL, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, words), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        wrong = result != NULL ? result : wrong;
    }
    assert_null(wrong);
    hfi_wiped_free(words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_word_is_zero_and_keeps_what_is_stored),
        cmocka_unit_test(a_word_given_back_comes_again_as_zero),
        cmocka_unit_test(many_words_are_all_different),
        cmocka_unit_test(a_fork_child_reads_zero_everywhere_and_the_parent_what_was_there),
        cmocka_unit_test(threads_never_get_the_same_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
