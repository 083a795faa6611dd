//! The messages of a session: they are processed in order, answers are buffered until Sync, and a batch's implicit transaction lasts until
//! Sync.
//!
//! # Life of a batch
//! messages (after an error everything up to Sync is skipped) -> Sync ends the implicit transaction -> ReadyForQuery is buffered -> the session
//! waits until everything on which the answers depend is durable -> the answers are sent.
//!
//! # Invariants
//! - TALK-1: no byte leaves before `before_send` has returned since the last call into the session.
//! - TALK-3: a panic ends only the session in which it happens: the client is told XX000, the transaction is rolled back and its locks are
//!   released. A panic under a page latch has already poisoned the database.
//! - TALK-4: what arrives after a session was told to end is not run, also where it arrives at the same moment. Messages that had been read
//!   before may still run.
//! - TALK-2: a session counts as in progress from its first message until its answer has been sent, and never while it waits for its client's
//!   next message.

#[path = "turns_taken.rs"]
mod turns_taken;
#[path = "whole_read.rs"]
mod whole_read;

use std::any::Any;
use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use clearway_base::memory;
use clearway_base::sync::sleep;
use clearway_base::waits;
use clearway_sql::SqlError;
use clearway_sql::context::backend::Listed;
use clearway_sql::context::log_line::{Line, Severity};
use clearway_sql::context::notify_queue::QUEUE_PORTIONS;
use clearway_sql::session::{AtOnce, Backend, BackendState, Backends, Reason, TransactionStatus};

use super::channel::{Channel, ready};
use super::start::Started;
use crate::server::Server;
use crate::sessions::{Session, Sessions, is_fatal};
use crate::turns::Turns;
use crate::wire::backend;
use crate::wire::frontend::{self, Frame, Framing, Message, Target};

/// How long a client may take to read why its session ends.
const FAREWELL: Duration = Duration::from_secs(2);

/// Longer texts are not tried at once, in bytes.
const TEXT_KEPT: usize = 4 << 10;

/// The message Sync.
const SYNC: &[u8] = b"S\0\0\0\x04";

/// Why a session ends.
enum End {
    /// The client is gone or has said so.
    Quiet,
    /// The client is told.
    Fatal(SqlError),
}

/// What ends a wait for the client.
enum IdleEnd {
    /// The client has sent something.
    Client,
    /// Another session has notified this one.
    Notified,
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        End::Quiet
    }
}

/// What has come of a message without a wait.
enum Immediate {
    /// All that it wants.
    Done,
    /// All but that the answer must still leave.
    Unsent,
    /// All but the commit and what comes after it.
    Uncommitted,
    /// Nothing: the message is handled on the path that may wait.
    Nothing,
}

struct Talk<'a, D: Sessions> {
    channel: Channel,
    session: D::Session,
    backend: Arc<Backend>,
    backends: &'a Backends,
    /// After an error, until Sync.
    skipping: bool,
    progress: Progress<'a, D>,
    /// A portal's or statement's name, or a short text, so that the message's bytes need not outlive the reading of the next.
    name: String,
    turns: &'a Turns,
    /// What the session had changed at the last answer, and answers since it changed anything.
    changes: u64,
    reads: u8,
}

/// TALK-2, also when a poll panics.
struct Progress<'a, D: Sessions> {
    sessions: &'a D,
    counted: bool,
}

impl<D: Sessions> Progress<'_, D> {
    fn set(&mut self, counted: bool) {
        if self.counted != counted {
            self.counted = counted;
            self.sessions.in_progress(counted);
        }
    }
}

impl<D: Sessions> Drop for Progress<'_, D> {
    fn drop(&mut self) {
        self.set(false);
    }
}

/// Talks until the session ends, then rolls back what it left open.
pub async fn talk<D: Sessions>(server: &Server<D>, started: Started<D::Session>) {
    let Started { channel, session, listed } = started;
    let listed: Listed = listed;
    let backend = Arc::clone(listed.backend());
    let progress = Progress { sessions: server.sessions.as_ref(), counted: false };
    let mut talk = Talk::<D> {
        channel,
        session,
        backend,
        backends: &server.backends,
        skipping: false,
        progress,
        name: String::new(),
        turns: &server.turns,
        changes: 0,
        reads: 0,
    };
    let end = {
        let types = talk.session.types();
        let run = pin!(talk.run());
        let mut run = clearway_sql::types::user::within(types, run);
        poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| pin!(&mut run).poll(cx))) {
            Ok(end) => end,
            Err(panic) => Poll::Ready(End::Fatal(panicked(&*panic))), // TALK-3
        })
        .await
    };
    if let End::Fatal(error) = end {
        talk.farewell(&error).await;
    }
    let Talk { channel, session, progress, .. } = talk;
    drop(channel);
    session.end().await;
    drop(progress);
    server.log_disconnected(listed.backend());
    drop(listed);
}

