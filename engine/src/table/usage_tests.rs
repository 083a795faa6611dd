use super::*;

fn no_catalog() -> Arc<Catalog> {
    Arc::default()
}

#[test]
fn what_a_session_does_is_added_when_its_transaction_ends() {
    let (usage, mut used) = (Usage::default(), Used::default());
    let tally = usage.tally(5);
    used.looked_up(7, true);
    used.looked_up(7, false);
    used.walked(8, true, true, 100);
    used.walked(8, false, true, 20);
    used.walked_index(8, 9, true, true);
    used.walked_index(8, 9, false, false);
    (0..5).for_each(|_| used.inserted(8));
    used.deleted(8, 1);
    assert_eq!(used.examined()[..3], [122, 1, 0]);
    used.sought(7);
    assert_eq!(used.examined()[..3], [122, 1, 7]);
    assert!(usage.all().is_empty());
    usage.add(&mut used, &tally, Ended::Committed, no_catalog);
    assert!(used.open().is_empty());
    let all = usage.all();
    assert_eq!(all[&7], Use { lookups: 2, lookup_rows: 1, leaves: 2, ..Use::default() });
    let table =
        Use { whole: 1, whole_rows: 120, fetched: 1, inserted: 5, deleted: 1, leaves: 9, live: 4, ..Use::default() };
    assert_eq!(all[&8], table);
    assert_eq!(all[&9], Use { lookups: 1, lookup_rows: 1, leaves: 1, ..Use::default() });
    used.inserted(8);
    usage.add(&mut used, &tally, Ended::RolledBack, no_catalog);
    let (all, of) = (usage.all(), usage.databases()[&5]);
    assert_eq!((all[&8].inserted, all[&8].live), (6, 4), "rows of a transaction that was rolled back are not there");
    assert_eq!((of.commits, of.rollbacks, of.all.inserted), (1, 1, 6));
    // What a shard has and what tallies have.
    let wide: Vec<u32> = (100..120).collect();
    wide.iter().for_each(|oid| used.inserted(*oid));
    usage.add(&mut used, &tally, Ended::Committed, no_catalog);
    let (all, these) = (usage.all(), usage.of_these(&[8, 9, 101, 119, 7_000]));
    let expected = [8, 9, 101, 119].map(|oid| (oid, all[&oid])).into_iter().chain([(7_000, Use::default())]);
    assert_eq!(these, expected.collect());
    usage.reset(5, |oid| oid == 8);
    assert_eq!(usage.all()[&8], Use { live: 4, ..Use::default() });
    assert_eq!(usage.all()[&7].lookups, 2);
}

#[test]
fn what_is_saved_is_restored() {
    let (usage, mut used) = (Usage::default(), Used::default());
    let tally = usage.tally(5);
    used.looked_up(7, true);
    used.deleted(7, 1);
    usage.add(&mut used, &tally, Ended::Committed, no_catalog);
    let again = Usage::default();
    again.restore(&format!("nonsense\nr 1 2\n{}", usage.saved()));
    assert_eq!((again.all(), again.databases()), (usage.all(), usage.databases()));
}

/// USE-1
#[test]
fn tables_without_number_are_bounded() {
    let (usage, mut used) = (Usage::default(), Used::default());
    let tally = usage.tally(5);
    for oid in 0..3 * ENTRIES_MAX as Oid {
        used.looked_up(oid, true);
        usage.add(&mut used, &tally, Ended::Committed, no_catalog);
    }
    assert!(usage.all().len() <= ENTRIES_MAX);
    assert_eq!(usage.databases()[&5].all.lookups, 3 * ENTRIES_MAX as u64);
}

/// What a session has done with one row of each of these tables.
fn look_up(usage: &Usage, used: &mut Used, tally: &Arc<UseTally>, tables: impl Iterator<Item = Oid>) {
    tables.for_each(|oid| used.looked_up(oid, true));
    usage.add(used, tally, Ended::Committed, no_catalog);
}

