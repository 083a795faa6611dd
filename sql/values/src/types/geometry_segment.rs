//! Points, lines and segments: their arithmetic, where they meet, and the closest point of one to another.

use super::geometry_number::{add, div, eq, hypot, is_zero, less, mul, same, sub};
use crate::error::Result;

/// A point.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The first coordinate.
    pub x: f64,
    /// The second one.
    pub y: f64,
}

/// The line `ax + by + c = 0`.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Line {
    pub a: f64,
    pub b: f64,
    pub c: f64,
}

/// A segment of a line.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Its two ends.
    pub ends: [Point; 2],
}

/// A point of one object, and how far it is from another; a distance that is NaN: there is no such point.
pub type Closest = (Point, f64);

impl Point {
    /// The point of two coordinates.
    pub fn new(x: f64, y: f64) -> Point {
        Point { x, y }
    }

    /// Both as vectors.
    ///
    /// # Errors
    /// 22003.
    pub fn plus(&self, other: &Point) -> Result<Point> {
        Ok(Point::new(add(self.x, other.x)?, add(self.y, other.y)?))
    }

    /// The other one as a vector, taken away.
    ///
    /// # Errors
    /// 22003.
    pub fn minus(&self, other: &Point) -> Result<Point> {
        Ok(Point::new(sub(self.x, other.x)?, sub(self.y, other.y)?))
    }

    /// Both as complex numbers.
    ///
    /// # Errors
    /// 22003.
    pub fn times(&self, by: &Point) -> Result<Point> {
        let x = sub(mul(self.x, by.x)?, mul(self.y, by.y)?)?;
        Ok(Point::new(x, add(mul(self.x, by.y)?, mul(self.y, by.x)?)?))
    }

    /// Both as complex numbers.
    ///
    /// # Errors
    /// 22003, 22012.
    pub fn over(&self, by: &Point) -> Result<Point> {
        let square = add(mul(by.x, by.x)?, mul(by.y, by.y)?)?;
        let x = div(add(mul(self.x, by.x)?, mul(self.y, by.y)?)?, square)?;
        Ok(Point::new(x, div(sub(mul(self.y, by.x)?, mul(self.x, by.y)?)?, square)?))
    }

    /// Whether both count as one point; one with a NaN is only itself.
    pub fn is(&self, other: &Point) -> bool {
        if [self.x, self.y, other.x, other.y].iter().any(|n| n.is_nan()) {
            return same(self.x, other.x) && same(self.y, other.y);
        }
        eq(self.x, other.x) && eq(self.y, other.y)
    }

    /// Its length as a vector.
    ///
    /// # Errors
    /// 22003.
    pub fn length(&self) -> Result<f64> {
        hypot(self.x, self.y)
    }

    /// How far apart they are.
    ///
    /// # Errors
    /// 22003.
    pub fn distance(&self, other: &Point) -> Result<f64> {
        hypot(sub(self.x, other.x)?, sub(self.y, other.y)?)
    }

    /// The slope of the line through both; of one point and itself: infinity.
    ///
    /// # Errors
    /// 22003.
    pub fn slope(&self, other: &Point) -> Result<f64> {
        if eq(self.x, other.x) {
            return Ok(f64::INFINITY);
        }
        if eq(self.y, other.y) {
            return Ok(0.0);
        }
        div(sub(self.y, other.y)?, sub(self.x, other.x)?)
    }

    /// The slope of a line that stands upright on the line through both.
    fn upright_slope(&self, other: &Point) -> Result<f64> {
        if eq(self.x, other.x) {
            return Ok(0.0);
        }
        if eq(self.y, other.y) {
            return Ok(f64::INFINITY);
        }
        div(sub(self.x, other.x)?, sub(other.y, self.y)?)
    }
}

/// A zero without a sign.
fn unsigned_zero(n: f64) -> f64 {
    if n == 0.0 { 0.0 } else { n }
}

impl Line {
    /// The line of a slope through a point.
    ///
    /// # Errors
    /// 22003.
    pub fn through(point: &Point, slope: f64) -> Result<Line> {
        Ok(if slope.is_infinite() {
            Line { a: -1.0, b: 0.0, c: point.x }
        } else if slope == 0.0 {
            Line { a: 0.0, b: -1.0, c: point.y }
        } else {
            Line { a: slope, b: -1.0, c: unsigned_zero(sub(point.y, mul(slope, point.x)?)?) }
        })
    }

