//! The catalog: which objects there are. It is stored in a tree of the database and changed by transactions like any row. In memory it is an
//! immutable version that statements share.
//!
//! # Structure
//! ```text
//! tree 1: object number (8 bytes, big-endian) -> Object as JSON
//! Catalog (immutable, shared) ── cloned, then put(object), remove(oid) ──► the next one
//! ```
//!
//! # Invariants
//! - CAT-1: a name is unique in its name space.
//! - CAT-2: the indexes of a table are those whose `table` is the table's number. The table itself stores no list of them.

pub mod acl;
pub(crate) mod change;
mod foreign_key;
pub mod index;
mod named;
pub mod object;
pub mod operator;
pub mod policy;
pub mod predefined;
pub mod role;
pub mod routine;
pub mod types;

use imbl::OrdMap;
use std::sync::Arc;

use clearway_storage::ids::{Lsn, TreeId};

pub use acl::{Acl, AclKind, Grant};
pub use foreign_key::{ForeignKey, ReferentialAction};
pub use index::{Index, IndexColumn, IndexExpression, IndexState};
pub use object::{
    Check, Column, Comment, Database, Extension, FIRST_USER_OID, Object, Oid, Relation, RelationKind, Schema, Sequence,
    ViewMeaning,
};
pub use operator::Operator;
pub use policy::{Policy, PolicyCondition, RowSecurity};
pub use role::{DefaultAcl, Membership, Role};
pub use routine::{Argument, ArgumentMode, Language, Routine, RoutineKind, Volatility};
pub use types::{Attribute, Composite, Domain, Label, TypeBody, TypeObject};

use crate::error::EngineError;
use crate::value::Storage;

/// The tree in which the catalog stands.
pub const CATALOG_TREE: TreeId = TreeId(1);
/// The tree in which sequences keep their values.
pub const SEQUENCE_TREE: TreeId = TreeId(2);
/// The number of the role that a new directory has.
pub const BOOTSTRAP_ROLE: Oid = 10;

/// How the names of schemas of temporary objects begin.
pub const TEMP_PREFIX: &str = "pg_temp_";

/// One version of the catalog.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    objects: OrdMap<Oid, Arc<Object>>,
    names: OrdMap<(u8, Oid, Arc<str>), Oid>,
    indexes_of: OrdMap<Oid, Vec<Oid>>,
    referenced_by: OrdMap<Oid, Vec<Oid>>,
    temp_schema: Option<Oid>,
    /// The types that users define.
    types: OrdMap<Oid, ()>,
    /// The functions and procedures.
    routines: OrdMap<Oid, ()>,
    /// The operators that users define.
    operators: OrdMap<Oid, ()>,
    /// The commit that made this version; what a statement reads in it depends on that.
    pub lsn: Lsn,
}

impl Catalog {
    /// The object with a number.
    pub fn get(&self, oid: Oid) -> Option<&Arc<Object>> {
        self.objects.get(&oid)
    }

    /// Every object, by number.
    pub fn objects(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.objects.values()
    }

    fn named(&self, space: u8, within: Oid, name: &str) -> Option<&Arc<Object>> {
        self.objects.get(self.names.get(&(space, within, name.into()))?)
    }

    /// A database by name.
    pub fn database(&self, name: &str) -> Option<&Database> {
        match &**self.named(b'd', 0, name)? {
            Object::Database(database) => Some(database),
            _ => None,
        }
    }

    /// The schema of the session's temporary objects, if it has any: no other session's catalog has it.
    pub fn temp_schema(&self) -> Option<&Schema> {
        match &**self.objects.get(&self.temp_schema?)? {
            Object::Schema(schema) => Some(schema),
            _ => None,
        }
    }

    /// Whether an object is in the schema of the session's temporary objects, or is that schema.
    pub fn is_temporary(&self, object: &Object) -> bool {
        match object {
            Object::Schema(o) => o.name.starts_with(TEMP_PREFIX),
            Object::Relation(Relation { schema, .. })
            | Object::Index(Index { schema, .. })
            | Object::Sequence(Sequence { schema, .. }) => Some(*schema) == self.temp_schema,
            Object::Comment(o) => self.get(o.object).is_some_and(|of| self.is_temporary(of)),
            Object::Type(TypeObject { schema, .. })
            | Object::Routine(Routine { schema, .. })
            | Object::Operator(Operator { schema, .. }) => Some(*schema) == self.temp_schema,
            Object::Database(_) | Object::Role(_) => false,
        }
    }

