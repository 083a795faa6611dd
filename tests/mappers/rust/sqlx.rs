//! sqlx: migrations up, down and up again, what it learns of statements (types, parameters, which columns may be null), rows, COPY, LISTEN.
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnection, PgListener, PgPoolCopyExt, PgPoolOptions};
use sqlx::{Column, Connection, Executor, Row, Statement, TypeInfo};
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, sqlx::Type)]
#[sqlx(type_name = "level", rename_all = "lowercase")]
enum Level {
    Junior,
    Senior,
}

#[derive(Debug, sqlx::FromRow)]
struct Author {
    id: i32,
    name: String,
    level: Level,
    settings: serde_json::Value,
    tags: Option<Vec<String>>,
    born: Option<chrono::NaiveDate>,
}

async fn describe(connection: &mut PgConnection, sql: &'static str) -> Result<(), sqlx::Error> {
    let told = connection.describe(sqlx::SqlStr::from_static(sql)).await?;
    let columns: Vec<_> = told.columns().iter().enumerate().map(|(i, c)| (c.name(), c.type_info().name(), told.nullable(i))).collect();
    let parameters = match told.parameters() {
        Some(sqlx::Either::Left(list)) => list.iter().map(|t| t.name().to_owned()).collect(),
        _ => Vec::new(),
    };
    println!("describe {sql} {columns:?} {parameters:?}");
    Ok(())
}

fn failed<T>(what: &str, ended: Result<T, sqlx::Error>) {
    match ended.err() {
        Some(sqlx::Error::Database(e)) => {
            println!("{what} {:?} {:?} {:?} {:?} {}", e.code(), e.table(), e.constraint(), e.kind(), e.message())
        }
        other => println!("{what} {other:?}"),
    }
}

