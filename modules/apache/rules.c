/* SPDX-License-Identifier: MIT */
/* rules.c - which requests are looked up, and which answers may be kept: what is one client's is never another's. */
#include "modules/apache/mod_holdfast.h"

#include <apr_date.h>
#include <apr_strings.h>
#include <apr_tables.h>
#include <http_main.h>
#include <http_protocol.h>
#include <stdlib.h>

#define LONGEST_S ((int64_t)30 * 24 * 3600)

static bool has_body(request_rec *r)
{
    const char *length = apr_table_get(r->headers_in, "Content-Length");
    return apr_table_get(r->headers_in, "Transfer-Encoding") != NULL || (length != NULL && strcmp(length, "0") != 0);
}

static bool is_among(const apr_array_header_t *names, const char *host, bool wild)
{
    for (int i = 0; names != NULL && i < names->nelts; i++) {
        const char *name = APR_ARRAY_IDX(names, i, const char *);
        if (name != NULL && (wild ? ap_strcasecmp_match(host, name) == 0 : ap_cstr_casecmp(host, name) == 0))
            return true;
    }
    return false;
}

static bool goes_by(const server_rec *server, const char *host)
{
    return (server->server_hostname != NULL && ap_cstr_casecmp(host, server->server_hostname) == 0) ||
           is_among(server->names, host, false) || is_among(server->wild_names, host, true);
}

/* A client may ask one virtual host, by its address, for a page of another's name. What it gets is not that page. */
static bool has_others_name(request_rec *r)
{
    bool is_others = false;
    if (goes_by(r->server, r->hostname))
        return false;
    for (const server_rec *s = ap_server_conf; s != NULL && !is_others; s = s->next)
        is_others = s != r->server && s->is_virtual && goes_by(s, r->hostname);
    return is_others;
}

static bool is_at(const server_rec *server, apr_port_t port, bool bound)
{
    for (const server_addr_rec *at = server->addrs; at != NULL; at = at->next)
        if ((at->host_port == 0 || at->host_port == port) &&
            (!bound || (strcmp(at->virthost, "*") != 0 && ap_cstr_casecmp(at->virthost, "_default_") != 0)))
            return true;
    return false;
}

/* Another of this machine's addresses may have another site of the same name, or nobody's name may get another site there. */
static bool depends_on_address(request_rec *r)
{
    apr_port_t port = r->connection->local_addr->port;
    bool is_bound = false, is_others = false;
    for (const server_rec *s = ap_server_conf; s != NULL; s = s->next) {
        is_bound = is_bound || (s->is_virtual && is_at(s, port, true));
        is_others = is_others || (s != r->server && (!s->is_virtual || is_at(s, port, false)) && goes_by(s, r->hostname));
    }
    return is_bound && (is_others || !goes_by(r->server, r->hostname));
}

request_rec *hfm_rules_first(request_rec *r)
{
    while (r->prev != NULL)
        r = r->prev;
    return r;
}

static bool varies(request_rec *r)
{
    const char *vary = hfm_rules_header(r, "Vary"), *item;
    while (vary != NULL && (item = ap_get_list_item(r->pool, &vary)) != NULL)
        if (strcmp(item, "accept-encoding") != 0)
            return true;
    return false;
}

/* Before anybody has answered: what the request has been mapped to depends on the client (mod_rewrite says so). */
static bool has_varied(request_rec *r)
{
    while (r != NULL && !varies(r))
        r = r->prev;
    return r != NULL;
}

/* Apache forgets it in a redirect. */
static bool has_user(const request_rec *r)
{
    while (r != NULL && r->user == NULL)
        r = r->prev;
    return r != NULL;
}

bool hfm_rules_ask(request_rec *r)
{
    return r->method_number == M_GET && !r->assbackwards && r->hostname != NULL && hfm_rules_first(r)->unparsed_uri[0] == '/' &&
           r->proxyreq != PROXYREQ_PROXY && !has_user(r) && !has_body(r) &&
           apr_table_get(r->headers_in, "Authorization") == NULL && apr_table_get(r->headers_in, "Upgrade") == NULL &&
           !has_others_name(r) && !has_varied(r);
}

bool hfm_rules_gzip(request_rec *r)
{
    const char *accepted = apr_table_get(r->headers_in, "Accept-Encoding"), *item;
    while (accepted != NULL && (item = ap_get_list_item(r->pool, &accepted)) != NULL) {
        const char *quality = strstr(item, ";q=");
        if (strncmp(item, "gzip", 4) == 0 && (item[4] == '\0' || item[4] == ';'))
            return quality == NULL || strtod(quality + 3, NULL) > 0;
    }
    return false;
}

/* Another part of the key; without blanks, so that no two lists of parts look alike. */
static const char *and_part(request_rec *r, const char *key, const char *name, const char *text)
{
    return apr_pstrcat(r->pool, key, " ", name, "=", text != NULL ? ap_os_escape_path(r->pool, text, 1) : "", NULL);
}

static bool is_alike(const char *one, const char *other)
{
    return one == NULL || other == NULL ? one == other : strcmp(one, other) == 0;
}

/* First what came: the port is the one that was connected to; the path has its escapes and all: what an origin makes of
 * another spelling may be another page. An origin may be told the whole Host, and say it again in its links. Then what Apache
 * has made of it, for whatever reasons: mod_rewrite's may be the client's address. */
