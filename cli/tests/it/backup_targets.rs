//! The real program: backups in a single file and through a pipe, backups that continue after an interruption, commits that wait for the
//! archive.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::program::{Running, connect, run, scratch, start, start_with, stop};
use tokio_postgres::NoTls;

fn url(running: &Running) -> String {
    format!("postgresql://postgres@127.0.0.1:{}/postgres", running.port)
}

/// What the command gives, with these bytes on its standard input.
fn fed(arguments: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clearway"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut stdin = child.stdin.take().expect("piped");
    // It may not read all of it.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().expect("ends")
}

fn says(arguments: &[&str]) -> String {
    let output = fed(arguments, b"");
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {said}{errors}");
    said.into_owned()
}

fn refuses(arguments: &[&str], input: &[u8]) -> String {
    let output = fed(arguments, input);
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!output.status.success(), "{arguments:?}: {said}{errors}");
    errors.into_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn rows_in(dir: &Path) -> i64 {
    let server = start(dir);
    let rows = run(async {
        let client = connect(&server).await;
        client.query_one("select count(*) from t", &[]).await.expect("counts").get(0)
    });
    stop(server);
    rows
}

fn filled(name: &str, options: &[String]) -> (PathBuf, Running) {
    let base = scratch(name);
    fs::create_dir_all(&base).expect("made");
    let server = start_with(&base.join("data"), options);
    run(async {
        let client = connect(&server).await;
        let fill = "create table t (id int primary key, v text);
                    insert into t select i, repeat('x', 200) from generate_series(1, 3000) i";
        client.batch_execute(fill).await.expect("fills");
    });
    (base, server)
}

#[test]
fn a_backup_is_one_file_or_a_stream() {
    let (base, server) = filled("backup-file", &[]);
    let file = base.join("t.backup");
    let said = says(&["backup", text(&file), "--server", &url(&server)]);
    assert!(said.contains("-full"), "{said}");
    assert!(refuses(&["backup", text(&file), "--server", &url(&server)], b"").contains("there is an object"));
    let again = base.join("u.backup");
    let errors = refuses(&["backup", text(&again), "--server", &url(&server), "--incremental"], b"");
    assert!(errors.contains("take a full one"), "{errors}");
    let piped = fed(&["backup", "-", "--server", &url(&server)], b"");
    assert!(piped.status.success(), "{}", String::from_utf8_lossy(&piped.stderr));
    assert!(String::from_utf8_lossy(&piped.stderr).contains("-full"), "what it says goes to standard error");
    stop(server);

    assert!(says(&["backup", "list", text(&file)]).ends_with("1 backup\n"));
    assert!(says(&["backup", "verify", text(&file), "--open"]).contains("no damage"));
    let (one, two) = (base.join("one"), base.join("two"));
    says(&["restore", text(&file), text(&one)]);
    assert_eq!(rows_in(&one), 3000);
    let restored = fed(&["restore", "-", text(&two)], &piped.stdout);
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    assert_eq!(rows_in(&two), 3000);

    // A stream that was cut off, in any place, is none, and leaves nothing.
    let three = base.join("three");
    for cut in [0, 7, 40, piped.stdout.len() / 2, piped.stdout.len() - 1] {
        refuses(&["restore", "-", text(&three)], &piped.stdout[..cut]);
        let left: Vec<_> =
            fs::read_dir(&base).expect("lists").map(|entry| entry.expect("an entry").file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("three")), "{left:?}");
    }
    let whole = fs::read(&file).expect("reads");
    for place in 0..80 {
        let mut flipped = whole.clone();
        flipped[place * (whole.len() - 1) / 79] ^= 1 << (place % 8);
        fs::write(&again, &flipped).expect("writes");
        refuses(&["backup", "verify", text(&again)], b"");
    }
    fs::remove_dir_all(&base).expect("removed");
}

