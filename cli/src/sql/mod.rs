//! `clearway sql`: a small interactive shell for SQL, for where psql is not installed.
//!
//! # Structure
//! `split` (where a statement ends), `meta` (commands with a backslash), `table` (results as psql draws them), `server` (a server of
//! its own for `--data`); here: the line loop and the conversation.
//!
//! # Not here
//! COPY to and from the terminal, TLS, formats, variables, scripts: psql has them.

mod meta;
mod server;
mod split;
mod table;

use std::io::{BufRead as _, IsTerminal as _};
use std::path::PathBuf;

use clearway_base::waits::now_ns;
use meta::Meta;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use server::Served;
use table::Table;
use tokio_postgres::{AsyncMessage, Client, NoTls, SimpleQueryMessage};

/// Where a server listens if nothing else is said.
const DEFAULT_URL: &str = "postgresql://postgres@127.0.0.1:5433/clearway";

/// Whom to talk to.
#[derive(Debug, PartialEq, Eq)]
pub enum Target {
    /// A server: `postgresql://...`, or `name=value` pairs; `None`: the default.
    Url(Option<String>),
    /// A directory, which is served as long as the shell runs.
    Data(PathBuf),
}

/// Runs the shell until `\q` or the end of the input.
///
/// # Errors
/// No connection; where the input is no terminal also the first statement that fails.
pub fn run(target: &Target) -> Result<(), String> {
    let (served, url) = match target {
        Target::Url(url) => (None, url.clone().unwrap_or_else(|| DEFAULT_URL.to_owned())),
        Target::Data(dir) => {
            let served = Served::start(dir)?;
            let url = served.url();
            (Some(served), url)
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let mut shell = Shell::connect(runtime, &url)?;
    let done = if std::io::stdin().is_terminal() { shell.interact() } else { shell.pipe() };
    drop(shell);
    let stopped = served.map_or(Ok(()), Served::stop);
    done.and(stopped)
}

/// What the loop goes on with.
enum Next {
    More,
    Quit,
}

struct Shell {
    runtime: tokio::runtime::Runtime,
    client: Client,
    database: String,
    /// What was typed of a statement that is not complete.
    pending: String,
    timing: bool,
}

impl Shell {
    fn connect(runtime: tokio::runtime::Runtime, url: &str) -> Result<Self, String> {
        let mut config = url.parse::<tokio_postgres::Config>().map_err(|error| format!("{url}: {}", chain(&error)))?;
        if config.get_user().is_none() {
            config.user("postgres");
        }
        if let (None, Ok(password)) = (config.get_password(), std::env::var("PGPASSWORD")) {
            config.password(password);
        }
        let database = config.get_dbname().or(config.get_user()).unwrap_or("postgres").to_owned();
        let client = runtime.block_on(async {
            let (client, mut connection) = config.connect(NoTls).await?;
            tokio::spawn(async move {
                while let Some(message) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
                    match message {
                        Ok(AsyncMessage::Notice(notice)) => eprintln!("{}:  {}", notice.severity(), notice.message()),
                        Ok(_) => {}
                        // The next statement tells.
                        Err(_) => return,
                    }
                }
            });
            Ok::<_, tokio_postgres::Error>(client)
        });
        let hint = "is a server running? 'clearway serve' starts one, 'clearway sql --data DIR' needs none";
        let client = client.map_err(|error| format!("could not connect: {} ({hint})", chain(&error)))?;
        Ok(Self { runtime, client, database, pending: String::new(), timing: false })
    }

    /// Lines from a terminal: an error is shown, and the shell goes on.
    fn interact(&mut self) -> Result<(), String> {
        println!("clearway sql {}: \\? for help, \\q to quit", env!("CARGO_PKG_VERSION"));
        let mut editor = DefaultEditor::new().map_err(|error| error.to_string())?;
        loop {
            let prompt = format!("{}{}> ", self.database, if self.pending.is_empty() { "=" } else { "-" });
            match editor.readline(&prompt) {
                Ok(line) => {
                    let _ = editor.add_history_entry(&line);
                    match self.line(&line) {
                        Ok(Next::Quit) => return Ok(()),
                        Ok(Next::More) => {}
                        Err(error) => {
                            eprintln!("{error}");
                            if self.client.is_closed() {
                                return Err("the connection is lost".to_owned());
                            }
                        }
                    }
                }
                Err(ReadlineError::Interrupted) => self.pending.clear(),
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Lines from a pipe or a file: the first error ends it.
    fn pipe(&mut self) -> Result<(), String> {
        for line in std::io::stdin().lock().lines() {
            match self.line(&line.map_err(|error| error.to_string())?)? {
                Next::Quit => return Ok(()),
                Next::More => {}
            }
        }
        let rest = std::mem::take(&mut self.pending);
        if split::is_blank(&rest) { Ok(()) } else { self.statement(&rest) }
    }

    fn line(&mut self, line: &str) -> Result<Next, String> {
        if split::is_blank(&self.pending) && line.trim_start().starts_with('\\') {
            self.pending.clear();
            return self.meta(line);
        }
        self.pending.push_str(line);
        self.pending.push('\n');
        while let Some(end) = split::statement_end(&self.pending) {
            let rest = self.pending.split_off(end);
            let statement = std::mem::replace(&mut self.pending, rest.trim_start().to_owned());
            if let Err(error) = self.statement(&statement) {
                self.pending.clear();
                return Err(error);
            }
        }
        if self.pending.trim().is_empty() {
            self.pending.clear();
        }
        Ok(Next::More)
    }

    fn meta(&mut self, line: &str) -> Result<Next, String> {
        match meta::parse(line) {
            Meta::Quit => return Ok(Next::Quit),
            Meta::Help => print!("{}", meta::HELP),
            Meta::Timing => {
                self.timing = !self.timing;
                println!("Timing is {}.", if self.timing { "on" } else { "off" });
            }
            Meta::Unknown(what) => return Err(what),
            Meta::Show(queries) => {
                for (at, (heading, query)) in queries.into_iter().enumerate() {
                    let answer = self.ask(&query)?;
                    if let Some(table) = answer.table.filter(|table| at == 0 || !table.rows.is_empty()) {
                        println!("{heading}\n{}", table.draw());
                    }
                }
            }
        }
        Ok(Next::More)
    }

    /// Runs a statement and shows what came of it.
    fn statement(&mut self, statement: &str) -> Result<(), String> {
        let began = now_ns();
        if is_copy_of_the_terminal(statement) {
            return Err("COPY to or from the terminal is not here: psql has it".to_owned());
        }
        let answer = self.ask(statement)?;
        match answer.table {
            Some(table) => println!("{}", table.draw()),
            None => println!("{}", tag(statement, answer.count)),
        }
        if self.timing {
            println!("Time: {:.3} ms", now_ns().saturating_sub(began) as f64 / 1e6);
        }
        Ok(())
    }

    /// One statement; Ctrl-C cancels it.
    fn ask(&self, statement: &str) -> Result<Answer, String> {
        let query = self.client.simple_query(statement);
        let messages = self.runtime.block_on(async {
            tokio::pin!(query);
            loop {
                tokio::select! {
                    done = &mut query => return done,
                    _ = tokio::signal::ctrl_c() => {
                        // If the server can't be told, the statement goes on, and so does the wait for it.
                        let _ = self.client.cancel_token().cancel_query(NoTls).await;
                    }
                }
            }
        });
        let mut answer = Answer::default();
        for message in messages.map_err(|error| chain(&error))? {
            match message {
                SimpleQueryMessage::RowDescription(columns) => {
                    let columns = columns.iter().map(|column| column.name().to_owned()).collect();
                    answer.table = Some(Table { columns, rows: Vec::new() });
                }
                SimpleQueryMessage::Row(row) => {
                    let cells = (0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect();
                    answer.table.get_or_insert_default().rows.push(cells);
                }
                SimpleQueryMessage::CommandComplete(count) => answer.count = count,
                _ => {}
            }
        }
        Ok(answer)
    }
}

#[derive(Default)]
struct Answer {
    table: Option<Table>,
    count: u64,
}

fn is_copy_of_the_terminal(statement: &str) -> bool {
    let upper = statement.trim_start().to_ascii_uppercase();
    upper.starts_with("COPY") && (upper.contains("STDIN") || upper.contains("STDOUT"))
}

/// What psql prints after a statement without rows. The client library keeps only the count of the server's tag, so its words are
/// taken from the statement.
fn tag(statement: &str, count: u64) -> String {
    let words: Vec<String> =
        statement.split_whitespace().take(3).map(|w| w.trim_end_matches(';').to_ascii_uppercase()).collect();
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    match (word(0), word(1)) {
        ("INSERT", _) => format!("INSERT 0 {count}"),
        (verb @ ("UPDATE" | "DELETE" | "MERGE" | "COPY"), _) => format!("{verb} {count}"),
        ("CREATE", "OR") => "CREATE VIEW".to_owned(),
        ("CREATE", "UNIQUE") => "CREATE INDEX".to_owned(),
        (verb @ ("CREATE" | "DROP" | "ALTER"), kind) => format!("{verb} {kind}"),
        ("END", _) => "COMMIT".to_owned(),
        ("ABORT", _) => "ROLLBACK".to_owned(),
        ("START", _) => "START TRANSACTION".to_owned(),
        (verb, _) => verb.to_owned(),
    }
}

/// A server's words as psql prints them; of other errors the whole chain.
pub(crate) fn chain(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        let mut text = format!("{}:  {}", said.severity(), said.message());
        for (name, more) in [("DETAIL", said.detail()), ("HINT", said.hint()), ("CONTEXT", said.where_())] {
            if let Some(more) = more {
                text.push_str(&format!("\n{name}:  {more}"));
            }
        }
        return text;
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text.push_str(&format!(": {next}"));
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_as_psql_prints_them() {
        for (statement, printed) in [
            ("insert into t values (1)", "INSERT 0 3"),
            ("update t set a = 1", "UPDATE 3"),
            ("create table t (a int)", "CREATE TABLE"),
            ("create unique index on t (a)", "CREATE INDEX"),
            ("begin;", "BEGIN"),
            ("end", "COMMIT"),
        ] {
            assert_eq!(tag(statement, 3), printed);
        }
        assert!(is_copy_of_the_terminal("copy t from stdin;") && !is_copy_of_the_terminal("select 'copy'"));
    }
}
