//! TLS from a certificate chain and a key in PEM form; accepts client certificates if an authority for them is configured.

use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use clearway_base::certificate;

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file holds no certificate, or a damaged one.
    #[error("no certificate could be read: {0}")]
    Certificate(String),
    /// The file of authorities holds none, or a damaged one.
    #[error("no certificate of an authority for clients could be read: {0}")]
    Authority(String),
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

/// How TLS is begun.
#[derive(Clone)]
pub struct Tls {
    /// Does the handshake.
    pub acceptor: TlsAcceptor,
    /// What channel binding ties a login to: a digest of the server's certificate; none where its signature has none.
    pub end_point: Option<Arc<[u8]>>,
    /// Whether clients are asked for a certificate.
    pub asks_clients: bool,
}

fn chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain =
        CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    if chain.is_empty() { Err("the file holds none".to_owned()) } else { Ok(chain) }
}

/// TLS 1.2 and 1.3. With authorities a client is asked for a certificate; it may do without, and one that none of them has signed ends the
/// handshake.
///
/// # Errors
/// See [`TlsError`].
pub fn tls(certificate_pem: &[u8], key_pem: &[u8], client_ca_pem: Option<&[u8]>) -> Result<Tls, TlsError> {
    let certificates = chain(certificate_pem).map_err(TlsError::Certificate)?;
    let end_point = certificates.first().and_then(|own| certificate::end_point(own)).map(Arc::from);
    let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(|error| TlsError::Key(error.to_string()))?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let config = match client_ca_pem {
        Some(pem) => {
            let mut roots = RootCertStore::empty();
            for authority in chain(pem).map_err(TlsError::Authority)? {
                roots.add(authority).map_err(|error| TlsError::Authority(error.to_string()))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = verifier.allow_unauthenticated().build();
            config.with_client_cert_verifier(verifier.map_err(|error| TlsError::Authority(error.to_string()))?)
        }
        None => config.with_no_client_auth(),
    };
    let config = config.with_single_cert(certificates, key)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Ok(Tls { acceptor, end_point, asks_clients: client_ca_pem.is_some() })
}
