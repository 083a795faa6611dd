//! Large objects between sessions and over crashes, in virtual time on a simulated disk. What one session sees of them: tests/psql/values.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::sim::{Connection, Values, connect, open, simulate};
use clearway_base::for_each_seed;
use clearway_base::sync::{Mutex, sleep};
use clearway_base::testkit::{self, JoinHandle, Rng, Sim, SimOptions, Stop};
use clearway_base::vfs::sim::SimDisk;
use clearway_sql::SqlError;
use clearway_sql::session::{Backends, FunctionCall};

/// Two sessions, and object 42 with the bytes 0 to 7.
fn scene<F: Future<Output = ()> + Send + 'static>(play: impl FnOnce([Connection; 2]) -> F + Send + 'static) {
    simulate(5, move || async move {
        let db = open(&SimDisk::new(5)).await;
        let backends = Arc::new(Backends::default());
        let mut first = connect(&db, &backends).await;
        first.value("SELECT lo_from_bytea(42, '\\x0001020304050607')").await;
        let second = connect(&db, &backends).await;
        testkit::spawn("play", play([first, second])).await;
        assert!(db.transactions().locks().locks().is_empty(), "a lock is left");
    });
}

/// A text that runs beside others.
struct Running {
    client: JoinHandle<(Connection, Result<Vec<String>, SqlError>)>,
    ended: Arc<AtomicBool>,
}

impl Running {
    /// It has not ended after a while: it waits for another session.
    async fn waits(&self, what: &str) {
        sleep(Duration::from_millis(50)).await;
        assert!(!self.ended.load(Ordering::Relaxed), "{what}");
    }
}

fn start(mut connection: Connection, sql: &'static str) -> Running {
    let ended = Arc::new(AtomicBool::new(false));
    let tell = ended.clone();
    let client = testkit::spawn("client", async move {
        let result = connection.run(sql).await;
        tell.store(true, Ordering::Relaxed);
        (connection, result)
    });
    Running { client, ended }
}

const ALL: &str = "SELECT lo_get(42)";

/// LOB-3: the second writer waits for the first one's page, and keeps what that has written.
#[test]
fn two_writers_of_one_page_keep_each_others_bytes() {
    for level in ["READ COMMITTED", "REPEATABLE READ"] {
        scene(move |[mut first, mut second]| async move {
            second.value(&format!("BEGIN ISOLATION LEVEL {level}; SELECT 1")).await;
            first.value("BEGIN; SELECT lo_put(42, 0, '\\xaaaa')").await;
            let waiting = start(second, "SELECT lo_put(42, 6, '\\xbbbb')");
            waiting.waits("it waits for the page").await;
            first.value("COMMIT").await;
            let (mut second, written) = waiting.client.await;
            written.expect("written");
            second.value("COMMIT").await;
            assert_eq!(first.value(ALL).await, "\\xaaaa02030405bbbb", "{level}");
        });
    }
}

/// LOB-2: the end of an object waits for its writers, and a writer waits for an end that may be taken back.
#[test]
fn an_object_does_not_go_while_it_is_written() {
    scene(|[mut first, second]| async move {
        first.value("BEGIN; SELECT lo_put(42, 5000, '\\xaa')").await;
        let ends = start(second, "SELECT lo_unlink(42)");
        ends.waits("it waits for the writer").await;
        first.value("COMMIT").await;
        let (mut second, ended) = ends.client.await;
        assert_eq!(ended.expect("unlinked"), ["1"]);
        assert_eq!(first.code(ALL).await, "42704");
        assert_eq!(second.value("SELECT count(*) FROM pg_largeobject").await, "0", "LOB-2: a page is left");
        first.value("SELECT lo_from_bytea(42, '\\x01')").await;
        second.value("BEGIN; SELECT lo_unlink(42)").await;
        let writes = start(first, "SELECT lo_put(42, 0, '\\xbb')");
        writes.waits("it waits for the end of the object").await;
        second.value("ROLLBACK").await;
        let (mut first, written) = writes.client.await;
        written.expect("written");
        second.value("BEGIN; SELECT lo_unlink(42)").await;
        first.value("BEGIN; SELECT lo_open(42, 131072)").await;
        let writes = start(first, "SELECT lowrite(0, '\\xcc')");
        sleep(Duration::from_millis(50)).await;
        second.value("COMMIT").await;
        let (mut first, written) = writes.client.await;
        assert_eq!(written.expect_err("it is gone").code(), "42704");
        first.value("ROLLBACK").await;
        assert_eq!(second.value("SELECT count(*) FROM pg_largeobject").await, "0", "LOB-2: a page is left");
    });
}

