//! The wire, two ways behind one enum: the `pgwire` crate's messages (without its session loop), and a hand-written
//! codec that borrows from the read buffer. Only what pgbench sends is understood.

use bytes::{Buf, BufMut, BytesMut};
use pgwire::messages::data::{DataRow, FieldDescription, NoData, RowDescription};
use pgwire::messages::extendedquery::{BindComplete, ParseComplete};
use pgwire::messages::response::{CommandComplete, ReadyForQuery, TransactionStatus};
use pgwire::messages::{DecodeContext, PgWireBackendMessage as Out, PgWireFrontendMessage as In};

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Codec {
    Pgwire,
    Own,
}

/// A frontend message as the session wants it.
pub enum Message {
    Startup,
    SslRequest,
    Query(String),
    Parse { name: String, query: String },
    Bind { statement: String, parameter: Option<i64> },
    Describe,
    Execute,
    Sync,
    Terminate,
}

pub struct Wire {
    codec: Codec,
    context: DecodeContext,
    started: bool,
}

impl Wire {
    pub fn new(codec: Codec) -> Wire {
        let mut context = DecodeContext::default();
        context.awaiting_frontend_ssl = false;
        context.awaiting_frontend_startup = false;
        Wire { codec, context, started: false }
    }

    /// The next whole message in `buf`, or None if there is none yet. `Err` closes the connection.
    pub fn decode(&mut self, buf: &mut BytesMut) -> Result<Option<Message>, String> {
        if !self.started {
            return self.decode_startup(buf);
        }
        match self.codec {
            Codec::Pgwire => self.decode_pgwire(buf),
            Codec::Own => decode_own(buf),
        }
    }

    fn decode_startup(&mut self, buf: &mut BytesMut) -> Result<Option<Message>, String> {
        if buf.len() < 8 {
            return Ok(None);
        }
        let len = u32::from_be_bytes(buf[..4].try_into().unwrap()) as usize;
        if !(8..10_000).contains(&len) {
            return Err("startup length".into());
        }
        if buf.len() < len {
            return Ok(None);
        }
        let packet = buf.split_to(len);
        let code = u32::from_be_bytes(packet[4..8].try_into().unwrap());
        if matches!(code, 80877103 | 80877104) {
            return Ok(Some(Message::SslRequest));
        }
        self.started = true;
        Ok(Some(Message::Startup))
    }

    fn decode_pgwire(&mut self, buf: &mut BytesMut) -> Result<Option<Message>, String> {
        let Some(message) = In::decode(buf, &self.context).map_err(|e| e.to_string())? else { return Ok(None) };
        Ok(Some(match message {
            In::Query(m) => Message::Query(m.query),
            In::Parse(m) => Message::Parse { name: m.name.unwrap_or_default(), query: m.query },
            In::Bind(m) => Message::Bind {
                statement: m.statement_name.unwrap_or_default(),
                parameter: m.parameters.first().and_then(|p| parse_int(p.as_ref()?)),
            },
            In::Describe(_) => Message::Describe,
            In::Execute(_) => Message::Execute,
            In::Sync(_) => Message::Sync,
            In::Terminate(_) => Message::Terminate,
            other => return Err(format!("not in this spike: {other:?}")),
        }))
    }

    pub fn parse_complete(&self, out: &mut BytesMut) {
        match self.codec {
            Codec::Pgwire => Out::ParseComplete(ParseComplete::new()).encode(out).unwrap(),
            Codec::Own => out.put_slice(b"1\0\0\0\x04"),
        }
    }

    pub fn bind_complete(&self, out: &mut BytesMut) {
        match self.codec {
            Codec::Pgwire => Out::BindComplete(BindComplete::new()).encode(out).unwrap(),
            Codec::Own => out.put_slice(b"2\0\0\0\x04"),
        }
    }

