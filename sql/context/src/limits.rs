//! Limits of roles and databases: the most that all sessions of a role or a database may use together. The sessions' own settings don't
//! change them.
//!
//! # Structure
//! ```text
//! ALTER ROLE ... SET limit_...     in the role's entry of the catalog          ALTER DATABASE likewise
//!   limit_group    a role or a database with limits: its turns, its share of the processors, its pool of memory, its undo, its violations
//!   limit_session  what one session uses of its groups; it checks at each statement whether the catalog has changed
//! ```
//! The settings `limit_...` are in the catalog only: no session, file or start option sets them, and only superusers may set them for a
//! role or a database. They apply to the role that logged in, also after SET ROLE. Like CONNECTION LIMIT, they do not apply to
//! superusers.
//!
//! # Life of a statement with limits
//! It begins: if its session has no open transaction, it pauses until the session's processor time is paid, and takes a turn of each
//! group with `limit_statements`, the role's first -> it runs; its breaths, its account and its changed rows check the limits -> the
//! session's transaction ends: its turns and its undo are returned.
//!
//! # Invariants
//! - LIM-1: a session waits for a turn only while it holds no lock, and keeps its turn until its transaction ends: no transaction waits
//!   for a turn whose holder waits for that transaction.
//! - LIM-2: a session without limits pays one load of the catalog's number and one comparison per statement.
//!
//! # Not here
//! CONNECTION LIMIT is checked where sessions begin (`crate::session`); its violations are counted here.

pub use super::limit_group::{Group, Groups, LimitKind, Scope, Values};
pub use super::limit_session::OfSession;

/// Whether a setting is a limit of roles and databases.
pub fn is_limit(name: &str) -> bool {
    name.get(..6).is_some_and(|head| head.eq_ignore_ascii_case("limit_")) && LimitKind::of_setting(name).is_some()
}
