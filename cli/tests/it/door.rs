//! Which clients get in, tested with the real psql: the access file, client certificates, channel binding; files that are reloaded while
//! the server runs.
//!
//! Needs psql and openssl (`.ci/run` installs both).

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{Running, command, scratch, start_with, stop};

/// psql's exit and everything that it said.
fn psql(connection: &str, password: &str, sql: &str) -> (bool, String) {
    let mut psql = Command::new("psql");
    psql.args(["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose", "-c", sql]);
    psql.arg(format!("dbname=postgres connect_timeout=20 {connection}"));
    psql.env("PGPASSWORD", password).env("PGPASSFILE", "/nonexistent/pgpass").env("HOME", "/nonexistent");
    let output = psql.output().expect("psql runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), said.trim_end().to_owned())
}

fn answers(connection: &str, password: &str, sql: &str) -> String {
    let (ended_well, said) = psql(connection, password, sql);
    assert!(ended_well, "{connection}: {sql}: {said}");
    said
}

fn refused(connection: &str, password: &str, sql: &str, with: &str) {
    let (ended_well, said) = psql(connection, password, sql);
    assert!(!ended_well && said.contains(with), "{connection}: {sql}: expected \"{with}\", psql said: {said}");
}

fn openssl(directory: &Path, arguments: &str) {
    let output =
        Command::new("openssl").args(arguments.split(' ')).current_dir(directory).output().expect("openssl runs");
    assert!(output.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A certificate with this common name, signed by `authority`, in `NAME.crt` and `NAME.key`.
fn certificate(directory: &Path, authority: &str, name: &str) {
    openssl(
        directory,
        &format!("req -new -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr -subj /O=x/CN={name}"),
    );
    std::fs::write(directory.join("ext"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n").expect("writes");
    let sign = format!(
        "x509 -req -in {name}.csr -CA {authority}.crt -CAkey {authority}.key -CAcreateserial -days 2 -extfile ext"
    );
    openssl(directory, &format!("{sign} -out {name}.crt"));
    let key = std::fs::File::open(directory.join(format!("{name}.key"))).expect("the key");
    let private = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o600);
    key.set_permissions(private).expect("private");
}

fn authority(directory: &Path, name: &str) {
    let key = "-newkey rsa:2048 -nodes -days 2";
    openssl(directory, &format!("req -x509 {key} -keyout {name}.key -out {name}.crt -subj /CN={name}"));
}

fn write(path: &Path, text: &str) {
    let mut file = std::fs::File::create(path).expect("creates");
    file.write_all(text.as_bytes()).expect("writes");
}

fn hangup(running: &Running) {
    let pid = running.child.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &pid]).status().expect("kill runs").success());
}

/// Waits until the server has done what a signal asks for.
fn until(what: &str, done: impl Fn() -> bool) {
    for _ in 0..600 {
        if done() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("it never came to pass: {what}");
}

fn user_of_this_process() -> String {
    let output = Command::new("id").arg("-un").output().expect("id runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Files, and a server that is configured by them.
struct Place {
    directory: PathBuf,
    rules: String,
    settings: String,
    me: String,
    running: Running,
    /// psql's connection as the superuser.
    root: String,
}

impl Place {
    fn path(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }

    fn plain(&self, user: &str) -> String {
        format!("port={} host=127.0.0.1 sslmode=disable user={user}", self.running.port)
    }

    fn tls(&self, user: &str) -> String {
        let port = self.running.port;
        format!("port={port} host=127.0.0.1 user={user} sslmode=verify-full sslrootcert={}", self.path("ca.crt"))
    }

    /// With the client certificate of `of`.
    fn with(&self, user: &str, of: &str) -> String {
        let (certificate, key) = (self.path(&format!("{of}.crt")), self.path(&format!("{of}.key")));
        format!("{} sslcert={certificate} sslkey={key}", self.tls(user))
    }
}

fn begin() -> Place {
    let directory = scratch("door");
    std::fs::create_dir_all(&directory).expect("a directory");
    for name in ["ca", "clients", "strangers"] {
        authority(&directory, name);
    }
    certificate(&directory, "ca", "server");
    certificate(&directory, "ca", "second");
    certificate(&directory, "clients", "ann");
    certificate(&directory, "strangers", "bob");
    let path = |name: &str| directory.join(name).display().to_string();
    let me = user_of_this_process();
    let rules = format!(
        "# TYPE DATABASE USER ADDRESS METHOD\n\
         local all \"{me}\",postgres peer\n\
         hostnossl all postgres 127.0.0.1/32 trust\n\
         hostssl all ann all cert\n\
         hostssl all bob all scram-sha-256 clientcert=verify-ca\n\
         host all +staff all scram-sha-256\n\
         host all all all reject\n"
    );
    write(&directory.join("access"), &rules);
    let settings = format!(
        "access_file = {}\ntls_certificate = {}\ntls_key = {}\ntls_client_ca = {}\nunix_socket_directory = {}\nlock_timeout = 3s\n",
        path("access"),
        path("server.crt"),
        path("server.key"),
        path("clients.crt"),
        directory.display()
    );
    write(&directory.join("conf"), &settings);
    let data = directory.join("data");
    let running = start_with(&data, &["--config".to_owned(), path("conf")]);
    let root = format!("port={} host=127.0.0.1 sslmode=disable user=postgres", running.port);
    let setup = format!(
        "create role \"{me}\" login; create role ann login; create role bob login password 'pass word'; create role staff; \
         create role carl login in role staff password 'pass word'; create role dora login password 'pass word'"
    );
    answers(&root, "", &setup);
    Place { directory, rules, settings, me, running, root }
}

/// The rules, in their order.
fn the_first_rule_that_fits_decides(p: &Place) {
    let (port, directory, me) = (p.running.port, &p.directory, &p.me);
    let socket = format!("port={port} host={}", directory.display());
    assert_eq!(answers(&format!("{socket} user={me}"), "", "select current_user"), *me);
    if me != "postgres" {
        refused(&format!("{socket} user=postgres"), "", "select 1", "peer authentication failed for user \"postgres\"");
    }
    assert_eq!(answers(&p.with("ann", "ann"), "", "select current_user"), "ann");
    refused(&p.tls("ann"), "", "select 1", "requires a valid client certificate");
    refused(&p.with("bob", "bob"), "pass word", "select 1", "");
    assert_eq!(
        answers(&p.with("bob", "ann"), "pass word", "select current_user"),
        "bob",
        "any valid certificate, and a password"
    );
    refused(&p.with("bob", "ann"), "wrong", "select 1", "password authentication failed");
    refused(&p.with("postgres", "ann"), "", "select 1", "reject");
    refused(&p.plain("dora"), "pass word", "select 1", "reject");
    assert_eq!(answers(&p.plain("carl"), "pass word", "select current_user"), "carl", "a member of staff");
}

/// Channel binding: libpq proves to the server which certificate it has seen, or refuses to go on.
fn a_login_is_bound_to_the_certificate(p: &Place) {
    let bound = format!("{} channel_binding=require", p.tls("carl"));
    assert_eq!(answers(&bound, "pass word", "select current_user"), "carl");
    refused(&bound, "wrong", "select 1", "password authentication failed");
    assert_eq!(answers(&format!("{} channel_binding=disable", p.tls("carl")), "pass word", "select 1"), "1");
}

/// Another certificate, other rules, other settings, by SIGHUP.
fn a_hangup_reads_everything_again(p: &Place) {
    let (directory, port) = (&p.directory, p.running.port);
    let bound = format!("{} channel_binding=require", p.tls("carl"));
    write(&directory.join("access"), &p.rules.replace("host all +staff all scram-sha-256\n", ""));
    let settings =
        p.settings.replace("server.", "second.").replace("lock_timeout = 3s", "lock_timeout = 4s\nmax_connections = 7");
    write(&directory.join("conf"), &settings);
    assert_eq!(answers(&p.root, "", "show lock_timeout"), "3s");
    hangup(&p.running);
    until("lock_timeout of the file", || answers(&p.root, "", "show lock_timeout") == "4s");
    until("the rules", || !psql(&bound, "pass word", "select 1").0);
    refused(&p.plain("carl"), "pass word", "select 1", "reject");
    let shown = format!(
        "openssl s_client -starttls postgres -connect 127.0.0.1:{port} </dev/null 2>/dev/null | openssl x509 -noout -subject"
    );
    let subject = Command::new("sh").args(["-c", &shown]).output().expect("openssl runs");
    assert!(String::from_utf8_lossy(&subject.stdout).contains("second"), "{subject:?}");
    let pending = "select name, setting, pending_restart from pg_settings where name in ('max_connections', 'lock_timeout') order by 1";
    assert_eq!(answers(&p.root, "", pending), "lock_timeout|4000|f\nmax_connections|5000|t");
}

fn a_mistake_changes_nothing(p: &Place) {
    let directory = &p.directory;
    write(&directory.join("access"), "host all all all maybe\n");
    assert_eq!(answers(&p.root, "", "select pg_reload_conf()"), "f");
    let errors = "select line_number, type, error from pg_hba_file_rules";
    assert_eq!(answers(&p.root, "", errors), "1||invalid authentication method \"maybe\"");
    write(&directory.join("access"), &p.rules);
    assert_eq!(answers(&p.root, "", "select pg_reload_conf()"), "t");
    let counted = "select count(*), string_agg(auth_method, ',' order by line_number) from pg_hba_file_rules";
    assert_eq!(answers(&p.root, "", counted), "6|peer,trust,cert,scram-sha-256,scram-sha-256,reject");
}

/// As PostgreSQL refuses it.
fn alter_system_refuses(p: &Place) {
    for (sql, state) in [
        ("alter system set nothing = 1", "42704"),
        ("alter system set data = 'x'", "55P02"),
        ("alter system set access_file = '/etc/passwd'", "55P02"),
        ("alter system set role = 'x'", "55P02"),
        ("alter system set max_connections = 'many'", "22023"),
        ("alter system set lock_timeout = 'long'", "22023"),
        ("begin; alter system set lock_timeout = '1s'", "25001"),
        ("set max_connections = 5", "55P02"),
    ] {
        refused(&p.root, "", sql, state);
    }
    let ann = format!("{} options='-c role=ann'", p.root);
    for sql in [
        "alter system reset all",
        "alter system set lock_timeout = '1s'",
        "select pg_reload_conf()",
        "show tls_key",
        "select * from pg_file_settings",
        "select * from pg_hba_file_rules",
    ] {
        refused(&ann, "", sql, "42501");
    }
    assert_eq!(
        answers(&ann, "", "select count(*) from pg_settings where name = 'tls_key' or sourcefile is not null"),
        "0"
    );
}

/// A value that wins over the file, and not over the session's own.
fn alter_system_keeps(p: &Place) {
    let carried = format!("{} options='-c statement_timeout=77s'", p.root);
    let script = "set idle_session_timeout = 0;\n\
                  alter system set idle_session_timeout = '50min'; alter system set statement_timeout = '40min';\n\
                  alter system set lock_timeout = '5s'; alter system set search_path = \"A b\", public;\n\
                  select pg_reload_conf(); show idle_session_timeout; show statement_timeout; show lock_timeout; show search_path;";
    let mut one_by_one = Command::new("psql");
    one_by_one.args(["-X", "-A", "-t", "-q", "-d", &format!("dbname=postgres {carried}")]);
    let mut child =
        one_by_one.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().expect("psql");
    child.stdin.take().expect("piped").write_all(script.as_bytes()).expect("written");
    let said = String::from_utf8(child.wait_with_output().expect("psql ends").stdout).expect("text");
    assert_eq!(said, "t\n0\n77s\n5s\n\"A b\", public\n", "what the session has set itself stays");
    let decided =
        "select setting, source, sourcefile like '%clearway.auto.conf' from pg_settings where name = 'lock_timeout'";
    assert_eq!(answers(&p.root, "", decided), "5000|configuration file|t");
}

#[test]
fn rules_certificates_and_settings_are_read_again() {
    let p = begin();
    the_first_rule_that_fits_decides(&p);
    a_login_is_bound_to_the_certificate(&p);
    a_hangup_reads_everything_again(&p);
    a_mistake_changes_nothing(&p);
    alter_system_refuses(&p);
    alter_system_keeps(&p);
    let (conf, directory) = (p.path("conf"), p.directory);
    let data = directory.join("data");
    stop(p.running);

    let running = start_with(
        &data,
        &["--config".to_owned(), conf.clone(), "-c".to_owned(), "idle_session_timeout=60min".to_owned()],
    );
    let root = format!("port={} host=127.0.0.1 sslmode=disable user=postgres", running.port);
    let all = "select string_agg(setting, ' ' order by name) from pg_settings \
               where name in ('idle_session_timeout', 'lock_timeout', 'max_connections', 'statement_timeout')";
    assert_eq!(
        answers(&root, "", all),
        "3600000 5000 7 2400000",
        "the command line, the file of ALTER SYSTEM, the other file"
    );
    stop(running);

    // A start refuses what a reload would leave out.
    write(&data.join("clearway.auto.conf"), "lock_timeout = '5s'\nnonsense = 1\n");
    let refuses = |with: &str| {
        let output = command(&data).args(["--config".to_owned(), conf.clone()]).output().expect("runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(with), "expected \"{with}\", it said: {said}");
    };
    refuses("clearway.auto.conf: line 2: unrecognized configuration parameter \"nonsense\"");
    write(&data.join("clearway.auto.conf"), "");
    write(&directory.join("access"), "local all all maybe\n");
    refuses("access: line 1: invalid authentication method \"maybe\"");
    let _ = std::fs::remove_dir_all(&directory);
}

/// The body of the next message.
fn message(stream: &mut std::net::TcpStream) -> Vec<u8> {
    let mut head = [0; 5];
    stream.read_exact(&mut head).expect("an answer");
    let mut body = vec![0; u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize - 4];
    stream.read_exact(&mut body).expect("its body");
    body
}

/// The first salt that a server gives for a role that does not exist, by the protocol itself.
fn salt_of(port: u16, user: &str) -> String {
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).expect("connects");
    let mut packet = 196_608u32.to_be_bytes().to_vec();
    packet.extend_from_slice(format!("user\0{user}\0database\0postgres\0\0").as_bytes());
    stream.write_all(&(packet.len() as u32 + 4).to_be_bytes()).expect("sent");
    stream.write_all(&packet).expect("sent");
    let _offer = message(&mut stream);
    let first = "n,,n=,r=abcdefgh";
    let mut body = b"SCRAM-SHA-256\0".to_vec();
    body.extend_from_slice(&(first.len() as u32).to_be_bytes());
    body.extend_from_slice(first.as_bytes());
    stream.write_all(b"p").expect("sent");
    stream.write_all(&(body.len() as u32 + 4).to_be_bytes()).expect("sent");
    stream.write_all(&body).expect("sent");
    let body = message(&mut stream);
    let text = String::from_utf8_lossy(&body[4..]).into_owned();
    text.split(",s=").nth(1).and_then(|rest| rest.split(',').next()).expect("a salt").to_owned()
}

/// Else a stranger that asks before and after a restart learns which roles exist.
#[test]
fn the_salt_of_a_role_that_does_not_exist_outlives_a_restart() {
    let data = scratch("salts");
    let password = ["-c".to_owned(), "password_on_loopback=on".to_owned()];
    let running = start_with(&data, &password);
    let (one, other) = (salt_of(running.port, "nobody"), salt_of(running.port, "somebody"));
    assert_ne!(one, other);
    assert_eq!(one, salt_of(running.port, "nobody"));
    stop(running);
    let running = start_with(&data, &password);
    assert_eq!(salt_of(running.port, "nobody"), one);
    assert_eq!(salt_of(running.port, "somebody"), other);
    stop(running);
    let _ = std::fs::remove_dir_all(&data);
}
