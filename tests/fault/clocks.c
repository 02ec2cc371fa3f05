/* SPDX-License-Identifier: MIT */
/* clocks.c - clocks that jump, run fast or run slow, and a name lookup that does not return. */
#include "tests/fault/fault.h"

#include "tests/support/fds.h"
#include "tests/support/takers.h"

#include <dlfcn.h>
#include <holdfast/redis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A suspended machine: CLOCK_BOOTTIME is 2 leases ahead from one call to the next. */
static void suspend(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    hf_client *client = hft_open(hft_server_url(server), NULL);
    int64_t worst = 0;
    for (int round = 0; round < run->times; round++) {
        hf_lease *lease;
        HFT_CHECK(run,
                  hf_lock_acquire(client, "sleeper", HF_LOCK(.lease_ms = 1000, .wait_ms = 5000), &lease,
                                  NULL) == HF_OK,
                  "no lease");
        struct pollfd lost = {hf_lease_event_fd(lease), POLLIN, 0};
        hft_sleep_ms(hft_roll(run, 50));
        atomic_fetch_add(&hft_preload()->offset_ns, 2000 * HFT_NS_PER_MS);
        HFT_CHECK(run, !hf_lease_is_valid(lease), "valid after 2 L of sleep");
        int64_t woken = hft_true_ns();
        HFT_CHECK(run, poll(&lost, 1, 3000) == 1, "LOST was never told");
        int64_t took = hft_true_ns() - woken;
        worst = took > worst ? took : worst;
        HFT_CHECK(run, hf_lease_release(lease, NULL) == HF_LOST, "released after 2 L of sleep");
    }
    HFT_CHECK(run, worst < 1200 * HFT_NS_PER_MS, "LOST was told after %lld ms",
              (long long)worst / HFT_NS_PER_MS);
    hft_note(run, "%d sleeps of 2 L, told after at most %.0f ms", run->times, (double)worst / 1e6);
    (void)hf_client_close(client, NULL);
    hft_server_stop(server);
}

static void wall_clock(struct hft_run *run)
{
    static const int64_t days[] = {1, -1, 365, -365};
    struct hft_server *server = hft_server_start(NULL);
    hf_client *client = hft_open(hft_server_url(server), NULL);
    hf_lease *lease;
    HFT_CHECK(run, hf_lock_acquire(client, "wall", HF_LOCK(.lease_ms = 500), &lease, NULL) == HF_OK,
              "no lease");
    for (int round = 0; round < run->times; round++) {
        atomic_store(&hft_preload()->wall_offset_ns, days[round % 4] * 86400 * 1000 * HFT_NS_PER_MS);
        hft_await_renewals(3, &lease, 1);
        HFT_CHECK(run, hf_lease_is_valid(lease) && hf_lease_state(lease) == HF_LEASE_HELD,
                  "the wall clock matters");
    }
    HFT_CHECK(run, hf_lease_release(lease, NULL) == HF_OK, "the wall clock matters");
    hft_note(run, "%d steps", run->times);
    (void)hf_client_close(client, NULL);
    hft_server_stop(server);
}

/* A holder that is cut off and whose clock is slow by the whole bound: its validity ends before its key does. */
static void slow_clock(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    for (int round = 0; round < run->times; round++) {
        struct hft_proxy *proxy = hft_proxy_start(server);
        atomic_store(&hft_preload()->since_ns, hft_true_ns());
        atomic_store(&hft_preload()->rate_ppm, round % 2 == 0 ? -10000 : 10000);
        hf_client *client = hft_open(hft_proxy_url(proxy), HF_CLIENT(.guard_ms = HF_OFF, .close_ms = 1));
        hf_lease *lease;
        HFT_CHECK(run,
                  hf_lock_acquire(client, "slow", HF_LOCK(.lease_ms = 2000, .wait_ms = 5000), &lease, NULL) ==
                      HF_OK,
                  "no lease");
        (void)hft_proxy_freeze_present(proxy, HFT_EVERY_CLASS);
        struct hft_network nobody = {.accept_nobody = true};
        hft_proxy_network(proxy, &nobody);
        bool key = true, valid = true;
        while (valid && key) { /* the key is read first: between the two questions only the validity may end */
            valid = hf_lease_is_valid(lease);
            key = hft_lock_exists(server, "slow") == 1;
            valid = valid && hf_lease_is_valid(lease);
        }
        HFT_CHECK(run, !valid, "valid without a key, clock %s", round % 2 == 0 ? "slow" : "fast");
        HFT_CHECK(run, hf_lease_release(lease, NULL) == HF_LOST, "not LOST");
        (void)hf_client_close(client, NULL);
        atomic_store(&hft_preload()->rate_ppm, 0);
        hft_proxy_stop(proxy);
    }
    hft_note(run, "%d leases on clocks 1 %% off", run->times);
    hft_server_stop(server);
}

