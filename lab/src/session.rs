//! A session: servers x client counts x repeats, interleaved.
//!
//! # Invariants
//! - LAB-2 of the crate: the order of the loops below, and the servers' order turns with each repeat, so that none is always
//!   the first after the limit's measurement or after another one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::load::{GroupResult, Times, drive};
use crate::outcome::{GroupFacts, Outcome, RunFacts, ServerFacts};
use crate::scenario::{Limit, Scenario};
use crate::server::{Kind, Launch, Server};
use crate::{LabError, limit, machine};

/// Equal runs below which a median and a spread say nothing.
pub const LEAST_REPEATS: u32 = 3;
/// How long the limit is measured in each repeat.
const LIMIT_WINDOW: Duration = Duration::from_millis(500);

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Request {
    /// Whom to ask for, as given: see [`Kind::parse`].
    pub against: Vec<String>,
    /// Seconds of each run; the warm-up before it is a quarter of that.
    pub seconds: f64,
    /// Client counts; empty: the scenario's.
    pub clients: Vec<u32>,
    /// Equal runs; below [`LEAST_REPEATS`] there is no spread to show.
    pub repeats: u32,
    /// The `clearway` binary.
    pub clearway: PathBuf,
    /// A directory on the device that is to be measured; what the lab makes there it removes.
    pub scratch: PathBuf,
    /// The command line, for the report.
    pub command: String,
}

