#!/usr/bin/env python3
"""`clearway sql` at a real pseudo-terminal: prompts, places of errors, history over runs, Tab, the editor, \\watch, Ctrl-C, files.

usage: tests/sql.py BINARY"""
import fcntl
import os
import pty
import re
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import time

BINARY = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else sys.exit(__doc__)
# What hangs is found after this long; a slow machine is not that slow.
PATIENCE_S = int(os.environ.get("PATIENCE_S", 120))
ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")
UP, TAB, CTRL_C, CTRL_D = "\x1b[A", "\t", "\x03", "\x04"


class Terminal:
    """A program at a terminal of its own."""

    def __init__(self, arguments, environment):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(environment)
            os.execv(BINARY, [BINARY, *arguments])
        # Wide enough that no line is folded.
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 250, 0, 0))
        self.seen = b""

    def text(self):
        return ESCAPES.sub(b"", self.seen).replace(b"\r\n", b"\n").decode(errors="replace")

    def send(self, text):
        os.write(self.fd, text.encode())

    def until(self, wanted, what=""):
        """Waits for a pattern in what the program has said since the last call, and forgets what it said up to there."""
        end = time.monotonic() + PATIENCE_S
        while True:
            found = re.search(wanted, self.text(), re.S)
            if found:
                said = self.text()
                self.seen = said[found.end():].encode()
                return said[:found.end()]
            if time.monotonic() > end:
                raise AssertionError(f"{what or wanted!r} does not come; there is {self.text()!r}")
            os.set_blocking(self.fd, False)
            try:
                more = os.read(self.fd, 65536)
            except BlockingIOError:
                time.sleep(0.01)
                continue
            except OSError:
                more = b""
            if not more:
                raise AssertionError(f"the program ended before {wanted!r}; it said {self.text()!r}")
            self.seen += more

    def line(self, text, wanted=None, prompt="clearway=> "):
        """Types a line; waits for an answer, and for the prompt behind it."""
        self.send(text + "\r")
        # What is typed is echoed, character by character; the answer comes below.
        self.until(re.escape(text[-20:]) + r"[^\n]*\n", f"the echo of {text!r}")
        return self.until((wanted or "") + r".*?" + re.escape(prompt) + r"\r*$")

    def end(self):
        """The exit status, once the program has ended by itself."""
        while True:
            try:
                if not os.read(self.fd, 65536):
                    break
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class Place:
    """A server, and a home for the shell."""

    def __init__(self, directory):
        self.directory = directory
        command = [BINARY, "serve", "--data", f"{directory}/data", "--listen", "127.0.0.1:0", "-c", "log_min_messages=fatal"]
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for line in self.server.stdout:
            if line.startswith("listening at "):
                self.port = line.strip().rsplit(":", 1)[1]
            if line.startswith("connect with:"):
                break
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/clearway"
        self.environment = {"HOME": directory, "XDG_STATE_HOME": "", "TERM": "xterm", "COLUMNS": "250"}

    def shell(self, **more):
        terminal = Terminal(["sql", self.url], {**self.environment, **more})
        terminal.until(r"clearway=> \r*$")
        return terminal

    def path(self, name, text, mode=0o644):
        path = f"{self.directory}/{name}"
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def piped(self, program, text):
        command = [BINARY, "sql", self.url] if program == "clearway" else ["psql", "-X", "-v", "ON_ERROR_STOP=1", self.url]
        ran = subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S)
        # The shell names itself in an error, and draws no blanks at the ends of lines.
        return [line.rstrip().removeprefix("clearway: ") for line in ran.stdout.splitlines()]


def prompts_and_places(place):
    t = place.shell()
    t.line("create table accounts (id int primary key, owner text, balance int);", "CREATE TABLE")
    t.line("insert into accounts values (1, 'Ada', 10), (2, 'Grace', 20) returning id;", r"2\n\(2 rows\)\n\nINSERT 0 2")
    t.line("select ownr from accounts;", r'ERROR:  column "ownr" does not exist\nLINE 1: select ownr from accounts;\n               \^\n')
    t.line("begin;", "BEGIN", "clearway=*> ")
    t.line("select", prompt="clearway-*> ")
    t.line("  1;", r"\(1 row\)", "clearway=*> ")
    t.line("select 1/0;", "division by zero", "clearway=!> ")
    t.line("select 1;", "current transaction is aborted", "clearway=!> ")
    t.line("rollback;", "ROLLBACK")
    t.line("\\x", "Expanded display is on")
    t.line("select * from accounts where id = 1;", r"-\[ RECORD 1 \]\n.*id      \| 1\nowner   \| Ada\nbalance \| 10\n")
    t.line("\\x off", "Expanded display is off")
    t.line("select 1 as a \\g", r" a\n---\n 1\n")
    t.line("\\nonsense", "no command .nonsense")
    # What was typed of a statement is forgotten.
    t.line("select (", prompt="clearway-> ")
    t.send(CTRL_C)
    t.until(r"clearway=> \r*$")
    t.send("\\q\r")
    assert t.end() == 0


