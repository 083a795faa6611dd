//! LISTEN and NOTIFY: what a transaction will notify, and to what its session listens. The queue is in `notify_queue`.
//!
//! # Life of a notification
//! ```text
//! NOTIFY -> the transaction keeps it -> the transaction has committed, and the commit is durable -> the queue
//!        -> the listener is idle and outside of a transaction -> its client
//! ```
//!
//! # Invariants
//! - NTF-1: a notification reaches the queue only when its transaction's commit is durable. A rollback, also to a savepoint, discards the
//!   notifications made since.
//! - NTF-2: a client gets a notification only while its session is outside of a transaction: before ReadyForQuery, or while the session
//!   waits for the client.
//! - NTF-3: a notification has its part of the queue's limit from NOTIFY on, so a commit never finds the queue full. NOTIFY fails where the
//!   limit is reached (NTQ-2).
//! - NTF-4: a session knows the highest commit whose notifications its client has received: later replies may depend on that commit
//!   (ARS-1).

use std::collections::BTreeSet;
use std::sync::Arc;

use clearway_storage::ids::Lsn;

use super::backend::Backend;
use super::notify_queue::{Channels, Room};
use clearway_syntax::error::{Result, SqlError, code};

/// A payload is shorter than this, in bytes.
const PAYLOAD_MAX: usize = 8_000;
/// The name of a channel is shorter than this, in bytes.
const CHANNEL_MAX: usize = 64;
/// What a notification takes beside its texts: its entries in the lists, and the heads of its shared texts.
pub(super) const ENTRY_BYTES: usize = 2 * size_of::<Notification>() + 64;

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
    /// What it takes of the queue's limit.
    pub(super) fn bytes(&self) -> usize {
        self.channel.len() + self.payload.len() + ENTRY_BYTES
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
    room: Option<Room>,
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
    /// 22023 for a channel or a payload that is too long; 54000 if the queue is full.
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
        let key: (Arc<str>, Arc<str>) = (channel.into(), payload.into());
        if self.seen.contains(&key) {
            return Ok(());
        }
        let notification = Notification { pid, channel: key.0.clone(), payload: key.1.clone(), commit: Lsn::ZERO };
        if !self.room.get_or_insert_with(|| channels.room()).grow(notification.bytes()) {
            return Err(SqlError::new("54000", "too many notifications in the NOTIFY queue")); // NTF-3
        }
        self.seen.insert(key);
        self.pending.push(notification);
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
            if let Some(room) = &mut self.room {
                room.shrink(gone.bytes());
            }
            self.seen.remove(&(gone.channel, gone.payload));
        }
    }

    /// NTF-1: the transaction is rolled back.
    pub fn roll_back(&mut self) {
        self.changes.clear();
        self.pending.clear();
        self.seen.clear();
        self.room = None;
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
        if let Some(room) = self.room.take() {
            let sent = self.pending.drain(..).map(|notification| Notification { commit, ..notification });
            channels.send(database, sent, room);
        }
        self.seen.clear();
    }
}

#[cfg(test)]
mod tests {
    use clearway_base::waits::SessionStats;

    use super::*;
    use crate::backend::{Backends, ClientIdentity};
    use crate::notify_queue::QUEUE_BYTES;

    fn payloads(channels: &Channels, backend: &Backend) -> Vec<String> {
        channels.take(backend).iter().map(|n| n.payload.to_string()).collect()
    }

