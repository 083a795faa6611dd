//! One run of the workload on a simulated disk, with a crash or a fault, and what comes after.

use super::check;
use super::txns::{Book, undo_loser};
use super::workload::{self, History, Shared, Size};
use clearway_base::testkit::{JoinHandle, Rng, Sim, SimOptions, Stop, spawn};
use clearway_base::vfs::Vfs;
use clearway_base::vfs::sim::{SimDisk, SimDiskOptions};
use clearway_storage::buffer::PoolOptions;
use clearway_storage::error::StorageError;
use clearway_storage::ids::Lsn;
use clearway_storage::recovery::Recovered;
use clearway_storage::space::SpaceOptions;
use clearway_storage::store::{Store, StoreOptions};
use clearway_storage::wal::WalOptions;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The database's directory on the simulated disk.
pub const DIR: &str = "/db";

/// Small sizes, so that segments, files, frames and checkpoints all have their limits met.
pub fn options() -> StoreOptions {
    StoreOptions {
        wal: WalOptions {
            ring_bytes: 128 << 10,
            segment_bytes: 64 << 10,
            ahead_bytes: 100 << 10,
            floor_bytes: 32 << 10,
            log_bytes_max: 4 << 20,
            caller_flushes: false,
        },
        pool: PoolOptions { frames: 48, batch_pages: 8, free_target: 8 },
        space: SpaceOptions { pages_per_file: 64, extent_pages: 16, undo_pages: 4 },
        checkpoint_bytes: 60 << 10,
        create: true,
        database_seed: 7,
    }
}

/// An open database with its background loops running in the current simulation.
pub struct Running {
    /// The database.
    pub store: Arc<Store>,
    /// The layer above.
    pub book: Arc<Book>,
    background: Vec<JoinHandle<()>>,
}

impl Running {
    /// Opens and recovers; losers are left to the caller.
    ///
    /// # Errors
    /// As storage.
    pub async fn open(disk: &SimDisk) -> Result<(Running, Recovered), StorageError> {
        let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
        if let Err(err) = vfs.create_dir(Path::new(DIR)).await
            && err.kind() != std::io::ErrorKind::AlreadyExists
        {
            return Err(err.into());
        }
        vfs.sync_dir(Path::new("/")).await?;
        let book = Arc::new(Book::default());
        let (store, recovered) = Store::open(vfs, Path::new(DIR), options(), book.clone()).await?;
        book.attach(store.wal());
        book.adopt(&recovered);
        let background = store.background().into_iter().map(|(name, task)| spawn(name, task)).collect();
        Ok((Running { store, book, background }, recovered))
    }

    /// Closes and waits for the background to end.
    ///
    /// # Errors
    /// As storage.
    pub async fn close(self) -> Result<(), StorageError> {
        self.store.close().await?;
        for task in self.background {
            task.await;
        }
        Ok(())
    }
}

/// Runs the workload from nothing; closes at the end.
///
/// # Errors
/// As storage.
async fn run_workload(disk: SimDisk, history: Shared, seed: u64, size: Size, close: bool) -> Result<(), StorageError> {
    let (running, _) = Running::open(&disk).await?;
    workload::prepare(&running.store, &running.book, &history, size).await?;
    let mut rng = Rng::new(seed ^ 0x5eed);
    let mut tasks = Vec::new();
    for task in 1..=size.tasks as usize {
        let (store, book) = (running.store.clone(), running.book.clone());
        tasks.push(spawn("task", workload::task(store, book, history.clone(), task, rng.fork(), size)));
    }
    let mut first = Ok(());
    for task in tasks {
        let result = task.await;
        if first.is_ok() {
            first = result;
        }
    }
    first?;
    if close { running.close().await } else { Ok(()) }
}

fn disk(seed: u64) -> SimDisk {
    SimDisk::with_options(seed, SimDiskOptions::default())
}

fn sim(seed: u64) -> Sim {
    Sim::with_options(seed, SimOptions { steps_max: 5_000_000 })
}

/// What a run left.
pub struct Ran {
    /// What the tasks were told.
    pub history: Shared,
    /// The disk.
    pub disk: SimDisk,
    /// How it ended.
    pub result: Result<Result<(), StorageError>, Stop>,
}

/// Runs the workload of `seed`, with `before` applied to the disk first.
pub fn run(seed: u64, size: Size, close: bool, before: impl FnOnce(&SimDisk)) -> Ran {
    let history: Shared = Arc::new(Mutex::new(History::default()));
    let disk = disk(seed);
    before(&disk);
    let result = sim(seed).block_on(run_workload(disk.clone(), history.clone(), seed, size, close));
    Ran { history, disk, result }
}

