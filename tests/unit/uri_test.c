/* SPDX-License-Identifier: MIT */
/* uri_test.c - valid URIs, and URIs that are wrong in one place each. */
#include "pool/uri.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The query that the parser passed on, as "a=b c=d ". */
static hf_status note_query(void *self, const char *name, const char *value, hf_error *error)
{
    char *seen = self;
    if (strcmp(name, "bad") == 0)
        return hfi_fail(error, HF_INVALID, "drop it", "there is no option \"bad\"");
    size_t at = strlen(seen);
    (void)snprintf(seen + at, 200 - at, "%s=%s ", name, value);
    return HF_OK;
}

static const struct good {
    const char *uri;
    enum hfi_scheme scheme;
    const char *host;
    int port;
    const char *path, *user, *password;
    int database;
    const char *query;
} good[] = {
    {"redis://127.0.0.1:6379", HFI_TCP, "127.0.0.1", 6379, NULL, NULL, NULL, 0, ""},
    {"redis://127.0.0.1", HFI_TCP, "127.0.0.1", 6379, NULL, NULL, NULL, 0, ""},
    {"redis://cache.example.com:1/7", HFI_TCP, "cache.example.com", 1, NULL, NULL, NULL, 7, ""},
    {"redis://host:65535/", HFI_TCP, "host", 65535, NULL, NULL, NULL, 0, ""},
    {"REDIS://Host/3?lease_ms=5", HFI_TCP, "Host", 6379, NULL, NULL, NULL, 3, "lease_ms=5 "},
    {"valkey://host", HFI_TCP, "host", 6379, NULL, NULL, NULL, 0, ""},
    {"redis://[::1]:6380/2", HFI_TCP, "::1", 6380, NULL, NULL, NULL, 2, ""},
    {"redis://[2001:db8::7]", HFI_TCP, "2001:db8::7", 6379, NULL, NULL, NULL, 0, ""},
    {"redis://[fe80::1%25eth0]:1", HFI_TCP, "fe80::1%eth0", 1, NULL, NULL, NULL, 0, ""},
    {"redis://me:secret@host:1", HFI_TCP, "host", 1, NULL, "me", "secret", 0, ""},
    {"redis://:secret@host", HFI_TCP, "host", 6379, NULL, NULL, "secret", 0, ""},
    {"redis://me@host", HFI_TCP, "host", 6379, NULL, "me", NULL, 0, ""},
    {"redis://me:@host", HFI_TCP, "host", 6379, NULL, "me", NULL, 0, ""},
    {"redis://m%40e:a%2Fb%3a%25@host", HFI_TCP, "host", 6379, NULL, "m@e", "a/b:%", 0, ""},
    {"redis://me:p@ss@host", HFI_TCP, "host", 6379, NULL, "me", "p@ss", 0, ""},
    {"redis://me:a:b@[::1]", HFI_TCP, "::1", 6379, NULL, "me", "a:b", 0, ""},
    {"redis://host?db=4", HFI_TCP, "host", 6379, NULL, NULL, NULL, 4, ""},
    {"redis://host/4?db=4&a=b%20c&d=", HFI_TCP, "host", 6379, NULL, NULL, NULL, 4, "a=b c d= "},
    {"redis://me:x@host?client_name=a@b&&lanes=2&", HFI_TCP, "host", 6379, NULL, "me", "x", 0,
     "client_name=a@b lanes=2 "},
    {"unix:///run/redis.sock", HFI_UNIX, NULL, 0, "/run/redis.sock", NULL, NULL, 0, ""},
    {"redis://me:a%0ab@host?client_name=a%5fb", HFI_TCP, "host", 6379, NULL, "me", "a\nb", 0, "client_name=a_b "},
    {"unix:///run/r%c3%a9dis", HFI_UNIX, NULL, 0, "/run/r\xc3\xa9" "dis", NULL, NULL, 0, ""},
    {"unix:///run/my%20redis.sock?db=2&password=x", HFI_UNIX, NULL, 0, "/run/my redis.sock", NULL, NULL, 2,
     "password=x "},
    {"unix://me:secret@/run/redis.sock", HFI_UNIX, NULL, 0, "/run/redis.sock", "me", "secret", 0, ""},
    {"unix://:pw@/run/r@1.sock", HFI_UNIX, NULL, 0, "/run/r@1.sock", NULL, "pw", 0, ""},
    {"embedded:", HFI_EMBEDDED, NULL, 0, NULL, NULL, NULL, 0, ""},
    {"embedded:test-1_A?db=1", HFI_EMBEDDED, NULL, 0, "test-1_A", NULL, NULL, 1, ""},
};

