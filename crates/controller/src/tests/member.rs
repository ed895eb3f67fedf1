//! A switch or node in a few lines: it installs what it is told, settles and copies after a while,
//! and serves while its lease holds, by its own clock.

use cluster::{
    CacheReport, Capabilities, ClockAhead, ClusterId, ContentReport, Epoch, HotCount, HotKey,
    HotOrder, Incarnation, Install, KeyName, NodeCount, NodeId, NodeReport, Order, Partition,
    PartitionCount, PartitionId, PartitionSample, Resources, Settled, StoreId, Stored,
    SwitchCounters, Tenure,
};
use machine::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::{Generation, Revision};

/// One process with its memory.
#[derive(Clone, Debug)]
pub(super) struct Obedient {
    pub(super) alive: bool,
    /// It runs, and the controller cannot reach it.
    pub(super) cut_off: bool,
    /// Installs nothing, though it answers.
    pub(super) stuck: bool,
    /// Its clock goes this many thousandths of the controller's.
    pub(super) clock_permille: u64,
    /// Milliseconds by which its clock was set forward (or back) since.
    pub(super) clock_set_ms: i64,
    /// How far it was told that the cluster's clock is ahead of its own, if it is a node.
    pub(super) clock_told: Option<ClockAhead>,
    pub(super) store: StoreId,
    pub(super) cluster: Option<ClusterId>,
    pub(super) tenure: Tenure,
    /// The same for requests that pass no switch, if it is a node.
    pub(super) direct: Tenure,
    /// The last of those that its earlier incarnations had. What they have lent by it is shown
    /// though they have ended.
    lent: Tenure,
    /// The incarnations that its store remembers; an older copy of it lacks the last.
    pub(super) past: Vec<Incarnation>,
    /// What it holds of all partitions, as a number.
    pub(super) holds: u64,
    pub(super) installed: Option<Install>,
    /// Revision that it says it has installed, whatever that may be.
    pub(super) claims: Option<Revision>,
    pub(super) counts: Vec<PartitionCount>,
    /// What it counts of partitions, if it is a node.
    pub(super) node_counts: Vec<NodeCount>,
    /// What a node says that it holds.
    pub(super) stored: Vec<Stored>,
    /// What it takes of its machine, if it is a node.
    pub(super) resources: Resources,
    /// What it says of partitions whose tail it is.
    pub(super) samples: Vec<PartitionSample>,
    /// The hot keys that it has installed.
    pub(super) hot: HotOrder,
    /// The newest order of hot keys that it has on record, if it is a node.
    pub(super) hot_known: Revision,
    /// It takes no order with stays up to this one.
    pub(super) hot_floor: u64,
    /// It is of a kind that has no copies.
    pub(super) takes_no_hot: bool,
    /// What it says of its keys, if it is a node or a cache.
    pub(super) told: Vec<HotKey>,
    /// Those of them that are too hot for it, if it is a cache.
    pub(super) crowding: Vec<KeyName>,
    /// Keys of its partitions that are delegated without the order's wish.
    pub(super) recall: u64,
    /// What it has counted of hot keys, if it is a switch.
    pub(super) hot_counts: Vec<HotCount>,
    /// It can let writes of hot keys go anywhere, if it is a switch.
    pub(super) delegates: bool,
    /// The table of content addresses that it keeps, if it is a switch that keeps one.
    pub(super) content: Option<ContentReport>,
    pub(super) requests: u64,
    /// Clients ask it past the switch, if it is a node.
    pub(super) asked_directly: bool,
    /// It is about to end.
    pub(super) leaving: bool,
    /// When it came to the epoch that each of its partitions has.
    entered: BTreeMap<PartitionId, (Epoch, Instant)>,
    /// Copies that have come to their end; as durable as its store.
    caught_up: BTreeSet<(PartitionId, Revision)>,
    /// Partitions that it has been given and has not forgotten: its replica, and when it lost that.
    /// As durable as its store.
    held: BTreeMap<PartitionId, (Revision, Option<Instant>)>,
}

impl Obedient {
    pub(super) fn new(number: u64) -> Self {
        Self {
            alive: true,
            cut_off: false,
            stuck: false,
            clock_permille: 1_000,
            clock_set_ms: 0,
            clock_told: None,
            store: StoreId(number),
            cluster: None,
            tenure: Tenure::new(Incarnation(number * 1_000)),
            direct: Tenure::new(Incarnation(number * 1_000)),
            lent: Tenure::new(Incarnation(number * 1_000)),
            past: Vec::new(),
            holds: 0,
            installed: None,
            claims: None,
            counts: Vec::new(),
            node_counts: Vec::new(),
            stored: Vec::new(),
            resources: Resources::default(),
            samples: Vec::new(),
            hot: HotOrder::default(),
            hot_known: Revision::NONE,
            hot_floor: 0,
            takes_no_hot: false,
            told: Vec::new(),
            crowding: Vec::new(),
            recall: 0,
            hot_counts: Vec::new(),
            delegates: false,
            content: None,
            requests: 5,
            asked_directly: false,
            leaving: false,
            entered: BTreeMap::new(),
            caught_up: BTreeSet::new(),
            held: BTreeMap::new(),
        }
    }

