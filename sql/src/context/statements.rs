//! The cost of every statement, added up by digest; on unless the recorder is switched off (`recorded`).
//!
//! # Structure
//! The costs are in shards. A thread writes only to the shard of its own number, so that two workers do not wait for each other; a reader
//! adds all shards up. The key of an entry is the digest, the role, the database, `application_name` and the tags of the statement's
//! comment.
//!
//! # Invariants
//! - STM-1: a shard has at most [`ENTRIES_MAX`] entries. When it is full, the entry with the fewest calls is evicted, and `evicted`
//!   counts it.
//! - STM-2: a thread waits for its shard only because of a reader or because of another thread with the same shard.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed};

use clearway_base::sync::{Mutex, thread_number};
use clearway_base::waits::{self, Measure, WaitClass, WaitEvent};

use super::statement_sample::SampleText;

/// Digests per shard.
pub const ENTRIES_MAX: usize = 2_000;
/// Bytes of a digest's text.
pub const TEXT_MAX: usize = 4_096;
/// Buckets of a histogram of durations: three for each power of two, from one microsecond on.
pub const BUCKETS: usize = 96;
const SHARDS: usize = 16;
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
    /// How the processor time of its next execution is measured: as the latest one would have had to be. A [`Measure`].
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
        let read = if sql.len() > READ_MAX { None } else { crate::syntax::digest::digest(sql).ok() };
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
}

