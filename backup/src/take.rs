//! Takes a backup from a source into a target.
//!
//! # Life of a backup
//! begin -> check that the repository is the database's -> find the parent of an incremental backup, or the interrupted backup (`resume`) ->
//! copy pages, file by file -> end -> copy the log -> put the manifest (BKP-1) -> leave.
//!
//! # Crash safety
//! An interrupted backup has no manifest and does not count. It can be resumed, and `expire` removes it later. The source's lease for it
//! expires.

use crate::clock;
use crate::epochs;
use crate::error::{BackupError, Result};
use crate::expire;
use crate::manifest::{Manifest, Part};
use crate::names;
use crate::object::{Header, Kind, pack, sum};
use crate::resume::{self, Begun, Kept};
use crate::source::Source;
use crate::target::{Listed, Target, find};
use clearway_base::sync::sleep;
use clearway_base::waits::{Object, WaitEvent, in_wait, now_ns, wall_us};
use clearway_storage::backup::{PAGES_MAX, Start};
use clearway_storage::buffer::PAGE_BYTES;
use clearway_storage::ids::{Lsn, PageId};
use clearway_storage::seams::BoxFuture;
use std::time::Duration;

/// Pages that one object is made from, at most; divides the greatest file.
const OBJECT_PAGES: u32 = 4096;
/// Pages of one request.
const REQUEST_PAGES: u32 = 128;
/// Log that one object is made from, at most, in bytes.
const OBJECT_LOG_BYTES: u64 = 16 << 20;
/// One pause, at most: a request that took minutes is not followed by a pause of an hour.
const PAUSE_NS_MAX: u64 = 2_000_000_000;
const _: () = assert!(REQUEST_PAGES <= PAGES_MAX && OBJECT_PAGES % REQUEST_PAGES == 0);

/// How a backup is taken.
#[derive(Clone, Debug, Default)]
pub struct TakeOptions {
    /// Only pages that changed since the last backup.
    pub incremental: bool,
    /// Go on with the newest backup that was broken off, of whatever kind.
    pub resume: bool,
    /// The most that is asked of the source in a second, in bytes; 0: no limit.
    pub rate_bytes_per_s: u64,
    /// The most of the time in which it works rather than pauses, in percent; 0: no limit. Where the source and the target are busy, each request
    /// takes longer, and so do the pauses: the backup gives way.
    pub share_percent: u32,
    /// The program that takes it.
    pub version: String,
}

/// How far it has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that were looked at.
    pub done_bytes: u64,
    /// Bytes that there are, as far as is known.
    pub all_bytes: u64,
    /// Bytes that were put into the target.
    pub put_bytes: u64,
}

/// Spreads requests over time.
struct Pace {
    bytes_per_s: u64,
    share_percent: u32,
    began_ns: u64,
    bytes: u64,
    /// When it began to work after the last pause.
    resumed_ns: u64,
}

impl Pace {
    fn new(options: &TakeOptions) -> Pace {
        let (bytes_per_s, share_percent, began_ns) = (options.rate_bytes_per_s, options.share_percent, now_ns());
        Pace { bytes_per_s, share_percent, began_ns, bytes: 0, resumed_ns: began_ns }
    }

    /// After so many bytes more were asked of the source, or something was put into the target.
    async fn after(&mut self, bytes: u64) {
        self.bytes += bytes;
        let now = now_ns();
        let due_ns = match self.bytes_per_s {
            0 => 0,
            rate => self.began_ns + (u128::from(self.bytes) * 1_000_000_000 / u128::from(rate)) as u64,
        };
        let worked_ns = now.saturating_sub(self.resumed_ns);
        let rest_ns = match self.share_percent {
            0 => 0,
            share => (worked_ns * u64::from(100u32.saturating_sub(share)) / u64::from(share)).min(PAUSE_NS_MAX),
        };
        let pause_ns = due_ns.saturating_sub(now).max(rest_ns);
        if pause_ns > 0 {
            in_wait(WaitEvent::BaseBackupThrottle, Object::NONE, sleep(Duration::from_nanos(pause_ns))).await;
        }
        self.resumed_ns = now_ns();
    }
}

/// What earlier beginnings of a resumed backup put.
struct Earlier {
    /// The `redo` of the first one (RSM-1).
    redo: Lsn,
    objects: Vec<Listed>,
}

