//! An agent and a device that fails.

use super::*;
use crate::clock::Clock;
use cluster::{Match, NodeId, NodeSpec, Partition, PartitionId};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// A device that does as it is told, and fails when it is told to.
#[derive(Clone, Debug, Default)]
struct Fake(Arc<Mutex<Has>>);

#[derive(Debug, Default)]
struct Has {
    entries: BTreeMap<AddressPrefix, Ipv6Addr>,
    touched: bool,
    broken: bool,
    refuses: bool,
    sweeps: bool,
    /// What was taken out at once.
    swept: Vec<Sweep>,
    /// What each prefix of a partition has matched.
    packets: u64,
}

impl Fake {
    fn lock(&self) -> MutexGuard<'_, Has> {
        self.0.lock().expect("nobody panics")
    }

    fn becomes(
        &self,
        agent: &ContentAgent,
        what: &str,
        is: impl Fn(&Has, &ContentSnapshot) -> bool,
    ) {
        let mut clock = Clock::new();
        let give_up = clock.now() + Duration::from_secs(20);
        let is_so = || {
            // Not while the device is locked: the agent asks it things with its own state locked.
            let said = agent.snapshot();
            is(&self.lock(), &said)
        };
        while !is_so() {
            let said = agent.snapshot();
            assert!(clock.now() < give_up, "{what}: {:?} {said:?}", self.lock());
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
}

impl Device for Fake {
    fn kind(&self) -> DeviceKind {
        let capabilities = Capabilities::ADDRESSES;
        DeviceKind { plane: "fake", capabilities, changes_per_second: Some(2) }
    }

    fn look(
        &mut self,
        must: bool,
        _: &dyn Fn(AddressPrefix) -> Option<Ipv6Addr>,
    ) -> Result<Option<Vec<Entry>>, String> {
        let mut has = self.lock();
        if has.broken {
            return Err("it is broken".into());
        }
        let touched = std::mem::take(&mut has.touched);
        let all = || has.entries.iter().map(|(prefix, via)| Entry { prefix: *prefix, via: *via });
        Ok((touched || must).then(|| all().collect()))
    }

    fn room(&self, _: Instant) -> usize {
        2
    }

    fn apply(
        &mut self,
        _: Instant,
        changes: &[Change],
    ) -> Result<BTreeMap<AddressPrefix, String>, String> {
        let mut has = self.lock();
        if has.broken {
            return Err("it is broken".into());
        }
        let mut refused = BTreeMap::new();
        for Change { prefix, via } in changes {
            if has.refuses {
                refused.insert(*prefix, "full".to_owned());
            } else {
                match via {
                    Some(via) => has.entries.insert(*prefix, *via),
                    None => has.entries.remove(prefix),
                };
            }
        }
        Ok(refused)
    }

    fn sweeps(&self) -> bool {
        self.lock().sweeps
    }

    fn sweep(&mut self, _: Instant, what: Sweep) -> Result<(), String> {
        let mut has = self.lock();
        has.swept.push(what);
        has.entries.retain(|prefix, via| match what {
            Sweep::RulesTo(member) => prefix.len < 128 || *via != member,
            Sweep::All => false,
        });
        Ok(())
    }

    fn counts(&mut self) -> Result<Option<Vec<(AddressPrefix, u64)>>, String> {
        let has = self.lock();
        let prefixes = has.entries.keys().filter(|prefix| prefix.len < 128);
        Ok(Some(prefixes.map(|prefix| (*prefix, has.packets)).collect()))
    }
}

fn service() -> ServicePrefix {
    "fd00:6b77:1::/48".parse().expect("a service prefix")
}

fn node(id: u16) -> NodeSpec {
    let address = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, id);
    NodeSpec { id: NodeId(id), endpoint: SocketAddr::from((address, 7801)).into(), shards: 1 }
}

fn tables(tail: u16) -> SwitchTables {
    let whole = Partition {
        id: PartitionId(1),
        last: Match::MAX,
        chain: [NodeId(1), NodeId(tail)].into_iter().collect(),
        open: true,
        ..Partition::default()
    };
    SwitchTables {
        nodes: (1..=3).map(node).collect(),
        partitions: vec![whole],
        ..Default::default()
    }
}

fn rule(match_bits: u64) -> CacheRule {
    CacheRule { adds: true, keyspace: 0, keyhash: 1, match_bits: Some(match_bits) }
}

