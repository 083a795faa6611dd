//! A session of the lab: measures servers x variants x points x repeats, interleaved.
//!
//! # Invariants
//! - LAB-2 (see the crate) follows from the order of the loops below. The order of the servers rotates with each repeat, so that no server
//!   is always the first after the measurement of the limit, or always after the same other server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::books::Books;
use crate::load::{GroupResult, Times, drive};
use crate::outcome::{GroupFacts, LimitFacts, Outcome, RunFacts, ServerFacts, label};
use crate::report::grouped;
use crate::scenario::{Flavour, Limit, Measure, Point, Scenario};
use crate::server::{Kind, Launch, Server};
use crate::usage::Usage;
use crate::{LabError, limit, machine};

/// Equal runs below which a median and a spread say nothing.
pub const LEAST_REPEATS: u32 = 3;
/// How long the limit is measured in each repeat.
const LIMIT_WINDOW: Duration = Duration::from_millis(500);

/// How long the table may take to show what was acknowledged: a commit that waived its sync is read once that has happened.
const SETTLING: Duration = Duration::from_secs(2);

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Request {
    /// The servers to take part, as given: see [`Kind::parse_list`].
    pub against: Vec<String>,
    /// Seconds of each run; the warm-up before it is a quarter of that.
    pub seconds: f64,
    /// Points of the x axis; empty: the scenario's.
    pub points: Vec<u32>,
    /// Equal runs; below [`LEAST_REPEATS`] there is no spread to show.
    pub repeats: u32,
    /// The `clearway` binary.
    pub clearway: PathBuf,
    /// This program: it is also the server that only speaks the protocol.
    pub this: PathBuf,
    /// Files whose lock (flock) is held, in this order, while the servers take their turns at a point: between points other work on
    /// the machine that takes the same lock can go on.
    pub locks: Vec<PathBuf>,
    /// Servers take part whose durability or isolation is another one.
    pub accept_unequal: bool,
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
                _ = interrupt.recv() => "SIGINT",
                _ = terminate.recv() => "SIGTERM",
            }
        };
        tokio::select! {
            outcome = session(scenario, request, &scratch, say) => outcome,
            name = stop => Err(LabError::Interrupted(name)),
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
    let mut points = if request.points.is_empty() { scenario.points().to_vec() } else { request.points.clone() };
    points.sort_unstable();
    points.dedup();
    let sessions = |&x: &u32| {
        let at = Point { x, variant: scenario.variants()[0] };
        scenario.load(Flavour::Clearway, at).iter().map(|group| group.clients).sum::<u32>()
    };
    let most = points.iter().map(sessions).max().unwrap_or(1).max(10);
    let mut outcome = Outcome {
        scenario: scenario.name().to_owned(),
        title: scenario.title().to_owned(),
        about: scenario.about().to_owned(),
        remarks: scenario.remarks().to_owned(),
        unit: scenario.unit().to_owned(),
        axis: scenario.axis().to_owned(),
        measure: scenario.measure(),
        when: machine::now(),
        machine: machine::describe(&scratch.0),
        command: request.command.clone(),
        seconds: request.seconds,
        repeats: request.repeats.max(1),
        points,
        variants: scenario.variants().iter().map(|variant| (*variant).to_owned()).collect(),
        servers: Vec::new(),
        absent: Vec::new(),
        runs: Vec::new(),
        limit: None,
    };
    if machine::file_system_of(&scratch.0).as_deref() == Some("tmpfs") {
        say("WARNING: the scratch directory is in memory: syncs cost nothing there; --scratch DIR names another");
    }
    let launch = Launch {
        clearway: request.clearway.clone(),
        this: request.this.clone(),
        scratch: scratch.0.clone(),
        clients: most,
        accept_unequal: request.accept_unequal,
    };
    let servers = start_all(scenario, request, &launch, &mut outcome, say).await?;
    measure(scenario, &servers, request, scratch, &mut outcome, say).await?;
    Ok(outcome)
}

