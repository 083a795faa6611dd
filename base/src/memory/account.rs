//! The accounts of sessions and of the server: their counters, their limits, and the decision whether a statement is past one.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU16, AtomicU64, Ordering::Relaxed};

use crate::sync::{Class, Mutex};

use super::SMALL_BYTES;
use super::pool::Pool;

/// A session's account tells its pools of a change of this many bytes.
const POOL_BYTES: i64 = 256 << 10;
/// A statement with less is not refused for the limit of a pool: the short ones go on beside one that fills it.
const POOL_SMALL_BYTES: i64 = 1 << 20;

/// A session's account tells the server's of a change of this many bytes.
const SESSION_BYTES: i64 = 1 << 20;

/// What a statement or a session holds memory for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Kind {
    /// Rows that are being sorted.
    Sort,
    /// Groups and their aggregates.
    Groups,
    /// One side of a hash join.
    Hash,
    /// Rows that DISTINCT has seen.
    Distinct,
    /// The sides of UNION, INTERSECT, EXCEPT.
    SetOperation,
    /// Working tables of recursive queries.
    Recursion,
    /// Rows of subqueries.
    Subqueries,
    /// Rows of a result that is not yet sent: RETURNING, functions, views of the system.
    Results,
    /// Keys that a foreign key has still to check.
    ForeignKeys,
    /// Plans.
    Plans,
    /// Prepared statements and cached texts.
    Prepared,
    /// Advisory locks.
    AdvisoryLocks,
    /// Lines and values of COPY.
    Copy,
    /// Messages for the client.
    Notices,
    /// Keys of an index that is being built.
    IndexBuild,
    /// Buffers of temporary files.
    Files,
}

/// How many kinds there are.
pub const KIND_COUNT: usize = 16;

impl Kind {
    /// All of them.
    pub const ALL: [Kind; KIND_COUNT] = [
        Kind::Sort,
        Kind::Groups,
        Kind::Hash,
        Kind::Distinct,
        Kind::SetOperation,
        Kind::Recursion,
        Kind::Subqueries,
        Kind::Results,
        Kind::ForeignKeys,
        Kind::Plans,
        Kind::Prepared,
        Kind::AdvisoryLocks,
        Kind::Copy,
        Kind::Notices,
        Kind::IndexBuild,
        Kind::Files,
    ];

    /// Its name in `clearway_memory` and in errors.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Sort => "sort",
            Kind::Groups => "groups and aggregates",
            Kind::Hash => "hash join",
            Kind::Distinct => "distinct",
            Kind::SetOperation => "set operation",
            Kind::Recursion => "recursive query",
            Kind::Subqueries => "subqueries",
            Kind::Results => "results",
            Kind::ForeignKeys => "foreign keys",
            Kind::Plans => "plans",
            Kind::Prepared => "prepared statements",
            Kind::AdvisoryLocks => "advisory locks",
            Kind::Copy => "copy",
            Kind::Notices => "notices",
            Kind::IndexBuild => "index build",
            Kind::Files => "temporary files",
        }
    }
}

/// Which limit was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// `statement_memory`.
    Statement,
    /// `limit_memory` of a role or a database.
    Pool(Pool),
    /// `server_memory`.
    Server,
}

impl Limit {
    /// The setting's name.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Statement => "statement_memory",
            Limit::Pool(_) => "limit_memory",
            Limit::Server => "server_memory",
        }
    }
}

/// A statement asked for more memory than an account has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excess {
    /// Whose limit.
    pub limit: Limit,
    /// The limit in bytes.
    pub bytes_max: i64,
    /// What the statement has.
    pub statement_bytes: i64,
    /// What it asked for beyond that, at once.
    pub more_bytes: i64,
    /// What it has most of.
    pub most: Option<(Kind, i64)>,
    /// The role or the database whose limit it is.
    pub of: Option<String>,
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "out of memory: {} of {} bytes", self.limit.name(), self.bytes_max)?;
        if let Some(of) = &self.of {
            write!(f, " of {of}")?;
        }
        write!(f, " is used up")
    }
}

impl std::error::Error for Excess {}

