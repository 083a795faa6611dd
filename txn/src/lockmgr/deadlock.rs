//! Finds cycles in a copy of a part of the waits-for graph and says how to break them. Pure: no latch, no clock, no I/O.
//!
//! # Structure
//! ```text
//! WaitGraph ── locks ──► LockQueue { granted: (owner, modes)*, waiters: (owner, mode)* in queue order }
//!           └─ waits ──► owner -> the one lock it waits for
//! judge(start) ──► NoCycle | Hard(cycle) | Reorder(new orders of some queues)
//! ```
//! An edge from a waiter to a *holder* of a conflicting mode is hard: only the holder's end removes it. An edge to a
//! conflicting *waiter that only stands ahead in the queue* is soft: moving the waiter ahead of it removes it.
//!
//! The search for a new order follows PostgreSQL's `deadlock.c` (`DeadLockCheckRecurse`, `TestConfiguration`, `TopoSort`):
//! try the reversal of each soft edge of a cycle, then of the cycles that the reversal makes, depth first. Where PostgreSQL gives up
//! and takes a victim, this search orders the queues by the hard edges alone. Without a hard cycle such an order always exists (see
//! `order_by_hard_edges`).
//!
//! # Invariants
//! - DLK-1: a victim is demanded only if a cycle of hard edges goes through the new waiter.
//! - DLK-2: after the orders of a `Reorder` are applied, nothing that the new waiter reaches lies on a cycle through it or through a moved waiter.
//! - DLK-3: the length of a chain of waits never limits the search: its cost is linear in the owners and edges reached, and it does not
//!   recurse.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::modes::{ALL_MODES, LockMode, ModeSet};

/// An owner's number in the graph: whatever the caller uses.
pub type Node = u32;

/// A lock with its holders and its queue, copied in one step.
#[derive(Clone, Debug, Default)]
pub struct LockQueue {
    /// Holders and the modes they hold.
    pub granted: Vec<(Node, ModeSet)>,
    /// Waiters, first in the queue first.
    pub waiters: Vec<(Node, LockMode)>,
}

/// A copy of the part of the waits-for graph that a new waiter can reach.
#[derive(Clone, Debug, Default)]
pub struct WaitGraph {
    locks: Vec<LockQueue>,
    waits: HashMap<Node, Wait>,
}

/// Where an owner stands in the one queue in which it waits.
#[derive(Clone, Copy, Debug)]
struct Wait {
    lock: usize,
    position: usize,
    mode: LockMode,
}

/// One step of a cycle: `waiter` waits in the queue of `lock` behind `blocker`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The owner that waits.
    pub waiter: Node,
    /// The owner that it waits for.
    pub blocker: Node,
    /// The lock's index in the graph.
    pub lock: usize,
    /// Whether the blocker holds the lock, and does not merely stand ahead.
    pub hard: bool,
}

/// The verdict on a new wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The wait closes no cycle.
    NoCycle,
    /// A cycle of hard edges, from the new waiter round to itself: it needs a victim.
    Hard(Vec<Edge>),
    /// Cycles that vanish when the queues of these locks (by index) take these orders.
    Reorder(Vec<(usize, Vec<Node>)>),
}

/// How many configurations are tried before the order by hard edges is taken; cycles met in practice need one to three.
const CONFIGURATIONS_MAX: usize = 64;

/// Constraints on a queue's order: the first must come before the second.
type Constraint = Edge;

impl WaitGraph {
    /// Adds a lock; its waiters are taken to wait for it and nothing else. Returns its index.
    pub fn add(&mut self, queue: LockQueue) -> usize {
        let index = self.locks.len();
        for (position, (node, mode)) in queue.waiters.iter().enumerate() {
            self.waits.insert(*node, Wait { lock: index, position, mode: *mode });
        }
        self.locks.push(queue);
        index
    }

    /// The lock at `index`.
    pub fn lock(&self, index: usize) -> &LockQueue {
        &self.locks[index]
    }

    /// The lock that `node` waits for.
    pub fn waits_for(&self, node: Node) -> Option<usize> {
        self.waits.get(&node).map(|w| w.lock)
    }

