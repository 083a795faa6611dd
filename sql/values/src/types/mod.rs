//! Types and values: pg_type's facts, values in memory, their text and binary forms, and casts.
//!
//! # Structure
//! `facts` and `cast_table` are data taken from PostgreSQL's catalogs; `datum` is a value; `numeric`, `datetime`, `interval` and `array`
//! are the types that need more than a machine word; `text` and `binary` are the two forms on the wire; `cast` converts between types.
//!
//! # Invariants
//! - TYP-1: values of text types compare by their bytes (C.UTF-8); char(n) compares without the trailing blanks that its values have.
//! - TYP-2: no arithmetic wraps: a result that does not fit is 22003, 22008 or 22012.
//! - TYP-3: no bytes from the wire cause a panic: a form that does not decode is 22P02 or 22P03.

pub mod aliases;
pub mod array;
pub mod binary;
pub mod bits;
pub(crate) mod byte_char;
pub mod cast;
mod cast_table;
pub mod citext;
pub mod datetime;
mod datetime_fields;
mod datetime_input;
mod datetime_numbers;
pub mod datum;
pub mod extension;
mod facts;
pub mod float;
pub mod geometry;
pub mod geometry_binary;
mod geometry_circle;
mod geometry_convert;
pub mod geometry_number;
mod geometry_path;
mod geometry_polygon;
mod geometry_rect;
mod geometry_segment;
pub mod geometry_text;
pub mod hex;
pub mod hstore;
pub mod inet;
pub mod interval;
mod interval_input;
mod interval_modifier;
pub mod json;
pub mod jsonpath;
pub mod lsn;
pub mod numeric;
mod numeric_math;
mod numeric_words;
pub mod operator;
pub mod order;
pub mod range;
mod record;
pub mod routine;
pub mod size;
pub mod snapshot;
pub mod text;
pub mod time;
pub mod user;
pub mod uuid;
mod wide;
pub mod word;
pub mod zone;
mod zone_abbreviations;

pub use datum::Datum;
pub use facts::TYPES;
pub use numeric::Numeric;

use crate::error::{Result, SqlError, code};
use crate::syntax::ast::TypeName;

/// An object identifier.
pub type Oid = u32;

/// The oids of the types that code names.
#[allow(missing_docs)]
pub mod oid {
    use super::Oid;
    pub const BOOL: Oid = 16;
    pub const BYTEA: Oid = 17;
    pub const CHAR: Oid = 18;
    pub const NAME: Oid = 19;
    pub const INT8: Oid = 20;
    pub const INT2: Oid = 21;
    pub const INT2VECTOR: Oid = 22;
    pub const INT4: Oid = 23;
    pub const REGPROC: Oid = 24;
    pub const TEXT: Oid = 25;
    pub const OID: Oid = 26;
    pub const TID: Oid = 27;
    pub const XID: Oid = 28;
    pub const CID: Oid = 29;
    pub const OIDVECTOR: Oid = 30;
    pub const POINT: Oid = 600;
    pub const LSEG: Oid = 601;
    pub const PATH: Oid = 602;
    pub const BOX: Oid = 603;
    pub const POLYGON: Oid = 604;
    pub const LINE: Oid = 628;
    pub const CIRCLE: Oid = 718;
    pub const FLOAT4: Oid = 700;
    pub const FLOAT8: Oid = 701;
    pub const UNKNOWN: Oid = 705;
    pub const BPCHAR: Oid = 1042;
    pub const VARCHAR: Oid = 1043;
    pub const DATE: Oid = 1082;
    pub const TIMESTAMP: Oid = 1114;
    pub const TIMESTAMPTZ: Oid = 1184;
    pub const INTERVAL: Oid = 1186;
    pub const NUMERIC: Oid = 1700;
    pub const REFCURSOR: Oid = 1790;
    pub const REGCLASS: Oid = 2205;
    pub const REGTYPE: Oid = 2206;
    pub const REGPROCEDURE: Oid = 2202;
    pub const REGOPER: Oid = 2203;
    pub const REGOPERATOR: Oid = 2204;
    pub const REGNAMESPACE: Oid = 4089;
    pub const REGROLE: Oid = 4096;
    pub const REGCOLLATION: Oid = 4191;
    pub const RECORD: Oid = 2249;
    pub const ANYARRAY: Oid = 2277;
    pub const VOID: Oid = 2278;
    pub const ANYELEMENT: Oid = 2283;
    pub const NAME_ARRAY: Oid = 1003;
    pub const UUID: Oid = 2950;
    pub const PG_LSN: Oid = 3220;
    pub const MACADDR8: Oid = 774;
    pub const MONEY: Oid = 790;
    pub const MACADDR: Oid = 829;
    pub const XID8: Oid = 5069;
    pub const TXID_SNAPSHOT: Oid = 2970;
    pub const PG_SNAPSHOT: Oid = 5038;
    pub const INET: Oid = 869;
    pub const CIDR: Oid = 650;
    pub const TIME: Oid = 1083;
    pub const TIMETZ: Oid = 1266;
    pub const JSON: Oid = 114;
    pub const JSONB: Oid = 3802;
    pub const JSONPATH: Oid = 4072;
    pub const BIT: Oid = 1560;
    pub const VARBIT: Oid = 1562;
    pub const INT4RANGE: Oid = 3904;
    pub const INT8RANGE: Oid = 3926;
    pub const NUMRANGE: Oid = 3906;
    pub const TSRANGE: Oid = 3908;
    pub const TSTZRANGE: Oid = 3910;
    pub const DATERANGE: Oid = 3912;
    pub const INT4MULTIRANGE: Oid = 4451;
    pub const INT8MULTIRANGE: Oid = 4536;
    pub const NUMMULTIRANGE: Oid = 4532;
    pub const TSMULTIRANGE: Oid = 4533;
    pub const TSTZMULTIRANGE: Oid = 4534;
    pub const DATEMULTIRANGE: Oid = 4535;
    pub const CSTRING: Oid = 2275;
    pub const ANY: Oid = 2276;
    pub const ANYNONARRAY: Oid = 2776;
    pub const ANYENUM: Oid = 3500;
    pub const ANYRANGE: Oid = 3831;
    pub const ANYMULTIRANGE: Oid = 4537;
    pub const ANYCOMPATIBLE: Oid = 5077;
    pub const ANYCOMPATIBLEARRAY: Oid = 5078;
    pub const INT4_ARRAY: Oid = 1007;
    pub const INT8_ARRAY: Oid = 1016;
    pub const JSON_ARRAY: Oid = 199;
    pub const JSONB_ARRAY: Oid = 3807;
    pub const TEXT_ARRAY: Oid = 1009;
    pub const FLOAT8_ARRAY: Oid = 1022;
    pub const INTERVAL_ARRAY: Oid = 1187;
    // Of extensions (`super::extension`).
    pub const CITEXT: Oid = 16_000;
    pub const CITEXT_ARRAY: Oid = 16_001;
    pub const HSTORE: Oid = 16_002;
    pub const HSTORE_ARRAY: Oid = 16_003;
}

