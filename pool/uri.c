/* SPDX-License-Identifier: MIT */
/* uri.c - parses a URI into an endpoint, or into an error about the part that is wrong. No password is ever shown. */
#include "pool/uri.h"

#include <arpa/inet.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#define DEFAULT_PORT  6379
#define SENTINEL_PORT 26379
#define NAME_MOST    32 /* of an embedded instance: it becomes part of a socket's path */

static const char encode_hint[] =
    "percent-encode what is special in a user or password: / is %2F, ? %3F, # %23, @ %40, % %25";

struct part { /* a piece of the URI, still encoded */
    const char *from;
    size_t size;
};

static struct part part_of(const char *from, const char *end)
{
    return (struct part){from, (size_t)(end - from)};
}

/* The part before the first of `ends`; *rest begins with that character (empty if there is none). */
static struct part cut(struct part whole, const char *ends, struct part *rest)
{
    const char *end = whole.from + whole.size, *at = whole.from;
    while (at < end && strchr(ends, *at) == NULL)
        at++;
    *rest = part_of(at, end);
    return part_of(whole.from, at);
}

static bool is(struct part part, const char *text)
{
    return part.size == strlen(text) && strncasecmp(part.from, text, part.size) == 0;
}

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef0123456789ABCDEF";
    const char *at = c != 0 ? strchr(digits, c) : NULL;
    return at != NULL ? (int)(at - digits) % 16 : -1;
}

static void wipe_free(char *text)
{
    if (text != NULL)
        explicit_bzero(text, strlen(text));
    free(text);
}

/* C1 control characters too, which UTF-8 encodes as 0xc2 and another byte. */
static bool is_control(unsigned char before, unsigned char byte)
{
    return byte < ' ' || byte == 0x7f || (before == 0xc2 && byte >= 0x80 && byte < 0xa0);
}

/* Percent-decodes into *out, owned by the caller. `what` names the part in the error, which shows no content. A
 * password may be anything; other parts appear in later messages, which may go to a terminal. */
static hf_status decode(struct part part, const char *what, char **out, hf_error *error)
{
    static const char blank[] = "has a space or control character";
    const char *wrong = NULL;
    char *text = *out = calloc(1, part.size + 1);
    if (text == NULL)
        return hfi_fail(error, HF_NOMEM, NULL, "no memory for a URI");
    for (size_t i = 0, at = 0; i < part.size && wrong == NULL; i++) {
        unsigned char byte = (unsigned char)part.from[i], before = at > 0 ? (unsigned char)text[at - 1] : 0;
        if (byte == '%') {
            int high = i + 2 < part.size ? hex_digit(part.from[i + 1]) : -1;
            int low = i + 2 < part.size ? hex_digit(part.from[i + 2]) : -1;
            if (high < 0 || low < 0)
                wrong = "has a % that is not followed by two hexadecimal digits";
            else if (high + low == 0)
                wrong = "has a NUL byte (%00)";
            byte = (unsigned char)(high * 16 + low);
            i += 2;
            if (wrong == NULL && is_control(before, byte) && strcmp(what, "password") != 0)
                wrong = blank;
        } else if (byte == ' ' || is_control(before, byte)) {
            wrong = blank;
        }
        text[at++] = (char)byte;
    }
    if (wrong == NULL)
        return HF_OK;
    explicit_bzero(text, part.size);
    free(text);
    *out = NULL;
    return hfi_fail(error, HF_INVALID, encode_hint, "the URI's %s %s", what, wrong);
}

static hf_status wrong_part(hf_error *error, const char *what, struct part part, const char *why,
                            const char *hint)
{
    char shown[160];
    return hfi_fail(error, HF_INVALID, hint, "the URI's %s %s %s", what,
                    hfi_quote(shown, sizeof shown, part.from, part.size), why);
}

/* Decimal digits only; -1 if it is something else or greater than `most`. */
static int number(struct part part, int most)
{
    int value = 0;
    for (size_t i = 0; i < part.size; i++) {
        int digit = part.from[i] - '0';
        if (digit < 0 || digit > 9 || value > (most - digit) / 10)
            return -1;
        value = value * 10 + digit;
    }
    return part.size > 0 ? value : -1;
}