/// One session's account. Its counters are written by the thread that polls the session alone, unless it is lent (MEM-6), and read by all.
#[derive(Debug)]
pub struct Account {
    /// The session; 0: no session has the account.
    pid: AtomicI64,
    /// What the session has.
    bytes: AtomicI64,
    /// What the server's account has not been told of.
    untold: AtomicI64,
    /// What the session had when the statement began, without what it keeps.
    began: AtomicI64,
    /// The most that the statement had.
    peak: AtomicI64,
    limit: AtomicI64,
    kinds: [AtomicI64; KIND_COUNT],
    /// Sum of `kinds`.
    held: AtomicI64,
    /// Statements refused.
    refused: AtomicU64,
    /// The pools to which it belongs, and what they were told of it.
    pools: [AtomicU16; 2],
    pool_bytes: AtomicI64,
    /// The pool for whose limit the statement was refused.
    refused_by: AtomicU16,
    /// Several threads write it (MEM-6).
    lent: AtomicBool,
}

/// The account of the server: what all sessions have told, and what belongs to none.
struct Server {
    bytes: AtomicI64,
    limit: AtomicI64,
    refused: AtomicU64,
}

static SERVER: Server =
    Server { bytes: AtomicI64::new(0), limit: AtomicI64::new(i64::MAX), refused: AtomicU64::new(0) };

/// Accounts are never freed: threads refer to them. An ended session's is used again.
static CLASS: Class = Class::new("memory/accounts");
static ACCOUNTS: Mutex<Vec<&'static Account>> = Mutex::of_class(&CLASS, Vec::new());

pub(super) fn enter_server(bytes: i64) {
    SERVER.bytes.fetch_add(bytes, Relaxed);
}

/// Sets the server's limit in bytes. It should leave room for short statements and for what no account sees (stacks, the
/// allocator's own, code).
pub fn set_server_limit(bytes: u64) {
    SERVER.limit.store(i64::try_from(bytes).unwrap_or(i64::MAX), Relaxed);
}

/// Bytes of all accounts, the limit, statements refused for it.
pub fn server() -> (i64, i64, u64) {
    (SERVER.bytes.load(Relaxed), SERVER.limit.load(Relaxed), SERVER.refused.load(Relaxed))
}

/// Whether the server's account is past its limit.
pub fn is_server_full() -> bool {
    !server_has_room(0)
}

/// Whether the server's account may have so many bytes more.
pub fn server_has_room(bytes: usize) -> bool {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    SERVER.bytes.load(Relaxed).saturating_add(bytes) <= SERVER.limit.load(Relaxed)
}

/// An account as others see it.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The session.
    pub pid: i32,
    /// What it has.
    pub bytes: i64,
    /// The most that its statement had.
    pub peak_bytes: i64,
    /// The statement's limit; `i64::MAX`: none.
    pub limit_bytes: i64,
    /// Statements refused.
    pub refused: u64,
    /// By kind, where there is anything.
    pub kinds: Vec<(Kind, i64)>,
}

/// The accounts of all sessions.
pub fn accounts() -> Vec<Shown> {
    let all = ACCOUNTS.lock();
    let open = all.iter().filter(|account| account.pid.load(Relaxed) != 0);
    open.map(|account| Shown {
        pid: account.pid.load(Relaxed) as i32,
        bytes: account.bytes.load(Relaxed),
        peak_bytes: account.peak.load(Relaxed),
        limit_bytes: account.limit.load(Relaxed),
        refused: account.refused.load(Relaxed),
        kinds: account.by_kind(),
    })
    .collect()
}

