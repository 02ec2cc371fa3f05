/* SPDX-License-Identifier: MIT */
/* break.c - for operators: hf_lock_break and _now, hf_semaphore_break and _now. */
#include "core/context/call.h"
#include "core/lock/info.h"
#include "core/lock/lane_choice.h"
#include "core/lock/lock.h"
#include "core/lock/table.h"
#include "core/protocol/script_error.h"
#include "core/protocol/wire.h"
#include "base/random.h"

#include <holdfast/semaphore.h>

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static hf_status break_it(hf_client *client, const struct hfi_keys *keys, bool force, bool *had_holder, hf_error *error)
{
    redisReply *reply;
    uint64_t random;
    char hex[17];
    if (!hfi_random(&random, sizeof random))
        return hfi_random_fail(error, "the breaking of a lock");
    if (keys->dialect != NULL && !force)
        return hfi_fail(error, HF_INVALID, "hf_lock_break_now, or break --force", "in a dialect nobody can be asked to stop first");
    (void)snprintf(hex, sizeof hex, "%016" PRIx64, random | HFI_TOKEN_REVOKED);
    struct hfi_name name = hfi_name_in(keys->dialect, hfi_keys_name_as(keys, (enum hfi_use)keys->use));
    struct hfi_lock *lock;
    hf_status status = hfi_table_get(client, &name, &lock, error);
    if (status != HF_OK)
        return status;
    hfi_lane_choose_only(lock); /* behind a release of it as another kind, too */
    status = hfi_call_done(client, lock->lane, hfi_wire_break(keys, hex, force), NULL,
                           keys->use == HFI_SEMAPHORE ? "cannot break the semaphore" : "cannot break the lock", &reply, error);
    hfi_table_unref(lock); /* with it the name stayed on its lane */
    if (status != HF_OK)
        return status;
    struct hfi_script_reply said = hfi_wire_script_reply(reply);
    if (had_holder != NULL)
        *had_holder = strcmp(said.word, "BROKEN") == 0;
    if (strcmp(said.word, "FOREIGN") == 0) /* its form was checked by reply_schema.c */
        status = hfi_script_error_key(keys, reply->element[2]->str, error);
    freeReplyObject(reply);
    return status;
}

static hf_status break_named(hf_client *client, enum hfi_use use, const char *name, bool force, bool *had_holder, hf_error *error)
{
    struct hfi_keys keys;
    if (had_holder != NULL)
        *had_holder = false;
    hf_status status = hfi_info_enter(client, use, name, &keys, error);
    if (status != HF_OK)
        return status;
    status = break_it(client, &keys, force, had_holder, error);
    hfi_keys_done(&keys);
    hfi_client_leave(client);
    return status;
}

hf_status hf_lock_break(hf_client *client, const char *name, bool *had_holder, hf_error *error)
{
    return break_named(client, HFI_MUTEX, name, false, had_holder, error);
}

hf_status hf_lock_break_now(hf_client *client, const char *name, bool *had_holder, hf_error *error)
{
    return break_named(client, HFI_MUTEX, name, true, had_holder, error);
}

hf_status hf_semaphore_break(hf_client *client, const char *name, bool *had_holder, hf_error *error)
{
    return break_named(client, HFI_SEMAPHORE, name, false, had_holder, error);
}

hf_status hf_semaphore_break_now(hf_client *client, const char *name, bool *had_holder, hf_error *error)
{
    return break_named(client, HFI_SEMAPHORE, name, true, had_holder, error);
}
