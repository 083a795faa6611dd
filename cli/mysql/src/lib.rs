//! A client of MySQL's protocol on a socket. The crate mysql_common encodes and decodes the packets; this crate does the exchange of
//! packets.
//!
//! # Errors
//! An error packet is the server's answer and leaves the connection usable; anything else that is not expected ends the connection.
//!
//! # Not here
//! TLS itself (the caller passes it in: [`Upgrade`]), compression, authentication methods other than MySQL's "native" one, typed results.

#![forbid(unsafe_code)]

use bytes::BytesMut;
use mysql_common::auth::plugins::mysql_native_password::scramble_native;
use mysql_common::constants::{CapabilityFlags, Command};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{
    AuthPlugin, AuthSwitchRequest, Column, ComStmtExecuteRequestBuilder, ErrPacket, HandshakePacket, HandshakeResponse,
    SslRequest, StmtPacket,
};
use mysql_common::proto::MySerialize as _;
use mysql_common::proto::codec::PacketCodec;
use mysql_common::value::Value;
use std::pin::Pin;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The bytes of a connection.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A stream to come.
pub type Upgraded = Pin<Box<dyn Future<Output = Result<Box<dyn Stream>, MySqlError>> + Send>>;

/// Does the handshake of TLS.
pub trait Upgrade: Sync {
    /// Whether a server without TLS is refused.
    fn is_required(&self) -> bool;

    /// The same bytes under TLS.
    fn upgrade(&self, stream: Box<dyn Stream>, host: &str) -> Upgraded;
}

/// What went wrong with a statement or a connection.
#[derive(Clone, Debug)]
pub struct MySqlError {
    /// The server's SQLSTATE; None where the connection is lost.
    pub code: Option<String>,
    /// In words.
    pub text: String,
}

impl MySqlError {
    fn lost(text: impl Into<String>) -> Self {
        Self { code: None, text: text.into() }
    }
}

impl std::fmt::Display for MySqlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.code {
            Some(code) => write!(f, "{} ({code})", self.text),
            None => f.write_str(&self.text),
        }
    }
}

impl std::error::Error for MySqlError {}

/// How to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MySqlAddress {
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// User.
    pub user: String,
    /// Password; empty: none.
    pub password: String,
    /// Database.
    pub database: String,
    /// What the program calls itself (the connection attribute `program_name`); empty: nothing.
    pub program: String,
}

impl MySqlAddress {
    /// From `mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE`. An address with options behind a `?` is none: what they ask for would be lost.
    pub fn parse(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("mysql://").or_else(|| url.strip_prefix("mariadb://"))?;
        let (who, rest) = rest.rsplit_once('@')?;
        let (place, database) = rest.split_once('/')?;
        let (user, password) = who.split_once(':').unwrap_or((who, ""));
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().ok()?),
            None => (place, 3306),
        };
        let [host, user, password, database] = [host, user, password, database].map(str::to_owned);
        Some(Self { host, port, user, password, database, program: String::new() })
            .filter(|address| !address.database.is_empty() && !address.database.contains('?'))
    }
}

const CAPABILITIES: CapabilityFlags = CapabilityFlags::CLIENT_PROTOCOL_41
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH)
    .union(CapabilityFlags::CLIENT_TRANSACTIONS)
    .union(CapabilityFlags::CLIENT_LONG_PASSWORD);

/// A row of texts; none: NULL.
pub type TextRow = Vec<Option<String>>;

/// MySQL's number of utf8mb4_general_ci.
const UTF8: u8 = 45;
/// First bytes of packets.
const OK: u8 = 0x00;
const EOF: u8 = 0xfe;
const ERROR: u8 = 0xff;
/// A field of a text row that is NULL.
const NULL: u8 = 0xfb;

/// A connection, ready for the next command.
pub struct Connection {
    stream: Box<dyn Stream>,
    codec: PacketCodec,
    received: BytesMut,
    packet: Vec<u8>,
    sent: BytesMut,
}

impl Connection {
    /// Connects and logs in.
    ///
    /// # Errors
    /// What the server says; a lost connection.
    pub async fn open(address: &MySqlAddress) -> Result<Self, MySqlError> {
        Self::open_with(address, None).await
    }

    /// The same, under TLS if the server offers it or it is required.
    ///
    /// # Errors
    /// What the server says; a lost connection; no TLS where it is required.
    pub async fn open_with(address: &MySqlAddress, tls: Option<&dyn Upgrade>) -> Result<Self, MySqlError> {
        let stream = TcpStream::connect((address.host.as_str(), address.port)).await.map_err(io)?;
        stream.set_nodelay(true).map_err(io)?;
        let mut connection = Self {
            stream: Box::new(stream),
            codec: PacketCodec::default(),
            received: BytesMut::new(),
            packet: Vec::new(),
            sent: BytesMut::new(),
        };
        connection.log_in(address, tls).await?;
        Ok(connection)
    }