static void slow_lookup(struct hft_run *run)
{
    struct hft_server *server = hft_server_start_tcp(NULL);
    char url[64];
    (void)snprintf(url, sizeof url, "redis://server.test:%d", hft_server_port(server));
    int64_t worst = 0;
    hf_client *client = hft_open(url, HF_CLIENT(.connect_ms = 400, .command_ms = 300));
    hf_lease *held;
    HFT_CHECK(
        run, hf_lock_acquire(client, "kept", HF_LOCK(.lease_ms = 800, .wait_ms = 3000), &held, NULL) == HF_OK,
        "no lease");
    atomic_store(&hft_preload()->lookup_delay_ms, 2500);
    for (int round = 0; round < run->times; round++) {
        hf_client *none = NULL;
        int64_t before = hft_true_ns();
        hf_status status = hf_client_open(url, HF_CLIENT(.connect_ms = 400), &none, NULL);
        int64_t took = hft_true_ns() - before;
        worst = took > worst ? took : worst;
        HFT_CHECK(run, status == HF_UNAVAILABLE, "a lookup of 2.5 s within 400 ms: %s",
                  hf_status_name(status));
        if (none != NULL)
            (void)hf_client_close(none, NULL);
        HFT_CHECK(run, hf_lease_is_valid(held), "somebody's lookup cost a lease");
    }
    HFT_CHECK(run, worst < 2000 * HFT_NS_PER_MS, "open took %lld ms", (long long)worst / HFT_NS_PER_MS);
    atomic_store(&hft_preload()->lookup_delay_ms, 0);
    HFT_CHECK(run, hf_lease_release(held, NULL) == HF_OK, "release failed");
    hft_note(run, "%d opens of 400 ms took at most %.0f ms", run->times, (double)worst / 1e6);
    (void)hf_client_close(client, NULL);
    hft_server_stop(server);
}

/* A thread hangs in the lookup and returns to the library's code, which dlclose must not have unmapped. */
static void unload_in_lookup(struct hft_run *run)
{
    const hf_client_options options = {.size = sizeof options, .connect_ms = 100};
    hf_status (*open_client)(const char *, const hf_client_options *, hf_client **, hf_error *);
    int before = hft_running_threads();
    atomic_store(&hft_preload()->lookup_delay_ms, 1500);
    for (int i = 0; i < run->times; i++) {
        hf_client *none;
        void *library = dlopen(HFT_PRODUCT, RTLD_NOW | RTLD_LOCAL);
        void *symbol = library != NULL ? dlsym(library, "hf_client_open") : NULL;
        if (symbol == NULL) {
            hft_broken(run, "%s", dlerror());
            return;
        }
        memcpy(&open_client, &symbol, sizeof open_client);
        HFT_CHECK(run, open_client("redis://server.test", &options, &none, NULL) == HF_UNAVAILABLE, "not unavailable");
        HFT_CHECK(run, hft_running_threads() > before, "the lookup is over already");
        HFT_CHECK(run, dlclose(library) == 0, "dlclose");
    }
    HFT_CHECK(run, hft_comes_down_to(hft_running_threads, before), "a lookup's thread is left");
    atomic_store(&hft_preload()->lookup_delay_ms, 0);
    hft_note(run, "%d times unloaded while a name was looked up", run->times);
}

const struct hft_named hft_clock_faults[] = {
    {"suspend", "after a sleep of the machine a lease is over at the first look, and LOST is told", suspend,
     3, 50, HFT_PRELOADED},
    {"wall-clock", "steps of the wall clock are nothing to a lease", wall_clock, 2, 40, HFT_PRELOADED},
    {"slow-clock", "a clock that errs by the bound still ends the belief before the key", slow_clock, 1, 50,
     HFT_PRELOADED},
    {"slow-lookup", "a name lookup that hangs costs no lease; an open returns at its deadline",
     slow_lookup, 1, 20, HFT_PRELOADED},
    {"unload-in-lookup", "an open that failed over a hanging lookup leaves nothing that dlclose could break",
     unload_in_lookup, 2, 20, HFT_PRELOADED | HFT_UNLOADS},
    {.name = NULL}};
