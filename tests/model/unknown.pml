/* SPDX-License-Identifier: MIT */
/*
 * unknown.pml - acquires without an answer: they may be executed later, even after a release on another connection.
 * (core/lock/retire.c, core/policy/entry_queue.c trouble() and answered_busy(), core/lock/perform.c asked(); L6, P1, P5.)
 *
 * Promise: no two holders, and a token that its live process has given up never keeps a name for ever: whoever else
 * waits gets it, without the help of the key's expiry.
 *
 * One process whose connection breaks as often as it likes, CUTS times; what was under way then is executed at any later
 * time or never, until its not_after has passed at the server (of the native form: until its own TTL would be over). A
 * second process wants the name now and then. As in hand_off.pml an end of the key is one step, and it takes with it what
 * was dated by a stamp from before the TTL was set; it ends only under a live holder who pauses, PAUSES times.
 */
#ifndef CUTS
#define CUTS 3
#endif
#ifndef PAUSES
#define PAUSES 1
#endif
#define NOBODY 255
#define OTHER  254
#define SLOTS  3 /* acquires that may be under way at once on connections that are gone */

#define OUT     0
#define ASKED   1 /* an acquire is under way on the connection that is up */
#define DONE    2 /* executed, its reply is on its way */
#define UNCLEAR 3 /* the connection broke: ask again, or give up */
#define HOLDING 4

/* The process. Tokens are 0, 1, 2, each given up before the next. */
byte at = OUT, token, cuts = CUTS, pauses = PAUSES;
bit  native, granted, reply_over, valid, by_stamp = 1, unclear, extended;
/* Closing the token before: */
bit  closing;
byte closed_token;
bit  closing_unclear;

/* Late acquires: who asked, and whether the server would still obey. */
typedef late {
    bit  is, native, past; /* past: its last chance is over */
    byte token;
};
late l[SLOTS];

byte key = NOBODY;
byte other = OUT; /* OUT, UNCLEAR: it waits, HOLDING */
byte i;

#define surely_over(t) (!(l[0].is && l[0].token == t && !l[0].past) && !(l[1].is && l[1].token == t && !l[1].past) && \
                        !(l[2].is && l[2].token == t && !l[2].past))
#define is_under_way(t) (l[0].is && l[0].token == t || l[1].is && l[1].token == t || l[2].is && l[2].token == t)

#define is_orphan (key < 3 && !(key == token && at != OUT) && !(closing && key == closed_token))

inline becomes_valid() {
    at = HOLDING;
    valid = 1;
    assert(other != HOLDING)
}

/* What the server does with an acquire of token t. Sets granted if it is t's. */
inline execute(t, native_) {
    if
    :: key == NOBODY -> key = t; granted = 1; extended = 1
    :: key == t && !native_ -> granted = 1
#ifndef YOURS_WITHOUT_EXTENDING
       ; extended = 1
#endif
    :: key == t && native_ -> granted = 0
    :: key != NOBODY && key != t -> granted = 0
    fi
}

inline give_up() {
    valid = 0;
    by_stamp = 1;
    closing = 1;
    closed_token = token;
    closing_unclear = unclear;
    next_token()
}

inline next_token() {
    at = OUT;
    native = 0; granted = 0; reply_over = 0; unclear = 0; extended = 0;
    token = (token + 1) % 3
}

inline goes_late() { /* the connection breaks under an acquire that is not executed */
    i = (l[0].is -> (l[1].is -> 2 : 1) : 0);
    if
    :: !l[i].is -> l[i].is = 1; l[i].token = token; l[i].native = native
    :: l[i].is /* no room: say that this one is never executed */
    fi;
    i = 0
}

inline is_forgotten(n) { l[n].is = 0; l[n].past = 0; l[n].token = 0; l[n].native = 0 }

inline late_one(n) {
    if /* without a rule the server obeys whenever it comes */
#ifdef NO_NOT_AFTER
    :: true ->
#else
    :: !l[n].past ->
#endif
       if
       :: key == NOBODY -> key = l[n].token; assert(!is_orphan)
       :: else
       fi
    :: l[n].past /* LATE, or never executed */
    fi;
    is_forgotten(n)
}

active proctype process() {
    do
    :: atomic { at == OUT && !closing && !is_under_way(token) -> at = ASKED; native = 1 }
    :: atomic { at == ASKED -> execute(token, native); at = DONE }
    :: atomic { at == ASKED && cuts > 0 -> cuts--; goes_late(); at = UNCLEAR; unclear = 1 }
    :: atomic { at == DONE && cuts > 0 -> cuts--; at = UNCLEAR; unclear = 1; granted = 0; reply_over = 0; extended = 0 }
    :: atomic { at == DONE && granted && !reply_over -> by_stamp = extended; granted = 0; extended = 0; becomes_valid() }
    :: atomic { at == DONE && granted && reply_over -> give_up() }
    :: atomic { at == DONE && !granted ->
        if /* held by another: go on waiting by script, or be gone */
        :: native = 0; at = ASKED
        :: !unclear -> next_token() /* never executed: nothing to close */
#ifdef NATIVE_AGAIN
        :: unclear && native -> next_token() /* "somebody else has it": its own SET */
#endif
        :: unclear || !native -> give_up()
        fi
       }
#ifdef FRESH_TOKEN_AFTER_DOUBT
    :: atomic { at == UNCLEAR -> next_token() }
#endif
#ifdef NATIVE_AGAIN
    :: atomic { at == UNCLEAR -> native = 1; at = ASKED }
#endif
    :: atomic { at == UNCLEAR -> native = 0; at = ASKED } /* the same token, by script */
    :: atomic { at == UNCLEAR -> give_up() }
    :: atomic { at == HOLDING -> give_up() } /* release, or LOST */
    od
}

active proctype closer() {
    do
    :: atomic { closing -> /* one release that is executed and answered */
        if
        :: key == closed_token -> key = NOBODY
        :: else
        fi;
        if
#ifndef ONE_RELEASE_IS_ENOUGH
        :: closing_unclear && !surely_over(closed_token) /* its server time is not past: again later */
        :: !closing_unclear || surely_over(closed_token) ->
#else
        :: true ->
#endif
           closing = 0; closing_unclear = 0; closed_token = 0;
           assert(!is_orphan)
        fi
       }
    od
}

/* The network and the server's clock. */
active proctype server() {
    do
    :: atomic { l[0].is -> late_one(0) }
    :: atomic { l[1].is -> late_one(1) }
    :: atomic { l[2].is -> late_one(2) }
    od
}
active proctype clock() {
    do
    :: atomic { l[0].is && !l[0].past -> l[0].past = 1 }
    :: atomic { l[1].is && !l[1].past -> l[1].past = 1 }
    :: atomic { l[2].is && !l[2].past -> l[2].past = 1 }
    :: atomic { key == token && pauses > 0 && (valid || at == DONE && granted) ->
        pauses--;
        valid = (by_stamp -> 0 : valid);
        reply_over = (at == DONE && granted && extended -> 1 : reply_over);
        key = NOBODY
       }
    od
}

active proctype another() {
    do
    :: atomic { other == OUT -> other = UNCLEAR }
    :: atomic { other == UNCLEAR && key == NOBODY -> key = OTHER; other = HOLDING; assert(!valid) }
    :: atomic { other == HOLDING -> key = NOBODY; other = OUT }
    od
}


ltl nobody_is_blocked { [] (is_orphan -> <> !is_orphan) }
