//! Reads a SQLite file: its tables, and which values each column has.

use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use super::names::{literal, of, quoted};
use super::types::{ColumnValues, default};

/// A file, read in one transaction.
pub struct Source {
    pub connection: Connection,
    pub tables: Vec<Table>,
    /// Views: names here, texts.
    pub views: Vec<(String, String)>,
    /// IMP-1
    pub left_out: Vec<String>,
    keep_case: bool,
}

/// A table of it.
pub struct Table {
    /// Its name there.
    pub theirs: String,
    /// Its name here.
    pub name: String,
    pub columns: Vec<Column>,
    pub rows: u64,
    /// Columns of the primary key by number.
    pub key: Vec<usize>,
    /// The primary key is a number that SQLite chooses.
    pub counts: bool,
    /// The highest number that was ever chosen, where SQLite keeps it.
    pub counted: i64,
    pub indexes: Vec<Index>,
    pub foreign: Vec<Foreign>,
    /// The texts of CHECK constraints.
    pub checks: Vec<String>,
}

/// A column.
pub struct Column {
    pub theirs: String,
    pub name: String,
    pub not_null: bool,
    pub ty: &'static str,
    pub default: Option<String>,
    pub nulls: u64,
}

/// An index, or a UNIQUE constraint.
pub struct Index {
    pub name: String,
    pub unique: bool,
    pub is_constraint: bool,
    /// Columns by number, and whether descending.
    pub columns: Vec<(usize, bool)>,
    /// Of an index with expressions or a condition: its statement from the first parenthesis on, in SQLite's words.
    pub text: Option<String>,
}

/// A foreign key.
pub struct Foreign {
    pub columns: Vec<String>,
    pub parent: String,
    /// Empty: the parent's primary key.
    pub parent_columns: Vec<String>,
    pub on_update: String,
    pub on_delete: String,
}

type Result<T> = std::result::Result<T, String>;

fn words(error: rusqlite::Error) -> String {
    format!("SQLite: {error}")
}

