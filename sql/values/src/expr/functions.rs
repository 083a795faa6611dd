//! The table of scalar functions, and those on numbers, dates and the session.

use super::catalog_functions as c;
use super::eval::Env;
use super::text_functions as t;
use super::{operators, resolve};
use crate::encoding::Encoding;
use crate::error::{Result, SqlError, code};
use crate::types::{Datum, Numeric, Oid, datetime, facts, oid};
use std::collections::HashMap;
use std::sync::OnceLock;

/// The body of a function.
pub type Body = fn(&[Datum], &Env<'_>) -> Result<Datum>;

/// A scalar function.
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Types of its arguments; polymorphic ones as in PostgreSQL.
    pub args: &'static [Oid],
    /// The type of its result; a polymorphic one follows from the arguments.
    pub result: Oid,
    /// NULL in, NULL out.
    pub strict: bool,
    /// Whether the last argument may repeat.
    pub variadic: bool,
    /// Whether two calls in one statement may give two results (PostgreSQL's VOLATILE).
    pub volatile: bool,
    /// What it computes.
    pub body: Body,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

use oid::{
    BOOL, BPCHAR, BYTEA, FLOAT4, FLOAT8, INT2, INT4, INT8, NAME, NUMERIC, OID, OIDVECTOR, REGTYPE, TEXT, TIMESTAMP,
    TIMESTAMPTZ, VOID,
};
const ANY: Oid = resolve::ANY;

/// Rows of a table of functions: `"name"(TYPES) RESULT mode body;`. The modes: strict (NULL in, NULL out), lenient, volatile (strict), variadic
/// (lenient, the last argument may repeat), spread (strict, the last argument may repeat).
macro_rules! table {
    ($($name:literal ($($arg:ident),*) $ret:ident $mode:ident $body:expr;)*) => {
        &[$($crate::expr::functions::Function {
            name: $name, args: &[$($arg),*], result: $ret,
            strict: $crate::expr::functions::table!(@strict $mode),
            variadic: $crate::expr::functions::table!(@variadic $mode),
            volatile: $crate::expr::functions::table!(@volatile $mode), body: $body,
        }),*]
    };
    (@strict strict) => { true };
    (@strict volatile) => { true };
    (@strict spread) => { true };
    (@strict lenient) => { false };
    (@strict variadic) => { false };
    (@variadic variadic) => { true };
    (@variadic spread) => { true };
    (@variadic $other:ident) => { false };
    (@volatile volatile) => { true };
    (@volatile $other:ident) => { false };
}
pub(super) use table;

/// Every table of functions.
static TABLES: &[&[Function]] = &[
    FUNCTIONS,
    super::json_functions::FUNCTIONS,
    super::inet_functions::FUNCTIONS,
    super::lsn_functions::FUNCTIONS,
    super::word_functions::FUNCTIONS,
    super::json_build::FUNCTIONS,
    super::json_path::FUNCTIONS,
    super::math_functions::FUNCTIONS,
    super::regexp::FUNCTIONS,
    super::byte_functions::FUNCTIONS,
    super::extension_functions::FUNCTIONS,
    super::crypt_functions::FUNCTIONS,
    super::citext_functions::FUNCTIONS,
    super::hstore_functions::FUNCTIONS,
    super::geometry_table::FUNCTIONS,
    super::time_functions::FUNCTIONS,
    super::date_fields::FUNCTIONS,
    super::to_char::FUNCTIONS,
    super::number_text::FUNCTIONS,
    super::array_functions::FUNCTIONS,
    super::range_functions::FUNCTIONS,
    super::bit_functions::FUNCTIONS,
    super::overlaps::FUNCTIONS,
    super::unicode_functions::FUNCTIONS,
    super::hash_functions::FUNCTIONS,
    super::size_functions::FUNCTIONS,
    super::snapshot_functions::FUNCTIONS,
    super::value_size::FUNCTIONS,
    super::visible_functions::FUNCTIONS,
];

/// All scalar functions.
pub fn all() -> impl Iterator<Item = &'static Function> {
    TABLES.iter().flat_map(|table| table.iter())
}

/// The functions of a name.
pub fn named(name: &str) -> &'static [&'static Function] {
    static BY_NAME: OnceLock<HashMap<&'static str, Vec<&'static Function>>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| {
        clearway_base::memory::uncharged(|| {
            let mut map: HashMap<&'static str, Vec<&'static Function>> = HashMap::new();
            all().for_each(|f| map.entry(f.name).or_default().push(f));
            map
        })
    });
    by_name.get(name).map_or(&[], Vec::as_slice)
}

