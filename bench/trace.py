#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""trace.py PROGRAM - where the time of a hand-off goes: runs bench/hand_off under perf (Debian: linux-perf), as root, and puts the
events of both processes and the server on one time line. Prints the medians of the parts of a hand-off, and of a PING beside it.

The events cost some microseconds of the sum; what they cost is in every part, and in the PING's too. The message wakes the thread
that waits and the listener of its process: where that one was sooner, it wakes the thread again. Hand-offs of which a part
was not seen, or came late, are left out, and counted.
"""
import re
import statistics
import subprocess
import sys
import tempfile

CALLS = ["enter_sendto", "exit_epoll_wait", "exit_poll", "exit_ppoll", "enter_clock_nanosleep", "exit_clock_nanosleep"]
EVENTS = ["sched:sched_switch", "sched:sched_waking"] + ["syscalls:sys_" + call for call in CALLS]
LINE = re.compile(r"\s*(.+?)\s+(\d+) \[\d+\] +(\d+\.\d+): +\w+:(\w+): (.*)")
RELEASE = range(200, 300)  # bytes that are sent; hiredis sends its PING by another system call
HAND_OFF = ["holder: decides, builds the command", "holder: sends", "server: wakes up", "server: learns of it", "server: script, replies",
            "waiter: wakes up", "waiter: reads, decides"]
ROUND_TRIP = ["sends", "server: wakes up", "server: learns of it", "server: answers", "wakes up", "reads"]


class Event:
    def __init__(self, match):
        self.who, self.tid, self.us = match[1], int(match[2]), float(match[3]) * 1e6
        self.name, self.args = match[4], match[5]

    def number(self, pattern):
        found = re.search(pattern, self.args)
        return int(found[1], 0) if found else -1

    def is_call(self, tid, name):
        return self.tid == tid and self.name == "sys_" + name

    def wakes(self, by, tid):
        return self.tid == by and self.name == "sched_waking" and self.number(r" pid=(\d+)") == tid

    def wakes_as_listener(self, tid):
        return self.who == "hf-listener" and self.name == "sched_waking" and self.number(r" pid=(\d+)") == tid

    def runs(self, tid):
        return self.name == "sched_switch" and self.number(r"next_pid=(\d+)") == tid


def record(program):
    with tempfile.TemporaryDirectory() as folder:
        data = folder + "/perf.data"
        events = [word for event in EVENTS for word in ("-e", event)]
        subprocess.run(["perf", "record", "-q", "-a", "-m", "2048", "-o", data, *events, "--", program, "--quick"], check=True)
        text = subprocess.run(["perf", "script", "-i", data, "-F", "comm,tid,cpu,time,event,trace"], check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return [Event(match) for match in map(LINE.match, text.splitlines()) if match]


def times(events, first, steps):
    """When each of the steps came, one after the other; None if one of them did not come soon."""
    found = [first.us]
    for event in events:
        if len(found) > len(steps) or event.us > first.us + 2000:
            break
        if steps[len(found) - 1](event):
            found.append(event.us)
    return found if len(found) > len(steps) else None


def parts(events, players, server):
    once, twice, trips, lost = [], [], [], 0
    published = set()  # who has just sent a message: not a PING, and its next hand-off is another one
    slept = {}  # by player: its last event, if that was the end of a sleep
    for at, event in enumerate(events):
        if event.tid not in players:
            continue
        me, other = event.tid, next(player for player in players if player != event.tid)
        began = slept.pop(me, None)
        if event.name == "sys_exit_clock_nanosleep":
            slept[me] = event
        if began is None:
            continue
        to_server = [lambda e: e.wakes(me, server), lambda e: e.runs(server), lambda e: e.is_call(server, "exit_epoll_wait")]
        back = [lambda e: e.wakes(server, me), lambda e: e.runs(me), lambda e: e.is_call(me, "enter_clock_nanosleep")]
        on = [lambda e: e.wakes(server, other), lambda e: e.is_call(other, "exit_poll") or e.is_call(other, "exit_ppoll"),
              lambda e: e.is_call(other, "enter_clock_nanosleep")]
        rest = events[at:at + 200]
        if event.wakes(me, server):
            found = times(rest, began, to_server + back)
            if found and any(e.tid == server and e.name == "sched_waking" and e.us < found[-1] and not e.wakes(server, me) for e in rest):
                published.add(me)
            else:
                trips += [found] if found else []
        elif event.name == "sys_enter_sendto" and event.number(r"len: (0x\w+)") in RELEASE:
            if me in published:
                published.remove(me)
                continue
            found = times(rest, began, [lambda e: e is event] + to_server + on)
            is_twice = found and any(e.wakes_as_listener(other) and found[-3] < e.us < found[-1] for e in rest)
            (twice if is_twice else once).extend([found] if found else [])
            lost += not found
    return once, twice, trips, lost


def show(title, names, all_times):
    if not all_times:
        return print(title + ": none")
    sums = [times[-1] - times[0] for times in all_times]
    print("%s: %d, median %.0f us" % (title, len(sums), statistics.median(sums)))
    for i, name in enumerate(names):
        us = statistics.median(times[i + 1] - times[i] for times in all_times)
        print("  %-36s %5.0f us  %s" % (name, us, "#" * round(us / 2)))


def main():
    if len(sys.argv) != 2:
        sys.exit("trace.py PROGRAM: as build/release/bench/hand_off")
    events = record(sys.argv[1])
    sleeps = [event.tid for event in events if event.who == "hand_off" and event.name == "sys_exit_clock_nanosleep"]
    players = sorted(set(sleeps), key=sleeps.count)[-2:]
    server = next(event.tid for event in events if event.who == "redis-server")
    once, twice, trips, lost = parts(events, players, server)
    show("PING", ROUND_TRIP, trips)
    show("hand-off", HAND_OFF, once)
    show("hand-off, the listener was sooner", HAND_OFF, twice)
    print("of %d more not all parts were seen" % lost)


if __name__ == "__main__":
    main()
