//! What the system views see of the plans that sessions share.

use clearway_values::types::Oid;
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// A plan that sessions share.
#[derive(Clone, Debug)]
pub struct SharedPlanRow {
    /// The database.
    pub database: Oid,
    /// The role whose rights it was made for.
    pub role: Option<Oid>,
    /// The schemas that its names were looked for in.
    pub path: Arc<[String]>,
    /// It is a text of the simple protocol.
    pub simple: bool,
    /// Its text.
    pub text: Arc<str>,
    /// How often a session has taken it.
    pub taken: u64,
    /// When it was made, microseconds since 2000.
    pub at: i64,
}

/// All of them; sessions know more of it.
pub trait SharedPlanList: Any + Debug + Send + Sync {
    /// Those of the moment.
    fn rows(&self) -> Vec<SharedPlanRow>;
}