/// What pg_type says of a type.
#[derive(Clone, Copy, Debug)]
pub struct TypeFacts {
    /// Its oid.
    pub oid: Oid,
    /// Its name in pg_type.
    pub name: &'static str,
    /// Bytes, or -1.
    pub len: i16,
    /// typcategory.
    pub category: u8,
    /// typispreferred.
    pub preferred: bool,
    /// The array type over it, or 0.
    pub array: Oid,
    /// The element of an array type, or 0.
    pub element: Oid,
    /// format_type without a modifier.
    pub sql_name: &'static str,
}

/// A type with its modifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SqlType {
    /// The type.
    pub oid: Oid,
    /// atttypmod: -1 for none.
    pub modifier: i32,
}

impl SqlType {
    /// A type without a modifier.
    pub const fn new(oid: Oid) -> Self {
        Self { oid, modifier: -1 }
    }
}

impl From<Oid> for SqlType {
    fn from(oid: Oid) -> Self {
        Self::new(oid)
    }
}

/// The facts of a type by oid.
pub fn facts(oid: Oid) -> Option<&'static TypeFacts> {
    TYPES.binary_search_by_key(&oid, |t| t.oid).ok().map(|i| &TYPES[i]).or_else(|| user::facts(oid))
}

/// The facts of a type by its name in pg_type.
pub fn by_name(name: &str) -> Option<&'static TypeFacts> {
    TYPES.iter().find(|t| t.name == name)
}

/// The element of an array type.
pub fn element_of(oid: Oid) -> Option<Oid> {
    facts(oid).filter(|f| f.category == b'A' && f.element != 0).map(|f| f.element)
}

/// The array type over an element type.
pub fn array_of(oid: Oid) -> Option<Oid> {
    facts(oid).filter(|f| f.array != 0).map(|f| f.array)
}

/// A type's category; 'X' for unknown ones.
pub fn category(oid: Oid) -> u8 {
    facts(oid).map_or(b'X', |f| f.category)
}

/// `format_type`: the type as SQL writes it.
pub fn format_type(ty: SqlType) -> String {
    let Some(f) = facts(ty.oid) else {
        let pseudo = crate::builtin::pseudo_types().iter().find(|(oid, _)| *oid == ty.oid);
        return pseudo.map_or("???", |(_, name)| if *name == "any" { "\"any\"" } else { name }).to_owned();
    };
    let m = ty.modifier;
    if m < 0 {
        return f.sql_name.to_owned();
    }
    if let Some(element) = element_of(ty.oid) {
        return format_type(SqlType { oid: element, modifier: m }) + "[]";
    }
    match ty.oid {
        oid::BPCHAR | oid::VARCHAR if m >= 4 => format!("{}({})", f.sql_name, m - 4),
        oid::NUMERIC if m >= 4 => {
            let (p, s) = numeric_modifier(m);
            format!("numeric({p},{s})")
        }
        oid::BIT | oid::VARBIT => format!("{}({m})", f.sql_name),
        oid::TIME => format!("time({m}) without time zone"),
        oid::TIMETZ => format!("time({m}) with time zone"),
        oid::TIMESTAMP => format!("timestamp({m}) without time zone"),
        oid::TIMESTAMPTZ => format!("timestamp({m}) with time zone"),
        oid::INTERVAL => interval_modifier::shown(m),
        _ => f.sql_name.to_owned(),
    }
}

