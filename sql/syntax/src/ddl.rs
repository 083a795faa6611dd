//! The syntax tree of the statements that define data.

use super::ast::{Expr, QualName, TypeName};
use super::routine::{RoutineKind, RoutineName};
use super::stmt::{GenericOption, Statement};
use crate::error::Pos;

/// CREATE TABLE.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct CreateTable {
    pub name: QualName,
    pub persistence: Persistence,
    pub if_not_exists: bool,
    pub columns: Vec<ColumnDef>,
    pub constraints: Vec<TableConstraint>,
    /// LIKE, each with how many columns stand before it.
    pub like: Vec<(usize, Like)>,
    pub storage: Vec<GenericOption>,
    pub on_commit: Option<OnCommit>,
    pub tablespace: Option<String>,
}

/// LIKE in CREATE TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct Like {
    /// The table or view.
    pub table: QualName,
    /// INCLUDING (true) and EXCLUDING, in their order.
    pub options: Vec<(LikeOption, bool)>,
}

/// What LIKE copies beside columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LikeOption {
    All,
    Comments,
    Compression,
    Constraints,
    Defaults,
    Generated,
    Identity,
    Indexes,
    Statistics,
    Storage,
}

/// How long a table lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Persistence {
    Permanent,
    Unlogged,
    Temporary,
}

/// ON COMMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum OnCommit {
    PreserveRows,
    DeleteRows,
    Drop,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct ColumnDef {
    pub name: String,
    pub pos: Pos,
    pub ty: TypeName,
    pub collation: Option<QualName>,
    pub constraints: Vec<ColumnConstraint>,
}

/// A constraint in a column's definition.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct ColumnConstraint {
    pub name: Option<String>,
    pub kind: ColumnConstraintKind,
    pub timing: Timing,
    pub pos: Pos,
}

/// Their kinds.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ColumnConstraintKind {
    NotNull,
    Null,
    /// With the text of the expression, for the catalog.
    Default(Expr, String),
    PrimaryKey(Vec<GenericOption>),
    /// With NULLS NOT DISTINCT.
    Unique(Vec<GenericOption>, bool),
    Check(Expr, String),
    References(References),
    Identity {
        always: bool,
        options: Vec<SequenceOption>,
    },
    Generated(Expr, String),
}

/// REFERENCES.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct References {
    pub table: QualName,
    pub columns: Vec<String>,
    pub full: bool,
    pub on_delete: ForeignAction,
    /// The columns that ON DELETE SET NULL or SET DEFAULT sets; none: all.
    pub delete_columns: Vec<String>,
    pub on_update: ForeignAction,
}

/// What happens to a row whose referenced row goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ForeignAction {
    NoAction,
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}

/// DEFERRABLE, INITIALLY DEFERRED, NOT VALID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Timing {
    pub deferrable: bool,
    pub initially_deferred: bool,
    pub not_valid: bool,
}

/// A constraint of a table.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct TableConstraint {
    pub name: Option<String>,
    pub kind: TableConstraintKind,
    pub timing: Timing,
    pub pos: Pos,
}

/// Their kinds.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum TableConstraintKind {
    PrimaryKey { columns: Vec<String>, include: Vec<String>, storage: Vec<GenericOption> },
    Unique { columns: Vec<String>, include: Vec<String>, storage: Vec<GenericOption>, nulls_not_distinct: bool },
    PrimaryKeyUsing(String),
    UniqueUsing(String),
    Check(Expr, String),
    Foreign { columns: Vec<String>, references: References },
}

/// CREATE TABLE AS and CREATE MATERIALIZED VIEW.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct CreateTableAs {
    pub name: QualName,
    pub materialized_view: bool,
    pub persistence: Persistence,
    pub if_not_exists: bool,
    pub columns: Vec<String>,
    pub storage: Vec<GenericOption>,
    pub on_commit: Option<OnCommit>,
    pub query: Box<Statement>,
    /// The text of the query, for the catalog.
    pub text: String,
    pub with_data: bool,
}

