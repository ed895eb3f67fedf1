//! Delegations: on which keys of a partition writes go anywhere, and how those that are over ended
//! (section 9 of `spec/protocol.md`).
//!
//! Like registrations they are changed by chain writes of the head, kept on record by every member
//! and copied to a learner. What becomes of a write that comes home depends on nothing else.

use crate::engine::Engine;
use crate::hot::Hot;
use crate::replica::notes::delegations_name;
use crate::replica::pending::PendingWrites;
use crate::replica::sessions::table::IDLE_MAX;
use crate::replica::write::Write;
use crate::shard::context::Context;
use cluster::{Incarnation, KeyspaceId, MaybeMutant, Mutant, NodeId, PartitionId};
use std::collections::BTreeMap;
use wire::{
    Code, DELEGATION_VERSIONS, DelegateBody, DelegationId, DelegationOverBody,
    DelegationPresentBody, DelegationsBody, Effect, Header, HomeWrite, RecallBody, Revision,
    Version, hop_flag,
};

/// The delegations of one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delegations {
    /// Version of the write that changed them last; 0 if they came with the copy of the partition,
    /// which every live change is newer than.
    version: Version,
    pub(crate) present: Option<Present>,
    /// Oldest first.
    pub(crate) over: Vec<DelegationOverBody>,
}

/// The delegation that a key is under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Present {
    pub(crate) number: DelegationId,
    /// Version of its DELEGATE.
    pub(crate) delegated_at: Version,
    /// The incarnation of the switch that it is on.
    pub(crate) switch: Incarnation,
    /// Nodes in the chain of a write.
    pub(crate) replicas: u8,
    /// Nodes that may be in one, in order.
    pub(crate) nodes: Vec<NodeId>,
}

/// What a write that may be delegated is, when it comes home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It was never applied and will not be, but here.
    New,
    /// It took effect under a delegation, under this version.
    Applied(Version),
    /// It cannot be told, now or ever.
    Refused(Code),
    /// It is of a delegation that nobody remembers: no client waits for it any more.
    Forgotten,
}

/// Delegations that are over and kept on record, per key: so many may end while sessions are kept.
/// A key with more stays at home until the oldest is forgotten.
pub(crate) const OVER_MAX: usize = 16;

/// Versions of one delegation.
pub(crate) const SPAN: u64 = DELEGATION_VERSIONS as u64;

impl Delegations {
    /// Whether a delegation has this number, or had.
    pub(crate) fn knows(&self, number: DelegationId) -> bool {
        let is_present =
            self.present.as_ref().is_some_and(|delegation| delegation.number == number);
        is_present || self.over.iter().any(|delegation| delegation.number == number)
    }

