//! Functions and operators of citext, which PostgreSQL's extension defines by those of text: patterns match whatever the case.

use super::eval::Env;
use super::functions::{Function, s, table};
use super::like::like;
use super::set_table::Rows;
use super::{long_text, pattern, regexp, text_functions};
use crate::error::Result;
use crate::types::{Datum, citext, oid};
use std::cmp::Ordering;

use oid::{BOOL, CITEXT, INT4, TEXT, TEXT_ARRAY};

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "regexp_match"(CITEXT, CITEXT) TEXT_ARRAY strict |a, e| regexp::first_match(&folding(a, 2), e);
    "regexp_match"(CITEXT, CITEXT, TEXT) TEXT_ARRAY strict |a, e| regexp::first_match(&folding(a, 2), e);
    "regexp_replace"(CITEXT, CITEXT, TEXT) TEXT strict |a, e| regexp::replace_flags(&folding(a, 3), e);
    "regexp_replace"(CITEXT, CITEXT, TEXT, TEXT) TEXT strict |a, e| regexp::replace_flags(&folding(a, 3), e);
    "regexp_split_to_array"(CITEXT, CITEXT) TEXT_ARRAY strict |a, e| regexp::split_to_array(&folding(a, 2), e);
    "regexp_split_to_array"(CITEXT, CITEXT, TEXT) TEXT_ARRAY strict |a, e| regexp::split_to_array(&folding(a, 2), e);
    "replace"(CITEXT, CITEXT, CITEXT) TEXT strict replace; "split_part"(CITEXT, CITEXT, INT4) TEXT strict split_part;
    "strpos"(CITEXT, CITEXT) INT4 strict |a, e| text_functions::position(&[lower(s(a, 0))?, lower(s(a, 1))?], e);
    "translate"(CITEXT, CITEXT, TEXT) TEXT strict translate;
    "citext_eq"(CITEXT, CITEXT) BOOL strict |a, _| test(a, Ordering::is_eq); "citext_ne"(CITEXT, CITEXT) BOOL strict |a, _| test(a, Ordering::is_ne);
    "citext_lt"(CITEXT, CITEXT) BOOL strict |a, _| test(a, Ordering::is_lt); "citext_le"(CITEXT, CITEXT) BOOL strict |a, _| test(a, Ordering::is_le);
    "citext_gt"(CITEXT, CITEXT) BOOL strict |a, _| test(a, Ordering::is_gt); "citext_ge"(CITEXT, CITEXT) BOOL strict |a, _| test(a, Ordering::is_ge);
    "citext_pattern_lt"(CITEXT, CITEXT) BOOL strict |a, _| test(a, Ordering::is_lt); "citext_pattern_le"(CITEXT, CITEXT) BOOL strict |a, _| test(a, Ordering::is_le);
    "citext_pattern_gt"(CITEXT, CITEXT) BOOL strict |a, _| test(a, Ordering::is_gt); "citext_pattern_ge"(CITEXT, CITEXT) BOOL strict |a, _| test(a, Ordering::is_ge);
    "citext_cmp"(CITEXT, CITEXT) INT4 strict |a, _| Ok(Datum::Int4(order(a) as i32));
    "citext_pattern_cmp"(CITEXT, CITEXT) INT4 strict |a, _| Ok(Datum::Int4(order(a) as i32));
    "citext_larger"(CITEXT, CITEXT) CITEXT strict |a, _| Ok(a[usize::from(order(a).is_le())].clone());
    "citext_smaller"(CITEXT, CITEXT) CITEXT strict |a, _| Ok(a[usize::from(order(a).is_ge())].clone());
    "texticlike"(CITEXT, CITEXT) BOOL strict |a, _| likes(a, true); "texticlike"(CITEXT, TEXT) BOOL strict |a, _| likes(a, true);
    "texticnlike"(CITEXT, CITEXT) BOOL strict |a, _| likes(a, false); "texticnlike"(CITEXT, TEXT) BOOL strict |a, _| likes(a, false);
    "texticregexeq"(CITEXT, CITEXT) BOOL strict |a, _| matches(a, true); "texticregexeq"(CITEXT, TEXT) BOOL strict |a, _| matches(a, true);
    "texticregexne"(CITEXT, CITEXT) BOOL strict |a, _| matches(a, false); "texticregexne"(CITEXT, TEXT) BOOL strict |a, _| matches(a, false);
};