impl Account {
    /// An account for a session.
    pub fn open(pid: i32) -> &'static Account {
        let mut all = ACCOUNTS.lock();
        let free = all.iter().find(|account| account.pid.load(Relaxed) == 0).copied();
        let account = free.unwrap_or_else(|| {
            let zero = || AtomicI64::new(0);
            let account: &'static Account = Box::leak(Box::new(Account {
                pid: zero(),
                bytes: zero(),
                untold: zero(),
                began: zero(),
                peak: zero(),
                limit: AtomicI64::new(i64::MAX),
                kinds: std::array::from_fn(|_| zero()),
                held: zero(),
                refused: AtomicU64::new(0),
                pools: [AtomicU16::new(0), AtomicU16::new(0)],
                pool_bytes: zero(),
                refused_by: AtomicU16::new(0),
                lent: AtomicBool::new(false),
            }));
            all.push(account);
            account
        });
        account.pid.store(i64::from(pid.max(1)), Relaxed);
        account
    }

    /// The session has ended: what it leaves behind is the server's (MEM-1).
    pub fn close(&self) {
        self.join([None, None]);
        enter_server(self.untold.swap(0, Relaxed));
        for counter in [&self.bytes, &self.began, &self.peak, &self.held].into_iter().chain(&self.kinds) {
            counter.store(0, Relaxed);
        }
        self.limit.store(i64::MAX, Relaxed);
        self.refused.store(0, Relaxed);
        self.pid.store(0, Relaxed);
    }

    /// Enters a thread's balance; whether a limit is passed now.
    pub(super) fn enter(&self, balance: i64) -> bool {
        if self.lent.load(Relaxed) {
            return self.enter_beside_others(balance);
        }
        // The thread that polls the session is the only writer: no locked instruction (MEM-2).
        let bytes = self.bytes.load(Relaxed) + balance;
        self.bytes.store(bytes, Relaxed);
        let statement = bytes - self.began.load(Relaxed);
        if statement > self.peak.load(Relaxed) {
            self.peak.store(statement, Relaxed);
        }
        if self.pools[0].load(Relaxed) != 0 {
            self.tell_pools(bytes, POOL_BYTES);
        }
        let untold = self.untold.load(Relaxed) + balance;
        if untold.abs() < SESSION_BYTES {
            self.untold.store(untold, Relaxed);
        } else {
            self.untold.store(0, Relaxed);
            enter_server(untold);
        }
        self.is_over()
    }

    /// The same where other threads enter theirs meanwhile (MEM-6).
    #[cold]
    fn enter_beside_others(&self, balance: i64) -> bool {
        let bytes = self.bytes.fetch_add(balance, Relaxed) + balance;
        self.peak.fetch_max(bytes - self.began.load(Relaxed), Relaxed);
        if self.pools[0].load(Relaxed) != 0 && (bytes - self.pool_bytes.load(Relaxed)).abs() >= POOL_BYTES {
            let told = self.pool_bytes.swap(bytes, Relaxed);
            self.each_pool(|pool| pool.add(bytes - told));
        }
        let untold = self.untold.fetch_add(balance, Relaxed) + balance;
        if untold.abs() >= SESSION_BYTES {
            enter_server(self.untold.swap(0, Relaxed));
        }
        self.is_over()
    }

    /// Several threads enter their balances from now on, or one again. Said by the thread that polls the session, while it is the only one.
    pub(super) fn lend(&self, lent: bool) {
        self.lent.store(lent, Relaxed);
    }

    /// The session's memory counts to these pools from now on, and to no others (POOL-1). One pool stands first.
    pub(super) fn join(&self, pools: [Option<Pool>; 2]) {
        let told = self.pool_bytes.swap(0, Relaxed);
        self.each_pool(|pool| pool.add(-told));
        let pools = if pools[0].is_none() { [pools[1], None] } else { pools };
        for (place, pool) in self.pools.iter().zip(pools) {
            place.store(Pool::to_place(pool), Relaxed);
        }
        self.tell_pools(self.bytes.load(Relaxed), 0);
    }

    fn each_pool(&self, f: impl FnMut(Pool)) {
        self.pools.iter().filter_map(|place| Pool::at_place(place.load(Relaxed))).for_each(f);
    }

    /// Tells the pools what the session has, if that has changed by so much.
    fn tell_pools(&self, bytes: i64, least: i64) {
        let change = bytes - self.pool_bytes.load(Relaxed);
        if change.abs() >= least {
            self.pool_bytes.store(bytes, Relaxed);
            self.each_pool(|pool| pool.add(change));
        }
    }

    /// The pool for whose limit the statement was refused.
    pub(super) fn refused_by(&self) -> Option<Pool> {
        Pool::at_place(self.refused_by.load(Relaxed))
    }

    pub(super) fn is_over(&self) -> bool {
        self.exceeded(0).is_some()
    }

    pub(super) fn has_room(&self, more: i64) -> bool {
        self.exceeded(more).is_none()
    }

    /// How many bytes more the statement may have by all of its limits; 0 or less: none.
    pub(super) fn room(&self) -> i64 {
        let statement = self.statement_bytes();
        let mut room = self.limit.load(Relaxed).saturating_sub(statement);
        if self.pools[0].load(Relaxed) != 0 {
            let small = POOL_SMALL_BYTES - statement;
            self.each_pool(|pool| room = room.min(pool.limit().saturating_sub(pool.bytes()).max(small)));
        }
        let server = SERVER.limit.load(Relaxed).saturating_sub(SERVER.bytes.load(Relaxed));
        room.min(server.max(SMALL_BYTES - statement)) // MEM-3
    }

    /// Whether the statement has more than seven eighths of its own limit, with what is not entered yet.
    pub(super) fn is_tight(&self, balance: i64) -> bool {
        let limit = self.limit.load(Relaxed);
        self.statement_bytes() + balance > limit - limit / 8
    }

    fn statement_bytes(&self) -> i64 {
        self.bytes.load(Relaxed) - self.began.load(Relaxed)
    }

    fn exceeded(&self, more: i64) -> Option<Limit> {
        let statement = self.statement_bytes().saturating_add(more);
        if statement > self.limit.load(Relaxed) {
            return Some(Limit::Statement);
        }
        if statement > POOL_SMALL_BYTES && self.pools[0].load(Relaxed) != 0 {
            let mut over = None;
            self.each_pool(|pool| {
                if pool.bytes().saturating_add(more) > pool.limit() {
                    over = over.or(Some(Limit::Pool(pool)));
                }
            });
            if over.is_some() {
                return over;
            }
        }
        let server = SERVER.bytes.load(Relaxed).saturating_add(more);
        (statement > SMALL_BYTES && server > SERVER.limit.load(Relaxed)).then_some(Limit::Server) // MEM-3
    }

    pub(super) fn judge(&self, more: i64) -> Result<(), Excess> {
        let Some(limit) = self.exceeded(more) else { return Ok(()) };
        self.refused.fetch_add(1, Relaxed);
        let mut of = None;
        let bytes_max = match limit {
            Limit::Statement => self.limit.load(Relaxed),
            Limit::Pool(pool) => {
                self.refused_by.store(Pool::to_place(Some(pool)), Relaxed);
                of = Some(pool.name());
                pool.limit()
            }
            Limit::Server => {
                SERVER.refused.fetch_add(1, Relaxed);
                SERVER.limit.load(Relaxed)
            }
        };
        let most = self.by_kind().into_iter().max_by_key(|(_, bytes)| *bytes);
        Err(Excess { limit, bytes_max, statement_bytes: self.statement_bytes(), more_bytes: more, most, of })
    }

    pub(super) fn begin(&self, limit: i64) {
        self.began.store(self.bytes.load(Relaxed) - self.held.load(Relaxed), Relaxed); // MEM-4
        self.peak.store(self.held.load(Relaxed), Relaxed);
        self.refused_by.store(0, Relaxed);
        self.limit.store(if limit == 0 { i64::MAX } else { limit }, Relaxed);
    }

    /// The most that the statement had.
    pub(super) fn had(&self) -> i64 {
        self.peak.load(Relaxed) - self.held.load(Relaxed)
    }

    pub(super) fn bytes(&self) -> i64 {
        self.bytes.load(Relaxed)
    }

    pub(super) fn held(&self) -> i64 {
        self.held.load(Relaxed)
    }

    pub(super) fn hold(&self, kind: Kind, bytes: i64) {
        // A portal is dropped by the session's own task, too.
        self.kinds[kind as usize].fetch_add(bytes, Relaxed);
        self.held.fetch_add(bytes, Relaxed);
    }

    fn by_kind(&self) -> Vec<(Kind, i64)> {
        let all = Kind::ALL.iter().map(|kind| (*kind, self.kinds[*kind as usize].load(Relaxed)));
        all.filter(|(_, bytes)| *bytes > 0).collect()
    }
}
