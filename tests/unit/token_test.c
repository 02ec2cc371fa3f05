/* SPDX-License-Identifier: MIT */
/* token_test.c - a token's layout is part of the protocol; a value of another layout is another program's. */
#include "base/random.h"
#include "core/protocol/token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ID "000102030405060708090a0b0c0d0eff"

static struct hfi_identity identity_of(const char *host)
{
    static const unsigned char bytes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255};
    struct hfi_identity identity;
    hfi_identity_make(&identity, bytes, host, 4711);
    return identity;
}

static bool parses(const char *token)
{
    struct hfi_token_parts parts;
    return hfi_token_parse(token, strlen(token), &parts);
}

static void a_token_is_laid_out_as_the_protocol_says(void **state)
{
    (void)state;
    char token[HFI_TOKEN_CAPACITY];
    struct hfi_identity identity = identity_of("web-1.example.org");
    size_t size = hfi_token_make(&identity, (struct hfi_token){0x2a, 0xbeef}, token);
    assert_string_equal(token, "hf1:" ID ":2a:000000000000beef:web-1.example.org:4711");
    assert_int_equal(size, strlen(token));
    assert_string_equal(identity.channel, "hf:c:" ID);
    assert_int_equal(strlen(identity.channel), HFI_CHANNEL_SIZE);
    assert_memory_equal(token + 4, identity.channel + 5, 32); /* where scripts cut the channel out */
    assert_int_equal(token[36], ':');
}

static void a_token_comes_apart_into_what_it_was_made_of(void **state)
{
    (void)state;
    char token[HFI_TOKEN_CAPACITY];
    struct hfi_token_parts parts;
    struct hfi_identity identity = identity_of("web-1");
    size_t size = hfi_token_make(&identity, (struct hfi_token){UINT64_MAX, UINT64_MAX}, token);
    assert_true(hfi_token_parse(token, size, &parts));
    assert_string_equal(parts.id, ID);
    assert_true(parts.token.grant == UINT64_MAX);
    assert_string_equal(parts.host, "web-1");
    assert_int_equal(parts.pid, 4711);
}

static void the_longest_token_fits_its_room(void **state)
{
    (void)state;
    char token[HFI_TOKEN_CAPACITY];
    static const unsigned char bytes[16] = {0};
    struct hfi_identity identity;
    struct hfi_token_parts parts;
    char host[300];
    memset(host, 'h', sizeof host);
    host[sizeof host - 1] = 0;
    hfi_identity_make(&identity, bytes, host, INT64_MAX);
    assert_int_equal(strlen(identity.host), 64);
    size_t size = hfi_token_make(&identity, (struct hfi_token){UINT64_MAX, UINT64_MAX}, token);
    assert_true(size < HFI_TOKEN_CAPACITY);
    assert_true(hfi_token_parse(token, size, &parts));
    assert_int_equal(parts.pid, INT64_MAX);
}

static void what_cannot_stand_in_a_host_is_replaced(void **state)
{
    (void)state;
    assert_string_equal(identity_of("a b:c\n\xc3\xa4_-.9").host, "a_b_c____-.9");
    assert_string_equal(identity_of("").host, "_");
}

static void what_has_another_layout_is_no_token_of_ours(void **state)
{
    (void)state;
    static const char *const others[] = {"",
                                         "hf1:",
                                         "some-uuid",
                                         "hf2:" ID ":2a:000000000000beef:web:1",
                                         "HF1:" ID ":2a:000000000000beef:web:1",
                                         "hf1:" ID,
                                         "hf1:" ID ":",
                                         "hf1:" ID "0:2a:000000000000beef:web:1",
                                         "hf1:000102030405060708090A0B0C0D0EFF:2a:000000000000beef:web:1",
                                         "hf1:" ID "::000000000000beef:web:1",
                                         "hf1:" ID ":00000000000000002:000000000000beef:web:1",
                                         "hf1:" ID ":2a:00000000000beef:web:1",
                                         "hf1:" ID ":2a:0000000000000beef:web:1",
                                         "hf1:" ID ":2a:000000000000beef::1",
                                         "hf1:" ID ":2a:000000000000beef:web:",
                                         "hf1:" ID ":2a:000000000000beef:web:x",
                                         "hf1:" ID ":2a:000000000000beef:web:1x",
                                         "hf1:" ID ":2a:000000000000beef:web:-1",
                                         "hf1:" ID ":2a:000000000000beef:web: 1",
                                         "hf1:" ID ":2a:000000000000beef:web:1:",
                                         "hf1:" ID ":2a:000000000000beef:web"};
    assert_true(parses("hf1:" ID ":2a:000000000000beef:web:1"));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (parses(others[i]))
            fail_msg("%s was taken for a token", others[i]);
    struct hfi_token_parts parts;
    static const char with_nul[] = "hf1:" ID ":2a:000000000000beef:w\0b:1";
    assert_false(hfi_token_parse(with_nul, sizeof with_nul - 1, &parts));
    static const char nul_behind[] = "hf1:" ID ":2a:000000000000beef:web:1\0x";
    assert_false(hfi_token_parse(nul_behind, sizeof nul_behind - 1, &parts));
}

