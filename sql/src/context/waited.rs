//! Totals of waits, and of latches and mutexes, as they are kept over restarts: lines of fields between tabs.
//!
//! ```text
//! event   VARIANT  waits  total_ns  max_ns  spin_ns  bucket:waits,...
//! class   NAME     waits  parks     spin_ns park_ns  max_ns  holds  longest_hold_ns
//! ```
//!
//! # Errors
//! A line that does not read well (of another version, damaged) is left out.

use std::fmt::Write as _;

use clearway_base::sync::{ClassStats, classes, restore_classes};
use clearway_base::waits::{self, EventTotals, HISTOGRAM_BUCKETS, WaitEvent};

/// Everything since the first start, as it is now.
pub fn saved() -> String {
    written(&waits::totals(), &classes())
}

/// Takes in what an earlier run has left.
pub fn restore(text: &str) {
    let (totals, classes) = read(text);
    waits::restore_totals(&totals);
    restore_classes(classes);
}

fn written(totals: &[EventTotals], classes: &[ClassStats]) -> String {
    let mut out = String::new();
    for (event, total) in WaitEvent::all().iter().zip(totals).filter(|(_, total)| total.count > 0) {
        let EventTotals { count, total_ns, max_ns, spin_ns, histogram } = total;
        let buckets = histogram.iter().enumerate().filter(|(_, count)| **count > 0);
        let buckets: Vec<String> = buckets.map(|(bucket, count)| format!("{bucket}:{count}")).collect();
        // Writing to a string does not fail.
        _ = writeln!(
            out,
            "event\t{}\t{count}\t{total_ns}\t{max_ns}\t{spin_ns}\t{}",
            event.row().variant,
            buckets.join(",")
        );
    }
    for class in classes.iter().filter(|class| class.slow > 0 || class.holds > 0) {
        let ClassStats { name, slow, parks, spin_ns, park_ns, max_ns, holds, hold_max_ns, .. } = class;
        _ = writeln!(out, "class\t{name}\t{slow}\t{parks}\t{spin_ns}\t{park_ns}\t{max_ns}\t{holds}\t{hold_max_ns}");
    }
    out
}

type Classes = Vec<(String, [u64; 7])>;

fn read(text: &str) -> (Vec<(WaitEvent, EventTotals)>, Classes) {
    let (mut events, mut classes) = (Vec::new(), Vec::new());
    for line in text.lines() {
        match line.split_once('\t') {
            Some(("event", rest)) => events.extend(read_event(rest)),
            Some(("class", rest)) => classes.extend(read_class(rest)),
            _ => {}
        }
    }
    (events, classes)
}

fn read_event(line: &str) -> Option<(WaitEvent, EventTotals)> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [variant, count, total, max, spin, buckets] = fields[..] else { return None };
    let event = WaitEvent::rows().iter().find(|row| row.variant == variant)?.event;
    let mut histogram = [0; HISTOGRAM_BUCKETS];
    for part in buckets.split(',').filter(|part| !part.is_empty()) {
        let (bucket, count) = part.split_once(':')?;
        *histogram.get_mut(bucket.parse::<usize>().ok()?)? = count.parse().ok()?;
    }
    let n = |text: &str| text.parse::<u64>().ok();
    let totals = EventTotals { count: n(count)?, total_ns: n(total)?, max_ns: n(max)?, spin_ns: n(spin)?, histogram };
    Some((event, totals))
}

fn read_class(line: &str) -> Option<(String, [u64; 7])> {
    let mut fields = line.split('\t');
    let name = fields.next().filter(|name| !name.is_empty())?;
    let figures: Option<Vec<u64>> = fields.map(|field| field.parse().ok()).collect();
    Some((name.to_owned(), figures?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_what_is_damaged_is_left_out() {
        let mut totals = vec![EventTotals::default(); WaitEvent::COUNT];
        let mut total = EventTotals { count: 7, total_ns: 100, max_ns: 60, spin_ns: 5, ..EventTotals::default() };
        (total.histogram[3], total.histogram[39]) = (6, 1);
        totals[WaitEvent::WalSync.index()] = total;
        let class = ClassStats {
            name: "a/b c",
            slow: 1,
            parks: 2,
            spin_ns: 3,
            park_ns: 4,
            max_ns: 5,
            waiting: 9,
            holds: 6,
            hold_max_ns: 7,
            holder: None,
        };
        let text = written(&totals, &[class]);
        let damaged = "event\tWalSync\t1\nevent\tNothing\t1\t1\t1\t1\t\nevent\tWalSync\t1\t1\t1\t1\t40:1\nclass\ta\t1\nclass\t\t1\t1\t1\t1\t1\t1\t1\n\t\n";
        let read = read(&format!("{damaged}{text}"));
        assert_eq!(read, (vec![(WaitEvent::WalSync, total)], vec![("a/b c".to_owned(), [1, 2, 3, 4, 5, 6, 7])]));
    }
}
