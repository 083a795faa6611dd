//! A JSON document in memory.

use super::moment::Moment;
use crate::types::Numeric;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// How deep a document may be (PostgreSQL's bound is that of its stack).
pub const DEPTH_MAX: usize = 6_400;

/// A document, or a part of one.
#[derive(Clone, Debug)]
pub enum Json {
    /// `null`.
    Null,
    /// `true`, `false`.
    Bool(bool),
    /// A number.
    Number(Arc<Numeric>),
    /// A string.
    String(Arc<str>),
    /// `[...]`.
    Array(Vec<Json>),
    /// `{...}` (JSN-1).
    Object(Vec<(Arc<str>, Json)>),
    /// A date or time that a jsonpath works with, and its text: it leaves the path as a string.
    Moment(Moment, Arc<str>),
}

impl Json {
    /// A string.
    pub fn string(text: impl Into<Arc<str>>) -> Json {
        Json::String(text.into())
    }

    /// A number.
    pub fn number(n: Numeric) -> Json {
        Json::Number(Arc::new(n))
    }

    /// An object of these members; of equal names the last one counts (JSN-1).
    pub fn object(mut members: Vec<(Arc<str>, Json)>) -> Json {
        // A stable sort: of equal names the last one stands last.
        members.sort_by(|a, b| name_order(&a.0, &b.0));
        members.reverse();
        members.dedup_by(|later, kept| later.0 == kept.0);
        members.reverse();
        Json::Object(members)
    }

    /// What `jsonb_typeof` says.
    pub fn type_name(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "boolean",
            Json::Number(_) => "number",
            Json::String(_) => "string",
            Json::Array(_) => "array",
            Json::Object(_) => "object",
            Json::Moment(moment, _) => moment.type_name(),
        }
    }

    /// The member of this name.
    pub fn member(&self, name: &str) -> Option<&Json> {
        let Json::Object(members) = self else { return None };
        members.binary_search_by(|m| name_order(&m.0, name)).ok().map(|i| &members[i].1)
    }

    /// The element of this number; a negative one counts from the end.
    pub fn element(&self, n: i64) -> Option<&Json> {
        let Json::Array(elements) = self else { return None };
        let at = if n < 0 { n + elements.len() as i64 } else { n };
        usize::try_from(at).ok().and_then(|at| elements.get(at))
    }

    /// Whether it is neither an array nor an object.
    pub fn is_scalar(&self) -> bool {
        !matches!(self, Json::Array(_) | Json::Object(_))
    }

    /// Bytes of the heap.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Json::Null | Json::Bool(_) => 0,
            Json::Number(_) => 48,
            Json::String(s) | Json::Moment(_, s) => s.len(),
            Json::Array(list) => list.iter().map(|v| size_of::<Json>() + v.heap_bytes()).sum(),
            Json::Object(list) => list.iter().map(|(k, v)| 48 + k.len() + v.heap_bytes()).sum(),
        }
    }

    /// Its hash; equal documents have equal ones.
    pub fn hash_into<H: Hasher>(&self, state: &mut H) {
        match self {
            Json::Null => 0u8.hash(state),
            Json::Bool(b) => b.hash(state),
            Json::Number(n) => n.normalized().to_string().hash(state),
            Json::String(s) | Json::Moment(_, s) => s.hash(state),
            Json::Array(list) => list.iter().for_each(|v| v.hash_into(state)),
            Json::Object(list) => list.iter().for_each(|(k, v)| {
                k.hash(state);
                v.hash_into(state);
            }),
        }
    }
}

/// The order of the names in an object.
pub fn name_order(a: &str, b: &str) -> std::cmp::Ordering {
    a.len().cmp(&b.len()).then_with(|| a.as_bytes().cmp(b.as_bytes()))
}
