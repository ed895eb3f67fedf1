//! `/metrics`: what the roles of this process count, under the names of `spec/layout.toml`.

mod process;
mod samples;

use crate::driver::{
    CacheSnapshot, ContentSnapshot, Latency, NodeHandle, NodeSnapshot, ShardSnapshot as Shard,
    SwitchSnapshot,
};
use crate::keyring::Keyring;
use crate::roles::Roles;
use cluster::{CacheReport, HotCount, Member, NodeCount, NodeId, Resources, Stored, Volume};
use controller::{CopyStatus, MemberState, PlacementStatus, Status};
use std::collections::BTreeMap;
use wire::layout::metric;
use wire::metric::Metric;
use wire::{Code, DropReason, EnvelopeRefusal, Op};

pub use samples::{Distribution, Sample, Samples, Source, Sources};

/// The content type of what [`expose`] returns.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Asks every role for its counters and writes them in the exposition format. Of a role that does
/// not answer in time only that is said: it must not hide the others.
#[must_use]
pub fn expose(roles: &Roles) -> String {
    let mut samples = Samples::default();
    let mut up: Vec<(String, bool)> = Vec::new();
    if let Some(switch) = &roles.switch {
        let answered = switch.snapshot().map(|it| samples.add_switch(&it));
        up.push(("switch".to_owned(), answered.is_ok()));
        samples.add(&metric::SWITCH_OVERFLOWED, [Sample::plain(switch.overflowed())]);
    }
    samples.add_obedience(roles);
    samples.add_envelopes(roles);
    if !roles.nodes.is_empty() {
        let mut answered = Vec::new();
        for node in &roles.nodes {
            let (id, snapshot) = (node.spec().id, node.snapshot());
            up.push((format!("node-{id}"), snapshot.is_ok()));
            answered.extend(snapshot.ok().map(|it| (id, it)));
        }
        samples.add_nodes(&answered);
        let row =
            |node: &NodeHandle| Sample::labelled([node.spec().id.to_string()], node.overflowed());
        samples.add(&metric::NODE_OVERFLOWED, roles.nodes.iter().map(row));
    }
    for cache in &roles.caches {
        let (id, snapshot) = (cache.spec().id, cache.snapshot());
        up.push((format!("cache-{id}"), snapshot.is_ok()));
        if let Ok(snapshot) = snapshot {
            samples.add_cache(&id.to_string(), &snapshot);
        }
        let overflowed = Sample::labelled([id.to_string()], cache.overflowed());
        samples.add(&metric::CACHE_OVERFLOWED, [overflowed]);
    }
    if let Some(controller) = &roles.controller {
        let active = controller.is_active();
        samples.add(&metric::CONTROLLER_ACTIVE, [Sample::plain(active.into())]);
        let status = active.then(|| controller.status());
        up.push(("controller".to_owned(), !matches!(status, Some(Err(_)))));
        if let Some(Ok(status)) = status {
            samples.add_controller(&status);
        }
    }
    roles.others.fill(&mut samples);
    samples.add_program(up);
    samples.expose()
}

impl Samples {
    /// Whom the members of this process obey.
    fn add_obedience(&mut self, roles: &Roles) {
        let switch = roles.switch.iter().map(|it| ("switch".to_owned(), it.obedience()));
        let nodes = roles.nodes.iter().map(|it| (format!("node-{}", it.spec().id), it.obedience()));
        let caches =
            roles.caches.iter().map(|it| (format!("cache-{}", it.spec().id), it.obedience()));
        let all: Vec<_> = switch.chain(nodes).chain(caches).collect();
        let terms = all.iter().map(|(role, it)| Sample::labelled([role], it.term().0));
        self.add(&metric::LEADER_TERM, terms);
        let refused = all.iter().map(|(role, it)| Sample::labelled([role], it.refused()));
        self.add(&metric::ORDERS_REFUSED, refused);
    }

