//! The steps: what members, the controller and those who handle disks do.

use super::compare::{Claim, Trust, compare};
use super::scope::{ReturnBug, Returning};
use super::state::{COPIES_MAX, Cluster, Map, Member, NODES_MAX, Store, WRITES_MAX};
use crate::state::Bits;
use arrayvec::ArrayVec;
use cluster::Mutant;
use stateright::{Model, Property};
use std::collections::BTreeMap;
use std::fmt;

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReturnAction {
    /// The head takes a write.
    Write,
    /// A member records the next write of its predecessor.
    Pass(u8),
    /// A member commits its next write.
    Commit(u8),
    /// A node's store is copied.
    Save(u8),
    /// The controller's is.
    SaveMap,
    /// A node stops.
    Stop(u8),
    /// The copy of this number is put back.
    Restore(usize),
    /// The controller's is, and it starts with that.
    RestoreMap,
    /// A node starts.
    Start(u8),
    /// The controller hears a node's report.
    Report(u8),
    /// A silent member is taken out.
    Drop(u8),
    /// All members have settled and are compared.
    Open,
    /// A node that is no member is copied to and becomes one.
    Join(u8),
}

impl fmt::Display for ReturnAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Returning {
    /// Somebody whom the controller has heard follows a map that it knows nothing of.
    fn is_overtaken(&self, state: &Cluster) -> bool {
        state.overtaken && !self.has(Mutant::BelieveAnyMap)
    }

    /// Whether the controller decides and orders anything.
    fn decides(&self, state: &Cluster) -> bool {
        let mut nodes = (0..).zip(&state.nodes);
        nodes.all(|(node, it)| !it.up || state.heard.has(node)) && !self.is_overtaken(state)
    }

    fn next(&self, state: &mut Cluster, change: impl FnOnce(&mut Map)) {
        state.revisions += 1;
        state.map.revision = state.revisions;
        state.map.given |= 1 << state.revisions;
        change(&mut state.map);
    }

    /// What members do while their chain is open.
    fn serving(&self, state: &Cluster, actions: &mut Vec<ReturnAction>) {
        let chain = &state.map.chain;
        if !state.map.open || !chain.iter().all(|node| state.follows(*node)) {
            return;
        }
        let fits = |node: u8| usize::from(state.node(node).store.newest()) < WRITES_MAX;
        if state.writes < self.scope.writes && chain.first().is_some_and(|head| fits(*head)) {
            actions.push(ReturnAction::Write);
        }
        for (place, node) in chain.iter().enumerate() {
            let store = &state.node(*node).store;
            let before = place.checked_sub(1).and_then(|place| chain.get(place));
            let passes =
                before.is_some_and(|before| store.next_of(&state.node(*before).store).is_some());
            if passes {
                actions.push(ReturnAction::Pass(*node));
            }
            let after = chain.get(place + 1).map(|after| state.node(*after).store.committed);
            let next = store.pending().first().copied();
            if next.is_some_and(|version| after.is_none_or(|after| after.has(version))) {
                actions.push(ReturnAction::Commit(*node));
            }
        }
    }

    fn controlling(&self, state: &Cluster, actions: &mut Vec<ReturnAction>) {
        let nodes = || (0..).zip(&state.nodes);
        let news = |(node, it): &(u8, &Member)| {
            it.up && (!state.heard.has(*node) || known(state, *node) != it.incarnation)
        };
        actions.extend(nodes().filter(news).map(|(node, _)| ReturnAction::Report(node)));
        if !self.decides(state) {
            return;
        }
        let chain = &state.map.chain;
        if self.scope.drops && chain.len() > 1 {
            let silent = chain.iter().filter(|node| !state.node(**node).up);
            actions.extend(silent.map(|node| ReturnAction::Drop(*node)));
        }
        let all_follow = chain.iter().all(|node| state.follows(*node));
        if !state.map.open && all_follow {
            actions.push(ReturnAction::Open);
        }
        let tail = chain.last().map(|tail| state.node(*tail).store);
        let rests = tail.is_some_and(|tail| tail.pending().is_empty());
        if state.map.open && all_follow && rests {
            let outside = nodes().filter(|(node, _)| !chain.contains(node) && state.follows(*node));
            actions.extend(outside.map(|(node, _)| ReturnAction::Join(node)));
        }
    }

