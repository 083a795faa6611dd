//! A stub of the SQL layer that knows a few fixed texts, and a server on a free port.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::Duration;

use clearway_server::server::{ListenOptions, Server};
use clearway_server::sessions::{Login, Session, Sessions, Start, Timeouts};
use clearway_server::wire::frontend::{Bind, FunctionCall};
use clearway_sql::session::{Backend, Backends, Client, Column, CopyFormat, CopyIn, TransactionStatus};
use clearway_sql::{Result, SqlError};

/// The layer: any role but `nobody`; `locked` may not log in, `secret` has the password `secret`.
#[derive(Default)]
pub struct Stub {
    /// Sessions with a statement in progress.
    pub in_progress: AtomicI64,
}

impl Sessions for Stub {
    type Session = StubSession;

    fn login(&self, user: &str) -> Option<Login> {
        let password =
            (user == "secret").then(|| clearway_sql::session::password::to_store("secret").expect("random")).flatten();
        (user != "nobody").then(|| Login { allowed: user != "locked", password, superuser: false })
    }

    fn is_member(&self, user: &str, role: &str) -> bool {
        user == role
    }

    fn has_passwords(&self) -> bool {
        true
    }

    async fn begin(&self, start: Start) -> Result<StubSession> {
        if start.database == "nowhere" {
            return Err(SqlError::new("3D000", "database \"nowhere\" does not exist"));
        }
        let setting = |name: &str| {
            let found = start.settings.iter().find(|(n, _)| n == name);
            found.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
        };
        let timeouts = Timeouts {
            statement_ms: setting("statement_timeout"),
            idle_in_transaction_ms: setting("idle_in_transaction_session_timeout"),
            idle_session_ms: setting("idle_session_timeout"),
        };
        let status = TransactionStatus::Idle;
        Ok(StubSession {
            unlogged: false,
            backend: start.backend,
            timeouts,
            status,
            statements: HashMap::new(),
            portals: HashMap::new(),
        })
    }

    fn in_progress(&self, begins: bool) {
        self.in_progress.fetch_add(if begins { 1 } else { -1 }, SeqCst);
    }
}

pub struct StubSession {
    unlogged: bool,
    backend: Arc<Backend>,
    timeouts: Timeouts,
    status: TransactionStatus,
    statements: HashMap<String, String>,
    portals: HashMap<String, (String, usize)>,
}

fn missing(what: &str, name: &str) -> SqlError {
    SqlError::new(if what == "portal" { "34000" } else { "26000" }, format!("{what} \"{name}\" does not exist"))
}

fn column() -> Column<'static> {
    Column { name: "n", table: 0, attribute: 0, ty: 25.into(), len: -1, binary: false }
}

impl StubSession {
    /// `rows N [WIDTH]`, `echo TEXT`, `sleep`, `raised`, `panic`, `unlogged`, `fail`, `begin`, `commit`, `copyin`, `copyout N`.
    async fn run(&mut self, sql: &str, done: usize, limit: usize, client: &mut dyn Client) -> Result<usize> {
        let words: Vec<&str> = sql.split_whitespace().collect();
        match words.as_slice() {
            [] => client.empty_query(),
            ["rows", count, rest @ ..] => {
                let count: usize = count.parse().unwrap_or(0);
                let width: usize = rest.first().and_then(|w| w.parse().ok()).unwrap_or(1);
                let end = if limit == 0 { count } else { count.min(done + limit) };
                for n in done..end {
                    client.row(1, &mut |_, out| {
                        out.extend_from_slice(format!("{n:0width$}").as_bytes());
                        true
                    });
                    if client.is_full() {
                        client.drain().await.map_err(|_| SqlError::new("08006", "gone"))?;
                    }
                }
                if end < count {
                    client.portal_suspended();
                    return Ok(end);
                }
                client.command_complete(&format!("SELECT {count}"));
            }
            ["echo", text] => {
                client.row(2, &mut |i, out| {
                    out.extend_from_slice(text.as_bytes());
                    i == 0
                });
                client.command_complete("SELECT 1");
            }
            ["panic"] => panic!("on purpose"),
            // The log has failed: nothing becomes durable any more.
            ["unlogged"] => {
                self.unlogged = true;
                client.command_complete("INSERT 0 1");
            }
            ["sleep"] => std::future::pending().await,
            // Ends well although its session is told to end.
            ["raised"] => {
                self.backend.interrupt.raised().await;
                client.command_complete("RAISED");
            }
            ["begin"] => {
                self.status = TransactionStatus::InBlock;
                client.command_complete("BEGIN");
            }
            ["commit"] => {
                self.status = TransactionStatus::Idle;
                client.command_complete("COMMIT");
            }
            ["copyin"] => return copy_in(client).await,
            ["copyout", count] => {
                client.copy_out(CopyFormat { binary: false, columns: 1 });
                for n in 0..count.parse().unwrap_or(0) {
                    client.copy_data(format!("{n}\n").as_bytes());
                }
                client.copy_out_done();
                client.command_complete(&format!("COPY {count}"));
            }
            _ => {
                if self.status == TransactionStatus::InBlock {
                    self.status = TransactionStatus::Failed;
                }
                let error = SqlError::new("42601", "syntax error").at(2).hint("a hint").detail("a detail");
                return Err(error.table("public", "t").constraint("t_pkey"));
            }
        }
        Ok(0)
    }
}

