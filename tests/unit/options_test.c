/* SPDX-License-Identifier: MIT */
/* options_test.c - options of programs of any age, their defaults, and the errors of wrong ones. */
#include "core/protocol/options.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DAY_MS INT64_C(86400000)

/* INVALID, with a message that names it. */
#define assert_names(got, why, name)                                                                         \
    do {                                                                                                     \
        assert_int_equal(got, HF_INVALID);                                                                   \
        assert_int_equal((why).status, HF_INVALID);                                                          \
        if (strstr((why).message, name) == NULL)                                                             \
            fail_msg("\"%s\" does not name %s", (why).message, name);                                        \
    } while (0)

static hf_status check_lock(hf_lock_options options, hf_error *error)
{
    return hfi_lock_options_check(&options, 10000, error);
}

static hf_status check_client(hf_client_options options, hf_error *error)
{
    return hfi_client_options_check(&options, error);
}

static hf_status load(hf_loading *loading, void *arg)
{
    (void)loading;
    (void)arg;
    return HF_OK;
}

static hf_status check_fetch(hf_fetch_options options, hf_error *error)
{
    if (options.load == NULL)
        options.load = load;
    return hfi_fetch_options_check(&options, 10000, false, error);
}

static void no_options_are_all_defaults(void **state)
{
    (void)state;
    hf_lock_options options;
    memset(&options, 0x5a, sizeof options);
    assert_int_equal(hfi_options_take(&options, sizeof options, NULL, "HF_LOCK", NULL), HF_OK);
    assert_int_equal(options.size, sizeof options);
    assert_int_equal(options.lease_ms, 0);
    assert_null(options.on_event);
    assert_int_equal(hfi_lock_options_check(&options, 7000, NULL), HF_OK);
    assert_int_equal(options.lease_ms, 7000);
    assert_int_equal(options.stop_ms, 700);
    assert_int_equal(options.wait_ms, 0);
}

static void options_unknown_to_an_older_program_are_zero(void **state)
{
    (void)state;
    hf_lock_options given, taken;
    memset(&given, 0x5a, sizeof given);
    given.size = offsetof(hf_lock_options, wait_ms);
    given.lease_ms = 4000;
    assert_int_equal(hfi_options_take(&taken, sizeof taken, &given, "HF_LOCK", NULL), HF_OK);
    assert_int_equal(taken.lease_ms, 4000);
    assert_int_equal(taken.wait_ms, 0);
    assert_null(taken.cancel);
    assert_int_equal(taken.size, sizeof taken);
    given.size = sizeof given.size;
    assert_int_equal(hfi_options_take(&taken, sizeof taken, &given, "HF_LOCK", NULL), HF_OK);
    assert_int_equal(taken.lease_ms, 0);
}

static void options_of_a_newer_program_must_be_zero(void **state)
{
    (void)state;
    struct {
        hf_lock_options known;
        char more[24];
    } given = {.known = {.size = sizeof given, .lease_ms = 4000}};
    hf_lock_options taken;
    hf_error error;
    assert_int_equal(hfi_options_take(&taken, sizeof taken, &given, "HF_LOCK", &error), HF_OK);
    assert_int_equal(taken.lease_ms, 4000);
    assert_int_equal(taken.size, sizeof taken);
    given.more[23] = 1;
    assert_names(hfi_options_take(&taken, sizeof taken, &given, "HF_LOCK", &error), error, "HF_LOCK");
}

static void a_size_that_was_not_filled_in_is_noticed(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, sizeof(size_t) - 1, 65537, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        hf_lock_options given = {.size = sizes[i]}, taken;
        hf_error error;
        assert_names(hfi_options_take(&taken, sizeof taken, &given, "HF_LOCK", &error), error, "size");
    }
}

static void reserved_fields_stay_zero(void **state)
{
    (void)state;
    hf_error error;
    assert_names(check_lock((hf_lock_options){.reserved = {[4] = 1}}, &error), error, "reserved");
    assert_names(check_client((hf_client_options){.reserved = {[0] = 1}}, &error), error, "reserved");
    assert_names(check_client((hf_client_options){.reserved_flags = {[6] = true}}, &error), error, "reserved");
    assert_names(check_fetch((hf_fetch_options){.reserved = {[3] = 1}}, &error), error, "reserved");
}

