//! The switch as section 3 of `spec/protocol.md` reads: linear scans over what the controller
//! sent, a new datagram for each that goes out, no thought for speed.

use super::cached::Cached;
use super::counts::{Counts, hot_name};
use super::delegate::{self, Delegate, Way};
use super::hot::{self, Hot};
use cluster::{NodeId, NodeSpec, Partition, SwitchTables};
use std::collections::BTreeMap;
use std::rc::Rc;
use wire::{
    DelegationId, Endpoint, GrantedPut, HEADER_LEN, Header, HomeWrite, Packet, RangeInterval,
    Version, flag, hop_flag,
};

/// A datagram and where it goes.
pub type Sent = (Endpoint, Vec<u8>);

/// The naive switch.
#[derive(Default)]
pub struct Model {
    /// The tables, once there are some.
    pub tables: Option<Rc<SwitchTables>>,
    /// Whether it has a lease.
    pub leased: bool,
    /// The hot keys.
    pub hot: Hot,
    /// Their delegations.
    pub delegate: Delegate,
    /// The keys that caches hold.
    pub cached: Cached,
    /// What it has counted.
    pub counts: Counts,
    /// What another switch made of the present datagram.
    pub did: Vec<Sent>,
}

impl Model {
    /// Takes one datagram and gives all that it sends. Where a switch may choose, it chooses as
    /// in what another one `did`, if that was allowed.
    pub fn process(&mut self, from: Endpoint, datagram: &[u8]) -> Vec<Sent> {
        let sent = match parse(datagram) {
            Ok(header) => self.forward(from, &header, datagram),
            Err(reason) => self.drop(reason),
        };
        self.counts.emitted += sent.len() as u64;
        sent
    }

    /// A copy of the request that this answers, if nobody knows of which nodes the answer tells:
    /// those that were chosen for it show when the copy comes, unless the request has ended.
    pub fn unclear(&self, datagram: &[u8]) -> Option<Sent> {
        let answer = parse(datagram).ok()?;
        let tables = self.tables.as_deref()?;
        if op_name(answer.op) != Some("put_reply") || !self.delegate.is_unclear(&self.hot, &answer)
        {
            return None;
        }
        let Header { keyspace, keyhash, client, seq, .. } = answer;
        let low = self.hot.low(&answer)?;
        let ends = tables.partitions.iter().flat_map(|it| [it.first.0, it.last.0]);
        let mut places = ends.map(|end| end >> 64 << 64 | u128::from(low));
        let there = places.find(|at| holder(tables, keyspace, *at).is_some());
        let match_value = there.unwrap_or(low.into());
        // Its client says as little as it can of what else has ended.
        let op = wire::Op::Put as u8;
        let lag = u16::MAX;
        let put =
            Header { op, keyspace, keyhash, match_value, client, seq, lag, ..Header::default() };
        let mut bytes = Vec::new();
        wire::emit(&mut bytes, &put, &[&[0; 9]]);
        Some((std::net::SocketAddr::from(([10, 1, 0, 1], 7)).into(), bytes))
    }

    fn drop(&mut self, reason: &str) -> Vec<Sent> {
        add(&mut self.counts.dropped, reason);
        Vec::new()
    }

    fn forward(&mut self, from: Endpoint, header: &Header, datagram: &[u8]) -> Vec<Sent> {
        let name = op_name(header.op).expect("parsed");
        add(&mut self.counts.packets, name);
        let tables = self.tables.clone().unwrap_or_default();
        let sender = tables.nodes.iter().find(|node| node.owns(from));
        if name.ends_with("_reply") || matches!(name, "hot_copied" | "hot_publish") {
            return self.reply(name, &tables, sender, header, datagram);
        }
        if name == "cache_rules" {
            return match self.cached.change(&tables, from, datagram) {
                Ok(answer) => vec![answer],
                Err(reason) => self.drop(reason),
            };
        }
        let among_members = ["chain_", "delegation_", "cache_"];
        if among_members.iter().any(|it| name.starts_with(it)) || name == "hot_copy" {
            return self.drop("bad_op");
        }
        if sender.is_some() {
            return self.drop("request_from_node");
        }
        if self.tables.is_none() {
            return self.drop("not_serving");
        }
        if !self.leased {
            return self.drop("no_lease");
        }
        if !tables.active {
            return self.drop("standby");
        }
        let first_sent = delegate::directory_clock(header);
        let header = Header {
            reply_addr: from.addr,
            reply_port: from.port,
            hop_flags: 0,
            node: 0,
            load: 0,
            ..*header
        };
        match name {
            "describe" => self.describe(&tables, &header, datagram),
            "mget" => self.mget(&tables, &header, datagram),
            "range" => self.range(&tables, &header, datagram),
            "get" => self.get(&tables, &header, datagram),
            _ => self.write(&tables, &header, first_sent, datagram),
        }
    }

