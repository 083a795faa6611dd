//! The real program: backups of a running server and of a directory without a server; restored, verified, listed, expired.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::program::{Running, connect_as, run, scratch, start, stop};

fn url(running: &Running, user: &str) -> String {
    format!("postgresql://{user}@127.0.0.1:{}/postgres", running.port)
}

fn clearway(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_clearway")).args(arguments).output().expect("runs")
}

/// What a command says that succeeds.
fn says(arguments: &[&str]) -> String {
    let output = clearway(arguments);
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {said}{errors}");
    said.into_owned()
}

/// What a command says that fails.
fn refuses(arguments: &[&str]) -> String {
    let output = clearway(arguments);
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!output.status.success(), "{arguments:?}: {said}{errors}");
    errors.into_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).expect("lists") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all.sort();
    all
}

/// A mistyped name, or a moment that is too early, is told as such.
fn a_wrong_name_is_no_empty_repository(repo: &Path, base: &Path) {
    let (wrong, none) = (base.join("rep"), base.join("none"));
    let (wrong, none) = (text(&wrong), text(&none));
    for command in [
        &["backup", "list", wrong][..],
        &["backup", "verify", wrong],
        &["backup", "expire", wrong, "--keep", "7d"],
        &["restore", "--list", wrong],
        &["restore", wrong, none],
    ] {
        let errors = refuses(command);
        assert!(errors.contains("holds no backups and no archive"), "{command:?}: {errors}");
    }
    let errors = refuses(&["restore", text(repo), none, "--to-lsn", "8"]);
    assert!(errors.contains("LSN 8 lies before the end of the oldest backup"), "{errors}");
}

/// How many rows a restored directory has in `t`.
fn rows_in(dir: &Path) -> i64 {
    let server = start(dir);
    let rows = run(async {
        let client = connect_as(&server, "postgres", "postgres").await;
        client.query_one("select count(*) from t", &[]).await.expect("counts").get(0)
    });
    stop(server);
    rows
}

#[test]
fn a_backup_of_a_running_server_is_restored_and_damage_in_it_is_found() {
    let base = scratch("backup-running");
    std::fs::create_dir_all(&base).expect("made");
    let (data, repo) = (base.join("data"), base.join("repo"));
    let server = start(&data);
    run(async {
        let client = connect_as(&server, "postgres", "postgres").await;
        client.batch_execute("create table t (id int primary key, v text); checkpoint").await.expect("creates");
        client
            .batch_execute("insert into t select i, repeat('x', 200) from generate_series(1, 5000) i")
            .await
            .expect("inserts");
        client.batch_execute("create role plain login; create role copier login replication").await.expect("creates");
    });
    let url_of = |user| url(&server, user);
    let errors = refuses(&["backup", text(&repo), "--server", &url_of("plain")]);
    assert!(errors.contains("permission denied"), "{errors}");
    says(&["backup", text(&repo), "--server", &url_of("copier")]);
    run(async {
        let client = connect_as(&server, "copier", "postgres").await;
        let refused = client.batch_execute("select pg_create_restore_point('x')").await.expect_err("as in PostgreSQL");
        assert_eq!(refused.code().expect("a code").code(), "42501");
    });
    run(async {
        let client = connect_as(&server, "postgres", "postgres").await;
        client
            .batch_execute("insert into t select i, 'later' from generate_series(5001, 5100) i; checkpoint")
            .await
            .expect("inserts");
    });
    let said = says(&["backup", text(&repo), "--server", &url_of("postgres"), "--incremental"]);
    assert!(said.contains("-incremental"), "{said}");
    stop(server);
    assert!(says(&["backup", "list", text(&repo)]).ends_with("2 backups\n"));
    a_wrong_name_is_no_empty_repository(&repo, &base);
    let open = says(&["backup", "verify", text(&repo), "--open"]);
    assert!(open.contains("objects in the catalog: no damage"), "{open}");

    let (newest, first) = (base.join("newest"), base.join("first"));
    says(&["restore", text(&repo), text(&newest)]);
    assert_eq!(rows_in(&newest), 5100);
    let full =
        std::fs::read_dir(repo.join("backups")).expect("lists").map(|entry| entry.expect("an entry").file_name());
    let full =
        full.map(|name| name.to_string_lossy().into_owned()).find(|name| name.ends_with("-full")).expect("a full one");
    says(&["restore", text(&repo), text(&first), "--backup", &full]);
    assert_eq!(rows_in(&first), 5000);
    assert!(refuses(&["restore", text(&repo), text(&first)]).contains("is not empty"));

    says(&["backup", "expire", text(&repo), "--keep", "1d"]);
    assert!(says(&["backup", "list", text(&repo)]).ends_with("2 backups\n"), "the newest rests on the other");
    std::fs::remove_dir_all(&base).expect("removed");
}

/// Verify finds a flipped bit in any file of a repository, at sampled places.
fn damage_is_found(repo: &Path) {
    for file in files(repo) {
        let whole = std::fs::read(&file).expect("reads");
        // Heads, where each byte means something else; then here and there.
        let places =
            (0..16).step_by(2).chain((1..5).map(|part| part * (whole.len() - 1) / 4)).filter(|at| *at < whole.len());
        for (number, at) in places.enumerate() {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (number % 8);
            std::fs::write(&file, &flipped).expect("writes");
            let errors = refuses(&["backup", "verify", text(repo)]);
            assert!(!errors.contains("panicked"), "byte {at} of {}: {errors}", file.display());
        }
        std::fs::write(&file, &whole).expect("writes");
    }
    says(&["backup", "verify", text(repo)]);
}

