//! `clearway top`: shows in a terminal which sessions are active and which waits for which.
//!
//! # Structure
//! `screen` (lines from the samples; knows no terminal), `terminal` (raw mode, keys). Each second, and after each key, the whole screen
//! is drawn anew.
//!
//! # Invariants
//! - TOP-1: the terminal is in its original mode when the program ends, also when it ends with an error.
//! - TOP-2: a session is ended only after `y` has answered the question that names the session.

mod screen;
mod terminal;

use crate::options::{Options, WatchError, Work};
use crate::panels::{self, PanelAnswer};
use crate::sample::{self, History};
use crate::source::{Kind, Source};
use clearway_base::sync::sleep;
use clearway_base::waits::wall_us;
use screen::{Screen, View};
use std::time::Duration;
use terminal::{Key, Terminal};

/// Shows a server's sessions until `q`, or once if `once`: then the size is given, and nothing is asked of the terminal.
///
/// # Errors
/// There is no terminal, or the server's URL is wrong.
pub fn top(options: Options, once: Option<(usize, usize)>) -> Work<'static, Result<(), WatchError>> {
    Box::pin(show(options, once))
}

async fn show(options: Options, once: Option<(usize, usize)>) -> Result<(), WatchError> {
    let source = Source::of(&options.server, options.password.as_deref())?;
    let history = History::default();
    tokio::select! {
        () = sample::run(&source, &history, options.processors) => Ok(()),
        ended = async {
            match once {
                Some(size) => print_once(&source, &history, size).await,
                None => interact(&source, &history, options.may_cancel).await,
            }
        } => ended,
    }
}

async fn print_once(source: &Source, history: &History, size: (usize, usize)) -> Result<(), WatchError> {
    let mut screen = Screen::default();
    loop {
        let seen = source.seen();
        if history.newest().is_some() || seen.error.is_some() {
            screen.take(&seen, source.place(), history);
            terminal::print(&screen.lines(size))?;
            return Ok(());
        }
        sleep(Duration::from_millis(50)).await;
    }
}

async fn interact(source: &Source, history: &History, may_cancel: bool) -> Result<(), WatchError> {
    let mut terminal = Terminal::open()?;
    let mut screen = Screen::new(may_cancel);
    let mut ticks = 0_u32;
    loop {
        screen.take(&source.seen(), source.place(), history);
        if screen.view == View::Statements && ticks % 25 == 0 {
            screen.table = Some(statements(source).await);
        }
        terminal.draw(&screen.lines(terminal.size()))?;
        // Keys are looked at five times a second; a second's sample comes by itself.
        for _ in 0..2 {
            while let Some(key) = terminal.key() {
                match key {
                    Key::Char('q') => return Ok(()),
                    Key::Char('y') if screen.asks.is_some() => screen.said = end(source, &mut screen).await,
                    key => screen.press(key),
                }
                ticks = 0;
            }
            sleep(Duration::from_millis(100)).await;
        }
        ticks = ticks.wrapping_add(1);
    }
}

async fn statements(source: &Source) -> Result<serde_json::Value, String> {
    let kind = source.seen().kind.unwrap_or(Kind::Clearway);
    let Some(PanelAnswer::Query(sql)) = panels::statement("statements", kind, None, wall_us()) else {
        return Err("this server has no such table".to_owned());
    };
    let mut link = source.login().connect().await.map_err(|error| error.text)?;
    panels::ask(&mut link, &sql).await
}

/// Ends the session that was asked about (TOP-2).
async fn end(source: &Source, screen: &mut Screen) -> String {
    let Some(pid) = screen.asks.take() else { return String::new() };
    match source.login().connect().await {
        Ok(mut link) => match sample::end(&mut link, pid).await {
            Ok(Some(state)) => format!("session {pid}, which was {state}, was told to end"),
            Ok(None) => format!("session {pid} has ended already"),
            Err(error) => error,
        },
        Err(error) => error.text,
    }
}
