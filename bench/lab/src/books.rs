//! Clearway's own books of a run: the time that it spun at latches, and the time that is unaccounted.

use crate::outcome::{Outcome, RunFacts};
use crate::scenario::{Flavour, Measure, Scenario};
use crate::server::{Kind, Server};

/// Milliseconds since the server's start: spun at latches and mutexes, elapsed in sessions, unaccounted of that.
const QUESTION: &str = "select (select coalesce(sum(spin_ms), 0) from clearway_latches)::text || ' ' || elapsed_ms::text || ' ' || \
     unaccounted_ms::text from clearway_time where scope = 'server'";
/// What may be unaccounted, in percent of the sessions' time.
const PERCENT_MAX: f64 = 1.0;
/// The point of a scenario at which its books are looked at, where it has it or one below.
const CLIENTS: u32 = 64;

/// The books at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Books {
    spin_ms: f64,
    elapsed_ms: f64,
    unaccounted_ms: f64,
}

impl Books {
    /// As they are now; none of a server that keeps no such books.
    pub async fn of(server: &Server) -> Option<Books> {
        if server.flavour != Flavour::Clearway {
            return None;
        }
        Books::read(&server.ask(QUESTION).await.ok()?)
    }

    fn read(answer: &str) -> Option<Books> {
        let figures: Option<Vec<f64>> = answer.split(' ').map(|figure| figure.parse().ok()).collect();
        let [spin_ms, elapsed_ms, unaccounted_ms] = figures?.try_into().ok()?;
        Some(Books { spin_ms, elapsed_ms, unaccounted_ms })
    }

    /// Books what has come since. The warm-up is in these figures as well: `share` of the time was the window.
    pub fn book(self, before: Books, share: f64, passes: f64, facts: &mut RunFacts) {
        facts.spin_us = Some((self.spin_ms - before.spin_ms) * 1e3 * share / passes);
        let elapsed_ms = self.elapsed_ms - before.elapsed_ms;
        facts.elapsed_ms = Some(elapsed_ms);
        facts.unaccounted_percent = Some(100.0 * (self.unaccounted_ms - before.unaccounted_ms) / elapsed_ms.max(0.001));
    }
}

/// The point of a scenario at which its books are looked at; none where no client runs.
pub fn point(scenario: &dyn Scenario) -> Option<u32> {
    let points = scenario.points();
    let nearest = points.iter().filter(|x| **x <= CLIENTS).max().or_else(|| points.iter().min());
    nearest.copied().filter(|_| scenario.measure() != Measure::Answer)
}

/// Whether it is a run against Clearway: what speaks the protocol alone, beside point reads, keeps no books.
fn has_books(run: &RunFacts) -> bool {
    run.server == Kind::Clearway.name()
}

/// A line for each run, and whether all of them close. One that does not count says why, and closes nothing.
pub fn lines(outcome: &Outcome) -> (Vec<String>, bool) {
    let (mut lines, mut closes) = (Vec::new(), true);
    for run in outcome.runs.iter().filter(|run| has_books(run)) {
        let name = format!("{} at {} {} {}", outcome.scenario, run.x, outcome.axis, run.variant);
        let (Some(elapsed_ms), Some(percent)) = (run.elapsed_ms, run.unaccounted_percent) else {
            let reason = run.failed.clone().unwrap_or_else(|| "it has no books".to_owned());
            lines.push(format!("{name:<44} DOES NOT COUNT: {reason}"));
            closes = false;
            continue;
        };
        let spin_us = run.spin_us.unwrap_or(0.0);
        let is_closed = percent.abs() <= PERCENT_MAX;
        closes &= is_closed;
        let verdict = if is_closed { "closed" } else { "OPEN" };
        lines.push(format!("{name:<44} {elapsed_ms:>12.0} ms {spin_us:>9.2} us spun {percent:>7.2} %  {verdict}"));
    }
    (lines, closes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn books_are_the_difference_of_two_answers() {
        let (before, after) = (Books::read("1 100 2"), Books::read("3.5 300 3"));
        let mut facts = RunFacts::default();
        after.expect("three").book(before.expect("three"), 0.8, 1_000.0, &mut facts);
        assert_eq!((facts.spin_us, facts.unaccounted_percent, facts.elapsed_ms), (Some(2.0), Some(0.5), Some(200.0)));
        assert_eq!((Books::read("1 2"), Books::read("1 2 x")), (None, None));
    }

    #[test]
    fn only_clearway_has_books() {
        let of = |server: &str| RunFacts { server: server.to_owned(), ..RunFacts::default() };
        assert_eq!(["clearway", "wire only"].map(|server| has_books(&of(server))), [true, false]);
    }

    #[test]
    fn every_scenario_with_clients_has_a_point() {
        let without: Vec<&str> =
            crate::scenarios::all().iter().filter(|s| point(**s).is_none()).map(|s| s.name()).collect();
        assert_eq!(without, ["row-size"]);
    }
}
