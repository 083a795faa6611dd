//! Circles.

use super::geometry_number::{add, eq, le, mul, sub};
use super::geometry_polygon::Polygon;
use super::geometry_segment::Point;
use crate::error::Result;
use std::f64::consts::PI;

/// A circle.
#[derive(Clone, Copy, Debug)]
pub struct Circle {
    /// Its center.
    pub center: Point,
    /// Its radius; NaN is one.
    pub radius: f64,
}

impl Circle {
    /// Its area.
    ///
    /// # Errors
    /// 22003.
    pub fn area(&self) -> Result<f64> {
        mul(mul(self.radius, self.radius)?, PI)
    }

    /// Whether both have the same center and radius.
    pub fn is(&self, other: &Circle) -> bool {
        let radius = self.radius.is_nan() && other.radius.is_nan() || eq(self.radius, other.radius);
        radius && self.center.is(&other.center)
    }

    /// Whether both have a point in common.
    ///
    /// # Errors
    /// 22003.
    pub fn overlaps(&self, other: &Circle) -> Result<bool> {
        Ok(le(self.center.distance(&other.center)?, add(self.radius, other.radius)?))
    }

    /// Whether another one is within it.
    ///
    /// # Errors
    /// 22003.
    pub fn has_circle(&self, other: &Circle) -> Result<bool> {
        Ok(le(self.center.distance(&other.center)?, sub(self.radius, other.radius)?))
    }

    /// Whether a point is within it, exactly.
    ///
    /// # Errors
    /// 22003.
    pub fn has(&self, point: &Point) -> Result<bool> {
        Ok(self.center.distance(point)? <= self.radius)
    }

    /// Its right end.
    ///
    /// # Errors
    /// 22003.
    pub fn right(&self) -> Result<f64> {
        add(self.center.x, self.radius)
    }

    /// Its left end.
    ///
    /// # Errors
    /// 22003.
    pub fn left(&self) -> Result<f64> {
        sub(self.center.x, self.radius)
    }

    /// Its upper end.
    ///
    /// # Errors
    /// 22003.
    pub fn top(&self) -> Result<f64> {
        add(self.center.y, self.radius)
    }

    /// Its lower end.
    ///
    /// # Errors
    /// 22003.
    pub fn bottom(&self) -> Result<f64> {
        sub(self.center.y, self.radius)
    }

    /// How far another one is from it.
    ///
    /// # Errors
    /// 22003.
    pub fn distance(&self, other: &Circle) -> Result<f64> {
        Ok(positive(sub(self.center.distance(&other.center)?, add(self.radius, other.radius)?)?))
    }

    /// How far a point is from it.
    ///
    /// # Errors
    /// 22003.
    pub fn distance_to_point(&self, point: &Point) -> Result<f64> {
        Ok(positive(sub(point.distance(&self.center)?, self.radius)?))
    }

    /// How far a polygon is from it.
    ///
    /// # Errors
    /// 22003.
    pub fn distance_to_polygon(&self, polygon: &Polygon) -> Result<f64> {
        Ok(positive(sub(polygon.distance_to_point(&self.center)?, self.radius)?))
    }
}

/// The distance, or 0 for one within.
fn positive(distance: f64) -> f64 {
    if distance < 0.0 { 0.0 } else { distance }
}
