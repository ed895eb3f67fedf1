//! A queue out of which any rule can be taken, however long it is.

use super::Rule;
use std::collections::BTreeMap;

/// Rules in the order in which they came, each once, with something that is known of each. Whatever
/// is done to it takes no longer than looking something up among as many.
#[derive(Debug, Default)]
pub(super) struct Queue<T> {
    /// By when they came.
    rules: BTreeMap<u64, (Rule, T)>,
    places: BTreeMap<Rule, u64>,
    /// The place of the next that comes.
    next: u64,
}

impl<T> Queue<T> {
    pub(super) fn len(&self) -> usize {
        self.rules.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Adds a rule at the end, unless it is in the queue.
    pub(super) fn push(&mut self, rule: Rule, known: T) {
        if !self.places.contains_key(&rule) {
            self.places.insert(rule, self.next);
            self.rules.insert(self.next, (rule, known));
            self.next += 1;
        }
    }

    /// Takes a rule out, wherever it is; says whether it was in the queue.
    pub(super) fn take(&mut self, rule: &Rule) -> bool {
        let place = self.places.remove(rule);
        place.is_some_and(|place| self.rules.remove(&place).is_some())
    }

    /// The rule that came first.
    pub(super) fn first(&self) -> Option<&(Rule, T)> {
        self.rules.first_key_value().map(|(_, rule)| rule)
    }

    /// Takes it.
    pub(super) fn pop(&mut self) -> Option<Rule> {
        let (_, (rule, _)) = self.rules.pop_first()?;
        self.places.remove(&rule);
        Some(rule)
    }

    pub(super) fn clear(&mut self) {
        self.rules.clear();
        self.places.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::KeyspaceId;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Push(u64),
        Take(u64),
        Pop,
        Clear,
    }

    fn step() -> impl Strategy<Value = Step> {
        let hash = 0u64..20;
        prop_oneof![
            8 => hash.clone().prop_map(Step::Push),
            4 => hash.prop_map(Step::Take),
            2 => Just(Step::Pop),
            1 => Just(Step::Clear),
        ]
    }

    proptest! {
        #[test]
        fn it_does_what_a_plain_list_does(steps in proptest::collection::vec(step(), 0..200)) {
            let rule = |keyhash| Rule { keyspace: KeyspaceId(1), keyhash, match_bits: None };
            let (mut queue, mut list) = (Queue::default(), Vec::<(Rule, usize)>::new());
            for (at, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Push(hash) => {
                        queue.push(rule(hash), at);
                        if list.iter().all(|(it, _)| *it != rule(hash)) {
                            list.push((rule(hash), at));
                        }
                    }
                    Step::Take(hash) => {
                        let before = list.len();
                        list.retain(|(it, _)| *it != rule(hash));
                        prop_assert_eq!(queue.take(&rule(hash)), list.len() < before);
                    }
                    Step::Pop => {
                        let first = (!list.is_empty()).then(|| list.remove(0).0);
                        prop_assert_eq!(queue.pop(), first);
                    }
                    Step::Clear => {
                        queue.clear();
                        list.clear();
                    }
                }
                prop_assert_eq!((queue.len(), queue.first()), (list.len(), list.first()));
                prop_assert_eq!(queue.places.len(), queue.rules.len());
            }
        }
    }
}
