//! What the catalog knows: databases, schemas, tables, indexes, sequences, views, roles. Plain data; stored as JSON, so that a field can be
//! added later and files of an older version stay readable.

use super::acl::{Acl, AclKind};
use super::foreign_key::ForeignKey;
use super::index::Index;
use super::operator::Operator;
use super::policy::RowSecurity;
use super::role;
use super::routine::Routine;
use super::types::TypeObject;
use super::{BOOTSTRAP_ROLE, Role};
use serde::{Deserialize, Serialize};

use crate::value::Storage;

/// An object's number, unique in the whole directory; what SQL calls its oid. User objects begin at 16384, as in PostgreSQL.
pub type Oid = u32;

/// The first number given to a user's object.
pub const FIRST_USER_OID: Oid = 16_384;

/// A database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Database {
    /// Its number.
    pub oid: Oid,
    /// Its name.
    pub name: String,
    /// Its owner.
    pub owner: Oid,
    /// Who may do what.
    #[serde(default)]
    pub acl: Acl,
    /// Connections at once, -1 for any number.
    #[serde(default = "role::any_number")]
    pub connection_limit: i32,
    /// ALTER DATABASE ... SET: what its sessions begin with.
    #[serde(default)]
    pub settings: Vec<(String, String)>,
    /// CREATE EXTENSION.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<Extension>,
}

/// An extension of a database: what it adds is the server's own, and is found in a schema too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extension {
    /// Its number.
    pub oid: Oid,
    /// Its name.
    pub name: String,
    /// The schema in which its functions are found.
    pub schema: Oid,
    /// Its owner.
    pub owner: Oid,
    /// Its version.
    pub version: String,
}

impl Database {
    /// A database to which every role may connect.
    pub fn new(oid: Oid, name: &str, owner: Oid) -> Database {
        Database {
            oid,
            name: name.to_owned(),
            owner,
            acl: Acl::default(),
            connection_limit: role::any_number(),
            settings: Vec::new(),
            extensions: Vec::new(),
        }
    }
}

/// A schema of a database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// Its number.
    pub oid: Oid,
    /// Its database.
    pub database: Oid,
    /// Its name.
    pub name: String,
    /// Its owner.
    pub owner: Oid,
    /// Who may do what.
    #[serde(default = "Acl::of_older_schema")]
    pub acl: Acl,
}

impl Schema {
    /// A schema that only its owner may use.
    pub fn new(oid: Oid, database: Oid, name: &str, owner: Oid) -> Schema {
        Schema { oid, database, name: name.to_owned(), owner, acl: Acl::default() }
    }
}

/// What a relation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RelationKind {
    /// A table.
    Table,
    /// A view: its text is run instead of it.
    View,
    /// A view whose rows are stored.
    MaterializedView,
}

impl RelationKind {
    /// What it is, for errors.
    pub fn name(self) -> &'static str {
        match self {
            RelationKind::Table => "table",
            RelationKind::View => "view",
            RelationKind::MaterializedView => "materialized view",
        }
    }
}

/// A column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// How it is stored (`Storage::code`).
    pub storage: u8,
    /// The SQL type's oid.
    pub type_oid: Oid,
    /// The SQL type's modifier, -1 for none.
    pub type_mod: i32,
    /// No nulls.
    pub not_null: bool,
    /// The text of its default.
    pub default: Option<String>,
    /// `a` for GENERATED ALWAYS AS IDENTITY, `d` for BY DEFAULT.
    pub identity: Option<char>,
    /// The schema version from which on rows do not have it any more, if it was dropped.
    #[serde(default)]
    pub dropped_version: Option<u16>,
    /// The schema version in which it came; rows of older versions have `missing` in its place.
    #[serde(default)]
    pub since_version: u16,
    /// The text form of the value that rows older than the column have; `None` for null.
    #[serde(default)]
    pub missing: Option<String>,
    /// The roles that have rights on it beyond their rights on the whole table.
    #[serde(default)]
    pub acl: Acl,
    /// GENERATED ALWAYS AS (...) STORED: `default` is the expression.
    #[serde(default)]
    pub generated: bool,
    /// The schemas in which names of `default` without one are looked for, 0, and the routines that had a name that it calls when it was written;
    /// without the 0 the text may call any. None: the schemas are those of the session that evaluates it, as in older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Vec<Oid>>,
    /// SET STATISTICS: how many common values and parts of a histogram ANALYZE keeps of it; none: as many as of any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistics: Option<u16>,
    /// SET STORAGE: what pg_attribute says of it (`p`, `e`, `m`, `x`); none: what its type has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<char>,
    /// How many dimensions its definition writes behind an array's element type; arrays of all dimensions may stand in it all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<u8>,
    /// COLLATE: the collation that its definition names; none: that of its type. All of them sort alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collation: Option<Oid>,
}

