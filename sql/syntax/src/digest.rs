//! Digests of statements: the text with its constants replaced, and a stable hash of that text.
//!
//! Constants become `$n`, numbered behind the statement's own parameters. The list of `IN (...)` counts as one constant where it holds
//! nothing but constants and parameters, so that its length does not matter. White space, comments and the case of words do not count.

use super::lexer::{self, Tok, Token};
use crate::error::Result;

/// A digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// The normalised text.
    pub text: String,
    /// FNV-1a, 64 bits, of `text`; stable over versions and machines.
    pub hash: u64,
}

/// The digest of a statement.
pub fn digest(sql: &str) -> Result<Digest> {
    let tokens = lexer::tokens(sql)?;
    let mut param = own_parameters(&tokens);
    let mut out = Writer::default();
    let mut i = 0;
    // What ends the text is no part of the statement.
    let last = tokens.iter().rposition(|t| !matches!(t.kind, Tok::End | Tok::Punct(b';')));
    while i < last.map_or(0, |last| last + 1) {
        let token = &tokens[i];
        if let Some(after) = constant_list_end(&tokens, i) {
            param += 1;
            out.word("(");
            out.word(&format!("${param}"));
            out.word(", ...)");
            i = after;
            continue;
        }
        match &token.kind {
            Tok::Int(_) | Tok::Num(_) | Tok::Str(_) | Tok::BitStr(_) => {
                param += 1;
                out.word(&format!("${param}"));
            }
            kind => out.token(kind),
        }
        i += 1;
    }
    let text = out.text;
    let hash = fnv1a(text.as_bytes());
    Ok(Digest { text, hash })
}

/// The highest number of a parameter outside of lists that count as one constant.
fn own_parameters(tokens: &[Token<'_>]) -> u32 {
    let (mut highest, mut i) = (0, 0);
    while i < tokens.len() {
        if let Some(after) = constant_list_end(tokens, i) {
            i = after;
            continue;
        }
        if let Tok::Param(n) = tokens[i].kind {
            highest = highest.max(n);
        }
        i += 1;
    }
    highest
}

/// The key of a plan cache: the text with its constants, without white space and comments that do not matter.
pub fn plan_key(sql: &str) -> Result<String> {
    let mut out = Writer::default();
    for token in &lexer::tokens(sql)? {
        match &token.kind {
            Tok::Int(n) | Tok::Num(n) | Tok::BitStr(n) => out.word(n),
            Tok::Str(s) => out.word(&format!("'{}'", s.replace('\'', "''"))),
            kind => out.token(kind),
        }
    }
    Ok(out.text)
}

/// Where `tokens[i]` opens the list of an IN that holds only constants: the index behind its end.
fn constant_list_end(tokens: &[Token<'_>], i: usize) -> Option<usize> {
    let behind_in = i > 0 && matches!(&tokens[i - 1].kind, Tok::Word(w) if w == "in");
    if !behind_in || tokens[i].kind != Tok::Punct(b'(') {
        return None;
    }
    let mut some = false;
    for (n, token) in tokens.iter().enumerate().skip(i + 1) {
        match &token.kind {
            Tok::Int(_) | Tok::Num(_) | Tok::Str(_) | Tok::Param(_) => some = true,
            Tok::Punct(b',') | Tok::Op("-" | "+") => {}
            Tok::Word(w) if w == "null" => {}
            Tok::Punct(b')') if some => return Some(n + 1),
            _ => return None,
        }
    }
    None
}

#[derive(Default)]
struct Writer {
    text: String,
    glue: bool,
}

impl Writer {
    fn word(&mut self, word: &str) {
        let tight = self.glue
            || self.text.is_empty()
            || matches!(word, "," | ")" | "]" | "." | ";" | "[" | "::")
            || word == ", ...)";
        if !tight {
            self.text.push(' ');
        }
        self.text.push_str(word);
        self.glue = matches!(word, "(" | "[" | "." | "::");
    }

    fn token(&mut self, kind: &Tok<'_>) {
        match kind {
            Tok::Word(w) => self.word(w),
            Tok::Quoted(q) => self.word(&format!("\"{}\"", q.replace('"', "\"\""))),
            Tok::Param(n) => self.word(&format!("${n}")),
            Tok::Op(op) => self.word(op),
            Tok::Punct(b) => self.word(&(*b as char).to_string()),
            Tok::Typecast => self.word("::"),
            Tok::ColonEquals => self.word(":="),
            Tok::EqualsGreater => self.word("=>"),
            Tok::DotDot => self.word(".."),
            Tok::Int(_) | Tok::Num(_) | Tok::Str(_) | Tok::BitStr(_) | Tok::End => {}
        }
    }
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}
