//! Aggregates: which exist for which types, and a bound call of one.

use super::bound::Bound;
use super::resolve::{self, Choice};
use crate::types::{Oid, SqlType, array_of, element_of, oid, user};

/// What an aggregate computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    CountStar,
    Count,
    Sum,
    Avg,
    Min,
    Max,
    BoolAnd,
    BoolOr,
    BitAnd,
    BitOr,
    BitXor,
    StringAgg,
    ArrayAgg,
    JsonAgg,
    JsonbAgg,
    JsonObjectAgg,
    JsonbObjectAgg,
    VarPop,
    VarSamp,
    StddevPop,
    StddevSamp,
    Corr,
    CovarPop,
    CovarSamp,
    RegrAvgx,
    RegrAvgy,
    RegrCount,
    RegrIntercept,
    RegrR2,
    RegrSlope,
    RegrSxx,
    RegrSxy,
    RegrSyy,
    PercentileCont,
    PercentileDisc,
    Mode,
    /// Of a hypothetical row.
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
}

impl Kind {
    /// Whether it takes its arguments from WITHIN GROUP.
    pub fn is_ordered_set(self) -> bool {
        matches!(self, Kind::PercentileCont | Kind::PercentileDisc | Kind::Mode) || self.is_hypothetical()
    }

    /// Whether it makes json or jsonb of its arguments.
    pub fn is_json(self) -> bool {
        matches!(self, Kind::JsonAgg | Kind::JsonbAgg | Kind::JsonObjectAgg | Kind::JsonbObjectAgg)
    }

    /// Whether it asks where a row would stand.
    pub fn is_hypothetical(self) -> bool {
        matches!(self, Kind::Rank | Kind::DenseRank | Kind::PercentRank | Kind::CumeDist)
    }

    /// Whether it is about pairs of numbers.
    pub fn is_of_pairs(self) -> bool {
        use Kind as K;
        matches!(
            self,
            K::Corr
                | K::CovarPop
                | K::CovarSamp
                | K::RegrAvgx
                | K::RegrAvgy
                | K::RegrCount
                | K::RegrIntercept
                | K::RegrR2
                | K::RegrSlope
                | K::RegrSxx
                | K::RegrSxy
                | K::RegrSyy
        )
    }
}

/// A call of an aggregate.
#[derive(Clone, Debug)]
pub struct AggregateCall {
    /// What it computes.
    pub kind: Kind,
    /// Its arguments; those of WITHIN GROUP where it has that.
    pub args: Vec<Bound>,
    /// The arguments before WITHIN GROUP, which have one value for the whole group.
    pub direct: Vec<Bound>,
    /// DISTINCT.
    pub distinct: bool,
    /// FILTER.
    pub filter: Option<Bound>,
    /// ORDER BY: key, descending, nulls first.
    pub order_by: Vec<(Bound, bool, bool)>,
    /// The type of its result.
    pub ty: SqlType,
}

impl AggregateCall {
    /// Its expressions.
    pub fn exprs(&self) -> impl Iterator<Item = &Bound> {
        self.args.iter().chain(&self.direct).chain(&self.filter).chain(self.order_by.iter().map(|o| &o.0))
    }

    /// Its expressions, to change.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Bound> {
        let order = self.order_by.iter_mut().map(|o| &mut o.0);
        self.args.iter_mut().chain(&mut self.direct).chain(&mut self.filter).chain(order)
    }

    pub(super) fn is_volatile(&self) -> bool {
        self.exprs().any(Bound::is_volatile)
    }

    pub(super) fn same(&self, other: &AggregateCall) -> bool {
        let all = |a: &[Bound], b: &[Bound]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b));
        let filters = match (&self.filter, &other.filter) {
            (None, None) => true,
            (Some(a), Some(b)) => a.same(b),
            _ => false,
        };
        let order = |a: &[(Bound, bool, bool)], b: &[(Bound, bool, bool)]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.0.same(&b.0) && (a.1, a.2) == (b.1, b.2))
        };
        (self.kind, self.distinct, self.ty) == (other.kind, other.distinct, other.ty)
            && all(&self.args, &other.args)
            && all(&self.direct, &other.direct)
            && filters
            && order(&self.order_by, &other.order_by)
    }
}

const ANY: Oid = resolve::ANY;

