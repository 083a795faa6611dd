//! The functions on large objects. `clearway_engine::large_object` has the objects, `context::large_objects` the descriptors.
//!
//! Source: PostgreSQL 15's src/backend/libpq/be-fsstubs.c and storage/large_object/inv_api.c, for the order of the checks and the errors.
//! Unlike it, and like its version 16, a read-only transaction refuses what writes.

use super::Cx;
use clearway_context::errors::{from_engine, of_file};
use clearway_context::privileges::Judge;
use clearway_engine::catalog::{AclKind, Object, Oid};
use clearway_engine::large_object::{LargeObject, OBJECT_BYTES_MAX, PAGE_BYTES};
use clearway_storage::server_file::ServerFile;
use clearway_syntax::error::{Result, SqlError, code};
use clearway_txn::lockmgr::LockMode;
use clearway_txn::mvcc::book::View;
use clearway_values::expr::HostFunction;
use clearway_values::types::Datum;

/// The bits of the mode with which an object is opened.
const INV_WRITE: i64 = 0x0002_0000;
const INV_READ: i64 = 0x0004_0000;
/// Bytes that are read or written between two breaths.
const PIECE_BYTES: usize = 32 * PAGE_BYTES as usize;
/// Pages that are dropped between two breaths.
const PIECE_PAGES: usize = 256;
/// The most bytes that a value may have: MaxAllocSize without the header.
const VALUE_BYTES_MAX: u64 = 0x3fff_ffff - 4;

fn number(args: &[Datum], i: usize) -> i64 {
    args.get(i).and_then(Datum::as_i64).unwrap_or(0)
}

fn bytes(args: &[Datum], i: usize) -> &[u8] {
    match args.get(i) {
        Some(Datum::Bytea(bytes)) => bytes,
        _ => &[],
    }
}

fn missing(oid: Oid) -> SqlError {
    SqlError::new(code::UNDEFINED_OBJECT, format!("large object {oid} does not exist"))
}

