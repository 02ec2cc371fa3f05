/* SPDX-License-Identifier: MIT */
/* stops.c - see stops.h. */
#include "tests/sim/stops.h"
#include "base/perturb.h"
#include "base/random.h"
#include "tests/sim/wire.h"

#define STOPS_MOST 4096 /* in a history; then there are no more */
#define LONGEST_NS (20 * HFI_MS)
#define WINDOW_NS  (100 * HFI_MS) /* in which a process stops for half of the time at most, else it could never answer in time */
#define KINDS      16 /* of marks: those of one kind count for more */
#define WEIGHT     16

static struct {
    uint64_t rng;
    unsigned kind;   /* that this history likes */
    int64_t marks;   /* between two stops, on average; 0: there are none */
    int64_t longest; /* ns */
    int64_t left;    /* until the next one */
    bool paused;
    int count;
    struct {
        const struct sim_process *process;
        int64_t at, length;
    } made[STOPS_MOST];
} stops;

static int64_t between(int64_t least, int64_t most)
{
    return least + (int64_t)(hfi_rng_next(&stops.rng) % (uint64_t)(most - least + 1));
}

void sim_stops_begin(void)
{
    stops.rng = sim.seed ^ UINT64_C(0x73746f7073); /* other numbers than those of the world's generator */
    stops.count = 0;
    stops.paused = false;
    stops.kind = (unsigned)between(0, KINDS - 1);
    stops.marks = between(0, 3) == 0 ? 0 : (int64_t)1 << between(4, 11);
    stops.longest = between(0, 3) == 0 ? LONGEST_NS : 4 * HFI_MS;
    stops.left = between(1, 2 * stops.marks + 1);
}

void sim_stops_often(void)
{
    stops.marks = 16;
    stops.longest = LONGEST_NS;
    stops.left = between(1, 2 * stops.marks);
}

void sim_stops_pause(bool on)
{
    stops.paused = on;
}

static void stop_at(const char *place)
{
    if (sim.self == NULL || stops.marks == 0 || stops.paused || stops.count == STOPS_MOST)
        return;
    stops.left = between(1, 2 * stops.marks);
    int64_t length = between(0, between(0, 1) == 0 ? stops.longest : HFI_MS / 2); /* half of them: as commands take */
    if (sim_stopped(sim.self, sim.now - WINDOW_NS) + length > WINDOW_NS / 2)
        return;
    sim_say("stops at %s for %.3f ms", place, (double)length / 1e6);
    stops.made[stops.count].process = sim.self;
    stops.made[stops.count].at = sim.now;
    stops.made[stops.count++].length = length;
    sim_stop(length);
    sim_hears(sim.self); /* its leases are looked at again before it goes on */
}

void hfi_perturb(const char *place)
{
    unsigned kind = (unsigned)(place[0] + 3 * place[3] + 5 * place[6]) % KINDS;
    stops.left -= kind == stops.kind ? WEIGHT : 1;
    if (stops.left <= 0)
        stop_at(place);
}

int64_t sim_stopped(const struct sim_process *process, int64_t since)
{
    int64_t sum = 0;
    for (int i = stops.count; i-- > 0 && stops.made[i].at + LONGEST_NS >= since;)
        if (process == NULL || process == stops.made[i].process)
            sum += stops.made[i].length;
    return sum;
}
