/* SPDX-License-Identifier: MIT */
/* ledger.c - see ledger.h. One anonymous shared mapping, made before the first fork. */
#include "tests/torture/ledger.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define ROOM_IN_ALL 16000000u /* intervals; untouched pages cost nothing */

int64_t hft_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void *shared(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        perror("torture: mmap");
        exit(1);
    }
    return at;
}

struct hft_ledger *hft_ledger_new(const struct hft_plan *plan)
{
    size_t seats = (size_t)(plan->processes * plan->threads);
    struct hft_ledger *ledger = shared(sizeof *ledger + seats * sizeof ledger->seats[0]);
    ledger->plan = *plan;
    ledger->began_ns = hft_now_ns();
    ledger->room = ROOM_IN_ALL / (uint32_t)seats;
    struct hft_interval *history = shared(seats * ledger->room * sizeof *history);
    ledger->left_ns = shared((size_t)(plan->processes * plan->locks) * sizeof *ledger->left_ns);
    for (size_t i = 0; i < seats; i++) {
        ledger->seats[i].history = history + i * ledger->room;
        atomic_init(&ledger->seats[i].wants, -1);
    }
    return ledger;
}

struct hft_seat *hft_ledger_seat(struct hft_ledger *ledger, int process, int thread)
{
    return &ledger->seats[process * ledger->plan.threads + thread];
}

void hft_ledger_wants(struct hft_ledger *ledger, int process, int thread, int lock)
{
    atomic_store(&hft_ledger_seat(ledger, process, thread)->wants, lock);
}

/* First when, then that: who sees nobody sees how long. */
void hft_ledger_wants_no_more(struct hft_ledger *ledger, int process, int thread)
{
    struct hft_seat *seat = hft_ledger_seat(ledger, process, thread);
    int lock = atomic_load(&seat->wants);
    if (lock >= 0)
        atomic_store(&ledger->left_ns[process * ledger->plan.locks + lock], hft_now_ns());
    atomic_store(&seat->wants, -1);
}

int64_t hft_ledger_unwanted_since(const struct hft_ledger *ledger, int process, int lock)
{
    for (int thread = 0; thread < ledger->plan.threads; thread++)
        if (atomic_load(&ledger->seats[process * ledger->plan.threads + thread].wants) == lock)
            return INT64_MAX;
    return atomic_load(&ledger->left_ns[process * ledger->plan.locks + lock]);
}

void hft_complain(struct hft_ledger *ledger, const char *format, ...)
{
    if (atomic_fetch_add(&ledger->complaints, 1) != 0)
        return;
    va_list words;
    va_start(words, format);
    (void)vsnprintf(ledger->complaint, sizeof ledger->complaint, format, words);
    va_end(words);
}

void hft_ledger_judge_scripts(struct hft_ledger *ledger, int64_t scripts)
{
    const struct hft_plan *plan = &ledger->plan;
    int64_t seconds = (hft_now_ns() - ledger->began_ns) / (1000 * HFT_MS) + 1, sections = 0;
    for (int i = 0; i < plan->processes * plan->threads; i++)
        sections += atomic_load(&ledger->seats[i].count);
    int64_t most = 10 * seconds * plan->processes * plan->locks + 2 * sections + 500;
    if (scripts > most)
        hft_complain(ledger, "%lld scripts in %lld s for %lld sections; %lld are promised at most", (long long)scripts,
                     (long long)seconds, (long long)sections, (long long)most);
}

struct hft_interval *hft_ledger_history(struct hft_ledger *ledger, size_t *count)
{
    size_t seats = (size_t)(ledger->plan.processes * ledger->plan.threads), all = 0;
    for (size_t i = 0; i < seats; i++)
        all += atomic_load(&ledger->seats[i].count);
    struct hft_interval *history = malloc((all + 1) * sizeof *history);
    if (history == NULL) {
        perror("torture: history");
        exit(1);
    }
    *count = 0;
    for (size_t i = 0; i < seats; i++) {
        uint32_t own = atomic_load(&ledger->seats[i].count);
        memcpy(history + *count, ledger->seats[i].history, own * sizeof *history);
        *count += own;
    }
    return history;
}
