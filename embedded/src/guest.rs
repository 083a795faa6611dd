//! A guest: a session in another process, which has the directory open and serves this process through a Unix socket in the directory.
//!
//! # Life of a guest
//! `connect` -> as with a session of this process: `prepare`, `bind`, `execute` for each batch of rows, `sync`; or `simple` -> `end`.
//! A message that needs no answer (`bind`, `close_statement`) is kept in `out` and sent with the next one that does.
//!
//! # Invariants
//! - GST-2: a guest whose socket broke stays broken: its calls fail with [`Error::Lost`], and the connection begins another session for its
//!   next call. If a transaction block was open, the connection's calls fail with `Lost` until the program rolls back. So a COMMIT that was
//!   meant for the lost transaction never runs in another session.
//!
//! # Not here
//! Opening the directory in this process after the other process has ended: `sessions`.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clearway_base::sync::{Mutex, spawn_thread};
use clearway_base::vfs::{IoMode, io_mode};
use clearway_base::waits::{Object, Wait, WaitEvent, in_wait};
use clearway_sql::SqlError;
use clearway_sql::session::{Bind, Client, CopyIn, TransactionStatus};
use clearway_storage::sync::Bell;

use crate::error::{Error, Result};
use crate::notifications::{Notification, WAITING_MAX};
use crate::row::{Collector, column};
use crate::wire::{Answer, Until, Wire, message, take, take_text, text};

/// Bytes of a simple query's answer that are held at once.
const SIMPLE_BYTES: usize = 64 << 10;

/// A session in another process.
pub(crate) struct Guest {
    /// None: lost (GST-2), or on its way in a call that was dropped.
    wire: Option<Wire>,
    /// Messages that go with the next one that is answered.
    out: Vec<u8>,
    status: TransactionStatus,
    pub(crate) key: Arc<Key>,
    pub(crate) notifications: VecDeque<Notification>,
}

/// What a cancel request needs.
#[derive(Debug)]
pub(crate) struct Key {
    socket: PathBuf,
    pub(crate) pid: i32,
    secret: i32,
}

impl Key {
    /// Asks the other process to stop what the session runs.
    pub(crate) fn cancel(&self) {
        let mut out = Vec::new();
        message(&mut out, 0, |out| {
            out.extend_from_slice(&80_877_102_u32.to_be_bytes());
            out.extend_from_slice(&self.pid.to_be_bytes());
            out.extend_from_slice(&self.secret.to_be_bytes());
        });
        // A guest that has gone runs nothing any more.
        if let Ok(mut wire) = Wire::connect(&self.socket) {
            let _ = wire.send(&out);
        }
    }
}

/// Runs work that blocks: here, where the thread parks for the call anyway, else on a thread of its own.
pub(crate) async fn off<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    if io_mode() == IoMode::Inline {
        let _wait = Wait::begin(WaitEvent::TaskDone, Object::NONE);
        return Ok(work());
    }
    let place = Arc::new((Mutex::new("embedded/off", None), Bell::new("embedded/off_bell")));
    let theirs = Arc::clone(&place);
    spawn_thread("guest", move || {
        let value = work();
        *theirs.0.lock() = Some(value);
        theirs.1.ring();
    })?;
    let mut value = None;
    let done = place.1.wait_until(|| {
        value = place.0.lock().take();
        value.is_some()
    });
    in_wait(WaitEvent::TaskDone, Object::NONE, done).await;
    value.ok_or(Error::Lost)
}

/// The user and the place of a session that begins.
pub(crate) struct Caller<'a> {
    pub(crate) user: &'a str,
    pub(crate) database: &'a str,
    pub(crate) application_name: &'a str,
    pub(crate) settings: &'a [(String, String)],
}

