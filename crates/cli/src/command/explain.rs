//! `keyway explain`: which way the switch sends a key.

mod either;
mod hot;
mod kernel;

use crate::command::status::kind;
use crate::command::switch::Plane;
use anyhow::anyhow;
use cluster::{CacheId, Keyspace, KeyspaceKind, Map, NodeId};
use console::admin::{Admin, SwitchAdmin};
use console::answer::Answer;
use console::bytes::{self, Style};
use console::exit::{Failure, Verdict};
use console::note;
use console::out;
use console::parse;
use console::shared::Shared;
use either::Fate;
use hot::Known;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use switch::{Explanation, Tables};
use wire::Endpoint;

/// Say which partition, chain and switch action a key gets.
///
/// Asks the controller for the map and passes the key through the switch's own tables. The key need
/// not exist. With --plane xdp the program in a switch's kernel is asked as well, on the tables
/// that it then has; the exit code is 1 if it says something else. What a switch knows of a hot
/// key, its floor, its copies and its delegation, is told if a switch answers: the one that is
/// named, or the one that runs beside the controller. Of a keyspace with --hot either it is said
/// whether a cache holds the key or nodes copy it, and why.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway explain greeting
  keyway explain user000000000042 -k users --json
  keyway explain greeting --plane xdp --switch 10.0.0.1:7790")]
pub(crate) struct Args {
    /// The key.
    key: String,
    /// The key is given as hexadecimal digits.
    #[arg(long)]
    hex: bool,
    /// Whom to ask: the switch's tables made from the controller's map, or also the program that a
    /// switch has in its kernel.
    #[arg(long, value_enum, default_value_t = Plane::User)]
    plane: Plane,
    /// Admin address of a switch; with --plane xdp 127.0.0.1:7790 if none is named.
    #[arg(long, value_name = "HOST:PORT", env = "KEYWAY_SWITCH", value_parser = parse::address)]
    switch: Option<SocketAddr>,
}

/// The switch that is asked if none is named.
const USUAL_SWITCH: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7790);

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let key = bytes::key(&self.key, self.hex)?;
        let style = Style { hex: self.hex };
        let admin = Admin::of(shared, shared.timeout)?;
        let map = admin.map()?;
        let name = &shared.keyspace;
        let Some(keyspace) = map.keyspace(name) else {
            if shared.json {
                Answer::new("not_found").with("keyspace", name).print()?;
            }
            note!("keyway: no keyspace {name:?}; see: keyway keyspace list");
            return Ok(Verdict::No);
        };
        let tables = Tables::compile(&map.switch_tables(map.active_switch))
            .map_err(|error| Failure::Other(anyhow!("the controller's map: {error}")))?;
        let at = keyspace.match_value(&key);
        let found = switch::explain(&tables, keyspace.id, at).ok_or_else(|| {
            Failure::Other(anyhow!("no partition of {name:?} holds match value {at}"))
        })?;
        let asked = match self.plane {
            Plane::User | Plane::Routes | Plane::OpenFlow => None,
            Plane::Xdp => {
                let switch = self.switch.unwrap_or(USUAL_SWITCH);
                Some(SwitchAdmin::new(switch, shared)?.in_kernel(keyspace.id, at)?)
            }
        };
        let hot = self.ask_hot(shared, keyspace, keyspace.keyhash(&key))?;
        let cache = self.ask_cache(shared, keyspace, keyspace.keyhash(&key));
        let either = keyspace.hot.caches() && keyspace.copies_hot_keys();
        let status = either.then(|| admin.status()).transpose()?;
        let fate = status.map(|it| Fate::of(&it.hot, (keyspace.id, &key), cache));
        let kernel = asked.as_ref().map(|said| kernel::Comparison::new(&found, said, map.revision));
        let way = Way { map: &map, keyspace, key: &key, found: &found };
        if shared.json {
            let answer = hot.iter().fold(way.json(style), |answer, hot| hot.add_to(answer));
            let answer = answer.with("cache", cache);
            let answer = fate.iter().fold(answer, |answer, fate| fate.add_to(answer));
            kernel.iter().fold(answer, |answer, kernel| kernel.add_to(answer)).print()?;
        } else {
            out::print(&way.text(style))?;
            hot.iter().try_for_each(|hot| out::print(&hot.text()))?;
            if let Some(cache) = cache {
                let what = "reads go there, and on to the tail if it lacks the key";
                out::print(&format!("{:<20} cache {cache}: {what}\n", "cached"))?;
            }
            fate.iter().try_for_each(|fate| out::print(&fate.text()))?;
            kernel.iter().try_for_each(|kernel| out::print(&kernel.text()))?;
        }
        let agrees = kernel.is_none_or(|kernel| kernel.agrees());
        Ok(if agrees { Verdict::Yes } else { Verdict::No })
    }
}

