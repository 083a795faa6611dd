"""Drives both servers through one schedule, a step at a time: a step is sent to both, then each server is watched until every session has
answered or waits for another one; then the two are compared.

A step ends, on one server, with what each session did that had not answered before: `waits` for a set of sessions, an SQLSTATE, or tags and
rows. What differs in rows, tags, SQLSTATEs, or in who waits at all ends the schedule: from there on the two are in different states. Whom a
waiting session waits for, and texts, are only noted.
"""
import re
import select
import time
from dataclasses import dataclass, field

import locks
from schedule import Step, kind
from servers import OPTIONS
from wire import Gone, Session

# PostgreSQL looks for deadlocks a millisecond after a wait began.
DEADLOCK_LOOK = 0.0025
STUCK = 20.0


class Stuck(Exception):
    """A session neither answers nor waits for another one."""


def ordered(sql):
    while "(" in sql:
        shorter = re.sub(r"\([^()]*\)", "", sql)
        if shorter == sql:
            break
        sql = shorter
    return " order by " in sql


def seen(reply, sql):
    """A reply as it is compared: the SQLSTATE, or tags with rows; in any order where the statement asks for none."""
    if reply.error:
        return reply.error[0]
    return tuple((tag, tuple(rows if ordered(sql) else sorted(rows, key=repr))) for tag, rows in reply.results)


def settle(server, since, stopped=(), cancelled=None):
    """Watches one server until each busy session has answered or waits, and the one that was cancelled has answered; `since`: when the busy
    ones began to wait, by session from 0. Gives whom the busy ones wait for. The processes of the stopped ones do not go on."""
    began, before = time.monotonic(), None
    patience = 0.001
    while True:
        busy = [n for n, s in enumerate(server.sessions) if s.busy and n not in stopped]
        if not busy:
            return {}
        by_socket = {server.sessions[n].socket: n for n in busy}
        for ready in select.select(list(by_socket), [], [], patience)[0]:
            server.sessions[by_socket[ready]].take_in()
            before = None
        busy = [n for n in busy if server.sessions[n].busy]
        if not busy:
            return {}
        blockers = server.blockers(busy)
        ready = select.select([server.sessions[n].socket for n in busy], [], [], 0)[0]
        now = time.monotonic()
        for n in busy:
            if not blockers[n]:
                since.pop(n, None)
            else:
                since.setdefault(n, now)
        if cancelled in busy:
            ready = [cancelled]
        looked = server.name != "PostgreSQL" or all(n in since and now - since[n] > DEADLOCK_LOOK for n in busy)
        if not ready and all(blockers.values()) and blockers == before and looked and not circular(blockers):
            return blockers
        before = blockers
        patience = 0.0005 if now - began < 0.05 else 0.005
        if now - began > STUCK:
            raise Stuck(f"{server.name}: no answer in {STUCK:g} s, and they wait for " + str({n + 1: b for n, b in blockers.items()}))


def behind(outcome, s):
    """The sessions, from 1, that a waiting session, from 0, waits for, and those that they wait for: a queue may have another order."""
    found, new = set(), {s}
    while new:
        found |= new
        new = {up - 1 for at in new if isinstance(outcome.get(at), frozenset) for up in outcome[at]} - found
    return {at + 1 for at in found - {s}}


def circular(blockers):
    """Whether those who wait stand in a circle, so that a deadlock is about to be found."""
    def reaches(at, goal, seen_before):
        for up in blockers.get(at, ()):
            if up - 1 == goal or (up - 1 not in seen_before and reaches(up - 1, goal, seen_before | {up - 1})):
                return True
        return False
    return any(reaches(n, n, {n}) for n in blockers)


def alike(a, b):
    """Whether a session does the same on both servers; two that wait may do so at different places of one queue."""
    if isinstance(a, frozenset) and isinstance(b, frozenset):
        return True
    return a == b


@dataclass
class Divergence:
    at: int  # the step, from 0
    signature: str
    detail: str
    # What the two did in this step, and for whom it is told; see causes.py.
    session: int = -1  # from 0
    sql: str = ""
    outcomes: list = None
    waited: list = None  # who waited before it, but the step's own session
    errors: list = None  # of each server, by session
    awaited: dict = None  # in PostgreSQL: (type of lock, mode, kind of relation), by session
    index_deadlocks: set = None  # sessions whose deadlock in PostgreSQL is about an index


@dataclass
class Run:
    """What happened in one schedule."""
    steps: list = field(default_factory=list)  # as they were done, without those left out
    log: list = field(default_factory=list)  # for each step what each server did
    divergence: Divergence = None
    notes: dict = field(default_factory=dict)  # smaller differences, by signature
    locks: dict = field(default_factory=dict)  # the latest difference of pg_locks of each session
    waited: int = 0


def told(outcome):
    if isinstance(outcome, str):
        return outcome
    if isinstance(outcome, frozenset):
        return "waits for " + " ".join(f"s{n}" for n in sorted(outcome))
    return "; ".join(tag + "".join(f" {tuple('null' if v is None else v for v in row)}".replace("'", "") for row in rows) for tag, rows in outcome)