/// A backup that is being taken.
struct Taking<'a> {
    source: &'a mut dyn Source,
    target: &'a dyn Target,
    manifest: Manifest,
    start: Start,
    /// What it puts has these names.
    named: names::Beginning,
    /// What earlier beginnings put, if it is resumed.
    earlier: Option<Earlier>,
    pace: Pace,
    progress: Progress,
    tell: &'a mut (dyn FnMut(Progress) + Send),
}

/// Takes a backup; `tell` hears how far it has come.
///
/// # Errors
/// The source's, among them a damaged page by name; the target's; a repository of another database.
pub fn take<'a>(
    source: &'a mut dyn Source,
    target: &'a dyn Target,
    options: &'a TakeOptions,
    tell: &'a mut (dyn FnMut(Progress) + Send),
) -> BoxFuture<'a, Result<Manifest>> {
    Box::pin(begin_and_fill(source, target, options, tell))
}

async fn begin_and_fill(
    source: &mut dyn Source,
    target: &dyn Target,
    options: &TakeOptions,
    tell: &mut (dyn FnMut(Progress) + Send),
) -> Result<Manifest> {
    let begun_us = wall_us();
    let resumed = match options.resume {
        true => Some(resume::unfinished(target).await?),
        false => None,
    };
    if let Some(begun) = &resumed {
        resume::fence(source, target, &begun.id).await?;
    }
    let start = match source.begin().await {
        Ok(start) => start,
        Err(error) => {
            target.abandon().await;
            return Err(error);
        }
    };
    let lease = start.lease;
    let taken = take_from(source, target, options, start, (begun_us, resumed), tell).await;
    // Also after an error: the lease would end by itself, later.
    let left = source.leave(lease).await;
    if taken.is_err() {
        target.abandon().await;
    }
    let manifest = taken?;
    left?;
    Ok(manifest)
}

async fn take_from(
    source: &mut dyn Source,
    target: &dyn Target,
    options: &TakeOptions,
    start: Start,
    (begun_us, resumed): (i64, Option<Begun>),
    tell: &mut (dyn FnMut(Progress) + Send),
) -> Result<Manifest> {
    let control = start.control;
    belongs(target, control.database).await?;
    let (begun, earlier) = match resumed {
        Some(begun) => {
            resume::fits(&begun, &start)?;
            let objects = target.list(&names::backup(&begun.id)).await?;
            let redo = begun.redo;
            (begun, Some(Earlier { redo, objects }))
        }
        None => (begin(target, options, &start, begun_us).await?, None),
    };
    let manifest = Manifest {
        id: begun.id.clone(),
        version: options.version.clone(),
        database: control.database,
        epoch: control.epoch,
        epoch_start: control.epoch_start,
        since: begun.since,
        parent: begun.parent.clone(),
        scan: start.scan(),
        redo: start.redo(),
        begun_us: begun.begun_us,
        ..Manifest::default()
    };
    let all_bytes = start.files.iter().map(|pages| u64::from(*pages) * PAGE_BYTES as u64).sum();
    let pace = Pace::new(options);
    let progress = Progress { all_bytes, ..Progress::default() };
    let named = names::Beginning { id: begun.id.clone(), resumed: earlier.is_some().then_some(start.lease) };
    let mut taking = Taking { source, target, manifest, start, named, earlier, pace, progress, tell };
    taking.note(names::begun(&begun.id), begun.encode().as_bytes());
    taking.put(taking.named.start(), taking.start.encode()).await?;
    for (number, pages) in taking.start.files.clone().into_iter().enumerate() {
        taking.file(number as u32, pages).await?;
    }
    let (end, ended_us) = taking.source.end(taking.start.lease).await?;
    (taking.manifest.end, taking.manifest.ended_us) = (end, ended_us);
    taking.log(end).await?;
    taking.finish().await
}

