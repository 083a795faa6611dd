//! The wrappers of every wait: a guard around a call that blocks the thread, and a future around a future that suspends the task.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};

use pin_project_lite::pin_project;

use super::books::Mark;
use super::event::{WaitClass, WaitEvent};
use super::session::{CurrentWait, Object, SessionStats, add_time};
use super::{clock, context, processor, totals};

/// A wait that blocks the calling thread, from `begin` until the guard is dropped: around a system call, a join, a
/// pause. Parking and spinning for a latch or a mutex open one of their own.
///
/// The session of the calling task or thread shows it meanwhile; thread, session and open books count it when it ends.
///
/// # Panics
/// `begin` panics while the calling thread holds a latch, unless the event is of class LWLock: I/O and waits under a
/// latch would stall every thread that wants it.
#[must_use = "the wait ends when the guard is dropped"]
pub struct Wait {
    event: WaitEvent,
    timed: bool,
    enabled: bool,
    shown: CurrentWait,
    outer: Option<CurrentWait>,
    began_ns: u64,
    spun_until_ns: u64,
    waited_before_ns: u64,
    books: Option<BookedWait>,
    not_send: PhantomData<*const ()>,
}

/// What a wait remembers while books are open.
struct BookedWait {
    began: Mark,
    spun: Option<Mark>,
    consumed_before: Mark,
}

impl Wait {
    /// Begins a wait for `object`, or for [`Object::NONE`].
    #[inline]
    pub fn begin(event: WaitEvent, object: Object) -> Wait {
        if event.class() != WaitClass::LwLock {
            crate::held::assert_no_latches();
        }
        let instrument = totals::instrument(event);
        let mut wait = Wait {
            event,
            timed: instrument.timed,
            enabled: instrument.enabled,
            shown: CurrentWait { event, since_ns: 0, object, behind: 0 },
            outer: None,
            began_ns: 0,
            spun_until_ns: 0,
            waited_before_ns: 0,
            books: None,
            not_send: PhantomData,
        };
        context::with(|context| wait.open(context));
        wait
    }

    /// Says which session the wait is behind.
    pub fn behind(mut self, session: u64) -> Wait {
        self.shown.behind = session;
        if self.enabled {
            show(Some(&self.shown));
        }
        self
    }

    /// Says that all until now was spun away on a processor and that the thread parks from here on.
    pub fn spun(&mut self) {
        if self.timed {
            self.spun_until_ns = clock::now_ns();
        }
        if let Some(books) = &mut self.books {
            books.spun = Some(Mark::take());
        }
    }

    #[inline]
    fn open(&mut self, context: &context::Context) {
        if let Some(ledger) = context.ledger.borrow().as_ref() {
            let consumed_before = ledger.consumed;
            self.books = Some(BookedWait { began: Mark::take(), spun: None, consumed_before });
        }
        self.waited_before_ns = context.waited_ns.get();
        if self.timed {
            self.began_ns = self.books.as_ref().map_or_else(clock::now_ns, |books| books.began.wall_ns);
            self.shown.since_ns = self.began_ns;
        }
        if let Some(session) = context.session.borrow().as_ref().filter(|_| self.enabled) {
            self.outer = session.current();
            session.show(&self.shown);
        }
    }

