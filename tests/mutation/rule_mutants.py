#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""rule_mutants.py - breaks one rule at a time in a copy of the tree, and shows which tests notice. See README.md."""
import argparse
import concurrent.futures
import hashlib
import json
import os
import subprocess
import sys
import time

from source import places, read, replaced, sources
from workshop import HERE, ROOT, Mistake, Workshop, end_all_with_us, found_by_sim, put, put_markdown, run_limited, where

SHOP = Workshop('rule_mutants', '-O1')
RESULTS = os.path.join(SHOP.work, 'results.json')

RULES = ['L%d' % n for n in range(1, 13)] + ['P%d' % n for n in range(12)] + ['N%d' % n for n in range(1, 8)]
STEPS = ['subscribe', 'ask', 're-check', 'grant', 'claim', 'confirm', 'give back', 'leave', 'fill']
STEPS_LEAST = 10
AREAS = ['dialling', 'lanes', 'embedded', 'uri', 'run', 'operators', 'loops', 'orders', 'elections',
         'deadlocks', 'sharing', 'semaphores', 'failovers', 'dialects', 'aside', 'Apache', 'near']  # what has promises of its own beside those rules

# What the simulator's oracle and its histories promise, by the names in which a violation speaks.
ORACLE = '''one-holder fences-rise over-is-over valid-means-key release-is-honest lost-once no-false-loss wait-of-a-message
wait-of-a-recheck wait-after-a-death fifo calls-in-time no-hang no-renewal-after-release keys-end no-stale-store
no-stale-value status few-questions passes-end pending cancel-in-time nothing-stays marks-add-up none-to-the-deaf
theirs-are-told their-turn ends-anyway no-old-value own-writes-seen'''.split()

# The tests that are asked, and how long one may take.
LIMITS = {'unit': 30, 'scene': 30, 'fault': 45, 'integration': 120, 'cli': 200, 'torture': 60, 'apache': 90}

# The faults whose sentence is no promise of safety, and no bound.
NOT_OF_SAFETY = '''allocations cpu-quota descriptors dial-storm fetch-races fetch-storm loading misconf no-descriptors
script-flush short-io sigpipe slow-lookup small-stacks system-calls unload-in-lookup unloads'''.split()


class Test:
    """`program`: what of it is built, and changes with a mutant."""

    def __init__(self, name, words, limit, program):
        self.name, self.words, self.limit, self.program = name, words, limit, program
        self.kind = name.split('.')[0]

    def targets(self):
        return {self.program} | ({'cli'} if self.kind == 'cli' else set())


def said(words):
    try:
        return subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout.decode()
    except (OSError, subprocess.CalledProcessError) as error:
        raise Mistake('which tests there are only a build can say (./dev build): %s' % error)


def catalogue(build, seeds):
    """The tests of a build, as ctest and the simulator know them; of a profile five times as many histories, only for a
    mutant that names it as its witness."""
    build, sim = os.path.abspath(build), os.path.join('tests', 'sim', 'sim')
    words = [os.path.join(build, sim), '--seeds']
    tests = [Test('sim', words + [str(seeds)], 300, sim)]
    tests += [Test('sim.' + profile, words + [str(5 * seeds), '--profile', profile], 300, sim)
              for profile in said([words[0], '--profiles']).split()]
    for one in json.loads(said(['ctest', '--test-dir', build, '--show-only=json-v1']))['tests']:
        kind, _, name = one['name'].partition('.')
        if kind in LIMITS and 'command' in one and not (kind == 'fault' and name in NOT_OF_SAFETY):
            program = next(word for word in one['command'] if word.startswith(build + os.sep))
            tests.append(Test(one['name'], one['command'], LIMITS[kind], os.path.relpath(program, build)))
    return {t.name: t for t in tests}


# ---- mutants ----

