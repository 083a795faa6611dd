//! The engine through its public interface: on files in memory with threads, and on a simulated disk with crashes.

#![allow(clippy::disallowed_methods, reason = "tests, no part of the database")]

/// So that debug builds see what allocates in the commit section (HELD-3).
#[global_allocator]
static ALLOCATOR: clearway_base::memory::Accounted = clearway_base::memory::Accounted;

mod it {
    pub mod alone;
    pub mod basics;
    pub mod bulk_build;
    pub mod bulk_change;
    pub mod bulk_load;
    pub mod closing;
    pub mod closing_beside;
    pub mod commit_section;
    pub mod damage;
    pub mod damage_sweep;
    pub mod directory;
    pub mod embedded;
    pub mod exported;
    pub mod formats;
    pub mod index_ranges;
    pub mod indexes;
    pub mod key_waits;
    pub mod many_tables;
    pub mod opening;
    pub mod panics;
    pub mod relaxed;
    pub mod row_locks;
    pub mod space;
    pub mod spilled;
    pub mod statistics;
    pub mod support;
    pub mod temporary;
    pub mod two_rows;
    pub mod two_snapshots;
    pub mod unordered_runs;
}
