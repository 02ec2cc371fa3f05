/* SPDX-License-Identifier: MIT */
/* channels_test.c - what is left of a channel when nobody wants it any more, whatever the server answers. */
#include "pool/channels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct hfi_channel *must_step(struct hfi_channels *channels, enum hfi_channel_step expected)
{
    enum hfi_channel_step step;
    struct hfi_channel *channel = hfi_channels_next(channels, 0, &step);
    assert_int_equal(step, expected);
    return channel;
}

static struct hfi_channel *wanted_once(struct hfi_channels *channels)
{
    bool changed;
    assert_true(hfi_channels_want(channels, "x", 1, &changed));
    assert_true(changed);
    return must_step(channels, HFI_CHANNEL_ASK);
}

static void wanted_no_more(struct hfi_channels *channels)
{
    bool changed;
    hfi_channels_unwant(channels, "x", 1, &changed);
    (void)must_step(channels, HFI_CHANNEL_DROP);
}

static void none_is_left_that_nobody_wants(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) { /* each of the two commands is confirmed, or refused */
        struct hfi_channels *channels = hfi_channels_new(1);
        struct hfi_channel *channel = wanted_once(channels);
        if (way % 2 == 0)
            assert_true(hfi_channels_confirm(channels, channel));
        else
            assert_true(hfi_channels_refuse(channels, channel)); /* a SUBSCRIBE */
        assert_true(hfi_channels_any(channels, 0));
        wanted_no_more(channels);
        if (way / 2 == 0)
            assert_false(hfi_channels_confirm(channels, channel));
        else
            assert_false(hfi_channels_refuse(channels, channel));
        assert_false(hfi_channels_any(channels, 0));
        hfi_channels_free(channels);
    }
}

static void who_wants_it_again_meanwhile_has_it(void **state)
{
    struct hfi_channels *channels = hfi_channels_new(1);
    struct hfi_channel *channel = wanted_once(channels);
    bool changed;
    (void)state;
    assert_true(hfi_channels_confirm(channels, channel));
    wanted_no_more(channels);
    assert_true(hfi_channels_want(channels, "x", 1, &changed));
    assert_ptr_equal(must_step(channels, HFI_CHANNEL_ASK), channel);
    assert_false(hfi_channels_refuse(channels, channel)); /* the UNSUBSCRIBE, which is the older one */
    assert_true(hfi_channels_confirm(channels, channel));
    assert_true(hfi_channels_is_live(channels, "x", 1));
    hfi_channels_free(channels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_is_left_that_nobody_wants),
        cmocka_unit_test(who_wants_it_again_meanwhile_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
