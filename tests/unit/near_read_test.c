/* SPDX-License-Identifier: MIT */
/* near_read_test.c - who waits for whose read, and what is given to those who wait. */
#include "core/fetch/near_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int open_reads(void **state)
{
    hf_client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return -1;
    client->clock = &hfi_boottime;
    *state = client;
    return hfi_near_reads_open(client) ? 0 : -1;
}

static int close_reads(void **state)
{
    hf_client *client = *state;
    hfi_near_reads_free(client);
    hfi_near_reads_free(client); /* twice is once */
    free(client);
    return 0;
}

static struct hfi_name named(const char *key)
{
    return hfi_name_of(HFI_FETCH, key, strlen(key));
}

#define READING(of_epoch, of_changes) (&(const struct hfi_near_reading){of_epoch, of_changes, 5})

static const struct hfi_near_found nothing = {true, NULL, -2, 5};

static void one_reads_and_the_others_take_what_it_finds(void **state)
{
    hf_client *client = *state;
    const struct hfi_name key = named("page"), other_key = named("other");
    struct hfi_near_read reader, waiter, other;
    assert_true(hfi_near_read_begin(client, &key, READING(1, 1), &reader));
    assert_true(hfi_near_read_begin(client, &other_key, READING(1, 1), &other));
    assert_false(hfi_near_read_begin(client, &key, READING(1, 1), &waiter));
    struct hfi_body *body = hfi_body_copy("value", 5);
    assert_non_null(body);
    hfi_near_read_end(client, &reader, &(const struct hfi_near_found){true, body, 70, 5});
    hfi_body_unref(body);
    assert_int_equal(hfi_near_read_wait(client, &waiter, NULL, 0), HF_OK);
    assert_true(waiter.found.is_good);
    assert_memory_equal(waiter.found.body->data, "value", 5);
    assert_int_equal(waiter.found.left_ms, 70);
    assert_int_equal(waiter.found.stamp_ns, 5);
    hfi_body_unref(waiter.found.body);
    hfi_near_read_end(client, &other, &nothing);
    assert_true(hfi_near_read_begin(client, &key, READING(1, 1), &reader));
    hfi_near_read_end(client, &reader, &nothing);
}

static void who_knows_of_a_later_change_reads_anew_and_is_waited_for(void **state)
{
    hf_client *client = *state;
    const struct hfi_name key = named("page");
    struct hfi_near_read before, after, later, older, other_epoch;
    assert_true(hfi_near_read_begin(client, &key, READING(1, 1), &before));
    assert_true(hfi_near_read_begin(client, &key, READING(1, 2), &after));
    assert_true(hfi_near_read_begin(client, &key, READING(2, 2), &other_epoch));
    assert_false(hfi_near_read_begin(client, &key, READING(1, 2), &later));
    assert_false(hfi_near_read_begin(client, &key, READING(1, 1), &older));
    hfi_near_read_end(client, &before, &nothing);
    assert_true(older.done);
    assert_false(later.done);
    hfi_near_read_end(client, &other_epoch, &nothing);
    assert_false(later.done);
    hfi_near_read_end(client, &after, &nothing);
    assert_int_equal(hfi_near_read_wait(client, &later, NULL, 0), HF_OK);
    assert_int_equal(hfi_near_read_wait(client, &older, NULL, 0), HF_OK);
}

static void who_waits_no_longer_is_given_nothing(void **state)
{
    hf_client *client = *state;
    const struct hfi_name key = named("page");
    struct hfi_near_read reader, waiter;
    assert_true(hfi_near_read_begin(client, &key, READING(1, 1), &reader));
    assert_false(hfi_near_read_begin(client, &key, READING(1, 1), &waiter));
    assert_int_equal(hfi_near_read_wait(client, &waiter, NULL, 0), HF_TIMEOUT);
    struct hfi_body *body = hfi_body_copy("value", 5);
    hfi_near_read_end(client, &reader, &(const struct hfi_near_found){true, body, 70, 5});
    assert_null(waiter.found.body);
    assert_int_equal(body->references, 1);
    hfi_body_unref(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_reads_and_the_others_take_what_it_finds, open_reads, close_reads),
        cmocka_unit_test_setup_teardown(who_knows_of_a_later_change_reads_anew_and_is_waited_for, open_reads, close_reads),
        cmocka_unit_test_setup_teardown(who_waits_no_longer_is_given_nothing, open_reads, close_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
