//! COPY through the real program: its output can be read back, here and in PostgreSQL; a COPY is one statement, streams, and takes time
//! linear in a line's length.
//!
//! With CLEARWAY_POSTGRES=host:port the same streams go through a PostgreSQL, both ways.

use crate::program::{Running, scratch, start_with, stop};
use futures_util::{SinkExt as _, StreamExt as _};
use std::io::Cursor;
use std::pin::pin;
use tokio_postgres::{Client, NoTls};

async fn connect(host: &str, port: u16, database: &str) -> Client {
    let config = format!("host={host} port={port} user=postgres dbname={database}");
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.expect("connects");
    tokio::spawn(connection);
    client
}

fn with_server(name: &str, arguments: &[&str], test: impl AsyncFnOnce(&Running, Client)) {
    let directory = scratch(name);
    let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
    let running = start_with(&directory, &arguments);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { test(&running, connect("127.0.0.1", running.port, "postgres").await).await });
    stop(running);
    let _ = std::fs::remove_dir_all(&directory);
}

async fn copy_out(client: &Client, sql: &str) -> Vec<u8> {
    let mut stream = pin!(client.copy_out(sql).await.expect(sql));
    let mut all = Vec::new();
    while let Some(part) = stream.next().await {
        all.extend_from_slice(&part.expect(sql));
    }
    all
}

/// In pieces of that many bytes.
async fn copy_in(client: &Client, sql: &str, data: &[u8], piece: usize) -> Result<u64, tokio_postgres::Error> {
    let mut sink = pin!(client.copy_in::<_, Cursor<Vec<u8>>>(sql).await?);
    for part in data.chunks(piece.max(1)) {
        if sink.feed(Cursor::new(part.to_vec())).await.is_err() {
            break;
        }
    }
    sink.finish().await
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n
    }

    fn text(&mut self) -> String {
        const PARTS: &[&str] = &[
            "a", "\\", "\\.", "\\N", "\n", "\r", "\t", "\"", "'", ",", "|", ";", "\u{8}", "\u{b}", "\u{c}", "ä", "€",
            " ", "NULL", "0",
        ];
        (0..self.below(6)).map(|_| PARTS[self.below(PARTS.len() as u64) as usize]).collect()
    }
}

const OPTIONS: &[&str] = &[
    "format text",
    "format text, delimiter '|'",
    "format text, delimiter E'\\b', null 'NOTHING'",
    "format text, header true, delimiter ';'",
    "format csv",
    "format csv, header true",
    "format csv, delimiter '|', quote '''', escape '\\'",
    "format csv, delimiter E'\\t', null '\\N', escape '\\'",
    "format csv, quote ';', null 'NULL'",
    "format binary",
];

const TABLE: &str = "create table t (id int primary key, a text, b varchar(40), c bytea, d numeric, e float8, f bool, g timestamptz, h date, i int[], j interval)";

fn insert(random: &mut Random, id: u64) -> String {
    let mut maybe = |value: String| if random.below(4) == 0 { "null".to_owned() } else { value };
    let number = id as f64 / 7.0;
    let tail = [
        maybe(format!("'\\x00{:04x}ff5c'::bytea", id)),
        maybe(format!("{number:.3}")),
        maybe(format!("{number}")),
        maybe((id % 2 == 0).to_string()),
        maybe(format!("timestamptz '2024-02-29 12:00:00.123456+00' + {id} * interval '1 day'")),
        maybe(format!("date '2000-01-01' + {id}")),
        maybe(format!("array[{id}, null, -1]")),
        maybe(format!("{id} * interval '1 month 1 second'")),
    ];
    let text = |random: &mut Random| {
        if random.below(6) == 0 { "null".to_owned() } else { format!("'{}'", random.text().replace('\'', "''")) }
    };
    format!("insert into t values ({id}, {}, {}, {})", text(random), text(random), tail.join(", "))
}