/// What is to be taken, under an id that no other backup has; puts `begun` (RSM-3).
async fn begin(target: &dyn Target, options: &TakeOptions, start: &Start, begun_us: i64) -> Result<Begun> {
    let parent = match options.incremental {
        true => Some(parent(target, start).await?),
        false => None,
    };
    let control = &start.control;
    let mut begun = Begun {
        database: control.database,
        epoch: control.epoch,
        epoch_start: control.epoch_start,
        redo: start.redo(),
        since: parent.as_ref().map_or(Lsn::ZERO, |parent| parent.redo),
        parent: parent.map_or_else(String::new, |parent| parent.id),
        begun_us,
        ..Begun::default()
    };
    let kind = if options.incremental { "incremental" } else { "full" };
    let base = format!("{}-{kind}", clock::stamp(begun_us));
    let mut number = 1;
    loop {
        begun.id = if number == 1 { base.clone() } else { format!("{base}-{number}") };
        number += 1;
        if !target.list(&names::backup(&begun.id)).await?.is_empty() {
            continue;
        }
        match target.put_new(&names::begun(&begun.id), begun.encode().as_bytes()).await {
            // Another backup began in the same second, and was faster.
            Err(BackupError::Exists(_)) => {}
            put => return put.map(|()| begun),
        }
    }
}

impl Taking<'_> {
    async fn put(&mut self, name: String, bytes: Vec<u8>) -> Result<()> {
        self.target.put(&name, &bytes).await?;
        self.pace.after(0).await;
        self.progress.put_bytes += bytes.len() as u64;
        self.note(name, &bytes);
        Ok(())
    }

    /// The backup consists of this object, too.
    fn note(&mut self, name: String, bytes: &[u8]) {
        self.manifest.parts.push(Part { name, bytes: bytes.len() as u64, sum: sum(bytes) });
        (self.tell)(self.progress);
    }

    /// Puts the manifest, behind all else (BKP-1). An earlier beginning that still ran may have been faster: then that one's backup is it.
    async fn finish(self) -> Result<Manifest> {
        let name = names::manifest(&self.manifest.id);
        let put = self.target.put_new(&name, self.manifest.encode().as_bytes()).await;
        let manifest = match put {
            Err(BackupError::Exists(_)) if self.earlier.is_some() => {
                Manifest::decode(&name, &self.target.get(&name).await?)?
            }
            put => put.map(|()| self.manifest)?,
        };
        if self.earlier.is_some() {
            remove_others(self.target, &manifest).await?;
        }
        self.target.finish().await?;
        Ok(manifest)
    }

    fn header(&self, kind: Kind, from: u64, to: u64) -> Header {
        let Manifest { database, epoch, .. } = self.manifest;
        Header { kind, database, epoch, from, to, wall_us: wall_us() }
    }

    /// The pages of a data file, object by object.
    async fn file(&mut self, number: u32, pages: u32) -> Result<()> {
        let base = number * self.start.control.pages_per_file;
        let mut at = 0;
        while at < pages {
            let end = (at + OBJECT_PAGES).min(pages);
            self.object(base + at, base + end).await?;
            at = end;
        }
        Ok(())
    }

    /// The pages from `first` to before `end`, as one object.
    async fn object(&mut self, first: u32, end: u32) -> Result<()> {
        let (kept, since) = match &self.earlier {
            Some(earlier) => {
                let named = names::Beginning { resumed: None, ..self.named.clone() }.pages(first, end);
                let kept = Kept::find(self.target, &earlier.objects, &named, self.manifest.database).await?;
                let since = if kept.is_some() { earlier.redo } else { self.manifest.since };
                (kept, since)
            }
            None => (None, self.manifest.since),
        };
        let mut bytes = Vec::new();
        for at in (first..end).step_by(REQUEST_PAGES as usize) {
            let count = REQUEST_PAGES.min(end - at);
            bytes.extend(self.source.pages(self.start.lease, PageId(at), count, since).await?);
            let looked = u64::from(count) * PAGE_BYTES as u64;
            self.progress.done_bytes += looked;
            (self.tell)(self.progress);
            self.pace.after(looked).await;
        }
        let bytes = match kept {
            Some(kept) if bytes.is_empty() => {
                self.manifest.pages += kept.pages();
                self.note(kept.name, &kept.object);
                return Ok(());
            }
            Some(kept) => kept.with(&bytes)?,
            None if bytes.is_empty() => return Ok(()),
            None => bytes,
        };
        self.manifest.pages += (bytes.len() / PAGE_BYTES) as u64;
        let header = self.header(Kind::Pages, u64::from(first), u64::from(end));
        self.put(self.named.pages(first, end), pack(header, &bytes)?).await
    }

    /// The log that recovery of the copy needs.
    async fn log(&mut self, end: Lsn) -> Result<()> {
        let mut at = self.start.scan();
        self.progress.all_bytes += end.0 - at.0;
        while at < end {
            let to = Lsn(at.0 + OBJECT_LOG_BYTES).min(end);
            let mut bytes = Vec::new();
            while at.0 + (bytes.len() as u64) < to.0 {
                let from = Lsn(at.0 + bytes.len() as u64);
                let piece = self.source.log(self.start.lease, from, to).await?;
                if piece.is_empty() {
                    return Err(BackupError::Source(format!("no log came at LSN {from}")));
                }
                self.progress.done_bytes += piece.len() as u64;
                (self.tell)(self.progress);
                self.pace.after(piece.len() as u64).await;
                bytes.extend(piece);
            }
            let header = self.header(Kind::Log, at.0, to.0);
            self.put(self.named.log(at, to), pack(header, &bytes)?).await?;
            at = to;
        }
        Ok(())
    }
}

