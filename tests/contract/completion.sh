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

said=$(for command in run lead watch ls show break doctor; do holdfast help $command; done | options)
for file in "$source/tools/completion/holdfast.bash" "$source/tools/completion/_holdfast"; do
    known=$(options <"$file" | grep -vx -e --version -e --help)
    [ "$said" = "$known" ] || wrong "$file knows other options than holdfast help: $(printf '%s\n' "$said" "$known" | sort | uniq -u | xargs)"
done
for option in $said; do
    grep -q "Fl .*-${option#--}" "$source/docs/holdfast.1" || wrong "the manual does not know $option"
done

# types: on standard input what is typed in a terminal, a tab, and what it is completed to.
types() {
    (cd "$FOLDER" && python3 "$source/tests/contract/typed.py" "$source/tools/completion/holdfast.bash") || status=1
}
mkfifo "$FOLDER/end"
touch "$FOLDER/my file"
holdfast run --keep-url held:one -- holdfast run --keep-url a::bee -- holdfast run job@host1 -- cat "$FOLDER/end" &
exec 9>"$FOLDER/end"
until [ "$(holdfast ls | wc -l)" = 4 ]; do :; done
types <<'END'
holdfast ru	holdfast run
holdfast ls --j	holdfast ls --json
holdfast show --json	holdfast show --json
holdfast break --json	holdfast break --json
holdfast break --fo	holdfast break --force
holdfast run --wai	holdfast run --wait
holdfast run --lease 5	holdfast run --lease 5
holdfast run job sha256su	holdfast run job sha256sum
holdfast run -n job -- sha256su	holdfast run -n job -- sha256sum
holdfast run held:one sha256su	holdfast run held:one sha256sum
holdfast run job -- cat my\ fi	holdfast run job -- cat my\ file
holdfast run job -- cat "my fi	holdfast run job -- cat "my file"
holdfast show hel	holdfast show held:one
holdfast lead --ver	holdfast lead --verbose
holdfast lead job sha256su	holdfast lead job sha256sum
holdfast lead hel	holdfast lead held:one
holdfast wat	holdfast watch
holdfast watch hel	holdfast watch held:one
holdfast run -n hel	holdfast run -n held:one
holdfast show held:	holdfast show held:one
holdfast show held:o	holdfast show held:one
holdfast show a::	holdfast show a::bee
holdfast show job@	holdfast show job@host1
holdfast show job@h	holdfast show job@host1
holdfast show other:o	holdfast show other:o
holdfast run -c "make all" hel	holdfast run -c "make all" held:one
holdfast run --label "a b" hel	holdfast run --label "a b" held:one
holdfast show --url redis://h:1 hel	holdfast show --url redis://h:1 held:one
true; X=1 holdfast show hel	true; X=1 holdfast show held:one
END
exec 9>&-
wait
# Whoever may take a lock must not run anything in the shell of who looks.
mkfifo "$FOLDER/evil"
cd "$FOLDER"
holdfast run --keep-url '$(touch pwned)' -- holdfast run --keep-url -- '-c./evil' -- \
    holdfast run 'a b;`touch pwned`' -- cat "$FOLDER/evil" &
exec 9>"$FOLDER/evil"
printf 'holdfast show \tholdfast show\nholdfast break a\tholdfast break a\n' | types
[ ! -e pwned ] || wrong "a lock's name was run by the shell"
exec 9>&-
wait

# The unit does what it says, but for paths.
line=$(sed -n 's|^ExecStart=||p' "$source/examples/systemd/nightly.service" | sed 's|/usr/local/bin/nightly|sh -c "echo done"|')
[ "$(eval "$line")" = done ] || wrong "the unit's line does not run: $line"
exit $status
