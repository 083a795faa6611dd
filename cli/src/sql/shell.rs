//! The line loop: turns typed lines into statements and commands, and shows their results.

use std::cell::RefCell;
use std::io::{BufRead as _, IsTerminal as _};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use clearway_base::waits::{now_ns, wall_us};
use clearway_values::types::datetime::{Format, format_timestamp};
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{CompletionType, Editor};
use tokio::runtime::Runtime;
use tokio_postgres::Config;

use super::complete::Completer;
use super::edit::{Lines, edited};
use super::history::{ENTRIES_MAX, Kept};
use super::link::{Link, config, pause};
use super::meta::{self, Meta};
use super::password;
use super::split::{self, First};
use super::table::Table;

/// How deep files of statements may include each other.
const INCLUDES_MAX: usize = 16;
/// From the epoch of the system's clock to that of the type timestamp.
const TO_TIMESTAMP_US: i64 = 946_684_800_000_000;

/// What the loop does next.
enum Next {
    More,
    Quit,
}

/// The shell.
pub struct Shell {
    runtime: Rc<Runtime>,
    link: Rc<RefCell<Link>>,
    /// What was typed of a statement that is not complete.
    pending: Rc<RefCell<String>>,
    /// The statement that was sent last.
    last: String,
    /// What came from the editor, for the history.
    edited: Option<String>,
    timing: bool,
    expanded: bool,
    /// How many files include each other now.
    includes: usize,
}

impl Shell {
    /// Connects.
    ///
    /// # Errors
    /// No connection.
    pub fn connect(runtime: Rc<Runtime>, url: &str) -> Result<Self, String> {
        let hint = "is a server running? 'clearway serve' starts one, 'clearway sql --data DIR' needs none";
        let link = connect(&runtime, config(url)?).map_err(|error| format!("could not connect: {error} ({hint})"))?;
        Ok(Self {
            runtime,
            link: Rc::new(RefCell::new(link)),
            pending: Rc::default(),
            last: String::new(),
            edited: None,
            timing: false,
            expanded: false,
            includes: 0,
        })
    }

