//! Takes the TLS options out of a server's address.

use super::{Mode, Tls};
use crate::options::WatchError;
use percent_encoding::percent_decode_str;

/// The options as they stand in an address.
#[derive(Debug, Default, PartialEq, Eq)]
struct TlsParameters {
    mode: Option<String>,
    authorities: Option<String>,
}

fn unclear(what: impl Into<String>) -> WatchError {
    WatchError::Tls(what.into())
}

/// A PostgreSQL's address, a URL or `name=value` pairs, without `sslmode` and `sslrootcert`; and the TLS that they ask for. `prefer` where
/// nothing is said, as with psql.
pub(crate) fn of_postgres(server: &str) -> Result<(String, Tls), WatchError> {
    let names = ["sslmode", "sslrootcert"];
    let (rest, asked) = if server.contains("://") {
        of_url(server, names)?
    } else {
        of_pairs(server, names).ok_or_else(|| unclear("the server's address is not of the form name=value"))?
    };
    let mode = match asked.mode.as_deref() {
        None | Some("prefer") => Mode::Prefer,
        Some("disable") => Mode::Disable,
        Some("require") => Mode::Require,
        Some("verify-ca") => Mode::VerifyCa,
        Some("verify-full") => Mode::VerifyFull,
        Some(other) => {
            return Err(unclear(format!(
                "sslmode \"{other}\" is not supported: disable, prefer, require, verify-ca or verify-full"
            )));
        }
    };
    Ok((rest, Tls::of(mode, asked.authorities.as_deref())?))
}

/// A MySQL's URL without `ssl-mode` and `ssl-ca`, and the TLS that they ask for. What else follows the `?` is refused.
pub(crate) fn of_mysql(server: &str) -> Result<(String, Tls), WatchError> {
    let (rest, asked) = of_url(server, ["ssl-mode", "ssl-ca"])?;
    if let Some((_, other)) = rest.split_once('?') {
        let name = other.split(['=', '&']).next().unwrap_or_default();
        return Err(unclear(format!("the option \"{name}\" of the URL is not known: ssl-mode, ssl-ca")));
    }
    let mode = match asked.mode.as_deref().map(str::to_ascii_uppercase).as_deref() {
        None | Some("PREFERRED") => Mode::Prefer,
        Some("DISABLED") => Mode::Disable,
        Some("REQUIRED") => Mode::Require,
        Some("VERIFY_CA") => Mode::VerifyCa,
        Some("VERIFY_IDENTITY") => Mode::VerifyFull,
        Some(other) => {
            return Err(unclear(format!(
                "ssl-mode \"{other}\" is not known: DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY"
            )));
        }
    };
    Ok((rest, Tls::of(mode, asked.authorities.as_deref())?))
}

/// The parts of a URL's query, but for the two that are sought.
fn of_url(url: &str, [mode, authorities]: [&str; 2]) -> Result<(String, TlsParameters), WatchError> {
    // A password may have a question mark: the query begins behind the host.
    let host = url.find('@').map_or(0, |at| at + 1);
    let Some(query) = url[host..].find('?').map(|at| host + at) else {
        return Ok((url.to_owned(), TlsParameters::default()));
    };
    let mut asked = TlsParameters::default();
    let mut others = Vec::new();
    for part in url[query + 1..].split('&') {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let name = percent_decode_str(name).decode_utf8_lossy();
        let place = match &*name {
            name if name == mode => &mut asked.mode,
            name if name == authorities => &mut asked.authorities,
            _ => {
                others.push(part);
                continue;
            }
        };
        let value = percent_decode_str(value).decode_utf8().map_err(|_| unclear("the URL is not UTF-8"))?;
        if place.replace(value.into_owned()).is_some() {
            return Err(unclear(format!("\"{name}\" is given twice in the URL")));
        }
    }
    let address = &url[..query];
    Ok((if others.is_empty() { address.to_owned() } else { format!("{address}?{}", others.join("&")) }, asked))
}

