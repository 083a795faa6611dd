//! Writes a path as PostgreSQL shows it.

use super::tree::{JsonPath, Node, Operand, Step};
use crate::types::json::escape;
use std::fmt;

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::from(if self.strict { "strict " } else { "" });
        node(&self.root, true, &mut out);
        f.write_str(&out)
    }
}

fn priority(n: &Node) -> u8 {
    match n {
        Node::Binary(op, ..) => op.priority(),
        Node::Signed(..) => 5,
        // An operator in parentheses without accessors is that operator.
        Node::Chain(operand, steps) if steps.is_empty() => match &**operand {
            Operand::Inner(inner) => priority(inner),
            _ => 6,
        },
        _ => 6,
    }
}

fn node(n: &Node, brackets: bool, out: &mut String) {
    match n {
        Node::Chain(operand, steps) => chain(operand, steps, brackets, out),
        Node::Binary(op, left, right) => {
            bracketed(brackets, out, |out| {
                node(left, priority(left) <= op.priority(), out);
                out.push_str(&format!(" {} ", op.symbol()));
                node(right, priority(right) <= op.priority(), out);
            });
        }
        Node::Signed(minus, arg) => bracketed(brackets, out, |out| {
            out.push(if *minus { '-' } else { '+' });
            node(arg, priority(arg) <= 5, out);
        }),
        Node::Not(arg) => {
            out.push_str("!(");
            node(arg, false, out);
            out.push(')');
        }
        Node::IsUnknown(arg) => {
            out.push('(');
            node(arg, false, out);
            out.push_str(") is unknown");
        }
        Node::Exists(arg) => {
            out.push_str("exists (");
            node(arg, false, out);
            out.push(')');
        }
        Node::LikeRegex(arg, pattern, flags) => bracketed(brackets, out, |out| {
            node(arg, priority(arg) <= 6 && !matches!(**arg, Node::Chain(..)), out);
            out.push_str(" like_regex ");
            escape(pattern, out);
            if !flags.is_empty() {
                out.push_str(&format!(" flag \"{flags}\""));
            }
        }),
    }
}

fn bracketed(brackets: bool, out: &mut String, inside: impl FnOnce(&mut String)) {
    if brackets {
        out.push('(');
    }
    inside(out);
    if brackets {
        out.push(')');
    }
}

fn chain(operand: &Operand, steps: &[Step], brackets: bool, out: &mut String) {
    match operand {
        Operand::Root => out.push('$'),
        Operand::Current => out.push('@'),
        Operand::Last => out.push_str("last"),
        Operand::Null => out.push_str("null"),
        Operand::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Operand::Number(n) if !steps.is_empty() => out.push_str(&format!("({n})")),
        Operand::Number(n) => out.push_str(&n.to_string()),
        Operand::String(s) => escape(s, out),
        Operand::Variable(name) => {
            out.push('$');
            escape(name, out);
        }
        Operand::Inner(Node::Chain(number, inner)) if inner.is_empty() && !steps.is_empty() => match &**number {
            Operand::Number(n) => out.push_str(&format!("({n})")),
            other => chain(other, inner, brackets, out),
        },
        Operand::Inner(inner) => node(inner, brackets || !steps.is_empty(), out),
    }
    steps.iter().for_each(|s| step(s, out));
}

fn step(s: &Step, out: &mut String) {
    match s {
        Step::Member(name) => {
            out.push('.');
            escape(name, out);
        }
        Step::AnyMember => out.push_str(".*"),
        Step::AnyElement => out.push_str("[*]"),
        Step::Levels(first, last) => {
            out.push_str(".**");
            let shown = |n: u32| if n == u32::MAX { "last".to_owned() } else { n.to_string() };
            match (*first, *last) {
                (0, u32::MAX) => {}
                (a, b) if a == b => out.push_str(&format!("{{{}}}", shown(a))),
                (a, b) => out.push_str(&format!("{{{} to {}}}", shown(a), shown(b))),
            }
        }
        Step::Elements(list) => {
            out.push('[');
            for (i, (from, to)) in list.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                node(from, false, out);
                if let Some(to) = to {
                    out.push_str(" to ");
                    node(to, false, out);
                }
            }
            out.push(']');
        }
        Step::Filter(condition) => {
            out.push_str("?(");
            node(condition, false, out);
            out.push(')');
        }
        Step::Method(method) => out.push_str(&format!(".{}()", method.name())),
        Step::DateTime(template) => {
            out.push_str(".datetime(");
            template.iter().for_each(|template| escape(template, out));
            out.push(')');
        }
    }
}
