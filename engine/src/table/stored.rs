//! The stored form of statistics: one entry for each table, in the tree that also holds the states of sequences (docs/catalog-format.md).
//!
//! # Invariants
//! - STT-1: an entry is written by a transaction of its own, after a count has ended: a crash leaves the entry of the last count or of the one
//!   before it.
//! - STT-2: an entry has at most about [`BYTES_MAX`] bytes. Columns beyond that keep their figures and lose their common values and histogram.
//! - STT-3: an entry names the tree that was counted. An entry of another tree, or of a table that was dropped, is not used and is removed.
//!
//! # Errors
//! None: an entry that does not decode is ignored, since only the choice of a plan depends on statistics.

use std::sync::Arc;

use clearway_storage::btree::{Direction, KeyRange};
use clearway_storage::ids::{Lsn, TreeId};
use clearway_txn::lockmgr::{IfTaken, LockMode};
use clearway_txn::mvcc::book::View;
use clearway_txn::read::{RowBatch, Scan};
use clearway_txn::transaction::{Basis, Change, Changed, Transaction};
use clearway_txn::transactions::Transactions;

use super::sample::{ColumnStatistics, Spread};
#[cfg(doc)]
use super::usage::Use;
use crate::catalog::{Oid, SEQUENCE_TREE, object_key};
use crate::decimal::Decimal;
use crate::error::EngineError;
use crate::value::{Storage, Value};

/// Behind the oid in the key: what the entry is about. The state of a sequence has nothing there.
const KIND: u8 = b's';
/// The version of the entry's form.
const FORM: u8 = 2;
/// STT-2.
pub const BYTES_MAX: usize = 1 << 20;

/// The known figures of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableStatistics {
    /// Rows, without those deleted.
    pub rows: u64,
    /// Leaves of its tree.
    pub leaves: u64,
    /// When it was counted, in microseconds since 1970.
    pub at_us: i64,
}

/// How often a table was counted, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Analyzed {
    /// Because ANALYZE asked, and when last: microseconds since 1970.
    pub asked: (u64, i64),
    /// Because enough rows had changed.
    pub unasked: (u64, i64),
    /// [`Use::live`] when it was counted last,
    pub live: i64,
    /// and [`Use::changed`].
    pub changed: u64,
}

/// What is kept of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored {
    /// The tree that was counted.
    pub tree: TreeId,
    pub statistics: TableStatistics,
    pub analyzed: Analyzed,
    pub spread: Spread,
}

/// The key of a table's entry.
fn key_of(table: Oid) -> [u8; 9] {
    let mut key = [KIND; 9];
    key[..8].copy_from_slice(&object_key(table));
    key
}

/// Puts a table's entry in the place of the one before, or removes it.
pub(crate) async fn put(all: &Arc<Transactions>, table: Oid, value: Option<&[u8]>) -> Result<Lsn, EngineError> {
    // STT-1
    let owner = all.locks().register(0);
    let mut txn = Transaction::begin(all.clone(), owner.clone(), false);
    let ended = match put_in(&mut txn, table, value).await {
        Ok(()) => txn.commit(&[], |_| {}).await.map(|lsn| lsn.unwrap_or(Lsn::ZERO)).map_err(EngineError::from),
        Err(error) => txn.roll_back().await.map_err(EngineError::from).and(Err(error)),
    };
    all.locks().unregister(&owner);
    ended
}

async fn put_in(txn: &mut Transaction, table: Oid, value: Option<&[u8]>) -> Result<(), EngineError> {
    let tree = txn.all().store().tree(SEQUENCE_TREE);
    let key = key_of(table);
    let Some(value) = value else {
        if txn.lock_row(&tree, &key, LockMode::RowUpdate, IfTaken::Wait, None).await?.is_some() {
            txn.change(&tree, &key, Change::Delete { moved_to: None }, Basis::Locked, IfTaken::Wait).await?;
        }
        return Ok(());
    };
    if txn.change(&tree, &key, Change::Insert { value }, Basis::Locked, IfTaken::Wait).await? != Changed::Done {
        txn.lock_row(&tree, &key, LockMode::RowNoKeyUpdate, IfTaken::Wait, None).await?;
        let change = Change::Update { value, strength: LockMode::RowNoKeyUpdate };
        txn.change(&tree, &key, change, Basis::Locked, IfTaken::Wait).await?;
    }
    Ok(())
}

