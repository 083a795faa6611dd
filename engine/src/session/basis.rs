//! The objects of the catalog that a DDL statement has read, and on which its changes are based (SES-7).

use std::collections::HashMap;
use std::sync::Arc;

use crate::catalog::{Catalog, Object, Oid};

/// SES-7: the published versions of objects that a statement of DDL has read.
#[derive(Default)]
pub(super) struct Basis {
    /// The catalog with which the statement began; none: each object is read when it is put.
    pub(super) catalog: Option<Arc<Catalog>>,
    /// Objects that it has read later, after it had locked them.
    pub(super) later: HashMap<Oid, Option<Arc<Object>>>,
}
