/* SPDX-License-Identifier: MIT */
/* leases.c - faults between a holder and the server: lost renewals, silence, late releases. */
#include "tests/fault/fault.h"
#include "tests/support/quantile.h"
#include "tests/support/takers.h"

#include "core/protocol/scripts.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static _Atomic(long) losses;

static void count_loss(hf_lease *lease, const hf_event *event, void *arg)
{
    (void)lease;
    (void)arg;
    if (event->kind == HF_EVENT_LOST)
        atomic_fetch_add(&losses, 1);
}

struct swallower {
    _Atomic(long) renewals, swallowed;
    unsigned rng;
};

static void swallow_a_third(const struct hft_request *request, struct hft_judgement *judgement, void *arg)
{
    struct swallower *swallower = arg;
    if (!hft_request_is(request, "EVALSHA", hfi_script_renew->sha1))
        return;
    atomic_fetch_add(&swallower->renewals, 1);
    if (rand_r(&swallower->rng) % 3 != 0)
        return;
    atomic_fetch_add(&swallower->swallowed, 1);
    judgement->sentence = HFT_SILENCE;
}

enum { CROWD_MOST = 160, LEASES = 16 };

static void take_all(struct hft_run *run, hf_client *client, int number, int64_t lease_ms, hf_lease **leases)
{
    for (int i = 0; i < LEASES; i++) {
        char name[48];
        hf_error error;
        (void)snprintf(name, sizeof name, "swallowed:%d:%d", number, i);
        hft_sleep_ms(hft_roll(run, 8) == 0); /* renewals go together, 32 at a time; not all, though */
        hf_status status = hf_lock_acquire(
            client, name, HF_LOCK(.lease_ms = lease_ms, .wait_ms = 10000, .on_event = count_loss), &leases[i],
            &error);
        HFT_CHECK(run, status == HF_OK, "acquire %s: %s: %s", name, hf_status_name(status), error.message);
    }
}

