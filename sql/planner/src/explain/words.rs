//! Writes expressions as EXPLAIN shows them: every operation in parentheses, every cast written out, as in PostgreSQL.

use crate::plan::Query;
use crate::system_columns;
use clearway_values::expr::bind_rows::FIELD;
use clearway_values::expr::bound::BoundKind as K;
use clearway_values::expr::bound::SubqueryUse;
use clearway_values::expr::functions::Function;
use clearway_values::expr::geometry_subscript::PART_NAME;
use clearway_values::expr::hstore_functions::SUBSCRIPT;
use clearway_values::expr::nearest;
use clearway_values::expr::{Bound, BoundKind, HostFunction};
use clearway_values::types::operator::UserOperator;
use clearway_values::types::text::{self, Conversion};
use clearway_values::types::{Datum, Oid, SqlType, element_of, extension, format_type, oid, user};

/// The names of a level's slots, and of those of the levels around it.
#[derive(Clone, Default)]
pub struct Names {
    /// Table and column of each slot; the table is empty where it has no name.
    pub slots: Vec<(String, String)>,
    /// What the aggregates of the level are called.
    pub aggregates: Vec<String>,
}

/// The use of the text that expressions become.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// EXPLAIN.
    Plan,
    /// The definition of an object.
    Definition,
    /// The same, with few parentheses.
    Pretty,
}

/// Turns expressions into text.
pub struct Words<'a> {
    /// How values are shown.
    pub conversion: &'a Conversion<'a>,
    /// The levels, nearest first.
    pub levels: &'a [Names],
    /// Whether columns are shown with their table's name.
    pub qualified: bool,
    /// The slots of the table whose scan is shown: its columns are shown without its name.
    pub own: std::ops::Range<usize>,
    /// The use of the text.
    pub style: Style,
}

/// Parentheses in parentheses that are shown.
const DEPTH_MAX: usize = 100;