#[test]
fn what_it_writes_reads_back_in_every_form() {
    with_server("copy-round-trip", &[], async |_, ours| {
        let theirs = match std::env::var("CLEARWAY_POSTGRES").ok().as_deref().and_then(|at| at.split_once(':')) {
            None => None,
            Some((host, port)) => Some(connect(host, port.parse().expect("a port"), "postgres").await),
        };
        let tables = format!("{TABLE}; create table back (like_t int); drop table back");
        ours.batch_execute(&tables).await.expect("made");
        ours.batch_execute(&TABLE.replacen(" t ", " back ", 1)).await.expect("made");
        if let Some(theirs) = &theirs {
            theirs.batch_execute(&TABLE.replacen("table t ", "temp table t ", 1)).await.expect("made");
        }
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for id in 0..300 {
            ours.batch_execute(&insert(&mut random, id)).await.expect("inserted");
        }
        let shown = "select count(*), md5(string_agg(md5(row_text), '')) from (select concat_ws('~', id, coalesce(a, '<>'), coalesce(b, '<>'), c, d, e, f, g, h, array_to_string(i, '/', 'n'), j) as row_text from TABLE order by id) r"
            .replace("array_to_string(i, '/', 'n')", "i");
        let sum = async |client: &Client, table: &str| {
            let row = client.query_one(&shown.replace("TABLE", table), &[]).await.expect("summed");
            (row.get::<_, i64>(0), row.get::<_, String>(1))
        };
        let whole = sum(&ours, "t").await;
        for options in OPTIONS {
            let written = copy_out(&ours, &format!("copy t to stdout ({options})")).await;
            for piece in [1 << 20, 1 + random.below(40) as usize] {
                ours.batch_execute("truncate back").await.expect("emptied");
                let count = copy_in(&ours, &format!("copy back from stdin ({options})"), &written, piece).await;
                assert_eq!(count.map_err(|e| format!("{options}: {e:?}")), Ok(300));
                assert_eq!(sum(&ours, "back").await, whole, "CPY-2: {options}, {piece} bytes a piece");
            }
            let Some(theirs) = &theirs else { continue };
            theirs.batch_execute("truncate t").await.expect("emptied");
            copy_in(theirs, &format!("copy t from stdin ({options})"), &written, 4096).await.expect(options);
            let rewritten = copy_out(theirs, &format!("copy t to stdout ({options})")).await;
            assert!(rewritten == written, "PostgreSQL writes the same: {options}");
        }
    });
}

#[test]
fn a_copy_is_one_statement_and_its_errors_name_the_line() {
    with_server("copy-statement", &[], async |running, client| {
        client.batch_execute("create table t (id int primary key, v text default 'd' || 'e')").await.expect("made");
        let other = connect("127.0.0.1", running.port, "postgres").await;
        // Nothing of a copy is seen before it ends, nothing of one that fails stays.
        {
            let mut sink = pin!(
                client.copy_in::<_, Cursor<Vec<u8>>>("copy t (id) from stdin where id % 2 = 0").await.expect("begins")
            );
            let lines: String = (0..5000).map(|n| format!("{n}\n")).collect();
            sink.send(Cursor::new(lines.into_bytes())).await.expect("sent");
            let count = other.query_one("select count(*) from t", &[]).await.expect("counted");
            assert_eq!(count.get::<_, i64>(0), 0, "CPY-4");
            assert_eq!(sink.finish().await.expect("ends"), 2500);
        }
        let failed =
            copy_in(&client, "copy t from stdin", b"5001\tx\n5003\ty\n2\tz\n", 7).await.expect_err("a duplicate");
        let error = failed.as_db_error().expect("of the server");
        assert_eq!((error.code().code(), error.where_()), ("23505", Some("COPY t, line 3")));
        let failed = copy_in(&client, "copy t from stdin csv", b"7001,x\nno,y\n", 100).await.expect_err("no number");
        let error = failed.as_db_error().expect("of the server");
        assert_eq!((error.code().code(), error.where_()), ("22P02", Some("COPY t, line 2, column id: \"no\"")));
        let row = other.query_one("select count(*), min(v) from t", &[]).await.expect("counted");
        assert_eq!((row.get::<_, i64>(0), row.get::<_, &str>(1)), (2500, "de"));
    });
}

