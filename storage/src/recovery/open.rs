//! The opening of a database: recovers the files of a directory to a consistent log, pool and space.

use super::analysis::{Analysis, Findings, Loser};
use super::control::{Control, ControlFile};
use super::create::{FIRST_LSN, contents_of, is_databases, prepare_new, sync_parent};
use super::progress::{Phase, Progress};
use super::redo::{BATCH_BYTES, RedoPass};
use super::redo_batch::Place;
use super::saved::Saved;
use super::saved::{PendingChain, PendingDrop};
use super::{Checkpoints, RecoveryReport};
use crate::btree;
use crate::buffer::{DoubleWrite, PAGE_BYTES, Pool, Twins};
use crate::error::{Corruption, StorageError};
use crate::ids::{Lsn, PageId, Tag, TxnId};
use crate::mutation::{self, Mutation};
use crate::options::StoreOptions;
use crate::record::{BeforeImage, UndoEntry};
use crate::seams::{BoxFuture, Versions};
use crate::space::{Expected, Space, SpaceOptions, survey};
use crate::temp_files;
use crate::wal::mark::{self, DurableMark};
use crate::wal::reader::{End, LogReader};
use crate::wal::repair::{Known, check_end, settle_tail};
use crate::wal::segments::{Layout, Segments, check_segments};
use crate::wal::{StartAt, Wal, WalOptions, format};
use clearway_base::vfs::{FileKind, OpenHow, Vfs, VfsFile};
use clearway_base::waits::now_ns;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The result of recovery, for the layer above.
#[derive(Debug)]
pub struct Recovered {
    /// Transactions to be undone; their log space is set aside.
    pub losers: Vec<Loser>,
    /// No greater tag was ever written.
    pub tag_high_water: Tag,
    /// No greater transaction id was ever written.
    pub txn_high_water: TxnId,
    /// Every commit in the log lies at or below this LSN, and is durable.
    pub visible_lsn: Lsn,
    /// The epoch that began with this opening, or went on after a proper close.
    pub epoch: u32,
    /// What was done.
    pub report: RecoveryReport,
}

/// The parts of an opened database.
pub(crate) struct Opened {
    pub(crate) wal: Arc<Wal>,
    pub(crate) space: Arc<Space>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) drops: Vec<PendingDrop>,
    pub(crate) chains: Vec<PendingChain>,
    pub(crate) recovered: Recovered,
}

/// Where things lie in a database's directory.
struct Paths {
    dir: PathBuf,
    wal: PathBuf,
    data: PathBuf,
    checkpoint: PathBuf,
    double_write: PathBuf,
}

impl Paths {
    fn of(dir: &Path) -> Paths {
        Paths {
            dir: dir.to_owned(),
            wal: dir.join("wal"),
            data: dir.join("data"),
            checkpoint: dir.join("checkpoint"),
            double_write: dir.join("double-write"),
        }
    }
}

/// Opens the database in `dir`, or creates one if there is none. The future is boxed, so that its code is compiled in this crate and not again in each
/// crate that awaits it.
pub(crate) fn open<'a>(
    vfs: &'a Arc<dyn Vfs>,
    dir: &'a Path,
    options: &'a StoreOptions,
    versions: &'a Arc<dyn Versions>,
) -> BoxFuture<'a, Result<Opened, StorageError>> {
    Box::pin(open_or_create(vfs, dir, options, versions))
}

async fn open_or_create(
    vfs: &Arc<dyn Vfs>,
    dir: &Path,
    options: &StoreOptions,
    versions: &Arc<dyn Versions>,
) -> Result<Opened, StorageError> {
    let paths = Paths::of(dir);
    match ControlFile::open(vfs, dir).await? {
        Some((file, control)) => recover(vfs, options, versions, paths, file, control).await,
        None if !options.create => {
            Err(StorageError::Invalid(format!("there is no database in {}", dir.display()).into()))
        }
        None => {
            // NEW-2: this process holds the lock by now, so the check of the directory is final.
            contents_of(vfs, dir).await?;
            let control = prepare_new(vfs, dir, options).await?;
            let file = ControlFile::create(vfs, dir, &control).await?;
            sync_parent(vfs, dir).await?;
            recover(vfs, options, versions, paths, file, control).await
        }
    }
}

