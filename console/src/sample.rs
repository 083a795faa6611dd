//! Samples of the watched server, one per second, for the last hour.
//!
//! # Structure
//! Each second one query reads all sessions. For each second the number of sessions by wait class is kept, and the first `SESSIONS_KEPT`
//! active sessions; the newest second is kept completely. If the server keeps no deadlocks, more samples are taken between two seconds
//! while sessions wait for each other.

use crate::link::{Link, LinkError, Table};
use crate::mysql;
use crate::processors::Processors;
use crate::sampled::{self, Rings};
use crate::source::{Kind, Source};
use clearway_base::sync::{Mutex, sleep};
use clearway_base::waits::wall_us;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Seconds that are kept (CON-3).
const SECONDS_KEPT: usize = 3600;
/// Sessions of an earlier second that are kept.
const SESSIONS_KEPT: usize = 64;
/// Different texts of statements that are kept once each.
const TEXTS_KEPT: usize = 4096;
/// Sessions that are read of one second.
const SESSIONS_READ: usize = 10_000;
/// Bytes of a statement that are shown.
const TEXT_BYTES: usize = 1000;
/// Between two looks for deadlocks, and how many waiting sessions there may be for them: each of them costs the server a search.
const LOOK: Duration = Duration::from_millis(400);
const LOOK_WAITERS_MAX: u32 = 50;

/// Sessions and the session that each waits for, as both kinds of server tell it.
macro_rules! sessions {
    ($statement:literal) => {
        concat!(
            "select pid, coalesce(usename, '')::text, coalesce(datname, '')::text, coalesce(application_name, ''), \
     coalesce(state, ''), coalesce(wait_event_type, ''), coalesce(wait_event, ''), \
     extract(epoch from clock_timestamp() - xact_start)::float8, extract(epoch from clock_timestamp() - state_change)::float8, \
     coalesce(left(query, 1000), ''), case when wait_event_type = 'Lock' then pg_blocking_pids(pid) end, ",
            $statement,
            " from pg_stat_activity where backend_type = 'client backend' and application_name is distinct from 'clearway watch' \
     and (state <> 'idle' or state is null)"
        )
    };
}
const SESSIONS: &str = sessions!("coalesce(query_id::text, '')");
/// PostgreSQL 13 has no numbers of statements here.
const SESSIONS_POSTGRESQL_13: &str = sessions!("''");

/// What Clearway knows besides: the lock that a session waits for, and the statement by which it took the one that others wait for.
const TREE: &str = "select pid, coalesce(object, ''), coalesce(key, ''), coalesce(mode, ''), coalesce(waited_ms, 0)::float8, \
     coalesce(taken_by, ''), coalesce(taken_ago, 0) from clearway_lock_tree limit 10000";

/// A session at work, or one that others wait for.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) pid: i32,
    pub(crate) user: Arc<str>,
    database: Arc<str>,
    pub(crate) application: Arc<str>,
    pub(crate) state: Arc<str>,
    pub(crate) class: Arc<str>,
    pub(crate) event: Arc<str>,
    pub(crate) transaction_s: Option<f64>,
    pub(crate) in_state_s: Option<f64>,
    pub(crate) query: Arc<str>,
    pub(crate) blocked_by: Vec<i32>,
    /// The number of its statement, as the server has it in its statistics; empty: not known.
    statement: Arc<str>,
    lock: Option<Arc<Lock>>,
}

impl Session {
    /// The lock that it waits for, and the statement by which it took the one that others wait for.
    pub(crate) fn lock_text(&self) -> Vec<String> {
        let Some(lock) = &self.lock else { return Vec::new() };
        let mut lines = Vec::new();
        if !self.blocked_by.is_empty() && !lock.object.is_empty() {
            lines.push(format!("wants {} on {} {}", lock.mode, lock.object, lock.key));
        }
        if !lock.taken_by.is_empty() {
            lines.push(format!("took what others wait for {} statements ago by: {}", lock.taken_ago, lock.taken_by));
        }
        lines
    }

    #[cfg(test)]
    pub(crate) fn for_test(pid: i32, blocked_by: Vec<i32>, in_state_s: f64, query: &str) -> Session {
        let text: Arc<str> = "x".into();
        Session {
            pid,
            user: text.clone(),
            database: text.clone(),
            application: text.clone(),
            state: text.clone(),
            class: text.clone(),
            event: text,
            transaction_s: None,
            in_state_s: Some(in_state_s),
            query: query.into(),
            blocked_by,
            statement: "".into(),
            lock: None,
        }
    }
}