/// Runs a scenario; `say` gets a line for every step.
///
/// # Errors
/// No server takes part, the scratch directory can't be used, or a signal came. What a server does wrong later is part of the
/// outcome.
pub fn run(
    scenario: &'static dyn Scenario,
    request: &Request,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<Outcome, LabError> {
    raise_file_limit();
    let scratch = Scratch::new(&request.scratch)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(LabError::file(Path::new("the load generator's threads")))?;
    runtime.block_on(async {
        let stop = async {
            let on = |kind| signal(kind).ok();
            let (Some(mut interrupt), Some(mut terminate)) = (on(SignalKind::interrupt()), on(SignalKind::terminate()))
            else {
                return std::future::pending().await;
            };
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        };
        tokio::select! {
            outcome = session(scenario, request, &scratch, say) => outcome,
            () = stop => Err(LabError::Interrupted),
        }
    })
}

/// A directory that is removed with all that is in it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(parent: &Path) -> Result<Self, LabError> {
        let dir = parent.join(format!("clearway-lab-{}", std::process::id()));
        std::fs::create_dir_all(&dir).map_err(LabError::file(&dir))?;
        dir.canonicalize().map(Self).map_err(LabError::file(&dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Thousands of clients need more descriptors than most shells allow; servers inherit the limit.
fn raise_file_limit() {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, limit);
}

async fn session(
    scenario: &'static dyn Scenario,
    request: &Request,
    scratch: &Scratch,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<Outcome, LabError> {
    let mut clients = if request.clients.is_empty() { scenario.clients().to_vec() } else { request.clients.clone() };
    clients.sort_unstable();
    clients.dedup();
    let sessions = |&clients: &u32| scenario.load(clients).iter().map(|group| group.clients).sum::<u32>();
    let most = clients.iter().map(sessions).max().unwrap_or(1);
    let mut outcome = Outcome {
        scenario: scenario.name().to_owned(),
        title: scenario.title().to_owned(),
        about: scenario.about().to_owned(),
        unit: scenario.unit().to_owned(),
        when: machine::now(),
        machine: machine::describe(&scratch.0),
        command: request.command.clone(),
        seconds: request.seconds,
        repeats: request.repeats.max(1),
        clients,
        ..Outcome::default()
    };
    if machine::file_system_of(&scratch.0).as_deref() == Some("tmpfs") {
        say("WARNING: the scratch directory is in memory: syncs cost nothing there; --scratch DIR names another");
    }
    let launch = Launch { clearway: request.clearway.clone(), scratch: scratch.0.clone(), clients: most };
    let servers = start_all(scenario, request, &launch, &mut outcome, say).await?;
    measure(scenario, &servers, scratch, &mut outcome, say).await?;
    Ok(outcome)
}

/// Starts and fills every server; who can't take part is named in the outcome.
async fn start_all(
    scenario: &dyn Scenario,
    request: &Request,
    launch: &Launch,
    outcome: &mut Outcome,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<Vec<Server>, LabError> {
    let mut servers: Vec<Server> = Vec::new();
    for name in &request.against {
        let started = match Kind::parse(name) {
            Ok(kind) => Server::start(&kind, launch).await,
            Err(unknown @ LabError::Unknown { .. }) => return Err(unknown),
            Err(absent) => Err(absent),
        };
        let filled = match started {
            Ok(server) => server.run(&scenario.setup()).await.map(|()| server),
            Err(error) => Err(error),
        };
        match filled {
            Ok(server) => {
                say(&format!("{}: {}", server.name, server.version));
                let (name, version) = (server.name.clone(), server.version.clone());
                outcome.servers.push(ServerFacts { name, version, settings: server.settings.clone() });
                servers.push(server);
            }
            Err(error) => {
                say(&format!("NOT MEASURED: {error}"));
                outcome.absent.push(error.to_string());
            }
        }
    }
    if servers.is_empty() { Err(LabError::Nobody) } else { Ok(servers) }
}

async fn measure(
    scenario: &dyn Scenario,
    servers: &[Server],
    scratch: &Scratch,
    outcome: &mut Outcome,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<(), LabError> {
    let window = Duration::from_secs_f64(outcome.seconds);
    let times = Times { warm_up: window / 4, window };
    let runs = outcome.repeats as usize * outcome.clients.len() * servers.len();
    // LAB-2
    for repeat in 1..=outcome.repeats {
        if scenario.limit() == Some(Limit::Syncs) {
            let rate = limit::syncs(&scratch.0, LIMIT_WINDOW)?;
            let (_, rates) =
                outcome.limit.get_or_insert_with(|| ("fdatasync, one after the other".to_owned(), Vec::new()));
            rates.push(rate);
            say(&format!("limit: {rate:.0} fdatasync/s"));
        }
        for clients in outcome.clients.clone() {
            for turn in 0..servers.len() {
                let server = &servers[(turn + repeat as usize) % servers.len()];
                let facts = one_run(scenario, server, clients, repeat, times).await;
                let found = match (&facts.failed, facts.groups.first()) {
                    (Some(reason), _) => format!("DOES NOT COUNT: {reason}"),
                    (None, Some(group)) => format!("{:.0} {}, p99 {:.2} ms", group.rate, outcome.unit, group.p99_ms),
                    (None, None) => "nothing".to_owned(),
                };
                outcome.runs.push(facts);
                let done = outcome.runs.len();
                say(&format!("[{done}/{runs}] {} with {clients} clients, run {repeat}: {found}", server.name));
            }
        }
    }
    Ok(())
}

async fn one_run(scenario: &dyn Scenario, server: &Server, clients: u32, repeat: u32, times: Times) -> RunFacts {
    let mut facts = RunFacts { server: server.name.clone(), clients, repeat, ..RunFacts::default() };
    if let Err(error) = server.run(&scenario.reset()).await {
        facts.failed = Some(error.to_string());
        return facts;
    }
    let results = match drive(&server.config, &scenario.load(clients), times).await {
        Ok(results) => results,
        Err(reason) => {
            facts.failed = Some(reason);
            return facts;
        }
    };
    facts.failed = verdict(scenario, server, &results).await.err();
    facts.groups = results.iter().map(group_facts).collect();
    facts
}

/// LAB-3: a run counts if something happened and the table holds what was acknowledged.
async fn verdict(scenario: &dyn Scenario, server: &Server, results: &[GroupResult]) -> Result<(), String> {
    let measured = results.first().ok_or("no group")?;
    if let Some((reason, count)) = measured.failures.iter().find(|(code, _)| !is_sqlstate(code)) {
        return Err(format!("{count} clients lost: {reason}{}", server.log_end()));
    }
    if measured.latency.total() == 0 {
        let failures: Vec<&str> = measured.failures.keys().map(String::as_str).collect();
        return Err(format!("nothing ended within the window ({}){}", failures.join(", "), server.log_end()));
    }
    if let Some(check) = scenario.check() {
        let told: u64 = results.iter().filter(|group| group.name == check.group).map(|group| group.acknowledged).sum();
        let found = server.ask(check.sql).await.map_err(|error| error.to_string())?;
        if found.parse() != Ok(told) {
            return Err(format!("{told} acknowledged, but {} says {found}", check.sql));
        }
    }
    Ok(())
}

fn is_sqlstate(code: &str) -> bool {
    code.len() == 5 && code.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

fn group_facts(result: &GroupResult) -> GroupFacts {
    let ms = |us: u64| us as f64 / 1000.0;
    GroupFacts {
        name: result.name.to_owned(),
        rate: result.rate,
        p50_ms: ms(result.latency.quantile_us(0.5)),
        p99_ms: ms(result.latency.quantile_us(0.99)),
        greatest_ms: ms(result.latency.greatest_us()),
        least_most: (result.least, result.most),
        failures: result.failures.iter().map(|(what, count)| (what.clone(), *count)).collect(),
    }
}