static void swallowed_renewals(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start(server);
    struct swallower swallower = {.rng = run->seed};
    hf_client *clients[CROWD_MOST];
    static hf_lease *leases[CROWD_MOST][LEASES];
    int crowd = run->full ? CROWD_MOST : 4, held = 0, lost = 0;
    int64_t lease_ms = run->full ? 3000 : 2000;
    hft_proxy_judge(proxy, swallow_a_third, &swallower);
    for (int c = 0; c < crowd; c++)
        clients[c] = hft_open(hft_proxy_url(proxy), NULL);
    for (int round = 0; round < run->times; round++) {
        for (int c = 0; c < crowd; c++)
            take_all(run, clients[c], c, lease_ms, leases[c]);
        hft_sleep_ms(3 * lease_ms);
        for (int c = 0; c < crowd; c++)
            for (int i = 0; i < LEASES; i++)
                if (leases[c][i] != NULL) {
                    held++;
                    lost += hf_lease_release(leases[c][i], NULL) == HF_LOST;
                }
    }
    HFT_CHECK(run, lost * 10000 <= held, "%d of %d leases were lost", lost, held);
    HFT_CHECK(run, atomic_load(&swallower.swallowed) > 0, "no renewal was swallowed");
    hft_tally(run, held, -1);
    hft_note(run, "%d leases of %lld ms, %d falsely lost (%ld told), %ld of %ld renewals swallowed", held,
             (long long)lease_ms, lost, atomic_load(&losses), atomic_load(&swallower.swallowed),
             atomic_load(&swallower.renewals));
    for (int c = 0; c < crowd; c++)
        (void)hf_client_close(clients[c], NULL);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

/* Silence without an end of the connection: every holder is notified before the server's key expires. */
static void lost_before_expiry(struct hft_run *run)
{
    enum { COUNT = 64 };
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start(server);
    hf_lease *leases[COUNT];
    int64_t late[COUNT], worst = 0;
    for (int round = 0; round < run->times; round++) {
        hf_client *client = hft_open(hft_proxy_url(proxy), HF_CLIENT(.close_ms = 1));
        int64_t end_ns[COUNT] = {0};
        struct pollfd fds[COUNT];
        int open = COUNT;
        for (int i = 0; i < COUNT; i++) {
            char name[48];
            (void)snprintf(name, sizeof name, "silent:%d:%d", round, i);
            HFT_CHECK(run,
                      hf_lock_acquire(client, name, HF_LOCK(.lease_ms = 300 + hft_roll(run, 400)), &leases[i],
                                      NULL) == HF_OK,
                      "cannot acquire %s", name);
            fds[i] = (struct pollfd){hf_lease_event_fd(leases[i]), POLLIN, 0};
        }
        hft_sleep_ms(hft_roll(run, 300));
        struct hft_network dead = {.to_server = {{.hole = true}, {.hole = true}},
                                   .to_client = {{.hole = true}, {.hole = true}}};
        hft_proxy_network(proxy, &dead);
        for (int64_t until_ns = hft_true_ns() + 3000 * HFT_NS_PER_MS; open > 0 && hft_true_ns() < until_ns; (void)poll(fds, COUNT, 10))
            for (int i = 0; i < COUNT; i++) {
                if (fds[i].fd < 0)
                    continue;
                hft_note_end(leases[i], &end_ns[i]);
                if (fds[i].revents == 0)
                    continue;
                int64_t now = hft_true_ns();
                char name[48];
                (void)snprintf(name, sizeof name, "silent:%d:%d", round, i);
                HFT_CHECK(run, !hf_lease_is_valid(leases[i]), "%s: told LOST, and valid", name);
                late[i] = now - end_ns[i];
                HFT_CHECK(run, hft_lock_exists(server, name) == 1 || late[i] > 250 * HFT_NS_PER_MS,
                          "%s: expired before LOST was told", name);
                fds[i].fd = -1;
                open--;
            }
        HFT_CHECK(run, open == 0, "%d leases were never told", open);
        int64_t last = hft_quantile(late, COUNT, 1);
        worst = last > worst ? last : worst;
        for (int i = 0; i < COUNT; i++)
            HFT_CHECK(run, hf_lease_release(leases[i], NULL) == HF_LOST,
                      "the release of a lost lease is not LOST");
        (void)hf_client_close(client, NULL);
        hft_proxy_network(proxy, NULL);
        hft_proxy_cut(proxy, false);
    }
    HFT_CHECK(run, hft_in_time(worst, 250 * HFT_NS_PER_MS), "LOST came %lld us late",
              (long long)worst / 1000);
    hft_tally(run, (long)run->times * COUNT, worst);
    hft_note(run, "worst_ms is LOST after V");
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

struct unlucky_release {
    unsigned rng;
    _Atomic(int) hits;
};

static void spoil_releases(const struct hft_request *request, struct hft_judgement *judgement, void *arg)
{
    static const enum hft_sentence sentences[] = {HFT_CUT_BEFORE, HFT_CUT_AFTER, HFT_SILENCE};
    struct unlucky_release *unlucky = arg;
    if (!hft_request_is(request, "EVALSHA", hfi_script_release->sha1) || rand_r(&unlucky->rng) % 4 != 0)
        return;
    atomic_fetch_add(&unlucky->hits, 1);
    judgement->sentence = sentences[rand_r(&unlucky->rng) % 3];
}

struct incarnations {
    struct hft_run *run;
    hf_client *client;
    int number, count;
    unsigned rng;
    _Atomic(int) done, unknown;
};

/* Acquires and releases the same name again and again: the repeated release of an earlier token meets the next one. */
static void *incarnate(void *arg)
{
    struct incarnations *me = arg;
    char name[48];
    (void)snprintf(name, sizeof name, "again:%d", me->number);
    for (int i = 0; i < me->count; i++) {
        hf_lease *lease;
        hf_error error;
        hf_status status =
            hf_lock_acquire(me->client, name, HF_LOCK(.lease_ms = 5000, .wait_ms = 10000), &lease, &error);
        HFT_CHECK(me->run, status == HF_OK, "acquire %s: %s: %s", name, hf_status_name(status),
                  error.message);
        if (status != HF_OK)
            continue;
        hft_sleep_ms(rand_r(&me->rng) % 3 == 0 ? 450 : rand_r(&me->rng) % 20);
        status = hf_lease_verify(lease, &error);
        HFT_CHECK(me->run, status != HF_LOST, "%s: a late release has taken the next lease", name);
        status = hf_lease_release(lease, &error);
        atomic_fetch_add(&me->unknown, status == HF_UNKNOWN);
        HFT_CHECK(me->run, status == HF_OK || status == HF_UNKNOWN, "release %s: %s: %s", name,
                  hf_status_name(status), error.message);
        atomic_fetch_add(&me->done, 1);
    }
    return NULL;
}

static void late_release(struct hft_run *run)
{
    enum { NAMES = 16 };
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start(server);
    struct unlucky_release unlucky = {.rng = run->seed};
    struct incarnations all[NAMES] = {0};
    pthread_t threads[NAMES];
    int done = 0, unknown = 0;
    hf_client *client = hft_open(hft_proxy_url(proxy), HF_CLIENT(.command_ms = 100));
    hft_proxy_judge(proxy, spoil_releases, &unlucky);
    for (int i = 0; i < NAMES; i++) {
        all[i] = (struct incarnations){.run = run,
                                       .client = client,
                                       .number = i,
                                       .count = run->times,
                                       .rng = run->seed * 31 + (unsigned)i};
        (void)pthread_create(&threads[i], NULL, incarnate, &all[i]);
    }
    for (int i = 0; i < NAMES; i++) {
        (void)pthread_join(threads[i], NULL);
        done += atomic_load(&all[i].done);
        unknown += atomic_load(&all[i].unknown);
    }
    hft_proxy_judge(proxy, NULL, NULL);
    int64_t left = hft_lock_keys_after(server, 1500); /* what is still owed to the server */
    HFT_CHECK(run, left == 0, "%lld keys are left", (long long)left);
    hft_note(run, "%d leases, %d releases spoiled, %d told UNKNOWN", done, atomic_load(&unlucky.hits),
             unknown);
    (void)hf_client_close(client, NULL);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

/* A expires, B acquires, A releases late. */
static void late_owner(struct hft_run *run)
{
    enum { NAMES = 32 };
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start(server);
    hf_client *b = hft_open(hft_server_url(server), NULL);
    for (int round = 0; round < run->times; round++) {
        hf_client *a = hft_open(hft_proxy_url(proxy), HF_CLIENT(.command_ms = 200, .guard_ms = HF_OFF));
        hf_lease *old[NAMES], *new[NAMES];
        char names[NAMES][48];
        for (int i = 0; i < NAMES; i++) {
            (void)snprintf(names[i], sizeof names[i], "owner:%d", i);
            HFT_CHECK(run,
                      hf_lock_acquire(a, names[i], HF_LOCK(.lease_ms = 200, .wait_ms = 5000), &old[i],
                                      NULL) == HF_OK,
                      "A cannot acquire");
        }
        (void)hft_proxy_freeze_present(proxy, HFT_EVERY_CLASS);
        struct hft_network nobody = {.accept_nobody = true};
        hft_proxy_network(proxy, &nobody);
        for (int i = 0; i < NAMES; i++)
            HFT_CHECK(run,
                      hf_lock_acquire(b, names[i], HF_LOCK(.lease_ms = 2000, .wait_ms = 5000), &new[i],
                                      NULL) == HF_OK,
                      "B cannot acquire");
        for (int i = 0; i < NAMES; i++) {
            HFT_CHECK(run, !hf_lease_is_valid(old[i]), "A and B hold %s", names[i]);
            if (i == NAMES / 2) {
                hft_proxy_network(proxy, NULL);
                hft_proxy_cut(proxy, false);
            }
            hf_status status =
                i % 3 == 0 ? hf_lease_post_release(old[i], NULL) : hf_lease_release(old[i], NULL);
            HFT_CHECK(run, status == HF_LOST, "A's late release is %s", hf_status_name(status));
            hft_sleep_ms(hft_roll(run, 10));
        }
        (void)hf_client_close(a, NULL);
        for (int i = 0; i < NAMES; i++) {
            HFT_CHECK(run, hf_lease_verify(new[i], NULL) == HF_OK, "B has lost %s", names[i]);
            HFT_CHECK(run, hf_lease_release(new[i], NULL) == HF_OK, "B's release of %s failed", names[i]);
        }
    }
    hft_note(run, "%d late releases", run->times * NAMES);
    (void)hf_client_close(b, NULL);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

const struct hft_named hft_lease_faults[] = {
    {"swallowed-renewals", "a third of all renewals lost, and the connection with it: no lease is lost",
     swallowed_renewals, 1, 4, 0},
    {"lost-before-expiry", "the network goes silent: LOST is told before the server lets the key go",
     lost_before_expiry, 2, 20, HFT_MEASURES},
    {"late-release", "the repeated release of a former lease never deletes the next one", late_release, 3,
     100, 0},
    {"late-owner", "a holder that comes back after its end disturbs nobody", late_owner, 2, 40, 0},
    {.name = NULL}};
