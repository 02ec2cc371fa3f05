/* SPDX-License-Identifier: MIT */
/* shared_test.c - the value that the threads waiting on one fetch lock get. */
#include "core/fetch/shared.h"
#include "tests/support/clock_fake.h"

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static redisReply *text(const char *words)
{
    redisReply *reply = calloc(1, sizeof *reply);
    reply->type = REDIS_REPLY_STRING;
    reply->str = strdup(words);
    reply->len = strlen(words);
    return reply;
}

static redisReply *number(long long integer)
{
    redisReply *reply = calloc(1, sizeof *reply);
    reply->type = REDIS_REPLY_INTEGER;
    reply->integer = integer;
    return reply;
}

static redisReply *answer_with(redisReply *data)
{
    redisReply *reply = calloc(1, sizeof *reply);
    reply->type = REDIS_REPLY_ARRAY;
    reply->elements = 4;
    reply->element = calloc(4, sizeof *reply->element);
    reply->element[0] = text("VALUE");
    reply->element[1] = number(1);
    reply->element[2] = data;
    reply->element[3] = number(5000);
    return reply;
}

static void an_answer_that_could_not_be_kept_leaves_no_older_one_in_its_place(void **state)
{
    struct hft_clock clock;
    hf_client client = {.clock = &clock.clock};
    struct hfi_lock lock = {.shared = NULL, .client = &client};
    redisReply *older = answer_with(text("older")), *newer = answer_with(number(0)); /* of which no value can be made */
    (void)state;
    hft_clock_init(&clock, 77);
    assert_non_null(hfi_shared_of(&lock));
    hfi_shared_ops.take(&lock, older);
    assert_string_equal(lock.shared->body->data, "older");
    assert_true(lock.shared->left_ms == 5000);
    assert_true(lock.shared->came_ns == 77);
    hfi_shared_ops.take(&lock, newer);
    assert_null(lock.shared->body);
    freeReplyObject(older);
    freeReplyObject(newer);
    hfi_shared_ops.free(lock.shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_that_could_not_be_kept_leaves_no_older_one_in_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
