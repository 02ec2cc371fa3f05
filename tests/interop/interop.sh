#!/bin/sh
# SPDX-License-Identifier: MIT
# interop.sh SOURCE BUILD [OPTION...]: interop.py with a Python that has redis-py; 77: there is none.
set -eu
source=$1 build=$2
shift 2
node_path=$source/build/neighbours/node_modules
for python in python3 /usr/bin/python3; do
    if "$python" -c 'import redis' 2>/dev/null; then
        exec "$python" "$source/tests/interop/interop.py" --ours "$build/tests/interop/interop_ours" --node-path "$node_path" "$@"
    fi
done
echo "interop: not here: no Python has redis-py (Debian: python3-redis; ./dev interop installs it)" >&2
exit 77
