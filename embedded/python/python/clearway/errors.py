"""The exceptions of DB-API 2.0, chosen by SQLSTATE."""


class Warning(Exception):  # noqa: A001 (PEP 249 names it so)
    """Of no use here; DB-API 2.0 wants it."""


class Error(Exception):
    """An error of the database. `sqlstate` is PostgreSQL's five-character code, None where no statement failed."""

    def __init__(self, message="", sqlstate=None, detail=None, hint=None, constraint=None, table=None, column=None):
        super().__init__(message if detail is None else f"{message}\nDETAIL:  {detail}")
        self.sqlstate = sqlstate
        self.message = message
        self.detail = detail
        self.hint = hint
        self.constraint_name = constraint
        self.table_name = table
        self.column_name = column


class InterfaceError(Error):
    """The module was used wrongly."""


class DatabaseError(Error):
    """A statement failed."""


class DataError(DatabaseError):
    """A value is out of range or malformed (class 22)."""


class OperationalError(DatabaseError):
    """Something that the program may repeat or could not foresee: conflicts, deadlocks, cancels, resources (classes 40, 53, 55, 57, 58)."""


class IntegrityError(DatabaseError):
    """A constraint is violated (class 23)."""


class InternalError(DatabaseError):
    """The transaction has failed already, or the database is at fault (classes 25, XX)."""


class ProgrammingError(DatabaseError):
    """The statement is wrong (classes 26, 34, 42 and others)."""


class NotSupportedError(DatabaseError):
    """What is not supported (0A000)."""


class StatementError(ProgrammingError, OperationalError):
    """The statement is wrong (class 42): a ProgrammingError, as PEP 249 has it, and an OperationalError, as sqlite3 raises it."""


CLASSES = {
    "0A": NotSupportedError,
    "22": DataError,
    "23": IntegrityError,
    "25": InternalError,
    "40": OperationalError,
    "42": StatementError,
    "53": OperationalError,
    "54": OperationalError,
    "55": OperationalError,
    "57": OperationalError,
    "58": OperationalError,
    "XX": InternalError,
}


#: How PostgreSQL says it.
MULTIPLE = "cannot insert multiple commands into a prepared statement"


def of(native):
    """The exception for an error of the native module."""
    code, message, detail, hint, constraint, table, column = native.args
    if code == "closed":
        return ProgrammingError("Cannot operate on a closed database.")
    if code == "parameters":
        return ProgrammingError(message)
    if code == "lost":
        return OperationalError(message, "08006")
    if code == "other":
        return OperationalError(message)
    if code == "42601" and message == MULTIPLE:
        message = "You can only execute one statement at a time."
    kind = CLASSES.get(code[:2], ProgrammingError)
    return kind(message, code, detail, hint, constraint, table, column)