    fn handling(&self, state: &Cluster, actions: &mut Vec<ReturnAction>) {
        for (node, it) in (0..).zip(&state.nodes) {
            if it.up && state.stops > 0 && !state.rewound {
                actions.push(ReturnAction::Stop(node));
            }
            if !it.up {
                actions.push(ReturnAction::Start(node));
            }
            let saves = usize::from(self.scope.restores).min(COPIES_MAX);
            if state.copies.len() < saves && !state.copies.contains(&(node, it.store)) {
                actions.push(ReturnAction::Save(node));
            }
        }
        for (index, (node, store)) in state.copies.iter().enumerate() {
            let it = state.node(*node);
            let aged = !store.past.has(known(state, *node));
            let allowed = if self.scope.drops { aged } else { is_whole_without(state, *node) };
            if state.restores > 0 && !it.up && *store != it.store && allowed {
                actions.push(ReturnAction::Restore(index));
            }
        }
        if self.scope.old_map {
            let up = state.nodes.iter().all(|it| it.up) && !state.is_rewritten;
            match &state.old_map {
                None => actions.push(ReturnAction::SaveMap),
                Some(map) if up && map.revision != state.map.revision => {
                    actions.push(ReturnAction::RestoreMap);
                }
                Some(_) => {}
            }
        }
    }

    /// Settles a closed chain, compares its members and opens it with those that are right.
    fn open(&self, state: &mut Cluster) {
        let chain = state.map.chain.clone();
        settle(state, &chain);
        let Some((right, behind)) = self.compare(state, &chain) else { return };
        let source = state.node(right).store;
        for node in &behind {
            let it = state.node_mut(*node);
            let Some(base) = it.base else { continue };
            let above =
                if self.has(ReturnBug::ResumeAboveNewest) { it.store.newest() } else { base };
            it.store.resume(&source, above);
            state.resumed = true;
        }
        let stays = |node: &u8| !behind.contains(node) || state.node(*node).base.is_some();
        let members: ArrayVec<u8, NODES_MAX> = chain.iter().copied().filter(stays).collect();
        for node in &chain {
            state.node_mut(*node).base = None;
        }
        self.next(state, |map| {
            map.epoch += 1;
            (map.opened, map.open, map.chain) = (map.epoch, true, members);
            map.returned = [None; NODES_MAX];
        });
    }

    /// One member that is right, and all that are behind; `None` if an operator has to decide.
    fn compare(&self, state: &Cluster, chain: &[u8]) -> Option<(u8, Vec<u8>)> {
        if self.has(Mutant::OpenUncompared) {
            return Some((*chain.first()?, Vec::new()));
        }
        let claim = |node: &u8| {
            let it = state.node(*node);
            let returned = state.map.returned.get(usize::from(*node)).copied().flatten();
            let held = (it.store.newest(), it.store.committed);
            let counts = !self.has(Mutant::UncountedWrites);
            let writes = counts.then_some(it.store.committed.0.count_ones());
            Claim { node: *node, held, trust: Trust::of(returned), writes, base: it.base }
        };
        let claims: Vec<Claim> = chain.iter().map(claim).collect();
        compare(&claims, self.has(ReturnBug::FirstIsRight))
    }

    fn report(&self, state: &mut Cluster, node: u8) {
        state.heard.insert(node);
        let all = (0..self.scope.nodes).all(|node| state.heard.has(node));
        state.rewound &= !all;
        let it = *state.node(node);
        state.overtaken |= state.map.given & (1 << it.store.revision) == 0;
        let known = known(state, node);
        if known == it.incarnation || !self.decides(state) {
            return;
        }
        let remembers = self.has(Mutant::BelieveAnyPast) || it.store.past.has(known);
        self.next(state, |map| {
            if let Some(place) = map.incarnations.get_mut(usize::from(node)) {
                *place = it.incarnation;
            }
            if map.chain.contains(&node) {
                (map.epoch, map.open) = (map.epoch + 1, false);
                if let Some(place) = map.returned.get_mut(usize::from(node)) {
                    *place = Some(place.unwrap_or(true) && remembers);
                }
            }
        });
    }

