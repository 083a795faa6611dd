//! What one session uses of the limits of its role and of its database.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use clearway_base::memory;
use clearway_base::sync::{Mutex, sleep_until_ns};
use clearway_base::waits::{self, Object, WaitEvent, in_wait};

use super::limit_group::{Group, LimitKind, Scope};
use crate::core::Core;
use crate::privileges::role_by_oid;
use crate::units::{shown_bytes, shown_ms};
use clearway_syntax::error::{Result, SqlError};

/// It has limits.
const ANY: u8 = 1;
/// Its statements go the way that waits.
const LONG: u8 = 2;
/// Its undo is limited.
const UNDO: u8 = 4;
/// Its memory is.
const MEMORY: u8 = 8;

#[derive(Debug, Default)]
struct OwnLimits {
    /// The role's and the database's, if they have limits.
    groups: Vec<Arc<Group>>,
    /// The groups of which it has a turn.
    turns: Vec<Arc<Group>>,
    /// The groups that know of its transaction's undo, and how much.
    undo_of: Vec<Arc<Group>>,
    undo_bytes: i64,
}

impl OwnLimits {
    fn tell_undo(&mut self, bytes: i64) {
        let change = bytes - std::mem::replace(&mut self.undo_bytes, bytes);
        self.undo_of.iter().for_each(|group| _ = group.undo_bytes.fetch_add(change, Relaxed));
    }

    /// Gives back what belongs to its transaction.
    fn give_back(&mut self) {
        self.turns.drain(..).for_each(|group| group.turns.leave());
        self.tell_undo(0);
        self.undo_of.clear();
    }
}

/// The limits of a session.
#[derive(Debug)]
pub struct OfSession {
    /// The number of the catalog by which `ways` is right.
    seen: AtomicU64,
    ways: AtomicU8,
    mine: Mutex<OwnLimits>,
}

impl Default for OfSession {
    fn default() -> Self {
        let mine = Mutex::new("sql/limits/session", OwnLimits::default());
        Self { seen: AtomicU64::new(u64::MAX), ways: AtomicU8::new(0), mine }
    }
}

impl Drop for OfSession {
    fn drop(&mut self) {
        self.mine.lock().give_back();
    }
}

impl OfSession {
    /// LIM-2
    #[inline]
    fn ways(&self, core: &Core) -> u8 {
        if self.seen.load(Relaxed) != core.db.catalog_version() {
            self.refresh(core);
        }
        self.ways.load(Relaxed)
    }

    /// Whether statements must go the way that waits.
    #[inline]
    pub fn must_wait(&self, core: &Core) -> bool {
        self.ways(core) & LONG != 0
    }

    /// Takes the limits of the catalog that is in force.
    pub fn follow(&self, core: &Core) {
        self.ways(core);
    }

    /// Takes them where the session's memory account is the thread's, as it is in all that its connection does.
    #[cold]
    fn refresh(&self, core: &Core) {
        let version = core.db.catalog_version();
        let catalog = core.db.catalog();
        let superuser = role_by_oid(&catalog, core.login).is_none_or(|role| role.superuser);
        let of = |scope, oid| core.backends.limits.refreshed(scope, oid, (&catalog, version));
        let mut groups = Vec::new();
        if !superuser {
            groups.extend(of(Scope::Role, core.login));
            groups.extend(of(Scope::Database, core.database));
        }
        let has = |kind| groups.iter().any(|group: &Arc<Group>| group.values().get(kind) > 0);
        let pool = |at: usize| groups.get(at).filter(|group| group.values().get(LimitKind::Memory) > 0)?.pool();
        let pools = [pool(0), pool(1)];
        groups.iter().filter_map(|group| group.without_pool()).for_each(|line| core.backends.log_line(line));
        let limits = |group: &&Arc<Group>| group.values().get(LimitKind::ProcessorShare) > 0;
        let shares = groups.iter().filter(limits).map(|group| group.share.clone()).collect();
        core.backend.interrupt.flag().budget.use_shares(shares);
        let had = self.ways.load(Relaxed);
        let mut ways = if groups.is_empty() { 0 } else { ANY };
        if has(LimitKind::Undo) {
            ways |= UNDO | LONG;
        }
        if has(LimitKind::Statements) || has(LimitKind::ProcessorShare) {
            ways |= LONG;
        }
        if has(LimitKind::Memory) {
            ways |= MEMORY;
        }
        if (had | ways) & MEMORY != 0 {
            memory::join(pools);
        }
        let mut mine = self.mine.lock();
        mine.groups = groups;
        // What it has of a limit that is no more goes back with the end of its transaction.
        if !mine.turns.is_empty() || mine.undo_bytes > 0 {
            ways |= LONG;
        }
        drop(mine);
        self.ways.store(ways, Relaxed);
        self.seen.store(version, Relaxed);
    }

