//! Entries of an index, read ahead and put in the order of their rows' keys: so rows are looked up leaf by leaf, and not each in another
//! place of the table. PostgreSQL's bitmap scans do the same with the places of rows.
//!
//! # Structure
//! Each window of entries is sixteen times as long as the one before, up to [`BYTES_MAX`]: a statement may want no more than a few rows. A leaf of the
//! table is read once for each window that leads to it, so that few long windows are better than many.

use std::cmp::Ordering;

/// Bytes of entries from which on the first window, and the longest one, is not extended.
const BYTES_MIN: usize = 1 << 14;
const BYTES_MAX: usize = 1 << 22;

struct Place {
    /// The first bytes of the row's key.
    head: u64,
    from: u32,
    /// Where in the entry the row's key begins.
    key_at: u32,
    end: u32,
    only_shown: bool,
}

/// A window of entries.
#[derive(Default)]
pub(super) struct Gathered {
    bytes: Vec<u8>,
    places: Vec<Place>,
    next: usize,
    /// How many windows there were before.
    windows: u32,
}

impl Gathered {
    /// The next entry, where its row's key begins in it, and whether it leads to a row that only the snapshot shows.
    pub(super) fn take(&mut self) -> Option<(&[u8], usize, bool)> {
        let place = self.places.get(self.next)?;
        self.next += 1;
        Some((&self.bytes[place.from as usize..place.end as usize], place.key_at as usize, place.only_shown))
    }

    /// The key of the row to which an entry leads, `n` entries behind the next one.
    pub(super) fn key(&self, n: usize) -> Option<&[u8]> {
        let place = self.places.get(self.next + n)?;
        Some(&self.bytes[(place.from + place.key_at) as usize..place.end as usize])
    }

    /// Steps over entries.
    pub(super) fn skip(&mut self, entries: usize) {
        self.next += entries;
    }

    /// Whether no entry of the window is left.
    pub(super) fn is_used_up(&self) -> bool {
        self.next >= self.places.len()
    }

    /// Begins a new window.
    pub(super) fn begin(&mut self) {
        self.bytes.clear();
        self.places.clear();
        self.next = 0;
    }

    /// Whether the window takes no more entries.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= BYTES_MIN.saturating_mul(16usize.saturating_pow(self.windows)).min(BYTES_MAX)
    }

    /// Adds an entry.
    pub(super) fn push(&mut self, entry: &[u8], key_at: usize, only_shown: bool) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(entry);
        let mut head = [0; 8];
        let key = &entry[key_at..];
        let shared = key.len().min(8);
        head[..shared].copy_from_slice(&key[..shared]);
        let (from, key_at, end) = (from as u32, key_at as u32, self.bytes.len() as u32);
        self.places.push(Place { head: u64::from_be_bytes(head), from, key_at, end, only_shown });
    }

    /// Puts the window in the order of the rows' keys.
    pub(super) fn end(&mut self) {
        let bytes = &self.bytes;
        let key = |p: &Place| &bytes[(p.from + p.key_at) as usize..p.end as usize];
        self.places.sort_unstable_by(|a, b| match a.head.cmp(&b.head) {
            Ordering::Equal => (key(a), a.from).cmp(&(key(b), b.from)),
            unequal => unequal,
        });
        self.windows = self.windows.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(gathered: &mut Gathered, entries: &[&str]) -> Vec<String> {
        gathered.begin();
        entries.iter().for_each(|e| gathered.push(e.as_bytes(), 1, false));
        gathered.end();
        let mut out = Vec::new();
        while let Some((entry, key_at, only_shown)) = gathered.take() {
            assert!(key_at == 1 && !only_shown);
            out.push(String::from_utf8_lossy(entry).into_owned());
        }
        out
    }

    #[test]
    fn a_window_is_in_the_order_of_the_keys() {
        let mut gathered = Gathered::default();
        assert!(gathered.take().is_none());
        let entries = ["acd", "bab", "babcdefghz", "bb", "babcdefgha", "c", "bab"];
        for _ in 0..2 {
            assert_eq!(window(&mut gathered, &entries), ["c", "bab", "bab", "babcdefgha", "babcdefghz", "bb", "acd"]);
        }
    }

    #[test]
    fn windows_grow() {
        let (mut gathered, mut lengths) = (Gathered::default(), Vec::new());
        for _ in 0..4 {
            gathered.begin();
            while !gathered.is_full() {
                gathered.push(&[7; 128], 0, false);
            }
            gathered.end();
            lengths.push(gathered.bytes.len());
        }
        assert_eq!(lengths, [1 << 14, 1 << 18, 1 << 22, 1 << 22]);
    }
}
