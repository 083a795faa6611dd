//! What functions and operators of geometric types compute.

use super::eval::Env;
use crate::error::{Result, SqlError};
use crate::types::Datum;
use crate::types::geometry::{Circle, Geometry, Line, Path, Point, Polygon, Rect, Segment};
use crate::types::geometry_number::{div, eq, ge, gt, le, lt, mul, ne};

/// What a body takes as an argument.
trait Argument {
    /// The argument in a value; none: the value is of another type.
    fn of(value: &Datum) -> Option<&Self>;
}

/// What a body gives.
trait Made {
    fn made(self) -> Datum;
}

macro_rules! geometries {
    ($($variant:ident)*) => {$(
        impl Argument for $variant {
            fn of(value: &Datum) -> Option<&Self> {
                match value {
                    Datum::Geometry(geometry) => match &**geometry {
                        Geometry::$variant(found) => Some(found),
                        _ => None,
                    },
                    _ => None,
                }
            }
        }
        impl Made for $variant {
            fn made(self) -> Datum {
                self.into()
            }
        }
    )*};
}
geometries! { Point Line Segment Rect Path Polygon Circle }

macro_rules! plain {
    ($($ty:ty = $variant:ident)*) => {$(
        impl Argument for $ty {
            fn of(value: &Datum) -> Option<&Self> {
                match value {
                    Datum::$variant(found) => Some(found),
                    _ => None,
                }
            }
        }
        impl Made for $ty {
            fn made(self) -> Datum {
                Datum::$variant(self)
            }
        }
    )*};
}
plain! { bool = Bool f64 = Float8 i32 = Int4 }

impl<T: Made> Made for Option<T> {
    fn made(self) -> Datum {
        self.map_or(Datum::Null, Made::made)
    }
}

fn wrong() -> SqlError {
    SqlError::internal("a function of geometric types got another type")
}

/// `name(argument: Type, ...) = value;`
macro_rules! bodies {
    ($($name:ident($($arg:ident: $ty:ty),*) = $value:expr;)*) => {$(
        pub(super) fn $name(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
            let mut args = a.iter();
            $(let $arg: &$ty = args.next().and_then(Argument::of).ok_or_else(wrong)?;)*
            Ok(Made::made($value))
        }
    )*};
}

/// The point, unless its distance is NaN.
fn near((point, distance): (Point, f64)) -> Option<Point> {
    if distance.is_nan() { None } else { Some(point) }
}

fn count(points: &[Point]) -> i32 {
    i32::try_from(points.len()).unwrap_or(i32::MAX)
}

// Points.
bodies! {
    construct_point(x: f64, y: f64) = Point::new(*x, *y);
    point_add(p: Point, q: Point) = p.plus(q)?;
    point_sub(p: Point, q: Point) = p.minus(q)?;
    point_mul(p: Point, q: Point) = p.times(q)?;
    point_div(p: Point, q: Point) = p.over(q)?;
    point_eq(p: Point, q: Point) = p.is(q);
    point_ne(p: Point, q: Point) = !p.is(q);
    point_left(p: Point, q: Point) = lt(p.x, q.x);
    point_right(p: Point, q: Point) = gt(p.x, q.x);
    point_above(p: Point, q: Point) = gt(p.y, q.y);
    point_below(p: Point, q: Point) = lt(p.y, q.y);
    point_vert(p: Point, q: Point) = eq(p.x, q.x);
    point_horiz(p: Point, q: Point) = eq(p.y, q.y);
    point_slope(p: Point, q: Point) = p.slope(q)?;
    point_distance(p: Point, q: Point) = p.distance(q)?;
    point_box(p: Point) = Rect::of_point(p);
}

// Lines.
bodies! {
    line_construct_pp(p: Point, q: Point) = Line::of_points(p, q)?;
    line_eq(l: Line, m: Line) = l.is(m)?;
    line_parallel(l: Line, m: Line) = l.meets(m)?.is_none();
    line_intersect(l: Line, m: Line) = l.meets(m)?.is_some();
    line_interpt(l: Line, m: Line) = l.meets(m)?;
    line_perp(l: Line, m: Line) = l.is_upright_on(m)?;
    line_vertical(l: Line) = l.is_vertical();
    line_horizontal(l: Line) = l.is_horizontal();
    line_distance(l: Line, m: Line) = l.distance(m)?;
    on_pl(p: Point, l: Line) = l.has(p)?;
    on_sl(s: Segment, l: Line) = l.has(&s.ends[0])? && l.has(&s.ends[1])?;
    dist_pl(p: Point, l: Line) = l.closest(p)?.1;
    dist_lp(l: Line, p: Point) = l.closest(p)?.1;
    close_pl(p: Point, l: Line) = near(l.closest(p)?);
}

