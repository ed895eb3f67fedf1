//! A backend as reads see it: what was fetched is in hand until the next sync, and one that goes
//! away is waited for.

use super::{Backend, FoundValue, Trouble, WantedValue};
use machine::Instant;
use node::engine::EngineError;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::Room;

/// The backend, and what was fetched from it since the last sync.
pub(super) struct Sight<B> {
    backend: B,
    fetched: BTreeMap<Vec<u8>, FoundValue>,
    /// Of names without a value in hand, whether they have one.
    known: BTreeMap<Vec<u8>, bool>,
    /// The first error for good.
    failed: Option<EngineError>,
    /// When to see how much room there is.
    look_at: Instant,
}

/// From one look to the next: one round trip, and what comes in meanwhile is the backend's to
/// refuse.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Times that a backend that is gone is tried again before the engine has failed: with
/// [`TRY_EVERY`] a minute, in which a Redis of some gigabytes is up again.
pub const TRIES_MAX: u32 = 300;

/// From one try to the next, besides what the try takes.
pub const TRY_EVERY: Duration = Duration::from_millis(200);

impl<B: Backend> Sight<B> {
    pub(super) fn new(backend: B) -> Self {
        let look_at = Instant(0);
        Self { backend, fetched: BTreeMap::new(), known: BTreeMap::new(), failed: None, look_at }
    }

    pub(super) fn backend_mut(&mut self) -> &mut B {
        &mut self.backend
    }

    /// Forgets what was fetched.
    pub(super) fn forget(&mut self) {
        self.fetched.clear();
        self.known.clear();
    }

    /// What was fetched under a name, if anything was.
    pub(super) fn found(&self, name: &[u8]) -> Option<&FoundValue> {
        self.fetched.get(name)
    }

    pub(super) fn health(&self) -> Result<(), EngineError> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Does what may fail, again and again while the backend does nothing.
    pub(super) fn attempt<T>(&mut self, what: impl Fn(&mut B) -> Result<T, Trouble>) -> Option<T> {
        self.insist(what, false).ok().flatten()
    }

    /// Changes something, and does not wait if the backend refuses that: it says why.
    pub(super) fn change(
        &mut self,
        what: impl Fn(&mut B) -> Result<(), Trouble>,
    ) -> Result<Option<()>, String> {
        self.insist(what, true)
    }

    /// What there is room for. If the backend is gone, whoever asks for something finds out.
    pub(super) fn room(&mut self, now: Instant) -> Room {
        if self.look_at <= now && self.failed.is_none() {
            self.look_at = now + LOOK_EVERY;
            if let Err(Trouble::Lost(why)) = self.backend.look() {
                self.failed = Some(EngineError(why));
            }
        }
        self.backend.room()
    }

    fn insist<T>(
        &mut self,
        what: impl Fn(&mut B) -> Result<T, Trouble>,
        yields: bool,
    ) -> Result<Option<T>, String> {
        if self.failed.is_some() {
            return Ok(None);
        }
        let backend = &mut self.backend;
        let (mut tries, mut waited) = (0, false);
        let mut outcome = what(backend);
        loop {
            let (why, is_gone) = match outcome {
                Ok(done) => {
                    if waited {
                        tracing::info!("the backend is back");
                    }
                    return Ok(Some(done));
                }
                Err(Trouble::Refuses(why)) if yields => return Err(why),
                Err(Trouble::Busy(why) | Trouble::Refuses(why)) => (why, false),
                Err(Trouble::Gone(why)) if tries < TRIES_MAX => (why, true),
                Err(Trouble::Gone(why) | Trouble::Lost(why)) => {
                    self.failed = Some(EngineError(why));
                    return Ok(None);
                }
            };
            if !waited {
                tracing::warn!(%why, "the backend does nothing: waiting, and serving nobody");
            }
            waited = true;
            std::thread::park_timeout(TRY_EVERY);
            outcome = if is_gone {
                tries += 1;
                backend.reconnect().and_then(|()| what(backend))
            } else {
                what(backend)
            };
        }
    }

    /// Fetches what was not fetched yet.
    pub(super) fn fetch(&mut self, mut wanted: Vec<WantedValue>) {
        wanted.retain(|it| !self.fetched.contains_key(&it.name));
        wanted.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        wanted.dedup_by(|a, b| a.name == b.name);
        if wanted.is_empty() {
            return;
        }
        if let Some(found) = self.attempt(|backend| backend.fetch(&wanted)) {
            self.fetched.extend(wanted.into_iter().map(|it| it.name).zip(found));
        }
    }

    /// Asks which of these names have a value, if that is not known yet.
    pub(super) fn look_for(&mut self, mut names: Vec<Vec<u8>>) {
        names.retain(|name| !self.fetched.contains_key(name) && !self.known.contains_key(name));
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return;
        }
        if let Some(there) = self.attempt(|backend| backend.exist(&names)) {
            self.known.extend(names.into_iter().zip(there));
        }
    }

    /// Whether a name that was looked for has a value.
    pub(super) fn is_there(&self, name: &[u8]) -> bool {
        let fetched = self.fetched.get(name).map(|found| found.value.is_some());
        fetched.or_else(|| self.known.get(name).copied()).unwrap_or(false)
    }
}
