#!/bin/sh
# SPDX-License-Identifier: MIT
# acl.sh SOURCE BUILD: a user with the rights that `holdfast doctor --acl` names, and no other, can do all that there is to
# be done; each of those rights is used; and docs/guarantees.md names the same.
set -eu
source=$(CDPATH='' cd -- "$1" && pwd)
build=$(CDPATH='' cd -- "$2" && pwd)
if [ -z "${REDIS_SOCKET:-}" ]; then
    exec "$source/tests/support/with_redis.sh" sh "$0" "$@"
fi
status=0
wrong() {
    echo "$*" >&2
    status=1
}
cli() { redis-cli -s "$REDIS_SOCKET" "$@"; }
holdfast() { "$build/tools/holdfast" "$@"; }

rights="$(holdfast doctor --acl | sed -n '1s/SETUSER holdfast on >PASSWORD/SETUSER web on >secret/p') ~page:*"
said=$(awk '/^    ACL SETUSER/ { here = 1 } here && /^$/ { exit } here' "$source/docs/guarantees.md" | xargs)
[ "$(echo "$rights" | tr ' ' '\n' | sort)" = "$(echo "$said" | tr ' ' '\n' | sort)" ] ||
    wrong "docs/guarantees.md says $said, holdfast doctor --acl $rights"
# shellcheck disable=SC2086 # words on purpose
[ "$(cli $rights)" = OK ] || wrong "the server does not take: $rights"
cli config resetstat >/dev/null

HOLDFAST_URL=unix://web:secret@$REDIS_SOCKET
export HOLDFAST_URL
mkfifo "$FOLDER/end"
holdfast run a -- cat "$FOLDER/end" &
exec 9>"$FOLDER/end"
"$build/tools/holdfast" run a -- true 9>&- & # no function: the shell would keep a copy of 9
until [ "$(holdfast show a | awk '$1 == "waiting" {print $2}')" = 1 ]; do sleep 0.02; done
exec 9>&-
wait
holdfast run b -- sh -c 'echo >"$FOLDER/up"; exec sleep 1000' 2>/dev/null & # broken before it knows, it would begin anew
until [ -e "$FOLDER/up" ]; do sleep 0.02; done
"$build/tools/holdfast" watch b >"$FOLDER/watched" & # hears what `run` announces
watcher=$!
until grep -q ", sh, fence" "$FOLDER/watched"; do sleep 0.02; done
holdfast break b
until grep -q nobody "$FOLDER/watched"; do sleep 0.02; done
kill "$watcher"
wait
cli set 'hf:{theirs}' "another library's" px 300 >/dev/null # its end is listened for
holdfast run theirs -- true
holdfast run --permits 1/2 gate -- true || wrong "permits are not to be had"
holdfast ls --semaphore || wrong "ls --semaphore fails"
holdfast break --semaphore gate 2>/dev/null || [ $? = 1 ] || wrong "break --semaphore fails"
holdfast run --url "$HOLDFAST_URL?db=1" elsewhere -- true
holdfast ls || wrong "ls fails"
holdfast doctor >"$FOLDER/doctor" || wrong "doctor fails: $(cat "$FOLDER/doctor")"
"$build/examples/cached_page" >/dev/null || wrong "a fetch fails"

# not_refused BUT...: nothing was, but these, which are asked for and done without.
not_refused() {
    refused=$(cli ACL LOG | grep -A1 '^object$' | grep -v -e '^object$' -e '^--$' | sort -u | grep -vxF "$(printf '%s\n' "$@")" || true)
    [ -z "$refused" ] || wrong "it is refused: $refused"
}
not_refused 'config|get' 'client|id' __redis__:invalidate

tracking=$(holdfast doctor --acl | sed -n 's/^#.*client tracking: *//p')
# shellcheck disable=SC2086 # words on purpose
[ "$(cli acl setuser web $tracking)" = OK ] || wrong "the server does not take: $tracking"
cli acl log reset >/dev/null
cli set 'hf:{tracked}' "another library's" >/dev/null
holdfast run tracked -- true &
until [ "$(cli info stats | tr -d '\r' | sed -n 's/^tracking_total_keys://p')" = 1 ]; do sleep 0.02; done
cli del 'hf:{tracked}' >/dev/null
wait
holdfast doctor | grep -q "client tracking instead" || wrong "doctor does not see that keys can be tracked"
"$build/examples/product_page" >/dev/null || wrong "no tags, or nothing is kept near"
not_refused 'config|get'
rights="$rights $tracking"
used=$(cli info commandstats | sed -n 's/^cmdstat_\([^:]*\):.*/\1/p')
for right in $rights; do
    case $right in
    +*) echo "$used" | grep -qx "${right#+}" || wrong "nothing needs $right" ;;
    esac
done

# Dialects: what each needs beside those, as docs/interop.md names it.
sed -n '/^## Rights/,/^## /s/^| `\([^`]*\)`[^|]*| `\([^`]*\)` |$/\1 \2/p' "$source/docs/interop.md" >"$FOLDER/dialects"
[ "$(wc -l <"$FOLDER/dialects")" -ge 7 ] || wrong "docs/interop.md has no rights of dialects"
while read -r dialect more; do
    cli acl deluser web >/dev/null
    # shellcheck disable=SC2086 # words on purpose
    [ "$(cli $rights $more)" = OK ] || wrong "the server does not take: $more"
    cli flushall >/dev/null
    cli config resetstat >/dev/null
    cli acl log reset >/dev/null
    HOLDFAST_URL="unix://web:secret@$REDIS_SOCKET?dialect=$dialect"
    rm -f "$FOLDER/up"
    holdfast run d -- true </dev/null || wrong "$dialect: it cannot be had"
    holdfast run d -- sh -c 'echo >"$FOLDER/up"; exec sleep 1000' 2>/dev/null </dev/null &
    until [ -e "$FOLDER/up" ]; do sleep 0.02; done
    holdfast break --force d </dev/null || wrong "$dialect: it cannot be broken"
    wait
    not_refused 'config|get'
    used=$(cli info commandstats | sed -n 's/^cmdstat_\([^:]*\):.*/\1/p')
    for right in $more; do
        case $right in
        +lrange | +smismember) ;; # of a token that is lost, of a set that others change
        +*) echo "$used" | grep -qx "${right#+}" || wrong "$dialect: nothing needs $right" ;;
        esac
    done
done <"$FOLDER/dialects"
exit $status
