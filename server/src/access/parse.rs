//! Parses the access file: one rule per line, as in `pg_hba.conf`.
//!
//! `TYPE DATABASES USERS [ADDRESS [MASK]] METHOD [OPTIONS]`, separated by blanks, with commas in lists. `#` begins a comment, a backslash
//! at the end of a line continues the line, and double quotes remove the special meaning of a word.
//!
//! # Errors
//! Each line that is not a valid rule is reported with its reason. Features of PostgreSQL that this server does not have are refused by
//! name.

use std::net::IpAddr;

use super::{ClientCertificate, Kind, Method, Network, Rule, Word};

/// A larger file is none of rules.
pub const FILE_BYTES_MAX: usize = 1 << 20;
/// A line holds no more words.
const WORDS_MAX: usize = 1_000;

/// A line that is neither empty nor a comment: a rule, or what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Counted from 1; of a rule that goes over several lines the first.
    pub number: u32,
    /// The rule.
    pub rule: Result<Rule, String>,
}

/// A word, and whether any of it stood in quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    text: String,
    quoted: bool,
}

impl Token {
    fn is(&self, word: &str) -> bool {
        !self.quoted && self.text == word
    }
}

/// Reads a file. It never fails as a whole: each line tells for itself.
pub fn read(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut physical = text.lines().zip(1u32..);
    while let Some((first, number)) = physical.next() {
        let mut whole = first.trim_end_matches('\r').to_owned();
        while whole.ends_with('\\') {
            whole.pop();
            let Some((next, _)) = physical.next() else { break };
            whole.push_str(next.trim_end_matches('\r'));
        }
        let rule = match fields(&whole) {
            Ok(fields) if fields.is_empty() => continue,
            Ok(fields) => rule(number, fields),
            Err(error) => Err(error),
        };
        lines.push(Line { number, rule });
    }
    lines
}

/// The fields of a line, each a list of words between commas.
fn fields(line: &str) -> Result<Vec<Vec<Token>>, String> {
    let mut fields: Vec<Vec<Token>> = Vec::new();
    let (mut token, mut open): (Option<Token>, bool) = (None, false);
    let (mut quotes, mut words) = (false, 0usize);
    // A word ends; after a comma the next belongs to the same field.
    let mut put = |fields: &mut Vec<Vec<Token>>, token: &mut Option<Token>, open: &mut bool| {
        let Some(word) = token.take() else { return Ok(()) };
        words += 1;
        if words > WORDS_MAX {
            return Err(format!("the line has more than {WORDS_MAX} words"));
        }
        match fields.last_mut().filter(|_| *open) {
            Some(field) => field.push(word),
            None => fields.push(vec![word]),
        }
        *open = false;
        Ok(())
    };
    for c in line.chars() {
        let new = || Token { text: String::new(), quoted: false };
        match c {
            '"' => {
                quotes = !quotes;
                token.get_or_insert_with(new).quoted = true;
            }
            c if quotes => token.get_or_insert_with(new).text.push(c),
            '#' => break,
            ',' => {
                put(&mut fields, &mut token, &mut open)?;
                if fields.is_empty() {
                    return Err("a list begins with a comma".to_owned());
                }
                open = true;
            }
            c if c.is_whitespace() => put(&mut fields, &mut token, &mut open)?,
            c => token.get_or_insert_with(new).text.push(c),
        }
    }
    if quotes {
        return Err("a quote has no end".to_owned());
    }
    put(&mut fields, &mut token, &mut open)?;
    if open { Err("a list ends with a comma".to_owned()) } else { Ok(fields) }
}

/// The one word of a field.
fn single(field: Option<Vec<Token>>, missing: &str, several: &str) -> Result<Token, String> {
    let mut words = field.ok_or_else(|| missing.to_owned())?;
    match (words.pop(), words.is_empty()) {
        (Some(word), true) => Ok(word),
        _ => Err(format!("multiple values specified for {several}")),
    }
}

