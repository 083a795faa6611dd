//! Parses dates and times: the second half of PostgreSQL's parsing (`DecodeDateTime`, src/backend/utils/adt/datetime.c), which decides
//! what each field of the text is by the fields before it.
//!
//! # Invariants
//! - DTI-1: no part of a date is given twice: each field marks the parts that it fills, and a part that is filled already is an error.

use super::datetime::{
    DAY, DateOrder, EPOCH_DAYS, Format, SECOND, check_range, civil_from_days, days_from_civil, month_days, utc_to_local,
};
use super::datetime_fields::{Field, FieldKind, Token, Unit, fields, token};
use super::datetime_numbers::{Refusal, Step, displacement, fraction, integer, refused, short};
use super::zone::{Named, zone};
use crate::error::{Result, SqlError, code};

/// What a text says.
pub(super) enum Read {
    Infinity,
    MinusInfinity,
    /// 1970-01-01 00:00 UTC.
    Epoch,
    Moment(Moment),
}

/// A day, and where a time was asked for the local time and its zone, if the text names one.
pub(super) struct Moment {
    pub(super) days: i64,
    pub(super) local: i64,
    pub(super) zone: Option<Named>,
}

const YEAR: u32 = 1;
const MONTH: u32 = 2;
const DAY_OF_MONTH: u32 = 4;
const DATE: u32 = YEAR | MONTH | DAY_OF_MONTH;
const HOUR: u32 = 8;
const MINUTE: u32 = 16;
const SECOND_FIELD: u32 = 32;
const TIME: u32 = HOUR | MINUTE | SECOND_FIELD;
const ZONE: u32 = 64;
const DAY_OF_YEAR: u32 = 128;
const DAYLIGHT: u32 = 256;
const AM_PM: u32 = 512;
const ERA: u32 = 1024;
const WEEKDAY: u32 = 2048;
const SPECIAL: u32 = 4096;

/// Reads a date and time. `now` is the transaction's start, in UTC.
pub(super) fn read(text: &str, ty: &str, f: &Format, now: i64) -> Result<Read> {
    let local_now = utc_to_local(now, &f.zone);
    let offset_now = ((local_now - now) / SECOND) as i32;
    let mut decoder = Decoder { order: f.date_order, local_now, offset_now, ..Decoder::default() };
    let found = fields(text).ok_or(Refusal::Format).and_then(|fields| decoder.decode(&fields));
    let beyond = || SqlError::new(code::DATETIME_FIELD_OVERFLOW, format!("{} out of range: \"{text}\"", short(ty)));
    match found {
        Ok(Some(special)) => Ok(special),
        Ok(None) => {
            let days = days_from_civil(decoder.year, decoder.month, decoder.day);
            if ty == "date" {
                return Ok(Read::Moment(Moment { days, local: 0, zone: None }));
            }
            let local = days.checked_mul(DAY).and_then(|t| t.checked_add(decoder.time())).ok_or_else(beyond)?;
            let local = check_range(local).map_err(|_| beyond())?;
            Ok(Read::Moment(Moment { days, local, zone: decoder.zone }))
        }
        Err(refusal) => Err(refused(refusal, text, ty)),
    }
}

/// A time of day, its day and zone if the text has them.
pub(super) struct TimeOfDay {
    pub(super) time: i64,
    pub(super) days: Option<i64>,
    pub(super) zone: Option<Named>,
}

