//! `clearway import sqlite`: real SQLite files, the command itself, and the library that reads the result.

use std::path::PathBuf;
use std::process::{Command, Output};

use clearway::Database;
use rusqlite::Connection;

/// The shape of the Chinook sample: music, invoices, employees who report to employees.
const CHINOOK: &str = r#"
CREATE TABLE [Artist] ([ArtistId] INTEGER NOT NULL, [Name] NVARCHAR(120), CONSTRAINT [PK_Artist] PRIMARY KEY ([ArtistId]));
CREATE TABLE [Album] ([AlbumId] INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, [Title] NVARCHAR(160) NOT NULL, [ArtistId] INTEGER NOT NULL,
  FOREIGN KEY ([ArtistId]) REFERENCES [Artist] ([ArtistId]) ON DELETE NO ACTION ON UPDATE NO ACTION);
CREATE INDEX [IFK_AlbumArtistId] ON [Album] ([ArtistId]);
CREATE TABLE [Track] ([TrackId] INTEGER PRIMARY KEY, [Name] NVARCHAR(200) NOT NULL, [AlbumId] INTEGER REFERENCES Album ON DELETE CASCADE,
  [Milliseconds] INTEGER NOT NULL, [UnitPrice] NUMERIC(10,2) NOT NULL DEFAULT 0.99, [Bytes] INTEGER);
CREATE TABLE [Employee] ([EmployeeId] INTEGER PRIMARY KEY, [LastName] NVARCHAR(20) NOT NULL, [ReportsTo] INTEGER REFERENCES Employee(EmployeeId),
  [BirthDate] DATETIME, [HireDate] DATE, Active BOOLEAN DEFAULT 1);