/// Starts and fills every server; a server that can't take part is named in the outcome.
async fn start_all(
    scenario: &dyn Scenario,
    request: &Request,
    launch: &Launch,
    outcome: &mut Outcome,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<Vec<Server>, LabError> {
    let mut servers: Vec<Server> = Vec::new();
    let mut kinds = Kind::parse_list(&request.against)?;
    if scenario.limits().contains(&Limit::Wire) {
        kinds.push(Kind::WireOnly);
    }
    for kind in kinds {
        let started = Server::start(&kind, launch).await;
        let filled = match started {
            Ok(server) if server.flavour == Flavour::WireOnly => Ok(server),
            Ok(server) => server.run(&scenario.setup(server.flavour)).await.map(|()| server),
            Err(error) => Err(error),
        };
        match filled {
            Ok(server) => {
                let is_limit = server.flavour == Flavour::WireOnly;
                say(&format!("{}: {}", server.name, if is_limit { "speaks the protocol" } else { &server.version }));
                let (name, version) = (server.name.clone(), server.version.clone());
                outcome.servers.push(ServerFacts { name, version, settings: server.settings.clone(), is_limit });
                servers.push(server);
            }
            Err(error) => {
                say(&format!("NOT MEASURED: {error}"));
                outcome.absent.push(error.to_string());
            }
        }
    }
    if servers.iter().all(|server| server.flavour == Flavour::WireOnly) { Err(LabError::Nobody) } else { Ok(servers) }
}

async fn measure(
    scenario: &dyn Scenario,
    servers: &[Server],
    request: &Request,
    scratch: &Scratch,
    outcome: &mut Outcome,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<(), LabError> {
    let window = Duration::from_secs_f64(outcome.seconds);
    let times = Times { warm_up: window / 4, window };
    let runs = outcome.repeats as usize * outcome.points.len() * scenario.variants().len() * servers.len();
    // LAB-2
    for repeat in 1..=outcome.repeats {
        measure_limit(scenario, request, scratch, outcome, say).await?;
        for x in outcome.points.clone() {
            let alone = Alone::wait(&request.locks).await?;
            for &variant in scenario.variants() {
                for turn in 0..servers.len() {
                    let server = &servers[(turn + repeat as usize) % servers.len()];
                    let mut facts = one_run(scenario, server, Point { x, variant }, times).await;
                    facts.repeat = repeat;
                    let found = match (&facts.failed, facts.groups.first()) {
                        (Some(reason), _) => format!("DOES NOT COUNT: {reason}"),
                        (None, Some(group)) => {
                            format!("{} {}, p99 {:.2} ms", grouped(facts.value), outcome.unit, group.p99_ms)
                        }
                        (None, None) => format!("{} {}", grouped(facts.value), outcome.unit),
                    };
                    outcome.runs.push(facts);
                    let (done, name) = (outcome.runs.len(), label(&server.name, variant));
                    say(&format!("[{done}/{runs}] {name} at {x} {}, run {repeat}: {found}", outcome.axis));
                }
            }
            drop(alone);
        }
    }
    Ok(())
}

/// Measures a limit that is one figure.
async fn measure_limit(
    scenario: &dyn Scenario,
    request: &Request,
    scratch: &Scratch,
    outcome: &mut Outcome,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<(), LabError> {
    let Some(limit) = scenario.limits().iter().find(|limit| **limit != Limit::Wire) else { return Ok(()) };
    let _alone = Alone::wait(&request.locks).await?;
    let (name, drawn, rate) = match limit {
        Limit::Syncs => ("fdatasync, one after the other", true, limit::syncs(&scratch.0, LIMIT_WINDOW)?),
        Limit::Switches | Limit::Wire => {
            let rate = limit::switches(LIMIT_WINDOW);
            ("context switches of 1,024 threads that do nothing but take turns at 128 locks", false, rate)
        }
    };
    let facts = outcome.limit.get_or_insert_with(|| LimitFacts { name: name.to_owned(), rates: Vec::new(), drawn });
    facts.rates.push(rate);
    say(&format!("limit: {rate:.0}/s ({name})"));
    Ok(())
}

/// Holds locks until it is dropped.
struct Alone {
    _files: Vec<std::fs::File>,
}

impl Alone {
    async fn wait(paths: &[PathBuf]) -> Result<Self, LabError> {
        let paths = paths.to_vec();
        let waited = tokio::task::spawn_blocking(move || {
            let mut files = Vec::new();
            for path in &paths {
                let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
                let file = file.map_err(LabError::file(path))?;
                let locked = rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive);
                locked.map_err(|error| LabError::file(path)(error.into()))?;
                files.push(file);
            }
            Ok(Self { _files: files })
        });
        waited.await.unwrap_or(Err(LabError::Interrupted("the end of a thread")))
    }
}

async fn one_run(scenario: &dyn Scenario, server: &Server, at: Point, times: Times) -> RunFacts {
    let mut facts =
        RunFacts { server: server.name.clone(), variant: at.variant.to_owned(), x: at.x, ..RunFacts::default() };
    if let Err(reason) = try_run(scenario, server, at, times, &mut facts).await {
        facts.failed = Some(reason);
    }
    facts
}

async fn try_run(
    scenario: &dyn Scenario,
    server: &Server,
    at: Point,
    times: Times,
    facts: &mut RunFacts,
) -> Result<(), String> {
    if server.flavour != Flavour::WireOnly {
        server.run(&scenario.reset(server.flavour, at)).await.map_err(|error| error.to_string())?;
    }
    if scenario.measure() == Measure::Answer {
        let answer = server.ask(&scenario.question(server.flavour)).await.map_err(|error| error.to_string())?;
        facts.value = answer.parse::<f64>().map_err(|_| format!("{answer} is no number"))? / f64::from(at.x);
        return Ok(());
    }
    let pids = server.pids();
    let before = Books::of(server).await;
    let (results, used) = drive(&server.address, &scenario.load(server.flavour, at), times, &pids).await?;
    facts.groups = results.iter().map(group_facts).collect();
    verdict(scenario, server, &results).await?;
    let first = results.first().ok_or("no group")?;
    if !pids.is_empty() {
        book_usage(facts, first, &used);
    }
    if let (Some(before), Some(after)) = (before, Books::of(server).await) {
        let share = times.window.as_secs_f64() / (times.warm_up + times.window).as_secs_f64();
        after.book(before, share, first.latency.total().max(1) as f64, facts);
    }
    facts.value = match scenario.measure() {
        Measure::Rate | Measure::Answer => first.rate,
        Measure::P99 => first.latency.quantile_us(0.99) as f64 / 1000.0,
        Measure::SwitchesPerPass => {
            let (voluntary, involuntary) = facts.switches.ok_or("its processes are not the lab's")?;
            voluntary + involuntary
        }
        Measure::StepShare { of, to } => match (first.step_us.get(of), first.step_us.get(to)) {
            (Some(of), Some(to)) if *to > 0.0 => of / to,
            _ => return Err("a step that is to be compared did not run".to_owned()),
        },
    };
    Ok(())
}

fn book_usage(facts: &mut RunFacts, first: &GroupResult, used: &Usage) {
    let passes = first.latency.total().max(1) as f64;
    facts.cpu_us = Some(used.cpu_us as f64 / passes);
    facts.switches = Some((used.voluntary as f64 / passes, used.involuntary as f64 / passes));
}

/// LAB-3: a run counts if something happened and the table holds what was acknowledged.
async fn verdict(scenario: &dyn Scenario, server: &Server, results: &[GroupResult]) -> Result<(), String> {
    let measured = results.first().ok_or("no group")?;
    if let Some((reason, count)) = measured.failures.iter().find(|(code, _)| !is_sqlstate(code)) {
        return Err(format!("{count} clients lost: {reason}{}", server.log_end()));
    }
    // Of a step's duration one pass tells enough, wherever it ended.
    let enough = if matches!(scenario.measure(), Measure::StepShare { .. }) {
        measured.acknowledged
    } else {
        measured.latency.total()
    };
    if enough == 0 {
        let failures: Vec<&str> = measured.failures.keys().map(String::as_str).collect();
        return Err(format!("nothing ended within the window ({}){}", failures.join(", "), server.log_end()));
    }
    if let Some(check) = scenario.check().filter(|_| server.flavour != Flavour::WireOnly) {
        let told: u64 = results.iter().filter(|group| group.name == check.group).map(|group| group.acknowledged).sum();
        let began = std::time::Instant::now();
        loop {
            let found = server.ask(check.sql).await.map_err(|error| error.to_string())?;
            if found.parse() == Ok(told) {
                break;
            }
            // Commits that no session waited for show a flush later.
            if began.elapsed() > SETTLING {
                return Err(format!("{told} acknowledged, but {} says {found}", check.sql));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
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
        steadiness: result.steadiness,
        step_ms: result.step_us.iter().map(|us| us / 1000.0).collect(),
        least_most: (result.least, result.most),
        failures: result.failures.iter().map(|(what, count)| (what.clone(), *count)).collect(),
    }
}
