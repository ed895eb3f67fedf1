//! From an order to a report: what a member does with what the controller sends, however it came.

#[cfg(test)]
mod tests;

use super::leaving::Leaving;
use super::node::ShardOrders;
use super::obedience::Obedience;
use super::{CacheHandle, NodeHandle, SwitchHandle, SwitchSnapshot};
use crate::clock::Clock;
use crate::keyring::Keyring;
use crate::mailbox::{MailError, blocking};
use cluster::{
    Assignment, CacheTables, EnvelopeOrder, HotOrder, Incarnation, Install, InstallError,
    KeyspaceId, Map, MapError, Match, MemberReport, NodeReport, NodeSpec, ORDERS_VERSION, Order,
    Partition, Report, SwitchCounters, Unheeded, Versions, is_plausible_revision,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// A member of this process.
#[derive(Clone, Debug)]
pub enum MemberHandle {
    /// A cache.
    Cache(CacheHandle),
    /// A switch.
    Switch(SwitchHandle),
    /// A storage node.
    Node(NodeHandle),
}

/// Why an order was not carried out. The member has then what it had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// Of a leader that is not obeyed (any more).
    #[error(transparent)]
    Unheeded(#[from] Unheeded),
    /// Of a version that this build does not know.
    #[error(
        "the controller gives orders of version {0}, and this build speaks up to {ORDERS_VERSION}: \
         upgrade this process too, or run controllers of an older version"
    )]
    Version(u16),
    /// An order for the other role.
    #[error("this is a {is}, and the order is one for a {wanted}: check the control addresses")]
    WrongRole {
        /// What this is.
        is: &'static str,
        /// What the order is for.
        wanted: &'static str,
    },
    /// What is to be installed is for another node or cache, or for one at another place.
    #[error("the order is for {wanted}, and this is {is}: check the configuration of both")]
    WrongNode {
        /// This node.
        is: String,
        /// The one that the assignment is for.
        wanted: String,
    },
    /// The assignment contradicts itself.
    #[error("unsound assignment: {0}")]
    Unsound(String),
    /// The hot keys contradict themselves.
    #[error("hot keys: {0}")]
    UnsoundHot(InstallError),
    /// The switch cannot hold the tables.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// A thread could not be reached.
    #[error("a thread of this process cannot be reached: {0}")]
    Unreached(#[from] MailError),
}

/// Whether an order of hot keys can be of this time.
fn may_be(order: &HotOrder) -> bool {
    let can_be = is_plausible_revision(Clock::new().now(), order.revision);
    if !can_be {
        let revision = order.revision;
        tracing::warn!(%revision, "hot keys from far ahead are not taken: is a clock wrong?");
    }
    can_be
}

impl MemberHandle {
    /// Carries an order out and says how the member is afterwards.
    ///
    /// A node to which the assignment does not belong, because it has another memory by now or data
    /// of another cluster, does not install it, and its report shows why.
    ///
    /// # Errors
    ///
    /// If the order was not carried out, or not by all threads in time.
    pub async fn obey(&self, order: Order) -> Result<Report, OrderError> {
        // One after the other: what an older leader said is done before a newer one is heard.
        let version = order.version;
        let heard = self.obedience().hear(self.incarnation(), order).await;
        let (mut superior, order) = heard?;
        if version > ORDERS_VERSION {
            return Err(OrderError::Version(version));
        }
        // Of one for another incarnation nothing is left by now.
        let may_end = order.may_end;
        let mut order = order;
        if let Some(keys) = order.keys.take() {
            self.take_keys(keys).await;
        }
        let report = self.carry_out(order).await?;
        let keys = self.keyring().and_then(Keyring::number);
        let report = Report { keys, ..report };
        self.leaving().note(may_end);
        superior.belongs_to(match &report.state {
            MemberReport::Switch(it) => it.cluster,
            MemberReport::Node(it) => it.cluster,
            MemberReport::Cache(it) => it.cluster,
        });
        Ok(report)
    }

    /// Takes keys of envelopes. Whoever could not is told them again, for its report shows that.
    async fn take_keys(&self, keys: Arc<EnvelopeOrder>) {
        let Some(keyring) = self.keyring() else {
            tracing::warn!(
                "the controller gives keys of envelopes, and this process was started without: \
                 restart it with the same [security] as the controller's"
            );
            return;
        };
        match self {
            Self::Cache(_) | Self::Node(_) => keyring.take(keys),
            Self::Switch(switch) => {
                // It talks to the kernel, which no task should wait for.
                let switch = switch.clone();
                if let Err(why) = blocking(move || switch.take_keys(keys)).await {
                    tracing::error!(%why, "the kernel does not take the keys of envelopes");
                }
            }
        }
    }

