//! What goes wrong in a soak, and when.

use crate::redundant::{RedundantCluster, Role};
use anyhow::Result;
use machine::{Instant, Rng};
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::time::Duration;

/// Five nodes for chains of three: there is always somebody to replace a lost one.
pub(super) const NODES: u8 = 5;

/// What has been drawn, and what is to be mended again.
#[derive(Debug)]
pub(super) struct Faults {
    rng: Rng,
    next_at: Instant,
    /// Who is dead or stopped, and until when.
    down: BTreeMap<Role, (Instant, Kind)>,
    /// Those that took place, by kind.
    pub(super) counts: BTreeMap<String, u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Killed,
    Stopped,
}

/// Time between two faults.
const EVERY_MS: std::ops::Range<u64> = 1_000..6_000;
/// How long somebody is dead, or stopped: shorter and longer than a lease.
const LASTS_MS: std::ops::Range<u64> = 50..2_500;

pub(super) const CACHES: u8 = 2;

/// These are never killed, so that they grow old: one of each kind.
const SPARED: [Role; 5] = [
    Role::Node(NODES),
    Role::Switch(0),
    Role::Controller(0),
    Role::Gateway(1),
    Role::Cache(CACHES),
];

impl Faults {
    pub(super) fn new(seed: u64, now: Instant) -> Self {
        let rng = Rng::new(seed).fork("faults");
        Self { rng, next_at: now, down: BTreeMap::new(), counts: BTreeMap::new() }
    }

    /// Mends what is due, and breaks something if that is.
    pub(super) fn play(&mut self, now: Instant, cluster: &mut RedundantCluster) -> Result<()> {
        self.mend(cluster, |until| until <= now)?;
        if now < self.next_at {
            return Ok(());
        }
        self.next_at = now + draw(&mut self.rng, &EVERY_MS);
        let (role, kind) = self.draw();
        // Of nodes one at a time: what is asked for while two of three are gone waits for long.
        let is_node = |role: &Role| matches!(role, Role::Node(_));
        let one_is_down = is_node(&role) && self.down.keys().any(is_node);
        if one_is_down || self.down.contains_key(&role) || !cluster.runs(role) {
            return Ok(());
        }
        match kind {
            Kind::Killed => cluster.kill(role),
            Kind::Stopped => cluster.signal(role, Signal::SIGSTOP),
        }
        let what = match role {
            Role::BridgeDatabase | Role::Bridge => "bridge",
            Role::Switch(_) => "switch",
            Role::Etcd(_) => "etcd",
            Role::Controller(_) => "controller",
            Role::Node(_) => "node",
            Role::Gateway(_) => "gateway",
            Role::Cache(_) => "cache",
        };
        let how = if kind == Kind::Killed { "killed" } else { "stopped" };
        *self.counts.entry(format!("{what} {how}")).or_default() += 1;
        self.down.insert(role, (now + draw(&mut self.rng, &LASTS_MS), kind));
        Ok(())
    }

    /// Mends everything.
    pub(super) fn end(&mut self, cluster: &mut RedundantCluster) -> Result<()> {
        self.mend(cluster, |_| true)
    }

    fn mend(
        &mut self,
        cluster: &mut RedundantCluster,
        is_due: impl Fn(Instant) -> bool,
    ) -> Result<()> {
        for (role, (_, kind)) in self.down.extract_if(.., |_, (until, _)| is_due(*until)) {
            match kind {
                Kind::Killed => cluster.revive(role)?,
                Kind::Stopped => cluster.signal(role, Signal::SIGCONT),
            }
        }
        Ok(())
    }

    fn draw(&mut self) -> (Role, Kind) {
        let of = |rng: &mut Rng, many: u8| u8::try_from(rng.below(many.into())).expect("few");
        let role = match self.rng.below(12) {
            0..5 => Role::Node(1 + of(&mut self.rng, NODES)),
            5..7 => Role::Switch(of(&mut self.rng, 2)),
            7 => Role::Controller(of(&mut self.rng, 2)),
            8..10 => Role::Gateway(of(&mut self.rng, 2)),
            _ => Role::Cache(1 + of(&mut self.rng, CACHES)),
        };
        let killed = !SPARED.contains(&role) && self.rng.chance(2, 3);
        (role, if killed { Kind::Killed } else { Kind::Stopped })
    }
}

fn draw(rng: &mut Rng, of: &std::ops::Range<u64>) -> Duration {
    Duration::from_millis(of.start + rng.below(of.end - of.start))
}
