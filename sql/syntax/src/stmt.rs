//! The syntax tree of statements.

use super::ast::{Expr, FromItem, QualName, Query, TableRef, Target, TypeName, With};
use super::ddl::{
    AlterTable, CreateIndex, CreateRule, CreateTable, CreateTableAs, DefaultPrivileges, Drop, Grant, GrantRole,
    IndexKey, ObjectKind, Rename, RoleOption, RoleSpec, SequenceOption,
};
use super::extension::ExtensionStatement;
use super::merge::Merge;
use super::operator::OperatorStatement;
use super::policy::PolicyStatement;
use super::routine::RoutineStatement;
use super::user_type::TypeStatement;
use crate::error::Pos;

/// A statement.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Statement {
    Query(Box<Query>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    Merge(Box<Merge>),
    Truncate(Truncate),
    LockTable(LockTable),
    Transaction(Transaction),
    Prepare {
        name: String,
        types: Vec<TypeName>,
        statement: Box<Statement>,
    },
    Execute {
        name: String,
        args: Vec<Expr>,
    },
    Deallocate {
        name: Option<String>,
    },
    Explain {
        options: Vec<GenericOption>,
        statement: Box<Statement>,
    },
    Analyze {
        verbose: bool,
        tables: Vec<(QualName, Vec<String>)>,
    },
    Vacuum {
        options: Vec<GenericOption>,
        tables: Vec<(QualName, Vec<String>)>,
    },
    Cluster {
        table: Option<QualName>,
        index: Option<String>,
        verbose: bool,
    },
    Reindex(Reindex),
    Set(SetVariable),
    Show {
        name: String,
    },
    Reset {
        name: Option<String>,
    },
    Discard(Discard),
    Copy(Box<Copy>),
    CreateTable(Box<CreateTable>),
    CreateTableAs(Box<CreateTableAs>),
    CreateIndex(Box<CreateIndex>),
    CreateView {
        name: QualName,
        columns: Vec<String>,
        options: Vec<GenericOption>,
        query: Box<Query>,
        replace: bool,
        temporary: bool,
        text: String,
    },
    RefreshMaterializedView {
        name: QualName,
        concurrently: bool,
        with_data: bool,
    },
    CreateSequence {
        name: QualName,
        temporary: bool,
        if_not_exists: bool,
        options: Vec<SequenceOption>,
    },
    AlterSequence {
        name: QualName,
        if_exists: bool,
        options: Vec<SequenceOption>,
    },
    CreateSchema {
        name: Option<String>,
        owner: Option<RoleSpec>,
        if_not_exists: bool,
        /// What is made in it, as written.
        elements: Vec<Statement>,
    },
    CreateDatabase {
        name: String,
        options: Vec<GenericOption>,
    },
    CreateRole {
        name: String,
        login: bool,
        options: Vec<RoleOption>,
    },
    AlterRole {
        name: RoleSpec,
        options: Vec<RoleOption>,
    },
    AlterRoleSet {
        name: Option<RoleSpec>,
        database: Option<String>,
        set: SetVariable,
    },
    AlterSystem {
        set: SetVariable,
    },
    AlterDatabaseSet {
        name: String,
        set: SetVariable,
    },
    CreateRule(CreateRule),
    AlterTable(Box<AlterTable>),
    Rename(Rename),
    SetSchema {
        object: ObjectKind,
        name: QualName,
        if_exists: bool,
        schema: String,
    },
    OwnerTo {
        object: ObjectKind,
        name: QualName,
        if_exists: bool,
        owner: RoleSpec,
    },
    Drop(Drop),
    Grant(Grant),
    GrantRole(GrantRole),
    AlterDefaultPrivileges(DefaultPrivileges),
    ReassignOwned {
        roles: Vec<RoleSpec>,
        to: RoleSpec,
    },
    DropOwned {
        roles: Vec<RoleSpec>,
        cascade: bool,
    },
    AlterDatabase {
        name: String,
        options: Vec<GenericOption>,
    },
    Comment {
        object: ObjectKind,
        name: QualName,
        column: Option<String>,
        text: Option<String>,
    },
    DeclareCursor {
        name: String,
        query: Box<Query>,
        hold: bool,
        binary: bool,
        scroll: Option<bool>,
    },
    Fetch {
        name: String,
        direction: FetchDirection,
        is_move: bool,
    },
    CloseCursor {
        name: Option<String>,
    },
    Checkpoint,
    Type(Box<TypeStatement>),
    Routine(Box<RoutineStatement>),
    /// CREATE, ALTER, DROP and COMMENT of operators.
    Operator(Box<OperatorStatement>),
    Do(Box<Do>),
    Extension(ExtensionStatement),
    Policy(Box<PolicyStatement>),
    Listen {
        channel: String,
    },
    Unlisten {
        channel: Option<String>,
    },
    Notify {
        channel: String,
        payload: Option<String>,
    },
    SetConstraints {
        names: Vec<QualName>,
        deferred: bool,
    },
    Mysql(Box<Mysql>),
}