    /// Asks for TLS and begins it.
    async fn protect(&mut self, address: &MySqlAddress, tls: &dyn Upgrade) -> Result<(), MySqlError> {
        let mut body = Vec::new();
        SslRequest::new(CAPABILITIES | CapabilityFlags::CLIENT_SSL, 1 << 24, UTF8).serialize(&mut body);
        self.send(&body).await?;
        // Bytes from before the handshake could come from a machine in between.
        if !self.received.is_empty() {
            return Err(MySqlError::lost("the server has sent more than its greeting before TLS"));
        }
        let plain = std::mem::replace(&mut self.stream, Box::new(tokio::io::empty()));
        self.stream = tls.upgrade(plain, &address.host).await?;
        Ok(())
    }

    async fn log_in(&mut self, address: &MySqlAddress, tls: Option<&dyn Upgrade>) -> Result<(), MySqlError> {
        self.receive().await?;
        if self.packet.first() == Some(&ERROR) {
            return Err(self.error());
        }
        let hello: HandshakePacket<'_> = ParseBuf(&self.packet).parse(()).map_err(io)?;
        let first = proof(&address.password, &hello.nonce());
        let offers_tls = hello.capabilities().contains(CapabilityFlags::CLIENT_SSL);
        let takes_attributes = hello.capabilities().contains(CapabilityFlags::CLIENT_CONNECT_ATTRS);
        let mut capabilities = CAPABILITIES;
        match tls {
            Some(tls) if offers_tls => {
                self.protect(address, tls).await?;
                capabilities |= CapabilityFlags::CLIENT_SSL;
            }
            Some(tls) if tls.is_required() => return Err(MySqlError::lost("server does not support TLS")),
            _ => {}
        }
        let attributes = Some([("program_name".to_owned(), address.program.clone())].into())
            .filter(|_| takes_attributes && !address.program.is_empty());
        let response = HandshakeResponse::new(
            Some(first),
            (10, 0, 0),
            Some(address.user.as_bytes().to_vec()),
            Some(address.database.as_bytes().to_vec()),
            Some(AuthPlugin::MysqlNativePassword),
            capabilities,
            attributes,
            1 << 24,
        );
        let mut body = Vec::new();
        response.serialize(&mut body);
        self.send(&body).await?;
        loop {
            self.receive().await?;
            match self.packet.first() {
                Some(&OK) => return Ok(()),
                Some(&ERROR) => return Err(self.error()),
                Some(&EOF) => {
                    let switch: AuthSwitchRequest<'_> = ParseBuf(&self.packet).parse(()).map_err(io)?;
                    if switch.auth_plugin() != AuthPlugin::MysqlNativePassword {
                        return Err(MySqlError::lost("the server wants another proof than mysql_native_password"));
                    }
                    let again = proof(&address.password, switch.plugin_data());
                    self.send(&again).await?;
                }
                _ => return Err(MySqlError::lost("an unexpected packet while logging in")),
            }
        }
    }

    /// Prepares a statement and returns its number.
    ///
    /// # Errors
    /// What the server says; a lost connection.
    pub async fn prepare(&mut self, sql: &str) -> Result<u32, MySqlError> {
        self.command(Command::COM_STMT_PREPARE, sql.as_bytes()).await?;
        self.receive().await?;
        if self.packet.first() == Some(&ERROR) {
            return Err(self.error());
        }
        let prepared: StmtPacket = ParseBuf(&self.packet).parse(()).map_err(io)?;
        for definitions in [prepared.num_params(), prepared.num_columns()] {
            if definitions > 0 {
                self.skip_to_eof().await?;
            }
        }
        Ok(prepared.statement_id())
    }

    /// Runs a prepared statement and reads its rows.
    ///
    /// # Errors
    /// What the server says; a lost connection.
    pub async fn execute(&mut self, id: u32, arguments: impl Iterator<Item = i32>) -> Result<(), MySqlError> {
        let values: Vec<Value> = arguments.map(|value| Value::Int(i64::from(value))).collect();
        let (request, _) = ComStmtExecuteRequestBuilder::new(id).build(&values);
        let mut body = Vec::new();
        request.serialize(&mut body);
        self.codec.reset_seq_id();
        self.send(&body).await?;
        self.receive().await?;
        match self.packet.first() {
            Some(&OK) => Ok(()),
            Some(&ERROR) => Err(self.error()),
            // Columns, then rows.
            _ => {
                self.skip_to_eof().await?;
                self.skip_to_eof().await
            }
        }
    }

    /// Runs a statement as text; the first field of the first row.
    ///
    /// # Errors
    /// What the server says; a lost connection.
    pub async fn query(&mut self, sql: &str) -> Result<Option<String>, MySqlError> {
        self.command(Command::COM_QUERY, sql.as_bytes()).await?;
        self.receive().await?;
        match self.packet.first() {
            Some(&OK) => return Ok(None),
            Some(&ERROR) => return Err(self.error()),
            _ => self.skip_to_eof().await?,
        }
        let mut first = None;
        let mut rows = 0;
        loop {
            self.receive().await?;
            match self.packet.first() {
                Some(&ERROR) => return Err(self.error()),
                Some(&EOF) if self.packet.len() < 9 => return Ok(first),
                Some(&NULL) => {}
                _ if rows == 0 => {
                    let field = ParseBuf(&self.packet).checked_eat_lenenc_str();
                    first = field.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
                }
                _ => {}
            }
            rows += 1;
        }
    }

