//! What is said of a name that no item of FROM has, where an item in sight, or out of sight, is what the statement means.

use super::Planner;
use super::plan::Query;
use clearway_syntax::ast::{Expr, ExprKind, FromItem, QualName, Query as AstQuery, Select, TableRef};
use clearway_syntax::error::{Result, SqlError, code};
use clearway_values::expr::{Bound, Params, Scope, ScopeColumn};

/// An item of FROM: the name of its table, if it is one, and the name by which its columns are asked for.
type Entry<'a> = (Option<&'a str>, &'a str);

/// 42P01: no item of FROM has this name.
pub(super) fn missing(relation: &str) -> SqlError {
    SqlError::new(code::UNDEFINED_TABLE, format!("missing FROM-clause entry for table \"{relation}\""))
}

impl Planner<'_> {
    /// The fields of the variable of PL/pgSQL that stands before `.*` where no relation has that name; nothing if one has.
    pub(super) fn fields_of_variable(
        &mut self,
        name: &QualName,
        scope: &Scope<'_>,
        params: &mut Params,
        wanted: bool,
    ) -> Result<Vec<(String, Bound)>> {
        if !wanted {
            return Ok(Vec::new());
        }
        let missing = missing(name.name()).at(name.pos);
        if params.names.as_ref().is_none_or(|names| names.variables.is_none()) {
            return Err(missing);
        }
        let row = Expr { kind: Box::new(ExprKind::Column(name.clone())), pos: name.pos, height: 1 };
        self.bind(scope, params, "SELECT", None, |b| b.all_fields(&row)).map_err(|e| match e.code() {
            code::UNDEFINED_COLUMN => missing,
            _ => e,
        })
    }
}

/// An error that came up where these items are in sight: their tables can be meant by their aliases.
pub(super) fn in_sight<'a>(error: SqlError, items: impl IntoIterator<Item = &'a FromItem>) -> SqlError {
    explained(error, items, &|(table, alias): Entry<'a>| match table {
        Some(table) if table != alias => {
            Some((table, format!("Perhaps you meant to reference the table alias \"{alias}\".")))
        }
        _ => None,
    })
}

/// An error that came up where these items are not to be named.
pub(super) fn out_of_sight<'a>(error: SqlError, items: impl IntoIterator<Item = &'a FromItem>) -> SqlError {
    let hint = |alias| {
        format!("There is an entry for table \"{alias}\", but it cannot be referenced from this part of the query.")
    };
    let items: Vec<&FromItem> = items.into_iter().collect();
    let by_alias = explained(error, items.iter().copied(), &|(_, alias)| Some((alias, hint(alias))));
    explained(by_alias, items, &|(table, alias)| Some((table?, hint(alias))))
}

/// An error of the condition of a join of these two, which stands to the right of items with these columns: they come first where they have the
/// name.
pub(super) fn of_join(error: SqlError, left: &[ScopeColumn], sides: [&FromItem; 2]) -> SqlError {
    let is_left = |c: &ScopeColumn| c.relation.as_deref().is_some_and(|r| error.message() == missing(r).message());
    if left.iter().any(is_left) { error } else { in_sight(error, sides) }
}

/// An error of an item of FROM with these items to its left.
pub(super) fn beside<'a>(error: SqlError, item: &FromItem, left: impl IntoIterator<Item = &'a FromItem>) -> SqlError {
    match item {
        FromItem::Subquery { lateral: true, .. } | FromItem::Function { .. } => in_sight(error, left),
        _ => out_of_sight(error, left),
    }
}

/// An error of the right side of a join whose kind keeps LATERAL from its left side.
pub(super) fn beside_barred(error: SqlError, item: &FromItem, left: &FromItem) -> SqlError {
    if !matches!(item, FromItem::Subquery { lateral: true, .. } | FromItem::Function { .. } | FromItem::Join { .. }) {
        return out_of_sight(error, [left]);
    }
    let mut entries = Vec::new();
    put_entries(left, &mut entries);
    let Some((_, name)) = entries.into_iter().find(|(_, name)| error.message() == missing(name).message()) else {
        return error;
    };
    let message = format!("invalid reference to FROM-clause entry for table \"{name}\"");
    let barred = SqlError::new(code::INVALID_COLUMN_REFERENCE, message)
        .detail("The combining JOIN type must be INNER or LEFT for a LATERAL reference.");
    match error.fields().at {
        Some(at) => barred.at(at),
        None => barred,
    }
}

/// An error that came up where the table of a change is in sight.
pub(super) fn of_target(error: SqlError, table: &TableRef, items: &[FromItem]) -> SqlError {
    let target = FromItem::Table(table.clone());
    in_sight(error, std::iter::once(&target).chain(items))
}

impl Planner<'_> {
    /// Plans a level.
    pub(super) fn select(
        &mut self,
        s: &Select,
        q: &AstQuery,
        parent: Option<&Scope<'_>>,
        params: &mut Params,
    ) -> Result<Query> {
        let layout = self.from(&s.from, parent, params, &q.locking)?;
        self.select_from(layout, s, q, parent, params).map_err(|e| in_sight(e, &s.from))
    }
}

/// The error with what `said` says of the first item whose name is the missing one.
fn explained<'a>(
    error: SqlError,
    items: impl IntoIterator<Item = &'a FromItem>,
    said: &dyn Fn(Entry<'a>) -> Option<(&'a str, String)>,
) -> SqlError {
    if error.code() != code::UNDEFINED_TABLE {
        return error;
    }
    let mut entries = Vec::new();
    items.into_iter().for_each(|item| put_entries(item, &mut entries));
    let meant = entries.into_iter().filter_map(said).find(|(name, _)| error.message() == missing(name).message());
    match meant {
        Some((relation, hint)) => {
            error.saying(format!("invalid reference to FROM-clause entry for table \"{relation}\"")).hint(hint)
        }
        None => error,
    }
}

fn put_entries<'a>(item: &'a FromItem, out: &mut Vec<Entry<'a>>) {
    let mut table = |t: &'a TableRef| {
        let name = t.name.name();
        out.push((Some(name), t.alias.as_ref().map_or(name, |alias| &alias.name)));
    };
    match item {
        FromItem::Table(t) => table(t),
        FromItem::Sample(sample) => table(&sample.table),
        FromItem::Subquery { alias, .. } | FromItem::Function { alias, .. } => {
            out.extend(alias.iter().map(|alias| (None, alias.name.as_str())));
        }
        FromItem::Join { alias: Some(alias), .. } => out.push((None, &alias.name)),
        FromItem::Join { left, right, alias: None, .. } => {
            put_entries(left, out);
            put_entries(right, out);
        }
    }
}
