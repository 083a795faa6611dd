//! The start of a connection: from the first packet to the first ReadyForQuery.
//!
//! # Invariants
//! - START-1: a client that sends nothing, or only a part of a packet, costs one socket for at most `authentication_timeout`.
//! - START-2: nothing that came before a TLS handshake counts as having come through it.
//! - START-3: before a client is authenticated, a connection holds at most 64 kB of what the client sent.

use std::io;
use std::sync::Arc;

use clearway_base::sync::timeout;
use clearway_base::waits::{Object, SessionStats, WaitEvent, in_wait};
use clearway_sql::SqlError;
use clearway_sql::context::backend::{ClientIdentity, Listed};
use clearway_sql::session::{Client as _, TransactionStatus};

use super::Peer;
use super::authenticate::authenticate;
use super::channel::{Channel, ready};
use crate::door::Door;
use crate::server::Server;
use crate::sessions::{Session as _, Sessions, Start};
use crate::stream::Stream;
use crate::wire::backend::{self, Authentication};
use crate::wire::startup::{self, Startup};

/// How many connections may be on their way to a session beyond the limit of sessions, so that cancel requests get through.
pub const UNAUTHENTICATED_CONNECTIONS: usize = 256;
const PROTOCOL_MAJOR: u32 = 3;

/// A session that has begun.
pub struct Started<S> {
    /// Its connection.
    pub channel: Channel,
    /// Its SQL side.
    pub session: S,
    /// Its place in the list.
    pub listed: Listed,
}

/// Why no session begins.
pub(super) enum Refusal {
    /// The client is told.
    Answered {
        /// What.
        told: Box<(Channel, SqlError)>,
        /// What the log has beside it, and the client has not.
        for_the_log: Option<String>,
    },
    /// The connection has ended by itself, or was a cancel request.
    Silent,
}

impl From<io::Error> for Refusal {
    fn from(_: io::Error) -> Self {
        Refusal::Silent
    }
}

pub(super) fn refuse(channel: Channel, code: &'static str, message: impl Into<String>) -> Refusal {
    refused_with(channel, SqlError::new(code, message))
}

fn refused_with(channel: Channel, error: SqlError) -> Refusal {
    Refusal::Answered { told: Box::new((channel, error)), for_the_log: None }
}

/// Runs the start; None if no session came of it.
pub async fn start<D: Sessions>(
    server: &Arc<Server<D>>,
    stream: Stream,
    peer: Peer,
    waits: Arc<SessionStats>,
) -> Option<Started<D::Session>> {
    let door = server.door();
    let limit = door.authentication_timeout;
    let work = attempt(server, &door, stream, peer, waits);
    match timeout(limit, work).await {
        Ok(Ok(started)) => Some(started),
        Ok(Err(Refusal::Answered { told, for_the_log })) => {
            let (mut channel, error) = *told;
            server.log_fatal(&error, for_the_log, peer.address());
            backend::error(channel.output(), "FATAL", &error, None);
            let _ = timeout(limit, channel.send()).await;
            channel.close().await;
            None
        }
        Ok(Err(Refusal::Silent)) | Err(_) => None, // START-1
    }
}

