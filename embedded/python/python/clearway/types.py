"""Values of Python to parameters, and values of rows to Python."""

import datetime
import decimal
import json
import uuid

from . import errors

EPOCH_DATE = datetime.date(2000, 1, 1)
EPOCH = datetime.datetime(2000, 1, 1)
EPOCH_UTC = datetime.datetime(2000, 1, 1, tzinfo=datetime.timezone.utc)

adapters = {}
converters = {}


class PrepareProtocol:
    """What `__conform__` is asked for: a value that can be a parameter."""


def register_adapter(type_, adapter):
    """`adapter(value)` makes a parameter of a value of that type: None, bool, int, float, str or bytes."""
    adapters[type_, PrepareProtocol] = adapter


def register_converter(typename, converter):
    """`converter(value)` is given what the module would return for columns of that type (`numeric`, `jsonb`, ...)."""
    converters[typename.upper()] = converter


NOTHING = object()


def adapt(value, protocol=PrepareProtocol, alternate=NOTHING):
    """A value for a protocol, as sqlite3.adapt has it: by a registered adapter, by the protocol, by the value itself."""
    adapter = adapters.get((type(value), protocol))
    if adapter is not None:
        return adapter(value)
    for found in (getattr(protocol, "__adapt__", None), getattr(value, "__conform__", None)):
        if found is None:
            continue
        adapted = found(value) if found is getattr(protocol, "__adapt__", None) else found(protocol)
        if adapted is not None:
            return adapted
    if alternate is not NOTHING:
        return alternate
    raise errors.ProgrammingError("can't adapt")


def parameter(value):
    """A value as the native module takes it."""
    kind = type(value)
    if adapters:
        adapter = adapters.get((kind, PrepareProtocol))
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
        try:
            adapted = conform(PrepareProtocol)
        except TypeError:
            # As a value without the method: its type is not supported.
            adapted = None
        if adapted is not None:
            return adapted
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
    value = parameter(value)
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


def time_of_zone(text):
    """time with time zone: `12:00:00.5+02`, whose offset may have minutes and seconds."""
    at = max(text.rfind("+"), text.rfind("-"))
    clock, sign, offset = text[:at], text[at], [int(part) for part in text[at + 1 :].split(":")]
    seconds = sum(part * unit for part, unit in zip(offset, (3600, 60, 1)))
    zone = datetime.timezone(datetime.timedelta(seconds=-seconds if sign == "-" else seconds))
    if clock.startswith("24:"):
        return datetime.time.max.replace(tzinfo=zone)
    hours, minutes, rest = clock.split(":")
    whole, _, fraction = rest.partition(".")
    return datetime.time(int(hours), int(minutes), int(whole), int(fraction.ljust(6, "0") or 0), zone)


#: Days of the units of an interval that are no fixed time, as most drivers of PostgreSQL count them.
DAYS = {"year": 365, "mon": 30, "day": 1}


def interval(text):
    """An interval in PostgreSQL's own form: `1 year 2 mons 3 days -04:05:06.5`."""
    words = text.split()
    total = datetime.timedelta()
    while words:
        word = words.pop(0)
        if ":" in word:
            hours, minutes, rest = word.lstrip("+-").split(":")
            whole, _, fraction = rest.partition(".")
            clock = datetime.timedelta(hours=int(hours), minutes=int(minutes), seconds=int(whole), microseconds=int(fraction.ljust(6, "0")))
            total += -clock if word.startswith("-") else clock
        else:
            total += datetime.timedelta(days=int(word) * DAYS[words.pop(0).rstrip("s")])
    return total


def numbers(text):
    """int2vector and oidvector."""
    return [int(word) for word in text.split()]


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
    22: numbers,
    30: numbers,
    1186: interval,
    1266: time_of_zone,
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


#: Other names by which converters may have been registered.
ALIASES = {
    16: ("BOOL",), 20: ("INT8",), 21: ("INT2",), 23: ("INT", "INT4"), 700: ("FLOAT4",), 701: ("FLOAT", "FLOAT8", "DOUBLE"),
    1043: ("VARCHAR",), 1700: ("DECIMAL", "NUMBER"),
}  # fmt: skip


def registered(oid):
    """The converter that was registered for a type."""
    if not converters:
        return None
    names = (NAMES.get(oid, "").upper(), *ALIASES.get(oid, ()))
    return next((converters[name] for name in names if name in converters), None)


def plain_converter(oid):
    """What makes a Python value of a column's raw value; None: nothing needs to be done."""
    return BY_OID.get(oid)


def converter(oid):
    """The same, with the converter that was registered for the type."""
    own = registered(oid)
    plain = BY_OID.get(oid)
    if own is None:
        return plain
    return own if plain is None else lambda raw: own(plain(raw))


def sqlite3_converter(name, oid, by_type):
    """sqlite3's way: the converter named in the column's name, or else that of its type, gets the value's text as bytes; None if there is none."""
    own = converters.get(name.upper()) if name else None
    if own is None and by_type:
        own = registered(oid)
    if own is None:
        return None
    plain = BY_OID.get(oid)

    def convert(raw):
        value = raw if plain is None else plain(raw)
        if isinstance(value, bool):
            value = int(value)
        given = value if isinstance(value, bytes) else str(value).encode()
        return own(given) if given else None

    return convert


#: Types of Arrow's by the number of a type in pg_type: a column has its type also where it has no value. What is not here goes by the values.
ARROW = {
    16: "bool_", 17: "binary", 19: "string", 20: "int64", 21: "int16", 23: "int32", 25: "string", 26: "int64", 700: "float32",
    701: "float64", 1042: "string", 1043: "string", 1082: "date32",
}  # fmt: skip
ARROW_LISTS = {1000: "bool_", 1005: "int16", 1007: "int32", 1009: "string", 1015: "string", 1016: "int64", 1021: "float32", 1022: "float64"}


def arrow_array(pyarrow, values, oid):
    """The values of a column as an array of pyarrow's."""
    if oid in ARROW:
        return pyarrow.array(values, getattr(pyarrow, ARROW[oid])())
    if oid in ARROW_LISTS:
        return pyarrow.array(values, pyarrow.list_(getattr(pyarrow, ARROW_LISTS[oid])()))
    if oid in (1083, 1114, 1184):
        kinds = {1083: pyarrow.time64("us"), 1114: pyarrow.timestamp("us"), 1184: pyarrow.timestamp("us", "UTC")}
        return pyarrow.array(values, kinds[oid])
    if oid in (114, 3802):
        # JSON has no type in Arrow: its text.
        return pyarrow.array([None if value is None else json.dumps(value) for value in values], pyarrow.string())
    if oid == 2950:
        return pyarrow.array([None if value is None else str(value) for value in values], pyarrow.string())
    return pyarrow.array(values)


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
