/* SPDX-License-Identifier: MIT */
/* message.c - any bytes as a message of a control channel, and as a token: parsed within their bounds. */
#include "tests/fuzz/fuzz.h"

#include "core/protocol/message.h"
#include "core/protocol/token.h"

static void is_inside(const char *part, size_t part_size, const char *text, size_t size)
{
    HFT_MUST(part_size == 0 || (part >= text && part_size <= size && (size_t)(part - text) <= size - part_size));
}

static void take_token(const char *token, size_t size)
{
    struct hfi_token_parts parts;
    if (!hfi_token_parse(token, size, &parts))
        return;
    HFT_MUST(strlen(parts.id) == 32 && memcmp(token + 4, parts.id, 32) == 0);
    HFT_MUST(parts.host[0] != 0 && strlen(parts.host) < sizeof parts.host && parts.pid >= 0);
    struct hfi_identity identity;
    const unsigned char random[16] = {0};
    char again[HFI_TOKEN_CAPACITY];
    hfi_identity_make(&identity, random, parts.host, parts.pid);
    struct hfi_token_parts more;
    HFT_MUST(hfi_token_parse(again, hfi_token_make(&identity, (struct hfi_token){parts.token.grant, 7}, again), &more));
    HFT_MUST(more.token.grant == parts.token.grant && more.pid == parts.pid && strcmp(more.host, parts.host) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hfi_message message;
    char *text = malloc(size + (size == 0)); /* exactly as long: a byte too many is seen */
    HFT_MUST(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    if (hfi_message_parse(text, size, &message)) {
        is_inside(message.token, message.token_size, text, size);
        is_inside(message.rest, message.rest_size, text, size);
        HFT_MUST(message.token_size > 0 && message.echo >= 0 && message.fence >= 0 && message.held_ms >= 0);
        take_token(message.token, message.token_size);
    }
    take_token(text, size);
    free(text);
    return 0;
}
