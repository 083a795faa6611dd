//! Access lists: which role has which privileges on an object, which role granted them, and which of them may be granted further.
//!
//! # Invariants
//! - ACL-1: one entry holds all privileges that one role granted to another role; no two entries have the same two roles, and none is empty.
//! - ACL-2: a role other than the owner has a grant option only through another entry. If that entry is revoked, the grant option is revoked
//!   with it.
//!
//! Source: PostgreSQL's `aclupdate`, `recursive_revoke`, `check_circularity` (src/backend/utils/adt/acl.c).

use serde::{Deserialize, Serialize};

use super::Oid;

/// The grantee PUBLIC: every role.
pub const PUBLIC: Oid = 0;
/// Every letter, in the order in which PostgreSQL prints them.
pub const LETTERS: &str = "arwdDxtXUCTc";
/// Stands for the owner in lists of an older format, which did not name the owner.
const OWNER: Oid = Oid::MAX;

/// What one role granted another, in PostgreSQL's letters (`r`, `a`, `w`, `d`, `D`, `x`, `t`, `X`, `U`, `C`, `T`, `c`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The role that has the privileges; [`PUBLIC`]: every role.
    pub role: Oid,
    /// The role that granted them.
    pub by: Oid,
    /// The privileges.
    pub privileges: String,
    /// Those of the privileges that the role may grant further.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub grantable: String,
}

/// What an object is, as far as its access list goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AclKind {
    /// A table, view or materialized view.
    Table,
    /// A column.
    Column,
    /// A sequence.
    Sequence,
    /// A schema.
    Schema,
    /// A database.
    Database,
    /// A type.
    Type,
    /// A function or procedure.
    Function,
    /// A large object.
    LargeObject,
}

impl AclKind {
    /// Everything that there is to grant.
    pub fn all(self) -> &'static str {
        match self {
            AclKind::Table => "arwdDxt",
            AclKind::Column => "arwx",
            AclKind::Sequence => "rwU",
            AclKind::Schema => "UC",
            AclKind::Database => "CTc",
            AclKind::Type => "U",
            AclKind::Function => "X",
            AclKind::LargeObject => "rw",
        }
    }

    fn of_public(self) -> &'static str {
        match self {
            AclKind::Database => "Tc",
            AclKind::Type => "U",
            AclKind::Function => "X",
            AclKind::Table | AclKind::Column | AclKind::Sequence | AclKind::Schema | AclKind::LargeObject => "",
        }
    }
}

/// The access list of an object; the default one until something is granted or revoked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Acl(Option<Vec<Grant>>);

/// How a list is stored: a plain array is the older format, in which the owner's rights went without saying.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Older(Vec<Grant>),
    Entries { entries: Vec<Grant> },
    Default(()),
}

impl From<Stored> for Acl {
    fn from(stored: Stored) -> Acl {
        match stored {
            Stored::Default(()) => Acl(None),
            Stored::Entries { entries } => Acl(Some(entries)),
            Stored::Older(list) if list.is_empty() => Acl(None),
            Stored::Older(list) => {
                let owner = Grant { role: OWNER, by: OWNER, ..Grant::default() };
                Acl(Some(std::iter::once(owner).chain(list).collect()))
            }
        }
    }
}

impl From<Acl> for Stored {
    fn from(acl: Acl) -> Stored {
        acl.0.map_or(Stored::Default(()), |entries| Stored::Entries { entries })
    }
}

/// Why a change of an access list is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AclError {
    /// What would be revoked was granted further.
    Dependent,
    /// A grant option would go back to a role from which it came.
    Circular,
}

/// The letters of both, in PostgreSQL's order.
fn union(a: &str, b: &str) -> String {
    LETTERS.chars().filter(|c| a.contains(*c) || b.contains(*c)).collect()
}

fn without(a: &str, b: &str) -> String {
    a.chars().filter(|c| !b.contains(*c)).collect()
}

impl Acl {
    /// A list of its own.
    pub fn explicit(entries: Vec<Grant>) -> Acl {
        Acl(Some(entries))
    }

    /// Schemas of an older format could be used by every role.
    pub fn of_older_schema() -> Acl {
        let everybody = Grant { role: PUBLIC, by: OWNER, privileges: "U".to_owned(), grantable: String::new() };
        Stored::Older(vec![everybody]).into()
    }

    /// What a new directory's schema `public` has.
    pub fn of_public_schema(owner: Oid) -> Acl {
        let entry = |role, letters: &str| Grant { role, by: owner, privileges: letters.to_owned(), ..Grant::default() };
        Acl(Some(vec![entry(owner, "UC"), entry(PUBLIC, "U")]))
    }

    /// Names the owner in a list of an older format.
    pub(super) fn complete(&mut self, owner: Oid, kind: AclKind) {
        for entry in self.0.iter_mut().flatten() {
            if entry.role == OWNER {
                entry.privileges = kind.all().to_owned();
                entry.role = owner;
            }
            if entry.by == OWNER {
                entry.by = owner;
            }
            entry.privileges = union(&entry.privileges, "");
        }
    }

