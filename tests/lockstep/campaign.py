"""Many schedules: counts, replays what diverges, shrinks it, and says of which class it is."""
import os
import re
import time
from collections import Counter

import verify
from causes import CAUSES, case_of
from drive import told
from generate import Generator
from schedule import Schedule, kind, parse
from shrink import shrink
from wire import Gone

REPLAYS = 3
# Of each class so many are shrunk; the others are counted by their first signature.
SHRUNK_OF_EACH = 2


def render(schedule, run):
    """A schedule with what both servers did, so that `replay` can read it."""
    lines = [f"setup {line}" for line in schedule.setup]
    for step, outcomes in zip(run.steps, run.log):
        lines.append(str(step))
        for name, outcome in zip(("postgres", "clearway"), outcomes):
            for s, what in outcome.items():
                lines.append(f"#   {name} s{s + 1}: {told(what)}")
    if run.divergence and run.divergence.detail:
        lines.append("# " + run.divergence.detail.replace("\n", "\n# "))
    return "\n".join(lines)


def replay(pair, schedule, known):
    run = pair.run(schedule)
    print(render(schedule, run))
    for signature, detail in run.notes.items():
        print(f"# {signature}: {detail}")
    wrong = verify.violations(pair.clearway.control) if not run.divergence else []
    for line in wrong:
        print(f"# not sound: {line}")
    print(f"diverges: {run.divergence.signature}" if run.divergence else "the two agree")
    if run.divergence:
        cause = known.reason(pair, schedule, run)
        print(f"shown to be: {cause}" if cause else "no known cause is shown")
    return 1 if run.divergence or wrong else 0


class Known:
    """The list of known classes: a regular expression of their signature, the cause that an experiment has to show (causes.py), and a line
    `because ...`."""

    def __init__(self, path):
        self.entries = []
        with open(path, encoding="utf-8") as file:
            lines = [line.rstrip() for line in file if line.strip() and not line.startswith("#")]
        for pattern, cause, reason in zip(lines[::3], lines[1::3], lines[2::3]):
            name = cause.removeprefix("    cause: ")
            if name not in CAUSES or not reason.startswith("    because "):
                raise SystemExit(f"{path}: {pattern}: no cause, or no reason")
            self.entries.append((re.compile(pattern), CAUSES[name], name))

    def reason(self, pair, schedule, run):
        """The cause of a divergence, if it is a known one and shown to have it."""
        if not run.divergence.outcomes:
            return None
        case = case_of(pair, schedule.setup, run)
        return next((name for pattern, shows, name in self.entries if pattern.fullmatch(run.divergence.signature) and shows(case)), None)


class Class:
    """Divergences of one signature."""

    def __init__(self, signature):
        self.signature, self.count, self.seeds, self.example, self.full = signature, 0, [], "", Counter()


