//! DROP and TRUNCATE.

use super::cascade::{needed, needed_by, shown, shown_column, shown_constraint, shown_index};
use super::referrers::DroppedPart;
use super::{Ddl, missing};
use crate::constant::constant_of;
use crate::context::core::Core;
use crate::context::errors::from_engine;
use crate::context::names::schema_of;
use crate::context::privileges;
use crate::error::{Result, SqlError, code};
use crate::planner::environment::{find_object, relation_oid, with_env};
use crate::planner::{PlanEnv, Planner};
use crate::syntax::ast::QualName;
use crate::syntax::ddl::{Drop, ObjectKind};
use crate::syntax::stmt::Truncate;
use crate::types::{oid, user};
use clearway_base::{breath, stack};
use clearway_engine::catalog::{Catalog, ForeignKey, Object, Relation, RelationKind, Sequence};
use clearway_storage::ids::TreeId;
use clearway_txn::lockmgr::{IfTaken, LockMode};
use std::sync::Arc;

fn kind_name(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Table => "table",
        ObjectKind::Index => "index",
        ObjectKind::View => "view",
        ObjectKind::MaterializedView => "materialized view",
        ObjectKind::Sequence => "sequence",
        ObjectKind::Schema => "schema",
        ObjectKind::Database => "database",
        ObjectKind::Role => "role",
        ObjectKind::Rule => "rule",
        ObjectKind::Column => "column",
        ObjectKind::Constraint => "constraint",
        ObjectKind::Type => "type",
        ObjectKind::Domain => "domain",
        ObjectKind::Policy => "policy",
        ObjectKind::Function => "function",
        ObjectKind::LargeObject => "large object",
    }
}

fn tag(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Table => "DROP TABLE",
        ObjectKind::Index => "DROP INDEX",
        ObjectKind::View => "DROP VIEW",
        ObjectKind::MaterializedView => "DROP MATERIALIZED VIEW",
        ObjectKind::Sequence => "DROP SEQUENCE",
        ObjectKind::Schema => "DROP SCHEMA",
        ObjectKind::Database => "DROP DATABASE",
        ObjectKind::Role => "DROP ROLE",
        ObjectKind::Rule => "DROP RULE",
        ObjectKind::Type => "DROP TYPE",
        ObjectKind::Domain => "DROP DOMAIN",
        ObjectKind::Function => "DROP FUNCTION",
        ObjectKind::LargeObject => "ALTER LARGE OBJECT",
        ObjectKind::Column | ObjectKind::Constraint | ObjectKind::Policy => "ALTER TABLE",
    }
}

/// What keeps a relation from being dropped: views over it and foreign keys that lead to it, and what depends on those views; the last one first.
/// The order is that of PostgreSQL's findDependentObjects (src/backend/catalog/dependency.c). `met` has the numbers of those that have a line.
fn in_the_way(catalog: &Catalog, r: &Relation, together: &[u32], met: &mut Vec<u32>, lines: &mut Vec<String>) {
    let views = dependents(catalog, r).into_iter().filter(|view| !together.contains(&view.oid));
    let mut found: Vec<_> = views.map(|view| (view.oid, shown(&view), Some(view))).collect();
    for child in catalog.referring(r.oid).filter(|child| child.oid != r.oid && !together.contains(&child.oid)) {
        let keys = child.foreign_keys.iter().filter(|k| k.references == r.oid);
        found.extend(keys.map(|k| (k.oid, shown_constraint(&k.name, child), None)));
    }
    found.sort_by_key(|(oid, ..)| std::cmp::Reverse(*oid));
    for (oid, what, view) in found {
        if met.contains(&oid) {
            continue;
        }
        met.push(oid);
        if let Some(view) = view {
            in_the_way(catalog, &view, together, met, lines);
        }
        lines.push(format!("{what} depends on {}", shown(r)));
    }
}

