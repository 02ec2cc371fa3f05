/* SPDX-License-Identifier: MIT */
/* sentinels.c - see sentinels.h. */
#include "tests/sim/sentinels.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define VOTE_NS (520 * HFI_MS) /* so long a client may count what it was told: pool/promotable.c, and clocks err */

struct sim_sentinel sim_sentinels[SIM_SENTINELS_COUNT];
static int64_t down_after;

static bool sees(const struct sim_sentinel *sentinel)
{
    return sentinel->blind_until <= sim.now;
}

/* INFO, every now and then, and more often from one that is not known yet. */
static void look_at(struct sim_sentinel *sentinel, const struct sim_host *host)
{
    struct sim_view *view = &sentinel->views[host->number - 1];
    if (!sim_host_runs(host) || host->unseen_until > sim.now)
        return;
    view->heard = sim.now;
    if (view->asked > sim.now)
        return;
    view->asked = sim.now + sim_between(100, 400) * HFI_MS;
    view->is_known = true;
    view->says_master = !host->is_replica;
    view->follows = host->is_replica;
}

static void tick(void *what, int64_t number)
{
    struct sim_sentinel *sentinel = what;
    for (int i = 0; i < SIM_SERVERS && sees(sentinel); i++)
        look_at(sentinel, &sim_hosts[i]);
    sim_at(sim.now + sim_between(40, 120) * HFI_MS, NULL, tick, sentinel, number);
}

bool sim_sentinel_calls_down(const struct sim_sentinel *sentinel, const struct sim_host *host)
{
    bool slanders = sentinel->slandered == host && sentinel->slanders_until > sim.now;
    return slanders || sim.now - sentinel->views[host->number - 1].heard > down_after;
}

/* ---- answers ---- */

static void pair(struct hfi_buffer *reply, const char *name, const char *value)
{
    sim_reply_bulk(reply, name, strlen(name));
    sim_reply_bulk(reply, value, strlen(value));
}

static void say_master(const struct sim_sentinel *sentinel, struct hfi_buffer *reply)
{
    const struct sim_view *view = &sentinel->views[sentinel->primary->number - 1];
    char epoch[24], down[24];
    const char *flags = sentinel->leads ? "master,s_down,o_down,failover_in_progress"
                        : sim_sentinel_calls_down(sentinel, sentinel->primary) ? "master,s_down"
                                                                               : "master";
    (void)snprintf(epoch, sizeof epoch, "%" PRIu64, sentinel->epoch + sentinel->leads);
    (void)snprintf(down, sizeof down, "%" PRId64, down_after / HFI_MS);
    sim_reply_number(reply, '*', 14);
    pair(reply, "ip", sentinel->primary->address);
    pair(reply, "port", "6379");
    pair(reply, "role-reported", view->is_known && view->follows ? "slave" : "master");
    pair(reply, "flags", flags);
    pair(reply, "config-epoch", epoch);
    pair(reply, "num-other-sentinels", "2");
    pair(reply, "down-after-milliseconds", down);
}

static void say_replica(const struct sim_sentinel *sentinel, const struct sim_host *host, struct hfi_buffer *reply)
{
    const struct sim_view *view = &sentinel->views[host->number - 1];
    char priority[24];
    (void)snprintf(priority, sizeof priority, "%d", host->priority);
    sim_reply_number(reply, '*', 12);
    pair(reply, "ip", host->address);
    pair(reply, "port", "6379");
    pair(reply, "flags", sim_sentinel_calls_down(sentinel, host) ? "s_down,slave" : "slave");
    pair(reply, "role-reported", view->is_known && view->says_master ? "master" : "slave");
    pair(reply, "master-host", view->is_known && view->follows ? host->master != NULL ? host->master->address : "?" : "?");
    pair(reply, "slave-priority", priority);
}

static bool lists(const struct sim_sentinel *sentinel, const struct sim_host *host)
{
    return host != sentinel->primary && !(sentinel->omitted == host && sentinel->omits_until > sim.now);
}

void sim_sentinel_answers(struct sim_sentinel *sentinel, struct hfi_buffer *reply)
{
    int count = 0;
    say_master(sentinel, reply);
    for (int i = 0; i < SIM_SERVERS; i++)
        count += lists(sentinel, &sim_hosts[i]);
    sim_reply_number(reply, '*', count);
    for (int i = 0; i < SIM_SERVERS; i++) {
        const struct sim_host *host = &sim_hosts[i];
        if (lists(sentinel, host))
            say_replica(sentinel, host, reply);
        if (host != sentinel->primary && (!lists(sentinel, host) || sim_sentinel_calls_down(sentinel, host)))
            sentinel->views[i].said_out = sim.now;
    }
}

int64_t sim_sentinels_left_out(const struct sim_host *host)
{
    int64_t last = 0;
    for (int i = 0; i < SIM_SENTINELS_COUNT; i++)
        for (int j = 0; j < i; j++) {
            int64_t one = sim_sentinels[i].views[host->number - 1].said_out, other = sim_sentinels[j].views[host->number - 1].said_out;
            int64_t earlier = one < other ? one : other, later = one < other ? other : one;
            if (earlier > 0 && later - earlier < VOTE_NS && earlier > last)
                last = earlier;
        }
    return last;
}

bool sim_sentinels_saw_follow(const struct sim_host *host)
{
    bool all = true;
    for (int i = 0; i < SIM_SENTINELS_COUNT; i++) {
        const struct sim_view *view = &sim_sentinels[i].views[host->number - 1];
        all = all && (!sees(&sim_sentinels[i]) || (view->is_known && view->follows));
    }
    return all;
}

/* ---- what they come to believe ---- */

/* The former primary is listed as a replica at once; what it is by its own account is found out later. */
void sim_sentinel_switches(struct sim_sentinel *sentinel, struct sim_host *primary, uint64_t epoch)
{
    struct sim_view *former = &sentinel->views[sentinel->primary->number - 1];
    sentinel->leads = false;
    if (epoch <= sentinel->epoch)
        return;
    sim_say("sentinel %d says +switch-master to server %d, epoch %" PRIu64, (int)(sentinel - sim_sentinels) + 1, primary->number, epoch);
    former->is_known = former->follows = former->says_master = false;
    former->asked = sim.now + sim_between(0, 400) * HFI_MS;
    sentinel->views[primary->number - 1].says_master = true;
    sentinel->views[primary->number - 1].follows = false;
    sentinel->primary = primary;
    sentinel->epoch = epoch;
    sim_topologies_hear((int)(sentinel - sim_sentinels));
}

void sim_sentinels_begin(int64_t down_after_ns)
{
    down_after = down_after_ns;
    for (int i = 0; i < SIM_SENTINELS_COUNT; i++) {
        struct sim_sentinel *sentinel = &sim_sentinels[i];
        *sentinel = (struct sim_sentinel){.epoch = 1, .primary = &sim_hosts[0]};
        for (int host = 0; host < SIM_SERVERS; host++)
            sentinel->views[host] = (struct sim_view){.is_known = true, .says_master = host == 0, .follows = host != 0};
        sim_at(sim.now + sim_between(0, 100) * HFI_MS, NULL, tick, sentinel, 0);
    }
}

void sim_sentinels_heal(void)
{
    for (int i = 0; i < SIM_SENTINELS_COUNT; i++) {
        sim_sentinels[i].blind_until = 0;
        sim_sentinels[i].slandered = sim_sentinels[i].omitted = NULL;
    }
    for (int i = 0; i < SIM_SERVERS; i++)
        sim_hosts[i].unseen_until = 0;
}