    /// An answer of a node, on its way to a client.
    fn reply(
        &mut self,
        name: &str,
        tables: &SwitchTables,
        sender: Option<&NodeSpec>,
        header: &Header,
        datagram: &[u8],
    ) -> Vec<Sent> {
        if !self.leased {
            return self.drop("no_lease");
        }
        if self.tables.is_some() && !tables.active {
            return self.drop("standby");
        }
        let Some(node) = sender else { return self.drop("reply_not_from_node") };
        if header.reply_port == 0 {
            return self.drop("bad_reply_address");
        }
        if header.node != node.id.0 {
            return self.drop("reply_not_from_node");
        }
        self.counts.loads.insert(node.id.to_string(), header.load.into());
        if !self.hot.observe(name, node.id, header) {
            self.counts.doubted += 1;
        }
        self.counts.doubted += u64::from(says_too_much(header));
        if name == "put_reply" && header.code == 23 {
            self.delegate.delegated(&mut self.hot, tables, header);
        } else if name == "put_reply" {
            self.delegate.done(&mut self.hot, header);
        }
        let mut told = *header;
        if name.ends_with("_reply") {
            told.chain[8..].copy_from_slice(&self.delegate.directory_clock.to_be_bytes());
        }
        let to = Endpoint { addr: header.reply_addr, port: header.reply_port };
        vec![(to, rewritten(&told, datagram))]
    }

    fn describe(&mut self, tables: &SwitchTables, header: &Header, datagram: &[u8]) -> Vec<Sent> {
        let nodes: Vec<&NodeSpec> = tables.reachable().collect();
        if nodes.is_empty() {
            return self.drop("no_node");
        }
        let place = (header.client.wrapping_add(header.seq) % nodes.len() as u64) as usize;
        vec![(nodes[place].endpoint, rewritten(header, datagram))]
    }

    fn get(&mut self, tables: &SwitchTables, header: &Header, datagram: &[u8]) -> Vec<Sent> {
        let partition = match found(tables, header) {
            Ok(partition) => partition,
            Err(reason) => return self.drop(reason),
        };
        add(&mut self.counts.reads, &partition.id.to_string());
        let (keyspace, keyhash) = (header.keyspace, header.keyhash);
        let at_home = header.flags & flag::AT_HOME != 0;
        let hot = self.hot.read(tables, (keyspace, keyhash), header.match_value, at_home);
        let (mut reader, mut spread) = (partition.tail().unwrap(), false);
        if let Some(hot) = &hot {
            add(&mut self.counts.hot_reads, &hot_name(keyspace, keyhash));
            if let Some(holder) = hot::chosen(hot, &self.did, |_| true) {
                add(&mut self.counts.hot_spread, &hot_name(keyspace, keyhash));
                (reader, spread) = (holder, true);
            }
        }
        let Some(node) = node(tables, reader) else { return self.drop("no_node") };
        let mut stamped = grant(header, partition.id.0, partition.epoch.0, 0, &[reader]);
        let goes_home = hot.is_some() || at_home;
        hot.inspect(|hot| hot::stamp(&mut stamped, hot, spread));
        let cache = self.cached.of(tables, header).filter(|_| !goes_home);
        let to = cache.unwrap_or_else(|| node.endpoint_of(partition.id));
        vec![(to, rewritten(&stamped, datagram))]
    }

