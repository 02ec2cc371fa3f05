#!/bin/sh
# SPDX-License-Identifier: MIT
# unperturbed.sh SOURCE BUILD: of the marks where the stress build dawdles (base/perturb.h) the library that is installed
# has no trace, neither a symbol nor a name; and no two marks have the same name, nor one that is too short to tell.
set -eu
source=$1 build=$2
work=$(mktemp -d /tmp/holdfast-test-XXXXXX)
trap 'rm -rf "$work"' EXIT

cd "$source"
grep -rhoE 'HFI_PERTURB\("[^"]*"\)' base pool watchdog core --include='*.[ch]' | cut -d'"' -f2 | sort >"$work/marks"
[ "$(wc -l <"$work/marks")" -ge 25 ] || { echo "hardly any marks: has their form changed?" >&2; exit 1; }
if uniq -d "$work/marks" | grep . >&2; then
    echo "marks that share a name" >&2
    exit 1
fi
if grep -vE '.{7}' "$work/marks" >&2; then
    echo "marks of less than seven bytes" >&2
    exit 1
fi

cmake --install "$build" --prefix "$work/copy" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
library=$(find "$work/copy" -name libholdfast.so)
{ nm -a "$library"; grep -aoE '[[:print:]]{4,}' "$library"; } >"$work/traces"
grep -q hf_lock_acquire "$work/traces" # or there is nothing to be seen in it
if grep -iE 'perturb|HF_STRESS' "$work/traces" >&2 || grep -wFf "$work/marks" "$work/traces" >&2; then
    echo "the installed library has traces of the stress build" >&2
    exit 1
fi
