//! Rows that change under old snapshots, without pages: what the book keeps, spills and shows is compared with a list of all versions.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use clearway_base::for_each_seed;
use clearway_base::sync::block_on;
use clearway_base::testkit::Rng;
use clearway_base::vfs::{MemVfs, Vfs};
use clearway_base::waits::VirtualClock;
use clearway_storage::ids::{Lsn, Tag, TreeId, TxnId};
use clearway_storage::record::BeforeImage;

use super::book::{Newest, VersionBook, View, Visible};
use super::holders::HoldKind;
use super::record::NewUndo;
use super::snapshots::Reader;
use super::spill::SpillFile;
use super::state::TxnState;
use super::undo::{Fetched, TagState};
use crate::lockmgr::{LockManager, LockMode, Owner};

const TREE: TreeId = TreeId(7);

struct Row {
    tag: Tag,
    value: Vec<u8>,
    ghost: bool,
}

/// Rows as leaves hold them, and a log that is durable up to where the test says.
struct World {
    book: VersionBook,
    owner: Arc<Owner>,
    locks: LockManager,
    rows: Vec<Row>,
    lsn: u64,
    durable: u64,
    commits: u64,
    /// What readers and writers fetched earlier on (UND-6).
    kept: RefCell<Fetched>,
}

impl World {
    fn new(rows: usize, budget: u64) -> World {
        let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
        block_on(async { vfs.create_dir(Path::new("/w")).await.expect("a directory") });
        let book = VersionBook::new(Tag::SETTLED);
        book.limit(budget, SpillFile::new(vfs, Path::new("/w")));
        let locks = LockManager::new();
        let row = |at: usize| Row { tag: Tag::SETTLED, value: at.to_le_bytes().to_vec(), ghost: false };
        let owner = locks.register(1);
        World {
            book,
            owner,
            locks,
            rows: (0..rows).map(row).collect(),
            lsn: 100,
            durable: 100,
            commits: 0,
            kept: RefCell::default(),
        }
    }

    fn begin(&self) -> Arc<TxnState> {
        self.book.begin(&self.owner)
    }

    /// Another value for a row, or none; as under its latch.
    fn change(&mut self, txn: &Arc<TxnState>, at: usize, value: Option<Vec<u8>>) {
        self.kept.get_mut().trim();
        let link = loop {
            let fetched = self.kept.get_mut();
            let tag = self.rows[at].tag;
            let missing = match self.book.newest(tag, txn.id(), fetched) {
                Newest::Spilled => tag,
                Newest::Busy(record) => panic!("{record:?}"),
                _ => match self.book.link(tag, fetched) {
                    Ok(link) => break link,
                    Err(missing) => missing,
                },
            };
            block_on(self.book.fetch(missing, fetched)).expect("readable");
        };
        let row = &mut self.rows[at];
        let before = BeforeImage::Row { ghost: row.ghost, overflow: false, value: row.value.clone().into() };
        let (tag, record) = self.book.undo().push(
            txn.id().0 as usize,
            NewUndo {
                txn: txn.clone(),
                tree: TREE,
                key: (at as u64).to_be_bytes().as_slice().into(),
                before,
                prev: link.prev,
                before_lsn: link.before_lsn,
                strength: LockMode::RowNoKeyUpdate,
                deletes: value.is_none(),
                rowless: false,
                over_shown: false,
                moved_to: None,
                intact_since: link.intact_since,
            },
        );
        self.lsn += 1;
        record.logged(Lsn(self.lsn), Lsn::ZERO);
        (row.tag, row.ghost, row.value) = (tag, value.is_none(), value.unwrap_or_default());
    }

    fn commit(&mut self, txn: &Arc<TxnState>) -> Lsn {
        self.lsn += 1;
        txn.committed(Lsn(self.lsn));
        self.book.publish(Lsn(self.lsn));
        self.book.end(txn.id());
        self.book.retire(txn, Lsn(self.lsn));
        self.commits += 1;
        if self.commits % 64 == 0 {
            self.book.prune(&self.book.prune_turn(), Lsn(self.durable));
        }
        Lsn(self.lsn)
    }

