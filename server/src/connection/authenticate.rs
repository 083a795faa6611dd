//! Authenticates a client by the rule that matches its connection.
//!
//! # Invariants
//! - AUT-1: no client gets in without a rule. The rule is chosen once per connection, and a reload meanwhile does not change it.
//! - AUT-2: a client that fails is told no more than PostgreSQL tells; the log has the rule's line.

use clearway_base::vfs::system_text;
use clearway_sql::SqlError;

use super::channel::Channel;
use super::start::{Refusal, refuse};
use super::{Peer, channel};
use crate::access::{AccessRequest, ClientCertificate, Method, Rule, Transport};
use crate::auth::Exchange;
use crate::door::Door;
use crate::server::Server;
use crate::sessions::{Login, Sessions};
use crate::wire::backend::{self, Authentication};
use crate::wire::frontend::{self, Message};
use clearway_base::certificate;

/// Where the names of the system's users stand.
const USERS: &str = "/etc/passwd";

/// Proves the client by the rules of `door`; the connection and the role that it may use.
pub(super) async fn authenticate<D: Sessions>(
    server: &Server<D>,
    door: &Door,
    channel: Channel,
    peer: Peer,
    asked: (&str, &str),
) -> Result<(Channel, Login), Refusal> {
    let (user, database) = asked;
    let login = server.sessions.login(user);
    let encrypted = channel.is_encrypted();
    let way = match peer.address().map(|address| address.ip().to_canonical()) {
        None => Transport::Unix,
        Some(address) if encrypted => Transport::Tls(address),
        Some(address) => Transport::Plain(address),
    };
    let place = || {
        let encryption = if encrypted { "SSL encryption" } else { "no encryption" };
        format!("for host \"{}\", user \"{user}\", database \"{database}\", {encryption}", host(peer))
    };
    // Whatever the rules say: passwords and data don't cross the net in plain text without a word.
    if matches!(peer, Peer::Beyond(_)) && !encrypted && !door.allow_plaintext_beyond_loopback {
        return Err(refuse(channel, "28000", format!("no entry {}", place())));
    }
    let is_member = |role: &str| server.sessions.is_member(user, role);
    let Some(rule) = door.rules.decide(&AccessRequest { way, database, user }, &is_member) else {
        return Err(refuse(channel, "28000", format!("no entry {}", place()))); // AUT-1
    };
    if let Some(refused) = wants_certificate(rule, &channel, user) {
        return Err(denied(channel, rule, "28000", refused));
    }
    let channel = match rule.method {
        Method::Trust => channel,
        Method::Reject => {
            let text = format!("the access rules reject the connection {}", place());
            return Err(denied(channel, rule, "28000", text));
        }
        Method::Scram => {
            let end_point = door.tls.as_ref().filter(|_| encrypted).and_then(|tls| tls.end_point.clone());
            scram(server, channel, peer, (user, login.as_ref()), end_point.as_deref()).await?
        }
        Method::Cert => channel,
        Method::Peer if is_peer(&channel, user) => channel,
        Method::Peer => {
            let text = format!("peer authentication failed for user \"{user}\"");
            return Err(denied(channel, rule, "28000", text));
        }
    };
    match login {
        Some(login) if login.allowed => Ok((channel, login)),
        Some(_) => Err(refuse(channel, "28000", format!("role \"{user}\" is not permitted to log in"))),
        None => Err(refuse(channel, "28000", format!("role \"{user}\" does not exist"))),
    }
}

fn host(peer: Peer) -> String {
    peer.address().map_or_else(|| "[local]".to_owned(), |address| address.ip().to_string())
}

/// A refusal whose rule the log names and the client does not see (AUT-2).
fn denied(channel: Channel, rule: &Rule, code: &'static str, text: String) -> Refusal {
    let detail = match rule.line {
        0 => format!("The connection matched the default rule \"{}\".", rule.text()),
        line => format!("The connection matched line {line} of the access file: \"{}\".", rule.text()),
    };
    Refusal::Answered { told: Box::new((channel, SqlError::new(code, text))), for_the_log: Some(detail) }
}

/// Why the client's certificate is not what the rule asks for.
fn wants_certificate(rule: &Rule, channel: &Channel, user: &str) -> Option<String> {
    if rule.certificate == ClientCertificate::NotAsked {
        return None;
    }
    let Some(der) = channel.stream().client_certificate() else {
        return Some("connection requires a valid client certificate".to_owned());
    };
    let named = certificate::common_name(der).is_some_and(|name| name == user);
    if rule.certificate == ClientCertificate::Named && !named {
        return Some(match rule.method {
            Method::Cert => format!("certificate authentication failed for user \"{user}\""),
            _ => format!("the client certificate is not that of user \"{user}\""),
        });
    }
    None
}

/// Whether the user of the operating system at the other end has the role's name.
fn is_peer(channel: &Channel, user: &str) -> bool {
    let Some(uid) = channel.stream().peer_user() else { return false };
    system_text(USERS).and_then(|users| name_of(&users, uid)).is_some_and(|name| name == user)
}

/// The first name of a user by its number, as the C library finds it.
fn name_of(users: &str, uid: u32) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(uid) && !name.is_empty()).then(|| name.to_owned())
    })
}

async fn scram<D: Sessions>(
    server: &Server<D>,
    mut channel: Channel,
    peer: Peer,
    (user, login): (&str, Option<&Login>),
    end_point: Option<&[u8]>,
) -> Result<Channel, Refusal> {
    let from = peer.address().map(|address| address.ip().to_canonical());
    let offer = if end_point.is_some() { Authentication::SaslPlus } else { Authentication::Sasl };
    backend::authentication(channel.output(), offer);
    // A client that proves the password of a role that may not log in is told so, as PostgreSQL does: after this.
    let stored = login.and_then(|login| login.password.as_deref());
    let Some(first) = password_message(&mut channel).await? else {
        return Err(refuse(channel, "08P01", "expected SASL response"));
    };
    let failed = |channel| {
        server.failures.failed(from, user);
        Err(refuse(channel, "28P01", format!("password authentication failed for user \"{user}\"")))
    };
    server.failures.slow_down(from).await;
    let Ok((exchange, answer)) = Exchange::begin(&first, user, stored, server.mock_key(), end_point) else {
        return failed(channel);
    };
    backend::authentication(channel.output(), Authentication::SaslContinue(answer.as_bytes()));
    let Some(last) = password_message(&mut channel).await? else {
        return Err(refuse(channel, "08P01", "expected SASL response"));
    };
    let Ok(signature) = exchange.finish(&last) else { return failed(channel) };
    backend::authentication(channel.output(), Authentication::SaslFinal(signature.as_bytes()));
    server.failures.succeeded(from, user);
    Ok(channel)
}

/// Sends what there is and reads a password message; None if another message came.
async fn password_message(channel: &mut channel::Channel) -> Result<Option<Vec<u8>>, Refusal> {
    channel.send().await?;
    let Some(frame) = channel.password_frame().await? else { return Ok(None) };
    match frontend::decode(frame.tag, channel.body(&frame)) {
        Ok(Message::Password(body)) => Ok(Some(body.to_vec())),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_the_first_name_of_its_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\n:x:7::\nann:x:1000:1000::/home/ann:\nalias:x:1000:1::\nbad:x:+5:\n";
        assert_eq!(name_of(users, 0).as_deref(), Some("root"));
        assert_eq!(name_of(users, 1000).as_deref(), Some("ann"));
        assert_eq!((name_of(users, 7), name_of(users, 1)), (None, None));
    }
}
