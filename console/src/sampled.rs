//! Lock waits and deadlocks derived from the samples of the last hour, for servers that keep no history of their own.
//!
//! A wait is a run of consecutive samples in which a session ran the same statement and waited for other sessions. A wait that begins and
//! ends between two samples is not seen. A deadlock is a cycle within one sample; PostgreSQL resolves it after `deadlock_timeout`, a
//! second by default.
//!
//! Bounded (CON-3): at most [`WAITS_MAX`] waits are shown, and [`RINGS_KEPT`] deadlocks are kept.

use crate::link::Table;
use crate::sample::{Sample, Session};
use std::collections::{HashMap, HashSet, VecDeque};

/// Waits that are told of.
const WAITS_MAX: usize = 1000;
/// Rings that are kept.
const RINGS_KEPT: usize = 100;
/// The same sessions in a ring within so many microseconds are the same ring.
const SAME_RING_US: i64 = 5_000_000;
/// Two samples further apart than this are not in a row: the server was away.
const IN_A_ROW_US: i64 = 5_000_000;

/// The columns of a wait; `_us`: microseconds since 1970.
const WAITS: [&str; 14] = [
    "began_us",
    "waited_s",
    "outcome",
    "pid",
    "usename",
    "application_name",
    "query",
    "wants",
    "blocked_by",
    "root_pid",
    "root_application",
    "root_state",
    "root_statement",
    "root_idle_s",
];

/// The columns of a deadlock's participant, as the page draws them.
const RING: [&str; 10] = [
    "number",
    "happened_us",
    "place",
    "victim",
    "pid",
    "application_name",
    "usename",
    "wants",
    "waits_for",
    "statements",
];

/// A wait, as far as it was seen.
struct Wait<'s> {
    first_us: i64,
    last_us: i64,
    session: &'s Session,
    root: Root<'s>,
}

/// The session at the end of a chain of waits.
#[derive(Clone, Copy)]
struct Root<'s> {
    pid: i32,
    /// None: no client's session, or not among those that were kept.
    session: Option<&'s Session>,
}

/// The waits of samples, the longest first.
pub(crate) fn waits<'s>(samples: impl Iterator<Item = &'s Sample>, from_us: i64, to_us: i64, newest_us: i64) -> Table {
    let mut ended: Vec<Wait<'s>> = Vec::new();
    let mut open: HashMap<i32, Wait<'s>> = HashMap::new();
    for sample in samples.filter(|sample| sample.blocked > 0 || sample.at_us <= to_us) {
        let by_pid: HashMap<i32, &Session> = sample.sessions.iter().map(|session| (session.pid, session)).collect();
        let mut now = HashMap::new();
        for session in sample.sessions.iter().filter(|session| !session.blocked_by.is_empty()) {
            let known = open.remove(&session.pid);
            let is_same =
                |wait: &Wait<'_>| wait.session.query == session.query && sample.at_us - wait.last_us <= IN_A_ROW_US;
            let goes_on = match known {
                Some(wait) if is_same(&wait) => Some(wait),
                // The session waits with its next statement.
                Some(wait) => {
                    ended.push(wait);
                    None
                }
                None => None,
            };
            let root = root_of(session, &by_pid);
            let wait = match goes_on {
                Some(mut wait) => {
                    wait.last_us = sample.at_us;
                    // The root may have been left out of the first sample.
                    wait.root = if wait.root.session.is_some() { wait.root } else { root };
                    wait
                }
                None => Wait { first_us: sample.at_us, last_us: sample.at_us, session, root },
            };
            now.insert(session.pid, wait);
        }
        ended.extend(std::mem::replace(&mut open, now).into_values());
    }
    ended.extend(open.into_values());
    ended.retain(|wait| wait.first_us <= to_us && wait.last_us >= from_us);
    ended.sort_by_key(|wait| (wait.first_us - wait.last_us, wait.first_us, wait.session.pid));
    ended.truncate(WAITS_MAX);
    let rows = ended.iter().map(|wait| wait.row(newest_us)).collect();
    Table { columns: WAITS.map(str::to_owned).to_vec(), rows }
}