/// All entries; none for one that does not read well.
pub(crate) async fn read_all(all: &Transactions) -> Result<Vec<(Oid, Option<Stored>)>, EngineError> {
    let view = View { read_lsn: all.visible_lsn(), ..View::default() };
    let mut scan = Scan::new(&all.store().tree(SEQUENCE_TREE), KeyRange::all(), Direction::Forward, view);
    let (mut batch, mut dep, mut out) = (RowBatch::default(), Lsn::ZERO, Vec::new());
    while scan.next(all.book(), &mut dep, &mut batch).await? {
        for (key, value) in batch.iter() {
            if let Some((oid, [KIND])) = key.split_first_chunk::<8>()
                && let Ok(table) = Oid::try_from(u64::from_be_bytes(*oid))
            {
                out.push((table, decode(value)));
            }
        }
    }
    Ok(out)
}

/// The oid in a key of the tree, whatever the entry is about.
pub(crate) fn oid_of_key(key: &[u8]) -> Option<Oid> {
    let (oid, _) = key.split_first_chunk::<8>()?;
    Oid::try_from(u64::from_be_bytes(*oid)).ok()
}

/// The bytes of an entry.
pub(crate) fn encode(stored: &Stored) -> Vec<u8> {
    let Stored { tree, statistics, analyzed, spread } = stored;
    let mut out = vec![FORM];
    let numbers = [tree.0, statistics.rows, statistics.leaves, statistics.at_us as u64];
    let times = [analyzed.asked.0, analyzed.asked.1 as u64, analyzed.unasked.0, analyzed.unasked.1 as u64];
    let used = [analyzed.live as u64, analyzed.changed];
    numbers.iter().chain(&times).chain(&used).for_each(|n| out.extend_from_slice(&n.to_le_bytes()));
    put_len(spread.columns.len(), &mut out);
    for column in &spread.columns {
        out.push(u8::from(column.is_some()));
        column.iter().for_each(|known| encode_column(known, &mut out));
    }
    put_len(spread.expressions.len(), &mut out);
    for (text, known) in &spread.expressions {
        put_bytes(text.as_bytes(), &mut out);
        encode_column(known, &mut out);
    }
    out
}

fn encode_column(known: &ColumnStatistics, out: &mut Vec<u8>) {
    out.push(known.storage.code());
    for number in [known.null_fraction, known.distinct, known.correlation.unwrap_or(f64::NAN)] {
        out.extend_from_slice(&number.to_bits().to_le_bytes());
    }
    out.extend_from_slice(&known.width.to_le_bytes());
    // STT-2
    let full = out.len() > BYTES_MAX;
    let (common, histogram) = if full { (&[][..], &[][..]) } else { (&known.common[..], &known.histogram[..]) };
    put_len(common.len(), out);
    for (value, share) in common {
        put_value(value, out);
        out.extend_from_slice(&share.to_bits().to_le_bytes());
    }
    put_len(histogram.len(), out);
    histogram.iter().for_each(|value| put_value(value, out));
}

fn put_len(len: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes());
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_len(bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn put_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(0),
        Value::Bool(b) => out.extend_from_slice(&[1, u8::from(*b)]),
        Value::Int(i) => {
            out.push(2);
            out.extend_from_slice(&i.to_le_bytes());
        }
        Value::Float(f) => {
            out.push(3);
            out.extend_from_slice(&f.to_bits().to_le_bytes());
        }
        Value::Decimal(d) => {
            let mut bytes = Vec::with_capacity(d.encoded_len());
            d.encode(&mut bytes);
            out.push(4);
            put_bytes(&bytes, out);
        }
        Value::Bytes(bytes) => {
            out.push(5);
            put_bytes(bytes, out);
        }
    }
}

/// What an entry says; none: it does not read well, or is of a newer form.
pub(crate) fn decode(bytes: &[u8]) -> Option<Stored> {
    let mut from = Bytes(bytes);
    if from.byte()? != FORM {
        return None;
    }
    let [tree, rows, leaves, at_us] = [from.number()?, from.number()?, from.number()?, from.number()? as i64 as u64];
    let statistics = TableStatistics { rows, leaves, at_us: at_us as i64 };
    let asked = (from.number()?, from.number()? as i64);
    let unasked = (from.number()?, from.number()? as i64);
    let (live, changed) = (from.number()? as i64, from.number()?);
    let analyzed = Analyzed { asked, unasked, live, changed };
    let mut spread = Spread::default();
    for _ in 0..from.len()? {
        let known = if from.byte()? == 0 { None } else { Some(from.column()?) };
        spread.columns.push(known);
    }
    for _ in 0..from.len()? {
        let text = String::from_utf8(from.bytes()?.to_vec()).ok()?;
        spread.expressions.push((text, from.column()?));
    }
    from.0.is_empty().then_some(Stored { tree: TreeId(tree), statistics, analyzed, spread })
}

