//! Pools: what the accounts of several sessions have together, with a limit.
//!
//! # Invariants
//! - POOL-1: the bytes of a pool are what its accounts have told it; an account that leaves takes back what it has told.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};

use crate::sync::{Class, Mutex};

/// How many pools there can be. They are places of a table, since the allocator's hook may follow no reference that could be freed.
pub const POOLS_MAX: usize = 4_096;

struct Counters {
    bytes: AtomicI64,
    limit: AtomicI64,
}

static POOLS: [Counters; POOLS_MAX] =
    [const { Counters { bytes: AtomicI64::new(0), limit: AtomicI64::new(i64::MAX) } }; POOLS_MAX];
static MADE: AtomicUsize = AtomicUsize::new(0);
static CLASS: Class = Class::new("memory/pools");
static NAMES: Mutex<Vec<(usize, String)>> = Mutex::of_class(&CLASS, Vec::new());

/// A pool. It is never freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool(u16);

impl Pool {
    /// A new pool without a limit; none: there are as many as there can be.
    pub fn new() -> Option<Pool> {
        let at = MADE.fetch_update(Relaxed, Relaxed, |made| (made < POOLS_MAX).then_some(made + 1)).ok()?;
        u16::try_from(at).ok().map(Pool)
    }

    /// Sets the limit in bytes (0: none), and how errors name the pool.
    pub fn set(self, bytes: u64, name: &str) {
        let limit = if bytes == 0 { i64::MAX } else { i64::try_from(bytes).unwrap_or(i64::MAX) };
        self.counters().limit.store(limit, Relaxed);
        let mut names = NAMES.lock();
        match names.iter_mut().find(|(at, _)| *at == usize::from(self.0)) {
            Some((_, known)) => name.clone_into(known),
            None => names.push((usize::from(self.0), name.to_owned())),
        }
    }

    fn counters(self) -> &'static Counters {
        &POOLS[usize::from(self.0) % POOLS_MAX]
    }

    /// What its accounts have.
    pub fn bytes(self) -> i64 {
        self.counters().bytes.load(Relaxed)
    }

    pub(super) fn limit(self) -> i64 {
        self.counters().limit.load(Relaxed)
    }

    pub(super) fn add(self, bytes: i64) {
        self.counters().bytes.fetch_add(bytes, Relaxed);
    }

    pub(super) fn name(self) -> String {
        let names = NAMES.lock();
        names.iter().find(|(at, _)| *at == usize::from(self.0)).map_or_else(String::new, |(_, name)| name.clone())
    }

    /// As a number from 1 on, for an atomic place; 0 stands for none.
    pub(super) fn to_place(pool: Option<Pool>) -> u16 {
        pool.map_or(0, |pool| pool.0 + 1)
    }

    pub(super) fn at_place(place: u16) -> Option<Pool> {
        place.checked_sub(1).map(Pool)
    }
}
