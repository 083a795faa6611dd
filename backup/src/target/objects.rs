//! A target in an object store: `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix`. The only module that uses
//! the crate `object_store`.
//!
//! Credentials, regions and endpoints come from the environment, by the names that each provider's own tools use
//! (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, `GOOGLE_SERVICE_ACCOUNT`, `AZURE_STORAGE_ACCOUNT_KEY`, ...).
//!
//! # Structure
//! Requests run on one thread of their own, which has the runtime that the HTTP client needs; the caller waits for the answer on an
//! executor of any kind.
//!
//! # Crash safety
//! The store makes an object visible when all of it has arrived, or not at all, and it is durable then (BKP-1). A request whose answer was
//! lost is repeated with the same bytes, which changes nothing; a `put_new` that finds its own bytes there has succeeded.

use super::{Listed, Target};
use crate::error::{BackupError, Result};
use clearway_base::sync::{sleep, spawn_thread};
use clearway_base::waits::{Object, WaitEvent, in_wait, now_ns};
use clearway_storage::seams::BoxFuture;
use futures_util::TryStreamExt as _;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientConfigKey, Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload,
    RetryConfig,
};
use std::future::{Future, pending};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Handle;

/// What the addresses of object stores begin with.
pub const SCHEMES: [&str; 3] = ["s3", "gs", "az"];
/// How long one request may take, its bytes included.
const REQUEST_TIMEOUT: &str = "120 seconds";
/// How long a connection may take.
const CONNECT_TIMEOUT: &str = "10 seconds";
/// How often a request is sent whose answer breaks off in its body. The crate `object_store` repeats what it could not send and what was
/// answered by an error, but not these.
const ATTEMPTS: u32 = 6;
/// The pause before the second attempt; each later one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// How often a request is repeated before it counts as failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// For three minutes: no other request tries again.
    Long,
    /// Once: the caller tries again, and says so.
    Short,
}

impl Patience {
    /// How long a request is repeated.
    fn limit(self) -> Duration {
        match self {
            Patience::Long => Duration::from_secs(180),
            Patience::Short => Duration::from_secs(10),
        }
    }

    fn retry(self) -> RetryConfig {
        let backoff = BackoffConfig { max_backoff: Duration::from_secs(10), ..BackoffConfig::default() };
        let max_retries = match self {
            Patience::Long => 1000,
            Patience::Short => 1,
        };
        RetryConfig { backoff, max_retries, retry_timeout: self.limit() }
    }
}

/// An object store.
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    place: String,
    requests: Handle,
    patience: Patience,
}

/// The runtime of the requests.
///
/// # Errors
/// The system gives no thread.
fn requests() -> Result<Handle> {
    static RUNTIME: OnceLock<std::result::Result<Handle, String>> = OnceLock::new();
    let started = RUNTIME.get_or_init(|| {
        // Another part of the process may have installed the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let handle = runtime.handle().clone();
        let run = move || runtime.block_on(in_wait(WaitEvent::WorkerMain, Object::NONE, pending::<()>()));
        spawn_thread("object requests", run).map_err(|error| error.to_string())?;
        Ok(handle)
    });
    started.clone().map_err(BackupError::Refused)
}

/// The endpoint is one without TLS, and that is not allowed.
fn plain_http(variable: impl Fn(&str) -> Option<String>) -> bool {
    let endpoint = variable("AWS_ENDPOINT_URL").or_else(|| variable("AWS_ENDPOINT"));
    let allowed = variable("AWS_ALLOW_HTTP")
        .is_some_and(|value| matches!(&*value.to_ascii_lowercase(), "1" | "true" | "on" | "yes" | "y"));
    endpoint.is_some_and(|url| url.starts_with("http://")) && !allowed
}

