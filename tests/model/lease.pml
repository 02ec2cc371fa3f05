/* SPDX-License-Identifier: MIT */
/*
 * lease.pml - one key, one client watched closely, all others; clocks of different rate, late commands, late replies.
 *
 * Promise: while the client believes in its lease, the server's key is its own; a released token never comes back. As
 * every client keeps it, no two hold. (L1, L3, P1, P3; core/policy/lease.c, entry_held.c hfi_step_confirmed(),
 * renew.lua, release.lua.)
 *
 * Time is a tick of true time. In every WINDOW the client's clock may stand still for one tick, and the server's may
 * run two: the errors that endanger somebody. L local ticks may last 5 true ones, in which the server counts up to 7:
 * the guard for both clocks makes the TTL 7; with a guard for the client's clock alone it is 5. What is under way may
 * take any time. Acquire and release keep their order (P4), renewals overtake everything.
 */
#define L      3
#define WINDOW 3
#ifdef GUARD_FOR_ONE_CLOCK
#define TTL 5
#else
#define TTL 7
#endif
#define OLD (L + 1) /* beyond, all ages are the same */

#define NONE 0 /* nothing under way */
#define SENT 1 /* not executed yet */
#define DONE 2 /* executed, the reply is on its way */

#define NOBODY 3
#define OTHER  4
byte key = NOBODY, ttl, server_steady = WINDOW; /* key: else the client's token, 0 to 2 */
bit  other_releases; /* a release of somebody whose lease may have ended long ago */

byte token;            /* the client's current one; each grant has a fresh one */
bit  wants;            /* it is acquiring, or holds */
byte left;             /* V - now on its clock; 0: not valid */
byte steady = WINDOW;  /* ticks since its clock stood still */
byte ask, ask_age;     /* the acquire; ticks of its clock since the stamp */
bit  ask_yes;
byte release;          /* NONE, SENT */
byte release_token;
byte dead = NOBODY;    /* the last one whose release was executed */

typedef renewal {
    byte at, age, token;
    bit  yes;
};
renewal r[2];
byte i;

#define is_valid (left > 0)
#define is_late(renewal_) (renewal_.at != NONE && renewal_.token == (token + 1) % 3)

inline tick() {
    if /* the server's clock */
    :: server_steady == WINDOW -> server_steady = 1; ttl = (ttl > 2 -> ttl - 2 : 0)
    :: server_steady = (server_steady < WINDOW -> server_steady + 1 : WINDOW); ttl = (ttl > 1 -> ttl - 1 : 0)
    fi;
    key = (ttl == 0 -> NOBODY : key);
    if /* the client's */
    :: steady == WINDOW -> steady = 1
    :: steady = (steady < WINDOW -> steady + 1 : WINDOW);
       left = (left > 0 -> left - 1 : 0);
       ask_age = (ask != NONE && ask_age < OLD -> ask_age + 1 : ask_age);
       r[0].age = (r[0].at != NONE && r[0].age < OLD -> r[0].age + 1 : r[0].age);
       r[1].age = (r[1].at != NONE && r[1].age < OLD -> r[1].age + 1 : r[1].age)
    fi
}

inline give_back() { /* V is withdrawn before the release is listed (P3); the next token is a fresh one */
#ifndef WITHDRAWS_LATE
    left = 0;
#endif
    release = SENT;
    release_token = token;
    wants = 0
}

inline release_is_executed() {
    release = NONE;
#ifdef WITHDRAWS_LATE
    release = DONE;
#endif
    if
    :: key == release_token -> key = NOBODY; ttl = 0
    :: else
    fi;
    dead = release_token;
    release_token = 0
}

inline acquire_is_executed() {
    ask = DONE;
    if
    :: key == NOBODY -> key = token; ttl = TTL; ask_yes = 1
    :: else
    fi
}

inline acquire_is_answered() {
    ask = NONE;
#ifdef DATES_BY_ARRIVAL
    ask_age = 0;
#endif
    if
    :: ask_yes && ask_age < L -> left = L - ask_age
    :: ask_yes && ask_age >= L -> give_back()
    :: !ask_yes -> wants = 0
    fi;
    ask_yes = 0;
    ask_age = 0
}

inline renewal_is_executed() {
    r[i].at = DONE;
    if
    :: key == r[i].token -> ttl = TTL; r[i].yes = 1 /* forward only: no TTL is above this one */
#ifdef RENEWAL_CREATES
    :: key == NOBODY -> key = r[i].token; ttl = TTL; r[i].yes = 1
    :: key == OTHER || key < NOBODY && key != r[i].token
#else
    :: else
#endif
    fi
}

inline renewal_is_answered() {
    r[i].at = NONE;
#ifdef RAISES_THE_DEAD
    if
    :: r[i].yes && L > r[i].age + left -> left = L - r[i].age
#else
    if
    :: r[i].yes && r[i].token == token && is_valid && L > r[i].age + left -> left = L - r[i].age
#endif
    :: else
    fi;
    r[i].yes = 0;
    r[i].age = 0;
    r[i].token = 0
}

init {
    do
    :: atomic {
        if
        :: tick()

        :: key == NOBODY -> key = OTHER; ttl = TTL
        :: key == OTHER -> other_releases = 1; /* and goes on holding, or has lost it long ago */
        :: other_releases -> other_releases = 0;
           if
#ifdef RELEASE_COMPARES_NOTHING
           :: key = NOBODY; ttl = 0
#else
           :: key == OTHER -> key = NOBODY; ttl = 0
           :: else
#endif
           fi

        :: !wants && release == NONE && !is_late(r[0]) && !is_late(r[1]) -> /* three tokens are enough for what is under way */
           token = (token + 1) % 3;
           dead = (dead == token -> NOBODY : dead);
           wants = 1;
           ask = SENT
        :: ask == SENT -> acquire_is_executed()
        :: ask == DONE -> acquire_is_answered()
        :: wants && ask == NONE -> give_back() /* release, or V has passed: LOST */
        :: release == SENT -> release_is_executed()
#ifdef WITHDRAWS_LATE
        :: release == DONE -> release = NONE; left = 0
#endif

        :: wants && ask == NONE && is_valid && r[0].at == NONE -> r[0].at = SENT; r[0].token = token
        :: wants && ask == NONE && is_valid && r[1].at == NONE -> r[1].at = SENT; r[1].token = token
        :: r[0].at == SENT -> i = 0; renewal_is_executed()
        :: r[1].at == SENT -> i = 1; renewal_is_executed()
        :: r[0].at == DONE -> i = 0; renewal_is_answered()
        :: r[1].at == DONE -> i = 1; renewal_is_answered()
        fi;
        i = 0;
        assert(!is_valid || key == token);
        assert(key == NOBODY || key != dead)
       }
    od
}
