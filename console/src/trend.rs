//! The trend of each statement over the last hour: calls and durations, every ten seconds.
//!
//! Bounded (CON-3): the [`STATEMENTS_MAX`] statements with the most time, [`POINTS_KEPT`] points each.

use crate::link::LinkError;
use crate::source::{Kind, Source};
use clearway_base::sync::{Mutex, sleep};
use clearway_base::waits::wall_us;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Between two readings.
const PAUSE: Duration = Duration::from_secs(10);
/// After a reading that failed: the server writes each failure to its log.
const FAILED_PAUSE: Duration = Duration::from_secs(300);
/// Statements that are read, and kept.
const STATEMENTS_MAX: usize = 100;
/// Points of a statement that are kept.
const POINTS_KEPT: usize = 360;

/// Totals of a statement since the server's statistics began.
#[derive(Clone, Copy, Debug)]
struct Point {
    at_us: i64,
    calls: f64,
    total_ms: f64,
}

/// The last hour.
pub(crate) struct Trends(Mutex<HashMap<String, VecDeque<Point>>>);

impl Default for Trends {
    fn default() -> Self {
        Trends(Mutex::new("console/trends", HashMap::new()))
    }
}

/// Number, calls, milliseconds; the most expensive first.
fn statement(kind: Kind) -> &'static str {
    match kind {
        Kind::Clearway => {
            "SELECT queryid, sum(calls), sum(total_ms) FROM clearway_statements WHERE queryid IS NOT NULL GROUP BY 1 ORDER BY 3 DESC LIMIT 100"
        }
        // Without the texts, which lie in a file.
        Kind::PostgreSql => {
            "SELECT queryid, sum(calls), sum(total_exec_time) FROM pg_stat_statements(false) WHERE queryid IS NOT NULL GROUP BY 1 ORDER BY 3 DESC LIMIT 100"
        }
        Kind::MariaDb | Kind::MySql => {
            "SELECT /* clearway watch */ digest, sum(count_star), sum(sum_timer_wait) / 1e9 FROM performance_schema.events_statements_summary_by_digest \
             WHERE digest IS NOT NULL AND digest_text NOT LIKE '%performance_schema%' AND digest_text NOT LIKE '%information_schema%' GROUP BY 1 ORDER BY 3 DESC LIMIT 100"
        }
    }
}

impl Trends {
    fn keep(&self, at_us: i64, rows: &[Vec<Option<String>>]) {
        let mut kept = self.0.lock();
        for row in rows.iter().take(STATEMENTS_MAX) {
            let text = |at: usize| row.get(at).and_then(Option::as_deref).unwrap_or_default();
            let number = |at: usize| text(at).parse::<f64>().unwrap_or(0.0);
            let points = kept.entry(text(0).to_owned()).or_default();
            if points.len() == POINTS_KEPT {
                points.pop_front();
            }
            points.push_back(Point { at_us, calls: number(1), total_ms: number(2) });
        }
        // What is not among the most expensive any more is kept as long as there is room.
        while kept.len() > STATEMENTS_MAX {
            let oldest = kept.iter().min_by_key(|(_, points)| points.back().map_or(0, |point| point.at_us));
            let Some(oldest) = oldest.map(|(id, _)| id.clone()) else { break };
            kept.remove(&oldest);
        }
    }

    /// A statement's calls and milliseconds between one reading and the next, oldest first: `[[at_us, calls, ms], ...]`.
    pub(crate) fn of(&self, id: &str) -> Value {
        self.0.lock().get(id).map_or_else(|| json!([]), steps)
    }

    /// The same of all statements, as `{id: [[at_us, calls, ms], ...]}`.
    pub(crate) fn all(&self) -> Value {
        self.0.lock().iter().map(|(id, points)| (id.clone(), steps(points))).collect::<serde_json::Map<_, _>>().into()
    }
}

fn steps(points: &VecDeque<Point>) -> Value {
    let pairs = points.iter().zip(points.iter().skip(1));
    // Statistics that were reset begin at 0 again.
    let step = |before: f64, after: f64| if after >= before { after - before } else { after };
    pairs.map(|(a, b)| json!([b.at_us, step(a.calls, b.calls), step(a.total_ms, b.total_ms)])).collect()
}

/// Reads until the process ends.
pub(crate) async fn run(source: &Source, trends: &Trends) {
    loop {
        let (mut link, kind) = source.attach().await;
        loop {
            let pause = match read(&mut link, kind, trends).await {
                Ok(true) => PAUSE,
                Ok(false) => FAILED_PAUSE,
                Err(error) if error.code.as_ref().is_none_or(|code| code.starts_with("57P")) => break,
                Err(_) => FAILED_PAUSE,
            };
            sleep(pause).await;
        }
        sleep(Duration::from_secs(1)).await;
    }
}

/// One reading; false: the server has no such statistics.
async fn read(link: &mut crate::link::Link, kind: Kind, trends: &Trends) -> Result<bool, LinkError> {
    if kind == Kind::PostgreSql && link.field("SELECT to_regclass('pg_stat_statements')").await?.is_none() {
        return Ok(false);
    }
    let rows = link.table(statement(kind), STATEMENTS_MAX).await?.rows;
    trends.keep(wall_us(), &rows);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_between_readings_are_kept_within_bounds() {
        let trends = Trends::default();
        let row = |id: &str, calls: u32| vec![Some(id.to_owned()), Some(calls.to_string()), Some("1.5".to_owned())];
        for (at_us, calls) in [(1, 10), (2, 30), (3, 5)] {
            trends.keep(at_us, &[row("7", calls)]);
        }
        assert_eq!(trends.of("7"), json!([[2, 20.0, 0.0], [3, 5.0, 0.0]]));
        assert_eq!(trends.of("8"), json!([]));
        // CON-3
        for n in 0..1000 {
            trends.keep(10 + n, &[row("7", 1), row(&format!("x{n}"), 1)]);
        }
        let kept = trends.0.lock();
        assert_eq!((kept.len(), kept["7"].len()), (STATEMENTS_MAX, POINTS_KEPT));
    }
}