static bool same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static void sentinels_are_a_list_of_hosts_and_a_service(void **state)
{
    struct hfi_endpoint place, copy;
    hf_error error;
    char seen[200] = "";
    (void)state;
    assert_int_equal(hfi_uri_parse("sentinels://me:x@a:1,[::1],c.example:26380/my%2Fmaster/3?lanes=2", note_query, seen, &place,
                                   &error), HF_OK);
    assert_true(hfi_endpoint_copy(&copy, &place));
    hfi_endpoint_done(&place);
    assert_int_equal(copy.scheme, HFI_SENTINEL);
    assert_true(copy.tls);
    assert_null(copy.host);
    assert_int_equal(copy.host_count, 3);
    assert_string_equal(copy.hosts[0].name, "a");
    assert_int_equal(copy.hosts[0].port, 1);
    assert_string_equal(copy.hosts[1].name, "::1");
    assert_int_equal(copy.hosts[1].port, 26379);
    assert_string_equal(copy.hosts[2].name, "c.example");
    assert_string_equal(copy.service, "my/master");
    assert_string_equal(copy.password, "x");
    assert_int_equal(copy.database, 3);
    assert_string_equal(seen, "lanes=2 ");
    hfi_endpoint_done(&copy);
    assert_int_equal(hfi_uri_parse("redis+sentinel://a/m", note_query, seen, &place, &error), HF_OK);
    assert_false(place.tls);
    assert_int_equal(place.database, 0);
    hfi_endpoint_done(&place);
}

static void every_form_is_understood(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        const struct good *g = &good[i];
        struct hfi_endpoint place, copy;
        hf_error error = {0};
        char seen[200] = "";
        if (hfi_uri_parse(g->uri, note_query, seen, &place, &error) != HF_OK)
            fail_msg("%s: %s", g->uri, error.message);
        assert_true(hfi_endpoint_copy(&copy, &place));
        hfi_endpoint_done(&place);
        if (copy.scheme != g->scheme || copy.port != g->port || copy.database != g->database ||
            !same(copy.host, g->host) || !same(copy.path, g->path) || !same(copy.user, g->user) ||
            !same(copy.password, g->password) || !same(seen, g->query))
            fail_msg("%s: host %s port %d path %s user %s password %s db %d query %s", g->uri, copy.host,
                     copy.port, copy.path, copy.user, copy.password, copy.database, seen);
        hfi_endpoint_done(&copy);
        assert_null(copy.host);
        assert_null(copy.password);
    }
}

