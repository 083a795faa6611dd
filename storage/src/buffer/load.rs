//! Misses: one task reads the page, the others wait at the gate; none of them holds a latch.
//!
//! # Invariants
//! - BUF-4 (see `table`): only this module puts a frame into an entry; `ahead` does so through it.
//! - BUF-13: an entry leaves LOADING whatever happens to the task that reads.
//! - BUF-16: a page whose LSN is beyond the end of the log shows damage of the log, not of the page (BUF-8).
//! - BUF-17: a page that can't be read is damage only while another page points to it: the page with the pointer, if any,
//!   still has the version in which the pointer was read. No page is freed without a change of the pages that point to it.

use super::evict::Ticket;
use super::guard::{Pin, Seen};
use super::page::{self, PAGE_BYTES, PageBytes, PageMut, kind};
use super::pool::Pool;
use super::table::{State, Word};
use crate::error::{Corruption, StorageError};
use crate::ids::{Lsn, PageId, TreeId};
use crate::interleave::AtomicU64;
use clearway_base::usage;
use clearway_base::vfs::IoBuf;
use clearway_base::waits::{Object, WaitEvent, in_wait};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::fence;

impl Pool {
    /// Brings a page into memory. On return it may have been evicted again; the caller looks it up anew.
    pub async fn fetch(&self, id: PageId, why: ReadReason) -> Result<(), StorageError> {
        self.load(id, Load::Existing, why).await.map(|_| ())
    }

    /// As [`Pool::fetch`], for a page that may have been freed since the pointer to it was read. False if it was freed: it need
    /// not be readable then.
    pub async fn fetch_if_used(&self, id: PageId, why: ReadReason) -> Result<bool, StorageError> {
        if !self.space.in_use(id) {
            return Ok(false);
        }
        match self.fetch(id, why).await {
            Ok(()) => Ok(true),
            Err(_) if !self.space.in_use(id) => Ok(false),
            Err(err) => Err(err),
        }
    }

    /// Brings a missing page into memory. False if it can't be read and the page that pointed to it has changed since: a page
    /// without a pointer may have been truncated from its file, or have a new owner that has not written it yet (BUF-17).
    pub async fn fetch_missing(&self, miss: Miss, why: ReadReason) -> Result<bool, StorageError> {
        match self.fetch(miss.page, why).await {
            Ok(()) => Ok(true),
            Err(StorageError::Corruption(_) | StorageError::Invalid(_)) if miss.is_stale(self) => Ok(false),
            Err(err) => Err(err),
        }
    }

    /// Pins a page, reading it if need be.
    pub async fn pin(&self, id: PageId) -> Result<Pin<'_>, StorageError> {
        loop {
            if let Some(pin) = self.try_pin(id) {
                return Ok(pin);
            }
            self.load(id, Load::Existing, ReadReason::Pin).await?;
        }
    }

    /// Pins the frame of a page that is about to be formatted: nothing is read.
    pub async fn pin_new(&self, id: PageId) -> Result<Pin<'_>, StorageError> {
        loop {
            if let Some(pin) = self.try_pin(id) {
                return Ok(pin);
            }
            self.load(id, Load::New, ReadReason::Pin).await?;
        }
    }

    /// Pins a page for redo. One that was never written, or whose bytes are damaged, comes as an empty page of
    /// kind FREE with LSN 0, and false: the first operation must format it.
    pub async fn pin_for_redo(&self, id: PageId) -> Result<(Pin<'_>, bool), StorageError> {
        let mut whole = true;
        loop {
            if let Some(pin) = self.try_pin(id) {
                return Ok((pin, whole));
            }
            whole = self.load(id, Load::Redo, ReadReason::Pin).await?;
        }
    }

    /// Loads a page unless it is in memory. False: it was damaged or never written (only for redo).
    pub(super) async fn load(&self, id: PageId, how: Load, why: ReadReason) -> Result<bool, StorageError> {
        let entry = self.entry(id);
        let ticket = loop {
            let word = Word(entry.load(Acquire));
            match word.state() {
                State::Resident | State::Latched => return Ok(true),
                State::Loading => {
                    let gate = self.gates.of(id);
                    let waiting = gate.listen();
                    if Word(entry.load(SeqCst)).state() == State::Loading {
                        in_wait(WaitEvent::BufferIo, Object::NONE, waiting).await;
                    }
                }
                State::Absent => {
                    let ticket = self.take_frame().await?;
                    let word = Word(entry.load(Acquire));
                    let loading = word.with_state(State::Loading);
                    if word.state() == State::Absent
                        && entry.compare_exchange(word.0, loading.0, AcqRel, Relaxed).is_ok()
                    {
                        break ticket;
                    }
                }
            }
        };
        // From here on dropping this future makes the entry absent again.
        let loading = Loading::new(self, entry, id);
        if how == Load::New {
            self.counters.new_pages.add(1);
            self.install(loading, ticket, None);
            return Ok(true);
        }
        let (place, offset) = self.space.locate(id)?;
        let buf = place.read_at(offset, IoBuf::with_capacity(PAGE_BYTES), PAGE_BYTES).await?;
        self.count_read(why);
        match verify(id, &buf) {
            Ok(bytes) => {
                not_ahead(id, bytes, self.log.end_lsn())
                    .map_err(|corruption| corruption.in_file(self.space.file_name(id)))?;
                self.install_read(loading, ticket, bytes);
                Ok(true)
            }
            Err(_) if how == Load::Redo => {
                self.install(loading, ticket, None);
                Ok(false)
            }
            Err(corruption) => Err(corruption.in_file(self.space.file_name(id)).into()),
        }
    }

    pub(super) fn count_read(&self, why: ReadReason) {
        self.counters.misses.add(1);
        usage::page_read();
        let reason = match why {
            ReadReason::Path => &self.counters.path_reads,
            ReadReason::Ahead => &self.counters.ahead_reads,
            ReadReason::Chain => &self.counters.chain_reads,
            ReadReason::Pin => &self.counters.pin_reads,
            ReadReason::Neighbour => &self.counters.neighbour_reads,
        };
        reason.add(1);
    }

    /// Makes a page resident that was read and verified.
    pub(super) fn install_read(&self, loading: Loading<'_>, ticket: Ticket<'_>, bytes: &PageBytes) {
        self.tree_reads.add(loading.id, page::tree_of(bytes));
        self.install(loading, ticket, Some(bytes));
    }

    /// Makes the page resident with these bytes, or as an empty page of kind FREE.
    fn install(&self, mut loading: Loading<'_>, ticket: Ticket<'_>, bytes: Option<&PageBytes>) {
        let frame = ticket.into_frame();
        let page = PageMut::new(&self.words[frame]);
        // A reader with an old word of the entry may still read the frame's words; the version tells it to discard them (BUF-3).
        fence(Release);
        match bytes {
            Some(bytes) => page.copy_in(bytes),
            None => page.format(loading.id, TreeId(0), 0, kind::FREE),
        }
        let meta = &self.metas[frame];
        meta.page.store(loading.id.0, Relaxed);
        meta.referenced.store(true, Relaxed);
        let before = Word(loading.entry.load(Relaxed));
        assert!(before.state() == State::Loading, "BUF-4: {before:?} was to get frame {frame}");
        let word = before.with_frame(frame).with_state(State::Resident).bumped();
        loading.entry.store(word.0, SeqCst);
        loading.done = true;
        self.gates.of(loading.id).open();
    }
}

