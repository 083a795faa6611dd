//! Backup and archive in the sweep: while the workload runs, the log is archived and backups are taken, all on one simulated disk, and a
//! crash falls anywhere in it. At the end everything in the target is intact, and a restore gives what was there.
//!
//! # Invariants
//! - SWB-1: whatever was stopped at whatever point, `verify` finds no damage in the target.
//! - SWB-2: a restore to the end has every acknowledged commit, once the archiver has sent the whole log.
//! - SWB-3: a restore to any position behind a backup has exactly the commits up to that position.
//!
//! What an interrupted beginning of a backup put arrives again at any later time, as in an object store to which a request was sent twice (RSM-4).

use super::check;
use super::sweep::{self, Doing, Ended, Running, Stopper, World};
use super::txns::undo_loser;
use super::workload::Size;
use clearway_backup::archive::{ArchiveOptions, Archiver, Step};
use clearway_backup::plan::{Contents, Goal, plan};
use clearway_backup::resume::unfinished;
use clearway_backup::source::Source;
use clearway_backup::take::{TakeOptions, take};
use clearway_backup::target::{Directory, Listed, Target};
use clearway_backup::{BackupError, restore, verify};
use clearway_base::sync::sleep;
use clearway_base::testkit::{JoinHandle, Rng, Sim, SimOptions, spawn};
use clearway_base::vfs::Vfs;
use clearway_base::vfs::sim::SimDisk;
use clearway_storage::backup::Start;
use clearway_storage::error::StorageError;
use clearway_storage::ids::{Lsn, PageId};
use clearway_storage::seams::BoxFuture;
use clearway_storage::store::Store;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const TARGET: &str = "/target";

fn target(disk: &SimDisk) -> Directory {
    Directory::new(Arc::new(disk.clone()) as Arc<dyn Vfs>, Path::new(TARGET))
}

/// An archiver and a taker of backups beside a workload.
pub struct Keeping {
    disk: SimDisk,
    stop: Arc<AtomicBool>,
    archiver: JoinHandle<Result<(), BackupError>>,
    taker: JoinHandle<Result<(), BackupError>>,
}

impl Keeping {
    /// Starts both.
    pub fn start(disk: &SimDisk, store: &Arc<Store>, rng: &mut Rng) -> Keeping {
        let stop = Arc::new(AtomicBool::new(false));
        let archiver = spawn("archiver", archive(disk.clone(), store.clone(), stop.clone(), rng.below(u64::MAX) | 1));
        let taker = spawn("backup", back_up(disk.clone(), store.clone(), rng.fork()));
        Keeping { disk: disk.clone(), stop, archiver, taker }
    }

    /// Waits until the backups are taken and all log is sent.
    ///
    /// # Errors
    /// What went wrong.
    pub async fn finish(self) -> Result<(), Ended> {
        let taken = self.taker.await;
        self.stop.store(true, Ordering::SeqCst);
        let sent = self.archiver.await;
        taken.and(sent).map_err(|error| match error {
            _ if self.disk.is_stopped() => Ended::Storage(StorageError::Invalid("the disk has stopped".into())),
            BackupError::Storage(error) => Ended::Storage(error),
            error => Ended::Wrong(format!("backup or archive: {error}")),
        })
    }
}

async fn archive(disk: SimDisk, store: Arc<Store>, stop: Arc<AtomicBool>, claimer: u64) -> Result<(), BackupError> {
    let home = Directory::new(Arc::new(disk.clone()) as Arc<dyn Vfs>, Path::new(sweep::DIR));
    let options = ArchiveOptions { timeout_ns: 3_000_000, limit_bytes: u64::MAX, claimer };
    let mut archiver = Archiver::new(store, Box::new(target(&disk)), Box::new(home), options);
    loop {
        let stopping = stop.load(Ordering::SeqCst);
        match archiver.step(stopping).await? {
            Step::Sent => {}
            Step::Idle if stopping => return Ok(()),
            Step::Idle => sleep(Duration::from_millis(1)).await,
        }
    }
}

