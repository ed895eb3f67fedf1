//! What clients' passes are made of: numbers, and classes of rights.

use crate::controller::Controller;
use crate::decisions::Level;
use machine::Instant;
use std::collections::BTreeMap;
use std::ops::Range;

/// Numbers for passes that a leader sets aside at once: one that ends wastes no more.
const PASSES_AT_ONCE: u64 = 1_024;

/// Numbers for passes that there are for each second since the Unix epoch: as many as last until
/// 2106, when they have used up what client ids have room for.
const PASSES_PER_S: u64 = 16;

impl Controller {
    /// Numbers for clients' passes that nobody has been given, for the caller alone: they may be
    /// given once the present state is durable. Whatever copy of the store is put back, none comes
    /// again, as long as fewer than 16 were given for each second since the Unix epoch.
    pub fn reserve_passes(&mut self, now: Instant) -> Range<u64> {
        self.awake(now);
        let by_time = now.unix_ms() / 1_000 * PASSES_PER_S;
        let first = self.ledger.state.passes.max(by_time);
        let numbers = first..first + PASSES_AT_ONCE;
        self.ledger.state.passes = numbers.end;
        let saw = "clients ask for passes".to_owned();
        let did = format!("give no number from {first} to {} again", numbers.end - 1);
        self.ledger.advance(now, Level::Usual, saw, did);
        numbers
    }

    /// Gives a class of rights to each of these names that has none. They count once the present
    /// state is durable. A name keeps its class, and no other name ever gets it: passes have the
    /// rights of the name that they were given for, in whatever order and number names come later.
    /// Classes are 1, 2, 3, …; a name for which none is left gets none.
    pub fn name_classes<'n>(&mut self, now: Instant, names: impl IntoIterator<Item = &'n str>) {
        self.awake(now);
        let classes = &mut self.ledger.state.classes;
        let mut last = classes.values().max().copied().unwrap_or_default();
        let mut named = Vec::new();
        for name in names {
            if classes.contains_key(name) {
                continue;
            }
            let Some(class) = last.checked_add(1) else { break };
            classes.insert(name.to_owned(), class);
            named.push(format!("class {class} to {name}"));
            last = class;
        }
        if !named.is_empty() {
            let saw = "the configuration has rights of others than before".to_owned();
            let did = format!("give {}, for good", named.join(", "));
            self.ledger.advance(now, Level::Usual, saw, did);
        }
    }

    /// The classes of rights, by name.
    #[must_use]
    pub fn classes(&self) -> &BTreeMap<String, u16> {
        &self.ledger.state.classes
    }
}