/// Functions on text, numbers, dates and the session.
#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "length"(TEXT) INT4 strict t::length; "char_length"(TEXT) INT4 strict t::length;
    "character_length"(TEXT) INT4 strict t::length; "length"(BYTEA) INT4 strict t::octet_length;
    "octet_length"(TEXT) INT4 strict t::octet_length; "octet_length"(BYTEA) INT4 strict t::octet_length;
    "octet_length"(BPCHAR) INT4 strict t::octet_length; "length"(BPCHAR) INT4 strict t::bpchar_length;
    "char_length"(BPCHAR) INT4 strict t::bpchar_length; "character_length"(BPCHAR) INT4 strict t::bpchar_length;
    "lower"(TEXT) TEXT strict t::lower; "upper"(TEXT) TEXT strict t::upper; "initcap"(TEXT) TEXT strict t::initcap;
    "substring"(TEXT, INT4) TEXT strict t::substring; "substring"(TEXT, INT4, INT4) TEXT strict t::substring;
    "substr"(TEXT, INT4) TEXT strict t::substring; "substr"(TEXT, INT4, INT4) TEXT strict t::substring;
    "substring"(TEXT, TEXT) TEXT strict t::substring_regex;
    "left"(TEXT, INT4) TEXT strict t::left; "right"(TEXT, INT4) TEXT strict t::right;
    "btrim"(TEXT) TEXT strict t::btrim; "btrim"(TEXT, TEXT) TEXT strict t::btrim;
    "ltrim"(TEXT) TEXT strict t::ltrim; "ltrim"(TEXT, TEXT) TEXT strict t::ltrim;
    "rtrim"(TEXT) TEXT strict t::rtrim; "rtrim"(TEXT, TEXT) TEXT strict t::rtrim;
    "position"(TEXT, TEXT) INT4 strict t::position; "strpos"(TEXT, TEXT) INT4 strict t::position;
    "repeat"(TEXT, INT4) TEXT strict t::repeat; "reverse"(TEXT) TEXT strict t::reverse;
    "replace"(TEXT, TEXT, TEXT) TEXT strict t::replace; "translate"(TEXT, TEXT, TEXT) TEXT strict t::translate;
    "overlay"(TEXT, TEXT, INT4) TEXT strict t::overlay; "overlay"(TEXT, TEXT, INT4, INT4) TEXT strict t::overlay;
    "lpad"(TEXT, INT4) TEXT strict t::lpad; "lpad"(TEXT, INT4, TEXT) TEXT strict t::lpad;
    "rpad"(TEXT, INT4) TEXT strict t::rpad; "rpad"(TEXT, INT4, TEXT) TEXT strict t::rpad;
    "split_part"(TEXT, TEXT, INT4) TEXT strict t::split_part; "starts_with"(TEXT, TEXT) BOOL strict t::starts_with;
    "ascii"(TEXT) INT4 strict t::ascii; "chr"(INT4) TEXT strict t::chr; "md5"(TEXT) TEXT strict t::md5;
    "to_hex"(INT4) TEXT strict t::to_hex; "to_hex"(INT8) TEXT strict t::to_hex;
    "quote_ident"(TEXT) TEXT strict t::quote_ident; "quote_literal"(TEXT) TEXT strict t::quote_literal;
    "concat"(ANY) TEXT variadic t::concat; "concat_ws"(TEXT, ANY) TEXT variadic t::concat_ws;
    "format"(TEXT, ANY) TEXT variadic super::format::format; "format"(TEXT) TEXT lenient super::format::format;
    "like_escape"(TEXT, TEXT) TEXT strict t::like_escape; "like_escape"(BYTEA, BYTEA) BYTEA strict t::like_escape_bytes;
    "abs"(INT2) INT2 strict abs; "abs"(INT4) INT4 strict abs; "abs"(INT8) INT8 strict abs;
    "abs"(FLOAT4) FLOAT4 strict abs; "abs"(FLOAT8) FLOAT8 strict abs; "abs"(NUMERIC) NUMERIC strict abs;
    "mod"(INT2, INT2) INT2 strict modulo; "mod"(INT4, INT4) INT4 strict modulo; "mod"(INT8, INT8) INT8 strict modulo;
    "mod"(NUMERIC, NUMERIC) NUMERIC strict modulo; "div"(NUMERIC, NUMERIC) NUMERIC strict div;
    "round"(FLOAT8) FLOAT8 strict round; "round"(NUMERIC) NUMERIC strict round; "round"(NUMERIC, INT4) NUMERIC strict round;
    "trunc"(FLOAT8) FLOAT8 strict trunc; "trunc"(NUMERIC) NUMERIC strict trunc; "trunc"(NUMERIC, INT4) NUMERIC strict trunc;
    "floor"(FLOAT8) FLOAT8 strict floor; "floor"(NUMERIC) NUMERIC strict floor;
    "ceil"(FLOAT8) FLOAT8 strict ceil; "ceil"(NUMERIC) NUMERIC strict ceil;
    "ceiling"(FLOAT8) FLOAT8 strict ceil; "ceiling"(NUMERIC) NUMERIC strict ceil;
    "sign"(FLOAT8) FLOAT8 strict sign; "sign"(NUMERIC) NUMERIC strict sign;
    "sqrt"(NUMERIC) NUMERIC strict |a, _| exact(a, |n, _| n.sqrt());
    "exp"(NUMERIC) NUMERIC strict |a, _| exact(a, |n, _| n.exp());
    "ln"(NUMERIC) NUMERIC strict |a, _| exact(a, |n, _| n.ln());
    "log"(NUMERIC) NUMERIC strict |a, _| exact(a, |n, _| n.log(&Numeric::from(10)));
    "log10"(NUMERIC) NUMERIC strict |a, _| exact(a, |n, _| n.log(&Numeric::from(10)));
    "log"(NUMERIC, NUMERIC) NUMERIC strict |a, _| exact(a, |base, n| n.log(base));
    "power"(NUMERIC, NUMERIC) NUMERIC strict |a, _| exact(a, Numeric::pow);
    "pow"(NUMERIC, NUMERIC) NUMERIC strict |a, _| exact(a, Numeric::pow);
    "log"(FLOAT8) FLOAT8 strict log; "log10"(FLOAT8) FLOAT8 strict log;
    "sqrt"(FLOAT8) FLOAT8 strict |a, _| operators::square_root(f(a, 0));
    "power"(FLOAT8, FLOAT8) FLOAT8 strict |a, _| operators::power(f(a, 0), f(a, 1));
    "pow"(FLOAT8, FLOAT8) FLOAT8 strict |a, _| operators::power(f(a, 0), f(a, 1));
    "exp"(FLOAT8) FLOAT8 strict |a, _| operators::exponential(f(a, 0)); "ln"(FLOAT8) FLOAT8 strict ln;
    "numeric_sqrt"(NUMERIC) NUMERIC strict |a, _| exact(a, |n, _| n.sqrt());
    "numeric_exp"(NUMERIC) NUMERIC strict |a, _| exact(a, |n, _| n.exp());
    "numeric_ln"(NUMERIC) NUMERIC strict |a, _| exact(a, |n, _| n.ln());
    "numeric_log"(NUMERIC, NUMERIC) NUMERIC strict |a, _| exact(a, |base, n| n.log(base));
    "numeric_inc"(NUMERIC) NUMERIC strict |a, _| exact(a, |n, _| Ok(n.add(&Numeric::from(1))));
    "numeric_div_trunc"(NUMERIC, NUMERIC) NUMERIC strict div;
    "int4inc"(INT4) INT4 strict |a, e| operators::binary(operators::Op::Add, &a[0], &Datum::Int4(1), e.session);
    "dexp"(FLOAT8) FLOAT8 strict |a, _| operators::exponential(f(a, 0));
    "dlog1"(FLOAT8) FLOAT8 strict ln; "dlog10"(FLOAT8) FLOAT8 strict log;
    "dround"(FLOAT8) FLOAT8 strict round; "dtrunc"(FLOAT8) FLOAT8 strict trunc;
    "textlen"(TEXT) INT4 strict t::length;
    "pi"() FLOAT8 strict |_, _| Ok(Datum::Float8(std::f64::consts::PI));
    "random"() FLOAT8 volatile |_, e| Ok(Datum::Float8(e.session.random())); "setseed"(FLOAT8) VOID volatile set_seed;
    "current_query"() TEXT volatile |_, e| Ok(Datum::text(e.session.query()));
    "now"() TIMESTAMPTZ strict |_, e| Ok(Datum::TimestampTz(e.session.transaction_start()));
    "transaction_timestamp"() TIMESTAMPTZ strict |_, e| Ok(Datum::TimestampTz(e.session.transaction_start()));
    "statement_timestamp"() TIMESTAMPTZ strict |_, e| Ok(Datum::TimestampTz(e.session.statement_start()));
    "clock_timestamp"() TIMESTAMPTZ volatile |_, e| Ok(Datum::TimestampTz(e.session.clock()));
    "current_database"() NAME strict |_, e| Ok(Datum::text(e.session.database()));
    "current_schema"() NAME strict |_, e| Ok(e.session.schema().map_or(Datum::Null, Datum::text));
    "current_user"() NAME strict |_, e| Ok(Datum::text(e.session.current_user()?));
    "session_user"() NAME strict |_, e| Ok(Datum::text(e.session.session_user()?));
    "version"() TEXT strict |_, e| Ok(Datum::text(e.session.version()));
    "pg_backend_pid"() INT4 strict |_, e| Ok(Datum::Int4(e.session.backend_pid()));
    "current_setting"(TEXT) TEXT strict current_setting; "current_setting"(TEXT, BOOL) TEXT strict current_setting;
    "format_type"(OID, INT4) TEXT lenient format_type;
    "oidvectortypes"(OIDVECTOR) TEXT strict oidvector_types;
    "pg_encoding_to_char"(INT4) NAME strict |a, _| Ok(Datum::text(Encoding::of_number(i(a, 0)).map_or("", Encoding::name)));
    "timezone"(TEXT, TIMESTAMP) TIMESTAMPTZ strict timezone; "timezone"(TEXT, TIMESTAMPTZ) TIMESTAMP strict timezone;
    "pg_get_triggerdef"(OID) TEXT strict absent; "pg_get_triggerdef"(OID, BOOL) TEXT strict absent;
    "pg_get_statisticsobjdef_columns"(OID) TEXT strict absent; "pg_get_partkeydef"(OID) TEXT strict absent;
    "nameconcatoid"(NAME, OID) NAME strict c::name_and_oid;
    "_pg_char_max_length"(OID, INT4) INT4 strict c::char_max_length; "_pg_char_octet_length"(OID, INT4) INT4 strict c::char_octet_length;
    "_pg_numeric_precision"(OID, INT4) INT4 strict c::numeric_precision; "_pg_numeric_scale"(OID, INT4) INT4 strict c::numeric_scale;
    "_pg_numeric_precision_radix"(OID, INT4) INT4 strict c::numeric_radix;
    "_pg_datetime_precision"(OID, INT4) INT4 strict c::datetime_precision; "_pg_interval_type"(OID, INT4) TEXT strict c::interval_type;
    "pg_client_encoding"() NAME strict |_, e| Ok(Datum::text(e.session.format().encoding.name()));
    "pg_encoding_max_length"(INT4) INT4 strict |a, _| Ok(Encoding::of_number(i(a, 0)).map_or(Datum::Null, |e| Datum::Int4(e.max_length())));
    "pg_get_function_result"(OID) TEXT strict c::function_result; "pg_get_function_arguments"(OID) TEXT strict c::function_arguments;
    "pg_get_function_identity_arguments"(OID) TEXT strict c::function_identity_arguments;
    "pg_get_function_arg_default"(OID, INT4) TEXT strict c::function_arg_default;
    "pg_tablespace_location"(OID) TEXT strict |_, _| Ok(Datum::text("")); 
    "pg_char_to_encoding"(NAME) INT4 strict |a, _| Ok(Datum::Int4(Encoding::find(s(a, 0)).map_or(-1, Encoding::number)));
    "getdatabaseencoding"() NAME strict |_, _| Ok(Datum::text("UTF8"));
    "pg_typeof"(ANY) REGTYPE lenient |_, _| Err(SqlError::internal("pg_typeof is bound, not called"));
};

