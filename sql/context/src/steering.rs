//! What the settings of a session ask of the planner: ways that are not wanted, what steps cost, how far joins are ordered.
//!
//! # Structure
//! [`Steering`] is made of the texts of the settings when one of them changes, and copied for each statement that is planned. `planner_settings` has
//! the table of these settings.
//!
//! # Invariants
//! - STR-1: with the defaults of all settings the costs are the constants of `Costs::DEFAULT`, to the last bit: a setting with its default changes no
//!   plan.
//! - STR-2: `number` is 0 for the defaults, and the same in all sessions with the same values. What keeps plans compares this number instead of the
//!   values. Two sets of values with one number would share plans, which give the same rows.
//!
//! # Source
//! `costsize.c` of PostgreSQL 15: a way that is not wanted costs `disable_cost` more, so that it is taken only where there is no other.

use std::hash::{DefaultHasher, Hash, Hasher};

/// What a way that is not wanted costs more: PostgreSQL's `disable_cost`, 1.0e10, in the unit of the planner, a hundredth of PostgreSQL's.
pub const UNWANTED: f64 = 1.0e12;

/// Units of a join that are searched in full at most, whatever the settings say: there are two to the power of them sets.
const SEARCHED_MAX: usize = 12;

/// A way to carry out a step, which `enable_...` switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Reading a whole table.
    SeqScan,
    /// Reading by the key or an index.
    IndexScan,
    /// Reading entries of an index instead of rows.
    IndexOnlyScan,
    /// Reading by several ranges that different conditions name, or by two indexes together.
    BitmapScan,
    /// Reading rows by their ctids.
    TidScan,
    /// A hash join.
    HashJoin,
    /// A merge join.
    MergeJoin,
    /// A nested loop.
    NestLoop,
    /// A sort.
    Sort,
    /// Groups, distinct rows and set operations by a hash table.
    HashAgg,
    /// Keeping the rows of the inner side of a nested loop.
    Material,
}

/// The switches, by the names of their settings.
const SWITCHES: [(&str, Way); 11] = [
    ("enable_seqscan", Way::SeqScan),
    ("enable_indexscan", Way::IndexScan),
    ("enable_indexonlyscan", Way::IndexOnlyScan),
    ("enable_bitmapscan", Way::BitmapScan),
    ("enable_tidscan", Way::TidScan),
    ("enable_hashjoin", Way::HashJoin),
    ("enable_mergejoin", Way::MergeJoin),
    ("enable_nestloop", Way::NestLoop),
    ("enable_sort", Way::Sort),
    ("enable_hashagg", Way::HashAgg),
    ("enable_material", Way::Material),
];

/// What steps cost. The unit is reading one row when rows are read in the order of their table's key.
///
/// PostgreSQL's costs enter as multiples of their defaults: a row read in sequence is half processing (`cpu_tuple_cost`) and half its part of a page
/// (`seq_page_cost`); a row to which an index leads has its entry (`cpu_index_tuple_cost`) and a page of its own (`random_page_cost`) besides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Reading a row of a table in sequence.
    pub row: f64,
    /// Reading a row to which an index leads, wherever it is.
    pub index_row: f64,
    /// The same where the rows stand in the order of the index.
    pub index_row_near: f64,
    /// Reading an entry of an index that is as long as a row.
    pub entry: f64,
    /// Finding where a range begins.
    pub probe: f64,
    /// Finding the next value of the leading columns of a key: the rest of a leaf is read for it.
    pub jump: f64,
    /// Reading an entry of an index for its row's key alone, and putting that into a sieve or asking for it there.
    pub sift: f64,
    /// Sorting a row, for each doubling of their number.
    pub sort: f64,
    /// Putting a row into a hash table.
    pub build: f64,
    /// Looking a row up in a hash table.
    pub look_up: f64,
    /// Giving a joined row on.
    pub give: f64,
    /// Passing a row of a merge join.
    pub merge: f64,
    /// Judging a pair of rows by the condition of a join.
    pub pair: f64,
}

