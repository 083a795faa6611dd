//! UPDATE of pg_settings, which PostgreSQL's rules make a query: `set_config(old.name, new.setting, false)` for the rows whose name stays.

use super::plan::{Action, Body, Node, OutputColumn, Query, Select, split};
use super::{Planned, Planner, system};
use clearway_context::changeable;
use clearway_context::views::{self, SystemView};
use clearway_syntax::ast::TableRef;
use clearway_syntax::error::{Result, SqlError, code};
use clearway_syntax::stmt;
use clearway_values::expr::operators::Op;
use clearway_values::expr::{Bound, BoundKind, HostFunction, Params, Scope};
use clearway_values::types::{Datum, oid};
use std::sync::Arc;

/// The view, if a statement names it.
pub(super) fn named(table: &TableRef) -> Option<&'static SystemView> {
    let here = table.name.name() == "pg_settings" && matches!(table.name.schema(), None | Some("pg_catalog"));
    if here { views::find("pg_catalog", "pg_settings") } else { None }
}

impl Planner<'_> {
    /// Plans the query.
    pub(super) fn update_settings(
        &mut self,
        view: &'static SystemView,
        s: &stmt::Update,
        params: &mut Params,
    ) -> Result<Planned> {
        if !s.returning.is_empty() {
            let message = "cannot perform UPDATE RETURNING on relation \"pg_settings\"";
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message)
                .hint("You need an unconditional ON UPDATE DO INSTEAD rule with a RETURNING clause."));
        }
        let mut layout = system::target_layout(view, s.table.alias.as_ref())?;
        self.add_items(&mut layout, &s.from, None, params)?;
        let scope = Scope::over(layout.columns.clone(), None);
        let mut conditions = match &s.filter {
            Some(e) => split(self.condition(e, &scope, params, "WHERE")?),
            None => Vec::new(),
        };
        let relation = changeable::relation(view, &[]);
        let set = self.assignments(&s.set, &relation, &scope, params)?;
        let place = |name: &str| view.columns.iter().position(|c| c.0 == name).unwrap_or_default();
        let old = |name: &str| Bound {
            kind: BoundKind::Column { index: place(name), level: 0 },
            ty: oid::TEXT.into(),
            pos: 0,
        };
        let given = |name: &str| set.iter().find(|(at, _)| *at == place(name)).map(|(_, e)| e.clone());
        if let Some(name) = given("name") {
            let kind = BoundKind::Binary { op: Op::Eq, left: Box::new(name), right: Box::new(old("name")) };
            conditions.push(Bound { kind, ty: oid::BOOL.into(), pos: 0 });
        }
        let local = Bound::constant(Datum::Bool(false), oid::BOOL, 0);
        let args = vec![old("name"), given("setting").unwrap_or_else(|| old("setting")), local];
        let call =
            Bound { kind: BoundKind::Host { function: HostFunction::SetConfig, args }, ty: oid::TEXT.into(), pos: 0 };
        self.note(&call);
        let columns =
            vec![OutputColumn { name: "set_config".to_owned(), ty: oid::TEXT.into(), origin: (0, 0), shape: None }];
        let select = Select::plain(Arc::new(Node::One), layout.width, vec![call]);
        let mut query = Query::of(Body::Select(Box::new(select)), columns);
        self.give_source(&mut query, layout, conditions, false);
        Ok((Action::Settings(Arc::new(query)), None))
    }
}
