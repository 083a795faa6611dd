//! Formats the samples as lines of a given width.

use super::terminal::Key;
use crate::sample::{History, Session};
use crate::source::ServerFacts;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[31m";
const INVERSE: &str = "\x1b[7m";
const END: &str = "\x1b[0m";

/// What is shown below the head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum View {
    /// Sessions, each waiter below the session that it waits for.
    #[default]
    Tree,
    /// Statements by total time.
    Statements,
}

/// By what sessions that block no other are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sort {
    /// Longest in its state first.
    #[default]
    State,
    /// Oldest transaction first.
    Transaction,
}

#[derive(Default)]
pub(super) struct Screen {
    pub(super) view: View,
    may_cancel: bool,
    /// The session that a question is about.
    pub(super) asks: Option<i32>,
    /// What came of the last one.
    pub(super) said: String,
    pub(super) table: Option<Result<Value, String>>,
    head: Vec<String>,
    sessions: Vec<Session>,
    /// Sessions at work, second by second.
    active: Vec<u32>,
    sort: Sort,
    chosen: Option<i32>,
    shows_all: bool,
}

fn bar(active: &[u32], width: usize) -> String {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let part = &active[active.len().saturating_sub(width)..];
    let top = part.iter().copied().max().unwrap_or(0).max(1);
    part.iter().map(|n| if *n == 0 { ' ' } else { STEPS[((n * 7).div_ceil(top) as usize).min(7)] }).collect()
}

fn seconds(s: Option<f64>) -> String {
    match s {
        None => String::new(),
        Some(s) if s < 1.0 => format!("{:.0} ms", s.max(0.0) * 1e3),
        Some(s) if s < 120.0 => format!("{s:.1} s"),
        Some(s) => format!("{:.0} min", s / 60.0),
    }
}

/// A text in one line, without what a terminal would obey.
fn line(text: &str, width: usize) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().map(|c| if c.is_control() { '?' } else { c }).take(width).collect()
}

impl Screen {
    pub(super) fn new(may_cancel: bool) -> Screen {
        Screen { may_cancel, ..Screen::default() }
    }

    /// Takes what was sampled last.
    pub(super) fn take(&mut self, seen: &ServerFacts, place: String, history: &History) {
        let state = match (&seen.error, seen.connected) {
            (Some(error), _) => format!("{RED}{}{END}", line(error, 300)),
            (None, true) => line(seen.version.split(',').next().unwrap_or_default(), 60),
            (None, false) => "connecting ...".to_owned(),
        };
        let (classes, blocked, longest_s) = history.newest().unwrap_or_default();
        let classes: Vec<String> = classes.iter().map(|(class, n)| format!("{class} {n}")).collect();
        let classes = if classes.is_empty() { "no session is active".to_owned() } else { classes.join("   ") };
        let waits = match blocked {
            0 => "no session waits for another".to_owned(),
            n => format!("{RED}{n} wait for locks, the longest for {}{END}", seconds(Some(longest_s))),
        };
        self.active = history.active();
        self.head = vec![format!("{BOLD}{place}{END}  {state}"), format!("{classes}   {waits}")];
        self.sessions = history.sessions();
        if self.asks.is_some_and(|pid| !self.sessions.iter().any(|s| s.pid == pid)) {
            self.asks = None;
        }
    }

    pub(super) fn press(&mut self, key: Key) {
        self.said.clear();
        if self.asks.take().is_some() {
            return;
        }
        let order: Vec<i32> = self.tree().iter().map(|(_, s)| s.pid).collect();
        let at = self.chosen.and_then(|pid| order.iter().position(|p| *p == pid));
        match key {
            Key::Up | Key::Char('k') => self.chosen = order.get(at.map_or(0, |at| at.saturating_sub(1))).copied(),
            Key::Down | Key::Char('j') => {
                self.chosen = order.get(at.map_or(0, |at| at + 1)).or(order.last()).copied();
            }
            Key::Char('s') => {
                self.sort = if self.sort == Sort::State { Sort::Transaction } else { Sort::State };
            }
            Key::Char('\t') => {
                self.view = if self.view == View::Tree { View::Statements } else { View::Tree };
                self.table = None;
            }
            Key::Char('\r') => self.shows_all = !self.shows_all,
            Key::Char('x') if !self.may_cancel => self.said = "clearway top was started without --cancel".to_owned(),
            Key::Char('x') => self.asks = self.chosen.filter(|pid| order.contains(pid)),
            _ => {}
        }
    }

