//! The syntax tree of a path.

use crate::types::numeric::Numeric;
use std::sync::Arc;

/// How deep a path may be nested.
pub(super) const DEPTH_MAX: usize = 200;

/// A path.
#[derive(Clone, Debug)]
pub struct JsonPath {
    /// Whether a part that is missing is an error.
    pub strict: bool,
    /// What it computes.
    pub root: Node,
}

/// An arithmetic operator or a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum PathOp {
    Or,
    And,
    Eq,
    Ne,
    Lt,
    Gt,
    Le,
    Ge,
    StartsWith,
    Add,
    Sub,
    Mul,
    Div,
    Mod,
}

impl PathOp {
    /// As it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            PathOp::Or => "||",
            PathOp::And => "&&",
            PathOp::Eq => "==",
            PathOp::Ne => "!=",
            PathOp::Lt => "<",
            PathOp::Gt => ">",
            PathOp::Le => "<=",
            PathOp::Ge => ">=",
            PathOp::StartsWith => "starts with",
            PathOp::Add => "+",
            PathOp::Sub => "-",
            PathOp::Mul => "*",
            PathOp::Div => "/",
            PathOp::Mod => "%",
        }
    }

    /// How tightly it binds: 0 the least.
    pub fn priority(self) -> u8 {
        match self {
            PathOp::Or => 0,
            PathOp::And => 1,
            PathOp::Add | PathOp::Sub => 3,
            PathOp::Mul | PathOp::Div | PathOp::Mod => 4,
            _ => 2,
        }
    }
}

/// A part of a path: an operand with its accessors, or an operator.
#[derive(Clone, Debug)]
pub enum Node {
    /// An operand and what is applied to it, in order.
    Chain(Box<Operand>, Vec<Step>),
    /// `a op b`.
    Binary(PathOp, Box<Node>, Box<Node>),
    /// `-a` (true), `+a`.
    Signed(bool, Box<Node>),
    /// `!(a)`.
    Not(Box<Node>),
    /// `(a) is unknown`.
    IsUnknown(Box<Node>),
    /// `exists (a)`.
    Exists(Box<Node>),
    /// `a like_regex "pattern" flag "flags"`.
    LikeRegex(Box<Node>, Arc<str>, String),
}

/// What a chain begins with.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Operand {
    Root,
    Current,
    Last,
    Null,
    Bool(bool),
    Number(Arc<Numeric>),
    String(Arc<str>),
    Variable(Arc<str>),
    Inner(Node),
}

/// An accessor.
#[derive(Clone, Debug)]
pub enum Step {
    /// `.name`
    Member(Arc<str>),
    /// `.*`
    AnyMember,
    /// `[*]`
    AnyElement,
    /// `.**{a to b}`; `u32::MAX` is the last level.
    Levels(u32, u32),
    /// `[a, b to c]`
    Elements(Vec<(Node, Option<Node>)>),
    /// `?(a)`
    Filter(Node),
    /// `.type()` and its like.
    Method(Method),
    /// `.datetime()`, with a template.
    DateTime(Option<Arc<str>>),
}

/// A method of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Method {
    Type,
    Size,
    Double,
    Ceiling,
    Floor,
    Abs,
    KeyValue,
}

impl Method {
    pub(super) const ALL: &'static [(&'static str, Method)] = &[
        ("type", Method::Type),
        ("size", Method::Size),
        ("double", Method::Double),
        ("ceiling", Method::Ceiling),
        ("floor", Method::Floor),
        ("abs", Method::Abs),
        ("keyvalue", Method::KeyValue),
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        Method::ALL.iter().find(|m| m.1 == self).map_or("", |m| m.0)
    }
}