    fn roll_back(&mut self, txn: &Arc<TxnState>) {
        while let Some(tag) = txn.last_change() {
            let mut fetched = Fetched::default();
            block_on(self.book.fetch(tag, &mut fetched)).expect("readable");
            let TagState::InMemory(record) = self.book.undo().state_with(tag, &fetched) else {
                panic!("{tag:?} is lost")
            };
            let at = u64::from_be_bytes(record.key[..].try_into().expect("eight bytes")) as usize;
            let BeforeImage::Row { ghost, value, .. } = &record.before else { panic!("{record:?}") };
            self.rows[at] = Row { tag: record.prev, value: value.to_vec(), ghost: *ghost };
            txn.pop_change();
            block_on(self.book.forget(tag, &record)).expect("readable");
        }
        txn.aborted();
        self.book.end(txn.id());
    }

    fn update(&mut self, at: usize, value: &[u8]) -> Lsn {
        block_on(self.book.admit()).expect("room");
        let txn = self.begin();
        self.change(&txn, at, Some(value.to_vec()));
        let lsn = self.commit(&txn);
        self.durable = self.lsn;
        lsn
    }

    /// With what was fetched for other rows and at other times.
    fn read(&self, view: &View, at: usize) -> Option<Vec<u8>> {
        let mut kept = self.kept.borrow_mut();
        kept.trim();
        self.read_with(view, at, &mut kept)
    }

    fn read_with(&self, view: &View, at: usize, fetched: &mut Fetched) -> Option<Vec<u8>> {
        let (row, mut dep) = (&self.rows[at], Lsn::ZERO);
        loop {
            return match self.book.resolve(row.tag, view, &mut dep, fetched) {
                Visible::Current => (!row.ghost).then(|| row.value.clone()),
                Visible::Nothing => None,
                Visible::Both { .. } => panic!("no change here is over a row of a snapshot"),
                Visible::Older(record) => match &record.before {
                    BeforeImage::Row { ghost: false, value, .. } => Some(value.to_vec()),
                    _ => None,
                },
                Visible::Spilled(tag) => {
                    block_on(self.book.fetch(tag, fetched)).expect("readable");
                    continue;
                }
            };
        }
    }

    /// As the upkeep loop does.
    fn upkeep(&mut self) {
        self.book.prune(&self.book.prune_turn(), Lsn(self.durable));
        if self.book.has_moved() {
            self.book.recheck_kept(&self.book.prune_turn(), self.book.held());
        }
        block_on(self.book.tend()).expect("the file works");
        self.book.take_purgeable(usize::MAX);
    }

    fn records(&self) -> usize {
        let mut count = 0;
        self.book.undo().for_each(|_| count += 1);
        count
    }
}

fn view(lsn: Lsn) -> View {
    View { read_lsn: lsn, txn: TxnId::NONE, mark: 0 }
}

fn snapshot(world: &World, pid: i32) -> (Reader, Lsn) {
    let owner = world.locks.register(pid);
    owner.statement(&"SELECT sum(balance) FROM account".into());
    let mut reader = world.book.snapshots().reader_of(Some(owner));
    let lsn = reader.begin(|| Lsn(world.durable)).read_lsn;
    (reader, lsn)
}

#[test]
fn a_hot_row_under_an_old_snapshot_keeps_one_version_and_one_link() {
    // PRU-2: not one version a change.
    let mut world = World::new(1, 64 << 20);
    let (_reader, lsn) = snapshot(&world, 5);
    for n in 0..50_000_u64 {
        world.update(0, &n.to_be_bytes());
    }
    world.upkeep();
    assert_eq!(world.read(&view(lsn), 0), Some(0_usize.to_le_bytes().to_vec()));
    assert!(
        world.records() <= 2 + 64,
        "{} records: the first, a link, and what came since the last pruning",
        world.records()
    );
}

