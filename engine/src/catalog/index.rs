//! Indexes in the catalog: their columns, their state, and the snapshots that may read them.

use super::Oid;
use serde::{Deserialize, Serialize};

/// One column of an index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexColumn {
    /// Position in the table.
    pub column: usize,
    /// From high to low.
    pub descending: bool,
    /// Nulls first.
    pub nulls_first: bool,
    /// An expression instead of a column; `column` is [`IndexColumn::OF_NONE`] then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<IndexExpression>,
    /// The operator class that was named, where it is not its type's own; its order is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Oid>,
}

impl IndexColumn {
    /// The position that an expression has.
    pub const OF_NONE: usize = u32::MAX as usize;

    /// A column, from low to high, nulls last.
    pub fn ascending(column: usize) -> IndexColumn {
        IndexColumn { column, ..IndexColumn::default() }
    }

    /// Whether it is sorted as an index is that says nothing of its order.
    pub fn has_default_order(&self) -> bool {
        !self.descending && !self.nulls_first
    }
}

/// An expression in the place of a column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexExpression {
    /// Its text.
    pub text: String,
    /// How its value is stored (`Storage::code`).
    pub storage: u8,
    /// The SQL type's oid.
    pub type_oid: Oid,
    /// The SQL type's modifier, -1 for none.
    pub type_mod: i32,
}

/// How far an index is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum IndexState {
    /// Writers keep it up; no query reads it.
    WriteOnly,
    /// A statement reads it if its snapshot is at or above `valid_from_lsn`.
    #[default]
    Public,
}

/// An index. The primary key of a table has one, too, which shares the table's tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// Its number.
    pub oid: Oid,
    /// Its database.
    pub database: Oid,
    /// Its schema.
    pub schema: Oid,
    /// Its name.
    pub name: String,
    /// The table.
    pub table: Oid,
    /// Its tree.
    pub tree: u64,
    /// Its columns.
    pub columns: Vec<IndexColumn>,
    /// INCLUDE: columns that are named with it and are no part of its key. Rows are found by the key and read from their table, so
    /// nothing is stored twice for them.
    #[serde(default)]
    pub include: Vec<usize>,
    /// No two rows have the same values, nulls aside.
    pub unique: bool,
    /// NULLS NOT DISTINCT: nulls are not put aside, two of them are the same value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nulls_not_distinct: bool,
    /// It is the table's primary key.
    pub primary: bool,
    /// It belongs to a constraint of the same name.
    pub constraint: bool,
    /// How far it is.
    pub state: IndexState,
    /// Older snapshots do not use it.
    pub valid_from_lsn: u64,
    /// CLUSTER ... USING was asked for.
    #[serde(default)]
    pub clustered: bool,
    /// A unique constraint that is DEFERRABLE.
    #[serde(default)]
    pub deferrable: bool,
    /// INITIALLY DEFERRED.
    #[serde(default)]
    pub deferred: bool,
    /// Options that were accepted and are shown again (`fillfactor=70`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The text of a partial index's condition: only rows that meet it have an entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// For its expressions and its condition, as of a column; none: `public`, then the other schemas by name, as in older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Vec<Oid>>,
    /// The columns that its expressions and its condition name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<usize>,
}

impl Index {
    /// Whether a column is one of its key's, is included, or is named by an expression or the condition.
    pub fn names_column(&self, column: usize) -> bool {
        self.columns.iter().any(|c| c.column == column)
            || self.include.contains(&column)
            || self.reads.contains(&column)
    }

    /// Whether what it has of a row is more than columns: values of expressions, or only rows that meet a condition.
    pub fn is_computed(&self) -> bool {
        self.condition.is_some() || self.columns.iter().any(|c| c.expression.is_some())
    }

    /// The positions of its columns, if all of them are columns and every row has an entry.
    pub fn plain_columns(&self) -> Option<Vec<usize>> {
        (!self.is_computed()).then(|| self.columns.iter().map(|c| c.column).collect())
    }
}