/// DO.
#[derive(Clone, Debug, PartialEq)]
pub struct Do {
    /// LANGUAGE; none: plpgsql.
    pub language: Option<String>,
    /// The text.
    pub body: String,
    /// Where the text begins in the statement's, if it stands there as it is.
    pub place: Option<Pos>,
}

/// Statements of MySQL about what its performance_schema and sys show.
#[derive(Clone, Debug, PartialEq)]
pub enum Mysql {
    /// USE.
    Use(String),
    /// CALL of a procedure.
    Call(QualName, Vec<Expr>),
    /// SHOW ENGINE INNODB MUTEX (true) or STATUS (false).
    ShowEngine(bool),
    /// UPDATE of setup_instruments or setup_consumers.
    Setup(Update),
}

/// INSERT.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// WITH.
    pub with: Option<With>,
    /// The table, with its alias.
    pub table: TableRef,
    /// The columns named.
    pub columns: Vec<(String, Pos)>,
    /// OVERRIDING SYSTEM VALUE (true) or USER VALUE (false).
    pub overriding_system: Option<bool>,
    /// The rows; none: DEFAULT VALUES.
    pub source: Option<Box<Query>>,
    /// ON CONFLICT.
    pub on_conflict: Option<OnConflict>,
    /// RETURNING.
    pub returning: Vec<Target>,
}

/// ON CONFLICT.
#[derive(Clone, Debug, PartialEq)]
pub struct OnConflict {
    /// What conflict is meant; none: any.
    pub target: Option<ConflictTarget>,
    /// DO UPDATE with its WHERE; none: DO NOTHING.
    pub update: Option<(Vec<Assignment>, Option<Expr>)>,
    /// Where the clause stands.
    pub pos: Pos,
}

/// What ON CONFLICT names.
#[derive(Clone, Debug, PartialEq)]
pub enum ConflictTarget {
    /// The columns or expressions of an index, and the predicate of a partial one.
    Index(Vec<IndexKey>, Option<Expr>),
    /// A constraint.
    Constraint(String),
}

/// `SET a = 1` or `SET (a, b) = (1, 2)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The columns.
    pub columns: Vec<(String, Pos)>,
    /// For one column its value; for several a row or a subquery.
    pub value: Expr,
    /// Whether the columns stood in parentheses.
    pub multiple: bool,
    /// The part of the one column that is set; none: all of it.
    pub part: Vec<super::ast::Index>,
}

/// UPDATE.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Update {
    pub with: Option<With>,
    pub table: TableRef,
    pub set: Vec<Assignment>,
    pub from: Vec<FromItem>,
    pub filter: Option<Expr>,
    /// The cursor of WHERE CURRENT OF.
    pub current_of: Option<String>,
    pub returning: Vec<Target>,
}

/// DELETE.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Delete {
    pub with: Option<With>,
    pub table: TableRef,
    pub using: Vec<FromItem>,
    pub filter: Option<Expr>,
    /// The cursor of WHERE CURRENT OF.
    pub current_of: Option<String>,
    pub returning: Vec<Target>,
}

/// TRUNCATE.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Truncate {
    pub tables: Vec<TableRef>,
    pub restart_identity: bool,
    pub cascade: bool,
}

