/* SPDX-License-Identifier: MIT */
/*
 * near_walk_test.c - seeded random walks: a model of a server, its clients and the two sockets of each, and the machine of
 * near_proof.h with one key a lane. Whatever is armed, read, written, told, lost, held back, reordered or repeated: nothing is
 * given out that the promise forbids.
 *
 * The model knows what is true: each write's time, and which connection tracks the key for whom. A lane's connection may be dead
 * at the server and open here, a message may lie in its socket while later answers overtake it, the server may be another one.
 */
#include "base/clock.h"
#include "base/random.h"
#include "core/policy/near_proof.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define LANES  2
#define SEEDS  60
#define STEPS  20000
#define ROOM   64 /* what is under way at a time, of each kind */
#define NEAR   90
#define LAG    40
#define MS(ms) ((ms) * HFI_MS)

struct line { /* a connection of a lane */
    uint32_t number;
    bool     lives;      /* at the server */
    int64_t  redirected; /* to that client; 0: it tracks nothing */
    bool     tracked;    /* the key, until its next change */
};

struct told { /* in the tracker's socket, in order */
    enum { CHANGED, ALL_CHANGED, PONG } kind;
    int lane;
    int64_t stamp_ns;
};

struct under_way { /* executed at the server; its answer comes when the walk says so */
    bool is_read;
    int lane;
    struct hfi_near_answer answer;
    struct hfi_near_mark mark;
    uint64_t changes;
    int value;
};

struct walk {
    uint64_t rng;
    unsigned seed;
    int step;
    int64_t now_ns;
    /* the server */
    uint64_t run;
    int64_t tracker, next_id; /* the client that the tracker's connection is there; 0: it is lost */
    bool tracker_lives;
    int value[LANES];
    int64_t written_ns[LANES], end_ns[LANES]; /* of that value; when the one before it was overwritten */
    int64_t gone_ns[LANES][STEPS + 1];        /* by value: when it was no more */
    struct line lines[LANES];
    /* the sockets */
    struct told told[ROOM];
    int told_count;
    struct under_way under_way[ROOM];
    int under_way_count;
    /* we */
    struct hfi_near_lane lanes[LANES];
    struct hfi_near_proof proof;
    int64_t our_tracker; /* whose connection this end believes in */
    uint64_t our_run;
    uint64_t changes[LANES];
    struct { struct hfi_near_mark mark; int value; } kept[LANES];
};

static long given, good_but_old, unproved, over;

static int64_t roll(struct walk *w, int64_t sides)
{
    return (int64_t)(hfi_rng_next(&w->rng) % (uint64_t)sides);
}

/* ---- the server ---- */

static void tell(struct walk *w, int64_t client, struct told what)
{
    if (client != w->tracker || !w->tracker_lives || w->told_count == ROOM)
        return; /* nobody is there; a full socket ends the connection, below */
    w->told[w->told_count++] = what;
    if (w->told_count == ROOM)
        w->tracker_lives = false;
}

/* A connection that is gone tracks nothing; what is redirected to nobody is told to nobody. */
static void is_changed(struct walk *w, int lane)
{
    struct line *line = &w->lines[lane];
    if (line->lives && line->tracked)
        tell(w, line->redirected, (struct told){CHANGED, lane, 0});
    line->tracked = false;
}

static void write_value(struct walk *w, int lane)
{
    w->gone_ns[lane][w->value[lane]] = w->now_ns < w->end_ns[lane] ? w->now_ns : w->end_ns[lane];
    w->value[lane]++;
    w->end_ns[lane] = roll(w, 2) == 0 ? HFI_NEVER : w->now_ns + MS(1 + roll(w, 100));
    is_changed(w, lane);
}

static void end_of_all_connections(struct walk *w)
{
    for (int i = 0; i < LANES; i++)
        w->lines[i].lives = false;
    w->tracker_lives = false;
}