static void a_lease_lasts_from_a_tenth_of_a_second_to_a_day(void **state)
{
    (void)state;
    static const int64_t bad[] = {1, 99, DAY_MS + 1, INT64_MAX, HF_FOREVER, HF_OFF, -3, INT64_MIN};
    hf_error error;
    assert_int_equal(check_lock((hf_lock_options){.lease_ms = 100}, NULL), HF_OK);
    assert_int_equal(check_lock((hf_lock_options){.lease_ms = DAY_MS}, NULL), HF_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_names(check_lock((hf_lock_options){.lease_ms = bad[i]}, &error), error, "lease_ms");
        assert_names(check_client((hf_client_options){.lease_ms = bad[i]}, &error), error, "lease_ms");
        assert_names(check_fetch((hf_fetch_options){.lease_ms = bad[i]}, &error), error, "lease_ms");
    }
}

static void forever_is_for_waits_and_off_for_what_has_a_default(void **state)
{
    (void)state;
    hf_error error;
    assert_int_equal(check_lock((hf_lock_options){.wait_ms = HF_FOREVER}, NULL), HF_OK);
    assert_names(check_lock((hf_lock_options){.wait_ms = HF_OFF}, &error), error, "wait_ms");
    assert_names(check_lock((hf_lock_options){.wait_ms = -3}, &error), error, "wait_ms");
    assert_names(check_lock((hf_lock_options){.max_hold_ms = HF_FOREVER}, &error), error, "max_hold_ms");
    assert_names(check_lock((hf_lock_options){.linger_ms = -1}, &error), error, "linger_ms");
    assert_int_equal(check_fetch((hf_fetch_options){.wait_ms = HF_FOREVER}, NULL), HF_OK);
    assert_int_equal(check_fetch((hf_fetch_options){.wait_ms = HF_OFF}, NULL), HF_OK);
    assert_names(check_fetch((hf_fetch_options){.ttl_ms = HF_FOREVER}, &error), error, "ttl_ms");
    assert_names(check_fetch((hf_fetch_options){.stale_ms = -5}, &error), error, "stale_ms");
    assert_names(check_fetch((hf_fetch_options){.negative_ttl_ms = HF_FOREVER}, &error), error,
                 "negative_ttl_ms");
    assert_int_equal(check_client((hf_client_options){.guard_ms = HF_OFF,
                                                      .idle_ms = HF_OFF,
                                                      .lifetime_ms = HF_OFF,
                                                      .local_bytes = HF_OFF},
                                  NULL),
                     HF_OK);
    assert_names(check_client((hf_client_options){.command_ms = HF_OFF}, &error), error, "command_ms");
    assert_names(check_client((hf_client_options){.connect_ms = HF_FOREVER}, &error), error, "connect_ms");
    assert_names(check_client((hf_client_options){.guard_ms = HF_FOREVER}, &error), error, "guard_ms");
}

static void a_stop_margin_leaves_something_of_the_lease(void **state)
{
    (void)state;
    hf_error error;
    hf_lock_options options = {.lease_ms = 100};
    assert_int_equal(hfi_lock_options_check(&options, 10000, NULL), HF_OK);
    assert_int_equal(options.stop_ms, 50);
    assert_int_equal(check_lock((hf_lock_options){.lease_ms = 1000, .stop_ms = 999}, NULL), HF_OK);
    assert_names(check_lock((hf_lock_options){.lease_ms = 1000, .stop_ms = 1000}, &error), error, "stop_ms");
    assert_names(check_lock((hf_lock_options){.stop_ms = HF_OFF}, &error), error, "stop_ms");
}

static void on_signal(int number)
{
    (void)number;
}

static void a_signal_needs_a_handler(void **state)
{
    (void)state;
    hf_error error;
    struct sigaction handler = {.sa_handler = on_signal}, before;
    assert_names(check_lock((hf_lock_options){.signal = SIGUSR2}, &error), error, "handler");
    assert_names(check_lock((hf_lock_options){.signal = -1}, &error), error, "signal");
    assert_names(check_lock((hf_lock_options){.signal = 1000}, &error), error, "signal");
    assert_names(check_lock((hf_lock_options){.signal = SIGKILL}, &error), error, "signal");
    assert_int_equal(sigaction(SIGUSR2, &handler, &before), 0);
    assert_int_equal(check_lock((hf_lock_options){.signal = SIGUSR2}, NULL), HF_OK);
    assert_int_equal(check_lock((hf_lock_options){.signal = SIGUSR2, .signal_at = HF_EVENT_AT_RISK}, NULL),
                     HF_OK);
    assert_names(check_lock((hf_lock_options){.signal = SIGUSR2, .signal_at = HF_EVENT_SAFE_AGAIN}, &error),
                 error, "signal_at");
    assert_int_equal(sigaction(SIGUSR2, &before, NULL), 0);
}