def history_over_runs(place):
    t = place.shell()
    t.line("select 'kept' ||", prompt="clearway-> ")
    t.line("  '-1' as v;", "kept-1")
    t.line("create role secretive password 'hidden-word';", "CREATE ROLE")
    t.line(" select 'begins with a blank';", "blank")
    t.send("\\q\r")
    assert t.end() == 0
    file = f"{place.directory}/.local/state/clearway/sql_history"
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600, oct(os.stat(file).st_mode)
    assert stat.S_IMODE(os.stat(os.path.dirname(file)).st_mode) == 0o700
    with open(file) as kept:
        text = kept.read()
    assert "hidden-word" not in text and "begins with a blank" not in text and "kept" in text, text
    t = place.shell()
    t.send(UP)  # \q
    t.send(UP)
    t.until("'-1' as v;")
    t.send("\r")
    t.until(r"kept-1\n.*clearway=> \r*$")
    t.send(CTRL_D)
    assert t.end() == 0
    # A place of one's own, and one that can't be written.
    own = f"{place.directory}/state"
    t = place.shell(XDG_STATE_HOME=own)
    t.line("select 'there';", "there")
    t.send("\\q\r")
    assert t.end() == 0 and "there" in open(f"{own}/clearway/sql_history").read()
    t = Terminal(["sql", place.url], {**place.environment, "XDG_STATE_HOME": "/proc/nowhere"})
    t.until(r"statements are not kept.*clearway=> \r*$")
    t.line("select 1;", r"\(1 row\)")
    t.send("\\q\r")
    assert t.end() == 0


def completion(place):
    t = place.shell()
    t.line('create table "Odd name" (a int);', "CREATE TABLE")
    t.line("create schema shop; create table shop.goods (price int, weight int);", "CREATE TABLE")
    for typed, completed in [
        ("sel", "select"),
        ("SEL", "SELECT"),
        ("select * from acc", "select \\* from accounts"),
        ("select * from accounts where bal", "where balance"),
        ("select * from accounts a where a.own", "a.owner"),
        ("select * from shop.", "from shop.goods"),
        ("select * from sho", "from shop\\."),
        ("select wei from shop.goods" + "\x1b[D" * len(" from shop.goods"), "select weight"),
        ("select * from \"Odd", 'from "Odd name"'),
        ("\\d acc", "d accounts"),
        ("\\c post", "c postgres"),
        ("\\ti", "timing"),
        (f"\\i {place.directory}/dat", f"i {place.directory}/data/"),
    ]:
        t.send(typed)
        t.send(TAB)
        t.until(completed, f"{typed} completed as {completed}")
        t.send(CTRL_C)
        t.until(r"clearway=> \r*$")
    # Two candidates are listed; a name of this transaction is found, also on a further line.
    t.send("select * from accounts where \t\t")
    t.until("balance.*id.*owner")
    t.send(CTRL_C)
    t.until(r"clearway=> \r*$")
    t.line("begin; create table made_just_now (a int);", "CREATE TABLE", "clearway=*> ")
    t.line("select *", prompt="clearway-*> ")
    t.send("from made_j\t")
    t.until("from made_just_now")
    t.send(CTRL_C)
    t.until(r"clearway=\*> \r*$")
    # In a failed transaction nothing is asked, and nothing hangs.
    t.line("select 1/0;", "division by zero", "clearway=!> ")
    t.send("roll\t")
    t.until("rollback")
    t.send(";\r")
    t.until(r"ROLLBACK.*clearway=> \r*$")
    t.send("\\q\r")
    assert t.end() == 0


def the_editor(place):
    script = place.path("editor", "#!/bin/sh\nsed -i 's/wrong_name/accounts/' \"$1\"\n", 0o755)
    t = place.shell(PSQL_EDITOR="", EDITOR="", VISUAL=script)
    t.line("select count(*) from wrong_name;", "does not exist")
    t.line("\\e", r"select count\(\*\) from accounts;.*\n     2\n")
    # Not changed: nothing runs.
    t.line("\\e")
    file = place.path("statement.sql", "select 'from the ' || 'wrong_name';\n")
    t.line(f"\\e {file}", "from the accounts")
    t.send("\\q\r")
    assert t.end() == 0
    t = place.shell(EDITOR="false")
    t.line("select 1;", "1 row")
    t.line("\\e", "the editor false failed")
    t.send("\\q\r")
    assert t.end() == 0
    left = [name for name in os.listdir(tempfile.gettempdir()) if name.startswith("clearway.edit.")]
    assert not [name for name in left if f".{t.pid}." in name], left


