//! `clearway check schema`: reports what the data of a server's tables says about their columns, keys and indexes.

use clearway_console::schema::{Finding, Report, SchemaQuestion, check};
use lexopt::prelude::*;

/// The server by default.
const SERVER: &str = "postgresql://postgres@127.0.0.1:5433/clearway";
/// Tables with fewer rows are not judged by their data.
const ROWS_MIN: u64 = 1000;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Question {
    asked: SchemaQuestion,
    as_json: bool,
}

/// Reads what follows `check schema`; nothing: help is asked for.
///
/// # Errors
/// What can't be understood.
pub fn parse(mut parser: lexopt::Parser) -> Result<Option<Question>, lexopt::Error> {
    let (mut server, mut rows_min, mut as_json) = (None, ROWS_MIN, false);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("min-rows") => {
                let text = parser.value()?.string()?;
                rows_min = text.parse().map_err(|_| format!("--min-rows: expected a number, found \"{text}\""))?;
            }
            Long("json") => as_json = true,
            Value(url) if server.is_none() => server = Some(url.string()?),
            other => return Err(other.unexpected()),
        }
    }
    let server = server.unwrap_or_else(|| SERVER.to_owned());
    Ok(Some(Question {
        asked: SchemaQuestion { server, password: std::env::var("PGPASSWORD").ok(), rows_min },
        as_json,
    }))
}

/// Checks and prints.
///
/// # Errors
/// The server can't be asked.
pub fn run(question: &Question) -> Result<(), String> {
    let Report { findings, unread } = crate::watch::runtime()?.block_on(check(&question.asked))?;
    for (table, error) in &unread {
        eprintln!("{table} was not judged by its data: {error}");
    }
    if question.as_json {
        let list: Vec<serde_json::Value> = findings.iter().map(json).collect();
        println!("{}", serde_json::Value::from(list));
        return Ok(());
    }
    for found in &findings {
        print!("{}", finding_text(found));
    }
    println!(
        "{} findings; tables with fewer than {} rows were not judged by their data",
        findings.len(),
        question.asked.rows_min
    );
    Ok(())
}

fn json(found: &Finding) -> serde_json::Value {
    serde_json::json!({
        "finding": found.finding, "object": found.object, "evidence": found.evidence, "bytes_saved": found.bytes_saved, "ddl": found.ddl,
    })
}

fn finding_text(found: &Finding) -> String {
    let saved = found.bytes_saved.map_or_else(String::new, |bytes| format!("; saves about {}", size(bytes)));
    format!("{}: {}\n    {}{saved}\n    {}\n\n", found.finding, found.object, found.evidence, found.ddl)
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_shown_with_what_to_run() {
        let found = Finding {
            finding: "Narrower integer".to_owned(),
            object: "public.t.n".to_owned(),
            evidence: "1000 rows, values from 1 to 9".to_owned(),
            bytes_saved: Some(12_000),
            ddl: "ALTER TABLE public.t ALTER COLUMN n TYPE smallint".to_owned(),
        };
        assert_eq!(
            finding_text(&found),
            "Narrower integer: public.t.n\n    1000 rows, values from 1 to 9; saves about 12 kB\n    \
             ALTER TABLE public.t ALTER COLUMN n TYPE smallint\n\n"
        );
        assert_eq!(json(&found)["bytes_saved"], 12_000);
    }
}
