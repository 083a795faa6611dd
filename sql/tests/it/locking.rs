//! Locks as SQL sessions meet them, in virtual time.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::sim::{Connection, connect, open, simulate};
use clearway_base::sync::sleep;
use clearway_base::testkit::{self, JoinHandle};
use clearway_base::vfs::sim::SimDisk;
use clearway_base::waits::now_ns;
use clearway_sql::SqlError;
use clearway_sql::session::{Backends, Client};

const MS: u64 = 1_000_000;

/// Runs a scene with four clients and a table `t (id, v)` with the rows 1 to 4.
fn scene<F: Future<Output = ()> + Send + 'static>(play: impl FnOnce([Connection; 4]) -> F + Send + 'static) {
    simulate(3, move || async move {
        let db = open(&SimDisk::new(3)).await;
        let backends = Arc::new(Backends::default());
        let mut first = connect(&db, &backends).await;
        first.value("CREATE TABLE t (id int PRIMARY KEY, v int)").await;
        first.value("INSERT INTO t SELECT g, 0 FROM generate_series(1, 4) g").await;
        let second = connect(&db, &backends).await;
        let third = connect(&db, &backends).await;
        let fourth = connect(&db, &backends).await;
        testkit::spawn("play", play([first, second, third, fourth])).await;
        assert!(db.transactions().locks().locks().is_empty(), "a lock is left");
    });
}

type Running = JoinHandle<(Connection, Result<Vec<String>, SqlError>, u64)>;

/// Runs a text beside others; also says when it ended.
fn start(mut connection: Connection, sql: &'static str) -> Running {
    testkit::spawn("client", async move {
        let ended = connection.run(sql).await;
        (connection, ended, now_ns())
    })
}

async fn ms(n: u64) {
    sleep(Duration::from_millis(n)).await;
}

#[test]
fn ddl_behind_a_long_transaction_lets_others_pass() {
    scene(|[mut long, ddl, mut writer, mut viewer]| async move {
        long.value("BEGIN; UPDATE t SET v = 1 WHERE id = 1").await;
        let ddl = start(ddl, "ALTER TABLE t ADD COLUMN more int");
        let mut longest_ns = 0;
        for _ in 0..40 {
            ms(13).await;
            let came_ns = now_ns();
            writer.value("UPDATE t SET v = v + 1 WHERE id = 2").await;
            longest_ns = longest_ns.max(now_ns() - came_ns);
            let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'";
            assert_eq!(viewer.value(waits).await, "1", "pg_locks shows the waiting statement, in the queue or aside");
        }
        // Forty writers, at all places of the cycle of 50 ms and 50 ms aside: one window each, at most, and the reads of pages. Two windows
        // would be 150 ms.
        assert!(longest_ns > MS && longest_ns < 100 * MS, "a writer waited {longest_ns} ns");
        long.value("COMMIT").await;
        let (_, ended, _) = ddl.await;
        ended.expect("altered");
        writer.value("UPDATE t SET more = 1").await;
    });
}

#[test]
fn without_a_window_ddl_holds_back_whoever_comes_later() {
    scene(|[mut long, mut ddl, writer, _]| async move {
        ddl.value("SET ddl_block_window = -1").await;
        long.value("BEGIN; UPDATE t SET v = 1 WHERE id = 1").await;
        let ddl = start(ddl, "ALTER TABLE t ADD COLUMN more int");
        ms(5).await;
        let writer = start(writer, "UPDATE t SET v = 2 WHERE id = 2");
        ms(5_000).await;
        let freed_ns = now_ns();
        long.value("COMMIT").await;
        let (_, changed, ddl_ns) = ddl.await;
        let (_, written, writer_ns) = writer.await;
        assert!(changed.is_ok() && written.is_ok());
        assert!(ddl_ns >= freed_ns && writer_ns >= freed_ns, "first come, first served");
    });
}

#[test]
fn ddl_fails_after_its_rounds_if_so_set_and_lock_table_never_steps_aside() {
    scene(|[mut long, mut ddl, writer, mut locker]| async move {
        long.value("BEGIN; UPDATE t SET v = 1 WHERE id = 1").await;
        ddl.value("SET ddl_block_rounds = 3; SET ddl_block_then = 'error'").await;
        let began_ns = now_ns();
        assert_eq!(ddl.code("DROP TABLE t").await, "55P03");
        assert!((300 * MS..400 * MS).contains(&(now_ns() - began_ns)), "three rounds of 50 ms and 50 ms aside");
        locker.value("SET ddl_block_window = 50").await;
        let locker = start(locker, "BEGIN; LOCK TABLE t IN EXCLUSIVE MODE; COMMIT");
        ms(1).await;
        let writer = start(writer, "UPDATE t SET v = 2 WHERE id = 2");
        ms(1_000).await;
        let freed_ns = now_ns();
        long.value("COMMIT").await;
        let (_, _, locked_ns) = locker.await;
        let (_, _, written_ns) = writer.await;
        assert!(locked_ns >= freed_ns && written_ns >= freed_ns);
    });
}

