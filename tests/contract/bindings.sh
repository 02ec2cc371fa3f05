#!/bin/sh
# SPDX-License-Identifier: MIT
# bindings.sh SOURCE BUILD: a language that knows the library by its symbols alone, no struct and no macro, takes a lock
# with options, is told why it cannot have another, and gives it back.
set -eu
source=$(CDPATH='' cd -- "$1" && pwd)
if [ -z "${REDIS_SOCKET:-}" ]; then
    exec "$source/tests/support/with_redis.sh" sh "$0" "$@"
fi
if nm -D "$2/libholdfast.so" | grep -q '__[at]san_'; then
    exit 77 # no other program than one built for it can load this one
fi
python3 - "$2/libholdfast.so" <<'END'
import ctypes as c
import sys

hf = c.CDLL(sys.argv[1])
for name in ('hf_status_name', 'hf_version'):
    getattr(hf, name).restype = c.c_char_p
hf.hf_lock_options_init.restype = c.c_size_t
hf.hf_lease_fence.restype = c.c_int64
hf.hf_lease_fence.argtypes = hf.hf_lease_release.argtypes = [c.c_void_p]
hf.hf_lease_release.argtypes += [c.c_void_p]
status = {hf.hf_status_name(n).decode(): n for n in range(hf.hf_status_count())}

client = c.c_void_p()
assert hf.hf_client_open(None, None, c.byref(client), None) == status['HF_OK']
size = hf.hf_lock_options_init(None, c.c_size_t(0))
options = c.create_string_buffer(size)
hf.hf_lock_options_init(options, c.c_size_t(size))
for name, text in ((b'lease_ms', b'5000'), (b'owner', b'7'), (b'owner_label', b'from afar')):
    assert hf.hf_lock_options_parse(options, name, text, None) == status['HF_OK']
assert hf.hf_lock_options_parse(options, b'leese_ms', b'1', None) == status['HF_INVALID']
lease, other = c.c_void_p(), c.c_void_p()
assert hf.hf_lock_acquire(client, b'bound', options, c.byref(lease), None) == status['HF_OK']
assert hf.hf_lease_fence(lease) > 10 ** 18
assert hf.hf_lock_acquire(client, b'bound', options, c.byref(other), None) == status['HF_DEADLOCK']
assert hf.hf_lock_acquire(client, b'bound', None, c.byref(other), None) == status['HF_BUSY']
assert hf.hf_lease_release(lease, None) == status['HF_OK']
forgotten = c.c_size_t(7)
assert hf.hf_fetch_forget_tag(client, b'afar', c.byref(forgotten), None) == status['HF_OK'] and forgotten.value == 0
assert hf.hf_fetch_forget_tag(client, b'', None, None) == status['HF_INVALID']
assert hf.hf_client_close(client, None) == status['HF_OK']
END
