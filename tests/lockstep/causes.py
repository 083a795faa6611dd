"""Whether a divergence has the cause that the list of known classes names. Each cause is an experiment, most of them on PostgreSQL alone: it is
led again to the step at which the two parted, and then brought to do, or shown to be unable to avoid, what Clearway did.

A cause gets a `Case` and says whether it holds. An experiment that PostgreSQL leads elsewhere on its way to the step is tried again.
"""
import itertools
import os
import re
import signal
from dataclasses import dataclass, replace

from drive import Stuck, alike, seen, settle
from schedule import Schedule, Step
from wire import Gone

TRIES = 3
# Keys of rows are below that.
ROWS = 10
# Modes in which a table is changed, or kept from being changed.
CHANGES = ("RowExclusiveLock", "ShareUpdateExclusiveLock", "ShareLock", "ShareRowExclusiveLock", "ExclusiveLock", "AccessExclusiveLock")


@dataclass
class Case:
    """A divergence: the schedule up to it, and the two outcomes of its last step."""
    pair: object
    setup: list
    steps: list
    log: list  # for each step what PostgreSQL did
    at: object  # Divergence

    @property
    def s(self):
        return self.at.session

    @property
    def sql(self):
        return self.at.sql

    @property
    def repeatable(self):
        return self.at.signature.removeprefix("together: ").startswith("rr ")

    def mine(self):
        return self.at.outcomes[1][self.s]

    def theirs(self):
        return self.at.outcomes[0][self.s]


class Elsewhere(Exception):
    """PostgreSQL took another way than before."""


def case_of(pair, setup, run):
    return Case(pair, setup, run.steps, [outcomes[0] for outcomes in run.log], run.divergence)


def send(server, step):
    session = server.sessions[step.session - 1]
    if session.busy != (step.sql == "cancel"):
        raise Elsewhere
    if step.sql == "cancel":
        server.control.ask(f"select pg_cancel_backend({session.pid})")
    else:
        session.send(step.sql)


def cancelled(step):
    return step.session - 1 if step.sql == "cancel" else None


def lead(case, server, count=None, compared=True):
    """Brings a server to the state after so many steps; the times since when its sessions wait."""
    steps = case.steps if count is None else case.steps[:count]
    sessions = max(step.session for step in case.steps)
    case.pair.prepare(Schedule(case.setup), max(2, sessions), [server])
    since, last = {}, {}
    for step, before in zip(steps, case.log):
        waited = [n for n, x in enumerate(server.sessions) if x.busy]
        send(server, step)
        if step.sql != "cancel":
            last[step.session - 1] = step.sql
        outcome = outcome_of(server, settle(server, since, cancelled=cancelled(step)), {*waited, step.session - 1}, last)
        if compared and not all(alike(before[n], outcome.get(n)) for n in before):
            raise Elsewhere
    return since, last


def outcome_of(server, blockers, asked, last):
    return {n: frozenset(blockers[n]) if n in blockers else seen(server.sessions[n].last, last[n]) for n in sorted(asked) if n in last}


def began(case, s=None, sql=None):
    """The step in which the statement, or another session's, began; it may have waited since."""
    s, sql = (case.s, case.sql) if s is None else (s, sql)
    return max(n for n, step in enumerate(case.steps) if step.session - 1 == s and step.sql == sql)


def tried(experiment):
    """An experiment is done again where PostgreSQL went elsewhere."""
    def again(case, *rest):
        for _ in range(TRIES):
            try:
                return experiment(case, *rest)
            except Elsewhere:
                continue
            except (Stuck, Gone):
                case.pair.recover()
        return False
    again.__doc__ = experiment.__doc__
    return again


# Several sessions go on in one step.
def other_order(case):
    """In some order of the sessions that waited, PostgreSQL does what Clearway did: its processes are stopped, and go on one after the other."""
    waiting = case.at.waited
    if not 1 < len(waiting) < 5:
        return False
    ours = case.at.outcomes[1]
    # Those that Clearway answered are likely to have gone first.
    likely = sorted(waiting, key=lambda n: isinstance(ours.get(n), frozenset))
    for order in itertools.permutations(likely):
        for _ in range(TRIES):
            try:
                theirs = in_order(case, order)
            except Elsewhere:
                continue
            except (Stuck, Gone):
                case.pair.recover()
                continue
            if all(alike(theirs.get(n), ours[n]) or names_meet(theirs.get(n), ours[n]) for n in ours):
                return True
            break
    return False