fn rule(line: u32, fields: Vec<Vec<Token>>) -> Result<Rule, String> {
    let mut fields = fields.into_iter();
    let kind = kind(&single(fields.next(), "", "connection type")?)?;
    let databases = fields.next().ok_or("end-of-line before database specification")?;
    let databases = databases.iter().map(database).collect::<Result<Vec<_>, _>>()?;
    let users = fields.next().ok_or("end-of-line before role specification")?;
    let users = users.iter().map(user).collect::<Result<Vec<_>, _>>()?;
    let network = if kind == Kind::Local { None } else { network(&mut fields)? };
    let method = method(&single(fields.next(), "end-of-line before authentication method", "authentication type")?)?;
    match (method, kind) {
        (Method::Peer, Kind::Host | Kind::HostSsl | Kind::HostNoSsl) => {
            return Err("peer authentication is only supported on local sockets".to_owned());
        }
        (Method::Cert, Kind::Local | Kind::Host | Kind::HostNoSsl) => {
            return Err("cert authentication is only supported on hostssl connections".to_owned());
        }
        _ => {}
    }
    // A certificate that proves who the client is has its name, whatever else is said.
    let mut certificate = if method == Method::Cert { ClientCertificate::Named } else { ClientCertificate::NotAsked };
    for option in fields.flatten() {
        certificate = option_of(&option, kind, method)?;
    }
    Ok(Rule { line, kind, databases, users, network, method, certificate })
}

fn kind(word: &Token) -> Result<Kind, String> {
    Ok(match word.text.as_str() {
        "local" => Kind::Local,
        "host" => Kind::Host,
        "hostssl" => Kind::HostSsl,
        "hostnossl" => Kind::HostNoSsl,
        "hostgssenc" | "hostnogssenc" => {
            return Err(format!("connection type \"{}\" is not supported: there is no GSSAPI", word.text));
        }
        "include" | "include_if_exists" | "include_dir" => {
            return Err(format!("\"{}\" is not supported", word.text));
        }
        other => return Err(format!("invalid connection type \"{other}\"")),
    })
}

/// What no list may hold.
fn name(word: &Token) -> Result<String, String> {
    if !word.quoted && word.text.starts_with('@') {
        return Err(format!("\"{}\": lists in other files are not supported", word.text));
    }
    if word.text.is_empty() {
        return Err("an empty name".to_owned());
    }
    Ok(word.text.clone())
}

fn database(word: &Token) -> Result<Word, String> {
    Ok(match word.text.as_str() {
        _ if word.quoted => Word::Name(name(word)?),
        "all" => Word::All,
        "sameuser" => Word::SameUser,
        "samerole" | "samegroup" => Word::SameRole,
        "replication" => Word::Replication,
        _ => Word::Name(name(word)?),
    })
}

fn user(word: &Token) -> Result<Word, String> {
    Ok(match (word.text.strip_prefix('+'), word.quoted) {
        (_, true) => Word::Name(name(word)?),
        (Some(""), _) => return Err("\"+\" without a role".to_owned()),
        (Some(role), _) => Word::MemberOf(role.to_owned()),
        _ if word.is("all") => Word::All,
        _ => Word::Name(name(word)?),
    })
}

fn network(fields: &mut impl Iterator<Item = Vec<Token>>) -> Result<Option<Network>, String> {
    let word = single(fields.next(), "end-of-line before IP address specification", "host address")?;
    if word.is("all") {
        return Ok(None);
    }
    if word.is("samehost") || word.is("samenet") {
        return Err(format!("\"{}\" is not supported: name the addresses", word.text));
    }
    let (address, bits) = match word.text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (word.text.as_str(), None),
    };
    let Ok(address) = address.parse::<IpAddr>() else {
        let text = &word.text;
        return Err(format!("\"{text}\" is no IP address (names of hosts are not supported: name the addresses)"));
    };
    // Clients with such an address count as IPv4: a rule that names it would fit no client.
    if matches!(address, IpAddr::V6(six) if six.to_ipv4_mapped().is_some()) {
        return Err(format!("\"{}\" is an IPv4 address in IPv6 form: write it as IPv4", word.text));
    }
    if let Some(bits) = bits {
        // No sign and no blank, which numbers in Rust may have.
        let bits = bits.parse::<u8>().ok().filter(|_| bits.bytes().all(|byte| byte.is_ascii_digit()));
        let network = bits.and_then(|bits| Network::new(address, bits));
        return network.map(Some).ok_or_else(|| format!("invalid CIDR mask in address \"{}\"", word.text));
    }
    let mask = single(fields.next(), "end-of-line before netmask specification", "netmask")?;
    let parsed = mask.text.parse::<IpAddr>().map_err(|_| format!("invalid IP mask \"{}\"", mask.text))?;
    if parsed.is_ipv4() != address.is_ipv4() {
        return Err("IP address and mask do not match".to_owned());
    }
    Network::with_mask(address, parsed).map(Some).ok_or_else(|| format!("invalid IP mask \"{}\"", mask.text))
}

