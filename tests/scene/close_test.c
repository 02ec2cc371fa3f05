/* SPDX-License-Identifier: MIT */
/* close_test.c - a client that closes: what it releases, how often it tries, and what it reports of keys that may
 * stay. */
#include "tests/scene/scene.h"
#include "tests/sim/pool_inside.h"
#include "core/context/context.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void a_client_that_closes_waits_for_a_bounded_time(void **state)
{
    (void)state;
    struct hft_actor giver;
    struct sim_process *process = hft_process(HF_CLIENT(.command_ms = 1000, .close_ms = 300));
    hf_lease *lease = hft_must_take(process, "n", NULL);
    hft_pass_ms(20);
    sim_server_freeze(sim.now + 60000 * HFI_MS);
    hft_give_back(&giver, process, lease);
    hft_pass_ms(10);
    int64_t began = sim.now;
    (void)hft_close(process); /* its thread is told; nothing more is left to be confirmed */
    assert_true(sim.now - began < 1500 * HFI_MS);
    HFT_UNTIL(giver.ended != 0);
    assert_int_equal(giver.status, HF_UNKNOWN);
}

/* The acquire was sent on a connection that has been given up since, and the server executes it after the close. */
static void a_client_that_closes_tells_of_an_acquire_that_may_yet_come(void **state)
{
    (void)state;
    struct hft_actor actor;
    struct sim_process *process = hft_process(HF_CLIENT(.lanes = 1, .command_ms = 200));
    hft_pass_ms(20);
    hft_stall_up(hft_lock_wire(process), 350);
    hft_take(&actor, process, "n", HF_LOCK(.wait_ms = 100, .lease_ms = 1000));
    HFT_UNTIL(actor.ended != 0);
    hft_lose_last(hft_lock_wire(process)); /* the release behind it */
    hft_pass_ms(150);
    assert_int_equal(hft_close(process), HF_UNKNOWN);
    HFT_UNTIL(hft_key("hf:{n}")[0] != 0);
}

/* The error is NOREPLICAS, as of a primary that has lost its replica: the refused release is tried once more. */
static void a_client_that_closes_tells_of_a_release_that_is_refused(void **state)
{
    (void)state;
    for (int again = 0; again < 2; again++) {
        struct hft_actor giver;
        (void)hft_scene_begin(NULL);
        struct sim_process *process = hft_process(NULL);
        hf_lease *lease = hft_must_take(process, "n", NULL);
        sim_server_refuse(SIM_NO_DISK);
        hft_give_back(&giver, process, lease);
        HFT_UNTIL(giver.ended != 0);
        assert_int_equal(giver.status, HF_UNKNOWN);
        if (again)
            sim_server_refuse(SIM_TAKES_ALL);
        assert_int_equal(hft_close(process), again ? HF_OK : HF_UNKNOWN);
        assert_int_equal(hft_key("hf:{n}")[0] == 0, again);
    }
}

static void a_client_that_closes_releases_its_leases(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(NULL);
    hf_lease *lease = hft_must_take(process, "n", NULL);
    (void)hft_must_take(process, "m", NULL);
    assert_int_equal(hft_close(process), HF_OK);
    assert_string_equal(hft_key("hf:{n}"), "");
    assert_string_equal(hft_key("hf:{m}"), "");
    assert_false(hft_is_valid(process, lease));
}

/* No acquire of the token has reached the server, neither the native transaction nor the script. */
static void a_client_that_closes_does_not_report_tokens_that_never_arrived(void **state)
{
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        struct hft_actor actor;
        (void)hft_scene_begin(NULL);
        struct sim_process *process = hft_process(NULL);
        sim_server_refuse(SIM_NO_DISK);
        hft_take(&actor, process, "n", HF_LOCK(.wait_ms = waits ? 700 : 0));
        HFT_UNTIL(actor.ended != 0);
        assert_int_not_equal(actor.status, HF_OK);
        assert_int_equal(hft_close(process), HF_OK);
    }
}

/* The token of a message may be one that this client has forgotten: the server refuses its release, or the release
 * is lost. */
static void a_client_that_closes_tells_of_an_orphan_that_it_could_not_release(void **state)
{
    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        char token[160], line[240];
        (void)hft_scene_begin(NULL);
        struct sim_process *process = hft_process(HF_CLIENT(.lanes = 1, .command_ms = 200));
        hf_lease *lease = hft_must_take(process, "n", NULL);
        (void)snprintf(token, sizeof token, "%s", hft_key("hf:{n}"));
        assert_int_equal(hft_released(process, lease), HF_OK);
        hft_pass_ms(1000);
        char *random = strchr(strchr(strchr(token, ':') + 1, ':') + 1, ':') + 1;
        *random = *random == '4' ? '5' : '4';
        (void)snprintf(line, sizeof line, "SET hf:{n} %s PX 60000", token);
        hft_tell(line);
        if (!lost)
            sim_server_refuse(SIM_NO_DISK);
        hft_publish(process, "R %s hf:{n}", token);
        if (lost) {
            HFT_UNTIL(hft_listed(process, "release") == 2);
            hft_lose_last(hft_lock_wire(process));
            hft_pass_ms(250);
        }
        hft_pass_ms(5);
        assert_int_equal(hft_close(process), HF_UNKNOWN);
        assert_string_equal(hft_key("hf:{n}"), token);
    }
}

