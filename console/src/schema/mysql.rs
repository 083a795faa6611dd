//! What MariaDB and MySQL tell of tables, and whether their texts are what they look like.

use super::dialect::{Dialect, Sort};
use super::judge::{Finding, WantedType};
use super::told::{Column, Table, Type, rows};
use crate::link::Link;

/// The tables of the database that the URL names; where that is one of the server's own, those of all users' databases.
const OF_DATABASE: &str = "if(database() IN ('mysql', 'sys', 'information_schema', 'performance_schema'), \
     {schema} NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema'), {schema} = database())";

const COLUMNS: &str = "\
SELECT c.table_schema, c.table_name, c.ordinal_position, c.column_name, c.data_type, c.column_type, c.character_maximum_length, c.is_nullable, c.column_default,
  c.extra, coalesce(c.character_set_name, ''), coalesce(c.collation_name, ''), c.column_comment, coalesce(c.generation_expression, '') <> ''
FROM information_schema.columns c JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
WHERE t.table_type = 'BASE TABLE' AND {database} ORDER BY c.table_schema, c.table_name, c.ordinal_position";

const INDEXES: &str = "\
SELECT s.table_schema, s.table_name, s.index_name, group_concat(c.ordinal_position ORDER BY s.seq_in_index SEPARATOR ' '), max(s.sub_part IS NOT NULL)
FROM information_schema.statistics s JOIN information_schema.columns c ON c.table_schema = s.table_schema AND c.table_name = s.table_name AND c.column_name = s.column_name
WHERE {database} GROUP BY 1, 2, 3";

const LINKS: &str = "\
SELECT k.table_schema, k.table_name, k.column_name, k.referenced_table_schema, k.referenced_table_name, k.referenced_column_name
FROM information_schema.key_column_usage k WHERE k.referenced_table_name IS NOT NULL";

/// Columns of MariaDB with a condition, which MODIFY would drop; JSON is one.
const CHECKED: &str = "SELECT constraint_schema, table_name, constraint_name FROM information_schema.check_constraints WHERE level = 'Column'";

/// Bytes of indexes; refused to a role without the right to read InnoDB's own tables.
const SIZES: &str = "SELECT concat(database_name, '.', table_name, '.', index_name), cast(stat_value * @@innodb_page_size AS signed) \
     FROM mysql.innodb_index_stats WHERE stat_name = 'size'";

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// A row's field; empty for NULL.
fn field(row: &[Option<String>], at: usize) -> &str {
    row.get(at).and_then(Option::as_deref).unwrap_or("")
}

fn of_database(sql: &str, schema: &str) -> String {
    sql.replace("{database}", &OF_DATABASE.replace("{schema}", schema))
}

/// The tables of the users.
pub(super) async fn tables(link: &mut Link, is_mariadb: bool) -> Result<Vec<Table>, String> {
    let checked = if is_mariadb { rows(link, CHECKED).await? } else { Vec::new() };
    // The default of group_concat cuts long lists.
    rows(link, "SET SESSION group_concat_max_len = 1000000").await?;
    let mut found: Vec<Table> = Vec::new();
    for row in rows(link, &of_database(COLUMNS, "c.table_schema")).await? {
        let at = |n: usize| field(&row, n);
        let shown = format!("{}.{}", at(0), at(1));
        if found.last().is_none_or(|table| table.shown != shown) {
            let name = format!("{}.{}", quoted(at(0)), quoted(at(1)));
            found.push(Table { name, shown, ..Table::default() });
        }
        let has_condition = checked.iter().any(|c| [0, 1, 2].map(|n| field(c, n)) == [at(0), at(1), at(3)]);
        let Some(table) = found.last_mut() else { continue };
        table.columns.push(column(&row, is_mariadb, has_condition));
    }
    for row in rows(link, &of_database(INDEXES, "s.table_schema")).await? {
        let shown = format!("{}.{}", field(&row, 0), field(&row, 1));
        let Some(table) = found.iter_mut().find(|table| table.shown == shown) else { continue };
        let columns: Vec<i16> = field(&row, 3).split(' ').filter_map(|n| n.parse().ok()).collect();
        if field(&row, 2) == "PRIMARY" {
            (table.key, table.has_partial_key) = (columns, field(&row, 4) == "1");
        } else {
            table.indexes.push(columns);
        }
    }
    for row in rows(link, LINKS).await? {
        for (from, is_referenced) in [(0, false), (3, true)] {
            let shown = format!("{}.{}", field(&row, from), field(&row, from + 1));
            let Some(table) = found.iter_mut().find(|table| table.shown == shown) else { continue };
            table.is_referenced |= is_referenced;
            let name = field(&row, from + 2);
            table.columns.iter_mut().filter(|c| c.shown == name).for_each(|c| c.is_linked = true);
        }
    }
    Ok(found)
}

