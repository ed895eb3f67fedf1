//! What the controller decides, and when it may.

use super::bug::Bug;
use super::scope::Rules;
use super::steps::State;
use super::{NODES, READER, SWITCHES};
use crate::state::Bits;
use arrayvec::ArrayVec;

/// What is decided at one time. Members follow the newest that they have heard of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Map {
    /// Counts the decisions.
    pub revision: u8,
    /// Of the leader that decided it.
    pub term: u8,
    /// Of the chain.
    pub epoch: u8,
    /// Whether the chain serves clients.
    pub open: bool,
    /// Head first.
    pub members: ArrayVec<u8, NODES>,
    /// Nodes that no switch sends anything to.
    pub fenced: Bits,
    /// The switch that nodes take requests from.
    pub named: u8,
    /// Whether that switch may serve.
    pub is_active: bool,
    /// How far the key's copies are.
    pub hot: Hot,
    /// The incarnations of switches that it is for.
    pub incarnations: [u8; SWITCHES],
}

/// Whether the key has copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hot {
    /// The switch may send reads to a copy; whoever shows a version tells the switch.
    Copied,
    /// No switch is to send reads to copies any more; what is shown is still told.
    Leaving,
    /// What is shown need not be told: replies to MGET are not.
    Cold,
}

impl Map {
    /// Who answers reads.
    #[must_use]
    pub fn tail(&self) -> Option<u8> {
        self.members.last().copied()
    }

    /// Whether this switch may serve by it.
    #[must_use]
    pub fn activates(&self, switch: u8) -> bool {
        self.is_active && self.named == switch
    }
}

/// A step of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    /// No switch sends this node anything.
    Fence(u8),
    /// The chain goes on without this node, closed.
    CloseWithout(u8),
    /// The chain opens: all of it have settled.
    Open,
    /// A node that was fenced is let in again.
    LetIn(u8),
    /// Nodes are to take requests from the other switch, which does not serve yet.
    NameOther,
    /// It serves.
    Activate,
    /// Copies of the key are not to be read any more.
    CoolDown,
    /// They are not, anywhere.
    Forget,
    /// A new leader, who knows the map.
    Elect,
    /// The new incarnation of a switch is put on record.
    Register(u8),
}

impl State {
    /// What is decided.
    #[must_use]
    pub fn map(&self) -> &Map {
        self.maps.last().expect("there is a first one")
    }

    /// The last revision of a map by which this may hold.
    fn last(&self, may: impl Fn(&Map) -> bool) -> u8 {
        self.maps.iter().filter(|map| may(map)).map(|map| map.revision).max().unwrap_or(0)
    }
}

impl Rules {
    /// Whether this switch will bring nothing more to this node, whatever order is still on its
    /// way.
    #[must_use]
    pub fn severed(&self, state: &State, switch: u8, node: u8) -> bool {
        let (at, to) = (state.switch(switch), state.node(node));
        if !at.lease || !to.lease {
            return true;
        }
        let named = state.last(|map| map.named == switch);
        if to.map.as_ref().is_some_and(|map| map.named != switch && map.revision > named) {
            return true;
        }
        let sends = |map: &Map| map.activates(switch) && !map.fenced.has(node);
        let reached = state.last(sends);
        let late = self.has(Bug::StandbyIsNoDanger);
        at.told.as_ref().is_some_and(|map| !sends(map) && (map.revision > reached || late))
    }

    /// Whether no client reaches this node any more, nor will by what is decided next: whatever
    /// severs it from a switch now, later tables keep it fenced.
    fn is_out(&self, state: &State, node: u8) -> bool {
        if self.has(Bug::NoFence) || !state.node(node).lease {
            return true;
        }
        let fenced = state.map().fenced.has(node) || self.has(Bug::SeveredIsEnough);
        let direct = state.node(node).direct && !self.has(Bug::DirectOutlastsFence);
        let named = state.map().named;
        let mut switches = self.scope.switches().filter(|switch| {
            // The other one may have a lease and the tables of before.
            *switch == named || !self.has(Bug::ForgetOtherSwitch)
        });
        fenced && !direct && switches.all(|switch| self.severed(state, switch, node))
    }

