//! `keyway cluster upgrade-check`: whether each process may be restarted now.

use anyhow::anyhow;
use cluster::{CacheId, Member, NodeId, ORDERS_VERSION};
use console::admin::{Admin, Others};
use console::exit::{Failure, Verdict};
use console::out;
use console::shared::Shared;
use controller::{MemberState, MemberStatus, PartitionStatus, Status};
use runtime::store::SHARD_STORE_FORMAT;
use serde::Serialize;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Say of each process whether it is safe to restart it now, one at a time.
///
/// It is not while a restart would leave keys without a node, or a cluster without a switch or a
/// controller: while copies run, another process is away, or nobody stands by; nor a cache while
/// another one is away. Of a cache it says how many keys nodes have to serve meanwhile. Nor while
/// what processes speak is too far apart, or a node's files have a format that the version that
/// asks does not know: ask with the version that is to be installed, older or newer. Ends with exit
/// code 1 if any process had better not be restarted, and says why. docs/operating/upgrade.md tells
/// how to restart all of a cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway cluster upgrade-check
  until keyway cluster upgrade-check; do sleep 1; done
  keyway cluster upgrade-check --json")]
pub(crate) struct Args {}

/// What is said.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Check {
    outcome: &'static str,
    /// What is in the way of any restart.
    cluster: Vec<String>,
    processes: Vec<Process>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Process {
    name: String,
    /// Its version of keyway, if it says it.
    version: String,
    /// Format of what it keeps in files, if it does and says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    store_format: Option<u32>,
    /// What becomes slower for a while if it is restarted, if anything does.
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<String>,
    /// Why it had better not be restarted now; nothing if it may be.
    why: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, admin: &Admin, shared: &Shared) -> Result<Verdict, Failure> {
        let check = Check::of(&admin.status()?, &admin.others());
        if shared.json {
            let text = serde_json::to_string(&check).map_err(|it| Failure::Other(anyhow!(it)))?;
            out::line(&text)?;
        } else {
            out::print(&check.describe())?;
        }
        Ok(if check.is_safe() { Verdict::Yes } else { Verdict::No })
    }
}

impl Check {
    fn of(status: &Status, others: &Others) -> Self {
        let members = status.members.iter().map(|it| Process {
            name: it.member.to_string(),
            version: it.versions.build.clone(),
            store_format: Some(it.versions.store).filter(|format| *format != 0),
            effect: effect_of_cache(it),
            why: match it.member {
                Member::Node(id) => {
                    let store = of_store(it.versions.store, SHARD_STORE_FORMAT);
                    store.into_iter().chain(of_node(status, id)).collect()
                }
                Member::Switch(index) => of_switch(status, index),
                Member::Cache(id) => of_cache(&status.members, id),
            },
        });
        let alone = (others.standing_by == 0).then(|| {
            "no other controller stands by: nothing changes until it is back, and the cluster \
             serves on for a lease"
                .to_owned()
        });
        let controller = Process {
            name: "controller".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            store_format: None,
            effect: None,
            why: alone.into_iter().collect(),
        };
        let mut check = Self {
            outcome: "safe",
            cluster: of_cluster(status, others),
            processes: members.chain([controller]).collect(),
        };
        if !check.is_safe() {
            check.outcome = "unsafe";
        }
        check
    }

    fn is_safe(&self) -> bool {
        self.cluster.is_empty() && self.processes.iter().all(|it| it.why.is_empty())
    }

    fn describe(&self) -> String {
        let mut text = String::new();
        for why in &self.cluster {
            text.push_str(&format!("not now     {why}\n"));
        }
        for Process { name, version, store_format, effect, why } in &self.processes {
            let version = if version.is_empty() { "of an unknown version" } else { version };
            let store = store_format.map(|format| format!(", store format {format}"));
            let version = version.to_owned() + &store.unwrap_or_default();
            match why.as_slice() {
                [] if self.cluster.is_empty() => {
                    let effect = effect.as_ref().map_or(String::new(), |it| format!(": {it}"));
                    text.push_str(&format!("{name:<10}  {version}  may be restarted{effect}\n"));
                }
                [] => text.push_str(&format!("{name:<10}  {version}  later\n")),
                why => text.push_str(&format!("{name:<10}  {version}  no: {}\n", why.join("; "))),
            }
        }
        text
    }
}

/// What is in the way of restarting anything.
fn of_cluster(status: &Status, others: &Others) -> Vec<String> {
    let mut why: Vec<String> =
        status.trouble.iter().map(|it| format!("controller: {it}")).collect();
    why.extend(status.late().map(MemberStatus::in_words));
    let silent = |at: &SocketAddr| format!("the controller at {at} does not answer");
    why.extend(others.silent.iter().map(silent));
    why.extend(too_far_apart(&status.members));
    let some = |count: usize, what: &str| (count > 0).then(|| format!("{count} {what}"));
    why.extend(some(status.under_replicated, "partitions have too few nodes: wait for copies"));
    why.extend(some(status.closed, "partitions are closed for a moment"));
    why.extend(some(status.unheard, "partitions have nodes that have not said to be up to date"));
    why
}

