//! The load generator: groups of clients that run scripts over the wire; the same code for every server.
//!
//! # Life of a run
//! connect and prepare (32 at a time) -> all start at once -> warm-up -> window -> stop: every client ends the pass it is in.
//! What ends within the window is counted; what was acknowledged at any time is counted apart, for the scenario's check.
//!
//! # Invariants
//! - LOAD-1: closed loop: a client has at most one statement under way, so the server is never asked for more than it answers;
//!   a pass that outlasts the window shows in the rate, not in the latencies.
//! - LOAD-2: no client is cut off in the middle of a statement: what it was told and what the table holds can be compared.
//!
//! # Errors
//! A statement that fails is counted by its SQLSTATE; its block is rolled back and the client goes on. A client that can't
//! connect, or loses its connection, ends; its reason is in the result.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, mpsc, watch};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Error, NoTls, Statement};

use crate::histogram::Histogram;
use crate::scenario::{Argument, Group, Step};

/// Clients that connect at the same time.
const CONNECTING: usize = 32;
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
    /// Passes per second within the window.
    pub rate: f64,
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
    config: Config,
    phase: Phase,
    connecting: Semaphore,
    begin: watch::Receiver<bool>,
}

/// Runs the groups' clients against one server; results in the groups' order.
///
/// # Errors
/// The passes that were under way at the stop did not end.
pub async fn drive(config: &Config, groups: &[Group], times: Times) -> Result<Vec<GroupResult>, String> {
    let (begin, begun) = watch::channel(false);
    let connecting = Semaphore::new(CONNECTING);
    let run = Arc::new(Run { config: config.clone(), phase: Phase::default(), connecting, begin: begun });
    let (ready, mut all_ready) = mpsc::unbounded_channel::<()>();
    let mut clients = tokio::task::JoinSet::new();
    for (at, group) in groups.iter().enumerate() {
        let script: Arc<[Step]> = group.script.clone().into();
        for number in 1..=group.clients {
            let (run, script, ready) = (run.clone(), script.clone(), ready.clone());
            clients.spawn(async move { (at, one_client(&run, &script, number, ready).await) });
        }
    }
    drop(ready);
    // Ends when every client is ready, or has failed: both drop their sender.
    while all_ready.recv().await.is_some() {}
    let _ = begin.send(true);
    tokio::time::sleep(times.warm_up).await;
    run.phase.set(WINDOW);
    let start = Instant::now();
    tokio::time::sleep(times.window).await;
    run.phase.set(STOP);
    let seconds = start.elapsed().as_secs_f64();
    let mut results: Vec<GroupResult> = groups
        .iter()
        .map(|group| GroupResult { name: group.name, least: u64::MAX, ..GroupResult::default() })
        .collect();
    let gather = async {
        while let Some(ended) = clients.join_next().await {
            let (at, one) = ended.map_err(|error| format!("a client of the load generator broke: {error}"))?;
            results[at].add(one);
        }
        Ok(())
    };
    let ended = tokio::time::timeout(PATIENCE, gather).await;
    ended.unwrap_or_else(|_| Err(format!("statements did not end within {} s of the stop", PATIENCE.as_secs())))?;
    for result in &mut results {
        result.rate = result.latency.total() as f64 / seconds;
    }
    Ok(results)
}

impl GroupResult {
    fn add(&mut self, one: OneClient) {
        self.latency.add(&one.latency);
        self.least = self.least.min(one.latency.total());
        self.most = self.most.max(one.latency.total());
        self.acknowledged += one.acknowledged;
        for (failure, count) in one.failures {
            *self.failures.entry(failure).or_default() += count;
        }
    }
}

/// What one client did.
#[derive(Default)]
struct OneClient {
    latency: Histogram,
    acknowledged: u64,
    failures: BTreeMap<String, u64>,
}

impl OneClient {
    fn failed(&mut self, error: &Error) {
        let what = error.code().map_or_else(|| error.to_string(), |code| code.code().to_owned());
        *self.failures.entry(what).or_default() += 1;
    }
}

