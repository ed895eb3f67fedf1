//! Which keys are hot, and who is told so when.
//!
//! All of this is soft but for what operators pin: a controller that has lost it finds the keys
//! again. What must not go wrong is the order in which switch and nodes learn of a change
//! (section 8 of `spec/protocol.md`): the switch first, nodes when it has said that it has it.

mod caches;
mod delegations;
mod fit;
mod hand_over;
mod keys;
mod load;
mod log;
mod losses;
mod places;
mod policy;
mod seen;

pub use caches::WhyCopied;
pub use log::{HOT_DECISIONS_MAX, HotAction, HotDecision, HotEffect, HotNews};

use crate::decisions::{Decisions, Level};
use crate::members::{Members, Peer, Standing};
use crate::saved::Saved;
use caches::{Caches, Unhelped};
use cluster::{
    CacheReport, HotEntry, HotKey, HotOrder, Incarnation, KeyName, Keyspace, KeyspaceId, Map,
    Match, MaybeMutant, Member, MemberReport, Mutant, NodeId, NodeReport, Selection,
    SwitchCounters, is_plausible_revision,
};
use hand_over::HandOver;
use keys::{Key, Keys, generation};
use load::Load;
pub(crate) use load::per_second;
use log::HotLog;
use machine::Instant;
use places::Places;
use policy::Policy;
pub(crate) use policy::{Rates, named};
use seen::ChoiceInputs;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use wire::Revision;

/// Between two orders of hot keys at least. Every order is as long as the list.
const ORDER_EVERY: Duration = Duration::from_millis(20);

/// Between two looks at what all nodes report, which may arrive one by one.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How soon a switch that took none is given other generations.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// Orders that may be on their way to a switch and back: more than are ever under way, and few
/// enough to be kept.
const GIVEN_MAX: usize = 4;

/// Keys that one report of a node is heard of.
const REPORTED_MAX: usize = 64;

/// How often a node is asked at least how it is, so that what becomes hot is seen soon. Of a burst
/// it [alerts](crate::Controller::handle_alert) by itself.
const POLL: Duration = Duration::from_millis(100);

/// Polls per second of all nodes together that may come of that: a few per cent of what a
/// controller can take.
const POLLS_MAX: u32 = 4_000;

/// The directory of one incarnation of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DirectoryId {
    switch: u16,
    incarnation: Incarnation,
}

/// What the controller knows of hot keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hot {
    keys: Keys,
    places: Places,
    load: Load,
    pub(crate) log: HotLog,
    /// The newest order; its revision is 0 as long as there is none.
    order: Arc<HotOrder>,
    /// The directory of the active switch, if that has been heard.
    directory: Option<DirectoryId>,
    /// Revision of the map when that was first heard. Its switch is active by it.
    map: Revision,
    /// Whether the active switch can let writes go anywhere.
    delegates: bool,
    /// The last orders that this directory was given and has not yet said to have, oldest first: it
    /// may be given the next before it is heard of the one before.
    given: VecDeque<Arc<HotOrder>>,
    /// Revision that this directory last said it has, whoever gave it that.
    said: Revision,
    /// The order that it said it has, if that is one of this controller's.
    confirmed: Option<Arc<HotOrder>>,
    hand_over: HandOver,
    /// The directory knows nothing of the generations of before.
    forgotten: bool,
    /// When this directory last did not take an order.
    refused_at: Option<Instant>,
    /// It has been noted that it takes none.
    refusal_noted: bool,
    /// When to look again at what is reported.
    next_look: Instant,
    /// Something has been reported since the last look.
    news: bool,
    /// Keys that caches might hold and seem not to.
    unhelped: Unhelped,
}

/// What the controller sees at one moment.
pub(crate) struct HotInputs<'a> {
    pub(crate) now: Instant,
    pub(crate) state: &'a Saved,
    pub(crate) members: &'a Members,
    pub(crate) selection: Selection,
    /// The rule that is broken on purpose.
    pub(crate) mutant: MaybeMutant,
}

