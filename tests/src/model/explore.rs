//! The search: breadth first over all interleavings, so that a trace found is a shortest one.
//!
//! States are remembered by a 64-bit fingerprint; at n states the chance that two of them share one is about n^2 / 2^65,
//! below one in ten million at a million states.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};

use super::engine::{Action, Engine, Violation};
use super::mutation::Planted;
use super::program::Scenario;
use super::state::State;

/// What a search has seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Coverage {
    /// Distinct states.
    pub states: usize,
    /// Actions taken.
    pub transitions: usize,
    /// States after a crash, before recovery.
    pub crashes: usize,
    /// States in which every session has finished and the log is durable.
    pub finished: usize,
    /// The longest shortest path.
    pub depth: usize,
}

/// Something that must not happen, with the way there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// What happened, action by action.
    pub steps: Vec<String>,
    /// What is wrong at the end.
    pub violation: String,
}

struct Search<'a> {
    scenario: &'a Scenario,
    planted: Planted,
    seed: u64,
    /// Per state: its parent's number, the action that led to it, and its depth.
    origins: Vec<(u32, Action, u16)>,
    seen: HashSet<u64, BuildHasherDefault<Identity>>,
    coverage: Coverage,
}

/// Explores everything.
///
/// # Errors
/// The shortest trace to something that must not happen.
pub fn explore(scenario: &Scenario, planted: Planted, seed: u64) -> Result<Coverage, Trace> {
    let mut search = Search {
        scenario,
        planted,
        seed,
        origins: vec![(0, Action::Flush, 0)],
        seen: HashSet::default(),
        coverage: Coverage::default(),
    };
    search.run()
}

impl Search<'_> {
    fn run(&mut self) -> Result<Coverage, Trace> {
        let mut engine = Engine::start(self.scenario, self.planted);
        let mut queue: VecDeque<(u32, State)> = VecDeque::from([(0, engine.state)]);
        self.seen.insert(self.fingerprint(&engine.state));
        let mut actions = Vec::new();
        while let Some((number, state)) = queue.pop_front() {
            self.count(&state, number);
            engine.state = state;
            engine.candidates(&mut actions);
            let mut progress = false;
            for &action in &actions {
                engine.state = state;
                let taken = engine.take(action).map_err(|violation| self.trace(number, Some(action), violation))?;
                if !taken {
                    continue;
                }
                progress |= !matches!(action, Action::Crash(_));
                self.coverage.transitions += 1;
                if self.seen.insert(self.fingerprint(&engine.state)) {
                    let depth = self.origins[number as usize].2 + 1;
                    queue.push_back((self.origins.len() as u32, engine.state));
                    self.origins.push((number, action, depth));
                }
            }
            engine.state = state;
            if let (false, Some(letter)) = (progress, engine.unfinished()) {
                // MODEL-4
                let stuck = Violation(format!("session {letter} waits for ever"));
                return Err(self.trace(number, None, stuck));
            }
        }
        Ok(self.coverage)
    }

    fn count(&mut self, state: &State, number: u32) {
        use super::state::{Life, Phase};
        let finished = state.sessions.iter().all(|session| session.phase == Phase::Done);
        self.coverage.states += 1;
        self.coverage.crashes += usize::from(state.life == Life::Down);
        self.coverage.finished +=
            usize::from(finished && state.synced_lsn == state.end_lsn() && state.life != Life::Down);
        self.coverage.depth = self.coverage.depth.max(self.origins[number as usize].2 as usize);
    }

    fn fingerprint(&self, state: &State) -> u64 {
        let mut hasher = Mix(self.seed);
        state.hash(&mut hasher);
        hasher.finish()
    }

    /// Goes the way to a state once more, in words.
    fn trace(&self, number: u32, last: Option<Action>, violation: Violation) -> Trace {
        let mut way: Vec<Action> = last.into_iter().collect();
        let mut at = number;
        while at != 0 {
            way.push(self.origins[at as usize].1);
            at = self.origins[at as usize].0;
        }
        let mut engine = Engine::start(self.scenario, self.planted);
        let mut steps = Vec::new();
        for &action in way.iter().rev() {
            engine.notes = Some(Vec::new());
            // The violation itself is known; here only the words count.
            let _ = engine.take(action);
            steps.push(engine.notes.take().unwrap_or_default().join("; "));
        }
        Trace { steps, violation: violation.0 }
    }
}

/// A fingerprint: each word is mixed in by a bijection of the 64-bit state.
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        let mixed = (self.0 ^ self.0 >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ mixed >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 29;
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }
}

/// Fingerprints are hashes already.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only fingerprints are stored");
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}
