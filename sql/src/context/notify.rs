//! LISTEN and NOTIFY: what a transaction will notify, which sessions listen, and the inbox of each session.
//!
//! # Life of a notification
//! ```text
//! NOTIFY -> the transaction keeps it -> the transaction has committed, and the commit is durable -> the inbox of each listener
//!        -> the listener is idle and outside of a transaction -> its client
//! ```
//!
//! # Invariants
//! - NTF-1: a notification reaches an inbox only when its transaction's commit is durable. A rollback, also to a savepoint, discards the
//!   notifications made since.
//! - NTF-2: a client gets a notification only while its session is outside of a transaction: before ReadyForQuery, or while the session
//!   waits for the client.
//! - NTF-3: NOTIFY fails while the notifications in all inboxes and those of its own transaction hold [`QUEUE_BYTES`] or more.
//! - NTF-4: a session knows the highest commit whose notifications its client has received: later replies may depend on that commit
//!   (ARS-1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Poll, Waker};

use clearway_base::sync::Mutex;
use clearway_storage::ids::Lsn;

use super::backend::Backend;
use crate::error::{Result, SqlError, code};

/// A payload is shorter than this, in bytes.
const PAYLOAD_MAX: usize = 8_000;
/// The name of a channel is shorter than this, in bytes.
const CHANNEL_MAX: usize = 64;
/// NOTIFY fails while undelivered notifications hold as much as this, in bytes (NTF-3).
pub const QUEUE_BYTES: usize = 64 << 20;

/// A notification.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Notification {
    /// The session that notified.
    pub pid: i32,
    /// The channel.
    pub channel: Arc<str>,
    /// The payload.
    pub payload: Arc<str>,
    /// The commit that sent it; everything before it is durable.
    pub commit: Lsn,
}

impl Notification {
    fn bytes(&self) -> usize {
        self.channel.len() + self.payload.len() + size_of::<Notification>()
    }
}

/// Notifications that wait for a session's client.
#[derive(Debug)]
pub struct Inbox {
    any: AtomicBool,
    heard: AtomicU64,
    list: Mutex<Vec<Notification>>,
    waker: Mutex<Waker>,
}

