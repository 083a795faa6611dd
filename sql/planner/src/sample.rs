//! TABLESAMPLE.
//!
//! A sampled table is a leaf of its own kind: no index leads to its rows, and no condition chooses how it is read.
//!
//! Source: PostgreSQL 15's `transformRangeTableSample` in src/backend/parser/parse_clause.c.

use super::Planner;
use super::from::{Item, Leaf, Placed};
use super::plan::{Access, Node, Scan, TableSlot};
use clearway_syntax::ast::{Expr, TableSample};
use clearway_syntax::error::{Pos, Result, SqlError, code};
use clearway_values::expr::{Bound, Params, Scope, ScopeColumn};
use clearway_values::types::cast::Context;
use clearway_values::types::{format_type, oid};

/// What is taken of a table.
#[derive(Clone, Debug)]
pub struct Sampling {
    /// Whole leaf pages; else single rows.
    pub system: bool,
    /// The share in percent, as float4; known before the table is read.
    pub percent: Bound,
    /// REPEATABLE, as float8.
    pub seed: Option<Bound>,
}

impl Sampling {
    /// Its expressions.
    pub fn exprs(&self) -> impl Iterator<Item = &Bound> {
        std::iter::once(&self.percent).chain(&self.seed)
    }

    /// The same, to be changed.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Bound> {
        std::iter::once(&mut self.percent).chain(&mut self.seed)
    }
}

/// A scan of a sampled table.
#[derive(Clone, Debug)]
pub struct SampleScan {
    /// The table; the filter is over the rows that are taken.
    pub scan: Scan,
    /// What is taken.
    pub sampling: Sampling,
}

/// The node of a sampled table.
pub(super) fn sample_node((table, sampling): (TableSlot, Sampling), filter: Option<Bound>) -> Node {
    let scan = Scan {
        table,
        access: Access::Full,
        filter,
        order: None,
        wanted: None,
        judged_first: None,
        entries: None,
        jump: None,
        dense: None,
        beside: None,
        gate: None,
    };
    Node::Sample(Box::new(SampleScan { scan, sampling }))
}

fn no_table(pos: Pos) -> SqlError {
    let message = "TABLESAMPLE clause can only be applied to tables and materialized views";
    SqlError::new(code::FEATURE_NOT_SUPPORTED, message).at(pos)
}

impl Planner<'_> {
    /// A table that was laid out, as a sample. The arguments may name columns of queries around, which `parent` has, and none of the items to
    /// the left.
    pub(super) fn sampled(
        &mut self,
        (mut item, columns): Placed,
        s: &TableSample,
        (left, parent): (&[ScopeColumn], Option<&Scope<'_>>),
        params: &mut Params,
    ) -> Result<Placed> {
        let Item::Leaf { kind, .. } = &mut item else { return Err(no_table(s.table.name.pos)) };
        let Leaf::Table(table) = &*kind else { return Err(no_table(s.table.name.pos)) };
        let method = s.method.name();
        let ours = s.method.schema().is_none_or(|schema| schema == "pg_catalog");
        if !ours || !matches!(method, "system" | "bernoulli") {
            let message = format!("tablesample method {} does not exist", s.method.dotted());
            return Err(SqlError::new(code::UNDEFINED_OBJECT, message).at(s.method.pos));
        }
        let [percent] = s.args.as_slice() else {
            let message = format!("tablesample method {method} requires 1 argument, not {}", s.args.len());
            return Err(SqlError::new("2202H", message).at(s.method.pos));
        };
        let barred = left.iter().chain(&columns).cloned().collect();
        let scope = Scope { barred, ..Scope::over(Vec::new(), parent) };
        let percent = self.sample_argument(percent, (oid::FLOAT4, "TABLESAMPLE"), &scope, params)?;
        let seed = match &s.repeatable {
            Some(e) => Some(self.sample_argument(e, (oid::FLOAT8, "REPEATABLE"), &scope, params)?),
            None => None,
        };
        let sampling = Sampling { system: method == "system", percent, seed };
        *kind = Leaf::Sample(Box::new((table.clone(), sampling)));
        Ok((item, columns))
    }

    fn sample_argument(
        &mut self,
        e: &Expr,
        (ty, clause): (u32, &'static str),
        scope: &Scope<'_>,
        params: &mut Params,
    ) -> Result<Bound> {
        let mut bound = self.bind(scope, params, "functions in FROM", None, |b| {
            let bound = b.bind_unsettled(e)?;
            let (from, pos) = (bound.ty.oid, bound.pos);
            b.coerce(bound, ty.into(), Context::Assignment)?.ok_or_else(|| {
                let (wanted, given) = (format_type(ty.into()), format_type(from.into()));
                let message = format!("argument of {clause} must be type {wanted}, not type {given}");
                SqlError::new(code::DATATYPE_MISMATCH, message).at(pos)
            })
        })?;
        super::fold::fold(&mut bound);
        self.note(&bound);
        if bound.may_wait() {
            return Err(SqlError::unsupported(format!("a subquery or a function that waits in {clause}")).at(e.pos));
        }
        Ok(bound)
    }
}