#[test]
fn a_backup_goes_on_where_it_was_broken_off() {
    let (base, server) = filled("backup-resume", &[]);
    let repo = base.join("repo");
    assert!(refuses(&["backup", text(&repo), "--server", &url(&server), "--resume"], b"").contains("broken off"));
    says(&["backup", text(&repo), "--server", &url(&server)]);
    // As if the taker had been killed before the last step: the manifest is not there, and an object is cut off.
    let backups = repo.join("backups");
    let id = fs::read_dir(&backups).expect("lists").next().expect("one").expect("an entry").file_name();
    let dir = backups.join(&id);
    fs::remove_file(dir.join("manifest")).expect("removed");
    let log = fs::read_dir(dir.join("log")).expect("lists").next().expect("one").expect("an entry").path();
    fs::write(&log, b"half").expect("writes");
    run(async {
        let client = connect(&server).await;
        let change = "update t set v = 'later' where id <= 1000; insert into t select i, 'new' from generate_series(3001, 4000) i;
                      checkpoint; delete from t where id <= 10";
        client.batch_execute(change).await.expect("changes");
    });
    let said = says(&["backup", text(&repo), "--server", &url(&server), "--resume"]);
    assert!(said.contains(&*id.to_string_lossy()), "{said}");
    assert!(refuses(&["backup", text(&repo), "--server", &url(&server), "--resume"], b"").contains("broken off"));
    says(&["backup", "verify", text(&repo), "--open"]);
    let restored = base.join("restored");
    says(&["restore", text(&repo), text(&restored)]);
    assert_eq!(rows_in(&restored), 3990);
    // An opening after a crash begins an epoch in which the pages that were copied mean nothing.
    fs::remove_file(dir.join("manifest")).expect("removed");
    drop(server);
    let server = start(&base.join("data"));
    let errors = refuses(&["backup", text(&repo), "--server", &url(&server), "--resume"], b"");
    assert!(errors.contains("epoch"), "{errors}");
    stop(server);
    fs::remove_dir_all(&base).expect("removed");
}

/// A server without such an archive refuses the policy.
fn the_policy_needs_an_archive(data: &Path) {
    let plain = start(data);
    run(async {
        let client = connect(&plain).await;
        let refused = client.batch_execute("set synchronous_commit = archive").await.expect_err("no archive");
        assert_eq!(refused.code().expect("a code").code(), "55000");
        assert_eq!(client.query_one("show synchronous_commit", &[]).await.expect("shows").get::<_, &str>(0), "on");
    });
    stop(plain);
}

