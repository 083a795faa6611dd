//! The columns of the books add up to the elapsed time, exactly on a virtual clock. On the real clock see `examples/books.rs`.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};

use clearway_base::sync::{sleep, timeout, yield_now};
use clearway_base::waits::clock::{self, TimerKey, VirtualClock, install};
use clearway_base::waits::{
    Books, Measure, Object, SessionStats, VirtualTime, Wait, WaitEvent, WaitShare, books, books_of, in_wait, totals,
    with_session,
};
use std::time::Duration;

/// Whether the one task of a test was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

/// Drives one task: when it sleeps, time goes to its timer; when it is woken it stands `queue_ns` in a run queue.
fn drive<F: Future>(clock: &VirtualClock, queue_ns: u64, task: F) -> F::Output {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut task = pin!(task);
    loop {
        if let Poll::Ready(output) = task.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        while !woken.0.swap(false, Relaxed) {
            clock.advance_to(clock.next_deadline_ns().expect("a task that nothing will wake"));
        }
        clock.advance(queue_ns);
    }
}

fn installed() -> (Arc<VirtualClock>, clock::Installed) {
    let clock = Arc::new(VirtualClock::new());
    let guard = clock.install();
    (clock, guard)
}

fn share(event: WaitEvent, count: u64, wait_ns: u64, spin_ns: u64) -> WaitShare {
    WaitShare { event, count, wait_ns, spin_ns }
}

#[test]
fn every_share_is_exact_on_the_virtual_clock() {
    let (clock, _installed) = installed();
    let task = async {
        clock.compute(1_000);
        clock.preempt(200);
        // A held latch: spin, then park; preempted in both.
        let mut latch = Wait::begin(WaitEvent::Latch, Object::NONE);
        clock.compute(30);
        clock.preempt(4);
        latch.spun();
        clock.advance(500);
        clock.preempt(6);
        drop(latch);
        // I/O that costs the kernel some processor time.
        let io = Wait::begin(WaitEvent::WalSync, Object::new(1, 2));
        clock.compute(70);
        clock.advance(7_000);
        drop(io);
        in_wait(WaitEvent::LockTuple, Object::NONE, sleep(Duration::from_nanos(90_000))).await;
        clock.compute(2_000);
    };
    let ((), closed) = drive(&clock, 40, books(task));
    let expected = Books {
        elapsed_ns: 1_000 + 200 + 34 + 506 + 7_070 + 90_000 + 40 + 2_000,
        cpu_ns: 3_000,
        run_queue_ns: 200 + 4 + 6 + 40,
        run_delay_known: true,
        waits: vec![
            share(WaitEvent::Latch, 1, 500, 30),
            share(WaitEvent::WalSync, 1, 7_070, 0),
            share(WaitEvent::LockTuple, 1, 90_000, 0),
        ],
        unaccounted_ns: 0,
    };
    assert_eq!(closed, expected, "BOOK-1, BOOK-2");
}

#[test]
fn what_no_wrapper_declares_is_unaccounted() {
    let (clock, _installed) = installed();
    let task = async {
        clock.advance(300); // blocked outside every wait
        sleep(Duration::from_nanos(5_000)).await; // suspended outside every wait
        clock.compute(10);
    };
    let ((), closed) = drive(&clock, 0, books(task));
    assert_eq!((closed.elapsed_ns, closed.cpu_ns, closed.wait_ns()), (5_310, 10, 0));
    assert_eq!(closed.unaccounted_ns, 5_300, "BOOK-3");
}

#[test]
fn an_inner_wait_is_not_the_outer_ones() {
    let (clock, _installed) = installed();
    let ((), closed) = books_of(|| {
        let outer = Wait::begin(WaitEvent::DataFileRead, Object::NONE);
        clock.advance(100);
        {
            let mut inner = Wait::begin(WaitEvent::Mutex, Object::NONE);
            clock.compute(7);
            inner.spun();
            clock.advance(20);
        }
        clock.advance(3);
        drop(outer);
    });
    assert_eq!(closed.waits, [share(WaitEvent::Mutex, 1, 20, 7), share(WaitEvent::DataFileRead, 1, 103, 0)], "BOOK-2");
    assert_eq!((closed.elapsed_ns, closed.cpu_ns, closed.unaccounted_ns), (130, 0, 0));
}

