//! Processes: up or down, stopped for a while, or slow; what comes meanwhile waits in a bounded
//! buffer.

use super::control::Reply;
use super::{Alert, Answer, Call, Mandate, Told, World};
use crate::clock::Clock;
use crate::queue::Event;
use crate::role::Role;
use cluster::{Incarnation, Superior, Term};
use std::collections::VecDeque;
use std::time::Duration;
use wire::Endpoint;

/// One process and the machine it runs on.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) state: ProcessState,
    /// It was asked to end, and waits until it may.
    pub(super) leaving: bool,
    /// Which incarnation this is; meaningless while down.
    pub(super) incarnation: Incarnation,
    /// Whether it is of a build that knows nothing of writes that go on before they are on disk.
    pub(super) is_old: bool,
    /// The machine's clock: it goes on whatever the process does.
    pub(super) clock: Clock,
    /// Whose orders it obeys, if it is a switch or a node.
    pub(super) superior: Superior,
    /// The highest term of which it has carried an order out.
    pub(super) obeyed: Term,
    /// What has arrived and was not taken yet.
    inbox: VecDeque<Parcel>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessState {
    Down,
    Up,
    /// It was stopped from outside and does nothing until it is let go on.
    Paused,
    /// Each datagram takes it this long.
    Slow(Duration),
}

/// Something that has arrived.
#[derive(Debug)]
pub(super) enum Parcel {
    Datagram {
        from: Endpoint,
        to: Endpoint,
        bytes: Vec<u8>,
    },
    Order(Mandate),
    Answer(Answer),
    Alert(Alert),
    Call(Call),
    Told(Told),
    /// An order that its controller was about to send.
    Leaves(Mandate),
}

impl Process {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            state: ProcessState::Down,
            leaving: false,
            incarnation: Incarnation::default(),
            is_old: false,
            clock,
            superior: Superior::default(),
            obeyed: Term::default(),
            inbox: VecDeque::new(),
        }
    }

    /// Whether it does what is due when it is due.
    pub(super) fn is_free(&self) -> bool {
        match self.state {
            ProcessState::Up => true,
            ProcessState::Slow(_) => self.inbox.is_empty(),
            ProcessState::Down | ProcessState::Paused => false,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.state != ProcessState::Down
    }

    /// Parcels that wait.
    pub(super) fn waiting(&self) -> usize {
        self.inbox.len()
    }

    /// Ends it, and whatever it has not taken.
    pub(super) fn end(&mut self) {
        (self.state, self.leaving) = (ProcessState::Down, false);
        self.inbox.clear();
    }
}

impl World {
    /// Something has arrived: it is taken now, or waits, or is lost.
    pub(super) fn arrive(&mut self, role: Role, parcel: Parcel) {
        let now = self.now;
        let process = self.process_mut(role);
        match process.state {
            ProcessState::Up => self.take(role, parcel),
            ProcessState::Down => self.turn_away(role, parcel),
            // What is sent over a connection is not lost for lack of room.
            ProcessState::Paused | ProcessState::Slow(_)
                if process.inbox.len() >= INBOX_MAX
                    && matches!(parcel, Parcel::Datagram { .. }) => {}
            ProcessState::Paused => process.inbox.push_back(parcel),
            ProcessState::Slow(takes) => {
                process.inbox.push_back(parcel);
                if process.inbox.len() == 1 {
                    let incarnation = process.incarnation.0;
                    self.queue.schedule(now + takes, Event::Serve { role, incarnation });
                    self.rearm_all(role);
                }
            }
        }
    }

    fn take(&mut self, role: Role, parcel: Parcel) {
        match parcel {
            Parcel::Datagram { from, to, bytes } => self.take_datagram(role, from, to, bytes),
            Parcel::Order(mandate) => self.take_order(role, mandate),
            Parcel::Answer(answer) => self.take_answer(answer),
            Parcel::Alert(alert) => self.take_alert(alert),
            Parcel::Call(call) => self.take_call(call),
            Parcel::Told(told) => self.take_told(told),
            Parcel::Leaves(mandate) => self.carry_order(&mandate),
        }
    }

    /// Nobody is there: whoever sent an order is told so.
    fn turn_away(&mut self, role: Role, parcel: Parcel) {
        if let Parcel::Order(mandate) = parcel {
            self.answer(role, &mandate, Reply::Nothing);
        }
    }

    /// A slow process takes its next parcel.
    pub(super) fn serve_next(&mut self, role: Role, incarnation: u64) {
        let now = self.now;
        let process = self.process_mut(role);
        let ProcessState::Slow(takes) = process.state else { return };
        if process.incarnation.0 != incarnation {
            return;
        }
        let Some(parcel) = process.inbox.pop_front() else { return };
        if !process.inbox.is_empty() {
            self.queue.schedule(now + takes, Event::Serve { role, incarnation });
        }
        self.take(role, parcel);
        // Between two parcels it looks at its clock.
        for unit in self.units_of(role) {
            self.time_passes(unit);
        }
    }

    /// Stops a controller that is about to send an order: that leaves when it goes on.
    pub(super) fn stop_with(&mut self, role: Role, mandate: Mandate) {
        self.disturb(role, ProcessState::Paused);
        self.process_mut(role).inbox.push_back(Parcel::Leaves(mandate));
    }

    /// Stops a process, or makes it slow.
    pub(super) fn disturb(&mut self, role: Role, state: ProcessState) {
        self.note(format_args!("{role} is {state:?}"));
        self.process_mut(role).state = state;
        self.rearm_all(role);
    }

    /// A process that was stopped or slow goes on as usual, and takes at once what has come
    /// meanwhile.
    pub(super) fn go_on(&mut self, role: Role) {
        let process = self.process_mut(role);
        if matches!(process.state, ProcessState::Up | ProcessState::Down) {
            return;
        }
        let stopped = process.state == ProcessState::Paused;
        process.state = ProcessState::Up;
        let inbox = std::mem::take(&mut process.inbox);
        self.note(format_args!("{role} goes on, {} parcels wait", inbox.len()));
        if role == Role::Store && stopped {
            let local = self.local(role);
            self.store.renew_all(local);
        }
        for parcel in inbox {
            // One of them may have ended it.
            if self.process(role).is_up() {
                self.take(role, parcel);
            }
        }
        for unit in self.units_of(role) {
            if let super::Unit::Shard(index) = unit {
                self.end_sync(index);
            }
            self.time_passes(unit);
        }
    }

    fn rearm_all(&mut self, role: Role) {
        for unit in self.units_of(role) {
            self.rearm(unit);
        }
    }
}

/// Datagrams that wait in a socket buffer at most. Real ones hold some hundred kilobytes.
const INBOX_MAX: usize = 256;
