//! Reports which sessions block a waiting DDL statement: every ten seconds, in the server's log and to the client.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use clearway_base::sync::timeout;
use clearway_base::waits;

use super::client::Client;
use crate::context::core::Core;
use crate::context::log_line::{Line, Severity};
use crate::context::obstacle;
use crate::context::settings::HiddenMessages;
use crate::error::SqlError;

const EVERY: Duration = Duration::from_secs(10);

/// Runs a statement of DDL, and tells of it while it waits.
pub async fn telling<T>(core: &Core, client: &mut dyn Client, statement: impl Future<Output = T>) -> T {
    let mut statement = pin!(statement);
    loop {
        match timeout(EVERY, statement.as_mut()).await {
            Ok(done) => return done,
            Err(_) => report_wait(core, client),
        }
    }
}

/// In PostgreSQL's words for the log (`log_lock_waits`), with the names that a reader knows for the client.
fn report_wait(core: &Core, client: &mut dyn Client) {
    let Some(obstacle) = obstacle::now(core).filter(|o| !o.blockers.is_empty()) else { return };
    let (pid, mode, name) = (core.backend.pid, obstacle.mode.name(), obstacle::name(core, &obstacle.tag));
    let waited_ms = waits::now_ns().saturating_sub(obstacle.since_ns) / 1_000_000;
    let query = core.backend.activity.lock().query.clone();
    let pids: Vec<String> = obstacle.blockers.iter().map(|b| b.pid.to_string()).collect();
    let holders = if pids.len() == 1 { "Process" } else { "Processes" };
    let message = format!("process {pid} still waiting for {mode} on {name} after {waited_ms}.000 ms");
    let mut line = Line::new(Severity::Log, "00000", message).of(&core.backend);
    line.detail = format!(
        "{holders} holding the lock: {}. {}",
        pids.join(", "),
        obstacle::detail(core, &obstacle, false).replace('\n', " ")
    );
    line.statement = query.to_string();
    line.lock_wait = true;
    core.backends.log_line(line);
    let hidden = core.settings.lock().hides != HiddenMessages::Nothing;
    if !hidden {
        let message = format!("still waiting for {mode} on {name} after {} s", waited_ms / 1_000);
        let notice = SqlError::new("00000", message).detail(obstacle::detail(core, &obstacle, true));
        client.notice_now("NOTICE", &notice);
    }
}
