//! Turns at a row: of the short transactions that change one row, each runs from its begin to its commit before the next begins.
//!
//! A short transaction holds its row for some microseconds, within one poll. If its thread loses its processor meanwhile, the sessions on
//! other threads find the row taken. Each of them would enter the row's lock queue, by the general path of its statement, and be handed the
//! lock later, for three times the processor time of an update. While the queue has sessions, every further one has to queue too, so
//! that such a queue could last for as long as the load (docs/measured/hot-paths.md). A session that waits for its turn instead has not
//! begun its transaction yet, and its statement stays on the fast path.
//!
//! # Life of a turn
//! ```text
//! take ──► held ──► given back after the commit; the first that waits is woken, and any session may take the turn
//!   ╰──► refused ──► wait ──► held
//! ```
//! A session that finds the row itself locked gives its turn back and waits in the lock's queue, as a brief request (LKM-17). When it is called there, it waits for
//! a turn again, and takes the lock with it ([`RowTurn::taking`]).
//!
//! # Invariants
//! - TRN-1: a place has at most one holder.
//! - TRN-2: a session that waits for a turn has no transaction: no id, no snapshot, no lock but advisory ones of the session. By TRN-3 the
//!   holder of the turn waits for none of those, so the waits-for graph needs no edge for the wait. A session that was
//!   called (TRN-6) has a transaction, with a snapshot and a place in the row's queue; by TRN-3 the holder of the turn waits for neither.
//! - TRN-3: a turn is given back before its holder waits for anything, by the session, which calls [`RowTurn::give_back`] wherever it leaves
//!   the fast path. So a turn lasts as long as one poll.
//! - TRN-4: no wake-up is lost: `WAITING` is set while the queue is not empty; a session that enters the queue tries again after it has set
//!   it, and one that gives back reads it with the same instruction; a waiter that is dropped after it was woken wakes the next.
//! - TRN-5: a session waits for a turn only in a task that is polled whenever it is woken: those of a server, and calls of the library that
//!   park their thread. One that was woken and is not polled would leave those behind it asleep. Other calls of the library take a turn
//!   that is free, and go the general path where it is not.
//! - TRN-6: a session takes the lock for which it was called with its turn, in one poll, and gives the turn back in the same poll if the lock was taken. So while
//!   waiters of this kind have the row one after the other, a session that comes with its turn does not meet their lock.
//!
//! # Latch order
//! The mutex of a place, with nothing inside it. Wakers are called without it.
//!
//! # Not here
//! Rows that a longer transaction has, and how a wait for a turn is shown: the lock manager (LKM-15).

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

use clearway_base::sync::Mutex;
use clearway_storage::ids::TreeId;
use clearway_txn::lockmgr::{LockManager, LockMode, LockTag, Owner};

/// Rows share a place if their digests agree in this. Two rows that are changed at the same moment seldom do.
const PLACES: usize = 256;

/// The turn is held.
const TAKEN: u32 = 1;
/// The queue is not empty.
const WAITING: u32 = 2;

/// The turns of a database.
pub struct RowTurns {
    places: Box<[Place]>,
}

#[repr(align(64))]
struct Place {
    state: AtomicU32,
    /// The slot number of the session that has the turn, or had it last.
    holder: AtomicU32,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    arrivals: u64,
    /// In the order of their numbers.
    waiting: VecDeque<(u64, Waker)>,
}

impl Queue {
    /// Where this number stands, or where it belongs. With 1,000 clients some hundreds wait for one row.
    fn place_of(&self, number: u64) -> Result<usize, usize> {
        self.waiting.binary_search_by_key(&number, |(number, _)| *number)
    }
}

impl Default for RowTurns {
    fn default() -> Self {
        let queue = || Mutex::new("engine/row_turn", Queue::default());
        RowTurns {
            places: (0..PLACES)
                .map(|_| Place { state: AtomicU32::new(0), holder: AtomicU32::new(0), queue: queue() })
                .collect(),
        }
    }
}

impl Place {
    fn take(&self, session: u32) -> bool {
        let taken = self.state.fetch_or(TAKEN, AcqRel) & TAKEN == 0;
        if taken {
            self.holder.store(session, Relaxed);
        }
        taken
    }

