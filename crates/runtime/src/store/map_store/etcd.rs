//! The store in etcd, for controllers on several machines.
//!
//! | Key below the prefix | What it is |
//! |---|---|
//! | `leader` | who leads: bound to a lease of etcd, which the leader keeps alive |
//! | `sign` | who gave it: the leader, with every renewal of that lease, to which it is bound |
//! | `map` | the head of the map: how long it is, its checksum, and the name of its chunks |
//! | `map/NAME/N` | a chunk of it; small enough for one request |
//!
//! Everything that is written is written on condition that the leader's key is as this leader made
//! it; the head, also that it is the one that this leader knows. So whoever has been deposed
//! changes nothing, whatever it believes and however late its request comes.

mod access;
mod api;
mod election;
mod keeper;
mod members;
mod saver;
mod url;
mod value;

pub use access::EtcdAccess;
pub use election::{Candidacy, Candidate};
pub use members::{EtcdFacts, EtcdMember, look_at_members};
pub use url::EtcdUrl;

use super::{Leadership, MapStore, SaveError, Wake};
use crate::clock::Clock;
use crate::store::StoreError;
use api::{Api, Number};
use controller::{Saved, StoreStatus};
use keeper::Keeper;
use saver::Saver;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;
use value::Known;

/// The map in etcd, as its leader has it.
#[derive(Debug)]
pub struct EtcdStore {
    api: Arc<Api>,
    /// The revision in which the leader's key was made this process's.
    leader: Number,
    keeper: Keeper,
    /// The map's key as it was read or written last, until the saver has it.
    known: Known,
    saver: Option<Saver>,
    clock: RefCell<Clock>,
}

impl MapStore for EtcdStore {
    fn load(&mut self) -> Result<Option<Saved>, StoreError> {
        let (known, bytes) = value::load(&self.api, self.leader)?;
        self.known = known;
        let at = || self.api.url().to_string();
        let parse = |bytes: Vec<u8>| {
            serde_json::from_slice(&bytes).map_err(|error| {
                let why = format!("the map is damaged: {error}");
                StoreError::Etcd { at: at(), why }
            })
        };
        bytes.map(parse).transpose()
    }

    fn save(&mut self, saved: &Saved) {
        let bytes = serde_json::to_vec(saved).expect("it has no maps with keys that are no text");
        let saver = self.saver.get_or_insert_with(|| {
            Saver::start(Arc::clone(&self.api), self.leader, self.known, self.keeper.state())
        });
        saver.save(bytes);
    }

    fn poll_saved(&mut self) -> Option<Result<(), SaveError>> {
        self.saver.as_ref()?.poll()
    }

    fn leadership(&self) -> Leadership {
        self.keeper.leadership(self.clock.borrow_mut().now())
    }

    fn is_alone(&self) -> bool {
        false
    }

    fn overlap(&self) -> Duration {
        controller::election::overlap()
    }

    fn wake_with(&mut self, wake: Wake) {
        self.keeper.wake_with(wake);
    }

    fn status(&self) -> StoreStatus {
        let now = self.clock.borrow_mut().now();
        let (silent, trouble) = self.keeper.health(now);
        let silent_ms = u64::try_from(silent.as_millis()).ok();
        let at = self.api.url().to_string();
        StoreStatus { kind: "etcd".into(), at, silent_ms, trouble }
    }
}
