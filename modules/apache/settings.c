/* SPDX-License-Identifier: MIT */
/* settings.c - the directives of the module. */
#include "modules/apache/mod_holdfast.h"

#include <apr_lib.h>
#include <apr_strings.h>
#include <http_core.h>
#include <stdlib.h>

#define NOT_SAID     (-1)
#define TTL_MS       60000
#define NEGATIVE_MS  10000
#define MAX_SIZE     ((int64_t)1 << 20)
#define MOST_SIZE    ((int64_t)15 << 20) /* below the max_value_bytes of a client */
#define MOST_JITTER  0.9
#define LONGEST_MS   ((int64_t)30 * 24 * 3600 * 1000)

const char *hfm_uri;

void *hfm_settings_new(apr_pool_t *pool, char *folder)
{
    (void)folder;
    struct hfm_settings *settings = apr_pcalloc(pool, sizeof *settings);
    settings->ttl_ms = settings->stale_ms = settings->near_ms = settings->max_size = NOT_SAID;
    settings->jitter = NOT_SAID;
    return settings;
}

void *hfm_settings_merge(apr_pool_t *pool, void *outer, void *inner)
{
    const struct hfm_settings *less = outer, *more = inner;
    struct hfm_settings *merged = apr_pmemdup(pool, less, sizeof *less);
    if (more->paths != NULL)
        merged->paths = more->paths;
    if (more->status_path != NULL)
        merged->status_path = more->status_path;
    if (more->ttl_ms != NOT_SAID)
        merged->ttl_ms = more->ttl_ms;
    if (more->stale_ms != NOT_SAID)
        merged->stale_ms = more->stale_ms;
    if (more->near_ms != NOT_SAID)
        merged->near_ms = more->near_ms;
    if (more->jitter >= 0)
        merged->jitter = more->jitter;
    if (more->tag_header != NULL)
        merged->tag_header = more->tag_header;
    if (more->max_size != NOT_SAID)
        merged->max_size = more->max_size;
    return merged;
}

/* /shop is /shop and what is below /shop/, not /shopping. */
static bool is_below(const char *path, const char *prefix)
{
    size_t size = strlen(prefix);
    return strncmp(path, prefix, size) == 0 && (prefix[size - 1] == '/' || path[size] == '/' || path[size] == '\0');
}

bool hfm_settings_want(const struct hfm_settings *settings, const char *path)
{
    for (int i = 0; settings->paths != NULL && i < settings->paths->nelts; i++)
        if (is_below(path, APR_ARRAY_IDX(settings->paths, i, const char *)))
            return true;
    return false;
}

int64_t hfm_ttl_ms(const struct hfm_settings *settings)
{
    return settings->ttl_ms == NOT_SAID ? TTL_MS : settings->ttl_ms;
}

int64_t hfm_negative_ttl_ms(const struct hfm_settings *settings)
{
    int64_t ttl_ms = hfm_ttl_ms(settings);
    return ttl_ms < NEGATIVE_MS ? ttl_ms : NEGATIVE_MS;
}

int64_t hfm_stale_ms(const struct hfm_settings *settings)
{
    return settings->stale_ms == NOT_SAID ? 0 : settings->stale_ms;
}

int64_t hfm_near_ms(const struct hfm_settings *settings)
{
    return settings->near_ms == NOT_SAID ? 0 : settings->near_ms;
}

double hfm_jitter(const struct hfm_settings *settings)
{
    return settings->jitter < 0 ? 0 : settings->jitter;
}

const char *hfm_tag_header(const struct hfm_settings *settings)
{
    return settings->tag_header == NULL || settings->tag_header[0] == '\0' ? NULL : settings->tag_header;
}

int64_t hfm_max_size(const struct hfm_settings *settings)
{
    return settings->max_size == NOT_SAID ? MAX_SIZE : settings->max_size;
}

static const char *set_server(cmd_parms *cmd, void *settings, const char *uri)
{
    (void)settings;
    hfm_uri = uri;
    return ap_check_cmd_context(cmd, GLOBAL_ONLY);
}

static const char *add_path(cmd_parms *cmd, void *given, const char *path)
{
    struct hfm_settings *settings = given;
    bool is_off = ap_cstr_casecmp(path, "off") == 0;
    if (!is_off && path[0] != '/')
        return "HoldfastCache wants a path that begins with /, or off";
    if (settings->paths == NULL)
        settings->paths = apr_array_make(cmd->pool, 2, sizeof(const char *));
    if (is_off)
        apr_array_clear(settings->paths);
    else
        APR_ARRAY_PUSH(settings->paths, const char *) = path;
    return NULL;
}

