#!/usr/bin/env python3
"""CPython's own tests of sqlite3 (test.test_sqlite3) with the import changed to clearway: what passes, what differs and why.

usage: tests/sqlite3-suite.py [--table docs/sqlite3-suite.md]

Needs the package clearway and CPython's tests in this interpreter's environment. --table writes the page instead of comparing with it. A test that
differs for none of the reasons below, or passes no longer, is a failure. The last line is `N passed, N failed`.
"""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile

MODULES = ["test_dbapi", "test_transactions", "test_types", "test_factory"]
PAGE = os.path.join(os.path.dirname(__file__), "..", "docs", "sqlite3-suite.md")

#: Why a test differs: a pattern for its name, one for the last line of its error, and the reason. The first that fits counts.
REASONS = []


def reasons():
    path = os.path.join(os.path.dirname(__file__), "sqlite3-suite.list")
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                name, error, reason = (part.strip() for part in line.split(" | "))
                REASONS.append((re.compile(name), re.compile(error), reason))


RUN = r"""
import sys, unittest, os, tempfile
import clearway
name, path = sys.argv[1:3]
def load(name, path):
    text = open(path, encoding="utf-8").read()
    text = text.replace("import sqlite3 as sqlite", "import clearway as sqlite").replace("import sqlite3\n", "import clearway as sqlite3\n")
    text = text.replace("from sqlite3 import", "from clearway import")
    # A default that is looked up when the module is imported, before any test.
    text = text.replace("category=sqlite.SQLITE_LIMIT_SQL_LENGTH", "category=None")
    module = type(sys)(name)
    module.__file__ = path
    sys.modules[name] = module
    exec(compile(text, path, "exec"), module.__dict__)
    return module
os.chdir(tempfile.mkdtemp())
# The other modules use what this one has.
sys.modules["test.test_sqlite3.test_dbapi"] = load("test_dbapi", os.path.join(os.path.dirname(path), "test_dbapi.py"))
module = load(name, path)
def clean(text):
    return " ".join(text.split()).replace("|", "/")[:160]
class Result(unittest.TestResult):
    def note(self, test, word, error=None):
        last = "" if error is None else f"{error[0].__name__}: {clean(str(error[1]))}"
        print(f"RESULT|{test.id()}|{word}|{last}", file=sys.__stdout__, flush=True)
    def addSuccess(self, test): self.note(test, "passes")
    def addError(self, test, error): self.note(test, "differs", error)
    def addFailure(self, test, error): self.note(test, "differs", error)
    def addSkip(self, test, reason): print(f"RESULT|{test.id()}|skipped|{clean(reason)}", flush=True)
    def addExpectedFailure(self, test, error): self.note(test, "passes")
    def addSubTest(self, test, sub, error):
        if error is not None:
            self.note(test, "differs", error)
unittest.defaultTestLoader.loadTestsFromModule(module).run(Result())
"""


def results():
    """Each test's name, word and error."""
    place = importlib.util.find_spec("test.test_sqlite3").submodule_search_locations[0]
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name in MODULES:
            path = os.path.join(place, f"{name}.py")
            run = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", RUN, name, path], capture_output=True, text=True, cwd=scratch, timeout=600
            )
            lines = [line.split("|") for line in run.stdout.splitlines() if line.startswith("RESULT|")]
            for _, test, word, error in lines:
                # A test of several parts differs if one of them does.
                if found.get(test, ("", ""))[0] != "differs":
                    found[test] = (word, error)
            if run.returncode != 0:
                found[f"{name} as a whole"] = ("differs", run.stderr.strip().splitlines()[-1] if run.stderr.strip() else "ended early")
    return found


def why(test, error):
    for name, pattern, reason in REASONS:
        if name.search(test) and pattern.search(error):
            return reason
    return ""


def page(found):
    """The page, and the tests that differ without a reason."""
    unknown = []
    out = [
        "# CPython's tests of sqlite3",
        "",
        "`test.test_sqlite3` of CPython 3.11 with `import clearway` in the place of `import sqlite3`; written by `tests/sqlite3-suite.py --table`,",
        "checked by `tests/python.sh`. The reasons stand in `tests/sqlite3-suite.list`.",
        "",
        "| module | pass | differ | skipped |",
        "|---|--:|--:|--:|",
    ]
    for module in MODULES:
        words = [word for test, (word, _) in found.items() if test.startswith(module)]
        out.append(f"| {module} | {words.count('passes')} | {words.count('differs')} | {words.count('skipped')} |")
    groups = {}
    for test, (word, error) in sorted(found.items()):
        if word == "differs":
            reason = why(test, error)
            if not reason:
                unknown.append((test, error))
            groups.setdefault(reason, []).append(test)
    out += ["", "## What differs", "", "| why | tests | which |", "|---|--:|---|"]
    for reason, tests in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])):
        short = ", ".join(f"`{test.split('.', 1)[1] if '.' in test else test}`" for test in tests)
        out.append(f"| {reason} | {len(tests)} | {short} |")
    out += ["", "## What passes", ""]
    for module in MODULES:
        names = [test.split(".", 1)[1] for test, (word, _) in sorted(found.items()) if word == "passes" and test.startswith(module)]
        out.append(f"- {module}: " + ", ".join(f"`{name}`" for name in names))
    return "\n".join(out) + "\n", unknown


def main():
    if importlib.util.find_spec("test") is None or importlib.util.find_spec("test.test_sqlite3") is None:
        print("NOT RUN: this Python has no test.test_sqlite3")
        print("0 passed, 0 failed")
        return 0
    reasons()
    found = results()
    text, unknown = page(found)
    for test, error in unknown:
        print(f"differs without a reason: {test} | {error}")
    if "--table" in sys.argv:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(text)
        return 0
    passed = {test for test, (word, _) in found.items() if word == "passes"}
    with open(PAGE, encoding="utf-8") as file:
        known = set()
        for line in file:
            module = next((module for module in MODULES if line.startswith(f"- {module}: ")), None)
            known |= {f"{module}.{name}" for name in re.findall(r"`([^`]+)`", line)} if module else set()
    # Another CPython has other tests; those that it does not have can't pass.
    broken = sorted(test for test in known - passed if test in found and found[test][0] != "skipped")
    for test in broken:
        print(f"passes no longer: {test} | {found[test][1]}")
    print(f"{len(passed)} passed, {len(broken) + len(unknown)} failed")
    return 1 if broken or unknown else 0


sys.exit(main())
