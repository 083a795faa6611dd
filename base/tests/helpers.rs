//! Helpers of a long computation: what they do is done once, counts to the caller, and has ended when the caller goes on (BRE-7 to BRE-9).

#![allow(clippy::disallowed_types)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, MutexGuard};

use clearway_base::breath::{self, Helped, StopFlag, team, within_now};
use clearway_base::memory::{self, Account, Accounted, accounts, charged};
use clearway_base::sync::block_on;
use clearway_base::waits::{SessionStats, current_session_id, set_thread_session};

#[global_allocator]
static ALLOCATOR: Accounted = Accounted;

/// The turns are those of the process: one test at a time.
static ONE: Mutex<()> = Mutex::new(());

fn begin() -> MutexGuard<'static, ()> {
    breath::install(|work| work(), 4);
    ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn together(work: &(dyn Fn(&breath::Hand<'_>) + Sync)) -> Option<Helped> {
    within_now(Arc::new(StopFlag::new(9)), || team(3, true).map(|team| team.run(work)))
}

#[test]
fn all_hands_take_pieces_and_have_ended_when_the_caller_goes_on() {
    let _one = begin();
    let (everybody, ended) = (Barrier::new(4), AtomicUsize::new(0));
    let helped = together(&|hand| {
        everybody.wait();
        assert!(hand.goes_on());
        ended.fetch_add(1, SeqCst);
    });
    assert_eq!(helped, Some(Helped { helpers: 3, gave_way: 0 }), "one turn is the caller's (BRE-8)");
    assert_eq!(ended.load(SeqCst), 4, "BRE-7");
}

#[test]
fn a_helper_has_a_turn_and_gives_it_back() {
    let _one = begin();
    for _ in 0..20 {
        // A turn that was not given back would be missing in a later round (BRE-8); so would the caller's.
        assert_eq!(together(&|_| {}).map(|helped| helped.helpers), Some(3));
    }
    let none_within = together(&|hand| {
        if hand.helps() {
            assert!(team(3, true).is_none(), "a helper has no helpers");
        }
    });
    assert!(none_within.is_some());
    assert!(team(3, true).is_none(), "code that no flag stops has none");
}

#[test]
fn the_panic_of_a_helper_is_the_callers() {
    let _one = begin();
    let panics = || {
        together(&|hand| {
            if hand.helps() {
                std::panic::resume_unwind(Box::new("planted"));
            }
        })
    };
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err(), "BRE-7");
    assert_eq!(together(&|_| {}).map(|helped| helped.helpers), Some(3), "the turns are free again");
}

#[test]
fn what_helpers_allocate_counts_to_the_callers_account_and_is_refused_there() {
    let _one = begin();
    let account = Account::open(77);
    let kept = std::sync::Mutex::new(Vec::new());
    let bytes = || accounts().iter().find(|a| a.pid == 77).map_or(0, |a| a.bytes);
    let refused = block_on(charged(account, async {
        memory::begin_statement(64 << 20);
        let before = bytes();
        let refused = AtomicUsize::new(0);
        together(&|_| {
            for _ in 0..4 {
                let piece = vec![1u8; 1 << 20];
                kept.lock().unwrap().push(piece);
            }
        });
        let grown = bytes() - before;
        assert!(grown > 15 << 20, "{grown} bytes of four threads (BRE-9, MEM-6)");
        together(&|_| {
            let mut own = Vec::new();
            while memory::check().is_ok() && own.len() < 64 {
                own.push(vec![1u8; 1 << 20]);
            }
            refused.fetch_add(usize::from(own.len() < 64), SeqCst);
        });
        kept.lock().unwrap().clear();
        refused.load(SeqCst)
    }));
    assert_eq!(refused, 4, "the limit is that of all of them together");
    let left = bytes();
    assert!(left.abs() < 1 << 20, "{left} bytes are left (MEM-1)");
    account.close();
}

#[test]
fn threads_that_enter_at_the_same_time_lose_nothing() {
    let _one = begin();
    let account = Account::open(79);
    let bytes = || accounts().iter().find(|a| a.pid == 79).map_or(0, |a| a.bytes);
    let left = block_on(charged(account, async {
        memory::begin_statement(0);
        let before = bytes();
        for _ in 0..20 {
            together(&|_| {
                // Each is entered at once, and so is its end.
                for _ in 0..20_000 {
                    std::hint::black_box(Vec::<u8>::with_capacity(70_000));
                }
            });
        }
        memory::begin_statement(0);
        bytes() - before
    }));
    assert!(left.abs() < 100_000, "{left} bytes (MEM-6)");
    account.close();
}

#[test]
fn the_callers_flag_stops_all_hands() {
    let _one = begin();
    let (flag, stopped) = (Arc::new(StopFlag::new(9)), AtomicUsize::new(0));
    let began = Barrier::new(4);
    within_now(flag.clone(), || {
        let team = team(3, true).expect("helpers");
        team.run(&|hand| {
            began.wait();
            if !hand.helps() {
                flag.raise(1);
            }
            // Without the flag it would end by itself, after some seconds.
            let ended = (0..100_000).find_map(|_| breath::step(1 << 20).err());
            stopped.fetch_add(usize::from(ended.is_some()), SeqCst);
        })
    });
    assert_eq!(stopped.load(SeqCst), 4, "BRE-9");
}

thread_local! {
    /// What a thread keeps until it ends.
    static KEPT: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
}

#[test]
fn what_a_helper_keeps_until_its_thread_ends_leaves_the_callers_account_with_it() {
    let _one = begin();
    let account = Account::open(78);
    let bytes = || accounts().iter().find(|a| a.pid == 78).map_or(0, |a| a.bytes);
    let grown = block_on(charged(account, async {
        // The first round makes what stays.
        together(&|_| {});
        memory::begin_statement(0);
        let before = bytes();
        for _ in 0..200 {
            together(&|hand| {
                if hand.helps() {
                    KEPT.with_borrow_mut(|kept| kept.resize(20_000, 1));
                }
            });
        }
        memory::begin_statement(0);
        bytes() - before
    }));
    assert!(grown.abs() < 50_000, "{grown} bytes of 600 threads that have ended (MEM-6)");
    account.close();
}

#[test]
fn the_processor_time_of_helpers_is_the_callers() {
    let _one = begin();
    let session = SessionStats::new("caller");
    set_thread_session(Some(session.clone()));
    let before = session.time(0).cpu_ns;
    let own = current_session_id();
    let others = std::sync::Mutex::new(Vec::new());
    together(&|hand| {
        let mut sum = 0u64;
        for n in 0..3_000_000u64 {
            sum = std::hint::black_box(sum.wrapping_mul(31) + n);
        }
        if hand.helps() {
            others.lock().unwrap().push((current_session_id(), sum));
        }
    });
    let others = others.into_inner().unwrap();
    assert_eq!(others.len(), 3);
    assert!(others.iter().all(|(id, _)| *id != own && *id != 0), "the waits of a helper show as its own (SES-2)");
    let added = session.time(0).cpu_ns - before;
    assert!(added > 1_000_000, "{added} ns (BRE-9)");
    set_thread_session(None);
}
