//! The tree of a body.

use super::conditions::Condition;
use super::names::{Names, Place, Slot};
use crate::ast::TypeName;
use crate::error::Pos;
use crate::stmt::Statement;
use std::sync::Arc;

/// What a body belongs to.
#[derive(Clone, Debug, Default)]
pub struct Owner {
    /// The name of the function, a label of its arguments; none: DO.
    pub function: Option<String>,
    /// For each argument its name.
    pub arguments: Vec<Option<String>>,
    /// What RETURN may give.
    pub gives: Gives,
    /// The function gives rows.
    pub gives_rows: bool,
    /// The function has arguments that are part of the result.
    pub has_outputs: bool,
    /// For each argument whether it is of type refcursor.
    pub refcursors: Vec<bool>,
}

/// What RETURN may give.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gives {
    /// Nothing: DO, a procedure without OUT arguments, a function that returns void.
    #[default]
    Nothing,
    /// The OUT arguments of a procedure.
    ByProcedure,
    /// A value.
    Value,
}

/// A body.
#[derive(Clone, Debug)]
pub struct Body {
    /// Its block.
    pub block: Block,
    /// All variables, those of the arguments first.
    pub variables: Vec<Variable>,
    /// How many of them are arguments.
    pub arguments: usize,
    /// Their names.
    pub names: Arc<Names>,
    /// What a name means that is both a variable and a column.
    pub conflict: Conflict,
    /// How many pieces of SQL text it has.
    pub fragments: usize,
    /// The variable `found`.
    pub found: Slot,
}

/// What a name means that is both a variable and a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conflict {
    /// 42702.
    #[default]
    Error,
    /// The variable.
    Variable,
    /// The column.
    Column,
}

/// A variable.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// The line where it is declared.
    pub line: u32,
    /// Its type.
    pub kind: VariableKind,
    /// CONSTANT.
    pub constant: bool,
    /// NOT NULL.
    pub not_null: bool,
    /// Its default.
    pub default: Option<Fragment>,
    /// The query of a cursor variable that is bound to one.
    pub query: Option<Arc<BoundQuery>>,
}

/// The query to which a cursor variable is bound.
#[derive(Clone, Debug)]
pub struct BoundQuery {
    /// The query.
    pub query: Fragment,
    /// The variables of its arguments.
    pub arguments: Vec<Slot>,
    /// SCROLL or NO SCROLL.
    pub scroll: Option<bool>,
}

/// What OPEN opens.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Opened {
    /// The query to which the variable is bound, with the values of its arguments as one row.
    Bound(Option<Fragment>),
    Rows(Rows),
}

/// How far FETCH and MOVE go.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Distance {
    Fixed(i64),
    Counted(Fragment),
}

/// Where FETCH and MOVE go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Direction {
    Forward,
    Backward,
    Absolute,
    Relative,
}

/// The type of a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum VariableKind {
    /// A named type.
    Typed(TypeName),
    /// `variable%TYPE`.
    LikeVariable(Slot),
    /// `table.column%TYPE`.
    LikeColumn(Vec<String>, Pos),
    /// `table%ROWTYPE`.
    RowOf(Vec<String>, Pos),
    /// RECORD.
    Record,
    /// The argument of that number.
    Argument(usize),
    /// boolean: `found`.
    Boolean,
    /// text: SQLSTATE and SQLERRM.
    Text,
    /// refcursor: a cursor variable that is bound to a query.
    Cursor,
    /// integer: of a loop.
    Integer,
    /// Whatever is assigned to it: the value that CASE looks at.
    Any,
}

/// A piece of SQL text.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// Its number in the body.
    pub id: usize,
    /// The text, as errors show it.
    pub text: Arc<str>,
    /// What it means.
    pub statement: Arc<Statement>,
    /// What a place in the parsed text is to be changed by to be one in the shown text.
    pub shift: i64,
    /// Where it stands among the names.
    pub at: Place,
    /// What it is.
    pub kind: FragmentKind,
    /// It is an expression that no table has a part in: an error while it is evaluated does not show its text.
    pub simple: bool,
}