/// The session at the end of the chain; in a ring the last one before it closes.
fn root_of<'s>(session: &'s Session, by_pid: &HashMap<i32, &'s Session>) -> Root<'s> {
    let mut seen = HashSet::from([session.pid]);
    let mut at = session;
    while let Some(next) = at.blocked_by.first() {
        match by_pid.get(next) {
            Some(known) if seen.insert(*next) => at = known,
            Some(_) => break,
            None => return Root { pid: *next, session: None },
        }
    }
    Root { pid: at.pid, session: Some(at) }
}

impl Wait<'_> {
    fn row(&self, newest_us: i64) -> Vec<Option<String>> {
        let Wait { session, root, .. } = self;
        let seconds = (self.last_us - self.first_us) as f64 / 1e6;
        let blockers: Vec<String> = session.blocked_by.iter().map(i32::to_string).collect();
        let of_root = |text: fn(&Session) -> String| root.session.map(text);
        vec![
            Some(self.first_us.to_string()),
            Some(format!("{seconds:.0}")),
            Some(if self.last_us == newest_us { "waits" } else { "has ended" }.to_owned()),
            Some(session.pid.to_string()),
            Some(session.user.to_string()),
            Some(session.application.to_string()),
            Some(session.query.to_string()),
            session.lock_text().into_iter().next(),
            Some(blockers.join(", ")),
            Some(root.pid.to_string()),
            of_root(|root| root.application.to_string()),
            of_root(|root| root.state.to_string()),
            of_root(|root| root.query.to_string()),
            root.session
                .filter(|root| &*root.state != "active")
                .and_then(|root| root.in_state_s)
                .map(|s| format!("{s:.1}")),
        ]
    }
}

/// Deadlocks that were seen.
#[derive(Default)]
pub(crate) struct Rings {
    kept: VecDeque<Ring>,
    count: u64,
}

struct Ring {
    number: u64,
    last_us: i64,
    at_us: i64,
    sessions: Vec<Session>,
}

impl Rings {
    /// Looks for rings among a moment's sessions.
    pub(crate) fn find_rings(&mut self, at_us: i64, sessions: &[Session]) {
        for ring in rings_of(sessions) {
            let pids: HashSet<i32> = ring.iter().map(|session| session.pid).collect();
            let is_same = |known: &&mut Ring| {
                at_us - known.last_us <= SAME_RING_US
                    && known.sessions.len() == pids.len()
                    && known.sessions.iter().all(|session| pids.contains(&session.pid))
            };
            if let Some(known) = self.kept.iter_mut().find(is_same) {
                known.last_us = at_us;
                continue;
            }
            if self.kept.len() == RINGS_KEPT {
                self.kept.pop_front();
            }
            self.count += 1;
            let sessions = ring.into_iter().cloned().collect();
            self.kept.push_back(Ring { number: self.count, last_us: at_us, at_us, sessions });
        }
    }

    /// One row for each session of a ring, the newest ring first.
    pub(crate) fn table(&self) -> Table {
        let rows = self.kept.iter().rev().flat_map(|ring| {
            ring.sessions.iter().enumerate().map(|(place, session)| {
                let texts = [
                    ring.number.to_string(),
                    ring.at_us.to_string(),
                    place.to_string(),
                    "f".to_owned(),
                    session.pid.to_string(),
                    session.application.to_string(),
                    session.user.to_string(),
                    format!("{} {}", session.class, session.event),
                    session.blocked_by.first().map(i32::to_string).unwrap_or_default(),
                    session.query.to_string(),
                ];
                texts.map(Some).to_vec()
            })
        });
        Table { columns: RING.map(str::to_owned).to_vec(), rows: rows.collect() }
    }
}

