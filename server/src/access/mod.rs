//! Access rules: which client may connect, from where, as which role, and by which authentication method; as in PostgreSQL's
//! `pg_hba.conf`.
//!
//! # Structure
//! `parse` reads a file, `address` has its addresses. [`Rules`] decides about one connection ([`AccessRequest`]).
//!
//! # Invariants
//! - ACC-1: the first rule that matches a connection decides alone; a connection that no rule matches is refused.
//! - ACC-2: a file with a mistake gives no rules at all: the correct half of the rules could let in a client that the other half keeps
//!   out.
//!
//! # Not here
//! The authentication itself: `connection::authenticate`.

mod address;
mod parse;

use std::net::IpAddr;

pub use address::Network;
pub use parse::{FILE_BYTES_MAX, Line, read};

/// The kinds of connections that a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The Unix socket.
    Local,
    /// TCP.
    Host,
    /// TCP with TLS.
    HostSsl,
    /// TCP without TLS.
    HostNoSsl,
}

impl Kind {
    /// The word in a file.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Local => "local",
            Kind::Host => "host",
            Kind::HostSsl => "hostssl",
            Kind::HostNoSsl => "hostnossl",
        }
    }
}

/// How a client proves who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// It need not.
    Trust,
    /// It can't.
    Reject,
    /// A password, by SCRAM-SHA-256.
    Scram,
    /// A certificate whose common name is the role's.
    Cert,
    /// The user of the operating system at the other end of the Unix socket has the role's name.
    Peer,
}

impl Method {
    /// The word in a file.
    pub fn name(self) -> &'static str {
        match self {
            Method::Trust => "trust",
            Method::Reject => "reject",
            Method::Scram => "scram-sha-256",
            Method::Cert => "cert",
            Method::Peer => "peer",
        }
    }
}

/// What a rule asks of the client's certificate beside its method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificate {
    /// Nothing.
    #[default]
    NotAsked,
    /// One that `tls_client_ca` has signed.
    Valid,
    /// The same, and its common name is the role's.
    Named,
}

/// A database or a role in a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// `all`.
    All,
    /// `sameuser`: the database has the role's name.
    SameUser,
    /// `samerole`, `samegroup`: the role is a member of one that has the database's name.
    SameRole,
    /// `replication`: no connection here is one.
    Replication,
    /// `+name`: members of a role.
    MemberOf(String),
    /// A name.
    Name(String),
}

impl Word {
    /// As a file has it.
    pub fn shown(&self) -> String {
        match self {
            Word::All => "all".to_owned(),
            Word::SameUser => "sameuser".to_owned(),
            Word::SameRole => "samerole".to_owned(),
            Word::Replication => "replication".to_owned(),
            Word::MemberOf(role) => format!("+{role}"),
            Word::Name(name) => name.clone(),
        }
    }
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its line in the file, counted from 1; 0: it comes from no file.
    pub line: u32,
    /// Which connections.
    pub kind: Kind,
    /// To which databases.
    pub databases: Vec<Word>,
    /// As which roles.
    pub users: Vec<Word>,
    /// From where; none: the Unix socket, or anywhere.
    pub network: Option<Network>,
    /// How they prove it.
    pub method: Method,
    /// What of the client's certificate.
    pub certificate: ClientCertificate,
}

impl Rule {
    /// The options as a file has them.
    pub fn options(&self) -> Option<&'static str> {
        match self.certificate {
            ClientCertificate::NotAsked => None,
            ClientCertificate::Valid => Some("clientcert=verify-ca"),
            ClientCertificate::Named => Some("clientcert=verify-full"),
        }
    }

    /// The rule as a line of a file.
    pub fn text(&self) -> String {
        let list = |words: &[Word]| words.iter().map(Word::shown).collect::<Vec<_>>().join(",");
        let mut text = format!("{} {} {}", self.kind.name(), list(&self.databases), list(&self.users));
        if self.kind != Kind::Local {
            text.push(' ');
            text.push_str(&self.network.map_or_else(|| "all".to_owned(), |network| network.to_string()));
        }
        text.push(' ');
        text.push_str(self.method.name());
        if let Some(options) = self.options() {
            text.push(' ');
            text.push_str(options);
        }
        text
    }
}