static hf_status parse_database(struct part part, struct hfi_endpoint *endpoint, bool *given, hf_error *error)
{
    int database = number(part, INT_MAX);
    if (database < 0)
        return wrong_part(error, "database", part, "is not a number", "redis://host:6379/0, or ?db=0");
    if (*given && database != endpoint->database)
        return wrong_part(error, "database", part, "is the second one", "say it once: as /0 or as ?db=0");
    endpoint->database = database;
    *given = true;
    return HF_OK;
}

/* Cuts the next name=value off: *value begins with its =, *rest with the next &. */
static struct part next_option(struct part *rest, struct part *value)
{
    struct part option = cut(part_of(rest->from + 1, rest->from + rest->size), "&", rest);
    return cut(option, "=", value);
}

static bool is_second(struct part query, struct part name)
{
    struct part value, other = next_option(&query, &value);
    while (other.from != name.from && (other.size != name.size || memcmp(other.from, name.from, name.size) != 0))
        other = next_option(&query, &value);
    return other.from != name.from;
}

static bool is_number_like(const char *text)
{
    return *text != 0 && text[strspn(text, "+-.0123456789")] == 0;
}

/* Refuses an encoding that hides an option's name or its number from a human reader. */
static hf_status check_encoding(struct part name, struct part value, const char *value_text, hf_error *error)
{
    if (memchr(name.from, '%', name.size) != NULL)
        return wrong_part(error, "option", name, "is not one", "the names are those of hf_client_options");
    if (memchr(value.from, '%', value.size) != NULL && is_number_like(value_text))
        return wrong_part(error, "option", name, "has a number that is percent-encoded", "write its digits plainly");
    return HF_OK;
}

