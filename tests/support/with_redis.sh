#!/bin/bash
# SPDX-License-Identifier: MIT
# with_redis.sh COMMAND... - runs it with $HOLDFAST_URL at a redis-server of its own, on a unix socket in a temporary
# folder; $REDIS_SOCKET, $REDIS_PID and $FOLDER are for the command too. Server and folder are gone afterwards.
set -u
FOLDER=$(mktemp -d /tmp/holdfast.XXXXXX) || exit 1
REDIS_SOCKET=$FOLDER/redis.sock
# The server dies with this script, even if that is killed.
setpriv --pdeathsig KILL redis-server --port 0 --unixsocket "$REDIS_SOCKET" --dir "$FOLDER" --save '' \
    --appendonly no --logfile "$FOLDER/redis.log" &
REDIS_PID=$!
trap 'kill -KILL $REDIS_PID; wait $REDIS_PID 2>/dev/null; rm -rf "$FOLDER"' EXIT
trap 'exit 1' INT TERM HUP
until [ "$(redis-cli -s "$REDIS_SOCKET" ping 2>/dev/null)" = PONG ]; do
    kill -0 $REDIS_PID 2>/dev/null || { cat "$FOLDER/redis.log" >&2; exit 1; }
    sleep 0.02
done
export FOLDER REDIS_SOCKET REDIS_PID HOLDFAST_URL="unix://$REDIS_SOCKET"
"$@"
