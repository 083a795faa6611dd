//! The names that PL/pgSQL has for errors: PostgreSQL 15's errcodes.txt, without warnings.

/// Lines of an SQLSTATE and a name.
const LIST: &str = include_str!("conditions.txt");

fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    LIST.lines().filter_map(|line| line.split_once(' '))
}

/// The SQLSTATEs of a name; none: there is no such name.
pub fn named(name: &str) -> Vec<&'static str> {
    all().filter(|(_, known)| *known == name).map(|(state, _)| state).collect()
}

/// Whether a text has the form of an SQLSTATE.
pub fn is_state(text: &str) -> bool {
    text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
}

/// What a handler handles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// OTHERS.
    Others,
    /// An SQLSTATE; one that ends with 000 stands for its class.
    State(String),
}

impl Condition {
    /// Whether an error is meant.
    pub fn takes(&self, state: &str) -> bool {
        match self {
            // A cancelled statement and a failed assertion are handled only by their names.
            Condition::Others => !matches!(state, "57014" | "P0004"),
            Condition::State(wanted) => {
                wanted == state || (wanted.ends_with("000") && wanted.get(..2) == state.get(..2))
            }
        }
    }
}
