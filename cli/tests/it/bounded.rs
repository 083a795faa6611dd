//! The resources that misbehaving clients and idle clients take from the real program: memory and descriptors, as the system counts them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use crate::program::{Running, scratch, start, start_with, stop};

const KIB: usize = 1024;

/// A session by hand: through the startup, up to the first ReadyForQuery.
fn session(running: &Running) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", running.port)).expect("connects");
    let mut packet = 196_608u32.to_be_bytes().to_vec();
    packet.extend_from_slice(b"user\0postgres\0database\0postgres\0\0");
    stream.write_all(&(packet.len() as u32 + 4).to_be_bytes()).expect("sent");
    stream.write_all(&packet).expect("sent");
    until_ready(&mut stream);
    stream
}

fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![tag];
    frame.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    frame.extend_from_slice(body);
    frame
}

/// Reads up to ReadyForQuery; the types of the messages, and the first field of each row.
fn until_ready(stream: &mut TcpStream) -> (String, Vec<String>) {
    let (mut tags, mut values) = (String::new(), Vec::new());
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head).expect("a message");
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut body = vec![0; length - 4];
        stream.read_exact(&mut body).expect("its body");
        tags.push(head[0] as char);
        if head[0] == b'D' {
            values.push(String::from_utf8_lossy(body.get(6..).unwrap_or_default()).into_owned());
        }
        if head[0] == b'Z' {
            return (tags, values);
        }
    }
}

fn query(stream: &mut TcpStream, sql: &str) -> (String, Vec<String>) {
    let mut text = sql.as_bytes().to_vec();
    text.push(0);
    stream.write_all(&frame(b'Q', &text)).expect("sent");
    until_ready(stream)
}

/// Asks again and again until the answer is this one.
fn until(stream: &mut TcpStream, sql: &str, wanted: &str) {
    while query(stream, sql).1 != [wanted] {
        std::thread::yield_now();
    }
}

fn resident_kib(running: &Running) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.child.id())).expect("of a live process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its size");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// How many sockets the server has open. Its files come and go by themselves: the log's segments, the file `durable`.
fn sockets(running: &Running) -> usize {
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", running.child.id())).expect("of a live process");
    let targets = descriptors.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
}

fn with_server(name: &str, arguments: &[&str], test: impl FnOnce(&Running)) {
    let directory = scratch(name);
    let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
    let running = if arguments.is_empty() { start(&directory) } else { start_with(&directory, &arguments) };
    test(&running);
    stop(running);
    let _ = std::fs::remove_dir_all(&directory as &Path);
}

#[test]
fn clients_that_do_not_read_a_huge_result() {
    with_server("slow-readers", &[], |running| {
        const CLIENTS: usize = 40;
        let mut watcher = session(running);
        query(&mut watcher, "select 1 from pg_stat_activity");
        let before = resident_kib(running);
        let mut slow: Vec<TcpStream> = (0..CLIENTS).map(|_| session(running)).collect();
        for stream in &mut slow {
            // Ten gigabytes each.
            let text = b"select repeat('x', 1000) from generate_series(1, 10000000)\0";
            stream.write_all(&frame(b'Q', text)).expect("sent");
        }
        let stuck = "select count(*) from pg_stat_activity where wait_event = 'ClientWrite'";
        until(&mut watcher, stuck, &CLIENTS.to_string());
        let grown = resident_kib(running).saturating_sub(before);
        // A session of an unoptimized program, its batch of rows and its buffer.
        assert!(grown < CLIENTS * 1024, "{grown} KiB for {CLIENTS} clients that do not read");
        // They delay no session, and end when they are told to.
        query(&mut watcher, "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'ClientWrite'");
        until(&mut watcher, "select count(*) from pg_stat_activity where wait_event = 'ClientWrite'", "0");
    });
}

#[test]
fn messages_that_claim_more_than_they_bring() {
    with_server("oversized", &[], |running| {
        const CLIENTS: usize = 40;
        let before = resident_kib(running);
        // Two gigabytes are refused at once.
        let mut refused = session(running);
        refused.write_all(b"Q\x7f\xff\xff\xffselect").expect("sent");
        let mut said = Vec::new();
        let _ = refused.read_to_end(&mut said);
        assert_eq!(said.first(), Some(&b'E'), "FATAL, then closed");
        // 60 MB may be sent; what has not arrived is not reserved.
        let mut claimed: Vec<TcpStream> = (0..CLIENTS).map(|_| session(running)).collect();
        for stream in &mut claimed {
            stream.write_all(&[b'Q', 0x03, 0x90, 0, 0]).expect("sent");
            stream.write_all(&[b'x'; 20 * KIB]).expect("sent");
        }
        let mut watcher = session(running);
        assert_eq!(query(&mut watcher, "select count(*) from pg_stat_activity where state = 'idle'").0, "TDCZ");
        let grown = resident_kib(running).saturating_sub(before);
        assert!(grown < CLIENTS * 512, "{grown} KiB for {CLIENTS} clients that claim 60 MB each");
    });
}

