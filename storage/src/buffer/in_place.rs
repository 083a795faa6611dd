//! The writes of a batch in place: pages that lie side by side in their file go out with one call.
//!
//! The pages of a tree that was filled in order lie so, and those that a statement changes as it walks over a table. Each by itself costs a system call and a turn of the
//! thread that performs it.
//!
//! # Invariants
//! - BUF-19: a batch is divided into writes of pages that lie one behind the other in one file, and each of its pages is in one of them, in its place. None begins before the twins of the whole
//!   batch are durable (BUF-9), so a write of many pages that a crash cuts short leaves pages that are whole, or torn with a whole twin, as many writes of one page do.

use super::page::PAGE_BYTES;
use crate::error::StorageError;
use crate::ids::PageId;
use crate::seams::Place;
use clearway_base::vfs::VfsFile;
use std::ops::Range;
use std::sync::Arc;

/// The most pages of one write: a quarter of a megabyte, as in reads.
const RUN_MAX: usize = 32;

/// Pages of a batch that lie side by side.
pub(super) struct Run {
    pub(super) file: Arc<dyn VfsFile>,
    /// Where the first one lies in the file.
    pub(super) offset: u64,
    /// Which ones of the batch they are.
    pages: Range<usize>,
}

impl Run {
    /// Where their bytes stand in those of the batch.
    pub(super) fn bytes(&self) -> Range<usize> {
        self.pages.start * PAGE_BYTES..self.pages.end * PAGE_BYTES
    }

    fn is_followed_by(&self, (file, offset): &Place) -> bool {
        Arc::ptr_eq(&self.file, file) && self.offset + self.bytes().len() as u64 == *offset
    }
}

/// The writes of a batch's pages (BUF-19).
pub(super) fn runs_of(
    pages: impl Iterator<Item = PageId>,
    locate: impl Fn(PageId) -> Result<Place, StorageError>,
) -> Result<Vec<Run>, StorageError> {
    let mut runs: Vec<Run> = Vec::new();
    for (at, page) in pages.enumerate() {
        let place = locate(page)?;
        match runs.last_mut().filter(|run| run.pages.len() < RUN_MAX && run.is_followed_by(&place)) {
            Some(run) => run.pages.end = at + 1,
            None => runs.push(Run { file: place.0, offset: place.1, pages: at..at + 1 }),
        }
    }
    Ok(runs)
}

/// The files of the writes, each once.
pub(super) fn files_of(runs: &[Run]) -> Vec<&Arc<dyn VfsFile>> {
    let mut files: Vec<&Arc<dyn VfsFile>> = Vec::new();
    for run in runs {
        if !files.iter().any(|known| Arc::ptr_eq(known, &run.file)) {
            files.push(&run.file);
        }
    }
    files
}
