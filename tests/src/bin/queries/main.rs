//! Random queries over random schemas, judged by equivalences that must hold:
//! `queries CLEARWAY [--queries N] [--seed S] [--seconds N] [--schema N [--query N]] [--postgres PORT] [--pause FILE] [--failures N] [--dump]`.
//!
//! CLEARWAY is the program; it is started for the occasion, and a PostgreSQL 15 beside it, unless one listens at PORT (superuser postgres). Every 300
//! queries there is a new schema. `--schema` and `--query` replay one schema or one query of a seed; `--dump` prints the schema as SQL. While FILE exists
//! the program waits. It ends when N answers have differed. The long form is `--queries 1000000` on a release build, an hour or two on two processors. The
//! last line is `N passed, N failed`.
//!
//! # Structure
//! ```text
//! schema   a random schema          client   a session
//! types    types and literals       servers  the two servers
//! make     random statements        places   sessions with their settings, what a batch is
//!                                   judge    answers, and whether they agree
//! ```
//!
//! # Judges
//! 1. PostgreSQL 15, for every query and change.
//! 2. The same tables without secondary indexes (and in half of the schemas without keys).
//! 3. 64 kB of `work_mem` against 1 GB, and tables read in parts.
//! 4. The rows for which a condition is true, false and null are together all rows; so are groups by HAVING.
//! 5. Aggregates of a query are those of its rows behind OFFSET 0, and those with the condition as FILTER.
//! 6. A prepared statement gives the same by a plan for its values and by one for any.
//!
//! A statement that one side refuses with a class 22 or 21 (an overflow, a second row) is not judged where the other side goes on: what is evaluated
//! first is open. Neither is a statement that takes longer than 4 s. Both are counted.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test, no part of the database")]

mod client;
mod judge;
mod make;
mod places;
mod schema;
mod servers;
mod types;

use clearway_base::testkit::Rng;
use judge::{Told, Verdict};
use make::{Form, Maker, Statement};
use places::{Place, Sessions};
use schema::Schema;
use servers::{Scratch, Server};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Queries of one schema. After half of them the tables are analyzed.
const SCHEMA_QUERIES: u64 = 300;
const REPORT_EVERY: Duration = Duration::from_secs(60);

struct Options {
    clearway: PathBuf,
    queries: u64,
    seconds: u64,
    seed: u64,
    schema: Option<u64>,
    query: Option<u64>,
    postgres: Option<u16>,
    pause: Option<PathBuf>,
    failures: u64,
    dump: bool,
}

