//! Random transactions by several tasks, and a record of what they were told.

use super::txns::{Book, Txn};
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
    /// Errors other than a stop.
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

fn note(history: &Shared, task: usize, lsn: Lsn, rows: Rows) {
    history.lock().expect("history").tasks[task].states.push((lsn, rows));
}

fn acknowledged(history: &Shared, task: usize) {
    let mut history = history.lock().expect("history");
    let committed = &mut history.tasks[task];
    committed.acknowledged = committed.states.last().map_or(Lsn::ZERO, |(lsn, _)| *lsn);
}

/// Makes the shared trees.
///
/// # Errors
/// As storage.
pub async fn prepare(store: &Arc<Store>, book: &Arc<Book>, history: &Shared, size: Size) -> Result<(), StorageError> {
    history.lock().expect("history").tasks = vec![Committed::default(); size.tasks as usize + 1];
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
/// As storage.
pub async fn task(
    store: Arc<Store>,
    book: Arc<Book>,
    history: Shared,
    task: usize,
    mut rng: Rng,
    size: Size,
) -> Result<(), StorageError> {
    let trees = history.lock().expect("history").trees.clone();
    let mut rows = Rows::new();
    let mut held = None;
    for _ in 0..size.txns {
        match rng.below(6) {
            0 => held = Some(book.hold()),
            1 | 2 => held = None,
            _ => {}
        }
        let mut txn = Txn::begin(&store, &book);
        let mut next = rows.clone();
        let mut own = next.keys().find(|(_, key)| key.is_empty()).map(|(tree, _)| *tree);
        match (own, rng.below(6)) {
            (None, 0) => {
                let tree = txn.create_tree().await?;
                next.insert((tree, Vec::new()), Vec::new());
                own = Some(tree);
                fill(&mut txn, &mut next, tree, &mut rng).await?;
            }
            (Some(tree), 0) => {
                txn.drop_tree(tree);
                next.retain(|(of, _), _| *of != tree);
                own = None;
            }
            _ => {}
        }
        let targets: Vec<TreeId> = trees.iter().copied().chain(own).collect();
        let large = rng.chance(1, 8);
        let steps = if large { 60 } else { 1 + rng.below(6) };
        change(&mut txn, &mut next, &targets, task, &mut rng, size, steps).await?;
        if rng.chance(1, 3) {
            let mark = txn.savepoint();
            let mut lost = next.clone();
            let steps = 1 + rng.below(8);
            change(&mut txn, &mut lost, &targets, task, &mut rng, size, steps).await?;
            txn.rollback_to(mark).await?;
            change(&mut txn, &mut next, &targets, task, &mut rng, size, 2).await?;
        }
        match rng.below(16) {
            0 => store.checkpoint().await?,
            1 | 2 => {
                store.tree(*rng.pick(&trees)).tidy().await?;
            }
            _ => {}
        }
        reads_agree(&txn, &next, &mut rng).await?;
        if rng.chance(if large { 1 } else { 0 }, 2) || rng.chance(1, 4) {
            txn.abort().await?;
        } else {
            let state = next.clone();
            txn.commit(|lsn| note(&history, task, lsn, state)).await?;
            acknowledged(&history, task);
            rows = next;
        }
        store.tick();
        store.drops_changed();
    }
    drop(held);
    Ok(())
}

/// So many rows that dropping the tree takes several records.
async fn fill(txn: &mut Txn, rows: &mut Rows, tree: TreeId, rng: &mut Rng) -> Result<(), StorageError> {
    for number in 0..rng.below(100) {
        let key = format!("{number:06}").into_bytes();
        let mut value = vec![0; 700];
        rng.fill(&mut value);
        txn.write(tree, &key, Some(&value)).await?;
        rows.insert((tree, key), value);
    }
    Ok(())
}

/// A transaction reads what it wrote and what it found.
async fn reads_agree(txn: &Txn, rows: &Rows, rng: &mut Rng) -> Result<(), StorageError> {
    if rows.is_empty() {
        return Ok(());
    }
    let ((tree, key), value) = rows.iter().nth(rng.index(rows.len())).expect("an index within");
    if !key.is_empty() {
        let found = txn.read(*tree, key).await?;
        assert!(found.as_ref() == Some(value), "tree {tree}, key {key:?}: {:?} bytes", found.map(|value| value.len()));
    }
    Ok(())
}

async fn change(
    txn: &mut Txn,
    rows: &mut Rows,
    trees: &[TreeId],
    task: usize,
    rng: &mut Rng,
    size: Size,
    steps: u64,
) -> Result<(), StorageError> {
    for _ in 0..steps {
        let tree = *rng.pick(trees);
        // Keys of all tasks are mixed in every leaf.
        let key = format!("{:04}-{task}", rng.below(size.keys)).into_bytes();
        if rng.chance(1, 4) {
            txn.write(tree, &key, None).await?;
            rows.remove(&(tree, key));
        } else {
            let longest = if rng.chance(1, 8) { size.chain_bytes } else { size.value_bytes };
            let mut value = vec![0; rng.below(longest) as usize];
            rng.fill(&mut value);
            txn.write(tree, &key, Some(&value)).await?;
            rows.insert((tree, key), value);
        }
        if rng.chance(1, 4) {
            yield_now().await;
        }
    }
    Ok(())
}