static hf_status parse_query(struct part query, bool database_given, hfi_uri_query *take, void *self,
                             struct hfi_endpoint *endpoint, hf_error *error)
{
    struct part rest = query;
    while (rest.size > 0) {
        struct part value, name = next_option(&rest, &value);
        if (name.size == 0 && value.size == 0)
            continue;
        if (name.size == 0 || value.size == 0)
            return wrong_part(error, "query", name, "is not name=value", NULL);
        if (is_second(query, name))
            return wrong_part(error, "option", name, "is given twice", "say it once");
        value = part_of(value.from + 1, value.from + value.size);
        char *name_text = strndup(name.from, name.size), *value_text = NULL;
        hf_status status = name_text != NULL ? decode(value, "query", &value_text, error)
                                             : hfi_fail(error, HF_NOMEM, NULL, "no memory for a URI");
        if (status == HF_INVALID)
            status = wrong_part(error, "option", name, "has a value that is not percent-encoded well", encode_hint);
        if (status == HF_OK)
            status = check_encoding(name, value, value_text, error);
        if (status == HF_OK && strcmp(name_text, "db") == 0)
            status = parse_database(value, endpoint, &database_given, error);
        else if (status == HF_OK)
            status = take(self, name_text, value_text, error);
        wipe_free(name_text);
        wipe_free(value_text);
        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}

static hf_status parse_user(struct part part, struct hfi_endpoint *endpoint, hf_error *error)
{
    struct part password, user = cut(part, ":", &password);
    hf_status status = HF_OK;
    if (user.size > 0)
        status = decode(user, "user", &endpoint->user, error);
    if (status == HF_OK && password.size > 1)
        status = decode(part_of(password.from + 1, password.from + password.size), "password",
                        &endpoint->password, error);
    return status;
}

static hf_status parse_host(struct part host, struct hfi_endpoint *endpoint, hf_error *error)
{
    hf_status status = decode(host, "host", &endpoint->host, error);
    if (status != HF_OK)
        return status;
    if (endpoint->host[0] == 0)
        return hfi_fail(error, HF_INVALID, "redis://127.0.0.1:6379", "the URI names no host");
    if (strpbrk(endpoint->host, ",;") != NULL)
        return wrong_part(error, "host", host, "is a list", "one primary for now: redis://host:6379");
    if (strpbrk(endpoint->host, "/\\@[]<>\"'") != NULL)
        return wrong_part(error, "host", host, "is neither a name nor an address", "redis://127.0.0.1:6379");
    return HF_OK;
}

static hf_status parse_ipv6(struct part address, struct hfi_endpoint *endpoint, hf_error *error)
{
    hf_status status = decode(address, "host", &endpoint->host, error);
    if (status != HF_OK)
        return status;
    struct in6_addr ignored;
    char without_zone[INET6_ADDRSTRLEN] = "";
    size_t size = strcspn(endpoint->host, "%");
    if (size < sizeof without_zone)
        memcpy(without_zone, endpoint->host, size);
    if (inet_pton(AF_INET6, without_zone, &ignored) != 1)
        return wrong_part(error, "host", address, "is not an IPv6 address", "redis://[::1]:6379");
    return HF_OK;
}

static hf_status parse_host_port(struct part authority, int default_port, struct hfi_endpoint *endpoint, hf_error *error)
{
    struct part port;
    hf_status status;
    if (authority.size > 0 && authority.from[0] == '[') {
        struct part address = cut(part_of(authority.from + 1, authority.from + authority.size), "]", &port);
        if (port.size == 0)
            return hfi_fail(error, HF_INVALID, "redis://[::1]:6379", "the URI's host has no closing ]"); /* not quoted: as below */
        port = part_of(port.from + 1, port.from + port.size);
        if (port.size > 0 && port.from[0] != ':')
            return wrong_part(error, "host", authority, "goes on after ]", "redis://[::1]:6379");
        status = parse_ipv6(address, endpoint, error);
    } else {
        struct part host = cut(authority, ":", &port);
        if (port.size > 0 && memchr(port.from + 1, ':', port.size - 1) != NULL)
            return hfi_fail(error, HF_INVALID, "an IPv6 address stands in brackets: redis://[::1]:6379",
                            "the URI's host has more than one colon"); /* not quoted: there may be a password between */
        status = parse_host(host, endpoint, error);
    }
    if (status != HF_OK)
        return status;
    endpoint->port = default_port;
    if (port.size > 0)
        endpoint->port = number(part_of(port.from + 1, port.from + port.size), 65535);
    if (endpoint->port < 1) /* not quoted: without a host it is the password */
        return hfi_fail(error, HF_INVALID, "redis://127.0.0.1:6379", "the URI's port is not a number between 1 and 65535");
    return HF_OK;
}

static hf_status parse_hosts(struct part list, struct hfi_endpoint *endpoint, hf_error *error)
{
    hf_status status = HF_OK;
    struct part rest = list;
    for (bool first = true; status == HF_OK && (first || rest.size > 0); first = false) {
        struct part one = cut(first ? rest : part_of(rest.from + 1, rest.from + rest.size), ",", &rest);
        if (endpoint->host_count == HFI_HOSTS_MOST)
            return wrong_part(error, "host", list, "is a list of more than 16", "three to five sentinels are enough");
        status = parse_host_port(one, SENTINEL_PORT, endpoint, error);
        if (status == HF_OK)
            endpoint->hosts[endpoint->host_count++] = (struct hfi_host){endpoint->host, endpoint->port};
        else
            wipe_free(endpoint->host);
        endpoint->host = NULL;
    }
    endpoint->port = 0;
    return status;
}

/* Perhaps the end of a password: then no part is quoted. Behind a user a socket's path may have an @, and an option's value. */
static bool has_stray_at(struct part rest, bool has_user, bool is_socket)
{
    struct part query, behind, path = cut(rest, "?", &query), before = cut(query, "@", &behind);
    bool is_free = has_user && before.size > 0 && memchr(before.from, '=', before.size) != NULL;
    bool in_path = path.size > 0 && memchr(path.from, '@', path.size) != NULL;
    return (in_path && !(has_user && is_socket)) || (behind.size > 0 && !is_free);
}

/* Parses the part between :// and the path. The last @ ends the user and password. */
static hf_status parse_authority(struct part authority, struct part rest, struct hfi_endpoint *endpoint,
                                 hf_error *error)
{
    const char *end = authority.from + authority.size;
    const char *at = authority.size > 0 ? memrchr(authority.from, '@', authority.size) : NULL;
    if (has_stray_at(rest, at != NULL, endpoint->scheme == HFI_UNIX && at == end - 1))
        return hfi_fail(error, HF_INVALID, encode_hint, "the URI has an @ behind the host: a password that is not encoded?");
    hf_status status = at != NULL ? parse_user(part_of(authority.from, at), endpoint, error) : HF_OK;
    if (status != HF_OK)
        return status;
    struct part where = part_of(at != NULL ? at + 1 : authority.from, end);
    if (endpoint->scheme == HFI_TCP)
        return parse_host_port(where, DEFAULT_PORT, endpoint, error);
    if (endpoint->scheme == HFI_SENTINEL)
        return parse_hosts(where, endpoint, error);
    if (where.size == 0)
        return HF_OK;
    return hfi_fail(error, HF_INVALID, "three slashes: unix:///run/redis.sock",
                    "the URI's host cannot be, a socket has none"); /* not quoted: it may be a password whose @ is forgotten */
}

static hf_status parse_socket(struct part path, struct hfi_endpoint *endpoint, hf_error *error)
{
    if (path.size < 2)
        return hfi_fail(error, HF_INVALID, "unix:///run/redis.sock", "the URI names no socket");
    hf_status status = decode(path, "socket path", &endpoint->path, error);
    size_t most = sizeof((struct sockaddr_un *)0)->sun_path - 1;
    if (status == HF_OK && strlen(endpoint->path) > most)
        return hfi_fail(error, HF_INVALID, "a shorter path, or a symbolic link to it",
                        "the URI's socket path is %zu bytes long, the system allows %zu", strlen(endpoint->path),
                        most);
    return status;
}

/* Leaves the database, with its slash, in *path. */
static hf_status parse_service(struct part *path, struct hfi_endpoint *endpoint, hf_error *error)
{
    struct part rest = {path->from + path->size, 0};
    struct part service = path->size > 1 ? cut(part_of(path->from + 1, path->from + path->size), "/", &rest) : rest;
    if (service.size == 0)
        return hfi_fail(error, HF_INVALID, "sentinel://host1,host2,host3/mymaster", "the URI names no service");
    *path = rest;
    return decode(service, "service", &endpoint->service, error);
}

static hf_status parse_instance(struct part name, struct hfi_endpoint *endpoint, hf_error *error)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    if (name.size == 0)
        return HF_OK;
    hf_status status = decode(name, "instance name", &endpoint->path, error);
    if (status == HF_OK &&
        (strspn(endpoint->path, letters) != strlen(endpoint->path) || strlen(endpoint->path) > NAME_MOST))
        return wrong_part(error, "instance name", name, "is not 1 to 32 letters, digits, - and _",
                          "embedded:test");
    return status;
}

