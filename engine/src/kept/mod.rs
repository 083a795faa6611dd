//! Observations that are kept over restarts: lock waits, deadlocks, and what the layers above add (digests, totals, samples).
//!
//! # Structure
//! One small file in the directory, `observations`, written as a whole: a line with version, checksum and length, then a JSON object that
//! maps the name of each source to its text. It is written once a minute if something has changed, soon after a deadlock, and when the
//! database is closed.
//!
//! # Crash safety
//! The file is written under another name, synced and renamed: a crash leaves the old file or the new one. No data depends on it: a file that
//! is damaged is ignored and reported in `background_errors`.
//!
//! # Invariants
//! - KEP-1: a source's text is bounded by its source, and the file by [`BYTES_MAX`]; beyond that the largest source is left out.

mod locks;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use clearway_base::sync::Mutex;
use clearway_base::vfs::{FileKind, IoBuf, OpenHow, Vfs, VfsError};
use clearway_base::waits::now_ns;
use clearway_txn::transactions::Transactions;

/// The file's name in the directory.
pub const FILE: &str = "observations";
const TEMPORARY: &str = "observations.tmp";
const HEADER: &str = "clearway observations 1";
/// The file is no larger than this.
pub const BYTES_MAX: usize = 32 << 20;
/// How often what has changed is saved,
const EVERY_NS: u64 = 60_000_000_000;
/// and how soon where it matters more: after a deadlock.
const SOON_NS: u64 = 2_000_000_000;

type Texts = BTreeMap<String, String>;
type Source = Box<dyn Fn() -> String + Send + Sync>;

/// What is kept.
pub struct Kept {
    /// None: nothing is saved.
    place: Option<(Arc<dyn Vfs>, PathBuf)>,
    /// What the last run left and no session has asked for yet.
    left: Mutex<Texts>,
    sources: Mutex<BTreeMap<&'static str, Arc<Source>>>,
    changed: AtomicBool,
    saved_ns: AtomicU64,
}

impl Kept {
    /// Nothing is kept.
    pub(crate) fn nothing() -> Kept {
        Kept {
            place: None,
            left: Mutex::new("engine/kept/left", Texts::new()),
            sources: Mutex::new("engine/kept/sources", BTreeMap::new()),
            changed: AtomicBool::new(false),
            saved_ns: AtomicU64::new(now_ns()),
        }
    }

    /// Reads what the last run has left. The text says what is wrong with the file, if something is.
    pub(crate) async fn open(vfs: Arc<dyn Vfs>, dir: &Path) -> (Kept, Option<String>) {
        let mut kept = Kept::nothing();
        let read = read(&vfs, &dir.join(FILE)).await;
        kept.place = Some((vfs, dir.to_owned()));
        match read {
            Ok(texts) => {
                *kept.left.lock() = texts;
                (kept, None)
            }
            Err(error) => (kept, Some(error)),
        }
    }

    /// Whether anything is saved at all.
    pub fn saves(&self) -> bool {
        self.place.is_some()
    }

    /// What the last run left under a name; given once.
    pub fn take(&self, name: &str) -> Option<String> {
        self.left.lock().remove(name)
    }

    /// Has `source` asked for its text whenever the file is written; the latest of a name counts.
    pub fn add(&self, name: &'static str, source: impl Fn() -> String + Send + Sync + 'static) {
        self.sources.lock().insert(name, Arc::new(Box::new(source)));
    }

    /// Something is worth saving within the minute.
    pub fn changed(&self) {
        self.changed.store(true, Ordering::Relaxed);
    }
}

impl Kept {
    /// Saves if that is due. `waits`: waits for locks have come to be known; `urgent`: soon.
    pub(crate) async fn step(&self, waits: bool, urgent: bool) -> Result<(), VfsError> {
        self.changed.fetch_or(waits, Ordering::Relaxed);
        let since_ns = now_ns().saturating_sub(self.saved_ns.load(Ordering::Relaxed));
        if urgent && since_ns < EVERY_NS - SOON_NS {
            self.saved_ns.store(now_ns().saturating_sub(EVERY_NS - SOON_NS), Ordering::Relaxed);
        }
        if since_ns < EVERY_NS || !self.changed.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        self.save().await
    }

    /// Saves what has changed, without waiting until that is due.
    pub(crate) async fn save_changed(&self) -> Result<(), VfsError> {
        if self.changed.swap(false, Ordering::Relaxed) { self.save().await } else { Ok(()) }
    }

