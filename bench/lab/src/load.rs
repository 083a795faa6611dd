//! The load generator: groups of clients that run scripts over the wire; the same code for every server.
//!
//! # Life of a run
//! connect and prepare (32 at a time) -> all start at once -> warm-up -> window -> stop: every client finishes its current pass.
//! Passes that end within the window are counted. All acknowledged changes are counted separately, for the scenario's check.
//!
//! # Invariants
//! - LOAD-1: closed loop: a client has at most one statement under way, so the load never exceeds what the server answers.
//!   A pass that outlasts the window lowers the rate and does not appear in the latencies.
//! - LOAD-2: no client is stopped in the middle of a statement. So the replies that it got can be compared with the table.
//!
//! # Errors
//! A statement that fails is counted by its SQLSTATE; its block is rolled back and the client goes on. A client that can't
//! connect, or loses its connection, ends; the reason is in the result.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, mpsc, watch};

use crate::histogram::Histogram;
use crate::scenario::{Argument, Group, Step};
use crate::usage::{Usage, usage_of};
use crate::wire::{Address, Client, Statement, WireError, with_client};

/// Clients that connect at the same time.
const CONNECTING: usize = 32;
/// Parts of the window in which passes are counted apart, to see whether the rate is steady.
const SLICES: usize = 10;
/// How long the last passes may take after the stop.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a run is.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Runs, but is not counted.
    pub warm_up: Duration,
    /// Is counted.
    pub window: Duration,
}

/// What a group of clients did.
#[derive(Clone, Debug, Default)]
pub struct GroupResult {
    /// The group's name.
    pub name: &'static str,
    /// Passes per second within the window, times the group's weight.
    pub rate: f64,
    /// The slowest tenth of the window in terms of the median one.
    pub steadiness: f64,
    /// Mean duration of each step of the script in microseconds, over all passes that ended.
    pub step_us: Vec<f64>,
    /// Latencies of these passes.
    pub latency: Histogram,
    /// The fewest passes of one client within the window.
    pub least: u64,
    /// The most.
    pub most: u64,
    /// Passes acknowledged at any time.
    pub acknowledged: u64,
    /// Failed statements by SQLSTATE, and lost clients by their reason.
    pub failures: BTreeMap<String, u64>,
}

/// The phases of a run, as the clients see them.
#[derive(Default)]
struct Phase(AtomicU8);

/// Anything else: the warm-up, with which every run begins.
const WINDOW: u8 = 1;
const STOP: u8 = 2;

impl Phase {
    fn set(&self, phase: u8) {
        self.0.store(phase, Ordering::Relaxed);
    }

    fn is(&self, phase: u8) -> bool {
        self.0.load(Ordering::Relaxed) == phase
    }
}

/// What all clients of a run share.
struct Run {
    address: Address,
    phase: Phase,
    /// When the window began, and how long it is.
    window: std::sync::OnceLock<Instant>,
    length: Duration,
    connecting: Semaphore,
    begin: watch::Receiver<bool>,
}

