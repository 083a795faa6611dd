//! Scenario: the bytes that a row takes on disk.

use crate::scenario::{Flavour, Group, Measure, Point, Scenario};

/// Narrow rows of page views, with columns of two and of four bytes, and with a text.
pub struct RowSize;

impl Scenario for RowSize {
    fn name(&self) -> &'static str {
        "row-size"
    }

    fn title(&self) -> &'static str {
        "Bytes per row"
    }

    fn about(&self) -> &'static str {
        "A table of page views is filled in the order of its `bigint` key: five columns of two bytes, the same five of four \
         bytes, and those of two bytes with a text of 25 characters. Drawn is what the table takes on disk with its primary \
         key, per row, as each server tells it."
    }

    fn remarks(&self) -> &'static str {
        "Clearway and MariaDB keep the rows in the tree of the key; PostgreSQL keeps a heap and the key's tree beside it. \
         A settled row of Clearway carries its prelude and two bytes of slot, and its key only once, in encoded form. The \
         sizes are those right after loading: no server has been vacuumed or rebuilt. MariaDB makes its files longer by 4 MB at a \
         time, so that at 250,000 rows part of its figure is room not used yet; at five million it was 43 bytes with two-byte columns."
    }

    fn unit(&self) -> &'static str {
        "bytes per row"
    }

    fn axis(&self) -> &'static str {
        "rows"
    }

    fn points(&self) -> &'static [u32] {
        &[250_000, 1_000_000]
    }

    fn variants(&self) -> &'static [&'static str] {
        &["2-byte columns", "4-byte columns", "2-byte columns and a text"]
    }

    fn measure(&self) -> Measure {
        Measure::Answer
    }

    fn setup(&self, _: Flavour) -> Vec<String> {
        vec!["CREATE TABLE t1 (a int)".to_owned()]
    }

    fn reset(&self, to: Flavour, at: Point) -> Vec<String> {
        let kind = if at.variant.starts_with('4') { "int" } else { "smallint" };
        let (text, value) = match (at.variant.ends_with("text"), to) {
            (false, _) => ("", String::new()),
            (true, Flavour::MySql) => {
                (", url varchar(50) NOT NULL", ", concat('/article/view/', 1000000000 + n)".to_owned())
            }
            (true, _) => (", url varchar(50) NOT NULL", ", '/article/view/' || (1000000000 + n)".to_owned()),
        };
        let columns = ["site", "page", "category", "region", "minute"].map(|name| format!("{name} {kind} NOT NULL"));
        let make = format!("CREATE TABLE t1 (id bigint PRIMARY KEY, {}{text})", columns.join(", "));
        let source = match to {
            Flavour::MySql => format!("(SELECT seq AS n FROM seq_1_to_{}) s", at.x),
            _ => format!("generate_series(1, {}) AS s(n)", at.x),
        };
        let fill =
            format!("INSERT INTO t1 SELECT n, n % 1000, n % 30000, n % 100, n % 500, n % 1440{value} FROM {source}");
        vec!["DROP TABLE t1".to_owned(), make, fill]
    }

    fn load(&self, _: Flavour, _: Point) -> Vec<Group> {
        Vec::new()
    }

    fn question(&self, to: Flavour) -> String {
        match to {
            Flavour::MySql => {
                "SELECT file_size FROM information_schema.innodb_sys_tablespaces WHERE name = 'lab/t1'".to_owned()
            }
            _ => "SELECT pg_total_relation_size('t1')".to_owned(),
        }
    }
}