/// What a piece of SQL text is, as errors call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FragmentKind {
    Expression,
    Assignment,
    Statement,
}

impl FragmentKind {
    /// As CONTEXT has it.
    pub fn name(self) -> &'static str {
        match self {
            FragmentKind::Expression => "SQL expression",
            FragmentKind::Assignment => "PL/pgSQL assignment",
            FragmentKind::Statement => "SQL statement",
        }
    }
}

/// A block.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its label.
    pub label: Option<String>,
    /// The variables that begin with it.
    pub variables: Vec<Slot>,
    /// Its statements.
    pub body: Vec<Stmt>,
    /// EXCEPTION.
    pub handlers: Option<Handlers>,
}

/// EXCEPTION of a block.
#[derive(Clone, Debug)]
pub struct Handlers {
    /// SQLSTATE.
    pub state: Slot,
    /// SQLERRM.
    pub message: Slot,
    /// Each WHEN.
    pub list: Vec<(Vec<Condition>, Vec<Stmt>)>,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// Its line, from 1.
    pub line: u32,
    /// What it is.
    pub kind: StmtKind,
}

/// A variable or a field of one, for a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The variable.
    pub slot: Slot,
    /// The field, and the field of that.
    pub fields: Vec<String>,
}

/// A part of what an assignment changes.
#[derive(Clone, Debug)]
pub enum Part {
    /// `.name`.
    Field(String),
    /// `[i]`.
    Element(Fragment),
    /// `[i:j]`.
    Slice(Option<Fragment>, Option<Fragment>),
}

/// INTO.
#[derive(Clone, Debug)]
pub struct Destination {
    /// STRICT.
    pub strict: bool,
    /// Where the columns go: a row to one variable, or each to one.
    pub targets: Vec<Target>,
}

/// The rows that a loop reads.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Rows {
    Query(Fragment),
    Dynamic(Fragment, Vec<Fragment>),
}

/// What RAISE says beside its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum RaiseOption {
    Message,
    Detail,
    Hint,
    Errcode,
    Column,
    Constraint,
    Datatype,
    Table,
    Schema,
}

impl RaiseOption {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            RaiseOption::Message => "MESSAGE",
            RaiseOption::Detail => "DETAIL",
            RaiseOption::Hint => "HINT",
            RaiseOption::Errcode => "ERRCODE",
            RaiseOption::Column => "COLUMN",
            RaiseOption::Constraint => "CONSTRAINT",
            RaiseOption::Datatype => "DATATYPE",
            RaiseOption::Table => "TABLE",
            RaiseOption::Schema => "SCHEMA",
        }
    }
}

/// RAISE.
#[derive(Clone, Debug)]
pub struct Raise {
    /// EXCEPTION, WARNING, ...
    pub level: &'static str,
    /// The error by its name or SQLSTATE: the text, and the SQLSTATE.
    pub condition: Option<(String, String)>,
    /// The message.
    pub format: Option<String>,
    /// What its `%` stand for.
    pub values: Vec<Fragment>,
    /// USING.
    pub options: Vec<(RaiseOption, Fragment)>,
}

/// What GET DIAGNOSTICS tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Diagnostic {
    RowCount,
    Context,
    State,
    Message,
    Detail,
    Hint,
    ErrorContext,
    Column,
    Constraint,
    Datatype,
    Table,
    Schema,
}

/// What RETURN gives.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Returned {
    Nothing,
    /// The OUT arguments.
    Outputs,
    Value(Fragment),
    /// A variable, as a whole.
    Variable(Slot),
}

