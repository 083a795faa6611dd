//! Scenario `bulk`: statements that read or write a whole table.

use crate::scenario::{Flavour, Group, Point, Scenario, Step};

/// One client works on all rows of a table at once.
pub struct Bulk;

/// Fills `table (a, b, t)` with the keys 1 to `rows`, by inserts that double it.
fn fill(table: &str, rows: u32) -> Vec<String> {
    let mut all = vec![format!("INSERT INTO {table} (a, b, t) VALUES (1, 7919, 'x')")];
    let mut filled = 1;
    while filled < rows {
        all.push(format!(
            "INSERT INTO {table} (a, b, t) SELECT a + {filled}, ((a + {filled}) % 10007) * 7919 % 10007, md5(concat('t', a + {filled})) \
             FROM {table} WHERE a + {filled} <= {rows}"
        ));
        filled *= 2;
    }
    all
}

const COLUMNS: &str = "(a int PRIMARY KEY, b int NOT NULL, t varchar(40) NOT NULL)";

impl Scenario for Bulk {
    fn name(&self) -> &'static str {
        "bulk"
    }

    fn title(&self) -> &'static str {
        "Bulk work"
    }

    fn about(&self) -> &'static str {
        "One client works on a table `(a int PRIMARY KEY, b int, t varchar)` of so many rows, whose `t` is an MD5 sum, over and over. \
         `create as`: CREATE TABLE AS of all rows, and its drop. `key`: the same, with ADD PRIMARY KEY before the drop. `insert`: TRUNCATE of \
         another table, and INSERT ... SELECT of all rows into it. `index int`, `index text`: CREATE INDEX on `b` or `t`, and its drop. \
         `delete`: in a table with two more indexes, DELETE of half of the rows, and INSERT ... SELECT of them again. `update`: UPDATE of `b` \
         in all rows. Every statement is a durable transaction. Drawn are rows per second, all rows of the table counted once a pass."
    }

    fn remarks(&self) -> &'static str {
        "CREATE TABLE AS, ADD PRIMARY KEY and CREATE INDEX write whole pages with one log record each, as PostgreSQL does. INSERT, UPDATE and \
         DELETE of rows in a table that was there before cost Clearway a descent, an undo record and a log record per row and per index \
         entry; PostgreSQL appends to a heap, and its DELETE leaves the indexes as they are until a vacuum."
    }

    fn unit(&self) -> &'static str {
        "rows/s"
    }

    fn axis(&self) -> &'static str {
        "rows of the table"
    }

    fn points(&self) -> &'static [u32] {
        &[1_000, 10_000, 50_000]
    }

    fn variants(&self) -> &'static [&'static str] {
        &["create as", "key", "insert", "index int", "index text", "delete", "update"]
    }

    fn setup(&self, _: Flavour) -> Vec<String> {
        ["t1", "t2", "t3"].map(|table| format!("CREATE TABLE {table} {COLUMNS}")).to_vec()
    }

    fn reset(&self, _: Flavour, at: Point) -> Vec<String> {
        let mut all: Vec<String> = ["t1", "t2"].map(|table| format!("DROP TABLE {table}")).to_vec();
        all.extend(["t1", "t2"].map(|table| format!("CREATE TABLE {table} {COLUMNS}")));
        if at.variant == "delete" {
            all.extend(["CREATE INDEX t1_b ON t1 (b)".to_owned(), "CREATE INDEX t1_t ON t1 (t)".to_owned()]);
        }
        all.extend(fill("t1", at.x));
        all
    }

    fn load(&self, to: Flavour, at: Point) -> Vec<Group> {
        let drop_index = if to == Flavour::MySql { "DROP INDEX t1_x ON t1" } else { "DROP INDEX t1_x" };
        let create = ["DROP TABLE IF EXISTS t4", "CREATE TABLE t4 AS SELECT a, b, t FROM t1"];
        let script: Vec<&str> = match at.variant {
            "create as" => create.to_vec(),
            "key" => [&create[..], &["ALTER TABLE t4 ADD PRIMARY KEY (a)"]].concat(),
            "insert" => vec!["TRUNCATE TABLE t2", "INSERT INTO t2 (a, b, t) SELECT a, b, t FROM t1"],
            "index int" => vec!["CREATE INDEX t1_x ON t1 (b)", drop_index],
            "index text" => vec!["CREATE INDEX t1_x ON t1 (t)", drop_index],
            "delete" => vec![
                "DELETE FROM t1 WHERE a % 2 = 0",
                "INSERT INTO t1 (a, b, t) SELECT a + 1, b, t FROM t1 WHERE a % 2 = 1",
            ],
            _ => vec!["UPDATE t1 SET b = b + 1"],
        };
        let script = script.into_iter().map(Step::run).collect();
        vec![Group { weight: at.x, ..Group::new("worker", 1, script) }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_filled_by_inserts_that_double_it() {
        assert_eq!(fill("t", 1).len(), 1);
        let all = fill("t", 1_000);
        assert_eq!(all.len(), 11);
        assert!(all[10].contains("a + 512") && all[10].ends_with("<= 1000"), "{}", all[10]);
    }
}
