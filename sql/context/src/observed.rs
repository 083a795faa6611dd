//! The text form in which statement costs and session samples are kept over restarts: one line each, fields separated by tabs.
//!
//! # Errors
//! A line that can't be read (written by another version, or damaged) is skipped.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use clearway_base::usage::Usage;
use clearway_base::waits::WaitEvent;

use super::samples::Sample;
use super::statement_sample::SampleText;
use super::statements::{BUCKETS, Cost, Digest, Key, Work, hash_of};

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n")
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('t')) => out.push('\t'),
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some(other)) => out.push(other),
            (c, _) => out.push(c),
        }
    }
    out
}

/// The most statements that are kept over restarts: those that took most time.
const STATEMENTS_KEPT: usize = 5_000;

/// The lines of the statements that took most time.
pub fn write_statements(all: &[Cost]) -> String {
    let mut all: Vec<&Cost> = all.iter().collect();
    all.sort_by_key(|cost| std::cmp::Reverse(cost.total_ns));
    all.truncate(STATEMENTS_KEPT);
    let mut out = String::new();
    for cost in all {
        let counts = cost.histogram.iter().enumerate().filter(|(_, count)| **count > 0);
        let histogram: Vec<String> = counts.map(|(bucket, count)| format!("{bucket}:{count}")).collect();
        let waits = cost.waits.iter().map(|(event, count, ns)| format!("{}:{count}:{ns}", event.row().variant));
        let _ = writeln!(
            out,
            "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
            cost.digest.id,
            cost.user,
            cost.database,
            cost.calls,
            cost.errors,
            cost.rows,
            cost.total_ns,
            cost.min_ns,
            cost.max_ns,
            cost.squares_ms,
            cost.first_us,
            histogram.join(","),
            waits.collect::<Vec<_>>().join(","),
            escaped(&cost.application),
            escaped(&cost.digest.text),
            cost.work.examined,
            cost.work.full_scans,
            cost.work.missed_index,
            cost.work.repeated,
            cost.work.series,
            escaped(&cost.digest.tags),
            cost.busy_ns,
            cost.cpu_ns,
            cost.last_us,
            cost.warnings,
            cost.sample.ns,
            cost.sample.ended_us,
            escaped(&cost.sample.text),
            written_use(&cost.used)
        );
    }
    out
}

fn written_use(used: &Usage) -> String {
    let Usage { pages_hit, pages_read, pages_dirtied, temp_read, temp_written, log_records, log_bytes } = used;
    format!("{pages_hit}:{pages_read}:{pages_dirtied}:{temp_read}:{temp_written}:{log_records}:{log_bytes}")
}

/// What executions have used; an older version has not written it.
fn read_use(field: Option<&&str>) -> Option<Usage> {
    let Some(field) = field else { return Some(Usage::default()) };
    let parts: Vec<u64> = field.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [pages_hit, pages_read, pages_dirtied, temp_read, temp_written, log_records, log_bytes] = parts[..] else {
        return None;
    };
    Some(Usage { pages_hit, pages_read, pages_dirtied, temp_read, temp_written, log_records, log_bytes })
}

/// The entries of such lines.
pub fn read_statements(text: &str) -> Vec<(Key, Cost)> {
    text.lines().filter_map(read_statement).collect()
}

/// What an execution has done, its tags, and its times; what an older version has written ends before one of them.
fn read_work(fields: &[&str]) -> Option<(Work, String, u64, u64)> {
    let n = |text: &str| text.parse::<u64>().ok();
    let (busy_ns, cpu_ns) = match *fields {
        [_, _, _, _, _, _, busy, cpu, ..] => (n(busy)?, n(cpu)?),
        _ => (0, 0),
    };
    let (work, tags) = match *fields {
        [examined, full_scans, missed_index, repeated, series, tags, ..] => {
            let [examined, full_scans, missed_index] = [n(examined)?, n(full_scans)?, n(missed_index)?];
            (Work { examined, full_scans, missed_index, repeated: n(repeated)?, series: n(series)? }, unescaped(tags))
        }
        _ => (Work::default(), String::new()),
    };
    Some((work, tags, busy_ns, cpu_ns))
}

/// When it ran last, its warnings, and its sample; an older version has left none of them.
fn read_last(fields: &[&str]) -> Option<(Option<i64>, u64, SampleText)> {
    let [last, warnings, ns, ended_us, text, ..] = fields else { return Some((None, 0, SampleText::default())) };
    let sample = SampleText {
        text: unescaped(text).into(),
        ns: ns.parse().ok()?,
        ended_ns: 0,
        ended_us: ended_us.parse().ok()?,
    };
    Some((Some(last.parse().ok()?), warnings.parse().ok()?, sample))
}

fn read_histogram(field: &str) -> Option<Box<[u32; BUCKETS]>> {
    let mut counts = Box::new([0u32; BUCKETS]);
    for part in field.split(',').filter(|part| !part.is_empty()) {
        let (bucket, count) = part.split_once(':')?;
        *counts.get_mut(bucket.parse::<usize>().ok()?)? = count.parse().ok()?;
    }
    Some(counts)
}