impl Hot {
    /// Takes the report of the switch that this map has active, in this incarnation.
    pub(crate) fn hear_switch(
        &mut self,
        now: Instant,
        (map, incarnation): (&Map, Incarnation),
        counters: &SwitchCounters,
        decisions: &mut Decisions,
    ) {
        self.news |= !self.order.revision.is_none();
        let (switch, says) = (map.active_switch, counters.hot_revision);
        let directory = DirectoryId { switch, incarnation };
        // What it let go anywhere is to come home before another one serves.
        self.delegates = counters.capabilities.delegates && !counters.leaving;
        let member = Member::Switch(switch);
        if self.directory != Some(directory) {
            if self.directory.is_some() {
                self.hand_over.begin(Revision::NONE);
            }
            (self.directory, self.map) = (Some(directory), map.revision);
            (self.said, self.forgotten) = (says, true);
            (self.given, self.confirmed) = (VecDeque::new(), None);
            (self.refused_at, self.refusal_noted, self.news) = (None, false, true);
            return;
        }
        if says == self.said {
            if !self.given.is_empty() {
                self.note_refusal(now, member, decisions);
            }
        } else {
            self.said = says;
            let at = self.given.iter().position(|order| order.revision == says);
            let mut known = self.given.drain(..at.map_or(0, |at| at + 1));
            self.confirmed = known.next_back();
            drop(known);
            self.hand_over.hear(self.confirmed.as_deref());
            self.refused_at = None;
            self.forgotten |= self.confirmed.is_none();
            if self.confirmed.is_none() {
                let saw = format!("{member} has forgotten its hot keys, or has somebody else's");
                decisions.note(now, Level::Usual, saw, "give it all of them anew", "");
            }
        }
        if self.confirmed.is_some() {
            self.keys.count(now, says, &counters.hot, &mut self.log);
        }
    }

    /// The active switch did not take what it was given. It may have taken and then forgotten it,
    /// unheard, and then wants other generations; or it is of a kind that has no directory.
    fn note_refusal(&mut self, now: Instant, member: Member, decisions: &mut Decisions) {
        let again = self.refused_at.is_some();
        if self.refused_at.is_some_and(|at| now < at + RETRY_EVERY) {
            return;
        }
        (self.refused_at, self.forgotten, self.news) = (Some(now), true, true);
        if again && !std::mem::replace(&mut self.refusal_noted, true) {
            let saw = format!("{member} does not take the hot keys that it is given");
            let did = "leave their reads to the tails of their chains; the log of its process, \
                       which goes to its standard error, may say why";
            decisions.note(now, Level::Usual, saw, did, "");
        }
    }

    /// Another switch is to be the active one. The one before may be so again before long, in the
    /// same incarnation, but not with the same directory.
    ///
    /// `in_order` says that the one before leaves, and that all delegations are home.
    pub(crate) fn switch_over(&mut self, in_order: bool, mutant: MaybeMutant) {
        let quiet_since = match in_order {
            _ if mutant.is(Mutant::ForgetDelegations) => self.order.revision,
            true => self.hand_over.since(),
            false => Revision::NONE,
        };
        self.hand_over.begin(quiet_since);
        self.directory = None;
    }

    /// Takes the report of a node.
    pub(crate) fn hear_node(
        &mut self,
        now: Instant,
        (node, incarnation): (NodeId, Incarnation),
        report: &NodeReport,
        pins: &BTreeSet<KeyName>,
    ) {
        let foreign = believed(now, report.hot_known) > self.order.revision;
        self.news |= !self.order.revision.is_none() || foreign;
        self.news |= !report.hot.is_empty() || !pins.is_empty();
        self.load.note(now, node, incarnation, report);
    }

    /// Takes the report of a cache.
    pub(crate) fn hear_cache(&mut self, report: &CacheReport) {
        self.news |= !report.hot.is_empty();
    }

    /// Sees to it that the order is what it should be by now.
    pub(crate) fn look(&mut self, sight: &HotInputs<'_>) {
        let Some(directory) = self.directory else { return };
        let waits = sight.now < self.next_look && !self.forgotten;
        // What the last controller knew can be known again when every node was asked.
        if waits || !self.news || !sight.members.are_all_tried() {
            return;
        }
        (self.next_look, self.news) = (sight.now + LOOK_EVERY, false);
        let present = sight.present();
        self.places.update(&present);
        self.load.keep(&present);
        let revision = self.next_revision(sight);
        // Who has somebody else's order may have unmarked keys by it.
        let foreign = sight.reported() > self.order.revision;
        self.forgotten |= foreign;
        if self.forgotten {
            self.keys.renew(
                sight.now,
                generation(revision, sight.mutant),
                &self.places,
                &mut self.log,
            );
        }
        let (mean, capacity) = (self.load.mean(&present), self.load.capacity(&present));
        let policy = Policy::new(self.places.nodes(), mean, capacity);
        let (list, caches) = (told(sight.members), Caches::new(sight.members));
        let held = sight.state.map.keyspaces.iter().filter(|it| it.hot.caches());
        let held: BTreeSet<KeyspaceId> = held.map(|it| it.id).collect();
        let told = list.iter().filter(|it| held.contains(&it.keyspace));
        let told = told.map(|it| (named(it), it.reads));
        let told = told.filter(|(name, _)| self.keys.get(name).is_none());
        self.unhelped.note(sight.now, policy, &caches, told);
        let seen = ChoiceInputs {
            now: sight.now,
            policy,
            caches,
            unhelped: &self.unhelped,
            keyspaces: &sight.state.map.keyspaces,
            pins: &sight.state.pins,
            list: &list,
            places: &self.places,
            delegates: self.delegates,
            informed: sight.informed(),
            revision,
            mutant: sight.mutant,
        };
        self.keys.choose(&seen, &mut self.log);
        let order = HotOrder {
            revision: self.order.revision,
            cluster: sight.state.map.cluster,
            switch: directory.incarnation,
            map: if sight.mutant.is(Mutant::UndatedOrders) { Revision::NONE } else { self.map },
            at_home_since: self.hand_over.before(),
            selection: sight.selection,
            places: self.places.list().to_vec(),
            keys: self.keys.entries(&self.places),
        };
        // Who has never heard of a hot key need not hear that there is none. But of keys that were
        // under delegations homes take no writes from a switch whose moment is not of the present.
        let idle = order.keys.is_empty() && self.order.revision.is_none() && !foreign;
        if !idle && (self.forgotten || order != *self.order) {
            self.order = Arc::new(HotOrder { revision, ..order });
            self.next_look = sight.now + ORDER_EVERY;
        }
        self.forgotten = false;
    }