static hf_status parse_scheme(struct part uri, struct part *scheme, struct part *rest,
                              struct hfi_endpoint *endpoint, hf_error *error)
{
    static const char *const later[] = {"cluster", "clusters", "redis+cluster", "redis-cluster", "quorum", "quorums"};
    *scheme = cut(uri, ":/?#@", rest);
    if (scheme->size == 0 || rest->size == 0 || rest->from[0] != ':')
        return hfi_fail(error, HF_INVALID, "redis://127.0.0.1:6379, unix:///run/redis.sock or embedded:",
                        "the URI has no scheme");
    *rest = part_of(rest->from + 1, rest->from + rest->size);
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
        if (is(*scheme, later[i]))
            return wrong_part(error, "scheme", *scheme, "comes with a later version",
                              "use redis://, rediss://, unix:// or sentinel:// for now");
    bool by_sentinels = is(*scheme, "sentinel") || is(*scheme, "sentinels") || is(*scheme, "redis+sentinel");
    endpoint->tls = is(*scheme, "rediss") || is(*scheme, "valkeys") || is(*scheme, "sentinels");
    if (by_sentinels)
        endpoint->scheme = HFI_SENTINEL;
    else if (endpoint->tls || is(*scheme, "redis") || is(*scheme, "valkey"))
        endpoint->scheme = HFI_TCP;
    else if (is(*scheme, "unix"))
        endpoint->scheme = HFI_UNIX;
    else if (is(*scheme, "embedded"))
        endpoint->scheme = HFI_EMBEDDED;
    else
        return wrong_part(error, "scheme", *scheme, "is not known",
                          "redis://127.0.0.1:6379, unix:///run/redis.sock or embedded:");
    return HF_OK;
}

