//! Who leads: whoever has the leader's key, which is bound to a lease of etcd.
//!
//! etcd gives no lease below one and a half times the time in which it elects its own leader, two
//! seconds by default, and takes up to half a second more to notice that one is over. That is too
//! long to be without a leader. So a candidate looks how much is left of the leader's lease, and
//! takes the key over when nothing has renewed it for more than [`SILENCE_MAX`]; and a leader
//! counts on itself for less than that after it *sent* what renewed its lease.

use super::api::{Api, CallError, Found, Lease, Number};
use super::keeper::{KEEP_ALIVE_EVERY, Keeper, LEAD_FOR};
use super::value::Known;
use super::{EtcdStore, EtcdUrl};
use crate::clock::Clock;
use crate::entropy;
use crate::store::StoreError;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;

/// Seconds that a leader's lease lasts, if etcd does not make more of it: what it does not go below
/// with its usual settings. A leader that is killed is replaced before that is over.
const LEASE_S: i64 = 2;

/// Seconds for which a leader may have renewed nothing before another one takes its key.
const SILENCE_MAX_S: i64 = 1;

const _: () = assert!(LEAD_FOR.as_millis() * 102 / 100 <= SILENCE_MAX_S as u128 * 1_000);
const _: () = assert!(KEEP_ALIVE_EVERY.as_millis() * 3 < LEAD_FOR.as_millis());

/// What is at the leader's key.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Seat {
    /// Drawn by each process: by it a leader knows its own key again.
    who: String,
    /// Where its admin server is.
    admin: Option<SocketAddr>,
}

/// One that would lead.
#[derive(Debug)]
pub struct Candidate {
    api: Arc<Api>,
    seat: Seat,
}

/// How it stands.
#[derive(Debug)]
pub enum Candidacy {
    /// It leads, and has the store.
    Leads(Box<EtcdStore>),
    /// Somebody else leads, whose admin server is there.
    Waits(Option<SocketAddr>),
}

impl Candidate {
    /// One whose admin server is there.
    ///
    /// # Errors
    ///
    /// If the kernel gives no randomness.
    pub fn new(url: EtcdUrl, admin: Option<SocketAddr>) -> Result<Self, StoreError> {
        let drawn = entropy::draw().map_err(|error| StoreError::Etcd {
            at: url.to_string(),
            why: format!("cannot read random numbers: {error}"),
        });
        let who = format!("{:016x}", drawn?);
        Ok(Self { api: Arc::new(Api::new(url)), seat: Seat { who, admin } })
    }

    /// Tries to lead. Takes no longer than a few calls of etcd may.
    ///
    /// # Errors
    ///
    /// If etcd does not answer, or refuses.
    pub fn stand(&self) -> Result<Candidacy, StoreError> {
        self.try_to_lead().map_err(|error| StoreError::Etcd {
            at: self.api.url().to_string(),
            why: error.text().to_owned(),
        })
    }

    fn try_to_lead(&self) -> Result<Candidacy, CallError> {
        let seat = self.api.range("leader", None)?.one();
        let Some(found) = &seat else { return self.take(Number(0)) };
        let Some(leader) = parse(found) else { return self.take(found.mod_revision) };
        if leader.who == self.seat.who {
            // Its answer was lost when this process took it; or it has been deposed and is back
            // before anybody else came.
            return self.take(found.mod_revision);
        }
        if is_kept(self.api.look_at(found.lease)?) {
            return Ok(Candidacy::Waits(leader.admin));
        }
        self.take(found.mod_revision)
    }

    /// Takes the leader's key, if it is as it was found.
    fn take(&self, found: Number) -> Result<Candidacy, CallError> {
        let mut clock = Clock::new();
        let sent = clock.now();
        let lease = self.api.grant(LEASE_S)?.id;
        let seat = serde_json::to_vec(&self.seat).expect("it has no maps");
        let unchanged = [self.api.unchanged("leader", found)];
        let put = [self.api.put("leader", &seat, lease)];
        let done =
            self.api.txn(&unchanged, &put, &["leader"]).inspect_err(|_| self.forget(lease))?;
        if !done.succeeded {
            self.forget(lease);
            let leader = done.read(0).and_then(|found| parse(&found));
            return Ok(Candidacy::Waits(leader.and_then(|leader| leader.admin)));
        }
        let leader = done.header.revision;
        let keeper = Keeper::start(Arc::clone(&self.api), lease, leader, clock.clone(), sent);
        Ok(Candidacy::Leads(Box::new(EtcdStore {
            api: Arc::clone(&self.api),
            leader,
            keeper,
            known: Known::default(),
            saver: None,
            clock: RefCell::new(clock),
        })))
    }

    /// What is not needed ends by itself if this does not reach etcd.
    fn forget(&self, lease: Number) {
        drop(self.api.revoke(lease));
    }
}

fn parse(found: &Found) -> Option<Seat> {
    serde_json::from_slice(&found.value.0).ok()
}

/// Whether somebody has renewed this lease a moment ago. etcd says in whole seconds what is left.
fn is_kept(lease: Lease) -> bool {
    lease.left.0 > lease.granted.0 - SILENCE_MAX_S - 1 && lease.left.0 >= 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_nobody_has_renewed_for_a_second_is_not_kept() {
        let lease =
            |left, granted| Lease { id: Number(1), left: Number(left), granted: Number(granted) };
        // Whole seconds: 1 is from 1.0 to 2.0.
        for (left, granted, kept) in
            [(2, 2, true), (1, 2, true), (0, 2, false), (-1, 2, false), (6, 8, false), (7, 8, true)]
        {
            assert_eq!(is_kept(lease(left, granted)), kept, "{left} of {granted}");
        }
    }
}
