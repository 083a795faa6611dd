//! What accounting costs: one uncontended latch with and without it, one recorded wait.
//!
//! `cargo run --release -p clearway-base --example waits_cost`
//!
//! Each figure is the median of 31 rounds. The latch without accounting is the same exchange and addition on a bare
//! atomic word; it counts nothing and checks nothing.
// The yardstick must not be what is measured.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::future::Future;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use clearway_base::sync::{Class, Latch, Mutex, track_holders};
use clearway_base::waits::{
    Instrument, Object, SessionStats, Wait, WaitEvent, books_of, clock, in_wait, now_ns, set_instrument,
    set_thread_session, with_session,
};

const ROUNDS: usize = 31;

fn measure(name: &str, per_round: u32, mut body: impl FnMut()) {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..per_round {
                body();
            }
            start.elapsed().as_nanos() as f64 / f64::from(per_round)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    println!("| {name} | {:.1} | {:.1} | {:.1} |", rounds[ROUNDS / 2], rounds[0], rounds[ROUNDS - 1]);
}

/// Pending once, woken at once.
struct Once(bool);

impl Future for Once {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

fn poll_twice(future: impl Future<Output = ()>) {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    while future.as_mut().poll(&mut cx).is_pending() {}
}

fn main() {
    println!("clock: {}\n\n| | median ns | least | most |\n|---|---|---|---|", clock::description());
    latches();
    clocks_and_waits();
    futures();
}

fn latches() {
    static CLASS: Class = Class::ranked("example/cost", 10);
    let latch = Latch::new(&CLASS);
    let mutex = Mutex::of_class(&CLASS, 0u64);
    let std_mutex = std::sync::Mutex::new(0u64);
    let word = AtomicU64::new(0);
    measure("exchange and add on a bare word", 300_000, || {
        let _ = black_box(&word).compare_exchange(word.load(Relaxed), 1 << 16, Acquire, Relaxed);
        word.fetch_sub(1 << 16, Release);
    });
    measure("latch, exclusive", 300_000, || drop(black_box(&latch).exclusive()));
    measure("latch, shared", 300_000, || drop(black_box(&latch).shared()));
    measure("latch, optimistic read and validate", 300_000, || {
        let version = black_box(&latch).optimistic();
        black_box(version.is_some_and(|version| latch.validate(version)));
    });
    measure("mutex", 300_000, || *black_box(&mutex).lock() += 1);
    measure("mutex of the standard library", 300_000, || *black_box(&std_mutex).lock().unwrap() += 1);
    track_holders(true);
    measure("latch, exclusive, holders tracked", 50_000, || drop(black_box(&latch).exclusive()));
    track_holders(false);
}

fn clocks_and_waits() {
    measure("reading the clock", 300_000, || {
        black_box(now_ns());
    });
    measure("thread CPU clock", 20_000, || {
        black_box(clock::thread_cpu_ns());
    });
    measure("scheduler's run delay", 20_000, || {
        black_box(clock::run_delay_ns());
    });
    let wait = || drop(Wait::begin(WaitEvent::WalWrite, Object::new(1, 2)));
    measure("recorded wait, no session", 300_000, wait);
    set_thread_session(Some(SessionStats::new("example")));
    measure("recorded wait, with session", 300_000, wait);
    set_instrument(WaitEvent::WalWrite, Instrument { enabled: true, timed: false });
    measure("recorded wait, not timed", 300_000, wait);
    set_instrument(WaitEvent::WalWrite, Instrument { enabled: false, timed: false });
    measure("wait with its instrument off", 300_000, wait);
    set_instrument(WaitEvent::WalWrite, Instrument { enabled: true, timed: true });
    measure("recorded wait, books open", 5_000, || {
        books_of(wait);
    });
    measure("books around nothing", 5_000, || {
        books_of(|| ());
    });
}

fn futures() {
    measure("future, pending once, undeclared", 300_000, || poll_twice(Once(false)));
    measure("future, pending once, in_wait", 300_000, || {
        poll_twice(in_wait(WaitEvent::LockTuple, Object::NONE, Once(false)));
    });
    measure("future, ready at once, in_wait", 300_000, || {
        poll_twice(in_wait(WaitEvent::LockTuple, Object::NONE, Once(true)));
    });
    let session = SessionStats::new("example");
    measure("with_session, made and polled twice", 300_000, || {
        poll_twice(with_session(Arc::clone(&session), Once(false)));
    });
}