    /// Whether it runs up and down.
    pub fn is_vertical(&self) -> bool {
        is_zero(self.b)
    }

    /// Whether it runs along the x axis.
    pub fn is_horizontal(&self) -> bool {
        is_zero(self.a)
    }

    /// Its slope.
    ///
    /// # Errors
    /// 22003.
    pub fn slope(&self) -> Result<f64> {
        match (is_zero(self.a), is_zero(self.b)) {
            (true, _) => Ok(0.0),
            (_, true) => Ok(f64::INFINITY),
            _ => div(self.a, -self.b),
        }
    }

    /// The slope of a line that stands upright on it.
    fn upright_slope(&self) -> Result<f64> {
        match (is_zero(self.a), is_zero(self.b)) {
            (true, _) => Ok(f64::INFINITY),
            (_, true) => Ok(0.0),
            _ => div(self.b, self.a),
        }
    }

    /// Whether it stands upright on another one.
    ///
    /// # Errors
    /// 22003.
    pub fn is_upright_on(&self, other: &Line) -> Result<bool> {
        if is_zero(self.a) {
            return Ok(is_zero(other.b));
        }
        if is_zero(other.a) {
            return Ok(is_zero(self.b));
        }
        if is_zero(self.b) || is_zero(other.b) {
            // Both `a` are not 0.
            return Ok(false);
        }
        Ok(eq(div(mul(self.a, other.a)?, mul(self.b, other.b)?)?, -1.0))
    }