fn read_statement(line: &str) -> Option<(Key, Cost)> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [
        query,
        user,
        database,
        calls,
        errors,
        rows,
        total,
        min,
        max,
        squares,
        first,
        histogram,
        waits,
        application,
        text,
        ref work @ ..,
    ] = fields[..]
    else {
        return None;
    };
    let (last_us, warnings, sample) = read_last(work.get(8..).unwrap_or_default())?;
    let used = read_use(work.get(13))?;
    let (work, tags, busy_ns, cpu_ns) = read_work(work)?;
    let first_us = first.parse().ok()?;
    let event_of = |name: &str| WaitEvent::rows().iter().find(|row| row.variant == name).map(|row| row.event);
    let waits = waits.split(',').filter_map(|part| {
        let mut parts = part.split(':');
        Some((event_of(parts.next()?)?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    });
    let application: Arc<str> = unescaped(application).into();
    let cost = Cost {
        digest: Arc::new(Digest {
            id: query.parse().ok()?,
            text: unescaped(text).into(),
            tags_hash: if tags.is_empty() { 0 } else { hash_of(&tags) },
            tags: tags.into(),
            measure: AtomicU8::new(0),
        }),
        user: user.parse().ok()?,
        database: database.parse().ok()?,
        calls: calls.parse().ok()?,
        errors: errors.parse().ok()?,
        rows: rows.parse().ok()?,
        work,
        used,
        total_ns: total.parse().ok()?,
        min_ns: min.parse().ok()?,
        max_ns: max.parse().ok()?,
        squares_ms: squares.parse().ok()?,
        first_us,
        last_us: last_us.unwrap_or(first_us),
        last_ns: 0,
        warnings,
        sample,
        histogram: read_histogram(histogram)?,
        busy_ns,
        cpu_ns,
        waits: waits.collect(),
        application,
    };
    let application = hash_of(&cost.application);
    let (query, tags) = (cost.digest.id, cost.digest.tags_hash);
    Some((Key { query, user: cost.user, database: cost.database, application, tags }, cost))
}

/// The most samples that are kept over restarts, the latest ones. The file is written as a whole each minute.
const SAMPLES_KEPT: usize = 50_000;

/// The lines of the latest samples.
pub fn write_samples(all: &[Sample]) -> String {
    let mut out = String::new();
    for sample in &all[all.len().saturating_sub(SAMPLES_KEPT)..] {
        let _ = writeln!(
            out,
            "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
            sample.at_us,
            sample.pid,
            sample.user,
            sample.event.map_or("", |event| event.row().variant),
            sample.query,
            sample.behind,
            sample.weight,
            escaped(&sample.names.0),
            escaped(&sample.names.1)
        );
    }
    out
}

/// The samples of such lines.
pub fn read_samples(text: &str) -> Vec<Sample> {
    let mut names: HashMap<(String, String), Arc<(String, String)>> = HashMap::new();
    let events: HashMap<&str, WaitEvent> = WaitEvent::rows().iter().map(|row| (row.variant, row.event)).collect();
    let read = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [at, pid, user, event, query, behind, weight, database, application] = fields[..] else { return None };
        let of = (unescaped(database), unescaped(application));
        Some(Sample {
            at_us: at.parse().ok()?,
            pid: pid.parse().ok()?,
            user: user.parse().ok()?,
            event: events.get(event).copied(),
            query: query.parse().ok()?,
            behind: behind.parse().ok()?,
            weight: weight.parse().ok()?,
            names: names.entry(of.clone()).or_insert_with(|| Arc::new(of)).clone(),
        })
    };
    text.lines().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_what_is_damaged_is_left_out() {
        let mut histogram = Box::new([0u32; BUCKETS]);
        histogram[3] = 7;
        let cost = Cost {
            digest: Arc::new(Digest {
                id: u64::MAX,
                text: "select\n'a\tb\\n'".into(),
                tags: "a=b\tc".into(),
                tags_hash: hash_of("a=b\tc"),
                measure: AtomicU8::new(0),
            }),
            application: "a\\b".into(),
            user: 10,
            database: 5,
            calls: 7,
            errors: 1,
            rows: 9,
            work: Work { examined: 1, full_scans: 2, missed_index: 3, repeated: 4, series: 5 },
            used: Usage {
                pages_hit: 1,
                pages_read: 2,
                pages_dirtied: 3,
                temp_read: 4,
                temp_written: 5,
                log_records: 6,
                log_bytes: 7,
            },
            total_ns: 100,
            min_ns: 1,
            max_ns: 50,
            squares_ms: 0.25,
            histogram,
            busy_ns: 120,
            cpu_ns: 20,
            waits: vec![(WaitEvent::WalSync, 3, 99)],
            first_us: -1,
            last_us: 77,
            last_ns: 0,
            warnings: 6,
            sample: SampleText { text: "select\n'x\ty'".into(), ns: 50, ended_ns: 0, ended_us: 76 },
        };
        let text = write_statements(std::slice::from_ref(&cost));
        let read = read_statements(&format!("nonsense\n{text}1\t2\n"));
        assert_eq!(read.len(), 1);
        let older = text.trim_end().split('\t').take(15).collect::<Vec<_>>().join("\t");
        assert_eq!(read_statements(&older).len(), 1, "what an older version has left");
        let older = text.trim_end().split('\t').take(21).collect::<Vec<_>>().join("\t");
        let read_older = read_statements(&older);
        assert_eq!((&*read_older[0].1.digest.tags, read_older[0].1.cpu_ns), ("a=b\tc", 0), "one before the times");
        let older = text.trim_end().split('\t').take(28).collect::<Vec<_>>().join("\t");
        let read_older = read_statements(&older);
        assert_eq!(
            (read_older[0].1.warnings, read_older[0].1.used),
            (6, Usage::default()),
            "one before pages and the log"
        );
        assert_eq!(format!("{:?}", read[0].1), format!("{cost:?}"));
        let sample = Sample {
            at_us: 1,
            pid: 2,
            user: 3,
            names: Arc::new(("d".to_owned(), "a\tb".to_owned())),
            event: Some(WaitEvent::RunQueue),
            query: 4,
            behind: 5,
            weight: 1.5,
        };
        let read = read_samples(&write_samples(std::slice::from_ref(&sample)));
        assert_eq!(format!("{read:?}"), format!("{:?}", [sample]));
    }
}
