//! One world: a database on a simulated disk that is opened, worked on and stopped, again and again.
//!
//! # Life of one opening
//! open and recover -> SWP-3, SWP-4 -> undo the losers -> compare (SWP-1, SWP-2) -> work, if asked -> close, if asked. A stop may fall
//! anywhere in it: a power cut, or the death of the process alone.

use super::backups::Keeping;
use super::check;
use super::txns::{Book, undo_loser};
use super::workload::{self, History, Shared, Size};
use clearway_base::testkit::{JoinHandle, Rng, Sim, SimOptions, spawn};
use clearway_base::vfs::Vfs;
use clearway_base::vfs::sim::{SimDisk, SimDiskOptions};
use clearway_storage::buffer::PoolOptions;
use clearway_storage::error::StorageError;
use clearway_storage::ids::Lsn;
use clearway_storage::recovery::Recovered;
use clearway_storage::space::SpaceOptions;
use clearway_storage::store::{Store, StoreOptions};
use clearway_storage::wal::{Wal, WalOptions};
use std::path::Path;
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
        pool: PoolOptions { frames: 48, batch_pages: 8, free_target: 8, huge_pages: false },
        space: SpaceOptions { pages_per_file: 64, extent_pages: 16, undo_pages: 4, spare_pages: 2 },
        checkpoint_bytes: 60 << 10,
        checkpoint_pause: std::time::Duration::ZERO,
        create: true,
        archive_bytes: None,
        database_seed: 7,
        redo_threads: 0,
        progress: Arc::default(),
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
        Running::open_at(disk, DIR, options()).await
    }

    /// The same for any directory.
    ///
    /// # Errors
    /// As storage.
    pub async fn open_at(
        disk: &SimDisk,
        dir: &str,
        options: StoreOptions,
    ) -> Result<(Running, Recovered), StorageError> {
        let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
        if let Err(err) = vfs.create_dir(Path::new(dir)).await
            && err.kind() != std::io::ErrorKind::AlreadyExists
        {
            return Err(err.into());
        }
        vfs.sync_dir(Path::new("/")).await?;
        let book = Arc::new(Book::default());
        let (store, recovered) = Store::open(vfs, Path::new(dir), options, book.clone()).await?;
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
        let closed = self.store.close().await;
        for task in self.background {
            task.await;
        }
        closed
    }
}

/// What stops a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopper {
    /// Nothing: it ends by itself.
    None,
    /// The power goes at this point.
    Power(u64),
    /// The process dies at this point.
    Process(u64),
}

/// What is done in a life after recovery.
#[derive(Clone, Copy, Debug, Default)]
pub struct Doing {
    /// The workload.
    pub work: bool,
    /// The log is archived and backups are taken beside the workload.
    pub backup: bool,
    /// When the work is done the disk gets room again, and the workload runs once more.
    pub room_then_more: bool,
    /// A proper close.
    pub close: bool,
}

/// Why a life ended before its time.
#[derive(Clone, Debug)]
pub enum Ended {
    /// What storage said.
    Storage(StorageError),
    /// What is wrong.
    Wrong(String),
}

impl From<StorageError> for Ended {
    fn from(err: StorageError) -> Ended {
        Ended::Storage(err)
    }
}

/// A database and all that is known of it from outside.
pub struct World {
    /// The disk.
    pub disk: SimDisk,
    /// What the tasks were told.
    pub history: Shared,
    seed: u64,
    size: Size,
    lives: u64,
    /// The greatest end of the log that recovery accepted.
    reached: Lsn,
    /// The log of the life that runs, or ran last.
    wal: Arc<Mutex<Option<Arc<Wal>>>>,
    /// Where the log ended when the last life did.
    appended: Lsn,
}