#[test]
fn long_lines_cost_no_more_than_many_and_memory_does_not_grow_with_the_table() {
    let small = ["-c", "statement_memory=20MB", "-c", "cache_size=32MB"];
    with_server("copy-memory", &small, async |_, client| {
        client.batch_execute("create table t (v text); create table u (v text)").await.expect("made");
        // A line of 4 MB in pieces of 4 kB: each byte is passed once, or this takes minutes.
        let line = [vec![b'x'; 4 << 20], b"\n".to_vec()].concat();
        assert_eq!(copy_in(&client, "copy t from stdin", &line, 4096).await.expect("fits"), 1);
        client.batch_execute("truncate t").await.expect("emptied");
        // Thirty megabytes through an account of twenty.
        let lines = "0123456789".repeat(100) + "\n";
        let mut sink = pin!(client.copy_in::<_, Cursor<Vec<u8>>>("copy t from stdin").await.expect("begins"));
        for _ in 0..30_000 {
            sink.feed(Cursor::new(lines.clone().into_bytes())).await.expect("sent");
        }
        assert_eq!(sink.finish().await.expect("ends"), 30_000);
        let mut stream = pin!(client.copy_out("copy t to stdout").await.expect("begins"));
        let mut bytes = 0;
        while let Some(part) = stream.next().await {
            bytes += part.expect("a part").len();
        }
        assert_eq!(bytes, 30_000 * lines.len(), "CPY-5");
        client
            .batch_execute("create table c as select * from t; insert into u select * from t")
            .await
            .expect("stream, too");
        client
            .batch_execute("create materialized view m as select * from t; refresh materialized view m")
            .await
            .expect("as well");
        let plan = client.query("explain analyze select * from t", &[]).await.expect("and this");
        let ran = "rows=30000 loops=1)";
        assert!(plan.iter().any(|row| row.get::<_, &str>(0).ends_with(ran)));
        let refused =
            copy_in(&client, "copy t from stdin", &vec![b'x'; 32 << 20], 1 << 20).await.expect_err("one line of 32 MB");
        assert_eq!(refused.code().map(|c| c.code()), Some("53200"), "CPY-3: {refused:?}");
    });
}

/// A value for a column, mostly one that needs no conversion.
fn cell(random: &mut Random, column: usize, id: u64, csv: bool) -> String {
    let null = if csv { "" } else { "\\N" };
    let pick = |random: &mut Random, of: &[&str]| of[random.below(of.len() as u64) as usize].to_owned();
    let rare = random.below(60) == 0;
    match column {
        0 if rare => pick(random, &["-7", " 8", "+9", "99999", "x", null, "-32768", "32768", "\\x31", "0012"]),
        0 => (id % 100).to_string(),
        1 if rare => pick(random, &["-1", "9223372036854775807", "9223372036854775808", "1", "1.5"]),
        1 => (10 * id).to_string(),
        2 if rare => pick(random, &["\\n", "\\N ", "\\\\N", "a\\tb", "\"q\"", "€", "ä\u{1}", " ", "null"]),
        2 => format!("text {id} {}", "long ".repeat(random.below(20) as usize)),
        3 if rare => pick(random, &["abc", "abcd", "äöü", "äöüß", "ab   ", "a    b", "  "]),
        3 => (id % 1000).to_string(),
        4 if rare => pick(random, &["abcdef", "ä€      ", "      ", "abcde          ", "", "abc d f"]),
        4 => format!("{}{}", id % 9, " ".repeat(random.below(12) as usize)),
        5 if rare => pick(random, &["NaN", "1e3", "-0.00", "one", "1e200000"]),
        5 => format!("{}.{:02}", id, id % 100),
        _ if rare => pick(random, &["infinity", "2024-02-30", "now", null, "10000-1-1"]),
        _ => format!("2024-01-{:02}", 1 + id % 28),
    }
}

