#!/bin/sh
# SPDX-License-Identifier: MIT
# install.sh SOURCE BUILD: an example builds and runs from an installed copy alone, found by pkg-config and by
# CMake's find_package.
set -eu
source=$(cd "$1" && pwd)
if [ -z "${REDIS_SOCKET:-}" ]; then
    exec "$source/tests/support/with_redis.sh" sh "$0" "$@"
fi
work=$(mktemp -d /tmp/holdfast-test-XXXXXX)
trap 'rm -rf "$work"' EXIT

cmake --install "$2" --prefix "$work/copy" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
if find "$work/copy/include" -type f | grep -v '/include/holdfast/[a-z]*\.h\(pp\)\?$' >&2; then
    echo "more than the public headers is installed" >&2
    exit 1
fi

folder=$(dirname "$(find "$work/copy" -name holdfast.pc)")
library=$(dirname "$(find "$work/copy" -name libholdfast.so)")
flags=$(PKG_CONFIG_PATH=$folder pkg-config --define-variable=prefix="$work/copy" --cflags --libs holdfast)
# shellcheck disable=SC2086 # flags are words on purpose
gcc -std=c11 -Wall -Wextra -Werror -o "$work/by_pkg_config" "$source/examples/first_lock.c" $flags
LD_LIBRARY_PATH=$library timeout 20 "$work/by_pkg_config"

mkdir "$work/user"
cp "$source/examples/first_lock.c" "$work/user/"
cat >"$work/user/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(holdfast 0.1 REQUIRED)
add_executable(by_cmake first_lock.c)
target_link_libraries(by_cmake PRIVATE holdfast::holdfast)
END
{
    cmake -G Ninja -S "$work/user" -B "$work/user/build" -DCMAKE_PREFIX_PATH="$work/copy" && cmake --build "$work/user/build"
} >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
timeout 20 "$work/user/build/by_cmake"
if redis-cli -s "$REDIS_SOCKET" --scan | grep -vx 'hf:fence' >&2; then
    echo "the example left something behind" >&2
    exit 1
fi