/// Who ran it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// The parts of a key are numbers that are spread already.
#[derive(Default)]
pub struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
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
    fn add(&mut self, more: &Work) {
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
fn middle_of(bucket: usize) -> u64 {
    let base = 1u64 << (10 + bucket / 3);
    base + [base / 8, base * 3 / 8, base * 3 / 4][bucket % 3]
}

impl Cost {
    fn new(digest: Arc<Digest>, application: Arc<str>, key: Key) -> Cost {
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

    /// True: a sample of this execution is wanted.
    fn ran(&mut self, execution: &Execution<'_>) -> bool {
        let ns = execution.ns;
        self.last_ns = execution.ended_ns;
        self.warnings += execution.warnings;
        self.work.add(&execution.work);
        self.calls += 1;
        self.errors += u64::from(execution.failed);
        self.rows += execution.rows;
        self.busy_ns += execution.busy_ns;
        self.cpu_ns += execution.cpu_ns;
        self.total_ns += ns;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        let ms = ns as f64 / 1e6;
        self.squares_ms += ms * ms;
        let bucket = &mut self.histogram[bucket_of(ns)];
        *bucket = bucket.saturating_add(1);
        self.sample.yields_to(ns, execution.ended_ns)
    }

    fn waited(&mut self, event: WaitEvent, count: u64, ns: u64) {
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

type Shard = HashMap<Key, Cost, BuildHasherDefault<Mix>>;

/// The costs of all statements of a server or an embedded database.
#[derive(Debug)]
pub struct Statements {
    shards: [Mutex<Shard>; SHARDS],
    evicted: AtomicU64,
    reset_us: AtomicI64,
}

impl Default for Statements {
    fn default() -> Self {
        Statements {
            shards: std::array::from_fn(|_| Mutex::new("sql/statements", Shard::default())),
            evicted: AtomicU64::new(0),
            reset_us: AtomicI64::new(waits::wall_us()),
        }
    }
}

/// One execution.
pub struct Execution<'a> {
    /// Its entry.
    pub key: Key,
    /// Its digest.
    pub digest: &'a Arc<Digest>,
    /// `application_name`.
    pub application: &'a Arc<str>,
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
    /// Its warnings.
    pub warnings: u64,
    /// It ended with an error.
    pub failed: bool,
    /// What it has done.
    pub work: Work,
}

impl Statements {
    /// Counts an execution and what it has waited for. True: a sample of it is wanted.
    pub fn ran(&self, execution: &Execution<'_>, waited: impl FnOnce(&mut dyn FnMut(WaitEvent, u64, u64))) -> bool {
        let mut shard = self.shards[thread_number() % SHARDS].lock(); // STM-2
        let cost = match shard.get_mut(&execution.key) {
            Some(cost) => cost,
            None => self.enter(&mut shard, execution),
        };
        let wants_sample = cost.ran(execution);
        waited(&mut |event, count, ns| cost.waited(event, count, ns));
        wants_sample
    }

    /// Keeps a sample of an execution (STX-1), with the text as the client sent it.
    #[cold]
    pub fn sample(&self, key: &Key, ns: u64, ended_ns: u64, text: &str) {
        let sample = SampleText::of(text, ns, ended_ns);
        if let Some(cost) = self.shards[thread_number() % SHARDS].lock().get_mut(key) {
            cost.sample = sample;
        }
    }

    /// Counts waits that came after an execution: those of its commit.
    pub fn waited(&self, key: &Key, waited: impl FnOnce(&mut dyn FnMut(WaitEvent, u64, u64))) {
        let mut shard = self.shards[thread_number() % SHARDS].lock();
        match shard.get_mut(key) {
            Some(cost) => waited(&mut |event, count, ns| {
                cost.waited(event, count, ns);
                cost.busy_ns += ns;
            }),
            None => waited(&mut |_, _, _| {}),
        }
    }

    #[cold]
    fn enter<'s>(&self, shard: &'s mut Shard, execution: &Execution<'_>) -> &'s mut Cost {
        if shard.len() >= ENTRIES_MAX {
            let least = shard.iter().min_by_key(|(_, cost)| cost.calls).map(|(key, _)| *key);
            least.map(|key| shard.remove(&key)); // STM-1
            self.evicted.fetch_add(1, Relaxed);
        }
        let Execution { key, digest, application, .. } = execution;
        shard.entry(*key).or_insert_with(|| Cost::new((*digest).clone(), (*application).clone(), *key))
    }

    /// Every entry, added up over the shards.
    pub fn all(&self) -> Vec<Cost> {
        let mut all: HashMap<Key, Cost> = HashMap::new();
        for shard in &self.shards {
            let shard = shard.lock();
            for (key, cost) in shard.iter() {
                match all.get_mut(key) {
                    Some(sum) => sum.add(cost),
                    None => drop(all.insert(*key, cost.clone())),
                }
            }
        }
        let (now_us, now_ns) = (waits::wall_us(), waits::now_ns());
        for cost in all.values_mut().filter(|cost| cost.last_ns > 0) {
            let ago_us = i64::try_from(now_ns.saturating_sub(cost.last_ns) / 1_000).unwrap_or(i64::MAX);
            cost.last_us = cost.last_us.max(now_us - ago_us);
        }
        all.into_values().collect()
    }

    /// How many entries had to go, and since when it counts: wall clock, microseconds since 1970.
    pub fn info(&self) -> (u64, i64) {
        (self.evicted.load(Relaxed), self.reset_us.load(Relaxed))
    }

    /// Begins anew.
    pub fn reset(&self) {
        self.shards.iter().for_each(|shard| shard.lock().clear());
        self.evicted.store(0, Relaxed);
        self.reset_us.store(waits::wall_us(), Relaxed);
    }

    /// Forgets some entries.
    pub fn forget(&self, which: impl Fn(&Key) -> bool) {
        self.shards.iter().for_each(|shard| shard.lock().retain(|key, _| !which(key)));
    }

    /// Takes in what an earlier run has left.
    pub fn restore(&self, earlier: Vec<(Key, Cost)>) {
        for (n, (key, cost)) in earlier.into_iter().enumerate() {
            let mut shard = self.shards[n % SHARDS].lock();
            if shard.len() < ENTRIES_MAX {
                shard.insert(key, cost);
            }
        }
    }
}

/// FNV-1a, 64 bits.
pub fn hash_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(statements: &Statements, sql: &str, ns: u64, user: u32) {
        let digest = Digest::of(sql);
        let key = Key { query: digest.id, user, database: 5, application: 0, tags: 0 };
        let application = &Arc::from("app");
        let (failed, work) = (ns % 10 == 0, Work::default());
        let (busy_ns, cpu_ns) = (ns + 5, ns / 2);
        let (ended_ns, warnings) = (waits::now_ns(), u64::from(failed));
        let times = Execution {
            key,
            digest: &digest,
            application,
            ended_ns,
            ns,
            busy_ns,
            cpu_ns,
            rows: 1,
            warnings,
            failed,
            work,
        };
        if statements.ran(&times, |wait| wait(WaitEvent::WalSync, 2, ns / 2)) {
            statements.sample(&key, ns, ended_ns, sql);
        }
    }

    #[test]
    fn lists_of_any_length_and_other_constants_are_one_statement() {
        let statements = Statements::default();
        for (n, sql) in [
            "select * from t where id in (1)",
            "SELECT  * FROM t WHERE id IN (7, 8, 9);",
            "select * from t where id in ($1,$2)",
        ]
        .into_iter()
        .enumerate()
        {
            run(&statements, sql, 1_000_000 * (n as u64 + 1), 10);
        }
        run(&statements, "select * from t where id = 1", 5, 10);
        run(&statements, "select * from t where id = 2", 5, 11);
        let mut all = statements.all();
        all.sort_by_key(|cost| cost.calls);
        assert_eq!(all.iter().map(|cost| cost.calls).collect::<Vec<_>>(), [1, 1, 3], "roles count apart");
        let lists = &all[2];
        assert_eq!((lists.total_ns, lists.min_ns, lists.max_ns, lists.errors), (6_000_000, 1_000_000, 3_000_000, 3));
        assert_eq!(lists.waits, [(WaitEvent::WalSync, 6, 3_000_000)]);
        assert_eq!((lists.busy_ns, lists.cpu_ns), (6_000_015, 3_000_000));
        assert!((lists.deviation_ms() - 0.8165).abs() < 0.001);
    }

    #[test]
    fn buckets_rise_and_quantiles_lie_within_a_sixth() {
        let mut last = 0;
        for ns in (0..60_000_000u64).step_by(997) {
            let bucket = bucket_of(ns);
            assert!(bucket >= last && bucket < BUCKETS);
            last = bucket;
            let (from, to) = bounds_of(bucket);
            assert!(from <= ns && to.is_some_and(|to| ns < to), "{ns} in {from} to {to:?}");
            if ns > 1_100_000 {
                let middle = middle_of(bucket) as f64;
                assert!((middle / ns as f64 - 1.0).abs() < 0.18, "{ns} {middle}");
            }
        }
        let statements = Statements::default();
        (1..=1_000).for_each(|ms| run(&statements, "select 1", ms * 1_000_000, 10));
        let cost = &statements.all()[0];
        for (part, wanted) in [(0.5, 500.0), (0.95, 950.0), (0.99, 990.0)] {
            let ms = cost.quantile_ns(part) as f64 / 1e6;
            assert!((ms / wanted - 1.0).abs() < 0.18, "{part}: {ms}");
        }
    }

    /// STM-1
    #[test]
    fn a_flood_of_texts_is_bounded_and_what_is_used_stays() {
        let statements = Statements::default();
        (0..50).for_each(|_| run(&statements, "select 'used'", 1, 10));
        (0..3 * ENTRIES_MAX).for_each(|n| run(&statements, &format!("select 1 as c{n}"), 1, 10));
        let all = statements.all();
        assert_eq!(all.len(), ENTRIES_MAX);
        assert_eq!(statements.info().0, 2 * ENTRIES_MAX as u64 + 1);
        assert!(all.iter().any(|cost| cost.calls == 50));
    }

    #[test]
    fn an_entry_has_a_sample_and_its_latest_execution() {
        let statements = Statements::default();
        let one = || statements.all().into_iter().next().expect("an entry");
        for (sql, ns) in [("select 1", 3_000), ("select 22", 9_000), ("select 333", 5_000)] {
            run(&statements, sql, ns, 10);
        }
        let cost = one();
        assert_eq!((&*cost.sample.text, cost.sample.ns, cost.warnings), ("select 22", 9_000, 3), "STX-1");
        assert!(cost.first_us <= cost.last_us && cost.last_us <= waits::wall_us());
    }
}