    #[inline]
    fn close(&mut self, context: &context::Context) {
        let mut ended_ns = 0;
        if let Some(books) = self.books.take() {
            let ended = Mark::take();
            ended_ns = ended.wall_ns;
            if let Some(ledger) = context.ledger.borrow_mut().as_mut() {
                ledger.book_wait(self.event, &books.began, books.spun.as_ref(), &ended, books.consumed_before);
            }
        }
        if self.timed && ended_ns == 0 {
            ended_ns = clock::now_ns();
        }
        // CTX-1: what inner waits took is theirs.
        let elapsed_ns = ended_ns.saturating_sub(self.began_ns);
        let inner_ns = context.waited_ns.get().saturating_sub(self.waited_before_ns);
        let own_ns = elapsed_ns.saturating_sub(inner_ns);
        context.waited_ns.set(self.waited_before_ns + elapsed_ns.max(inner_ns));
        let session = context.session.borrow();
        if let Some(session) = session.as_ref() {
            session.step_asks();
        }
        if !self.enabled {
            return;
        }
        let spin_ns = self.spun_until_ns.saturating_sub(self.began_ns).min(own_ns);
        context.record(self.event, own_ns, spin_ns);
        if let Some(session) = session.as_ref() {
            session.record(self.event, own_ns);
            match &self.outer {
                Some(outer) => session.show(outer),
                None => session.show_nothing(),
            }
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        context::with(|context| self.close(context));
    }
}

fn show(wait: Option<&CurrentWait>) {
    context::with(|context| {
        if let Some(session) = context.session.borrow().as_ref() {
            match wait {
                Some(wait) => session.show(wait),
                None => session.show_nothing(),
            }
        }
    });
}

/// Declares what a future waits for: if its first poll is Pending, the session shows the wait until the future is ready
/// or dropped, and thread, session and open books count it. A future that is ready at once costs nothing and counts as
/// no wait. The time from the wake-up to the poll that it led to belongs to the run queue, not to the wait.
///
/// # Panics
/// When the future is Pending while the calling thread holds a latch.
pub fn in_wait<F: Future>(event: WaitEvent, object: Object, future: F) -> InWait<F> {
    InWait { future, event, object, behind: 0, open: None }
}

pin_project! {
    /// The future that [`in_wait`] returns.
    #[must_use = "futures do nothing unless polled"]
    pub struct InWait<F> {
        #[pin]
        future: F,
        event: WaitEvent,
        object: Object,
        behind: u64,
        open: Option<OpenWait>,
    }
}

impl<F> InWait<F> {
    /// Says which session the wait is behind.
    pub fn behind(mut self, session: u64) -> Self {
        self.behind = session;
        self
    }
}

impl<F: Future> Future for InWait<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<F::Output> {
        let this = self.project();
        let polled = this.future.poll(cx);
        if polled.is_ready() {
            *this.open = None;
            return polled;
        }
        crate::held::assert_no_latches();
        let (event, object, behind) = (*this.event, *this.object, *this.behind);
        this.open.get_or_insert_with(|| OpenWait::begin(event, object, behind)).pending();
        polled
    }
}

/// Whether a task that begins to wait so does nothing more in its poll: then the wait begins where the poll ends, and one reading of the clock is
/// both. It may do more beside reads and writes of files, which a task begins ahead.
#[inline]
fn ends_poll(event: WaitEvent) -> bool {
    matches!(event.class(), WaitClass::Client | WaitClass::Lock)
        || matches!(event, WaitEvent::CommitDurable | WaitEvent::ReplyDurable)
}

/// An async wait that has begun; it is counted when this is dropped.
struct OpenWait {
    shown: CurrentWait,
    instrument: totals::Instrument,
    session: Option<Arc<SessionStats>>,
}

impl OpenWait {
    fn begin(event: WaitEvent, object: Object, behind: u64) -> Self {
        let instrument = totals::instrument(event);
        let since_ns = if instrument.timed { clock::now_ns() } else { 0 };
        let session = context::with(|context| {
            context.rests_ns.set(if ends_poll(event) { since_ns } else { 0 });
            context.session.borrow().clone()
        });
        let session = session.flatten();
        Self { shown: CurrentWait { event, since_ns, object, behind }, instrument, session }
    }

    #[inline]
    fn close(&self, context: &context::Context) {
        let mut waited_ns = 0;
        if self.instrument.timed {
            let (since_ns, woke_ns) = (self.shown.since_ns, context.woke_ns.get());
            waited_ns = if woke_ns >= since_ns { woke_ns } else { clock::now_ns() }.saturating_sub(since_ns);
        }
        context.record(self.shown.event, waited_ns, 0);
        if let Some(session) = &self.session {
            // The time between polls is booked where they are known.
            match context.step.is_running() {
                true => session.record_one(self.shown.event),
                false => session.record(self.shown.event, waited_ns),
            }
            session.shows_no_more(self.shown.event);
        }
    }

    /// At the end of every poll that is Pending. Of waits that stand within each other, or beside each other in one
    /// task, the session shows the innermost, or the first.
    #[inline]
    fn pending(&self) {
        context::with(|context| {
            if context.pending.get().is_none() {
                context.pending.set(Some(self.shown.event));
            }
        });
        if let Some(session) = self.session.as_ref().filter(|_| self.instrument.enabled)
            && session.shown().is_none()
        {
            session.show(&self.shown);
        }
    }
}

impl Drop for OpenWait {
    fn drop(&mut self) {
        let closed = context::with(|context| {
            // The poll may go on with other work.
            context.rests_ns.set(0);
            if self.instrument.enabled {
                self.close(context);
            }
        });
        // What destructors of a thread that is ending wait for is not counted.
        if let (None, Some(session)) = (closed, &self.session) {
            session.shows_no_more(self.shown.event);
        }
    }
}