/// Values that a column refuses.
const FAULTY: &[&str] = &[
    "x",
    "32768",
    "99999",
    "1.5",
    "9223372036854775808",
    "abcd",
    "äöüß",
    "a    b",
    "abcdef",
    "abc d f",
    "one",
    "1e200000",
    "2024-02-30",
    "\\x31",
    " 8",
    "+9",
];

/// Lines of a stream; in two of three every line is without a fault, so that the rows are compared.
fn stream(random: &mut Random, turn: u64) -> String {
    let (csv, may_fail) = (turn.is_multiple_of(3), turn % 3 == 2);
    let value = |random: &mut Random, column: usize, id: u64| {
        loop {
            let made = cell(random, column, id, csv);
            let null = column == 0 && ["\\N", ""].contains(&made.as_str());
            if may_fail || !(null || column == 1 && made == "1" || FAULTY.contains(&made.as_str())) {
                break made;
            }
        }
    };
    let line = |random: &mut Random, id: u64| {
        let cells: Vec<String> = (0..7).map(|column| value(random, column, id)).collect();
        let end = if turn % 5 == 4 { "\r\n" } else { "\n" };
        let more = if may_fail && random.below(900) == 0 { "\tmore" } else { "" };
        format!("{}{more}{end}", cells.join(if csv { "," } else { "\t" }))
    };
    (0..1 + random.below(300)).map(|id| line(random, id)).collect()
}

/// Rows and their sum, or code, message, place and detail of the error.
type Copied = Result<(i64, Option<String>), [Option<String>; 4]>;

/// What a stream makes of a table with this condition.
async fn copied(client: &Client, turn: u64, check: &str, (lines, piece): (&str, usize)) -> Copied {
    let columns = "(a int2 not null, b int8, c text, d varchar(3), e char(5), f numeric(9,1), g date";
    // What the table has beside its columns.
    let kinds =
        [(")", ""), (", primary key (b))", ""), (")", "create index on t (c, e)"), (", primary key (b, c))", "")];
    let (rest, index) = kinds[turn as usize % 4];
    // Whole leaves are loaded into a table that its transaction has made.
    let (begin, options) =
        (if turn % 8 >= 4 { "begin;" } else { "" }, if turn.is_multiple_of(3) { " csv" } else { "" });
    let make = format!("drop table if exists t; {begin} create table t {columns}{check}{rest}; {index}");
    client.batch_execute(&make).await.expect("made");
    let done = copy_in(client, &format!("copy t from stdin{options}"), lines.as_bytes(), piece).await;
    client.batch_execute(if done.is_ok() { "commit" } else { "rollback" }).await.expect("ended");
    let shown = "select count(*), md5(string_agg(r::text, '~')) from (select * from t) r";
    match done {
        Ok(_) => client.query_one(shown, &[]).await.map(|row| Ok((row.get(0), row.get(1)))).expect("summed"),
        Err(e) => {
            let e = e.as_db_error().expect("of the server");
            Err([Some(e.code().code()), Some(e.message()), e.where_(), e.detail()].map(|part| part.map(str::to_owned)))
        }
    }
}

#[test]
fn rows_that_are_taken_where_they_stand_are_those_that_conversion_makes() {
    with_server("copy-taken", &[], async |_, client| {
        let mut random = Random(0x51d3_7a0b_9e21_4c67);
        let (mut whole, mut refused) = (0, 0);
        for turn in 0..240_u64 {
            let lines = stream(&mut random, turn);
            let piece = if turn.is_multiple_of(7) { 1 + random.below(50) as usize } else { 1 << 20 };
            let taken = copied(&client, turn, "", (&lines, piece)).await;
            // A condition is judged over values of the language, so each row is converted.
            let converted = copied(&client, turn, ", check (a is null or a > -32769)", (&lines, piece)).await;
            assert_eq!(taken, converted, "CPY-6, FED-1, LDG-5: turn {turn}:\n{lines}");
            *(if taken.is_ok() { &mut whole } else { &mut refused }) += 1;
        }
        assert!(whole > 40 && refused > 40, "{whole} streams were taken, {refused} refused");
    });
}
