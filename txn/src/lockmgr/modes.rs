//! Lock modes and which of them conflict, as data.
//!
//! Two families share one type, so that one lock table serves both: the eight table modes of PostgreSQL
//! (documentation section 13.3.1, table 13.2) and the four row strengths (section 13.3.2, table 13.3).
//! Transaction ids, virtual ids, advisory keys and unique keys are locked in `Share` or `Exclusive`.
//!
//! # Invariants
//! - LKM-1: the relation "conflicts with" is symmetric, and no table mode conflicts with a row mode.

use std::fmt;

/// A lock mode; weakest first within its family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum LockMode {
    /// `SELECT`.
    AccessShare = 0,
    /// `SELECT ... FOR UPDATE` and its kin, on the table.
    RowShare,
    /// `INSERT`, `UPDATE`, `DELETE`.
    RowExclusive,
    /// `VACUUM`, `ANALYZE`, `CREATE INDEX CONCURRENTLY`.
    ShareUpdateExclusive,
    /// `CREATE INDEX`; also a shared advisory lock and a wait for a transaction's end.
    Share,
    /// `CREATE TRIGGER`, foreign keys.
    ShareRowExclusive,
    /// `REFRESH MATERIALIZED VIEW CONCURRENTLY`; also an exclusive advisory lock and a transaction's lock on its own id.
    Exclusive,
    /// `DROP`, `TRUNCATE`, most of `ALTER TABLE`.
    AccessExclusive,
    /// `FOR KEY SHARE`.
    RowKeyShare,
    /// `FOR SHARE`.
    RowForShare,
    /// `FOR NO KEY UPDATE`, and an `UPDATE` that leaves the keys alone.
    RowNoKeyUpdate,
    /// `FOR UPDATE`, `DELETE`, and an `UPDATE` of a key.
    RowUpdate,
}

use LockMode::*;

/// Every mode, in the order of its number.
pub const ALL_MODES: [LockMode; 12] = [
    AccessShare,
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
    AccessExclusive,
    RowKeyShare,
    RowForShare,
    RowNoKeyUpdate,
    RowUpdate,
];

/// The conflict table: for each mode the modes that another owner may not hold at the same time.
const CONFLICTS: [&[LockMode]; 12] = [
    /* AccessShare          */ &[AccessExclusive],
    /* RowShare             */ &[Exclusive, AccessExclusive],
    /* RowExclusive         */ &[Share, ShareRowExclusive, Exclusive, AccessExclusive],
    /* ShareUpdateExclusive */
    &[ShareUpdateExclusive, Share, ShareRowExclusive, Exclusive, AccessExclusive],
    /* Share                */
    &[RowExclusive, ShareUpdateExclusive, ShareRowExclusive, Exclusive, AccessExclusive],
    /* ShareRowExclusive    */
    &[RowExclusive, ShareUpdateExclusive, Share, ShareRowExclusive, Exclusive, AccessExclusive],
    /* Exclusive            */
    &[RowShare, RowExclusive, ShareUpdateExclusive, Share, ShareRowExclusive, Exclusive, AccessExclusive],
    /* AccessExclusive      */
    &[AccessShare, RowShare, RowExclusive, ShareUpdateExclusive, Share, ShareRowExclusive, Exclusive, AccessExclusive],
    /* RowKeyShare          */ &[RowUpdate],
    /* RowForShare          */ &[RowNoKeyUpdate, RowUpdate],
    /* RowNoKeyUpdate       */ &[RowForShare, RowNoKeyUpdate, RowUpdate],
    /* RowUpdate            */ &[RowKeyShare, RowForShare, RowNoKeyUpdate, RowUpdate],
];

const fn conflict_masks() -> [u16; 12] {
    let mut masks = [0u16; 12];
    let mut m = 0;
    while m < 12 {
        let list = CONFLICTS[m];
        let mut i = 0;
        while i < list.len() {
            masks[m] |= 1 << list[i] as u8;
            i += 1;
        }
        m += 1;
    }
    masks
}

const CONFLICT_MASKS: [u16; 12] = conflict_masks();

/// A set of lock modes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ModeSet(u16);

impl ModeSet {
    /// No mode.
    pub const EMPTY: ModeSet = ModeSet(0);