/// What is not kept: definitions of objects that can't exist.
fn absent(_: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Null)
}

pub(super) fn i(a: &[Datum], n: usize) -> i64 {
    a.get(n).and_then(Datum::as_i64).unwrap_or(0)
}

fn f(a: &[Datum], n: usize) -> f64 {
    a.get(n).and_then(Datum::as_f64).unwrap_or(0.0)
}

pub(super) fn s(a: &[Datum], n: usize) -> &str {
    a.get(n).and_then(Datum::as_str).unwrap_or("")
}

fn abs(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    operators::prefix(operators::Op::Abs, &a[0])
}

fn modulo(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    operators::binary(operators::Op::Rem, &a[0], &a[1], e.session)
}

fn div(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (Datum::Numeric(x), Datum::Numeric(y)) = (&a[0], &a[1]) else {
        return Err(wrong());
    };
    if matches!(x, Numeric::Infinity | Numeric::NegInfinity) {
        return Ok(Datum::numeric(x.div(y)?));
    }
    let rest = x.rem(y)?;
    Ok(Datum::numeric(x.sub(&rest).div(y)?.trunc(0)))
}

fn wrong() -> SqlError {
    SqlError::internal("a function got an argument of another type")
}

/// A function of a double or of a numeric with an optional scale.
fn real(a: &[Datum], float: fn(f64) -> f64, exact: fn(&Numeric, i32) -> Numeric) -> Result<Datum> {
    Ok(match &a[0] {
        Datum::Numeric(n) => Datum::numeric(exact(n, i(a, 1).clamp(-131_073, 16_383) as i32).within_limits()?),
        other => Datum::Float8(float(other.as_f64().ok_or_else(wrong)?)),
    })
}