    fn write(
        &mut self,
        tables: &SwitchTables,
        header: &Header,
        first_sent: u64,
        datagram: &[u8],
    ) -> Vec<Sent> {
        let partition = match found(tables, header) {
            Ok(partition) => partition,
            Err(reason) => return self.drop(reason),
        };
        add(&mut self.counts.writes, &partition.id.to_string());
        if self.hot.has(header.keyspace, header.keyhash, header.match_value) {
            add(&mut self.counts.hot_writes, &hot_name(header.keyspace, header.keyhash));
        }
        if op_name(header.op) == Some("goodbye") {
            self.delegate.hear_goodbye(header.client);
        }
        let (id, epoch) = (partition.id, partition.epoch.0);
        let mut header = *header;
        let mut way = Way::Home(0);
        if may_be_delegated(datagram) {
            delegate::set_directory_clock(&mut header, first_sent);
            way = self.delegate.way(&mut self.hot, tables, &header, &self.did);
        }
        let delegated = if let Way::Delegation(_, is_new) = way { Some(is_new) } else { None };
        let stamped = match way {
            Way::Drop(reason) => return self.drop(reason),
            Way::Home(version) => {
                let mut home = grant(&header, id.0, epoch, 0, &partition.chain);
                HomeWrite { granted: Version::new(version), ..HomeWrite::of(&home) }.put(&mut home);
                delegate::set_directory_clock(&mut home, self.delegate.directory_clock);
                let old = first_sent < self.delegate.beginning;
                Header { hop_flags: if old { hop_flag::OLD } else { 0 }, ..home }
            }
            Way::Delegation(it, _) => {
                let Some(nodes) = self.delegate.nodes(&header, tables, &self.did) else {
                    return self.drop("no_node");
                };
                let mut delegated = grant(&header, id.0, epoch, 0, &nodes);
                delegated.chain_len = it.replicas as u8;
                delegated.chain[2 * nodes.len()..].fill(0xff);
                delegated.hop_flags = 0;
                let delegation = DelegationId::new(it.delegation);
                GrantedPut { version: it.version, delegation }.put(&mut delegated);
                delegated
            }
        };
        let first = NodeId(u16::from(stamped.chain[0]) << 8 | u16::from(stamped.chain[1]));
        let Some(node) = node(tables, first) else { return self.drop("no_node") };
        if let Some(is_new) = delegated {
            add(&mut self.counts.delegated, if is_new { "new" } else { "again" });
        }
        vec![(node.endpoint_of(id), rewritten(&stamped, datagram))]
    }

    fn mget(&mut self, tables: &SwitchTables, header: &Header, datagram: &[u8]) -> Vec<Sent> {
        let count = usize::from(header.count);
        let payload = &datagram[HEADER_LEN..];
        let asked: Vec<usize> =
            (0..count.min(32)).filter(|i| header.bitmap >> i & 1 == 1).collect();
        if count == 0 || count > 32 || payload.len() < count * 24 || asked.is_empty() {
            return self.drop("bad_body");
        }
        if !has_keyspace(tables, header) {
            return self.drop("no_keyspace");
        }
        let mut datagram = datagram.to_vec();
        let mut groups: Vec<(Endpoint, NodeId, [u32; 2])> = Vec::new();
        for key in asked {
            let slot: [u8; 24] = payload[key * 24..][..24].try_into().unwrap();
            let at = u128::from_be_bytes(slot[..16].try_into().unwrap());
            let keyhash = u64::from_be_bytes(slot[16..].try_into().unwrap());
            let Some(partition) = holder(tables, header.keyspace, at) else {
                self.drop("no_partition");
                continue;
            };
            add(&mut self.counts.reads, &partition.id.to_string());
            let at_home = header.flags & flag::AT_HOME != 0;
            let (mut reader, mut bits) = (partition.tail().unwrap(), [1 << key, 0]);
            if let Some(hot) = self.hot.read(tables, (header.keyspace, keyhash), at, at_home) {
                let name = hot_name(header.keyspace, keyhash);
                add(&mut self.counts.hot_reads, &name);
                if hot.floor_at_home {
                    bits = [1 << key; 2];
                    let slot = &mut datagram[HEADER_LEN + key * 24..][..16];
                    slot.copy_from_slice(&u128::from(hot.floor.get()).to_be_bytes());
                }
                let picks = |header: &Header| header.bitmap >> key & 1 == 1;
                let mut went = "home";
                if let Some(holder) = hot::chosen(&hot, &self.did, picks) {
                    add(&mut self.counts.hot_spread, &name);
                    (reader, bits, went) = (holder, [1 << key; 2], "copy");
                    let slot = &mut datagram[HEADER_LEN + key * 24..][..16];
                    slot.copy_from_slice(&u128::from(hot.floor.get()).to_be_bytes());
                }
                add(&mut self.counts.hot_keys, went);
            }
            let Some(node) = node(tables, reader) else {
                self.drop("no_node");
                continue;
            };
            let to = node.endpoint_of(partition.id);
            match groups.iter_mut().find(|group| group.0 == to) {
                Some(group) => group.2.iter_mut().zip(bits).for_each(|(all, bit)| *all |= bit),
                None => groups.push((to, node.id, bits)),
            }
        }
        let copy = |(to, node, [bitmap, hot_bitmap]): (_, NodeId, [u32; 2])| {
            let mut stamped = grant(header, 0, 0, bitmap, &[node]);
            stamped.chain[4..8].copy_from_slice(&hot_bitmap.to_be_bytes());
            (to, rewritten(&stamped, &datagram))
        };
        groups.into_iter().map(copy).collect()
    }

