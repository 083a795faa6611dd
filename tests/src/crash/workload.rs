//! Random transactions by several tasks, and a record of the acknowledgements that they got.

use super::txns::{Book, Held, Txn};
use clearway_base::testkit::{Rng, yield_now};
use clearway_storage::error::StorageError;
use clearway_storage::ids::{Lsn, TreeId};
use clearway_storage::store::Store;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Rows by tree and key.
pub type Rows = BTreeMap<(TreeId, Vec<u8>), Vec<u8>>;

/// What one task has committed.
#[derive(Clone, Debug, Default)]
pub struct Committed {
    /// Its rows after each commit, by the commit's LSN.
    pub states: Vec<(Lsn, Rows)>,
    /// The last commit that was acknowledged.
    pub acknowledged: Lsn,
}

/// What happened, seen from outside.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// By task; task 0 made the shared trees.
    pub tasks: Vec<Committed>,
    /// The shared trees.
    pub trees: Vec<TreeId>,
    /// Errors are expected: a task rolls back and goes on, as a client would.
    pub tolerant: bool,
    /// The errors that it met then.
    pub errors: Vec<StorageError>,
}

impl History {
    /// The log ended at `end`: commits behind that never were.
    pub fn forget_above(&mut self, end: Lsn) {
        self.tasks.iter_mut().for_each(|task| task.states.retain(|(lsn, _)| *lsn <= end));
    }
}

/// Shared with the tasks; survives the crash that drops them.
pub type Shared = Arc<Mutex<History>>;

/// What the workload does.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Tasks.
    pub tasks: u64,
    /// Transactions per task.
    pub txns: u64,
    /// Keys per task and tree.
    pub keys: u64,
    /// The longest value in a leaf, in bytes.
    pub value_bytes: u64,
    /// The longest value in a chain of pages, in bytes.
    pub chain_bytes: u64,
}

impl Default for Size {
    fn default() -> Self {
        Size { tasks: 3, txns: 10, keys: 40, value_bytes: 300, chain_bytes: 40_000 }
    }
}

impl Size {
    /// Values of some megabytes, longer than the ring, the cache and the log between two checkpoints.
    pub const LONG_CHAINS: Size = Size { tasks: 2, txns: 4, keys: 8, value_bytes: 300, chain_bytes: 5_000_000 };
}

fn note(history: &Shared, task: usize, lsn: Lsn, rows: Rows) {
    history.lock().expect("history").tasks[task].states.push((lsn, rows));
}

fn acknowledged(history: &Shared, task: usize) {
    let mut history = history.lock().expect("history");
    let committed = &mut history.tasks[task];
    committed.acknowledged = committed.states.last().map_or(Lsn::ZERO, |(lsn, _)| *lsn);
}

/// Makes the shared trees, unless an earlier life has.
///
/// # Errors
/// As storage.
pub async fn prepare(store: &Arc<Store>, book: &Arc<Book>, history: &Shared, size: Size) -> Result<(), StorageError> {
    {
        let mut history = history.lock().expect("history");
        if history.tasks.first().is_some_and(|task| !task.states.is_empty()) {
            return Ok(());
        }
        history.tasks = vec![Committed::default(); size.tasks as usize + 1];
    }
    let mut txn = Txn::begin(store, book);
    let trees = [txn.create_tree().await?, txn.create_tree().await?];
    let at = |lsn| {
        history.lock().expect("history").trees = trees.to_vec();
        // A tree without rows shows as a row of its own.
        let rows = trees.iter().map(|tree| ((*tree, Vec::new()), Vec::new())).collect();
        note(history, 0, lsn, rows);
    };
    txn.commit(at).await?;
    acknowledged(history, 0);
    Ok(())
}

/// One task: transaction after transaction.
///
/// # Errors
/// As storage; if errors are expected, only what stops the database.
pub async fn task(
    store: Arc<Store>,
    book: Arc<Book>,
    history: Shared,
    task: usize,
    rng: Rng,
    size: Size,
) -> Result<(), StorageError> {
    let (trees, rows) = {
        let history = history.lock().expect("history");
        let rows = history.tasks[task].states.last().map(|(_, rows)| rows.clone()).unwrap_or_default();
        (history.trees.clone(), rows)
    };
    let mut worker = Worker { store, book, history, task, rng, size, trees, rows, held: None };
    for _ in 0..size.txns {
        let mut txn = Txn::begin(&worker.store, &worker.book);
        if let Err(err) = worker.transaction(&mut txn).await
            && !worker.goes_on(err, &mut txn).await?
        {
            return Ok(());
        }
    }
    Ok(())
}

struct Worker {
    store: Arc<Store>,
    book: Arc<Book>,
    history: Shared,
    task: usize,
    rng: Rng,
    size: Size,
    trees: Vec<TreeId>,
    /// Its rows as it committed them last.
    rows: Rows,
    held: Option<Held>,
}

impl Worker {
    /// After an error: rolls back, if the transaction still runs. False if even that fails, from reads: the database has
    /// to be opened again then.
    async fn goes_on(&self, err: StorageError, txn: &mut Txn) -> Result<bool, StorageError> {
        let poisoned = self.store.wal().poisoned().is_some() || matches!(err, StorageError::Poisoned(_));
        if poisoned || !self.history.lock().expect("history").tolerant {
            return Err(err);
        }
        assert!(!matches!(err, StorageError::Corruption(_)), "SWP-5: a failed call was taken for damage: {err}");
        self.history.lock().expect("history").errors.push(err);
        for _ in 0..4 {
            match txn.is_over() {
                true => return Ok(true),
                false => match txn.abort().await {
                    Err(StorageError::NoSpace(what)) => panic!("SWP-6: a rollback failed for want of space: {what}"),
                    Err(err @ StorageError::Poisoned(_)) => return Err(err),
                    Ok(()) | Err(_) => {}
                },
            }
        }
        Ok(false)
    }

