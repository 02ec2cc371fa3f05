/* SPDX-License-Identifier: MIT */
/* uri.c - a URI with its options, then options as a program fills them in: accepted, or refused with a reason that
 * never shows the password. */
#include "tests/fuzz/fuzz.h"

#include "core/protocol/options.h"
#include "pool/uri.h"

struct taken { /* the options, and the values that they point to */
    hf_client_options options;
    char *values[32];
    int count;
};

static hf_status option(void *self, const char *name, const char *value, hf_error *error)
{
    struct taken *taken = self;
    if (taken->count == 32)
        return hfi_fail(error, HF_INVALID, "", "too many options for this fuzzer");
    taken->values[taken->count] = strdup(value);
    return hfi_client_option_parse(&taken->options, name, taken->values[taken->count++], error);
}

static void is_said(const hf_error *error, hf_status status)
{
    HFT_MUST(error->status == status && error->message[0] != 0);
    HFT_MUST(strnlen(error->message, sizeof error->message) < sizeof error->message);
    for (const unsigned char *at = (const unsigned char *)error->message; *at != 0; at++)
        HFT_MUST(*at >= ' ' && *at != 0x7f);
}

static void take_uri(const char *uri)
{
    struct taken taken = {.count = 0};
    struct hfi_endpoint place;
    hf_error error;
    hf_status status = hfi_uri_parse(uri, option, &taken, &place, &error);
    if (status == HF_OK) {
        struct hfi_endpoint copy;
        HFT_MUST(place.scheme != HFI_TCP || (place.host != NULL && place.port > 0 && place.port < 65536));
        HFT_MUST(place.scheme != HFI_UNIX || place.path != NULL);
        HFT_MUST(place.database >= 0 && hfi_endpoint_copy(&copy, &place));
        hfi_endpoint_done(&copy);
        hfi_endpoint_done(&place);
    } else {
        is_said(&error, status);
        const char *password = strstr(uri, ":sEcReT@"); /* and the word stands nowhere else */
        if (strncmp(uri, "redis://", 8) == 0 && password != NULL && strstr(uri, "sEcReT") == password + 1 &&
            strcspn(uri + 8, "/?#") > (size_t)(password - uri) &&
            strstr(password + 2, "sEcReT") == NULL)
            HFT_MUST(strstr(error.message, "sEcReT") == NULL && strstr(error.hint, "sEcReT") == NULL);
    }
    status = hfi_client_options_check(&taken.options, &error);
    if (status != HF_OK)
        is_said(&error, status);
    while (taken.count > 0)
        free(taken.values[--taken.count]);
}

static void take_options(const uint8_t *data, size_t size)
{
    static const size_t sizes[] = {sizeof(hf_client_options), sizeof(hf_lock_options), sizeof(hf_fetch_options)};
    union {
        hf_lock_options lock;
        hf_fetch_options fetch;
        unsigned char bytes[1024];
    } given = {.bytes = {0}}, taken;
    hf_error error;
    if (size < 2)
        return;
    size_t which = 1 + data[0] % 2, room = sizes[which];
    memcpy(given.bytes, data + 1, size - 1 < sizeof given.bytes ? size - 1 : sizeof given.bytes);
    memset(&given, data[1], sizeof(size_t));
    size_t said = room + (size_t)(data[1] % 3) * 8 - 8; /* an older program, this one, a newer one */
    memcpy(given.bytes, &said, sizeof said);
    if (hfi_options_take(&taken, room, &given, "HF_LOCK", &error) != HF_OK)
        return;
    if (which == 1) {
        taken.lock.owner_label = data[0] & 2 ? "nightly" : NULL;
        (void)hfi_lock_options_check(&taken.lock, 10000, &error);
    } else {
        (void)hfi_fetch_options_check(&taken.fetch, 10000, false, &error);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *uri = hft_line(&data, &size);
    take_uri(uri);
    free(uri);
    take_options(data, size);
    return 0;
}
