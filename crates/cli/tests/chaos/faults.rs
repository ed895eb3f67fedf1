//! Plays a script: makes things go wrong at their time, and right again at theirs.

use crate::cluster::Cluster;
use crate::script::{Act, Fault, Round, Target, Way, Whom};
use lab::links::Link;
use lab::place::Place;
use lab::redundant::Role;
use machine::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// What was done, counted by kind; and what is wrong at the moment.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Faults that took place, in a word each.
    pub(crate) counts: BTreeMap<&'static str, usize>,
    /// By the place of the act in its round.
    wrong: BTreeMap<usize, Wrong>,
}

/// What one fault has done, to be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wrong {
    /// These processes are gone.
    Killed(Vec<Role>),
    Stopped(Role),
    Links(Vec<Link>),
}

/// A run in which less happens proves little: one fault in so many seconds.
const SECS_PER_FAULT_MAX: u64 = 5;

/// Whether there are fewer than that.
pub(crate) fn are_few(counts: &BTreeMap<&'static str, usize>, time: Duration) -> bool {
    let all: usize = counts.values().sum();
    all as u64 * SECS_PER_FAULT_MAX < time.as_secs()
}

/// Begin or end of an act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Edge {
    Begin,
    End,
}

impl Faults {
    /// Whether so few have been made in this time that a run proves little.
    pub(crate) fn are_few_for(&self, time: Duration) -> bool {
        are_few(&self.counts, time)
    }

    /// Plays a round to its end, with everything mended again.
    ///
    /// # Errors
    ///
    /// If a process ends by itself.
    pub(crate) fn play(&mut self, cluster: &mut Cluster, round: &Round) -> Result<(), String> {
        let begun = cluster.watch.now();
        let mut edges: Vec<(Instant, usize, Edge)> = Vec::new();
        for (index, act) in round.acts.iter().enumerate() {
            edges.push((begun + act.begin, index, Edge::Begin));
            edges.push((begun + act.end, index, Edge::End));
        }
        edges.sort();
        for (at, index, edge) in edges {
            cluster.watch.wait_until(at);
            cluster.all_run()?;
            match edge {
                Edge::Begin => self.begin(cluster, index, round.acts[index]),
                Edge::End => self.end(cluster, index),
            }
        }
        Ok(())
    }

    fn begin(&mut self, cluster: &mut Cluster, index: usize, act: Act) {
        let Some((name, wrong)) = self.make(cluster, act.fault) else { return };
        *self.counts.entry(name).or_default() += 1;
        let links = matches!(wrong, Wrong::Links(_));
        self.wrong.insert(index, wrong);
        if links {
            self.set_links(cluster);
        }
    }

    fn end(&mut self, cluster: &mut Cluster, index: usize) {
        match self.wrong.remove(&index) {
            // It found nothing to do when it began.
            None => {}
            Some(Wrong::Killed(roles)) => roles.into_iter().for_each(|role| cluster.revive(role)),
            Some(Wrong::Stopped(role)) => cluster.go_on(role),
            Some(Wrong::Links(_)) => self.set_links(cluster),
        }
    }

    fn set_links(&self, cluster: &Cluster) {
        let links = self.wrong.values().filter_map(|wrong| match wrong {
            Wrong::Links(links) => Some(links.as_slice()),
            Wrong::Killed(_) | Wrong::Stopped(_) => None,
        });
        cluster.set_links(&links.flatten().copied().collect::<Vec<Link>>());
    }

    /// Makes something go wrong, and says in a word what; `None` if it is not to be had, because
    /// whoever it was meant for is stopped or gone already.
    fn make(&self, cluster: &mut Cluster, fault: Fault) -> Option<(&'static str, Wrong)> {
        match fault {
            Fault::Kill(target) => {
                let role = self.free(role_of(cluster, target)?)?;
                cluster.kill(role);
                Some((killed(role), Wrong::Killed(vec![role])))
            }
            Fault::Forget(node) => {
                let role = self.free(Role::Node(node))?;
                cluster.kill(role);
                cluster.forget(node);
                Some(("node killed, its data removed", Wrong::Killed(vec![role])))
            }
            Fault::KillAllNodes => {
                let nodes = cluster.roles().into_iter().filter(|it| matches!(it, Role::Node(_)));
                let nodes: Vec<Role> = nodes.filter_map(|role| self.free(role)).collect();
                nodes.iter().for_each(|role| cluster.kill(*role));
                Some(("all nodes killed", Wrong::Killed(nodes)))
            }
            Fault::Stop(target) => {
                let role = self.free(role_of(cluster, target)?)?;
                cluster.stop(role);
                Some((stopped(role), Wrong::Stopped(role)))
            }
            Fault::Cut { of, from, way } => {
                let place = place_of(cluster, of)?;
                let links = cut(&cluster.hosts().places(), place, from, way);
                Some((cut_off(of, from, way), Wrong::Links(links)))
            }
            Fault::Lossy { of, percent } => {
                let place = place_of(cluster, of)?;
                let mut links = cut(&cluster.hosts().places(), place, Whom::Everybody, Way::Both);
                links.iter_mut().for_each(|link| link.lost_percent = percent);
                Some(("packets of one host lost", Wrong::Links(links)))
            }
            Fault::AllLossy { percent } => {
                let places = cluster.hosts().places();
                let pair = |from: Place| {
                    let others = places.iter().filter(move |to| **to != from);
                    others.map(move |to| Link { from, to: *to, lost_percent: percent })
                };
                let links = places.iter().flat_map(|from| pair(*from)).collect();
                Some(("packets of all hosts lost", Wrong::Links(links)))
            }
        }
    }