/// The lock that a session waits for; of a root, the one that the others wait for.
#[derive(Debug)]
struct Lock {
    object: String,
    key: String,
    mode: String,
    waited_ms: f64,
    /// The session's own statement that took the lock that others wait for, and how many statements ago.
    taken_by: String,
    taken_ago: i32,
}

/// A second.
pub(crate) struct Sample {
    pub(crate) at_us: i64,
    /// Sessions by wait class; `CPU` for those that wait for nothing.
    pub(crate) classes: BTreeMap<Arc<str>, u32>,
    pub(crate) blocked: u32,
    pub(crate) sessions: Vec<Session>,
}

#[derive(Default)]
struct Kept {
    samples: VecDeque<Sample>,
    texts: HashSet<Arc<str>>,
    rings: Rings,
}

impl Kept {
    /// The same text, once.
    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        if self.texts.len() >= TEXTS_KEPT {
            self.texts.clear();
        }
        let text: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&text));
        text
    }

    fn keep(&mut self, sample: Sample) {
        if let Some(last) = self.samples.back_mut() {
            last.sessions.truncate(SESSIONS_KEPT);
            last.sessions.shrink_to_fit();
        }
        if self.samples.len() == SECONDS_KEPT {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }
}

/// The last hour.
pub(crate) struct History(Mutex<Kept>);

impl Default for History {
    fn default() -> Self {
        History(Mutex::new("console/history", Kept::default()))
    }
}

impl History {
    /// Sessions by wait class for each second after a moment, oldest first.
    pub(crate) fn since(&self, at_us: i64) -> Value {
        let kept = self.0.lock();
        let seconds = kept.samples.iter().filter(|sample| sample.at_us > at_us);
        seconds.map(|s| json!({"at": s.at_us, "classes": classes(s), "blocked": s.blocked})).collect()
    }

    /// The newest second, or the last one at a moment; null where there is none.
    pub(crate) fn second(&self, at_us: Option<i64>) -> Value {
        let kept = self.0.lock();
        let found = match at_us {
            None => kept.samples.back(),
            Some(at) => kept.samples.iter().rev().find(|sample| sample.at_us <= at),
        };
        found.map_or(Value::Null, |s| {
            let sessions: Vec<Value> = s.sessions.iter().map(shown).collect();
            json!({"at": s.at_us, "classes": classes(s), "blocked": s.blocked, "sessions": sessions})
        })
    }

    /// The waits for locks that the samples show, from one moment to another.
    pub(crate) fn lock_waits(&self, from_us: i64, to_us: i64) -> Table {
        let kept = self.0.lock();
        let newest_us = kept.samples.back().map_or(0, |sample| sample.at_us);
        sampled::waits(kept.samples.iter(), from_us, to_us, newest_us)
    }

    /// The deadlocks that were seen, one row for each session.
    pub(crate) fn deadlocks(&self) -> Table {
        self.0.lock().rings.table()
    }

    /// In how many seconds of the last hour sessions ran a statement, by what they waited for.
    pub(crate) fn of_statement(&self, id: &str) -> Table {
        let kept = self.0.lock();
        let mut seconds: BTreeMap<(&str, &str), u32> = BTreeMap::new();
        for session in kept.samples.iter().flat_map(|sample| &sample.sessions) {
            if &*session.statement == id && is_at_work(session) {
                *seconds.entry((&session.class, &session.event)).or_insert(0) += 1;
            }
        }
        let mut rows: Vec<_> = seconds.into_iter().collect();
        rows.sort_by_key(|(_, seconds)| std::cmp::Reverse(*seconds));
        let rows = rows.into_iter().map(|((class, event), seconds)| {
            [class.to_owned(), event.to_owned(), seconds.to_string()].map(Some).to_vec()
        });
        let columns = ["wait_event_type", "wait_event", "sampled_seconds"];
        Table { columns: columns.map(str::to_owned).to_vec(), rows: rows.collect() }
    }

    /// The newest second's sessions.
    pub(crate) fn sessions(&self) -> Vec<Session> {
        self.0.lock().samples.back().map_or_else(Vec::new, |sample| sample.sessions.clone())
    }

    /// Sessions at work, second by second, oldest first.
    pub(crate) fn active(&self) -> Vec<u32> {
        self.0.lock().samples.iter().map(|sample| sample.classes.values().sum()).collect()
    }