// Segments.
bodies! {
    lseg_construct(p: Point, q: Point) = Segment::new(*p, *q);
    lseg_length(s: Segment) = s.length()?;
    lseg_center(s: Segment) = s.center()?;
    lseg_vertical(s: Segment) = eq(s.ends[0].x, s.ends[1].x);
    lseg_horizontal(s: Segment) = eq(s.ends[0].y, s.ends[1].y);
    lseg_parallel(s: Segment, t: Segment) = eq(s.slope()?, t.slope()?);
    lseg_perp(s: Segment, t: Segment) = s.is_upright_on(t)?;
    lseg_intersect(s: Segment, t: Segment) = s.meets(t)?.is_some();
    lseg_interpt(s: Segment, t: Segment) = s.meets(t)?;
    lseg_distance(s: Segment, t: Segment) = s.closest_to_segment(t)?.1;
    lseg_eq(s: Segment, t: Segment) = s.is(t);
    lseg_ne(s: Segment, t: Segment) = !s.is(t);
    lseg_lt(s: Segment, t: Segment) = lt(s.length()?, t.length()?);
    lseg_le(s: Segment, t: Segment) = le(s.length()?, t.length()?);
    lseg_gt(s: Segment, t: Segment) = gt(s.length()?, t.length()?);
    lseg_ge(s: Segment, t: Segment) = ge(s.length()?, t.length()?);
    inter_sl(s: Segment, l: Line) = s.meets_line(l)?.is_some();
    on_ps(p: Point, s: Segment) = s.has(p)?;
    dist_ps(p: Point, s: Segment) = s.closest_to_point(p)?.1;
    dist_sp(s: Segment, p: Point) = s.closest_to_point(p)?.1;
    dist_sl(s: Segment, l: Line) = s.closest_to_line(l)?.1;
    dist_ls(l: Line, s: Segment) = s.closest_to_line(l)?.1;
    close_ps(p: Point, s: Segment) = near(s.closest_to_point(p)?);
    close_ls(l: Line, s: Segment) = if s.slope()? == l.slope()? { None } else { near(s.closest_to_line(l)?) };
    close_lseg(s: Segment, t: Segment) = if s.slope()? == t.slope()? { None } else { near(t.closest_to_segment(s)?) };
}

