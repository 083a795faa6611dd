//! Where a statement runs: the servers, the schemas in them, and the settings of the sessions.

use crate::client::{Answer, Gone, Session};
use crate::judge::Told;
use crate::make::{Form, Statement};
use crate::schema::Schema;
use crate::types;

/// Tables of a few pages are read in parts, by helpers too.
const IN_PARTS: &str =
    "-c max_parallel_workers_per_gather=3 -c min_parallel_table_scan_size=0 -c force_parallel_mode=on";

/// A session with its settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Postgres,
    /// With indexes and much memory.
    Indexed,
    /// Without secondary indexes, and with so little memory that sorts, hash tables and groups go to files.
    Bare,
    /// With indexes and little memory.
    IndexedSmall,
    /// Without secondary indexes, in parts.
    Parts,
    /// By a plan for the values at hand, and by one for any values.
    Prepared,
}

const PLACES: [Place; 6] =
    [Place::Postgres, Place::Indexed, Place::Bare, Place::IndexedSmall, Place::Parts, Place::Prepared];

impl Place {
    pub fn name(self) -> &'static str {
        match self {
            Place::Postgres => "PostgreSQL",
            Place::Indexed => "with indexes, 1 GB",
            Place::Bare => "without indexes, 64 kB",
            Place::IndexedSmall => "with indexes, 64 kB",
            Place::Parts => "in parts",
            Place::Prepared => "prepared",
        }
    }

    fn schema(self) -> &'static str {
        match self {
            Place::Bare | Place::Parts => "n",
            _ => "i",
        }
    }

    fn options(self) -> String {
        let memory = match self {
            Place::Bare | Place::IndexedSmall => "64kB",
            _ => "1GB",
        };
        let more = if self == Place::Parts { IN_PARTS } else { "" };
        format!(
            "-c search_path={} -c work_mem={memory} -c statement_timeout=4s -c client_min_messages=error {more}",
            self.schema()
        )
    }

    /// The statements of a batch, and which answers count; the second list is that of another plan, which has to give the same.
    fn batch(self, statement: &Statement) -> (Vec<String>, Vec<usize>, Vec<usize>) {
        let plain = types::plain(&statement.sql);
        let after = match &statement.form {
            Form::Change { tables, .. } => tables.iter().map(|table| format!("select * from {table}")).collect(),
            _ => Vec::new(),
        };
        let whole = |run: String, out: &mut Vec<String>| {
            if after.is_empty() {
                out.push(run);
                return vec![out.len() - 1];
            }
            out.push("begin".to_owned());
            let first = out.len();
            out.push(run);
            out.extend(after.iter().cloned());
            out.push("rollback".to_owned());
            (first..out.len() - 1).collect()
        };
        let mut out = Vec::new();
        match (&statement.form, self) {
            (Form::Same(all), _) => (all.clone(), (0..all.len()).collect(), Vec::new()),
            (_, Place::Prepared) => {
                let (text, types, values) = types::parameters(&statement.sql);
                let in_brackets =
                    |list: &[String]| if list.is_empty() { String::new() } else { format!("({})", list.join(", ")) };
                let execute = format!("execute p{}", in_brackets(&values));
                out.push(format!("prepare p{} as {text}", in_brackets(&types)));
                out.push("set plan_cache_mode = force_custom_plan".to_owned());
                let custom = whole(execute.clone(), &mut out);
                out.push("set plan_cache_mode = force_generic_plan".to_owned());
                let generic = whole(execute, &mut out);
                out.push("deallocate all".to_owned());
                (out, custom, generic)
            }
            _ => {
                let counted = whole(plain, &mut out);
                (out, counted, Vec::new())
            }
        }
    }
}

/// The sessions of all places.
pub struct Sessions {
    ports: [u16; 2],
    open: Vec<(Place, Session)>,
    zone: &'static str,
}