    /// What its clock shows; it began long before the controller's.
    pub(super) fn clock(&self, now: Instant) -> Instant {
        let steady = 100_000_000_000_000 + now.0 / 1_000 * self.clock_permille;
        Instant(steady.saturating_add_signed(self.clock_set_ms * 1_000_000))
    }

    /// Its process is started anew.
    pub(super) fn restart(&mut self) {
        let Incarnation(incarnation) = self.tenure.incarnation();
        if self.direct.until() > self.lent.until() {
            self.lent = self.direct;
        }
        self.tenure = Tenure::new(Incarnation(incarnation + 1));
        self.direct = self.tenure;
        if matches!(self.installed, Some(Install::Tables(_) | Install::Cache(_))) {
            self.cluster = None;
        }
        self.past.push(Incarnation(incarnation));
        (self.installed, self.claims, self.clock_told) = (None, None, None);
        self.hot = HotOrder::default();
        self.entered.clear();
    }

    /// Its process is started anew, and it has forgotten all.
    pub(super) fn wipe(&mut self, store: u64) {
        self.restart();
        (self.store, self.cluster) = (StoreId(store), None);
        self.caught_up.clear();
        self.held.clear();
        self.past.clear();
    }

    pub(super) fn revision(&self) -> Revision {
        self.claims.or(self.installed.as_ref().map(Install::revision)).unwrap_or_default()
    }

    pub(super) fn obey(&mut self, now: Instant, order: &Order) {
        if let Some(install) = order.install.as_ref().filter(|new| self.takes(new)) {
            self.cluster = Some(cluster_of(install));
            if let Install::Assignment(assignment) = install {
                self.enter(now, assignment.node, &assignment.partitions);
            }
            self.installed = Some(install.clone());
        }
        let mine = order.clock.filter(|told| told.incarnation == self.tenure.incarnation());
        self.clock_told = mine.map(|told| told.ahead).or(self.clock_told);
        if let Some(lease) = &order.lease {
            self.tenure.renew(self.cluster, self.revision(), lease);
        }
        if let Some(lease) = &order.direct {
            self.direct.renew(self.cluster, self.revision(), lease);
        }
        if let Some(hot) = order.hot.as_ref().filter(|new| self.takes_hot(new)) {
            self.hot = HotOrder::clone(hot);
        }
    }

    fn takes_hot(&self, new: &HotOrder) -> bool {
        let may = match &self.installed {
            Some(Install::Tables(tables)) => {
                tables.active && new.switch == self.tenure.incarnation()
            }
            Some(Install::Assignment(_)) => true,
            Some(Install::Cache(_)) => false,
            None => false,
        };
        let had = new.keys.iter().any(|it| it.generation <= Generation::new(self.hot_floor));
        may && !had && !self.takes_no_hot && new.revision > self.hot.revision
    }

    fn takes(&self, install: &Install) -> bool {
        let mine = match install {
            Install::Tables(_) | Install::Cache(_) => true,
            Install::Assignment(it) => it.store == self.store,
        };
        let mine = mine && self.cluster.is_none_or(|own| own == cluster_of(install));
        mine && !self.stuck && install.revision() > self.revision()
    }

    fn enter(&mut self, now: Instant, me: NodeId, partitions: &[Partition]) {
        self.entered.retain(|id, _| partitions.iter().any(|p| p.id == *id));
        for partition in partitions {
            let known = self.entered.entry(partition.id).or_insert((partition.epoch, now));
            if known.0 != partition.epoch {
                *known = (partition.epoch, now);
            }
        }
        let since = |id: PartitionId| partitions.iter().find(|p| p.id == id)?.since(me);
        self.caught_up.retain(|(id, at)| since(*id) == Some(Revision::new((*at).get())));
        for (id, (replica, lost)) in &mut self.held {
            if since(*id) != Some(Revision::new((*replica).get())) {
                lost.get_or_insert(now);
            }
        }
        for partition in partitions {
            // What it still held of another replica it forgets now, whatever it takes.
            self.held.extend(partition.since(me).map(|since| (partition.id, (since, None))));
        }
    }

    /// Partitions of which it still holds something without a replica, if it takes so long to
    /// forget.
    pub(super) fn vacating(&self, now: Instant, forgetting: Duration) -> Vec<PartitionId> {
        let left = self.held.iter().filter(|(_, (_, lost))| match lost {
            Some(at) => *at + forgetting > now,
            None => false,
        });
        left.map(|(id, _)| *id).collect()
    }

    /// Whether it holds something of a partition, with a replica or without.
    pub(super) fn holds(&self, id: PartitionId, now: Instant, forgetting: Duration) -> bool {
        let held = self.held.get(&id);
        held.is_some_and(|(_, lost)| lost.is_none_or(|at| at + forgetting > now))
    }

    /// The partitions that it has been given.
    pub(super) fn partitions(&self) -> &[Partition] {
        match &self.installed {
            Some(Install::Assignment(assignment)) => &assignment.partitions,
            Some(Install::Tables(_) | Install::Cache(_)) | None => &[],
        }
    }