/// Members between which there are two versions of orders or more: whoever comes next might not
/// speak with the oldest.
fn too_far_apart(members: &[MemberStatus]) -> Option<String> {
    let newest = members.iter().map(|it| it.versions.orders).max()?.max(ORDERS_VERSION);
    let old = |it: &&MemberStatus| it.versions.orders + 1 < newest;
    let old: Vec<String> = members.iter().filter(old).map(|it| it.member.to_string()).collect();
    (!old.is_empty()).then(|| {
        format!(
            "{} speak a version of orders that is older than {}, and others speak {newest}: \
             upgrade these first",
            old.join(", "),
            newest.saturating_sub(1)
        )
    })
}

/// Why the version that asks could not go on with a node's files, be it newer or older than the one
/// that wrote them.
fn of_store(format: u32, known: u32) -> Option<String> {
    (format != 0 && format != known).then(|| {
        format!(
            "its files have format {format}, and the version that asks ({}) knows format {known} \
             only: that one would not start on them",
            env!("CARGO_PKG_VERSION")
        )
    })
}

fn of_node(status: &Status, node: NodeId) -> Vec<String> {
    let partitions = status.keyspaces.iter().flat_map(|it| &it.partitions);
    let held = partitions.filter(|it| it.chain.contains(&node));
    let ready: BTreeSet<Member> = ready(status).collect();
    let others = |it: &PartitionStatus| {
        let members = it.chain.iter().filter(|id| Some(**id) != it.learner && **id != node);
        members.filter(|id| ready.contains(&Member::Node(**id))).count()
    };
    let alone = held.filter(|it| others(it) == 0).count();
    let why =
        format!("nobody else holds {alone} of its partitions: their keys wait until it is back");
    (alone > 0).then_some(why).into_iter().collect()
}

fn of_switch(status: &Status, index: u16) -> Vec<String> {
    let other = |it: Member| matches!(it, Member::Switch(other) if other != index);
    let alone = status.active_switch == index && !ready(status).any(other);
    let why = "no other switch stands by: requests wait until it is back".to_owned();
    alone.then_some(why).into_iter().collect()
}

/// Nothing is lost with a cache. But nodes serve what it held meanwhile: what one cache held they
/// may be able to, what several held hardly.
fn of_cache(members: &[MemberStatus], cache: CacheId) -> Vec<String> {
    let lacks = |it: &&MemberStatus| {
        let other = matches!(it.member, Member::Cache(id) if id != cache);
        other && it.state != MemberState::Ready
    };
    let away: Vec<String> = members.iter().filter(lacks).map(|it| it.member.to_string()).collect();
    let why = format!("nodes serve what {} held already: wait until it is back", away.join(", "));
    (!away.is_empty()).then_some(why).into_iter().collect()
}

/// What a restart of a cache costs: its memory is gone.
fn effect_of_cache(member: &MemberStatus) -> Option<String> {
    let held = member.cache.map(|it| it.entries).filter(|held| *held > 0)?;
    Some(format!("nodes serve the {held} keys that it holds until it has fetched them again"))
}

fn ready(status: &Status) -> impl Iterator<Item = Member> {
    status.members.iter().filter(|it| it.state == MemberState::Ready).map(|it| it.member)
}

#[cfg(test)]
mod tests {
    use super::*;
    use controller::CacheStatus;

    fn cache(id: u16, state: MemberState, entries: u64) -> MemberStatus {
        let text = serde_json::json!({
            "member": { "cache": id }, "endpoint": "10.0.0.1:9000", "state": state,
            "departing": false, "detail": "", "revision": 1, "heard_ms_ago": 1, "lease_ms_left": 0,
        });
        let member: MemberStatus = serde_json::from_value(text).unwrap();
        let cache: CacheStatus = serde_json::from_value(serde_json::json!({
            "entries": entries, "room_entries": 10, "bytes": 1, "hits": 1, "misses": 0,
            "forwarded": 0, "volumes": 1, "rules": 3, "rules_wanted": 3, "fetches": 3, "updates": 0,
        }))
        .unwrap();
        MemberStatus { cache: Some(cache), ..member }
    }

    #[test]
    fn a_cache_may_be_restarted_if_the_others_are_there_and_it_says_what_that_costs() {
        let members = |other| [cache(1, MemberState::Ready, 7), cache(2, other, 0)];
        let both = members(MemberState::Ready);
        let [one, two] = [0, 1].map(|place| effect_of_cache(&both[place]));
        let effect = one.expect("it holds something");
        assert!(effect.starts_with("nodes serve the 7 keys") && two.is_none(), "{effect}");
        let why = |other, id| of_cache(&members(other), CacheId(id));
        assert_eq!(why(MemberState::Ready, 1), Vec::<String>::new());
        let waits = "nodes serve what cache 2 held already: wait until it is back";
        assert_eq!(why(MemberState::Silent, 1), [waits]);
        assert_eq!(why(MemberState::Silent, 2), Vec::<String>::new(), "it may be started");
    }

    #[test]
    fn files_of_another_format_are_in_the_way_of_older_and_newer_versions() {
        assert_eq!(of_store(0, 2), None, "nothing is kept in files");
        assert_eq!(of_store(2, 2), None);
        for format in [1, 3] {
            let why = of_store(format, 2).expect("it is in the way");
            assert!(why.starts_with(&format!("its files have format {format}, ")), "{why}");
        }
    }
}