/// Removes what the takings of a backup put and its manifest does not name.
async fn remove_others(target: &dyn Target, manifest: &Manifest) -> Result<()> {
    let whole = names::manifest(&manifest.id);
    for object in target.list(&names::backup(&manifest.id)).await? {
        if object.name != whole && !manifest.parts.iter().any(|part| part.name == object.name) {
            target.remove(&object.name).await?;
        }
    }
    Ok(())
}

fn owner_text(database: u64) -> Vec<u8> {
    format!("clearway repository 1\ndatabase {database:016x}\n").into_bytes()
}

/// Makes the repository the database's, or finds that it is.
///
/// # Errors
/// It is another database's.
pub async fn belongs(target: &dyn Target, database: u64) -> Result<()> {
    let text = owner_text(database);
    let found = match find(target, names::REPOSITORY).await? {
        Some(found) => found,
        None => match target.put_new(names::REPOSITORY, &text).await {
            Ok(()) => return Ok(()),
            Err(BackupError::Exists(_)) => target.get(names::REPOSITORY).await?,
            Err(error) => return Err(error),
        },
    };
    if found == text {
        return Ok(());
    }
    let what = format!("{} holds backups of another database, or of a newer format", target.place());
    Err(BackupError::Refused(what))
}

/// Refuses a place where nothing was ever put: a name that was mistyped is not taken for a repository without backups.
///
/// # Errors
/// Nothing is there; the target's.
pub async fn known(target: &dyn Target) -> Result<()> {
    let there = find(target, names::REPOSITORY).await?.is_some()
        || !target.list(names::BACKUPS).await?.is_empty()
        || !target.list(names::LOG).await?.is_empty();
    let nothing = || BackupError::Refused(format!("{} holds no backups and no archive", target.place()));
    there.then_some(()).ok_or_else(nothing)
}

/// The number of the database whose repository it is.
///
/// # Errors
/// The object is missing or damaged; the target's.
pub async fn owner(target: &dyn Target) -> Result<u64> {
    let found = target.get(names::REPOSITORY).await?;
    let text = std::str::from_utf8(&found).ok();
    let number = text.and_then(|text| text.strip_prefix("clearway repository 1\ndatabase ")?.strip_suffix('\n'));
    // Exactly as it was written: a letter that became a capital is damage, too.
    let number = number.and_then(|hex| u64::from_str_radix(hex, 16).ok()).filter(|number| found == owner_text(*number));
    let expected = "the number of a database, of format version 1";
    number.ok_or_else(|| BackupError::damaged(names::REPOSITORY, expected, String::from_utf8_lossy(&found)))
}

/// The newest backup of the same history: the parent of an incremental backup. Only within one history does an LSN of a page always mean the
/// same change.
async fn parent(target: &dyn Target, start: &Start) -> Result<Manifest> {
    let control = start.control;
    let history = epochs::timeline(&epochs::all(target).await?, control.epoch);
    let fits = |manifest: &Manifest| {
        let same = (manifest.epoch, manifest.epoch_start) == (control.epoch, control.epoch_start);
        let before = manifest.epoch < control.epoch && history.covers(manifest.epoch, manifest.end);
        (same || before) && manifest.redo <= start.redo()
    };
    let newest = expire::manifests(target).await?.into_iter().filter(fits).max_by_key(|manifest| manifest.end);
    newest.ok_or_else(|| {
        let what =
            "holds no backup of this history of the database that an incremental one could rest on: take a full one";
        BackupError::Refused(format!("{} {what}", target.place()))
    })
}