impl Words<'_> {
    /// An expression.
    pub fn expr(&self, e: &Bound) -> String {
        let text = self.at(e, 0);
        if self.style == Style::Pretty && stands_bare(None, e) { bare(text) } else { text }
    }

    /// A key of a sort: anything but a column stands in parentheses.
    pub fn sort_key(&self, e: &Bound) -> String {
        let shown = self.expr(e);
        let is_column = shown.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '"' | '$'));
        if is_column || matches!(e.kind, K::Column { .. }) { shown } else { format!("({shown})") }
    }

    /// Several, with commas.
    pub fn list(&self, list: &[Bound]) -> String {
        list.iter().map(|e| self.expr(e)).collect::<Vec<_>>().join(", ")
    }

    fn at(&self, e: &Bound, depth: usize) -> String {
        if depth > DEPTH_MAX {
            return "...".to_owned();
        }
        let parent = e;
        let show = |e: &Bound| {
            let text = self.at(e, depth + 1);
            if self.style == Style::Pretty && stands_bare(Some(parent), e) { bare(text) } else { text }
        };
        let all = |list: &[Bound], between: &str| list.iter().map(show).collect::<Vec<_>>().join(between);
        match &e.kind {
            K::Const(value) => self.constant(value, e.ty),
            K::Column { index, level } => self.column(*index, usize::from(*level)),
            K::Param(n) => format!("${n}"),
            K::Binary { op, left, right } => binary(op.name(), (left, right), show),
            K::Prefix { op, arg } => format!("({} {})", op.name(), show(arg)),
            K::And(list) => format!("({})", all(list, " AND ")),
            K::Or(list) => format!("({})", all(list, " OR ")),
            K::Not(arg) => format!("(NOT {})", show(arg)),
            K::IsNull { arg, negated } => format!("({} IS {}NULL)", show(arg), if *negated { "NOT " } else { "" }),
            K::IsTruth { arg, truth, negated } => {
                let truth = format!("{truth:?}").to_uppercase();
                format!("({} IS {}{truth})", show(arg), if *negated { "NOT " } else { "" })
            }
            K::IsDistinct { left, right, negated } => {
                let not = if *negated { "NOT " } else { "" };
                format!("({} IS {not}DISTINCT FROM {})", show(left), show(right))
            }
            K::InList { arg, list, negated } if self.style != Style::Plan => self.listed(arg, list, *negated, show),
            K::InList { arg, list, negated } => {
                let (op, word) = if *negated { ("<>", "ALL") } else { ("=", "ANY") };
                format!("({} {} {word} ({}))", show(arg), operator(op, &[arg]), self.array(list, arg.ty, depth))
            }
            K::Quantified { left, op, all, array } => {
                let word = if *all { "ALL" } else { "ANY" };
                format!("({} {} {word} ({}))", show(left), operator(op.name(), &[left]), show(array))
            }
            K::Case { whens, otherwise } if self.style != Style::Plan => {
                let when = |(when, then): &(Bound, Bound)| format!("    WHEN {} THEN {}\n", show(when), show(then));
                let whens: String = whens.iter().map(when).collect();
                format!("\nCASE\n{whens}    ELSE {}\nEND", show(otherwise))
            }
            K::Case { whens, otherwise } => {
                let whens: Vec<String> =
                    whens.iter().map(|(when, then)| format!(" WHEN {} THEN {}", show(when), show(then))).collect();
                format!("CASE{} ELSE {} END", whens.concat(), show(otherwise))
            }
            K::Coalesce(list) => format!("COALESCE({})", all(list, ", ")),
            K::MinMax { list, greatest } => {
                format!("{}({})", if *greatest { "GREATEST" } else { "LEAST" }, all(list, ", "))
            }
            K::Cast { arg, .. } => self.cast(arg, show(arg), e.ty),
            // The value itself tells a reader more.
            K::Call { .. } if let Some((_, value)) = nearest::of(e) => self.at(value, depth + 1),
            K::Call { .. } if let Some(column) = self.of_system(e, depth) => column,
            K::Call { function, args } | K::Spread { function, args } => called(function, args, show),
            K::Host { function, args } => host(*function, args.iter().map(show).collect()),
            K::Array(list) => format!("ARRAY[{}]", all(list, ", ")),
            K::Subscript { arg, index } => format!("{}[{}]", show(arg), all(index, "][")),
            K::Slice { arg, bounds } => format!("{}[{}]", show(arg), all(bounds, ":")),
            K::Record { items: list, .. } | K::Row(list) => format!("ROW({})", all(list, ", ")),
            K::Aggregate(i) => {
                let known = self.levels.first().and_then(|l| l.aggregates.get(*i));
                known.cloned().unwrap_or_else(|| format!("aggregate {}", i + 1))
            }
            K::Unplaced(_) => "a value of the level".to_owned(),
            K::Subquery { id, usage, args, correlated } => self.subquery(*id, usage, args, *correlated, depth),
        }
    }

    /// A system column, which is computed from the slot of a row's key; that slot is called ctid.
    fn of_system(&self, e: &Bound, depth: usize) -> Option<String> {
        let (name, key) = system_columns::of_call(e)?;
        let key = self.at(key, depth + 1);
        Some(key.strip_suffix("ctid").map_or(key.clone(), |table| format!("{table}{name}")))
    }

    fn subquery(&self, id: usize, usage: &SubqueryUse, args: &[Bound], correlated: bool, depth: usize) -> String {
        let number = id + 1;
        match usage {
            SubqueryUse::Scalar | SubqueryUse::Exists | SubqueryUse::Fields { .. } if !correlated => format!("${id}"),
            SubqueryUse::Scalar | SubqueryUse::Exists | SubqueryUse::Fields { .. } => format!("(SubPlan {number})"),
            SubqueryUse::Row { op } => {
                let left: Vec<String> = args.iter().map(|e| self.at(e, depth + 1)).collect();
                let right = if correlated { format!("(SubPlan {number})") } else { format!("${id}") };
                format!("(ROW({}) {} {right})", left.join(", "), op.name())
            }
            SubqueryUse::Array => format!("ARRAY(SubPlan {number})"),
            SubqueryUse::Quantified { .. } if !correlated => format!("(hashed SubPlan {number})"),
            SubqueryUse::Quantified { op, all } => {
                let left = args.first().map_or_else(String::new, |e| self.at(e, depth + 1));
                format!("({left} {} {} (SubPlan {number}))", op.name(), if *all { "ALL" } else { "ANY" })
            }
        }
    }

    pub(super) fn column(&self, index: usize, level: usize) -> String {
        let Some((table, column)) = self.levels.get(level).and_then(|l| l.slots.get(index)) else {
            return format!("column {}", index + 1);
        };
        if table.is_empty() || (level == 0 && (!self.qualified || self.own.contains(&index))) {
            column.clone()
        } else {
            format!("{table}.{column}")
        }
    }

    fn cast(&self, arg: &Bound, shown: String, to: SqlType) -> String {
        match (self.style, &arg.kind) {
            (Style::Pretty, _) if is_simple(arg) => format!("{shown}::{}", format_type(to)),
            (Style::Pretty, K::Binary { .. }) => format!("({})::{}", bare(shown), format_type(to)),
            _ => format!("({shown})::{}", format_type(to)),
        }
    }

    /// IN of a definition: one value is compared by `=`, several as an array; what is varchar is compared as text.
    fn listed(&self, arg: &Bound, list: &[Bound], negated: bool, show: impl Fn(&Bound) -> String) -> String {
        let pretty = self.style == Style::Pretty;
        let of_text = arg.ty.oid == oid::VARCHAR;
        let cast = |e: &Bound| match &e.kind {
            K::Const(value) if of_text => self.constant(value, SqlType::new(oid::TEXT)),
            _ if of_text && pretty && is_simple(e) => format!("{}::text", show(e)),
            _ if of_text => format!("({})::text", show(e)),
            _ => show(e),
        };
        if let [one] = list {
            let op = operator(if negated { "<>" } else { "=" }, &[arg]);
            return format!("({} {op} {})", cast(arg), cast(one));
        }
        let (op, word) = if negated { ("<>", "ALL") } else { ("=", "ANY") };
        let array = format!("ARRAY[{}]", list.iter().map(&show).collect::<Vec<_>>().join(", "));
        let array = match (of_text, pretty) {
            (false, _) => array,
            (true, true) => format!("{array}::text[]"),
            (true, false) => format!("({array})::text[]"),
        };
        format!("({} {} {word} ({array}))", cast(arg), operator(op, &[arg]))
    }

    fn array(&self, list: &[Bound], element: SqlType, depth: usize) -> String {
        let constants: Option<Vec<String>> = list
            .iter()
            .map(|e| match &e.kind {
                BoundKind::Const(v) if !v.is_null() => Some(text::output(e.ty, v, self.conversion)),
                _ => None,
            })
            .collect();
        match constants {
            Some(values) if self.style == Style::Plan => {
                let plain = |v: &str| !v.is_empty() && !v.contains(['"', '\\', ',', '{', '}', ' ']);
                let quoted = |v: &String| {
                    if plain(v) { v.clone() } else { format!("\"{}\"", v.replace('\\', "\\\\").replace('"', "\\\"")) }
                };
                let list: Vec<String> = values.iter().map(quoted).collect();
                format!("'{{{}}}'::{}[]", list.join(",").replace('\'', "''"), format_type(element.oid.into()))
            }
            _ => format!("ARRAY[{}]", list.iter().map(|e| self.at(e, depth + 1)).collect::<Vec<_>>().join(", ")),
        }
    }

    fn constant(&self, value: &Datum, ty: SqlType) -> String {
        let name = || format_type(SqlType::new(ty.oid));
        if value.is_null() {
            return format!("NULL::{}", name());
        }
        let shown = text::output(ty, value, self.conversion);
        match (value, ty.oid) {
            (Datum::Bool(b), _) => b.to_string(),
            (Datum::Int4(n), oid::INT4) if *n >= 0 => shown,
            (Datum::Numeric(_), oid::NUMERIC)
                if shown.starts_with(|c: char| c.is_ascii_digit()) && shown.contains('.') =>
            {
                shown
            }
            _ => {
                let name = match ty.oid {
                    // Without a length, char and bit are char(1) and bit(1).
                    oid::BPCHAR => "bpchar".to_owned(),
                    oid::BIT => "\"bit\"".to_owned(),
                    element if element_of(element).is_some() => format_type(ty),
                    _ => name(),
                };
                format!("'{}'::{name}", shown.replace('\'', "''"))
            }
        }
    }
}

