//! The definitions of the system views that are queries over other system relations. In the source file each begins with a line `--
//! schema.name`.

use std::collections::HashMap;
use std::sync::LazyLock;

const FILES: [&str; 3] = [
    include_str!("texts/pg_catalog.sql"),
    include_str!("texts/information_schema.sql"),
    include_str!("texts/mysql.sql"),
];

fn texts() -> &'static HashMap<(&'static str, &'static str), &'static str> {
    static TEXTS: LazyLock<HashMap<(&'static str, &'static str), &'static str>> = LazyLock::new(|| {
        // What stands before the first name of a file is a comment.
        let parts = FILES.iter().flat_map(|file| file.split("\n-- ").skip(1));
        parts
            .filter_map(|part| {
                let (name, text) = part.split_once('\n')?;
                Some((name.split_once('.').filter(|_| !name.contains(' '))?, shown(text.trim())))
            })
            .collect()
    });
    &TEXTS
}

/// A text with its abbreviations written out.
fn shown(text: &'static str) -> &'static str {
    if text.contains("@time(") { super::mysql::expanded(text).leak() } else { text }
}

/// The query of a view; none for a relation that is not defined by one.
pub fn of(schema: &'static str, name: &'static str) -> Option<&'static str> {
    texts().get(&(schema, name)).copied()
}

/// The views that are defined here.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    texts().keys().copied()
}
