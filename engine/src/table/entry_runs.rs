//! Sorted runs of index entries in a temporary file, and their merge: what a batch of entries does not hold (`batch`).
//!
//! # Life of a run
//! a batch is full -> its lists, sorted, are appended to the file in frames of many entries, list by list -> the batch is applied: of each list the runs are merged
//!
//! # Invariants
//! - ENR-1: a merge gives each entry of its list once, in the order of the keys; entries with the same key come in the order of their runs, and those of one run as they were
//!   appended (BAT-3).
//! - ENR-2: there are at most [`RUNS_MAX`] runs and one more, so that a merge has a megabyte of buffers at most.

use std::ops::Range;

use super::by_head::head_of;
use clearway_base::sync::yield_now;
use clearway_storage::error::StorageError;
use clearway_storage::temp_files::{TempFile, TempReader};

/// So many runs are written before they are merged.
pub(super) const RUNS_MAX: usize = 16;
/// Bytes from which on a frame takes no more entries.
const FRAME_BYTES: usize = 16 << 10;
/// The block in which a run is read back, in bytes.
const READ_BYTES: usize = 64 << 10;
/// What stands before the key of an entry: its mark.
const MARK_BYTES: usize = 4;
/// So many frames are written between two breaths.
const BREATH_FRAMES: usize = 16;

/// An entry: its key, and its mark, which is twice the key's length, and one more if the entry is to be inserted.
pub(super) type Marked<'e> = (&'e [u8], u32);

/// The runs of a batch.
pub(super) struct EntryRuns {
    file: TempFile,
    /// By run: where its entries of each list stand.
    runs: Vec<Vec<Range<u64>>>,
}

impl EntryRuns {
    /// None, in an empty file.
    pub(super) fn new(file: TempFile) -> EntryRuns {
        EntryRuns { file, runs: Vec::new() }
    }

    /// Whether the next batch is to be applied with them (ENR-2).
    pub(super) fn are_many(&self) -> bool {
        self.runs.len() >= RUNS_MAX
    }

    /// Begins a run.
    pub(super) fn begin(&mut self) {
        self.runs.push(Vec::new());
    }

    /// Appends the next list of the run that was begun last: sorted entries.
    pub(super) async fn append<'e>(&mut self, entries: impl Iterator<Item = Marked<'e>>) -> Result<(), StorageError> {
        let (from, mut frame, mut frames) = (self.file.end(), Vec::new(), 0_usize);
        for (key, mark) in entries {
            frame.extend_from_slice(&mark.to_le_bytes());
            frame.extend_from_slice(key);
            if frame.len() >= FRAME_BYTES {
                self.file.append_frame(&frame).await?;
                frame.clear();
                frames += 1;
                if frames.is_multiple_of(BREATH_FRAMES) {
                    yield_now().await;
                }
            }
        }
        if !frame.is_empty() {
            self.file.append_frame(&frame).await?;
        }
        self.runs.last_mut().expect("a run was begun").push(from..self.file.end());
        Ok(())
    }

    /// Ends the run: its entries can be read.
    pub(super) async fn end(&mut self) -> Result<(), StorageError> {
        self.file.end_writing().await
    }

    /// The entries of a list, of all runs (ENR-1).
    pub(super) async fn merged(&self, list: usize) -> Result<EntryMerge, StorageError> {
        let mut ways = Vec::with_capacity(self.runs.len());
        for part in self.runs.iter().filter_map(|run| run.get(list)) {
            let reader = self.file.reader(part.clone(), READ_BYTES);
            let mut way = Way { reader, key: 0..0, mark: 0, head: 0 };
            if way.step().await? {
                ways.push(way);
            }
        }
        Ok(EntryMerge { ways })
    }
}

/// A run on its way through a merge.
struct Way {
    reader: TempReader,
    /// Where in its frame the key of its next entry stands.
    key: Range<usize>,
    mark: u32,
    /// The first bytes of that key.
    head: u64,
}

impl Way {
    fn key(&self) -> &[u8] {
        &self.reader.frame()[self.key.clone()]
    }

    /// Goes on to the next entry; false: there is none.
    async fn step(&mut self) -> Result<bool, StorageError> {
        if self.key.end == self.reader.frame().len() {
            if self.reader.next_frame().await?.is_none() {
                return Ok(false);
            }
            self.key = 0..0;
        }
        self.parse()?;
        Ok(true)
    }

