//! What is said about each member, with what to do if something is to be done.

use super::form::{CacheStatus, MemberState, MemberStatus, SwitchStatus};
use super::view::{View, ms_between};
use crate::clock::{is_far, shown};
use crate::members::{Contact, Peer, Standing};
use cluster::{CacheReport, Member, MemberReport, NodeId, Partition};

pub(super) fn member_status(view: &View<'_>, member: Member, peer: &Peer) -> Option<MemberStatus> {
    let state = view.state;
    let (endpoint, departing) = match member {
        Member::Switch(index) => (*state.switches.get(usize::from(index))?, false),
        Member::Node(id) => {
            let node = state.map.nodes.iter().find(|n| n.id == id)?;
            (node.endpoint.into(), state.departing.contains(&id))
        }
        Member::Cache(id) => {
            let cache = state.map.caches.iter().find(|it| it.id == id)?;
            (cache.endpoint.into(), false)
        }
    };
    let (word, mut detail) = describe(view, member, peer);
    if let Member::Node(id) = member {
        if peer.is_leaving() && peer.contact == Contact::Answering {
            let left = match state.partitions_of(id) {
                0 => "others have taken over".to_owned(),
                n => format!("others are to take over {n} partitions"),
            };
            detail = format!("it is about to end, {left}; {detail}");
        }
        if departing {
            detail = format!("{}; {detail}", departure(view, id));
        }
        if state.map.fence(id).is_some() {
            detail.push_str("; it is fenced: switches send it nothing");
        }
        match vacating(view, id) {
            0 => {}
            n => detail.push_str(&format!("; it still forgets what it held of {n} partitions")),
        }
    }
    if state.map.handing_over && member == Member::Switch(state.map.active_switch) {
        detail.push_str("; it waits until no node takes anything from the switch before it");
    }
    let clock = match member {
        Member::Node(_) => peer.clock.as_ref().and_then(|sample| view.clock.behind(sample)),
        Member::Switch(_) | Member::Cache(_) => None,
    };
    if let Some(off) = clock.filter(|off| is_far(*off)) {
        let off = shown(off);
        detail.push_str(&format!("; its clock is {off} the cluster's, which it goes by: set it"));
    }
    Some(MemberStatus {
        member,
        endpoint,
        state: word,
        departing,
        leaving: peer.is_leaving() && peer.contact == Contact::Answering,
        away: has_left(view, member, peer) && peer.contact != Contact::Answering,
        versions: peer.report.as_ref().map(|report| report.versions.clone()).unwrap_or_default(),
        detail,
        revision: peer.revision(),
        heard_ms_ago: peer.heard.map(|at| ms_between(at, view.now)),
        lease_ms_left: ms_between(view.now, peer.granted.over_at()),
        clock_ahead_ms: clock.map(|ahead| ahead.0 / 1_000_000),
        cache: cache_status(peer),
        switch: switch_status(peer),
    })
}

/// What is to be said of a switch beside that.
fn switch_status(peer: &Peer) -> Option<SwitchStatus> {
    let MemberReport::Switch(counters) = &peer.report.as_ref()?.state else { return None };
    let (capabilities, content) = (counters.capabilities, counters.content.clone());
    Some(SwitchStatus { capabilities, content })
}

/// What is to be said of a cache beside that.
fn cache_status(peer: &Peer) -> Option<CacheStatus> {
    let MemberReport::Cache(it) = &peer.report.as_ref()?.state else { return None };
    let CacheReport { entries, room_entries, bytes, hits, misses, .. } = *it;
    let CacheReport { forwarded, volumes, rules, rules_wanted, .. } = *it;
    Some(CacheStatus {
        entries,
        room_entries,
        bytes,
        hits,
        misses,
        forwarded,
        volumes,
        rules,
        rules_wanted,
    })
}

/// Whether it has ended because it was asked to.
fn has_left(view: &View<'_>, member: Member, peer: &Peer) -> bool {
    let away = matches!(member, Member::Node(id) if view.state.is_away(id));
    away || peer.is_leaving()
}

fn departure(view: &View<'_>, node: NodeId) -> String {
    match view.state.partitions_of(node) {
        0 if vacating(view, node) > 0 => "it has left every chain".to_owned(),
        0 => "it has left every chain and can be removed".to_owned(),
        n => format!("it is leaving, {n} partitions to go"),
    }
}