/// Recovers, and checks everything.
///
/// # Errors
/// What is wrong, in words.
async fn recover(disk: SimDisk, history: Shared, close: bool) -> Result<Lsn, String> {
    let storage = |err: StorageError| format!("recovery: {err}");
    let (running, recovered) = Running::open(&disk).await.map_err(storage)?;
    let visible = recovered.visible_lsn;
    // What lay behind the end of the log is gone for good; the positions are given out again from here on.
    history.lock().expect("history").forget_above(visible);
    for loser in recovered.losers {
        undo_loser(&running.store, &running.book, loser).await.map_err(storage)?;
    }
    let expected = check::expected(&history.lock().expect("history"), visible)?;
    check::check(&running.store, &running.book, &expected).await.map_err(storage)??;
    if close {
        running.close().await.map_err(storage)?;
    }
    Ok(visible)
}

/// Recovers what a crash left, as often as `again` says with another crash in between, and then once more after a
/// proper close.
///
/// # Errors
/// What is wrong.
pub fn recover_and_check(seed: u64, disk: &SimDisk, history: &Shared, again: u64) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let mut disk = disk.restart();
    let mut reached = Lsn::ZERO;
    let mut points = 60;
    for round in 0..again {
        // The second crash falls anywhere in the recovery before it.
        let at = disk.points() + 1 + rng.below(points);
        disk.crash_at(at);
        let begun = disk.points();
        let recovery = recover(disk.clone(), history.clone(), false);
        match sim(seed + round).block_on(recovery) {
            Ok(Ok(visible)) => reached = in_order(reached, visible)?,
            Ok(Err(wrong)) if !disk.is_off() => return Err(wrong),
            Ok(Err(_)) | Err(Stop::Crashed) => {}
            Err(stop) => return Err(format!("recovery: {stop}")),
        }
        points = (disk.points() - begun).max(8);
        disk = disk.restart();
    }
    for close in [true, false] {
        match sim(seed + 99).block_on(recover(disk.clone(), history.clone(), close)) {
            Ok(Ok(visible)) => reached = in_order(reached, visible)?,
            Ok(Err(wrong)) => return Err(wrong),
            Err(stop) => return Err(format!("recovery: {stop}")),
        }
        disk = disk.restart();
    }
    Ok(())
}

fn in_order(before: Lsn, now: Lsn) -> Result<Lsn, String> {
    if now < before {
        return Err(format!("SWP-3: the log ended at {before} and ends at {now}"));
    }
    Ok(now)
}

/// One point of the sweep.
///
/// # Errors
/// What is wrong.
pub fn crash_at(seed: u64, size: Size, point: u64) -> Result<(), String> {
    let ran = run(seed, size, true, |disk| disk.crash_at(point));
    match &ran.result {
        Err(Stop::Crashed) => {}
        Err(stop) => return Err(format!("the workload: {stop}")),
        // The last points are behind the workload's end, or met it on the way out.
        Ok(result) if ran.disk.is_off() || result.is_ok() => {}
        Ok(Err(err)) => return Err(format!("the workload: {err}")),
        Ok(Ok(())) => {}
    }
    recover_and_check(seed ^ point, &ran.disk, &ran.history, point % 3)
}

/// The files of a database, with their lengths.
///
/// # Errors
/// A directory that can't be listed.
pub fn files(disk: &SimDisk) -> Result<Vec<(PathBuf, u64)>, String> {
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    let listed = sim(1).block_on(async move {
        let mut files = Vec::new();
        for dir in ["", "wal", "data", "checkpoint"] {
            let dir = Path::new(DIR).join(dir);
            for entry in vfs.list(&dir).await? {
                files.push((dir.join(&entry.name), entry.size));
            }
        }
        Ok::<_, StorageError>(files)
    });
    let files = listed.map_err(|stop| stop.to_string())?.map_err(|err| err.to_string())?;
    Ok(files.into_iter().filter(|(_, size)| *size > 0).collect())
}

/// Recovers a copy of `disk` with one bit flipped, and checks everything; the copy of the history is thrown away.
///
/// # Errors
/// What storage said, which begins with `recovery:`, or what is wrong.
pub fn recover_flipped(disk: &SimDisk, history: &Shared, path: &Path, offset: u64, bit: u8) -> Result<(), String> {
    let disk = disk.restart();
    disk.flip_bit(path, offset, bit).map_err(|err| format!("the flip: {err}"))?;
    let history = history.lock().expect("history").clone();
    match sim(offset).block_on(recover(disk, Arc::new(Mutex::new(history)), false)) {
        Ok(checked) => checked.map(|_| ()),
        Err(stop) => Err(stop.to_string()),
    }
}

/// How many crash points the workload of `seed` has.
///
/// # Errors
/// It fails without a crash.
pub fn points(seed: u64, size: Size) -> Result<u64, String> {
    let ran = run(seed, size, true, |_| {});
    match ran.result {
        Ok(Ok(())) => {
            recover_and_check(seed, &ran.disk, &ran.history, 0)?;
            Ok(ran.disk.points())
        }
        Ok(Err(err)) => Err(format!("the workload: {err}")),
        Err(stop) => Err(format!("the workload: {stop}")),
    }
}
