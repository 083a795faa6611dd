//! Sampled tables.

use super::super::sample::SampleScan;
use super::render::Shown;
use super::words::Names;
use super::{Explainer, text};

impl Explainer<'_> {
    pub(super) fn sample(&self, s: &SampleScan, levels: &[Names]) -> Shown {
        let mut shown = self.scan(&s.scan, levels);
        shown.kind = "Sample Scan".to_owned();
        shown.head = format!("Sample Scan on {}", self.shown_table(&s.scan.table));
        let words = self.words(levels);
        let method = if s.sampling.system { "system" } else { "bernoulli" };
        let mut sampling = format!("{method} ({})", words.expr(&s.sampling.percent));
        if let Some(seed) = &s.sampling.seed {
            sampling.push_str(&format!(" REPEATABLE ({})", words.expr(seed)));
        }
        shown.details.insert(0, ("Sampling", text(sampling)));
        shown
    }
}
