//! A pattern as the regex library reads it: it finds the same texts, and begins at the same place.

use super::{Are, Kind, Node, Prefers};

/// The pattern in the library's syntax; look-around and back-references are not in it.
pub fn translate(are: &Are) -> String {
    let mut out = String::from(if are.options.fold { "(?i)" } else { "" });
    write(&are.root, &mut out);
    out
}

fn write(node: &Node, out: &mut String) {
    match &node.kind {
        Kind::Empty => out.push_str("(?:)"),
        Kind::Set(set) => set.write(out),
        Kind::Sequence(list) => list.iter().for_each(|n| write(n, out)),
        Kind::Alternatives(list) => {
            out.push_str("(?:");
            for (i, n) in list.iter().enumerate() {
                if i > 0 {
                    out.push('|');
                }
                write(n, out);
            }
            out.push(')');
        }
        Kind::Repeat { node, least, most, prefers } => {
            out.push_str("(?:");
            write(node, out);
            out.push(')');
            match (least, most) {
                (0, None) => out.push('*'),
                (1, None) => out.push('+'),
                (0, Some(1)) => out.push('?'),
                (n, None) => out.push_str(&format!("{{{n},}}")),
                (n, Some(m)) => out.push_str(&format!("{{{n},{m}}}")),
            }
            if *prefers == Prefers::Shortest {
                out.push('?');
            }
        }
        Kind::Group(_, node) => {
            out.push('(');
            write(node, out);
            out.push(')');
        }
        Kind::TextStart => out.push_str("\\A"),
        Kind::TextEnd => out.push_str("\\z"),
        Kind::LineStart => out.push_str("(?m:^)"),
        Kind::LineEnd => out.push_str("(?m:$)"),
        Kind::WordStart => out.push_str("\\b{start}"),
        Kind::WordEnd => out.push_str("\\b{end}"),
        Kind::WordEdge => out.push_str("\\b"),
        Kind::NoWordEdge => out.push_str("\\B"),
        Kind::Same(_) | Kind::Look { .. } => {}
    }
}