    /// What is kept on record of them, without the version.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let few = |count: usize| u8::try_from(count).expect("bounded by OVER_MAX and NODES_MAX");
        let nodes =
            self.present.as_ref().map_or(Vec::new(), |delegation| bits_of(&delegation.nodes));
        let fixed = DelegationsBody { over: few(self.over.len()), nodes: few(nodes.len()) };
        let mut out = fixed.to_bytes().to_vec();
        for delegation in &self.over {
            out.extend(delegation.to_bytes());
        }
        if let Some(Present { number, delegated_at, switch, replicas, .. }) = self.present {
            let fixed = DelegationPresentBody { number, delegated_at, switch: switch.0, replicas };
            out.extend(fixed.to_bytes());
            out.extend(nodes);
        }
        out
    }

    /// Takes them from the record; `None` if it is none.
    pub(crate) fn from_bytes(version: Version, bytes: &[u8]) -> Option<Self> {
        let (DelegationsBody { over, nodes }, mut rest) = DelegationsBody::split(bytes)?;
        let mut delegations = Self { version, ..Self::default() };
        for _ in 0..over {
            let (delegation, after) = DelegationOverBody::split(rest)?;
            delegations.over.push(delegation);
            rest = after;
        }
        if nodes > 0 {
            let (fixed, after) = DelegationPresentBody::split(rest)?;
            let (bits, after) = after.split_at_checked(nodes.into())?;
            let DelegationPresentBody { number, delegated_at, switch, replicas } = fixed;
            let (switch, nodes) = (Incarnation(switch), nodes_of(bits));
            delegations.present = Some(Present { number, delegated_at, switch, replicas, nodes });
            rest = after;
        }
        rest.is_empty().then_some(delegations)
    }

    /// What is kept on record of them, and since which version.
    pub(crate) fn to_note(&self) -> Vec<u8> {
        [&self.version.get().to_be_bytes()[..], &self.to_bytes()].concat()
    }

    /// The same, read.
    pub(crate) fn from_note(note: &[u8]) -> Option<Self> {
        let (version, rest) = note.split_first_chunk::<8>()?;
        Self::from_bytes(Version::new(u64::from_be_bytes(*version)), rest)
    }

    /// What a write is that was stamped with this version, or (0) with none.
    fn arrival(&self, request: &Header, installed: Revision, switch: Incarnation) -> Arrival {
        let HomeWrite { granted: stamped, clock } = HomeWrite::of(request);
        let passed = clock.order();
        let ended = self.over.iter().map(|delegation| delegation.ended).max().unwrap_or_default();
        let mut granted = None;
        if !stamped.is_none() {
            let by = |delegated_at| spans(delegated_at, stamped);
            match self.over.iter().find(|delegation| by(delegation.delegated_at)) {
                Some(delegation) if stamped <= delegation.newest => {
                    return Arrival::Applied(stamped);
                }
                Some(delegation) => granted = Some(delegation.number),
                None if self.present.as_ref().is_some_and(|it| by(it.delegated_at)) => {
                    return Arrival::Refused(Code::Delegated);
                }
                None => return Arrival::Forgotten,
            }
        }
        // On a delegation after that it may have been given a grant since.
        if passed < ended {
            return Arrival::Refused(Code::Closed);
        }
        if request.hop_flags & hop_flag::OLD != 0 {
            // A switch of before may have stamped it, and nobody knows that any more. Which one it
            // has passed is known by the installed order alone: by an older one perhaps another.
            if passed != installed {
                return Arrival::Refused(Code::Closed);
            }
            let mut since = self.over.iter().filter(|it| granted.is_none_or(|by| it.number > by));
            if since.any(|delegation| delegation.switch != switch.0) {
                return Arrival::Refused(Code::Uncertain);
            }
        }
        Arrival::New
    }
}

/// How many versions home leaves to a delegation: all of it, but in a mutant.
pub(crate) fn span_left(mutant: MaybeMutant) -> u64 {
    if mutant.is(Mutant::ResetVersions) { 0 } else { SPAN }
}

/// Whether a version is one of the delegation that began with this DELEGATE.
pub(crate) fn spans(delegated_at: Version, version: Version) -> bool {
    version.checked_since(delegated_at).is_some_and(|after| (1..=SPAN).contains(&after))
}

/// A bit for each node that there may be, as far as there are any. 128 bytes at most, where the ids
/// of all would take a datagram of their own.
pub(crate) fn bits_of(nodes: &[NodeId]) -> Vec<u8> {
    let last = nodes.iter().max().map_or(0, |node| usize::from(node.0) / 8 + 1);
    let mut bits = vec![0; last];
    for NodeId(id) in nodes {
        *bits.get_mut(usize::from(id / 8)).expect("up to the last") |= 1 << (id % 8);
    }
    bits
}

/// The same, read.
fn nodes_of(bits: &[u8]) -> Vec<NodeId> {
    let is_set = |id: &u16| bits.get(usize::from(id / 8)).is_some_and(|it| it >> (id % 8) & 1 != 0);
    (0..wire::NODES_MAX as u16).filter(is_set).map(NodeId).collect()
}

/// Whether a key is about to leave: its DELEGATE is under way.
fn is_leaving(key: &[u8], pending: &PendingWrites) -> bool {
    pending.registration(key).and_then(|write| write.effect()) == Some(Effect::Delegate)
}

