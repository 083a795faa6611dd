//! The HTTP interface: which requests exist, which visitors may make them, and their answers.

use crate::metrics::Metrics;
use crate::options::Entry;
use crate::panels::{self, PanelAnswer};
use crate::sample::{self, History};
use crate::source::{Kind, Source};
use crate::statement;
use crate::trend::Trends;
use crate::visitors::{Denied, Visitor, Visitors};
use clearway_base::waits::wall_us;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::http::request::Parts;
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

/// The header that names a visitor's session.
const SESSION: &str = "x-clearway-session";
/// A login's body.
const LOGIN_BYTES_MAX: usize = 4 << 10;
const ONLY_THE_PAGE: &str = "only the console's own page may ask for this";

const PAGE: &str = include_str!("page/index.html");
const SCRIPT: &str = include_str!("page/console.js");
const PANELS: &str = include_str!("page/panels.js");
const STATEMENT: &str = include_str!("page/statement.js");
const STYLE: &str = include_str!("page/console.css");

/// What the requests are answered from.
pub(crate) struct Site {
    pub(crate) at: SocketAddr,
    pub(crate) may_cancel: bool,
    /// The page knows it; another website can't read it.
    pub(crate) token: String,
    pub(crate) visitors: Visitors,
    pub(crate) source: Arc<Source>,
    pub(crate) history: Arc<History>,
    pub(crate) trends: Arc<Trends>,
    pub(crate) metrics: Arc<Metrics>,
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
        let (request, body) = request.into_parts();
        let header = |name: &str| request.headers.get(name).and_then(|value| value.to_str().ok());
        // CON-2: a website that points its own name at this machine is another host.
        if !header("host").is_some_and(|host| self.is_own(host)) {
            return refused(StatusCode::MISDIRECTED_REQUEST, format!("the console is at http://{}/", self.at));
        }
        match (&request.method, request.uri.path()) {
            (&Method::GET, "/") => answer(StatusCode::OK, "text/html; charset=utf-8", self.page()),
            (&Method::GET, "/console.js") => answer(StatusCode::OK, "text/javascript; charset=utf-8", SCRIPT),
            (&Method::GET, "/panels.js") => answer(StatusCode::OK, "text/javascript; charset=utf-8", PANELS),
            (&Method::GET, "/statement.js") => answer(StatusCode::OK, "text/javascript; charset=utf-8", STATEMENT),
            (&Method::GET, "/console.css") => answer(StatusCode::OK, "text/css; charset=utf-8", STYLE),
            (&Method::GET, "/health") => answer(StatusCode::OK, "text/plain; charset=utf-8", "the console runs\n"),
            (&Method::GET, "/ready") => self.ready(),
            (&Method::POST, "/api/login") if self.is_from_page(&request) => self.login(body).await,
            (&Method::POST, "/api/login") => refused(StatusCode::FORBIDDEN, ONLY_THE_PAGE),
            (_, "/" | "/api/login") => refused(StatusCode::METHOD_NOT_ALLOWED, "not by this method"),
            (_, path) if path == "/metrics" || path.starts_with("/api/") => {
                match self.visitors.of(header(SESSION), header("authorization")).await {
                    Ok(visitor) => self.answer_visitor(&request, &visitor).await,
                    Err(denied) => self.denied(denied, path == "/metrics"),
                }
            }
            _ => refused(StatusCode::NOT_FOUND, "there is no such page"),
        }
    }

    /// Answers requests about the server's statements, for a visitor that may see them.
    async fn answer_visitor(&self, request: &Parts, visitor: &Visitor) -> Answer {
        let header = |name: &str| request.headers.get(name).and_then(|value| value.to_str().ok());
        let text = |name: &str| {
            let query = request.uri.query().unwrap_or("");
            query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
        };
        let number = |name: &str| text(name)?.parse::<i64>().ok();
        match (&request.method, request.uri.path()) {
            (&Method::GET, "/metrics") => self.metrics(header("accept").unwrap_or("")),
            (&Method::GET, "/api/now") => json_of(&self.now(number("at"), visitor)),
            (&Method::GET, "/api/history") => json_of(&self.history.since(number("since").unwrap_or(0))),
            (&Method::GET, path) if path.starts_with("/api/table/") => {
                self.table(&path["/api/table/".len()..], number("at"), visitor).await
            }
            (&Method::GET, "/api/statement") => self.statement(text("id").unwrap_or(""), visitor).await,
            (&Method::POST, "/api/cancel" | "/api/logout") if !self.is_from_page(request) => {
                refused(StatusCode::FORBIDDEN, ONLY_THE_PAGE)
            }
            (&Method::POST, "/api/cancel") => self.cancel(visitor, number("pid")).await,
            (&Method::POST, "/api/logout") => {
                self.visitors.logout(header(SESSION).unwrap_or_default());
                json_of(&json!({"done": true}))
            }
            (_, "/api/cancel" | "/api/logout" | "/metrics") => {
                refused(StatusCode::METHOD_NOT_ALLOWED, "not by this method")
            }
            _ => refused(StatusCode::NOT_FOUND, "there is no such page"),
        }
    }

    fn page(&self) -> String {
        PAGE.replace("{{token}}", &self.token).replace("{{cancel}}", if self.may_cancel { "yes" } else { "no" })
    }

    /// Whether the console's own page asks (CON-2).
    fn is_from_page(&self, request: &Parts) -> bool {
        let header = |name: &str| request.headers.get(name).and_then(|value| value.to_str().ok());
        let is_own = |origin: &str| origin.strip_prefix("http://").is_some_and(|host| self.is_own(host));
        // A browser names the origin; other programs need not.
        request.headers.get("origin").is_none_or(|_| header("origin").is_some_and(is_own))
            && header("x-clearway-token") == Some(self.token.as_str())
    }

    async fn login(&self, body: Incoming) -> Answer {
        let Ok(body) = Limited::new(body, LOGIN_BYTES_MAX).collect().await else {
            return refused(StatusCode::PAYLOAD_TOO_LARGE, "this is no login");
        };
        let asked: Value = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
        let (Some(role), Some(password)) = (asked["role"].as_str(), asked["password"].as_str()) else {
            return refused(StatusCode::BAD_REQUEST, "a login has a role and a password");
        };
        match self.visitors.login(role, password).await {
            Ok(session) => json_of(&json!({"session": session})),
            Err(denied) => self.denied(denied, false),
        }
    }

    fn denied(&self, denied: Denied, is_for_scrapers: bool) -> Answer {
        let (status, why) = match denied {
            Denied::Login(why) => (StatusCode::UNAUTHORIZED, why),
            Denied::Rights(why) => (StatusCode::FORBIDDEN, why),
            Denied::Away(why) => (StatusCode::BAD_GATEWAY, why),
        };
        let mut answer = refused(status, why);
        if is_for_scrapers && status == StatusCode::UNAUTHORIZED {
            let asks = HeaderValue::from_static("Basic realm=\"a role of the server\"");
            answer.headers_mut().insert(HeaderName::from_static("www-authenticate"), asks);
        }
        answer
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

    fn now(&self, at_us: Option<i64>, visitor: &Visitor) -> Value {
        let seen = self.source.seen();
        let errors: Vec<Value> =
            self.metrics.errors().into_iter().map(|(query, error)| json!({"query": query, "error": error})).collect();
        json!({"server": self.source.place(), "version": seen.version, "connected": seen.connected, "error": seen.error,
            "kind": seen.kind.map_or("", Kind::name), "processors": self.source.processors().shown(),
            "role": visitor.role, "may_log_in": self.visitors.entry() == Entry::Login, "query_errors": errors, "second": self.history.second(at_us)})
    }

    async fn table(&self, name: &str, at_us: Option<i64>, visitor: &Visitor) -> Answer {
        let kind = self.source.seen().kind.unwrap_or(Kind::Clearway);
        let sql = match panels::statement(name, kind, at_us, wall_us()) {
            None => return refused(StatusCode::NOT_FOUND, "there is no such table"),
            Some(PanelAnswer::Missing(why)) => return refused(StatusCode::OK, why),
            Some(PanelAnswer::Sampled(what, note)) => {
                return json_of(&panels::of_samples(&self.history, kind, what, note));
            }
            Some(PanelAnswer::Query(sql)) => sql,
        };
        let asked = match self.visitors.connect(visitor).await {
            Ok(mut link) => panels::ask(&mut link, &sql).await,
            Err(error) => Err(error.text),
        };
        match asked {
            Ok(mut table) => {
                if name == "statements" {
                    table["trends"] = self.trends.all();
                }
                json_of(&table)
            }
            Err(error) => answer(StatusCode::OK, "application/json", json!({"error": error, "sql": sql}).to_string()),
        }
    }

    /// The page of one statement.
    async fn statement(&self, id: &str, visitor: &Visitor) -> Answer {
        if !statement::is_id(id) {
            return refused(StatusCode::BAD_REQUEST, "which statement? ?id=NUMBER");
        }
        let kind = self.source.seen().kind.unwrap_or(Kind::Clearway);
        match self.visitors.connect(visitor).await {
            Ok(mut link) => json_of(&statement::page(&mut link, kind, id, &self.history, &self.trends).await),
            Err(error) => refused(StatusCode::BAD_GATEWAY, error.text),
        }
    }

    /// Cancels what a session runs, with the visitor's rights.
    async fn cancel(&self, visitor: &Visitor, pid: Option<i64>) -> Answer {
        if !self.may_cancel {
            return refused(StatusCode::FORBIDDEN, "the console was started without --cancel");
        }
        let Some(pid) = pid.and_then(|pid| i32::try_from(pid).ok()) else {
            return refused(StatusCode::BAD_REQUEST, "which session? ?pid=NUMBER");
        };
        let mut link = match self.visitors.connect(visitor).await {
            Ok(link) => link,
            Err(error) => return refused(StatusCode::BAD_GATEWAY, error.text),
        };
        match sample::end(&mut link, pid).await {
            Ok(Some(state)) => json_of(&json!({"done": true, "state": state})),
            Ok(None) => refused(StatusCode::OK, format!("session {pid} has ended already")),
            Err(error) => refused(StatusCode::OK, error),
        }
    }
}