/// Views that read a relation; of a materialized view only the text is known.
pub(super) fn dependents(catalog: &Catalog, relation: &Relation) -> Vec<Relation> {
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).map(str::to_ascii_lowercase).collect()
    };
    let all = catalog.objects().filter_map(|o| match &**o {
        Object::Relation(r) if r.oid != relation.oid && r.database == relation.database => Some(r),
        _ => None,
    });
    let named = |r: &&Relation| match &r.meaning {
        Some(meaning) => meaning.names.iter().any(|(_, oid)| *oid == relation.oid),
        None => r.query.as_ref().is_some_and(|q| words(q).contains(&relation.name)),
    };
    all.filter(named).cloned().collect()
}

/// The relations that the default of a column names; one that can't be read names none.
pub(super) fn named_by_default(core: &Core, env: &PlanEnv<'_>, relation: &Relation, column: usize) -> Vec<u32> {
    let Ok(Some(default)) = Planner::new(env).default_of(relation, column) else { return Vec::new() };
    let mut found = Vec::new();
    crate::planner::walk::each(&default, &mut |e| {
        if e.ty.oid == oid::REGCLASS && !e.may_wait() {
            let value = constant_of(core, e, env).ok().and_then(|v| v.as_i64());
            found.extend(value.and_then(|v| u32::try_from(v).ok()));
        }
    });
    found
}