/// Whether an expression needs no parentheses before `::`.
fn is_simple(e: &Bound) -> bool {
    match &e.kind {
        BoundKind::Call { function, .. } => is_named(function.name),
        BoundKind::Host { function: HostFunction::Operator { .. }, .. } => false,
        BoundKind::Column { .. } | BoundKind::Host { .. } | BoundKind::Coalesce(_) | BoundKind::Const(_) => true,
        _ => false,
    }
}

/// Whether an expression within another one is clear without its parentheses, as PostgreSQL judges it.
fn stands_bare(parent: Option<&Bound>, e: &Bound) -> bool {
    let Some(parent) = parent else {
        let is_operator = |name: &str| !is_named(name) && name != FIELD.name;
        return matches!(&e.kind, K::Call { function, .. } if is_operator(function.name))
            || matches!(
                e.kind,
                K::Binary { .. } | K::And(_) | K::Or(_) | K::Not(_) | K::IsNull { .. } | K::IsTruth { .. }
            )
            || matches!(e.kind, K::IsDistinct { .. } | K::InList { .. } | K::Quantified { .. } | K::Prefix { .. });
    };
    let of_parts =
        matches!(parent.kind, K::Call { .. } | K::Coalesce(_) | K::MinMax { .. } | K::Case { .. } | K::Array(_));
    match (&e.kind, &parent.kind) {
        (
            K::Binary { .. } | K::IsNull { .. } | K::IsTruth { .. } | K::IsDistinct { .. },
            K::And(_) | K::Or(_) | K::Not(_),
        ) => true,
        (K::And(_) | K::Not(_), K::And(_) | K::Or(_)) | (K::Or(_), K::Or(_)) => true,
        (K::Binary { .. } | K::And(_) | K::Or(_) | K::Not(_) | K::IsNull { .. } | K::IsTruth { .. }, _) => of_parts,
        _ => false,
    }
}

