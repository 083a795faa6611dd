//! The progress of a running COPY, for pg_stat_progress_copy.

use crate::context::core::Core;
use crate::planner::environment::relation_oid;
use crate::syntax::stmt::CopySource;
use clearway_engine::progress::{Work, WorkView};

/// A copy as pg_stat_progress_copy shows it.
pub(super) fn now(command: &'static str, core: &Core, source: &CopySource) -> WorkView {
    let table = match source {
        CopySource::Table(name, _) => relation_oid(core, name).map_or(0, |(oid, _)| oid),
        CopySource::Query(_) => 0,
    };
    WorkView { work: Work::Copy, command, phase: "", table, index: 0 }
}
