//! The table, as text for a terminal and as Markdown for a page.

use super::grouped;
use crate::outcome::{Cell, Outcome, median};

/// Columns of the table.
const HEADINGS: [&str; 8] =
    ["clients", "server", "median/s", "lowest - highest", "every run", "p50 ms", "p99 ms", "least - most of a client"];

/// The whole report for a terminal.
pub fn text(outcome: &Outcome) -> String {
    let mut lines = vec![format!("{}: {}", outcome.title, outcome.unit), String::new()];
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(rows_of(outcome, 0));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    for row in &rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:>width$}")).collect();
        lines.push(cells.join("  "));
    }
    lines.push(String::new());
    if let Some((name, rates)) = &outcome.limit {
        lines.push(format!("limit: {} ({name})", grouped(median(rates).unwrap_or_default())));
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
    let mut text = line(&HEADINGS.map(str::to_owned));
    text.push_str("|--:|---|--:|---|---|--:|--:|---|\n");
    for row in rows_of(outcome, group) {
        text.push_str(&line(&row));
    }
    text
}

fn rows_of(outcome: &Outcome, group: usize) -> Vec<[String; 8]> {
    let mut rows = Vec::new();
    for &clients in &outcome.clients {
        for server in &outcome.servers {
            rows.push(row(clients, &server.name, outcome.group_cell(&server.name, clients, group)));
        }
    }
    rows
}

fn row(clients: u32, server: &str, cell: Option<Cell>) -> [String; 8] {
    let (clients, server) = (grouped(f64::from(clients)), server.to_owned());
    let Some(cell) = cell else {
        return [
            clients,
            server,
            "no run counts".to_owned(),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
        ];
    };
    let every: Vec<String> = cell.rates.iter().map(|&rate| grouped(rate)).collect();
    [
        clients,
        server,
        grouped(cell.rate),
        format!("{} - {}", grouped(cell.lowest), grouped(cell.highest)),
        every.join("; "),
        format!("{:.2}", cell.p50_ms),
        format!("{:.2}", cell.p99_ms),
        format!("{} - {}", cell.least_most.0, cell.least_most.1),
    ]
}
