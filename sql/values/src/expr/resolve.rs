//! Chooses operators and functions by the types of their arguments, after PostgreSQL's `func_select_candidate` and
//! `oper_select_candidate`.

use crate::types::cast::{Context, can};
use crate::types::range::{self, RangeKind};
use crate::types::{Oid, array_of, category, element_of, facts, oid};

/// What a choice came to.
pub enum Choice {
    /// The candidate's index.
    One(usize),
    /// None fits.
    None,
    /// Several do, and no rule prefers one.
    Many,
}

/// Chooses among candidates given by their argument types; `inputs` may hold `unknown`.
pub fn choose(inputs: &[Oid], candidates: &[&[Oid]]) -> Choice {
    let alive: Vec<usize> = (0..candidates.len())
        .filter(|&i| candidates[i].len() == inputs.len())
        .filter(|&i| inputs.iter().zip(candidates[i]).all(|(a, b)| accepts(*a, *b)))
        .filter(|&i| agrees(candidates[i], inputs))
        .collect();
    if let Some(&exact) = alive.iter().find(|&&i| candidates[i] == inputs) {
        return Choice::One(exact);
    }
    match alive.as_slice() {
        [] => return Choice::None,
        [one] => return Choice::One(*one),
        _ => {}
    }
    let known = |i: usize| inputs[i] != oid::UNKNOWN;
    let alive = most(&alive, |c| (0..inputs.len()).filter(|&i| known(i) && candidates[c][i] == inputs[i]).count());
    if let [one] = alive.as_slice() {
        return Choice::One(*one);
    }
    let alive = most(&alive, |c| {
        (0..inputs.len())
            .filter(|&i| {
                let t = candidates[c][i];
                known(i) && (t == inputs[i] || (category(t) == category(inputs[i]) && preferred(t)))
            })
            .count()
    });
    if let [one] = alive.as_slice() {
        return Choice::One(*one);
    }
    if inputs.iter().all(|t| *t != oid::UNKNOWN) {
        return Choice::Many;
    }
    choose_by_category(inputs, candidates, alive)
}

/// Whether what a candidate with polymorphic ranges says of its arguments can be true of all of them at once.
fn agrees(candidate: &[Oid], inputs: &[Oid]) -> bool {
    let of_ranges = candidate.iter().any(|t| matches!(*t, oid::ANYRANGE | oid::ANYMULTIRANGE));
    !of_ranges || solve(candidate, inputs, oid::VOID).is_some()
}

fn accepts(input: Oid, target: Oid) -> bool {
    let unknown = input == oid::UNKNOWN;
    match target {
        ANY | oid::ANYELEMENT | oid::ANYCOMPATIBLE => true,
        oid::ANYNONARRAY => element_of(input).is_none(),
        oid::ANYARRAY | oid::ANYCOMPATIBLEARRAY => unknown || element_of(input).is_some(),
        oid::ANYENUM => unknown || category(input) == b'E',
        oid::ANYRANGE => unknown || range::of_range(input).is_some(),
        oid::ANYMULTIRANGE => unknown || range::of_multirange(input).is_some(),
        _ => can(input, target, Context::Implicit),
    }
}

/// An argument of any type whatever the others are (PostgreSQL's "any").
pub const ANY: Oid = oid::ANY;

/// The types that a signature comes to for these arguments: each polymorphic type is replaced by what the arguments say. None: they disagree.
pub fn solve(signature: &[Oid], inputs: &[Oid], result: Oid) -> Option<(Vec<Oid>, Oid)> {
    if signature.iter().all(|t| !is_polymorphic(*t)) {
        return Some((signature.to_vec(), result));
    }
    let mut element: Option<Oid> = None;
    let mut compatible = Vec::new();
    let mut kind: Option<&'static RangeKind> = None;
    for (wanted, input) in signature.iter().zip(inputs).filter(|(_, input)| **input != oid::UNKNOWN) {
        match *wanted {
            oid::ANYELEMENT | oid::ANYNONARRAY | oid::ANYENUM => same(&mut element, *input)?,
            oid::ANYARRAY => same(&mut element, element_of(*input)?)?,
            oid::ANYRANGE | oid::ANYMULTIRANGE => {
                let of = if *wanted == oid::ANYRANGE { range::of_range(*input) } else { range::of_multirange(*input) };
                let of = of?;
                if *kind.get_or_insert(of) != of {
                    return None;
                }
                same(&mut element, of.element)?;
            }
            oid::ANYCOMPATIBLE => compatible.push(*input),
            oid::ANYCOMPATIBLEARRAY => compatible.push(element_of(*input)?),
            _ => {}
        }
    }
    let element = element.unwrap_or(oid::TEXT);
    let compatible = common_type(&compatible).ok()?;
    let concrete = |t: Oid| match t {
        oid::ANYELEMENT | oid::ANYNONARRAY | oid::ANYENUM => Some(element),
        oid::ANYARRAY => array_of(element),
        oid::ANYRANGE => kind.map(|k| k.range),
        oid::ANYMULTIRANGE => kind.map(|k| k.multirange),
        oid::ANYCOMPATIBLE => Some(compatible),
        oid::ANYCOMPATIBLEARRAY => array_of(compatible),
        t => Some(t),
    };
    let concrete_input = |(t, input): (&Oid, &Oid)| match *t {
        // int2vector and oidvector are arrays, too.
        oid::ANYARRAY if *input != oid::UNKNOWN => Some(*input),
        t => concrete(t),
    };
    let arguments = signature.iter().zip(inputs).map(concrete_input).collect::<Option<Vec<Oid>>>()?;
    Some((arguments, concrete(result)?))
}

