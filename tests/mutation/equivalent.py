# SPDX-License-Identifier: MIT
"""equivalent.py - the mutants that no test can notice, as equivalent.txt names them: by file, function, text of the line and
change. The text is looked for by its tokens, so a reformat changes nothing. See README.md."""
import os
import re

from mistakes import mutants_of
from source import places, read, sources
from workshop import HERE, ROOT, Mistake

LIST = os.path.join(HERE, 'equivalent.txt')
PARTS = ' :: '


class Equivalent:
    def __init__(self, number, text):
        self.number, parts = number, text.split(PARTS)
        if len(parts) != 4 or ' ' not in parts[0] or not parts[3].strip():
            raise Mistake('equivalent.txt:%d: not `FILE FUNCTION :: LINE :: CHANGE :: REASON`: %s' % (number, text))
        (self.path, self.function), self.line, self.reason = parts[0].split(' ', 1), parts[1], parts[3]
        self.change, counted = re.match(r'(.*?)(?: \((\d+)\))?$', parts[2]).groups()
        self.which = int(counted or 1)

    def pick(self, path, text, mutants):
        """The one of these mutants of a file that is meant; None: there is none."""
        spans = places(path, text, self.line)
        alike = [m for m in mutants if m.function == self.function and is_same(m.change, self.change) and
                 any(start <= m.start < end for start, end in spans)]
        return alike[self.which - 1] if len(alike) >= self.which else None


def is_same(one, other):
    """Of two changes; a long one is cut off behind its first words."""
    one, other = (''.join(change.split()) for change in (one, other))
    if one.endswith('...') and other.endswith('...'):
        least = min(len(one), len(other)) - len('...')
        return one[:least] == other[:least]
    return one == other


def read_list():
    return [Equivalent(number, line.rstrip('\n')) for number, line in enumerate(open(LIST), 1)
            if line.strip() and not line.startswith('#')]


def equivalents(path, text, mutants):
    """{mutant: reason}"""
    picked = {entry.pick(path, text, mutants): entry.reason for entry in read_list() if entry.path == path}
    return {mutant: reason for mutant, reason in picked.items() if mutant is not None}


def check(follow):
    """The contract: each entry is a mutant of today's sources, of one of its own. `follow`: new paths are written down."""
    wrong, moved, known, taken = [], {}, {}, {}

    def find(entry, path):
        text = read(ROOT, path)
        if path not in known:
            known[path] = mutants_of(path, text) if text else []
        return entry.pick(path, text, known[path])

    for entry in read_list():
        found = find(entry, entry.path)
        if not found:
            there = [path for path in sources(ROOT) if places(path, read(ROOT, path), entry.line) and find(entry, path)]
            if len(there) != 1:
                wrong.append('equivalent.txt:%d: no such mutant any more, take it out or prove it anew' % entry.number)
                continue
            found, moved[entry.number] = find(entry, there[0]), (entry.path, there[0])
        if found in taken:
            wrong.append('equivalent.txt:%d: the same mutant as in line %d' % (entry.number, taken[found]))
        taken[found] = entry.number
    if not follow:
        return wrong + ['equivalent.txt:%d: what was in %s is in %s now; `./dev mutate code --follow` writes that' %
                        ((number,) + pair) for number, pair in moved.items()]
    lines = open(LIST).read().split('\n')
    for number, (path, there) in moved.items():
        lines[number - 1] = there + lines[number - 1][len(path):]
    with open(LIST, 'w') as out:
        out.write('\n'.join(lines))
    return wrong
