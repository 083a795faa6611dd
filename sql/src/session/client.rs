//! The trait through which a session writes to its client: rows, tags, notices and COPY data, for a connection or an embedded caller.
//!
//! # Life of a result
//! `row_description` (simple query; with the extended protocol only in answer to Describe) -> `row`, and whenever `is_full`, wait until
//! what the rows depend on is durable and `drain` -> `command_complete`, `portal_suspended` or `empty_query`. An error ends it instead:
//! the session returns it and the caller tells the client.
//!
//! # Not here
//! ParseComplete, BindComplete, CloseComplete, ErrorResponse and ReadyForQuery: the connection writes them, depending on what the session
//! returns.

use std::future::Future;
use std::pin::Pin;

use crate::encoding::Encoding;
use crate::error::SqlError;
use crate::types::{Oid, SqlType};

/// The client is gone, or sent what the protocol forbids: the session ends without a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// A future of a [`Client`].
pub type ClientFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Gone>> + Send + 'a>>;

/// A column of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column<'a> {
    /// Its name.
    pub name: &'a str,
    /// The table that it comes from as it stands there; 0 for an expression.
    pub table: Oid,
    /// Its number in that table, from 1; 0 for an expression.
    pub attribute: i16,
    /// Its type.
    pub ty: SqlType,
    /// `typlen`: bytes, or -1.
    pub len: i16,
    /// Whether values go out in the binary form.
    pub binary: bool,
}

/// How COPY data looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyFormat {
    /// All columns in the binary form; else text or csv.
    pub binary: bool,
    /// How many columns.
    pub columns: usize,
}

/// What the client sends for COPY FROM STDIN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyIn {
    /// The next bytes; they need not end where a line does.
    Data(Vec<u8>),
    /// That was all.
    Done,
    /// CopyFail: `COPY from stdin failed: ` and this text, 57014.
    Failed(String),
}

/// What ReadyForQuery says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// Outside of a transaction block.
    Idle,
    /// In one.
    InBlock,
    /// In one that has failed.
    Failed,
}

/// The client that a session answers. Nothing but `drain` and `copy_in` waits; what is written stays in the buffer until
/// then, or until the connection has been told by `Session::before_send` that it may leave.
///
/// Only `row` has to be written: a client in the same process passes over what it does not keep, sends no COPY data and
/// is never full.
pub trait Client: Send {
    /// The columns of the rows to come.
    fn row_description(&mut self, _columns: &[Column<'_>]) {}
    /// The end of what it is told, as bytes of the wire, where that is one buffer and its text is UTF-8.
    fn output(&mut self) -> Option<&mut Vec<u8>> {
        None
    }
    /// Describe: no rows will come.
    fn no_data(&mut self) {}
    /// Describe: the types of a statement's parameters.
    fn parameter_description(&mut self, _types: &[Oid]) {}
    /// One row. `write(i, out)` appends field i in the form that was asked for, or returns false for NULL.
    fn row(&mut self, fields: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool);
    /// The encoding of what it reads. Rows are written in it; names, messages and tags the client encodes itself.
    fn encoding(&self) -> Encoding {
        Encoding::UTF8
    }
    /// A statement has ended; the tag is PostgreSQL's (`INSERT 0 1`).
    fn command_complete(&mut self, _tag: &str) {}
    /// The text held no statement.
    fn empty_query(&mut self) {}
    /// The limit of Execute was reached before the last row.
    fn portal_suspended(&mut self) {}
    /// A message beside the result; `severity` is WARNING, NOTICE, INFO, LOG or DEBUG.
    fn notice(&mut self, _severity: &'static str, _message: &SqlError) {}
    /// The same, and it leaves at once if the client takes it, ahead of what is buffered: it tells of no data.
    fn notice_now(&mut self, severity: &'static str, message: &SqlError) {
        self.notice(severity, message);
    }
    /// A reported setting has a new value.
    fn parameter_status(&mut self, _name: &str, _value: &str) {}
    /// COPY TO STDOUT begins.
    fn copy_out(&mut self, _format: CopyFormat) {}
    /// The next bytes of COPY TO STDOUT: one row.
    fn copy_data(&mut self, _data: &[u8]) {}
    /// COPY TO STDOUT has ended.
    fn copy_out_done(&mut self) {}
    /// COPY FROM STDIN begins: tells the client. Wait with `Session::before_send` first.
    fn copy_in(&mut self, _format: CopyFormat) {}
    /// The next bytes of COPY FROM STDIN; after `Done` or `Failed` nothing more is asked for.
    fn copy_next(&mut self) -> ClientFuture<'_, CopyIn> {
        Box::pin(async { Ok(CopyIn::Done) })
    }
    /// Whether so much is buffered that `drain` is due.
    fn is_full(&self) -> bool {
        false
    }
    /// Sends what is buffered and waits until the client has taken it. Whatever the rows depend on must be durable.
    fn drain(&mut self) -> ClientFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}
