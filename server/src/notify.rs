//! Tells the service manager when the server serves and when it stops: the protocol of sd_notify, a datagram to the socket that the
//! environment names. Without that name nothing is sent.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The variable of the environment that names the socket.
const VARIABLE: &str = "NOTIFY_SOCKET";

/// Statements are answered.
pub const READY: &str = "READY=1";
/// Sessions are being ended.
pub const STOPPING: &str = "STOPPING=1\nSTATUS=stopping: sessions end, then a checkpoint is taken";

/// Sends a state to the service manager, if there is one.
///
/// # Errors
/// The socket that is named takes nothing.
pub fn tell(state: &str) -> std::io::Result<()> {
    match std::env::var_os(VARIABLE) {
        Some(name) => send(name.as_bytes(), state),
        None => Ok(()),
    }
}

fn send(name: &[u8], state: &str) -> std::io::Result<()> {
    let address = match name.strip_prefix(b"@") {
        // The abstract namespace, which has no files.
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name))?,
    };
    let socket = UnixDatagram::unbound()?;
    // A service manager that is slow does not hold up the server.
    socket.set_nonblocking(true)?;
    socket.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test that makes its own files")]
    fn a_state_reaches_a_socket_with_a_path_and_one_without() {
        let path = std::env::temp_dir().join(format!("clearway-notify-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let named = UnixDatagram::bind(&path).expect("binds");
        let abstract_name = format!("clearway-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).expect("an address");
        let unnamed = UnixDatagram::bind_addr(&address).expect("binds");
        for (socket, name) in [(named, path.display().to_string()), (unnamed, format!("@{abstract_name}"))] {
            send(name.as_bytes(), READY).expect("is sent");
            let mut bytes = [0; 64];
            let length = socket.recv(&mut bytes).expect("arrives");
            assert_eq!(&bytes[..length], b"READY=1");
        }
        let _ = std::fs::remove_file(&path);
        assert!(send(path.as_os_str().as_bytes(), READY).is_err(), "nobody is there");
    }
}