    /// What was not let through by roles of this process that open envelopes.
    fn add_envelopes(&mut self, roles: &Roles) {
        let counts = |keyring: &Keyring| keyring.refused().collect::<Vec<_>>();
        let switch = roles.switch.iter().map(|it| ("switch".to_owned(), it.refused_envelopes()));
        let nodes = roles.nodes.iter();
        let nodes = nodes.map(|it| (format!("node-{}", it.spec().id), it.keyring().map(counts)));
        let caches = roles.caches.iter();
        let caches = caches.map(|it| (format!("cache-{}", it.spec().id), it.keyring().map(counts)));
        let rows = switch.chain(nodes).chain(caches).flat_map(|(role, counted)| {
            let row = move |(why, count): (EnvelopeRefusal, u64)| {
                Sample::labelled([role.clone(), why.name().to_owned()], count)
            };
            counted.unwrap_or_default().into_iter().map(row)
        });
        self.add(&metric::ENVELOPES_REFUSED, rows);
    }

    fn add_program(&mut self, up: Vec<(String, bool)>) {
        let roles = up.iter().map(|(role, _)| role.as_str()).collect::<Vec<_>>().join(",");
        let info = Sample::labelled([env!("CARGO_PKG_VERSION").to_owned(), roles], 1);
        self.add(&metric::BUILD_INFO, [info]);
        let rows = up.into_iter().map(|(role, up)| Sample::labelled([role], up.into()));
        self.add(&metric::ROLE_UP, rows);
        self.add_process();
    }

    fn add_switch(&mut self, snapshot: &SwitchSnapshot) {
        let SwitchSnapshot { revision, counters, leased, unsent, in_kernel, .. } = snapshot;
        self.add_hot(snapshot);
        let ops = counters.packets().map(|(op, value)| Sample::labelled([op.name()], value));
        self.add(&metric::SWITCH_PACKETS, ops);
        self.add(&metric::SWITCH_EMITTED, [Sample::plain(counters.emitted())]);
        let drops =
            counters.dropped().map(|(reason, value)| Sample::labelled([reason.name()], value));
        self.add(&metric::SWITCH_DROPPED, drops);
        self.add(&metric::SWITCH_UNSENT, [Sample::plain(*unsent)]);
        self.add(&metric::SWITCH_IN_KERNEL, [Sample::plain(*in_kernel)]);
        let partitions = || counters.partitions().iter();
        let place =
            |load: &switch::PartitionLoad| [load.keyspace.to_string(), load.partition.to_string()];
        let reads = partitions().map(|load| Sample::labelled(place(load), load.reads));
        self.add(&metric::SWITCH_PARTITION_READS, reads);
        let writes = partitions().map(|load| Sample::labelled(place(load), load.writes));
        self.add(&metric::SWITCH_PARTITION_WRITES, writes);
        self.add(&metric::SWITCH_TABLE_REVISION, [Sample::plain((*revision).get())]);
        self.add(&metric::SWITCH_LEASED, [Sample::plain((*leased).into())]);
        if let Some(content) = &snapshot.content {
            self.add_content(content);
        }
    }

    fn add_content(&mut self, snapshot: &ContentSnapshot) {
        let ContentSnapshot { report, made, refused, .. } = snapshot;
        let entries = [("partition", report.partitions), ("rule", report.rules)];
        let entries = entries.map(|(kind, count)| Sample::labelled([kind], count));
        self.add(&metric::CONTENT_ENTRIES, entries);
        let pending = report.pending + report.refused;
        self.add(&metric::CONTENT_PENDING, [Sample::plain(pending)]);
        let changes = [("made", *made), ("refused", *refused)];
        let changes = changes.map(|(outcome, count)| Sample::labelled([outcome], count));
        self.add(&metric::CONTENT_CHANGES, changes);
        self.add(&metric::CONTENT_UNROUTABLE, [Sample::plain(report.unroutable)]);
        self.add(&metric::CONTENT_ANSWERS, [Sample::plain(report.trouble.is_none().into())]);
    }

