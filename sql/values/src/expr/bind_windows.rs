//! The binder for windows: OVER, the WINDOW clause, frames; and for GROUPING.

use super::aggregate;
use super::bind::Binder;
use super::bind_calls::no_function;
use super::bound::{Bound, BoundKind, Unplaced};
use super::window::{WindowCall, WindowDefinition, WindowFunction, is_window_function, window_function};
use crate::error::{Pos, Result, SqlError, code};
use crate::syntax::ast::{Call, Expr};
use crate::syntax::window::{Frame, FrameBound, FrameMode, Over, WindowSpec};
use crate::types::cast::Context;
use crate::types::order::{need_equality, need_order};
use crate::types::{Oid, SqlType, format_type, oid};

fn windowing(message: impl Into<String>, pos: Pos) -> SqlError {
    SqlError::new(code::WINDOWING_ERROR, message).at(pos)
}

/// WINDOW names that follow each other, at most.
const CHAIN_MAX: usize = 1_000;

impl Binder<'_> {
    /// A call with OVER.
    pub(super) fn window_call(&mut self, call: &Call, over: &Over, pos: Pos) -> Result<Bound> {
        let name = call.name.name();
        let place = self.place;
        if self.in_aggregate {
            let message = "aggregate function calls cannot contain window function calls";
            return Err(SqlError::new(code::GROUPING_ERROR, message).at(pos));
        }
        let Some(collected) = self.collected.as_deref_mut().filter(|c| c.permits.windows) else {
            return Err(windowing(format!("window functions are not allowed in {place}"), pos));
        };
        if collected.in_definition {
            return Err(windowing("window functions are not allowed in window definitions", pos));
        }
        if std::mem::replace(&mut collected.in_window, true) {
            return Err(windowing("window function calls cannot be nested", pos));
        }
        let bound = self.window_parts(call, over, pos);
        if let Some(collected) = self.collected.as_deref_mut() {
            collected.in_window = false;
            let bound = bound?;
            let ty = bound.ty;
            let at = collected.window_call(bound);
            return Ok(Bound { kind: BoundKind::Unplaced(Unplaced::Window(at)), ty, pos });
        }
        Err(SqlError::internal(format!("{name} without a place for its window")))
    }

    fn window_parts(&mut self, call: &Call, over: &Over, pos: Pos) -> Result<WindowCall> {
        let name = call.name.name();
        let refused = if call.within_group {
            Some(format!("OVER is not supported for ordered-set aggregate {name}"))
        } else if call.distinct {
            Some("DISTINCT is not implemented for window functions".to_owned())
        } else if !call.order_by.is_empty() {
            Some("aggregate ORDER BY is not implemented for window functions".to_owned())
        } else {
            None
        };
        if let Some(message) = refused {
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).at(pos));
        }
        let (function, args, ty) = if is_window_function(name) {
            if call.filter.is_some() {
                let message = "FILTER is not implemented for non-aggregate window functions";
                return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).at(pos));
            }
            self.window_function(call, pos)?
        } else if aggregate::is_aggregate(name) || (call.star && name == "count") {
            let call = self.aggregate_parts(call, pos)?.ok_or_else(|| {
                SqlError::new(code::UNDEFINED_FUNCTION, format!("function {name}() does not exist")).at(pos)
            })?;
            let ty = call.ty;
            (WindowFunction::Aggregate(Box::new(call)), Vec::new(), ty)
        } else if let Some(missing) = crate::types::user::missing_schema(call.name.schema()) {
            return Err(missing.at(pos));
        } else {
            let message = format!("OVER specified, but {name} is not a window function nor an aggregate function");
            return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).at(pos));
        };
        let definition = match over {
            Over::Name(name, pos) => {
                let spec = self.named_window(name, *pos)?;
                self.window_definition(&spec, CHAIN_MAX)?
            }
            Over::Spec(spec) => self.window_definition(spec, CHAIN_MAX)?,
        };
        let window = self.collected.as_deref_mut().map_or(0, |c| c.window(definition));
        Ok(WindowCall { function, args, window, ty })
    }

    fn window_function(&mut self, call: &Call, pos: Pos) -> Result<(WindowFunction, Vec<Bound>, SqlType)> {
        let name = call.name.name();
        let mut args: Vec<Bound> = call.args.iter().map(|a| self.node(a)).collect::<Result<_>>()?;
        let types: Vec<Oid> = args.iter().map(|a| a.ty.oid).collect();
        let none = |types: &[Oid]| no_function(name, types, pos);
        let function = if call.star { None } else { window_function(name, args.len()) }.ok_or_else(|| none(&types))?;
        // The offset, the number of buckets, the number of the row.
        let counted = if matches!(function, WindowFunction::Ntile) { 0 } else { 1 };
        if let Some(slot) = args.get_mut(counted) {
            let arg = slot.clone();
            *slot = self.coerce(arg, oid::INT4.into(), Context::Implicit)?.ok_or_else(|| none(&types))?;
        }
        let ty = match function {
            WindowFunction::RowNumber | WindowFunction::Rank | WindowFunction::DenseRank => oid::INT8,
            WindowFunction::PercentRank | WindowFunction::CumeDist => oid::FLOAT8,
            WindowFunction::Ntile => oid::INT4,
            _ if args.len() == 3 => {
                // lag(value, offset, default): value and default take their common type.
                let unified = self.unify(vec![args[0].clone(), args[2].clone()], name).map_err(|_| none(&types))?;
                let (mut pair, ty) = unified;
                args[2] = pair.pop().ok_or_else(|| none(&types))?;
                args[0] = pair.pop().ok_or_else(|| none(&types))?;
                ty
            }
            _ => {
                let value = args[0].clone();
                args[0] = self.settle(value)?;
                args[0].ty.oid
            }
        };
        Ok((function, args, ty.into()))
    }

    fn named_window(&self, name: &str, pos: Pos) -> Result<WindowSpec> {
        let named = self.collected.as_deref().map_or(&[][..], |c| &c.named);
        let found = named.iter().find(|w| w.0 == name).map(|w| w.1.clone());
        found.ok_or_else(|| SqlError::new(code::UNDEFINED_OBJECT, format!("window \"{name}\" does not exist")).at(pos))
    }

    /// Binds a window that no expression may look through.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub fn check_window(&mut self, spec: &WindowSpec) -> Result<()> {
        self.window_definition(spec, CHAIN_MAX).map(|_| ())
    }

    fn window_definition(&mut self, spec: &WindowSpec, left: usize) -> Result<WindowDefinition> {
        let mark = |b: &mut Self, on: bool| {
            b.collected.as_deref_mut().is_some_and(|c| std::mem::replace(&mut c.in_definition, on))
        };
        let before = mark(self, true);
        let bound = self.window_definition_here(spec, left);
        mark(self, before);
        bound
    }

    fn window_definition_here(&mut self, spec: &WindowSpec, left: usize) -> Result<WindowDefinition> {
        let base = match &spec.base {
            None => None,
            Some(_) if left == 0 => {
                return Err(SqlError::new(code::STATEMENT_TOO_COMPLEX, "windows build on each other too deeply"));
            }
            Some(name) => {
                let base = self.named_window(name, spec.pos)?;
                let bound = clearway_base::stack::deeper(|| self.window_definition(&base, left - 1))?;
                Some((name, bound))
            }
        };
        let order = spec.order_by.iter();
        let order: Vec<(Bound, bool, bool)> = order
            .map(|o| {
                let key = self.bind(&o.expr)?;
                need_order(key.ty, key.pos)?;
                Ok((key, o.descending, o.nulls_first.unwrap_or(o.descending)))
            })
            .collect::<Result<_>>()?;
        let partition: Vec<Bound> = spec.partition_by.iter().map(|e| self.bind(e)).collect::<Result<_>>()?;
        partition.iter().try_for_each(|key| need_equality(key.ty, key.pos))?;
        let (partition, order) = match base {
            None => (partition, order),
            Some((name, base)) => {
                if !partition.is_empty() {
                    return Err(windowing(
                        format!("cannot override PARTITION BY clause of window \"{name}\""),
                        spec.pos,
                    ));
                }
                if !order.is_empty() && !base.order.is_empty() {
                    return Err(windowing(format!("cannot override ORDER BY clause of window \"{name}\""), spec.pos));
                }
                if base.frame.is_some() {
                    let message = format!("cannot copy window \"{name}\" because it has a frame clause");
                    let bare = order.is_empty() && spec.frame.is_none();
                    let error = windowing(message, spec.pos);
                    let hint = "Omit the parentheses in this OVER clause.";
                    return Err(if bare { error.hint(hint) } else { error });
                }
                (base.partition, if order.is_empty() { base.order } else { order })
            }
        };
        let frame = match &spec.frame {
            None => None,
            // Errors about a frame point at its window.
            Some(frame) => Some(self.frame(&Frame { pos: spec.pos, ..frame.clone() }, &order)?),
        };
        Ok(WindowDefinition { partition, order, frame })
    }

    fn frame(&mut self, frame: &Frame<Expr>, order: &[(Bound, bool, bool)]) -> Result<Frame<Bound>> {
        if frame.mode == FrameMode::Groups && order.is_empty() {
            return Err(windowing("GROUPS mode requires an ORDER BY clause", frame.pos));
        }
        let start = self.frame_bound(&frame.start, frame, order)?;
        let end = self.frame_bound(&frame.end, frame, order)?;
        Ok(Frame { mode: frame.mode, start, end, exclude: frame.exclude, pos: frame.pos })
    }

    fn frame_bound(
        &mut self,
        bound: &FrameBound<Expr>,
        frame: &Frame<Expr>,
        order: &[(Bound, bool, bool)],
    ) -> Result<FrameBound<Bound>> {
        use FrameBound as B;
        Ok(match bound {
            B::UnboundedPreceding => B::UnboundedPreceding,
            B::CurrentRow => B::CurrentRow,
            B::UnboundedFollowing => B::UnboundedFollowing,
            B::Preceding(e) => B::Preceding(self.frame_offset(e, frame, order)?),
            B::Following(e) => B::Following(self.frame_offset(e, frame, order)?),
        })
    }

    fn frame_offset(&mut self, e: &Expr, frame: &Frame<Expr>, order: &[(Bound, bool, bool)]) -> Result<Bound> {
        let offset = self.node(e)?;
        if super::sets::holds_set(&offset) {
            let message = "set-returning functions are not allowed in window definitions";
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).at(offset.pos));
        }
        let clause = frame.mode.sql();
        let names_column = offset.lowest_level() == Some(0);
        let late = offset.any(&|e| matches!(e.kind, BoundKind::Unplaced(_) | BoundKind::Aggregate(_)));
        let to = match frame.mode {
            FrameMode::Rows | FrameMode::Groups => oid::INT8,
            FrameMode::Range => {
                let [(key, _, _)] = order else {
                    let message = "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column";
                    return Err(windowing(message, frame.pos));
                };
                range_offset(key, &offset)?
            }
        };
        if names_column || late {
            let message = format!("argument of {clause} must not contain variables");
            return Err(SqlError::new(code::INVALID_COLUMN_REFERENCE, message).at(offset.pos));
        }
        let (from, pos) = (offset.ty.oid, offset.pos);
        self.coerce(offset, to.into(), Context::Implicit)?.ok_or_else(|| {
            let (to, from) = (format_type(SqlType::new(to)), format_type(SqlType::new(from)));
            let message = format!("argument of {clause} must be type {to}, not type {from}");
            SqlError::new(code::DATATYPE_MISMATCH, message).at(pos)
        })
    }

    /// GROUPING(...).
    pub(super) fn grouping(&mut self, list: &[Expr], pos: Pos) -> Result<Bound> {
        if self.in_aggregate || self.collected.as_deref().is_none_or(|c| c.permits.is_key) {
            let message = format!("grouping operations are not allowed in {}", self.place);
            return Err(SqlError::new(code::GROUPING_ERROR, message).at(pos));
        }
        if list.len() > 31 {
            let message = "GROUPING must have fewer than 32 arguments";
            return Err(SqlError::new("54023", message).at(pos));
        }
        let list: Vec<Bound> = list.iter().map(|e| self.bind(e)).collect::<Result<_>>()?;
        Ok(Bound { kind: BoundKind::Unplaced(Unplaced::Grouping(list)), ty: oid::INT4.into(), pos })
    }
}

