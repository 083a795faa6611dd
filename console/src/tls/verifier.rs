//! Checks the server's certificate.

use super::Mode;
use std::sync::Arc;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

/// The authorities in PEM form.
pub(super) fn roots(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(pem) {
        let authority = authority.map_err(|error| error.to_string())?;
        roots.add(authority).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() { Err("the file holds none".to_owned()) } else { Ok(roots) }
}

/// A client that judges the server's certificate as the mode asks.
pub(super) fn config(mode: Mode, roots: Option<RootCertStore>) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let judge = match roots {
        Some(roots) => {
            let judge = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
            Some(judge.map_err(|error| error.to_string())?)
        }
        None => None,
    };
    let verifier = Arc::new(Verifier { judge, names_host: mode == Mode::VerifyFull, provider: Arc::clone(&provider) });
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    Ok(config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// The handshake's signatures are checked in every mode: the server has the key of the certificate that it shows.
#[derive(Debug)]
struct Verifier {
    /// Says whether an authority has signed the certificate; none: the certificate is not looked at.
    judge: Option<Arc<WebPkiServerVerifier>>,
    /// Whether the certificate has to name the host.
    names_host: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(judge) = &self.judge else { return Ok(ServerCertVerified::assertion()) };
        match judge.verify_server_cert(own, chain, name, ocsp, now) {
            // The name is what rustls looks at last: the rest is good.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.names_host => Ok(ServerCertVerified::assertion()),
            judged => judged,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, own, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, own, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
