//! Prints a server's error as psql does: message, the place in the statement, detail, hint.

use tokio_postgres::error::{DbError, ErrorPosition};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The widest part of a line that is shown, in columns.
const SHOWN_MAX: usize = 60;
/// What stays to the right of the place where the line is cut, in columns.
const RIGHT_OF_PLACE: usize = 10;

/// The text of an error, with its place in the statement that it ended.
pub fn text_of(statement: Option<&str>, error: &DbError) -> String {
    let mut text = format!("{}:  {}", error.severity(), error.message());
    if let (Some(statement), Some(ErrorPosition::Original(position))) = (statement, error.position()) {
        text.push('\n');
        text.push_str(&pointed_at(statement, *position as usize));
    }
    for (name, more) in [("DETAIL", error.detail()), ("HINT", error.hint()), ("CONTEXT", error.where_())] {
        if let Some(more) = more {
            text.push_str(&format!("\n{name}:  {more}"));
        }
    }
    text
}

/// A server's words; of other errors the whole chain.
pub fn chain(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        return text_of(None, said);
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text.push_str(&format!(": {next}"));
        cause = next.source();
    }
    text
}

/// Why there is no connection, and to which server.
pub fn not_connected(config: &tokio_postgres::Config, error: &tokio_postgres::Error) -> String {
    let host = |host: &tokio_postgres::config::Host| match host {
        tokio_postgres::config::Host::Tcp(name) => name.clone(),
        tokio_postgres::config::Host::Unix(path) => path.display().to_string(),
    };
    let hosts: Vec<String> = config.get_hosts().iter().map(host).collect();
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let hint = if error.as_db_error().is_some() { "" } else { " (is a server running? 'clearway serve' starts one)" };
    format!("could not connect to {}:{port}: {}{hint}", hosts.join(","), chain(error))
}

/// The line of the statement in which the character at `position` stands (counted from 1), and a sign below that character. A long line
/// is cut as libpq cuts it.
fn pointed_at(statement: &str, position: usize) -> String {
    let chars: Vec<char> = statement.chars().map(|c| if c == '\t' { ' ' } else { c }).collect();
    let place = position.saturating_sub(1).min(chars.len());
    let number = chars[..place].iter().filter(|&&c| c == '\n').count() + 1;
    let mut from = chars[..place].iter().rposition(|&c| c == '\n').map_or(0, |at| at + 1);
    let mut to = chars[place..].iter().position(|&c| matches!(c, '\n' | '\r')).map_or(chars.len(), |at| place + at);
    let columns = |from: usize, to: usize| chars[from..to].iter().map(|c| c.width().unwrap_or(0)).sum::<usize>();
    let (mut cut_left, mut cut_right) = ("", "");
    if columns(from, to) > SHOWN_MAX {
        if columns(from, place) + RIGHT_OF_PLACE > SHOWN_MAX {
            while columns(place, to) > RIGHT_OF_PLACE {
                to -= 1;
                cut_right = "...";
            }
            while columns(from, to) > SHOWN_MAX {
                from += 1;
                cut_left = "...";
            }
        } else {
            while columns(from, to) > SHOWN_MAX {
                to -= 1;
            }
            cut_right = "...";
        }
    }
    let head = format!("LINE {number}: {cut_left}");
    let shown: String = chars[from..to].iter().collect();
    let before = head.width() + columns(from, place);
    format!("{head}{shown}{cut_right}\n{:before$}^", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from psql 15.
    #[test]
    fn the_place_is_shown_as_psql_shows_it() {
        assert_eq!(pointed_at("selec 1;", 1), "LINE 1: selec 1;\n        ^");
        assert_eq!(pointed_at("select 1\n from", 15), "LINE 2:  from\n             ^");
        let statement = "select aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, ccccc from xy where a in (1, 2,3, 4,5 ,6);";
        let place = statement.find("xy").map_or(0, |at| at + 1);
        let shown = "LINE 1: ...bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, ccccc from xy where a...\n                                                             ^";
        assert_eq!(pointed_at(statement, place), shown);
        assert_eq!(pointed_at("select\t'日本', x", 14), "LINE 1: select '日本', x\n                       ^");
        // A position that no statement has is no reason to panic.
        assert_eq!(pointed_at("", 99), "LINE 1: \n        ^");
    }

    #[test]
    fn the_end_of_a_long_line_is_cut_where_that_is_enough() {
        let statement = format!("select x, {}", "y".repeat(80));
        let shown = format!("LINE 1: select x, {}...\n               ^", "y".repeat(50));
        assert_eq!(pointed_at(&statement, 8), shown);
    }
}