/// Reads a time, with a date before or behind it perhaps.
pub(super) fn read_time(text: &str, ty: &str, f: &Format, now: i64) -> Result<TimeOfDay> {
    let local_now = utc_to_local(now, &f.zone);
    let offset_now = ((local_now - now) / SECOND) as i32;
    let fields = fields(text).ok_or(Refusal::Format);
    let dated = |fields: &[Field]| {
        fields.iter().any(|f| match f.kind {
            FieldKind::Date => f.text.starts_with(|c: char| c.is_ascii_digit()),
            FieldKind::Word => {
                matches!(token(&f.text), Some(Token::Month(_) | Token::Today(_) | Token::Now | Token::Epoch))
            }
            _ => false,
        })
    };
    let read = fields.and_then(|fields| {
        // Without a date in the text, digits are a time.
        let without_date = !dated(&fields);
        let have = if without_date { DATE } else { 0 };
        let mut decoder =
            Decoder { order: f.date_order, local_now, offset_now, have, julian: without_date, ..Decoder::default() };
        if without_date {
            decoder.set_days(local_now.div_euclid(DAY));
        }
        match decoder.decode(&fields)? {
            Some(_) => Err(Refusal::Format),
            None if decoder.have & TIME != TIME => Err(Refusal::Format),
            None => {
                let days = days_from_civil(decoder.year, decoder.month, decoder.day);
                let days = (!without_date).then_some(days);
                let named = matches!(&decoder.zone, Some(Named::Zone(_) | Named::Meant(..)));
                // The offset of a named zone is that of a day, which the text must give.
                if named && without_date && !fixed(&decoder.zone) {
                    return Err(Refusal::Format);
                }
                Ok(TimeOfDay { time: decoder.time(), days, zone: decoder.zone.take() })
            }
        }
    });
    read.map_err(|refusal| refused(refusal, text, ty))
}

/// Whether a zone has one offset for all time.
fn fixed(zone: &Option<Named>) -> bool {
    match zone {
        Some(Named::Zone(zone)) => zone.to_fixed_offset().is_ok(),
        _ => true,
    }
}

#[derive(Default)]
struct Decoder {
    order: DateOrder,
    local_now: i64,
    offset_now: i32,
    /// Which parts are there.
    have: u32,
    year: i64,
    month: i64,
    day: i64,
    day_of_year: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    zone: Option<Named>,
    afternoon: Option<bool>,
    before_christ: bool,
    text_month: bool,
    julian: bool,
    /// The year has one or two digits.
    short_year: bool,
    /// What the next number is.
    unit: Option<Unit>,
}

impl Decoder {
    fn time(&self) -> i64 {
        ((self.hour * 60 + self.minute) * 60 + self.second) * SECOND + self.micros
    }

    fn decode(&mut self, fields: &[Field]) -> Step<Option<Read>> {
        let mut special = None;
        for field in fields {
            let filled = match field.kind {
                FieldKind::Date => self.date_field(&field.text)?,
                FieldKind::Time => self.time_field(&field.text)?,
                FieldKind::Zone => {
                    self.zone = Some(displacement(&field.text)?);
                    ZONE
                }
                FieldKind::Number => {
                    // A labelled part asks for a whole date, whatever the text said before.
                    special = special.filter(|_| self.unit.is_none());
                    self.number_field(&field.text)?
                }
                FieldKind::Word | FieldKind::SignedWord => match self.word_field(&field.text)? {
                    Word::Fills(filled) => filled,
                    Word::Special(read) => {
                        special = Some(read);
                        SPECIAL
                    }
                },
            };
            // DTI-1
            if self.have & filled != 0 {
                return Err(Refusal::Format);
            }
            self.have |= filled;
        }
        if self.unit.is_some() {
            return Err(Refusal::Format);
        }
        if special.is_none() {
            self.finish()?;
        }
        Ok(special)
    }

    /// Digits and words joined: a date, or behind a date the name of a zone.
    fn date_field(&mut self, text: &str) -> Step<u32> {
        if self.unit == Some(Unit::Julian) {
            let end = text.bytes().take_while(u8::is_ascii_digit).count();
            self.julian_day(integer(&text[..end])?)?;
            self.zone = Some(displacement(&text[end..])?);
            self.unit = None;
            return Ok(DATE | TIME | ZONE);
        }
        let month_and_day = self.have & (MONTH | DAY_OF_MONTH) == MONTH | DAY_OF_MONTH;
        if self.unit.is_none() && !month_and_day {
            return self.date(text);
        }
        if !text.starts_with(|c: char| c.is_ascii_digit()) && self.unit.is_none() {
            self.zone = Some(Named::Zone(zone(text).ok_or_else(|| Refusal::ZoneName(text.to_owned()))?));
            return Ok(ZONE);
        }
        if self.unit.take().is_some_and(|unit| unit != Unit::Time) || self.have & TIME == TIME {
            return Err(Refusal::Format);
        }
        let dash = text.find('-').ok_or(Refusal::Format)?;
        self.zone = Some(displacement(&text[dash..])?);
        Ok(self.run_together(&text[..dash], self.have)? | ZONE)
    }