impl Costs {
    /// Those of the defaults (STR-1).
    const DEFAULT: Costs = Costs {
        row: 1.0,
        index_row: 3.0,
        index_row_near: 1.2,
        entry: 1.0,
        probe: 2.0,
        jump: 40.0,
        sift: 0.35,
        sort: 0.1,
        build: 2.0,
        look_up: 1.0,
        give: 0.3,
        merge: 0.7,
        pair: 0.5,
    };
}

/// PostgreSQL's costs, as multiples of their defaults.
struct Multiples {
    seq_page: f64,
    random_page: f64,
    tuple: f64,
    index_tuple: f64,
    operator: f64,
}

impl Costs {
    fn of(m: &Multiples) -> Costs {
        Costs {
            row: 0.5 * m.seq_page + 0.5 * m.tuple,
            index_row: 2.0 * m.random_page + 0.5 * m.tuple + 0.5 * m.index_tuple,
            index_row_near: 0.2 * m.seq_page + 0.5 * m.tuple + 0.5 * m.index_tuple,
            entry: 0.5 * m.seq_page + 0.5 * m.index_tuple,
            probe: 2.0 * m.random_page,
            jump: 2.0 * m.random_page + 38.0 * m.index_tuple,
            sift: 0.35 * m.index_tuple,
            sort: 0.1 * m.operator,
            build: m.tuple + m.operator,
            look_up: m.operator,
            give: 0.3 * m.tuple,
            merge: 0.7 * m.operator,
            pair: 0.5 * m.operator,
        }
    }
}

/// What the settings ask of the planner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steering {
    /// STR-2
    number: u64,
    /// A bit for each way that is not wanted.
    unwanted: u16,
    /// What steps cost.
    pub costs: Costs,
    /// `join_collapse_limit`: tables that explicit JOINs may put into one list whose order is searched.
    pub join_collapse: usize,
    /// `from_collapse_limit`: the same of a query in FROM, and of a JOIN in a list.
    pub from_collapse: usize,
    /// `geqo`, `geqo_threshold`: so many units are searched in full; of more the cheapest next one is taken, step by step.
    pub searched: usize,
    /// `recursive_worktable_factor`: the rows of a recursive query, for each row with which it begins.
    pub recursion: f64,
    /// `cursor_tuple_fraction`: the share of its rows that is read of a cursor.
    cursor: f64,
    /// The share of its rows that is read of the query that is planned.
    pub read: f64,
}

/// The default of `join_collapse_limit` and `from_collapse_limit`: as many units as are ordered at all.
pub const COLLAPSE: usize = 60;

