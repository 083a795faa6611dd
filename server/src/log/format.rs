//! The formats of a log line: text with a prefix, CSV, JSON; as PostgreSQL 15 writes them.

use std::collections::HashMap;
use std::fmt::Write as _;

use clearway_sql::context::log_line::{Line, Session};
use clearway_sql::types::datetime::{EPOCH_DAYS, civil_from_days};
use clearway_sql::types::json::escape;

/// A form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text with `log_line_prefix`.
    Text,
    /// PostgreSQL's csvlog.
    Csv,
    /// PostgreSQL's jsonlog.
    Json,
    /// MySQL's slow query log: statements with their durations alone.
    Slow,
}

impl Form {
    /// The name of its file.
    pub(super) fn file(self) -> &'static str {
        match self {
            Form::Text => "clearway.log",
            Form::Csv => "clearway.csv",
            Form::Json => "clearway.json",
            Form::Slow => "clearway-slow.log",
        }
    }
}

/// Sessions whose lines are numbered.
const NUMBERED_MAX: usize = 10_000;

/// Writes lines and numbers them by session.
#[derive(Default)]
pub(super) struct Formatter {
    numbers: HashMap<i32, u64>,
}

impl Formatter {
    pub(super) fn write(&mut self, form: Form, prefix: &str, line: &Line, out: &mut Vec<u8>) {
        let pid = line.session.as_ref().map_or(0, |session| session.pid);
        if self.numbers.len() > NUMBERED_MAX {
            self.numbers.clear();
        }
        let number = self.numbers.entry(pid).or_default();
        *number += u64::from(form != Form::Slow);
        let text = match form {
            Form::Text => text(prefix, line, *number),
            Form::Csv => csv(line, *number),
            Form::Json => json(line, *number),
            Form::Slow => slow(line),
        };
        out.extend_from_slice(text.as_bytes());
    }
}

/// An entry of MySQL's slow query log, as pt-query-digest reads it; empty for what is no statement.
fn slow(line: &Line) -> String {
    let (Some(slow), Some(session)) = (&line.slow, &line.session) else { return String::new() };
    // LOG-2: names can't begin a line of their own.
    let plain = |name: &str| {
        name.chars().map(|c| if c.is_control() || c.is_whitespace() { '?' } else { c }).collect::<String>()
    };
    let host = session.client.map_or_else(|| "localhost".to_owned(), |client| client.ip().to_string());
    let at = time(line.at_us, false).replacen(' ', "T", 1).replace(" UTC", "");
    let (user, database) = (plain(&session.user), plain(&session.database));
    let text = slow.text.trim().trim_end_matches(';');
    // A line of the text that looks like the head of an entry is taken for a comment.
    let text =
        text.lines().map(|l| if l.starts_with('#') { format!(" {l}") } else { l.to_owned() }).collect::<Vec<_>>();
    format!(
        "# Time: {at}.{:06}Z\n# User@Host: {user}[{user}] @ {host} [{host}]  Id: {}\n# Schema: {database}  Last_errno: 0  Killed: 0\n\
         # Query_time: {:.6}  Lock_time: {:.6}  Rows_sent: {}  Rows_examined: {}  Rows_affected: {}\n# Full_scan: {}  Full_join: No\n\
         SET timestamp={};\n{};\n",
        line.at_us.rem_euclid(1_000_000),
        session.pid,
        line.duration_ns as f64 / 1e9,
        slow.lock_ns as f64 / 1e9,
        slow.sent,
        slow.examined,
        slow.affected,
        if slow.full_scan { "Yes" } else { "No" },
        line.at_us.div_euclid(1_000_000),
        text.join("\n")
    )
}

/// `2026-11-22 10:00:00.123 UTC`; without milliseconds on demand.
fn time(us: i64, milliseconds: bool) -> String {
    let (days, in_day) = (us.div_euclid(86_400_000_000), us.rem_euclid(86_400_000_000));
    let (year, month, day) = civil_from_days(days - EPOCH_DAYS);
    let seconds = in_day / 1_000_000;
    let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = if milliseconds { format!(".{:03}", in_day / 1_000 % 1_000) } else { String::new() };
    format!("{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02}{fraction} UTC")
}

fn session_id(session: Option<&Session>) -> String {
    session.map_or_else(String::new, |s| format!("{:x}.{:x}", s.started_us / 1_000_000, s.pid))
}

