/* SPDX-License-Identifier: MIT */
/*
 * hand_off.pml - three processes and one key that is passed on; grant messages are lost, doubled and late, a waiter is
 * killed, leases of paused ones end. (core/policy/entry.c, entry_queue.c, core/scripts/acquire.lua, hand_off.lua,
 * release.lua; P2, P4, P6, P7.)
 *
 * Promise: no two holders, and who waits and lives gets its turn.
 *
 * Without a clock. What lease.pml shows about time is one step here, `ends`: when a key ends at the server, every V that
 * was dated by a stamp from before its TTL was set is over, and so is every V that a message or a reply under way could
 * still bring (L1, P2); a V dated otherwise goes on. Only a killed holder's key ends, and that of a paused one, PAUSES
 * times: a live one renews. Acquire and release are executed, then answered; a grant message may come in between.
 */
#define N      3
#define KILLED 2 /* the one that may be killed */
#ifndef PAUSES
#define PAUSES 1
#endif
#ifndef COPIES
#define COPIES 2
#endif
#define NOBODY 255

#define OUT       0
#define ANSWERED  1 /* an acquire was executed; the reply is on its way */
#define WAITING   2
#define HOLDING   3
#define RELEASING 4 /* V withdrawn, release listed */
#define DEAD      5

#define BUSY    0
#define QUEUED  1
#define GRANTED 2

typedef process {
    byte at;
    bit  token;      /* the current one; each acquire has a fresh one */
    byte reply;      /* while ANSWERED */
    bit  reply_over; /* the V that it would bring has passed */
    bit  valid;      /* V */
    bit  by_stamp;   /* V was dated by a stamp from before the TTL was set */
    bit  fresh;      /* its record in the queue */
    byte grants;     /* copies of the last grant message on their way to it */
    bit  grant_token, grant_over;
};

process p[N];
byte key = NOBODY;   /* 2 * process + token */
byte queue[N] = NOBODY, count;
byte pauses = PAUSES;
bit  kept;           /* of hand_off: somebody has it now */
byte i, j, k, reserve, head;

#define name(who) (2 * (who) + p[who].token)
#define waits(who) (p[who].at == ANSWERED || p[who].at == WAITING)
#define in_queue(who) (count > 0 && queue[0] == name(who) || count > 1 && queue[1] == name(who) || \
                       count > 2 && queue[2] == name(who))
#define is_heard(who) (p[who].at != DEAD)

inline becomes_valid(who, dated) {
    p[who].valid = 1;
    p[who].by_stamp = dated;
    p[who].at = HOLDING;
    assert(!(p[0].valid && p[1].valid || p[0].valid && p[2].valid || p[1].valid && p[2].valid))
}

inline leave(token_) {
    k = 0;
    do
    :: k < count && queue[k] == token_ ->
       do
       :: k + 1 < count -> queue[k] = queue[k + 1]; k++
       :: else -> break
       od;
       count--;
       queue[count] = NOBODY;
       break
    :: k < count && queue[k] != token_ -> k++
    :: k >= count -> break
    od;
    k = 0
}

inline commit(token_) {
    leave(token_);
#ifndef GRANT_WITHOUT_KEY
    key = token_;
#endif
    kept = 1
}

/* hand_off.lua. `me` is NOBODY for a release. Sets kept if the key is somebody's now. */
inline hand_off(me) {
    kept = 0;
    reserve = NOBODY;
    j = 0;
    do
    :: j >= count -> break
    :: j < count ->
#ifdef LAST_COMES_FIRST
       head = queue[count - 1 - j];
#else
       head = queue[j];
#endif
       if
       :: head == me -> break /* the caller itself, unless one in reserve is before it and nobody hears the caller: it does */
       :: head != me && !p[head / 2].fresh -> leave(head)
       :: head != me && p[head / 2].fresh && is_heard(head / 2) ->
          if
          :: commit(head);
             p[head / 2].grants = COPIES; /* arrives once, twice... */
             p[head / 2].grant_token = head % 2;
             p[head / 2].grant_over = 0
          :: commit(head); /* ...or never */
             p[head / 2].grants = 0;
             p[head / 2].grant_token = 0;
             p[head / 2].grant_over = 0
          fi;
          break
       :: head != me && p[head / 2].fresh && !is_heard(head / 2) ->
          reserve = (reserve == NOBODY -> head : reserve);
          j++
       fi
    od;
    if
    :: !kept && reserve != NOBODY && (j >= count || me == NOBODY) -> commit(reserve)
    :: else
    fi;
    j = 0; head = 0; reserve = 0
}

inline acquire_is_executed(me) {
    p[me].reply_over = 0;
    if
    :: key == name(me) -> leave(name(me)); p[me].reply = GRANTED
    :: else ->
       kept = (key != NOBODY);
       if
       :: !kept && count > 0 -> hand_off(name(me))
       :: else
       fi;
       if
       :: !kept -> leave(name(me)); key = name(me); p[me].reply = GRANTED
       :: else ->
          p[me].reply = QUEUED;
          p[me].fresh = 1;
          k = 0;
          do
          :: k < count && queue[k] != name(me) -> k++
          :: else -> break
          od;
          if
          :: k == count -> queue[count] = name(me); count++
          :: else
          fi;
          k = 0
       fi
    fi;
    kept = 0;
    p[me].at = ANSWERED
}

