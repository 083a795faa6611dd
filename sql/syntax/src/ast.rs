//! The syntax tree of expressions and queries, before any name is resolved.
//!
//! Every node keeps the byte offset that PostgreSQL would report for it. Names have been folded to lower case and truncated already.

use crate::error::Pos;
use crate::window::{GroupItem, Over, WindowSpec};

/// A name, possibly qualified: `catalog.schema.name`, leftmost first.
#[derive(Clone, Debug, PartialEq)]
pub struct QualName {
    /// One to three parts.
    pub parts: Vec<String>,
    /// Where it stands.
    pub pos: Pos,
}

impl QualName {
    /// The last part.
    pub fn name(&self) -> &str {
        self.parts.last().map_or("", String::as_str)
    }
    /// The part before the last.
    pub fn schema(&self) -> Option<&str> {
        self.parts.len().checked_sub(2).map(|i| self.parts[i].as_str())
    }
    /// As the user wrote it, with dots.
    pub fn dotted(&self) -> String {
        self.parts.join(".")
    }
}

/// A type as written: `varchar(10)[]`.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeName {
    /// Its name; the standard's spellings come as PostgreSQL's internal names (`int4`, `bpchar`, ...).
    pub name: QualName,
    /// What stands in parentheses.
    pub modifiers: Vec<i32>,
    /// The number of `[]`.
    pub array_dims: u8,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: Box<ExprKind>,
    /// Where PostgreSQL points at.
    pub pos: Pos,
    /// The height of the tree, bounded by the parser so that recursion over it is safe.
    pub height: u16,
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// NULL.
    Null,
    /// TRUE, FALSE.
    Bool(bool),
    /// An integer that fits 64 bits.
    Int(i64),
    /// Any other number.
    Number(String),
    /// A string, of unknown type until its context decides.
    Str(String),
}

/// What `IS` can ask of a boolean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// IS TRUE.
    True,
    /// IS FALSE.
    False,
    /// IS UNKNOWN.
    Unknown,
}

/// The kinds of pattern matching that have syntax of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LikeKind {
    /// LIKE.
    Like,
    /// ILIKE.
    ILike,
}

/// The right side of `x op ANY (...)`.
#[derive(Clone, Debug, PartialEq)]
pub enum AnyOf {
    /// An expression that yields an array.
    Array(Expr),
    /// A subquery.
    Query(Box<Query>),
}

/// `a[i]` or `a[i:j]`.
#[derive(Clone, Debug, PartialEq)]
pub enum Index {
    /// One element.
    At(Expr),
    /// A slice.
    Slice(Option<Expr>, Option<Expr>),
    /// `.name`, in assignments to parts of columns.
    Field(String),
}

/// The functions of the standard that are written without parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BareFunction {
    CurrentDate,
    CurrentTimestamp(Option<i32>),
    LocalTimestamp(Option<i32>),
    CurrentTime(Option<i32>),
    LocalTime(Option<i32>),
    CurrentUser,
    CurrentRole,
    User,
    SessionUser,
    CurrentCatalog,
    CurrentSchema,
}

/// The call of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The function's name.
    pub name: QualName,
    /// Its arguments.
    pub args: Vec<Expr>,
    /// The names of the last of them: `f(1, b => 2)`.
    pub names: Vec<String>,
    /// `f(*)`.
    pub star: bool,
    /// `f(DISTINCT x)`.
    pub distinct: bool,
    /// `f(VARIADIC a)`.
    pub variadic: bool,
    /// `f(x ORDER BY y)`.
    pub order_by: Vec<OrderBy>,
    /// `WITHIN GROUP (ORDER BY y)`: `order_by` is that.
    pub within_group: bool,
    /// `FILTER (WHERE x)`.
    pub filter: Option<Expr>,
    /// OVER.
    pub over: Option<Box<Over>>,
}