static hf_status parse(const char *uri, hfi_uri_query *query, void *self, struct hfi_endpoint *endpoint,
                       hf_error *error)
{
    struct part scheme, rest, path, questions, ignored;
    bool database_given = false;
    hf_status status = parse_scheme(part_of(uri, uri + strlen(uri)), &scheme, &rest, endpoint, error);
    if (status != HF_OK)
        return status;
    if (cut(rest, "#", &ignored).size != rest.size)
        return hfi_fail(error, HF_INVALID, encode_hint, "the URI has a #");
    if (endpoint->scheme == HFI_EMBEDDED) {
        path = cut(rest, "?", &questions);
        status = parse_instance(path, endpoint, error);
    } else {
        if (rest.size < 2 || memcmp(rest.from, "//", 2) != 0)
            return wrong_part(error, "scheme", scheme, "is not followed by ://", "redis://127.0.0.1:6379");
        struct part authority = cut(part_of(rest.from + 2, rest.from + rest.size), "/?", &rest);
        status = parse_authority(authority, rest, endpoint, error);
        path = cut(rest, "?", &questions);
        if (status == HF_OK && endpoint->scheme == HFI_SENTINEL)
            status = parse_service(&path, endpoint, error);
        if (status == HF_OK && endpoint->scheme == HFI_UNIX)
            status = parse_socket(path, endpoint, error);
        else if (status == HF_OK && path.size > 1)
            status =
                parse_database(part_of(path.from + 1, path.from + path.size), endpoint, &database_given, error);
    }
    return status == HF_OK ? parse_query(questions, database_given, query, self, endpoint, error) : status;
}

hf_status hfi_uri_parse(const char *uri, hfi_uri_query *query, void *self, struct hfi_endpoint *endpoint,
                        hf_error *error)
{
    *endpoint = (struct hfi_endpoint){0};
    hf_status status = parse(uri, query, self, endpoint, error);
    if (status != HF_OK)
        hfi_endpoint_done(endpoint);
    return status;
}

void hfi_endpoint_done(struct hfi_endpoint *endpoint)
{
    wipe_free(endpoint->host);
    wipe_free(endpoint->path);
    wipe_free(endpoint->user);
    wipe_free(endpoint->password);
    wipe_free(endpoint->service);
    for (int i = 0; i < endpoint->host_count; i++)
        wipe_free(endpoint->hosts[i].name);
    *endpoint = (struct hfi_endpoint){0};
}

bool hfi_endpoint_copy(struct hfi_endpoint *to, const struct hfi_endpoint *from)
{
    *to = (struct hfi_endpoint){.scheme = from->scheme, .tls = from->tls, .port = from->port, .database = from->database};
    const char *const texts[] = {from->host, from->path, from->user, from->password, from->service};
    char **const copies[] = {&to->host, &to->path, &to->user, &to->password, &to->service};
    bool good = true;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        *copies[i] = texts[i] != NULL ? strdup(texts[i]) : NULL;
        good = good && (texts[i] == NULL || *copies[i] != NULL);
    }
    for (; good && to->host_count < from->host_count; to->host_count++) {
        to->hosts[to->host_count] = (struct hfi_host){strdup(from->hosts[to->host_count].name), from->hosts[to->host_count].port};
        good = to->hosts[to->host_count].name != NULL;
    }
    if (!good)
        hfi_endpoint_done(to);
    return good;
}