    /// Not by cutting again and again, as the pipeline does, but from the list of all partitions
    /// that meet the interval.
    fn range(&mut self, tables: &SwitchTables, header: &Header, datagram: &[u8]) -> Vec<Sent> {
        let RangeInterval { first, last } = RangeInterval::of(header);
        let pieces_max = usize::from(header.count.min(32));
        if first > last || pieces_max == 0 {
            return self.drop("bad_body");
        }
        if !has_keyspace(tables, header) {
            return self.drop("no_keyspace");
        }
        let reverse = header.flags & flag::REVERSE != 0;
        let mut met: Vec<&Partition> = tables.partitions.iter().collect();
        met.retain(|p| p.keyspace.0 == header.keyspace && p.first.0 <= last && first <= p.last.0);
        met.sort_by_key(|p| p.first);
        if reverse {
            met.reverse();
        }
        let mut sent = Vec::new();
        // Where the next piece must begin (reverse: end); nowhere once everything is published.
        let mut next = Some(if reverse { last } else { first });
        for made in 0..pieces_max {
            let Some(at) = next else { break };
            let Some(partition) = met.get(made).filter(|p| p.first.0 <= at && at <= p.last.0)
            else {
                self.drop("no_partition");
                break;
            };
            let piece = (first.max(partition.first.0), last.min(partition.last.0));
            next = if reverse {
                (piece.0 != first).then(|| piece.0 - 1)
            } else {
                (piece.1 != last).then(|| piece.1 + 1)
            };
            add(&mut self.counts.reads, &partition.id.to_string());
            let tail = partition.tail().unwrap();
            let Some(node) = node(tables, tail) else {
                self.drop("no_node");
                continue;
            };
            let mut stamped = grant(header, partition.id.0, partition.epoch.0, 0, &[tail]);
            RangeInterval { first: piece.0, last: piece.1 }.put(&mut stamped);
            if made + 1 == pieces_max && next.is_some() {
                stamped.hop_flags = hop_flag::CUT;
            }
            sent.push((node.endpoint_of(partition.id), rewritten(&stamped, datagram)));
        }
        sent
    }
}

/// Section 1, on bytes alone.
fn parse(datagram: &[u8]) -> Result<Header, &'static str> {
    let Some(bytes) = datagram.first_chunk::<HEADER_LEN>() else { return Err("truncated") };
    if &bytes[..2] != b"KW" {
        return Err("not_ours");
    }
    if bytes[2] != 1 {
        return Err("bad_version");
    }
    let header = Header::read(bytes);
    if op_name(header.op).is_none() {
        return Err("bad_op");
    }
    let payload = datagram.len() - HEADER_LEN;
    let key = usize::from(header.key_len);
    let length = usize::from(header.payload_len);
    if length != payload || datagram.len() > 1472 || key > payload || key > 1024 {
        return Err("bad_length");
    }
    if header.chain_len > 8 || header.chain_pos >= header.chain_len.max(1) {
        return Err("bad_chain");
    }
    Ok(header)
}