/// The error for a client whose session panicked.
fn panicked(panic: &(dyn Any + Send)) -> SqlError {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text");
    SqlError::new("XX000", format!("internal error: {text}"))
}

impl<D: Sessions> Talk<'_, D> {
    /// Tells the client why its session ends. TALK-1: what stands before that may depend on commits that are not durable; where they
    /// don't become it, it is taken back, and the reason, which depends on nothing, goes out alone.
    async fn farewell(&mut self, error: &SqlError) {
        self.log_error(Severity::Fatal, error, None);
        let durable = clearway_base::sync::timeout(FAREWELL, self.session.before_send()).await;
        if !matches!(durable, Ok(Ok(()))) {
            self.channel.take_back();
        }
        self.channel.error("FATAL", error, None);
        let work = async {
            let _ = self.channel.send().await;
            self.channel.close().await;
        };
        let _ = clearway_base::sync::timeout(FAREWELL, work).await;
    }

    async fn run(&mut self) -> End {
        loop {
            let step = match self.channel.buffered() {
                Ok(Framing::Whole(frame)) => match self.handle_in_turn(&frame).await {
                    Immediate::Done => continue,
                    Immediate::Unsent => self.rest_of_ready().await,
                    Immediate::Uncommitted => self.sync().await,
                    Immediate::Nothing if !self.channel.is_recoded() || self.skipping => self.handle(&frame).await,
                    Immediate::Nothing => match self.channel.in_utf8(&frame) {
                        Ok(frame) => self.handle(&frame).await,
                        Err(error) => self.is_no_text(frame.tag, error).await,
                    },
                },
                Ok(Framing::Needs(missing)) => match self.listen(missing).await {
                    Ok(()) => {
                        self.give_way().await;
                        continue;
                    }
                    end => end,
                },
                Err(error) => return End::Fatal(error.to_sql()),
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    /// Waits for the client, and tells it of notifications meanwhile (NTF-2).
    async fn listen(&mut self, missing: usize) -> Result<(), End> {
        match self.wait_for_client(missing).await? {
            IdleEnd::Client => Ok(()),
            IdleEnd::Notified => {
                self.notify_client();
                self.flush().await
            }
        }
    }

    /// Waits for the client, for a notification, for a termination, and for the timeouts of idle sessions.
    async fn wait_for_client(&mut self, missing: usize) -> Result<IdleEnd, End> {
        self.progress.set(false); // TALK-2
        self.session.give_turn_back();
        self.session.take_ended_ns(); // a Sync that comes later ends no earlier than it comes
        self.channel.rest();
        let timeouts = self.session.timeouts();
        let (limit_ms, reason) = match self.session.status() {
            TransactionStatus::Idle => (timeouts.idle_session_ms, Reason::IdleSession),
            _ => (timeouts.idle_in_transaction_ms, Reason::IdleInTransaction),
        };
        let idle = self.session.status() == TransactionStatus::Idle;
        let (interrupt, inbox) = (&self.backend.interrupt, &self.backend.inbox);
        let mut read = pin!(self.channel.read(missing));
        let mut timer = pin!((limit_ms != 0).then(|| sleep(Duration::from_millis(limit_ms))).map(Box::pin));
        loop {
            let mut raised = pin!(interrupt.raised());
            let woken = poll_fn(|cx| {
                if let Poll::Ready(read) = read.as_mut().poll(cx) {
                    return Poll::Ready(Ok(Some(read)));
                }
                // NTF-2
                if idle && inbox.poll_any(cx.waker()).is_ready() {
                    return Poll::Ready(Ok(None));
                }
                if timer.as_mut().as_pin_mut().is_some_and(|timer| timer.poll(cx).is_ready()) {
                    return Poll::Ready(Err(reason));
                }
                raised.as_mut().poll(cx).map(Err)
            })
            .await;
            match woken {
                Ok(Some(Ok(0) | Err(_))) => return Err(End::Quiet),
                Ok(Some(Ok(_))) => {
                    let ends = interrupt.pending().filter(|reason| reason.is_fatal()); // TALK-4
                    return ends.map_or(Ok(IdleEnd::Client), |reason| Err(End::Fatal(reason.error())));
                }
                Ok(None) => return Ok(IdleEnd::Notified),
                Err(reason) if reason.is_fatal() => return Err(End::Fatal(reason.error())),
                Err(_) => interrupt.forget(), // nothing runs that it could cancel
            }
        }
    }

    /// NTF-2
    fn notify_client(&mut self) {
        for n in self.backends.channels.take(&self.backend) {
            self.channel.notification(n.pid, &n.channel, &n.payload);
        }
    }

    /// Does what a message wants as far as that needs no wait and meets no error. The states of `handle` and of all that it awaits are
    /// thousands of bytes, which most messages never touch so.
    fn handle_now(&mut self, frame: &Frame) -> Immediate {
        use clearway_sql::session::Client as _;
        if self.skipping
            || self.channel.is_full()
            || self.channel.is_recoded()
            || !matches!(frame.tag, b'B' | b'D' | b'E' | b'S' | b'Q')
        {
            return Immediate::Nothing;
        }
        self.progress.set(true);
        // The messages for the unnamed portal, without limits, have the same bytes always: they need no decoding.
        let done = match (frame.tag, self.channel.body(frame)) {
            (b'D', [b'P', 0]) => self.session.try_describe_portal("", &mut self.channel),
            (b'E', [0, 0, 0, 0, 0]) => {
                self.backend.interrupt.forget();
                match self.channel.unread().starts_with(SYNC) {
                    true => self.session.try_execute_last(&mut self.channel),
                    false => self.session.try_execute("", &mut self.channel),
                }
            }
            (b'S', []) if self.session.try_sync() => return self.ready_now(),
            (b'B', _) => return self.bind_now(frame),
            (b'Q', body) if body.len() <= TEXT_KEPT => {
                let Ok(Message::Query(text)) = frontend::decode(b'Q', body) else { return Immediate::Nothing };
                self.name.clear();
                self.name.push_str(text);
                return self.query_now();
            }
            _ => false,
        };
        if done { Immediate::Done } else { Immediate::Nothing }
    }

    /// The same for the text of a simple query, which is in `name`.
    fn query_now(&mut self) -> Immediate {
        self.backend.interrupt.forget();
        let ran = self.session.try_simple(&self.name, &mut self.channel);
        match ran {
            AtOnce::Nothing => Immediate::Nothing,
            AtOnce::Uncommitted => Immediate::Uncommitted,
            AtOnce::Done => self.ready_now(),
        }
    }

    /// Sends ReadyForQuery and everything before it to the client, if that needs no wait.
    fn ready_now(&mut self) -> Immediate {
        let status = self.session.status();
        if status == TransactionStatus::Idle && self.backend.inbox.has_any() {
            self.notify_client();
        }
        ready(&mut self.channel, status);
        if !self.session.may_send() || !self.channel.send_now() {
            return Immediate::Unsent; // TALK-1
        }
        // Nothing was waited for since its last statement ended: the clock is not read again.
        let ended_ns = self.session.take_ended_ns();
        self.rests(status, ended_ns);
        Immediate::Done
    }

    /// Since `since_ns`; 0: since now.
    fn rests(&mut self, status: TransactionStatus, since_ns: u64) {
        let now_ns = if since_ns == 0 { waits::now_ns() } else { since_ns };
        let state = match status {
            TransactionStatus::Idle => BackendState::Idle,
            TransactionStatus::InBlock => BackendState::IdleInTransaction,
            TransactionStatus::Failed => BackendState::IdleInTransactionAborted,
        };
        self.backend.rests(state, now_ns);
        let changes = self.session.changes();
        if changes == self.changes {
            self.reads = self.reads.saturating_add(1);
        } else {
            self.turns.wrote(now_ns, self.backend.pid, changes - self.changes, self.session.row_written());
            (self.changes, self.reads) = (changes, 0);
        }
        memory::end_statement();
        self.progress.set(false);
    }

    async fn handle(&mut self, frame: &Frame) -> Result<(), End> {
        self.session.give_turn_back();
        self.progress.set(true);
        if self.skipping && !matches!(frame.tag, b'S' | b'X') {
            return Ok(());
        }
        if frame.tag == b'Q' {
            return self.query(frame).await;
        }
        if frame.tag == b'F' {
            return Box::pin(self.function_call(frame)).await;
        }
        let failed = match frontend::decode(frame.tag, self.channel.body(frame)) {
            Err(error) if error.is_fatal() => return Err(End::Fatal(error.to_sql())),
            Err(error) => Err(error.to_sql()),
            Ok(Message::Sync) => return self.sync().await,
            Ok(Message::Flush) => return self.flush().await,
            Ok(Message::Terminate) => return Err(End::Quiet),
            // Left over from a COPY that has failed meanwhile.
            Ok(Message::CopyData(_) | Message::CopyDone | Message::CopyFail(_)) => return Ok(()),
            Ok(Message::Password(_) | Message::Query(_) | Message::FunctionCall(_)) => {
                let text = format!("invalid frontend message type {}", frame.tag);
                return Err(End::Fatal(SqlError::new("08P01", text)));
            }
            Ok(Message::Parse { name, sql, types }) => {
                if let Err(error) = self.session.parse(name, sql, &types).await {
                    let text = sql.to_owned();
                    return self.refuse(error, Some(&text)).await;
                }
                backend::parse_complete(self.channel.output());
                Ok(())
            }
            Ok(Message::Bind(bind)) => {
                let bound = self.session.bind(&bind).await;
                bound.map(|()| backend::bind_complete(self.channel.output()))
            }
            Ok(Message::Close(target)) => {
                let closed = match target {
                    Target::Statement(name) => self.session.close_statement(name),
                    Target::Portal(name) => self.session.close_portal(name),
                };
                closed.map(|()| backend::close_complete(self.channel.output()))
            }
            Ok(Message::Describe(target)) => {
                let (is_portal, name) = match target {
                    Target::Statement(name) => (false, name),
                    Target::Portal(name) => (true, name),
                };
                self.name.clear();
                self.name.push_str(name);
                if is_portal {
                    self.session.describe_portal(&self.name, &mut self.channel).await
                } else {
                    self.session.describe_statement(&self.name, &mut self.channel).await
                }
            }
            Ok(Message::Execute { portal, max_rows }) => {
                self.name.clear();
                self.name.push_str(portal);
                self.backend.interrupt.forget();
                let limit_ms = self.session.timeouts().statement_ms;
                let work = pin!(self.session.execute(&self.name, max_rows, &mut self.channel));
                self.backend.interrupt.timed(limit_ms, work).await
            }
        };
        match failed {
            Ok(()) => self.make_room().await,
            Err(error) => self.refuse(error, None).await,
        }
    }

    /// A message whose text is none of the client's encoding.
    async fn is_no_text(&mut self, tag: u8, error: SqlError) -> Result<(), End> {
        self.progress.set(true);
        if !matches!(tag, b'Q' | b'F') {
            return self.refuse(error, None).await;
        }
        self.report(error, None)?;
        self.ready().await
    }

    async fn query(&mut self, frame: &Frame) -> Result<(), End> {
        let text: Arc<str> = match frontend::decode(frame.tag, self.channel.body(frame)) {
            Ok(Message::Query(text)) => text.into(),
            Ok(_) => return Err(End::Quiet),
            Err(error) => {
                self.report(error.to_sql(), None)?;
                return self.ready().await;
            }
        };
        self.backend.runs(match clearway_sql::context::backend::redacted(&text) {
            Cow::Borrowed(_) => Arc::clone(&text),
            Cow::Owned(shown) => shown.into(),
        });
        self.backend.interrupt.forget();
        // Each statement of the text has its own timeout; the session keeps it.
        if let Err(error) = self.session.simple(&text, &mut self.channel).await {
            self.report(error, Some(&text))?;
        }
        self.ready().await
    }

    /// A function call is a batch of its own, as a simple query is.
    async fn function_call(&mut self, frame: &Frame) -> Result<(), End> {
        // The answer goes into the buffers of the connection, beside the bytes of the arguments.
        let body = self.channel.body(frame).to_vec();
        let called = match frontend::decode(frame.tag, &body) {
            Ok(Message::FunctionCall(call)) => {
                self.backend.calls();
                self.backend.interrupt.forget();
                self.session.function_call(&call, &mut self.channel).await
            }
            Ok(_) => return Err(End::Quiet),
            Err(error) => Err(error.to_sql()),
        };
        match called {
            Ok(value) => backend::function_call_response(self.channel.output(), value.as_deref()),
            // As in PostgreSQL, the log shows no statement: there is no text.
            Err(error) => self.report(error, Some(""))?,
        }
        self.ready().await
    }

    async fn sync(&mut self) -> Result<(), End> {
        self.skipping = false;
        if let Err(error) = self.session.sync(&mut self.channel).await {
            self.report(error, None)?;
        }
        self.ready().await
    }

    /// Sends ReadyForQuery and everything before it to the client.
    async fn ready(&mut self) -> Result<(), End> {
        let status = self.session.status();
        if status == TransactionStatus::Idle && self.backend.inbox.has_any() {
            self.notify_client();
            // A full queue; what is sent meanwhile comes while the session is idle.
            for _ in 1..QUEUE_PORTIONS {
                if !self.backend.inbox.has_any() {
                    break;
                }
                self.flush().await?;
                self.notify_client();
            }
        }
        ready(&mut self.channel, status);
        self.rest_of_ready().await
    }

    /// What is left of that: to wait and to send.
    async fn rest_of_ready(&mut self) -> Result<(), End> {
        self.flush().await?;
        self.session.take_ended_ns(); // the client was waited for since
        self.rests(self.session.status(), 0);
        Ok(())
    }

    /// Small answers of a long pipeline add up too.
    async fn make_room(&mut self) -> Result<(), End> {
        use clearway_sql::session::Client as _;
        if !self.channel.is_full() {
            return Ok(());
        }
        self.session.give_turn_back(); // TRN-3
        self.flush().await
    }

    /// Sends what there is; only a termination interrupts a client that does not read.
    async fn flush(&mut self) -> Result<(), End> {
        if !self.channel.has_output() {
            return Ok(());
        }
        self.session.before_send().await.map_err(End::Fatal)?; // TALK-1
        let mut send = pin!(self.channel.send());
        let interrupt = &self.backend.interrupt;
        let sent = poll_fn(|cx| {
            if let Poll::Ready(sent) = send.as_mut().poll(cx) {
                return Poll::Ready(sent.map_err(End::from));
            }
            loop {
                match pin!(interrupt.raised()).poll(cx) {
                    Poll::Ready(reason) if reason.is_fatal() => return Poll::Ready(Err(End::Fatal(reason.error()))),
                    Poll::Ready(_) => interrupt.forget(),
                    Poll::Pending => return Poll::Pending,
                }
            }
        });
        sent.await
    }

    /// An error of the extended protocol: everything up to Sync is skipped. It is sent at once: a client that has asked for its answers
    /// by Flush waits for it before it sends Sync.
    async fn refuse(&mut self, error: SqlError, text: Option<&str>) -> Result<(), End> {
        self.skipping = true;
        self.report(error, text)?;
        self.flush().await
    }

    /// Tells the log of an error. (Of deadlocks the lock manager has told it, with all participants.)
    fn log_error(&self, severity: Severity, error: &SqlError, text: Option<&str>) {
        if error.code() == "40P01" {
            return;
        }
        let fields = error.fields();
        let mut line = Line::new(severity, fields.code, fields.message.as_str()).of(&self.backend);
        line.detail = fields.detail.clone().unwrap_or_default();
        line.hint = fields.hint.clone().unwrap_or_default();
        let context = fields.names.iter().find(|(field, _)| *field == b'W');
        line.context = context.map(|(_, context)| context.clone()).unwrap_or_default();
        line.statement = match text {
            Some(text) => clearway_sql::context::backend::redacted(text).into_owned(),
            None if severity == Severity::Error => self.backend.activity.lock().query.to_string(),
            None => String::new(),
        };
        self.backends.log_line(line);
    }

    fn report(&mut self, error: SqlError, text: Option<&str>) -> Result<(), End> {
        if let Some(failure) = self.channel.take_failure() {
            return Err(End::Fatal(failure));
        }
        if error.code() == "08006" {
            return Err(End::Quiet); // the client was gone when the session wanted to write
        }
        if is_fatal(&error) {
            return Err(End::Fatal(error));
        }
        self.log_error(Severity::Error, &error, text);
        self.channel.error("ERROR", &error, text);
        Ok(())
    }
}