    /// Roots with their waiters below, by depth; then all others.
    fn tree(&self) -> Vec<(usize, &Session)> {
        let mut below: HashMap<i32, Vec<&Session>> = HashMap::new();
        for session in &self.sessions {
            if let Some(first) = session.blocked_by.first() {
                below.entry(*first).or_default().push(session);
            }
        }
        let mut roots: Vec<&Session> = self.sessions.iter().collect();
        let age = |s: &Session| match self.sort {
            Sort::State => s.in_state_s,
            Sort::Transaction => s.transaction_s,
        };
        let rank = |s: &Session| (!below.contains_key(&s.pid), -age(s).unwrap_or(0.0));
        roots.sort_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap_or(std::cmp::Ordering::Equal));
        let (mut order, mut known) = (Vec::new(), HashSet::new());
        // First the sessions that wait for no other; those left then are in a ring, or behind a session that is not seen.
        let starts =
            roots.iter().filter(|s| s.blocked_by.is_empty()).chain(roots.iter().filter(|s| !s.blocked_by.is_empty()));
        for start in starts {
            let mut stack = vec![(0, *start)];
            while let Some((depth, session)) = stack.pop() {
                if !known.insert(session.pid) {
                    continue;
                }
                order.push((depth, session));
                let waiters = below.get(&session.pid).into_iter().flatten().rev();
                stack.extend(waiters.map(|waiter| (depth + 1, *waiter)));
            }
        }
        order
    }

    /// The whole screen, at most so many columns and lines.
    pub(super) fn lines(&self, (width, height): (usize, usize)) -> Vec<String> {
        let mut lines = self.head.clone();
        lines.push(bar(&self.active, width));
        lines.push(String::new());
        match self.view {
            View::Tree => self.draw_tree(width, &mut lines),
            View::Statements => self.draw_statements(width, &mut lines),
        }
        lines.truncate(height.saturating_sub(1));
        lines.resize(height.saturating_sub(1), String::new());
        lines.push(match self.asks {
            Some(pid) => format!("{BOLD}{RED}end what session {pid} does? y or n{END}"),
            None if !self.said.is_empty() => format!("{BOLD}{}{END}", line(&self.said, width)),
            None => line("q quit   up/down choose   enter whole statement   x end   s sort   tab statements", width),
        });
        lines
    }

    fn draw_tree(&self, width: usize, lines: &mut Vec<String>) {
        lines.push(format!("{BOLD}{}{END}", line_of("pid", "user", "state", "for", "transaction", "statement", width)));
        for (depth, s) in self.tree() {
            let waits = if s.event.is_empty() { s.state.to_string() } else { format!("{}: {}", s.class, s.event) };
            let name = format!("{}{}", "  ".repeat(depth.min(10)), s.pid);
            let who = if s.application.is_empty() { &s.user } else { &s.application };
            let text = line_of(&name, who, &waits, &seconds(s.in_state_s), &seconds(s.transaction_s), &s.query, width);
            let is_chosen = self.chosen == Some(s.pid);
            let colour = if is_chosen {
                INVERSE
            } else if s.blocked_by.is_empty() {
                ""
            } else {
                RED
            };
            lines.push(format!("{colour}{text}{END}"));
            if is_chosen && self.shows_all {
                let lock = s.lock_text().into_iter().chain([s.query.to_string()]);
                lines.extend(lock.map(|text| format!("    {}", line(&text, width.saturating_sub(4)))));
            }
        }
    }

    fn draw_statements(&self, width: usize, lines: &mut Vec<String>) {
        let table = match &self.table {
            None => return lines.push("asking ...".to_owned()),
            Some(Err(error)) => return lines.push(line(error, width)),
            Some(Ok(table)) => table,
        };
        let texts = |value: &Value| -> Vec<String> {
            let all = value.as_array().map(Vec::as_slice).unwrap_or_default();
            all.iter().map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
        };
        let columns = texts(&table["columns"]);
        let wanted = ["calls", "total_ms", "mean_ms", "p99_ms", "wait_ms", "query"];
        let places: Vec<usize> = wanted.iter().filter_map(|name| columns.iter().position(|c| c == name)).collect();
        let draw = |row: &[String]| {
            let mut out = String::new();
            for at in &places {
                let text = row.get(*at).map_or("", String::as_str);
                if columns[*at] == "query" { out += text } else { out += &format!("{text:>11} ") }
            }
            line_kept(&out, width)
        };
        lines.push(format!("{BOLD}{}{END}", draw(&columns)));
        for row in table["rows"].as_array().map(Vec::as_slice).unwrap_or_default() {
            lines.push(draw(&texts(row)));
        }
    }
}

