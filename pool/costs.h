/* SPDX-License-Identifier: MIT */
/*
 * costs.h - what a send, a wake-up and a yield cost here, and what to do by that while a thread waits for a reply. Machines differ, so no
 * cost is compared with a number of microseconds, but with another one that was measured beside it; on a busy machine a measure
 * may be wrong for long, so nothing lasts longer than times.h allows. Pure: the caller has the clock. Threads may overwrite each
 * other's sample: one of many is lost.
 */
#ifndef HFI_COSTS_H
#define HFI_COSTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct hfi_costs { /* zeroed: nothing is known */
    _Atomic(int64_t) send_ns;    /* giving a few commands to the socket */
    _Atomic(int64_t) wake_up_ns; /* from a kick till the thread that slept runs */
    _Atomic(int64_t) yield_ns;   /* till the others that want this CPU have had it */
    _Atomic(int64_t) sleep_ns;   /* CPU time of a thread that sleeps till it is woken */
};

/* Both follow the median. Of all costs: after the first no sample, however wrong, moves one by more than a step, and one that lost
 * its CPU is none. */
void hfi_costs_note_send(struct hfi_costs *costs, int64_t took_ns);
void hfi_costs_note_yield(struct hfi_costs *costs, int64_t took_ns);
void hfi_costs_note_sleep(struct hfi_costs *costs, int64_t used_ns);
/* Follows what the dearest ninth takes: those found the CPU idle. Others are cheap because some thread kept it awake, which says
 * nothing of what that saves. */
void hfi_costs_note_wake_up(struct hfi_costs *costs, int64_t took_ns);

/* What a lane's round trips take. */
struct hfi_trip {
    int64_t nearest_ns; /* recent minimum: the distance, whatever the load; 0: there was none */
    int64_t rtt_ns;     /* smoothed; 0: there was none */
    int64_t own_ns;     /* what this program's own threads explain of it, and of a yield (hfi_costs_own_ns) */
};

/* The distance after one more trip: the shortest one, or slowly more, by what own_ns does not explain of the others. */
int64_t hfi_costs_nearest_ns(int64_t nearest_ns, int64_t sample_ns, int64_t own_ns);
bool    hfi_costs_is_near(const struct hfi_costs *costs, int64_t nearest_ns); /* a trip is worth the sends that it could save */
/* Whose CPU the server has is a lane's score: at first 0, not known; high, ours; below 0, one of its own. */
enum hfi_found {         /* how the lane's reader found replies: */
    HFI_FOUND_AT_ONCE,   /* just behind others, with no yield between: the server works while we do */
    HFI_FOUND_BEFORE,    /* they had come before it looked first */
    HFI_FOUND_AT_FIRST,  /* at the first look, behind one yield */
    HFI_FOUND_LATER      /* at another one, or it sleeps for them */
};
int     hfi_costs_note_found(int server_cpu, enum hfi_found found); /* returns the score after that */
/* A reader hardly ever needs more than one look: the CPU that it yields is the server's too, or other threads of ours have it for as
 * long as the server takes. */
bool    hfi_costs_has_our_cpu(int server_cpu);
bool    hfi_costs_has_own_cpu(int server_cpu); /* of the last replies enough were found at once */
/* A command waits for the reader of the next reply, who sends it with others: beside a near server, where so many commands are
 * under way that a reply is soon there; or one is, and it is known whose CPU the server has. */
bool    hfi_costs_gathers(const struct hfi_costs *costs, int64_t nearest_ns, int in_flight, int server_cpu);
/* A server with a CPU of its own would idle till the reader is back. So a third of the waiting threads' commands leave together: while
 * the server works at one third, the next is on its way, and the last is being listed. `threads` wait beside the one that asks; of
 * fewer than five each sends its own. */
bool    hfi_costs_is_group(int listed, int threads);
bool    hfi_costs_is_crowd(int followers); /* more than a few */
/* Followers, threads that wait for another one to read, may sleep, be woken, and have the CPU before the one that measures a time.
 * That part of it is neither the server's nor another program's. While no sleep has been measured, many explain HFI_OWN_MOST_NS. */
int64_t hfi_costs_own_ns(const struct hfi_costs *costs, int followers);
/* A thread may look at the socket for a whole round trip, and yield between two looks. That is worth the wake-up: it saves a few of
 * them, or it costs a few yields, since others use the CPU meanwhile. */
bool    hfi_costs_looks(const struct hfi_costs *costs, const struct hfi_trip *trip);
/* So may a follower, for its wake-up: one of a few in any case; one of a crowd, if a sleep uses more of the CPU than some sends take.
 * Else pace.h says whether a crowd looks. */
bool    hfi_costs_follower_looks(const struct hfi_costs *costs, int followers);
/* A look has taken so many yields, and so much longer than a trip, that it will not pay. */
bool    hfi_costs_look_is_over(const struct hfi_trip *trip, int64_t took_ns, int yields);
/* A yield that took so long gave the CPU to another program: longer than some wake-ups, or than some trips, for the server and a few
 * threads of ours may have had it; and than twice own_ns, for own threads may have had it twice. */
bool    hfi_costs_is_long(const struct hfi_costs *costs, int64_t yield_ns, const struct hfi_trip *trip);
/* A pause without looks is counted in sleeps of one thread. Where own_ns is so much, one stands for so many. */
int     hfi_costs_sleeps(int64_t own_ns);
/* How long a reader sleeps, the first time, before it sends what was left to it: the server may be at something long. */
int64_t hfi_costs_left_ns(int64_t rtt_ns);
int64_t hfi_costs_left_again_ns(int64_t before_ns); /* the next time, if still no reply has come */
/* How long a reply that no thread waits for may stay in the socket, since its command was sent. The thread that sent it often is
 * about to wait for another reply, and then reads both; to wake the listener for each would cost more than the command. */
int64_t hfi_costs_grace_ns(const struct hfi_costs *costs);

#endif
