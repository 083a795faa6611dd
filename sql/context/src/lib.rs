//! The parts of a session that the planner, the executor and the session layer share.
//!
//! # Structure
//! ```text
//! core           state that statements share            cell        lends the engine's session to one statement
//! settings       the session's settings (setting_table, setting_values, setting_text, units, accepted_settings, made_up)
//! steering       what settings ask of the planner (planner_settings)
//! configuration  the server's settings                  modes       the open transaction's modes as settings
//! names          finds relations by name                privileges  what the session's role may do
//! types          types that users define                routines    functions that users define
//! convert        SQL values to engine values            immutable   which expressions are immutable
//! index_terms    expressions of indexes                 deferred    deferred constraint checks
//! interrupt      stops a statement from outside         backend     the list of sessions
//! errors         engine errors as SQL errors            obstacle    describes the session that blocks a statement
//! notify         LISTEN and NOTIFY                      witness     answers the lock manager's questions about sessions
//! log_line       a line of the server's log             checkpoint  takes a checkpoint for a statement
//! archived       replies that wait for the archive      statements  the cost of statements, by digest
//! tags           tags in a statement's comment          recorded    statements recorded one by one
//! samples        what sessions were doing, by second    observed    statements and samples as text, kept over restarts
//! statement_sample  the slowest execution of a digest    notify_queue  notifications that are not read yet
//! digest, cost, tally  what statements by digest consist of: the text, the sums, the counts of a thread
//! waited         totals of waits, kept over restarts    instruments MySQL's names of wait events
//! limits         what all sessions of a role or a database may have together
//! changeable     the catalogs whose rows INSERT, UPDATE and DELETE change   comments  places of comments in the catalogs
//! password       verifiers of passwords                 exported  exported snapshots, with SQL's errors
//! views          declares the system views
//! ```
//!
//! # Not here
//! Plans, their execution, transaction blocks. No module here imports them.
#![forbid(unsafe_code)]

pub mod accepted_settings;
pub mod archived;
pub mod backend;
pub mod cell;
pub mod changeable;
pub mod checkpoint;
pub mod comments;
pub mod configuration;
pub mod convert;
pub mod core;
mod cost;
pub mod deferred;
mod digest;
pub mod errors;
mod exported;
pub mod extensions;
pub mod immutable;
pub mod index_terms;
pub mod instruments;
pub mod interrupt;
pub mod large_objects;
mod limit_group;
mod limit_session;
pub mod limits;
pub mod log_line;
mod made_up;
pub mod modes;
pub mod names;
pub mod notify;
pub mod notify_queue;
pub mod observed;
pub mod obstacle;
pub mod opclass;
pub mod operators;
pub mod password;
mod plan_cache_mode;
mod planner_settings;
pub mod postgres_settings;
pub mod privileges;
pub mod random;
pub mod rebuild;
pub mod recorded;
pub mod routines;
pub mod samples;
pub mod set_value;
mod setting_table;
mod setting_text;
mod setting_values;
pub mod settings;
pub mod shared_plans;
pub mod sort_form;
pub mod statement_sample;
pub mod statements;
pub mod steering;
pub mod tags;
pub mod tally;
pub mod types;
pub mod units;
pub mod views;
pub mod waited;
pub mod witness;
