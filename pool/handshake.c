/* SPDX-License-Identifier: MIT */
/* handshake.c - the stages of the handshake: AUTH alone; then SELECT, CLIENT SETNAME, ROLE, INFO and, on a lane, SCRIPT
 * EXISTS; then, on a lane, SCRIPT LOAD of the missing scripts and the owner's command (ops->handshake_floor). Each
 * stage is one pipeline. */
#include "pool/handshake.h"
#include "pool/command.h"
#include "pool/peer.h"
#include "pool/replies.h"
#include "pool/script.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OLDEST_VERSION 60000

enum stage { BEFORE, AUTH, HELLO, GREET, OVER };
enum question { ASK_AUTH, ASK_SELECT, ASK_NAME, ASK_ROLE, ASK_ID, ASK_INFO, ASK_EXISTS, ASK_LOAD, ASK_WAIT, ASK_TIME, ASK_GREETING };

void hfi_handshake_init(struct hfi_handshake *handshake, struct hfi_peer *peer,
                        enum hfi_dial_purpose purpose, int lane)
{
    *handshake = (struct hfi_handshake){
        .peer = peer, .deployment = peer->deployment, .purpose = purpose, .lane = lane, .stage = BEFORE};
    handshake->server.uptime_s = -1;
    handshake->client_id = -1;
    if (purpose != HFI_DIAL_LANE)
        return;
    struct hfi_server known; /* most likely it still is the one that lanes met before; INFO says whether it is */
    hfi_peer_server(peer, &known);
    handshake->server.clock_by_key = hfi_peer_clock_by_key(peer, &known);
}

void hfi_handshake_done(struct hfi_handshake *handshake)
{
    if (handshake->out.bytes != NULL)
        explicit_bzero(handshake->out.bytes, handshake->out.capacity);
    hfi_buffer_done(&handshake->out);
    if (handshake->loads)
        handshake->peer->loading--;
    handshake->loads = false;
    hfi_command_unref(handshake->handshake_floor);
    handshake->handshake_floor = NULL;
}

static bool add_word(struct hfi_handshake *handshake, const char *word)
{
    return hfi_buffer_print(&handshake->out, "$%zu\r\n", strlen(word)) &&
           hfi_buffer_append(&handshake->out, word, strlen(word)) && hfi_buffer_append(&handshake->out, "\r\n", 2);
}

/* Framed here, not by hiredis, whose copies of a password would not be wiped. The caller appends `count` words. */
static bool begin_question(struct hfi_handshake *handshake, enum question question, int count)
{
    if (handshake->asked_count == HFI_HANDSHAKE_MOST || !hfi_buffer_print(&handshake->out, "*%d\r\n", count))
        return false;
    handshake->asked[handshake->asked_count++] = (unsigned char)question;
    return true;
}

static bool ask(struct hfi_handshake *handshake, enum question question, const char *first, const char *second,
                const char *third)
{
    int count = second == NULL ? 1 : third == NULL ? 2 : 3;
    return begin_question(handshake, question, count) && add_word(handshake, first) && (count < 2 || add_word(handshake, second)) &&
           (count < 3 || add_word(handshake, third));
}

static bool ask_auth(struct hfi_handshake *handshake)
{
    const struct hfi_endpoint *endpoint = handshake->peer->endpoint;
    /* A user without a password sends an empty one: without AUTH the connection would be the server's default user. */
    const char *password = endpoint->password != NULL ? endpoint->password : "";
    if (endpoint->user == NULL && endpoint->password == NULL)
        return true;
    if (hfi_buffer_reserve(&handshake->out, 1024 + strlen(password)) == NULL) /* never moves, so it is wiped whole */
        return false;
    if (endpoint->user != NULL)
        return ask(handshake, ASK_AUTH, "AUTH", endpoint->user, password);
    return ask(handshake, ASK_AUTH, "AUTH", password, NULL);
}

static const struct hfi_script *script(const struct hfi_handshake *handshake, int number)
{
    const struct hfi_script *const *scripts = handshake->deployment->ops.scripts;
    const struct hfi_script *wanted = scripts != NULL ? scripts[number] : NULL;
    return wanted != NULL && wanted->clock == HFI_ASKS_TIME && handshake->server.clock_by_key ? hfi_script_other(wanted) : wanted;
}

static bool ask_for_scripts(struct hfi_handshake *handshake)
{
    int count = 0;
    while (script(handshake, count) != NULL)
        count++;
    handshake->lacks = ((uint64_t)1 << count) - 1;
    bool ok = count == 0 || (begin_question(handshake, ASK_EXISTS, 2 + count) && add_word(handshake, "SCRIPT") &&
                             add_word(handshake, "EXISTS"));
    for (int i = 0; ok && i < count; i++)
        ok = add_word(handshake, script(handshake, i)->sha1);
    return ok;
}

