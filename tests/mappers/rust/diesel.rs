//! diesel: migrations up, down and up again, the schema that its command line prints, queries by the mapper, transactions, COPY.
use diesel::connection::DefaultLoadingMode;
use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::expression::AsExpression;
use diesel::pg::{Pg, PgValue};
use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error};
use diesel::serialize::{self, IsNull, Output, ToSql};
use diesel_migrations::{FileBasedMigrations, MigrationHarness};
use std::io::Write;

mod schema {
    #[derive(diesel::sql_types::SqlType, diesel::query_builder::QueryId)]
    #[diesel(postgres_type(name = "level"))]
    pub struct LevelType;

    diesel::table! {
        use diesel::sql_types::*;
        use super::LevelType;
        author (id) {
            id -> Int4,
            name -> Text,
            level -> LevelType,
            settings -> Jsonb,
            tags -> Nullable<Array<Nullable<Text>>>,
            token -> Uuid,
            born -> Nullable<Date>,
            created_at -> Timestamptz,
        }
    }
    diesel::table! {
        book (id) {
            id -> Int8,
            author_id -> Int4,
            title -> Nullable<Text>,
            price -> Float8,
            cover -> Nullable<Bytea>,
            is_sold -> Bool,
            isbn -> Nullable<Varchar>,
        }
    }
    diesel::joinable!(book -> author (author_id));
    diesel::allow_tables_to_appear_in_same_query!(author, book);
}
use schema::{author, book};

#[derive(Debug, Clone, Copy, PartialEq, AsExpression, FromSqlRow)]
#[diesel(sql_type = schema::LevelType)]
enum Level {
    Junior,
    Senior,
}

impl ToSql<schema::LevelType, Pg> for Level {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        out.write_all(if *self == Level::Junior { b"junior" } else { b"senior" })?;
        Ok(IsNull::No)
    }
}

impl FromSql<schema::LevelType, Pg> for Level {
    fn from_sql(bytes: PgValue<'_>) -> deserialize::Result<Self> {
        Ok(if bytes.as_bytes() == b"junior" { Level::Junior } else { Level::Senior })
    }
}

#[derive(Debug, Queryable, Selectable, Identifiable)]
#[diesel(table_name = author)]
struct Author {
    id: i32,
    name: String,
    level: Level,
    tags: Option<Vec<Option<String>>>,
    born: Option<chrono::NaiveDate>,
}

#[derive(Insertable)]
#[diesel(table_name = author)]
struct NewAuthor<'a> {
    name: &'a str,
    level: Level,
    settings: serde_json::Value,
    tags: Vec<Option<String>>,
    born: Option<chrono::NaiveDate>,
}

#[derive(Debug, Queryable, Selectable, Identifiable, Associations)]
#[diesel(table_name = book, belongs_to(Author))]
struct Book {
    id: i64,
    author_id: i32,
    title: Option<String>,
    price: f64,
}

fn failed<T>(what: &str, ended: QueryResult<T>) {
    match ended.err() {
        Some(Error::DatabaseError(kind, told)) => {
            println!("{what} {kind:?} {:?} {:?} {:?} {}", told.table_name(), told.column_name(), told.constraint_name(), told.message());
            assert!(!matches!(kind, DatabaseErrorKind::ClosedConnection));
        }
        other => println!("{what} {other:?}"),
    }
}

