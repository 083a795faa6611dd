//! Assignment to a member or element of a jsonb document, as UPDATE does it: `document[a][b] = value`.

use super::bind_assign::JSON_SET;
use super::functions::Function;
use crate::error::{Result, SqlError, code};
use crate::types::json::{Json, name_order};
use crate::types::{Datum, Oid, oid};
use clearway_base::{breath, memory, stack};

/// (document, value, one subscript for each level, integer or text).
pub static SET: Function = {
    const ARGS: &[Oid] = &[oid::JSONB, oid::JSONB];
    Function {
        name: JSON_SET,
        args: ARGS,
        result: oid::JSONB,
        strict: false,
        variadic: false,
        volatile: false,
        body: |a, _| with_member(a),
    }
};

/// The most elements that an assignment behind an array's end adds.
const ELEMENTS_MAX: i64 = (1 << 27) - 1;

/// A document with another value at some subscripts: (document, value, one subscript for each level, integer or text).
///
/// # Errors
/// 22004 for a subscript that is NULL, 22P02 and 22023 for one that the document can't have, 54000.
pub fn with_member(a: &[Datum]) -> Result<Datum> {
    let key = |d: &Datum| match d {
        Datum::Null => Err(SqlError::new("22004", "jsonb subscript in assignment must not be null")),
        d => Ok(d.as_str().map_or_else(|| d.as_i64().unwrap_or(0).to_string(), str::to_owned)),
    };
    let path = a[2..].iter().map(key).collect::<Result<Vec<String>>>()?;
    let value = match &a[1] {
        Datum::Jsonb(value) => (**value).clone(),
        _ => Json::Null,
    };
    let mut document = match &a[0] {
        Datum::Jsonb(old) => (**old).clone(),
        // What a document of nothing becomes is told by the first subscript.
        _ if a[2].as_str().is_none() => Json::Array(Vec::new()),
        _ => Json::Object(Vec::new()),
    };
    memory::claim(2 * (document.heap_bytes() + value.heap_bytes()))?;
    set(&mut document, &path, 0, value)?;
    Ok(Datum::Jsonb(document.into()))
}

fn set(at: &mut Json, path: &[String], level: usize, value: Json) -> Result<()> {
    breath::step(16)?;
    let Some(key) = path.get(level) else {
        *at = value;
        return Ok(());
    };
    match at {
        Json::Object(members) => {
            let found = members.binary_search_by(|m| name_order(&m.0, key));
            match found {
                Ok(place) => stack::deeper(|| set(&mut members[place].1, path, level + 1, value)),
                Err(place) => {
                    members.insert(place, (key.as_str().into(), made(path, level + 1, value)?));
                    Ok(())
                }
            }
        }
        Json::Array(list) => {
            let n = key.trim().parse::<i32>().map_err(|_| {
                let message = format!("path element at position {} is not an integer: \"{key}\"", level + 1);
                SqlError::new(code::INVALID_TEXT_REPRESENTATION, message)
            })?;
            let length = list.len() as i64;
            let place = if n < 0 { i64::from(n) + length } else { i64::from(n) };
            let Ok(place) = usize::try_from(place) else {
                let message = format!("path element at position {} is out of range: {n}", level + 1);
                return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
            };
            if let Some(next) = list.get_mut(place) {
                return stack::deeper(|| set(next, path, level + 1, value));
            }
            let last = made(path, level + 1, value)?;
            fill(list, place as i64, last)
        }
        _ => Err(SqlError::new(code::INVALID_PARAMETER_VALUE, "cannot replace existing key")
            .detail("The path assumes key is a composite object, but it is a scalar value.")),
    }
}

/// Puts a value behind the end of an array, with nulls before it.
fn fill(list: &mut Vec<Json>, place: i64, value: Json) -> Result<()> {
    if place > ELEMENTS_MAX {
        let message = format!("number of jsonb array elements exceeds the maximum allowed ({ELEMENTS_MAX})");
        return Err(SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, message));
    }
    memory::claim(size_of::<Json>() * (place + 1) as usize)?;
    breath::step_bytes(place as usize)?;
    list.resize(place as usize, Json::Null);
    list.push(value);
    Ok(())
}

/// The value of a path that nothing stands on: a subscript that is a number makes an array, any other an object.
fn made(path: &[String], level: usize, value: Json) -> Result<Json> {
    let Some(key) = path.get(level) else { return Ok(value) };
    let inner = stack::deeper(|| made(path, level + 1, value))?;
    let Ok(n) = key.trim().parse::<i32>() else {
        return Ok(Json::Object(vec![(key.as_str().into(), inner)]));
    };
    if n < 0 {
        let message = format!("path element at position {} is out of range: {n}", level + 1);
        return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
    }
    let mut list = Vec::new();
    fill(&mut list, i64::from(n), inner)?;
    Ok(Json::Array(list))
}
