//! The sample of a digest: one execution of such a statement, with the constants that the digest replaces.
//!
//! # Invariants
//! - STX-1: the sample is the slowest execution, or a later one where the slowest was more than a minute earlier.
//! - STX-2: the text of a statement that may hold a password is not kept.

use clearway_base::waits::wall_us;

/// Bytes of a sample's text.
const TEXT_MAX: usize = 1_024;
/// A sample is replaced after this by the next execution, however long that took, in nanoseconds.
const AGE_NS: u64 = 60_000_000_000;

/// An execution of a statement with its constants (STX-1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleText {
    /// Its text, cut at 1,024 bytes; empty: none was taken.
    pub text: Box<str>,
    /// How long it took.
    pub ns: u64,
    /// When it ended, by the clock of wait events; 0: in an earlier run of the server.
    pub ended_ns: u64,
    /// The same: wall clock, microseconds since 1970.
    pub ended_us: i64,
}

/// Until when an execution that ended then stays the sample, if none takes longer (STX-1).
pub(super) fn lasts_until(ended_ns: u64) -> u64 {
    ended_ns.saturating_add(AGE_NS)
}

impl SampleText {
    /// That of an execution, with the text as the client sent it.
    pub(super) fn of(text: &str, ns: u64, ended_ns: u64) -> SampleText {
        let end = (0..=text.len().min(TEXT_MAX)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        // STX-2; a password that is cut off need not be looked for.
        let text = &text[..end];
        let is_secret = text.as_bytes().windows(8).any(|word| word.eq_ignore_ascii_case(b"password"));
        let text = if is_secret { "" } else { text };
        SampleText { text: text.into(), ns, ended_ns, ended_us: wall_us() }
    }

    /// Whether an execution that took so long, and ended then, is to take its place.
    pub(super) fn yields_to(&self, ns: u64, ended_ns: u64) -> bool {
        ns > self.ns || ended_ns > lasts_until(self.ended_ns)
    }

    /// Merges another sample of the digest: the slower one stays if they ended within a minute, else the later one (STX-1).
    pub(super) fn add(&mut self, other: &SampleText) {
        let is_far = (other.ended_us - self.ended_us).unsigned_abs() * 1_000 > AGE_NS;
        let is_chosen = if is_far { other.ended_us > self.ended_us } else { other.ns > self.ns };
        if is_chosen {
            self.clone_from(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slower_execution_takes_its_place_and_after_a_minute_any() {
        let sample = SampleText::of("select 1", 5, 100);
        assert!(sample.yields_to(6, 100) && !sample.yields_to(5, 101), "STX-1");
        assert!(!sample.yields_to(1, 100 + AGE_NS) && sample.yields_to(1, 101 + AGE_NS), "STX-1");
        let mut older = SampleText { text: "slow".into(), ns: 9, ended_ns: 0, ended_us: 0 };
        older.add(&SampleText { text: "faster".into(), ns: 5, ended_ns: 0, ended_us: 1 });
        assert_eq!(&*older.text, "slow");
        older.add(&SampleText { text: "later".into(), ns: 5, ended_ns: 0, ended_us: 60_000_001 });
        assert_eq!(&*older.text, "later");
    }

    #[test]
    fn texts_are_cut_between_characters_and_passwords_are_not_kept() {
        assert_eq!(SampleText::of(&format!("select {}", "é".repeat(TEXT_MAX)), 1, 0).text.len(), TEXT_MAX - 1);
        assert_eq!(&*SampleText::of("ALTER ROLE a PassWord 'secret'", 1, 0).text, "", "STX-2");
    }
}
