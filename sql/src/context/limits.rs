//! Limits of roles and databases: what all their sessions have together, whatever these set.
//!
//! # Structure
//! ```text
//! ALTER ROLE ... SET limit_...     in the role's entry of the catalog          ALTER DATABASE likewise
//!   limit_group    a role or a database with limits: its turns, its share of the processors, its pool of memory, its undo, its violations
//!   limit_session  what one session has of its groups; it looks whether the catalog has changed at each statement
//! ```
//! The catalog alone keeps the settings `limit_...`: no session, file or start option sets them, and only superusers keep them for a role or
//! a database. They hold for the role that logged in, whatever it becomes by SET ROLE. They do not hold for superusers, as CONNECTION LIMIT does
//! not.
//!
//! # Life of a statement with limits
//! It begins: if its session has no transaction, it pauses until the session's processor time is paid, and takes a turn of each group with
//! `limit_statements`, the role's first -> it runs; its breaths, its account and its changed rows look at the limits -> the session's transaction
//! ends: its turns and its undo go back.
//!
//! # Invariants
//! - LIM-1: a session waits for a turn only while it holds no lock, and keeps its turn as long as its transaction: no transaction waits for
//!   a turn whose holder waits for that transaction.
//! - LIM-2: a session without limits pays one load of the catalog's number and one comparison for a statement.
//!
//! # Not here
//! CONNECTION LIMIT is judged where sessions begin (`crate::session`); its violations are counted here.

pub use super::limit_group::{Group, Groups, LimitKind, Scope, Values};
pub use super::limit_session::OfSession;

/// Whether a setting is a limit of roles and databases.
pub fn is_limit(name: &str) -> bool {
    name.get(..6).is_some_and(|head| head.eq_ignore_ascii_case("limit_")) && LimitKind::of_setting(name).is_some()
}
