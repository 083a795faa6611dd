//! The digest of a statement: its text with its constants replaced, and a hash of that.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use clearway_base::waits::Measure;

/// Bytes of a digest's text.
pub const TEXT_MAX: usize = 4_096;
/// Longer texts are not read for their digest, in bytes.
const READ_MAX: usize = 1 << 20;

/// A statement with its constants replaced.
#[derive(Debug)]
pub struct Digest {
    /// A stable hash of the whole text; `query_id` in PostgreSQL's views.
    pub id: u64,
    /// The text, cut at [`TEXT_MAX`].
    pub text: Arc<str>,
    /// The tags of its comment ([`super::tags`]), and their hash; 0: it has none.
    pub tags: Arc<str>,
    /// See there.
    pub tags_hash: u64,
    /// How the processor time of its next execution is measured: a [`Measure`] ([`Digest::ran_as`]).
    pub measure: AtomicU8,
}

impl Digest {
    /// The digest of a text; of one that does not read well, its own.
    pub fn of(sql: &str) -> Arc<Digest> {
        Digest::within(sql, sql)
    }

    /// That of a part of a text whose comment may stand behind it.
    pub fn within(sql: &str, whole: &str) -> Arc<Digest> {
        let sql = sql.trim().trim_end_matches(';').trim_end();
        // Of longer texts, which are few, the beginning is taken for the whole.
        let read = if sql.len() > READ_MAX { None } else { clearway_syntax::digest::digest(sql).ok() };
        let (id, mut text) = match read {
            Some(digest) => (digest.hash, digest.text),
            None => {
                let head: String = sql.chars().take(200).collect();
                (hash_of(&head), head)
            }
        };
        if text.len() > TEXT_MAX {
            let end = (0..=TEXT_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            text.truncate(end);
        }
        let tags = super::tags::of(whole);
        let tags_hash = if tags.is_empty() { 0 } else { hash_of(&tags) };
        let measure = AtomicU8::new(Measure::RunDelay as u8);
        Arc::new(Digest { id, text: text.into(), tags: tags.into(), tags_hash, measure })
    }

    /// An execution has ended that should have been measured so. Of sessions that run the digest at the same time any one may count.
    #[inline]
    pub fn ran_as(&self, measure: Measure) {
        let before = self.measure.load(Relaxed);
        if before != measure as u8 {
            self.measure.store(measure.after(before.into()) as u8, Relaxed);
        }
    }
}

/// FNV-1a, 64 bits.
pub fn hash_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}