def names_meet(a, b):
    """Two sessions make something of one name: the second learns of the first from its check of the name, or from the catalog's index."""
    return {a, b} == {"42P07", "23505"}


def in_order(case, order):
    server, step = case.pair.postgres, case.steps[-1]
    since, last = lead(case, server, len(case.steps) - 1)
    stopped = list(order)
    try:
        for n in order:
            os.kill(server.sessions[n].pid, signal.SIGSTOP)
        send(server, step)
        if step.sql != "cancel":
            last[step.session - 1] = step.sql
        settle(server, since, stopped, cancelled(step))
        while stopped:
            os.kill(server.sessions[stopped.pop(0)].pid, signal.SIGCONT)
            blockers = settle(server, since, stopped)
    finally:
        for n in stopped:
            os.kill(server.sessions[n].pid, signal.SIGCONT)
    return outcome_of(server, blockers, {*order, step.session - 1}, last)


def between_rows(case):
    """PostgreSQL breaks a deadlock of the same sessions, if with another victim, where the others go on while one of them is between two of its
    rows: it asks for an advisory lock of each row before it changes it, and the control session has that of one row."""
    victims = {n for n, outcome in case.at.outcomes[1].items() if outcome == "40P01"}
    if not victims or len(case.at.waited) < 2:
        return False
    for s in case.at.waited:
        at = max(n for n, step in enumerate(case.steps[:-1]) if step.session - 1 == s and step.sql != "cancel")
        sql, found = re.subn(r"^((?:update|delete from) \w+ .*?where )", r"\1pg_advisory_xact_lock_shared(77, id) is not null and ", case.steps[at].sql)
        steps = [*case.steps[:at], Step(s + 1, sql), *case.steps[at + 1:]]
        if found and any(victims <= stopped_at(replace(case, steps=steps), row) for row in range(1, ROWS)):
            return True
    return False


def stopped_at(case, row):
    """The sessions of the deadlock that PostgreSQL breaks once the control session lets go of a row."""
    server = case.pair.postgres
    server.control.ask(f"select pg_advisory_lock(77, {row})")
    try:
        since, last = lead(case, server, len(case.steps) - 1)
        send(server, case.steps[-1])
        settle(server, since, cancelled=cancelled(case.steps[-1]))
        server.control.ask("select pg_advisory_unlock_all()")
        settle(server, since)
    except Elsewhere:
        return set()
    except (Stuck, Gone):
        case.pair.recover()
        return set()
    finally:
        server.control.ask("select pg_advisory_unlock_all()")
    errors = [x.last.error for x in server.sessions if not x.busy and x.last and x.last.error and x.last.error[0] == "40P01"]
    return set().union(*(cycle(error, server.sessions) for error in errors))


# A deadlock.
def cycle(error, sessions):
    """The sessions, from 0, that the DETAIL of a deadlock names."""
    numbers = {s.pid: n for n, s in enumerate(sessions)}
    return {numbers.get(int(pid)) for pid in re.findall(r"Process (\d+) waits", error[2])}


def same_deadlock(case):
    """Each server's victim stands in the circle that the other one has broken."""
    circles, victims = [], []
    for server, errors in zip(case.pair.both(), case.at.errors):
        hit = {n for n, error in errors.items() if error[0] == "40P01"}
        victims.append(hit)
        circles.append(set().union(*(cycle(errors[n], server.sessions) for n in hit)))
    return all(victims) and victims[0] <= circles[1] and victims[1] <= circles[0]


@tried
def one_holder_after_the_other(case):
    """PostgreSQL finds the deadlock, too, once the holders that it waits for first have ended."""
    server = case.pair.postgres
    for how in ("rollback", "commit"):
        since, _ = lead(case, server)
        for _ in range(8):
            if not end_one(server, case.s, how, since):
                break
            if any(not x.busy and x.last and x.last.state() == "40P01" for x in server.sessions):
                return True
    return False


