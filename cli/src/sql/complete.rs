//! Completion by the Tab key: keywords, and the names of tables, columns, databases and files.
//!
//! # Structure
//! [`wanted`] decides from the text alone what may be at the cursor; [`Completer`] asks the server for the names. No names are cached, so
//! a name that was created a moment ago is found.

use std::cell::RefCell;
use std::rc::Rc;

use clearway_sql::syntax;
use rustyline::completion::{FilenameCompleter, Pair};
use rustyline::{Context, Helper, Result};
use tokio::runtime::Runtime;

use super::link::Link;
use super::meta::COMMANDS;

/// The most names that are shown.
const NAMES_MAX: usize = 500;

/// Words that begin a statement.
const VERBS: &[&str] = &[
    "abort",
    "alter",
    "analyze",
    "begin",
    "call",
    "checkpoint",
    "close",
    "cluster",
    "comment",
    "commit",
    "copy",
    "create",
    "deallocate",
    "declare",
    "delete",
    "discard",
    "do",
    "drop",
    "end",
    "execute",
    "explain",
    "fetch",
    "grant",
    "insert",
    "listen",
    "lock",
    "merge",
    "move",
    "notify",
    "prepare",
    "reassign",
    "refresh",
    "reindex",
    "release",
    "reset",
    "revoke",
    "rollback",
    "savepoint",
    "select",
    "set",
    "show",
    "start",
    "table",
    "truncate",
    "unlisten",
    "update",
    "vacuum",
    "values",
    "with",
];

/// What may stand at the cursor.
#[derive(Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing that could be offered: within a string or a comment.
    Nothing,
    /// A command of the shell.
    Command,
    /// A word that begins a statement.
    Verb,
    /// A database.
    Database,
    /// A file.
    File,
    /// A table or view; of this schema where one is named.
    Relation(Option<String>),
    /// A column of these relations (of any relation, where the list is empty). Where `words` is set, a keyword too.
    Column {
        /// The relations, each with its schema if that is named.
        of: Vec<(Option<String>, String)>,
        /// Whether a keyword may stand there.
        words: bool,
    },
}

/// A word or a sign of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A word in lower case.
    Word(String),
    /// A name in quotes.
    Quoted(String),
    /// Any other sign.
    Sign(char),
}

impl Token {
    fn name(&self) -> Option<&str> {
        match self {
            Token::Word(name) | Token::Quoted(name) => Some(name),
            Token::Sign(_) => None,
        }
    }

    fn is_word(&self, words: &[&str]) -> bool {
        matches!(self, Token::Word(word) if words.contains(&word.as_str()))
    }
}

/// What may stand at the end of `before`, which is the statement up to the cursor (and the command line from its backslash, where it is
/// one); `after` is the rest. With it comes the length in bytes of the word that is completed.
pub fn wanted(before: &str, after: &str) -> (usize, Wanted) {
    if before.starts_with('\\') {
        return in_command(before);
    }
    let word = word_at_end(before);
    let Some(mut tokens) = tokens(&before[..before.len() - word]) else { return (0, Wanted::Nothing) };
    // Only the statement at the cursor.
    if let Some(end) = tokens.iter().rposition(|token| *token == Token::Sign(';')) {
        tokens.drain(..=end);
    }
    let mut all = tokens.clone();
    all.push(Token::Word("?".to_owned()));
    all.extend(self::tokens(after).unwrap_or_default().into_iter().take_while(|token| *token != Token::Sign(';')));
    let tables = tables(&all);
    let wanted = match tokens.as_slice() {
        [] => Wanted::Verb,
        // The part behind a dot: of a schema, or of a table.
        [before @ .., qualifier, Token::Sign('.')] => {
            let qualifier = qualifier.name().unwrap_or("").to_owned();
            let table = tables.iter().find(|table| table.alias.as_deref().unwrap_or(&table.name) == qualifier);
            match table {
                _ if names_a_relation(before) => Wanted::Relation(Some(qualifier)),
                Some(table) => Wanted::Column { of: vec![(table.schema.clone(), table.name.clone())], words: false },
                None => Wanted::Column { of: vec![(None, qualifier)], words: false },
            }
        }
        before if names_a_relation(before) => Wanted::Relation(None),
        _ => Wanted::Column { of: tables.into_iter().map(|table| (table.schema, table.name)).collect(), words: true },
    };
    (word, wanted)
}