#[test]
fn connections_that_never_become_sessions() {
    with_server("unfinished", &["-c", "authentication_timeout=1s"], |running| {
        let before = sockets(running);
        let mut silent: Vec<TcpStream> =
            (0..100).map(|_| TcpStream::connect(("127.0.0.1", running.port)).expect("connects")).collect();
        // Half of a startup packet, every second one.
        silent.iter_mut().step_by(2).for_each(|stream| stream.write_all(&[0, 0, 0, 50, 0, 3]).expect("sent"));
        for stream in &mut silent {
            let mut rest = Vec::new();
            assert_eq!(stream.read_to_end(&mut rest).expect("closed"), 0, "START-1");
        }
        while sockets(running) > before {
            std::thread::yield_now();
        }
        query(&mut session(running), "select 1");
    });
}

/// The kernel's timer of the server's side of a connection, by /proc/net/tcp: its kind (2: keepalive) and what is left of it in
/// hundredths of a second.
fn timer(running: &Running, client: &TcpStream) -> Option<(u32, u32)> {
    let client = client.local_addr().expect("connected").port();
    let ends = (format!(":{:04X}", running.port), format!(":{client:04X}"));
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the kernel's table");
    table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, remote, timer) = (fields.get(1)?, fields.get(2)?, fields.get(5)?);
        let (kind, left) = timer.split_once(':').filter(|_| local.ends_with(&ends.0) && remote.ends_with(&ends.1))?;
        Some((u32::from_str_radix(kind, 16).ok()?, u32::from_str_radix(left, 16).ok()?))
    })
}

#[test]
fn peers_that_are_gone_without_a_word_are_asked_after_within_a_minute() {
    with_server("half-open", &[], |running| {
        let client = session(running);
        // While an answer is not acknowledged another timer stands in its place.
        let left = loop {
            match timer(running, &client) {
                Some((2, left)) => break left,
                Some(_) => std::thread::yield_now(),
                None => panic!("the connection is not in the kernel's table"),
            }
        };
        assert!(left <= 60 * 100, "the first probe comes in {left} hundredths of a second");
    });
}

#[test]
fn sessions_that_rest() {
    with_server("idle-sessions", &[], |running| {
        const CLIENTS: usize = 300;
        let mut first = session(running);
        query(&mut first, "create table t (id int primary key, v text)");
        query(&mut first, "insert into t select n, 'value' from generate_series(1, 1000) n");
        let begin = |stream: &mut TcpStream, n: usize| {
            let mut batch = frame(b'P', b"read\0select v from t where id = $1\0\0\0");
            batch.extend(frame(b'P', b"write\0update t set v = 'other' where id = $1\0\0\0"));
            for statement in [&b"\0read\0"[..], b"\0write\0"] {
                let key = n.to_string();
                let mut bind = statement.to_vec();
                bind.extend_from_slice(&[0, 0, 0, 1]);
                bind.extend_from_slice(&(key.len() as u32).to_be_bytes());
                bind.extend_from_slice(key.as_bytes());
                bind.extend_from_slice(&[0, 0]);
                batch.extend(frame(b'B', &bind));
                batch.extend(frame(b'E', b"\0\0\0\0\0"));
            }
            batch.extend(frame(b'S', b""));
            stream.write_all(&batch).expect("sent");
            assert_eq!(until_ready(stream).0, "112DC2CZ");
        };
        // What the first sessions make for all is not counted.
        let _warm: Vec<TcpStream> = (0..20).map(|_| session(running)).collect();
        begin(&mut first, 1000);
        let before = resident_kib(running);
        let mut clients: Vec<TcpStream> = (0..CLIENTS).map(|_| session(running)).collect();
        clients.iter_mut().enumerate().for_each(|(n, stream)| begin(stream, n + 1));
        let each = resident_kib(running).saturating_sub(before) / CLIENTS;
        assert!(each < 64, "{each} KiB a session");
    });
}
