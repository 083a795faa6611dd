//! Whether a plan that was kept still fits.

use std::sync::Arc;

use super::run::Cached;
use crate::context::core::Core;

/// Whether a plan still fits.
pub fn is_fresh(core: &Core, cached: &Cached) -> bool {
    let same_catalog = match cached.version {
        Some(version) => core.engine.take().sees_catalog(version),
        None => Arc::ptr_eq(&cached.catalog, &core.catalog()),
    };
    same_catalog && is_of_session(core, cached)
}

/// Whether it fits the session's role and path and the statistics. The caller looks at the version of the catalog.
pub(super) fn is_of_session(core: &Core, cached: &Cached) -> bool {
    let (path_changes, same_role) = {
        let settings = core.settings.lock();
        let same_role = settings.role_changes == cached.role_changes
            || (settings.current_role(), settings.row_security) == (cached.role, cached.row_security);
        (settings.path_changes, same_role)
    };
    let same_figures = cached.generation.is_none_or(|g| g == core.db.statistics().generation());
    let same_names = path_changes == cached.path_changes || *cached.path == *core.path();
    same_role && same_names && same_figures
}
