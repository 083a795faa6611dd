//! A full disk: statements that free space work, and afterwards every statement does.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::sim::{connect, open, simulate};
use clearway_base::sync::sleep;
use clearway_base::vfs::Vfs;
use clearway_base::vfs::sim::SimDisk;
use clearway_sql::session::Backends;

/// Bytes of all files.
async fn used(disk: &SimDisk) -> u64 {
    let mut bytes = 0;
    for dir in ["/db", "/db/wal", "/db/data", "/db/checkpoint"] {
        let entries = disk.list(Path::new(dir)).await.expect("a directory");
        bytes += entries.iter().map(|entry| entry.size).sum::<u64>();
    }
    bytes
}

/// Bytes of the log's files.
async fn of_log(disk: &SimDisk) -> u64 {
    disk.list(Path::new("/db/wal")).await.expect("a directory").iter().map(|entry| entry.size).sum()
}

/// CHECKPOINT removes the segments of the log that are kept for reuse, where the disk was full.
#[test]
fn a_checkpoint_on_a_full_disk_gives_log_space_back() {
    simulate(1, || async move {
        let disk = SimDisk::new(1);
        let db = open(&disk).await;
        let mut a = connect(&db, &Arc::new(Backends::default())).await;
        a.run("create table t (id int primary key, b text)").await.expect("created");
        a.run("create table large (id int, b text)").await.expect("created");
        a.run("insert into t select g, '' from generate_series(1, 300) g").await.expect("inserted");
        // The log goes through more segments than it needs, with checkpoints that keep the others as spares.
        let begun = of_log(&disk).await;
        for _ in 0..60 {
            if of_log(&disk).await >= begun + (32 << 20) {
                break;
            }
            a.run("update t set b = repeat('x', 5000)").await.expect("updated");
        }
        for _ in 0..2 {
            a.run("checkpoint").await.expect("a checkpoint");
        }
        let spares = async || {
            let entries = disk.list(Path::new("/db/wal")).await.expect("a directory");
            entries.iter().filter(|entry| entry.name.starts_with("spare-")).count()
        };
        assert!(spares().await > 0, "there are no spares: the test shows nothing");
        disk.set_capacity(used(&disk).await);
        let mut filled = Ok(Vec::new());
        for n in 0..2_000 {
            let sql = format!("insert into large select {n}, repeat('x', 2000) from generate_series(1, 200) g");
            filled = a.run(&sql).await;
            if filled.is_err() {
                break;
            }
        }
        let error = filled.expect_err("the disk never filled up: the test shows nothing");
        assert_eq!(error.code(), "53100", "{error:?}");
        // That there is a little room again does not make up for it.
        disk.set_capacity(used(&disk).await + (20 << 20));
        a.run("insert into large select 0, repeat('x', 2000) from generate_series(1, 2000) g").await.expect("room");
        a.run("truncate large").await.expect("truncated");
        a.run("checkpoint").await.expect("a checkpoint");
        assert_eq!(spares().await, 0, "spares are left");
        // What lies before the checkpoint is gone: the segment that is being written, at times the one before it, and two that are ready.
        assert!(of_log(&disk).await <= 64 << 20, "the log takes {} bytes", of_log(&disk).await);
    });
}

/// SPC-11: each of the statements alone, on a disk that took all that fits.
#[test]
fn delete_truncate_and_drop_work_on_a_full_disk() {
    for frees in
        ["delete from kept where id <= 50", "truncate other", "drop table large", "drop index kept_b; drop table other"]
    {
        simulate(1, move || async move {
            let disk = SimDisk::new(1);
            let db = open(&disk).await;
            let backends = Arc::new(Backends::default());
            let mut a = connect(&db, &backends).await;
            for table in ["large", "other", "kept"] {
                a.run(&format!("create table {table} (id int primary key, b text)")).await.expect("created");
            }
            a.run("create index kept_b on kept (b)").await.expect("created");
            a.run("insert into kept select g, 'x' || g from generate_series(1, 100) g").await.expect("inserted");
            a.run("insert into other select g, 'x' from generate_series(1, 100) g").await.expect("inserted");
            a.run("checkpoint").await.expect("a checkpoint");
            disk.set_capacity(used(&disk).await);
            let mut full = false;
            for n in 0..2_000 {
                let sql = format!("insert into large select g, repeat('x', 2000) from generate_series({n}00, {n}99) g");
                if let Err(error) = a.run(&sql).await {
                    assert_eq!(error.code(), "53100", "{error:?}");
                    full = true;
                    break;
                }
            }
            assert!(full, "the disk never filled up: the test shows nothing");
            assert_eq!(
                a.code("insert into large select g, repeat('x', 2000) from generate_series(-100, -1) g").await,
                "53100"
            );
            a.run(frees).await.unwrap_or_else(|error| panic!("{frees}: {error:?}"));
            a.run("checkpoint").await.expect("a checkpoint");
            if frees.contains("large") {
                // What a dropped table had is given back in the background, and is free for others after the next commit.
                let insert = "insert into other select g, repeat('y', 2000) from generate_series(101, 300) g";
                let mut last = a.run(insert).await;
                for _ in 0..100 {
                    if last.is_ok() {
                        break;
                    }
                    sleep(Duration::from_millis(100)).await;
                    a.run("delete from other where id = (select min(id) from other)").await.expect("deleted");
                    last = a.run(insert).await;
                }
                last.expect("there is room again");
                assert_eq!(a.value("select count(*) from other where id > 100").await, "200");
            }
        });
    }
}