// Boxes.
bodies! {
    points_box(p: Point, q: Point) = Rect::new(p, q);
    boxes_bound_box(a: Rect, b: Rect) = a.around_both(b);
    box_area(a: Rect) = a.area()?;
    box_width(a: Rect) = a.width()?;
    box_height(a: Rect) = a.height()?;
    box_center(a: Rect) = a.center()?;
    box_diagonal(a: Rect) = a.diagonal();
    box_circle(a: Rect) = a.circle()?;
    box_poly(a: Rect) = a.polygon()?;
    box_add(a: Rect, p: Point) = Rect { high: a.high.plus(p)?, low: a.low.plus(p)? };
    box_sub(a: Rect, p: Point) = Rect { high: a.high.minus(p)?, low: a.low.minus(p)? };
    box_mul(a: Rect, p: Point) = Rect::new(&a.high.times(p)?, &a.low.times(p)?);
    box_div(a: Rect, p: Point) = Rect::new(&a.high.over(p)?, &a.low.over(p)?);
    box_same(a: Rect, b: Rect) = a.is(b);
    box_overlap(a: Rect, b: Rect) = a.overlaps(b);
    box_intersect(a: Rect, b: Rect) = a.common(b);
    box_contain(a: Rect, b: Rect) = a.has_rect(b);
    box_contained(a: Rect, b: Rect) = b.has_rect(a);
    box_contain_pt(a: Rect, p: Point) = a.has(p);
    box_left(a: Rect, b: Rect) = lt(a.high.x, b.low.x);
    box_overleft(a: Rect, b: Rect) = le(a.high.x, b.high.x);
    box_right(a: Rect, b: Rect) = gt(a.low.x, b.high.x);
    box_overright(a: Rect, b: Rect) = ge(a.low.x, b.low.x);
    box_below(a: Rect, b: Rect) = lt(a.high.y, b.low.y);
    box_overbelow(a: Rect, b: Rect) = le(a.high.y, b.high.y);
    box_above(a: Rect, b: Rect) = gt(a.low.y, b.high.y);
    box_overabove(a: Rect, b: Rect) = ge(a.low.y, b.low.y);
    box_below_eq(a: Rect, b: Rect) = le(a.high.y, b.low.y);
    box_above_eq(a: Rect, b: Rect) = ge(a.low.y, b.high.y);
    box_lt(a: Rect, b: Rect) = lt(a.area()?, b.area()?);
    box_le(a: Rect, b: Rect) = le(a.area()?, b.area()?);
    box_eq(a: Rect, b: Rect) = eq(a.area()?, b.area()?);
    box_ge(a: Rect, b: Rect) = ge(a.area()?, b.area()?);
    box_gt(a: Rect, b: Rect) = gt(a.area()?, b.area()?);
    box_distance(a: Rect, b: Rect) = a.center()?.distance(&b.center()?)?;
    on_pb(p: Point, a: Rect) = a.has(p);
    on_sb(s: Segment, a: Rect) = a.has_segment(s);
    inter_sb(s: Segment, a: Rect) = a.meets_segment(s)?;
    inter_lb(l: Line, a: Rect) = a.meets_line(l)?;
    dist_pb(p: Point, a: Rect) = a.closest_to_point(p)?.1;
    dist_bp(a: Rect, p: Point) = a.closest_to_point(p)?.1;
    dist_sb(s: Segment, a: Rect) = a.closest_to_segment(s)?.1;
    dist_bs(a: Rect, s: Segment) = a.closest_to_segment(s)?.1;
    close_pb(p: Point, a: Rect) = near(a.closest_to_point(p)?);
    close_sb(s: Segment, a: Rect) = near(a.closest_to_segment(s)?);
}

// Paths. They are compared by the number of their points.
bodies! {
    path_area(p: Path) = p.area()?;
    path_length(p: Path) = p.length()?;
    path_npoints(p: Path) = count(p.points());
    path_isclosed(p: Path) = p.is_closed();
    path_isopen(p: Path) = !p.is_closed();
    path_close(p: Path) = p.with_end(true);
    path_open(p: Path) = p.with_end(false);
    path_poly(p: Path) = p.polygon()?;
    path_inter(p: Path, q: Path) = p.meets(q)?;
    path_distance(p: Path, q: Path) = p.distance(q)?;
    path_n_lt(p: Path, q: Path) = p.points().len() < q.points().len();
    path_n_le(p: Path, q: Path) = p.points().len() <= q.points().len();
    path_n_eq(p: Path, q: Path) = p.points().len() == q.points().len();
    path_n_ge(p: Path, q: Path) = p.points().len() >= q.points().len();
    path_n_gt(p: Path, q: Path) = p.points().len() > q.points().len();
    path_add(p: Path, q: Path) = p.joined(q)?;
    path_add_pt(p: Path, by: Point) = p.mapped(|point| point.plus(by))?;
    path_sub_pt(p: Path, by: Point) = p.mapped(|point| point.minus(by))?;
    path_mul_pt(p: Path, by: Point) = p.mapped(|point| point.times(by))?;
    path_div_pt(p: Path, by: Point) = p.mapped(|point| point.over(by))?;
    on_ppath(point: Point, p: Path) = p.has(point)?;
    path_contain_pt(p: Path, point: Point) = p.has(point)?;
    dist_ppath(point: Point, p: Path) = p.distance_to_point(point)?;
    dist_pathp(p: Path, point: Point) = p.distance_to_point(point)?;
}

