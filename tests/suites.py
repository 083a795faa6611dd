"""Suites of others that run over Clearway: the list of the tests that differ, each with its reason, and the table in a page of docs/.

A line of a list is `REASON NAME`. What a suite saw is a dictionary: the test's name, and how it ended (`passed`, `failed`, `skipped`) with its first error.
"""

import subprocess
import xml.etree.ElementTree as ElementTree


class NotReached(Exception):
    """A registry, or a compiler, does not give what a suite needs."""


def fetched(command, **options):
    """Runs what asks a registry; its output."""
    try:
        return subprocess.run(command, check=True, text=True, capture_output=True, stdin=subprocess.DEVNULL, **options).stdout
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        raise NotReached(f"{' '.join(map(str, command))}: {(getattr(error, 'stderr', '') or str(error)).strip()[-300:]}") from error


def cases(out):
    """What pytest wrote to the file of `--junitxml`: the class and the name of each test, and how it ended with its first error."""
    for case in ElementTree.parse(out).iter("testcase"):
        how, text = "passed", ""
        for kind in ("failure", "error", "skipped"):
            found = case.find(kind)
            if found is not None:
                how, text = ("skipped" if kind == "skipped" else "failed"), (found.get("message") or "").splitlines()[:1]
                text = text[0] if text else ""
                break
        yield case.get("classname"), case.get("name"), (how, text)


def listed(path):
    """The reasons by the tests' names."""
    lines = [line.split(maxsplit=1) for line in path.read_text().splitlines() if line and not line.startswith("#")] if path.exists() else []
    return {name: reason for reason, name in lines}


def failures(seen):
    """The names of the tests that failed."""
    return {name for name, (how, _) in seen.items() if how == "failed"}


def record(path, head, seen):
    """Writes the list anew; the reasons of new lines are `?`."""
    reasons = listed(path)
    path.write_text(head + "".join(f"{reasons.get(name, '?')} {name}\n" for name in sorted(failures(seen))))


def put_into(page, subject, text):
    """Puts a text between the marks of a page: `<!-- SUBJECT -->` and `<!-- end of the SUBJECT -->`."""
    first, last = f"<!-- {subject} -->\n", f"<!-- end of the {subject} -->\n"
    before, _, rest = page.read_text().partition(first)
    _, _, after = rest.partition(last)
    page.write_text(f"{before}{first}\n{text}\n{last}{after}")


def verdict(suite, seen, reasons, meanings, whole):
    """Prints what is wrong with the list, and the totals; true if something is. `whole`: every test of the suite ran."""
    failed = failures(seen)
    wrong = [f"{name} fails and is not listed: {seen[name][1]}" for name in sorted(failed - set(reasons))]
    for name, reason in sorted(reasons.items()):
        if name in seen and name not in failed:
            wrong.append(f"{name} is listed and does not fail: take the line out")
        elif name not in seen and whole:
            wrong.append(f"{name} is listed and there is no such test: take the line out")
        elif reason not in meanings:
            wrong.append(f"{name} is listed without a reason that is known: {reason}")
    for line in wrong:
        print(line)
    passed = sum(how == "passed" for how, _ in seen.values())
    print(f"{len(failed)} of {len(seen)} tests of {suite} differ")
    print(f"{passed} passed, {len(wrong)} failed")
    return bool(wrong) or passed == 0
