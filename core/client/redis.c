/* SPDX-License-Identifier: MIT */
/* redis.c - users' own commands: one on a user lane, or a borrowed connection. */
#include <holdfast/redis.h>

#include "core/context/call.h"
#include "core/context/context.h"
#include "core/protocol/lane_safety.h"
#include "base/hash.h"
#include "pool/borrow.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

struct hf_conn {
    hf_client *client;
    struct hfi_borrowed *borrowed;
};

static const char borrow_hint[] = "take a connection of your own: hf_conn_borrow";

/* Commands on one key use one lane, so that a thread that has been told of another thread's write can read it. */
static uint64_t way_of(int argc, const char *const *argv, const size_t *sizes)
{
    return (argc > 1 ? hfi_hash(HFI_HASH_BEGIN, argv[1], sizes[1]) : HFI_HASH_BEGIN) >> 20;
}

static hf_status carry(hf_client *client, struct redisReply **reply, hf_error *error, int argc,
                       const char *const *argv, const size_t *sizes)
{
    char name[64];
    const char *why = hfi_lane_unsafe(argc, argv, sizes);
    if (why != NULL)
        return hfi_fail(error, HF_INVALID, borrow_hint, "hf_command cannot carry %s: it %s",
                        hfi_quote(name, sizeof name, argv[0], sizes[0]), why);
    struct hfi_lane *lane = hfi_pool_lane(client->pool, HFI_USER_LANE, way_of(argc, argv, sizes));
    struct hfi_command *command = hfi_command_new(argc, argv, sizes);
    if (command != NULL)
        command->users = command->optional = true;
    return hfi_call(client, lane, command, NULL, reply, error);
}

static hf_status check_arguments(int argc, const char *const *argv, struct redisReply **reply,
                                 hf_error *error)
{
    if (reply == NULL)
        return hfi_fail(error, HF_INVALID, "", "the place for the reply is NULL");
    *reply = NULL;
    if (argc < 1 || argv == NULL)
        return hfi_fail(error, HF_INVALID, "", "the command is empty");
    for (int i = 0; i < argc; i++)
        if (argv[i] == NULL)
            return hfi_fail(error, HF_INVALID, "", "argument %d of the command is NULL", i);
    return HF_OK;
}

hf_status hf_command_argv(hf_client *client, struct redisReply **reply, hf_error *error, int argc,
                          const char *const *argv, const size_t *argv_sizes)
{
    hf_status status = check_arguments(argc, argv, reply, error);
    if (status != HF_OK)
        return status;
    status = hfi_client_enter(client, error);
    if (status != HF_OK)
        return status;
    size_t *measured = argv_sizes == NULL ? calloc((size_t)argc, sizeof *measured) : NULL;
    if (argv_sizes == NULL && measured == NULL) {
        status = hfi_fail(error, HF_NOMEM, "", "no memory for a command");
    } else {
        for (int i = 0; measured != NULL && i < argc; i++)
            measured[i] = strlen(argv[i]);
        status = carry(client, reply, error, argc, argv, measured != NULL ? measured : argv_sizes);
    }
    free(measured);
    hfi_client_leave(client);
    return status;
}

struct words { /* of a command that hiredis has framed; argv points into the frame */
    const char **argv;
    size_t *sizes;
    int argc;
};

/* Splits a frame such as "*2\r\n$3\r\nGET\r\n$1\r\na\r\n"; from hiredis it is well-formed. False: no memory. */
static bool split(const char *framed, struct words *words)
{
    char *at;
    words->argc = (int)strtol(framed + 1, &at, 10);
    if (words->argc < 1)
        return true;
    words->argv = calloc((size_t)words->argc, sizeof *words->argv);
    words->sizes = calloc((size_t)words->argc, sizeof *words->sizes);
    if (words->argv == NULL || words->sizes == NULL)
        return false;
    at += 2;
    for (int i = 0; i < words->argc; i++) {
        words->sizes[i] = (size_t)strtoull(at + 1, &at, 10);
        words->argv[i] = at + 2;
        at += 2 + words->sizes[i] + 2;
    }
    return true;
}

hf_status hf_command(hf_client *client, struct redisReply **reply, hf_error *error, const char *format, ...)
{
    char *framed = NULL;
    struct words words = {NULL, NULL, 0};
    va_list arguments;
    if (reply != NULL)
        *reply = NULL;
    if (format == NULL)
        return hfi_fail(error, HF_INVALID, "", "the format of the command is NULL");
    va_start(arguments, format);
    int size = redisvFormatCommand(&framed, format, arguments);
    va_end(arguments);
    hf_status status;
    if (size == -1 || (size >= 0 && !split(framed, &words)))
        status = hfi_fail(error, HF_NOMEM, "", "no memory for a command");
    else if (size < 0)
        status =
            hfi_fail(error, HF_INVALID, "%s takes a string, %b bytes and their size_t, %% is a percent sign",
                     "the format of the command is wrong");
    else
        status = hf_command_argv(client, reply, error, words.argc, words.argv, words.sizes);
    free(words.argv);
    free(words.sizes);
    if (size >= 0)
        redisFreeCommand(framed);
    return status;
}

hf_status hf_conn_borrow(hf_client *client, int64_t wait_ms, hf_conn **conn, hf_error *error)
{
    if (conn == NULL)
        return hfi_fail(error, HF_INVALID, "", "the place for the connection is NULL");
    *conn = NULL;
    if (wait_ms < HF_FOREVER)
        return hfi_fail(error, HF_INVALID, "0 does not wait, HF_FOREVER waits for ever", "wait_ms is %lld",
                        (long long)wait_ms);
    hf_status status = hfi_client_enter(client, error);
    if (status != HF_OK)
        return status;
    hf_conn *new = calloc(1, sizeof *new);
    int64_t until_ns = wait_ms == 0 ? 0 : hfi_after_ms(hfi_now(client->clock), wait_ms);
    if (new == NULL)
        status = hfi_fail(error, HF_NOMEM, "", "no memory for a connection");
    else
        status = hfi_borrow(client->pool, until_ns, &new->borrowed, error);
    if (status == HF_OK) {
        new->client = client;
        hfi_client_ref(client);
        *conn = new;
    } else {
        free(new);
    }
    hfi_client_leave(client);
    return status;
}

struct redisContext *hf_conn_context(hf_conn *conn)
{
    return conn == NULL || hfi_client_is_forked(conn->client) ? NULL : hfi_borrowed_context(conn->borrowed);
}

static void give_up(hf_conn *conn, bool may_be_lent_again)
{
    if (conn == NULL)
        return;
    hf_client *client = conn->client;
    if (hfi_client_is_forked(client)) {
        hfi_borrow_forked(conn->borrowed);
    } else if (hfi_client_enter(client, NULL) == HF_OK) {
        if (may_be_lent_again)
            hfi_borrow_return(conn->borrowed);
        else
            hfi_borrow_discard(conn->borrowed);
        hfi_client_leave(client);
    } else {
        hfi_borrow_discard(conn->borrowed);
    }
    free(conn);
    hfi_client_unref(client);
}

void hf_conn_return(hf_conn *conn)
{
    give_up(conn, true);
}

void hf_conn_discard(hf_conn *conn)
{
    give_up(conn, false);
}
