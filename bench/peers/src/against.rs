//! Compares Clearway's trees with peers: the tables of `docs/measured/trees-against-peers.md`.
//!
//! Each scenario runs every engine in turn, round after round, so that a time in which the machine is slow affects all engines; the figures
//! are medians of the rounds. A round of one engine:
//! ```text
//!   load      seven rows in ten, keys ascending          -> "insert in order", 1 task
//!             the other three between them, ascending:     leaves are then about 70 % full
//!   insert    in order behind the last, 2 and 8 tasks; at random between the others, 1, 2 and 8 tasks
//!   update    at random, 1, 2, 8
//!   read      one row at random; a hundred rows from a random one on; 1, 2, 8
//! ```

use crate::engines::{Engine, Terms, open};
use crate::scatter;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const ROUNDS: usize = 3;
const TASKS: [u64; 3] = [1, 2, 8];
/// Rows of a transaction, where nothing else is said.
const BATCH: usize = 1000;
/// Bits of a key below its place in the order: room for rows between rows.
const GAP_BITS: u32 = 20;

/// A table of the page.
struct Scenario {
    title: &'static str,
    note: &'static str,
    rows: u64,
    terms: Terms,
    engines: &'static [&'static str],
    columns: &'static [Column],
    /// How long each figure is measured.
    time: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
    InOrder,
    AtRandom,
    Update,
    Single,
    Read,
    Scan,
}

impl Column {
    fn title(self) -> &'static str {
        match self {
            Column::InOrder => "insert in order",
            Column::AtRandom => "insert at random",
            Column::Update => "update",
            Column::Single => "insert at random, a row a commit",
            Column::Read => "point read",
            Column::Scan => "scan of 100",
        }
    }
}

const MEMORY: [Column; 5] = [Column::InOrder, Column::AtRandom, Column::Update, Column::Read, Column::Scan];
const COMMITS: [Column; 4] = [Column::InOrder, Column::AtRandom, Column::Update, Column::Single];
const ALL: [&str; 6] = ["Clearway", "Clearway, trees alone", "LMDB", "redb", "fjall", "SQLite"];
const PRODUCTS: [&str; 5] = ["Clearway", "LMDB", "redb", "fjall", "SQLite"];

fn scenarios() -> [Scenario; 3] {
    let terms = |durable, mib: usize| Terms { durable, cache: mib << 20 };
    [
        Scenario {
            title: "1 million rows, no commit waits for a sync",
            note: "",
            rows: 1_000_000,
            terms: terms(false, 1536),
            engines: &ALL,
            columns: &MEMORY,
            time: Duration::from_millis(400),
        },
        Scenario {
            title: "1 million rows, durable commits",
            note: "A thousand rows a commit, but in the last column.",
            rows: 1_000_000,
            terms: terms(true, 1536),
            engines: &PRODUCTS,
            columns: &COMMITS,
            time: Duration::from_millis(600),
        },
        Scenario {
            title: "10 million rows, no commit waits for a sync",
            note: "",
            rows: 10_000_000,
            terms: terms(false, 4096),
            engines: &PRODUCTS,
            columns: &MEMORY,
            time: Duration::from_millis(400),
        },
    ]
}

/// Operations a second, by engine, column and tasks; one figure a round.
type Figures = BTreeMap<(&'static str, Column, u64), Vec<f64>>;

/// Runs everything and puts the tables into `page`, between its two marks; `only` are the numbers of scenarios.
pub fn run(dir: &Path, page: Option<&Path>, only: &[usize]) {
    let begin = Instant::now();
    let scenarios = scenarios();
    let mut figures: Vec<Figures> = scenarios.iter().map(|_| Figures::new()).collect();
    for round in 0..ROUNDS {
        for (number, scenario) in scenarios.iter().enumerate() {
            if !only.is_empty() && !only.contains(&number) {
                continue;
            }
            for turn in 0..scenario.engines.len() {
                // The order changes, so that no engine is always first.
                let kind = scenario.engines[(turn + round) % scenario.engines.len()];
                let start = Instant::now();
                one(dir, scenario, kind, &mut figures[number]);
                eprintln!("{:4.0} s: round {}, {}, {kind}: {:.1} s", begin.elapsed().as_secs_f64(), round + 1, scenario.title, start.elapsed().as_secs_f64());
            }
        }
        // A run that is cut off leaves the rounds that it had.
        let text = tables(&scenarios, &figures, begin.elapsed());
        match page {
            Some(page) => put_into(page, &text),
            None => println!("{text}"),
        }
    }
    let _ = std::fs::remove_dir_all(dir);
}

/// The key of the row at a place in the order, with some bits that nothing can be told from.
fn key(place: u64) -> u64 {
    (place << GAP_BITS) | (scatter(place) & ((1 << GAP_BITS) - 1))
}

/// Loaded in the second pass: three places in ten.
fn is_late(place: u64) -> bool {
    matches!(place % 10, 1 | 4 | 8)
}

fn load(engine: &dyn Engine, places: impl Iterator<Item = u64>) -> f64 {
    let begin = Instant::now();
    let mut put = engine.writer();
    let (mut batch, mut rows) = (Vec::with_capacity(BATCH), 0);
    for place in places {
        batch.push(key(place));
        rows += 1;
        if batch.len() == BATCH {
            put(&batch, 0);
            batch.clear();
        }
    }
    if !batch.is_empty() {
        put(&batch, 0);
    }
    f64::from(rows) / begin.elapsed().as_secs_f64()
}

fn one(dir: &Path, scenario: &Scenario, kind: &'static str, figures: &mut Figures) {
    let rows = scenario.rows;
    let engine = open(kind, dir, scenario.terms);
    let mut note = |column, tasks, rate| figures.entry((kind, column, tasks)).or_default().push(rate);
    note(Column::InOrder, 1, load(&*engine, (0..rows).filter(|place| !is_late(*place))));
    load(&*engine, (0..rows).filter(|place| is_late(*place)));
    for column in scenario.columns {
        for tasks in TASKS {
            let seed = scatter(*column as u64 * 100 + tasks);
            let anywhere = |n: u64| scatter(seed ^ n) % (rows << GAP_BITS);
            let rate = match column {
                Column::InOrder if tasks == 1 => continue,
                Column::InOrder => {
                    // Behind all rows, and behind those of the turn before.
                    let behind = rows + tasks * 100_000_000;
                    write(&*engine, tasks, scenario.time, BATCH, &|n| key(behind + n))
                }
                Column::AtRandom => write(&*engine, tasks, scenario.time, BATCH, &anywhere),
                Column::Single => write(&*engine, tasks, scenario.time, 1, &anywhere),
                Column::Update => write(&*engine, tasks, scenario.time, BATCH, &|n| key(scatter(seed ^ n) % rows)),
                Column::Read => read(&*engine, tasks, scenario.time, 1, rows),
                Column::Scan => read(&*engine, tasks, scenario.time, 100, rows),
            };
            note(*column, tasks, rate);
        }
    }
    engine.close();
}

/// Rows a second by so many writers for a while.
fn write(engine: &dyn Engine, tasks: u64, time: Duration, batch: usize, key: &(dyn Fn(u64) -> u64 + Sync)) -> f64 {
    let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..tasks {
            scope.spawn(|| {
                let mut put = engine.writer();
                let mut keys = Vec::with_capacity(batch);
                while begin.elapsed() < time {
                    let first = next.fetch_add(batch as u64, Relaxed);
                    keys.clear();
                    keys.extend((first..first + batch as u64).map(key));
                    put(&keys, 1 + tasks);
                    done.fetch_add(batch as u64, Relaxed);
                }
            });
        }
    });
    done.load(Relaxed) as f64 / begin.elapsed().as_secs_f64()
}