    /// Whether the switch that is not named reaches nobody.
    fn other_is_out(&self, state: &State) -> bool {
        let other = 1 - state.map().named;
        let map = state.map();
        let counts = |node: &u8| {
            let forgotten = self.has(Bug::ForgetReaders) && !map.members.contains(node);
            let fenced = self.has(Bug::ForgetOtherSwitch) && map.fenced.has(*node);
            !forgotten && !fenced
        };
        let mut nodes = self.scope.nodes().filter(counts);
        nodes.all(|node| self.severed(state, other, node))
    }

    /// Whether no switch sends reads to the copy any more.
    fn copy_is_out(&self, state: &State) -> bool {
        if self.has(Bug::ForgetReaders) {
            return true;
        }
        self.scope.switches().all(|switch| {
            let copied = state.last(|map| map.hot == Hot::Copied && map.activates(switch));
            let told = state.switch(switch).told.as_ref();
            told.is_some_and(|map| map.revision > copied) || self.severed(state, switch, READER)
        })
    }

    /// Whether all of the closed chain have the same.
    fn is_settled(state: &State) -> bool {
        let map = state.map();
        let newest = map.members.first().map(|head| state.node(*head).newest);
        map.members.iter().all(|node| {
            let node = state.node(*node);
            node.map.as_ref().is_some_and(|own| own.epoch == map.epoch)
                && Some(node.newest) == newest
        }) && map.tail().map(|tail| state.node(tail).committed) == newest
    }

    /// Whether every shard of a fenced node follows a map at least as new as all that rested on the
    /// fence: the one that set it, and the one that went on without the node.
    fn has_heard(&self, state: &State, node: u8) -> bool {
        let fence = state.last(|map| !map.fenced.has(node)) + 1;
        let left = state.last(|map| map.members.contains(&node)) + 1;
        let is_left = !state.map().members.contains(&node) && !self.has(Bug::LetInAfterFence);
        let since = if is_left { fence.max(left) } else { fence };
        let to = state.node(node);
        let serves = to.map.as_ref().is_some_and(|map| map.revision >= since);
        to.other_shard >= since && (serves || self.has(Bug::LetInByOneShard))
    }

    /// Whether the controller may decide this now.
    pub(super) fn may_decide(&self, state: &State, decision: Decision) -> bool {
        let map = state.map();
        match decision {
            Decision::Fence(node) => !map.fenced.has(node),
            Decision::CloseWithout(node) => {
                map.members.contains(&node) && map.members.len() > 1 && self.is_out(state, node)
            }
            Decision::Open => !map.open && Self::is_settled(state),
            Decision::LetIn(node) => map.fenced.has(node) && self.has_heard(state, node),
            Decision::NameOther => map.is_active,
            Decision::Activate => !map.is_active && self.other_is_out(state),
            Decision::CoolDown => map.hot == Hot::Copied,
            Decision::Forget => map.hot == Hot::Leaving && self.copy_is_out(state),
            Decision::Elect => true,
            Decision::Register(switch) => {
                map.incarnations.get(usize::from(switch)) != Some(&state.switch(switch).incarnation)
            }
        }
    }

    /// The map after a decision.
    pub(super) fn decide(state: &State, decision: Decision) -> Map {
        let mut map = state.map().clone();
        map.revision += 1;
        match decision {
            Decision::Fence(node) => map.fenced.insert(node),
            Decision::CloseWithout(node) => {
                map.members.retain(|member| *member != node);
                (map.epoch, map.open) = (map.epoch + 1, false);
            }
            Decision::Open => (map.epoch, map.open) = (map.epoch + 1, true),
            Decision::LetIn(node) => map.fenced.0 &= !Bits::of(node).0,
            Decision::NameOther => (map.named, map.is_active) = (1 - map.named, false),
            Decision::Activate => map.is_active = true,
            Decision::CoolDown => map.hot = Hot::Leaving,
            Decision::Forget => map.hot = Hot::Cold,
            Decision::Elect => map.term += 1,
            Decision::Register(switch) => {
                let incarnation = state.switch(switch).incarnation;
                if let Some(known) = map.incarnations.get_mut(usize::from(switch)) {
                    *known = incarnation;
                }
            }
        }
        map
    }
}
