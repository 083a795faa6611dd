//! HTTP: which requests there are, who may make them, and what they are answered.

use crate::metrics::Metrics;
use crate::sample::{self, History};
use crate::source::{Kind, Source, told};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;

/// Connections at once.
const CONNECTIONS_MAX: usize = 128;
/// How long a client may take for its request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The only things that the page may load are its own.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const PAGE: &str = include_str!("page/index.html");
const SCRIPT: &str = include_str!("page/console.js");
const STYLE: &str = include_str!("page/console.css");

const STATEMENTS_CLEARWAY: &str = "select calls, round(total_ms::numeric, 1) as total_ms, round(mean_ms::numeric, 3) as mean_ms, \
     round(p99_ms::numeric, 3) as p99_ms, round(max_ms::numeric, 3) as max_ms, round(wait_ms::numeric, 1) as wait_ms, waits, \
     application_name, left(query, 300) as query from clearway_statements \
     where application_name is distinct from 'clearway watch' order by clearway_statements.total_ms desc limit 25";
const STATEMENTS_POSTGRESQL: &str = "select calls, round(total_exec_time::numeric, 1) as total_ms, \
     round(mean_exec_time::numeric, 3) as mean_ms, round(max_exec_time::numeric, 3) as max_ms, rows, left(query, 300) as query \
     from pg_stat_statements order by total_exec_time desc limit 25";
const TRANSACTIONS_CLEARWAY: &str = "select pid, application_name, usename, state, round(age_ms::numeric / 1000, 1) as age_s, \
     round(in_state_ms::numeric / 1000, 1) as in_state_s, locks, undo_bytes, left(statements, 600) as statements \
     from clearway_transactions where application_name is distinct from 'clearway watch' order by age_ms desc limit 25";
const TRANSACTIONS_POSTGRESQL: &str = "select pid, application_name, usename, state, \
     round(extract(epoch from clock_timestamp() - xact_start)::numeric, 1) as age_s, \
     round(extract(epoch from clock_timestamp() - state_change)::numeric, 1) as in_state_s, left(query, 300) as latest_statement \
     from pg_stat_activity where xact_start is not null and application_name <> 'clearway watch' order by xact_start limit 25";
const LATCHES: &str = "select name, waits, round(spin_ms::numeric, 1) as spin_ms, round(park_ms::numeric, 1) as park_ms, \
     round(max_ms::numeric, 2) as max_ms, waiting, holder, taken_at from clearway_latches order by spin_ms + park_ms desc limit 15";

/// What the requests are answered from.
pub(crate) struct Site {
    at: SocketAddr,
    may_cancel: bool,
    /// The page knows it; another website can't read it.
    token: String,
    source: Arc<Source>,
    history: Arc<History>,
    metrics: Arc<Metrics>,
}

impl Site {
    pub(crate) fn new(
        at: SocketAddr,
        may_cancel: bool,
        source: &Arc<Source>,
        history: &Arc<History>,
        metrics: &Arc<Metrics>,
    ) -> Result<Site, getrandom::Error> {
        let mut random = [0_u8; 24];
        getrandom::fill(&mut random)?;
        let token = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let (source, history, metrics) = (Arc::clone(source), Arc::clone(history), Arc::clone(metrics));
        Ok(Site { at, may_cancel, token, source, history, metrics })
    }
}

