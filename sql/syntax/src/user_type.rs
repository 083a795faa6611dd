//! The syntax tree of statements about types that users define.

use super::ast::{QualName, TypeName};
use super::ddl::RoleSpec;

/// CREATE, ALTER and DROP of types and domains.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum TypeStatement {
    CreateEnum {
        name: QualName,
        labels: Vec<String>,
    },
    CreateComposite {
        name: QualName,
        attributes: Vec<(String, TypeName)>,
    },
    /// The checks have their names and texts.
    CreateDomain {
        name: QualName,
        base: TypeName,
        default: Option<String>,
        not_null: bool,
        checks: Vec<(Option<String>, String)>,
    },
    Alter {
        name: QualName,
        domain: bool,
        change: TypeChange,
    },
    Drop {
        domain: bool,
        names: Vec<QualName>,
        if_exists: bool,
        cascade: bool,
    },
    Comment {
        name: QualName,
        domain: bool,
        text: Option<String>,
    },
    /// COMMENT ON CONSTRAINT ... ON DOMAIN.
    CommentCheck {
        domain: QualName,
        name: String,
        text: Option<String>,
    },
}

/// What ALTER TYPE and ALTER DOMAIN change.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum TypeChange {
    Attributes(Vec<AttributeChange>),
    RenameAttribute {
        from: String,
        to: String,
    },
    Rename(String),
    Owner(RoleSpec),
    Schema(String),
    /// `beside`: before (true) or after a label.
    AddValue {
        if_not_exists: bool,
        label: String,
        beside: Option<(bool, String)>,
    },
    RenameValue {
        from: String,
        to: String,
    },
    Default(Option<String>),
    NotNull(bool),
    AddCheck {
        name: Option<String>,
        text: String,
        valid: bool,
    },
    DropCheck {
        name: String,
        if_exists: bool,
    },
    ValidateCheck(String),
    RenameCheck {
        from: String,
        to: String,
    },
}

/// What ALTER TYPE changes of a composite type's attributes.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum AttributeChange {
    Add { name: String, ty: TypeName },
    Drop { name: String, if_exists: bool },
    Type { name: String, ty: TypeName },
}
