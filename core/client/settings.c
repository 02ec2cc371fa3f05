/* SPDX-License-Identifier: MIT */
/* settings.c - see settings.h. */
#include "core/client/settings.h"

#include <stdlib.h>
#include <string.h>

static hf_status take_query(void *self, const char *name, const char *value, hf_error *error)
{
    struct hfi_settings *settings = self;
    if (settings->count == HFI_CLIENT_OPTIONS)
        return hfi_fail(error, HF_INVALID, "", "the URI has more than %d options", settings->count);
    char *text = strdup(value);
    if (text == NULL)
        return hfi_fail(error, HF_NOMEM, "", "no memory for a client");
    settings->texts[settings->count++] = text;
    return hfi_client_option_parse(&settings->options, name, text, error);
}

/* The option, if there is one, in place of what the URI says. */
static bool override(char **text, const char *option)
{
    if (option == NULL)
        return true;
    if (*text != NULL)
        explicit_bzero(*text, strlen(*text));
    free(*text);
    *text = strdup(option);
    return *text != NULL;
}

hf_status hfi_settings_read(struct hfi_settings *settings, const char *uri, const hf_client_options *given,
                            hf_error *error)
{
    hf_client_options *o = &settings->options;
    *settings = (struct hfi_settings){0};
    if (uri == NULL)
        uri = "redis://127.0.0.1:6379";
    hf_status status = hfi_options_take(o, sizeof *o, given, "HF_CLIENT", error);
    if (status == HF_OK)
        status = hfi_uri_parse(uri, take_query, settings, &settings->endpoint, error);
    if (status == HF_OK)
        status = hfi_tls_options_check(o, settings->endpoint.tls, error);
    if (status == HF_OK && (o->sentinel_user != NULL || o->sentinel_password != NULL) &&
        settings->endpoint.scheme != HFI_SENTINEL)
        status = hfi_fail(error, HF_INVALID, "sentinel://host1,host2,host3/service",
                          "there are sentinel_ options, but the URI names no sentinels");
    if (status == HF_OK && o->replicas == HF_ALL && settings->endpoint.scheme != HFI_SENTINEL)
        status = hfi_fail(error, HF_INVALID, "say how many, or name the sentinels: sentinel://host1,host2,host3/service",
                          "replicas is all, but the URI names no sentinels, who know which could be promoted");
    if (status == HF_OK)
        status = hfi_client_options_check(o, error);
    if (status == HF_OK &&
        (!override(&settings->endpoint.user, o->user) || !override(&settings->endpoint.password, o->password)))
        status = hfi_fail(error, HF_NOMEM, "", "no memory for a client");
    return status;
}

static struct hfi_tls_settings tls_of(const struct hfi_settings *settings)
{
    const hf_client_options *o = &settings->options;
    if (!settings->endpoint.tls)
        return (struct hfi_tls_settings){0};
    return (struct hfi_tls_settings){
        .ca_file = o->tls_ca_file,
        .cert_file = o->tls_cert_file,
        .key_file = o->tls_key_file,
        .name = o->tls_server_name,
        .verify = strcmp(o->tls_verify, "full") == 0 ? HFI_TLS_FULL
                  : strcmp(o->tls_verify, "ca") == 0 ? HFI_TLS_CA
                                                     : HFI_TLS_NONE,
        .min = strcmp(o->tls_min, "1.3") == 0 ? 13 : 12,
    };
}

struct hfi_pool_settings hfi_settings_of_pool(const struct hfi_settings *settings, const char *client_name)
{
    const hf_client_options *o = &settings->options;
    return (struct hfi_pool_settings){
        .endpoint = settings->endpoint,
        .sentinel_user = o->sentinel_user,
        .sentinel_password = o->sentinel_password,
        .tls = tls_of(settings),
        .client_name = client_name,
        .connect_ms = o->connect_ms,
        .command_ms = o->command_ms,
        .lanes = o->lanes,
        .subscribers = o->subscribers,
        .min_connections = o->min_connections,
        .max_connections = o->max_connections,
        .idle_ms = o->idle_ms,
        .lifetime_ms = o->lifetime_ms,
        .max_value_bytes = o->max_value_bytes,
        .replicas = o->replicas,
        .replicas_ms = o->replicas_ms,
        .clocks_ms = o->guard_ms == HF_OFF ? 0 : o->guard_ms / 2,
    };
}

void hfi_settings_done(struct hfi_settings *settings)
{
    hfi_endpoint_done(&settings->endpoint);
    while (settings->count > 0) {
        char *text = settings->texts[--settings->count];
        explicit_bzero(text, strlen(text)); /* it may be the sentinels' password */
        free(text);
    }
}