    #[test]
    fn a_notification_reaches_listeners_of_its_database_after_the_commit_alone() {
        let backends = Arc::new(Backends::default());
        let (one, two) = (
            backends.list(SessionStats::new("client"), 1, ClientIdentity::default()),
            backends.list(SessionStats::new("client"), 2, ClientIdentity::default()),
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

    /// NOTIFY and COMMIT until the queue is full; how many were sent.
    fn fill(channels: &Channels, sender: &mut Notifying, backend: &Arc<Backend>) -> usize {
        let payload = "x".repeat(PAYLOAD_MAX - 10);
        for sent in 0.. {
            match sender.notify(channels, 1, "a", &format!("{sent:06}{payload}")) {
                Ok(()) => sender.committed(channels, 1, backend, Lsn(100)),
                Err(error) => {
                    assert_eq!(error.code(), "54000", "NTF-3");
                    return sent;
                }
            }
        }
        unreachable!("the queue has a limit")
    }

    #[test]
    fn the_queue_does_not_grow_without_bound_and_is_empty_when_its_readers_have_gone() {
        let backends = Arc::new(Backends::default());
        let two = backends.list(SessionStats::new("client"), 2, ClientIdentity::default());
        let channels = &backends.channels;
        let mut both = Notifying::default();
        both.listen("a");
        both.committed(channels, 1, two.backend(), Lsn(100));
        let sent = fill(channels, &mut both, two.backend());
        assert!((QUEUE_BYTES / 2..QUEUE_BYTES).contains(&(sent * PAYLOAD_MAX)), "{sent}");
        drop(two);
        assert!(channels.usage() == 0.0);
        assert_eq!(both.notify(channels, 1, "a", &"x".repeat(PAYLOAD_MAX)).expect_err("too long").code(), "22023");
        both.notify(channels, 1, "a", "room again").expect("noted");
    }

    #[test]
    fn many_listeners_share_one_copy_and_the_slowest_holds_the_queue() {
        let backends = Arc::new(Backends::default());
        let channels = &backends.channels;
        let listed: Vec<_> =
            (1..=100).map(|pid| backends.list(SessionStats::new("client"), pid, ClientIdentity::default())).collect();
        for one in &listed {
            let mut listener = Notifying::default();
            listener.listen("a");
            listener.committed(channels, 1, one.backend(), Lsn(100));
        }
        let mut sender = Notifying::default();
        let sent = fill(channels, &mut sender, listed[0].backend());
        assert!(sent * PAYLOAD_MAX > QUEUE_BYTES / 2, "NTQ-2: {sent}, as with one listener");
        let read = |backend: &Arc<Backend>| {
            let mut all = Vec::new();
            while backend.inbox.has_any() {
                all.extend(payloads(channels, backend));
            }
            all
        };
        for one in &listed[1..] {
            let all = read(one.backend());
            assert!(all.len() == sent && all.is_sorted(), "NTQ-1: {} of {sent}", all.len());
        }
        assert!(sender.notify(channels, 1, "a", &"y".repeat(PAYLOAD_MAX - 1)).is_err(), "one has not read");
        assert_eq!(read(listed[0].backend()).len(), sent);
        sender.notify(channels, 1, "a", "room again").expect("noted");
        assert!(channels.usage() == 0.0);
    }

    #[test]
    fn open_transactions_have_their_part_of_the_limit_until_they_end() {
        let backends = Arc::new(Backends::default());
        let one = backends.list(SessionStats::new("client"), 1, ClientIdentity::default());
        let channels = &backends.channels;
        let (mut open, mut other) = (Notifying::default(), Notifying::default());
        let mark = open.mark();
        let fill = |notifying: &mut Notifying| {
            let payload = "x".repeat(PAYLOAD_MAX - 10);
            (0..).take_while(|i| notifying.notify(channels, 1, "a", &format!("{i:06}{payload}")).is_ok()).count()
        };
        assert!(fill(&mut open) > 0);
        assert_eq!(other.notify(channels, 1, "a", &"z".repeat(PAYLOAD_MAX - 1)).expect_err("full").code(), "54000");
        open.roll_back_to(mark);
        assert!(fill(&mut other) > 0, "NTQ-2: a rollback gives its part back");
        other.roll_back();
        assert!(fill(&mut open) > 0);
        drop(open);
        assert!(fill(&mut other) > 0, "a session that has gone gives its part back");
        // No session listens: a commit leaves nothing.
        other.committed(channels, 1, one.backend(), Lsn(100));
        assert!(fill(&mut Notifying::default()) > 0 && channels.usage() == 0.0);
    }

    #[test]
    fn a_reader_gets_what_came_after_its_listen_in_order() {
        let backends = Arc::new(Backends::default());
        let one = backends.list(SessionStats::new("client"), 1, ClientIdentity::default());
        let channels = &backends.channels;
        let (mut reader, mut sender) = (Notifying::default(), Notifying::default());
        let mut send = |channel: &str, payload: &str| {
            sender.notify(channels, 9, channel, payload).expect("noted");
            sender.committed(channels, 1, one.backend(), Lsn(100));
        };
        reader.listen("a");
        reader.committed(channels, 1, one.backend(), Lsn(100));
        send("a", "1");
        send("b", "too early");
        reader.listen("b");
        reader.committed(channels, 1, one.backend(), Lsn(100));
        send("b", "2");
        send("a", "3");
        send("c", "not asked for");
        assert_eq!(payloads(channels, one.backend()), ["1", "2", "3"]);
        send("b", "4");
        send("a", "5");
        reader.unlisten(Some("b"));
        reader.committed(channels, 1, one.backend(), Lsn(100));
        assert_eq!(payloads(channels, one.backend()), ["5"]);
        send("a", "6");
        reader.unlisten(None);
        reader.committed(channels, 1, one.backend(), Lsn(100));
        assert!(!one.backend().inbox.has_any() && payloads(channels, one.backend()).is_empty());
        assert!(channels.usage() == 0.0, "NTQ-1");
    }
}
