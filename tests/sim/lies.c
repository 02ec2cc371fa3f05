/* SPDX-License-Identifier: MIT */
/*
 * lies.c - forged messages, composed of what a reader of the server's keys knows: tokens that hold, wait or are over,
 * their echoes, keys and channels, of all clients. One combination is left out: a G with an echo of the client whose
 * token it names is a grant, and would be believed (docs/protocol.md, Token and channel).
 */
#include "core/protocol/token.h"
#include "tests/sim/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define OWNER 37 /* the bytes of a token that say whose it is */

static void print_key(char *key, size_t room, int name)
{
    (void)snprintf(key, room, name < SIM_LOCKS ? "hf:{n%d}" : "hf:fetch:{page%d}", name < SIM_LOCKS ? name : name - SIM_LOCKS);
}

static int some_name(void)
{
    return history.pages > 0 && sim_chance(30) ? SIM_LOCKS + (int)sim_between(0, history.pages - 1)
                                               : (int)sim_between(0, history.locks - 1);
}

/* A token that the server has seen; sometimes with another random digit, as an operator's break leaves it. */
static bool some_token(char token[HFI_TOKEN_CAPACITY], int *name)
{
    const char *found = sim_tokens_some(name);
    if (found == NULL)
        return false;
    (void)snprintf(token, HFI_TOKEN_CAPACITY, "%s", found);
    if (sim_chance(20))
        token[OWNER + strcspn(token + OWNER, ":") + (size_t)sim_between(1, 16)] = "0123456789abcdef"[sim_between(0, 15)];
    return true;
}

/* The echo of the last acquire of a waiting token; 0: no token waits. */
static int64_t some_echo(const char *token)
{
    char waiter[HFI_TOKEN_CAPACITY], key[40], field[100];
    struct hfi_buffer reply = {0};
    long long echo = 0;
    int name;
    if (!some_token(waiter, &name))
        return 0;
    print_key(key, sizeof key, name);
    int tag = name < SIM_LOCKS ? name : name - SIM_LOCKS;
    (void)snprintf(field, sizeof field, "hf:wait:{%s%d}:%s", name < SIM_LOCKS ? "n" : "page", tag, key);
    struct sim_words words = {.count = 3, .text = {"HGET", field, waiter}};
    for (int i = 0; i < words.count; i++)
        words.size[i] = strlen(words.text[i]);
    sim_server->keys.now_us = sim_server_us();
    if (!sim_keyspace_run(&sim_server->keys, &words, &reply) || !hfi_buffer_append(&reply, "", 1))
        abort();
    (void)sscanf(hfi_buffer_data(&reply), "$%*d\r\n%*d %lld", &echo);
    hfi_buffer_done(&reply);
    return strncmp(token, waiter, OWNER) == 0 ? echo + sim_between(1, 1000000) : echo;
}

static size_t compose(char *text, size_t room, char letter, const char *token)
{
    char other[HFI_TOKEN_CAPACITY], key[40];
    int name, size = 0;
    print_key(key, sizeof key, some_name());
    switch (letter) {
    case 'G':
        size = snprintf(text, room, "G %s %" PRId64 " %" PRId64 " %s", token, some_echo(token),
                        (sim_server_us() + sim_between(0, 10000000)) * 2048, key);
        break;
    case 'R':
        size = snprintf(text, room, "R %s %s", token, key);
        break;
    case 'B':
        if (sim_chance(20) || !some_token(other, &name))
            (void)snprintf(other, sizeof other, "-");
        else if (sim_chance(50)) { /* what this very token could have been broken into */
            (void)snprintf(other, sizeof other, "%s", token);
            other[OWNER + strcspn(other + OWNER, ":") + 1] = "0123456789abcdef"[sim_between(0, 15)];
        }
        size = snprintf(text, room, "B %s %s", token, other);
        break;
    case 'I':
        if (some_token(other, &name))
            size = snprintf(text, room, "I %s hf:c:%.32s", token, other + 4);
        break;
    case 'A':
        size = snprintf(text, room, "A %s %" PRId64 " 12 somebody", token, sim_between(0, INT64_MAX));
        break;
    default:
        size = snprintf(text, room, "%c %s", letter, token);
        break;
    }
    return (size_t)size;
}

void sim_lie(void)
{
    char token[HFI_TOKEN_CAPACITY], other[HFI_TOKEN_CAPACITY], channel[64], text[600];
    int name, asked;
    if (!some_token(token, &name))
        return;
    size_t size = compose(text, sizeof text, "GGRRFBBBIAPX"[sim_between(0, 11)], token);
    bool to_another = sim_chance(10) && some_token(other, &asked);
    (void)snprintf(channel, sizeof channel, "hf:c:%.32s", (to_another ? other : token) + 4);
    sim_say("somebody says to %s: %s", channel, text);
    int process = sim_watch_owner(token);
    if (process > 0 && process <= SIM_PROCESSES) /* it may ask about what it hears */
        sim_oracle_calls(&history.oracle, process, name);
    (void)sim_server->keys.publish(NULL, channel, strlen(channel), text, size);
}
