//! Plans that sessions share (PSH-1 to PSH-3), and texts of the unnamed statement that a session has parsed before: whatever changes between two
//! executions, the rows are those of a statement that is parsed and planned anew.

use std::sync::Arc;

use crate::sim::{Connection, Values, connect, open, simulate};
use clearway_base::vfs::sim::SimDisk;
use clearway_sql::SqlError;
use clearway_sql::session::{Backends, Bind};

/// A text by the extended protocol, as drivers send it: Parse of the unnamed statement, Bind, Execute, Sync.
async fn extended(one: &mut Connection, sql: &str) -> Result<Vec<String>, SqlError> {
    let mut values = Values::default();
    let ran = async {
        one.session.parse("", sql, &[]).await?;
        one.session.bind("", "", Bind { values: &[], formats: &[], result_formats: &[] }).await?;
        one.session.execute("", 0, &mut values).await
    }
    .await;
    one.session.sync().await?;
    ran.map(|()| values.0)
}

/// The rows of a text by either protocol, or the code of its error.
async fn rows(one: &mut Connection, sql: &str) -> String {
    let told = |ran: Result<Vec<String>, SqlError>| ran.map_or_else(|e| e.code().to_string(), |rows| rows.join(" "));
    let by_text = told(one.run(sql).await);
    let by_message = told(extended(one, sql).await);
    assert_eq!(by_text, by_message, "{sql}");
    by_text
}

const READ: &str = "SELECT v FROM t ORDER BY id";
const DATE: &str = "SELECT '01/02/2020'::date - '2020-01-01'::date FROM t WHERE id = 1";
const ZONE: &str = "SELECT extract(epoch FROM '1970-01-01 00:00'::timestamptz)::int FROM t WHERE id = 1";

/// How many plans sessions share of a text, and how often they were taken.
async fn shared(one: &mut Connection, sql: &str) -> String {
    let quoted = sql.replace('\'', "''");
    one.value(&format!("SELECT count(*) || ' ' || sum(taken) FROM clearway_shared_plans WHERE query = '{quoted}'"))
        .await
}

#[test]
fn a_text_is_planned_once_for_all_sessions() {
    simulate(1, || async {
        let db = open(&SimDisk::new(1)).await;
        let backends = Arc::new(Backends::default());
        let mut first = connect(&db, &backends).await;
        first.run("CREATE TABLE t (id int PRIMARY KEY, v text)").await.expect("a table");
        first.run("INSERT INTO t VALUES (1, 'a'), (2, 'b')").await.expect("rows");
        for at in 0..5 {
            let mut one = connect(&db, &backends).await;
            assert_eq!(rows(&mut one, READ).await, "a b", "session {at}");
            assert_eq!(rows(&mut one, READ).await, "a b", "session {at} again");
        }
        // Of each protocol the first session parsed it, the second planned it for all, and three took that.
        assert_eq!(shared(&mut first, READ).await, "2 6");
        first.run("ALTER TABLE t ADD COLUMN w int DEFAULT 7").await.expect("a column");
        first.run("UPDATE t SET v = v || w").await.expect("rows");
        let mut one = connect(&db, &backends).await;
        assert_eq!(rows(&mut one, READ).await, "a7 b7");
        assert_eq!(shared(&mut first, READ).await, "2 0", "the old plans have made room");
    });
}

#[test]
fn sessions_that_differ_share_no_plan() {
    simulate(2, || async {
        let db = open(&SimDisk::new(2)).await;
        let backends = Arc::new(Backends::default());
        let mut first = connect(&db, &backends).await;
        for sql in [
            "CREATE TABLE t (id int PRIMARY KEY, v text)",
            "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
            "CREATE SCHEMA other",
            "CREATE TABLE other.t (id int PRIMARY KEY, v text)",
            "INSERT INTO other.t VALUES (1, 'other')",
            "CREATE ROLE reader",
            "CREATE ROLE stranger",
            "GRANT SELECT ON t TO reader",
            "CREATE POLICY p ON t TO reader USING (id > 1)",
            "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
        ] {
            first.run(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        }
        let cases = [
            ("SELECT 1", "a b", "1", "0"),
            ("SET search_path = other", "other", "1", "0"),
            // With a path that has no "$user" the role alone differs.
            ("SET search_path = public", "a b", "1", "0"),
            ("SET search_path = public; SET ROLE reader", "b", "", ""),
            ("SET search_path = public; SET ROLE stranger", "42501", "42501", "42501"),
            ("SET ROLE reader", "b", "", ""),
            ("SET DateStyle = 'ISO, DMY'", "a b", "31", "0"),
            ("SET TimeZone = 'Etc/GMT+1'", "a b", "1", "3600"),
            ("CREATE TEMP TABLE t AS SELECT 1 id, 'temporary' v", "temporary", "1", "0"),
            ("SET ROLE reader; SET row_security = off", "42501", "42501", "42501"),
            ("BEGIN; UPDATE t SET v = 'c' WHERE id = 2", "a c", "1", "0"),
            ("BEGIN; ALTER TABLE t RENAME TO u; CREATE TABLE t AS SELECT 1 id, 'new' v", "new", "1", "0"),
        ];
        for round in 0..3 {
            for (before, read, date, zone) in cases {
                let mut one = connect(&db, &backends).await;
                // What the session has parsed before is another thing after `before`.
                if round == 2 {
                    assert_eq!(rows(&mut one, READ).await, "a b");
                    assert_eq!(rows(&mut one, DATE).await, "1");
                }
                one.run(before).await.unwrap_or_else(|e| panic!("{before}: {e:?}"));
                for (sql, expected) in [(READ, read), (DATE, date), (ZONE, zone)] {
                    assert_eq!(rows(&mut one, sql).await, expected, "round {round}, {before}: {sql}");
                }
                one.run("ROLLBACK").await.expect("an end");
            }
        }
        assert_ne!(shared(&mut first, READ).await, "0 ");
    });
}
