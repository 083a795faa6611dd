//! What EXPLAIN ANALYZE carries out is what the statement carries out.

use super::*;
use crate::session::client::Client;
use crate::session::{Backends, Session, SessionStart};
use crate::syntax::parse;
use clearway_base::sync::{block_on, spawn_thread};
use clearway_base::vfs::{MemVfs, Vfs};
use clearway_base::waits::SessionStats;
use clearway_engine::db::{Db, DbOptions};
use std::path::Path;

struct Silent;

impl Client for Silent {
    fn row(&mut self, _: usize, _: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {}
}

fn session() -> Session {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let db = block_on(async {
        vfs.create_dir(Path::new("/db")).await.expect("a directory");
        let spawn = |name, task| drop(spawn_thread(name, move || block_on(task)).expect("a thread"));
        Db::open(DbOptions::new(vfs.clone(), Path::new("/db")), spawn).await.expect("a database")
    });
    let backends = Arc::new(Backends::default());
    let listed = backends.list(SessionStats::new("client"), 1, Default::default());
    let backend = listed.backend().clone();
    // The list outlives the test.
    std::mem::forget(listed);
    let (database, user) = ("postgres".to_owned(), "postgres".to_owned());
    let start = SessionStart { backend, backends: backends.clone(), database, user, options: Vec::new() };
    block_on(Session::new(&db, start)).expect("a session")
}

const TABLES: &str = "CREATE TABLE a (k int PRIMARY KEY, g int, b bigint, d date, t text, n numeric);
    INSERT INTO a SELECT i, i % 7, i * 3, date '2024-01-01' + i % 90, 'text ' || i % 50, i / 4.0 FROM generate_series(1, 3000) i;
    CREATE TABLE c (k int, g int, t text, u text);
    INSERT INTO c SELECT i * 5, i % 3, 't' || i, 'u' FROM generate_series(1, 200) i;
    CREATE INDEX ON a (g); ANALYZE a; ANALYZE c;";

const STATEMENTS: [&str; 14] = [
    "SELECT count(*) FROM a WHERE d < '2024-02-01' AND t <> 'text 3' AND n * 2 < 500",
    "SELECT a.t, c.u FROM a JOIN c ON a.k = c.k WHERE a.b > 100 AND c.g = 1",
    "SELECT c.t FROM c LEFT JOIN a ON a.k = c.k AND a.t < c.t WHERE a.k IS NULL",
    "SELECT g, sum(b) FROM a WHERE t LIKE 'text 1%' GROUP BY g HAVING count(*) > 3 ORDER BY 2",
    "SELECT x.s FROM (SELECT g, sum(b) s, max(t) m FROM a GROUP BY g) x WHERE x.g > 2",
    "WITH x AS NOT MATERIALIZED (SELECT k, t, b FROM a WHERE b > 5) SELECT p.k, q.t FROM x p JOIN x q ON p.k = q.k + 1",
    "WITH x AS (SELECT k, t, b FROM a WHERE b > 5) SELECT count(b) FROM x WHERE k < 40",
    "SELECT (SELECT max(c.t) FROM c WHERE c.k = a.k) FROM a WHERE a.g IN (SELECT g FROM c) AND NOT EXISTS (SELECT FROM c WHERE c.u = a.t)",
    "SELECT t FROM a UNION SELECT u FROM c WHERE g = 2 ORDER BY 1",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT r.n + 1 FROM r JOIN c ON c.g = r.n % 3 WHERE r.n < 4) SELECT count(*) FROM r",
    "SELECT a.k, row_number() OVER (PARTITION BY a.g ORDER BY a.d) FROM a, LATERAL (SELECT c.t FROM c WHERE c.k > a.k LIMIT 1) l",
    "UPDATE a SET n = n + 1 FROM c WHERE c.k = a.k AND a.d > '2024-02-01' AND c.t < 't5'",
    "DELETE FROM a WHERE d < '2024-02-01' AND b % 3 = 1",
    "INSERT INTO c SELECT k, g, t, 'v' FROM a WHERE d < '2024-02-01' AND b > 7",
];

#[test]
fn a_measured_statement_has_the_statements_own_plan() {
    // XPM-1: gates, slots and all. What is measured of the plan has a place in the one that is shown.
    let mut session = session();
    block_on(session.simple(TABLES, &mut Silent)).expect("tables");
    for sql in STATEMENTS {
        let statement = &parse(sql).expect("a statement")[0].statement;
        let own = plan(&session.core, statement, &mut Params::default(), None).expect("planned").expect("a plan");
        assert!(own.fast.is_none() && own.shown.is_none(), "{sql}");
        let measured = plan_shown(&session.core, statement, &mut Params::default(), (None, None)).expect("planned");
        let measured = measured.expect("a plan");
        assert!(format!("{:?}", measured.plan) == format!("{:?}", own.plan), "{sql}");
        let shown = measured.shown.expect("it is shown");
        assert!(format!("{:?}", shown.plan) != format!("{:?}", own.plan), "its slots tell their columns: {sql}");
    }
}