    /// A statement begins. It pauses until the session has paid for its processor time, and until a turn is free; `in_block`: in a transaction
    /// that began before.
    ///
    /// # Errors
    /// 53400 where it would have to wait while the session holds locks (LIM-1).
    pub async fn admit(&self, core: &Core, in_block: bool) -> Result<()> {
        if self.ways(core) & LONG == 0 {
            return Ok(());
        }
        self.count_pause(core);
        let due_ns = core.backend.interrupt.flag().budget.due_ns(waits::now_ns());
        if due_ns != 0 {
            in_wait(WaitEvent::ProcessorShare, Object::NONE, sleep_until_ns(due_ns)).await;
        }
        let wanted: Vec<Arc<Group>> = {
            let mine = self.mine.lock();
            let has = |group: &Arc<Group>| mine.turns.iter().any(|had| Arc::ptr_eq(had, group));
            let limited = |group: &&Arc<Group>| group.values().get(LimitKind::Statements) > 0 && !has(group);
            mine.groups.iter().filter(limited).cloned().collect()
        };
        for group in wanted {
            if !group.turns.try_enter() {
                group.violated(LimitKind::Statements, "53400", &core.backends, &core.backend);
                let holds = core.engine.take().owner().holds_locks();
                match (holds, in_block) {
                    (false, _) => in_wait(WaitEvent::StatementLimit, Object::NONE, group.turns.enter()).await,
                    // The transaction began before the limit was set.
                    (true, true) => group.turns.enter_anyway(),
                    (true, false) => return Err(too_many(&group)),
                }
            }
            self.mine.lock().turns.push(group);
        }
        Ok(())
    }

    /// The session has no transaction any more.
    #[inline]
    pub fn rest(&self, core: &Core) {
        if self.ways.load(Relaxed) & LONG != 0 {
            self.give_back(core);
        }
    }

    #[cold]
    fn give_back(&self, core: &Core) {
        self.count_pause(core);
        self.mine.lock().give_back();
        if self.ways.load(Relaxed) & ANY == 0 {
            // It had only what went back.
            self.seen.store(u64::MAX, Relaxed);
        }
    }

    fn count_pause(&self, core: &Core) {
        if core.backend.interrupt.flag().budget.take_paused() {
            self.each(LimitKind::ProcessorShare, |group| {
                group.violated(LimitKind::ProcessorShare, "53400", &core.backends, &core.backend);
            });
        }
    }

    /// Calls `f` for the groups that limit something.
    fn each(&self, kind: LimitKind, f: impl FnMut(&Arc<Group>)) {
        let groups = self.mine.lock().groups.clone();
        groups.iter().filter(|group| group.values().get(kind) > 0).for_each(f);
    }

    /// The transaction may have written more undo.
    ///
    /// # Errors
    /// 53400.
    #[inline]
    pub fn check_undo(&self, core: &Core) -> Result<()> {
        if self.ways.load(Relaxed) & UNDO == 0 { Ok(()) } else { self.judge_undo(core) }
    }