@tried
def several_holders(case):
    """Once those have ended for whom PostgreSQL waits first, it waits for the one whom Clearway names."""
    server = case.pair.postgres
    for how in ("rollback", "commit"):
        since, _ = lead(case, server)
        for _ in range(6):
            if not server.sessions[case.s].busy:
                break
            blockers = server.blockers([case.s])[case.s]
            if set(blockers) & case.mine():
                return True
            free = [n - 1 for n in blockers if n and not server.sessions[n - 1].busy]
            if not free or server.sessions[free[0]].status == "I":
                break
            server.sessions[free[0]].ask(how)
            settle(server, since)
    return False


# An error that needs no wait.
def reachable(server, s):
    """Whom a waiting session waits for, and those whom these wait for."""
    busy = [n for n, x in enumerate(server.sessions) if x.busy]
    blockers = server.blockers(busy) if busy else {}
    found, new = set(), {s}
    while new:
        found |= new
        new = {up - 1 for n in new for up in blockers.get(n, ()) if up} - found
    return found - {s}


def end_one(server, s, how, since):
    """Ends one of those that a session waits for and that do not wait themselves; false if there is none."""
    free = [n for n in sorted(reachable(server, s)) if not server.sessions[n].busy]
    if not server.sessions[s].busy or not free:
        return False
    session = server.sessions[free[0]]
    session.ask(how if session.status != "I" else "select pg_advisory_unlock_all()")
    settle(server, since)
    return True


@tried
def told_sooner(case):
    """However those end that PostgreSQL waits for, it gives Clearway's answer in the end; after a deadlock: had nobody stood in its way. Where they
    commit, as one does that is in no transaction, repeatable read may stop at their change with 40001 before it comes to a row that refuses the
    statement in either case."""
    server, s = case.pair.postgres, case.s
    if case.theirs() == "40P01":
        return without_others(case) == case.mine()
    for how in ("commit", "rollback"):
        since, last = lead(case, server)
        for _ in range(12):
            if not end_one(server, s, how, since):
                break
        late = {"40001"} if case.repeatable and case.mine() == "23503" else set()
        if server.sessions[s].busy or seen(server.sessions[s].last, last[s]) not in {case.mine(), *late}:
            return False
    return True


def without_others(case):
    """What PostgreSQL answers to the last step after everybody else has been rolled back."""
    server, s = case.pair.postgres, case.s
    if case.steps[-1].session - 1 != s:
        return None
    since, _ = lead(case, server, len(case.steps) - 1)
    for n, session in enumerate(server.sessions):
        if n != s and session.busy:
            server.control.ask(f"select pg_cancel_backend({session.pid})")
            settle(server, since, cancelled=n)
        if n != s and session.status != "I":
            session.ask("rollback")
    send(server, case.steps[-1])
    settle(server, since)
    return None if server.sessions[s].busy else seen(server.sessions[s].last, case.sql)


@tried
def nowait_waits(case):
    """PostgreSQL waits, or has waited, for a transaction with a row, though the statement says NOWAIT or SKIP LOCKED."""
    if not re.search(" (nowait|skip locked)$", case.sql):
        return False
    if case.theirs() == "40P01":
        pid = case.pair.postgres.sessions[case.s].pid
        return f"Process {pid} waits for ShareLock on transaction" in case.at.errors[0][case.s][2]
    if not isinstance(case.theirs(), frozenset) or case.at.awaited.get(case.s, ("",))[0] != "transactionid":
        return False
    if not isinstance(case.mine(), tuple):
        return True
    # What Clearway answers is what PostgreSQL answers if the other changes come to nothing, but for rows that are locked until then.
    since, last = lead(case, case.pair.postgres)
    while end_one(case.pair.postgres, case.s, "rollback", since):
        pass
    session = case.pair.postgres.sessions[case.s]
    if session.busy or session.last.error:
        return False
    (_, mine), (_, theirs) = case.mine()[-1], seen(session.last, last[case.s])[-1]
    if " limit " in case.sql:
        # A row that is skipped makes room for one more below the limit.
        theirs = session.ask(re.sub(r" limit \d+", "", case.sql)).results[-1][1]
    return mine == theirs or case.sql.endswith("skip locked") and set(mine) <= set(theirs)


