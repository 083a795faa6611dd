//! Changes of one row with entries in indexes, by the fast path: the rows are those of a model, and the indexes agree with them (TAB-1), also where a page of an
//! index has to be awaited and the change is undone and done again (HLF-1). In virtual time, with fewer frames than pages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::channel;

use crate::sim::{Connection, Tag, connect, open, simulate};
use clearway_base::testkit::{self, Rng};
use clearway_base::vfs::sim::SimDisk;
use clearway_engine::db::Db;
use clearway_engine::table::verify::verify;
use clearway_sql::session::{Backends, Bind};

const ROWS: i32 = 600;

/// The rows of a session: their numbers, and `k` and `s`.
type Model = BTreeMap<i32, (Option<i32>, String)>;

/// By Bind, Execute and Sync: the tag or SQLSTATE, and whether it was done at once.
async fn prepared(client: &mut Connection, name: &str, values: &[Option<String>]) -> (String, bool) {
    let session = &mut client.session;
    let values: Vec<Option<&[u8]>> = values.iter().map(|value| value.as_deref().map(str::as_bytes)).collect();
    session.bind("", name, Bind { formats: &[], values: &values, result_formats: &[] }).await.expect("it is bound");
    let mut tag = Tag::default();
    let at_once = session.try_execute("", &mut tag);
    let ran = if at_once { Ok(()) } else { session.execute("", 0, &mut tag).await };
    let ended = if session.try_sync() { Ok(()) } else { session.sync().await };
    session.before_send().await.expect("it is durable");
    (ran.and(ended).map_or_else(|error| error.code().to_owned(), |()| tag.0), at_once)
}

/// One change; what it should answer, and the model after it.
fn change(rng: &mut Rng, own: i32, model: &mut Model) -> (&'static str, Vec<Option<String>>, String) {
    let id = 2 * rng.below(ROWS as u64 / 2 + 100) as i32 + own;
    let k = (rng.below(9) > 0).then(|| rng.below(5000) as i32);
    let s = format!("{}-{}", ["a", "bb", "ccc"][rng.below(3) as usize], rng.below(700));
    let count = usize::from(model.contains_key(&id));
    let (id_text, k_text) = (Some(id.to_string()), k.map(|k| k.to_string()));
    match rng.below(5) {
        0 if count > 0 => ("insert", vec![id_text, k_text, Some(s)], "23505".to_owned()),
        0 | 1 if count == 0 => {
            model.insert(id, (k, s.clone()));
            ("insert", vec![id_text, k_text, Some(s)], "INSERT 0 1".to_owned())
        }
        0 | 1 => {
            model.remove(&id);
            ("delete", vec![id_text], "DELETE 1".to_owned())
        }
        2 => {
            model.entry(id).and_modify(|row| row.0 = k);
            ("update_k", vec![id_text, k_text], format!("UPDATE {count}"))
        }
        3 => {
            model.entry(id).and_modify(|row| row.1.clone_from(&s));
            ("update_s", vec![id_text, Some(s)], format!("UPDATE {count}"))
        }
        _ => {
            model.entry(id).and_modify(|row| row.0 = row.0.map(|k| k + 1));
            ("add", vec![id_text], format!("UPDATE {count}"))
        }
    }
}

/// Changes rows with even or odd numbers; the model, and how many changes were done at once.
async fn work(mut client: Connection, seed: u64, own: i32, mut model: Model) -> (Connection, Model, usize) {
    let mut rng = Rng::new(seed);
    for (name, text) in [
        ("insert", "INSERT INTO t VALUES ($1, $2, $3)"),
        ("delete", "DELETE FROM t WHERE id = $1"),
        ("update_k", "UPDATE t SET k = $2 WHERE id = $1"),
        ("update_s", "UPDATE t SET s = $2 WHERE id = $1"),
        ("add", "UPDATE t SET k = k + 1 WHERE id = $1"),
    ] {
        client.session.parse(name, text, &[]).await.expect("it parses");
    }
    let (mut before, mut at_once) = (None, 0);
    for _ in 0..300 {
        if rng.below(8) == 0 {
            let end = if rng.below(2) == 0 { "COMMIT" } else { "ROLLBACK" };
            client.value(if before.is_none() { "BEGIN" } else { end }).await;
            model = match before.take() {
                None => {
                    before = Some(model.clone());
                    model
                }
                Some(before) => {
                    if end == "ROLLBACK" {
                        before
                    } else {
                        model
                    }
                }
            };
        }
        let old = model.clone();
        let (name, values, expected) = change(&mut rng, own, &mut model);
        let (answer, done) = prepared(&mut client, name, &values).await;
        assert_eq!(answer, expected, "SHT-1: {name} {values:?}, seed {seed}");
        at_once += usize::from(done);
        if expected == "23505" {
            model = before.take().map_or(old, |before| before);
            client.value("ROLLBACK").await;
        }
    }
    client.value("COMMIT").await;
    (client, model, at_once)
}

async fn agrees(db: &Arc<Db>, reader: &mut Connection, model: &Model, seed: u64) {
    let rows =
        reader.run("SELECT id || ':' || coalesce(k::text, '-') || ':' || s FROM t ORDER BY id").await.expect("rows");
    let text = |(id, (k, s)): (&i32, &(Option<i32>, String))| {
        format!("{id}:{}:{s}", k.map_or_else(|| "-".to_owned(), |k| k.to_string()))
    };
    assert_eq!(rows, model.iter().map(text).collect::<Vec<_>>(), "seed {seed}");
    let oid = reader.value("SELECT 't'::regclass::oid").await.parse().expect("a number");
    let found = verify(db.transactions(), &db.catalog(), oid).await.expect("it is compared");
    assert_eq!(found, [], "TAB-1, seed {seed}");
}

fn scene(seed: u64) -> usize {
    let (told, count) = channel();
    simulate(seed, move || async move {
        let db = open(&SimDisk::new(seed)).await;
        let backends = Arc::new(Backends::default());
        let mut reader = connect(&db, &backends).await;
        for sql in [
            format!("CREATE TABLE t (id int PRIMARY KEY, k int, s text, pad text DEFAULT '{}')", "p".repeat(200)),
            format!("INSERT INTO t SELECT g, g * 7 % 5000, 'a-' || g % 700 FROM generate_series(0, {}) g", ROWS - 1),
            "CREATE INDEX ON t (k)".to_owned(),
            "CREATE INDEX ON t (s DESC, k)".to_owned(),
        ] {
            reader.value(&sql).await;
        }
        let all = |own: i32| -> Model {
            (0..ROWS).filter(|g| g % 2 == own).map(|g| (g, (Some(g * 7 % 5000), format!("a-{}", g % 700)))).collect()
        };
        let (one, other) = (connect(&db, &backends).await, connect(&db, &backends).await);
        let beside = testkit::spawn("beside", work(other, seed + 1000, 1, all(1)));
        let (_one, mut model, at_once) = work(one, seed, 0, all(0)).await;
        let (_other, theirs, too) = beside.await;
        model.extend(theirs);
        agrees(&db, &mut reader, &model, seed).await;
        told.send(at_once + too).expect("the test listens");
    });
    count.recv().expect("the scene has told")
}

#[test]
fn changes_of_rows_with_entries_are_those_of_a_model() {
    let at_once: Vec<usize> = (1..=4).map(scene).collect();
    assert!(
        at_once.iter().all(|count| (30..570).contains(count)),
        "some wait for a page, and some do not: {at_once:?}"
    );
}
