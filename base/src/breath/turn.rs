//! Turns: of the statements that compute for long, as many run at a time as the machine has processors, each for a slice; the others wait
//! in line.
//!
//! # Life of a turn
//! `enter` -> a turn is free: the computation begins; else it waits in line until another leaves -> a slice later `rotate`: the turn passes
//! to the head of the line, if there is one -> `leave`.
//!
//! # Invariants
//! - TURN-A: while any computation waits in line, all turns are taken.
//! - TURN-B: if a future is dropped before it has seen that it was granted a turn, the turn passes to the next in line.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::sync::Mutex;

struct Line {
    taken: usize,
    next_ticket: u64,
    waiting: VecDeque<(u64, Waker)>,
    granted: Vec<u64>,
}

/// The turns of a process.
pub(super) struct Turns {
    max: usize,
    line: Mutex<Line>,
}

impl Turns {
    pub fn new(max: usize) -> Self {
        let line = Line { taken: 0, next_ticket: 1, waiting: VecDeque::new(), granted: Vec::new() };
        Self { max: max.max(1), line: Mutex::new("base/breath/turns", line) }
    }

    /// Waits for a turn and takes it.
    pub fn enter(&self) -> Enter<'_> {
        Enter { turns: self, ticket: 0 }
    }

    /// Whether a task waits in the queue.
    pub fn is_wanted(&self) -> bool {
        !self.line.lock().waiting.is_empty()
    }

    /// Gives a turn back: to the head of the line, if there is one.
    pub fn leave(&self) {
        let mut line = self.line.lock();
        let Some((ticket, waker)) = line.waiting.pop_front() else {
            assert!(line.taken > 0, "a turn that nobody has is given back");
            line.taken -= 1;
            return;
        };
        line.granted.push(ticket); // TURN-A
        drop(line);
        waker.wake();
    }
}

/// The wait for a turn.
pub(super) struct Enter<'a> {
    turns: &'a Turns,
    /// 0: not in line.
    ticket: u64,
}

impl Future for Enter<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut line = self.turns.line.lock();
        if self.ticket == 0 {
            if line.taken < self.turns.max {
                line.taken += 1;
                return Poll::Ready(());
            }
            let ticket = line.next_ticket;
            line.next_ticket += 1;
            line.waiting.push_back((ticket, cx.waker().clone()));
            drop(line);
            self.ticket = ticket;
            return Poll::Pending;
        }
        if let Some(at) = line.granted.iter().position(|t| *t == self.ticket) {
            line.granted.swap_remove(at);
            drop(line);
            self.ticket = 0;
            return Poll::Ready(());
        }
        let ticket = self.ticket;
        if let Some(place) = line.waiting.iter_mut().find(|(t, _)| *t == ticket) {
            place.1.clone_from(cx.waker());
        }
        Poll::Pending
    }
}

impl Drop for Enter<'_> {
    fn drop(&mut self) {
        if self.ticket == 0 {
            return;
        }
        let mut line = self.turns.line.lock();
        if let Some(at) = line.granted.iter().position(|t| *t == self.ticket) {
            line.granted.swap_remove(at);
            drop(line);
            self.turns.leave(); // TURN-B
        } else {
            line.waiting.retain(|(t, _)| *t != self.ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;

    fn poll(future: Pin<&mut Enter<'_>>) -> bool {
        future.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn turns_pass_down_the_line_in_order_and_over_those_who_left() {
        let turns = Turns::new(1);
        assert!(poll(pin!(turns.enter())));
        let (mut a, mut b, mut c) = (Box::pin(turns.enter()), Box::pin(turns.enter()), Box::pin(turns.enter()));
        assert!(!poll(a.as_mut()) && !poll(b.as_mut()) && !poll(c.as_mut()), "TURN-A");
        turns.leave();
        assert!(!poll(b.as_mut()), "the head of the line is first");
        drop(a);
        assert!(poll(b.as_mut()), "TURN-B");
        drop(c);
        assert!(!turns.is_wanted());
        turns.leave();
        assert!(poll(pin!(turns.enter())), "the turn is free again");
    }
}
