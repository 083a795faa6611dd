//! Polygons: the area within a closed path.

use super::geometry_number::{add, div, ge, gt, is_zero, le, less, lt, mul, sub};
use super::geometry_path::{least_distance, segments};
use super::geometry_rect::Rect;
use super::geometry_segment::{Point, Segment};
use crate::error::Result;
use clearway_base::{breath, stack};

/// A polygon (GEO-1).
#[derive(Clone, Debug)]
pub struct Polygon {
    points: Vec<Point>,
    around: Rect,
}

/// Where a point is, seen from a polygon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Without.
    Outside,
    /// Within.
    Inside,
    /// On the border.
    Border,
}

impl Place {
    /// Within or on the border.
    pub fn is_within(self) -> bool {
        self != Place::Outside
    }
}

/// How the way from one point to the next crosses the positive half of the x axis: 2 where it crosses, 1 where it begins or ends there, with a sign
/// for up or down; 0 where it doesn't, or runs along. None: it passes through the origin.
fn crossing(to: &Point, from: &Point) -> Result<Option<i32>> {
    if is_zero(to.y) {
        if is_zero(to.x) {
            return Ok(None);
        }
        let right = gt(to.x, 0.0);
        return Ok(match is_zero(from.y) {
            true if right => gt(from.x, 0.0).then_some(0),
            true => lt(from.x, 0.0).then_some(0),
            false if right => Some(if lt(from.y, 0.0) { 1 } else { -1 }),
            false => Some(0),
        });
    }
    let sign = if gt(to.y, 0.0) { 1 } else { -1 };
    let signed = f64::from(sign);
    if is_zero(from.y) {
        return Ok(Some(if lt(from.x, 0.0) { 0 } else { sign }));
    }
    if gt(mul(signed, from.y)?, 0.0) {
        return Ok(Some(0));
    }
    if ge(to.x, 0.0) && gt(from.x, 0.0) {
        return Ok(Some(2 * sign));
    }
    if lt(to.x, 0.0) && le(from.x, 0.0) {
        return Ok(Some(0));
    }
    let side = sub(mul(sub(to.x, from.x)?, to.y)?, mul(sub(to.y, from.y)?, to.x)?)?;
    if is_zero(side) {
        return Ok(None);
    }
    Ok(Some(if gt(mul(signed, side)?, 0.0) { 0 } else { 2 * sign }))
}

/// Where a point is: the ways between the polygon's points are counted that cross a line from the point to the right.
///
/// # Errors
/// 22003.
pub fn place(point: &Point, points: &[Point]) -> Result<Place> {
    breath::step_bytes(32 * points.len())?;
    let [first, rest @ ..] = points else { return Ok(Place::Outside) };
    let first = first.minus(point)?;
    let (mut from, mut crossings) = (first, 0);
    for next in rest {
        let to = next.minus(point)?;
        let Some(count) = crossing(&to, &from)? else { return Ok(Place::Border) };
        crossings += count;
        from = to;
    }
    let Some(count) = crossing(&first, &from)? else { return Ok(Place::Border) };
    Ok(if crossings + count == 0 { Place::Outside } else { Place::Inside })
}

impl Polygon {
    /// The polygon with these corners; none: there are none (GEO-1).
    pub fn new(points: Vec<Point>) -> Option<Polygon> {
        let around = Rect::around(points.first()?, &points);
        Some(Polygon { points, around })
    }

    /// Its corners.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The smallest box around it.
    pub fn around(&self) -> &Rect {
        &self.around
    }

    /// Whether both have the same corners in the same order, or in the opposite one, from whichever corner on.
    pub fn is(&self, other: &Polygon) -> bool {
        let count = self.points.len();
        let follow = |from: usize, step: usize| {
            self.points.iter().enumerate().all(|(at, point)| point.is(&other.points[(from + at * step) % count]))
        };
        // A step of one less than all leads to the corner before.
        count == other.points.len() && (0..count).any(|from| follow(from, 1) || follow(from, count - 1))
    }

    /// Whether both have a point in common.
    ///
    /// # Errors
    /// 22003, and the reason for which the statement must end.
    pub fn overlaps(&self, other: &Polygon) -> Result<bool> {
        if !self.around.overlaps(&other.around) {
            return Ok(false);
        }
        for own in segments(&self.points, true) {
            for others in segments(&other.points, true) {
                breath::step(8)?;
                if own.meets(&others)?.is_some() {
                    return Ok(true);
                }
            }
        }
        let within = place(&self.points[0], &other.points)?.is_within();
        Ok(within || place(&other.points[0], &self.points)?.is_within())
    }

