/* SPDX-License-Identifier: MIT */
/* trouble.c - what went wrong, in words for the person who has to mend it; OpenSSL's own words go into the hint. */
#include "pool/tls/tls_private.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NAMES_SHOWN 3

/* An alert of the other side, as OpenSSL counts them among its reasons. */
#define ALERT(reason) ((reason) - SSL_AD_REASON_OFFSET)

static void say(struct hfi_transport_why *why, bool denied, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void say(struct hfi_transport_why *why, bool denied, const char *hint, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(why->what, sizeof why->what, format, arguments);
    va_end(arguments);
    (void)snprintf(why->hint, sizeof why->hint, "%s", hint);
    why->denied = denied;
}

static bool is_about_our_certificate(int alert)
{
    return (alert >= SSL_AD_BAD_CERTIFICATE && alert <= SSL_AD_CERTIFICATE_UNKNOWN) || alert == SSL_AD_UNKNOWN_CA ||
           alert == SSL_AD_ACCESS_DENIED;
}

void hfi_tls_trouble_ssl(struct hfi_transport_why *why)
{
    unsigned long error = ERR_peek_error();
    int reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0, alert = ALERT(reason);
    const char *words = error != 0 ? ERR_reason_error_string(error) : NULL;
    char hint[sizeof why->hint];
    if (why->what[0] != 0) { /* the first one says most */
        ERR_clear_error();
        return;
    }
    (void)snprintf(hint, sizeof hint, "OpenSSL: %s", words != NULL ? words : "no reason given");
    if (alert == TLS13_AD_CERTIFICATE_REQUIRED)
        say(why, true, "give it one: tls_cert_file and tls_key_file", "it asks for a certificate of ours");
    else if (is_about_our_certificate(alert))
        say(why, true, hint, "it refuses our certificate (tls_cert_file)");
    else if (alert == SSL_AD_HANDSHAKE_FAILURE)
        say(why, true, "does it ask for a certificate (tls_cert_file, tls_key_file), or for other ciphers?",
            "it refuses the TLS handshake");
    else if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_PACKET_LENGTH_TOO_LONG)
        say(why, false, "is this a port without TLS? then redis://", "it does not speak TLS");
    else if (alert == SSL_AD_PROTOCOL_VERSION || reason == SSL_R_UNSUPPORTED_PROTOCOL)
        say(why, true, hint, "it speaks no version of TLS that tls_min allows");
    else
        say(why, false, hint, "TLS failed");
    ERR_clear_error();
}

void hfi_tls_trouble_file(const char *option, const char *file, struct hfi_transport_why *why)
{
    unsigned long error = ERR_peek_last_error(), first = ERR_peek_error();
    if (ERR_GET_LIB(first) == ERR_LIB_SYS)
        error = first; /* no such file, no right to read it */
    const char *words = ERR_GET_LIB(error) == ERR_LIB_SYS ? strerror(ERR_GET_REASON(error)) : ERR_reason_error_string(error);
    say(why, false, "a PEM file that this user may read, without a passphrase", "%s %.100s: %s", option,
        file != NULL ? file : "(the system's certificates)", words != NULL ? words : "cannot be used");
    ERR_clear_error();
}

/* ---- the other side's certificate ---- */

static void add_name(char *names, size_t capacity, int count, const char *name, int size)
{
    size_t at = strlen(names);
    if (count == NAMES_SHOWN)
        (void)snprintf(names + at, capacity - at, " and others");
    else if (count < NAMES_SHOWN)
        (void)snprintf(names + at, capacity - at, "%s%.*s", count > 0 ? ", " : "", size, name);
}

/* A name in a certificate is anybody's bytes, and what we say may go to a terminal. */
static void make_printable(char *text)
{
    for (; *text != 0; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

static void print_address(const ASN1_OCTET_STRING *octets, char *out, size_t capacity)
{
    const unsigned char *at = ASN1_STRING_get0_data(octets);
    if (ASN1_STRING_length(octets) == 4)
        (void)snprintf(out, capacity, "%d.%d.%d.%d", at[0], at[1], at[2], at[3]);
    else
        (void)snprintf(out, capacity, "an IPv6 address");
}

/* Whom the certificate is for: "a.example, b.example". */
static void list_names(const X509 *certificate, char *names, size_t capacity)
{
    int count = 0;
    GENERAL_NAMES *all = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    *names = 0;
    for (int i = 0; i < sk_GENERAL_NAME_num(all); i++) {
        const GENERAL_NAME *one = sk_GENERAL_NAME_value(all, i);
        char address[64];
        if (one->type == GEN_DNS) {
            const char *text = (const char *)ASN1_STRING_get0_data(one->d.dNSName);
            add_name(names, capacity, count++, text, ASN1_STRING_length(one->d.dNSName));
        } else if (one->type == GEN_IPADD) {
            print_address(one->d.iPAddress, address, sizeof address);
            add_name(names, capacity, count++, address, (int)strlen(address));
        }
    }
    GENERAL_NAMES_free(all);
    if (count == 0 &&
        X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, names, (int)capacity) <= 0)
        (void)snprintf(names, capacity, "nobody");
    make_printable(names);
}

int hfi_tls_trouble_verdict(int good, X509_STORE_CTX *checked)
{
    const SSL *ssl = X509_STORE_CTX_get_ex_data(checked, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct hfi_tls *tls = SSL_get_app_data(ssl);
    int error = X509_STORE_CTX_get_error(checked);
    const X509 *certificate = X509_STORE_CTX_get_current_cert(checked);
    const char *words = X509_verify_cert_error_string(error);
    char names[120] = "nobody", hint[sizeof tls->why.hint];
    if (good || tls->context->verify == HFI_TLS_NONE)
        return good;
    (void)snprintf(hint, sizeof hint, "OpenSSL: %s", words);
    switch (error) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        if (certificate != NULL)
            list_names(certificate, names, sizeof names);
        say(&tls->why, true, "use that name, or say tls_server_name, if it is the right server",
            "the certificate is for %s, not %.60s", names, tls->name);
        break;
    case X509_V_ERR_CERT_HAS_EXPIRED:
        say(&tls->why, true, "renew it at the server; are both clocks right?", "its certificate has expired");
        break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        say(&tls->why, true, "are both clocks right?", "its certificate is not valid yet");
        break;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        say(&tls->why, true, hint, "nobody that we trust has signed its certificate: see tls_ca_file");
        break;
    default:
        say(&tls->why, true, hint, "its certificate cannot be trusted");
        break;
    }
    return good;
}