    /// The edges that leave `node`; `orders` overrides the order of some queues. Most edges that an earlier call with the same
    /// `seen` has listed for another waiter of the queue are left out: a queue is read about once, not once per waiter.
    fn edges(&self, node: Node, orders: &Orders, seen: &mut Seen) -> Vec<Edge> {
        let Some(&Wait { lock, position, mode }) = self.waits.get(&node) else {
            return Vec::new();
        };
        let queue = &self.locks[lock];
        let conflicts = mode.conflicts();
        let already = seen.entry(lock).or_default();
        let mut edges = Vec::new();
        if !already.holders.covers(conflicts) {
            already.holders = already.holders.union(conflicts);
            let holders = queue.granted.iter().filter(|(h, modes)| *h != node && conflicts.meets(*modes));
            edges.extend(holders.map(|(h, _)| Edge { waiter: node, blocker: *h, lock, hard: true }));
        }
        let (line, position) = match orders.get(&lock) {
            Some(line) => (line, line.iter().position(|(n, _)| *n == node).unwrap_or(line.len())),
            None => (&queue.waiters, position),
        };
        let from = conflicts.iter().map(|m| already.upto[m as usize]).min().unwrap_or(0);
        for (at, (other, m)) in line.iter().enumerate().take(position).skip(from) {
            if conflicts.contains(*m) && at >= already.upto[*m as usize] {
                edges.push(Edge { waiter: node, blocker: *other, lock, hard: false });
            }
        }
        for m in conflicts.iter() {
            already.upto[m as usize] = already.upto[m as usize].max(position);
        }
        edges
    }

    /// A cycle through `start`, or none. Depth first with an explicit stack: DLK-3.
    fn cycle_through(&self, start: Node, orders: &Orders, hard_only: bool) -> Option<Vec<Edge>> {
        let mut visited: HashSet<Node> = HashSet::from([start]);
        let mut seen = Seen::new();
        let mut path: Vec<Edge> = Vec::new();
        // With a `seen` of its own: `start` may hold the lock that it waits for. It leaves itself out; other waiters must not.
        let mut stack = vec![self.edges(start, orders, &mut Seen::new()).into_iter()];
        while let Some(top) = stack.last_mut() {
            let Some(edge) = top.next() else {
                stack.pop();
                path.pop();
                continue;
            };
            if hard_only && !edge.hard {
                continue;
            }
            if edge.blocker == start {
                path.push(edge);
                return Some(path);
            }
            if visited.insert(edge.blocker) && self.waits.contains_key(&edge.blocker) {
                path.push(edge);
                stack.push(self.edges(edge.blocker, orders, &mut seen).into_iter());
            }
        }
        None
    }

    /// Judges the wait that `start` has just begun.
    pub fn judge(&self, start: Node) -> Verdict {
        let none = Orders::new();
        let Some(first) = self.cycle_through(start, &none, false) else {
            return Verdict::NoCycle;
        };
        if let Some(hard) = self.cycle_through(start, &none, true) {
            return Verdict::Hard(hard);
        }
        assert!(first.iter().any(|e| !e.hard), "DLK-1: a cycle of hard edges was not found as one");
        let mut tried = 0;
        let orders = self.search(start, &mut Vec::new(), &mut tried).unwrap_or_else(|| self.order_by_hard_edges(start));
        Verdict::Reorder(self.changed(orders))
    }

