//! CREATE, ALTER and COMMENT of operators; `operator_drop` has DROP.
//!
//! Source: PostgreSQL 15's src/backend/commands/operatorcmds.c and src/backend/catalog/pg_operator.c, for the order of the checks and the errors.

use super::routine::{shown, type_of};
use super::{Ddl, missing};
use crate::context::privileges::denied;
use crate::error::{Result, SqlError, code};
use crate::planner::environment::with_env;
use crate::syntax::ast::{QualName, TypeName};
use crate::syntax::operator::{OperatorChange, OperatorName, OperatorOption, OperatorStatement, OperatorValue};
use crate::types::{Oid, oid, routine};
use clearway_engine::catalog::{Catalog, FIRST_USER_OID, Object, Operator};
use clearway_values::builtin;
use clearway_values::expr::bind_operators::may_compute;

/// pg_type's number of `internal`.
const INTERNAL: Oid = 2281;

/// 42P13.
fn wrong(message: impl Into<String>) -> SqlError {
    SqlError::new("42P13", message)
}

fn syntax(message: impl Into<String>) -> SqlError {
    SqlError::new(code::SYNTAX_ERROR, message)
}

/// What CREATE OPERATOR says, as far as it does.
#[derive(Default)]
struct Described {
    left: Oid,
    right: Oid,
    function: Option<QualName>,
    commutator: Option<QualName>,
    negator: Option<QualName>,
    restrict: Option<QualName>,
    join: Option<QualName>,
    hashes: bool,
    merges: bool,
}

/// The type of an operand.
fn operand(option: &OperatorOption) -> Result<Oid> {
    let name = &option.name;
    let ty = match &option.value {
        None => return Err(syntax(format!("{name} requires a parameter"))),
        Some(OperatorValue::Name(_, _, true)) => return Err(wrong("SETOF type not allowed for operator argument")),
        Some(OperatorValue::Name(_, Some(ty), false)) => ty.clone(),
        Some(OperatorValue::Constant(text)) => {
            TypeName { name: QualName { parts: vec![text.clone()], pos: 0 }, modifiers: Vec::new(), array_dims: 0 }
        }
        Some(_) => return Err(syntax(format!("argument of {name} must be a type name"))),
    };
    type_of(&ty).map_err(SqlError::nowhere)
}

/// The name of a function or an operator.
fn named(option: &OperatorOption) -> Result<QualName> {
    match &option.value {
        None => Err(syntax(format!("{} requires a parameter", option.name))),
        Some(OperatorValue::Name(Some(name), _, _) | OperatorValue::Operator(name)) => Ok(name.clone()),
        Some(OperatorValue::Constant(text)) if text.parse::<f64>().is_err() => {
            Ok(QualName { parts: vec![text.clone()], pos: 0 })
        }
        Some(_) => Err(syntax(format!("argument of {} must be a name", option.name))),
    }
}

/// Whether an attribute is there.
fn truth(option: &OperatorOption) -> Result<bool> {
    let word = match &option.value {
        None => return Ok(true),
        Some(OperatorValue::Constant(text)) => text.to_lowercase(),
        Some(OperatorValue::Name(Some(name), _, _)) => name.name().to_lowercase(),
        Some(_) => String::new(),
    };
    match word.as_str() {
        "1" | "true" | "on" => Ok(true),
        "0" | "false" | "off" => Ok(false),
        _ => Err(syntax(format!("{} requires a Boolean value", option.name))),
    }
}

/// A name as it is written.
fn dotted(name: &QualName) -> String {
    name.parts.join(".")
}

/// What a name and the types of the operands lead to.
pub(super) enum Found {
    /// An operator of a user.
    Own(Operator),
    /// One of the system's.
    System(Oid),
}

impl Found {
    fn oid(&self) -> Oid {
        match self {
            Found::Own(o) => o.oid,
            Found::System(oid) => *oid,
        }
    }
}

/// The name with the types, as errors show what does not exist.
pub(super) fn shown_between(name: &QualName, left: Oid, right: Oid) -> String {
    let ty = |oid: Oid| crate::types::format_type(oid.into());
    match left {
        0 => format!("{} {}", dotted(name), ty(right)),
        left => format!("{} {} {}", ty(left), dotted(name), ty(right)),
    }
}

