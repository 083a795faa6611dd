//! Arguments by name for functions of the system: the call is put into the order of the function's own arguments, and what it leaves out gets the
//! function's defaults.

use crate::builtin::{self, Proc};
use crate::error::Result;
use crate::syntax::ast::{Call, Expr};

/// The call with all arguments by their places; none: no function of the system has arguments of these names.
///
/// # Errors
/// Those of a default's text.
pub(super) fn positional(call: &Call) -> Result<Option<Call>> {
    if call.names.is_empty() || call.name.schema().is_some_and(|s| s != "pg_catalog") {
        return Ok(None);
    }
    for proc in builtin::procs_named(call.name.name()) {
        if let Some(args) = placed(call, proc)? {
            return Ok(Some(Call { args, names: Vec::new(), ..call.clone() }));
        }
    }
    Ok(None)
}

fn placed(call: &Call, proc: &Proc) -> Result<Option<Vec<Expr>>> {
    let names = proc.argument_names();
    let by_place = call.args.len() - call.names.len();
    if names.is_empty() || call.args.len() > names.len() {
        return Ok(None);
    }
    let mut places: Vec<Option<Expr>> = vec![None; names.len()];
    for (i, arg) in call.args.iter().enumerate() {
        let at = match i.checked_sub(by_place) {
            None => Some(i),
            Some(named) => names.iter().position(|name| call.names.get(named).is_some_and(|n| n == name)),
        };
        match at.filter(|at| places[*at].is_none()) {
            Some(at) => places[at] = Some(arg.clone()),
            None => return Ok(None),
        }
    }
    let defaults = proc.argument_defaults();
    let first_default = names.len() - defaults.len();
    let mut args = Vec::with_capacity(names.len());
    for (at, given) in places.into_iter().enumerate() {
        match (given, at.checked_sub(first_default).and_then(|d| defaults.get(d))) {
            (Some(arg), _) => args.push(arg),
            (None, Some(text)) => args.push(crate::syntax::parse_expression(text)?),
            (None, None) => return Ok(None),
        }
    }
    Ok(Some(args))
}
