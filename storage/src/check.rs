//! Checks a database that no process has open for damage, without changing it.
//!
//! # Life of a check
//! ```text
//!   as it lies     control file, both copies; checkpoint; every record of the log; of a closed database every page
//!   recovered      on an overlay in memory, if it was not closed: what the next opening would make of it, losers undone
//!   compared       every tree; allocated pages against those that trees, chains and space refer to; every page
//! ```
//! A crashed database is checked as recovery would leave it: that is what a user wants to know before opening it. What
//! recovery changes takes memory, as much as the pages that it writes.
//!
//! # Invariants
//! - CHK-1: nothing is written but the lock file: all changes go to an [`Overlay`].
//! - CHK-2: an allocated page belongs to one owner, and an owner's pages are allocated.
//!
//! # Errors
//! Damage is collected in the report, with file, page, LSN, what was expected and what was found. An error means that the check itself
//! could not go on.

use crate::buffer::{PAGE_BYTES, not_ahead, verify};
use crate::error::{Corruption, StorageError};
use crate::ids::{Lsn, PageId, Tag, TreeId};
use crate::recovery::Recovered;
use crate::recovery::control::{Control, ControlFile};
use crate::seams::{BoxFuture, PageSpace, Versions};
use crate::store::{Store, StoreOptions};
use crate::undo;
use crate::wal::format;
use crate::wal::mark;
use crate::wal::reader::LogReader;
use crate::wal::repair::{Known, check_end};
use crate::wal::segments::Layout;
use clearway_base::vfs::{IoBuf, Overlay, Vfs};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;

/// What a check saw.
#[derive(Debug, Default)]
pub struct Checked {
    /// The database had been closed properly; else it was recovered, in memory.
    pub closed: bool,
    /// Records of the log that were read.
    pub records: u64,
    /// Where the log ends.
    pub log_end: Lsn,
    /// Transactions that the next opening has to undo.
    pub losers: usize,
    /// Trees, with rows and pages.
    pub trees: Vec<(TreeId, u64, usize)>,
    /// Pages that are allocated.
    pub pages: usize,
    /// What is wrong; nothing if all is well.
    pub damage: Vec<Corruption>,
}

impl Checked {
    /// Notes damage; other errors go on.
    fn note(&mut self, err: StorageError) -> Result<(), StorageError> {
        match err {
            StorageError::Corruption(damage) => {
                // A tree meets a page that the pass over all pages has told of already.
                let again = |known: &Corruption| known.page.is_some() && known.page == damage.page;
                if !self.damage.iter().any(again) {
                    self.damage.push((*damage).clone());
                }
                Ok(())
            }
            err => Err(err),
        }
    }
}

/// No transaction layer is above: every tag that is left is settled, but those of losers before they are undone.
#[derive(Default)]
struct AtRest {
    losers: OnceLock<BTreeSet<Tag>>,
}

impl Versions for AtRest {
    fn is_settled(&self, tag: Tag) -> bool {
        self.losers.get().is_some_and(|losers| !losers.contains(&tag))
    }

    fn horizon(&self) -> Lsn {
        Lsn(u64::MAX)
    }
}

/// Checks the database in `dir`; gives the overlay, too, on which it is closed and sound if no damage was found.
///
/// # Errors
/// There is no database, another process has it open, a newer format, a failed read.
pub async fn check(
    base: Arc<dyn Vfs>,
    dir: &Path,
    options: &StoreOptions,
) -> Result<(Checked, Arc<dyn Vfs>), StorageError> {
    let vfs: Arc<dyn Vfs> = Arc::new(Overlay::new(base)); // CHK-1
    let mut checked = Checked::default();
    let control = match ControlFile::open(&vfs, dir).await {
        Ok(Some((_, control))) => control,
        Ok(None) => return Err(StorageError::Invalid(format!("there is no database in {}", dir.display()).into())),
        Err(err) => {
            checked.note(err)?;
            return Ok((checked, vfs));
        }
    };
    checked.closed = control.clean;
    if control.clean {
        // After a crash one copy may be older, or torn.
        ControlFile::both_agree(&vfs, dir).await.or_else(|err| checked.note(err))?;
    }
    let log = check_log(&vfs, dir, &control, &mut checked).await;
    log.or_else(|err| checked.note(err))?;
    let options = StoreOptions { create: false, ..options.clone() };
    let versions = Arc::new(AtRest::default());
    match Store::open(vfs.clone(), dir, options, versions.clone()).await {
        Err(err) => checked.note(err)?,
        Ok((store, recovered)) => {
            let background = store.background().into_iter().map(|(_, task)| task).collect();
            let looked = beside(background, examine(&store, &versions, recovered, &mut checked)).await;
            looked.or_else(|err| checked.note(err))?;
        }
    }
    Ok((checked, vfs))
}

