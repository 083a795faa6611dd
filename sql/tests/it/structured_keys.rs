//! Keys of types whose stored bytes do not sort as their values do (KEY-4, SFM-1): what they answer is in `testdata/session/keys.sql`; here
//! is how they are read, and what becomes of tables that are older than they.

use crate::memory::{open_without_upkeep, session};
use clearway_base::sync::block_on;
use clearway_engine::catalog::{Object, Relation};
use clearway_engine::db::Db;
use clearway_engine::session::{Durability, TxnOptions};
use clearway_engine::table::verify::verify;
use clearway_engine::value::Storage;
use clearway_sql::session::client::Client;
use clearway_sql::session::{Backends, Session};
use std::sync::Arc;

#[derive(Default)]
struct Rows(Vec<String>);

impl Client for Rows {
    fn row(&mut self, fields: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        let mut list = Vec::new();
        for i in 0..fields {
            let mut bytes = Vec::new();
            write(i, &mut bytes);
            list.push(String::from_utf8_lossy(&bytes).into_owned());
        }
        self.0.push(list.join("|"));
    }
}

fn run(session: &mut Session, sql: &str) -> Vec<String> {
    let mut client = Rows::default();
    block_on(session.simple(sql, &mut client)).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    client.0
}

/// An index finds rows, gives their order and its jumps; the values come from the rows, since equal keys may be several values (IXO-2).
#[test]
fn indexes_over_structured_values_are_read() {
    let (db, backends) = (open_without_upkeep(), Arc::new(Backends::default()));
    let mut s = session(&db, &backends, "postgres", &[]);
    run(&mut s, "CREATE TABLE t (id int PRIMARY KEY, d interval, a int[], j jsonb, r int4range)");
    run(
        &mut s,
        "INSERT INTO t SELECT g, make_interval(days => g / 20), array[g / 20, g % 3], to_jsonb(g / 20), \
         int4range(g / 20, NULL) FROM generate_series(1, 2000) g",
    );
    for column in ["d", "a", "j", "r"] {
        run(&mut s, &format!("CREATE INDEX by_{column} ON t ({column})"));
    }
    run(&mut s, "ANALYZE t");
    let found = [("d", "'7 days'", 20), ("a", "'{7,1}'", 6), ("j", "'7.0'", 20), ("r", "'[7,)'", 20)];
    for (column, value, rows) in found {
        let query = format!("SELECT id FROM t WHERE {column} = {value}");
        let plan = run(&mut s, &format!("EXPLAIN {query}")).join("\n");
        assert!(plan.contains(&format!("Index Scan using by_{column}")), "{plan}");
        assert_eq!(run(&mut s, &query).len(), rows, "{query}");
        let query = format!("SELECT {column} FROM t ORDER BY {column} LIMIT 3");
        let plan = run(&mut s, &format!("EXPLAIN {query}")).join("\n");
        assert!(plan.contains(&format!("Index Scan using by_{column}")) && !plan.contains("Sort"), "{plan}");
        assert!(!plan.contains("Index Only"), "{plan}");
        let sorted = run(&mut s, &format!("SELECT {column} FROM t ORDER BY {column}, id + 0 LIMIT 3"));
        assert_eq!(run(&mut s, &query), sorted, "{query}");
    }
    run(&mut s, "UPDATE t SET d = '1 mon' WHERE d = '30 days' AND id % 2 = 0");
    let both = ["1 mon|10", "30 days|10"];
    let counted = "SELECT d::text, count(*) FROM t WHERE d = '30 days' GROUP BY d::text ORDER BY 1";
    assert_eq!(run(&mut s, counted), both);
    let catalog = db.catalog();
    let found = block_on(verify(db.transactions(), &catalog, table(&db).oid)).expect("it is checked");
    assert!(found.is_empty(), "VFY-1: {found:?}");
}

/// A column that is older than the sort forms gets its form with the first index or key over it; its rows stay as they are.
#[test]
fn a_column_of_an_older_directory_sorts_by_its_form_from_its_first_index_on() {
    for statement in [
        "CREATE INDEX by_d ON t (d)",
        "CREATE INDEX CONCURRENTLY by_d ON t (d)",
        "ALTER TABLE t ADD UNIQUE (d, id)",
        "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (d, id)",
    ] {
        let (db, backends) = (open_without_upkeep(), Arc::new(Backends::default()));
        let mut s = session(&db, &backends, "postgres", &[]);
        run(&mut s, "CREATE TABLE t (id int PRIMARY KEY, d interval)");
        make_older(&db);
        run(
            &mut s,
            "INSERT INTO t VALUES (1, '1 mon'), (2, '-1 day'), (3, '30 days'), (4, '29 days 23:00'), (5, '2 mons')",
        );
        run(&mut s, statement);
        let expected = ["2|-1 days", "4|29 days 23:00:00", "1|1 mon", "3|30 days", "5|2 mons"];
        assert_eq!(run(&mut s, "SELECT id, d FROM t ORDER BY d, id"), expected, "{statement}");
        assert_eq!(run(&mut s, "SELECT id FROM t WHERE d = '720:00' ORDER BY id"), ["1", "3"], "{statement}");
        let storage = table(&db).columns[1].storage();
        assert!(matches!(storage, Storage::Sorted(_)), "{statement}: {storage:?}");
    }
}

fn table(db: &Db) -> Relation {
    let named = |o: &Arc<Object>| match &**o {
        Object::Relation(r) if r.name == "t" => Some(r.clone()),
        _ => None,
    };
    db.catalog().objects().find_map(named).expect("the table")
}

/// Gives the columns of `t` the storage that releases before the sort forms gave them.
fn make_older(db: &Arc<Db>) {
    let mut table = table(db);
    table.columns[1].storage = Storage::Bytes.code();
    block_on(async {
        let mut engine = db.session(99, table.database);
        engine.begin(TxnOptions::default());
        engine.put_object(Object::Relation(table)).await.expect("put");
        engine.commit(Durability::Wait).await.expect("committed");
    });
}