/// CREATE INDEX.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct CreateIndex {
    pub name: Option<String>,
    pub table: QualName,
    pub unique: bool,
    pub concurrently: bool,
    pub if_not_exists: bool,
    pub only: bool,
    pub method: Option<String>,
    pub keys: Vec<IndexKey>,
    pub include: Vec<String>,
    pub nulls_not_distinct: bool,
    pub storage: Vec<GenericOption>,
    pub tablespace: Option<String>,
    pub filter: Option<(Expr, String)>,
}

/// A key of an index.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct IndexKey {
    /// A column comes as [`super::ast::ExprKind::Column`].
    pub expr: Expr,
    /// Its text, without parentheses around all of it.
    pub text: String,
    pub collation: Option<QualName>,
    pub opclass: Option<QualName>,
    pub descending: bool,
    pub nulls_first: Option<bool>,
}

/// An option of a sequence.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum SequenceOption {
    As(TypeName),
    Increment(i64),
    MinValue(Option<i64>),
    MaxValue(Option<i64>),
    Start(i64),
    Restart(Option<i64>),
    Cache(i64),
    Cycle(bool),
    /// None: OWNED BY NONE.
    OwnedBy(Option<QualName>),
    SequenceName(QualName),
}

/// A role as a statement names it. A word in quotes is a name, whatever it says; only `"public"` is what it is without them, as in PostgreSQL.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum RoleSpec {
    Name(String),
    /// CURRENT_USER and CURRENT_ROLE.
    CurrentUser,
    SessionUser,
    Public,
}

impl RoleSpec {
    /// The name, or the word that stands for the role.
    #[must_use]
    pub fn shown(&self) -> &str {
        match self {
            RoleSpec::Name(name) => name,
            RoleSpec::CurrentUser => "current_user",
            RoleSpec::SessionUser => "session_user",
            RoleSpec::Public => "public",
        }
    }
}

/// An option of a role.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum RoleOption {
    Superuser(bool),
    CreateDb(bool),
    CreateRole(bool),
    Inherit(bool),
    Login(bool),
    Replication(bool),
    BypassRls(bool),
    ConnectionLimit(i64),
    Password(Option<String>),
    ValidUntil(String),
    InRole(Vec<RoleSpec>),
    Role(Vec<RoleSpec>),
    Admin(Vec<RoleSpec>),
}

/// CREATE RULE ... DO INSTEAD NOTHING.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct CreateRule {
    pub name: String,
    pub replace: bool,
    pub event: RuleEvent,
    pub table: QualName,
}

/// The events of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum RuleEvent {
    Insert,
    Update,
    Delete,
}

/// ALTER TABLE.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct AlterTable {
    /// TABLE, INDEX, VIEW, MATERIALIZED VIEW.
    pub object: ObjectKind,
    pub name: QualName,
    pub only: bool,
    pub if_exists: bool,
    pub actions: Vec<AlterAction>,
}

/// What ALTER TABLE does.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum AlterAction {
    AddColumn {
        column: ColumnDef,
        if_not_exists: bool,
    },
    DropColumn {
        name: String,
        if_exists: bool,
        cascade: bool,
    },
    AlterType {
        column: String,
        ty: TypeName,
        collation: Option<QualName>,
        using: Option<(Expr, String)>,
    },
    SetDefault {
        column: String,
        value: Expr,
        text: String,
    },
    DropDefault {
        column: String,
    },
    SetNotNull {
        column: String,
    },
    DropNotNull {
        column: String,
    },
    SetStatistics {
        column: String,
        value: i64,
    },
    AddIdentity {
        column: String,
        always: bool,
        options: Vec<SequenceOption>,
    },
    DropIdentity {
        column: String,
        if_exists: bool,
    },
    SetIdentity {
        column: String,
        always: Option<bool>,
        options: Vec<SequenceOption>,
    },
    DropExpression {
        column: String,
        if_exists: bool,
    },
    SetColumnStorage {
        column: String,
        storage: String,
    },
    /// `default`, `full` or `nothing`.
    ReplicaIdentity(String),
    /// ENABLE (`o`), DISABLE (`d`), ENABLE REPLICA (`r`) and ENABLE ALWAYS (`a`) TRIGGER.
    Triggers {
        enable: char,
        which: Triggers,
    },
    /// What is the case already: SET TABLESPACE pg_default, SET WITHOUT OIDS, SET ACCESS METHOD heap.
    Nothing,
    /// ENABLE or DISABLE, FORCE or NO FORCE ROW LEVEL SECURITY.
    RowSecurity {
        enable: Option<bool>,
        force: Option<bool>,
    },
    AddConstraint(TableConstraint),
    DropConstraint {
        name: String,
        if_exists: bool,
        cascade: bool,
    },
    ValidateConstraint {
        name: String,
    },
    AlterConstraint {
        name: String,
        timing: Timing,
    },
    SetStorage(Vec<GenericOption>),
    ResetStorage(Vec<GenericOption>),
    SetLogged(bool),
    ClusterOn(Option<String>),
    OwnerTo(RoleSpec),
}

