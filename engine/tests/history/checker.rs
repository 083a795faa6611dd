//! Judges histories of list-append transactions by Adya's phenomena.
//!
//! Every appended element is unique, so a list read says which version it is and which transaction wrote it, and the final lists give the order of
//! all versions of each key: what Elle calls a recoverable, traceable history (Kingsbury and Alvaro, VLDB 2020). Dependencies between
//! transactions follow: ww from the writer of a version to that of the next, wr from the writer of a version to its readers, rw from
//! the readers of a version to the writer of the next.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use clearway_engine::embedded::Isolation;

pub type Key = i64;
/// Unique in a history.
pub type Element = i64;

/// What a transaction did.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    Append(Key, Element),
    Read(Key, Vec<Element>),
}

/// What its client knows of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Committed,
    Aborted,
    /// The crash came first: nothing it read has been confirmed.
    Unknown,
}

#[derive(Clone, Debug)]
pub struct Txn {
    pub ops: Vec<Op>,
    pub outcome: Outcome,
}

/// Why a history is wrong. Numbers are places in the history.
#[derive(Clone, Debug, PartialEq)]
#[allow(dead_code, reason = "read by people")]
pub enum Violation {
    /// A reply is no prefix of the final list: it was lost, or versions have two orders.
    NoPrefix { reader: usize, key: Key, read: Vec<Element>, last: Vec<Element> },
    /// Acknowledged and not there, or there more than once.
    Lost { writer: usize, key: Key, element: Element, times: usize },
    /// G1a: a version of an aborted transaction was seen.
    AbortedRead { writer: usize, key: Key, element: Element },
    /// G1b: a version that its writer wrote over was seen.
    IntermediateRead { reader: usize, writer: usize, key: Key },
    /// A transaction did not see its own append.
    NotOwn { reader: usize, key: Key },
    /// An element that no transaction appended.
    FromNowhere { key: Key, element: Element },
    /// G0: a cycle of ww.
    WriteCycle(Vec<usize>),
    /// G1c: a cycle of ww and wr.
    InformationCycle(Vec<usize>),
    /// G-single: a cycle of ww, wr and one rw: read skew, lost update, a read that does not repeat.
    ReadSkew(Vec<usize>),
}

type Edges = BTreeMap<usize, BTreeSet<usize>>;

struct Checker<'h> {
    history: &'h [Txn],
    last: &'h BTreeMap<Key, Vec<Element>>,
    writers: HashMap<Element, (usize, Key)>,
    found: Vec<Violation>,
    write: Edges,
    read: Edges,
    /// rw, by reader and next writer.
    anti: Vec<(usize, usize)>,
}

/// All that is wrong with a history that ended in these lists.
pub fn check(history: &[Txn], last: &BTreeMap<Key, Vec<Element>>, isolation: Isolation) -> Vec<Violation> {
    let mut checker = Checker {
        history,
        last,
        writers: HashMap::new(),
        found: Vec::new(),
        write: Edges::new(),
        read: Edges::new(),
        anti: Vec::new(),
    };
    checker.appends();
    checker.last_lists();
    for reader in 0..history.len() {
        checker.reads_of(reader);
    }
    checker.cycles(isolation);
    checker.found
}