impl Sessions {
    /// Sessions with a PostgreSQL and a Clearway, which listen at these ports.
    pub fn open(postgres: u16, clearway: u16) -> Result<Sessions, Gone> {
        let mut sessions = Sessions { ports: [postgres, clearway], open: Vec::new(), zone: "UTC" };
        for place in PLACES {
            let session = sessions.connect(place)?;
            sessions.open.push((place, session));
        }
        Ok(sessions)
    }

    fn connect(&self, place: Place) -> Result<Session, Gone> {
        Session::open(self.ports[usize::from(place != Place::Postgres)], &place.options())
    }

    /// New sessions for all places of Clearway, which may have another port now.
    pub fn reconnect(&mut self, clearway: u16) -> Result<(), Gone> {
        self.ports[1] = clearway;
        let zone = self.zone;
        for n in 0..self.open.len() {
            self.open[n].1 = self.connect(self.open[n].0)?;
        }
        self.set_zone(zone)
    }

    fn at(&mut self, place: Place) -> &mut Session {
        &mut self.open.iter_mut().find(|(other, _)| *other == place).expect("every place has a session").1
    }

    pub fn ask(&mut self, place: Place, statement: &str) -> Result<Answer, Gone> {
        self.at(place).ask(statement)
    }

    fn set_zone(&mut self, zone: &'static str) -> Result<(), Gone> {
        self.zone = zone;
        self.open.iter_mut().try_for_each(|(_, session)| session.ask(&format!("set timezone = '{zone}'")).map(drop))
    }

    /// Makes the schema in all places; the first statement that fails is told.
    pub fn make(&mut self, schema: &Schema) -> Result<Option<String>, Gone> {
        self.set_zone(schema.zone)?;
        for (place, indexes) in [(Place::Postgres, true), (Place::Indexed, true), (Place::Bare, false)] {
            let statements = schema.statements(place.schema(), indexes);
            self.at(place).send(&statements)?;
            let answers = self.at(place).answers()?;
            let failed = statements
                .iter()
                .zip(&answers)
                .find_map(|(statement, answer)| Some((statement, answer.error.as_ref()?)));
            if let Some((statement, (state, message))) = failed {
                self.at(place).ask("rollback")?;
                return Ok(Some(format!("{}: {state} {message}: {statement}", place.name())));
            }
        }
        Ok(None)
    }

    /// Runs a statement in these places, which all get it before an answer is read; says which of them a session left.
    pub fn run(&mut self, statement: &Statement, places: &[Place]) -> Vec<(Place, Result<Vec<Told>, Gone>)> {
        let order = match &statement.form {
            Form::Query(order) => order.clone(),
            _ => Vec::new(),
        };
        let batches: Vec<_> = places.iter().map(|place| (*place, place.batch(statement))).collect();
        let sent: Vec<Result<(), Gone>> =
            batches.iter().map(|(place, (batch, ..))| self.at(*place).send(batch)).collect();
        let mut told = Vec::new();
        for ((place, (_, counted, other)), sent) in batches.into_iter().zip(sent) {
            let answers = sent.and_then(|()| self.at(place).answers());
            told.push((place, answers.map(|answers| read(&answers, &statement.form, &counted, &other, &order))));
        }
        told
    }
}

/// What the answers to a batch say: one for each plan or each statement.
fn read(answers: &[Answer], form: &Form, counted: &[usize], other: &[usize], order: &[usize]) -> Vec<Told> {
    if let Form::Same(_) = form {
        return counted.iter().map(|n| Told::of(std::slice::from_ref(&answers[*n]), &[0], order)).collect();
    }
    if other.is_empty() {
        return vec![Told::of(answers, counted, order)];
    }
    // The error of one plan is not one of the other.
    let until = counted.last().map_or(0, |n| n + 1);
    let from = other.first().copied().unwrap_or(until);
    let shifted: Vec<usize> = other.iter().map(|n| n - from).collect();
    // What could not be prepared is no plan's answer.
    let first = if answers[0].error.is_some() {
        Told::of(&answers[..1], &[], order)
    } else {
        Told::of(&answers[..until], counted, order)
    };
    let second = if answers[0].error.is_some() { first.clone() } else { Told::of(&answers[from..], &shifted, order) };
    vec![first, second]
}
