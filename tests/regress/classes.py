"""Judges what two servers answered to the same statement.

Classes, in the order in which they are listed:
  same             both succeed with the same output
  other order      both succeed with the same rows in another order, which the statement leaves open: it has no ORDER BY
  same error       both fail with the same SQLSTATE
  refused          PostgreSQL succeeds, Clearway answers 0A000 with the name of what it does not support
  refused else     PostgreSQL succeeds, Clearway fails with another SQLSTATE
  cascade          PostgreSQL succeeds, Clearway fails on an object that an earlier difference left missing or other (it is "tainted"), or because the
                   transaction failed there
  other error      both fail, with different SQLSTATEs
  different        both succeed with different output, and nothing that the statement names is tainted
  tainted          both succeed with different output over tainted objects
  explain          both succeed with different output of EXPLAIN, which functions of some files show, too
  accepted         PostgreSQL fails, Clearway succeeds, over objects that are not tainted
  accepted tainted the same over tainted objects
  hang             Clearway gave no answer in time, or its connection broke
"""
import re

CLASSES = ["same", "other order", "same error", "refused", "refused else", "cascade", "other error", "different", "tainted", "explain", "accepted",
           "accepted tainted", "hang"]
NOTICES = re.compile(r"^(psql:[^:]*:\d+: )?(NOTICE|WARNING|INFO|LOG|DEBUG\d?|DETAIL|HINT|CONTEXT|LINE \d+|STATEMENT|QUERY|LOCATION):")
NAME = r"((?:\"[^\"]+\"|[A-Za-z_0-9$\x80-\U0010ffff]+)(?:\s*\.\s*(?:\"[^\"]+\"|[A-Za-z_0-9$\x80-\U0010ffff]+))*)"
OBJECT = (r"(?:or\s+replace\s+)?(?:global\s+|local\s+)?(?:temp(?:orary)?\s+|unlogged\s+|recursive\s+|unique\s+|constraint\s+|event\s+|materialized\s+|"
          r"trusted\s+|default\s+|foreign\s+|procedural\s+)*"
          r"(?:table|view|index|sequence|type|domain|function|procedure|routine|aggregate|operator\s+(?:class|family)|operator|schema|role|user\s+mapping|user|"
          r"group|database|trigger|rule|policy|language|collation|conversion|cast|extension|statistics|publication|subscription|server|"
          r"data\s+wrapper|access\s+method|transform|text\s+search\s+\w+|tablespace|large\s+object)\s+")
TARGETS = [re.compile(pattern, re.I) for pattern in (
    rf"(?:create|alter|drop)\s+{OBJECT}(?:concurrently\s+)?(?:if\s+(?:not\s+)?exists\s+)?(?:only\s+)?{NAME}",
    rf"(?:create|alter)\s+policy\s+\S+\s+on\s+{NAME}",
    rf"\binsert\s+into\s+{NAME}", rf"\bupdate\s+(?:only\s+)?{NAME}", rf"\bdelete\s+from\s+(?:only\s+)?{NAME}", rf"\bmerge\s+into\s+(?:only\s+)?{NAME}",
    rf"^\\?copy\s+{NAME}\s*(?:\([^)]*\))?\s*from\b", rf"\btruncate\s+(?:table\s+)?(?:only\s+)?{NAME}", rf"^select\b.*?\binto\s+(?:temp\w*\s+|unlogged\s+|table\s+)*{NAME}",
    rf"^prepare\s+{NAME}", rf"^declare\s+{NAME}", rf"^comment\s+on\s+\w+\s+{NAME}", rf"^refresh\s+materialized\s+view\s+(?:concurrently\s+)?{NAME}",
    rf"^(?:grant|revoke)\b.*?\bon\s+(?:table\s+|sequence\s+|function\s+|schema\s+|type\s+|domain\s+|database\s+)?{NAME}", rf"^reindex\s+\w+\s+{NAME}",
    rf"^(?:grant|revoke)\s+{NAME}\s+(?:to|from)\b", rf"^alter\s+table\b.*\badd\s+(?:constraint|column)\s+{NAME}", rf"^\\gset\s+{NAME}",
    rf"^security\s+label\s+on\s+\w+\s+{NAME}", rf"\brename\s+to\s+{NAME}",
    # A child that could not be made would have changed its parents.
    rf"\binherits\s*\(\s*{NAME}", rf"\binherits\s*\([^)]*,\s*{NAME}\s*\)", rf"\bpartition\s+of\s+{NAME}", rf"\b(?:attach|detach)\s+partition\s+{NAME}",
    rf"\binherit\s+{NAME}", rf"\bunder\s+{NAME}")]
