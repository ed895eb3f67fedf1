//! What a run is like: everything is drawn from its seed, and printed.

use machine::Rng;
use std::fmt;
use std::time::Duration;

/// The options of one run. Two runs with equal options are equal, event for event.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names and units say it all")]
pub struct Options {
    pub seed: u64,
    pub nodes: u16,
    pub shards: u16,
    pub replicas: u8,
    pub partitions: u32,
    pub clients: usize,
    pub in_flight: usize,
    pub keys: u64,
    /// Requests that each client starts before the network heals.
    pub requests: usize,
    pub loss_permille: u64,
    pub duplicate_permille: u64,
    pub delay_min: Duration,
    pub delay_max: Duration,
    /// How long a node may let answers wait for a sync.
    pub sync_delay_max: Duration,
    /// Mean time between crashes of nodes, the switch and the controller; none if zero.
    pub crash_every: Duration,
    pub clock_skew_max_ms: u64,
    pub plant: Option<node::Plant>,
}

impl Options {
    /// Draws a run (a *swarm* of them covers more than one careful choice): each kind of fault is
    /// on in some runs and off in others, in different strength.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        let mut rng = Rng::new(seed).fork("options");
        let nodes = draw(&mut rng, 1, 6);
        let delay_min = Duration::from_micros(draw(&mut rng, 1, 100));
        let spread = pick(&mut rng, &[50, 500, 5_000, 50_000]);
        let sync = pick(&mut rng, &[0, 0, 200, 5_000]);
        let crash = pick(&mut rng, &[0, 0, 300, 1_000]);
        let nodes = u16::try_from(nodes).expect("at most 6");
        Self {
            seed,
            nodes,
            shards: pick(&mut rng, &[1, 1, 2]),
            replicas: u8::try_from(draw(&mut rng, 1, u64::from(nodes.min(4)))).expect("at most 4"),
            partitions: pick(&mut rng, &[1, 3, 8]),
            clients: pick(&mut rng, &[1, 2, 4]),
            in_flight: pick(&mut rng, &[1, 3, 8]),
            keys: pick(&mut rng, &[1, 3, 6]),
            requests: pick(&mut rng, &[40, 80]),
            loss_permille: pick(&mut rng, &[0, 10, 50, 200]),
            duplicate_permille: pick(&mut rng, &[0, 10, 100, 300]),
            delay_min,
            delay_max: delay_min + Duration::from_micros(spread),
            sync_delay_max: Duration::from_micros(sync),
            crash_every: Duration::from_millis(crash),
            clock_skew_max_ms: pick(&mut rng, &[0, 10]),
            plant: None,
        }
    }
}

fn draw(rng: &mut Rng, least: u64, most: u64) -> u64 {
    least + rng.below(most - least + 1)
}

fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    let index = usize::try_from(rng.below(from.len() as u64)).expect("below a length");
    *from.get(index).expect("drawn below the length")
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {}: {} nodes x {} shards, r = {}, {} partitions; {} clients x {} in flight, {} \
             keys, {} requests; loss {}/1000, duplicates {}/1000, delay {:?}..{:?}, sync within \
             {:?}, crash every {:?}, clock skew {} ms",
            self.seed,
            self.nodes,
            self.shards,
            self.replicas,
            self.partitions,
            self.clients,
            self.in_flight,
            self.keys,
            self.requests,
            self.loss_permille,
            self.duplicate_permille,
            self.delay_min,
            self.delay_max,
            self.sync_delay_max,
            self.crash_every,
            self.clock_skew_max_ms,
        )?;
        match self.plant {
            Some(plant) => write!(f, "; planted: {plant:?}"),
            None => Ok(()),
        }
    }
}
