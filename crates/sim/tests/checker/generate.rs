//! Histories as a correct key would give them, and faults to spoil them with.

use machine::{Instant, Rng};
use sim::check::{Op, OpKind};
use wire::Version;

/// What a generated history is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix {
    pub(crate) ops: usize,
    pub(crate) clients: usize,
    /// Of 100 operations, how many are never answered; half of these took effect.
    pub(crate) unknown: u64,
    /// Whether answers say versions.
    pub(crate) versions: bool,
    pub(crate) workload: Workload,
    /// Values that expire, and how far clocks are apart.
    pub(crate) skew_ms: Option<u64>,
}

/// What is done to the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workload {
    /// Reads, puts, deletes and compare-and-sets; every value is written once.
    Register,
    /// Increments and reads.
    Counter,
    /// Everything, with few values.
    Anything,
}

struct Key {
    held: Option<(i64, u64)>,
    version: Version,
}

/// Each client does one thing after the other; each thing takes effect at an instant of its own
/// between call and return, or after its call and never answered.
pub(crate) fn history(mix: Mix, rng: &mut Rng) -> Vec<Op> {
    let mut free_at = vec![0u64; mix.clients];
    let mut planned: Vec<(u64, Op)> = Vec::new();
    for number in 0..mix.ops {
        let client = (0..mix.clients).min_by_key(|client| free_at[*client]).unwrap();
        let called = free_at[client] + rng.below(200_000);
        let effect = called + 1 + rng.below(1_000_000);
        let returned = effect + 1 + rng.below(1_000_000);
        let unknown = rng.chance(mix.unknown, 100);
        // Whoever gave up may be right, or its write may come much later.
        let late = if rng.chance(1, 4) { rng.below(50_000_000) } else { 0 };
        let effect = if unknown { effect + late } else { effect };
        free_at[client] = returned;
        let op = Op {
            client,
            called: START + called,
            returned: (!unknown).then_some(START + returned),
            kind: OpKind::Read(None),
            version: Version::new(number as u64),
        };
        if !unknown || rng.chance(1, 2) {
            planned.push((effect, op));
        } else {
            planned.push((u64::MAX, op));
        }
    }
    planned.sort_by_key(|(effect, _)| *effect);
    let mut key = Key { held: None, version: Version::NONE };
    let mut ops = Vec::new();
    for (effect, mut op) in planned {
        let number = op.version.get() as i64;
        let wanted = draw(mix, rng, number, op.called.unix_ms(), key.held.map(|held| held.0));
        let now = (effect != u64::MAX).then(|| START + effect);
        (op.kind, op.version) = match now {
            Some(now) => happen(mix, rng, &mut key, wanted, now),
            None => (wanted, Version::NONE),
        };
        if op.returned.is_none() {
            (op.kind, op.version) = (wanted, Version::NONE);
            if matches!(wanted, OpKind::Read(_)) {
                continue;
            }
        }
        if !mix.versions {
            op.version = Version::NONE;
        }
        ops.push(op);
    }
    ops.sort_by_key(|op| (op.called, op.client));
    ops
}

trait Plus {
    fn plus(self, nanos: u64) -> Instant;
}

impl Plus for Instant {
    fn plus(self, nanos: u64) -> Instant {
        Instant(self.0 + nanos)
    }
}

fn draw(mix: Mix, rng: &mut Rng, number: i64, called_ms: u64, seen: Option<i64>) -> OpKind {
    let few = mix.workload == Workload::Anything;
    let value = if few { rng.below(3) as i64 } else { 1_000 + number };
    let delta = if few { rng.below(3) as i64 } else { rng.below(9) as i64 + 1 };
    let expiry_ms = match mix.skew_ms {
        Some(_) if rng.chance(1, 3) => called_ms + 1 + rng.below(4),
        _ => 0,
    };
    if mix.workload == Workload::Counter {
        let adds = rng.chance(2, 3);
        return if adds { OpKind::Incr { delta, sum: None } } else { OpKind::Read(None) };
    }
    let expect = if rng.chance(1, 4) { None } else { seen.or(Some(value)) };
    match rng.below(if few { 12 } else { 10 }) {
        0..4 => OpKind::Read(None),
        4..7 => OpKind::Put { value, expiry_ms },
        7 => OpKind::Del { existed: None },
        8..10 => {
            // In long histories swaps for nothing leave more ways than can be tried: only short
            // ones have them, of which all is compared with a plain search.
            let ends = expect.is_some() && few;
            let (value, expiry_ms) = match rng.below(4) {
                0 if ends => (None, 0),
                1 if ends && (few || expiry_ms != 0) => (expect, expiry_ms),
                _ => (Some(value), 0),
            };
            OpKind::Cas { expect, at: None, value, expiry_ms, written: None }
        }
        _ => OpKind::Incr { delta, sum: None },
    }
}