    /// Whether no mode is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `mode` is in the set.
    pub fn contains(self, mode: LockMode) -> bool {
        self.0 & mode.bit() != 0
    }

    /// Whether the sets have a mode in common.
    pub fn meets(self, other: ModeSet) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether every mode of `other` is in the set.
    pub fn covers(self, other: ModeSet) -> bool {
        self.0 & other.0 == other.0
    }

    /// The set with `mode` added.
    #[must_use]
    pub fn with(self, mode: LockMode) -> ModeSet {
        ModeSet(self.0 | mode.bit())
    }

    /// The set with `mode` removed.
    #[must_use]
    pub fn without(self, mode: LockMode) -> ModeSet {
        ModeSet(self.0 & !mode.bit())
    }

    /// The modes of both sets.
    #[must_use]
    pub fn union(self, other: ModeSet) -> ModeSet {
        ModeSet(self.0 | other.0)
    }

    /// The modes, weakest first.
    pub fn iter(self) -> impl Iterator<Item = LockMode> {
        ALL_MODES.into_iter().filter(move |m| self.contains(*m))
    }
}

impl fmt::Debug for ModeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl LockMode {
    const fn bit(self) -> u16 {
        1 << self as u8
    }

    /// The modes that may not be held by another owner beside this one.
    pub fn conflicts(self) -> ModeSet {
        ModeSet(CONFLICT_MASKS[self as usize])
    }

    /// Whether two owners may not hold `self` and `other` at once.
    pub fn conflicts_with(self, other: LockMode) -> bool {
        self.conflicts().contains(other)
    }

    /// Whether the mode is one that never conflicts with itself or another weak one, and so needs no entry in the lock table
    /// while no transaction asks for a strong one.
    pub fn is_weak_table_mode(self) -> bool {
        matches!(self, AccessShare | RowShare | RowExclusive)
    }

    /// Whether the mode conflicts with a weak table mode.
    pub fn is_strong_table_mode(self) -> bool {
        matches!(self, Share | ShareRowExclusive | Exclusive | AccessExclusive)
    }

    /// Whether this is one of the four row strengths.
    pub fn is_row_strength(self) -> bool {
        self as u8 >= RowKeyShare as u8
    }

    /// The name `pg_locks` gives it; row strengths are shown by the statement that asks for them.
    pub fn name(self) -> &'static str {
        match self {
            AccessShare => "AccessShareLock",
            RowShare => "RowShareLock",
            RowExclusive => "RowExclusiveLock",
            ShareUpdateExclusive => "ShareUpdateExclusiveLock",
            Share => "ShareLock",
            ShareRowExclusive => "ShareRowExclusiveLock",
            Exclusive => "ExclusiveLock",
            AccessExclusive => "AccessExclusiveLock",
            RowKeyShare => "For Key Share",
            RowForShare => "For Share",
            RowNoKeyUpdate => "For No Key Update",
            RowUpdate => "For Update",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LKM-1
    #[test]
    fn conflicts_are_symmetric_and_stay_in_their_family() {
        for a in ALL_MODES {
            for b in ALL_MODES {
                assert_eq!(a.conflicts_with(b), b.conflicts_with(a), "{a:?} {b:?}");
                if a.is_row_strength() != b.is_row_strength() {
                    assert!(!a.conflicts_with(b), "{a:?} {b:?}");
                }
            }
        }
    }

    /// The table of PostgreSQL's documentation, row by row, as it is printed there.
    #[test]
    fn table_modes_match_the_documentation() {
        const PRINTED: [&str; 8] =
            [".......X", "......XX", "....XXXX", "...XXXXX", "..XX.XXX", "..XXXXXX", ".XXXXXXX", "XXXXXXXX"];
        for (i, row) in PRINTED.iter().enumerate() {
            for (j, mark) in row.bytes().enumerate() {
                assert_eq!(ALL_MODES[i].conflicts_with(ALL_MODES[j]), mark == b'X', "{i} {j}");
            }
        }
    }

    #[test]
    fn weak_modes_never_meet_each_other() {
        for a in ALL_MODES.into_iter().filter(|m| m.is_weak_table_mode()) {
            for b in ALL_MODES.into_iter().filter(|m| m.is_weak_table_mode()) {
                assert!(!a.conflicts_with(b));
            }
        }
    }
}