/// Reads a second by so many readers for a while; of one row that is there, or of `take` from one on.
fn read(engine: &dyn Engine, tasks: u64, time: Duration, take: usize, rows: u64) -> f64 {
    let done = AtomicU64::new(0);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for task in 0..tasks {
            let done = &done;
            scope.spawn(move || {
                let mut get = engine.reader();
                let mut n = scatter(task + 77);
                let mut count = 0;
                while begin.elapsed() < time {
                    for _ in 0..16 {
                        n = scatter(n);
                        let found = get(key(n % rows), take);
                        assert!(found > 0, "a row is missing");
                        count += 1;
                    }
                }
                done.fetch_add(count, Relaxed);
            });
        }
    });
    done.load(Relaxed) as f64 / begin.elapsed().as_secs_f64()
}

fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Thousands, with as many digits as mean something.
fn thousands(rate: f64) -> String {
    let rate = rate / 1000.0;
    match rate {
        rate if rate >= 100.0 => format!("{rate:.0}"),
        rate if rate >= 10.0 => format!("{rate:.1}"),
        rate => format!("{rate:.2}"),
    }
}

fn tables(scenarios: &[Scenario], figures: &[Figures], elapsed: Duration) -> String {
    let mut text = String::new();
    let (mut spreads, mut rounds) = (Vec::new(), 0);
    for (scenario, figures) in scenarios.iter().zip(figures).filter(|(_, figures)| !figures.is_empty()) {
        let _ = writeln!(text, "## {}\n", scenario.title);
        if !scenario.note.is_empty() {
            let _ = writeln!(text, "{}\n", scenario.note);
        }
        let titles: Vec<&str> = scenario.columns.iter().map(|column| column.title()).collect();
        let _ = writeln!(text, "| engine | {} |\n|---|{}", titles.join(" | "), "---|".repeat(titles.len()));
        for kind in scenario.engines {
            let _ = write!(text, "| {kind} |");
            for column in scenario.columns {
                let cell = TASKS.map(|tasks| {
                    let rates = figures.get(&(*kind, *column, tasks)).map_or(&[][..], Vec::as_slice);
                    rounds = rounds.max(rates.len());
                    let middle = median(rates);
                    let ends = rates.iter().copied().fold((f64::MAX, 0.0_f64), |(low, high), rate| (low.min(rate), high.max(rate)));
                    spreads.push((ends.1 - ends.0) / middle);
                    thousands(middle)
                });
                let _ = write!(text, " {} |", cell.join(" / "));
            }
            text.push('\n');
        }
        text.push('\n');
    }
    let tenth = |share: f64| {
        let mut sorted = spreads.clone();
        sorted.sort_by(f64::total_cmp);
        100.0 * sorted.get((sorted.len() as f64 * share) as usize).copied().unwrap_or(f64::NAN)
    };
    let _ = writeln!(
        text,
        "{rounds} rounds in {:.1} minutes. The rounds of a figure differ by {:.0} % of their median for half of the figures, by more than \
         {:.0} % for one in ten.",
        elapsed.as_secs_f64() / 60.0,
        tenth(0.5),
        tenth(0.9),
    );
    text
}

/// Between them stand the figures of a page.
const MARKS: [&str; 2] = ["<!-- figures -->\n", "<!-- end of figures -->\n"];

pub fn put_into(page: &Path, text: &str) {
    let old = std::fs::read_to_string(page).unwrap();
    let [first, last] = MARKS.map(|mark| old.find(mark).unwrap_or_else(|| panic!("{mark} is not in {}", page.display())));
    let new = format!("{}{}\n{text}\n{}", &old[..first], MARKS[0], &old[last..]);
    std::fs::write(page, new).unwrap();
}
