//! The options of COPY, accepted and refused as PostgreSQL 15 does (`ProcessCopyOptions` in copy.c).

use crate::encoding::Encoding;
use crate::error::{Pos, Result, SqlError, code};
use crate::syntax::stmt::{Copy, GenericOption, OptionValue};

/// How a row looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Values separated by a delimiter, backslash escapes.
    #[default]
    Text,
    /// Comma-separated values with quotes.
    Csv,
    /// PostgreSQL's binary form.
    Binary,
}

/// The meaning of the first line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// A row.
    #[default]
    None,
    /// The columns' names; not looked at when it is read.
    Names,
    /// The columns' names, which have to be the right ones.
    Match,
}

/// Columns that a FORCE option names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Forced {
    /// None.
    #[default]
    None,
    /// All of them: `*`.
    All,
    /// These.
    Columns(Vec<String>),
}

/// The options, complete.
#[derive(Clone, Debug)]
pub struct Form {
    /// The format.
    pub format: Format,
    /// Between values.
    pub delimiter: u8,
    /// Stands for NULL.
    pub null: String,
    /// The first line.
    pub header: Header,
    /// Around values in csv.
    pub quote: u8,
    /// Before a quote within a value.
    pub escape: u8,
    /// Columns whose values are always quoted.
    pub force_quote: Forced,
    /// Columns that are not compared with the null string.
    pub force_not_null: Forced,
    /// Columns whose quoted values are compared with it, too.
    pub force_null: Forced,
    /// What the bytes are text of.
    pub encoding: Encoding,
}

/// The options as they are given.
#[derive(Default)]
struct GivenOptions {
    format: Option<Format>,
    delimiter: Option<String>,
    null: Option<String>,
    header: Option<Header>,
    quote: Option<String>,
    escape: Option<String>,
    force_quote: Option<Forced>,
    force_not_null: Option<Forced>,
    force_null: Option<Forced>,
    freeze: Option<bool>,
    encoding: Option<(String, Pos)>,
}

fn syntax(message: impl Into<String>) -> SqlError {
    SqlError::new(code::SYNTAX_ERROR, message)
}

fn unavailable(message: impl Into<String>) -> SqlError {
    SqlError::new(code::FEATURE_NOT_SUPPORTED, message)
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(code::INVALID_PARAMETER_VALUE, message)
}

fn put<T>(slot: &mut Option<T>, value: T, pos: Pos) -> Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(syntax("conflicting or redundant options").at(pos)),
    }
}

fn text(o: &GenericOption) -> Result<String> {
    o.as_str().map(str::to_owned).ok_or_else(|| syntax(format!("{} requires a parameter", o.name)))
}

fn boolean(o: &GenericOption) -> Result<bool> {
    o.as_bool().ok_or_else(|| syntax(format!("{} requires a Boolean value", o.name)))
}

fn header(o: &GenericOption, from: bool) -> Result<Header> {
    if let Some(on) = o.as_bool() {
        return Ok(if on { Header::Names } else { Header::None });
    }
    match o.as_str() {
        Some(word) if word.eq_ignore_ascii_case("match") && from => Ok(Header::Match),
        Some(word) if word.eq_ignore_ascii_case("match") => {
            Err(unavailable("cannot use \"match\" with HEADER in COPY TO"))
        }
        _ => Err(syntax("header requires a Boolean value or \"match\"")),
    }
}

fn forced(o: &GenericOption) -> Result<Forced> {
    match &o.value {
        Some(OptionValue::Word(w)) if w == "*" && o.name == "force_quote" => Ok(Forced::All),
        Some(OptionValue::List(names)) => Ok(Forced::Columns(names.clone())),
        _ => Err(invalid(format!("argument to option \"{}\" must be a list of column names", o.name)).at(o.pos)),
    }
}

impl GivenOptions {
    fn take(&mut self, o: &GenericOption, from: bool) -> Result<()> {
        match o.name.as_str() {
            "format" => {
                let format = match text(o)?.as_str() {
                    "text" => Format::Text,
                    "csv" => Format::Csv,
                    "binary" => Format::Binary,
                    other => return Err(invalid(format!("COPY format \"{other}\" not recognized")).at(o.pos)),
                };
                put(&mut self.format, format, o.pos)
            }
            "delimiter" => put(&mut self.delimiter, text(o)?, o.pos),
            "null" => put(&mut self.null, text(o)?, o.pos),
            "header" => put(&mut self.header, header(o, from)?, o.pos),
            "quote" => put(&mut self.quote, text(o)?, o.pos),
            "escape" => put(&mut self.escape, text(o)?, o.pos),
            "force_quote" => put(&mut self.force_quote, forced(o)?, o.pos),
            "force_not_null" => put(&mut self.force_not_null, forced(o)?, o.pos),
            "force_null" => put(&mut self.force_null, forced(o)?, o.pos),
            // Rows settle by themselves: there is nothing to freeze.
            "freeze" => put(&mut self.freeze, boolean(o)?, o.pos),
            "encoding" => put(&mut self.encoding, (text(o)?, o.pos), o.pos),
            name => Err(syntax(format!("option \"{name}\" not recognized")).at(o.pos)),
        }
    }
}

