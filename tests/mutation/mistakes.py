# SPDX-License-Identifier: MIT
"""mistakes.py - all the small mistakes that could have been made in a source: one comparison, one connective, one exit, one
number, one call at a time. Text in, mutants out; knows nothing of builds and tests. See README.md."""
import re

C_TOKEN = re.compile(r'''(?P<skip>\s+|/\*.*?\*/|//[^\n]*|^[ \t]*\#[ \t]*(?!define)[^\n]*|^[ \t]*\#[ \t]*define[ \t]+\w+(?:\([^)]*\))?)
    |(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<number>\.?\d[\w.]*)|(?P<word>[A-Za-z_]\w*)
    |(?P<sign><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|[<>=!]=|&&|\|\||[-+*/%&|^]=|.)''', re.X | re.S | re.M)
LUA_TOKEN = re.compile(r'''(?P<skip>\s+|--[^\n]*)
    |(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<number>\d[\w.]*)|(?P<word>[A-Za-z_]\w*)
    |(?P<sign>\.\.\.|\.\.|[<>=~]=|.)''', re.X | re.S | re.M)

C_COMPARES = {'<': ['<=', '>='], '<=': ['<', '>'], '>': ['>=', '<='], '>=': ['>', '<'],
              '==': ['!=', '>=', '<='], '!=': ['==', '<', '>']}
LUA_COMPARES = {**{sign: C_COMPARES[sign] for sign in ('<', '<=', '>', '>=')},
                '==': ['~=', '>=', '<='], '~=': ['==', '<', '>']}
SMALL = 64  # a number up to this is changed by one; a larger one, where one more is within what it promises, doubled

# Calls whose absence no behaviour shows but a leak, a race, a line of a log, a check less: other tools' business.
SILENT = re.compile(r'(hfi_step_at|hfi_entry_check|pthread_\w+|HFI_PERTURB|_Static_assert|hfi_log|free|\w*unref|\w+_ref)\(')


class Token:
    def __init__(self, kind, text, start):
        self.kind, self.text, self.start, self.end = kind, text, start, start + len(text)


class Mutant:
    """`start`..`end` of the source becomes `new`. Its name is what it changes, in which line of which function: not where
    that line stands. `number`: it is the n-th of that change in such a line."""

    def __init__(self, path, text, function, start, end, new, change):
        self.path, self.function, self.start, self.end, self.new, self.change = path, function, start, end, new, change
        self.number = 1
        self.row = text.count('\n', 0, start) + 1
        self.line = text.split('\n')[self.row - 1].strip()

    def named_change(self):
        return self.change + (' (%d)' % self.number if self.number > 1 else '')

    def identity(self):
        return '%s %s :: %s :: %s' % (self.path, self.function, self.line, self.named_change())

    def apply(self, text):
        return text[:self.start] + self.new + text[self.end:]


def tokens_of(text, pattern):
    return [Token(m.lastgroup, m.group(), m.start()) for m in pattern.finditer(text) if m.lastgroup != 'skip']


class Source:
    """What both languages have in common."""

    def __init__(self, path, text, pattern):
        self.path, self.text, self.mutants = path, text, []
        self.tokens = tokens_of(text, pattern)
        self.functions = self.find_functions()

    def at(self, index):
        return self.tokens[index] if 0 <= index < len(self.tokens) else Token('end', '', len(self.text))

    def add(self, first, last, new, change):
        """Tokens first..last, both included."""
        function = next((name for a, b, name in self.functions if a <= first <= b), '-')
        start, end = self.at(first).start, self.at(last).end
        self.mutants.append(Mutant(self.path, self.text, function, start, end, new, change))

    def written(self, first, last):
        """In one line, and short."""
        words = ' '.join(self.text[self.at(first).start:self.at(last).end].split())
        return words if len(words) <= 60 else words[:57] + '...'

    def closing(self, index):
        """Of the bracket at index."""
        pairs, depth = {'(': ')', '[': ']', '{': '}'}, 0
        opens, closes = self.at(index).text, pairs[self.at(index).text]
        for at in range(index, len(self.tokens)):
            depth += (self.at(at).text == opens) - (self.at(at).text == closes)
            if depth == 0:
                return at
        raise ValueError('%s: a bracket without its other' % self.path)

    def numbers(self):
        for index, token in enumerate(self.tokens):
            whole = re.match(r'(\d+)([uUlL]*)$', token.text) if token.kind == 'number' else None
            if token.kind == 'number' and not whole:  # a part of one, or in hex
                if '.' in token.text:
                    self.add(index, index, '(2 * %s)' % token.text, '%s doubled' % token.text)
                continue
            if whole:
                value, suffix = int(whole.group(1)), whole.group(2)
                news = [value + 1, value - 1] if value <= SMALL else [2 * value]
                for new in news:
                    if new >= 0:
                        self.add(index, index, '%d%s' % (new, suffix), '%s to %d' % (token.text, new))

    def unique(self):
        """The same change twice in one line of one function: they are counted."""
        seen = {}
        for mutant in self.mutants:
            name = mutant.identity()
            mutant.number = seen[name] = seen.get(name, 0) + 1
        return self.mutants