    /// Whoever can hear it is told at once what has been decided, and what is committed everywhere:
    /// who has heard less is sent more, and stays out of chains for longer.
    fn tell(&self, state: &mut Cluster) {
        for node in 0..self.scope.nodes {
            if !self.decides(state) {
                return;
            }
            let it = state.node(node);
            let news = it.installed != Some(state.map.revision);
            let newer = it.store.revision <= state.map.revision;
            if it.up && known(state, node) == it.incarnation && news && newer {
                self.order(state, node);
            }
        }
        let chain = state.map.chain.clone();
        let hears = state.map.open && !self.scope.late;
        if hears && chain.iter().all(|node| state.follows(*node)) {
            let stable = everywhere(state);
            chain.iter().for_each(|node| state.node_mut(*node).store.stable = stable);
        }
    }

    fn order(&self, state: &mut Cluster, node: u8) {
        let map = state.map.clone();
        let it = state.node_mut(node);
        let comes_back = it.installed.replace(map.revision).is_none();
        it.store.revision = map.revision;
        if !map.chain.contains(&node) {
            // It has no part any more, and is emptied.
            (it.store.held, it.store.committed, it.store.stable) = ([0; WRITES_MAX], Bits(0), 0);
            it.base = None;
            return;
        }
        let keeps = self.has(ReturnBug::KeepOldPending);
        if comes_back && it.store.epoch < map.opened && !keeps {
            it.store.pending().into_iter().for_each(|version| it.store.forget(version));
        }
        it.store.epoch = map.epoch;
    }

    fn commit(&self, state: &mut Cluster, node: u8) {
        let is_tail = state.map.chain.last() == Some(&node);
        let store = &mut state.node_mut(node).store;
        let Some(version) = store.pending().first().copied() else { return };
        store.committed.insert(version);
        let write = store.write(version);
        if is_tail && let Some(it) = state.acknowledged.get_mut(usize::from(write).wrapping_sub(1))
        {
            *it = version;
        }
    }
}

fn known(state: &Cluster, node: u8) -> u8 {
    state.map.incarnations.get(usize::from(node)).copied().unwrap_or(0)
}

/// Up to which version all members have committed all.
fn everywhere(state: &Cluster) -> u8 {
    let everywhere = |version: u8| {
        state.map.chain.iter().all(|node| state.node(*node).store.committed.has(version))
    };
    (1..).take_while(|version| everywhere(*version)).last().unwrap_or(0)
}

/// Whether some other member of the chain has all that was acknowledged.
fn is_whole_without(state: &Cluster, node: u8) -> bool {
    let mut others = state.map.chain.iter().filter(|other| **other != node);
    others.any(|other| holds_all(state, *other))
}

/// Whether all that was acknowledged is recorded here, and at the tail committed.
fn holds_all(state: &Cluster, node: u8) -> bool {
    let (store, is_tail) = (&state.node(node).store, state.map.chain.last() == Some(&node));
    store.holds(&state.acknowledged, is_tail)
}

/// Each member has the others record what it has pending; then all that is recorded is committed.
fn settle(state: &mut Cluster, chain: &[u8]) {
    let mut sent: BTreeMap<u8, u8> = BTreeMap::new();
    for node in chain {
        let store = &state.node(*node).store;
        let pending = store.pending().into_iter();
        pending.for_each(|it| _ = sent.entry(it).or_insert(store.write(it)));
    }
    for node in chain {
        let store = &mut state.node_mut(*node).store;
        for (version, write) in &sent {
            if store.write(*version) == 0 {
                store.record(*version, *write);
            }
        }
        store.pending().into_iter().for_each(|version| store.committed.insert(version));
    }
}

impl Model for Returning {
    type State = Cluster;
    type Action = ReturnAction;

    fn init_states(&self) -> Vec<Cluster> {
        let nodes = 0..self.scope.nodes;
        let store =
            |node: u8| Store { past: Bits::of(node), revision: 1, epoch: 1, ..Store::default() };
        let member = |node: u8| Member {
            store: store(node),
            up: true,
            incarnation: node,
            base: None,
            installed: Some(1),
        };
        let map = Map {
            revision: 1,
            given: 1 << 1,
            epoch: 1,
            opened: 1,
            open: true,
            // What favours the lower id does not favour the head.
            chain: nodes.clone().rev().collect(),
            returned: [None; NODES_MAX],
            incarnations: [0, 1, 2],
        };
        vec![Cluster {
            nodes: nodes.clone().map(member).collect(),
            map,
            heard: nodes.collect(),
            rewound: false,
            overtaken: false,
            copies: ArrayVec::new(),
            old_map: None,
            revisions: 1,
            incarnations: self.scope.nodes,
            writes: 0,
            acknowledged: [0; WRITES_MAX],
            stops: self.scope.stops,
            restores: self.scope.restores,
            resumed: false,
            is_rewritten: false,
        }]
    }

