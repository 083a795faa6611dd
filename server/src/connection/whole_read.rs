//! Reads whose messages have all arrived: Bind, Describe or not, Execute and Sync, for the unnamed portal.
//!
//! # Invariants
//! - TALK-5: what the client gets is what the messages one after the other would give it. A read that is refused has left nothing in the output, and the
//!   messages are handled in their turn.

use super::super::channel::Answers;
use super::{Immediate, SYNC, Talk};
use crate::sessions::{Session as _, Sessions};
use crate::wire::backend;
use crate::wire::frontend::{self, Frame};

/// Describe and Execute of the unnamed portal without a limit.
const DESCRIBE: &[u8] = b"D\0\0\0\x06P\0";
const EXECUTE: &[u8] = b"E\0\0\0\x09\0\0\0\0\0";

/// The messages behind a Bind that run its portal and nothing else, which have the same bytes always: Describe or not, Execute, Sync.
struct RestOfRead {
    describes: bool,
    bytes: usize,
}

impl RestOfRead {
    fn of(unread: &[u8]) -> Option<RestOfRead> {
        let described = unread.strip_prefix(DESCRIBE);
        let rest = described.unwrap_or(unread).strip_prefix(EXECUTE)?.strip_prefix(SYNC)?;
        Some(RestOfRead { describes: described.is_some(), bytes: unread.len() - rest.len() })
    }
}

impl<D: Sessions> Talk<'_, D> {
    /// As `handle_now`, for Bind. Where the messages behind it only run its portal, a statement that reads needs none: it is read at once.
    pub(super) fn bind_now(&mut self, frame: &Frame) -> Immediate {
        let (body, unread, answers) = self.channel.parts(frame);
        let Ok(bind) = frontend::bind(body) else { return Immediate::Nothing };
        if let Some(rest) = RestOfRead::of(unread).filter(|_| bind.portal.is_empty()) {
            self.backend.interrupt.forget();
            let mark = answers.0.len();
            backend::bind_complete(answers.0);
            if self.session.try_read(&bind, rest.describes, &mut Answers(answers.0)) {
                self.channel.take(rest.bytes);
                return if self.session.try_sync() { self.ready_now() } else { Immediate::Uncommitted };
            }
            answers.0.truncate(mark); // TALK-5
        }
        if !self.session.try_bind(&bind) {
            return Immediate::Nothing;
        }
        backend::bind_complete(answers.0);
        Immediate::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_messages_that_run_the_portal_are_taken_with_it() {
        let of = |parts: &[&[u8]]| RestOfRead::of(&parts.concat()).map(|rest| (rest.describes, rest.bytes));
        assert_eq!(of(&[DESCRIBE, EXECUTE, SYNC]), Some((true, 22)));
        assert_eq!(of(&[EXECUTE, SYNC, b"B"]), Some((false, 15)));
        assert_eq!(of(&[DESCRIBE, EXECUTE]), None, "Sync has not arrived, or something else comes before it");
        assert_eq!(of(&[DESCRIBE, SYNC]), None);
        assert_eq!(of(&[b"D\0\0\0\x06S\0", EXECUTE, SYNC]), None, "a statement is described");
        assert_eq!(of(&[b"E\0\0\0\x09\0\0\0\0\x01", SYNC]), None, "a limit of one row");
    }
}
