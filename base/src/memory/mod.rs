//! Memory accounts: count how much of the heap each session and the server use, and refuse a session more than its limit.
//!
//! # Structure
//! ```text
//!   malloc, free ──> balance of the thread ──> account of the session ──> account of the server
//!                    (a plain cell)             (every 64 KiB)             (every MiB)
//!   Pool: what the sessions of a role or a database have together, every 256 KiB
//!   Held: how much of a session's account one sort, hash, portal, ... has      allocator: the hook
//! ```
//! The allocator adds each allocation and subtracts each free, so no byte is missed. A future that runs on
//! behalf of a session is wrapped by [`charged`]: the memory that its polls allocate counts to the session. Memory that no
//! session asked for (the page cache, undo, the catalog) counts to the server, and so do allocations under [`uncharged`].
//!
//! # Life of a statement
//! [`begin_statement`] notes the limit and how much the session has -> the statement allocates; the thread's balance goes to the account
//! in steps of 64 KiB, and past the limit the thread's `over` is set -> [`check`], called by every loop and function of the executor,
//! fails with an [`Excess`] -> the error unwinds the statement, which frees its memory -> [`end_statement`] gives pages back to the system
//! if the statement had more than 32 MiB.
//!
//! # Invariants
//! - MEM-1: the sum of all balances and accounts is what is allocated: a byte moves between them and is never dropped.
//! - MEM-2: `malloc` and `free` write the server's account, which all threads share, once per 64 KiB of a thread's net change where no
//!   session is charged, and once per MiB of a session's net change. Everything else that they write belongs to one thread.
//! - MEM-3: the server's limit refuses only a statement that has more than [`SMALL_BYTES`]. So when one statement fills the memory, the
//!   small statements of other sessions go on in the memory that [`set_server_limit`] leaves above the limit.
//! - MEM-4: memory that a session keeps between statements (portals, prepared statements, advisory locks) counts against the limit of each
//!   of its statements.
//! - MEM-5: an account never makes an allocation fail. It is judged where the code can return an error ([`check`], [`claim`]). Between two
//!   judgements a function allocates at most a few times its largest value; [`claim`] judges such a value beforehand.
//! - MEM-6: while a session's account is lent ([`lend`]), other threads enter their balances in it too, by locked instructions. The thread that
//!   polls the session lends it before they begin and takes it back when they have ended. A thread that works for it enters what its
//!   last destructors free.
//! - MEM-7: what can go to files does so where it has more than its share ([`Held::exceeds`]), a quarter of what the accounts leave beside it. So each
//!   of several sorts and hash tables of a statement, however many they are, leaves room for the next one and for what can't go to files.
//! - MEM-8: what a session allocates for a file operation and a thread of the file system's pool frees, or the other way round, belongs to the server's account. So no read or
//!   write leaves a session's account other than it was. (Before, each left some hundred bytes, and statements that read a temporary file often ended with 53200.)
//!
//! # Errors
//! [`Excess`] only.
//!
//! # Not here
//! Without [`Accounted`] as the program's allocator (programs that embed the library) nothing is counted and nothing
//! refused.

mod account;
mod allocator;
mod granted;
mod held;
mod huge;
mod pool;

pub use account::{
    Account, Excess, KIND_COUNT, Kind, Limit, Shown, accounts, is_server_full, server, server_has_room,
    set_server_limit,
};
pub use allocator::{Accounted, give_back, limit_arenas};
pub use granted::granted_bytes;
pub use held::Held;
pub use huge::{HugePages, are_huge_pages_given, ask_for_huge_pages};
pub use pool::{POOLS_MAX, Pool};

use crate::held as held_by_thread;
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A thread's balance moves to an account when it is this far from zero.
const THREAD_BYTES: isize = 64 << 10;
/// A statement with less is not refused for the server's limit (MEM-3).
pub const SMALL_BYTES: i64 = 4 << 20;
/// The share of something that can go to files is this part of what the accounts leave (MEM-7), and at least so many bytes.
const SHARE_OF_ROOM: i64 = 4;
const SHARE_BYTES_MIN: usize = 64 << 10;
/// A statement that had more gives pages back to the system when it ends.
const GIVE_BACK_BYTES: i64 = 32 << 20;

