//! A directory that the library wrote is served by the command, and the other way round; several processes use one directory; backups.

use std::process::Command;

use crate::program::{scratch, start, stop};
use clearway::{Database, Error};

const COUNT: &str = "SELECT count(*), sum(a) FROM t";

fn count(db: &Database) -> (i64, i64) {
    db.connect().expect("a connection").query_row(COUNT, ()).expect("a row")
}

#[test]
fn library_and_server_open_each_others_directories_also_after_a_kill() {
    let directory = scratch("each-other");
    let db = Database::open(&directory).expect("a new directory");
    db.connect()
        .expect("a connection")
        .execute_batch("CREATE TABLE t (a bigint PRIMARY KEY); INSERT INTO t VALUES (1)")
        .expect("made");
    db.close().expect("closed");

    let server = start(&directory);
    assert_ne!(server.port, 0);
    let Err(refused) = Database::open(&directory) else { panic!("opened twice") };
    assert!(refused.to_string().contains(&server.child.id().to_string()), "{refused}");
    let guest = Database::open_or_connect(&directory).expect("the server lets it in");
    assert!(!guest.has_directory());
    let mut connection = guest.connect().expect("a connection");
    connection.execute("INSERT INTO t VALUES (2)", ()).expect("acknowledged");
    assert_eq!(count(&guest), (2, 3));
    drop(server); // SIGKILL
    assert!(matches!(connection.execute("INSERT INTO t VALUES (3)", ()), Err(Error::Lost)));
    connection.execute("INSERT INTO t VALUES (4)", ()).expect("opened here");
    assert!(guest.has_directory());
    assert_eq!(count(&guest), (3, 7));
    drop(connection);
    guest.close().expect("closed");

    let server = start(&directory);
    let again = Database::open_or_connect(&directory).expect("the server lets it in");
    assert_eq!(count(&again), (3, 7));
    again.close().expect("closed");
    stop(server);
    assert!(!directory.join("clearway.sock").exists());
    let db = Database::open(&directory).expect("a directory of the server's");
    assert_eq!(count(&db), (3, 7));
    db.close().expect("closed");
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn a_backup_of_a_running_program_is_restored_by_the_command() {
    let (directory, backups, restored) = (scratch("backed-up"), scratch("backups"), scratch("restored"));
    let db = Database::open(&directory).expect("a new directory");
    let mut connection = db.connect().expect("a connection");
    connection.execute_batch("CREATE TABLE t (a bigint PRIMARY KEY)").expect("made");
    connection.execute("INSERT INTO t SELECT generate_series(1, 20000)", ()).expect("filled");
    let mut heard = Vec::new();
    connection.backup(&backups, |done, all| heard.push((done, all))).expect("backed up");
    assert!(heard.last().is_some_and(|(done, all)| *done > 0 && done <= all), "{heard:?}");
    connection.execute("INSERT INTO t VALUES (20001)", ()).expect("after it");
    drop(connection);
    let other = Database::in_memory().expect("another database");
    assert!(matches!(other.connect().expect("a connection").backup(&backups, |_, _| ()), Err(Error::Backup(_))));
    let command =
        Command::new(env!("CARGO_BIN_EXE_clearway")).arg("restore").args([&backups, &restored]).output().expect("ran");
    assert!(command.status.success(), "{}", String::from_utf8_lossy(&command.stderr));
    let copy = Database::open(&restored).expect("restored");
    assert_eq!(count(&copy), (20_000, 200_010_000));
    copy.close().expect("closed");
    db.close().expect("closed");
    for path in [directory, backups, restored] {
        let _ = std::fs::remove_dir_all(path);
    }
}
