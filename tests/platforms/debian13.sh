#!/bin/sh
# SPDX-License-Identifier: MIT
# debian13.sh SOURCE FOLDER [ctest arguments...]: `./dev test` of the tree SOURCE on Debian 13, in a root of its own below
# FOLDER, against that Debian's Redis and then its Valkey. 77: this machine cannot (no root, no network).
set -eu
source=$(CDPATH='' cd -- "$1" && pwd)
folder=$2
shift 2

cannot() {
    echo "debian13: not here: $*" >&2
    exit 77
}

[ "$(id -u)" = 0 ] || cannot "a chroot wants root"
unshare --mount --pid --fork --kill-child true 2>/dev/null || cannot "the kernel gives no mount and pid namespaces"
command -v debootstrap >/dev/null || cannot "debootstrap is not installed (apt install debootstrap)"
mkdir -p "$folder"
folder=$(CDPATH='' cd -- "$folder" && pwd)
root=$folder/root

if [ ! -e "$root/made" ]; then
    rm -rf "$root"
    echo "debian13: making $root, a minute"
    debootstrap --variant=minbase trixie "$root" >"$folder/debootstrap.log" 2>&1 || {
        tail -n 5 "$folder/debootstrap.log" >&2
        cannot "debootstrap failed (no network?), see $folder/debootstrap.log"
    }
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # no service starts in there, ever
    chmod 755 "$root/usr/sbin/policy-rc.d"
    mkdir -p "$root/opt/valkey"
    ln -s /usr/bin/valkey-server "$root/opt/valkey/redis-server"
    ln -s /usr/bin/valkey-cli "$root/opt/valkey/redis-cli"
    : >"$root/made"
fi
cp /etc/resolv.conf "$root/etc/resolv.conf"

mkdir -p "$root/src"
find "$root/src" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
tar -C "$source" --exclude=./build --exclude=./.git -cf - . | tar -C "$root/src" -xf -

# Mounts and processes are in namespaces of their own: both are gone with the last line of this script, whatever
# happens, and `rm -rf` of the folder never meets a mount.
inside() {
    unshare --mount --pid --fork --kill-child --propagation private sh -c '
        root=$1
        shift
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        mount --rbind /sys "$root/sys"
        mount -t tmpfs tmp "$root/tmp"
        exec chroot "$root" env -i HOME=/root LANG=C.UTF-8 PATH="$1" sh -c "cd /src && shift && exec \"\$@\"" -- "$@"
    ' -- "$root" "$@"
}
usual=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

inside "$usual" sh -c '
    missing=
    for package in valkey-server valkey-tools openssl; do
        dpkg-query -W "$package" >/dev/null 2>&1 || missing="$missing $package"
    done
    [ -z "$missing" ] || { apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q -y \
        --no-install-recommends install $missing; }
    ./dev deps' >"$folder/install.log" 2>&1 || {
    tail -n 5 "$folder/install.log" >&2
    cannot "the packages cannot be installed (no network?), see $folder/install.log"
}
inside "$usual" sh -c '
    . /etc/os-release
    echo "debian13: $PRETTY_NAME, $(gcc --version | head -n 1), hiredis $(pkg-config --modversion hiredis),"
    echo "    ck $(pkg-config --modversion ck), cmocka $(pkg-config --modversion cmocka),"
    echo "    $(redis-server --version | cut -d " " -f 1-3), $(valkey-server --version | cut -d " " -f 1-3)"'

status=0
echo "debian13: against Redis"
inside "$usual" ./dev test "$@" || status=$?
echo "debian13: against Valkey"
inside "/opt/valkey:$usual" ./dev test -L 'integration|cli|torture' "$@" || status=$?
exit $status