impl Column {
    /// Whether it was dropped.
    pub fn is_dropped(&self) -> bool {
        self.dropped_version.is_some()
    }

    /// How it is stored.
    ///
    /// # Panics
    /// If the code is none that `Storage::code` gives; `Catalog` checks that when it reads a table.
    pub fn storage(&self) -> Storage {
        Storage::from_code(self.storage).expect("checked when the catalog was read")
    }
}

/// A condition that every row meets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its name.
    pub name: String,
    /// The text of the condition.
    pub condition: String,
    /// False between ADD ... NOT VALID and VALIDATE.
    #[serde(default = "yes")]
    pub validated: bool,
    /// As of a column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Vec<Oid>>,
}

/// Older versions wrote no NOT VALID.
fn yes() -> bool {
    true
}

/// In [`Relation::rows_from_lsn`]: the transaction that moves the rows has not committed.
pub const ROWS_MOVE: u64 = u64::MAX;

/// A table, view or materialized view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relation {
    /// Its number.
    pub oid: Oid,
    /// Its database.
    pub database: Oid,
    /// Its schema.
    pub schema: Oid,
    /// Its name.
    pub name: String,
    /// Its owner.
    pub owner: Oid,
    /// What it is.
    pub kind: RelationKind,
    /// Its columns, dropped ones included, so that positions stay.
    pub columns: Vec<Column>,
    /// The tree of its rows; 0 for a view.
    pub tree: u64,
    /// Positions of the primary key's columns, by which the table is organised; empty: by implicit row id.
    pub key: Vec<usize>,
    /// The version with which new rows are written; rises when columns come.
    pub version: u16,
    /// Conditions.
    pub checks: Vec<Check>,
    /// Foreign keys that leave it.
    pub foreign_keys: Vec<ForeignKey>,
    /// The query of a view.
    pub query: Option<String>,
    /// Names of rules ON INSERT DO INSTEAD NOTHING.
    #[serde(default)]
    pub insert_nothing_rules: Vec<String>,
    /// Options that were accepted and are shown again (`fillfactor=70`).
    #[serde(default)]
    pub options: Vec<String>,
    /// Who may do what.
    #[serde(default, rename = "grants")]
    pub acl: Acl,
    /// A materialized view that has never been filled has no rows to show.
    #[serde(default)]
    pub populated: bool,
    /// What the names in a view's query stood for when it was made.
    #[serde(default)]
    pub meaning: Option<ViewMeaning>,
    /// UNLOGGED was asked for. Its rows are logged as any table's.
    #[serde(default)]
    pub unlogged: bool,
    /// What becomes of a temporary table at each commit: `d` its rows are deleted, `x` it is dropped.
    #[serde(default)]
    pub on_commit: Option<char>,
    /// Which of its rows a role may see and write.
    #[serde(default, skip_serializing_if = "RowSecurity::is_empty")]
    pub security: RowSecurity,
    /// REPLICA IDENTITY: `f` all columns, `n` nothing; none: the primary key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_identity: Option<char>,
    /// The commit from which on snapshots see its rows, where these have moved to a tree with another key since the table was made (DB-3): [`ROWS_MOVE`] until
    /// that commit, 0 where they have not. It is not stored: no snapshot outlives the process.
    #[serde(skip)]
    pub rows_from_lsn: u64,
}

impl Relation {
    /// What an option says, if it is given.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find_map(|o| o.strip_prefix(name)?.strip_prefix('='))
    }

    /// A table of the bootstrap role with these columns and rows in `tree`, without a key, a condition or anything else yet: what a
    /// caller has more to say of is put over it (`Relation { key, ..Relation::table(...) }`).
    pub fn table(oid: Oid, database: Oid, schema: Oid, name: &str, columns: Vec<Column>, tree: u64) -> Relation {
        Relation {
            oid,
            database,
            schema,
            name: name.to_owned(),
            owner: BOOTSTRAP_ROLE,
            kind: RelationKind::Table,
            columns,
            tree,
            key: Vec::new(),
            version: 0,
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            query: None,
            insert_nothing_rules: Vec::new(),
            options: Vec::new(),
            acl: Acl::default(),
            populated: true,
            meaning: None,
            unlogged: false,
            on_commit: None,
            security: RowSecurity::default(),
            rows_from_lsn: 0,
            replica_identity: None,
        }
    }
}