class RuleMutant:
    """NAME.sab: what it breaks, and which text of which files becomes which other. Texts are compared by their tokens, so
    a reformat changes nothing; where a file has been moved or split, the text is looked for in the others."""

    def __init__(self, path):
        self.path, self.name = path, os.path.basename(path)[:-len('.sab')]
        self.fields, self.blocks, self.text = {}, [], open(path).read()
        for number, line in enumerate(self.text.split('\n')[:-1], 1):
            if line.startswith('@ '):
                self.blocks.append((line[2:].strip(), [], []))
            elif self.blocks and line[:1] in ('-', '+'):
                self.blocks[-1][1 if line[0] == '-' else 2].append(line[1:])
            elif not self.blocks and ': ' in line:
                key, value = line.split(': ', 1)
                self.fields[key] = value.strip()
            elif line:
                raise Mistake('%s.sab:%d: neither a field nor a line of a block: %s' % (self.name, number, line))
        self.rules = self.fields.get('rules', '').split()
        self.step = self.fields.get('step', '')
        self.area = self.fields.get('area', '')
        self.breaks = self.fields.get('breaks', '')
        self.witnesses = self.fields.get('caught by', '').split()

    def written(self):
        """What of it decides the outcome."""
        return self.text[self.text.index('@ '):]

    def check(self, known_tests):
        unknown = [k for k in self.fields if k not in ('rules', 'step', 'area', 'breaks', 'caught by')]
        unknown += [r for r in self.rules if r not in RULES] + [w for w in self.witnesses if w not in known_tests]
        unknown += [self.step] if self.step and self.step not in STEPS else []
        unknown += [self.area] if self.area and self.area not in AREAS else []
        if unknown:
            raise Mistake('%s.sab: unknown: %s' % (self.name, ', '.join(unknown)))
        if not self.breaks or not self.blocks or not (self.rules or self.step or self.area):
            raise Mistake('%s.sab: a mutant has a rule, a step or an area, a sentence, and lines' % self.name)

    def find(self, tree, path, old, texts):
        """(path, place): where the old text stands, exactly once. `texts`: what has been changed already."""
        found = places(path, texts.get(path) or read(tree, path), old)
        if not found:
            everywhere = [(p, place) for p in sources(tree) for place in places(p, texts.get(p) or read(tree, p), old)]
            if len(everywhere) == 1:
                return everywhere[0]
        if len(found) != 1:
            raise Mistake('%s.sab: found %d times, not once, in %s:\n%s' % (self.name, len(found), path, old))
        return path, found[0]

    def apply(self, tree, moved=None):
        """The new text of each file. `moved`: takes (block, old path, new path) of what is not where it is said to be."""
        texts = {}
        for block, (path, old, new) in enumerate(self.blocks):
            there, place = self.find(tree, path, '\n'.join(old), texts)
            if there != path and moved is not None:
                moved.append((block, path, there))
            texts[there] = replaced(texts.get(there) or read(tree, there), place, '\n'.join(new))
        return texts

    def follow(self, moved):
        """Writes the new paths down."""
        lines = self.text.split('\n')
        heads = [number for number, line in enumerate(lines) if line.startswith('@ ')]
        for block, _, there in moved:
            lines[heads[block]] = '@ ' + there
        put(self.path, '\n'.join(lines).encode())


def all_mutants():
    return [RuleMutant(os.path.join(HERE, f)) for f in sorted(os.listdir(HERE)) if f.endswith('.sab')]


def check(mutants, tests, follow):
    """The contract: each applies to today's sources, where it says; each rule has two, the hand-off has its ten."""
    wrong = []
    for mutant in mutants:
        moved = []
        try:
            mutant.check(tests)
            mutant.apply(ROOT, moved)
            if follow and moved:
                mutant.follow(moved)
            elif moved:
                wrong += ['%s.sab: what was in %s is in %s now; `./dev mutate rules --follow` writes that' %
                          (mutant.name, path, there) for _, path, there in moved]
        except Mistake as mistake:
            wrong.append(str(mistake))
    for rule in RULES:
        if sum(rule in s.rules for s in mutants) < 2:
            wrong.append('%s has fewer than two mutants' % rule)
    if sum(bool(s.step) for s in mutants) < STEPS_LEAST:
        wrong.append('fewer than %d mutants of a step of the hand-off' % STEPS_LEAST)
    return wrong