/// What sqlx' macros ask of the server.
async fn described(mut connection: PgConnection) -> Result<PgConnection, sqlx::Error> {
    describe(&mut connection, "SELECT * FROM author").await?;
    describe(&mut connection, "SELECT a.name, b.* FROM author a LEFT JOIN book b ON b.author_id = a.id WHERE a.id = $1").await?;
    describe(&mut connection, "SELECT count(*), max(price), sum(id) AS total FROM book WHERE title = ANY($1) AND price < $2").await?;
    describe(&mut connection, "INSERT INTO book (author_id, title, cover) VALUES ($1, $2, $3) RETURNING id, is_sold, isbn").await?;
    describe(&mut connection, "UPDATE author SET level = $1, settings = $2 WHERE token = $3").await?;
    describe(&mut connection, "SELECT b.id, b.title, 1 AS one, NULL AS nothing, b.title || 'x' AS more FROM book b").await?;
    describe(&mut connection, "WITH w AS (SELECT author_id, count(*) AS n FROM book GROUP BY 1) SELECT a.*, w.n FROM author a JOIN w ON w.author_id = a.id").await?;
    let statement = connection.prepare(sqlx::SqlStr::from_static("SELECT $1::level AS level, $2::timestamptz, ARRAY[$1::level]")).await?;
    println!("prepared {:?}", statement.columns().iter().map(|c| (c.name(), c.type_info().name())).collect::<Vec<_>>());
    drop(statement);
    Ok(connection)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("DATABASE_URL")?;
    let pool = PgPoolOptions::new().max_connections(4).connect(&url).await?;
    let migrations = Migrator::new(Path::new(&std::env::var("MAPPERS_MIGRATIONS")?)).await?;
    migrations.run(&pool).await?;
    migrations.run(&pool).await?;
    migrations.undo(&pool, 0).await?;
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM pg_class WHERE relname IN ('author', 'book', 'dear')").fetch_one(&pool).await?;
    println!("left after undo {left}");
    migrations.run(&pool).await?;
    let done = sqlx::query("SELECT version, description, success, checksum IS NOT NULL AS summed FROM _sqlx_migrations ORDER BY version");
    for row in done.fetch_all(&pool).await? {
        println!("migration {} {} {} {}", row.get::<i64, _>(0), row.get::<String, _>(1), row.get::<bool, _>(2), row.get::<bool, _>(3));
    }

    let connection = described(PgConnection::connect(&url).await?).await?;
    let born = chrono::NaiveDate::from_ymd_opt(1990, 2, 3);
    let id: i32 = sqlx::query_scalar("INSERT INTO author (name, level, settings, tags, born) VALUES ($1, $2, $3, $4, $5) RETURNING id")
        .bind("Ann").bind(Level::Senior).bind(serde_json::json!({"theme": "dark", "sizes": [1, 2]})).bind(vec!["a", "b"]).bind(born)
        .fetch_one(&pool).await?;
    let author: Author = sqlx::query_as("SELECT * FROM author WHERE level = $1 AND tags @> $2").bind(Level::Senior).bind(vec!["b"]).fetch_one(&pool).await?;
    println!("author {author:?} {} {} {:?} {:?}", author.id, author.name, author.settings["theme"], (author.tags.as_ref(), author.born, author.level));
    let by_token = sqlx::query("SELECT name FROM author WHERE token = (SELECT token FROM author WHERE id = $1)").bind(id).fetch_one(&pool).await?;
    println!("by token {}", by_token.get::<String, _>("name"));
    let titles: Vec<String> = (0..50).map(|i| format!("t{i}")).collect();
    let prices: Vec<f64> = (0..50).map(|i| f64::from(i) / 2.0).collect();
    let many = sqlx::query("INSERT INTO book (author_id, title, price) SELECT $1, t, p FROM unnest($2::text[], $3::float8[]) AS u(t, p)");
    println!("many {}", many.bind(id).bind(&titles).bind(&prices).execute(&pool).await?.rows_affected());
    let mut upsert = sqlx::QueryBuilder::<sqlx::Postgres>::new("INSERT INTO book (author_id, title, price) ");
    upsert.push_values(0..3, |mut row, i| { row.push_bind(id).push_bind(format!("t{i}")).push_bind(100.0 + f64::from(i)); });
    upsert.push(" ON CONFLICT (author_id, title) DO UPDATE SET price = excluded.price RETURNING title, price");
    println!("upsert {:?}", upsert.build_query_as::<(String, f64)>().fetch_all(&pool).await?);
    let mut copy = pool.copy_in_raw("COPY book (author_id, title, price) FROM STDIN (FORMAT csv)").await?;
    copy.send(format!("{id},copied,7\n{id},\"with,comma\",8\n").as_bytes()).await?;
    println!("copied {}", copy.finish().await?);

    let mut tx = pool.begin().await?;
    sqlx::query("UPDATE book SET price = price + 1 WHERE title = 't5'").execute(&mut *tx).await?;
    let mut inner = tx.begin().await?;
    sqlx::query("DELETE FROM book").execute(&mut *inner).await?;
    inner.rollback().await?;
    println!("inner {:?}", sqlx::query_as::<_, (i64, f64)>("SELECT count(*), sum(price) FROM book").fetch_one(&mut *tx).await?);
    tx.commit().await?;
    drop(pool.begin().await?);
    failed("unique", sqlx::query("INSERT INTO author (name) VALUES ('Ann')").execute(&pool).await);
    failed("foreign", sqlx::query("INSERT INTO book (author_id) VALUES (99)").execute(&pool).await);
    failed("check", sqlx::query("UPDATE book SET price = -1").execute(&pool).await);
    failed("null", sqlx::query("UPDATE author SET name = NULL").execute(&pool).await);
    failed("enum", sqlx::query("SELECT 'none'::level").execute(&pool).await);
    failed("syntax", sqlx::query("SELEC 1").execute(&pool).await);
    let lock = sqlx::postgres::PgAdvisoryLock::with_key(sqlx::postgres::PgAdvisoryLockKey::BigInt(7));
    println!("lock {}", lock.acquire(connection).await?.release_now().await.is_ok());

    let mut listener = PgListener::connect(&url).await?;
    listener.listen("news").await?;
    sqlx::query("SELECT pg_notify('news', 'hello')").execute(&pool).await?;
    let told = listener.recv().await?;
    println!("notified {} {}", told.channel(), told.payload());
    migrations.undo(&pool, 1).await?;
    let columns: Vec<(String, String, String)> = sqlx::query_as(
        "SELECT column_name::text, data_type::text, is_nullable::text FROM information_schema.columns WHERE table_name = 'book' ORDER BY ordinal_position")
        .fetch_all(&pool).await?;
    println!("after undo {columns:?}");
    migrations.run(&pool).await?;
    println!("deleted {}", sqlx::query("DELETE FROM author").execute(&pool).await?.rows_affected());
    Ok(())
}