/// What the text of a view's query stood for when the view was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewMeaning {
    /// Names of relations as they are written, and what they led to.
    pub names: Vec<(String, Oid)>,
    /// For each star, in the order in which they are planned: table and column of what it stood for.
    pub stars: Vec<Vec<(String, String)>>,
    /// The columns of those relations when the text was written: place and name. None for a relation whose text is older than this field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<(Oid, Vec<(u32, String)>)>,
    /// The schemas in which names of types, of routines, and of relations that are written as values, are looked for, and the routines; as of a
    /// column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Vec<Oid>>,
}

impl ViewMeaning {
    /// The name by which the text knows a column of a relation; none: the column is younger than the text.
    pub fn column<'c>(&'c self, r: &'c Relation, at: usize) -> Option<&'c str> {
        match self.columns.iter().find(|(oid, _)| *oid == r.oid) {
            Some((_, columns)) => columns.iter().find(|(known, _)| *known as usize == at).map(|(_, name)| &**name),
            None => r.columns.get(at).map(|c| &*c.name),
        }
    }
}

/// A sequence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    /// Its number.
    pub oid: Oid,
    /// Its database.
    pub database: Oid,
    /// Its schema.
    pub schema: Oid,
    /// Its name.
    pub name: String,
    /// Its owner.
    pub owner: Oid,
    /// The SQL type's oid.
    pub type_oid: Oid,
    /// First value.
    pub start: i64,
    /// Step.
    pub increment: i64,
    /// Lowest value.
    pub min: i64,
    /// Highest value.
    pub max: i64,
    /// How many a session takes at once.
    pub cache: i64,
    /// Whether it begins again.
    pub cycle: bool,
    /// The column that it belongs to: dropped with it.
    pub owned_by: Option<(Oid, usize)>,
    /// Who may do what.
    #[serde(default, rename = "grants")]
    pub acl: Acl,
    /// The number under which its state stands (SEQ-2); 0: its own.
    #[serde(default)]
    pub state: Oid,
    /// Where that state begins, if not with the first value.
    #[serde(default)]
    pub restart: Option<i64>,
}

/// COMMENT ON an object or a part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    /// Its number.
    pub oid: Oid,
    /// The object.
    pub object: Oid,
    /// What of the object: empty for the whole, the number of a column (from 1), or the name of a constraint. Of a database also an extension, and a
    /// place in pg_description that no object has; of 0 a place in pg_shdescription.
    pub part: String,
    /// The text.
    pub text: String,
}

impl Comment {
    /// The one with which a schema `public` begins. pg_dump writes COMMENT ON SCHEMA public where it finds another.
    pub fn of_public_schema(oid: Oid, schema: Oid) -> Comment {
        Comment { oid, object: schema, part: String::new(), text: "standard public schema".to_owned() }
    }
}

/// Any object. Each is kept behind an `Arc` of its own, and most are relations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)]
pub enum Object {
    /// See [`Database`].
    Database(Database),
    /// See [`Schema`].
    Schema(Schema),
    /// See [`Relation`].
    Relation(Relation),
    /// See [`Index`].
    Index(Index),
    /// See [`Sequence`].
    Sequence(Sequence),
    /// See [`Role`].
    Role(Role),
    /// See [`Comment`].
    Comment(Comment),
    /// See [`TypeObject`].
    Type(TypeObject),
    /// See [`Routine`].
    Routine(Routine),
    /// See [`Operator`].
    Operator(Operator),
}

impl Object {
    /// Its number.
    pub fn oid(&self) -> Oid {
        match self {
            Object::Database(o) => o.oid,
            Object::Schema(o) => o.oid,
            Object::Relation(o) => o.oid,
            Object::Index(o) => o.oid,
            Object::Sequence(o) => o.oid,
            Object::Role(o) => o.oid,
            Object::Comment(o) => o.oid,
            Object::Type(o) => o.oid,
            Object::Routine(o) => o.oid,
            Object::Operator(o) => o.oid,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Object::Database(o) => &o.name,
            Object::Schema(o) => &o.name,
            Object::Relation(o) => &o.name,
            Object::Index(o) => &o.name,
            Object::Sequence(o) => &o.name,
            Object::Role(o) => &o.name,
            Object::Comment(o) => &o.part,
            Object::Type(o) => &o.name,
            Object::Routine(o) => &o.name,
            Object::Operator(o) => &o.name,
        }
    }

    /// Its owner; an index has its table's, a role none.
    pub fn owner(&self) -> Option<Oid> {
        match self {
            Object::Database(o) => Some(o.owner),
            Object::Schema(o) => Some(o.owner),
            Object::Relation(o) => Some(o.owner),
            Object::Sequence(o) => Some(o.owner),
            Object::Type(o) => Some(o.owner),
            Object::Routine(o) => Some(o.owner),
            Object::Operator(o) => Some(o.owner),
            Object::Index(_) | Object::Role(_) | Object::Comment(_) => None,
        }
    }

