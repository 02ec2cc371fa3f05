/* SPDX-License-Identifier: MIT */
/* inbox_test.c - many threads put, one takes: every item once, and each sender's in order. */
#include "base/inbox.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define SENDERS 4
#define LETTERS 100000

struct letter {
    struct hfi_inbox_node node; /* first, so that a node is its letter */
    int sender, number;
};

struct sender {
    pthread_t thread;
    struct hfi_inbox *inbox;
    struct letter *letters;
    pthread_barrier_t *together;
};

static void an_empty_inbox_gives_nothing(void **state)
{
    (void)state;
    struct hfi_inbox inbox;
    hfi_inbox_init(&inbox);
    assert_true(hfi_inbox_is_empty(&inbox));
    assert_null(hfi_inbox_take(&inbox));
}

static void all_is_taken_at_once_oldest_first(void **state)
{
    (void)state;
    struct letter letters[3] = {{.number = 0}, {.number = 1}, {.number = 2}};
    struct hfi_inbox inbox;
    int at = 0;
    hfi_inbox_init(&inbox);
    for (int i = 0; i < 3; i++)
        hfi_inbox_put(&inbox, &letters[i].node);
    assert_false(hfi_inbox_is_empty(&inbox));
    for (struct hfi_inbox_node *node = hfi_inbox_take(&inbox); node != NULL; node = hfi_inbox_next(node))
        assert_ptr_equal(node, &letters[at++].node);
    assert_int_equal(at, 3);
    assert_true(hfi_inbox_is_empty(&inbox));
    hfi_inbox_put(&inbox, &letters[1].node);
    assert_ptr_equal(hfi_inbox_take(&inbox), &letters[1].node);
}

static void *send_all(void *arg)
{
    struct sender *sender = arg;
    (void)pthread_barrier_wait(sender->together);
    for (int i = 0; i < LETTERS; i++) {
        sender->letters[i].number = i; /* must be seen by who takes it */
        hfi_inbox_put(sender->inbox, &sender->letters[i].node);
    }
    return NULL;
}

static void nothing_is_lost_doubled_or_out_of_its_senders_order(void **state)
{
    (void)state;
    struct sender senders[SENDERS];
    struct hfi_inbox inbox;
    pthread_barrier_t together;
    int next[SENDERS] = {0}, taken = 0;
    hfi_inbox_init(&inbox);
    (void)pthread_barrier_init(&together, NULL, SENDERS);
    for (int i = 0; i < SENDERS; i++) {
        senders[i].inbox = &inbox;
        senders[i].together = &together;
        senders[i].letters = calloc(LETTERS, sizeof *senders[i].letters);
        assert_non_null(senders[i].letters);
        for (int k = 0; k < LETTERS; k++)
            senders[i].letters[k].sender = i;
        assert_int_equal(pthread_create(&senders[i].thread, NULL, send_all, &senders[i]), 0);
    }
    while (taken < SENDERS * LETTERS) {
        struct hfi_inbox_node *node = hfi_inbox_take(&inbox);
        while (node != NULL) {
            struct letter *letter = (struct letter *)(void *)node;
            node = hfi_inbox_next(node);
            assert_int_equal(letter->number, next[letter->sender]++);
            taken++;
        }
    }
    for (int i = 0; i < SENDERS; i++)
        (void)pthread_join(senders[i].thread, NULL);
    assert_true(hfi_inbox_is_empty(&inbox));
    for (int i = 0; i < SENDERS; i++) {
        assert_int_equal(next[i], LETTERS);
        free(senders[i].letters);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_inbox_gives_nothing),
        cmocka_unit_test(all_is_taken_at_once_oldest_first),
        cmocka_unit_test(nothing_is_lost_doubled_or_out_of_its_senders_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