    /// RowDescription of the one column `v bigint`, or NoData.
    pub fn description(&self, out: &mut BytesMut, rows: bool) {
        match (self.codec, rows) {
            (Codec::Pgwire, false) => Out::NoData(NoData::new()).encode(out).unwrap(),
            (Codec::Pgwire, true) => {
                let field = FieldDescription::new("v".into(), 0, 0, 20, 8, -1, 0);
                Out::RowDescription(RowDescription::new(vec![field])).encode(out).unwrap()
            }
            (Codec::Own, false) => out.put_slice(b"n\0\0\0\x04"),
            (Codec::Own, true) => {
                out.put_slice(b"T\0\0\0\x1a\0\x01v\0\0\0\0\0\0\0\0\0\0\x14\0\x08\xff\xff\xff\xff\0\0")
            }
        }
    }

    pub fn data_row(&self, out: &mut BytesMut, value: i64) {
        let mut digits = [0u8; 20];
        let text = format_int(&mut digits, value);
        match self.codec {
            Codec::Pgwire => {
                let mut data = BytesMut::with_capacity(24);
                data.put_u32(text.len() as u32);
                data.put_slice(text);
                Out::DataRow(DataRow::new(data, 1)).encode(out).unwrap()
            }
            Codec::Own => {
                out.put_u8(b'D');
                out.put_u32(10 + text.len() as u32);
                out.put_u16(1);
                out.put_u32(text.len() as u32);
                out.put_slice(text);
            }
        }
    }

    pub fn command_complete(&self, out: &mut BytesMut, tag: &'static str) {
        match self.codec {
            Codec::Pgwire => Out::CommandComplete(CommandComplete::new(tag.to_owned())).encode(out).unwrap(),
            Codec::Own => {
                out.put_u8(b'C');
                out.put_u32(5 + tag.len() as u32);
                out.put_slice(tag.as_bytes());
                out.put_u8(0);
            }
        }
    }

    pub fn ready(&self, out: &mut BytesMut, in_block: bool) {
        match self.codec {
            Codec::Pgwire => {
                let status = if in_block { TransactionStatus::Transaction } else { TransactionStatus::Idle };
                Out::ReadyForQuery(ReadyForQuery::new(status)).encode(out).unwrap()
            }
            Codec::Own => out.put_slice(if in_block { b"Z\0\0\0\x05T" } else { b"Z\0\0\0\x05I" }),
        }
    }
}

fn parse_int(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn format_int(digits: &mut [u8; 20], value: i64) -> &[u8] {
    let mut rest = value.unsigned_abs();
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return &digits[at..]; // the spike's values are never negative
        }
    }
}

fn decode_own(buf: &mut BytesMut) -> Result<Option<Message>, String> {
    if buf.len() < 5 {
        return Ok(None);
    }
    let len = u32::from_be_bytes(buf[1..5].try_into().unwrap()) as usize;
    if !(4..1 << 20).contains(&len) {
        return Err("message length".into());
    }
    if buf.len() < len + 1 {
        return Ok(None);
    }
    let mut body = Reader(&buf[5..len + 1]);
    let short = || "short message".to_owned();
    let message = match buf[0] {
        b'Q' => Message::Query(body.text().ok_or_else(short)?.to_owned()),
        b'P' => Message::Parse {
            name: body.text().ok_or_else(short)?.to_owned(),
            query: body.text().ok_or_else(short)?.to_owned(),
        },
        b'B' => body.bind().ok_or_else(short)?,
        b'D' => Message::Describe,
        b'E' => Message::Execute,
        b'S' => Message::Sync,
        b'X' => Message::Terminate,
        other => return Err(format!("not in this spike: {other}")),
    };
    buf.advance(len + 1);
    Ok(Some(message))
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n)?;
        self.0 = tail;
        Some(head)
    }
    fn u16(&mut self) -> Option<usize> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?) as usize)
    }
    fn text(&mut self) -> Option<&'a str> {
        let end = self.0.iter().position(|b| *b == 0)?;
        let text = self.take(end)?;
        self.take(1)?;
        std::str::from_utf8(text).ok()
    }
    fn bind(&mut self) -> Option<Message> {
        self.text()?;
        let statement = self.text()?.to_owned();
        let formats = self.u16()?;
        self.take(formats * 2)?;
        let mut parameter = None;
        for i in 0..self.u16()? {
            let len = i32::from_be_bytes(self.take(4)?.try_into().ok()?);
            let value = if len < 0 { None } else { Some(self.take(len as usize)?) };
            if i == 0 {
                parameter = value.and_then(parse_int);
            }
        }
        Some(Message::Bind { statement, parameter })
    }
}

