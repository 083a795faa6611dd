//! sqlx' macros, which ask the server about each statement when this is built, over the tables that sqlx.rs has made.
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pool = sqlx::PgPool::connect(&std::env::var("DATABASE_URL")?).await?;
    let id = sqlx::query_scalar!("INSERT INTO author (name, settings, tags) VALUES ($1, $2, $3) RETURNING id", "Bea", serde_json::json!([1]), &["x".to_owned()][..])
        .fetch_one(&pool).await?;
    // What may be null is an Option, and nothing else is.
    let row = sqlx::query!("SELECT name, settings, tags, token, born, created_at FROM author WHERE id = $1", id).fetch_one(&pool).await?;
    let (_, _, born): (uuid::Uuid, chrono::DateTime<chrono::Utc>, Option<chrono::NaiveDate>) = (row.token, row.created_at, row.born);
    println!("checked {} {} {:?} {born:?}", row.name, row.settings, row.tags);
    let book = sqlx::query!("INSERT INTO book (author_id, title, price) VALUES ($1, $2, $3) RETURNING title, is_sold", id, "t", 12.5).fetch_one(&pool).await?;
    let (title, sold): (Option<String>, bool) = (book.title, book.is_sold);
    println!("book {title:?} {sold}");
    for row in sqlx::query!("SELECT a.name, b.title, b.price AS \"price?\" FROM author a LEFT JOIN book b ON b.author_id = a.id ORDER BY 1").fetch_all(&pool).await? {
        println!("joined {} {:?} {:?}", row.name, row.title, row.price);
    }
    let counted = sqlx::query!("SELECT count(*) AS \"n!\", max(price) AS highest FROM book WHERE title = ANY($1)", &["t".to_owned()][..]).fetch_one(&pool).await?;
    println!("counted {} {:?}", counted.n, counted.highest);
    let done = sqlx::query!("UPDATE book SET price = price * $1 WHERE author_id = $2", 2.0, id).execute(&pool).await?;
    println!("updated {}", done.rows_affected());
    Ok(())
}
