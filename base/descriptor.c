/* SPDX-License-Identifier: MIT */
/* descriptor.c - see descriptor.h. */
#include "base/descriptor.h"

#include <stdatomic.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOWEST (STDERR_FILENO + 1)

int hfi_descriptor(int fd)
{
    if (fd < 0 || fd >= LOWEST)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, LOWEST), failed = errno;
    hfi_descriptor_close(fd);
    errno = failed;
    return moved;
}

int hfi_descriptor_event(void)
{
    return hfi_descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

void hfi_event_set(int fd)
{
    uint64_t one = 1;
    (void)syscall(SYS_write, fd, &one, sizeof one);
}

void hfi_event_clear(int fd)
{
    uint64_t count;
    (void)syscall(SYS_read, fd, &count, sizeof count);
}

void hfi_descriptor_close(int fd)
{
    (void)syscall(SYS_close, fd);
}

bool hfi_descriptor_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    ends[0] = hfi_descriptor(ends[0]);
    int failed = errno;
    ends[1] = hfi_descriptor(ends[1]);
    if (ends[0] >= 0 && ends[1] >= 0)
        return true;
    failed = ends[0] < 0 ? failed : errno;
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            hfi_descriptor_close(ends[i]);
    errno = failed;
    return false;
}

uint32_t hfi_descriptor_number(void)
{
    static _Atomic(uint32_t) numbers;
    return atomic_fetch_add(&numbers, 1) + 1;
}
