//! The agent of a router or switch that knows nothing of keys: a thread that keeps its content
//! table as the controller's tables and the rules of caches want it.

mod openflow;
#[cfg(test)]
mod tests;

use crate::clock::Clock;
use ::openflow::Exits;
use cluster::{CacheId, Capabilities, ContentReport, PartitionCount, SwitchTables, TableSizes};
use content::{BATCH_MAX, Change, ContentTable, Counts, Entry};
use machine::Instant;
use openflow::OpenFlowSwitch;
use routes::Fib;
use std::collections::BTreeMap;
use std::net::{Ipv6Addr, SocketAddr};
use std::num::NonZero;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use std::{fmt, io};
use switch::RuleWatch;
use wire::{AddressPrefix, CacheRule, ServicePrefix};

/// Something that has a content table. It is waited for.
pub(crate) trait Device: Send + 'static {
    /// What kind of plane it is.
    fn kind(&self) -> DeviceKind;

    /// What it has, if somebody else may have changed it since it was asked last, or in any case if
    /// it `must` say. Entries that are as they should be (`wanted`) name their member.
    fn look(
        &mut self,
        must: bool,
        wanted: &dyn Fn(AddressPrefix) -> Option<Ipv6Addr>,
    ) -> Result<Option<Vec<Entry>>, String>;

    /// How much its table holds, as far as that is known by now.
    fn sizes(&self) -> TableSizes {
        TableSizes::default()
    }

    /// How many changes it may be asked for now.
    fn room(&self, now: Instant) -> usize;

    /// Makes these changes; says which it could not make, and why. After an error nobody knows
    /// which were made.
    fn apply(
        &mut self,
        now: Instant,
        changes: &[Change],
    ) -> Result<BTreeMap<AddressPrefix, String>, String>;

    /// Whether it can take many entries out at once: see [`sweep`](Self::sweep).
    fn sweeps(&self) -> bool {
        false
    }

    /// Takes all rules out that lead to a member, or all entries.
    fn sweep(&mut self, _: Instant, _: Sweep) -> Result<(), String> {
        Err("it takes entries out one by one".to_owned())
    }

    /// How many packets each prefix of a partition has matched, if it counts them. It is asked
    /// every [`COUNT_EVERY`].
    fn counts(&mut self) -> Result<Option<Vec<(AddressPrefix, u64)>>, String> {
        Ok(None)
    }
}

/// What a device may take out at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sweep {
    /// Rules that lead to this member.
    RulesTo(Ipv6Addr),
    /// Everything.
    All,
}

/// What a device is, and can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceKind {
    /// What people call it: as `keyway switch --plane` does.
    pub(crate) plane: &'static str,
    pub(crate) capabilities: Capabilities,
    /// Changes a second that it is asked for at most; `None`: as many as it makes.
    pub(crate) changes_per_second: Option<u32>,
}

/// Why there is no agent.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// Routes cannot be changed.
    #[error(transparent)]
    Routes(#[from] routes::Error),
    /// No switch can connect.
    #[error("cannot wait for an OpenFlow switch at {at}: {why}")]
    Listen {
        /// Where.
        at: SocketAddr,
        /// What the system says.
        why: io::Error,
    },
    /// There is no thread for it.
    #[error("cannot start the thread that keeps the content table: {0}")]
    Thread(io::Error),
}

/// How the content table of a device stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentSnapshot {
    /// As the controller is told.
    pub report: ContentReport,
    /// Changes that it has made.
    pub made: u64,
    /// Changes that it has refused.
    pub refused: u64,
    /// Requests by partition that went by the table, if the device counts them.
    pub loads: Vec<PartitionCount>,
}

/// The thread and its table. When the last of these is dropped, the device is given back with
/// nothing of ours in it; a process that ends otherwise leaves it as it is.
#[derive(Clone, Debug)]
pub struct ContentAgent(Arc<Thread>);

#[derive(Debug)]
struct Thread {
    shared: Arc<Shared>,
    runs: Option<JoinHandle<()>>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.shared.lock().ends = true;
        self.shared.more.notify_one();
        if self.runs.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that keeps the content table has died");
        }
    }
}

#[derive(Debug)]
struct Shared {
    kind: DeviceKind,
    state: Mutex<State>,
    /// Something is wanted.
    more: Condvar,
}

struct State {
    table: ContentTable,
    made: u64,
    refused: u64,
    trouble: Option<String>,
    sizes: TableSizes,
    ends: bool,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("counts", &self.table.counts()).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is wanted.
    fn change(&self, change: impl FnOnce(&mut ContentTable)) {
        change(&mut self.lock().table);
        self.more.notify_one();
    }
}

impl ContentAgent {
    /// One that keeps the routes of the network namespace that this thread is in.
    ///
    /// # Errors
    ///
    /// If this process may not change routes.
    pub fn for_routes(service: ServicePrefix) -> Result<Self, ContentError> {
        Self::start(service, Fib::open(service)?)
    }

