//! The geometric types: point, line, lseg, box, path, polygon, circle.
//!
//! # Structure
//! `geometry_number` compares coordinates and calculates with them; `geometry_segment` has points, lines and segments, `geometry_rect` boxes, and so on;
//! `geometry_convert` makes values of one type from those of another; `geometry_text` and `geometry_binary` are the two forms on the wire. The algorithms
//! are those of PostgreSQL's geo_ops.c, step by step, so that roundings and what counts as equal are the same.
//!
//! # Invariants
//! - GEO-1: a path and a polygon have at least one point.

pub use super::geometry_circle::Circle;
pub use super::geometry_convert::convert;
pub use super::geometry_path::Path;
pub use super::geometry_polygon::Polygon;
pub use super::geometry_rect::Rect;
pub use super::geometry_segment::{Line, Point, Segment};

use super::{Datum, Oid, oid};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// A value.
#[derive(Clone, Debug)]
pub enum Geometry {
    /// point.
    Point(Point),
    /// line.
    Line(Line),
    /// lseg.
    Segment(Segment),
    /// box.
    Rect(Rect),
    /// path.
    Path(Path),
    /// polygon.
    Polygon(Polygon),
    /// circle.
    Circle(Circle),
}

/// Whether a type is one of them.
pub fn is_one(ty: Oid) -> bool {
    matches!(ty, oid::POINT | oid::LINE | oid::LSEG | oid::BOX | oid::PATH | oid::POLYGON | oid::CIRCLE)
}

impl Geometry {
    /// Its type.
    pub fn ty(&self) -> Oid {
        match self {
            Geometry::Point(_) => oid::POINT,
            Geometry::Line(_) => oid::LINE,
            Geometry::Segment(_) => oid::LSEG,
            Geometry::Rect(_) => oid::BOX,
            Geometry::Path(_) => oid::PATH,
            Geometry::Polygon(_) => oid::POLYGON,
            Geometry::Circle(_) => oid::CIRCLE,
        }
    }

    /// Bytes of the heap.
    pub fn heap_bytes(&self) -> usize {
        let points = match self {
            Geometry::Path(path) => path.points().len(),
            Geometry::Polygon(polygon) => polygon.points().len(),
            _ => 0,
        };
        size_of::<Geometry>() + points * size_of::<Point>()
    }

    /// Its numbers, one behind the other.
    pub(super) fn numbers(&self) -> Vec<f64> {
        let of_points = |points: &[Point]| points.iter().flat_map(|p| [p.x, p.y]).collect();
        match self {
            Geometry::Point(p) => vec![p.x, p.y],
            Geometry::Line(l) => vec![l.a, l.b, l.c],
            Geometry::Segment(s) => of_points(&s.ends),
            Geometry::Rect(r) => of_points(&[r.high, r.low]),
            Geometry::Path(p) => of_points(p.points()),
            Geometry::Polygon(p) => of_points(p.points()),
            Geometry::Circle(c) => vec![c.center.x, c.center.y, c.radius],
        }
    }

    /// An order that no operator shows: these types have no order of their own, but two values are one if all of their bits are.
    pub fn order(&self, other: &Geometry) -> Ordering {
        let closed = |g: &Geometry| matches!(g, Geometry::Path(path) if path.is_closed());
        let (a, b) = (self.numbers(), other.numbers());
        let first = a.iter().zip(&b).map(|(x, y)| x.total_cmp(y)).find(|order| order.is_ne());
        let numbers = first.unwrap_or_else(|| a.len().cmp(&b.len()));
        self.ty().cmp(&other.ty()).then(closed(self).cmp(&closed(other))).then(numbers)
    }
}

impl Hash for Geometry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ty().hash(state);
        self.numbers().iter().for_each(|number| number.to_bits().hash(state));
    }
}

/// Makes a value of a type one of SQL.
macro_rules! values {
    ($($variant:ident)*) => {$(
        impl From<$variant> for Datum {
            fn from(value: $variant) -> Datum {
                Datum::Geometry(Geometry::$variant(value).into())
            }
        }
    )*};
}
values! { Point Line Segment Rect Path Polygon Circle }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::datetime::Format;
    use crate::types::text::{self as value_text, Conversion, NoNames};
    use crate::types::{SqlType, binary as value_binary, geometry_text};

    const VALUES: [(Oid, &str); 9] = [
        (oid::POINT, "(1.5,-Infinity)"),
        (oid::LINE, "{1,-2,NaN}"),
        (oid::LSEG, "[(1,2),(3,4)]"),
        (oid::BOX, "(3,4),(1,2)"),
        (oid::PATH, "[(1,2)]"),
        (oid::PATH, "((1,2),(3,4))"),
        (oid::POLYGON, "((1,2),(3,4),(5,0))"),
        (oid::CIRCLE, "<(1,2),0>"),
        (1020, "{(3,4),(1,2);NULL}"),
    ];

    fn conversion<T>(of: impl FnOnce(&Conversion<'_>) -> T) -> T {
        of(&Conversion { format: &Format::default(), now: 0, names: &NoNames })
    }

    /// Both forms give the value back, and no beginning of the binary one is a value (TYP-3).
    #[test]
    fn text_and_binary_form_come_back() {
        for (ty, text) in VALUES {
            let ty = SqlType::new(ty);
            let value = conversion(|c| value_text::input(ty, text, c)).expect(text);
            let mut bytes = Vec::new();
            value_binary::output(ty, &value, &mut bytes);
            let back = value_binary::input(ty, &bytes).expect(text);
            assert_eq!(conversion(|c| value_text::output(ty, &back, c)), text);
            assert!(back == value);
            for end in 0..bytes.len() {
                assert!(value_binary::input(ty, &bytes[..end]).is_err(), "{text}: {end} bytes");
            }
        }
    }

    /// GEO-1
    #[test]
    fn a_path_without_points_is_refused() {
        for (ty, bytes) in
            [(oid::PATH, &[1, 0, 0, 0, 0][..]), (oid::POLYGON, &[0; 4][..]), (oid::POLYGON, &[255; 4][..])]
        {
            let refused = value_binary::input(SqlType::new(ty), bytes).map_err(|e| e.code().to_owned());
            assert_eq!(refused.err().as_deref(), Some("22P03"));
        }
        for text in ["", "()", "[]", "(())"] {
            assert!(
                geometry_text::parse(oid::PATH, text).is_err() && geometry_text::parse(oid::POLYGON, text).is_err(),
                "{text}"
            );
        }
        assert!(Path::new(Vec::new(), true).is_none() && Polygon::new(Vec::new()).is_none());
    }

    /// A number of points beyond the bytes takes no memory.
    #[test]
    fn a_count_of_points_is_not_believed() {
        let bytes = [&[0x07, 0xff, 0xff, 0xff][..], &[0; 16]].concat();
        assert!(value_binary::input(SqlType::new(oid::POLYGON), &bytes).is_err());
    }
}
