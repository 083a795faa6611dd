//! Asks for a password at the terminal, without showing it.

use std::borrow::Cow;

use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::history::DefaultHistory;
use rustyline::{ColorMode, Config, Editor, Helper};

/// Shows a sign for each character.
struct Masked;

impl Highlighter for Masked {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        Cow::Owned("*".repeat(line.chars().count()))
    }

    fn highlight_char(&self, _: &str, _: usize, _: CmdKind) -> bool {
        true
    }
}

impl rustyline::completion::Completer for Masked {
    type Candidate = String;
}
impl rustyline::hint::Hinter for Masked {
    type Hint = String;
}
impl rustyline::validate::Validator for Masked {}
impl Helper for Masked {}

/// The password that the user types.
///
/// # Errors
/// The user gave up, or there is no terminal.
pub fn ask(role: &str) -> Result<String, String> {
    // The signs are drawn as colours are: also where the environment wants none.
    let config = Config::builder().color_mode(ColorMode::Forced).auto_add_history(false).build();
    let editor = Editor::<Masked, DefaultHistory>::with_config(config);
    let mut editor = editor.map_err(|error| error.to_string())?;
    editor.set_helper(Some(Masked));
    editor.readline(&format!("Password for user {role}: ")).map_err(|error| error.to_string())
}
