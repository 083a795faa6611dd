//! The filter of a walk that asks for integers alone (`clearway_values::expr::int_condition`), judged over rows as they are stored.

use super::Cx;
use clearway_context::errors::from_engine;
use clearway_engine::table::pick::Picker;
use clearway_engine::value::ValueRef;
use clearway_planner::plan::Scan;
use clearway_syntax::error::Result;
use clearway_values::expr::int_condition::IntCondition;

/// A filter of this kind.
pub(super) struct IntFilter {
    condition: IntCondition,
    picker: Picker,
    /// For each column of the table its number among those that are asked for.
    places: Vec<usize>,
    numbers: Vec<i64>,
}

impl IntFilter {
    /// The filter of a scan without slots to its left; none: it has none, or one of another kind.
    pub(super) fn of(cx: Cx<'_>, scan: &Scan) -> Option<IntFilter> {
        let condition = IntCondition::of(scan.filter.as_ref()?, cx.run.params)?;
        let width = scan.table.types.len();
        let column_of = |slot: &usize| (0..width).find(|column| scan.place(*column) == *slot);
        let columns: Vec<usize> = condition.slots().iter().map(column_of).collect::<Option<_>>()?;
        let mut places = vec![usize::MAX; width];
        columns.iter().enumerate().for_each(|(place, column)| places[*column] = place);
        let picker = Picker::new(&scan.table.shape, &columns);
        Some(IntFilter { condition, picker, places, numbers: vec![0; columns.len()] })
    }

    /// Whether a row meets it; none: the evaluator has to be asked.
    #[inline]
    pub(super) fn holds(&mut self, scan: &Scan, key: &[u8], value: &[u8]) -> Result<Option<bool>> {
        if let Some(int) = self.picker.int_of_key(key, value) {
            return Ok(self.condition.holds(&[int]));
        }
        let (places, numbers, mut known) = (&self.places, &mut self.numbers, 0);
        let mut put = |column: usize, value: ValueRef<'_>| {
            if let (ValueRef::Int(int), Some(number)) = (value, numbers.get_mut(places[column])) {
                *number = int;
                known += 1;
            }
        };
        self.picker.read(&scan.table.shape, key, value, &mut put).map_err(from_engine)?;
        Ok(if known == numbers.len() { self.condition.holds(numbers) } else { None })
    }
}
