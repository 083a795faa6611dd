//! One connection: decode, execute, hold the reply until what it depends on is durable, send at Sync.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use bytes::{BufMut, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::log::Log;
use crate::sched;
use crate::table::{Table, Txn};
use crate::wire::{Codec, Message, Wire};

/// What all sessions share.
pub struct Server {
    pub table: Table,
    pub log: Arc<Log>,
    pub codec: Codec,
    /// Sessions between a statement's arrival and its reply.
    pub busy: AtomicUsize,
    /// Answers updates without doing anything: the limit of the wire.
    pub constant: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Statement {
    Begin,
    Commit,
    Update(Option<i64>),
    Select(Option<i64>),
}

impl Statement {
    /// Four shapes of text; the one number in them is the key, `$1` stands for the parameter.
    fn parse(sql: &str) -> Result<Statement, String> {
        let word = sql.trim_start().get(..5).unwrap_or(sql).to_ascii_uppercase();
        let key = sql.rsplit('=').next().and_then(|t| t.trim().trim_end_matches(';').trim().parse().ok());
        match word.as_str() {
            "BEGIN" => Ok(Statement::Begin),
            "COMMI" | "END;" | "END" => Ok(Statement::Commit),
            "UPDAT" => Ok(Statement::Update(key)),
            "SELEC" => Ok(Statement::Select(key)),
            _ => Err(format!("not in this spike: {sql}")),
        }
    }
}

struct Session {
    server: Arc<Server>,
    shard: usize,
    wire: Wire,
    out: BytesMut,
    statements: HashMap<String, Statement>,
    portal: Option<(Statement, Option<i64>)>,
    txn: Option<Txn>,
    in_block: bool,
    /// The reply in `out` may not leave before `durable` reaches this.
    reply_dep: u64,
    last_commit: u64,
    /// Whether `Server::busy` counts this session.
    counted: bool,
}

/// Serves one connection until it ends.
pub async fn run(server: Arc<Server>, mut stream: TcpStream, shard: usize) {
    let mut session = Session {
        wire: Wire::new(server.codec),
        server,
        shard,
        out: BytesMut::with_capacity(4096),
        statements: HashMap::new(),
        portal: None,
        txn: None,
        in_block: false,
        reply_dep: 0,
        last_commit: 0,
        counted: false,
    };
    let _ = stream.set_nodelay(true);
    if let Err(error) = session.talk(&mut stream).await {
        if !matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) {
            eprintln!("session: {error}");
        }
    }
    session.leave();
    if let Some(mut txn) = session.txn.take() {
        session.server.table.rollback(&mut txn);
    }
}

impl Session {
    async fn talk(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        let mut input = BytesMut::with_capacity(4096);
        loop {
            while let Some(message) = self.wire.decode(&mut input).map_err(io::Error::other)? {
                if matches!(message, Message::Terminate) {
                    return Ok(());
                }
                self.enter();
                if self.handle(message).await? {
                    self.send(stream).await?;
                    self.leave();
                }
            }
            input.reserve(2048);
            if stream.read_buf(&mut input).await? == 0 {
                return Ok(());
            }
        }
    }

    fn enter(&mut self) {
        if !std::mem::replace(&mut self.counted, true) {
            self.server.busy.fetch_add(1, SeqCst);
        }
    }

    fn leave(&mut self) {
        if std::mem::replace(&mut self.counted, false) {
            self.server.busy.fetch_sub(1, SeqCst);
        }
    }

    async fn send(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        if self.reply_dep > self.server.log.durable() {
            self.server.log.request_flush(self.reply_dep, &self.server.busy).await;
            self.server.log.wait_durable(self.reply_dep, self.shard).await;
        }
        self.reply_dep = 0;
        stream.write_all(&self.out).await?;
        self.out.clear();
        Ok(())
    }

