/* SPDX-License-Identifier: MIT */
/* sentinel_ask.c - asks sentinels for the primary and its replicas, and does what sentinel.c and promotable.c make of the
 * answers. Listener only. */
#include "pool/topology_sentinel_private.h"
#include "pool/command.h"
#include "pool/lane.h"
#include "pool/lane_private.h"
#include "pool/listener.h"
#include "pool/replies.h"
#include "pool/subscribe.h"
#include "pool/times.h"
#include "pool/topology_one.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

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
    if (hfi_by_sentinels_all_confirm(all))
        hfi_by_sentinels_doubt(all); /* nothing is confirmed until they have said who follows that one */
}

/* It does not let us ask for that: *why is what it says. */
static bool refuses(const struct sentinel *one, const struct hfi_command *command, const char *what, hf_error *why)
{
    char did_what[192];
    if (command->outcome != HFI_ANSWERED || command->reply->type != REDIS_REPLY_ERROR)
        return false;
    (void)snprintf(did_what, sizeof did_what, "%s refuses sentinel|%s", one->peer.name, what);
    if (hfi_reply_fail(command->reply, did_what, one->peer.name, why) == HF_DENIED)
        (void)snprintf(why->hint, sizeof why->hint, "ACL SETUSER <user> +sentinel|%s, at each sentinel", what);
    return true;
}

static void fail(struct by_sentinels *all, bool no_service)
{
    hf_error why, first; /* the first one's trouble is mostly that of all */
    int i = 0;
    if (no_service) {
        (void)hfi_fail(&why, HF_INVALID, "see SENTINEL MASTERS for the names that they know",
                       "the %d sentinels know no service %s", all->count, all->service);
    } else {
        while (i < all->count - 1 && all->council.of[i].testimony != HFI_TESTIMONY_SILENT)
            i++;
        hf_status status = hfi_peer_why_down(&all->list[i].peer, &first);
        (void)hfi_fail(&why, status, first.hint, "no sentinel names the primary of %s: %s", all->service, first.message);
    }
    hfi_fail_retry(&why, -1);
    hfi_mutex_lock(&all->mutex);
    all->has_failed = true;
    all->why = why;
    hfi_mutex_unlock(&all->mutex);
}

void hfi_by_sentinels_report(struct by_sentinels *all)
{
    const struct hfi_sentinel_says *decided = &all->council.decided;
    bool all_confirm = hfi_by_sentinels_all_confirm(all);
    struct hfi_topology_report report = {.replicas = all_confirm ? all->promotable.needed.count : -1,
                                         .knows_replicas = !all_confirm || all->promotable.is_known,
                                         .epoch = decided->epoch,
                                         .down_after_ms = decided->down_after_ms};
    for (int i = 0; i < all->count; i++) {
        bool counts = hfi_council_counts(&all->council, i);
        report.sentinels += counts;
        report.answering += counts && all->council.of[i].testimony == HFI_TESTIMONY_NAMED;
    }
    int known = hfi_council_known(&all->council);
    report.sentinels = known > report.sentinels ? known : report.sentinels;
    if (all->council.has_decided)
        report.primary = decided->primary;
    report.clocks = all->clocks_said;
    hfi_mutex_lock(&all->mutex);
    all->report = report;
    hfi_mutex_unlock(&all->mutex);
    hfi_park_wake(&all->topology.looked);
}

/* ---- who has to confirm ---- */

static void tell_needed(struct by_sentinels *all)
{
    all->is_untold = hfi_by_sentinels_all_confirm(all) && !all->ops.needed(all->ops.self, &all->promotable.needed);
}

/* Of those that count and have a vote; returns how many have said something. */
static int what_they_say(const struct by_sentinels *all, const struct hfi_said_replicas **said)
{
    const struct hfi_council *council = &all->council;
    int count = 0;
    for (int i = 0; i < all->count; i++) {
        bool may_vote = !council->of[i].is_found || council->of[i].id[0] != 0;
        if (may_vote && all->list[i].said->is_given && hfi_council_counts(council, i))
            said[count++] = all->list[i].said;
    }
    return count;
}