impl Objects {
    /// The store at an address.
    ///
    /// # Errors
    /// What the address or the environment lacks.
    pub fn open(url: &str, patience: Patience) -> Result<Objects> {
        let refused = |error: &dyn std::fmt::Display| BackupError::Refused(format!("{url}: {error}"));
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let (bucket, prefix) = rest.trim_end_matches('/').split_once('/').unwrap_or((rest.trim_end_matches('/'), ""));
        if bucket.is_empty() {
            return Err(refused(&"expected a bucket, as in s3://bucket/prefix"));
        }
        if scheme == "s3" && plain_http(|name| std::env::var(name).ok()) {
            return Err(refused(&"AWS_ENDPOINT_URL is without TLS, which only AWS_ALLOW_HTTP=true allows"));
        }
        let requests = requests()?;
        let _inside = requests.enter();
        let store = build(scheme, bucket, patience.retry()).map_err(|error| refused(&chain(&error)))?;
        let prefix = Path::parse(prefix).map_err(|error| refused(&error))?;
        Ok(Objects { store, prefix, place: url.trim_end_matches('/').to_owned(), requests, patience })
    }

    fn path(&self, name: &str) -> Path {
        self.prefix.clone().parts().chain(Path::from(name).parts()).collect()
    }

    fn failed(&self, name: &str, error: &Error) -> BackupError {
        let place = format!("{}/{name}", self.place);
        match error {
            Error::NotFound { .. } => BackupError::NotFound(place),
            Error::AlreadyExists { .. } | Error::Precondition { .. } => BackupError::Exists(place),
            error => BackupError::Target { place, error: chain(error) },
        }
    }

    /// Runs a request on the requests' thread, again where its answer broke off. A request whose asker has gone is given up.
    async fn ask<T, F>(&self, name: &str, request: impl Fn(Arc<dyn ObjectStore>) -> F + Send + 'static) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = std::result::Result<T, Error>> + Send + 'static,
    {
        let (store, limit) = (Arc::clone(&self.store), self.patience.limit());
        let mut task = Given(self.requests.spawn(repeated(limit, move || request(Arc::clone(&store)))));
        match in_wait(WaitEvent::ObjectStore, Object::NONE, &mut task.0).await {
            Ok(answered) => answered.map_err(|error| self.failed(name, &error)),
            Err(error) => Err(BackupError::Target { place: self.place.clone(), error: error.to_string() }),
        }
    }

    async fn put_with(&self, name: &str, bytes: &[u8], mode: PutMode) -> Result<()> {
        let (path, payload) = (self.path(name), PutPayload::from(bytes.to_vec()));
        let options = PutOptions { mode, ..PutOptions::default() };
        self.ask(name, move |store| {
            let (path, payload, options) = (path.clone(), payload.clone(), options.clone());
            async move { store.put_opts(&path, payload, options).await.map(drop) }
        })
        .await
    }
}

/// Runs a request until it is answered, at most [`ATTEMPTS`] times. Beyond `limit` it is not begun again: then the crate's own attempts
/// have failed that long.
async fn repeated<T, F>(limit: Duration, request: impl Fn() -> F) -> std::result::Result<T, Error>
where
    F: Future<Output = std::result::Result<T, Error>>,
{
    let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
    let (began, mut pause) = (now_ns(), FIRST_PAUSE);
    for _ in 1..ATTEMPTS {
        match request().await {
            Err(Error::Generic { .. }) if now_ns().saturating_sub(began) < limit_ns => {}
            answered => return answered,
        }
        sleep(pause).await;
        pause *= 2;
    }
    request().await
}

/// A task that ends when no task waits for it.
struct Given<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for Given<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn build(scheme: &str, bucket: &str, retry: RetryConfig) -> std::result::Result<Arc<dyn ObjectStore>, Error> {
    let times = [(ClientConfigKey::Timeout, REQUEST_TIMEOUT), (ClientConfigKey::ConnectTimeout, CONNECT_TIMEOUT)];
    Ok(match scheme {
        "s3" => {
            let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry);
            for (key, value) in times {
                builder = builder.with_config(AmazonS3ConfigKey::Client(key), value);
            }
            Arc::new(builder.build()?)
        }
        "gs" => {
            let mut builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket).with_retry(retry);
            for (key, value) in times {
                builder = builder.with_config(GoogleConfigKey::Client(key), value);
            }
            Arc::new(builder.build()?)
        }
        _ => {
            let mut builder = MicrosoftAzureBuilder::from_env().with_container_name(bucket).with_retry(retry);
            for (key, value) in times {
                builder = builder.with_config(AzureConfigKey::Client(key), value);
            }
            Arc::new(builder.build()?)
        }
    })
}

