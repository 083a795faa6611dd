//! The real program on data directories that earlier versions made: their content is there, also after a crash of the earlier version. A
//! version that can't read them must refuse them by the name of their format; this test then says so.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{self, connect_as, run, scratch, start, stop};
use tokio_postgres::{Client, SimpleQueryMessage};

/// Rows as `psql -At` prints them.
async fn rows(client: &Client, sql: &str) -> Vec<String> {
    let messages = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => {
            let columns = (0..row.len()).map(|at| row.get(at).unwrap_or(""));
            Some(columns.collect::<Vec<_>>().join("|"))
        }
        _ => None,
    });
    rows.collect()
}

fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/directories/2a58687").join(name)
}

/// Unpacks a directory and opens it twice, the second time after changing what is in it.
fn opens(name: &str, there: &[&str]) {
    let base = scratch(&format!("old-{name}"));
    std::fs::create_dir_all(&base).expect("made");
    let unpacked = Command::new("tar").arg("xzf").arg(kept(&format!("{name}.tgz"))).arg("-C").arg(&base).status();
    assert!(unpacked.expect("tar runs").success());
    let directory = base.join(name);
    // That version made directories that every user may read; a later version says how to correct the modes.
    let refused = program::command(&directory).output().expect("runs");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("`chmod -R go="), "{refused:?}");
    assert!(Command::new("chmod").args(["-R", "go="]).arg(&directory).status().expect("chmod runs").success());
    let queries = std::fs::read_to_string(kept("state.sql")).expect("the queries");
    let expected = std::fs::read_to_string(kept("state.out")).expect("the answers");
    let server = start(&directory);
    run(async {
        let client = connect_as(&server, "postgres", "postgres").await;
        let mut found = Vec::new();
        for query in queries.lines() {
            found.extend(rows(&client, query).await);
        }
        assert_eq!(found, expected.lines().collect::<Vec<_>>());
        let next = rows(&client, "select nextval('counter')").await[0].parse::<i64>().expect("a number");
        assert!(next > 110 && next % 5 == 0, "{next} was given out before");
        assert_eq!(
            rows(&connect_as(&server, "postgres", "second").await, "select x from there order by x").await,
            there
        );
        // Indexes, constraints and rights still work.
        let found = rows(&client, "select id from accounts where owner = 'owner 3' and born = date '2000-03-02'").await;
        assert_eq!(found, ["3"]);
        let refused = client.batch_execute("insert into accounts (owner, code, balance) values ('x', 'c7', 1)").await;
        assert_eq!(
            refused.expect_err("c7 is taken").code().map(|code| code.code().to_owned()).as_deref(),
            Some("23505")
        );
        client.batch_execute("delete from accounts where id = 1").await.expect("deletes");
        assert_eq!(
            rows(&client, "select count(*) from extra.entries where account = 1").await,
            ["0"],
            "ON DELETE CASCADE"
        );
        client.batch_execute("insert into accounts (owner, balance) values ('new', 1)").await.expect("inserts");
        client.batch_execute("refresh materialized view totals").await.expect("refreshes");
    });
    stop(server);
    let server = start(&directory);
    run(async {
        let client = connect_as(&server, "postgres", "postgres").await;
        assert_eq!(rows(&client, "select count(*) from accounts").await, ["490"]);
        assert_eq!(rows(&client, "select n, total from totals where owner = 'new'").await, ["1|1.00"]);
        let check = rows(&client, "select count(*) from heap where b = 'lost'").await;
        assert_eq!(check, ["0"]);
    });
    stop(server);
    std::fs::remove_dir_all(&base).expect("removed");
}

#[test]
fn a_directory_that_was_stopped_is_opened() {
    opens("stopped", &["1", "2"]);
}

#[test]
fn a_directory_whose_server_was_killed_is_recovered() {
    opens("killed", &["1", "2", "3", "4"]);
}