    /// The newest second's sessions by class, how many are blocked, and the longest wait for a lock in seconds.
    pub(crate) fn newest(&self) -> Option<(BTreeMap<Arc<str>, u32>, u32, f64)> {
        let kept = self.0.lock();
        let last = kept.samples.back()?;
        let waits = last.sessions.iter().filter(|s| !s.blocked_by.is_empty());
        let longest = waits.filter_map(|s| s.in_state_s).fold(0.0, f64::max);
        Some((last.classes.clone(), last.blocked, longest))
    }
}

fn classes(sample: &Sample) -> Value {
    sample.classes.iter().map(|(class, n)| (class.to_string(), json!(n))).collect::<serde_json::Map<_, _>>().into()
}

fn shown(s: &Session) -> Value {
    let lock = s.lock.as_ref().map(|lock| {
        json!({"object": lock.object, "key": lock.key, "mode": lock.mode, "waited_ms": lock.waited_ms,
            "taken_by": lock.taken_by, "taken_ago": lock.taken_ago})
    });
    json!({"pid": s.pid, "user": &*s.user, "database": &*s.database, "application": &*s.application, "state": &*s.state,
        "class": &*s.class, "event": &*s.event, "transaction_s": s.transaction_s, "in_state_s": s.in_state_s,
        "query": &*s.query, "statement": &*s.statement, "blocked_by": s.blocked_by, "lock": lock})
}

/// Samples until the process ends. The number of processors is asked for unless it is given.
pub(crate) async fn run(source: &Source, history: &History, processors: Option<u32>) {
    loop {
        let (mut link, kind) = source.attach().await;
        source.has_processors(match processors {
            Some(given) => Processors::Known(given),
            None => Processors::of(&mut link, kind).await,
        });
        let of_sessions = statements(kind, &source.seen().version).0;
        // Only PostgreSQL leaves deadlocks standing for a while and keeps none of them.
        let looks = kind == Kind::PostgreSql;
        let mut blocked = 0;
        loop {
            let between = if looks && (1..=LOOK_WAITERS_MAX).contains(&blocked) { 2 } else { 0 };
            for _ in 0..between {
                sleep(LOOK).await;
                // What is wrong is said by the second's own sample.
                drop(find_deadlocks(&mut link, of_sessions, history).await);
            }
            sleep(Duration::from_secs(1) - LOOK * between).await;
            match sample(&mut link, kind, of_sessions, history).await {
                Ok(waiting) => {
                    blocked = waiting;
                    source.answers();
                }
                Err(error) => {
                    source.lost(&error);
                    // Without a word of the server there is no connection any more; one of class 57 is its last.
                    if error.code.is_none_or(|code| code.starts_with("57P")) {
                        break;
                    }
                }
            }
        }
    }
}

/// The statements for a kind of server: sessions, and the locks that they wait for.
fn statements(kind: Kind, version: &str) -> (&'static str, Option<&'static str>) {
    match kind {
        Kind::Clearway => (SESSIONS, Some(TREE)),
        Kind::PostgreSql if version.starts_with("PostgreSQL 13") => (SESSIONS_POSTGRESQL_13, None),
        Kind::PostgreSql => (SESSIONS, None),
        Kind::MariaDb => (mysql::SESSIONS_MARIADB, Some(mysql::LOCKS_MARIADB)),
        Kind::MySql => (mysql::SESSIONS_MYSQL, Some(mysql::LOCKS_MYSQL)),
    }
}

/// The statement that a server's sessions are sampled with.
pub(crate) fn of_sessions(kind: Kind) -> &'static str {
    statements(kind, "").0
}

/// A look for deadlocks between two seconds.
async fn find_deadlocks(link: &mut Link, of_sessions: &str, history: &History) -> Result<(), LinkError> {
    let rows = link.table(of_sessions, SESSIONS_READ).await?.rows;
    let mut kept = history.0.lock();
    let sessions: Vec<Session> = rows.iter().map(|row| session_of(Fields(row), &mut kept)).collect();
    kept.rings.find_rings(wall_us(), &sessions);
    Ok(())
}