/// (name, kind, argument types, result type; ANY as result: the argument's).
#[rustfmt::skip]
static AGGREGATES: &[(&str, Kind, &[Oid], Oid)] = {
    use oid::*;
    &[
        ("count", Kind::Count, &[ANY], INT8),
        ("sum", Kind::Sum, &[INT8], NUMERIC), ("sum", Kind::Sum, &[INT4], INT8), ("sum", Kind::Sum, &[INT2], INT8),
        ("sum", Kind::Sum, &[FLOAT4], FLOAT4), ("sum", Kind::Sum, &[FLOAT8], FLOAT8),
        ("sum", Kind::Sum, &[NUMERIC], NUMERIC), ("sum", Kind::Sum, &[INTERVAL], INTERVAL), ("sum", Kind::Sum, &[MONEY], MONEY),
        ("avg", Kind::Avg, &[INT8], NUMERIC), ("avg", Kind::Avg, &[INT4], NUMERIC), ("avg", Kind::Avg, &[INT2], NUMERIC),
        ("avg", Kind::Avg, &[FLOAT4], FLOAT8), ("avg", Kind::Avg, &[FLOAT8], FLOAT8),
        ("avg", Kind::Avg, &[NUMERIC], NUMERIC), ("avg", Kind::Avg, &[INTERVAL], INTERVAL),
        ("bool_and", Kind::BoolAnd, &[BOOL], BOOL), ("every", Kind::BoolAnd, &[BOOL], BOOL),
        ("bool_or", Kind::BoolOr, &[BOOL], BOOL),
        ("string_agg", Kind::StringAgg, &[TEXT, TEXT], TEXT), ("string_agg", Kind::StringAgg, &[BYTEA, BYTEA], BYTEA),
        ("bit_and", Kind::BitAnd, &[INT2], INT2), ("bit_and", Kind::BitAnd, &[INT4], INT4), ("bit_and", Kind::BitAnd, &[INT8], INT8),
        ("bit_or", Kind::BitOr, &[INT2], INT2), ("bit_or", Kind::BitOr, &[INT4], INT4), ("bit_or", Kind::BitOr, &[INT8], INT8),
        ("bit_xor", Kind::BitXor, &[INT2], INT2), ("bit_xor", Kind::BitXor, &[INT4], INT4), ("bit_xor", Kind::BitXor, &[INT8], INT8),
        ("bit_and", Kind::BitAnd, &[BIT], BIT), ("bit_or", Kind::BitOr, &[BIT], BIT), ("bit_xor", Kind::BitXor, &[BIT], BIT),
        ("percentile_disc", Kind::PercentileDisc, &[FLOAT8, ANY], ANY),
        ("percentile_disc", Kind::PercentileDisc, &[FLOAT8_ARRAY, ANY], ANY),
        ("percentile_cont", Kind::PercentileCont, &[FLOAT8, FLOAT8], FLOAT8),
        ("percentile_cont", Kind::PercentileCont, &[FLOAT8, INTERVAL], INTERVAL),
        ("percentile_cont", Kind::PercentileCont, &[FLOAT8_ARRAY, FLOAT8], FLOAT8_ARRAY),
        ("percentile_cont", Kind::PercentileCont, &[FLOAT8_ARRAY, INTERVAL], INTERVAL_ARRAY),
        ("mode", Kind::Mode, &[ANY], ANY),
    ]
};

/// Aggregates of numbers: over exact ones they give numeric, over others double precision.
static OF_NUMBERS: &[(&str, Kind)] = &[
    ("variance", Kind::VarSamp),
    ("var_samp", Kind::VarSamp),
    ("var_pop", Kind::VarPop),
    ("stddev", Kind::StddevSamp),
    ("stddev_samp", Kind::StddevSamp),
    ("stddev_pop", Kind::StddevPop),
];

/// Aggregates of pairs of doubles.
static OF_PAIRS: &[(&str, Kind)] = &[
    ("corr", Kind::Corr),
    ("covar_pop", Kind::CovarPop),
    ("covar_samp", Kind::CovarSamp),
    ("regr_avgx", Kind::RegrAvgx),
    ("regr_avgy", Kind::RegrAvgy),
    ("regr_count", Kind::RegrCount),
    ("regr_intercept", Kind::RegrIntercept),
    ("regr_r2", Kind::RegrR2),
    ("regr_slope", Kind::RegrSlope),
    ("regr_sxx", Kind::RegrSxx),
    ("regr_sxy", Kind::RegrSxy),
    ("regr_syy", Kind::RegrSyy),
];

/// Aggregates of hypothetical rows.
static HYPOTHETICAL: &[(&str, Kind, Oid)] = &[
    ("rank", Kind::Rank, oid::INT8),
    ("dense_rank", Kind::DenseRank, oid::INT8),
    ("percent_rank", Kind::PercentRank, oid::FLOAT8),
    ("cume_dist", Kind::CumeDist, oid::FLOAT8),
];

/// The aggregate of a hypothetical row: its kind and the type of its result.
pub fn hypothetical(name: &str) -> Option<(Kind, Oid)> {
    HYPOTHETICAL.iter().find(|h| h.0 == name).map(|h| (h.1, h.2))
}

