//! The table of the settings that steer the planner ([`steering`](super::steering)), under PostgreSQL's names and with its defaults, but for the
//! limits of lists of joins.
//!
//! A session stores a value of such a setting only if the session has set it; otherwise the value is the default.

use super::setting_table::{Kind, Setting, s};

/// PostgreSQL's range of costs.
const COST: Kind = Kind::RealIn(0.0, f64::MAX);

/// These settings, by name.
#[rustfmt::skip]
pub static PLANNER: &[Setting] = &[
    s("cpu_index_tuple_cost", "0.005", COST, false, "Sets the planner's estimate of the cost of processing each index entry during an index scan."),
    s("cpu_operator_cost", "0.0025", COST, false, "Sets the planner's estimate of the cost of processing each operator or function call."),
    s("cpu_tuple_cost", "0.01", COST, false, "Sets the planner's estimate of the cost of processing each tuple (row)."),
    s("cursor_tuple_fraction", "0.1", Kind::RealIn(0.0, 1.0), false, "Sets the planner's estimate of the fraction of a cursor's rows that will be retrieved."),
    s("enable_bitmapscan", "on", Kind::Bool, false, "Enables the planner's use of several ranges of different conditions, and of two indexes together, for one table."),
    s("enable_hashagg", "on", Kind::Bool, false, "Enables the planner's use of hashed aggregation plans."),
    s("enable_hashjoin", "on", Kind::Bool, false, "Enables the planner's use of hash join plans."),
    s("enable_indexonlyscan", "on", Kind::Bool, false, "Enables the planner's use of index-only-scan plans."),
    s("enable_indexscan", "on", Kind::Bool, false, "Enables the planner's use of index-scan plans, by the key of the table too."),
    s("enable_material", "on", Kind::Bool, false, "Enables the planner's use of materialization."),
    s("enable_mergejoin", "on", Kind::Bool, false, "Enables the planner's use of merge join plans."),
    s("enable_nestloop", "on", Kind::Bool, false, "Enables the planner's use of nested-loop join plans."),
    s("enable_seqscan", "on", Kind::Bool, false, "Enables the planner's use of sequential-scan plans."),
    s("enable_sort", "on", Kind::Bool, false, "Enables the planner's use of explicit sort steps."),
    s("enable_tidscan", "on", Kind::Bool, false, "Enables the planner's use of TID scan plans."),
    s("from_collapse_limit", "60", Kind::Int(1, 2147483647), false, "Sets the FROM-list size beyond which subqueries are not collapsed."),
    s("geqo", "on", Kind::Bool, false, "Orders many joins step by step, the cheapest next; off: the order of up to 12 is searched in full."),
    s("geqo_threshold", "12", Kind::Int(2, 2147483647), false, "Sets the number of FROM items from which on joins are ordered step by step; from 13 on they are in any case."),
    s("join_collapse_limit", "60", Kind::Int(1, 2147483647), false, "Sets the FROM-list size beyond which JOIN constructs are not flattened."),
    s("random_page_cost", "4", COST, false, "Sets the planner's estimate of the cost of a nonsequentially fetched disk page."),
    s("recursive_worktable_factor", "10", Kind::RealIn(0.001, 1_000_000.0), false, "Sets the planner's estimate of the average size of a recursive query's working table."),
    s("seq_page_cost", "1", COST, false, "Sets the planner's estimate of the cost of a sequentially fetched disk page."),
];