# Locks that Clearway does not need.
def index_lock(case):
    """Somebody in PostgreSQL's chain of waiters waits for a lock on an index."""
    awaited, outcome = case.at.awaited, case.at.outcomes[0]
    if case.theirs() == "40P01":
        return case.s in case.at.index_deadlocks
    found, new = set(), {case.s}
    while new:
        found |= new
        new = {up - 1 for n in new if isinstance(outcome.get(n), frozenset) for up in outcome[n] if up} - found
    return any(awaited.get(n, ("", "", ""))[2] == "i" for n in found)


def cursors_index(case):
    """PostgreSQL refuses a REINDEX as a cursor of the session reads the index."""
    error = case.at.errors[0].get(case.s)
    return case.sql.startswith("reindex ") and error is not None and error[1].startswith("cannot REINDEX INDEX")


def index_deadlock(case):
    """In PostgreSQL somebody else falls to a deadlock over an index in this step, and so holds nobody up any more."""
    return bool(case.at.index_deadlocks)


DDL = re.compile("(create|drop|alter|grant|revoke|comment|reindex|truncate|refresh) ")
RIGHTS = re.compile("(grant|revoke|comment) ")


def catalog_row(case):
    """In PostgreSQL a statement of DDL waits, or falls to a deadlock, for the end of a transaction that has changed the same row of the catalog."""
    if isinstance(case.theirs(), frozenset):
        return bool(DDL.match(case.sql)) and case.at.awaited.get(case.s, ("",))[0] in ("transactionid", "tuple")
    return catalog_deadlock(case)


def catalog_deadlock(case):
    """In PostgreSQL a statement of DDL falls to a deadlock in this step in which it waits for a transaction, and so for a row of the catalog."""
    for n, error in case.at.errors[0].items():
        sql = next((step.sql for step in reversed(case.steps) if step.session - 1 == n and step.sql != "cancel"), "")
        pid = case.pair.postgres.sessions[n].pid
        if error[0] == "40P01" and DDL.match(sql) and f"Process {pid} waits for ShareLock on transaction" in error[2]:
            return True
    return False


def one_record(case):
    """In Clearway the statement waits for a transaction, or falls to a deadlock with one, that has changed the same object: one of the two
    statements is a GRANT, a REVOKE or a COMMENT, for which PostgreSQL locks no table."""
    about = object_of(case.sql)
    if about is None:
        return False
    waits = isinstance(case.mine(), frozenset)
    others = {n - 1 for n in case.mine() if n} if waits else {step.session - 1 for step in case.steps} - {case.s}
    for n in others:
        for step in in_transaction(case.steps, n):
            if object_of(step.sql) == about and (RIGHTS.match(step.sql) or RIGHTS.match(case.sql)):
                return True
    return False


def rights_after_wait(case):
    """PostgreSQL refuses a GRANT or REVOKE, as another transaction has changed the same row of the catalog while it waited; Clearway reads the object
    again."""
    error = case.at.errors[0].get(case.s)
    return bool(re.match("(grant|revoke) ", case.sql)) and error is not None and tuple(error[:2]) == ("XX000", "tuple concurrently updated")


def object_of(sql):
    """The table that a statement of DDL is about."""
    found = DDL.match(sql) and re.search(r"\b(?:table|on|view)(?: only)? (\w+)", sql)
    return found and found[1]


def in_transaction(steps, n):
    """The steps of a session in the transaction in which it is."""
    mine = [step for step in steps if step.session - 1 == n]
    begins = [at for at, step in enumerate(mine) if step.sql.startswith("begin")]
    return mine[begins[-1]:] if begins else mine[-1:]