    fn time_field(&mut self, text: &str) -> Step<u32> {
        if self.unit.take().is_some_and(|unit| unit != Unit::Time) {
            return Err(Refusal::Format);
        }
        let mut parts = text.splitn(3, ':');
        let (hours, rest) = (parts.next().unwrap_or(""), parts.next().ok_or(Refusal::Format)?);
        let (h, m, s) = (integer(hours)?, rest, parts.next());
        match (m.find('.'), s) {
            // mm:ss.fraction
            (Some(point), None) => {
                (self.hour, self.minute, self.second) = (0, h, integer(&m[..point])?);
                self.micros = fraction(&m[point..])?;
            }
            (Some(_), Some(_)) => return Err(Refusal::Format),
            (None, s) => {
                let s = s.unwrap_or("0");
                let point = s.find('.').unwrap_or(s.len());
                (self.hour, self.minute, self.second) = (h, integer(m)?, integer(&s[..point])?);
                self.micros = if point < s.len() { fraction(&s[point..])? } else { 0 };
            }
        }
        let in_range = self.minute <= 59 && self.second <= 60 && self.hour <= 24 && self.time() <= DAY;
        if in_range { Ok(TIME) } else { Err(Refusal::Field) }
    }

    fn number_field(&mut self, text: &str) -> Step<u32> {
        if let Some(unit) = self.unit.take() {
            return self.labelled(unit, text);
        }
        let point = text.find('.');
        match point {
            Some(_) if self.have & DATE == 0 => self.date(text),
            Some(p) if p > 2 => self.run_together(text, self.have),
            // A text with a point comes here whatever its length.
            _ if text.len() >= 6 && (self.have & DATE == 0 || self.have & TIME == 0) => {
                self.run_together(text, self.have)
            }
            _ => self.number(text, self.have, self.text_month),
        }
    }

    /// A number behind its label.
    fn labelled(&mut self, unit: Unit, text: &str) -> Step<u32> {
        let point = text.find('.').unwrap_or(text.len());
        let pointed = point < text.len();
        if pointed && !matches!(unit, Unit::Julian | Unit::Time | Unit::Second) {
            return Err(Refusal::Format);
        }
        if unit == Unit::Time {
            let filled = self.run_together(text, self.have | DATE)?;
            return if filled == TIME { Ok(TIME) } else { Err(Refusal::Format) };
        }
        let value = integer(&text[..point])?;
        Ok(match unit {
            Unit::Year => {
                self.year = value;
                YEAR
            }
            Unit::Month if self.have & MONTH != 0 && self.have & HOUR != 0 => {
                self.minute = value;
                MINUTE
            }
            Unit::Month => {
                self.month = value;
                MONTH
            }
            Unit::Day => {
                self.day = value;
                DAY_OF_MONTH
            }
            Unit::Hour => {
                self.hour = value;
                HOUR
            }
            Unit::Minute => {
                self.minute = value;
                MINUTE
            }
            Unit::Second => {
                self.second = value;
                self.micros = if pointed { fraction(&text[point..])? } else { 0 };
                SECOND_FIELD
            }
            Unit::Julian => {
                self.julian_day(value)?;
                if pointed {
                    let part: f64 = format!("0{}0", &text[point..]).parse().map_err(|_| Refusal::Format)?;
                    self.set_time((part * DAY as f64) as i64);
                    return Ok(DATE | TIME);
                }
                DATE
            }
            Unit::Time | Unit::Other => return Err(Refusal::Format),
        })
    }

    fn set_time(&mut self, t: i64) {
        (self.hour, self.minute) = (t / (3600 * SECOND), t / (60 * SECOND) % 60);
        (self.second, self.micros) = (t / SECOND % 60, t % SECOND);
    }

    fn set_days(&mut self, days: i64) {
        (self.year, self.month, self.day) = civil_from_days(days);
    }

