//! The text form of geometric values.
//!
//! A point is `(x,y)`, and its parentheses may be left out; what has several points has them one behind the other, in parentheses or brackets.

use super::geometry::{Circle, Geometry, Path, Polygon, Rect};
use super::geometry_number::is_zero;
use super::geometry_segment::{Line, Point, Segment};
use crate::error::{Result, SqlError, code};
use crate::types::text::invalid;
use crate::types::{Datum, Oid, facts, float, oid};
use clearway_base::{breath, memory};

/// Bytes of points that fit a value.
const BYTES_MAX: usize = 0x3fff_ffff;

/// 54000 for more points than a value has.
pub(super) fn too_many_points(count: usize) -> Result<()> {
    if count > BYTES_MAX / size_of::<Point>() {
        return Err(SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, "too many points requested"));
    }
    Ok(())
}

/// Reads a value.
struct Reader<'a> {
    /// The type's name.
    ty: &'static str,
    text: &'a str,
    rest: &'a [u8],
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0b' | b'\x0c')
}

/// The length of the number that a text begins with, as C's strtod finds it; 0: of none.
fn number_length(text: &[u8]) -> usize {
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let body = &text[sign..];
    for word in ["infinity", "inf", "nan"] {
        if body.get(..word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word.as_bytes())) {
            return sign + word.len();
        }
    }
    let digits = |from: usize| body[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let whole = digits(0);
    let mut end = whole;
    if body.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        if whole + fraction == 0 {
            return 0;
        }
        end += 1 + fraction;
    }
    if end == 0 {
        return 0;
    }
    if matches!(body.get(end), Some(b'e' | b'E')) {
        let mark = end + 1 + usize::from(matches!(body.get(end + 1), Some(b'+' | b'-')));
        if body.get(mark).is_some_and(u8::is_ascii_digit) {
            end = mark + digits(mark);
        }
    }
    sign + end
}

