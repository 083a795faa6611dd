//! Exceptions from the limits, which may only shrink: `xtask/ratchet.toml`.
//!
//! A measure beyond its limit must be in the file, and must not exceed what is there.
//! `cargo xtask ratchet` lowers entries to what is measured and removes those that are not needed. To
//! raise one is to edit the file, in a commit that says why.

use crate::tree::Tree;
use crate::{Problem, comments, names, size};
use std::collections::BTreeMap;
use std::path::Path;

const FILE: &str = "xtask/ratchet.toml";
const HEADER: &str = "# What exceeds a limit today. Entries may only shrink: `cargo xtask ratchet` lowers them.\n\
                      # To raise one is an edit by hand, in a commit that says why.\n";

type Sections = BTreeMap<String, BTreeMap<String, usize>>;

/// The exceptions, by section and name.
#[derive(Default)]
pub struct Ratchet {
    sections: Sections,
}

impl Ratchet {
    /// The exceptions of a repository; none without the file.
    pub fn of(tree: &Tree) -> Ratchet {
        let mut ratchet = Ratchet::default();
        let mut section = String::new();
        for line in tree.text(FILE).lines().map(str::trim) {
            if let Some(name) = line.strip_prefix('[') {
                section = name.trim_end_matches(']').to_owned();
            } else if let Some((key, value)) = line.rsplit_once('=')
                && !line.starts_with('#')
            {
                let key = key.trim().trim_matches('"').to_owned();
                let value = value.trim().parse().unwrap_or(0);
                ratchet.sections.entry(section.clone()).or_default().insert(key, value);
            }
        }
        ratchet
    }

    /// What is allowed; 0 without an exception.
    pub fn limit(&self, section: &str, key: &str) -> usize {
        self.sections.get(section).and_then(|section| section.get(key)).copied().unwrap_or(0)
    }

    /// What is measured and not excepted.
    pub fn exceeded(&self, measured: &Sections) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (section, entries) in measured {
            for (key, value) in entries {
                let limit = self.limit(section, key);
                if *value > limit {
                    let what = format!("{section} is {value}, and {FILE} allows {limit}");
                    problems.push(Problem::new(key, what));
                }
            }
        }
        problems
    }
}

/// Lowers every entry to what is measured; returns how many changed. A section without any entry is
/// filled with what is measured: that is how a ratchet begins.
pub fn lower(root: &Path) -> Result<usize, String> {
    let tree = Tree::read(root).map_err(|err| err.to_string())?;
    let old = Ratchet::of(&tree);
    let mut measured = size::measure(&tree);
    measured.extend(names::measure(&tree));
    measured.extend(comments::measure(&tree));
    let (mut text, mut changed) = (HEADER.to_owned(), 0);
    for (section, entries) in &measured {
        text.push_str(&format!("\n[{section}]\n"));
        let fresh = !old.sections.contains_key(section);
        let mut kept = 0;
        for (key, value) in entries {
            let limit = if fresh { *value } else { old.limit(section, key) };
            if limit > 0 {
                text.push_str(&format!("\"{key}\" = {}\n", limit.min(*value)));
                changed += usize::from(*value < limit);
                kept += 1;
            }
        }
        changed += old.sections.get(section).map_or(0, |old| old.len() - kept);
    }
    std::fs::write(root.join(FILE), text).map_err(|err| err.to_string())?;
    Ok(changed)
}