    /// A process that is neither killed nor stopped at the moment.
    fn free(&self, role: Role) -> Option<Role> {
        let suffers = |wrong: &Wrong| match wrong {
            Wrong::Killed(roles) => roles.contains(&role),
            Wrong::Stopped(stopped) => *stopped == role,
            Wrong::Links(_) => false,
        };
        (!self.wrong.values().any(suffers)).then_some(role)
    }
}

/// Which process this is at the moment; `None` if nobody can tell, or it is none.
fn role_of(cluster: &Cluster, target: Target) -> Option<Role> {
    let other = |index: u8| 1 - index;
    match target {
        Target::Node(id) => Some(Role::Node(id)),
        Target::Cache(id) => Some(Role::Cache(id)),
        Target::Bridge => Some(Role::Bridge),
        Target::ActiveSwitch => active_switch(cluster).map(Role::Switch),
        Target::StandbySwitch => active_switch(cluster).map(other).map(Role::Switch),
        Target::ActiveController => cluster.active_controller().map(Role::Controller),
        Target::StandbyController => cluster.active_controller().map(other).map(Role::Controller),
        Target::Client(_) => None,
    }
}

fn place_of(cluster: &Cluster, target: Target) -> Option<Place> {
    match target {
        Target::Client(index) => Some(Place::Client(index)),
        Target::ActiveController | Target::StandbyController => Some(Place::Controllers),
        Target::Node(_)
        | Target::Cache(_)
        | Target::ActiveSwitch
        | Target::StandbySwitch
        | Target::Bridge => role_of(cluster, target).map(|role| cluster.place(role)),
    }
}

fn active_switch(cluster: &Cluster) -> Option<u8> {
    let status = cluster.status().ok()?;
    u8::try_from(status.active_switch).ok()
}

/// The links that fail when this place is cut off.
fn cut(places: &[Place], of: Place, from: Whom, way: Way) -> Vec<Link> {
    let concerned = |place: &&Place| match (from, place) {
        (Whom::Everybody, _) => true,
        (Whom::Controllers, Place::Controllers) => true,
        (Whom::Nodes, Place::Node(_)) => true,
        (Whom::Controllers | Whom::Nodes, _) => false,
    };
    let others = places.iter().filter(|place| **place != of).filter(concerned);
    let lost_percent = 100;
    let ways = |other: &Place| match way {
        Way::Both => vec![(*other, of), (of, *other)],
        Way::In => vec![(*other, of)],
        Way::Out => vec![(of, *other)],
    };
    others.flat_map(ways).map(|(from, to)| Link { from, to, lost_percent }).collect()
}

fn killed(role: Role) -> &'static str {
    match role {
        Role::BridgeDatabase => "bridge's database killed",
        Role::Bridge => "bridge killed",
        Role::Switch(_) => "switch killed",
        Role::Etcd(_) => "etcd killed",
        Role::Controller(_) => "controller killed",
        Role::Node(_) => "node killed",
        Role::Gateway(_) => "gateway killed",
        Role::Cache(_) => "cache killed",
    }
}

fn stopped(role: Role) -> &'static str {
    match role {
        Role::BridgeDatabase => "bridge's database stopped",
        Role::Bridge => "bridge stopped",
        Role::Switch(_) => "switch stopped",
        Role::Etcd(_) => "etcd stopped",
        Role::Controller(_) => "controller stopped",
        Role::Node(_) => "node stopped",
        Role::Gateway(_) => "gateway stopped",
        Role::Cache(_) => "cache stopped",
    }
}

fn cut_off(of: Target, from: Whom, way: Way) -> &'static str {
    match (of, from, way) {
        (Target::Client(_), _, _) => "client cut off",
        (Target::ActiveController | Target::StandbyController, _, _) => "controllers cut off",
        (Target::ActiveSwitch | Target::StandbySwitch | Target::Bridge, _, _) => "switch cut off",
        (Target::Cache(_), Whom::Everybody, _) => "cache cut off",
        (Target::Cache(_), Whom::Controllers | Whom::Nodes, _) => "cache cut off from nodes",
        (Target::Node(_), Whom::Everybody, Way::Both) => "node cut off",
        (Target::Node(_), Whom::Controllers, Way::Both) => "node cut off from controllers",
        (Target::Node(_), Whom::Nodes, Way::Both) => "node cut off from nodes",
        (Target::Node(_), _, Way::In | Way::Out) => "node cut off one way",
    }
}

#[test]
fn who_is_cut_off_one_way_still_hears_or_speaks() {
    let (node, other, controllers) = (Place::Node(1), Place::Node(2), Place::Controllers);
    let places = [node, other, controllers];
    let cuts = |from, way| {
        let links = cut(&places, node, from, way).into_iter();
        links.map(|link| (link.from, link.to)).collect::<Vec<_>>()
    };
    assert_eq!(cuts(Whom::Everybody, Way::Out), [(node, other), (node, controllers)]);
    assert_eq!(cuts(Whom::Controllers, Way::In), [(controllers, node)]);
    assert_eq!(cuts(Whom::Nodes, Way::Both), [(other, node), (node, other)]);
}
