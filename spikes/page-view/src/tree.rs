//! A bulk-loaded B-tree over a frame arena and a translation array.
//!
//! Translation word: {version 32, latch 8, frame 24}. Latch 0 = free, 255 = exclusive, else that
//! many shared holders. The version grows when an exclusive latch is given back.
//!
//! Invariants
//! VIEW-1 A value taken from a page is believed only if the page's word, frame and version, is
//!        the same before and after (shared holders aside) and was never exclusive.
//! VIEW-2 The child's word is loaded before the parent is validated, so that the child was the
//!        parent's child when its version was noted.

use crate::page::{CellBuf, Page};
use std::sync::atomic::{AtomicU64, Ordering, fence};

const LATCH: u64 = 0xff << 24;
const SHARED: u64 = 1 << 24;
const VERSION: u64 = 1 << 32;
const FRAME: u64 = (1 << 24) - 1;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Leaf {
    Optimistic,
    Shared,
}

pub struct Tree {
    arena: Vec<Page>,
    translation: Vec<AtomicU64>,
    root: u32,
}

fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

impl Tree {
    /// Loads `rows` keys, each 8 bytes big-endian, values from `value`.
    pub fn load(rows: u64, key: impl Fn(u64) -> u64, value: impl Fn(u64, &mut [u8; 100])) -> Tree {
        let mut tree = Tree {
            arena: Vec::new(),
            translation: Vec::new(),
            root: 0,
        };
        let mut below: Vec<(u64, u32)> = Vec::new();
        let (mut at, mut bytes) = (0, [0; 100]);
        while at < rows {
            // Fences: the prefix holds for any key that could come into the page.
            let last = key((at + 80).min(rows));
            let id = tree.new_page(0, common(&key(at).to_be_bytes(), &last.to_be_bytes()));
            below.push((key(at), id));
            while at < rows {
                value(at, &mut bytes);
                if !tree.frame(id).push(&key(at).to_be_bytes(), &bytes) {
                    break;
                }
                at += 1;
            }
        }
        let mut level = 1;
        while below.len() > 1 {
            let mut above = Vec::new();
            let mut at = 0;
            while at < below.len() {
                let last = below[(at + 600).min(below.len() - 1)].0;
                let id = tree.new_page(
                    level,
                    common(&below[at].0.to_be_bytes(), &last.to_be_bytes()),
                );
                above.push((below[at].0, id));
                while at < below.len()
                    && tree
                        .frame(id)
                        .push(&below[at].0.to_be_bytes(), &below[at].1.to_le_bytes())
                {
                    at += 1;
                }
            }
            below = above;
            level += 1;
        }
        tree.root = below[0].1;
        tree
    }

    fn new_page(&mut self, level: usize, prefix: usize) -> u32 {
        let page = Page::new();
        page.format(level, prefix);
        self.arena.push(page);
        let frame = self.arena.len() as u64 - 1;
        self.translation.push(AtomicU64::new(frame));
        frame as u32
    }

    pub fn pages(&self) -> usize {
        self.arena.len()
    }

    fn frame(&self, id: u32) -> &Page {
        &self.arena[id as usize]
    }

    /// The page's word, once nobody holds it exclusively.
    #[inline(always)]
    fn begin(&self, id: u32) -> Option<u64> {
        let word = self.translation.get(id as usize)?.load(Ordering::Acquire);
        (word & LATCH != LATCH).then_some(word)
    }

    #[inline(always)]
    fn still(&self, id: u32, seen: u64) -> bool {
        fence(Ordering::Acquire);
        let word = self.translation[id as usize].load(Ordering::Relaxed);
        word & LATCH != LATCH && (word ^ seen) & !LATCH == 0
    }

    /// The leaf for `key` and its word.
    #[inline]
    fn descend(&self, key: &[u8]) -> Option<(u32, u64)> {
        let mut id = self.root;
        let mut seen = self.begin(id)?;
        let mut cell = CellBuf::new();
        loop {
            let page = &self.arena[(seen & FRAME) as usize];
            let header = page.header();
            if header.level == 0 {
                return self.still(id, seen).then_some((id, seen));
            }
            let slot = page.slot(page.find(header, key).0);
            page.copy(slot, &mut cell);
            let child = u32::from_le_bytes(cell.value().get(..4)?.try_into().ok()?);
            let childs = self.begin(child)?;
            if !self.still(id, seen) {
                return None;
            }
            (id, seen) = (child, childs);
        }
    }

    /// One attempt: `None` if a writer came between.
    #[inline]
    pub fn try_get(&self, leaf: Leaf, key: &[u8], out: &mut CellBuf) -> Option<bool> {
        let (id, seen) = self.descend(key)?;
        let word = &self.translation[id as usize];
        if leaf == Leaf::Shared {
            let mut now = word.load(Ordering::Relaxed);
            loop {
                // The version is checked, since the descent was optimistic.
                if now & LATCH >= LATCH - SHARED || (now ^ seen) & !LATCH != 0 {
                    return None;
                }
                match word.compare_exchange_weak(
                    now,
                    now + SHARED,
                    Ordering::Acquire,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => break,
                    Err(other) => now = other,
                }
            }
        }
        let page = &self.arena[(seen & FRAME) as usize];
        let (at, found) = page.find(page.header(), key);
        if found {
            page.copy(page.slot(at), out);
        }
        if leaf == Leaf::Shared {
            word.fetch_sub(SHARED, Ordering::Release);
        } else if !self.still(id, seen) {
            return None;
        }
        Some(found)
    }

    /// Repeats until no writer came between; counts the repetitions.
    #[inline]
    pub fn get(&self, leaf: Leaf, key: &[u8], out: &mut CellBuf, retries: &mut u64) -> bool {
        loop {
            if let Some(found) = self.try_get(leaf, key, out) {
                return found;
            }
            *retries += 1;
            std::hint::spin_loop();
        }
    }

    /// As `get`, as the engine would: a hit never waits, a miss would.
    pub async fn get_async(&self, leaf: Leaf, key: &[u8], out: &mut CellBuf) -> bool {
        loop {
            if let Some(found) = self.try_get(leaf, key, out) {
                return found;
            }
            std::future::poll_fn(|context| {
                context.waker().wake_by_ref();
                std::task::Poll::<()>::Pending
            })
            .await;
        }
    }

    /// Overwrites a row under the leaf's exclusive latch.
    pub fn put(&self, key: &[u8], value: &[u8]) -> bool {
        loop {
            let Some((id, seen)) = self.descend(key) else {
                continue;
            };
            let free = seen & !LATCH;
            let word = &self.translation[id as usize];
            if word
                .compare_exchange(free, free | LATCH, Ordering::Acquire, Ordering::Relaxed)
                .is_err()
            {
                std::hint::spin_loop();
                continue;
            }
            // The exclusive mark is seen before any changed word.
            fence(Ordering::Release);
            let page = &self.arena[(seen & FRAME) as usize];
            let (at, found) = page.find(page.header(), key);
            if found {
                page.overwrite(page.slot(at), value);
            }
            word.store(free.wrapping_add(VERSION), Ordering::Release);
            return found;
        }
    }
}
