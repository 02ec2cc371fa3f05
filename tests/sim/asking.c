/* SPDX-License-Identifier: MIT */
/* asking.c - what pool/topology_sentinel.c and pool/sentinel_ask.c do for a virtual pool: asks virtual sentinels, and does what
 * pool/sentinel.c and pool/promotable.c make of their answers. */
#include "pool/promotable.h"
#include "tests/sim/history.h"
#include "tests/sim/pool_inside.h"
#include "tests/sim/sentinels.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#define ASK_NS   (1000 * HFI_MS)
#define HASTY_NS (200 * HFI_MS)
#define YOUNG_NS (20000 * HFI_MS)

struct sim_topology {
    struct hfi_pool *pool;
    struct hfi_council council;
    struct hfi_promotable promotable;
    struct hfi_said_replicas said[SIM_SENTINELS_COUNT];
    bool is_asked[SIM_SENTINELS_COUNT];
    int64_t asked_ns[SIM_SENTINELS_COUNT];
    int64_t question[SIM_SENTINELS_COUNT]; /* the number of the one that counts */
    int64_t cut_until[SIM_SENTINELS_COUNT]; /* true time: the process does not reach that sentinel */
    int64_t moved_ns, judge_ns, short_ns;
    enum hfi_verdict verdict;
    bool has_failed, doubts;
    bool is_busy; /* the listener is at it, though it may have stopped */
    int64_t number; /* of the look that counts */
};

static struct sim_topology *topologies[SIM_PROCESSES]; /* of each process that has one, the newest */

static void look(void *what, int64_t number);

static int64_t now_here(void)
{
    return hfi_now(&hfi_boottime);
}

static void look_at(struct sim_topology *all, int64_t ns)
{
    sim_at(sim_when(all->pool->process, ns), all->pool->process, look, all, ++all->number);
}

static void look_soon(struct sim_topology *all)
{
    sim_at(sim.now, all->pool->process, look, all, ++all->number);
}

/* ---- who has to confirm ---- */

static bool all_confirm(const struct sim_topology *all)
{
    return all->pool->settings.replicas == HF_ALL;
}

static void tell_needed(struct sim_topology *all)
{
    all->pool->needed = all->promotable.needed;
    all->pool->knows_needed = true;
    for (int i = 0; i < all->pool->needed.count; i++)
        sim_say("%s has to confirm, %d of %d", all->pool->needed.list[i].host, i + 1, all->pool->needed.count);
}

static void what_they_say(const struct sim_topology *all, const struct hfi_said_replicas **said)
{
    for (int i = 0; i < SIM_SENTINELS_COUNT; i++)
        said[i] = all->said[i].is_given ? &all->said[i] : NULL;
}

static int known_to(const struct sim_topology *all)
{
    int known = SIM_SENTINELS_COUNT;
    for (int i = 0; i < SIM_SENTINELS_COUNT; i++)
        if (all->council.of[i].testimony == HFI_TESTIMONY_NAMED && all->council.of[i].says.sentinels > known)
            known = all->council.of[i].says.sentinels;
    return known;
}

static void judge_replicas(struct sim_topology *all)
{
    const struct hfi_said_replicas *said[SIM_SENTINELS_COUNT];
    what_they_say(all, said);
    if (hfi_promotable_judge(&all->promotable, said, SIM_SENTINELS_COUNT, known_to(all), now_here()))
        tell_needed(all);
}

static void forget_replicas(struct sim_topology *all, const struct hfi_named_host *former)
{
    const struct hfi_said_replicas *said[SIM_SENTINELS_COUNT];
    what_they_say(all, said);
    all->moved_ns = now_here();
    hfi_promotable_moved(&all->promotable, former, &all->council.decided.primary, said, SIM_SENTINELS_COUNT, known_to(all),
                         all->moved_ns);
    for (int i = 0; i < SIM_SENTINELS_COUNT; i++)
        all->said[i].is_given = false;
    tell_needed(all);
}

static void take_replicas(struct sim_topology *all, int which, const struct redisReply *reply, int64_t asked_ns)
{
    bool has_named = all->council.of[which].testimony == HFI_TESTIMONY_NAMED;
    hfi_promotable_heard(&all->promotable, has_named ? &all->council.of[which].says : NULL, reply, asked_ns,
                         &all->said[which]);
    judge_replicas(all);
}

/* ---- who is the primary ---- */

