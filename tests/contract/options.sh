#!/bin/sh
# SPDX-License-Identifier: MIT
# options.sh SOURCE BUILD: the rows of core/protocol/option_table.c and the fields in the public headers are the same
# options, and the comment beside a field has the default, bounds, HF_OFF and HF_FOREVER of its row.
set -eu
cd "$1"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/rows.c" <<'END_OF_C'
#include "core/protocol/option_table.c"

#include <stdio.h>

static void print(const char *type, const struct hfi_option *option, int count)
{
    for (const struct hfi_option *end = option + count; option < end; option++)
        printf("%s %.18s %d %lld %d %lld %d\n", type, option->name, option->kind, (long long)option->otherwise, option->low,
               (long long)option->high, option->words);
}

int main(void)
{
    print("hf_client_options", hfi_client_table, HFI_CLIENT_OPTIONS);
    print("hf_lock_options", hfi_lock_table, HFI_LOCK_OPTIONS);
    print("hf_fetch_options", hfi_fetch_table, HFI_FETCH_OPTIONS);
    return 0;
}
END_OF_C
gcc -std=c11 -D_GNU_SOURCE -I . -I include "$folder/rows.c" -o "$folder/rows"
"$folder/rows" >"$folder/rows.txt"
python3 - "$folder/rows.txt" include/holdfast/client.h include/holdfast/lock.h include/holdfast/fetch.h <<'END'
import re
import sys

KINDS = [("int64_t",), ("int64_t",), ("size_t", "uint64_t"), ("int", "hf_event_kind"), ("bool",), ("const char *",)]
NO_ROW = {"size", "name_size", "key_size", "arg_size", "user", "password"}  # the struct's own; not in a query
NUMBER = re.compile(r"\d{1,3}(?: \d{3})+|\d+")


def fields(path):
    """(struct, name) -> (type, comment) of each field that is a number or a text"""
    text = open(path).read()
    for struct, body in re.findall(r"typedef struct (hf_\w+_options) \{(.*?)\n\} \1;", text, re.S):
        for line, comment in re.findall(r"^    (\w[^;/]*);[ ]*(?:/\*(.*?)\*/)?", body, re.S | re.M):
            kind, names = re.match(r"((?:const )?\w+)\s*(.*)", line, re.S).groups()
            for name in re.split(r",\s*", names):
                star = " *" if name.startswith("*") else ""
                yield struct, name.lstrip("*"), kind + star, " ".join((comment or "").split())


def defaults(comment):
    """the numbers that a comment begins with: `600 000, 3 600 000 (with ...`, `16 MiB.`, `0: ...`"""
    said = []
    while (number := NUMBER.match(comment)):
        value, comment = int(number[0].replace(" ", "")), comment[number.end():]
        if comment.startswith(" MiB"):
            value, comment = value << 20, comment[4:]
        said.append(value)
        if not comment.startswith(", "):
            break
        comment = comment[2:]
    return said


wrong = []
rows = {}
for line in open(sys.argv[1]):
    struct, name, *numbers = line.split()
    rows[struct, name] = list(map(int, numbers))
seen = set()
for path in sys.argv[2:]:
    for struct, name, kind, comment in fields(path):
        if (struct, name) not in rows:
            plain = any(kind in kinds for kinds in KINDS) and "[" not in name
            if plain and name not in NO_ROW and not name.startswith("tls_"):
                wrong.append(f"{path}: {name} has no row")
            continue
        seen.add((struct, name))
        form, default, low, high, words = rows[struct, name]
        said = defaults(comment)
        if kind not in KINDS[form]:
            wrong.append(f"{path}: {name} is {kind}")
        if (default not in said) if default else any(said):
            wrong.append(f"{path}: {name}: the default is {default}, not {said}")
        bounds = re.search(f"({NUMBER.pattern}) \\.\\. ({NUMBER.pattern})", comment)
        if bounds and [int(n.replace(" ", "")) for n in bounds.groups()] != [low, high]:
            wrong.append(f"{path}: {name}: the bounds are {low} .. {high}")
        if [words & 1 > 0, words & 2 > 0, words & 4 > 0] != [word in comment for word in ("HF_OFF", "HF_FOREVER", "HF_ALL")]:
            wrong.append(f"{path}: {name}: HF_OFF, HF_FOREVER, HF_ALL are not said as the row has them")
wrong += [f"{struct} has no field {name}" for struct, name in set(rows) - seen]
print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
sys.exit(bool(wrong))
