//! How long undo records pin memory, by what a row's tag is: 36 million updates on a million rows.
//!
//! `undo-lifetime SCENARIO [DISTRIBUTION] [SCHEME]`; scenarios: none, old, old+mid, open.
//! Every run ends by reading each row at the old snapshot and comparing it with what it was then.

mod snapshots;
mod store;

use snapshots::OPEN;
use std::time::Instant;
use store::{Scheme, Store};

const ROWS: usize = 1_000_000;
const UPDATES: u64 = 36_000_000;
const BEGIN: u64 = 1_000_000;
const END: u64 = 33_000_000;
/// Snapshots of short statements reach back this many commits.
const FRESH: u64 = 5_000;
const SEED: u64 = 0x00c1_ea12_3a11;

struct Random(u64);

impl Random {
    /// xorshift64*, Vigna 2016.
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The rows that are updated, in order; zipf with theta 0.99 after Gray et al., SIGMOD 1994.
fn sequence(zipf: bool) -> Vec<u32> {
    let mut random = Random(SEED);
    if !zipf {
        return (0..UPDATES)
            .map(|_| (random.next() % ROWS as u64) as u32)
            .collect();
    }
    let theta = 0.99f64;
    let zeta: f64 = (1..=ROWS).map(|i| (i as f64).powf(-theta)).sum();
    let zeta2 = 1.0 + 0.5f64.powf(theta);
    let eta = (1.0 - (2.0 / ROWS as f64).powf(1.0 - theta)) / (1.0 - zeta2 / zeta);
    let mut shuffled: Vec<u32> = (0..ROWS as u32).collect();
    for i in (1..ROWS).rev() {
        shuffled.swap(i, (random.next() % (i as u64 + 1)) as usize);
    }
    (0..UPDATES)
        .map(|_| {
            let u = random.unit();
            let rank = if u * zeta < 1.0 {
                0
            } else if u * zeta < zeta2 {
                1
            } else {
                (ROWS as f64 * (eta * u - eta + 1.0).powf(1.0 / (1.0 - theta))) as usize
            };
            shuffled[rank.min(ROWS - 1)]
        })
        .collect()
}

struct Scenario {
    old: bool,
    mid: bool,
    open: bool,
}

fn run(scheme: Scheme, scenario: &Scenario, rows: &[u32]) {
    let mut store = Store::new(scheme);
    // Rows beyond ROWS belong to the open transaction, which locks what it changes.
    let all = ROWS + UPDATES as usize / 1000 + 1;
    let mut tags = vec![0u64; all];
    let mut versions = vec![0u64; all];
    let mut seen_by_old = Vec::new();
    let mut image = [0u64; 12];
    let (mut peak, mut sweeps_ms, mut work_ns, mut aside_ns) = (0, 0.0, 0.0, 0.0);
    let mut begun = Instant::now();
    let mut samples = String::new();
    for now in 1..=UPDATES {
        if now % 1_000_000 == 1 && now > 1 {
            let million = now / 1_000_000;
            peak = peak.max(store.bytes());
            if [2, 4, 8, 16, 24, 32].contains(&million) {
                samples += &format!(" {:>7.1}", store.bytes() as f64 / 1e6);
            }
            if million == 32 {
                let start = Instant::now();
                lookups(&store, &tags, &versions, scheme, BEGIN);
                println!(
                    "#   index {:.1} MB, moved {:.1} M records",
                    store.index_bytes() as f64 / 1e6,
                    store.moved as f64 / 1e6
                );
                aside_ns += start.elapsed().as_nanos() as f64;
            }
            if scenario.mid && million % 2 == 0 && now < END {
                store.snapshots.long.push(now);
                if store.snapshots.long.len() > 3 {
                    store.snapshots.long.remove(1);
                    let start = Instant::now();
                    store.sweep();
                    sweeps_ms += start.elapsed().as_secs_f64() * 1e3;
                    aside_ns += start.elapsed().as_nanos() as f64;
                }
            }
        }
        if scenario.old && now == BEGIN {
            store.snapshots.long.push(now - 1);
            seen_by_old = versions.clone();
        }
        if now == END {
            for (row, &version) in seen_by_old.iter().enumerate() {
                assert_eq!(
                    store.read(versions[row], tags[row], BEGIN - 1),
                    version,
                    "row {row}"
                );
            }
            store.snapshots.long.clear();
            store.snapshots.closed_at = now;
            let start = Instant::now();
            store.sweep();
            println!(
                "#   end of the old snapshot: sweep {:.1} ms, then {:.1} MB",
                start.elapsed().as_secs_f64() * 1e3,
                store.bytes() as f64 / 1e6
            );
        }
        let theirs = scenario.open && (BEGIN..END).contains(&now) && now % 1000 == 0;
        let row = if theirs {
            ROWS + now as usize / 1000
        } else {
            rows[now as usize - 1] as usize
        };
        image[0] = versions[row];
        if now % 512 == 0 {
            store.snapshots.fresh_from = now.saturating_sub(FRESH);
            store.prune();
        }
        tags[row] = store.update(tags[row], &image, now, if theirs { OPEN } else { now });
        versions[row] = now;
        if now == BEGIN {
            begun = Instant::now();
        } else if now == END - 1 {
            work_ns = begun.elapsed().as_nanos() as f64 - aside_ns;
        }
    }
    peak = peak.max(store.bytes());
    let per_update = work_ns / (END - BEGIN) as f64;
    println!(
        "{:<22}{samples} | peak {:>7.1} MB, end {:>6.1} MB, {per_update:>5.0} ns/update, sweeps {sweeps_ms:.0} ms",
        format!("{scheme:?}"),
        peak as f64 / 1e6,
        store.bytes() as f64 / 1e6
    );
}

fn lookups(store: &Store, tags: &[u64], versions: &[u64], scheme: Scheme, old: u64) {
    let mut random = Random(SEED ^ 7);
    let picks: Vec<u32> = (0..2_000_000)
        .map(|_| (random.next() % ROWS as u64) as u32)
        .collect();
    let mut cost = [0.0; 2];
    for (at, snapshot) in [(0, u64::MAX - 1), (1, old - 1)] {
        let start = Instant::now();
        let mut sum = 0u64;
        for &row in &picks {
            sum =
                sum.wrapping_add(store.read(versions[row as usize], tags[row as usize], snapshot));
        }
        cost[at] = start.elapsed().as_nanos() as f64 / picks.len() as f64;
        std::hint::black_box(sum);
    }
    println!(
        "#   {scheme:?}: lookup, newest {:.0} ns, at the old snapshot {:.0} ns (random rows)",
        cost[0], cost[1]
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let word = |at: usize| arguments.get(at).map_or("", String::as_str);
    let scenario = Scenario {
        old: word(0).starts_with("old"),
        mid: word(0) == "old+mid",
        open: word(0) == "open",
    };
    let rows = sequence(word(1) == "zipf");
    println!(
        "# {} {}: MB after 2, 4, 8, 16, 24, 32 million updates",
        word(0),
        word(1)
    );
    use Scheme::*;
    for scheme in [
        Physical,
        Segregated,
        Forwarding,
        ForwardingSegregated,
        Indirect,
    ] {
        if word(2).is_empty() || format!("{scheme:?}") == word(2) {
            run(scheme, &scenario, &rows);
        }
    }
}