static void judge(struct sim_topology *all)
{
    const struct hfi_named_host former = all->council.decided.primary;
    bool had = all->council.has_decided;
    enum hfi_verdict verdict = hfi_council_judge(&all->council, now_here(), &all->judge_ns);
    if (verdict == HFI_VERDICT_MOVE && all_confirm(all))
        forget_replicas(all, &former);
    if (verdict == HFI_VERDICT_MOVE) {
        all->has_failed = false;
        sim_say("the primary is %s, epoch %d", all->council.decided.primary.host, (int)all->council.decided.epoch);
        if (had)
            sim_pool_moves(all->pool);
        if (all_confirm(all))
            sim_topology_doubt(all);
    } else if (verdict == HFI_VERDICT_NO_SERVICE || verdict == HFI_VERDICT_NOBODY) {
        all->has_failed = true;
    }
    all->verdict = verdict;
}

static void take_primary(struct sim_topology *all, int which, const struct redisReply *reply)
{
    struct hfi_sentinel_says says;
    all->is_asked[which] = false;
    if (reply != NULL && hfi_sentinel_read_master(reply, &says) == HFI_SENTINEL_SAYS)
        hfi_council_said(&all->council, which, &says, now_here());
    else
        hfi_council_note(&all->council, which, HFI_TESTIMONY_SILENT);
    judge(all);
}

enum hfi_where sim_topology_primary(const struct sim_topology *all, struct sim_server **server)
{
    for (int i = 0; i < SIM_SERVERS && all->council.has_decided; i++)
        if (strcmp(sim_hosts[i].address, all->council.decided.primary.host) == 0)
            *server = sim_hosts[i].server;
    return all->council.has_decided ? HFI_FOUND : all->has_failed ? HFI_NOT_FOUND : HFI_LOOKING;
}

/* ---- asking ---- */

struct question {
    struct sim_topology *all;
    int which;
    int64_t number, asked_ns;
    struct redisReply *primary, *replicas; /* NULL: no answer yet */
    const struct sim_host *named; /* by the sentinel, in truth */
    uint64_t epoch;
};

static void look_whom_it_relies_on(const struct sim_topology *all, int primary, uint64_t epoch)
{
    struct sim_server *server = NULL;
    if (sim_topology_primary(all, &server) == HFI_FOUND)
        sim_watch_hears_of(primary, epoch, server->host->number, all->council.decided.epoch);
}

static void answered(void *what, int64_t number)
{
    struct question *question = what;
    struct sim_topology *all = question->all;
    (void)number;
    if (question->number != all->question[question->which] || all->pool->closing)
        return;
    if (all->is_busy) {
        sim_at(sim.now + HFI_MS / 10, sim.self, answered, question, 0);
        return;
    }
    all->is_busy = true;
    all->question[question->which]++; /* its timeout is void */
    take_primary(all, question->which, question->primary);
    if (question->named != NULL)
        look_whom_it_relies_on(all, question->named->number, question->epoch);
    if (all_confirm(all))
        take_replicas(all, question->which, question->replicas, question->asked_ns);
    all->is_busy = false;
    look_soon(all);
}

static struct redisReply *read_one(struct redisReader *reader)
{
    void *reply = NULL;
    if (redisReaderGetReply(reader, &reply) != REDIS_OK || reply == NULL)
        abort();
    return reply;
}

static void arrived(void *what, int64_t number)
{
    struct question *question = what;
    struct sim_process *process = question->all->pool->process;
    struct hfi_buffer bytes = {0};
    (void)number;
    if (question->all->cut_until[question->which] > sim.now || process->isolated_until > sim.now)
        return;
    sim_sentinel_answers(&sim_sentinels[question->which], &bytes);
    question->named = sim_sentinels[question->which].primary;
    question->epoch = sim_sentinels[question->which].epoch;
    sim_note_bytes(hfi_buffer_data(&bytes), hfi_buffer_size(&bytes));
    redisReader *reader = redisReaderCreate();
    if (redisReaderFeed(reader, hfi_buffer_data(&bytes), hfi_buffer_size(&bytes)) != REDIS_OK)
        abort();
    question->primary = read_one(reader);
    question->replicas = read_one(reader);
    redisReaderFree(reader);
    hfi_buffer_done(&bytes);
    sim_at(sim.now + sim_delay(), process, answered, question, 0);
}

static void ask(struct sim_topology *all, int which)
{
    struct question *question = calloc(1, sizeof *question);
    if (question == NULL)
        abort();
    all->is_asked[which] = true;
    all->asked_ns[which] = now_here();
    *question = (struct question){.all = all, .which = which, .number = ++all->question[which], .asked_ns = all->asked_ns[which]};
    sim_at(sim.now + sim_delay(), NULL, arrived, question, 0);
    struct question *end = calloc(1, sizeof *end);
    if (end == NULL)
        abort();
    *end = *question; /* no answer is one too */
    sim_at(sim_when(all->pool->process, hfi_after_ms(now_here(), all->pool->settings.command_ms)), all->pool->process, answered, end, 0);
}

