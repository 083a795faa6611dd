//! ALTER, DROP and COMMENT.

use super::super::ast::QualName;
use super::super::ddl::{AlterAction, AlterTable, Drop, GrantRole, ObjectKind, Rename, RenamePart, Triggers};
use super::super::lexer::Tok;
use super::super::stmt::Statement;
use super::super::user_type::TypeStatement;
use super::Parser;
use crate::error::{Result, SqlError, code};

impl Parser<'_> {
    /// The kind of object at the cursor, taken.
    fn object_kind(&mut self) -> Result<ObjectKind> {
        let kind = match self.word_at(0) {
            Some("table") => ObjectKind::Table,
            Some("index") => ObjectKind::Index,
            Some("view") => ObjectKind::View,
            Some("materialized") => {
                self.advance();
                if !self.is("view") {
                    return Err(self.error_here());
                }
                ObjectKind::MaterializedView
            }
            Some("sequence") => ObjectKind::Sequence,
            Some("schema") => ObjectKind::Schema,
            Some("database") => ObjectKind::Database,
            Some("role" | "user" | "group") => ObjectKind::Role,
            Some("rule") => ObjectKind::Rule,
            Some("column") => ObjectKind::Column,
            _ => return Err(self.unknown_object()),
        };
        self.advance();
        Ok(kind)
    }

    pub(super) fn alter(&mut self) -> Result<Statement> {
        self.expect("alter")?;
        if self.eat_seq(&["default", "privileges"]) {
            return self.default_privileges();
        }
        if self.is("group") && matches!(self.word_at(2), Some("add" | "drop")) {
            return self.alter_group();
        }
        if self.is_any(&["type", "domain"]) {
            return self.alter_type();
        }
        if self.eat("system") {
            return self.alter_system();
        }
        if self.is_routine() {
            return self.alter_routine();
        }
        if self.is("policy") {
            return self.alter_policy();
        }
        if self.is("operator") {
            return self.alter_operator();
        }
        if self.eat_seq(&["large", "object"]) {
            let (object, name) = (ObjectKind::LargeObject, self.large_object()?);
            self.expect_seq(&["owner", "to"])?;
            return Ok(Statement::OwnerTo { object, name, if_exists: false, owner: self.role_spec()? });
        }
        let at = self.at;
        let object = self.object_kind()?;
        match object {
            ObjectKind::Table | ObjectKind::Index | ObjectKind::View | ObjectKind::MaterializedView => {
                self.alter_table(object)
            }
            ObjectKind::Sequence => self.alter_sequence(),
            ObjectKind::Schema => {
                let name = self.qual_name()?;
                self.alter_owner_or_name(object, name, false)
            }
            ObjectKind::Database => self.alter_database(),
            ObjectKind::Role => self.alter_role(),
            ObjectKind::Rule
            | ObjectKind::Type
            | ObjectKind::Domain
            | ObjectKind::Function
            | ObjectKind::Column
            | ObjectKind::Constraint
            | ObjectKind::Policy
            | ObjectKind::LargeObject => {
                self.at = at;
                Err(self.unsupported("ALTER of this kind of object"))
            }
        }
    }

    /// The number of a large object, in the place of a name.
    pub(super) fn large_object(&mut self) -> Result<QualName> {
        let pos = self.pos();
        let Tok::Int(digits) = self.peek() else { return Err(self.error_here()) };
        let digits = (*digits).to_owned();
        self.advance();
        Ok(QualName { parts: vec![digits], pos })
    }

    fn alter_owner_or_name(&mut self, object: ObjectKind, name: QualName, if_exists: bool) -> Result<Statement> {
        if self.eat_seq(&["rename", "to"]) {
            let to = self.col_id()?;
            return Ok(Statement::Rename(Rename { object, name, if_exists, part: None, to }));
        }
        self.expect_seq(&["owner", "to"])?;
        Ok(Statement::OwnerTo { object, name, if_exists, owner: self.role_spec()? })
    }

    fn alter_sequence(&mut self) -> Result<Statement> {
        let if_exists = self.if_exists();
        let name = self.qual_name()?;
        let object = ObjectKind::Sequence;
        if self.is_any(&["rename"]) || self.is_seq(&["owner", "to"]) {
            return self.alter_owner_or_name(object, name, if_exists);
        }
        if self.eat_seq(&["set", "schema"]) {
            return Ok(Statement::SetSchema { object, name, if_exists, schema: self.col_id()? });
        }
        let options = self.sequence_options()?;
        if options.is_empty() {
            return Err(self.error_here());
        }
        Ok(Statement::AlterSequence { name, if_exists, options })
    }

    fn alter_system(&mut self) -> Result<Statement> {
        if self.eat("set") {
            return Ok(Statement::AlterSystem { set: self.set_variable(false)? });
        }
        self.expect("reset")?;
        Ok(Statement::AlterSystem { set: self.reset_variable()? })
    }

    fn alter_database(&mut self) -> Result<Statement> {
        let name = self.qual_name()?;
        if self.eat("set") {
            if self.is("tablespace") {
                return Err(self.unsupported("TABLESPACE"));
            }
            let set = self.set_variable(false)?;
            return Ok(Statement::AlterDatabaseSet { name: name.dotted(), set });
        }
        if self.eat("reset") {
            let set = self.reset_variable()?;
            return Ok(Statement::AlterDatabaseSet { name: name.dotted(), set });
        }
        if self.is("with") || self.is_any(&["connection", "allow_connections", "is_template", "tablespace"]) {
            return Ok(Statement::AlterDatabase { name: name.dotted(), options: self.database_options()? });
        }
        self.alter_owner_or_name(ObjectKind::Database, name, false)
    }

    /// ALTER GROUP ... ADD USER and DROP USER, older words for GRANT and REVOKE of a role.
    fn alter_group(&mut self) -> Result<Statement> {
        self.expect("group")?;
        let roles = vec![self.role_spec()?];
        let revoke = self.is("drop");
        self.advance();
        self.expect("user")?;
        let to = self.comma_list(Self::role_spec)?;
        let (admin, granted_by, cascade) = (false, None, false);
        Ok(Statement::GrantRole(GrantRole { revoke, roles, to, admin, granted_by, cascade, as_group: true }))
    }

    fn alter_role(&mut self) -> Result<Statement> {
        let pos = self.pos();
        if self.is_seq(&["mapping", "for"]) {
            return Err(self.unsupported("ALTER USER MAPPING"));
        }
        let all = self.eat("all");
        let at = self.at;
        let name = if all { None } else { Some(self.role_spec()?) };
        let database = if self.eat_seq(&["in", "database"]) { Some(self.col_id()?) } else { None };
        if self.eat("set") {
            let set = self.set_variable(false)?;
            return Ok(Statement::AlterRoleSet { name, database, set });
        }
        if self.eat("reset") {
            let set = self.reset_variable()?;
            return Ok(Statement::AlterRoleSet { name, database, set });
        }
        let Some(name) = name.filter(|_| database.is_none()) else {
            return Err(self.error_here());
        };
        if self.eat_seq(&["rename", "to"]) {
            let to = self.role_id()?;
            let end = std::mem::replace(&mut self.at, at);
            let name = QualName { parts: vec![self.role_id()?], pos };
            self.at = end;
            return Ok(Statement::Rename(Rename { object: ObjectKind::Role, name, if_exists: false, part: None, to }));
        }
        self.eat("with");
        Ok(Statement::AlterRole { name, options: self.role_options()? })
    }

    fn alter_table(&mut self, object: ObjectKind) -> Result<Statement> {
        let if_exists = self.if_exists();
        if self.is_seq(&["all", "in"]) {
            return Err(self.unsupported("ALTER ... ALL IN TABLESPACE"));
        }
        let table = self.table_name()?;
        let (name, only) = (table.name, table.only);
        if self.eat("rename") {
            let part = if self.eat("to") {
                None
            } else if self.eat("constraint") {
                let part = RenamePart::Constraint(self.col_id()?);
                self.expect("to")?;
                Some(part)
            } else {
                self.eat("column");
                let part = RenamePart::Column(self.col_id()?);
                self.expect("to")?;
                Some(part)
            };
            let to = self.col_id()?;
            return Ok(Statement::Rename(Rename { object, name, if_exists, part, to }));
        }
        if self.eat_seq(&["set", "schema"]) {
            return Ok(Statement::SetSchema { object, name, if_exists, schema: self.col_id()? });
        }
        let actions = self.comma_list(Self::alter_action)?;
        Ok(Statement::AlterTable(Box::new(AlterTable { object, name, only, if_exists, actions })))
    }

    fn alter_action(&mut self) -> Result<AlterAction> {
        use AlterAction as A;
        if self.eat("add") {
            if self.is_any(&["constraint", "primary", "unique", "check", "foreign", "exclude"]) {
                return Ok(A::AddConstraint(self.table_constraint()?));
            }
            self.eat("column");
            let if_not_exists = self.if_not_exists();
            return Ok(A::AddColumn { column: self.column_def()?, if_not_exists });
        }
        if self.eat("drop") {
            let constraint = self.eat("constraint");
            if !constraint {
                self.eat("column");
            }
            let if_exists = self.if_exists();
            let name = self.col_id()?;
            let cascade = self.cascade();
            return Ok(if constraint {
                A::DropConstraint { name, if_exists, cascade }
            } else {
                A::DropColumn { name, if_exists, cascade }
            });
        }
        if self.eat("alter") {
            if self.eat("constraint") {
                return Ok(A::AlterConstraint { name: self.col_id()?, timing: self.timing()? });
            }
            self.eat("column");
            return self.alter_column();
        }
        if self.eat_seq(&["validate", "constraint"]) {
            return Ok(A::ValidateConstraint { name: self.col_id()? });
        }
        if self.eat_seq(&["owner", "to"]) {
            return Ok(A::OwnerTo(self.role_spec()?));
        }
        self.alter_settings()
    }

    /// Actions on a table's storage.
    fn alter_settings(&mut self) -> Result<AlterAction> {
        use AlterAction as A;
        if self.eat_seq(&["cluster", "on"]) {
            return Ok(A::ClusterOn(Some(self.col_id()?)));
        }
        if self.eat_seq(&["set", "without", "cluster"]) {
            return Ok(A::ClusterOn(None));
        }
        if self.eat_seq(&["set", "logged"]) {
            return Ok(A::SetLogged(true));
        }
        if self.eat_seq(&["set", "unlogged"]) {
            return Ok(A::SetLogged(false));
        }
        for (words, enable, force) in [
            (&["enable"][..], Some(true), None),
            (&["disable"], Some(false), None),
            (&["force"], None, Some(true)),
            (&["no", "force"], None, Some(false)),
        ] {
            let words: Vec<&str> = words.iter().copied().chain(["row", "level", "security"]).collect();
            if self.eat_seq(&words) {
                return Ok(A::RowSecurity { enable, force });
            }
        }
        for (words, enable) in [
            (&["enable", "trigger"][..], 'o'),
            (&["enable", "always", "trigger"], 'a'),
            (&["enable", "replica", "trigger"], 'r'),
            (&["disable", "trigger"], 'd'),
        ] {
            if self.eat_seq(words) {
                let which = match self.word_at(0) {
                    Some("all") if matches!(enable, 'o' | 'd') => Triggers::All,
                    Some("user") if matches!(enable, 'o' | 'd') => Triggers::User,
                    _ => return Ok(A::Triggers { enable, which: Triggers::Named(self.col_id()?) }),
                };
                self.advance();
                return Ok(A::Triggers { enable, which });
            }
        }
        let next_paren = *self.peek_at(1) == super::Tok::Punct(b'(');
        if next_paren && self.eat("set") {
            return Ok(A::SetStorage(self.storage_options()?));
        }
        if next_paren && self.eat("reset") {
            let options = self.storage_options()?;
            if options.iter().any(|o| o.value.is_some()) {
                return Err(SqlError::new(code::SYNTAX_ERROR, "RESET must not include values for parameters"));
            }
            return Ok(A::ResetStorage(options));
        }
        if self.eat_seq(&["replica", "identity"]) {
            return Ok(A::ReplicaIdentity(self.replica_identity()?));
        }
        if self.asks_for_what_is()? {
            return Ok(A::Nothing);
        }
        let known =
            ["set", "reset", "enable", "disable", "inherit", "no", "of", "not", "replica", "force", "attach", "detach"];
        if self.is_any(&known) { Err(self.unsupported("this form of ALTER TABLE")) } else { Err(self.error_here()) }
    }

    /// A change to what is the case for every table.
    fn asks_for_what_is(&mut self) -> Result<bool> {
        if self.is_seq(&["set", "tablespace"]) {
            self.expect("set")?;
            self.no_tablespace()?;
            return Ok(true);
        }
        if self.eat_seq(&["set", "access", "method"]) {
            let refused = self.unsupported("a table access method other than heap");
            return if self.col_id()? == "heap" { Ok(true) } else { Err(refused) };
        }
        Ok(self.eat_seq(&["set", "without", "oids"]))
    }

    fn replica_identity(&mut self) -> Result<String> {
        if self.eat_seq(&["using", "index"]) {
            return Err(self.unsupported("REPLICA IDENTITY USING INDEX"));
        }
        let word = self.word_at(0).filter(|word| ["default", "full", "nothing"].contains(word)).map(str::to_owned);
        let word = word.ok_or_else(|| self.error_here())?;
        self.advance();
        Ok(word)
    }

    fn alter_column(&mut self) -> Result<AlterAction> {
        use AlterAction as A;
        let column = self.col_id()?;
        if self.eat_seq(&["set", "default"]) {
            let first = self.at;
            let value = self.expr()?;
            return Ok(A::SetDefault { column, value, text: self.text_from(first) });
        }
        if self.eat_seq(&["drop", "default"]) {
            return Ok(A::DropDefault { column });
        }
        if self.eat_seq(&["set", "not", "null"]) {
            return Ok(A::SetNotNull { column });
        }
        if self.eat_seq(&["drop", "not", "null"]) {
            return Ok(A::DropNotNull { column });
        }
        if self.eat_seq(&["set", "statistics"]) {
            return Ok(A::SetStatistics { column, value: self.signed_int()? });
        }
        if self.eat_seq(&["drop", "identity"]) {
            return Ok(A::DropIdentity { column, if_exists: self.if_exists() });
        }
        if self.eat_seq(&["add", "generated"]) {
            let always = self.eat("always");
            if !always {
                self.expect_seq(&["by", "default"])?;
            }
            self.expect_seq(&["as", "identity"])?;
            return Ok(A::AddIdentity { column, always, options: self.identity_options()? });
        }
        if self.eat_seq(&["set", "data", "type"]) || self.eat("type") {
            let ty = self.type_name()?;
            let collation = if self.eat("collate") { Some(self.qual_name()?) } else { None };
            let using = if self.eat("using") {
                let first = self.at;
                let expr = self.expr()?;
                Some((expr, self.text_from(first)))
            } else {
                None
            };
            return Ok(A::AlterType { column, ty, collation, using });
        }
        if self.eat_seq(&["drop", "expression"]) {
            return Ok(A::DropExpression { column, if_exists: self.if_exists() });
        }
        if self.eat_seq(&["set", "storage"]) {
            return Ok(A::SetColumnStorage { column, storage: self.col_label()? });
        }
        if self.is_seq(&["set", "generated"]) || self.is("restart") || self.is_identity_option() {
            return self.set_identity(column);
        }
        if self.is_any(&["set", "reset", "drop"]) {
            return Err(self.unsupported("this form of ALTER COLUMN"));
        }
        Err(self.error_here())
    }

    fn is_identity_option(&self) -> bool {
        let known = ["increment", "minvalue", "maxvalue", "no", "start", "cache", "cycle", "restart"];
        self.is("set") && self.word_at(1).is_some_and(|word| known.contains(&word))
    }

    /// SET GENERATED ..., SET sequence options, RESTART: any number of them.
    fn set_identity(&mut self, column: String) -> Result<AlterAction> {
        let (mut always, mut options) = (None, Vec::new());
        loop {
            if self.eat_seq(&["set", "generated"]) {
                always = Some(self.eat("always"));
                if always == Some(false) {
                    self.expect_seq(&["by", "default"])?;
                }
            } else if self.is("restart") || self.is_identity_option() {
                self.eat("set");
                options.extend(self.opt_sequence_option()?);
            } else {
                return Ok(AlterAction::SetIdentity { column, always, options });
            }
        }
    }

    pub(super) fn drop(&mut self) -> Result<Statement> {
        self.expect("drop")?;
        if self.eat_seq(&["owned", "by"]) {
            let roles = self.comma_list(Self::role_spec)?;
            return Ok(Statement::DropOwned { roles, cascade: self.cascade() });
        }
        if self.is_any(&["type", "domain"]) {
            return self.drop_type();
        }
        if self.is_routine() {
            return self.drop_routine();
        }
        if self.is("policy") {
            return self.drop_policy();
        }
        if self.is("operator") {
            return self.drop_operator();
        }
        if self.is("extension") {
            return self.drop_extension();
        }
        let at = self.at;
        let object = self.object_kind()?;
        if object == ObjectKind::Column {
            self.at = at;
            return Err(self.error_here());
        }
        if object == ObjectKind::Role && (self.is_seq(&["mapping", "for"]) || self.is_seq(&["mapping", "if"])) {
            return Err(self.unsupported("DROP USER MAPPING"));
        }
        let concurrently = object == ObjectKind::Index && self.eat("concurrently");
        let if_exists = self.if_exists();
        let names = match object {
            ObjectKind::Database | ObjectKind::Rule => vec![self.qual_name()?],
            ObjectKind::Role => self.comma_list(Self::dropped_role)?,
            _ => self.comma_list(Self::qual_name)?,
        };
        let on = if object == ObjectKind::Rule {
            self.expect("on")?;
            Some(self.qual_name()?)
        } else {
            None
        };
        let mut force = false;
        if object == ObjectKind::Database && (self.eat("with") || self.is_punct(b'(')) {
            self.expect_punct(b'(')?;
            self.expect("force")?;
            self.expect_punct(b')')?;
            force = true;
        }
        let cascade = !matches!(object, ObjectKind::Database | ObjectKind::Role) && self.cascade();
        Ok(Statement::Drop(Drop { object, names, on, if_exists, cascade, concurrently, force }))
    }

    pub(super) fn comment(&mut self) -> Result<Statement> {
        self.expect_seq(&["comment", "on"])?;
        if self.is_routine() {
            return self.comment_on_routine();
        }
        if self.is("extension") {
            return self.comment_on_extension();
        }
        if self.is("operator") {
            return self.comment_on_operator();
        }
        if self.is("type") || self.is("domain") {
            let domain = self.is("domain");
            self.advance();
            let name = self.qual_name()?;
            self.expect("is")?;
            let text = if self.eat("null") { None } else { Some(self.string()?) };
            return Ok(Statement::Type(Box::new(TypeStatement::Comment { name, domain, text })));
        }
        let object = if self.eat("constraint") {
            ObjectKind::Constraint
        } else if self.eat("policy") {
            ObjectKind::Policy
        } else if self.eat_seq(&["large", "object"]) {
            ObjectKind::LargeObject
        } else {
            self.object_kind()?
        };
        let mut name = match object {
            ObjectKind::LargeObject => self.large_object()?,
            _ => self.qual_name()?,
        };
        let mut column = None;
        if object == ObjectKind::Column {
            if name.parts.len() < 2 {
                return Err(self.error_here());
            }
            column = name.parts.pop();
        }
        if object == ObjectKind::Rule {
            return Err(self.unsupported("COMMENT ON RULE"));
        }
        if matches!(object, ObjectKind::Constraint | ObjectKind::Policy) {
            let part = name.dotted();
            self.expect("on")?;
            let of_domain = self.is("domain") && object == ObjectKind::Constraint;
            if of_domain
                && (self.word_at(1).is_some_and(|word| word != "is") || matches!(self.peek_at(1), Tok::Quoted(_)))
            {
                return self.comment_on_check(part);
            }
            column = Some(part);
            name = self.qual_name()?;
        }
        self.expect("is")?;
        let text = if self.eat("null") { None } else { Some(self.string()?) };
        Ok(Statement::Comment { object, name, column, text })
    }

    /// Behind COMMENT ON CONSTRAINT name ON.
    fn comment_on_check(&mut self, name: String) -> Result<Statement> {
        self.expect("domain")?;
        let domain = self.qual_name()?;
        self.expect("is")?;
        let text = if self.eat("null") { None } else { Some(self.string()?) };
        Ok(Statement::Type(Box::new(TypeStatement::CommentCheck { domain, name, text })))
    }
}
