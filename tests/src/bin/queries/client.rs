//! One session over PostgreSQL's protocol: simple queries, several sent at once, their answers read later.
//!
//! A batch is written whole before any answer is read, so every server works on its batch at the same time. A batch is a few kilobytes, which
//! fit into the socket's buffers while the server still writes answers.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long an answer may take; `statement_timeout` ends every statement before.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// What a server answered to one statement.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Numbers of the types of the columns.
    pub types: Vec<u32>,
    /// The rows, as text.
    pub rows: Vec<Vec<Option<String>>>,
    /// What the server says that it did.
    pub tag: String,
    /// SQLSTATE and message of the error that ended the statement.
    pub error: Option<(String, String)>,
}

/// The session is no more: the server closed it, or said so.
#[derive(Debug)]
pub struct Gone(pub String);

impl From<std::io::Error> for Gone {
    fn from(err: std::io::Error) -> Self {
        Gone(err.to_string())
    }
}

/// A connection to a server.
pub struct Session {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// Where in the buffer the next message begins.
    at: usize,
    /// Statements whose answers are due.
    due: usize,
}

impl Session {
    /// Connects to a port of this machine as the superuser postgres.
    pub fn open(port: u16, options: &str) -> Result<Session, Gone> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        let mut body = 196_608_u32.to_be_bytes().to_vec();
        for text in ["user", "postgres", "database", "postgres", "options", options] {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
        body.push(0);
        let length = u32::try_from(body.len() + 4).map_err(|err| Gone(err.to_string()))?;
        stream.write_all(&[&length.to_be_bytes()[..], &body].concat())?;
        let mut session = Session { stream, buffer: Vec::new(), at: 0, due: 1 };
        let greeted = session.answer()?;
        match greeted.error {
            Some((state, message)) => Err(Gone(format!("{state} {message}"))),
            None => Ok(session),
        }
    }

    /// Sends statements, one a message. Their answers are read by [`Session::answers`].
    pub fn send(&mut self, statements: &[String]) -> Result<(), Gone> {
        let mut out = Vec::new();
        for statement in statements {
            let length = u32::try_from(statement.len() + 5).map_err(|err| Gone(err.to_string()))?;
            out.push(b'Q');
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(statement.as_bytes());
            out.push(0);
        }
        self.stream.write_all(&out)?;
        self.due += statements.len();
        Ok(())
    }

    /// The answers that are due, in the order of the statements.
    pub fn answers(&mut self) -> Result<Vec<Answer>, Gone> {
        let mut all = Vec::new();
        while self.due > 0 {
            all.push(self.answer()?);
        }
        Ok(all)
    }

    /// Sends one statement and reads its answer.
    pub fn ask(&mut self, statement: &str) -> Result<Answer, Gone> {
        self.send(&[statement.to_owned()])?;
        Ok(self.answers()?.pop().unwrap_or_default())
    }

    fn answer(&mut self) -> Result<Answer, Gone> {
        let mut answer = Answer::default();
        loop {
            let (kind, body) = self.message()?;
            match kind {
                b'T' => answer.types = row_types(&body).ok_or_else(|| garbled(kind))?,
                b'D' => answer.rows.push(row(&body).ok_or_else(|| garbled(kind))?),
                b'C' => answer.tag = String::from_utf8_lossy(body.strip_suffix(&[0]).unwrap_or(&body)).into_owned(),
                b'E' => {
                    let (severity, state, message) = error(&body);
                    if severity == "FATAL" || severity == "PANIC" {
                        return Err(Gone(format!("{severity} {state} {message}")));
                    }
                    answer.error = Some((state, message));
                }
                b'Z' => {
                    self.due -= 1;
                    return Ok(answer);
                }
                _ => {}
            }
        }
    }

    fn message(&mut self) -> Result<(u8, Vec<u8>), Gone> {
        loop {
            let left = &self.buffer[self.at..];
            if let Some(head) = left.first_chunk::<5>() {
                let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
                if length < 4 {
                    return Err(garbled(head[0]));
                }
                if left.len() > length {
                    let found = (head[0], left[5..=length].to_vec());
                    self.at += length + 1;
                    return Ok(found);
                }
            }
            self.buffer.drain(..self.at);
            self.at = 0;
            let mut more = [0; 1 << 16];
            // A process that was stopped for a while is told of an interrupted call.
            let got = match self.stream.read(&mut more) {
                Err(err) if err.kind() == ErrorKind::Interrupted => continue,
                read => read?,
            };
            if got == 0 {
                return Err(Gone("the server closed the connection".to_owned()));
            }
            self.buffer.extend_from_slice(&more[..got]);
        }
    }
}

fn garbled(kind: u8) -> Gone {
    Gone(format!("a message {:?} that is too short", char::from(kind)))
}

/// The next number of `bytes` bytes.
fn number(body: &mut &[u8], bytes: usize) -> Option<i64> {
    let (head, tail) = body.split_at_checked(bytes)?;
    *body = tail;
    let first = if head.first()? & 0x80 == 0 { 0 } else { -1 };
    Some(head.iter().fold(first, |value, byte| value << 8 | i64::from(*byte)))
}

fn row_types(mut body: &[u8]) -> Option<Vec<u32>> {
    let count = number(&mut body, 2)?;
    let mut types = Vec::new();
    for _ in 0..count {
        let end = body.iter().position(|byte| *byte == 0)?;
        body = body.get(end + 1 + 6..)?;
        types.push(u32::try_from(number(&mut body, 4)?).ok()?);
        body = body.get(8..)?;
    }
    Some(types)
}

fn row(mut body: &[u8]) -> Option<Vec<Option<String>>> {
    let count = number(&mut body, 2)?;
    let mut cells = Vec::new();
    for _ in 0..count {
        let Ok(length) = usize::try_from(number(&mut body, 4)?) else {
            cells.push(None);
            continue;
        };
        let (cell, tail) = body.split_at_checked(length)?;
        cells.push(Some(String::from_utf8_lossy(cell).into_owned()));
        body = tail;
    }
    Some(cells)
}

/// Severity, SQLSTATE and message.
fn error(body: &[u8]) -> (String, String, String) {
    let field = |wanted: u8| {
        let found = body.split(|byte| *byte == 0).find(|part| part.first() == Some(&wanted));
        found.map_or(String::new(), |part| String::from_utf8_lossy(&part[1..]).into_owned())
    };
    (field(b'V'), field(b'C'), field(b'M'))
}