    async fn transaction(&mut self, txn: &mut Txn) -> Result<(), StorageError> {
        match self.rng.below(6) {
            0 => self.held = Some(self.book.hold()),
            1 | 2 => self.held = None,
            _ => {}
        }
        let mut next = self.rows.clone();
        let own = self.change_own_tree(txn, &mut next).await?;
        let targets: Vec<TreeId> = self.trees.iter().copied().chain(own).collect();
        let large = self.rng.chance(1, 8);
        let steps = if large { 60 } else { 1 + self.rng.below(6) };
        self.change(txn, &mut next, &targets, steps).await?;
        if self.rng.chance(1, 3) {
            let mark = txn.savepoint();
            let mut lost = next.clone();
            let steps = 1 + self.rng.below(8);
            self.change(txn, &mut lost, &targets, steps).await?;
            txn.rollback_to(mark).await?;
            self.change(txn, &mut next, &targets, 2).await?;
        }
        match self.rng.below(16) {
            0 => self.store.checkpoint().await?,
            1 | 2 => {
                let tree = *self.rng.pick(&self.trees);
                self.store.tree(tree).tidy().await?;
            }
            3 | 4 => {
                let tree = *self.rng.pick(&self.trees);
                let key = format!("{:04}", self.rng.below(self.size.keys)).into_bytes();
                self.store.tree(tree).purge(&key, &*self.book).await?;
            }
            _ => {}
        }
        self.reads_agree(txn, &next).await?;
        if self.rng.chance(if large { 1 } else { 0 }, 2) || self.rng.chance(1, 4) {
            txn.abort().await?;
        } else {
            let (history, task, state) = (&self.history, self.task, next.clone());
            txn.commit(|lsn| note(history, task, lsn, state)).await?;
            acknowledged(&self.history, self.task);
            self.rows = next;
        }
        self.store.tick();
        self.store.drops_changed();
        Ok(())
    }

    /// Now and then makes a tree of its own, large enough that dropping it takes several records, or drops it.
    async fn change_own_tree(&mut self, txn: &mut Txn, rows: &mut Rows) -> Result<Option<TreeId>, StorageError> {
        let own = rows.keys().find(|(_, key)| key.is_empty()).map(|(tree, _)| *tree);
        if self.rng.below(6) > 0 {
            return Ok(own);
        }
        if let Some(tree) = own {
            txn.drop_tree(tree);
            rows.retain(|(of, _), _| *of != tree);
            return Ok(None);
        }
        let tree = txn.create_tree().await?;
        rows.insert((tree, Vec::new()), Vec::new());
        for number in 0..self.rng.below(100) {
            let key = format!("{number:06}").into_bytes();
            let mut value = vec![0; 700];
            self.rng.fill(&mut value);
            txn.write(tree, &key, Some(&value)).await?;
            rows.insert((tree, key), value);
        }
        Ok(Some(tree))
    }

    /// A transaction reads what it wrote and what it found.
    async fn reads_agree(&mut self, txn: &Txn, rows: &Rows) -> Result<(), StorageError> {
        if rows.is_empty() {
            return Ok(());
        }
        let ((tree, key), value) = rows.iter().nth(self.rng.index(rows.len())).expect("an index within");
        if !key.is_empty() {
            let found = txn.read(*tree, key).await?;
            let len = found.as_ref().map(Vec::len);
            assert!(found.as_ref() == Some(value), "SWP-1: tree {tree}, key {key:?}: {len:?} bytes");
        }
        Ok(())
    }

    async fn change(
        &mut self,
        txn: &mut Txn,
        rows: &mut Rows,
        trees: &[TreeId],
        steps: u64,
    ) -> Result<(), StorageError> {
        for _ in 0..steps {
            let tree = *self.rng.pick(trees);
            if self.rng.chance(1, 6) {
                self.change_run(txn, rows, tree).await?;
                continue;
            }
            // Keys of all tasks are mixed in every leaf.
            let key = format!("{:04}-{}", self.rng.below(self.size.keys), self.task).into_bytes();
            if self.rng.chance(1, 4) {
                txn.write(tree, &key, None).await?;
                rows.remove(&(tree, key));
            } else {
                let longest = if self.rng.chance(1, 8) { self.size.chain_bytes } else { self.size.value_bytes };
                let mut value = vec![0; self.rng.below(longest) as usize];
                self.rng.fill(&mut value);
                txn.write(tree, &key, Some(&value)).await?;
                rows.insert((tree, key), value);
            }
            if self.rng.chance(1, 4) {
                yield_now().await;
            }
        }
        Ok(())
    }

    /// Changes neighbours together: new rows, and rows without values that go, share tags.
    async fn change_run(&mut self, txn: &mut Txn, rows: &mut Rows, tree: TreeId) -> Result<(), StorageError> {
        let (from, count, goes) = (self.rng.below(self.size.keys), 1 + self.rng.below(12), self.rng.chance(1, 3));
        let longest = *self.rng.pick(&[1, 20, self.size.value_bytes]);
        let mut wanted = Vec::new();
        for number in from..(from + count).min(self.size.keys) {
            let key = format!("{number:04}-{}", self.task).into_bytes();
            let mut value = vec![0; self.rng.below(longest) as usize];
            self.rng.fill(&mut value);
            let value = (!goes && self.rng.chance(7, 8)).then_some(value);
            match &value {
                Some(value) => _ = rows.insert((tree, key.clone()), value.clone()),
                None => _ = rows.remove(&(tree, key.clone())),
            }
            wanted.push((key, value));
        }
        txn.write_run(tree, &wanted).await
    }
}
