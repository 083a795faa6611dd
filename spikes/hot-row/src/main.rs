//! The hot-row slice: real sockets, the wire, rows with tags, a log ring, a commit section and a FIFO row queue, built
//! to choose between schedulers, ways to sync, and who syncs. Thrown away once docs/measured/hot-row-slice.md stands.
//!
//! `hot-row serve [--sched tokio|percore|own] [--io fdatasync|direct] [--flush thread|inline|block|last-group|alone|probe]
//!  [--wake direct|batch] [--codec pgwire|own] [--workers N] [--interval N] [--no-priorities] [--spin US]
//!  [--constant] [--port N] [--log PATH]`
//! `hot-row raw PATH SECONDS` the raw sync rates; `hot-row local [the same flags]` one committer in the process, without
//! a wire; `hot-row codec` the cost of the two codecs.

mod log;
mod sched;
mod session;
mod table;
mod wire;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use log::{Flusher, Io, Log, Wake};
use sched::Sched;
use wire::Codec;

#[derive(Clone, Debug)]
pub struct Flags {
    pub sched: Sched,
    pub io: Io,
    pub flusher: Flusher,
    pub wake: Wake,
    pub codec: Codec,
    pub workers: usize,
    pub interval: usize,
    pub priorities: bool,
    pub spin_us: u64,
    pub constant: bool,
    pub port: u16,
    pub rows: usize,
    pub log_path: String,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("serve") => serve(parse_flags(&arguments[1..])),
        Some("raw") => {
            let seconds = arguments[2].parse().unwrap();
            for io in [Io::Fdatasync, Io::Direct] {
                println!("{io:?} {:.0}", log::raw_sync_rate(&arguments[1], io, seconds));
            }
        }
        Some("local") => {
            for flusher in [Flusher::Thread, Flusher::Inline, Flusher::Probe] {
                let flags = Flags { flusher, ..parse_flags(&arguments[1..]) };
                println!("{flusher:?} {:.0}", local_rate(&flags));
            }
        }
        Some("codec") => {
            for codec in [Codec::Pgwire, Codec::Own] {
                let (update, read) = wire::codec_cost(codec);
                println!("{codec:?} update {update:.0} ns, point read {read:.0} ns");
                wire::malformed(codec).iter().for_each(|(case, outcome)| println!("  {case}: {outcome}"));
            }
        }
        _ => panic!("serve | raw PATH SECONDS | local | codec"),
    }
}

fn parse_flags(arguments: &[String]) -> Flags {
    let mut flags = Flags {
        sched: Sched::Tokio,
        io: Io::Fdatasync,
        flusher: Flusher::Probe,
        wake: Wake::Direct,
        codec: Codec::Pgwire,
        workers: 2,
        interval: 61,
        priorities: true,
        spin_us: 0,
        constant: false,
        port: 6543,
        rows: 100_000,
        log_path: "hot-row.log".into(),
    };
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        match name.as_str() {
            "--no-priorities" => flags.priorities = false,
            "--constant" => flags.constant = true,
            name => set_flag(&mut flags, name, rest.next().expect("a value")),
        }
    }
    flags
}

fn set_flag(flags: &mut Flags, name: &str, value: &str) {
    match (name, value) {
        ("--sched", "tokio") => flags.sched = Sched::Tokio,
        ("--sched", "percore") => flags.sched = Sched::PerCore,
        ("--sched", "own") => flags.sched = Sched::Own,
        ("--io", "fdatasync") => flags.io = Io::Fdatasync,
        ("--io", "direct") => flags.io = Io::Direct,
        ("--flush", "thread") => flags.flusher = Flusher::Thread,
        ("--flush", "inline") => flags.flusher = Flusher::Inline,
        ("--flush", "block") => flags.flusher = Flusher::Block,
        ("--flush", "last-group") => flags.flusher = Flusher::LastGroup,
        ("--flush", "probe") => flags.flusher = Flusher::Probe,
        ("--flush", "alone") => flags.flusher = Flusher::Alone,
        ("--wake", "direct") => flags.wake = Wake::Direct,
        ("--wake", "batch") => flags.wake = Wake::Batch,
        ("--codec", "pgwire") => flags.codec = Codec::Pgwire,
        ("--codec", "own") => flags.codec = Codec::Own,
        ("--workers", n) => flags.workers = n.parse().unwrap(),
        ("--interval", n) => flags.interval = n.parse().unwrap(),
        ("--spin", n) => flags.spin_us = n.parse().unwrap(),
        ("--port", n) => flags.port = n.parse().unwrap(),
        ("--log", path) => flags.log_path = path.into(),
        other => panic!("unknown flag {other:?}"),
    }
}

/// Durable updates per second of one committer inside the process.
fn local_rate(flags: &Flags) -> f64 {
    let log = Log::open(flags);
    let table = table::Table::new(10, log.clone());
    let busy = std::sync::atomic::AtomicUsize::new(1);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (begin, mut commits) = (std::time::Instant::now(), 0);
        while begin.elapsed().as_secs() < 1 {
            let mut txn = table::Txn::default();
            table.increment(1, &mut txn).await;
            let lsn = table.commit(&mut txn);
            log.request_flush(lsn, &busy).await;
            log.wait_durable(lsn, 0).await;
            commits += 1;
        }
        commits as f64 / begin.elapsed().as_secs_f64()
    })
}

fn serve(flags: Flags) {
    let log = Log::open(&flags);
    let table = table::Table::new(flags.rows, log.clone());
    let server =
        Arc::new(session::Server { table, log: log.clone(), codec: flags.codec, busy: Default::default(), constant: flags.constant });
    let listener = std::net::TcpListener::bind(("127.0.0.1", flags.port)).unwrap();
    // SAFETY: `listener` is an open socket; a second listen only widens its backlog from std's 128.
    unsafe { libc::listen(std::os::fd::AsRawFd::as_raw_fd(&listener), 8192) };
    report_on_stdin(log.clone(), server.clone());
    println!("ready {flags:?}");
    let dispatch_log = log;
    sched::serve(
        &flags,
        listener,
        move |stream, shard| Box::pin(session::run(server.clone(), stream, shard)),
        move |shard| Box::pin(dispatch_log.clone().dispatch(shard)),
    );
}

/// Each line on stdin is answered with "syncs inline-syncs hot-row-value"; the end of stdin ends the process.
fn report_on_stdin(log: Arc<Log>, server: Arc<session::Server>) {
    std::thread::spawn(move || {
        for _ in std::io::stdin().lines() {
            let (value, _) = server.table.read(1, u64::MAX);
            println!("{} {} {value}", log.syncs.load(Relaxed), log.inline_syncs.load(Relaxed));
        }
        std::process::exit(0);
    });
}
