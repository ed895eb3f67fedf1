//! A keyspace that requests are about, whatever it is at present.

use super::client::Client;
use crate::face::{self, Question};
use crate::owned::OwnedRequest;
use crate::present::{Present, outdated, put_back};
use crate::{Outcome, Reply};
use cluster::Keyspace;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// The keys of one keyspace.
#[derive(Clone, Debug)]
pub struct Space {
    pub(super) client: Client,
    pub(super) keyspace: Arc<Present>,
    /// How long its requests for many keys may take.
    pub(super) within: Option<Duration>,
}

impl Space {
    pub(super) fn begin(&self, request: OwnedRequest) -> Receiver<Outcome<Reply>> {
        self.client.begin(Question::Of(self.keyspace.get(), request))
    }

    /// Asks; if the keyspace is not what it was, looks it up and asks once more.
    pub(super) fn ask(&self, request: impl Fn() -> OwnedRequest) -> Outcome<Reply> {
        let used = self.keyspace.get();
        let question = Question::Of(Arc::clone(&used), request());
        let outcome = self.client.ask(question);
        if !outcome.is_outdated() || !self.renew(&used) {
            return outcome;
        }
        self.client.ask(Question::Of(self.keyspace.get(), request()))
    }

    /// The same for many keys, of which those that were refused for that are asked for again. The
    /// request is for those that are named, or all, and says for how many.
    pub(super) fn ask_many<T: Clone>(
        &self,
        request: impl Fn(Option<&[usize]>) -> (usize, OwnedRequest),
        outcomes: fn(Reply) -> Vec<Outcome<T>>,
    ) -> Vec<Outcome<T>> {
        let used = self.keyspace.get();
        let (count, first) = request(None);
        let outcome = self.client.ask(Question::Of(Arc::clone(&used), first));
        let mut all = face::many(outcome, count, outcomes);
        let which = outdated(&all);
        if which.is_empty() || !self.renew(&used) {
            return all;
        }
        let (count, again) = request(Some(&which));
        let outcome = self.client.ask(Question::Of(self.keyspace.get(), again));
        put_back(&mut all, &which, face::many(outcome, count, outcomes));
        all
    }

    /// Looks the keyspace up again, unless somebody has just done so; whether it is another one
    /// than the one that was used.
    pub(super) fn renew(&self, used: &Arc<Keyspace>) -> bool {
        if self.keyspace.get() == *used {
            let name = used.name.clone();
            let outcome = self.client.ask(Question::Describe(name));
            // If that is refused too, or not answered, what was said first is said.
            drop(self.client.shared.known.learn(&used.name, outcome));
        }
        self.keyspace.get() != *used
    }
}