fn column(row: &[Option<String>], is_mariadb: bool, has_condition: bool) -> Column {
    let at = |n: usize| field(row, n);
    let extra = at(9).to_ascii_lowercase();
    // What MODIFY would lose is left alone.
    let is_plain = !has_condition && at(13) != "1" && !extra.contains("invisible") && !extra.contains("generated");
    let (ty, len) = match at(4) {
        _ if !is_plain => (Type::Other, 8),
        "tinyint" => (Type::Other, 1),
        "smallint" => (integer(at(5)), 2),
        "mediumint" => (integer(at(5)), 3),
        "int" => (integer(at(5)), 4),
        "bigint" => (integer(at(5)), 8),
        "varchar" => (Type::Varchar(at(6).parse().unwrap_or(-1)), -1),
        "char" | "tinytext" | "text" | "mediumtext" | "longtext" => (Type::Text, -1),
        _ => (Type::Other, 8),
    };
    // MariaDB gives the default as an expression, MySQL a constant's text.
    let default = row.get(8).and_then(Option::as_deref).filter(|default| !(is_mariadb && *default == "NULL"));
    let default = default.map(|default| match extra.contains("default_generated") {
        _ if is_mariadb => format!(" DEFAULT {default}"),
        true => format!(" DEFAULT ({default})"),
        false => format!(" DEFAULT {}", literal(default)),
    });
    let collation = match at(10) {
        "" => String::new(),
        set => format!(" CHARACTER SET {set} COLLATE {}", at(11)),
    };
    Column {
        number: at(2).parse().unwrap_or(0),
        name: quoted(at(3)),
        shown: at(3).to_owned(),
        ty,
        len,
        is_counter: extra.contains("auto_increment") || at(8).to_ascii_lowercase().starts_with("nextval("),
        is_linked: false,
        has_default: default.is_some(),
        collation,
        not_null: at(7) == "NO",
        default: default.unwrap_or_default(),
        comment: if at(12).is_empty() { String::new() } else { format!(" COMMENT {}", literal(at(12))) },
    }
}

fn integer(declared: &str) -> Type {
    // The zeros of ZEROFILL are part of what the column shows.
    if declared.contains("zerofill") {
        return Type::Other;
    }
    Type::Integer { unsigned: declared.contains("unsigned") }
}