impl Checker<'_> {
    fn appends(&mut self) {
        for (at, txn) in self.history.iter().enumerate() {
            for op in &txn.ops {
                if let Op::Append(key, element) = op {
                    let before = self.writers.insert(*element, (at, *key));
                    assert!(before.is_none(), "the workload gives every element once");
                    let times = self.list(*key).iter().filter(|e| *e == element).count();
                    if times > 1 || (times == 0 && txn.outcome == Outcome::Committed) {
                        self.found.push(Violation::Lost { writer: at, key: *key, element: *element, times });
                    }
                }
            }
        }
    }

    fn list(&self, key: Key) -> &[Element] {
        self.last.get(&key).map_or(&[], |list| list)
    }

    fn last_lists(&mut self) {
        for (key, list) in self.last {
            self.known(*key, list);
            for pair in list.windows(2) {
                if let (Some((from, _)), Some((to, _))) = (self.writers.get(&pair[0]), self.writers.get(&pair[1])) {
                    link(&mut self.write, *from, *to);
                }
            }
        }
    }

    /// G1a, and elements of other keys or of no transaction.
    fn known(&mut self, key: Key, list: &[Element]) {
        for element in list {
            match self.writers.get(element) {
                Some((writer, of)) if *of == key => {
                    if self.history[*writer].outcome == Outcome::Aborted {
                        self.found.push(Violation::AbortedRead { writer: *writer, key, element: *element });
                    }
                }
                _ => self.found.push(Violation::FromNowhere { key, element: *element }),
            }
        }
    }

    fn reads_of(&mut self, reader: usize) {
        let txn = &self.history[reader];
        if txn.outcome == Outcome::Unknown {
            return;
        }
        let mut own: HashMap<Key, Vec<Element>> = HashMap::new();
        for op in &txn.ops {
            match op {
                Op::Append(key, element) => own.entry(*key).or_default().push(*element),
                Op::Read(key, list) => {
                    let mine = own.get(key).map_or(&[][..], |own| own);
                    let Some(read) = list.strip_suffix(mine) else {
                        self.found.push(Violation::NotOwn { reader, key: *key });
                        continue;
                    };
                    self.one_read(reader, *key, read);
                }
            }
        }
    }

    /// A read without what the reader itself appended.
    fn one_read(&mut self, reader: usize, key: Key, read: &[Element]) {
        self.known(key, read);
        let last = self.list(key);
        if !last.starts_with(read) {
            let (read, last) = (read.to_vec(), last.to_vec());
            self.found.push(Violation::NoPrefix { reader, key, read, last });
            return;
        }
        let next = last.get(read.len()).and_then(|element| self.writers.get(element)).map(|w| w.0);
        let writer = read.last().and_then(|element| self.writers.get(element)).map(|w| w.0);
        if let Some(writer) = writer {
            if next == Some(writer) && writer != reader {
                self.found.push(Violation::IntermediateRead { reader, writer, key });
            }
            link(&mut self.read, writer, reader);
        }
        if let Some(next) = next
            && next != reader
            && self.history[reader].outcome == Outcome::Committed
        {
            self.anti.push((reader, next));
        }
    }

    fn cycles(&mut self, isolation: Isolation) {
        if let Some(cycle) = cycle_in(&self.write) {
            self.found.push(Violation::WriteCycle(cycle));
        }
        let mut both = self.write.clone();
        for (from, to) in &self.read {
            both.entry(*from).or_default().extend(to);
        }
        if let Some(cycle) = cycle_in(&both) {
            self.found.push(Violation::InformationCycle(cycle));
        }
        if isolation == Isolation::RepeatableRead {
            for (reader, next) in &self.anti {
                if let Some(path) = path(&both, *next, *reader) {
                    self.found.push(Violation::ReadSkew(path));
                }
            }
        }
    }
}

fn link(edges: &mut Edges, from: usize, to: usize) {
    if from != to {
        edges.entry(from).or_default().insert(to);
    }
}

/// A path by breadth first search; the shortest.
fn path(edges: &Edges, from: usize, to: usize) -> Option<Vec<usize>> {
    let mut came: HashMap<usize, usize> = HashMap::new();
    let mut next = std::collections::VecDeque::from([from]);
    while let Some(at) = next.pop_front() {
        for step in edges.get(&at).into_iter().flatten() {
            if *step != from && came.contains_key(step) {
                continue;
            }
            came.insert(*step, at);
            if *step == to {
                let mut path = vec![to];
                let mut back = at;
                while back != from {
                    path.push(back);
                    back = came[&back];
                }
                path.push(from);
                path.reverse();
                return Some(path);
            }
            if *step != from {
                next.push_back(*step);
            }
        }
    }
    None
}

/// Takes away, again and again, the nodes that no edge points to; what is left has a cycle.
fn cycle_in(edges: &Edges) -> Option<Vec<usize>> {
    let mut incoming: BTreeMap<usize, usize> = BTreeMap::new();
    for (from, to) in edges {
        incoming.entry(*from).or_default();
        to.iter().for_each(|to| *incoming.entry(*to).or_default() += 1);
    }
    let mut free: Vec<usize> = incoming.iter().filter(|(_, n)| **n == 0).map(|(at, _)| *at).collect();
    while let Some(at) = free.pop() {
        incoming.remove(&at);
        for to in edges.get(&at).into_iter().flatten() {
            let n = incoming.get_mut(to).expect("it is pointed to");
            *n -= 1;
            if *n == 0 {
                free.push(*to);
            }
        }
    }
    incoming.keys().find_map(|at| path(edges, *at, *at))
}
