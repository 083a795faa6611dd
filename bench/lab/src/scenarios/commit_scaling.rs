//! Scenario: commits that contend for the log only.

use crate::scenario::{Argument, Check, Flavour, Group, Limit, Point, Scenario, Step, rows};

/// Rows, and with them the most clients.
const ROWS: u32 = 4000;

/// Every client increments a row of its own.
pub struct CommitScaling;

impl Scenario for CommitScaling {
    fn name(&self) -> &'static str {
        "commit-scaling"
    }

    fn title(&self) -> &'static str {
        "Commits without conflicts"
    }

    fn about(&self) -> &'static str {
        "Every client runs `UPDATE t1 SET b = b + 1 WHERE a = $1` on a row of its own, each statement a transaction: once with every \
         commit made durable before its reply, and once without waiting for that. With one client the device's syncs are the \
         limit; with many, what the commits share besides them."
    }

    fn remarks(&self) -> &'static str {
        "Not durable means: `synchronous_commit = off` in Clearway and PostgreSQL, `innodb_flush_log_at_trx_commit = 0` in \
         MariaDB; the log is then written within a moment or a second. In Clearway it waives the wait for the statement's own \
         commit and for nothing else: a row whose last version is not on disk yet is waited for before anybody is told of a \
         change that builds on it, so a client that increments its row again and again waits for its previous increment, and \
         gains little here, where the others gain much. Every commit of Clearway is one record in one log, and \
         commits that are ready together share a sync. With one client, and without waiting for the disk, what a statement \
         costs besides decides, and there a thread of MariaDB or a process of PostgreSQL that has only one connection to serve \
         is as fast or faster."
    }

    fn unit(&self) -> &'static str {
        "commits/s"
    }

    fn points(&self) -> &'static [u32] {
        &[1, 8, 64, 256, 1000]
    }

    fn variants(&self) -> &'static [&'static str] {
        &["durable", "not durable"]
    }

    fn setup(&self, _: Flavour) -> Vec<String> {
        let mut all = vec!["CREATE TABLE t1 (a int PRIMARY KEY, b int NOT NULL)".to_owned()];
        all.extend(rows("t1", ROWS));
        all
    }

    fn reset(&self, to: Flavour, at: Point) -> Vec<String> {
        let durable = is_durable(at);
        let mut all = vec!["UPDATE t1 SET b = 0".to_owned()];
        match to {
            Flavour::Postgres => {
                all.push(format!("ALTER SYSTEM SET synchronous_commit = {}", if durable { "on" } else { "off" }));
                all.push("SELECT pg_reload_conf()".to_owned());
            }
            Flavour::MySql => all.push(format!("SET GLOBAL innodb_flush_log_at_trx_commit = {}", i32::from(durable))),
            // Clearway's sessions say it themselves.
            Flavour::Clearway | Flavour::WireOnly => {}
        }
        all
    }

    fn load(&self, to: Flavour, at: Point) -> Vec<Group> {
        let script = vec![Step::with("UPDATE t1 SET b = b + 1 WHERE a = $1", &[Argument::Client])];
        let off = to == Flavour::Clearway && !is_durable(at);
        let prologue = if off { vec!["SET synchronous_commit = off".to_owned()] } else { Vec::new() };
        vec![Group { prologue, ..Group::new("commits", at.x.min(ROWS), script) }]
    }

    fn check(&self) -> Option<Check> {
        Some(Check { sql: "SELECT sum(b) FROM t1", group: "commits" })
    }

    fn limits(&self) -> &'static [Limit] {
        &[Limit::Syncs]
    }
}

fn is_durable(at: Point) -> bool {
    at.variant == "durable"
}