impl Args {
    /// The cache that a switch sends reads of a key to; none if no switch says so.
    fn ask_cache(&self, shared: &Shared, keyspace: &Keyspace, keyhash: u64) -> Option<CacheId> {
        let switches = self.switch.iter().chain(&shared.admins);
        let ask = |at: &SocketAddr| {
            SwitchAdmin::new(*at, shared).ok()?.cache_of_key(keyspace.id, keyhash).ok()
        };
        switches.take(if self.switch.is_some() { 1 } else { usize::MAX }).find_map(ask).flatten()
    }

    /// What a switch knows of a key: the one that is named, or without it whoever answers beside
    /// the controller, if somebody does.
    fn ask_hot(
        &self,
        shared: &Shared,
        keyspace: &Keyspace,
        keyhash: u64,
    ) -> Result<Option<Known>, Failure> {
        let ask = |at| SwitchAdmin::new(at, shared)?.hot_key(keyspace.id, keyhash).map(Known);
        let named = self.switch.or((self.plane == Plane::Xdp).then_some(USUAL_SWITCH));
        match named {
            Some(switch) => ask(switch).map(Some),
            None => Ok(shared.admins.iter().find_map(|at| ask(*at).ok())),
        }
    }
}

struct Way<'a> {
    map: &'a Map,
    keyspace: &'a Keyspace,
    key: &'a [u8],
    found: &'a Explanation,
}

impl Way<'_> {
    fn json(&self, style: Style) -> Answer {
        let Explanation { partition, first, last, epoch, chain, read, write } = self.found;
        let node = |id: &NodeId| serde_json::json!({ "node": id, "endpoint": self.address(*id) });
        let chain: Vec<serde_json::Value> = chain.iter().map(node).collect();
        Answer::new("done")
            .bytes(style, "key", self.key)
            .with("keyspace", &self.keyspace.name)
            .with("match", self.keyspace.match_value(self.key))
            .with("keyhash", format!("{:016x}", self.keyspace.keyhash(self.key)))
            .with("partition", partition)
            .with("first", first)
            .with("last", last)
            .with("epoch", epoch)
            .with("chain", chain)
            .with("read_goes_to", read.map(SocketAddr::from))
            .with("write_goes_to", write.map(SocketAddr::from))
            .with("revision", self.map.revision)
    }

    fn text(&self, style: Style) -> String {
        let Explanation { partition, first, last, epoch, chain, read, write } = self.found;
        let ids: Vec<String> = chain.iter().map(ToString::to_string).collect();
        let mut lines = vec![
            ("key", format!("{} ({} bytes)", style.line(self.key), self.key.len())),
            ("keyspace", format!("{} ({})", self.keyspace.name, kind(&self.keyspace.kind))),
            ("match value", self.match_value()),
            ("keyhash", format!("{:016x}", self.keyspace.keyhash(self.key))),
            ("partition", format!("{partition}, epoch {epoch}")),
            ("  from", first.to_string()),
            ("  to", last.to_string()),
        ];
        let members = self.map.partitions.iter().find(|it| it.id == *partition);
        let members = members.map_or(chain.len(), |it| it.members().len());
        for (index, id) in chain.iter().enumerate() {
            let role = match (index, members.checked_sub(index + 1)) {
                (_, None) => "joins: is being copied to",
                (0, Some(0)) => "head and tail",
                (0, Some(_)) => "head: orders writes",
                (_, Some(0)) => "tail: answers",
                (_, Some(_)) => "middle",
            };
            let at = self.address(*id).map_or_else(|| "unknown".to_owned(), |at| at.to_string());
            let name = if index == 0 { "chain" } else { "" };
            lines.push((name, format!("node {id} at {at} ({role})")));
        }
        lines.push(("GET, MGET", format!("{}; chain stamped: the tail alone", sent(*read))));
        if self.keyspace.is_ordered() {
            let cut = "cut at this partition's bounds, the piece goes to its tail";
            lines.push(("RANGE", cut.to_owned()));
        }
        let stamped = format!("{}; chain stamped: {}", sent(*write), ids.join(", "));
        lines.push(("PUT, DEL, CAS, INCR", stamped));
        lines.iter().map(|(name, what)| format!("{name:<20} {what}\n")).collect()
    }

    fn match_value(&self) -> String {
        let at = self.keyspace.match_value(self.key);
        match &self.keyspace.kind {
            KeyspaceKind::Hash => format!("{at}, XXH3-128 of the key"),
            KeyspaceKind::Range { prefix } if prefix.is_empty() => {
                format!("{at}, the first 16 bytes of the key")
            }
            KeyspaceKind::Range { prefix } if !self.key.starts_with(prefix) => {
                format!("{at}, an end of the order: the key lacks the prefix")
            }
            KeyspaceKind::Range { .. } => format!("{at}, the 16 bytes after the prefix"),
        }
    }

    /// Where the node takes packets of this partition.
    fn address(&self, id: NodeId) -> Option<SocketAddr> {
        let node = self.map.nodes.iter().find(|node| node.id == id)?;
        Some(node.endpoint_of(self.found.partition).into())
    }
}

fn sent(to: Option<Endpoint>) -> String {
    to.map_or_else(|| "dropped: the node table lacks the node".to_owned(), |to| format!("to {to}"))
}
