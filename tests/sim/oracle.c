/* SPDX-License-Identifier: MIT */
/* oracle.c - see oracle.h. */
#include "tests/sim/oracle.h"
#include "core/policy/fence.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ASK_NS   INT64_C(100000000) /* ten questions a second, and four for a call, */
#define ASK_MOST 20                 /* of which so many may come in a row */

static void violated(struct sim_oracle *oracle, const char *promise, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void violated(struct sim_oracle *oracle, const char *promise, const char *format, ...)
{
    char text[300];
    int size = snprintf(text, sizeof text, "[%s] ", promise);
    va_list values;
    va_start(values, format);
    (void)vsnprintf(text + size, sizeof text - (size_t)size, format, values);
    va_end(values);
    oracle->violated(text);
}

void sim_oracle_begin(struct sim_oracle *oracle, void (*report)(const char *what))
{
    memset(oracle, 0, sizeof *oracle);
    oracle->violated = report;
    for (int i = 0; i < SIM_NAMES_MOST; i++)
        oracle->gap_since[i] = oracle->forgotten[i] = oracle->broken[i] = -1;
}

/* True: one of the two grants was given before the server lost its data and the other after it. */
static bool is_divided(const struct sim_oracle *oracle, int64_t one, int64_t other)
{
    bool between = false;
    for (int i = 0; i < oracle->data_lost_count; i++)
        between = between || (one <= oracle->data_lost[i]) != (other <= oracle->data_lost[i]);
    return between;
}

/* The server that the holder relies on: where it is not certain, or another one, the two need not know of each other. */
static bool ask_one_server(const struct sim_grant *one, const struct sim_grant *other)
{
    int least = one->heard > one->reign ? one->heard : one->reign, most = one->moved > least ? one->moved : least;
    int others = other->heard > other->reign ? other->heard : other->reign;
    return least == most && others == least && other->moved <= others;
}

static bool is_excused(const struct sim_oracle *oracle, const struct sim_grant *one, const struct sim_grant *other)
{
    bool know = oracle->lossless || ask_one_server(one, other);
    return one->name >= oracle->strict && (!know || is_divided(oracle, one->at_server, other->at_server));
}

static void check_alone(struct sim_oracle *oracle, const struct sim_grant *new)
{
    int name = new->name;
    int beside = 0;
    if (new->void_now)
        return; /* heard late of a load that is thrown away already */
    for (int i = 0; i < oracle->grant_count; i++) {
        const struct sim_grant *other = &oracle->grants[i];
        if (other->name != name || !other->valid || other->void_now || (new->shared && other->shared) || ++beside < oracle->room[name])
            continue;
        if (is_excused(oracle, other, new))
            oracle->overlaps_excused++;
        else
            violated(oracle, "one-holder",
                     "two holders of name %d: fence %" PRId64 " is valid, and %" PRId64 " is granted", name,
                     other->fence, new->fence);
    }
}

/* Servers that are primaries at a time count in their own ways: their grants are in order if they are far apart. Those of one
 * are always, but may be told of later: their holder has moved on to another one. */
static bool is_in_order(const struct sim_oracle *oracle, const struct sim_grant *one, const struct sim_grant *other)
{
    int64_t after = one->at_server - other->at_server, apart = one->reign != other->reign ? oracle->apart : 0;
    return (after <= apart || one->fence > other->fence) && (after >= -apart || one->fence < other->fence);
}

/* After a loss of data the older of two holders may still pass its lease on inside its process: that grant is older,
 * though it comes later. A load that was thrown away may also be told of after the next one. */
static void check_fence(struct sim_oracle *oracle, const struct sim_grant *new)
{
    int name = new->name;
    for (int i = oracle->grant_count; i-- > 0;) {
        const struct sim_grant *other = &oracle->grants[i];
        if (other->name != name || (new->shared && other->shared))
            continue;
        bool by_time = oracle->by_several && !oracle->lossless && name >= oracle->strict;
        bool divided = name >= oracle->strict && is_divided(oracle, other->at_server, new->at_server);
        bool older = new->at_server <= other->at_server && (divided || new->void_now);
        bool is_out_of_order = oracle->room[name] > 1 ? new->fence == other->fence : new->fence <= other->fence;
        if (by_time ? !is_in_order(oracle, new, other) : is_out_of_order && !older)
            violated(oracle, "fences-rise", "name %d: fence %" PRId64 " comes after %" PRId64, name, new->fence,
                     other->fence);
    }
    if (new->fence < INT64_C(1000000000000000000))
        violated(oracle, "fences-rise", "name %d: fence %" PRId64 " has not 19 digits", name, new->fence);
}

/* When and by whom the block of fences was given that a local pass takes its fence from. The block may come from an
 * earlier grant of the same token: after a loss of data a hand-off can give the key to a token once more. */
static void date_by_block(const struct sim_oracle *oracle, struct sim_grant *new)
{
    for (int i = 0; i < oracle->grant_count && !oracle->by_several; i++)
        if (oracle->grants[i].name == new->name && oracle->grants[i].fence / HFI_FENCE_BLOCK == new->fence / HFI_FENCE_BLOCK) {
            new->at_server = oracle->grants[i].at_server;
            new->reign = oracle->grants[i].reign;
            return;
        }
}

int sim_oracle_granted_in(struct sim_oracle *oracle, int name, int64_t fence, int64_t at_server, bool shared, int reign, int moved,
                          int heard)
{
    struct sim_grant new = {.name = name, .fence = fence, .at_server = at_server, .reign = reign, .moved = moved, .heard = heard,
                            .shared = shared, .valid = true};
    date_by_block(oracle, &new);
    new.void_now = new.at_server <= oracle->forgotten[name];
    check_alone(oracle, &new);
    check_fence(oracle, &new);
    oracle->gap_since[name] = -1;
    if (oracle->grant_count == SIM_GRANTS_MOST) {
        violated(oracle, "books", "the history is longer than its oracle's books");
        return 0;
    }
    oracle->grants[oracle->grant_count] = new;
    return oracle->grant_count++;
}

int sim_oracle_granted(struct sim_oracle *oracle, int name, int64_t fence, int64_t at_server)
{
    return sim_oracle_granted_in(oracle, name, fence, at_server, false, 0, 0, 0);
}

int sim_oracle_granted_shared(struct sim_oracle *oracle, int name, int64_t fence, int64_t at_server)
{
    return sim_oracle_granted_in(oracle, name, fence, at_server, true, 0, 0, 0);
}

void sim_oracle_taken_over(struct sim_oracle *oracle)
{
    oracle->reign++;
}

void sim_oracle_moves(struct sim_oracle *oracle, int grant, int reign)
{
    struct sim_grant *one = &oracle->grants[grant];
    one->moved = reign > one->moved ? reign : one->moved;
}

/* From now on it has no excuse towards what that server has given, or others have met it with. */
void sim_oracle_heard(struct sim_oracle *oracle, int grant, int reign)
{
    struct sim_grant *one = &oracle->grants[grant];
    one->heard = reign > one->heard ? reign : one->heard;
    for (int i = 0; i < oracle->grant_count && one->valid; i++) {
        const struct sim_grant *other = &oracle->grants[i];
        if (other != one && other->valid && other->name == one->name && !other->void_now && !one->void_now &&
            !(one->shared && other->shared) && !is_excused(oracle, one, other))
            violated(oracle, "overlap-ends", "fence %" PRId64 " is valid beside %" PRId64 ", though its holder has met that server",
                     one->fence, other->fence);
    }
}

void sim_oracle_heard_of(struct sim_oracle *oracle, int primary, uint64_t epoch, int relies_on, uint64_t by_epoch)
{
    if (epoch >= by_epoch && primary != relies_on)
        violated(oracle, "leaves-at-once", "server %d is the primary by epoch %" PRIu64 ", and somebody who has heard so stays with %d",
                 primary, epoch, relies_on);
}

void sim_oracle_downgraded(struct sim_oracle *oracle, int grant)
{
    oracle->grants[grant].shared = true;
}

void sim_oracle_looked(struct sim_oracle *oracle, int grant, bool valid)
{
    struct sim_grant *one = &oracle->grants[grant];
    if (valid && !one->valid)
        violated(oracle, "over-is-over", "fence %" PRId64 " was over and is valid again", one->fence);
    one->valid = valid;
}

void sim_oracle_backed(struct sim_oracle *oracle, int grant, bool has_key, int64_t now)
{
    const struct sim_grant *one = &oracle->grants[grant];
    if (has_key || !one->valid || one->void_now)
        return;
    bool knows = oracle->lossless || one->reign == oracle->reign || one->heard >= oracle->reign;
    if (!knows || is_divided(oracle, one->at_server, now + 1) || oracle->broken[one->name] >= one->at_server)
        oracle->overlaps_excused++;
    else
        violated(oracle, "valid-means-key", "fence %" PRId64 " is valid, and its key is not its own",
                 one->fence);
}

void sim_oracle_broken(struct sim_oracle *oracle, int name, int64_t now)
{
    oracle->broken[name] = now;
}

void sim_oracle_releases(struct sim_oracle *oracle, int grant)
{
    oracle->grants[grant].valid = false;
}

void sim_oracle_released(struct sim_oracle *oracle, int grant, bool was_valid, bool ok)
{
    struct sim_grant *one = &oracle->grants[grant];
    if (ok && !was_valid)
        violated(oracle, "release-is-honest", "fence %" PRId64 " was over, and its release says OK",
                 one->fence);
    one->released = true;
}

void sim_oracle_told_lost(struct sim_oracle *oracle, int grant, bool valid_now)
{
    struct sim_grant *one = &oracle->grants[grant];
    oracle->losses++;
    if (one->released)
        violated(oracle, "lost-once", "fence %" PRId64 " is told LOST after its release", one->fence);
    if (++one->losses > 1)
        violated(oracle, "lost-once", "fence %" PRId64 " is told LOST twice", one->fence);
    if (valid_now)
        violated(oracle, "lost-once", "fence %" PRId64 " is told LOST and is valid", one->fence);
}

void sim_oracle_told_other(struct sim_oracle *oracle, int grant)
{
    const struct sim_grant *one = &oracle->grants[grant];
    if (one->released || one->losses > 0)
        violated(oracle, "lost-once", "fence %" PRId64 " hears more after its end", one->fence);
}

void sim_oracle_died(struct sim_oracle *oracle, int grant)
{
    oracle->grants[grant].valid = false;
    oracle->grants[grant].released = true;
}

void sim_oracle_data_lost(struct sim_oracle *oracle, int64_t now)
{
    if (oracle->data_lost_count < SIM_LOSSES_MOST)
        oracle->data_lost[oracle->data_lost_count++] = now;
}

void sim_oracle_broken_now(struct sim_oracle *oracle, int grant, int64_t now)
{
    oracle->grants[grant].void_now = true;
    oracle->broken[oracle->grants[grant].name] = now;
}

bool sim_oracle_is_held(const struct sim_oracle *oracle, int name)
{
    for (int i = oracle->grant_count - 1; i >= 0; i--)
        if (oracle->grants[i].name == name && oracle->grants[i].valid)
            return true;
    return false;
}

void sim_oracle_gap(struct sim_oracle *oracle, int name, const char *row, int64_t since, int64_t now,
                    int64_t most)
{
    if (since < 0) {
        oracle->gap_since[name] = -1;
        return;
    }
    if (oracle->gap_since[name] < 0)
        oracle->gap_since[name] = now;
    int64_t begin = since > oracle->gap_since[name] ? since : oracle->gap_since[name];
    if (now - begin > oracle->longest_gap)
        oracle->longest_gap = now - begin;
    if (now - begin > most)
        violated(oracle, row,
                 "name %d: nobody has it for %.1f ms though somebody waits; %.1f ms are promised", name,
                 (double)(now - begin) / 1e6, (double)most / 1e6);
}

void sim_oracle_unused(struct sim_oracle *oracle, int name, int64_t length, int64_t most)
{
    if (length > most)
        violated(oracle, "nothing-stays", "name %d: its key stays for %.1f ms after the last use; %.1f ms are promised", name,
                 (double)length / 1e6, (double)most / 1e6);
}

void sim_oracle_passed(struct sim_oracle *oracle, int name, int64_t since, int64_t now, int64_t most)
{
    if (now - since > most)
        violated(oracle, "passes-end", "name %d: a process passes it on for %.1f ms while others wait; %.1f ms are promised",
                 name, (double)(now - since) / 1e6, (double)most / 1e6);
}

/* ---- beside other programs ---- */

void sim_oracle_has_room(struct sim_oracle *oracle, int name, int room)
{
    oracle->room[name] = room;
}

void sim_oracle_beside(struct sim_oracle *oracle, int name, int ours, int theirs, int most)
{
    if (ours + theirs > most)
        violated(oracle, "one-holder", "name %d: %d of ours have it and %d of theirs; %d may", name, ours, theirs, most);
}

void sim_oracle_marks(struct sim_oracle *oracle, int name, int there, int known)
{
    if (there != known)
        violated(oracle, "marks-add-up", "name %d: the server has %d marks, and %d were made", name, there, known);
}

void sim_oracle_marked(struct sim_oracle *oracle, bool by_its_own_question, bool heard)
{
    if (!by_its_own_question && !heard)
        violated(oracle, "none-to-the-deaf", "a waiter that hears nothing gets what has no end");
}

void sim_oracle_told_them(struct sim_oracle *oracle, int name, bool told)
{
    if (!told)
        violated(oracle, "theirs-are-told", "name %d: it is given back, and who waits among the others is not told", name);
}

void sim_oracle_their_turn(struct sim_oracle *oracle, int name, int64_t length, int64_t most)
{
    if (length > most)
        violated(oracle, "their-turn", "name %d: one of theirs asks for %.1f ms and none gets it; %.1f ms are promised", name,
                 (double)length / 1e6, (double)most / 1e6);
}

void sim_oracle_endless(struct sim_oracle *oracle, int name, int64_t length, int64_t most)
{
    if (length > most)
        violated(oracle, "ends-anyway", "name %d: its key has no end for %.1f ms though one of us waits", name, (double)length / 1e6);
}

/* ---- the queue ---- */

static struct sim_queued *queued(struct sim_oracle *oracle, int name, uint64_t waiter)
{
    for (int i = 0; i < oracle->queue_count[name]; i++)
        if (oracle->queue[name][i].waiter == waiter)
            return &oracle->queue[name][i];
    return NULL;
}

void sim_oracle_queued(struct sim_oracle *oracle, int name, uint64_t waiter, int64_t ticket, bool is_new)
{
    for (int i = 0; i < oracle->queue_count[name] && is_new; i++)
        if (oracle->queue[name][i].ticket >= ticket)
            violated(oracle, "fifo", "name %d: waiter %" PRIu64 " comes and stands before %" PRIu64, name,
                     waiter, oracle->queue[name][i].waiter);
    struct sim_queued *one = queued(oracle, name, waiter);
    if (one != NULL) /* its place in the queue, taken over from another token by an acquire that was executed late */
        one->ticket = ticket;
    else if (oracle->queue_count[name] == SIM_QUEUE_MOST)
        violated(oracle, "books", "more waiters than the oracle's books have room for");
    else
        oracle->queue[name][oracle->queue_count[name]++] = (struct sim_queued){waiter, ticket, true};
}

void sim_oracle_left(struct sim_oracle *oracle, int name, uint64_t waiter)
{
    struct sim_queued *one = queued(oracle, name, waiter);
    if (one != NULL)
        *one = oracle->queue[name][--oracle->queue_count[name]];
}

void sim_oracle_flushed(struct sim_oracle *oracle, int name)
{
    oracle->queue_count[name] = 0;
}

void sim_oracle_taken(struct sim_oracle *oracle, int name, uint64_t waiter, int64_t ticket,
                      bool after_a_death)
{
    for (int i = 0; i < oracle->queue_count[name]; i++) {
        const struct sim_queued *other = &oracle->queue[name][i];
        if (other->waiter == waiter || other->ticket >= ticket)
            continue;
        if (other->heard && !after_a_death)
            violated(oracle, "fifo", "name %d: waiter %" PRIu64 " is passed by by %" PRIu64, name,
                     other->waiter, waiter);
        else
            oracle->passed_excused++;
    }
}

/* ---- calls, commands, keys ---- */

void sim_oracle_hangs(struct sim_oracle *oracle, const char *who, int number)
{
    violated(oracle, "no-hang", "%s %d hangs", who, number);
}

void sim_oracle_renewed(struct sim_oracle *oracle, uint64_t token, bool release_was_listed)
{
    if (release_was_listed)
        violated(oracle, "no-renewal-after-release",
                 "token %" PRIu64 " is renewed after its release was listed", token);
}

void sim_oracle_lifetime(struct sim_oracle *oracle, const char *key, int64_t left_ms, int64_t most_ms)
{
    if (left_ms > most_ms)
        violated(oracle, "keys-end", "%s has %" PRId64 " ms left, more than %" PRId64, key, left_ms, most_ms);
}

void sim_oracle_took(struct sim_oracle *oracle, const char *call, int64_t length, int64_t most)
{
    if (length > most)
        violated(oracle, "calls-in-time", "%s takes %.1f ms; %.1f ms are promised", call,
                 (double)length / 1e6, (double)most / 1e6);
}

void sim_oracle_asks(struct sim_oracle *oracle, int asker, int name, int64_t now)
{
    int64_t *until = &oracle->asked[asker][name];
    *until = (*until > now ? *until : now) + ASK_NS;
    if (*until - now > ASK_MOST * ASK_NS)
        violated(oracle, "few-questions", "process %d asks for name %d again and again", asker, name);
}

void sim_oracle_calls(struct sim_oracle *oracle, int asker, int name)
{
    oracle->asked[asker][name] -= (name < oracle->strict ? 5 : 4) * ASK_NS; /* with quarantine each hand-off is a question more */
}

void sim_oracle_news(struct sim_oracle *oracle, int name)
{
    for (int asker = 0; asker < SIM_ASKERS_MOST; asker++)
        oracle->asked[asker][name] -= ASK_NS;
}

void sim_oracle_canceled(struct sim_oracle *oracle, const char *call, int64_t length, int64_t most)
{
    if (length > most)
        violated(oracle, "cancel-in-time", "%s goes on for %.1f ms after its cancel; %.1f ms are promised", call,
                 (double)length / 1e6, (double)most / 1e6);
}

/* When the server gave the grant with this fence; -1: unknown. */
static int64_t given_at(const struct sim_oracle *oracle, int name, int64_t fence)
{
    for (int i = oracle->grant_count; i-- > 0;)
        if (oracle->grants[i].name == name && oracle->grants[i].fence == fence)
            return oracle->grants[i].at_server;
    return -1;
}

void sim_oracle_stored(struct sim_oracle *oracle, int name, int64_t fence, int64_t owned_at, int64_t load_began)
{
    struct sim_page *page = &oracle->pages[name];
    int64_t mine = given_at(oracle, name, fence), other = given_at(oracle, name, page->stored);
    /* A message gave what was lost with the data; by now the token has the key once more. */
    bool has_it_again = mine >= 0 && other >= 0 && is_divided(oracle, mine, other) && owned_at > other;
    if (fence <= page->stored && !has_it_again)
        violated(oracle, "no-stale-store",
                 "key %d: the value of fence %" PRId64 " overwrites that of %" PRId64, name, fence,
                 page->stored);
    if (load_began < page->thrown_away)
        violated(oracle, "no-stale-store", "key %d: a value from before it was thrown away is stored", name);
    page->stored = fence;
}

void sim_oracle_fetched(struct sim_oracle *oracle, int name, int64_t load_began, int64_t began, int64_t heard)
{
    if (oracle->forgotten[name] >= 0 && load_began < oracle->forgotten[name] &&
        began > oracle->forgotten[name] + heard)
        violated(oracle, "no-stale-value", "key %d: a fetch gets a value from before it was thrown away",
                 name);
}

void sim_oracle_purged(struct sim_oracle *oracle, int name, int64_t now)
{
    oracle->forgotten[name] = oracle->pages[name].thrown_away = now;
}

void sim_oracle_forgotten(struct sim_oracle *oracle, int name, int64_t now)
{
    sim_oracle_purged(oracle, name, now);
    for (int i = 0; i < oracle->grant_count; i++)
        oracle->grants[i].void_now = oracle->grants[i].void_now || oracle->grants[i].name == name;
}

void sim_oracle_remembers(struct sim_oracle *oracle)
{
    memcpy(oracle->pages_remembered, oracle->pages, sizeof oracle->pages);
}

void sim_oracle_goes_back(struct sim_oracle *oracle)
{
    memcpy(oracle->pages, oracle->pages_remembered, sizeof oracle->pages);
}

void sim_oracle_left_behind(struct sim_oracle *oracle, const char *key)
{
    violated(oracle, "keys-end", "%s stays for ever", key);
}
