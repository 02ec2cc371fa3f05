#!/bin/sh
# SPDX-License-Identifier: MIT
# metrics.sh SOURCE BUILD: Prometheus's own tool finds nothing to say of a page of two clients that have done something.
set -eu
source=$(CDPATH='' cd -- "$1" && pwd)
if [ -z "${REDIS_SOCKET:-}" ]; then
    exec "$source/tests/support/with_redis.sh" sh "$0" "$@"
fi
command -v promtool >/dev/null || { echo "no promtool here (Debian: prometheus)" >&2; exit 77; }
if nm -D "$2/libholdfast.so" | grep -q '__[at]san_'; then
    exit 77 # no other program than one built for it can load this one
fi
cat >"$FOLDER/page.c" <<'END'
#include <holdfast/holdfast.h>
#include <stdio.h>

int main(void)
{
    hf_client *both[2];
    hf_lease *lease;
    if (hf_client_open(NULL, HF_CLIENT(.client_name = "first"), &both[0], NULL) != HF_OK ||
        hf_client_open(NULL, HF_CLIENT(.client_name = "the\"second\\"), &both[1], NULL) != HF_OK ||
        hf_lock_acquire(both[0], "one", NULL, &lease, NULL) != HF_OK || hf_lease_release(lease, NULL) != HF_OK ||
        hf_lock_acquire(both[1], "two", NULL, &lease, NULL) != HF_OK)
        return 1;
    return hf_clients_metrics((const hf_client *const *)both, 2, stdout) != HF_OK;
}
END
gcc -std=c11 -Wall -Wextra -Werror -I "$source/include" "$FOLDER/page.c" -o "$FOLDER/page" -L "$2" -lholdfast \
    -Wl,-rpath,"$2"
HOLDFAST_URL=unix://$REDIS_SOCKET "$FOLDER/page" >"$FOLDER/text"
[ "$(grep -c '^holdfast_acquired_total{.*} 1$' "$FOLDER/text")" = 2 ] || { cat "$FOLDER/text" >&2; exit 1; }
said=$(promtool check metrics <"$FOLDER/text" 2>&1) || { echo "promtool: $said" >&2; exit 1; }
[ -z "$said" ] || { echo "promtool: $said" >&2; exit 1; }
