//! The list of wait events against the enums, rows and documentation page that are generated from it.
// The page stands in the source tree, not in a database.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeSet;

use clearway_base::waits::{WaitClass, WaitEvent, markdown};

/// `CLEARWAY_REWRITE=1 cargo test -p clearway-base --test wait_events` writes the page anew.
#[test]
fn the_page_is_what_the_list_makes_of_it() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/wait-events.md");
    if std::env::var_os("CLEARWAY_REWRITE").is_some_and(|flag| flag == "1") {
        std::fs::write(path, markdown()).unwrap();
    }
    let page = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        page == markdown(),
        "docs/wait-events.md is not what base/wait_events.txt makes: run with CLEARWAY_REWRITE=1"
    );
}

#[test]
fn rows_agree_with_the_enum() {
    for (index, (&event, row)) in WaitEvent::all().iter().zip(WaitEvent::rows()).enumerate() {
        assert_eq!((event, event.index()), (row.event, index));
        assert_eq!(WaitEvent::from_index(index), Some(event));
        assert_eq!(format!("{event:?}"), row.variant);
        assert_eq!(row.class.name(), row.class_name);
        assert_eq!(row.legend, format!("{}: {}", row.class_name, row.name));
    }
    assert_eq!(WaitEvent::from_index(WaitEvent::COUNT), None);
    let shown: BTreeSet<_> = WaitEvent::rows().iter().map(|row| (row.class_name, row.name)).collect();
    assert_eq!(shown.len(), WaitEvent::COUNT, "no event is there twice");
}

#[test]
fn heavyweight_locks_have_the_names_of_postgresql() {
    assert_eq!(WaitClass::Lock.name(), "Lock");
    assert_eq!(WaitEvent::LockTransactionid.name(), "transactionid");
    assert_eq!(WaitEvent::LockTuple.name(), "tuple");
    assert_eq!(WaitEvent::WalSync.name(), "WALSync");
}
