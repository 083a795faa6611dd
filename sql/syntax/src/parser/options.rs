//! Lists of options: `(name value, ...)`, COPY's old form, sequences and roles.

use super::super::ddl::{RoleOption, SequenceOption};
use super::super::lexer::Tok;
use super::super::stmt::{GenericOption, OptionValue};
use super::Parser;
use crate::error::{Result, SqlError, code};

impl Parser<'_> {
    /// A value: a word, a string or a number.
    pub(super) fn option_value(&mut self) -> Result<OptionValue> {
        let value = match self.peek() {
            Tok::Str(s) => OptionValue::Str(s.to_string()),
            Tok::Int(n) | Tok::Num(n) => OptionValue::Number((*n).to_owned()),
            Tok::Op(sign @ ("-" | "+")) => {
                let negative = *sign == "-";
                let (Tok::Int(n) | Tok::Num(n)) = self.peek_at(1) else {
                    return Err(self.error_here());
                };
                let text = if negative { format!("-{n}") } else { (*n).to_owned() };
                self.advance();
                OptionValue::Number(text)
            }
            Tok::Word(w) if w == "default" => OptionValue::Default,
            Tok::Word(w) | Tok::Quoted(w) => OptionValue::Word(w.to_string()),
            _ => return Err(self.error_here()),
        };
        self.advance();
        Ok(value)
    }

    /// `(name [value], ...)`, as EXPLAIN, VACUUM, REINDEX and COPY write options.
    pub(super) fn generic_options(&mut self) -> Result<Vec<GenericOption>> {
        self.paren_list(|p| {
            let pos = p.pos();
            let name = p.col_label()?;
            let value = if p.is_punct(b',') || p.is_punct(b')') {
                None
            } else if p.is_punct(b'(') {
                Some(OptionValue::List(p.paren_list(Self::col_label)?))
            } else if p.eat_op("*") {
                Some(OptionValue::Word("*".to_owned()))
            } else {
                Some(p.option_value()?)
            };
            Ok(GenericOption { name, value, pos })
        })
    }

    /// `(name = value, ...)`, as storage parameters are written.
    pub(super) fn storage_options(&mut self) -> Result<Vec<GenericOption>> {
        self.paren_list(|p| {
            let pos = p.pos();
            let mut name = p.col_label()?;
            if p.eat_punct(b'.') {
                name = format!("{name}.{}", p.col_label()?);
            }
            let value = if p.eat_op("=") { Some(p.option_value()?) } else { None };
            Ok(GenericOption { name, value, pos })
        })
    }

    pub(super) fn opt_storage(&mut self) -> Result<Vec<GenericOption>> {
        if self.is("with") && *self.peek_at(1) == Tok::Punct(b'(') {
            self.advance();
            return self.storage_options();
        }
        Ok(Vec::new())
    }

    /// A bare word as an option that is on.
    pub(super) fn flag(&self, name: &str) -> GenericOption {
        GenericOption { name: name.to_owned(), value: None, pos: self.pos() }
    }

    /// COPY's options: `WITH (...)`, or the words of PostgreSQL before 9.0.
    pub(super) fn copy_options(&mut self) -> Result<Vec<GenericOption>> {
        // As in PostgreSQL, nothing need follow.
        self.eat("with");
        if self.is_punct(b'(') {
            return self.generic_options();
        }
        let mut out = Vec::new();
        loop {
            let pos = self.pos();
            let mut put = |name: &str, value| out.push(GenericOption { name: name.to_owned(), value, pos });
            if self.eat("csv") {
                put("format", Some(OptionValue::Word("csv".to_owned())));
            } else if self.eat("binary") {
                put("format", Some(OptionValue::Word("binary".to_owned())));
            } else if self.eat("header") {
                put("header", None);
            } else if self.eat("freeze") {
                put("freeze", None);
            } else if self.is_any(&["delimiter", "delimiters", "null", "quote", "escape", "encoding"]) {
                let name = if self.is("delimiters") {
                    "delimiter".to_owned()
                } else {
                    self.word_at(0).unwrap_or("").to_owned()
                };
                self.advance();
                self.eat("as");
                let value = OptionValue::Str(self.string()?);
                out.push(GenericOption { name, value: Some(value), pos });
            } else if self.eat("force") {
                let name = if self.eat("quote") {
                    "force_quote"
                } else if self.eat("not") {
                    self.expect("null")?;
                    "force_not_null"
                } else {
                    self.expect("null")?;
                    "force_null"
                };
                let all = name == "force_quote" && self.eat_op("*");
                let value = match all {
                    true => OptionValue::Word("*".to_owned()),
                    false => {
                        let mut names = vec![self.col_id()?];
                        while self.eat_punct(b',') {
                            names.push(self.col_id()?);
                        }
                        OptionValue::List(names)
                    }
                };
                out.push(GenericOption { name: name.to_owned(), value: Some(value), pos });
            } else {
                return Ok(out);
            }
        }
    }

    pub(super) fn sequence_options(&mut self) -> Result<Vec<SequenceOption>> {
        let mut out = Vec::new();
        while let Some(option) = self.opt_sequence_option()? {
            out.push(option);
        }
        Ok(out)
    }

    pub(super) fn opt_sequence_option(&mut self) -> Result<Option<SequenceOption>> {
        Ok(Some(if self.eat("as") {
            SequenceOption::As(self.type_name()?)
        } else if self.eat("increment") {
            self.eat("by");
            SequenceOption::Increment(self.signed_int()?)
        } else if self.eat("minvalue") {
            SequenceOption::MinValue(Some(self.signed_int()?))
        } else if self.eat("maxvalue") {
            SequenceOption::MaxValue(Some(self.signed_int()?))
        } else if self.eat_seq(&["no", "minvalue"]) {
            SequenceOption::MinValue(None)
        } else if self.eat_seq(&["no", "maxvalue"]) {
            SequenceOption::MaxValue(None)
        } else if self.eat_seq(&["no", "cycle"]) {
            SequenceOption::Cycle(false)
        } else if self.eat("cycle") {
            SequenceOption::Cycle(true)
        } else if self.eat("start") {
            self.eat("with");
            SequenceOption::Start(self.signed_int()?)
        } else if self.eat("restart") {
            let with = self.eat("with");
            let number = with || matches!(self.peek(), Tok::Int(_) | Tok::Op("-" | "+"));
            SequenceOption::Restart(if number { Some(self.signed_int()?) } else { None })
        } else if self.eat("cache") {
            SequenceOption::Cache(self.signed_int()?)
        } else if self.eat_seq(&["owned", "by"]) {
            SequenceOption::OwnedBy(if self.eat("none") { None } else { Some(self.qual_name()?) })
        } else if self.eat_seq(&["sequence", "name"]) {
            SequenceOption::SequenceName(self.qual_name()?)
        } else {
            return Ok(None);
        }))
    }

    pub(super) fn role_options(&mut self) -> Result<Vec<RoleOption>> {
        let mut out = Vec::new();
        loop {
            let pos = self.pos();
            let option = match self.word_at(0) {
                Some(w) => w.to_owned(),
                None => return Ok(out),
            };
            self.advance();
            out.push(match option.as_str() {
                "superuser" => RoleOption::Superuser(true),
                "nosuperuser" => RoleOption::Superuser(false),
                "createdb" => RoleOption::CreateDb(true),
                "nocreatedb" => RoleOption::CreateDb(false),
                "createrole" => RoleOption::CreateRole(true),
                "nocreaterole" => RoleOption::CreateRole(false),
                "inherit" => RoleOption::Inherit(true),
                "noinherit" => RoleOption::Inherit(false),
                "login" => RoleOption::Login(true),
                "nologin" => RoleOption::Login(false),
                "replication" => RoleOption::Replication(true),
                "noreplication" => RoleOption::Replication(false),
                "bypassrls" => RoleOption::BypassRls(true),
                "nobypassrls" => RoleOption::BypassRls(false),
                "connection" => {
                    self.expect("limit")?;
                    RoleOption::ConnectionLimit(self.signed_int()?)
                }
                "encrypted" => {
                    self.expect("password")?;
                    RoleOption::Password(Some(self.string()?))
                }
                "password" => RoleOption::Password(if self.eat("null") { None } else { Some(self.string()?) }),
                "valid" => {
                    self.expect("until")?;
                    RoleOption::ValidUntil(self.string()?)
                }
                "in" => {
                    if !self.eat("role") {
                        self.expect("group")?;
                    }
                    RoleOption::InRole(self.comma_list(Self::role_spec)?)
                }
                "role" | "user" => RoleOption::Role(self.comma_list(Self::role_spec)?),
                "admin" => RoleOption::Admin(self.comma_list(Self::role_spec)?),
                "sysid" => {
                    self.signed_int()?;
                    continue;
                }
                other => {
                    let message = format!("unrecognized role option \"{other}\"");
                    return Err(SqlError::new(code::SYNTAX_ERROR, message).at(pos));
                }
            });
        }
    }
}
