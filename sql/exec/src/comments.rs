//! obj_description and its variants, and pg_notify.

use super::Cx;
use clearway_context::comments::{self, Place};
use clearway_context::views;
use clearway_engine::catalog::Comment;
use clearway_syntax::error::{Result, SqlError};
use clearway_values::expr::HostFunction;
use clearway_values::types::{Datum, Oid};

fn text(args: &[Datum], i: usize) -> &str {
    args.get(i).and_then(Datum::as_str).unwrap_or("")
}

fn number(args: &[Datum]) -> Oid {
    args.first().and_then(Datum::as_i64).and_then(|oid| Oid::try_from(oid).ok()).unwrap_or(0)
}

fn shown(comment: Option<&Comment>) -> Datum {
    comment.map_or(Datum::Null, |comment| Datum::text(comment.text.as_str()))
}

impl Cx<'_> {
    /// Calls one of these functions.
    pub(super) fn comment_call(self, function: HostFunction, args: &[Datum]) -> Result<Datum> {
        use HostFunction as F;
        Ok(match function {
            F::ObjDescription => self.comment_on(args, text(args, 1), 0),
            F::ObjDescriptionAny => {
                let (catalog, database) = (&self.run.names.catalog, self.run.names.database);
                shown(comments::find_any(catalog, database, number(args)))
            }
            F::ShobjDescription => {
                let class = views::find("pg_catalog", text(args, 1)).map_or(0, |view| view.oid);
                let place = Place { object: number(args), class, part: 0 };
                shown(comments::find_shared(&self.run.names.catalog, place))
            }
            F::ColDescription => {
                let part = args.get(1).and_then(Datum::as_i64).and_then(|n| i32::try_from(n).ok()).unwrap_or(0);
                self.comment_on(args, "pg_class", part)
            }
            F::PgNotify => self.notify(args)?,
            F::NotificationQueueUsage => Datum::Float8(self.run.core.backends.channels.usage()),
            _ => return Err(SqlError::internal("a function of another kind")),
        })
    }

    /// The comment on what has a number in a catalog. Catalogs of the system alone are looked for, by name.
    fn comment_on(self, args: &[Datum], class: &str, part: i32) -> Datum {
        let (catalog, database) = (&self.run.names.catalog, self.run.names.database);
        let class = views::find("pg_catalog", class).filter(|view| view.is_table()).map_or(0, |view| view.oid);
        shown(comments::find(catalog, database, Place { object: number(args), class, part }))
    }

    fn notify(self, args: &[Datum]) -> Result<Datum> {
        let core = self.run.core;
        core.ends_with_work();
        let (channel, payload) = (text(args, 0), text(args, 1));
        core.notifying.lock().notify(&core.backends.channels, core.backend.pid, channel, payload)?;
        Ok(Datum::Void)
    }
}
