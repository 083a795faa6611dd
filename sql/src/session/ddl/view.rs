//! Options of views.

use super::Ddl;
use crate::error::{Result, SqlError};
use crate::planner::Planner;
use crate::session::utility::with_env;
use crate::syntax::stmt::GenericOption;
use clearway_engine::catalog::Relation;

/// The options of a view as the catalog keeps them.
///
/// # Errors
/// 22023, 0A000.
pub(super) fn options(options: &[GenericOption]) -> Result<Vec<String>> {
    let mut kept: Vec<String> = Vec::new();
    for o in options {
        let value = match o.name.as_str() {
            "check_option" => o.as_str().unwrap_or("true").to_ascii_lowercase(),
            "security_barrier" | "security_invoker" => {
                once(&kept, &o.name)?;
                kept.push(format!("{}={}", o.name, truth(o)?));
                continue;
            }
            name => return Err(SqlError::new("22023", format!("unrecognized parameter \"{name}\""))),
        };
        if !matches!(value.as_str(), "local" | "cascaded") {
            let message = format!("invalid value for enum option \"check_option\": {value}");
            return Err(SqlError::new("22023", message).detail("Valid values are \"local\" and \"cascaded\"."));
        }
        once(&kept, "check_option")?;
        kept.push(format!("check_option={value}"));
    }
    Ok(kept)
}

fn once(kept: &[String], name: &str) -> Result<()> {
    match kept.iter().any(|o| o.split('=').next() == Some(name)) {
        true => Err(SqlError::new("22023", format!("parameter \"{name}\" specified more than once"))),
        false => Ok(()),
    }
}

/// A boolean option as it was written, where it says yes or no.
fn truth(o: &GenericOption) -> Result<String> {
    let text = o.as_str().unwrap_or("true").to_ascii_lowercase();
    if crate::types::text::boolean(&text).is_err() {
        return Err(SqlError::new("22023", format!("invalid value for boolean option \"{}\": {text}", o.name)));
    }
    Ok(text)
}

impl Ddl<'_> {
    /// Refuses a check option of a view that can't be changed through.
    ///
    /// # Errors
    /// 0A000.
    pub(super) fn may_check(&self, view: &Relation) -> Result<()> {
        if view.option("check_option").is_none() {
            return Ok(());
        }
        let catalog = self.catalog();
        match with_env(self.core, &catalog, |env| Planner::new(env).obstacle_of(view))? {
            None => Ok(()),
            Some(why) => {
                let message = "WITH CHECK OPTION is supported only on automatically updatable views";
                Err(SqlError::new("0A000", message).hint(why))
            }
        }
    }
}