    /// The Julian day 2,451,545 is 2000-01-01.
    fn julian_day(&mut self, day: i64) -> Step<()> {
        if day < 0 {
            return Err(Refusal::Field);
        }
        self.set_days(day - 2_451_545);
        self.julian = true;
        Ok(())
    }

    fn word_field(&mut self, word: &str) -> Step<Word> {
        // Zones come before words.
        if let Some(named) = Named::abbreviated(word) {
            self.zone = Some(named);
            return Ok(Word::Fills(ZONE));
        }
        let Some(token) = token(word) else {
            self.zone = Some(Named::Zone(zone(word).ok_or(Refusal::Format)?));
            return Ok(Word::Fills(ZONE));
        };
        Ok(Word::Fills(match token {
            Token::Nothing => 0,
            Token::Late => return Ok(Word::Special(Read::Infinity)),
            Token::Early => return Ok(Word::Special(Read::MinusInfinity)),
            Token::Epoch => return Ok(Word::Special(Read::Epoch)),
            Token::Now => {
                self.set_days(self.local_now.div_euclid(DAY));
                self.set_time(self.local_now.rem_euclid(DAY));
                self.zone = Some(Named::Offset(self.offset_now));
                self.julian = true;
                DATE | TIME | ZONE
            }
            Token::Today(days) => {
                self.set_days(self.local_now.div_euclid(DAY) + days);
                // Not to be read as a year of two digits.
                self.julian = true;
                DATE
            }
            Token::Midnight => {
                self.set_time(0);
                self.zone = Some(Named::Offset(0));
                TIME | ZONE
            }
            Token::Month(month) => self.named_month(month),
            Token::Weekday => WEEKDAY,
            Token::Afternoon(afternoon) => {
                self.afternoon = Some(afternoon);
                AM_PM
            }
            Token::BeforeChrist(before) => {
                self.before_christ = before;
                ERA
            }
            Token::Daylight => {
                let Some(Named::Offset(seconds)) = self.zone else { return Err(Refusal::Format) };
                self.zone = Some(Named::Offset(seconds + 3600));
                DAYLIGHT
            }
            Token::Unit(unit) => {
                if self.unit.is_some() || unit == Unit::Time && self.have & DATE != DATE {
                    return Err(Refusal::Format);
                }
                self.unit = Some(unit);
                0
            }
        }))
    }

    fn named_month(&mut self, month: i64) -> u32 {
        let mut filled = MONTH;
        // A number that was taken for the month was the day.
        let number = self.have & MONTH != 0 && !self.text_month && self.have & DAY_OF_MONTH == 0;
        if number && (1..=31).contains(&self.month) {
            self.day = self.month;
            filled = DAY_OF_MONTH;
        }
        self.text_month = true;
        self.month = month;
        filled
    }

    /// A date whose parts are joined by separators.
    fn date(&mut self, text: &str) -> Step<u32> {
        if text.ends_with(|c: char| !c.is_ascii_alphanumeric()) {
            return Err(Refusal::Format);
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            rest = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
            let digits = rest.starts_with(|c: char| c.is_ascii_digit());
            let end = rest.find(|c: char| if digits { !c.is_ascii_digit() } else { !c.is_ascii_alphabetic() });
            let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
            parts.push(part);
            // One character behind a part is its separator, whatever it is.
            rest = after.get(1..).unwrap_or("");
        }
        let (before, mut have, mut text_month) = (self.have, self.have, self.text_month);
        for word in parts.iter().filter(|p| p.starts_with(|c: char| c.is_ascii_alphabetic())) {
            match token(word) {
                Some(Token::Nothing) => continue,
                Some(Token::Month(month)) if have & MONTH == 0 => self.month = month,
                _ => return Err(Refusal::Format),
            }
            (text_month, have) = (true, have | MONTH);
        }
        for number in parts.iter().filter(|p| p.starts_with(|c: char| c.is_ascii_digit())) {
            let filled = self.number(number, have, text_month)?;
            if have & filled != 0 {
                return Err(Refusal::Format);
            }
            have |= filled;
        }
        if have & !(DAY_OF_YEAR | ZONE) != DATE {
            return Err(Refusal::Format);
        }
        Ok(have & !before)
    }

