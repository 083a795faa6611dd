//! The text form in which totals are kept over restarts: of waits, of latches and mutexes, and of the sessions' time; one line each,
//! fields separated by tabs.
//!
//! ```text
//! event   VARIANT  waits  total_ns  max_ns  spin_ns  bucket:waits,...
//! class   NAME     waits  parks     spin_ns park_ns  max_ns  holds  longest_hold_ns
//! time    elapsed_ns  cpu_ns  idle_ns  run_queue_ns  wait_ns  io_ns  durable_ns
//! ```
//!
//! # Errors
//! A line that can't be read (written by another version, or damaged) is skipped.

use std::fmt::Write as _;

use clearway_base::sync::{ClassStats, classes, restore_classes};
use clearway_base::waits::{self, EventTotals, HISTOGRAM_BUCKETS, SessionTime, WaitEvent};

/// Everything since the first start, as it is now.
pub fn saved() -> String {
    written(&waits::totals(), &classes(), &sessions_time())
}

/// The time of all sessions, of those that go on until now.
fn sessions_time() -> SessionTime {
    let now_ns = waits::now_ns();
    let mut time = waits::ended_time();
    // Threads that poll no session's work have no elapsed time.
    let live = waits::sessions().into_iter().filter(|session| session.elapsed_and_cpu().0 > 0);
    live.for_each(|session| time.add(&session.time(now_ns)));
    time
}

/// Takes in what an earlier run has left.
pub fn restore(text: &str) {
    let read = read(text);
    waits::restore_totals(&read.events);
    restore_classes(read.classes);
    waits::restore_time(&read.time);
}

fn written(totals: &[EventTotals], classes: &[ClassStats], time: &SessionTime) -> String {
    let SessionTime { elapsed_ns, cpu_ns, idle_ns, run_queue_ns, wait_ns, io_ns, durable_ns } = time;
    let mut out =
        format!("time\t{elapsed_ns}\t{cpu_ns}\t{idle_ns}\t{run_queue_ns}\t{wait_ns}\t{io_ns}\t{durable_ns}\n");
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

/// What has been read.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    events: Vec<(WaitEvent, EventTotals)>,
    classes: Vec<(String, [u64; 7])>,
    time: SessionTime,
}

fn read(text: &str) -> Read {
    let mut out = Read::default();
    for line in text.lines() {
        match line.split_once('\t') {
            Some(("event", rest)) => out.events.extend(read_event(rest)),
            Some(("class", rest)) => out.classes.extend(read_class(rest)),
            Some(("time", rest)) => out.time = read_time(rest).unwrap_or(out.time),
            _ => {}
        }
    }
    out
}

fn read_time(line: &str) -> Option<SessionTime> {
    let figures: Option<Vec<u64>> = line.split('\t').map(|field| field.parse().ok()).collect();
    let [elapsed_ns, cpu_ns, idle_ns, run_queue_ns, wait_ns, io_ns, durable_ns] = figures?.try_into().ok()?;
    Some(SessionTime { elapsed_ns, cpu_ns, idle_ns, run_queue_ns, wait_ns, io_ns, durable_ns })
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
        let time = SessionTime {
            elapsed_ns: 11,
            cpu_ns: 12,
            idle_ns: 13,
            run_queue_ns: 14,
            wait_ns: 15,
            io_ns: 16,
            durable_ns: 17,
        };
        let text = written(&totals, &[class], &time);
        let damaged = "event\tWalSync\t1\nevent\tNothing\t1\t1\t1\t1\t\nevent\tWalSync\t1\t1\t1\t1\t40:1\nclass\ta\t1\nclass\t\t1\t1\t1\t1\t1\t1\t1\n\t\n";
        let read = read(&format!("{damaged}{text}time\t1\ntime\t1\t1\t1\t1\t1\t1\t-1\n"));
        let classes = vec![("a/b c".to_owned(), [1, 2, 3, 4, 5, 6, 7])];
        assert_eq!(read, Read { events: vec![(WaitEvent::WalSync, total)], classes, time });
    }
}
