//! DO.

use super::compile::compile;
use super::frame::Frame;
use crate::error::{Result, SqlError, code};
use crate::session::client::Client;
use crate::session::session::Session;
use crate::syntax::plpgsql::{Owner, parse};
use crate::syntax::stmt::Do;
use std::sync::Arc;

const SHOWN: &str = "inline_code_block";

impl Session {
    /// Runs DO.
    ///
    /// # Errors
    /// What is wrong with the text, and what its statements give.
    pub(in crate::session) async fn run_do(&mut self, d: &Do, client: &mut dyn Client) -> Result<String> {
        match d.language.as_deref().unwrap_or("plpgsql") {
            "plpgsql" => {}
            language @ ("sql" | "c" | "internal") => {
                let message = format!("language \"{language}\" does not support inline code execution");
                return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message));
            }
            language @ ("plpython3u" | "plperl" | "plperlu" | "pltcl" | "pltclu") => {
                return Err(SqlError::unsupported(format!("DO in language {language}")));
            }
            language => {
                return Err(SqlError::new(code::UNDEFINED_OBJECT, format!("language \"{language}\" does not exist")));
            }
        }
        let here = |e: SqlError| placed_in(e, &d.body, d.place, SHOWN);
        let core = self.core.clone();
        let body = parse(&d.body, &Owner::default()).map_err(here)?;
        let code = Arc::new(compile(&core, SHOWN.to_owned(), body, &[]).map_err(here)?);
        let atomic = self.is_atomic();
        let _deeper = crate::context::routines::Deeper::into(&core)?;
        let mut frame = Frame::new(self, client, code);
        frame.atomic = atomic;
        frame.run().await?;
        Ok("DO".to_owned())
    }
}

/// An error in the text of a body shows the place in the statement, where the text stands in it as it is.
pub(super) fn placed_in(e: SqlError, body: &str, place: Option<u32>, shown: &str) -> SqlError {
    match (e.fields().at, place) {
        (Some(at), Some(start)) => e.nowhere().at(start + at),
        (Some(_), None) => e.internal_to(body),
        (None, _) if e.fields().names.iter().any(|(field, _)| *field == b'W') => e,
        (None, _) => e.within(format!("compilation of PL/pgSQL function \"{shown}\"")),
    }
}
