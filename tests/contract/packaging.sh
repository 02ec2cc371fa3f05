#!/bin/sh
# SPDX-License-Identifier: MIT
# packaging.sh SOURCE BUILD: what packagers do to a project. Folders that are absolute; a static library; holdfast as a
# part of somebody's project, with nothing of it in his cache, his warnings or his installation.
set -eu
source=$(CDPATH='' cd -- "$1" && pwd)
if [ -z "${REDIS_SOCKET:-}" ]; then
    exec "$source/tests/support/with_redis.sh" sh "$0" "$@"
fi
work=$(mktemp -d /tmp/holdfast-test-XXXXXX)
trap 'rm -rf "$work"' EXIT
awk '/^## A lock/ { here = 1 } here && /^```$/ { exit } inside; here && /^```c$/ { inside = 1 }' "$source/README.md" >"$work/program.c"

quietly() {
    "$@" >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; echo "failed: $*" >&2; exit 1; }
}

# The three builds are configured and linked each for itself. Compiling is what costs: an object that one of them has
# compiled with the same words, but for where it goes, is taken by the next. Optimising would prove nothing here, nor -g.
mkdir "$work/compiled"
cat >"$work/once" <<'END'
#!/bin/sh
words='' object='' skips=''
for word in "$@"; do # the last one is the source
    case $skips$word in
    -o | -MF | -MT) skips=$word; continue ;;
    -o*) object=$word ;;
    -MF* | -MT*) ;;
    *) words="$words $word" ;;
    esac
    skips=''
done
kept=${0%/once}/compiled$word said=''
[ ! -e "$kept.words" ] || IFS= read -r said <"$kept.words"
[ "$said" != "$words" ] || exec cp "$kept" "$object"
"$@" || exit
mkdir -p "${kept%/*}"
cp "$object" "$kept"
printf '%s\n' "$words" >"$kept.words"
END
chmod 755 "$work/once"
configure() { # configure SOURCE BUILD OPTION...
    from=$1 into=$2
    shift 2
    quietly cmake -S "$from" -B "$into" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O0 \
        -DCMAKE_C_COMPILER_LAUNCHER="$work/once" "$@"
}
runs() { # runs PROGRAM...: README's program
    timeout 20 "$@" >"$work/said" || { echo "failed with $?: $*" >&2; return 1; }
    grep -q '^step 3, fence [0-9]\{19\}$' "$work/said" || { cat "$work/said" >&2; return 1; }
}

# A package: the folder of libraries is absolute and elsewhere, and nobody asked for what developers need.
configure "$source" "$work/package" -DCMAKE_INSTALL_PREFIX="$work/usr" -DCMAKE_INSTALL_LIBDIR="$work/arch/lib"
quietly cmake --build "$work/package"
if ls -d "$work/package/tests" "$work/package/bench" 2>/dev/null || grep -m 1 -e -Werror "$work/package/build.ninja"; then
    echo "a plain build has what is for developers" >&2
    exit 1
fi
quietly cmake --install "$work/package"
PKG_CONFIG_PATH=$work/arch/lib/pkgconfig
export PKG_CONFIG_PATH
# shellcheck disable=SC2046 # flags are words on purpose
gcc -std=c11 -Wall -Wextra -Werror -o "$work/packaged" "$work/program.c" $(pkg-config --cflags --libs holdfast)
LD_LIBRARY_PATH=$work/arch/lib runs "$work/packaged"
env -u LD_LIBRARY_PATH "$work/usr/bin/holdfast" ls # finds its library by itself
cmp "$source/LICENSE" "$work/usr/share/doc/holdfast/LICENSE"
for part in man/man1/holdfast.1 bash-completion/completions/holdfast zsh/site-functions/_holdfast \
    $(grep -o '](docs/[a-z-]*\.md' "$source/README.md" | sed 's|](|doc/holdfast/|'); do
    [ -s "$work/usr/share/$part" ] || { echo "not installed: $part" >&2; exit 1; }
done
quietly cmake --build "$work/package" --target uninstall
if find "$work/usr" "$work/arch" ! -type d -o -name holdfast | grep . >&2; then
    echo "this stays when it is uninstalled" >&2
    exit 1
fi

# Installed as a static library: both ways to find it bring what it needs.
configure "$source" "$work/static" -DBUILD_SHARED_LIBS=OFF
quietly cmake --build "$work/static"
quietly cmake --install "$work/static" --prefix "$work/archive"
[ -z "$(find "$work/archive" -name 'libholdfast.so*')" ] || { echo "BUILD_SHARED_LIBS=OFF installs a shared library" >&2; exit 1; }
PKG_CONFIG_PATH=$(dirname "$(find "$work/archive" -name holdfast.pc)")
# shellcheck disable=SC2046 # flags are words on purpose
gcc -std=c11 -Wall -Wextra -Werror -o "$work/linked" "$work/program.c" $(pkg-config --static --cflags --libs holdfast)
runs "$work/linked"
mkdir "$work/user"
cat >"$work/user/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(holdfast REQUIRED)
add_executable(program ../program.c)
target_link_libraries(program PRIVATE holdfast::holdfast)
END
quietly cmake -S "$work/user" -B "$work/user/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/archive"
quietly cmake --build "$work/user/build"
runs "$work/user/build/program"

# A part of another project.
cat >"$work/user/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(user C)
add_subdirectory("$source" holdfast)
add_executable(program ../program.c)
target_link_libraries(program PRIVATE holdfast::holdfast)
install(TARGETS program)
END
configure "$work/user" "$work/part"
if grep -oE '^[A-Za-z_]+[^:]*' "$work/part/CMakeCache.txt" |
    grep -vE '^(CMAKE_|_CMAKE_|HOLDFAST_|holdfast_|user_|pkgcfg_lib_HOLDFAST_|__pkg_config_|_?Threads_|FIND_PACKAGE_MESSAGE_DETAILS_|PKG_CONFIG_|_GNUInstallDirs_|prefix_result)' >&2; then
    echo "these names in the cache are anybody's" >&2
    exit 1
fi
quietly cmake --build "$work/part"
runs "$work/part/program"
quietly cmake --install "$work/part" --prefix "$work/theirs"
if find "$work/theirs" -type f | grep -v '/bin/program$' >&2; then
    echo "a part of another project installs itself" >&2
    exit 1
fi
