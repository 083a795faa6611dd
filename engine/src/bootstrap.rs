//! What a new directory holds: the system's trees, a role, two databases, their schemas.

use std::sync::Arc;

use clearway_storage::ids::TreeId;

use crate::catalog::predefined::DATABASE_OWNER;
use crate::catalog::{Acl, BOOTSTRAP_ROLE, CATALOG_TREE, Comment, Database, Object, Role, SEQUENCE_TREE, Schema};
use crate::db::Db;
use crate::error::EngineError;
use crate::session::{Durability, TxnOptions};

/// The trees that a new directory has.
const SYSTEM_TREES: [TreeId; 2] = [CATALOG_TREE, SEQUENCE_TREE];
/// The databases of a new directory with the numbers of their schemas `public`, and of the comments on these.
const DATABASES: [(&str, u32, u32, u32); 2] = [("postgres", 5, 2200, 16_001), ("clearway", 6, 2201, 16_002)];

/// Fills a new directory.
pub(crate) async fn bootstrap(db: &Arc<Db>) -> Result<(), EngineError> {
    let mut session = db.session(0, 0);
    session.begin(TxnOptions::default());
    for tree in SYSTEM_TREES {
        let made = session.create_tree().await?;
        assert_eq!(made, tree, "the first trees of a directory");
    }
    session
        .put_object(Object::Role(Role {
            login: true,
            superuser: true,
            create_db: true,
            create_role: true,
            bypass_rls: true,
            ..Role::new(BOOTSTRAP_ROLE, "postgres")
        }))
        .await?;
    for (name, oid, public, comment) in DATABASES {
        session.put_object(Object::Database(Database::new(oid, name, BOOTSTRAP_ROLE))).await?;
        let acl = Acl::of_public_schema(DATABASE_OWNER);
        let schema = Schema { acl, ..Schema::new(public, oid, "public", DATABASE_OWNER) };
        session.put_object(Object::Schema(schema)).await?;
        session.put_object(Object::Comment(Comment::of_public_schema(comment, public))).await?;
    }
    session.commit(Durability::Wait).await
}
