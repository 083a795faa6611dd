//! The isolation and durability that a server reports, and whether they are those that the lab asks of all servers.

use super::Server;
use crate::LabError;
use crate::scenario::Flavour;

/// A question, and the answers (in lower case) that promise as much as the others do.
struct Promise {
    name: &'static str,
    question: &'static str,
    equal: &'static [&'static str],
}

const POSTGRES: [Promise; 4] = [
    Promise { name: "transaction_isolation", question: "SHOW transaction_isolation", equal: &["read committed"] },
    Promise {
        name: "synchronous_commit",
        question: "SHOW synchronous_commit",
        equal: &["on", "local", "remote_write", "remote_apply"],
    },
    Promise { name: "fsync", question: "SHOW fsync", equal: &["on"] },
    Promise { name: "full_page_writes", question: "SHOW full_page_writes", equal: &["on"] },
];

const CLEARWAY: [Promise; 2] = [
    Promise { name: "transaction_isolation", question: "SHOW transaction_isolation", equal: &["read committed"] },
    Promise { name: "synchronous_commit", question: "SHOW synchronous_commit", equal: &["on", "local"] },
];

const MARIADB: [Promise; 4] = [
    Promise { name: "transaction_isolation", question: "SELECT @@tx_isolation", equal: &["read-committed"] },
    Promise {
        name: "innodb_flush_log_at_trx_commit",
        question: "SELECT @@innodb_flush_log_at_trx_commit",
        equal: &["1", "3"],
    },
    Promise { name: "innodb_doublewrite", question: "SELECT @@innodb_doublewrite", equal: &["1", "on"] },
    Promise { name: "log_bin", question: "SELECT @@log_bin", equal: &["0", "1"] },
];

/// LAB-1, LSRV-3: asks, books the answers among the settings, and refuses the server if one of them promises less.
pub(super) async fn examine(server: &mut Server, accept_unequal: bool) -> Result<(), LabError> {
    let promises: &[Promise] = match server.flavour {
        Flavour::Postgres => &POSTGRES,
        Flavour::Clearway => &CLEARWAY,
        Flavour::MySql => &MARIADB,
        Flavour::WireOnly => &[],
    };
    let mut unequal = Vec::new();
    for promise in promises {
        let answer = server.ask(promise.question).await;
        let answer = answer.unwrap_or_else(|_| "unknown".to_owned());
        if !promise.equal.contains(&answer.to_ascii_lowercase().as_str()) {
            unequal.push(format!("{} is {answer}, not {}", promise.name, promise.equal.join(" or ")));
        }
        server.settings.retain(|(name, _)| name != promise.name);
        server.settings.push((promise.name.to_owned(), answer));
    }
    if unequal.is_empty() {
        return Ok(());
    }
    let unequal = unequal.join("; ");
    if accept_unequal {
        server.settings.push(("NOT EQUAL".to_owned(), unequal));
        return Ok(());
    }
    Err(LabError::Absent {
        server: server.name.clone(),
        reason: format!(
            "it promises something else than the others: {unequal} (--accept-unequal takes it, and its caption says so)"
        ),
    })
}
