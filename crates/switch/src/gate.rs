//! When an order of hot keys is taken, and when all of them are forgotten: the same for every kind
//! of switch, wherever it keeps its directory.

use cluster::{ClusterId, HotOrder, Incarnation, KeyspaceId, Lease, Tenure};
use machine::Instant;
use wire::{Generation, Revision};

/// What a switch's directory depends on besides packets.
#[derive(Debug)]
pub struct OrderGate {
    /// The lease of the switch as a whole: while one of its threads has it, nobody else forwards.
    tenure: Tenure,
    /// Whose tables came first; nobody else's are taken in this incarnation.
    cluster: Option<ClusterId>,
    /// Revision of the newest tables that are installed.
    tables: Revision,
    /// Whether the switch forwards by those.
    active: bool,
    /// Revision of the newest tables by which it stood by.
    stood_by: Revision,
    /// Revision of the installed order; 0 for none.
    installed: Revision,
    /// Revision of the newest order that was forgotten.
    forgotten: Revision,
}

impl OrderGate {
    /// For a switch in this incarnation, without tables, lease and hot keys.
    #[must_use]
    pub fn new(incarnation: Incarnation) -> Self {
        let none = Revision::NONE;
        let tenure = Tenure::new(incarnation);
        Self {
            tenure,
            cluster: None,
            tables: none,
            active: false,
            stood_by: none,
            installed: none,
            forgotten: none,
        }
    }

    /// Whether tables of this cluster may be installed: those that come first say whom the switch
    /// follows from then on. Two controllers that each think to be the only one would otherwise
    /// take it from each other with every order.
    pub fn claim(&mut self, cluster: ClusterId) -> bool {
        *self.cluster.get_or_insert(cluster) == cluster
    }

    /// The cluster that the switch follows, if it was given tables.
    #[must_use]
    pub fn cluster(&self) -> Option<ClusterId> {
        self.cluster
    }

    /// Whether an order is to be installed: unless it is of another cluster, there is a newer one,
    /// it was made for another incarnation, or for an earlier time in which the switch served, or
    /// the switch stands by. `generation_of` is the generation of a key in the directory.
    ///
    /// Nor is it if a key comes in with a generation that may have been here before, as after the
    /// directory was forgotten: a late answer to a read of then would prove the entry wrongly. The
    /// revision stays as it is, so that the controller sees that other generations are wanted.
    pub fn takes(
        &self,
        order: &HotOrder,
        generation_of: impl Fn(KeyspaceId, u64) -> Option<Generation>,
    ) -> bool {
        let newest = self.newest();
        let was_here_before = |key: &cluster::HotEntry| {
            generation_of(key.keyspace, key.keyhash) != Some(key.generation)
                && key.generation.order() <= newest
        };
        order.switch == self.tenure.incarnation()
            && self.cluster.is_none_or(|cluster| cluster == order.cluster)
            && self.active
            && (order.map.is_none() || order.map > self.stood_by)
            && order.revision > newest
            && !order.keys.iter().any(was_here_before)
    }

    /// Revision of the newest order that was installed in this incarnation, also if it was
    /// forgotten.
    #[must_use]
    pub fn newest(&self) -> Revision {
        self.installed.max(self.forgotten)
    }

    /// The order of this revision is installed now.
    pub fn took(&mut self, revision: Revision) {
        self.installed = revision;
    }

    /// Revision of the order that is installed; 0 for none, also after it was forgotten.
    #[must_use]
    pub fn installed(&self) -> Revision {
        self.installed
    }

    /// Tables of this revision are installed, by which the switch is active or stands by. Whether
    /// the directory is to be forgotten.
    #[must_use]
    pub fn follow(&mut self, revision: Revision, active: bool) -> bool {
        // Another thread may be ahead of the one that says so.
        if revision < self.tables {
            return false;
        }
        (self.tables, self.active) = (revision, active);
        if !active {
            self.stood_by = revision;
        }
        !active
    }

    /// Whether there is no lease at `now`: then the directory is to be forgotten before the switch
    /// takes one, since replies may have passed another.
    #[must_use]
    pub fn lapsed(&self, now: Instant) -> bool {
        !self.tenure.holds(now)
    }

    /// A lease for whoever has installed tables of this revision.
    pub fn renew(&mut self, installed: Revision, lease: &Lease) {
        self.tenure.renew(self.cluster, installed, lease);
    }

    /// The lease of the switch.
    #[must_use]
    pub fn tenure(&self) -> &Tenure {
        &self.tenure
    }

    /// The directory holds nothing any more.
    pub fn forgot(&mut self) {
        self.forgotten = self.forgotten.max(self.installed);
        self.installed = Revision::NONE;
    }
}
