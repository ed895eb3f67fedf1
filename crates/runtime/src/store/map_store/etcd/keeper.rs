//! Keeps the leader's lease alive, and knows for how long this process leads by that.

use super::super::{Leadership, Wake};
use super::api::{Api, CallError, Number, Read};
use crate::clock::Clock;
use controller::election::{LEAD_FOR, RENEW_EVERY, RENEW_PATIENCE};
use machine::Instant;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// What is known of the lease. It is kept alive until this is dropped, and given back then.
#[derive(Debug)]
pub(super) struct Keeper {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

/// The key at which a leader gives its signs.
pub(super) const SIGN: &str = "sign";

/// What a leader has in etcd.
#[derive(Clone, Debug)]
pub(super) struct HeldSeat {
    pub(super) lease: Number,
    /// The revision in which it took the leader's key.
    pub(super) leader: Number,
    /// What it is called there.
    pub(super) who: String,
}

#[derive(Default)]
pub(super) struct State {
    /// When this process has certainly led last, unless it is told so again.
    until: AtomicU64,
    /// When etcd answered last.
    answered: AtomicU64,
    lost: AtomicBool,
    /// The lease is to be given back.
    ends: AtomicBool,
    said: Mutex<Said>,
}

#[derive(Default)]
struct Said {
    /// Why the lease was not renewed, if it was not.
    keeping: Option<String>,
    /// Why something was not saved, if it was not.
    saving: Option<String>,
    wake: Option<Wake>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("until", &self.until).field("lost", &self.lost).finish()
    }
}

impl Keeper {
    /// Keeps the lease, which was asked for at `sent`.
    pub(super) fn start(api: Arc<Api>, held: HeldSeat, clock: Clock, sent: Instant) -> Self {
        let state = Arc::new(State::default());
        state.renewed(sent);
        let thread = Arc::clone(&state);
        let spawned = Builder::new()
            .name("etcd-lease".into())
            .spawn(move || keep(&api, &held, clock, &thread));
        if let Err(error) = &spawned {
            state.note(|said| &mut said.keeping, Some(format!("cannot start a thread: {error}")));
            state.lose();
        }
        Self { state, thread: spawned.ok() }
    }

    pub(super) fn state(&self) -> Arc<State> {
        Arc::clone(&self.state)
    }

    pub(super) fn leadership(&self, now: Instant) -> Leadership {
        if self.state.lost.load(Ordering::Acquire) {
            Leadership::Lost
        } else if now < Instant(self.state.until.load(Ordering::Acquire)) {
            Leadership::Certain
        } else {
            Leadership::Doubtful
        }
    }

    pub(super) fn wake_with(&self, wake: Wake) {
        self.state.said().wake = Some(wake);
    }

    /// Since when etcd has not answered, and what is wrong.
    pub(super) fn health(&self, now: Instant) -> (Duration, Option<String>) {
        let said = self.state.said();
        let trouble = said.saving.clone().or_else(|| said.keeping.clone());
        (now.since(Instant(self.state.answered.load(Ordering::Relaxed))), trouble)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.state.ends.store(true, Ordering::Release);
        // So that the lease is given back before the process ends; each call has its deadline.
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl State {
    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, what: impl Fn(&mut Said) -> &mut Option<String>, why: Option<String>) {
        *what(&mut self.said()) = why;
    }

    /// What keeps the saver from saving, if anything does.
    pub(super) fn note_saving(&self, why: Option<String>) {
        self.note(|said| &mut said.saving, why);
    }

    /// The lease was renewed by what was sent then.
    fn renewed(&self, sent: Instant) {
        self.until.fetch_max((sent + LEAD_FOR).0, Ordering::Release);
        self.answered.fetch_max(sent.0, Ordering::Relaxed);
    }

    /// Somebody else may lead.
    pub(super) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
        self.wake();
    }

    pub(super) fn is_over(&self) -> bool {
        self.lost.load(Ordering::Acquire) || self.ends.load(Ordering::Acquire)
    }

    pub(super) fn wake(&self) {
        let wake = self.said().wake.clone();
        if let Some(wake) = wake {
            wake();
        }
    }
}

fn keep(api: &Api, held: &HeldSeat, mut clock: Clock, state: &State) {
    while !state.is_over() {
        let sent = clock.now();
        match renew(api, held) {
            Ok(true) => {
                state.renewed(sent);
                state.note(|said| &mut said.keeping, None);
            }
            Ok(false) => return state.lose(),
            Err(error) => {
                let why = error.text().to_owned();
                let news = state.said().keeping.is_none();
                if news {
                    tracing::warn!(why, "etcd does not answer");
                }
                state.note(|said| &mut said.keeping, Some(why));
            }
        }
        // Looked at often, so that a leader that ends says so at once.
        let next = sent + RENEW_EVERY;
        while !state.is_over() && clock.now() < next {
            std::thread::park_timeout(LOOK_EVERY.min(next.since(clock.now())));
        }
    }
    // Others need not wait for its end.
    drop(api.revoke(held.lease, REVOKE_PATIENCE));
}

/// How long it takes at most until somebody who ends gives the lease back.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// How long whoever ends waits for that.
const REVOKE_PATIENCE: Duration = Duration::from_secs(1);

/// Renews the lease and gives a sign, if the leader's key is still as this process made it: the
/// second is done by most members of etcd together, the first by one that may be cut off.
///
/// Without room no sign can be given. Then none may be there: others go by the lease.
fn renew(api: &Api, held: &HeldSeat) -> Result<bool, CallError> {
    if api.keep_alive(held.lease, RENEW_PATIENCE)?.left.0 <= 0 {
        return Ok(false);
    }
    let leads = [api.unchanged("leader", held.leader)];
    let give = api.put(SIGN, held.who.as_bytes(), held.lease);
    match api.txn(&leads, &[give], &[], SIGN_PATIENCE) {
        Err(CallError::Refused(_)) => {
            // It does no harm if that sign is another leader's, who gives the next one soon.
            api.remove(SIGN, SIGN_PATIENCE)?;
            let seat = api.range("leader", Read::Agreed, SIGN_PATIENCE)?.one();
            Ok(seat.is_some_and(|seat| seat.mod_revision == held.leader))
        }
        answer => Ok(answer?.succeeded),
    }
}

/// How long is waited for a sign to be on the disks of most members of etcd.
const SIGN_PATIENCE: Duration = Duration::from_millis(500);
