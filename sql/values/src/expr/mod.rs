//! Expressions bound to types, and their evaluation.
//!
//! # Structure
//! `bind` turns a syntax tree into a [`Bound`] tree, choosing operators and functions by PostgreSQL's rules (`resolve`) from tables of
//! data; `eval` computes its value; `aggregate` has the aggregates.
//!
//! # Invariants
//! - EXP-1: when an operator or function is evaluated, its arguments have the types of its row in the table: the binder inserts the
//!   casts.
//! - EXP-2: an operation that can wait (sequences, advisory locks, pg_sleep, subqueries) is a host call and is reached only through
//!   [`eval_async`]; [`eval`] never blocks.
//!
//! # Not here
//! Where rows come from, and the plans of subqueries.

pub mod accumulate;
pub mod aggregate;
pub mod are;
pub mod array_assign;
mod array_functions;
pub mod array_parts;
pub mod bind;
pub mod bind_assign;
mod bind_bytes;
mod bind_calls;
mod bind_columns;
mod bind_named;
mod bind_nodes;
pub mod bind_operators;
mod bind_ordered_sets;
pub mod bind_routines;
pub mod bind_rows;
pub mod bind_variables;
mod bind_windows;
mod bit_functions;
pub mod bound;
mod byte_functions;
mod called_operators;
mod catalog_functions;
mod citext_functions;
pub mod collect;
mod crypt_functions;
mod date_fields;
pub mod eval;
mod extension_functions;
mod format;
mod from_char;
pub mod functions;
mod geometry_functions;
pub mod geometry_subscript;
mod geometry_table;
mod hash_functions;
pub mod host;
pub mod hstore_functions;
mod hstore_record;
mod implied_calls;
mod inet_functions;
mod inlining;
mod inquiries;
pub mod int_condition;
mod json_aggregate;
pub mod json_assign;
mod json_build;
mod json_change;
mod json_functions;
mod json_moment;
mod json_path;
mod json_path_run;
mod json_populate;
pub mod known;
pub mod like;
pub mod long_array;
pub mod long_regex;
pub mod long_text;
mod lsn_functions;
mod math_functions;
pub mod nearest;
mod nearest_column;
mod number_format;
mod number_text;
mod operator_table;
pub mod operators;
mod overlaps;
mod params;
mod pattern;
mod range_functions;
mod regexp;
pub(crate) mod resolve;
mod scope;
pub mod set_table;
pub mod sets;
mod size_functions;
mod snapshot_functions;
mod statistics;
pub mod statistics_functions;
pub mod system_columns;
mod text_functions;
mod time_functions;
mod to_char;
mod to_number;
mod unicode_functions;
mod value_size;
mod visible_functions;
pub mod window;
mod word_functions;

pub use bind::{AggregateUse, Binder, Params, Reads, Scope, ScopeColumn, Subqueries};
pub use bind_columns::WholeRow;
pub use bind_nodes::with_common_modifier;
pub use bound::{Bound, BoundKind};
pub use eval::{Env, eval, eval_async};
pub use host::{Host, HostFunction, Session};
pub use json_populate::wants_definitions;
pub use system_columns::is_system_column;

/// Frees the patterns that the thread keeps for its next row: a thread that is about to end, and works for a session's account, in which they
/// were not entered.
pub fn forget_patterns() {
    pattern::forget();
    like::forget();
}