/// Keeps a second; how many sessions wait for others.
async fn sample(link: &mut Link, kind: Kind, of_sessions: &str, history: &History) -> Result<u32, LinkError> {
    let of_locks = statements(kind, "").1;
    let rows = link.table(of_sessions, SESSIONS_READ).await?.rows;
    let blocked = rows.iter().any(|row| !Fields(row).pids(10).is_empty());
    // A role without the right to see it, or an older version: the tree stands without these.
    let tree = match of_locks.filter(|_| blocked) {
        Some(sql) => link.table(sql, SESSIONS_READ).await.unwrap_or_default().rows,
        None => Vec::new(),
    };
    let mut locks: BTreeMap<i32, Arc<Lock>> =
        tree.iter().map(|row| (Fields(row).number(0), Arc::new(lock_of(Fields(row))))).collect();
    let mut kept = history.0.lock();
    let mut sessions: Vec<Session> = rows.iter().map(|row| session_of(Fields(row), &mut kept)).collect();
    if matches!(kind, Kind::MariaDb | Kind::MySql) {
        forget_gone_blockers(&mut sessions);
    }
    let holders: HashSet<i32> = sessions.iter().flat_map(|s| s.blocked_by.iter().copied()).collect();
    let (mut classes, mut blocked) = (BTreeMap::new(), 0);
    for session in &mut sessions {
        session.lock = locks.remove(&session.pid);
        blocked += u32::from(!session.blocked_by.is_empty());
        if is_at_work(session) {
            *classes.entry(Arc::clone(&session.class)).or_insert(0) += 1;
        }
    }
    sessions.sort_by_key(|s| place(s, &holders));
    let at_us = wall_us();
    kept.rings.find_rings(at_us, &sessions);
    kept.keep(Sample { at_us, classes, blocked, sessions });
    Ok(blocked)
}

/// MYS-1: InnoDB's picture of waits may still have a session that is gone. All that could block are in the list: these servers leave no transaction
/// behind that has no session, but for those of XA, whose number is 0.
fn forget_gone_blockers(sessions: &mut [Session]) {
    let there: HashSet<i32> = sessions.iter().map(|session| session.pid).chain([0]).collect();
    sessions.iter_mut().for_each(|session| session.blocked_by.retain(|pid| there.contains(pid)));
}

/// Roots of trees first, then blockers that wait themselves, then other waiters: of an earlier second only the first sessions are kept.
fn place(session: &Session, holders: &HashSet<i32>) -> (u8, i32) {
    let rank = match (holders.contains(&session.pid), session.blocked_by.is_empty()) {
        (true, true) => 0,
        (true, false) => 1,
        (false, false) => 2,
        (false, true) => 3,
    };
    (rank, session.pid)
}

/// Ends what a session does: cancels its statement, or ends the session if it is idle and there is nothing to cancel. Its state before that;
/// none: it has ended already.
pub(crate) async fn end(link: &mut Link, pid: i32) -> Result<Option<String>, String> {
    if let Link::MySql(_) = link {
        return mysql::end(link, pid).await;
    }
    let sql = format!(
        "select case when state = 'active' then pg_cancel_backend(pid) else pg_terminate_backend(pid) end, state \
         from pg_stat_activity where pid = {pid}"
    );
    let rows = link.table(&sql, 1).await.map_err(|error| error.text)?.rows;
    match rows.first().map(|row| Fields(row)) {
        Some(row) if row.text(0) == "t" => Ok(Some(row.text(1).to_owned())),
        Some(_) => Err(format!("session {pid} could not be ended")),
        None => Ok(None),
    }
}

/// Idle ones in a transaction hold locks and do no work.
fn is_at_work(session: &Session) -> bool {
    &*session.state == "active" && &*session.class != "Client"
}

/// A row of an answer.
#[derive(Clone, Copy)]
struct Fields<'r>(&'r [Option<String>]);

impl<'r> Fields<'r> {
    /// A field's text; empty for NULL.
    fn text(self, at: usize) -> &'r str {
        self.0.get(at).and_then(Option::as_deref).unwrap_or_default()
    }

    /// A whole number; 0 for what is none.
    fn number(self, at: usize) -> i32 {
        self.text(at).parse().unwrap_or(0)
    }

    fn figure(self, at: usize) -> Option<f64> {
        self.text(at).parse().ok()
    }

    /// A list of sessions: `{1,2}`, or `1,2`.
    fn pids(self, at: usize) -> Vec<i32> {
        let list = self.text(at).trim_matches(['{', '}']);
        list.split(',').filter_map(|pid| pid.parse().ok()).collect()
    }
}

fn lock_of(row: Fields<'_>) -> Lock {
    Lock {
        object: row.text(1).to_owned(),
        key: row.text(2).to_owned(),
        mode: row.text(3).to_owned(),
        waited_ms: row.figure(4).unwrap_or(0.0),
        taken_by: cut(row.text(5).to_owned()),
        taken_ago: row.number(6),
    }
}