/// Operators that these functions compute.
#[rustfmt::skip]
pub static OPERATORS: &[Function] = table! {
    "~~"(CITEXT, CITEXT) BOOL strict |a, _| likes(a, true); "~~"(CITEXT, TEXT) BOOL strict |a, _| likes(a, true);
    "~~*"(CITEXT, CITEXT) BOOL strict |a, _| likes(a, true); "~~*"(CITEXT, TEXT) BOOL strict |a, _| likes(a, true);
    "!~~"(CITEXT, CITEXT) BOOL strict |a, _| likes(a, false); "!~~"(CITEXT, TEXT) BOOL strict |a, _| likes(a, false);
    "!~~*"(CITEXT, CITEXT) BOOL strict |a, _| likes(a, false); "!~~*"(CITEXT, TEXT) BOOL strict |a, _| likes(a, false);
    "~"(CITEXT, CITEXT) BOOL strict |a, _| matches(a, true); "~"(CITEXT, TEXT) BOOL strict |a, _| matches(a, true);
    "~*"(CITEXT, CITEXT) BOOL strict |a, _| matches(a, true); "~*"(CITEXT, TEXT) BOOL strict |a, _| matches(a, true);
    "!~"(CITEXT, CITEXT) BOOL strict |a, _| matches(a, false); "!~"(CITEXT, TEXT) BOOL strict |a, _| matches(a, false);
    "!~*"(CITEXT, CITEXT) BOOL strict |a, _| matches(a, false); "!~*"(CITEXT, TEXT) BOOL strict |a, _| matches(a, false);
    "~<~"(CITEXT, CITEXT) BOOL strict |a, _| test(a, Ordering::is_lt); "~<=~"(CITEXT, CITEXT) BOOL strict |a, _| test(a, Ordering::is_le);
    "~>~"(CITEXT, CITEXT) BOOL strict |a, _| test(a, Ordering::is_gt); "~>=~"(CITEXT, CITEXT) BOOL strict |a, _| test(a, Ordering::is_ge);
};

fn order(a: &[Datum]) -> Ordering {
    citext::compare(s(a, 0), s(a, 1))
}

fn test(a: &[Datum], holds: fn(Ordering) -> bool) -> Result<Datum> {
    Ok(Datum::Bool(holds(order(a))))
}

fn likes(a: &[Datum], wanted: bool) -> Result<Datum> {
    Ok(Datum::Bool(like(s(a, 0), s(a, 1), Some('\\'), true)? == wanted))
}

fn matches(a: &[Datum], wanted: bool) -> Result<Datum> {
    Ok(Datum::Bool(pattern::matches(s(a, 0), s(a, 1), true)? == wanted))
}

fn lower(text: &str) -> Result<Datum> {
    Ok(Datum::text(long_text::map(text, |c| Some(clearway_base::fold::lower(c)))?))
}

/// The arguments of a function of regular expressions with the flag `i`, unless the flags at this place have `c`.
fn folding(a: &[Datum], at: usize) -> Vec<Datum> {
    let given = a.get(at).and_then(Datum::as_str).unwrap_or("");
    let flags = if given.contains('c') { given.to_owned() } else { format!("{given}i") };
    let mut all: Vec<Datum> = a.iter().take(at).cloned().collect();
    all.push(Datum::text(flags));
    all
}

/// A text as a pattern that matches it.
fn quoted(text: &str) -> Result<Datum> {
    let mut out = String::new();
    long_text::pieces(text, |piece| {
        for c in piece.chars() {
            if !(c.is_ascii_alphanumeric() || c == '_') {
                out.push('\\');
            }
            out.push(c);
        }
        Ok(())
    })?;
    Ok(Datum::text(out))
}

fn replace(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    let args = [a[0].clone(), quoted(s(a, 1))?, a[2].clone(), Datum::text("gi")];
    regexp::replace_flags(&args, e)
}

/// As the extension's, which takes no part from the end.
fn split_part(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let parts = regexp::pieces(&[a[0].clone(), quoted(s(a, 1))?, Datum::text("i")])?;
    let at = a[2].as_i64().and_then(|n| usize::try_from(n - 1).ok());
    Ok(at.and_then(|at| parts.into_iter().nth(at)).unwrap_or(Datum::Null))
}

fn translate(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    let from = [lower(s(a, 1))?, text_functions::upper(&a[1..], e)?];
    from.into_iter().try_fold(a[0].clone(), |text, from| text_functions::translate(&[text, from, a[2].clone()], e))
}

/// regexp_matches of citext.
pub fn all_matches(a: &[Datum]) -> Result<Rows> {
    regexp::all_matches(&folding(a, 2))
}

/// regexp_split_to_table of citext.
pub fn pieces(a: &[Datum]) -> Result<Vec<Datum>> {
    regexp::pieces(&folding(a, 2))
}
