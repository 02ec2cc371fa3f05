/* SPDX-License-Identifier: MIT */
/* topology_sentinel.c - see topology_sentinel.h. sentinel.c decides; here are the connections. */
#include "pool/topology_sentinel.h"
#include "base/descriptor.h"
#include "base/mutex.h"
#include "pool/lane_private.h"
#include "pool/listener.h"
#include "pool/promotable.h"
#include "pool/sentinel.h"
#include "pool/subscribe.h"
#include "pool/topology_one.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ASK_NS     (1000 * HFI_MS) /* each sentinel is asked this often: a message may be lost */
#define HASTY_NS   (200 * HFI_MS)  /* and so often, where replicas confirm, while it matters who could be promoted */
#define YOUNG_NS   (20000 * HFI_MS) /* so long after a failover sentinels still find out who follows */
#define DESCRIPTORS 2              /* a lane, a subscriber */

static const char channel[] = "+switch-master";

struct sentinel {
    struct by_sentinels *all;
    int index;
    struct hfi_endpoint endpoint;
    struct hfi_topology *topology; /* its own addresses */
    struct hfi_peer peer;
    struct hfi_lane *lane;
    struct hfi_subscribers *subscribers;
    bool is_asked;    /* an answer is owed */
    int64_t asked_ns; /* when it was asked last; 0: never, or it is to be asked now */
    struct hfi_said_replicas *said; /* NULL unless all replicas confirm */
    bool has_said;
};

struct by_sentinels {
    struct hfi_topology topology;
    struct hfi_deployment deployment; /* of the sentinels */
    struct hfi_topology_ops ops;
    const struct hfi_deployment *served; /* of the servers */
    struct hfi_listener *listener;
    char *service;
    struct sentinel list[HFI_HOSTS_MOST];
    int count;

    struct hfi_council council; /* used by the listener only, like the next four */
    struct hfi_promotable promotable;
    int64_t moved_ns;         /* when another primary was named; 0: never */
    enum hfi_verdict verdict;   /* the last one */
    int64_t judge_ns;           /* when to judge again though nobody has said anything */
    _Atomic(bool) doubts;       /* ask all of them now */

    struct hfi_mutex mutex;       /* guards all below */
    struct hfi_topology *primary; /* NULL: none was named yet */
    bool has_failed;              /* all have been heard, and none named one */
    hf_error why;
};
_Static_assert(HFI_HOSTS_MOST <= HFI_SENTINELS_MOST, "the council has room for all");

static struct by_sentinels *all_of(struct hfi_topology *topology)
{
    return (struct by_sentinels *)(void *)topology; /* its first member */
}

/* ---- deciding ---- */

static bool in_background(void *self, void (*run)(void *arg), void *arg)
{
    const struct by_sentinels *all = self;
    return all->ops.in_background(all->ops.self, run, arg);
}

/* The address of a host, the primary's or a sentinel's. */
static void found_address(void *self)
{
    struct by_sentinels *all = self;
    hfi_park_wake(&all->topology.looked);
    all->ops.found(all->ops.self);
}

static void set_primary(struct by_sentinels *all, const struct hfi_named_host *at)
{
    struct hfi_topology *primary = NULL, *before;
    const struct hfi_endpoint endpoint = {.scheme = HFI_TCP, .host = (char *)(uintptr_t)at->host, .port = at->port};
    hf_error why;
    const struct hfi_topology_ops ops = {.in_background = in_background, .found = found_address, .self = all};
    hf_status status = hfi_topology_one_new(&endpoint, all->deployment.clock, &ops, &primary, &why);
    hfi_mutex_lock(&all->mutex);
    before = all->primary;
    if (status == HF_OK)
        all->primary = primary;
    else
        all->why = why;
    all->has_failed = status != HF_OK;
    hfi_mutex_unlock(&all->mutex);
    if (status != HF_OK) {
        all->council.has_decided = false; /* decided again with the next answer */
        return;
    }
    hfi_log(&all->deployment.log, HF_LOG_INFO, "the primary of %s is %s:%d", all->service, at->host, at->port);
    hfi_topology_free(before);
    if (before != NULL)
        all->ops.moved(all->ops.self);
}

