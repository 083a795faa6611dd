//! A view of the system gives all of its rows, or the statement ends (VRB-1).

use crate::memory::{Lines, open, session};
use clearway_base::sync::block_on;
use clearway_sql::session::{Backends, Session};
use std::sync::Arc;

/// The rows of a statement, or its SQLSTATE.
fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    let mut lines = Lines::default();
    match block_on(session.simple(sql, &mut lines)) {
        Ok(()) => lines.0,
        Err(e) => vec![e.code().to_owned()],
    }
}

const VIEWS: [&str; 8] =
    ["pg_attribute", "pg_class", "pg_type", "pg_constraint", "pg_attrdef", "pg_depend", "pg_rewrite", "pg_index"];

#[test]
fn a_view_whose_rows_are_cut_short_has_none() {
    let db = open();
    let user = &mut session(&db, &Arc::new(Backends::default()), "postgres", &[]);
    for table in 0..150 {
        let columns: String = (0..20).map(|n| format!(", c{n} int default {n}")).collect();
        rows(user, &format!("create table t{table} (id int primary key{columns}); create view v{table} as select 1 a"));
    }
    for view in VIEWS {
        let counted = format!("select count(*) from {view} where pg_backend_pid() > 0");
        let all = rows(user, &counted);
        let mut ended = 0;
        // The deadline falls before, into, and behind the building of the rows.
        for timeout in [1, 2, 3, 5, 8, 12, 20, 30, 50, 80] {
            rows(user, &format!("set statement_timeout = {timeout}"));
            let some = rows(user, &counted);
            assert!(some == all || some == ["57014"], "VRB-1: {view} has {some:?} of {all:?}");
            ended += usize::from(some != all);
            rows(user, "set statement_timeout = 0");
        }
        println!("{view}: {ended} statements ended early");
    }
}
