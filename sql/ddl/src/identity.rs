//! Identity columns: ADD, SET and DROP IDENTITY.

use super::objects::SequencePlan;
use super::{Ddl, free_name};
use crate::error::{Result, SqlError, code};
use crate::syntax::ast::QualName;
use crate::syntax::ddl::{ColumnConstraintKind, ColumnDef, SequenceOption};
use crate::types::oid;
use clearway_engine::catalog::{Object, Relation, Sequence};

fn wrong_state(message: String) -> SqlError {
    SqlError::new("55000", message)
}

/// Refuses what a column's definition says twice, or once and its opposite.
///
/// # Errors
/// 42601.
pub(super) fn contradiction(c: &ColumnDef, is_serial: bool, table: &str) -> Result<()> {
    use ColumnConstraintKind as K;
    let of = format!("for column \"{}\" of table \"{table}\"", c.name);
    let refuse = |what: &str, pos| {
        let error = SqlError::new(code::SYNTAX_ERROR, format!("{what} {of}"));
        // What a serial type says stands nowhere in the text.
        Err(if is_serial { error } else { error.at(pos) })
    };
    let mut generated = false;
    let (mut default, mut identity, mut null) = (is_serial, false, is_serial.then_some(false));
    for k in &c.constraints {
        let nullable = match &k.kind {
            K::Null => Some(true),
            K::NotNull | K::Identity { .. } => Some(false),
            _ => None,
        };
        if nullable.is_some() && null.is_some_and(|before| nullable != Some(before)) {
            return refuse("conflicting NULL/NOT NULL declarations", k.pos);
        }
        null = nullable.or(null);
        match &k.kind {
            K::Default(..) if default => return refuse("multiple default values specified", k.pos),
            K::Identity { .. } if identity => return refuse("multiple identity specifications", k.pos),
            K::Default(..) => default = true,
            K::Identity { .. } => identity = true,
            K::Generated(..) => generated = true,
            _ => {}
        }
        if generated && (default || identity) {
            let what = if default { "both default" } else { "both identity" };
            return refuse(&format!("{what} and generation expression specified"), k.pos);
        }
        if default && identity {
            return refuse("both default and identity specified", k.pos);
        }
    }
    Ok(())
}

/// Refuses to take NOT NULL off an identity column.
///
/// # Errors
/// 42601.
pub(super) fn may_be_null(r: &Relation, at: usize) -> Result<()> {
    match &r.columns[at] {
        c if c.identity.is_none() => Ok(()),
        c => {
            let message = format!("column \"{}\" of relation \"{}\" is an identity column", c.name, r.name);
            Err(SqlError::new(code::SYNTAX_ERROR, message))
        }
    }
}

/// Refuses a change of what the sequence of an identity column, or its expression, gives a column.
///
/// # Errors
/// 42601.
pub(super) fn keeps_default(r: &Relation, at: usize, set: bool) -> Result<()> {
    let c = &r.columns[at];
    let refuse = |what: &str, drop: &str| {
        let message = format!("column \"{}\" of relation \"{}\" is {what} column", c.name, r.name);
        let error = SqlError::new(code::SYNTAX_ERROR, message);
        Err(if set { error } else { error.hint(format!("Use ALTER TABLE ... ALTER COLUMN ... DROP {drop} instead.")) })
    };
    match (c.identity, c.generated) {
        (Some(_), _) => refuse("an identity", "IDENTITY"),
        (None, true) => refuse("a generated", "EXPRESSION"),
        _ => Ok(()),
    }
}

