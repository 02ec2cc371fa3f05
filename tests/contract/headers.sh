#!/bin/sh
# SPDX-License-Identifier: MIT
# headers.sh SOURCE BUILD: each public header compiles by itself, twice in a row too, as C11 and as C++17.
set -eu
source=$1
failed=0

try() { # try HEADER COMPILER...
    header=$1
    shift
    command -v "$1" >/dev/null || return 0
    printf '#include <holdfast/%s>\n#include <holdfast/%s>\nint main(void) { return 0; }\n' "$header" "$header" |
        "$@" -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsyntax-only -I "$source/include" - && return 0
    echo "$header is not clean: $*" >&2
    failed=1
}

for file in "$source"/include/holdfast/*; do
    header=$(basename "$file")
    case $header in
    *.h)
        try "$header" gcc -x c -std=c11
        try "$header" clang -x c -std=c11
        try "$header" g++ -x c++ -std=c++17
        try "$header" clang++ -x c++ -std=c++17 ;;
    *.hpp)
        try "$header" g++ -x c++ -std=c++17
        try "$header" clang++ -x c++ -std=c++17 ;;
    *)
        echo "not a header: $file" >&2
        failed=1 ;;
    esac
done
exit $failed