/* Another primary is named: what was said of replicas was said of the former one's. */
static void forget_replicas(struct by_sentinels *all, const struct hfi_named_host *former, int64_t now_ns)
{
    const struct hfi_said_replicas *said[HFI_SENTINELS_MOST];
    int count = what_they_say(all, said), known = hfi_council_known(&all->council);
    all->moved_ns = now_ns;
    hfi_promotable_moved(&all->promotable, former, &all->council.decided.primary, said, count, known, now_ns);
    for (int i = 0; i < all->count; i++)
        all->list[i].said->is_given = false;
    tell_needed(all);
}

static void judge_replicas(struct by_sentinels *all, int64_t now_ns)
{
    const struct hfi_said_replicas *said[HFI_SENTINELS_MOST];
    int count = what_they_say(all, said), known = hfi_council_known(&all->council);
    if (hfi_promotable_judge(&all->promotable, said, count, known, now_ns) || all->is_untold)
        tell_needed(all);
}

/* Once: else each second. */
static void warn_of_refusal(struct sentinel *one, const struct hfi_command *command)
{
    struct by_sentinels *all = one->all;
    hf_error why;
    bool is_refused = refuses(one, command, "replicas", &why);
    if (is_refused && !one->is_refused)
        hfi_log(&all->deployment.log, HF_LOG_WARNING, "%s; with replicas=all nothing is granted unless most sentinels list them",
                why.message);
    one->is_refused = is_refused;
}

static void listed_replicas(struct hfi_command *command)
{
    struct sentinel *one = command->self;
    struct by_sentinels *all = one->all;
    bool has_answered = command->outcome == HFI_ANSWERED, has_named = all->council.of[one->index].testimony == HFI_TESTIMONY_NAMED;
    if (has_answered && has_named && hfi_by_sentinels_all_confirm(all))
        warn_of_refusal(one, command);
    hfi_promotable_heard(&all->promotable, has_named ? &all->council.of[one->index].says : NULL, has_answered ? command->reply : NULL,
                         command->stamp_ns, one->said);
    judge_replicas(all, hfi_now(all->deployment.clock));
    hfi_by_sentinels_report(all);
}

/* ---- who else is there ---- */

/* One that is refused is not asked again: then its address alone says who it is. */
static void told_id(struct hfi_command *command)
{
    struct sentinel *one = command->self;
    one->has_told = command->outcome == HFI_ANSWERED;
    if (one->has_told && command->reply->type == REDIS_REPLY_STRING)
        (void)snprintf(one->all->council.of[one->index].id, sizeof one->all->council.of[0].id, "%s", command->reply->str);
}

/* At this address, or the same one at another: what they announce need not be what the URI names. */
static int find(const struct by_sentinels *all, const struct hfi_other_sentinel *other)
{
    int i = all->count - 1;
    while (i >= 0 && (all->list[i].endpoint.port != other->at.port || strcmp(all->list[i].endpoint.host, other->at.host) != 0) &&
           (other->id[0] == 0 || strcmp(all->council.of[i].id, other->id) != 0 || all->council.of[i].testimony != HFI_TESTIMONY_NAMED))
        i--;
    return i;
}

static void listed_others(struct hfi_command *command)
{
    struct sentinel *one = command->self;
    struct by_sentinels *all = one->all;
    struct hfi_other_sentinel others[HFI_SENTINELS_MOST];
    bool counts = command->outcome == HFI_ANSWERED && all->council.of[one->index].testimony == HFI_TESTIMONY_NAMED;
    int count = counts ? hfi_sentinel_read_others(command->reply, others, HFI_SENTINELS_MOST) : -1;
    uint32_t lists = 0;
    for (int i = 0; i < count; i++) {
        int at = find(all, &others[i]);
        lists |= at >= 0 ? UINT32_C(1) << at : 0;
    }
    if (count >= 0)
        all->council.of[one->index].lists = lists; /* before others are given the places of those that nobody lists */
    for (int i = 0; i < count; i++) {
        int at = find(all, &others[i]);
        if (at < 0 && (at = hfi_by_sentinels_add(all, others[i].at.host, others[i].at.port)) >= 0)
            all->council.of[at].is_found = true;
        if (at >= 0)
            all->council.of[one->index].lists |= UINT32_C(1) << at;
    }
    hfi_by_sentinels_report(all);
}

/* ---- what they say ---- */