    /// One that waits there for a switch that speaks OpenFlow 1.3. Members are behind these exits
    /// of it, and it takes so many changes in a second.
    ///
    /// # Errors
    ///
    /// If the address is taken.
    pub fn for_openflow(
        service: ServicePrefix,
        at: SocketAddr,
        exits: Exits,
        rules_per_second: NonZero<u32>,
    ) -> Result<Self, ContentError> {
        let switch = OpenFlowSwitch::listen(at, exits, rules_per_second);
        let switch = switch.map_err(|why| ContentError::Listen { at, why })?;
        Self::start(service, switch)
    }

    pub(crate) fn start(service: ServicePrefix, device: impl Device) -> Result<Self, ContentError> {
        let table = ContentTable::new(service);
        let state = State {
            table,
            made: 0,
            refused: 0,
            trouble: None,
            sizes: TableSizes::default(),
            ends: false,
        };
        let (kind, state) = (device.kind(), Mutex::new(state));
        let shared = Arc::new(Shared { kind, state, more: Condvar::new() });
        let keeper = Keeper::new(device, Arc::clone(&shared));
        let builder = Builder::new().name("content".into());
        let runs = builder.spawn(|| keeper.run()).map_err(ContentError::Thread)?;
        Ok(Self(Arc::new(Thread { shared, runs: Some(runs) })))
    }

    /// The controller's tables are these from now on.
    pub(super) fn install(&self, tables: &SwitchTables) {
        self.0.shared.change(|table| {
            let before = table.unroutable().to_vec();
            table.install(tables);
            let all = table.unroutable();
            if all == before {
                return;
            }
            let count = all.len();
            tracing::info!(count, "partitions whose keys are not found by addresses");
            for what in all.iter().take(UNROUTABLE_TOLD) {
                tracing::warn!(%what, "its keys are not found by addresses");
            }
        });
    }

    /// Who is to be told of all rules of caches.
    pub(super) fn watch(&self) -> Box<dyn RuleWatch> {
        Box::new(Watch(Arc::clone(&self.0.shared)))
    }

    pub(super) fn snapshot(&self) -> ContentSnapshot {
        let state = self.0.shared.lock();
        let State { table, made, refused, trouble, sizes, .. } = &*state;
        let Counts { partitions, rules, pending, failed } = table.counts();
        let DeviceKind { plane, capabilities, changes_per_second } = self.0.shared.kind;
        let report = ContentReport {
            plane: plane.to_owned(),
            capabilities: Capabilities { sizes: *sizes, ..capabilities },
            changes_per_second,
            partitions: partitions as u64,
            rules: rules as u64,
            pending: pending as u64,
            refused: failed as u64,
            unroutable: table.unroutable().len() as u64,
            trouble: trouble.clone(),
        };
        let loads = table.loads().collect();
        ContentSnapshot { report, made: *made, refused: *refused, loads }
    }
}

/// So many of the partitions that no prefix leads to are named in the log: mostly all have the same
/// reason.
const UNROUTABLE_TOLD: usize = 3;

/// Tells the agent of rules.
#[derive(Debug)]
struct Watch(Arc<Shared>);

impl RuleWatch for Watch {
    fn changed(&self, cache: CacheId, rule: &CacheRule) {
        self.0.change(|table| table.change_rule(cache, rule));
    }

    fn forgotten(&self, cache: CacheId) {
        self.0.change(|table| table.forget_cache(cache));
    }

    fn heard(&self, cache: CacheId, until: Instant) {
        self.0.lock().table.hear_cache(cache, until);
    }
}

/// What the thread works with.
struct Keeper<D> {
    device: D,
    shared: Arc<Shared>,
    clock: Clock,
    /// When the device is asked next whether somebody else has changed it.
    looks: Instant,
    /// When what it refused is tried again.
    retries: Instant,
    /// When it is asked next what it has counted.
    counts: Instant,
    /// Whether nobody knows what it has.
    unknown: bool,
}

impl<D: Device> Keeper<D> {
    fn new(device: D, shared: Arc<Shared>) -> Self {
        let mut clock = Clock::new();
        let now = clock.now();
        Self { device, shared, clock, looks: now, retries: now, counts: now, unknown: true }
    }

    fn run(mut self) {
        loop {
            let now = self.clock.now();
            if self.shared.lock().ends {
                return self.clear(now);
            }
            if now >= self.looks {
                self.look(now);
                self.shared.lock().sizes = self.device.sizes();
            }
            if !self.unknown && now >= self.counts {
                self.count(now);
            }
            if !self.unknown && self.turn(now) {
                continue;
            }
            let state = self.shared.lock();
            if !state.ends {
                // Whoever wants something wakes it, and else it is time to look.
                drop(self.shared.more.wait_timeout(state, LOOK_EVERY));
            }
        }
    }

