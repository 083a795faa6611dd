//! RAISE and ASSERT.

use super::frame::Frame;
use crate::context::log_line::{Line, Severity};
use crate::error::{Result, SqlError, code, state};
use crate::syntax::plpgsql::conditions;
use crate::syntax::plpgsql::tree::{Fragment, Raise, RaiseOption};

/// What `client_min_messages` is compared with.
fn rank(level: &str) -> u8 {
    match level.to_ascii_lowercase().as_str() {
        "debug5" => 0,
        "debug4" => 1,
        "debug3" => 2,
        "debug2" => 3,
        "debug" | "debug1" => 4,
        "log" => 5,
        "notice" => 6,
        "warning" => 7,
        _ => 8,
    }
}

impl Frame<'_> {
    /// The message with the values in their places.
    async fn formatted(&mut self, format: &str, values: &[Fragment]) -> Result<String> {
        let mut out = String::with_capacity(format.len());
        let mut values = values.iter();
        let mut chars = format.chars().peekable();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
            } else if chars.next_if_eq(&'%').is_some() {
                out.push('%');
            } else {
                let value =
                    values.next().ok_or_else(|| SqlError::internal("unexpected RAISE parameter list length"))?;
                out.push_str(&self.text(value).await?.unwrap_or_else(|| "<NULL>".to_owned()));
            }
        }
        Ok(out)
    }

    /// RAISE.
    pub(super) async fn raise(&mut self, raise: &Raise) -> Result<()> {
        if raise.level.is_empty() {
            let Some(handled) = self.handled.clone() else {
                let message = "RAISE without parameters cannot be used outside an exception handler";
                return Err(SqlError::new("0Z002", message));
            };
            self.placed = true;
            return Err(handled);
        }
        // What names the condition is the message where none is given.
        let mut named = raise.condition.as_ref().map(|(name, _)| name.clone());
        let mut code = raise.condition.as_ref().map(|(_, state)| state.clone());
        let mut message = match &raise.format {
            Some(format) => Some(self.formatted(format, &raise.values).await?),
            None => None,
        };
        let mut fields: Vec<(RaiseOption, String)> = Vec::new();
        for (option, f) in &raise.options {
            let text = self.text(f).await?;
            let Some(text) = text else {
                return Err(SqlError::new("22004", "RAISE statement option cannot be null"));
            };
            let twice =
                || SqlError::new(code::SYNTAX_ERROR, format!("RAISE option already specified: {}", option.name()));
            match option {
                RaiseOption::Errcode if code.is_some() => return Err(twice()),
                RaiseOption::Errcode => {
                    code = Some(state_of(&text)?);
                    named = Some(text);
                }
                RaiseOption::Message if message.is_some() => return Err(twice()),
                RaiseOption::Message => message = Some(text),
                option if fields.iter().any(|(known, _)| known == option) => return Err(twice()),
                option => fields.push((*option, text)),
            }
        }
        let is_error = raise.level == "EXCEPTION";
        let default = match raise.level {
            "EXCEPTION" => "P0001",
            "WARNING" => "01000",
            _ => "00000",
        };
        let state = code.map_or(Ok(default), |code| state::intern(&code))?;
        let message = message.or(named).unwrap_or_else(|| state.to_owned());
        let error = with_fields(SqlError::new(state, message), fields);
        if is_error {
            return Err(error);
        }
        self.tell(raise.level, error);
        Ok(())
    }

    /// Tells the client at once, and the log.
    fn tell(&mut self, level: &'static str, message: SqlError) {
        let message = message.within(self.context());
        let core = self.session.core.clone();
        if level == "LOG" {
            core.backends
                .log_line(Line::new(Severity::Log, message.code(), message.message().to_owned()).of(&core.backend));
        }
        let least = rank(core.settings.lock().get("client_min_messages"));
        if level == "INFO" || rank(level) >= least {
            self.session.deliver_notices(self.client);
            self.client.notice_now(level, &message);
        }
    }

    /// ASSERT.
    pub(super) async fn assert(&mut self, condition: &Fragment, message: Option<&Fragment>) -> Result<()> {
        if self.holds(condition).await? {
            return Ok(());
        }
        let message = match message {
            Some(f) => self.text(f).await?,
            None => None,
        };
        Err(SqlError::new("P0004", message.unwrap_or_else(|| "assertion failed".to_owned())))
    }
}

fn with_fields(mut error: SqlError, fields: Vec<(RaiseOption, String)>) -> SqlError {
    for (option, text) in fields {
        error = match option {
            RaiseOption::Detail => error.detail(text),
            RaiseOption::Hint => error.hint(text),
            RaiseOption::Column => error.column(text),
            RaiseOption::Constraint => error.constraint(text),
            RaiseOption::Datatype => error.named(b'd', text),
            RaiseOption::Table => error.named(b't', text),
            RaiseOption::Schema => error.named(b's', text),
            RaiseOption::Message | RaiseOption::Errcode => error,
        };
    }
    error
}

/// The SQLSTATE that ERRCODE means: itself, or the name of a condition.
fn state_of(text: &str) -> Result<String> {
    if conditions::is_state(text) {
        return Ok(text.to_owned());
    }
    match conditions::named(text).first() {
        Some(state) => Ok((*state).to_owned()),
        None => {
            let message = format!("unrecognized exception condition \"{text}\"");
            Err(SqlError::new(code::UNDEFINED_OBJECT, message))
        }
    }
}
