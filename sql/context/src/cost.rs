//! What the executions of a statement have cost: sums, and a histogram of durations.

use std::sync::Arc;

use clearway_base::usage::Usage;
use clearway_base::waits::{self, WaitClass, WaitEvent};

use super::digest::Digest;
use super::statement_sample::SampleText;

/// Buckets of a histogram of durations: three for each power of two, from one microsecond on.
pub const BUCKETS: usize = 96;

/// What was run, and the role, database and application that ran it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Key {
    /// The digest.
    pub query: u64,
    /// The role's oid.
    pub user: u32,
    /// The database's oid.
    pub database: u32,
    /// A hash of `application_name`.
    pub application: u64,
    /// A hash of the tags of its comment.
    pub tags: u64,
}

/// What executions have done beyond giving rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Rows of tables that they have looked at.
    pub examined: u64,
    /// Walks over whole tables.
    pub full_scans: u64,
    /// Executions that looked through [`MISSED_ROWS`] rows or more of whole tables for those of a condition: an index was missing.
    pub missed_index: u64,
    /// Executions that were one of many like it, one after the other, each for a single row: N+1.
    pub repeated: u64,
    /// How many such series there were.
    pub series: u64,
}

/// An execution that looks through at least so many rows of whole tables for those of a condition counts as one that misses an index.
pub const MISSED_ROWS: u64 = 1_000;

impl Work {
    /// Adds another's figures.
    pub fn add(&mut self, more: &Work) {
        self.examined += more.examined;
        self.full_scans += more.full_scans;
        self.missed_index += more.missed_index;
        self.repeated += more.repeated;
        self.series += more.series;
    }
}

/// The cost of one digest, for one role, database, application and set of tags.
#[derive(Clone, Debug)]
pub struct Cost {
    /// The digest.
    pub digest: Arc<Digest>,
    /// `application_name`.
    pub application: Arc<str>,
    /// The role's oid.
    pub user: u32,
    /// The database's oid.
    pub database: u32,
    /// Executions.
    pub calls: u64,
    /// Of these, those that failed.
    pub errors: u64,
    /// Rows given or changed.
    pub rows: u64,
    /// Rows looked at, and what else the executions have done.
    pub work: Work,
    /// Pages, temporary files and the log, between the begin and the end of the executions.
    pub used: Usage,
    /// Time from begin to end, in nanoseconds.
    pub total_ns: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The sum of the squares, in milliseconds.
    pub squares_ms: f64,
    /// By duration.
    pub histogram: Box<[u32; BUCKETS]>,
    /// What the executions took from the message to the reply, without waits for the client, and how much of that was computing; in
    /// nanoseconds.
    pub busy_ns: u64,
    /// See there.
    pub cpu_ns: u64,
    /// Waits, those of the commit included: event, how many, how long.
    pub waits: Vec<(WaitEvent, u64, u64)>,
    /// When it ran first: wall clock, microseconds since 1970.
    pub first_us: i64,
    /// When it ended last, as far as `last_ns` says nothing.
    pub last_us: i64,
    /// When it ended last in this run of the server, by the clock of wait events; 0: it has not run.
    pub last_ns: u64,
    /// Warnings of its executions.
    pub warnings: u64,
    /// One of its executions.
    pub sample: SampleText,
}

/// The bucket of a duration.
#[inline]
pub fn bucket_of(ns: u64) -> usize {
    let us = ns >> 10;
    if us == 0 {
        return 0;
    }
    let power = us.ilog2() as usize;
    let part = ((us << 2 >> power) & 3) as usize;
    // Quarters, of which the last two are one: 1, 1.25, 1.5.
    (3 * power + part.min(2)).min(BUCKETS - 1)
}

/// Where a bucket begins, in nanoseconds; the first one begins at 0.
fn begin_of(bucket: usize) -> u64 {
    let base = 1u64 << (10 + bucket / 3);
    if bucket == 0 { 0 } else { base + [0, base / 4, base / 2][bucket % 3] }
}

/// The durations of a bucket, in nanoseconds: from one up to below the other; the last bucket has no end.
pub fn bounds_of(bucket: usize) -> (u64, Option<u64>) {
    // Of the shortest durations, which are whole microseconds, some buckets stay empty.
    let next = (bucket + 1..BUCKETS).find(|next| bucket_of(begin_of(*next)) == *next);
    (begin_of(bucket), next.map(begin_of))
}

/// A duration in the middle of a bucket, in nanoseconds.
pub(super) fn middle_of(bucket: usize) -> u64 {
    let base = 1u64 << (10 + bucket / 3);
    base + [base / 8, base * 3 / 8, base * 3 / 4][bucket % 3]
}

impl Cost {
    /// That of no execution.
    pub fn new(digest: Arc<Digest>, application: Arc<str>, key: Key) -> Cost {
        let now_us = waits::wall_us();
        Cost {
            digest,
            application,
            user: key.user,
            database: key.database,
            calls: 0,
            errors: 0,
            rows: 0,
            work: Work::default(),
            used: Usage::default(),
            total_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
            squares_ms: 0.0,
            histogram: Box::new([0; BUCKETS]),
            busy_ns: 0,
            cpu_ns: 0,
            waits: Vec::new(),
            first_us: now_us,
            last_us: now_us,
            last_ns: 0,
            warnings: 0,
            sample: SampleText::default(),
        }
    }