async fn one_client(run: &Run, script: &[Step], number: u32, ready: mpsc::UnboundedSender<()>) -> OneClient {
    let mut done = OneClient::default();
    if let Err(error) = converse(run, script, number, ready, &mut done).await {
        done.failed(&error);
    }
    done
}

/// Connection and client in one task: a round trip costs no switch between tasks.
async fn converse(
    run: &Run,
    script: &[Step],
    number: u32,
    ready: mpsc::UnboundedSender<()>,
    done: &mut OneClient,
) -> Result<(), Error> {
    let turn = run.connecting.acquire().await;
    let (client, connection) = run.config.connect(NoTls).await?;
    tokio::pin!(connection);
    let work = async move {
        let mut prepared = Vec::with_capacity(script.len());
        for step in script {
            prepared.push(prepare(&client, step).await?);
        }
        drop(turn);
        drop(ready);
        let mut begin = run.begin.clone();
        let _ = begin.wait_for(|begun| *begun).await;
        passes(run, &client, &prepared, number, done).await
    };
    tokio::select! {
        biased;
        ended = work => {
            // The client is gone: the connection takes its leave of the server.
            let _ = connection.await;
            ended
        }
        lost = &mut connection => lost,
    }
}

/// A step that is ready to run.
enum Prepared<'a> {
    Run(Statement, &'a [Argument]),
    Sleep(Duration),
}

async fn prepare<'a>(client: &Client, step: &'a Step) -> Result<Prepared<'a>, Error> {
    match step {
        Step::Sleep(length) => Ok(Prepared::Sleep(*length)),
        Step::Run { sql, arguments } => {
            let types = vec![Type::INT4; arguments.len()];
            Ok(Prepared::Run(client.prepare_typed(sql, &types).await?, arguments))
        }
    }
}

/// Passes until the stop.
async fn passes(
    run: &Run,
    client: &Client,
    script: &[Prepared<'_>],
    number: u32,
    done: &mut OneClient,
) -> Result<(), Error> {
    let mut random = Random::new(number);
    // LOAD-1: the next pass begins when this one has ended. LOAD-2: the stop is looked at between passes only.
    while !run.phase.is(STOP) {
        let start = Instant::now();
        match pass(client, script, number, &mut random).await {
            Ok(()) => {
                done.acknowledged += 1;
                if run.phase.is(WINDOW) {
                    done.latency.record(start.elapsed().as_micros() as u64);
                }
            }
            Err(error) if error.code().is_some() && !error.is_closed() => {
                done.failed(&error);
                if script.len() > 1 {
                    client.batch_execute("ROLLBACK").await?;
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn pass(client: &Client, script: &[Prepared<'_>], number: u32, random: &mut Random) -> Result<(), Error> {
    for step in script {
        match step {
            Prepared::Sleep(length) => tokio::time::sleep(*length).await,
            Prepared::Run(statement, []) => drop(client.query(statement, &[]).await?),
            Prepared::Run(statement, arguments) => {
                let values: Vec<i32> = arguments.iter().map(|argument| random.value(*argument, number)).collect();
                let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
                client.query(statement, &values).await?;
            }
        }
    }
    Ok(())
}

/// xorshift64*; Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled" (2016).
struct Random(u64);

impl Random {
    fn new(number: u32) -> Self {
        Self(u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn value(&mut self, argument: Argument, number: u32) -> i32 {
        let (from, to) = match argument {
            Argument::Client => return number as i32,
            Argument::Any(from, to) => (i64::from(from), i64::from(to)),
        };
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let drawn = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        (from + ((drawn as i64 * (to - from + 1)) >> 32)) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stay_in_their_range_and_reach_its_ends() {
        let mut random = Random::new(3);
        let drawn: Vec<i32> = (0..1000).map(|_| random.value(Argument::Any(5, 9), 3)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&5), Some(&9)));
        assert_eq!(random.value(Argument::Client, 3), 3);
    }
}
