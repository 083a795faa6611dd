//! Writes to the directory: creates tables, fills them, and adds keys, indexes and foreign keys.

use clearway::{Connection, Database};

use super::names::{literal, quoted};
use super::rows::fill;
use super::source::{Foreign, Source, Table};
use crate::backup::show::Bar;

/// Bytes of one COPY.
const COPY_BYTES: usize = 1 << 20;

/// Where the tables go.
pub struct Target {
    connection: Connection,
    schema: String,
}

type Result<T> = std::result::Result<T, String>;

fn words(error: clearway::Error) -> String {
    error.to_string()
}

impl Target {
    /// The schema of an open database; made if it is not there.
    pub fn new(db: &Database, schema: &str) -> Result<Target> {
        let mut connection = db.connect().map_err(words)?;
        let there: Option<(i32,)> =
            connection.query_opt("SELECT 1 FROM pg_namespace WHERE nspname = $1", [schema]).map_err(words)?;
        if there.is_none() {
            connection.execute_batch(&format!("CREATE SCHEMA {}", quoted(schema))).map_err(words)?;
        }
        // Views name their tables without a schema.
        connection.execute_batch(&format!("SET search_path = {}", quoted(schema))).map_err(words)?;
        Ok(Target { connection, schema: schema.to_owned() })
    }

    /// Carries everything over.
    pub fn fill(mut self, source: &Source, left_out: &mut Vec<String>, say: &mut dyn FnMut(&str)) -> Result<()> {
        self.refuse_existing(source)?;
        let all: u64 = source.tables.iter().map(|table| table.rows).sum();
        let (mut bar, mut done) = (Bar::new("import", |rows| format!("{rows} rows")), 0);
        for table in &source.tables {
            let filled = self.table(source, table, &mut |rows| {
                done += rows;
                bar.show(done, all);
            });
            if let Err(error) = filled {
                bar.end();
                return Err(format!("table {}: {error}", table.theirs));
            }
        }
        bar.end();
        for table in &source.tables {
            self.indexes(source, table, left_out)?;
        }
        for table in &source.tables {
            for key in &table.foreign {
                let sql = self.foreign(table, key);
                self.attempt(&sql, &format!("a foreign key of {} to {}", table.theirs, key.parent), left_out)?;
            }
            for check in &table.checks {
                let expression = renamed(check, source);
                let sql = format!("ALTER TABLE {} ADD CHECK ({expression})", self.name(&table.name));
                self.attempt(&sql, &format!("CHECK ({check}) of table {}", table.theirs), left_out)?;
            }
        }
        for (name, sql) in &source.views {
            self.attempt(&renamed(sql, source), &format!("view {name}"), left_out)?;
        }
        for table in &source.tables {
            say(&format!("{}: {} rows", table.name, table.rows));
        }
        Ok(())
    }