    /// The entry behind the last one in the frame.
    fn parse(&mut self) -> Result<(), StorageError> {
        let rest = &self.reader.frame()[self.key.end..];
        let parsed = rest.split_first_chunk::<MARK_BYTES>().and_then(|(mark, rest)| {
            let mark = u32::from_le_bytes(*mark);
            Some((mark, rest.get(..(mark >> 1) as usize)?))
        });
        let Some((mark, key)) = parsed else {
            return Err(self.reader.damaged("entries of a sorted run").into());
        };
        (self.mark, self.head) = (mark, head_of(key));
        let at = self.key.end + MARK_BYTES;
        self.key = at..at + key.len();
        Ok(())
    }
}

/// The merge of the runs of a list.
pub(super) struct EntryMerge {
    /// In the order of their runs.
    ways: Vec<Way>,
}

impl EntryMerge {
    /// Gives the next entries, so many at most, to `put`; none is left when it gives none.
    pub(super) async fn take(
        &mut self,
        entries_max: usize,
        put: &mut (dyn FnMut(Marked<'_>) + Send),
    ) -> Result<(), StorageError> {
        for _ in 0..entries_max {
            let Some(least) = self.least() else { return Ok(()) };
            let way = &mut self.ways[least];
            put((way.key(), way.mark));
            if !way.step().await? {
                self.ways.remove(least);
            }
        }
        Ok(())
    }

    /// ENR-1: the way with the least key, the first one of several.
    fn least(&self) -> Option<usize> {
        let (mut least, mut ways) = (0, self.ways.iter().enumerate());
        let (_, mut first) = ways.next()?;
        for (n, way) in ways {
            if way.head < first.head || way.head == first.head && way.key() < first.key() {
                (least, first) = (n, way);
            }
        }
        Some(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_base::for_each_seed;
    use clearway_base::testkit::{Rng, Sim};
    use clearway_base::vfs::sim::SimDisk;
    use clearway_storage::temp_files::TempFiles;
    use std::path::Path;
    use std::sync::Arc;

    fn marked(key: &[u8], inserts: bool) -> u32 {
        (key.len() as u32) << 1 | u32::from(inserts)
    }

    #[test]
    fn a_merge_gives_the_entries_of_all_runs_in_their_order() {
        // ENR-1, BAT-3
        for_each_seed!(10, merges);
    }

    /// Key, run, place in the run, and whether it is inserted.
    type Expected = (Vec<u8>, usize, usize, bool);

    fn merges(seed: u64) {
        let merged = Sim::new(seed).block_on(async move {
            let files = Arc::new(TempFiles::new(Arc::new(SimDisk::new(seed)), Path::new("/")));
            let mut rng = Rng::new(seed);
            let mut runs = EntryRuns::new(files.create(1).await.expect("a file"));
            let mut all: Vec<Vec<Expected>> = vec![Vec::new(); 3];
            for run in 0..1 + rng.index(RUNS_MAX) {
                runs.begin();
                for list in &mut all {
                    // Many keys are equal, or share their first bytes, and some are longer than a frame's rest.
                    let count = [0, 3, 2_500][rng.index(3)];
                    let mut keys: Vec<Vec<u8>> = (0..count)
                        .map(|_| {
                            let mut key = vec![7; rng.index(3) * 4];
                            key.extend((0..rng.index(5)).map(|_| rng.below(3) as u8 * 100));
                            key.resize(key.len() + rng.index(2) * rng.index(40), 9);
                            key
                        })
                        .collect();
                    keys.sort();
                    let marks: Vec<bool> = keys.iter().map(|_| rng.chance(1, 2)).collect();
                    let entries = keys.iter().zip(&marks).map(|(key, inserts)| (&key[..], marked(key, *inserts)));
                    runs.append(entries).await.expect("written");
                    list.extend(keys.iter().zip(&marks).enumerate().map(|(n, (k, i))| (k.clone(), run, n, *i)));
                }
                runs.end().await.expect("written");
            }
            for (list, mut expected) in all.into_iter().enumerate() {
                expected.sort();
                let expected: Vec<(Vec<u8>, bool)> = expected.into_iter().map(|(k, _, _, i)| (k, i)).collect();
                let (mut merge, mut found) = (runs.merged(list).await.expect("read"), Vec::new());
                loop {
                    let before = found.len();
                    let put = &mut |(key, mark): Marked<'_>| found.push((key.to_vec(), mark & 1 == 1));
                    merge.take(1 + rng.index(1_000), put).await.expect("read");
                    if found.len() == before {
                        break;
                    }
                }
                assert_eq!(found, expected, "list {list}");
            }
        });
        merged.expect("no crash");
    }
}
