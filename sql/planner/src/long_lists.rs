//! Long lists of constants in conditions that are evaluated on rows, as arrays: an array is sorted when it comes for the second time
//! (`clearway_values::expr::long_array`).

use clearway_base::stack;
use clearway_values::expr::long_array::LONG;
use clearway_values::expr::operators::Op;
use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::Datum;
use clearway_values::types::datum::Array;

/// Makes arrays of the long lists of an expression.
pub(super) fn as_arrays(e: &mut Bound) {
    if let BoundKind::InList { arg, list, negated } = &mut e.kind
        && list.len() >= LONG
        && let Some(of) = list.first().map(|value| value.ty.oid)
        && let Some(array) = clearway_values::types::array_of(of)
        && let Some(values) = list.iter().map(|value| constant_of(value, of)).collect::<Option<Vec<Datum>>>()
    {
        let left = std::mem::replace(&mut **arg, Bound::constant(Datum::Null, of, e.pos));
        let values = Bound::constant(Datum::Array(Array::one_dimensional(of, values).into()), array, e.pos);
        let op = if *negated { Op::Ne } else { Op::Eq };
        let (left, array, all) = (Box::new(left), Box::new(values), *negated);
        e.kind = BoundKind::Quantified { left, op, all, array };
    }
    stack::deeper(|| e.children_mut().into_iter().for_each(as_arrays));
}

fn constant_of(e: &Bound, ty: u32) -> Option<Datum> {
    match &e.kind {
        BoundKind::Const(value) if e.ty.oid == ty => Some(value.clone()),
        _ => None,
    }
}