static void a_label_has_its_length(void **state)
{
    (void)state;
    char label[130];
    hf_error error;
    memset(label, 'x', sizeof label);
    label[128] = 0;
    assert_int_equal(check_lock((hf_lock_options){.owner_label = label}, NULL), HF_OK);
    label[128] = 'x';
    label[129] = 0;
    assert_names(check_lock((hf_lock_options){.owner_label = label}, &error), error, "owner_label");
    assert_names(check_lock((hf_lock_options){.order_class = label}, &error), error, "order_class");
    assert_names(check_lock((hf_lock_options){.order_class = ""}, &error), error, "order_class");
    label[128] = 0;
    assert_int_equal(check_lock((hf_lock_options){.order_class = label}, NULL), HF_OK);
}

static void a_clients_defaults_are_those_of_the_header(void **state)
{
    (void)state;
    hf_client_options options = {.size = sizeof options};
    assert_int_equal(hfi_client_options_check(&options, NULL), HF_OK);
    assert_int_equal(options.lease_ms, 10000);
    assert_int_equal(options.guard_ms, 250);
    assert_int_equal(options.connect_ms, 2000);
    assert_int_equal(options.command_ms, 1000);
    assert_int_equal(options.close_ms, 1000);
    assert_int_equal(options.lanes, 2);
    assert_int_equal(options.subscribers, 1);
    assert_int_equal(options.min_connections, 0);
    assert_int_equal(options.max_connections, 16);
    assert_int_equal(options.idle_ms, 600000);
    assert_int_equal(options.lifetime_ms, 3600000);
    assert_int_equal(options.max_value_bytes, 16 << 20);
    assert_int_equal(options.max_waiters, 100000);
    assert_int_equal(options.local_bytes, 16 << 20);
    assert_string_equal(options.keyspace_events, "auto");
}

static void over_tls_hands_take_longer_and_one_lane_is_enough(void **state)
{
    (void)state;
    hf_client_options left = {.size = sizeof left}, given = {.size = sizeof given, .connect_ms = 100, .lanes = 3};
    assert_int_equal(hfi_tls_options_check(&left, true, NULL), HF_OK);
    assert_int_equal(left.connect_ms, 5000);
    assert_int_equal(left.lanes, 1);
    assert_int_equal(hfi_tls_options_check(&given, true, NULL), HF_OK);
    assert_int_equal(given.connect_ms, 100);
    assert_int_equal(given.lanes, 3);
}

static void what_has_bounds_or_a_default_stands_where_it_is_checked(void **state)
{
    (void)state;
    for (int i = HFI_CLIENT_BOUNDED; i < HFI_CLIENT_OPTIONS; i++)
        assert_true(hfi_client_table[i].high == 0 && hfi_client_table[i].otherwise == 0);
    for (int i = HFI_LOCK_BOUNDED; i < HFI_LOCK_OPTIONS; i++)
        assert_true(hfi_lock_table[i].high == 0 && hfi_lock_table[i].otherwise == 0);
}

static void a_clients_wrong_options_are_named(void **state)
{
    (void)state;
    hf_error error;
    assert_names(check_client((hf_client_options){.lanes = -1}, &error), error, "lanes");
    assert_names(check_client((hf_client_options){.lanes = 65}, &error), error, "lanes");
    assert_names(check_client((hf_client_options){.subscribers = 65}, &error), error, "subscribers");
    assert_names(check_client((hf_client_options){.max_connections = -1}, &error), error, "max_connections");
    assert_names(check_client((hf_client_options){.min_connections = 5, .max_connections = 4}, &error), error,
                 "min_connections");
    assert_names(check_client((hf_client_options){.max_value_bytes = (512u << 20) + 1}, &error), error,
                 "max_value_bytes");
    assert_names(check_client((hf_client_options){.local_bytes = -3}, &error), error, "local_bytes is -3");
    assert_string_equal(error.hint, "sizes are in bytes");
    assert_names(check_client((hf_client_options){.keyspace_events = "on"}, &error), error,
                 "keyspace_events");
    assert_names(check_client((hf_client_options){.key_template = "lock"}, &error), error, "key_template");
    assert_names(check_client((hf_client_options){.client_name = "two words"}, &error), error, "client_name");
    assert_names(check_client((hf_client_options){.client_name = ""}, &error), error, "client_name");
    assert_names(check_client((hf_client_options){.client_name = "a\033b"}, &error), error, "client_name");
    assert_names(check_client((hf_client_options){.dispatch = (hf_dispatch)7}, &error), error, "dispatch");
}