/* The report is told before anybody is: who is woken by what was decided reads what it was decided by. */
static void judge(struct by_sentinels *all, int64_t now_ns)
{
    const struct hfi_named_host former = all->council.decided.primary;
    enum hfi_verdict before = all->verdict, verdict = hfi_council_judge(&all->council, now_ns, &all->judge_ns);
    all->verdict = verdict;
    if (verdict == HFI_VERDICT_MOVE)
        forget_replicas(all, &former, now_ns);
    if (verdict == HFI_VERDICT_NO_SERVICE || verdict == HFI_VERDICT_NOBODY)
        fail(all, verdict == HFI_VERDICT_NO_SERVICE); /* it may be for another reason than before */
    bool is_news = verdict == HFI_VERDICT_MOVE || (verdict != before && verdict != HFI_VERDICT_WAIT && verdict != HFI_VERDICT_KEEP);
    if (verdict == HFI_VERDICT_MOVE)
        set_primary(all, &all->council.decided.primary);
    hfi_by_sentinels_report(all);
    if (is_news)
        all->ops.found(all->ops.self);
}

/* ---- asking ---- */

/* False: no memory. */
static bool list(struct sentinel *one, const char *what, hfi_command_done *done, int64_t now_ns)
{
    struct by_sentinels *all = one->all;
    const char *const words[] = {"SENTINEL", what, all->service};
    struct hfi_command *command = hfi_command_new(done == told_id ? 2 : 3, words, NULL);
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

static void answered(struct hfi_command *command)
{
    struct sentinel *one = command->self;
    struct by_sentinels *all = one->all;
    struct hfi_sentinel_says says;
    int64_t now_ns = hfi_now(all->deployment.clock);
    enum hfi_sentinel_answer answer = command->outcome == HFI_ANSWERED
                                          ? hfi_sentinel_read_master(command->reply, &says)
                                          : HFI_SENTINEL_MAKES_NO_SENSE;
    hf_error why;
    one->is_asked = false;
    if (answer == HFI_SENTINEL_MAKES_NO_SENSE && refuses(one, command, "master", &why))
        hfi_peer_note_failure(&one->peer, &why);
    if (answer == HFI_SENTINEL_SAYS)
        hfi_council_said(&all->council, one->index, &says, now_ns);
    else
        hfi_council_note(&all->council, one->index,
                          answer == HFI_SENTINEL_KNOWS_IT_NOT ? HFI_TESTIMONY_NO_SUCH : HFI_TESTIMONY_SILENT);
    bool is_old = one->listed_ns == 0 || now_ns - one->listed_ns > HFI_IDLE_NS; /* it may have moved, and be as many */
    if (answer == HFI_SENTINEL_SAYS && (says.sentinels != one->listed || is_old) && list(one, "SENTINELS", listed_others, now_ns)) {
        one->listed = says.sentinels;
        one->listed_ns = now_ns;
    }
    one->has_told = one->has_told && answer == HFI_SENTINEL_SAYS; /* another one may come back at this address */
    hfi_lane_flush(one->lane);
    judge(all, now_ns);
}

static void ask(struct sentinel *one, int64_t now_ns)
{
    one->asked_ns = now_ns; /* without memory too */
    if (!one->has_told)
        (void)list(one, "MYID", told_id, now_ns); /* in front: by its answer it is known whose the others are */
    one->is_asked = list(one, "MASTER", answered, now_ns);
    if (one->is_asked)
        (void)list(one, "REPLICAS", listed_replicas, now_ns);
    hfi_lane_flush(one->lane);
}

static int64_t pause_ns(const struct by_sentinels *all, int64_t now_ns)
{
    int64_t short_ns = atomic_load(&all->served->short_ns);
    bool matters = (all->moved_ns != 0 && now_ns - all->moved_ns < HFI_YOUNG_NS) || (short_ns != 0 && now_ns - short_ns < HFI_ASK_NS);
    matters = matters || all->promotable.leaves_out;
    if (hfi_by_sentinels_all_confirm(all))
        return matters ? HFI_HASTY_NS : HFI_ASK_NS;
    const struct hfi_pool_ops *ops = &all->served->ops;
    bool is_idle = all->council.has_decided && !atomic_load(&all->wants_clocks) && ops->is_idle != NULL && ops->is_idle(all->served->self);
    return is_idle ? HFI_IDLE_NS : HFI_ASK_NS;
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
    hfi_poll_set_again(set, now_ns + HFI_ASK_NS); /* it may not be idle any more */
}
