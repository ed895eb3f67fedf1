//! Who leads: whoever has the leader's key, which is bound to a lease of etcd
//! ([`controller::election`]).

use super::api::{Api, CallError, KeyValue, Number};
use super::keeper::{HeldSeat, Keeper, SIGN};
use super::value::Known;
use super::{EtcdAccess, EtcdStore, EtcdUrl};
use crate::clock::Clock;
use crate::entropy;
use crate::store::StoreError;
use controller::election::{LEASE_S, LOOK_PATIENCE, TAKE_PATIENCE, Vigil, is_kept};
use machine::Instant;
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
    clock: RefCell<Clock>,
    vigil: RefCell<Vigil>,
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
    /// One whose admin server is there, if it has one.
    ///
    /// # Errors
    ///
    /// If the kernel gives no randomness.
    pub fn new(
        url: EtcdUrl,
        access: EtcdAccess,
        admin: Option<SocketAddr>,
    ) -> Result<Self, StoreError> {
        let drawn = entropy::draw().map_err(|error| StoreError::Etcd {
            at: url.to_string(),
            why: format!("cannot read random numbers: {error}"),
        });
        let who = format!("{:016x}", drawn?);
        Ok(Self {
            api: Arc::new(Api::new(url, access)),
            seat: Seat { who, admin },
            clock: RefCell::new(Clock::new()),
            vigil: RefCell::default(),
        })
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
        let found = self.api.look(&["leader", SIGN], LOOK_PATIENCE)?;
        let (seat, sign) = (found.read(0), found.read(1));
        let changed = |it: &Option<KeyValue>| it.as_ref().map_or(Number(0), |it| it.mod_revision);
        let take = || self.take(changed(&seat), changed(&sign));
        let Some((seat, leader)) = seat.as_ref().and_then(|it| Some((it, parse(it)?))) else {
            return take();
        };
        if leader.who == self.seat.who {
            // Its answer was lost when this process took it; or it has been deposed and is back
            // before anybody else came.
            return take();
        }
        let given = sign.as_ref().filter(|it| it.value.0 == leader.who.as_bytes());
        let is_silent = match given {
            Some(sign) => self.vigil.borrow_mut().is_over(self.now(), sign.mod_revision.0),
            // There was no room for a sign, or it leads by an earlier version, which gives none.
            None => {
                let lease = self.api.look_at(seat.lease, TAKE_PATIENCE)?;
                !is_kept(lease.left.0, lease.granted.0)
            }
        };
        if is_silent { take() } else { Ok(Candidacy::Waits(leader.admin)) }
    }

    fn now(&self) -> Instant {
        self.clock.borrow_mut().now()
    }

    /// Takes the leader's key, if it is as it was found, and the leader has given no sign since.
    fn take(&self, found: Number, sign: Number) -> Result<Candidacy, CallError> {
        let sent = self.now();
        let lease = self.api.grant(LEASE_S, TAKE_PATIENCE)?.id;
        let seat = serde_json::to_vec(&self.seat).expect("it has no maps");
        let unchanged = [self.api.unchanged("leader", found), self.api.unchanged(SIGN, sign)];
        let who = &self.seat.who;
        let put = [self.api.put("leader", &seat, lease), self.api.put(SIGN, who.as_bytes(), lease)];
        let done = self.api.txn(&unchanged, &put, &["leader"], TAKE_PATIENCE);
        let done = done.inspect_err(|_| self.forget(lease))?;
        if !done.succeeded {
            self.forget(lease);
            let leader = done.read(0).and_then(|found| parse(&found));
            return Ok(Candidacy::Waits(leader.and_then(|leader| leader.admin)));
        }
        let leader = done.header.revision;
        let clock = self.clock.borrow().clone();
        let held = HeldSeat { lease, leader, who: who.clone() };
        let keeper = Keeper::start(Arc::clone(&self.api), held, clock.clone(), sent);
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
        drop(self.api.revoke(lease, TAKE_PATIENCE));
    }
}

fn parse(found: &KeyValue) -> Option<Seat> {
    serde_json::from_slice(&found.value.0).ok()
}
