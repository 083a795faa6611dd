//! Finds matches by sets of ends: where each part can end if it begins at a place. A match is then divided among the parts, as PostgreSQL's
//! `regexec.c` does.

use super::set::{Set, is_word};
use super::{Are, Kind, Node, Prefers, character, first_preference};
use crate::error::Result;
use clearway_base::{breath, memory, stack};
use std::collections::HashMap;
use std::rc::Rc;

/// Parts whose ends are kept from one beginning to the next.
const KEPT_MAX: usize = 1 << 16;

type Ends = Rc<[usize]>;
type Groups = Vec<Option<(usize, usize)>>;

/// A search of one pattern in one text.
pub struct Search<'s> {
    are: &'s Are,
    text: &'s str,
    /// Ends of a part, by its number, that begins at a place.
    known: HashMap<(usize, usize), Ends>,
    groups: Groups,
}

/// Neighbouring parts of a sequence that get their text as one.
struct Unit<'s> {
    parts: &'s [Node],
    before: usize,
    prefers: Prefers,
}

impl<'s> Search<'s> {
    pub fn new(are: &'s Are, text: &'s str) -> Self {
        Self { are, text, known: HashMap::new(), groups: Vec::new() }
    }

    /// The first match that begins at byte `from` or behind it, with its groups.
    ///
    /// # Errors
    /// The reason for which the statement must end.
    pub fn find(&mut self, from: usize) -> Result<Option<Groups>> {
        let mut at = from;
        loop {
            if let Some(found) = self.match_at(at)? {
                return Ok(Some(found));
            }
            match self.text.get(at..).and_then(|rest| rest.chars().next()) {
                Some(c) => at += c.len_utf8(),
                None => return Ok(None),
            }
        }
    }

    /// The match that begins at a place.
    ///
    /// # Errors
    /// The reason for which the statement must end.
    pub fn match_at(&mut self, at: usize) -> Result<Option<Groups>> {
        let are = self.are;
        if self.known.len() > KEPT_MAX {
            self.known = HashMap::new();
        }
        let ends = self.ends(&are.root, at)?;
        for end in in_order(&ends, are.root.prefers()) {
            self.groups = vec![None; are.groups + 1];
            self.groups[0] = Some((at, end));
            if !are.root.is_divided() || self.divide(&are.root, at, end)? {
                return Ok(Some(std::mem::take(&mut self.groups)));
            }
        }
        Ok(None)
    }

    fn ends(&mut self, node: &Node, at: usize) -> Result<Ends> {
        breath::step(32)?;
        match &node.kind {
            Kind::Set(set) => {
                let next = self.text[at..].chars().next().filter(|c| set.has(*c));
                return Ok(next.map(|c| at + c.len_utf8()).into_iter().collect());
            }
            Kind::Repeat { node: inner, least, most, .. } => {
                if let Some(set) = character(inner) {
                    return self.run(set, *least, *most, at);
                }
            }
            Kind::Group(_, node) => return stack::deeper(|| self.ends(node, at)),
            _ => {}
        }
        if let Some(known) = self.known.get(&(node.id, at)) {
            return Ok(known.clone());
        }
        let ends: Ends = match &node.kind {
            Kind::Sequence(list) => self.behind(list, vec![at])?,
            Kind::Alternatives(list) => {
                let mut all = Vec::new();
                for n in list {
                    all.extend_from_slice(&stack::deeper(|| self.ends(n, at))?);
                }
                sorted(all)
            }
            Kind::Repeat { node, least, most, .. } => self.repeated(node, *least, *most, at)?,
            // What the group may match; whether it is the same is asked when the match is divided.
            Kind::Same(number) => match self.are.bodies.get(number - 1) {
                Some(body) => stack::deeper(|| self.ends(body, at))?,
                None => Rc::from([]),
            },
            _ if self.holds(node, at)? => Rc::from([at]),
            _ => Rc::from([]),
        };
        memory::claim(64 + size_of_val(&ends[..]))?;
        self.known.insert((node.id, at), ends.clone());
        Ok(ends)
    }

    /// Repetitions of one character.
    fn run(&self, set: &Set, least: u32, most: Option<u32>, mut at: usize) -> Result<Ends> {
        let (mut all, mut count) = (Vec::new(), 0u32);
        let mut chars = self.text[at..].chars();
        loop {
            breath::step(8)?;
            if count >= least {
                all.push(at);
            }
            if most == Some(count) {
                break;
            }
            let Some(c) = chars.next().filter(|c| set.has(*c)) else { break };
            (at, count) = (at + c.len_utf8(), count.saturating_add(1));
        }
        memory::claim(8 * all.len())?;
        Ok(all.into())
    }

