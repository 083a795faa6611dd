//! A look at the data files before an opening changes anything.
//!
//! # Invariants
//! - SPC-9: nothing is written here. What is refused here leaves the directory as it was.
//!
//! # Not here
//! A file that is missing behind the last one that is there: only the pages that recovery reads tell of it.

use super::pages;
use crate::buffer::{PAGE_BYTES, verify};
use crate::error::{Corruption, StorageError};
use crate::ids::{Lsn, PageId};
use crate::wal::format::FORMAT_VERSION;
use clearway_base::vfs::{DirEntry, FileKind, IoBuf, OpenHow, Vfs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the control file says of the data files.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// The log has a record: the first of all is written when the first file and its name are durable.
    pub begun: bool,
    /// The database was closed properly: no page is torn.
    pub closed: bool,
    /// Pages per file.
    pub pages_per_file: u32,
}

/// The path of a data file.
pub(super) fn path(dir: &Path, number: usize) -> PathBuf {
    dir.join(format!("{number:06}.dat"))
}

fn missing(dir: &Path, number: usize, found: &str) -> StorageError {
    let (file, expected) = (path(dir, number).display().to_string(), "a data file".to_owned());
    Corruption { file, offset: None, page: None, lsn: None, expected, found: found.to_owned() }.into()
}

/// The data files of a directory in the order of their numbers.
///
/// # Errors
/// A failed read; a hole in the numbers.
pub(super) async fn listed(vfs: &Arc<dyn Vfs>, dir: &Path) -> Result<Vec<DirEntry>, StorageError> {
    let mut files = Vec::new();
    for entry in vfs.list(dir).await? {
        let Some(number) = entry.name.strip_suffix(".dat").and_then(|digits| digits.parse::<usize>().ok()) else {
            continue;
        };
        if number != files.len() {
            return Err(missing(dir, files.len(), "none, but one with a higher number"));
        }
        files.push(entry);
    }
    Ok(files)
}

/// Checks that the data files which the database must have are there, and that their format is known.
///
/// # Errors
/// A file that is missing; a damaged first page of a database that was closed; a newer format; a failed read.
pub async fn survey(vfs: &Arc<dyn Vfs>, dir: &Path, expected: Expected) -> Result<(), StorageError> {
    let files = listed(vfs, dir).await?;
    if expected.begun && files.is_empty() {
        return Err(missing(dir, 0, "none"));
    }
    for number in 0..files.len() {
        let path = path(dir, number);
        let file = vfs.open(&path, OpenHow::read_only(FileKind::Data).direct()).await?;
        let bytes = file.read_at(0, IoBuf::zeroed(PAGE_BYTES), PAGE_BYTES).await?;
        let first = u32::try_from(number).ok().and_then(|number| number.checked_mul(expected.pages_per_file));
        let id = PageId(first.ok_or_else(|| missing(dir, number, "more files than their pages have numbers"))?);
        match verify(id, &bytes) {
            Ok(bytes) => refuse_newer(&path, id, pages::version_in_file(bytes).unwrap_or(0))?,
            // A file behind the first that was never used has no bitmap yet.
            Err(_) if number > 0 && bytes.iter().all(|byte| *byte == 0) => {}
            Err(damage) if expected.begun && expected.closed => {
                let damage = damage.in_file(path.display().to_string());
                return Err(Corruption { offset: Some(0), ..damage }.into());
            }
            Err(_) => {}
        }
    }
    Ok(())
}

/// A file of a newer program's is refused by name.
pub(super) fn refuse_newer(path: &Path, id: PageId, version: u32) -> Result<(), StorageError> {
    if version <= FORMAT_VERSION {
        return Ok(());
    }
    let (expected, found) = (format!("format version {FORMAT_VERSION} or older"), format!("version {version}"));
    Err(Corruption::in_page(id, Lsn::ZERO, expected, found).in_file(path.display().to_string()).into())
}