CREATE TABLE [PlaylistTrack] ([PlaylistId] INTEGER NOT NULL, [TrackId] INTEGER NOT NULL, PRIMARY KEY ([PlaylistId], [TrackId])) WITHOUT ROWID;
INSERT INTO Artist VALUES (1, 'AC/DC'), (2, 'Accept	tab \ backslash
new line'), (7, 'Motörhead'), (8, NULL);
INSERT INTO Album VALUES (1, 'For Those About To Rock', 1), (40, 'Balls to the Wall', 2);
DELETE FROM Album WHERE AlbumId = 40;
INSERT INTO Track VALUES (1, 'Title', 1, 343719, 0.99, 11170334), (2, 'Other', NULL, 9007199254740995, 1, NULL);
INSERT INTO Employee VALUES (1, 'Adams', NULL, '1962-02-18 00:00:00', '2002-08-14', 1), (2, 'Edwards', 1, NULL, NULL, 0);
INSERT INTO PlaylistTrack WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT i % 7, i FROM n;
"#;

/// The shape of Northwind, and what SQLite lets through that no other database does.
const NORTHWIND: &str = r#"
CREATE TABLE "Order Details" ("OrderID" INTEGER, "ProductID" INTEGER, "UnitPrice" NUMERIC NOT NULL DEFAULT 0, "Quantity" INTEGER NOT NULL DEFAULT 1,
  "Discount" REAL NOT NULL DEFAULT 0, PRIMARY KEY ("OrderID", "ProductID"), CHECK ("Quantity" > (0)), CHECK (typeof("OrderID") = 'integer'));
INSERT INTO "Order Details" VALUES (10248, 11, 14, 12, 0), (10248, 42, 9.8, 10, 0.15);
CREATE TABLE Categories (CategoryID INTEGER PRIMARY KEY, CategoryName TEXT UNIQUE, Picture BLOB, Loose, Nulls TEXT, Half TEXT DEFAULT (lower('X')));
INSERT INTO Categories VALUES (1, 'Beverages', x'00ff10', 1, NULL, 'a'), (2, 'Condiments', x'', 'two', NULL, CAST(x'ff' AS TEXT));
CREATE TABLE Orphans (id INTEGER PRIMARY KEY, category INTEGER REFERENCES Categories(CategoryID));
INSERT INTO Orphans VALUES (1, 99);
CREATE TABLE Loose (k TEXT PRIMARY KEY, v TEXT);
INSERT INTO Loose VALUES (NULL, 'one'), (NULL, 'two'), ('k', 'three');
CREATE UNIQUE INDEX by_name ON Categories (CategoryName COLLATE NOCASE);
CREATE INDEX partly ON Categories (CategoryName) WHERE CategoryID > 1;
CREATE UNIQUE INDEX [Ex(pressed] ON Categories (lower("CategoryName"), CategoryID DESC);
CREATE INDEX theirs ON Categories (strftime('%Y', CategoryName));
CREATE INDEX unordered ON Categories (CategoryName COLLATE NOCASE) WHERE Nulls IS NULL;
CREATE VIEW Totals AS SELECT CategoryID, count(*) AS n FROM Categories GROUP BY CategoryID;
CREATE VIEW Odd AS SELECT group_concat(CategoryName) FROM Categories;
CREATE TRIGGER watch AFTER INSERT ON Categories BEGIN SELECT 1; END;
CREATE VIRTUAL TABLE words USING fts5(text);
"#;

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, sql: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("clearway-import-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a directory");
        let sqlite = Connection::open(path.join("file.db")).expect("a file");
        sqlite.execute_batch("PRAGMA journal_mode = WAL; PRAGMA foreign_keys = OFF").expect("settings");
        sqlite.execute_batch(sql).expect("the schema");
        Scratch(path)
    }

    fn import(&self, options: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clearway"));
        command.args(["import", "sqlite"]).arg(self.0.join("file.db")).arg("--data").arg(self.0.join("data"));
        command.args(options).output().expect("the command")
    }

    fn open(&self) -> Database {
        Database::open(self.0.join("data")).expect("the directory")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{out}{err}")
}

#[test]
fn a_well_formed_file_is_carried_over_whole() {
    let scratch = Scratch::new("chinook", CHINOOK);
    let done = scratch.import(&[]);
    assert!(done.status.success() && text(&done).contains("everything was carried over"), "{}", text(&done));
    assert!(text(&done).contains("playlisttrack: 5000 rows"), "{}", text(&done));
    let db = scratch.open();
    let mut connection = db.connect().expect("a connection");
    let types = "SELECT string_agg(column_name || ' ' || data_type || ' ' || is_nullable, ', ' ORDER BY ordinal_position) \
                 FROM information_schema.columns WHERE table_name = $1";
    let of = |connection: &mut clearway::Connection, table| {
        connection.query_row::<(String,)>(types, [table]).expect("columns").0
    };
    assert_eq!(
        of(&mut connection, "track"),
        "trackid bigint NO, name text NO, albumid bigint YES, milliseconds bigint NO, unitprice numeric NO, bytes bigint YES"
    );
    assert_eq!(
        of(&mut connection, "employee"),
        "employeeid bigint NO, lastname text NO, reportsto bigint YES, birthdate timestamp without time zone YES, hiredate date YES, active boolean YES"
    );
    let names: Vec<(i64, Option<String>)> =
        connection.query("SELECT artistid, name FROM artist ORDER BY 1", ()).expect("rows").collect().expect("rows");
    let second = "Accept\ttab \\ backslash\nnew line";
    assert_eq!(names, [(1, Some("AC/DC".into())), (2, Some(second.into())), (7, Some("Motörhead".into())), (8, None)]);
    let track: (i64, String) =
        connection.query_row("SELECT milliseconds, unitprice::text FROM track WHERE trackid = 2", ()).expect("a row");
    assert_eq!(track, (9_007_199_254_740_995, "1".into()));
    let sum: (i64, i64) =
        connection.query_row("SELECT count(*), sum(trackid)::bigint FROM playlisttrack", ()).expect("a row");
    assert_eq!(sum, (5000, 12_502_500));

    // AUTOINCREMENT goes on behind the highest number that was ever given.
    let id: (i64,) = connection
        .query_row("INSERT INTO album (title, artistid) VALUES ('New', 7) RETURNING albumid", ())
        .expect("inserted");
    assert_eq!(id.0, 41);
    let id: (i64, bool) = connection
        .query_row("INSERT INTO employee (lastname) VALUES ('New') RETURNING employeeid, active", ())
        .expect("inserted");
    assert_eq!(id, (3, true));
    let error =
        connection.execute("INSERT INTO album (title, artistid) VALUES ('x', 77)", ()).expect_err("a foreign key");
    assert_eq!(error.code(), Some("23503"));
    connection.execute("DELETE FROM album WHERE albumid = 1", ()).expect("cascades");
    assert_eq!(connection.query_row::<(i64,)>("SELECT count(*) FROM track", ()).expect("a row").0, 1);
    let error = connection.execute("INSERT INTO playlisttrack VALUES (1, 1)", ()).expect_err("a primary key");
    assert_eq!(error.code(), Some("23505"));
    let indexes =
        connection.query_row::<(i64,)>("SELECT count(*) FROM pg_indexes WHERE indexname = 'ifk_albumartistid'", ());
    assert_eq!(indexes.expect("a row").0, 1);
    drop(connection);
    db.close().expect("closed");

    // IMP-2
    let again = scratch.import(&[]);
    assert!(!again.status.success() && text(&again).contains("is there already"), "{}", text(&again));
    let kept = scratch.import(&["--schema", "Other", "--keep-case"]);
    assert!(kept.status.success(), "{}", text(&kept));
    let db = scratch.open();
    let n = db
        .connect()
        .expect("a connection")
        .query_row::<(i64,)>(r#"SELECT count(*) FROM "Other"."Track" WHERE "TrackId" > 0"#, ());
    assert_eq!(n.expect("a row").0, 2);
    db.close().expect("closed");
}

/// IMP-1
#[test]
fn what_can_not_be_carried_over_is_listed() {
    let scratch = Scratch::new("northwind", NORTHWIND);
    let done = scratch.import(&[]);
    let said = text(&done);
    assert!(done.status.success(), "{said}");
    for line in [
        "virtual table words",
        "trigger watch on Categories",
        "column Categories.Loose holds 1 numbers beside 1 texts: it became text",
        "column Categories.Half holds 1 texts that are not UTF-8",
        "the default of column Categories.Half: lower('X')",
        "index theirs on Categories: ",
        "index unordered on Categories: ",
        "index by_name on Categories compares by another collation",
        "a foreign key of Orphans to categories: ",
        "CHECK (typeof(\"OrderID\") = 'integer') of table Order Details: ",
        "the primary key of Loose holds NULLs: it became UNIQUE",
        "view odd: ",
    ] {
        assert!(said.contains(line), "{line} is missing in\n{said}");
    }
    assert_eq!(said.matches("CHECK (").count(), 1, "{said}");
    let db = scratch.open();
    let mut connection = db.connect().expect("a connection");
    let row: (i64, String, f64) = connection
        .query_row(r#"SELECT quantity, unitprice::text, discount FROM "order details" WHERE productid = 42"#, ())
        .expect("a row");
    assert_eq!(row, (10, "9.8".into(), 0.15));
    let error = connection.execute(r#"INSERT INTO "order details" VALUES (1, 1, 1, 0)"#, ()).expect_err("a CHECK");
    assert_eq!(error.code(), Some("23514"), "{error}");
    let row: (Vec<u8>, Vec<u8>, String) =
        connection.query_row("SELECT picture, half, loose FROM categories WHERE categoryid = 1", ()).expect("a row");
    assert_eq!(row, (vec![0, 255, 16], b"a".to_vec(), "1".into()));
    assert_eq!(connection.query_row::<(i64,)>("SELECT n FROM totals WHERE categoryid = 2", ()).expect("a view").0, 1);
    let of_categories = "SELECT indexdef FROM pg_indexes WHERE tablename = 'categories' AND indexname = $1";
    let definition = |connection: &mut clearway::Connection, name| {
        connection.query_row::<(String,)>(of_categories, [name]).expect("the index").0
    };
    let partly = definition(&mut connection, "partly");
    assert!(partly.ends_with("(categoryname) WHERE (categoryid > 1)"), "{partly}");
    let expressed = definition(&mut connection, "ex(pressed");
    let wanted =
        "CREATE UNIQUE INDEX \"ex(pressed\" ON public.categories USING btree (lower(categoryname), categoryid DESC)";
    assert_eq!(expressed, wanted);
    assert_eq!(connection.query_row::<(i64,)>("SELECT count(*) FROM loose", ()).expect("a row").0, 3);
    drop(connection);
    db.close().expect("closed");
    let no_file =
        Command::new(env!("CARGO_BIN_EXE_clearway")).args(["import", "sqlite", "/nowhere.db"]).output().expect("ran");
    assert!(!no_file.status.success() && text(&no_file).contains("/nowhere.db"), "{}", text(&no_file));
}
