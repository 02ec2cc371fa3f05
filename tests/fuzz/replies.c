/* SPDX-License-Identifier: MIT */
/* replies.c - any bytes as a server's replies: through hiredis, through every mapping of replies, and as an
 * acquire's answer through an entry. */
#include "tests/fuzz/fuzz.h"

#include "core/policy/fence.h"
#include "core/protocol/wire.h"
#include "pool/framing.h"
#include "pool/parser.h"
#include "pool/replies.h"

#include <hiredis/hiredis.h>

#define START_NS (INT64_C(1) << 40)

struct subject {
    struct hfi_entry_rules rules;
    struct hfi_entry entry;
    struct hfi_waiter waiter;
    struct hfi_server_clock clock;
    struct hfi_sample sample;
    int64_t now;
    bool holds;
};

static void settle(struct subject *subject, struct hfi_step *step)
{
    while (!hfi_list_is_empty(&step->woken)) {
        struct hfi_waiter *waiter = hfi_container_of(step->woken.next, struct hfi_waiter, link);
        hfi_list_remove(&waiter->link);
        HFT_MUST(waiter->verdict != HFI_WAITING);
        HFT_MUST(waiter->verdict != HFI_GOT_LEASE || (waiter->end > subject->now && waiter->fence > 0));
        subject->holds = waiter->verdict == HFI_GOT_LEASE;
    }
    for (int i = 0; i < step->count; i++)
        if (step->at[i].kind == HFI_SEND_NATIVE || step->at[i].kind == HFI_SEND_WAIT ||
            step->at[i].kind == HFI_SEND_TRY) {
            struct hfi_acquire_params asking = hfi_entry_acquire_params(&subject->entry);
            hfi_entry_sent(&subject->entry, &asking, subject->now);
        }
    hfi_step_init(step, subject->now, HFI_MS);
}

static void arrive(struct subject *subject, bool once)
{
    struct hfi_step step;
    hfi_step_init(&step, subject->now, HFI_MS);
    subject->waiter = (struct hfi_waiter){.once = once, .lease_ms = 10000, .stop_ms = 1000};
    hfi_entry_arrive(&subject->entry, &subject->waiter, &step);
    settle(subject, &step);
}

/* The entry has an acquire under way, and this is the answer. Then time goes on, and a thread that got a lease
 * releases it. */
static void answer(struct subject *subject, const redisReply *reply, bool native, bool once)
{
    struct hfi_step step;
    int64_t us, sent_at = subject->now;
    subject->now += HFI_MS;
    struct hfi_answer said = hfi_wire_answer(reply, native, &us);
    if (us > 0) { /* as core/lock/server_time.c does */
        hfi_server_clock_observe(&subject->clock, us, subject->now);
        (void)hfi_sample_is_stepped(&subject->sample, us, sent_at, subject->now);
        (void)hfi_server_clock_at_most_us(&subject->clock, subject->now + 1000 * HFI_MS);
    }
    hfi_step_init(&step, subject->now, HFI_MS);
    if (hfi_entry_is_idle(&subject->entry))
        arrive(subject, once);
    said.sent_at = sent_at;
    said.fence_is_good =
        hfi_fence_is_good(said.fence, 0, hfi_server_clock_at_least_us(&subject->clock, subject->now), 0);
    if (hfi_entry_awaits_answer(&subject->entry)) {
        hfi_entry_answered(&subject->entry, &said, &step);
        settle(subject, &step);
    }
    if (subject->holds)
        (void)hfi_entry_release(&subject->entry, 1, true, &step);
    subject->holds = false;
    settle(subject, &step);
    int64_t next = hfi_entry_next(&subject->entry);
    HFT_MUST(next == HFI_NEVER || next <= subject->now + 20000 * HFI_MS);
    if (next != HFI_NEVER && next > subject->now)
        subject->now = step.now = next;
    (void)hfi_entry_on_timer(&subject->entry, &step);
    settle(subject, &step);
}

static void map(const redisReply *reply)
{
    hf_error error;
    int64_t us;
    struct hfi_script_reply said = hfi_wire_script_reply(reply);
    HFT_MUST(said.word != NULL);
    for (size_t i = 0; i <= said.count && i < 40; i++)
        (void)hfi_wire_number(reply, i, -1);
    for (int i = 0; i < HFI_RENEW_MOST; i++) {
        const redisReply *revoked = NULL;
        (void)hfi_wire_renewed(reply, i, &revoked);
        HFT_MUST(revoked == NULL || (revoked->type == REDIS_REPLY_STRING && revoked->str[revoked->len] == 0));
    }
    for (int i = 0; i < HFI_RECHECK_MOST; i++)
        (void)hfi_wire_rechecked(reply, i);
    (void)hfi_wire_answer(reply, true, &us);
    (void)hfi_wire_answer(reply, false, &us);
    hf_status status = hfi_reply_fail(reply, "cannot fuzz", "there", &error);
    HFT_MUST(status != HF_OK && error.status == status && strchr(error.message, '\n') == NULL);
    if (reply->type == REDIS_REPLY_ERROR)
        HFT_MUST(hfi_reply_meaning(reply->str, reply->len) != NULL);
}

/* Where the framing finds the end of a reply, hiredis finds it too, or an error; and no byte of it is left over. */
static void frame(const char *bytes, size_t size)
{
    size_t at = 0;
    while (at < size) {
        struct hfi_frame whole = {0};
        size_t begin = at;
        while (at < size && !hfi_frame_is_whole(&whole) && !hfi_frame_is_wrong(&whole)) {
            size_t used = hfi_frame_eat(&whole, bytes + at, size - at < 7 ? size - at : 7);
            HFT_MUST(used > 0);
            at += used;
        }
        if (!hfi_frame_is_whole(&whole))
            return;
        HFT_MUST(whole.bytes == at - begin);
        if (hfi_frame_is_too_much(&whole, 65536))
            continue;
        redisReader *reader = hfi_parser_create(65536);
        void *reply = NULL;
        HFT_MUST(reader != NULL);
        (void)redisReaderFeed(reader, bytes + begin, at - begin);
        if (redisReaderGetReply(reader, &reply) == REDIS_OK) {
            HFT_MUST(reply != NULL && reader->pos == reader->len);
            freeReplyObject(reply);
        }
        redisReaderFree(reader);
    }
}

/* First byte: how the entry asks. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    bool native = data[0] & 1, once = data[0] & 2;
    struct subject subject = {.rules = {.guard_ms = 250, .native = native, .rides_out = !(data[0] & 4)}, .now = START_NS};
    hfi_entry_init(&subject.entry, &subject.rules, 1);
    redisReader *reader = hfi_parser_create(65536);
    void *reply;
    frame((const char *)data + 1, size - 1);
    HFT_MUST(reader != NULL);
    (void)redisReaderFeed(reader, (const char *)data + 1, size - 1);
    for (int i = 0; i < 64 && redisReaderGetReply(reader, &reply) == REDIS_OK && reply != NULL; i++) {
        map(reply);
        answer(&subject, reply, native && i == 0, once);
        freeReplyObject(reply);
    }
    redisReaderFree(reader);
    return 0;
}
