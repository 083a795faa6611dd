//! Reports: JSON, a text table, a chart, a page; each made from an outcome alone.

mod chart;
mod json;
mod page;
mod table;

use std::path::{Path, PathBuf};

use crate::LabError;
use crate::outcome::Outcome;

pub use chart::svg;
pub use json::json;
pub use page::page;
pub use table::text;

/// Writes `NAME.json`, `NAME.txt` and `NAME.svg` into a directory; returns what was written.
///
/// # Errors
/// A file can't be written.
pub fn write_all(outcome: &Outcome, dir: &Path) -> Result<Vec<PathBuf>, LabError> {
    std::fs::create_dir_all(dir).map_err(LabError::file(dir))?;
    let file = |ending: &str| dir.join(format!("{}.{ending}", outcome.scenario));
    write(vec![(file("json"), json(outcome)), (file("txt"), text(outcome)), (file("svg"), svg(outcome))])
}

/// Writes a page, and its chart and figures beside it; returns what was written.
///
/// # Errors
/// A file can't be written.
pub fn write_page(outcome: &Outcome, path: &Path) -> Result<Vec<PathBuf>, LabError> {
    let (chart, figures) = (path.with_extension("svg"), path.with_extension("json"));
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let page = page(outcome, &name(&chart), &name(&figures));
    write(vec![(path.to_owned(), page), (chart, svg(outcome)), (figures, json(outcome))])
}

fn write(files: Vec<(PathBuf, String)>) -> Result<Vec<PathBuf>, LabError> {
    for (path, text) in &files {
        std::fs::write(path, text).map_err(LabError::file(path))?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

/// A figure as a person reads it: `12,345`, `12.3`, `0.0123`.
pub(crate) fn grouped(figure: f64) -> String {
    if figure < 100.0 && figure.fract().abs() > 1e-9 {
        return if figure < 1.0 { format!("{figure:.3}") } else { format!("{figure:.1}") };
    }
    let digits = format!("{figure:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::tests::example;

    #[test]
    fn rates_are_grouped() {
        assert_eq!(
            ["0.4", "2", "15.44", "999.5", "1234567"].map(|text| grouped(text.parse().expect("a number"))),
            ["0.400", "2", "15.4", "1,000", "1,234,567"]
        );
    }

    #[test]
    fn every_report_names_what_failed_and_where_clearway_loses() {
        let outcome = example();
        let page = page(&outcome, "a.svg", "a.json");
        assert!(page.contains("a \"quoted\" reason") && text(&outcome).contains("a \"quoted\" reason"));
        assert!(json(&outcome).contains("a \\\"quoted\\\" reason"));
        assert!(page.contains("At 1 client clearway is slower: 0.89 of postgres"), "{page}");
        assert!(page.contains("At 100 clients clearway has 33.8 times"), "{page}");
        assert!(page.contains("Why it is so."), "{page}");
    }
}