static void a_fetchs_wrong_options_are_named(void **state)
{
    (void)state;
    hf_error error;
    hf_fetch_options none = {.size = sizeof none};
    assert_names(hfi_fetch_options_check(&none, 10000, false, &error), error, "load");
    assert_int_equal(check_fetch((hf_fetch_options){.early = 1000}, NULL), HF_OK);
    assert_names(check_fetch((hf_fetch_options){.early = -0.1}, &error), error, "early");
    assert_names(check_fetch((hf_fetch_options){.early = (double)NAN}, &error), error, "early");
    assert_names(check_fetch((hf_fetch_options){.early = (double)INFINITY}, &error), error, "early");
    assert_names(check_fetch((hf_fetch_options){.when_down = (hf_when_down)9}, &error), error, "when_down");
    assert_names(check_fetch((hf_fetch_options){.max_load_ms = -7}, &error), error, "max_load_ms");
}

static void *copy_arg(void *arg)
{
    return arg;
}

static void free_arg(void *arg)
{
    (void)arg;
}

#define WHERE(has_loaders, ...) hfi_fetch_where_check(&(hf_fetch_options){__VA_ARGS__}, has_loaders, &error)

static void where_to_load_and_what_with_have_to_fit(void **state)
{
    (void)state;
    hf_error error;
    char arg;
    assert_int_equal(WHERE(false, .arg = &arg), HF_OK);
    assert_int_equal(WHERE(true, .arg = &arg, .arg_size = 1), HF_OK); /* not needed, and no harm */
    assert_int_equal(WHERE(true, .where = HF_REFRESH_ASIDE), HF_OK);
    assert_int_equal(WHERE(true, .where = HF_LOAD_ASIDE, .arg = &arg, .arg_size = 1, .soft_ms = 5), HF_OK);
    assert_int_equal(WHERE(true, .where = HF_LOAD_ASIDE, .arg = &arg, .copy_arg = copy_arg), HF_OK);
    assert_int_equal(WHERE(true, .where = HF_LOAD_ASIDE, .arg = &arg, .copy_arg = copy_arg, .free_arg = free_arg), HF_OK);
    assert_names(WHERE(true, .where = (hf_load_where)3), error, "where");
    assert_names(WHERE(false, .where = HF_REFRESH_ASIDE), error, "loaders");
    assert_names(WHERE(true, .where = HF_REFRESH_ASIDE, .arg = &arg), error, "arg");
    assert_names(WHERE(true, .where = HF_LOAD_ASIDE, .arg = &arg, .arg_size = 1, .copy_arg = copy_arg), error, "copy_arg");
    assert_names(WHERE(true, .arg_size = 1, .copy_arg = copy_arg), error, "copy_arg");
    assert_names(WHERE(true, .arg = &arg, .free_arg = free_arg), error, "free_arg");
    assert_names(WHERE(true, .soft_ms = 5), error, "soft_ms");
}

static hf_status parse(hf_client_options *options, const char *name, const char *text, hf_error *error)
{
    return hfi_client_option_parse(options, name, text, error);
}

static void a_uri_sets_what_the_options_leave_open(void **state)
{
    (void)state;
    hf_client_options options = {.command_ms = 77};
    hf_error error;
    assert_int_equal(parse(&options, "lease_ms", "2500", NULL), HF_OK);
    assert_int_equal(options.lease_ms, 2500);
    assert_int_equal(parse(&options, "command_ms", "88", NULL), HF_OK);
    assert_int_equal(options.command_ms, 77); /* a non-zero field wins */
    assert_int_equal(parse(&options, "idle_ms", "off", NULL), HF_OK);
    assert_int_equal(options.idle_ms, HF_OFF);
    assert_int_equal(parse(&options, "lanes", "3", NULL), HF_OK);
    assert_int_equal(options.lanes, 3);
    assert_int_equal(parse(&options, "max_waiters", "12", NULL), HF_OK);
    assert_int_equal(options.max_waiters, 12);
    assert_int_equal(parse(&options, "subscribers", "-1", NULL), HF_OK);
    assert_names(hfi_client_options_check(&options, &error), error, "subscribers is -1");
}

