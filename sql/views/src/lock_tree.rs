//! The rows of clearway_lock_tree: each waiter below the session that it waits for.
//!
//! Thousands of sessions may wait for one lock, and the view is read when they do. So what many rows have in common is one text
//! that they share, and of a wait only what a row shows is read.

use super::activity::HIDDEN_TEXT;
use super::lock_waits::{ms, number, some};
use super::locked::Namer;
use super::{ViewOf, text};
use clearway_context::backend::Backend;
use clearway_context::privileges::Judge;
use clearway_exec::{Row, Run};
use clearway_txn::lockmgr::LockTag;
use clearway_txn::lockmgr::live::LiveWait;
use clearway_values::types::Datum;
use foldhash::fast::RandomState;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The rows of the view of this module.
pub const ROWS: &[ViewOf] = &[("pg_catalog", "clearway_lock_tree", lock_tree)];

/// Sessions by their numbers, which no client chooses.
type ByPid<T> = HashMap<i32, T, RandomState>;

/// The sessions that wait for none stand at the top, those that block most first.
fn lock_tree(run: &Run<'_>) -> Vec<Row> {
    let waits = run.core.db.transactions().locks().live_waits();
    let mut below: ByPid<Vec<&LiveWait>> = HashMap::default();
    for wait in &waits {
        if let Some(blocker) = wait.blocker() {
            below.entry(blocker).or_default().push(wait);
        }
    }
    let waiting: HashSet<i32, RandomState> = waits.iter().map(LiveWait::pid).collect();
    let mut roots: Vec<i32> = below.keys().copied().filter(|pid| !waiting.contains(pid)).collect();
    let mut tree = Tree {
        below: &below,
        namer: Namer::new(&run.names.catalog),
        judge: Judge::of(run.core, &run.names.catalog),
        watched: None,
        backends: run.core.backends.all(),
        counts: HashMap::default(),
        latest: None,
        shared: Shared::default(),
        hidden: text(HIDDEN_TEXT),
        rows: Vec::with_capacity(waits.len() + roots.len()),
    };
    for pid in &roots {
        tree.count(*pid);
    }
    roots.sort_by_key(|pid| (Reverse(tree.counted(*pid)), *pid));
    // A list instead of a recursion: a chain may be as long as there are sessions.
    let root = |pid: &i32| Visit { pid: *pid, depth: 0, above: None, wait: None };
    let mut todo: Vec<Visit<'_>> = roots.iter().rev().map(root).collect();
    let mut written = String::new();
    while let Some(visit) = todo.pop() {
        let path = visit.path(&mut written);
        for child in below.get(&visit.pid).into_iter().flatten().rev() {
            let above = Some(path.clone());
            todo.push(Visit { pid: child.pid(), depth: visit.depth + 1, above, wait: Some(child) });
        }
        tree.row(&visit, path);
    }
    tree.rows
}

/// A session whose row comes next, with what stands below it.
struct Visit<'a> {
    pid: i32,
    depth: u32,
    /// The path of the session above.
    above: Option<Arc<str>>,
    wait: Option<&'a LiveWait>,
}

impl Visit<'_> {
    /// The sessions from the top down to this one. A long chain's path names its ends.
    fn path(&self, written: &mut String) -> Arc<str> {
        written.clear();
        if let Some(above) = &self.above {
            if self.depth <= 20 {
                written.push_str(above);
            } else {
                written.push_str(above.split(" > ").next().unwrap_or(above));
                written.push_str(" > ...");
            }
            written.push_str(" > ");
        }
        let _ = write!(written, "{}", self.pid);
        Arc::from(written.as_str())
    }
}

/// What the rows of one lock have in common.
struct LockTexts {
    tag: LockTag,
    kind: Datum,
    object: Datum,
    key: Datum,
}

/// Texts of the row before: the next one mostly has the same.
#[derive(Default)]
struct Shared {
    mode: Option<Datum>,
    state: Option<Datum>,
    application: Option<Datum>,
    user: Option<Datum>,
    database: Option<Datum>,
}

/// The text as a datum, that of the row before if it is the same; an empty text is null.
fn shared(before: &mut Option<Datum>, s: &str) -> Datum {
    match before {
        Some(Datum::Text(known)) if **known == *s => Datum::Text(Arc::clone(known)),
        _ => before.insert(some(s)).clone(),
    }
}

struct Tree<'a, 'r> {
    below: &'a ByPid<Vec<&'a LiveWait>>,
    namer: Namer<'r>,
    judge: Judge<'r>,
    /// The role that was judged last, and whether its sessions' texts are shown.
    watched: Option<(u32, bool)>,
    /// In the order of their numbers.
    backends: Vec<Arc<Backend>>,
    /// Of those below which others wait.
    counts: ByPid<u32>,
    /// What was locked in the latest row.
    latest: Option<LockTexts>,
    shared: Shared,
    hidden: Datum,
    rows: Vec<Row>,
}

