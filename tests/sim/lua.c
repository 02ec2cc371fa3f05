/* SPDX-License-Identifier: MIT */
/* lua.c - see lua.h. Compiled scripts are kept by the address of their source. */
#include "tests/sim/lua.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRIPTS_MOST 256

static lua_State *lua;
static struct sim_keyspace *keyspace; /* of the script that runs */
static struct {
    const char *source;
    int function;
} compiled[SCRIPTS_MOST];
static int compiled_count;
static int failed_line; /* of the last call that was refused */

/* ---- into Lua ---- */

static const char *push(lua_State *state, const char *at);

static const char *push_array(lua_State *state, const char *at, int64_t count)
{
    lua_createtable(state, (int)count, 0);
    for (int i = 1; i <= count; i++) {
        at = push(state, at);
        lua_rawseti(state, -2, i);
    }
    return at;
}

static int64_t number_at(const char **at)
{
    bool negative = **at == '-';
    int64_t number = 0;
    for (*at += negative; **at != '\r'; ++*at)
        number = number * 10 + **at - '0';
    *at += 2;
    return negative ? -number : number;
}

/* One reply becomes a Lua value; returns what is behind it. */
static const char *push(lua_State *state, const char *at)
{
    int64_t size;
    char kind = *at++;
    switch (kind) {
    case ':':
        lua_pushnumber(state, (lua_Number)number_at(&at));
        return at;
    case '$':
        size = number_at(&at);
        if (size < 0) {
            lua_pushboolean(state, 0);
            return at;
        }
        lua_pushlstring(state, at, (size_t)size);
        return at + size + 2;
    case '*':
        size = number_at(&at);
        return push_array(state, at, size);
    default: /* + and - */
        size = (int64_t)strcspn(at, "\r");
        lua_createtable(state, 0, 1);
        lua_pushlstring(state, at, (size_t)size);
        lua_setfield(state, -2, kind == '+' ? "ok" : "err");
        return at + size + 2;
    }
}

/* The user's rights, as Redis 7 looks at them inside a script. */
static bool is_forbidden(const struct sim_words *words)
{
    return keyspace->forbidden != NULL && sim_is(words, keyspace->forbidden) &&
           (keyspace->forbidden_key == NULL || strcmp(words->text[1], keyspace->forbidden_key) == 0);
}

static int call(lua_State *state, bool raise)
{
    static struct hfi_buffer reply;
    struct sim_words words;
    char numbers[16][32];
    int number_count = 0;
    words.count = lua_gettop(state);
    if (words.count < 1 || words.count > SIM_WORDS_MOST)
        return luaL_error(state, "Please specify at least one argument for this redis.call() call");
    for (int i = 0; i < words.count; i++) {
        int type = lua_type(state, i + 1);
        if (type == LUA_TSTRING) {
            words.text[i] = lua_tolstring(state, i + 1, &words.size[i]);
        } else if (type == LUA_TNUMBER && number_count < 16) {
            char *text = numbers[number_count++];
            words.size[i] = sim_number_text(text, sizeof numbers[0], lua_tonumber(state, i + 1));
            words.text[i] = text;
        } else {
            return luaL_error(state, "Lua redis lib command arguments must be strings or integers");
        }
    }
    if (is_forbidden(&words))
        sim_reply_error(&reply, "ERR The user executing the script can't run this command or subcommand");
    else
        (void)sim_keyspace_run(keyspace, &words, &reply);
    bool failed = hfi_buffer_data(&reply)[0] == '-';
    lua_Debug caller;
    failed_line = failed && lua_getstack(state, 1, &caller) && lua_getinfo(state, "l", &caller) ? caller.currentline : 0;
    lua_settop(state, 0);
    (void)push(state, hfi_buffer_data(&reply));
    hfi_buffer_eat(&reply, hfi_buffer_size(&reply));
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

/* string.format: Lua's own is the first upvalue. The only format in the scripts, '%.0f' of a whole number that fits a
 * long, gives the number's digits. */
static int format(lua_State *state)
{
    char text[32];
    if (lua_gettop(state) == 2 && lua_type(state, 2) == LUA_TNUMBER && lua_type(state, 1) == LUA_TSTRING &&
        strcmp(lua_tostring(state, 1), "%.0f") == 0) {
        lua_Number number = lua_tonumber(state, 2);
        if (fabs(number) < 9e18 && number == (lua_Number)(int64_t)number &&
            !(number == 0 && signbit(number))) {
            lua_pushlstring(state, text, sim_digits(text, (int64_t)number));
            return 1;
        }
    }
    lua_pushvalue(state, lua_upvalueindex(1));
    lua_insert(state, 1);
    lua_call(state, lua_gettop(state) - 1, 1);
    return 1;
}

/* ---- out of Lua ---- */

static bool take_field(const char *field, char mark, struct hfi_buffer *reply)
{
    lua_getfield(lua, -1, field);
    bool has = lua_type(lua, -1) == LUA_TSTRING;
    if (has)
        sim_reply_line(reply, mark, lua_tostring(lua, -1));
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
    sim_reply_number(reply, '*', count);
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
    const char *text;
    switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
        text = lua_tolstring(lua, -1, &size);
        sim_reply_bulk(reply, text, size);
        break;
    case LUA_TNUMBER:
        sim_reply_number(reply, ':', (int64_t)lua_tonumber(lua, -1));
        break;
    case LUA_TTABLE:
        if (!take_field("err", '-', reply) && !take_field("ok", '+', reply))
            take_array(reply);
        break;
    default:
        if (lua_toboolean(lua, -1))
            sim_reply_number(reply, ':', 1);
        else
            sim_reply_nil(reply);
    }
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
    lua_getglobal(lua, "string");
    lua_getfield(lua, -1, "format");
    lua_pushcclosure(lua, format, 1);
    lua_setfield(lua, -2, "format");
    lua_settop(lua, 0);
}

static int function_of(const char *source)
{
    for (int i = 0; i < compiled_count; i++)
        if (compiled[i].source == source)
            return compiled[i].function;
    if (compiled_count == SCRIPTS_MOST || luaL_loadbuffer(lua, source, strlen(source), "@user_script") != 0)
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

void sim_lua_run(struct sim_keyspace *keys, const char *source, const struct sim_words *words, int first,
                 struct hfi_buffer *reply)
{
    if (lua == NULL)
        open_lua();
    int key_count = atoi(words->text[first]);
    set_words("KEYS", words, first + 1, first + 1 + key_count);
    set_words("ARGV", words, first + 1 + key_count, words->count);
    keyspace = keys;
    keys->wrote = false;
    lua_rawgeti(lua, LUA_REGISTRYINDEX, function_of(source));
    if (lua_pcall(lua, 0, 1, 0) == 0) {
        take(reply);
    } else { /* the error as Redis 7 words it: of a refused command inside the script, or of Lua itself */
        bool refused = lua_type(lua, -1) == LUA_TTABLE;
        if (refused)
            lua_getfield(lua, -1, "err");
        if (!hfi_buffer_print(reply, "-%s%s script: virtual, on @user_script:%d.\r\n", refused ? "" : "ERR ",
                              lua_tostring(lua, -1), failed_line))
            abort();
    }
    lua_settop(lua, 0);
}