/// Lets it take effect; what its client is told.
fn happen(
    mix: Mix,
    rng: &mut Rng,
    key: &mut Key,
    wanted: OpKind,
    now: Instant,
) -> (OpKind, Version) {
    if let (Some((_, expiry)), Some(skew)) = (key.held, mix.skew_ms)
        && expiry != 0
        && now.unix_ms() + rng.below(skew + 1) >= expiry
    {
        key.version = key.version.next();
        key.held = None;
    }
    // Other keys of the partition take versions as well.
    let mut next = || {
        key.version = key.version.saturating_add(1 + rng.below(3));
        key.version
    };
    let seen = key.held.map(|(value, _)| value);
    match wanted {
        OpKind::Read(_) => (OpKind::Read(seen), seen.map_or(Version::NONE, |_| key.version)),
        OpKind::Put { value, expiry_ms } => {
            key.held = Some((value, expiry_ms));
            (wanted, Version::new(next().get()))
        }
        OpKind::Del { .. } => {
            let existed = key.held.take().is_some();
            (
                OpKind::Del { existed: Some(existed) },
                if existed { Version::new(next().get()) } else { Version::new(0) },
            )
        }
        OpKind::Cas { expect, value, expiry_ms, .. } => {
            let holds = seen == expect;
            let written = Some(holds);
            let kind = OpKind::Cas { expect, at: None, value, expiry_ms, written };
            if !holds {
                return (kind, seen.map_or(Version::NONE, |_| key.version));
            }
            key.held = value.map(|value| (value, expiry_ms));
            (kind, Version::new(next().get()))
        }
        OpKind::Incr { delta, .. } => {
            let (old, expiry) = key.held.unwrap_or((0, 0));
            key.held = Some((old + delta, expiry));
            (OpKind::Incr { delta, sum: Some(old + delta) }, Version::new(next().get()))
        }
    }
}

/// Something that must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A read gives an older value, with the version that it had.
    StaleRead,
    /// An acknowledged write never took effect: nobody sees it, and whoever did sees what was
    /// there before.
    LostWrite,
    /// A write takes effect again later, over what others wrote.
    AppliedTwice,
}

impl Fault {
    pub(crate) const ALL: [Self; 3] = [Self::StaleRead, Self::LostWrite, Self::AppliedTwice];
}

/// Puts one fault in; `None` if the history has no place for it.
pub(crate) fn spoil(ops: &[Op], fault: Fault, rng: &mut Rng) -> Option<Vec<Op>> {
    let mut spoiled = ops.to_vec();
    let is_read = |op: &Op| matches!(op.kind, OpKind::Read(Some(_)));
    let reads: Vec<usize> = (0..ops.len()).filter(|index| is_read(&ops[*index])).collect();
    let pick = |rng: &mut Rng, from: &[usize]| -> Option<usize> {
        from.get(rng.below(from.len() as u64) as usize).copied()
    };
    match fault {
        Fault::StaleRead => {
            let (read, other) = (pick(rng, &reads)?, pick(rng, &reads)?);
            (spoiled[read].kind, spoiled[read].version) = (ops[other].kind, ops[other].version);
        }
        Fault::LostWrite => {
            let seen: Vec<usize> = (0..ops.len())
                .filter(|index| matches!(ops[*index].leaves(), Some(Some(_))))
                .filter(|index| ops[*index].is_acknowledged_write())
                .collect();
            let write = pick(rng, &seen)?;
            let lost = ops[write].leaves()?;
            let same = |op: &Op| is_read(op) && op.leaves() == Some(lost);
            let before = ops.iter().filter(|op| op.precedes(&ops[write])).rfind(|op| is_read(op));
            for op in spoiled.iter_mut().filter(|op| same(op)) {
                (op.kind, op.version) =
                    before.map_or((OpKind::Read(None), Version::NONE), |it| (it.kind, it.version));
            }
        }
        Fault::AppliedTwice => {
            let read = pick(rng, &reads)?;
            let again: Vec<usize> = (0..ops.len())
                .filter(|index| ops[*index].is_acknowledged_write())
                .filter(|index| ops[*index].precedes(&ops[read]))
                .collect();
            let write = &ops[pick(rng, &again)?];
            let OpKind::Read(Some(value)) = ops[read].kind else { return None };
            spoiled[read].kind = match write.kind {
                OpKind::Incr { delta, .. } => OpKind::Read(Some(value + delta)),
                _ => OpKind::Read(write.leaves()?),
            };
            if !spoiled[read].version.is_none() {
                spoiled[read].version = spoiled[read].version.next();
            }
        }
    }
    (spoiled != ops).then_some(spoiled)
}

const START: Nanos = Nanos(1_000_000_000_000);

/// Where generated time begins.
#[derive(Clone, Copy)]
struct Nanos(u64);

impl std::ops::Add<u64> for Nanos {
    type Output = Instant;

    fn add(self, nanos: u64) -> Instant {
        Instant(self.0).plus(nanos)
    }
}
