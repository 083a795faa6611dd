"""pg_locks of each session, compared after a step: the kind of lock, the relation, the mode, and whether it is granted. Locks on system catalogs are
left out: what of them a statement still holds is the business of each server."""
from collections import Counter

HELD = """select pid, locktype, coalesce(c.relname, ''), mode, granted from pg_locks l left join pg_class c on c.oid = l.relation
where (l.relation is null or c.relnamespace = 'w'::regnamespace) and locktype <> 'object'"""


def held(server):
    """What each session has and asks for, by number from 0."""
    numbers = {str(s.pid): n for n, s in enumerate(server.sessions)}
    found = {}
    for pid, kind, relation, mode, granted in server.control.values(HELD):
        if pid in numbers:
            lock = f"{kind} {relation} {mode.removesuffix('Lock')}".replace("  ", " ") + ("" if granted == "t" else " asked for")
            found.setdefault(numbers[pid], Counter())[lock] += 1
    return found


def differences(pair):
    """(session from 0, locks that only PostgreSQL shows, locks that only Clearway shows)"""
    theirs, ours = held(pair.postgres), held(pair.clearway)
    for n in sorted({*theirs, *ours}):
        a, b = theirs.get(n, Counter()), ours.get(n, Counter())
        if a != b:
            yield n, sorted((a - b).elements()), sorted((b - a).elements())