#[test]
fn commits_wait_for_the_archive_if_they_ask_for_it() {
    let base = scratch("backup-sync");
    let repo = base.join("repo");
    let options: Vec<String> =
        [format!("archive={}", text(&repo)), "archive_timeout=3600s".into(), "archive_mode=sync".into()]
            .into_iter()
            .flat_map(|setting| ["-c".to_owned(), setting])
            .collect();
    let (base, server) = filled("backup-sync", &options);
    says(&["backup", text(&repo), "--server", &url(&server)]);
    run(async {
        let client = connect(&server).await;
        client
            .batch_execute("set synchronous_commit = archive; insert into t values (5000, 'safe')")
            .await
            .expect("sent");
        let row = client.query_one("select mode, state, waiting from clearway_archive", &[]).await.expect("a row");
        assert_eq!((row.get::<_, &str>(0), row.get::<_, i64>(2)), ("sync", 0));
        client
            .batch_execute("set synchronous_commit = on; insert into t values (5001, 'here only')")
            .await
            .expect("kept");
    });
    // The machine burns down: what was acknowledged under the policy is in the archive, what was not asked for is not.
    drop(server);
    let restored = base.join("restored");
    says(&["restore", text(&repo), text(&restored)]);
    assert_eq!(rows_in(&restored), 3001);

    // The archive is out of reach: only commits that ask for it wait, and a cancel ends that.
    let server = start_with(&base.join("data"), &options);
    run(async {
        let (waits, other) = (connect(&server).await, connect(&server).await);
        waits
            .batch_execute("set synchronous_commit = archive; insert into t values (6000, 'sent')")
            .await
            .expect("sent");
        fs::rename(&repo, base.join("away")).expect("renamed");
        fs::write(&repo, b"no directory").expect("written");
        let token = waits.cancel_token();
        let insert = waits.batch_execute("insert into t values (6001, 'waits')");
        let meanwhile = async {
            loop {
                let row =
                    other.query_one("select waiting, last_error from clearway_archive", &[]).await.expect("a row");
                if row.get::<_, i64>(0) == 1 && row.get::<_, Option<&str>>(1).is_some() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let wait = "select count(*) from pg_stat_activity where wait_event = 'ArchiveDurable'";
            assert_eq!(other.query_one(wait, &[]).await.expect("counts").get::<_, i64>(0), 1);
            other.batch_execute("insert into t values (6002, 'does not wait')").await.expect("goes on");
            token.cancel_query(NoTls).await.expect("asked");
        };
        let (inserted, ()) = tokio::join!(insert, meanwhile);
        inserted.expect("it is committed, whatever became of the wait");
        assert_eq!(
            other.query_one("select count(*) from t where id > 6000", &[]).await.expect("counts").get::<_, i64>(0),
            2
        );
        fs::remove_file(&repo).expect("removed");
        fs::rename(base.join("away"), &repo).expect("renamed");
        waits.batch_execute("insert into t values (6003, 'sent')").await.expect("sent when the archive is back");
    });
    stop(server);
    the_policy_needs_an_archive(&base.join("data"));
    fs::remove_dir_all(&base).expect("removed");
}

fn arguments(settings: &[&str]) -> Vec<String> {
    settings.iter().flat_map(|setting| ["-c".to_owned(), (*setting).to_owned()]).collect()
}

/// Waits until `clearway_archive` answers a condition with true.
async fn until_archive(client: &tokio_postgres::Client, condition: &str) {
    let query = format!("select {condition}, a::text from clearway_archive a");
    loop {
        let row = client.query_one(&query, &[]).await.expect("a row");
        if row.get::<_, Option<bool>>(0) == Some(true) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Writes log until the archive, which can't be reached, has lost some of it.
async fn write_beyond_the_limit(client: &tokio_postgres::Client) {
    let lost = "select lost from clearway_log_holders where name = 'archive'";
    while !client.query_one(lost, &[]).await.expect("a holder").get::<_, bool>(0) {
        client.batch_execute("update t set v = repeat('y', 200) where id <= 3000; checkpoint").await.expect("writes");
    }
    for _ in 0..30 {
        client.batch_execute("update t set v = repeat('z', 200) where id <= 3000; checkpoint").await.expect("writes");
    }
}

#[test]
fn commits_are_not_in_an_archive_with_a_hole_until_a_backup_closes_it() {
    let repo = scratch("backup-hole").join("repo");
    let archive = format!("archive={}", text(&repo));
    let breaks = arguments(&[&archive, "archive_timeout=1s", "archive_max_lag=1MB", "archive_on_lag=break"]);
    let (base, server) = filled("backup-hole", &breaks);
    says(&["backup", text(&repo), "--server", &url(&server)]);
    run(async {
        let client = connect(&server).await;
        until_archive(&client, "archived_lsn > 0 and hole_begin_lsn is null").await;
        fs::rename(&repo, base.join("away")).expect("renamed");
        fs::write(&repo, b"no directory").expect("written");
        write_beyond_the_limit(&client).await;
        fs::remove_file(&repo).expect("removed");
        fs::rename(base.join("away"), &repo).expect("renamed");
        until_archive(&client, "state = 'broken' and hole_begin_lsn < hole_end_lsn").await;
    });
    stop(server);

    // HOL-1: the next start finds the hole by the names of the archive's objects.
    let server = start_with(&base.join("data"), &arguments(&[&archive, "archive_timeout=1s", "archive_mode=sync"]));
    run(async {
        let client = connect(&server).await;
        until_archive(&client, "state = 'broken' and hole_begin_lsn < hole_end_lsn").await;
        let refused = client.batch_execute("set synchronous_commit = archive").await.expect_err("a hole");
        let error = refused.as_db_error().expect("an error of the server");
        assert_eq!((error.code().code(), error.hint().is_some()), ("55000", true), "{error}");
        assert!(error.message().contains("lacks the log from LSN"), "{error}");
        client.batch_execute("insert into t values (5000, 'by the backup')").await.expect("other commits go on");
    });
    says(&["backup", text(&repo), "--server", &url(&server)]);
    run(async {
        let client = connect(&server).await;
        until_archive(&client, "state <> 'broken' and hole_begin_lsn is null").await;
        client
            .batch_execute("set synchronous_commit = archive; insert into t values (5001, 'by the archive')")
            .await
            .expect("sent");
    });
    drop(server);
    let restored = base.join("restored");
    says(&["restore", text(&repo), text(&restored)]);
    assert_eq!(rows_in(&restored), 3002);
    fs::remove_dir_all(&base).expect("removed");
}