    /// Whether nothing was ever granted or revoked.
    pub fn is_default(&self) -> bool {
        self.0.is_none()
    }

    /// The entries, those of the default list if it has no other.
    pub fn entries(&self, owner: Oid, kind: AclKind) -> Vec<Grant> {
        if let Some(entries) = &self.0 {
            return entries.clone();
        }
        let entry = |role, letters: &str| Grant { role, by: owner, privileges: letters.to_owned(), ..Grant::default() };
        let own = if kind == AclKind::Column { "" } else { kind.all() };
        let all = [entry(PUBLIC, kind.of_public()), entry(owner, own)];
        all.into_iter().filter(|e| !e.privileges.is_empty()).collect()
    }

    /// Whether one of `roles` or PUBLIC has the privilege.
    pub fn allows(&self, owner: Oid, kind: AclKind, letter: char, mut has: impl FnMut(Oid) -> bool) -> bool {
        match &self.0 {
            None => {
                kind.of_public().contains(letter)
                    || (kind != AclKind::Column && kind.all().contains(letter) && has(owner))
            }
            Some(entries) => {
                let holds = |e: &&Grant| e.privileges.contains(letter);
                entries.iter().filter(holds).any(|e| e.role == PUBLIC || has(e.role))
            }
        }
    }

    /// The privileges that a role itself may grant further: all of the owner's.
    pub fn options_of(&self, role: Oid, owner: Oid, kind: AclKind) -> String {
        if role == owner {
            return kind.all().to_owned();
        }
        let mine = self.0.iter().flatten().filter(|e| e.role == role);
        mine.fold(String::new(), |all, e| union(&all, &e.grantable))
    }

    /// The roles that entries name, as grantees or grantors.
    pub fn roles(&self) -> impl Iterator<Item = Oid> {
        self.0.iter().flatten().flat_map(|e| [e.role, e.by])
    }

    /// Whether an entry names the role, as grantee or grantor.
    pub fn names(&self, role: Oid) -> bool {
        self.0.iter().flatten().any(|e| e.role == role || e.by == role)
    }

    /// GRANT: `by` allows `role` these letters, to grant further with `option`.
    ///
    /// # Errors
    /// `Circular`.
    pub fn grant(
        &mut self,
        (owner, kind): (Oid, AclKind),
        (role, by): (Oid, Oid),
        letters: &str,
        option: bool,
    ) -> Result<(), AclError> {
        let mut entries = self.entries(owner, kind);
        if option && by != owner {
            // The options of `by` must not rest on those of `role`: without them `by` would still have to have them.
            let mut rest = entries.clone();
            while let Some(e) = rest.iter().find(|e| e.role == role && !e.grantable.is_empty()).cloned() {
                revoke(&mut rest, owner, (e.role, e.by), &e.grantable.clone(), true, true)?;
            }
            let mine = Acl(Some(rest)).options_of(by, owner, kind);
            if letters.chars().any(|c| !mine.contains(c)) {
                return Err(AclError::Circular);
            }
        }
        let at = match entries.iter().position(|e| e.role == role && e.by == by) {
            Some(at) => at,
            None => {
                entries.push(Grant { role, by, ..Grant::default() });
                entries.len() - 1
            }
        };
        let entry = &mut entries[at];
        entry.privileges = union(&entry.privileges, letters);
        if option {
            entry.grantable = union(&entry.grantable, letters);
        }
        entries.retain(|e| !e.privileges.is_empty()); // ACL-1
        self.0 = Some(entries);
        Ok(())
    }

    /// REVOKE of what `by` granted `role`; with `option_only` the privileges stay and only their grant options go.
    ///
    /// # Errors
    /// `Dependent` unless `cascade`.
    pub fn revoke(
        &mut self,
        (owner, kind): (Oid, AclKind),
        (role, by): (Oid, Oid),
        letters: &str,
        option_only: bool,
        cascade: bool,
    ) -> Result<(), AclError> {
        let mut entries = self.entries(owner, kind);
        revoke(&mut entries, owner, (role, by), letters, option_only, cascade)?;
        self.0 = Some(entries);
        Ok(())
    }

    /// The object goes to another owner: what the old one had and granted is the new one's.
    pub fn change_owner(&mut self, old: Oid, new: Oid) {
        let Some(entries) = &mut self.0 else { return };
        let renamed = |oid: Oid| if oid == old { new } else { oid };
        let mut merged: Vec<Grant> = Vec::new();
        for e in entries.drain(..) {
            let (role, by) = (renamed(e.role), renamed(e.by));
            match merged.iter_mut().find(|m| m.role == role && m.by == by) {
                Some(m) => {
                    m.privileges = union(&m.privileges, &e.privileges);
                    m.grantable = union(&m.grantable, &e.grantable);
                }
                None => merged.push(Grant { role, by, ..e }),
            }
        }
        *entries = merged;
    }