    fn add_hot(&mut self, snapshot: &SwitchSnapshot) {
        let counts = || snapshot.counters.hot().iter().map(|load| load.count);
        let name = |it: &HotCount| (it.keyspace.to_string(), format!("{:016x}", it.keyhash));
        let reads = counts().flat_map(|it| {
            let (keyspace, keyhash) = name(&it);
            let home = it.reads.saturating_sub(it.spread);
            [("copy", it.spread), ("home", home)]
                .map(|(to, value)| Sample::labelled([&keyspace, &keyhash, to], value))
        });
        self.add(&metric::SWITCH_CACHED_READS, [Sample::plain(snapshot.counters.cached())]);
        self.add(&metric::SWITCH_CACHE_RULES, [Sample::plain(snapshot.cache_rules)]);
        self.add(&metric::SWITCH_HOT_READS, reads);
        let writes = counts().map(|it| {
            let (keyspace, keyhash) = name(&it);
            Sample::labelled([keyspace, keyhash], it.writes)
        });
        self.add(&metric::SWITCH_HOT_WRITES, writes);
        let delegated = ["new", "again"].into_iter().zip(snapshot.counters.delegated());
        self.add(
            &metric::SWITCH_HOT_DELEGATED_WRITES,
            delegated.map(|(grant, value)| Sample::labelled([grant], value)),
        );
        self.add(&metric::SWITCH_HOT_DOUBTED, [Sample::plain(snapshot.counters.doubted())]);
        self.add(&metric::SWITCH_HOT_CROWDED, [Sample::plain(snapshot.counters.crowded())]);
        let keys = ["home", "copy"].into_iter().zip(snapshot.counters.hot_keys());
        self.add(
            &metric::SWITCH_HOT_MULTIGET_KEYS,
            keys.map(|(to, value)| Sample::labelled([to], value)),
        );
        self.add(&metric::SWITCH_HOT_REVISION, [Sample::plain(snapshot.hot_revision.get())]);
    }

    fn add_cache(&mut self, id: &str, snapshot: &CacheSnapshot) {
        let CacheReport { hits, misses, entries, bytes, rules, fetches, updates, .. } =
            snapshot.report;
        let reads = [("hit", hits), ("missed", misses)];
        let reads = reads.map(|(how, value)| Sample::labelled([id, how], value));
        self.add(&metric::CACHE_READS, reads);
        for (metric, value) in [
            (&metric::CACHE_ENTRIES, entries),
            (&metric::CACHE_MEMORY_BYTES, bytes),
            (&metric::CACHE_RULES, rules),
            (&metric::CACHE_FETCHES, fetches),
            (&metric::CACHE_UPDATES, updates),
            (&metric::CACHE_UNSENT, snapshot.unsent),
        ] {
            self.add(metric, [Sample::labelled([id], value)]);
        }
        let dropped = snapshot.dropped.iter();
        let dropped = dropped.map(|(reason, value)| Sample::labelled([id, reason.name()], *value));
        self.add(&metric::CACHE_DROPPED, dropped);
    }

