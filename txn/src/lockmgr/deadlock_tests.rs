//! The judge against an oracle that shares nothing with it.
//!
//! Oracle: hard edges do not depend on the order of any queue, so a victim is needed exactly when the new waiter reaches itself
//! over hard edges; and a new order is right exactly when no owner that it concerns reaches itself over any edge.
//! `CLEARWAY_GRAPHS=1000000 cargo test -p clearway-txn random_graphs` runs the long form, `CLEARWAY_SEED=n` replays one graph.

use super::*;

struct Rng(u64);

impl Rng {
    /// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// A random state that a lock table could be in: the holders of a lock are compatible, each owner waits for at most one lock,
/// and only owner 0, the newcomer, may have closed a cycle of hard edges.
fn random_graph(rng: &mut Rng) -> WaitGraph {
    let owners = 2 + rng.below(9);
    let locks = 1 + rng.below(6);
    let rows = rng.below(3) == 0;
    let modes = if rows { &ALL_MODES[8..] } else { &ALL_MODES[..8] };
    let mut queues = vec![LockQueue::default(); locks];
    for _ in 0..rng.below(3 * owners) {
        let (lock, owner, mode) = (rng.below(locks), rng.below(owners) as Node, modes[rng.below(modes.len())]);
        let queue = &mut queues[lock];
        if queue.granted.iter().all(|(o, m)| *o == owner || !mode.conflicts().meets(*m)) {
            match queue.granted.iter_mut().find(|(o, _)| *o == owner) {
                Some((_, held)) => *held = held.with(mode),
                None => queue.granted.push((owner, ModeSet::EMPTY.with(mode))),
            }
        }
    }
    // The newcomer comes last.
    for owner in (0..owners as Node).rev() {
        if owner == 0 || rng.below(5) > 0 {
            let (lock, mode) = (rng.below(locks), modes[rng.below(modes.len())]);
            queues[lock].waiters.push((owner, mode));
            let mut graph = WaitGraph::default();
            for queue in &queues {
                graph.add(queue.clone());
            }
            // The owners before owner 0 were judged then: a hard cycle took its victim.
            if owner != 0 && reaches_itself(&graph, owner, true) {
                queues[lock].waiters.pop();
            }
        }
    }
    let mut graph = WaitGraph::default();
    for queue in queues {
        graph.add(queue);
    }
    graph
}

fn reaches_itself(graph: &WaitGraph, start: Node, hard_only: bool) -> bool {
    let successors = |node: Node| -> Vec<Node> {
        let mut out = Vec::new();
        for queue in &graph.locks {
            let Some(at) = queue.waiters.iter().position(|(n, _)| *n == node) else {
                continue;
            };
            let mode = queue.waiters[at].1;
            out.extend(
                queue
                    .granted
                    .iter()
                    .filter(|(n, held)| *n != node && held.iter().any(|h| h.conflicts_with(mode)))
                    .map(|(n, _)| *n),
            );
            if !hard_only {
                out.extend(queue.waiters[..at].iter().filter(|(_, m)| m.conflicts_with(mode)).map(|(n, _)| *n));
            }
        }
        out
    };
    let mut reached = std::collections::BTreeSet::new();
    let mut todo = successors(start);
    while let Some(node) = todo.pop() {
        if node == start {
            return true;
        }
        if reached.insert(node) {
            todo.extend(successors(node));
        }
    }
    false
}

fn reordered(graph: &WaitGraph, orders: &[(usize, Vec<Node>)]) -> WaitGraph {
    let mut queues = graph.locks.clone();
    for (lock, order) in orders {
        let old = std::mem::take(&mut queues[*lock].waiters);
        let line: Vec<_> = order.iter().map(|n| *old.iter().find(|(o, _)| o == n).expect("in the queue")).collect();
        assert_eq!(line.len(), old.len(), "a new order keeps everybody");
        queues[*lock].waiters = line;
    }
    let mut new = WaitGraph::default();
    for queue in queues {
        new.add(queue);
    }
    new
}

fn check(graph: &WaitGraph) -> Verdict {
    let verdict = graph.judge(0);
    let hard = reaches_itself(graph, 0, true);
    match &verdict {
        Verdict::NoCycle => assert!(!reaches_itself(graph, 0, false), "missed a cycle"),
        Verdict::Hard(cycle) => {
            assert!(hard, "DLK-1: a victim without a hard cycle");
            assert_eq!(cycle.first().map(|e| e.waiter), Some(0));
            assert_eq!(cycle.last().map(|e| e.blocker), Some(0));
            assert!(cycle.windows(2).all(|w| w[0].blocker == w[1].waiter) && cycle.iter().all(|e| e.hard));
        }
        Verdict::Reorder(orders) => {
            assert!(!hard, "a hard cycle cannot be reordered away");
            assert!(!orders.is_empty());
            let new = reordered(graph, orders);
            assert!(!reaches_itself(&new, 0, false), "DLK-2: the newcomer is still on a cycle");
        }
    }
    verdict
}

#[test]
fn random_graphs_agree_with_the_oracle() {
    let count = std::env::var("CLEARWAY_GRAPHS").ok().and_then(|v| v.parse().ok()).unwrap_or(30_000u64);
    let only: Option<u64> = std::env::var("CLEARWAY_SEED").ok().and_then(|v| v.parse().ok());
    let (mut none, mut hard, mut soft) = (0, 0, 0);
    for seed in only.map_or(0..count, |s| s..s + 1) {
        let graph = random_graph(&mut Rng(seed));
        let verdict = std::panic::catch_unwind(|| check(&graph)).unwrap_or_else(|_| {
            panic!("replay: CLEARWAY_SEED={seed} cargo test -p clearway-txn random_graphs\n{graph:#?}")
        });
        match verdict {
            Verdict::NoCycle => none += 1,
            Verdict::Hard(_) => hard += 1,
            Verdict::Reorder(_) => soft += 1,
        }
    }
    println!("{none} without a cycle, {hard} with a victim, {soft} reordered");
    assert!(only.is_some() || (none > 0 && hard > 0 && soft > 0), "the generator must make all three");
}

#[test]
fn rings_of_two_three_and_fifty_are_hard() {
    for size in [2u32, 3, 50] {
        let mut graph = WaitGraph::default();
        for node in 0..size {
            graph.add(LockQueue {
                granted: vec![((node + 1) % size, ModeSet::EMPTY.with(LockMode::RowUpdate))],
                waiters: vec![(node, LockMode::RowUpdate)],
            });
        }
        let Verdict::Hard(cycle) = graph.judge(0) else { panic!("a ring of {size} is a deadlock") };
        assert_eq!(cycle.len(), size as usize);
    }
}

/// DLK-3
#[test]
fn a_chain_of_ten_thousand_is_no_deadlock() {
    let mut graph = WaitGraph::default();
    for node in 0..10_000u32 {
        graph.add(LockQueue {
            granted: vec![(node + 1, ModeSet::EMPTY.with(LockMode::RowUpdate))],
            waiters: vec![(node, LockMode::RowUpdate)],
        });
    }
    assert_eq!(graph.judge(0), Verdict::NoCycle);
}

/// DLK-3: a queue of thousands is read once, not once for each of its waiters.
#[test]
fn a_long_queue_is_walked_once() {
    let waiters = (1..5_000u32).map(|n| (n, LockMode::RowUpdate)).chain([(0, LockMode::RowUpdate)]).collect();
    let mut graph = WaitGraph::default();
    graph.add(LockQueue { granted: vec![(5_000, ModeSet::EMPTY.with(LockMode::RowUpdate))], waiters });
    let mut seen = Seen::new();
    let listed: usize = (0..5_000).map(|n| graph.edges(n, &Orders::new(), &mut seen).len()).sum();
    assert!(listed <= 5_000, "{listed} edges");
    assert_eq!(graph.judge(0), Verdict::NoCycle);
}

/// PostgreSQL's deadlock-soft: two readers hold, two exclusives wait, and a reader that waits behind an exclusive closes a ring
/// only because of the order of the queue.
#[test]
fn a_soft_cycle_takes_no_victim() {
    let share = ModeSet::EMPTY.with(LockMode::AccessShare);
    let mut graph = WaitGraph::default();
    // d1 holds a1 shared, d2 holds a2 shared; e1 waits for a1 exclusively, e2 for a2; d1 waits for a2 behind e2, d2 (the newcomer) for a1 behind e1.
    let (d1, d2, e1, e2) = (1, 0, 2, 3);
    let a1 = graph.add(LockQueue {
        granted: vec![(d1, share)],
        waiters: vec![(e1, LockMode::AccessExclusive), (d2, LockMode::AccessShare)],
    });
    let a2 = graph.add(LockQueue {
        granted: vec![(d2, share)],
        waiters: vec![(e2, LockMode::AccessExclusive), (d1, LockMode::AccessShare)],
    });
    assert_ne!(a1, a2);
    // A waiter other than the newcomer moves ahead.
    assert_eq!(check(&graph), Verdict::Reorder(vec![(a2, vec![d1, e2])]));
}