static void flush_all(struct walk *w)
{
    for (int i = 0; i < LANES; i++) {
        w->gone_ns[i][w->value[i]] = w->now_ns < w->end_ns[i] ? w->now_ns : w->end_ns[i];
        w->value[i]++;
        w->end_ns[i] = HFI_NEVER;
        w->lines[i].tracked = false;
    }
    for (int i = 0; i < LANES; i++)
        if (w->lines[i].lives && w->lines[i].redirected != 0) {
            tell(w, w->lines[i].redirected, (struct told){ALL_CHANGED, 0, 0});
            return;
        }
}

/* ---- what we send; the server executes it at once, or never ---- */

static void send_question(struct walk *w, int lane, enum hfi_near_ask what)
{
    struct line *line = &w->lines[lane];
    if (what == HFI_NEAR_ASK_NOTHING || w->under_way_count == ROOM)
        return;
    struct hfi_near_answer answer = {w->proof.lanes[lane].epoch, w->proof.tracker, w->now_ns, 0, 0, false};
    w->now_ns += roll(w, MS(2));
    if (line->lives) {
        bool is_there = w->proof.tracker == w->tracker && w->tracker_lives;
        if (what == HFI_NEAR_ARM && is_there)
            line->redirected = w->proof.tracker;
        answer.connection = line->number;
        answer.run = w->run;
        answer.is_good = line->redirected == answer.tracker && (what == HFI_NEAR_BEAT || is_there);
    }
    w->under_way[w->under_way_count++] = (struct under_way){.lane = lane, .answer = answer};
}

static void send_read(struct walk *w, int lane)
{
    struct line *line = &w->lines[lane];
    uint64_t epoch = w->proof.lanes[lane].epoch;
    if (epoch == 0 || !line->lives || w->under_way_count == ROOM)
        return;
    struct under_way read = {true, lane, {0}, {epoch, w->now_ns, HFI_NEVER}, w->changes[lane], 0};
    w->now_ns += roll(w, MS(2));
    if (w->now_ns >= w->end_ns[lane])
        return; /* nothing is there */
    if (w->end_ns[lane] != HFI_NEVER)
        read.mark.end_ns = read.mark.read_ns + w->end_ns[lane] - w->now_ns;
    read.value = w->value[lane];
    read.answer.connection = line->number;
    line->tracked = line->redirected != 0;
    w->under_way[w->under_way_count++] = read;
}

static void send_ping(struct walk *w)
{
    int64_t stamp_ns = w->now_ns;
    w->now_ns += roll(w, MS(2));
    if (w->our_tracker != 0 && w->our_tracker == w->tracker && w->tracker_lives)
        tell(w, w->tracker, (struct told){PONG, 0, stamp_ns});
}

/* ---- what we hear ---- */

static void take_answer(struct walk *w)
{
    if (w->under_way_count == 0)
        return;
    int at = (int)roll(w, w->under_way_count); /* more than a lane would reorder */
    struct under_way got = w->under_way[at];
    w->under_way[at] = w->under_way[--w->under_way_count];
    struct hfi_near_lane *lane = &w->proof.lanes[got.lane];
    if (!got.is_read) {
        hfi_near_answered(&w->proof, got.lane, &got.answer);
        return;
    }
    if (lane->epoch == got.mark.epoch)
        hfi_near_met(&w->proof, got.lane, got.answer.connection);
    if (lane->epoch == got.mark.epoch && w->changes[got.lane] == got.changes) {
        w->kept[got.lane].mark = got.mark;
        w->kept[got.lane].value = got.value;
    }
}

static void hear(struct walk *w)
{
    if (w->told_count == 0)
        return;
    struct told told = w->told[0];
    memmove(w->told, w->told + 1, (size_t)--w->told_count * sizeof told);
    if (told.kind == PONG)
        (void)hfi_near_hears(&w->proof, w->our_tracker, w->our_run, told.stamp_ns);
    else if (told.kind == ALL_CHANGED)
        hfi_near_all_changed(&w->proof);
    else {
        w->changes[told.lane]++;
        w->kept[told.lane].mark.epoch = 0;
    }
}