impl Ddl<'_> {
    pub(super) async fn operators(&self, s: &OperatorStatement) -> Result<&'static str> {
        // The session's types, and its operators, are those of the catalog as it is now.
        with_env(self.core, &self.catalog(), |_| ());
        match s {
            OperatorStatement::Create { name, options } => self.create_operator(name, options).await,
            OperatorStatement::Alter { operator, change } => self.alter_operator(operator, change).await,
            OperatorStatement::Drop { operators, if_exists, cascade } => {
                self.drop_operators(operators, *if_exists, *cascade).await
            }
            OperatorStatement::Comment { operator, text } => {
                match self.find_operator(&self.catalog(), operator)? {
                    Found::Own(o) => {
                        self.owns(&Object::Operator(o.clone()))?;
                        self.put_comment(o.oid, String::new(), text.as_deref()).await?;
                    }
                    Found::System(_) => return Err(SqlError::unsupported("COMMENT ON an operator of the system")),
                }
                Ok("COMMENT")
            }
        }
    }

    fn attributes(&self, options: &[OperatorOption]) -> Result<Described> {
        let mut d = Described::default();
        for option in options {
            match option.name.as_str() {
                "leftarg" => d.left = operand(option)?,
                "rightarg" => d.right = operand(option)?,
                "function" | "procedure" => d.function = Some(named(option)?),
                "commutator" => d.commutator = Some(named(option)?),
                "negator" => d.negator = Some(named(option)?),
                "restrict" => d.restrict = Some(named(option)?),
                "join" => d.join = Some(named(option)?),
                "hashes" => d.hashes = truth(option)?,
                "merges" => d.merges = truth(option)?,
                // Names of older versions of PostgreSQL for what a merge join needs.
                "sort1" | "sort2" | "ltcmp" | "gtcmp" => d.merges = true,
                other => {
                    let message = format!("operator attribute \"{other}\" not recognized");
                    self.core.notice("WARNING", syntax(message));
                }
            }
        }
        Ok(d)
    }

    /// The function of a name with arguments of these types, and the type of its result.
    fn function_of(&self, name: &QualName, types: &[Oid]) -> Result<(Oid, Oid)> {
        let catalog = self.catalog();
        if let Some(schema) = name.schema().filter(|s| !matches!(*s, "pg_catalog" | "information_schema"))
            && catalog.schema(self.core.database, schema).is_none()
        {
            return Err(missing("schema", schema));
        }
        if name.schema().is_none_or(|schema| schema == "pg_catalog")
            && let Some(known) = builtin::procs_named(name.name()).iter().find(|p| p.arguments == types)
        {
            return Ok((known.oid, known.result));
        }
        let own = routine::named(name.schema(), name.name())?;
        let found = own.iter().find(|s| s.types() == types);
        let missing = || {
            let message = format!("function {} does not exist", shown(&dotted(name), types));
            SqlError::new(code::UNDEFINED_FUNCTION, message)
        };
        found.map(|s| (s.oid, s.result)).ok_or_else(missing)
    }

    fn may_execute(&self, function: Oid, name: &QualName) -> Result<()> {
        let catalog = self.catalog();
        match catalog.get(function).filter(|_| function >= FIRST_USER_OID) {
            Some(object) if !self.judge(&catalog).may_with(object, 'X') => Err(denied("function", &dotted(name))),
            _ => Ok(()),
        }
    }

    /// RESTRICT.
    fn restriction_estimator(&self, name: &QualName) -> Result<Oid> {
        let (function, result) = self.function_of(name, &[INTERNAL, oid::OID, INTERNAL, oid::INT4])?;
        self.estimator("restriction", name, function, result)
    }

    /// JOIN.
    fn join_estimator(&self, name: &QualName) -> Result<Oid> {
        let long = self.function_of(name, &[INTERNAL, oid::OID, INTERNAL, oid::INT2, INTERNAL]);
        let found = long.or_else(|e| self.function_of(name, &[INTERNAL, oid::OID, INTERNAL, oid::INT2]).map_err(|_| e));
        let (function, result) = found?;
        self.estimator("join", name, function, result)
    }

    fn estimator(&self, what: &str, name: &QualName, function: Oid, result: Oid) -> Result<Oid> {
        if result != oid::FLOAT8 {
            let message = format!("{what} estimator function {} must return type float8", dotted(name));
            return Err(SqlError::new("42P17", message));
        }
        self.may_execute(function, name)?;
        Ok(function)
    }

    async fn create_operator(&self, name: &QualName, options: &[OperatorOption]) -> Result<&'static str> {
        let catalog = self.catalog();
        let schema = with_env(self.core, &catalog, |env| env.schema_for(name)).map_err(SqlError::nowhere)?;
        let d = self.attributes(options)?;
        let Some(function) = &d.function else { return Err(wrong("operator function must be specified")) };
        if d.right == 0 {
            return Err(match d.left {
                0 => wrong("operator argument types must be specified"),
                _ => wrong("operator right argument type must be specified")
                    .detail("Postfix operators are not supported."),
            });
        }
        let mut o = self.judged(
            &d,
            function,
            Operator {
                oid: 0,
                database: self.core.database,
                schema,
                name: name.name().to_owned(),
                owner: self.role()?,
                left: d.left,
                right: d.right,
                result: 0,
                function: 0,
                commutator: 0,
                negator: 0,
                restrict: 0,
                join: 0,
                hashes: d.hashes,
                merges: d.merges,
            },
        )?;
        let shell = catalog.operators_in(schema, &o.name).find(|known| (known.left, known.right) == (o.left, o.right));
        match shell {
            Some(known) if !known.is_shell() => {
                return Err(SqlError::new("42723", format!("operator {} already exists", o.name)));
            }
            Some(known) => {
                self.owns(&Object::Operator(known.clone()))?;
                (o.oid, o.commutator, o.negator) = (known.oid, known.commutator, known.negator);
            }
            None => o.oid = self.new_oid(),
        }
        if let Some(name) = &d.commutator {
            o.commutator = self.partner(name, (o.right, o.left), &o, true).await?;
        }
        if let Some(name) = &d.negator {
            o.negator = self.partner(name, (o.left, o.right), &o, false).await?;
        }
        let (oid, commutator, negator) = (o.oid, o.commutator, o.negator);
        self.put(Object::Operator(o)).await?;
        self.link(oid, commutator, negator).await?;
        Ok("CREATE OPERATOR")
    }

    /// An operator with its functions and the type of its result, as far as the role may use them and the attributes go together.
    fn judged(&self, d: &Described, function: &QualName, o: Operator) -> Result<Operator> {
        let types: Vec<Oid> = [o.left, o.right].into_iter().filter(|ty| *ty != 0).collect();
        types.iter().try_for_each(|ty| self.may_use_type(*ty))?;
        let (code, result) = self.function_of(function, &types)?;
        self.may_execute(code, function)?;
        self.may_use_type(result)?;
        let restrict = d.restrict.as_ref().map_or(Ok(0), |name| self.restriction_estimator(name))?;
        let join = d.join.as_ref().map_or(Ok(0), |name| self.join_estimator(name))?;
        may_have(d, result)?;
        let of_system = builtin::proc(code).filter(|_| code < FIRST_USER_OID);
        if let Some(unknown) = of_system.filter(|p| !may_compute(p)) {
            return Err(SqlError::unsupported(format!("an operator over function {}", unknown.name)));
        }
        Ok(Operator { result, function: code, restrict, join, ..o })
    }

    /// The operator that is named as another one's commutator or negator; if there is none yet, a shell of it is made.
    async fn partner(
        &self,
        name: &QualName,
        (left, right): (Oid, Oid),
        of: &Operator,
        commutator: bool,
    ) -> Result<Oid> {
        let catalog = self.catalog();
        if let Some(found) = self.lookup_operator(&catalog, name, left, right)? {
            match &found {
                Found::Own(o) => self.owns(&Object::Operator(o.clone()))?,
                Found::System(_) if self.judge(&catalog).is_superuser() => {}
                Found::System(_) => {
                    return Err(SqlError::new("42501", format!("must be owner of operator {}", dotted(name))));
                }
            }
            return Ok(found.oid());
        }
        let same = (of.name.as_str(), of.left, of.right) == (name.name(), left, right);
        let schema = match name.schema() {
            Some(schema) => catalog.schema(self.core.database, schema).map(|s| s.oid),
            None => with_env(self.core, &catalog, |env| env.schema_for(name)).ok(),
        };
        if same && schema == Some(of.schema) {
            return match commutator {
                true => Ok(of.oid),
                false => Err(wrong("operator cannot be its own negator")),
            };
        }
        let schema = with_env(self.core, &catalog, |env| env.schema_for(name)).map_err(SqlError::nowhere)?;
        if !name.name().bytes().all(|b| b"+-*/<>=~!@#^&|`?%".contains(&b)) {
            return Err(SqlError::new("42602", format!("\"{}\" is not a valid operator name", name.name())));
        }
        let shell = Operator {
            oid: self.new_oid(),
            schema,
            name: name.name().to_owned(),
            owner: self.role()?,
            left,
            right,
            result: 0,
            function: 0,
            commutator: 0,
            negator: 0,
            restrict: 0,
            join: 0,
            hashes: false,
            merges: false,
            ..of.clone()
        };
        let oid = shell.oid;
        self.put(Object::Operator(shell)).await?;
        Ok(oid)
    }

    /// Tells the commutator and the negator of an operator that it is theirs, if they have none yet.
    async fn link(&self, oid: Oid, commutator: Oid, negator: Oid) -> Result<()> {
        for (partner, as_commutator) in [(commutator, true), (negator, false)] {
            let Some(mut other) = self.catalog().operator(partner).filter(|o| o.oid != oid).cloned() else { continue };
            let field = if as_commutator { &mut other.commutator } else { &mut other.negator };
            if *field == 0 {
                *field = oid;
                self.put(Object::Operator(other)).await?;
            }
        }
        Ok(())
    }

    /// The operator of a name with operands of just these types, on the search path or in its schema.
    pub(super) fn lookup_operator(
        &self,
        catalog: &Catalog,
        name: &QualName,
        left: Oid,
        right: Oid,
    ) -> Result<Option<Found>> {
        let own = crate::types::operator::named(name.schema(), name.name())?;
        let own = own.into_iter().find(|(o, _)| (o.left, o.right) == (left, right));
        let of_system = name.schema().is_none_or(|schema| schema == "pg_catalog");
        let mut known = builtin::operators().iter().filter(|o| of_system && o.name == name.name());
        let known = known.find(|o| (o.left, o.right) == (left, right)).map(|o| Found::System(o.oid));
        Ok(match own {
            Some((own, before_catalog)) if before_catalog || known.is_none() => {
                catalog.operator(own.oid).cloned().map(Found::Own)
            }
            _ => known,
        })
    }

    /// The operator that a statement names.
    ///
    /// # Errors
    /// 42601 for one behind its operand, 42704 for a type, 42883.
    pub(super) fn find_operator(&self, catalog: &Catalog, name: &OperatorName) -> Result<Found> {
        let ty = |name: &Option<TypeName>| name.as_ref().map_or(Ok(0), type_of).map_err(SqlError::nowhere);
        let (left, right) = (ty(&name.left)?, ty(&name.right)?);
        if let Some(schema) = name.name.schema().filter(|s| !matches!(*s, "pg_catalog" | "information_schema"))
            && catalog.schema(self.core.database, schema).is_none()
        {
            return Err(missing("schema", schema));
        }
        let found = self.lookup_operator(catalog, &name.name, left, right)?;
        if right == 0 {
            return Err(syntax("postfix operators are not supported"));
        }
        found.ok_or_else(|| {
            let message = format!("operator does not exist: {}", shown_between(&name.name, left, right));
            SqlError::new(code::UNDEFINED_FUNCTION, message)
        })
    }

    async fn alter_operator(&self, name: &OperatorName, change: &OperatorChange) -> Result<&'static str> {
        let catalog = self.catalog();
        let found = self.find_operator(&catalog, name)?;
        let (mut restrict, mut join) = (None, None);
        if let OperatorChange::Set(options) = change {
            for option in options {
                let given = match &option.value {
                    Some(OperatorValue::None) => None,
                    _ => Some(named(option)?),
                };
                match option.name.as_str() {
                    "restrict" => restrict = Some(given),
                    "join" => join = Some(given),
                    "leftarg" | "rightarg" | "function" | "procedure" | "commutator" | "negator" | "hashes"
                    | "merges" => {
                        return Err(syntax(format!("operator attribute \"{}\" cannot be changed", option.name)));
                    }
                    other => return Err(syntax(format!("operator attribute \"{other}\" not recognized"))),
                }
            }
        }
        let Found::Own(o) = found else {
            return Err(SqlError::unsupported("ALTER OPERATOR of an operator of the system"));
        };
        self.owns(&Object::Operator(o.clone()))?;
        // As in PostgreSQL, DROP waits for these; it may have gone to another owner during the wait.
        let locked = self.lock_to_drop(o.oid).await?;
        let gone = || SqlError::internal("the operator has gone meanwhile");
        let locked = locked.ok_or_else(gone)?;
        self.owns(&locked)?;
        let catalog = self.catalog();
        let mut o = catalog.operator(o.oid).cloned().ok_or_else(gone)?;
        match change {
            OperatorChange::Owner(role) => {
                let owner = self.role_named(&catalog, role)?.oid;
                self.may_change_owner(&catalog, &locked, owner)?;
                o.owner = owner;
            }
            OperatorChange::Schema(schema) => self.move_operator(&catalog, &mut o, schema)?,
            OperatorChange::Set(_) => {
                if let Some(option) = restrict {
                    o.restrict = option.map(|name| self.restriction_estimator(&name)).transpose()?.unwrap_or(0);
                }
                if let Some(option) = join {
                    o.join = option.map(|name| self.join_estimator(&name)).transpose()?.unwrap_or(0);
                }
                if o.left == 0 && o.join != 0 {
                    return Err(wrong("only binary operators can have join selectivity"));
                }
                may_estimate(o.result, o.restrict != 0, o.join != 0)?;
            }
        }
        self.put(Object::Operator(o)).await?;
        Ok("ALTER OPERATOR")
    }

    /// SET SCHEMA.
    fn move_operator(&self, catalog: &Catalog, o: &mut Operator, schema: &str) -> Result<()> {
        let to = catalog.schema(self.core.database, schema).ok_or_else(|| missing("schema", schema))?;
        if !self.judge(catalog).may_with_schema(to, 'C') {
            return Err(denied("schema", schema));
        }
        if o.schema == to.oid {
            return Ok(());
        }
        if catalog.operators_in(to.oid, &o.name).any(|known| (known.left, known.right) == (o.left, o.right)) {
            let message = "duplicate key value violates unique constraint \"pg_operator_oprname_l_r_n_index\"";
            let key = format!("({}, {}, {}, {})", o.name, o.left, o.right, to.oid);
            let detail = format!("Key (oprname, oprleft, oprright, oprnamespace)={key} already exists.");
            return Err(SqlError::new("23505", message).detail(detail));
        }
        if let Some(user) = super::operator_drop::dependents(catalog, o).first() {
            let what = format!("another schema for an operator that {} names", user.shown);
            return Err(SqlError::unsupported(what));
        }
        o.schema = to.oid;
        Ok(())
    }
}

