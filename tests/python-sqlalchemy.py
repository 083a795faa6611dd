#!/usr/bin/env python3
"""SQLAlchemy's own suite for dialects (sqlalchemy.testing.suite) over `clearway:///DIRECTORY`: what passes, what differs and why.

usage: tests/python-sqlalchemy.py [--python PYTHON] [--short | --only EXPRESSION] [--page docs/python.md] [--record] [--seconds N]

PYTHON is an interpreter in whose environment clearway, sqlalchemy and pytest are installed; by default the one that runs this script.
tests/python-sqlalchemy.list names each test that does not pass, with the reason; a test that is listed and passes is a failure, as is one that
fails and is not listed. --only is pytest's -k; --short runs some
classes of tests in less than a minute. --page puts the table into the page, --record writes the list anew
(the reasons of new lines are `?`). The last line is `N passed, N failed`.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import suites

HERE = Path(__file__).resolve().parent
LIST = HERE / "python-sqlalchemy.list"

#: What --short runs.
SHORT = """InsertBehaviorTest ReturningTest SimpleUpdateDeleteTest CompoundSelectTest StringTest NumericTest DateTest DateTimeTest UuidTest
    IntervalTest BooleanTest JSONTest SequenceTest RowCountTest ExistsTest IsolationLevelTest TableDDLTest""".split()

#: Reasons in the list, and what they mean.
REASONS = {
    "collation": "Only C.UTF-8 orders texts; other collations are refused.",
    "feature": "The statement needs what is refused by its name (0A000): a precision of intervals, arguments by name.",
    "reflection": "A view of the catalog tells less than PostgreSQL's.",
    "open": "A defect that is known and not repaired yet.",
}


def run(python, only, work, seconds):
    """How each test ended, and its first error, by its name."""
    out = work / "out.xml"
    command = [python, "-m", "pytest", "-q", "-W", "ignore", "--junitxml", out, f"--dburi=clearway:///{work / 'db'}", "test_suite.py"]
    command += ["-k", only] if only else []
    where = HERE / "sqlalchemy"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(command, cwd=where, timeout=seconds, env=environment, capture_output=True, text=True)
    if not out.exists():
        raise SystemExit(f"{ended.stdout[-3000:]}{ended.stderr[-3000:]}\n0 passed, 1 failed")
    seen = {}
    for module, test, ended in suites.cases(out):
        # Names of parameters hold the dialect and numbers of this run.
        seen[re.sub(r"\s+", "_", f"{module.rpartition('.')[2]}.{test}")] = ended
    return seen


def table(seen, reasons):
    ended = Counter(how for how, _ in seen.values())
    lines = [
        "Written by `tests/python-sqlalchemy.py --page docs/python.md`.",
        "",
        f"{ended['passed']} of {ended['passed'] + ended['failed']} tests pass; {ended['skipped']} are skipped: they are about other databases.",
        "",
    ]
    why = Counter(reasons.get(name, "?") for name, (how, _) in seen.items() if how == "failed")
    if why:
        lines += ["| tests that differ | why |", "|---|---|"]
        lines += [f"| {count} | {REASONS.get(reason, reason)} |" for reason, count in why.most_common()]
    return "\n".join(lines) + "\n"


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--python", default=sys.executable)
    arguments.add_argument("--only")
    arguments.add_argument("--short", action="store_true")
    arguments.add_argument("--page", type=Path)
    arguments.add_argument("--record", action="store_true")
    arguments.add_argument("--seconds", type=int, default=1800)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as work:
        seen = run(given.python, " or ".join(SHORT) if given.short else given.only, Path(work), given.seconds)
    if given.record:
        suites.record(LIST, "# Tests of SQLAlchemy's suite that differ, each with its reason (tests/python-sqlalchemy.py says what they mean).\n", seen)
    reasons = suites.listed(LIST)
    if given.page:
        suites.put_into(given.page, "suite of SQLAlchemy", table(seen, reasons))
    return suites.verdict("SQLAlchemy's suite", seen, reasons, REASONS, whole=not given.short and not given.only)


if __name__ == "__main__":
    sys.exit(main())