impl Tree<'_, '_> {
    /// How many sessions wait below each one. A child is visited before its parent is counted; a ring that is being resolved ends the walk.
    fn count(&mut self, root: i32) {
        let mut order = vec![root];
        let mut seen: HashSet<i32, RandomState> = HashSet::from_iter([root]);
        let mut at = 0;
        while let Some(pid) = order.get(at).copied() {
            at += 1;
            let children = self.below.get(&pid).into_iter().flatten().map(|wait| wait.pid());
            order.extend(children.filter(|child| self.below.contains_key(child) && seen.insert(*child)));
        }
        for pid in order.into_iter().rev() {
            let children = self.below.get(&pid).into_iter().flatten();
            let sum = children.map(|wait| 1 + self.counted(wait.pid())).sum();
            self.counts.insert(pid, sum);
        }
    }

    fn counted(&self, pid: i32) -> u32 {
        self.counts.get(&pid).copied().unwrap_or(0)
    }

    /// Whether the texts of a role's sessions are shown; the role is 0 for a session that has ended.
    fn may_watch(&mut self, role: u32) -> bool {
        match self.watched {
            Some((known, may)) if known == role => may,
            _ => self.watched.insert((role, self.judge.may_watch(role))).1,
        }
    }

    /// What is locked, by the names that a reader of SQL knows: kind, object, key.
    fn locked(&mut self, tag: &LockTag) -> [Datum; 3] {
        let texts = match self.latest.take() {
            Some(texts) if texts.tag == *tag => texts,
            _ => {
                let locked = self.namer.name(tag);
                let key = locked.key.as_deref().map_or(Datum::Null, some);
                LockTexts { tag: tag.clone(), kind: some(locked.kind), object: some(&locked.object), key }
            }
        };
        let texts = self.latest.insert(texts);
        [texts.kind.clone(), texts.object.clone(), texts.key.clone()]
    }

    fn row(&mut self, visit: &Visit<'_>, path: Arc<str>) {
        let Visit { pid, wait, .. } = *visit;
        // What a root holds is what the longest wait behind it is for.
        let first = self.below.get(&pid).and_then(|waits| waits.first()).copied();
        let [kind, object, key] = wait.or(first).map_or([const { Datum::Null }; 3], |wait| self.locked(wait.tag()));
        let holds = first.and_then(LiveWait::blocker_holds);
        let at = self.backends.binary_search_by_key(&pid, |backend| backend.pid);
        let backend = at.ok().map(|at| Arc::clone(&self.backends[at]));
        let may = self.may_watch(backend.as_ref().map_or(0, |backend| backend.role.load(Ordering::Relaxed)));
        let hidden = self.hidden.clone();
        let shown = |datum: Datum| if may || matches!(datum, Datum::Null) { datum } else { hidden.clone() };
        let of_text = |s: &Arc<str>| if s.is_empty() { Datum::Null } else { shown(Datum::Text(Arc::clone(s))) };
        let Shared { mode, state, application, user, database } = &mut self.shared;
        let held = || {
            let holds = holds.as_ref().map(|holds| holds.modes.iter().map(|mode| mode.name()).collect::<Vec<_>>());
            holds.map_or(Datum::Null, |modes| some(&modes.join(", ")))
        };
        let mode = wait.map_or_else(held, |wait| shared(mode, wait.mode().name()));
        let taken_by = holds.as_ref().and_then(|holds| holds.taken_by.as_ref());
        let ago =
            holds.as_ref().filter(|holds| holds.taken_by.is_some()).map_or(Datum::Null, |holds| number(holds.ago));
        let [state, application, query] = backend.as_ref().map_or([const { Datum::Null }; 3], |backend| {
            let activity = backend.activity.lock();
            let query = of_text(&activity.query);
            [shared(state, activity.state.name()), shared(application, &activity.application_name), query]
        });
        let row = vec![
            Datum::Int4(pid),
            number(visit.depth),
            Datum::Text(path),
            number(self.counts.get(&pid).copied().unwrap_or(0)),
            wait.and_then(LiveWait::blocker).map_or(Datum::Null, Datum::Int4),
            wait.map_or(Datum::Null, |wait| ms(wait.waited_ns)),
            kind,
            object,
            shown(key),
            mode,
            taken_by.map_or(Datum::Null, of_text),
            ago,
            state,
            application,
            shared(user, backend.as_ref().map_or("", |backend| &backend.user)),
            shared(database, backend.as_ref().map_or("", |backend| &backend.database)),
            query,
        ];
        self.rows.push(row);
    }
}
