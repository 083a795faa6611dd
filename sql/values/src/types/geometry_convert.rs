//! Geometric values made of those of another type.

use super::geometry::{Circle, Geometry, Path, Polygon, Rect};
use super::geometry_number::{add, div, is_zero, mul, sub};
use super::geometry_segment::{Line, Point, Segment};
use super::geometry_text::too_many_points;
use crate::error::{Result, SqlError, code};
use crate::types::{Datum, Oid, oid};
use clearway_base::{breath, memory};
use std::f64::consts::PI;

/// How many corners the polygon of a circle has where no number is given.
const CORNERS: i32 = 12;

impl Line {
    /// The line through two points.
    ///
    /// # Errors
    /// 22023 if they are one; 22003.
    pub fn of_points(a: &Point, b: &Point) -> Result<Line> {
        if a.is(b) {
            let message = "invalid line specification: must be two distinct points";
            return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
        }
        Line::through(a, a.slope(b)?)
    }
}

impl Rect {
    /// A box that is a point.
    pub fn of_point(point: &Point) -> Rect {
        Rect { high: *point, low: *point }
    }

    /// Its diagonal.
    pub fn diagonal(&self) -> Segment {
        Segment::new(self.high, self.low)
    }

    /// The polygon with its corners.
    pub fn polygon(&self) -> Result<Polygon> {
        let (high, low) = (self.high, self.low);
        polygon(vec![low, Point::new(low.x, high.y), high, Point::new(high.x, low.y)])
    }

    /// The circle around it.
    ///
    /// # Errors
    /// 22003.
    pub fn circle(&self) -> Result<Circle> {
        let center = self.center()?;
        Ok(Circle { center, radius: center.distance(&self.high)? })
    }
}

impl Path {
    /// The area within it.
    ///
    /// # Errors
    /// 22023 for an open one.
    pub fn polygon(&self) -> Result<Polygon> {
        if !self.is_closed() {
            return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, "open path cannot be converted to polygon"));
        }
        polygon(self.points().to_vec())
    }
}

impl Polygon {
    /// Its border.
    pub fn path(&self) -> Result<Path> {
        Path::new(self.points().to_vec(), true).ok_or_else(no_points)
    }

    /// A circle of the mean distance of its corners from their mean.
    ///
    /// # Errors
    /// 22003.
    pub fn circle(&self) -> Result<Circle> {
        let (center, radius) = self.mean()?;
        Ok(Circle { center, radius })
    }
}

impl Circle {
    /// The square within it.
    ///
    /// # Errors
    /// 22003.
    pub fn rect(&self) -> Result<Rect> {
        let half = div(self.radius, 2f64.sqrt())?;
        let high = Point::new(add(self.center.x, half)?, add(self.center.y, half)?);
        Ok(Rect { high, low: Point::new(sub(self.center.x, half)?, sub(self.center.y, half)?) })
    }

    /// A polygon whose corners are on it.
    ///
    /// # Errors
    /// 0A000 without a radius, 22023 for less than two corners, 54000 and 53200 for too many, 22003.
    pub fn polygon(&self, corners: i32) -> Result<Polygon> {
        if is_zero(self.radius) {
            let message = "cannot convert circle with radius zero to polygon";
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message));
        }
        let count = usize::try_from(corners).ok().filter(|n| *n >= 2);
        let few = || SqlError::new(code::INVALID_PARAMETER_VALUE, "must request at least 2 points");
        let count = count.ok_or_else(few)?;
        too_many_points(count)?;
        memory::claim(count * size_of::<Point>())?;
        let step = div(2.0 * PI, f64::from(corners))?;
        let mut points = Vec::with_capacity(count);
        for at in 0..corners {
            breath::step(8)?;
            let angle = mul(step, f64::from(at))?;
            let x = sub(self.center.x, mul(self.radius, angle.cos())?)?;
            points.push(Point::new(x, add(self.center.y, mul(self.radius, angle.sin())?)?));
        }
        polygon(points)
    }

    /// The polygon that stands for it.
    ///
    /// # Errors
    /// As of [`Circle::polygon`].
    pub fn usual_polygon(&self) -> Result<Polygon> {
        self.polygon(CORNERS)
    }
}

fn no_points() -> SqlError {
    SqlError::internal("a polygon without points")
}

fn polygon(points: Vec<Point>) -> Result<Polygon> {
    Polygon::new(points).ok_or_else(no_points)
}

/// A cast between two of the types, which exists.
///
/// # Errors
/// Those of the conversion.
pub fn convert(value: &Geometry, to: Oid) -> Result<Datum> {
    use Geometry as G;
    Ok(match (value, to) {
        (G::Point(point), oid::BOX) => Rect::of_point(point).into(),
        (G::Segment(segment), oid::POINT) => segment.center()?.into(),
        (G::Path(path), oid::POLYGON) => path.polygon()?.into(),
        (G::Rect(rect), oid::POINT) => rect.center()?.into(),
        (G::Rect(rect), oid::LSEG) => rect.diagonal().into(),
        (G::Rect(rect), oid::POLYGON) => rect.polygon()?.into(),
        (G::Rect(rect), oid::CIRCLE) => rect.circle()?.into(),
        (G::Polygon(polygon), oid::POINT) => polygon.mean()?.0.into(),
        (G::Polygon(polygon), oid::PATH) => polygon.path()?.into(),
        (G::Polygon(polygon), oid::BOX) => (*polygon.around()).into(),
        (G::Polygon(polygon), oid::CIRCLE) => polygon.circle()?.into(),
        (G::Circle(circle), oid::POINT) => circle.center.into(),
        (G::Circle(circle), oid::BOX) => circle.rect()?.into(),
        (G::Circle(circle), oid::POLYGON) => circle.usual_polygon()?.into(),
        _ => return Err(SqlError::internal("a cast between geometric types that does not exist")),
    })
}
