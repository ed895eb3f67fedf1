//! How requests are served, and writes go down the chain.

use super::READER;
use super::bug::Bug;
use super::controller::{Hot, Map};
use super::network::{Packet, Question};
use super::scope::Rules;
use super::steps::State;

impl Rules {
    pub(super) fn ask(state: &mut State, by: u8, question: Question) {
        state.left.reads -= 1;
        let Some(map) = state.switch(by).serves(by) else { return };
        let to = match question {
            Question::Copy(_) => Some(READER),
            Question::Many(to) => Some(to),
            Question::Get(_) => map.tail(),
        };
        let Some(to) = to.filter(|to| map.open && !map.fenced.has(*to)) else { return };
        let seen = state.seen;
        state.send(Packet::Read { by, to, question, seen });
    }

    pub(super) fn write(state: &mut State, by: u8) {
        state.left.writes -= 1;
        let Some(map) = state.switch(by).serves(by) else { return };
        let epoch = map.epoch;
        let head = map.members.first().copied();
        let Some(to) = head.filter(|to| map.open && !map.fenced.has(*to)) else { return };
        state.send(Packet::Write { by, to, epoch });
    }

    pub(super) fn answer_direct(state: &mut State, number: u8) {
        let node = state.node(number);
        let tail = node.serves().is_some_and(|map| map.open && map.tail() == Some(number));
        if tail && node.direct {
            let (version, seen) = (node.committed, state.seen);
            state.show(version, seen);
        }
    }

    pub(super) fn deliver(&self, state: &mut State, packet: Packet) {
        state.network.retain(|other| *other != packet);
        match packet {
            Packet::Read { by, to, question, seen } => self.read(state, by, to, question, seen),
            Packet::Write { by, to, epoch } => {
                let takes = self.takes(state, by, to).is_some_and(|map| {
                    map.open && map.epoch == epoch && map.members.first() == Some(&to)
                });
                if takes {
                    let version = state.node(to).newest + 1;
                    Self::take(state, to, version);
                }
            }
            Packet::Forward { epoch, from, to, version } => {
                let node = state.node(to);
                let follows = node.map.as_ref().is_some_and(|map| {
                    let before = map.members.iter().take_while(|it| **it != to).last();
                    map.epoch == epoch && before == Some(&from)
                });
                if follows && node.newest + 1 == version {
                    Self::take(state, to, version);
                }
            }
        }
    }

    /// The assignment of a node that takes what this switch sends it.
    fn takes<'a>(&self, state: &'a State, by: u8, to: u8) -> Option<&'a Map> {
        state.node(to).serves().filter(|map| map.named == by || self.has(Bug::AnySwitch))
    }

    fn read(&self, state: &mut State, by: u8, to: u8, question: Question, seen: u8) {
        let Some(map) = self.takes(state, by, to) else { return };
        let (hot, node) = (map.hot, state.node(to));
        let is_tail = map.open && map.tail() == Some(to);
        // The reply passes the switch that the assignment names.
        let named = if self.has(Bug::AnySwitch) { by } else { map.named };
        match question {
            Question::Get(epoch) if is_tail && map.epoch == epoch => {
                let version = node.committed;
                state.reply(named, version, true, seen);
            }
            Question::Many(_) if is_tail => {
                let version = node.committed;
                state.reply(named, version, hot != Hot::Cold, seen);
            }
            Question::Copy(floor) if node.copy >= floor => {
                let version = node.copy;
                state.reply(named, version, true, seen);
            }
            Question::Get(_) | Question::Many(_) | Question::Copy(_) => {}
        }
    }

    /// A member of the chain records a write. The last one commits and answers it.
    fn take(state: &mut State, number: u8, version: u8) {
        let node = state.node_mut(number);
        node.newest = version;
        let Some(map) = node.map.clone() else { return };
        if map.tail() != Some(number) {
            return Self::resend(state, number);
        }
        node.committed = version;
        if node.lease {
            state.reply(map.named, version, true, 0);
        }
    }

    pub(super) fn resend(state: &mut State, from: u8) {
        let node = state.node(from);
        let (Some(map), newest) = (node.map.clone(), node.newest) else { return };
        let Some(to) = map.members.iter().skip_while(|it| **it != from).nth(1) else { return };
        let has = state.node(*to).newest;
        for version in has + 1..=newest {
            state.send(Packet::Forward { epoch: map.epoch, from, to: *to, version });
        }
    }

    pub(super) fn copy(state: &mut State) {
        let tails = (0..2).filter(|number: &u8| {
            let map = state.node(*number).map.as_ref();
            map.is_some_and(|map| map.tail() == Some(*number))
        });
        let newest = tails.map(|number| state.node(number).committed).max().unwrap_or(0);
        let reader = state.node_mut(READER);
        reader.copy = reader.copy.max(newest);
    }
}