async fn last_checkpoint(vfs: &Arc<dyn Vfs>, paths: &Paths, control: &Control) -> Result<Saved, StorageError> {
    match control.checkpoint {
        0 => Ok(Saved::default()),
        number => Saved::read(vfs, &paths.checkpoint, number, control.checkpoint_len, control.checkpoint_crc).await,
    }
}

async fn recover(
    vfs: &Arc<dyn Vfs>,
    options: &StoreOptions,
    versions: &Arc<dyn Versions>,
    paths: Paths,
    file: ControlFile,
    mut control: Control,
) -> Result<Opened, StorageError> {
    let layout = Layout { segment_bytes: control.segment_bytes };
    let marked = mark::read(vfs, &paths.dir, control.database).await?;
    let durable = control.durable.max(marked);
    let known = Known { vfs, dir: &paths.wal, layout, database: control.database, durable };
    let saved = last_checkpoint(vfs, &paths, &control).await?;
    let mut report = RecoveryReport { clean: control.clean, ..RecoveryReport::default() };
    let began_ns = now_ns();
    let (mut findings, end) = analyse(&known, &control, saved, &mut report, &options.progress).await?;
    let twins = look_at_files(&known, &paths, &control, findings.last_page, end.lsn).await?;
    report.analysis_ns = now_ns() - began_ns;
    if control.clean && end.lsn != control.durable {
        let found = format!("records up to {}", end.lsn);
        let expected = format!("a log that ends at {}, as it was closed", control.durable);
        return Err(Corruption { expected, found, ..end.damage }.into());
    }
    // An empty log has no segment yet.
    let nothing = end.lsn == FIRST_LSN && control.durable == FIRST_LSN;
    let rewrite = !control.clean && !mutation::active(Mutation::NoTailRewrite);
    // Records name later syncs than the control file: the LSN that a record calls durable had been synced when it was appended.
    let tail = Known { durable: control.durable.max(end.durable_hint), ..known };
    let head = match nothing {
        true => vec![0; FIRST_LSN.0 as usize],
        false => settle_tail(&tail, end.lsn, rewrite).await?,
    };
    // After a proper close the epoch continues: nothing of it stands behind the log's end.
    if !control.clean && !mutation::active(Mutation::SameEpoch) {
        control.epoch += 1;
        control.epoch_start = end.lsn;
    }
    control.durable = end.lsn;
    control.clean = false;
    control.generation += 1;
    file.write(&control).await?;
    // REC-11
    remove_leftovers(vfs, &paths, control.checkpoint).await?;

    let wal = start_log(vfs, options, &paths, &control, end.lsn, head).await?;
    let space_options = SpaceOptions { pages_per_file: control.pages_per_file, ..options.space.clone() };
    let space = Space::new(vfs.clone(), &paths.data, space_options, wal.clone(), versions.clone());
    space.open_files().await?;
    let double_write = open_double_write(vfs, &paths, options.pool.batch_pages).await?;
    report.pages_restored = DoubleWrite::new(double_write.clone()).restore(&*space, twins).await?.pages.len();
    let pool = Pool::new(options.pool.clone(), wal.clone(), space.clone(), DoubleWrite::new(double_write));
    space.attach(&pool);
    let began_ns = now_ns();
    redo(&known, &control, end.lsn, &pool, &mut report, options).await?;
    report.redo_ns = now_ns() - began_ns;
    if nothing {
        space.create().await?;
    } else {
        space.load().await?;
    }
    if mutation::active(Mutation::NoLosers) {
        findings.losers.clear();
    }
    reserve_for_undo(&wal, &mut findings.losers).await?;
    let Findings { losers, pending, chains, tag_high_water, txn_high_water, .. } = findings;
    let (visible_lsn, epoch) = (end.lsn, control.epoch);
    let recovered = Recovered { losers, tag_high_water, txn_high_water, visible_lsn, epoch, report };
    let checkpoints = Checkpoints::new(file, control, paths.checkpoint);
    Ok(Opened { wal, space, pool, checkpoints, drops: pending, chains, recovered })
}

