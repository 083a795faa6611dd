//! The schemas, roles, types and functions that an object names: they must not be dropped while the object exists (SES-8).

use super::acl::PUBLIC;
use super::object::{FIRST_USER_OID, Object, Oid};
use super::types::TypeBody;
use super::{Acl, Catalog};

impl Object {
    /// The numbers of the schemas, roles, types and functions that it names.
    pub(crate) fn named_objects(&self, catalog: &Catalog) -> Vec<Oid> {
        let mut out: Vec<Oid> = self.owner().into_iter().collect();
        let mut lists: Vec<&Acl> = self.acl().map(|(acl, _)| acl).into_iter().collect();
        let mut types = Vec::new();
        match self {
            Object::Relation(r) => {
                out.push(r.schema);
                lists.extend(r.columns.iter().map(|c| &c.acl));
                types.extend(r.columns.iter().filter(|c| !c.is_dropped()).map(|c| c.type_oid));
                out.extend(r.security.policies.iter().flat_map(|p| p.roles.iter().copied()));
            }
            Object::Index(i) => out.push(i.schema),
            Object::Sequence(q) => out.push(q.schema),
            Object::Type(t) => {
                out.push(t.schema);
                match &t.body {
                    TypeBody::Enum(_) => {}
                    TypeBody::Domain(domain) => types.push(domain.below()),
                    TypeBody::Composite(c) => types.extend(c.attributes.iter().map(|a| a.type_oid)),
                }
            }
            Object::Routine(r) => {
                out.push(r.schema);
                types.extend(r.arguments.iter().map(|a| a.type_oid).chain([r.result]));
            }
            Object::Operator(o) => {
                out.push(o.schema);
                types.extend([o.left, o.right, o.result]);
                let functions = [o.function, o.restrict, o.join];
                out.extend(functions.into_iter().filter(|oid| *oid >= FIRST_USER_OID));
            }
            Object::Role(r) => {
                out.extend(r.member_of.iter().map(|m| m.role));
                lists.extend(r.defaults.iter().map(|d| &d.acl));
            }
            Object::Database(_) | Object::Schema(_) | Object::Comment(_) => {}
        }
        out.extend(lists.into_iter().flat_map(Acl::roles));
        let user_types = types.into_iter().filter(|oid| *oid >= FIRST_USER_OID);
        out.extend(
            user_types.filter_map(|oid| catalog.types().find(|t| t.oid == oid || t.array == oid).map(|t| t.oid)),
        );
        out.retain(|oid| *oid != PUBLIC);
        out.sort_unstable();
        out.dedup();
        out
    }
}
