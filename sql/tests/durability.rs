//! Which sessions see a commit that was acknowledged before it was durable (`synchronous_commit = off`).

mod sim;

use std::sync::Arc;
use std::time::Duration;

use clearway_base::sync::sleep;
use clearway_base::vfs::sim::SimDisk;
use clearway_sql::session::Backends;
use sim::{connect, open, simulate};

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
