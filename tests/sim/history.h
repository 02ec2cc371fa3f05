/* SPDX-License-Identifier: MIT */
/* history.h - one seed's history: who takes part (history.c), what goes wrong (faults.c), and what is watched on the
 * way (watch.c). */
#ifndef SIM_HISTORY_H
#define SIM_HISTORY_H

#include "tests/sim/oracle.h"
#include "tests/sim/server.h"
#include "tests/sim/world.h"

#include <holdfast/holdfast.h>

#define SIM_LOCKS  3
#define SIM_PAGES  2
#define SIM_TAG    "pages" /* of all values */
#define SIM_SEMAPHORE (SIM_LOCKS + SIM_PAGES) /* its number among the names: locks, pages, then it */
#define SIM_ACTORS 64

#define SIM_WAIT_MS    3000 /* what a call waits at most, */
#define SIM_FOREIGN_MS 1500 /* what another program's key lives at most, */
#define SIM_PAGE_MS    2000 /* and a page, stale time included */

enum sim_profile {
    SIM_CALM,      /* nothing goes wrong */
    SIM_DEAF,      /* no pub/sub at all, or every message lost */
    SIM_LOSSY,     /* messages are lost, late, doubled */
    SIM_SINGLES,   /* single messages are lost, never two within a second, and every bound holds */
    SIM_KILLS,     /* processes are killed, others come */
    SIM_PAUSES,    /* processes are paused */
    SIM_CUTS,      /* connections break, commands run late */
    SIM_STALLS,    /* connections fall silent, in one or both directions */
    SIM_FREEZES,   /* the server is frozen; its scripts are flushed */
    SIM_RESTARTS,  /* the server crashes and keeps its data */
    SIM_AMNESIA,   /* it crashes and loses them */
    SIM_FAILOVERS, /* another server with another clock takes over; in some histories the last writes are lost */
    SIM_CLOCKS,    /* the server's clock is stepped; the fence counter is evicted */
    SIM_REFUSALS,  /* the server is out of memory, or cannot save */
    SIM_FOREIGN,   /* another program uses the keys; operators break leases */
    SIM_LIES,      /* somebody publishes what nobody said; nothing else goes wrong */
    SIM_STORM,     /* all of it at once */
    SIM_REPLICAS,  /* failovers, of which replicas=all lets none lose a lease, and replicas=N none after a crash */
    SIM_SENTINELS, /* failovers with quarantine_ms, or with nothing */
    SIM_NEIGHBOURS, /* other programs take the same locks, and die; in part of the histories something of ours is hurt too */
    SIM_NEAR,      /* values are kept in memory, while others write them and something goes wrong */
    SIM_PROFILES
};
const char *sim_profile_name(enum sim_profile profile);

struct sim_actor { /* a thread of a process's program */
    struct sim_process *process;
    int number;
    bool over;
    int waits_for;       /* the lock it waits for; -1: none */
    int64_t waits_since; /* true time */
    int wants_permits;   /* while it waits for the semaphore */
    unsigned wants_set;  /* the locks, by bit, that it takes together now: it may have some and wait for another */
    int keeps;           /* the lock of its pending, which is decided and not taken yet; -1: none */
    hf_cancel *cancel;
    int64_t fired; /* true time, since it was set back; -1: it was not */
};

struct sim_history {
    enum sim_profile profile;
    int locks, pages, process_goal, threads;
    int64_t lease_ms, guard_ms, command_ms, linger_ms, hold_most, think_most;
    int64_t ops_end, healed, settled; /* true times; healed 0: not yet */
    bool same_leases;                 /* one length, so that bounds are exact */
    int reads;                        /* percent of its acquires that share the lock */
    int counts;                       /* percent of its acquires that take permits of the semaphore, */
    int limit;                        /* of so many; some ask with a smaller limit */
    int64_t quarantine_ms;            /* 0: none */
    bool by_sentinels;                /* they say who the primary is */
    int replicas;                     /* that confirm; HF_ALL */
    int64_t replicas_ms, down_after_ms;
    int64_t apart_us;                 /* that servers' clocks are apart, at most */
    int64_t second_life_ms;           /* of a former primary, at most */
    bool loops;                       /* its threads start as event loops do, most of the time */
    bool uses_up_fences;              /* threads take so many leases that they wait for fences */
    bool clock_goes_back;             /* so its counter is not lost too: then nothing is promised (P8) */
    int64_t forward_budget_us;        /* what the server's clock may still be stepped forward */
    struct sim_actor actors[SIM_ACTORS];
    int actor_count;
    struct sim_oracle oracle;
    uint64_t grants, acquires, fetches, loads, faults;
};
extern struct sim_history history;

struct sim_result {
    uint64_t grants, acquires, fetches, near, loads, faults, events, commands, losses, messages, digest;
    int64_t longest_gap, length;
    enum sim_profile profile;
    char failure[420];
};
/* profile: SIM_PROFILES lets the seed choose. */
void sim_history_run(uint64_t seed, enum sim_profile profile, bool verbose, struct sim_result *result);

/* history.c */
void sim_process_begin(void);

