//! What a statement in the body of a function runs with.

use super::run::Request;
use crate::context::core::Core;
use crate::expr::bind_routines::ParamNames;
use crate::syntax::stmt::Statement;
use crate::types::user::DefinitionPath;
use crate::types::{Datum, Oid};
use clearway_engine::catalog::ViewMeaning;
use clearway_txn::mvcc::book::View;
use std::sync::Arc;

/// What a statement in the body of a function runs with.
pub struct BodyContext {
    /// The names of its parameters.
    pub names: Arc<ParamNames>,
    /// The schemas in which its names are looked for; none: the session's.
    pub path: Option<Arc<DefinitionPath>>,
    /// What its names mean, where that is settled.
    pub meaning: Option<ViewMeaning>,
    /// What it sees; none: what has happened so far.
    pub view: Option<View>,
}

impl<'a> Request<'a> {
    /// That of a statement in the body of a function, with its parameters and their types.
    pub fn in_body(
        core: &Core,
        (statement, text): (&'a Statement, &'a Arc<str>),
        (params, types): (Arc<[Datum]>, &'a [Oid]),
        body: &'a BodyContext,
    ) -> Self {
        Request {
            statement,
            text,
            params,
            types,
            columns: None,
            alone: false,
            transaction_started: core.transaction_started(),
            latest: false,
            system: false,
            measured: false,
            custom: false,
            body: Some(body),
            steering: None,
        }
    }
}