// Polygons. Where they are is where the boxes around them are, exactly.
bodies! {
    poly_npoints(p: Polygon) = count(p.points());
    poly_center(p: Polygon) = p.mean()?.0;
    poly_box(p: Polygon) = *p.around();
    poly_path(p: Polygon) = p.path()?;
    poly_circle(p: Polygon) = p.circle()?;
    poly_same(p: Polygon, q: Polygon) = p.is(q);
    poly_overlap(p: Polygon, q: Polygon) = p.overlaps(q)?;
    poly_contain(p: Polygon, q: Polygon) = p.has(q)?;
    poly_contained(p: Polygon, q: Polygon) = q.has(p)?;
    poly_contain_pt(p: Polygon, point: Point) = p.has_point(point)?;
    pt_contained_poly(point: Point, p: Polygon) = p.has_point(point)?;
    poly_left(p: Polygon, q: Polygon) = p.around().high.x < q.around().low.x;
    poly_overleft(p: Polygon, q: Polygon) = p.around().high.x <= q.around().high.x;
    poly_right(p: Polygon, q: Polygon) = p.around().low.x > q.around().high.x;
    poly_overright(p: Polygon, q: Polygon) = p.around().low.x >= q.around().low.x;
    poly_below(p: Polygon, q: Polygon) = p.around().high.y < q.around().low.y;
    poly_overbelow(p: Polygon, q: Polygon) = p.around().high.y <= q.around().high.y;
    poly_above(p: Polygon, q: Polygon) = p.around().low.y > q.around().high.y;
    poly_overabove(p: Polygon, q: Polygon) = p.around().low.y >= q.around().low.y;
    poly_distance(p: Polygon, q: Polygon) = p.distance(q)?;
    dist_ppoly(point: Point, p: Polygon) = p.distance_to_point(point)?;
    dist_polyp(p: Polygon, point: Point) = p.distance_to_point(point)?;
}

// Circles.
bodies! {
    cr_circle(center: Point, radius: f64) = Circle { center: *center, radius: *radius };
    circle_area(c: Circle) = c.area()?;
    circle_diameter(c: Circle) = mul(c.radius, 2.0)?;
    circle_radius(c: Circle) = c.radius;
    circle_center(c: Circle) = c.center;
    circle_box(c: Circle) = c.rect()?;
    circle_poly(corners: i32, c: Circle) = c.polygon(*corners)?;
    circle_usual_poly(c: Circle) = c.usual_polygon()?;
    circle_add_pt(c: Circle, p: Point) = Circle { center: c.center.plus(p)?, radius: c.radius };
    circle_sub_pt(c: Circle, p: Point) = Circle { center: c.center.minus(p)?, radius: c.radius };
    circle_mul_pt(c: Circle, p: Point) = Circle { center: c.center.times(p)?, radius: mul(c.radius, p.length()?)? };
    circle_div_pt(c: Circle, p: Point) = Circle { center: c.center.over(p)?, radius: div(c.radius, p.length()?)? };
    circle_same(c: Circle, d: Circle) = c.is(d);
    circle_overlap(c: Circle, d: Circle) = c.overlaps(d)?;
    circle_contain(c: Circle, d: Circle) = c.has_circle(d)?;
    circle_contained(c: Circle, d: Circle) = d.has_circle(c)?;
    circle_contain_pt(c: Circle, p: Point) = c.has(p)?;
    pt_contained_circle(p: Point, c: Circle) = c.has(p)?;
    circle_left(c: Circle, d: Circle) = lt(c.right()?, d.left()?);
    circle_overleft(c: Circle, d: Circle) = le(c.right()?, d.right()?);
    circle_right(c: Circle, d: Circle) = gt(c.left()?, d.right()?);
    circle_overright(c: Circle, d: Circle) = ge(c.left()?, d.left()?);
    circle_below(c: Circle, d: Circle) = lt(c.top()?, d.bottom()?);
    circle_overbelow(c: Circle, d: Circle) = le(c.top()?, d.top()?);
    circle_above(c: Circle, d: Circle) = gt(c.bottom()?, d.top()?);
    circle_overabove(c: Circle, d: Circle) = ge(c.bottom()?, d.bottom()?);
    circle_lt(c: Circle, d: Circle) = lt(c.area()?, d.area()?);
    circle_le(c: Circle, d: Circle) = le(c.area()?, d.area()?);
    circle_eq(c: Circle, d: Circle) = eq(c.area()?, d.area()?);
    circle_ne(c: Circle, d: Circle) = ne(c.area()?, d.area()?);
    circle_ge(c: Circle, d: Circle) = ge(c.area()?, d.area()?);
    circle_gt(c: Circle, d: Circle) = gt(c.area()?, d.area()?);
    circle_distance(c: Circle, d: Circle) = c.distance(d)?;
    dist_pc(p: Point, c: Circle) = c.distance_to_point(p)?;
    dist_cpoint(c: Circle, p: Point) = c.distance_to_point(p)?;
    dist_cpoly(c: Circle, p: Polygon) = c.distance_to_polygon(p)?;
    dist_polyc(p: Polygon, c: Circle) = c.distance_to_polygon(p)?;
}
