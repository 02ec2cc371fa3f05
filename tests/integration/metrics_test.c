/* SPDX-License-Identifier: MIT */
/* metrics_test.c - what a client counts, as Prometheus reads it. */
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STEPS 15 /* samples of a histogram: 12 bounds, +Inf, sum and count */

static char *metrics_of(const hf_client *const *clients, size_t count)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(hf_clients_metrics(clients, count, out), HF_OK);
    (void)fclose(out);
    return text;
}

/* -1: there is no such sample. */
static double sample_of(const hf_client *client, const char *sample)
{
    char *text = metrics_of(&client, 1), *at = strstr(text, sample);
    double number = at != NULL ? strtod(at + strlen(sample), NULL) : -1;
    free(text);
    return number;
}

/* Each family once: its help, its type, then the samples of each client; a counter's name ends in _total. */
static void a_page_is_prometheus_text(void **state)
{
    struct fixture *f = *state;
    hf_client *named = hft_client(f->server, HF_CLIENT(.client_name = "the-holder"));
    const hf_client *both[] = {named, f->b};
    char *rest = NULL, name[64] = "", kind[16], sample[64], client[160], number[32];
    hf_lease *lease = must_take(f, named, "one", NULL);
    char *text = metrics_of(both, 2);
    int families = 0, samples = 0, awaited = 0, end = 0;
    bool saw_held = false;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        if (sscanf(line, "# TYPE %63s %15s", name, kind) == 2) {
            bool counts = strcmp(kind, "counter") == 0, spans = strcmp(kind, "histogram") == 0;
            assert_int_equal(samples, awaited);
            assert_int_equal(counts, strcmp(name + strlen(name) - 6, "_total") == 0);
            assert_true(counts || spans || strcmp(kind, "gauge") == 0);
            assert_null(strstr(rest, line)); /* no family comes twice */
            awaited += spans ? 2 * STEPS : 2;
            families++;
        } else if (strncmp(line, "# HELP ", 7) != 0) {
            assert_true(
                sscanf(line, "%63[a-z_]{client=\"%159[^\"]\"%*[^}]} %31[0-9.]%n", sample, client, number, &end) == 3 ||
                sscanf(line, "%63[a-z_]{client=\"%159[^\"]\"} %31[0-9.]%n", sample, client, number, &end) == 3);
            assert_int_equal(line[end], 0);
            assert_memory_equal(sample, name, strlen(name));
            assert_memory_equal(name, "holdfast_", 9);
            if (strcmp(name, "holdfast_held") == 0 && strcmp(client, "the-holder") == 0)
                saw_held = strcmp(number, "1") == 0;
            samples++;
        }
    }
    free(text);
    assert_true(families >= 32 && samples == awaited && saw_held);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hf_client_close(named, NULL), HF_OK);
}

static void a_page_that_cannot_be_written_is_refused(void **state)
{
    struct fixture *f = *state;
    const hf_client *both[] = {f->a, f->b}, *twice[] = {f->a, f->a};
    assert_int_equal(hf_client_metrics(NULL, stdout), HF_INVALID);
    assert_int_equal(hf_client_metrics(f->a, NULL), HF_INVALID);
    assert_int_equal(hf_clients_metrics(both, 0, stdout), HF_INVALID);
    assert_int_equal(hf_clients_metrics(twice, 2, stdout), HF_INVALID);
    FILE *full = fopen("/dev/full", "we");
    (void)setvbuf(full, NULL, _IONBF, 0);
    assert_int_equal(hf_client_metrics(f->a, full), HF_UNAVAILABLE);
    assert_int_equal(hf_client_dump(f->a, full), HF_UNAVAILABLE);
    (void)fclose(full);
}

static void a_clients_name_is_escaped_in_its_label(void **state)
{
    struct fixture *f = *state;
    hf_client *odd = hft_client(f->server, HF_CLIENT(.client_name = "a\"b\\c"));
    char *text = metrics_of((const hf_client *const *)&odd, 1);
    assert_non_null(strstr(text, "holdfast_held{client=\"a\\\"b\\\\c\"} 0\n"));
    free(text);
    assert_int_equal(hf_client_close(odd, NULL), HF_OK);
}

/* b waits while a has it for a tenth of a second and more. */
static void waits_and_holds_are_told_by_length(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    hf_client *a = hft_client(f->server, HF_CLIENT(.client_name = "a")),
              *b = hft_client(f->server, HF_CLIENT(.client_name = "b"));
    hf_lease *lease = must_take(f, a, "long", NULL);
    hft_take(&taker, b, "long", HF_LOCK(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_queued(f->server, "long") == 1);
    int64_t queued_ms = hft_boottime_ms();
    HFT_UNTIL_TRUE(hft_boottime_ms() - queued_ms > 101);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    for (int i = 0; i < 20; i++) /* each too short to be told */
        assert_int_equal(hf_lease_release(must_take(f, a, "short", HF_LOCK(.linger_ms = 1000)), NULL), HF_OK);
    assert_true(sample_of(b, "holdfast_wait_seconds_bucket{client=\"b\",le=\"0.100\"} ") == 0);
    assert_true(sample_of(b, "holdfast_wait_seconds_bucket{client=\"b\",le=\"+Inf\"} ") == 1);
    assert_true(sample_of(b, "holdfast_wait_seconds_sum{client=\"b\"} ") > 0.1);
    assert_true(sample_of(b, "holdfast_wait_seconds_count{client=\"b\"} ") == 1);
    assert_true(sample_of(a, "holdfast_hold_seconds_sum{client=\"a\"} ") > 0.1);
    assert_true(sample_of(a, "holdfast_hold_seconds_bucket{client=\"a\",le=\"300.000\"} ") == 21);
    assert_true(sample_of(a, "holdfast_hold_seconds_bucket{client=\"a\",le=\"0.100\"} ") <= 20);
    assert_true(sample_of(a, "holdfast_hold_seconds_count{client=\"a\"} ") == 21);
    assert_int_equal(hf_client_close(a, NULL), HF_OK);
    assert_int_equal(hf_client_close(b, NULL), HF_OK);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_page_is_prometheus_text),
        TEST(a_page_that_cannot_be_written_is_refused),
        TEST(a_clients_name_is_escaped_in_its_label),
        TEST(waits_and_holds_are_told_by_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
