//! Every public item of the library `clearway` has an example, and every function that can fail documents its errors.

use crate::Problem;
use crate::tree::Tree;

/// The library's source.
const LIBRARY: &str = "embedded/src/";

/// Public items without an example (a doctest), and functions that return a `Result` without a section `# Errors`.
pub fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.rust().filter(|(path, _)| path.starts_with(LIBRARY)) {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for (at, line) in lines.iter().enumerate() {
            let Some(item) = public_item(line) else { continue };
            let above: Vec<&&str> = lines[..at].iter().rev().take_while(|line| is_about_the_next(line)).collect();
            if above.contains(&&"#[doc(hidden)]") {
                continue;
            }
            let says = |what: &str| above.iter().any(|line| line.starts_with("///") && line.contains(what));
            let place = format!("{path}:{}", at + 1);
            if !says("```") {
                problems.push(Problem::new(&place, format!("{item} has no example")));
            }
            let signature: String = lines[at..].iter().take_while(|line| !line.is_empty()).copied().collect();
            let returned = signature.split(" {").next().unwrap_or_default().split("-> ").last().unwrap_or_default();
            if line.contains("fn ") && returned.contains("Result<") && !says("# Errors") {
                problems.push(Problem::new(&place, format!("{item} does not say what its errors are")));
            }
        }
    }
    problems
}

/// The name of the item that a line declares, if it is public. Modules say what they are in their own heads.
fn public_item(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ")?;
    let rest = rest.strip_prefix("async ").or_else(|| rest.strip_prefix("const ")).unwrap_or(rest);
    let kinds = ["fn ", "struct ", "enum ", "trait ", "type "];
    let name = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

fn is_about_the_next(line: &str) -> bool {
    line.starts_with("///") || line.starts_with("#[")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_example_or_hides_its_errors_is_found() {
        let source = "/// A thing.\n///\n/// ```\n/// f();\n/// ```\n#[derive(Clone)]\npub struct Thing;\n\n/// Bare.\npub enum Bare {}\n\n\
                      impl Thing {\n    /// Fails.\n    ///\n    /// ```\n    /// ```\n    pub fn fails(\n        &self,\n    ) -> Result<()> {\n    }\n\n\
                      /// Takes a closure.\n    ///\n    /// ```\n    /// ```\n    pub async fn takes(f: impl Fn() -> Result<()>) -> u8 {\n    }\n\n\
                      #[doc(hidden)]\n    pub fn hidden() {}\n    pub(crate) fn inner() {}\n}\n";
        let tree = Tree::of(&[("embedded/src/a.rs", source), ("sql/src/a.rs", "pub fn other() {}\n")]);
        let found: Vec<String> = check(&tree).into_iter().map(|problem| problem.what).collect();
        assert_eq!(found, ["Bare has no example", "fails does not say what its errors are"]);
    }
}