/// A statement.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum StmtKind {
    Block(Block),
    Assign {
        target: Slot,
        parts: Vec<Part>,
        value: Fragment,
    },
    If {
        arms: Vec<(Fragment, Vec<Stmt>)>,
        otherwise: Vec<Stmt>,
    },
    Case {
        subject: Option<(Fragment, Slot)>,
        arms: Vec<(Fragment, Vec<Stmt>)>,
        otherwise: Option<Vec<Stmt>>,
    },
    Loop {
        label: Option<String>,
        body: Vec<Stmt>,
    },
    While {
        label: Option<String>,
        condition: Fragment,
        body: Vec<Stmt>,
    },
    ForInteger {
        label: Option<String>,
        variable: Slot,
        bounds: Box<[Fragment; 2]>,
        step: Option<Fragment>,
        reverse: bool,
        body: Vec<Stmt>,
    },
    ForRows {
        label: Option<String>,
        targets: Vec<Target>,
        rows: Rows,
        body: Vec<Stmt>,
    },
    ForCursor {
        label: Option<String>,
        cursor: Slot,
        arguments: Option<Fragment>,
        variable: Slot,
        body: Vec<Stmt>,
    },
    Foreach {
        label: Option<String>,
        targets: Vec<Target>,
        slice: u32,
        array: Fragment,
        body: Vec<Stmt>,
    },
    Exit {
        ends: bool,
        label: Option<String>,
        when: Option<Fragment>,
    },
    Return(Returned),
    ReturnNext(Returned),
    ReturnQuery(Rows),
    Raise(Box<Raise>),
    Assert {
        condition: Fragment,
        message: Option<Fragment>,
    },
    Sql {
        fragment: Fragment,
        into: Option<Destination>,
    },
    Perform(Fragment),
    Execute {
        query: Fragment,
        into: Option<Destination>,
        values: Vec<Fragment>,
    },
    Diagnostics {
        stacked: bool,
        items: Vec<(Target, Diagnostic)>,
    },
    Open {
        cursor: Slot,
        what: Opened,
        scroll: Option<bool>,
    },
    /// FETCH, and without targets MOVE.
    Fetch {
        cursor: Slot,
        direction: Direction,
        distance: Distance,
        into: Option<Vec<Target>>,
    },
    Close(Slot),
    Null,
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
}

impl StmtKind {
    /// As CONTEXT names it.
    pub fn name(&self) -> &'static str {
        match self {
            StmtKind::Block(_) => "statement block",
            StmtKind::Assign { .. } => "assignment",
            StmtKind::If { .. } => "IF",
            StmtKind::Case { .. } => "CASE",
            StmtKind::Loop { .. } => "LOOP",
            StmtKind::While { .. } => "WHILE",
            StmtKind::ForInteger { .. } => "FOR with integer loop variable",
            StmtKind::ForRows { rows: Rows::Query(_), .. } => "FOR over SELECT rows",
            StmtKind::ForRows { .. } => "FOR over EXECUTE statement",
            StmtKind::Foreach { .. } => "FOREACH over array",
            StmtKind::Exit { ends: true, .. } => "EXIT",
            StmtKind::Exit { .. } => "CONTINUE",
            StmtKind::Return(_) => "RETURN",
            StmtKind::ReturnNext(_) => "RETURN NEXT",
            StmtKind::ReturnQuery(_) => "RETURN QUERY",
            StmtKind::Raise(_) => "RAISE",
            StmtKind::Assert { .. } => "ASSERT",
            StmtKind::Sql { fragment, .. } => match &*fragment.statement {
                Statement::Routine(r) if r.is_call() => "CALL",
                Statement::Do(_) => "DO",
                _ => "SQL statement",
            },
            StmtKind::Perform(_) => "PERFORM",
            StmtKind::Execute { .. } => "EXECUTE",
            StmtKind::Diagnostics { stacked: true, .. } => "GET STACKED DIAGNOSTICS",
            StmtKind::Diagnostics { .. } => "GET DIAGNOSTICS",
            StmtKind::ForCursor { .. } => "FOR over cursor",
            StmtKind::Open { .. } => "OPEN",
            StmtKind::Fetch { into: Some(_), .. } => "FETCH",
            StmtKind::Fetch { .. } => "MOVE",
            StmtKind::Close(_) => "CLOSE",
            StmtKind::Null => "NULL",
            StmtKind::Commit { .. } => "COMMIT",
            StmtKind::Rollback { .. } => "ROLLBACK",
        }
    }
}
