"""Makes a diverging schedule as small as it gets while it diverges with the same signature."""
from schedule import Schedule

TRIALS = 250


def shrink(campaign, schedule, signature, run):
    """Takes out sessions, then runs of steps, then lines of the setup; gives the smallest schedule and its run."""
    state = {"schedule": Schedule(schedule.setup, run.steps[:run.divergence.at + 1]), "run": run, "trials": 0}

    def holds(setup, steps):
        if state["trials"] >= TRIALS or not steps:
            return False
        state["trials"] += 1
        found, again = campaign.again(Schedule(setup, steps))
        if found != signature:
            return False
        state["schedule"], state["run"] = Schedule(setup, again.steps[:again.divergence.at + 1]), again
        return True

    before = None
    while before != str(state["schedule"]):
        before = str(state["schedule"])
        for session in range(1, state["schedule"].sessions() + 1):
            now = state["schedule"]
            holds(now.setup, [s for s in now.steps if s.session != session])
        size = max(1, len(state["schedule"].steps) // 2)
        while size:
            at = 0
            while at < len(state["schedule"].steps):
                now = state["schedule"]
                if not holds(now.setup, now.steps[:at] + now.steps[at + size:]):
                    at += size
            size //= 2
        for line in reversed(list(state["schedule"].setup)):
            now = state["schedule"]
            try:
                holds([x for x in now.setup if x != line], now.steps)
            except RuntimeError:
                pass
    return state["schedule"], state["run"]
