//! TLS from a certificate chain and a key in PEM form.

use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file holds no certificate, or a damaged one.
    #[error("no certificate could be read: {0}")]
    Certificate(String),
    /// The file holds no key, or a damaged one.
    #[error("no private key could be read: {0}")]
    Key(String),
    /// Others than its owner may read the key.
    #[error(
        "the key {key} has mode {mode:04o}: others than its owner may read it (`chmod 600 {key}` takes that from them)"
    )]
    Readable {
        /// The file.
        key: String,
        /// Its permission bits.
        mode: u32,
    },
    /// They don't fit, or can't be used.
    #[error("{0}")]
    Unusable(#[from] tokio_rustls::rustls::Error),
}

/// An acceptor of TLS 1.2 and 1.3 without client certificates.
///
/// # Errors
/// See [`TlsError`].
pub fn acceptor(certificate_pem: &[u8], key_pem: &[u8]) -> Result<TlsAcceptor, TlsError> {
    let chain = CertificateDer::pem_slice_iter(certificate_pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TlsError::Certificate(error.to_string()))?;
    if chain.is_empty() {
        return Err(TlsError::Certificate("the file holds none".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(|error| TlsError::Key(error.to_string()))?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