class CSource(Source):
    def __init__(self, path, text):
        super().__init__(path, text, C_TOKEN)
        self.pointers = set(re.findall(r'\*\s*(?:const\s+|restrict\s+)?(\w+)\s*[;,)=\[]', text)) | {'NULL'}
        self.comparisons()
        self.connectives()
        self.conditions()
        self.exits()
        self.numbers()
        self.steps()
        self.calls()

    def find_functions(self):
        found, depth, name, begun = [], 0, '-', 0
        for index, token in enumerate(self.tokens):
            if depth == 0 and token.kind == 'word' and self.at(index + 1).text == '(':
                name, begun = token.text, index
            depth += (token.text == '{') - (token.text == '}')
            if token.text == '}' and depth == 0:
                found.append((begun, index, name))
        return found

    def right_of(self, index):
        """The last token of the operand behind a comparison: a name, a number, a text."""
        at = index + 1
        while self.at(at).text in ('-', '(', '*', '&', '!'):
            at += 1
        while True:
            behind = self.at(at + 1).text
            if behind in ('->', '.'):
                at += 2
            elif behind in ('(', '['):
                at = self.closing(at + 1)
            else:
                return self.at(at)

    def has_order(self, index):
        """Of two constants' names, pointers, characters and texts none is more than the other."""
        right, left = self.right_of(index), self.at(index - 1)
        if left.text == ')':
            depth, at = 0, index - 1
            while True:
                depth += (self.at(at).text == ')') - (self.at(at).text == '(')
                if depth == 0:
                    break
                at -= 1
            if self.at(at - 1).text in ('strcmp', 'memcmp', 'strncmp'):
                return False
        if right.kind == 'text' or right.text in self.pointers or left.text in self.pointers:
            return False
        return not (right.kind == 'word' and right.text.isupper())

    def comparisons(self):
        for index, token in enumerate(self.tokens):
            if token.text in C_COMPARES and token.kind == 'sign':
                news = C_COMPARES[token.text]
                if token.text in ('==', '!=') and not self.has_order(index):
                    news = news[:1]
                for new in news:
                    self.add(index, index, new, '%s to %s' % (token.text, new))

    def connectives(self):
        for index, token in enumerate(self.tokens):
            if token.text in ('&&', '||'):
                other = '||' if token.text == '&&' else '&&'
                self.add(index, index, other, '%s to %s' % (token.text, other))
            elif token.text == '!':
                self.add(index, index, '', 'without !')

    def conditions(self):
        """One that has nothing to be changed in itself is turned round."""
        for index, token in enumerate(self.tokens):
            if token.text in ('if', 'while') and self.at(index + 1).text == '(':
                self.negate(index + 2, self.closing(index + 1) - 1)
            elif token.text == '?':
                at, depth = index - 1, 0
                while True:
                    text = self.at(at).text
                    depth += (text in (')', ']')) - (text in ('(', '['))
                    if depth < 0 or (depth == 0 and text in ('=', 'return', ',', '{', ':', ';', '?')):
                        break
                    at -= 1
                self.negate(at + 1, index - 1)

    def negate(self, first, last):
        if not any(self.at(at).text in C_COMPARES or self.at(at).text in ('&&', '||', '!') for at in range(first, last + 1)):
            words = self.text[self.at(first).start:self.at(last).end]
            self.add(first, last, '!(%s)' % words, 'not (%s)' % self.written(first, last))

    def exits(self):
        ends = {b for _, b, _ in self.functions}
        for index, token in enumerate(self.tokens):
            if token.text not in ('return', 'break', 'continue', 'goto') or token.kind != 'word':
                continue
            last = self.end_of_statement(index)
            if last + 1 not in ends:
                self.add(index, last, ';', 'without ' + self.written(index, last - 1))

    def end_of_statement(self, index):
        while self.at(index).text != ';':
            index = self.closing(index) + 1 if self.at(index).text in ('(', '[', '{') else index + 1
        return index

    def steps(self):
        for index, token in enumerate(self.tokens):
            if token.text in ('++', '--'):
                other = '--' if token.text == '++' else '++'
                self.add(index, index, other, '%s to %s' % (token.text, other))

    def begins_statement(self, index):
        before = self.at(index - 1).text
        if before == ')':  # of an if, a for, a while; or of (void)
            if self.at(index - 2).text == 'void':
                return False
            depth, at = 0, index - 1
            while True:
                depth += (self.at(at).text == ')') - (self.at(at).text == '(')
                if depth == 0:
                    return self.at(at - 1).text in ('if', 'for', 'while')
                at -= 1
        if before == ':':  # of a case, not of a choice
            at = index - 1
            while self.at(at).text not in (';', '{', '}', '?', 'case', 'default'):
                at -= 1
            return self.at(at).text in ('case', 'default')
        return before in (';', '{', '}', 'else')

    def calls(self):
        """A statement that is a call: what it would have done is not done."""
        inside = [(a, b) for a, b, _ in self.functions]
        for index, token in enumerate(self.tokens):
            is_void = [self.at(index + i).text for i in range(3)] == ['(', 'void', ')']
            callee = index + 3 if is_void else index
            if self.at(callee).kind != 'word' or self.at(callee + 1).text != '(' or not self.begins_statement(index) or \
                    self.at(callee).text in ('if', 'for', 'while', 'switch', 'return', 'sizeof') or \
                    not any(a < index < b for a, b in inside) or SILENT.match(self.at(callee).text + '('):
                continue
            last = self.end_of_statement(index)
            self.add(index, last, ';', 'without ' + self.written(index, last - 1))


