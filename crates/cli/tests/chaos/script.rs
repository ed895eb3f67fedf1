//! What goes wrong, and when: drawn from a seed, round by round.
//!
//! A round is a few seconds in which a few faults overlap. Every kind of fault comes up before any
//! comes up again, as from a pack of cards. What the promises of Keyway do not cover is not drawn:
//! in a round in which nodes lose their memory, at most `REPLICAS - 1` nodes have faults of any
//! kind, and such a round begins and ends with a cluster that is complete (see [`Round::forgets`]).

use machine::Rng;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

/// Nodes in each chain.
pub(crate) const REPLICAS: u8 = 3;

/// Which process or host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    Node(u8),
    /// The switch that is active when the fault begins.
    ActiveSwitch,
    /// The other one.
    StandbySwitch,
    /// The controller that is active when the fault begins.
    ActiveController,
    /// The other one.
    StandbyController,
    Client(u8),
    Cache(u8),
    /// What links all hosts.
    Bridge,
}

/// From whom somebody is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whom {
    Everybody,
    Controllers,
    Nodes,
}

/// Which packets of somebody who is cut off are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Both,
    /// Those that are sent to it.
    In,
    /// Those that it sends.
    Out,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `kill -9`; a node comes back with what it has on disk.
    Kill(Target),
    /// `kill -9` of a node, and its data directory is removed.
    Forget(u8),
    /// `kill -9` of all nodes at once; all come back with what they have on disk.
    KillAllNodes,
    /// SIGSTOP, and SIGCONT in the end.
    Stop(Target),
    /// No packet passes.
    Cut { of: Target, from: Whom, way: Way },
    /// This part of all packets, to and from everybody, is lost.
    Lossy { of: Target, percent: u8 },
    /// This part of all packets in the rack is lost.
    AllLossy { percent: u8 },
}

/// A fault and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Act {
    /// From the beginning of the round.
    pub(crate) begin: Duration,
    pub(crate) end: Duration,
    pub(crate) fault: Fault,
}

/// Faults that overlap; in the order in which they begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Round {
    pub(crate) acts: Vec<Act>,
}

impl Round {
    /// Whether nodes lose their memory. Then every chain must be complete when it begins, and the
    /// next round must wait until it is so again: a chain that has shrunk covers fewer losses.
    pub(crate) fn forgets(&self) -> bool {
        self.acts.iter().any(|act| matches!(act.fault, Fault::Forget(_)))
    }
}

/// Who is there to suffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cast {
    /// Nodes, with ids from 1.
    pub(crate) nodes: u8,
    /// Caches, with ids from 1.
    pub(crate) caches: u8,
    pub(crate) clients: u8,
    /// Whether a bridge links them, which is a process.
    pub(crate) bridge: bool,
    /// Whether links can fail.
    pub(crate) links: bool,
}

/// Rounds without end.
#[derive(Debug)]
pub(crate) struct Script {
    rng: Rng,
    cast: Cast,
    /// Kinds of faults that have not come up yet since the pack was last shuffled.
    pack: Vec<Kind>,
    rounds: u32,
}

/// Of so many rounds one is forgetful.
const FORGETFUL_EVERY: u32 = 3;
/// Faults begin within this time.
const BEGIN_MS_MAX: u64 = 3_000;
/// How long faults last. Every other one lasts about as long as it takes to be missed: whether it
/// is over just before that, or just after, should make no difference.
const LASTS_MS: [Range<u64>; 2] = [100..700, 100..3_000];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    KillNode,
    KillAllNodes,
    StopNode,
    CutNode(Whom, Option<Way>),
    LossyNode,
    KillSwitch(Target),
    StopSwitch,
    CutSwitch(Whom, Option<Way>),
    LossySwitch,
    KillController(Target),
    StopController,
    CutController(Option<Way>),
    CutClient,
    AllLossy,
    KillCache,
    StopCache,
    CutCache(Whom),
    LossyCache,
    KillBridge,
    StopBridge,
}

