//! Turns: at most so many callers have a turn at a time; the others wait in a queue.
//!
//! Statements that compute for long take turns, as many at a time as the machine has processors, each for a slice. Transactions of a role with
//! a limit take turns, each to its end.
//!
//! # Life of a turn
//! `enter` -> if a turn is free, the caller takes it; else it waits in the queue until a turn is granted to it -> a long computation, a slice
//! later, if `is_wanted`: `leave`, which grants the turn to the head of the queue, and `enter` again -> at the end of the poll, or of the
//! transaction, `leave`.
//!
//! # Invariants
//! - BRE-5: while any caller waits in the queue, all turns are taken.
//! - BRE-6: if a future is dropped after it was granted a turn and before it was polled again, the turn passes to the head of the queue.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::sync::Mutex;

#[derive(Debug)]
struct Line {
    max: usize,
    taken: usize,
    next_ticket: u64,
    waiting: VecDeque<(u64, Waker)>,
    granted: Vec<u64>,
}

impl Line {
    /// Grants free turns to the head of the line; the wakers are to be woken outside of the mutex.
    fn grant(&mut self) -> Vec<Waker> {
        let mut woken = Vec::new();
        while self.taken < self.max
            && let Some((ticket, waker)) = self.waiting.pop_front()
        {
            self.taken += 1;
            self.granted.push(ticket); // BRE-5
            woken.push(waker);
        }
        woken
    }
}

/// The turns of a process, or of a group of sessions.
#[derive(Debug)]
pub struct Turns {
    line: Mutex<Line>,
}

impl Turns {
    /// At most `max` turns at a time.
    pub fn new(max: usize) -> Self {
        let (waiting, granted) = (VecDeque::new(), Vec::new());
        let line = Line { max: max.max(1), taken: 0, next_ticket: 1, waiting, granted };
        Self { line: Mutex::new("base/breath/turns", line) }
    }

    /// Changes how many there are. Turns beyond a smaller number end as they would have.
    pub fn set_max(&self, max: usize) {
        let woken = {
            let mut line = self.line.lock();
            line.max = max.max(1);
            line.grant()
        };
        woken.into_iter().for_each(Waker::wake);
    }

    /// Waits for a turn and takes it.
    pub fn enter(&self) -> Enter<'_> {
        Enter { turns: self, ticket: 0 }
    }

    /// Takes a turn if one is free.
    pub fn try_enter(&self) -> bool {
        let mut line = self.line.lock();
        let free = line.taken < line.max;
        line.taken += usize::from(free);
        free
    }

    /// Takes a turn, free or not.
    pub fn enter_anyway(&self) {
        self.line.lock().taken += 1;
    }

    /// Whether a task waits in the queue.
    pub fn is_wanted(&self) -> bool {
        !self.line.lock().waiting.is_empty()
    }

    /// Turns taken, and callers that wait.
    pub fn counts(&self) -> (usize, usize) {
        let line = self.line.lock();
        (line.taken, line.waiting.len())
    }

    /// Gives a turn back: to the head of the line, if there is one.
    pub fn leave(&self) {
        let woken = {
            let mut line = self.line.lock();
            assert!(line.taken > 0, "a turn that was not taken is given back");
            line.taken -= 1;
            line.grant()
        };
        woken.into_iter().for_each(Waker::wake);
    }
}

/// The wait for a turn.
#[derive(Debug)]
pub struct Enter<'a> {
    turns: &'a Turns,
    /// 0: not in line.
    ticket: u64,
}

impl Future for Enter<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut line = self.turns.line.lock();
        if self.ticket == 0 {
            if line.taken < line.max {
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
            self.turns.leave(); // BRE-6
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
        assert!(!poll(a.as_mut()) && !poll(b.as_mut()) && !poll(c.as_mut()), "BRE-5");
        turns.leave();
        assert!(!poll(b.as_mut()), "the head of the line is first");
        drop(a);
        assert!(poll(b.as_mut()), "BRE-6");
        drop(c);
        assert!(!turns.is_wanted());
        turns.leave();
        assert!(poll(pin!(turns.enter())), "the turn is free again");
    }

    #[test]
    fn the_number_of_turns_changes_while_they_are_taken() {
        let turns = Turns::new(1);
        assert!(turns.try_enter() && !turns.try_enter());
        let (mut a, mut b) = (Box::pin(turns.enter()), Box::pin(turns.enter()));
        assert!(!poll(a.as_mut()) && !poll(b.as_mut()));
        assert_eq!(turns.counts(), (1, 2));
        turns.set_max(3);
        assert!(poll(a.as_mut()) && poll(b.as_mut()), "BRE-5");
        turns.set_max(1);
        turns.enter_anyway();
        assert_eq!(turns.counts(), (4, 0));
        for _ in 0..3 {
            turns.leave();
            assert!(!turns.try_enter(), "turns beyond the smaller number are not given to others");
        }
        turns.leave();
        assert!(turns.try_enter());
    }
}