    /// Runs a statement as text: the columns' names, and the rows up to a number of them; more are read and dropped.
    ///
    /// # Errors
    /// What the server says; a lost connection.
    pub async fn table(&mut self, sql: &str, rows_max: usize) -> Result<(Vec<String>, Vec<TextRow>), MySqlError> {
        self.command(Command::COM_QUERY, sql.as_bytes()).await?;
        self.receive().await?;
        match self.packet.first() {
            Some(&OK) => return Ok((Vec::new(), Vec::new())),
            Some(&ERROR) => return Err(self.error()),
            _ => {}
        }
        let mut columns = Vec::new();
        loop {
            self.receive().await?;
            match self.packet.first() {
                Some(&EOF) if self.packet.len() < 9 => break,
                Some(&ERROR) => return Err(self.error()),
                _ => {
                    let column: Column = ParseBuf(&self.packet).parse(()).map_err(io)?;
                    columns.push(column.name_str().into_owned());
                }
            }
        }
        let mut rows = Vec::new();
        loop {
            self.receive().await?;
            match self.packet.first() {
                Some(&EOF) if self.packet.len() < 9 => return Ok((columns, rows)),
                Some(&ERROR) => return Err(self.error()),
                _ if rows.len() < rows_max => rows.push(self.text_row(columns.len())?),
                _ => {}
            }
        }
    }

    /// The fields of the row that was received.
    fn text_row(&self, fields: usize) -> Result<TextRow, MySqlError> {
        let mut left = ParseBuf(&self.packet);
        let mut row = Vec::with_capacity(fields);
        for _ in 0..fields {
            if left.0.first() == Some(&NULL) {
                left.0 = left.0.get(1..).unwrap_or_default();
                row.push(None);
                continue;
            }
            let field = left.checked_eat_lenenc_str().ok_or_else(|| MySqlError::lost("a row ends too early"))?;
            row.push(Some(String::from_utf8_lossy(field).into_owned()));
        }
        Ok(row)
    }

    async fn command(&mut self, command: Command, body: &[u8]) -> Result<(), MySqlError> {
        self.codec.reset_seq_id();
        let mut packet = Vec::with_capacity(body.len() + 1);
        packet.push(command as u8);
        packet.extend_from_slice(body);
        self.send(&packet).await
    }

    async fn send(&mut self, mut body: &[u8]) -> Result<(), MySqlError> {
        self.sent.clear();
        self.codec.encode(&mut body, &mut self.sent).map_err(|error| MySqlError::lost(error.to_string()))?;
        self.stream.write_all(&self.sent).await.map_err(io)
    }

    /// The next packet, into `self.packet`.
    async fn receive(&mut self) -> Result<(), MySqlError> {
        self.packet.clear();
        loop {
            let done = self.codec.decode(&mut self.received, &mut self.packet);
            if done.map_err(|error| MySqlError::lost(error.to_string()))? {
                return Ok(());
            }
            if self.stream.read_buf(&mut self.received).await.map_err(io)? == 0 {
                return Err(MySqlError::lost("connection closed"));
            }
        }
    }

    /// Packets up to the one that ends a list of columns or rows.
    async fn skip_to_eof(&mut self) -> Result<(), MySqlError> {
        loop {
            self.receive().await?;
            match self.packet.first() {
                Some(&EOF) if self.packet.len() < 9 => return Ok(()),
                Some(&ERROR) => return Err(self.error()),
                _ => {}
            }
        }
    }

    fn error(&self) -> MySqlError {
        match ParseBuf(&self.packet).parse::<ErrPacket<'_>>(CAPABILITIES) {
            Ok(ErrPacket::Error(said)) => MySqlError {
                code: Some(
                    said.sql_state_ref().map_or_else(|| "HY000".to_owned(), |state| state.as_str().into_owned()),
                ),
                text: format!("{} [{}]", said.message_str(), said.error_code()),
            },
            Ok(ErrPacket::Progress(_)) => MySqlError::lost("a progress report where none was asked for"),
            Err(error) => io(error),
        }
    }
}

fn proof(password: &str, nonce: &[u8]) -> Vec<u8> {
    scramble_native(nonce, password.as_bytes()).map(|proof| proof.to_vec()).unwrap_or_default()
}

fn io(error: std::io::Error) -> MySqlError {
    MySqlError::lost(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_from_urls() {
        let found = MySqlAddress::parse("mysql://me:se@cret@h/db").expect("a URL");
        assert_eq!((found.password.as_str(), found.port), ("se@cret", 3306));
        let found = MySqlAddress::parse("mysql://me@h:3307/db").expect("a URL");
        assert_eq!((found.host.as_str(), found.port, found.password.as_str()), ("h", 3307, ""));
        for bad in [
            "mysql://h/db",
            "mysql://me@h",
            "mysql://me@h/",
            "postgresql://me@h/db",
            "mysql://me@h:x/db",
            "mysql://me@h/db?ssl-mode=REQUIRED",
        ] {
            assert_eq!(MySqlAddress::parse(bad), None, "{bad}");
        }
    }
}
