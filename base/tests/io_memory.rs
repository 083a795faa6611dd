//! What file operations leave in a session's account: nothing (MEM-8).

#![allow(clippy::disallowed_methods, reason = "tests, no part of the database")]

use clearway_base::memory::{self, Account, Accounted, accounts, charged};
use clearway_base::sync::block_on;
use clearway_base::vfs::{FileKind, IoBuf, OpenHow, RealVfs, Vfs};

#[global_allocator]
static ALLOCATOR: Accounted = Accounted;

#[test]
fn reads_writes_and_files_leave_an_account_as_it_was() {
    let directory = std::env::temp_dir().join(format!("clearway-io-memory-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let vfs = RealVfs::pooled(2).expect("threads");
    let account = Account::open(83);
    let bytes = || accounts().iter().find(|a| a.pid == 83).map_or(0, |a| a.bytes);
    let path = directory.join("file");
    let left = block_on(charged(account, async {
        let file = vfs.open(&path, OpenHow::create(FileKind::Other)).await.expect("made");
        let mut buffer = file.write_at(0, IoBuf::zeroed(8192)).await.expect("written");
        // The threads' first jobs, and what a queue takes.
        for _ in 0..100 {
            buffer = file.read_exact_at(0, buffer, 8192).await.expect("read");
        }
        let mut left = Vec::new();
        let account_now = || {
            memory::begin_statement(0);
            bytes()
        };
        let before = account_now();
        for _ in 0..5_000 {
            buffer = file.read_exact_at(0, buffer, 8192).await.expect("read");
        }
        left.push(account_now() - before);
        for _ in 0..1_000 {
            drop(vfs.open(&path, OpenHow::existing(FileKind::Other)).await.expect("opened"));
        }
        left.push(account_now() - before);
        left
    }));
    account.close();
    let _ = std::fs::remove_dir_all(&directory);
    // A read left 100 bytes and more, and a file that was opened as many.
    assert!(left.iter().all(|bytes| bytes.abs() < 20_000), "MEM-8: {left:?} bytes after reads, and after files");
}
