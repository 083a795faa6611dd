//! `clearway time -- COMMAND`: reports how much of a command's time is spent in the database, how much of that is I/O, and how much a
//! file system in memory would save.
//!
//! The server divides the time of its sessions (`clearway_time`); this command reads that view before and after. Work of other clients in
//! the meantime is counted too.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use clearway_base::waits::now_ns;
use tokio_postgres::{Client, Config, NoTls};

const DEFAULT_URL: &str = "postgresql://postgres@127.0.0.1:5433/clearway";

/// All sessions, without this one.
const ASKED: &str = "SELECT sum(sign * elapsed_ms), sum(sign * cpu_ms), sum(sign * run_queue_ms), sum(sign * wait_ms), sum(sign * io_ms), \
     sum(sign * durable_ms) FROM (SELECT *, CASE scope WHEN 'server' THEN 1 ELSE -1 END AS sign FROM clearway_time \
     WHERE scope = 'server' OR pid = pg_backend_pid()) t";

/// What is to be timed.
#[derive(Debug, PartialEq, Eq)]
pub struct Timed {
    /// The server; none: where one listens if nothing else is said.
    pub target: Option<String>,
    /// The command and its arguments.
    pub command: Vec<OsString>,
}

impl Timed {
    /// Reads `[--target URL] -- COMMAND`; none: help is asked for.
    ///
    /// # Errors
    /// What can't be understood.
    pub fn parse(mut parser: lexopt::Parser) -> Result<Option<Self>, lexopt::Error> {
        use lexopt::prelude::*;
        let mut target = None;
        loop {
            if let Some(rest) = parser.try_raw_args()
                && rest.peek().is_some_and(|next| next == "--")
            {
                let command: Vec<OsString> = rest.skip(1).collect();
                return if command.is_empty() {
                    Err("time needs a command behind --".into())
                } else {
                    Ok(Some(Self { target, command }))
                };
            }
            match parser.next()? {
                Some(Short('h') | Long("help")) => return Ok(None),
                Some(Long("target")) => target = Some(parser.value()?.string()?),
                Some(other) => return Err(other.unexpected()),
                None => return Err("time needs a command: clearway time [--target URL] -- COMMAND".into()),
            }
        }
    }
}

/// Milliseconds of all sessions.
#[derive(Clone, Copy, Debug, Default)]
struct TimeSpent {
    database: f64,
    cpu: f64,
    run_queue: f64,
    waits: f64,
    io: f64,
    durable: f64,
}

impl TimeSpent {
    fn since(&self, before: &TimeSpent) -> TimeSpent {
        let less = |now: f64, before: f64| (now - before).max(0.0);
        TimeSpent {
            database: less(self.database, before.database),
            cpu: less(self.cpu, before.cpu),
            run_queue: less(self.run_queue, before.run_queue),
            waits: less(self.waits, before.waits),
            io: less(self.io, before.io),
            durable: less(self.durable, before.durable),
        }
    }
}

