/* SPDX-License-Identifier: MIT */
/* uri.h - parses the URI of a deployment. Pure: no I/O. */
#ifndef HFI_URI_H
#define HFI_URI_H

#include "base/error.h"

#define HFI_HOSTS_MOST 16 /* in a list */

enum hfi_scheme { HFI_TCP, HFI_UNIX, HFI_EMBEDDED, HFI_SENTINEL };

struct hfi_host {
    char *name; /* or address, no brackets */
    int   port;
};

struct hfi_endpoint { /* all strings owned; hfi_endpoint_done frees and wipes them */
    enum hfi_scheme scheme;
    bool  tls;      /* TCP, SENTINEL: TLS on it */
    char *host;     /* TCP: name or address, no brackets */
    int   port;     /* TCP */
    struct hfi_host hosts[HFI_HOSTS_MOST]; /* SENTINEL: the sentinels */
    int   host_count;
    char *service;  /* SENTINEL: whose primary is meant */
    char *path;     /* UNIX: the socket; EMBEDDED: NULL or the name of the instance; after joining: its socket */
    char *user, *password; /* NULL: none */
    int   database;
};

/* One name=value of the query, percent-decoded. An error, set by hfi_fail, becomes the result of the whole parse. */
typedef hf_status hfi_uri_query(void *self, const char *name, const char *value, hf_error *error);

/* redis://[user[:password]@]host[:port][/database], redis://[::1]:6379, unix:///path[?db=n], embedded:[name]; valkey is
 * redis; rediss and valkeys are the same with TLS. sentinel://[user[:password]@]host[:26379]{,host...}/service[/database];
 * redis+sentinel is sentinel, sentinels the same with TLS to both kinds. cluster, quorum: HF_INVALID, and the error says
 * that they come later. Every error names the bad part and never shows the password. No part except a password may contain control
 * characters, encoded or not.
 * `database` may be given in the query as db. Options that the parser does not know go to `query`, each name once. */
hf_status hfi_uri_parse(const char *uri, hfi_uri_query *query, void *self, struct hfi_endpoint *endpoint, hf_error *error);
void      hfi_endpoint_done(struct hfi_endpoint *endpoint);
bool      hfi_endpoint_copy(struct hfi_endpoint *to, const struct hfi_endpoint *from); /* false: no memory, *to empty */

#endif
