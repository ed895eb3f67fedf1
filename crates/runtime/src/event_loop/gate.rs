//! What stands between the socket and the machine: nothing, or envelopes.

use crate::keyring::Keyring;
use crate::net::{Inbound, Outbound, Received};
use envelope::{Counts, ENVELOPE_LEN, MemberEnvelopes, MemberRole, Ring};
use machine::Datagram;

/// The gate of a thread.
pub(crate) enum Gate {
    /// Everything passes.
    Open,
    /// What is in envelopes, by these keys.
    Guarded(Box<Guard>),
}

pub(crate) struct Guard {
    keyring: Keyring,
    /// How often its keys had changed when they were looked at last.
    seen: u64,
    envelopes: MemberEnvelopes,
    /// Which datagrams of the batch pass.
    passes: Vec<bool>,
    /// What was refused when that was told last.
    told: Counts,
}

impl Gate {
    /// That of a thread of this role, guarded if there are keys to guard it with.
    pub(crate) fn of(role: MemberRole, keyring: Option<Keyring>) -> Self {
        let guard = |keyring| {
            let (envelopes, told) = (MemberEnvelopes::new(role), Counts::default());
            Box::new(Guard { keyring, seen: 0, envelopes, passes: Vec::new(), told })
        };
        keyring.map_or(Self::Open, |keyring| Self::Guarded(guard(keyring)))
    }

    /// Looks at a batch: what of it passes. Those who have to show first that they receive are
    /// answered by `answer`.
    pub(crate) fn look_at(&mut self, batch: &mut Inbound, answer: impl FnMut(Datagram<'_>)) {
        if let Self::Guarded(guard) = self {
            guard.look_at(batch, answer);
        }
    }

    /// The packets of the batch that pass.
    pub(crate) fn packets<'a>(
        &self,
        payloads: impl Iterator<Item = &'a [u8]>,
    ) -> impl Iterator<Item = &'a [u8]> {
        let passing = payloads.enumerate().filter(|(index, _)| self.passes(*index));
        passing.filter_map(|(_, payload)| payload.get(self.skipped()..))
    }

    /// The same as they are handed to the machine.
    pub(crate) fn received<'a>(
        &self,
        batch: impl Iterator<Item = Received<'a>>,
    ) -> impl Iterator<Item = Received<'a>> {
        let passing = batch.enumerate().filter(|(index, _)| self.passes(*index));
        passing.filter_map(|(_, Received { from, waiting, payload })| {
            let payload = payload.get_mut(self.skipped()..)?;
            Some(Received { from, waiting, payload })
        })
    }

    fn passes(&self, index: usize) -> bool {
        match self {
            Self::Open => true,
            Self::Guarded(guard) => guard.passes.get(index).copied().unwrap_or(false),
        }
    }

    /// Bytes before a packet.
    fn skipped(&self) -> usize {
        match self {
            Self::Open => 0,
            Self::Guarded(_) => ENVELOPE_LEN,
        }
    }

    /// Adds what the machine sends to a batch that has room. False if there are no keys for it.
    pub(crate) fn push(&mut self, batch: &mut Outbound, datagram: Datagram<'_>) -> bool {
        let Datagram { from, to, payload } = datagram;
        match self {
            Self::Open => batch.push_behind(from, to, &[], payload),
            Self::Guarded(guard) => {
                let Some(envelope) = guard.envelopes.seal(to, payload) else { return false };
                batch.push_behind(from, to, &envelope, payload);
            }
        }
        true
    }

    /// All that came of a batch is sent.
    pub(crate) fn end_turn(&mut self) {
        if let Self::Guarded(guard) = self {
            guard.end_turn();
        }
    }
}

impl Guard {
    fn look_at(&mut self, batch: &mut Inbound, mut answer: impl FnMut(Datagram<'_>)) {
        if let Some(order) = self.keyring.news(&mut self.seen) {
            self.envelopes.set_keys(&order.set);
            self.envelopes.set_rights(order.rights.clone());
            self.envelopes.set_ring(Ring::new(&order.members, order.content));
        }
        self.passes.clear();
        for Received { from, payload, .. } in batch.iter_mut() {
            let opened = self.envelopes.open(from, payload);
            self.passes.push(opened.is_ok());
            if let Err(refused) = opened
                && let Some(cookie) = refused.cookie
            {
                answer(Datagram { from: refused.asked_at, to: from, payload: &cookie });
            }
        }
    }

    fn end_turn(&mut self) {
        self.envelopes.end_turn();
        let now = *self.envelopes.counts();
        if now != self.told {
            self.keyring.add(&now, &self.told);
            self.told = now;
        }
    }
}