    fn add_nodes(&mut self, nodes: &[(NodeId, NodeSnapshot)]) {
        let by_op = |op: Op| move |shard: &Shard| shard.counters.requests(op);
        self.add_family(&metric::NODE_REQUESTS, nodes, Op::ALL.map(|op| (op.name(), by_op(op))));
        let by_code = |code: Code| move |shard: &Shard| shard.counters.replies(code);
        let codes = Code::ALL.map(|code| (code.name(), by_code(code)));
        self.add_family(&metric::NODE_REPLIES, nodes, codes);
        let by_reason = |reason: DropReason| move |shard: &Shard| shard.counters.dropped(reason);
        let reasons = DropReason::ALL.map(|reason| (reason.name(), by_reason(reason)));
        self.add_family(&metric::NODE_DROPPED, nodes, reasons);

        self.add_single(&metric::NODE_UNSENT, nodes, |shard| shard.unsent);
        self.add_single(&metric::NODE_RESENDS, nodes, |shard| shard.counters.resends);
        self.add_single(&metric::NODE_VERIFIED, nodes, |shard| shard.counters.verified);
        self.add_single(&metric::NODE_DIFFERENCES, nodes, |shard| shard.counters.differences);
        self.add_single(&metric::NODE_MENDED, nodes, |shard| shard.counters.mended);
        self.add_single(&metric::NODE_ABSURD, nodes, |shard| shard.counters.absurd);
        self.add_single(&metric::NODE_DUPLICATES, nodes, |shard| shard.counters.duplicates);
        self.add_single(&metric::NODE_SUPERSEDED, nodes, |shard| shard.counters.superseded);
        self.add_single(&metric::NODE_EXPIRED, nodes, |shard| shard.counters.expired);
        self.add_single(&metric::NODE_COLLECTED, nodes, |shard| shard.counters.collected);
        self.add_single(&metric::NODE_PARTS_DROPPED, nodes, |shard| shard.counters.parts_dropped);
        self.add_single(&metric::NODE_NOTES_IGNORED, nodes, |shard| shard.counters.notes_ignored);
        self.add_single(&metric::NODE_SCANNED, nodes, |shard| shard.counters.scanned);
        self.add_single(&metric::NODE_LONG_TURNS, nodes, |shard| shard.long_turns);
        self.add_single(&metric::NODE_UPLOADS, nodes, |shard| shard.uploads as u64);
        self.add_single(&metric::NODE_PENDING, nodes, |shard| shard.report.pending);
        self.add_single(&metric::NODE_SESSIONS, nodes, |shard| shard.sessions as u64);
        self.add_single(&metric::NODE_SESSIONS_ENDED, nodes, |shard| shard.sessions_ended as u64);
        self.add_single(&metric::NODE_SESSIONS_FORGOTTEN, nodes, |shard| {
            shard.counters.sessions_forgotten
        });
        self.add_single(&metric::NODE_SYNCS, nodes, |shard| shard.counters.syncs);
        self.add_single(&metric::NODE_WAITING, nodes, |shard| shard.report.waiting);
        self.add_single(&metric::NODE_PARTITIONS, nodes, |shard| shard.partitions as u64);
        self.add_single(&metric::NODE_HOT_KEYS, nodes, |shard| shard.hot_keys as u64);
        self.add_single(&metric::NODE_HOT_COPIES, nodes, |shard| shard.hot_copies as u64);
        self.add_single(&metric::NODE_LOANS, nodes, |shard| shard.counters.loans);
        self.add_single(&metric::NODE_PARKED, nodes, |shard| shard.counters.parked);
        self.add_single(&metric::NODE_BY_ADDRESS, nodes, |shard| shard.counters.by_address);
        self.add_single(&metric::NODE_HOT_READS, nodes, |shard| shard.counters.hot_reads);
        self.add_single(&metric::NODE_HOT_DELEGATED_KEYS, nodes, |shard| {
            shard.hot_delegated_keys as u64
        });
        self.add_single(&metric::NODE_HOT_DELEGATED_WRITES, nodes, |shard| {
            shard.counters.hot_delegated_writes
        });
        self.add_single(&metric::NODE_HOT_COPIES_SENT, nodes, |shard| {
            shard.counters.hot_copies_sent
        });
        let busy = |node: &NodeSnapshot| {
            node.shards.iter().map(|shard| shard.report.busy_us as f64 / 1e6).sum()
        };
        let rows = nodes.iter().map(|(id, node)| Sample::real([id.to_string()], busy(node)));
        self.add(&metric::NODE_CPU_SECONDS, rows);
        self.add_counts(nodes);
        self.add_resources(nodes);
        self.add_stored(nodes);
        self.add_latencies(nodes);
        let leased = |node: &NodeSnapshot| node.shards.iter().all(|shard| shard.leased);
        let rows =
            nodes.iter().map(|(id, node)| Sample::labelled([id.to_string()], leased(node).into()));
        self.add(&metric::NODE_LEASED, rows);
    }