/// Bytes that are read from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn float(&mut self) -> Option<f64> {
        self.number().map(f64::from_bits)
    }

    /// A count of things that have a byte each at least.
    fn len(&mut self) -> Option<usize> {
        let len = u32::from_le_bytes(self.take(4)?.try_into().ok()?) as usize;
        (len <= self.0.len()).then_some(len)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.len()?;
        self.take(len)
    }

    fn value(&mut self, storage: Storage) -> Option<Value> {
        let value = match self.byte()? {
            0 => Value::Null,
            1 => Value::Bool(self.byte()? != 0),
            2 => Value::Int(self.number()? as i64),
            3 => Value::Float(self.float()?),
            4 => Value::Decimal(Decimal::decode(self.bytes()?)?),
            5 => Value::bytes(self.bytes()?),
            _ => return None,
        };
        value.fits(storage).then_some(value)
    }

    fn column(&mut self) -> Option<ColumnStatistics> {
        let storage = Storage::from_code(self.byte()?)?;
        let (null_fraction, distinct, correlation) = (self.float()?, self.float()?, self.float()?);
        let width = u32::from_le_bytes(self.take(4)?.try_into().ok()?);
        let (mut common, mut histogram) = (Vec::new(), Vec::new());
        for _ in 0..self.len()? {
            common.push((self.value(storage)?, self.float()?));
        }
        for _ in 0..self.len()? {
            histogram.push(self.value(storage)?);
        }
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        let sound = is_share(null_fraction) && distinct.is_finite() && common.iter().all(|c| is_share(c.1));
        let correlation = Some(correlation).filter(|c| c.is_finite());
        sound.then_some(ColumnStatistics { storage, null_fraction, width, distinct, common, histogram, correlation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decimal::Sign;

    fn column(storage: Storage, common: Vec<(Value, f64)>, histogram: Vec<Value>) -> ColumnStatistics {
        let correlation = (common.len() > 1).then_some(-0.25);
        ColumnStatistics { storage, null_fraction: 0.125, width: 7, distinct: -0.5, common, histogram, correlation }
    }

    fn sample() -> Stored {
        let decimal = Decimal { sign: Sign::Negative, weight: 1, scale: 3, digits: [12, 3400].into() };
        let columns = vec![
            Some(column(Storage::Int(4), vec![(Value::Int(-7), 0.5), (Value::Int(3), 0.25)], vec![Value::Int(1)])),
            None,
            Some(column(Storage::Bytes, vec![(Value::bytes(b"a\0b"), 0.5)], vec![Value::bytes(b"")])),
            Some(column(Storage::Decimal, vec![(Value::Decimal(decimal), 1.0)], Vec::new())),
            Some(column(Storage::Bool, vec![(Value::Bool(true), 1.0)], Vec::new())),
            Some(column(Storage::Float, Vec::new(), vec![Value::Float(-1.5), Value::Float(2.0)])),
        ];
        let expressions = vec![("lower(name)".to_owned(), column(Storage::Bytes, Vec::new(), Vec::new()))];
        Stored {
            tree: TreeId(77),
            statistics: TableStatistics { rows: 10, leaves: 2, at_us: -5 },
            analyzed: Analyzed { asked: (1, 2), unasked: (3, 4), live: -5, changed: 6 },
            spread: Spread { columns, expressions },
        }
    }

    #[test]
    fn an_entry_is_read_back_and_damage_is_no_panic() {
        let stored = sample();
        let bytes = encode(&stored);
        assert_eq!(decode(&bytes), Some(stored));
        for at in 0..bytes.len() {
            assert_eq!(decode(&bytes[..at]), None, "cut at {at}");
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                let _ = decode(&damaged);
            }
        }
        assert_eq!(decode(&[&bytes[..], &[0]].concat()), None);
    }

    #[test]
    fn an_entry_is_bounded() {
        // STT-2
        let wide: Vec<(Value, f64)> = (0..100).map(|_| (Value::bytes(&[7; 1000]), 0.01)).collect();
        let columns = (0..100).map(|_| Some(column(Storage::Bytes, wide.clone(), Vec::new()))).collect();
        let stored = Stored { spread: Spread { columns, expressions: Vec::new() }, ..sample() };
        let bytes = encode(&stored);
        assert!(bytes.len() < BYTES_MAX + 200_000, "{}", bytes.len());
        let read = decode(&bytes).expect("an entry");
        assert_eq!(read.spread.columns.len(), 100);
        let values = |at: usize| read.spread.columns[at].as_ref().map(|c| (c.common.len(), c.width));
        assert_eq!((values(0), values(99)), (Some((100, 7)), Some((0, 7))));
    }
}
