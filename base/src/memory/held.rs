//! The share of a session's account that one sort, hash or portal holds.

use super::account::{Account, Kind};
use super::{Excess, HERE, check, is_tight, share};

/// A part of an account, by its kind: as much as the account has grown since, without what others hold that began
/// later. It is measured, not computed: [`Held::grow`] looks at the account.
#[derive(Debug)]
pub struct Held {
    account: Option<&'static Account>,
    kind: Kind,
    bytes: i64,
    /// What the session had at the beginning, without what was held then.
    began: i64,
    /// Too little to be entered yet.
    rest: i64,
}

fn unheld(account: &Account) -> i64 {
    account.bytes() + HERE.with(|here| here.balance.get()) as i64 - account.held()
}

impl Held {
    /// Nothing yet.
    pub fn new(kind: Kind) -> Held {
        let account = HERE.with(|here| here.account.get());
        Held { account, kind, bytes: 0, began: account.map_or(0, unheld), rest: 0 }
    }

    /// Goes on after others have used the account: what it has changed by meanwhile is not this one's.
    pub fn resume(&mut self) {
        if self.account.is_none() {
            self.account = HERE.with(|here| here.account.get());
        }
        self.began = self.account.map_or(0, unheld) - self.rest;
    }

    /// Looks at how much it is by now, and whether the statement may go on.
    ///
    /// # Errors
    /// As [`check`].
    #[inline]
    pub fn grow(&mut self) -> Result<(), Excess> {
        self.measure();
        check()
    }

    /// Looks at how much it is by now.
    #[inline]
    pub fn measure(&mut self) {
        let Some(account) = self.account else { return };
        let more = unheld(account) - self.began;
        if !(-1024..=1024).contains(&more) && self.bytes + more >= 0 {
            self.bytes += more;
            account.hold(self.kind, more);
            self.rest = 0;
        } else {
            self.rest = more;
        }
    }

    /// Holds exactly so many bytes, for an owner that knows the size of what it has. A `Held` is either set or measured, never both.
    #[inline]
    pub fn set(&mut self, bytes: usize) {
        let more = bytes as i64 - self.bytes;
        if let Some(account) = self.account.filter(|_| more != 0) {
            self.bytes += more;
            account.hold(self.kind, more);
        }
    }

    /// Whether it holds more than `most` bytes, or than its share, or the statement's account is nearly used up, whatever by (MEM-7).
    #[inline]
    pub fn exceeds(&self, most: i64) -> bool {
        self.bytes > most || self.account.is_some() && (self.bytes > share() as i64 || is_tight())
    }

    /// What it holds.
    pub fn bytes(&self) -> i64 {
        self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(account) = self.account
            && self.bytes != 0
        {
            account.hold(self.kind, -self.bytes);
        }
    }
}
