//! What has been decided: the state, how much of it is durable, and what was decided last.

use crate::decisions::{Decisions, Level};
use crate::saved::Saved;
use cluster::{Incarnation, Leader, Member};
use machine::Instant;
use std::collections::BTreeMap;
use wire::Revision;

/// The state as it is decided, which is saved as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    pub(crate) state: Saved,
    pub(crate) decisions: Decisions,
    /// Revision of the newest state handed to the driver for saving.
    saving: Revision,
    /// Revision of the newest state known to be durable.
    durable: Revision,
    /// Whether the term is durable, so that no controller after this one begins it again.
    begun: bool,
    /// The incarnation of each member that is durable.
    registered: BTreeMap<Member, Incarnation>,
}

impl Ledger {
    /// A state of which this revision is durable, if any is.
    pub(crate) fn new(state: Saved, durable: Revision) -> Self {
        let mut ledger = Self {
            state,
            decisions: Decisions::default(),
            // Whatever is durable, its term is a former one.
            saving: Revision::NONE,
            durable,
            begun: false,
            registered: BTreeMap::new(),
        };
        ledger.register();
        ledger
    }

    /// Who gives orders by this.
    pub(crate) fn leader(&self) -> Leader {
        Leader { cluster: self.state.map.cluster, term: self.state.term }
    }

    /// Whether orders may leave.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Orders may leave, though the term is not durable.
    pub(crate) fn begin_unsaved(&mut self) {
        self.begun = true;
    }

    /// The incarnation of a member that a controller after this one will know of.
    pub(crate) fn registered(&self, member: Member) -> Option<Incarnation> {
        self.registered.get(&member).copied()
    }

    fn register(&mut self) {
        let Saved { incarnations, switch_incarnations, switches, .. } = &self.state;
        let nodes = incarnations.iter().map(|(node, it)| (Member::Node(*node), *it));
        let switches = (0..)
            .zip(switches)
            .filter_map(|(index, at)| Some((Member::Switch(index), *switch_incarnations.get(at)?)));
        self.registered = nodes.chain(switches).collect();
    }

    /// Revision of the state.
    pub(crate) fn revision(&self) -> Revision {
        self.state.map.revision
    }

    /// Revision of the newest state known to be durable.
    pub(crate) fn durable(&self) -> Revision {
        self.durable
    }

    pub(crate) fn is_durable(&self) -> bool {
        self.durable == self.revision()
    }

    /// The state has changed: it gets a new revision.
    pub(crate) fn advance(&mut self, now: Instant, level: Level, saw: String, did: String) {
        self.state.advance(now);
        let changed = format!("revision {}", self.revision());
        self.decisions.note(now, level, saw, did, changed);
    }

    /// The state to save, if it has changed since the last call.
    pub(crate) fn poll_save(&mut self) -> Option<Saved> {
        if self.saving == self.revision() {
            return None;
        }
        self.saving = self.revision();
        Some(self.state.clone())
    }

    /// The state of this revision is durable; tells whether that is news.
    pub(crate) fn note_saved(&mut self, revision: Revision) -> bool {
        assert!(revision <= self.saving, "only what was handed out can be durable");
        let news = revision > self.durable;
        self.durable = self.durable.max(revision);
        self.begun = true;
        if self.is_durable() {
            self.register();
        }
        news
    }
}
