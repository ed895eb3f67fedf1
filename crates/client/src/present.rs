//! What a keyspace is at present. A cluster that was made anew has another one under the same name:
//! with another id, or another seed of its hashes. Its nodes and switches then refuse what was
//! placed by the old one, and the name is looked up again.

use crate::Outcome;
use cluster::Keyspace;
use std::sync::{Arc, PoisonError, RwLock};

/// A keyspace as it was looked up last. All who use it under this name share it.
#[derive(Debug)]
pub(crate) struct Present(RwLock<Arc<Keyspace>>);

impl Present {
    pub(crate) fn new(keyspace: Keyspace) -> Self {
        Self(RwLock::new(Arc::new(keyspace)))
    }

    pub(crate) fn get(&self) -> Arc<Keyspace> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn replace(&self, keyspace: Keyspace) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keyspace);
    }
}

/// Which of the outcomes say that the keyspace may not be what the client believes.
pub(crate) fn outdated<T>(outcomes: &[Outcome<T>]) -> Vec<usize> {
    let all = outcomes.iter().enumerate();
    all.filter(|(_, outcome)| outcome.is_outdated()).map(|(index, _)| index).collect()
}

/// Those of the items that are named; all without names.
pub(crate) fn chosen<T: Clone>(items: &[T], which: Option<&[usize]>) -> Vec<T> {
    match which {
        None => items.to_vec(),
        Some(which) => which.iter().filter_map(|index| items.get(*index).cloned()).collect(),
    }
}

/// Puts outcomes in the places of those that were asked for once more.
pub(crate) fn put_back<T>(all: &mut [Outcome<T>], which: &[usize], again: Vec<Outcome<T>>) {
    for (index, outcome) in which.iter().zip(again) {
        if let Some(place) = all.get_mut(*index) {
            *place = outcome;
        }
    }
}