/// Answers requests until the process ends.
pub(crate) async fn serve(listener: TcpListener, site: Arc<Site>) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // No file handles: some come back when connections end.
            clearway_base::sync::sleep(Duration::from_millis(100)).await;
            continue;
        };
        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (site, open) = (Arc::clone(&site), Arc::clone(&open));
        tokio::spawn(async move {
            let service = hyper::service::service_fn(|request| {
                let site = Arc::clone(&site);
                async move { Ok::<_, Infallible>(site.answer(request).await) }
            });
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(16 << 10);
            // A client that goes away in the middle is no news.
            drop(http.serve_connection(TokioIo::new(stream), service).await);
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

type Answer = Response<Full<Bytes>>;

fn answer(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        ("content-type", kind),
        ("cache-control", "no-store"),
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

fn json_of(value: &Value) -> Answer {
    answer(StatusCode::OK, "application/json", value.to_string())
}

fn refused(status: StatusCode, why: impl Into<String>) -> Answer {
    answer(status, "application/json", json!({"error": why.into()}).to_string())
}

impl Site {
    /// The names by which this machine may call the console.
    fn is_own(&self, authority: &str) -> bool {
        let port = self.at.port();
        [format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}"), self.at.to_string()]
            .iter()
            .any(|own| own.eq_ignore_ascii_case(authority))
    }

    async fn answer(&self, request: Request<Incoming>) -> Answer {
        let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
        // CON-2: a website that points its own name at this machine is another host.
        if !header("host").is_some_and(|host| self.is_own(host)) {
            return refused(StatusCode::MISDIRECTED_REQUEST, format!("the console is at http://{}/", self.at));
        }
        let number = |name: &str| {
            let query = request.uri().query().unwrap_or("");
            query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse::<i64>().ok())
        };
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/") => {
                let page = PAGE
                    .replace("{{token}}", &self.token)
                    .replace("{{cancel}}", if self.may_cancel { "yes" } else { "no" });
                answer(StatusCode::OK, "text/html; charset=utf-8", page)
            }
            (&Method::GET, "/console.js") => answer(StatusCode::OK, "text/javascript; charset=utf-8", SCRIPT),
            (&Method::GET, "/console.css") => answer(StatusCode::OK, "text/css; charset=utf-8", STYLE),
            (&Method::GET, "/health") => answer(StatusCode::OK, "text/plain; charset=utf-8", "the console runs\n"),
            (&Method::GET, "/ready") => self.ready(),
            (&Method::GET, "/metrics") => self.metrics(header("accept").unwrap_or("")),
            (&Method::GET, "/api/now") => json_of(&self.now(number("at"))),
            (&Method::GET, "/api/history") => json_of(&self.history.since(number("since").unwrap_or(0))),
            (&Method::GET, path) if path.starts_with("/api/table/") => self.table(&path["/api/table/".len()..]).await,
            (&Method::POST, "/api/cancel") => {
                self.cancel(header("x-clearway-token"), header("origin"), number("pid")).await
            }
            (_, "/" | "/api/cancel" | "/metrics") => refused(StatusCode::METHOD_NOT_ALLOWED, "not by this method"),
            _ => refused(StatusCode::NOT_FOUND, "there is no such page"),
        }
    }

    fn ready(&self) -> Answer {
        let seen = self.source.seen();
        if seen.connected {
            return answer(StatusCode::OK, "text/plain; charset=utf-8", "connected\n");
        }
        let why = seen.error.unwrap_or_else(|| "not connected yet".to_owned());
        answer(StatusCode::SERVICE_UNAVAILABLE, "text/plain; charset=utf-8", format!("{why}\n"))
    }

    fn metrics(&self, accept: &str) -> Answer {
        let open_metrics = accept.contains("application/openmetrics-text");
        let kind = match open_metrics {
            true => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            false => "text/plain; version=0.0.4; charset=utf-8",
        };
        answer(StatusCode::OK, kind, self.metrics.text(&self.source, &self.history, open_metrics))
    }

    fn now(&self, at_us: Option<i64>) -> Value {
        let seen = self.source.seen();
        let errors: Vec<Value> =
            self.metrics.errors().into_iter().map(|(query, error)| json!({"query": query, "error": error})).collect();
        json!({"server": self.source.place(), "version": seen.version, "connected": seen.connected, "error": seen.error,
            "kind": match seen.kind { Some(Kind::Clearway) => "clearway", Some(Kind::PostgreSql) => "postgresql", None => "" },
            "query_errors": errors, "second": self.history.second(at_us)})
    }

    async fn table(&self, name: &str) -> Answer {
        let clearway = self.source.seen().kind == Some(Kind::Clearway);
        let sql = match (name, clearway) {
            ("statements", true) => STATEMENTS_CLEARWAY,
            ("statements", false) => STATEMENTS_POSTGRESQL,
            ("transactions", true) => TRANSACTIONS_CLEARWAY,
            ("transactions", false) => TRANSACTIONS_POSTGRESQL,
            ("latches", true) => LATCHES,
            ("latches", false) => return refused(StatusCode::OK, "PostgreSQL does not record its latches' waits"),
            _ => return refused(StatusCode::NOT_FOUND, "there is no such table"),
        };
        match sample::table(&self.source, sql).await {
            Ok(table) => json_of(&table),
            Err(error) => answer(StatusCode::OK, "application/json", json!({"error": error, "sql": sql}).to_string()),
        }
    }

    /// Cancels what a session runs, with the rights of the console's role.
    async fn cancel(&self, token: Option<&str>, origin: Option<&str>, pid: Option<i64>) -> Answer {
        if !self.may_cancel {
            return refused(StatusCode::FORBIDDEN, "the console was started without --cancel");
        }
        // CON-2
        let from_here =
            origin.is_none_or(|origin| origin.strip_prefix("http://").is_some_and(|host| self.is_own(host)));
        if !from_here || token != Some(self.token.as_str()) {
            return refused(StatusCode::FORBIDDEN, "only the console's own page may ask for this");
        }
        let Some(pid) = pid.and_then(|pid| i32::try_from(pid).ok()) else {
            return refused(StatusCode::BAD_REQUEST, "which session? ?pid=NUMBER");
        };
        let client = match self.source.connect().await {
            Ok(client) => client,
            Err(error) => return refused(StatusCode::BAD_GATEWAY, told(&error)),
        };
        // A session that is idle in its transaction runs nothing that could be cancelled: it is ended.
        let ends = "select case when state = 'active' then pg_cancel_backend(pid) else pg_terminate_backend(pid) end, state \
             from pg_stat_activity where pid = $1";
        match client.query_opt(ends, &[&pid]).await {
            Ok(Some(row)) => {
                json_of(&json!({"done": row.get::<_, Option<bool>>(0), "state": row.get::<_, Option<String>>(1)}))
            }
            Ok(None) => refused(StatusCode::OK, format!("session {pid} has ended already")),
            Err(error) => refused(StatusCode::OK, told(&error)),
        }
    }
}