    /// Where parts that follow each other can end, if the first begins at one of these places, which rise.
    fn behind(&mut self, list: &[Node], mut now: Vec<usize>) -> Result<Ends> {
        for node in list {
            let is_run = is_endless_run(node);
            let (mut next, mut covered) = (Vec::new(), None);
            for at in now {
                // A run that begins within another one ends nowhere else.
                if is_run && covered.is_some_and(|end| at <= end) {
                    continue;
                }
                let ends = stack::deeper(|| self.ends(node, at))?;
                covered = ends.last().copied();
                next.extend_from_slice(&ends);
            }
            next.sort_unstable();
            next.dedup();
            breath::step_bytes(8 * next.len())?;
            now = next;
            if now.is_empty() {
                break;
            }
        }
        Ok(now.into())
    }

    /// The ends of so many repetitions.
    fn repeated(&mut self, node: &Node, least: u32, most: Option<u32>, at: usize) -> Result<Ends> {
        let mut all = if least == 0 { vec![at] } else { Vec::new() };
        let mut now = vec![at];
        let mut seen = std::collections::HashSet::new();
        let mut count = 0;
        while !now.is_empty() && most.is_none_or(|most| count < most) {
            count += 1;
            let mut next = Vec::new();
            for at in now {
                next.extend_from_slice(&stack::deeper(|| self.ends(node, at))?);
            }
            next.sort_unstable();
            next.dedup();
            if count >= least {
                // What was reached with enough repetitions leads nowhere new.
                next.retain(|end| seen.insert(*end));
                memory::claim(16 * next.len())?;
                all.extend_from_slice(&next);
            }
            breath::step_bytes(8 * next.len())?;
            now = next;
        }
        Ok(sorted(all))
    }

    fn holds(&mut self, node: &Node, at: usize) -> Result<bool> {
        let before = self.text[..at].chars().next_back();
        let behind = self.text[at..].chars().next();
        let (left, right) = (before.is_some_and(is_word), behind.is_some_and(is_word));
        Ok(match &node.kind {
            Kind::Empty => true,
            Kind::TextStart => at == 0,
            Kind::TextEnd => at == self.text.len(),
            Kind::LineStart => before.is_none_or(|c| c == '\n'),
            Kind::LineEnd => behind.is_none_or(|c| c == '\n'),
            Kind::WordStart => !left && right,
            Kind::WordEnd => left && !right,
            Kind::WordEdge => left != right,
            Kind::NoWordEdge => left == right,
            Kind::Look { ahead: true, wanted, node } => stack::deeper(|| self.ends(node, at))?.is_empty() != *wanted,
            Kind::Look { ahead: false, wanted, node } => {
                let (mut found, mut from, mut left) = (false, at, node.most_characters());
                loop {
                    found |= stack::deeper(|| self.ends(node, from))?.contains(&at);
                    let Some(c) = self.text[..from].chars().next_back().filter(|_| !found && left != Some(0)) else {
                        break;
                    };
                    (from, left) = (from - c.len_utf8(), left.map(|left| left - 1));
                }
                found == *wanted
            }
            _ => false,
        })
    }

