//! Subscripts of geometric types that are made of a fixed number of parts: the coordinates of a point, the numbers of a line, the ends of an lseg, the
//! corners of a box. They count from 0, as in PostgreSQL, where these types are arrays of fixed length.

use super::bind::Binder;
use super::bound::{Bound, BoundKind};
use super::eval::Env;
use super::functions::Function;
use crate::error::{Pos, Result, SqlError, code};
use crate::syntax::ast::{Expr, Index};
use crate::types::geometry::{self, Geometry, Line, Point, Rect, Segment};
use crate::types::{Datum, Oid, facts, oid};

/// What a part is called.
pub const PART_NAME: &str = "geometry_subscript";
/// What the assignment to a part is called.
pub const SET_NAME: &str = "geometry_set_part";

/// (value, subscripts): the part; NULL where there is none.
static PART: Function = function(PART_NAME, part);
/// (value, new part, subscripts): the value with that part.
static SET: Function = function(SET_NAME, with_part);

const fn function(name: &'static str, body: super::functions::Body) -> Function {
    const ARGS: &[Oid] = &[oid::POINT, oid::INT4];
    Function { name, args: ARGS, result: oid::FLOAT8, strict: false, variadic: false, volatile: false, body }
}

/// The type of a type's parts; none: it has none.
pub fn part_type(ty: Oid) -> Option<Oid> {
    facts(ty).filter(|f| geometry::is_one(ty) && f.element != 0).map(|f| f.element)
}

impl Binder<'_> {
    fn part_indices(&mut self, index: &[Index], of_slices: &str) -> Result<Vec<Bound>> {
        let mut out = Vec::new();
        for i in index {
            let Index::At(e) = i else { return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, of_slices)) };
            out.push(self.array_index(e)?);
        }
        Ok(out)
    }

    /// `point[0]`, whose parts are of this type.
    pub(super) fn geometry_part(&mut self, value: Bound, ty: Oid, index: &[Index], pos: Pos) -> Result<Bound> {
        let mut args = vec![value];
        args.extend(self.part_indices(index, "slices of fixed-length arrays not implemented")?);
        Ok(Bound { kind: BoundKind::Call { function: &PART, args }, ty: ty.into(), pos })
    }

    /// The whole of a column one part of which, of this type, is set.
    pub(super) fn with_geometry_part(
        &mut self,
        (whole, part): (Bound, Oid),
        index: &[Index],
        value: &Expr,
        name: &str,
    ) -> Result<Bound> {
        let (ty, pos) = (whole.ty, whole.pos);
        let of_slice = index.iter().any(|i| !matches!(i, Index::At(_)));
        let value = self.bind_assigned_part(value, if of_slice { ty } else { part.into() }, name, pos)?;
        let indices = self.part_indices(index, "updates on slices of fixed-length arrays not implemented")?;
        let mut args = vec![whole, value];
        args.extend(indices);
        Ok(Bound { kind: BoundKind::Call { function: &SET, args }, ty, pos })
    }
}

fn part(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (Some(Datum::Geometry(value)), [_, Datum::Int4(at)]) = (a.first(), a) else { return Ok(Datum::Null) };
    let at = usize::try_from(*at).unwrap_or(usize::MAX);
    let number = |list: &[f64]| list.get(at).map_or(Datum::Null, |n| Datum::Float8(*n));
    let point = |list: &[Point]| list.get(at).map_or(Datum::Null, |p| (*p).into());
    Ok(match &**value {
        Geometry::Point(p) => number(&[p.x, p.y]),
        Geometry::Line(l) => number(&[l.a, l.b, l.c]),
        Geometry::Segment(s) => point(&s.ends),
        Geometry::Rect(r) => point(&[r.high, r.low]),
        _ => Datum::Null,
    })
}

fn refused(message: &str) -> SqlError {
    SqlError::new(code::ARRAY_SUBSCRIPT_ERROR, message)
}

/// Puts a part in its place.
fn put<T: Copy>(parts: &mut [T], at: usize, part: Option<T>) -> Result<()> {
    let slot = parts.get_mut(at).ok_or_else(|| refused("array subscript out of range"))?;
    *slot = part.ok_or_else(|| SqlError::internal("a part of another type"))?;
    Ok(())
}

fn with_part(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let [whole, part, indices @ ..] = a else { return Err(SqlError::internal("an assignment without a part")) };
    if indices.iter().any(Datum::is_null) {
        return Err(SqlError::new("22004", "array subscript in assignment must not be null"));
    }
    // As in PostgreSQL, NULL changes nothing, and NULL gets no part.
    let Datum::Geometry(value) = whole else { return Ok(Datum::Null) };
    if part.is_null() {
        return Ok(whole.clone());
    }
    let [Datum::Int4(at)] = indices else { return Err(refused("wrong number of array subscripts")) };
    let at = usize::try_from(*at).unwrap_or(usize::MAX);
    let number = part.as_f64();
    let point = match part {
        Datum::Geometry(part) => match **part {
            Geometry::Point(point) => Some(point),
            _ => None,
        },
        _ => None,
    };
    Ok(match &**value {
        Geometry::Point(p) => {
            let mut parts = [p.x, p.y];
            put(&mut parts, at, number)?;
            Point::new(parts[0], parts[1]).into()
        }
        Geometry::Line(l) => {
            let mut parts = [l.a, l.b, l.c];
            put(&mut parts, at, number)?;
            Line { a: parts[0], b: parts[1], c: parts[2] }.into()
        }
        Geometry::Segment(s) => {
            let mut ends = s.ends;
            put(&mut ends, at, point)?;
            Segment { ends }.into()
        }
        Geometry::Rect(r) => {
            let mut parts = [r.high, r.low];
            put(&mut parts, at, point)?;
            Rect { high: parts[0], low: parts[1] }.into()
        }
        _ => return Err(SqlError::internal("a part of a type without parts")),
    })
}