/// The delegations of a partition's keys.
#[derive(Debug, Default)]
pub(crate) struct DelegationTable {
    table: BTreeMap<Box<[u8]>, Delegations>,
}

impl DelegationTable {
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Delegations> {
        // Most partitions have none at all.
        if self.table.is_empty() {
            return None;
        }
        self.table.get(key)
    }

    /// The delegation that a key is under.
    #[inline]
    pub(crate) fn present(&self, key: &[u8]) -> Option<&Present> {
        self.get(key)?.present.as_ref()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Whether any key is under one.
    pub(crate) fn any_present(&self) -> bool {
        self.table.values().any(|delegations| delegations.present.is_some())
    }

    /// The highest revision of an order that began or ended one of them; 0 for none.
    pub(crate) fn newest_order(&self) -> Revision {
        let orders = |delegations: &Delegations| {
            let begun = delegations.present.as_ref().map(|delegation| delegation.number.order());
            delegations.over.iter().map(|delegation| delegation.ended).chain(begun).max()
        };
        self.table.values().filter_map(orders).max().unwrap_or_default()
    }

    /// All keys with any, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &Delegations)> {
        self.after(None)
    }

    /// Those after a key, or all.
    pub(crate) fn after(&self, key: Option<&[u8]>) -> impl Iterator<Item = (&[u8], &Delegations)> {
        let from = key.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        let range = self.table.range::<[u8], _>((from, std::ops::Bound::Unbounded));
        range.map(|(key, delegations)| (&**key, delegations))
    }

    /// Takes what is on record.
    pub(crate) fn restore(&mut self, key: &[u8], delegations: Delegations) {
        self.table.insert(key.into(), delegations);
    }

    /// Whether the home of a key has nothing to say of it: it is delegated, or about to leave.
    pub(crate) fn is_delegated(&self, key: &[u8], pending: &PendingWrites) -> bool {
        self.present(key).is_some() || is_leaving(key, pending)
    }

    /// How many keys are under delegations, or about to leave for one, that the order does not
    /// name.
    pub(crate) fn strays(&self, hot: &Hot, keyspace: KeyspaceId, pending: &PendingWrites) -> u64 {
        let named = |key: &[u8]| hot.entry(keyspace, key)?.delegation;
        let number = |key: &[u8]| named(key).map(|delegation| delegation.number);
        let present = self.iter().filter_map(|(key, it)| Some((key, it.present.as_ref()?)));
        let delegated =
            present.filter(|(key, delegation)| number(key) != Some(delegation.number)).count();
        let changing = pending.keys_with_registration();
        let leaving = changing.filter(|key| is_leaving(key, pending) && named(key).is_none());
        (delegated + leaving.count()) as u64
    }

    /// The delegation that a key is under, as far as the head has the word of all members for it
    /// and it is not about to end.
    pub(crate) fn settled(&self, key: &[u8], pending: &PendingWrites) -> Option<&Present> {
        self.present(key).filter(|_| pending.registration(key).is_none())
    }

    /// What a write that may be delegated is, at the head that knows it neither from sessions nor
    /// pending.
    pub(crate) fn arrival<E>(&self, ctx: &Context<'_, E>, request: &Header, key: &[u8]) -> Arrival {
        let arrival = match self.get(key) {
            None if HomeWrite::of(request).granted.is_none() => return Arrival::New,
            None => Arrival::Forgotten,
            Some(delegations) => delegations.arrival(request, ctx.hot.revision(), ctx.hot.switch()),
        };
        match arrival {
            Arrival::Applied(_) if ctx.mutant.is(Mutant::RunAgain) => Arrival::New,
            Arrival::Refused(_) if ctx.mutant.is(Mutant::TakeLatecomers) => Arrival::New,
            arrival => arrival,
        }
    }