/// DSC-2: a descriptor for reading keeps its snapshot, whatever is committed and pruned meanwhile; one for writing reads what is newest.
#[test]
fn a_reader_keeps_its_snapshot_and_a_writer_reads_what_is_newest() {
    scene(|[mut first, mut second]| async move {
        first.value("BEGIN; SELECT lo_open(42, 262144), lo_open(42, 393216)").await;
        for round in 1..50 {
            second.value(&format!("SELECT lo_put(42, 0, decode('{round:02x}{}', 'hex'))", "ee".repeat(3000))).await;
        }
        second.value("SELECT lo_unlink(42)").await;
        assert_eq!(first.value("SELECT loread(0, 5000)").await, "\\x0001020304050607");
        assert_eq!(first.value("SELECT loread(1, 5000)").await, "\\x", "the newest is gone");
        first.value("COMMIT").await;
        assert_eq!(first.code("SELECT loread(0, 1)").await, "42704", "DSC-1");
    });
}

/// LOB-1: a transaction under repeatable read sees one state of all objects.
#[test]
fn a_transaction_under_repeatable_read_sees_one_state() {
    scene(|[mut first, mut second]| async move {
        first.value("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await;
        second.value("SELECT lo_put(42, 1, '\\xff'), lo_create(43)").await;
        assert_eq!(first.value(ALL).await, "\\x0001020304050607");
        assert_eq!(first.value("SELECT count(*) FROM pg_largeobject_metadata").await, "1");
        assert_eq!(first.code("SELECT lo_get(43)").await, "42704");
        first.value("ROLLBACK").await;
        assert_eq!(first.value(ALL).await, "\\x00ff020304050607");
    });
}

#[test]
fn two_sessions_that_create_one_number_agree() {
    scene(|[mut first, second]| async move {
        first.value("BEGIN; SELECT lo_create(7)").await;
        let waits = start(second, "SELECT lo_create(7)");
        waits.waits("it waits whether the number is free").await;
        first.value("COMMIT").await;
        let (mut second, created) = waits.client.await;
        assert_eq!(created.expect_err("it exists").code(), "23505");
        second.value("SELECT lo_unlink(7)").await;
    });
}

async fn call(
    client: &mut Connection,
    function: u32,
    formats: &[i16],
    values: &[Option<&[u8]>],
    result_format: i16,
) -> Result<Option<Vec<u8>>, String> {
    let call = FunctionCall { function, formats, values, result_format };
    client.session.function_call(&call, &mut Values::default()).await.map_err(|e| e.code().to_string())
}

/// The function call message: values in both forms, errors, and the transaction that it shares.
#[test]
fn a_function_is_called_by_its_number() {
    scene(|[mut first, _]| async move {
        // lo_get(oid): 3458.
        let oid = 42u32.to_be_bytes();
        assert_eq!(call(&mut first, 3458, &[1], &[Some(&oid)], 1).await, Ok(Some(vec![0, 1, 2, 3, 4, 5, 6, 7])));
        assert_eq!(call(&mut first, 3458, &[], &[Some(b"42")], 0).await, Ok(Some(b"\\x0001020304050607".to_vec())));
        assert_eq!(call(&mut first, 3458, &[], &[None], 0).await, Ok(None), "a strict function of NULL");
        // lo_open in a transaction of its own: 952.
        assert_eq!(
            call(&mut first, 952, &[0, 1], &[Some(b"42"), Some(&131_072i32.to_be_bytes())], 0).await,
            Ok(Some(b"0".to_vec()))
        );
        assert_eq!(
            call(&mut first, 953, &[], &[Some(b"0")], 0).await,
            Err("42704".to_owned()),
            "its transaction has ended"
        );
        assert_eq!(call(&mut first, 1, &[], &[], 0).await, Err("42883".to_owned()));
        assert_eq!(call(&mut first, 3458, &[], &[], 0).await, Err("08P01".to_owned()));
        assert_eq!(call(&mut first, 952, &[0, 0, 0], &[None, None], 0).await, Err("08P01".to_owned()));
        assert_eq!(call(&mut first, 3458, &[1], &[Some(&[1, 2])], 0).await, Err("22P03".to_owned()));
        // generate_series(integer, integer) gives rows: 1067; sum(bigint) is an aggregate: 2107.
        assert_eq!(call(&mut first, 1067, &[], &[Some(b"1"), Some(b"2")], 0).await, Err("0A000".to_owned()));
        assert_eq!(call(&mut first, 2107, &[], &[Some(b"1")], 0).await, Err("0A000".to_owned()));
        first.value("BEGIN").await;
        first.code("SELECT 1 / 0").await;
        assert_eq!(call(&mut first, 3458, &[], &[Some(b"42")], 0).await, Err("25P02".to_owned()));
        first.value("ROLLBACK").await;
    });
}

/// What a client was told: the last round that was acknowledged, and the one that was under way.
type Told = Arc<Mutex<(u64, u64)>>;

const ROUNDS: u64 = 12;
/// Three pages and a bit.
const BYTES: u64 = 6200;

/// Each round writes its number into every byte of the object; some replace the object by another one.
async fn rounds(disk: SimDisk, told: Told) {
    let db = open(&disk).await;
    let mut client = connect(&db, &Arc::new(Backends::default())).await;
    for round in 1..=ROUNDS {
        told.lock().1 = round;
        let first = round == 1;
        let put = format!("lo_put(42, 0, decode(repeat('{round:02x}', {BYTES}), 'hex'))");
        let sql = match (first, round % 4) {
            (true, _) => format!("SELECT lo_create(42); SELECT {put}"),
            (false, 0) => format!("BEGIN; SELECT lo_unlink(42); SELECT lo_create(42); SELECT {put}; COMMIT"),
            (false, 1) => format!(
                "BEGIN; SELECT lo_open(42, 131072); SELECT lo_truncate(0, 0); SAVEPOINT a; \
                 SELECT lowrite(0, '\\xffff'); ROLLBACK TO a; SELECT {put}; COMMIT"
            ),
            (false, _) => format!("SELECT {put}"),
        };
        client.value(&sql).await;
        told.lock().0 = round;
    }
    client.session.end().await;
    db.close().await.expect("closed");
}

/// The round whose bytes the object has; none: there is no object. Panics if it is not whole, or a page is left without an object.
async fn found(disk: SimDisk) -> Option<u64> {
    let db = open(&disk).await;
    let mut client = connect(&db, &Arc::new(Backends::default())).await;
    let objects = client.value("SELECT count(*) FROM pg_largeobject_metadata").await;
    let round = match objects.as_str() {
        "0" => {
            assert_eq!(
                client.value("SELECT count(*) FROM pg_largeobject").await,
                "0",
                "LOB-2: a page without an object"
            );
            None
        }
        _ => {
            let bytes = client.value(ALL).await;
            let byte = &bytes[2..4];
            assert_eq!(bytes, format!("\\x{}", byte.repeat(BYTES as usize)), "half of a round");
            Some(u64::from_str_radix(byte, 16).expect("a number"))
        }
    };
    client.session.end().await;
    db.close().await.expect("closed");
    round
}

#[test]
fn after_a_crash_an_object_has_the_bytes_of_one_round() {
    for_each_seed!(2, |seed| {
        let options = || SimOptions { steps_max: 20_000_000 };
        // Unoptimized futures of whole statements are large.
        let on_stage = |play: Box<dyn FnOnce() + Send>| {
            let stage = std::thread::Builder::new().stack_size(64 << 20);
            if let Err(panic) = stage.spawn(play).expect("a thread").join() {
                std::panic::resume_unwind(panic);
            }
        };
        on_stage(Box::new(move || {
            let whole = SimDisk::new(seed);
            let told = || Told::new(Mutex::new("test/told", (0, 0)));
            Sim::with_options(seed, options()).block_on(rounds(whole.clone(), told())).expect("the run ends");
            let (mut rng, mut caught) = (Rng::new(seed), 0);
            for _ in 0..12 {
                let (disk, told) = (SimDisk::new(seed), told());
                let point = rng.range(1..whole.points());
                disk.crash_at(point);
                let ended = Sim::with_options(seed, options()).block_on(rounds(disk.clone(), told.clone()));
                assert_eq!(ended.err(), Some(Stop::Crashed), "point {point}");
                let last = Sim::with_options(seed, options()).block_on(found(disk.restart()));
                let last = last.unwrap_or_else(|stop| panic!("after a crash at point {point}: {stop}")).unwrap_or(0);
                let (acknowledged, begun) = *told.lock();
                assert!(acknowledged <= last && last <= begun, "point {point}: {acknowledged}, {last}, {begun}");
                caught += u64::from(acknowledged > 0);
            }
            assert!(caught > 3, "{caught} crashes came after the first round: nothing was tried");
        }));
    });
}
