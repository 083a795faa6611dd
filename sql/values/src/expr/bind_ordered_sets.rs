//! The binder for WITHIN GROUP.

use super::aggregate::{self, AggregateCall};
use super::bind::Binder;
use super::bind_calls::no_function;
use super::bound::Bound;
use super::functions;
use crate::error::{Pos, Result, SqlError, code};
use crate::syntax::ast::Call;
use crate::types::{Oid, oid};

impl Binder<'_> {
    /// Why a function that is no aggregate can't have WITHIN GROUP.
    pub(super) fn not_within_group(&mut self, call: &Call, pos: Pos) -> SqlError {
        let name = call.name.name();
        let args = call.args.iter().chain(call.order_by.iter().map(|o| &o.expr));
        let types: Result<Vec<Oid>> = args.map(|a| Ok(self.node(a)?.ty.oid)).collect();
        let types = match types {
            Ok(types) => types,
            Err(e) => return e,
        };
        let known = functions::named(name).iter().any(|f| f.args.len() == types.len());
        if known {
            let message = format!("WITHIN GROUP specified, but {name} is not an aggregate function");
            return SqlError::new(code::WRONG_OBJECT_TYPE, message).at(pos);
        }
        no_function(&call.name.dotted(), &types, pos)
    }

    /// `percentile_cont(0.5) WITHIN GROUP (ORDER BY x)` and its like.
    pub(super) fn ordered_set(&mut self, call: &Call, filter: Option<Bound>, pos: Pos) -> Result<AggregateCall> {
        let name = call.name.name();
        let hypothetical = aggregate::hypothetical(name);
        let mut direct: Vec<Bound> = call.args.iter().map(|a| self.node(a)).collect::<Result<_>>()?;
        let mut args: Vec<Bound> = call.order_by.iter().map(|o| self.node(&o.expr)).collect::<Result<_>>()?;
        let types: Vec<Oid> = direct.iter().chain(&args).map(|a| a.ty.oid).collect();
        let none = || no_function(name, &types, pos);
        let (kind, ty) = match hypothetical {
            Some((kind, ty)) => {
                if direct.len() != args.len() {
                    return Err(none().hint(format!(
                        "To use the hypothetical-set aggregate {name}, the number of hypothetical direct arguments (here {}) must match the number of ordering columns (here {}).",
                        direct.len(),
                        args.len()
                    )));
                }
                for (d, a) in direct.iter_mut().zip(&mut args) {
                    let (pair, _) = self.unify(vec![a.clone(), d.clone()], "WITHIN GROUP")?;
                    let mut pair = pair.into_iter();
                    if let (Some(arg), Some(value)) = (pair.next(), pair.next()) {
                        (*a, *d) = (arg, value);
                    }
                }
                (kind, ty)
            }
            None => {
                let (kind, wanted, result) = aggregate::resolve(name, &types).ok_or_else(none)?;
                if !kind.is_ordered_set() {
                    let message = format!("{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP");
                    return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).at(pos));
                }
                for (arg, t) in direct.iter_mut().chain(&mut args).zip(wanted) {
                    let bound = arg.clone();
                    *arg = if t == oid::UNKNOWN { self.settle(bound)? } else { self.argument(bound, t)? };
                }
                (kind, result)
            }
        };
        let order = args.iter().zip(&call.order_by);
        let order_by = order.map(|(a, o)| (a.clone(), o.descending, o.nulls_first.unwrap_or(o.descending))).collect();
        Ok(AggregateCall { kind, args, direct, distinct: false, filter, order_by, ty: ty.into() })
    }
}
