#!/bin/sh
# SPDX-License-Identifier: MIT
# descriptors.sh SOURCE BUILD: every call of the library that makes a descriptor goes through base/descriptor.h, so that
# none of ours is 0, 1 or 2.
set -eu
cd "$1"
makers='eventfd|socket|socketpair|accept4?|open|openat|creat|dup[23]?|pipe2?|epoll_create1?|timerfd_create|signalfd|memfd_create|fopen|opendir'
calls=$(grep -rnE --include='*.[ch]' "(^|[^a-z_>.])($makers)\(" base pool watchdog core | grep -vE ':[0-9]+:(/\*| \*)')
[ -n "$calls" ]
if printf '%s\n' "$calls" | grep -vE "hfi_descriptor\(($makers)\(|^base/descriptor\.c:" >&2; then
    echo "a descriptor that may be 0, 1 or 2: write hfi_descriptor(...) around it" >&2
    exit 1
fi
