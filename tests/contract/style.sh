#!/bin/sh
# SPDX-License-Identifier: MIT
# style.sh SOURCE BUILD: small files, a license line, no tabs, no leftovers, nothing of the machine it was made on.
set -eu
cd "$1"
failed=0

complain() {
    [ -z "$2" ] && return 0
    printf '%s:\n%s\n' "$1" "$2" >&2
    failed=1
}

sources=$(find base pool watchdog core include tools modules examples bench tests cmake dev \
    -name '*.[ch]' -o -name '*.hpp' -o -name '*.cpp' -o -name '*.lua' -o -name '*.py' -o -name '*.sh' -o -name '*.cmake' \
    -o -name CMakeLists.txt -o -name dev)
code=$(printf '%s\n' "$sources" | grep -E '\.([ch]|hpp|cpp)$')
# shellcheck disable=SC2086 # file names without blanks
{
    complain "more than 450 lines (tests: 650)" "$(wc -l $sources |
        awk '$2 != "total" && $1 > ($2 ~ /^tests\// ? 650 : 450)')"
    complain "no SPDX line at the top" "$(awk 'FNR == 1 && /^\/[\/*] SPDX-License-Identifier: MIT/ { has[FILENAME] = 1 }
        END { for (i = 1; i < ARGC; i++) if (!(ARGV[i] in has)) print ARGV[i] }' $code)"
    complain "a tab" "$(grep -nP '\t' $code || true)"
    complain "blanks at the end of a line" "$(grep -nE ' +$' $sources || true)"
    complain "longer than 140 columns" "$(grep -nE '^.{141,}' $code || true)"
    complain "unfinished" "$(grep -nwE 'TO''DO|FIX''ME|XX''X|HA''CK' $sources || true)"
    complain "a path of somebody's machine" "$(grep -nE '/(wo''rk|ho''me|ro''ot)/' $sources || true)"
}
exit $failed