    fn add_resources(&mut self, nodes: &[(NodeId, NodeSnapshot)]) {
        self.add_single(&metric::NODE_UPLOAD_BYTES, nodes, |shard| shard.upload_bytes);
        let mut add = |metric: &'static Metric, value: fn(&Resources) -> Option<u64>| {
            let row = |(id, node): &(NodeId, NodeSnapshot)| {
                let value = value(&node.report.resources)?;
                Some(Sample::labelled([id.to_string()], value))
            };
            self.add(metric, nodes.iter().filter_map(row));
        };
        add(&metric::NODE_MEMORY_BYTES, |it| Some(it.memory));
        add(&metric::NODE_MEMORY_MAX_BYTES, |it| it.memory_max);
        add(&metric::NODE_DISK_FREE_BYTES, |it| it.disk_free);
        add(&metric::NODE_DISK_FLOOR_BYTES, |it| it.disk_floor);
        add(&metric::NODE_DISK_USED_BYTES, |it| it.disk_used);
        add(&metric::NODE_ROOM, |it| Some(it.room as u64));
    }

    fn add_stored(&mut self, nodes: &[(NodeId, NodeSnapshot)]) {
        let rows = |value: fn(&Stored) -> u64| {
            nodes.iter().flat_map(move |(id, node)| {
                let row = move |it: &Stored| {
                    Sample::labelled([id.to_string(), it.keyspace.to_string()], value(it))
                };
                node.report.stored.iter().map(row)
            })
        };
        self.add(&metric::NODE_STORED_KEYS, rows(|it| it.held.keys));
        self.add(&metric::NODE_STORED_BYTES, rows(|it| it.held.bytes));
    }

    fn add_latencies(&mut self, nodes: &[(NodeId, NodeSnapshot)]) {
        let rows = nodes.iter().flat_map(|(id, node)| {
            let mut by_op: BTreeMap<Op, Latency> = BTreeMap::new();
            for (op, latency) in node.shards.iter().flat_map(|shard| &shard.latencies) {
                by_op.entry(*op).or_default().merge(latency);
            }
            by_op.into_iter().map(move |(op, it)| {
                let distribution = Distribution { buckets: it.buckets(), sum: it.seconds() };
                Sample::distribution([id.to_string(), op.name().to_owned()], distribution)
            })
        });
        self.add(&metric::NODE_LATENCY_SECONDS, rows);
    }

    /// A metric of nodes with a label of its own besides the node's.
    fn add_family<const N: usize>(
        &mut self,
        metric: &'static Metric,
        nodes: &[(NodeId, NodeSnapshot)],
        values: [(&'static str, impl Fn(&Shard) -> u64); N],
    ) {
        let rows = nodes.iter().flat_map(|(id, node)| {
            values.iter().map(move |(label, value)| {
                let sum = node.shards.iter().map(value).sum();
                Sample::labelled([id.to_string(), (*label).to_owned()], sum)
            })
        });
        self.add(metric, rows);
    }

    /// What nodes count of single partitions.
    fn add_counts(&mut self, nodes: &[(NodeId, NodeSnapshot)]) {
        let rows = |value: fn(&NodeCount) -> u64| {
            nodes.iter().flat_map(move |(id, node)| {
                let counts = node.shards.iter().flat_map(|shard| &shard.report.counts);
                counts.map(move |it| {
                    Sample::labelled([id.to_string(), it.partition.to_string()], value(it))
                })
            })
        };
        self.add(&metric::NODE_PARTITION_SCANNED, rows(|it| it.scanned));
        self.add(&metric::NODE_PARTITION_BYTES_IN, rows(|it| it.bytes_in));
        self.add(&metric::NODE_PARTITION_BYTES_OUT, rows(|it| it.bytes_out));
    }

    fn add_single(
        &mut self,
        metric: &'static Metric,
        nodes: &[(NodeId, NodeSnapshot)],
        value: impl Fn(&Shard) -> u64,
    ) {
        let sum = |node: &NodeSnapshot| node.shards.iter().map(&value).sum();
        let rows = nodes.iter().map(|(id, node)| Sample::labelled([id.to_string()], sum(node)));
        self.add(metric, rows);
    }

    fn add_controller(&mut self, status: &Status) {
        self.add(&metric::CONTROLLER_MAP_REVISION, [Sample::plain(status.revision.get())]);
        let ready = |role: fn(&Member) -> bool| {
            let members = status.members.iter().filter(|member| role(&member.member));
            members.filter(|member| member.state == MemberState::Ready).count() as u64
        };
        let switches = ready(|member| matches!(member, Member::Switch(_)));
        let nodes = ready(|member| matches!(member, Member::Node(_)));
        let caches = ready(|member| matches!(member, Member::Cache(_)));
        let rows = [("switch", switches), ("node", nodes), ("cache", caches)];
        let rows = rows.map(|(role, ready)| Sample::labelled([role], ready));
        self.add(&metric::CONTROLLER_MEMBERS_READY, rows);
        self.add(&metric::CONTROLLER_ORDERS, [Sample::plain(status.orders)]);
        self.add(&metric::CONTROLLER_TERM, [Sample::plain(status.term.0)]);
        let silent = status.store.silent_ms.unwrap_or(0) / 1_000;
        self.add(&metric::CONTROLLER_STORE_SILENT_SECONDS, [Sample::plain(silent)]);
        self.add(&metric::CONTROLLER_ACTIVE_SWITCH, [Sample::plain(status.active_switch.into())]);
        let hot = status.hot.iter().filter(|key| key.generation.is_some()).count() as u64;
        let pinned = status.hot.iter().filter(|key| key.pinned).count() as u64;
        let rows = [Sample::labelled(["hot"], hot), Sample::labelled(["pinned"], pinned)];
        self.add(&metric::CONTROLLER_HOT_KEYS, rows);
        self.add_placement(&status.placement);
        self.add_partitions(status);
    }

    fn add_placement(&mut self, placement: &PlacementStatus) {
        let PlacementStatus { turns, moves, .. } = *placement;
        let rows = [Sample::labelled(["turn"], turns), Sample::labelled(["move"], moves)];
        self.add(&metric::CONTROLLER_PLACEMENT_CHANGES, rows);
        let rows = placement.nodes.iter().map(|it| {
            let ratio = u32::try_from(it.permille).map_or(f64::INFINITY, f64::from) / 1e3;
            Sample::real([it.node.to_string()], ratio)
        });
        self.add(&metric::CONTROLLER_NODE_LOAD_RATIO, rows);
        let rows = placement.nodes.iter().filter_map(|it| {
            let ratio = u32::try_from(it.room_permille?).map_or(f64::INFINITY, f64::from) / 1e3;
            Some(Sample::real([it.node.to_string()], ratio))
        });
        self.add(&metric::CONTROLLER_NODE_ROOM_RATIO, rows);
    }

    fn add_partitions(&mut self, status: &Status) {
        let rows = |value: fn(&Volume) -> u64| {
            status.keyspaces.iter().filter_map(move |keyspace| {
                let stored = keyspace.stored.as_ref()?;
                Some(Sample::labelled([keyspace.id.to_string()], value(stored)))
            })
        };
        self.add(&metric::CONTROLLER_STORED_KEYS, rows(|it| it.keys));
        self.add(&metric::CONTROLLER_STORED_BYTES, rows(|it| it.bytes));
        let partitions = || status.keyspaces.iter().flat_map(|keyspace| &keyspace.partitions);
        let epochs = partitions().map(|partition| u64::from(partition.epoch.0)).sum();
        self.add(&metric::CONTROLLER_EPOCHS, [Sample::plain(epochs)]);
        let rows = [
            ("open", partitions().count() - status.closed),
            ("closed", status.closed),
            ("under_replicated", status.under_replicated),
            ("joining", status.copies.len()),
        ];
        let rows = rows.map(|(state, count)| Sample::labelled([state], count as u64));
        self.add(&metric::CONTROLLER_PARTITIONS, rows);
        let place =
            |copy: &CopyStatus| [copy.partition.0, copy.from.0.into(), copy.to.0.into()].map(text);
        let rows = partitions().filter_map(|partition| {
            let verified = partition.verified?;
            Some(Sample::labelled([partition.id.to_string()], verified.ms_ago / 1_000))
        });
        self.add(&metric::CONTROLLER_VERIFIED_AGE_SECONDS, rows);
        let copies = || status.copies.iter();
        let rows = copies().map(|copy| Sample::real(place(copy), f64::from(copy.permille) / 1e3));
        self.add(&metric::CONTROLLER_COPY_RATIO, rows);
        let rows = copies().map(|copy| Sample::labelled(place(copy), copy.bytes));
        self.add(&metric::CONTROLLER_COPY_BYTES, rows);
    }
}

fn text(number: u32) -> String {
    number.to_string()
}