    /// The keys of envelopes, if it lets nothing else through.
    pub(crate) fn keyring(&self) -> Option<&Keyring> {
        match self {
            Self::Cache(cache) => cache.keyring(),
            Self::Switch(switch) => switch.keyring(),
            Self::Node(node) => node.keyring(),
        }
    }

    /// Whom it obeys.
    #[must_use]
    pub(crate) fn obedience(&self) -> &Obedience {
        match self {
            Self::Cache(cache) => cache.obedience(),
            Self::Switch(switch) => switch.obedience(),
            Self::Node(node) => node.obedience(),
        }
    }

    pub(crate) fn leaving(&self) -> &Leaving {
        match self {
            Self::Cache(cache) => cache.leaving(),
            Self::Switch(switch) => switch.leaving(),
            Self::Node(node) => node.leaving(),
        }
    }

    fn incarnation(&self) -> Incarnation {
        match self {
            Self::Cache(cache) => cache.incarnation(),
            Self::Switch(switch) => switch.incarnation(),
            Self::Node(node) => node.incarnation(),
        }
    }

    async fn carry_out(&self, order: Order) -> Result<Report, OrderError> {
        let Order { install, clock, lease, direct, hot, verify, rules_max, .. } = order;
        // One from far ahead would be the last that is taken. Tables and lease are good as ever.
        let hot = hot.filter(|order| may_be(order));
        if let Some(hot) = &hot {
            hot.check().map_err(OrderError::UnsoundHot)?;
        }
        match self {
            Self::Cache(cache) => tell_cache(cache, install, rules_max).await,
            Self::Switch(switch) => {
                let tables = match install {
                    None => None,
                    Some(Install::Tables(tables)) => Some(tables),
                    Some(other) => return Err(wrong_role("switch", &other)),
                };
                let to_ask = switch.clone();
                let command = move || to_ask.command(tables.as_ref(), lease, hot, PATIENCE);
                // It talks to the kernel, too, which no task should wait for.
                let snapshot = blocking(command).await?;
                let SwitchSnapshot { cluster, revision, hot_revision, .. } = snapshot;
                let leaving = switch.leaving().is_begun();
                let state = snapshot.counters.report(cluster, revision, hot_revision);
                let content = snapshot.content.map(|content| content.report);
                let state = SwitchCounters { leaving, content, ..state };
                let state = MemberReport::Switch(state);
                Ok(Report {
                    incarnation: switch.incarnation(),
                    at: snapshot.at,
                    versions: Versions::ours(),
                    keys: None,
                    state,
                })
            }
            Self::Node(node) => {
                let assignment = match install {
                    None => None,
                    Some(Install::Assignment(assignment)) => accept(node, assignment)?,
                    Some(other) => return Err(wrong_role("node", &other)),
                };
                let wanted = assignment.as_ref().map(|assignment| assignment.cluster);
                let to_take =
                    ShardOrders { install: assignment, clock, lease, direct, hot, verify };
                let snapshot = node.command(&to_take, PATIENCE).await?;
                if let (Some(wanted), Some(held)) = (wanted, snapshot.report.cluster)
                    && wanted != held
                {
                    tracing::warn!(
                        "the assignment is of cluster {:016x}, and this node holds data of \
                         cluster {:016x}: give it an empty data directory, or start it with \
                         the configuration of its own cluster",
                        wanted.0,
                        held.0
                    );
                }
                let leaving = node.leaving().is_begun();
                let report = NodeReport { leaving, ..snapshot.report };
                let state = MemberReport::Node(Box::new(report));
                Ok(Report {
                    incarnation: node.incarnation(),
                    at: snapshot.at,
                    versions: Versions { store: node.store_format(), ..Versions::ours() },
                    keys: None,
                    state,
                })
            }
        }
    }
}

/// Gives a cache its tables, if there are any, and the room for its rules. Says how it is then.
async fn tell_cache(
    cache: &CacheHandle,
    install: Option<Install>,
    rules_max: Option<u64>,
) -> Result<Report, OrderError> {
    let tables = match install {
        None => None,
        Some(Install::Cache(tables)) => Some(for_cache(cache, tables)?),
        Some(other) => return Err(wrong_role("cache", &other)),
    };
    let to_ask = cache.clone();
    let snapshot = blocking(move || to_ask.command(tables, rules_max, PATIENCE)).await?;
    Ok(Report {
        incarnation: cache.incarnation(),
        at: snapshot.at,
        versions: Versions::ours(),
        keys: None,
        state: MemberReport::Cache(snapshot.report),
    })
}