/// UTL-2: of more tables than a tally has places, and of sessions that end, each use is counted once.
#[test]
fn tables_without_a_place_and_sessions_that_end_are_counted_once() {
    let usage = Usage::default();
    let mut expected = HashMap::new();
    for session in 0..3u32 {
        let (mut used, tally) = (Used::default(), usage.tally(5));
        for turn in 0..500u32 {
            // First the same few tables, then others, which take their places.
            let tables = (100 * (turn / 250)..).take(20).map(|oid| oid + 7);
            tables.clone().for_each(|oid| *expected.entry(oid).or_insert(0u64) += 1);
            look_up(&usage, &mut used, &tally, tables);
            let database = usage.databases()[&5];
            assert_eq!(
                (database.commits, database.all.lookups),
                (u64::from(session * 500 + turn + 1), expected.values().sum())
            );
        }
        assert!(tally.uses().all(|(oid, _)| oid >= 107), "UTL-2: the tables of the second half have the places");
        usage.leave(&tally, no_catalog);
    }
    let counted: HashMap<Oid, u64> = usage.all().into_iter().map(|(oid, used)| (oid, used.lookups)).collect();
    assert_eq!(counted, expected);
    assert!(expected.iter().all(|(oid, lookups)| usage.of(*oid).lookups == *lookups));
    let again = Usage::default();
    again.restore(&usage.saved());
    assert_eq!((again.all(), again.databases()), (usage.all(), usage.databases()));
}

/// UTL-3
#[test]
fn a_reset_forgets_what_tallies_hold_and_nothing_that_comes_later() {
    let usage = Usage::default();
    let sessions: Vec<_> = [5, 5, 6].into_iter().map(|database| usage.tally(database)).collect();
    let mut used = Used::default();
    for tally in &sessions {
        used.inserted(8);
        look_up(&usage, &mut used, tally, 8..10);
    }
    usage.reset_one(9);
    assert_eq!((usage.of(9), usage.of(8).lookups), (Use::default(), 3));
    usage.reset(5, |oid| oid == 8);
    assert_eq!(usage.of(8), Use { live: 3, ..Use::default() });
    let databases = usage.databases();
    assert_eq!((databases[&5], databases[&6].commits), (DatabaseUse::default(), 1));
    sessions.iter().for_each(|tally| look_up(&usage, &mut used, tally, 8..10));
    let check = || {
        let (all, databases) = (usage.all(), usage.databases());
        assert_eq!((all[&8].lookups, all[&8].live, all[&9].lookups), (3, 3, 3));
        assert_eq!((databases[&5].commits, databases[&5].all.lookups, databases[&6].commits), (2, 4, 2));
    };
    check();
    // What was taken off stays so when the sessions have ended.
    sessions.iter().for_each(|tally| usage.leave(tally, no_catalog));
    check();
}

/// UTL-2: a reader never misses or doubles what moves from a tally to a shard meanwhile.
#[test]
fn a_reader_finds_each_use_once_while_sessions_count_and_end() {
    let usage = Usage::default();
    let over = std::sync::atomic::AtomicBool::new(false);
    let turns = 60u64;
    std::thread::scope(|threads| {
        let worker = || {
            for _ in 0..turns {
                let (mut used, tally) = (Used::default(), usage.tally(5));
                (0..40).for_each(|_| look_up(&usage, &mut used, &tally, 7..8));
                usage.leave(&tally, no_catalog);
            }
        };
        let workers = [threads.spawn(worker), threads.spawn(worker)];
        let reader = threads.spawn(|| {
            let mut last = 0;
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                let (of, all) = (usage.of(7).lookups, usage.all().get(&7).map_or(0, |used| used.lookups));
                assert!(last <= of && of <= all && all <= 2 * 40 * turns, "UTL-2: {last}, {of}, {all}");
                last = all;
            }
        });
        workers.into_iter().for_each(|worker| worker.join().expect("a worker ends"));
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        reader.join().expect("the reader ends");
    });
    assert_eq!(usage.of(7).lookups, 2 * 40 * turns);
}
