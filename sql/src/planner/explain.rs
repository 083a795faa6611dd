//! A plan in words.

use super::order::relied_on;
use super::plan::{Access, Action, Body, JoinType, Node, Plan, Query};

/// The lines of EXPLAIN.
pub fn lines(plan: &Plan) -> Vec<String> {
    let mut out = Vec::new();
    for change in &plan.changes {
        line(0, &format!("CTE {}", change.name), &mut out);
        action(&change.action, 1, &mut out);
    }
    action(&plan.action, 0, &mut out);
    out
}

fn action(action: &Action, depth: usize, out: &mut Vec<String>) {
    match action {
        Action::Select(q) => query(q, depth, out),
        Action::Insert(i) => {
            line(depth, &format!("Insert on {}", i.target.table.shape.name), out);
            query(&i.source, depth + 1, out);
        }
        Action::Update(u) => {
            line(depth, &format!("Update on {}", u.target.table.shape.name), out);
            node(&u.source, depth + 1, out);
        }
        Action::Delete(d) => {
            line(depth, &format!("Delete on {}", d.target.table.shape.name), out);
            node(&d.source, depth + 1, out);
        }
    }
}

fn line(depth: usize, what: &str, out: &mut Vec<String>) {
    let arrow = if depth == 0 { "" } else { "->  " };
    out.push(format!("{}{arrow}{what}", "  ".repeat(depth)));
}

fn query(q: &Query, mut depth: usize, out: &mut Vec<String>) {
    let mut level = |what: &str, out: &mut Vec<String>| {
        line(depth, what, out);
        depth += 1;
    };
    if q.limit.is_some() || q.offset.is_some() {
        level("Limit", out);
    }
    match &q.body {
        Body::Values(_) => level("Values Scan", out),
        Body::SetOp { op, left, right, .. } => {
            level(&format!("{op:?}"), out);
            query(left, depth, out);
            query(right, depth, out);
        }
        Body::Recursive { anchor, step, .. } => {
            level("Recursive Union", out);
            query(anchor, depth, out);
            query(step, depth, out);
        }
        Body::Select(s) => {
            if s.distinct.is_some() {
                level("Unique", out);
            }
            if !s.locks.is_empty() {
                level("LockRows", out);
            }
            if !q.sort.is_empty() && relied_on(&s.source).is_none() {
                level("Sort", out);
            }
            if s.grouping.is_some() {
                level("Aggregate", out);
            }
            node(&s.source, depth, out);
        }
    }
}

fn node(n: &Node, depth: usize, out: &mut Vec<String>) {
    match n {
        Node::One => line(depth, "Result", out),
        Node::Scan(s) => {
            let name = &s.table.shape.name;
            let what = match &s.access {
                Access::Full => format!("Seq Scan on {name}"),
                Access::Keys(_) | Access::KeyRange(_) => format!("Primary Key Scan on {name}"),
                Access::Ranges(ranges) => match &ranges.parts[..] {
                    [part] => match part.index {
                        Some(i) => format!("Index Scan using {} on {name}", s.table.shape.indexes[i].name),
                        None => format!("Primary Key Scan on {name}"),
                    },
                    _ => format!("Index Union Scan on {name}"),
                },
                Access::Index(i, _) => format!("Index Scan using {} on {name}", s.table.shape.indexes[*i].name),
            };
            line(depth, &what, out);
        }
        Node::Work(_) => line(depth, "WorkTable Scan", out),
        Node::System(s) => line(depth, &format!("View Scan on {}", s.view.name), out),
        Node::Function(_) => line(depth, "Function Scan", out),
        Node::Derived(d) => {
            line(depth, "Subquery Scan", out);
            query(&d.query, depth + 1, out);
        }
        Node::Join(j) => {
            let how = match &j.hash {
                Some((keys, _)) if !keys.is_empty() => "Hash",
                _ => "Nested Loop",
            };
            let kind = match j.kind {
                JoinType::Inner => "Join",
                JoinType::Left => "Left Join",
                JoinType::Full => "Full Join",
                JoinType::Semi => "Semi Join",
                JoinType::Anti => "Anti Join",
            };
            line(depth, &format!("{how} {kind}"), out);
            node(&j.left, depth + 1, out);
            node(&j.right, depth + 1, out);
        }
        Node::Filter { input, .. } => {
            line(depth, "Filter", out);
            node(input, depth + 1, out);
        }
    }
}
