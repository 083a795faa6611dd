//! Queues, LSN waits, timers, latch order and slow paths with real threads; `tests/loom.rs` tries the interleavings.
#![cfg(not(loom))]

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use clearway_base::sync::{
    Class, Closed, Condvar, Latch, LsnWaiters, Mutex, RwLock, TimedOut, WaitQueue, assert_no_latches, block_on,
    classes, latches_held, pause, restore_classes, sleep, spawn_thread, timeout, track_holders,
};
use clearway_base::waits::{Object, Wait, WaitEvent, books_of, in_wait, now_ns, totals};

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn panic_of(body: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(body)).expect_err("should have panicked");
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic.downcast_ref::<&str>().map_or_else(String::new, ToString::to_string),
    }
}

#[test]
fn the_queue_is_first_come_first_served() {
    let queue = WaitQueue::new("test/queue");
    let mut waiters: Vec<_> = (0..40).map(|_| queue.enroll()).collect();
    assert!(waiters.iter_mut().all(|waiter| poll(waiter).is_pending()));
    assert!(queue.wake_one());
    assert_eq!(queue.wake_n(3), 3);
    let granted: Vec<_> = (0..40).filter(|&i| waiters[i].is_granted()).collect();
    assert_eq!(granted, [0, 1, 2, 3], "QUEUE-1");
    assert_eq!(queue.wake_all(), 36);
    assert!(waiters.iter_mut().all(|waiter| poll(waiter).is_ready()));
    assert!(!queue.wake_one());
}

