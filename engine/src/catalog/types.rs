//! Types that users define: enums, domains and composite types.

use super::acl::Acl;
use super::object::{Check, Oid};
use serde::{Deserialize, Serialize};

/// A type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeObject {
    /// Its number.
    pub oid: Oid,
    /// The number of the type of its arrays.
    pub array: Oid,
    /// Its database.
    pub database: Oid,
    /// Its schema.
    pub schema: Oid,
    /// Its name.
    pub name: String,
    /// Its owner.
    pub owner: Oid,
    /// Who may use it.
    #[serde(default, skip_serializing_if = "Acl::is_default")]
    pub acl: Acl,
    /// What it is.
    pub body: TypeBody,
}

/// What a type is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TypeBody {
    /// One of these labels.
    Enum(Vec<Label>),
    /// The values of another type that meet conditions.
    Domain(Domain),
    /// Rows of these attributes.
    Composite(Composite),
}

/// A composite type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Composite {
    /// The number under which pg_class shows it.
    pub class: Oid,
    /// Its attributes in order.
    pub attributes: Vec<Attribute>,
}

/// An attribute of a composite type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_oid: Oid,
    /// The type's modifier, -1 for none.
    pub type_mod: i32,
}

/// The numbers from here on are those of the types of tables' rows and of their arrays: they follow from the table's number.
const ROW_TYPES: Oid = 1 << 30;
/// What the number of the type of arrays of rows has beside that of the type of rows.
const ARRAYS: Oid = 1 << 29;

/// The number of the type of a table's rows; none for a table whose number is too high.
pub fn row_type(table: Oid) -> Option<Oid> {
    (table < ARRAYS).then_some(ROW_TYPES | table)
}

/// The number of the type of arrays of a table's rows.
pub fn row_array(table: Oid) -> Option<Oid> {
    (table < ARRAYS).then_some(ROW_TYPES | ARRAYS | table)
}

/// The table of a type of rows, or of arrays of them (true).
pub fn table_of_row_type(oid: Oid) -> Option<(Oid, bool)> {
    (ROW_TYPES..2 * ROW_TYPES).contains(&oid).then_some((oid & (ARRAYS - 1), oid & ARRAYS != 0))
}

/// A label of an enum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// Its number.
    pub oid: Oid,
    /// Its place: what columns store, and what never changes.
    pub order: i64,
    /// Its text.
    pub text: String,
}

/// A domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    /// The type below it that is no domain.
    pub base: Oid,
    /// That type's modifier, -1 for none.
    pub base_mod: i32,
    /// The domain that it is over: its values meet the constraints of that one too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under: Option<Oid>,
    /// No nulls.
    pub not_null: bool,
    /// The text of its default.
    pub default: Option<String>,
    /// As of a column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_path: Option<Vec<Oid>>,
    /// Conditions, in which the value is called `value`.
    pub checks: Vec<Check>,
}

impl Domain {
    /// The type that it is over, which may be a domain.
    pub fn below(&self) -> Oid {
        self.under.unwrap_or(self.base)
    }
}

/// The distance between two labels of an enum when it is made: others fit between them.
pub const STEP: i64 = 1 << 32;

/// The place of a label behind the last one.
pub fn place_behind(last: Option<i64>) -> Option<i64> {
    last.map_or(Some(STEP), |last| last.checked_add(STEP))
}

/// The place of a label between two others; none: there is no room.
pub fn place_between(before: Option<i64>, after: i64) -> Option<i64> {
    match before {
        None => after.checked_sub(STEP),
        Some(before) if after - before > 1 => Some(before + (after - before) / 2),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_lies_between_its_neighbours() {
        let first = place_behind(None).expect("there is room");
        let second = place_behind(Some(first)).expect("there is room");
        let (mut low, mut found) = (first, 0);
        while let Some(place) = place_between(Some(low), second) {
            assert!(low < place && place < second);
            (low, found) = (place, found + 1);
        }
        assert!(found >= 31, "{found}");
        assert!(place_between(None, first).is_some_and(|p| p < first));
    }
}