    /// Depth-first search for constraints that leave no cycle; `None` when it found none within its bound.
    fn search(&self, start: Node, constraints: &mut Vec<Constraint>, tried: &mut usize) -> Option<Orders> {
        *tried += 1;
        if *tried > CONFIGURATIONS_MAX {
            return None;
        }
        let orders = self.expand(constraints)?;
        let Some(cycle) = self.first_cycle(start, constraints, &orders) else {
            return Some(orders);
        };
        let mut soft: Vec<Edge> = cycle.into_iter().filter(|e| !e.hard).collect();
        // A waiter other than the new one moves ahead where there is a choice.
        soft.sort_by_key(|e| e.waiter == start);
        for edge in soft {
            constraints.push(edge);
            let found = self.search(start, constraints, tried);
            constraints.pop();
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The first cycle through the new waiter or through a waiter that the constraints move.
    fn first_cycle(&self, start: Node, constraints: &[Constraint], orders: &Orders) -> Option<Vec<Edge>> {
        constraints
            .iter()
            .flat_map(|c| [c.waiter, c.blocker])
            .chain([start])
            .find_map(|node| self.cycle_through(node, orders, false))
    }

    /// The queue orders that satisfy the constraints and disturb the rest least; `None` if they contradict each other.
    fn expand(&self, constraints: &[Constraint]) -> Option<Orders> {
        let mut orders = Orders::new();
        for constraint in constraints {
            if let Entry::Vacant(vacant) = orders.entry(constraint.lock) {
                let of_lock: Vec<&Constraint> = constraints.iter().filter(|c| c.lock == constraint.lock).collect();
                let waiters = &self.locks[constraint.lock].waiters;
                vacant.insert(sort_queue(waiters, &of_lock)?);
            }
        }
        Some(orders)
    }

    /// Orders every queue reached by a topological order of the hard edges. Hard edges do not depend on the order of a queue;
    /// if they form no cycle, giving each queue the order "the waiter that can end first comes first" makes every soft edge agree with
    /// that order, so no cycle is left at all.
    fn order_by_hard_edges(&self, start: Node) -> Orders {
        let rank = self.hard_rank(start);
        let mut orders = Orders::new();
        for (index, queue) in self.locks.iter().enumerate() {
            if queue.waiters.iter().any(|(n, _)| rank.contains_key(n)) {
                let mut line = queue.waiters.clone();
                line.sort_by_key(|(n, _)| rank.get(n).copied().unwrap_or(usize::MAX));
                orders.insert(index, line);
            }
        }
        orders
    }

    /// For each owner reached from `start`, its position in an order in which an owner comes after all owners that it waits for by hard edges.
    fn hard_rank(&self, start: Node) -> HashMap<Node, usize> {
        let none = Orders::new();
        let mut rank = HashMap::new();
        let mut entered = HashSet::from([start]);
        // Soft edges only widen the reach; their targets are ranked as roots of their own.
        let mut roots: Vec<Node> = Vec::new();
        let mut stack = vec![(start, self.edges(start, &none, &mut Seen::new()).into_iter())];
        loop {
            while let Some((node, edges)) = stack.last_mut() {
                match edges.next() {
                    Some(edge) if !edge.hard => roots.push(edge.blocker),
                    Some(edge) => {
                        if entered.insert(edge.blocker) {
                            let next = self.edges(edge.blocker, &none, &mut Seen::new()).into_iter();
                            stack.push((edge.blocker, next));
                        }
                    }
                    None => {
                        let position = rank.len() + 1;
                        rank.insert(*node, position);
                        stack.pop();
                    }
                }
            }
            match roots.pop() {
                Some(node) if entered.insert(node) => {
                    stack.push((node, self.edges(node, &none, &mut Seen::new()).into_iter()));
                }
                Some(_) => {}
                None => return rank,
            }
        }
    }

    /// Only the orders that differ from what the queue has now.
    fn changed(&self, orders: Orders) -> Vec<(usize, Vec<Node>)> {
        let mut changed: Vec<_> = orders
            .into_iter()
            .filter(|(lock, line)| self.locks[*lock].waiters != *line)
            .map(|(lock, line)| (lock, line.into_iter().map(|(n, _)| n).collect()))
            .collect();
        changed.sort_by_key(|(lock, _)| *lock);
        changed
    }
}

/// Queues in a hypothetical order.
type Orders = HashMap<usize, Vec<(Node, LockMode)>>;

/// What a search has already listed of each queue.
type Seen = HashMap<usize, SeenQueue>;

#[derive(Default)]
struct SeenQueue {
    /// Holders that conflict with a mode that conflicts with these were listed.
    holders: ModeSet,
    /// By mode: waiters of that mode that stand before this position were listed.
    upto: [usize; ALL_MODES.len()],
}

/// A stable topological sort from the back (PostgreSQL's `TopoSort`): the last waiter that need not stand before one still to be
/// placed takes the last free position.
fn sort_queue(waiters: &[(Node, LockMode)], constraints: &[&Constraint]) -> Option<Vec<(Node, LockMode)>> {
    let mut left = waiters.to_vec();
    let mut back_to_front = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let must_precede =
            |n: Node| constraints.iter().any(|c| c.waiter == n && left.iter().any(|(b, _)| *b == c.blocker));
        let last = (0..left.len()).rev().find(|i| !must_precede(left[*i].0))?;
        back_to_front.push(left.remove(last));
    }
    back_to_front.reverse();
    Some(back_to_front)
}

#[cfg(test)]
#[path = "deadlock_tests.rs"]
mod tests;
