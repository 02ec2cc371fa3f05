#!/bin/sh
# SPDX-License-Identifier: MIT
# dev.sh SOURCE BUILD: ./dev leaves nothing behind on the machine, however it ends, works on its own tree alone, and
# builds for a demo what the demo runs.
set -eu
source=$(CDPATH='' cd -- "$1" && pwd)
work=${DEV_TEST_FOLDER:-$(mktemp -d /tmp/holdfast-test-XXXXXX)}
trap 'rm -rf "$work"' EXIT
policy=/usr/sbin/policy-rc.d

wrong() {
    echo "$*" >&2
    exit 1
}

# With a folder of this name in CDPATH.
mkdir -p "$work/here/tree/build" "$work/there/tree/build"
cp "$source/dev" "$work/here/tree/"
(cd "$work/here" && CDPATH=$work/there sh tree/dev clean >/dev/null)
[ -d "$work/there/tree/build" ] || wrong "./dev clean cleaned another tree"
[ ! -d "$work/here/tree/build" ] || wrong "./dev clean did not clean its own tree"

# The demo builds its programs and what those need, and has said so before.
if [ -z "${DEV_TEST_INSIDE:-}" ]; then
    mkdir "$work/stubs"
    printf '#!/bin/sh\nprintf installed\n' >"$work/stubs/dpkg-query"
    for command in cmake python3; do
        printf '#!/bin/sh\necho "runs %s $*"\n' $command >"$work/stubs/$command"
    done
    chmod 755 "$work/stubs/"*
    PATH=$work/stubs:$PATH sh "$work/here/tree/dev" demo >"$work/demo"
    sed 1q "$work/demo" | grep -q '^dev: building' || wrong "./dev demo does not say what it is doing: $(sed 1q "$work/demo")"
    [ "$(grep '^runs cmake --build' "$work/demo")" = 'runs cmake --build --preset dev -- examples/demo/all' ] ||
        wrong "./dev demo builds something else: $(grep '^runs cmake --build' "$work/demo")"
    ! ninja -C "$2" -t inputs examples/demo/all | grep -E '^(tests|bench|tools)/' >&2 || wrong "the demo needs these?"
fi

# Installing packages, in a namespace where /usr/sbin is a folder of this test's, with an apt-get that sends a signal.
if [ -z "${DEV_TEST_INSIDE:-}" ]; then
    if ! unshare --map-root-user --mount true 2>/dev/null; then
        echo "dev: not here: the kernel gives no mount namespaces" >&2
        exit 77
    fi
    mkdir "$work/inside"
    DEV_TEST_INSIDE=1 DEV_TEST_FOLDER=$work/inside exec unshare --map-root-user --mount sh "$0" "$@"
fi
mkdir "$work/bin" "$work/sbin"
mount --bind "$work/sbin" /usr/sbin
printf '#!/bin/sh\nexit 1\n' >"$work/bin/dpkg-query"
cat >"$work/bin/apt-get" <<'END'
#!/bin/sh
case " $* " in
*" install "*)
    grep -q 'exit 101' /usr/sbin/policy-rc.d || echo "services may start" >>"$SEEN"
    [ -z "$SIGNAL" ] || kill -"$SIGNAL" $PPID ;;
esac
END
chmod 755 "$work/bin/dpkg-query" "$work/bin/apt-get"
SEEN=$work/seen PATH=$work/bin:$PATH
export SEEN PATH
for SIGNAL in '' HUP INT QUIT PIPE TERM; do
    export SIGNAL
    sh "$work/here/tree/dev" deps >/dev/null 2>&1 || true
    [ ! -e $policy ] || wrong "after ${SIGNAL:-the usual end} $policy stays"
done
SIGNAL=KILL sh "$work/here/tree/dev" deps >/dev/null 2>&1 || true
[ -e $policy ] || wrong "the apt-get of this test never ran"
SIGNAL='' sh "$work/here/tree/dev" deps >/dev/null 2>&1
[ ! -e $policy ] || wrong "what a killed one left behind the next one keeps"
echo 'exit 101 # the administrator' >$policy
SIGNAL='' sh "$work/here/tree/dev" deps >/dev/null 2>&1
[ "$(cat $policy)" = 'exit 101 # the administrator' ] || wrong "the administrator's own $policy is gone"
if [ -e "$SEEN" ]; then cat "$SEEN" >&2; exit 1; fi
