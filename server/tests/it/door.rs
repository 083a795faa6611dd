//! Connections before authentication, and the last message of a session.

use std::net::SocketAddr;

use clearway_server::server::ListenOptions;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::protocol::{frame, message, raw, run};
use crate::stub::start;

async fn greeted(address: SocketAddr, user: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("connects");
    let mut packet = 196_608u32.to_be_bytes().to_vec();
    packet.extend_from_slice(format!("user\0{user}\0\0").as_bytes());
    stream.write_all(&(packet.len() as u32 + 4).to_be_bytes()).await.expect("sent");
    stream.write_all(&packet).await.expect("sent");
    stream
}

/// The types and SQLSTATEs of all that comes until the server closes.
async fn to_the_end(stream: &mut TcpStream) -> Vec<String> {
    let mut all = Vec::new();
    while let Some((tag, body)) = message(stream).await {
        let fields = body.split(|byte| *byte == 0);
        let code = fields.filter_map(|field| field.strip_prefix(b"C")).next();
        let code = code.filter(|_| tag == b'E').map(|code| String::from_utf8_lossy(code).into_owned());
        all.push(code.unwrap_or_else(|| (tag as char).to_string()));
    }
    all
}

/// START-3
#[test]
fn before_authentication_only_a_short_password_message_is_read() {
    run(async {
        let options = ListenOptions { password_on_loopback: true, ..ListenOptions::default() };
        let (_server, address) = start(options).await;
        // Each is refused by its first five bytes: the rest is never sent.
        for (tag, length) in [(b'Q', 64u32 << 20), (b'p', 64 << 20), (b'p', 65_537), (b'B', 5), (b'X', 4), (0, 0)] {
            let mut stream = greeted(address, "secret").await;
            assert_eq!(message(&mut stream).await.map(|(tag, _)| tag), Some(b'R'));
            stream.write_all(&[tag]).await.expect("sent");
            let _closed_already = stream.write_all(&length.to_be_bytes()).await;
            assert_eq!(to_the_end(&mut stream).await, ["08P01"], "{tag}, {length}");
        }
    });
}

/// A client that asks for its answers by Flush gets an error at once, and what was answered before it (asyncpg waits for it before Sync).
#[test]
fn an_error_of_the_extended_protocol_does_not_wait_for_sync() {
    run(async {
        let (_server, address) = start(ListenOptions::default()).await;
        let mut stream = raw(address).await;
        let mut batch = frame(b'P', b"\0rows 1\0\0\0");
        batch.extend(frame(b'P', b"s\0fail\0\0\0"));
        batch.extend(frame(b'D', b"Ss\0"));
        batch.extend(frame(b'H', b""));
        stream.write_all(&batch).await.expect("sent");
        assert_eq!(message(&mut stream).await.map(|(tag, _)| tag), Some(b'1'));
        assert_eq!(message(&mut stream).await.map(|(tag, _)| tag), Some(b'E'));
        stream.write_all(&frame(b'S', b"")).await.expect("sent");
        assert_eq!(message(&mut stream).await.map(|(tag, _)| tag), Some(b'Z'));
    });
}

/// TALK-3
#[test]
fn a_panic_in_a_statement_is_told_and_ends_its_session_only() {
    run(async {
        let (server, address) = start(ListenOptions::default()).await;
        let mut other = raw(address).await;
        for batch in [frame(b'Q', b"panic\0"), {
            let mut batch = frame(b'P', b"\0panic\0\0\0");
            batch.extend(frame(b'B', b"\0\0\0\0\0\0\0\0"));
            batch.extend(frame(b'E', b"\0\0\0\0\0"));
            batch.extend(frame(b'S', b""));
            batch
        }] {
            let mut stream = raw(address).await;
            stream.write_all(&batch).await.expect("sent");
            let all = to_the_end(&mut stream).await;
            assert_eq!(all.last().map(String::as_str), Some("XX000"), "{all:?}");
        }
        while server.backends.count() > 1 {
            tokio::task::yield_now().await;
        }
        other.write_all(&frame(b'Q', b"rows 1\0")).await.expect("sent");
        assert_eq!(message(&mut other).await.map(|(tag, _)| tag), Some(b'T'));
    });
}

/// TALK-1: what is not durable is taken back, and the client is told why.
#[test]
fn a_failed_log_is_told_before_the_connection_closes() {
    run(async {
        let (_server, address) = start(ListenOptions::default()).await;
        let mut stream = raw(address).await;
        stream.write_all(&frame(b'Q', b"unlogged\0")).await.expect("sent");
        assert_eq!(to_the_end(&mut stream).await, ["08007"]);
    });
}

/// One that does not read is told, too, once it reads again.
#[test]
fn a_client_that_reads_late_is_told_of_the_shutdown() {
    run(async {
        let (server, address) = start(ListenOptions::default()).await;
        let mut stream = raw(address).await;
        stream.write_all(&frame(b'Q', b"rows 20000 1000\0")).await.expect("sent");
        let mut first = [0; 1000];
        stream.read_exact(&mut first).await.expect("it has begun");
        let stopping = server.stop(std::time::Duration::from_secs(20));
        let reading = async {
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
            rest
        };
        let (stopped, rest) = futures_util::future::join(stopping, reading).await;
        assert!(stopped, "the session has ended");
        let told = rest.windows(5).any(|bytes| bytes == b"57P01");
        assert!(told, "{} bytes and no reason", rest.len());
    });
}
