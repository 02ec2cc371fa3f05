/* SPDX-License-Identifier: MIT */
/* lock_order_test.c - the graph of orders in which locks are taken: its classes, its circles, its limit. */
#include "base/random.h"
#include "core/policy/lock_order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct hfi_order_graph *empty(void)
{
    struct hfi_order_graph *graph = calloc(1, sizeof *graph);
    assert_non_null(graph);
    return graph;
}

static void assert_folds(const char *name, const char *class)
{
    char text[64];
    size_t size = hfi_order_fold(name, strlen(name), text);
    assert_int_equal(size, strlen(class));
    assert_memory_equal(text, class, size);
}

static void each_number_in_a_name_is_one_sign(void **state)
{
    (void)state;
    assert_folds("user:7", "user:#");
    assert_folds("user:1234567", "user:#");
    assert_folds("10.0.0.7:80", "#.#.#.#:#");
    assert_folds("plain", "plain");
    assert_folds("09/:", "#/:"); /* the neighbours of the digits are none */
    assert_folds("7a8", "#a#");
    assert_folds("session:9f86d081884c7d65", "session:#");
    assert_folds("session:9F86D081", "session:#");
    assert_folds("session:9f86d08", "session:#f#d#"); /* too short to be told from words */
    assert_folds("deadbeef", "deadbeef");             /* nor is one without a decimal digit */
    assert_folds("u:550e8400-e29b-41d4-a716-446655440000:x", "u:#:x");
    assert_folds("u:abcdefab-cdef-abcd-efab-cdefabcdefab", "u:#");
    assert_folds("u:abcdefab-cdef-abcd-efab-cdefabcdefa", "u:abcdefab-cdef-abcd-efab-cdefabcdefa");
    assert_folds("2024-06-01", "#-#-#");
}

/* A thousand texts in a thousand slots: some share one. */
static void a_class_is_found_by_its_whole_text(void **state)
{
    (void)state;
    static char texts[1000][8];
    struct hfi_order_graph *graph = empty();
    for (int i = 0; i < 1000; i++) {
        int size = snprintf(texts[i], sizeof texts[i], "c%d", i);
        assert_int_equal(hfi_order_find_class(graph, texts[i], (size_t)size), 0);
        assert_int_equal(hfi_order_add_class(graph, texts[i], (size_t)size), i + 1);
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(hfi_order_find_class(graph, texts[i], strlen(texts[i])), i + 1);
    assert_int_equal(hfi_order_find_class(graph, "c1", 1), 0); /* "c" */
    assert_int_equal(hfi_order_find_class(graph, "c1000", 5), 0);
    free(graph);
}

#define NODES 12

static void classes(struct hfi_order_graph *graph, int count)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    for (int i = 0; i < count; i++)
        (void)hfi_order_add_class(graph, &letters[i], 1);
}

/* The oracle: lengths of all shortest ways, by Floyd and Warshall. 99: none. */
static void measure(bool has[NODES + 1][NODES + 1], int far[NODES + 1][NODES + 1])
{
    for (int i = 1; i <= NODES; i++)
        for (int j = 1; j <= NODES; j++)
            far[i][j] = i == j ? 0 : has[i][j] ? 1 : 99;
    for (int via = 1; via <= NODES; via++)
        for (int i = 1; i <= NODES; i++)
            for (int j = 1; j <= NODES; j++)
                if (far[i][via] + far[via][j] < far[i][j])
                    far[i][j] = far[i][via] + far[via][j];
}

static void assert_leads(const struct hfi_order_graph *graph, int from, int to, const uint16_t *way, int length)
{
    int at = from;
    for (int i = 0; i < length; i++) {
        assert_int_equal(graph->orders[way[i]].held, at);
        at = graph->orders[way[i]].wanted;
    }
    assert_int_equal(at, to);
}

static void ways_are_the_shortest_in_random_graphs(void **state)
{
    (void)state;
    uint64_t rng = 14;
    int longest = 0, none = 0;
    for (int round = 0; round < 200; round++) {
        struct hfi_order_graph *graph = empty();
        bool has[NODES + 1][NODES + 1] = {{false}};
        int far[NODES + 1][NODES + 1];
        uint16_t way[NODES];
        classes(graph, NODES);
        for (int n = 0; n < 30; n++) {
            int from = 1 + (int)(hfi_rng_next(&rng) % NODES), to = 1 + (int)(hfi_rng_next(&rng) % NODES);
            if (from == to)
                continue;
            assert_int_equal(hfi_order_find(graph, (uint16_t)from, (uint16_t)to) != 0, has[from][to]);
            measure(has, far);
            int length = hfi_order_way(graph, (uint16_t)to, (uint16_t)from, way);
            assert_int_equal(length, far[to][from] == 99 ? 0 : far[to][from]);
            if (length > 0)
                assert_leads(graph, to, from, way, length);
            assert_int_equal(hfi_order_way(graph, (uint16_t)to, (uint16_t)from, NULL), length);
            longest = length > longest ? length : longest;
            none += length == 0;
            if (!has[from][to])
                assert_int_not_equal(hfi_order_add(graph, (uint16_t)from, (uint16_t)to), 0);
            has[from][to] = true;
        }
        free(graph);
    }
    assert_true(longest >= 6); /* it was no idle walk */
    assert_true(none > 500);
}

/* One chain of classes through all orders that fit. */
static void a_full_graph_takes_no_more_and_still_answers(void **state)
{
    (void)state;
    static char texts[HFI_ORDERS_MOST + 2][8];
    struct hfi_order_graph *graph = empty();
    uint16_t *way = calloc(HFI_ORDERS_MOST, sizeof *way);
    for (int i = 1; i <= HFI_ORDERS_MOST + 1; i++) {
        int size = snprintf(texts[i], sizeof texts[i], "%d", i);
        assert_int_equal(hfi_order_add_class(graph, texts[i], (size_t)size), i);
    }
    for (int i = 1; i <= HFI_ORDERS_MOST; i++)
        assert_int_equal(hfi_order_add(graph, (uint16_t)i, (uint16_t)(i + 1)), i);
    assert_int_equal(hfi_order_add(graph, HFI_ORDERS_MOST + 1, 1), 0);
    assert_int_equal(hfi_order_way(graph, 1, HFI_ORDERS_MOST + 1, way), HFI_ORDERS_MOST);
    assert_leads(graph, 1, HFI_ORDERS_MOST + 1, way, HFI_ORDERS_MOST);
    assert_int_equal(hfi_order_way(graph, HFI_ORDERS_MOST + 1, 1, way), 0);
    free(way);
    free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_in_a_name_is_one_sign),
        cmocka_unit_test(a_class_is_found_by_its_whole_text),
        cmocka_unit_test(ways_are_the_shortest_in_random_graphs),
        cmocka_unit_test(a_full_graph_takes_no_more_and_still_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
