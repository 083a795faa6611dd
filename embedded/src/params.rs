//! Parameters of a statement: by position (`$1`, or `?` as SQLite has it), or by name (`:id`).

use clearway_syntax::lexer::{Tok, tokens};

use crate::error::{Error, Result};
use crate::param::ToSql;

/// Everything that a statement is given: `()`, a tuple, an array, a slice, [`Named`], or a type with `#[derive(Params)]`.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// # let db = clearway::Database::in_memory()?;
/// # let mut connection = db.connect()?;
/// connection.execute("CREATE TABLE t (a int, b text)", ())?;
/// connection.execute("INSERT INTO t VALUES ($1, $2)", (1, "one"))?; // a tuple
/// connection.execute("INSERT INTO t (a) VALUES (?), (?)", [2, 3])?; // an array, and the marks of SQLite
/// connection.execute("INSERT INTO t (a) VALUES ($1)", vec![4])?;
/// # Ok(())
/// # }
/// ```
pub trait Params {
    /// How many there are.
    fn count(&self) -> usize;

    /// One of them, from 0.
    fn value(&self, at: usize) -> &dyn ToSql;

    /// Its name, where parameters have names.
    fn name(&self, _at: usize) -> Option<&str> {
        None
    }
}

impl Params for () {
    fn count(&self) -> usize {
        0
    }
    fn value(&self, _: usize) -> &dyn ToSql {
        &None::<bool>
    }
}

impl<P: Params + ?Sized> Params for &P {
    fn count(&self) -> usize {
        (**self).count()
    }
    fn value(&self, at: usize) -> &dyn ToSql {
        (**self).value(at)
    }
    fn name(&self, at: usize) -> Option<&str> {
        (**self).name(at)
    }
}

impl<T: ToSql> Params for [T] {
    fn count(&self) -> usize {
        self.len()
    }
    fn value(&self, at: usize) -> &dyn ToSql {
        &self[at]
    }
}

impl<T: ToSql, const N: usize> Params for [T; N] {
    fn count(&self) -> usize {
        N
    }
    fn value(&self, at: usize) -> &dyn ToSql {
        &self[at]
    }
}

impl<T: ToSql> Params for Vec<T> {
    fn count(&self) -> usize {
        self.len()
    }
    fn value(&self, at: usize) -> &dyn ToSql {
        &self[at]
    }
}

/// Parameters with names: `Named(&[("id", &7), ("owner", &"Ada")])` for `:id` and `:owner` in the text.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// # let db = clearway::Database::in_memory()?;
/// # let mut connection = db.connect()?;
/// use clearway::Named;
/// let (sum,): (i32,) = connection.query_row("SELECT :a::int + :b::int + :a::int", Named(&[("a", &1), ("b", &5)]))?;
/// assert_eq!(sum, 7);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Named<'a>(pub &'a [(&'a str, &'a dyn ToSql)]);

impl Params for Named<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }
    fn value(&self, at: usize) -> &dyn ToSql {
        self.0[at].1
    }
    fn name(&self, at: usize) -> Option<&str> {
        Some(self.0[at].0.trim_start_matches(':'))
    }
}

macro_rules! tuples {
    ($($count:literal: $($ty:ident $at:tt),+;)*) => {$(
        impl<$($ty: ToSql),+> Params for ($($ty,)+) {
            fn count(&self) -> usize {
                $count
            }
            fn value(&self, at: usize) -> &dyn ToSql {
                match at {
                    $($at => &self.$at,)+
                    _ => &None::<bool>,
                }
            }
        }
    )*};
}
tuples! {
    1: A 0;
    2: A 0, B 1;
    3: A 0, B 1, C 2;
    4: A 0, B 1, C 2, D 3;
    5: A 0, B 1, C 2, D 3, E 4;
    6: A 0, B 1, C 2, D 3, E 4, F 5;
    7: A 0, B 1, C 2, D 3, E 4, F 5, G 6;
    8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7;
    9: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8;
    10: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9;
    11: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10;
    12: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11;
}

