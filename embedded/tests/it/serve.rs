//! The program and clients over TCP use the same open database.

use std::net::SocketAddr;
use std::process::Command;

use clearway::Database;

#[test]
fn psql_works_on_the_open_database_and_sees_the_programs_own_sessions() {
    let db = Database::in_memory().expect("a database");
    let mut c = db.connect().expect("a connection");
    c.execute_batch("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)").expect("a table");
    let server = db.serve(&[SocketAddr::from(([127, 0, 0, 1], 0))]).expect("a listener");
    let port = server.addresses()[0].port().to_string();
    let psql = |sql: &str| {
        let arguments = ["-XAtq", "-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-d", "clearway", "-c", sql];
        let out = Command::new("psql").args(arguments).output().expect("psql is installed");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    };
    let mut t = c.transaction().expect("begun");
    t.execute("UPDATE t SET a = 2", ()).expect("updated");
    assert_eq!(psql("SELECT a FROM t"), "1");
    let state = psql("SELECT state FROM pg_stat_activity WHERE query LIKE 'UPDATE%'");
    assert_eq!(state, "idle in transaction");
    t.commit().expect("committed");
    assert_eq!(psql("UPDATE t SET a = a + 1 RETURNING a"), "3");
    assert_eq!(c.query_row::<(i32,)>("SELECT a FROM t", ()).expect("a").0, 3);
    db.close().expect("closed");
}
