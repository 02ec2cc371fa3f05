#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""code_mutants.py - makes every small mistake in a source, one at a time, and counts which of them a test notices. README.md."""
import argparse
import concurrent.futures
import fnmatch
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time

from equivalent import check, equivalents, read_list
from mistakes import mutants_of
from workshop import ROOT, Mistake, Workshop, end_all_with_us, found_by_sim, put, put_markdown, run_limited, where

SHOP = Workshop('code_mutants', '-O2')
RESULTS = os.path.join(SHOP.work, 'results.json')
GOAL = 95

# What decides, and the scripts: where a wrong comparison costs somebody the lock.
FILES = ['core/policy/entry.c', 'core/policy/entry_[!c]*.c', 'core/policy/lease.c', 'core/policy/in_doubt.c',
         'core/policy/fence.c', 'core/lock/server_time.c', 'core/lock/renew.c', 'core/lock/retire.c', 'core/lock/retirement.c', 'core/lock/inbound.c',
         'core/scripts/*.lua']

# Tests with real servers that take seconds, and sleep most of them.
REAL = ['fetch', 'lock', 'operators', 'orphan', 'recheck', 'scripts']

KILLED, HANGS, SURVIVES, EQUAL, BROKEN = 'killed', 'hangs', 'survives', 'equal', 'does not compile'


class Killer:
    """A program that ends with 0 unless something is wrong. What waits for real time has to find it wrong twice."""

    def __init__(self, name, target, words=(), twice=False):
        self.name, self.target, self.words, self.twice = name, target, list(words), twice
        self.limit, self.cpu, self.rank = 120, 120, 0

    def run(self, folder):
        """'' if nothing is noticed."""
        code, text = run_limited([os.path.join(folder, os.path.basename(self.target))] + self.words, folder, self.limit,
                                 self.cpu)
        if code is None:
            return HANGS
        if code == 0:
            return ''
        return found_by_sim(text) if self.name == 'sim' else KILLED

    def notices(self, folder):
        found = self.run(folder)
        return self.run(folder) if found and self.twice else found


def killers_of(path, seeds):
    """The cheapest first: unit tests and scenes that bear the file's first word, the simulator, then real servers."""
    first = os.path.splitext(os.path.basename(path))[0].split('_')[0]

    def named(kind, wanted):
        folder = os.path.join(SHOP.tree, 'tests', kind)
        files = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        return [f[:-len('_test.c')] for f in files if f.endswith('_test.c') and wanted(f[:-len('_test.c')])]

    units = named('unit', lambda name: name.split('_')[0] == first or (first == 'server' and name == 'fence'))
    scenes = named('scene', lambda name: True)
    real = named('integration', lambda name: name in REAL)
    killers = [Killer('unit.' + u, 'tests/unit_' + u) for u in units]
    killers += [Killer('scene.' + s, 'tests/scene/scene_' + s)
                for s in sorted(scenes, key=lambda name: name.split('_')[0] != first)]
    if path.endswith('.lua'):
        killers += [Killer('integration.scripts', 'tests/integration_scripts')] * ('scripts' in real)
    killers += [Killer('sim', 'tests/sim/sim', ['--seeds', str(seeds), '--workers', '1', '--first'])]
    return killers + [Killer('integration.' + r, 'tests/integration_' + r, twice=True) for r in real if r != 'scripts']


# ---- the sources ----

def all_files():
    known = sorted(os.path.relpath(os.path.join(folder, f), ROOT) for folder, _, files in
                   os.walk(os.path.join(ROOT, 'core')) for f in files)
    return [f for pattern in FILES for f in known if fnmatch.fnmatch(f, pattern)]


def mutants_in(root, path):
    with open(os.path.join(root, path)) as source:
        return mutants_of(path, source.read())


# ---- building: the changed object, and programs with it instead of the one in their archives ----

SHIPPED, SIMULATED = 'mutant.o', 'simulated.o'  # as the library has it; with the simulator's marks and mutexes