    /// Saves.
    ///
    /// # Errors
    /// A failed file operation; what was saved before is still there.
    pub(crate) async fn save(&self) -> Result<(), VfsError> {
        let Some((vfs, dir)) = &self.place else { return Ok(()) };
        self.saved_ns.store(now_ns(), Ordering::Relaxed);
        let sources: Vec<(&'static str, Arc<Source>)> =
            self.sources.lock().iter().map(|(name, source)| (*name, source.clone())).collect();
        let mut texts: Texts = sources.iter().map(|(name, source)| ((*name).to_owned(), source())).collect();
        while texts.values().map(String::len).sum::<usize>() > BYTES_MAX {
            let largest = texts.iter().max_by_key(|(_, text)| text.len()).map(|(name, _)| name.clone());
            largest.map(|name| texts.remove(&name)); // KEP-1
        }
        let body = serde_json::to_vec(&texts).unwrap_or_default();
        let mut bytes = format!("{HEADER} {:08x} {}\n", crc32c::crc32c(&body), body.len()).into_bytes();
        bytes.extend_from_slice(&body);
        let temporary = dir.join(TEMPORARY);
        let file = vfs.open(&temporary, OpenHow::create(FileKind::Log)).await?;
        file.set_len(0).await?;
        file.write_at(0, IoBuf::from_slice(&bytes)).await?;
        file.sync_data().await?;
        vfs.rename(&temporary, &dir.join(FILE)).await?;
        vfs.sync_dir(dir).await
    }

    /// Takes in what the last run left of the locks, and keeps them from now on.
    pub(crate) fn keep_locks(&self, all: &Arc<Transactions>) -> Result<(), serde_json::Error> {
        if !self.saves() {
            return Ok(());
        }
        let restored = self.take("locks").map_or(Ok(()), |text| locks::restore(all.locks(), &text));
        let all = Arc::clone(all);
        self.add("locks", move || locks::saved(all.locks()));
        restored
    }
}

async fn read(vfs: &Arc<dyn Vfs>, path: &Path) -> Result<Texts, String> {
    let file = match vfs.open(path, OpenHow::read_only(FileKind::Log)).await {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Texts::new()),
        opened => opened.map_err(|error| error.to_string())?,
    };
    let len = file.len().await.map_err(|error| error.to_string())?;
    let len = usize::try_from(len).ok().filter(|len| *len <= 2 * BYTES_MAX).ok_or("it is too large")?;
    let bytes = file.read_exact_at(0, IoBuf::zeroed(len), len).await.map_err(|error| error.to_string())?;
    decode(&bytes)
}

fn decode(bytes: &[u8]) -> Result<Texts, String> {
    let end = bytes.iter().take(100).position(|byte| *byte == b'\n').ok_or("it has no first line")?;
    let (head, body) = (&bytes[..end], bytes.get(end + 1..).unwrap_or_default());
    let head = std::str::from_utf8(head).map_err(|_| "its first line is damaged")?;
    let rest = head.strip_prefix(HEADER).ok_or("its first line is damaged, or of a newer version")?;
    let (crc, len) = rest.trim().split_once(' ').ok_or("its first line is damaged")?;
    let (crc, len) = (u32::from_str_radix(crc, 16).ok(), len.parse::<usize>().ok());
    if len != Some(body.len()) || crc != Some(crc32c::crc32c(body)) {
        return Err("its checksum is wrong".to_owned());
    }
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_base::sync::block_on;
    use clearway_base::vfs::MemVfs;
    use clearway_base::waits::VirtualClock;

    /// Without an orderly end: what was seen until the last full minute.
    #[test]
    fn what_has_changed_is_saved_each_minute_and_soon_after_a_deadlock() {
        let time = Arc::new(VirtualClock::new());
        let _installed = time.install();
        let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
        let dir = Path::new("/data");
        block_on(async {
            vfs.create_dir(dir).await.expect("a directory");
            let (kept, error) = Kept::open(vfs.clone(), dir).await;
            assert_eq!(error, None);
            let seen = Arc::new(AtomicU64::new(0));
            let source = seen.clone();
            kept.add("seconds", move || source.load(Ordering::Relaxed).to_string());
            let saved = || async { Kept::open(vfs.clone(), dir).await.0.take("seconds") };
            for second in 1..=600 {
                time.advance(1_000_000_000);
                seen.store(second, Ordering::Relaxed);
                kept.changed();
                kept.step(false, false).await.expect("it is saved");
                let full = second / 60 * 60;
                assert_eq!(saved().await, (full > 0).then(|| full.to_string()), "second {second}");
            }
            // Nothing has changed: nothing is written.
            time.advance(EVERY_NS);
            seen.store(1, Ordering::Relaxed);
            kept.step(false, false).await.expect("nothing");
            assert_eq!(saved().await.as_deref(), Some("600"));
            kept.changed();
            kept.step(false, false).await.expect("it is saved");
            assert_eq!(saved().await.as_deref(), Some("1"));
            seen.store(2, Ordering::Relaxed);
            kept.step(true, true).await.expect("soon");
            time.advance(SOON_NS);
            kept.step(false, false).await.expect("it is saved");
            assert_eq!(saved().await.as_deref(), Some("2"));
        });
    }

    #[test]
    fn a_damaged_file_is_none() {
        let texts = Texts::from([("locks".to_owned(), "[]".to_owned())]);
        let body = serde_json::to_vec(&texts).expect("a map");
        let mut bytes = format!("{HEADER} {:08x} {}\n", crc32c::crc32c(&body), body.len()).into_bytes();
        bytes.extend_from_slice(&body);
        assert_eq!(decode(&bytes), Ok(texts));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x20;
            // Case does not count in a checksum's digits.
            assert!(decode(&damaged).is_err() || damaged.eq_ignore_ascii_case(&bytes), "byte {at}");
            assert!(decode(&bytes[..at]).is_err(), "cut at {at}");
        }
    }
}
