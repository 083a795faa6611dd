//! The texts of settings' values: lists and truth values.

/// Splits `a, "B c"` into its items, folding what is not quoted.
pub fn list_items(text: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quoted = false;
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(String::new()),
            c if quoted => out.last_mut().into_iter().for_each(|s| s.push(c)),
            c if c.is_whitespace() => {}
            c => out.last_mut().into_iter().for_each(|s| s.extend(c.to_lowercase())),
        }
    }
    out.retain(|s| !s.is_empty());
    out
}

/// on, off, true, yes, 1, ...
pub fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" | "t" | "y" => Some(true),
        "off" | "false" | "no" | "0" | "f" | "n" => Some(false),
        _ => None,
    }
}

/// Which messages the client does not want.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hides {
    /// It wants all that there are.
    #[default]
    Nothing,
    /// Those below WARNING.
    Notices,
    /// All but errors.
    Warnings,
}