    /// Divides a text that the part matches; false: a back-reference does not fit.
    fn divide(&mut self, node: &Node, from: usize, to: usize) -> Result<bool> {
        breath::step(32)?;
        match &node.kind {
            Kind::Group(number, inner) => {
                if !stack::deeper(|| self.divide(inner, from, to))? {
                    return Ok(false);
                }
                self.groups[*number] = Some((from, to));
                Ok(true)
            }
            Kind::Same(number) => {
                let same = self.groups[*number].map(|(a, b)| (&self.text[a..b], &self.text[from..to]));
                let fold = self.are.options.fold;
                Ok(same.is_some_and(|(a, b)| a == b || fold && a.to_lowercase() == b.to_lowercase()))
            }
            Kind::Alternatives(list) => {
                for n in list {
                    if stack::deeper(|| self.ends(n, from))?.contains(&to) && self.tried(n, from, to)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Kind::Sequence(list) => {
                let units = units(list);
                self.divide_units(list, &units, from, to)
            }
            Kind::Repeat { node: inner, least, most, .. } => {
                if !inner.is_divided() {
                    return Ok(true);
                }
                self.forget(inner);
                if from == to && *least == 0 {
                    // Nothing is one repetition where the part can match it, else none.
                    if stack::deeper(|| self.ends(inner, from))?.contains(&to) {
                        self.tried(inner, from, to)?;
                    }
                    return Ok(true);
                }
                self.divide_repeated(inner, ((*least).max(1), *most), from, to)
            }
            _ => Ok(true),
        }
    }

    /// Divides, and takes back the groups if that can't be done.
    fn tried(&mut self, node: &Node, from: usize, to: usize) -> Result<bool> {
        if !node.is_divided() {
            return Ok(true);
        }
        let before = self.groups.clone();
        if stack::deeper(|| self.divide(node, from, to))? {
            return Ok(true);
        }
        self.groups = before;
        Ok(false)
    }

    fn divide_units(&mut self, list: &[Node], units: &[Unit<'_>], from: usize, to: usize) -> Result<bool> {
        let Some((unit, rest)) = units.split_first() else { return Ok(from == to) };
        let ends = match unit.parts {
            [only] => self.ends(only, from)?,
            parts => self.behind(parts, vec![from])?,
        };
        let behind = unit.before + unit.parts.len();
        for middle in in_order(&ends, unit.prefers) {
            let leads_there = match rest.is_empty() {
                true => middle == to,
                false => middle <= to && self.behind(&list[behind..], vec![middle])?.contains(&to),
            };
            if !leads_there {
                continue;
            }
            let before = self.groups.clone();
            let fits = match unit.parts {
                [only] => self.tried(only, from, middle)?,
                _ => true,
            };
            if fits && stack::deeper(|| self.divide_units(list, rest, middle, to))? {
                return Ok(true);
            }
            self.groups = before;
        }
        Ok(false)
    }

    fn divide_repeated(
        &mut self,
        node: &Node,
        (least, most): (u32, Option<u32>),
        from: usize,
        to: usize,
    ) -> Result<bool> {
        if most == Some(0) {
            return Ok(from == to && least == 0);
        }
        let (least, most) = (least.saturating_sub(1), most.map(|most| most - 1));
        let ends = self.ends(node, from)?;
        for middle in in_order(&ends, node.prefers()) {
            // An empty repetition is one only where it is needed.
            let is_idle = middle == from && least == 0 && from != to;
            if is_idle || middle > to {
                continue;
            }
            let is_last = middle == to && least == 0;
            if !is_last && !self.repeated(node, least, most, middle)?.contains(&to) {
                continue;
            }
            let before = self.groups.clone();
            self.forget(node);
            if self.tried(node, from, middle)?
                && (is_last || stack::deeper(|| self.divide_repeated(node, (least, most), middle, to))?)
            {
                return Ok(true);
            }
            self.groups = before;
        }
        Ok(false)
    }

    /// A repetition begins without what the one before has captured.
    fn forget(&mut self, node: &Node) {
        node.any(&mut |n| {
            if let Kind::Group(number, _) = n.kind {
                self.groups[number] = None;
            }
            false
        });
    }
}

/// Whether a part is one character as often as it comes.
fn is_endless_run(node: &Node) -> bool {
    match &node.kind {
        Kind::Repeat { node, most: None, .. } => character(node).is_some(),
        Kind::Group(_, node) => is_endless_run(node),
        _ => false,
    }
}

fn sorted(mut all: Vec<usize>) -> Ends {
    all.sort_unstable();
    all.dedup();
    all.into()
}

fn in_order(ends: &Ends, prefers: Prefers) -> Vec<usize> {
    let mut list = ends.to_vec();
    if prefers != Prefers::Shortest {
        list.reverse();
    }
    list
}

/// Parts that capture nothing and agree in what they prefer are one.
fn units(list: &[Node]) -> Vec<Unit<'_>> {
    let mut units: Vec<Unit<'_>> = Vec::new();
    let (mut begin, mut seen) = (0, (false, false));
    let unit = |from: usize, to: usize| Unit {
        parts: &list[from..to],
        before: from,
        prefers: first_preference(&list[from..to]),
    };
    for (i, node) in list.iter().enumerate() {
        let own = (node.mentions(Prefers::Longest), node.mentions(Prefers::Shortest));
        let both = (seen.0 || own.0, seen.1 || own.1);
        if node.is_divided() || both == (true, true) {
            if begin < i {
                units.push(unit(begin, i));
            }
            units.push(unit(i, i + 1));
            (begin, seen) = (i + 1, (false, false));
        } else {
            seen = both;
        }
    }
    if begin < list.len() {
        units.push(unit(begin, list.len()));
    }
    units
}
