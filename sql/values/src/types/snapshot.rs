//! pg_snapshot and txid_snapshot: `xmin:xmax:ids`. A value in memory is its text, in the one form that [`text`] writes.

use super::text::invalid;
use crate::error::Result;

/// The ids of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// All transactions below it are seen.
    pub xmin: u64,
    /// Those from it on are not seen.
    pub xmax: u64,
    /// Those between that are not seen, in their order, each once.
    pub running: Vec<u64>,
}

/// Digits as PostgreSQL reads them (strtoull with base 10), and the rest of the text.
fn number(text: &str) -> (u64, &str) {
    let blank = |c: char| c.is_ascii_whitespace() || c == '\x0b';
    let start = text.trim_start_matches(blank);
    let (negative, digits) = match start.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, start.strip_prefix('+').unwrap_or(start)),
    };
    let end = digits.bytes().take_while(u8::is_ascii_digit).count();
    if end == 0 {
        return (0, text);
    }
    match digits[..end].parse::<u64>() {
        Ok(value) => (if negative { value.wrapping_neg() } else { value }, &digits[end..]),
        Err(_) => (u64::MAX, &digits[end..]),
    }
}

/// Reads a snapshot.
///
/// # Errors
/// 22P02.
pub fn parse(written: &str) -> Result<Snapshot> {
    let bad = || invalid("pg_snapshot", written);
    let (xmin, rest) = number(written);
    let (xmax, rest) = number(rest.strip_prefix(':').ok_or_else(bad)?);
    let mut rest = rest.strip_prefix(':').ok_or_else(bad)?;
    let mut snapshot = checked(xmin, xmax).ok_or_else(bad)?;
    let mut last = 0;
    while !rest.is_empty() {
        let (id, behind) = number(rest);
        if id < xmin || id >= xmax || id < last {
            return Err(bad());
        }
        if id != last {
            snapshot.running.push(id);
        }
        last = id;
        rest = match behind.strip_prefix(',') {
            Some(next) => next,
            None if behind.is_empty() => behind,
            None => return Err(bad()),
        };
    }
    Ok(snapshot)
}

/// A snapshot without running transactions; none where the bounds are none. The lower half of an id is never 0.
pub fn checked(xmin: u64, xmax: u64) -> Option<Snapshot> {
    let valid = |id: u64| id as u32 != 0;
    (valid(xmin) && valid(xmax) && xmin <= xmax).then(|| Snapshot { xmin, xmax, running: Vec::new() })
}

/// The text of a snapshot.
pub fn text(snapshot: &Snapshot) -> String {
    let ids: Vec<String> = snapshot.running.iter().map(u64::to_string).collect();
    format!("{}:{}:{}", snapshot.xmin, snapshot.xmax, ids.join(","))
}

/// The binary form of a value, which is a text that can be read.
pub fn send(text: &str, out: &mut Vec<u8>) {
    if let Ok(snapshot) = parse(text) {
        snapshot.send(out);
    }
}

impl Snapshot {
    /// Whether what a transaction has committed is seen.
    pub fn sees(&self, id: u64) -> bool {
        id < self.xmin || (id < self.xmax && self.running.binary_search(&id).is_err())
    }

    /// The binary form.
    pub fn send(&self, out: &mut Vec<u8>) {
        out.extend((self.running.len() as u32).to_be_bytes());
        [self.xmin, self.xmax].iter().chain(&self.running).for_each(|id| out.extend(id.to_be_bytes()));
    }

    /// Reads the binary form; none: it is none.
    pub fn receive(bytes: &[u8]) -> Option<Snapshot> {
        let (count, rest) = bytes.split_first_chunk::<4>()?;
        let (ids, left) = rest.as_chunks::<8>();
        let ids: Vec<u64> = ids.iter().map(|id| u64::from_be_bytes(*id)).collect();
        let (bounds, running) = ids.split_first_chunk::<2>()?;
        let mut snapshot = checked(bounds[0], bounds[1])?;
        let ordered = running.is_sorted() && running.iter().all(|id| (snapshot.xmin..snapshot.xmax).contains(id));
        if !left.is_empty() || u32::from_be_bytes(*count) as usize != running.len() || !ordered {
            return None;
        }
        snapshot.running = running.to_vec();
        snapshot.running.dedup();
        Some(snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_are_read_and_written() {
        let read = |written: &str| parse(written).map(|snapshot| text(&snapshot)).ok();
        assert_eq!(read("10:20:10,14,15").as_deref(), Some("10:20:10,14,15"));
        assert_eq!(read("12:18:14,14,16,").as_deref(), Some("12:18:14,16"));
        assert_eq!(read("1:1:").as_deref(), Some("1:1:"));
        for bad in ["31:12:", "0:1:", "12:13:0", "12:16:14,13", "12:16:14 15", "12", "a:1:", "12:13:13"] {
            assert_eq!(read(bad), None, "{bad}");
        }
        let snapshot = parse("12:20:13,15,18").expect("a snapshot");
        let seen: Vec<u64> = (11..22).filter(|id| snapshot.sees(*id)).collect();
        assert_eq!(seen, [11, 12, 14, 16, 17, 19]);
        let mut bytes = Vec::new();
        snapshot.send(&mut bytes);
        assert_eq!(Snapshot::receive(&bytes), Some(snapshot));
        assert_eq!(Snapshot::receive(&bytes[..bytes.len() - 1]), None);
    }
}
