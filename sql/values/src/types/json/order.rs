//! The order of jsonb (`compareJsonbContainers` of src/backend/utils/adt/jsonb_util.c).

use super::document::Json;
use std::cmp::Ordering;

fn rank(json: &Json) -> u8 {
    match json {
        Json::Null => 0,
        Json::String(_) | Json::Moment(..) => 1,
        Json::Number(_) => 2,
        Json::Bool(_) => 3,
        Json::Array(_) => 4,
        Json::Object(_) => 5,
    }
}

/// Compares two documents. A scalar counts as an array of one element before other arrays of one element.
pub fn compare(a: &Json, b: &Json) -> Ordering {
    match (a, b) {
        (Json::Array(list), scalar) if scalar.is_scalar() => list.len().cmp(&1).then(Ordering::Greater),
        (scalar, Json::Array(list)) if scalar.is_scalar() => 1.cmp(&list.len()).then(Ordering::Less),
        _ => inner(a, b),
    }
}

fn inner(a: &Json, b: &Json) -> Ordering {
    match (a, b) {
        (Json::Bool(x), Json::Bool(y)) => x.cmp(y),
        (Json::Number(x), Json::Number(y)) => x.compare(y),
        (Json::String(x), Json::String(y)) => x.as_bytes().cmp(y.as_bytes()),
        (Json::Array(x), Json::Array(y)) => {
            let elements =
                || clearway_base::stack::deeper(|| x.iter().zip(y).map(|(a, b)| inner(a, b)).find(|o| o.is_ne()));
            x.len().cmp(&y.len()).then_with(|| elements().unwrap_or(Ordering::Equal))
        }
        (Json::Object(x), Json::Object(y)) => {
            let members = || {
                let pairs = x.iter().zip(y);
                let both = |((k, v), (l, w)): (&(_, Json), &(std::sync::Arc<str>, Json))| {
                    let (k, l): (&std::sync::Arc<str>, &std::sync::Arc<str>) = (k, l);
                    k.as_bytes().cmp(l.as_bytes()).then_with(|| inner(v, w))
                };
                clearway_base::stack::deeper(|| pairs.map(both).find(|o| o.is_ne()))
            };
            x.len().cmp(&y.len()).then_with(|| members().unwrap_or(Ordering::Equal))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}
