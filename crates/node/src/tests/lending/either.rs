//! A keyspace whose hot keys are lent or registered: each key is one or the other.

use super::*;
use cluster::Mutant;

/// The revision of the order that registers the key, and so its generation.
const ORDER: u64 = 10;

/// A key that is lent and may be registered, in its first version.
fn lent_of_either(count: u16) -> Chain {
    let mut chain = lent(count);
    chain.map.keyspaces[0].hot = HotPolicy::Either;
    chain.map.revision = Revision::new(3);
    chain.install();
    chain
}

impl Chain {
    fn register(&mut self) {
        self.order_hot(ORDER, &[(b"k", ORDER)]);
        self.settle();
    }

    fn unregister(&mut self, revision: u64) {
        self.order_hot(revision, &[]);
        self.settle();
    }

    fn is_registered_at_tail(&self) -> bool {
        self.nodes[self.tail()].hot_keys() == 1
    }
}

fn recall(loan: u64) -> LenderMessage {
    LenderMessage::Recall { loan, key: b"k".to_vec() }
}

#[test]
fn a_key_that_is_lent_is_registered_when_the_cache_has_given_it_back() {
    for count in [1, 3] {
        let mut chain = lent_of_either(count);
        chain.register();
        assert_eq!(chain.told(), [recall(1)], "{count}");
        assert!(!chain.is_registered_at_tail(), "{count}");
        chain.read(b"k");
        assert!(chain.replies.is_empty(), "the cache may show it as it was: {count}");
        chain.answer(b"k", 1, None);
        chain.settle();
        assert!(chain.is_registered_at_tail(), "{count}");
        assert_eq!(chain.only_reply().version, 1, "{count}");
    }
}

#[test]
fn a_key_is_registered_when_the_lease_of_a_silent_cache_is_over() {
    let mut chain = lent_of_either(2);
    chain.register();
    chain.told();
    chain.pass(MS * 300);
    chain.settle();
    assert!(!chain.is_registered_at_tail(), "its clock may be slow");
    assert_eq!(chain.told().first(), Some(&recall(1)), "it is told again");
    chain.pass(MS * 6);
    chain.settle();
    assert!(chain.is_registered_at_tail());
}

#[test]
fn no_newer_value_makes_up_for_a_loan_that_has_to_end() {
    let mut chain = lent_of_either(2);
    chain.put(b"k", b"two");
    chain.settle();
    assert_eq!(chain.told(), [update(1, 2, b"two")]);
    chain.register();
    chain.put(b"k", b"four");
    chain.settle();
    chain.answer(b"k", 1, Some(2));
    chain.settle();
    assert_eq!(chain.only_reply().version, 2);
    assert_eq!(chain.told(), [recall(1)], "not the value of the write behind");
    assert!(!chain.is_registered_at_tail());
    chain.answer(b"k", 1, None);
    chain.settle();
    assert!(chain.is_registered_at_tail());
    chain.pass(MS * 100);
    chain.settle();
    assert!(chain.replies.iter().any(|it| it.version == 4), "{:?}", chain.replies);
}

#[test]
fn a_key_that_is_registered_is_neither_lent_nor_told_of_and_may_be_when_that_is_over() {
    let mut chain = lent_of_either(2);
    chain.answer(b"k", 1, None);
    chain.register();
    assert!(chain.is_registered_at_tail());
    chain.told();
    assert_eq!(chain.fetch(BORROWER, b"k"), LenderMessage::NotLent(Code::NotFound));
    chain.to_cache.clear();
    (0..50).for_each(|_| drop(chain.get(b"k")));
    chain.pass(MS * 1_000);
    assert_eq!(reported(&mut chain), [], "it would be asked for in vain");
    chain.unregister(ORDER + 1);
    assert!(!chain.is_registered_at_tail());
    chain.to_cache.clear();
    assert!(matches!(chain.fetch(BORROWER, b"k"), LenderMessage::Lent { loan: 2, version: 1, .. }));
    (0..50).for_each(|_| drop(chain.get(b"k")));
    chain.pass(MS * 1_000);
    assert!(reported(&mut chain).iter().any(|(key, _)| key == b"k"));
}

#[test]
fn in_mutants_a_key_is_lent_and_registered_at_once() {
    let mut chain = lent_of_either(2);
    chain.mutant(Mutant::RegisterLent);
    chain.register();
    assert!(chain.is_registered_at_tail());
    assert_eq!(chain.told(), [], "and the cache goes on");
    let mut chain = lent_of_either(2);
    chain.answer(b"k", 1, None);
    chain.mutant(Mutant::LendRegistered);
    chain.register();
    assert!(matches!(chain.fetch(BORROWER, b"k"), LenderMessage::Lent { .. }));
}
