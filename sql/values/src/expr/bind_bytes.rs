//! The operators of the classes `text_pattern_ops` and `bpchar_pattern_ops`.

use super::bind::{Binder, no_operator};
use super::bound::Bound;
use super::resolve::{self, Choice};
use crate::error::{Pos, Result};
use crate::types::oid;

impl Binder<'_> {
    /// `~<~` and its like: texts by their bytes, which is how `<` compares texts, too.
    pub(super) fn by_bytes(
        &mut self,
        (name, plain): (&str, &str),
        left: Bound,
        right: Bound,
        pos: Pos,
    ) -> Result<Bound> {
        let known = if left.ty.oid == oid::UNKNOWN { right.ty.oid } else { left.ty.oid };
        let types = [left.ty.oid, right.ty.oid].map(|ty| if ty == oid::UNKNOWN { known } else { ty });
        let Choice::One(at) = resolve::choose(&types, &[&[oid::TEXT; 2], &[oid::BPCHAR; 2]]) else {
            return Err(no_operator(name, &[left.ty.oid, right.ty.oid], pos));
        };
        let ty = [oid::TEXT, oid::BPCHAR][at];
        let (left, right) = (self.operand(left, ty)?, self.operand(right, ty)?);
        self.binary(plain, left, right, pos)
    }
}

/// The comparison that an operator of the classes `text_pattern_ops` and `bpchar_pattern_ops` is.
pub(super) fn of_patterns(name: &str) -> Option<&'static str> {
    Some(match name {
        "~<~" => "<",
        "~<=~" => "<=",
        "~>=~" => ">=",
        "~>~" => ">",
        _ => return None,
    })
}
