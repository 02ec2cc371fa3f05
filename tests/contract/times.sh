#!/bin/sh
# SPDX-License-Identifier: MIT
# times.sh SOURCE BUILD: no threshold of pool/ is one machine's microseconds. A time that is written down is in pool/times.h, with
# its rule; every other one is a setting, or a cost that was measured (pool/costs.h).
set -eu
cd "$1"
failed=0
number='[0-9][0-9]* *[*] *HFI_(MS|SECOND)|HFI_(MS|SECOND) */ *[0-9]|[0-9]+ *[*] *INT64_C|^#define +[A-Z_]+_(NS|US|MS|SECONDS?) +[(]?([0-9]|HFI_(MS|SECOND))'
if grep -rnE "$number" --include='*.[ch]' pool | grep -v '^pool/times[.]h:' >&2; then
    echo "write the time down in pool/times.h, with its rule; or compare what was measured (pool/costs.h)" >&2
    failed=1
fi
# A rule stands behind the time, or in the line above.
awk '/^#define HFI_[A-Z_]+ / && !/[/][*].*[*][/]/ && before !~ /[*][/]$/ { print FILENAME ":" FNR ": why so long? " $0; bad = 1 }
     { before = $0 } END { exit bad }' pool/times.h >&2 || failed=1
exit $failed
