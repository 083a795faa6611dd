//! The visitors of the console, and the rights with which each is answered.
//!
//! # Life of a visitor
//! The visitor's role and password are tried on the watched server, by the server's own rules of login. If the server accepts them, the
//! page gets a random session id, and each request with that id is answered with the role's rights. `/metrics` takes role and password
//! with each request (HTTP's Basic authentication); an accepted pair is cached for a minute.
//!
//! # Invariants
//! - VIS-1: a visitor is answered only after a login that the server accepts. There are two exceptions: the server itself asks clients on
//!   this machine for no password of the console's role, or the console was started with a login of its own (`clearway watch`).
//! - VIS-2: the sampled history holds the statements of all roles, so only visitors that may read them see it: members of
//!   `pg_read_all_stats` (and so of `pg_monitor`), and superusers.
//! - VIS-3: at most `VISITORS_MAX` sessions are kept, each for `SESSION_S` seconds without a request. The server is asked again after
//!   `VERIFIED_S` seconds, so a role that lost its rights loses the page as well.

use crate::link::{Link, LinkError, Login};
use crate::options::Entry;
use crate::source::Source;
use base64::Engine as _;
use clearway_base::sync::Mutex;
use clearway_base::waits::now_ns;
use std::collections::HashMap;
use std::sync::Arc;

/// Sessions that are remembered.
const VISITORS_MAX: usize = 256;
/// A session without a request ends after this.
const SESSION_S: u64 = 8 * 3600;
/// For so long the server's word about a login counts.
const VERIFIED_S: u64 = 60;
/// For so long the server's word counts that it asks no client for a password.
const OPEN_S: u64 = 10;
const NS: u64 = 1_000_000_000;

/// A visitor that the server has let in.
pub(crate) struct Visitor {
    login: Login,
    pub(crate) role: String,
}