static void fail(struct by_sentinels *all, bool no_service)
{
    hf_error why, first; /* the first one's trouble is mostly that of all */
    if (no_service) {
        (void)hfi_fail(&why, HF_INVALID, "see SENTINEL MASTERS for the names that they know",
                       "the %d sentinels know no service %s", all->count, all->service);
    } else {
        hf_status status = hfi_peer_why_down(&all->list[0].peer, &first);
        (void)hfi_fail(&why, status, first.hint, "no sentinel names the primary of %s: %s", all->service, first.message);
    }
    hfi_fail_retry(&why, -1);
    hfi_mutex_lock(&all->mutex);
    all->has_failed = true;
    all->why = why;
    hfi_mutex_unlock(&all->mutex);
}

/* ---- who has to confirm ---- */

static bool all_confirm(const struct by_sentinels *all)
{
    return all->served->settings.replicas == HF_ALL;
}

/* Another primary is named: what was said of replicas was said of the former one's. */
static void forget_replicas(struct by_sentinels *all, const struct hfi_named_host *former, int64_t now_ns)
{
    all->moved_ns = now_ns;
    hfi_promotable_moved(&all->promotable, former);
    for (int i = 0; i < all->count; i++)
        all->list[i].has_said = false;
    all->ops.needed(all->ops.self, &all->promotable.needed);
}

static void judge_replicas(struct by_sentinels *all)
{
    const struct hfi_said_replicas *said[HFI_HOSTS_MOST];
    int known = all->count;
    for (int i = 0; i < all->count; i++) {
        said[i] = all->list[i].has_said ? all->list[i].said : NULL;
        if (all->council.of[i].testimony == HFI_TESTIMONY_NAMED && all->council.of[i].says.sentinels > known)
            known = all->council.of[i].says.sentinels;
    }
    if (hfi_promotable_judge(&all->promotable, said, all->count, known))
        all->ops.needed(all->ops.self, &all->promotable.needed);
}

static void listed_replicas(struct hfi_command *command)
{
    struct sentinel *one = command->self;
    struct by_sentinels *all = one->all;
    const struct hfi_sentinel_says *says = &all->council.of[one->index].says, *decided = &all->council.decided;
    bool is_of_it = all->council.has_decided && all->council.of[one->index].testimony == HFI_TESTIMONY_NAMED &&
                    hfi_sentinel_is_same(&says->primary, &decided->primary);
    if (command->outcome == HFI_ANSWERED && is_of_it)
        one->has_said = hfi_promotable_read(command->reply, one->said);
    else if (one->has_said)
        hfi_promotable_doubt(one->said);
    judge_replicas(all);
}

/* ---- what they say ---- */

static void judge(struct by_sentinels *all, int64_t now_ns)
{
    const struct hfi_named_host former = all->council.decided.primary;
    enum hfi_verdict before = all->verdict, verdict = hfi_council_judge(&all->council, now_ns, &all->judge_ns);
    all->verdict = verdict;
    if (verdict == HFI_VERDICT_MOVE && all_confirm(all))
        forget_replicas(all, &former, now_ns);
    if (verdict == HFI_VERDICT_WAIT || verdict == HFI_VERDICT_KEEP || (verdict == before && verdict != HFI_VERDICT_MOVE))
        return;
    if (verdict == HFI_VERDICT_MOVE)
        set_primary(all, &all->council.decided.primary);
    else
        fail(all, verdict == HFI_VERDICT_NO_SERVICE);
    hfi_park_wake(&all->topology.looked);
    all->ops.found(all->ops.self);
}

/* ---- asking ---- */

static void answered(struct hfi_command *command)
{
    struct sentinel *one = command->self;
    struct by_sentinels *all = one->all;
    struct hfi_sentinel_says says;
    int64_t now_ns = hfi_now(all->deployment.clock);
    enum hfi_sentinel_answer answer = command->outcome == HFI_ANSWERED
                                          ? hfi_sentinel_read_master(command->reply, &says)
                                          : HFI_SENTINEL_MAKES_NO_SENSE;
    one->is_asked = false;
    if (answer == HFI_SENTINEL_SAYS)
        hfi_council_said(&all->council, one->index, &says, now_ns);
    else
        hfi_council_note(&all->council, one->index,
                          answer == HFI_SENTINEL_KNOWS_IT_NOT ? HFI_TESTIMONY_NO_SUCH : HFI_TESTIMONY_SILENT);
    judge(all, now_ns);
}