/// Whether the parameters have names.
pub(crate) fn are_named(params: &(impl Params + ?Sized)) -> bool {
    params.count() > 0 && params.name(0).is_some()
}

/// A text with `:name` replaced by `$n`, and the names in the order of their numbers.
pub(crate) fn numbered(sql: &str) -> Result<(String, Vec<String>)> {
    let list = tokens(sql)?;
    let (mut out, mut names, mut copied) = (String::with_capacity(sql.len()), Vec::<String>::new(), 0);
    for pair in list.windows(2) {
        let [colon, word] = pair else { continue };
        let (from, to) = (colon.start as usize, word.end as usize);
        let joined = colon.end == word.start && matches!(colon.kind, Tok::Punct(b':'));
        if !joined || !matches!(word.kind, Tok::Word(_)) {
            continue;
        }
        let name = sql.get(word.start as usize..to).unwrap_or_default();
        let at = names.iter().position(|known| known == name).unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        });
        out.push_str(sql.get(copied..from).unwrap_or_default());
        out.push_str(&format!("${}", at + 1));
        copied = to;
    }
    out.push_str(sql.get(copied..).unwrap_or_default());
    Ok((out, names))
}

/// A text with each `?` replaced by `$1`, `$2` and so on; none if it has none, or has `$n` itself: then `?` is an operator.
pub(crate) fn marked(sql: &str) -> Result<Option<String>> {
    if !sql.contains('?') {
        return Ok(None);
    }
    let list = tokens(sql)?;
    if list.iter().any(|token| matches!(token.kind, Tok::Param(_))) {
        return Ok(None);
    }
    let (mut out, mut count, mut copied) = (String::with_capacity(sql.len() + 8), 0, 0);
    for token in &list {
        // Neighbours stick to the mark: `=?` is one operator to the lexer. These are operators of jsonb.
        if !matches!(token.kind, Tok::Op(op) if op.contains('?') && !matches!(op, "?|" | "?&" | "@?")) {
            continue;
        }
        let (from, to) = (token.start as usize, token.end as usize);
        out.push_str(sql.get(copied..from).unwrap_or_default());
        for c in sql.get(from..to).unwrap_or_default().chars() {
            if c == '?' {
                count += 1;
                out.push_str(&format!(" ${count} "));
            } else {
                out.push(c);
            }
        }
        copied = to;
    }
    out.push_str(sql.get(copied..).unwrap_or_default());
    Ok((count > 0).then_some(out))
}

/// Which of the given parameters is that of a name.
pub(crate) fn position(params: &(impl Params + ?Sized), name: &str) -> Result<usize> {
    let found = (0..params.count()).find(|at| params.name(*at) == Some(name));
    found.ok_or_else(|| Error::Parameters(format!("the statement has :{name}, for which no value is given")))
}

#[cfg(test)]
mod tests {
    use super::{marked, numbered};

    #[test]
    fn marks_become_numbers_where_they_are_no_operators() {
        let marked = |sql| marked(sql).expect("tokens");
        assert_eq!(
            marked("SELECT ?, '?' WHERE a=? AND b>=?||?"),
            Some("SELECT  $1 , '?' WHERE a= $2  AND b>= $3 || $4 ".into())
        );
        assert_eq!(marked("SELECT data ? 'key' WHERE id = $1"), None);
        assert_eq!(
            marked("SELECT data ?| array['a'] WHERE id = ?"),
            Some("SELECT data ?| array['a'] WHERE id =  $1 ".into())
        );
        assert_eq!(marked("SELECT 1"), None);
    }

    #[test]
    fn names_become_numbers_outside_of_texts_casts_and_slices() {
        let (sql, names) = numbered("SELECT ':a', :b::int, a[1:2], \":c\", :b + :d -- :e\n, $$:f$$").expect("tokens");
        assert_eq!(sql, "SELECT ':a', $1::int, a[1:2], \":c\", $1 + $2 -- :e\n, $$:f$$");
        assert_eq!(names, ["b", "d"]);
    }
}