#[test]
fn a_row_that_comes_and_goes_under_an_old_snapshot_keeps_three_records() {
    let mut world = World::new(1, 64 << 20);
    let (mut reader, lsn) = snapshot(&world, 5);
    for n in 0..3000_u64 {
        for value in [None, Some(n.to_be_bytes().to_vec())] {
            let txn = world.begin();
            world.change(&txn, 0, value);
            world.commit(&txn);
            world.durable = world.lsn;
        }
    }
    world.upkeep();
    assert_eq!(world.read(&view(lsn), 0), Some(0_usize.to_le_bytes().to_vec()));
    assert!(world.records() <= 3 + 64, "{} records", world.records());
    reader.end(super::snapshots::Snapshot { read_lsn: lsn });
    world.upkeep();
    assert_eq!(world.records(), 0, "nobody reads any of it");
}

/// FAT-1, FAT-3: rows that come, change and go, read under snapshots of many ages. In a debug build the walk of all records is compared, too.
#[test]
fn the_fate_of_a_row_is_its_first_end_after_a_moment() {
    let mut judged = 0;
    for seed in 0..40 {
        let (mut world, mut rng) = (World::new(1, 64 << 20), Rng::new(seed));
        let (mut snapshots, mut ends) = (Vec::new(), Vec::<Lsn>::new());
        for step in 0..200_u32 {
            if rng.below(3) == 0 {
                snapshots.push(snapshot(&world, 10 + step as i32));
            }
            if snapshots.len() > 12 || rng.below(20) == 0 && !snapshots.is_empty() {
                let (mut reader, lsn) = snapshots.swap_remove(rng.below(snapshots.len() as u64) as usize);
                reader.end(super::snapshots::Snapshot { read_lsn: lsn });
            }
            let txn = world.begin();
            let mut is_ended = false;
            for _ in 0..=rng.below(3) {
                let deletes = !world.rows[0].ghost && rng.below(6) == 0;
                is_ended |= deletes;
                world.change(&txn, 0, (!deletes).then(|| step.to_be_bytes().to_vec()));
            }
            if rng.below(8) == 0 {
                world.roll_back(&txn);
            } else {
                let lsn = world.commit(&txn);
                ends.extend(is_ended.then_some(lsn));
            }
            world.durable = world.lsn;
            if rng.below(30) == 0 {
                world.upkeep();
            }
            for (_, lsn) in &snapshots {
                let head = world.rows[0].tag;
                let fate = world.book.fate(head, (&view(*lsn)).into(), (TxnId::NONE, 0), &Fetched::default());
                let fate = fate.expect("nothing is in a file");
                if fate.unknown {
                    continue;
                }
                judged += 1;
                let first = ends.iter().find(|end| *end > lsn).copied();
                assert_eq!(fate.end.map(|end| end.at.commit), first, "FAT-1 since {lsn:?}, seed {seed}, step {step}");
            }
        }
    }
    assert!(judged > 1000, "{judged}");
}

#[test]
fn memory_stays_within_the_budget_and_the_old_snapshot_reads_on() {
    // BUD-1, UND-5.
    const ROWS: usize = 20_000;
    const BUDGET: u64 = 1 << 20;
    let mut world = World::new(ROWS, BUDGET);
    let (mut reader, lsn) = snapshot(&world, 5);
    let mut rng = Rng::new(11);
    let mut highest = 0;
    for n in 0..100_000_u64 {
        let at = rng.below(ROWS as u64) as usize;
        world.update(at, &[n.to_be_bytes(); 12].concat());
        highest = highest.max(world.book.usage().memory_bytes);
        if n % 1000 == 0 {
            world.upkeep();
        }
    }
    world.upkeep();
    // Beyond the budget: the chunks that writers are filling.
    assert!(highest <= BUDGET + 64 * 64 * 512, "{highest} bytes");
    let usage = world.book.usage();
    assert!(usage.file_bytes > BUDGET, "{usage:?}");
    assert!(usage.file_bytes < usage.written_bytes / 2, "what is superseded goes from the file: {usage:?}");
    for at in 0..ROWS {
        assert_eq!(world.read(&view(lsn), at), Some(at.to_le_bytes().to_vec()), "row {at} at {lsn:?}");
    }
    reader.end(super::snapshots::Snapshot { read_lsn: lsn });
    world.upkeep();
    world.upkeep();
    assert_eq!((world.records(), world.book.usage().spans), (0, 0), "{:?}", world.book.usage());
    assert_eq!(world.book.usage().file_bytes, 0, "SPN-1: every place has been given back");
}