async fn attempt<D: Sessions>(
    server: &Arc<Server<D>>,
    door: &Door,
    stream: Stream,
    peer: Peer,
    waits: Arc<SessionStats>,
) -> Result<Started<D::Session>, Refusal> {
    let address = stream.local_address();
    let (mut channel, version, parameters) = greet(server, door, stream).await?;
    if version >> 16 != PROTOCOL_MAJOR {
        let (major, minor) = (version >> 16, version & 0xffff);
        let text = format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.0");
        return Err(refuse(channel, "0A000", text));
    }
    let unknown: Vec<&str> =
        parameters.iter().map(|(name, _)| name.as_str()).filter(|name| name.starts_with("_pq_.")).collect();
    if version & 0xffff != 0 || !unknown.is_empty() {
        backend::negotiate_version(channel.output(), &unknown);
    }
    let wanted = match StartupRequest::from(parameters) {
        Ok(wanted) => wanted,
        Err(error) => return Err(refused_with(channel, error)),
    };
    let asked = (wanted.user.as_str(), wanted.database.as_str());
    let (mut channel, login) = authenticate(server, door, channel, peer, asked).await?;
    let spare = if login.superuser { server.options.superuser_connections } else { 0 };
    if server.backends.count() >= server.options.max_connections.saturating_add(spare) {
        return Err(refuse(channel, "53300", "sorry, too many clients already"));
    }
    if server.is_stopping() {
        return Err(refuse(channel, "57P03", "the database system is shutting down"));
    }
    let mut secret = [0; 4];
    if getrandom::fill(&mut secret).is_err() {
        return Err(refuse(channel, "XX000", "could not generate random cancel key"));
    }
    let secret = i32::from_be_bytes(secret);
    let who = ClientIdentity {
        user: wanted.user.clone(),
        database: wanted.database.clone(),
        client: peer.address(),
        server: address,
        tls: channel.tls(),
        application_name: wanted.application_name(),
    };
    let listed = server.backends.list(waits, secret, who);
    let begun = Start {
        backend: Arc::clone(listed.backend()),
        backends: Arc::clone(&server.backends),
        database: wanted.database,
        user: wanted.user,
        settings: wanted.settings,
    };
    let session = match server.sessions.begin(begun).await {
        Ok(session) => session,
        Err(error) => return Err(refused_with(channel, error)),
    };
    backend::authentication(channel.output(), Authentication::Ok);
    for (name, value) in session.reported() {
        channel.parameter_status(&name, &value);
    }
    backend::key_data(channel.output(), listed.backend().pid, secret);
    ready(&mut channel, TransactionStatus::Idle);
    channel.send().await?;
    server.log_connected(listed.backend(), channel.is_encrypted());
    Ok(Started { channel, session, listed })
}

/// Answers requests for encryption and cancel requests until the startup packet of a session has come.
async fn greet<D: Sessions>(
    server: &Server<D>,
    door: &Door,
    stream: Stream,
) -> Result<(Channel, u32, Vec<(String, String)>), Refusal> {
    let mut channel = Channel::new(stream, server.options.message_bytes);
    let (mut asked_tls, mut asked_gss) = (false, false);
    loop {
        let packet = match read_packet(&mut channel).await? {
            Ok(packet) => packet,
            Err(error) => return Err(refused_with(channel, error)),
        };
        match packet {
            Startup::Ssl if !asked_tls => {
                asked_tls = true;
                channel = answer_tls(server, door, channel).await?;
            }
            Startup::GssEnc if !asked_gss => {
                asked_gss = true;
                channel.output().push(b'N');
                channel.send().await?;
            }
            Startup::Ssl | Startup::GssEnc => {
                return Err(refuse(channel, "08P01", "repeated request for encryption"));
            }
            Startup::Cancel { pid, secret } => {
                server.backends.cancel(pid, secret);
                return Err(Refusal::Silent);
            }
            Startup::Session { version, parameters } => return Ok((channel, version, parameters)),
        }
    }
}

async fn read_packet(channel: &mut Channel) -> Result<Result<Startup, SqlError>, Refusal> {
    let length = loop {
        match startup::length(channel.unread()) {
            Err(_) => return Err(Refusal::Silent), // not our protocol: nothing to answer in it
            Ok(Some(length)) if channel.unread().len() >= length => break length,
            Ok(known) => {
                let missing = known.unwrap_or(4).saturating_sub(channel.unread().len());
                if channel.read(missing.max(1)).await? == 0 {
                    return Err(Refusal::Silent);
                }
            }
        }
    };
    let packet = startup::decode(channel.unread().get(4..length).unwrap_or_default());
    channel.take(length);
    Ok(packet.map_err(|error| SqlError::new("08P01", format!("invalid startup packet: {error}"))))
}

