//! A pin that owns its pool: for pages that stay in memory as long as a part of storage lives.

use super::guard::Latched;
use super::pool::Pool;
use super::table::Word;
use crate::error::StorageError;
use crate::ids::PageId;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

/// Keeps a page in its frame.
pub struct OwnedPin {
    pool: Arc<Pool>,
    frame: usize,
    id: PageId,
}

impl OwnedPin {
    /// Pins a page, reading it if need be.
    ///
    /// # Errors
    /// As [`Pool::pin`].
    pub async fn existing(pool: &Arc<Pool>, id: PageId) -> Result<OwnedPin, StorageError> {
        let pin = pool.pin(id).await?;
        let owned = OwnedPin::second(pool, id);
        drop(pin);
        Ok(owned)
    }

    /// Pins the frame of a page that is about to be formatted.
    ///
    /// # Errors
    /// As [`Pool::pin_new`].
    pub async fn new_page(pool: &Arc<Pool>, id: PageId) -> Result<OwnedPin, StorageError> {
        let pin = pool.pin_new(id).await?;
        let owned = OwnedPin::second(pool, id);
        drop(pin);
        Ok(owned)
    }

    /// A second pin beside one that is held, so the frame can't change (BUF-6).
    fn second(pool: &Arc<Pool>, id: PageId) -> OwnedPin {
        let frame = Word(pool.entry(id).load(SeqCst)).frame();
        let before = pool.metas[frame].pins.fetch_add(1, SeqCst);
        assert!(before > 0, "BUF-6: a second pin is taken under a first");
        OwnedPin { pool: pool.clone(), frame, id }
    }

    /// The page's number.
    pub fn id(&self) -> PageId {
        self.id
    }

    /// Latches it, waiting out other latches.
    pub fn latch(&self) -> Latched<'_> {
        self.pool.try_pin(self.id).expect("a pinned page stays in its frame (BUF-6)").latch()
    }
}

impl Drop for OwnedPin {
    fn drop(&mut self) {
        let before = self.pool.metas[self.frame].pins.fetch_sub(1, SeqCst);
        assert!(before > 0, "BUF-6: page {:?} was unpinned twice", self.id);
    }
}