fn cut(mut text: String) -> String {
    if text.len() > TEXT_BYTES {
        let end = (0..=TEXT_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
    }
    text
}

fn session_of(row: Fields<'_>, kept: &mut Kept) -> Session {
    // A server reads the columns of a row one after another: a session that begins to wait meanwhile is told with what it did before. It waits
    // from the next look on.
    let is_idle = row.text(4).starts_with("idle");
    let class = match row.text(5) {
        "" => "CPU",
        "Lock" if is_idle => "Client",
        class => class,
    };
    let class = kept.text(class);
    let mut text = |column: usize| kept.text(row.text(column));
    Session {
        pid: row.number(0),
        user: text(1),
        database: text(2),
        application: text(3),
        state: text(4),
        class,
        event: text(6),
        transaction_s: row.figure(7),
        in_state_s: row.figure(8),
        query: text(9),
        statement: text(11),
        blocked_by: if is_idle { Vec::new() } else { row.pids(10) },
        lock: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_kept_and_of_earlier_seconds_few_sessions() {
        // CON-3
        let history = History::default();
        let mut kept = history.0.lock();
        let session = Session::for_test(1, vec![], 1.0, "x");
        for at_us in 0..SECONDS_KEPT as i64 + 10 {
            let sessions = vec![session.clone(); SESSIONS_KEPT + 5];
            kept.keep(Sample { at_us, classes: BTreeMap::new(), blocked: 0, sessions });
        }
        assert_eq!((kept.samples.len(), kept.samples[0].at_us), (SECONDS_KEPT, 10));
        assert_eq!(kept.samples[5].sessions.len(), SESSIONS_KEPT);
        for n in 0..TEXTS_KEPT * 2 {
            kept.text(&n.to_string());
        }
        assert!(kept.texts.len() <= TEXTS_KEPT);
        drop(kept);
        assert_eq!(history.second(Some(100))["at"], 100);
        assert_eq!(history.second(Some(5)), Value::Null);
    }

    #[test]
    fn of_an_earlier_second_the_roots_are_kept() {
        let session = |pid: i32, blocked_by: Vec<i32>| Session::for_test(pid, blocked_by, 1.0, "x");
        // 1 waits for 2, which waits for 9; 3 is alone.
        let mut sessions = [session(1, vec![2]), session(2, vec![9]), session(3, vec![]), session(9, vec![])];
        let holders = HashSet::from([2, 9]);
        sessions.sort_by_key(|s| place(s, &holders));
        assert_eq!(sessions.map(|s| s.pid), [9, 2, 1, 3]);
    }

    #[test]
    fn a_row_is_read_as_both_protocols_write_it() {
        let row = |blockers: &str| {
            let fields = ["7", "u", "d", "a", "active", "", "", "1.5", "", "select 1", blockers];
            fields.map(|field| Some(field.to_owned()).filter(|field| !field.is_empty()))
        };
        let mut kept = Kept::default();
        let session = session_of(Fields(&row("{1,2}")), &mut kept);
        assert_eq!((session.pid, &*session.class, session.blocked_by), (7, "CPU", vec![1, 2]));
        assert_eq!((session.transaction_s, session.in_state_s), (Some(1.5), None));
        assert_eq!(session_of(Fields(&row("3")), &mut kept).blocked_by, [3]);
        assert!(session_of(Fields(&row("")), &mut kept).blocked_by.is_empty());
        assert_eq!(session_of(Fields(&[]), &mut kept).pid, 0);
    }

    #[test]
    fn a_session_that_is_gone_blocks_nobody() {
        let mut sessions = [Session::for_test(1, vec![2, 9], 1.0, "x"), Session::for_test(2, vec![0], 1.0, "y")];
        forget_gone_blockers(&mut sessions);
        assert_eq!(sessions.map(|session| session.blocked_by), [vec![2], vec![0]]);
    }

    #[test]
    fn an_idle_session_waits_for_nobody() {
        let fields =
            ["7", "u", "d", "a", "idle in transaction", "Lock", "row", "1.5", "", "select 'before'", "{1}", ""];
        let row = fields.map(|field| Some(field.to_owned()));
        let session = session_of(Fields(&row), &mut Kept::default());
        assert_eq!((&*session.class, session.blocked_by), ("Client", vec![]));
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        let text = cut("é".repeat(TEXT_BYTES));
        assert_eq!((text.len() <= TEXT_BYTES, text.chars().all(|c| c == 'é')), (true, true));
    }
}
