//! The names of types.

use super::super::ast::{QualName, TypeName};
use super::super::keywords::Category;
use super::super::lexer::Tok;
use super::Parser;
use crate::error::{Result, SqlError, code};
use crate::interval_fields::{DAY, FULL_RANGE, HOUR, MINUTE, MONTH, SECOND, YEAR};

impl Parser<'_> {
    /// A type with modifiers and array bounds.
    pub(super) fn type_name(&mut self) -> Result<TypeName> {
        if self.is("setof") {
            return Err(self.unsupported("SETOF"));
        }
        let mut ty = self.simple_type()?;
        if self.eat("array") {
            ty.array_dims = 1;
            if self.eat_punct(b'[') {
                self.signed_int()?;
                self.expect_punct(b']')?;
            }
            return Ok(ty);
        }
        while self.eat_punct(b'[') {
            if matches!(self.peek(), Tok::Int(_)) {
                self.advance();
            }
            self.expect_punct(b']')?;
            ty.array_dims = ty.array_dims.saturating_add(1);
        }
        Ok(ty)
    }

    /// Whether a keyword at the cursor begins a type of the standard, which `type 'text'` makes a constant.
    pub(super) fn is_standard_type(&self) -> bool {
        self.is_any(&[
            "int",
            "integer",
            "smallint",
            "bigint",
            "real",
            "float",
            "decimal",
            "dec",
            "numeric",
            "boolean",
            "bit",
            "character",
            "char",
            "varchar",
            "nchar",
            "timestamp",
            "time",
            "interval",
        ]) || self.is_seq(&["double", "precision"])
            || self.is_seq(&["national", "char"])
            || self.is_seq(&["national", "character"])
    }

    fn simple_type(&mut self) -> Result<TypeName> {
        let pos = self.pos();
        let word = match self.peek() {
            Tok::Word(w) => w.to_string(),
            _ => String::new(),
        };
        let named = |name: &str, modifiers| TypeName {
            name: QualName { parts: vec!["pg_catalog".to_owned(), name.to_owned()], pos },
            modifiers,
            array_dims: 0,
        };
        let plain = match word.as_str() {
            "int" | "integer" => "int4",
            "smallint" => "int2",
            "bigint" => "int8",
            "real" => "float4",
            "boolean" => "bool",
            _ => "",
        };
        if !plain.is_empty() {
            self.advance();
            return Ok(named(plain, Vec::new()));
        }
        match word.as_str() {
            "double" if self.eat_seq(&["double", "precision"]) => Ok(named("float8", Vec::new())),
            "float" => {
                self.advance();
                let name = self.float_width()?;
                Ok(named(name, Vec::new()))
            }
            "decimal" | "dec" | "numeric" => {
                self.advance();
                let modifiers = self.type_modifiers()?;
                Ok(named("numeric", modifiers))
            }
            "national" | "character" | "char" | "varchar" | "nchar" => {
                let (name, modifiers) = self.character_type()?;
                Ok(named(name, modifiers))
            }
            "bit" => {
                let (name, modifiers) = self.bit_type()?;
                Ok(named(name, modifiers))
            }
            "timestamp" | "time" => {
                self.advance();
                let modifiers = self.type_modifiers()?;
                let zoned = self.time_zone_suffix()?;
                let name = match (word.as_str(), zoned) {
                    ("timestamp", false) => "timestamp",
                    ("timestamp", true) => "timestamptz",
                    (_, false) => "time",
                    (_, true) => "timetz",
                };
                Ok(named(name, modifiers))
            }
            "interval" => {
                self.advance();
                let modifiers = self.interval_modifiers()?;
                Ok(named("interval", modifiers))
            }
            _ => self.generic_type(),
        }
    }

    /// The fields or the precision of an interval.
    fn interval_modifiers(&mut self) -> Result<Vec<i32>> {
        if !self.is_punct(b'(') {
            return self.interval_fields();
        }
        self.advance();
        if !matches!(self.peek(), Tok::Int(_)) {
            return Err(self.error_here());
        }
        self.at -= 1;
        let mut modifiers = self.type_modifiers()?;
        modifiers.insert(0, FULL_RANGE);
        Ok(modifiers)
    }

    /// `DAY TO SECOND(3)`, as modifiers; none where nothing is said.
    pub(super) fn interval_fields(&mut self) -> Result<Vec<i32>> {
        const ORDER: [(&str, i32); 6] =
            [("year", YEAR), ("month", MONTH), ("day", DAY), ("hour", HOUR), ("minute", MINUTE), ("second", SECOND)];
        let place = |p: &Self| ORDER.iter().position(|(word, _)| p.is(word));
        let Some(first) = place(self) else { return Ok(Vec::new()) };
        self.advance();
        let mut last = first;
        // YEAR goes on to MONTH alone; what begins with DAY, HOUR or MINUTE to any finer field of a day.
        let finer = |at: usize| if first == 0 { at == 1 } else { first >= 2 && at > first };
        if self.is("to") && !matches!(first, 1 | 5) {
            self.advance();
            last = place(self).filter(|at| finer(*at)).ok_or_else(|| self.error_here())?;
            self.advance();
        }
        let mut modifiers = vec![ORDER[first..=last].iter().map(|(_, bit)| bit).sum()];
        if last == 5 {
            modifiers.extend(self.type_modifiers()?);
        }
        Ok(modifiers)
    }

    /// BIT is of one bit, BIT VARYING of any number.
    fn bit_type(&mut self) -> Result<(&'static str, Vec<i32>)> {
        self.advance();
        let varying = self.eat("varying");
        let mut modifiers = self.type_modifiers()?;
        if varying {
            return Ok(("varbit", modifiers));
        }
        if modifiers.is_empty() {
            modifiers.push(1);
        }
        Ok(("bit", modifiers))
    }

    fn generic_type(&mut self) -> Result<TypeName> {
        let pos = self.pos();
        let first = self.name_where(|c| matches!(c, None | Some(Category::Unreserved | Category::TypeOrFunction)))?;
        let mut parts = vec![first];
        while self.eat_punct(b'.') {
            parts.push(self.col_label()?);
        }
        // `a::int4 % b` is a remainder.
        if self.is_op("%") && self.word_at(1) == Some("type") {
            return Err(self.unsupported("%TYPE"));
        }
        let modifiers = self.type_modifiers()?;
        Ok(TypeName { name: QualName { parts, pos }, modifiers, array_dims: 0 })
    }

    fn type_modifiers(&mut self) -> Result<Vec<i32>> {
        if !self.is_punct(b'(') {
            return Ok(Vec::new());
        }
        self.paren_list(|p| {
            let pos = p.pos();
            let value = p.signed_int()?;
            i32::try_from(value).map_err(|_| {
                let message = format!("value \"{value}\" is out of range for type integer");
                SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, message).at(pos)
            })
        })
    }

    fn float_width(&mut self) -> Result<&'static str> {
        if !self.is_punct(b'(') {
            return Ok("float8");
        }
        let pos = self.pos() + 1;
        let bits = self.type_modifiers()?.first().copied().unwrap_or(53);
        match bits {
            1..=24 => Ok("float4"),
            25..=53 => Ok("float8"),
            ..=0 => {
                Err(SqlError::new(code::INVALID_PARAMETER_VALUE, "precision for type float must be at least 1 bit")
                    .at(pos))
            }
            _ => {
                Err(SqlError::new(code::INVALID_PARAMETER_VALUE, "precision for type float must be less than 54 bits")
                    .at(pos))
            }
        }
    }

    fn character_type(&mut self) -> Result<(&'static str, Vec<i32>)> {
        self.eat("national");
        let varying = if self.eat("varchar") {
            true
        } else {
            self.advance();
            self.eat("varying")
        };
        let mut modifiers = self.type_modifiers()?;
        if varying {
            return Ok(("varchar", modifiers));
        }
        if modifiers.is_empty() {
            modifiers.push(1);
        }
        Ok(("bpchar", modifiers))
    }

    /// WITH TIME ZONE (true), or WITHOUT TIME ZONE or nothing.
    fn time_zone_suffix(&mut self) -> Result<bool> {
        Ok(self.eat_seq(&["with", "time", "zone"]) || {
            self.eat_seq(&["without", "time", "zone"]);
            false
        })
    }
}
