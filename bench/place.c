/* SPDX-License-Identifier: MIT */
/* place.c - see place.h. */
#include "bench/place.h"

#include "bench/crew.h"
#include "bench/harness.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_SPINNERS 64

static pid_t spinners[MOST_SPINNERS];
static int spinning;

static int spin(void *arg)
{
    (void)setsid(); /* another program, in another scheduling group */
    bench_pin(*(int *)arg);
    for (volatile long i = 0;; i++)
        ;
    return 0;
}

const char *bench_place_name(enum bench_place place)
{
    static const char *const names[BENCH_PLACES] = {"unpinned", "pinned apart", "all on one CPU",
                                                    "every CPU busy"};
    return names[place];
}

bool bench_has_place(enum bench_place place)
{
    return place != BENCH_APART || sysconf(_SC_NPROCESSORS_ONLN) > 1;
}

void bench_place(struct bench_server *server, enum bench_place place)
{
    int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    while (spinning > 0) {
        pid_t spinner = spinners[--spinning];
        (void)kill(spinner, SIGKILL);
        (void)waitpid(spinner, NULL, 0);
    }
    bench_server_pin(server, place == BENCH_APART || place == BENCH_ON_ONE_CPU ? 0 : -1);
    bench_pin(place == BENCH_APART ? 1 : place == BENCH_ON_ONE_CPU ? 0 : -1);
    for (int i = 0; place == BENCH_BUSY && i < cpus && i < MOST_SPINNERS; i++)
        spinners[spinning++] = bench_fork(spin, &i);
}