ON = re.compile(rf"^create\s+(?:or\s+replace\s+)?(?:unique\s+)?(?:constraint\s+)?(?:index|trigger|rule|policy)\b.*?\b(?:on|to)\s+(?:only\s+)?{NAME}", re.I | re.S)
# Functions of the files that show plans, or what is read in them.
OF_PLANS = re.compile(r"\b(?:explain_\w+|check_estimated_rows|hash_join_batches)\s*\(", re.I)
SETTING = re.compile(rf"^(?:set|reset)\s+(?:session\s+|local\s+)?{NAME}", re.I)


def words(text):
    return {w.strip('"').lower() for w in re.findall(r'"[^"]+"|[A-Za-z_\x80-\U0010ffff][\w$]*', text)}


def last(name):
    return re.split(r"\s*\.\s*", name)[-1].strip('"').lower()


def shown(output):
    """Output without notices and the lines that belong to an error."""
    return [line.rstrip() for line in output.splitlines() if not NOTICES.match(line)]


class Judge:
    """Keeps what earlier differences made different, over all files of a run."""

    def __init__(self):
        self.tainted = set()
        self.failed_block = False

    def new_file(self):
        self.failed_block = False

    def taint(self, text):
        """What a statement that had an effect on one server only may have changed."""
        for pattern in [*TARGETS, ON]:
            for found in pattern.findall(text):
                name = found if isinstance(found, str) else found[-1]
                if len(last(name)) > 1 and last(name) not in {"public", "all", "table", "postgres", "set", "if", "only"}:
                    self.tainted.add(last(name))
        if setting := SETTING.match(text):
            self.tainted.add(last(setting[1]))
        if "\\gset" in text:
            self.tainted.update(re.findall(r"\bas\s+(\w+)", text.lower()))

    def judge(self, text, peer, ours):
        """The class of a statement. `peer` and `ours` are answers: .state, .output, .broken."""
        plain = re.sub(r"\s+", " ", re.sub(r"--[^\n]*|/\*.*?\*/", " ", text, flags=re.S)).strip()
        kind = self.compare(plain, peer, ours)
        if kind not in ("same", "other order", "same error", "explain"):
            self.taint(plain)
        return kind

    def compare(self, text, peer, ours):
        if ours.broken:
            return "hang"
        names = words(text)
        if re.match(r"drop\b", text, re.I):
            # What goes with an object is told by notices.
            names |= words(peer.output) | words(ours.output)
        touched = bool(names & self.tainted)
        peer_failed, failed = peer.state != "00000", ours.state != "00000"
        # A statement that failed inside a block makes the rest of the block fail, on one server only.
        in_failed = ours.state == "25P02" and peer.state != "25P02"
        if peer_failed and failed:
            return "same error" if peer.state == ours.state else "cascade" if in_failed else "other error"
        if failed:
            if in_failed:
                return "cascade"
            missing = re.search(r'ERROR:.*', ours.output)
            said = words(missing[0]) if missing else set()
            if ours.state != "0A000" and (touched or said & self.tainted):
                return "cascade"
            return "refused" if ours.state == "0A000" else "refused else"
        if peer_failed:
            return "accepted tainted" if touched or peer.state == "25P02" else "accepted"
        if shown(peer.output) == shown(ours.output):
            return "same"
        rows = re.match(r"(select|with|values|table|execute)\b", text, re.I) and not re.search(r"\border\s+by\b", text, re.I)
        if rows and sorted(shown(peer.output)) == sorted(shown(ours.output)):
            return "other order"
        if re.match(r"explain\b", text, re.I) or OF_PLANS.search(text):
            return "explain"
        return "tainted" if touched else "different"