#[test]
fn the_archive_of_deadlocks_is_a_view() {
    scene(|[mut a, mut b, mut viewer, _]| async move {
        a.value("BEGIN; UPDATE t SET v = 1 WHERE id = 1").await;
        b.value("BEGIN; UPDATE t SET v = 2 WHERE id = 2").await;
        let waits = start(a, "UPDATE t SET v = 3 WHERE id = 2");
        ms(5).await;
        assert_eq!(b.code("UPDATE t SET v = 4 WHERE id = 1").await, "40P01");
        b.value("ROLLBACK").await;
        let (mut a, ended, _) = waits.await;
        ended.expect("the other was the victim");
        a.value("COMMIT").await;
        assert_eq!(viewer.value("SELECT count(*) FROM clearway_deadlocks").await, "2");
        let text = "SELECT wants || '/' || wants_mode || '/' || statements FROM clearway_deadlocks WHERE victim";
        let victim = viewer.value(text).await;
        for part in ["tuple public.t (id)=(1)", "UPDATE t SET v = 2 WHERE id = 2", "UPDATE t SET v = 4 WHERE id = 1"] {
            assert!(victim.contains(part), "{victim}");
        }
        let ring = "SELECT count(*) FROM clearway_deadlocks a JOIN clearway_deadlocks b ON a.waits_for = b.pid AND b.waits_for = a.pid";
        assert_eq!(viewer.value(ring).await, "2");
        let counters = "SELECT deadlocks || ' ' || missed_by_fast_path FROM clearway_deadlock_counters";
        assert_eq!(viewer.value(counters).await, "1 0");
    });
}

/// A holder whose taking statement lies four back, and a waiter behind a waiter: named while they wait and afterwards, with how it ended.
#[test]
fn the_history_of_waits_names_taker_root_key_and_outcome() {
    scene(|[mut head, middle, last, mut viewer]| async move {
        head.value("BEGIN; UPDATE t SET v = 1 WHERE id = 1").await;
        for n in 1..=4 {
            head.value(&format!("SELECT {n}")).await;
        }
        let mut middle = middle;
        middle.value("BEGIN; DELETE FROM t WHERE id = 2").await;
        let middle = start(middle, "UPDATE t SET v = 2 WHERE id = 1");
        ms(10).await;
        let mut last = last;
        last.value("SET lock_timeout = '2s'").await;
        let last = start(last, "UPDATE t SET v = 3 WHERE id = 2");
        ms(1_000).await;
        let tree = "SELECT string_agg(depth || ' ' || blocks || ' ' || coalesce(key, '') || ' ' || coalesce(taken_by, ''), ';' ORDER BY depth)
            FROM clearway_lock_tree";
        let shown = viewer.value(tree).await;
        assert_eq!(
            shown,
            "0 2 (id)=(1) UPDATE t SET v = 1 WHERE id = 1;1 1 (id)=(1) DELETE FROM t WHERE id = 2;2 0 (id)=(2) "
        );
        assert_eq!(viewer.value("SELECT taken_ago FROM clearway_lock_tree WHERE depth = 0").await, "4");
        let (mut last, ended, _) = last.await;
        assert_eq!(ended.expect_err("its time was over").code(), "55P03");
        head.value("COMMIT").await;
        let (mut middle, ended, _) = middle.await;
        ended.expect("the head has committed");
        middle.value("COMMIT").await;
        last.value("SELECT 1").await;
        let past = "SELECT string_agg(outcome || ' ' || object || ' ' || key || ' ' || depth || ' ' || root_taken_by || ' ' || root_taken_ago, ';'
            ORDER BY number) FROM clearway_lock_waits";
        assert_eq!(
            viewer.value(past).await,
            "timeout public.t (id)=(2) 2 UPDATE t SET v = 1 WHERE id = 1 4;\
             granted public.t (id)=(1) 1 UPDATE t SET v = 1 WHERE id = 1 4"
        );
        let exact =
            "SELECT count(*) FROM clearway_lock_waits WHERE outcome = 'timeout' AND waited_ms BETWEEN 1999 AND 2020";
        assert_eq!(viewer.value(exact).await, "1");
    });
}

