"""Splits a psql script into the pieces that psql executes one at a time.

A piece is one SQL statement with its semicolon, a statement that a backslash command sends (`\\gset`), or a backslash command on a line of its own.
The rules are those of psql's lexer: quotes, dollar quotes, nested comments, parentheses, `BEGIN ATOMIC` bodies and `\\;` do not end a statement.
"""
import re
from dataclasses import dataclass

# Backslash commands that send the statement before them.
SENDERS = {"g", "gx", "gset", "gexec", "gdesc", "crosstabview", "watch", "bind"}
FUNCTION = re.compile(r"create\s+(or\s+replace\s+)?(function|procedure)\b", re.I)
COPY_IN = re.compile(r"copy\b.*\bfrom\s+stdin\b", re.I | re.S)
DOLLAR = re.compile(r"\$([A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*)?\$")
WORD = re.compile(r"[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*")


@dataclass
class Piece:
    text: str  # as it stands in the file, comments included
    line: int  # where it begins
    command: bool  # a backslash command alone
    data: str | None = None  # the lines that follow a COPY ... FROM STDIN, without the final `\.`


def without_comments(text):
    """The statement with comments and text between quotes taken out: what its words are."""
    text = re.sub(r"--[^\n]*", " ", text)
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r"\s+", " ", text).strip()


class Splitter:
    def __init__(self, source):
        self.source, self.at, self.begin = source, 0, 0
        self.pieces = []

    def line_of(self, position):
        return self.source.count("\n", 0, position) + 1

    def take(self, end, command=False):
        """Ends a piece at `end`, if there is more in it than white space and comments."""
        text = self.source[self.begin:end]
        lead = len(text) - len(text.lstrip())
        if without_comments(text):
            self.pieces.append(Piece(text.strip(), self.line_of(self.begin + lead), command))
        self.begin = self.at = end

    def skip_quoted(self, quote, backslashes):
        """Moves behind a quoted text that begins at `at`."""
        i = self.at + 1
        while i < len(self.source):
            c = self.source[i]
            if backslashes and c == "\\":
                i += 2
            elif c == quote:
                i += 1
                if self.source[i:i + 1] != quote:
                    break
                i += 1
            else:
                i += 1
        self.at = i

    def skip_block_comment(self):
        depth, i = 0, self.at
        while i < len(self.source):
            if self.source.startswith("/*", i):
                depth, i = depth + 1, i + 2
            elif self.source.startswith("*/", i):
                depth, i = depth - 1, i + 2
                if depth == 0:
                    break
            else:
                i += 1
        self.at = i

    def copy_data(self):
        """Takes the lines up to `\\.` that belong to the COPY that has just been taken."""
        start = self.source.find("\n", self.at) + 1
        end = re.compile(r"^\\\.$", re.M).search(self.source, start)
        stop = end.start() if end else len(self.source)
        self.pieces[-1].data = self.source[start:stop]
        self.begin = self.at = end.end() if end else stop

    def backslash(self):
        """A backslash command, or `\\;`. True if it ended the statement that was being read."""
        if self.source[self.at + 1:self.at + 2] == ";":
            self.at += 2
            return False
        end = self.source.find("\n", self.at)
        end = len(self.source) if end < 0 else end
        name = re.match(r"\\([A-Za-z!?]+)", self.source[self.at:end])
        pending = without_comments(self.source[self.begin:self.at])
        if not pending:
            self.begin = self.at
            self.take(end, command=True)
            return True
        if name and name[1] in SENDERS:
            self.take(end)
            return True
        self.at = end
        return False

    def split(self):
        source = self.source
        parens = bodies = 0
        while self.at < len(source):
            c = source[self.at]
            if c == "-" and source.startswith("--", self.at):
                end = source.find("\n", self.at)
                self.at = len(source) if end < 0 else end
            elif c == "/" and source.startswith("/*", self.at):
                self.skip_block_comment()
            elif c in "'\"":
                before = source[self.at - 1:self.at] if self.at else ""
                word = self.at < 2 or not (source[self.at - 2].isalnum() or source[self.at - 2] in "_$")
                self.skip_quoted(c, c == "'" and before in "eE" and before != "" and word)
            elif c == "$" and (tag := DOLLAR.match(source, self.at)):
                end = source.find(tag[0], tag.end())
                self.at = len(source) if end < 0 else end + len(tag[0])
            elif c == "\\":
                if self.backslash():
                    parens = bodies = 0
            elif c == ";" and parens == 0 and bodies == 0:
                self.take(self.at + 1)
                if self.pieces and COPY_IN.match(without_comments(self.pieces[-1].text)):
                    self.copy_data()
            elif word := WORD.match(source, self.at):
                self.at = word.end()
                if FUNCTION.match(without_comments(source[self.begin:self.begin + 400])):
                    name = word[0].lower()
                    if name == "begin" or (name == "case" and bodies):
                        bodies += 1
                    elif name == "end" and bodies:
                        bodies -= 1
            else:
                parens = max(0, parens + (c == "(") - (c == ")"))
                self.at += 1
        self.take(len(source))
        return self.pieces


def split(source):
    return Splitter(source).split()
