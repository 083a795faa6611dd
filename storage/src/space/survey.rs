//! A look at the data files before an opening changes anything.
//!
//! # Invariants
//! - SPC-9: nothing is written here. What is refused here leaves the directory as it was.
//!
//! # Not here
//! What the control file of an older program does not say: that a file is missing behind the last one that is there, or is too short. Only the
//! pages that recovery reads tell of it then.

use super::pages;
use crate::buffer::{PAGE_BYTES, Twins, not_ahead, verify, whole};
use crate::error::{Corruption, StorageError};
use crate::ids::{Lsn, PageId};
use crate::wal::format::FORMAT_VERSION;
use clearway_base::vfs::{DirEntry, FileKind, IoBuf, OpenHow, Vfs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How far data files reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// How many there are.
    pub files: u32,
    /// Pages of the last of them, up to the last one that is allocated.
    pub last_pages: u32,
}

/// What is known of the data files.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// The log has a record: the first of all is written when the first file and its name are durable.
    pub begun: bool,
    /// The database was closed properly: no page is torn.
    pub closed: bool,
    /// Pages per file.
    pub pages_per_file: u32,
    /// How far they reach at least (SPC-12).
    pub reach: Reach,
    /// The page with the highest number that the log changes: its file was durable before.
    pub last_page: PageId,
    /// Where the log ends.
    pub end: Lsn,
    /// The pages that can be restored.
    pub twins: &'a Twins,
}

impl Expected<'_> {
    /// The least number of bytes of a file (SPC-12).
    fn bytes(&self, number: usize) -> u64 {
        let behind = (self.reach.files as usize).saturating_sub(number);
        let pages = match behind {
            0 => 0,
            1 => self.reach.last_pages,
            _ => self.pages_per_file,
        };
        u64::from(pages) * PAGE_BYTES as u64
    }
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

/// Checks that the data files which the database must have are there, as long as they must be, with their own first pages, and that
/// their format is known.
///
/// # Errors
/// A file that is missing or too short; a damaged first page that can't be restored, or one of another file; a newer format; a failed read.
pub async fn survey(vfs: &Arc<dyn Vfs>, dir: &Path, expected: Expected<'_>) -> Result<(), StorageError> {
    let files = listed(vfs, dir).await?;
    let named = if expected.begun { expected.last_page.0 / expected.pages_per_file + 1 } else { 0 };
    let least = named.max(expected.reach.files) as usize;
    if files.len() < least {
        return Err(missing(dir, files.len(), "none"));
    }
    for (number, entry) in files.iter().enumerate() {
        let (path, bytes) = (path(dir, number), expected.bytes(number));
        if entry.size < bytes {
            let (file, found) = (path.display().to_string(), format!("{} bytes", entry.size));
            let expected = format!("a data file of {bytes} bytes at least");
            return Err(Corruption { file, offset: None, page: None, lsn: None, expected, found }.into());
        }
        let file = vfs.open(&path, OpenHow::read_only(FileKind::Data).direct()).await?;
        let page = file.read_at(0, IoBuf::zeroed(PAGE_BYTES), PAGE_BYTES).await?;
        let first = u32::try_from(number).ok().and_then(|number| number.checked_mul(expected.pages_per_file));
        let id = PageId(first.ok_or_else(|| missing(dir, number, "more files than their pages have numbers"))?);
        first_page(&path, id, &page, number, expected)?;
    }
    Ok(())
}

fn first_page(
    path: &Path,
    id: PageId,
    bytes: &[u8],
    number: usize,
    expected: Expected<'_>,
) -> Result<(), StorageError> {
    let named = |damage: Corruption| Corruption { offset: Some(0), ..damage.in_file(path.display().to_string()) };
    let damage = match verify(id, bytes) {
        Ok(page) => {
            refuse_newer(path, id, pages::version_in_file(page).unwrap_or(0))?;
            return not_ahead(id, page, expected.end).map_err(|damage| named(damage).into());
        }
        Err(damage) => damage,
    };
    let was_written = number < expected.reach.files as usize;
    // A file that was never used has no bitmap yet.
    if !expected.begun || !was_written && number > 0 && bytes.iter().all(|byte| *byte == 0) {
        return Ok(());
    }
    // A page that a crash has torn is whole in the double-write area.
    let torn = !expected.closed && whole(bytes).is_none() && (!was_written || expected.twins.has(id));
    if torn { Ok(()) } else { Err(named(damage).into()) }
}

/// A file of a newer program's is refused by name.
pub(super) fn refuse_newer(path: &Path, id: PageId, version: u32) -> Result<(), StorageError> {
    if version <= FORMAT_VERSION {
        return Ok(());
    }
    let (expected, found) = (format!("format version {FORMAT_VERSION} or older"), format!("version {version}"));
    Err(Corruption::in_page(id, Lsn::ZERO, expected, found).in_file(path.display().to_string()).into())
}
