/* SPDX-License-Identifier: MIT */
/* lane_sift.c - input of value and user lanes, where callers choose the commands. A reply that is too much is
 * discarded as it comes in, and only its own command fails; the replies behind it are handed out as usual. */
#include "pool/lane_private.h"
#include "pool/parser.h"

#include <errno.h>
#include <hiredis/hiredis.h>

bool hfi_lane_is_sifted(const struct hfi_lane *lane)
{
    return lane->kind == HFI_VALUE_LANE || lane->kind == HFI_USER_LANE;
}

static bool give_up(struct hfi_lane *lane, hf_status status, int os_errno, const char *why)
{
    hfi_lane_lock(lane);
    hfi_lane_give_up_locked(lane, status, os_errno, why);
    hfi_lane_unlock(lane);
    return false;
}

static bool parse(struct hfi_lane *lane, const char *bytes, size_t size, bool fresh)
{
    if (size == 0)
        return true;
    if (redisReaderFeed(lane->parser, bytes, size) != REDIS_OK)
        return give_up(lane, HF_NOMEM, ENOMEM, "no memory for its replies");
    return hfi_lane_match_all(lane, fresh);
}

/* Drops the part of the incoming reply that the parser already has. */
static bool begin_to_skip(struct hfi_lane *lane)
{
    struct redisReader *parser = hfi_parser_create(lane->reply_most);
    if (parser == NULL)
        return give_up(lane, HF_NOMEM, ENOMEM, "no memory for its replies");
    redisReaderFree(lane->parser);
    lane->parser = parser;
    lane->skips = true;
    return true;
}

static bool end_to_skip(struct hfi_lane *lane)
{
    hfi_lane_lock(lane);
    bool up = hfi_lane_pass_over_locked(lane, hfi_now(lane->deployment->clock));
    hfi_lane_unlock(lane);
    lane->skips = false;
    return up;
}

bool hfi_lane_sift(struct hfi_lane *lane, size_t size, bool fresh)
{
    const char *at = lane->in, *end = at + size, *kept = at;
    while (at < end) {
        const char *begin = at;
        at += hfi_frame_eat(&lane->frame, at, (size_t)(end - at));
        bool too_much = !lane->skips && hfi_frame_is_too_much(&lane->frame, lane->reply_most);
        bool wrong = hfi_frame_is_wrong(&lane->frame);
        if ((too_much || wrong) && !parse(lane, kept, lane->skips ? 0 : (size_t)(begin - kept), fresh))
            return false;
        if (wrong)
            return give_up(lane, HF_PROTOCOL, 0, "the server does not speak the Redis protocol");
        if (too_much && !begin_to_skip(lane))
            return false;
        if (lane->skips)
            kept = at;
        if (!hfi_frame_is_whole(&lane->frame))
            continue;
        lane->frame = (struct hfi_frame){0};
        if (lane->skips && !end_to_skip(lane))
            return false;
    }
    return parse(lane, kept, (size_t)(end - kept), fresh);
}