class Bench:
    """Commands of the build, made to read and write in another folder."""

    def __init__(self, path, killers, log):
        self.path, self.log = path, log
        self.is_script = path.endswith('.lua')
        source = 'scripts.c' if self.is_script else path
        self.objects = {SHIPPED: 'CMakeFiles/hf_core.dir/%s.o' % source}
        if not self.is_script:
            self.objects[SIMULATED] = 'tests/sim/CMakeFiles/sim_core.dir/__/__/%s.o' % source
        self.compile = {name: re.sub(r' -W\S+', '', self.command(o)) + ' -w' for name, o in self.objects.items()}
        self.source = os.path.join(SHOP.build_folder if self.is_script else SHOP.tree, source)
        self.links = {k.target: self.command(k.target) for k in killers}
        self.simulated = set() if self.is_script else {k.target for k in killers if k.name.startswith(('sim', 'scene'))}
        self.original = self.make_object(SHOP.tree, os.path.join(SHOP.work, 'original'))

    def command(self, target):
        said = subprocess.run(['ninja', '-C', SHOP.build_folder, '-t', 'commands', '-s', target], stdout=subprocess.PIPE,
                              check=True).stdout.decode()
        return [line for line in said.split('\n') if line and not line.startswith('ninja:')][-1]

    def shell(self, command):
        return subprocess.run(command, shell=True, cwd=SHOP.build_folder, stdout=self.log, stderr=self.log).returncode == 0

    def make_object(self, tree, folder):
        """The digest of what the source of that tree becomes; None: it does not compile."""
        os.makedirs(folder, exist_ok=True)
        source = os.path.join(tree, self.path)
        if self.is_script:
            source = os.path.join(folder, 'scripts.c')
            if not self.shell('cmake -DOUT=%s -DFOLDER=%s -P %s' % (source, os.path.join(tree, 'core/scripts'), os.path.join(
                    SHOP.tree, 'cmake/embed_lua_now.cmake'))):
                return None
        for name, made in self.objects.items():
            out = os.path.join(folder, name)
            command = self.compile[name].replace(' -o %s ' % made, ' -o %s ' % out).replace(made + '.d', out + '.d')
            if not self.shell(command.replace(' -c ' + self.source, ' -c ' + source)):
                return None
        return hashlib.sha1(open(os.path.join(folder, SHIPPED), 'rb').read()).hexdigest()

    def link(self, killer, folder):
        """An archive gives only what is still missing, so the object that is named first takes the place of its own."""
        out = os.path.join(folder, os.path.basename(killer.target))
        made = SIMULATED if killer.target in self.simulated else SHIPPED
        return self.shell(self.links[killer.target].replace(' -o %s ' % killer.target, ' -o %s %s ' % (
            out, os.path.join(folder, made))))


class Verdict:
    def __init__(self, mutant, kind, by=''):
        self.mutant, self.kind, self.by = mutant, kind, by


class Runner:
    """One file's mutants, several at a time, each worker in a folder of its own."""

    def __init__(self, path, killers, log):
        self.path, self.killers = path, killers
        self.bench = Bench(path, killers, log)
        self.text = open(os.path.join(SHOP.tree, path)).read()
        self.equivalent = {m.identity(): why for m, why in equivalents(path, self.text, mutants_of(path, self.text)).items()}

    def prepare(self, folder):
        """A mutant's place: what its source is made with stands beside it."""
        shutil.rmtree(folder, ignore_errors=True)
        for beside in [os.path.dirname(self.path)] + ['core/protocol'] * self.bench.is_script:  # scripts.h names the scripts
            shutil.copytree(os.path.join(SHOP.tree, beside), os.path.join(folder, 'tree', beside))

    def judge(self, mutant, folder):
        tree = os.path.join(folder, 'tree')
        place = os.path.join(tree, self.path)
        put(place, mutant.apply(self.text).encode())
        try:
            made = self.bench.make_object(tree, folder)
        finally:
            put(place, self.text.encode())
        if made is None:
            return Verdict(mutant, BROKEN)
        if made == self.bench.original:
            return Verdict(mutant, EQUAL, 'the compiler')
        if mutant.identity() in self.equivalent:
            return Verdict(mutant, EQUAL, self.equivalent[mutant.identity()])
        for killer in (k for k in self.killers if not k.twice):
            found = self.run(killer, folder)
            if found:
                return self.died(mutant, killer, found)
        patient = [k for k in self.killers if k.twice]
        with concurrent.futures.ThreadPoolExecutor(len(patient) or 1) as pool:
            for killer, found in zip(patient, pool.map(lambda k: self.run(k, folder), patient)):
                if found:
                    return self.died(mutant, killer, found)
        return Verdict(mutant, SURVIVES)

    def run(self, killer, folder):
        if not self.bench.link(killer, folder):
            raise Mistake('%s does not link; see %s' % (killer.target, self.bench.log.name))
        return killer.notices(folder)

    def died(self, mutant, killer, found):
        return Verdict(mutant, HANGS if found == HANGS else KILLED,
                       killer.name if found in (HANGS, KILLED) else '%s (%s)' % (killer.name, found))

    def measure(self):
        """Each program by itself, with nothing broken: what it takes, and whether it counts. The cheapest goes first; what
        takes ten times as long hangs."""
        folder = os.path.join(SHOP.work, 'original')
        for killer in list(self.killers):
            began, cpu = time.time(), os.times()
            found = self.run(killer, folder)
            now = os.times()
            if found:
                print('  does not count, for it fails with nothing broken: %s (%s)' % (killer.name, found), flush=True)
                self.killers.remove(killer)
            spent = now[2] + now[3] - cpu[2] - cpu[3]
            killer.limit, killer.cpu = 20 + 10 * (time.time() - began), 2 + int(10 * spent)
            killer.rank = 0 if spent < 0.3 else spent  # by name where they cost next to nothing
        self.killers.sort(key=lambda killer: (killer.twice, killer.rank))