/// Looks at every file that the opening will change, before it changes one (REC-13). Returns the pages that may have to be restored.
async fn look_at_files(
    known: &Known<'_>,
    paths: &Paths,
    control: &Control,
    last_page: PageId,
    end: Lsn,
) -> Result<Twins, StorageError> {
    check_segments(known.vfs, known.dir, known.layout, known.database, control.scan, end).await?;
    let twins = match known.vfs.open(&paths.double_write, OpenHow::read_only(FileKind::DoubleWrite).direct()).await {
        Ok(file) => Twins::read(&file, control.redo, end).await?,
        // A restored directory has none yet.
        Err(err) if err.kind() == ErrorKind::NotFound => Twins::default(),
        Err(err) => return Err(err.into()),
    };
    let (begun, closed) = (end > FIRST_LSN, control.clean);
    let (pages_per_file, reach) = (control.pages_per_file, control.reach);
    let expected = Expected { begun, closed, pages_per_file, reach, last_page, end, twins: &twins };
    survey(known.vfs, &paths.data, expected).await?; // SPC-9
    Ok(twins)
}

/// A file whose name a crash takes with it holds no twins: the name is synced before the first batch. It is long enough
/// for every batch from the beginning, so that pages can be written when the disk is full.
async fn open_double_write(vfs: &Arc<dyn Vfs>, paths: &Paths, pages: usize) -> Result<Arc<dyn VfsFile>, StorageError> {
    let file = vfs.open(&paths.double_write, OpenHow::create(FileKind::DoubleWrite).direct()).await?;
    let bytes = (pages * PAGE_BYTES) as u64;
    if file.len().await? < bytes {
        match file.preallocate(0, bytes).await {
            // It may never have to grow: what is there is enough for smaller batches.
            Err(err) if err.is_full() => {}
            grown => grown?,
        }
        file.sync_data().await?;
    }
    if let Some(dir) = paths.double_write.parent() {
        vfs.sync_dir(dir).await?;
    }
    Ok(file)
}

/// Files that a crash left between two steps of a checkpoint, and names of temporary files: those that bear such a name, and no others.
async fn remove_leftovers(vfs: &Arc<dyn Vfs>, paths: &Paths, checkpoint: u64) -> Result<(), StorageError> {
    let current = super::saved::path(&paths.checkpoint, checkpoint);
    for entry in vfs.list(&paths.checkpoint).await? {
        let path = paths.checkpoint.join(&entry.name);
        let own = is_databases("checkpoint", &entry.name) || entry.name == super::saved::UNFINISHED;
        if own && (checkpoint == 0 || path != current) {
            vfs.remove(&path).await?;
        }
    }
    temp_files::remove_leftovers(vfs, &paths.dir).await
}

fn reader(known: &Known<'_>, control: &Control, start: Lsn) -> LogReader {
    let epoch_floor = (control.epoch_start, control.epoch);
    LogReader::new(known.vfs.clone(), known.dir, known.layout, known.database, start, epoch_floor)
}

async fn analyse(
    known: &Known<'_>,
    control: &Control,
    saved: Saved,
    report: &mut RecoveryReport,
    progress: &Progress,
) -> Result<(Findings, End), StorageError> {
    let mut analysis = Analysis::new(saved);
    progress.begin(Phase::Analysis, control.scan, known.durable);
    let mut reader = reader(known, control, control.scan);
    let end = loop {
        let (start, record) = match reader.next().await? {
            Ok((range, bytes)) => {
                progress.reached(range.end);
                (range.start, format::decode(bytes, range.start, "", 0))
            }
            Err(end) => break *end,
        };
        let place = || reader_place(known, start);
        let record = record.map_err(|damage| {
            let (file, offset) = place();
            Corruption { file, offset: Some(offset), ..damage }
        })?;
        analysis.take(&record, place)?;
    };
    check_end(known, &end).await?;
    report.records = analysis.records;
    report.log_bytes = end.lsn.0 - control.scan.0;
    Ok((analysis.finish(&known.dir.display().to_string())?, end))
}

fn reader_place(known: &Known<'_>, lsn: Lsn) -> (String, u64) {
    place_in(known.dir, known.layout, lsn)
}

fn place_in(dir: &Path, layout: Layout, lsn: Lsn) -> (String, u64) {
    (dir.join(Layout::file_name(layout.number(lsn))).display().to_string(), layout.offset(lsn))
}