# ---- running ----

def digest(test):
    """Of all that the test runs: a mutant that leaves it as it was cannot be caught by it."""
    folder = SHOP.build_folder
    beside = [os.path.join(folder, test.program)]
    if test.kind not in ('sim', 'unit', 'scene'):
        beside += [os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f.startswith('libholdfast.so.')
                   and not os.path.islink(os.path.join(folder, f))]
    total = hashlib.sha1()
    for one in beside:
        total.update(open(one, 'rb').read())
    return total.hexdigest()


def caught(cells):
    return {name: what for name, what in cells.items() if what not in ('', '-')}


def spoken(name, what):
    return '%s (%s)' % (name, what) if what != 'caught' else name


def run(test, first_only):
    """'' if nothing is noticed, '-' if it cannot run here, else what was noticed."""
    words = test.words + (['--first'] if test.kind == 'sim' and first_only else [])
    code, text = run_limited(words, SHOP.work, test.limit)
    if code is None:
        return 'hang'
    if code in (0, 77):
        return '' if code == 0 else '-'
    if test.kind == 'sim':
        return found_by_sim(text)
    if code < 0:
        return 'crash'
    if 'hangs in:' in text:
        return 'hang'
    return 'caught'


class Runner:
    def __init__(self, tests, plan, log):
        self.tests, self.full, self.witnesses_only, self.log = tests, plan.full, plan.witnesses, log
        self.before, self.useless, self.known = {}, set(), {}

    def prepare(self, trust, chosen):
        """Without any mutant all must pass: what fails anyway proves nothing."""
        self.before = {name: digest(test) for name, test in self.tests.items()}
        if trust:
            return {}
        rare = [w for s in chosen for w in s.witnesses if w.startswith('sim.')]
        failed = caught(self.run_group(self.everything() + sorted(set(rare))))
        for name in list(failed):
            if self.tests[name].kind == 'sim':
                self.known[name] = set(failed[name].split(', '))
            elif run(self.tests[name], False) == '':  # alone, it passes
                del failed[name]
        self.useless = set(failed) - set(self.known)
        return failed

    def run(self, name):
        """Promises that the simulator finds broken without a mutant do not count."""
        known = self.known.get(name, set())
        found = run(self.tests[name], not self.full)
        if found and set(found.split(', ')) <= known:
            found = run(self.tests[name], False)
        return ', '.join(w for w in found.split(', ') if w not in known) if known else found

    def everything(self):
        return [n for n in self.tests if not n.startswith('sim.')]

    def run_group(self, names):
        """The simulator takes all cores, and what measures wants them; the others sleep most of the time."""
        alone = [n for n in names if n.startswith(('sim', 'integration.', 'cli.', 'torture.'))]
        cells = {n: self.run(n) for n in alone}
        rest = [n for n in names if n not in alone]
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            cells.update(zip(rest, pool.map(self.run, rest)))
        return cells

    def confirm(self, mutant, cells):
        """What nobody expected to notice, and judges by time or chance, has to notice twice."""
        for name, what in caught(cells).items():
            if name not in mutant.witnesses and not name.startswith(('sim', 'unit.', 'scene.')):
                cells[name] = what if run(self.tests[name], False) else ''

    def run_all(self, mutant, names, until_caught):
        """Group by group, each built when it is its turn; what the mutant left as it was is not run."""
        cells = {}
        for group in ['sim'] + list(LIMITS):
            tests = [self.tests[n] for n in dict.fromkeys(names) if n.split('.')[0] == group and n not in self.useless]
            if tests and not SHOP.build(set().union(*(t.targets() for t in tests)), self.log):
                raise Mistake('%s.sab does not compile; see %s' % (mutant.name, self.log.name))
            found = self.run_group([t.name for t in tests if digest(t) != self.before[t.name]])
            self.confirm(mutant, found)
            cells.update(found)
            if until_caught and caught(cells):
                break
        return cells

    def judge(self, mutant):
        """Its cells: the named witnesses; where they notice nothing, or in the full matrix, everything."""
        changed = mutant.apply(SHOP.tree)
        kept = {path: open(os.path.join(SHOP.tree, path), 'rb').read() for path in changed}
        try:
            for path, text in changed.items():
                put(os.path.join(SHOP.tree, path), text.encode())
            if self.full:
                return self.run_all(mutant, self.everything() + mutant.witnesses, False)
            cells = self.run_all(mutant, mutant.witnesses, False)
            if not caught(cells) and not self.witnesses_only:
                cells.update(self.run_all(mutant, [n for n in self.everything() if n not in cells], True))
            return cells
        finally:
            for path, text in kept.items():
                put(os.path.join(SHOP.tree, path), text)


