/* SPDX-License-Identifier: MIT */
/* restarts.c - servers that restart with older data, and the embedded server, which nothing restarts. */
#include "tests/fault/fault.h"

#include "tests/support/passing_server.h"
#include "tests/support/takers.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HALF = 8, NAMES = 2 * HALF };

static hf_lease *take(struct hft_run *run, hf_client *client, const char *kind, int number, int64_t lease_ms)
{
    char name[48];
    hf_lease *lease;
    hf_error error;
    (void)snprintf(name, sizeof name, "%s:%d", kind, number);
    hf_status status =
        hf_lock_acquire(client, name, HF_LOCK(.lease_ms = lease_ms, .wait_ms = 8000), &lease, &error);
    HFT_CHECK(run, status == HF_OK, "acquire %s: %s: %s", name, hf_status_name(status), error.message);
    if (status != HF_OK)
        exit(1);
    return lease;
}

/* Data older than the file come back, newer data are gone; the counter is the file's, and must not be trusted. */
static void rdb_restart(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    hf_client *client = hft_open(hft_server_url(server), NULL);
    int64_t highest[NAMES] = {0}, worst = 0;
    for (int round = 0; round < run->times; round++) {
        hf_lease *leases[NAMES];
        for (int i = 0; i < HALF; i++)
            leases[i] = take(run, client, "rdb", i, 1500);
        hft_server_say(server, "SAVE");
        for (int i = 0; i < 50; i++) /* the counter goes on, far beyond the file's */
            (void)hf_lease_release(take(run, client, "passing", i, 1500), NULL);
        for (int i = HALF; i < NAMES; i++)
            leases[i] = take(run, client, "rdb", i, 1500);
        hft_server_kill(server);
        hft_sleep_ms(hft_roll(run, 300));
        hft_server_restart(server);
        int64_t back = hft_true_ns();
        for (int i = 0; i < NAMES; i++) {
            HFT_CHECK(run, hf_lease_fence(leases[i]) > highest[i], "rdb:%d: a fence fell", i);
            highest[i] = hf_lease_fence(leases[i]);
        }
        for (int i = HALF; i < NAMES; i++) {
            while (hf_lease_is_valid(leases[i]) && hft_true_ns() - back < 3000 * HFT_NS_PER_MS)
                hft_sleep_ms(1);
            int64_t took = hft_true_ns() - back;
            worst = took > worst ? took : worst;
            HFT_CHECK(run, hf_lease_reason(leases[i]) == HF_REASON_GONE,
                      "rdb:%d: lost for another reason: %s", i, hf_reason_text(hf_lease_reason(leases[i])));
            HFT_CHECK(run, hf_lease_release(leases[i], NULL) == HF_LOST, "rdb:%d was not in the file", i);
        }
        hft_sleep_until(back + 1500 * HFT_NS_PER_MS); /* the older ones have to have been renewed since */
        for (int i = 0; i < HALF; i++) {
            HFT_CHECK(run, hf_lease_is_valid(leases[i]), "rdb:%d was in the file and is lost", i);
            HFT_CHECK(run, hf_lease_release(leases[i], NULL) == HF_OK, "rdb:%d: release failed", i);
        }
        for (int i = 0; i < NAMES; i++) {
            hf_lease *next = take(run, client, "rdb", i, 1500);
            HFT_CHECK(run, hf_lease_fence(next) > highest[i], "rdb:%d: %lld after %lld", i,
                      (long long)hf_lease_fence(next), (long long)highest[i]);
            highest[i] = hf_lease_fence(next);
            (void)hf_lease_release(next, NULL);
        }
    }
    HFT_CHECK(run, hft_in_time(worst, 600 * HFT_NS_PER_MS), "GONE came %lld ms after the restart, L/3 is 500",
              (long long)(worst / HFT_NS_PER_MS));
    hft_tally(run, (long)run->times * NAMES, worst);
    hft_note(run, "worst_ms is from the restart to GONE");
    (void)hf_client_close(client, NULL);
    hft_server_stop(server);
}

/* ---- the private server ---- */

static pid_t private_server(const char *name)
{
    char path[160], info[8192];
    (void)snprintf(path, sizeof path, "%s/holdfast-%s/redis.sock", getenv("XDG_RUNTIME_DIR"), name);
    const char *at = hft_passing_ask(path, info, sizeof info, "INFO server") ? strstr(info, "process_id:") : NULL;
    return at != NULL ? (pid_t)strtoll(at + 11, NULL, 10) : 0;
}

