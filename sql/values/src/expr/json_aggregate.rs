//! json_agg, json_object_agg and their jsonb variants: how values are collected, and the result.

use super::aggregate::Kind;
use super::json_build::{name, to_document, write};
use crate::error::{Result, SqlError, code};
use crate::types::datum::Datum;
use crate::types::json::{Json, escape};
use crate::types::oid;
use std::sync::Arc;

/// What has been gathered: text for json, parts of a document for jsonb.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    text: String,
    list: Vec<Json>,
    members: Vec<(Arc<str>, Json)>,
}

impl Gathered {
    /// Takes a row's arguments.
    ///
    /// # Errors
    /// 22023 for a key that is null or no scalar; 53200.
    pub fn add(&mut self, kind: Kind, args: &[Datum], session: &dyn super::Session) -> Result<()> {
        let [first, rest @ ..] = args else { return Ok(()) };
        let value = rest.first().unwrap_or(&Datum::Null);
        let is_first = self.text.is_empty();
        match kind {
            Kind::JsonAgg => {
                self.text.push_str(if is_first { "[" } else { ", " });
                if !is_first && matches!(first, Datum::Array(_) | Datum::Row(_)) {
                    self.text.push_str("\n ");
                }
                write(first, oid::TEXT.into(), None, session, &mut self.text)?;
            }
            Kind::JsonObjectAgg => {
                self.text.push_str(if is_first { "{ " } else { ", " });
                escape(&key(first, session)?, &mut self.text);
                self.text.push_str(" : ");
                write(value, oid::TEXT.into(), None, session, &mut self.text)?;
            }
            Kind::JsonbAgg => self.list.push(to_document(first, oid::TEXT.into(), session)?),
            _ => {
                let key = key(first, session)?.into();
                self.members.push((key, to_document(value, oid::TEXT.into(), session)?));
            }
        }
        Ok(())
    }

    /// The value of what was gathered, of at least one row.
    pub fn value(&self, kind: Kind) -> Datum {
        match kind {
            Kind::JsonAgg => Datum::Json(format!("{}]", self.text).into()),
            Kind::JsonObjectAgg => Datum::Json(format!("{} }}", self.text).into()),
            Kind::JsonbAgg => Datum::Jsonb(Json::Array(self.list.clone()).into()),
            _ => Datum::Jsonb(Json::object(self.members.clone()).into()),
        }
    }
}

fn key(d: &Datum, session: &dyn super::Session) -> Result<String> {
    if d.is_null() {
        return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, "field name must not be null"));
    }
    name(d, 1, session)
}