    /// Its access list, if it has one.
    pub fn acl(&self) -> Option<(&Acl, AclKind)> {
        match self {
            Object::Database(o) => Some((&o.acl, AclKind::Database)),
            Object::Schema(o) => Some((&o.acl, AclKind::Schema)),
            Object::Relation(o) => Some((&o.acl, AclKind::Table)),
            Object::Sequence(o) => Some((&o.acl, AclKind::Sequence)),
            Object::Type(o) => Some((&o.acl, AclKind::Type)),
            Object::Routine(o) => Some((&o.acl, AclKind::Function)),
            Object::Index(_) | Object::Role(_) | Object::Comment(_) | Object::Operator(_) => None,
        }
    }

    /// The same to be changed.
    pub fn acl_mut(&mut self) -> Option<(&mut Acl, AclKind)> {
        match self {
            Object::Database(o) => Some((&mut o.acl, AclKind::Database)),
            Object::Schema(o) => Some((&mut o.acl, AclKind::Schema)),
            Object::Relation(o) => Some((&mut o.acl, AclKind::Table)),
            Object::Sequence(o) => Some((&mut o.acl, AclKind::Sequence)),
            Object::Type(o) => Some((&mut o.acl, AclKind::Type)),
            Object::Routine(o) => Some((&mut o.acl, AclKind::Function)),
            Object::Index(_) | Object::Role(_) | Object::Comment(_) | Object::Operator(_) => None,
        }
    }

    /// Gives it to another role; its access list follows.
    pub fn set_owner(&mut self, owner: Oid) {
        let Some(old) = self.owner() else { return };
        match self {
            Object::Database(o) => o.owner = owner,
            Object::Schema(o) => o.owner = owner,
            Object::Relation(o) => {
                o.owner = owner;
                o.columns.iter_mut().for_each(|c| c.acl.change_owner(old, owner));
            }
            Object::Sequence(o) => o.owner = owner,
            Object::Type(o) => o.owner = owner,
            Object::Routine(o) => o.owner = owner,
            Object::Operator(o) => o.owner = owner,
            Object::Index(_) | Object::Role(_) | Object::Comment(_) => {}
        }
        if let Some((acl, _)) = self.acl_mut() {
            acl.change_owner(old, owner);
        }
    }

    /// The object as this version knows it: lists of an older format name the owner from now on.
    pub(super) fn completed(mut self) -> Object {
        if let Some(owner) = self.owner()
            && let Some((acl, kind)) = self.acl_mut()
        {
            acl.complete(owner, kind);
        }
        self
    }

    /// Changes its name.
    pub fn rename(&mut self, to: &str) {
        let name = match self {
            Object::Database(o) => &mut o.name,
            Object::Schema(o) => &mut o.name,
            Object::Relation(o) => &mut o.name,
            Object::Index(o) => &mut o.name,
            Object::Sequence(o) => &mut o.name,
            Object::Role(o) => &mut o.name,
            Object::Comment(o) => &mut o.part,
            Object::Type(o) => &mut o.name,
            Object::Routine(o) => &mut o.name,
            Object::Operator(o) => &mut o.name,
        };
        to.clone_into(name);
    }

    /// What it is, for errors.
    pub fn kind(&self) -> &'static str {
        match self {
            Object::Database(_) => "database",
            Object::Schema(_) => "schema",
            Object::Relation(r) => r.kind.name(),
            Object::Index(_) => "index",
            Object::Sequence(_) => "sequence",
            Object::Role(_) => "role",
            Object::Comment(_) => "comment",
            Object::Type(_) => "type",
            Object::Routine(r) => r.kind.name(),
            Object::Operator(_) => "operator",
        }
    }

    /// What is unique in its name space: its name, and of a routine or an operator the types of its arguments, too.
    pub fn unique_name(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Object::Routine(o) => o.signature().into(),
            Object::Operator(o) => o.signature().into(),
            other => other.name().into(),
        }
    }

    /// The name space in which its name is unique: relations, indexes and sequences of a schema share one.
    pub fn name_space(&self) -> (u8, Oid) {
        match self {
            Object::Database(_) => (b'd', 0),
            Object::Role(_) => (b'a', 0),
            Object::Schema(o) => (b'n', o.database),
            Object::Relation(o) => (b'r', o.schema),
            Object::Index(o) => (b'r', o.schema),
            Object::Sequence(o) => (b'r', o.schema),
            Object::Comment(o) => (b'c', o.object),
            Object::Type(o) => (b't', o.schema),
            Object::Routine(o) => (b'f', o.schema),
            Object::Operator(o) => (b'o', o.schema),
        }
    }
}
