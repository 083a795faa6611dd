//! The chart: a line for each server and variant with the spread of its repeated runs, and dotted lines for the limits.
//!
//! Both axes are logarithmic: a collapse by a factor of three hundred and a gain by a tenth are both visible.

use std::fmt::Write as _;

use super::grouped;
use crate::outcome::{Cell, Outcome, ServerFacts, label, median};

/// Size, and where the plot lies in it, in user units.
const WIDTH: f64 = 920.0;
const HEIGHT: f64 = 560.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 250.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 130.0;
/// Okabe and Ito's palette, told apart by colour-blind readers; the first is Clearway's.
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#e69f00", "#009e73", "#56b4e9", "#cc79a7", "#000000"];
/// How the lines of the variants are dashed.
const DASHES: [&str; 3] = ["", "7 4", "2 3"];
/// Of limits.
const GREY: &str = "#777";

/// A line of the chart.
struct Line<'a> {
    server: &'a ServerFacts,
    variant: usize,
    colour: &'static str,
    label: String,
    cells: Vec<(u32, Cell)>,
}

/// A logarithmic axis from a value to another, laid over pixels.
struct Axis {
    values: (f64, f64),
    pixels: (f64, f64),
}

impl Axis {
    fn at(&self, value: f64) -> f64 {
        let (low, high) = (self.values.0.ln(), self.values.1.ln());
        let share = if high > low { (value.ln() - low) / (high - low) } else { 0.5 };
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }
}

/// The chart as an SVG document.
pub fn svg(outcome: &Outcome) -> String {
    let lines = lines(outcome);
    let drawn = outcome.limit.as_ref().filter(|limit| limit.drawn);
    let limit = drawn.and_then(|limit| Some((limit.name.as_str(), median(&limit.rates)?)));
    let all = lines.iter().flat_map(|line| &line.cells).flat_map(|(_, cell)| [cell.lowest, cell.highest]);
    let all: Vec<f64> = all.chain(limit.map(|(_, rate)| rate)).filter(|rate| *rate > 0.0).collect();
    let low = all.iter().copied().fold(f64::INFINITY, f64::min);
    let high = all.iter().copied().fold(0.0, f64::max);
    let (low, high) = if all.is_empty() { (1.0, 10.0) } else { decades(low, high) };
    let ends = |f: fn(&[u32]) -> Option<&u32>| f(&outcome.points).map_or(1.0, |&x| f64::from(x));
    let x = Axis { values: (ends(<[u32]>::first), ends(<[u32]>::last)), pixels: (LEFT, WIDTH - RIGHT) };
    let y = Axis { values: (low, high), pixels: (HEIGHT - BOTTOM, TOP) };
    let mut out = frame(outcome, &x, &y);
    if let Some((name, rate)) = limit {
        let at = y.at(rate);
        let _ = writeln!(
            out,
            r##"<line x1="{LEFT}" x2="{:.1}" y1="{at:.1}" y2="{at:.1}" stroke="{GREY}" stroke-dasharray="2 4"/>
<text x="{:.1}" y="{:.1}" fill="{GREY}">{} ({}/s)</text>"##,
            WIDTH - RIGHT,
            LEFT + 6.0,
            at - 5.0,
            escaped(name),
            grouped(rate)
        );
    }
    let mut labels: Vec<(f64, String, &str)> = Vec::new();
    for line in &lines {
        curve(&mut out, line, &x, &y);
        if let Some((_, cell)) = line.cells.last() {
            labels.push((y.at(cell.value), format!("{} {}", line.label, grouped(cell.value)), line.colour));
        }
    }
    // Labels stand beside the ends of their lines, and never on each other.
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let last = HEIGHT - BOTTOM;
    let mut free = 0.0f64;
    for (at, (wanted, label, colour)) in labels.iter().enumerate() {
        let room_below = last - (labels.len() - 1 - at) as f64 * 16.0;
        let here = wanted.min(room_below).max(free);
        free = here + 16.0;
        let (x, y, label) = (WIDTH - RIGHT + 12.0, here + 4.0, escaped(label));
        let _ = writeln!(out, r##"<text x="{x:.1}" y="{y:.1}" fill="{colour}" font-weight="bold">{label}</text>"##);
    }
    out + "</svg>\n"
}

/// Every server's lines, its variants in one colour.
fn lines(outcome: &Outcome) -> Vec<Line<'_>> {
    let mut all = Vec::new();
    for (at, server) in outcome.servers.iter().enumerate() {
        for (variant, name) in outcome.variants.iter().enumerate() {
            let cells = outcome.points.iter().filter_map(|&x| Some((x, outcome.cell(&server.name, name, x)?)));
            all.push(Line {
                server,
                variant,
                colour: if server.is_limit { GREY } else { COLOURS[at % COLOURS.len()] },
                label: label(&server.name, name),
                cells: cells.filter(|(_, cell)| cell.lowest > 0.0).collect(),
            });
        }
    }
    all
}

