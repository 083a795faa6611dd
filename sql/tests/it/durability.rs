//! Which sessions see a commit that was acknowledged before it was durable (`synchronous_commit = off`).

use std::sync::Arc;
use std::time::Duration;

use crate::sim::{Values, connect, open, simulate};
use clearway_base::sync::sleep;
use clearway_base::vfs::sim::SimDisk;
use clearway_sql::session::{Backends, Bind, Session};

/// A row is written and at once counted: by the writer, by a session of the same policy, and by one of each other policy.
fn policies(seed: u64) {
    simulate(seed, move || async move {
        let db = open(&SimDisk::new(seed)).await;
        let backends = Arc::new(Backends::default());
        let mut setup = connect(&db, &backends).await;
        setup.value("CREATE TABLE t (id int PRIMARY KEY)").await;
        let mut written = 0;
        for policy in ["off", "local", "on"] {
            let mut writer = connect(&db, &backends).await;
            writer.value(&format!("SET synchronous_commit = {policy}")).await;
            for reads in ["off", "local", "on"] {
                let mut reader = connect(&db, &backends).await;
                reader.value(&format!("SET synchronous_commit = {reads}")).await;
                for _ in 0..20 {
                    written += 1;
                    writer.value(&format!("INSERT INTO t VALUES ({written})")).await;
                    let seen = reader.value("SELECT count(*) FROM t").await;
                    let story = format!("{seen} of {written}: written under {policy}, read under {reads}");
                    match (policy, reads) {
                        ("off", "local" | "on") => {
                            // Only the upkeep asks for a flush, every tenth of a second or a little later.
                            sleep(Duration::from_millis(300)).await;
                            let seen = reader.value("SELECT count(*) FROM t").await;
                            assert_eq!(seen, written.to_string(), "a flush later: {story}");
                        }
                        _ => assert_eq!(seen, written.to_string(), "{story}"),
                    }
                }
            }
        }
    });
}

#[test]
fn a_session_sees_what_its_own_policy_calls_committed() {
    clearway_base::for_each_seed!(3, policies);
}

/// Runs a prepared look-up on the fast path.
fn look_up(session: &mut Session, id: &str) -> Vec<String> {
    let bind = Bind { formats: &[], values: &[Some(id.as_bytes())], result_formats: &[] };
    let mut values = Values::default();
    assert!(session.try_bind("", "get", &bind) && session.try_execute("", &mut values), "on the fast path");
    values.0
}

/// SES-4: what the session knows of the end of its last transaction says nothing of the next one. In a block it sees a commit that is not
/// durable yet, and its answer stays until it is.
fn replies(seed: u64) {
    simulate(seed, move || async move {
        let db = open(&SimDisk::new(seed)).await;
        let backends = Arc::new(Backends::default());
        let mut writer = connect(&db, &backends).await;
        writer.value("CREATE TABLE t (id int PRIMARY KEY, v int)").await;
        writer.value("INSERT INTO t VALUES (1, 10)").await;
        writer.value("SET synchronous_commit = off").await;
        let mut reader = connect(&db, &backends).await;
        reader.value("SELECT v FROM t WHERE id = 1").await;
        reader.session.parse("get", "SELECT v FROM t WHERE id = $1", &[]).await.expect("it is prepared");
        for n in 2..6 {
            assert_eq!(look_up(&mut reader.session, "1"), ["10"]);
            assert!(reader.session.try_sync() && reader.session.may_send(), "all of it is durable");
            let bind = Bind { formats: &[], values: &[Some(b"1")], result_formats: &[] };
            let mut values = Values::default();
            assert!(reader.session.try_read("get", &bind, &mut values) && reader.session.may_send());
            assert_eq!(values.0, ["10"]);
            reader.value("BEGIN").await;
            writer.value(&format!("INSERT INTO t VALUES ({n}, {n})")).await;
            assert_eq!(look_up(&mut reader.session, &n.to_string()), [n.to_string()]);
            assert!(reader.session.try_sync() && !reader.session.may_send(), "the row is not durable");
            reader.session.before_send().await.expect("the log is sound");
            assert!(reader.session.may_send());
            reader.value("COMMIT").await;
        }
    });
}

/// LONE-4: a read that is a transaction of its own sees at once what another session of the policy `off` has acknowledged, and its answer stays until
/// that is durable, although the answer before it could leave.
fn alone(seed: u64) {
    simulate(seed, move || async move {
        let db = open(&SimDisk::new(seed)).await;
        let backends = Arc::new(Backends::default());
        let (mut writer, mut reader) = (connect(&db, &backends).await, connect(&db, &backends).await);
        writer.value("CREATE TABLE t (id int PRIMARY KEY, v int)").await;
        writer.value("INSERT INTO t VALUES (1, 10)").await;
        for session in [&mut writer, &mut reader] {
            session.value("SET synchronous_commit = off").await;
        }
        reader.session.parse("get", "SELECT v FROM t WHERE id = $1", &[]).await.expect("it is prepared");
        let mut read = async |expected: &str, is_durable: bool| {
            let bind = Bind { formats: &[], values: &[Some(b"1")], result_formats: &[] };
            let mut values = Values::default();
            assert!(reader.session.try_read("get", &bind, &mut values));
            assert_eq!((values.0, reader.session.may_send()), (vec![expected.to_owned()], is_durable));
            reader.session.before_send().await.expect("the log is sound");
            assert!(reader.session.may_send());
            // What the end of an ordinary transaction says of its replies holds for them alone.
            assert_eq!(look_up(&mut reader.session, "1"), [expected]);
            assert!(reader.session.try_sync() && reader.session.may_send());
        };
        read("10", true).await;
        for v in 11..14 {
            writer.value(&format!("UPDATE t SET v = {v} WHERE id = 1")).await;
            read(&v.to_string(), false).await;
            read(&v.to_string(), true).await;
        }
    });
}

#[test]
fn an_answer_of_a_read_alone_waits_for_what_it_has_seen() {
    clearway_base::for_each_seed!(3, alone);
}

#[test]
fn an_answer_waits_for_what_the_transaction_has_seen() {
    clearway_base::for_each_seed!(3, replies);
}