def shape(mine, other):
    """An outcome in a signature: without numbers; where both are answers, what differs."""
    if isinstance(mine, frozenset):
        return "waits"
    if isinstance(mine, str):
        return mine
    if isinstance(other, tuple):
        return "tag" if [t for t, _ in mine] != [t for t, _ in other] else "rows"
    return "answers"


class Pair:
    """Both servers, for one schedule after the other."""

    def __init__(self, postgres, clearway, with_locks=False):
        self.postgres, self.clearway, self.with_locks = postgres, clearway, with_locks
        self.levels = {}

    def both(self):
        return self.postgres, self.clearway

    def prepare(self, schedule, count, servers=None):
        servers = servers or self.both()
        for server in servers:
            server.open(count)
            server.clean()
            server.control.send("drop schema if exists w cascade; create schema w; " + "; ".join(schedule.setup))
        for server in servers:
            reply = server.control.wait()
            if reply.error:
                raise RuntimeError(f"{server.name}: {reply.error}: {schedule.setup}")

    def run(self, schedule, generator=None):
        """Runs the schedule's steps, or those that the generator gives, as far as the servers agree; then compares what was committed."""
        count = generator.count if generator else max(2, schedule.sessions())
        self.prepare(schedule, count)
        run, last = Run(), {}
        since = ({}, {})
        self.levels = {}
        steps = iter(schedule.steps)
        while True:
            sessions = self.postgres.sessions[:count]
            if generator:
                statuses = {n + 1: s.status for n, s in enumerate(sessions)}
                busy = {n + 1: s.busy for n, s in enumerate(sessions)}
                step = generator.step(statuses, busy) if len(run.steps) < generator.length else generator.last_steps(statuses, busy)
            else:
                step = next(steps, None)
            if step is None:
                break
            if sessions[step.session - 1].busy != (step.sql == "cancel"):
                continue
            if not self.take(run, step, last, since):
                return run
        if not generator:
            self.wind_up(run, last, since, count)
            if run.divergence:
                return run
        self.compare_tables(run)
        return run

    def recover(self):
        """Goes on after a schedule that left Clearway, or a session, unusable."""
        self.postgres.close()
        self.clearway.renew()
        self.postgres.control = Session(self.postgres.port, OPTIONS)

    def wind_up(self, run, last, since, count):
        """Ends what a schedule has left open: a shrunk one has no end of its own."""
        while not run.divergence:
            sessions = self.postgres.sessions[:count]
            opened = [n + 1 for n, s in enumerate(sessions) if not s.busy and s.status != "I"]
            waiting = [n + 1 for n, s in enumerate(sessions) if s.busy]
            if opened:
                self.take(run, Step(opened[0], "commit"), last, since)
            elif waiting:
                self.take(run, Step(waiting[0], "cancel"), last, since)
            else:
                return

    def take(self, run, step, last, since):
        """One step on both servers, compared. False at the first divergence."""
        run.steps.append(step)
        n = step.session - 1
        waited = [s for s, x in enumerate(self.postgres.sessions) if x.busy]
        for server in self.both():
            if step.sql == "cancel":
                server.control.ask(f"select pg_cancel_backend({server.sessions[n].pid})")
            else:
                server.sessions[n].send(step.sql)
        if step.sql != "cancel":
            last[n] = step.sql
            self.note_level(n, step.sql)
        outcomes = []
        for server, began in zip(self.both(), since):
            try:
                blockers = settle(server, began, cancelled=n if step.sql == "cancel" else None)
            except (Stuck, Gone) as error:
                run.log.append(outcomes + [{}] * (2 - len(outcomes)))
                self.diverge(run, f"{'stuck' if isinstance(error, Stuck) else 'gone'}: {kind(last[n])}: {server.name}", str(error))
                return False
            for s, x in enumerate(server.sessions):
                if not x.busy:
                    began.pop(s, None)
            outcomes.append({s: frozenset(blockers[s]) if s in blockers else seen(server.sessions[s].last, last[s])
                             for s in sorted({*waited, n}) if s in last})
        run.log.append(outcomes)
        run.waited += bool(waited)
        # What the step's own session did comes first: what others do may follow from it.
        outcomes = [dict(sorted(outcome.items(), key=lambda one: one[0] != n)) for outcome in outcomes]
        waited = [s for s in waited if s != n]
        if not self.compare(run, outcomes, last, self.circumstance(outcomes, waited)):
            self.facts(run.divergence, outcomes, waited)
            return False
        if self.with_locks:
            self.compare_locks(run, last)
        return True

    def compare_locks(self, run, last):
        """pg_locks of each session; a difference is told once, with what the session did last."""
        for s, theirs, ours in locks.differences(self):
            if run.locks.get(s) != (theirs, ours):
                run.locks[s] = theirs, ours
                what = self.levels.get(s, "") + (kind(last.get(s, "")) or last.get(s, "").split(" ")[0])
                run.notes.setdefault(f"locks: {what}: PostgreSQL {', '.join(theirs) or 'nothing'}; Clearway {', '.join(ours) or 'nothing'}",
                                     f"s{s + 1} {last.get(s)}, at step {len(run.steps)}")

    def facts(self, divergence, outcomes, waited):
        """What the causes of divergences ask for, as long as it can be seen."""
        divergence.outcomes, divergence.waited = outcomes, waited
        divergence.errors = [{n: s.last.error for n, s in enumerate(server.sessions) if not s.busy and s.last and s.last.error} for server in self.both()]
        numbers = {str(s.pid): n for n, s in enumerate(self.postgres.sessions)}
        rows = self.postgres.control.values("select pid, locktype, mode, coalesce(relkind, '') from pg_locks l left join pg_class c on c.oid = l.relation "
                                            "where not granted")
        divergence.awaited = {numbers.get(pid, -1): rest for pid, *rest in rows}
        oids = {n: re.findall(r"on relation (\d+) of", error[2]) for n, error in divergence.errors[0].items() if error[0] == "40P01"}
        listed = ", ".join(sorted({oid for found in oids.values() for oid in found})) or "0"
        indexes = {oid for oid, in self.postgres.control.values(f"select oid from pg_class where relkind = 'i' and oid in ({listed})")}
        divergence.index_deadlocks = {n for n, found in oids.items() if indexes & set(found)}

    def note_level(self, n, sql):
        if sql.startswith("begin"):
            self.levels[n] = "rr " if "repeatable read" in sql else ""
        elif self.postgres.sessions[n].last.status == "I":
            self.levels[n] = ""

    def circumstance(self, outcomes, waited):
        """What makes a step open: both servers break the same deadlock with another victim; Clearway finds one where PostgreSQL waits for one of
        several holders after the other; or several sessions that waited go on at once, so that which of them comes first is a race on
        either server. It begins the signature of a divergence."""
        victims = [{s for s, what in outcome.items() if what == "40P01"} for outcome in outcomes]
        if all(victims) and victims[0] != victims[1]:
            return "another victim: "
        if victims[1] and not victims[0] and all(isinstance(outcomes[0].get(s), frozenset) for s in victims[1]):
            return "found earlier: "
        on = {s for outcome in outcomes for s in waited if not isinstance(outcome.get(s), frozenset)}
        return "together: " if len(on) > 1 else ""

    def compare(self, run, outcomes, last, circumstance):
        theirs, ours = outcomes
        for s in theirs:
            a, b = theirs[s], ours[s]
            what = circumstance + self.levels.get(s, "") + (kind(last[s]) or last[s].split(" ")[0])
            both_wait = isinstance(a, frozenset) and isinstance(b, frozenset)
            if a == b and not both_wait:
                self.compare_texts(run, s, what)
            elif both_wait and (a & b or a <= behind(ours, s) or b <= behind(theirs, s)):
                if a != b:
                    run.notes.setdefault(f"blockers: {what}", f"s{s + 1} {last[s]}: PostgreSQL {told(a)}, Clearway {told(b)}")
            elif both_wait:
                if a != b:
                    self.diverge(run, f"{what}: waits for another one", f"s{s + 1}: PostgreSQL {told(a)}, Clearway {told(b)}", s, last[s])
                    return False
            else:
                self.diverge(run, f"{what}: PostgreSQL {shape(a, b)}, Clearway {shape(b, a)}",
                             f"s{s + 1}: PostgreSQL {told(a)}\n    Clearway {told(b)}", s, last[s])
                return False
        for s, (x, y) in enumerate(zip(self.postgres.sessions, self.clearway.sessions)):
            if x.status != y.status and not x.busy:
                self.diverge(run, f"{kind(last[s])}: PostgreSQL status {x.status}, Clearway {y.status}", "", s, last[s])
                return False
        return True

    def compare_texts(self, run, s, what):
        a, b = self.postgres.sessions[s].last, self.clearway.sessions[s].last
        if a.error and a.error[1] != b.error[1]:
            run.notes.setdefault(f"text: {what}: {a.error[0]}", f"PostgreSQL {a.error[1]!r}, Clearway {b.error[1]!r}")

    def diverge(self, run, signature, detail, session=-1, sql=""):
        run.divergence = Divergence(len(run.steps) - 1, signature, detail, session, sql)

    def compare_tables(self, run):
        """What was committed. An index that CREATE INDEX CONCURRENTLY did not finish is left as invalid by PostgreSQL alone."""
        names = [sorted(r[0] for r in server.control.values(
            "select relname from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_index i on i.indexrelid = c.oid "
            "where nspname = 'w' and relkind in ('r', 'i', 'S', 'v') and (indisvalid is null or indisvalid)")) for server in self.both()]
        if names[0] != names[1]:
            run.divergence = Divergence(len(run.steps), "committed: relations", f"PostgreSQL {names[0]}\n    Clearway {names[1]}")
            return
        tables = [name for name in names[0] if name in ("p", "c", "d", "t", "q", "z", "e", "f", "h")]
        for name in tables:
            rows = [sorted(server.control.values(f"select * from {name}"), key=repr) for server in self.both()]
            if rows[0] != rows[1]:
                run.divergence = Divergence(len(run.steps), f"committed: {name}", f"{name}: PostgreSQL {rows[0]}\n    Clearway {rows[1]}")
                return