    /// True if the reply is to be sent now.
    async fn handle(&mut self, message: Message) -> io::Result<bool> {
        match message {
            Message::SslRequest => self.out.put_u8(b'N'),
            Message::Startup => self.greet(),
            Message::Parse { name, query } => {
                self.statements.insert(name, Statement::parse(&query).map_err(io::Error::other)?);
                self.wire.parse_complete(&mut self.out);
                return Ok(false);
            }
            Message::Bind { statement, parameter } => {
                let known = self.statements.get(&statement).ok_or_else(|| io::Error::other("no such statement"))?;
                self.portal = Some((*known, parameter));
                self.wire.bind_complete(&mut self.out);
                return Ok(false);
            }
            Message::Describe => {
                let rows = matches!(self.portal, Some((Statement::Select(_), _)));
                self.wire.description(&mut self.out, rows);
                return Ok(false);
            }
            Message::Execute => {
                let (statement, parameter) = self.portal.ok_or_else(|| io::Error::other("no portal"))?;
                self.execute(statement, parameter).await?;
                return Ok(false);
            }
            Message::Query(sql) => {
                let statement = Statement::parse(&sql).map_err(io::Error::other)?;
                if matches!(statement, Statement::Select(_)) {
                    self.wire.description(&mut self.out, true);
                }
                self.execute(statement, None).await?;
                self.end_of_statement();
            }
            Message::Sync => self.end_of_statement(),
            Message::Terminate => unreachable!("handled by the loop"),
        }
        Ok(true)
    }

    /// Sync: commits what is not in a block, and says whose turn it is.
    fn end_of_statement(&mut self) {
        if !self.in_block {
            self.commit();
        }
        self.wire.ready(&mut self.out, self.in_block);
    }

    async fn execute(&mut self, statement: Statement, parameter: Option<i64>) -> io::Result<()> {
        let rows = self.server.table.rows();
        let key = |literal: Option<i64>| {
            let key = literal.or(parameter).unwrap_or(0) as usize;
            if (1..=rows).contains(&key) { Ok(key) } else { Err(io::Error::other("key out of range")) }
        };
        let tag = match statement {
            Statement::Begin => {
                self.in_block = true;
                "BEGIN"
            }
            Statement::Commit => {
                self.in_block = false;
                self.commit();
                "COMMIT"
            }
            Statement::Update(k) if self.server.constant => {
                key(k)?;
                "UPDATE 1"
            }
            Statement::Update(k) => {
                let txn = self.txn.get_or_insert_default();
                self.server.table.increment(key(k)?, txn).await;
                if self.in_block {
                    sched::set_holds_lock(true); // the bare tag is exempt from the wait: no reply_dep
                }
                "UPDATE 1"
            }
            Statement::Select(k) => {
                let (value, dep_lsn) = self.server.table.read(key(k)?, self.last_commit);
                self.reply_dep = self.reply_dep.max(dep_lsn);
                self.wire.data_row(&mut self.out, value);
                "SELECT 1"
            }
        };
        self.wire.command_complete(&mut self.out, tag);
        Ok(())
    }

    fn commit(&mut self) {
        if let Some(mut txn) = self.txn.take() {
            self.last_commit = self.server.table.commit(&mut txn);
            self.reply_dep = self.reply_dep.max(self.last_commit);
            sched::set_holds_lock(false);
        }
    }

    fn greet(&mut self) {
        self.out.put_slice(b"R\0\0\0\x08\0\0\0\0");
        for (name, value) in [
            ("server_version", "15.0"),
            ("server_encoding", "UTF8"),
            ("client_encoding", "UTF8"),
            ("standard_conforming_strings", "on"),
            ("integer_datetimes", "on"),
        ] {
            self.out.put_u8(b'S');
            self.out.put_u32(6 + (name.len() + value.len()) as u32);
            self.out.put_slice(name.as_bytes());
            self.out.put_u8(0);
            self.out.put_slice(value.as_bytes());
            self.out.put_u8(0);
        }
        self.out.put_slice(b"K\0\0\0\x0c\0\0\0\x01\0\0\0\x01Z\0\0\0\x05I");
    }
}