/* False: no memory. */
static bool list(struct sentinel *one, const char *what, hfi_command_done *done, int64_t now_ns)
{
    struct by_sentinels *all = one->all;
    const char *const words[] = {"SENTINEL", what, all->service};
    struct hfi_command *command = hfi_command_new(3, words, NULL);
    if (command == NULL)
        return false;
    command->done = done;
    command->self = one;
    command->awaited = HFI_AWAITED_PROMPTLY;
    command->optional = true;
    command->until_ns = hfi_after_ms(now_ns, all->deployment.settings.command_ms);
    hfi_lane_list(one->lane, command);
    hfi_command_unref(command);
    return true;
}

static void ask(struct sentinel *one, int64_t now_ns)
{
    one->asked_ns = now_ns; /* without memory too */
    one->is_asked = list(one, "MASTER", answered, now_ns);
    if (one->is_asked && one->said != NULL)
        (void)list(one, "REPLICAS", listed_replicas, now_ns);
    hfi_lane_flush(one->lane);
}

static int64_t pause_ns(const struct by_sentinels *all, int64_t now_ns)
{
    int64_t short_ns = atomic_load(&all->served->short_ns);
    bool matters = (all->moved_ns != 0 && now_ns - all->moved_ns < YOUNG_NS) || (short_ns != 0 && now_ns - short_ns < ASK_NS);
    return all_confirm(all) && matters ? HASTY_NS : ASK_NS;
}

static void on_switch(void *self, const char *name, size_t name_size, const char *message, size_t message_size)
{
    struct by_sentinels *all = self;
    if (name_size != sizeof channel - 1 || memcmp(name, channel, name_size) != 0 ||
        !hfi_sentinel_is_about(message, message_size, all->service))
        return;
    atomic_store(&all->doubts, true); /* the message has no epoch */
    hfi_listener_kick(all->listener);
}

static void maintain(struct hfi_topology *topology, int64_t now_ns, struct hfi_poll_set *set)
{
    struct by_sentinels *all = all_of(topology);
    bool doubts = atomic_exchange(&all->doubts, false);
    int64_t pause = pause_ns(all, now_ns);
    for (int i = 0; i < all->count; i++) {
        struct sentinel *one = &all->list[i];
        if (!one->is_asked && (doubts || one->asked_ns == 0 || now_ns >= one->asked_ns + pause))
            ask(one, now_ns);
        else if (doubts) /* what is on its way may be older than the doubt */
            one->asked_ns = 0;
        hfi_lane_maintain(one->lane, now_ns, set);
        hfi_subscribers_maintain(one->subscribers, now_ns, set);
        if (!one->is_asked)
            hfi_poll_set_again(set, one->asked_ns == 0 ? now_ns : one->asked_ns + pause);
    }
    if (now_ns >= all->judge_ns)
        judge(all, now_ns);
    hfi_poll_set_again(set, all->judge_ns);
}

/* ---- the calls ---- */

static enum hfi_where primary(struct hfi_topology *topology, struct hfi_addresses *addresses, hf_error *error)
{
    struct by_sentinels *all = all_of(topology);
    enum hfi_where where = HFI_LOOKING;
    hfi_mutex_lock(&all->mutex);
    if (all->primary != NULL) {
        where = hfi_topology_primary(all->primary, addresses, error);
    } else if (all->has_failed) {
        where = HFI_NOT_FOUND;
        if (error != NULL)
            *error = all->why;
    }
    hfi_mutex_unlock(&all->mutex);
    return where;
}

static void rate(struct hfi_topology *topology, const struct hfi_address *address, bool good)
{
    struct by_sentinels *all = all_of(topology);
    hfi_mutex_lock(&all->mutex);
    if (all->primary != NULL)
        hfi_topology_rate(all->primary, address, good);
    hfi_mutex_unlock(&all->mutex);
    if (good || atomic_exchange(&all->doubts, true))
        return;
    hfi_listener_kick(all->listener);
}

static void end(struct hfi_topology *topology)
{
    struct by_sentinels *all = all_of(topology);
    for (int i = 0; i < all->count; i++) {
        hfi_lane_half_close(all->list[i].lane);
        hfi_subscribers_end(all->list[i].subscribers);
        hfi_lane_drain(all->list[i].lane, 0); /* they owe us nothing */
    }
}

static void forked(struct hfi_topology *topology)
{
    const struct by_sentinels *all = all_of(topology);
    for (int i = 0; i < all->count; i++) {
        hfi_lane_forked(all->list[i].lane);
        hfi_subscribers_forked(all->list[i].subscribers);
    }
    (void)close(all->deployment.hurry_fd);
}

