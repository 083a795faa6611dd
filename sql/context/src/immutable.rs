//! Decides whether an expression is immutable in PostgreSQL's sense: it gives the same value for the same row at any time and in every
//! session.

use clearway_values::expr::operators::Op;
use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::{Oid, aliases, element_of, oid, user};

/// Functions whose value depends on settings or on the time of the transaction, whatever their arguments are.
const STABLE: &[&str] = &[
    "array_to_json",
    "array_to_string",
    "concat",
    "concat_ws",
    "current_catalog",
    "current_database",
    "current_date",
    "current_role",
    "current_schema",
    "current_schemas",
    "current_setting",
    "current_time",
    "current_timestamp",
    "current_user",
    "enum_first",
    "enum_last",
    "enum_range",
    "format",
    "format_type",
    "getdatabaseencoding",
    "json_build_array",
    "json_build_object",
    "json_populate_record",
    "json_populate_recordset",
    "jsonb_build_array",
    "jsonb_build_object",
    "jsonb_path_exists_tz",
    "jsonb_path_match_tz",
    "jsonb_path_query_array_tz",
    "jsonb_path_query_first_tz",
    "jsonb_path_query_tz",
    "jsonb_populate_record",
    "jsonb_populate_recordset",
    "localtime",
    "localtimestamp",
    "make_timestamptz",
    "now",
    "quote_nullable",
    "row_to_json",
    "session_user",
    "statement_timestamp",
    "to_char",
    "to_date",
    "to_json",
    "to_jsonb",
    "to_number",
    "transaction_timestamp",
    "user",
    "version",
];

/// Functions that go by the zone of the session when an argument is a timestamptz.
const BY_ZONE: &[&str] = &["date_part", "extract", "date_trunc", "age", "overlaps", "date_bin"];

fn is_text(ty: Oid) -> bool {
    matches!(ty, oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME | oid::UNKNOWN | oid::CHAR)
}

/// Whether the text of a type's values depends on settings, or on the catalog.
fn has_variable_text(ty: Oid) -> bool {
    matches!(ty, oid::DATE | oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::INTERVAL | oid::RECORD)
        || aliases::is_alias(ty)
        || user::is_enum(ty)
        || element_of(ty).is_some()
}

fn goes_by_zone(from: Oid, to: Oid) -> bool {
    const LOCAL: [Oid; 4] = [oid::DATE, oid::TIME, oid::TIMESTAMP, oid::TIMETZ];
    let into = |a: Oid, b: Oid| a == oid::TIMESTAMPTZ && LOCAL.contains(&b);
    into(from, to) || into(to, from) || (from, to) == (oid::TIME, oid::TIMETZ)
}

/// Whether a cast gives the same value whatever the settings are.
fn is_fixed_cast(from: Oid, to: Oid) -> bool {
    let (from, to) = (user::base(from.into()).oid, user::base(to.into()).oid);
    let reads = |ty: Oid| has_variable_text(ty) || matches!(ty, oid::TIME | oid::TIMETZ);
    let by_text = (is_text(to) && has_variable_text(from)) || (is_text(from) && reads(to));
    !by_text && !goes_by_zone(from, to)
}

/// The same of an expression by itself, without its parts.
pub fn is_fixed(e: &Bound) -> bool {
    let zoned = |list: &[Bound]| list.iter().any(|a| a.ty.oid == oid::TIMESTAMPTZ);
    match &e.kind {
        BoundKind::Call { function, args } | BoundKind::Spread { function, args } => {
            let by_pattern = function.name == "to_timestamp" && args.len() == 2;
            let by_zone = BY_ZONE.contains(&function.name) && zoned(args);
            let now = function.name == "age" && args.len() == 1;
            !function.volatile && !by_pattern && !by_zone && !now && !STABLE.contains(&function.name)
        }
        BoundKind::Cast { arg, .. } => is_fixed_cast(arg.ty.oid, e.ty.oid),
        BoundKind::Binary { op: Op::Add | Op::Sub, left, right } => {
            let types = [left.ty.oid, right.ty.oid];
            !(types.contains(&oid::TIMESTAMPTZ) && types.contains(&oid::INTERVAL))
        }
        BoundKind::Host { function, .. } => {
            let routine = function.routine().and_then(clearway_values::types::routine::of_oid);
            routine.is_some_and(|r| r.volatility == 'i')
        }
        BoundKind::Subquery { .. } | BoundKind::Unplaced(_) | BoundKind::Param(_) => false,
        _ => true,
    }
}

/// Whether an expression has the same value for the same row for ever.
pub fn is_immutable(e: &Bound) -> bool {
    !e.any(&|e| !is_fixed(e))
}