impl Guest {
    /// Begins a session; none if no process listens at the socket.
    ///
    /// # Errors
    /// What the other process answers.
    pub(crate) async fn connect(socket: &Path, caller: Caller<'_>) -> Result<Option<Guest>> {
        let path = socket.to_owned();
        let Ok(wire) = off(move || Wire::connect(&path)).await? else { return Ok(None) };
        let key = Arc::new(Key { socket: socket.to_owned(), pid: 0, secret: 0 });
        let mut guest = Guest {
            wire: Some(wire),
            out: Vec::new(),
            status: TransactionStatus::Idle,
            key,
            notifications: VecDeque::new(),
        };
        message(&mut guest.out, 0, |out| {
            out.extend_from_slice(&(3_u32 << 16).to_be_bytes());
            let fixed = [
                ("user", caller.user),
                ("database", caller.database),
                ("application_name", caller.application_name),
                ("client_encoding", "UTF8"),
            ];
            let settings = caller.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            for (name, value) in fixed.into_iter().chain(settings) {
                text(out, name);
                text(out, value);
            }
            out.push(0);
        });
        let answer = match guest.talk(Until::any(b"ZR")).await {
            Ok(answer) => answer,
            // It closed before it said a word: it is ending.
            Err(Error::Lost) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut asked = answer.messages().filter(|(kind, _)| *kind == b'R').map(|(_, body)| body);
        if asked.next() != Some(&[0; 4]) {
            let text =
                "the process that has the directory asks for a password on this machine: connect to it as to a server";
            return Err(SqlError::new("28P01", text).into());
        }
        let answer = guest.talk(Until::any(b"Z")).await?;
        for (_, mut body) in answer.messages().filter(|(kind, _)| *kind == b'K') {
            let (pid, secret) = (take(&mut body), take(&mut body));
            if let (Some(pid), Some(secret)) = (pid, secret) {
                let (pid, secret) = (i32::from_be_bytes(pid), i32::from_be_bytes(secret));
                guest.key = Arc::new(Key { socket: socket.to_owned(), pid, secret });
            }
        }
        Ok(Some(guest))
    }

    /// Whether the connection broke (GST-2).
    pub(crate) fn is_lost(&self) -> bool {
        self.wire.is_none()
    }

    pub(crate) fn status(&self) -> TransactionStatus {
        self.status
    }

    /// Sends what waits in `out` and takes the answer up to its end. An error in it is an error of the call.
    async fn talk(&mut self, until: Until) -> Result<Answer> {
        let (answer, failed) = self.read_answer(until).await?;
        failed.map_or(Ok(answer), |error| Err(error.into()))
    }

    /// The answer, and the error in it.
    ///
    /// # Errors
    /// `Lost`, where nothing was said of why.
    async fn read_answer(&mut self, until: Until) -> Result<(Answer, Option<SqlError>)> {
        let Some(mut wire) = self.wire.take() else { return Err(Error::Lost) };
        let out = std::mem::take(&mut self.out);
        let exchange = move || {
            let answer = wire.exchange(&out, until);
            (wire, answer)
        };
        let (wire, answer) = off(exchange).await?;
        let answer = answer.map_err(|_| Error::Lost)?;
        if !answer.ended {
            self.wire = Some(wire);
        }
        let mut failed = None;
        for (kind, body) in answer.messages() {
            match kind {
                b'E' => failed = Some(error_of(body)),
                b'Z' => {
                    self.status = match body.first() {
                        Some(b'T') => TransactionStatus::InBlock,
                        Some(b'E') => TransactionStatus::Failed,
                        _ => TransactionStatus::Idle,
                    };
                }
                b'A' => self.notified(body),
                _ => {}
            }
        }
        if failed.is_none() && answer.ended {
            return Err(Error::Lost);
        }
        Ok((answer, failed))
    }

    fn notified(&mut self, mut body: &[u8]) {
        let Some(pid) = take(&mut body) else { return };
        let (Some(channel), Some(payload)) = (take_text(&mut body), take_text(&mut body)) else { return };
        if self.notifications.len() < WAITING_MAX {
            self.notifications.push_back(Notification { channel, payload, pid: i32::from_be_bytes(pid) });
        }
    }

    /// Waits until a notification has come, or for so long.
    pub(crate) async fn listen(&mut self, limit: Option<Duration>) -> Result<()> {
        let Some(mut wire) = self.wire.take() else { return Err(Error::Lost) };
        let listen = move || {
            let answer = wire.listen(limit);
            (wire, answer)
        };
        let (wire, answer) = off(listen).await?;
        let answer = answer.map_err(|_| Error::Lost)?;
        answer.messages().filter(|(kind, _)| *kind == b'A').for_each(|(_, body)| self.notified(body));
        if answer.ended {
            return Err(Error::Lost);
        }
        self.wire = Some(wire);
        Ok(())
    }

    /// Prepares a statement and takes the types of its parameters and its columns.
    pub(crate) async fn prepare(&mut self, name: &str, sql: &str, collector: &mut Collector) -> Result<()> {
        message(&mut self.out, b'P', |out| {
            text(out, name);
            text(out, sql);
            out.extend_from_slice(&[0; 2]);
        });
        message(&mut self.out, b'D', |out| {
            out.push(b'S');
            text(out, name);
        });
        message(&mut self.out, b'H', |_| {});
        let answer = self.talk(Until::any(b"TnE")).await?;
        for (kind, mut body) in answer.messages() {
            match kind {
                b't' => {
                    let _count: Option<[u8; 2]> = take(&mut body);
                    collector.parameters = std::iter::from_fn(|| take(&mut body).map(u32::from_be_bytes)).collect();
                }
                b'T' => collector.columns = Some(columns(body, collector.texts)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Gives a prepared statement its parameters; the answer comes with that of `execute`.
    pub(crate) fn bind(&mut self, name: &str, bind: &Bind<'_>) {
        let count = |out: &mut Vec<u8>, n: usize| {
            out.extend_from_slice(&u16::try_from(n).unwrap_or(u16::MAX).to_be_bytes());
        };
        message(&mut self.out, b'B', |out| {
            text(out, "");
            text(out, name);
            count(out, bind.formats.len());
            bind.formats.iter().for_each(|format| out.extend_from_slice(&format.to_be_bytes()));
            count(out, bind.values.len());
            for value in bind.values {
                let length = value.map_or(-1, |value| i32::try_from(value.len()).unwrap_or(i32::MAX));
                out.extend_from_slice(&length.to_be_bytes());
                out.extend_from_slice(value.unwrap_or_default());
            }
            count(out, bind.result_formats.len());
            bind.result_formats.iter().for_each(|format| out.extend_from_slice(&format.to_be_bytes()));
        });
    }

    /// Runs the bound statement for at most so many rows.
    pub(crate) async fn execute(&mut self, rows: u32, out: &mut Collector) -> Result<()> {
        message(&mut self.out, b'E', |out| {
            text(out, "");
            out.extend_from_slice(&rows.to_be_bytes());
        });
        message(&mut self.out, b'H', |_| {});
        let mut answer = self.talk(Until::any(b"CsIGE")).await?;
        if answer.messages().any(|(kind, _)| kind == b'G') {
            message(&mut self.out, b'f', |out| text(out, "data for COPY FROM STDIN are given to copy_in"));
            message(&mut self.out, b'H', |_| {});
            answer = self.talk(Until::any(b"CE")).await?;
        }
        for (kind, body) in answer.messages() {
            take_in(kind, body, out);
        }
        Ok(())
    }

    /// Ends the implicit transaction.
    pub(crate) async fn sync(&mut self) -> Result<()> {
        message(&mut self.out, b'S', |_| {});
        self.talk(Until::any(b"Z")).await.map(drop)
    }

    /// Runs all statements of a text; what they give goes to `client`.
    pub(crate) async fn simple(&mut self, sql: &str, client: &mut dyn Client) -> Result<()> {
        message(&mut self.out, b'Q', |out| text(out, sql));
        let until = Until { kinds: b"GZ", bytes: SIMPLE_BYTES, copy_data: true };
        let (mut failed, mut deaf, mut ready) = (None, false, false);
        while !ready {
            let (answer, error) = match self.read_answer(until).await {
                Ok(heard) => heard,
                Err(lost) => return Err(failed.unwrap_or(lost)),
            };
            failed = failed.or(error.map(Error::from));
            for (kind, body) in answer.messages() {
                match kind {
                    b'd' if !deaf => client.copy_data(body),
                    b'C' => client.command_complete(&tag(body)),
                    b'G' => self.copy_in(client).await?,
                    b'Z' => ready = true,
                    _ => {}
                }
            }
            if answer.ended {
                break;
            }
            if !deaf && client.is_full() && client.drain().await.is_err() {
                // The caller takes nothing more: what still comes is passed over.
                deaf = true;
                self.key.cancel();
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Sends what the client has for COPY FROM STDIN.
    async fn copy_in(&mut self, client: &mut dyn Client) -> Result<()> {
        loop {
            match client.copy_next().await {
                Ok(CopyIn::Data(data)) => message(&mut self.out, b'd', |out| out.extend_from_slice(&data)),
                Ok(CopyIn::Done) => {
                    message(&mut self.out, b'c', |_| {});
                    return Ok(());
                }
                Ok(CopyIn::Failed(why)) => {
                    message(&mut self.out, b'f', |out| text(out, &why));
                    return Ok(());
                }
                Err(_) => {
                    message(&mut self.out, b'f', |out| text(out, "the data have ended"));
                    return Ok(());
                }
            }
            let Some(mut wire) = self.wire.take() else { return Err(Error::Lost) };
            let out = std::mem::take(&mut self.out);
            let (wire, sent) = off(move || {
                let sent = wire.send(&out);
                (wire, sent)
            })
            .await?;
            if sent.is_err() {
                return Err(Error::Lost);
            }
            self.wire = Some(wire);
        }
    }

    /// Forgets a prepared statement.
    pub(crate) fn close_statement(&mut self, name: &str) {
        message(&mut self.out, b'C', |out| {
            out.push(b'S');
            text(out, name);
        });
    }

    /// Ends the session.
    pub(crate) fn end(mut self) {
        if let Some(mut wire) = self.wire.take() {
            let mut out = Vec::new();
            message(&mut out, b'X', |_| {});
            // A broken connection has ended already.
            let _ = wire.send(&out);
        }
    }
}

/// Rows and tags of an answer.
fn take_in(kind: u8, mut body: &[u8], out: &mut Collector) {
    match kind {
        b'D' => {
            let fields = take(&mut body).map_or(0, u16::from_be_bytes);
            out.row(usize::from(fields), &mut |_, bytes| {
                let length = take(&mut body).map_or(-1, i32::from_be_bytes);
                let Ok(length) = usize::try_from(length) else { return false };
                let Some((value, rest)) = body.split_at_checked(length) else { return false };
                bytes.extend_from_slice(value);
                body = rest;
                true
            });
        }
        b'C' => out.command_complete(&tag(body)),
        b's' => out.portal_suspended(),
        _ => {}
    }
}

fn tag(mut body: &[u8]) -> String {
    take_text(&mut body).unwrap_or_default()
}

/// The columns of a RowDescription.
fn columns(mut body: &[u8], texts: bool) -> Vec<crate::row::Column> {
    let mut all = Vec::new();
    let _count: Option<[u8; 2]> = take(&mut body);
    while let Some(name) = take_text(&mut body) {
        // Table and number of the column; its type; length, modifier and form of the type.
        let (Some([_, _, _, _, _, _]), Some(oid)) = (take::<6>(&mut body), take(&mut body)) else { break };
        let _rest: Option<[u8; 8]> = take(&mut body);
        all.push(column(&name, u32::from_be_bytes(oid), texts));
    }
    all
}

/// An error of the other process.
fn error_of(mut body: &[u8]) -> SqlError {
    let mut fields = Vec::new();
    while let Some([kind]) = take(&mut body)
        && kind != 0
        && let Some(text) = take_text(&mut body)
    {
        fields.push((kind, text));
    }
    let field = |kind: u8| fields.iter().find(|(is, _)| *is == kind).map(|(_, text)| text.clone());
    let mut error = SqlError::new(code_of(&field(b'C').unwrap_or_default()), field(b'M').unwrap_or_default());
    if let Some(detail) = field(b'D') {
        error = error.detail(detail);
    }
    if let Some(hint) = field(b'H') {
        error = error.hint(hint);
    }
    if let Some(table) = field(b't') {
        error = error.table(field(b's').unwrap_or_default(), table);
    }
    if let Some(column) = field(b'c') {
        error = error.column(column);
    }
    if let Some(constraint) = field(b'n') {
        error = error.constraint(constraint);
    }
    error
}

/// Codes that were met; an error's code lives as long as the process, and PostgreSQL has some 260 of them.
static CODES: OnceLock<Mutex<Vec<&'static str>>> = OnceLock::new();
const CODES_MAX: usize = 1_000;

fn code_of(code: &str) -> &'static str {
    let mut known = CODES.get_or_init(|| Mutex::new("embedded/codes", Vec::new())).lock();
    if let Some(found) = known.iter().find(|found| **found == code) {
        return found;
    }
    if code.len() != 5 || known.len() >= CODES_MAX {
        return "XX000";
    }
    let code: &'static str = Box::leak(code.to_owned().into_boxed_str());
    known.push(code);
    code
}
