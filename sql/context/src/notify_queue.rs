//! The queue of notifications, in the order of their commits: each is kept once, however many sessions listen.
//!
//! # Structure
//! ```text
//!   Channels   the queue, and the sessions that listen, by channel
//!   Reader     a session that listens: its channels, and its first notification in the queue that it has not read
//!   Inbox      part of each session: whether there is something for it, and its waker
//!   Room       a part of the queue's limit that a transaction has taken
//! ```
//! A notification to whose channel no session listens does not enter the queue. A session that has read everything for it keeps nothing in
//! the queue. One that has not keeps the first notification that it has not read and all later ones, those of other channels, too.
//!
//! # Invariants
//! - NTQ-1: a notification stays in the queue until each session that listened to its channel when it was sent has read it, stopped listening
//!   or ended.
//! - NTQ-2: the bytes of open transactions' rooms and of the queue are at most [`QUEUE_BYTES`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Poll, Waker};

use clearway_base::sync::Mutex;
use clearway_storage::ids::Lsn;

use super::backend::Backend;
use super::notify::{ENTRY_BYTES, Notification};

/// NOTIFY fails where the notifications that are not read, and those of open transactions, would hold more, in bytes (NTQ-2).
pub const QUEUE_BYTES: usize = 64 << 20;
/// A session gets as many at once.
const PORTION: usize = 1_000;
/// No queue holds more portions than this.
pub const QUEUE_PORTIONS: usize = QUEUE_BYTES / PORTION / ENTRY_BYTES + 1;
/// So many are looked at before another session may use the queue.
const LOOK: usize = 4_096;

/// Whether there are notifications for a session's client.
#[derive(Debug)]
pub struct Inbox {
    any: AtomicBool,
    heard: AtomicU64,
    waker: Mutex<Waker>,
}

impl Default for Inbox {
    fn default() -> Self {
        Inbox {
            any: AtomicBool::new(false),
            heard: AtomicU64::new(0),
            waker: Mutex::new("sql/inbox_waker", Waker::noop().clone()),
        }
    }
}

impl Inbox {
    /// Whether there is something; costs one load.
    #[inline]
    pub fn has_any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// The highest commit of which the session was told (NTF-4).
    pub fn heard(&self) -> Lsn {
        Lsn(self.heard.load(Ordering::Relaxed))
    }

    /// Ready when there is something; else the waker is woken then.
    pub fn poll_any(&self, waker: &Waker) -> Poll<()> {
        if self.has_any() {
            return Poll::Ready(());
        }
        let mut slot = self.waker.lock();
        if !slot.will_wake(waker) {
            *slot = waker.clone();
        }
        drop(slot);
        if self.has_any() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn wake(&self) {
        let waker = self.waker.lock().clone();
        waker.wake();
    }
}

/// A part of the queue's limit; given back when it is dropped.
#[derive(Debug)]
pub struct Room {
    taken: Arc<AtomicUsize>,
    bytes: usize,
}

impl Room {
    /// Takes more. False: the queue has no more (NTQ-2).
    pub fn grow(&mut self, bytes: usize) -> bool {
        let more = |taken: usize| Some(taken + bytes).filter(|sum| *sum <= QUEUE_BYTES);
        let grown = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        self.bytes += if grown { bytes } else { 0 };
        grown
    }