struct Known {
    visitor: Arc<Visitor>,
    seen_ns: u64,
    verified_ns: u64,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Denied {
    /// A login is needed, or was refused.
    Login(String),
    /// The role may not see this.
    Rights(String),
    /// The server can't be asked.
    Away(String),
}

pub(crate) struct Visitors {
    entry: Entry,
    source: Arc<Source>,
    /// By session, or by the whole header of Basic authentication.
    known: Mutex<HashMap<String, Known>>,
    /// When the server was asked whether it wants a password, and its answer.
    open: Mutex<Option<(u64, bool)>>,
}

/// Random bytes as text.
pub(crate) fn random() -> Result<String, getrandom::Error> {
    let mut random = [0_u8; 24];
    getrandom::fill(&mut random)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn is_within(since_ns: u64, seconds: u64) -> bool {
    now_ns().saturating_sub(since_ns) < seconds * NS
}

impl Visitors {
    pub(crate) fn new(entry: Entry, source: &Arc<Source>) -> Visitors {
        let known = Mutex::new("console/visitors", HashMap::new());
        Visitors { entry, source: Arc::clone(source), known, open: Mutex::new("console/open", None) }
    }

    pub(crate) fn entry(&self) -> Entry {
        self.entry
    }

    /// The visitor of a request.
    pub(crate) async fn of(&self, session: Option<&str>, basic: Option<&str>) -> Result<Arc<Visitor>, Denied> {
        if self.entry == Entry::Everybody {
            return Ok(self.own(self.source.login()));
        }
        // A session has the form of no header.
        for key in [session, basic].into_iter().flatten() {
            if let Some(visitor) = self.remembered(key).await? {
                return Ok(visitor);
            }
        }
        if let Some((role, password)) = basic.and_then(credentials) {
            let visitor = self.enter(&role, &password).await?;
            self.remember(basic.unwrap_or_default().to_owned(), &visitor);
            return Ok(visitor);
        }
        if self.is_open().await {
            return Ok(self.own(self.source.bare()));
        }
        Err(Denied::Login("log in with a role of the server".to_owned()))
    }

    /// A session for a visitor that proves a role (VIS-1).
    pub(crate) async fn login(&self, role: &str, password: &str) -> Result<String, Denied> {
        let visitor = self.enter(role, password).await?;
        let session = random().map_err(|error| Denied::Away(format!("no random numbers: {error}")))?;
        self.remember(session.clone(), &visitor);
        Ok(session)
    }

    pub(crate) fn logout(&self, session: &str) {
        self.known.lock().remove(session);
    }

    /// A connection with the visitor's rights.
    pub(crate) async fn connect(&self, visitor: &Visitor) -> Result<Link, LinkError> {
        visitor.login.connect().await
    }

    fn own(&self, login: &Login) -> Arc<Visitor> {
        Arc::new(Visitor { login: login.clone(), role: login.role().to_owned() })
    }

    async fn remembered(&self, key: &str) -> Result<Option<Arc<Visitor>>, Denied> {
        let found = {
            let mut known = self.known.lock();
            match known.get_mut(key) {
                Some(entry) if is_within(entry.seen_ns, SESSION_S) => {
                    entry.seen_ns = now_ns();
                    Some((Arc::clone(&entry.visitor), is_within(entry.verified_ns, VERIFIED_S)))
                }
                _ => None,
            }
        };
        let Some((visitor, is_verified)) = found else { return Ok(None) };
        if !is_verified {
            let asked = self.verify(&visitor).await;
            let mut known = self.known.lock();
            match asked {
                Ok(()) => _ = known.get_mut(key).map(|entry| entry.verified_ns = now_ns()),
                Err(Denied::Away(why)) => return Err(Denied::Away(why)),
                Err(denied) => {
                    known.remove(key);
                    return Err(denied);
                }
            }
        }
        Ok(Some(visitor))
    }

    fn remember(&self, key: String, visitor: &Arc<Visitor>) {
        let mut known = self.known.lock();
        known.retain(|_, entry| is_within(entry.seen_ns, SESSION_S));
        // VIS-3
        while known.len() >= VISITORS_MAX {
            let Some(oldest) = known.iter().min_by_key(|(_, entry)| entry.seen_ns).map(|(key, _)| key.clone()) else {
                break;
            };
            known.remove(&oldest);
        }
        let now_ns = now_ns();
        known.insert(key, Known { visitor: Arc::clone(visitor), seen_ns: now_ns, verified_ns: now_ns });
    }

    async fn enter(&self, role: &str, password: &str) -> Result<Arc<Visitor>, Denied> {
        let login = self.source.bare().of_role(role, password);
        let visitor = Arc::new(Visitor { login, role: role.to_owned() });
        self.verify(&visitor).await?;
        Ok(visitor)
    }

    /// Whether the server lets the role in, and whether it may see what the console shows (VIS-2).
    async fn verify(&self, visitor: &Visitor) -> Result<(), Denied> {
        let mut link = self.connect(visitor).await.map_err(|error| match error.code.as_deref() {
            Some("28P01" | "28000") => Denied::Login(error.text),
            Some(_) => Denied::Rights(error.text),
            None if is_about_password(&error) => Denied::Login("this role needs a password".to_owned()),
            None => Denied::Away(error.text),
        })?;
        let may = link.field("select pg_has_role(current_user, 'pg_read_all_stats', 'usage')").await;
        match may.map_err(|error| Denied::Away(error.text))?.as_deref() {
            Some("t") => Ok(()),
            _ => Err(Denied::Rights(format!(
                "role \"{}\" may not see other roles' sessions; a superuser can change that: GRANT pg_monitor TO \"{}\"",
                visitor.role, visitor.role
            ))),
        }
    }

    /// Whether the server lets the console's role in without a password: then the page gives away nothing that psql does not.
    async fn is_open(&self) -> bool {
        if let Some((asked_ns, open)) = *self.open.lock()
            && is_within(asked_ns, OPEN_S)
        {
            return open;
        }
        let open = self.source.bare().connect().await.is_ok();
        *self.open.lock() = Some((now_ns(), open));
        open
    }
}

/// The client library has no password to send.
fn is_about_password(error: &LinkError) -> bool {
    error.text.contains("password")
}

/// Role and password of a header `Basic ...`.
fn credentials(header: &str) -> Option<(String, String)> {
    let encoded = header.strip_prefix("Basic ")?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded.trim()).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (role, password) = text.split_once(':')?;
    Some((role.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visitors() -> Visitors {
        let source = Arc::new(Source::of("host=127.0.0.1 port=1 user=ann", None).expect("well formed"));
        Visitors::new(Entry::Login, &source)
    }

    #[test]
    fn credentials_are_taken_from_the_header() {
        assert_eq!(credentials("Basic YW5uOmE6Yg=="), Some(("ann".to_owned(), "a:b".to_owned())));
        for bad in ["Basic", "Basic !", "Basic YW5u", "Bearer YW5uOmE="] {
            assert_eq!(credentials(bad), None, "{bad}");
        }
    }

    #[test]
    fn few_sessions_are_remembered() {
        // VIS-3
        let visitors = visitors();
        let visitor = visitors.own(visitors.source.bare());
        for n in 0..VISITORS_MAX + 10 {
            visitors.remember(n.to_string(), &visitor);
        }
        let known = visitors.known.lock();
        assert_eq!(known.len(), VISITORS_MAX);
        assert!(known.contains_key(&(VISITORS_MAX + 9).to_string()));
    }
}