impl Default for Inbox {
    fn default() -> Self {
        Inbox {
            any: AtomicBool::new(false),
            heard: AtomicU64::new(0),
            list: Mutex::new("sql/inbox", Vec::new()),
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

    fn put(&self, notification: Notification) {
        self.list.lock().push(notification);
        self.any.store(true, Ordering::Release);
        let waker = self.waker.lock().clone();
        waker.wake();
    }
}

type Listeners = BTreeMap<(u32, Arc<str>), Vec<Arc<Backend>>>;

/// Who listens to what, in all databases.
#[derive(Debug)]
pub struct Channels {
    listeners: Mutex<Listeners>,
    used: AtomicBool,
    bytes: AtomicUsize,
}

impl Default for Channels {
    fn default() -> Self {
        Channels {
            listeners: Mutex::new("sql/channels", BTreeMap::new()),
            used: AtomicBool::new(false),
            bytes: AtomicUsize::new(0),
        }
    }
}

impl Channels {
    fn listen(&self, database: u32, channel: &Arc<str>, backend: &Arc<Backend>) {
        self.used.store(true, Ordering::Relaxed);
        let mut listeners = self.listeners.lock();
        let list = listeners.entry((database, channel.clone())).or_default();
        if !list.iter().any(|other| Arc::ptr_eq(other, backend)) {
            list.push(backend.clone());
        }
    }

    fn unlisten(&self, database: u32, channel: &Arc<str>, backend: &Arc<Backend>) {
        let mut listeners = self.listeners.lock();
        let key = (database, channel.clone());
        if let Some(list) = listeners.get_mut(&key) {
            list.retain(|other| !Arc::ptr_eq(other, backend));
            if list.is_empty() {
                listeners.remove(&key);
            }
        }
    }

    /// How much of the room for notifications is taken, from 0 to 1.
    pub fn usage(&self) -> f64 {
        self.bytes.load(Ordering::Relaxed) as f64 / QUEUE_BYTES as f64
    }

    /// Whether any session has listened since the server began.
    pub fn in_use(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// A session has ended.
    pub fn leave(&self, backend: &Backend) {
        let mut listeners = self.listeners.lock();
        listeners.retain(|_, list| {
            list.retain(|other| other.pid != backend.pid);
            !list.is_empty()
        });
        drop(listeners);
        self.take(backend);
    }

    /// What waits for a session's client.
    pub fn take(&self, backend: &Backend) -> Vec<Notification> {
        let inbox = &backend.inbox;
        let list = {
            let mut list = inbox.list.lock();
            inbox.any.store(false, Ordering::Release);
            std::mem::take(&mut *list)
        };
        self.bytes.fetch_sub(list.iter().map(Notification::bytes).sum(), Ordering::Relaxed);
        let last = list.iter().map(|notification| notification.commit.0).max().unwrap_or(0);
        inbox.heard.fetch_max(last, Ordering::Relaxed);
        list
    }

    fn send(&self, database: u32, notification: &Notification) {
        let list = self.listeners.lock().get(&(database, notification.channel.clone())).cloned();
        for listener in list.unwrap_or_default() {
            self.bytes.fetch_add(notification.bytes(), Ordering::Relaxed);
            listener.inbox.put(notification.clone());
        }
    }
}

#[derive(Clone, Debug)]
enum Change {
    Listen(Arc<str>),
    Unlisten(Arc<str>),
    UnlistenAll,
}

/// What the open transaction of a session has to tell, and to what the session listens.
#[derive(Debug, Default)]
pub struct Notifying {
    changes: Vec<Change>,
    pending: Vec<Notification>,
    seen: BTreeSet<(Arc<str>, Arc<str>)>,
    bytes: usize,
    listening: BTreeSet<Arc<str>>,
}

/// A point in what a transaction has to tell.
#[derive(Clone, Copy, Debug, Default)]
pub struct NotifyMark {
    changes: usize,
    pending: usize,
}

impl Notifying {
    /// Whether the transaction has anything to tell or changes to what the session listens.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.pending.is_empty()
    }

    /// LISTEN.
    pub fn listen(&mut self, channel: &str) {
        self.changes.push(Change::Listen(channel.into()));
    }

    /// UNLISTEN; none: all.
    pub fn unlisten(&mut self, channel: Option<&str>) {
        self.changes.push(channel.map_or(Change::UnlistenAll, |channel| Change::Unlisten(channel.into())));
    }

    /// NOTIFY. A notification that the transaction has already made is not repeated.
    ///
    /// # Errors
    /// 22023 for a channel or a payload that is too long; 54000 if the inboxes are full.
    pub fn notify(&mut self, channels: &Channels, pid: i32, channel: &str, payload: &str) -> Result<()> {
        let bad = |message: &str| Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
        if channel.is_empty() {
            return bad("channel name cannot be empty");
        }
        if channel.len() >= CHANNEL_MAX {
            return bad("channel name too long");
        }
        if payload.len() >= PAYLOAD_MAX {
            return bad("payload string too long");
        }
        if channels.bytes.load(Ordering::Relaxed) + self.bytes >= QUEUE_BYTES {
            return Err(SqlError::new("54000", "too many notifications in the NOTIFY queue")); // NTF-3
        }
        let key: (Arc<str>, Arc<str>) = (channel.into(), payload.into());
        if self.seen.insert(key.clone()) {
            let notification = Notification { pid, channel: key.0, payload: key.1, commit: Lsn::ZERO };
            self.bytes += notification.bytes();
            self.pending.push(notification);
        }
        Ok(())
    }

    /// The channels to which the session listens.
    pub fn listening(&self) -> impl Iterator<Item = &Arc<str>> {
        self.listening.iter()
    }

    /// A mark at the transaction's present point.
    pub fn mark(&self) -> NotifyMark {
        NotifyMark { changes: self.changes.len(), pending: self.pending.len() }
    }

    /// NTF-1: a rollback to a mark.
    pub fn roll_back_to(&mut self, mark: NotifyMark) {
        self.changes.truncate(mark.changes);
        for gone in self.pending.drain(mark.pending.min(self.pending.len())..) {
            self.bytes -= gone.bytes();
            self.seen.remove(&(gone.channel, gone.payload));
        }
    }

    /// NTF-1: the transaction is rolled back.
    pub fn roll_back(&mut self) {
        self.changes.clear();
        self.pending.clear();
        self.seen.clear();
        self.bytes = 0;
    }

    /// The transaction has committed, and that is durable.
    pub fn committed(&mut self, channels: &Channels, database: u32, backend: &Arc<Backend>, commit: Lsn) {
        for change in self.changes.drain(..) {
            match change {
                Change::Listen(channel) => {
                    channels.listen(database, &channel, backend);
                    self.listening.insert(channel);
                }
                Change::Unlisten(channel) => {
                    channels.unlisten(database, &channel, backend);
                    self.listening.remove(&channel);
                }
                Change::UnlistenAll => {
                    for channel in std::mem::take(&mut self.listening) {
                        channels.unlisten(database, &channel, backend);
                    }
                }
            }
        }
        for notification in self.pending.drain(..) {
            channels.send(database, &Notification { commit, ..notification });
        }
        self.seen.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use clearway_base::waits::SessionStats;

    use super::*;
    use crate::context::backend::{Backends, Who};

    fn payloads(channels: &Channels, backend: &Backend) -> Vec<String> {
        channels.take(backend).iter().map(|n| n.payload.to_string()).collect()
    }

    #[test]
    fn a_notification_reaches_listeners_of_its_database_after_the_commit_alone() {
        let backends = Arc::new(Backends::default());
        let (one, two) = (
            backends.list(SessionStats::new("client"), 1, Who::default()),
            backends.list(SessionStats::new("client"), 2, Who::default()),
        );
        let channels = &backends.channels;
        let mut listener = Notifying::default();
        listener.listen("a");
        listener.committed(channels, 1, two.backend(), Lsn(100));
        let mut sender = Notifying::default();
        sender.notify(channels, 1, "a", "first").expect("noted");
        let mark = sender.mark();
        sender.notify(channels, 1, "a", "taken back").expect("noted");
        sender.roll_back_to(mark);
        sender.notify(channels, 1, "a", "first").expect("said already");
        sender.notify(channels, 1, "a", "taken back").expect("said anew");
        sender.notify(channels, 1, "b", "nobody listens").expect("noted");
        assert!(!two.backend().inbox.has_any(), "NTF-1");
        sender.committed(channels, 1, one.backend(), Lsn(100));
        assert!(two.backend().inbox.has_any());
        assert_eq!(payloads(channels, two.backend()), ["first", "taken back"]);
        assert!(!two.backend().inbox.has_any() && !one.backend().inbox.has_any());
        sender.notify(channels, 1, "a", "another database").expect("noted");
        sender.committed(channels, 2, one.backend(), Lsn(200));
        assert!(!two.backend().inbox.has_any());
        sender.notify(channels, 1, "a", "rolled back").expect("noted");
        sender.roll_back();
        sender.committed(channels, 1, one.backend(), Lsn(100));
        assert!(!two.backend().inbox.has_any(), "NTF-1");
    }

    #[test]
    fn inboxes_do_not_grow_without_bound_and_are_empty_when_their_session_has_gone() {
        let backends = Arc::new(Backends::default());
        let two = backends.list(SessionStats::new("client"), 2, Who::default());
        let channels = &backends.channels;
        let mut both = Notifying::default();
        both.listen("a");
        both.committed(channels, 1, two.backend(), Lsn(100));
        let payload = "x".repeat(PAYLOAD_MAX - 10);
        let mut sent = 0;
        let full = loop {
            match both.notify(channels, 1, "a", &format!("{sent:06}{payload}")) {
                Ok(()) => both.committed(channels, 1, two.backend(), Lsn(100)),
                Err(e) => break e,
            }
            sent += 1;
        };
        assert_eq!(full.code(), "54000", "NTF-3");
        assert!(sent * PAYLOAD_MAX > QUEUE_BYTES / 2, "{sent}");
        drop(two);
        assert!(channels.usage() == 0.0);
        assert_eq!(both.notify(channels, 1, "a", &"x".repeat(PAYLOAD_MAX)).expect_err("too long").code(), "22023");
    }
}