/// A string that has to be one byte.
fn one(given: Option<&String>, default: u8, what: &str) -> Result<u8> {
    match given.map(|s| s.as_bytes()) {
        None => Ok(default),
        Some([byte]) => Ok(*byte),
        Some(_) => Err(unavailable(format!("COPY {what} must be a single one-byte character"))),
    }
}

fn encoding((name, pos): &(String, Pos)) -> Result<Encoding> {
    let known = Encoding::find(name);
    let encoding =
        known.ok_or_else(|| invalid("argument to option \"encoding\" must be a valid encoding name").at(*pos))?;
    if encoding.is_supported() { Ok(encoding) } else { Err(encoding.refused()) }
}

/// The options of a COPY; without ENCODING its text has the client's.
///
/// # Errors
/// PostgreSQL's: 42601, 22023, 0A000.
pub fn form(c: &Copy, client: Encoding) -> Result<Form> {
    let mut given = GivenOptions::default();
    for o in &c.options {
        given.take(o, c.from)?;
    }
    let format = given.format.unwrap_or_default();
    let csv = format == Format::Csv;
    if format == Format::Binary {
        let refused = [
            (given.delimiter.is_some(), syntax("cannot specify DELIMITER in BINARY mode")),
            (given.null.is_some(), syntax("cannot specify NULL in BINARY mode")),
            (given.header.is_some_and(|h| h != Header::None), unavailable("cannot specify HEADER in BINARY mode")),
        ];
        if let Some((_, error)) = refused.into_iter().find(|r| r.0) {
            return Err(error);
        }
    }
    let delimiter = one(given.delimiter.as_ref(), if csv { b',' } else { b'\t' }, "delimiter")?;
    if matches!(delimiter, b'\r' | b'\n') {
        return Err(invalid("COPY delimiter cannot be newline or carriage return"));
    }
    let null = given.null.clone().unwrap_or_else(|| if csv { String::new() } else { "\\N".to_owned() });
    if null.contains(['\r', '\n']) {
        return Err(invalid("COPY null representation cannot use newline or carriage return"));
    }
    if !csv && b"\\.abcdefghijklmnopqrstuvwxyz0123456789".contains(&delimiter) {
        return Err(invalid(format!("COPY delimiter cannot be \"{}\"", char::from(delimiter))));
    }
    if !csv && given.quote.is_some() {
        return Err(unavailable("COPY quote available only in CSV mode"));
    }
    let quote = one(given.quote.as_ref(), b'"', "quote")?;
    if csv && delimiter == quote {
        return Err(invalid("COPY delimiter and quote must be different"));
    }
    if !csv && given.escape.is_some() {
        return Err(unavailable("COPY escape available only in CSV mode"));
    }
    let escape = one(given.escape.as_ref(), quote, "escape")?;
    force_allowed(&given, csv, c.from)?;
    if format != Format::Binary && null.as_bytes().contains(&delimiter) {
        return Err(unavailable("COPY delimiter must not appear in the NULL specification"));
    }
    if csv && null.as_bytes().contains(&quote) {
        return Err(unavailable("CSV quote character must not appear in the NULL specification"));
    }
    let encoding = given.encoding.as_ref().map_or(Ok(client), encoding)?;
    Ok(Form {
        format,
        delimiter,
        null,
        header: given.header.unwrap_or_default(),
        quote,
        escape,
        force_quote: given.force_quote.unwrap_or_default(),
        force_not_null: given.force_not_null.unwrap_or_default(),
        force_null: given.force_null.unwrap_or_default(),
        encoding,
    })
}

fn force_allowed(given: &GivenOptions, csv: bool, from: bool) -> Result<()> {
    let options = [
        (given.force_quote.is_some(), "force quote", !from, "TO"),
        (given.force_not_null.is_some(), "force not null", from, "FROM"),
        (given.force_null.is_some(), "force null", from, "FROM"),
    ];
    for (is_given, name, direction_fits, direction) in options {
        if is_given && !csv {
            return Err(unavailable(format!("COPY {name} available only in CSV mode")));
        }
        if is_given && !direction_fits {
            return Err(unavailable(format!("COPY {name} only available using COPY {direction}")));
        }
    }
    Ok(())
}

/// For each of the copied columns, whether an option names it.
///
/// # Errors
/// 42P10 for one that is not copied.
pub fn forced_columns(forced: &Forced, columns: &[String], option: &str) -> Result<Vec<bool>> {
    let names = match forced {
        Forced::None => return Ok(vec![false; columns.len()]),
        Forced::All => return Ok(vec![true; columns.len()]),
        Forced::Columns(names) => names,
    };
    let mut out = vec![false; columns.len()];
    for name in names {
        let at = columns
            .iter()
            .position(|c| c == name)
            .ok_or_else(|| SqlError::new("42P10", format!("{option} column \"{name}\" not referenced by COPY")))?;
        out[at] = true;
    }
    Ok(out)
}
