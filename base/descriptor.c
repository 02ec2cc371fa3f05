/* SPDX-License-Identifier: MIT */
/* descriptor.c - see descriptor.h. */
#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LOWEST (STDERR_FILENO + 1)

int hfi_descriptor(int fd)
{
    if (fd < 0 || fd >= LOWEST)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, LOWEST), failed = errno;
    (void)close(fd);
    errno = failed;
    return moved;
}

int hfi_descriptor_event(void)
{
    return hfi_descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}
