//! Regular expressions on long texts: the library's automata are run byte by byte, so that there are breaths.
//!
//! Whether there is a match is decided by the library's lazy DFA. Where the DFA can't decide (a word boundary beside a character beyond
//! ASCII), and for groups, all states of the NFA are simulated at once (Pike's machine; source: Russ Cox, "Regular Expression Matching:
//! the Virtual Machine Approach").

use crate::error::Result;
use clearway_base::breath;
use regex_automata::hybrid::dfa::DFA;
use regex_automata::nfa::thompson::{self, NFA, State};
use regex_automata::util::primitives::StateID;
use regex_automata::util::syntax;
use regex_automata::{Input, MatchKind};

/// A pattern for long texts.
#[derive(Debug)]
pub struct LongRegex {
    nfa: NFA,
    dfa: Option<DFA>,
}

/// Where groups begin and end; those of the whole match are the first two.
pub type Slots = Vec<Option<usize>>;

/// States to be followed, each once, in the order of preference.
struct Threads {
    list: Vec<(StateID, Slots)>,
    seen: Vec<usize>,
    mark: usize,
}

impl Threads {
    fn new(states: usize) -> Self {
        Self { list: Vec::new(), seen: vec![0; states], mark: 0 }
    }

    fn begin(&mut self) {
        self.list.clear();
        self.mark += 1;
    }
}

impl LongRegex {
    /// Builds the automata of a pattern that the library has accepted; none: they are too large.
    pub fn new(pattern: &str) -> Option<Self> {
        let syntax = syntax::Config::new().dot_matches_new_line(true);
        let limits = thompson::Config::new().nfa_size_limit(Some(16 << 20));
        let nfa = thompson::Compiler::new().syntax(syntax).configure(limits).build(pattern).ok()?;
        let config = DFA::config()
            .match_kind(MatchKind::LeftmostFirst)
            .unicode_word_boundary(true)
            .skip_cache_capacity_check(true);
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa.clone()).ok();
        Some(Self { nfa, dfa })
    }

    /// What one byte of text may cost.
    pub fn states(&self) -> usize {
        self.nfa.states().len()
    }

    /// Whether the text has a match.
    ///
    /// # Errors
    /// The reason for which the statement must end.
    pub fn is_match(&self, text: &str) -> Result<bool> {
        match self.quick(text)? {
            Some(found) => Ok(found),
            None => Ok(self.find(text, true)?.is_some()),
        }
    }

    /// By the DFA; none: it can't tell.
    fn quick(&self, text: &str) -> Result<Option<bool>> {
        let Some(dfa) = &self.dfa else { return Ok(None) };
        let mut cache = dfa.create_cache();
        let Ok(mut state) = dfa.start_state_forward(&mut cache, &Input::new(text)) else { return Ok(None) };
        for piece in text.as_bytes().chunks(64) {
            breath::step_bytes(16 * piece.len())?;
            for byte in piece {
                let Ok(next) = dfa.next_state(&mut cache, state, *byte) else { return Ok(None) };
                state = next;
                if state.is_tagged() {
                    if state.is_match() {
                        return Ok(Some(true));
                    }
                    if state.is_dead() {
                        return Ok(Some(false));
                    }
                    if state.is_quit() {
                        return Ok(None);
                    }
                }
            }
        }
        let Ok(last) = dfa.next_eoi_state(&mut cache, state) else { return Ok(None) };
        Ok((!last.is_quit()).then(|| last.is_match()))
    }

    /// The slots of the first match; with `any` of whichever is found first.
    ///
    /// # Errors
    /// The reason for which the statement must end.
    pub fn find(&self, text: &str, any: bool) -> Result<Option<Slots>> {
        let count = if any { 0 } else { self.nfa.group_info().slot_len() };
        let (mut now, mut then) = (Threads::new(self.states()), Threads::new(self.states()));
        let mut found: Option<Slots> = None;
        now.begin();
        for at in 0..=text.len() {
            breath::step(16)?;
            if found.is_none() && text.is_char_boundary(at) {
                self.follow(&mut now, self.nfa.start_anchored(), vec![None; count], text, at)?;
            }
            if now.list.is_empty() && found.is_some() {
                break;
            }
            then.begin();
            for (state, slots) in std::mem::take(&mut now.list) {
                breath::step(8)?;
                let next = match self.nfa.state(state) {
                    State::Match { .. } => {
                        found = Some(slots);
                        break; // what comes behind is preferred less
                    }
                    State::ByteRange { trans } => trans.matches(text.as_bytes(), at).then_some(trans.next),
                    State::Sparse(list) => list.matches(text.as_bytes(), at),
                    State::Dense(list) => list.matches(text.as_bytes(), at),
                    _ => None,
                };
                if let Some(next) = next {
                    self.follow(&mut then, next, slots, text, at + 1)?;
                }
            }
            if any && found.is_some() {
                break;
            }
            std::mem::swap(&mut now, &mut then);
        }
        Ok(found)
    }

    /// Adds a state, and those that it leads to without a byte.
    fn follow(&self, threads: &mut Threads, state: StateID, slots: Slots, text: &str, at: usize) -> Result<()> {
        let mut left = vec![(state, slots)];
        while let Some((state, mut slots)) = left.pop() {
            breath::step(8)?;
            if std::mem::replace(&mut threads.seen[state.as_usize()], threads.mark) == threads.mark {
                continue;
            }
            match self.nfa.state(state) {
                State::Look { look, next } => {
                    if self.nfa.look_matcher().matches(*look, text.as_bytes(), at) {
                        left.push((*next, slots));
                    }
                }
                State::Union { alternates } => {
                    breath::step_bytes(8 * alternates.len())?;
                    left.extend(alternates.iter().rev().map(|next| (*next, slots.clone())));
                }
                State::BinaryUnion { alt1, alt2 } => {
                    left.push((*alt2, slots.clone()));
                    left.push((*alt1, slots));
                }
                State::Capture { next, slot, .. } => {
                    if let Some(place) = slots.get_mut(slot.as_usize()) {
                        *place = Some(at);
                    }
                    left.push((*next, slots));
                }
                State::Fail => {}
                _ => threads.list.push((state, slots)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_matched_as_short_ones_are() -> Result<()> {
        let patterns = [
            "a",
            "^a",
            "b$",
            "a*b",
            "(a+)(b?)",
            "(a|ab)(c|bcd)(d*)",
            "(?:a|é)+$",
            "\\bé\\b",
            "[^a]b",
            "^$",
            "",
            "(b*)(a*)?c",
            "a{2,3}",
            "x|y|(c)",
            "\\w+\\s",
            "(?:(a)|(b))*",
        ];
        let texts = ["", "a", "b", "aab", "abcd", "éa b", "caé", "aaaa", "bbac", "a é b", "xyc", "é"];
        for pattern in patterns {
            let short = regex::RegexBuilder::new(pattern).dot_matches_new_line(true).build().expect("a pattern");
            let long = LongRegex::new(pattern).expect("a small one");
            for text in texts {
                assert_eq!(long.is_match(text)?, short.is_match(text), "{text} ~ {pattern}");
                let expected: Option<Slots> = short
                    .captures(text)
                    .map(|c| c.iter().flat_map(|g| [g.map(|g| g.start()), g.map(|g| g.end())]).collect());
                assert_eq!(long.find(text, false)?, expected, "{text} ~ {pattern}");
            }
        }
        Ok(())
    }
}