    /// When [`Self::look`] is to be called next, if nothing is heard until then.
    pub(crate) fn due(&self) -> Option<Instant> {
        (self.news && self.directory.is_some()).then_some(self.next_look)
    }

    /// What a switch is to be told that it does not have.
    pub(crate) fn for_switch(&self, switch: u16) -> Option<&Arc<HotOrder>> {
        let HotOrder { revision, switch: incarnation, .. } = *self.order;
        let its = self.directory == Some(DirectoryId { switch, incarnation });
        (its && !revision.is_none() && revision != self.said).then_some(&self.order)
    }

    /// What a node is to be told that says it has this revision; too soon in a mutant.
    pub(crate) fn for_node(&self, says: Revision, too_soon: bool) -> Option<&Arc<HotOrder>> {
        let order = if too_soon { Some(&self.order) } else { self.confirmed.as_ref() };
        order.filter(|order| says < order.revision)
    }

    /// Whether a node can hold no write that anybody may ask it for: no key is delegated to it by
    /// the present order, and all that were under delegations of before are home. A controller that
    /// has given no order yet has to hear from all who have a replica in a chain that there never
    /// was one.
    pub(crate) fn is_rid_of(&self, node: NodeId, members: &Members, state: &Saved) -> bool {
        let reports = || {
            let others = members.nodes().filter(|(id, _)| *id != node);
            others.map(|(id, it)| (id, it.node_report().filter(|_| it.is_serving())))
        };
        let Some(order) = &self.confirmed else {
            let heard_of_none = |(id, report): (NodeId, Option<&NodeReport>)| match report {
                Some(report) => report.hot_known.is_none(),
                None => state.partitions_of(id) == 0,
            };
            return self.order.revision.is_none() && reports().all(heard_of_none);
        };
        let home = |it: &NodeReport| it.hot_revision >= order.revision && it.recall == 0;
        let named = order.places.iter().flatten().any(|(place, _)| *place == node);
        !named && reports().all(|(_, report)| report.is_some_and(home))
    }

    /// Whether the active switch, which leaves, knows nothing any more that another one cannot: no
    /// key is delegated, and writes that waited for that have been answered.
    pub(crate) fn have_delegations_come_home(&mut self, now: Instant, members: &Members) -> bool {
        let at_home = self.are_delegations_home(members);
        self.hand_over.may_be_succeeded(now, at_home)
    }

    /// When that is to be asked again, if nothing is heard until then.
    pub(crate) fn hand_over_due(&self) -> Option<Instant> {
        self.hand_over.due()
    }

    /// Whether no key is delegated, and no write of one that was has still to come home.
    fn are_delegations_home(&self, members: &Members) -> bool {
        let Some(order) = &self.confirmed else { return self.order.revision.is_none() };
        let none = order.keys.iter().all(|key| key.delegation.is_none());
        let home = |it: &NodeReport| it.hot_revision >= order.revision && it.recall == 0;
        let mut serving = members.nodes().filter(|(_, peer)| peer.is_serving());
        none && serving.all(|(_, peer)| peer.node_report().is_some_and(home))
    }

    /// Whether any key in these bounds is on a delegation of the newest order.
    pub(crate) fn delegates_any(
        &self,
        keyspace: KeyspaceId,
        bounds: RangeInclusive<Match>,
    ) -> bool {
        let is_inside =
            |key: &&HotEntry| key.keyspace == keyspace && bounds.contains(&key.match_value);
        self.order.keys.iter().filter(is_inside).any(|key| key.delegation.is_some())
    }