    fn give_back(&self) {
        let before = self.state.fetch_and(!TAKEN, AcqRel);
        assert!(before & TAKEN != 0, "TRN-1: a turn is given back once");
        if before & WAITING != 0 {
            self.wake_first();
        }
    }

    #[cold]
    fn wake_first(&self) {
        let first = {
            let mut queue = self.queue.lock();
            let first = queue.waiting.pop_front();
            self.show(&queue);
            first
        };
        if let Some((_, waker)) = first {
            waker.wake();
        }
    }

    /// TRN-4
    fn show(&self, queue: &Queue) {
        if queue.waiting.is_empty() {
            self.state.fetch_and(!WAITING, AcqRel);
        } else {
            self.state.fetch_or(WAITING, AcqRel);
        }
    }
}

/// A session's turn.
pub struct RowTurn {
    all: Arc<RowTurns>,
    /// The session's slot number; 0: it takes no turns (TRN-5).
    session: u32,
    /// Its task is polled whenever it is woken, also while it waits for a row's lock (TRN-5).
    polled: bool,
    held: Option<usize>,
    refused: Option<Refused>,
    /// When the statement began that waits for its turn, or has just waited; 0: none has.
    statement_since_ns: u64,
}

/// A turn that another session had.
struct Refused {
    place: usize,
    /// The row.
    tag: LockTag,
    /// The statement that would change it.
    text: Arc<str>,
}

impl RowTurn {
    /// That of a session which has none and takes none so far.
    pub fn new(all: Arc<RowTurns>) -> RowTurn {
        RowTurn { all, session: 0, polled: false, held: None, refused: None, statement_since_ns: 0 }
    }

    /// The session with this slot number takes turns from now on (TRN-5).
    pub fn begin(&mut self, session: u32) {
        self.session = session;
    }

    /// Its waits for locks are polled whenever they are woken, too (TRN-5).
    pub fn is_polled_when_woken(&mut self) {
        self.polled = true;
    }

    /// Whether it may wait for a row's lock by a brief request (TRN-6).
    pub fn can_be_called(&self) -> bool {
        self.session != 0 && self.polled
    }

    /// Whether it has a turn.
    #[inline]
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Takes the turn at the row of this digest; false: another session has it.
    #[inline]
    pub fn take(&mut self, row: u64) -> bool {
        let place = row as usize % PLACES;
        if self.session == 0 || self.held == Some(place) {
            return true;
        }
        self.give_back();
        let taken = self.all.places[place].take(self.session);
        if taken {
            self.held = Some(place);
        }
        taken
    }

    /// The turn at the row of this digest was refused to a statement, which began at this moment and can wait for it.
    #[cold]
    pub fn was_refused(&mut self, row: u64, (tree, key): (TreeId, &[u8]), text: &Arc<str>, since_ns: u64) {
        let tag = LockTag::Row { tree, key: key.into() };
        self.refused = Some(Refused { place: row as usize % PLACES, tag, text: text.clone() });
        self.statement_since_ns = since_ns;
    }

    /// When the statement that comes now began, if it has waited for its turn.
    #[inline]
    pub fn statement_since(&mut self) -> Option<u64> {
        Some(std::mem::take(&mut self.statement_since_ns)).filter(|since_ns| *since_ns != 0)
    }

    /// The statement that has waited failed before it went on: what comes next is another one.
    pub fn forget_statement(&mut self) {
        self.statement_since_ns = 0;
    }

    /// Whether the latest turn was refused and not waited for since.
    #[inline]
    pub fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// Gives the turn back, if there is one (TRN-3).
    #[inline]
    pub fn give_back(&mut self) {
        self.refused = None;
        if let Some(place) = self.held.take() {
            self.all.places[place].give_back();
        }
    }

    /// Waits for the turn that was refused; the session has it then. The wait is shown as one for the row's lock (LKM-15).
    pub async fn wait(&mut self, locks: &LockManager, owner: &Arc<Owner>) {
        let Some(Refused { place: at, tag, text }) = self.refused.take() else { return };
        let place = &self.all.places[at];
        let turn = Waiting { place, session: self.session, number: None };
        let behind = place.holder.load(Relaxed);
        locks.wait_in_turn((owner, &text), (tag, LockMode::RowNoKeyUpdate), behind, turn).await;
        self.held = Some(at);
    }
}