fn method(word: &Token) -> Result<Method, String> {
    Ok(match word.text.as_str() {
        "trust" => Method::Trust,
        "reject" => Method::Reject,
        "scram-sha-256" => Method::Scram,
        "cert" => Method::Cert,
        "peer" => Method::Peer,
        other @ ("md5" | "password") => {
            return Err(format!("authentication method \"{other}\" is not supported: scram-sha-256 is"));
        }
        other @ ("ident" | "gss" | "sspi" | "pam" | "bsd" | "ldap" | "radius") => {
            return Err(format!("authentication method \"{other}\" is not supported"));
        }
        other => return Err(format!("invalid authentication method \"{other}\"")),
    })
}

fn option_of(word: &Token, kind: Kind, method: Method) -> Result<ClientCertificate, String> {
    let pair = word.text.split_once('=');
    let (name, value) = pair.ok_or_else(|| format!("authentication option not in name=value format: {}", word.text))?;
    match (name, value) {
        ("clientcert", _) if kind != Kind::HostSsl => {
            Err("clientcert can only be configured for \"hostssl\" rows".to_owned())
        }
        ("clientcert", "verify-full") => Ok(ClientCertificate::Named),
        ("clientcert", "verify-ca") if method == Method::Cert => {
            Err("clientcert only accepts \"verify-full\" when using \"cert\" authentication".to_owned())
        }
        ("clientcert", "verify-ca") => Ok(ClientCertificate::Valid),
        ("clientcert", value) => Err(format!("invalid value for clientcert: \"{value}\"")),
        ("map" | "clientname", _) => Err(format!("authentication option \"{name}\" is not supported")),
        _ => Err(format!("unrecognized authentication option name: \"{name}\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<String, String> {
        let mut lines = read(text);
        assert_eq!(lines.len(), 1, "{text}");
        lines.remove(0).rule.map(|rule| rule.text())
    }

    #[test]
    fn rules_are_read_and_written() {
        for (text, same) in [
            ("local all all trust", "local all all trust"),
            ("host a,b,\"c d\" +g,u 10.0.0.0/8 scram-sha-256 # why", "host a,b,c d +g,u 10.0.0.0/8 scram-sha-256"),
            ("host a, b u all reject", "host a,b u all reject"),
            ("host all all 1.2.3.4 255.255.255.255 trust", "host all all 1.2.3.4/32 trust"),
            ("hostssl all all ::/0 cert", "hostssl all all ::/0 cert clientcert=verify-full"),
            ("hostssl all all all trust clientcert=verify-ca", "hostssl all all all trust clientcert=verify-ca"),
            ("local \"all\" \"+x\" peer\r", "local all +x peer"),
            ("local all \\\n all \\\n trust", "local all all trust"),
        ] {
            assert_eq!(one(text).as_deref(), Ok(same));
        }
        assert!(read("\n# nothing\n  \n").is_empty());
        let numbers: Vec<u32> = read("#\nlocal all \\\n all trust\n\nx\n").iter().map(|line| line.number).collect();
        assert_eq!(numbers, [2, 5]);
    }

    #[test]
    fn a_line_that_is_no_rule_says_why() {
        for (text, why) in [
            ("x", "invalid connection type \"x\""),
            ("hostgssenc all all all gss", "no GSSAPI"),
            ("local", "before database"),
            ("local all", "before role"),
            ("local all all", "before authentication method"),
            ("host all all", "before IP address"),
            ("host all all 10.0.0.1 trust", "invalid IP mask"),
            ("host all all 10.0.0.1", "before netmask"),
            ("host all all 10.0.0.0/33 trust", "invalid CIDR mask"),
            ("host all all ::ffff:10.0.0.0/104 reject", "write it as IPv4"),
            ("host all all 10.0.0.0/+8 trust", "invalid CIDR mask"),
            ("host all all 10.0.0.0 ffff:: trust", "do not match"),
            ("host all all example.com trust", "names of hosts"),
            ("host all all samenet trust", "not supported"),
            ("host all all all md5", "scram-sha-256 is"),
            ("host all all all ldap", "not supported"),
            ("host all all all magic", "invalid authentication method"),
            ("host all all all peer", "only supported on local"),
            ("host all all all cert", "only supported on hostssl"),
            ("host all all all trust map=x", "\"map\" is not supported"),
            ("hostssl all all all trust clientcert=1", "invalid value"),
            ("host all all all trust clientcert=verify-ca", "hostssl"),
            ("host all all all trust more", "name=value"),
            ("local @list all trust", "other files"),
            ("local all + trust", "without a role"),
            ("local \"all all trust", "no end"),
            ("local a, ", "ends with a comma"),
            (",local all all trust", "begins with a comma"),
            ("local,host all all trust", "multiple values"),
        ] {
            assert!(one(text).is_err_and(|error| error.contains(why)), "{text}: {:?}", one(text));
        }
    }
}