/// Whether a type of a signature stands for what the arguments say.
pub fn is_polymorphic(t: Oid) -> bool {
    matches!(
        t,
        oid::ANYELEMENT
            | oid::ANYNONARRAY
            | oid::ANYENUM
            | oid::ANYARRAY
            | oid::ANYCOMPATIBLE
            | oid::ANYCOMPATIBLEARRAY
            | oid::ANYRANGE
            | oid::ANYMULTIRANGE
    )
}

fn same(known: &mut Option<Oid>, new: Oid) -> Option<()> {
    (*known.get_or_insert(new) == new).then_some(())
}

fn preferred(t: Oid) -> bool {
    facts(t).is_some_and(|f| f.preferred)
}

fn most(alive: &[usize], score: impl Fn(usize) -> usize) -> Vec<usize> {
    let best = alive.iter().map(|&c| score(c)).max().unwrap_or(0);
    alive.iter().copied().filter(|&c| score(c) == best).collect()
}

/// The rules for arguments of unknown type: by category, preferring strings, then by the types that are known.
fn choose_by_category(inputs: &[Oid], candidates: &[&[Oid]], alive: Vec<usize>) -> Choice {
    let mut kept = alive.clone();
    let mut resolved = true;
    for i in (0..inputs.len()).filter(|&i| inputs[i] == oid::UNKNOWN) {
        let categories: Vec<u8> = alive.iter().map(|&c| category(candidates[c][i])).collect();
        let slot = if categories.contains(&b'S') {
            b'S'
        } else if categories.iter().all(|c| *c == categories[0]) {
            categories[0]
        } else {
            resolved = false;
            break;
        };
        let has_preferred = alive.iter().any(|&c| category(candidates[c][i]) == slot && preferred(candidates[c][i]));
        kept.retain(|&c| {
            let t = candidates[c][i];
            category(t) == slot && (!has_preferred || preferred(t))
        });
    }
    let rest = if resolved && !kept.is_empty() { kept } else { alive };
    if let [one] = rest.as_slice() {
        return Choice::One(*one);
    }
    let mut known = inputs.iter().copied().filter(|t| *t != oid::UNKNOWN);
    if let Some(first) = known.next()
        && known.all(|t| t == first)
    {
        let fit: Vec<usize> = rest
            .iter()
            .copied()
            .filter(|&c| (0..inputs.len()).all(|i| inputs[i] != oid::UNKNOWN || accepts(first, candidates[c][i])))
            .filter(|&c| agrees(candidates[c], &vec![first; inputs.len()]))
            .collect();
        if let [one] = fit.as_slice() {
            return Choice::One(*one);
        }
    }
    Choice::Many
}

/// The type to which all of a CASE's, UNION's or list's types resolve; none: they don't match.
///
/// The error names the first type that did not fit and the one before it.
pub fn common_type(types: &[Oid]) -> std::result::Result<Oid, (Oid, Oid)> {
    let mut known = types.iter().copied().filter(|t| *t != oid::UNKNOWN);
    let Some(mut chosen) = known.next() else {
        return Ok(oid::TEXT);
    };
    for t in known {
        if t == chosen {
            continue;
        }
        if category(t) != category(chosen) {
            return Err((chosen, t));
        }
        if !preferred(chosen) && can(chosen, t, Context::Implicit) && !can(t, chosen, Context::Implicit) {
            chosen = t;
        }
    }
    Ok(chosen)
}