/// By which way a connection comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// The Unix socket.
    Unix,
    /// TCP without encryption.
    Plain(IpAddr),
    /// TCP with TLS.
    Tls(IpAddr),
}

/// A connection that wants in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessRequest<'a> {
    /// How it comes.
    pub way: Transport,
    /// To which database.
    pub database: &'a str,
    /// As which role.
    pub user: &'a str,
}

/// The rules, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(pub Vec<Rule>);

impl Rules {
    /// What holds without a file: clients on this machine are trusted, unless they have to prove a password too; all others prove one.
    pub fn without_a_file(password_on_loopback: bool) -> Rules {
        let near = if password_on_loopback { Method::Scram } else { Method::Trust };
        let rule = |kind, network, method| Rule {
            line: 0,
            kind,
            databases: vec![Word::All],
            users: vec![Word::All],
            network,
            method,
            certificate: ClientCertificate::NotAsked,
        };
        Rules(vec![
            rule(Kind::Local, None, near),
            rule(Kind::Host, Some(Network::loopback_v4()), near),
            rule(Kind::Host, Some(Network::loopback_v6()), near),
            rule(Kind::Host, None, Method::Scram),
        ])
    }

    /// The rule that decides (ACC-1); none: no rule fits. `is_member` says whether the role is a member of another, or it.
    pub fn decide(&self, asked: &AccessRequest<'_>, is_member: &dyn Fn(&str) -> bool) -> Option<&Rule> {
        self.0.iter().find(|rule| rule.fits(asked, is_member))
    }

    /// Whether a client on this machine gets in as a superuser without any proof.
    pub fn trust_this_machine(&self) -> bool {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        [Transport::Unix, Transport::Plain(loopback)].into_iter().any(|way| {
            let asked = AccessRequest { way, database: "postgres", user: "postgres" };
            self.decide(&asked, &|_| false).is_some_and(|rule| rule.method == Method::Trust)
        })
    }

    /// The first rule that lets a client beyond this machine in without any proof.
    pub fn trust_beyond(&self) -> Option<&Rule> {
        let beyond = |rule: &&Rule| rule.network.is_none_or(|network| !network.is_loopback());
        self.0.iter().find(|rule| rule.kind != Kind::Local && rule.method == Method::Trust && beyond(rule))
    }
}

impl Rule {
    fn fits(&self, asked: &AccessRequest<'_>, is_member: &dyn Fn(&str) -> bool) -> bool {
        self.may_fit(asked) && self.names(asked, is_member)
    }

    /// Whether way and address fit.
    pub fn may_fit(&self, asked: &AccessRequest<'_>) -> bool {
        let (address, way_fits) = match asked.way {
            Transport::Unix => return self.kind == Kind::Local,
            Transport::Plain(address) => (address, matches!(self.kind, Kind::Host | Kind::HostNoSsl)),
            Transport::Tls(address) => (address, matches!(self.kind, Kind::Host | Kind::HostSsl)),
        };
        way_fits && self.network.is_none_or(|network| network.holds(address))
    }

    /// Whether database and role fit.
    pub fn names(&self, asked: &AccessRequest<'_>, is_member: &dyn Fn(&str) -> bool) -> bool {
        let database = |word: &Word| match word {
            Word::All => true,
            Word::SameUser => asked.database == asked.user,
            Word::SameRole => is_member(asked.database),
            Word::Name(name) => name == asked.database,
            Word::Replication | Word::MemberOf(_) => false,
        };
        let user = |word: &Word| match word {
            Word::All => true,
            Word::MemberOf(role) => is_member(role),
            Word::Name(name) => name == asked.user,
            Word::SameUser | Word::SameRole | Word::Replication => false,
        };
        self.databases.iter().any(database) && self.users.iter().any(user)
    }