/// LOCK TABLE.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct LockTable {
    pub tables: Vec<TableRef>,
    pub mode: TableLockMode,
    pub nowait: bool,
}

/// The eight modes of table locks, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum TableLockMode {
    AccessShare,
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
    AccessExclusive,
}

/// Statements about transactions.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Transaction {
    /// BEGIN (`start` false) or START TRANSACTION (true): their command tags differ.
    Begin {
        modes: TransactionModes,
        start: bool,
    },
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    Savepoint(String),
    Release(String),
    RollbackTo(String),
    /// SET TRANSACTION.
    Set(TransactionModes),
    /// SET TRANSACTION SNAPSHOT.
    SetSnapshot {
        id: String,
        local: bool,
    },
    /// SET SESSION CHARACTERISTICS AS TRANSACTION.
    SetSession(TransactionModes),
    Prepare(String),
    CommitPrepared(String),
    RollbackPrepared(String),
}

/// The modes of a transaction, as far as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct TransactionModes {
    pub isolation: Option<Isolation>,
    pub read_only: Option<bool>,
    pub deferrable: Option<bool>,
}

/// Isolation levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// `name value` in a list of options.
#[derive(Clone, Debug, PartialEq)]
pub struct GenericOption {
    /// The option, lower case.
    pub name: String,
    /// Its value.
    pub value: Option<OptionValue>,
    /// Where it stands.
    pub pos: Pos,
}

impl GenericOption {
    /// The value as PostgreSQL's `defGetBoolean` reads it: none means true.
    pub fn as_bool(&self) -> Option<bool> {
        match &self.value {
            None => Some(true),
            Some(OptionValue::Number(n)) => match n.as_str() {
                "0" => Some(false),
                "1" => Some(true),
                _ => None,
            },
            Some(OptionValue::Word(w) | OptionValue::Str(w)) => match w.to_ascii_lowercase().as_str() {
                "true" | "on" => Some(true),
                "false" | "off" => Some(false),
                _ => None,
            },
            Some(OptionValue::Default | OptionValue::List(_)) => None,
        }
    }
    /// The value as text.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Some(OptionValue::Word(w) | OptionValue::Str(w) | OptionValue::Number(w)) => Some(w),
            Some(OptionValue::Default | OptionValue::List(_)) | None => None,
        }
    }
}

/// The value of an option or a setting.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum OptionValue {
    Word(String),
    Str(String),
    /// With its sign.
    Number(String),
    Default,
    List(Vec<String>),
}

/// REINDEX.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Reindex {
    pub target: ReindexTarget,
    pub name: QualName,
    pub concurrently: bool,
    pub verbose: bool,
}

/// What REINDEX rebuilds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ReindexTarget {
    Index,
    Table,
    Schema,
    Database,
    System,
}

/// SET.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct SetVariable {
    /// Lower case; `time zone` comes as `timezone`; empty: ALL.
    pub name: String,
    pub local: bool,
    /// None: TO DEFAULT.
    pub values: Option<Vec<OptionValue>>,
    pub pos: Pos,
}

impl SetVariable {
    /// Whether it is RESET ALL.
    #[must_use]
    pub fn resets_all(&self) -> bool {
        self.name.is_empty() && self.values.is_none()
    }
}

/// DISCARD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Discard {
    All,
    Plans,
    Sequences,
    Temp,
}

/// COPY.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Copy {
    pub source: CopySource,
    pub from: bool,
    pub end: CopyEnd,
    pub options: Vec<GenericOption>,
    pub filter: Option<Expr>,
}

/// What is copied.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum CopySource {
    Table(QualName, Vec<(String, Pos)>),
    Query(Box<Statement>),
}

/// The other end of COPY.
#[derive(Clone, Debug, PartialEq)]
pub enum CopyEnd {
    /// STDIN or STDOUT: the client.
    Client,
    /// A file of the server.
    File(String),
    /// A program on the server.
    Program(String),
}

/// FETCH and MOVE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FetchDirection {
    /// i64::MAX: all.
    Forward(i64),
    Backward(i64),
    Absolute(i64),
    Relative(i64),
}
