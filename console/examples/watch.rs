//! The console without the command: `cargo run --example watch -- URL ADDRESS:PORT`.
use clearway_console::{Options, watch};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let server = arguments.next().ok_or("the server's URL is missing")?;
    let listen = arguments.next().ok_or("the address is missing")?.parse()?;
    let options = Options {
        server,
        password: None,
        listen,
        queries: None,
        interval: std::time::Duration::from_secs(10),
        may_cancel: true,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(watch(options, &mut |line| println!("{line}")))?)
}
