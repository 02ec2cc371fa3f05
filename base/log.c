/* SPDX-License-Identifier: MIT */
/* log.c - see log.h. */
#include "base/log.h"
#include "base/mutex.h"
#include "base/thread.h"

#include <stdarg.h>
#include <stdio.h>

void hfi_log(const struct hfi_log *log, hf_log_level level, const char *format, ...)
{
    char line[512];
    HFI_CHECK(hfi_mutex_none_is_held());
    if (log->write == NULL)
        return;
    va_list words;
    va_start(words, format);
    (void)vsnprintf(line, sizeof line, format, words);
    va_end(words);
    hfi_thread_forbid(); /* the listener may be the caller: a call that waits for the listener would never return */
    log->write(level, line, log->arg);
    hfi_thread_permit();
}
