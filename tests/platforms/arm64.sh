#!/bin/sh
# SPDX-License-Identifier: MIT
# arm64.sh SOURCE FOLDER [ctest arguments...]: builds the tree SOURCE for arm64 with Debian's cross compiler below FOLDER,
# and runs its unit tests and the short torture of one name in an emulator, against this machine's own redis-server.
# 77: this machine cannot (no root, no network).
set -eu
source=$(CDPATH='' cd -- "$1" && pwd)
folder=$2
shift 2
libraries=libc6-dev,libhiredis-dev,libck-dev,libssl-dev,libcmocka-dev,liblua5.1-0-dev,libmicrohttpd-dev

cannot() {
    echo "arm64: not here: $*" >&2
    exit 77
}

for tool in debootstrap qemu-aarch64 aarch64-linux-gnu-gcc; do
    command -v $tool >/dev/null || cannot "there is no $tool"
done
mkdir -p "$folder"
folder=$(CDPATH='' cd -- "$folder" && pwd)
root=$folder/root

if [ ! -e "$root/made" ]; then
    [ "$(id -u)" = 0 ] || cannot "debootstrap wants root"
    rm -rf "$root"
    . /etc/os-release
    echo "arm64: the libraries of $PRETTY_NAME for arm64, a minute"
    debootstrap --foreign --arch=arm64 --variant=minbase --include=$libraries "$VERSION_CODENAME" "$root" \
        >"$folder/debootstrap.log" 2>&1 || {
        tail -n 5 "$folder/debootstrap.log" >&2
        cannot "debootstrap failed (no network?), see $folder/debootstrap.log"
    }
    for package in "$root"/var/cache/apt/archives/*.deb; do # the second half would run programs of the other kind
        dpkg-deb -x "$package" "$root"
    done
    : >"$root/made"
fi

cmake -S "$source" -B "$folder/build" -G Ninja --log-level=WARNING -DCMAKE_TOOLCHAIN_FILE="$source/tests/platforms/arm64.cmake" \
    -DARM64_ROOT="$root" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DHOLDFAST_DEVELOP=ON -DHOLDFAST_CHECKED=ON
cmake --build "$folder/build"
echo "arm64: $(aarch64-linux-gnu-gcc --version | head -n 1), $(qemu-aarch64 --version | head -n 1)"
status=0
# Not what asks the kernel for things that the emulator lacks (memory that a fork child finds wiped, the highest signals,
# /proc of children as they are), or runs programs from a script.
ctest --test-dir "$folder/build" --output-on-failure -j2 -L unit -E '^(demo|unit[.](family|random|thread|watchdog|wiped)$)' \
    "$@" || status=$?
qemu-aarch64 -L "$root" "$folder/build/tests/torture" one --seconds 5 || status=$?
exit $status