/// A full backup, then an incremental one. Each loses its source at some request, perhaps twice, and goes on.
async fn back_up(disk: SimDisk, store: Arc<Store>, mut rng: Rng) -> Result<(), BackupError> {
    let target = Late::new(target(&disk), rng.fork());
    for incremental in [false, true] {
        let mut options = TakeOptions { incremental, ..TakeOptions::default() };
        loop {
            // It falls on any request; often behind the last pages, when an object of pages is there.
            let left = if options.resume && rng.chance(2, 3) { u64::MAX } else { 1 + rng.below(12) };
            let mut source = Breaks { inner: store.clone(), left };
            match take(&mut source, &target, &options, &mut |_| {}).await {
                Err(BackupError::Source(broken)) if broken == BROKEN => {
                    target.interrupted();
                    // Where nothing had been put yet, there is nothing to go on with.
                    let begun = unfinished(&target).await;
                    let ours = begun.is_ok_and(|begun| begun.epoch == store.wal().epoch());
                    options = TakeOptions { incremental: incremental && !ours, resume: ours, ..options };
                }
                taken => {
                    taken?;
                    break;
                }
            }
        }
    }
    Ok(())
}

/// A target to which what an interrupted beginning put comes again later.
struct Late {
    inner: Directory,
    state: Mutex<LateState>,
}

struct LateState {
    rng: Rng,
    /// What this beginning put.
    put: Vec<(String, Vec<u8>)>,
    /// What interrupted ones put.
    late: Vec<(String, Vec<u8>)>,
}

impl Late {
    fn new(inner: Directory, rng: Rng) -> Late {
        Late { inner, state: Mutex::new(LateState { rng, put: Vec::new(), late: Vec::new() }) }
    }

    fn interrupted(&self) {
        let mut state = self.state.lock().expect("late");
        let put = std::mem::take(&mut state.put);
        state.late.extend(put);
    }

    fn arriving(&self) -> Option<(String, Vec<u8>)> {
        let mut state = self.state.lock().expect("late");
        let arrives = !state.late.is_empty() && state.rng.chance(1, 3);
        let count = state.late.len();
        arrives.then(|| state.rng.index(count)).map(|at| state.late.swap_remove(at))
    }

    async fn late(&self) -> Result<(), BackupError> {
        match self.arriving() {
            Some((name, bytes)) => self.inner.put(&name, &bytes).await,
            None => Ok(()),
        }
    }
}

impl Target for Late {
    fn place(&self) -> String {
        self.inner.place()
    }

    fn put<'a>(&'a self, name: &'a str, bytes: &'a [u8]) -> BoxFuture<'a, Result<(), BackupError>> {
        Box::pin(async move {
            self.inner.put(name, bytes).await?;
            self.state.lock().expect("late").put.push((name.to_owned(), bytes.to_vec()));
            self.late().await
        })
    }

    fn put_new<'a>(&'a self, name: &'a str, bytes: &'a [u8]) -> BoxFuture<'a, Result<(), BackupError>> {
        Box::pin(async move {
            self.inner.put_new(name, bytes).await?;
            self.late().await
        })
    }

    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<u8>, BackupError>> {
        self.inner.get(name)
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<Listed>, BackupError>> {
        self.inner.list(prefix)
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), BackupError>> {
        self.inner.remove(name)
    }
}

const BROKEN: &str = "the connection is broken";

/// A source that is lost after some requests.
struct Breaks {
    inner: Arc<Store>,
    left: u64,
}

impl Breaks {
    fn count(&mut self) -> Result<&mut Arc<Store>, BackupError> {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 { Err(BackupError::Source(BROKEN.to_owned())) } else { Ok(&mut self.inner) }
    }
}

impl Source for Breaks {
    fn begin(&mut self) -> BoxFuture<'_, Result<Start, BackupError>> {
        Box::pin(async { self.count()?.begin().await })
    }

    fn pages(
        &mut self,
        lease: u64,
        first: PageId,
        count: u32,
        since: Lsn,
    ) -> BoxFuture<'_, Result<Vec<u8>, BackupError>> {
        Box::pin(async move { self.count()?.pages(lease, first, count, since).await })
    }

    fn end(&mut self, lease: u64) -> BoxFuture<'_, Result<(Lsn, i64), BackupError>> {
        Box::pin(async move { self.count()?.end(lease).await })
    }

    fn log(&mut self, lease: u64, from: Lsn, to: Lsn) -> BoxFuture<'_, Result<Vec<u8>, BackupError>> {
        Box::pin(async move { self.count()?.log(lease, from, to).await })
    }

    /// A lost source keeps the lease, until the one that goes on gives it back.
    fn leave(&mut self, lease: u64) -> BoxFuture<'_, Result<(), BackupError>> {
        Box::pin(async move { self.count()?.leave(lease).await })
    }
}

