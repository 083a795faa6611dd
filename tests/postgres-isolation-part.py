#!/usr/bin/env python3
"""A spec of PostgreSQL's isolation suite, or its expected output, without the parts whose names match a pattern: statements of setup and
teardown, steps and permutations. So a spec can be run of which some permutations need what Clearway refuses.

usage: tests/postgres-isolation-part.py PATTERN FILE.spec|FILE.out
"""
import re, sys

pattern, path = re.compile(sys.argv[1]), sys.argv[2]
text = open(path).read()
NAME = r'(?:"[^"]*"|\w+)'


def fits(part):
    return not pattern.search(part)


def setup(match):
    statements = re.findall(r"(?:\$\$.*?\$\$|[^;])*;", match[3], re.S)
    return f"{match[1]}{match[2]}{''.join(s for s in statements if fits(s))}\n}}"


if path.endswith(".spec"):
    text = re.sub(r"^#.*\n", "", text, flags=re.M)
    text = re.sub(r"^(setup|teardown)(\s*\{)([^}]*)\}", setup, text, flags=re.M)
    text = re.sub(rf"^step\s+({NAME})\s*\{{[^}}]*\}}\n", lambda m: m[0] if fits(m[1]) else "", text, flags=re.M)
    text = re.sub(r"^permutation.*\n", lambda m: m[0] if fits(m[0]) else "", text, flags=re.M)
    sys.stdout.write(text)
else:
    head, *blocks = text.split("\nstarting permutation: ")
    sys.stdout.write("\nstarting permutation: ".join([head] + [b for b in blocks if fits(b.split("\n")[0])]))