/// The pairs but for the two that are sought; a value may stand in quotes, with backslashes. The last of a name counts, as with libpq.
fn of_pairs(text: &str, [mode, authorities]: [&str; 2]) -> Option<(String, TlsParameters)> {
    let (mut asked, mut others) = (TlsParameters::default(), String::new());
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, behind) = rest.split_once('=')?;
        let behind = behind.trim_start();
        let (value, length) = value_of(behind)?;
        match name.trim_end() {
            name if name == mode => asked.mode = Some(value),
            name if name == authorities => asked.authorities = Some(value),
            name => others += &format!("{name}={} ", &behind[..length]),
        }
        rest = behind[length..].trim_start();
    }
    Some((others, asked))
}

/// The value that a text begins with, and how many bytes of the text it takes.
fn value_of(text: &str) -> Option<(String, usize)> {
    let mut value = String::new();
    let quoted = text.starts_with('\'');
    let mut letters = text.char_indices().skip(usize::from(quoted));
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => value.push(letters.next()?.1),
            '\'' if quoted => return Some((value, at + 1)),
            _ if !quoted && letter.is_whitespace() => return Some((value, at)),
            _ => value.push(letter),
        }
    }
    (!quoted).then_some((value, text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn postgres(server: &str) -> Result<(String, Mode), String> {
        of_postgres(server).map(|(rest, tls)| (rest, tls.mode)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_options_are_taken_out_of_the_address() {
        let of = |server: &str| postgres(server).expect("an address");
        assert_eq!(of("postgresql://a@h/d"), ("postgresql://a@h/d".to_owned(), Mode::Prefer));
        assert_eq!(of("postgresql://a:p?w@h/d?sslmode=require"), ("postgresql://a:p?w@h/d".to_owned(), Mode::Require));
        let url = "postgresql://a@h/d?connect_timeout=3&sslmode=disable&target_session_attrs=any";
        assert_eq!(
            of(url),
            ("postgresql://a@h/d?connect_timeout=3&target_session_attrs=any".to_owned(), Mode::Disable)
        );
        assert_eq!(
            of("host = h sslmode=require password='a b\\'c' user=ann"),
            ("host=h password='a b\\'c' user=ann ".to_owned(), Mode::Require)
        );
        let (rest, tls) = of_mysql("mysql://a@h/d?ssl-mode=required").expect("an address");
        assert_eq!((rest.as_str(), tls.mode), ("mysql://a@h/d", Mode::Require));
    }

    /// CON-4
    #[test]
    fn what_can_not_be_met_is_refused() {
        for (server, why) in [
            ("postgresql://a@h/d?sslmode=allow", "\"allow\" is not supported"),
            ("postgresql://a@h/d?sslmode=", "\"\" is not supported"),
            ("postgresql://a@h/d?sslmode=require&sslmode=disable", "is given twice"),
            ("postgresql://a@h/d?sslmode=verify-full", "sslrootcert=FILE"),
            ("host=h sslmode=verify-ca", "sslrootcert=FILE"),
            ("host=h sslmode=verify-full sslrootcert=/nowhere/ca.pem", "the authorities in /nowhere/ca.pem"),
            ("host=h sslmode", "name=value"),
            ("host=h password='open", "name=value"),
        ] {
            let told = postgres(server).expect_err(server);
            assert!(told.contains(why), "{server}: {told}");
        }
        for (server, why) in [
            ("mysql://a@h/d?sslmode=require", "\"sslmode\" of the URL is not known"),
            ("mysql://a@h/d?ssl-mode=VERIFY_IDENTITY", "ssl-ca=FILE"),
            ("mysql://a@h/d?ssl-mode=maybe", "is not known"),
        ] {
            let told = of_mysql(server).expect_err(server).to_string();
            assert!(told.contains(why), "{server}: {told}");
        }
    }
}
