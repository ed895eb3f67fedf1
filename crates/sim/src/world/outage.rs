//! How long keys are out of reach after nodes, or the active switch, have failed.
//!
//! A calm cluster with default leases; a few clients read and write every ordered key every few
//! milliseconds, whatever is still unanswered; then some roles crash at once. For each key that
//! they were needed for, an *outage* is the longest time, from the crash until long after, in which
//! no read (or no write) of the key was answered. So it counts what a client sees: detection,
//! closing, settling, opening, and the client's own wait before it asks again. Keys of which every
//! member has crashed are counted, and nobody answers for them.

use super::faults::Harm;
use super::{START, World};
use crate::actor::Actor;
use crate::many::in_parallel;
use crate::options::{Faults, Links, Load, Options};
use crate::profile::Profile;
use crate::role::Role;
use cluster::NodeId;
use machine::Instant;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

/// What fails, and of how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// So many of so many nodes, at once.
    Nodes {
        /// How many fail.
        failed: u16,
        /// How many there are.
        of: u16,
    },
    /// The active one of two switches.
    Switch,
}

/// Outages of keys that were concerned, each list in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outages {
    /// The longest time without an answer to a read, key by key.
    pub reads: Vec<Duration>,
    /// The longest time without an answer to a write, key by key.
    pub writes: Vec<Duration>,
    /// Keys all of whose members have failed.
    pub gone: usize,
}

impl Outages {
    /// The outage that so many percent of all do not exceed.
    #[must_use]
    pub fn percentile(sorted: &[Duration], percent: usize) -> Duration {
        let rank = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        sorted.get(rank).copied().unwrap_or_default()
    }

    fn add(&mut self, other: Self) {
        self.reads.extend(other.reads);
        self.writes.extend(other.writes);
        self.gone += other.gone;
    }
}

/// Lets this fail in a world for each of these seeds and measures what that does.
#[must_use]
pub fn measure_outages(seeds: &[u64], failure: Failure) -> Outages {
    let mut all = Outages::default();
    let measured = in_parallel(
        seeds,
        |seed| measure(*seed, failure),
        |_, one| {
            all.add(one);
            ControlFlow::<()>::Continue(())
        },
    );
    assert!(measured.is_continue(), "nothing breaks off");
    all.reads.sort();
    all.writes.sort();
    all
}

fn measure(seed: u64, failure: Failure) -> Outages {
    let nodes = match failure {
        Failure::Nodes { of, .. } => of,
        Failure::Switch => NODES,
    };
    let mut world = World::new(&options(seed, nodes));
    world.run_until(START + LEAD, |_| false);
    let now = world.now;
    for actor in &mut world.actors {
        actor.probe(now, PROBE_EVERY);
    }
    let at = now + LEAD + world.up_to(Duration::from_millis(100));
    world.run_until(at, |_| false);
    let (keys, gone) = world.fail(failure);
    let crashed = world.now;
    world.run_until(crashed + WATCH, |_| false);
    let answers = world.actors.iter().flat_map(|actor| actor.answers.iter().flatten());
    let mut times: BTreeMap<(&[u8], bool), Vec<Instant>> = BTreeMap::new();
    for answer in answers {
        times.entry((&answer.key.key, answer.write)).or_default().push(answer.at);
    }
    let outage = |key: &Vec<u8>, write| {
        let mut times = times.get(&(key.as_slice(), write)).cloned().unwrap_or_default();
        times.sort();
        let after = times.into_iter().filter(|at| *at > crashed).chain([world.now]);
        let gaps = after.scan(crashed, |before, at| Some(at.since(std::mem::replace(before, at))));
        gaps.max().unwrap_or_default()
    };
    Outages {
        reads: keys.iter().map(|key| outage(key, false)).collect(),
        writes: keys.iter().map(|key| outage(key, true)).collect(),
        gone,
    }
}