#[test]
fn a_grant_passes_on_when_its_waiter_is_dropped() {
    let queue = WaitQueue::new("test/queue");
    let (first, second, mut third) = (queue.enroll(), queue.enroll(), queue.enroll());
    queue.wake_one();
    drop(second);
    drop(first);
    assert!(poll(&mut third).is_ready(), "QUEUE-2");
    let first = queue.enroll();
    queue.wake_all();
    let mut second = queue.enroll();
    drop(first);
    assert!(poll(&mut second).is_pending(), "QUEUE-2: wake_all did not mean whoever came later");
    drop(second);
    assert_eq!(queue.waiting(), 0);
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn positions_wake_in_order_and_in_a_chain() {
    let waiters = LsnWaiters::new("test/lsn", 10);
    assert_eq!(poll(&mut waiters.wait(10)), Poll::Ready(Ok(())));
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut cx = Context::from_waker(&waker);
    let mut waits: Vec<_> = (0..1_000).map(|i| Box::pin(waiters.wait(1_000 - i))).collect();
    for wait in &mut waits {
        let _ = wait.as_mut().poll(&mut cx);
    }
    assert_eq!(waiters.waiting(), 990);
    waiters.publish(500);
    let by_the_publisher = count.0.load(Relaxed);
    assert!((1..=16).contains(&by_the_publisher), "the publisher woke {by_the_publisher}");
    // A woken task wakes others; polling each due one once reaches all of them, and none that is not due.
    let due = waits.iter_mut().rev().take(500);
    assert!(due.map(|wait| wait.as_mut().poll(&mut cx)).all(|polled| polled.is_ready()));
    assert_eq!(waiters.waiting(), 500);
    waiters.publish(400);
    assert_eq!(waiters.published(), 500, "LSN-1");
    waiters.close();
    assert_eq!(waits[0].as_mut().poll(&mut cx), Poll::Ready(Err(Closed)));
    drop(waits);
    assert_eq!(waiters.waiting(), 0);
}

#[test]
fn a_thousand_waiters_on_threads_all_go_on() {
    let waiters = Arc::new(LsnWaiters::new("test/lsn", 0));
    let threads: Vec<_> = (0..8)
        .map(|t| {
            let waiters = Arc::clone(&waiters);
            let body = move || {
                for lsn in (t..2_000).step_by(8) {
                    assert_eq!(block_on(in_wait(WaitEvent::CommitDurable, Object::NONE, waiters.wait(lsn))), Ok(()));
                }
            };
            spawn_thread("committer", body).unwrap()
        })
        .collect();
    for lsn in 0..2_000 {
        waiters.publish(lsn);
    }
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn sleeps_end_after_their_deadline_and_timeouts_cut_off() {
    let start_ns = now_ns();
    block_on(in_wait(WaitEvent::PgSleep, Object::NONE, sleep(Duration::from_millis(5))));
    assert!(now_ns() - start_ns >= 5_000_000, "TIMER-1");
    let never = std::future::pending::<()>();
    assert_eq!(block_on(timeout(Duration::from_millis(1), never)), Err(TimedOut));
    assert_eq!(block_on(timeout(Duration::from_secs(3600), std::future::ready(1))), Ok(1));
}

#[test]
fn waiting_under_a_latch_panics() {
    static CLASS: Class = Class::new("test/held");
    let latch = Latch::new(&CLASS);
    let text = panic_of(|| {
        let _hold = latch.shared();
        assert_eq!(latches_held(), 1);
        let _wait = Wait::begin(WaitEvent::DataFileRead, Object::NONE);
    });
    assert!(text.contains("a wait under 1 latch"), "HELD-1: {text}");
    let text = panic_of(|| {
        let _hold = latch.exclusive();
        let _ = poll(&mut pin!(in_wait(WaitEvent::LockTuple, Object::NONE, std::future::pending::<()>())));
    });
    assert!(text.contains("a wait under 1 latch"), "HELD-1: {text}");
    assert_no_latches();
}

#[test]
#[cfg(debug_assertions)]
fn latches_out_of_order_panic_with_both_names() {
    static LOW: Class = Class::ranked("test/low", 10);
    static HIGH: Class = Class::ranked("test/high", 20).coupled();
    let (low, high, other_high) = (Latch::new(&LOW), Latch::new(&HIGH), Latch::new(&HIGH));
    let mutex = Mutex::of_class(&LOW, ());
    {
        let _low = low.exclusive();
        let _high = high.exclusive();
        let _coupled = other_high.shared();
        assert!(mutex.try_lock().is_some(), "a try never waits");
    }
    let text = panic_of(|| {
        let _high = high.exclusive();
        let _low = low.exclusive();
    });
    assert_eq!(text, "latch order: waiting for test/low (rank 10) while holding test/high (rank 20)", "HELD-2");
    let text = panic_of(|| {
        let _low = low.exclusive();
        drop(mutex.lock());
    });
    assert_eq!(text, "latch order: waiting for test/low (rank 10) while holding test/low (rank 10)", "HELD-2");
}

#[test]
fn slow_paths_report_spin_and_park_apart_and_name_the_holder() {
    static CLASS: Class = Class::new("test/slow");
    track_holders(true);
    let mutex = Arc::new(Mutex::of_class(&CLASS, 0));
    let is_held = Arc::new(AtomicBool::new(false));
    let before = totals()[WaitEvent::Mutex.index()];
    let holder = {
        let (mutex, is_held) = (Arc::clone(&mutex), Arc::clone(&is_held));
        spawn_thread("holder", move || {
            let _hold = mutex.lock();
            is_held.store(true, Relaxed);
            while classes().iter().all(|class| class.name != "test/slow" || class.waiting == 0) {
                pause(Duration::from_millis(1), WaitEvent::Pause);
            }
            pause(Duration::from_millis(20), WaitEvent::Pause);
        })
        .unwrap()
    };
    while !is_held.load(Relaxed) {
        pause(Duration::from_millis(1), WaitEvent::Pause);
    }
    let ((), closed) = books_of(|| *mutex.lock() += 1);
    holder.join().unwrap();
    let class = classes().into_iter().find(|class| class.name == "test/slow").expect("slow paths list their class");
    assert_eq!((class.slow, class.waiting), (1, 0));
    assert!(class.parks >= 1 && class.spin_ns > 0 && class.park_ns >= 10_000_000, "{class:?}");
    let booked = closed.wait(WaitEvent::Mutex);
    assert!(booked.spin_ns > 0 && booked.wait_ns >= 10_000_000, "{closed:?}");
    let after = totals()[WaitEvent::Mutex.index()].since(&before);
    assert!(after.count >= 1 && after.spin_ns > 0 && after.total_ns >= 10_000_000, "{after:?}");
    let held = mutex.lock();
    let class = classes().into_iter().find(|class| class.name == "test/slow").unwrap();
    assert!(class.holder.is_some_and(|holder| holder.site.contains("tests/sync.rs")));
    drop(held);
    let class = classes().into_iter().find(|class| class.name == "test/slow").unwrap();
    assert!(class.holds >= 2 && class.hold_max_ns >= 20_000_000, "{class:?}");
    restore_classes(vec![
        ("test/slow".to_owned(), [1, 2, 3, 4, u64::MAX, 6, 7]),
        ("test/of an earlier process".to_owned(), [1, 0, 0, 0, 5, 0, 0]),
    ]);
    let restored = classes().into_iter().find(|class| class.name == "test/slow").unwrap();
    assert_eq!((restored.slow, restored.parks, restored.max_ns), (class.slow + 1, class.parks + 2, u64::MAX));
    assert_eq!((restored.holds, restored.hold_max_ns), (class.holds + 6, class.hold_max_ns));
    assert!(classes().iter().any(|class| class.name == "test/of an earlier process" && class.slow == 1));
    track_holders(false);
}

#[test]
fn latches_and_locks_under_many_threads() {
    static CLASS: Class = Class::new("test/many");
    let latch = Latch::new(&CLASS);
    let pair = (AtomicU64::new(0), AtomicU64::new(0));
    let lock = RwLock::new("test/rwlock", (0u64, 0u64));
    let mutex = Mutex::new("test/mutex", 0u64);
    std::thread::scope(|s| {
        for thread in 0..6 {
            let (latch, pair, lock, mutex) = (&latch, &pair, &lock, &mutex);
            s.spawn(move || {
                for i in 0..20_000 {
                    *mutex.lock() += 1;
                    if (i + thread) % 3 == 0 {
                        let _hold = latch.exclusive();
                        pair.0.store(pair.0.load(Relaxed) + 1, Relaxed);
                        pair.1.store(pair.1.load(Relaxed) + 1, Relaxed);
                        let mut value = lock.write();
                        value.0 += 1;
                        value.1 += 1;
                    } else {
                        let value = lock.read();
                        assert_eq!(value.0, value.1, "LATCH-1");
                        drop(value);
                        if let Some(version) = latch.optimistic() {
                            let seen = (pair.0.load(Relaxed), pair.1.load(Relaxed));
                            if latch.validate(version) {
                                assert_eq!(seen, (version.number(), version.number()), "LATCH-2");
                            }
                        }
                    }
                }
            });
        }
    });
    assert_eq!(*mutex.lock(), 120_000, "MUTEX-1");
    assert_eq!(pair.0.load(Relaxed), lock.read().0);
}

#[test]
fn a_loan_keeps_others_out_until_any_thread_gives_it_back() {
    let mutex = Mutex::new("test/loan", 1u64);
    let mut loan = mutex.lend().expect("nothing holds the mutex");
    *loan += 1;
    assert!(mutex.lend().is_none() && mutex.try_lock().is_none(), "MUTEX-3: the loan has the bit");
    assert_no_latches();
    let seen = std::thread::scope(|s| {
        let waiter = s.spawn(|| *mutex.lock());
        s.spawn(move || *loan += 40);
        waiter.join().expect("the waiter gets the mutex")
    });
    assert_eq!(seen, 42, "MUTEX-3: a lock waits for the end of the loan");
    let guard = mutex.lock();
    assert!(mutex.lend().is_none(), "MUTEX-1");
    drop(guard);
    assert!(mutex.lend().is_some());
}

#[test]
fn conditions_with_and_without_a_deadline() {
    let shared = Arc::new((Mutex::new("test/condition", 0), Condvar::new()));
    let other = Arc::clone(&shared);
    let thread = spawn_thread("setter", move || {
        *other.0.lock() = 1;
        other.1.notify_all();
    })
    .unwrap();
    let mut value = shared.0.lock();
    while *value == 0 {
        value = shared.1.wait(value, WaitEvent::Notification);
    }
    thread.join().unwrap();
    let (value, in_time) = shared.1.wait_timeout(value, WaitEvent::Notification, 1_000_000);
    assert!(!in_time && *value == 1);
}