static const struct bad {
    const char *uri;
    const char *names; /* must stand in the message */
} bad[] = {
    {"", "no scheme"},
    {"localhost", "no scheme"},
    {"//localhost", "no scheme"},
    {"localhost:6379", "\"localhost\" is not known"},
    {"http://host", "\"http\" is not known"},
    {"cluster://host", "\"cluster\" comes with a later version"},
    {"sentinel://host", "names no service"},
    {"sentinel://host/", "names no service"},
    {"sentinel://host//1", "names no service"},
    {"sentinel:///mymaster", "no host"},
    {"sentinel://a,,b/mymaster", "no host"},
    {"sentinel://a,b:x/mymaster", "port is not a number"},
    {"sentinel://a;b/mymaster", "is a list"},
    {"sentinel://a/mymaster/x", "database \"x\""},
    {"sentinel://a/my%0amaster", "service has a space or control"},
    {"sentinel://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17/m", "more than 16"},
    {"quorum://host", "\"quorum\" comes"},
    {"redis:host", "://"},
    {"redis:/host", "://"},
    {"redis://", "no host"},
    {"redis://:6379", "no host"},
    {"redis:///0", "no host"},
    {"redis://me:secret@", "no host"},
    {"redis://host:", "port is not a number"},
    {"redis://host:0", "port is not a number"},
    {"redis://host:65536", "port is not a number"},
    {"redis://host:99999999999999999999", "port is not a number"},
    {"redis://host:6379x", "port is not a number"},
    {"redis://host:-1", "port is not a number"},
    {"redis://host: 1", "port is not a number"},
    {"redis://::1:6379", "more than one colon"},
    {"redis://[::1", "no closing ]"},
    {"redis://[::1]x:1", "goes on after ]"},
    {"redis://[1.2.3.4]", "not an IPv6 address"},
    {"redis://[]", "not an IPv6 address"},
    {"redis://a,b:1", "is a list"},
    {"redis://a[b", "neither a name nor an address"},
    {"redis://ho st", "host has a space"},
    {"redis://ho\nst", "host has a space or control"},
    {"redis://h%0ast", "host has a space or control"},
    {"redis://h%1b[2Jst", "host has a space or control"},
    {"redis://h%7fst", "host has a space or control"},
    {"redis://h%c2%9bst", "host has a space or control"},
    {"redis://[fe80::1%25%0a]", "host has a space or control"},
    {"redis://m%0ae:secret@host", "user has a space or control"},
    {"unix:///run/a%0ab", "socket path has a space or control"},
    {"unix:///run/a%1bb", "socket path has a space or control"},
    {"embedded:a%0ab", "instance name has a space or control"},
    {"redis://host?client_name=a%1bb", "\"client_name\" has a value"},
    {"redis://h%00st", "host has a NUL"},
    {"redis://h%2", "host has a %"},
    {"redis://h%zz", "host has a %"},
    {"redis://h%", "host has a %"},
    {"redis://m%0:secret@host", "user has a %"},
    {"redis://me:secret%@host", "password has a %"},
    {"redis://me:secret%00@host", "password has a NUL"},
    {"redis://me:secret secret@host", "password has a space"},
    {"redis://me:secret/secret@host", "@ behind the host"},
    {"redis://me:1?secret@host", "@ behind the host"},
    {"redis://me@corp:secret/x@host", "@ behind the host"},
    {"redis://me@corp:1?secret@host", "@ behind the host"},
    {"redis://me@corp:1/secret@host", "@ behind the host"},
    {"redis://u:p@ss/w=secret@host", "@ behind the host"},
    {"unix://u:pa@secret/sec/ret@/run/s", "@ behind the host"},
    {"redis://me:secret", "port is not a number"},
    {"redis://:se:secret", "more than one colon"},
    {"redis://me:secret#secret@host", "has a #"},
    {"redis://host/x", "database \"x\""},
    {"redis://host/-1", "database \"-1\""},
    {"redis://host/1/2", "database \"1/2\""},
    {"redis://host/9999999999", "database \"9999999999\""},
    {"redis://host?db=x", "database \"x\""},
    {"redis://host?db=", "database \"\""},
    {"redis://host/1?db=2", "database \"2\" is the second"},
    {"redis://host?lease_ms", "\"lease_ms\" is not name=value"},
    {"redis://host?=5", "is not name=value"},
    {"redis://host?password=secret%", "\"password\" has a value"},
    {"redis://host?a%00=1", "option \"a%00\" is not one"},
    {"redis://host?lane%73=1", "option \"lane%73\" is not one"},
    {"redis://host?lanes=1&lanes=2", "option \"lanes\" is given twice"},
    {"redis://host?lanes=1&a=b&&lanes=1", "option \"lanes\" is given twice"},
    {"redis://host?db=1&db=1", "option \"db\" is given twice"},
    {"redis://host?lanes=%0a5", "\"lanes\" has a value"},
    {"redis://host?lanes=%2b5", "option \"lanes\" has a number"},
    {"redis://host?lanes=%35", "option \"lanes\" has a number"},
    {"redis://host?lanes=%2d1", "option \"lanes\" has a number"},
    {"redis://host?lanes=1%2e5", "option \"lanes\" has a number"},
    {"redis://host?db=%31", "option \"db\" has a number"},
    {"redis://host/%31", "database \"%31\""},
    {"redis://host:%36379", "port is not a number"},
    {"redis://host?bad=1", "no option \"bad\""},
    {"unix://", "no socket"},
    {"unix:///", "no socket"},
    {"unix://run/redis.sock", "the URI's host cannot be"},
    {"unix://me:secret/run/redis.sock", "the URI's host cannot be"},
    {"unix:///run/a b", "socket path has a space"},
    {"unix:///run/a%00b", "socket path has a NUL"},
    {"unix:///"
     "12345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678"
     "901234567",
     "108 bytes long, the system allows 107"},
    {"embedded://x", "\"//x\""},
    {"embedded:../x", "\"../x\""},
    {"embedded:123456789012345678901234567890123", "instance name"},
};

static void every_mistake_is_named_and_no_password_shown(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct hfi_endpoint place;
        hf_error error = {0};
        char seen[200] = "";
        hf_status status = hfi_uri_parse(bad[i].uri, note_query, seen, &place, &error);
        if (status != HF_INVALID || error.status != HF_INVALID || strstr(error.message, bad[i].names) == NULL)
            fail_msg("%s: %s \"%s\"", bad[i].uri, hf_status_name(status), error.message);
        for (const unsigned char *at = (const unsigned char *)error.message; *at != 0; at++)
            assert_true(*at >= ' ' && *at != 0x7f);
        assert_null(strstr(error.message, "secret"));
        assert_null(strstr(error.hint, "secret"));
        assert_null(place.host);
        assert_null(place.path);
        assert_null(place.user);
        assert_null(place.password);
        assert_int_equal(hfi_uri_parse(bad[i].uri, note_query, seen, &place, NULL), HF_INVALID);
    }
}

/* Every prefix of every URI, in a block of exactly its size: the sanitizer sees a byte read too far. */
static void every_prefix_is_parsed_without_reading_past_its_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        for (size_t size = 0; size <= strlen(good[i].uri); size++) {
            struct hfi_endpoint place;
            char seen[200] = "", *prefix = strndup(good[i].uri, size);
            hf_status status = hfi_uri_parse(prefix, note_query, seen, &place, NULL);
            assert_true(status == HF_OK || status == HF_INVALID);
            hfi_endpoint_done(&place);
            free(prefix);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_understood),
        cmocka_unit_test(sentinels_are_a_list_of_hosts_and_a_service),
        cmocka_unit_test(every_mistake_is_named_and_no_password_shown),
        cmocka_unit_test(every_prefix_is_parsed_without_reading_past_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
