//! Resumes a backup that was interrupted: its connection was lost, or the program that took it has ended.
//!
//! # Life of a resumed backup
//! find the newest backup without a manifest -> give back its lease, so that the source refuses a taker that still uses it -> take a new lease
//! -> read and check each object of pages that the target has, and replace in it the pages that have changed since the first beginning ->
//! the rest as in `take`.
//!
//! # Invariants
//! - RSM-1: a page in an object that the target has contains every change below the `redo` of the backup's first beginning. So once every page
//!   with a later LSN has replaced its older copy, the pages contain every change below the `redo` of the new beginning. An incremental
//!   backup is applied to its parent in the same way.
//! - RSM-2: a backup is resumed only within one epoch, since the same LSN in another epoch means another change.
//! - RSM-3: `begun` is written once. A resumed backup that is interrupted again is resumed from the first beginning, too.
//! - RSM-4: a beginning replaces no object of another one: the names of what a resumed backup puts contain the number of its lease, which no
//!   other has. What no manifest names is removed only after a manifest is there. So a request that an earlier beginning sent and that
//!   arrives late, as it may in an object store, changes nothing that a manifest names; nor does an earlier beginning that still runs.

use crate::error::{BackupError, Result};
use crate::names::{self, Beginning};
use crate::object::{FORMAT_VERSION, Kind, sum, unpack};
use crate::source::Source;
use crate::target::{Listed, Target, find};
use clearway_storage::backup::{Start, page_of};
use clearway_storage::buffer::PAGE_BYTES;
use clearway_storage::ids::Lsn;
use std::collections::BTreeMap;

/// What is being taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Begun {
    /// The backup's name.
    pub id: String,
    /// The number of the database.
    pub database: u64,
    /// The epoch.
    pub epoch: u32,
    /// Where it began.
    pub epoch_start: Lsn,
    /// The `redo` of the first beginning (RSM-1).
    pub redo: Lsn,
    /// The backup that it rests on; empty: none.
    pub parent: String,
    /// It has the pages that changed after this; 0: all.
    pub since: Lsn,
    /// When it began, us since 1970.
    pub begun_us: i64,
}

impl Begun {
    /// The text.
    pub fn encode(&self) -> String {
        let Begun { id, database, epoch, epoch_start, redo, parent, since, begun_us } = self;
        let parent = if parent.is_empty() { "none" } else { parent };
        let body = format!(
            "clearway begun {FORMAT_VERSION}\nid {id}\ndatabase {database:016x}\nepoch {epoch}\nepoch_start {epoch_start}\n\
             redo {redo}\nparent {parent}\nsince {since}\nbegun_us {begun_us}\n"
        );
        format!("{body}sum {}\n", sum(body.as_bytes()))
    }

    /// Reads a text back; `name` stands in errors.
    ///
    /// # Errors
    /// Damage, a newer version.
    pub fn decode(name: &str, bytes: &[u8]) -> Result<Begun> {
        let damaged = || BackupError::damaged(name, "the beginning of a backup", String::from_utf8_lossy(bytes));
        let text = std::str::from_utf8(bytes).map_err(|_| damaged())?;
        let (body, stored) = text.trim_end_matches('\n').rsplit_once("\nsum ").ok_or_else(damaged)?;
        if sum(format!("{body}\n").as_bytes()) != stored {
            return Err(damaged());
        }
        let field = |name: &str| body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let parsed = (|| {
            (field("clearway begun")?.parse::<u32>().ok()? <= FORMAT_VERSION).then_some(())?;
            Some(Begun {
                id: field("id")?.to_owned(),
                database: u64::from_str_radix(field("database")?, 16).ok()?,
                epoch: field("epoch")?.parse().ok()?,
                epoch_start: Lsn(field("epoch_start")?.parse().ok()?),
                redo: Lsn(field("redo")?.parse().ok()?),
                parent: field("parent").filter(|parent| *parent != "none").unwrap_or_default().to_owned(),
                since: Lsn(field("since")?.parse().ok()?),
                begun_us: field("begun_us")?.parse().ok()?,
            })
        })();
        parsed.ok_or_else(damaged)
    }
}

