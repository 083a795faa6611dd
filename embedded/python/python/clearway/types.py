"""Values of Python to parameters, and values of rows to Python."""

import datetime
import decimal
import json
import uuid

EPOCH_DATE = datetime.date(2000, 1, 1)
EPOCH = datetime.datetime(2000, 1, 1)
EPOCH_UTC = datetime.datetime(2000, 1, 1, tzinfo=datetime.timezone.utc)

adapters = {}
converters = {}


def register_adapter(type_, adapter):
    """`adapter(value)` makes a parameter of a value of that type: None, bool, int, float, str or bytes."""
    adapters[type_] = adapter


def register_converter(typename, converter):
    """`converter(value)` is given what the module would return for columns of that type (`numeric`, `jsonb`, ...)."""
    converters[typename.lower()] = converter


def adapt(value):
    """A value as the native module takes it."""
    kind = type(value)
    adapter = adapters.get(kind)
    if adapter is not None:
        return adapter(value)
    if kind in PLAIN:
        return value
    if isinstance(value, (datetime.date, datetime.time, decimal.Decimal, uuid.UUID)):
        return value.isoformat() if hasattr(value, "isoformat") else str(value)
    if isinstance(value, datetime.timedelta):
        return f"{value.days} days {value.seconds} seconds {value.microseconds} microseconds"
    if isinstance(value, (list, tuple)):
        return array_text(value)
    if isinstance(value, dict):
        return json.dumps(value)
    conform = getattr(value, "__conform__", None)
    if conform is not None:
        return conform(None)
    return value


PLAIN = {type(None), bool, int, float, str, bytes, bytearray, memoryview}


def array_text(values):
    """A list as the text form of an array."""
    return "{" + ",".join(element(value) for value in values) + "}"


def element(value):
    if value is None:
        return "NULL"
    if isinstance(value, (list, tuple)):
        return array_text(value)
    value = adapt(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        value = "\\x" + bytes(value).hex()
    elif isinstance(value, bool):
        value = "t" if value else "f"
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def date(days):
    if days == 2147483647:
        return datetime.date.max
    if days == -2147483648:
        return datetime.date.min
    return EPOCH_DATE + datetime.timedelta(days=days)


def time(micros):
    if micros >= 86_400_000_000:  # 24:00:00
        return datetime.time.max
    return (datetime.datetime.min + datetime.timedelta(microseconds=micros)).time()


def moment(epoch):
    def convert(micros):
        if micros == 9223372036854775807:
            return datetime.datetime.max.replace(tzinfo=epoch.tzinfo)
        if micros == -9223372036854775808:
            return datetime.datetime.min.replace(tzinfo=epoch.tzinfo)
        return epoch + datetime.timedelta(microseconds=micros)

    return convert


def array(convert):
    def parse(text):
        # Bounds that do not begin at 1 stand before an equals sign.
        at = text.index("{")
        values, end = braces(text, at, convert)
        return values

    return parse


def braces(text, at, convert):
    values = []
    at += 1
    while text[at] != "}":
        if text[at] == "{":
            inner, at = braces(text, at, convert)
            values.append(inner)
        elif text[at] == '"':
            at += 1
            chars = []
            while text[at] != '"':
                if text[at] == "\\":
                    at += 1
                chars.append(text[at])
                at += 1
            at += 1
            values.append(convert("".join(chars)))
        else:
            start = at
            while text[at] not in ",}":
                at += 1
            word = text[start:at]
            values.append(None if word == "NULL" else convert(word))
        if text[at] == ",":
            at += 1
    return values, at + 1


#: By the number of a type in pg_type.
BY_OID = {
    1082: date,
    1083: time,
    1114: moment(EPOCH),
    1184: moment(EPOCH_UTC),
    1700: decimal.Decimal,
    2950: lambda raw: uuid.UUID(bytes=raw),
    114: json.loads,
    3802: json.loads,
    1000: array(lambda text: text == "t"),
    1005: array(int),
    1007: array(int),
    1016: array(int),
    1021: array(float),
    1022: array(float),
    1009: array(str),
    1015: array(str),
    1231: array(decimal.Decimal),
    2951: array(uuid.UUID),
}

NAMES = {
    16: "boolean", 17: "bytea", 20: "bigint", 21: "smallint", 23: "integer", 25: "text", 26: "oid", 114: "json", 700: "real",
    701: "double precision", 1042: "character", 1043: "character varying", 1082: "date", 1083: "time", 1114: "timestamp",
    1184: "timestamptz", 1186: "interval", 1700: "numeric", 2950: "uuid", 3802: "jsonb",
}  # fmt: skip


def converter(oid):
    """What makes a Python value of a column's raw value; None: nothing needs to be done."""
    own = converters.get(NAMES.get(oid, ""))
    plain = BY_OID.get(oid)
    if own is None:
        return plain
    return own if plain is None else lambda raw: own(plain(raw))


class Kind:
    """Compares equal to the types of columns that belong to it (PEP 249, type objects)."""

    def __init__(self, *oids):
        self.oids = frozenset(oids)

    def __eq__(self, other):
        return other in self.oids if isinstance(other, int) else self is other

    def __hash__(self):
        return id(self)


STRING = Kind(19, 25, 1042, 1043)
BINARY = Kind(17)
NUMBER = Kind(20, 21, 23, 700, 701, 1700)
DATETIME = Kind(1082, 1083, 1114, 1184, 1186)
ROWID = Kind(26)

Binary = memoryview
Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime


def DateFromTicks(ticks):
    return datetime.date.fromtimestamp(ticks)


def TimeFromTicks(ticks):
    return datetime.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks):
    return datetime.datetime.fromtimestamp(ticks)