/// The pack, unshuffled. A way of `None` is drawn.
const KINDS: [Kind; 33] = [
    Kind::KillNode,
    Kind::KillNode,
    Kind::KillAllNodes,
    Kind::StopNode,
    Kind::StopNode,
    Kind::CutNode(Whom::Everybody, Some(Way::Both)),
    Kind::CutNode(Whom::Everybody, None),
    Kind::CutNode(Whom::Controllers, Some(Way::Both)),
    Kind::CutNode(Whom::Controllers, None),
    Kind::CutNode(Whom::Nodes, None),
    Kind::LossyNode,
    Kind::KillSwitch(Target::ActiveSwitch),
    Kind::KillSwitch(Target::StandbySwitch),
    Kind::StopSwitch,
    Kind::CutSwitch(Whom::Controllers, Some(Way::Both)),
    Kind::CutSwitch(Whom::Everybody, None),
    Kind::LossySwitch,
    Kind::KillController(Target::ActiveController),
    Kind::KillController(Target::StandbyController),
    Kind::StopController,
    Kind::CutController(None),
    Kind::CutClient,
    Kind::AllLossy,
    Kind::KillCache,
    Kind::KillCache,
    Kind::StopCache,
    Kind::StopCache,
    Kind::CutCache(Whom::Everybody),
    Kind::CutCache(Whom::Nodes),
    Kind::LossyCache,
    Kind::KillBridge,
    Kind::KillBridge,
    Kind::StopBridge,
];

impl Kind {
    fn needs_links(self) -> bool {
        match self {
            Self::KillNode
            | Self::KillAllNodes
            | Self::StopNode
            | Self::KillSwitch(_)
            | Self::StopSwitch
            | Self::KillController(_)
            | Self::StopController
            | Self::KillCache
            | Self::StopCache
            | Self::KillBridge
            | Self::StopBridge => false,
            Self::CutNode(..)
            | Self::LossyNode
            | Self::CutSwitch(..)
            | Self::LossySwitch
            | Self::CutController(_)
            | Self::CutClient
            | Self::AllLossy
            | Self::CutCache(_)
            | Self::LossyCache => true,
        }
    }

    fn is_of_caches(self) -> bool {
        matches!(self, Self::KillCache | Self::StopCache | Self::CutCache(_) | Self::LossyCache)
    }

    fn is_of_a_bridge(self) -> bool {
        matches!(self, Self::KillBridge | Self::StopBridge)
    }

    /// Whether nodes that were not chosen to suffer may suffer.
    fn spares_nobody(self) -> bool {
        matches!(self, Self::KillAllNodes | Self::AllLossy) || self.is_of_a_bridge()
    }
}

impl Script {
    pub(crate) fn new(seed: u64, cast: Cast) -> Self {
        Self { rng: Rng::new(seed).fork("script"), cast, pack: Vec::new(), rounds: 0 }
    }

    pub(crate) fn next_round(&mut self) -> Round {
        self.rounds += 1;
        let mut acts = Vec::new();
        let mut frail = self.nodes();
        if self.rounds.is_multiple_of(FORGETFUL_EVERY) {
            frail.truncate(usize::from(REPLICAS - 1));
            let forgetful = 1 + usize::from(self.rng.chance(1, 2));
            let faults: Vec<Fault> =
                frail.iter().take(forgetful).map(|n| Fault::Forget(*n)).collect();
            acts.extend(faults.into_iter().map(|fault| self.act(fault)));
        }
        let forgetful = !acts.is_empty();
        for _ in 0..2 + self.rng.below(4) {
            let kind = self.deal(|kind| !(forgetful && kind.spares_nobody()));
            let fault = self.fault(kind, &frail);
            acts.push(self.act(fault));
        }
        acts.sort_by_key(|act| act.begin);
        Round { acts }
    }

    /// The nodes, shuffled.
    fn nodes(&mut self) -> Vec<u8> {
        let mut nodes: Vec<u8> = (1..=self.cast.nodes).collect();
        shuffle(&mut self.rng, &mut nodes);
        nodes
    }

    /// The next kind of the pack that may be played.
    fn deal(&mut self, may_be: impl Fn(Kind) -> bool) -> Kind {
        loop {
            if let Some(place) = self.pack.iter().position(|kind| may_be(*kind)) {
                return self.pack.remove(place);
            }
            let mut pack: Vec<Kind> = KINDS.to_vec();
            pack.retain(|kind| self.cast.links || !kind.needs_links());
            pack.retain(|kind| self.cast.caches > 0 || !kind.is_of_caches());
            pack.retain(|kind| self.cast.bridge || !kind.is_of_a_bridge());
            shuffle(&mut self.rng, &mut pack);
            self.pack.extend(pack);
        }
    }

    fn act(&mut self, fault: Fault) -> Act {
        let begin = Duration::from_millis(self.rng.below(BEGIN_MS_MAX));
        let Range { start, end } = LASTS_MS[usize::from(self.rng.chance(1, 2))];
        let lasts = start + self.rng.below(end - start);
        Act { begin, end: begin + Duration::from_millis(lasts), fault }
    }