/// What an earlier version put into a target: a full and an incremental backup, and archived log with a restore point.
#[test]
fn a_backup_of_an_earlier_version_is_restored() {
    let base = scratch("backup-earlier");
    std::fs::create_dir_all(&base).expect("made");
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/directories/9387b73/backup.tgz");
    let unpacked = Command::new("tar").arg("xzf").arg(packed).arg("-C").arg(&base).status();
    assert!(unpacked.expect("tar runs").success());
    let repo = base.join("repo");
    says(&["backup", "verify", text(&repo), "--open"]);
    let (noon, all, first) = (base.join("noon"), base.join("all"), base.join("first"));
    says(&["restore", text(&repo), text(&noon), "--to-name", "noon"]);
    assert_eq!(rows_in(&noon), 150);
    says(&["restore", text(&repo), text(&all)]);
    assert_eq!(rows_in(&all), 175);
    says(&["restore", text(&repo), text(&first), "--backup", "20261122T140103Z-full"]);
    assert_eq!(rows_in(&first), 100);
    damage_is_found(&repo);
    // What a later version puts there is refused by the number of its format.
    let manifest = repo.join("backups/20261122T140104Z-incremental/manifest");
    let newer =
        std::fs::read_to_string(&manifest).expect("reads").replacen("clearway backup 1", "clearway backup 5", 1);
    std::fs::write(&manifest, newer).expect("writes");
    let errors = refuses(&["restore", text(&repo), text(&base.join("none"))]);
    assert!(errors.contains("format version 4 or older, found version 5"), "{errors}");
    std::fs::remove_dir_all(&base).expect("removed");
}

#[test]
fn a_directory_at_rest_is_backed_up_if_it_was_closed() {
    let base = scratch("backup-at-rest");
    std::fs::create_dir_all(&base).expect("made");
    let (data, repo, restored) = (base.join("data"), base.join("repo"), base.join("restored"));
    let server = start(&data);
    run(async {
        let client = connect_as(&server, "postgres", "postgres").await;
        client
            .batch_execute("create table t (id int primary key); insert into t select generate_series(1, 300)")
            .await
            .expect("fills");
    });
    assert!(refuses(&["backup", text(&repo), "--data", text(&data)]).contains("was not closed"));
    stop(server);
    let before: Vec<Vec<u8>> =
        files(&data).iter().filter(|path| !path.ends_with("LOCK")).map(|p| std::fs::read(p).expect("reads")).collect();
    says(&["backup", text(&repo), "--data", text(&data)]);
    let after: Vec<Vec<u8>> =
        files(&data).iter().filter(|path| !path.ends_with("LOCK")).map(|p| std::fs::read(p).expect("reads")).collect();
    assert!(before == after, "a backup changes nothing");
    says(&["restore", text(&repo), text(&restored)]);
    assert_eq!(rows_in(&restored), 300);
    std::fs::remove_dir_all(&base).expect("removed");
}

/// A number of a backup's manifest.
fn number(repo: &Path, kind: &str, field: &str) -> u64 {
    let is_its = |path: &PathBuf| path.ends_with("manifest") && text(path).contains(kind);
    let manifest = files(&repo.join("backups")).into_iter().rfind(is_its).expect("one");
    let lines = std::fs::read_to_string(manifest).expect("reads");
    let value = lines.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(' '));
    value.and_then(|value| value.parse().ok()).expect("a number")
}

/// A copy takes the log from the checkpoint before the last one on. A checkpoint at its beginning spares it what has come to rest.
#[test]
fn a_backup_does_not_take_the_log_of_work_that_has_come_to_rest() {
    let base = scratch("backup-log");
    std::fs::create_dir_all(&base).expect("made");
    let (data, repo, restored) = (base.join("data"), base.join("repo"), base.join("restored"));
    let server = start(&data);
    let sql = |text: &str| {
        run(async { connect_as(&server, "postgres", "postgres").await.batch_execute(text).await.expect("runs") });
    };
    sql("create table t (id int primary key, v text)");
    sql("insert into t select i, repeat('x', 400) from generate_series(1, 40000) i; checkpoint");
    says(&["backup", text(&repo), "--server", &url(&server, "postgres")]);
    let written = number(&repo, "-full", "end");
    assert!(written > 16_000_000, "{written} bytes of log");
    let log = written - number(&repo, "-full", "scan");
    assert!(log < written / 2, "{log} of {written} bytes of log");
    sql("update t set v = repeat('y', 400); checkpoint");
    says(&["backup", text(&repo), "--server", &url(&server, "postgres"), "--incremental"]);
    let later = number(&repo, "-incremental", "end");
    let log = later - number(&repo, "-incremental", "scan");
    assert!(log < (later - written) / 2, "{log} of {} bytes of log", later - written);
    stop(server);
    says(&["restore", text(&repo), text(&restored)]);
    assert_eq!(rows_in(&restored), 40_000);
    std::fs::remove_dir_all(&base).expect("removed");
}