fn round(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    real(a, f64::round_ties_even, Numeric::round)
}

fn trunc(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    real(a, f64::trunc, Numeric::trunc)
}

fn floor(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    real(a, f64::floor, |n, _| n.floor())
}

fn ceil(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    real(a, f64::ceil, |n, _| n.ceil())
}

fn sign(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let float = |v: f64| {
        if v > 0.0 {
            1.0
        } else if v < 0.0 {
            -1.0
        } else {
            0.0
        }
    };
    let exact = |n: &Numeric, _| match n {
        Numeric::NaN => Numeric::NaN,
        n => Numeric::from(i64::from(n.signum())),
    };
    real(a, float, exact)
}

/// A function of one numeric or of two.
fn exact(a: &[Datum], f: fn(&Numeric, &Numeric) -> Result<Numeric>) -> Result<Datum> {
    let Some(Datum::Numeric(first)) = a.first() else { return Err(wrong()) };
    match a.get(1) {
        None => f(first, first)?.within_limits().map(Datum::numeric),
        Some(Datum::Numeric(second)) => f(first, second)?.within_limits().map(Datum::numeric),
        Some(_) => Err(wrong()),
    }
}

fn log(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    ln(a, e).map(|_| Datum::Float8(f(a, 0).log10()))
}

fn ln(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let v = f(a, 0);
    let bad = |m: &str| Err(SqlError::new(code::INVALID_ARGUMENT_FOR_LOG, m));
    if v == 0.0 {
        return bad("cannot take logarithm of zero");
    }
    if v < 0.0 { bad("cannot take logarithm of a negative number") } else { Ok(Datum::Float8(v.ln())) }
}

