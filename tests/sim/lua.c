/* SPDX-License-Identifier: MIT */
/* lua.c - see lua.h. Compiled scripts are kept by the address of their source. */
#include "tests/sim/lua.h"

#include <inttypes.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRIPTS_MOST 64

static lua_State *lua;
static struct sim_keyspace *keyspace; /* of the script that runs */
static struct {
    const char *source;
    int function;
} compiled[SCRIPTS_MOST];
static int compiled_count;

/* ---- into Lua ---- */

static const char *push(lua_State *state, const char *at);

static const char *push_array(lua_State *state, const char *at, long count)
{
    lua_createtable(state, (int)count, 0);
    for (int i = 1; i <= count; i++) {
        at = push(state, at);
        lua_rawseti(state, -2, i);
    }
    return at;
}

/* One reply becomes a Lua value; returns what is behind it. */
static const char *push(lua_State *state, const char *at)
{
    char *end = strchr(at, '\r');
    char kind = *at++;
    long number = strtol(at, NULL, 10);
    switch (kind) {
    case ':':
        lua_pushnumber(state, (lua_Number)strtoll(at, NULL, 10));
        return end + 2;
    case '$':
        if (number < 0) {
            lua_pushboolean(state, 0);
            return end + 2;
        }
        lua_pushlstring(state, end + 2, (size_t)number);
        return end + 2 + number + 2;
    case '*':
        return push_array(state, end + 2, number);
    default: /* + and - */
        lua_createtable(state, 0, 1);
        lua_pushlstring(state, at, (size_t)(end - at));
        lua_setfield(state, -2, kind == '+' ? "ok" : "err");
        return end + 2;
    }
}

static int call(lua_State *state, bool raise)
{
    struct sim_words words = {.count = lua_gettop(state)};
    char numbers[16][32];
    int number_count = 0;
    struct hfi_buffer reply = {0};
    if (words.count < 1 || words.count > SIM_WORDS_MOST)
        return luaL_error(state, "Please specify at least one argument for this redis.call() call");
    for (int i = 0; i < words.count; i++) {
        if (lua_type(state, i + 1) == LUA_TNUMBER && number_count < 16) {
            char *text = numbers[number_count++];
            words.size[i] = (size_t)snprintf(text, sizeof numbers[0], "%.17g", lua_tonumber(state, i + 1));
            words.text[i] = text;
        } else if (lua_type(state, i + 1) == LUA_TSTRING) {
            words.text[i] = lua_tolstring(state, i + 1, &words.size[i]);
        } else {
            return luaL_error(state, "Lua redis lib command arguments must be strings or integers");
        }
    }
    (void)sim_keyspace_run(keyspace, &words, &reply);
    if (!hfi_buffer_append(&reply, "", 1))
        abort();
    bool failed = hfi_buffer_data(&reply)[0] == '-';
    lua_settop(state, 0);
    (void)push(state, hfi_buffer_data(&reply));
    hfi_buffer_done(&reply);
    return failed && raise ? lua_error(state) : 1;
}

static int redis_call(lua_State *state)
{
    return call(state, true);
}

static int redis_pcall(lua_State *state)
{
    return call(state, false);
}

/* ---- out of Lua ---- */

static bool take_field(const char *field, const char *mark, struct hfi_buffer *reply)
{
    lua_getfield(lua, -1, field);
    bool has = lua_type(lua, -1) == LUA_TSTRING;
    if (has && !hfi_buffer_print(reply, "%s%s\r\n", mark, lua_tostring(lua, -1)))
        abort();
    lua_pop(lua, 1);
    return has;
}

static void take(struct hfi_buffer *reply);

/* Up to the first nil, as Redis does. */
static void take_array(struct hfi_buffer *reply)
{
    int count = 0;
    for (;; count++) {
        lua_rawgeti(lua, -1, count + 1);
        bool over = lua_isnil(lua, -1);
        lua_pop(lua, 1);
        if (over)
            break;
    }
    if (!hfi_buffer_print(reply, "*%d\r\n", count))
        abort();
    for (int i = 1; i <= count; i++) {
        lua_rawgeti(lua, -1, i);
        take(reply);
        lua_pop(lua, 1);
    }
}

/* What is on top of the stack becomes a reply. */
static void take(struct hfi_buffer *reply)
{
    size_t size;
    bool ok = true;
    switch (lua_type(lua, -1)) {
    case LUA_TSTRING: {
        const char *text = lua_tolstring(lua, -1, &size);
        sim_reply_bulk(reply, text, size);
        break;
    }
    case LUA_TNUMBER:
        ok = hfi_buffer_print(reply, ":%lld\r\n", (long long)lua_tonumber(lua, -1));
        break;
    case LUA_TBOOLEAN:
        ok = hfi_buffer_print(reply, lua_toboolean(lua, -1) ? ":1\r\n" : "$-1\r\n");
        break;
    case LUA_TTABLE:
        if (!take_field("err", "-", reply) && !take_field("ok", "+", reply))
            take_array(reply);
        break;
    default:
        ok = hfi_buffer_print(reply, "$-1\r\n");
    }
    if (!ok)
        abort();
}

/* ---- running ---- */

static void open_lua(void)
{
    static const luaL_Reg functions[] = {{"call", redis_call}, {"pcall", redis_pcall}, {NULL, NULL}};
    lua = luaL_newstate();
    if (lua == NULL)
        abort();
    luaL_openlibs(lua);
    luaL_register(lua, "redis", functions);
    lua_settop(lua, 0);
}

static int function_of(const char *source, size_t size)
{
    for (int i = 0; i < compiled_count; i++)
        if (compiled[i].source == source)
            return compiled[i].function;
    if (compiled_count == SCRIPTS_MOST || luaL_loadbuffer(lua, source, size, "@user_script") != 0)
        abort();
    compiled[compiled_count].source = source;
    compiled[compiled_count].function = luaL_ref(lua, LUA_REGISTRYINDEX);
    return compiled[compiled_count++].function;
}

static void set_words(const char *name, const struct sim_words *words, int from, int to)
{
    lua_createtable(lua, to - from, 0);
    for (int i = from; i < to; i++) {
        lua_pushlstring(lua, words->text[i], words->size[i]);
        lua_rawseti(lua, -2, i - from + 1);
    }
    lua_setglobal(lua, name);
}

void sim_lua_run(struct sim_keyspace *keys, const char *source, size_t size, const struct sim_words *words,
                 int first, struct hfi_buffer *reply)
{
    if (lua == NULL)
        open_lua();
    int key_count = atoi(words->text[first]);
    set_words("KEYS", words, first + 1, first + 1 + key_count);
    set_words("ARGV", words, first + 1 + key_count, words->count);
    keyspace = keys;
    keys->wrote = false;
    lua_rawgeti(lua, LUA_REGISTRYINDEX, function_of(source, size));
    if (lua_pcall(lua, 0, 1, 0) != 0 && lua_type(lua, -1) != LUA_TTABLE) {
        if (!hfi_buffer_print(reply, "-ERR %s script: virtual, on @user_script\r\n", lua_tostring(lua, -1)))
            abort();
    } else {
        take(reply);
    }
    lua_settop(lua, 0);
}