class Campaign:
    def __init__(self, pair, options):
        self.pair, self.options = pair, options
        self.known = Known(options.known)
        self.passed = self.failed = self.unstable = self.explained = self.steps = self.waits = 0
        self.classes, self.notes, self.unstable_classes = {}, Counter(), Counter()
        self.note_examples, self.causes = {}, Counter()

    def count(self, wrong):
        """One more trial; none: it passed."""
        if wrong:
            self.failed += 1
            print(wrong, flush=True)
        else:
            self.passed += 1

    def run(self):
        began = time.monotonic()
        last = began
        numbers = range(self.options.first, self.options.first + self.options.schedules)
        for number in numbers:
            self.schedule(number)
            if self.options.check_every:
                self.set_aside(number)
            now = time.monotonic()
            if now - last > 60:
                last = now
                done = number - self.options.first + 1
                print(f"{done} schedules, {done / (now - began):.1f} a second, {self.failed} failed, {self.explained} known, {self.unstable} unstable", flush=True)
                self.report()
            if now - began > self.options.seconds or (self.failed and self.options.until_failure):
                break

    def set_aside(self, number):
        """Keeps the tables of a schedule until the files are checked; then stops Clearway, has them checked and starts it again."""
        clearway = self.pair.clearway
        clearway.control.ask(f"alter schema w rename to kept_{number}")
        if (number + 1) % self.options.check_every:
            return
        stopped = clearway.stop()
        damage = clearway.check()
        if damage or not stopped:
            self.failed += 1
            print(f"after schedule {number} of seed {self.options.seed}: {damage or 'clearway did not stop cleanly'}", flush=True)
        clearway.start()
        for name, in clearway.control.values("select nspname from pg_namespace where nspname like 'kept%'"):
            clearway.control.ask(f"drop schema {name} cascade")

    def replay_all(self, directory):
        """Schedules from files, whose divergences were repaired: the list of known classes does not count for them."""
        for name in sorted(os.listdir(directory)):
            with open(os.path.join(directory, name), encoding="utf-8") as file:
                schedule = parse(file.read())
            # One more try: where several sessions are released at once, PostgreSQL itself may go either way.
            for _ in range(2):
                signature, run = self.again(schedule)
                wrong = verify.violations(self.pair.clearway.control) if not signature else []
                if not signature and not wrong:
                    break
            self.count(f"{name}: {signature or wrong}\n{render(schedule, run) if run else ''}" if signature or wrong else None)

    def generator(self, number):
        return Generator(f"{self.options.seed}:{number}", self.options.ddl, self.options.more)

    def schedule(self, number):
        generator = self.generator(number)
        schedule = generator.schedule()
        try:
            run = self.pair.run(schedule, generator)
            wrong = [] if run.divergence else verify.violations(self.pair.clearway.control)
        except (Gone, RuntimeError) as error:
            self.failed += 1
            print(f"seed {self.options.seed}:{number}: {error}", flush=True)
            self.pair.recover()
            return
        self.steps += len(run.steps)
        self.waits += run.waited
        for signature, detail in run.notes.items():
            self.notes[signature] += 1
            self.note_examples.setdefault(signature, f"{number}: {detail}")
        whole = Schedule(schedule.setup, run.steps)
        if wrong:
            self.unsound(number, whole, run, wrong)
        elif run.divergence:
            self.diverged(number, whole, run)
        else:
            self.passed += 1

    def unsound(self, number, schedule, run, wrong):
        """Both servers agree, and an index or a constraint does not hold."""
        self.failed += 1
        print("\n".join(wrong))
        self.found(f"not sound: {re.sub('[0-9]+', 'N', wrong[0].split(':')[0])}", number, schedule, run)

    def again(self, schedule):
        """The signature that a schedule diverges with, and its run."""
        try:
            run = self.pair.run(schedule)
        except (Gone, RuntimeError) as error:
            self.pair.recover()
            return f"gone: {error}", None
        if run.divergence and run.divergence.signature.startswith(("stuck", "gone")):
            self.pair.recover()
        return (run.divergence.signature if run.divergence else None), run

    def diverged(self, number, whole, run):
        signature = run.divergence.signature
        if signature.startswith(("stuck", "gone")):
            self.pair.recover()
        known = self.known.reason(self.pair, whole, run)
        if known:
            self.explained += 1
            self.passed += 1
            self.causes[known] += 1
            self.found(signature, number, whole, run, known=known)
            return
        for _ in range(REPLAYS):
            if self.again(whole)[0] != signature:
                self.unstable += 1
                self.unstable_classes[signature] += 1
                self.keep(f"unstable {number}: {signature}", render(whole, run))
                return
        entry, beside = self.classes.get(signature), ""
        if entry is None or entry.known or len(entry.seeds) < SHRUNK_OF_EACH:
            whole, run = shrink(self, whole, signature, run)
            beside = ", ".join(sorted({kind(step.sql) for step in run.steps[:-1]} - {""}))
        self.failed += 1
        self.found(signature, number, whole, run, beside)

    def keep(self, title, text):
        """Divergences that come and go, in a file beside the report."""
        if self.options.report:
            with open(self.options.report + ".unstable", "a", encoding="utf-8") as out:
                out.write(f"# {title}\n{text}\n\n")

    def found(self, signature, number, schedule, run, beside="", known=None):
        entry = self.classes.setdefault(signature, Class(signature))
        entry.count += 1
        entry.seeds.append(number)
        entry.full[beside] += 1
        example = render(schedule, run)
        if not entry.example or len(run.steps) < entry.steps:
            entry.example, entry.steps, entry.known = example, len(run.steps), known
        if not known and len(entry.seeds) <= 1:
            print(f"\n{signature} | {beside}    (seed {self.options.seed}, schedule {number})\n{example}\n", flush=True)

    def report(self):
        if not self.options.report:
            return
        with open(self.options.report + ".part", "w", encoding="utf-8") as out:
            out.write(f"{self.passed + self.failed + self.unstable} schedules, {self.steps} steps, {self.waits} with a session waiting; "
                      f"{self.failed} failed, {self.explained} known, {self.unstable} unstable\n\n")
            for entry in sorted(self.classes.values(), key=lambda c: -c.count):
                known = f" (known: {entry.known})" if entry.known else ""
                out.write(f"## {entry.count} x {entry.signature}{known}\n\nschedules {entry.seeds[:5]} of seed {self.options.seed}\n\n```\n{entry.example}\n```\n\n")
            out.write("## Unstable\n" + "".join(f"- {count} x {signature}\n" for signature, count in self.unstable_classes.most_common()))
            out.write("\n## Texts and lists of blockers\n" + "".join(
                f"- {count} x {signature}: {self.note_examples[signature]}\n" for signature, count in self.notes.most_common()))
        os.replace(self.options.report + ".part", self.options.report)

    def end(self):
        self.report()
        if not self.pair.clearway.stop():
            self.failed += 1
            print("clearway did not stop cleanly")
        self.count(self.pair.clearway.check())
        for entry in sorted(self.classes.values(), key=lambda c: -c.count):
            print(f"{entry.count:6} {entry.signature}{' (known)' if entry.known else ''}")
        for cause, count in self.causes.most_common():
            print(f"{count:6} shown to be: {cause}")
        print(f"lockstep: {self.steps} steps, {self.waits} with a session waiting; {self.explained} of known classes, {self.unstable} unstable, "
              f"{sum(self.notes.values())} differences of texts or lists of blockers")
        print(f"{self.passed} passed, {self.failed} failed")
