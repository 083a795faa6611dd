//! Processor time and context switches of processes, from /proc.
//!
//! The figures are those of the given processes and their descendants, with all threads that exist at the moment of the reading. A thread
//! that ended between two readings is not counted. Clients stay connected during a window, so a server's threads do not end.

use std::collections::HashMap;
use std::fs::{read_dir, read_to_string};

/// Microseconds of a clock tick of /proc; the kernel's USER_HZ is 100 everywhere.
const TICK_US: u64 = 10_000;

/// Figures of some processes, or their increase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Processor time, microseconds.
    pub cpu_us: u64,
    /// Context switches because a thread waited.
    pub voluntary: u64,
    /// Context switches because a thread's time was up.
    pub involuntary: u64,
    /// How long it was watched.
    pub seconds: f64,
}

impl Usage {
    /// The increase since an earlier look.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            cpu_us: self.cpu_us.saturating_sub(before.cpu_us),
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
            seconds: self.seconds,
        }
    }

    /// All context switches.
    pub fn switches(&self) -> u64 {
        self.voluntary + self.involuntary
    }
}

/// What these processes and their descendants have used so far.
pub fn usage_of(processes: &[u32]) -> Usage {
    let mut sum = Usage::default();
    for pid in with_descendants(processes) {
        let ticks = read_to_string(format!("/proc/{pid}/stat")).ok().and_then(|text| ticks(&text));
        sum.cpu_us += ticks.unwrap_or(0) * TICK_US;
        for thread in read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let status = read_to_string(thread.path().join("status")).unwrap_or_default();
            sum.voluntary += figure(&status, "voluntary_ctxt_switches:");
            sum.involuntary += figure(&status, "nonvoluntary_ctxt_switches:");
        }
    }
    sum
}

/// Processes and all below them; one pass over /proc for the parents of all.
fn with_descendants(processes: &[u32]) -> Vec<u32> {
    if processes.is_empty() {
        return Vec::new();
    }
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let stat = read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = after_name(&stat).and_then(|fields| fields.split(' ').nth(1)?.parse().ok());
        children.entry(parent.unwrap_or(0)).or_default().push(pid);
    }
    let mut all = processes.to_vec();
    let mut at = 0;
    while let Some(pid) = all.get(at) {
        all.extend(children.get(pid).into_iter().flatten());
        at += 1;
    }
    all
}

/// The fields behind the name, which may hold anything in its parentheses: state, parent, ...
fn after_name(stat: &str) -> Option<&str> {
    stat.rsplit_once(") ").map(|(_, fields)| fields)
}

/// User and system time, the 14th and 15th field.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = after_name(stat)?.split(' ').skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

fn figure(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_behind_a_name_with_parentheses() {
        let stat = "7 (a ) b) S 3 7 7 0 -1 0 0 0 0 0 11 22 0 0 20";
        assert_eq!((ticks(stat), after_name(stat).map(|rest| &rest[..3])), (Some(33), Some("S 3")));
        assert_eq!(figure("a: 1\nvoluntary_ctxt_switches:\t5\n", "voluntary_ctxt_switches:"), 5);
    }

    #[test]
    fn this_process_uses_something_and_its_children_count() {
        let me = std::process::id();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep runs");
        assert!(with_descendants(&[me]).contains(&child.id()));
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
        assert!(usage_of(&[me]).switches() > 0);
        assert_eq!(usage_of(&[]), Usage::default());
    }
}