impl World {
    /// An empty disk.
    pub fn new(seed: u64, size: Size) -> World {
        World {
            disk: SimDisk::with_options(seed, SimDiskOptions::default()),
            history: Arc::new(Mutex::new(History::default())),
            seed,
            size,
            lives: 0,
            reached: Lsn::ZERO,
            wal: Arc::default(),
            appended: Lsn(u64::MAX),
        }
    }

    /// A copy as a power cut now leaves it; what is known is copied too.
    pub fn fork(&self) -> World {
        let history = self.history.lock().expect("history").clone();
        World { disk: self.disk.restart(), history: Arc::new(Mutex::new(history)), wal: Arc::default(), ..*self }
    }

    /// One life; true if the stopper stopped it.
    ///
    /// # Errors
    /// What storage said though nothing stopped it, or what is wrong.
    pub fn live(&mut self, doing: Doing, stopper: Stopper) -> Result<bool, Ended> {
        match stopper {
            Stopper::None => {}
            Stopper::Power(point) => self.disk.crash_at(point),
            Stopper::Process(point) => self.disk.die_at(point),
        }
        self.lives += 1;
        let sim = Sim::with_options(
            self.seed ^ (self.lives << 32),
            SimOptions { steps_max: 3_000_000 + 10 * self.size.chain_bytes },
        );
        let ended = sim.block_on(life(self.life(), doing));
        let wal = self.wal.lock().expect("wal").take();
        if let Some(wal) = wal {
            self.appended = wal.end_lsn();
        }
        let stopped = self.disk.is_stopped();
        if stopped && stopper != Stopper::None {
            match stopper {
                Stopper::Process(_) => self.disk.process_died(),
                _ => self.disk = self.disk.restart(),
            }
        }
        match ended {
            Ok(Err(Ended::Wrong(wrong))) => Err(Ended::Wrong(wrong)),
            _ if stopped => Ok(true),
            Ok(Ok(visible)) => {
                self.reached = self.reached.max(visible);
                // The stop lay behind the end.
                self.disk.process_died();
                Ok(false)
            }
            Ok(Err(storage)) => {
                self.disk.process_died();
                Err(storage)
            }
            Err(stop) => Err(Ended::Wrong(format!("{stop}"))),
        }
    }

    /// One life that nothing stops and nothing disturbs.
    ///
    /// # Errors
    /// What is wrong.
    pub fn live_well(&mut self, doing: Doing) -> Result<(), String> {
        self.live(doing, Stopper::None).map(|_| ()).map_err(|ended| match ended {
            Ended::Storage(err) => format!("recovery: {err}"),
            Ended::Wrong(wrong) => wrong,
        })
    }

    fn life(&self) -> Life {
        Life {
            disk: self.disk.clone(),
            history: self.history.clone(),
            wal: self.wal.clone(),
            rng: Rng::new(self.seed ^ 0x5eed ^ (self.lives << 40)),
            size: self.size,
            reached: self.reached,
            appended: self.appended,
        }
    }
}

/// What one life needs of its world.
struct Life {
    disk: SimDisk,
    history: Shared,
    wal: Arc<Mutex<Option<Arc<Wal>>>>,
    rng: Rng,
    size: Size,
    reached: Lsn,
    appended: Lsn,
}