inline native_is_executed(me) {
    p[me].reply_over = 0;
    p[me].reply = (key == NOBODY -> GRANTED : BUSY);
    key = (key == NOBODY -> name(me) : key);
    p[me].at = ANSWERED
}

inline is_answered(me) {
    if
    :: p[me].reply == BUSY -> p[me].at = WAITING /* and asks by script */
    :: p[me].reply == QUEUED -> p[me].at = WAITING
    :: p[me].reply == GRANTED && !p[me].reply_over -> becomes_valid(me, 1)
    :: p[me].reply == GRANTED && p[me].reply_over -> p[me].at = RELEASING
    fi;
    p[me].reply = 0;
    p[me].reply_over = 0
}

/* A message counts only for the token that waits; too little left of its V: ask at once. */
inline grant_arrives(me) {
    p[me].grants--;
    if
    :: (p[me].at == WAITING || p[me].at == ANSWERED && p[me].reply == QUEUED) &&
       p[me].grant_token == p[me].token ->
       if
#ifdef DATES_BY_ARRIVAL
       :: p[me].reply = 0; becomes_valid(me, !p[me].grant_over)
#else
       :: !p[me].grant_over -> p[me].reply = 0; becomes_valid(me, 1)
       :: p[me].grant_over -> p[me].reply = 0; p[me].at = WAITING; acquire_is_executed(me)
#endif
       fi
    :: else
    fi;
    if
    :: p[me].grants == 0 -> p[me].grant_token = 0; p[me].grant_over = 0
    :: else
    fi
}

inline release_is_executed(me) {
    leave(name(me));
    if
#ifdef RELEASE_COMPARES_NOTHING
    :: true ->
#else
    :: key == name(me) ->
#endif
       hand_off(NOBODY);
       key = (kept -> key : NOBODY);
       kept = 0
#ifndef RELEASE_COMPARES_NOTHING
    :: else
#endif
    fi;
    p[me].at = OUT;
    p[me].by_stamp = 1;
    p[me].fresh = 0;
#ifndef TOKEN_IS_USED_AGAIN
    p[me].token = 1 - p[me].token;
    p[me].grants = (p[me].grant_token == p[me].token -> 0 : p[me].grants) /* two tokens are enough for what is under way */
#endif
}

proctype one(byte me) {
    do
    :: atomic { p[me].at == OUT -> native_is_executed(me) }
    :: atomic { p[me].at == ANSWERED -> is_answered(me) }
#ifdef NOBODY_ASKS_AGAIN
    :: atomic { p[me].at == WAITING && !in_queue(me) && key != name(me) -> acquire_is_executed(me) } /* the first time */
#else
    :: atomic { p[me].at == WAITING -> acquire_is_executed(me) } /* the first time, and the timed re-check */
#endif
    :: atomic { p[me].grants > 0 && p[me].at != DEAD -> grant_arrives(me) }
    :: atomic { p[me].at == HOLDING -> p[me].valid = 0; p[me].at = RELEASING } /* release; or V has passed: LOST, released too */
    :: atomic { p[me].at == RELEASING -> release_is_executed(me) }
    :: atomic { me == KILLED && p[me].at != DEAD -> p[me].at = DEAD; p[me].valid = 0; p[me].by_stamp = 1;
                p[me].reply = 0; p[me].reply_over = 0; p[me].grants = 0; p[me].grant_token = 0; p[me].grant_over = 0 }
    :: p[me].at == DEAD -> break
    od
}

#define owner (key / 2)

/* The server's clock: keys end, and a record that is not renewed goes stale. */
proctype server() {
    do
    :: atomic {
        key != NOBODY && (p[owner].at == DEAD || pauses > 0) ->
        if
        :: p[owner].at == DEAD
        :: else -> pauses--
        fi;
        i = owner;
        p[i].valid = (p[i].by_stamp -> 0 : p[i].valid);
        p[i].reply_over = (p[i].at == ANSWERED && p[i].reply == GRANTED && key == name(i) -> 1 : p[i].reply_over);
        p[i].grant_over = (p[i].grants > 0 && key == 2 * i + p[i].grant_token -> 1 : p[i].grant_over);
        key = NOBODY;
        i = 0
       }
    :: atomic { p[KILLED].at == DEAD && p[KILLED].fresh -> p[KILLED].fresh = 0 }
    od
}

init {
    atomic {
        i = 0;
        do
        :: i < N -> queue[i] = NOBODY; p[i].by_stamp = 1; run one(i); i++
        :: else -> break
        od;
        i = 0;
        run server()
    }
}

ltl first_gets_it  { [] (waits(0) -> <> (p[0].at == HOLDING || p[0].at == RELEASING)) }