/// The type of a RANGE offset beside a key.
fn range_offset(key: &Bound, offset: &Bound) -> Result<Oid> {
    let (k, o) = (key.ty.oid, offset.ty.oid);
    let unknown = o == oid::UNKNOWN;
    let refused = |hint: &str| {
        let (shown, pos) = (format_type(SqlType::new(k)), offset.pos);
        let message = if hint.is_empty() {
            format!("RANGE with offset PRECEDING/FOLLOWING is not supported for column type {shown}")
        } else {
            format!(
                "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {shown} and offset type {}",
                format_type(SqlType::new(o))
            )
        };
        let error = SqlError::new(code::FEATURE_NOT_SUPPORTED, message).at(pos);
        if hint.is_empty() { error } else { error.hint(hint) }
    };
    let integer = matches!(o, oid::INT2 | oid::INT4 | oid::INT8);
    let cast = "Cast the offset value to an appropriate type.";
    match k {
        oid::INT2 | oid::INT4 | oid::INT8 if integer => Ok(o),
        oid::INT2 | oid::INT4 | oid::INT8 if unknown => Ok(k),
        oid::FLOAT4 | oid::FLOAT8 if unknown || o == oid::FLOAT8 => Ok(oid::FLOAT8),
        oid::FLOAT4 | oid::FLOAT8 if integer || matches!(o, oid::NUMERIC | oid::FLOAT4) => Ok(oid::FLOAT8),
        oid::NUMERIC if unknown || integer || o == oid::NUMERIC => Ok(oid::NUMERIC),
        oid::DATE | oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::INTERVAL if unknown || o == oid::INTERVAL => {
            Ok(oid::INTERVAL)
        }
        oid::INT2
        | oid::INT4
        | oid::INT8
        | oid::FLOAT4
        | oid::FLOAT8
        | oid::NUMERIC
        | oid::DATE
        | oid::TIMESTAMP
        | oid::TIMESTAMPTZ
        | oid::INTERVAL => Err(refused(cast)),
        _ => Err(refused("")),
    }
}