static bool ask_identity(struct hfi_handshake *handshake)
{
    const struct hfi_pool_settings *settings = &handshake->deployment->settings;
    int number = handshake->peer->endpoint->database;
    char database[16];
    bool ok = true;
    if (handshake->purpose == HFI_DIAL_CLOCK) {
        handshake->asked_ns = hfi_now(handshake->deployment->clock);
        return ask(handshake, ASK_TIME, "TIME", NULL, NULL);
    }
    (void)snprintf(database, sizeof database, "%d", number);
    if (number != 0 && handshake->purpose != HFI_DIAL_SUBSCRIBER && handshake->purpose != HFI_DIAL_TRACKER)
        ok = ask(handshake, ASK_SELECT, "SELECT", database, NULL);
    if (settings->client_name != NULL && settings->client_name[0] != 0)
        ok = ok && ask(handshake, ASK_NAME, "CLIENT", "SETNAME", settings->client_name);
    ok = ok && ask(handshake, ASK_ROLE, "ROLE", NULL, NULL);
    if (handshake->purpose == HFI_DIAL_TRACKER)
        ok = ok && ask(handshake, ASK_ID, "CLIENT", "ID", NULL);
    if (handshake->purpose != HFI_DIAL_BORROWER)
        ok = ok && ask(handshake, ASK_INFO, "INFO", "server", NULL);
    if (handshake->purpose == HFI_DIAL_LANE)
        ok = ok && ask_for_scripts(handshake);
    if (handshake->purpose == HFI_DIAL_LANE && settings->replicas != 0) /* is there such a command, and the right to it? */
        ok = ok && ask(handshake, ASK_WAIT, "WAIT", "0", "0");
    return ok;
}

static bool ask_floor(struct hfi_handshake *handshake)
{
    handshake->asked_ns = hfi_now(handshake->deployment->clock);
    if (handshake->asked_count == HFI_HANDSHAKE_MOST ||
        !hfi_buffer_append(&handshake->out, handshake->handshake_floor->bytes, handshake->handshake_floor->size))
        return false;
    handshake->asked[handshake->asked_count++] = ASK_GREETING;
    return true;
}

/* Of the connections dialled within connect_ms, one loads the scripts for all. The other connections find them loaded
 * when they need them, or send them again as EVAL. */
static bool ask_load(struct hfi_handshake *handshake)
{
    struct hfi_peer *peer = handshake->peer;
    const struct hfi_deployment *deployment = handshake->deployment;
    int64_t now_ns = hfi_now(deployment->clock), sent_ns = peer->scripts_sent_ns;
    if (handshake->lacks == 0 ||
        (sent_ns != 0 && now_ns < hfi_after_ms(sent_ns, deployment->settings.connect_ms)))
        return true;
    peer->scripts_sent_ns = now_ns;
    peer->loading++;
    handshake->loads = true;
    bool ok = true;
    for (int i = 0; ok && script(handshake, i) != NULL; i++) {
        if ((handshake->lacks >> i & 1) == 0)
            continue;
        char *source = hfi_script_source(script(handshake, i));
        ok = source != NULL && ask(handshake, ASK_LOAD, "SCRIPT", "LOAD", source);
        free(source);
    }
    return ok;
}

static bool ask_greet(struct hfi_handshake *handshake)
{
    const struct hfi_deployment *deployment = handshake->deployment;
    if (handshake->purpose != HFI_DIAL_LANE)
        return true;
    if (!ask_load(handshake))
        return false;
    if (deployment->ops.handshake_floor == NULL)
        return true;
    handshake->handshake_floor = deployment->ops.handshake_floor(deployment->self, &handshake->server);
    if (handshake->handshake_floor == NULL)
        return false;
    hfi_command_use_clock(handshake->handshake_floor, handshake->server.clock_by_key);
    return ask_floor(handshake);
}

/* Advances to the next stage that has something to ask. */
static bool go_on(struct hfi_handshake *handshake)
{
    bool ok = true;
    handshake->asked_count = handshake->answered = 0;
    while (ok && handshake->asked_count == 0 && handshake->stage != OVER) {
        handshake->stage++;
        if (handshake->stage == AUTH)
            ok = ask_auth(handshake);
        else if (handshake->stage == HELLO)
            ok = ask_identity(handshake);
        else if (handshake->stage == GREET)
            ok = ask_greet(handshake);
    }
    handshake->over = handshake->stage == OVER;
    return ok;
}