/// The rings of sessions that wait for each other, each in the order of its waits.
fn rings_of(sessions: &[Session]) -> Vec<Vec<&Session>> {
    let by_pid: HashMap<i32, &Session> = sessions.iter().map(|session| (session.pid, session)).collect();
    // The walk that first came by a session; a session that the same walk meets again closes a ring.
    let mut walks: HashMap<i32, usize> = HashMap::new();
    let mut rings = Vec::new();
    for (walk, start) in sessions.iter().enumerate() {
        let (mut at, mut path) = (start, Vec::new());
        loop {
            match walks.get(&at.pid) {
                Some(earlier) if *earlier != walk => break,
                Some(_) => {
                    let begin = path.iter().position(|session: &&Session| session.pid == at.pid).unwrap_or(0);
                    rings.push(path.split_off(begin));
                    break;
                }
                None => {}
            }
            walks.insert(at.pid, walk);
            path.push(at);
            // A session that waits for several is in a ring if one of them leads back; the first that waits itself is followed.
            let next = at.blocked_by.iter().filter_map(|pid| by_pid.get(pid)).find(|next| !next.blocked_by.is_empty());
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
    }
    rings
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn sample(at_s: i64, sessions: Vec<Session>) -> Sample {
        let blocked = sessions.iter().filter(|session| !session.blocked_by.is_empty()).count() as u32;
        Sample { at_us: at_s * 1_000_000, classes: BTreeMap::new(), blocked, sessions }
    }

    fn session(pid: i32, blocked_by: &[i32], query: &str) -> Session {
        Session::for_test(pid, blocked_by.to_vec(), 1.0, query)
    }

    #[test]
    fn seconds_in_a_row_are_one_wait_and_its_root_is_told() {
        let tree = || vec![session(1, &[], "root"), session(2, &[1], "a"), session(3, &[2], "b")];
        let mut samples: Vec<Sample> = (10..15).map(|at_s| sample(at_s, tree())).collect();
        samples.push(sample(15, vec![session(1, &[], "root"), session(3, &[1], "c")]));
        samples.push(sample(16, vec![]));
        let table = waits(samples.iter(), 0, i64::MAX, 16_000_000);
        let column = |name: &str| table.columns.iter().position(|column| column == name).expect("a column");
        let told =
            |name: &str| table.rows.iter().map(|row| row[column(name)].clone().unwrap_or_default()).collect::<Vec<_>>();
        assert_eq!(told("pid"), ["2", "3", "3"]);
        assert_eq!(
            (told("waited_s"), told("query")),
            (vec!["4".into(), "4".into(), "0".into()], vec!["a".into(), "b".into(), "c".into()])
        );
        assert_eq!((told("root_pid"), told("root_statement")), (vec!["1".to_owned(); 3], vec!["root".to_owned(); 3]));
        assert_eq!(told("outcome"), ["has ended"; 3]);
        assert_eq!(waits(samples.iter(), 15_000_000, 15_000_000, 16_000_000).rows.len(), 1);
    }

    #[test]
    fn a_ring_is_seen_once_and_ends_no_walk() {
        let ring = [
            session(9, &[1], "x"),
            session(1, &[2], "a"),
            session(2, &[3], "b"),
            session(3, &[1], "c"),
            session(4, &[], ""),
        ];
        let mut rings = Rings::default();
        rings.find_rings(1_000_000, &ring);
        rings.find_rings(1_400_000, &ring);
        let pids: Vec<_> = rings.table().rows.iter().map(|row| row[4].clone().unwrap_or_default()).collect();
        assert_eq!(pids, ["1", "2", "3"]);
        let waits = waits([sample(1, ring.to_vec())].iter(), 0, i64::MAX, 0);
        assert_eq!(waits.rows.len(), 4);
        // CON-3
        for at in 0..300 {
            rings.find_rings(at * 10_000_000, &ring);
        }
        assert_eq!(rings.kept.len(), RINGS_KEPT);
    }
}
