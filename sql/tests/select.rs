//! Queries against PostgreSQL 15's own answers (`testdata/select.out`), over a database in memory.

use clearway_base::sync::{block_on, spawn_thread};
use clearway_base::vfs::{MemVfs, Vfs};
use clearway_base::waits::SessionStats;
use clearway_engine::catalog::{Column, Index, IndexColumn, IndexState, Object, Relation, RelationKind};
use clearway_engine::db::{Db, DbOptions};
use clearway_engine::session::{Durability, Isolation, StatementMode, TxnOptions};
use clearway_sql::exec::cell::EngineCell;
use clearway_sql::exec::errors::from_engine;
use clearway_sql::exec::query::QueryRows;
use clearway_sql::exec::{Cx, Row, Run, RunState, convert};
use clearway_sql::expr::Params;
use clearway_sql::planner::plan::{Action, OutputColumn};
use clearway_sql::planner::{PlanEnv, Planner};
use clearway_sql::session::backend::Who;
use clearway_sql::session::core::Core;
use clearway_sql::session::{Backends, settings::Settings};
use clearway_sql::types::text::{self, Conversion};
use clearway_sql::types::{Datum, SqlType, oid};
use clearway_sql::{Result, syntax};
use std::path::Path;
use std::sync::Arc;

/// The database `clearway` of a new directory, and its schema `public`.
const DATABASE: u32 = 6;
const PUBLIC: u32 = 2201;
/// 2024-01-15, microseconds since 2000.
const NOW: i64 = 758_592_000_000_000;

struct Bench {
    core: Core,
}

impl Bench {
    fn new() -> Bench {
        let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
        let db = block_on(async {
            let dir = Path::new("/db");
            vfs.create_dir(dir).await.expect("a directory");
            let spawn = |name, task| {
                spawn_thread(name, move || block_on(task)).expect("a thread");
            };
            Db::open(DbOptions::new(vfs.clone(), dir), spawn).await.expect("a database")
        });
        let backends = Arc::new(Backends::default());
        let who = Who { user: "clearway".into(), database: "clearway".into(), ..Who::default() };
        let listed = backends.list(SessionStats::new("test"), 0, who);
        let cell = EngineCell::new(db.session(listed.backend().pid, DATABASE));
        let settings = Settings::default();
        let who = (listed.backend().clone(), backends.clone());
        Bench { core: Core::new(cell, db, who, (DATABASE, "clearway".into()), "clearway".into(), settings) }
    }

    async fn create(&self, name: &str, columns: &[(&str, u32)], key: &[usize], indexes: &[(&str, &[usize])]) {
        let mut session = self.core.engine.take();
        session.begin(TxnOptions::default());
        let oid = self.core.db.new_oid();
        let tree = session.create_tree().await.expect("a tree").0;
        let columns = columns.iter().map(|(name, ty)| {
            let column = Column {
                name: (*name).to_owned(),
                storage: convert::storage_of(*ty).expect("storable").code(),
                type_oid: *ty,
                type_mod: -1,
                not_null: false,
                default: None,
                identity: None,
                dropped_version: None,
                since_version: 0,
                missing: None,
            };
            column
        });
        let relation = Relation {
            oid,
            database: DATABASE,
            schema: PUBLIC,
            name: name.to_owned(),
            owner: 10,
            kind: RelationKind::Table,
            columns: columns.collect(),
            tree,
            key: key.to_vec(),
            version: 0,
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            query: None,
            insert_nothing_rules: Vec::new(),
            options: Vec::new(),
            grants: Vec::new(),
            populated: true,
        };
        session.put_object(Object::Relation(relation)).await.expect("a table");
        for (name, columns) in indexes {
            let tree = session.create_tree().await.expect("a tree").0;
            let columns =
                columns.iter().map(|c| IndexColumn { column: *c, descending: false, nulls_first: false }).collect();
            let index = Index {
                oid: self.core.db.new_oid(),
                database: DATABASE,
                schema: PUBLIC,
                name: (*name).to_owned(),
                table: oid,
                tree,
                columns,
                unique: false,
                primary: false,
                constraint: false,
                state: IndexState::Public,
                valid_from_lsn: 0,
                clustered: false,
            };
            session.put_object(Object::Index(index)).await.expect("an index");
        }
        session.commit(Durability::Wait).await.expect("committed");
    }

    /// Runs one statement in a transaction of its own and shows its columns' types and its rows.
    async fn run(&self, sql: &str) -> Result<(Vec<OutputColumn>, Vec<Row>)> {
        let core = &self.core;
        core.engine.take().begin(TxnOptions::default());
        let done = self.statement(sql).await;
        let mut session = core.engine.take();
        match done {
            Ok(done) => {
                session.commit(Durability::Wait).await.map_err(from_engine)?;
                Ok(done)
            }
            Err(e) => {
                session.roll_back().await.map_err(from_engine)?;
                Err(e)
            }
        }
    }

