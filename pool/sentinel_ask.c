/* SPDX-License-Identifier: MIT */
/* sentinel_ask.c - asks sentinels for the primary and its replicas, and does what sentinel.c and promotable.c make of the
 * answers. Listener only. */
#include "pool/topology_sentinel_private.h"
#include "pool/command.h"
#include "pool/lane.h"
#include "pool/lane_private.h"
#include "pool/listener.h"
#include "pool/subscribe.h"
#include "pool/topology_one.h"

#include <stdio.h>
#include <string.h>

#define ASK_NS     (1000 * HFI_MS) /* each sentinel is asked this often: a message may be lost */
#define HASTY_NS   (200 * HFI_MS)  /* and so often, where replicas confirm, while it matters who could be promoted */
#define YOUNG_NS   (20000 * HFI_MS) /* so long after a failover sentinels still find out who follows */

static void set_primary(struct by_sentinels *all, const struct hfi_named_host *at)
{
    struct hfi_topology *primary = NULL, *before;
    const struct hfi_endpoint endpoint = {.scheme = HFI_TCP, .host = (char *)(uintptr_t)at->host, .port = at->port};
    hf_error why;
    const struct hfi_topology_ops ops = hfi_by_sentinels_ops(all);
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

static void note_report(struct by_sentinels *all)
{
    const struct hfi_sentinel_says *decided = &all->council.decided;
    struct hfi_topology_report report = {.sentinels = all->count,
                                         .replicas = hfi_by_sentinels_all_confirm(all) ? all->promotable.needed.count : -1,
                                         .epoch = decided->epoch,
                                         .down_after_ms = decided->down_after_ms};
    for (int i = 0; i < all->count; i++)
        report.answering += all->council.of[i].testimony == HFI_TESTIMONY_NAMED;
    if (all->council.has_decided)
        (void)snprintf(report.primary, sizeof report.primary, "%s:%d", decided->primary.host, decided->primary.port);
    hfi_mutex_lock(&all->mutex);
    all->report = report;
    hfi_mutex_unlock(&all->mutex);
}

/* ---- who has to confirm ---- */

static void what_they_say(const struct by_sentinels *all, const struct hfi_said_replicas **said)
{
    for (int i = 0; i < all->count; i++)
        said[i] = all->list[i].has_said ? all->list[i].said : NULL;
}

/* Another primary is named: what was said of replicas was said of the former one's. */
static void forget_replicas(struct by_sentinels *all, const struct hfi_named_host *former, int64_t now_ns)
{
    const struct hfi_said_replicas *said[HFI_HOSTS_MOST];
    what_they_say(all, said);
    all->moved_ns = now_ns;
    hfi_promotable_moved(&all->promotable, former, &all->council.decided.primary, said, all->count, now_ns);
    for (int i = 0; i < all->count; i++)
        all->list[i].has_said = false;
    all->is_untold = !all->ops.needed(all->ops.self, &all->promotable.needed);
}

static void judge_replicas(struct by_sentinels *all, int64_t now_ns)
{
    const struct hfi_said_replicas *said[HFI_HOSTS_MOST];
    int known = all->count;
    what_they_say(all, said);
    for (int i = 0; i < all->count; i++)
        if (all->council.of[i].testimony == HFI_TESTIMONY_NAMED && all->council.of[i].says.sentinels > known)
            known = all->council.of[i].says.sentinels;
    if (hfi_promotable_judge(&all->promotable, said, all->count, known, now_ns) || all->is_untold)
        all->is_untold = !all->ops.needed(all->ops.self, &all->promotable.needed);
}

static void listed_replicas(struct hfi_command *command)
{
    struct sentinel *one = command->self;
    struct by_sentinels *all = one->all;
    const struct hfi_sentinel_says *says = &all->council.of[one->index].says, *decided = &all->council.decided;
    bool is_of_it = all->council.has_decided && all->council.of[one->index].testimony == HFI_TESTIMONY_NAMED &&
                    hfi_sentinel_is_same(&says->primary, &decided->primary);
    bool names_former = all->council.of[one->index].testimony == HFI_TESTIMONY_NAMED &&
                        hfi_sentinel_is_same(&says->primary, &all->promotable.former);
    if (command->outcome == HFI_ANSWERED && (is_of_it || names_former))
        one->has_said = hfi_promotable_read(command->reply, one->said);
    one->said->asked_ns = command->outcome == HFI_ANSWERED && is_of_it ? command->stamp_ns : 0;
    one->said->named_former_ns = command->outcome == HFI_ANSWERED && names_former ? command->stamp_ns : 0;
    judge_replicas(all, hfi_now(all->deployment.clock));
    note_report(all);
}

/* ---- what they say ---- */

static void judge(struct by_sentinels *all, int64_t now_ns)
{
    const struct hfi_named_host former = all->council.decided.primary;
    enum hfi_verdict before = all->verdict, verdict = hfi_council_judge(&all->council, now_ns, &all->judge_ns);
    all->verdict = verdict;
    if (verdict == HFI_VERDICT_MOVE && hfi_by_sentinels_all_confirm(all))
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
    note_report(all);
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
    command->stamp_ns = now_ns;
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
    matters = matters || all->promotable.needed.until_ns != HFI_NEVER; /* somebody is left out, for as long as they say so */
    return hfi_by_sentinels_all_confirm(all) && matters ? HASTY_NS : ASK_NS;
}

void hfi_by_sentinels_doubt(struct by_sentinels *all)
{
    if (!atomic_exchange(&all->doubts, true))
        hfi_listener_kick(all->listener);
}

void hfi_by_sentinels_ask(struct by_sentinels *all, int64_t now_ns, struct hfi_poll_set *set)
{
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
