//! Tests of the list of sessions.

use super::*;

#[test]
fn a_cancel_needs_the_secret_and_a_dropped_session_is_gone() {
    let backends = Arc::new(Backends::default());
    let listed = backends.list(SessionStats::new("client"), 42, ClientIdentity::default());
    let backend = Arc::clone(listed.backend());
    backends.cancel(backend.pid, 41);
    assert_eq!(backend.interrupt.pending(), None);
    backends.cancel(backend.pid, 42);
    assert_eq!(backend.interrupt.pending(), Some(Reason::Cancel));
    assert_eq!(backends.count(), 1);
    drop(listed);
    assert_eq!(backends.count(), 0, "BCK-1");
    assert!(!backends.raise(backend.pid, Reason::Terminate));
}

#[test]
fn a_password_is_taken_out_of_a_text() {
    let shown = |sql: &str| redacted(sql).into_owned();
    assert_eq!(shown("alter role x PassWord 'se''cret;' login"), "alter role x PassWord <redacted> login");
    assert_eq!(shown("create role x password E'a\\'b'"), "create role x password E<redacted>");
    assert_eq!(shown("create role x password $a$secret$a$"), "create role x password <redacted>");
    assert_eq!(shown("create role x password 'a'; alter role y password 'b'"), "create role x password <redacted>");
    assert_eq!(
        shown("select password from t; alter role y password 'b' login"),
        "select password from t; alter role y password <redacted> login"
    );
    assert_eq!(shown("select password from t"), "select password from t");
    assert_eq!(
        shown("alter role x password 'unfinished"),
        "alter role x password <redacted>unfinished".replace("unfinished", "")
    );
    assert!(matches!(redacted("select 1"), std::borrow::Cow::Borrowed(_)));
    assert_eq!(shown("password; password 'a'"), "password; password <redacted>");
    // Each of them once, and not on a stack.
    let long = "password;".repeat(1 << 20);
    assert!(matches!(redacted(&long), std::borrow::Cow::Borrowed(_)));
    assert_eq!(shown(&format!("{long} alter role x password 'b'")), format!("{long} alter role x password <redacted>"));
}

#[test]
fn a_command_shows_its_own_parameters() {
    let backends = Arc::new(Backends::default());
    let listed = backends.list(SessionStats::new("client"), 1, ClientIdentity::default());
    let (backend, query) = (listed.backend(), Arc::from("select $1"));
    let shown = || backend.activity.lock().parameters.clone();
    for now in [&[Datum::Int4(1)][..], &[Datum::Int4(2)], &[Datum::Null, Datum::Int4(3)]] {
        backend.runs_from(waits::now_ns(), &query, Some(now));
        assert_eq!(shown().as_deref(), Some(now));
    }
    let seen = shown();
    backend.runs_from(waits::now_ns(), &query, Some(&[Datum::Int4(4), Datum::Int4(5)]));
    assert_eq!(seen.as_deref(), Some(&[Datum::Null, Datum::Int4(3)][..]), "whoever looked has what was there");
    backend.runs_from(waits::now_ns(), &query, None);
    assert_eq!(shown(), None);
}

#[test]
fn a_transaction_keeps_its_start() {
    let backends = Arc::new(Backends::default());
    let listed = backends.list(SessionStats::new("client"), 1, ClientIdentity::default());
    listed.backend().runs("begin".into());
    listed.backend().rests(BackendState::IdleInTransaction, waits::now_ns());
    let began_us = listed.backend().activity.lock().xact_start_us;
    assert!(began_us > 0);
    listed.backend().runs("select 1".into());
    assert_eq!(listed.backend().activity.lock().xact_start_us, began_us);
    listed.backend().rests(BackendState::Idle, waits::now_ns());
    assert_eq!(listed.backend().activity.lock().xact_start_us, 0);
}