    async fn statement(&self, sql: &str) -> Result<(Vec<OutputColumn>, Vec<Row>)> {
        let core = &self.core;
        let parsed = syntax::parse(sql)?;
        let catalog = core.catalog();
        let names = core.names(&catalog);
        let format = core.settings.lock().format.clone();
        let conversion = Conversion { format: &format, now: NOW, names: &names };
        let env = PlanEnv { catalog: &catalog, database: DATABASE, path: &names.path, conversion };
        let plan = Planner::new(&env).plan(&parsed[0].statement, &mut Params::default())?.expect("planned");
        let statement = core.engine.take().open_statement(&sql.into(), StatementMode::Write);
        let (state, view) = (RunState::new(), statement.view);
        let run = Run {
            core,
            plan: &plan,
            params: &[],
            view,
            isolation: Isolation::ReadCommitted,
            format: format.clone(),
            names: names.clone(),
            started: NOW,
            transaction_started: NOW,
            state: &state,
        };
        let cx = Cx { run: &run, outer: &[] };
        let rows = match &plan.action {
            Action::Select(query) => QueryRows::new(query.clone()).all(cx).await,
            Action::Insert(insert) => cx.insert(insert).await.map(|changes| changes.rows),
            _ => panic!("neither SELECT nor INSERT: {sql}"),
        };
        core.engine.take().close_statement(statement);
        Ok((plan.columns.clone().unwrap_or_default(), rows?))
    }

    async fn shown(&self, sql: &str) -> String {
        let (columns, rows) = match self.run(sql).await {
            Ok(done) => done,
            Err(e) => return error(&e, sql),
        };
        if columns.is_empty() {
            return "ok".to_owned();
        }
        let catalog = self.core.catalog();
        let names = self.core.names(&catalog);
        let format = self.core.settings.lock().format.clone();
        let conversion = Conversion { format: &format, now: NOW, names: &names };
        let cell = |v: &Datum, ty: SqlType| {
            if v.is_null() { "NULL".to_owned() } else { text::output(ty, v, &conversion).to_string() }
        };
        let types: Vec<String> = columns.iter().map(|c| c.ty.oid.to_string()).collect();
        let rows =
            rows.iter().map(|r| r.iter().zip(&columns).map(|(v, c)| cell(v, c.ty)).collect::<Vec<_>>().join(","));
        format!("{} | {}", types.join(","), rows.collect::<Vec<_>>().join(" ; "))
    }
}

fn error(e: &clearway_sql::SqlError, sql: &str) -> String {
    let position = e.position(sql).map_or("-".to_owned(), |p| p.to_string());
    let mut out = format!("ERROR {} {position} {}", e.code(), e.message());
    for (label, text) in [("DETAIL", &e.fields().detail), ("HINT", &e.fields().hint)] {
        if let Some(text) = text {
            out += &format!(" | {label}: {text}");
        }
    }
    out
}

/// What is refused with 0A000, or answered otherwise than by PostgreSQL, with the reason.
const KNOWN: &[(&str, &str)] = &[
    // A column that two items of FROM give unqualified stands for the merged one of USING.
    (
        "SELECT x, s.x, u.x FROM (SELECT id AS x, a FROM t) s LEFT JOIN u USING (x) WHERE u.y = 1 OR u.y IS NULL ORDER BY x",
        "23,23,23 | 1,1,1 ; 2,2,2 ; 3,3,3 ; 4,4,4 ; 5,5,NULL",
    ),
    // The sides of a set operation are typed one by one.
    ("SELECT 1 UNION SELECT 'x'", "ERROR 42804 1 UNION types integer and text cannot be matched"),
    // No guess at what was meant.
    ("SELECT t.id FROM t a", "ERROR 42P01 8 missing FROM-clause entry for table \"t\""),
    // Not supported.
    ("SELECT t FROM t WHERE id = 1", "ERROR 42703 8 column \"t\" does not exist"),
    ("SELECT count(t) FROM t", "ERROR 42703 14 column \"t\" does not exist"),
    ("SELECT id, row_number() OVER (ORDER BY id) FROM t", "ERROR 0A000 25 a window function (OVER) is not supported"),
    ("SELECT a, count(*) FROM t GROUP BY ROLLUP (a)", "ERROR 0A000 36 grouping sets is not supported"),
];

#[test]
fn queries_answer_as_postgresql() {
    let bench = Bench::new();
    let sql = include_str!("../testdata/select.sql");
    let expected = include_str!("../testdata/select.out");
    let mut wrong = Vec::new();
    block_on(async {
        let t = [("id", oid::INT4), ("a", oid::INT4), ("b", oid::TEXT), ("c", oid::NUMERIC), ("d", oid::TIMESTAMP)];
        bench.create("t", &t, &[0], &[("t_a", &[1])]).await;
        bench.create("u", &[("x", oid::INT4), ("y", oid::INT4), ("z", oid::TEXT)], &[0, 1], &[("u_z", &[2, 1])]).await;
        bench.create("e", &[("v", oid::INT4)], &[], &[]).await;
        for (sql, expected) in sql.lines().zip(expected.lines()).filter(|(sql, _)| !sql.starts_with("CREATE")) {
            let shown = bench.shown(sql).await;
            let known = KNOWN.iter().find(|k| k.0 == sql).map_or(expected, |k| k.1);
            if shown != known {
                wrong.push(format!("{sql}\n  expected {known}\n       got {shown}"));
            }
        }
    });
    assert!(wrong.is_empty(), "{} answers differ:\n{}", wrong.len(), wrong.join("\n"));
}
