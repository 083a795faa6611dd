//! Tests of the invariants of lines: tasks that are polled by hand in a random order, dropped, made to fail, or not polled any more.

use std::pin::pin;
use std::task::Context;

use clearway_base::for_each_seed;
use clearway_base::testkit::Rng;

use super::*;

/// What a visit adds to the value: its number, at the end.
struct Append {
    number: usize,
    panics: bool,
}

impl Work for Append {
    type Value = Vec<usize>;

    fn run(&mut self, value: &mut Vec<usize>) {
        if self.panics {
            std::panic::resume_unwind(Box::new(self.number));
        }
        value.push(self.number);
    }
}

fn place() -> Place {
    Place::new::<Vec<usize>>(1, vec![7])
}

/// How far a visitor has come; `next` is its next step when it is polled again.
enum Visitor<'l> {
    InLine(Ticket<'l, Append>),
    /// It has the row and has not committed.
    Has(Lead<'l>, Append, Vec<usize>),
    /// It has committed and waits for the disk.
    Waits(Lead<'l>),
    Alone,
    Ended,
}

struct Model<'l> {
    lines: &'l Lines,
    rng: Rng,
    /// No visitor gives up any more.
    patient: bool,
    /// What is committed.
    row: Vec<usize>,
    commits: u64,
    visitors: Vec<Visitor<'l>>,
    /// The visitors that were told that it is done.
    told: Vec<usize>,
    panicked: usize,
    alone: usize,
}

impl<'l> Model<'l> {
    fn leaders(&self) -> usize {
        self.visitors.iter().filter(|v| matches!(v, Visitor::Has(..))).count()
    }

    fn comes(&mut self) {
        let work = Append { number: self.visitors.len(), panics: self.rng.below(12) == 0 };
        let visitor = match self.lines.come(place(), work) {
            Arrival::Leads(lead, work) => self.leads(lead, work),
            Arrival::InLine(ticket) => Visitor::InLine(ticket),
            Arrival::Alone(work) => self.goes_alone(&work),
        };
        self.visitors.push(visitor);
        assert!(self.leaders() <= 1, "LINE-1");
    }

    fn leads(&mut self, lead: Lead<'l>, work: Append) -> Visitor<'l> {
        let row = self.row.clone();
        Visitor::Has(lead, work, row)
    }

    /// The row's own queue is not this model's: the visitor gets the row in between.
    fn goes_alone(&mut self, work: &Append) -> Visitor<'l> {
        self.alone += 1;
        if !work.panics {
            self.row.push(work.number);
            self.told.push(work.number);
        }
        Visitor::Alone
    }

    fn has(&mut self, mut lead: Lead<'l>, mut work: Append, mut row: Vec<usize>) -> Visitor<'l> {
        if !self.patient && self.rng.below(8) == 0 {
            return Visitor::Ended; // it was dropped, or failed
        }
        if work.panics {
            self.panicked += 1;
            return Visitor::Ended;
        }
        // A single visitor may have had the row since.
        row.clone_from(&self.row);
        work.run(&mut row);
        if lead.serve(&mut row, |row: &Vec<usize>| row.len() % 17 != 0).is_err() {
            assert!(lead.undone(), "somebody else's");
            return Visitor::Has(lead, work, row);
        }
        self.commits += 1;
        self.row = row;
        lead.committed(Lsn(self.commits));
        Visitor::Waits(lead)
    }

    fn in_line(&mut self, at: usize, mut ticket: Ticket<'l, Append>) -> Visitor<'l> {
        if !self.patient && self.rng.below(10) == 0 {
            return Visitor::Ended;
        }
        let polled = pin!(ticket.turn()).poll(&mut Context::from_waker(Waker::noop()));
        match polled {
            Poll::Pending => Visitor::InLine(ticket),
            Poll::Ready(Turn::Served(work, lsn)) => {
                assert!(work.number == at && lsn.0 <= self.commits);
                self.told.push(at);
                Visitor::Ended
            }
            Poll::Ready(Turn::Leads(lead, work)) => self.leads(lead, work),
            Poll::Ready(Turn::Alone(work)) => self.goes_alone(&work),
            Poll::Ready(Turn::Panicked(panic)) => {
                assert_eq!(panic.downcast_ref(), Some(&at), "it is his own");
                self.panicked += 1;
                Visitor::Ended
            }
        }
    }

    fn step(&mut self, at: usize) {
        self.visitors[at] = match std::mem::replace(&mut self.visitors[at], Visitor::Ended) {
            Visitor::InLine(ticket) => self.in_line(at, ticket),
            Visitor::Has(lead, work, row) => self.has(lead, work, row),
            Visitor::Waits(lead) => {
                self.told.push(at);
                drop(lead);
                Visitor::Ended
            }
            over => over,
        };
    }

    fn is_over(&self) -> bool {
        self.visitors.iter().all(|v| matches!(v, Visitor::Alone | Visitor::Ended))
    }
}

/// Returns how many were served, went alone, panicked.
fn visits(seed: u64) -> (u64, usize, usize) {
    let lines = Lines::default();
    let (row, told) = (Vec::new(), Vec::new());
    let rng = Rng::new(seed);
    let mut model = Model {
        lines: &lines,
        rng,
        patient: false,
        row,
        commits: 0,
        visitors: Vec::new(),
        told,
        panicked: 0,
        alone: 0,
    };
    for step in 0..400 {
        match model.rng.below(6) {
            0..2 if step < 250 => model.comes(),
            2 if model.rng.below(20) == 0 => lines.dissolve(0),
            _ if model.visitors.is_empty() => {}
            _ => {
                let at = model.rng.below(model.visitors.len() as u64) as usize;
                model.step(at);
            }
        }
    }
    model.patient = true;
    for round in 0.. {
        assert!(round < 1_000, "LINE-1, LINE-2: nobody leads those who stand there, or tells them");
        if model.is_over() {
            break;
        }
        (0..model.visitors.len()).for_each(|at| model.step(at));
    }
    assert!(lines.shards.iter().all(|shard| shard.lock().is_empty()), "LINE-1: a line without a leader");
    let mut once = model.row.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), model.row.len(), "LINE-2: twice");
    model.told.iter().for_each(|number| assert!(once.binary_search(number).is_ok(), "LINE-2: {number} is not there"));
    (lines.served(), model.alone, model.panicked)
}

#[test]
fn every_visit_is_done_once_and_somebody_leads() {
    let mut met = (0, 0, 0);
    for_each_seed!(300, |seed| {
        let (served, alone, panicked) = visits(seed);
        met = (met.0 + served, met.1 + alone, met.2 + panicked);
    });
    assert!(met.0 > 1_000 && met.1 > 100 && met.2 > 100, "{met:?}: nothing was tried");
}

#[test]
fn those_in_line_are_served_in_the_order_in_which_they_came() {
    // LINE-5
    let lines = Lines::default();
    let come = |number| lines.come(place(), Append { number, panics: false });
    let Arrival::Leads(mut lead, _) = come(0) else { panic!("nobody was there") };
    let tickets: Vec<_> = (1..100)
        .map(|number| match come(number) {
            Arrival::InLine(ticket) => ticket,
            _ => panic!("somebody leads"),
        })
        .collect();
    let mut row = vec![0];
    lead.serve(&mut row, |_: &Vec<usize>| true).expect("none is spoilt");
    assert_eq!(row, (0..100).collect::<Vec<_>>());
    lead.committed(Lsn(9));
    drop(lead);
    for (at, mut ticket) in tickets.into_iter().enumerate() {
        if at % 3 == 0 {
            continue; // LINE-6: given up, and the next must be woken all the same
        }
        let turn = pin!(ticket.turn()).poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(turn, Poll::Ready(Turn::Served(_, Lsn(9)))));
    }
}