#[test]
fn books_within_books_count_in_both() {
    let (clock, _installed) = installed();
    let task = async {
        clock.compute(1);
        let ((), inner) = books(async {
            clock.compute(10);
            drop({
                let wait = Wait::begin(WaitEvent::WalWrite, Object::NONE);
                clock.advance(100);
                wait
            });
            in_wait(WaitEvent::PgSleep, Object::NONE, sleep(Duration::from_nanos(1_000))).await;
        })
        .await;
        inner
    };
    let (inner, outer) = drive(&clock, 5, books(task));
    assert_eq!((inner.elapsed_ns, inner.cpu_ns, inner.run_queue_ns, inner.unaccounted_ns), (1_115, 10, 5, 0));
    assert_eq!((outer.elapsed_ns, outer.cpu_ns, outer.run_queue_ns, outer.unaccounted_ns), (1_116, 11, 5, 0));
    assert_eq!(inner.waits, outer.waits);
}

#[test]
fn a_yield_is_run_queue_alone() {
    let (clock, _installed) = installed();
    let ((), closed) = drive(
        &clock,
        25,
        books(async {
            yield_now().await;
            yield_now().await;
        }),
    );
    assert_eq!((closed.elapsed_ns, closed.run_queue_ns, closed.unaccounted_ns), (50, 50, 0));
}