    /// Whether it answers clients now.
    pub(super) fn serves(&self, now: Instant) -> bool {
        self.alive && self.tenure.holds(self.clock(now))
    }

    /// Whether it answers requests that pass no switch.
    pub(super) fn answers_directly(&self, now: Instant) -> bool {
        self.serves(now) && self.direct.holds(self.clock(now))
    }

    /// Whether a cache may still show what it, or an earlier incarnation of it, has lent.
    pub(super) fn lends(&self, now: Instant) -> bool {
        self.direct.holds(self.clock(now)) || self.has_lent(now)
    }

    /// The same of its earlier incarnations alone.
    pub(super) fn has_lent(&self, now: Instant) -> bool {
        self.lent.holds(self.clock(now))
    }

    pub(super) fn has_entered(&self, partition: &Partition) -> Option<Instant> {
        let (epoch, at) = self.entered.get(&partition.id)?;
        (*epoch == partition.epoch).then_some(*at)
    }

    pub(super) fn note_caught_up(&mut self, partition: &Partition, me: NodeId) {
        self.caught_up.extend(partition.since(me).map(|since| (partition.id, since)));
    }

    pub(super) fn has_caught_up(&self, partition: &Partition, me: NodeId) -> bool {
        partition.since(me).is_some_and(|since| self.caught_up.contains(&(partition.id, since)))
    }

    pub(super) fn is_settled(&self, closed: &Partition, now: Instant, settling: Duration) -> bool {
        let entered = self.has_entered(closed);
        !closed.open && entered.is_some_and(|at| at + settling <= now)
    }

    pub(super) fn counters(&self) -> SwitchCounters {
        let (revision, partitions) = (self.revision(), self.counts.clone());
        let cluster = self.cluster;
        let (hot_revision, hot) = (self.hot.revision, self.hot_counts.clone());
        let delegates = self.delegates;
        let capabilities = Capabilities { delegates, ..Capabilities::PROGRAM };
        SwitchCounters {
            revision,
            cluster,
            partitions,
            hot_revision,
            hot,
            capabilities,
            content: self.content.clone(),
            leaving: self.leaving,
            ..SwitchCounters::default()
        }
    }

    pub(super) fn cache_report(&self) -> CacheReport {
        CacheReport {
            revision: self.revision(),
            cluster: self.cluster,
            leaving: self.leaving,
            entries: 3,
            room_entries: 10,
            hits: 7,
            misses: 2,
            rules: 3,
            rules_wanted: 4,
            hot: self.told.clone(),
            crowding: self.crowding.clone(),
            ..CacheReport::default()
        }
    }

    fn as_settled(&self, partition: &Partition) -> Settled {
        let Partition { id, epoch, .. } = *partition;
        Settled { partition: id, epoch, digest: Some(self.holds), ..Settled::default() }
    }

    /// What a node says of itself if it takes so long to settle, and so long to forget.
    pub(super) fn report(
        &self,
        now: Instant,
        me: NodeId,
        [settling, forgetting]: [Duration; 2],
    ) -> NodeReport {
        let closed = self.partitions().iter().filter(|p| !p.open);
        let settled = closed.filter(|p| self.has_entered(p).is_some_and(|at| at + settling <= now));
        let joined = self.partitions().iter().filter(|p| p.learner() == Some(me));
        NodeReport {
            revision: self.revision(),
            store: self.store,
            cluster: self.cluster,
            past: self.past.clone(),
            recorded: self.revision(),
            settled: settled.map(|p| self.as_settled(p)).collect(),
            caught_up: joined
                .filter(|p| self.has_caught_up(p, me))
                .map(|p| (p.id, p.epoch))
                .collect(),
            copies: Vec::new(),
            vacating: self.vacating(now, forgetting),
            verify: 0,
            verified: Vec::new(),
            hot: self.told.clone(),
            recall: self.recall,
            hot_revision: self.hot.revision,
            hot_known: Revision::new((self.hot_known.max(self.hot.revision)).get()),
            requests: self.requests,
            rate: 0,
            pending: 1,
            waiting: 0,
            busy_us: 0,
            resources: self.resources,
            stored: self.stored.clone(),
            samples: self.samples.clone(),
            counts: self.node_counts.clone(),
            clock: self.clock_told,
            asked_directly: self.asked_directly,
            leaving: self.leaving,
        }
    }
}

fn cluster_of(install: &Install) -> ClusterId {
    match install {
        Install::Tables(tables) => tables.cluster,
        Install::Assignment(assignment) => assignment.cluster,
        Install::Cache(tables) => tables.cluster,
    }
}

/// What a switch says of a sound table of content addresses on such a plane.
pub(super) fn content_on(capabilities: Capabilities) -> ContentReport {
    ContentReport {
        plane: "a plane".into(),
        capabilities,
        changes_per_second: None,
        partitions: 6,
        rules: 1,
        pending: 0,
        refused: 0,
        unroutable: 0,
        trouble: None,
    }
}
