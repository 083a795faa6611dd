//! The accounts, driven by hand: the allocator's hook is called as the allocator calls it.

use super::*;
use crate::sync::block_on;

#[test]
fn a_statement_is_refused_past_its_limit_and_goes_on_below_it() {
    let account = Account::open(71);
    block_on(charged(account, async {
        begin_statement(1 << 20);
        allocated(900 << 10);
        assert_eq!(check(), Ok(()));
        assert!(claim(200 << 10).is_err(), "MEM-5: a claim is judged beforehand");
        assert_eq!(claim(100 << 10), Ok(()));
        allocated(200 << 10);
        let excess = check().expect_err("past the limit");
        assert_eq!((excess.limit, excess.bytes_max), (Limit::Statement, 1 << 20));
        freed(1100 << 10);
        assert_eq!(check(), Ok(()), "what is freed may be used again");
        // MEM-4: what the session keeps counts to the next statement.
        let mut held = Held::new(Kind::Prepared);
        allocated(800 << 10);
        held.grow().expect("below the limit");
        assert!((held.bytes() - (800 << 10)).abs() < 1024);
        begin_statement(1 << 20);
        allocated(300 << 10);
        let excess = check().expect_err("with what is kept");
        assert_eq!(excess.most.map(|(kind, _)| kind), Some(Kind::Prepared));
        freed(1100 << 10);
        drop(held);
    }));
    let shown = accounts().into_iter().find(|shown| shown.pid == 71).expect("it is open");
    assert_eq!((shown.bytes, shown.refused), (0, 3), "MEM-1");
    account.close();
}

#[test]
fn what_is_held_by_one_is_not_held_by_another() {
    let account = Account::open(72);
    block_on(charged(account, async {
        begin_statement(0);
        let mut sort = Held::new(Kind::Sort);
        allocated(100_000);
        let mut hash = Held::new(Kind::Hash);
        allocated(300_000);
        hash.measure();
        allocated(50_000);
        sort.measure();
        let near = |a: i64, b: i64| (a - b).abs() < 4096;
        assert!(near(hash.bytes(), 300_000) && near(sort.bytes(), 150_000), "{sort:?} {hash:?}");
        // A buffer whose size its owner knows, made and freed while another one measures.
        let mut buffer = Held::new(Kind::Files);
        for bytes in [200_000, 50_000] {
            allocated(bytes);
            buffer.set(bytes);
            sort.measure();
            assert!(near(sort.bytes(), 150_000) && buffer.bytes() == bytes as i64, "{sort:?} {buffer:?}");
            freed(bytes);
            buffer.set(0);
        }
        sort.measure();
        assert!(near(sort.bytes(), 150_000), "{sort:?}");
        freed(450_000);
    }));
    let shown = accounts().into_iter().find(|shown| shown.pid == 72).expect("it is open");
    assert!(shown.kinds.is_empty(), "nothing is held any more: {shown:?}");
    account.close();
}

#[test]
fn what_is_uncharged_is_not_the_sessions() {
    let account = Account::open(73);
    block_on(charged(account, async {
        begin_statement(1 << 20);
        uncharged(|| allocated(8 << 20));
        assert_eq!(check(), Ok(()));
        uncharged(|| freed(8 << 20));
    }));
    let shown = accounts().into_iter().find(|shown| shown.pid == 73).expect("it is open");
    assert_eq!(shown.bytes, 0);
    account.close();
}

#[test]
fn what_is_uncharged_goes_to_the_server_in_steps() {
    // MEM-2: other tests move the server's account too, so the thread's own cell tells.
    let account = Account::open(75);
    block_on(charged(account, async {
        let outside = || HERE.with(|here| here.outside.get());
        let before = outside();
        for n in 1..=10 {
            uncharged(|| allocated(1 << 10));
            assert_eq!(outside() - before, n << 10, "not entered one by one");
        }
        uncharged(|| allocated(THREAD_BYTES as usize - 1));
        assert_eq!(outside(), 0, "entered past the step");
        uncharged(|| freed(THREAD_BYTES as usize - 1 + (10 << 10)));
    }));
    account.close();
}

#[test]
fn sessions_of_a_pool_share_its_limit() {
    let pool = Pool::new().expect("there are few");
    pool.set(8 << 20, "role \"a\"");
    let (first, second) = (Account::open(73), Account::open(74));
    block_on(charged(first, async {
        join([None, Some(pool)]);
        begin_statement(0);
        allocated(5 << 20);
        assert_eq!(check(), Ok(()));
    }));
    assert_eq!(pool.bytes(), 5 << 20, "POOL-1");
    block_on(charged(second, async {
        join([Some(pool), None]);
        begin_statement(0);
        allocated(1 << 19);
        allocated(1 << 19);
        assert_eq!(check(), Ok(()));
        allocated(4 << 20);
        let excess = check().expect_err("both have more than the limit");
        assert_eq!((excess.limit, excess.of.as_deref()), (Limit::Pool(pool), Some("role \"a\"")));
        assert_eq!(refused_by(), Some(pool));
        freed(5 << 20);
    }));
    block_on(charged(first, async { freed(5 << 20) }));
    first.close();
    assert_eq!(pool.bytes(), second.bytes(), "POOL-1");
    second.close();
    assert_eq!(pool.bytes(), 0, "POOL-1");
}