    /// One number whose meaning follows from the parts that are there.
    fn number(&mut self, text: &str, have: u32, text_month: bool) -> Step<u32> {
        let point = text.find('.').unwrap_or(text.len());
        let value = integer(&text[..point])?;
        if point < text.len() {
            if point > 2 {
                return self.run_together(text, have | DATE);
            }
            self.micros = fraction(&text[point..])?;
        }
        if text.len() == 3 && have & DATE == YEAR && (1..=366).contains(&value) {
            self.day_of_year = value;
            return Ok(DAY_OF_YEAR | MONTH | DAY_OF_MONTH);
        }
        let long = text.len() >= 3;
        let year_first = self.order == DateOrder::Ymd;
        let filled = match have & DATE {
            0 if long || year_first => YEAR,
            0 if self.order == DateOrder::Dmy => DAY_OF_MONTH,
            0 => MONTH,
            YEAR | DAY_OF_MONTH => MONTH,
            MONTH if text_month && (long || year_first) => YEAR,
            MONTH => DAY_OF_MONTH,
            x if x == YEAR | MONTH => {
                if text_month && long && self.short_year {
                    // The first number was the day after all.
                    (self.day, self.year, self.short_year) = (self.year, value, false);
                    return Ok(DAY_OF_MONTH);
                }
                DAY_OF_MONTH
            }
            x if x == MONTH | DAY_OF_MONTH => YEAR,
            DATE => return self.run_together(text, have),
            _ => return Err(Refusal::Format),
        };
        match filled {
            YEAR => (self.year, self.short_year) = (value, text.len() <= 2),
            MONTH => self.month = value,
            _ => self.day = value,
        }
        Ok(filled)
    }

    /// A date or time without separators: `20011223`, `040506`, `0405`.
    fn run_together(&mut self, text: &str, have: u32) -> Step<u32> {
        let (digits, after) = text.split_at(text.find('.').unwrap_or(text.len()));
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Refusal::Format);
        }
        let two = |from: usize| integer(&digits[from..from + 2]);
        if !after.is_empty() {
            self.micros = fraction(after)?;
        } else if have & DATE != DATE && digits.len() >= 6 {
            let end = digits.len() - 4;
            (self.year, self.month, self.day) = (integer(&digits[..end])?, two(end)?, two(end + 2)?);
            self.short_year = end == 2;
            return Ok(DATE);
        }
        if have & TIME != TIME && matches!(digits.len(), 4 | 6) {
            (self.hour, self.minute) = (two(0)?, two(2)?);
            self.second = if digits.len() == 6 { two(4)? } else { 0 };
            return Ok(TIME);
        }
        Err(Refusal::Format)
    }

    /// Checks the parts against each other.
    fn finish(&mut self) -> Step<()> {
        if self.have & YEAR != 0 && !self.julian {
            if self.before_christ {
                if self.year <= 0 {
                    return Err(Refusal::Field);
                }
                self.year = 1 - self.year;
            } else if self.short_year {
                self.year += if self.year < 70 { 2000 } else { 1900 };
            } else if self.year <= 0 {
                return Err(Refusal::Field);
            }
        }
        if self.have & DAY_OF_YEAR != 0 {
            self.set_days(days_from_civil(self.year, 1, 1) + self.day_of_year - 1);
        }
        let month = self.have & MONTH != 0 && !(1..=12).contains(&self.month);
        if month || self.have & DAY_OF_MONTH != 0 && !(1..=31).contains(&self.day) {
            return Err(Refusal::MonthOrDay);
        }
        if self.have & DATE == DATE && self.day > month_days(self.year, self.month) {
            return Err(Refusal::Field);
        }
        match self.afternoon {
            Some(_) if self.hour > 12 => return Err(Refusal::Field),
            Some(false) if self.hour == 12 => self.hour = 0,
            Some(true) if self.hour != 12 => self.hour += 12,
            _ => {}
        }
        if self.have & DATE == DATE { Ok(()) } else { Err(Refusal::Format) }
    }
}

/// What a word gave.
enum Word {
    Fills(u32),
    Special(Read),
}

/// Seconds of the epoch's instant, for timestamps.
pub(super) const EPOCH: i64 = -EPOCH_DAYS * DAY;
