/* SPDX-License-Identifier: MIT */
/* secure.c - see secure.h. The module lies beside the library, or where the dynamic linker looks. It is never unloaded:
 * OpenSSL, which it brings along, cannot be. */
#include "pool/secure.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct hfi_secure {
    const struct hfi_tls_module *module;
    struct hfi_tls_context *context;
    const struct hfi_log *log;
    bool verifies;
};

/* Of a program that has the library in itself the linker knows no path: its name is what the caller made it. */
static bool find_beside_us(char *path, size_t capacity)
{
    static const char here = 0;
    Dl_info us;
    struct link_map *map = NULL;
    if (dladdr1(&here, &us, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL || map->l_name[0] != '/')
        return false;
    int folder = (int)(strrchr(map->l_name, '/') - map->l_name);
    int size = snprintf(path, capacity, "%.*s/" HFI_TLS_FILE, folder, map->l_name);
    return size < (int)capacity && access(path, F_OK) == 0;
}

static hf_status open_module(const struct hfi_tls_module **module, hf_error *error)
{
    char path[4096];
    void *object = dlopen(find_beside_us(path, sizeof path) ? path : HFI_TLS_FILE, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (object == NULL)
        return hfi_fail(error, HF_UNAVAILABLE, "put it beside libholdfast.so, or where the loader looks: rpath, ldconfig, LD_LIBRARY_PATH",
                        "TLS needs a module: %s", dlerror());
    *module = dlsym(object, "hfi_tls_module");
    if (*module == NULL || strcmp((*module)->version, HFI_TLS_VERSION) != 0)
        return hfi_fail(error, HF_UNAVAILABLE, "install library and module from one build",
                        "the module " HFI_TLS_FILE " does not belong to this library (%s)", hf_version());
    return HF_OK;
}

hf_status hfi_secure_open(const struct hfi_tls_settings *settings, const struct hfi_log *log, struct hfi_secure **made,
                          hf_error *error)
{
    struct hfi_transport_why why = {0};
    struct hfi_secure *secure = calloc(1, sizeof *secure);
    if (secure == NULL)
        return hfi_fail(error, HF_NOMEM, NULL, "no memory for TLS");
    secure->log = log;
    hf_status status = open_module(&secure->module, error);
    if (status == HF_OK)
        secure->context = secure->module->open(settings, &why);
    if (status == HF_OK && secure->context == NULL)
        status = why.what[0] != 0 ? hfi_fail(error, HF_INVALID, why.hint, "%s", why.what)
                                  : hfi_fail(error, HF_NOMEM, NULL, "no memory for TLS");
    if (status != HF_OK) {
        free(secure);
        return status;
    }
    secure->verifies = settings->verify != HFI_TLS_NONE;
    if (!secure->verifies)
        hfi_log(log, HF_LOG_WARNING, "tls_verify is none: whoever answers in the server's place is believed, and gets the password");
    *made = secure;
    return HF_OK;
}

bool hfi_secure_wrap(struct hfi_secure *secure, const char *host, struct hfi_connection *connection)
{
    struct hfi_transport_why why;
    if (!secure->module->refresh(secure->context, &why))
        hfi_log(secure->log, HF_LOG_WARNING, "a TLS file has changed, and the one before stays in force: %s", why.what);
    return secure->module->wrap(secure->context, host, connection);
}

bool hfi_secure_verifies(const struct hfi_secure *secure)
{
    return secure == NULL || secure->verifies;
}

void hfi_secure_free(struct hfi_secure *secure)
{
    if (secure == NULL)
        return;
    secure->module->free(secure->context);
    free(secure);
}