/* deeds.c */
struct sim_holding;
void sim_act(void *actor); /* a thread's life */
void sim_give_back(struct sim_holding *holding);
/* A call of the running process has ended; it was allowed to take this long. */
void sim_check_status(const char *call, hf_status status, const hf_error *error); /* such an answer may come in this profile */
void sim_call_took(const char *call, int64_t began, int64_t most_ms);
/* The cancel for the next call, or NULL: then that call has none. Some cancels are fired before the call begins. */
hf_cancel *sim_some_cancel(struct sim_actor *actor, int percent);

/* faults.c */
void sim_faults_plan(void); /* draws the profile's numbers and the time of the first fault, before anything runs */
void sim_faults_end(void);  /* from now on all is well */
bool sim_faults_cost_nothing(void); /* no lease may be lost, no call may fail */
bool sim_faults_may_hurt(const struct sim_process *process,
                         int64_t since); /* it, or its connections, since then */
bool sim_connections_are_well(void);     /* all the time, in both directions */
bool sim_world_is_well(void);            /* the bounds for healthy processes hold now */

/* takeovers.c */
void sim_takeovers_begin(void);
void sim_takeovers_hurt(void);
bool sim_takeovers_go_on(void);

/* lies.c */
void sim_lie(void);

/* permits.c */
void sim_permits_begin(void);
/* A thread has got permits. False: the lease was over before it looked. */
bool sim_permits_granted(hf_lease *lease, int permits);
void sim_permits_releases(const hf_lease *lease);
void sim_permits_killed(const struct sim_process *process);

/* watch.c */
struct sim_holding { /* one lease that a thread has got */
    struct sim_process *process;
    hf_lease *lease; /* NULL: released, or its process is dead */
    int lock;        /* pages come after the locks */
    int64_t expected; /* true time; since then it may come */
    int64_t given, good_for; /* when it came, and what was left of it then, ns */
    int grant;       /* -1: not yet */
    int64_t kept_since; /* true time, when its pending was decided; 0: it was none */
    bool released;
    bool shared;  /* beside others */
    bool downgraded; /* it was asked to be shared, and may be */
    bool in_set;  /* taken together with others, so perhaps had for a while when it is given */
};
void sim_watch_begin(void);
struct sim_holding *sim_watch_expect(int lock);
/* False: the lease was over before its thread looked at it, so it was held by nobody. */
bool sim_watch_granted(struct sim_holding *holding, hf_lease *lease);
void sim_watch_releases(struct sim_holding *holding);
void sim_watch_event(hf_lease *lease, const hf_event *event, void *holding);
/* Some process has been told of this primary, and relies on that one. */
void sim_watch_hears_of(int primary, uint64_t epoch, int relies_on, uint64_t by_epoch);
/* It begins to ask the server of this reign. */
void sim_watch_moves(struct sim_process *process, int reign);
/* It has been connected to the server of this reign for as long as it takes to learn what that one knows of its leases. */
void sim_watch_has_met(struct sim_process *process, int reign);
void sim_watch_killed(const struct sim_process *process);
/* How long a lease of this owner may be held by nobody while somebody waits; the row of docs/protocol.md that says so. */
/* Since when somebody healthy waits for it; -1: nobody does. */
int64_t sim_watch_waited_since(int lock);
int sim_watch_valid(int lock);    /* so many leases of it are, and are not broken */
void sim_watch_broken(int lock); /* by force: who has lost it has not heard yet */
int64_t sim_watch_most(int owner, const char **row);
/* The process whose token it is: its number, -1 for another program's token, above SIM_PROCESSES for a dead
 * process's. */
int sim_watch_owner(const char *token);

/* tokens.c */
void sim_tokens_begin(void);
int sim_tokens_name_of(const char *key); /* of a lock, page or semaphore; -1: none */
/* Who asks for a lock, as the oracle counts: those of a process that share it are another. */
int sim_asker(bool shares);
/* The queue's key, the readers' key of a lock. */
void sim_tokens_key(char *out, size_t room, const char *kind, int lock);
const char *sim_tokens_value(int lock); /* of its key; NULL: there is none */
bool sim_tokens_has_end(const char *token, int lock); /* it stands in the readers' key */
bool sim_tokens_reads(const char *token, int lock); /* the server has it among the readers that have the lock */
/* The value of the lock's key; of readers the token of one, whose process is dead if such a one is there. NULL: none. */
const char *sim_tokens_holder(int lock);
int64_t sim_tokens_owned_at(const char *token, int name); /* when the server gave it the key, the last time */
/* When the block was given to the token that this fence is of, and by the server of which reign. */
int64_t sim_tokens_given_at(const char *token, int name, int64_t fence, int *reign);
int64_t sim_tokens_owned_first(const char *token, int name);
const char *sim_tokens_some(int *name); /* one of those that came last; NULL: none has come */
/* The time since which this token has the key while another token waits for it; -1: no other token waits. */
int64_t sim_tokens_wanted_since(const char *token, int name);
void sim_tokens_look_anew(void); /* another server counts from now on */
void sim_tokens_after_loss(void);                         /* the server's keys are others now */

/* lifetimes.c */
void sim_tokens_look_at_keys(void);
void sim_tokens_look_at_the_end(void); /* everybody has closed */

#endif
