//! A write on its way down the chain, and while it is recorded and not known to be committed.

use crate::replica::sessions::outcome::Outcome;
use machine::Instant;
use wire::{ChainStep, ChainSteps, ChainWrite, ChainWriteBody, Code, Effect, Header, Op, Version};

/// A write on its way down the chain, borrowed from a packet or from a [`Pending`].
///
/// The header is that of its CHAIN_WRITE.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write<'a> {
    pub(crate) header: Header,
    pub(crate) fixed: ChainWriteBody,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// A write recorded here and not yet known to be committed.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) header: Header,
    pub(crate) fixed: ChainWriteBody,
    pub(crate) key: Box<[u8]>,
    pub(crate) value: Box<[u8]>,
    /// The successor has recorded it.
    pub(crate) acknowledged: bool,
    /// A copy was sent again after that, and the successor had not committed it yet.
    pub(crate) asked_too_soon: bool,
    /// The disk of this member has it.
    pub(crate) on_disk: bool,
    /// It went on before that.
    pub(crate) went_early: bool,
    /// Copies sent, less one.
    pub(crate) resends: u32,
    pub(crate) sent_at: Instant,
    /// Its entry in the timers.
    pub(crate) due: Instant,
}

impl Write<'_> {
    pub(crate) fn version(&self) -> Version {
        ChainWrite::of(&self.header).version
    }

    /// Whether a member that sent it on in a closed chain has committed all that it was computed
    /// from.
    pub(crate) fn is_based(&self) -> bool {
        ChainWrite::of(&self.header).based != 0
    }

    /// The low-water mark of its client.
    pub(crate) fn floor(&self) -> u64 {
        self.header.seq.saturating_sub(u64::from(self.header.lag))
    }

    pub(crate) fn effect(&self) -> Option<Effect> {
        Effect::from_wire(self.fixed.effect)
    }

    /// The outcome that the head computed; `None` if the packet makes no sense.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        let origin = Op::from_wire(self.fixed.origin).filter(|op| op.is_write())?;
        let code = Code::from_wire(self.header.code).filter(|code| code.is_decided())?;
        // A write without effect tells the version that it found, not its own.
        let found = self.effect()? == Effect::None;
        let version = match (found, origin) {
            (true, Op::Batch) => Version::NONE,
            (true, _) => self.fixed.result.found(),
            (false, _) => self.version(),
        };
        Some(Outcome { origin, code, version, result: self.fixed.result })
    }

    /// Whether an outcome can be told of it, if a client is to be, and it does something known.
    pub(crate) fn makes_sense(&self) -> bool {
        self.effect().is_some() && (self.header.client == 0 || self.outcome().is_some())
    }

    pub(crate) fn to_pending(self, now: Instant) -> Pending {
        Pending {
            header: self.header,
            fixed: self.fixed,
            key: self.key.into(),
            value: self.value.into(),
            acknowledged: false,
            asked_too_soon: false,
            on_disk: true,
            went_early: false,
            resends: 0,
            sent_at: now,
            due: now,
        }
    }

    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        // The value of a batch says its keys.
        let key = if self.is_batch() { &[] } else { self.key };
        wire::emit(out, &self.header, &[&self.fixed.to_bytes(), key, self.value]);
    }
}

impl Pending {
    pub(crate) fn write(&self) -> Write<'_> {
        Write { header: self.header, fixed: self.fixed, key: &self.key, value: &self.value }
    }
}

/// Whether a write with this effect, once committed, is the newest state of its key.
pub(crate) fn changes_state(effect: Effect) -> bool {
    match effect {
        Effect::Put | Effect::Delete => true,
        // What a batch does is asked of each of its keys.
        Effect::None
        | Effect::Register
        | Effect::Unregister
        | Effect::Delegate
        | Effect::Recall
        | Effect::Abandon
        | Effect::Batch => false,
    }
}

/// Whether it changes what is ordered of a hot key: its registration or its delegations.
pub(crate) fn changes_registration(effect: Effect) -> bool {
    matches!(effect, Effect::Register | Effect::Unregister | Effect::Delegate | Effect::Recall)
}

impl Pending {
    /// What it takes in memory, about.
    pub(crate) fn bytes(&self) -> u64 {
        let write = self.write();
        (PENDING_BYTES + write.key.len() + write.value.len()) as u64
    }
}

/// What a pending write takes in memory beside key and value: itself, and its places in the maps
/// of keys, requests and timers.
const PENDING_BYTES: usize = 512;

impl<'a> Write<'a> {
    pub(crate) fn is_batch(&self) -> bool {
        self.effect() == Some(Effect::Batch)
    }

    /// The steps of a batch; none of another write.
    pub(crate) fn steps(&self) -> impl Iterator<Item = ChainStep<'a>> + use<'a> {
        let bytes = if self.is_batch() { self.value } else { &[] };
        ChainSteps::of(bytes).iter()
    }

    /// The keys that it changes or depends on.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let one = (!self.is_batch()).then_some(self.key);
        one.into_iter().chain(self.steps().map(|step| step.key))
    }

    /// The versions that must have arrived before it.
    pub(crate) fn bases(&self) -> impl Iterator<Item = Version> + use<'a> {
        let one = (!self.is_batch() && self.fixed.ordered != 0).then_some(self.fixed.base);
        one.into_iter().chain(self.steps().map(|step| step.base))
    }

    /// What a batch does with one of its keys, as a write of that alone.
    pub(crate) fn narrowed(&self, step: &ChainStep<'a>) -> Self {
        let ChainStep { key, effect, base, expiry_ms, value } = *step;
        let fixed = ChainWriteBody { base, expiry_ms, effect: effect as u8, ..self.fixed };
        Self { fixed, key, value, ..*self }
    }

    /// What it does with this key; `None` if it has nothing to do with it.
    pub(crate) fn on(&self, key: &[u8]) -> Option<Self> {
        if !self.is_batch() {
            return Some(*self);
        }
        self.steps().find(|step| step.key == key).map(|step| self.narrowed(&step))
    }
}
