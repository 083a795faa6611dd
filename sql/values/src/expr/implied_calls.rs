//! Calls of what stands behind operators, casts and types, by the names of their functions: `int4pl(1, 2)` is the operator, `float8(x)` and
//! `date(x)` are casts, `int8send(x)` is the binary form of a value.

use super::bind::Binder;
use super::bound::{Bound, BoundKind};
use super::functions::Function;
use super::resolve::{self, Choice};
use crate::builtin::{self, Meaning};
use crate::error::{Pos, Result};
use crate::types::cast::Context;
use crate::types::{Datum, Oid, SqlType, binary, oid};
use clearway_base::memory;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The functions that give binary forms, by oid.
static SENDS: LazyLock<HashMap<u32, Function>> = LazyLock::new(|| {
    let sends = builtin::procs().iter().filter(|p| matches!(builtin::meaning(p), Some(Meaning::Send)));
    let function = |p: &'static builtin::Proc| Function {
        name: p.name,
        args: &[],
        result: oid::BYTEA,
        strict: true,
        variadic: false,
        volatile: false,
        body: if p.arguments == [oid::CHAR] { |a, _| send(oid::CHAR, a) } else { |a, _| send(oid::TEXT, a) },
    };
    memory::uncharged(|| sends.map(|p| (p.oid, function(p))).collect())
});

/// A value says itself how it is sent, but for texts that are `"char"`.
fn send(ty: Oid, args: &[Datum]) -> Result<Datum> {
    let mut out = Vec::new();
    args.iter().for_each(|value| binary::output(ty.into(), value, &mut out));
    Ok(Datum::Bytea(out.into()))
}

impl Binder<'_> {
    /// The call of a function of the system that its tables do not have; none: there is no such function.
    ///
    /// # Errors
    /// Those of its arguments.
    pub(super) fn implied_call(&mut self, name: &str, args: &[Bound], pos: Pos) -> Result<Option<Bound>> {
        // As PostgreSQL's FuncNameAsType: a type's name before one argument is a cast, if there is one.
        if let ([arg], Some(ty)) = (args, crate::types::by_name(name).filter(|ty| ty.category != b'P'))
            && let Some(cast) = self.coerce(arg.clone(), SqlType::new(ty.oid), Context::Explicit)?
        {
            return Ok(Some(Bound { pos, ..cast }));
        }
        let types: Vec<Oid> = args.iter().map(|a| a.ty.oid).collect();
        let named = builtin::procs_named(name).iter();
        let rows: Vec<_> = named.filter_map(|p| Some((*p, builtin::meaning(p)?))).collect();
        let candidates: Vec<&[Oid]> = rows.iter().map(|(p, _)| p.arguments.as_slice()).collect();
        let Choice::One(at) = resolve::choose(&types, &candidates) else { return Ok(None) };
        let (proc, meaning) = rows[at];
        let Some((wanted, _)) = resolve::solve(&proc.arguments, &types, oid::VOID) else { return Ok(None) };
        let args = args.iter().zip(wanted).map(|(arg, ty)| self.argument(arg.clone(), ty));
        let args: Vec<Bound> = args.collect::<Result<_>>()?;
        let operator = match meaning {
            Meaning::Operator(operator) => operator,
            Meaning::Cast => {
                let [arg] = args.as_slice() else { return Ok(None) };
                return self.coerce(arg.clone(), SqlType::new(proc.result), Context::Explicit);
            }
            Meaning::Send => {
                let kind = SENDS.get(&proc.oid).map(|function| BoundKind::Call { function, args });
                return Ok(kind.map(|kind| Bound { kind, ty: oid::BYTEA.into(), pos }));
            }
        };
        if !super::known::knows_operator(operator) {
            return Ok(None);
        }
        self.by_operator(operator.name, args, pos)
    }

    /// What an operator of the system computes.
    ///
    /// # Errors
    /// Those of the binder for operators.
    pub(super) fn by_operator(&mut self, name: &str, operands: Vec<Bound>, pos: Pos) -> Result<Option<Bound>> {
        let name = format!("pg_catalog.{name}");
        let mut operands = operands.into_iter();
        match (operands.next(), operands.next()) {
            (Some(left), Some(right)) => self.binary(&name, left, right, pos).map(Some),
            (Some(right), None) => self.prefix(&name, right, pos).map(Some),
            _ => Ok(None),
        }
    }
}
