//! The shell's own commands, which begin with a backslash.

use std::path::PathBuf;
use std::time::Duration;

/// What such a command asks for.
#[derive(Debug, PartialEq)]
pub enum Meta {
    /// End the shell.
    Quit,
    /// Say how to use it.
    Help,
    /// Show elapsed time from now on, or no longer; none: the other of the two.
    Timing(Option<bool>),
    /// Draw a line for each value from now on, or no longer; none: the other of the two.
    Expanded(Option<bool>),
    /// Connect to another database, as another role; none: the same.
    Connect {
        /// A name, or a URL.
        database: Option<String>,
        /// A role.
        role: Option<String>,
    },
    /// Say how the shell is connected.
    ConnectionInfo,
    /// Run the statements of a file.
    Include(PathBuf),
    /// Edit a file, or the statement that is being typed, or the last one.
    Edit(Option<PathBuf>),
    /// Run the statement, or the last one, again and again.
    Watch(Duration),
    /// Run the statement, or the last one.
    Go,
    /// Show what was typed of the statement.
    Print,
    /// Forget what was typed of the statement.
    Reset,
    /// Run these queries, each under a heading; an empty result is not drawn.
    Show(Vec<(String, String)>),
}

/// The text of `\?`.
pub const HELP: &str = "\
A statement ends with a semicolon and may take several lines; Ctrl-C cancels
it. The key Tab completes keywords and names. The prompt shows an open
transaction with a * and a failed one with a !.

  \\d [NAME]             relations, or columns and indexes of one
  \\dt \\dv \\dm \\di \\ds   tables, views, materialized views, indexes, sequences
  \\dn \\du \\l            schemas, roles, databases
  \\locks                waits for locks, and what is waited for

  \\g                    run the statement, as a semicolon does, or the last one
  \\watch [SECONDS]      run it again and again until Ctrl-C [2]
  \\e [FILE]             edit it, or a file, with the program that EDITOR names
  \\p \\r                 show it, forget it
  \\i FILE               run the statements of a file

  \\c [DATABASE [ROLE]]  connect to another database, as a role; also \\c URL
  \\conninfo             how the shell is connected
  \\x [on|off]           a line for each value
  \\timing [on|off]      how long statements take
  \\? \\q                 this text; the end
psql can do more, and talks to the same server.
";

/// Every command, for completion.
pub const COMMANDS: &[&str] = &[
    "\\?",
    "\\c",
    "\\conninfo",
    "\\d",
    "\\di",
    "\\dm",
    "\\dn",
    "\\ds",
    "\\dt",
    "\\du",
    "\\dv",
    "\\e",
    "\\g",
    "\\i",
    "\\l",
    "\\locks",
    "\\p",
    "\\q",
    "\\r",
    "\\timing",
    "\\watch",
    "\\x",
];

/// How long `\watch` waits between two runs.
const WATCH: Duration = Duration::from_secs(2);
/// The longest time that `\watch` takes, in seconds.
const WATCH_S_MAX: f64 = 86_400.0;

