//! A client's byte stream of any kind: TCP, Unix socket, TLS over either.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

/// A connection.
#[derive(Debug)]
pub enum Stream {
    /// TCP without encryption.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
    /// TLS over TCP.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// The server's own address on a TCP connection.
    pub fn local_address(&self) -> Option<std::net::SocketAddr> {
        match self {
            Stream::Tcp(stream) => stream.local_addr().ok(),
            Stream::Unix(_) => None,
            Stream::Tls(stream) => stream.get_ref().0.local_addr().ok(),
        }
    }

    /// The user of the operating system at the other end of a Unix socket.
    pub fn peer_user(&self) -> Option<u32> {
        match self {
            Stream::Unix(stream) => stream.peer_cred().ok().map(|peer| peer.uid()),
            Stream::Tcp(_) | Stream::Tls(_) => None,
        }
    }

    /// The client's certificate, which TLS has verified, in DER form.
    pub fn client_certificate(&self) -> Option<&[u8]> {
        match self {
            Stream::Tls(stream) => stream.get_ref().1.peer_certificates()?.first().map(|first| &**first),
            Stream::Tcp(_) | Stream::Unix(_) => None,
        }
    }

    /// Writes what the system takes without waiting; none where that can't be told beforehand.
    pub fn try_write(&self, bytes: &[u8]) -> Option<io::Result<usize>> {
        match self {
            Stream::Tcp(stream) => Some(stream.try_write(bytes)),
            Stream::Unix(stream) => Some(stream.try_write(bytes)),
            Stream::Tls(_) => None,
        }
    }
}

macro_rules! each {
    ($self:expr, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Stream::Tcp($stream) => {
                let $stream = Pin::new($stream);
                $call
            }
            Stream::Unix($stream) => {
                let $stream = Pin::new($stream);
                $call
            }
            Stream::Tls($stream) => {
                let $stream = Pin::new($stream.as_mut());
                $call
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, stream => stream.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_shutdown(cx))
    }
}