/// Runs the groups' clients against one server; results in the groups' order, and what the processes used within the window.
///
/// # Errors
/// The passes that were under way at the stop did not end.
pub async fn drive(
    address: &Address,
    groups: &[Group],
    times: Times,
    processes: &[u32],
) -> Result<(Vec<GroupResult>, Usage), String> {
    let (begin, begun) = watch::channel(false);
    let connecting = Semaphore::new(CONNECTING);
    let (phase, window) = (Phase::default(), std::sync::OnceLock::new());
    let run = Run { address: address.clone(), phase, window, length: times.window, connecting, begin: begun };
    let run = Arc::new(run);
    let (ready, mut all_ready) = mpsc::unbounded_channel::<()>();
    let mut clients = tokio::task::JoinSet::new();
    for (at, group) in groups.iter().enumerate() {
        let group = Arc::new(group.clone());
        for number in 1..=group.clients {
            let (run, group, ready) = (run.clone(), group.clone(), ready.clone());
            clients.spawn(async move { (at, one_client(&run, &group, number, ready).await) });
        }
    }
    drop(ready);
    // Ends when every client is ready, or has failed: both drop their sender.
    while all_ready.recv().await.is_some() {}
    let _ = begin.send(true);
    tokio::time::sleep(times.warm_up).await;
    let before = usage_of(processes);
    let start = *run.window.get_or_init(Instant::now);
    run.phase.set(WINDOW);
    tokio::time::sleep(times.window).await;
    run.phase.set(STOP);
    let seconds = start.elapsed().as_secs_f64();
    let used = usage_of(processes).since(&before);
    let mut results: Vec<Gathered> = groups.iter().map(|_| Gathered::default()).collect();
    let gather = async {
        while let Some(ended) = clients.join_next().await {
            let (at, one) = ended.map_err(|error| format!("a client of the load generator broke: {error}"))?;
            results[at].add(one);
        }
        Ok(())
    };
    let ended = tokio::time::timeout(PATIENCE, gather).await;
    ended.unwrap_or_else(|_| Err(format!("statements did not end within {} s of the stop", PATIENCE.as_secs())))?;
    let results = results.into_iter().zip(groups).map(|(gathered, group)| gathered.result(group, seconds));
    Ok((results.collect(), Usage { seconds, ..used }))
}

/// What the clients of a group did together.
#[derive(Default)]
struct Gathered {
    all: OneClient,
    least: Option<u64>,
    most: u64,
}

impl Gathered {
    fn add(&mut self, one: OneClient) {
        let passes = one.latency.total();
        self.least = Some(self.least.map_or(passes, |least| least.min(passes)));
        self.most = self.most.max(passes);
        self.all.add(one);
    }

    fn result(self, group: &Group, seconds: f64) -> GroupResult {
        let mut slices = self.all.slices;
        slices.sort_unstable();
        let middle = slices[SLICES / 2];
        let step_us = self.all.steps.iter().map(|(count, us)| *us as f64 / (*count).max(1) as f64).collect();
        GroupResult {
            name: group.name,
            rate: self.all.latency.total() as f64 * f64::from(group.weight) / seconds,
            steadiness: if middle == 0 { 0.0 } else { slices[0] as f64 / middle as f64 },
            step_us,
            least: self.least.unwrap_or(0),
            most: self.most,
            acknowledged: self.all.acknowledged * u64::from(group.weight),
            latency: self.all.latency,
            failures: self.all.failures,
        }
    }
}

/// What one client did, or several.
#[derive(Default)]
struct OneClient {
    latency: Histogram,
    slices: [u64; SLICES],
    /// Of each step: how many, and how long all together in microseconds.
    steps: Vec<(u64, u64)>,
    acknowledged: u64,
    failures: BTreeMap<String, u64>,
}

impl OneClient {
    fn failed(&mut self, error: &WireError) {
        let what = error.code.clone().unwrap_or_else(|| error.text.clone());
        *self.failures.entry(what).or_default() += 1;
    }

    fn add(&mut self, other: Self) {
        self.latency.add(&other.latency);
        for (mine, theirs) in self.slices.iter_mut().zip(other.slices) {
            *mine += theirs;
        }
        self.steps.resize(self.steps.len().max(other.steps.len()), (0, 0));
        for (mine, theirs) in self.steps.iter_mut().zip(other.steps) {
            *mine = (mine.0 + theirs.0, mine.1 + theirs.1);
        }
        self.acknowledged += other.acknowledged;
        for (failure, count) in other.failures {
            *self.failures.entry(failure).or_default() += count;
        }
    }
}

async fn one_client(run: &Run, group: &Group, number: u32, ready: mpsc::UnboundedSender<()>) -> OneClient {
    let mut done = OneClient { steps: vec![(0, 0); group.script.len()], ..OneClient::default() };
    // Taken before the connection, given back when the statements are prepared.
    let turn = run.connecting.acquire().await;
    let work = async |mut client: Client| {
        for statement in &group.prologue {
            client.command(statement).await?;
        }
        let mut prepared = Vec::with_capacity(group.script.len());
        for step in &group.script {
            prepared.push(prepare(&mut client, step).await?);
        }
        drop(turn);
        drop(ready);
        let mut begin = run.begin.clone();
        let _ = begin.wait_for(|begun| *begun).await;
        passes(run, &mut client, &prepared, number, &mut done).await
    };
    let address = group.role.map_or_else(|| run.address.clone(), |role| run.address.of_role(role));
    let ended = with_client(&address, work).await;
    if let Err(error) = ended {
        done.failed(&error);
    }
    done
}

