//! Scenario: how many context switches one statement takes.

use crate::scenario::{Flavour, Group, Limit, Measure, Point, Scenario};
use crate::scenarios::Reads;

/// Point reads, counted in context switches of the server.
pub struct ContextSwitches;

impl Scenario for ContextSwitches {
    fn name(&self) -> &'static str {
        "context-switches"
    }

    fn title(&self) -> &'static str {
        "Context switches per statement"
    }

    fn about(&self) -> &'static str {
        "The same point reads as in `read-only`; drawn is how often the system took a processor from, or gave one to, a thread \
         of the server (voluntary and involuntary switches of all its threads and processes, from /proc) per statement. A server \
         with a thread per connection needs at least one switch to wait for the next statement, and in practice two; far more \
         than that means contention."
    }

    fn remarks(&self) -> &'static str {
        "Clearway's workers take the next ready session instead of going to sleep, so the more clients there are the fewer \
         switches a statement costs; with one client every statement finds the worker asleep, as everywhere. A contended \
         latch that spins makes no switch, so the time spun stands beside them: Clearway tells it over SQL, the others do not, and there it is \
         part of the CPU column."
    }

    fn unit(&self) -> &'static str {
        "switches per statement"
    }

    fn points(&self) -> &'static [u32] {
        &[1, 8, 64, 256, 1000]
    }

    fn measure(&self) -> Measure {
        Measure::SwitchesPerPass
    }

    fn setup(&self, to: Flavour) -> Vec<String> {
        Reads::Points.setup(to)
    }

    fn load(&self, to: Flavour, at: Point) -> Vec<Group> {
        Reads::Points.load(to, at)
    }

    fn limits(&self) -> &'static [Limit] {
        &[Limit::Switches]
    }
}
