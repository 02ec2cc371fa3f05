/* SPDX-License-Identifier: MIT */
/*
 * oracle.h - the promises that hold in every history. The oracle is told the events on true time and keeps the books;
 * it knows nothing of Redis, processes or the library, so a test can tell it a wrong history by hand (oracle_test.c).
 */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_GRANTS_MOST 16384
#define SIM_NAMES_MOST  8
#define SIM_QUEUE_MOST  64
#define SIM_LOSSES_MOST 64
#define SIM_ASKERS_MOST 18

struct sim_grant {
    int name;
    int64_t fence;
    int64_t
        at_server; /* when the server gave it to the holder's process; a local pass does not change it */
    int reign;     /* of the server that gave it: how many others had been made the primary before */
    int moved, heard; /* the newest reign that its holder has asked, and that it has had the time to learn from */
    bool shared;   /* beside others that are */
    bool valid;    /* when last looked */
    bool released; /* its owner has called release */
    bool void_now; /* a load that was thrown away: another load may run beside it, but its value must not be stored */
    int losses;
};

struct sim_queued {
    uint64_t waiter;
    int64_t ticket; /* the smaller comes first */
    bool heard;     /* somebody listens to its channel, when last told */
};

struct sim_oracle {
    void (*violated)(const char *what);
    struct sim_grant grants[SIM_GRANTS_MOST];
    int grant_count;
    int64_t data_lost[SIM_LOSSES_MOST]; /* then: who held before may overlap with who came after */
    int data_lost_count;
    int64_t gap_since[SIM_NAMES_MOST]; /* nobody holds though somebody could; -1: no gap */
    int64_t forgotten[SIM_NAMES_MOST]; /* fetch: when the value was thrown away */
    struct sim_page {
        int64_t stored, thrown_away; /* as the server knows it: fence of the last value; when */
    } pages[SIM_NAMES_MOST], pages_remembered[SIM_NAMES_MOST];
    struct sim_queued queue[SIM_NAMES_MOST][SIM_QUEUE_MOST];
    int queue_count[SIM_NAMES_MOST];
    int64_t broken[SIM_NAMES_MOST]; /* by an operator; -1: never */
    int64_t asked[SIM_ASKERS_MOST][SIM_NAMES_MOST]; /* the time until which its acquires so far would last at the
                                                     * promised rate */
    int reign;     /* now */
    bool by_several; /* servers: a block of fences alone does not say who gave it */
    bool lossless; /* no takeover loses a lease, so none excuses anything */
    int64_t apart; /* fences by two servers have an order if they are so far apart in time */
    int room[SIM_NAMES_MOST]; /* for so many holders; 0: one */
    int strict; /* of so many names a loss of data excuses nothing */
    uint64_t losses, overlaps_excused, passed_excused;
    int64_t longest_gap;
};

void sim_oracle_begin(struct sim_oracle *oracle, void (*violated)(const char *what));
/* So many may have the name at a time: the fences of those have no order, but no two are the same. */
void sim_oracle_has_room(struct sim_oracle *oracle, int name, int room);

/* A thread was granted a lease that is valid now. Returns the grant's number. */
int sim_oracle_granted(struct sim_oracle *oracle, int name, int64_t fence, int64_t at_server);
/* The same to one that shares it: others may, and the order of their fences among each other is nothing. */
int sim_oracle_granted_shared(struct sim_oracle *oracle, int name, int64_t fence, int64_t at_server);
/* By a server of this reign; what its holder has moved to, and heard from, since (below). */
int sim_oracle_granted_in(struct sim_oracle *oracle, int name, int64_t fence, int64_t at_server, bool shared, int reign, int moved,
                          int heard);
/* Another server is the primary from now on; without `lossless` it need not know what the former one has given. */
void sim_oracle_taken_over(struct sim_oracle *oracle);
/* The holder begins to ask the server of this reign; it has, and has had the time to learn of its lease. */
void sim_oracle_moves(struct sim_oracle *oracle, int grant, int reign);
void sim_oracle_heard(struct sim_oracle *oracle, int grant, int reign);
/* Somebody has heard from a sentinel that this one is the primary, by this epoch; and relies on that one, by that. */
void sim_oracle_heard_of(struct sim_oracle *oracle, int primary, uint64_t epoch, int relies_on, uint64_t by_epoch);
/* It is shared from now on. */
void sim_oracle_downgraded(struct sim_oracle *oracle, int grant);
/* What hf_lease_is_valid says of it now. */
void sim_oracle_looked(struct sim_oracle *oracle, int grant, bool valid);
/* The owner calls release now. valid: the answer of is_valid just before; ok: the answer of release. */
void sim_oracle_releases(struct sim_oracle *oracle, int grant);
void sim_oracle_released(struct sim_oracle *oracle, int grant, bool was_valid, bool ok);
void sim_oracle_told_lost(struct sim_oracle *oracle, int grant, bool valid_now);
void sim_oracle_told_other(struct sim_oracle *oracle, int grant); /* AT_RISK, SAFE_AGAIN */
/* The process that held it is no more. */
void sim_oracle_died(struct sim_oracle *oracle, int grant);
/* The server has lost what was written last. */
void sim_oracle_data_lost(struct sim_oracle *oracle, int64_t now);
bool sim_oracle_is_held(const struct sim_oracle *oracle, int name);

