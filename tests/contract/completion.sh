#!/bin/sh
# SPDX-License-Identifier: MIT
# completion.sh SOURCE BUILD: the completions for bash and zsh know each option that the help of a command names, and no
# other; so does the manual. In bash they are tried.
set -eu
source=$(CDPATH='' cd -- "$1" && pwd)
tool=$(CDPATH='' cd -- "$2" && pwd)/tools
if [ -z "${REDIS_SOCKET:-}" ]; then
    exec "$source/tests/support/with_redis.sh" sh "$0" "$@"
fi
PATH=$tool:$PATH
export PATH
status=0
wrong() {
    echo "$*" >&2
    status=1
}
options() { grep -oE -- '--[a-z][a-z-]+' | sort -u; }

said=$(for command in run ls show break doctor; do holdfast help $command; done | options)
for file in "$source/tools/completion/holdfast.bash" "$source/tools/completion/_holdfast"; do
    known=$(options <"$file" | grep -vx -e --version -e --help)
    [ "$said" = "$known" ] || wrong "$file knows other options than holdfast help: $(printf '%s\n' "$said" "$known" | sort | uniq -u | xargs)"
done
for option in $said; do
    grep -q "Fl .*-${option#--}" "$source/docs/holdfast.1" || wrong "the manual does not know $option"
done

cat >"$FOLDER/complete.sh" <<'END'
. "$1"
shift
COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
IFS=:' ' COMP_WORDS=($COMP_LINE) # bash cuts at colons, too
[[ $COMP_LINE == *' ' ]] && COMP_WORDS+=("")
unset IFS
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_holdfast
printf '%s\n' "${COMPREPLY[@]}" | sort -u | xargs
END
completes() { # completes EXPECTED WORD...
    expected=$1
    shift
    found=$(bash "$FOLDER/complete.sh" "$source/tools/completion/holdfast.bash" holdfast "$@")
    [ "$found" = "$expected" ] || wrong "holdfast $*: completed to \"$found\", not to \"$expected\""
}
completes "run" ru
completes "--json" ls --j
completes "--json" show --json
completes "" break --json
completes "--wait" run --wai
completes "" run --lease 5 # a number nobody knows
completes "sha256sum" run job sha256su
completes "sha256sum" run -n job -- sha256su
completes "$FOLDER/complete.sh" run job -- sh "$FOLDER/compl"
mkfifo "$FOLDER/end"
holdfast run held:one -- cat "$FOLDER/end" &
exec 9>"$FOLDER/end"
completes "held:one" show hel
completes "held:one" run -n hel
completes "one" show held:o # bash keeps what is before the colon
completes "" show other:o
completes "sha256sum" run held:one sha256su
exec 9>&-
wait
# Whoever may take a lock must not run anything in the shell of who looks.
mkfifo "$FOLDER/evil"
cd "$FOLDER"
holdfast run --keep-url '$(touch pwned)' -- holdfast run --keep-url -- '-c./evil' -- \
    holdfast run 'a b;`touch pwned`' -- cat "$FOLDER/evil" &
exec 9>"$FOLDER/evil"
completes "" show ""
completes "" break a
[ ! -e pwned ] || wrong "a lock's name was run by the shell"
exec 9>&-
wait

# The unit does what it says, but for paths.
line=$(sed -n 's|^ExecStart=/usr/bin/||p' "$source/examples/systemd/nightly.service" | sed 's|/usr/local/bin/nightly|sh -c "echo done"|')
[ "$(eval "$line")" = done ] || wrong "the unit's line does not run: $line"
exit $status