/// The migrations of sqlx.rs, as diesel lays them out.
fn laid_out(from: &str, to: &std::path::Path) -> std::io::Result<()> {
    for file in std::fs::read_dir(from)? {
        let path = file?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some((name, way)) = name.strip_suffix(".sql").and_then(|name| name.rsplit_once('.')) else { continue };
        std::fs::create_dir_all(to.join(name))?;
        std::fs::copy(&path, to.join(name).join(format!("{way}.sql")))?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let url = std::env::var("DATABASE_URL")?;
    let mut connection = PgConnection::establish(&url)?;
    let c = &mut connection;
    let directory = std::env::temp_dir().join(format!("diesel-{}", std::process::id()));
    laid_out(&std::env::var("MAPPERS_MIGRATIONS")?, &directory)?;
    let migrations = || FileBasedMigrations::from_path(&directory);
    println!("run {:?}", c.run_pending_migrations(migrations()?)?.iter().map(ToString::to_string).collect::<Vec<_>>());
    println!("again {}", c.run_pending_migrations(migrations()?)?.len());
    println!("reverted {:?}", c.revert_all_migrations(migrations()?)?.iter().map(ToString::to_string).collect::<Vec<_>>());
    println!("run {}, pending {}", c.run_pending_migrations(migrations()?)?.len(), c.has_pending_migration(migrations()?)?);
    println!("applied {:?}", c.applied_migrations()?.iter().map(ToString::to_string).collect::<Vec<_>>());
    std::fs::remove_dir_all(&directory)?;
    if let Ok(program) = std::env::var("DIESEL_CLI") {
        let printed = std::process::Command::new(program).args(["--database-url", &url, "print-schema", "--with-docs", "always-database-comment-fallback-to-auto-generated-doc-comment"]).output()?;
        print!("{}{}", String::from_utf8_lossy(&printed.stdout), String::from_utf8_lossy(&printed.stderr));
    }

    let tags = vec![Some("a".to_owned()), None];
    let ann = NewAuthor { name: "Ann", level: Level::Senior, settings: serde_json::json!({"theme": "dark", "sizes": [1, 2]}), tags, born: chrono::NaiveDate::from_ymd_opt(1990, 2, 3) };
    let id: i32 = diesel::insert_into(author::table).values(&ann).returning(author::id).get_result(c)?;
    let again = NewAuthor { name: "Ann", level: Level::Junior, settings: serde_json::Value::Null, tags: Vec::new(), born: None };
    let upsert = diesel::insert_into(author::table).values(&again).on_conflict(author::name).do_update().set(author::level.eq(Level::Junior));
    println!("upsert {}", upsert.execute(c)?);
    println!("nothing {}", diesel::insert_into(author::table).values(&again).on_conflict_do_nothing().execute(c)?);
    let books: Vec<_> = (0..50).map(|i| (book::author_id.eq(id), book::title.eq(format!("t{i}")), book::price.eq(f64::from(i) / 2.0), book::cover.eq(vec![i as u8]))).collect();
    println!("books {}", diesel::insert_into(book::table).values(&books).execute(c)?);
    let found = author::table.filter(author::level.eq(Level::Junior)).filter(author::tags.contains(vec![Some("a".to_owned())])).select(Author::as_select()).first(c)?;
    println!("author {found:?} {} {} {:?} {:?}", found.name, found.id == id, found.level, (&found.tags, found.born));
    let path = author::settings.retrieve_as_object("theme");
    println!("json {:?}", author::table.select(path).filter(author::settings.contains(serde_json::json!({"sizes": [2]}))).load::<serde_json::Value>(c)?);
    let own = Book::belonging_to(&found).filter(book::title.like("t1_")).order(book::price.desc()).select(Book::as_select()).load(c)?;
    println!("own {} {:?} {}", own.len(), own.first().map(|b| (&b.title, b.price)), own.iter().all(|b| b.author_id == id && b.id > 0));
    let joined = author::table.left_join(book::table).group_by(author::name).select((author::name, diesel::dsl::count(book::id.nullable()), diesel::dsl::max(book::price.nullable())));
    println!("joined {:?}", joined.load::<(String, i64, Option<f64>)>(c)?);
    let any: Vec<Option<String>> = book::table.filter(book::price.eq_any(vec![1.0, 2.0, 3.0])).order(book::id).select(book::title).load(c)?;
    println!("any {any:?}");
    let distinct = book::table.distinct_on(book::author_id).order((book::author_id, book::price.desc())).select((book::author_id, book::title));
    println!("distinct on {:?}", distinct.load::<(i32, Option<String>)>(c)?.len());
    let exists: bool = diesel::select(diesel::dsl::exists(book::table.filter(book::price.gt(24.0)))).get_result(c)?;
    println!("exists {exists}");
    let updated = diesel::update(book::table.filter(book::title.eq("t5"))).set((book::price.eq(book::price + 1.0), book::is_sold.eq(true))).returning((book::title, book::price)).get_results::<(Option<String>, f64)>(c)?;
    println!("updated {updated:?}");
    let undone = c.transaction(|c| {
        let inner = c.transaction(|c| { diesel::delete(book::table).execute(c)?; Err::<(), _>(Error::RollbackTransaction) });
        let left: i64 = book::table.count().get_result(c)?;
        println!("inner {inner:?} {left}");
        book::table.filter(book::title.eq("t1")).for_update().skip_locked().select(book::id).load::<i64>(c)?;
        Err::<(), _>(Error::RollbackTransaction)
    });
    println!("undone {undone:?}");
    let rows = c.build_transaction().read_only().repeatable_read().run(|c| book::table.order(book::id).select(book::price).load_iter::<f64, DefaultLoadingMode>(c)?.collect::<QueryResult<Vec<_>>>())?;
    println!("rows {} {}", rows.len(), rows.iter().sum::<f64>());
    let sets = diesel::insert_into(book::table).values(book::table.filter(book::price.gt(23.0)).select((book::author_id, book::title.nullable().is_not_null().into_sql::<diesel::sql_types::Bool>(), book::price))).into_columns((book::author_id, book::is_sold, book::price));
    println!("from select {}", sets.execute(c)?);
    failed("unique", diesel::update(author::table).set(author::name.eq("Ann")).execute(c).and_then(|_| diesel::insert_into(author::table).values(author::name.eq("Ann")).execute(c)));
    failed("foreign", diesel::insert_into(book::table).values(book::author_id.eq(99)).execute(c));
    failed("check", diesel::update(book::table).set(book::price.eq(-1.0)).execute(c));
    failed("null", diesel::sql_query("UPDATE author SET name = NULL").execute(c));
    println!("none {:?}", author::table.find(99).select(author::id).first::<i32>(c).optional()?);
    println!("deleted {}, left {}", diesel::delete(author::table).execute(c)?, book::table.count().get_result::<i64>(c)?);
    Ok(())
}
