//! Functions in FROM: one, or several side by side (ROWS FROM, unnest of several arrays), numbered if asked for.

use super::Planner;
use super::from::{Item, Layout, Leaf, Placed};
use super::leaf::named;
use super::select::label_of;
use crate::error::Result;
use crate::expr::sets::{self, SetCall, SetFunction};
use crate::expr::{Bound, Params, Scope};
use crate::syntax::ast::{Alias, Call, Expr, ExprKind};
use crate::types::{SqlType, oid};

const PLACE: &str = "functions in FROM";

impl Planner<'_> {
    pub(super) fn functions(
        &mut self,
        out: &mut Layout,
        list: &[Expr],
        ordinality: bool,
        alias: Option<&Alias>,
        scope: &Scope<'_>,
        params: &mut Params,
    ) -> Result<Placed> {
        if let [only] = list
            && let ExprKind::Call(c) = &*only.kind
            && let Some(placed) = self.rows_function(out, c, ordinality, alias, scope, params)?
        {
            return Ok(placed);
        }
        let mut calls: Vec<SetCall> = Vec::new();
        for e in list {
            self.function(e, &mut calls, scope, params)?;
        }
        for e in calls.iter().flat_map(|c| &c.args) {
            self.note(e);
        }
        let first = list.first().map_or_else(String::new, label_of);
        let relation = alias.map_or(&first, |a| &a.name).clone();
        let base = out.width;
        let mut columns: Vec<(&str, SqlType, usize)> = Vec::new();
        for (name, ty) in calls.iter().flat_map(|c| &c.columns) {
            columns.push((name, *ty, base + columns.len()));
        }
        // A lone column bears the name of its item.
        if let ([(name, _, _)], [call]) = (columns.as_mut_slice(), calls.as_slice())
            && !call.names_columns()
        {
            *name = relation.as_str();
        }
        if ordinality {
            columns.push(("ordinality", oid::INT8.into(), base + columns.len()));
        }
        out.width += columns.len();
        let columns = named(columns, &relation, alias)?;
        out.others.push(relation);
        let kind = Leaf::Function { calls, ordinality };
        Ok((Item::Leaf { kind, base, end: out.width, filters: Vec::new() }, columns))
    }

    fn function(&mut self, e: &Expr, calls: &mut Vec<SetCall>, scope: &Scope<'_>, params: &mut Params) -> Result<()> {
        match &*e.kind {
            ExprKind::Call(c) if c.name.name() == "unnest" && c.args.len() > 1 => {
                for arg in &c.args {
                    let one = Call::new(c.name.clone(), vec![arg.clone()]);
                    calls.push(self.bind(scope, params, PLACE, None, |b| sets::bind(b, &one, e.pos))?);
                }
            }
            ExprKind::Call(c) if c.over.is_none() && sets::gives_rows(c.name.name()) => {
                calls.push(self.bind(scope, params, PLACE, None, |b| sets::bind(b, c, e.pos))?);
            }
            _ => {
                let bound: Bound = self.bind(scope, params, PLACE, None, |b| b.bind(e))?;
                let columns = vec![(label_of(e), bound.ty)];
                calls.push(SetCall { function: SetFunction::Scalar, args: vec![bound], columns });
            }
        }
        Ok(())
    }
}
