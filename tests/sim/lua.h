/* SPDX-License-Identifier: MIT */
/* lua.h - runs the real scripts in Lua 5.1 as Redis runs them: KEYS, ARGV, redis.call, redis.pcall, and Redis's
 * conversion of numbers, nils and tables in both directions. */
#ifndef SIM_LUA_H
#define SIM_LUA_H

#include "tests/sim/keyspace.h"

/* Runs the source with words[first ..] (the number of keys, the keys, the arguments) and appends the reply. */
void sim_lua_run(struct sim_keyspace *keys, const char *source, const struct sim_words *words, int first,
                 struct hfi_buffer *reply);

#endif