/// Every record that recovery would read, and whether the log ends where it may.
async fn check_log(
    vfs: &Arc<dyn Vfs>,
    dir: &Path,
    control: &Control,
    checked: &mut Checked,
) -> Result<(), StorageError> {
    let durable = control.durable.max(mark::read(vfs, dir, control.database).await?);
    let (dir, layout) = (dir.join("wal"), Layout { segment_bytes: control.segment_bytes });
    let floor = (control.epoch_start, control.epoch);
    let mut reader = LogReader::new(vfs.clone(), &dir, layout, control.database, control.scan, floor);
    let end = loop {
        match reader.next().await? {
            Err(end) => break *end,
            Ok((range, bytes)) => {
                let file = dir.join(Layout::file_name(layout.number(range.start)));
                format::decode(bytes, range.start, &file.display().to_string(), layout.offset(range.start))?;
                checked.records += 1;
            }
        }
    };
    checked.log_end = end.lsn;
    let known = Known { vfs, dir: &dir, layout, database: control.database, durable };
    check_end(&known, &end).await
}

/// Undoes what has to be, frees what is to be freed, and compares.
async fn examine(
    store: &Arc<Store>,
    versions: &AtRest,
    recovered: Recovered,
    checked: &mut Checked,
) -> Result<(), StorageError> {
    checked.losers = recovered.losers.len();
    let tags = recovered.losers.iter().flat_map(|loser| loser.entries.iter().map(|entry| entry.tag)).collect();
    versions.losers.get_or_init(|| tags);
    if checked.closed {
        check_pages(store, checked).await?;
    }
    for mut loser in recovered.losers {
        undo::undo_all(store, &mut loser).await?;
    }
    while store.drop_step().await? {}
    {
        // The tidier would merge and pack leaves under the check, which is meant for trees at rest.
        let _at_rest = store.trees_at_rest().await;
        check_trees(store, checked).await?;
    }
    store.close().await?;
    if !checked.closed {
        check_pages(store, checked).await?;
    }
    Ok(())
}

/// Every tree, and CHK-2.
async fn check_trees(store: &Arc<Store>, checked: &mut Checked) -> Result<(), StorageError> {
    let mut owners: BTreeMap<PageId, String> =
        store.space().own_pages().into_iter().map(|page| (page, "space".to_owned())).collect();
    let mut sound = true;
    for entry in store.space().trees() {
        match store.tree(entry.tree).check().await {
            Err(err) => {
                sound = false;
                checked.note(err)?;
            }
            Ok(report) => {
                checked.trees.push((entry.tree, report.rows, report.pages.len()));
                for page in report.pages {
                    if let Some(other) = owners.insert(page, format!("tree {}", entry.tree)) {
                        let found = format!("a page of tree {} too", entry.tree);
                        checked.damage.push(in_space(store, page, format!("a page of {other} alone"), found));
                    }
                }
            }
        }
    }
    let allocated: BTreeSet<PageId> = store.space().allocated().into_iter().collect();
    checked.pages = allocated.len();
    for page in owners.keys().filter(|page| !allocated.contains(page)) {
        let expected = format!("an allocated page, since {} refers to it", owners[page]);
        checked.damage.push(in_space(store, *page, expected, "a free one".into()));
    }
    // What a tree that can't be walked refers to is not known.
    for page in allocated.iter().filter(|page| sound && !owners.contains_key(page)) {
        let found = "an allocated one: it is lost".into();
        checked.damage.push(in_space(store, *page, "a free page, since nothing refers to it".into(), found));
    }
    Ok(())
}

fn in_space(store: &Arc<Store>, page: PageId, expected: String, found: String) -> Corruption {
    Corruption::in_page(page, Lsn::ZERO, expected, found).in_file(store.space().file_name(page))
}

/// Every allocated page as it lies in its file: whole, itself, and not ahead of the log.
async fn check_pages(store: &Arc<Store>, checked: &mut Checked) -> Result<(), StorageError> {
    let end = store.wal().end_lsn();
    for page in store.space().allocated() {
        let (file, offset) = store.space().locate(page)?;
        let read = file.read_at(offset, IoBuf::with_capacity(PAGE_BYTES), PAGE_BYTES).await?;
        if let Err(damage) = verify(page, &read).and_then(|bytes| not_ahead(page, bytes, end)) {
            let damage = damage.in_file(store.space().file_name(page));
            checked.note(Corruption { offset: Some(offset), ..damage }.into())?;
        }
    }
    Ok(())
}

/// Runs `main` and, beside it, the background loops, in whatever task polls this; ends with `main`.
async fn beside<T>(mut background: Vec<BoxFuture<'static, ()>>, main: impl Future<Output = T>) -> T {
    let mut main = pin!(main);
    std::future::poll_fn(|cx| {
        if let Poll::Ready(result) = main.as_mut().poll(cx) {
            return Poll::Ready(result);
        }
        background.retain_mut(|task| task.as_mut().poll(cx).is_pending());
        Poll::Pending
    })
    .await
}