/* Seconds, or with a unit: 500ms, 5min, 2h. `info` is the field's offset. */
static const char *set_time(cmd_parms *cmd, void *settings, const char *text)
{
    apr_interval_time_t time;
    int64_t *field = (int64_t *)(void *)((char *)settings + (size_t)cmd->info);
    if (!apr_isdigit(text[0]) || ap_timeout_parameter_parse(text, &time, "s") != APR_SUCCESS || apr_time_as_msec(time) > LONGEST_MS)
        return apr_psprintf(cmd->pool, "%s wants seconds (or 500ms, 5min, 2h), 30 days at most, not %s", cmd->cmd->name, text);
    *field = apr_time_as_msec(time);
    return NULL;
}

static const char *set_ttl(cmd_parms *cmd, void *given, const char *text)
{
    struct hfm_settings *settings = given;
    const char *wrong = set_time(cmd, given, text);
    return wrong == NULL && settings->ttl_ms < 1 ? "HoldfastTTL wants 1ms at least; HoldfastCache off caches nothing" : wrong;
}

static const char *set_size(cmd_parms *cmd, void *given, const char *text)
{
    struct hfm_settings *settings = given;
    char *end;
    apr_off_t size;
    bool failed = apr_strtoff(&size, text, &end, 10) != APR_SUCCESS || end == text || size < 1;
    int unit = *end == 'K' || *end == 'k' ? 10 : *end == 'M' || *end == 'm' ? 20 : 0;
    if (failed || end[unit > 0] != '\0' || size > MOST_SIZE >> unit)
        return apr_psprintf(cmd->pool, "HoldfastMaxSize wants bytes (or 64K, 2M), 15M at most, not %s", text);
    settings->max_size = size << unit;
    return NULL;
}

static const char *set_jitter(cmd_parms *cmd, void *given, const char *text)
{
    char *end;
    double jitter = apr_isdigit(text[0]) ? strtod(text, &end) : -1;
    if (jitter < 0 || *end != '\0' || jitter > MOST_JITTER)
        return apr_psprintf(cmd->pool, "HoldfastJitter wants a number from 0 to 0.9, not %s", text);
    ((struct hfm_settings *)given)->jitter = jitter;
    return NULL;
}

static const char *set_tag_header(cmd_parms *cmd, void *given, const char *name)
{
    (void)cmd;
    ((struct hfm_settings *)given)->tag_header = ap_cstr_casecmp(name, "off") == 0 ? "" : name;
    return NULL;
}

static const char *set_status(cmd_parms *cmd, void *given, const char *path)
{
    (void)cmd;
    ((struct hfm_settings *)given)->status_path = path;
    return path[0] == '/' ? NULL : "HoldfastStatus wants a path that begins with /";
}

#define FIELD(name) ((void *)offsetof(struct hfm_settings, name))

const command_rec hfm_directives[] = {
    AP_INIT_TAKE1("HoldfastServer", set_server, NULL, RSRC_CONF, "the Redis of the whole fleet, as a URI: redis://host:6379"),
    AP_INIT_ITERATE("HoldfastCache", add_path, NULL, RSRC_CONF | ACCESS_CONF, "paths to cache below, or off"),
    AP_INIT_TAKE1("HoldfastTTL", set_ttl, FIELD(ttl_ms), RSRC_CONF | ACCESS_CONF, "how long a page is fresh (60)"),
    AP_INIT_TAKE1("HoldfastStale", set_time, FIELD(stale_ms), RSRC_CONF | ACCESS_CONF,
                  "how much longer an old page is given out while one request loads a new one (0)"),
    AP_INIT_TAKE1("HoldfastNear", set_time, FIELD(near_ms), RSRC_CONF | ACCESS_CONF,
                  "how long a page is given out from the child's own memory, while Redis tells of changes (0)"),
    AP_INIT_TAKE1("HoldfastJitter", set_jitter, NULL, RSRC_CONF | ACCESS_CONF,
                  "0.1: each page is fresh for up to 10 % less, so that not all come to their end at once (0)"),
    AP_INIT_TAKE1("HoldfastTagHeader", set_tag_header, NULL, RSRC_CONF | ACCESS_CONF,
                  "the header of an answer that names its tags, or off"),
    AP_INIT_TAKE1("HoldfastMaxSize", set_size, NULL, RSRC_CONF | ACCESS_CONF, "the longest body that is cached (1M)"),
    AP_INIT_TAKE1("HoldfastStatus", set_status, NULL, RSRC_CONF, "the path of the counters, for Prometheus"),
    {.name = NULL},
};