fn options() -> Result<Options, String> {
    let mut args = std::env::args().skip(1);
    let mut options = Options {
        clearway: args.next().ok_or("which program?")?.into(),
        queries: 1000,
        seconds: u64::MAX,
        seed: 1,
        schema: None,
        query: None,
        postgres: None,
        pause: None,
        failures: u64::MAX,
        dump: false,
    };
    while let Some(arg) = args.next() {
        if arg == "--dump" {
            options.dump = true;
            continue;
        }
        let value = args.next().ok_or(format!("{arg} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|err| format!("{arg} {value}: {err}"));
        match arg.as_str() {
            "--queries" => options.queries = number()?,
            "--seconds" => options.seconds = number()?,
            "--seed" => options.seed = number()?,
            "--schema" => options.schema = Some(number()?),
            "--query" => options.query = Some(number()?),
            "--failures" => options.failures = number()?,
            "--postgres" => options.postgres = Some(value.parse().map_err(|err| format!("{arg} {value}: {err}"))?),
            "--pause" => options.pause = Some(value.into()),
            _ => return Err(format!("unknown option {arg}")),
        }
    }
    Ok(options)
}

/// The seed of one schema, or of one query of it.
fn seed_of(seed: u64, schema: u64, query: u64) -> u64 {
    let mut mixed = Rng::new(seed ^ Rng::new(schema ^ Rng::new(query).next_u64()).next_u64());
    mixed.next_u64()
}

#[derive(Default)]
struct Counts {
    passed: u64,
    failed: u64,
    not_judged: u64,
    late: u64,
    /// What both servers refused: how often, by SQLSTATE, with one of the messages.
    refused: BTreeMap<String, (u64, String)>,
    /// Answers with rows.
    filled: u64,
}

impl Counts {
    fn refusals(&self) -> u64 {
        self.refused.values().map(|(times, _)| times).sum()
    }
}

/// A run: servers, sessions, the schema at hand, and what was counted.
struct Run {
    options: Options,
    scratch: Scratch,
    clearway: Server,
    starts: u64,
    _postgres: Option<Server>,
    sessions: Sessions,
    number: u64,
    schema: Schema,
    counts: Counts,
    began: Instant,
    paused: Duration,
    reported: Instant,
}

fn main() -> ExitCode {
    let run = options().and_then(Run::start).and_then(Run::whole);
    match run {
        Ok(counts) => {
            println!("{} not judged: an error on one side, or {} of them too late", counts.not_judged, counts.late);
            for (state, (times, message)) in &counts.refused {
                println!("{times} refused alike: {state}, such as {message}");
            }
            println!("{} passed, {} failed", counts.passed, counts.failed);
            if counts.failed > 0 || counts.passed == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
        }
        Err(wrong) => {
            println!("queries: {wrong}\n0 passed, 1 failed");
            ExitCode::FAILURE
        }
    }
}

impl Run {
    fn start(options: Options) -> Result<Run, String> {
        let scratch = Scratch::new()?;
        let postgres = match options.postgres {
            Some(_) => None,
            None => Some(servers::postgres(&scratch)?),
        };
        let port = options.postgres.or(postgres.as_ref().map(|server| server.port)).ok_or("no PostgreSQL")?;
        let clearway = servers::clearway(&scratch, &options.clearway, 0)?;
        let sessions = Sessions::open(port, clearway.port).map_err(|gone| gone.0)?;
        let (began, counts) = (Instant::now(), Counts::default());
        let schema = Schema::random(&mut Rng::new(0));
        let _postgres = postgres;
        Ok(Run {
            options,
            scratch,
            clearway,
            starts: 0,
            _postgres,
            sessions,
            number: 0,
            schema,
            counts,
            began,
            paused: Duration::ZERO,
            reported: began,
        })
    }

    fn whole(mut self) -> Result<Counts, String> {
        let mut done = 0;
        let mut schema = self.options.schema.unwrap_or(0);
        while done < self.options.queries && !self.is_over() {
            let queries = if self.prepare(schema)? { SCHEMA_QUERIES } else { 0 };
            for query in 0..queries {
                self.pause();
                if done >= self.options.queries || self.is_over() {
                    break;
                }
                if query == SCHEMA_QUERIES / 2 {
                    self.analyze();
                }
                if self.options.query.is_none_or(|wanted| wanted == query) {
                    self.one(query)?;
                    done += 1;
                }
            }
            if self.options.schema.is_some() {
                break;
            }
            schema += 1;
        }
        self.report();
        Ok(std::mem::take(&mut self.counts))
    }

    fn is_over(&self) -> bool {
        let worked = self.began.elapsed();
        worked.as_secs() >= self.options.seconds || self.counts.failed >= self.options.failures
    }

    fn pause(&mut self) {
        let began = Instant::now();
        while self.options.pause.as_ref().is_some_and(|file| file.exists()) && !self.is_over() {
            std::thread::sleep(Duration::from_millis(500));
        }
        self.paused += began.elapsed();
        if self.reported.elapsed() > REPORT_EVERY {
            self.report();
        }
    }

    fn report(&mut self) {
        self.reported = Instant::now();
        let Counts { passed, failed, not_judged, filled, .. } = self.counts;
        let errors = self.counts.refusals();
        let all = passed + failed + not_judged;
        let seconds = (self.began.elapsed() - self.paused).as_secs_f64();
        println!(
            "{all} queries of {} schemas in {seconds:.0} s, {:.0} a second: {failed} failed, {not_judged} not judged, {errors} refused alike, {filled} with rows",
            self.number + 1 - self.options.schema.unwrap_or(0),
            all as f64 / seconds
        );
    }

    /// Makes the schema of that number everywhere; false: one of the places refuses it, which is told and counted.
    fn prepare(&mut self, number: u64) -> Result<bool, String> {
        self.number = number;
        let mut rng = Rng::new(seed_of(self.options.seed, number, u64::MAX));
        self.schema = Schema::random(&mut rng);
        let wrong = self.sessions.make(&self.schema).map_err(|gone| gone.0)?;
        if let Some(wrong) = wrong {
            self.counts.failed += 1;
            println!("--- seed {}, schema {number}: {wrong}", self.options.seed);
            return Ok(false);
        }
        for n in 0..rng.below(4) {
            let view = Maker::new(rng.fork(), &self.schema).view(&format!("v{n}"));
            let create = format!("create view {} as {}", view.name, view.sql);
            let mut states = Vec::new();
            for place in [Place::Postgres, Place::Indexed, Place::Bare] {
                let told = self.sessions.ask(place, &create).map_err(|gone| format!("{}: {create}", gone.0))?;
                states.push(told.error.map(|(state, message)| format!("{state} {message}")));
            }
            if states[0].is_none() && states.iter().all(Option::is_none) {
                self.schema.views.push(view);
            } else if states[0].is_none() {
                self.counts.failed += 1;
                println!("seed {}, schema {number}: {create}\n  {states:?}", self.options.seed);
            }
        }
        if self.options.dump {
            println!("set search_path = i;");
            for statement in self.schema.statements("i", true) {
                println!("{statement};");
            }
        }
        Ok(true)
    }

    fn analyze(&mut self) {
        for place in [Place::Postgres, Place::Indexed, Place::Bare] {
            // A session that is gone is told with the next query.
            let _ = self.sessions.ask(place, "analyze");
        }
    }

    fn one(&mut self, query: u64) -> Result<(), String> {
        let mut rng = Rng::new(seed_of(self.options.seed, self.number, query));
        let statement = Maker::new(rng.fork(), &self.schema).statement();
        let (first, second) = places_of(&mut rng, &statement);
        let mut told = self.sessions.run(&statement, &first);
        if !second.is_empty() {
            told.extend(self.sessions.run(&statement, &second));
        }
        if told.iter().any(|(_, told)| told.is_err()) {
            return self.gone(query, &statement, &told);
        }
        let told: Vec<(Place, Told)> = told
            .into_iter()
            .flat_map(|(place, told)| told.unwrap_or_default().into_iter().map(move |told| (place, told)))
            .collect();
        let (_, reference) = &told[0];
        let verdicts: Vec<Verdict> = told.iter().map(|(_, told)| told.verdict(reference)).collect();
        if verdicts.contains(&Verdict::Different) {
            self.counts.failed += 1;
            self.tell(query, &statement);
            for (place, answer) in &told {
                println!("  {}: {}", place.name(), answer.shown(reference));
            }
        } else if verdicts.contains(&Verdict::NotJudged) {
            self.counts.not_judged += 1;
            self.counts.late += u64::from(told.iter().any(|(_, told)| told.is_late()));
        } else {
            self.counts.passed += 1;
            self.counts.filled += u64::from(reference.has_rows());
            if let Told::Error(state, message) = reference {
                self.counts.refused.entry(state.clone()).or_insert((0, message.clone())).0 += 1;
            }
        }
        if self.options.query.is_some() && !verdicts.contains(&Verdict::Different) {
            self.tell(query, &statement);
            told.iter()
                .for_each(|(place, answer)| println!("  {}: {}", place.name(), answer.shown(&Told::Rows(Vec::new()))));
        }
        Ok(())
    }

    /// The statement, what replays it, and the tables that it names.
    fn tell(&self, query: u64, statement: &Statement) {
        println!(
            "--- seed {0}, schema {1}, query {query} (--seed {0} --schema {1} --query {query})",
            self.options.seed, self.number
        );
        match &statement.form {
            Form::Same(all) => all.iter().for_each(|one| println!("{one};")),
            _ => println!("{};", types::plain(&statement.sql)),
        }
        for line in self.schema.definitions(&statement.sql) {
            println!("  {line};");
        }
    }

    /// A session has ended: that is told and counted, and all sessions of Clearway are opened anew; the server too, if it has ended.
    fn gone(
        &mut self,
        query: u64,
        statement: &Statement,
        told: &[(Place, Result<Vec<Told>, client::Gone>)],
    ) -> Result<(), String> {
        self.counts.failed += 1;
        self.tell(query, statement);
        for (place, told) in told {
            if let Err(client::Gone(why)) = told {
                println!("  {}: the session is gone: {why}", place.name());
            }
        }
        println!("{}", servers::log(&self.scratch, self.starts));
        std::thread::sleep(Duration::from_millis(200));
        if !self.clearway.lives() {
            self.starts += 1;
            self.clearway = servers::clearway(&self.scratch, &self.options.clearway, self.starts)?;
            self.sessions.reconnect(self.clearway.port).map_err(|gone| gone.0)?;
            return self.prepare(self.number).map(drop);
        }
        self.sessions.reconnect(self.clearway.port).map_err(|gone| gone.0)
    }
}

/// Where a statement runs, at once and afterwards: changes of one schema run one after the other.
fn places_of(rng: &mut Rng, statement: &Statement) -> (Vec<Place>, Vec<Place>) {
    let third = *rng.pick(&[Place::IndexedSmall, Place::Parts, Place::Prepared, Place::Prepared]);
    match &statement.form {
        Form::Query(_) => (vec![Place::Postgres, Place::Indexed, Place::Bare, third], Vec::new()),
        Form::Same(_) => (
            vec![*rng.pick(&[Place::Indexed, Place::IndexedSmall]), *rng.pick(&[Place::Parts, Place::Bare])],
            Vec::new(),
        ),
        Form::Change { bare: true, .. } => (vec![Place::Postgres, Place::Indexed, Place::Bare], vec![third]),
        Form::Change { .. } => {
            (vec![Place::Postgres, Place::Indexed], vec![*rng.pick(&[Place::Prepared, Place::IndexedSmall])])
        }
    }
}
