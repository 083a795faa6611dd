#!/usr/bin/env python3
"""Writes the .out beside each .sql from a real PostgreSQL 15.

usage: regenerate.py 'host=127.0.0.1 port=5432 user=postgres' FILE.sql ...

Needs psql. One psql process per script, fed line by line; a line `SQL <<< DATA` gives COPY its input."""
import re, subprocess, sys, pathlib

def run(conninfo, script):
    feed = ["\\set VERBOSITY verbose"]
    lines = [l for l in script.splitlines() if l.strip() and not l.startswith("--")]
    for i, line in enumerate(lines):
        feed.append(f"\\echo @@{i}")
        sql, _, data = line.partition(" <<< ")
        feed.append(sql + ";")
        if data:
            feed.append(data.replace("\\n", "\n").replace("\\t", "\t") + "\\.")
    p = subprocess.run(["psql", "-XAt", conninfo + " dbname=session_scripts", "-f", "-"], input="\n".join(feed) + "\n",
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    out, at = [], None
    for line in p.stdout.splitlines():
        m = re.fullmatch(r"@@(\d+)", line)
        if m:
            out.append(lines[int(m[1])])
            continue
        line = re.sub(r"^psql:<stdin>:\d+: ", "", line)
        if re.match(r"^(LINE \d+:|\s*\^|HINT:|LOCATION:|SCHEMA NAME:|TABLE NAME:|COLUMN NAME:|CONSTRAINT NAME:|CONTEXT:|SQL statement)", line):
            continue
        line = re.sub(r"^(NOTICE|WARNING):  \w{5}: ", r"\1:  ", line)
        # Not shown by the test's client either.
        if re.fullmatch(r"SELECT \d+", line):
            continue
        out.append(line)
    return "\n".join(out) + "\n"

for name in sys.argv[2:]:
    path = pathlib.Path(name)
    subprocess.run(["psql", "-Xq", sys.argv[1] + " dbname=postgres", "-c", "drop database if exists session_scripts", "-c", "create database session_scripts"], check=True)
    path.with_suffix(".out").write_text(run(sys.argv[1], path.read_text()))
