/* SPDX-License-Identifier: MIT */
/*
 * script_stand.h - a script by itself on the virtual server, whose time stands still (tests/sim/server_test.c
 * compares it with a real one). One line is one call. In it and in the answer K Q W H F V M T U are the keys (lock, queue,
 * waiters, readers, fences, value, absent mark, two tags), A B C D E the tokens of five clients, X and Y other programs'
 * values, `now` the server's time in us, F+1 the first fence above (now + 2 s) x 2048; a_b is one word with a blank in it,
 * _ an empty one, A#2 the second permit of A. ` | A< R
 * B K`: the message that A's client was sent. An error comes without the script's line.
 */
#ifndef HFT_SCRIPT_STAND_H
#define HFT_SCRIPT_STAND_H

#include "core/protocol/scripts.h"

#include <stdbool.h>

int hft_scripts_begin(void **state); /* set-up of a case: an empty server, its fence counter ahead of its clock */

/* Runs the script (NULL: the line is a command); returns its answer, then the messages that it published. */
const char *hft_script(const char *line, const struct hfi_script *script);
const char *tell(const char *line);
extern const char *hft_hearers; /* clients whose channels somebody listens to: "abcde" at first */
extern int hft_monitors;        /* who listen to everything by a pattern: 0 at first */
/* Forbids scripts to run it on "K" (NULL: on any key); command NULL: allows all again. */
void hft_forbid(const char *command, const char *key);
#define NO_RIGHT "ERR The user executing the script can't run this command or subcommand"
extern int hft_behind_us; /* the server's clock has gone so far back from `now`: 0 at first */
void hft_fill_memory(bool full);
/* These wait in this order, with fresh records: "ABD" at 1, 2, 3. */
void wait_in_line(const char *tokens);

#define IS(line, answer) assert_string_equal(tell(line), answer)
#define SAYS(script, line, answer) assert_string_equal(hft_script(line, hfi_script_##script), answer)
#define LOCK  "4 K Q W F "
#define FETCH "6 K Q W F V M "
#define TAGGED "8 K Q W F V M T U "

#endif
