#!/bin/sh
# SPDX-License-Identifier: MIT
# mutexes.sh SOURCE BUILD: each file that makes a mutex stands in docs/architecture.md beside its rank, and no other file
# does; nothing of ours takes a mutex that has no rank.
set -eu
cd "$1"
failed=0
made=$(grep -rnE --include='*.c' 'HFI_RANK_[A-Z]+\)' base pool watchdog core |
    sed -E 's/^([^:]*):.*HFI_RANK_([A-Z]+)\).*/\2 \1/' | sort -u)
said=$(awk -F'|' '$2 ~ /^ `(OUTER|MIDDLE|INNER|LEAF)` $/ { gsub(/[ `]/, "", $2); n = split($3, files, ","); for (i = 1; i <= n; i++)
    { gsub(/ /, "", files[i]); print $2, files[i] } }' docs/architecture.md | sort -u)
if [ "$made" != "$said" ]; then
    printf 'the code makes:\n%s\n\ndocs/architecture.md says:\n%s\n' "$made" "$said" >&2
    failed=1
fi
if grep -rn 'pthread_mutex_' base pool watchdog core --include='*.[ch]' | grep -v '^base/mutex\.h:' >&2; then
    echo "a mutex without a rank" >&2
    failed=1
fi
exit $failed
