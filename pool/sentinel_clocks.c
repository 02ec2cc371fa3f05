/* SPDX-License-Identifier: MIT */
/* sentinel_clocks.c - has the clocks of the primary, and of the replicas that could be promoted, compared: once a minute
 * where they all confirm, else when somebody asks. Listener only. */
#include "pool/listener.h"
#include "pool/times.h"
#include "pool/topology_sentinel_private.h"

static void begin(struct by_sentinels *all, int64_t now_ns)
{
    struct hfi_clocks *clocks = &all->clocks;
    const struct hfi_replicas *replicas = &all->promotable.needed;
    clocks->next = clocks->answered = 0;
    clocks->count = 1 + replicas->count;
    clocks->looks[0].at = all->council.decided.primary;
    for (int i = 0; i < replicas->count; i++)
        clocks->looks[1 + i].at = replicas->list[i];
    all->clocks_ns = hfi_by_sentinels_all_confirm(all) ? now_ns + HFI_CLOCKS_PAUSE_NS : HFI_NEVER;
    atomic_store(&all->wants_clocks, false);
}

static void judge(struct by_sentinels *all)
{
    struct hfi_clocks *clocks = &all->clocks;
    int ahead = 0, behind = 0;
    int64_t apart_ms = hfi_clocks_apart_ns(clocks->looks, clocks->answered, &ahead, &behind) / HFI_MS;
    const struct hfi_named_host *one = &clocks->looks[ahead].at, *other = &clocks->looks[behind].at;
    if (apart_ms > all->served->settings.clocks_ms)
        hfi_log(&all->deployment.log, HF_LOG_WARNING, HFI_CLOCKS_APART, one->host, one->port, apart_ms, other->host, other->port);
    all->clocks_said = (struct hfi_clock_report){.round = all->clocks_said.round + 1,
                                                 .servers = clocks->count,
                                                 .answered = clocks->answered,
                                                 .apart_ms = apart_ms,
                                                 .ahead = *one,
                                                 .behind = *other};
    clocks->count = 0;
    hfi_by_sentinels_report(all);
}

void hfi_by_sentinels_watch_clocks(struct by_sentinels *all, int64_t now_ns, struct hfi_poll_set *set)
{
    const struct hfi_topology_ops ops = hfi_by_sentinels_ops(all);
    bool is_wanted = atomic_load(&all->wants_clocks) && all->council.has_decided;
    bool is_due = now_ns >= all->clocks_ns && all->promotable.needed.count > 0;
    if ((is_wanted || is_due) && all->clocks.count == 0)
        begin(all, now_ns);
    if (all->clocks.count > 0 && hfi_clocks_step(&all->clocks, &ops, now_ns, set))
        judge(all);
    hfi_poll_set_again(set, all->clocks_ns > now_ns ? all->clocks_ns : HFI_NEVER); /* what is due waits for who could be promoted */
}