    /// Whether this directory has an order of this controller.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.confirmed.is_some()
    }

    /// The active switch is given the newest order.
    pub(crate) fn give(&mut self) {
        if self.given.len() == GIVEN_MAX {
            self.given.pop_front();
        }
        if self.given.back() != Some(&self.order) {
            self.hand_over.give(&self.order);
            self.given.push_back(Arc::clone(&self.order));
        }
    }

    /// Above all that anybody says it has, and above what a controller of before may have given out
    /// that is still on its way.
    fn next_revision(&self, sight: &HotInputs<'_>) -> Revision {
        let known = self.order.revision.max(sight.reported());
        known.next(sight.now.unix_ms())
    }

    /// An operator wants a key to be hot, or no longer.
    pub(crate) fn note_wish(&mut self, now: Instant, did: HotAction, name: &KeyName) {
        let known = self.key(name);
        let rates = known.map_or_else(Rates::default, |key| key.rates);
        let copies = known.map(|key| key.copies(&self.places));
        self.news = true;
        let did = (did, "an operator wants it".to_owned());
        self.log.note(now, name, did, rates, copies.unwrap_or_default(), None);
    }

    /// What is known of a key that is in.
    pub(crate) fn key(&self, name: &KeyName) -> Option<&Key> {
        self.keys.get(name)
    }

    /// All that are in.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (&KeyName, &Key)> {
        self.keys.iter()
    }

    /// The keys that are hot, with all that nodes and switches are to know of them.
    pub(crate) fn order(&self) -> &HotOrder {
        &self.order
    }

    /// Revision of the newest order that the active switch has; 0 for none.
    pub(crate) fn revision(&self) -> Revision {
        self.confirmed.as_ref().map_or(Revision::NONE, |order| order.revision)
    }
}

impl HotInputs<'_> {
    /// Nodes that may hold copies, with their incarnations.
    fn present(&self) -> BTreeMap<NodeId, Incarnation> {
        let present = |(id, peer): (NodeId, &Peer)| {
            let fenced = self.state.map.fence(id).is_some();
            let missed = fenced || peer.is_missed(self.now) || peer.is_gone(self.now);
            let here = peer.standing == Standing::Accepted && !missed;
            let stays = here && !self.state.departing.contains(&id) && !peer.is_leaving();
            Some((id, peer.report.as_ref().filter(|_| stays)?.incarnation))
        };
        self.members.nodes().filter_map(present).collect()
    }

    /// Nodes that have an order of hot keys.
    fn informed(&self) -> BTreeSet<NodeId> {
        let is_informed =
            |peer: &Peer| peer.node_report().is_some_and(|it| !it.hot_revision.is_none());
        self.members.nodes().filter(|(_, peer)| is_informed(peer)).map(|(id, _)| id).collect()
    }

    /// The highest revision that a switch says to have, or a node to have on record.
    fn reported(&self) -> Revision {
        let says = |peer: &Peer| believed(self.now, Self::says(peer));
        self.members.iter().map(|(_, peer)| says(peer)).max().unwrap_or_default()
    }

    fn says(peer: &Peer) -> Revision {
        match peer.report.as_ref().map(|report| &report.state) {
            Some(MemberReport::Switch(counters)) => counters.hot_revision,
            Some(MemberReport::Node(report)) => report.hot_known,
            Some(MemberReport::Cache(_)) => Revision::NONE,
            None => Revision::NONE,
        }
    }
}

/// What a member says of the revision of an order; nothing, if that cannot be: a number that was
/// forged, or damaged in its store, would be the least of all orders to come.
fn believed(now: Instant, revision: Revision) -> Revision {
    if is_plausible_revision(now, revision) { revision } else { Revision::NONE }
}

/// What the nodes that answer say of their keys, and caches of those that nodes might copy, put
/// together, the hottest first.
pub(crate) fn told(members: &Members) -> Vec<HotKey> {
    let serving = members.nodes().filter(|(_, peer)| peer.is_serving());
    let told = serving.filter_map(|(_, peer)| peer.node_report());
    let told = told.flat_map(|report| report.hot.iter().take(REPORTED_MAX));
    HotKey::join(told.chain(caches::held(members)), usize::MAX)
}

/// Whether any key can be hot.
pub(crate) fn is_wanted(state: &Saved) -> bool {
    state.map.nodes.len() >= 2 && state.map.keyspaces.iter().any(Keyspace::copies_hot_keys)
}

/// How soon each node is to be asked again, if not sooner for other reasons.
pub(crate) fn pace(state: &Saved, usual: Duration) -> Duration {
    if !is_wanted(state) {
        return usual;
    }
    let nodes = u32::try_from(state.map.nodes.len()).unwrap_or(u32::MAX);
    let least = Duration::from_secs(1).saturating_mul(nodes) / POLLS_MAX;
    usual.min(POLL.max(least))
}
