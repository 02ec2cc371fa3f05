/* SPDX-License-Identifier: MIT */
/* log.h - one line to the user's log function, or silence. Call with no mutex held. */
#ifndef HFI_LOG_H
#define HFI_LOG_H

#include <holdfast/client.h>

struct hfi_log {
    hf_log_fn *write; /* NULL: silence */
    void      *arg;
};

void hfi_log(const struct hfi_log *log, hf_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
