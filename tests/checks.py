"""The checks of one script: each prints a line, and they are counted."""
import time


class Checks:
    """Called as `check(name, ok, shown)`; `shown` is printed where the check fails."""

    def __init__(self, script):
        self.script, self.passed, self.failed = script, 0, 0

    def __call__(self, name, ok, shown=""):
        self.passed, self.failed = self.passed + bool(ok), self.failed + (not ok)
        print(f"{self.script} {name} ... {'ok' if ok else 'FAILED'}" + ("" if ok else f"\n{shown}"), flush=True)
        return ok

    def totals(self, more_failed=0):
        """The line with which a script ends; `more_failed` counts what ended it early."""
        return f"{self.passed} passed, {self.failed + more_failed} failed"


def until(wanted, patience=600):
    """Asks every tenth of a second until the answer is true; gives the last answer. The patience, in questions, only ends a test that would hang."""
    for _ in range(patience):
        answer = wanted()
        if answer:
            return answer
        time.sleep(0.1)
    return answer
