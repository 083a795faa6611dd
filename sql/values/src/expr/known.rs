//! Which of PostgreSQL's functions and operators the binder knows: a row of pg_proc or pg_operator is shown if an expression with
//! arguments of its types binds to a value of its result's type.

use super::bind::{Binder, Params, Scope};
use super::bound::Bound;
use super::collect::{Collected, Permits};
use crate::builtin::{Operator, Proc};
use crate::error::Pos;
use crate::types::datetime::Format;
use crate::types::text::{Conversion, NoNames};
use crate::types::{Datum, Oid, facts, oid};

const CSTRING: Oid = 2275;

/// The type that stands in for a polymorphic one.
fn concrete(ty: Oid) -> Oid {
    match ty {
        // any, anyelement, anynonarray, anycompatible, anycompatiblenonarray.
        2276 | 2283 | 2776 | 5077 | 5079 => oid::INT4,
        // anyarray, anycompatiblearray.
        2277 | 5078 => oid::INT4_ARRAY,
        oid::ANYRANGE => oid::INT4RANGE,
        oid::ANYMULTIRANGE => oid::INT4MULTIRANGE,
        ty => ty,
    }
}

/// Whether a type is a polymorphic one.
fn is_polymorphic(ty: Oid) -> bool {
    concrete(ty) != ty
}

fn with_binder<T>(f: impl FnOnce(&mut Binder<'_>) -> Option<T>) -> Option<T> {
    let format = Format::default();
    let scope = Scope::default();
    let mut params = Params::default();
    let permits = Permits { windows: true, sets: true, is_key: false };
    let mut collected = Collected { permits, ..Collected::default() };
    let mut binder = Binder {
        scope: &scope,
        params: &mut params,
        collected: Some(&mut collected),
        subqueries: None,
        conversion: Conversion { format: &format, now: 0, names: &NoNames },
        place: "SELECT",
        in_aggregate: false,
    };
    f(&mut binder)
}

fn gives(found: &Bound, result: Oid) -> bool {
    is_polymorphic(result) || found.ty.oid == result || result == CSTRING
}

/// Whether the binder knows a function, an aggregate, or a function of windows.
pub fn knows_function(p: &Proc) -> bool {
    let nulls: Option<Vec<String>> = p.arguments.iter().map(|t| null_of(concrete(*t))).collect();
    let Some(args) = nulls else { return false };
    let args = if p.name == "count" && args.is_empty() { "*".to_owned() } else { args.join(", ") };
    let quoted = p.name.replace('"', "\"\"");
    let over = if super::window::is_window_function(p.name) { " OVER ()" } else { "" };
    let call = format!("pg_catalog.\"{quoted}\"({args}){over}");
    let Ok(e) = crate::syntax::parse_expression(&call) else { return false };
    with_binder(|b| b.bind(&e).ok()).is_some_and(|found| gives(&found, p.result))
}

/// NULL of a type, as SQL writes it.
fn null_of(ty: Oid) -> Option<String> {
    facts(ty).map(|f| format!("NULL::{}", f.sql_name))
}

/// Whether the binder knows an operator.
pub fn knows_operator(o: &Operator) -> bool {
    let pos: Pos = 0;
    let operand = |ty: Oid| facts(concrete(ty)).map(|f| Bound::constant(Datum::Null, f.oid, pos));
    let Some(right) = operand(o.right) else { return false };
    // Whatever operators users have.
    let name = format!("pg_catalog.{}", o.name);
    let found = with_binder(|b| match o.left {
        0 => b.prefix(&name, right, pos).ok(),
        left => b.binary(&name, operand(left)?, right, pos).ok(),
    });
    found.is_some_and(|found| gives(&found, o.result))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    #[test]
    fn what_the_binder_knows_is_told_from_what_it_does_not() {
        let knows = |name: &str, args: &[Oid]| {
            builtin::procs_named(name).iter().any(|p| p.arguments == args && knows_function(p))
        };
        assert!(knows("lower", &[oid::TEXT]) && knows("sum", &[oid::INT4]) && knows("count", &[]));
        assert!(knows("array_length", &[2277, oid::INT4]) && knows("nextval", &[oid::REGCLASS]));
        assert!(!knows("xpath", &[oid::TEXT, 142]) && knows("lower", &[3831]));
        let operator = |name: &str, left: Oid, right: Oid| {
            builtin::operators().iter().any(|o| (o.name, o.left, o.right) == (name, left, right) && knows_operator(o))
        };
        assert!(operator("+", oid::INT4, oid::INT4) && operator("-", 0, oid::NUMERIC));
        assert!(!operator("@@", 3614, 3615));
    }

    #[test]
    fn most_operators_of_numbers_and_texts_are_known() {
        let known = builtin::operators().iter().filter(|o| knows_operator(o)).count();
        assert!(known >= 250, "{known}");
    }
}
