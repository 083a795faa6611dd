//! The table of pools when it is full: in a process of its own, since a pool is never freed.

use clearway_base::memory::{POOLS_MAX, Pool};

#[test]
fn there_are_so_many_pools_and_no_more() {
    assert!((0..POOLS_MAX).all(|_| Pool::new().is_some()));
    assert_eq!(Pool::new(), None);
}
