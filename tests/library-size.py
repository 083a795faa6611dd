#!/usr/bin/env python3
"""Size of the library `clearway`, so that it does not grow unnoticed: crates that it needs, and bytes of code of the C library that was built last.

usage: tests/library-size.py                        the check of CI: limits are in tests/library-size.limits; the last line is `N passed, N failed`
       tests/library-size.py --page docs/embedding.md LIBRARY WHEEL
                                                    writes the table of a release build: its C library, its wheel, how long they take to start, and
                                                    how long a program's first build takes (a quarter of an hour on two cores)

`cargo tree` counts the crates of each set of features; the code is the section .text of target/debug/libclearway_c.so, which tests/c.sh builds.
A limit has room of some hundredths for ordinary changes; to raise one is an edit by hand, in a commit that says why.
"""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMITS = ROOT / "tests" / "library-size.limits"


def crates(*features):
    """How many crates a program gets that depends on `clearway` with these features, `clearway` included."""
    command = ["cargo", "tree", "--locked", "-p", "clearway", "-e", "normal", "--prefix", "none", "--no-dedupe", "--no-default-features"]
    out = subprocess.run([*command, "--features", ",".join(features)], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    # A line is a name, a version and where it comes from.
    return len({" ".join(line.split()[:2]) for line in out.splitlines() if line.strip()})


def code_bytes(library):
    """The section .text."""
    out = subprocess.run(["size", "-A", str(library)], check=True, capture_output=True, text=True).stdout
    return next(int(line.split()[1]) for line in out.splitlines() if line.startswith(".text"))


def check():
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    limits = dict(line.split() for line in LIMITS.read_text().splitlines() if line and not line.startswith("#"))
    measured = {
        "crates": crates(),
        "crates-with-server": crates("derive", "server"),
        "debug-code-bytes": code_bytes(target / "debug" / "libclearway_c.so"),
    }
    failed = 0
    for name, value in measured.items():
        limit = int(limits[name])
        print(f"library-size {name}: {value} of at most {limit} ... {'ok' if value <= limit else 'FAILED'}")
        failed += value > limit
    print(f"{len(measured) - failed} passed, {failed} failed")
    return failed != 0


START = """
import ctypes, sys, time
library = ctypes.CDLL(sys.argv[1])
begin = time.perf_counter()
db = ctypes.c_void_p()
assert library.clearway_open(sys.argv[2].encode(), ctypes.byref(db)) == 0
print(time.perf_counter() - begin)
assert library.clearway_close(db) == 0
"""


def start_ms(library, path):
    """How long the first connection takes in a process of its own."""
    out = subprocess.run([sys.executable, "-c", START, str(library), str(path)], check=True, capture_output=True, text=True).stdout
    return float(out) * 1e3


RESIDENT = """
import ctypes, sys
def anonymous():
    return int(next(line for line in open("/proc/self/status") if line.startswith("RssAnon")).split()[1])
library = ctypes.CDLL(sys.argv[1])
before = anonymous()
db = ctypes.c_void_p()
assert library.clearway_open(sys.argv[2].encode(), ctypes.byref(db)) == 0
print(anonymous() - before)
assert library.clearway_close(db) == 0
"""


def resident_mb(library, path):
    """Anonymous memory that the first connection to a new directory adds to its process."""
    out = subprocess.run([sys.executable, "-c", RESIDENT, str(library), str(path)], check=True, capture_output=True, text=True).stdout
    return int(out) / 1e3


IDLE = """
import ctypes, sys, time
library = ctypes.CDLL(sys.argv[1])
db = ctypes.c_void_p()
assert library.clearway_open(sys.argv[2].encode(), ctypes.byref(db)) == 0
assert library.clearway_exec(db, b"CREATE TABLE idle (a int); INSERT INTO idle SELECT generate_series(1, 1000)", None, None) == 0
time.sleep(15)
def ticks():
    return sum(map(int, open("/proc/self/stat").read().rpartition(")")[2].split()[11:13]))
before = ticks()
time.sleep(30)
print(ticks() - before)
"""


def idle_ticks(library, path):
    """Processor time in clock ticks (utime and stime of /proc/PID/stat) in 30 seconds in which nobody uses the open database."""
    out = subprocess.run([sys.executable, "-c", IDLE, str(library), str(path)], check=True, capture_output=True, text=True).stdout
    return int(out)


def built(work, *options):
    """Processor time and time of the first build of the library alone, as a program has it that depends on it without features, in seconds."""
    command = ["cargo", "build", "--quiet", "--locked", "-p", "clearway", "--lib", "--no-default-features", *options]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(Path(work) / "target")}
    subprocess.run(["cargo", "fetch", "--quiet", "--locked"], cwd=ROOT, check=True)
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    elapsed, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    shutil.rmtree(Path(work) / "target")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, elapsed


def page(path, library, wheel):
    library, wheel = Path(library).resolve(), Path(wheel)
    with tempfile.TemporaryDirectory() as work:
        stripped = Path(work) / "stripped.so"
        subprocess.run(["strip", "-o", stripped, library], check=True)
        library_mb = stripped.stat().st_size / 1e6
        with zipfile.ZipFile(wheel) as archive:
            module_mb = sum(entry.file_size for entry in archive.infolist()) / 1e6
        new = [start_ms(library, Path(work) / f"new-{n}") for n in range(7)]
        again = [start_ms(library, Path(work) / f"new-{n}") for n in range(7)]
        memory = [start_ms(library, ":memory:") for _ in range(7)]
        resident = resident_mb(library, Path(work) / "resident")
        idle = idle_ticks(library, Path(work) / "idle")
        debug, release = built(work), built(work, "--release")
        disk = sum(file.stat().st_size for file in (Path(work) / "new-0").rglob("*") if file.is_file()) / 1e6
    lines = [
        "| what | figure |",
        "|---|--:|",
        f"| crates that a program gets: without features, with `server` | {crates()}, {crates('derive', 'server')} |",
        f"| first build of the library without features, {os.cpu_count()} cores: processor time, time | {debug[0]:.0f} s, {debug[1]:.0f} s |",
        f"| the same with `--release` | {release[0]:.0f} s, {release[1]:.0f} s |",
        f"| shared library for C, release, stripped | {library_mb:.1f} MB |",
        f"| Python's wheel, and what it unpacks to | {wheel.stat().st_size / 1e6:.1f} MB, {module_mb:.1f} MB |",
        f"| opening, first connection included: a new directory | {statistics.median(new):.0f} ms |",
        f"| the same: a directory that was closed | {statistics.median(again):.0f} ms |",
        f"| the same: memory | {statistics.median(memory):.0f} ms |",
        f"| memory of the process that it adds (anonymous pages) | {resident:.0f} MB |",
        f"| an empty database on disk | {disk:.1f} MB |",
        f"| processor time of an idle database in 30 s (`/proc/PID/stat`, ticks of 10 ms) | {idle} |",
    ]
    first, last = "<!-- size -->\n", "<!-- end of size -->\n"
    before, _, rest = Path(path).read_text().partition(first)
    _, _, after = rest.partition(last)
    text = "\n".join(lines)
    Path(path).write_text(f"{before}{first}\n{text}\n\n{last}{after}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--page"]:
        page(*sys.argv[2:5])
    else:
        sys.exit(check())