/// Behind a backslash.
fn in_command(line: &str) -> (usize, Wanted) {
    let Some((command, argument)) = line.split_once(char::is_whitespace) else { return (line.len(), Wanted::Command) };
    let word = word_at_end(argument);
    let before = argument[..argument.len() - word].trim();
    let wanted = match command {
        "\\c" | "\\connect" if before.is_empty() => Wanted::Database,
        "\\i" | "\\include" | "\\e" | "\\edit" => return (0, Wanted::File),
        "\\d" => match before.strip_suffix('.') {
            Some(schema) => Wanted::Relation(Some(schema.to_owned())),
            None if before.is_empty() => Wanted::Relation(None),
            None => Wanted::Nothing,
        },
        _ => Wanted::Nothing,
    };
    (word, wanted)
}

/// The length of the word, or of the open name in quotes, with which a text ends.
fn word_at_end(text: &str) -> usize {
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let quotes = text.matches('"').count();
    if quotes % 2 == 1 && tokens(text).is_none() {
        return text.len() - text.rfind('"').unwrap_or(0);
    }
    text.len() - text.trim_end_matches(word).len()
}

/// The words and signs of a text; none: it ends within a string, a name in quotes or a comment.
fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end_of = |close: &str, from: usize| rest[from..].find(close).map(|at| from + at);
        let length = match first {
            '\'' => end_of("'", 1)? + 1,
            '"' => {
                let end = end_of("\"", 1)?;
                tokens.push(Token::Quoted(rest[1..end].to_owned()));
                end + 1
            }
            '-' if rest.starts_with("--") => end_of("\n", 2)? + 1,
            '/' if rest.starts_with("/*") => end_of("*/", 2)? + 2,
            '$' if rest.starts_with("$$") => end_of("$$", 2)? + 2,
            c if c.is_alphabetic() || c == '_' => {
                let word = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$'));
                let length = rest.find(word).unwrap_or(rest.len());
                tokens.push(Token::Word(rest[..length].to_lowercase()));
                length
            }
            c => {
                if !c.is_whitespace() {
                    tokens.push(Token::Sign(c));
                }
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    Some(tokens)
}

/// Words behind which a relation is named.
const BEFORE_RELATIONS: &[&str] =
    &["from", "join", "update", "into", "table", "only", "truncate", "view", "lock", "analyze", "vacuum"];
/// Words that end a list of relations.
const BEHIND_RELATIONS: &[&str] = &[
    "where",
    "set",
    "values",
    "select",
    "group",
    "order",
    "having",
    "limit",
    "offset",
    "window",
    "union",
    "except",
    "intersect",
    "for",
    "on",
    "using",
    "returning",
    "natural",
    "left",
    "right",
    "full",
    "inner",
    "cross",
    "join",
    "default",
    "fetch",
    "as",
];

/// Whether behind these words a relation is named.
fn names_a_relation(before: &[Token]) -> bool {
    match before.last() {
        // A further one of a list.
        Some(Token::Sign(',')) => {
            let clause =
                before.iter().rev().find(|token| token.is_word(BEFORE_RELATIONS) || token.is_word(BEHIND_RELATIONS));
            let open = before.iter().rev().position(|token| *token == Token::Sign('('));
            let from = before.iter().rev().position(|token| token.is_word(BEFORE_RELATIONS));
            clause.is_some_and(|word| word.is_word(BEFORE_RELATIONS))
                && open.is_none_or(|open| from.is_some_and(|from| from < open))
        }
        Some(Token::Word(word)) if word == "on" => before.iter().any(|token| token.is_word(&["index"])),
        Some(word) => word.is_word(BEFORE_RELATIONS),
        None => false,
    }
}

/// A relation that a statement names.
struct Table {
    schema: Option<String>,
    name: String,
    alias: Option<String>,
}

fn tables(tokens: &[Token]) -> Vec<Table> {
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        if !names_a_relation(&tokens[..at]) || tokens[at].is_word(BEFORE_RELATIONS) {
            continue;
        }
        let Some(first) = tokens[at].name().filter(|name| *name != "?") else { continue };
        let (schema, name, mut next) = match (tokens.get(at + 1), tokens.get(at + 2).and_then(Token::name)) {
            (Some(Token::Sign('.')), Some(name)) => (Some(first.to_owned()), name.to_owned(), at + 3),
            _ => (None, first.to_owned(), at + 1),
        };
        if tokens.get(next).is_some_and(|token| token.is_word(&["as"])) {
            next += 1;
        }
        let alias = tokens.get(next).filter(|token| !token.is_word(BEHIND_RELATIONS)).and_then(Token::name);
        found.push(Table { schema, name, alias: alias.filter(|alias| *alias != "?").map(str::to_owned) });
    }
    found
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The queries that give the names; a name begins with `prefix`.
fn query(wanted: &Wanted, prefix: &str) -> Option<String> {
    let begins = |column: &str| format!("left({column}, {}) = {}", prefix.chars().count(), literal(prefix));
    let relations = "pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace";
    let kinds = "c.relkind IN ('r', 'v', 'm', 'p', 'f')";
    Some(match wanted {
        Wanted::Database => {
            format!(
                "SELECT pg_catalog.quote_ident(datname) FROM pg_catalog.pg_database WHERE {} ORDER BY 1 LIMIT {NAMES_MAX}",
                begins("datname")
            )
        }
        Wanted::Relation(Some(schema)) => format!(
            "SELECT pg_catalog.quote_ident(c.relname) FROM {relations} WHERE {kinds} AND n.nspname = {} AND {} ORDER BY 1 LIMIT {NAMES_MAX}",
            literal(schema),
            begins("c.relname")
        ),
        // Where nothing is typed the catalogs would hide what the user has made.
        Wanted::Relation(None) => format!(
            "SELECT pg_catalog.quote_ident(c.relname) FROM {relations} WHERE {kinds} AND pg_catalog.pg_table_is_visible(c.oid) AND {} {} \
             UNION SELECT pg_catalog.quote_ident(nspname) || '.' FROM pg_catalog.pg_namespace WHERE {} ORDER BY 1 LIMIT {NAMES_MAX}",
            begins("c.relname"),
            if prefix.is_empty() { "AND n.nspname <> 'pg_catalog'" } else { "" },
            begins("nspname")
        ),
        Wanted::Column { of, .. } => {
            let one = |(schema, name): &(Option<String>, String)| match schema {
                Some(schema) => format!("(c.relname = {} AND n.nspname = {})", literal(name), literal(schema)),
                None => format!("(c.relname = {} AND pg_catalog.pg_table_is_visible(c.oid))", literal(name)),
            };
            let any = "(pg_catalog.pg_table_is_visible(c.oid) AND n.nspname <> 'pg_catalog')".to_owned();
            let of = if of.is_empty() { any } else { of.iter().map(one).collect::<Vec<_>>().join(" OR ") };
            format!(
                "SELECT DISTINCT pg_catalog.quote_ident(a.attname) FROM {relations} JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid WHERE {kinds} AND a.attnum > 0 \
                 AND NOT a.attisdropped AND ({of}) AND {} ORDER BY 1 LIMIT {NAMES_MAX}",
                begins("a.attname")
            )
        }
        Wanted::Nothing | Wanted::Command | Wanted::Verb | Wanted::File => return None,
    })
}

/// Offers what may stand at the cursor.
pub struct Completer {
    runtime: Rc<Runtime>,
    link: Rc<RefCell<Link>>,
    /// The lines of the statement that were typed before.
    pending: Rc<RefCell<String>>,
    files: FilenameCompleter,
}

impl Completer {
    /// Asks this connection, which the shell may replace.
    pub fn new(runtime: Rc<Runtime>, link: Rc<RefCell<Link>>, pending: Rc<RefCell<String>>) -> Self {
        Self { runtime, link, pending, files: FilenameCompleter::new() }
    }

    fn names(&self, wanted: &Wanted, typed: &str) -> Vec<String> {
        let quoted = typed.strip_prefix('"');
        let prefix = quoted.map_or_else(|| typed.to_lowercase(), str::to_owned);
        let Some(query) = query(wanted, &prefix) else { return Vec::new() };
        // A name that needs no quotes gets none, also where the user began with them.
        self.link.borrow().names(&self.runtime, &query)
    }
}

impl rustyline::completion::Completer for Completer {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, context: &Context<'_>) -> Result<(usize, Vec<Pair>)> {
        let command = line[..pos].rfind('\\').filter(|at| tokens(&line[..*at]).is_some());
        let before = match command {
            Some(at) => line[at..pos].to_owned(),
            None => format!("{}{}", self.pending.borrow(), &line[..pos]),
        };
        let (length, wanted) = wanted(&before, &line[pos..]);
        let typed = &line[pos - length.min(pos)..pos];
        let words = match &wanted {
            Wanted::File => return self.files.complete(line, pos, context),
            Wanted::Command => {
                COMMANDS.iter().copied().filter(|name| name.starts_with(typed)).map(str::to_owned).collect()
            }
            Wanted::Verb => keywords(typed, VERBS.iter().copied()),
            Wanted::Column { words: true, .. } if !typed.is_empty() => {
                keywords(typed, syntax::keywords::all().map(|(word, ..)| word))
            }
            _ => Vec::new(),
        };
        let mut offered = self.names(&wanted, typed);
        offered.extend(words);
        offered.dedup();
        let pair = |name: String| Pair { display: name.clone(), replacement: name };
        Ok((pos - typed.len(), offered.into_iter().map(pair).collect()))
    }
}