/* As a program would that knows the library by its symbols alone. */
static void a_locks_options_can_be_said_by_name(void **state)
{
    (void)state;
    hf_error error = {0};
    size_t size = hf_lock_options_init(NULL, 0);
    assert_int_equal(size, sizeof(hf_lock_options));
    hf_lock_options options;
    memset(&options, 0xff, sizeof options);
    assert_int_equal(hf_lock_options_init(&options, sizeof options), size);
    hf_lock_options expected; /* the bytes between its fields too: a macro's are whatever the compiler leaves there */
    memset(&expected, 0, sizeof expected);
    expected.size = sizeof expected;
    assert_memory_equal(&options, &expected, sizeof options);
    static const char *const said[][2] = {{"lease_ms", "2500"}, {"wait_ms", "forever"}, {"max_hold_ms", "60000"},
                                          {"linger_ms", "50"},  {"stop_ms", "300"},     {"owner", "7"},
                                          {"signal", "10"},     {"event_fd", "1"},      {"reentrant", "1"},
                                          {"reentrant", "off"}, {"owner_label", "job"}, {"lease_ms", "3000"},
                                          {"order_class", "rows"}};
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++)
        assert_int_equal(hf_lock_options_parse(&options, said[i][0], said[i][1], &error), HF_OK);
    assert_string_equal(options.owner_label, "job");
    assert_string_equal(options.order_class, "rows");
    options.owner_label = options.order_class = NULL;
    expected.lease_ms = 3000;
    expected.wait_ms = HF_FOREVER;
    expected.max_hold_ms = 60000;
    expected.linger_ms = 50;
    expected.stop_ms = 300;
    expected.owner = 7;
    expected.signal = 10;
    expected.event_fd = true;
    assert_memory_equal(&options, &expected, sizeof options);
    assert_names(hf_lock_options_parse(&options, "on_event", "1", &error), error, "on_event");
    assert_names(hf_lock_options_parse(&options, "lease_ms", "2.5", &error), error, "lease_ms");
    assert_names(hf_lock_options_parse(&options, "lease_ms", "off", &error), error, "lease_ms");
    assert_names(hf_lock_options_parse(&options, "linger_ms", "forever", &error), error, "linger_ms");
    assert_names(hf_lock_options_parse(&options, "owner", "-1", &error), error, "owner");
    assert_names(hf_lock_options_parse(&options, NULL, "1", &error), error, "NULL");
    assert_int_equal(options.lease_ms, 3000);
    assert_int_equal(hf_lock_options_parse(&options, "signal_at", "1", &error), HF_OK);
    assert_int_equal(options.signal_at, HF_EVENT_AT_RISK);
    (void)hf_lock_options_init(&options, offsetof(hf_lock_options, owner));
    options.owner = 9; /* beyond what it was said to be */
    assert_names(hf_lock_options_parse(&options, "owner", "7", &error), error, "no room for option owner");
    assert_int_equal(options.owner, 9);
    assert_int_equal(hf_client_options_init(NULL, 0), sizeof(hf_client_options));
    assert_int_equal(hf_fetch_options_init(NULL, 0), sizeof(hf_fetch_options));
    for (int i = 0; i < hf_status_count(); i++)
        assert_null(strstr(hf_status_name((hf_status)i), "unknown"));
    assert_non_null(strstr(hf_status_name((hf_status)hf_status_count()), "unknown"));
}

static void a_number_in_a_uri_is_said_as_it_was_written(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
    } wrong[] = {{"lanes", "99999999999"},     {"lanes", "-99999999999"},  {"lanes", "off"},
                 {"lanes", "forever"},         {"max_waiters", "-1"},      {"max_value_bytes", "-1"},
                 {"max_waiters", "off"},       {"lanes", "+5"},            {"lanes", "\n5"},
                 {"lanes", " 5"},              {"lease_ms", "+5"},         {"lease_ms", "5-"},
                 {"lazy", "2"},                {"lazy", "-1"},             {"lazy", "forever"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        hf_client_options options = {0};
        hf_error error = {0};
        char quoted[40];
        assert_int_equal(parse(&options, wrong[i].name, wrong[i].text, &error), HF_INVALID);
        if (strstr(error.message, wrong[i].name) == NULL ||
            strstr(error.message, hfi_quote(quoted, sizeof quoted, wrong[i].text, strlen(wrong[i].text))) == NULL)
            fail_msg("%s=%s: %s", wrong[i].name, wrong[i].text, error.message);
    }
}

