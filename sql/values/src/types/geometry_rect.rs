//! Boxes: rectangles whose sides run along the axes.

use super::geometry_number::{add, div, ge, le, less, max, min, mul, sub};
use super::geometry_segment::{Closest, Line, Point, Segment};
use crate::error::Result;

/// A box.
#[derive(Clone, Copy, Debug)]
pub struct Rect {
    /// The upper right corner.
    pub high: Point,
    /// The lower left corner.
    pub low: Point,
}

impl Rect {
    /// The box between two opposite corners.
    pub fn new(a: &Point, b: &Point) -> Rect {
        let sorted = |a: f64, b: f64| if less(b, a) { (a, b) } else { (b, a) };
        let ((right, left), (upper, lower)) = (sorted(a.x, b.x), sorted(a.y, b.y));
        Rect { high: Point::new(right, upper), low: Point::new(left, lower) }
    }

    /// The box whose corners these are, as they are written: each coordinate goes up only where it has to.
    pub fn ordered(mut high: Point, mut low: Point) -> Rect {
        if less(high.x, low.x) {
            std::mem::swap(&mut high.x, &mut low.x);
        }
        if less(high.y, low.y) {
            std::mem::swap(&mut high.y, &mut low.y);
        }
        Rect { high, low }
    }

    /// The smallest box around points.
    pub fn around(first: &Point, rest: &[Point]) -> Rect {
        let mut out = Rect { high: *first, low: *first };
        for point in rest {
            out.high = Point::new(max(point.x, out.high.x), max(point.y, out.high.y));
            out.low = Point::new(min(point.x, out.low.x), min(point.y, out.low.y));
        }
        out
    }

    /// Its width.
    ///
    /// # Errors
    /// 22003.
    pub fn width(&self) -> Result<f64> {
        sub(self.high.x, self.low.x)
    }

    /// Its height.
    ///
    /// # Errors
    /// 22003.
    pub fn height(&self) -> Result<f64> {
        sub(self.high.y, self.low.y)
    }

    /// Its area.
    ///
    /// # Errors
    /// 22003.
    pub fn area(&self) -> Result<f64> {
        mul(self.width()?, self.height()?)
    }

    /// The point in its middle.
    ///
    /// # Errors
    /// 22003.
    pub fn center(&self) -> Result<Point> {
        let x = div(add(self.high.x, self.low.x)?, 2.0)?;
        Ok(Point::new(x, div(add(self.high.y, self.low.y)?, 2.0)?))
    }

    /// Whether both have the same corners.
    pub fn is(&self, other: &Rect) -> bool {
        self.high.is(&other.high) && self.low.is(&other.low)
    }

    /// Whether both have a point in common.
    pub fn overlaps(&self, other: &Rect) -> bool {
        le(self.low.x, other.high.x)
            && le(other.low.x, self.high.x)
            && le(self.low.y, other.high.y)
            && le(other.low.y, self.high.y)
    }

    /// What both have in common.
    pub fn common(&self, other: &Rect) -> Option<Rect> {
        self.overlaps(other).then(|| Rect {
            high: Point::new(min(self.high.x, other.high.x), min(self.high.y, other.high.y)),
            low: Point::new(max(self.low.x, other.low.x), max(self.low.y, other.low.y)),
        })
    }

    /// The smallest box around both.
    pub fn around_both(&self, other: &Rect) -> Rect {
        Rect {
            high: Point::new(max(self.high.x, other.high.x), max(self.high.y, other.high.y)),
            low: Point::new(min(self.low.x, other.low.x), min(self.low.y, other.low.y)),
        }
    }

    /// Whether another one is in it or on its border.
    pub fn has_rect(&self, other: &Rect) -> bool {
        ge(self.high.x, other.high.x)
            && le(self.low.x, other.low.x)
            && ge(self.high.y, other.high.y)
            && le(self.low.y, other.low.y)
    }

    /// Whether a point is in it or on its border, exactly.
    pub fn has(&self, point: &Point) -> bool {
        self.high.x >= point.x && self.low.x <= point.x && self.high.y >= point.y && self.low.y <= point.y
    }

    /// Whether a segment is in it or on its border, exactly.
    pub fn has_segment(&self, segment: &Segment) -> bool {
        segment.ends.iter().all(|end| self.has(end))
    }

    /// Its sides.
    fn sides(&self) -> [Segment; 4] {
        let (upper_left, lower_right) = (Point::new(self.low.x, self.high.y), Point::new(self.high.x, self.low.y));
        [
            Segment::new(self.low, upper_left),
            Segment::new(self.high, upper_left),
            Segment::new(self.low, lower_right),
            Segment::new(self.high, lower_right),
        ]
    }

    /// Whether a segment has a point in common with it.
    ///
    /// # Errors
    /// 22003.
    pub fn meets_segment(&self, segment: &Segment) -> Result<bool> {
        let [from, to] = &segment.ends;
        if !Rect::new(from, to).overlaps(self) {
            return Ok(false);
        }
        if self.has(from) || self.has(to) {
            return Ok(true);
        }
        for side in self.sides() {
            if side.meets(segment)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a line has a point in common with it.
    ///
    /// # Errors
    /// 22003.
    pub fn meets_line(&self, line: &Line) -> Result<bool> {
        for side in self.sides() {
            if side.meets_line(line)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn closest_side(&self, closest: impl Fn(&Segment) -> Result<Closest>) -> Result<Closest> {
        let [first, rest @ ..] = self.sides();
        let mut found = closest(&first)?;
        for side in rest {
            let other = closest(&side)?;
            if less(other.1, found.1) {
                found = other;
            }
        }
        Ok(found)
    }

    /// Its closest point to another point.
    ///
    /// # Errors
    /// 22003.
    pub fn closest_to_point(&self, to: &Point) -> Result<Closest> {
        if self.has(to) {
            return Ok((*to, 0.0));
        }
        self.closest_side(|side| side.closest_to_point(to))
    }

    /// Its closest point to a segment; of one that meets it, the segment's closest point to its middle.
    ///
    /// # Errors
    /// 22003.
    pub fn closest_to_segment(&self, to: &Segment) -> Result<Closest> {
        if self.meets_segment(to)? {
            return Ok((to.closest_to_point(&self.center()?)?.0, 0.0));
        }
        self.closest_side(|side| side.closest_to_segment(to))
    }
}