impl<'a> Reader<'a> {
    fn new(ty: &'static str, text: &'a str) -> Reader<'a> {
        let mut reader = Reader { ty, text, rest: text.as_bytes() };
        reader.blanks();
        reader
    }

    fn invalid(&self) -> SqlError {
        invalid(self.ty, self.text)
    }

    fn blanks(&mut self) {
        while self.rest.first().is_some_and(is_blank) {
            self.rest = &self.rest[1..];
        }
    }

    fn next_is(&self, byte: u8) -> bool {
        self.rest.first() == Some(&byte)
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.next_is(byte);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.eat(byte) { Ok(()) } else { Err(self.invalid()) }
    }

    fn end(&self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.invalid()) }
    }

    /// Whether no other parenthesis opens behind the one at the cursor.
    fn opens_last(&self) -> bool {
        self.rest.iter().rposition(|b| *b == b'(') == Some(0)
    }

    /// What follows the byte at the cursor, without blanks.
    fn behind(&self) -> &'a [u8] {
        let after = self.rest.get(1..).unwrap_or(&[]);
        &after[after.iter().take_while(|b| is_blank(b)).count()..]
    }

    fn number(&mut self) -> Result<f64> {
        self.blanks();
        let (found, rest) = self.rest.split_at(number_length(self.rest));
        let found = std::str::from_utf8(found).map_err(|_| self.invalid())?;
        let value: f64 = found.parse().map_err(|_| self.invalid())?;
        let digits = found.bytes().take_while(|b| !matches!(b, b'e' | b'E'));
        let is_finite = digits.clone().all(|b| !b.is_ascii_alphabetic());
        let lost =
            is_finite && (value.is_infinite() || value == 0.0 && digits.into_iter().any(|b| matches!(b, b'1'..=b'9')));
        if lost {
            let message = format!("\"{found}\" is out of range for type double precision");
            return Err(SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, message));
        }
        self.rest = rest;
        self.blanks();
        Ok(value)
    }

    fn point(&mut self) -> Result<Point> {
        self.blanks();
        let enclosed = self.eat(b'(');
        let x = self.number()?;
        self.expect(b',')?;
        let y = self.number()?;
        if enclosed {
            self.expect(b')')?;
            self.blanks();
        }
        Ok(Point { x, y })
    }

    /// So many points, and whether they stand in brackets.
    fn points(&mut self, count: usize, may_be_open: bool) -> Result<(Vec<Point>, bool)> {
        too_many_points(count)?;
        memory::claim(count * size_of::<Point>())?;
        self.blanks();
        let open = self.next_is(b'[');
        if open && !may_be_open {
            return Err(self.invalid());
        }
        let mut depth = 0;
        if self.eat(b'[') {
            depth = 1;
        } else if self.next_is(b'(') && (self.behind().first() == Some(&b'(') || self.opens_last()) {
            depth = 1;
            self.rest = self.behind();
        }
        let mut points = Vec::with_capacity(count);
        for _ in 0..count {
            breath::step(8)?;
            points.push(self.point()?);
            self.eat(b',');
        }
        if depth > 0 {
            let closes = self.eat(b')') || open && self.eat(b']');
            if !closes {
                return Err(self.invalid());
            }
            self.blanks();
        }
        Ok((points, open))
    }

    /// Two points and nothing else.
    fn pair(&mut self, may_be_open: bool) -> Result<[Point; 2]> {
        let (points, _) = self.points(2, may_be_open)?;
        self.end()?;
        points.try_into().map_err(|_| self.invalid())
    }

    /// How many points the commas say.
    fn count(&self) -> Result<usize> {
        breath::step_bytes(self.rest.len())?;
        match self.rest.iter().filter(|b| **b == b',').count() {
            commas if commas % 2 == 1 => Ok(commas.div_ceil(2)),
            _ => Err(self.invalid()),
        }
    }

    fn line(&mut self) -> Result<Line> {
        let bad = |what: &str| {
            SqlError::new(code::INVALID_TEXT_REPRESENTATION, format!("invalid line specification: {what}"))
        };
        if !self.eat(b'{') {
            let [a, b] = self.pair(true)?;
            if a.is(&b) {
                return Err(bad("must be two distinct points"));
            }
            return Line::through(&a, a.slope(&b)?);
        }
        let a = self.number()?;
        self.expect(b',')?;
        let b = self.number()?;
        self.expect(b',')?;
        let c = self.number()?;
        self.expect(b'}')?;
        self.blanks();
        self.end()?;
        if is_zero(a) && is_zero(b) {
            return Err(bad("A and B cannot both be zero"));
        }
        Ok(Line { a, b, c })
    }

    fn path(&mut self) -> Result<Path> {
        let count = self.count()?;
        let enclosed = self.next_is(b'(') && self.opens_last();
        if enclosed {
            self.eat(b'(');
        }
        let (points, open) = self.points(count, true)?;
        if enclosed {
            self.expect(b')')?;
            self.blanks();
        }
        self.end()?;
        Path::new(points, !open).ok_or_else(|| self.invalid())
    }

    fn polygon(&mut self) -> Result<Polygon> {
        let (points, _) = self.points(self.count()?, false)?;
        self.end()?;
        Polygon::new(points).ok_or_else(|| self.invalid())
    }

    fn circle(&mut self) -> Result<Circle> {
        let angled = self.next_is(b'<');
        let enclosed = angled || self.next_is(b'(') && self.behind().first() == Some(&b'(');
        if angled {
            self.eat(b'<');
        } else if enclosed {
            self.rest = self.behind();
        }
        let center = self.point()?;
        self.eat(b',');
        let radius = self.number()?;
        if radius < 0.0 {
            return Err(self.invalid());
        }
        if enclosed {
            if !self.eat(b')') && !self.eat(b'>') {
                return Err(self.invalid());
            }
            self.blanks();
        }
        self.end()?;
        Ok(Circle { center, radius })
    }
}

/// Reads a value of one of the types.
///
/// # Errors
/// 22P02, 22003.
pub fn parse(ty: Oid, text: &str) -> Result<Datum> {
    let mut reader = Reader::new(facts(ty).map_or("???", |f| f.name), text);
    Ok(match ty {
        oid::POINT => {
            let point = reader.point()?;
            reader.end()?;
            point.into()
        }
        oid::LINE => reader.line()?.into(),
        oid::LSEG => Segment { ends: reader.pair(true)? }.into(),
        oid::BOX => {
            let [high, low] = reader.pair(false)?;
            Rect::ordered(high, low).into()
        }
        oid::PATH => reader.path()?.into(),
        oid::POLYGON => reader.polygon()?.into(),
        oid::CIRCLE => reader.circle()?.into(),
        _ => return Err(SqlError::internal("a type without a geometry")),
    })
}

/// Writes a value, its numbers by `extra_float_digits`.
pub fn format(value: &Geometry, digits: i8) -> String {
    let number = |n: f64| float::shown8(n, digits);
    let point = |p: &Point| format!("({},{})", number(p.x), number(p.y));
    let points = |list: &[Point]| list.iter().map(point).collect::<Vec<_>>().join(",");
    match value {
        Geometry::Point(p) => point(p),
        Geometry::Line(l) => format!("{{{},{},{}}}", number(l.a), number(l.b), number(l.c)),
        Geometry::Segment(s) => format!("[{}]", points(&s.ends)),
        Geometry::Rect(r) => points(&[r.high, r.low]),
        Geometry::Path(p) if p.is_closed() => format!("({})", points(p.points())),
        Geometry::Path(p) => format!("[{}]", points(p.points())),
        Geometry::Polygon(p) => format!("({})", points(p.points())),
        Geometry::Circle(c) => format!("<{},{}>", point(&c.center), number(c.radius)),
    }
}
