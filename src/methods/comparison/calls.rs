//! Which functions of a tree call which, by their names alone.

use std::collections::{BTreeMap, BTreeSet};

use super::source::Unit;
use super::syntax::last;

pub(super) struct Calls<'u> {
    units: &'u [Unit],
    named: BTreeMap<&'u str, Vec<usize>>,
    callers: BTreeMap<&'u str, BTreeSet<usize>>,
}

/// A name that more functions have, or that more of them call, is that of a helper, and says nothing of its matter.
const MOST: usize = 8;

impl<'u> Calls<'u> {
    pub(super) fn of(units: &'u [Unit]) -> Self {
        let mut calls = Self {
            units,
            named: BTreeMap::new(),
            callers: BTreeMap::new(),
        };
        for (idx, unit) in units.iter().enumerate() {
            if unit.is_function {
                calls.named.entry(last(&unit.name)).or_default().push(idx);
            }
            for call in &unit.calls {
                calls.callers.entry(last(call)).or_default().insert(idx);
            }
        }
        calls
    }

    /// The units that call a function, as far as its name tells.
    pub(super) fn callers(&self, unit: &Unit) -> impl Iterator<Item = &'u Unit> {
        let callers = self
            .callers
            .get(last(&unit.name))
            .filter(|_| unit.is_function);
        let callers = callers.filter(|callers| callers.len() <= MOST);
        let units = self.units;
        callers.into_iter().flatten().map(|idx| &units[*idx])
    }

    /// The functions that a unit calls, as far as their names tell.
    pub(super) fn called(&self, unit: &Unit) -> impl Iterator<Item = &'u Unit> {
        let names: BTreeSet<&str> = unit.calls.iter().map(|call| last(call)).collect();
        let found = names.into_iter().filter_map(|name| self.named.get(name));
        let found = found.filter(|units| units.len() <= MOST).flatten();
        let idxs: Vec<usize> = found.copied().collect();
        let units = self.units;
        idxs.into_iter().map(|idx| &units[idx])
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::source::units;
    use super::*;

    #[test]
    fn callers_and_called_are_found_by_name() {
        let text = "def read():\n    return decode()\n\ndef decode():\n    pass\n\nclass A:\n    def run(self):\n        read()\n";
        let units = units(Path::new("a.py"), text, &|_| false);
        let calls = Calls::of(&units);
        let read = units
            .iter()
            .find(|unit| unit.name == "read")
            .expect("is there");
        let callers: Vec<&str> = calls.callers(read).map(|unit| unit.name.as_str()).collect();
        let called: Vec<&str> = calls.called(read).map(|unit| unit.name.as_str()).collect();
        assert_eq!(
            (callers.as_slice(), called.as_slice()),
            (&["A.run"][..], &["decode"][..])
        );
    }
}