@tried
def snapshot_only(case):
    """PostgreSQL waits for transactions that hold nothing on the table with which a change of it conflicts."""
    if case.at.awaited.get(case.s, ("",))[0] != "virtualxid":
        return False
    server = case.pair.postgres
    lead(case, server)
    pids = [server.sessions[n - 1].pid for n in server.blockers([case.s])[case.s] if n]
    found = re.search(r" on (\w+)", case.sql)
    if found:
        table = f"'{found[1]}'"
    else:
        index = re.search(r"(\w+)$", case.sql)[1]
        table = f"(select indrelid::regclass::text from pg_index where indexrelid = to_regclass('w.{index}'))"
    held = server.control.values(f"select mode from pg_locks where granted and locktype = 'relation' and relation = to_regclass({table}) "
                                 f"and pid in ({', '.join(map(str, pids)) or 0})")
    return bool(pids) and not any(mode in CHANGES for mode, in held)


# The order of the rows of a join.
READS = [
    (r"^(select .*?) for (?:no key update|key share|update|share).*$", r"\1"),
    # Before the next, which would take the sub-select's FROM for the statement's.
    (r"^update (\w+) set .*? where (exists .*?)( returning .*)?$", r"select \1.* from \1 where \2"),
    (r"^update (\w+) set .*? from (\w+ \w+) where (.*?)( returning .*)?$", r"select \1.* from \1, \2 where \3"),
    (r"^delete from (\w+) using (\w+ \w+) where (.*?)( returning .*)?$", r"select \1.* from \1, \2 where \3"),
    (r"^delete from (\w+) where (.*exists .*?)( returning .*)?$", r"select \1.* from \1 where \2"),
    # Of one table: a row of PostgreSQL's stands elsewhere once it was changed.
    (r"^update (\w+) set .*? where (.*?)( returning .*)?$", r"select \1.* from \1 where \2"),
    (r"^delete from (\w+) where (.*?)( returning .*)?$", r"select \1.* from \1 where \2"),
]


@tried
def order_of_join(case):
    """The two servers read the rows of the statement's join in different orders: at the moment when it began."""
    return joins_differ(case, case.s, case.sql)


def joins_differ(case, s, sql):
    read = next((re.sub(pattern, with_, sql) for pattern, with_ in READS if re.match(pattern, sql)), None)
    if read is None:
        return False
    orders = []
    for server in case.pair.both():
        lead(case, server, began(case, s, sql), compared=server is case.pair.postgres)
        reply = server.sessions[s].ask(read)
        if reply.error:
            return False
        orders.append(reply.results[-1][1])
    return orders[0] != orders[1] and sorted(orders[0], key=repr) == sorted(orders[1], key=repr)


@tried
def order_of_awaited_join(case):
    """Another session waits in the middle of a join, whose rows the two servers read in different orders: so it holds other rows in one than
    in the other."""
    for s in case.at.waited:
        sql = next((step.sql for step in reversed(case.steps[:-1]) if step.session - 1 == s and step.sql != "cancel"), "")
        if s != case.s and joins_differ(case, s, sql):
            return True
    return False


@tried
def released_savepoint(case):
    """Without RELEASE PostgreSQL does what Clearway does: who waits for what was done in a savepoint waits for the whole transaction once it is
    released, also after a rollback to a savepoint around it."""
    steps = [step for step in case.steps if not step.sql.startswith("release ")]
    if len(steps) == len(case.steps):
        return False
    server, last, since = case.pair.postgres, {}, {}
    case.pair.prepare(Schedule(case.setup), max(2, *(step.session for step in steps)), [server])
    for step in steps:
        send(server, step)
        if step.sql != "cancel":
            last[step.session - 1] = step.sql
        blockers = settle(server, since, cancelled=cancelled(step))
    return alike(outcome_of(server, blockers, {case.s}, last).get(case.s), case.mine())


CAUSES = {
    "other order": other_order,
    "between rows": between_rows,
    "same deadlock": same_deadlock,
    "one holder after the other": one_holder_after_the_other,
    "several holders": several_holders,
    "told sooner": told_sooner,
    "nowait waits": nowait_waits,
    "index lock": index_lock,
    "cursor's index": cursors_index,
    "index deadlock": index_deadlock,
    "catalog row": catalog_row,
    "one record": one_record,
    "rights after wait": rights_after_wait,
    "snapshot only": snapshot_only,
    "order of join": order_of_join,
    "order of another join": order_of_awaited_join,
    "released savepoint": released_savepoint,
}