/// One, two or five times a power of ten below and above.
fn decades(low: f64, high: f64) -> (f64, f64) {
    let below = 10f64.powf(low.log10().floor());
    let above = 10f64.powf(high.log10().floor());
    let floor = [5.0, 2.0, 1.0].map(|step| step * below).into_iter().find(|&value| value <= low).unwrap_or(below);
    let ceiling = [1.0, 2.0, 5.0, 10.0].map(|step| step * above).into_iter().find(|&value| value >= high);
    let ceiling = ceiling.unwrap_or(above * 10.0);
    if ceiling / floor < 10.0 { (floor / 2.0, ceiling) } else { (floor, ceiling) }
}

/// Background, heading, axes, grid, caption.
fn frame(outcome: &Outcome, x: &Axis, y: &Axis) -> String {
    let mut out = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">
<rect width="100%" height="100%" fill="#fff"/>
<text x="{LEFT}" y="26" font-size="17" font-weight="bold">{}: {} by {}</text>
<text x="{LEFT}" y="44" fill="#555">median of {} runs of {} s; bars: lowest and highest run; both axes logarithmic</text>
"##,
        escaped(&outcome.title),
        escaped(&outcome.unit),
        escaped(&outcome.axis),
        outcome.repeats,
        outcome.seconds
    );
    let (left, right, top, bottom) = (LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM);
    let mut power = 10f64.powf(y.values.0.log10().floor());
    while power <= y.values.1 {
        for step in [1.0, 2.0, 5.0] {
            let value = power * step;
            if value < y.values.0 * 0.999 || value > y.values.1 * 1.001 {
                continue;
            }
            let at = y.at(value);
            let shade = if step == 1.0 { "#ccc" } else { "#eee" };
            let _ = writeln!(
                out,
                r##"<line x1="{left}" x2="{right}" y1="{at:.1}" y2="{at:.1}" stroke="{shade}"/><text x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"##,
                left - 8.0,
                at + 4.0,
                grouped(value)
            );
        }
        power *= 10.0;
    }
    for &point in &outcome.points {
        let at = x.at(f64::from(point));
        let label = grouped(f64::from(point));
        let _ = writeln!(
            out,
            r##"<line x1="{at:.1}" x2="{at:.1}" y1="{top}" y2="{bottom}" stroke="#eee"/><text x="{at:.1}" y="{:.1}" text-anchor="middle">{label}</text>"##,
            bottom + 20.0
        );
    }
    let _ = writeln!(out, r##"<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="#000"/>"##);
    for (at, line) in captions(outcome).iter().enumerate() {
        let y = bottom + 38.0 + 13.0 * at as f64;
        let _ = writeln!(out, r##"<text x="{left}" y="{y:.1}" font-size="11" fill="#555">{}</text>"##, escaped(line));
    }
    out
}

/// Isolation, durability and what else was set, a line per server.
fn captions(outcome: &Outcome) -> Vec<String> {
    let peers = outcome.servers.iter().filter(|server| !server.is_limit);
    let caption = peers.map(|server| {
        // Sizes stand on the page; here is room for what makes figures comparable.
        let size = |name: &str| name.starts_with("max_") || name.ends_with("_size") || name.ends_with("_buffers");
        let settings = server.settings.iter().filter(|(name, _)| !size(name) && name != "log_bin");
        let settings: Vec<String> = settings.map(|(name, value)| format!("{name} {value}")).collect();
        format!("{}: {}", server.name, settings.join(", "))
    });
    caption.collect()
}

/// A line, its points, and the spread of equal runs.
fn curve(out: &mut String, line: &Line<'_>, x: &Axis, y: &Axis) {
    let (cells, colour) = (&line.cells, line.colour);
    let points: Vec<String> =
        cells.iter().map(|(at, cell)| format!("{:.1},{:.1}", x.at(f64::from(*at)), y.at(cell.value))).collect();
    let dashes = if line.server.is_limit { "2 4" } else { DASHES[line.variant % DASHES.len()] };
    let _ = writeln!(
        out,
        r##"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2.5" stroke-dasharray="{dashes}"/>"##,
        points.join(" ")
    );
    for (at, cell) in cells {
        let (at, middle) = (x.at(f64::from(*at)), y.at(cell.value));
        let (low, high) = (y.at(cell.lowest), y.at(cell.highest));
        let _ = writeln!(
            out,
            r##"<path d="M{at:.1} {low:.1}V{high:.1}M{:.1} {low:.1}h8M{:.1} {high:.1}h8" stroke="{colour}" fill="none"/><circle cx="{at:.1}" cy="{middle:.1}" r="4" fill="{colour}"/>"##,
            at - 4.0,
            at - 4.0
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::tests::example;

    #[test]
    fn axes_hold_everything() {
        for (low, high) in [(298.0, 97_000.0), (5.0, 5.0), (1000.0, 1000.0), (0.3, 0.9), (14_000.0, 16_000.0)] {
            let (floor, ceiling) = decades(low, high);
            assert!(floor <= low && ceiling >= high && ceiling > floor, "{low} {high}: {floor} {ceiling}");
        }
    }

    #[test]
    fn every_coordinate_lies_in_the_picture() {
        let svg = svg(&example());
        assert_eq!(svg.matches("<circle").count(), 4);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        for (name, most) in [("cx=\"", WIDTH), ("cy=\"", HEIGHT)] {
            for rest in svg.split(name).skip(1) {
                let value: f64 = rest.split('"').next().expect("a value").parse().expect("a number");
                assert!((0.0..=most).contains(&value), "{name}{value}");
            }
        }
    }
}
