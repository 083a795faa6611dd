//! A panic in the middle of a page's change: it is unknown how much of it was made, so the database accepts no change any more.

use clearway_base::sync::block_on;
use clearway_engine::embedded::Database;
use clearway_storage::buffer::OwnedPin;
use clearway_storage::ids::PageId;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

#[test]
fn a_panic_while_a_page_is_being_changed_poisons_the_database() {
    let db = Database::in_memory().expect("a database");
    let table = db.table::<i64, (i64,)>("t", &["id"], &["v"]).expect("a table");
    db.transact(|txn| txn.put(&table, &1, &(1,))).expect("committed");
    let store = db.engine().transactions().store().clone();
    let pin = block_on(OwnedPin::existing(store.pool(), PageId(0))).expect("the first page");
    // Looking at a page changes nothing.
    let looked = catch_unwind::<_, ()>(AssertUnwindSafe(|| {
        let _latched = pin.latch();
        resume_unwind(Box::new("planted"))
    }));
    assert!(looked.is_err() && store.pool().poisoned().is_ok());
    db.transact(|txn| txn.put(&table, &1, &(2,))).expect("committed");
    let changed = catch_unwind::<_, ()>(AssertUnwindSafe(|| {
        let mut latched = pin.latch();
        latched.will_change();
        resume_unwind(Box::new("planted"))
    }));
    assert!(changed.is_err());
    let told = store.pool().poisoned().expect_err("poisoned").to_string();
    assert!(told.contains("while a page was being changed"), "{told}");
    assert!(db.transact(|txn| txn.put(&table, &1, &(3,))).is_err(), "the change was accepted");
    // The latch is free.
    drop(pin.latch());
    assert_eq!(db.transact(|txn| txn.get(&table, &1)).expect("reads go on"), Some((2,)));
}
