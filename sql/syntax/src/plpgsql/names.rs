//! Which variable a name means in which place of a body.
//!
//! Names are a tree whose root is the outermost level: each name knows the one that was declared before it, so that a place in the text is one
//! number, and a name that is declared later is not seen from there.

/// The number of a variable.
pub type Slot = usize;

/// A place: the number of the name that was declared last before it, plus one; 0: none was.
pub type Place = usize;

#[derive(Clone, Debug, PartialEq)]
enum Item {
    /// A level begins, with its label; whether the label is that of a loop.
    Level { label: Option<String>, of_loop: bool },
    /// A variable.
    Variable { name: String, slot: Slot },
}

/// The names of a body.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Names {
    items: Vec<(Place, Item)>,
}

/// What a name leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The variable.
    pub slot: Slot,
    /// How many parts of the name lead to it: what follows are its fields.
    pub used: usize,
}

impl Names {
    fn push(&mut self, at: Place, item: Item) -> Place {
        self.items.push((at, item));
        self.items.len()
    }

    /// Begins a level; the place within it.
    pub fn level(&mut self, at: Place, label: Option<String>, of_loop: bool) -> Place {
        self.push(at, Item::Level { label, of_loop })
    }

    /// Declares a variable; the place behind it.
    pub fn declare(&mut self, at: Place, name: &str, slot: Slot) -> Place {
        self.push(at, Item::Variable { name: name.to_owned(), slot })
    }

    fn upward(&self, at: Place) -> impl Iterator<Item = &Item> {
        let mut at = at;
        std::iter::from_fn(move || {
            let (before, item) = self.items.get(at.checked_sub(1)?)?;
            at = *before;
            Some(item)
        })
    }

    /// The variable that a name means, as PostgreSQL's `plpgsql_ns_lookup` finds it.
    pub fn find(&self, at: Place, parts: &[String]) -> Option<Found> {
        let first = parts.first()?;
        let (mut plain, mut qualified) = (None, None);
        for item in self.upward(at) {
            match item {
                Item::Variable { name, slot } => {
                    if plain.is_none() && name == first {
                        plain = Some(*slot);
                    }
                    if qualified.is_none() && parts.get(1) == Some(name) {
                        qualified = Some(*slot);
                    }
                }
                Item::Level { label, .. } => {
                    if let Some(slot) = plain {
                        return Some(Found { slot, used: 1 });
                    }
                    if let Some(slot) = qualified.take()
                        && label.as_ref() == Some(first)
                    {
                        return Some(Found { slot, used: 2 });
                    }
                }
            }
        }
        None
    }

    /// Whether the level around a place has a variable of that name.
    pub fn has_here(&self, at: Place, wanted: &str) -> bool {
        let here = self.upward(at).take_while(|item| matches!(item, Item::Variable { .. }));
        here.into_iter().any(|item| matches!(item, Item::Variable { name, .. } if name == wanted))
    }

    /// Whether a label of that name stands around a place, and whether it is that of a loop.
    pub fn label(&self, at: Place, wanted: &str) -> Option<bool> {
        self.upward(at).find_map(|item| match item {
            Item::Level { label: Some(label), of_loop } if label == wanted => Some(*of_loop),
            _ => None,
        })
    }
}

impl Names {
    /// Whether a loop stands around a place.
    pub fn in_loop(&self, at: Place) -> bool {
        self.upward(at).any(|item| matches!(item, Item::Level { of_loop: true, .. }))
    }
}