    /// Whether both are the same line.
    ///
    /// # Errors
    /// 22003.
    pub fn is(&self, other: &Line) -> Result<bool> {
        let (own, others) = ([self.a, self.b, self.c], [other.a, other.b, other.c]);
        if own.iter().chain(&others).any(|n| n.is_nan()) {
            return Ok(own.iter().zip(others).all(|(x, y)| same(*x, y)));
        }
        // The first of the other one's numbers that is not 0 gives the ratio.
        let ratio = match own.iter().zip(others).find(|(_, y)| !is_zero(*y)) {
            Some((x, y)) => div(*x, y)?,
            None => 1.0,
        };
        for (x, y) in own.into_iter().zip(others) {
            if !eq(x, mul(ratio, y)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Where both meet; none: they are parallel.
    ///
    /// # Errors
    /// 22003.
    pub fn meets(&self, other: &Line) -> Result<Option<Point>> {
        let (sloped, rest) = if !is_zero(self.b) {
            (self, other)
        } else if !is_zero(other.b) {
            (other, self)
        } else {
            return Ok(None);
        };
        if eq(rest.a, mul(sloped.a, div(rest.b, sloped.b)?)?) {
            return Ok(None);
        }
        let above = sub(mul(sloped.b, rest.c)?, mul(rest.b, sloped.c)?)?;
        let x = div(above, sub(mul(sloped.a, rest.b)?, mul(rest.a, sloped.b)?)?)?;
        let y = div(-add(mul(sloped.a, x)?, sloped.c)?, sloped.b)?;
        Ok(Some(Point::new(unsigned_zero(x), unsigned_zero(y))))
    }

    /// How far apart both are.
    ///
    /// # Errors
    /// 22003.
    pub fn distance(&self, other: &Line) -> Result<f64> {
        if self.meets(other)?.is_some() {
            return Ok(0.0);
        }
        let counts = |n: f64| !is_zero(n) && !n.is_nan();
        let ratio = if counts(self.a) && counts(other.a) {
            div(self.a, other.a)?
        } else if counts(self.b) && counts(other.b) {
            div(self.b, other.b)?
        } else {
            1.0
        };
        div(sub(self.c, mul(ratio, other.c)?)?.abs(), hypot(self.a, self.b)?)
    }

    /// Whether a point is on it.
    ///
    /// # Errors
    /// 22003.
    pub fn has(&self, point: &Point) -> Result<bool> {
        Ok(is_zero(add(add(mul(self.a, point.x)?, mul(self.b, point.y)?)?, self.c)?))
    }

    /// Its closest point to another one.
    ///
    /// # Errors
    /// 22003.
    pub fn closest(&self, to: &Point) -> Result<Closest> {
        let upright = Line::through(to, self.upright_slope()?)?;
        match upright.meets(self)? {
            Some(point) => Ok((point, point.distance(to)?)),
            None => Ok((*to, f64::NAN)),
        }
    }
}

impl Segment {
    /// The segment between two points.
    pub fn new(from: Point, to: Point) -> Segment {
        Segment { ends: [from, to] }
    }

    /// Its length.
    ///
    /// # Errors
    /// 22003.
    pub fn length(&self) -> Result<f64> {
        self.ends[0].distance(&self.ends[1])
    }

    /// Its slope.
    ///
    /// # Errors
    /// 22003.
    pub fn slope(&self) -> Result<f64> {
        self.ends[0].slope(&self.ends[1])
    }

    /// Whether it stands upright on another one.
    ///
    /// # Errors
    /// 22003.
    pub fn is_upright_on(&self, other: &Segment) -> Result<bool> {
        Ok(eq(self.slope()?, other.ends[0].upright_slope(&other.ends[1])?))
    }

    /// Whether both have the same ends.
    pub fn is(&self, other: &Segment) -> bool {
        self.ends[0].is(&other.ends[0]) && self.ends[1].is(&other.ends[1])
    }

    /// The point in its middle.
    ///
    /// # Errors
    /// 22003.
    pub fn center(&self) -> Result<Point> {
        let [from, to] = &self.ends;
        Ok(Point::new(div(add(from.x, to.x)?, 2.0)?, div(add(from.y, to.y)?, 2.0)?))
    }

    fn line(&self) -> Result<Line> {
        Line::through(&self.ends[0], self.slope()?)
    }

    /// Whether a point is on it: the way over the point is no longer.
    ///
    /// # Errors
    /// 22003.
    pub fn has(&self, point: &Point) -> Result<bool> {
        Ok(eq(point.distance(&self.ends[0])? + point.distance(&self.ends[1])?, self.length()?))
    }

    /// Where it meets a line.
    ///
    /// # Errors
    /// 22003.
    pub fn meets_line(&self, line: &Line) -> Result<Option<Point>> {
        let Some(point) = self.line()?.meets(line)? else { return Ok(None) };
        if !self.has(&point)? {
            return Ok(None);
        }
        // The calculated point is as good as an end, and less exact.
        Ok(Some(*self.ends.iter().find(|end| end.is(&point)).unwrap_or(&point)))
    }

    /// Where it meets another one.
    ///
    /// # Errors
    /// 22003.
    pub fn meets(&self, other: &Segment) -> Result<Option<Point>> {
        match self.meets_line(&other.line()?)? {
            Some(point) if other.has(&point)? => Ok(Some(point)),
            _ => Ok(None),
        }
    }

    /// Its closest point to a line. If both ends are as far, the second one.
    ///
    /// # Errors
    /// 22003.
    pub fn closest_to_line(&self, line: &Line) -> Result<Closest> {
        if let Some(point) = self.meets_line(line)? {
            return Ok((point, 0.0));
        }
        let (first, second) = (line.closest(&self.ends[0])?.1, line.closest(&self.ends[1])?.1);
        Ok(if first < second { (self.ends[0], first) } else { (self.ends[1], second) })
    }

    /// Its closest point to another point.
    ///
    /// # Errors
    /// 22003.
    pub fn closest_to_point(&self, to: &Point) -> Result<Closest> {
        let upright = Line::through(to, self.ends[0].upright_slope(&self.ends[1])?)?;
        let (point, _) = self.closest_to_line(&upright)?;
        Ok((point, point.distance(to)?))
    }

    /// Its closest point to another segment.
    ///
    /// # Errors
    /// 22003.
    pub fn closest_to_segment(&self, to: &Segment) -> Result<Closest> {
        if let Some(point) = self.meets(to)? {
            return Ok((point, 0.0));
        }
        let mut found = self.closest_to_point(&to.ends[0])?;
        let mut offer = |other: Closest| {
            if less(other.1, found.1) {
                found = other;
            }
        };
        offer(self.closest_to_point(&to.ends[1])?);
        for end in self.ends {
            offer((end, to.closest_to_point(&end)?.1));
        }
        Ok(found)
    }
}
