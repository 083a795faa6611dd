//! obj_description and its variants, and pg_notify.

use super::Cx;
use crate::context::names::{check_oid, check_oid_of};
use crate::error::{Result, SqlError};
use crate::expr::HostFunction;
use crate::types::{Datum, Oid};
use clearway_engine::catalog::{Object, TypeBody, TypeObject};

fn text(args: &[Datum], i: usize) -> &str {
    args.get(i).and_then(Datum::as_str).unwrap_or("")
}

impl Cx<'_> {
    /// Calls one of these functions.
    pub(super) fn comment_call(self, function: HostFunction, args: &[Datum]) -> Result<Datum> {
        use HostFunction as F;
        Ok(match function {
            F::ObjDescription | F::ObjDescriptionAny => self.comment_on(args, text(args, 1)),
            F::ShobjDescription => self.comment_on(args, "pg_database"),
            F::ColDescription => {
                let number = args.get(1).and_then(Datum::as_i64).unwrap_or(0);
                self.comment_of(args, |part| number > 0 && *part == number.to_string())
            }
            F::PgNotify => self.notify(args)?,
            F::NotificationQueueUsage => Datum::Float8(self.run.core.backends.channels.usage()),
            _ => return Err(SqlError::internal("a function of another kind")),
        })
    }

    fn comment_of(self, args: &[Datum], wanted: impl Fn(&String) -> bool) -> Datum {
        let object = args.first().and_then(Datum::as_i64).and_then(|oid| Oid::try_from(oid).ok()).unwrap_or(0);
        let mut comments = self.run.names.catalog.comments(object);
        comments.find(|comment| wanted(&comment.part)).map_or(Datum::Null, |comment| Datum::text(comment.text.as_str()))
    }

    /// obj_description: the comment on a whole object, or on a constraint.
    fn comment_on(self, args: &[Datum], class: &str) -> Datum {
        if class == "pg_policy" {
            return self.comment_on_policy(args);
        }
        if class == "pg_extension" {
            let oid = args.first().and_then(Datum::as_i64).and_then(|oid| Oid::try_from(oid).ok()).unwrap_or(0);
            let part = crate::context::extensions::comment_part(oid);
            let mut comments = self.run.names.catalog.comments(self.run.names.database);
            let comment = comments.find(|comment| comment.part == part);
            return comment.map_or(Datum::Null, |comment| Datum::text(comment.text.as_str()));
        }
        if class != "pg_constraint" {
            return self.comment_of(args, String::is_empty);
        }
        let catalog = &self.run.names.catalog;
        let oid = args.first().and_then(Datum::as_i64).and_then(|oid| Oid::try_from(oid).ok()).unwrap_or(0);
        let of_index = || catalog.index(oid).map(|index| (index.table, index.name.clone()));
        let of_key = || {
            catalog.objects().find_map(|o| match &**o {
                Object::Relation(r) => r.foreign_keys.iter().find(|k| k.oid == oid).map(|k| (r.oid, k.name.clone())),
                _ => None,
            })
        };
        let of_check = || {
            catalog.objects().find_map(|o| match &**o {
                Object::Relation(r) => {
                    let mut checks = r.checks.iter().enumerate();
                    checks.find(|(at, _)| check_oid(r, *at) == oid).map(|(_, check)| (r.oid, check.name.clone()))
                }
                Object::Type(TypeObject { oid: domain, body: TypeBody::Domain(d), .. }) => {
                    let mut checks = d.checks.iter().enumerate();
                    let found = checks.find(|(at, _)| check_oid_of(*domain, *at) == oid);
                    found.map(|(_, check)| (*domain, check.name.clone()))
                }
                _ => None,
            })
        };
        let Some((table, name)) = of_index().or_else(of_key).or_else(of_check) else { return Datum::Null };
        let mut comments = catalog.comments(table);
        comments.find(|comment| comment.part == name).map_or(Datum::Null, |comment| Datum::text(comment.text.as_str()))
    }

    fn comment_on_policy(self, args: &[Datum]) -> Datum {
        let catalog = &self.run.names.catalog;
        let oid = args.first().and_then(Datum::as_i64).and_then(|oid| Oid::try_from(oid).ok()).unwrap_or(0);
        let table = catalog.objects().find_map(|o| match &**o {
            Object::Relation(r) => r.security.policies.iter().any(|p| p.oid == oid).then_some(r.oid),
            _ => None,
        });
        let part = format!("policy {oid}");
        let comment = table.and_then(|table| catalog.comments(table).find(|comment| comment.part == part));
        comment.map_or(Datum::Null, |comment| Datum::text(comment.text.as_str()))
    }

    fn notify(self, args: &[Datum]) -> Result<Datum> {
        let core = self.run.core;
        core.ends_with_work();
        let (channel, payload) = (text(args, 0), text(args, 1));
        core.notifying.lock().notify(&core.backends.channels, core.backend.pid, channel, payload)?;
        Ok(Datum::Void)
    }
}
