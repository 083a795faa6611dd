#!/usr/bin/env python3
"""The lock-step tester: random sessions with row locks, keys that move, foreign keys, ON CONFLICT, savepoints and DDL, driven step by step
against a PostgreSQL 15 and a `clearway serve` that it starts itself. The two must agree in rows, tags, SQLSTATEs and in who waits for whom.

    python3 tests/lockstep [OPTIONS]            300 schedules
    python3 tests/lockstep replay FILE          one schedule from a file, both outputs side by side
    python3 tests/lockstep planted              whether it finds each planted mistake (txn/src/mutation.rs), within that many schedules or, after
                                                them, by those of tests/lockstep/repaired. The binary:
                                                cargo build --package clearway-cli --features mutations --target-dir target/planted

    --schedules N     20000 is the long form
    --seed S          the same seed makes the same schedules (1)
    --from N          begins with the schedule of this number
    --ddl PERCENT     how many statements are DDL, rather than what each schedule draws
    --more PERCENT    how many statements have the shapes of shapes.py, rather than what each schedule draws
    --check-every N   `clearway check` after so many schedules, besides at the end, of the tables of all of them: the server is stopped for it
    --locks           compares pg_locks of each session after each step, too
    --kills N         after that, kill -9 in the middle of DDL beside cascades, so often
    --clearway PATH   the binary (target/debug/clearway)
    --known FILE      the list of known classes (tests/lockstep/known.list)
    --report FILE     writes each class with its smallest schedule and both outputs
    --seconds N       stops after so long

Before them it runs the schedules of tests/lockstep/repaired, one for each class that was repaired: there the servers must agree.

The last line is `N passed, N failed`: schedules. One that diverges is run three times more: if they do not agree about it, it is unstable,
which is counted apart; else it is shrunk, and failed unless its class is known.
"""
import argparse
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import campaign  # noqa: E402
import kills  # noqa: E402
from drive import Pair  # noqa: E402
from schedule import parse  # noqa: E402
from servers import Clearway, Postgres  # noqa: E402

REPAIRED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "repaired")
PLANTED = ("KeysLockNoTable", "InsertWaitsForLocker", "VersionNotFollowed", "RowOverDeleted")


def arguments():
    here = os.path.dirname(os.path.abspath(__file__))
    built = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(here, "../../target")), "debug/clearway")
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("command", nargs="*")
    parser.add_argument("--schedules", type=int, default=300)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--ddl", type=int)
    parser.add_argument("--more", type=int)
    parser.add_argument("--check-every", type=int, default=0)
    parser.add_argument("--locks", action="store_true")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--clearway", default=built)
    parser.add_argument("--known", default=os.path.join(here, "known.list"))
    parser.add_argument("--report")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.set_defaults(until_failure=False)
    return parser.parse_args()


def planted(pair, options):
    """Plants one mistake after the other; each has to be found."""
    options.until_failure, found = True, 0
    for name in PLANTED:
        os.environ["CLEARWAY_PLANTED"] = name
        pair.clearway.start()
        work = campaign.Campaign(pair, options)
        work.run()
        done = work.passed + work.failed + work.unstable
        if not work.failed:
            # What random schedules seldom lead to.
            work.replay_all(REPAIRED)
        found += work.failed > 0
        print(f"{name}: {'found' if work.failed else 'NOT FOUND'} after {done} schedules, {work.explained} of known classes", flush=True)
        pair.postgres.close()
        pair.clearway.kill()
        shutil.rmtree(pair.clearway.directory)
    print(f"{found} passed, {len(PLANTED) - found} failed")
    return 0 if found == len(PLANTED) else 1


def main():
    options = arguments()
    scratch = tempfile.mkdtemp(prefix="lockstep.")
    os.chmod(scratch, 0o755)
    postgres, clearway = Postgres(scratch), Clearway(scratch, os.path.abspath(options.clearway))
    try:
        postgres.start()
        if options.command[:1] != ["planted"]:
            clearway.start()
        pair = Pair(postgres, clearway, options.locks)
        if options.command[:1] == ["planted"]:
            return planted(pair, options)
        if options.command[:1] == ["replay"]:
            with open(options.command[1], encoding="utf-8") as file:
                return campaign.replay(pair, parse(file.read()), campaign.Known(options.known))
        work = campaign.Campaign(pair, options)
        work.replay_all(REPAIRED)
        work.run()
        for n in range(options.kills):
            work.count(kills.kill_in_the_middle(clearway, f"{options.seed}:{n}"))
        work.end()
        return 0 if work.failed == 0 and work.passed else 1
    finally:
        for server in (postgres, clearway):
            if server.process and server.process.poll() is None:
                server.process.kill() if server is clearway else server.stop()
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
