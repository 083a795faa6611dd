//! The table and the column that RowDescription names for the columns of a result: through views, queries in FROM, WITH and RETURNING. What is
//! expected here is what PostgreSQL 15 gives.

use crate::memory::{open, session};
use clearway_base::sync::block_on;
use clearway_sql::session::Backends;
use clearway_sql::session::client::{Client, Column};
use std::sync::Arc;

/// Keeps the origins of the columns, and the values of rows.
#[derive(Default)]
struct Origins {
    columns: Vec<(u32, i16)>,
    rows: Vec<Vec<String>>,
}

impl Client for Origins {
    fn row_description(&mut self, columns: &[Column<'_>]) {
        self.columns = columns.iter().map(|c| (c.table, c.attribute)).collect();
    }
    fn row(&mut self, fields: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        let mut value = |i| {
            let mut bytes = Vec::new();
            write(i, &mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        };
        self.rows.push((0..fields).map(&mut value).collect());
    }
}

const SETUP: &str = "create table t (a int, b text, c int); alter table t drop column b; alter table t add d int;
    create table u (a int, e int);
    create view v as select d as vd, a as va, a + 1 as s from t;
    create view vv as select va, s from v;
    create materialized view m as select a, d from t;
    create sequence q;
    create function f() returns setof t language sql stable as 'select * from t';";

/// Queries, and of each column the relation with the number of its column.
const EXPECTED: &[(&str, &str)] = &[
    ("select * from t", "t.1 t.3 t.4"),
    ("select x.d, a + 1, (a) from t x", "t.4 - t.1"),
    ("select * from v", "v.1 v.2 v.3"),
    ("select s, va from vv", "vv.2 vv.1"),
    ("select v.va, t.a from v join t on t.a = v.va", "v.2 t.1"),
    ("select * from m", "m.1 m.2"),
    ("select * from (select d, a + 1, * from v, t) s", "t.4 - v.1 v.2 v.3 t.1 t.3 t.4"),
    ("select x.k from (select * from (select a as k from t where a > 0 limit 1) y) x", "t.1"),
    ("with c as (select a, d from t) select * from c", "t.1 t.4"),
    ("with c(p, o) as materialized (select a, d from t) select c.o, x.p from c, c x", "t.4 t.1"),
    ("with recursive c as (select a from t union all select a + 1 from c where false) select * from c", "-"),
    ("with c as (insert into u values (1, 2) returning e, a) select * from c", "u.2 u.1"),
    ("select a, d from t union select a, d from t", "- -"),
    ("select * from (select a from t except select a from u) s", "-"),
    ("select a, t.a, u.a, e from t right join u using (a)", "u.1 t.1 u.1 u.2"),
    ("select j.* from (t join u using (a)) j", "t.1 t.3 t.4 u.2"),
    ("select * from t, lateral (select t.a as x, u.e from u) l", "t.1 t.3 t.4 t.1 u.2"),
    ("select (select a from t)", "-"),
    ("select * from f()", "- - -"),
    ("select last_value from q", "q.1"),
    ("select relname, oid from pg_class limit 0", "pg_class.2 pg_class.1"),
    ("select tablename from pg_tables limit 0", "pg_tables.2"),
    ("select a, count(*) from t group by a", "t.1 -"),
    ("select distinct d from t", "t.4"),
    ("select a::int4, a::int8 from t", "t.1 -"),
    ("select * from (values (1, 2)) x", "- -"),
    ("insert into t as z values (5, 6, 7) returning d, z.a", "t.4 t.1"),
    ("update t set a = 9 from u where false returning t.d, u.e", "t.4 u.2"),
    ("update v set va = 3 where false returning *", "v.1 v.2 v.3"),
    ("delete from v using u where false returning vd, u.e", "v.1 u.2"),
    ("insert into v (vd, va) values (1, 2) returning va, vd", "v.2 v.1"),
];

#[test]
fn row_descriptions_name_the_columns_that_postgresql_names() {
    let db = open();
    let mut session = session(&db, &Arc::new(Backends::default()), "postgres", &[]);
    let mut ask = |sql: &str| {
        let mut client = Origins::default();
        let done = block_on(session.simple(sql, &mut client));
        assert!(done.is_ok(), "{sql}: {done:?}");
        client
    };
    ask(SETUP);
    let relations = ask("select oid, relname from pg_class").rows;
    for (sql, expected) in EXPECTED {
        let shown = |(table, column): &(u32, i16)| match relations.iter().find(|r| r[0] == table.to_string()) {
            Some(relation) => format!("{}.{column}", relation[1]),
            None => "-".to_owned(),
        };
        let found: Vec<String> = ask(sql).columns.iter().map(shown).collect();
        assert_eq!(found.join(" "), *expected, "{sql}");
    }
}
