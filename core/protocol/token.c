/* SPDX-License-Identifier: MIT */
/* token.c - see token.h. */
#include "core/protocol/token.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_host_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
}

void hfi_identity_make(struct hfi_identity *identity, const unsigned char random[16], const char *host, int64_t pid)
{
    memset(identity, 0, sizeof *identity);
    for (int i = 0; i < 16; i++)
        (void)snprintf(identity->id + 2 * i, 3, "%02x", random[i]);
    for (size_t i = 0; i + 1 < sizeof identity->host && host[i] != 0; i++)
        identity->host[i] = is_host_byte(host[i]) ? host[i] : '_';
    if (identity->host[0] == 0)
        identity->host[0] = '_';
    identity->pid = pid;
    (void)snprintf(identity->where, sizeof identity->where, ":%s:%" PRId64, identity->host, pid);
    (void)snprintf(identity->channel, sizeof identity->channel, "hf:c:%s", identity->id);
}

/* Not snprintf, which is slow: a token is printed for every command that names it. */
static char *put_hex(char *at, uint64_t number, int digits)
{
    while (digits < 16 && (number >> (4 * digits)) != 0)
        digits++;
    for (int i = digits; i-- > 0; number >>= 4)
        at[i] = "0123456789abcdef"[number & 15];
    return at + digits;
}

size_t hfi_token_make(const struct hfi_identity *identity, struct hfi_token token, char out[HFI_TOKEN_CAPACITY])
{
    size_t where_size = strlen(identity->where);
    char *at = out;
    memcpy(at, "hf1:", 4);
    memcpy(at + 4, identity->id, 32);
    at[36] = ':';
    at = put_hex(at + 37, token.grant, 1);
    *at = ':';
    at = put_hex(at + 1, token.random, 16);
    memcpy(at, identity->where, where_size + 1);
    return (size_t)(at - out) + where_size;
}

static size_t hex_digits(const char *text, size_t most)
{
    size_t count = 0;
    while (count < most && ((text[count] >= '0' && text[count] <= '9') || (text[count] >= 'a' && text[count] <= 'f')))
        count++;
    return count;
}

bool hfi_token_parse(const char *text, size_t size, struct hfi_token_parts *parts)
{
    char copy[HFI_TOKEN_CAPACITY];
    if (size >= sizeof copy || memchr(text, 0, size) != NULL)
        return false;
    memcpy(copy, text, size);
    copy[size] = 0;
    memset(parts, 0, sizeof *parts);
    char *at = copy;
    if (strncmp(at, "hf1:", 4) != 0 || hex_digits(at + 4, 33) != 32 || at[36] != ':')
        return false;
    memcpy(parts->id, at + 4, 32);
    at += 37;
    size_t digits = hex_digits(at, 17);
    if (digits == 0 || digits > 16 || at[digits] != ':')
        return false;
    parts->token.grant = strtoull(at, NULL, 16);
    at += digits + 1;
    if (hex_digits(at, 17) != 16 || at[16] != ':')
        return false;
    parts->token.random = strtoull(at, NULL, 16);
    at += 17;
    char *end = strchr(at, ':');
    if (end == NULL || end == at || (size_t)(end - at) >= sizeof parts->host)
        return false;
    for (const char *byte = at; byte < end; byte++)
        if (!is_host_byte(*byte))
            return false;
    memcpy(parts->host, at, (size_t)(end - at));
    char *rest;
    parts->pid = strtoll(end + 1, &rest, 10);
    return end[1] >= '0' && end[1] <= '9' && *rest == 0;
}

/* Compares the id and the end. What lies between them in a text that parses, colons and hex digits, can be printed in
 * one way only but for leading zeros of the grant number: hence text[37]. */
bool hfi_token_is_of(const struct hfi_identity *identity, const char *text, size_t size, struct hfi_token *token)
{
    struct hfi_token_parts parts;
    size_t where_size = strlen(identity->where);
    if (!hfi_token_parse(text, size, &parts))
        return false;
    *token = parts.token;
    return strcmp(parts.id, identity->id) == 0 && text[37] != '0' && size > where_size &&
           memcmp(text + size - where_size, identity->where, where_size) == 0;
}

bool hfi_token_is_left_of(const struct hfi_identity *identity, const char *text, size_t size, uint64_t grant,
                          struct hfi_token *token)
{
    return hfi_token_is_of(identity, text, size, token) && token->grant == grant && hfi_token_is_revoked(*token);
}
