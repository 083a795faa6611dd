//! What PostgreSQL calls the statements that define data, where it refuses one before it looks at the objects.
//!
//! Source: PostgreSQL 15's CreateCommandTag (src/backend/tcop/utility.c).

use crate::syntax::ddl::ObjectKind;
use crate::syntax::extension::ExtensionStatement;
use crate::syntax::operator::OperatorStatement;
use crate::syntax::policy::PolicyStatement;
use crate::syntax::routine::{RoutineKind, RoutineStatement};
use crate::syntax::stmt::Statement;
use crate::syntax::user_type::TypeStatement;

/// The name of a statement's command.
pub(super) fn name(statement: &Statement) -> String {
    match statement {
        Statement::CreateTable(_) => "CREATE TABLE",
        Statement::CreateTableAs(s) if s.materialized_view => "CREATE MATERIALIZED VIEW",
        Statement::CreateTableAs(_) => "CREATE TABLE AS",
        Statement::CreateIndex(_) => "CREATE INDEX",
        Statement::CreateView { .. } => "CREATE VIEW",
        Statement::RefreshMaterializedView { .. } => "REFRESH MATERIALIZED VIEW",
        Statement::CreateSequence { .. } => "CREATE SEQUENCE",
        Statement::AlterSequence { .. } => "ALTER SEQUENCE",
        Statement::CreateSchema { .. } => "CREATE SCHEMA",
        Statement::CreateDatabase { .. } => "CREATE DATABASE",
        Statement::AlterDatabase { .. } | Statement::AlterDatabaseSet { .. } => "ALTER DATABASE",
        Statement::CreateRole { .. } => "CREATE ROLE",
        Statement::AlterRole { .. } | Statement::AlterRoleSet { .. } => "ALTER ROLE",
        Statement::GrantRole(s) if s.as_group => "ALTER ROLE",
        Statement::GrantRole(s) => return if s.revoke { "REVOKE ROLE" } else { "GRANT ROLE" }.to_owned(),
        Statement::CreateRule(_) => "CREATE RULE",
        Statement::AlterTable(s) => return of_kind("ALTER", s.object),
        Statement::Rename(s) => return of_kind("ALTER", s.object),
        Statement::SetSchema { object, .. } | Statement::OwnerTo { object, .. } => return of_kind("ALTER", *object),
        Statement::Drop(s) => return of_kind("DROP", s.object),
        Statement::Truncate(_) => "TRUNCATE TABLE",
        Statement::Grant(s) => return if s.revoke { "REVOKE" } else { "GRANT" }.to_owned(),
        Statement::AlterDefaultPrivileges(_) => "ALTER DEFAULT PRIVILEGES",
        Statement::ReassignOwned { .. } => "REASSIGN OWNED",
        Statement::DropOwned { .. } => "DROP OWNED",
        Statement::Comment { .. } => "COMMENT",
        Statement::Type(s) => of_type(s),
        Statement::Routine(s) => return of_routine(s),
        Statement::Operator(s) => match &**s {
            OperatorStatement::Create { .. } => "CREATE OPERATOR",
            OperatorStatement::Alter { .. } => "ALTER OPERATOR",
            OperatorStatement::Drop { .. } => "DROP OPERATOR",
            OperatorStatement::Comment { .. } => "COMMENT",
        },
        Statement::Policy(s) => match &**s {
            PolicyStatement::Create(_) => "CREATE POLICY",
            PolicyStatement::Alter { .. } | PolicyStatement::Rename { .. } => "ALTER POLICY",
            PolicyStatement::Drop { .. } => "DROP POLICY",
        },
        Statement::Extension(s) => match s {
            ExtensionStatement::Create { .. } => "CREATE EXTENSION",
            ExtensionStatement::Drop { .. } => "DROP EXTENSION",
            ExtensionStatement::Comment { .. } => "COMMENT",
        },
        _ => "DDL",
    }
    .to_owned()
}

fn of_kind(verb: &str, kind: ObjectKind) -> String {
    let noun = match kind {
        ObjectKind::Table | ObjectKind::Column | ObjectKind::Constraint => "TABLE",
        ObjectKind::Index => "INDEX",
        ObjectKind::View => "VIEW",
        ObjectKind::MaterializedView => "MATERIALIZED VIEW",
        ObjectKind::Sequence => "SEQUENCE",
        ObjectKind::Schema => "SCHEMA",
        ObjectKind::Database => "DATABASE",
        ObjectKind::Role => "ROLE",
        ObjectKind::Rule => "RULE",
        ObjectKind::Type => "TYPE",
        ObjectKind::Domain => "DOMAIN",
        ObjectKind::Function => "FUNCTION",
        ObjectKind::Policy => "POLICY",
        ObjectKind::LargeObject => "LARGE OBJECT",
    };
    format!("{verb} {noun}")
}

fn of_type(s: &TypeStatement) -> &'static str {
    match s {
        TypeStatement::CreateEnum { .. } | TypeStatement::CreateComposite { .. } => "CREATE TYPE",
        TypeStatement::CreateDomain { .. } => "CREATE DOMAIN",
        TypeStatement::Alter { domain, .. } => {
            if *domain {
                "ALTER DOMAIN"
            } else {
                "ALTER TYPE"
            }
        }
        TypeStatement::Drop { domain, .. } => {
            if *domain {
                "DROP DOMAIN"
            } else {
                "DROP TYPE"
            }
        }
        TypeStatement::Comment { .. } | TypeStatement::CommentCheck { .. } => "COMMENT",
    }
}

fn of_routine(s: &RoutineStatement) -> String {
    let (verb, kind) = match s {
        RoutineStatement::Create(r) if r.procedure => ("CREATE", RoutineKind::Procedure),
        RoutineStatement::Create(_) => ("CREATE", RoutineKind::Function),
        RoutineStatement::Alter { kind, .. } => ("ALTER", *kind),
        RoutineStatement::Drop { kind, .. } => ("DROP", *kind),
        RoutineStatement::Comment { .. } => return "COMMENT".to_owned(),
        RoutineStatement::Call { .. } => return "CALL".to_owned(),
    };
    let noun = match kind {
        RoutineKind::Function => "FUNCTION",
        RoutineKind::Procedure => "PROCEDURE",
        RoutineKind::Routine => "ROUTINE",
    };
    format!("{verb} {noun}")
}
