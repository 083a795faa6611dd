//! ADD COLUMN with a default: a volatile default is evaluated for each row, any other default once.

use crate::program::{scratch, start, stop};
use tokio_postgres::NoTls;

#[test]
fn a_volatile_default_is_evaluated_for_each_row() {
    let directory = scratch("add-column");
    let running = start(&directory);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let config = format!("host=127.0.0.1 port={} user=postgres dbname=postgres", running.port);
        let (client, connection) = tokio_postgres::connect(&config, NoTls).await.expect("connects");
        tokio::spawn(connection);
        let made =
            "create sequence s; create table t (id int primary key); insert into t select generate_series(1, 500)";
        client.batch_execute(made).await.expect("made");
        for (column, distinct) in [
            ("r float8 default random()", 500),
            ("n int not null default nextval('s')", 500),
            ("m text not null default md5(random()::text)", 500),
            ("o timestamptz default now()", 1),
            ("p int default 3 + 4", 1),
        ] {
            client.batch_execute(&format!("alter table t add column {column}")).await.expect(column);
            let name = column.split(' ').next().expect("a name");
            let count = format!("select count(distinct {name}) from t where {name} is not null");
            let counted = client.query_one(&count, &[]).await.expect("counted").get::<_, i64>(0);
            assert_eq!(counted, distinct, "{column}");
        }
    });
    stop(running);
    let _ = std::fs::remove_dir_all(&directory);
}
