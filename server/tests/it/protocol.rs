//! Sessions driven by tokio-postgres and by messages written by hand.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use clearway_server::server::{ListenError, ListenOptions};
use clearway_sql::session::Reason;
use futures_util::{SinkExt as _, StreamExt as _, pin_mut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use crate::stub::start;

pub fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(test);
}

async fn connect(address: SocketAddr, more: &str) -> Result<Client, tokio_postgres::Error> {
    let text = format!("host=127.0.0.1 port={} {more}", address.port());
    let (client, connection) = tokio_postgres::connect(&text, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

fn code(error: &tokio_postgres::Error) -> &str {
    error.code().map_or("none", SqlState::code)
}

/// Startup by hand, up to the first ReadyForQuery.
pub async fn raw(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("connects");
    let mut packet = 196_608u32.to_be_bytes().to_vec();
    packet.extend_from_slice(b"user\0me\0\0");
    stream.write_all(&(packet.len() as u32 + 4).to_be_bytes()).await.expect("sent");
    stream.write_all(&packet).await.expect("sent");
    until_ready(&mut stream).await;
    stream
}

pub async fn message(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let tag = stream.read_u8().await.ok()?;
    let length = stream.read_u32().await.ok()? as usize;
    let mut body = vec![0; length - 4];
    stream.read_exact(&mut body).await.ok()?;
    Some((tag, body))
}

/// The types of all messages up to ReadyForQuery.
async fn until_ready(stream: &mut TcpStream) -> String {
    let mut tags = String::new();
    while let Some((tag, _)) = message(stream).await {
        tags.push(tag as char);
        if tag == b'Z' {
            break;
        }
    }
    tags
}

pub fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![tag];
    frame.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    frame.extend_from_slice(body);
    frame
}

#[test]
fn simple_and_extended_queries() {
    run(async {
        let (server, address) = start(ListenOptions::default()).await;
        let client = connect(address, "user=me").await.expect("connects");
        let messages = client.simple_query("rows 2; begin").await.expect("runs");
        let rows = messages.iter().filter(|m| matches!(m, SimpleQueryMessage::Row(_))).count();
        assert_eq!(rows, 2);
        let rows = client.query("rows $1", &[&"3"]).await.expect("runs");
        assert_eq!(rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>(), ["0", "1", "2"]);
        let error = client.simple_query("fail").await.expect_err("fails");
        let db = error.as_db_error().expect("of the database");
        assert_eq!((db.code().code(), db.hint(), db.detail()), ("42601", Some("a hint"), Some("a detail")));
        assert_eq!((db.schema(), db.table(), db.constraint()), (Some("public"), Some("t"), Some("t_pkey")));
        assert_eq!(db.position(), Some(&tokio_postgres::error::ErrorPosition::Original(3)));
        assert!(client.query("fail", &[]).await.is_err());
        assert_eq!(client.query("rows 1", &[]).await.expect("goes on").len(), 1);
        // TALK-2: the answer arrives a moment before the session counts as waiting again.
        while server.sessions.in_progress.load(SeqCst) != 0 {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn a_large_result_streams_and_a_large_query_arrives() {
    run(async {
        let (_server, address) = start(ListenOptions::default()).await;
        let client = connect(address, "user=me").await.expect("connects");
        let rows = client.query("rows 2000 1000", &[]).await.expect("runs");
        assert_eq!(rows.iter().map(|row| row.get::<_, String>(0).len()).sum::<usize>(), 2_000_000);
        let text = format!("echo {}", "x".repeat(3 << 20));
        let messages = client.simple_query(&text).await.expect("runs");
        assert!(matches!(&messages[0], SimpleQueryMessage::CommandComplete(_)) || messages.len() > 1);
    });
}

#[test]
fn pipelines_portals_and_errors_up_to_sync() {
    run(async {
        let (_server, address) = start(ListenOptions::default()).await;
        let mut stream = raw(address).await;
        let mut batch = frame(b'P', b"\0rows 5\0\0\0");
        batch.extend(frame(b'B', b"\0\0\0\0\0\0\0\0"));
        for _ in 0..3 {
            batch.extend(frame(b'E', b"\0\0\0\0\x02"));
        }
        batch.extend(frame(b'S', b""));
        batch.extend(frame(b'B', b"\0none\0\0\0\0\0\0\0"));
        batch.extend(frame(b'E', b"\0\0\0\0\0"));
        batch.extend(frame(b'S', b""));
        batch.extend(frame(b'Q', b"rows 1\0"));
        // One byte at a time: framing must not depend on how bytes arrive.
        for byte in batch {
            stream.write_all(&[byte]).await.expect("sent");
        }
        assert_eq!(until_ready(&mut stream).await, "12DDsDDsDCZ");
        assert_eq!(until_ready(&mut stream).await, "EZ");
        assert_eq!(until_ready(&mut stream).await, "TDCZ");
        // Malformed, but framed: an error, and the session goes on.
        stream.write_all(&frame(b'B', b"\0\0\0\0\xff\xff\0\0")).await.expect("sent");
        stream.write_all(&frame(b'S', b"")).await.expect("sent");
        assert_eq!(until_ready(&mut stream).await, "EZ");
        stream.write_all(&frame(b'y', b"")).await.expect("sent");
        assert_eq!(message(&mut stream).await.map(|(tag, _)| tag), Some(b'E'), "FATAL");
        assert_eq!(message(&mut stream).await, None, "and closed");
    });
}

/// The state of an error, and the type of the message behind it; or the body of an answer that is none.
async fn answer(stream: &mut TcpStream, call: &[u8]) -> Result<Vec<u8>, String> {
    stream.write_all(&frame(b'F', call)).await.expect("sent");
    let (tag, body) = message(stream).await.expect("an answer");
    let (ready, _) = message(stream).await.expect("ready");
    assert_eq!(ready, b'Z', "a function call is a batch of its own");
    match tag {
        b'V' => Ok(body),
        _ => {
            let fields = String::from_utf8_lossy(&body).into_owned();
            let code = fields.split('\0').find_map(|field| field.strip_prefix('C'));
            Err(code.unwrap_or("none").to_owned())
        }
    }
}

#[test]
fn function_calls_are_answered_and_hostile_ones_refused() {
    run(async {
        let (_server, address) = start(ListenOptions::default()).await;
        let mut stream = raw(address).await;
        // Function 7, one format for all, two arguments of which one is NULL, a text wanted.
        let call = b"\0\0\0\x07\0\x01\0\x01\0\x02\0\0\0\x03abc\xff\xff\xff\xff\0\0";
        assert_eq!(answer(&mut stream, call).await, Ok(b"\0\0\0\x013".to_vec()));
        assert_eq!(answer(&mut stream, b"\0\0\0\x07\0\0\0\0\0\0").await, Ok(vec![0xff; 4]), "NULL");
        assert_eq!(answer(&mut stream, b"\0\0\0\0\0\0\0\0\0\0").await, Err("42883".to_owned()));
        let lies: [&[u8]; 9] = [
            b"",
            b"\0\0\0",
            b"\0\0\0\x07\xff\xff",                          // more formats than bytes
            b"\0\0\0\x07\0\0\xff\xff\0\0",                  // more arguments
            b"\0\0\0\x07\0\0\0\x01\0\0\0\x09abc\0\0",       // an argument longer than the message
            b"\0\0\0\x07\0\0\0\x01\xff\xff\xff\xfeabc\0\0", // of a negative length
            b"\0\0\0\x07\0\0\0\x01\x7f\xff\xff\xffabc\0\0", // of 2 GiB
            b"\0\0\0\x07\0\0\0\0",                          // no format of the result
            b"\0\0\0\x07\0\0\0\0\0\0\0",                    // a byte too many
        ];
        for lie in lies {
            assert_eq!(answer(&mut stream, lie).await, Err("08P01".to_owned()), "{lie:?}");
        }
        assert_eq!(answer(&mut stream, b"\0\0\0\x07\0\0\0\0\0\x02").await, Err("22023".to_owned()));
        assert_eq!(answer(&mut stream, call).await, Ok(b"\0\0\0\x013".to_vec()), "the session goes on");
        // Behind an error of the extended protocol it is skipped, as all is up to Sync.
        let mut batch = frame(b'B', b"\0none\0\0\0\0\0\0\0");
        batch.extend(frame(b'F', call));
        batch.extend(frame(b'S', b""));
        stream.write_all(&batch).await.expect("sent");
        assert_eq!(until_ready(&mut stream).await, "EZ");
    });
}

#[test]
fn flush_sends_without_sync() {
    run(async {
        let (_server, address) = start(ListenOptions::default()).await;
        let mut stream = raw(address).await;
        let mut batch = frame(b'P', b"\0rows 1\0\0\0");
        batch.extend(frame(b'D', b"S\0"));
        batch.extend(frame(b'H', b""));
        stream.write_all(&batch).await.expect("sent");
        let mut tags = String::new();
        for _ in 0..3 {
            tags.push(message(&mut stream).await.expect("a message").0 as char);
        }
        assert_eq!(tags, "1tT");
    });
}

#[test]
fn copy_both_ways() {
    run(async {
        let (_server, address) = start(ListenOptions::default()).await;
        let client = connect(address, "user=me").await.expect("connects");
        let sink = client.copy_in("copyin").await.expect("begins");
        pin_mut!(sink);
        for _ in 0..100 {
            sink.send(std::io::Cursor::new(vec![b'x'; 1000])).await.expect("sent");
        }
        assert_eq!(sink.finish().await.expect("done"), 100_000);
        let stream = client.copy_out("copyout 1000").await.expect("begins");
        pin_mut!(stream);
        let mut bytes = 0;
        while let Some(data) = stream.next().await {
            bytes += data.expect("data").len();
        }
        assert_eq!(bytes, 10 * 2 + 90 * 3 + 900 * 4);
    });
}

#[test]
fn cancel_timeouts_and_termination() {
    run(async {
        let (server, address) = start(ListenOptions::default()).await;
        let client = connect(address, "user=me").await.expect("connects");
        let token = client.cancel_token();
        let (slept, ()) = tokio::join!(client.simple_query("sleep"), async {
            while server.sessions.in_progress.load(SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
            token.cancel_query(NoTls).await.expect("sent");
        });
        assert_eq!(code(&slept.expect_err("cancelled")), "57014");
        assert!(client.simple_query("rows 1").await.is_ok(), "the session lives on");

        let timed = connect(address, "user=me options='-c statement_timeout=20'").await.expect("connects");
        let error = timed.simple_query("sleep").await.expect_err("times out");
        assert_eq!(error.as_db_error().expect("an error").message(), "canceling statement due to statement timeout");

        let idle = connect(address, "user=me options='-c idle_in_transaction_session_timeout=20'").await;
        let idle = idle.expect("connects");
        idle.simple_query("begin").await.expect("runs");
        while !idle.is_closed() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let backends = server.backends.all();
        assert_eq!(backends.len(), 2);
        for backend in backends {
            server.backends.raise(backend.pid, Reason::Terminate);
        }
        while !client.is_closed() || !timed.is_closed() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(server.stop(Duration::from_secs(20)).await, "SRV-2");
    });
}

#[test]
fn what_arrives_with_a_termination_does_not_run() {
    run(async {
        let (server, address) = start(ListenOptions::default()).await;
        let mut stream = raw(address).await;
        // More than a read takes, so that the next read is ready whenever the session looks for one.
        let query = |text: &str| frame(b'Q', format!("{text:4090}\0").as_bytes());
        let mut batch = query("raised");
        (0..14).for_each(|_| batch.extend(query("rows 1")));
        stream.write_all(&batch).await.expect("sent");
        while server.sessions.in_progress.load(SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        let backend = server.backends.all().into_iter().next().expect("listed");
        server.backends.raise(backend.pid, Reason::Terminate);
        let (mut ran, mut last) = (0, None);
        while let Some((tag, body)) = message(&mut stream).await {
            ran += usize::from(tag == b'C');
            last = Some((tag, body));
        }
        let (tag, body) = last.expect("an answer");
        assert!(tag == b'E' && body.windows(5).any(|code| code == b"57P01"), "the last answer is {}", tag as char);
        assert!(ran < 8, "{ran} statements ran after the termination, TALK-4");
    });
}

#[test]
fn who_may_come_in() {
    run(async {
        let options = ListenOptions { password_on_loopback: true, max_connections: 2, ..ListenOptions::default() };
        let (server, address) = start(options).await;
        let refused = async |more: &str| code(&connect(address, more).await.expect_err("refused")).to_owned();
        assert_eq!(refused("user=secret password=wrong").await, "28P01");
        assert_eq!(refused("user=nobody password=secret").await, "28P01", "AUTH-1");
        assert_eq!(refused("user=me password=secret").await, "28P01", "no password is set");
        let one = connect(address, "user=secret password=secret").await.expect("connects");
        let two = connect(address, "user=secret password=secret").await.expect("connects");
        assert_eq!(refused("user=secret password=secret").await, "53300");
        assert!(one.simple_query("rows 1").await.is_ok());
        drop(two);
        while server.backends.count() > 1 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert_eq!(refused("user=secret password=secret dbname=nowhere").await, "3D000");
        let (_server, address) = start(ListenOptions::default()).await;
        let refused = async |more: &str| code(&connect(address, more).await.expect_err("refused")).to_owned();
        assert_eq!(refused("user=nobody").await, "28000");
        assert_eq!(refused("user=locked").await, "28000");
    });
}

#[test]
fn listening_beyond_loopback_needs_tls_or_its_waiver() {
    run(async {
        let (server, _) = start(ListenOptions::default()).await;
        let beyond = vec![SocketAddr::from(([0, 0, 0, 0], 0))];
        let try_with = |waived: bool| {
            let options = ListenOptions {
                addresses: beyond.clone(),
                allow_plaintext_beyond_loopback: waived,
                ..ListenOptions::default()
            };
            let backends = server.backends.clone();
            clearway_server::server::Server::new(options, server.sessions.clone(), backends, None, None)
                .and_then(|server| server.bind())
        };
        assert!(matches!(try_with(false), Err(ListenError::NoTls(_))), "SRV-1");
        assert!(try_with(true).is_ok());
    });
}

#[test]
fn half_open_connections_and_slow_readers_are_bounded() {
    run(async {
        let options = ListenOptions { authentication_timeout: Duration::from_millis(100), ..ListenOptions::default() };
        let (server, address) = start(options).await;
        let mut silent = TcpStream::connect(address).await.expect("connects");
        let mut half = TcpStream::connect(address).await.expect("connects");
        half.write_all(&[0, 0, 0, 50, 0, 3]).await.expect("sent");
        let mut rest = Vec::new();
        assert_eq!(silent.read_to_end(&mut rest).await.expect("closed"), 0, "START-1");
        assert_eq!(half.read_to_end(&mut rest).await.expect("closed"), 0, "START-1");
        // A client that asks for much and reads nothing: the server stops producing, and a termination gets through.
        let mut slow = raw(address).await;
        slow.write_all(&frame(b'Q', b"rows 100000000 1000\0")).await.expect("sent");
        tokio::time::sleep(Duration::from_millis(50)).await;
        let backend = server.backends.all().into_iter().next().expect("listed");
        server.backends.raise(backend.pid, Reason::Terminate);
        assert!(server.stop(Duration::from_secs(20)).await, "the slow reader holds nothing up");
        drop(slow);
    });
}