/// The newest backup that was begun and not finished.
///
/// # Errors
/// There is none; the target's.
pub async fn unfinished(target: &dyn Target) -> Result<Begun> {
    let listed = target.list(names::BACKUPS).await?;
    let id_of = |name: &str| name.strip_prefix(names::BACKUPS)?.split('/').next().map(str::to_owned);
    let mut begun: Vec<String> = Vec::new();
    for object in listed.iter().filter(|object| object.name.ends_with("/begun")) {
        let Some(id) = id_of(&object.name) else { continue };
        if !listed.iter().any(|object| object.name == names::manifest(&id)) {
            begun.push(object.name.clone());
        }
    }
    let Some(newest) = begun.into_iter().max() else {
        return Err(BackupError::Refused(format!("{} holds no backup that was broken off", target.place())));
    };
    Begun::decode(&newest, &target.get(&newest).await?)
}

/// Has the source refuse any later step of that backup's earlier beginnings.
///
/// # Errors
/// The target's; the source's.
pub async fn fence(source: &mut dyn Source, target: &dyn Target, id: &str) -> Result<()> {
    let first = Beginning { id: id.to_owned(), resumed: None }.start();
    for object in target.list(&names::backup(id)).await? {
        if !names::of_any_beginning(&first, &object.name) {
            continue;
        }
        // One that does not read well was cut off while it was written.
        if let Ok(start) = Start::decode(&target.get(&object.name).await?) {
            source.leave(start.lease).await?;
        }
    }
    Ok(())
}

/// Whether the backup can go on from this beginning (RSM-2).
///
/// # Errors
/// It can't; says why.
pub fn fits(begun: &Begun, start: &Start) -> Result<()> {
    let control = &start.control;
    let now = (control.database, control.epoch, control.epoch_start);
    if (begun.database, begun.epoch, begun.epoch_start) == now && begun.redo <= start.redo() {
        return Ok(());
    }
    let (then, now) = (begun.epoch, control.epoch);
    let what = format!("backup {} was begun in epoch {then}, and this is epoch {now}: take a new one", begun.id);
    Err(BackupError::Refused(what))
}

/// An object of pages that is there.
pub struct Kept {
    /// Its name.
    pub name: String,
    /// Its bytes in the target.
    pub object: Vec<u8>,
    pages: BTreeMap<u32, Vec<u8>>,
}

impl Kept {
    /// The newest whole object, among the objects `listed` of a backup, whose name in the first beginning is `first`. Damaged ones are taken
    /// anew. Any of them would do (RSM-1); the newest has the fewest pages that changed since.
    ///
    /// # Errors
    /// The target's.
    pub async fn find(target: &dyn Target, listed: &[Listed], first: &str, database: u64) -> Result<Option<Kept>> {
        for object in listed.iter().rev().filter(|object| names::of_any_beginning(first, &object.name)) {
            if let Some(bytes) = find(target, &object.name).await?
                && let Some(kept) = Kept::read(&object.name, bytes, database)
            {
                return Ok(Some(kept));
            }
        }
        Ok(None)
    }

    /// The object, if it is whole.
    fn read(name: &str, object: Vec<u8>, database: u64) -> Option<Kept> {
        let (header, bytes) = unpack(name, Kind::Pages, &object).ok()?;
        let mut pages = BTreeMap::new();
        for page in bytes.chunks(PAGE_BYTES) {
            pages.insert(page_of(page).ok()?.0, page.to_vec());
        }
        (header.database == database).then(|| Kept { name: name.to_owned(), object, pages })
    }

    /// The same pages with newer ones over them (RSM-1), rising.
    ///
    /// # Errors
    /// What is put over them is no page.
    pub fn with(mut self, newer: &[u8]) -> Result<Vec<u8>> {
        for page in newer.chunks(PAGE_BYTES) {
            let id = page_of(page).map_err(|damage| BackupError::Source(damage.to_string()))?;
            self.pages.insert(id.0, page.to_vec());
        }
        Ok(self.pages.into_values().flatten().collect())
    }

    /// How many pages it has.
    pub fn pages(&self) -> u64 {
        self.pages.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_reads_back_and_a_flipped_byte_is_found() {
        let begun = Begun {
            id: "x".into(),
            database: 7,
            epoch: 2,
            epoch_start: Lsn(8),
            redo: Lsn(16),
            begun_us: -3,
            ..Begun::default()
        };
        let text = begun.encode();
        assert_eq!(Begun::decode("b", text.as_bytes()).expect("whole"), begun);
        for at in 0..text.len() - 1 {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 4;
            assert!(Begun::decode("b", &bytes).is_err(), "byte {at}");
        }
    }
}
