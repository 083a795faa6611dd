//! Types, binder and evaluator, compared with PostgreSQL 15's own answers (`testdata/expr.out`).

use clearway_sql::expr::{Binder, Bound, Env, Params, Scope, Session, eval};
use clearway_sql::syntax::ast::{QueryBody, Target};
use clearway_sql::syntax::{parse, stmt::Statement};
use clearway_sql::types::datetime::Format;
use clearway_sql::types::text::{self, Conversion, Names, NoNames};
use clearway_sql::types::{Datum, binary};
use clearway_sql::{Result, SqlError};

struct Fixed(Format);

impl Session for Fixed {
    fn format(&self) -> &Format {
        &self.0
    }
    fn transaction_start(&self) -> i64 {
        0
    }
    fn statement_start(&self) -> i64 {
        0
    }
    fn clock(&self) -> i64 {
        0
    }
    fn current_user(&self) -> clearway_sql::Result<String> {
        Ok("postgres".to_owned())
    }
    fn session_user(&self) -> clearway_sql::Result<String> {
        Ok("postgres".to_owned())
    }
    fn database(&self) -> String {
        "postgres".to_owned()
    }
    fn schema(&self) -> Option<String> {
        Some("public".to_owned())
    }
    fn version(&self) -> String {
        "Clearway".to_owned()
    }
    fn backend_pid(&self) -> i32 {
        1
    }
    fn setting(&self, _: &str) -> Option<String> {
        None
    }
    fn random(&self) -> f64 {
        0.5
    }
    fn seed_random(&self, _: f64) {}
    fn query(&self) -> String {
        String::new()
    }
    fn names(&self) -> &dyn Names {
        &NoNames
    }
}

fn bind_targets(sql: &str, conversion: Conversion<'_>) -> Result<Vec<Bound>> {
    let parsed = parse(sql)?;
    let Statement::Query(query) = &parsed[0].statement else { panic!("not a query: {sql}") };
    let QueryBody::Select(select) = &query.body else { panic!("not a select: {sql}") };
    let scope = Scope::default();
    let mut params = Params::default();
    let mut collected = clearway_sql::expr::collect::Collected::default();
    let mut binder = Binder {
        scope: &scope,
        params: &mut params,
        collected: Some(&mut collected),
        subqueries: None,
        conversion,
        place: "SELECT",
        in_aggregate: false,
    };
    select
        .targets
        .iter()
        .map(|t| match t {
            Target::Expr { expr, alias: _ } => binder.bind(expr),
            _ => Err(SqlError::internal("a star")),
        })
        .collect()
}

fn compute(sql: &str) -> Result<String> {
    let session = Fixed(Format::default());
    let conversion = Conversion { format: &session.0, now: 0, names: &NoNames };
    let bound = bind_targets(sql, conversion)?;
    let env = Env { row: &[], outer: &[], params: &[], aggregates: &[Datum::Int8(1)], session: &session };
    let mut values = Vec::new();
    for b in &bound {
        let v = eval(b, &env)?;
        if !matches!(v, Datum::Null | Datum::Row(_)) {
            let mut bytes = Vec::new();
            binary::output(b.ty, &v, &mut bytes);
            let back = binary::input(b.ty, &bytes)?;
            assert_eq!(
                text::output(b.ty, &back, &conversion),
                text::output(b.ty, &v, &conversion),
                "binary form: {sql}"
            );
        }
        values.push(if v.is_null() { "NULL".to_owned() } else { text::output(b.ty, &v, &conversion) });
    }
    let types: Vec<String> = bound.iter().map(|b| b.ty.oid.to_string()).collect();
    Ok(format!("{} | {}", types.join(","), values.join(",")))
}

fn answer(sql: &str) -> String {
    match compute(sql) {
        Ok(line) => line,
        Err(e) => {
            let position = e.position(sql).map_or("-".to_owned(), |p| p.to_string());
            let mut out = format!("ERROR {} {position} {}", e.code(), e.message());
            if let Some(detail) = &e.fields().detail {
                out.push_str(&format!(" | DETAIL: {detail}"));
            }
            if let Some(hint) = &e.fields().hint {
                out.push_str(&format!(" | HINT: {hint}"));
            }
            out
        }
    }
}

fn compare(queries: &str, answers: &str) {
    let mut bad = Vec::new();
    for (sql, want) in queries.lines().zip(answers.lines()) {
        let got = answer(sql).replace('\n', "\\n");
        if got != want {
            bad.push(format!("{sql}\n  want {want}\n  got  {got}"));
        }
    }
    assert!(bad.is_empty(), "{} differences\n{}", bad.len(), bad.join("\n"));
}

#[test]
fn answers_are_those_of_postgresql() {
    compare(include_str!("../../testdata/expr.sql"), include_str!("../../testdata/expr.out"));
}

/// Generated from numbers at the ends of their ranges.
#[test]
fn arithmetic_is_that_of_postgresql() {
    compare(include_str!("../../testdata/arithmetic.sql"), include_str!("../../testdata/arithmetic.out"));
}