    /// Asks the device for a batch of changes. Says whether there was something to do.
    fn turn(&mut self, now: Instant) -> bool {
        let room = self.device.room(now).min(BATCH_MAX);
        let (swept, changes) = {
            let mut state = self.shared.lock();
            state.table.handle_timeout(now);
            if now >= self.retries {
                state.table.try_again();
                self.retries = now + RETRY_EVERY;
            }
            let sweeps = room > 0 && self.device.sweeps();
            let swept = sweeps.then(|| state.table.poll_sweep()).flatten();
            (swept, state.table.poll(room))
        };
        let outcome = match swept {
            None if changes.is_empty() => return false,
            None => self.device.apply(now, &changes),
            Some(member) => {
                self.device.sweep(now, Sweep::RulesTo(member)).map(|()| BTreeMap::new())
            }
        };
        let mut state = self.shared.lock();
        match outcome {
            Ok(refused) => {
                state.made += (state.table.asked() - refused.len()) as u64;
                state.refused += refused.len() as u64;
                if let Some((prefix, why)) = refused.first_key_value() {
                    let count = refused.len();
                    tracing::warn!(%prefix, %why, count, "changes of the content table failed");
                }
                state.table.done(&refused.into_keys().collect());
            }
            Err(why) => {
                state.table.give_up();
                drop(state);
                self.suffer(now, why);
            }
        }
        true
    }

    /// Finds out what the device has, if that may be otherwise than it was left.
    fn look(&mut self, now: Instant) {
        self.looks = now + LOOK_EVERY;
        let shared = Arc::clone(&self.shared);
        let wanted = |prefix| shared.lock().table.wanted(prefix);
        match self.device.look(self.unknown, &wanted) {
            Ok(None) => {}
            Ok(Some(found)) => {
                let mut state = self.shared.lock();
                if state.trouble.take().is_some() {
                    tracing::info!("the device of the content table answers again");
                }
                let entries = found.len();
                if state.table.found(found) {
                    tracing::info!(entries, "what the content table's device has");
                }
                self.unknown = false;
            }
            Err(why) => self.suffer(now, why),
        }
    }

    /// Finds out what the device has counted.
    fn count(&mut self, now: Instant) {
        self.counts = now + COUNT_EVERY;
        match self.device.counts() {
            Ok(None) => {}
            Ok(Some(counts)) => self.shared.lock().table.count(counts),
            Err(why) => self.suffer(now, why),
        }
    }

    /// The device does not do as it is told: what it has is found out when it does again.
    fn suffer(&mut self, now: Instant, why: String) {
        (self.unknown, self.looks) = (true, now + LOOK_EVERY);
        let mut state = self.shared.lock();
        if state.trouble.as_ref() != Some(&why) {
            tracing::error!(%why, "the content table cannot be kept");
        }
        state.trouble = Some(why);
    }

    /// Takes everything out.
    fn clear(&mut self, now: Instant) {
        let give_up = now + CLEAR_MAX;
        self.shared.lock().table.clear();
        if !self.unknown && self.device.sweeps() && self.device.sweep(now, Sweep::All).is_ok() {
            return;
        }
        loop {
            let now = self.clock.now();
            if self.unknown || now >= give_up {
                tracing::warn!("some of the content table stays behind");
                return;
            }
            if !self.turn(now) {
                let state = self.shared.lock();
                if state.table.counts().pending == 0 {
                    return;
                }
                drop(self.shared.more.wait_timeout(state, TURN_PAUSE));
            }
        }
    }
}

/// How often the device is asked whether somebody else has changed it: soon enough after a link
/// comes back that nobody has noticed.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How often it is asked what it has counted: several times in what the controller takes for a
/// sample of load.
const COUNT_EVERY: Duration = Duration::from_secs(1);

/// How often it is asked again for what it refused.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// How long it may take to give the device back: a hundred thousand routes take some seconds.
const CLEAR_MAX: Duration = Duration::from_secs(8);

/// How long to wait for room for more changes.
const TURN_PAUSE: Duration = Duration::from_millis(5);

impl Device for Fib {
    fn kind(&self) -> DeviceKind {
        let capabilities = Capabilities::ADDRESSES;
        DeviceKind { plane: "routes", capabilities, changes_per_second: None }
    }

    fn look(
        &mut self,
        must: bool,
        wanted: &dyn Fn(AddressPrefix) -> Option<Ipv6Addr>,
    ) -> Result<Option<Vec<Entry>>, String> {
        let changed = self.has_changed().map_err(|why| why.to_string())?;
        let list = || self.routes(wanted).map_err(|why| why.to_string());
        (changed || must).then(list).transpose()
    }

    fn room(&self, _: Instant) -> usize {
        BATCH_MAX
    }

    fn apply(
        &mut self,
        _: Instant,
        changes: &[Change],
    ) -> Result<BTreeMap<AddressPrefix, String>, String> {
        let refused = Fib::apply(self, changes).map_err(|why| why.to_string())?;
        Ok(refused.into_iter().map(|(prefix, why)| (prefix, why.desc().to_owned())).collect())
    }
}