const char *hfm_rules_key(request_rec *r)
{
    const char *host = apr_table_get(r->headers_in, "Host");
    const char *key = apr_psprintf(r->pool, "%s://%s:%d%s%s", ap_http_scheme(r), r->hostname, r->connection->local_addr->port,
                                   hfm_rules_first(r)->unparsed_uri, hfm_rules_gzip(r) ? " gzip" : "");
    if (!is_alike(host, r->hostname))
        key = and_part(r, key, "host", host);
    if (depends_on_address(r))
        key = and_part(r, key, "ip", r->connection->local_ip);
    if (r->prev != NULL || !is_alike(r->uri, r->parsed_uri.path) || !is_alike(r->args, r->parsed_uri.query))
        key = and_part(r, and_part(r, key, "uri", r->uri), "args", r->args);
    key = and_part(r, key, "to", r->filename);
    if (r->path_info != NULL && r->path_info[0] != '\0')
        key = and_part(r, key, "info", r->path_info);
    key = and_part(r, key, "by", r->handler);
    return strlen(key) <= HF_KEY_MAX ? key : NULL;
}

const char *hfm_rules_header(request_rec *r, const char *name)
{
    const char *one = apr_table_getm(r->pool, r->headers_out, name), *other = apr_table_getm(r->pool, r->err_headers_out, name);
    return one == NULL ? other : other == NULL ? one : apr_pstrcat(r->pool, one, ",", other, NULL);
}

/* Is the directive `name`, or name=..., and what does it say? */
static bool is_directive(const char *item, const char *name, const char **argument)
{
    size_t size = strlen(name);
    if (strncmp(item, name, size) != 0 || (item[size] != '\0' && item[size] != '='))
        return false;
    *argument = item[size] == '=' ? item + size + 1 + (item[size + 1] == '"') : "";
    return true;
}

static int64_t seconds(const char *text)
{
    int64_t number = apr_strtoi64(text, NULL, 10);
    return number > 0 ? number : 0;
}

/* s-maxage says proxy-revalidate too (RFC 9111). */
bool hfm_rules_is_strict(apr_pool_t *pool, const char *control)
{
    const char *item, *argument;
    while (control != NULL && (item = ap_get_list_item(pool, &control)) != NULL)
        if (is_directive(item, "must-revalidate", &argument) || is_directive(item, "proxy-revalidate", &argument) ||
            is_directive(item, "s-maxage", &argument))
            return true;
    return false;
}

/* Cache-Control and Expires: seconds, -1: they say nothing; 0: not at all. */
static int64_t seconds_said(request_rec *r)
{
    const char *control = hfm_rules_header(r, "Cache-Control"), *item, *argument;
    int64_t max_age = -1, s_maxage = -1;
    while (control != NULL && (item = ap_get_list_item(r->pool, &control)) != NULL) {
        if (is_directive(item, "no-store", &argument) || is_directive(item, "private", &argument) ||
            is_directive(item, "no-cache", &argument))
            return 0;
        if (is_directive(item, "max-age", &argument))
            max_age = seconds(argument);
        else if (is_directive(item, "s-maxage", &argument))
            s_maxage = seconds(argument);
    }
    if (s_maxage >= 0)
        return s_maxage;
    const char *expires = hfm_rules_header(r, "Expires");
    if (max_age >= 0 || expires == NULL)
        return max_age;
    apr_time_t end = apr_date_parse_http(expires), now = apr_time_now(); /* 0: "Expires: 0" and its like */
    return end > now ? apr_time_sec(end - now) : 0;
}

static bool is_too_long(request_rec *r, const struct hfm_settings *settings)
{
    const char *length = apr_table_get(r->headers_out, "Content-Length");
    return length != NULL && apr_strtoi64(length, NULL, 10) > hfm_max_size(settings);
}

enum hfm_verdict hfm_rules_judge(request_rec *r, int status, const struct hfm_settings *settings, int64_t *ttl_ms)
{
    if (status >= 500)
        return HFM_FAILED;
    if ((status != HTTP_OK && status != HTTP_MOVED_PERMANENTLY && status != HTTP_NOT_FOUND) || r->no_cache ||
        has_user(r) || hfm_rules_header(r, "Set-Cookie") != NULL || hfm_rules_header(r, "Set-Cookie2") != NULL ||
        hfm_rules_header(r, "Content-Range") != NULL || varies(r) || is_too_long(r, settings))
        return HFM_PASS;
    int64_t said = seconds_said(r);
    const char *age = hfm_rules_header(r, "Age"); /* it has been kept elsewhere for so long */
    int64_t left = said > 0 && age != NULL ? said - apr_strtoi64(age, NULL, 10) : said;
    if (said >= 0 && left <= 0)
        return HFM_PASS;
    *ttl_ms = said < 0 ? hfm_ttl_ms(settings) : (left < LONGEST_S ? left : LONGEST_S) * 1000;
    if (hfm_rules_is_strict(r->pool, hfm_rules_header(r, "Cache-Control"))) /* it is old while it may still be given out */
        *ttl_ms -= hfm_stale_ms(settings);
    if (*ttl_ms <= 0)
        return HFM_PASS;
    if (status == HTTP_NOT_FOUND && *ttl_ms > hfm_negative_ttl_ms(settings))
        *ttl_ms = hfm_negative_ttl_ms(settings);
    return HFM_KEEP;
}