struct fetching {
    struct sim_process *process;
    hf_load_fn *load;
    int64_t until; /* its loader goes on */
    bool done;
};

static void fetch(void *arg)
{
    struct fetching *fetching = arg;
    hf_value *value = NULL;
    (void)!hf_fetch(fetching->process->client, "page", HF_FETCH(.load = fetching->load, .arg = fetching, .ttl_ms = 1000), &value,
                    NULL);
    hf_value_free(value);
    fetching->done = true;
}

static hf_status load_slowly(hf_loading *loading, void *arg)
{
    const struct fetching *fetching = arg;
    if (fetching->until > sim.now)
        sim_sleep(fetching->until - sim.now);
    hf_loading_set_ttl(loading, HF_OFF);
    return hf_loading_set(loading, "v", 1);
}

static hf_status load_in_vain(hf_loading *loading, void *arg)
{
    const struct fetching *fetching = arg;
    sim_sleep(fetching->until - sim.now);
    return hf_loading_fail(loading, 0, "no");
}

/* A loader delays the close for ten seconds, and the server refuses all releases meanwhile. */
static void a_client_that_closes_repeats_a_refused_release_once(void **state)
{
    (void)state;
    struct hft_actor giver;
    static struct fetching fetching;
    struct sim_process *process = hft_process(HF_CLIENT(.lanes = 1));
    fetching = (struct fetching){process, load_slowly, sim.now + 10000 * HFI_MS, false};
    hf_lease *lease = hft_must_take(process, "n", HF_LOCK(.lease_ms = 60000));
    sim_thread_start(process, fetch, &fetching);
    hft_pass_ms(50);
    sim_server_refuse(SIM_NO_DISK);
    hft_give_back(&giver, process, lease);
    HFT_UNTIL(giver.ended != 0);
    int sent = hft_listed(process, "release");
    assert_int_equal(hft_close(process), HF_UNKNOWN);
    assert_in_range(hft_listed(process, "release") - sent, 2, 4); /* and the page's lease */
}

/* The token's second acquire gets no answer while a message has granted the lease, and is executed after the fill. */
static void a_fill_does_not_settle_an_acquire_in_doubt(void **state)
{
    (void)state;
    static struct fetching loader, waiter;
    int64_t asks = 0; /* when the waiter asks for the second time */
    for (int dry = 1; dry >= 0; dry--) {
        (void)hft_scene_begin(NULL);
        struct sim_process *first = hft_process(NULL), *second = hft_process(HF_CLIENT(.lanes = 1, .command_ms = 200));
        loader = (struct fetching){first, load_in_vain, dry ? sim.now + 5000 * HFI_MS : asks + 20 * HFI_MS, false};
        waiter = (struct fetching){second, load_slowly, dry ? 0 : asks + 205 * HFI_MS, false};
        sim_thread_start(first, fetch, &loader);
        hft_pass_ms(20);
        sim_thread_start(second, fetch, &waiter);
        HFT_UNTIL(hft_listed(second, "acquire") == 1);
        if (dry) {
            HFT_UNTIL(hft_listed(second, "acquire") == 2);
            asks = sim.now;
            continue;
        }
        sim_run(asks - HFI_MS);
        second->client->pool->lanes[1].wire->up_stalled_until = asks + 208 * HFI_MS;
        HFT_UNTIL(waiter.done);
        assert_true(sim.now > asks + 205 * HFI_MS && sim.now < asks + 208 * HFI_MS);
        hft_pass_ms(600);
        assert_string_equal(hft_key("hf:fetch:{page}"), "");
        (void)hft_close(second);
    }
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_scene_begin, hft_scene_end)
    const struct CMUnitTest tests[] = {
        TEST(a_client_that_closes_waits_for_a_bounded_time),
        TEST(a_client_that_closes_tells_of_an_acquire_that_may_yet_come),
        TEST(a_client_that_closes_tells_of_a_release_that_is_refused),
        TEST(a_client_that_closes_releases_its_leases),
        TEST(a_client_that_closes_does_not_report_tokens_that_never_arrived),
        TEST(a_client_that_closes_tells_of_an_orphan_that_it_could_not_release),
        TEST(a_client_that_closes_repeats_a_refused_release_once),
        TEST(a_fill_does_not_settle_an_acquire_in_doubt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
