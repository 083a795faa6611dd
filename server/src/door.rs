//! The door: everything that decides which clients get a session: the access rules, TLS, limits. A reload reads it again; a connection
//! keeps the door with which it began.
//!
//! # Invariants
//! - DOOR-1: if the access file or a certificate can't be read or has a mistake, the rules, or TLS, stay as they were before the reload.
//!   Each of the two parts is reloaded by itself.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clearway_base::vfs::{FileKind, IoBuf, OpenHow, Vfs, VfsError};

use crate::access::{self, Rules};
use crate::config::{Config, ConfigError};
use crate::options::ListenOptions;
use crate::tls::{self, Tls, TlsError};

/// A certificate or a key is not larger.
const PEM_BYTES_MAX: usize = 4 << 20;

/// Why a part of the door is not as the files say.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// A file can't be read.
    #[error("could not read {file}: {error}")]
    File {
        /// The path.
        file: String,
        /// The reason.
        error: String,
    },
    /// Lines of the access file that are no rules.
    #[error("{file}: {}", list(.lines))]
    Access {
        /// The path.
        file: String,
        /// Their numbers and what is wrong with them.
        lines: Vec<(u32, String)>,
    },
    /// TLS.
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    /// Half of the settings of TLS.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

fn list(lines: &[(u32, String)]) -> String {
    lines.iter().map(|(line, text)| format!("line {line}: {text}")).collect::<Vec<_>>().join("; ")
}

/// What decides who gets in.
#[derive(Clone)]
pub struct Door {
    /// The rules.
    pub rules: Arc<Rules>,
    /// How TLS is begun, if it is configured.
    pub tls: Option<Tls>,
    /// How long a connection may take to become a session.
    pub authentication_timeout: Duration,
    /// Clients beyond this machine may do without TLS.
    pub allow_plaintext_beyond_loopback: bool,
    /// Connections at once from one address beyond this machine.
    pub connections_per_address: usize,
}

impl Door {
    /// A door by its options alone: without files.
    pub fn of(options: &ListenOptions, tls: Option<Tls>) -> Door {
        Door {
            rules: Arc::new(Rules::without_a_file(options.proves_passwords_everywhere())),
            tls,
            authentication_timeout: options.authentication_timeout,
            allow_plaintext_beyond_loopback: options.allow_plaintext_beyond_loopback,
            connections_per_address: options.per_address(),
        }
    }

    /// The door that the settings ask for. What can't be read stays as `before` has it, and is told (DOOR-1).
    pub async fn read(config: &Config, vfs: &Arc<dyn Vfs>, before: Option<&Door>) -> (Door, Vec<DoorError>) {
        let mut door = Door::of(&config.listen, None);
        let mut errors = Vec::new();
        match rules(config, vfs).await {
            Ok(Some(rules)) => door.rules = Arc::new(rules),
            Ok(None) => {}
            Err(error) => {
                // No client gets in by rules that were never written.
                door.rules = before.map_or_else(Arc::default, |before| Arc::clone(&before.rules));
                errors.push(error);
            }
        }
        match encryption(config, vfs).await {
            Ok(tls) => door.tls = tls,
            Err(error) => {
                door.tls = before.and_then(|before| before.tls.clone());
                errors.push(error);
            }
        }
        (door, errors)
    }
}

async fn rules(config: &Config, vfs: &Arc<dyn Vfs>) -> Result<Option<Rules>, DoorError> {
    let Some(path) = &config.access_file else { return Ok(None) };
    let file = path.display().to_string();
    let lines = access::read(&text(vfs, path).await?);
    let bad = lines.iter().filter_map(|line| Some((line.number, line.rule.as_ref().err()?.clone())));
    let bad: Vec<(u32, String)> = bad.collect();
    if !bad.is_empty() {
        return Err(DoorError::Access { file, lines: bad }); // ACC-2
    }
    Ok(Some(Rules(lines.into_iter().filter_map(|line| line.rule.ok()).collect())))
}

/// The text of the access file.
///
/// # Errors
/// It can't be read, is too large, or is no text.
pub async fn text(vfs: &Arc<dyn Vfs>, path: &Path) -> Result<String, DoorError> {
    let bytes = bytes(vfs, path, access::FILE_BYTES_MAX).await?;
    String::from_utf8(bytes)
        .map_err(|_| DoorError::File { file: path.display().to_string(), error: "it is not UTF-8".to_owned() })
}

async fn bytes(vfs: &Arc<dyn Vfs>, path: &Path, max: usize) -> Result<Vec<u8>, DoorError> {
    let fail = |error: String| DoorError::File { file: path.display().to_string(), error };
    let read = read(vfs, path, max).await.map_err(|error| fail(error.to_string()))?;
    read.ok_or_else(|| fail(format!("it is larger than {max} bytes")))
}

/// A whole file; none: it is larger than `max`.
///
/// # Errors
/// It can't be read.
pub async fn read(vfs: &Arc<dyn Vfs>, path: &Path, max: usize) -> Result<Option<Vec<u8>>, VfsError> {
    let file = vfs.open(path, OpenHow::read_only(FileKind::Other)).await?;
    let Some(length) = usize::try_from(file.len().await?).ok().filter(|length| *length <= max) else { return Ok(None) };
    let bytes = file.read_exact_at(0, IoBuf::zeroed(length), length).await?;
    Ok(Some(bytes.to_vec()))
}

async fn encryption(config: &Config, vfs: &Arc<dyn Vfs>) -> Result<Option<Tls>, DoorError> {
    let Some((certificate, key)) = config.tls()? else { return Ok(None) };
    let fail = |error: VfsError| DoorError::File { file: key.display().to_string(), error: error.to_string() };
    let mode = vfs.mode(key).await.map_err(fail)?;
    if mode & 0o077 != 0 {
        return Err(TlsError::Readable { key: key.display().to_string(), mode }.into());
    }
    let certificate = bytes(vfs, certificate, PEM_BYTES_MAX).await?;
    let key = bytes(vfs, key, PEM_BYTES_MAX).await?;
    let authorities = match &config.tls_client_ca {
        Some(path) => Some(bytes(vfs, path, PEM_BYTES_MAX).await?),
        None => None,
    };
    Ok(Some(tls::tls(&certificate, &key, authorities.as_deref())?))
}