/// Whether the server reads every text as what it looks like; the type is made as narrow as the values allow.
pub(super) async fn confirm(link: &mut Link, table: &Table, column: &Column, wanted: &mut WantedType) -> bool {
    let dialect = Dialect::MySql { has_types: true };
    let (of, name) = (dialect.from(table), &column.name);
    let sql = match wanted.sort {
        Sort::Whole => format!("SELECT min(CAST({name} AS signed)), max(CAST({name} AS signed)) FROM {of}"),
        Sort::Decimal => format!(
            "SELECT max(char_length(substring_index(replace({name}, '-', ''), '.', 1))), max(char_length(substring_index({name}, '.', -1))) FROM {of}"
        ),
        // A zero in a date is no date to most programs, and not allowed by default.
        Sort::Date => format!(
            "SELECT coalesce(sum(CAST({name} AS date) IS NULL OR CAST({name} AS date) < '1000-01-01'), 0), 0 FROM {of} WHERE {name} IS NOT NULL"
        ),
        Sort::Timestamp => format!(
            "SELECT coalesce(sum(CAST({name} AS datetime(6)) IS NULL OR CAST({name} AS datetime(6)) < '1000-01-01'), 0), max({name} LIKE '%.%') \
             FROM {of} WHERE {name} IS NOT NULL"
        ),
        Sort::Address => format!(
            "SELECT coalesce(sum(INET6_ATON({name}) IS NULL), 0), coalesce(sum(IS_IPV4({name})), 0), count(*) FROM {of} WHERE {name} IS NOT NULL"
        ),
        Sort::Uuid => "SELECT 0".to_owned(),
        Sort::Integer | Sort::Varchar => return true,
    };
    let Ok(answer) = rows(link, &sql).await else { return false };
    let numbers: Vec<i64> =
        answer.into_iter().flatten().filter_map(|value| value.and_then(|text| text.parse().ok())).collect();
    let is_confirmed = match (wanted.sort, numbers.as_slice()) {
        (Sort::Whole, [low, high]) => {
            wanted.narrow(*low, *high, dialect);
            true
        }
        (Sort::Decimal, [whole, decimals]) => {
            wanted.ty = format!("decimal({},{decimals})", whole + decimals);
            true
        }
        (Sort::Timestamp, [bad, has_fractions]) => {
            wanted.ty = if *has_fractions == 1 { "datetime(6)" } else { "datetime" }.to_owned();
            *bad == 0
        }
        (Sort::Address, [bad, of_four, all]) => {
            if wanted.ty != "varbinary(16)" {
                // Both kinds in one column are told apart by their bytes only.
                wanted.ty = match *of_four {
                    n if n == *all => "inet4",
                    0 => "inet6",
                    _ => "varbinary(16)",
                }
                .to_owned();
            }
            *bad == 0
        }
        (Sort::Date, [bad, _]) => *bad == 0,
        (Sort::Uuid, _) => true,
        _ => false,
    };
    // A column that is replaced would be lost to its indexes.
    let is_replaced = matches!(wanted.ty.as_str(), "varbinary(16)" | "binary(16)");
    let is_indexed = table.key.contains(&column.number) || table.indexes.iter().any(|i| i.contains(&column.number));
    is_confirmed && !(is_replaced && is_indexed)
}

/// Findings of the catalog alone: those of the tables that were asked for, with what dropping an index saves.
pub(super) async fn of_tables(link: &mut Link, tables: &[Table], findings: Vec<Finding>) -> Vec<Finding> {
    let sizes = rows(link, SIZES).await.unwrap_or_default();
    let size_of = |object: &str| sizes.iter().find(|row| field(row, 0) == object)?.get(1)?.as_deref()?.parse().ok();
    let is_of = |found: &Finding| {
        tables.iter().any(|table| {
            found.object.strip_prefix(&table.shown).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    };
    let mut kept: Vec<Finding> = findings.into_iter().filter(is_of).collect();
    kept.iter_mut().for_each(|found| found.bytes_saved = found.bytes_saved.or_else(|| size_of(&found.object)));
    kept
}

/// Whether a MariaDB has the types `inet4`, `inet6` and `uuid`: from 10.10 on.
pub(super) fn has_types(version: &str) -> bool {
    let mut numbers = version.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version.contains("MariaDB") && (major, minor) >= (10, 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_with_the_types() {
        assert!(has_types("10.11.6-MariaDB-0+deb12u1") && has_types("11.4.2-MariaDB"));
        assert!(!has_types("10.6.16-MariaDB") && !has_types("8.0.36") && !has_types(""));
    }

    #[test]
    fn a_column_as_the_catalog_tells_it() {
        let row = |default: Option<&str>, extra: &str| {
            let fields = ["s", "t", "2", "a`b", "int", "int(10) unsigned", "", "NO"].map(|text| Some(text.to_owned()));
            let rest = [extra, "", "", "it's \\", "0"].map(|text| Some(text.to_owned()));
            fields.into_iter().chain([default.map(str::to_owned)]).chain(rest).collect::<Vec<_>>()
        };
        let of_mariadb = column(&row(Some("7"), ""), true, false);
        assert_eq!((of_mariadb.name.as_str(), of_mariadb.default.as_str()), ("`a``b`", " DEFAULT 7"));
        assert_eq!((of_mariadb.ty, of_mariadb.not_null), (Type::Integer { unsigned: true }, true));
        assert_eq!(of_mariadb.comment, " COMMENT 'it''s \\\\'");
        assert_eq!(column(&row(Some("7"), ""), false, false).default, " DEFAULT '7'");
        assert_eq!(column(&row(Some("NULL"), ""), true, false).default, "");
        assert!(column(&row(None, "auto_increment"), true, false).is_counter);
        assert_eq!(column(&row(None, ""), true, true).ty, Type::Other);
    }
}