impl Steering {
    /// That of the defaults.
    pub const DEFAULT: Steering = Steering {
        number: 0,
        unwanted: 0,
        costs: Costs::DEFAULT,
        join_collapse: COLLAPSE,
        from_collapse: COLLAPSE,
        searched: 11,
        recursion: 10.0,
        cursor: 0.1,
        read: 1.0,
    };
    /// That of a session: `value` gives the text of a setting.
    pub(super) fn of<'v>(value: impl Fn(&'static str) -> &'v str) -> Steering {
        let number = |name| value(name).parse::<f64>().unwrap_or(0.0);
        let count = |name| value(name).parse::<usize>().unwrap_or(COLLAPSE);
        let off = SWITCHES.iter().filter(|(name, _)| value(name) == "off");
        let multiples = Multiples {
            seq_page: number("seq_page_cost"),
            random_page: number("random_page_cost") / 4.0,
            tuple: number("cpu_tuple_cost") / 0.01,
            index_tuple: number("cpu_index_tuple_cost") / 0.005,
            operator: number("cpu_operator_cost") / 0.0025,
        };
        let below = |limit: usize| limit.saturating_sub(1).min(SEARCHED_MAX);
        let searched = if value("geqo") == "off" { SEARCHED_MAX } else { below(count("geqo_threshold")) };
        let found = Steering {
            number: 0,
            unwanted: off.fold(0, |bits, (_, way)| bits | way.bit()),
            costs: Costs::of(&multiples),
            join_collapse: count("join_collapse_limit"),
            from_collapse: count("from_collapse_limit"),
            searched,
            recursion: number("recursive_worktable_factor"),
            cursor: number("cursor_tuple_fraction"),
            read: 1.0,
        };
        Steering { number: found.hashed(), ..found }
    }

    /// The same for the query of a cursor.
    #[must_use]
    pub fn of_cursor(self) -> Steering {
        Steering { read: self.cursor, ..self }
    }

    fn hashed(&self) -> u64 {
        if *self == Steering::DEFAULT {
            return 0; // STR-2
        }
        let mut hasher = DefaultHasher::new();
        format!("{self:?}").hash(&mut hasher);
        hasher.finish().max(1)
    }

    /// What tells it from others (STR-2).
    #[inline]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether a way is not wanted.
    pub fn is_unwanted(&self, way: Way) -> bool {
        self.unwanted & way.bit() != 0
    }

    /// What of a cost is work, without what unwanted ways cost.
    fn work_of(&self, cost: f64) -> f64 {
        if self.unwanted == 0 { cost } else { cost % UNWANTED }
    }

    /// Whether a cost is less than another by a ten thousandth of its work: the costs of unwanted ways alone do not hide a difference.
    pub fn is_clearly_less(&self, cost: f64, than: f64) -> bool {
        let (work, other) = (self.work_of(cost), self.work_of(than));
        let (disable_costs, others) = (cost - work, than - other);
        disable_costs < others || (disable_costs == others && work < other * 0.9999)
    }

    /// What a part of the rows costs, where all of them cost so much: unwanted ways cost all that they cost in any case.
    pub fn of_part(&self, cost: f64, part: f64) -> f64 {
        cost - self.work_of(cost) * (1.0 - part)
    }

    /// What a way costs beside its work.
    pub fn disable_cost(&self, way: Way) -> f64 {
        if self.is_unwanted(way) { UNWANTED } else { 0.0 }
    }
}

impl Way {
    fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// Whether a setting is one of those of which a [`Steering`] is made.
pub(super) fn is_steering(name: &str) -> bool {
    super::planner_settings::PLANNER.iter().any(|setting| setting.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::find;

    fn with(changed: &[(&str, &'static str)]) -> Steering {
        Steering::of(|name| {
            let set = changed.iter().find(|(other, _)| *other == name).map(|(_, value)| *value);
            set.unwrap_or_else(|| find(name).expect("a setting").default)
        })
    }

    /// STR-1, STR-2
    #[test]
    fn the_defaults_of_the_settings_are_the_defaults_of_the_planner() {
        assert_eq!(with(&[]), Steering::DEFAULT);
        assert_eq!(with(&[]).number(), 0);
    }

    /// STR-2
    #[test]
    fn each_setting_has_a_part_in_the_number() {
        let mut numbers = vec![0];
        for setting in super::super::planner_settings::PLANNER {
            let value = match setting.default {
                "on" => "off",
                "off" => "on",
                _ => "0.75",
            };
            let value = if matches!(setting.kind, crate::settings::Kind::Int(..)) { "5" } else { value };
            let number = with(&[(setting.name, value)]).number();
            assert!(!numbers.contains(&number), "{} = {value}", setting.name);
            numbers.push(number);
        }
    }

    #[test]
    fn what_is_not_wanted_hides_no_difference() {
        let steering = with(&[("enable_sort", "off")]);
        assert!(steering.is_clearly_less(UNWANTED + 10.0, UNWANTED + 20.0));
        assert!(!steering.is_clearly_less(UNWANTED + 20.0, UNWANTED + 20.0));
        assert!(steering.is_clearly_less(1e9, UNWANTED));
        assert!(!steering.is_clearly_less(2.0 * UNWANTED, UNWANTED + 1e9));
        assert_eq!(steering.of_part(UNWANTED + 100.0, 0.1), UNWANTED + 10.0);
        assert_eq!(Steering::DEFAULT.of_part(3.0 * UNWANTED, 0.5), 1.5 * UNWANTED, "it is all work");
    }
}
