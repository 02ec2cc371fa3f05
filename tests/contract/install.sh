#!/bin/sh
# SPDX-License-Identifier: MIT
# install.sh SOURCE BUILD: README's second program, a lock, builds and runs from an installed copy alone, by its own lines,
# wherever that copy was put when it was installed.
set -eu
source=$(CDPATH='' cd -- "$1" && pwd)
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

awk '/^## A lock/ { here = 1 } here && /^```$/ { exit } inside; here && /^```c$/ { inside = 1 }' "$source/README.md" >"$work/program.c"
line=$(sed -n 's/^ *cc program.c/gcc -Wall -Wextra -Werror -std=c11 program.c/p' "$source/README.md")
[ -n "$line" ] || { echo "README has no line that compiles program.c" >&2; exit 1; }
PKG_CONFIG_PATH=$(dirname "$(find "$work/copy" -name holdfast.pc)")
export PKG_CONFIG_PATH
(cd "$work" && eval "$line -o by_pkg_config")
library=$(dirname "$(find "$work/copy" -name libholdfast.so)")
# has_run PROGRAM: it says what README says of it.
has_run() {
    if ! timeout 20 "$1" >"$work/said" 2>&1 || ! grep -q '^step 3, fence [0-9]\{19\}$' "$work/said"; then
        echo "$1 said:" && cat "$work/said"
        return 1
    fi
}
LD_LIBRARY_PATH=$library has_run "$work/by_pkg_config"

mkdir "$work/user"
{
    printf 'cmake_minimum_required(VERSION 3.25)\nproject(user C)\nadd_executable(program ../program.c)\n'
    sed -n 's/^ *\(find_package(holdfast .*\|target_link_libraries(program .*\)/\1/p' "$source/README.md"
} >"$work/user/CMakeLists.txt"
{
    cmake -G Ninja -S "$work/user" -B "$work/user/build" -DCMAKE_PREFIX_PATH="$work/copy" && cmake --build "$work/user/build"
} >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
has_run "$work/user/build/program"

# While the first number is 0, each second one is another library.
for asked in 0.0 0.2 1.0; do
    sed "s/find_package(holdfast [0-9.]*/find_package(holdfast $asked/" "$work/user/CMakeLists.txt" >"$work/CMakeLists.txt"
    sed -i 's/add_executable.*/add_executable(program program.c)/' "$work/CMakeLists.txt"
    if cmake -G Ninja -S "$work" -B "$work/other" -DCMAKE_PREFIX_PATH="$work/copy" >"$work/log" 2>&1; then
        echo "a program that asks for $asked gets what is installed" >&2
        exit 1
    fi
done
if redis-cli -s "$REDIS_SOCKET" --scan | grep -vx 'hf:fence' >&2; then
    echo "the program left something behind" >&2
    exit 1
fi