/// As `line`, with its blanks.
fn line_kept(text: &str, width: usize) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(width).collect()
}

fn line_of(pid: &str, who: &str, state: &str, age: &str, transaction: &str, query: &str, width: usize) -> String {
    let (who, state) = (line(who, 14), line(state, 22));
    let text = format!("{pid:<9} {who:<14} {state:<22} {age:>8} {transaction:>11}  {}", line(query, width));
    line_kept(&text, width)
}

#[cfg(test)]
mod tests {
    use super::super::terminal::plain;
    use super::*;

    fn session(pid: i32, blocked_by: Vec<i32>, in_state_s: f64) -> Session {
        let query = format!("select {pid}\n\x1b[2J");
        Session::for_test(pid, blocked_by, in_state_s, &query)
    }

    fn screen() -> Screen {
        // 7 blocks 8, which blocks 9; 3 and 4 block none; 5 and 6 wait for each other.
        let sessions = vec![
            session(3, vec![], 1.0),
            session(4, vec![], 2.0),
            session(9, vec![8], 1.0),
            session(8, vec![7], 1.0),
            session(7, vec![], 0.5),
            session(5, vec![6], 1.0),
            session(6, vec![5], 1.0),
        ];
        Screen { sessions, may_cancel: true, ..Screen::default() }
    }

    #[test]
    fn who_waits_stands_below_whom_it_waits_for() {
        let screen = screen();
        let tree: Vec<(usize, i32)> = screen.tree().into_iter().map(|(depth, s)| (depth, s.pid)).collect();
        assert_eq!(tree, [(0, 7), (1, 8), (2, 9), (0, 4), (0, 3), (0, 5), (1, 6)]);
    }

    #[test]
    fn a_screen_has_the_size_of_the_terminal_and_none_of_the_servers_escapes() {
        let mut screen = screen();
        screen.press(Key::Down);
        screen.press(Key::Char('\r'));
        for (width, height) in [(80, 24), (200, 60), (20, 3), (1, 1)] {
            let lines = screen.lines((width, height));
            assert_eq!(lines.len(), height);
            for line in &lines {
                assert!(plain(line).chars().count() <= width.max(40), "{line:?}");
                assert!(!line.contains("\x1b[2J"), "{line:?}");
            }
        }
    }

    #[test]
    fn a_session_is_ended_after_a_question() {
        // TOP-2
        let mut screen = screen();
        screen.press(Key::Char('x'));
        assert_eq!(screen.asks, None, "nobody is chosen");
        screen.press(Key::Down);
        screen.press(Key::Char('x'));
        assert_eq!(screen.asks, Some(7));
        assert!(screen.lines((80, 24)).last().expect("a line").contains("end what session 7 does?"));
        screen.press(Key::Char('n'));
        assert_eq!(screen.asks, None);
        screen.may_cancel = false;
        screen.press(Key::Char('x'));
        assert_eq!((screen.asks, screen.said.is_empty()), (None, false));
    }

    #[test]
    fn the_picture_moves() {
        assert_eq!(bar(&[0, 1, 7], 10), " ▂█");
        assert_eq!(bar(&[9, 0, 1, 7], 2), "▂█");
    }
}
