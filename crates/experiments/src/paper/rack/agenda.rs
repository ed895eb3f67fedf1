//! What happens next in virtual time.

use machine::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A client's next request is due.
    Request { client: u16 },
    /// A datagram arrives.
    Arrival { parcel: u32 },
    /// A node has served a request.
    Served { node: u16 },
    /// A cache has served a datagram.
    Cached { cache: u16 },
    /// A machine wanted to be called.
    Wake(Unit),
    /// The next order or report arrives.
    Mail,
    /// An alert of a node arrives.
    Alert { node: u16 },
    /// An interval of the measurement ends.
    Tick,
    /// Clients change their rate.
    Change,
}

/// Whoever has timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unit {
    Client(u16),
    Node(u16),
    Cache(u16),
    Controller,
}

/// The events to come: by time, and those of one instant in the order in which they were planned.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    planned: u64,
}

impl Agenda {
    pub(super) fn plan(&mut self, at: Instant, event: Event) {
        self.planned += 1;
        self.heap.push(Reverse((at, self.planned, event)));
    }

    /// Takes the next event, unless it is later than `end`.
    pub(super) fn next(&mut self, end: Instant) -> Option<(Instant, Event)> {
        let Reverse((at, ..)) = self.heap.peek()?;
        if *at > end {
            return None;
        }
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}

/// When a machine will be called. Timers that were put off are not taken out of the agenda: what
/// is found there counts only at the instant that is noted here.
#[derive(Debug)]
pub(super) struct Alarm(Instant);

impl Alarm {
    pub(super) fn new() -> Self {
        Self(NEVER)
    }

    /// Sees to it that the unit is called at `wanted` or before.
    pub(super) fn set(&mut self, agenda: &mut Agenda, now: Instant, unit: Unit, wanted: Instant) {
        if wanted < self.0 {
            self.0 = wanted.max(now);
            agenda.plan(self.0, Event::Wake(unit));
        }
    }

    /// Whether it was set to this instant; then it is no more.
    pub(super) fn rings(&mut self, now: Instant) -> bool {
        let rings = self.0 == now;
        if rings {
            self.0 = NEVER;
        }
        rings
    }
}

const NEVER: Instant = Instant(u64::MAX);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_as_planned() {
        let mut agenda = Agenda::default();
        agenda.plan(Instant(2), Event::Mail);
        agenda.plan(Instant(1), Event::Tick);
        agenda.plan(Instant(1), Event::Request { client: 0 });
        let mut order = Vec::new();
        while let Some((_, event)) = agenda.next(Instant(1)) {
            order.push(event);
        }
        assert_eq!(order, [Event::Tick, Event::Request { client: 0 }]);
        assert_eq!(agenda.next(Instant(2)), Some((Instant(2), Event::Mail)));
    }

    #[test]
    fn an_alarm_rings_once_at_the_earliest_instant_that_was_wanted() {
        let (mut agenda, mut alarm) = (Agenda::default(), Alarm::new());
        let unit = Unit::Controller;
        for wanted in [30, 20, 25] {
            alarm.set(&mut agenda, Instant(10), unit, Instant(wanted));
        }
        let mut rung = Vec::new();
        while let Some((at, _)) = agenda.next(NEVER) {
            if alarm.rings(at) {
                rung.push(at);
            }
        }
        assert_eq!(rung, [Instant(20)]);
    }
}