impl Call {
    /// A call with nothing but arguments.
    pub fn new(name: QualName, args: Vec<Expr>) -> Self {
        Self {
            name,
            args,
            names: Vec::new(),
            star: false,
            distinct: false,
            variadic: false,
            order_by: Vec::new(),
            within_group: false,
            filter: None,
            over: None,
        }
    }
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ExprKind {
    Literal(Literal),
    /// `$n`.
    Param(u32),
    /// A column, or a whole row, by its dotted name.
    Column(QualName),
    /// A prefix operator.
    Unary {
        op: String,
        arg: Expr,
    },
    /// Any binary operator but AND and OR.
    Binary {
        op: String,
        left: Expr,
        right: Expr,
    },
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Not(Expr),
    IsNull {
        arg: Expr,
        negated: bool,
    },
    IsTruth {
        arg: Expr,
        truth: Truth,
        negated: bool,
    },
    IsDistinct {
        left: Expr,
        right: Expr,
        negated: bool,
    },
    Between {
        arg: Expr,
        low: Expr,
        high: Expr,
        negated: bool,
        symmetric: bool,
    },
    InList {
        arg: Expr,
        list: Vec<Expr>,
        negated: bool,
    },
    InQuery {
        arg: Expr,
        query: Box<Query>,
        negated: bool,
    },
    Like {
        arg: Expr,
        pattern: Expr,
        escape: Option<Expr>,
        kind: LikeKind,
        negated: bool,
    },
    Quantified {
        left: Expr,
        op: String,
        all: bool,
        right: AnyOf,
    },
    Case {
        arg: Option<Expr>,
        whens: Vec<(Expr, Expr)>,
        otherwise: Option<Expr>,
    },
    Coalesce(Vec<Expr>),
    NullIf(Expr, Expr),
    Greatest(Vec<Expr>),
    Least(Vec<Expr>),
    Cast {
        arg: Expr,
        to: TypeName,
    },
    Call(Call),
    /// GROUPING(...).
    Grouping(Vec<Expr>),
    Bare(BareFunction),
    Array(Vec<Expr>),
    ArrayQuery(Box<Query>),
    Subscript {
        arg: Expr,
        index: Vec<Index>,
    },
    Row(Vec<Expr>),
    Exists(Box<Query>),
    Subquery(Box<Query>),
    /// `(row).name`
    Field {
        arg: Expr,
        name: String,
    },
    /// `(row).*`
    AllFields(Expr),
    Collate {
        arg: Expr,
        collation: QualName,
    },
    /// DEFAULT, where INSERT and UPDATE allow it.
    Default,
}

/// An item of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderBy {
    /// The key.
    pub expr: Expr,
    /// DESC.
    pub descending: bool,
    /// NULLS FIRST or LAST, where written.
    pub nulls_first: Option<bool>,
}

/// A query: a body with what may follow it.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// WITH.
    pub with: Option<With>,
    /// SELECT, VALUES, or a set operation.
    pub body: QueryBody,
    /// ORDER BY.
    pub order_by: Vec<OrderBy>,
    /// LIMIT; `LIMIT ALL` comes as none.
    pub limit: Option<Expr>,
    /// OFFSET.
    pub offset: Option<Expr>,
    /// FETCH FIRST ... WITH TIES.
    pub ties: bool,
    /// FOR UPDATE and its like.
    pub locking: Vec<Locking>,
    /// The height of the highest expression inside.
    pub height: u16,
    /// Where the query begins.
    pub pos: Pos,
}

/// WITH.
#[derive(Clone, Debug, PartialEq)]
pub struct With {
    /// WITH RECURSIVE.
    pub recursive: bool,
    /// The common table expressions.
    pub ctes: Vec<Cte>,
}

/// A common table expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Cte {
    /// Its name.
    pub name: String,
    /// Names for its columns.
    pub columns: Vec<String>,
    /// [NOT] MATERIALIZED, where written.
    pub materialized: Option<bool>,
    /// A query, or a statement that modifies data.
    pub statement: Box<super::stmt::Statement>,
    /// Where the name stands.
    pub pos: Pos,
}