/// Aggregates that make json of arguments of any type: kind, number of arguments, result.
static OF_JSON: &[(&str, Kind, usize, Oid)] = &[
    ("json_agg", Kind::JsonAgg, 1, oid::JSON),
    ("jsonb_agg", Kind::JsonbAgg, 1, oid::JSONB),
    ("json_object_agg", Kind::JsonObjectAgg, 2, oid::JSON),
    ("jsonb_object_agg", Kind::JsonbObjectAgg, 2, oid::JSONB),
];

/// The types that min and max take.
const ORDERED: &[&[Oid]] = &[
    &[oid::INT8],
    &[oid::INT4],
    &[oid::INT2],
    &[oid::OID],
    &[oid::FLOAT4],
    &[oid::FLOAT8],
    &[oid::NUMERIC],
    &[oid::TEXT],
    &[oid::BPCHAR],
    &[oid::DATE],
    &[oid::TIMESTAMP],
    &[oid::TIMESTAMPTZ],
    &[oid::INTERVAL],
    &[oid::TIME],
    &[oid::TIMETZ],
    &[oid::INET],
    &[oid::PG_LSN],
    &[oid::MONEY],
    &[oid::XID8],
    &[oid::TID],
    &[oid::CITEXT],
];

/// Whether a name is that of an aggregate.
pub fn is_aggregate(name: &str) -> bool {
    matches!(name, "min" | "max" | "array_agg")
        || AGGREGATES.iter().any(|a| a.0 == name)
        || OF_NUMBERS.iter().chain(OF_PAIRS).any(|a| a.0 == name)
        || OF_JSON.iter().any(|a| a.0 == name)
}

/// The aggregate for argument types: kind, the types its arguments are cast to, result.
pub fn resolve(name: &str, inputs: &[Oid]) -> Option<(Kind, Vec<Oid>, Oid)> {
    if name == "array_agg" {
        let [t] = inputs else { return None };
        let t = if *t == oid::UNKNOWN { oid::TEXT } else { *t };
        let result = if element_of(t).is_some() { t } else { array_of(t)? };
        return Some((Kind::ArrayAgg, vec![t], result));
    }
    let text = |t: Oid| if t == oid::UNKNOWN { oid::TEXT } else { t };
    if let Some((_, kind, _, result)) = OF_JSON.iter().find(|a| a.0 == name && a.2 == inputs.len()) {
        return Some((*kind, inputs.iter().map(|t| text(*t)).collect(), *result));
    }
    if matches!(name, "min" | "max") {
        let kind = if name == "min" { Kind::Min } else { Kind::Max };
        if let [t] = inputs
            && (element_of(*t).is_some() || user::is_enum(*t))
        {
            return Some((kind, vec![*t], *t));
        }
        let Choice::One(i) = resolve::choose(inputs, ORDERED) else {
            return None;
        };
        return Some((kind, ORDERED[i].to_vec(), ORDERED[i][0]));
    }
    if let Some((_, kind)) = OF_NUMBERS.iter().find(|a| a.0 == name) {
        let types: &[&[Oid]] =
            &[&[oid::INT8], &[oid::INT4], &[oid::INT2], &[oid::FLOAT4], &[oid::FLOAT8], &[oid::NUMERIC]];
        let Choice::One(i) = resolve::choose(inputs, types) else { return None };
        let inexact = matches!(types[i][0], oid::FLOAT4 | oid::FLOAT8);
        return Some((*kind, types[i].to_vec(), if inexact { oid::FLOAT8 } else { oid::NUMERIC }));
    }
    if let Some((_, kind)) = OF_PAIRS.iter().find(|a| a.0 == name) {
        let pair: &[Oid] = &[oid::FLOAT8, oid::FLOAT8];
        let Choice::One(_) = resolve::choose(inputs, &[pair]) else { return None };
        let result = if *kind == Kind::RegrCount { oid::INT8 } else { oid::FLOAT8 };
        return Some((*kind, pair.to_vec(), result));
    }
    let rows: Vec<_> = AGGREGATES.iter().filter(|a| a.0 == name).collect();
    let types: Vec<&[Oid]> = rows.iter().map(|r| r.2).collect();
    let Choice::One(i) = resolve::choose(inputs, &types) else {
        return None;
    };
    let args: Vec<Oid> = rows[i].2.iter().zip(inputs).map(|(t, input)| if *t == ANY { *input } else { *t }).collect();
    let result = match rows[i].3 {
        ANY => {
            let value = args.last().copied().map_or(oid::TEXT, text);
            if args.first() == Some(&oid::FLOAT8_ARRAY) { array_of(value)? } else { value }
        }
        result => result,
    };
    Some((rows[i].1, args, result))
}
