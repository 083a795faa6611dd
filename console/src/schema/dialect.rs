//! What the servers' languages differ in: names of types, their sizes, expressions over columns, and the statements that change a table.

use super::told::{Column, Table};

/// What values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Integer,
    Varchar,
    /// Texts of whole numbers, of numbers with decimals, and so on.
    Whole,
    Decimal,
    Date,
    Timestamp,
    Address,
    Uuid,
}

impl Sort {
    /// A column of it has texts that the server has to read as something else.
    pub(super) fn is_text(self) -> bool {
        !matches!(self, Sort::Integer | Sort::Varchar)
    }
}

/// The language of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// PostgreSQL's and Clearway's.
    PostgreSql,
    /// MariaDB's and MySQL's.
    MySql {
        /// MariaDB from 10.10 on has the types `inet4`, `inet6` and `uuid`.
        has_types: bool,
    },
}

/// Name, bytes, least, greatest.
type Integer = (&'static str, i64, i64, i64);

const POSTGRESQL: [Integer; 3] = [
    ("smallint", 2, i16::MIN as i64, i16::MAX as i64),
    ("integer", 4, i32::MIN as i64, i32::MAX as i64),
    ("bigint", 8, i64::MIN, i64::MAX),
];

const SIGNED: [Integer; 5] = [
    ("tinyint", 1, -128, 127),
    ("smallint", 2, i16::MIN as i64, i16::MAX as i64),
    ("mediumint", 3, -(1 << 23), (1 << 23) - 1),
    ("int", 4, i32::MIN as i64, i32::MAX as i64),
    ("bigint", 8, i64::MIN, i64::MAX),
];

const UNSIGNED: [Integer; 5] = [
    ("tinyint unsigned", 1, 0, 255),
    ("smallint unsigned", 2, 0, 65_535),
    ("mediumint unsigned", 3, 0, (1 << 24) - 1),
    ("int unsigned", 4, 0, u32::MAX as i64),
    ("bigint unsigned", 8, 0, i64::MAX),
];

impl Dialect {
    /// The functions for a text's characters and bytes.
    pub(super) fn lengths(self) -> (&'static str, &'static str) {
        match self {
            Dialect::PostgreSql => ("length", "octet_length"),
            Dialect::MySql { .. } => ("char_length", "length"),
        }
    }

    /// What a table's figures are read from. The server counts which indexes are used: what is read here uses none.
    pub(super) fn from(self, table: &Table) -> String {
        match self {
            Dialect::PostgreSql => table.name.clone(),
            Dialect::MySql { .. } => format!("{} USE INDEX ()", table.name),
        }
    }

    /// Whether a text fits a pattern.
    pub(super) fn matches(self, name: &str, pattern: &str) -> String {
        match self {
            Dialect::PostgreSql => format!("{name} ~ '{pattern}'"),
            // There a $ also stands before a last end of line.
            Dialect::MySql { .. } => format!("{name} REGEXP '{pattern}' AND {name} NOT LIKE '%\\n'"),
        }
    }

    /// The narrowest type for integers of a range that has so many times the room, and its bytes.
    pub(super) fn integer_for(self, low: i64, high: i64, room: i64, unsigned: bool) -> Option<(&'static str, i64)> {
        let types: &[Integer] = match self {
            Dialect::PostgreSql => &POSTGRESQL,
            Dialect::MySql { .. } if unsigned => &UNSIGNED,
            Dialect::MySql { .. } => &SIGNED,
        };
        let fits = |ty: &&Integer| low >= ty.2 / room && high <= ty.3 / room;
        types.iter().find(fits).or(types.last()).map(|ty| (ty.0, ty.1))
    }

    /// The type for texts of a sort; what their values tell in addition is not known yet.
    pub(super) fn type_of(self, sort: Sort) -> &'static str {
        match (self, sort) {
            (_, Sort::Date) => "date",
            (Dialect::PostgreSql, Sort::Decimal) => "numeric",
            (Dialect::PostgreSql, Sort::Timestamp) => "timestamp",
            (Dialect::PostgreSql, Sort::Address) => "inet",
            (Dialect::PostgreSql, Sort::Uuid) | (Dialect::MySql { has_types: true }, Sort::Uuid) => "uuid",
            (Dialect::MySql { .. }, Sort::Decimal) => "decimal",
            (Dialect::MySql { .. }, Sort::Timestamp) => "datetime",
            // Which one the values tell.
            (Dialect::MySql { has_types: true }, Sort::Address) => "inet6",
            (Dialect::MySql { .. }, Sort::Address) => "varbinary(16)",
            (Dialect::MySql { .. }, Sort::Uuid) => "binary(16)",
            (_, Sort::Whole | Sort::Integer | Sort::Varchar) => "bigint",
        }
    }

    /// Bytes of a value of a type of fixed length; none: no space is won.
    pub(super) fn size_of(self, ty: &str) -> Option<i64> {
        if let Some((_, size, ..)) = POSTGRESQL.iter().chain(&SIGNED).chain(&UNSIGNED).find(|known| known.0 == ty) {
            return Some(*size);
        }
        Some(match (self, ty) {
            (Dialect::PostgreSql, "date") | (_, "inet4") => 4,
            (Dialect::PostgreSql, "timestamp" | "numeric" | "inet") => 8,
            (_, "date") => 3,
            (_, "datetime") => 5,
            (_, "datetime(6)") => 8,
            (_, "uuid" | "inet6" | "binary(16)") => 16,
            // A length stands beside it; most addresses have four bytes.
            (_, "varbinary(16)") => 5,
            // Nine digits have four bytes.
            (_, decimal) => {
                let digits = decimal.strip_prefix("decimal(")?.split([',', ')']).next()?.parse::<i64>().ok()?;
                digits / 9 * 4 + (digits % 9 + 1) / 2
            }
        })
    }

    /// The indexes that have a column besides the table itself. In InnoDB each index has the primary key.
    pub(super) fn indexes_with(self, table: &Table, column: &Column) -> usize {
        let has = |columns: &&Vec<i16>| columns.contains(&column.number);
        match self {
            Dialect::MySql { .. } if table.key.contains(&column.number) => table.indexes.len(),
            _ => table.indexes.iter().filter(has).count(),
        }
    }

    /// The statements that give a column another type.
    pub(super) fn change(self, table: &Table, column: &Column, ty: &str, sort: Sort) -> String {
        let (of, name) = (&table.name, &column.name);
        match self {
            Dialect::PostgreSql => {
                let using = if sort.is_text() { format!(" USING {name}::{ty}") } else { String::new() };
                let alter = format!("ALTER TABLE {of} ALTER COLUMN {name}");
                if column.has_default && sort.is_text() {
                    format!("{alter} DROP DEFAULT, ALTER COLUMN {name} TYPE {ty}{using}")
                } else {
                    format!("{alter} TYPE {ty}{using}")
                }
            }
            Dialect::MySql { .. } => {
                let not_null = if column.not_null { " NOT NULL" } else { "" };
                let comment = &column.comment;
                let bytes = match ty {
                    "varbinary(16)" => format!("INET6_ATON({name})"),
                    "binary(16)" => format!("UNHEX(REPLACE({name}, '-', ''))"),
                    _ => {
                        let default = if sort.is_text() { "" } else { column.default.as_str() };
                        let collation = if sort == Sort::Varchar { column.collation.as_str() } else { "" };
                        return format!(
                            "ALTER TABLE {of} MODIFY COLUMN {name} {ty}{collation}{not_null}{default}{comment}"
                        );
                    }
                };
                // The values are other bytes: they are computed beside the old ones.
                let beside = format!("`{}_bytes`", column.shown.replace('`', "``"));
                format!(
                    "ALTER TABLE {of} ADD COLUMN {beside} {ty}; UPDATE {of} SET {beside} = {bytes}; \
                     ALTER TABLE {of} DROP COLUMN {name}, CHANGE COLUMN {beside} {name} {ty}{not_null}{comment}"
                )
            }
        }
    }

    /// The statements that put a number in the place of a long primary key; none: there is no plain way.
    pub(super) fn replace_key(self, table: &Table) -> Option<String> {
        let of = |number: &i16| table.columns.iter().find(|column| column.number == *number);
        let key: Vec<&str> = table.key.iter().map(|number| of(number).map_or("", |c| c.name.as_str())).collect();
        let (name, key) = (&table.name, key.join(", "));
        let free = ["id", "row_id", "key_id"]
            .into_iter()
            .find(|id| table.columns.iter().all(|column| !column.shown.eq_ignore_ascii_case(id)))?;
        match self {
            Dialect::PostgreSql => Some(format!(
                "ALTER TABLE {name} DROP CONSTRAINT {}; ALTER TABLE {name} ADD COLUMN {free} bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY; \
                 ALTER TABLE {name} ADD UNIQUE ({key})",
                table.key_name
            )),
            // A table has one counter at most.
            Dialect::MySql { .. } if table.has_partial_key || table.columns.iter().any(|c| c.is_counter) => None,
            Dialect::MySql { .. } => Some(format!(
                "ALTER TABLE {name} DROP PRIMARY KEY, ADD COLUMN {free} bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, ADD UNIQUE ({key})"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARIADB: Dialect = Dialect::MySql { has_types: true };

    #[test]
    fn integers_of_both_languages() {
        let of = |dialect: Dialect, low, high, unsigned| dialect.integer_for(low, high, 1, unsigned);
        assert_eq!(of(MARIADB, -128, 127, false), Some(("tinyint", 1)));
        assert_eq!(of(MARIADB, 0, 255, true), Some(("tinyint unsigned", 1)));
        assert_eq!(of(MARIADB, 0, 8_388_608, false), Some(("int", 4)));
        assert_eq!(of(MARIADB, 0, 16_777_215, true), Some(("mediumint unsigned", 3)));
        assert_eq!(of(Dialect::PostgreSql, 0, 100, false), Some(("smallint", 2)));
        assert_eq!(MARIADB.integer_for(1, 100, 16, false), Some(("smallint", 2)));
    }

    #[test]
    fn sizes_of_types() {
        let of = |ty: &str| MARIADB.size_of(ty);
        assert_eq!([of("decimal(4,1)"), of("decimal(9)"), of("decimal(20,2)")], [Some(2), Some(4), Some(9)]);
        assert_eq!([of("varchar(16)"), of("date"), of("mediumint")], [None, Some(3), Some(3)]);
        assert_eq!(Dialect::PostgreSql.size_of("varchar(16)"), None);
    }

    #[test]
    fn a_column_keeps_what_is_not_its_type() {
        let table = Table { name: "`s`.`t`".to_owned(), ..Table::default() };
        let column = Column {
            name: "`c`".to_owned(),
            shown: "c".to_owned(),
            collation: " CHARACTER SET latin1 COLLATE latin1_bin".to_owned(),
            not_null: true,
            default: " DEFAULT 'x'".to_owned(),
            comment: " COMMENT 'why'".to_owned(),
            ..Column::default()
        };
        let change = |ty: &str, sort| MARIADB.change(&table, &column, ty, sort);
        assert_eq!(
            change("varchar(16)", Sort::Varchar),
            "ALTER TABLE `s`.`t` MODIFY COLUMN `c` varchar(16) CHARACTER SET latin1 COLLATE latin1_bin NOT NULL DEFAULT 'x' COMMENT 'why'"
        );
        assert_eq!(change("date", Sort::Date), "ALTER TABLE `s`.`t` MODIFY COLUMN `c` date NOT NULL COMMENT 'why'");
        assert_eq!(
            change("varbinary(16)", Sort::Address),
            "ALTER TABLE `s`.`t` ADD COLUMN `c_bytes` varbinary(16); UPDATE `s`.`t` SET `c_bytes` = INET6_ATON(`c`); \
             ALTER TABLE `s`.`t` DROP COLUMN `c`, CHANGE COLUMN `c_bytes` `c` varbinary(16) NOT NULL COMMENT 'why'"
        );
    }
}