bool hfi_handshake_begin(struct hfi_handshake *handshake)
{
    return go_on(handshake);
}

static hf_status refuse(const struct hfi_handshake *handshake, const struct redisReply *reply, hf_error *error)
{
    char did_what[192];
    (void)snprintf(did_what, sizeof did_what, "cannot use %s", handshake->peer->name);
    return hfi_reply_fail(reply, did_what, handshake->peer->name, error);
}

static hf_status judge_role(const struct hfi_handshake *handshake, const struct redisReply *reply, hf_error *error)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0 || reply->element[0]->str == NULL)
        return hfi_fail(error, HF_PROTOCOL, "is this a Redis server?", "%s does not know its role",
                        handshake->peer->name);
    bool is_sentinel = handshake->peer->is_sentinel;
    if (strcmp(reply->element[0]->str, is_sentinel ? "sentinel" : "master") == 0)
        return HF_OK;
    char role[64];
    if (is_sentinel)
        return hfi_fail(error, HF_UNAVAILABLE, "sentinel://HOST names sentinels, by their port (26379)",
                        "%s is no sentinel, its role is %s", handshake->peer->name,
                        hfi_quote(role, sizeof role, reply->element[0]->str, reply->element[0]->len));
    (void)hfi_fail(error, HF_UNAVAILABLE, "point the URI at the primary, or wait until the failover is over",
                   "%s is not a primary, its role is %s", handshake->peer->name,
                   hfi_quote(role, sizeof role, reply->element[0]->str, reply->element[0]->len));
    hfi_fail_retry(error, 200);
    return HF_UNAVAILABLE;
}

static hf_status judge_info(struct hfi_handshake *handshake, const struct redisReply *reply, hf_error *error)
{
    struct hfi_server *server = &handshake->server;
    int major = 0, minor = 0, patch = 0;
    char version[32], uptime[24], mode[16];
    if (!hfi_reply_info(reply, "redis_version", version, sizeof version) || sscanf(version, "%3d.%3d.%3d", &major, &minor, &patch) < 2)
        return hfi_fail(error, HF_PROTOCOL, "is this a Redis server?", "%s does not tell its version",
                        handshake->peer->name);
    server->version = major * 10000 + minor * 100 + patch;
    (void)hfi_reply_info(reply, "run_id", server->run_id, sizeof server->run_id);
    server->clock_by_key = hfi_peer_clock_by_key(handshake->peer, server);
    if (hfi_reply_info(reply, "uptime_in_seconds", uptime, sizeof uptime))
        server->uptime_s = strtoll(uptime, NULL, 10);
    if (server->version < OLDEST_VERSION)
        return hfi_fail(error, HF_PROTOCOL, "holdfast needs Redis 6.0 or later, or Valkey",
                        "%s is Redis %d.%d.%d", handshake->peer->name, major, minor, patch);
    bool has_mode = hfi_reply_info(reply, "redis_mode", mode, sizeof mode) ||
                    hfi_reply_info(reply, "server_mode", mode, sizeof mode); /* Valkey's since 8.0 */
    if (has_mode && strcmp(mode, "cluster") == 0)
        return hfi_fail(error, HF_PROTOCOL, hfi_no_cluster, "%s is a node of a cluster", handshake->peer->name);
    return HF_OK;
}

/* Can we do without this reply? A minimal user may lack the right, and an operator may have renamed the command. */
static bool is_dispensable(enum question question, const struct redisReply *reply)
{
    switch (question) {
    case ASK_ROLE:
    case ASK_NAME:
    case ASK_ID:
    case ASK_INFO:
    case ASK_EXISTS: /* then all scripts are loaded */
    case ASK_LOAD:   /* then EVALSHA gets NOSCRIPT, and is sent again as EVAL */
        return hfi_reply_is_withheld(reply);
    default:
        return false;
    }
}

static hf_status judge_scripts(struct hfi_handshake *handshake, const struct redisReply *reply, hf_error *error)
{
    bool fits = reply->type == REDIS_REPLY_ARRAY;
    for (int i = 0; fits && script(handshake, i) != NULL; i++) {
        fits = (size_t)i < reply->elements && reply->element[i]->type == REDIS_REPLY_INTEGER;
        if (fits && reply->element[i]->integer != 0)
            handshake->lacks &= ~((uint64_t)1 << i);
    }
    if (fits)
        return HF_OK;
    return hfi_fail(error, HF_PROTOCOL, "is this a Redis server?", "%s does not tell which scripts it has",
                    handshake->peer->name);
}