    /// Gives a part back.
    pub fn shrink(&mut self, bytes: usize) {
        assert!(bytes <= self.bytes, "a room gives back what it has");
        self.bytes -= bytes;
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

#[derive(Debug)]
struct Reader {
    backend: Arc<Backend>,
    database: u32,
    /// Its channels; notifications from this number on are for it.
    channels: BTreeMap<Arc<str>, u64>,
    /// The number of the first notification for it that it has not read.
    unread: Option<u64>,
}

#[derive(Debug, Default)]
struct Queue {
    /// The number of the first entry.
    first: u64,
    entries: VecDeque<(u32, Notification)>,
    bytes: usize,
    readers: BTreeMap<i32, Reader>,
    /// The sessions that listen, by database and channel.
    listeners: BTreeMap<(u32, Arc<str>), BTreeSet<i32>>,
    /// How many readers have this number as their first unread one.
    unread: BTreeMap<u64, usize>,
}

impl Queue {
    fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    fn set_unread(&mut self, pid: i32, unread: Option<u64>) {
        let Some(reader) = self.readers.get_mut(&pid) else { return };
        let before = std::mem::replace(&mut reader.unread, unread);
        reader.backend.inbox.any.store(unread.is_some(), Ordering::Release);
        if let Some(count) = before.and_then(|before| self.unread.get_mut(&before)) {
            *count -= 1;
        }
        if let Some(number) = unread {
            *self.unread.entry(number).or_default() += 1;
        }
    }

    /// NTQ-1: removes what every reader has read; how many bytes that were.
    fn trim(&mut self) -> usize {
        while self.unread.first_key_value().is_some_and(|(_, count)| *count == 0) {
            self.unread.pop_first();
        }
        let keep = self.unread.first_key_value().map_or_else(|| self.end(), |(number, _)| *number);
        let mut bytes = 0;
        while self.first < keep
            && let Some((_, notification)) = self.entries.pop_front()
        {
            self.first += 1;
            bytes += notification.bytes();
        }
        self.bytes -= bytes;
        bytes
    }

    fn unlisten(&mut self, pid: i32, database: u32, channel: &Arc<str>) {
        let key = (database, channel.clone());
        if let Some(pids) = self.listeners.get_mut(&key) {
            pids.remove(&pid);
            if pids.is_empty() {
                self.listeners.remove(&key);
            }
        }
        let Some(reader) = self.readers.get_mut(&pid) else { return };
        reader.channels.remove(channel);
        if reader.channels.is_empty() {
            self.set_unread(pid, None);
            self.readers.remove(&pid);
        }
    }

    /// Reads on for a session; true: there is nothing more for it.
    fn read(&mut self, pid: i32, list: &mut Vec<Notification>) -> bool {
        let Some((reader, unread)) = self.readers.get(&pid).and_then(|reader| Some((reader, reader.unread?))) else {
            return true;
        };
        let (mut number, begin) = (unread, (unread - self.first) as usize);
        for (database, notification) in self.entries.range(begin..).take(LOOK) {
            if list.len() == PORTION {
                break;
            }
            let since = reader.channels.get(&notification.channel);
            if *database == reader.database && since.is_some_and(|since| *since <= number) {
                list.push(notification.clone());
            }
            number += 1;
        }
        let is_end = number == self.end();
        self.set_unread(pid, (!is_end).then_some(number));
        is_end
    }
}

/// The queue, and which sessions listen to what, in all databases.
#[derive(Debug)]
pub struct Channels {
    queue: Mutex<Queue>,
    used: AtomicBool,
    taken: Arc<AtomicUsize>,
}

impl Default for Channels {
    fn default() -> Self {
        let queue = Mutex::new("sql/channels", Queue::default());
        Channels { queue, used: AtomicBool::new(false), taken: Arc::default() }
    }
}

impl Channels {
    /// An empty room.
    pub fn room(&self) -> Room {
        Room { taken: self.taken.clone(), bytes: 0 }
    }

    pub(super) fn listen(&self, database: u32, channel: &Arc<str>, backend: &Arc<Backend>) {
        self.used.store(true, Ordering::Relaxed);
        let mut queue = self.queue.lock();
        let end = queue.end();
        let new = || Reader { backend: backend.clone(), database, channels: BTreeMap::new(), unread: None };
        queue.readers.entry(backend.pid).or_insert_with(new).channels.entry(channel.clone()).or_insert(end);
        queue.listeners.entry((database, channel.clone())).or_default().insert(backend.pid);
    }

    pub(super) fn unlisten(&self, database: u32, channel: &Arc<str>, backend: &Arc<Backend>) {
        let mut queue = self.queue.lock();
        queue.unlisten(backend.pid, database, channel);
        let bytes = queue.trim();
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// How much of the queue is taken by notifications that are not read, from 0 to 1.
    pub fn usage(&self) -> f64 {
        self.queue.lock().bytes as f64 / QUEUE_BYTES as f64
    }

    /// Whether any session has listened since the server began.
    pub fn in_use(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// A session has ended.
    pub fn leave(&self, backend: &Backend) {
        let mut queue = self.queue.lock();
        let Some(reader) = queue.readers.get(&backend.pid) else { return };
        let (database, channels) = (reader.database, reader.channels.keys().cloned().collect::<Vec<_>>());
        for channel in channels {
            queue.unlisten(backend.pid, database, &channel);
        }
        let bytes = queue.trim();
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The next notifications for a session's client, oldest first; empty: there are none. If there are more than a portion, the inbox
    /// says so.
    pub fn take(&self, backend: &Backend) -> Vec<Notification> {
        let mut list = Vec::new();
        let mut is_end = false;
        while !is_end && list.len() < PORTION {
            let mut queue = self.queue.lock();
            is_end = queue.read(backend.pid, &mut list);
            let bytes = queue.trim();
            self.taken.fetch_sub(bytes, Ordering::Relaxed);
        }
        let last = list.iter().map(|notification| notification.commit.0).max().unwrap_or(0);
        backend.inbox.heard.fetch_max(last, Ordering::Relaxed);
        list
    }

    /// Puts the notifications of a transaction into the queue, those to which a session listens; they keep their part of the room.
    pub(super) fn send(&self, database: u32, notifications: impl Iterator<Item = Notification>, mut room: Room) {
        let mut woken: BTreeMap<i32, Arc<Backend>> = BTreeMap::new();
        let mut queue = self.queue.lock();
        // The listeners of a channel are told once for each transaction.
        let mut listened: BTreeMap<Arc<str>, bool> = BTreeMap::new();
        for notification in notifications {
            let number = queue.end();
            let is_listened = match listened.get(&notification.channel) {
                Some(is_listened) => *is_listened,
                None => {
                    let pids = queue.listeners.get(&(database, notification.channel.clone())).cloned();
                    for pid in pids.iter().flatten() {
                        queue.note_unread(*pid, number, &mut woken);
                    }
                    listened.insert(notification.channel.clone(), pids.is_some());
                    pids.is_some()
                }
            };
            if is_listened {
                let bytes = notification.bytes();
                room.bytes -= bytes;
                queue.bytes += bytes;
                queue.entries.push_back((database, notification));
            }
        }
        drop(queue);
        woken.values().for_each(|backend| backend.inbox.wake());
    }
}

impl Queue {
    /// A notification with this number is for a session: the session is to be woken, if it had read everything.
    fn note_unread(&mut self, pid: i32, number: u64, woken: &mut BTreeMap<i32, Arc<Backend>>) {
        let Some(reader) = self.readers.get(&pid).filter(|reader| reader.unread.is_none()) else { return };
        woken.insert(pid, reader.backend.clone());
        self.set_unread(pid, Some(number));
    }
}
