//! The table of an outcome, as text for a terminal and as Markdown for a page.

use super::grouped;
use crate::outcome::{Cell, Outcome, label, median};

/// A row's cells.
type Row = [String; 13];

fn headings(outcome: &Outcome, group: usize) -> Row {
    let figure = if group == 0 { outcome.unit.clone() } else { "passes/s".to_owned() };
    [
        outcome.axis.clone(),
        "server".to_owned(),
        format!("median {figure}"),
        "lowest - highest".to_owned(),
        "every run".to_owned(),
        "p50 ms".to_owned(),
        "p99 ms".to_owned(),
        "slowest tenth".to_owned(),
        "server CPU us".to_owned(),
        "voluntary switches".to_owned(),
        "involuntary".to_owned(),
        "spin us".to_owned(),
        "unaccounted".to_owned(),
    ]
}

/// The whole report for a terminal.
pub fn text(outcome: &Outcome) -> String {
    let mut lines = vec![format!("{}: {}", outcome.title, outcome.unit), String::new()];
    let mut rows = vec![headings(outcome, 0)];
    rows.extend(rows_of(outcome, 0));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    for row in &rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:>width$}")).collect();
        lines.push(cells.join("  "));
    }
    lines.push(String::new());
    if let Some(limit) = &outcome.limit {
        lines.push(format!("limit: {}/s ({})", grouped(median(&limit.rates).unwrap_or_default()), limit.name));
    }
    lines.extend(outcome.absent.iter().map(|text| format!("not measured: {text}")));
    lines.extend(outcome.failures());
    lines.push(format!("{}; {} s a run, {} runs; {}", outcome.when, outcome.seconds, outcome.repeats, outcome.machine));
    for server in &outcome.servers {
        let settings: Vec<String> = server.settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        lines.push(format!("{}: {}; {}", server.name, server.version, settings.join(", ")));
    }
    lines.join("\n") + "\n"
}

/// The table of a group of clients for a page.
pub(super) fn markdown(outcome: &Outcome, group: usize) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(&headings(outcome, group));
    text.push_str("|--:|---|--:|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for row in rows_of(outcome, group) {
        text.push_str(&line(&row));
    }
    text
}

fn rows_of(outcome: &Outcome, group: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for &x in &outcome.points {
        for variant in &outcome.variants {
            for server in &outcome.servers {
                let cell = outcome.group_cell(&server.name, variant, x, group);
                if group == 0 || cell.is_some() {
                    rows.push(row(x, label(&server.name, variant), cell));
                }
            }
        }
    }
    rows
}

fn row(x: u32, server: String, cell: Option<Cell>) -> Row {
    let x = grouped(f64::from(x));
    let nothing = || "-".to_owned();
    let Some(cell) = cell else {
        return [
            x,
            server,
            "no run counts".to_owned(),
            nothing(),
            nothing(),
            nothing(),
            nothing(),
            nothing(),
            nothing(),
            nothing(),
            nothing(),
            nothing(),
            nothing(),
        ];
    };
    let every: Vec<String> = cell.values.iter().map(|&value| grouped(value)).collect();
    let timed = |figure: String| if cell.rate > 0.0 { figure } else { nothing() };
    [
        x,
        server,
        grouped(cell.value),
        format!("{} - {}", grouped(cell.lowest), grouped(cell.highest)),
        every.join("; "),
        timed(format!("{:.2}", cell.p50_ms)),
        timed(format!("{:.2}", cell.p99_ms)),
        timed(format!("{:.2}", cell.steadiness)),
        cell.cpu_us.map_or_else(nothing, |us| format!("{us:.0}")),
        cell.voluntary.map_or_else(nothing, |switches| format!("{switches:.3}")),
        cell.involuntary.map_or_else(nothing, |switches| format!("{switches:.3}")),
        cell.spin_us.map_or_else(nothing, |us| format!("{us:.2}")),
        cell.unaccounted_percent.map_or_else(nothing, |percent| format!("{percent:.2} %")),
    ]
}