class LuaSource(Source):
    WORDS = ('if', 'for', 'while', 'function', 'return', 'local', 'and', 'or', 'not')

    def __init__(self, path, text):
        super().__init__(path, text, LUA_TOKEN)
        self.comparisons()
        self.connectives()
        self.conditions()
        self.exits()
        self.numbers()
        self.calls()

    def find_functions(self):
        found, stack = [], []
        for index, token in enumerate(self.tokens):
            if token.kind != 'word':
                continue
            if token.text in ('if', 'do', 'function', 'repeat'):
                stack.append((token.text, index))
            elif token.text in ('end', 'until') and stack:
                word, begun = stack.pop()
                if word == 'function':
                    found.append((begun, index, self.at(begun + 1).text))
        return found

    def comparisons(self):
        for index, token in enumerate(self.tokens):
            if token.text in LUA_COMPARES and token.kind == 'sign':
                news = LUA_COMPARES[token.text]
                if token.text in ('==', '~=') and self.at(index + 1).kind != 'number':
                    news = news[:1]
                for new in news:
                    self.add(index, index, new, '%s to %s' % (token.text, new))

    def connectives(self):
        for index, token in enumerate(self.tokens):
            if token.text in ('and', 'or'):
                other = 'or' if token.text == 'and' else 'and'
                self.add(index, index, other, '%s to %s' % (token.text, other))
            elif token.text == 'not':
                self.add(index, index, '', 'without not')

    def conditions(self):
        for index, token in enumerate(self.tokens):
            if token.text in ('if', 'elseif', 'while'):
                last = index + 1
                while self.at(last).text not in ('then', 'do'):
                    last += 1
                words = [self.at(at).text for at in range(index + 1, last)]
                if not any(word in LUA_COMPARES or word in ('and', 'or', 'not') for word in words):
                    whole = self.text[self.at(index + 1).start:self.at(last - 1).end]
                    self.add(index + 1, last - 1, 'not (%s)' % whole, 'not (%s)' % self.written(index + 1, last - 1))

    def exits(self):
        """In Lua a return or break is the last of its block; not those that are the last of a function."""
        ends = {b for _, b, _ in self.functions} | {len(self.tokens)}
        for index, token in enumerate(self.tokens):
            if token.text not in ('return', 'break') or token.kind != 'word':
                continue
            last = index + 1
            while last < len(self.tokens) and self.at(last).text not in ('end', 'else', 'elseif'):
                last = self.closing(last) + 1 if self.at(last).text in ('(', '{', '[') else last + 1
            if last not in ends:
                self.add(index, last - 1, '', 'without ' + self.written(index, last - 1))

    def calls(self):
        """They begin a line, and end with it or a later one."""
        for index, token in enumerate(self.tokens):
            begins = self.text[self.text.rfind('\n', 0, token.start) + 1:token.start].strip() == ''
            if not begins or token.kind != 'word' or token.text in self.WORDS:
                continue
            at = index + 1
            while self.at(at).text == '.':
                at += 2
            if self.at(at).text == '(':
                last = self.closing(at)
                self.add(index, last, '', 'without ' + self.written(index, last))


def mutants_of(path, text):
    return (LuaSource if path.endswith('.lua') else CSource)(path, text).unique()