static void a_host_of_escape_sequences_is_not_let_through(void **state)
{
    (void)state;
    assert_false(parses("hf1:" ID ":2a:000000000000beef:\x1b[2Jweb:1"));
    assert_false(parses("hf1:" ID ":2a:000000000000beef:we b:1"));
}

/* Exact sizes on the heap, so that the sanitizers see a step too far. */
static void a_token_of_this_client_is_what_it_would_make_itself(void **state)
{
    (void)state;
    struct hfi_token token = {0};
    struct hfi_identity identity = identity_of("web-1");
    static const char mine[] = "hf1:" ID ":2a:000000000000beef:web-1:4711";
    static const char *const others[] = {"hf1:" ID ":02a:000000000000beef:web-1:4711",
                                         "hf1:" ID ":2a:000000000000beef:web-2:4711",
                                         "hf1:" ID ":2a:000000000000beef:web-1:4712",
                                         "hf1:" ID ":2a:000000000000beef:web-1:04711",
                                         "hf1:000102030405060708090a0b0c0d0efe:2a:000000000000beef:web-1:4711",
                                         "-",
                                         "another"};
    assert_true(hfi_token_is_of(&identity, mine, strlen(mine), &token));
    assert_true(token.grant == 0x2a && token.random == 0xbeef);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (hfi_token_is_of(&identity, others[i], strlen(others[i]), &token))
            fail_msg("%s was taken for one of ours", others[i]);
}

static void no_bytes_make_the_parser_stumble(void **state)
{
    (void)state;
    uint64_t rng = 5;
    char token[HFI_TOKEN_CAPACITY];
    struct hfi_token_parts parts;
    struct hfi_identity identity = identity_of("web");
    size_t length = hfi_token_make(&identity, (struct hfi_token){7, 8}, token);
    for (int i = 0; i < 20000; i++) {
        size_t size = (size_t)(hfi_rng_next(&rng) % 250);
        char *bytes = malloc(size + 1);
        assert_non_null(bytes);
        for (size_t at = 0; at < size; at++)
            bytes[at] = at < length && hfi_rng_next(&rng) % 20 != 0 ? token[at] : (char)hfi_rng_next(&rng);
        char *exact = realloc(bytes, size > 0 ? size : 1);
        assert_non_null(exact);
        (void)hfi_token_parse(exact, size, &parts);
        free(exact);
    }
    for (size_t size = 0; size <= length - strlen("4711"); size++)
        assert_false(hfi_token_parse(token, size, &parts));
}

static void only_a_revoked_tokens_digits_begin_with_eight_f(void **state)
{
    static const uint64_t bits[] = {0, 1, UINT32_MAX, UINT64_C(0xfffffffeffffffff), UINT64_C(0xffffffff00000000), UINT64_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        assert_false(hfi_token_is_revoked((struct hfi_token){1, hfi_token_granted_bits(bits[i])}));
        assert_true(hfi_token_is_revoked((struct hfi_token){1, bits[i] | HFI_TOKEN_REVOKED}));
    }
    assert_true(hfi_token_granted_bits(UINT64_C(0xfffffffeffffffff)) == UINT64_C(0xfffffffeffffffff));
}

/* As marks of what is over tell them apart: by the upper half, among those that end alike. */
static void revoked_tokens_of_a_client_differ_in_the_upper_half_of_their_hash(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    static uint64_t upper[COUNT];
    for (uint64_t i = 0; i < COUNT; i++) {
        upper[i] = hfi_token_hash((struct hfi_token){.grant = 1 + i, .random = HFI_TOKEN_REVOKED | (i * 64 * 977 & UINT32_MAX)}) >> 32;
        for (uint64_t j = 0; j < i; j++)
            assert_int_not_equal(upper[i], upper[j]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_laid_out_as_the_protocol_says),
        cmocka_unit_test(a_token_comes_apart_into_what_it_was_made_of),
        cmocka_unit_test(the_longest_token_fits_its_room),
        cmocka_unit_test(what_cannot_stand_in_a_host_is_replaced),
        cmocka_unit_test(what_has_another_layout_is_no_token_of_ours),
        cmocka_unit_test(a_host_of_escape_sequences_is_not_let_through),
        cmocka_unit_test(a_token_of_this_client_is_what_it_would_make_itself),
        cmocka_unit_test(only_a_revoked_tokens_digits_begin_with_eight_f),
        cmocka_unit_test(no_bytes_make_the_parser_stumble),
        cmocka_unit_test(revoked_tokens_of_a_client_differ_in_the_upper_half_of_their_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