async fn redo(
    known: &Known<'_>,
    control: &Control,
    end: Lsn,
    pool: &Arc<Pool>,
    report: &mut RecoveryReport,
    options: &StoreOptions,
) -> Result<(), StorageError> {
    let progress = &options.progress;
    progress.begin(Phase::Redo, control.redo, end);
    let (dir, layout) = (known.dir.to_path_buf(), known.layout);
    let place: Place = Arc::new(move |lsn| place_in(&dir, layout, lsn));
    let mut pass = RedoPass::new(pool.clone(), options.redo_threads, BATCH_BYTES, place);
    let mut reader = reader(known, control, control.redo);
    let mut reached = control.redo;
    while reached < end {
        match reader.next().await? {
            Ok((range, bytes)) => {
                // REC-12: analysis has read up to `end`, so there is a record that ends there.
                pass.take(range, bytes).await?;
                reached = range.end;
                progress.reached(reached);
            }
            Err(stopped) => return Err(stopped.damage.into()),
        }
    }
    pass.finish().await?;
    if reached != end {
        let (file, offset) = reader_place(known, end);
        let (expected, found) = ("the end of a record".to_owned(), format!("a record that ends at {reached}"));
        return Err(Corruption { file, offset: Some(offset), page: None, lsn: Some(end), expected, found }.into());
    }
    (report.ops_seen, report.ops_applied) = (pass.seen, pass.applied);
    progress.begin(Phase::Loading, end, end);
    Ok(())
}

async fn start_log(
    vfs: &Arc<dyn Vfs>,
    options: &StoreOptions,
    paths: &Paths,
    control: &Control,
    end: Lsn,
    head: Vec<u8>,
) -> Result<Arc<Wal>, StorageError> {
    let layout = Layout { segment_bytes: control.segment_bytes };
    let segments = Segments::new(vfs.clone(), &paths.wal, layout, control.database);
    let needed = layout.number(control.scan);
    // ARC-1
    let first = if options.archive_bytes.is_some() { segments.oldest_kept(needed).await? } else { needed };
    let mut prepared = segments.adopt(first).await?;
    // Prepared segments may have been lost in the crash; the log needs the segment in which it continues.
    while prepared <= layout.number(end) {
        segments.prepare(prepared, 1).await?;
        prepared += 1;
    }
    let wal_options = WalOptions { segment_bytes: control.segment_bytes, ..options.wal.clone() };
    let mark = DurableMark::start(vfs, &paths.dir, control.database, end).await?;
    let start = StartAt { end, head, epoch: control.epoch, mark };
    Ok(Arc::new(Wal::start(wal_options, segments, start, prepared, control.scan)))
}

/// Sets aside the log space and the pages that undoing the losers takes (WAL-7, WAL-20).
async fn reserve_for_undo(wal: &Arc<Wal>, losers: &mut [Loser]) -> Result<(), StorageError> {
    for loser in losers {
        let bytes = loser.entries.iter().map(|entry| undo_estimate(wal, entry)).sum();
        wal.set_aside_for_loser(&mut loser.log, bytes);
        let rows = loser.entries.iter().filter_map(|entry| match &entry.before {
            BeforeImage::Row { value, .. } => Some((entry.key.len() + value.len()) as u64 + 64),
            BeforeImage::Absent => None,
        });
        let (rows, bytes) = rows.fold((0, 0), |(rows, all), bytes| (rows + 1, all + bytes));
        wal.undo_room().claim_for_loser(&mut loser.log, rows, bytes);
    }
    wal.prepare_for_undo().await
}

/// An estimate of the log space that undoing an entry takes. If it is too low, the rest comes out of the floor (WAL-7).
fn undo_estimate(wal: &Arc<Wal>, entry: &UndoEntry) -> usize {
    let before = match &entry.before {
        BeforeImage::Absent => 0,
        BeforeImage::Row { value, .. } => value.len(),
    };
    match entry.tree == btree::CHAIN_PAGES {
        // Its key is a list of page numbers of four bytes; each page costs two operations.
        true => 256 + entry.key.len() / 4 * 64,
        false => btree::undo_bytes(&**wal, entry.key.len(), before),
    }
}