#[test]
fn nowait_skip_locked_and_lock_timeout() {
    scene(|[mut holder, mut other, _, _]| async move {
        holder.value("BEGIN; UPDATE t SET v = 1 WHERE id = 1").await;
        assert_eq!(other.code("SELECT * FROM t WHERE id = 1 FOR UPDATE NOWAIT").await, "55P03");
        let free = other.run("SELECT id FROM t ORDER BY id FOR UPDATE SKIP LOCKED").await.expect("rows");
        assert_eq!(free, ["2", "3", "4"]);
        other.value("SET lock_timeout = 70").await;
        let began_ns = now_ns();
        assert_eq!(other.code("UPDATE t SET v = 2 WHERE id = 1").await, "55P03");
        let waited_ms = (now_ns() - began_ns) / MS;
        assert!((70..80).contains(&waited_ms), "{waited_ms} ms");
        assert_eq!(other.code("LOCK TABLE t IN SHARE MODE NOWAIT").await, "25P01");
        other.value("BEGIN").await;
        assert_eq!(other.code("LOCK TABLE t IN SHARE MODE NOWAIT").await, "55P03");
        other.value("ROLLBACK").await;
        holder.value("COMMIT").await;
    });
}

#[test]
fn advisory_locks_of_sessions_and_transactions() {
    scene(|[mut a, mut b, _, _]| async move {
        // One 64-bit key, two 32-bit keys: two spaces. Shared and exclusive. As often as taken.
        assert_eq!(a.value("SELECT pg_try_advisory_lock(5)").await, "t");
        assert_eq!(a.value("SELECT pg_try_advisory_lock(5)").await, "t");
        assert_eq!(b.value("SELECT pg_try_advisory_lock(5)").await, "f");
        assert_eq!(b.value("SELECT pg_try_advisory_lock(0, 5)").await, "t");
        assert_eq!(a.value("SELECT pg_advisory_unlock(5)").await, "t");
        assert_eq!(b.value("SELECT pg_try_advisory_lock_shared(5)").await, "f");
        assert_eq!(a.value("SELECT pg_advisory_unlock(5)").await, "t");
        assert_eq!(a.value("SELECT pg_advisory_unlock(5)").await, "f");
        assert_eq!(b.value("SELECT pg_try_advisory_lock_shared(5)").await, "t");
        assert_eq!(a.value("SELECT pg_try_advisory_lock_shared(5)").await, "t");
        assert_eq!(a.value("SELECT pg_try_advisory_xact_lock(5)").await, "f");
        a.value("SELECT pg_advisory_unlock_all()").await;
        b.value("SELECT pg_advisory_unlock_all()").await;
        // Of a transaction: gone with its end, kept over the rollback to a savepoint before it only if taken before.
        a.value("BEGIN; SELECT pg_advisory_xact_lock(6); SAVEPOINT s; SELECT pg_advisory_xact_lock(7); ROLLBACK TO s")
            .await;
        assert_eq!(b.value("SELECT pg_try_advisory_xact_lock(6)").await, "f");
        assert_eq!(b.value("SELECT pg_try_advisory_xact_lock(7)").await, "t");
        a.value("COMMIT").await;
        assert_eq!(b.value("SELECT pg_try_advisory_xact_lock(6)").await, "t");
    });
}

/// Keeps the notices, with the time of each.
#[derive(Clone, Default)]
struct NoticeLog(Arc<std::sync::Mutex<Vec<(u64, String)>>>);

