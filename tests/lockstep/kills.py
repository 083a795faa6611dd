"""kill -9 in the middle of DDL beside cascades: sessions run the generator's statements as fast as they can, all at once; then the server dies.
After the restart every index agrees with its table and every constraint holds, every row can be locked, and `clearway check` finds no damage."""
import random
import select
import time

import verify
from generate import Generator
from wire import Gone

DDL_PERCENT = 30


def load(clearway, generator, seconds):
    """Statements from all sessions until the time is over or the server is gone."""
    clearway.open(generator.count)
    clearway.clean()
    reply = clearway.control.ask("drop schema if exists w cascade; create schema w; " + "; ".join(generator.setup))
    if reply.error:
        raise RuntimeError(f"{reply.error}: {generator.setup}")
    sessions = clearway.sessions[:generator.count]
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        for n, session in enumerate(sessions):
            if not session.busy:
                step = generator.step({n + 1: session.status}, {n + 1: False})
                session.send(step.sql)
        busy = {s.socket: s for s in sessions if s.busy}
        ready = select.select(list(busy), [], [], min(left, 0.02))[0]
        for one in ready:
            busy[one].take_in()
        if not ready and len(busy) == len(sessions):
            # Perhaps everybody waits for a lock that a session holds which was told to unlock.
            clearway.control.ask(f"select pg_cancel_backend({generator.rng.choice(sessions).pid})")


def kill_in_the_middle(clearway, seed):
    """One round; what is wrong after it, none if nothing."""
    generator = Generator(f"kill:{seed}", DDL_PERCENT)
    seconds = random.Random(f"when:{seed}").uniform(0.02, 0.6)
    try:
        load(clearway, generator, seconds)
    except Gone as gone:
        return f"kill {seed}: the server is gone before its time: {gone}"
    clearway.kill()
    clearway.start()
    wrong = verify.violations(clearway.control)
    names = [r[0] for r in clearway.control.values("select relname from pg_class c join pg_namespace n on n.oid = c.relnamespace "
                                                   "where nspname = 'w' and relkind = 'r'")]
    for name in names:
        reply = clearway.control.ask(f"set lock_timeout = '20s'; begin; lock table {name} in access exclusive mode; select * from {name} for update; commit")
        if reply.error:
            wrong.append(f"{name}: {reply.error}")
            clearway.control.ask("rollback")
    if not clearway.stop():
        wrong.append("the server did not stop cleanly")
    damage = clearway.check()
    if damage:
        wrong.append(f"clearway check: {damage}")
    clearway.start()
    if not wrong:
        return None
    setup = "\n".join(generator.setup)
    # What is damaged must not be found again by the next round.
    clearway.renew()
    return f"kill {seed}, after {seconds:.3f} s:\n{setup}\n" + "\n".join(wrong)
