//! What planner, executor and session need of a session: its parts that know no plan.
//!
//! Structure: `core` holds the parts that statements share, `cell` lends the engine's session, `settings` are the session's settings,
//! `configuration` is what the server has of them,
//! `modes` are the open transaction's by name,
//! `interrupt` stops a statement from outside, `backend` lists the sessions for the system views and for cancel requests,
//! `privileges` checks what the session's role may do, `names` finds relations by name, `errors` turns the engine's errors
//! into SQL errors, `obstacle` says who is in a statement's way, `witness` tells the lock manager who a session is, `log_line` is a line
//! of the server's log, `checkpoint` takes a checkpoint for a statement, `archived` the policy under which commits wait for the archive, `statements` what statements have cost, `routines` are functions that users define, `samples` what sessions were doing, `observed` how both are kept, `views` declares the system views.
//!
//! Not here: plans, their execution, transaction blocks. Nothing here imports them.

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
pub mod immutable;
pub mod index_terms;
pub mod instruments;
pub mod interrupt;
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