static void a_flag_in_a_uri_is_on_only_when_it_says_so(void **state)
{
    (void)state;
    hf_client_options options = {0};
    assert_int_equal(parse(&options, "lazy", "0", NULL), HF_OK);
    assert_false(options.lazy);
    assert_int_equal(parse(&options, "lazy", "off", NULL), HF_OK);
    assert_false(options.lazy);
    assert_int_equal(parse(&options, "lazy", "1", NULL), HF_OK);
    assert_true(options.lazy);
}

static void a_lease_that_nobody_set_is_no_longer_than_the_longest(void **state)
{
    (void)state;
    hf_client_options unsaid = {.max_lease_ms = 5000}, longer = {.max_lease_ms = 20000}, said = {.max_lease_ms = 5000, .lease_ms = 6000};
    assert_int_equal(hfi_client_options_check(&unsaid, NULL), HF_OK);
    assert_int_equal(unsaid.lease_ms, 5000);
    assert_int_equal(hfi_client_options_check(&longer, NULL), HF_OK);
    assert_int_equal(longer.lease_ms, 10000);
    assert_int_equal(hfi_client_options_check(&said, NULL), HF_INVALID);
}

static void a_uris_wrong_option_is_named(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "x", "12x", "1.5", "99999999999999999999", "on"};
    hf_client_options options = {0};
    hf_error error;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_names(parse(&options, "lease_ms", texts[i], &error), error, "lease_ms");
    assert_names(parse(&options, "leash_ms", "1", &error), error, "leash_ms");
    assert_names(parse(&options, "reserved", "1", &error), error, "reserved");
    assert_int_equal(options.lease_ms, 0);
}

/* As a client takes them from its URI; nobody is asked for an answer. */
static void every_named_option_may_stand_in_the_uri(void **state)
{
    hf_client *client;
    hf_error error;
    static const char uri[] =
        "redis://127.0.0.1:1?lease_ms=9000&guard_ms=300&connect_ms=100&command_ms=100&close_ms=off&idle_ms=off&lifetime_ms=off"
        "&local_bytes=off&lanes=1&subscribers=1&min_connections=0&max_connections=1&max_value_bytes=100000&max_waiters=10"
        "&lazy=1&client_name=all&key_template=l:%25s&keyspace_events=off";
    (void)state;
    if (hf_client_open(uri, NULL, &client, &error) != HF_OK)
        fail_msg("%s", error.message);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_options_are_all_defaults),
        cmocka_unit_test(options_unknown_to_an_older_program_are_zero),
        cmocka_unit_test(options_of_a_newer_program_must_be_zero),
        cmocka_unit_test(a_lease_that_nobody_set_is_no_longer_than_the_longest),
        cmocka_unit_test(a_size_that_was_not_filled_in_is_noticed),
        cmocka_unit_test(reserved_fields_stay_zero),
        cmocka_unit_test(a_lease_lasts_from_a_tenth_of_a_second_to_a_day),
        cmocka_unit_test(forever_is_for_waits_and_off_for_what_has_a_default),
        cmocka_unit_test(a_stop_margin_leaves_something_of_the_lease),
        cmocka_unit_test(a_signal_needs_a_handler),
        cmocka_unit_test(a_label_has_its_length),
        cmocka_unit_test(a_clients_defaults_are_those_of_the_header),
        cmocka_unit_test(over_tls_hands_take_longer_and_one_lane_is_enough),
        cmocka_unit_test(what_has_bounds_or_a_default_stands_where_it_is_checked),
        cmocka_unit_test(a_clients_wrong_options_are_named),
        cmocka_unit_test(a_fetchs_wrong_options_are_named),
        cmocka_unit_test(where_to_load_and_what_with_have_to_fit),
        cmocka_unit_test(a_uri_sets_what_the_options_leave_open),
        cmocka_unit_test(a_locks_options_can_be_said_by_name),
        cmocka_unit_test(a_number_in_a_uri_is_said_as_it_was_written),
        cmocka_unit_test(a_flag_in_a_uri_is_on_only_when_it_says_so),
        cmocka_unit_test(a_uris_wrong_option_is_named),
        cmocka_unit_test(every_named_option_may_stand_in_the_uri),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
