//! Verifies a repository: every object has the bytes that were written, and every backup and history has what its restore needs.

use crate::epochs;
use crate::error::{BackupError, Result};
use crate::manifest::Manifest;
use crate::names;
use crate::object::{Kind, unpack};
use crate::pieces::{Joined, log_of};
use crate::plan::Contents;
use crate::restore;
use crate::take;
use crate::target::Target;
use clearway_storage::backup::{Stream, page_of};
use clearway_storage::buffer::PAGE_BYTES;
use clearway_storage::ids::Lsn;
use clearway_storage::seams::BoxFuture;

/// What was looked at.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// Backups.
    pub backups: usize,
    /// Objects, those of the archive included.
    pub objects: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Pages whose checksums hold.
    pub pages: u64,
    /// Records of the log whose checksums hold.
    pub records: u64,
    /// For each history, where the archive ends.
    pub archives: Vec<(u32, Lsn)>,
    /// What is wrong.
    pub damage: Vec<BackupError>,
}

impl Verified {
    fn note<T>(&mut self, done: Result<T>) -> Option<T> {
        match done {
            Ok(value) => Some(value),
            Err(error) => {
                self.damage.push(error);
                None
            }
        }
    }
}

/// Verifies everything; damage is collected.
///
/// # Errors
/// The repository can't be listed, or a manifest can't be read.
pub fn verify(target: &dyn Target) -> BoxFuture<'_, Result<Verified>> {
    Box::pin(verify_all(target))
}

async fn verify_all(target: &dyn Target) -> Result<Verified> {
    let contents = Contents::read(target).await?;
    let mut verified = Verified::default();
    let anything = !contents.backups.is_empty() || !contents.log.is_empty();
    let owner = if anything { verified.note(take::owner(target).await) } else { None };
    for manifest in &contents.backups {
        verified.backups += 1;
        if owner.is_some_and(|owner| owner != manifest.database) {
            let expected = format!("the database of the repository, {:016x}", owner.unwrap_or_default());
            let found = format!("{:016x}", manifest.database);
            verified.damage.push(BackupError::damaged(&names::manifest(&manifest.id), expected, found));
        }
        let chain = contents.chain(manifest);
        verified.note(chain);
        backup(target, manifest, &mut verified).await;
    }
    let database = owner.or(contents.backups.last().map(|manifest| manifest.database));
    for object in &contents.log {
        let read = async {
            let bytes = target.get(&object.name).await?;
            let database = database.unwrap_or(unpack(&object.name, Kind::Log, &bytes)?.0.database);
            log_of(&object.name, &bytes, database)
        };
        let read = read.await;
        verified.note(read);
        (verified.objects, verified.bytes) = (verified.objects + 1, verified.bytes + object.bytes);
    }
    archive(target, &contents, &mut verified).await;
    Ok(verified)
}

/// Objects, pages and log of one backup.
async fn backup(target: &dyn Target, manifest: &Manifest, verified: &mut Verified) {
    let start = restore::start_of(target, manifest).await;
    verified.note(start);
    for listed in &manifest.parts {
        let read = async {
            let object = restore::part(target, listed).await?;
            match listed.name.contains("/pages/") {
                true => pages(&listed.name, &object),
                false => Ok(0),
            }
        };
        let read = read.await;
        verified.pages += verified.note(read).unwrap_or(0);
        (verified.objects, verified.bytes) = (verified.objects + 1, verified.bytes + listed.bytes);
    }
    let log = Joined::new(target, manifest.database, crate::pieces::of_backup(manifest), manifest.scan);
    let read = records(log, manifest.scan, &manifest.id).await;
    if let Some((records, end)) = verified.note(read) {
        verified.records += records;
        if end < manifest.end {
            let expected = format!("log up to LSN {}", manifest.end);
            verified.damage.push(BackupError::damaged(&manifest.id, expected, format!("records up to {end}")));
        }
    }
}

fn pages(name: &str, object: &[u8]) -> Result<u64> {
    let (header, pages) = unpack(name, Kind::Pages, object)?;
    let mut below = header.from;
    for page in pages.chunks(PAGE_BYTES) {
        let number =
            u64::from(page_of(page).map_err(|damage| BackupError::damaged(name, "whole pages", damage.to_string()))?.0);
        if number < below || number >= header.to {
            let expected = format!("rising pages from {} to {}", header.from, header.to);
            return Err(BackupError::damaged(name, expected, format!("page {number}")));
        }
        below = number + 1;
    }
    Ok((pages.len() / PAGE_BYTES) as u64)
}

/// Reads log to its end: how many records, and where they end.
async fn records(mut log: Joined<'_>, start: Lsn, name: &str) -> Result<(u64, Lsn)> {
    let mut stream = Stream::new(start, name);
    let mut count = 0;
    loop {
        while stream.step()?.is_some() {
            count += 1;
        }
        match log.next().await? {
            Some(bytes) => stream.push(&bytes),
            None => break,
        }
    }
    match log.hole() {
        Some(next) => {
            let found = format!("none from LSN {} to {next}", log.position());
            Err(BackupError::damaged(name, "log without a hole", found))
        }
        None => Ok((count, stream.position())),
    }
}

/// Whether another history holds all log of an epoch: then that one's check reads it.
fn is_within_another(contents: &Contents, epoch: u32) -> bool {
    let of_it = contents.log.iter().filter(|object| names::epoch_of(&object.name) == Some(epoch));
    let end = of_it.filter_map(|object| names::range(&object.name)).map(|(_, to)| to).max().unwrap_or(Lsn::ZERO);
    contents.epochs.iter().filter(|other| other.epoch != epoch).any(|other| {
        let history = epochs::timeline(&contents.epochs, other.epoch);
        history.stretches.iter().any(|stretch| stretch.epoch == epoch && stretch.to >= end)
    })
}

/// The archived log of each history, from the oldest backup of it on: without a hole, every record whole. A history that a restore
/// left before its end is one of its own.
async fn archive(target: &dyn Target, contents: &Contents, verified: &mut Verified) {
    for epoch in contents.epochs.iter().filter(|epoch| !is_within_another(contents, epoch.epoch)) {
        let history = epochs::timeline(&contents.epochs, epoch.epoch);
        let first = contents.backups.iter().find(|manifest| history.covers(manifest.epoch, manifest.end));
        let Some(first) = first else { continue };
        let log = Joined::new(target, first.database, contents.pieces(first, &history), first.scan);
        let read = records(log, first.scan, &names::epoch(epoch.epoch)).await;
        if let Some((records, end)) = verified.note(read) {
            verified.records += records;
            verified.archives.push((epoch.epoch, end));
        }
    }
}