# ---- the table ----

def family(verdict):
    return verdict.by.split('.')[0].split(' ')[0]


def table(verdicts):
    """Lines of the page: a row for each file, then who survives."""
    lines = ['| file | mutants | unit tests | scenes | simulator | real servers | of these by hanging | equivalent | survive | share |',
             '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |']
    total = [0] * 8
    for path in list(dict.fromkeys(v.mutant.path for v in verdicts)) + ['all']:
        if path == 'all':
            row = total
        else:
            own = [v for v in verdicts if v.mutant.path == path and v.kind != BROKEN]
            dead = [v for v in own if v.kind in (KILLED, HANGS)]
            row = [len(own)] + [sum(family(v) == f for v in dead) for f in ('unit', 'scene', 'sim', 'integration')]
            row += [sum(v.kind == HANGS for v in dead), sum(v.kind == EQUAL for v in own),
                    sum(v.kind == SURVIVES for v in own)]
            total = [a + b for a, b in zip(total, row)]
        lines.append('| %s | %s | %s |' % (path, ' | '.join(map(str, row)), share(row)))
    survivors = [v.mutant for v in verdicts if v.kind == SURVIVES]
    if survivors:
        lines += ['', 'Who survives:', '']
        lines += ['- `%s` %s: `%s`, %s' % (m.path, m.function, m.line, m.named_change()) for m in survivors]
    return lines


def share(row):
    judged = row[0] - row[6]
    return '%.1f %%' % (100 * (judged - row[7]) / judged) if judged else '-'


# ---- running ----

def load_results():
    try:
        return json.load(open(RESULTS))
    except (OSError, ValueError):
        return {}


def sha(text):
    return hashlib.sha1(text.encode()).hexdigest()


def chosen_mutants(plan, files):
    chosen = {path: [m for m in mutants_in(SHOP.tree, path) if not plan.line or m.row in plan.line] for path in files}
    if plan.sample:
        rng = random.Random(plan.seed)
        every = [m for path in files for m in chosen[path]]
        few = set(rng.sample(range(len(every)), min(plan.sample, len(every))))
        chosen = {path: [m for i, m in enumerate(every) if i in few and m.path == path] for path in files}
    return chosen