    /// The comments on an object.
    pub fn comments(&self, object: Oid) -> impl Iterator<Item = &Comment> {
        let first = (b'c', object, Arc::from(""));
        let of_object =
            self.names.range(first..).take_while(move |((space, of, _), _)| (*space, *of) == (b'c', object));
        of_object.filter_map(|(_, oid)| match &**self.objects.get(oid)? {
            Object::Comment(comment) => Some(comment),
            _ => None,
        })
    }

    /// A schema by name; `pg_temp` is the session's own.
    pub fn schema(&self, database: Oid, name: &str) -> Option<&Schema> {
        if name == "pg_temp" {
            return self.temp_schema().filter(|schema| schema.database == database);
        }
        match &**self.named(b'n', database, name)? {
            Object::Schema(schema) => Some(schema),
            _ => None,
        }
    }

    /// The schemas of a database, by name.
    pub fn schemas(&self, database: Oid) -> impl Iterator<Item = &Schema> {
        let first = (b'n', database, Arc::from(""));
        let of_database =
            self.names.range(first..).take_while(move |((space, of, _), _)| (*space, *of) == (b'n', database));
        of_database.filter_map(|(_, oid)| match &**self.objects.get(oid)? {
            Object::Schema(schema) => Some(schema),
            _ => None,
        })
    }

    /// A role by name.
    pub fn role(&self, name: &str) -> Option<&Role> {
        match &**self.named(b'a', 0, name)? {
            Object::Role(role) => Some(role),
            _ => None,
        }
    }

    /// The types that users define, by number.
    pub fn types(&self) -> impl Iterator<Item = &TypeObject> {
        self.types.keys().filter_map(|oid| match &**self.objects.get(oid)? {
            Object::Type(found) => Some(found),
            _ => None,
        })
    }

    /// A type of a user by name.
    pub fn type_in(&self, schema: Oid, name: &str) -> Option<&TypeObject> {
        match &**self.named(b't', schema, name)? {
            Object::Type(found) => Some(found),
            _ => None,
        }
    }

    /// The functions and procedures of a name in a schema.
    pub fn routines_in(&self, schema: Oid, name: &str) -> impl Iterator<Item = &Arc<Object>> {
        self.overloaded(b'f', schema, name)
    }

    /// The operators of a name in a schema.
    pub fn operators_in(&self, schema: Oid, name: &str) -> impl Iterator<Item = &Operator> {
        self.overloaded(b'o', schema, name).filter_map(|object| match &**object {
            Object::Operator(operator) => Some(operator),
            _ => None,
        })
    }

    /// The objects of a schema that share a name and differ by the types behind it.
    fn overloaded(&self, space: u8, schema: Oid, name: &str) -> impl Iterator<Item = &Arc<Object>> {
        let prefix: String = format!("{name}\0");
        let first = (space, schema, Arc::from(prefix.as_str()));
        let named = self.names.range(first..).take_while(move |((of_space, of, signature), _)| {
            (*of_space, *of) == (space, schema) && signature.starts_with(&prefix)
        });
        named.filter_map(|(_, oid)| self.objects.get(oid))
    }

    /// The operators that users define, by number.
    pub fn operators(&self) -> impl Iterator<Item = &Operator> {
        self.operators.keys().filter_map(|oid| self.operator(*oid))
    }

    /// Whether there is an operator of a user at all.
    pub fn has_operators(&self) -> bool {
        !self.operators.is_empty()
    }

    /// An operator of a user by number.
    pub fn operator(&self, oid: Oid) -> Option<&Operator> {
        match &**self.objects.get(&oid)? {
            Object::Operator(operator) => Some(operator),
            _ => None,
        }
    }

    /// The functions and procedures, by number.
    pub fn routines(&self) -> impl Iterator<Item = &Routine> {
        self.routines.keys().filter_map(|oid| self.routine(*oid))
    }

    /// Whether there is a function or procedure at all.
    pub fn has_routines(&self) -> bool {
        !self.routines.is_empty()
    }

    /// A function or procedure by number.
    pub fn routine(&self, oid: Oid) -> Option<&Routine> {
        match &**self.objects.get(&oid)? {
            Object::Routine(routine) => Some(routine),
            _ => None,
        }
    }

    /// A table, view, index or sequence by name.
    pub fn in_schema(&self, schema: Oid, name: &str) -> Option<&Arc<Object>> {
        self.named(b'r', schema, name)
    }

    /// A relation by number.
    pub fn relation(&self, oid: Oid) -> Option<&Relation> {
        match &**self.objects.get(&oid)? {
            Object::Relation(relation) => Some(relation),
            _ => None,
        }
    }

    /// The index of this number.
    pub fn index(&self, oid: Oid) -> Option<&Index> {
        match &**self.objects.get(&oid)? {
            Object::Index(index) => Some(index),
            _ => None,
        }
    }