#[test]
fn a_transaction_larger_than_the_budget_rolls_back() {
    // BUD-3: room is made although the only transaction, which holds all of it, goes on.
    let mut world = World::new(30_000, 1 << 20);
    let txn = world.begin();
    for at in 0..30_000 {
        block_on(world.book.admit()).expect("room");
        world.change(&txn, at, Some(vec![1; 100]));
    }
    let usage = world.book.usage();
    assert!(usage.memory_bytes < 4 << 20 && usage.spans > 0, "{usage:?}");
    let holder = world.book.holders().remove(0);
    assert_eq!((holder.kind, holder.pid, holder.txn), (HoldKind::Transaction, 1, Some(txn.id())));
    world.roll_back(&txn);
    for at in 0..30_000 {
        assert_eq!((world.rows[at].tag, &world.rows[at].value[..]), (Tag::SETTLED, &at.to_le_bytes()[..]));
    }
    world.upkeep();
    assert_eq!((world.records(), world.book.usage().spans), (0, 0));
}

/// Every version that a row has had, with the LSN of its commit.
type History = Vec<Vec<(Lsn, Option<Vec<u8>>)>>;

fn at_lsn(history: &[(Lsn, Option<Vec<u8>>)], lsn: Lsn) -> Option<Vec<u8>> {
    history.iter().rev().find(|(commit, _)| *commit <= lsn).and_then(|(_, value)| value.clone())
}

#[test]
fn snapshots_see_what_was_committed_when_they_began() {
    // VER-1, PRU-1, PRU-2, PRU-3, UND-2, UND-4: against all versions that ever were, with a budget so small that most of them move.
    for_each_seed!(20, |seed| {
        const ROWS: usize = 60;
        let mut rng = Rng::new(seed);
        let mut world = World::new(ROWS, 40_000);
        let mut history: History = (0..ROWS).map(|at| vec![(Lsn::ZERO, Some(at.to_le_bytes().to_vec()))]).collect();
        let mut open: Vec<(Reader, Lsn)> = Vec::new();
        for step in 0..4000_u64 {
            match rng.below(100) {
                0..=3 if open.len() < 6 => open.push(snapshot(&world, 9)),
                4..=6 if !open.is_empty() => {
                    let (mut reader, lsn) = open.swap_remove(rng.below(open.len() as u64) as usize);
                    reader.end(super::snapshots::Snapshot { read_lsn: lsn });
                }
                7..=10 => world.upkeep(),
                11..=14 => world.durable = world.lsn,
                15..=20 => _ = world.book.prune(&world.book.prune_turn(), Lsn(world.durable)),
                21..=40 if !open.is_empty() => {
                    let (_, lsn) = &open[rng.below(open.len() as u64) as usize];
                    let at = rng.below(ROWS as u64) as usize;
                    let past = at_lsn(&history[at], *lsn);
                    assert_eq!(world.read(&view(*lsn), at), past, "UND-6: step {step}: row {at} at {lsn:?}");
                    let fresh = world.read_with(&view(*lsn), at, &mut Fetched::default());
                    assert_eq!(fresh, past, "step {step}: row {at} at {lsn:?}");
                }
                kind => {
                    let txn = world.begin();
                    let mut changed = Vec::new();
                    for _ in 0..1 + rng.below(8) {
                        // Some rows are hot.
                        let rows = if rng.below(2) == 0 { 4 } else { ROWS as u64 };
                        let at = rng.below(rows) as usize;
                        let ghost = rng.below(5) == 0;
                        let value = (!ghost).then(|| vec![step as u8; 8 + rng.below(200) as usize]);
                        world.change(&txn, at, value.clone());
                        changed.push((at, value));
                    }
                    if kind < 50 {
                        if rng.below(2) == 0 {
                            world.upkeep();
                        }
                        world.roll_back(&txn);
                    } else {
                        let lsn = world.commit(&txn);
                        for (at, value) in changed {
                            history[at].push((lsn, value));
                        }
                    }
                }
            }
        }
        for (_, lsn) in &open {
            for (at, past) in history.iter().enumerate() {
                assert_eq!(world.read(&view(*lsn), at), at_lsn(past, *lsn), "at the end: row {at} at {lsn:?}");
            }
        }
        assert!(world.book.usage().written_bytes > 0, "something was spilled");
    });
}