    /// Lines from a terminal: an error is shown, and the shell continues.
    ///
    /// # Errors
    /// The terminal or the server is gone.
    pub fn interact(&mut self) -> Result<(), String> {
        println!("clearway sql {}: \\? for help, \\q to quit", env!("CARGO_PKG_VERSION"));
        let settings = rustyline::Config::builder().max_history_size(ENTRIES_MAX).map_err(|error| error.to_string())?;
        let settings = settings.history_ignore_space(true).completion_type(CompletionType::List).build();
        let editor = Editor::<Completer, DefaultHistory>::with_config(settings);
        let mut editor = editor.map_err(|error| error.to_string())?;
        let completer = Completer::new(Rc::clone(&self.runtime), Rc::clone(&self.link), Rc::clone(&self.pending));
        editor.set_helper(Some(completer));
        let mut kept = Kept::load(&mut editor);
        let mut typed = String::new();
        loop {
            let prompt = self.prompt();
            match editor.readline(&prompt) {
                Ok(line) => {
                    typed.push_str(&line);
                    typed.push('\n');
                    let next = self.line(&line);
                    if self.pending.borrow().is_empty() {
                        kept.add(&mut editor, &std::mem::take(&mut typed));
                    }
                    if let Some(text) = self.edited.take() {
                        kept.add(&mut editor, &text);
                    }
                    match next {
                        Ok(Next::Quit) => return Ok(()),
                        Ok(Next::More) => {}
                        Err(error) => {
                            eprintln!("{error}");
                            self.reconnect_if_lost()?;
                        }
                    }
                }
                Err(ReadlineError::Interrupted) => {
                    self.pending.borrow_mut().clear();
                    typed.clear();
                }
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Lines from a pipe or a file: the first error ends it.
    ///
    /// # Errors
    /// The first statement that fails.
    pub fn pipe(&mut self) -> Result<(), String> {
        for line in std::io::stdin().lock().lines() {
            match self.line(&line.map_err(|error| error.to_string())?)? {
                Next::Quit => return Ok(()),
                Next::More => {}
            }
        }
        self.rest()
    }

    /// As psql's: database, `=` or for a further line `-`, `*` in a transaction and `!` in one that has failed.
    fn prompt(&self) -> String {
        let link = self.link.borrow();
        let line = if self.pending.borrow().is_empty() { "=" } else { "-" };
        format!("{}{line}{}> ", link.database(), link.transaction())
    }

    fn reconnect_if_lost(&mut self) -> Result<(), String> {
        if !self.link.borrow().is_lost() {
            return Ok(());
        }
        eprintln!("The connection is lost. A transaction that was open is rolled back. Connecting again:");
        let config = self.link.borrow().config().clone();
        let link = connect(&self.runtime, config).map_err(|error| format!("the connection is lost: {error}"))?;
        *self.link.borrow_mut() = link;
        eprintln!("connected.");
        Ok(())
    }

    /// Takes a line: runs the statements that it completes and the commands in it.
    fn line(&mut self, line: &str) -> Result<Next, String> {
        let mut text = self.pending.take();
        text.push_str(line);
        text.push('\n');
        loop {
            match split::first(&text) {
                Some(First::Statement(end)) => {
                    let rest = text.split_off(end);
                    let statement = std::mem::replace(&mut text, rest.trim_start().to_owned());
                    self.statement(&statement)?;
                }
                Some(First::Command(at)) => {
                    let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
                    let (before, rest) = (text[..at].trim_end().to_owned(), text[end..].trim_start().to_owned());
                    let command = text[at..end].to_owned();
                    *self.pending.borrow_mut() = if split::is_blank(&before) { String::new() } else { before };
                    if let Next::Quit = self.command(meta::parse(&command)?)? {
                        return Ok(Next::Quit);
                    }
                    // What the command has left of the statement goes on in the next line.
                    text = self.pending.take();
                    if !text.is_empty() {
                        text.push('\n');
                    }
                    text.push_str(&rest);
                }
                None => break,
            }
        }
        if !text.trim().is_empty() {
            *self.pending.borrow_mut() = text;
        }
        Ok(Next::More)
    }

    fn command(&mut self, command: Meta) -> Result<Next, String> {
        let state = |on: bool| if on { "on" } else { "off" };
        match command {
            Meta::Quit => return Ok(Next::Quit),
            Meta::Help => print!("{}", meta::HELP),
            Meta::Timing(on) => {
                self.timing = on.unwrap_or(!self.timing);
                println!("Timing is {}.", state(self.timing));
            }
            Meta::Expanded(on) => {
                self.expanded = on.unwrap_or(!self.expanded);
                println!("Expanded display is {}.", state(self.expanded));
            }
            Meta::Connect { database, role } => self.connect_to(database, role)?,
            Meta::ConnectionInfo => println!("You are connected to {}.", place(self.link.borrow().config())),
            Meta::Include(file) => return self.include(&file),
            Meta::Edit(file) => return self.edit(file.as_deref()),
            Meta::Watch(every) => {
                let statement = self.take_statement()?;
                self.watch(&statement, every)?;
            }
            Meta::Go => {
                let statement = self.take_statement()?;
                self.statement(&statement)?;
            }
            Meta::Print => {
                let pending = self.pending.borrow();
                println!("{}", if pending.is_empty() { &self.last } else { pending.trim_end() });
            }
            Meta::Reset => {
                self.pending.borrow_mut().clear();
                println!("Query buffer reset (cleared).");
            }
            Meta::Show(queries) => {
                for (at, (heading, query)) in queries.into_iter().enumerate() {
                    let answer = self.link.borrow().ask(&self.runtime, &query)?;
                    if let Some(table) = answer.table.filter(|table| at == 0 || !table.rows.is_empty()) {
                        println!("{heading}\n{}", self.drawn(&table));
                    }
                }
            }
        }
        Ok(Next::More)
    }

    /// The statement that is being typed, or the last one.
    fn take_statement(&mut self) -> Result<String, String> {
        let pending = self.pending.take();
        let statement = if pending.is_empty() { self.last.clone() } else { pending };
        if statement.is_empty() { Err("there is no statement yet".to_owned()) } else { Ok(statement) }
    }

    /// Runs what the end of the input left without a semicolon.
    fn rest(&mut self) -> Result<(), String> {
        let rest = self.pending.take();
        if split::is_blank(&rest) { Ok(()) } else { self.statement(&rest) }
    }

    /// Runs a statement and shows what came of it.
    fn statement(&mut self, statement: &str) -> Result<(), String> {
        if !statement.trim_matches(|c: char| c.is_whitespace() || c == ';').is_empty() {
            self.last = statement.trim().to_owned();
        }
        self.show(statement)
    }

    fn show(&self, statement: &str) -> Result<(), String> {
        let began = now_ns();
        if is_copy_of_the_terminal(statement) {
            return Err("the shell has no COPY to or from the terminal: psql has it".to_owned());
        }
        let answer = self.link.borrow().ask(&self.runtime, statement)?;
        let changes = ["INSERT", "UPDATE", "DELETE", "MERGE"].iter().any(|verb| answer.tag.starts_with(verb));
        if let Some(table) = &answer.table {
            println!("{}", self.drawn(table));
        }
        if (answer.table.is_none() || changes) && !answer.tag.is_empty() {
            println!("{}", answer.tag);
        }
        if self.timing {
            println!("Time: {:.3} ms", now_ns().saturating_sub(began) as f64 / 1e6);
        }
        Ok(())
    }

    fn drawn(&self, table: &Table) -> String {
        if self.expanded { table.draw_expanded() } else { table.draw() }
    }

    fn watch(&mut self, statement: &str, every: Duration) -> Result<(), String> {
        self.last = statement.trim().to_owned();
        loop {
            let now = wall_us().div_euclid(1_000_000) * 1_000_000 - TO_TIMESTAMP_US;
            println!("{}+00 (every {}s)\n", format_timestamp(now, &Format::default()), every.as_secs_f64());
            self.show(statement)?;
            if !pause(&self.runtime, every)? {
                println!();
                return Ok(());
            }
        }
    }

    /// Keeps the connection where the new one fails.
    fn connect_to(&mut self, database: Option<String>, role: Option<String>) -> Result<(), String> {
        let config = match &database {
            Some(url) if url.contains("://") || url.contains('=') => config(url)?,
            _ => self.link.borrow().config().clone(),
        };
        let mut config = config;
        if let Some(name) = database.filter(|name| !name.contains("://") && !name.contains('=')) {
            config.dbname(name);
        }
        if let Some(role) = role {
            config.user(role);
        }
        let link =
            connect(&self.runtime, config).map_err(|error| format!("{error}\nThe previous connection is kept."))?;
        println!("You are now connected to {}.", place(link.config()));
        *self.link.borrow_mut() = link;
        Ok(())
    }

    /// Runs the statements of a file; the first error ends it.
    fn include(&mut self, file: &Path) -> Result<Next, String> {
        if self.includes == INCLUDES_MAX {
            return Err(format!("{}: files include each other more than {INCLUDES_MAX} deep", file.display()));
        }
        let mut lines = Lines::open(file)?;
        self.includes += 1;
        let mut number = 0;
        let mut run = || {
            while let Some(line) = lines.next()? {
                number += 1;
                if let Next::Quit = self.line(&line)? {
                    // It ends the file.
                    return Ok(());
                }
            }
            self.rest()
        };
        let done = run().map_err(|error| format!("{}:{number}: {error}", file.display()));
        self.includes -= 1;
        done.map(|()| Next::More)
    }

    /// The statement in the editor; what comes back is taken as if it were typed.
    fn edit(&mut self, file: Option<&Path>) -> Result<Next, String> {
        let pending = self.pending.take();
        let before = if pending.is_empty() { self.last.clone() } else { pending.clone() };
        let text = edited(&before, file);
        // Ctrl-C in the editor is not meant for the next statement: the signals that came until now are taken here.
        let _ = pause(&self.runtime, Duration::from_millis(1))?;
        let text = text?;
        if file.is_none() && text.trim_end() == before.trim_end() {
            *self.pending.borrow_mut() = pending;
            return Ok(Next::More);
        }
        println!("{}", text.trim_end());
        self.edited = Some(text.clone());
        self.line(text.trim_end())
    }
}

/// Connects; asks for a password where the server wants one and a user sits at the terminal.
fn connect(runtime: &Runtime, mut config: Config) -> Result<Link, String> {
    match Link::connect(runtime, config.clone()) {
        Err(error) if error.contains("password missing") && std::io::stdin().is_terminal() => {
            config.password(password::ask(config.get_user().unwrap_or("postgres"))?);
            Link::connect(runtime, config)
        }
        other => other,
    }
}

/// A connection in words.
fn place(config: &Config) -> String {
    let user = config.get_user().unwrap_or("postgres");
    format!("database \"{}\" as user \"{user}\"", config.get_dbname().unwrap_or(user))
}

fn is_copy_of_the_terminal(statement: &str) -> bool {
    let upper = statement.trim_start().to_ascii_uppercase();
    upper.starts_with("COPY") && (upper.contains("STDIN") || upper.contains("STDOUT"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_of_the_terminal_is_seen() {
        assert!(is_copy_of_the_terminal("copy t from stdin;") && !is_copy_of_the_terminal("select 'copy'"));
    }
}