def watch_and_cancel(place):
    t = place.shell()
    t.send("select 'tick' as t \\watch 0.2\r")
    for _ in range(3):
        t.until(r"\d\d:\d\d:\d\d\+00 \(every 0.2s\)\n\n  t\n------\n tick\n\(1 row\)")
    t.send(CTRL_C)
    t.until(r"clearway=> \r*$")
    t.send("select pg_sleep(600);\r")
    monitor = f"select count(*) from pg_stat_activity where query like '%sleep(600)%' and pid <> pg_backend_pid()"
    psql = ["psql", "-XAtc", monitor, place.url]
    while subprocess.run(psql, capture_output=True, text=True, timeout=PATIENCE_S).stdout.strip() != "1":
        time.sleep(0.05)
    t.send(CTRL_C)
    t.until(r"canceling statement due to user request.*clearway=> \r*$")
    # The same while it repeats: the statement is cancelled, and the repeating ends.
    t.send("select pg_sleep(600) \\watch 1\r")
    while subprocess.run(psql, capture_output=True, text=True, timeout=PATIENCE_S).stdout.strip() != "1":
        time.sleep(0.05)
    t.send(CTRL_C)
    t.until(r"canceling statement due to user request.*clearway=> \r*$")
    t.line("select 'alive';", "alive")
    # A connection that is lost is made again.
    pid = re.search(r"\n +(\d+)\n\(1 row", t.line("select pg_backend_pid();"))[1]
    subprocess.run(["psql", "-XAtc", f"select pg_terminate_backend({pid})", place.url], timeout=PATIENCE_S, check=True, capture_output=True)
    t.line("select 'lost';", r"Connecting again:\n.*connected\.")
    t.line("select 'alive again';", "alive again")
    t.send("\\q\r")
    assert t.end() == 0


def files_and_connections(place):
    inner = place.path("inner.sql", "select 'inner' as v;\nselect 'without a semicolon' as w\n")
    outer = place.path("outer.sql", f"select 'outer' as v;\n\\i {inner}\nselect 1;\nselect no_such;\nselect 'not reached';\n")
    t = place.shell()
    said = t.line(f"\\i {outer}", r"outer.*inner.*without a semicolon.*outer.sql:4: ERROR:  column .no_such. does not exist\nLINE 1: select no_such;")
    assert "not reached" not in said, said
    endless = place.path("endless.sql", f"\\i {place.directory}/endless.sql\n")
    t.line(f"\\i {endless}", "more than 16 deep")
    t.line("\\i /no/such/file", "/no/such/file")
    t.line("create role other login;", "CREATE ROLE")
    t.line("\\c nowhere", 'database "nowhere" does not exist.*previous connection is kept')
    t.line("\\c postgres other", 'connected to database "postgres" as user "other"', "postgres=> ")
    t.line("select current_user, current_database();", "other +. postgres", "postgres=> ")
    t.line(f"\\c {place.url}", 'database "clearway" as user "postgres"')
    t.send("\\q\r")
    assert t.end() == 0


def as_psql_prints_it(place):
    for text in [
        "select 1 as a, 'abc' as bcd, null as n;\n\\x\nselect 1 as a, 'abc' as a_longer_name;\nselect 1 where false;\n\\x\nselect 1 where false;\n",
        "create table p (a int);\ninsert into p values (1), (2) returning a;\nupdate p set a = a;\ndelete from p;\ndrop table p;\n",
        "begin;\nsavepoint s;\nrollback to s;\ncommit;\nset lock_timeout = '1s';\nshow lock_timeout;\nexplain select 1;\n",
        "select a,\n  b from\n  (values (1)) v(a);\n",
        "select 1,, 2;\n",
        "select 'ü', nowhere;\n",
        f"select {', '.join(f'column{n}' for n in range(30))} from (values (1)) v;\n",
        "create table q (a int primary key);\ninsert into q values (1), (1);\n",
        "select '日本' as v union all select 'x';\n",
    ]:
        theirs = place.piped("psql", text)
        place.piped("psql", "drop table if exists p, q;\n")
        ours = place.piped("clearway", text)
        # psql says where in its input the error is.
        theirs = [re.sub(r"^psql:<stdin>:\d+: ", "", line) for line in theirs]
        assert ours == theirs, f"{text}\nclearway: {ours}\npsql:     {theirs}"


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="clearway-sql-") as directory:
        place = Place(directory)
        for test in [prompts_and_places, history_over_runs, completion, the_editor, watch_and_cancel, files_and_connections, as_psql_prints_it]:
            try:
                test(place)
                passed += 1
                print(f"ok      {test.__name__}", flush=True)
            except (AssertionError, OSError, subprocess.TimeoutExpired) as error:
                failed += 1
                print(f"FAILED  {test.__name__}: {error}", flush=True)
        place.server.send_signal(signal.SIGTERM)
        place.server.wait(PATIENCE_S)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
