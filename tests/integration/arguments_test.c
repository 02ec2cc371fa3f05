/* SPDX-License-Identifier: MIT */
/* arguments_test.c - what no call can mean is refused, and named; and the options of programs that were built against another
 * version. */
#include "tests/support/takers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct hft_server *server;
static hf_client *client;

static int start(void **state)
{
    (void)state;
    server = hft_server_start(NULL);
    client = hft_client(server, NULL);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
    hft_server_stop(server);
    return 0;
}

static void bad_arguments_are_invalid_and_named(void **state)
{
    hf_error error;
    (void)state;
    hf_lease *lease;
    hf_client *none;
    char name[HF_NAME_MAX + 2];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    const struct {
        const char *name;
        hf_lock_options options;
        const char *named;
    } locks[] = {
        {NULL, *HF_LOCK(.wait_ms = 0), "name"},
        {"", *HF_LOCK(.wait_ms = 0), "name"},
        {name, *HF_LOCK(.wait_ms = 0), "name"},
        {"a\0b", *HF_LOCK(.name_size = 3), "name"},
        {name, *HF_LOCK(.name_size = HF_NAME_MAX + 1), "name"},
        {"x", *HF_LOCK(.lease_ms = 99), "lease_ms"},
        {"x", *HF_LOCK(.lease_ms = -1), "lease_ms"},
        {"x", *HF_LOCK(.lease_ms = 86400001), "lease_ms"},
        {"x", *HF_LOCK(.wait_ms = -2), "wait_ms"},
        {"x", *HF_LOCK(.wait_ms = INT64_MIN), "wait_ms"},
        {"x", *HF_LOCK(.max_hold_ms = -1), "max_hold_ms"},
        {"x", *HF_LOCK(.linger_ms = -5), "linger_ms"},
        {"x", *HF_LOCK(.stop_ms = -1), "stop_ms"},
        {"x", *HF_LOCK(.lease_ms = 1000, .stop_ms = 2000), "stop_ms"},
        {"x", *HF_LOCK(.signal = 12345), "signal"},
        {"x", *HF_LOCK(.signal_at = 99), "signal_at"},
        {"x", *HF_LOCK(.owner_label = name), "owner_label"},
        {"x", *HF_LOCK(.reserved = {1}), "reserved"},
        {"x", {.wait_ms = 5}, "HF_LOCK"},
    };
    for (size_t i = 0; i < sizeof locks / sizeof locks[0]; i++) {
        lease = (hf_lease *)&error;
        assert_int_equal(hf_lock_acquire(client, locks[i].name, &locks[i].options, &lease, &error), HF_INVALID);
        assert_null(lease);
        if (strstr(error.message, locks[i].named) == NULL)
            fail_msg("%s is not named: %s", locks[i].named, error.message);
    }
    assert_int_equal(hf_lock_acquire(NULL, "x", NULL, &lease, &error), HF_INVALID);
    assert_int_equal(hf_lock_acquire(client, "x", NULL, NULL, &error), HF_INVALID);
    static const char *const urls[] = {"http://x", "redis://", "redis://host:port", "redis://host:99999", "unix://", "",
                                       "redis://h?lease_ms=abc", "redis://h?nonsense=1", "cluster://h", "sentinel://h",
                                       "redis://h/notanumber", "nothing at all"};
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        if (urls[i][0] == 0)
            continue;
        hf_status status = hf_client_open(urls[i], HF_CLIENT(.lazy = true), &none, &error);
        if (status != HF_INVALID || error.message[0] == 0)
            fail_msg("%s: %s %s", urls[i], hf_status_name(status), error.message);
        assert_null(none);
    }
    const struct {
        hf_client_options options;
        const char *named;
    } clients[] = {
        {*HF_CLIENT(.lease_ms = 5), "lease_ms"},         {*HF_CLIENT(.guard_ms = -1), "guard_ms"},
        {*HF_CLIENT(.connect_ms = -2), "connect_ms"},    {*HF_CLIENT(.command_ms = -7), "command_ms"},
        {*HF_CLIENT(.lanes = -1), "lanes"},              {*HF_CLIENT(.subscribers = 1000), "subscribers"},
        {*HF_CLIENT(.key_template = "x"), "key_template"}, {*HF_CLIENT(.key_template = "%s%s"), "key_template"},
        {*HF_CLIENT(.keyspace_events = "perhaps"), "keyspace_events"}, {*HF_CLIENT(.client_name = "a b"), "client_name"},
        {*HF_CLIENT(.dispatch = 7), "dispatch"},         {*HF_CLIENT(.min_connections = 20), "min_connections"},
        {*HF_CLIENT(.tls_ca_file = "x"), "tls_"},        {*HF_CLIENT(.reserved = {1}), "reserved"},
        {*HF_CLIENT(.local_bytes = -1), "local_bytes"},
    };
    for (size_t i = 0; i < sizeof clients / sizeof clients[0]; i++) {
        hf_status status = hf_client_open(hft_server_url(server), &clients[i].options, &none, &error);
        if (status != HF_INVALID || strstr(error.message, clients[i].named) == NULL)
            fail_msg("%s: %s %s", clients[i].named, hf_status_name(status), error.message);
    }
    assert_int_equal(hft_lock_keys(server), 0);
}

static void options_of_an_older_and_of_a_newer_program_are_understood(void **state)
{
    hf_error error;
    (void)state;
    hf_lease *lease;
    struct {
        hf_lock_options known;
        uint64_t later;
    } newer = {.known = {.lease_ms = 5000}};
    newer.known.size = sizeof newer;
    assert_int_equal(hf_lock_acquire(client, "x", &newer.known, &lease, NULL), HF_OK);
    assert_true(hf_lease_remaining_ms(lease) <= 5000);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    newer.later = 1;
    assert_int_equal(hf_lock_acquire(client, "x", &newer.known, &lease, &error), HF_INVALID);
    assert_non_null(strstr(error.message, "option"));
    hf_lock_options older = {.size = offsetof(hf_lock_options, wait_ms), .lease_ms = 5000, .wait_ms = -77};
    assert_int_equal(hf_lock_acquire(client, "x", &older, &lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_arguments_are_invalid_and_named),
        cmocka_unit_test(options_of_an_older_and_of_a_newer_program_are_understood),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