impl Source {
    /// Reads schema and values.
    pub fn open(file: &Path, keep_case: bool) -> Result<Source> {
        let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .map_err(|error| format!("{}: {error}", of(file)))?;
        // One snapshot, whatever is written meanwhile.
        connection.execute_batch("BEGIN").map_err(words)?;
        let mut source = Source { connection, tables: Vec::new(), views: Vec::new(), left_out: Vec::new(), keep_case };
        let list = "SELECT l.name, l.type, l.wr, coalesce(m.sql, '') FROM pragma_table_list l \
                    LEFT JOIN sqlite_master m ON m.name = l.name AND m.type IN ('table', 'view') \
                    WHERE l.schema = 'main' AND l.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY m.rowid";
        let listed = source
            .rows(list, |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(3)?)))
            .map_err(|error| format!("{}: {error}", of(file)))?;
        for (name, kind, sql) in listed {
            match kind.as_str() {
                "table" => {
                    let table = source.table(name, &sql)?;
                    source.tables.push(table);
                }
                "view" => source.views.push((source.folded(&name), sql)),
                "virtual" => source.left_out.push(format!("virtual table {name}: its module belongs to SQLite")),
                // The tables in which a virtual table keeps what it has.
                _ => {}
            }
        }
        let triggers = "SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger' ORDER BY rowid";
        for (name, table) in source.rows(triggers, |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))? {
            source.left_out.push(format!("trigger {name} on {table}"));
        }
        source.distinct()?;
        Ok(source)
    }

    fn rows<T>(&self, sql: &str, f: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>) -> Result<Vec<T>> {
        let mut statement = self.connection.prepare(sql).map_err(words)?;
        let rows = statement.query_map([], f).map_err(words)?;
        rows.collect::<rusqlite::Result<Vec<T>>>().map_err(words)
    }

    /// A name as it is here: in lower case, so that statements need no quotes.
    fn folded(&self, name: &str) -> String {
        if self.keep_case { name.to_owned() } else { name.to_lowercase() }
    }

    fn table(&mut self, theirs: String, sql: &str) -> Result<Table> {
        let info = format!(
            "SELECT name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo({})",
            literal(&theirs)
        );
        type Info = (String, String, bool, Option<String>, i64, i64);
        let infos: Vec<Info> =
            self.rows(&info, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?)))?;
        // Hidden columns of virtual tables are of kind 1, generated ones of kinds 2 and 3.
        let infos: Vec<Info> = infos.into_iter().filter(|info| info.5 != 1).collect();
        let (rows, seen) = self.scan_values(&theirs, infos.iter().map(|info| info.0.as_str()))?;
        let mut key: Vec<(i64, usize)> =
            infos.iter().enumerate().filter(|(_, info)| info.4 > 0).map(|(at, info)| (info.4, at)).collect();
        key.sort_unstable();
        let key: Vec<usize> = key.into_iter().map(|(_, at)| at).collect();
        let counts = key.len() == 1 && key.iter().all(|at| infos[*at].1.eq_ignore_ascii_case("integer"));
        let mut columns = Vec::new();
        for ((name, declared, not_null, default_text, _, hidden), seen) in infos.into_iter().zip(&seen) {
            let (ty, said) = seen.choose(&declared);
            let place = format!("column {theirs}.{name}");
            if let Some(said) = said {
                self.left_out.push(format!("{place} {said}"));
            }
            if hidden > 1 {
                self.left_out
                    .push(format!("{place} is generated: its values were carried over, its expression was not"));
            }
            let carried = default_text.as_deref().and_then(|text| default(text, ty));
            if let (Some(text), None) = (&default_text, &carried) {
                self.left_out.push(format!("the default of {place}: {text}"));
            }
            columns.push(Column {
                name: self.folded(&name),
                theirs: name,
                not_null,
                ty,
                default: carried,
                nulls: seen.nulls,
            });
        }
        if sql.to_ascii_uppercase().contains("COLLATE NOCASE") {
            self.left_out.push(format!("COLLATE NOCASE in table {theirs}: texts compare by their bytes"));
        }
        let counted =
            if counts && sql.to_ascii_uppercase().contains("AUTOINCREMENT") { self.counted(&theirs)? } else { 0 };
        let indexes = self.indexes(&theirs, &columns)?;
        let foreign = self.foreign(&theirs)?;
        let name = self.folded(&theirs);
        Ok(Table { theirs, name, columns, rows, key, counts, counted, indexes, foreign, checks: checks(sql) })
    }

    fn counted(&self, table: &str) -> Result<i64> {
        let sql = format!("SELECT seq FROM sqlite_sequence WHERE name = {}", literal(table));
        Ok(self.rows(&sql, |row| row.get(0))?.first().copied().unwrap_or(0))
    }

    /// Looks at every value of a table.
    fn scan_values<'c>(&self, table: &str, columns: impl Iterator<Item = &'c str>) -> Result<(u64, Vec<ColumnValues>)> {
        let list: Vec<String> = columns.map(quoted).collect();
        let mut seen = vec![ColumnValues::default(); list.len()];
        let sql = format!("SELECT {} FROM {}", list.join(", "), quoted(table));
        let mut statement = self.connection.prepare(&sql).map_err(words)?;
        let mut rows = statement.query([]).map_err(words)?;
        let mut count = 0;
        while let Some(row) = rows.next().map_err(words)? {
            count += 1;
            for (at, seen) in seen.iter_mut().enumerate() {
                match row.get_ref(at).map_err(words)? {
                    ValueRef::Null => seen.nulls += 1,
                    ValueRef::Integer(value) => seen.integer(value),
                    ValueRef::Real(_) => seen.reals += 1,
                    ValueRef::Text(bytes) => seen.text(bytes),
                    ValueRef::Blob(_) => seen.blobs += 1,
                }
            }
        }
        Ok((count, seen))
    }

    fn indexes(&mut self, table: &str, columns: &[Column]) -> Result<Vec<Index>> {
        let list = format!(
            "SELECT name, \"unique\", origin, partial FROM pragma_index_list({}) ORDER BY seq DESC",
            literal(table)
        );
        type Info = (String, bool, String, bool);
        let infos: Vec<Info> = self.rows(&list, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
        let mut indexes = Vec::new();
        for (name, unique, origin, partial) in infos.into_iter().filter(|info| info.2 != "pk") {
            let parts = format!(
                "SELECT name, \"desc\", coll FROM pragma_index_xinfo({}) WHERE key ORDER BY seqno",
                literal(&name)
            );
            let parts: Vec<(Option<String>, bool, String)> =
                self.rows(&parts, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            let found: Option<Vec<(usize, bool)>> = parts
                .iter()
                .map(|(name, desc, _)| {
                    Some((columns.iter().position(|column| Some(&column.theirs) == name.as_ref())?, *desc))
                })
                .collect();
            let (columns, text) = match found {
                Some(found) if !partial => (found, None),
                _ => (Vec::new(), Some(self.index_text(&name)?)),
            };
            if text.is_none() && parts.iter().any(|(_, _, collation)| collation != "BINARY") {
                self.left_out.push(format!(
                    "index {name} on {table} compares by another collation than here: it was made by bytes"
                ));
            }
            indexes.push(Index { name: self.folded(&name), unique, is_constraint: origin == "u", columns, text });
        }
        Ok(indexes)
    }

    fn index_text(&self, index: &str) -> Result<String> {
        let sql = format!("SELECT sql FROM sqlite_master WHERE type = 'index' AND name = {}", literal(index));
        let text: Vec<String> = self.rows(&sql, |row| row.get(0))?;
        Ok(text.first().and_then(|text| parts_of_index(text)).unwrap_or_default().to_owned())
    }

    fn foreign(&self, table: &str) -> Result<Vec<Foreign>> {
        let list = format!(
            "SELECT id, \"table\", \"from\", \"to\", on_update, on_delete FROM pragma_foreign_key_list({}) ORDER BY id, seq",
            literal(table)
        );
        type Info = (i64, String, String, Option<String>, String, String);
        let infos: Vec<Info> =
            self.rows(&list, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?)))?;
        let mut keys: Vec<(i64, Foreign)> = Vec::new();
        for (id, parent, from, to, on_update, on_delete) in infos {
            if keys.last().is_none_or(|(last, _)| *last != id) {
                let parent = self.folded(&parent);
                let (columns, parent_columns) = (Vec::new(), Vec::new());
                keys.push((id, Foreign { columns, parent, parent_columns, on_update, on_delete }));
            }
            if let Some((_, key)) = keys.last_mut() {
                key.columns.push(self.folded(&from));
                key.parent_columns.extend(to.map(|to| self.folded(&to)));
            }
        }
        Ok(keys.into_iter().map(|(_, key)| key).collect())
    }

    /// In lower case two names may become one.
    fn distinct(&self) -> Result<()> {
        let mut names: Vec<&str> = self.tables.iter().map(|table| table.name.as_str()).collect();
        names.sort_unstable();
        let tables = names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].to_owned());
        match tables {
            Some(name) => Err(format!("two tables would be named {name}: import with --keep-case")),
            None => Ok(()),
        }
    }
}