static void free_all(struct hfi_topology *topology)
{
    struct by_sentinels *all = all_of(topology);
    hfi_topology_free(all->primary);
    for (int i = 0; i < all->count; i++) {
        struct sentinel *one = &all->list[i];
        hfi_lane_free(one->lane);
        hfi_subscribers_free(one->subscribers);
        hfi_topology_free(one->topology);
        free(one->said);
        if (one->peer.deployment != NULL)
            hfi_peer_done(&one->peer);
        hfi_endpoint_done(&one->endpoint);
    }
    hfi_deployment_done(&all->deployment);
    hfi_mutex_destroy(&all->mutex);
    free(all->service);
    free(all);
}

static const struct hfi_topology_kind kind = {
    .free = free_all, .primary = primary, .rate = rate, .maintain = maintain, .end = end, .forked = forked};

/* False: no memory or descriptor. */
static bool add(struct by_sentinels *all, const struct hfi_pool_settings *settings, const struct hfi_host *host)
{
    struct sentinel *one = &all->list[all->count];
    const struct hfi_endpoint endpoint = {
        .scheme = HFI_TCP,
        .tls = settings->endpoint.tls,
        .host = host->name,
        .port = host->port,
        .user = (char *)(uintptr_t)settings->sentinel_user,
        .password = (char *)(uintptr_t)settings->sentinel_password,
    };
    one->all = all;
    one->index = all->count;
    if (!hfi_endpoint_copy(&one->endpoint, &endpoint))
        return false;
    all->count++; /* from here on free_all has it */
    const struct hfi_topology_ops own = {.in_background = in_background, .found = found_address, .self = all};
    if (hfi_topology_one_new(&one->endpoint, all->deployment.clock, &own, &one->topology, NULL) != HF_OK)
        return false;
    hfi_peer_init(&one->peer, &all->deployment, &one->endpoint, one->topology);
    one->peer.is_sentinel = true;
    one->lane = hfi_lane_new(&one->peer, all->listener, HFI_SENTINEL_LANE, one->index);
    one->subscribers = hfi_subscribers_new(&one->peer, all->listener, 1);
    if (one->lane == NULL || one->subscribers == NULL)
        return false;
    if (all_confirm(all) && (one->said = calloc(1, sizeof *one->said)) == NULL)
        return false;
    one->lane->subscribers = one->subscribers;
    one->lane->renewals = one->lane;
    hfi_lane_lock(one->lane);
    hfi_lane_set_state_locked(one->lane, HFI_LANE_DIALING);
    hfi_lane_unlock(one->lane);
    return hfi_subscribers_want(one->subscribers, channel, sizeof channel - 1);
}

int hfi_topology_sentinel_descriptors(const struct hfi_endpoint *endpoint)
{
    return DESCRIPTORS * endpoint->host_count;
}

hf_status hfi_topology_sentinel_new(struct hfi_deployment *deployment, struct hfi_listener *listener,
                                    const struct hfi_pool_settings *settings, const struct hfi_topology_ops *ops,
                                    struct hfi_topology **topology, hf_error *error)
{
    struct by_sentinels *all = calloc(1, sizeof *all);
    *topology = NULL;
    if (all == NULL)
        return hfi_fail(error, HF_NOMEM, NULL, "no memory for a connection pool");
    hfi_topology_init(&all->topology, &kind);
    hfi_mutex_init(&all->mutex, HFI_RANK_MIDDLE); /* the primary's own topology has one below it */
    all->ops = *ops;
    all->served = deployment;
    all->listener = listener;
    all->judge_ns = HFI_NEVER;
    all->deployment.clock = deployment->clock;
    all->deployment.log = deployment->log;
    all->deployment.secure = deployment->secure;
    all->deployment.ops.on_message = on_switch;
    all->deployment.self = all;
    const struct hfi_pool_settings theirs = {
        .client_name = settings->client_name,
        .connect_ms = settings->connect_ms,
        .command_ms = settings->command_ms,
        .lanes = 1,
        .subscribers = 1,
    };
    bool good = hfi_deployment_init(&all->deployment, &theirs);
    all->service = strdup(settings->endpoint.service);
    good = good && all->service != NULL;
    for (int i = 0; good && i < settings->endpoint.host_count; i++)
        good = add(all, settings, &settings->endpoint.hosts[i]);
    all->council.count = all->count;
    if (good) {
        *topology = &all->topology;
        return HF_OK;
    }
    free_all(&all->topology);
    return hfi_fail(error, HF_NOMEM, "raise the limit of open files", "no memory or descriptors for a connection pool");
}
