//! Reads the catalog's data about tables: columns, keys, indexes.

use crate::link::Link;

/// The rows of a statement, as texts.
pub(super) async fn rows(link: &mut Link, sql: &str) -> Result<Vec<Vec<Option<String>>>, String> {
    Ok(link.table(sql, usize::MAX).await.map_err(|error| error.text)?.rows)
}

/// A table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// Schema and name, quoted.
    pub(crate) name: String,
    /// The same for people.
    pub(crate) shown: String,
    pub(crate) columns: Vec<Column>,
    /// Numbers of the primary key's columns, and the name of the constraint, quoted.
    pub(crate) key: Vec<i16>,
    pub(crate) key_name: String,
    /// The columns of its other indexes.
    pub(crate) indexes: Vec<Vec<i16>>,
    /// Whether a foreign key leads to it.
    pub(crate) is_referenced: bool,
    /// The primary key has the beginnings of texts only (MySQL).
    pub(crate) has_partial_key: bool,
}

/// What a column's type is, as far as it is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Type {
    Integer {
        unsigned: bool,
    },
    /// With its length in characters; -1: none.
    Varchar(i64),
    Text,
    #[default]
    Other,
}

/// A column.
#[derive(Clone, Debug, Default)]
pub(crate) struct Column {
    pub(crate) number: i16,
    /// Quoted.
    pub(crate) name: String,
    /// The same for people.
    pub(crate) shown: String,
    pub(crate) ty: Type,
    /// The type's length; negative: it varies.
    pub(crate) len: i16,
    /// It numbers rows: an identity, or its default is a sequence's next value.
    pub(crate) is_counter: bool,
    /// It belongs to a foreign key, on either side.
    pub(crate) is_linked: bool,
    /// It has a default that would have to change with its type.
    pub(crate) has_default: bool,
    /// What MySQL's MODIFY has to repeat, lest the column loses it: character set and collation of a text; what else is not the type.
    pub(crate) collation: String,
    pub(crate) not_null: bool,
    pub(crate) default: String,
    pub(crate) comment: String,
}

const COLUMNS: &str = "\
SELECT c.oid, quote_ident(n.nspname) || '.' || quote_ident(c.relname), a.attnum, quote_ident(a.attname), a.atttypid, a.atttypmod, a.attlen,
  a.attidentity <> '' OR coalesce(pg_get_expr(d.adbin, d.adrelid), '') LIKE 'nextval(%', d.adrelid IS NOT NULL
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
  LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%'
  AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
ORDER BY c.oid, a.attnum";

const INDEXES: &str = "\
SELECT i.indrelid, i.indisprimary, i.indkey::text, quote_ident(c.relname) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid";

const LINKS: &str = "\
SELECT conrelid, array_to_string(conkey, ' '), confrelid, array_to_string(confkey, ' ') FROM pg_constraint WHERE contype = 'f'";

/// By PostgreSQL's number of the type, and its modifier.
fn type_of(oid: u32, modifier: i64) -> Type {
    match oid {
        20 | 23 => Type::Integer { unsigned: false },
        25 | 1042 => Type::Text,
        1043 => Type::Varchar(if modifier < 4 { -1 } else { modifier - 4 }),
        _ => Type::Other,
    }
}

fn numbers(text: &str) -> Vec<i16> {
    text.split_whitespace().filter_map(|n| n.parse().ok()).collect()
}

/// The tables of the users.
pub(crate) async fn tables(link: &mut Link) -> Result<Vec<Table>, String> {
    let mut found: Vec<(u32, Table)> = Vec::new();
    for row in rows(link, COLUMNS).await? {
        let at = |n: usize| row.get(n).and_then(|v| v.as_deref()).unwrap_or("");
        let oid = at(0).parse().unwrap_or(0);
        if found.last().is_none_or(|(last, _)| *last != oid) {
            found.push((oid, Table { name: at(1).to_owned(), shown: at(1).to_owned(), ..Table::default() }));
        }
        let Some((_, table)) = found.last_mut() else { continue };
        table.columns.push(Column {
            number: at(2).parse().unwrap_or(0),
            name: at(3).to_owned(),
            shown: at(3).to_owned(),
            ty: type_of(at(4).parse().unwrap_or(0), at(5).parse().unwrap_or(-1)),
            len: at(6).parse().unwrap_or(-1),
            is_counter: at(7) == "t",
            is_linked: false,
            has_default: at(8) == "t",
            ..Column::default()
        });
    }
    let place = |found: &[(u32, Table)], oid: &str| {
        let oid: u32 = oid.parse().ok()?;
        found.iter().position(|(known, _)| *known == oid)
    };
    for row in rows(link, INDEXES).await? {
        let at = |n: usize| row.get(n).and_then(|v| v.as_deref()).unwrap_or("");
        let Some(table) = place(&found, at(0)).map(|at| &mut found[at].1) else { continue };
        if at(1) == "t" {
            (table.key, table.key_name) = (numbers(at(2)), at(3).to_owned());
        } else {
            table.indexes.push(numbers(at(2)));
        }
    }
    for row in rows(link, LINKS).await? {
        let at = |n: usize| row.get(n).and_then(|v| v.as_deref()).unwrap_or("");
        for (table, columns, is_referenced) in [(at(0), at(1), false), (at(2), at(3), true)] {
            let Some(table) = place(&found, table).map(|at| &mut found[at].1) else { continue };
            table.is_referenced |= is_referenced;
            let columns = numbers(columns);
            table.columns.iter_mut().filter(|c| columns.contains(&c.number)).for_each(|c| c.is_linked = true);
        }
    }
    Ok(found.into_iter().map(|(_, table)| table).collect())
}
