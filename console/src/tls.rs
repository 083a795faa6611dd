//! TLS to the watched server: what its URL asks for, and the handshake.
//!
//! The options are libpq's (`sslmode`, `sslrootcert`) for PostgreSQL and Clearway, and MySQL's (`ssl-mode`, `ssl-ca`) for MariaDB and
//! MySQL.
//!
//! # Structure
//! [`Tls`] holds the options and does the handshake for either protocol's client; `verifier` checks the server's certificate; `url` takes
//! the options out of a server's address.
//!
//! # Invariants
//! - CON-4: a connection is never protected less than its address asks. An unknown mode is refused, a file of authorities that can't be
//!   read is refused, and a server without TLS is refused where TLS is required.
//!
//! # Not here
//! Client certificates, revocation lists, names in a certificate's subject (only its alternative names count).

mod url;
mod verifier;

use crate::options::WatchError;
use clearway_base::certificate;
use clearway_base::sync::block_on;
use clearway_base::vfs::{FileKind, IoBuf, OpenHow, RealVfs, Vfs as _};
use clearway_mysql::{MySqlError, Stream as MySqlStream, Upgrade};
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

pub(crate) use url::{of_mysql, of_postgres};

/// The largest file of authorities that is read, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// How much protection an address asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    /// None.
    Disable,
    /// TLS if the server offers it; its certificate is not looked at.
    Prefer,
    /// TLS or nothing; the certificate is not looked at.
    Require,
    /// And an authority of the file has signed the certificate.
    VerifyCa,
    /// And the certificate names the host.
    VerifyFull,
}

/// TLS as an address asks for it.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    pub(crate) mode: Mode,
    config: Arc<ClientConfig>,
}

impl Tls {
    /// With a file of authorities in PEM form.
    fn of(mode: Mode, authorities: Option<&str>) -> Result<Tls, WatchError> {
        let told = |path: &str, why: String| WatchError::Tls(format!("the authorities in {path}: {why}"));
        let roots = match authorities {
            // As libpq has it: with a file of authorities the certificate is looked at in every case.
            Some(path) => Some(
                verifier::roots(&read(Path::new(path)).map_err(|why| told(path, why))?)
                    .map_err(|why| told(path, why))?,
            ),
            None if mode >= Mode::VerifyCa => {
                return Err(WatchError::Tls(
                    "to verify the server's certificate the address has to name a file of authorities: sslrootcert=FILE, for MySQL ssl-ca=FILE"
                        .to_owned(),
                ));
            }
            None => None,
        };
        let mode = if roots.is_some() && mode == Mode::Require { Mode::VerifyCa } else { mode };
        let config = verifier::config(mode, roots).map_err(WatchError::Tls)?;
        Ok(Tls { mode, config: Arc::new(config) })
    }

    /// What the client of PostgreSQL's protocol is told; the rest is this module's.
    pub(crate) fn ssl_mode(&self) -> SslMode {
        match self.mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        }
    }

    /// For MySQL's client; none: no TLS.
    pub(crate) fn upgrade(&self) -> Option<&dyn Upgrade> {
        (self.mode != Mode::Disable).then_some(self)
    }

    fn connector(&self, host: &str) -> Connector {
        Connector { config: Arc::clone(&self.config), name: ServerName::try_from(host.to_owned()).ok() }
    }
}

/// The content of a file.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let vfs = RealVfs::inline();
    let bytes = block_on(async {
        let file = vfs.open(path, OpenHow::read_only(FileKind::Other)).await?;
        let len = file.len().await?.min(FILE_BYTES_MAX + 1);
        file.read_at(0, IoBuf::zeroed(0), len as usize).await
    });
    let bytes = bytes.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("larger than {FILE_BYTES_MAX} bytes"));
    }
    Ok(bytes.to_vec())
}

type Handshake<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A handshake to come.
pub(crate) struct Connector {
    config: Arc<ClientConfig>,
    /// None: the host is no name and no address.
    name: Option<ServerName<'static>>,
}

impl Connector {
    async fn shake<S: AsyncRead + AsyncWrite + Unpin>(self, stream: S) -> io::Result<Protected<S>> {
        let name = self.name.ok_or_else(|| io::Error::other("the host is neither a name nor an address"))?;
        let stream = TlsConnector::from(self.config).connect(name, stream).await?;
        Ok(Protected(stream))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = Protected<S>;
    type TlsConnect = Connector;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Connector> {
        Ok(self.connector(host))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Connector {
    type Stream = Protected<S>;
    type Error = io::Error;
    type Future = Handshake<io::Result<Protected<S>>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(self.shake(stream))
    }
}

impl Upgrade for Tls {
    fn is_required(&self) -> bool {
        self.mode >= Mode::Require
    }

    fn upgrade(&self, stream: Box<dyn MySqlStream>, host: &str) -> Handshake<Result<Box<dyn MySqlStream>, MySqlError>> {
        let connector = self.connector(host);
        Box::pin(async move {
            let protected = connector
                .shake(stream)
                .await
                .map_err(|error| MySqlError { code: None, text: format!("error performing TLS handshake: {error}") })?;
            Ok(Box::new(protected) as Box<dyn MySqlStream>)
        })
    }
}

/// A stream under TLS.
pub(crate) struct Protected<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Protected<S> {
    fn channel_binding(&self) -> ChannelBinding {
        let chain = self.0.get_ref().1.peer_certificates().unwrap_or_default();
        let digest = chain.first().and_then(|own| certificate::end_point(own));
        digest.map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Protected<S> {
    fn poll_read(mut self: Pin<&mut Self>, task: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(task, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Protected<S> {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(task, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(task)
    }
}
