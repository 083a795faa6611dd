//! The binder for operators that users define.
//!
//! Source: PostgreSQL 15's `oper`, `left_oper` and `OpernameGetCandidates`: an exact match in the order of the search path, then the best of all
//! candidates, the system's among them.

use super::bind::{Binder, many_operators, shown_operands};
use super::bound::{Bound, BoundKind};
use super::host::HostFunction;
use super::known::{knows_function, knows_operator};
use super::resolve::{self, Choice};
use crate::builtin;
use crate::error::{Pos, Result, SqlError, code};
use crate::types::operator::{self, Found, UserOperator};
use crate::types::{Oid, oid};

/// The types by which an exact match is sought: beside a known type an unknown one is taken to be the same.
fn assumed(types: &[Oid]) -> Vec<Oid> {
    match *types {
        [oid::UNKNOWN, t] | [t, oid::UNKNOWN] => vec![t, t],
        _ => types.to_vec(),
    }
}

/// The operands of the system's operators of a name.
fn of_system(name: &str, operands: usize) -> Vec<Vec<Oid>> {
    let named = builtin::operators().iter().filter(|o| o.name == name && (o.left != 0) == (operands == 2));
    named.map(|o| if o.left == 0 { vec![o.right] } else { vec![o.left, o.right] }).collect()
}

/// Which of the operators of users is meant; none: one of the system's, or none at all.
fn chosen(own: &[Found], known: &[Vec<Oid>], types: &[Oid]) -> Choice {
    let wanted = assumed(types);
    let exact = own.iter().position(|(found, _)| found.types() == wanted);
    match (exact, known.contains(&wanted)) {
        (Some(at), false) => return Choice::One(at),
        (Some(at), true) if own[at].1 => return Choice::One(at),
        (_, true) => return Choice::None,
        (None, false) => {}
    }
    let own_types: Vec<Vec<Oid>> = own.iter().map(|(found, _)| found.types()).collect();
    // Of two with the same operands the one is hidden whose schema is searched later.
    let hides = |ty: &Vec<Oid>| own.iter().zip(&own_types).any(|((_, before), own)| *before && own == ty);
    let hidden = |at: usize| !own[at].1 && known.contains(&own_types[at]);
    // Polymorphic types must come to the same.
    let fits = |at: usize| resolve::solve(&own_types[at], types, oid::VOID).is_some();
    let shown: Vec<usize> = (0..own.len()).filter(|at| !hidden(*at) && fits(*at)).collect();
    let mut candidates: Vec<&[Oid]> = shown.iter().map(|at| own_types[*at].as_slice()).collect();
    let alone = candidates.clone();
    candidates.extend(known.iter().filter(|ty| !hides(ty)).map(Vec::as_slice));
    match resolve::choose(types, &candidates) {
        Choice::One(at) => shown.get(at).map_or(Choice::None, |at| Choice::One(*at)),
        Choice::Many if !matches!(resolve::choose(types, &alone), Choice::None) => Choice::Many,
        _ => Choice::None,
    }
}

/// Whether an operator of a user can be computed by a function of the system.
pub fn may_compute(function: &builtin::Proc) -> bool {
    let mut operators = builtin::operators().iter().filter(|o| o.code == function.oid);
    knows_function(function) || operators.any(knows_operator)
}

impl Binder<'_> {
    /// An operator of a user between operands; none: the name means one of the system's here.
    ///
    /// # Errors
    /// 42725 where several fit; 42883 for one that others have only named.
    pub(super) fn user_operator(&mut self, name: &str, operands: &[&Bound], pos: Pos) -> Result<Option<Bound>> {
        let (schema, bare) = operator::split(name);
        if schema == Some("pg_catalog") {
            return Ok(None);
        }
        let mut own = operator::named(schema, bare).map_err(|e| e.at(pos))?;
        own.retain(|(found, _)| found.types().len() == operands.len());
        // Rows are compared field by field.
        let rows = operands.len() == 2 && operands.iter().all(|o| matches!(o.kind, BoundKind::Row(_)));
        if own.is_empty() || rows {
            return Ok(None);
        }
        let types: Vec<Oid> = operands.iter().map(|o| o.ty.oid).collect();
        let known = if schema.is_none() { of_system(bare, operands.len()) } else { Vec::new() };
        let found = match chosen(&own, &known, &types) {
            Choice::One(at) => own.swap_remove(at).0,
            Choice::Many => return Err(many_operators(name, &types, pos)),
            Choice::None => return Ok(None),
        };
        operator::note(pos, found.oid);
        let operands = operands.iter().map(|operand| (*operand).clone()).collect();
        self.computed_by(&found, operands, &types, pos).map(Some)
    }

    fn computed_by(&mut self, found: &UserOperator, operands: Vec<Bound>, types: &[Oid], pos: Pos) -> Result<Bound> {
        if found.function == 0 {
            let message = format!("operator is only a shell: {}", shown_operands(&found.name, &found.types()));
            return Err(SqlError::new(code::UNDEFINED_FUNCTION, message).at(pos));
        }
        if let Some(own) = crate::types::routine::of_oid(found.function) {
            let call = self.routine_call(&own, found.types(), operands, types, pos)?;
            return Ok(match call.kind {
                BoundKind::Host { function: HostFunction::Sql(function), args } => {
                    let function = HostFunction::Operator { operator: found.oid, function };
                    Bound { kind: BoundKind::Host { function, args }, ..call }
                }
                _ => call,
            });
        }
        let missing = || SqlError::unsupported(format!("the function of operator {}", found.shown())).at(pos);
        let function = builtin::proc(found.function).ok_or_else(missing)?;
        let declared = found.types();
        let (wanted, _) = resolve::solve(&declared, types, oid::VOID).ok_or_else(missing)?;
        let operands = operands.into_iter().zip(&wanted).map(|(o, ty)| self.argument(o, *ty));
        let operands: Vec<Bound> = operands.collect::<Result<_>>()?;
        if let Some(call) = self.scalar_call(function.name, operands.clone(), &wanted, pos)? {
            return Ok(call);
        }
        // int4eq and its like have no rows of their own: each computes an operator.
        let same = builtin::operators().iter().find(|o| o.code == found.function).ok_or_else(missing)?;
        self.by_operator(same.name, operands, pos)?.ok_or_else(missing)
    }
}
