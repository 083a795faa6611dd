//! Paths: points in a row, open or closed.

use super::geometry_number::{add, div, eq, less, mul, sub};
use super::geometry_polygon;
use super::geometry_rect::Rect;
use super::geometry_segment::{Point, Segment};
use super::geometry_text::too_many_points;
use crate::error::Result;
use clearway_base::{breath, memory};

/// A path (GEO-1).
#[derive(Clone, Debug)]
pub struct Path {
    closed: bool,
    points: Vec<Point>,
}

/// The segments between points in a row; `closed`: first the one from the last point to the first.
pub(super) fn segments(points: &[Point], closed: bool) -> impl Iterator<Item = Segment> + Clone + '_ {
    let closing = match (points.last(), points.first()) {
        (Some(last), Some(first)) if closed => Some(Segment::new(*last, *first)),
        _ => None,
    };
    closing.into_iter().chain(points.windows(2).map(|pair| Segment::new(pair[0], pair[1])))
}

/// The least distance between segments of two rows.
pub(super) fn least_distance(
    a: impl Iterator<Item = Segment>,
    b: impl Iterator<Item = Segment> + Clone,
) -> Result<Option<f64>> {
    let mut least: Option<f64> = None;
    for x in a {
        for y in b.clone() {
            breath::step(16)?;
            let (_, distance) = x.closest_to_segment(&y)?;
            if least.is_none_or(|least| less(distance, least)) {
                least = Some(distance);
            }
        }
    }
    Ok(least)
}

impl Path {
    /// The path of these points; none: there are none (GEO-1).
    pub fn new(points: Vec<Point>, closed: bool) -> Option<Path> {
        if points.is_empty() { None } else { Some(Path { closed, points }) }
    }

    /// Its points.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Whether its end is its beginning.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// The same path, closed or open.
    pub fn with_end(&self, closed: bool) -> Path {
        Path { closed, points: self.points.clone() }
    }

    /// The path of the points that `of` makes of its own.
    ///
    /// # Errors
    /// Those of `of`.
    pub fn mapped(&self, of: impl Fn(&Point) -> Result<Point>) -> Result<Path> {
        breath::step_bytes(16 * self.points.len())?;
        Ok(Path { closed: self.closed, points: self.points.iter().map(of).collect::<Result<_>>()? })
    }

    fn segments(&self) -> impl Iterator<Item = Segment> + Clone + '_ {
        segments(&self.points, self.closed)
    }

    fn around(&self) -> Rect {
        Rect::around(&self.points[0], &self.points)
    }

    /// Its length.
    ///
    /// # Errors
    /// 22003.
    pub fn length(&self) -> Result<f64> {
        breath::step_bytes(16 * self.points.len())?;
        self.segments().try_fold(0.0, |sum, segment| add(sum, segment.length()?))
    }

    /// The area within it; none: it is open.
    ///
    /// # Errors
    /// 22003.
    pub fn area(&self) -> Result<Option<f64>> {
        if !self.closed {
            return Ok(None);
        }
        breath::step_bytes(16 * self.points.len())?;
        let mut area = 0.0;
        for (at, point) in self.points.iter().enumerate() {
            let next = &self.points[(at + 1) % self.points.len()];
            area = add(area, mul(point.x, next.y)?)?;
            area = sub(area, mul(point.y, next.x)?)?;
        }
        div(area.abs(), 2.0).map(Some)
    }

    /// Whether both have a point in common.
    ///
    /// # Errors
    /// 22003, and the reason for which the statement must end.
    pub fn meets(&self, other: &Path) -> Result<bool> {
        if !self.around().overlaps(&other.around()) {
            return Ok(false);
        }
        for own in self.segments() {
            for others in other.segments() {
                breath::step(8)?;
                if own.meets(&others)?.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// How far apart both are; none: one of them has no segment.
    ///
    /// # Errors
    /// 22003, and the reason for which the statement must end.
    pub fn distance(&self, other: &Path) -> Result<Option<f64>> {
        least_distance(self.segments(), other.segments())
    }

    /// How far a point is from it; of a path without a segment 0.
    ///
    /// # Errors
    /// 22003.
    pub fn distance_to_point(&self, point: &Point) -> Result<f64> {
        breath::step_bytes(64 * self.points.len())?;
        let mut least: Option<f64> = None;
        for segment in self.segments() {
            let (_, distance) = segment.closest_to_point(point)?;
            if least.is_none_or(|least| less(distance, least)) {
                least = Some(distance);
            }
        }
        Ok(least.unwrap_or(0.0))
    }

    /// Whether a point is on an open one, or within a closed one.
    ///
    /// # Errors
    /// 22003.
    pub fn has(&self, point: &Point) -> Result<bool> {
        if self.closed {
            return Ok(geometry_polygon::place(point, &self.points)?.is_within());
        }
        breath::step_bytes(32 * self.points.len())?;
        for segment in self.segments() {
            let way = add(point.distance(&segment.ends[0])?, point.distance(&segment.ends[1])?)?;
            if eq(way, segment.length()?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// One open path behind the other; none: one of them is closed.
    ///
    /// # Errors
    /// 54000, 53200.
    pub fn joined(&self, other: &Path) -> Result<Option<Path>> {
        if self.closed || other.closed {
            return Ok(None);
        }
        let count = self.points.len() + other.points.len();
        too_many_points(count)?;
        memory::claim(count * size_of::<Point>())?;
        breath::step_bytes(16 * count)?;
        Ok(Some(Path { closed: false, points: [&self.points[..], &other.points[..]].concat() }))
    }
}
