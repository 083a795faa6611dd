//! `clearway check access`: reads an access file, shows each rule with its line, and says which rule decides about a given connection.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clearway_base::sync::block_on;
use clearway_base::vfs::{RealVfs, Vfs};
use clearway_server::access::{AccessRequest, Line, Rule, Transport, read};
use clearway_server::door;

/// What was asked.
#[derive(Debug, PartialEq, Eq)]
pub struct Question {
    file: PathBuf,
    connection: Option<Connection>,
}

#[derive(Debug, PartialEq, Eq)]
struct Connection {
    way: Transport,
    database: String,
    user: String,
}

impl Question {
    /// A file, and the arguments of `--as`.
    ///
    /// # Errors
    /// The words do not name a connection.
    pub fn new(file: PathBuf, words: Option<Vec<String>>) -> Result<Question, String> {
        let Some(words) = words else { return Ok(Question { file, connection: None }) };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let address = |text: &str| text.parse::<IpAddr>().map_err(|_| format!("\"{text}\" is no IP address"));
        let (way, database, user) = match words.as_slice() {
            ["local", database, user] => (Transport::Unix, database, user),
            ["hostssl", database, user, from] => (Transport::Tls(address(from)?), database, user),
            ["hostnossl", database, user, from] => (Transport::Plain(address(from)?), database, user),
            _ => {
                let wanted = "--as wants: local DATABASE USER, or hostssl or hostnossl DATABASE USER ADDRESS";
                return Err(wanted.to_owned());
            }
        };
        let connection = Connection { way, database: (*database).to_owned(), user: (*user).to_owned() };
        Ok(Question { file, connection: Some(connection) })
    }
}

/// Checks the file and answers.
///
/// # Errors
/// The file can't be read, or lines of it are no rules; which, has been printed.
pub fn check(question: &Question) -> Result<(), String> {
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs::inline());
    let text = block_on(door::text(&vfs, &question.file)).map_err(|error| error.to_string())?;
    let lines = read(&text);
    for Line { number, rule } in &lines {
        match rule {
            Ok(rule) if question.connection.is_none() => println!("line {number}: {}", rule.text()),
            Ok(_) => {}
            Err(error) => eprintln!("line {number}: {error}"),
        }
    }
    let bad = lines.iter().filter(|line| line.rule.is_err()).count();
    if bad > 0 {
        return Err(format!(
            "{}: {bad} of {} lines are no rules; a server refuses the file",
            question.file.display(),
            lines.len()
        ));
    }
    match &question.connection {
        Some(connection) => decide(lines, connection).iter().for_each(|line| println!("{line}")),
        None => println!("{} rules", lines.len()),
    }
    Ok(())
}

/// What would happen, line by line: rules about members of roles can't be judged without the database, so each says what it depends on.
fn decide(lines: Vec<Line>, connection: &Connection) -> Vec<String> {
    let asked = AccessRequest { way: connection.way, database: &connection.database, user: &connection.user };
    let mut said = Vec::new();
    for rule in lines.into_iter().filter_map(|line| line.rule.ok()).filter(|rule| rule.may_fit(&asked)) {
        let shown = |rule: &Rule| format!("line {} decides: {}", rule.line, rule.text());
        // A role counts as a member of itself.
        if rule.names(&asked, &|role| role == asked.user) {
            said.push(shown(&rule));
            return said;
        }
        if rule.names(&asked, &|_| true) {
            let groups = rule.groups(&asked).join(" or ");
            said.push(format!("if \"{}\" is a member of {groups}, {}", asked.user, shown(&rule)));
        }
    }
    let otherwise = if said.is_empty() { "" } else { "else " };
    said.push(format!("{otherwise}no line fits: the connection is refused"));
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_decides_is_named() {
        let text = "local all all peer\nhostssl all +staff 10.0.0.0/8 trust\nhost all ann 10.0.0.0/8 reject\n";
        let said = |words: &[&str]| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            let question = Question::new("f".into(), Some(words)).expect("a connection");
            decide(read(text), &question.connection.expect("one"))
        };
        assert_eq!(said(&["local", "d", "u"]), ["line 1 decides: local all all peer"]);
        let ann = said(&["hostssl", "d", "ann", "10.1.1.1"]);
        assert_eq!(ann.len(), 2);
        assert!(ann[0].starts_with("if \"ann\" is a member of staff, line 2 decides"), "{ann:?}");
        assert!(ann[1].starts_with("line 3 decides"), "{ann:?}");
        assert_eq!(said(&["hostnossl", "d", "bob", "10.1.1.1"]), ["no line fits: the connection is refused"]);
        assert_eq!(said(&["hostssl", "d", "staff", "10.1.1.1"]).len(), 1, "a role is a member of itself");
    }
}
