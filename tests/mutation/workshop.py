# SPDX-License-Identifier: MIT
"""workshop.py - a copy of the tree below build/ in which it may be broken, and programs that run there with a limit.
For rule_mutants.py and code_mutants.py."""
import hashlib
import os
import re
import signal
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SHIPS = ('base/', 'pool/', 'watchdog/', 'core/', 'include/', 'modules/')


class Mistake(Exception):
    """What whoever wrote a mutant, or an entry of a list, or the call of a program, has to mend."""


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as out:
        out.write(text)


def tracked():
    listed = subprocess.run(['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'], cwd=ROOT,
                            stdout=subprocess.PIPE)
    if listed.returncode == 0:
        names = [n for n in listed.stdout.decode().split('\0') if n]
    else:  # not a checkout: all but the builds
        names = [os.path.relpath(os.path.join(folder, f), ROOT) for folder, folders, files in os.walk(ROOT)
                 if not os.path.relpath(folder, ROOT).startswith(('build', '.git')) for f in files]
    return sorted(n for n in names if os.path.isfile(os.path.join(ROOT, n)) and not n.startswith('docs/'))


class Workshop:
    def __init__(self, name, flags):
        self.work, self.flags = os.path.join(ROOT, 'build', name), flags
        self.tree, self.build_folder = os.path.join(self.work, 'tree'), os.path.join(self.work, 'build')

    def copy_tree(self):
        """Only what differs is written, so ninja builds only what differs. Returns the state of what ships."""
        names, state = tracked(), hashlib.sha1()
        for name in names:
            source, target = os.path.join(ROOT, name), os.path.join(self.tree, name)
            text = open(source, 'rb').read()
            if name.startswith(SHIPS):
                state.update(name.encode() + b'\0' + text)
            if not os.path.exists(target) or open(target, 'rb').read() != text:
                put(target, text)
                if os.access(source, os.X_OK):
                    os.chmod(target, 0o755)
        there = [os.path.relpath(os.path.join(folder, f), self.tree)
                 for folder, _, files in os.walk(self.tree) for f in files]
        for name in set(there) - set(names):
            os.remove(os.path.join(self.tree, name))
        return state.hexdigest()

    def build(self, targets, log):
        if not os.path.exists(os.path.join(self.build_folder, 'build.ninja')):
            words = ['cmake', '-S', self.tree, '-B', self.build_folder, '-G', 'Ninja', '-DHOLDFAST_DEVELOP=ON',
                     '-DHOLDFAST_CHECKED=ON', '-DCMAKE_C_FLAGS=' + self.flags, '-DCMAKE_CXX_FLAGS=' + self.flags]
            subprocess.run(words, stdout=log, stderr=log, check=True)
        return subprocess.run(['ninja', '-C', self.build_folder] + sorted(targets), stdout=log,
                              stderr=log).returncode == 0


# ---- programs ----

live = set()  # process groups of the programs that run now


def end_all(*_):
    for pid in list(live):
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    os._exit(130)


def end_all_with_us():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end_all)


def run_limited(words, folder, limit, cpu='unlimited'):
    """Its exit code (None: it did not end in time), and what it said. Whatever it leaves behind is ended with it. Both
    limits in seconds; that of the processor does not depend on what else the machine has to do."""
    with tempfile.TemporaryFile() as said:  # no pipe: who is left behind would hold it open
        child = subprocess.Popen(['sh', '-c', 'ulimit -t "$0"; exec "$@"', str(cpu)] + words, stdout=said,
                                 stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=folder, start_new_session=True)
        live.add(child.pid)
        hangs = False
        try:
            child.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            hangs = True
        finally:  # its session: the commands of `holdfast run` have groups of their own
            subprocess.run(['pkill', '-KILL', '-s', str(child.pid)], check=False)
            live.discard(child.pid)
        child.wait()
        said.seek(0)
        out = said.read()
    hangs = hangs or child.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
    return None if hangs else child.returncode, out.decode(errors='replace')


def found_by_sim(text):
    """The promises that the simulator found broken, by the names in which its oracle speaks."""
    said = re.findall(r'^VIOLATION seed \d+ \((.*)\)$', text, re.M)
    found = sorted({name for line in said for name in re.findall(r'\[([a-z-]+)\]', line)})
    return ', '.join(found) or ('crash or hang' if any('crashed' in line for line in said) else 'another violation')


# ---- pages ----

def put_markdown(path, name, lines):
    """Between the two marks of a page that has them; else the whole file."""
    begin, end = '<!-- %s -->' % name, '<!-- end of the %s -->' % name
    body = '%s\n%s\n%s' % (begin, '\n'.join(lines), end)
    text = open(path).read() if os.path.exists(path) else begin + end + '\n'
    head, _, rest = text.partition(begin)
    _, _, tail = rest.partition(end)
    with open(path, 'w') as out:
        out.write(head + body + tail)


def where(state):
    """Of which tree a page speaks: its commit, if it is one, and the sum of all that ships."""
    commit = subprocess.run(['git', 'describe', '--always', '--dirty', '--exclude=*'], cwd=ROOT, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL).stdout.decode().strip()
    return (', commit ' + commit if commit else '') + ', sources ' + state[:12]