    /// The key has left: from here on its home has no part in its writes. Says whether that is
    /// news.
    pub(crate) fn commit_delegate<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        id: PartitionId,
        write: &Write<'_>,
        (fixed, bits): (DelegateBody, &[u8]),
    ) -> bool {
        let DelegateBody { switch, replicas } = fixed;
        let number = write.fixed.result.delegation();
        let (delegated_at, nodes) = (write.version(), nodes_of(bits));
        let present =
            Present { number, delegated_at, switch: Incarnation(switch), replicas, nodes };
        self.change(ctx, id, write, |delegations| delegations.present = Some(present))
    }

    /// The key is home again. Says whether that is news.
    pub(crate) fn commit_recall<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        id: PartitionId,
        write: &Write<'_>,
        fixed: RecallBody,
    ) -> bool {
        let RecallBody { newest, ended, delegated_at, switch } = fixed;
        let (number, since_ms) = (write.fixed.result.delegation(), ctx.time.0);
        let over = DelegationOverBody { number, delegated_at, newest, ended, switch, since_ms };
        self.change(ctx, id, write, |delegations| {
            delegations.present = None;
            delegations.over.push(over);
        })
    }

    /// Changes the delegations of a key, unless a newer change is known; says whether it did.
    fn change<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        id: PartitionId,
        write: &Write<'_>,
        change: impl FnOnce(&mut Delegations),
    ) -> bool {
        let delegations = self.table.entry(write.key.into()).or_default();
        if delegations.version >= write.version() {
            return false;
        }
        delegations.version = write.version();
        change(delegations);
        let note = delegations.to_note();
        ctx.engine.note(id, &delegations_name(write.key), Some(&note));
        true
    }

    /// Takes delegations that were copied from the tail. The tail commits after the learner:
    /// whether the key is delegated, the learner knows better, if it has seen any change; but of
    /// delegations that were over before, it hears only now.
    pub(crate) fn take_copied<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        id: PartitionId,
        key: &[u8],
        mut delegations: Delegations,
    ) {
        if let Some(known) = self.get(key) {
            let news = delegations.over.iter().filter(|delegation| !known.knows(delegation.number));
            let mut over: Vec<DelegationOverBody> = news.copied().collect();
            over.extend(&known.over);
            over.sort_by_key(|delegation| delegation.delegated_at);
            delegations = Delegations { over, ..known.clone() };
        }
        ctx.engine.note(id, &delegations_name(key), Some(&delegations.to_note()));
        self.restore(key, delegations);
    }

    /// Forgets delegations that ended as long ago as sessions are kept.
    pub(crate) fn end_over<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        id: PartitionId,
        stable: Version,
    ) {
        let now_ms = ctx.time.0;
        let idle_ms = u64::try_from(IDLE_MAX.as_millis()).expect("minutes");
        let recent =
            |delegation: &DelegationOverBody| delegation.since_ms.saturating_add(idle_ms) > now_ms;
        self.table.retain(|key, delegations| {
            let before = delegations.over.len();
            delegations.over.retain(recent);
            let gone = delegations.present.is_none() && delegations.over.is_empty();
            // An older change that the network has doubled must not be taken for news.
            let gone = gone && delegations.version <= stable;
            if gone || delegations.over.len() != before {
                let note = delegations.to_note();
                ctx.engine.note(id, &delegations_name(key), (!gone).then_some(&note));
            }
            !gone
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{CLOCK_DELEGATIONS_BITS, DirectoryClock, Version};

    const fn over(number: u64, delegated_at: u64, newest: u64, ended: u64) -> DelegationOverBody {
        DelegationOverBody {
            number: DelegationId::new(number),
            delegated_at: Version::new(delegated_at),
            newest: Version::new(newest),
            ended: Revision::new(ended),
            switch: 3,
            since_ms: 5,
        }
    }

    fn delegations() -> Delegations {
        let nodes = vec![NodeId(2), NodeId(700)];
        let delegated_at = 20 + SPAN;
        let present = Present {
            number: DelegationId::new(30),
            delegated_at: Version::new(delegated_at),
            switch: Incarnation(3),
            replicas: 2,
            nodes,
        };
        Delegations {
            version: Version::new(delegated_at),
            present: Some(present),
            over: vec![over(10, 7, 15, 20)],
        }
    }

    fn arrival(version: u64, directory_clock: u64, hop_flags: u8) -> Arrival {
        let mut header = Header { hop_flags, ..Header::default() };
        let clock = DirectoryClock::new(directory_clock << CLOCK_DELEGATIONS_BITS);
        HomeWrite { granted: Version::new(version), clock }.put(&mut header);
        delegations().arrival(&header, Revision::new(25), Incarnation(3))
    }

    #[test]
    fn delegations_survive_their_note() {
        for delegations in
            [delegations(), Delegations::default(), Delegations { present: None, ..delegations() }]
        {
            let note = delegations.to_note();
            assert_eq!(Delegations::from_note(&note), Some(delegations));
            assert_eq!(Delegations::from_note(&note[..note.len() - 1]), None);
            assert_eq!(Delegations::from_note(&[note, vec![0]].concat()), None);
        }
    }

    #[test]
    fn a_stamped_write_that_another_switch_may_have_stamped_since_cannot_be_told() {
        let later = |number, switch| {
            let later = DelegationOverBody { switch, ..over(number, 3 * SPAN, 3 * SPAN, 22) };
            let home = Delegations { present: None, ..delegations() };
            let home = Delegations { over: [home.over.clone(), vec![later]].concat(), ..home };
            let mut header = Header { hop_flags: hop_flag::OLD, ..Header::default() };
            let clock = DirectoryClock::new(25 << CLOCK_DELEGATIONS_BITS);
            HomeWrite { granted: Version::new(16), clock }.put(&mut header);
            home.arrival(&header, Revision::new(25), Incarnation(3))
        };
        assert_eq!(later(18, 9), Arrival::Refused(Code::Uncertain));
        assert_eq!(later(18, 3), Arrival::New, "this switch would know");
        assert_eq!(later(9, 9), Arrival::New, "that one was over before");
    }

    #[test]
    fn a_stamped_write_took_effect_if_the_delegation_came_home_with_it_or_a_newer_one() {
        assert_eq!(arrival(8, 0, 0), Arrival::Applied(Version::new(8)));
        assert_eq!(arrival(15, 0, 0), Arrival::Applied(Version::new(15)));
        assert_eq!(arrival(16, 20, 0), Arrival::New, "nobody has it, and nobody will");
        assert_eq!(arrival(7 + SPAN, 20, 0), Arrival::New);
        assert_eq!(arrival(7, 0, 0), Arrival::Forgotten, "no delegation gave this version");
        assert_eq!(arrival(21 + SPAN, 0, 0), Arrival::Refused(Code::Delegated), "it is on its way");
    }

    #[test]
    fn a_grant_of_a_delegation_before_the_last_says_nothing_of_the_last() {
        let before_the_last = arrival(16, 19, 0);
        assert_eq!(before_the_last, Arrival::Refused(Code::Closed), "it may have another by now");
    }

    #[test]
    fn a_write_without_a_grant_is_new_if_it_passed_after_all_delegations_that_are_over() {
        assert_eq!(arrival(0, 19, 0), Arrival::Refused(Code::Closed));
        assert_eq!(arrival(0, 20, 0), Arrival::New);
        assert_eq!(arrival(0, 26, 0), Arrival::New);
        assert_eq!(arrival(0, 25, hop_flag::OLD), Arrival::New, "the switch is the same");
        assert_eq!(arrival(0, 26, hop_flag::OLD), Arrival::Refused(Code::Closed));
        let mut header = Header { hop_flags: hop_flag::OLD, ..Header::default() };
        let clock = DirectoryClock::of_order(Revision::new(25));
        HomeWrite { granted: Version::NONE, clock }.put(&mut header);
        let another = delegations().arrival(&header, Revision::new(25), Incarnation(4));
        assert_eq!(another, Arrival::Refused(Code::Uncertain));
    }
}
