//! The rule of the replies: after a crash at any begin or end of an I/O, every reply that was given is still true of the data that is left.
//! And isolation, for tables with indexes, by the order of commits.

use clearway_base::testkit::{Rng, Stop};
use clearway_base::vfs::sim::SimDisk;

use super::oracle::Oracle;
use super::rows::{Left, new_notes, recover, run};

/// What a sweep has met.
#[derive(Debug, Default)]
pub struct Swept {
    pub seeds: u64,
    pub points: u64,
    pub given: u64,
    pub acknowledged: u64,
    /// Commits that no client had been told of, and what became of them.
    pub untold_kept: u64,
    pub untold_lost: u64,
}

/// Crashes once; `None` if all replies hold.
fn crash(seed: u64, point: u64, swept: &mut Swept) -> Option<String> {
    let (disk, notes) = (SimDisk::new(seed), new_notes());
    disk.crash_at(point);
    assert_eq!(run(seed, &disk, &notes, true).err(), Some(Stop::Crashed), "point {point}");
    let left = recover(seed, &disk).unwrap_or_else(|stop| panic!("recovery after point {point}: {stop}"));
    let history = notes.lock().history();
    let Left { last, rows: Some(rows) } = left else {
        return notes.lock().ready_at.map(|_| "the table is gone".to_owned());
    };
    swept.points += 1;
    for txn in &history {
        swept.given += txn.told.iter().filter(|told| told.given).count() as u64;
        swept.acknowledged += u64::from(txn.acknowledged);
        if let Some(commit) = txn.commit.filter(|_| !txn.acknowledged) {
            *(if commit <= last { &mut swept.untold_kept } else { &mut swept.untold_lost }) += 1;
        }
    }
    let found = Oracle::new(&history).replies(last, &rows);
    (!found.is_empty()).then(|| format!("after a crash at point {point}: {found:#?}"))
}

/// How many crash points a seed has, and the first with a table; checks its isolation on the way.
pub fn whole(seed: u64) -> Result<(u64, u64), String> {
    let (disk, notes) = (SimDisk::new(seed), new_notes());
    run(seed, &disk, &notes, true).map_err(|stop| stop.to_string())?;
    let history = notes.lock().history();
    let found = Oracle::new(&history).isolation();
    if !found.is_empty() {
        return Err(format!("{found:#?}"));
    }
    let ready = notes.lock().ready_at.expect("a table");
    Ok((ready, disk.points()))
}

/// Crashes a seed at about every `stride`-th point.
pub fn sweep(seed: u64, stride: u64, swept: &mut Swept) -> Result<(), String> {
    let (ready, end) = whole(seed)?;
    swept.seeds += 1;
    let mut rng = Rng::new(seed);
    let mut point = ready - (ready / 20).min(ready - 1);
    while point < end {
        if let Some(wrong) = crash(seed, point, swept) {
            return Err(wrong);
        }
        point += rng.range(1..2 * stride);
    }
    Ok(())
}