# ---- the matrix ----

def columns_of(tests, results):
    """Each test, and each check of the simulator's oracle, with the mutants that it catches."""
    columns = {}
    for name in tests:
        if name == 'sim':
            for check_name in ORACLE:
                columns['sim: ' + check_name] = [
                    s for s, cells in results.items()
                    if any(n.startswith('sim') and check_name in what.split(', ') for n, what in cells.items())]
        elif name.startswith(('sim.', 'unit.', 'scene.', 'integration.', 'cli.', 'apache.')):
            continue  # they promise more than safety: shown where they catch
        else:
            columns[name] = [s for s, cells in results.items() if cells.get(name, '') not in ('', '-')]
    return columns


def report(mutants, tests, results, markdown, what_ran):
    """The matrix in both directions, and what is open."""
    lines = []
    table = (lambda *cells: lines.append('| ' + ' | '.join(cells) + ' |'))
    done = [s for s in mutants if s.name in results]
    missed = [s for s in done if not caught(results[s.name])]
    lines += ['%s: %d mutants, %d caught, %d open.' % (what_ran, len(done), len(done) - len(missed), len(missed)), '']
    table('mutant', 'rules', 'step', 'what is broken', 'caught by')
    table('---', '---', '---', '---', '---')
    for s in done:
        found = caught(results[s.name])
        table(s.name, ' '.join(s.rules) or s.area, s.step, s.breaks,
              ', '.join(spoken(*item) for item in found.items()) or '**nothing: open**')
    lines += ['', 'The other way round:', '']
    table('test or oracle check', 'catches')
    table('---', '---')
    columns = columns_of(tests, {s.name: results[s.name] for s in done})
    for name, found in columns.items():
        table(name, ', '.join(found) or '**nothing: open**')
    if markdown:
        put_markdown(markdown, 'matrix', lines)
    print('\n'.join(lines))
    idle = [n for n, found in columns.items() if not found]
    print('\nopen mutants: %s\ntests and checks that caught nothing: %s' %
          (', '.join(s.name for s in missed) or 'none', ', '.join(idle) or 'none'))
    return not missed


def load_results(state):
    try:
        kept = json.load(open(RESULTS))
    except (OSError, ValueError):
        kept = {}
    return kept if kept.get('state') == state else {'state': state, 'cells': {}, 'blocks': {}}


def list_all(mutants):
    for s in mutants:
        print('%-30s %-8s %-10s %s' % (s.name, ' '.join(s.rules) or s.area, s.step, s.breaks))


