//! Chains of grouping sets in which each set contains the next one: they decide the order in which the groups of several sets are given.

use super::sort::order_of;
use clearway_values::types::Datum;
use std::cmp::Ordering;
use std::slice;

/// Grouping sets that contain each other.
pub(super) struct Chains {
    /// The chain of each set.
    pub of_set: Vec<usize>,
    /// The keys of a chain's largest set, those of smaller sets first.
    pub columns: Vec<Vec<usize>>,
}

impl Chains {
    /// The chains of grouping sets, each of which is given by its keys' places.
    pub fn of(sets: &[Vec<usize>]) -> Self {
        let mut order: Vec<usize> = (0..sets.len()).collect();
        order.sort_by_key(|s| std::cmp::Reverse(sets[*s].len()));
        let mut chains: Vec<Vec<usize>> = Vec::new();
        let mut of_set = vec![0; sets.len()];
        for set in order {
            let within = |chain: &Vec<usize>| {
                let last = chain.last().map_or(&[][..], |s| &sets[*s]);
                sets[set].iter().all(|k| last.contains(k))
            };
            let chain = chains.iter().position(within).unwrap_or(chains.len());
            if chain == chains.len() {
                chains.push(Vec::new());
            }
            chains[chain].push(set);
            of_set[set] = chain;
        }
        let columns_of = |chain: &Vec<usize>| {
            let mut columns: Vec<usize> = Vec::new();
            for key in chain.iter().rev().flat_map(|s| &sets[*s]) {
                if !columns.contains(key) {
                    columns.push(*key);
                }
            }
            columns
        };
        let columns = chains.iter().map(columns_of).collect();
        Self { of_set, columns }
    }

    /// The order of two groups, each given by its set and its keys: by chains, and in a chain a total follows what it is the total of.
    pub fn order(&self, sets: &[Vec<usize>], a: (usize, &[Datum]), b: (usize, &[Datum])) -> Ordering {
        let chain = self.of_set[a.0];
        let column = |c: &usize| {
            let total = |set: usize| !sets[set].contains(c);
            let values = || order_of(slice::from_ref(&a.1[*c]), slice::from_ref(&b.1[*c]), &[(false, false)]);
            total(a.0).cmp(&total(b.0)).then_with(values)
        };
        let columns = || self.columns[chain].iter().map(column).find(|o| o.is_ne()).unwrap_or(Ordering::Equal);
        chain.cmp(&self.of_set[b.0]).then_with(columns)
    }
}