    /// Whether another one is within it.
    ///
    /// # Errors
    /// 22003, and the reason for which the statement must end.
    pub fn has(&self, other: &Polygon) -> Result<bool> {
        if !self.around.has_rect(&other.around) {
            return Ok(false);
        }
        for segment in segments(&other.points, true) {
            if !self.has_segment(&segment, 0)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a point is within it or on its border.
    ///
    /// # Errors
    /// 22003.
    pub fn has_point(&self, point: &Point) -> Result<bool> {
        Ok(place(point, &self.points)?.is_within())
    }

    /// The side that ends at a corner.
    fn side(&self, at: usize) -> Segment {
        let before = at.checked_sub(1).unwrap_or(self.points.len() - 1);
        Segment::new(self.points[before], self.points[at])
    }

    /// Whether a segment is within it; sides before `first` have been looked at.
    fn has_segment(&self, segment: &Segment, first: usize) -> Result<bool> {
        let [from, to] = &segment.ends;
        let mut is_crossed = false;
        for at in first..self.points.len() {
            breath::step(32)?;
            let side = self.side(at);
            let within = if side.has(from)? {
                if side.has(to)? {
                    return Ok(true);
                }
                self.has_rest((from, to), &side, at + 1)?
            } else if side.has(to)? {
                self.has_rest((to, from), &side, at + 1)?
            } else if let Some(point) = segment.meets(&side)? {
                is_crossed = true;
                self.has_part((from, &point), at + 1)? && self.has_part((to, &point), at + 1)?
            } else {
                true
            };
            if !within {
                return Ok(false);
            }
        }
        // Where a side crosses it, its parts have been looked at.
        Ok(is_crossed || place(&segment.center()?, &self.points)?.is_within())
    }

    fn has_part(&self, (from, to): (&Point, &Point), first: usize) -> Result<bool> {
        stack::deeper(|| self.has_segment(&Segment::new(*from, *to), first))
    }

    /// Of a segment whose one end is on a side and whose other end is not: whether what reaches beyond the side is within. True if it leaves the
    /// side: that is looked at later.
    fn has_rest(&self, (on, off): (&Point, &Point), side: &Segment, first: usize) -> Result<bool> {
        let segment = Segment::new(*on, *off);
        let [begin, end] = &side.ends;
        let beyond = if on.is(begin) {
            if segment.has(end)? { Some(end) } else { None }
        } else if on.is(end) {
            if segment.has(begin)? { Some(begin) } else { None }
        } else if segment.has(begin)? {
            Some(begin)
        } else if segment.has(end)? {
            Some(end)
        } else {
            None
        };
        beyond.map_or(Ok(true), |end| self.has_part((off, end), first))
    }

    /// How far apart both are.
    ///
    /// # Errors
    /// 22003, and the reason for which the statement must end.
    pub fn distance(&self, other: &Polygon) -> Result<Option<f64>> {
        if self.overlaps(other)? {
            return Ok(Some(0.0));
        }
        least_distance(segments(&self.points, true), segments(&other.points, true))
    }

    /// How far a point is from it.
    ///
    /// # Errors
    /// 22003.
    pub fn distance_to_point(&self, point: &Point) -> Result<f64> {
        if place(point, &self.points)?.is_within() {
            return Ok(0.0);
        }
        let closing = Segment::new(self.points[0], self.points[self.points.len() - 1]);
        let mut least = closing.closest_to_point(point)?.1;
        for side in segments(&self.points, false) {
            let (_, distance) = side.closest_to_point(point)?;
            if less(distance, least) {
                least = distance;
            }
        }
        Ok(least)
    }

    /// The mean of its corners, and their mean distance from that.
    ///
    /// # Errors
    /// 22003.
    pub fn mean(&self) -> Result<(Point, f64)> {
        breath::step_bytes(32 * self.points.len())?;
        let count = self.points.len() as f64;
        let sum = self.points.iter().try_fold(Point::new(0.0, 0.0), |sum, point| sum.plus(point))?;
        let center = Point::new(div(sum.x, count)?, div(sum.y, count)?);
        let distances = self.points.iter().try_fold(0.0, |sum, point| add(sum, point.distance(&center)?))?;
        Ok((center, div(distances, count)?))
    }
}
