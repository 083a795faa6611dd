//! The binary form of geometric values (TYP-3).

use super::geometry::{Circle, Geometry, Path, Polygon, Rect};
use super::geometry_number::is_zero;
use super::geometry_segment::{Line, Point, Segment};
use crate::error::{Result, SqlError, code};
use crate::types::binary::{Reader, bad};
use crate::types::{Datum, Oid, oid};

fn invalid(message: &str) -> SqlError {
    SqlError::new(code::INVALID_BINARY_REPRESENTATION, message)
}

fn point(r: &mut Reader<'_>) -> Result<Point> {
    Ok(Point { x: r.f64()?, y: r.f64()? })
}

/// The number of points, then the points.
fn points(r: &mut Reader<'_>, ty: &str) -> Result<Vec<Point>> {
    let count = usize::try_from(r.i32()?).ok().filter(|count| *count > 0);
    let count = count.ok_or_else(|| invalid(&format!("invalid number of points in external \"{ty}\" value")))?;
    // No memory for more points than the bytes can hold.
    if count > r.left() / size_of::<Point>() {
        return Err(bad());
    }
    (0..count).map(|_| point(r)).collect()
}

/// Reads a value of one of the types.
///
/// # Errors
/// 22P03.
pub(super) fn input(ty: Oid, r: &mut Reader<'_>) -> Result<Datum> {
    Ok(match ty {
        oid::POINT => point(r)?.into(),
        oid::LINE => {
            let line = Line { a: r.f64()?, b: r.f64()?, c: r.f64()? };
            if is_zero(line.a) && is_zero(line.b) {
                return Err(invalid("invalid line specification: A and B cannot both be zero"));
            }
            line.into()
        }
        oid::LSEG => Segment { ends: [point(r)?, point(r)?] }.into(),
        oid::BOX => Rect::ordered(point(r)?, point(r)?).into(),
        oid::PATH => {
            let closed = r.byte()? != 0;
            Path::new(points(r, "path")?, closed).ok_or_else(bad)?.into()
        }
        oid::POLYGON => Polygon::new(points(r, "polygon")?).ok_or_else(bad)?.into(),
        oid::CIRCLE => {
            let circle = Circle { center: point(r)?, radius: r.f64()? };
            if circle.radius < 0.0 {
                return Err(invalid("invalid radius in external \"circle\" value"));
            }
            circle.into()
        }
        _ => return Err(bad()),
    })
}

/// Reads a value as it was stored: one whose part an UPDATE has set may have its corners in another order.
///
/// # Errors
/// 22P03.
pub fn of_stored(ty: Oid, bytes: &[u8]) -> Result<Datum> {
    let mut r = Reader::over(bytes);
    let value = match ty {
        oid::BOX => Rect { high: point(&mut r)?, low: point(&mut r)? }.into(),
        _ => input(ty, &mut r)?,
    };
    r.end()?;
    Ok(value)
}

/// Appends the form of a value.
pub fn output(value: &Geometry, out: &mut Vec<u8>) {
    if let Geometry::Path(path) = value {
        out.push(u8::from(path.is_closed()));
    }
    if let Geometry::Path(_) | Geometry::Polygon(_) = value {
        let count = value.numbers().len() / 2;
        out.extend((count as i32).to_be_bytes());
    }
    value.numbers().iter().for_each(|number| out.extend(number.to_be_bytes()));
}