/// A step that is ready to run.
enum Prepared<'a> {
    Run(Statement, &'a [Argument]),
    Sleep(Duration),
}

async fn prepare<'a>(client: &mut Client, step: &'a Step) -> Result<Prepared<'a>, WireError> {
    match step {
        Step::Sleep(length) => Ok(Prepared::Sleep(*length)),
        Step::Run { sql, arguments } => Ok(Prepared::Run(client.prepare(sql, arguments.len()).await?, arguments)),
    }
}

/// Passes until the stop.
async fn passes(
    run: &Run,
    client: &mut Client,
    script: &[Prepared<'_>],
    number: u32,
    done: &mut OneClient,
) -> Result<(), WireError> {
    let mut draw = Draw::new(number);
    // LOAD-1: the next pass begins when this one has ended. LOAD-2: the stop is looked at between passes only.
    while !run.phase.is(STOP) {
        let start = Instant::now();
        match pass(client, script, &mut draw, &mut done.steps).await {
            Ok(()) => {
                done.acknowledged += 1;
                if run.phase.is(WINDOW) {
                    done.latency.record(start.elapsed().as_micros() as u64);
                    done.slices[run.slice()] += 1;
                }
            }
            Err(error) if error.code.is_some() => {
                done.failed(&error);
                if script.len() > 1 {
                    client.command("ROLLBACK").await?;
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Run {
    /// Which tenth of the window it is.
    fn slice(&self) -> usize {
        let since = self.window.get().map_or(Duration::ZERO, Instant::elapsed);
        let share = since.as_secs_f64() / self.length.as_secs_f64();
        ((share * SLICES as f64) as usize).min(SLICES - 1)
    }
}

async fn pass(
    client: &mut Client,
    script: &[Prepared<'_>],
    draw: &mut Draw,
    steps: &mut [(u64, u64)],
) -> Result<(), WireError> {
    draw.passes += 1;
    let several = script.len() > 1;
    for (step, booked) in script.iter().zip(steps) {
        let start = several.then(Instant::now);
        match step {
            Prepared::Sleep(length) => tokio::time::sleep(*length).await,
            Prepared::Run(statement, []) => client.execute(statement, &[]).await?,
            Prepared::Run(statement, arguments) => {
                let values: Vec<i32> = arguments.iter().map(|argument| draw.value(*argument)).collect();
                client.execute(statement, &values).await?;
            }
        }
        if let Some(start) = start {
            *booked = (booked.0 + 1, booked.1 + start.elapsed().as_micros() as u64);
        }
    }
    Ok(())
}

/// A client's arguments. xorshift64*; Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled" (2016).
struct Draw {
    random: u64,
    number: u32,
    passes: i32,
}

impl Draw {
    fn new(number: u32) -> Self {
        Self { random: u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1, number, passes: 0 }
    }

    fn value(&mut self, argument: Argument) -> i32 {
        let (from, to) = match argument {
            Argument::Client => return self.number as i32,
            Argument::Unique { range, step } => {
                return (self.number as i32).wrapping_mul(range).wrapping_add(self.passes.wrapping_mul(step));
            }
            Argument::Any(from, to) => (i64::from(from), i64::from(to)),
        };
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        let drawn = self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        (from + ((drawn as i64 * (to - from + 1)) >> 32)) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stay_in_their_range_and_reach_its_ends() {
        let mut draw = Draw::new(3);
        let drawn: Vec<i32> = (0..1000).map(|_| draw.value(Argument::Any(5, 9))).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&5), Some(&9)));
        assert_eq!(draw.value(Argument::Client), 3);
    }
}