    fn actions(&self, state: &Cluster, actions: &mut Vec<ReturnAction>) {
        self.serving(state, actions);
        self.controlling(state, actions);
        self.handling(state, actions);
    }

    fn next_state(&self, before: &Cluster, action: ReturnAction) -> Option<Cluster> {
        let mut state = before.clone();
        match action {
            ReturnAction::Write => {
                state.writes += 1;
                let (head, write) = (*state.map.chain.first()?, state.writes);
                let store = &mut state.node_mut(head).store;
                store.record(store.newest() + 1, write);
            }
            ReturnAction::Pass(node) => {
                let place = state.map.chain.iter().position(|other| *other == node)?;
                let source = state.node(*state.map.chain.get(place.checked_sub(1)?)?).store;
                let store = &mut state.node_mut(node).store;
                let version = store.next_of(&source)?;
                store.record(version, source.write(version));
                if state.map.chain.last() == Some(&node) {
                    self.commit(&mut state, node);
                }
            }
            ReturnAction::Commit(node) => self.commit(&mut state, node),
            ReturnAction::Save(node) => {
                let store = state.node(node).store;
                state.copies.push((node, store));
            }
            ReturnAction::SaveMap => state.old_map = Some(state.map.clone()),
            ReturnAction::Stop(node) => {
                state.stops -= 1;
                let it = state.node_mut(node);
                *it = Member { store: it.store, ..Member::default() };
            }
            ReturnAction::Restore(index) => {
                state.restores -= 1;
                let (node, store) = *state.copies.get(index)?;
                state.node_mut(node).store = store;
            }
            ReturnAction::RestoreMap => {
                state.map = state.old_map.clone()?;
                (state.heard, state.rewound, state.overtaken) = (Bits(0), true, false);
                state.is_rewritten = true;
            }
            ReturnAction::Start(node) => {
                let incarnation = state.incarnations;
                state.incarnations += 1;
                state.heard.0 &= !(1 << node);
                let it = state.node_mut(node);
                it.store.past.insert(incarnation);
                let base = Some(it.store.stable);
                *it = Member { store: it.store, up: true, incarnation, base, installed: None };
            }
            ReturnAction::Report(node) => self.report(&mut state, node),
            ReturnAction::Drop(node) => self.next(&mut state, |map| {
                (map.epoch, map.open) = (map.epoch + 1, false);
                map.chain.retain(|other| *other != node);
            }),
            ReturnAction::Open => self.open(&mut state),
            ReturnAction::Join(node) => {
                let source = state.node(*state.map.chain.last()?).store;
                let it = state.node_mut(node);
                let (held, committed, stable) = (source.held, source.committed, source.stable);
                it.store = Store { held, committed, stable, epoch: source.epoch, ..it.store };
                it.base = None;
                self.next(&mut state, |map| {
                    (map.epoch, map.opened) = (map.epoch + 2, map.epoch + 2);
                    map.chain.push(node);
                });
            }
        }
        self.tell(&mut state);
        (state != *before).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![Property::always(KEPT, |_, state: &Cluster| {
            let served =
                state.map.chain.iter().filter(|node| state.map.open && state.follows(**node));
            served.into_iter().all(|node| holds_all(state, *node))
        })];
        if self.scope.restores > 0 && !self.scope.drops {
            properties.push(Property::sometimes(
                "who is behind is sent what it lacks",
                |_, state: &Cluster| state.resumed && state.map.open && state.acknowledged[0] > 0,
            ));
        }
        properties.push(Property::sometimes(
            "a chain serves again that came back",
            |_, state: &Cluster| {
                let last = state.map.chain.last();
                state.map.open
                    && state.map.epoch > 1
                    && last.is_some_and(|tail| state.follows(*tail))
            },
        ));
        properties
    }
}

/// The promise.
const KEPT: &str = "what is acknowledged is shown";