/// setseed: the seed of the numbers that `random()` gives.
fn set_seed(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    let seed = f(a, 0);
    if !(-1.0..=1.0).contains(&seed) {
        let message =
            format!("setseed parameter {} is out of allowed range [-1,1]", crate::types::float::format8(seed));
        return Err(SqlError::new("22023", message));
    }
    e.session.seed_random(seed);
    Ok(Datum::Void)
}

fn current_setting(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    let name = s(a, 0);
    match e.session.setting(name) {
        Some(value) => Ok(Datum::text(value)),
        None if a.get(1).and_then(Datum::as_bool) == Some(true) => Ok(Datum::Null),
        None => Err(SqlError::new(code::UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))),
    }
}

/// The types of a function's arguments, with commas.
fn oidvector_types(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let Datum::Array(types) = &a[0] else { return Ok(Datum::Null) };
    let name =
        |ty: &Datum| ty.as_i64().and_then(|n| Oid::try_from(n).ok()).map(|ty| crate::types::format_type(ty.into()));
    Ok(Datum::text(types.values.iter().filter_map(name).collect::<Vec<_>>().join(", ")))
}

fn format_type(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    let (ty, modifier) = (i(a, 0) as Oid, a[1].as_i64());
    if ty == 0 {
        return Ok(Datum::text("-"));
    }
    let shown = crate::types::format_type(crate::types::SqlType { oid: ty, modifier: modifier.unwrap_or(-1) as i32 });
    // Written so, these two have one character, one bit; that a column has no length takes another name.
    Ok(Datum::text(match shown.strip_suffix("[]").unwrap_or(&shown) {
        "character" if modifier == Some(-1) => shown.replacen("character", "bpchar", 1),
        "bit" if modifier == Some(-1) => shown.replacen("bit", "\"bit\"", 1),
        _ => shown,
    }))
}

fn timezone(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let name = s(a, 0);
    Ok(match &a[1] {
        Datum::Timestamp(t) => Datum::TimestampTz(datetime::in_zone_to_utc(*t, name)?),
        Datum::TimestampTz(t) => Datum::Timestamp(datetime::utc_to_zone(*t, name)?),
        _ => return Err(wrong()),
    })
}

/// The type name that pg_typeof shows for an oid; kept here beside its row in the table.
pub fn typeof_value(ty: Oid) -> Datum {
    Datum::Oid(facts(ty).map_or(ty, |f| f.oid))
}