    /// A role goes: nothing is granted to it or by it any more.
    pub fn forget(&mut self, role: Oid, owner: Oid) {
        let Some(entries) = &mut self.0 else { return };
        for e in entries.clone().iter().filter(|e| e.role == role) {
            // A cascade refuses nothing.
            let _ = revoke(entries, owner, (e.role, e.by), &e.privileges, false, true);
        }
        entries.retain(|e| e.role != role && e.by != role);
    }
}

/// PostgreSQL's `aclupdate` for REVOKE, with `recursive_revoke`; a list instead of the recursion: a chain of grants may be as long as there are
/// roles.
fn revoke(
    entries: &mut Vec<Grant>,
    owner: Oid,
    (role, by): (Oid, Oid),
    letters: &str,
    option_only: bool,
    cascade: bool,
) -> Result<(), AclError> {
    let mut todo = vec![(role, by, letters.to_owned(), option_only)];
    while let Some((role, by, letters, option_only)) = todo.pop() {
        let Some(entry) = entries.iter_mut().find(|e| e.role == role && e.by == by) else { continue };
        let lost: String = entry.grantable.chars().filter(|c| letters.contains(*c)).collect();
        entry.grantable = without(&entry.grantable, &letters);
        if !option_only {
            entry.privileges = without(&entry.privileges, &letters);
        }
        entries.retain(|e| !e.privileges.is_empty()); // ACL-1
        if lost.is_empty() || role == owner {
            continue;
        }
        // ACL-2: another grantor may have given the same option.
        let still = entries.iter().filter(|e| e.role == role).fold(String::new(), |all, e| union(&all, &e.grantable));
        let gone = without(&lost, &still);
        let rests = entries.iter().filter(|e| e.by == role && e.privileges.chars().any(|c| gone.contains(c)));
        let rests: Vec<(Oid, Oid)> = rests.map(|e| (e.role, e.by)).collect();
        if !rests.is_empty() && !cascade {
            return Err(AclError::Dependent);
        }
        todo.extend(rests.into_iter().map(|(role, by)| (role, by, gone.clone(), false)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: (Oid, AclKind) = (10, AclKind::Table);

    #[test]
    fn a_grant_option_that_is_taken_back_takes_what_rests_on_it() {
        let mut acl = Acl::default();
        acl.grant(T, (20, 10), "r", true).expect("granted");
        acl.grant(T, (30, 20), "r", true).expect("granted");
        acl.grant(T, (40, 30), "r", false).expect("granted");
        assert_eq!(acl.grant(T, (20, 30), "r", true), Err(AclError::Circular));
        assert_eq!(acl.revoke(T, (20, 10), "r", true, false), Err(AclError::Dependent));
        assert!(acl.names(40), "a refusal changes nothing");
        acl.revoke(T, (20, 10), "r", true, true).expect("revoked");
        assert!(acl.names(20) && !acl.names(30) && !acl.names(40));
    }

    #[test]
    fn another_grantor_keeps_it() {
        let mut acl = Acl::default();
        acl.grant(T, (20, 10), "r", true).expect("granted");
        acl.grant(T, (30, 10), "r", true).expect("granted");
        acl.grant(T, (30, 20), "r", true).expect("granted");
        acl.grant(T, (40, 30), "r", false).expect("granted");
        acl.revoke(T, (20, 10), "r", false, true).expect("revoked");
        assert!(acl.names(40), "30 still has its option from the owner");
    }

    #[test]
    fn a_long_chain_of_grants_is_taken_back() {
        let one = |role| Grant {
            role,
            by: if role == 20 { 10 } else { role - 1 },
            privileges: "r".into(),
            grantable: "r".into(),
        };
        let mut acl = Acl(Some((20..5_000).map(one).collect()));
        acl.revoke(T, (20, 10), "r", false, true).expect("revoked");
        assert_eq!(acl.entries(10, AclKind::Table).iter().filter(|e| e.role >= 20).count(), 0);
    }

    #[test]
    fn an_older_list_names_its_owner_when_it_is_read() {
        let mut acl: Acl = serde_json::from_str(r#"[{"role":20,"by":10,"privileges":"wr"}]"#).expect("reads");
        acl.complete(10, AclKind::Table);
        assert!(acl.allows(10, AclKind::Table, 'd', |role| role == 10));
        assert!(acl.allows(10, AclKind::Table, 'w', |role| role == 20));
        let again: Acl = serde_json::from_str(&serde_json::to_string(&acl).expect("writes")).expect("reads");
        assert_eq!(acl, again);
        let none: Acl = serde_json::from_str(&serde_json::to_string(&Acl::default()).expect("writes")).expect("reads");
        assert!(none.is_default());
    }
}