def arguments():
    parser = argparse.ArgumentParser(prog='dev mutate rules', description='Breaks one rule at a time; which tests notice?')
    parser.add_argument('names', nargs='*', metavar='NAME', help='only these (default: all)')
    parser.add_argument('--list', action='store_true', help='what there is, with the rules it breaks')
    parser.add_argument('--check', action='store_true', help='does each still apply, has each rule two? builds nothing')
    parser.add_argument('--follow', action='store_true', help='as --check, and writes down which files texts have moved to')
    parser.add_argument('--build', default=os.path.join(ROOT, 'build', 'dev'), help=argparse.SUPPRESS)
    parser.add_argument('--full', action='store_true', help='every test against every mutant (hours)')
    parser.add_argument('--witnesses', action='store_true', help='nobody but the witnesses that each names')
    parser.add_argument('--seeds', type=int, default=4000, help='histories of the simulator (default 4000)')
    parser.add_argument('--trust', action='store_true', help='do not run the tests without a mutant first')
    parser.add_argument('--kept', action='store_true', help='show too what ran before, of the same sources')
    parser.add_argument('--markdown', metavar='FILE', help='write the matrix there too')
    return parser.parse_args()


def main():
    plan = arguments()
    mutants = all_mutants()
    if plan.list:
        list_all(mutants)
        return 0
    wrong = check(mutants, catalogue(plan.build, plan.seeds), plan.follow) if plan.check or plan.follow else []
    if wrong or plan.check or plan.follow:
        print('\n'.join(wrong) or 'mutate rules: %d mutants, each applies once' % len(mutants))
        return 1 if wrong else 0
    chosen = [s for s in mutants if not plan.names or s.name in plan.names]
    if len(chosen) < len(set(plan.names)):
        print('mutate rules: no such mutant; --list lists them', file=sys.stderr)
        return 2
    end_all_with_us()
    began, state = time.time(), SHOP.copy_tree()
    kept = load_results(state)
    with open(os.path.join(SHOP.work, 'log'), 'w') as log:
        print('mutate rules: building%s ...' % ('' if plan.trust else ', and all tests without a mutant'), flush=True)
        if not SHOP.build({'tests/all', 'modules/apache/all', 'cli'}, log):
            raise Mistake('the tree does not build; see %s' % log.name)
        tests = catalogue(SHOP.build_folder, plan.seeds)
        wrong = check(mutants, tests, False)
        if wrong:
            raise Mistake('\n'.join(wrong))
        runner = Runner(tests, plan, log)
        for name, what in runner.prepare(plan.trust, chosen).items():
            print('  does not count, for it fails without one: ' + spoken(name, what), flush=True)
        for number, mutant in enumerate(chosen, 1):
            at = time.time()
            try:
                cells = runner.judge(mutant)
            except Mistake as mistake:  # it is open, and the others go on
                print(mistake, flush=True)
                cells = {}
            kept['cells'][mutant.name], kept['blocks'][mutant.name] = cells, mutant.written()
            found = caught(cells)
            print('[%d/%d %4.0f s] %-30s %3.0f s  %s' % (
                number, len(chosen), time.time() - began, mutant.name, time.time() - at,
                ', '.join(spoken(*item) for item in found.items()) or 'NOTHING of %d tests' % len(cells)), flush=True)
            put(RESULTS, json.dumps(kept, indent=1).encode())
    results = {s.name: kept['cells'][s.name] for s in mutants
               if kept['blocks'].get(s.name) == s.written() and (s in chosen or not plan.names or plan.kept)}
    ran = '`./dev mutate rules%s`, %s%s, %.0f minutes' % (''.join(' ' + w for w in sys.argv[1:] if w != plan.markdown and
                                                            w != '--markdown'),
                                                      time.strftime('%F'), where(state), (time.time() - began) / 60)
    kept['ran'] = (kept.get('ran', []) if plan.kept else []) + [ran]
    put(RESULTS, json.dumps(kept, indent=1).encode())
    print()
    well = report(mutants, tests, results, plan.markdown, '; then '.join(kept['ran']))
    return 0 if well else 1


if __name__ == '__main__':
    try:
        sys.exit(main())
    except Mistake as mistake:
        print('mutate rules: %s' % mistake, file=sys.stderr)
        sys.exit(1)