/// An error and what caused it, each once.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        source = cause.source();
    }
    text
}

impl Target for Objects {
    fn place(&self) -> String {
        self.place.clone()
    }

    fn put<'a>(&'a self, name: &'a str, bytes: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.put_with(name, bytes, PutMode::Overwrite))
    }

    fn put_new<'a>(&'a self, name: &'a str, bytes: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match self.put_with(name, bytes, PutMode::Create).await {
                // An earlier attempt of this very call has succeeded.
                Err(BackupError::Exists(_)) if self.get(name).await? == bytes => Ok(()),
                put => put,
            }
        })
    }

    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<u8>>> {
        Box::pin(async move {
            let path = self.path(name);
            let get = move |store: Arc<dyn ObjectStore>| {
                let path = path.clone();
                async move { store.get(&path).await?.bytes().await.map(Vec::from) }
            };
            self.ask(name, get).await
        })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<Listed>>> {
        Box::pin(async move {
            let path = self.path(prefix.trim_end_matches('/'));
            let of = if path.as_ref().is_empty() { None } else { Some(path) };
            let list = move |store: Arc<dyn ObjectStore>| {
                let of = of.clone();
                async move { store.list(of.as_ref()).try_collect::<Vec<_>>().await }
            };
            let all = self.ask(prefix, list).await?;
            let depth = self.prefix.parts().count();
            let name = |path: &Path| path.parts().skip(depth).collect::<Path>().as_ref().to_owned();
            let mut found: Vec<Listed> =
                all.iter().map(|object| Listed { name: name(&object.location), bytes: object.size }).collect();
            found.sort();
            Ok(found)
        })
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let path = self.path(name);
            let remove = move |store: Arc<dyn ObjectStore>| {
                let path = path.clone();
                async move { store.delete(&path).await }
            };
            match self.ask(name, remove).await {
                // An earlier attempt has removed it.
                Err(BackupError::NotFound(_)) => Ok(()),
                removed => removed,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// What a request that breaks off `cuts` times gives, and how often it was sent.
    fn sent(cuts: u32, limit: Duration, error: fn() -> Error) -> (bool, u32) {
        let count = Cell::new(0);
        let request = || {
            count.set(count.get() + 1);
            std::future::ready(if count.get() > cuts { Ok(()) } else { Err(error()) })
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let answered = runtime.block_on(repeated(limit, request)).is_ok();
        (answered, count.get())
    }

    #[test]
    fn a_request_whose_answer_breaks_off_is_sent_again() {
        let cut = || Error::Generic { store: "test", source: "end of file before message length reached".into() };
        let missing = || Error::NotFound { path: String::new(), source: "no such object".into() };
        let long = Patience::Long.limit();
        assert_eq!(sent(0, long, cut), (true, 1));
        assert_eq!(sent(2, long, cut), (true, 3));
        assert_eq!(sent(u32::MAX, long, cut), (false, ATTEMPTS), "not for ever");
        assert_eq!(sent(u32::MAX, Duration::ZERO, cut), (false, 1), "the crate has tried long enough");
        assert_eq!(sent(u32::MAX, long, missing), (false, 1), "an answer is an answer");
    }

    #[test]
    fn an_endpoint_without_tls_is_refused_unless_that_is_allowed() {
        let refused = |endpoint: &'static str, allowed: Option<&'static str>| {
            plain_http(|name| match name {
                "AWS_ENDPOINT_URL" => Some(endpoint.to_owned()),
                "AWS_ALLOW_HTTP" => allowed.map(str::to_owned),
                _ => None,
            })
        };
        assert!(refused("http://127.0.0.1:7070", None) && refused("http://127.0.0.1:7070", Some("false")));
        assert!(!refused("http://127.0.0.1:7070", Some("True")) && !refused("https://s3.example", None));
        assert!(!plain_http(|_| None));
    }
}