/// How many partitions the node says it has yet to forget. One that is not heard of is not waited
/// for: it will have to say so when it is back.
fn vacating(view: &View<'_>, node: NodeId) -> usize {
    let peer = view.members.node(node).filter(|peer| peer.is_serving());
    peer.and_then(Peer::node_report).map_or(0, |report| report.vacating.len())
}

fn describe(view: &View<'_>, member: Member, peer: &Peer) -> (MemberState, String) {
    let revision = view.state.map.revision;
    match &peer.standing {
        Standing::Foreign(why) | Standing::Unfit(why) | Standing::Ahead(why) => {
            (MemberState::Foreign, why.clone())
        }
        Standing::Forgotten => (MemberState::Forgotten, forgotten(view, member)),
        Standing::Accepted
        | Standing::Waiting(_)
        | Standing::Returning
        | Standing::Lending
        | Standing::Unheard
            if peer.contact != Contact::Answering && has_left(view, member, peer) =>
        {
            (MemberState::Silent, "it has ended, as it was asked to, and is waited for".into())
        }
        Standing::Unheard => (MemberState::Silent, "not heard of yet: is it running?".into()),
        Standing::Accepted | Standing::Waiting(_) | Standing::Returning | Standing::Lending
            if peer.contact != Contact::Answering =>
        {
            (MemberState::Silent, "it has stopped answering: is it running?".into())
        }
        Standing::Returning => (
            MemberState::Behind,
            "was started anew, and is seen to when all others have been heard of".into(),
        ),
        Standing::Lending => (
            MemberState::Behind,
            "was started anew, and is seen to when nobody shows any more what it had lent".into(),
        ),
        Standing::Waiting(member) => (
            MemberState::Behind,
            format!("nobody is taken in while {member} follows another controller"),
        ),
        Standing::Accepted if peer.is_ready(revision) => {
            let installed = format!("it has installed revision {revision}");
            (MemberState::Ready, aged(view, member).unwrap_or(installed))
        }
        Standing::Accepted => {
            let installed = peer.revision();
            let detail = if peer.stuck {
                format!(
                    "it was given revision {revision} and reports {installed}: the log of \
                     its process says why, which goes to its standard error"
                )
            } else {
                format!("it has revision {installed}, revision {revision} is on its way")
            };
            (MemberState::Behind, detail)
        }
    }
}

/// What becomes of a node that came back with an older copy of its store, if partitions wait for
/// somebody who knows better.
fn aged(view: &View<'_>, member: Member) -> Option<String> {
    let Member::Node(id) = member else { return None };
    let is_aged = |node: &NodeId, partition: &Partition| {
        partition.returned.iter().any(|it| it.node == *node && !it.remembers)
    };
    let waits = |partition: &&Partition| {
        is_aged(&id, partition) && partition.members().iter().all(|it| is_aged(it, partition))
    };
    let waiting = view.state.map.partitions.iter().filter(waits).count();
    (waiting > 0).then(|| {
        format!(
            "it came back with an older copy of its store, and nobody who knows more is left in \
             {waiting} of its partitions, which stay closed: bring another of their nodes or the \
             newest store back, or accept the loss (keyway cluster accept-loss {id})"
        )
    })
}

/// What becomes of a node without its memory: other members of its chains make it good, and where
/// there are none, nothing does but the memory itself.
fn forgotten(view: &View<'_>, member: Member) -> String {
    let Member::Node(id) = member else {
        return format!("{member} has no memory");
    };
    let holds = view.state.map.partitions.iter().filter(|p| p.chain.contains(&id));
    let alive = |node: &NodeId| {
        let peer = view.members.node(*node);
        *node != id && peer.is_some_and(|p| p.is_serving())
    };
    let stuck = holds.clone().filter(|p| !p.members().iter().any(alive)).count();
    let text = "it came back without the memory of its partitions and serves none of them, because \
                it would answer as if their keys had never been written";
    if stuck == 0 {
        return format!("{text}; it is taken in anew as soon as it has been replaced in them");
    }
    format!(
        "{text}; {stuck} of them are held by nobody else who answers: bring its data directory \
         back, or the other nodes that hold them"
    )
}