#[test]
fn a_session_shows_its_wait_and_counts_it() {
    let (clock, _installed) = installed();
    let session = SessionStats::new("client");
    let watched = Arc::clone(&session);
    let before = totals()[WaitEvent::LockAdvisory.index()];
    let start_ns = clock::now_ns();
    let task = with_session(Arc::clone(&session), async {
        let lock = in_wait(WaitEvent::LockAdvisory, Object::new(7, 8), sleep(Duration::from_nanos(400))).behind(99);
        // Once more within a task: the outer wait must not hide the inner one, nor end with it.
        timeout(Duration::from_nanos(1_000), lock).await
    });
    let mut task: Pin<Box<_>> = Box::pin(task);
    assert!(task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let shown = watched.current().expect("the wait shows");
    assert_eq!((shown.event, shown.object, shown.behind), (WaitEvent::LockAdvisory, Object::new(7, 8), 99));
    assert_eq!(shown.since_ns, start_ns);
    assert_eq!(drive(&clock, 0, task), Ok(()));
    assert_eq!(watched.current(), None);
    let (event, counted) = session.totals()[0];
    assert_eq!((event, counted.count, counted.total_ns), (WaitEvent::LockAdvisory, 1, 400));
    let after = totals()[WaitEvent::LockAdvisory.index()].since(&before);
    assert_eq!((after.count, after.total_ns), (1, 400));
}

#[test]
fn a_future_that_is_ready_at_once_is_no_wait() {
    let before = totals()[WaitEvent::SnapshotDrain.index()];
    let ready = pin!(in_wait(WaitEvent::SnapshotDrain, Object::NONE, std::future::ready(3)));
    assert_eq!(ready.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(3));
    assert_eq!(totals()[WaitEvent::SnapshotDrain.index()].since(&before).count, 0);
}

/// Two reads side by side, the second one slower, and computing beside the first.
#[test]
fn waits_side_by_side_count_once_for_the_session() {
    let (clock, _installed) = installed();
    let session = SessionStats::new("client backend");
    let read = |ns| Box::pin(in_wait(WaitEvent::DataFileRead, Object::NONE, sleep(Duration::from_nanos(ns))));
    let task = with_session(Arc::clone(&session), async {
        let (mut first, mut second) = (read(50_000), read(80_000));
        let mut both = (false, false);
        std::future::poll_fn(|cx| {
            both.0 = both.0 || first.as_mut().poll(cx).is_ready();
            clock.compute(1_000);
            both.1 = both.1 || second.as_mut().poll(cx).is_ready();
            if both == (true, true) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    });
    drive(&clock, 0, task);
    let time = session.time(clock.now_ns());
    let (_, reads) =
        session.totals().into_iter().find(|(event, _)| *event == WaitEvent::DataFileRead).expect("it waited");
    assert_eq!(reads.count, 2);
    assert_eq!((time.cpu_ns, time.io_ns, time.unaccounted_ns()), (3_000, time.elapsed_ns - 3_000, 0));
}

#[test]
fn a_sessions_time_is_divided_as_well() {
    let (clock, _installed) = installed();
    let session = SessionStats::new("client backend");
    let own = Arc::clone(&session);
    let task = with_session(Arc::clone(&session), async {
        // Short: its own time. Long and not measured: what the thread's clocks say since they were last read (CPU-3). Then measured, and
        // then with the scheduler's run delay.
        clock.compute(40_000);
        yield_now().await;
        clock.compute(2_000_000);
        clock.preempt(1_000);
        yield_now().await;
        clock.compute(3_000_000);
        clock.preempt(7_000);
        yield_now().await;
        let io = Wait::begin(WaitEvent::DataFileRead, Object::NONE);
        clock.advance(5_000);
        drop(io);
        in_wait(WaitEvent::ClientRead, Object::NONE, sleep(Duration::from_nanos(90_000))).await;
        clock.compute(300_000);
        clearway_base::waits::settle(&own, clock.now_ns(), Measure::Processor);
        assert_eq!(own.time(clock.now_ns()).cpu_ns, 5_340_000, "300 us as well, which nobody had measured");
        clock.compute(200_000);
    });
    drive(&clock, 40, task);
    let time = session.time(clock.now_ns());
    let queued = 4 * 40 + 1_000 + 7_000;
    let computed = 40_000 + 2_000_000 + 3_000_000 + 300_000 + 200_000;
    let elapsed = 40_000 + 2_001_000 + 3_007_000 + 5_000 + 90_000 + 500_000 + 4 * 40;
    assert_eq!((time.elapsed_ns, time.cpu_ns, time.run_queue_ns), (elapsed, computed, queued));
    assert_eq!((time.wait_ns, time.io_ns, time.idle_ns, time.busy_ns()), (5_000, 5_000, 90_000, elapsed - 90_000));
    assert_eq!(time.unaccounted_ns(), 0);
    let before = clearway_base::waits::ended_time();
    drop((session, own));
    assert_eq!(clearway_base::waits::ended_time().elapsed_ns - before.elapsed_ns, elapsed);
    // One whose future is dropped while it waits: that wait is elapsed time too.
    let before = clearway_base::waits::ended_time();
    let mut dropped = Box::pin(with_session(SessionStats::new("acceptor"), async {
        clock.compute(40_000);
        in_wait(WaitEvent::AcceptMain, Object::NONE, std::future::pending::<()>()).await;
    }));
    assert!(dropped.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    clock.advance(1_000_000);
    drop(dropped);
    let ended = clearway_base::waits::ended_time().since(&before);
    assert_eq!((ended.elapsed_ns, ended.idle_ns, ended.cpu_ns), (1_040_000, 1_000_000, 40_000));
}

/// CPU-1: a statement that ends within a short step reads the figures as they stand then, and the end of the step counts nothing twice.
#[test]
fn a_short_step_is_read_and_goes_on() {
    use clearway_base::waits::{read, read_short};
    let (clock, _installed) = installed();
    let session = SessionStats::new("test");
    let (own, other) = (session.clone(), SessionStats::new("other"));
    let task = async {
        assert_eq!(read_short(&other, clock::now_ns()), Some((0, 0)), "of a session that is not polled");
        for n in 1..=4u64 {
            clock.compute(9_000);
            let known = read_short(&own, clock::now_ns());
            assert_eq!(known, (n == 1).then_some((9_000, 9_000)), "before the first wait");
            let wait = Wait::begin(WaitEvent::WalSync, Object::NONE);
            clock.advance(500);
            drop(wait);
            let now_ns = clock::now_ns();
            assert_eq!(read(&own, now_ns), (Measure::Short, n * 9_500, n * 9_000));
            assert_eq!(own.elapsed_and_cpu(), (0, 0), "the step goes on");
            assert_eq!(read(&other, now_ns), (Measure::Short, 0, 0), "of a session that is not polled");
        }
        // A long one is divided: the thread computed all of it but a run delay.
        clock.compute(150_000);
        clock.preempt(30_000);
        let (measure, elapsed_ns, cpu_ns) = read(&own, clock::now_ns());
        assert_eq!((measure, elapsed_ns), (Measure::Short, 218_000));
        assert_eq!(own.elapsed_and_cpu(), (elapsed_ns, cpu_ns), "the step has ended");
        clock.compute(700);
        assert_eq!(read_short(&own, clock::now_ns()), Some((elapsed_ns + 700, cpu_ns + 700)), "of the next step");
        // The poll of another session within this one is not this one's (CPU-2).
        drive(&clock, 0, with_session(other.clone(), async { clock.compute(3_000) }));
        assert_eq!(read_short(&other, clock::now_ns()), Some((3_000, 3_000)));
        assert_eq!(read_short(&own, clock::now_ns()), None);
        clearway_base::waits::settle(&own, clock::now_ns(), Measure::Processor);
        assert_eq!(read_short(&own, clock::now_ns()), None, "its clocks were read");
        clock.compute(300);
    };
    drive(&clock, 0, with_session(session.clone(), task));
    let (elapsed_ns, cpu_ns) = session.elapsed_and_cpu();
    assert_eq!(read_short(&session, clock::now_ns()), Some((elapsed_ns, cpu_ns)), "none runs");
    assert_eq!((elapsed_ns, cpu_ns), (218_300, 186_300), "700 ns were those of a step that gave way");
    assert_eq!(session.time(clock::now_ns()).unaccounted_ns(), 0);
}

/// A clock that counts how often the thread's processor time and run delay are read, and how often the clock of wait events.
struct Counting(Arc<VirtualClock>, AtomicU64, AtomicU64);

impl VirtualTime for Counting {
    fn now_ns(&self) -> u64 {
        self.2.fetch_add(1, Relaxed);
        self.0.now_ns()
    }
    fn thread_cpu_ns(&self) -> u64 {
        self.1.fetch_add(1, Relaxed);
        self.0.thread_cpu_ns()
    }
    fn run_delay_ns(&self) -> Option<u64> {
        self.1.fetch_add(1, Relaxed);
        self.0.run_delay_ns()
    }
    fn set_timer(&self, deadline_ns: u64, waker: Waker) -> TimerKey {
        self.0.set_timer(deadline_ns, waker)
    }
    fn update_timer(&self, key: TimerKey, waker: &Waker) -> bool {
        self.0.update_timer(key, waker)
    }
    fn cancel_timer(&self, key: TimerKey) {
        self.0.cancel_timer(key);
    }
}

/// CPU-1: a short step that loses its processor costs one reading, if it is the first one for two milliseconds, the next step none; a session that
/// computes for long is measured from its third step on, and nothing is unaccounted.
#[test]
fn a_single_long_step_does_not_make_the_next_one_dear() {
    let clock = Arc::new(VirtualClock::new());
    let counting = Arc::new(Counting(Arc::clone(&clock), 0.into(), 0.into()));
    let _installed = install(Arc::clone(&counting) as Arc<dyn VirtualTime>);
    let readings = || counting.1.swap(0, Relaxed);
    let session = SessionStats::new("client backend");
    let task = with_session(Arc::clone(&session), async {
        readings();
        for _ in 0..10 {
            clock.compute(10_000);
            yield_now().await;
            clock.compute(10_000);
            clock.preempt(300_000);
            yield_now().await;
            // Without a processor, but outside of a step, so that the next one is long enough after this one.
            in_wait(WaitEvent::ClientRead, Object::NONE, sleep(Duration::from_millis(2))).await;
        }
        // Twice as many as without the thread's own readings each four milliseconds.
        assert_eq!(readings(), 20, "CPU-1");
        // The thread reads its clocks anew after this, and not for four milliseconds.
        clock.compute(5_000_000);
        yield_now().await;
        clock.compute(10_000);
        yield_now().await;
        readings();
        let mut each = Vec::new();
        for _ in 0..3 {
            clock.compute(1_200_000);
            yield_now().await;
            each.push(readings());
        }
        // Run delay and processor clock at the end of the first two; the processor clock when the third begins, which is at the end of the
        // second, and when it ends.
        assert_eq!(each, [2, 3, 2], "CPU-1");
    });
    drive(&clock, 0, task);
    let time = session.time(clock.now_ns());
    assert_eq!(
        (time.cpu_ns, time.run_queue_ns, time.unaccounted_ns()),
        (210_000 + 5_000_000 + 3_600_000, 3_000_000, 0)
    );
}

/// CPU-5: where most steps lose their processor, the run delay is read each two milliseconds, and both sessions' sums are right: one computes three
/// times as much as the other, and both lose the processor for half of their time.
#[test]
fn steps_of_a_busy_thread_share_a_reading_of_the_run_delay() {
    let clock = Arc::new(VirtualClock::new());
    let counting = Arc::new(Counting(Arc::clone(&clock), 0.into(), 0.into()));
    let _installed = install(Arc::clone(&counting) as Arc<dyn VirtualTime>);
    let sessions = [SessionStats::new("client backend"), SessionStats::new("client backend")];
    let mut random = 1u64;
    for n in 0..40_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let computes_ns = if n % 4 == 3 { 300_000 } else { 100_000 };
        let step = async {
            clock.compute(computes_ns);
            clock.preempt(computes_ns * 2 * (random >> 63));
        };
        drive(&clock, 0, with_session(Arc::clone(&sessions[usize::from(n % 4 == 3)]), step));
    }
    let elapsed_ms = (clock.now_ns() - VirtualClock::ORIGIN_NS) / 1_000_000;
    // Each four milliseconds both clocks, and the run delay each two.
    assert!(counting.1.load(Relaxed) <= elapsed_ms, "CPU-5: {} readings in {elapsed_ms} ms", counting.1.load(Relaxed));
    let times = sessions.map(|session| session.time(clock.now_ns()));
    for time in times {
        let is_near = |ns: u64| ns.abs_diff(3_000_000_000) < 150_000_000;
        assert!(is_near(time.cpu_ns) && is_near(time.run_queue_ns), "CPU-5: {time:?}");
        assert_eq!(time.unaccounted_ns(), 0);
    }
    // The thread is no longer busy: the next session that computes for some steps is not charged with what others have lost.
    let alone = SessionStats::new("client backend");
    for _ in 0..100 {
        clock.advance(5_000_000);
        drive(&clock, 0, with_session(Arc::clone(&alone), async { clock.compute(300_000) }));
    }
    let time = alone.time(clock.now_ns());
    assert_eq!((time.cpu_ns, time.run_queue_ns), (30_000_000, 0));
}

/// A wait for a client, a lock or a log that is durable ends the poll in which it begins: one reading of the clock is both. Beside one for a file
/// the task may go on, and that it does so is no part of the wait.
#[test]
fn a_wait_that_ends_a_poll_takes_one_reading_of_the_clock_for_both() {
    let clock = Arc::new(VirtualClock::new());
    let counting = Arc::new(Counting(Arc::clone(&clock), 0.into(), 0.into()));
    let _installed = install(Arc::clone(&counting) as Arc<dyn VirtualTime>);
    let readings = |events: &[WaitEvent]| {
        let session = SessionStats::new("client backend");
        let before = counting.2.load(Relaxed);
        let task = async {
            clock.compute(3_000);
            let all = events.iter().map(|event| Box::pin(in_wait(*event, Object::NONE, yield_now())));
            let mut all: Vec<_> = all.collect();
            let mut first = true;
            std::future::poll_fn(|cx| {
                let mut left = false;
                for wait in &mut all {
                    left |= wait.as_mut().poll(cx).is_pending();
                    clock.compute(if first { 1_000 } else { 0 });
                }
                first = false;
                if left { Poll::Pending } else { Poll::Ready(()) }
            })
            .await;
        };
        drive(&clock, 500, with_session(Arc::clone(&session), task));
        let readings = counting.2.load(Relaxed) - before;
        assert_eq!(session.time(clock.now_ns()).unaccounted_ns(), 0, "{events:?}");
        (readings, session.elapsed_and_cpu().1)
    };
    let (apart, cpu_ns) = readings(&[WaitEvent::BufferIo]);
    assert_eq!(cpu_ns, 4_000);
    for event in [WaitEvent::ClientRead, WaitEvent::LockTuple, WaitEvent::CommitDurable, WaitEvent::ReplyDurable] {
        assert_eq!(readings(&[event]).0, apart - 1, "{event:?}");
        assert_eq!(readings(&[event, WaitEvent::BufferIo]).1, 5_000, "the wait that began last decides: {event:?}");
    }
}
