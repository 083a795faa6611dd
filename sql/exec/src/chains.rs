//! Chains of grouping sets in which each set contains the next one: they decide the order in which the groups of several sets are given.

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
}