struct ThreadAccount {
    /// Allocated minus freed on this thread for the account, and not yet entered there.
    balance: Cell<isize>,
    /// The account of the future that is polled; none: the server's.
    account: Cell<Option<&'static Account>>,
    /// The account is past a limit: what `check` asks.
    over: Cell<bool>,
    /// The same as `balance` for the server's account: what sessions have handed over.
    outside: Cell<isize>,
}

impl ThreadAccount {
    /// The server's account gets bytes (MEM-2).
    fn hand_over(&self, bytes: isize) {
        let outside = self.outside.get() + bytes;
        self.outside.set(outside);
        if outside.abs() > THREAD_BYTES {
            account::enter_server(self.outside.replace(0) as i64);
        }
    }
}

thread_local! {
    static HERE: ThreadAccount =
        const { ThreadAccount { balance: Cell::new(0), account: Cell::new(None), over: Cell::new(false), outside: Cell::new(0) } };
}

#[inline(always)]
fn allocated(bytes: usize) {
    held_by_thread::note_allocator_call();
    HERE.with(|here| {
        let balance = here.balance.get() + bytes as isize;
        here.balance.set(balance);
        if balance > THREAD_BYTES {
            settle(here);
        }
    });
}

#[inline(always)]
fn freed(bytes: usize) {
    held_by_thread::note_allocator_call();
    HERE.with(|here| {
        let balance = here.balance.get() - bytes as isize;
        here.balance.set(balance);
        if balance < -THREAD_BYTES {
            settle(here);
        }
    });
}

/// Enters the thread's balance in its account (MEM-1).
#[cold]
#[inline(never)]
fn settle(here: &ThreadAccount) {
    let balance = here.balance.replace(0);
    match here.account.get() {
        Some(account) => here.over.set(account.enter(balance as i64)),
        None => account::enter_server(balance as i64),
    }
}

/// Whether the statement that runs here may go on. Costs one load; called where loops and functions begin a round.
///
/// # Errors
/// The statement's account, or the server's, is past its limit.
#[inline]
pub fn check() -> Result<(), Excess> {
    HERE.with(|here| if here.over.get() { judge(here, 0) } else { Ok(()) })
}

/// Whether the statement may have so many bytes more, at once.
///
/// # Errors
/// As [`check`].
#[inline]
pub fn claim(bytes: usize) -> Result<(), Excess> {
    HERE.with(|here| if bytes as isize > THREAD_BYTES || here.over.get() { judge(here, bytes) } else { Ok(()) })
}

/// Whether the statement may have so many bytes more, asked by code that does with less where it may not: nothing is refused.
pub fn has_room(bytes: usize) -> bool {
    HERE.with(|here| {
        settle(here);
        here.account.get().is_none_or(|account| account.has_room(i64::try_from(bytes).unwrap_or(i64::MAX)))
    })
}

/// MEM-7: how many bytes something that can go to files may have of what the accounts leave now.
pub fn share() -> usize {
    HERE.with(|here| {
        let Some(account) = here.account.get() else { return usize::MAX };
        let room = account.room().saturating_sub(here.balance.get() as i64);
        usize::try_from(room / SHARE_OF_ROOM).unwrap_or(0).max(SHARE_BYTES_MIN)
    })
}

/// MEM-7: whether less than an eighth of the statement's limit is left.
fn is_tight() -> bool {
    HERE.with(|here| here.account.get().is_some_and(|account| account.is_tight(here.balance.get() as i64)))
}

#[cold]
fn judge(here: &ThreadAccount, more: usize) -> Result<(), Excess> {
    settle(here);
    here.account.get().map_or(Ok(()), |account| account.judge(i64::try_from(more).unwrap_or(i64::MAX)))
}

/// A statement begins: it may have `limit` bytes (0: no limit), with what the session keeps (MEM-4).
pub fn begin_statement(limit: u64) {
    HERE.with(|here| {
        if let Some(account) = here.account.get() {
            settle(here);
            account.begin(i64::try_from(limit).unwrap_or(i64::MAX));
            here.over.set(false);
        }
    });
}

/// From now on the session's memory counts to these pools, and to no others.
pub fn join(pools: [Option<Pool>; 2]) {
    HERE.with(|here| {
        if let Some(account) = here.account.get() {
            account.join(pools);
        }
    });
}