/// Which triggers of a table ALTER TABLE switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Triggers {
    /// One.
    Named(String),
    /// ALL: those of foreign keys and of deferrable unique constraints, too.
    All,
    /// USER: those that users made.
    User,
}

/// ALTER ... RENAME.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Rename {
    pub object: ObjectKind,
    pub name: QualName,
    pub if_exists: bool,
    /// A column or constraint of it, rather than the object.
    pub part: Option<RenamePart>,
    pub to: String,
}

/// What of a table is renamed.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum RenamePart {
    Column(String),
    Constraint(String),
}

/// The kinds of objects that DROP, ALTER, COMMENT and GRANT name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ObjectKind {
    Table,
    Index,
    View,
    MaterializedView,
    Sequence,
    Schema,
    Database,
    Role,
    Rule,
    /// GRANT alone names one, and default privileges.
    Type,
    /// The same.
    Domain,
    /// The same: functions and procedures.
    Function,
    Column,
    /// Of a table; COMMENT alone names one.
    Constraint,
    /// The same.
    Policy,
    /// Its name is its number. GRANT, COMMENT and ALTER ... OWNER TO name one.
    LargeObject,
}

/// DROP.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Drop {
    pub object: ObjectKind,
    pub names: Vec<QualName>,
    /// The table of a rule.
    pub on: Option<QualName>,
    pub if_exists: bool,
    pub cascade: bool,
    pub concurrently: bool,
    /// DROP DATABASE ... WITH (FORCE).
    pub force: bool,
}

/// GRANT and REVOKE on objects.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Grant {
    pub revoke: bool,
    /// Empty: ALL. With columns where written; ALL with columns has the empty word, which no name is.
    pub privileges: Vec<(String, Vec<String>)>,
    pub object: ObjectKind,
    pub names: Vec<QualName>,
    /// Functions and procedures: what kind is said, and those that are named.
    pub routines: Option<(RoutineKind, Vec<RoutineName>)>,
    /// ALL TABLES IN SCHEMA: `names` are schemas.
    pub all_in_schema: bool,
    pub roles: Vec<RoleSpec>,
    pub grant_option: bool,
    pub granted_by: Option<RoleSpec>,
    pub cascade: bool,
}

/// GRANT and REVOKE of roles.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct GrantRole {
    pub revoke: bool,
    pub roles: Vec<RoleSpec>,
    /// The roles that become or cease to be members.
    pub to: Vec<RoleSpec>,
    /// WITH ADMIN OPTION; of REVOKE: only that option.
    pub admin: bool,
    pub granted_by: Option<RoleSpec>,
    pub cascade: bool,
    /// It was written as ALTER GROUP ... ADD or DROP USER.
    pub as_group: bool,
}

/// ALTER DEFAULT PRIVILEGES.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct DefaultPrivileges {
    /// FOR ROLE; empty: the session's.
    pub roles: Vec<RoleSpec>,
    /// IN SCHEMA.
    pub schemas: Vec<String>,
    /// What is granted; `names` is empty.
    pub grant: Grant,
}
