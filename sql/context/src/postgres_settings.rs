//! Settings of the server under PostgreSQL's names, which clients ask for: `port`, `shared_buffers`, `ssl` and others. They can be read only.

use super::configuration::Shown;
use std::net::SocketAddr;

/// PostgreSQL's name, the server's own, and one sentence.
const SAME: &[(&str, &str, &str)] = &[
    ("hba_file", "access_file", "Shows access_file."),
    ("shared_buffers", "cache_size", "Shows cache_size."),
    ("ssl_ca_file", "tls_client_ca", "Shows tls_client_ca."),
    ("ssl_cert_file", "tls_certificate", "Shows tls_certificate."),
    ("ssl_key_file", "tls_key", "Shows tls_key."),
    ("unix_socket_directories", "unix_socket_directory", "Shows unix_socket_directory."),
];

/// These settings; `connected`: the address of the server at which the session's client has connected.
pub fn of(settings: &[Shown], connected: Option<SocketAddr>) -> Vec<Shown> {
    let own = |name: &str| settings.iter().find(|setting| setting.name == name);
    let named = |(name, from, about): &(&'static str, &str, &'static str)| {
        own(from).map(|setting| Shown { name, about, ..setting.clone() })
    };
    let mut shown: Vec<Shown> = SAME.iter().filter_map(named).collect();
    if let Some(listen) = own("listen") {
        let places = || listen.value.split(',').filter_map(|place| place.trim().rsplit_once(':'));
        let addresses: Vec<&str> = places().map(|(address, _)| address.trim_matches(['[', ']'])).collect();
        let port = connected.map(|address| address.port().to_string());
        let port = port.or_else(|| places().next().map(|(_, port)| port.to_owned())).unwrap_or_default();
        let like = |name, value, about| Shown { name, value, default: "", about, ..listen.clone() };
        shown.push(like("listen_addresses", addresses.join(", "), "Shows the addresses of listen."));
        shown.push(like("port", port, "Shows the port of listen at which the session has connected."));
    }
    if let Some(certificate) = own("tls_certificate") {
        let value = if certificate.value.is_empty() { "off" } else { "on" }.to_owned();
        let about = "Shows whether tls_certificate is set.";
        shown.push(Shown { name: "ssl", value, default: "off", about, private: false, ..certificate.clone() });
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_settings_have_postgresqls_names_too() {
        let setting = |name, value: &str| Shown {
            name,
            value: value.to_owned(),
            default: "",
            about: "",
            reloads: false,
            private: false,
            source: "default",
            pending_restart: false,
        };
        let own = [
            setting("listen", "127.0.0.1:0, [::1]:7000"),
            setting("cache_size", "256MB"),
            setting("tls_certificate", ""),
        ];
        let value = |name: &str, connected: Option<&str>| {
            let connected = connected.and_then(|address| address.parse().ok());
            of(&own, connected).into_iter().find(|setting| setting.name == name).map(|setting| setting.value)
        };
        assert_eq!(value("port", Some("127.0.0.1:40111")).as_deref(), Some("40111"));
        assert_eq!(value("port", None).as_deref(), Some("0"));
        assert_eq!(value("listen_addresses", None).as_deref(), Some("127.0.0.1, ::1"));
        assert_eq!(value("shared_buffers", None).as_deref(), Some("256MB"));
        assert_eq!(value("ssl", None).as_deref(), Some("off"));
        assert_eq!(value("hba_file", None), None, "this server has no such setting");
    }
}