    /// Counts an execution. True: a sample of it is wanted.
    pub fn ran(&mut self, execution: &Execution<'_>) -> bool {
        let Usual { ns, ended_ns, .. } = execution.usual;
        self.last_ns = ended_ns;
        self.warnings += execution.others.warnings;
        self.work.add(&execution.work());
        self.used += execution.usual.used;
        self.calls += 1;
        self.errors += u64::from(execution.others.failed);
        self.rows += execution.usual.rows;
        self.busy_ns += execution.usual.busy_ns;
        self.cpu_ns += execution.usual.cpu_ns;
        self.total_ns += ns;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        let ms = ns as f64 / 1e6;
        self.squares_ms += ms * ms;
        let bucket = &mut self.histogram[bucket_of(ns)];
        *bucket = bucket.saturating_add(1);
        self.queued(execution.usual.queued);
        self.sample.yields_to(ns, ended_ns)
    }

    /// Adds waits for a processor.
    pub fn queued(&mut self, (count, ns): (u64, u64)) {
        if count > 0 {
            self.waited(WaitEvent::RunQueue, count, ns);
        }
    }

    /// Adds waits of an event.
    pub fn waited(&mut self, event: WaitEvent, count: u64, ns: u64) {
        match self.waits.iter_mut().find(|(known, ..)| *known == event) {
            Some((_, counted, total_ns)) => {
                *counted += count;
                *total_ns += ns;
            }
            None => self.waits.push((event, count, ns)),
        }
    }

    /// Adds another's figures.
    pub fn add(&mut self, other: &Cost) {
        self.calls += other.calls;
        self.errors += other.errors;
        self.rows += other.rows;
        self.work.add(&other.work);
        self.used += other.used;
        self.total_ns += other.total_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.squares_ms += other.squares_ms;
        self.busy_ns += other.busy_ns;
        self.cpu_ns += other.cpu_ns;
        self.histogram.iter_mut().zip(other.histogram.iter()).for_each(|(a, b)| *a = a.saturating_add(*b));
        other.waits.iter().for_each(|(event, count, ns)| self.waited(*event, *count, *ns));
        self.first_us = self.first_us.min(other.first_us);
        self.last_us = self.last_us.max(other.last_us);
        self.last_ns = self.last_ns.max(other.last_ns);
        self.warnings += other.warnings;
        self.sample.add(&other.sample);
    }

    /// The duration below which a part of the executions lies, in nanoseconds; right to a tenth.
    pub fn quantile_ns(&self, part: f64) -> u64 {
        let total: u64 = self.histogram.iter().map(|count| u64::from(*count)).sum();
        let wanted = ((total as f64 * part).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.histogram.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= wanted {
                return middle_of(bucket).clamp(self.min_ns.min(self.max_ns), self.max_ns);
            }
        }
        0
    }

    /// The standard deviation of the durations, in milliseconds.
    pub fn deviation_ms(&self) -> f64 {
        let calls = self.calls.max(1) as f64;
        let mean = self.total_ns as f64 / 1e6 / calls;
        (self.squares_ms / calls - mean * mean).max(0.0).sqrt()
    }

    /// The time of the waits of a class, in nanoseconds.
    pub fn waited_in_ns(&self, class: WaitClass) -> u64 {
        self.waits.iter().filter(|(event, ..)| event.class() == class).map(|(_, _, ns)| ns).sum()
    }

    /// The time of all waits, in nanoseconds.
    pub fn waited_ns(&self) -> u64 {
        self.waits.iter().map(|(_, _, ns)| ns).sum()
    }
}

/// What each execution has of figures; most have no others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usual {
    /// When it ended, by the clock of wait events.
    pub ended_ns: u64,
    /// How long it took.
    pub ns: u64,
    /// The same from the message on, without waits for the client; and how much of that was computing.
    pub busy_ns: u64,
    /// See there.
    pub cpu_ns: u64,
    /// Rows given or changed.
    pub rows: u64,
    /// Its waits for a processor, how many and how long: those before it and during it.
    pub queued: (u64, u64),
    /// See [`Work`].
    pub examined: u64,
    /// See [`Work`]; more than 1: a series begins with it.
    pub repeated: u64,
    /// See [`Cost::used`].
    pub used: Usage,
}

/// One execution.
#[derive(Clone, Copy)]
pub struct Execution<'a> {
    /// Its entry.
    pub key: &'a Key,
    /// Its digest.
    pub digest: &'a Arc<Digest>,
    /// `application_name`.
    pub application: &'a Arc<str>,
    /// What each has.
    pub usual: Usual,
    /// What most have not.
    pub others: Others,
}

/// The figures of an execution that most executions have not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Others {
    /// Its warnings.
    pub warnings: u64,
    /// It ended with an error.
    pub failed: bool,
    /// See [`Work`].
    pub full_scans: u64,
    /// See [`Work`].
    pub missed_index: u64,
}

impl Execution<'_> {
    /// What it has done beyond giving rows.
    pub fn work(&self) -> Work {
        let Usual { examined, repeated, .. } = self.usual;
        let Others { full_scans, missed_index, .. } = self.others;
        Work { examined, full_scans, missed_index, repeated, series: u64::from(repeated > 1) }
    }
}