/// Precision and scale of a numeric modifier of at least 4.
pub fn numeric_modifier(m: i32) -> (i32, i32) {
    let v = m - 4;
    ((v >> 16) & 0xffff, ((v & 0x7ff) ^ 1024) - 1024)
}

/// PostgreSQL's types that no value can have here.
const NOT_HERE: &[&str] = &["tsvector", "tsquery", "xml", "regconfig", "regdictionary"];

/// Looks a written type up and packs its modifiers.
pub fn resolve(name: &TypeName) -> Result<SqlType> {
    let pos = name.name.pos;
    let written = name.name.name();
    let aliased = match written {
        "serial" | "serial4" | "bigserial" | "serial8" | "smallserial" | "serial2" => None,
        "char" if name.name.parts.len() == 1 => by_name("char"),
        other => by_name(other),
    };
    let in_catalog = name.name.schema().is_none_or(|s| s == "pg_catalog");
    let found = aliased.filter(|f| in_catalog && !f.name.starts_with("any"));
    let found = match found {
        Some(f) => Some(f),
        None => user::find(name.name.schema(), written).map_err(|e| e.at(pos))?,
    };
    let Some(f) = found else {
        if in_catalog && NOT_HERE.contains(&written) {
            return Err(SqlError::unsupported(format!("type {written}")).at(pos));
        }
        if let Some(missing) = user::missing_schema(name.name.schema()) {
            return Err(missing.at(pos));
        }
        let message = format!("type \"{}\" does not exist", name.name.dotted());
        return Err(SqlError::new(code::UNDEFINED_OBJECT, message).at(pos));
    };
    if NOT_HERE.contains(&f.name) {
        return Err(SqlError::unsupported(format!("type {}", f.name)).at(pos));
    }
    let modifier = modifier(f, &name.modifiers).map_err(|e| e.at(pos))?;
    let mut ty = SqlType { oid: f.oid, modifier };
    if name.array_dims > 0 {
        ty.oid = array_of(f.oid).ok_or_else(|| SqlError::unsupported(format!("an array of {}", f.sql_name)).at(pos))?;
    }
    Ok(ty)
}

fn bit_modifier(f: &TypeFacts, n: i32) -> Result<i32> {
    let bad = |message: String| Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
    // PostgreSQL calls both by their names in pg_type.
    match n {
        ..1 => bad(format!("length for type {} must be at least 1", f.name)),
        83_886_081.. => bad(format!("length for type {} cannot exceed 83886080", f.name)),
        n => Ok(n),
    }
}

fn modifier(f: &TypeFacts, given: &[i32]) -> Result<i32> {
    let bad = |message: String| Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
    match (f.oid, given) {
        (_, []) => Ok(-1),
        (oid::BPCHAR | oid::VARCHAR, [n]) => {
            let name = if f.oid == oid::BPCHAR { "char" } else { "varchar" };
            if *n < 1 {
                return bad(format!("length for type {name} must be at least 1"));
            }
            if *n > 10_485_760 {
                return bad(format!("length for type {name} cannot exceed 10485760"));
            }
            Ok(n + 4)
        }
        (oid::BIT | oid::VARBIT, [n]) => bit_modifier(f, *n),
        (oid::NUMERIC, [p]) => modifier(f, &[*p, 0]),
        (oid::NUMERIC, [p, s]) => {
            if !(1..=1000).contains(p) {
                return bad(format!("NUMERIC precision {p} must be between 1 and 1000"));
            }
            if !(-1000..=1000).contains(s) {
                return bad(format!("NUMERIC scale {s} must be between -1000 and 1000"));
            }
            Ok(((p << 16) | (s & 0x7ff)) + 4)
        }
        (oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::TIME | oid::TIMETZ, [p]) => {
            if *p < 0 {
                let zone = if matches!(f.oid, oid::TIMESTAMPTZ | oid::TIMETZ) { " WITH TIME ZONE" } else { "" };
                let name = if matches!(f.oid, oid::TIME | oid::TIMETZ) { "TIME" } else { "TIMESTAMP" };
                return bad(format!("{name}({p}){zone} precision must not be negative"));
            }
            Ok((*p).min(6))
        }
        (oid::NUMERIC, _) => bad("invalid NUMERIC type modifier".to_owned()),
        (
            oid::BIT
            | oid::VARBIT
            | oid::BPCHAR
            | oid::VARCHAR
            | oid::TIMESTAMP
            | oid::TIMESTAMPTZ
            | oid::TIME
            | oid::TIMETZ,
            _,
        ) => bad("invalid type modifier".to_owned()),
        (oid::INTERVAL, given) => interval_modifier::pack(given),
        _ => Err(SqlError::new(code::SYNTAX_ERROR, format!("type modifier is not allowed for type \"{}\"", f.name))),
    }
}
