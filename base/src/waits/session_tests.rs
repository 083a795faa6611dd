use super::*;

#[test]
fn block_shows_the_wait_that_it_is_in() {
    let session = SessionStats::new("test");
    assert_eq!(session.current(), None);
    let wait = CurrentWait { event: WaitEvent::LockTuple, since_ns: 7, object: Object::new(1, 2), behind: 3 };
    session.show(&wait);
    assert_eq!(session.current(), Some(wait));
    session.show_nothing();
    session.show_nothing();
    assert_eq!(session.current(), None);
    assert!(sessions().iter().any(|s| s.id() == session.id()));
    let id = session.id();
    drop(session);
    assert!(super::session(id).is_none());
}

#[test]
fn a_statement_has_the_waits_since_the_one_before_it() {
    let session = SessionStats::new("test");
    let taken = || {
        let mut all = Vec::new();
        session.take_others(|event, count, ns| all.push((event, count, ns)));
        all
    };
    assert_eq!((taken(), session.client_ns(), session.has_others()), (vec![], 0, false));
    session.record(WaitEvent::WalSync, 5);
    session.record(WaitEvent::RunQueue, 1);
    session.record(WaitEvent::WalSync, 7);
    session.record_one(WaitEvent::ClientRead);
    session.record_time(WaitEvent::ClientRead, 4);
    assert!(session.has_others());
    let mut seen = Vec::new();
    session.peek_others(|event, ns| seen.push((event, ns)));
    assert_eq!(seen, [(WaitEvent::WalSync, 12)]);
    assert_eq!((taken(), session.client_ns()), (vec![(WaitEvent::WalSync, 2, 12)], 4));
    assert_eq!((session.take_queued(), session.take_queued()), ((1, 1), (0, 0)));
    assert_eq!((taken(), session.client_ns(), session.has_others()), (vec![], 4, false));
    session.woken(9);
    assert_eq!(session.current_or_ready().map(|wait| (wait.event, wait.since_ns)), Some((WaitEvent::RunQueue, 9)));
    session.polled();
    assert_eq!(session.current_or_ready(), None);
}

#[test]
fn readers_never_see_half_a_wait() {
    let session = SessionStats::new("test");
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            for n in 1..200_000 {
                let object = Object::new(n, n);
                session.show(&CurrentWait { event: WaitEvent::LockTuple, since_ns: n, object, behind: n });
                session.show_nothing();
            }
            stop.store(true, Relaxed);
        });
        while !stop.load(Relaxed) {
            if let Some(wait) = session.current() {
                let n = wait.since_ns;
                assert_eq!((wait.object, wait.behind), (Object::new(n, n), n), "SES-1");
            }
        }
    });
}