    /// The roles of which it asks for members, where nothing else decides.
    pub fn groups<'a>(&'a self, asked: &'a AccessRequest<'_>) -> Vec<&'a str> {
        let of_users = self.users.iter().filter_map(|word| match word {
            Word::MemberOf(role) => Some(role.as_str()),
            _ => None,
        });
        let of_databases = self.databases.iter().filter(|word| **word == Word::SameRole).map(|_| asked.database);
        of_users.chain(of_databases).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Rules {
        Rules(read(text).into_iter().map(|line| line.rule.expect("a rule")).collect())
    }

    fn line(rules: &Rules, way: Transport, database: &str, user: &str) -> u32 {
        let member = |role: &str| user == "ann" && role == "staff";
        rules.decide(&AccessRequest { way, database, user }, &member).map_or(0, |rule| rule.line)
    }

    fn at(address: &str) -> IpAddr {
        address.parse().expect("an address")
    }

    /// ACC-1
    #[test]
    fn the_first_rule_that_fits_decides() {
        let rules = rules(
            "local all postgres peer\n\
             host sales,\"all\" +staff 10.1.0.0/16 scram-sha-256\n\
             hostssl sameuser all all cert\n\
             hostnossl all all 10.0.0.0 255.0.0.0 reject\n\
             host samerole all ::1/128 trust\n\
             host replication all all trust\n",
        );
        assert_eq!(line(&rules, Transport::Unix, "x", "postgres"), 1);
        assert_eq!(line(&rules, Transport::Unix, "x", "ann"), 0);
        assert_eq!(line(&rules, Transport::Plain(at("10.1.2.3")), "sales", "ann"), 2);
        assert_eq!(line(&rules, Transport::Plain(at("10.1.2.3")), "all", "ann"), 2, "a quoted word is a name");
        assert_eq!(line(&rules, Transport::Plain(at("10.1.2.3")), "sales", "bob"), 4);
        assert_eq!(line(&rules, Transport::Plain(at("10.2.2.3")), "sales", "ann"), 4);
        assert_eq!(line(&rules, Transport::Tls(at("10.2.2.3")), "sales", "ann"), 0);
        assert_eq!(line(&rules, Transport::Tls(at("192.168.0.1")), "ann", "ann"), 3);
        assert_eq!(line(&rules, Transport::Plain(at("192.168.0.1")), "ann", "ann"), 0);
        assert_eq!(line(&rules, Transport::Plain(at("::1")), "staff", "ann"), 5);
        assert_eq!(line(&rules, Transport::Plain(at("::2")), "staff", "ann"), 0);
        assert_eq!(
            line(&rules, Transport::Plain(at("::ffff:10.1.0.1")), "sales", "ann"),
            2,
            "an IPv4 address in IPv6 form"
        );
    }

    #[test]
    fn without_a_file_this_machine_is_trusted_and_others_prove_a_password() {
        let method = |password, way| {
            let asked = AccessRequest { way, database: "d", user: "u" };
            Rules::without_a_file(password).decide(&asked, &|_| false).map(|rule| rule.method)
        };
        for near in [
            Transport::Unix,
            Transport::Plain(at("127.0.0.9")),
            Transport::Tls(at("::1")),
            Transport::Plain(at("::ffff:127.0.0.1")),
        ] {
            assert_eq!((method(false, near), method(true, near)), (Some(Method::Trust), Some(Method::Scram)));
        }
        for far in [Transport::Plain(at("10.0.0.1")), Transport::Tls(at("fe80::1"))] {
            assert_eq!((method(false, far), method(true, far)), (Some(Method::Scram), Some(Method::Scram)));
        }
        assert!(Rules::without_a_file(false).trust_this_machine() && !Rules::without_a_file(true).trust_this_machine());
        assert!(Rules::without_a_file(false).trust_beyond().is_none());
    }
}