/// Reads a command.
///
/// # Errors
/// There is no such command, or its arguments are wrong.
pub fn parse(line: &str) -> Result<Meta, String> {
    let line = line.trim().trim_end_matches(';').trim_end();
    let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    // The name of a relation keeps its quotes: it is read as in a statement.
    if command == "\\d" && !rest.trim().is_empty() {
        return Ok(describe(rest.trim()));
    }
    let words = words(rest)?;
    let one = |kinds: &str, heading: &str| Meta::Show(vec![(heading.to_owned(), relations(kinds))]);
    let show = |heading: &str, query: &str| Meta::Show(vec![(heading.to_owned(), query.to_owned())]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(match (command, words.as_slice()) {
        ("\\q" | "\\quit", []) => Meta::Quit,
        ("\\?" | "\\h" | "\\help", _) => Meta::Help,
        ("\\timing", [] | [_]) => Meta::Timing(switch(command, &words)?),
        ("\\x", [] | [_]) => Meta::Expanded(switch(command, &words)?),
        ("\\c" | "\\connect", [] | [_] | [_, _]) => {
            let at = |at: usize| words.get(at).filter(|word| **word != "-").map(|word| (*word).to_owned());
            Meta::Connect { database: at(0), role: at(1) }
        }
        ("\\conninfo", []) => Meta::ConnectionInfo,
        ("\\i" | "\\include", [file]) => Meta::Include(PathBuf::from(file)),
        ("\\i" | "\\include", []) => return Err("\\i needs a file".to_owned()),
        ("\\e" | "\\edit", []) => Meta::Edit(None),
        ("\\e" | "\\edit", [file]) => Meta::Edit(Some(PathBuf::from(file))),
        ("\\watch", []) => Meta::Watch(WATCH),
        ("\\watch", [seconds]) => match seconds.parse::<f64>() {
            Ok(seconds) if (0.0..=WATCH_S_MAX).contains(&seconds) => Meta::Watch(Duration::from_secs_f64(seconds)),
            _ => return Err(format!("\\watch takes seconds from 0 to {WATCH_S_MAX}, found {seconds}")),
        },
        ("\\g", []) => Meta::Go,
        ("\\p" | "\\print", []) => Meta::Print,
        ("\\r" | "\\reset", []) => Meta::Reset,
        ("\\l", []) => show("Databases", DATABASES),
        ("\\d", []) => one("'r', 'v', 'S', 'i', 'm', 'p'", "Relations"),
        ("\\dt", []) => one("'r', 'p'", "Tables"),
        ("\\dv", []) => one("'v'", "Views"),
        ("\\dm", []) => one("'m'", "Materialized views"),
        ("\\di", []) => one("'i'", "Indexes"),
        ("\\ds", []) => one("'S'", "Sequences"),
        ("\\dn", []) => show("Schemas", SCHEMAS),
        ("\\du", []) => show("Roles", ROLES),
        ("\\locks", []) => show("Waits for locks", WAITS),
        (known, _) if COMMANDS.contains(&known) => {
            return Err(format!("{known} takes fewer arguments (\\? shows them)"));
        }
        _ => return Err(format!("the shell has no command {command} (\\? shows all; psql may have it)")),
    })
}

/// Arguments are apart by blanks; one in quotes may hold blanks.
fn words(mut rest: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { return Ok(words) };
        let (word, behind) = match first {
            '\'' | '"' => {
                let end = rest[1..].find(first).ok_or_else(|| format!("a quote is open: {rest}"))? + 1;
                (&rest[1..end], &rest[end + 1..])
            }
            _ => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        words.push(word.to_owned());
        rest = behind;
    }
}

fn switch(command: &str, words: &[&str]) -> Result<Option<bool>, String> {
    match words.first().copied() {
        None => Ok(None),
        Some("on") => Ok(Some(true)),
        Some("off") => Ok(Some(false)),
        Some(other) => Err(format!("{command} is on or off, found {other}")),
    }
}

const DATABASES: &str = "SELECT d.datname AS \"Name\", r.rolname AS \"Owner\", d.datcollate AS \"Collate\" \
    FROM pg_catalog.pg_database d JOIN pg_catalog.pg_roles r ON r.oid = d.datdba ORDER BY 1";

const SCHEMAS: &str = "SELECT n.nspname AS \"Name\", r.rolname AS \"Owner\" FROM pg_catalog.pg_namespace n \
    JOIN pg_catalog.pg_roles r ON r.oid = n.nspowner WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema' ORDER BY 1";

const ROLES: &str = "SELECT rolname AS \"Name\", rolsuper AS \"Superuser\", rolcanlogin AS \"Login\", rolcreatedb AS \"Creates databases\", \
    rolcreaterole AS \"Creates roles\" FROM pg_catalog.pg_roles WHERE rolname NOT LIKE 'pg\\_%' ORDER BY 1";

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
        assert_eq!(parse("\\q"), Ok(Meta::Quit));
        assert_eq!((parse("\\x"), parse("\\x off;")), (Ok(Meta::Expanded(None)), Ok(Meta::Expanded(Some(false)))));
        assert_eq!(parse("\\timing on"), Ok(Meta::Timing(Some(true))));
        assert_eq!(parse("\\watch 0.5"), Ok(Meta::Watch(Duration::from_millis(500))));
        assert_eq!(parse("\\i 'a b.sql'"), Ok(Meta::Include("a b.sql".into())));
        let connect = |database: Option<&str>, role: Option<&str>| {
            Ok(Meta::Connect { database: database.map(str::to_owned), role: role.map(str::to_owned) })
        };
        assert_eq!(parse("\\c"), connect(None, None));
        assert_eq!(parse("\\c - ann"), connect(None, Some("ann")));
        assert_eq!(parse("\\c shop"), connect(Some("shop"), None));
        let Ok(Meta::Show(queries)) = parse("\\d it's; ") else { panic!("a relation") };
        assert!(queries.iter().all(|(_, query)| query.contains("'it''s'::regclass")));
        for (line, error) in [
            ("\\copy x from y", "psql may have it"),
            ("\\i", "needs a file"),
            ("\\i 'a", "a quote is open"),
            ("\\x auto", "on or off"),
            ("\\watch -1", "seconds"),
            ("\\watch NaN", "seconds"),
            ("\\dt a b", "fewer arguments"),
        ] {
            assert!(parse(line).is_err_and(|said| said.contains(error)), "{line}");
        }
    }

    #[test]
    fn the_help_names_every_command_and_fits_eighty_columns() {
        for command in COMMANDS {
            assert!(HELP.split_whitespace().any(|word| word == *command), "{command}");
            assert!(!parse(command).is_err_and(|said| said.contains("no command")), "{command}");
        }
        assert!(HELP.lines().all(|line| line.len() <= 80));
    }
}