/// Refuses what only operators of two operands, or of a boolean result, have.
fn may_have(d: &Described, result: Oid) -> Result<()> {
    if d.left == 0 {
        let refused = [
            (d.commutator.is_some(), "have commutators"),
            (d.join.is_some(), "have join selectivity"),
            (d.merges, "merge join"),
            (d.hashes, "hash"),
        ];
        if let Some((_, what)) = refused.iter().find(|(given, _)| *given) {
            return Err(wrong(format!("only binary operators can {what}")));
        }
    }
    if result == oid::BOOL {
        return Ok(());
    }
    if d.negator.is_some() {
        return Err(wrong("only boolean operators can have negators"));
    }
    may_estimate(result, d.restrict.is_some(), d.join.is_some())?;
    match (d.merges, d.hashes) {
        (true, _) => Err(wrong("only boolean operators can merge join")),
        (_, true) => Err(wrong("only boolean operators can hash")),
        _ => Ok(()),
    }
}

fn may_estimate(result: Oid, restrict: bool, join: bool) -> Result<()> {
    match (result == oid::BOOL, restrict, join) {
        (false, true, _) => Err(wrong("only boolean operators can have restriction selectivity")),
        (false, _, true) => Err(wrong("only boolean operators can have join selectivity")),
        _ => Ok(()),
    }
}