pin_project! {
    /// The future that [`with_session`] returns.
    #[must_use = "futures do nothing unless polled"]
    pub struct WithSession<F> {
        #[pin]
        future: F,
        session: Option<Arc<SessionStats>>,
        stamp: Arc<context::Stamp>,
        // Wakes the task by way of the stamp.
        waker: Waker,
        suspended_ns: u64,
        suspended_by: Option<WaitEvent>,
    }
}

/// Runs a future as work of a session: waits inside show in its block and count in its totals, and the time between a
/// wake-up and the poll that follows counts as run queue. The time between a poll and the wake-up belongs to the first async wait
/// that was pending in that poll: so waits side by side (read-ahead) count once.
pub fn with_session<F: Future>(session: Arc<SessionStats>, future: F) -> WithSession<F> {
    let stamp = context::Stamp::new(Some(session.clone()));
    let waker = Waker::from(stamp.clone());
    WithSession { future, session: Some(session), stamp, waker, suspended_ns: 0, suspended_by: None }
}

impl<F: Future> Future for WithSession<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<F::Output> {
        let this = self.project();
        let mut woke_ns = this.stamp.rearm(cx.waker());
        let now_ns = clock::now_ns();
        if *this.suspended_ns != 0
            && let Some(session) = this.session
        {
            add_time(session, now_ns.saturating_sub(*this.suspended_ns), 0);
            if woke_ns != 0 {
                woke_ns = woke_ns.max(*this.suspended_ns);
            }
            if let Some(event) = this.suspended_by.take().filter(|event| totals::instrument(*event).timed) {
                let ended_ns = if woke_ns == 0 { now_ns } else { woke_ns };
                session.record_time(event, ended_ns.saturating_sub(*this.suspended_ns));
            }
            if woke_ns != 0 {
                let queued_ns = now_ns.saturating_sub(woke_ns);
                totals::record(WaitEvent::RunQueue, queued_ns, 0);
                session.record(WaitEvent::RunQueue, queued_ns);
            }
        }
        let entered = Entered::session(this.session, woke_ns, now_ns, (this.suspended_ns, this.suspended_by));
        let polled = this.future.poll(&mut TaskContext::from_waker(this.waker));
        drop(entered);
        polled
    }
}

/// Puts a task's session into the thread's context and takes it out again, also when the poll panics; says when that was.
struct Entered<'a> {
    slot: &'a mut Option<Arc<SessionStats>>,
    woke_before_ns: u64,
    /// The session of the poll around it; 0: there is none.
    outer: u64,
    ended: (&'a mut u64, &'a mut Option<WaitEvent>),
}

impl<'a> Entered<'a> {
    fn session(
        slot: &'a mut Option<Arc<SessionStats>>,
        woke_ns: u64,
        now_ns: u64,
        ended: (&'a mut u64, &'a mut Option<WaitEvent>),
    ) -> Self {
        let before = context::with(|context| {
            let outer = slot.as_ref().map(|session| processor::begins(context, session, now_ns));
            std::mem::swap(&mut *context.session.borrow_mut(), slot);
            context.pending.set(None);
            context.rests_ns.set(0);
            (context.woke_ns.replace(woke_ns), outer)
        });
        let (woke_before_ns, outer) = before.unwrap_or((0, None));
        Self { slot, woke_before_ns, outer: outer.unwrap_or(0), ended }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        // `ends_poll`: the wait begins where the poll ends.
        let rests_ns = context::with(|context| context.rests_ns.replace(0)).filter(|rests_ns| *rests_ns != 0);
        let now_ns = rests_ns.unwrap_or_else(clock::now_ns);
        *self.ended.0 = now_ns;
        context::with(|context| {
            std::mem::swap(&mut *context.session.borrow_mut(), self.slot);
            context.woke_ns.set(self.woke_before_ns);
            if let Some(session) = self.slot {
                processor::ended(context, session, self.outer, now_ns);
            }
            *self.ended.1 = context.pending.get();
        });
    }
}

/// Makes `session` that of the calling thread: what it does outside tasks of other sessions counts there.
pub fn set_thread_session(session: Option<Arc<SessionStats>>) {
    context::with(|context| *context.session.borrow_mut() = session);
}

/// The session that the calling code works for, if there is one.
pub fn current_session() -> Option<Arc<SessionStats>> {
    context::with(|context| context.session.borrow().clone()).flatten()
}

/// The id of that session; 0 if there is none.
pub fn current_session_id() -> u64 {
    context::with(|context| context.session.borrow().as_ref().map_or(0, |session| session.id())).unwrap_or(0)
}