/// Three replicas, a network as in a rack, and no faults but the one.
fn options(seed: u64, nodes: u16) -> Options {
    Options {
        lead: LEAD,
        span: Duration::ZERO,
        nodes,
        spares: 0,
        shards: 1,
        replicas: 3,
        partitions: if nodes > NODES { 8 } else { 4 },
        switches: 2,
        controllers: 1,
        shared_store: false,
        lease: controller::LEASE,
        poll: controller::POLL_INTERVAL,
        copy_bytes_per_s: controller::COPY_BYTES_PER_S,
        sync_delay_max: Duration::from_micros(200),
        clock_rate_max_percent: cluster::CLOCK_RATE_MAX_PERCENT.into(),
        clock_skew_max: Duration::from_millis(20),
        clock_steps: false,
        load: Load {
            clients: 2,
            in_flight: 8,
            think: Duration::from_millis(20),
            registers: 2,
            twins: None,
            plain_percent: 0,
            many_percent: 0,
            batch_percent: 0,
            big_percent: 0,
            crowd_percent: 0,
            reads_percent: 0,
            focus_percent: 0,
            focus_lasts: Duration::ZERO,
            goodbye_percent: 0,
            fresh_percent: 0,
            lock_percent: 0,
            blind: false,
            assisted: false,
            by_hints: false,
            patience: Duration::from_secs(5),
            flood: 0,
        },
        links: Links {
            delay_min: Duration::from_micros(30),
            delay_max: Duration::from_micros(300),
            ..Links::default()
        },
        faults: Faults::default(),
        mutant: None,
        ..Options::draw(Profile::Calm, seed)
    }
}

impl World {
    /// Has it happen. Says which keys somebody who is left has to be found for, and of how many
    /// nobody is.
    fn fail(&mut self, failure: Failure) -> (Vec<Vec<u8>>, usize) {
        let Failure::Nodes { failed, .. } = failure else {
            let active = self.controller().map_or(0, |it| it.map().active_switch);
            self.crash(Role::Switch(active), Harm::None);
            return (Actor::ordered_keys().collect(), 0);
        };
        let mut left: Vec<u16> = (0..self.cast.nodes).collect();
        let mut nodes = Vec::new();
        for _ in 0..failed.min(self.cast.nodes) {
            let at = self.below(u16::try_from(left.len()).expect("ids are as many"));
            nodes.push(left.swap_remove(at.into()));
        }
        let alive = |node: &&NodeId| !nodes.contains(&node.0);
        let members = self.members_of_keys();
        let hit = members
            .into_iter()
            .filter(|(_, chain)| chain.iter().filter(alive).count() < chain.len());
        let (served, gone): (Vec<_>, Vec<_>) =
            hit.partition(|(_, chain)| chain.iter().any(|it| alive(&it)));
        nodes.iter().for_each(|node| self.crash(Role::Node(*node), Harm::None));
        (served.into_iter().map(|(key, _)| key).collect(), gone.len())
    }

    /// The ordered keys, and the nodes that hold each.
    fn members_of_keys(&self) -> Vec<(Vec<u8>, Vec<NodeId>)> {
        let Some((controller, [_, ordered])) = self.controller().zip(self.keyspaces.as_ref())
        else {
            return Vec::new();
        };
        let chain = |key: &[u8]| {
            let partition = controller.map().partition_of(ordered.id, ordered.match_value(key));
            partition.map_or_else(Vec::new, |it| it.chain.clone())
        };
        Actor::ordered_keys().map(|key| (key.clone(), chain(&key))).collect()
    }
}

/// Where nobody says how many.
const NODES: u16 = 5;

/// How often each client reads and writes each key.
const PROBE_EVERY: Duration = Duration::from_millis(10);
/// Time for the cluster to come up, and again for the clients to get used to it. Together they are
/// more than the grace that the controller grants to nodes that have just been started.
const LEAD: Duration = Duration::from_millis(1_500);
/// How long to look: until replication is long back.
const WATCH: Duration = Duration::from_secs(4);