impl Ddl<'_> {
    /// DROP.
    pub(super) async fn drop(&self, s: &Drop) -> Result<&'static str> {
        match s.object {
            ObjectKind::Rule => return self.drop_rule(s).await,
            ObjectKind::Schema | ObjectKind::Database | ObjectKind::Role => {
                for name in &s.names {
                    self.drop_global(s, name).await?;
                }
                return Ok(tag(s.object));
            }
            _ => {}
        }
        let mut found = Vec::new();
        for name in &s.names {
            // A name is looked for in each schema of the path.
            breath::breathe(breath::ROW).await?;
            if let Some(oid) = self.find_to_drop(s, name).await? {
                found.push(oid);
            }
        }
        for oid in &found {
            self.drop_one(*oid, s.cascade, &found).await?;
        }
        Ok(tag(s.object))
    }

    /// What a name leads to once it is locked: a transaction that dropped it, or put another in its place, has ended by then. None: nothing, and the
    /// statement says IF EXISTS.
    async fn find_to_drop(&self, s: &Drop, name: &QualName) -> Result<Option<u32>> {
        let kind = kind_name(s.object);
        let mut locked = None;
        loop {
            let Some(object) = find_object(self.core, &self.catalog(), name) else {
                if s.if_exists {
                    let message = match self.missing_schema(name) {
                        Some(schema) => format!("schema \"{schema}\" does not exist, skipping"),
                        None => format!("{kind} \"{}\" does not exist, skipping", name.name()),
                    };
                    self.core.notice("NOTICE", SqlError::new("00000", message));
                    return Ok(None);
                }
                return Err(self.no_such(kind, name));
            };
            if object.kind() != kind {
                let message = format!("\"{}\" is not {} {kind}", name.name(), if kind == "index" { "an" } else { "a" });
                return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).hint(format!(
                    "Use DROP {} to remove a {}.",
                    object.kind().to_uppercase(),
                    object.kind()
                )));
            }
            // Judged again when it is locked: it may have gone to another owner during the wait.
            privileges::may_drop(self.core, &self.catalog(), &object)?;
            if locked == Some(object.oid()) {
                return Ok(locked);
            }
            if let Object::Index(i) = &*object {
                match s.concurrently {
                    true => self.core.lock_holding_nobody(i.table, LockMode::AccessExclusive).await?,
                    false => self.core.lock_relation(i.table, LockMode::AccessExclusive, IfTaken::Wait).await?,
                }
                self.engine().read_again(i.table);
            }
            self.lock(object.oid(), LockMode::AccessExclusive).await?;
            locked = Some(object.oid());
        }
    }

    pub(super) async fn drop_one(&self, oid: u32, cascade: bool, together: &[u32]) -> Result<()> {
        let catalog = self.catalog();
        let Some(object) = catalog.get(oid).cloned() else { return Ok(()) };
        match &*object {
            Object::Relation(r) => {
                self.lock(oid, LockMode::AccessExclusive).await?;
                self.drop_relation(r, cascade, together).await
            }
            Object::Index(i) => {
                if i.constraint {
                    let Some(table) = catalog.relation(i.table) else { return Ok(()) };
                    let constraint = shown_constraint(&i.name, table);
                    let message = format!("cannot drop {} because {constraint} requires it", shown_index(i));
                    return Err(SqlError::new("2BP01", message).hint(format!("You can drop {constraint} instead.")));
                }
                self.lock(i.table, LockMode::AccessExclusive).await?;
                self.lock(oid, LockMode::AccessExclusive).await?;
                if let Some(table) = self.catalog().relation(i.table).cloned() {
                    self.drop_referrers(table, DroppedPart::Index(i), cascade).await?;
                }
                self.take_away(oid, Some(i.tree)).await
            }
            Object::Sequence(q) => {
                self.drop_defaults(q, cascade, together).await?;
                self.lock(oid, LockMode::AccessExclusive).await?;
                self.take_away(oid, None).await
            }
            Object::Type(ty) => self.drop_type(ty, cascade).await,
            Object::Routine(_) => self.drop_routine(oid, cascade, together).await,
            Object::Operator(_) => self.drop_operator(oid, cascade, together).await,
            _ => Ok(()),
        }
    }

    /// The defaults of columns that take their values from a sequence go with it, or keep it from being dropped.
    async fn drop_defaults(&self, q: &Sequence, cascade: bool, together: &[u32]) -> Result<()> {
        let this = format!("sequence {}", user::shown(q.schema, &q.name));
        let users = self.defaults_with(q)?;
        let mut details = Vec::new();
        for (relation, column) in users.iter().filter(|(r, _)| !together.contains(&r.oid)) {
            let named = shown_column(&relation.columns[*column].name, relation);
            if relation.columns[*column].identity.is_some() {
                let message = format!("cannot drop {this} because {named} requires it");
                return Err(SqlError::new("2BP01", message).hint(format!("You can drop {named} instead.")));
            }
            details.push(format!("default value for {named}"));
        }
        if details.is_empty() {
            return Ok(());
        }
        if !cascade {
            return Err(needed_by(&details, &this, &this));
        }
        for detail in details {
            self.tell_cascade(&[detail]);
        }
        for (relation, column) in users {
            self.lock(relation.oid, LockMode::AccessExclusive).await?;
            if let Some(mut fresh) = self.catalog().relation(relation.oid).cloned() {
                fresh.columns[column].default = None;
                self.put(Object::Relation(fresh)).await?;
            }
        }
        Ok(())
    }

    /// Columns whose defaults name a sequence.
    fn defaults_with(&self, q: &Sequence) -> Result<Vec<(Relation, usize)>> {
        let catalog = self.catalog();
        let mut out = Vec::new();
        for object in catalog.objects() {
            let Object::Relation(relation) = &**object else { continue };
            if relation.database != q.database {
                continue;
            }
            for (column, c) in relation.columns.iter().enumerate() {
                // Only what calls a function of sequences can name one.
                if c.default.as_ref().is_some_and(|text| text.to_ascii_lowercase().contains("val"))
                    && with_env(self.core, &catalog, |env| {
                        named_by_default(self.core, env, relation, column).contains(&q.oid)
                    })
                {
                    out.push((relation.clone(), column));
                }
            }
        }
        Ok(out)
    }

    pub(super) async fn take_away(&self, oid: u32, tree: Option<u64>) -> Result<()> {
        let comments: Vec<u32> = self.catalog().comments(oid).map(|comment| comment.oid).collect();
        let mut engine = self.engine();
        for comment in comments {
            self.core.lock_wait(engine.drop_object(comment)).await.map_err(from_engine)?;
        }
        self.core.lock_wait(engine.drop_object(oid)).await.map_err(from_engine)?;
        if let Some(tree) = tree.filter(|t| *t != 0) {
            engine.drop_tree_at_commit(TreeId(tree));
        }
        Ok(())
    }

    async fn drop_relation(&self, r: &Relation, cascade: bool, together: &[u32]) -> Result<()> {
        let catalog = self.catalog();
        if !cascade {
            let mut lines = Vec::new();
            in_the_way(&catalog, r, together, &mut Vec::new(), &mut lines);
            if !lines.is_empty() {
                lines.reverse();
                let error = needed(&shown(r), lines.join("\n"));
                let of_several = "cannot drop desired object(s) because other objects depend on them";
                return Err(if together.len() > 1 { error.saying(of_several) } else { error });
            }
        }
        self.drop_views_and_keys(&catalog, r, together).await?;
        self.drop_policies_about(r, cascade, together).await?;
        self.drop_routines_about(r, cascade, together).await?;
        self.drop_row_users(r, cascade, together).await?;
        self.not_in_use("DROP TABLE", r.oid, &r.name)?;
        self.lock_parents(r, r.foreign_keys.iter()).await?;
        let catalog = self.catalog();
        let indexes: Vec<(u32, u64)> = catalog.indexes(r.oid).map(|i| (i.oid, i.tree)).collect();
        for (index, tree) in indexes {
            self.lock(index, LockMode::AccessExclusive).await?;
            self.take_away(index, (tree != r.tree).then_some(tree)).await?;
        }
        for sequence in self.lock_owned_sequences(r.oid).await? {
            self.take_away(sequence, None).await?;
        }
        self.take_away(r.oid, Some(r.tree)).await
    }

    /// A relation goes: so do the views over it and the foreign keys that lead to it, the older ones first.
    async fn drop_views_and_keys(&self, catalog: &Catalog, r: &Relation, together: &[u32]) -> Result<()> {
        let views = dependents(catalog, r).into_iter().map(|view| (view.oid, view));
        let mut users: Vec<(u32, Relation)> = views.collect();
        let children = catalog.referring(r.oid).filter(|c| c.oid != r.oid);
        users.extend(children.filter_map(|child| {
            let key = child.foreign_keys.iter().find(|k| k.references == r.oid)?;
            Some((key.oid, child.clone()))
        }));
        users.sort_by_key(|(oid, _)| *oid);
        for (_, user) in users {
            if user.kind == RelationKind::Table {
                if !together.contains(&user.oid) {
                    let keys = user.foreign_keys.iter().filter(|k| k.references == r.oid);
                    self.tell_cascade(&keys.map(|k| shown_constraint(&k.name, &user)).collect::<Vec<_>>());
                }
                self.lock(user.oid, LockMode::AccessExclusive).await?;
                let Some(mut child) = self.catalog().relation(user.oid).cloned() else { continue };
                child.foreign_keys.retain(|k| k.references != r.oid);
                self.put(Object::Relation(child)).await?;
                continue;
            }
            // It may have gone with another view, over which it is, too.
            if together.contains(&user.oid) || self.catalog().relation(user.oid).is_none() {
                continue;
            }
            self.tell_cascade(&[shown(&user)]);
            self.lock(user.oid, LockMode::AccessExclusive).await?;
            Box::pin(stack::deeper_polls(self.drop_relation(&user, true, together))).await?;
        }
        Ok(())
    }

    /// Locks the tables to which foreign keys that go lead: no statement on them looks for referrers meanwhile.
    pub(super) async fn lock_parents(&self, r: &Relation, keys: impl Iterator<Item = &ForeignKey>) -> Result<()> {
        let parents: Vec<u32> = keys.map(|k| k.references).filter(|parent| *parent != r.oid).collect();
        for parent in parents {
            self.lock(parent, LockMode::AccessExclusive).await?;
        }
        Ok(())
    }

    async fn drop_rule(&self, s: &Drop) -> Result<&'static str> {
        let Some(on) = &s.on else { return Err(SqlError::internal("a rule without a table")) };
        let (oid, catalog) = relation_oid(self.core, on)?;
        self.own_oid(&catalog, oid)?;
        self.lock(oid, LockMode::AccessExclusive).await?;
        let catalog = self.catalog();
        let Some(mut relation) = catalog.relation(oid).cloned() else { return Ok("DROP RULE") };
        self.own(&relation)?;
        for name in &s.names {
            let before = relation.insert_nothing_rules.len();
            relation.insert_nothing_rules.retain(|r| r != name.name());
            if before == relation.insert_nothing_rules.len() && !s.if_exists {
                let message = format!("rule \"{}\" for relation \"{}\" does not exist", name.name(), relation.name);
                return Err(SqlError::new(code::UNDEFINED_OBJECT, message));
            }
        }
        self.put(Object::Relation(relation)).await?;
        Ok("DROP RULE")
    }

    async fn drop_global(&self, s: &Drop, name: &QualName) -> Result<()> {
        let kind = kind_name(s.object);
        let mut locked = None;
        let (oid, catalog) = loop {
            let catalog = self.catalog();
            let oid = match s.object {
                ObjectKind::Schema => catalog.schema(self.core.database, name.name()).map(|o| o.oid),
                ObjectKind::Database => catalog.database(name.name()).map(|o| o.oid),
                _ => catalog.role(name.name()).map(|o| o.oid),
            };
            let Some(oid) = oid else {
                if s.if_exists {
                    let message = format!("{kind} \"{}\" does not exist, skipping", name.name());
                    self.core.notice("NOTICE", SqlError::new("00000", message));
                    return Ok(());
                }
                return Err(missing(kind, name.name()));
            };
            match catalog.get(oid).map(|o| &**o) {
                Some(Object::Role(role)) => self.may_drop_role(role)?,
                Some(object) => self.owns(object)?,
                None => {}
            }
            if locked == Some(oid) {
                break (oid, catalog);
            }
            self.lock_to_drop(oid).await?;
            locked = Some(oid);
        };
        if s.object == ObjectKind::Database {
            return self.drop_database(oid, name.name()).await;
        }
        if s.object == ObjectKind::Schema {
            return self.drop_schema(oid, name.name(), s.cascade).await;
        }
        let (database, path) = with_env(self.core, &catalog, |env| (env.database, env.path.to_vec()));
        let large = self.large_objects_that_need(oid).await?;
        let lines = super::role_dependents::of_role(&catalog, (database, &path), oid, large);
        if !lines.is_empty() {
            let message = format!("role \"{}\" cannot be dropped because some objects depend on it", name.name());
            return Err(SqlError::new("2BP01", message).detail(lines.join("\n")));
        }
        self.forget_members(oid).await?;
        self.take_away(oid, None).await
    }

    pub(super) async fn drop_schema(&self, oid: u32, name: &str, cascade: bool) -> Result<()> {
        self.lock_to_drop(oid).await?;
        let catalog = self.catalog();
        let here = |o: &&Arc<Object>| schema_of(o) == Some(oid);
        let inside: Vec<u32> = catalog.objects().filter(here).map(|o| o.oid()).collect();
        let contents = super::cascade::contents(self.core, &catalog, oid, &inside);
        if !cascade && (!inside.is_empty() || !contents.is_empty()) {
            let this = format!("schema {name}");
            return Err(needed_by(&contents, &this, &this));
        }
        // The schema of temporary objects goes without a word.
        if self.cascades.is_some() {
            self.tell_cascade(&contents);
        }
        let is_type = |oid: &&u32| matches!(catalog.get(**oid).map(|o| &**o), Some(Object::Type(_)));
        // Types go when the columns that have them are gone.
        let (mut types, others): (Vec<&u32>, Vec<&u32>) = inside.iter().partition(is_type);
        // A type may be made of older ones.
        types.sort_unstable_by(|a, b| b.cmp(a));
        for object in others.into_iter().chain(types) {
            let index = matches!(self.catalog().get(*object).map(|o| o.kind()), Some("index"));
            if !index {
                self.drop_one(*object, true, &inside).await?;
            }
        }
        self.drop_extensions_of(oid).await?;
        self.forget_defaults(oid).await?;
        self.take_away(oid, None).await
    }

    /// An error while other sessions are in a database.
    pub(super) fn no_other_session_in(&self, _: u32, name: &str) -> Result<()> {
        let users = self.core.backends.all().iter().filter(|b| b.database == name).count();
        if users > 0 {
            let message = format!("database \"{name}\" is being accessed by other users");
            let detail = match users {
                1 => "There is 1 other session using the database.".to_owned(),
                _ => format!("There are {users} other sessions using the database."),
            };
            return Err(SqlError::new("55006", message).detail(detail));
        }
        Ok(())
    }

    async fn drop_database(&self, oid: u32, name: &str) -> Result<()> {
        if oid == self.core.database {
            return Err(SqlError::new("55006", "cannot drop the currently open database"));
        }
        self.no_other_session_in(oid, name)?;
        let catalog = self.catalog();
        for object in catalog.objects() {
            let (inside, tree) = match &**object {
                Object::Relation(r) => (r.database == oid, Some(r.tree)),
                Object::Index(i) => (i.database == oid, if i.primary { None } else { Some(i.tree) }),
                Object::Sequence(q) => (q.database == oid, None),
                Object::Schema(c) => (c.database == oid, None),
                Object::Comment(c) => (c.object == oid, None),
                Object::Type(t) => (t.database == oid, None),
                Object::Routine(r) => (r.database == oid, None),
                Object::Operator(o) => (o.database == oid, None),
                Object::Database(_) | Object::Role(_) => (false, None),
            };
            if inside {
                self.take_away(object.oid(), tree).await?;
            }
        }
        self.drop_large_objects_in(oid).await?;
        self.forget_settings(oid).await?;
        self.take_away(oid, None).await
    }

    /// TRUNCATE: fresh trees in place of the old ones.
    pub(super) async fn truncate(&self, s: &Truncate) -> Result<&'static str> {
        let mut all: Vec<u32> = Vec::new();
        for table in &s.tables {
            let judge = |catalog: &Arc<Catalog>, oid: u32| match catalog.relation(oid) {
                Some(relation) => privileges::relation(self.core, catalog, relation, "D"),
                None => Ok(()),
            };
            let (oid, _) = self.lock_named(&table.name, LockMode::AccessExclusive, judge).await?;
            self.not_in_use("TRUNCATE", oid, table.name.name())?;
            all.push(oid);
        }
        let mut at = 0;
        while at < all.len() {
            let catalog = self.catalog();
            let children: Vec<(u32, String)> = catalog.referring(all[at]).map(|r| (r.oid, r.name.clone())).collect();
            for (child, name) in children {
                if all.contains(&child) {
                    continue;
                }
                if !s.cascade {
                    let parent = catalog.relation(all[at]).map_or("", |r| &r.name);
                    let message = "cannot truncate a table referenced in a foreign key constraint";
                    return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message)
                        .detail(format!("Table \"{name}\" references \"{parent}\"."))
                        .hint(format!("Truncate table \"{name}\" at the same time, or use TRUNCATE ... CASCADE.")));
                }
                self.core.notice("NOTICE", SqlError::new("00000", format!("truncate cascades to table \"{name}\"")));
                if let Some(relation) = catalog.relation(child) {
                    privileges::relation(self.core, &catalog, relation, "D")?;
                }
                self.lock(child, LockMode::AccessExclusive).await?;
                self.not_in_use("TRUNCATE", child, &name)?;
                all.push(child);
            }
            at += 1;
        }
        for oid in all {
            let catalog = self.catalog();
            let relation = catalog.relation(oid).ok_or_else(|| missing("relation", &oid.to_string()))?;
            if relation.kind != RelationKind::Table {
                let message = format!("\"{}\" is not a table", relation.name);
                return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message));
            }
            privileges::relation(self.core, &catalog, relation, "D")?;
            crate::context::rebuild::lock_for_rebuild(self.core, &catalog, oid).await?;
            self.fresh_trees(relation).await?;
            if s.restart_identity {
                self.restart_sequences(oid).await?;
            }
        }
        Ok("TRUNCATE TABLE")
    }

    /// Gives a table and its indexes empty trees.
    pub(super) async fn fresh_trees(&self, relation: &Relation) -> Result<()> {
        let catalog = self.catalog();
        let mut fresh = relation.clone();
        fresh.tree = self.new_tree(relation.schema).await?;
        self.put(Object::Relation(fresh.clone())).await?;
        self.engine().drop_tree_at_commit(TreeId(relation.tree));
        for index in catalog.indexes(relation.oid) {
            let mut index = index.clone();
            if index.tree == relation.tree {
                index.tree = fresh.tree;
            } else {
                self.engine().drop_tree_at_commit(TreeId(index.tree));
                index.tree = self.new_tree(relation.schema).await?;
            }
            self.put(Object::Index(index)).await?;
        }
        Ok(())
    }
}