    /// A fault of this kind; of a node only if it is one of those.
    fn fault(&mut self, kind: Kind, frail: &[u8]) -> Fault {
        let place = self.rng.below(frail.len() as u64);
        let node = Target::Node(frail[usize::try_from(place).expect("few")]);
        let drawn =
            [Way::In, Way::Out, Way::Both][usize::try_from(self.rng.below(3)).expect("few")];
        let percent = 1 + u8::try_from(self.rng.below(20)).expect("small");
        let client = u8::try_from(self.rng.below(self.cast.clients.into())).expect("few");
        let cache = match self.cast.caches {
            0 => 0,
            caches => 1 + u8::try_from(self.rng.below(caches.into())).expect("few"),
        };
        let cache = Target::Cache(cache);
        let cut = |of, from, way: Option<Way>| Fault::Cut { of, from, way: way.unwrap_or(drawn) };
        let everybody = Whom::Everybody;
        match kind {
            Kind::KillNode => Fault::Kill(node),
            Kind::KillAllNodes => Fault::KillAllNodes,
            Kind::StopNode => Fault::Stop(node),
            Kind::CutNode(from, way) => cut(node, from, way),
            Kind::LossyNode => Fault::Lossy { of: node, percent },
            Kind::KillSwitch(target) | Kind::KillController(target) => Fault::Kill(target),
            Kind::StopSwitch => Fault::Stop(Target::ActiveSwitch),
            Kind::CutSwitch(from, way) => cut(Target::ActiveSwitch, from, way),
            Kind::LossySwitch => Fault::Lossy { of: Target::ActiveSwitch, percent },
            Kind::StopController => Fault::Stop(Target::ActiveController),
            Kind::CutController(way) => cut(Target::ActiveController, everybody, way),
            Kind::CutClient => cut(Target::Client(client), everybody, None),
            Kind::AllLossy => Fault::AllLossy { percent },
            Kind::KillCache => Fault::Kill(cache),
            Kind::StopCache => Fault::Stop(cache),
            Kind::CutCache(from) => cut(cache, from, None),
            Kind::LossyCache => Fault::Lossy { of: cache, percent },
            Kind::KillBridge => Fault::Kill(Target::Bridge),
            Kind::StopBridge => Fault::Stop(Target::Bridge),
        }
    }
}

impl Fault {
    /// The one node that it befalls.
    fn node(self) -> Option<u8> {
        match self {
            Self::Forget(node)
            | Self::Kill(Target::Node(node))
            | Self::Stop(Target::Node(node))
            | Self::Cut { of: Target::Node(node), .. }
            | Self::Lossy { of: Target::Node(node), .. } => Some(node),
            Self::Kill(_)
            | Self::Stop(_)
            | Self::Cut { .. }
            | Self::Lossy { .. }
            | Self::KillAllNodes
            | Self::AllLossy { .. } => None,
        }
    }
}

fn shuffle<T>(rng: &mut Rng, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        let other = rng.below(last as u64 + 1);
        items.swap(last, usize::try_from(other).expect("an index"));
    }
}

const CAST: Cast = Cast { nodes: 5, caches: 2, clients: 3, bridge: true, links: true };

fn rounds(seed: u64, cast: Cast, count: usize) -> Vec<Round> {
    let mut script = Script::new(seed, cast);
    std::iter::repeat_with(|| script.next_round()).take(count).collect()
}

#[test]
fn a_seed_is_a_script() {
    assert_eq!(rounds(7, CAST, 9), rounds(7, CAST, 9));
    assert_ne!(rounds(7, CAST, 9), rounds(8, CAST, 9));
}

#[test]
fn where_nodes_lose_their_memory_no_more_suffer_than_a_chain_can_spare() {
    let mut forgetful = 0;
    for round in (0..200).flat_map(|seed| rounds(seed, CAST, 9)).filter(Round::forgets) {
        forgetful += 1;
        let nodes: BTreeSet<u8> = round.acts.iter().filter_map(|act| act.fault.node()).collect();
        assert!(nodes.len() < usize::from(REPLICAS), "{round:?}");
        let all = |act: &Act| matches!(act.fault, Fault::KillAllNodes | Fault::AllLossy { .. });
        assert!(!round.acts.iter().any(all), "{round:?}");
    }
    assert_eq!(forgetful, 600);
}

#[test]
fn every_kind_of_fault_comes_up_and_without_links_those_that_need_none() {
    let kinds = |cast| {
        let rounds = rounds(1, cast, 30);
        let acts = rounds.iter().flat_map(|round| &round.acts);
        acts.map(|act| std::mem::discriminant(&act.fault)).collect::<Vec<_>>()
    };
    let count = |cast| {
        let mut distinct = Vec::new();
        kinds(cast).into_iter().for_each(|it| {
            if !distinct.contains(&it) {
                distinct.push(it)
            }
        });
        distinct.len()
    };
    assert_eq!(count(CAST), 7);
    assert_eq!(count(Cast { links: false, ..CAST }), 4);
}
