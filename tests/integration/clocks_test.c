/* SPDX-License-Identifier: MIT */
/* clocks_test.c - the clocks of a primary and its replicas are compared, and those that are apart are named: by doctor, and
 * once a minute where all replicas confirm. A real server, whose clock is moved. */
#include <holdfast/holdfast.h>

#include "tests/support/fleet.h"
#include "tests/support/pool_kit.h"
#include "tests/support/takers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define AHEAD_MS 2000

static int start(void **state)
{
    struct hft_fleet *fleet = calloc(1, sizeof *fleet);
    hft_fleet_start(fleet, 3, 1, 30000, NULL);
    HFT_UNTIL_TRUE(hft_fleet_is_whole(fleet)); /* sentinels call a server down before they have met it */
    *state = fleet;
    return 0;
}

static int stop(void **state)
{
    hft_fleet_stop(*state);
    free(*state);
    return 0;
}

struct sought {
    hf_log_level level;
    const char *words;
    _Atomic(bool) found;
};

static bool seek(const hf_finding *finding, void *arg)
{
    struct sought *sought = arg;
    bool is_it = finding->level == sought->level && strstr(finding->what, sought->words) != NULL;
    if (!is_it && strstr(finding->what, "clock") != NULL)
        print_message("             but: %s\n", finding->what);
    atomic_store(&sought->found, is_it || atomic_load(&sought->found));
    return !is_it;
}

static bool doctor_says(hf_client *client, hf_log_level level, const char *words)
{
    struct sought sought = {level, words, false};
    return hf_client_check(client, seek, &sought, NULL) == HF_OK && atomic_load(&sought.found);
}

static void note(hf_log_level level, const char *message, void *arg)
{
    struct sought *sought = arg;
    if (level == sought->level && strstr(message, sought->words) != NULL)
        atomic_store(&sought->found, true);
}

static void clocks_that_agree_are_not_named(void **state)
{
    struct hft_fleet *fleet = *state;
    hf_client *client = hft_client_at(fleet->url, NULL);
    assert_true(doctor_says(client, HF_LOG_INFO, "the clocks of 3 of 3 servers agree"));
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static void they_are_asked_again_after_a_minute(void **state)
{
    struct hft_fleet *fleet = *state;
    struct hft_pool kit;
    struct hfi_host sentinel = {.name = (char[]){"127.0.0.1"}, .port = hft_server_port(fleet->sentinel[0])};
    hft_pool_init(&kit, NULL);
    kit.settings.endpoint = (struct hfi_endpoint){
        .scheme = HFI_SENTINEL, .hosts = {sentinel}, .host_count = 1, .service = (char[]){"mymaster"}};
    kit.settings.replicas = HF_ALL;
    int64_t before = hft_server_calls(fleet->server[1], "time");
    assert_int_equal(hft_pool_open(&kit, NULL, NULL), HF_OK);
    HFT_UNTIL(hft_server_calls(fleet->server[1], "time") == before + 1);
    atomic_fetch_add(&kit.owner.ahead_ns, 61000 * HFI_MS);
    HFT_UNTIL(hft_server_calls(fleet->server[1], "time") == before + 2);
    hft_pool_close(&kit);
}

static void clocks_that_are_apart_are_named(void **state)
{
    struct hft_fleet *fleet = *state;
    char words[100];
    (void)snprintf(words, sizeof words, "the clock of 127.0.0.1:%d is ", hft_server_port(fleet->server[2]));
    struct sought warning = {HF_LOG_WARNING, words, false};
    hft_server_restart_ahead(fleet->server[2], AHEAD_MS);
    HFT_UNTIL_TRUE(hft_fleet_is_whole(fleet));
    hf_client *client = hft_client_at(fleet->url, HF_CLIENT(.replicas = HF_ALL, .log = note, .log_arg = &warning));
    HFT_UNTIL_TRUE(atomic_load(&warning.found));
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
    client = hft_client_at(fleet->url, NULL); /* where nobody watches doctor asks */
    assert_true(doctor_says(client, HF_LOG_WARNING, words));
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static void who_does_not_answer_is_counted(void **state)
{
    struct hft_fleet *fleet = *state;
    hft_server_freeze(fleet->server[1]); /* sentinels do not mind for half a minute */
    hf_client *client = hft_client_at(fleet->url, HF_CLIENT(.connect_ms = 300));
    assert_true(doctor_says(client, HF_LOG_WARNING, "the clocks of 2 of 3 servers agree"));
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
    hft_server_thaw(fleet->server[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_that_agree_are_not_named),
        cmocka_unit_test(they_are_asked_again_after_a_minute),
        cmocka_unit_test(who_does_not_answer_is_counted),
        cmocka_unit_test(clocks_that_are_apart_are_named), /* the last one: it moves a clock */
    };
    return cmocka_run_group_tests(tests, start, stop);
}
