//! `clearway serve`: runs the server and, if asked for, its console.
//!
//! The console is a client of the server: it connects to the server's own address on this machine, and the server's rules decide which
//! visitors get in.

use clearway_base::sync::spawn_thread;
use clearway_console::{Entry, Listener, Options, watch};
use clearway_server::config::Config;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::runtime::Runtime;

/// A console that waits for its server.
struct Console {
    runtime: Runtime,
    listener: Listener,
    options: Options,
    role: String,
}

/// Serves until the server is told to stop.
///
/// # Errors
/// The error, as a text for the user.
pub fn run(config: &Config) -> Result<(), String> {
    let mut console = console(config)?;
    // The reader of standard output may be gone: that is no reason to stop.
    let mut say = |line: &str| _ = writeln!(std::io::stdout(), "{line}");
    let mut ready = |addresses: &[SocketAddr]| {
        if let Some(console) = console.take() {
            start(console, addresses);
        }
    };
    clearway_server::run::run(config, &mut say, &mut ready).map_err(|error| error.to_string())
}

/// Binds the console's socket and reads its files, so that a mistake in them is told before the server starts.
fn console(config: &Config) -> Result<Option<Console>, String> {
    let Some(address) = config.http.address else { return Ok(None) };
    if !config.listen.addresses.iter().any(|at| own(*at).is_some()) {
        return Err(
            "http needs an address of this machine in listen, such as 127.0.0.1:5433: the console connects there"
                .into(),
        );
    }
    let password = config.http.password_file.as_deref().map(crate::watch::secret).transpose()?;
    let queries = config.http.queries.clone().map(crate::watch::named);
    let runtime = crate::watch::runtime()?;
    let listener = runtime.block_on(Listener::bind(address)).map_err(|error| error.to_string())?;
    let interval = config.http.interval;
    let options = Options {
        server: String::new(),
        password,
        queries,
        interval,
        may_cancel: true,
        processors: None,
        entry: Entry::Login,
    };
    options.check().map_err(|error| error.to_string())?;
    Ok(Some(Console { runtime, listener, options, role: config.http.role.clone() }))
}

/// Where a program on this machine reaches a socket; none: only from elsewhere.
fn own(address: SocketAddr) -> Option<SocketAddr> {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip if ip.to_canonical().is_loopback() => ip,
        _ => return None,
    };
    Some(SocketAddr::new(ip, address.port()))
}

fn start(console: Console, addresses: &[SocketAddr]) {
    let Console { runtime, listener, mut options, role } = console;
    let Some(server) = addresses.iter().find_map(|address| own(*address)) else { return };
    let quoted = role.replace('\\', "\\\\").replace('\'', "\\'");
    options.server = format!("host={} port={} user='{quoted}' dbname=postgres", server.ip(), server.port());
    let started = spawn_thread("console", move || {
        let mut say = |line: &str| _ = writeln!(std::io::stdout(), "{line}");
        if let Err(error) = runtime.block_on(watch(options, listener, &mut say)) {
            _ = writeln!(std::io::stderr(), "clearway: the console: {error}");
        }
    });
    if let Err(error) = started {
        _ = writeln!(std::io::stderr(), "clearway: the console: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_console_reaches_the_server_on_this_machine() {
        let own = |text: &str| own(text.parse().expect("an address")).map(|at| at.to_string());
        assert_eq!(own("127.0.0.1:5433").as_deref(), Some("127.0.0.1:5433"));
        assert_eq!(own("0.0.0.0:1").as_deref(), Some("127.0.0.1:1"));
        assert_eq!(own("[::]:1").as_deref(), Some("[::1]:1"));
        assert_eq!(own("10.0.0.1:1"), None);
    }
}
