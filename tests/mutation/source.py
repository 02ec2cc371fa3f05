# SPDX-License-Identifier: MIT
"""source.py - sources as a compiler sees them: tokens, without white space, line breaks and comments. What is found by its
tokens is found after a reformat too. See README.md."""
import functools
import os
import re

C_TOKEN = re.compile(r'''(?P<skip>\s+|\\\n|/\*.*?\*/|//[^\n]*)
    |(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|\.?\d[\w.]*|\w+|.''', re.X | re.S)
LUA_TOKEN = re.compile(r'''(?P<skip>\s+|--[^\n]*)
    |(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|\d[\w.]*|\w+|.''', re.X | re.S)
FOLDERS = ('base', 'pool', 'watchdog', 'core', 'include', 'tools', 'modules')


@functools.lru_cache(maxsize=512)
def tokens(text, is_lua):
    """(token, start, end) of each. Texts in a row are one: a formatter cuts them where the line ends."""
    found = []
    for match in (LUA_TOKEN if is_lua else C_TOKEN).finditer(text):
        if match.lastgroup == 'skip':
            continue
        token, start = match.group(), match.start()
        if token[0] == '"' and found and found[-1][0][0] == '"' and not is_lua:
            before, start, _ = found.pop()
            token = before[:-1] + token[1:]
        found.append((token, start, match.end()))
    return found


def places(path, text, part):
    """(start, end) of each place where the tokens of `part` stand in `text`."""
    is_lua = path.endswith('.lua')
    there, wanted = tokens(text, is_lua), [token for token, _, _ in tokens(part, is_lua)]
    last = len(there) - len(wanted)
    return [(there[at][1], there[at + len(wanted) - 1][2]) for at in range(last + 1 if wanted else 0)
            if there[at][0] == wanted[0] and [token for token, _, _ in there[at:at + len(wanted)]] == wanted]


def replaced(text, place, new):
    """A line for the preprocessor needs a line of its own."""
    own = '\n' if re.search(r'^[ \t]*#', new, re.M) else ''
    return text[:place[0]] + own + new.strip() + own + text[place[1]:]


def sources(root):
    """The paths of all sources that ship."""
    return sorted(os.path.relpath(os.path.join(folder, name), root) for floor in FOLDERS
                  for folder, _, names in os.walk(os.path.join(root, floor)) for name in names
                  if name.endswith(('.c', '.h', '.lua')))


def read(root, path):
    full = os.path.join(root, path)
    return open(full).read() if os.path.exists(full) else ''