impl Client for NoticeLog {
    fn row(&mut self, _: usize, _: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {}

    fn notice_now(&mut self, severity: &'static str, message: &SqlError) {
        let detail = message.fields().detail.clone().unwrap_or_default();
        let line = format!("{severity}: {}; {detail}", message.message());
        self.0.lock().expect("no panic").push((now_ns(), line));
    }
}

#[test]
fn ddl_says_every_ten_seconds_who_holds_it_up_and_stops_nobody_for_a_quarter_of_an_hour() {
    scene(|[mut long, mut ddl, mut writer, _]| async move {
        long.value("BEGIN; UPDATE t SET v = 1 WHERE id = 1").await;
        long.value("SELECT 'the last statement'").await;
        let began_ns = now_ns();
        let (told, long_pid) = (NoticeLog::default(), long.backend.pid);
        let mut client = told.clone();
        let altered =
            testkit::spawn(
                "ddl",
                async move { ddl.session.simple("ALTER TABLE t ADD COLUMN more int", &mut client).await },
            );
        let mut longest_ns = 0;
        while now_ns() - began_ns < 900_000 * MS {
            ms(997).await;
            let came_ns = now_ns();
            writer.value("UPDATE t SET v = 1 WHERE id = 2").await;
            longest_ns = longest_ns.max(now_ns() - came_ns);
        }
        // One window of 50 ms, and reads of pages; a second window would be over 150.
        assert!(longest_ns < 150 * MS, "a writer waited {longest_ns} ns");
        long.value("COMMIT").await;
        altered.await.expect("altered");
        let told = told.0.lock().expect("no panic").clone();
        assert!((89..=91).contains(&told.len()), "told {} times in 900 s", told.len());
        assert!((10_000 * MS..10_100 * MS).contains(&(told[0].0 - began_ns)));
        let wanted = format!(
            "NOTICE: still waiting for AccessExclusiveLock on relation \"t\" after 10 s; Process {long_pid} holds RowExclusiveLock on relation \
             \"t\", taken by: UPDATE t SET v = 1 WHERE id = 1"
        );
        assert!(told[0].1.starts_with(&wanted), "{}", told[0].1);
    });
}

#[test]
fn a_window_of_zero_holds_nobody_back() {
    scene(|[mut long, mut ddl, mut writer, _]| async move {
        ddl.value("SET ddl_block_window = 0").await;
        long.value("BEGIN; UPDATE t SET v = 1 WHERE id = 1").await;
        let ddl = start(ddl, "ALTER TABLE t ADD COLUMN more int");
        // The cache holds a part of the pages, and a read of this disk takes up to 50 ms.
        let reads_ms = "SELECT coalesce(sum(total_ms), 0) FROM clearway_waits WHERE wait_event = 'DataFileRead'";
        for _ in 0..300 {
            ms(7).await;
            let before_ms: f64 = writer.value(reads_ms).await.parse().expect("a number");
            let came_ns = now_ns();
            writer.value("SELECT v FROM t WHERE id = 2").await;
            let took_ms = (now_ns() - came_ns) as f64 / 1e6;
            let after_ms: f64 = writer.value(reads_ms).await.parse().expect("a number");
            assert!(took_ms - (after_ms - before_ms) < 1.0, "a reader waited {took_ms} ms");
        }
        long.value("COMMIT").await;
        ddl.await.1.expect("altered");
    });
}

#[test]
fn what_ends_a_wait_names_the_blocker_and_the_statement_that_took_the_lock() {
    scene(|[mut holder, mut waiter, canceller, _]| async move {
        let holder_pid = holder.backend.pid;
        let detail = |error: &SqlError| error.fields().detail.clone().unwrap_or_default();
        holder.value("BEGIN; UPDATE t SET v = 1 WHERE id = 1").await;
        holder.value("SELECT 'the last statement'").await;
        let taken = "taken by: UPDATE t SET v = 1 WHERE id = 1";
        let row = format!("Process {holder_pid} holds For No Key Update on a row of \"t\", {taken}");
        let table = format!("Process {holder_pid} holds RowExclusiveLock on relation \"t\", {taken}");
        waiter.value("SET lock_timeout = 50").await;
        let late = waiter.run("UPDATE t SET v = 2 WHERE id = 1").await.expect_err("locked");
        assert_eq!((late.code(), detail(&late).as_str()), ("55P03", row.as_str()));
        let late = waiter.run("LOCK TABLE t IN SHARE MODE").await.expect_err("no block");
        assert_eq!(late.code(), "25P01");
        let late = waiter.run("BEGIN; LOCK TABLE t IN SHARE MODE").await.expect_err("locked");
        assert_eq!((late.code(), detail(&late).as_str()), ("55P03", table.as_str()));
        waiter.value("ROLLBACK").await;
        let late = waiter.run("ALTER TABLE t ADD COLUMN more int").await.expect_err("locked");
        assert_eq!((late.code(), detail(&late).as_str()), ("55P03", table.as_str()));
        let refused = waiter.run("SELECT * FROM t WHERE id = 1 FOR UPDATE NOWAIT").await.expect_err("locked");
        assert_eq!((refused.code(), detail(&refused).as_str()), ("55P03", row.as_str()));
        let refused = waiter.run("BEGIN; LOCK TABLE t IN SHARE MODE NOWAIT").await.expect_err("locked");
        assert_eq!((refused.code(), detail(&refused).as_str()), ("55P03", table.as_str()));
        waiter.value("ROLLBACK; SET lock_timeout = 0").await;
        let backend = waiter.backend.clone();
        let waiting = start(waiter, "DELETE FROM t WHERE id = 1");
        ms(20).await;
        backend.interrupt.raise(clearway_sql::session::Reason::Cancel);
        let (mut waiter, cancelled, _) = waiting.await;
        let cancelled = cancelled.expect_err("cancelled");
        assert_eq!((cancelled.code(), detail(&cancelled).as_str()), ("57014", row.as_str()));
        // Behind another waiter, too, the holder comes first.
        let ahead = start(canceller, "UPDATE t SET v = 3 WHERE id = 1");
        ms(20).await;
        waiter.value("SET lock_timeout = 50").await;
        let late = waiter.run("UPDATE t SET v = 2 WHERE id = 1").await.expect_err("locked");
        let (first, second) =
            detail(&late).split_once('\n').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap_or_default();
        assert_eq!((late.code(), first.as_str()), ("55P03", row.as_str()));
        assert!(second.ends_with("stands ahead in the queue for a row of \"t\"."), "{second}");
        waiter.value("SET lock_timeout = 0").await;
        // OBS-1: no role reads another role's statement.
        waiter.value("CREATE ROLE guest LOGIN; GRANT SELECT, UPDATE ON t TO guest; SET ROLE guest").await;
        let refused = waiter.run("SELECT * FROM t WHERE id = 1 FOR UPDATE NOWAIT").await.expect_err("locked");
        assert_eq!(detail(&refused), format!("Process {holder_pid} holds For No Key Update on a row of \"t\"."));
        waiter.value("RESET ROLE").await;
        holder.value("COMMIT").await;
        ahead.await.1.expect("updated");
        drop(waiter);
    });
}

#[test]
fn pg_locks_shows_what_postgresql_shows_of_indexes_ids_and_the_session_itself() {
    scene(|[mut first, second, third, mut viewer]| async move {
        let own = "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()";
        assert_eq!(viewer.value(own).await, "2", "its virtual id, and the view");
        let count = |pid: i32, what: &str| format!("SELECT count(*) FROM pg_locks WHERE pid = {pid} AND {what}");
        first.value("BEGIN; SELECT 1").await;
        first.backend.runs("SELECT 1".into());
        let virtual_id = count(first.backend.pid, "locktype = 'virtualxid' AND mode = 'ExclusiveLock' AND fastpath");
        assert_eq!(viewer.value(&virtual_id).await, "1", "a transaction without a lock");
        first.value("CREATE INDEX tv ON t (v)").await;
        let made = count(first.backend.pid, "locktype = 'relation' AND mode = 'AccessExclusiveLock'");
        assert_eq!(viewer.value(&made).await, "1", "the new index");
        first.value("COMMIT; BEGIN; ANALYZE t").await;
        let id = count(first.backend.pid, "locktype = 'transactionid' AND mode = 'ExclusiveLock' AND NOT fastpath");
        assert_eq!(viewer.value(&id).await, "1", "of ANALYZE");
        let indexes = count(first.backend.pid, "relation = 'tv'::regclass AND mode = 'AccessShareLock'");
        assert_eq!(viewer.value(&indexes).await, "1");
        first.value("COMMIT; BEGIN; REINDEX TABLE t").await;
        assert_eq!(viewer.value(&id).await, "1", "of REINDEX");
        first.value("COMMIT; BEGIN; SELECT * FROM t WHERE id = 1 FOR UPDATE").await;
        // Two sharers do not conflict: each has the tuple and waits for the holder; a session that wants more waits for the tuple.
        let pids = [second.backend.pid, third.backend.pid, viewer.backend.pid, first.backend.pid];
        let second = start(second, "SELECT * FROM t WHERE id = 1 FOR SHARE");
        ms(40).await;
        let third = start(third, "SELECT * FROM t WHERE id = 1 FOR SHARE");
        ms(40).await;
        let tuple = |pid: i32| count(pid, "locktype = 'tuple' AND granted");
        let wait = |pid: i32| {
            count(
                pid,
                "locktype = 'transactionid' AND NOT granted AND waitstart < now() AND waitstart > now() - '1s'::interval",
            )
        };
        for pid in &pids[..2] {
            assert_eq!(viewer.value(&tuple(*pid)).await, "1");
            assert_eq!(viewer.value(&wait(*pid)).await, "1");
            assert_eq!(viewer.value(&format!("SELECT pg_blocking_pids({pid})")).await, format!("{{{}}}", pids[3]));
        }
        first.value("COMMIT").await;
        second.await.1.expect("shared");
        third.await.1.expect("shared");
    });
}

#[test]
fn a_sequence_is_read_as_a_table_of_one_row() {
    scene(|[mut first, mut second, mut guest, _]| async move {
        let state = "SELECT s.last_value::text || ' ' || log_cnt::text || ' ' || is_called::text FROM s";
        first.value("CREATE SEQUENCE s START 5").await;
        assert_eq!(first.value(state).await, "5 0 false");
        first.value("SELECT nextval('s')").await;
        assert_eq!(second.value(state).await, "5 31 true");
        first.value("SELECT nextval('s')").await;
        assert_eq!(second.value(state).await, "6 30 true");
        first.value("SELECT setval('s', 40, false)").await;
        assert_eq!(second.value("SELECT x.* FROM s AS x WHERE NOT is_called").await, "40");
        // As a table's, its lock is held to the end of the transaction.
        first.value("BEGIN; SELECT last_value FROM s").await;
        let dropped = start(second, "DROP SEQUENCE s");
        ms(20).await;
        assert_eq!(
            guest.value("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 's'::regclass").await,
            "1"
        );
        guest.value("CREATE ROLE guest; SET ROLE guest").await;
        assert_eq!(guest.code("SELECT last_value FROM s").await, "42501");
        guest.value("RESET ROLE").await;
        first.value("COMMIT").await;
        dropped.await.1.expect("dropped");
    });
}

/// RWT-1: a column of the type of a table's rows keeps the table until its transaction ends; RWT-2: the table gets a column when no
/// transaction writes such rows.
#[test]
fn columns_of_a_tables_rows_keep_the_table() {
    scene(|[mut maker, dropper, mut writer, adder]| async move {
        maker.value("BEGIN; CREATE TABLE holds (id int PRIMARY KEY, r t)").await;
        let dropper = start(dropper, "DROP TABLE t");
        ms(20).await;
        maker.value("COMMIT").await;
        let (_, ended, _) = dropper.await;
        assert_eq!(ended.map_err(|e| e.code()), Err("2BP01"), "the column came before");
        writer.value("BEGIN; INSERT INTO holds SELECT id, t FROM t").await;
        let adder = start(adder, "ALTER TABLE t ADD COLUMN more int");
        ms(20).await;
        maker.value("SELECT count(*) FROM holds").await;
        writer.value("UPDATE holds SET id = id + 10; COMMIT").await;
        let written_ns = now_ns();
        let (_, ended, added_ns) = adder.await;
        ended.expect("added");
        assert!(added_ns >= written_ns, "the writer came first");
        assert_eq!(writer.value("SELECT r FROM holds ORDER BY id LIMIT 1").await, "(1,0,)");
    });
}

/// DB-3: the rows stand in a tree that the snapshot sees as empty. PostgreSQL moves no rows for it, and reads them.
#[test]
fn a_snapshot_reads_no_table_as_empty_whose_key_has_changed() {
    scene(|[mut old, mut ddl, _, _]| async move {
        ddl.value("CREATE TABLE o (id int); INSERT INTO o VALUES (1)").await;
        let statements = [
            "SELECT * FROM t",
            "SELECT v FROM t WHERE id = 1",
            "UPDATE t SET v = 1 WHERE id = 1",
            "DELETE FROM t WHERE id = 1",
            "INSERT INTO o SELECT id FROM t",
            "MERGE INTO t USING o ON t.id = o.id WHEN NOT MATCHED THEN INSERT VALUES (o.id, 0)",
        ];
        for statement in statements {
            old.value("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM o").await;
            ddl.value("ALTER TABLE t DROP CONSTRAINT t_pkey").await;
            let refused = old.run(statement).await.expect_err(statement);
            assert_eq!(refused.code(), "40001", "{statement}");
            old.value("ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM o").await;
            ddl.value("ALTER TABLE t ADD CONSTRAINT t_pkey PRIMARY KEY (id)").await;
            let refused = old.run(statement).await.expect_err(statement);
            assert_eq!(refused.code(), "40001", "{statement}");
            old.value("ROLLBACK").await;
        }
        assert_eq!(old.value("SELECT count(*) FROM t").await, "4");
    });
}
