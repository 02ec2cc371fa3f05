#!/bin/sh
# SPDX-License-Identifier: MIT
# fences.sh SOURCE BUILD: where two threads each write a word and then look at the other's, arm64 is told to do it in that
# order. x86 always does with the instructions that are there, so no test on it can fail: this one reads arm64's code.
set -eu
source=$1
work=$(mktemp -d /tmp/holdfast-test-XXXXXX)
trap 'rm -rf "$work"' EXIT

compiler=gcc target=
if [ "$(uname -m)" != aarch64 ]; then
    command -v clang >/dev/null || { echo "no clang: nobody here can compile for arm64"; exit 77; }
    # What the headers of this machine say of its own kind does not hold for the other.
    mkdir "$work/gnu"
    touch "$work/gnu/stubs-32.h"
    sed 's/define CK_MD_TSO/define CK_MD_RMO/' /usr/include/ck_md.h >"$work/ck_md.h"
    compiler=clang target="--target=aarch64-linux-gnu -idirafter /usr/include/$(gcc -print-multiarch)"
fi
cat >"$work/inbox.c" <<'END'
#include "base/inbox.h"
void put(struct hfi_inbox *inbox, struct hfi_inbox_node *node);
void put(struct hfi_inbox *inbox, struct hfi_inbox_node *node)
{
    hfi_inbox_put(inbox, node);
}
bool look(const struct hfi_inbox *inbox);
bool look(const struct hfi_inbox *inbox)
{
    return hfi_inbox_is_empty(inbox);
}
END
for file in "$source/base/park.c" "$work/inbox.c"; do
    # shellcheck disable=SC2086 # words on purpose
    $compiler $target -mno-outline-atomics -std=gnu11 -O2 -w -S -I "$work" -I "$source" "$file" -o - >>"$work/code"
done

failed=0
ordered() { # ordered FUNCTION WRITES: behind the instruction that writes there is a full fence, before any load
    awk -v name="$1:" -v writes="$2" '
        $1 == name { inside = 1 }
        inside && $1 ~ writes { written = 1; fenced = 0 }
        inside && written && $1 == "dmb" && $2 == "ish" { fenced = 1 }
        inside && written && !fenced && $1 ~ /^(ldar|ldr)$/ && $0 !~ /Reload/ { early = 1 }
        inside && $1 ~ /^\.Lfunc_end|^\.cfi_endproc/ { exit }
        END { exit !(written && fenced && !early) }' "$work/code" || {
        echo "$1: what it wrote may be seen after it has looked (arm64)" >&2
        failed=1
    }
}
ordered hfi_park_wake '^(stxr|ldadd)'
ordered hfi_park_kick '^(stlr|stlxr|swpal)$'
ordered put '^(stxr|cas)'
awk '$1 == "look:" { inside = 1 } inside && $1 == "ldar" { found = 1 } END { exit !found }' "$work/code" || {
    echo "hfi_inbox_is_empty may look before the role that was given back is seen (arm64)" >&2
    failed=1
}
exit $failed
