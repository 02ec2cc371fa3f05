/* SPDX-License-Identifier: MIT */
/* token.h - owner tokens: `hf1:` 32 hex client id `:` hex grant number `:` 16 hex random `:` host `:` pid. Pure.
 * Scripts derive the control channel `hf:c:<client id>` from it, so the layout is part of the protocol. */
#ifndef HFI_TOKEN_H
#define HFI_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HFI_TOKEN_CAPACITY 176
#define HFI_CHANNEL_SIZE   37 /* "hf:c:" and the client id */

struct hfi_identity { /* of a client */
    char id[33];      /* 32 hex digits */
    char host[65];    /* letters, digits, dot, dash, underscore */
    int64_t pid;
    char where[88];   /* ":" host ":" pid, the end of every token */
    char channel[HFI_CHANNEL_SIZE + 1];
};

/* The id is made of the random bytes. Bytes of `host` that a token cannot have become '_'. */
void hfi_identity_make(struct hfi_identity *identity, const unsigned char random[16], const char *host, int64_t pid);

struct hfi_token { /* of one client: its identity is the rest of the text */
    uint64_t grant;  /* 0: none */
    uint64_t random;
};
static inline bool hfi_token_is_same(struct hfi_token one, struct hfi_token other)
{
    return one.grant == other.grant && one.random == other.random;
}
/* A break replaces a token by one of the same grant whose random digits begin with eight f: whoever reads it knows that
 * its owner has it no longer. */
#define HFI_TOKEN_REVOKED (UINT64_C(0xffffffff) << 32)
static inline bool hfi_token_is_revoked(struct hfi_token token)
{
    return (token.random & HFI_TOKEN_REVOKED) == HFI_TOKEN_REVOKED;
}
/* Of random bits, those of a token that is granted. */
static inline uint64_t hfi_token_granted_bits(uint64_t random)
{
    return random >> 32 == UINT32_MAX ? random >> 1 : random;
}

/* Of a client's tokens, all of it in the upper half: revoked ones share the first random digits, but neither grant nor the rest. */
static inline uint64_t hfi_token_hash(struct hfi_token token)
{
    return token.random ^ (token.random ^ token.grant) << 32;
}

/* Prints the token with its NUL; returns its length. */
size_t hfi_token_make(const struct hfi_identity *identity, struct hfi_token token, char out[HFI_TOKEN_CAPACITY]);

struct hfi_token_parts {
    char    id[33];
    struct hfi_token token;
    char    host[65];
    int64_t pid;
};
/* False: not a token of ours (another library's value). */
bool hfi_token_parse(const char *text, size_t size, struct hfi_token_parts *parts);
/* True: byte for byte what hfi_token_make prints for this client and *token. */
bool hfi_token_is_of(const struct hfi_identity *identity, const char *text, size_t size, struct hfi_token *token);
/* The same, and a break has left it of that grant. */
bool hfi_token_is_left_of(const struct hfi_identity *identity, const char *text, size_t size, uint64_t grant,
                          struct hfi_token *token);

#endif