async fn life(mut life: Life, doing: Doing) -> Result<Lsn, Ended> {
    let options = StoreOptions { archive_bytes: doing.backup.then_some(u64::MAX), ..options() };
    let (running, recovered) = Running::open_at(&life.disk, DIR, options).await?;
    *life.wal.lock().expect("wal") = Some(running.store.wal().clone());
    let visible = recovered.visible_lsn;
    if visible < life.reached {
        return Err(Ended::Wrong(format!("SWP-3: the log ended at {} and ends at {visible}", life.reached)));
    }
    if visible > life.appended {
        return Err(Ended::Wrong(format!(
            "SWP-4: the log ends at {visible}, and nothing was put behind {}",
            life.appended
        )));
    }
    // What lay behind the end of the log is gone for good; the positions are given out again from here on.
    life.history.lock().expect("history").forget_above(visible);
    for loser in recovered.losers {
        undo_loser(&running.store, &running.book, loser).await?;
    }
    let expected = check::expected(&life.history.lock().expect("history"), visible).map_err(Ended::Wrong)?;
    check::check(&running.store, &running.book, &expected).await?.map_err(Ended::Wrong)?;
    if doing.work {
        workload::prepare(&running.store, &running.book, &life.history, life.size).await?;
        let keeping = doing.backup.then(|| Keeping::start(&life.disk, &running.store, &mut life.rng));
        work(&running, &mut life).await?;
        if let Some(keeping) = keeping {
            keeping.finish().await?;
        }
        if doing.room_then_more {
            life.disk.set_capacity(u64::MAX);
            life.disk.clear_faults();
            let tolerant = std::mem::take(&mut life.history.lock().expect("history").tolerant);
            if running.store.wal().poisoned().is_none() {
                work(&running, &mut life).await?;
            }
            life.history.lock().expect("history").tolerant = tolerant;
        }
    }
    if doing.close {
        running.close().await?;
    }
    Ok(visible)
}

async fn work(running: &Running, life: &mut Life) -> Result<(), StorageError> {
    let mut tasks = Vec::new();
    for task in 1..=life.size.tasks as usize {
        let (store, book) = (running.store.clone(), running.book.clone());
        let rng = life.rng.fork();
        tasks.push(spawn("task", workload::task(store, book, life.history.clone(), task, rng, life.size)));
    }
    let mut first = Ok(());
    for task in tasks {
        let result = task.await;
        if first.is_ok() {
            first = result;
        }
    }
    first
}

/// Nothing but opening, undoing and comparing.
pub const LOOK: Doing = Doing { work: false, backup: false, room_then_more: false, close: false };
/// The same, and a proper close.
pub const CLOSE: Doing = Doing { close: true, ..LOOK };
/// The workload, and a proper close.
pub const WORK: Doing = Doing { work: true, ..CLOSE };

/// One point of the sweep: the first life is stopped at `point`. Then, by turns, some lives that are stopped too, some
/// in recovery and some in more work; then two that are not.
///
/// # Errors
/// What is wrong.
pub fn crash_at(seed: u64, size: Size, point: u64) -> Result<(), String> {
    let mut world = World::new(seed, size);
    let mut rng = Rng::new(seed ^ (point << 20));
    let stopper = |rng: &mut Rng, point| if rng.chance(1, 3) { Stopper::Process(point) } else { Stopper::Power(point) };
    let mut stop = stopper(&mut rng, point);
    let mut doing = WORK;
    for more in 0..=point % 4 {
        let begun = world.disk.points();
        let stopped = world.live(doing, stop).map_err(|ended| format!("life {more}: {ended:?}"))?;
        if !stopped {
            break;
        }
        // The next stop falls anywhere in a recovery as long as this life was, at most, or in work after it.
        let lived = world.disk.points().saturating_sub(begun).clamp(8, 120);
        doing = if rng.chance(1, 2) { WORK } else { LOOK };
        let next = world.disk.points() + 1 + rng.below(if doing.work { 400 } else { lived });
        stop = stopper(&mut rng, next);
    }
    after(&mut world)
}

/// Two lives without a stop: what is there is right, and so it is after a proper close.
///
/// # Errors
/// What is wrong.
pub fn after(world: &mut World) -> Result<(), String> {
    // A stopper that lay behind the end of its life must not fall into the next.
    world.disk = world.disk.restart();
    world.live_well(CLOSE)?;
    world.live_well(LOOK)
}

/// How many crash points the workload of `seed` has.
///
/// # Errors
/// It fails without a crash.
pub fn points(seed: u64, size: Size) -> Result<u64, String> {
    let mut world = World::new(seed, size);
    world.live_well(WORK)?;
    let points = world.disk.points();
    after(&mut world)?;
    Ok(points)
}
