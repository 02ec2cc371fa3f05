/* SPDX-License-Identifier: MIT */
/* together.c - see together.h. Each lock's entry sees an ordinary try: a thread arrives, a fresh token is asked for, an
 * answer comes. But one command carries the questions of all entries, on the first lock's lane. */
#include "core/lock/together.h"
#include "base/perturb.h"
#include "core/context/call.h"
#include "core/lock/acquirer.h"
#include "core/lock/handle.h"
#include "core/lock/perform.h"
#include "core/lock/quarantine.h"
#include "core/lock/server_time.h"
#include "core/lock/table.h"
#include "core/lock/trouble.h"
#include "core/protocol/wire.h"

#include <stdlib.h>

struct request { /* the asking thread has a reference, and so has the command */
    _Atomic(int) references;
    _Atomic(int) busy;  /* index of the first name that was not free; -1: not said */
    int64_t fence_seen; /* when it was asked */
    int64_t not_after_us;
    int count;
    struct hfi_acquirer acquirers[HFI_TOGETHER_MOST]; /* the thread's only */
    struct hfi_taking names[HFI_TOGETHER_MOST];
    struct hfi_lock *locks[HFI_TOGETHER_MOST]; /* a reference each, the command's */
};

static void unref(struct request *request)
{
    if (atomic_fetch_sub(&request->references, 1) == 1)
        free(request);
}

/* What the one answer means for name `index`. */
static struct hfi_answer answer_to_one(const struct request *request, const struct hfi_command *command, int index,
                                       int64_t *server_us)
{
    struct hfi_answer answer = {.kind = HFI_NO_ANSWER, .there = true, .in_doubt = true};
    *server_us = 0;
    if (command->outcome == HFI_ANSWERED) {
        answer = hfi_wire_answer(command->reply, false, server_us);
        answer.fence -= (int64_t)(request->count - 1 - index) * HFI_FENCE_BLOCK; /* the script told the last block's */
        answer.left_ms = -1;
        hfi_lock_mistrust(request->locks[0], &answer, command); /* whose lane it went by */
        answer.unheard = false;
        answer.together = true;
    } else if (command->outcome == HFI_UNSENT) {
        answer = (struct hfi_answer){.kind = HFI_NOT_SENT, .native = true}; /* as a native one: its token is forgotten */
    }
    answer.sent_at = command->stamp_ns;
    return answer;
}

static int busy_index(const struct request *request, const struct redisReply *reply)
{
    int64_t number = hfi_wire_number(reply, 2, 1);
    return number >= 1 && number <= request->count ? (int)number - 1 : 0;
}

static void asked(struct hfi_command *command)
{
    struct request *request = command->self;
    hf_client *client = request->locks[0]->client;
    struct hfi_lane *lane = request->locks[0]->lane;
    int64_t server_us, rtt = hfi_lane_rtt_ns(lane);
    for (int i = 0; i < request->count; i++) {
        struct hfi_lock *lock = request->locks[i];
        struct hfi_answer answer = answer_to_one(request, command, i, &server_us);
        if (i == 0 && server_us > 0)
            hfi_server_time_observe(client, hfi_lane_index(lane), server_us, command->stamp_ns, command->answered_ns);
        if (answer.kind == HFI_NOT_SENT)
            answer.status = hfi_pool_why_down(client->pool, NULL);
        if (answer.kind == HFI_BUSY)
            atomic_store(&request->busy, busy_index(request, command->reply));
        if (answer.kind == HFI_GRANTED)
            answer.fence_is_good = hfi_fence_accept(client, answer.fence, HFI_FENCE_BLOCK, request->fence_seen, server_us,
                                                    command->stamp_ns);
        HFI_PERTURB("together-answered");
        hfi_lock_answered_together(lock, command, request->names[i].token, request->not_after_us, &answer, rtt);
    }
    for (int i = 0; i < request->count; i++)
        hfi_table_unref(request->locks[i]); /* not before: by the first one all answers are judged */
    unref(request);
}

/* The thread arrives at the lock and asks for a fresh token. False: the name is in use in this process. */
static bool arrive(struct request *request, int index, int64_t stamp)
{
    struct hfi_lock *lock = request->locks[index];
    struct hfi_acquirer *acquirer = &request->acquirers[index];
    struct hfi_step step;
    int64_t now = hfi_lock_enter(lock);
    bool asks = hfi_entry_is_idle(&lock->entry) && lock->holder == NULL;
    if (asks) {
        hfi_step_init(&step, now, 0);
        acquirer->waiter.once = true;
        hfi_entry_arrive(&lock->entry, &acquirer->waiter, &step);
        asks = hfi_lock_ask_together(lock, &step, request->not_after_us, stamp, &request->names[index]);
    }
    hfi_mutex_unlock(lock->mutex);
    return asks;
}

/* No command is sent. The first `count` entries, where the thread has arrived, are told BUSY, so threads that have arrived
 * behind it ask for themselves. A message may have replaced an entry's token meanwhile, so that BUSY does not reach the
 * waiter: it then leaves the entry, or releases what it was given. */