/// The workload with backups and archive, and a proper close.
pub(super) const KEEP: Doing = Doing { backup: true, ..sweep::WORK };

/// One point of the sweep: lives that are stopped, one that is not, then SWB-1 to SWB-3.
///
/// # Errors
/// What is wrong.
pub fn crash_at(seed: u64, size: Size, point: u64) -> Result<(), String> {
    let mut world = World::new(seed, size);
    let mut rng = Rng::new(seed ^ (point << 20) ^ 0xbac);
    let mut stop = point;
    for more in 0..=point % 3 {
        let stopper = if rng.chance(1, 3) { Stopper::Process(stop) } else { Stopper::Power(stop) };
        let stopped = world.live(KEEP, stopper).map_err(|ended| format!("life {more}: {ended:?}"))?;
        if !stopped {
            break;
        }
        stop = world.disk.points() + 1 + rng.below(600);
    }
    world.disk = world.disk.restart();
    world.live_well(KEEP)?;
    looks(&mut world, &mut rng)
}

/// How many points the lives without a stop have.
///
/// # Errors
/// It fails without a crash.
pub fn points(seed: u64, size: Size) -> Result<u64, String> {
    let mut world = World::new(seed, size);
    world.live_well(KEEP)?;
    let points = world.disk.points();
    looks(&mut world, &mut Rng::new(seed))?;
    Ok(points)
}

fn looks(world: &mut World, rng: &mut Rng) -> Result<(), String> {
    let sim = Sim::with_options(rng.below(u64::MAX), SimOptions { steps_max: 10_000_000 });
    let looked = sim.block_on(look(world.disk.clone(), world.history.clone(), rng.fork()));
    looked.map_err(|stop| format!("{stop}"))?
}

async fn look(disk: SimDisk, history: super::workload::Shared, mut rng: Rng) -> Result<(), String> {
    let target = target(&disk);
    let verified = verify::verify(&target).await.map_err(|error| format!("SWB-1: {error}"))?;
    if let Some(damage) = verified.damage.first() {
        return Err(format!("SWB-1: {damage}"));
    }
    let contents = Contents::read(&target).await.map_err(|error| error.to_string())?;
    let (Some(first), Some(last)) = (contents.backups.first(), contents.backups.last()) else {
        return Err("the life that nothing stopped took no backup".to_owned());
    };
    let end =
        contents.log.iter().filter_map(|object| clearway_backup::names::range(&object.name)).map(|(_, to)| to).max();
    let end = end.unwrap_or(last.end).max(last.end);
    let between = Lsn((first.end.0 + rng.below(end.0 - first.end.0 + 1)) / 8 * 8).max(first.end);
    for (number, goal) in [Goal::End, Goal::Backup(last.id.clone()), Goal::Lsn(between)].into_iter().enumerate() {
        let whole = goal == Goal::End;
        let at = restored(&disk, &target, &goal, &format!("/restored{number}"), &history, whole).await;
        at.map_err(|wrong| format!("{goal:?}: {wrong}"))?;
    }
    Ok(())
}

async fn restored(
    disk: &SimDisk,
    target: &Directory,
    goal: &Goal,
    dir: &str,
    history: &super::workload::Shared,
    whole: bool,
) -> Result<(), String> {
    let plan = plan(target, goal, None).await.map_err(|error| error.to_string())?;
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    let made = restore::restore(target, &plan, &vfs, Path::new(dir), &mut |_| {}).await;
    made.map_err(|error| error.to_string())?;
    let opened = Running::open_at(disk, dir, sweep::options()).await;
    let (running, recovered) = opened.map_err(|error| format!("it does not open: {error}"))?;
    if recovered.visible_lsn != plan.cut {
        return Err(format!("the log was cut at {} and ends at {}", plan.cut, recovered.visible_lsn));
    }
    for loser in recovered.losers {
        undo_loser(&running.store, &running.book, loser).await.map_err(|error| error.to_string())?;
    }
    let expected = match whole {
        true => check::expected(&history.lock().expect("history"), plan.cut)?, // SWB-2
        false => check::state_at(&history.lock().expect("history"), plan.cut), // SWB-3
    };
    check::check(&running.store, &running.book, &expected).await.map_err(|error| error.to_string())??;
    running.close().await.map_err(|error| error.to_string())
}
