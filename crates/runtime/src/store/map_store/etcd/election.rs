//! Who leads: whoever has the leader's key, which is bound to a lease of etcd
//! ([`controller::election`]).

use super::api::{Api, CallError, Found, Number};
use super::keeper::Keeper;
use super::value::Known;
use super::{EtcdStore, EtcdUrl};
use crate::clock::Clock;
use crate::entropy;
use crate::store::StoreError;
use controller::election::{LEASE_S, is_kept};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;

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
        let lease = self.api.look_at(found.lease)?;
        if is_kept(lease.left.0, lease.granted.0) {
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