/// Runs the command; its status is the result.
///
/// # Errors
/// No connection, or the command can't be started.
pub fn run(timed: &Timed) -> Result<ExitCode, String> {
    let url = timed.target.as_deref().unwrap_or(DEFAULT_URL);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let client = runtime.block_on(connect(url))?;
    let before = runtime.block_on(ask(&client))?;
    let began_ns = now_ns();
    let (program, arguments) = timed.command.split_first().ok_or("no command")?;
    let ended = Command::new(program).args(arguments).status();
    let ended = ended.map_err(|error| format!("{}: {error}", program.display()))?;
    let took_ms = (now_ns() - began_ns) as f64 / 1e6;
    let spent = runtime.block_on(ask(&client))?.since(&before);
    // The command's own output stays as it is.
    eprint!("{}", report_lines(took_ms, &spent));
    Ok(ExitCode::from(ended.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

async fn connect(url: &str) -> Result<Client, String> {
    let mut config = url.parse::<Config>().map_err(|error| format!("{url}: {error}"))?;
    if config.get_user().is_none() {
        config.user("postgres");
    }
    if let (None, Ok(password)) = (config.get_password(), std::env::var("PGPASSWORD")) {
        config.password(password);
    }
    config.application_name("clearway time");
    let connected = config.connect(NoTls).await;
    let (client, connection) = connected.map_err(|error| crate::sql::not_connected(&config, &error))?;
    tokio::spawn(connection);
    Ok(client)
}

async fn ask(client: &Client) -> Result<TimeSpent, String> {
    let asked = client.query_one(ASKED, &[]).await;
    let row = asked.map_err(|error| format!("the server does not divide its time: {}", crate::sql::chain(&error)))?;
    let at = |n: usize| row.try_get::<_, f64>(n).map_err(|error| error.to_string());
    Ok(TimeSpent { database: at(0)?, cpu: at(1)?, run_queue: at(2)?, waits: at(3)?, io: at(4)?, durable: at(5)? })
}

/// The three lines.
fn report_lines(took_ms: f64, spent: &TimeSpent) -> String {
    let io = (spent.io + spent.durable).min(spent.database);
    // Of sessions side by side only a part would be saved.
    let beside = (spent.database / took_ms.max(0.001)).max(1.0);
    let percent = |part: f64| 100.0 * part / took_ms.max(0.001);
    let seconds = |ms: f64| format!("{:.3} s", ms / 1e3);
    format!(
        "database: {} of {} ({:.0} %; {:.1} sessions at a time), of it processor {}, run queue {}, locks and other waits {}\n\
         I/O: {} of that, of it files {}, commits until they are durable {}\n\
         a memory file system would save at most {} ({:.0} %)\n",
        seconds(spent.database),
        seconds(took_ms),
        percent(spent.database / beside),
        spent.database / took_ms.max(0.001),
        seconds(spent.cpu),
        seconds(spent.run_queue),
        seconds((spent.waits - spent.io - spent.durable).max(0.0)),
        seconds(io),
        seconds(spent.io),
        seconds(spent.durable),
        seconds(io / beside),
        percent(io / beside),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_lines() {
        let spent = TimeSpent { database: 500.0, cpu: 100.0, run_queue: 10.0, waits: 380.0, io: 40.0, durable: 300.0 };
        let text = report_lines(1_000.0, &spent);
        assert_eq!(
            text,
            "database: 0.500 s of 1.000 s (50 %; 0.5 sessions at a time), of it processor 0.100 s, run queue 0.010 s, locks and other \
             waits 0.040 s\nI/O: 0.340 s of that, of it files 0.040 s, commits until they are durable 0.300 s\n\
             a memory file system would save at most 0.340 s (34 %)\n"
        );
        let four = TimeSpent { database: 4_000.0, durable: 3_000.0, ..spent };
        assert!(report_lines(1_000.0, &four).contains("(100 %; 4.0 sessions at a time)"));
        assert!(report_lines(1_000.0, &four).ends_with("save at most 0.760 s (76 %)\n"));
    }

    #[test]
    fn the_command_stands_behind_two_dashes() {
        let parsed = |line: &str| {
            let arguments = std::iter::once("time").chain(line.split_whitespace());
            Timed::parse(lexopt::Parser::from_iter(arguments)).map_err(|error| error.to_string())
        };
        let timed = |target: Option<&str>, command: &[&str]| Timed {
            target: target.map(str::to_owned),
            command: command.iter().map(OsString::from).collect(),
        };
        assert_eq!(parsed("-- ls -l --target x"), Ok(Some(timed(None, &["ls", "-l", "--target", "x"]))));
        assert_eq!(parsed("--target u -- make"), Ok(Some(timed(Some("u"), &["make"]))));
        for bad in ["", "ls", "--", "--target", "--target u make"] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }
}