/* The key of a valid lease holds its token, unless the server lost it, or an operator took it away and the holder is
 * being notified. */
void sim_oracle_backed(struct sim_oracle *oracle, int grant, bool has_key, int64_t now);
void sim_oracle_broken(struct sim_oracle *oracle, int name, int64_t now);

/* By force: until its holder hears of it, another one may have the name too. */
void sim_oracle_broken_now(struct sim_oracle *oracle, int grant, int64_t now);

/* Beside other programs: so many valid leases of ours there are, so many of theirs; the marks that the server has, and those of which
 * one of either side knows; a token has got a mark that has no end, by its own question or by another's; a release of ours has told
 * who waits among them, as their recipe is told; nobody of theirs has got it for this long, though one has asked all the time; a key
 * has had no end for this long, though one of us waits who has to give it one. */
void sim_oracle_beside(struct sim_oracle *oracle, int name, int ours, int theirs, int most);
void sim_oracle_marks(struct sim_oracle *oracle, int name, int there, int known);
void sim_oracle_marked(struct sim_oracle *oracle, bool by_its_own_question, bool heard);
void sim_oracle_told_them(struct sim_oracle *oracle, int name, bool told);
void sim_oracle_their_turn(struct sim_oracle *oracle, int name, int64_t length, int64_t most);
void sim_oracle_endless(struct sim_oracle *oracle, int name, int64_t length, int64_t most);

/* A lease that could be held is held by nobody since this time. most: the bound on that, of this row of the table of
 * worst waits. since < 0: it is held. */
void sim_oracle_gap(struct sim_oracle *oracle, int name, const char *row, int64_t since, int64_t now,
                    int64_t most);
/* The key holds a token that its living process no longer uses, for this length of time; most: the bound on that. */
void sim_oracle_unused(struct sim_oracle *oracle, int name, int64_t length, int64_t most);
/* A process passes its lease from thread to thread though other processes have waited for it since this time. */
void sim_oracle_passed(struct sim_oracle *oracle, int name, int64_t since, int64_t now, int64_t most);
/* The queue at the server, told in the server's order of execution. A new waiter stands behind all others; one that
 * was there before comes again with its ticket. A granted waiter (SIM_NO_TICKET: it never stood in the queue) may
 * pass by only waiters that the server cannot reach, or, where the holder died, all: a newcomer's SET may be
 * executed before their timers fire. */
#define SIM_NO_TICKET INT64_MAX
void sim_oracle_queued(struct sim_oracle *oracle, int name, uint64_t waiter, int64_t ticket, bool is_new);
void sim_oracle_left(struct sim_oracle *oracle, int name, uint64_t waiter);
void sim_oracle_flushed(struct sim_oracle *oracle, int name); /* the queue is gone; its waiters come again */
void sim_oracle_taken(struct sim_oracle *oracle, int name, uint64_t waiter, int64_t ticket,
                      bool after_a_death);

void sim_oracle_hangs(struct sim_oracle *oracle, const char *who, int number);
void sim_oracle_renewed(struct sim_oracle *oracle, uint64_t token, bool release_was_listed);
/* A key that expires in left_ms; its command allowed most_ms. */
void sim_oracle_lifetime(struct sim_oracle *oracle, const char *key, int64_t left_ms, int64_t most_ms);

/* A call has taken this long, in all or since its cancel was fired; it was allowed that long. */
void sim_oracle_took(struct sim_oracle *oracle, const char *call, int64_t length, int64_t most);
void sim_oracle_canceled(struct sim_oracle *oracle, const char *call, int64_t length, int64_t most);

/* The rate of a process's acquires of one lock: ten a second at most, whatever the number of its calls, and four
 * more for each call that begins. */
void sim_oracle_asks(struct sim_oracle *oracle, int asker, int name, int64_t now);
void sim_oracle_calls(struct sim_oracle *oracle, int asker, int name);
/* What is waited for has changed: everybody may ask once for that. */
void sim_oracle_news(struct sim_oracle *oracle, int name);

/* fetch: the server stored a value that was loaded under this fence, from this time on; the key was thrown away
 * (forget). */
/* owned_at: when the token that stores it was given the key last; -1: unknown. */
void sim_oracle_stored(struct sim_oracle *oracle, int name, int64_t fence, int64_t owned_at, int64_t load_began);
/* A fetch that began at this time got a value that was loaded at that time; `heard` later all processes know of a
 * forget. */
void sim_oracle_fetched(struct sim_oracle *oracle, int name, int64_t load_began, int64_t began,
                        int64_t heard);
void sim_oracle_forgotten(struct sim_oracle *oracle, int name, int64_t now);
/* Its tag was forgotten: the same, but a load under way keeps its lease, and is refused at its end. */
void sim_oracle_purged(struct sim_oracle *oracle, int name, int64_t now);
/* A snapshot of what the oracle knows of values: it is the truth again after a failover that loses the writes since
 * then. */
void sim_oracle_remembers(struct sim_oracle *oracle);
void sim_oracle_goes_back(struct sim_oracle *oracle);

/* At the end: a key without expiry that is not the fence counter. */
void sim_oracle_left_behind(struct sim_oracle *oracle, const char *key);

#endif