/* TIME was refused, and now the other clock is. */
static hf_status refuse_clock(const struct hfi_handshake *handshake, const struct redisReply *reply, hf_error *error)
{
    if (hfi_reply_meaning(reply->str, reply->len)->status == HF_DENIED)
        return hfi_fail(error, HF_DENIED, "give this user +time, or +pexpiretime",
                        "%s has no clock for scripts: this user may run neither TIME nor PEXPIRETIME", handshake->peer->name);
    return hfi_fail(error, HF_PROTOCOL, "allow TIME in scripts, or use Redis 7.0 or later, or Valkey",
                    "%s has no clock for scripts: it refuses TIME, and knows no PEXPIRETIME", handshake->peer->name);
}

static hf_status judge_floor(struct hfi_handshake *handshake, const struct redisReply *reply, hf_error *error)
{
    const struct hfi_deployment *deployment = handshake->deployment;
    struct hfi_command *floor = handshake->handshake_floor;
    bool refused = reply->type == REDIS_REPLY_ERROR, lacks_time = false;
    bool lacks_key = refused && floor->script != NULL && hfi_script_lacks_key(floor->script, reply->str);
    bool again = refused && hfi_command_mend(floor, reply->str, &lacks_time);
    handshake->lacks_time |= lacks_time;
    if (lacks_key && !handshake->lacks_time) { /* another connection was refused TIME: rights change */
        hfi_command_use_clock(floor, false);
        again = true;
    }
    if (again) {
        handshake->server.clock_by_key = floor->script != NULL && floor->script->clock == HFI_ASKS_KEY;
        if (ask_floor(handshake))
            return HF_OK;
        return hfi_fail(error, HF_NOMEM, NULL, "no memory to greet %s", handshake->peer->name);
    }
    if (lacks_key)
        return refuse_clock(handshake, reply, error);
    if (deployment->ops.handshake_floored == NULL)
        return HF_OK;
    return deployment->ops.handshake_floored(deployment->self, handshake->lane, handshake->asked_ns, reply, error);
}

static hf_status judge_time(struct hfi_handshake *handshake, const struct redisReply *reply, hf_error *error)
{
    bool fits = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 && reply->element[0]->str != NULL &&
                reply->element[1]->str != NULL;
    int64_t s = fits ? strtoll(reply->element[0]->str, NULL, 10) : -1, us = fits ? strtoll(reply->element[1]->str, NULL, 10) : -1;
    if (s < 0 || s > INT32_MAX || us < 0 || us >= 1000000)
        return hfi_fail(error, HF_PROTOCOL, "is this a Redis server?", "%s does not tell the time", handshake->peer->name);
    handshake->rtt_ns = hfi_now(handshake->deployment->clock) - handshake->asked_ns;
    handshake->ahead_ns = (s * 1000000 + us) * 1000 - handshake->asked_ns - handshake->rtt_ns / 2;
    return HF_OK;
}

static hf_status judge(struct hfi_handshake *handshake, enum question question, const struct redisReply *reply,
                       hf_error *error)
{
    if (question == ASK_GREETING)
        return judge_floor(handshake, reply, error);
    bool is_needed = question == ASK_ROLE && handshake->deployment->settings.replicas == HF_ALL; /* confirmations ask it too */
    if (question == ASK_INFO && reply->type == REDIS_REPLY_ERROR)
        handshake->server.clock_by_key = false; /* it may be another server than the one that is known */
    if (reply->type == REDIS_REPLY_ERROR)
        return !is_needed && is_dispensable(question, reply) ? HF_OK : refuse(handshake, reply, error);
    if (question == ASK_ROLE)
        return judge_role(handshake, reply, error);
    if (question == ASK_ID)
        handshake->client_id = reply->type == REDIS_REPLY_INTEGER && reply->integer > 0 ? reply->integer : -1;
    if (question == ASK_INFO)
        return judge_info(handshake, reply, error);
    if (question == ASK_TIME)
        return judge_time(handshake, reply, error);
    if (question == ASK_EXISTS)
        return judge_scripts(handshake, reply, error);
    return HF_OK;
}

hf_status hfi_handshake_answer(struct hfi_handshake *handshake, const struct redisReply *reply, hf_error *error)
{
    if (handshake->answered == handshake->asked_count)
        return hfi_fail(error, HF_PROTOCOL, "is this a Redis server?", "%s answers what nobody asked",
                        handshake->peer->name);
    hf_status status = judge(handshake, handshake->asked[handshake->answered], reply, error);
    handshake->answered++;
    if (status == HF_OK && handshake->answered == handshake->asked_count && !go_on(handshake))
        status = hfi_fail(error, HF_NOMEM, NULL, "no memory to greet %s", handshake->peer->name);
    return status;
}
