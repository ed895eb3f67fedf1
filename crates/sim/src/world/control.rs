//! The control plane of the world: orders out, reports back, the map on a disk that survives.

use super::World;
use crate::actor::ORDERED_KEYS;
use crate::net::Event;
use crate::options::Options;
use cluster::{KeyspaceKind, Member, NodeReport, Order, Report, SwitchControl};
use controller::KeyspaceSpec;
use std::sync::Arc;
use std::time::Duration;

impl World {
    pub(super) fn obey(&mut self, to: Member, order: &Order) {
        let report = if self.net.loses() { None } else { self.carry_out(to, order) };
        let wait = if report.is_some() { self.net.delay() } else { Duration::from_millis(50) };
        self.net.schedule(self.now + wait, Event::Report { from: to, report });
    }

    fn carry_out(&mut self, to: Member, order: &Order) -> Option<Report> {
        match to {
            Member::Switch(_) => {
                let switch = self.switch.as_mut()?;
                if let Order::Tables(tables) = order {
                    switch.install(tables).expect("tables of a sound map");
                }
                Some(Report::Switch(switch.counters()))
            }
            Member::Node(id) => {
                let now = self.now;
                let mine = (0..self.shards.len())
                    .filter(|i| self.shards.get(*i).is_some_and(|s| s.node == id));
                let mine: Vec<usize> = mine.collect();
                if let Order::Assign(assignment) = order {
                    for index in &mine {
                        let shard = self.shards.get_mut(*index)?;
                        let local = now + shard.ahead;
                        shard.machine.as_mut()?.install(local, assignment);
                        self.settle(*index);
                    }
                }
                let mut reports = Vec::new();
                for index in &mine {
                    reports.push(self.machine(*index)?.report());
                }
                merge_reports(&reports).map(Report::Node)
            }
        }
    }

    pub(super) fn hear(&mut self, from: Member, report: Option<Report>) {
        let Some(controller) = &mut self.controller else { return };
        match report {
            Some(report) => controller.handle_report(self.now, from, report),
            None => controller.handle_silence(self.now, from),
        }
        if self.keyspaces.is_none() {
            self.create_keyspaces();
        }
    }

    /// Creates both keyspaces as soon as the controller knows its nodes, and shows them to the
    /// clients once they are durable.
    fn create_keyspaces(&mut self) {
        let Some(controller) = &mut self.controller else { return };
        let Options { partitions, replicas, .. } = self.options;
        let splits = (1..u64::from(partitions))
            .map(|n| format!("k{}", n * ORDERED_KEYS / u64::from(partitions)).into_bytes());
        let prefix = Vec::new();
        let kinds = [
            ("hashed", KeyspaceKind::Hash, Vec::new()),
            ("ordered", KeyspaceKind::Range { prefix }, splits.collect()),
        ];
        for (name, kind, splits) in kinds {
            if controller.map().keyspace(name).is_none() {
                let name = name.to_owned();
                let spec = KeyspaceSpec { name, kind, partitions, replicas, splits };
                if controller.create_keyspace(self.now, spec).is_err() {
                    return; // A node has not been heard of yet.
                }
            }
        }
        self.save();
        let Some(controller) = &self.controller else { return };
        let keyspace = |name| controller.map().keyspace(name).cloned().map(Arc::new);
        self.keyspaces = keyspace("hashed").zip(keyspace("ordered")).map(<[_; 2]>::from);
    }

    pub(super) fn save(&mut self) {
        let Some(controller) = &mut self.controller else { return };
        while let Some(saved) = controller.poll_save() {
            let revision = saved.map.revision;
            self.saved = Some(saved);
            controller.handle_saved(self.now, revision);
        }
    }
}

fn merge_reports(reports: &[NodeReport]) -> Option<NodeReport> {
    Some(NodeReport {
        revision: reports.iter().map(|r| r.revision).min()?,
        store: reports.first()?.store,
        requests: reports.iter().map(|r| r.requests).sum(),
        pending: reports.iter().map(|r| r.pending).sum(),
    })
}
