//! Sessions over a database in memory or on a simulated disk. One program, since each program of tests is compiled and linked with all of the crate's
//! dependencies. Tests of what belongs to the whole process are programs of their own: `accounted`, `long_value`, `session`.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests, no part of the database")]

#[path = "../memory/mod.rs"]
mod memory;
#[path = "../sim/mod.rs"]
mod sim;

mod alone;
mod archived;
mod awaited;
mod cancel;
mod catalogs;
mod changes;
mod direct;
mod durability;
mod ends;
mod expr;
mod foreign_keys;
mod full_disk;
mod fuzz;
mod gate;
mod group_ends;
mod hashed_exists;
mod identity;
mod index_only;
mod information_schema;
mod join_sides;
mod large_objects;
mod lateral_joins;
mod locking;
mod narrow_rows;
mod offsets;
mod ordered_reads;
mod origins;
mod plan_choice;
mod points;
mod select;
mod semi_joins;
mod shared_plans;
mod short_entries;
mod steering;
mod stored_arrays;
mod structured_keys;
mod syntax;
mod templates;
mod text_updates;
mod two_indexes;
mod view_breaths;
mod waits;
mod walked_deletes;
