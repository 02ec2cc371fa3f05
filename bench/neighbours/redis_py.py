# SPDX-License-Identifier: MIT
"""redis_py.py PORT WORKERS own|one|baton SECONDS - redis-py's Lock, a thread a worker, asking again every 10 ms.

Prints what workers.js prints.
"""
import sys
import threading
import time

import redis

HELD, AWAY = 0.030, 0.015


def main():
    port, workers, kind, seconds = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
    client = redis.Redis(port=port)
    counts, worsts, sections = [0] * workers, [0.0] * workers, []
    begin = time.monotonic() + seconds / 10
    end = begin + seconds

    def work(number):
        name = f"py:{number}" if kind == "own" else f"py:{kind}"
        while True:
            asked = time.monotonic()
            if asked >= end:
                return
            lock = client.lock(name, timeout=10, sleep=0.01, blocking_timeout=max(0.01, end - asked))
            if not lock.acquire():
                return
            now = time.monotonic()
            if begin <= now < end:
                counts[number] += 1
                worsts[number] = max(worsts[number], now - asked)
            if kind == "baton":
                time.sleep(HELD)
                sections.append([int(moment * 1e9) for moment in (asked, now, time.monotonic())])
            lock.release()
            if kind == "baton":
                time.sleep(AWAY)

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.1, end + 2 - time.monotonic()))
    print(f"{sum(counts) / seconds:.1f} {max(worsts) * 1000:.3f}")
    for section in sections:
        print(*section)


main()
