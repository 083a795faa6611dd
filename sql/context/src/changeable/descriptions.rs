//! pg_description and pg_shdescription: comments, at any place.

use super::catalog::{Changeable, Edit, Here, number, text};
use crate::comments::{self, Home, Place};
use clearway_engine::catalog::{Comment, Object};
use clearway_syntax::error::{Result, SqlError};
use clearway_values::types::{Datum, Oid};

/// pg_description.
pub(super) struct Descriptions;

/// pg_shdescription.
pub(super) struct SharedDescriptions;

fn place(row: &[Datum]) -> Place {
    let part = row.get(2).and_then(Datum::as_i64).and_then(|n| i32::try_from(n).ok()).unwrap_or(0);
    Place { object: number(row, 0), class: number(row, 1), part }
}

fn shared_place(row: &[Datum]) -> Place {
    Place { object: number(row, 0), class: number(row, 1), part: 0 }
}

/// A comment that comes with the system belongs to no object of the catalog.
fn builtin() -> SqlError {
    SqlError::unsupported("a change of a comment that comes with the system")
}

/// The edits for a comment that was `known`, and gets a text at a home; none: it goes.
fn edits(here: Here<'_>, known: Option<&Comment>, new: Option<(Home, &str)>) -> Vec<Edit> {
    match (known, new) {
        (known, Some(((object, part), text))) => {
            let oid = known.map_or_else(|| here.core.db.new_oid(), |comment| comment.oid);
            vec![Edit::Put(Box::new(Object::Comment(Comment { oid, object, part, text: text.to_owned() })))]
        }
        (Some(comment), None) => vec![Edit::Drop(comment.oid)],
        (None, None) => Vec::new(),
    }
}

impl Changeable for Descriptions {
    fn name(&self) -> &'static str {
        "pg_description"
    }

    fn key(&self) -> (&'static str, &'static [usize]) {
        ("pg_description_o_c_o_index", &[0, 1, 2])
    }

    fn columns(&self) -> &'static [&'static str] {
        &["objoid", "classoid", "objsubid", "description"]
    }

    fn has_free_rows(&self) -> bool {
        true
    }

    fn kept_by(&self, here: Here<'_>, row: &[Datum]) -> Option<Oid> {
        comments::find(here.catalog, here.database, place(row)).map(|comment| comment.oid)
    }

    fn about(&self, here: Here<'_>, row: &[Datum]) -> Option<Oid> {
        let (object, _) = comments::home(here.catalog, here.database, place(row));
        (object != here.database).then_some(object)
    }

    fn edits(&self, here: Here<'_>, old: Option<&[Datum]>, new: Option<&[Datum]>) -> Result<Vec<Edit>> {
        let known = old.map(|old| comments::find(here.catalog, here.database, place(old)).ok_or_else(builtin));
        let new = new.map(|new| (comments::home(here.catalog, here.database, place(new)), text(new, 3)));
        Ok(edits(here, known.transpose()?, new))
    }
}

impl Changeable for SharedDescriptions {
    fn name(&self) -> &'static str {
        "pg_shdescription"
    }

    fn key(&self) -> (&'static str, &'static [usize]) {
        ("pg_shdescription_o_c_index", &[0, 1])
    }

    fn columns(&self) -> &'static [&'static str] {
        &["objoid", "classoid", "description"]
    }

    fn has_free_rows(&self) -> bool {
        true
    }

    fn kept_by(&self, here: Here<'_>, row: &[Datum]) -> Option<Oid> {
        comments::find_shared(here.catalog, shared_place(row)).map(|comment| comment.oid)
    }

    fn about(&self, here: Here<'_>, row: &[Datum]) -> Option<Oid> {
        let (object, _) = comments::shared_home(here.catalog, shared_place(row));
        (object != 0).then_some(object)
    }

    fn edits(&self, here: Here<'_>, old: Option<&[Datum]>, new: Option<&[Datum]>) -> Result<Vec<Edit>> {
        let known = old.map(|old| comments::find_shared(here.catalog, shared_place(old)).ok_or_else(builtin));
        let new = new.map(|new| (comments::shared_home(here.catalog, shared_place(new)), text(new, 2)));
        Ok(edits(here, known.transpose()?, new))
    }
}
