//! Orders that somebody keeps for a switch until it serves again: an order may be late by any time,
//! and that is when it does the most harm.

use super::World;
use super::control::Mandate;
use crate::queue::Event;
use cluster::Member;
use std::collections::VecDeque;

/// Those for all switches, oldest first.
#[derive(Debug, Default)]
pub(super) struct Kept(VecDeque<Mandate>);

impl World {
    /// Somebody may keep an order with hot keys that a switch was sent.
    pub(super) fn keep(&mut self, mandate: &Mandate) {
        let for_switch = matches!(mandate.to, Member::Switch(_)) && mandate.order.hot.is_some();
        if for_switch && self.net.keeps_order() {
            let Kept(orders) = &mut self.kept;
            if orders.len() == KEPT_MAX {
                orders.pop_front();
            }
            orders.push_back(mandate.clone());
        }
    }

    /// A switch that `served`, or did not, has done as it was told: checks what it took, and gives
    /// it what was kept if it begins to serve.
    pub(super) fn look_at_switch(&mut self, index: u16, served: bool, mandate: &Mandate) {
        let Some(switch) = self.switches.get_mut(usize::from(index)) else { return };
        let serves = switch.serves();
        if let Some(tables) = switch.installed.as_ref().filter(|_| !serves) {
            switch.stood_by = tables.revision;
        }
        let hot = mandate.order.hot.as_ref();
        let taken = hot.is_some_and(|it| it.revision == switch.directory.revision());
        if taken && mandate.map <= switch.stood_by {
            self.history.violation(format!("switch {index} takes hot keys of before it stood by"));
        }
        if serves && !served {
            self.send_kept(index);
        }
    }

    fn send_kept(&mut self, switch: u16) {
        let Kept(orders) = std::mem::take(&mut self.kept);
        let its = |mandate: &Mandate| mandate.to == Member::Switch(switch);
        let (its, others): (VecDeque<Mandate>, _) = orders.into_iter().partition(its);
        self.kept = Kept(others);
        for mandate in its {
            self.queue.schedule(self.now, Event::Order(mandate));
        }
    }
}

/// Orders that are kept at most.
const KEPT_MAX: usize = 4;
