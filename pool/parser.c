/* SPDX-License-Identifier: MIT */
/* parser.c - see parser.h. hiredis allocates memory for all elements of an array as soon as it has read their count, so
 * ten bytes from a server could cost gigabytes. */
#include "base/mutex.h"
#include "pool/parser.h"

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#if HIREDIS_MAJOR >= 1
typedef size_t count_type;
#else
typedef int count_type;
#endif

#define LEAST_ELEMENT 4 /* bytes: ":1\r\n" */

static redisReplyObjectFunctions bounded;
static void *(*create_array)(const redisReadTask *, count_type);
static struct hfi_mutex mutex = HFI_MUTEX_STATIC(HFI_RANK_LEAF);
static bool is_made; /* `bounded` is set; tried again if there was no memory */

static void *create_bounded_array(const redisReadTask *task, count_type count)
{
    if ((size_t)count > (uintptr_t)task->privdata / LEAST_ELEMENT)
        return NULL; /* hiredis takes it for no memory. The reader is broken from then on */
    return create_array(task, count);
}

static void make_locked(void)
{
    redisReader *reader = is_made ? NULL : redisReaderCreate();
    if (reader == NULL)
        return;
    bounded = *reader->fn;
    create_array = bounded.createArray;
    bounded.createArray = create_bounded_array;
    is_made = true;
    redisReaderFree(reader);
}

struct redisReader *hfi_parser_create(size_t reply_most)
{
    hfi_mutex_lock(&mutex);
    make_locked();
    redisReader *reader = is_made ? redisReaderCreateWithFunctions(&bounded) : NULL;
    hfi_mutex_unlock(&mutex);
    if (reader != NULL)
        reader->privdata = (void *)(uintptr_t)reply_most; /* NOLINT: a number, not an address */
    return reader;
}
