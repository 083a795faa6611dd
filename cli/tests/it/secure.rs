//! Passwords and TLS, tested with the real psql: SCRAM-SHA-256, a certificate of the test's own authority, and what is refused.
//!
//! Needs psql and openssl (`.ci/run` installs both).

use std::path::Path;
use std::process::Command;

use crate::program::{Running, command, scratch, start, start_with, stop};

/// psql's exit and everything that it said.
fn psql(running: &Running, connection: &str, password: &str, sql: &str) -> (bool, String) {
    let mut psql = Command::new("psql");
    psql.args(["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql]);
    psql.arg(format!("port={} dbname=postgres connect_timeout=20 {connection}", running.port));
    psql.env("PGPASSWORD", password).env("PGPASSFILE", "/dev/null").env("HOME", "/nonexistent");
    let output = psql.output().expect("psql runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), said)
}

fn answers(running: &Running, connection: &str, password: &str, sql: &str) -> String {
    let (ended_well, said) = psql(running, connection, password, sql);
    assert!(ended_well, "{connection}: {said}");
    said.trim_end().to_owned()
}

fn refused(running: &Running, connection: &str, password: &str, with: &str) {
    let (ended_well, said) = psql(running, connection, password, "select 1");
    assert!(!ended_well && said.contains(with), "{connection}: expected \"{with}\", psql said: {said}");
}

fn openssl(directory: &Path, arguments: &str) {
    let output =
        Command::new("openssl").args(arguments.split(' ')).current_dir(directory).output().expect("openssl runs");
    assert!(output.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// `ca.crt`, `other.crt` (an authority that signed nothing here), `server.crt` with `server.key`.
fn certificates(directory: &Path) {
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
    for name in ["ca", "other"] {
        openssl(directory, &format!("req -x509 {key} -keyout {name}.key -out {name}.crt -subj /CN={name}"));
    }
    openssl(directory, &format!("req -new {key} -keyout server.key -out server.csr -subj /CN=localhost"));
    std::fs::write(directory.join("server.ext"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n").expect("writes");
    openssl(
        directory,
        "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile server.ext -out server.crt",
    );
}

fn refuses_to_start(directory: &Path, arguments: &[String], with: &str) {
    let output = command(directory).args(arguments).output().expect("runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains(with), "{arguments:?}: expected \"{with}\", it said: {said}");
    assert!(output.stdout.is_empty(), "{arguments:?}: nothing to connect to: {said}");
}

#[test]
fn psql_proves_a_password_by_scram_over_verified_tls() {
    let directory = scratch("secure");
    std::fs::create_dir_all(&directory).expect("a directory");
    certificates(&directory);
    let (data, path) = (directory.join("data"), |name: &str| directory.join(name).display().to_string());
    let beyond = ["--listen".to_owned(), "0.0.0.0:0".to_owned()];
    refuses_to_start(&data, &beyond, "no role has a password");

    let open = start(&data);
    let local = "host=127.0.0.1 user=postgres";
    answers(&open, local, "", "create role app login password 'right one'");
    answers(&open, local, "", "create role mute login");
    answers(&open, local, "", "create role stay nologin password 'right one'");
    refused(&open, "host=127.0.0.1 user=postgres sslmode=require", "", "server does not support SSL");
    stop(open);
    refuses_to_start(&data, &beyond, "without TLS");
    let half = ["-c".to_owned(), format!("tls_certificate={}", path("server.crt"))];
    refuses_to_start(&data, &half, "belong together");

    let tls = [
        "-c".to_owned(),
        format!("tls_certificate={}", path("server.crt")),
        "-c".to_owned(),
        format!("tls_key={}", path("server.key")),
        "-c".to_owned(),
        "password_on_loopback=on".to_owned(),
    ];
    // The last --listen wins: with a password and TLS it may be anywhere.
    let closed = start_with(&data, &[&tls[..], &beyond[..]].concat());
    let app = |more: &str| format!("user=app {more}");
    let verified = format!("sslmode=verify-full sslrootcert={}", path("ca.crt"));
    for place in ["host=127.0.0.1", "host=localhost"] {
        let who = answers(&closed, &app(&format!("{place} {verified}")), "right one", "select current_user");
        assert_eq!(who, "app");
    }
    let info = answers(&closed, &app("host=127.0.0.1 sslmode=require"), "right one", "\\conninfo");
    assert!(info.contains("SSL connection (protocol: TLSv1."), "{info}");
    let big = answers(&closed, &app("host=127.0.0.1 sslmode=require"), "right one", "select repeat('x', 3000000)");
    assert_eq!(big.len(), 3_000_000, "an answer of many TLS records");

    refused(
        &closed,
        &app(&format!("host=127.0.0.1 sslmode=verify-full sslrootcert={}", path("other.crt"))),
        "right one",
        "certificate verify failed",
    );
    for connection in ["sslmode=require", "sslmode=disable"] {
        let at = format!("host=127.0.0.1 {connection}");
        refused(&closed, &app(&at), "wrong one", "password authentication failed for user \"app\"");
        refused(&closed, &app(&at), "", "no password supplied");
        for role in ["mute", "nobody"] {
            let said = format!("password authentication failed for user \"{role}\"");
            refused(&closed, &format!("user={role} {at}"), "right one", &said);
        }
        let stay = format!("user=stay {at}");
        refused(&closed, &stay, "wrong one", "password authentication failed for user \"stay\"");
        refused(&closed, &stay, "right one", "role \"stay\" is not permitted to log in");
    }
    stop(closed);
    let _ = std::fs::remove_dir_all(&directory);
}
