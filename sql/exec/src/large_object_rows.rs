//! The rows of pg_largeobject and pg_largeobject_metadata, which are read from the tables of large objects, and the comments on large objects
//! in pg_description.

use super::{Cx, Keys, Row, SoughtRows};
use clearway_context::errors::from_engine;
use clearway_context::views::SystemView;
use clearway_engine::catalog::AclKind;
use clearway_engine::large_object::{LargeObject, OBJECT_BYTES_MAX, PAGE_BYTES, PAGES_TABLE};
use clearway_syntax::error::Result;
use clearway_values::types::{Datum, Oid};

/// Rows that are read at a time.
const PIECE: usize = 64;
/// The last page that an object can have.
const LAST_PAGE: u64 = OBJECT_BYTES_MAX / PAGE_BYTES;

/// The numbers of the objects that are sought; none: all.
fn numbers<'s>(sought: Option<&'s SoughtRows>, column: &str) -> Option<&'s [Oid]> {
    match sought {
        Some(SoughtRows { column: of, keys: Keys::Oids(oids), .. }) if *of == column => Some(oids.as_slice()),
        _ => None,
    }
}

impl Cx<'_> {
    /// Adds what a table of the system has of large objects, as the statement sees them.
    pub(super) async fn add_large_objects(
        self,
        view: &SystemView,
        sought: Option<&SoughtRows>,
        rows: &mut Vec<Row>,
    ) -> Result<()> {
        let before = rows.len();
        match (view.schema, view.name) {
            ("pg_catalog", "pg_largeobject") => self.add_pages(sought, rows).await?,
            ("pg_catalog", "pg_largeobject_metadata") => {
                for o in self.large_objects(numbers(sought, "oid")).await? {
                    let acl = self.run.views.access_list(&o.acl, o.owner, AclKind::LargeObject, self.run);
                    rows.push(vec![Datum::Oid(o.oid), Datum::Oid(o.owner), acl]);
                }
            }
            ("pg_catalog", "pg_description") => {
                for o in self.large_objects(numbers(sought, "objoid")).await? {
                    if let Some(comment) = o.comment {
                        let place = [Datum::Oid(o.oid), Datum::Oid(PAGES_TABLE), Datum::Int4(0)];
                        rows.push(place.into_iter().chain([Datum::text(comment)]).collect());
                    }
                }
            }
            _ => return Ok(()),
        }
        let version = self.run.names.catalog.lsn.0 as u32;
        for row in &mut rows[before..] {
            row.extend([Datum::Oid(view.oid), Datum::Oid(version), Datum::Oid(0), Datum::Oid(0)]);
        }
        Ok(())
    }

    async fn large_objects(self, sought: Option<&[Oid]>) -> Result<Vec<LargeObject>> {
        let (core, view) = (self.run.core, &self.run.view);
        let mut found = Vec::new();
        if let Some(oids) = sought {
            for oid in oids {
                self.breathe().await?;
                found.extend(core.engine.take().large_object(view, *oid).await.map_err(from_engine)?);
            }
            return Ok(found);
        }
        let mut next = Some(0);
        while let Some(from) = next {
            self.breathe_for(PIECE).await?;
            let some = core.engine.take().large_objects(view, core.database, from, PIECE).await.map_err(from_engine)?;
            next = some.last().filter(|_| some.len() == PIECE).and_then(|last| last.oid.checked_add(1));
            found.extend(some);
        }
        Ok(found)
    }

    async fn add_pages(self, sought: Option<&SoughtRows>, rows: &mut Vec<Row>) -> Result<()> {
        let core = self.run.core;
        let ranges: Vec<_> = match numbers(sought, "loid") {
            Some(oids) => oids.iter().map(|oid| *oid..=*oid).collect(),
            None => vec![0..=Oid::MAX],
        };
        for range in ranges {
            let last = *range.end();
            let mut next = Some((*range.start(), 0));
            while let Some((oid, page)) = next {
                self.breathe_for(PIECE).await?;
                let mut engine = core.engine.take();
                let some = engine.large_object_pages(&self.run.view, oid..=last, page, PIECE).await;
                drop(engine);
                let some = some.map_err(from_engine)?;
                next = some.last().filter(|_| some.len() == PIECE).and_then(|(oid, page, _)| match *page {
                    LAST_PAGE => Some((oid.checked_add(1)?, 0)),
                    page => Some((*oid, page + 1)),
                });
                rows.extend(some.into_iter().map(|(oid, page, data)| {
                    vec![Datum::Oid(oid), Datum::Int4(page as i32), Datum::Bytea(data.into())]
                }));
            }
        }
        Ok(())
    }

    /// The comment on a large object, as obj_description gives it.
    pub(super) async fn large_object_comment(self, args: &[Datum]) -> Result<Datum> {
        let oid = args.first().and_then(Datum::as_i64).and_then(|oid| Oid::try_from(oid).ok()).unwrap_or(0);
        let found = self.large_objects(Some(&[oid])).await?.pop();
        Ok(found.and_then(|object| object.comment).map_or(Datum::Null, Datum::text))
    }
}