impl RowTurn {
    /// Waits until `lock`, a brief request of this owner for the lock of the row of this digest, has ended (TRN-6). The session has the turn when it has the lock.
    pub async fn taking<F: Future>(&mut self, row: u64, owner: &Owner, lock: F) -> F::Output {
        let all = self.all.clone();
        let at = row as usize % PLACES;
        let mut turn = Waiting { place: &all.places[at], session: self.session, number: None };
        let mut lock = pin!(lock);
        poll_fn(|cx| {
            loop {
                if owner.is_called() && self.held.is_none() && Pin::new(&mut turn).poll(cx).is_ready() {
                    self.held = Some(at);
                }
                owner.has_turn(self.held.is_some());
                let polled = lock.as_mut().poll(cx);
                owner.has_turn(false);
                if polled.is_ready() {
                    return polled;
                }
                self.give_back();
                // Called since it was asked whether it is: perhaps before there was a waker.
                if !owner.is_called() || turn.number.is_some() {
                    return polled;
                }
            }
        })
        .await
    }
}

impl Drop for RowTurn {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// One session in the queue of a place.
struct Waiting<'a> {
    place: &'a Place,
    session: u32,
    /// Its number in the queue; none: it has never stood there, or has the turn.
    number: Option<u64>,
}

impl Future for Waiting<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let place = self.place;
        let mut queue = place.queue.lock();
        let stands = self.number.is_some_and(|number| queue.place_of(number).is_ok());
        // One that was woken mostly finds the turn free, and need not enter the queue again.
        if !stands && place.take(self.session) {
            self.number = None;
            return Poll::Ready(());
        }
        let number = match self.number {
            Some(number) => number,
            None => {
                queue.arrivals += 1;
                *self.number.insert(queue.arrivals)
            }
        };
        match queue.place_of(number) {
            Ok(at) => queue.waiting[at].1.clone_from(cx.waker()),
            // It comes, or it was woken and another session took the turn.
            Err(at) => queue.waiting.insert(at, (number, cx.waker().clone())),
        }
        place.show(&queue);
        if !place.take(self.session) {
            return Poll::Pending; // TRN-4: a session that gives back from now on sees `WAITING`
        }
        self.number = None;
        if let Ok(at) = queue.place_of(number) {
            queue.waiting.remove(at);
        }
        place.show(&queue);
        Poll::Ready(())
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let mut queue = self.place.queue.lock();
        let stands = queue.place_of(number);
        let was_woken = stands.map(|at| queue.waiting.remove(at)).is_err();
        self.place.show(&queue);
        drop(queue);
        // TRN-4: its wake-up is the next one's, unless a holder will wake that one.
        if was_woken && self.place.state.load(Acquire) & TAKEN == 0 {
            self.place.wake_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::task::{Context, Poll, Wake, Waker};

    use clearway_storage::ids::TreeId;
    use clearway_txn::lockmgr::{LockManager, Owner};

    use super::{PLACES, RowTurn, RowTurns};

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    fn session(all: &Arc<RowTurns>) -> RowTurn {
        let mut turn = RowTurn::new(all.clone());
        turn.begin(1);
        turn
    }

    /// Takes the turn, or is refused and can wait for it.
    fn ask(turn: &mut RowTurn, row: u64) -> bool {
        let taken = turn.take(row);
        if !taken {
            turn.was_refused(row, (TreeId(9), b"key"), &"update".into(), 0);
        }
        taken
    }

    fn lock_manager() -> (LockManager, Arc<Owner>, Arc<Owner>) {
        let locks = LockManager::new();
        let (one, other) = (locks.register(1), locks.register(2));
        (locks, one, other)
    }

    /// TRN-5
    #[test]
    fn a_session_that_takes_no_turns_is_never_refused() {
        let all = Arc::new(RowTurns::default());
        let (mut a, mut b) = (session(&all), RowTurn::new(all.clone()));
        assert!(a.take(7) && b.take(7) && !b.is_refused());
        drop(b);
        assert!(!session(&all).take(7), "a has it");
    }

    /// TRN-1
    #[test]
    fn a_row_has_one_turn_at_a_time_and_other_rows_have_their_own() {
        let all = Arc::new(RowTurns::default());
        let (mut a, mut b) = (session(&all), session(&all));
        assert!(a.take(7) && a.take(7));
        assert!(!ask(&mut b, 7) && b.is_refused());
        assert!(!b.take(7 + PLACES as u64), "the same place");
        assert!(b.take(8) && !b.is_refused());
        a.give_back();
        assert!(b.take(7), "it gives back the other");
        assert!(a.take(8));
        drop(b);
        assert!(a.take(7), "a session that ends gives its turn back");
    }

    /// TRN-4
    #[test]
    fn the_first_that_waits_is_woken_and_keeps_its_place_if_another_comes_first() {
        let all = Arc::new(RowTurns::default());
        let (mut a, mut b, mut c) = (session(&all), session(&all), session(&all));
        let (to_b, to_c) = (Arc::new(Count::default()), Arc::new(Count::default()));
        let (wakes_b, wakes_c) = (Waker::from(to_b.clone()), Waker::from(to_c.clone()));
        assert!(a.take(1) && !ask(&mut b, 1) && !ask(&mut c, 1));
        let (locks, owner_b, owner_c) = lock_manager();
        {
            let (mut b, mut c) = (pin!(b.wait(&locks, &owner_b)), pin!(c.wait(&locks, &owner_c)));
            let mut poll_b = || b.as_mut().poll(&mut Context::from_waker(&wakes_b));
            assert_eq!(poll_b(), Poll::Pending);
            assert_eq!(c.as_mut().poll(&mut Context::from_waker(&wakes_c)), Poll::Pending);
            a.give_back();
            assert_eq!((to_b.0.load(Relaxed), to_c.0.load(Relaxed)), (1, 0));
            assert!(a.take(1), "the turn is handed to no session");
            assert_eq!(poll_b(), Poll::Pending);
            a.give_back();
            assert_eq!((to_b.0.load(Relaxed), to_c.0.load(Relaxed)), (2, 0), "it is first again");
            assert_eq!(poll_b(), Poll::Ready(()));
        }
        assert!(!a.take(1), "TRN-1");
        b.give_back();
        assert_eq!(to_c.0.load(Relaxed), 0, "c has left");
        assert!(a.take(1));
    }

    /// TRN-4
    #[test]
    fn one_that_is_dropped_after_it_was_woken_wakes_the_next() {
        let all = Arc::new(RowTurns::default());
        let (mut a, mut b, mut c) = (session(&all), session(&all), session(&all));
        let (to_b, to_c) = (Arc::new(Count::default()), Arc::new(Count::default()));
        let (wakes_b, wakes_c) = (Waker::from(to_b.clone()), Waker::from(to_c.clone()));
        assert!(a.take(1) && !ask(&mut b, 1) && !ask(&mut c, 1));
        let (locks, owner_b, owner_c) = lock_manager();
        let mut c = Box::pin(c.wait(&locks, &owner_c));
        {
            let mut b = Box::pin(b.wait(&locks, &owner_b));
            assert_eq!(b.as_mut().poll(&mut Context::from_waker(&wakes_b)), Poll::Pending);
            assert_eq!(c.as_mut().poll(&mut Context::from_waker(&wakes_c)), Poll::Pending);
            a.give_back();
            assert_eq!((to_b.0.load(Relaxed), to_c.0.load(Relaxed)), (1, 0));
        }
        assert_eq!(to_c.0.load(Relaxed), 1);
        assert_eq!(c.as_mut().poll(&mut Context::from_waker(&wakes_c)), Poll::Ready(()));
    }

    /// TRN-1 and TRN-4 on two threads: every turn adds one, and no session stays asleep.
    #[test]
    fn turns_of_two_threads_do_not_overlap() {
        let all = Arc::new(RowTurns::default());
        let sum = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (all, sum) = (all.clone(), sum.clone());
                clearway_base::sync::spawn_thread("turns", move || {
                    let (locks, owner, _) = lock_manager();
                    let mut turn = session(&all);
                    for _ in 0..20_000 {
                        if !ask(&mut turn, 3) {
                            clearway_base::sync::block_on(turn.wait(&locks, &owner));
                        }
                        let before = sum.load(Relaxed);
                        std::hint::spin_loop();
                        sum.store(before + 1, Relaxed);
                        turn.give_back();
                    }
                })
                .expect("a thread")
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert_eq!(sum.load(Relaxed), 60_000, "TRN-1");
    }
}