fn number_of(session: Option<&Session>) -> String {
    session.map_or_else(|| std::process::id().to_string(), |session| session.pid.to_string())
}

/// LOG-2
fn indented(text: &str) -> String {
    text.replace('\n', "\n\t")
}

fn text(prefix: &str, line: &Line, number: u64) -> String {
    let head = expand(prefix, line, number);
    let mut out = format!("{head}{}:  {}\n", line.severity.name(), indented(&line.message));
    let parts =
        [("DETAIL", &line.detail), ("HINT", &line.hint), ("CONTEXT", &line.context), ("STATEMENT", &line.statement)];
    for (name, part) in parts.into_iter().filter(|(_, part)| !part.is_empty()) {
        let _ = writeln!(out, "{head}{name}:  {}", indented(part));
    }
    out
}

/// `log_line_prefix`. `%q` ends it for lines that are about no session.
fn expand(prefix: &str, line: &Line, number: u64) -> String {
    let session = line.session.as_ref();
    let named = |name: Option<&str>| {
        let name = name.filter(|name| !name.is_empty()).unwrap_or("[unknown]");
        // LOG-2
        name.chars().map(|c| if c.is_control() { '?' } else { c }).collect::<String>()
    };
    let client = session.and_then(|s| s.client);
    let mut out = String::new();
    let mut chars = prefix.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut width = String::new();
        let mut escape = chars.next();
        while let Some(digit) = escape.filter(|c| c.is_ascii_digit() || (*c == '-' && width.is_empty())) {
            width.push(digit);
            escape = chars.next();
        }
        let value = match escape {
            Some('a') => session.map(|s| named(Some(&s.application))),
            Some('u') => session.map(|s| named(Some(&s.user))),
            Some('d') => session.map(|s| named(Some(&s.database))),
            Some('r') => session.map(|_| {
                client.map_or_else(|| "[local]".to_owned(), |client| format!("{}({})", client.ip(), client.port()))
            }),
            Some('h') => session.map(|_| client.map_or_else(|| "[local]".to_owned(), |c| c.ip().to_string())),
            Some('b') => Some(if session.is_some() { "client backend" } else { "postmaster" }.to_owned()),
            Some('p') => Some(number_of(session)),
            Some('P') => Some(String::new()),
            Some('t') => Some(time(line.at_us, false)),
            Some('m') => Some(time(line.at_us, true)),
            Some('n') => Some(format!("{:.3}", line.at_us as f64 / 1e6)),
            Some('i') => session.map(|s| s.command.clone()),
            Some('e') => Some(line.code.to_owned()),
            Some('c') => Some(session_id(session)),
            Some('l') => Some(number.to_string()),
            Some('s') => session.map(|s| time(s.started_us, false)),
            Some('v' | 'x') => Some(String::new()),
            Some('Q') => Some(line.query_id.to_string()),
            Some('q') if session.is_none() => break,
            Some('q') => None,
            Some('%') => Some("%".to_owned()),
            _ => None,
        };
        let value = value.unwrap_or_default();
        let places = width.trim_start_matches('-').parse::<usize>().unwrap_or(0).min(100);
        match width.starts_with('-') {
            true => _ = write!(out, "{value:<places$}"),
            false => _ = write!(out, "{value:>places$}"),
        }
    }
    out
}

fn csv(line: &Line, number: u64) -> String {
    let session = line.session.as_ref();
    let quoted =
        |text: &str| if text.is_empty() { String::new() } else { format!("\"{}\"", text.replace('"', "\"\"")) };
    let client = session.and_then(|s| s.client).map_or_else(
        || session.map_or("", |_| "[local]").to_owned(),
        |client| format!("{}:{}", client.ip(), client.port()),
    );
    let none = String::new;
    let columns = [
        time(line.at_us, true),
        quoted(session.map_or("", |s| &s.user)),
        quoted(session.map_or("", |s| &s.database)),
        number_of(session),
        quoted(&client),
        session_id(session),
        number.to_string(),
        quoted(session.map_or("", |s| &s.command)),
        session.map_or_else(none, |s| time(s.started_us, false)),
        none(),
        "0".to_owned(),
        line.severity.name().to_owned(),
        line.code.to_owned(),
        quoted(&line.message),
        quoted(&line.detail),
        quoted(&line.hint),
        none(),
        none(),
        quoted(&line.context),
        quoted(&line.statement),
        none(),
        none(),
        quoted(session.map_or("", |s| &s.application)),
        quoted(if session.is_some() { "client backend" } else { "postmaster" }),
        none(),
        line.query_id.to_string(),
    ];
    format!("{}\n", columns.join(","))
}

