"""The answers that differ from PostgreSQL's though both servers accept a statement, or that only Clearway gives: each with its reason.

tests/postgres-regress.known has a line for each: `REASON | FILE | STATEMENT`, where STATEMENT is its beginning, without comments, each white space as
one blank. A statement that is not listed is a failure, as is a line that no statement of a file needs any more.
"""
import collections, os, re

LIST = f"{os.path.dirname(os.path.abspath(__file__))}/../postgres-regress.known"
LENGTH = 110

#: Reasons in the list, and what they mean.
REASONS = {
    "written": "The text of a view, a rule, a policy, an index or a routine is kept and shown as it was written, not as PostgreSQL understood it.",
    "inherits": "Inheritance and partitions are refused: a parent has no children, whose rows, constraints, locks and names it would show.",
    "refused": "Shows an object that an earlier statement was to make or change, which was refused by its name (0A000).",
    "catalog": "The catalogs have the functions, operators, casts and types of Clearway, not those of refused features (text search, "
               "xml), of PostgreSQL's planner and of its index access methods; system catalogs have no keys and no collations of columns.",
    "sample": "TABLESAMPLE takes other rows: it decides by a row's key and by leaf pages.",
    "serializable": "SERIALIZABLE runs as repeatable read under `serializable = snapshot`, and DEFERRABLE means nothing for it.",
    "regex": "How large a regular expression may become has a limit of its own; where a back-reference can't match, the next match is looked for.",
    "order": "Rows that compare as equal, groups, and objects that go together come in another order.",
    "toast": "Long values are in pages of the table's own tree: there is no TOAST table.",
    "collation": "Texts have one order, C.UTF-8; COLLATE names another name of it and is not kept.",
    "enum": "Labels of an enum keep the numbers by which they are ordered; a new label may be used at once, since a rollback takes its rows, too.",
    "depends": "What a view or a routine needs besides relations and columns (a key for GROUP BY, a function, a sequence) is not noted as a dependency.",
    "early": "Expressions are folded only where they are evaluated, so that 1/0 in a branch that is not taken is no error.",
    "settings": "A setting or a module of PostgreSQL that does not exist here.",
    "nothing": "A form that has nothing to do here is taken without being judged: CLUSTER without an index, FREEZE, storage parameters.",
    "privileges": "Rights on system objects, of columns that do not exist and of domains (docs/compat.md, roles and rights).",
    "back": "A cursor that does not say SCROLL or NO SCROLL may go back.",
    "pending": "Checks that are still to be made of a row keep other statements off than those of PostgreSQL.",
    "open": "A defect that is known and not repaired yet.",
}


def plain(text):
    """A statement without comments, its white space as single blanks."""
    return re.sub(r"\s+", " ", re.sub(r"--[^\n]*|/\*.*?\*/", " ", text, flags=re.S)).strip()


class Known:
    """What is listed, and what of it was met."""

    def __init__(self):
        self.lines, self.met, self.unknown = collections.OrderedDict(), set(), []
        if os.path.exists(LIST):
            with open(LIST, encoding="utf-8") as file:
                for line in file:
                    if line.strip() and not line.startswith("#"):
                        reason, name, text = line.rstrip("\n").split(" | ", 2)
                        self.lines[name, text] = reason

    def explains(self, name, text):
        """Whether a statement of a file may differ; it is remembered either way."""
        key = (name, plain(text)[:LENGTH].rstrip())
        if key in self.lines:
            self.met.add(key)
            return True
        self.unknown.append(key)
        return False

    def wrong(self, whole):
        """What is wrong with the list after a run: lines to print. `whole`: the files of which each line must have been met."""
        found = [f"{name}: differs and is not listed in tests/postgres-regress.known: {text}" for name, text in dict.fromkeys(self.unknown)]
        for (name, text), reason in self.lines.items():
            if reason not in REASONS:
                found.append(f"{name}: listed without a reason that is known ({reason}): {text}")
            elif name in whole and (name, text) not in self.met:
                found.append(f"{name}: listed and does not differ, take the line out: {text}")
        return found

    def record(self, whole):
        """Writes the list anew: what was met stays, as do the lines of other files than these; what is new has the reason `?`."""
        kept = [(reason, *key) for key, reason in self.lines.items() if key[0] not in whole or key in self.met]
        new = [("?", *key) for key in dict.fromkeys(self.unknown)]
        with open(LIST, "w", encoding="utf-8") as file:
            file.write("# Statements of PostgreSQL's regression files whose answers differ, with the reason (tests/regress/known.py has what they mean):\n")
            file.write("# reason | file | statement\n")
            file.writelines(f"{' | '.join(line)}\n" for line in kept + new)

    def table(self):
        """The list as rows of a page."""
        by = collections.OrderedDict((reason, collections.OrderedDict()) for reason in REASONS)
        for (name, text), reason in self.lines.items():
            by.setdefault(reason, collections.OrderedDict()).setdefault(name, []).append(text)
        lines = ["| why | statements |", "|---|---|"]
        for reason, files in by.items():
            if files:
                shown = "; ".join(f"{name}: " + ", ".join(f"`{text[:60].replace('|', chr(92) + '|').replace('`', chr(39))}`" for text in texts)
                                  for name, texts in files.items())
                lines.append(f"| {REASONS.get(reason, reason)} | {shown} |")
        return lines
