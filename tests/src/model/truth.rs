//! The ground truth: the history of commits, what clients were told, and whether the two agree.
//!
//! The protocol never reads any of this. Every reply is broken up into facts: *row r was v, as the commit at LSN l left
//! it*. A fact is checked twice: when a statement accepts a row, against all commits so far (`MODEL-1`), and after each
//! crash, if the client had been told, against the commits that survived (`MODEL-2`).

use super::engine::{Engine, Violation};
use super::program::{letter, name, position, seen};
use super::state::{CATALOG, Fact, Life, Lsn, ROWS, Reply, Slot, State, Version};

impl Engine<'_> {
    /// What the commits up to `lsn` left in `row`, and the last of them that touched it.
    pub fn truth_at(&self, row: u8, lsn: Lsn) -> (Lsn, Option<u8>) {
        let mut newest = (0, self.scenario.initially(row));
        for commit in self.state.history.iter().filter(|commit| commit.lsn <= lsn) {
            for &(_, body) in commit.writes.iter().filter(|&&(written, _)| written == row) {
                newest = (commit.lsn, body.seen());
            }
        }
        newest
    }

    /// The fact that a statement is about to tell: at `lsn` the row was `seen`.
    pub fn fact(&self, row: u8, lsn: Lsn, seen: Option<u8>) -> Fact {
        Fact { row, lsn: self.truth_at(row, lsn).0, seen }
    }

    /// `MODEL-1`: what a statement accepts is what the commits up to its position left; nor does a session go back.
    pub fn check_fact(&mut self, session: usize, fact: Fact) -> Result<(), Violation> {
        let (_, truth) = self.truth_at(fact.row, fact.lsn);
        if truth != fact.seen {
            return Err(Violation(format!(
                "session {} takes {} for {}, but the commits up to its position left {}",
                letter(session),
                name(fact.row),
                seen(fact.seen),
                seen(truth)
            )));
        }
        let newest = &mut self.state.sessions[session].newest_seen[fact.row as usize];
        if fact.lsn < *newest {
            return Err(Violation(format!(
                "session {} goes back: it had seen {} as of {}, and now sees it as of {}",
                letter(session),
                name(fact.row),
                position(*newest),
                position(fact.lsn)
            )));
        }
        *newest = fact.lsn;
        Ok(())
    }

    /// The client is told: from here on a crash must not belie it.
    pub fn tell(&mut self, session: usize, reply: Reply) {
        let client = self.state.sessions[session];
        let mut told: Vec<Fact> = client.facts.iter().copied().collect();
        if matches!(reply, Reply::Commit | Reply::End) {
            told.extend(client.txn_facts.iter());
        }
        for fact in told.into_iter().filter(|fact| fact.lsn > self.state.synced_lsn) {
            self.state.told.insert_sorted(fact);
        }
        if reply == Reply::Commit && !self.scenario.asynchronous[session] {
            self.state.acknowledged = self.state.acknowledged.max(client.commit_lsn);
        }
    }

    /// Facts that are on disk can't be belied any more; forgetting them lets states coincide.
    pub fn forget_what_is_synced(&mut self) {
        let synced = self.state.synced_lsn;
        self.state.told.retain(|fact| fact.lsn > synced);
        if self.state.acknowledged <= synced {
            self.state.acknowledged = 0;
        }
    }

    /// `MODEL-2`: the log survived up to `end`; nothing acknowledged is lost and every reply ever given still holds.
    pub fn check_after_crash(&mut self, end: Lsn) -> Result<(), Violation> {
        if self.state.acknowledged > end {
            return Err(Violation(format!(
                "the commit at LSN {} was acknowledged, and the log survived up to {}",
                self.state.acknowledged,
                position(end)
            )));
        }
        for fact in self.state.told.iter() {
            let (_, survived) = self.truth_at(fact.row, end.min(fact.lsn));
            if survived != fact.seen {
                return Err(Violation(format!(
                    "a client was told that {} was {} as of LSN {}; the log survived up to {}, and it never was: {}",
                    name(fact.row),
                    seen(fact.seen),
                    fact.lsn,
                    position(end),
                    seen(survived)
                )));
            }
        }
        Ok(())
    }

    /// `MODEL-3`: once the database is open again, a reader of the newest committed version of each row reads what the
    /// surviving commits left: none of them lost, nothing else visible.
    pub fn check_recovered(&self) -> Result<(), Violation> {
        if self.state.life != Life::Recovered || !self.is_open() {
            return Ok(());
        }
        for row in 0..ROWS as u8 {
            let body = self.newest_committed(self.state.memory.rows[row as usize]);
            let (_, truth) = self.truth_at(row, Lsn::MAX);
            if body.seen() != truth {
                return Err(Violation(format!(
                    "after recovery {} reads as {}; the commits that survived left {}",
                    name(row),
                    seen(body.seen()),
                    seen(truth)
                )));
            }
        }
        Ok(())
    }

    /// Follows a version's tags to the newest version whose writer has its commit record in the log.
    fn newest_committed(&self, mut version: Version) -> super::state::Body {
        while let Some(undo) = self.state.undo_at(version.tag) {
            let reserved = self.state.sessions.iter().any(|one| one.txn == undo.txn && one.commit_lsn != 0);
            match self.state.slots[undo.txn as usize] {
                Slot::Active if reserved => break,
                Slot::Active | Slot::RolledBack => version = undo.before,
                Slot::Free | Slot::Committed(_) => break,
            }
        }
        version.body
    }

    /// After recovery sessions are served as soon as no loser has anything to undo in the catalog.
    pub fn is_open(&self) -> bool {
        self.state.life == Life::Running || self.state.life == Life::Recovered && !loser_holds_catalog(&self.state)
    }
}

fn loser_holds_catalog(state: &State) -> bool {
    state.undo.iter().any(|undo| !undo.undone && undo.row as usize == CATALOG && state.losers & 1 << undo.txn != 0)
}
