//! Opening a database in memory, and small tables.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use clearway_base::sync::{block_on, spawn_thread};
use clearway_base::testkit;
use clearway_base::vfs::sim::SimDisk;
use clearway_base::vfs::{MemVfs, Vfs};
use clearway_engine::catalog::{Column, Index, IndexColumn, IndexState, Object, Oid, Relation};
use clearway_engine::db::{Db, DbOptions};
use clearway_engine::session::{Durability, Session, StatementMode, TxnOptions};
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::{Storage, Value};
use clearway_storage::ids::TreeId;

/// The database `clearway` of a new directory, and its schema `public`.
pub const DATABASE: Oid = 6;
pub const SCHEMA: Oid = 2201;

pub fn memory() -> Arc<dyn Vfs> {
    Arc::new(MemVfs::new())
}

/// Opens a directory and runs its background loops on threads.
pub fn open(vfs: &Arc<dyn Vfs>) -> Arc<Db> {
    block_on(async {
        let dir = Path::new("/db");
        let _ = vfs.create_dir(dir).await;
        Db::open(DbOptions::new(vfs.clone(), dir), |name, task| {
            spawn_thread(name, move || block_on(task)).expect("a thread");
        })
        .await
        .expect("a database")
    })
}

/// Opens a directory on a simulated disk, in a task of its scheduler, with a small log and a small cache.
pub async fn simulated(disk: &SimDisk) -> Arc<Db> {
    let dir = Path::new("/db");
    if disk.create_dir(dir).await.is_ok() {
        disk.sync_dir(Path::new("/")).await.expect("a durable name");
    }
    let mut options = DbOptions::new(Arc::new(disk.clone()), dir);
    options.store.wal.caller_flushes = false;
    options.store.wal.ring_bytes = 256 << 10;
    options.store.wal.segment_bytes = 256 << 10;
    options.store.wal.ahead_bytes = 256 << 10;
    options.store.wal.floor_bytes = 64 << 10;
    options.store.checkpoint_bytes = 100 << 10;
    options.store.pool.frames = 256;
    Db::open(options, |name, task| {
        testkit::spawn(name, task);
    })
    .await
    .expect("opened")
}

pub fn run<T>(future: impl Future<Output = T>) -> T {
    block_on(future)
}

pub fn column(name: &str, storage: Storage) -> Column {
    Column {
        name: name.to_owned(),
        storage: storage.code(),
        type_oid: 0,
        type_mod: -1,
        not_null: false,
        default: None,
        identity: None,
        dropped_version: None,
        statistics: None,
        since_version: 0,
        missing: None,
        ..Default::default()
    }
}

/// A table `t<oid> (id bigint, a bigint, b text)` by its key `id`.
pub fn table_object(oid: Oid, tree: TreeId, schema: Oid) -> Object {
    Object::Relation(Relation {
        key: vec![0],
        ..Relation::table(
            oid,
            DATABASE,
            schema,
            &format!("t{oid}"),
            vec![column("id", Storage::Int(8)), column("a", Storage::Int(8)), column("b", Storage::Bytes)],
            tree.0,
        )
    })
}

/// Creates `t (id bigint, a bigint, b text)`, by its key `id` or without one, and a unique index on `a` if asked for.
pub async fn create(session: &mut Session, keyed: bool, unique_a: bool) -> Arc<TableShape> {
    let oid = session.db().new_oid();
    session.begin(TxnOptions::default());
    let tree = session.create_tree().await.expect("a tree");
    let mut relation = table_object(oid, tree, SCHEMA);
    if let (false, Object::Relation(relation)) = (keyed, &mut relation) {
        relation.key.clear();
    }
    session.put_object(relation).await.expect("a table");
    if unique_a {
        let index_tree = session.create_tree().await.expect("a tree");
        let index = Index { tree: index_tree.0, constraint: true, ..index_on_a(session, oid, true) };
        session.put_object(Object::Index(index)).await.expect("an index");
    }
    session.commit(Durability::Wait).await.expect("committed");
    TableShape::new(&session.catalog(), oid).expect("a shape")
}

/// An index on `a`, without a tree.
pub fn index_on_a(session: &Session, table: Oid, unique: bool) -> Index {
    Index {
        oid: session.db().new_oid(),
        database: DATABASE,
        schema: SCHEMA,
        name: format!("t{table}_a_key"),
        table,
        tree: 0,
        columns: vec![IndexColumn::ascending(1)],
        unique,
        primary: false,
        constraint: false,
        state: IndexState::Public,
        valid_from_lsn: 0,
        clustered: false,
        include: Vec::new(),
        ..Index::default()
    }
}

pub fn row(id: i64, a: i64, b: &str) -> Vec<Value> {
    vec![Value::Int(id), Value::Int(a), Value::bytes(b.as_bytes())]
}

pub fn key(shape: &TableShape, id: i64) -> Vec<u8> {
    shape.key_prefix(&[Value::Int(id)])
}

/// Reads `a` of a row in a statement of its own.
pub async fn read_a(session: &mut Session, shape: &TableShape, id: i64) -> Option<i64> {
    let statement = session.open_statement(&"read".into(), StatementMode::ReadOnly);
    let found = session.get(shape, &statement.view, &key(shape, id)).await.expect("a read");
    session.close_statement(statement);
    session.wait_reply().await.expect("durable");
    found.map(|row| match row[1] {
        Value::Int(a) => a,
        ref other => panic!("{other:?}"),
    })
}