/// Nanoseconds to decode one prepared execution and to encode its reply, without sockets: (update, point read).
pub fn codec_cost(codec: Codec) -> (f64, f64) {
    let request = |parameter: &[u8]| {
        let mut bytes = Vec::new();
        let mut bind = b"\0P0_0\0\0\0".to_vec();
        bind.extend_from_slice(parameter);
        bind.extend_from_slice(b"\0\x01\0\0");
        bytes.push(b'B');
        bytes.extend_from_slice(&(bind.len() as u32 + 4).to_be_bytes());
        bytes.extend_from_slice(&bind);
        bytes.extend_from_slice(b"D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04");
        bytes
    };
    let run = |request: &[u8], rows: bool| {
        let mut wire = Wire { started: true, ..Wire::new(codec) };
        let (mut input, mut out) = (BytesMut::with_capacity(8192), BytesMut::with_capacity(8192));
        let (rounds, begin) = (2_000_000u64, std::time::Instant::now());
        for i in 0..rounds {
            input.clear();
            input.reserve(8192);
            input.extend_from_slice(request);
            out.clear();
            while let Some(message) = wire.decode(&mut input).unwrap() {
                match message {
                    Message::Bind { parameter, statement } => {
                        std::hint::black_box((parameter, statement));
                        wire.bind_complete(&mut out)
                    }
                    Message::Describe => wire.description(&mut out, rows),
                    Message::Execute if rows => {
                        wire.data_row(&mut out, i as i64);
                        wire.command_complete(&mut out, "SELECT 1");
                    }
                    Message::Execute => wire.command_complete(&mut out, "UPDATE 1"),
                    _ => wire.ready(&mut out, false),
                }
            }
            std::hint::black_box(&out);
        }
        begin.elapsed().as_nanos() as f64 / rounds as f64
    };
    (run(&request(b"\0\0"), false), run(&request(b"\0\x01\0\0\0\x0512345"), true))
}

/// What each codec does with a Bind that lies about itself: an error, a message, or a panic.
pub fn malformed(codec: Codec) -> Vec<(&'static str, String)> {
    let cases: [(&str, &[u8]); 5] = [
        ("parameter longer than the message", b"B\0\0\0\x12\0P0_0\0\0\0\0\x01\0\0\x03\xe8"),
        ("65535 parameters in an empty message", b"B\0\0\0\x0e\0P0_0\0\0\0\xff\xff"),
        ("message ends after the names", b"B\0\0\0\x0a\0P0_0\0"),
        ("length field 0", b"B\0\0\0\0\0\0\0\0\0"),
        ("parameter runs into the Sync that follows", b"B\0\0\0\x12\0P0_0\0\0\0\0\x01\0\0\0\x03S\0\0\0\x04"),
    ];
    let outcome = |bytes: &[u8]| {
        let mut wire = Wire { started: true, ..Wire::new(codec) };
        let mut buf = BytesMut::from(bytes);
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| wire.decode(&mut buf))) {
            Err(_) => "PANIC".to_owned(),
            Ok(Err(error)) => format!("error: {error}"),
            Ok(Ok(None)) => "waits for more".to_owned(),
            Ok(Ok(Some(_))) => "accepted".to_owned(),
        }
    };
    cases.iter().map(|(name, bytes)| (*name, outcome(bytes))).collect()
}