impl Ddl<'_> {
    /// Takes the name that SEQUENCE NAME gives the sequence of a column out of its options.
    pub(super) fn sequence_name(&self, schema: u32, options: &mut Vec<SequenceOption>) -> Result<Option<String>> {
        let mut name: Option<QualName> = None;
        options.retain(|option| match option {
            SequenceOption::SequenceName(given) => {
                name = Some(given.clone());
                false
            }
            _ => true,
        });
        let Some(name) = name else { return Ok(None) };
        let given = name.schema().and_then(|s| self.catalog().schema(self.core.database, s).map(|s| s.oid));
        if given.is_some_and(|given| given != schema) {
            let message = "sequence must be in same schema as table it is linked to";
            return Err(wrong_state(message.to_owned()));
        }
        if self.catalog().in_schema(schema, name.name()).is_some() {
            return Err(super::exists(name.name()));
        }
        Ok(Some(name.name().to_owned()))
    }

    /// Makes the sequence of a column, and returns its oid.
    pub(super) async fn column_sequence(&self, r: &Relation, at: usize, options: &[SequenceOption]) -> Result<u32> {
        let mut rest = options.to_vec();
        let name = match self.sequence_name(r.schema, &mut rest)? {
            Some(name) => name,
            None => free_name(&self.catalog(), r.schema, &[], &[&r.name, &r.columns[at].name], "seq"),
        };
        let plan = SequencePlan { ty: r.columns[at].type_oid, options: rest };
        self.make_sequence(r.schema, &name, &plan, Some((r.oid, at))).await
    }

    /// ADD GENERATED ... AS IDENTITY.
    pub(super) async fn add_identity(
        &self,
        mut r: Relation,
        column: &str,
        always: bool,
        options: &[SequenceOption],
    ) -> Result<()> {
        let at = super::alter::own_column(&r, column)?;
        let of = format!("column \"{column}\" of relation \"{}\"", r.name);
        let c = &r.columns[at];
        if !c.not_null {
            return Err(wrong_state(format!("{of} must be declared NOT NULL before identity can be added")));
        }
        if c.identity.is_some() {
            return Err(wrong_state(format!("{of} is already an identity column")));
        }
        if c.default.is_some() {
            return Err(wrong_state(format!("{of} already has a default value")));
        }
        if !matches!(c.type_oid, oid::INT2 | oid::INT4 | oid::INT8) {
            return Err(SqlError::new("22023", "identity column type must be smallint, integer, or bigint"));
        }
        let sequence = self.column_sequence(&r, at, options).await?;
        r.columns[at].identity = Some(if always { 'a' } else { 'd' });
        r.columns[at].default = Some(format!("nextval('{sequence}'::regclass)"));
        self.put(Object::Relation(r)).await
    }

    /// SET GENERATED, and SET or RESTART of the column's sequence.
    pub(super) async fn set_identity(
        &self,
        mut r: Relation,
        column: &str,
        always: Option<bool>,
        options: &[SequenceOption],
    ) -> Result<()> {
        let at = super::alter::own_column(&r, column)?;
        if r.columns[at].identity.is_none() {
            let message = format!("column \"{column}\" of relation \"{}\" is not an identity column", r.name);
            return Err(wrong_state(message));
        }
        if !options.is_empty()
            && let Some(sequence) = self.sequence_of(r.oid, at)
        {
            self.change_sequence(sequence, options).await?;
        }
        let Some(always) = always else { return Ok(()) };
        r.columns[at].identity = Some(if always { 'a' } else { 'd' });
        self.put(Object::Relation(r)).await
    }

    /// DROP IDENTITY.
    pub(super) async fn drop_identity(&self, mut r: Relation, column: &str, if_exists: bool) -> Result<()> {
        let at = super::alter::own_column(&r, column)?;
        if r.columns[at].identity.is_none() {
            let message = format!("column \"{column}\" of relation \"{}\" is not an identity column", r.name);
            if if_exists {
                self.core.notice("NOTICE", SqlError::new("00000", format!("{message}, skipping")));
                return Ok(());
            }
            return Err(wrong_state(message));
        }
        (r.columns[at].identity, r.columns[at].default) = (None, None);
        let sequence = self.sequence_of(r.oid, at);
        self.put(Object::Relation(r)).await?;
        match sequence {
            Some(sequence) => self.take_away(sequence.oid, None).await,
            None => Ok(()),
        }
    }

    fn sequence_of(&self, table: u32, at: usize) -> Option<Sequence> {
        let catalog = self.catalog();
        let mut found = catalog.objects().filter_map(|o| match &**o {
            Object::Sequence(q) if q.owned_by == Some((table, at)) => Some(q.clone()),
            _ => None,
        });
        found.next()
    }
}