/// The keywords that begin so, in the case of what was typed; in capital letters where nothing was.
fn keywords<'a>(typed: &str, all: impl Iterator<Item = &'a str>) -> Vec<String> {
    let lower = typed.to_lowercase();
    let capitals = !typed.starts_with(|c: char| c.is_lowercase());
    let fitting = all.filter(|word| word.starts_with(&lower));
    fitting.map(|word| if capitals { word.to_uppercase() } else { word.to_owned() }).collect()
}

impl rustyline::hint::Hinter for Completer {
    type Hint = String;
}
impl rustyline::highlight::Highlighter for Completer {}
impl rustyline::validate::Validator for Completer {}
impl Helper for Completer {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cursor is at the sign `|`.
    fn at(text: &str) -> (usize, Wanted) {
        let (before, after) = text.split_once('|').unwrap_or((text, ""));
        wanted(before, after)
    }

    fn columns(of: &[(Option<&str>, &str)], words: bool) -> Wanted {
        let owned = |(schema, name): &(Option<&str>, &str)| (schema.map(str::to_owned), (*name).to_owned());
        Wanted::Column { of: of.iter().map(owned).collect(), words }
    }

    #[test]
    fn what_may_stand_at_the_cursor() {
        let relation = |schema: Option<&str>| Wanted::Relation(schema.map(str::to_owned));
        for (text, length, wanted) in [
            ("sel|", 3, Wanted::Verb),
            ("select 1; upd|", 3, Wanted::Verb),
            ("select 'ab|", 0, Wanted::Nothing),
            ("select 1 -- ab|", 0, Wanted::Nothing),
            ("select * from ac|", 2, relation(None)),
            ("select * from a, b|", 1, relation(None)),
            ("select * from \"Od|", 3, relation(None)),
            ("insert into sh.|", 0, relation(Some("sh"))),
            ("create index on ac|", 2, relation(None)),
            ("select ow| from sh.accounts a where id = 1", 2, columns(&[(Some("sh"), "accounts")], true)),
            ("select * from accounts where |", 0, columns(&[(None, "accounts")], true)),
            ("select * from accounts a join b on a.i|", 1, columns(&[(None, "accounts")], false)),
            ("select f(a, b|) from t", 1, columns(&[(None, "t")], true)),
            ("select x.y|", 1, columns(&[(None, "x")], false)),
            ("update t set a|", 1, columns(&[(None, "t")], true)),
            ("insert into t (a, b|", 1, columns(&[(None, "t")], true)),
            ("select a|", 1, columns(&[], true)),
            ("\\d|", 2, Wanted::Command),
            ("\\d ac|", 2, relation(None)),
            ("\\d sh.ac|", 2, relation(Some("sh"))),
            ("\\c sh|", 2, Wanted::Database),
            ("\\i a|", 0, Wanted::File),
            ("\\x o|", 1, Wanted::Nothing),
        ] {
            assert_eq!(at(text), (length, wanted), "{text}");
        }
    }

    #[test]
    fn keywords_keep_the_case_of_what_was_typed() {
        assert_eq!(keywords("SEL", ["select", "set"].into_iter()), ["SELECT"]);
        assert_eq!(keywords("se", ["select", "set"].into_iter()), ["select", "set"]);
    }

    #[test]
    fn what_is_typed_is_a_literal_in_the_query() {
        let query = query(&Wanted::Relation(Some("a'b".to_owned())), "x'y").unwrap_or_default();
        assert!(query.contains("n.nspname = 'a''b'") && query.contains("left(c.relname, 3) = 'x''y'"), "{query}");
    }
}