/// The body of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryBody {
    /// SELECT.
    Select(Box<Select>),
    /// VALUES.
    Values(Vec<Vec<Expr>>),
    /// UNION, INTERSECT, EXCEPT.
    SetOp {
        /// Which.
        op: SetOp,
        /// ALL.
        all: bool,
        /// Left side.
        left: Box<Query>,
        /// Right side.
        right: Box<Query>,
    },
}

/// The set operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SetOp {
    Union,
    Intersect,
    Except,
}

/// SELECT.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// DISTINCT, or DISTINCT ON with its keys.
    pub distinct: Option<Vec<Expr>>,
    /// The target list.
    pub targets: Vec<Target>,
    /// FROM.
    pub from: Vec<FromItem>,
    /// WHERE.
    pub filter: Option<Expr>,
    /// GROUP BY.
    pub group_by: Vec<GroupItem>,
    /// GROUP BY DISTINCT.
    pub group_distinct: bool,
    /// HAVING.
    pub having: Option<Expr>,
    /// WINDOW.
    pub windows: Vec<(String, WindowSpec)>,
}

/// An item of a target list.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// `*`.
    Star(Pos),
    /// `t.*`.
    QualifiedStar(QualName),
    /// An expression with the label that AS gives it.
    Expr {
        /// The value.
        expr: Expr,
        /// Its label.
        alias: Option<String>,
    },
}

/// A table by its name, as DML and FROM have it.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRef {
    /// Its name.
    pub name: QualName,
    /// ONLY.
    pub only: bool,
    /// AS.
    pub alias: Option<Alias>,
}

/// `AS t (a, b)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Alias {
    /// The name.
    pub name: String,
    /// Names for the columns.
    pub columns: Vec<String>,
    /// Types for them, where the alias is a column definition list; else empty.
    pub types: Vec<TypeName>,
}

/// An item of FROM.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum FromItem {
    Table(TableRef),
    Sample(Box<TableSample>),
    Subquery {
        query: Box<Query>,
        lateral: bool,
        alias: Option<Alias>,
        pos: Pos,
    },
    /// Functions, side by side.
    Function {
        calls: Vec<Expr>,
        lateral: bool,
        ordinality: bool,
        alias: Option<Alias>,
        pos: Pos,
    },
    Join {
        kind: JoinKind,
        left: Box<FromItem>,
        right: Box<FromItem>,
        on: JoinOn,
        /// Of a join in parentheses; it hides the names inside.
        alias: Option<Alias>,
        pos: Pos,
    },
}

/// TABLESAMPLE.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct TableSample {
    pub table: TableRef,
    pub method: QualName,
    pub args: Vec<Expr>,
    pub repeatable: Option<Expr>,
}

/// The kinds of joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
    Cross,
}

/// What ties the sides of a join.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum JoinOn {
    Nothing,
    On(Expr),
    /// The columns, and a name by which they alone are read.
    Using(Vec<String>, Option<String>),
    Natural,
}

/// A locking clause.
#[derive(Clone, Debug, PartialEq)]
pub struct Locking {
    /// Its strength.
    pub strength: LockStrength,
    /// OF; empty: all.
    pub of: Vec<QualName>,
    /// NOWAIT or SKIP LOCKED.
    pub wait: LockWait,
    /// Where it stands.
    pub pos: Pos,
    /// It comes from the query around, which locks the rows of a query in its FROM.
    pub is_handed_down: bool,
}

/// The four strengths of row locks, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum LockStrength {
    KeyShare,
    Share,
    NoKeyUpdate,
    Update,
}

impl LockStrength {
    /// As SQL writes it: `FOR NO KEY UPDATE`.
    pub fn sql(self) -> &'static str {
        match self {
            Self::KeyShare => "FOR KEY SHARE",
            Self::Share => "FOR SHARE",
            Self::NoKeyUpdate => "FOR NO KEY UPDATE",
            Self::Update => "FOR UPDATE",
        }
    }
}

/// What to do where a row is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LockWait {
    Wait,
    SkipLocked,
    NoWait,
}
