//! Who is at the other end of a connection, for as long as that is true.

use crate::identity::{Facts, Peer, Security};
use rustls::pki_types::{CertificateDer, UnixTime};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Somebody who was let in. What it has shown is looked at again when the authorities may have
/// changed, and when its time is over: a connection is no way to be believed for longer.
#[derive(Debug)]
pub(super) struct Guest {
    peer: Peer,
    /// Its certificate, and those between it and an authority.
    chain: Vec<CertificateDer<'static>>,
    /// Until when the certificate is valid, in Unix seconds.
    until: i64,
    /// With which credentials of ours it was looked at last.
    checked: AtomicU64,
}

impl Guest {
    /// Somebody who was asked for nothing.
    pub(super) fn unknown(address: SocketAddr) -> Self {
        Self::new(address, Vec::new(), 0)
    }

    /// Somebody who has shown this, which was found to be good.
    pub(super) fn new(
        address: SocketAddr,
        chain: Vec<CertificateDer<'static>>,
        generation: u64,
    ) -> Self {
        let facts = chain.first().and_then(|first| Facts::read(first).ok());
        let until = facts.as_ref().map_or(i64::MAX, |facts| facts.until);
        let identity = facts.and_then(|facts| facts.identity);
        let peer = Peer { identity, address };
        Self { peer, chain, until, checked: AtomicU64::new(generation) }
    }

    pub(super) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Whether it is still to be believed.
    pub(super) fn is_still_good(&self, security: &Security) -> bool {
        let Some(credentials) = security.credentials() else { return true };
        if self.chain.is_empty() {
            return true;
        }
        if self.until < i64::try_from(UnixTime::now().as_secs()).unwrap_or(i64::MAX) {
            return false;
        }
        let newest = security.generation();
        if newest == self.checked.load(Ordering::Relaxed) {
            return true;
        }
        let good = credentials.vouch_for(&self.chain);
        if good {
            self.checked.store(newest, Ordering::Relaxed);
        }
        good
    }
}