/* ---- connections ---- */

static void connect_tracker(struct walk *w)
{
    w->told_count = 0; /* with the socket goes what lay in it */
    w->tracker = ++w->next_id;
    w->tracker_lives = true;
    w->our_tracker = w->tracker;
    w->our_run = w->run;
}

static void connect_lane(struct walk *w, int lane)
{
    w->lines[lane] = (struct line){w->lines[lane].number + 1, true, 0, false};
}

/* Another server: it gives out the same ids again. */
static void restart(struct walk *w)
{
    end_of_all_connections(w);
    w->run++;
    w->next_id = 0;
}

/* ---- the promise ---- */

static void look(struct walk *w, int lane)
{
    int64_t proved_ns = hfi_near_proved_ns(&w->proof, lane), near_ms = 1 + roll(w, NEAR), s_ms = near_ms < LAG ? near_ms : LAG;
    int value = w->kept[lane].value;
    enum hfi_near_verdict verdict =
        hfi_near_judge(&w->kept[lane].mark, w->proof.lanes[lane].epoch, proved_ns, near_ms, LAG, w->now_ns);
    unproved += verdict == HFI_NEAR_UNPROVED;
    over += verdict == HFI_NEAR_OVER;
    if (verdict != HFI_NEAR_GOOD)
        return;
    given++;
    int64_t gone_ns = value < w->value[lane] ? w->gone_ns[lane][value] : w->end_ns[lane];
    good_but_old += gone_ns <= w->now_ns;
    if (gone_ns < w->now_ns - MS(s_ms))
        fail_msg("seed %u, step %d: value %d of lane %d was given out %lld us after its end, not %lld at most", w->seed, w->step, value,
                 lane, (long long)(w->now_ns - gone_ns) / 1000, (long long)s_ms * 1000);
}

static void one_step(struct walk *w)
{
    int lane = (int)roll(w, LANES), drawn = (int)roll(w, 1000);
    w->now_ns += roll(w, MS(1));
    look(w, lane);
    if (drawn < 300)
        send_read(w, lane);
    else if (drawn < 550)
        take_answer(w);
    else if (drawn < 700)
        hear(w);
    else if (drawn < 800)
        write_value(w, lane);
    else if (drawn < 890)
        send_question(w, lane, hfi_near_next(&w->proof, lane));
    else if (drawn < 970)
        send_ping(w);
    else if (drawn < 973)
        w->lines[lane].lives = false; /* we do not know yet, or never will */
    else if (drawn < 975)
        w->tracker_lives = false;
    else if (drawn < 983)
        connect_lane(w, lane);
    else if (drawn < 988)
        connect_tracker(w);
    else if (drawn < 990)
        w->now_ns += MS(roll(w, 3 * LAG)); /* nobody hears anything */
    else if (drawn < 993)
        flush_all(w);
    else if (drawn < 994)
        restart(w);
}

static void whatever_happens_nothing_forbidden_is_given_out(void **state)
{
    static struct walk walk;
    (void)state;
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        walk = (struct walk){.rng = seed, .seed = seed, .now_ns = MS(1000), .run = 1};
        walk.proof = (struct hfi_near_proof){.count = LANES, .lanes = walk.lanes};
        for (int i = 0; i < LANES; i++) {
            walk.end_ns[i] = HFI_NEVER;
            connect_lane(&walk, i);
        }
        connect_tracker(&walk);
        for (walk.step = 0; walk.step < STEPS; walk.step++)
            one_step(&walk);
    }
    assert_true(given > 50000); /* else the walk shows little */
    assert_true(good_but_old > 1000);
    assert_true(unproved > 1000);
    assert_true(over > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whatever_happens_nothing_forbidden_is_given_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