/// The tables, if they are for this cache.
fn for_cache(cache: &CacheHandle, tables: CacheTables) -> Result<CacheTables, OrderError> {
    let is = cache.spec().id;
    if tables.cache == is {
        return Ok(tables);
    }
    let (is, wanted) = (format!("cache {is}"), format!("cache {}", tables.cache));
    Err(OrderError::WrongNode { is, wanted })
}

/// Why a member of one role does not take this.
fn wrong_role(is: &'static str, install: &Install) -> OrderError {
    let wanted = match install {
        Install::Tables(_) => "switch",
        Install::Assignment(_) => "node",
        Install::Cache(_) => "cache",
    };
    OrderError::WrongRole { is, wanted }
}

/// How long an order may take, to be carried out here or to be answered from afar: who takes longer
/// is asked again, and missed soon after. Threads answer after each batch, within a few
/// milliseconds; a busy machine, or a disk, makes that tens.
pub(super) const PATIENCE: Duration = Duration::from_millis(200);

/// The assignment, if it is sound and for this node as it is now.
fn accept(
    node: &NodeHandle,
    assignment: Assignment,
) -> Result<Option<Arc<Assignment>>, OrderError> {
    check(&node.spec(), &assignment)?;
    let (is, wanted) = (node.store(), assignment.store);
    if is != wanted {
        tracing::warn!(
            "the assignment is for a node with memory {:016x}, and this one has {:016x}; \
             it serves nothing until the controller has seen that",
            wanted.0,
            is.0
        );
        return Ok(None);
    }
    Ok(Some(Arc::new(assignment)))
}

/// An assignment comes from outside; the machine relies on it. So whatever the machine takes for
/// granted is checked here.
fn check(me: &NodeSpec, assignment: &Assignment) -> Result<(), OrderError> {
    let Assignment { node, nodes, keyspaces, .. } = assignment;
    let Some(wanted) = nodes.iter().find(|spec| spec.id == *node) else {
        return Err(OrderError::Unsound(format!("node {node} is not in its own node table")));
    };
    if wanted != me {
        let (is, wanted) = (describe(me), describe(wanted));
        return Err(OrderError::WrongNode { is, wanted });
    }
    let unsound = |why: MapError| OrderError::Unsound(why.to_string());
    Map { nodes: nodes.clone(), ..Map::default() }.check().map_err(unsound)?;
    if !assignment.switch.is_set() {
        return Err(OrderError::Unsound("the switch has no port".into()));
    }
    let known: BTreeSet<KeyspaceId> = keyspaces.iter().map(|keyspace| keyspace.id).collect();
    if known.len() != keyspaces.len() {
        return Err(OrderError::Unsound("a keyspace id is there twice".into()));
    }
    check_partitions(me, assignment, &known).map_err(OrderError::Unsound)
}

fn describe(spec: &NodeSpec) -> String {
    let NodeSpec { id, endpoint, shards } = spec;
    format!("node {id} at {endpoint} with {shards} shards")
}

fn check_partitions(
    me: &NodeSpec,
    assignment: &Assignment,
    known: &BTreeSet<KeyspaceId>,
) -> Result<(), String> {
    let nodes: BTreeSet<_> = assignment.nodes.iter().map(|spec| spec.id).collect();
    let mut ids = BTreeSet::new();
    let mut intervals: BTreeMap<KeyspaceId, Vec<(Match, Match)>> = BTreeMap::new();
    for partition in &assignment.partitions {
        let Partition { id, keyspace, first, last, chain, since, .. } = partition;
        let members: BTreeSet<_> = chain.iter().collect();
        let sound = (1..=wire::CHAIN_MAX).contains(&chain.len())
            && since.len() == chain.len()
            && !partition.members().is_empty()
            && members.len() == chain.len()
            && chain.iter().all(|member| nodes.contains(member));
        if !sound || members.contains(&me.id) == partition.kept_since(me.id).is_some() {
            return Err(format!("partition {id} has an impossible chain"));
        }
        if id.0 == 0 || !ids.insert(id) || !known.contains(keyspace) || first > last {
            return Err(format!("partition {id} is there twice, empty, or of no keyspace"));
        }
        intervals.entry(*keyspace).or_default().push((*first, *last));
    }
    for (keyspace, mut intervals) in intervals {
        intervals.sort_unstable();
        let overlap = intervals.windows(2).any(|pair| match pair {
            [(_, last), (first, _)] => first <= last,
            _ => false,
        });
        if overlap {
            return Err(format!("partitions of keyspace {keyspace} overlap"));
        }
    }
    Ok(())
}