async fn answer_tls<D: Sessions>(server: &Server<D>, door: &Door, mut channel: Channel) -> Result<Channel, Refusal> {
    let Some(tls) = door.tls.as_ref().filter(|_| channel.is_tcp()) else {
        channel.output().push(b'N');
        channel.send().await?;
        return Ok(channel);
    };
    if !channel.unread().is_empty() {
        return Err(refuse(channel, "08P01", "received unencrypted data after SSL request")); // START-2
    }
    channel.output().push(b'S');
    channel.send().await?;
    match channel.into_stream() {
        Stream::Tcp(stream) => {
            let handshake = in_wait(WaitEvent::SslOpenServer, Object::NONE, tls.acceptor.accept(stream));
            let stream = Stream::Tls(Box::new(handshake.await?));
            Ok(Channel::new(stream, server.options.message_bytes))
        }
        Stream::Unix(_) | Stream::Tls(_) => Err(Refusal::Silent),
    }
}

/// What the startup packet asks for.
struct StartupRequest {
    user: String,
    database: String,
    settings: Vec<(String, String)>,
}

impl StartupRequest {
    fn from(parameters: Vec<(String, String)>) -> Result<StartupRequest, SqlError> {
        let (mut user, mut database, mut settings) = (String::new(), String::new(), Vec::new());
        for (name, value) in parameters {
            match name.as_str() {
                "user" => user = value,
                "database" => database = value,
                "options" => settings.extend(options(&value)?),
                "replication" if matches!(value.as_str(), "false" | "off" | "no" | "0") => {}
                "replication" => {
                    let hint = "BASE_BACKUP and pg_basebackup copy PostgreSQL's files; 'clearway backup' backs up this server \
                                (docs/backup.md).";
                    return Err(SqlError::unsupported("a replication connection").hint(hint));
                }
                name if name.starts_with("_pq_.") => {}
                _ => settings.push((name, value)),
            }
        }
        if user.is_empty() {
            return Err(SqlError::new("28000", "no PostgreSQL user name specified in startup packet"));
        }
        if database.is_empty() {
            database.clone_from(&user);
        }
        Ok(StartupRequest { user, database, settings })
    }

    fn application_name(&self) -> String {
        let last = self.settings.iter().rev().find(|(name, _)| name == "application_name");
        last.map(|(_, value)| value.clone()).unwrap_or_default()
    }
}

/// `-c name=value`, `-cname=value` and `--name=value`, with a backslash before blanks that belong to a value.
fn options(text: &str) -> Result<Vec<(String, String)>, SqlError> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut escaped) = (String::new(), false);
    for c in text.chars() {
        match c {
            _ if escaped => {
                word.push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            c if c.is_whitespace() => words.extend(Some(std::mem::take(&mut word)).filter(|w| !w.is_empty())),
            c => word.push(c),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    let mut settings = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let assignment = match word.strip_prefix("--").or_else(|| word.strip_prefix("-c")) {
            Some("") => words.next().unwrap_or_default(),
            Some(rest) => rest.to_owned(),
            None => word.clone(),
        };
        match assignment.split_once('=') {
            Some((name, value)) if word.starts_with('-') && !name.is_empty() => {
                settings.push((name.replace('-', "_"), value.to_owned()));
            }
            _ => {
                let text = format!("invalid command-line argument for server process: {word}");
                return Err(SqlError::new("42601", text));
            }
        }
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_taken_apart() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let got = options("-c intervalstyle=postgres_verbose  --search-path=a\\ b -cx=y").expect("well formed");
        assert_eq!(got, [pair("intervalstyle", "postgres_verbose"), pair("search_path", "a b"), pair("x", "y")]);
        assert_eq!(options(" "), Ok(Vec::new()));
        for bad in ["x=y", "-c", "-c =y", "-d 3", "--"] {
            assert!(options(bad).is_err(), "{bad}");
        }
    }
}
