//! No circle of imports between files of different folders.
//!
//! Imports between folders go in one direction, so a reader of a file needs to know what is below it and not what is above it. Within one
//! folder files may need each other (an expression holds subqueries, a subquery holds expressions); such folders are listed with their
//! reasons in `xtask/circles.toml`.

use crate::Problem;
use crate::imports::{Imports, imports};
use crate::tree::Tree;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const FILE: &str = "xtask/circles.toml";

/// Refuses circles between folders, and circles within a folder that is not listed.
pub fn check(tree: &Tree) -> Vec<Problem> {
    let graph = imports(tree);
    let folders = Folders::of(&graph);
    let listed = listed(tree);
    let mut used = BTreeSet::new();
    let mut problems = Vec::new();
    for circle in circles(&graph) {
        let rooms: BTreeSet<&str> = circle.iter().map(|file| folders.of_file(file)).collect();
        if let [room] = rooms.iter().copied().collect::<Vec<_>>()[..]
            && listed.contains_key(room)
        {
            used.insert(room);
            continue;
        }
        let (edge, shown) =
            shortest(&graph, &circle, |a, b| rooms.len() == 1 || folders.of_file(a) != folders.of_file(b));
        let line = graph[edge.0][edge.1];
        let kind = if rooms.len() == 1 {
            format!("a circle within a folder that {FILE} does not list")
        } else {
            format!("a circle of {} files in {} folders", circle.len(), rooms.len())
        };
        problems.push(Problem::new(format!("{}:{line}", edge.0), format!("{kind}: {}", shown.join(" -> "))));
    }
    for room in listed.keys().filter(|room| !used.contains(*room)) {
        problems.push(Problem::new(FILE, format!("{room} is listed, but has no circle")));
    }
    for (room, _) in listed.iter().filter(|(_, why)| why.is_empty()) {
        problems.push(Problem::new(FILE, format!("{room} is listed without a reason")));
    }
    problems
}

/// Folders whose files may import each other, with the reasons.
fn listed(tree: &Tree) -> BTreeMap<&str, &str> {
    let lines = tree.text(FILE).lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once('='))
        .map(|(room, why)| (room.trim().trim_matches('"'), why.trim().trim_matches('"')))
        .collect()
}

/// The folder in which each file counts.
struct Folders<'t>(BTreeSet<&'t str>);

impl<'t> Folders<'t> {
    fn of(graph: &Imports<'t>) -> Self {
        Folders(graph.keys().filter_map(|file| file.rsplit_once('/')).map(|(folder, _)| folder).collect())
    }

    /// The directory; of `a.rs` beside a directory `a` that directory, as of `a/mod.rs`.
    fn of_file(&self, file: &'t str) -> &'t str {
        let own = file.trim_end_matches(".rs");
        let directory = file.rsplit_once('/').map_or("", |(directory, _)| directory);
        if self.0.contains(own) { own } else { directory }
    }
}

/// The strongly connected components of more than one file.
fn circles<'t>(graph: &Imports<'t>) -> Vec<BTreeSet<&'t str>> {
    let mut backward: BTreeMap<&str, Vec<&'t str>> = BTreeMap::new();
    for (from, targets) in graph {
        for to in targets.keys() {
            backward.entry(to).or_default().push(from);
        }
    }
    let forward =
        |file: &str| graph.get(file).into_iter().flat_map(|targets| targets.keys().copied()).collect::<Vec<_>>();
    let back = |file: &str| backward.get(file).cloned().unwrap_or_default();
    let mut left: BTreeSet<&'t str> = graph.keys().copied().collect();
    let mut found = Vec::new();
    while let Some(start) = left.pop_first() {
        let below = reached(start, forward);
        let above = reached(start, back);
        let circle: BTreeSet<&'t str> = below.intersection(&above).copied().collect();
        left.retain(|file| !circle.contains(file));
        if circle.len() > 1 {
            found.push(circle);
        }
    }
    found
}

fn reached<'t>(start: &'t str, next: impl Fn(&str) -> Vec<&'t str>) -> BTreeSet<&'t str> {
    let mut found = BTreeSet::from([start]);
    let mut open = vec![start];
    while let Some(file) = open.pop() {
        open.extend(next(file).into_iter().filter(|file| found.insert(file)));
    }
    found
}

/// The shortest way round through an edge that `wanted` picks: the edge, and the files in order.
fn shortest<'t>(
    graph: &Imports<'t>,
    circle: &BTreeSet<&'t str>,
    wanted: impl Fn(&'t str, &'t str) -> bool,
) -> ((&'t str, &'t str), Vec<&'t str>) {
    let edges = circle.iter().flat_map(|from| {
        graph[from].keys().filter(|to| circle.contains(*to)).map(|to| (*from, *to)).collect::<Vec<_>>()
    });
    let ways = edges.filter(|(from, to)| wanted(from, to)).map(|(from, to)| {
        let mut way = way(graph, circle, to, from);
        way.insert(0, from);
        ((from, to), way)
    });
    ways.min_by_key(|(_, way)| way.len()).expect("a component of several files has an edge")
}

/// The shortest way from one file of a circle to another.
fn way<'t>(graph: &Imports<'t>, circle: &BTreeSet<&'t str>, from: &'t str, to: &'t str) -> Vec<&'t str> {
    let mut before: BTreeMap<&str, &'t str> = BTreeMap::new();
    let mut open = VecDeque::from([from]);
    while let Some(file) = open.pop_front().filter(|file| *file != to) {
        for next in graph[file].keys().filter(|next| circle.contains(*next)) {
            if *next != from && !before.contains_key(next) {
                before.insert(next, file);
                open.push_back(next);
            }
        }
    }
    let mut way = vec![to];
    while let Some(last) = way.last().filter(|last| **last != from) {
        way.push(before[last]);
    }
    way.reverse();
    way
}
