//! Turns that a session waits for before it does what a message wants: those of writers of contended rows (`crate::turns`), and those at one row.

use clearway_base::sync::sleep_until_ns;
use clearway_base::waits::{Object, WaitEvent, in_wait};
use clearway_sql::session::TransactionStatus;

use super::{Immediate, Talk};
use crate::sessions::{Session as _, Sessions};
use crate::turns::READS;
use crate::wire::frontend::Frame;

impl<D: Sessions> Talk<'_, D> {
    /// A session that only reads lets those go first that write contended rows (TURN-2).
    pub(super) async fn give_way(&mut self) {
        let only_reads = self.reads >= READS && self.session.status() == TransactionStatus::Idle;
        if let Some(until_ns) = self.turns.held_until().filter(|_| only_reads) {
            in_wait(WaitEvent::WritersTurn, Object::NONE, sleep_until_ns(until_ns)).await;
        }
    }

    /// As `handle_now`; once more after the session has waited for its turn at a row.
    pub(super) async fn handle_in_turn(&mut self, frame: &Frame) -> Immediate {
        let done = self.handle_now(frame);
        if !matches!(done, Immediate::Nothing) || !self.session.wants_turn() {
            return done;
        }
        self.session.wait_for_turn().await;
        self.handle_now(frame)
    }
}