def run_file(path, mutants, plan, log, kept):
    """Verdicts of the mutants, in their order; those of before where only survivors are asked for."""
    killers = [k for k in killers_of(path, plan.seeds) if not plan.quick or k.name.startswith(('unit', 'scene'))]
    runner = Runner(path, killers, log)
    text = sha(runner.text)
    before = kept.get(path, {}) if kept.get(path, {}).get('text') == text else {'text': text, 'verdicts': {}}
    kept[path] = before
    verdicts = {}
    for mutant in mutants:
        last = before['verdicts'].get(mutant.identity())
        if plan.survivors and last and last[0] not in (SURVIVES, EQUAL):
            verdicts[mutant] = Verdict(mutant, *last)
    left = [m for m in mutants if m not in verdicts]
    print('%s: %d mutants, %d to run' % (path, len(mutants), len(left)), flush=True)
    if left:
        runner.measure()
    folders = [os.path.join(SHOP.work, 'worker%d' % n) for n in range(plan.jobs)]
    for folder in folders:
        runner.prepare(folder)

    def one(mutant):
        folder = folders.pop()
        try:
            return runner.judge(mutant, folder)
        finally:
            folders.append(folder)

    with concurrent.futures.ThreadPoolExecutor(plan.jobs) as pool:
        for done, verdict in enumerate(pool.map(one, left), 1):
            mutant = verdict.mutant
            verdicts[mutant] = verdict
            before['verdicts'][mutant.identity()] = [verdict.kind, verdict.by]
            print('[%d/%d %5.0f s] %s:%d %s  %s: %s' % (done, len(left), time.time() - plan.began, path, mutant.row,
                                                       mutant.named_change(), verdict.kind, verdict.by), flush=True)
            put(RESULTS, json.dumps(kept, indent=1).encode())
    return [verdicts[m] for m in mutants]


def arguments():
    parser = argparse.ArgumentParser(prog='dev mutate code', description='Makes every small mistake; which does a test notice?')
    parser.add_argument('files', nargs='*', metavar='FILE', help='core/policy/lease.c (default: all that decide, and the scripts)')
    parser.add_argument('--list', action='store_true', help='the mutants, by their names for equivalent.txt')
    parser.add_argument('--check', action='store_true', help='is equivalent.txt about today\'s sources? builds nothing')
    parser.add_argument('--follow', action='store_true', help='as --check, and writes down which files they have moved to')
    parser.add_argument('--sample', type=int, metavar='N', help='only N of them, chosen by --seed')
    parser.add_argument('--seed', type=int, default=1, metavar='S')
    parser.add_argument('--line', type=int, action='append', metavar='N', help='only those in this line')
    parser.add_argument('--survivors', action='store_true', help='only those that nobody has killed yet')
    parser.add_argument('--quick', action='store_true', help='unit tests and scenes only')
    parser.add_argument('--seeds', type=int, default=2000, help='histories of the simulator (default 2000)')
    parser.add_argument('--jobs', type=int, default=2, help='mutants at a time (default 2)')
    parser.add_argument('--markdown', metavar='FILE', help='put the table there')
    return parser.parse_args()


def main():
    plan = arguments()
    plan.began = time.time()
    if plan.check or plan.follow:
        wrong = check(plan.follow)
        print('\n'.join(wrong) or 'mutate code: %d equivalent mutants, each is there' % len(read_list()))
        return 1 if wrong else 0
    unknown = [f for f in plan.files if not os.path.exists(os.path.join(ROOT, f))]
    if unknown:
        raise Mistake('there is no %s' % ', '.join(unknown))
    files = plan.files or all_files()
    if plan.list:
        for path in files:
            for mutant in mutants_in(ROOT, path):
                print('%s' % mutant.identity())
        return 0
    end_all_with_us()
    state, kept, verdicts = SHOP.copy_tree(), load_results(), []
    with open(os.path.join(SHOP.work, 'log'), 'w') as log:
        targets = {k.target for path in files for k in killers_of(path, 0)}
        print('mutate code: building ...', flush=True)
        if not SHOP.build(targets, log):
            raise Mistake('the tree does not build; see %s' % log.name)
        chosen = chosen_mutants(plan, files)
        for path in files:
            if chosen[path]:
                verdicts += run_file(path, chosen[path], plan, log, kept)
    ran = '`./dev mutate code%s`, %s%s, %.0f minutes.' % (
        ''.join(' ' + w for w in sys.argv[1:] if w not in (plan.markdown, '--markdown')), time.strftime('%F'), where(state),
        (time.time() - plan.began) / 60)
    lines = [ran, ''] + table(verdicts)
    print('\n' + '\n'.join(lines))
    if plan.markdown:
        put_markdown(plan.markdown, 'table', lines)
    return 1 if any(v.kind == SURVIVES for v in verdicts) else 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except Mistake as mistake:
        print('mutate code: %s' % mistake, file=sys.stderr)
        sys.exit(2)
