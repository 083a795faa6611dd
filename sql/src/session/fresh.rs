//! Whether a plan that was kept still fits.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::run::Cached;
use crate::context::core::Core;
use crate::context::settings::Settings;
use crate::encoding::Encoding;
use crate::error::{Result, SqlError};
use crate::planner::plan::OutputColumn;

/// Whether a plan still fits.
pub fn is_fresh(core: &Core, cached: &Cached) -> bool {
    let same_catalog = match cached.version {
        Some(version) => core.engine.take().sees_catalog(version),
        None => Arc::ptr_eq(&cached.catalog, &core.catalog()),
    };
    same_catalog && of_session(core, cached).0
}

/// A client that was told of a statement's columns reads its rows by them.
pub(super) fn same_columns(told: Option<&[OutputColumn]>, now: Option<&[OutputColumn]>) -> Result<()> {
    let Some(told) = told else { return Ok(()) };
    let same = |a: &OutputColumn, b: &OutputColumn| a.name == b.name && a.ty == b.ty;
    match now {
        Some(now) if now.len() == told.len() && told.iter().zip(now).all(|(a, b)| same(a, b)) => Ok(()),
        _ => Err(SqlError::new("0A000", "cached plan must not change result type")),
    }
}

/// Whether neither role nor path nor the planner have been set otherwise since it was made, and the short ways may write its rows. If not, it may fit still
/// ([`is_short_of_session`]).
pub(super) fn is_short_of_settings(settings: &Settings, cached: &Cached) -> bool {
    let is_same = settings.role_changes == cached.role_changes && settings.path_changes == cached.path_changes;
    is_same && is_steered_so(settings, cached) && !settings.format.encoding.differs()
}

/// Whether the settings of the planner are those under which it is carried out (STR-2).
fn is_steered_so(settings: &Settings, cached: &Cached) -> bool {
    settings.steering.number() == cached.steered.load(Relaxed)
}

/// Whether it fits the session's role, path and planner and the statistics, and the short ways may write its rows: they write UTF-8. The caller looks at
/// the version of the catalog.
pub(super) fn is_short_of_session(core: &Core, cached: &Cached) -> bool {
    let (fits, encoding) = of_session(core, cached);
    fits && !encoding.differs()
}

/// Whether it fits role, path, planner and statistics; and the client's encoding.
fn of_session(core: &Core, cached: &Cached) -> (bool, Encoding) {
    let (path_changes, same_role, encoding) = {
        let settings = core.settings.lock();
        let same_role = settings.role_changes == cached.role_changes
            || (settings.current_role(), settings.row_security) == (cached.role, cached.row_security);
        (settings.path_changes, same_role && is_steered_so(&settings, cached), settings.format.encoding)
    };
    let same_figures = cached.generation.is_none_or(|g| g == core.db.statistics().generation());
    let same_names = path_changes == cached.path_changes || *cached.path == *core.path();
    (same_role && same_names && same_figures, encoding)
}
