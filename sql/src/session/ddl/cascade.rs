//! What DROP tells of the objects that depend on what is dropped, in PostgreSQL's words.

use super::Ddl;
use crate::error::SqlError;

/// 2BP01: DROP without CASCADE. `detail` says what depends on what is dropped.
pub(super) fn needed(dropped: &str, detail: impl Into<String>) -> SqlError {
    SqlError::new("2BP01", format!("cannot drop {dropped} because other objects depend on it"))
        .detail(detail)
        .hint("Use DROP ... CASCADE to drop the dependent objects too.")
}

/// The same where each of `users` depends on `on`.
pub(super) fn needed_by<S: AsRef<str>>(users: &[S], dropped: &str, on: &str) -> SqlError {
    let lines: Vec<String> = users.iter().map(|user| format!("{} depends on {on}", user.as_ref())).collect();
    needed(dropped, lines.join("\n"))
}

impl Ddl<'_> {
    /// Tells the client in one NOTICE what CASCADE drops besides; nothing if there is nothing.
    pub(super) fn tell_cascade<S: AsRef<str>>(&self, users: &[S]) {
        let lines: Vec<String> = users.iter().map(|user| format!("drop cascades to {}", user.as_ref())).collect();
        let notice = match lines.as_slice() {
            [] => return,
            [one] => SqlError::new("00000", one.clone()),
            many => {
                let message = format!("drop cascades to {} other objects", many.len());
                SqlError::new("00000", message).detail(many.join("\n"))
            }
        };
        self.core.notice("NOTICE", notice);
    }
}