#[test]
fn an_hour_long_snapshot_keeps_the_budget_and_is_named() {
    // 10,000 updates a second. Of each ten minutes one second is played unless CLEARWAY_LONG is set; the clock shows them all.
    const PER_SECOND: u64 = 10_000;
    const ROWS: u64 = 20_000;
    const BUDGET: u64 = 1 << 20;
    let every = if std::env::var_os("CLEARWAY_LONG").is_some() { 1 } else { 600 };
    let clock = Arc::new(VirtualClock::new());
    let _installed = clock.install();
    let mut world = World::new(ROWS as usize, BUDGET);
    let (reader, lsn) = snapshot(&world, 4711);
    let named = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let heard = named.clone();
    world.book.on_alarm(move |alarm| {
        let pid = alarm.holder.as_ref().map_or(0, |holder| holder.pid);
        heard.store(pid as u64, std::sync::atomic::Ordering::Relaxed);
    });
    let (mut rng, mut highest, mut file) = (Rng::new(3), 0, 0);
    for second in 0..3600_u64 {
        if every == 1 && second % 300 == 0 {
            println!("minute {}: memory at most {highest} bytes, file at most {file}", second / 60);
        }
        for n in 0..if second % every == 0 { PER_SECOND } else { 0 } {
            // Half of the updates go to a hundredth of the rows.
            let at = rng.below(if n % 2 == 0 { ROWS / 100 } else { ROWS });
            world.update(at as usize, &[second.to_be_bytes(); 10].concat());
            if n % 1000 == 0 {
                world.upkeep();
                let usage = world.book.usage();
                (highest, file) = (highest.max(usage.memory_bytes), file.max(usage.file_bytes));
            }
        }
        clock.advance(1_000_000_000);
    }
    println!("memory at most {highest} of {BUDGET} bytes, file at most {file}, {:?}", world.book.usage());
    assert!(highest <= BUDGET + 64 * 64 * 512, "{highest} bytes in memory");
    assert!(file <= ROWS * 1000, "{file} bytes in the file: it does not grow with every change");
    let holder = world.book.holders().remove(0);
    assert_eq!((holder.kind, holder.pid, holder.read_lsn), (HoldKind::Snapshot, 4711, Some(lsn)));
    assert_eq!(
        (holder.age_ns / 1_000_000_000, holder.statement.as_deref()),
        (3600, Some("SELECT sum(balance) FROM account"))
    );
    assert_eq!(named.load(std::sync::atomic::Ordering::Relaxed), 4711, "{:?}", world.book.alarms());
    for at in 0..ROWS as usize {
        assert_eq!(world.read(&view(lsn), at), Some(at.to_le_bytes().to_vec()), "row {at}");
    }
    drop(reader);
}