    #[cold]
    fn judge_undo(&self, core: &Core) -> Result<()> {
        let bytes = i64::try_from(core.engine.take().undo_bytes()).unwrap_or(i64::MAX);
        {
            let mut mine = self.mine.lock();
            if mine.undo_of.is_empty() {
                mine.undo_of = mine.groups.clone();
            }
            mine.tell_undo(bytes);
        }
        let mut over = None;
        self.each(LimitKind::Undo, |group| {
            let max = i64::try_from(group.values().get(LimitKind::Undo)).unwrap_or(i64::MAX);
            if group.undo_bytes.load(Relaxed) > max && bytes > 0 {
                over = over.take().or(Some((group.clone(), max)));
            }
        });
        let Some((group, max)) = over else { return Ok(()) };
        group.violated(LimitKind::Undo, "53400", &core.backends, &core.backend);
        let shown = |bytes: i64| shown_bytes(u64::try_from(bytes).unwrap_or(0));
        let message = format!("limit_undo of {} ({}) is used up", group.named(), shown(max));
        let detail = format!("The transaction has written {bytes} bytes of undo.");
        Err(SqlError::new("53400", message).detail(detail))
    }

    /// `statement_timeout`, or the shorter time that a limit leaves.
    #[inline]
    pub fn statement_ms(&self, core: &Core, own_ms: u64) -> u64 {
        if self.ways(core) & ANY == 0 { own_ms } else { self.shorter_ms(own_ms).0 }
    }

    /// The same with the group whose limit it is.
    fn shorter_ms(&self, own_ms: u64) -> (u64, Option<Arc<Group>>) {
        let mut shorter = (own_ms, None);
        self.each(LimitKind::StatementTime, |group| {
            let ms = group.values().get(LimitKind::StatementTime);
            if shorter.0 == 0 || ms < shorter.0 {
                shorter = (ms, Some(group.clone()));
            }
        });
        shorter
    }

    /// A statement has failed: where a limit is the reason, that is counted and named.
    pub fn explain(&self, core: &Core, e: SqlError) -> SqlError {
        if self.ways.load(Relaxed) & ANY == 0 {
            return e;
        }
        match e.code() {
            "57014" if e.message().ends_with("statement timeout") => {
                let own_ms = core.settings.lock().statement_timeout_ms;
                let (_, Some(group)) = self.shorter_ms(own_ms) else { return e };
                group.violated(LimitKind::StatementTime, "57014", &core.backends, &core.backend);
                SqlError::new("57014", format!("canceling statement due to limit_statement_time of {}", group.named()))
            }
            "53200" => {
                if let Some(pool) = memory::refused_by() {
                    let own = |group: &Arc<Group>| group.pool() == Some(pool);
                    let groups = self.mine.lock().groups.clone();
                    groups.iter().filter(|group| own(group)).for_each(|group| {
                        group.violated(LimitKind::Memory, "53200", &core.backends, &core.backend);
                    });
                }
                e
            }
            _ => e,
        }
    }

    /// What SHOW says of a limit: the least of the role's and the database's.
    pub fn shown(&self, core: &Core, name: &str) -> Option<String> {
        let kind = LimitKind::of_setting(name)?;
        self.ways(core);
        let mut least = 0;
        self.each(kind, |group| {
            let value = group.values().get(kind);
            least = if least == 0 { value } else { value.min(least) };
        });
        Some(match kind {
            LimitKind::Memory | LimitKind::Undo => shown_bytes(least),
            LimitKind::StatementTime => shown_ms(least),
            _ => least.to_string(),
        })
    }
}

fn too_many(group: &Group) -> SqlError {
    let message =
        format!("limit_statements of {} ({}) is reached", group.named(), group.values().get(LimitKind::Statements));
    SqlError::new("53400", message).detail("The session holds locks, so it does not wait for other statements to end.")
}