    /// The indexes of a table, in the order of their numbers, the primary key's included.
    pub fn indexes(&self, table: Oid) -> impl Iterator<Item = &Index> {
        let oids = self.indexes_of.get(&table).map_or(&[][..], |v| v);
        oids.iter().filter_map(|oid| match &**self.objects.get(oid)? {
            Object::Index(index) => Some(index),
            _ => None,
        })
    }

    /// The tables that have a foreign key to this one.
    pub fn referring(&self, table: Oid) -> impl Iterator<Item = &Relation> {
        let oids = self.referenced_by.get(&table).map_or(&[][..], |v| v);
        oids.iter().filter_map(|oid| self.relation(*oid))
    }

    /// Whether an object can be added, or take the place of the object of its number.
    ///
    /// # Errors
    /// `Exists` if another object has the name (CAT-1); `BadCatalog` if a column's storage is unknown.
    pub(crate) fn takes(&self, object: &Object) -> Result<(), EngineError> {
        if let Object::Relation(relation) = object
            && let Some(column) = relation.columns.iter().find(|c| Storage::from_code(c.storage).is_none())
        {
            return Err(EngineError::BadCatalog(format!(
                "column {} of {} has an unknown storage",
                column.name, relation.name
            )));
        }
        match self.names.get(&key_of(object)) {
            Some(oid) if *oid != object.oid() => {
                Err(EngineError::Exists { kind: object.kind(), name: object.name().to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Adds an object, or replaces the object of its number.
    ///
    /// # Errors
    /// Those of `takes`; then nothing has changed.
    pub(crate) fn put(&mut self, object: Arc<Object>) -> Result<(), EngineError> {
        self.takes(&object)?;
        self.remove(object.oid());
        if matches!(&*object, Object::Schema(schema) if schema.name.starts_with(TEMP_PREFIX)) {
            self.temp_schema = Some(object.oid());
        }
        self.names.insert(key_of(&object), object.oid());
        match &*object {
            Object::Index(index) => insert_sorted(self.indexes_of.entry(index.table).or_default(), index.oid),
            Object::Relation(relation) => {
                for key in &relation.foreign_keys {
                    insert_sorted(self.referenced_by.entry(key.references).or_default(), relation.oid);
                }
            }
            Object::Type(found) => {
                self.types.insert(found.oid, ());
            }
            Object::Routine(routine) => {
                self.routines.insert(routine.oid, ());
            }
            Object::Operator(operator) => {
                self.operators.insert(operator.oid, ());
            }
            _ => {}
        }
        self.objects.insert(object.oid(), object);
        Ok(())
    }

    /// Removes an object, if it is there.
    pub(crate) fn remove(&mut self, oid: Oid) {
        let Some(object) = self.objects.remove(&oid) else { return };
        self.temp_schema = self.temp_schema.filter(|schema| *schema != oid);
        self.types.remove(&oid);
        self.routines.remove(&oid);
        self.operators.remove(&oid);
        self.names.remove(&key_of(&object));
        match &*object {
            Object::Index(index) => remove_from(&mut self.indexes_of, index.table, oid),
            Object::Relation(relation) => {
                for key in &relation.foreign_keys {
                    remove_from(&mut self.referenced_by, key.references, oid);
                }
            }
            _ => {}
        }
    }
}

/// Where the name of an object stands in `names`.
fn key_of(object: &Object) -> (u8, Oid, Arc<str>) {
    let (space, within) = object.name_space();
    (space, within, Arc::from(&*object.unique_name()))
}

fn insert_sorted(list: &mut Vec<Oid>, oid: Oid) {
    if let Err(at) = list.binary_search(&oid) {
        list.insert(at, oid);
    }
}

fn remove_from(map: &mut OrdMap<Oid, Vec<Oid>>, key: Oid, oid: Oid) {
    if let Some(list) = map.get_mut(&key) {
        list.retain(|o| *o != oid);
        if list.is_empty() {
            map.remove(&key);
        }
    }
}

/// The key under which an object stands in the catalog's tree.
pub fn object_key(oid: Oid) -> [u8; 8] {
    u64::from(oid).to_be_bytes()
}

/// An object as it is stored.
///
/// # Errors
/// `BadCatalog`, which cannot happen for objects made in memory.
pub fn encode_object(object: &Object) -> Result<Vec<u8>, EngineError> {
    serde_json::to_vec(object).map_err(|e| EngineError::BadCatalog(format!("{} {}: {e}", object.kind(), object.name())))
}

/// An object as it was stored.
///
/// # Errors
/// `BadCatalog` if the bytes are none.
pub fn decode_object(bytes: &[u8]) -> Result<Object, EngineError> {
    serde_json::from_slice(bytes).map(Object::completed).map_err(|e| EngineError::BadCatalog(e.to_string()))
}