static int64_t pause_ns(const struct sim_topology *all, int64_t now_ns)
{
    bool matters = (all->moved_ns != 0 && now_ns - all->moved_ns < YOUNG_NS) ||
                   (all->short_ns != 0 && now_ns - all->short_ns < ASK_NS) || all->promotable.leaves_out;
    return all_confirm(all) && matters ? HASTY_NS : ASK_NS;
}

static void look(void *what, int64_t number)
{
    struct sim_topology *all = what;
    if (all->number != number || all->pool->closed)
        return;
    if (all->is_busy) {
        sim_at(sim.now + HFI_MS / 10, sim.self, look, all, number);
        return;
    }
    int64_t now_ns = now_here(), pause = pause_ns(all, now_ns), again_ns = HFI_NEVER;
    bool doubts = all->doubts;
    all->doubts = false;
    for (int i = 0; i < SIM_SENTINELS_COUNT; i++) {
        if (!all->is_asked[i] && (doubts || all->asked_ns[i] == 0 || now_ns >= all->asked_ns[i] + pause))
            ask(all, i);
        else if (doubts) /* what is on its way may be older than the doubt */
            all->asked_ns[i] = 0;
        int64_t due_ns = all->asked_ns[i] == 0 ? now_ns : all->asked_ns[i] + pause;
        if (!all->is_asked[i] && due_ns < again_ns)
            again_ns = due_ns;
    }
    all->is_busy = true;
    if (now_ns >= all->judge_ns)
        judge(all);
    all->is_busy = false;
    again_ns = all->judge_ns < again_ns ? all->judge_ns : again_ns;
    if (again_ns != HFI_NEVER)
        look_at(all, again_ns);
}

void sim_topology_doubt(struct sim_topology *all)
{
    all->doubts = true;
    look_soon(all);
}

void sim_topology_was_short(struct sim_topology *all)
{
    all->short_ns = now_here();
    look_soon(all);
}

/* ---- +switch-master ---- */

static void heard(void *what, int64_t number)
{
    struct sim_topology *all = what;
    (void)number;
    if (!all->pool->closed)
        sim_topology_doubt(all);
}

void sim_topologies_hear(int sentinel)
{
    for (int i = 0; i < SIM_PROCESSES; i++) {
        struct sim_topology *all = topologies[i];
        if (all == NULL)
            continue;
        int64_t late = sim_chance(15) ? sim_between(0, 1500) * HFI_MS : 0;
        bool lost = sim_chance(15) || all->cut_until[sentinel] > sim.now || all->pool->process->isolated_until > sim.now;
        if (!lost)
            sim_at(sim.now + sim_delay() + late, all->pool->process, heard, all, 0);
    }
}

/* ---- begin and end ---- */

void sim_topologies_begin(void)
{
    memset(topologies, 0, sizeof topologies);
}

struct sim_topology *sim_topology_new(struct hfi_pool *pool)
{
    struct sim_topology *all = calloc(1, sizeof *all);
    if (all == NULL)
        abort();
    all->pool = pool;
    all->council.count = SIM_SENTINELS_COUNT;
    all->promotable.needed.until_ns = HFI_NEVER;
    all->judge_ns = HFI_NEVER;
    topologies[pool->process->id - 1] = all;
    look_soon(all);
    return all;
}

/* Somebody does not reach some sentinels, or any, for a while. */
void sim_topologies_cut(void)
{
    struct sim_topology *all = NULL;
    for (int i = 0, count = 0; i < SIM_PROCESSES; i++)
        if (topologies[i] != NULL && sim_between(0, count++) == 0)
            all = topologies[i];
    if (all == NULL)
        return;
    int which = (int)sim_between(1, (1 << SIM_SENTINELS_COUNT) - 1);
    int64_t until = sim.now + sim_between(100, 4000) * HFI_MS;
    for (int i = 0; i < SIM_SENTINELS_COUNT; i++)
        if ((which >> i & 1) != 0)
            all->cut_until[i] = until;
    sim_say("process %d does not reach sentinels %d (bits) for %.0f ms", all->pool->process->id, which, (double)(until - sim.now) / 1e6);
}

void sim_topologies_heal(void)
{
    for (int i = 0; i < SIM_PROCESSES; i++)
        if (topologies[i] != NULL)
            memset(topologies[i]->cut_until, 0, sizeof topologies[i]->cut_until);
}
