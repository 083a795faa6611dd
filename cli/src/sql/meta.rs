//! The shell's own commands, which begin with a backslash.

/// What such a command asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Meta {
    /// End the shell.
    Quit,
    /// Say how to use it.
    Help,
    /// Show elapsed time from now on, or no longer.
    Timing,
    /// Run these queries, each under a heading; an empty result is not drawn.
    Show(Vec<(String, String)>),
    /// Not here.
    Unknown(String),
}

/// The text of `\?`.
pub const HELP: &str = "\
A statement ends with a semicolon and may take several lines; Ctrl-C cancels it.
  \\d           tables, views, sequences, indexes     \\d NAME  columns and indexes of one
  \\dt          tables                                \\l       databases
  \\locks       who waits for whom                    \\timing  show how long statements take
  \\q           quit                                  \\?       this
Everything else that psql can do, psql does: it talks to the same server.
";

/// Reads a command.
pub fn parse(line: &str) -> Meta {
    let line = line.trim().trim_end_matches(';').trim_end();
    let (word, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let argument = argument.trim();
    match (word, argument) {
        ("\\q" | "\\quit", _) => Meta::Quit,
        ("\\?" | "\\h" | "\\help", _) => Meta::Help,
        ("\\timing", _) => Meta::Timing,
        ("\\l", "") => Meta::Show(vec![("Databases".to_owned(), DATABASES.to_owned())]),
        ("\\d", "") => Meta::Show(vec![("Relations".to_owned(), relations("'r', 'v', 'S', 'i', 'm', 'p'"))]),
        ("\\dt", "") => Meta::Show(vec![("Tables".to_owned(), relations("'r', 'p'"))]),
        ("\\locks", "") => Meta::Show(vec![("Who waits for whom".to_owned(), WAITS.to_owned())]),
        ("\\d", name) => describe(name),
        _ => Meta::Unknown(format!("{word} is not here (\\? shows what is); psql has it")),
    }
}

const DATABASES: &str = "SELECT d.datname AS \"Name\", r.rolname AS \"Owner\", d.datcollate AS \"Collate\" \
    FROM pg_catalog.pg_database d JOIN pg_catalog.pg_roles r ON r.oid = d.datdba ORDER BY 1";

const WAITS: &str = "SELECT pid, blocked_by, round(waited_ms::numeric, 1) AS waited_ms, locktype, object, key, query AS wants_to_run, \
    taken_by, taken_ago AS statements_ago, state FROM clearway_lock_tree";

fn relations(kinds: &str) -> String {
    format!(
        "SELECT n.nspname AS \"Schema\", c.relname AS \"Name\", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' \
         WHEN 'S' THEN 'sequence' WHEN 'i' THEN 'index' WHEN 'm' THEN 'materialized view' ELSE 'partitioned table' END \
         AS \"Type\", r.rolname AS \"Owner\" FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         JOIN pg_catalog.pg_roles r ON r.oid = c.relowner WHERE c.relkind IN ({kinds}) \
         AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg_toast%' ORDER BY 1, 2"
    )
}

/// Columns and indexes of a relation, named as in a statement.
fn describe(name: &str) -> Meta {
    let literal = format!("'{}'", name.replace('\'', "''"));
    let columns = format!(
        "SELECT a.attname AS \"Column\", pg_catalog.format_type(a.atttypid, a.atttypmod) AS \"Type\", \
         CASE WHEN a.attnotnull THEN 'not null' ELSE '' END AS \"Nullable\", \
         (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid) FROM pg_catalog.pg_attrdef d \
         WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum) AS \"Default\" FROM pg_catalog.pg_attribute a \
         WHERE a.attrelid = {literal}::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
    );
    let indexes = format!(
        "SELECT c.relname AS \"Index\", CASE WHEN i.indisprimary THEN 'primary key' WHEN i.indisunique THEN 'unique' ELSE '' END \
         AS \"Kind\", pg_catalog.pg_get_indexdef(i.indexrelid) AS \"Definition\" FROM pg_catalog.pg_index i \
         JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = {literal}::regclass ORDER BY 1"
    );
    Meta::Show(vec![(format!("Columns of {name}"), columns), ("Indexes".to_owned(), indexes)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read() {
        assert_eq!((parse("\\q"), parse("\\?"), parse("\\timing")), (Meta::Quit, Meta::Help, Meta::Timing));
        let Meta::Show(queries) = parse("\\d it's; ") else { panic!("a relation") };
        assert!(queries.iter().all(|(_, query)| query.contains("'it''s'::regclass")));
        assert!(matches!(parse("\\copy x from y"), Meta::Unknown(what) if what.contains("psql")));
    }
}