/* Removes the lock files of an embedded server. They stay for the next client of that name; here there is none. */
static void tidy_private(const char *name)
{
    static const char *const files[] = {"members", "server.log", "redis.sock", ""};
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[160];
        (void)snprintf(path, sizeof path, "%s/holdfast-%s/%s", runtime, name, files[i]);
        (void)(files[i][0] != 0 ? unlink(path) : rmdir(path));
    }
    (void)rmdir(runtime);
}

static void check_silence(struct hft_run *run, hf_client *client, hf_lease *lease, const char *when)
{
    hf_lease *none;
    int64_t before = hft_true_ns();
    hf_status status = hf_lock_acquire(client, "other", HF_LOCK(.wait_ms = 200), &none, NULL);
    int64_t took = hft_true_ns() - before;
    HFT_CHECK(run, status == HF_UNAVAILABLE || status == HF_TIMEOUT, "acquire while it is %s: %s", when,
              hf_status_name(status));
    HFT_CHECK(run, hft_in_time(took, 450 * HFT_NS_PER_MS), "it took %lld ms while it was %s",
              (long long)(took / HFT_NS_PER_MS), when);
    hft_sleep_until(before + 900 * HFT_NS_PER_MS);
    HFT_CHECK(run, !hf_lease_is_valid(lease), "a lease of 800 ms is valid after 900 ms %s", when);
    HFT_CHECK(run, hf_lease_release(lease, NULL) == HF_LOST, "its release is not LOST");
}

static int64_t take_again(struct hft_run *run, hf_client *client, int64_t fence)
{
    hf_lease *lease = take(run, client, "own", 0, 800);
    int64_t now = hf_lease_fence(lease);
    HFT_CHECK(run, now > fence, "a fence fell from %lld to %lld", (long long)fence, (long long)now);
    (void)hf_lease_release(lease, NULL);
    return now;
}

static void embedded(struct hft_run *run)
{
    char name[32], url[64], runtime[] = "/tmp/holdfast-test-XXXXXX";
    if (mkdtemp(runtime) == NULL || setenv("XDG_RUNTIME_DIR", runtime, 1) != 0) {
        hft_broken(run, "no folder for a private server");
        return;
    }
    (void)snprintf(name, sizeof name, "fault-%d", (int)getpid());
    (void)snprintf(url, sizeof url, "embedded:%s", name);
    for (int round = 0; round < run->times; round++) {
        hf_client *client = hft_open(url, HF_CLIENT(.command_ms = 200)), *second;
        pid_t pid = private_server(name);
        if (pid <= 1) {
            hft_broken(run, "no private server");
            return;
        }
        hf_lease *lease = take(run, client, "own", 0, 800);
        int64_t fence = hf_lease_fence(lease);
        (void)kill(pid, SIGSTOP);
        check_silence(run, client, lease, "frozen");
        (void)kill(pid, SIGCONT);
        (void)take_again(run, client, fence);
        lease = take(run, client, "own", 0, 800);
        fence = hf_lease_fence(lease);
        (void)kill(pid, SIGKILL);
        check_silence(run, client, lease, "dead");
        second = hft_open(url, NULL); /* whoever comes next starts another one, for all */
        pid_t next = private_server(name);
        HFT_CHECK(run, next > 1 && next != pid, "no other private server");
        fence = take_again(run, second, fence);
        (void)take_again(run, client, fence);
        hf_status closed = hf_client_close(client, NULL); /* of what the dead server did not answer it may not know */
        HFT_CHECK(run, closed == HF_OK || closed == HF_UNKNOWN, "close");
        HFT_CHECK(run, private_server(name) == next, "the server ended with a client that was not the last");
        HFT_CHECK(run, hf_client_close(second, NULL) == HF_OK, "the last close");
        HFT_UNTIL_TRUE(private_server(name) == 0); /* it ends with its last client */
    }
    tidy_private(name);
    hft_note(run, "%d times frozen and killed", run->times);
}

const struct hft_named hft_restart_faults[] = {
    {"rdb-restart",
     "a server that comes back with an old file: older leases live, newer are GONE, fences rise", rdb_restart,
     1, 40, HFT_MEASURES},
    {"embedded",
     "the private server frozen or killed: leases end in time, and the next client brings another", embedded,
     1, 20, HFT_MEASURES},
    {.name = NULL}};