fn json(line: &Line, number: u64) -> String {
    let session = line.session.as_ref();
    let mut out = String::from("{");
    let mut put = |name: &str, value: &str, plain: bool| {
        if value.is_empty() {
            return;
        }
        if out.len() > 1 {
            out.push(',');
        }
        let _ = match plain {
            true => write!(out, "\"{name}\":{value}"),
            false => write!(out, "\"{name}\":{}", escaped(value)),
        };
    };
    put("timestamp", &time(line.at_us, true), false);
    put("user", session.map_or("", |s| &s.user), false);
    put("dbname", session.map_or("", |s| &s.database), false);
    put("pid", &number_of(session), true);
    if let Some(client) = session.and_then(|s| s.client) {
        put("remote_host", &client.ip().to_string(), false);
        put("remote_port", &client.port().to_string(), true);
    }
    put("session_id", &session_id(session), false);
    put("line_num", &number.to_string(), true);
    put("ps", session.map_or("", |s| &s.command), false);
    put("session_start", &session.map_or_else(String::new, |s| time(s.started_us, false)), false);
    put("txid", "0", true);
    put("error_severity", line.severity.name(), false);
    put("state_code", if line.code == "00000" { "" } else { line.code }, false);
    put("message", &line.message, false);
    put("detail", &line.detail, false);
    put("hint", &line.hint, false);
    put("context", &line.context, false);
    put("statement", &line.statement, false);
    put("application_name", session.map_or("", |s| &s.application), false);
    put("backend_type", if session.is_some() { "client backend" } else { "postmaster" }, false);
    put("query_id", &line.query_id.to_string(), true);
    out.push_str("}\n");
    out
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    escape(text, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_sql::context::log_line::Severity;

    fn line() -> Line {
        let mut line = Line::new(Severity::Error, "42P01", "relation \"x\" does not exist");
        line.at_us = 1_795_341_600_123_456;
        line.statement = "select *\nfrom x".to_owned();
        line.session = Some(Session {
            pid: 7,
            user: "ann".to_owned(),
            database: "shop".to_owned(),
            application: "a\"b\nLOG:  forged".to_owned(),
            client: Some(([127, 0, 0, 1], 5000).into()),
            started_us: 1_795_341_500_000_000,
            logged_in: true,
            command: "SELECT".to_owned(),
        });
        line
    }

    #[test]
    fn prefixes_are_postgresqls() {
        let shown = |prefix: &str| expand(prefix, &line(), 3);
        assert_eq!(shown("%m [%p] "), "2026-11-22 10:00:00.123 UTC [7] ");
        assert_eq!(
            shown("%t|%u@%d|%r|%h|%e|%l|%i|%c|%%|%q%b"),
            "2026-11-22 10:00:00 UTC|ann@shop|127.0.0.1(5000)|127.0.0.1|42P01|3|SELECT|6b02bcbc.7|%|client backend"
        );
        assert_eq!(shown("%5p|%-5p|"), "    7|7    |");
        assert_eq!(shown("%a"), "a\"b?LOG:  forged");
        let alone = Line::new(Severity::Log, "00000", "x");
        assert_eq!(expand("a%q b", &alone, 1), "a");
    }

    /// LOG-2
    #[test]
    fn an_entry_is_one_whatever_it_holds() {
        let text = text("%a: ", &line(), 1);
        assert!(text.lines().all(|line| line.starts_with("a\"b?LOG:") || line.starts_with('\t')), "{text}");
        let csv = csv(&line(), 1);
        assert!(csv.contains(",\"a\"\"b\nLOG:  forged\",") && csv.matches(",").count() >= 25, "{csv}");
        let json = json(&line(), 1);
        assert_eq!(json.lines().count(), 1);
        assert!(json.contains(r#""application_name":"a\"b\nLOG:  forged""#), "{json}");
    }

    #[test]
    fn dates_of_all_centuries() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (11_016, (2000, 2, 29)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(civil_from_days(days - EPOCH_DAYS), date);
        }
    }
}