fn out_of_range(message: String) -> SqlError {
    SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

fn invalid(message: String) -> SqlError {
    SqlError::new(code::INVALID_PARAMETER_VALUE, message)
}

/// A position that may be beyond the end of an object, but not beyond that of any.
fn position_of(at: i64) -> Result<u64> {
    let position = u64::try_from(at).ok().filter(|at| *at <= OBJECT_BYTES_MAX);
    position.ok_or_else(|| invalid(format!("invalid large object seek target: {at}")))
}

impl Cx<'_> {
    /// Calls one of these functions, or one that is none of them.
    pub(super) async fn large_object_call(self, function: HostFunction, args: &[Datum]) -> Result<Datum> {
        use HostFunction as F;
        let (oid, descriptor) = (number(args, 0) as Oid, number(args, 0) as i32);
        Ok(match function {
            F::LoCreat => Datum::Oid(self.lo_create(0, "lo_creat()").await?),
            F::LoCreate => Datum::Oid(self.lo_create(oid, "lo_create()").await?),
            F::LoFromBytea => {
                let oid = self.lo_create(oid, "lo_from_bytea()").await?;
                self.write_object(oid, 0, bytes(args, 1)).await?;
                Datum::Oid(oid)
            }
            F::LoOpen => Datum::Int4(self.lo_open(oid, number(args, 1)).await?),
            F::LoClose => {
                self.run.core.close_descriptor(descriptor)?;
                Datum::Int4(0)
            }
            F::LoRead => self.lo_read(descriptor, number(args, 1)).await?,
            F::LoWrite => Datum::Int4(self.lo_write(descriptor, bytes(args, 1)).await?),
            F::LoSeek | F::LoSeek64 => {
                let at = self.lo_seek(descriptor, number(args, 1), number(args, 2)).await?;
                self.position(function == F::LoSeek64, at, "lo_lseek", descriptor)?
            }
            F::LoTell | F::LoTell64 => {
                let at = self.run.core.large_objects.lock().place(descriptor)?.position;
                self.position(function == F::LoTell64, at, "lo_tell", descriptor)?
            }
            F::LoTruncate => self.lo_truncate(descriptor, number(args, 1), "lo_truncate()").await?,
            F::LoTruncate64 => self.lo_truncate(descriptor, number(args, 1), "lo_truncate64()").await?,
            F::LoUnlink => self.lo_unlink(oid).await?,
            F::LoGet => self.lo_get(oid, 0, None).await?,
            F::LoGetFragment => {
                let most = u64::try_from(number(args, 2));
                let most = most.map_err(|_| invalid("requested length cannot be negative".to_owned()))?;
                self.lo_get(oid, number(args, 1), Some(most)).await?
            }
            F::LoPut => {
                self.may_write("lo_put()")?;
                self.opened(oid, None).await?;
                self.write_object(oid, position_of(number(args, 1))?, bytes(args, 2)).await?;
                Datum::Void
            }
            F::LoImport => Datum::Oid(self.lo_import(args, 0).await?),
            F::LoImportAs => Datum::Oid(self.lo_import(args, number(args, 1) as Oid).await?),
            F::LoExport => self.lo_export(oid, args).await?,
            other => return self.reset_call(other, args),
        })
    }

    fn may_write(self, call: &str) -> Result<()> {
        if self.run.core.engine.take().options().read_only {
            return Err(SqlError::new("25006", format!("cannot execute {call} in a read-only transaction")));
        }
        Ok(())
    }

    fn position(self, wide: bool, at: u64, function: &str, descriptor: i32) -> Result<Datum> {
        if wide {
            return Ok(Datum::Int8(at as i64));
        }
        let fits = i32::try_from(at).map(Datum::Int4);
        fits.map_err(|_| {
            out_of_range(format!("{function} result out of range for large-object descriptor {descriptor}"))
        })
    }

    /// Whether rights are checked at all.
    fn checks_rights(self) -> bool {
        self.run.core.settings.lock().get("lo_compat_privileges") != "on"
    }

    async fn lo_create(self, oid: Oid, call: &str) -> Result<Oid> {
        self.may_write(call)?;
        let core = self.run.core;
        let catalog = &self.run.names.catalog;
        let Some(role) = core.role(catalog) else { return Err(SqlError::new("42501", "permission denied")) };
        let mut engine = core.engine.take();
        // SES-8: the role is not dropped while the object is made its own.
        let own = Object::Role(role.clone());
        core.lock_wait(engine.lock_object(&own, LockMode::AccessShare)).await.map_err(from_engine)?;
        let created = core.lock_wait(engine.create_large_object(oid, role.oid)).await.map_err(from_engine)?;
        created.ok_or_else(|| {
            let message = "duplicate key value violates unique constraint \"pg_largeobject_metadata_oid_index\"";
            SqlError::new("23505", message).detail(format!("Key (oid)=({oid}) already exists."))
        })
    }

    /// The object in a view, or (none) as it is now.
    async fn large_object(self, oid: Oid, view: Option<&View>) -> Result<Option<LargeObject>> {
        let seen = self.run.core.seen(view);
        let found = self.run.core.engine.take().large_object(&seen.view(), oid).await;
        found.map_err(from_engine)
    }

    /// Checks that an object is there and may be read, and (without a view) written.
    async fn opened(self, oid: Oid, view: Option<&View>) -> Result<()> {
        let object = self.large_object(oid, view).await?.ok_or_else(|| missing(oid))?;
        let judge = Judge::of(self.run.core, &self.run.names.catalog);
        let may = |letter| judge.may(&object.acl, AclKind::LargeObject, object.owner, letter);
        if self.checks_rights() && !(may('r') && (view.is_some() || may('w'))) {
            return Err(SqlError::new("42501", format!("permission denied for large object {oid}")));
        }
        Ok(())
    }

    async fn lo_open(self, oid: Oid, mode: i64) -> Result<i32> {
        let core = self.run.core;
        if mode & (INV_READ | INV_WRITE) == 0 {
            return Err(invalid(format!("invalid flags for opening a large object: {mode}")));
        }
        if mode & INV_WRITE != 0 {
            self.may_write("lo_open(INV_WRITE)")?;
            self.opened(oid, None).await?;
            return Ok(core.open_descriptor(oid, None));
        }
        let kept = core.seen(Some(&self.run.view));
        self.opened(oid, Some(&kept.view())).await?;
        Ok(core.open_descriptor(oid, kept.into_statement()))
    }

    /// Reads up to so many bytes; fewer: the object ends there.
    async fn read_object(self, oid: Oid, view: Option<&View>, from: u64, most: u64) -> Result<Vec<u8>> {
        let seen = self.run.core.seen(view);
        let mut out = Vec::new();
        while (out.len() as u64) < most {
            let want = (most - out.len() as u64).min(PIECE_BYTES as u64) as usize;
            let from = from + out.len() as u64;
            let piece = self.run.core.engine.take().read_large_object(&seen.view(), oid, from, want).await;
            let piece = piece.map_err(from_engine)?;
            out.extend_from_slice(&piece);
            if piece.len() < want {
                break;
            }
            self.breathe_for(PIECE_BYTES / PAGE_BYTES as usize).await?;
        }
        Ok(out)
    }

    async fn lo_read(self, descriptor: i32, most: i64) -> Result<Datum> {
        let place = self.run.core.large_objects.lock().place(descriptor)?;
        let most = u64::try_from(most).unwrap_or(0);
        let read = self.read_object(place.oid, place.view.as_ref(), place.position, most).await?;
        let position = place.position + read.len() as u64;
        self.run.core.large_objects.lock().set_position(descriptor, position)?;
        Ok(Datum::Bytea(read.into()))
    }

    /// LOB-2: holds the object as it is while its pages are changed.
    async fn hold_object(self, oid: Oid) -> Result<()> {
        let core = self.run.core;
        let mut engine = core.engine.take();
        let held = core.lock_wait(engine.lock_large_object(oid, LockMode::RowKeyShare)).await.map_err(from_engine)?;
        held.map(drop).ok_or_else(|| missing(oid))
    }

    async fn write_object(self, oid: Oid, from: u64, bytes: &[u8]) -> Result<()> {
        let core = self.run.core;
        if from + bytes.len() as u64 > OBJECT_BYTES_MAX {
            return Err(invalid(format!("invalid large object write request size: {}", bytes.len())));
        }
        self.hold_object(oid).await?;
        let (mut at, mut rest) = (from, bytes);
        while !rest.is_empty() {
            // So that a page is changed once only.
            let whole = PIECE_BYTES - (at % PAGE_BYTES) as usize;
            let (piece, later) = rest.split_at(rest.len().min(whole));
            {
                let mut engine = core.engine.take();
                core.lock_wait(engine.write_large_object(oid, at, piece)).await.map_err(from_engine)?;
            }
            (at, rest) = (at + piece.len() as u64, later);
            self.breathe_for(piece.len() / PAGE_BYTES as usize + 1).await?;
        }
        Ok(())
    }

    async fn lo_write(self, descriptor: i32, bytes: &[u8]) -> Result<i32> {
        let place = self.run.core.large_objects.lock().place(descriptor)?;
        self.writable(descriptor, place.view)?;
        self.may_write("lowrite()")?;
        self.write_object(place.oid, place.position, bytes).await?;
        self.run.core.large_objects.lock().set_position(descriptor, place.position + bytes.len() as u64)?;
        Ok(i32::try_from(bytes.len()).unwrap_or(i32::MAX))
    }

    fn writable(self, descriptor: i32, view: Option<View>) -> Result<()> {
        if view.is_none() {
            return Ok(());
        }
        let message = format!("large object descriptor {descriptor} was not opened for writing");
        Err(SqlError::new("55000", message))
    }

    /// How long an object is in a view, or (none) as it is now.
    async fn length(self, oid: Oid, view: Option<&View>) -> Result<u64> {
        let seen = self.run.core.seen(view);
        let length = self.run.core.engine.take().large_object_bytes(&seen.view(), oid).await;
        length.map_err(from_engine)
    }

    async fn lo_seek(self, descriptor: i32, offset: i64, whence: i64) -> Result<u64> {
        let place = self.run.core.large_objects.lock().place(descriptor)?;
        let from = match whence {
            0 => 0,
            1 => place.position,
            2 => self.length(place.oid, place.view.as_ref()).await?,
            _ => return Err(invalid(format!("invalid whence setting: {whence}"))),
        };
        let at = position_of((from as i64).saturating_add(offset))?;
        self.run.core.large_objects.lock().set_position(descriptor, at)?;
        Ok(at)
    }

    async fn lo_truncate(self, descriptor: i32, to: i64, call: &str) -> Result<Datum> {
        let core = self.run.core;
        let place = core.large_objects.lock().place(descriptor)?;
        self.writable(descriptor, place.view)?;
        self.may_write(call)?;
        let to = u64::try_from(to).ok().filter(|to| *to <= OBJECT_BYTES_MAX).ok_or(to);
        let to = to.map_err(|to| invalid(format!("invalid large object truncation target: {to}")))?;
        self.hold_object(place.oid).await?;
        {
            let mut engine = core.engine.take();
            core.lock_wait(engine.truncate_large_object(place.oid, to)).await.map_err(from_engine)?;
        }
        self.drop_pages(place.oid, to / PAGE_BYTES + 1).await?;
        Ok(Datum::Int4(0))
    }

    async fn drop_pages(self, oid: Oid, from: u64) -> Result<()> {
        let core = self.run.core;
        loop {
            let more = {
                let newest = core.seen(None);
                let (view, mut engine) = (newest.view(), core.engine.take());
                core.lock_wait(engine.drop_pages(&view, oid, from, PIECE_PAGES)).await.map_err(from_engine)?
            };
            if !more {
                return Ok(());
            }
            self.breathe_for(PIECE_PAGES).await?;
        }
    }

    async fn lo_unlink(self, oid: Oid) -> Result<Datum> {
        self.may_write("lo_unlink()")?;
        let core = self.run.core;
        let object = self.large_object(oid, None).await?.ok_or_else(|| missing(oid))?;
        let judge = Judge::of(core, &self.run.names.catalog);
        if self.checks_rights() && !judge.owns(object.owner) {
            return Err(SqlError::new("42501", format!("must be owner of large object {oid}")));
        }
        core.close_descriptors_of(oid);
        let dropped = {
            let mut engine = core.engine.take();
            core.lock_wait(engine.forget_large_object(oid)).await.map_err(from_engine)?
        };
        if !dropped {
            return Err(missing(oid));
        }
        self.drop_pages(oid, 0).await?;
        Ok(Datum::Int4(1))
    }

    async fn lo_get(self, oid: Oid, from: i64, most: Option<u64>) -> Result<Datum> {
        let view = Some(&self.run.view);
        self.opened(oid, view).await?;
        let left = self.length(oid, view).await?.saturating_sub(u64::try_from(from).unwrap_or(0));
        let most = most.map_or(left, |most| most.min(left));
        if most > VALUE_BYTES_MAX {
            let message = "large object read request is too large";
            return Err(SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, message));
        }
        Ok(Datum::Bytea(self.read_object(oid, view, position_of(from)?, most).await?.into()))
    }

    /// The path of a file that a superuser names.
    fn path<'a>(self, args: &'a [Datum], i: usize, function: &str) -> Result<&'a str> {
        if !Judge::of(self.run.core, &self.run.names.catalog).is_superuser() {
            return Err(SqlError::new("42501", format!("permission denied for function {function}")));
        }
        Ok(args.get(i).and_then(Datum::as_str).unwrap_or(""))
    }

    async fn lo_import(self, args: &[Datum], oid: Oid) -> Result<Oid> {
        let path = self.path(args, 0, "lo_import")?;
        self.may_write("lo_import()")?;
        let opened = ServerFile::open(self.run.core.db.transactions().store(), path).await;
        let mut file = opened.map_err(|e| of_file(&format!("could not open server file \"{path}\""), &e))?;
        let oid = self.lo_create(oid, "lo_import()").await?;
        let mut at = 0;
        loop {
            let read = file.read().await;
            let read = read.map_err(|e| of_file(&format!("could not read server file \"{path}\""), &e))?.to_vec();
            if read.is_empty() {
                return Ok(oid);
            }
            self.write_object(oid, at, &read).await?;
            at += read.len() as u64;
        }
    }

    async fn lo_export(self, oid: Oid, args: &[Datum]) -> Result<Datum> {
        let path = self.path(args, 1, "lo_export")?;
        let view = Some(&self.run.view);
        self.opened(oid, view).await?;
        let failed = |e| of_file(&format!("could not write server file \"{path}\""), &e);
        let made = ServerFile::create(self.run.core.db.transactions().store(), path).await;
        let mut file = made.map_err(|e| of_file(&format!("could not create server file \"{path}\""), &e))?;
        let mut at = 0;
        loop {
            let read = self.read_object(oid, view, at, PIECE_BYTES as u64).await?;
            file.append(&read);
            file.flush().await.map_err(failed)?;
            at += read.len() as u64;
            if read.len() < PIECE_BYTES {
                return Ok(Datum::Int4(1));
            }
        }
    }
}
