//! Counters of the pool and its trees. Views show them, and tests read them to prove that a path was not taken.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const STRIPES: usize = 8;

/// One counter, spread over cache lines so that threads don't contend for it.
#[derive(Default)]
pub struct Count {
    stripes: [Stripe; STRIPES],
}

#[derive(Default)]
#[repr(align(128))]
struct Stripe(AtomicU64);

thread_local! {
    static STRIPE: usize = {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        (NEXT.fetch_add(1, Relaxed) % STRIPES as u64) as usize
    };
}

impl Count {
    /// Adds `n`.
    #[inline]
    pub fn add(&self, n: u64) {
        self.stripes[STRIPE.with(|stripe| *stripe)].0.fetch_add(n, Relaxed);
    }

    /// The sum.
    pub fn get(&self) -> u64 {
        self.stripes.iter().map(|stripe| stripe.0.load(Relaxed)).sum()
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of one pool and the trees in it.
        #[derive(Default)]
        pub struct Counters {
            $($(#[$doc])* pub $name: Count,)*
        }

        /// The counters' values at a moment.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct CountersView {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// All values.
            pub fn view(&self) -> CountersView {
                CountersView { $($name: self.$name.get(),)* }
            }
        }
    };
}

counters! {
    /// Pages read from disk: the sum of the five that follow.
    misses,
    /// Of these, for a descent: the next page on the way.
    path_reads,
    /// Ahead of a scan.
    ahead_reads,
    /// For an overflow chain.
    chain_reads,
    /// To be pinned or redone.
    pin_reads,
    /// A new node that was evicted before its parent learned of it: read to see that it is alive, never to be latched.
    /// Nothing else beside the way of a descent is read for a change of structure.
    neighbour_reads,
    /// Merges that were left because a neighbour was not in memory.
    neighbours_absent,
    /// Reads from disk that were ahead of a scan: each brought the pages of one run.
    ahead_runs,
    /// Pages that came into memory to be formatted, unread.
    new_pages,
    /// Pages that left memory.
    evictions,
    /// Pages written in place.
    pages_written,
    /// Writes in place: each took the pages of one run.
    write_runs,
    /// Batches of the double write.
    double_writes,
    /// Times that a thread found a latch taken.
    latch_waits,
    /// Times that a writer was slowed down.
    throttled,
    /// Times that a task waited for a free frame.
    frame_waits,
    /// Reads, writes or awaits begun by a thread that held a latch. Must stay 0.
    io_under_latch,
    /// Descents from a root, for changes.
    descents,
    /// Descents for changes that began again because a page changed under them.
    restarts,
    /// Reads of rows and of leaves of a range.
    reads,
    /// Reads that began again because a page changed under them.
    read_restarts,
    /// Changes that found their leaf without a descent, behind the one before them.
    appends,
    /// Steps to the right because a parent did not know of a split yet.
    right_steps,
    /// Leaves split.
    leaf_splits,
    /// Inner nodes split, roots included.
    inner_splits,
    /// Separators put into a parent, by traversers.
    separators,
    /// Splits that stripping or compaction made needless.
    splits_avoided,
    /// Pairs of nodes merged.
    merges,
    /// Times that rows moved from a leaf to its left neighbour.
    moves,
    /// Latches on the root of a tree of several levels, which every descent passes: to change it. A change of a row
    /// takes none.
    root_latches,
}