async fn copy_in(client: &mut dyn Client) -> Result<usize> {
    client.copy_in(CopyFormat { binary: false, columns: 1 });
    let mut bytes = 0;
    loop {
        match client.copy_next().await.map_err(|_| SqlError::new("08006", "gone"))? {
            CopyIn::Data(data) => bytes += data.len(),
            CopyIn::Done => break,
            CopyIn::Failed(why) => return Err(SqlError::new("57014", format!("COPY from stdin failed: {why}"))),
        }
    }
    client.command_complete(&format!("COPY {bytes}"));
    Ok(0)
}

impl Session for StubSession {
    fn types(&self) -> clearway_sql::types::user::Slot {
        clearway_sql::types::user::slot()
    }

    fn reported(&self) -> Vec<(String, String)> {
        vec![("server_version".into(), "15.0".into()), ("client_encoding".into(), "UTF8".into())]
    }

    fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    fn status(&self) -> TransactionStatus {
        self.status
    }

    /// The function is the sum of the lengths of its arguments; number 0 is none.
    async fn function_call(&mut self, call: &FunctionCall<'_>, _: &mut dyn Client) -> Result<Option<Vec<u8>>> {
        if call.function == 0 {
            return Err(SqlError::new("42883", "function with OID 0 does not exist"));
        }
        let bytes: usize = call.values.iter().flatten().map(|value| value.len()).sum();
        Ok((bytes > 0).then(|| bytes.to_string().into_bytes()))
    }

    async fn simple(&mut self, sql: &str, client: &mut dyn Client) -> Result<()> {
        for sql in sql.split(';').filter(|part| !part.trim().is_empty()) {
            if sql.starts_with("rows") {
                client.row_description(&[column()]);
            } else if sql.starts_with("echo") {
                client.row_description(&[column(), column()]);
            }
            let backend = Arc::clone(&self.backend);
            let limit_ms = self.timeouts.statement_ms;
            let run = backend.interrupt.guard(self.run(sql, 0, 0, client));
            backend.interrupt.timed(limit_ms, run).await??;
        }
        Ok(())
    }

    async fn parse(&mut self, name: &str, sql: &str, _types: &[u32]) -> Result<()> {
        if sql == "fail" {
            return Err(SqlError::new("42601", "syntax error").at(0));
        }
        self.statements.insert(name.into(), sql.into());
        Ok(())
    }

    async fn bind(&mut self, bind: &Bind<'_>) -> Result<()> {
        let sql = self.statements.get(bind.statement).ok_or_else(|| missing("prepared statement", bind.statement))?;
        let value = bind.values.first().copied().flatten().map(String::from_utf8_lossy);
        let sql = sql.replace("$1", &value.unwrap_or_default());
        self.portals.insert(bind.portal.into(), (sql, 0));
        Ok(())
    }

    async fn describe_statement(&mut self, name: &str, client: &mut dyn Client) -> Result<()> {
        let sql = self.statements.get(name).ok_or_else(|| missing("prepared statement", name))?;
        client.parameter_description(if sql.contains("$1") { &[25] } else { &[] });
        if sql.starts_with("rows") {
            client.row_description(&[column()])
        } else {
            client.no_data()
        }
        Ok(())
    }

    async fn describe_portal(&mut self, name: &str, client: &mut dyn Client) -> Result<()> {
        let (sql, _) = self.portals.get(name).ok_or_else(|| missing("portal", name))?;
        if sql.starts_with("rows") {
            client.row_description(&[column()])
        } else {
            client.no_data()
        }
        Ok(())
    }

    async fn execute(&mut self, portal: &str, max_rows: u32, client: &mut dyn Client) -> Result<()> {
        let (sql, done) = self.portals.get(portal).cloned().ok_or_else(|| missing("portal", portal))?;
        let backend = Arc::clone(&self.backend);
        let done = backend.interrupt.guard(self.run(&sql, done, max_rows as usize, client)).await??;
        self.portals.insert(portal.into(), (sql, done));
        Ok(())
    }

    fn close_statement(&mut self, name: &str) -> Result<()> {
        self.statements.remove(name);
        Ok(())
    }

    fn close_portal(&mut self, name: &str) -> Result<()> {
        self.portals.remove(name);
        Ok(())
    }

    async fn sync(&mut self, _client: &mut dyn Client) -> Result<()> {
        self.portals.clear();
        Ok(())
    }

    async fn before_send(&mut self) -> Result<()> {
        if self.unlogged { Err(SqlError::new("08007", "the database has stopped")) } else { Ok(()) }
    }

    async fn end(self) {}
}

/// A server on a free port of loopback.
pub async fn start(options: ListenOptions) -> (Arc<Server<Stub>>, SocketAddr) {
    let options = ListenOptions {
        addresses: vec![SocketAddr::from(([127, 0, 0, 1], 0))],
        authentication_timeout: options.authentication_timeout.min(Duration::from_secs(20)),
        ..options
    };
    let server =
        Server::new(options, Arc::new(Stub::default()), Arc::new(Backends::default()), None, None).expect("a server");
    let bound = server.bind().expect("a free port");
    let address = bound.addresses[0];
    server.serve(bound);
    (server, address)
}
