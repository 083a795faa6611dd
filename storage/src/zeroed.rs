//! Large arrays of atomic words that begin as zeros. The system gives zeroed memory page by page when it is first touched, so an array costs
//! nothing before it is used: neither time when a database is opened, nor memory while it stays small.

use std::sync::atomic::AtomicU64;

/// So many words of zero.
pub(crate) fn words(count: usize) -> Box<[AtomicU64]> {
    bytemuck::zeroed_slice_box(count)
}

/// So many pages of zero words.
#[cfg(not(feature = "interleave"))]
pub(crate) fn pages<const WORDS: usize>(count: usize) -> Box<[[AtomicU64; WORDS]]>
where
    [AtomicU64; WORDS]: bytemuck::Zeroable,
{
    bytemuck::zeroed_slice_box(count)
}

/// The same of words whose operations are points of a test's schedule.
#[cfg(feature = "interleave")]
pub(crate) fn pages<const WORDS: usize>(count: usize) -> Box<[[crate::interleave::AtomicWord; WORDS]]> {
    (0..count).map(|_| [const { crate::interleave::AtomicWord::new(0) }; WORDS]).collect()
}