    fn name(&self, table: &str) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(table))
    }

    /// IMP-2
    fn refuse_existing(&mut self, source: &Source) -> Result<()> {
        for table in &source.tables {
            let name = self.name(&table.name);
            let there: (bool,) =
                self.connection.query_row("SELECT to_regclass($1) IS NOT NULL", [name.as_str()]).map_err(words)?;
            if there.0 {
                return Err(format!(
                    "table {name} is there already; nothing was changed. Import into another schema (--schema NAME)"
                ));
            }
        }
        Ok(())
    }

    fn table(&mut self, source: &Source, table: &Table, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let name = self.name(&table.name);
        let mut transaction = self.connection.transaction().map_err(words)?;
        transaction.execute_batch(&create(&name, table)).map_err(words)?;
        let theirs: Vec<String> = table.columns.iter().map(|column| quoted(&column.theirs)).collect();
        let types: Vec<&str> = table.columns.iter().map(|column| column.ty).collect();
        // In the order of the key, so that rows are appended.
        let order: Vec<String> = table.key.iter().map(|at| quoted(&table.columns[*at].theirs)).collect();
        let order = if order.is_empty() { String::new() } else { format!(" ORDER BY {}", order.join(", ")) };
        let select = format!("SELECT {} FROM {}{order}", theirs.join(", "), quoted(&table.theirs));
        let in_sqlite = |error: rusqlite::Error| format!("SQLite: {error}");
        let mut statement = source.connection.prepare(&select).map_err(in_sqlite)?;
        let mut rows = statement.query([]).map_err(in_sqlite)?;
        let (copy, mut more, mut bytes) = (format!("COPY {name} FROM STDIN"), true, Vec::new());
        while more {
            bytes.clear();
            let (count, may_follow) = fill(&mut rows, &types, COPY_BYTES, &mut bytes).map_err(in_sqlite)?;
            more = may_follow;
            if count > 0 {
                let copied = transaction.copy_in(&copy, &mut bytes.as_slice()).map_err(words)?;
                if copied != count {
                    return Err(format!("{copied} rows of {count} arrived"));
                }
            }
            progress(count);
        }
        if table.counts
            && let [at] = table.key[..]
        {
            let column = quoted(&table.columns[at].name);
            let last = format!(
                "SELECT setval(pg_get_serial_sequence({}, {}), greatest(1, {}, (SELECT max({column}) FROM {name})), {})",
                literal(&name),
                literal(&table.columns[at].name),
                table.counted,
                table.rows > 0 || table.counted > 0
            );
            transaction.execute_batch(&last).map_err(words)?;
        }
        transaction.commit().map_err(words)
    }

    /// A primary key over a column with NULLs, and everything that is an index there.
    fn indexes(&mut self, source: &Source, table: &Table, left_out: &mut Vec<String>) -> Result<()> {
        let name = self.name(&table.name);
        let columns =
            |at: &[usize]| at.iter().map(|at| quoted(&table.columns[*at].name)).collect::<Vec<_>>().join(", ");
        if !table.key.is_empty() && !has_key(table) {
            left_out.push(format!("the primary key of {} holds NULLs: it became UNIQUE", table.theirs));
            let sql = format!("ALTER TABLE {name} ADD UNIQUE ({})", columns(&table.key));
            self.attempt(&sql, &format!("the primary key of {}", table.theirs), left_out)?;
        }
        for index in &table.indexes {
            let sql = if index.is_constraint {
                let at: Vec<usize> = index.columns.iter().map(|(at, _)| *at).collect();
                format!("ALTER TABLE {name} ADD UNIQUE ({})", columns(&at))
            } else if let Some(text) = &index.text {
                let unique = if index.unique { "UNIQUE " } else { "" };
                format!("CREATE {unique}INDEX {} ON {name} {}", quoted(&index.name), renamed(text, source))
            } else {
                let part = |(at, desc): &(usize, bool)| {
                    format!("{}{}", quoted(&table.columns[*at].name), if *desc { " DESC" } else { "" })
                };
                let parts: Vec<String> = index.columns.iter().map(part).collect();
                let unique = if index.unique { "UNIQUE " } else { "" };
                format!("CREATE {unique}INDEX {} ON {name} ({})", quoted(&index.name), parts.join(", "))
            };
            self.attempt(&sql, &format!("index {} on {}", index.name, table.theirs), left_out)?;
        }
        Ok(())
    }

    fn foreign(&self, table: &Table, key: &Foreign) -> String {
        let list = |names: &[String]| names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
        let mut sql = format!(
            "ALTER TABLE {} ADD FOREIGN KEY ({}) REFERENCES {}",
            self.name(&table.name),
            list(&key.columns),
            self.name(&key.parent)
        );
        if !key.parent_columns.is_empty() {
            sql.push_str(&format!(" ({})", list(&key.parent_columns)));
        }
        sql.push_str(&format!(" ON UPDATE {} ON DELETE {}", key.on_update, key.on_delete));
        sql
    }

    /// Runs a statement without which the data are still whole; what is refused is listed (IMP-1). It may hold the file's own words, so it is
    /// run as a single statement: a text with a second one is refused.
    fn attempt(&mut self, sql: &str, what: &str, left_out: &mut Vec<String>) -> Result<()> {
        match self.connection.execute(sql, ()) {
            Ok(_) => Ok(()),
            Err(clearway::Error::Sql(failure)) => {
                left_out.push(format!("{what}: {}", failure.message()));
                Ok(())
            }
            Err(other) => Err(words(other)),
        }
    }
}

/// Whether the primary key can be one: SQLite lets NULLs into it.
fn has_key(table: &Table) -> bool {
    !table.key.is_empty() && table.key.iter().all(|at| table.columns[*at].nulls == 0)
}

/// SQL text with the names in SQLite's quotes as they are here; names without quotes are in lower case by themselves.
fn renamed(sql: &str, source: &Source) -> String {
    let tables = source.tables.iter().map(|table| (&table.theirs, &table.name));
    let columns =
        source.tables.iter().flat_map(|table| table.columns.iter().map(|column| (&column.theirs, &column.name)));
    tables.chain(columns).fold(sql.to_owned(), |sql, (theirs, name)| {
        let forms = [format!("\"{theirs}\""), format!("[{theirs}]"), format!("`{theirs}`")];
        forms.iter().fold(sql, |sql, form| sql.replace(form, &quoted(name)))
    })
}

fn create(name: &str, table: &Table) -> String {
    let mut parts = Vec::new();
    for (at, column) in table.columns.iter().enumerate() {
        let mut part = format!("{} {}", quoted(&column.name), column.ty);
        if table.counts && table.key == [at] {
            part.push_str(" GENERATED BY DEFAULT AS IDENTITY");
        }
        if let Some(default) = &column.default {
            part.push_str(&format!(" DEFAULT {default}"));
        }
        if column.not_null {
            part.push_str(" NOT NULL");
        }
        parts.push(part);
    }
    if has_key(table) {
        let columns: Vec<String> = table.key.iter().map(|at| quoted(&table.columns[*at].name)).collect();
        parts.push(format!("PRIMARY KEY ({})", columns.join(", ")));
    }
    format!("CREATE TABLE {name} ({})", parts.join(", "))
}
