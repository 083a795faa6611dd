//! The chart: rate by clients, a line per server with the spread of equal runs, the limit dotted.
//!
//! Both axes are logarithmic: a collapse by a factor of three hundred and a gain by a tenth are both visible.

use std::fmt::Write as _;

use super::grouped;
use crate::outcome::{Cell, Outcome, median};

/// Size, and where the plot lies in it, in user units.
const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 480.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 70.0;
/// Okabe and Ito's palette, told apart by colour-blind readers; the first is Clearway's.
const COLOURS: [&str; 5] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"];

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
    let lines: Vec<(&str, Vec<(u32, Cell)>)> = outcome
        .servers
        .iter()
        .map(|server| {
            let cells =
                outcome.clients.iter().filter_map(|&clients| Some((clients, outcome.cell(&server.name, clients)?)));
            (server.name.as_str(), cells.filter(|(_, cell)| cell.lowest > 0.0).collect())
        })
        .collect();
    let limit = outcome.limit.as_ref().and_then(|(name, rates)| Some((name.as_str(), median(rates)?)));
    let all = lines.iter().flat_map(|(_, cells)| cells).flat_map(|(_, cell)| [cell.lowest, cell.highest]);
    let all: Vec<f64> = all.chain(limit.map(|(_, rate)| rate)).filter(|rate| *rate > 0.0).collect();
    let low = all.iter().copied().fold(f64::INFINITY, f64::min);
    let high = all.iter().copied().fold(0.0, f64::max);
    let (low, high) = if all.is_empty() { (1.0, 10.0) } else { decades(low, high) };
    let ends = |f: fn(&[u32]) -> Option<&u32>| f(&outcome.clients).map_or(1.0, |&clients| f64::from(clients));
    let x = Axis { values: (ends(<[u32]>::first), ends(<[u32]>::last)), pixels: (LEFT, WIDTH - RIGHT) };
    let y = Axis { values: (low, high), pixels: (HEIGHT - BOTTOM, TOP) };
    let mut out = frame(outcome, &x, &y);
    if let Some((name, rate)) = limit {
        let at = y.at(rate);
        let _ = writeln!(
            out,
            r##"<line x1="{LEFT}" x2="{:.1}" y1="{at:.1}" y2="{at:.1}" stroke="#555" stroke-dasharray="2 4"/>
<text x="{:.1}" y="{:.1}" fill="#555">{} ({}/s)</text>"##,
            WIDTH - RIGHT,
            LEFT + 6.0,
            at - 5.0,
            escaped(name),
            grouped(rate)
        );
    }
    let mut labels: Vec<(f64, String, &str)> = Vec::new();
    for (at, (name, cells)) in lines.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        curve(&mut out, cells, colour, &x, &y);
        if let Some((_, cell)) = cells.last() {
            labels.push((y.at(cell.rate), format!("{name} {}", grouped(cell.rate)), colour));
        }
    }
    // Labels stand beside the ends of their lines, and never on each other.
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut free = 0.0f64;
    for (wanted, label, colour) in labels {
        let at = wanted.max(free);
        free = at + 18.0;
        let (x, y, label) = (WIDTH - RIGHT + 12.0, at + 4.0, escaped(&label));
        let _ = writeln!(out, r##"<text x="{x:.1}" y="{y:.1}" fill="{colour}" font-weight="bold">{label}</text>"##);
    }
    out + "</svg>\n"
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
<text x="{LEFT}" y="26" font-size="17" font-weight="bold">{}: {} by clients</text>
<text x="{LEFT}" y="44" fill="#555">median of {} runs of {} s; bars: lowest and highest run; both axes logarithmic</text>
"##,
        escaped(&outcome.title),
        escaped(&outcome.unit),
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
    for &clients in &outcome.clients {
        let at = x.at(f64::from(clients));
        let label = grouped(f64::from(clients));
        let _ = writeln!(
            out,
            r##"<line x1="{at:.1}" x2="{at:.1}" y1="{top}" y2="{bottom}" stroke="#eee"/><text x="{at:.1}" y="{:.1}" text-anchor="middle">{label}</text>"##,
            bottom + 20.0
        );
    }
    let _ = writeln!(out, r##"<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="#000"/>"##);
    let caption = outcome.servers.iter().map(|server| {
        let settings = server.settings.iter().filter(|(name, _)| name != "max_connections");
        let settings: Vec<String> = settings.map(|(name, value)| format!("{name} {value}")).collect();
        format!("{}: {}", server.name, settings.join(", "))
    });
    for (at, line) in caption.enumerate() {
        let y = bottom + 38.0 + 13.0 * at as f64;
        let _ = writeln!(out, r##"<text x="{left}" y="{y:.1}" font-size="11" fill="#555">{}</text>"##, escaped(&line));
    }
    out
}

/// A server's line, its points, and the spread of equal runs.
fn curve(out: &mut String, cells: &[(u32, Cell)], colour: &str, x: &Axis, y: &Axis) {
    let points: Vec<String> = cells
        .iter()
        .map(|(clients, cell)| format!("{:.1},{:.1}", x.at(f64::from(*clients)), y.at(cell.rate)))
        .collect();
    let _ = writeln!(
        out,
        r##"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2.5"/>"##,
        points.join(" ")
    );
    for (clients, cell) in cells {
        let (at, middle) = (x.at(f64::from(*clients)), y.at(cell.rate));
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