static void withdraw(struct request *request, int count)
{
    struct hfi_answer busy = {.kind = HFI_BUSY, .together = true, .left_ms = -1};
    for (int i = 0; i < count; i++) {
        struct hfi_lock *lock = request->locks[i];
        struct hfi_acquirer *acquirer = &request->acquirers[i];
        HFI_PERTURB("together-to-withdraw");
        hfi_lock_answered_together(lock, NULL, request->names[i].token, request->not_after_us, &busy, 0);
        int64_t now = hfi_lock_enter(lock);
        if (acquirer->waiter.verdict == HFI_WAITING)
            hfi_acquirer_give_up(acquirer, HF_CANCELED, now);
        bool got = acquirer->waiter.verdict == HFI_GOT_LEASE;
        if (got)
            hfi_table_ref(lock); /* the lease's */
        hfi_lock_leave(lock);
        if (got)
            (void)hf_lease_post_release(acquirer->lease, NULL);
    }
}

static hf_status await(struct request *request, int64_t until_ns, hf_cancel *cancel, hf_lease **leases, hf_error *error)
{
    hf_client *client = request->locks[0]->client;
    hf_status status = HF_OK;
    hfi_count(client, waiting);
    for (int i = 0; i < request->count; i++) {
        struct hfi_lock *lock = request->locks[i];
        struct hfi_acquirer *acquirer = &request->acquirers[i];
        hfi_mutex_lock(lock->mutex);
        hfi_acquirer_wait(acquirer, until_ns, cancel);
        bool got = acquirer->waiter.verdict == HFI_GOT_LEASE;
        leases[i] = got ? acquirer->lease : NULL;
        hf_status one = got ? HF_OK : acquirer->waiter.status;
        bool is_told = status == HF_OK || (status == HF_BUSY && (one != HF_BUSY || i == atomic_load(&request->busy)));
        if (one != HF_OK && is_told)
            status = hfi_lock_explain(lock, one, error);
        if (got)
            hfi_table_ref(lock); /* the lease's */
        hfi_lock_leave(lock);
        if (got)
            hfi_count(client, acquired_remotely);
    }
    hfi_uncount(client, waiting);
    return status;
}

static struct request *new_request(struct hfi_lock *const *locks, int count, const hf_lock_options *options, int64_t stamp)
{
    struct request *request = malloc(sizeof *request);
    if (request == NULL)
        return NULL;
    hf_client *client = locks[0]->client;
    atomic_init(&request->references, 2);
    atomic_init(&request->busy, -1);
    request->fence_seen = hfi_fence_seen(client);
    request->not_after_us = hfi_server_time_not_after(client, hfi_lane_index(locks[0]->lane), stamp);
    request->count = count;
    for (int i = 0; i < count; i++) {
        hfi_acquirer_init(&request->acquirers[i], locks[i], options);
        request->locks[i] = locks[i];
    }
    return request;
}

static hf_status refuse_in_quarantine(struct hfi_lock *lock, int64_t now, hf_error *error)
{
    hfi_mutex_lock(lock->mutex);
    hfi_lock_note_quarantine(lock, hfi_quarantine_left_ns(lock, now));
    hf_status status = hfi_lock_explain(lock, HF_UNAVAILABLE, error);
    hfi_mutex_unlock(lock->mutex);
    return status;
}

hf_status hfi_together_take(struct hfi_lock *const *locks, int count, const hf_lock_options *options, int64_t until_ns,
                            hf_lease **leases, int *busy, hf_error *error)
{
    hf_client *client = locks[0]->client;
    int64_t stamp = hfi_now(client->clock); /* before any of the entries decides, so each counts from early enough (P1) */
    if (hfi_quarantine_left_ns(locks[0], stamp) > 0)
        return refuse_in_quarantine(locks[0], stamp, error);
    struct request *request = new_request(locks, count, options, stamp);
    if (request == NULL)
        return hfi_fail(error, HF_NOMEM, "", "no memory to ask for a multilock");
    int arrived = 0;
    while (arrived < count && arrive(request, arrived, stamp))
        arrived++;
    struct hfi_command *command =
        arrived == count ? hfi_wire_take_many(&client->identity, request->names, count, request->not_after_us) : NULL;
    if (command == NULL) {
        withdraw(request, arrived);
        free(request);
        *busy = arrived < count ? arrived : 0;
        return arrived < count ? HF_BUSY : hfi_fail(error, HF_NOMEM, "", "no memory to ask for a multilock");
    }
    for (int i = 0; i < count; i++)
        hfi_table_ref(locks[i]);
    HFI_PERTURB("together-to-list");
    hfi_call_list(client, locks[0]->lane, command, asked, request, stamp);
    hfi_lane_flush(locks[0]->lane);
    hf_status status = await(request, until_ns, options->cancel, leases, error);
    *busy = atomic_load(&request->busy);
    for (int i = 0; i < count && status != HF_OK; i++)
        if (leases[i] != NULL)
            (void)hf_lease_post_release(leases[i], NULL);
    unref(request);
    return status;
}
