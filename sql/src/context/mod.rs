//! What planner, executor and session need of a session: its parts that know no plan.
//!
//! # Structure
//! ```text
//! core           the parts that statements share        cell        lends the engine's session to one statement
//! settings       the session's settings                 configuration  what the server has of them
//! names          finds relations by name                privileges  what the session's role may do
//! modes          the open transaction's modes by name   routines    functions that users define
//! interrupt      stops a statement from outside         backend     the list of sessions, for views and cancel requests
//! errors         engine errors as SQL errors            obstacle    the session that is in a statement's way
//! witness        tells the lock manager which session an owner is
//! log_line       a line of the server's log             checkpoint  takes a checkpoint for a statement
//! archived       commits that wait for the archive      statements  what statements have cost
//! samples        what sessions were doing               observed    how long samples and statements are kept
//! limits         what all sessions of a role or a database have together
//! views          declares the system views
//! ```
//!
//! # Not here
//! Plans, their execution, transaction blocks. Nothing here imports them.

pub mod accepted_settings;
pub mod archived;
pub mod backend;
pub mod cell;
pub mod checkpoint;
pub mod configuration;
pub mod convert;
pub mod core;
pub mod deferred;
pub mod errors;
pub mod extensions;
pub mod immutable;
pub mod index_terms;
pub mod instruments;
pub mod interrupt;
mod limit_group;
mod limit_session;
pub mod limits;
pub mod log_line;
mod made_up;
pub mod modes;
pub mod names;
pub mod notify;
pub mod observed;
pub mod obstacle;
pub mod privileges;
pub mod recorded;
pub mod routines;
pub mod samples;
mod setting_table;
mod setting_text;
mod setting_values;
pub mod settings;
pub mod statements;
pub mod tags;
pub mod types;
mod units;
pub mod views;
pub mod waited;
pub mod witness;
