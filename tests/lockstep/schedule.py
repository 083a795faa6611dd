"""A schedule: what makes the tables, and the steps in their order, each of one session.

As text, which `tests/lockstep replay FILE` runs again:

    setup create table p (id int primary key)
    s1 begin
    s2 delete from p where id = 1
    cancel s2

A step whose session waits when its turn comes is left out.
"""
import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Step:
    session: int  # from 1
    sql: str  # "cancel": the control session cancels what this one waits in

    def __str__(self):
        return f"cancel s{self.session}" if self.sql == "cancel" else f"s{self.session} {self.sql}"


@dataclass
class Schedule:
    setup: list
    steps: list = field(default_factory=list)

    def __str__(self):
        return "\n".join([f"setup {line}" for line in self.setup] + [str(step) for step in self.steps])

    def sessions(self):
        return max((step.session for step in self.steps), default=0)


def parse(text):
    schedule = Schedule([])
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        if word == "setup":
            schedule.setup.append(rest)
        elif word == "cancel":
            schedule.steps.append(Step(int(rest[1:]), "cancel"))
        elif re.fullmatch(r"s[1-9]\d*", word):
            schedule.steps.append(Step(int(word[1:]), rest))
        else:
            raise SystemExit(f"not a step: {line}")
    return schedule


KINDS = [
    (r"^do ", "do block"),
    (r"^merge into (\w+)", r"merge \1"),
    (r"^with .* (delete|insert|update|select) .*for (no key update|key share|update|share)( nowait| skip locked)?", r"with locks \2\3"),
    (r"^with \w+ as \((\w+).*\) (\w+)", r"with \1 \2"),
    (r"^(declare|fetch|move|close|prepare|execute)", r"\1"),
    (r"^(update|delete) .* where current of", r"\1 where current of"),
    (r"^(set constraints \w+ \w+)", r"\1"),
    (r"^begin.*repeatable read", "begin repeatable read"),
    (r"^(begin|commit|rollback to|rollback|savepoint|release|cancel)", None),
    (r"^insert .*on conflict do nothing", "insert on conflict do nothing"),
    (r"^insert .*on conflict \((\w+)\) do (\w+)", r"insert on conflict (\1) do \2"),
    (r"^insert into (\w+)", r"insert into \1"),
    (r"^update (\w+) set (\w+) = .* from ", r"update \1.\2 from"),
    (r"^update (\w+) set (\w+) = .*exists", r"update \1.\2 where exists"),
    (r"^update (\w+) set (\w+)", r"update \1.\2"),
    (r"^delete from (\w+).*exists", r"delete \1 where exists"),
    (r"^delete from (\w+) using", r"delete \1 using"),
    (r"^delete from (\w+)", r"delete \1"),
    (r"^select .* from (\w+) join .* for (no key update|key share|update|share)( of \w+)?(.*)", r"select join for \2\3\4"),
    (r"^select .* from (\w+) .*\(select .* for (no key update|key share|update|share)", r"select sub-select for \2"),
    (r"^select .* from (\w+).* for (no key update|key share|update|share)( of \w+)?( nowait| skip locked)?", r"select \1 for \2\4"),
    (r"^select (pg_\w+|nextval|setval|currval|lastval)", r"\1"),
    (r"^select", "select"),
    (r"^lock table (\w+) in ([a-z ]*) mode( nowait)?", r"lock table in \2\3"),
    (r"^(create unique index|create index|drop index|reindex \w+|analyze|vacuum)( concurrently)?", r"\1\2"),
    (r"^alter table \w+ (add column|drop column|add constraint \w+ [a-z]+|drop constraint|rename|alter column \w+ [a-z]+ [a-z ]+)", r"alter table \1"),
    (r"^truncate.*(restart identity)( cascade)?", r"truncate \1\2"),
    (r"^(truncate).*?( cascade)?$", r"\1\2"),
    (r"^((?:drop|create|alter) \w+)", r"\1"),
]


def kind(sql):
    """What a step does, as the signatures of divergences call it; empty for the begin and end of a transaction."""
    for pattern, name in KINDS:
        found = re.search(pattern, sql)
        if found:
            return found.expand(name).strip() if name else ""
    return sql.split(" ")[0]