/// Without the parentheses around all of it.
fn bare(text: String) -> String {
    match text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        Some(inner) => inner.to_owned(),
        None => text,
    }
}

/// `TxidCurrent` as `txid_current`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars().take_while(|c| c.is_alphanumeric()) {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// The labels of a query's columns.
pub fn labels(query: &Query) -> Vec<String> {
    query.columns.iter().map(|c| c.name.clone()).collect()
}

/// Whether a call is written as one: those of operators and of fields are not.
fn is_named(name: &str) -> bool {
    name != FIELD.name && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// The schema of an extension that brings one of these types, where names without a schema are not looked for in it.
fn schema_needed(types: impl IntoIterator<Item = Oid>) -> Option<String> {
    let own = types.into_iter().find(|ty| extension::is_one(*ty))?;
    let schema = user::schema(own)?;
    let on_path = user::current().is_some_and(|types| types.path().iter().any(|s| **s == *schema));
    (!on_path).then(|| clearway_context::names::quote(&schema))
}

/// An operator as SQL writes it between operands of these types.
fn operator(name: &str, operands: &[&Bound]) -> String {
    match schema_needed(operands.iter().map(|operand| operand.ty.oid)) {
        Some(schema) => format!("OPERATOR({schema}.{name})"),
        None => name.to_owned(),
    }
}

/// An operator of a user, with its schema where its name alone does not lead to it.
fn own_operator(o: &UserOperator) -> String {
    match clearway_values::types::operator::is_visible(o) {
        true => o.name.clone(),
        false => format!("OPERATOR({}.{})", clearway_context::names::quote(&o.schema), o.name),
    }
}

/// An operator between its operands.
fn binary(name: &str, (left, right): (&Bound, &Bound), show: impl Fn(&Bound) -> String) -> String {
    format!("({} {} {})", show(left), operator(name, &[left, right]), show(right))
}

/// A call as SQL writes it.
fn called(function: &Function, args: &[Bound], show: impl Fn(&Bound) -> String) -> String {
    let name = function.name;
    let all = || args.iter().map(&show).collect::<Vec<_>>().join(", ");
    match args {
        _ if name == FIELD.name => field(args, show),
        [value, key] if name == SUBSCRIPT.name || name == PART_NAME => format!("{}[{}]", show(value), show(key)),
        _ if is_named(name) => {
            let own = function.args.iter().copied().chain([function.result]);
            let schema = schema_needed(own).map_or_else(String::new, |schema| schema + ".");
            format!("{schema}{name}({})", all())
        }
        [left, right] => binary(name, (left, right), show),
        [arg] => format!("({} {})", operator(name, &[arg]), all()),
        _ => format!("({name} {})", all()),
    }
}

/// `(row).name`, of the arguments of the function that takes a field out of a row.
fn field(args: &[Bound], show: impl Fn(&Bound) -> String) -> String {
    let [row, number] = args else { return String::new() };
    let at = match &number.kind {
        BoundKind::Const(number) => number.as_i64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0),
        _ => 0,
    };
    let name =
        clearway_values::types::user::shape(row.ty.oid).map_or_else(|| format!("f{}", at + 1), |shape| shape.name(at));
    format!("({}).{}", show(row), clearway_context::names::quote(&name))
}

/// A call of a host function.
fn host(function: HostFunction, mut args: Vec<String>) -> String {
    let name = match function {
        HostFunction::Operator { operator, .. } => {
            return match (clearway_values::types::operator::of_oid(operator), args.as_slice()) {
                (Some(o), [right, ..]) if o.left == 0 => format!("({} {right})", own_operator(&o)),
                (Some(o), [left, right, ..]) => format!("({left} {} {right})", own_operator(&o)),
                _ => "operator".to_owned(),
            };
        }
        HostFunction::Sql(oid) => match clearway_values::types::routine::of_oid(oid) {
            Some(s) => {
                // Behind the arguments of a polymorphic function stand their types.
                args.truncate(s.inputs.len());
                let name = clearway_context::names::quote(&s.name);
                match clearway_values::types::routine::is_visible(&s) {
                    true => name,
                    false => format!("{}.{name}", clearway_context::names::quote(&s.schema)),
                }
            }
            None => "function".to_owned(),
        },
        function => snake(&format!("{function:?}")),
    };
    format!("{name}({})", args.join(", "))
}