/// Whether the rate that a reply says cannot be.
fn says_too_much(header: &Header) -> bool {
    let rate = u32::from_be_bytes(*header.chain.first_chunk().expect("of 16 bytes"));
    header.chain_len == 0 && rate > 100_000_000
}

fn op_name(code: u8) -> Option<&'static str> {
    Some(match code {
        1 => "get",
        2 => "put",
        3 => "del",
        4 => "cas",
        5 => "incr",
        6 => "mget",
        7 => "range",
        8 => "describe",
        9 => "batch",
        0x0a => "goodbye",
        0x40 => "chain_write",
        0x41 => "chain_ack",
        0x42 => "chain_commit",
        0x43 => "chain_stable",
        0x44 => "chain_expire",
        0x45 => "chain_copy",
        0x46 => "chain_copied",
        0x47 => "hot_copy",
        0x48 => "delegation_fetch",
        0x49 => "delegation_found",
        0x4a => "delegation_end",
        0x4b => "delegation_commit",
        0x4c => "chain_verify",
        0x4d => "chain_verified",
        0x4e => "chain_mend",
        0x4f => "chain_goodbye",
        0x50 => "chain_durable",
        0x51 => "chain_offer",
        0x52 => "chain_offered",
        0x53 => "delegation_write",
        0x54 => "delegation_durable",
        0x55 => "cache_fetch",
        0x56 => "cache_loan",
        0x57 => "cache_renew",
        0x58 => "cache_grant",
        0x59 => "cache_update",
        0x5a => "cache_recall",
        0x5b => "cache_answer",
        0x5c => "cache_report",
        0x5d => "cache_rules",
        0x5e => "cache_ruled",
        0x81 => "get_reply",
        0x82 => "put_reply",
        0x83 => "del_reply",
        0x84 => "cas_reply",
        0x85 => "incr_reply",
        0x86 => "mget_reply",
        0x87 => "range_reply",
        0x88 => "describe_reply",
        0x89 => "batch_reply",
        0xc7 => "hot_copied",
        0xc8 => "hot_publish",
        _ => return None,
    })
}

fn may_be_delegated(datagram: &[u8]) -> bool {
    let packet = Packet::parse(datagram).expect("parsed");
    wire::may_be_delegated(packet.header(), packet.payload())
}

fn has_keyspace(tables: &SwitchTables, header: &Header) -> bool {
    tables.partitions.iter().any(|p| p.keyspace.0 == header.keyspace)
}

fn holder(tables: &SwitchTables, keyspace: u16, at: u128) -> Option<&Partition> {
    tables.partitions.iter().find(|p| p.keyspace.0 == keyspace && p.first.0 <= at && at <= p.last.0)
}

/// The partition of a request for one key.
fn found<'t>(tables: &'t SwitchTables, header: &Header) -> Result<&'t Partition, &'static str> {
    if !has_keyspace(tables, header) {
        return Err("no_keyspace");
    }
    holder(tables, header.keyspace, header.match_value).ok_or("no_partition")
}

fn node(tables: &SwitchTables, id: NodeId) -> Option<&NodeSpec> {
    tables.reachable().find(|node| node.id == id)
}

fn grant(header: &Header, partition: u32, epoch: u32, bitmap: u32, chain: &[NodeId]) -> Header {
    let mut stamped = Header { partition, epoch, bitmap, chain_pos: 0, ..*header };
    stamped.set_chain(chain.iter().map(|node| node.0));
    stamped
}

/// The datagram under another header, its tag as it was.
fn rewritten(header: &Header, datagram: &[u8]) -> Vec<u8> {
    let mut bytes = [0; HEADER_LEN];
    header.write(&mut bytes);
    bytes[4..8].copy_from_slice(&datagram[4..8]);
    [&bytes, &datagram[HEADER_LEN..]].concat()
}

fn add(counters: &mut BTreeMap<String, u64>, name: &str) {
    *counters.entry(name.to_owned()).or_default() += 1;
}
