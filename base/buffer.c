/* SPDX-License-Identifier: MIT */
/* buffer.c - see buffer.h. Calls nothing but the allocator. */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hfi_buffer_done(struct hfi_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct hfi_buffer){0};
}

char *hfi_buffer_reserve(struct hfi_buffer *buffer, size_t size)
{
    size_t content = hfi_buffer_size(buffer);
    if (buffer->bytes != NULL && buffer->capacity - buffer->end >= size)
        return buffer->bytes + buffer->end;
    if (size > SIZE_MAX / 2 - content)
        return NULL;
    if (buffer->bytes == NULL || buffer->capacity < content + size || buffer->start < content) {
        size_t capacity = buffer->capacity < 256 ? 256 : buffer->capacity;
        while (capacity < content + size)
            capacity *= 2;
        char *bytes = malloc(capacity);
        if (bytes == NULL)
            return NULL;
        if (buffer->bytes != NULL)
            memcpy(bytes, buffer->bytes + buffer->start, content);
        free(buffer->bytes);
        buffer->bytes = bytes;
        buffer->capacity = capacity;
    } else {
        memmove(buffer->bytes, buffer->bytes + buffer->start, content);
    }
    buffer->start = 0;
    buffer->end = content;
    return buffer->bytes + buffer->end;
}

bool hfi_buffer_append(struct hfi_buffer *buffer, const void *bytes, size_t size)
{
    char *at = hfi_buffer_reserve(buffer, size);
    if (at == NULL)
        return false;
    if (size > 0)
        memcpy(at, bytes, size);
    buffer->end += size;
    return true;
}

bool hfi_buffer_print(struct hfi_buffer *buffer, const char *format, ...)
{
    va_list words, again;
    va_start(words, format);
    va_copy(again, words);
    int size = vsnprintf(NULL, 0, format, words);
    va_end(words);
    char *at = size < 0 ? NULL : hfi_buffer_reserve(buffer, (size_t)size + 1);
    if (at != NULL) {
        (void)vsnprintf(at, (size_t)size + 1, format, again);
        buffer->end += (size_t)size;
    }
    va_end(again);
    return at != NULL;
}

void hfi_buffer_eat(struct hfi_buffer *buffer, size_t size)
{
    buffer->start += size;
    if (buffer->start == buffer->end)
        buffer->start = buffer->end = 0;
}