/// The text of an index behind its table's name: its columns and expressions in parentheses, and its condition.
fn parts_of_index(sql: &str) -> Option<&str> {
    let (mut at, bytes) = (0, sql.as_bytes());
    loop {
        match bytes.get(at)? {
            b'\'' | b'"' | b'`' => at = past_quote(bytes, at),
            b'[' => at += bytes[at..].iter().position(|byte| *byte == b']')?,
            b'(' => return sql.get(at..),
            _ => at += 1,
        }
    }
}

/// The expressions of the CHECK constraints in the text of a table.
fn checks(sql: &str) -> Vec<String> {
    let (mut found, mut at, bytes) = (Vec::new(), 0, sql.as_bytes());
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\'' | b'"' | b'`' => at = past_quote(bytes, at),
            b'-' if bytes.get(at + 1) == Some(&b'-') => {
                at += bytes[at..].iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len() - at);
            }
            _ if is_check(sql, at) => {
                let open = at + 5 + bytes[at + 5..].iter().position(|byte| *byte == b'(').unwrap_or(0);
                let Some(close) = past_paren(bytes, open) else { break };
                found.extend(sql.get(open + 1..close - 1).map(str::to_owned));
                at = close;
            }
            _ => at += 1,
        }
    }
    found
}

/// Whether the keyword CHECK is there, followed by a parenthesis.
fn is_check(sql: &str, at: usize) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let word = sql.get(at..at + 5).is_some_and(|word| word.eq_ignore_ascii_case("check"));
    let begins = at == 0 || !is_word(&sql.as_bytes()[at - 1]);
    word && begins && sql.get(at + 5..).is_some_and(|rest| rest.trim_start().starts_with('('))
}

fn past_quote(bytes: &[u8], at: usize) -> usize {
    let quote = bytes[at];
    bytes[at + 1..].iter().position(|byte| *byte == quote).map_or(bytes.len(), |end| at + end + 2)
}

/// The place behind the parenthesis that closes the one at `at`, if there is one.
fn past_paren(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\'' | b'"' | b'`' => {
                at = past_quote(bytes, at);
                continue;
            }
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #[test]
    fn checks_are_found_outside_of_texts() {
        let sql =
            "CREATE TABLE t (a INT CHECK (a > (1)), b TEXT DEFAULT 'CHECK (x)', checked INT, CHECK(b <> ')' AND a<9))";
        assert_eq!(super::checks(sql), ["a > (1)", "b <> ')' AND a<9"]);
        assert!(super::checks("CREATE TABLE t (a INT) -- CHECK (a > 1)").is_empty());
        assert_eq!(super::checks("CHECK ((("), [""; 0]);
    }

    #[test]
    fn the_parts_of_an_index_stand_behind_names_of_any_form() {
        let parts = super::parts_of_index;
        assert_eq!(parts("CREATE INDEX a ON t (lower(b)) WHERE c > (1)"), Some("(lower(b)) WHERE c > (1)"));
        assert_eq!(parts("CREATE INDEX \"a(\" ON [t(x] (b)"), Some("(b)"));
        assert_eq!(parts("CREATE INDEX `a(`"), None);
        assert_eq!(parts("CREATE INDEX [a"), None);
    }
}