#[test]
fn a_device_follows_and_is_given_back_empty() {
    let device = Fake::default();
    let agent = ContentAgent::start(service(), device.clone()).expect("there are threads");
    let mut order = tables(2);
    let endpoint = node(9).endpoint;
    order.caches = vec![cluster::CacheSpec { id: CacheId(1), endpoint, shards: 1 }];
    agent.install(&order);
    device.becomes(&agent, "prefixes", |has, it| has.entries.len() == 3 && it.report.pending == 0);
    let watch = agent.watch();
    watch.heard(CacheId(1), Clock::new().now() + Duration::from_secs(3));
    (0..3).for_each(|bits| watch.changed(CacheId(1), &rule(bits)));
    device.becomes(&agent, "rules", |has, it| has.entries.len() == 6 && it.report.rules == 3);
    device.becomes(&agent, "silent caches have none", |has, _| has.entries.len() == 3);
    drop((watch, agent));
    assert!(device.lock().entries.is_empty());
}

#[test]
fn a_device_that_can_takes_the_rules_of_a_silent_cache_out_at_once_and_in_the_end_all() {
    let device = Fake::default();
    device.lock().sweeps = true;
    let agent = ContentAgent::start(service(), device.clone()).expect("there are threads");
    let mut order = tables(2);
    let endpoint = node(9).endpoint;
    order.caches = vec![cluster::CacheSpec { id: CacheId(1), endpoint, shards: 1 }];
    agent.install(&order);
    let watch = agent.watch();
    watch.heard(CacheId(1), Clock::new().now() + Duration::from_secs(3));
    (0..7).for_each(|bits| watch.changed(CacheId(1), &rule(bits)));
    device.becomes(&agent, "rules", |has, it| has.entries.len() == 10 && it.report.rules == 7);
    device.becomes(&agent, "they go", |has, it| has.entries.len() == 3 && it.report.rules == 0);
    let cache = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 9);
    assert_eq!(device.lock().swept, [Sweep::RulesTo(cache)]);
    drop((watch, agent));
    let has = device.lock();
    assert!(has.entries.is_empty() && has.swept.last() == Some(&Sweep::All));
}

#[test]
fn what_a_device_counts_is_told() {
    let device = Fake::default();
    let agent = ContentAgent::start(service(), device.clone()).expect("there are threads");
    agent.install(&tables(2));
    device.becomes(&agent, "prefixes", |has, _| has.entries.len() == 3);
    let load = |it: &ContentSnapshot| it.loads.first().map(|it| (it.reads, it.writes));
    // What it had counted before it was asked first is not known to be new.
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                device.lock().packets += 1;
                std::thread::park_timeout(Duration::from_millis(10));
            }
        });
        device.becomes(&agent, "more is counted", |_, it| load(it).is_some_and(|it| it.1 > 0));
        ends.store(true, Ordering::Relaxed);
    });
    let (reads, writes) = load(&agent.snapshot()).expect("there is a partition");
    assert_eq!(reads, 2 * writes, "two classes of reads, and one of writes");
}

#[test]
fn what_others_change_is_put_right_and_what_is_refused_is_tried_again() {
    let device = Fake::default();
    let agent = ContentAgent::start(service(), device.clone()).expect("there are threads");
    device.lock().refuses = true;
    agent.install(&tables(2));
    device.becomes(&agent, "it refuses", |_, it| it.refused == 3 && it.report.refused == 3);
    device.lock().refuses = false;
    device.becomes(&agent, "it is tried again", |has, _| has.entries.len() == 3);
    {
        let mut has = device.lock();
        has.entries.pop_first();
        has.touched = true;
    }
    device.becomes(&agent, "it is put right", |has, it| has.entries.len() == 3 && it.made == 4);
}

#[test]
fn a_device_that_fails_is_made_right_when_it_answers_again() {
    let device = Fake::default();
    let agent = ContentAgent::start(service(), device.clone()).expect("there are threads");
    agent.install(&tables(2));
    device.becomes(&agent, "prefixes", |has, _| has.entries.len() == 3);
    device.lock().broken = true;
    agent.install(&tables(3));
    device
        .becomes(&agent, "it fails", |_, it| it.report.trouble.as_deref() == Some("it is broken"));
    {
        let mut has = device.lock();
        has.broken = false;
        has.entries.clear();
    }
    let to_3 = |has: &Has| has.entries.values().filter(|via| via.segments()[7] == 3).count();
    device.becomes(&agent, "it is whole", |has, it| to_3(has) == 2 && it.report.trouble.is_none());
}