/// A page that is not in memory, and what pointed to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Miss {
    /// The page.
    pub page: PageId,
    /// The page and version that the pointer was read in; none for a root, which never moves.
    pub by: Option<Seen>,
}

impl Miss {
    fn is_stale(&self, pool: &Pool) -> bool {
        self.by.is_some_and(|seen| !pool.still(&seen))
    }
}

/// The reason for a read; each reason has a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadReason {
    /// It is the next on a descent's way.
    Path,
    /// A scan will come to it.
    Ahead,
    /// It is part of an overflow chain.
    Chain,
    /// It is to stay in its frame.
    Pin,
    /// It stands beside the way of a change of structure.
    Neighbour,
}

/// What state of the page a load expects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Load {
    Existing,
    New,
    Redo,
}

/// Brings an entry out of LOADING when it is dropped (BUF-13).
pub(super) struct Loading<'p> {
    pool: &'p Pool,
    entry: &'p AtomicU64,
    id: PageId,
    done: bool,
}

impl<'p> Loading<'p> {
    /// The caller has put the entry into LOADING.
    pub(super) fn new(pool: &'p Pool, entry: &'p AtomicU64, id: PageId) -> Self {
        Self { pool, entry, id, done: false }
    }

    /// The page.
    pub(super) fn id(&self) -> PageId {
        self.id
    }
}

impl Drop for Loading<'_> {
    /// Also when the read fails or its future is dropped (BUF-13).
    fn drop(&mut self) {
        if !self.done {
            let word = Word(self.entry.load(Relaxed)).with_state(State::Absent).bumped();
            self.entry.store(word.0, SeqCst);
            self.pool.gates.of(self.id).open();
        }
    }
}

/// BUF-16: the page's last change lies in the log, which ends at `end`.
pub(crate) fn not_ahead(id: PageId, bytes: &PageBytes, end: Lsn) -> Result<(), Corruption> {
    let lsn = Lsn(u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes")));
    if lsn <= end {
        return Ok(());
    }
    let expected = format!("a change at or before LSN {end}, where the log ends");
    Err(Corruption::in_page(id, lsn, expected, format!("one of LSN {lsn}: the end of the log is lost")))
}

/// Whether these bytes are the page `id` as it was written.
pub(crate) fn verify(id: PageId, bytes: &[u8]) -> Result<&PageBytes, Corruption> {
    let whole: Result<&PageBytes, _> = bytes.try_into();
    let Ok(bytes) = whole else {
        let found = format!("{} bytes", bytes.len());
        return Err(Corruption::in_page(id, Lsn::ZERO, format!("a page of {PAGE_BYTES} bytes"), found));
    };
    let field = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let lsn = Lsn(u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes")));
    let (stored, computed) = (field(page::AT_CHECKSUM), page::checksum(bytes));
    if stored != computed {
        let found = if bytes.iter().all(|byte| *byte == 0) {
            "a page of zeros (never written)".to_owned()
        } else {
            format!("{stored:#010x}")
        };
        return Err(Corruption::in_page(id, lsn, format!("checksum {computed:#010x}"), found));
    }
    if field(4) != id.0 {
        return Err(Corruption::in_page(id, lsn, format!("page {id}"), format!("page {}", field(4))));
    }
    Ok(bytes)
}