/// The pool for whose limit the statement that runs here was refused memory.
pub fn refused_by() -> Option<Pool> {
    HERE.with(|here| here.account.get().and_then(Account::refused_by))
}

/// The session waits for its client: what it had beyond what it keeps is free by now.
#[inline]
pub fn end_statement() {
    HERE.with(|here| {
        let Some(account) = here.account.get() else { return };
        if account.had() > GIVE_BACK_BYTES {
            settle(here);
            account.begin(i64::MAX);
            give_back();
        }
    });
}

/// Runs `f` for the server's account: for objects that one session makes and other sessions keep or free. The bytes go there with those of
/// [`Outside`], in steps (MEM-2).
pub fn uncharged<R>(f: impl FnOnce() -> R) -> R {
    let _outside = Turn::new(None);
    f()
}

/// Memory that a session allocates, the server keeps and any session may free: it belongs to the server's account while this
/// exists.
#[derive(Debug)]
pub struct Outside {
    bytes: u32,
}

impl Outside {
    /// So many bytes, which the caller has allocated or is about to.
    #[inline]
    pub fn new(bytes: usize) -> Outside {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        Self::moves(bytes as isize);
        Outside { bytes }
    }

    #[inline]
    fn moves(bytes: isize) {
        HERE.with(|here| {
            here.balance.set(here.balance.get() - bytes);
            here.hand_over(bytes);
        });
    }
}

impl Drop for Outside {
    #[inline]
    fn drop(&mut self) {
        Self::moves(-(self.bytes as isize));
    }
}

/// A thread's change to another account and back.
struct Turn {
    account: Option<&'static Account>,
    balance: isize,
    over: bool,
}

impl Turn {
    #[inline]
    fn new(account: Option<&'static Account>) -> Self {
        HERE.with(|here| {
            let over = account.is_some_and(Account::is_over);
            Turn {
                account: here.account.replace(account),
                balance: here.balance.replace(0),
                over: here.over.replace(over),
            }
        })
    }
}

impl Drop for Turn {
    #[inline]
    fn drop(&mut self) {
        HERE.with(|here| {
            if here.account.get().is_some() {
                settle(here);
                here.balance.set(self.balance);
            } else {
                // The balance of no account need not be entered at each change: it stays with the thread's own.
                let rest = here.balance.get();
                if self.account.is_some() {
                    here.hand_over(rest);
                    here.balance.set(self.balance);
                } else {
                    here.balance.set(self.balance + rest);
                }
            }
            here.account.set(self.account);
            here.over.set(self.over);
        });
    }
}

/// The account of the session that is polled here, for threads that work for it meanwhile (MEM-6).
#[derive(Debug)]
pub struct Lent(Option<&'static Account>);

/// Lends the account of the session that is polled here until the result is dropped.
pub fn lend() -> Lent {
    HERE.with(|here| {
        let account = here.account.get();
        account.into_iter().for_each(|account| account.lend(true));
        Lent(account)
    })
}

impl Lent {
    /// The calling thread works for the account until it ends. What its last destructors free counts there too: without them a session that has
    /// many such threads, one after the other, would seem to keep what they leave.
    pub fn charge_thread(&self) {
        let Some(account) = self.0 else { return };
        AT_END.with(|_| ());
        HERE.with(|here| {
            here.account.set(Some(account));
            here.over.set(account.is_over());
        });
    }
}

/// Enters what is left when a thread ends that worked for an account.
struct EntersRest;

impl Drop for EntersRest {
    fn drop(&mut self) {
        HERE.with(|here| {
            settle(here);
            account::enter_server(here.outside.replace(0) as i64);
        });
    }
}

thread_local! {
    // A thread's objects are dropped in the reverse of the order in which they were first used: this one, which is used first, last.
    static AT_END: EntersRest = const { EntersRest };
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.0.into_iter().for_each(|account| account.lend(false));
    }
}

/// A future whose polls are charged to an account.
pub struct Charged<F> {
    account: &'static Account,
    future: Pin<Box<F>>,
}

/// Charges what the polls of `future` allocate to `account`.
pub fn charged<F: Future>(account: &'static Account, future: F) -> Charged<F> {
    Charged { account, future: Box::pin(future) }
}

impl<F: Future> Future for Charged<F> {
    type Output = F::Output;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let _turn = Turn::new(Some(self.account));
        self.future.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests;
