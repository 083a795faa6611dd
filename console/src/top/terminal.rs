//! The terminal: raw mode, keys, and output of lines.

use crate::options::WatchError;
use clearway_base::sync::{Mutex, spawn_thread};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use std::collections::VecDeque;
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::sync::Arc;

/// Keys that wait to be looked at; what is beyond is dropped.
const KEYS_MAX: usize = 64;
/// Alternate screen, no cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
/// The terminal tells where the cursor is, which can't be farther than its last column and line.
const ASK_SIZE: &str = "\x1b[999;999H\x1b[6n";
/// A longer sequence is none that is known.
const SEQUENCE_MAX: usize = 16;
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Up,
    Down,
}

/// A terminal in raw mode; dropping it puts it back (TOP-1).
pub(super) struct Terminal {
    before: Termios,
    keys: Arc<Mutex<VecDeque<u8>>>,
    /// A sequence of which the end has not come yet.
    sequence: Vec<u8>,
    /// Columns and lines.
    size: (usize, usize),
}

fn fail(error: impl std::fmt::Display) -> WatchError {
    WatchError::Terminal(error.to_string())
}

/// Lines without a terminal's escapes.
pub(super) fn print(lines: &[String]) -> Result<(), WatchError> {
    let mut out = std::io::stdout().lock();
    lines.iter().try_for_each(|line| writeln!(out, "{}", plain(line))).map_err(fail)
}

/// A line without its colours.
pub(super) fn plain(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            chars.by_ref().find(|c| c.is_ascii_alphabetic());
        } else {
            out.push(c);
        }
    }
    out.trim_end().to_owned()
}

impl Terminal {
    pub(super) fn open() -> Result<Terminal, WatchError> {
        if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
            return Err(fail("clearway top needs a terminal; --once prints one screen anywhere"));
        }
        let before = tcgetattr(std::io::stdin()).map_err(fail)?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        let keys = Arc::new(Mutex::new("console/keys", VecDeque::new()));
        let pressed = Arc::clone(&keys);
        spawn_thread("keys", move || {
            let mut stdin = std::io::stdin().lock();
            let mut byte = [0];
            // It ends with the program, or with the terminal.
            while stdin.read_exact(&mut byte).is_ok() {
                let mut keys = pressed.lock();
                if keys.len() < KEYS_MAX {
                    keys.push_back(byte[0]);
                }
            }
        })
        .map_err(fail)?;
        tcsetattr(std::io::stdin(), SetArg::TCSAFLUSH, &raw).map_err(fail)?;
        let terminal = Terminal { before, keys, sequence: Vec::new(), size: (80, 24) };
        terminal.write(ENTER)?;
        Ok(terminal)
    }

    fn write(&self, text: &str) -> Result<(), WatchError> {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(fail)
    }

    pub(super) fn draw(&self, lines: &[String]) -> Result<(), WatchError> {
        let body: Vec<String> = lines.iter().map(|line| format!("{line}\x1b[0m\x1b[K")).collect();
        self.write(&format!("{ASK_SIZE}\x1b[H{}\x1b[J", body.join("\r\n")))
    }

    /// Columns and lines, as the terminal has told last.
    pub(super) fn size(&self) -> (usize, usize) {
        self.size
    }

    /// The next key; none: no key was pressed.
    pub(super) fn key(&mut self) -> Option<Key> {
        loop {
            let byte = self.keys.lock().pop_front()?;
            match (self.sequence.len(), byte) {
                (0, 3 | 4) => return Some(Key::Char('q')),
                (0, 0x1b) | (1, b'[') => self.sequence.push(byte),
                (0, byte) => return Some(Key::Char(char::from(byte))),
                (2.., b'0'..=b'9' | b';') if self.sequence.len() < SEQUENCE_MAX => self.sequence.push(byte),
                (2.., b'A') => return self.ended(Key::Up),
                (2.., b'B') => return self.ended(Key::Down),
                (2.., b'R') => {
                    self.size = position(&self.sequence[2..]).unwrap_or(self.size);
                    self.sequence.clear();
                }
                _ => self.sequence.clear(),
            }
        }
    }

    fn ended(&mut self, key: Key) -> Option<Key> {
        self.sequence.clear();
        Some(key)
    }
}

/// Columns and lines from `LINES;COLUMNS`.
fn position(text: &[u8]) -> Option<(usize, usize)> {
    let (lines, columns) = std::str::from_utf8(text).ok()?.split_once(';')?;
    let size: (usize, usize) = (columns.parse().ok()?, lines.parse().ok()?);
    ((1..1000).contains(&size.0) && (1..1000).contains(&size.1)).then_some(size)
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Nothing is left to be told.
        _ = self.write(LEAVE);
        _ = tcsetattr(std::io::stdin(), SetArg::TCSAFLUSH, &self.before);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_terminal_tells_its_size() {
        assert_eq!(super::position(b"24;80"), Some((80, 24)));
        assert_eq!(super::position(b"24"), None);
        assert_eq!(super::position(b"0;99999"), None);
    }

    #[test]
    fn colours_are_left_out() {
        assert_eq!(super::plain("\x1b[1;31ma\x1b[0m b \x1b[K"), "a b");
    }
}
